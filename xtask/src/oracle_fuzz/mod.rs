//! `cargo xtask oracle-fuzz`: random trees and traffic, a real kernel against our engine, differences shrunk
//! to the smallest case.
//!
//! The rooms: `generate` makes a case of a seed and a number; `ask` gets the kernel's answer; `replay` gets
//! ours; `compare` finds the first difference and its sort; `shrink` makes the case small; `report` counts
//! and keeps. A later kind of qdisc is a row in `generate::KINDS` and its function; nothing else here knows
//! one kind from another.

pub(crate) mod ask;
mod case;
mod compare;
mod generate;
mod replay;
mod report;
pub(crate) mod rng;
mod shrink;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ask::Oracle;
use case::{Case, Release};
use compare::Difference;
use replay::Engine;
use report::{Kept, Tally};

const USAGE: &str = "usage: ORACLE=…/ask cargo xtask oracle-fuzz [options]
  --hours H        until so much time is spent in all, resumed runs included   --cases N    until so many \
  cases are compared
  --seed S         the search (default 1)           --only KIND    every case has this qdisc
  --tidegate PATH  default target/release/tidegate  --keep DIR     minimal cases and state (default \
  target/oracle-fuzz)
  --batch N        cases per question (default 32)  --askers N     kernels at once (default 1)
  --json           the summary for programs         --fresh        forget an earlier run
  --questions N    per shrinking (default 160)      --self-check   the kernel against itself
  --linux V        whose kernel is asked: 6.1, 7.2  --tc V         and whose tc
  --make NUMBER    write this case into the keep directory and stop
  --check DIR…     ask and compare these folders again and stop (the last option)
exit: 0 no difference, 1 differences, 2 cannot run";

/// What the command line requests.
#[derive(Debug)]
struct Options {
    hours: Option<f64>,
    cases: Option<u64>,
    seed: u64,
    only: Option<&'static str>,
    release: Release,
    tidegate: PathBuf,
    keep: PathBuf,
    batch: u64,
    askers: u64,
    questions: u32,
    json: bool,
    fresh: bool,
    self_check: bool,
    make: Option<u64>,
    check: Vec<PathBuf>,
}

/// Minimal cases per group and set of kinds.
const PER_GROUP: usize = 3;

/// Runs the task with the words after its name.
pub(crate) fn run(root: &Path, words: &[String]) -> ExitCode {
    match options(root, words).and_then(|options| fuzz(&options)) {
        Ok(code) => code,
        Err(message) => {
            eprintln!("oracle-fuzz: {message}");
            ExitCode::from(2)
        }
    }
}

fn options(root: &Path, words: &[String]) -> Result<Options, String> {
    let mut options = Options {
        hours: None,
        cases: None,
        seed: 1,
        only: None,
        release: Release::default(),
        tidegate: root.join("target/release/tidegate"),
        keep: root.join("target/oracle-fuzz"),
        batch: 32,
        askers: 1,
        questions: 160,
        json: false,
        fresh: false,
        self_check: false,
        make: None,
        check: Vec::new(),
    };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value\n{USAGE}"));
        match word.as_str() {
            "--linux" => options.release.linux = version(word, value()?)?,
            "--tc" => options.release.tc = version(word, value()?)?,
            "--hours" => options.hours = Some(number(word, value()?)?),
            "--cases" => options.cases = Some(number(word, value()?)?),
            "--seed" => options.seed = number(word, value()?)?,
            "--batch" => options.batch = number::<u64>(word, value()?)?.clamp(1, 256),
            "--askers" => options.askers = number::<u64>(word, value()?)?.clamp(1, 64),
            "--questions" => options.questions = number(word, value()?)?,
            "--make" => options.make = Some(number(word, value()?)?),
            "--tidegate" => options.tidegate = PathBuf::from(value()?),
            "--keep" => options.keep = PathBuf::from(value()?),
            "--only" => {
                let name = value()?;
                let kind = generate::KINDS.iter().find(|kind| kind.name == *name);
                let names: Vec<&str> = generate::KINDS.iter().map(|kind| kind.name).collect();
                options.only =
                    Some(kind.ok_or_else(|| format!("--only {name}: not one of {}", names.join(" ")))?.name);
            }
            "--json" => options.json = true,
            "--fresh" => options.fresh = true,
            "--self-check" => options.self_check = true,
            "--check" => options.check = words.by_ref().map(PathBuf::from).collect(),
            "--help" | "-h" | "help" => return Err(USAGE.to_owned()),
            other => return Err(format!("unknown option {other}\n{USAGE}")),
        }
    }
    let known = |name: &&str| options.release.kinds().iter().any(|kind| kind.name == *name);
    if let Some(name) = options.only.filter(|name| !known(name)) {
        return Err(format!("--only {name} needs --linux 7.2 --tc 7.2"));
    }
    if options.hours.is_none() && options.cases.is_none() {
        options.cases = Some(320);
    }
    Ok(options)
}

