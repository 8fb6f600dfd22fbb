//! `cargo xtask mutants CRATE`: which small changes of a crate do its own tests notice?
//!
//! `cargo-mutants` lists the changes. It builds the crate again for each; a crate of some thousand changes
//! would take days. Here every function is written into a scratch copy once for each of its changes, behind a
//! switch that a variable of the environment sets: one build, and then a test run per change. A first run
//! records which test reaches which function; a change is tried only with the tests that reach it, and one
//! that none reaches is missed without a run.
//!
//! What does not compile is dropped. So is what cannot be switched: changes outside functions, and in
//! functions whose copies would have different types (`impl Trait`). Tests in documents are not run.

mod list;
mod rewrite;
mod scratch;
mod trial;

use list::{Mutant, Span};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use trial::Outcome;

const USAGE: &str = "usage: cargo xtask mutants CRATE [OPTIONS]   (CRATE without `tidegate-`)
  --sample N          N of the changes, drawn at random, instead of all
  --seed S            which N: the same number draws the same changes (1)
  --survivors-of FILE only the changes that an earlier result (target/mutants/CRATE.tsv) says were missed
  --file TEXT         only the changes in files whose path contains TEXT
  --jobs N            test processes at a time (2)
Needs `cargo install cargo-mutants --version 27.1.0 --locked`.
Prints the figures and the changes that were missed, and writes every change's outcome to \
target/mutants/CRATE.tsv.";

/// A build holds at most this many bytes of changed functions; compilers want memory in proportion.
const MAX_BYTES: usize = 4_000_000;
/// And of one function.
const MAX_FUNCTION_BYTES: usize = 60_000;

/// The changes of a build.
#[derive(Default)]
struct Batch {
    mutants: Vec<Mutant>,
    bytes: usize,
    /// Bytes of the copies of each function.
    functions: BTreeMap<(String, Option<Span>), usize>,
}

struct Options {
    name: String,
    sample: Option<usize>,
    seed: u64,
    survivors_of: Option<PathBuf>,
    file: Option<String>,
    jobs: usize,
}