/// A release that the oracle has.
fn version(name: &str, text: &str) -> Result<String, String> {
    let known = ["6.1", "7.2"].contains(&text);
    known.then(|| text.to_owned()).ok_or_else(|| format!("{name} {text}: 6.1 or 7.2"))
}

fn number<T: std::str::FromStr>(name: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{name} {text}: not a number"))
}

/// A batch of folders that the kernel has answered.
struct Batch {
    first: u64,
    cases: Vec<(Case, PathBuf)>,
}

fn fuzz(options: &Options) -> Result<ExitCode, String> {
    fs::create_dir_all(&options.keep).map_err(|e| format!("{}: {e}", options.keep.display()))?;
    let keep = fs::canonicalize(&options.keep).map_err(|e| format!("{}: {e}", options.keep.display()))?;
    if let Some(number) = options.make {
        let dir = keep.join(format!("case-{}-{number}", options.seed));
        generate::case(options.seed, number, options.only, &options.release)
            .write(&dir)
            .map_err(|e| format!("{}: {e}", dir.display()))?;
        println!("{}", dir.display());
        return Ok(ExitCode::SUCCESS);
    }
    let oracle = Oracle::from_environment()?;
    let engine = if options.self_check {
        Engine::Itself(oracle.on_core(1))
    } else {
        Engine::Tidegate(program(&options.tidegate)?)
    };
    if !options.check.is_empty() {
        return check(&oracle, &engine, &options.check);
    }
    let state = keep.join("state.json");
    let old = if options.fresh { None } else { Tally::read(&state, options.seed) };
    let mut tally = old.unwrap_or(Tally { seed: options.seed, ..Tally::default() });
    let work = keep.join(format!("work-{}", std::process::id()));
    let outcome = search(options, &oracle, &engine, &keep, &work, &mut tally);
    let _ = fs::remove_dir_all(&work);
    outcome.map_err(|e| format!("{}: {e}", work.display()))?;
    if options.json {
        println!("{:#}", tally.to_json());
    } else {
        print!("{}", tally.summary());
    }
    Ok(ExitCode::from(u8::from(tally.differing > 0)))
}

fn program(path: &Path) -> Result<PathBuf, String> {
    fs::canonicalize(path).map_err(|e| {
        format!(
            "{}: {e}; build it with `cargo build --release -p tidegate`, or say --tidegate PATH",
            path.display()
        )
    })
}

/// Asks on some cores, compares here, until the time or the cases are used up.
fn search(
    options: &Options,
    oracle: &Oracle,
    engine: &Engine,
    keep: &Path,
    work: &Path,
    tally: &mut Tally,
) -> io::Result<()> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let start = Instant::now();
    let before = tally.seconds;
    let mut shown = Instant::now();
    let receivers: Vec<mpsc::Receiver<io::Result<Batch>>> = (0..options.askers)
        .map(|asker| {
            let first = tally.next + asker * options.batch;
            let oracle = oracle.on_core(asker as usize % cores);
            ask_ahead(options, oracle, work.to_owned(), first)
        })
        .collect();
    let shrinker = Harness {
        oracle: oracle.on_core(cores - 1),
        engine,
        dir: work.join("shrink"),
        questions: options.questions,
    };
    for asker in receivers.iter().cycle() {
        let Ok(batch) = asker.recv() else { break };
        let batch = batch?;
        let mut found = Vec::new();
        for (at, (case, dir)) in batch.cases.iter().enumerate() {
            let number = batch.first + at as u64;
            if let Some(difference) = one(&shrinker, tally, (case, dir))? {
                eprintln!("case {number} differs: {difference}");
                found.push((number, case, difference));
            }
        }
        // The smallest first: they are quickly made smaller, and may explain the others.
        found.sort_by_key(|(_, case, _)| case.script.len() * 8 + case.rows.len());
        for (number, case, difference) in found {
            if tally.deserves(&difference, &case.kinds(), PER_GROUP) {
                shrink_and_keep(&shrinker, tally, keep, (number, case, &difference))?;
            }
        }
        tally.next = batch.first + batch.cases.len() as u64;
        tally.seconds = before + start.elapsed().as_secs_f64();
        tally.write(&keep.join("state.json"))?;
        if let Some((_, dir)) = batch.cases.first() {
            let _ = fs::remove_dir_all(dir.parent().unwrap_or(dir));
        }
        if shown.elapsed() > Duration::from_secs(10) {
            eprintln!("{}", tally.progress());
            shown = Instant::now();
        }
        let late = options.hours.is_some_and(|hours| tally.seconds >= hours * 3600.0);
        if late || options.cases.is_some_and(|cases| tally.cases + tally.unanswered >= cases) {
            break;
        }
    }
    Ok(())
}

/// A thread that makes batches and asks about them, one ahead of the comparison. It ends when no one listens.
fn ask_ahead(
    options: &Options,
    oracle: Oracle,
    work: PathBuf,
    first: u64,
) -> mpsc::Receiver<io::Result<Batch>> {
    let (give, take) = mpsc::sync_channel(1);
    let (seed, only, size, step) =
        (options.seed, options.only, options.batch, options.batch * options.askers);
    let release = options.release.clone();
    thread::spawn(move || {
        let mut first = first;
        loop {
            let made: io::Result<Batch> = (|| {
                let folder = work.join(format!("b{first}"));
                let mut cases = Vec::new();
                for number in first..first + size {
                    let dir = folder.join(number.to_string());
                    let case = generate::case(seed, number, only, &release);
                    case.write(&dir)?;
                    cases.push((case, dir));
                }
                let dirs: Vec<PathBuf> = cases.iter().map(|(_, dir)| dir.clone()).collect();
                oracle.ask(&dirs)?;
                Ok(Batch { first, cases })
            })();
            let stop = made.is_err();
            if give.send(made).is_err() || stop {
                return;
            }
            first += step;
        }
    });
    take
}

/// Where one case at a time is asked and replayed.
struct Harness<'a> {
    oracle: Oracle,
    engine: &'a Engine,
    dir: PathBuf,
    questions: u32,
}

impl Harness<'_> {
    /// The difference in a folder that the kernel has answered.
    fn compare(&self, dir: &Path) -> io::Result<Option<Difference>> {
        let out = dir.join("ours");
        Ok(match self.engine.run(dir, &out)? {
            Ok(()) => compare::folders(dir, &out),
            // Without the folder's name the same refusal is of the same sort elsewhere.
            Err(message) => Some(Difference::refusal(&message.replace(&dir.display().to_string(), "DIR"))),
        })
    }

    /// Asks about a case in the shrinker's own folder; none also when the kernel does not answer, or (unless
    /// `failed`) its script fails.
    fn question(&self, case: &Case, failed: bool) -> io::Result<Option<Difference>> {
        let _ = fs::remove_dir_all(&self.dir);
        case.write(&self.dir)?;
        self.oracle.ask(std::slice::from_ref(&self.dir))?;
        if !ask::answered(&self.dir) || (!failed && ask::script_failed(&self.dir)) {
            return Ok(None);
        }
        self.compare(&self.dir)
    }
}

/// Counts and compares one answered case.
fn one(
    bench: &Harness<'_>,
    tally: &mut Tally,
    (case, dir): (&Case, &Path),
) -> io::Result<Option<Difference>> {
    if !ask::answered(dir) {
        tally.unanswered += 1;
        return Ok(None);
    }
    tally.cases += 1;
    for kind in case.kinds() {
        *tally.kinds.entry(kind).or_default() += 1;
    }
    tally.failed_scripts += u64::from(ask::script_failed(dir));
    let found = bench.compare(dir)?;
    if let Some(found) = &found {
        tally.differing += 1;
        tally.count(found);
    }
    Ok(found)
}

/// Makes a differing case small and keeps it, with both answers and a `difference.txt`.
fn shrink_and_keep(
    bench: &Harness<'_>,
    tally: &mut Tally,
    keep: &Path,
    (number, case, found): (u64, &Case, &Difference),
) -> io::Result<()> {
    bench.question(case, true)?;
    let failed = ask::script_failed(&bench.dir);
    let mut trouble = None;
    let small = shrink::shrink(case, bench.questions, &mut |case| match bench.question(case, failed) {
        Ok(difference) => difference.is_some_and(|difference| difference.group() == found.group()),
        Err(e) => {
            trouble = Some(e);
            false
        }
    });
    if let Some(e) = trouble {
        return Err(e);
    }
    // The folder that is kept holds the kernel's answer and ours to the small case; if it does not repeat,
    // the large one.
    let name = format!("{}-{}-{number}", slug(&found.group()), tally.seed);
    let place = keep.join(&name);
    let (small, difference) = match bench.question(&small, failed)? {
        Some(difference) if difference.group() == found.group() => (small, difference),
        _ => {
            bench.question(case, failed)?;
            (case.clone(), found.clone())
        }
    };
    let _ = fs::remove_dir_all(&place);
    fs::rename(&bench.dir, &place)?;
    let text = format!("{}\n\n{difference}\n\nfrom: {}\n", difference.group(), case.note);
    fs::write(place.join("difference.txt"), text)?;
    let (rows, lines) = (small.rows.len(), small.script.len());
    eprintln!("case {number}: {} ({lines} lines, {rows} rows)\n  {}", difference.group(), place.display());
    let kept = Kept { dir: place.display().to_string(), kinds: small.kinds(), number, rows, lines };
    tally.keep(found, kept);
    Ok(())
}