pub(crate) fn run(root: &Path, words: &[String]) -> ExitCode {
    if words.iter().any(|word| word == "--help") {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let options = match options(words) {
        Ok(options) => options,
        Err(problem) => {
            eprintln!("xtask: {problem}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match measure(root, &options) {
        Ok(table) => {
            println!("{table}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("xtask: mutants: {problem}");
            ExitCode::FAILURE
        }
    }
}

fn options(words: &[String]) -> Result<Options, String> {
    fn value<T: FromStr>(option: &str, word: Option<&String>) -> Result<T, String> {
        let word = word.ok_or_else(|| format!("{option} needs a value"))?;
        word.parse().map_err(|_| format!("{option}: cannot read {word}"))
    }
    let mut words = words.iter();
    let name = words.next().filter(|word| !word.starts_with('-')).ok_or("no crate")?.clone();
    let mut options = Options { name, sample: None, seed: 1, survivors_of: None, file: None, jobs: 2 };
    while let Some(word) = words.next() {
        match word.as_str() {
            "--sample" => options.sample = Some(value(word, words.next())?),
            "--seed" => options.seed = value(word, words.next())?,
            "--survivors-of" => options.survivors_of = Some(value(word, words.next())?),
            "--file" => options.file = Some(value(word, words.next())?),
            "--jobs" => options.jobs = value(word, words.next())?,
            other => return Err(format!("unknown option {other}")),
        }
    }
    Ok(options)
}

/// Lists, builds and tries; returns the report.
fn measure(root: &Path, options: &Options) -> Result<String, String> {
    let all = list::list(root, &options.name)?;
    let mut chosen: Vec<Mutant> = match options.sample {
        Some(count) => list::sample(&all, count, options.seed),
        None => all.clone(),
    };
    if let Some(part) = &options.file {
        chosen.retain(|mutant| mutant.file.contains(part.as_str()));
    }
    if let Some(file) = &options.survivors_of {
        let text = fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
        let missed: Vec<&str> = text.lines().filter_map(Outcome::missed_key).collect();
        chosen.retain(|mutant| missed.contains(&mutant.key.as_str()));
    }
    println!("{}: {} listed, {} to try", options.name, all.len(), chosen.len());
    let mut outcomes = BTreeMap::new();
    let scratch = scratch::Scratch::new(root, &options.name)?;
    for (part, batch) in batches(root, chosen.clone())?.into_iter().enumerate() {
        println!("build {}: {} changes", part + 1, batch.len());
        let built = scratch.build(&batch)?;
        outcomes.extend(built.dropped);
        let left: Vec<&Mutant> =
            batch.iter().filter(|mutant| !outcomes.contains_key(&mutant.number)).collect();
        outcomes.extend(trial::try_all(&built.programs, &left, &built.functions, options.jobs)?);
        // A long run shows what it has so far.
        write_outcomes(root, &options.name, &chosen, &outcomes)?;
    }
    Ok(report(&options.name, all.len(), &chosen, &outcomes))
}

/// Parts that one build can hold. Compilers want time by the square of a function's size, so a large
/// function's changes are spread over several builds.
fn batches(root: &Path, chosen: Vec<Mutant>) -> Result<Vec<Vec<Mutant>>, String> {
    let mut lines: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut batches: Vec<Batch> = Vec::new();
    for mutant in chosen {
        if !lines.contains_key(&mutant.file) {
            let path = root.join(&mutant.file);
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            lines.insert(mutant.file.clone(), text.lines().map(str::len).collect());
        }
        let (from, to) = mutant.function.map_or((1, 0), |function| (function.from.line, function.to.line));
        let size: usize = lines[&mutant.file].get(from - 1..to).unwrap_or_default().iter().sum();
        let function = (mutant.file.clone(), mutant.function);
        let has_room = |batch: &Batch| {
            let of_function = batch.functions.get(&function).copied().unwrap_or_default();
            let is_small = of_function == 0 || of_function + size <= MAX_FUNCTION_BYTES;
            is_small && (batch.bytes == 0 || batch.bytes + size <= MAX_BYTES)
        };
        let at = batches.iter().position(has_room).unwrap_or_else(|| {
            batches.push(Batch::default());
            batches.len() - 1
        });
        batches[at].bytes += size;
        *batches[at].functions.entry(function).or_default() += size;
        batches[at].mutants.push(mutant);
    }
    Ok(batches.into_iter().map(|batch| batch.mutants).collect())
}

fn write_outcomes(
    root: &Path,
    name: &str,
    chosen: &[Mutant],
    outcomes: &BTreeMap<u32, Outcome>,
) -> Result<(), String> {
    let mut text = String::new();
    for mutant in chosen {
        if let Some(outcome) = outcomes.get(&mutant.number) {
            let _ = writeln!(text, "{}\t{}\t{}", outcome.word(), mutant.name, mutant.key);
        }
    }
    let path = root.join("target/mutants").join(format!("{name}.tsv"));
    fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The figures, and the changes that were missed.
fn report(name: &str, listed: usize, chosen: &[Mutant], outcomes: &BTreeMap<u32, Outcome>) -> String {
    let count = |wanted: Outcome| outcomes.values().filter(|outcome| **outcome == wanted).count();
    let (caught, timeouts) = (count(Outcome::Caught), count(Outcome::Timeout));
    let (missed, unreached) = (count(Outcome::Missed), count(Outcome::Unreached));
    let tried = caught + timeouts + missed + unreached;
    let mut text = String::new();
    for mutant in chosen {
        if let Some(outcome @ (Outcome::Missed | Outcome::Unreached)) = outcomes.get(&mutant.number) {
            let _ = writeln!(text, "{} {}", outcome.word(), mutant.name);
        }
    }
    let (low, high) = wilson(caught + timeouts, tried);
    let _ = write!(
        text,
        "{name}: {listed} listed, {} chosen, {} do not compile, {} cannot be switched, {tried} tried: {} \
        caught ({timeouts} of them by running too long), {missed} missed, {unreached} reached by no test: \
        {:.1} % ({:.0} to {:.0})",
        chosen.len(),
        count(Outcome::NoBuild),
        count(Outcome::NoSwitch),
        caught + timeouts,
        100.0 * (caught + timeouts) as f64 / tried.max(1) as f64,
        100.0 * low,
        100.0 * high,
    );
    text
}

/// Wilson's interval at 95 % for `hits` of `tried`.
fn wilson(hits: usize, tried: usize) -> (f64, f64) {
    const Z: f64 = 1.959_964;
    let (hits, n) = (hits as f64, tried.max(1) as f64);
    let share = hits / n;
    let middle = share + Z * Z / (2.0 * n);
    let half = Z * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + Z * Z / n;
    ((middle - half) / scale, (middle + half) / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Newcombe 1998, Statistics in Medicine 17, table I, method 3: 81 of 263, 15 of 148, 0 of 20.
    #[test]
    fn newcombes_examples() {
        let rounded = |hits, tried| {
            let (low, high) = wilson(hits, tried);
            [low, high].map(|bound| (bound * 1e4).round() / 1e4)
        };
        assert_eq!(rounded(81, 263), [0.2553, 0.3662]);
        assert_eq!(rounded(15, 148), [0.0624, 0.1605]);
        assert_eq!(rounded(0, 20), [0.0, 0.1611]);
    }

    #[test]
    fn options_are_read() {
        let read = |line: &str| options(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
        let options = read("sim --sample 250 --seed 2 --jobs 1").ok().unwrap();
        assert_eq!(
            (options.name.as_str(), options.sample, options.seed, options.jobs),
            ("sim", Some(250), 2, 1)
        );
        for (line, problem) in [
            ("", "no crate"),
            ("sim --seed", "--seed needs a value"),
            ("sim --sample x", "--sample: cannot read x"),
        ] {
            assert_eq!(read(line).err().as_deref(), Some(problem), "{line}");
        }
    }
}