/// A group's name as a folder's.
fn slug(group: &str) -> String {
    let plain: String =
        group.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
    let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
    words.join("-").chars().take(60).collect()
}

/// Asks and compares folders again, as they are.
fn check(oracle: &Oracle, engine: &Engine, dirs: &[PathBuf]) -> Result<ExitCode, String> {
    let mut differing = 0;
    let work = std::env::temp_dir().join(format!("oracle-fuzz-check-{}", std::process::id()));
    for (at, dir) in dirs.iter().enumerate() {
        let at_fault = |e: io::Error| format!("{}: {e}", dir.display());
        let copy = work.join(at.to_string());
        fs::create_dir_all(&copy).map_err(at_fault)?;
        copy_question(dir, &copy).map_err(at_fault)?;
        oracle.ask(std::slice::from_ref(&copy)).map_err(at_fault)?;
        let bench = Harness { oracle: oracle.clone(), engine, dir: copy.clone(), questions: 0 };
        let verdict = if ask::answered(&copy) {
            bench.compare(&copy).map_err(at_fault)?.map_or("same".to_owned(), |difference| {
                differing += 1;
                format!("{}\n{difference}", difference.group())
            })
        } else {
            "no answer from the kernel".to_owned()
        };
        println!("{}: {verdict}", dir.display());
    }
    let _ = fs::remove_dir_all(&work);
    println!("{differing} of {} differ", dirs.len());
    Ok(ExitCode::from(u8::from(differing > 0)))
}

/// Copies the files that ask.
fn copy_question(from: &Path, to: &Path) -> io::Result<()> {
    for name in ["link", "script.tc", "schedule.csv"] {
        fs::copy(from.join(name), to.join(name))?;
    }
    for name in Release::FILES.into_iter().filter(|name| from.join(name).exists()) {
        fs::copy(from.join(name), to.join(name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_and_mistakes_named() {
        let words = |text: &str| -> Vec<String> { text.split(' ').map(str::to_owned).collect() };
        let root = Path::new("/r");
        let read = options(root, &words("--hours 0.5 --seed 7 --only htb --json")).unwrap();
        assert_eq!((read.hours, read.seed, read.only, read.json), (Some(0.5), 7, Some("htb"), true));
        let newer = options(root, &words("--linux 7.2 --tc 7.2 --only dualpi2")).unwrap();
        assert_eq!((newer.release.linux.as_str(), newer.release.tc.as_str()), ("7.2", "7.2"));
        assert!(options(root, &words("--only dualpi2")).unwrap_err().contains("needs --linux 7.2"));
        assert!(options(root, &words("--linux 6.6")).unwrap_err().contains("6.1 or 7.2"));
        assert!(options(root, &words("--only nosuch")).unwrap_err().contains("not one of pfifo"));
        assert!(options(root, &words("--hours x")).unwrap_err().contains("not a number"));
        assert!(options(root, &words("--what")).unwrap_err().contains("unknown option"));
    }

    #[test]
    fn the_kernel_agrees_with_itself() {
        let Ok(oracle) = Oracle::from_environment() else {
            eprintln!("skipped: ORACLE is not set to the oracle's `ask` script");
            return;
        };
        let dir = std::env::temp_dir().join(format!("oracle-fuzz-test-{}", std::process::id()));
        let engine = Engine::Itself(oracle.clone());
        let bench = Harness { oracle, engine: &engine, dir: dir.clone(), questions: 0 };
        for number in 0..3 {
            assert_eq!(
                bench.question(&generate::case(1, number, None, &Release::default()), true).unwrap(),
                None,
                "case {number}"
            );
        }
        let _ = fs::remove_dir_all(dir);
    }
}
