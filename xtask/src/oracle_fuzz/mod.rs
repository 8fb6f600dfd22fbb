//! `cargo xtask oracle-fuzz`: random trees and traffic, the engine against a real kernel in virtual time.
//!
//! A case is made from (seed, number) alone. The oracle and `tidegate replay` both run it; departures, drops, listings in the middle
//! and at the end, filters' hits and what tc answers to changes must be identical, and every draw used up. A difference is shrunk and
//! kept as a folder that both sides can run again.

mod case;
mod draws;
mod generate;
mod judge;
mod shrink;

use case::Case;
use judge::{Judge, Verdict};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

const USAGE: &str = "usage: ORACLE=PATH/ask cargo xtask oracle-fuzz [--cases N] [--hours H] [--seed S] [--from N] [--batch N]
                   [--keep DIR] [--tidegate FILE] [--no-shrink] [--stop N] [--only N]

Random trees of the engine's kinds with random traffic, asked of the oracle and replayed by tidegate; differences are shrunk to a
small folder in --keep (default target/oracle-fuzz). Runs until --cases (default 200) or --hours are over, or --stop (default 20)
differences are found. A run with the same --keep and --seed goes on where the last one ended; --from begins elsewhere. --only runs
one case and says how it differs. Exit code: 0 no difference, 1 differences, 2 it could not run.";

struct Options {
    cases: Option<u64>,
    hours: Option<f64>,
    seed: u64,
    from: Option<u64>,
    only: Option<u64>,
    batch: usize,
    keep: PathBuf,
    tidegate: PathBuf,
    shrink: bool,
    stop: usize,
}

/// Runs the task; `words` are those after its name.
pub(crate) fn run(root: &Path, words: &[String]) -> ExitCode {
    let options = match options(root, words) {
        Ok(Some(options)) => options,
        Ok(None) => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        Err(why) => {
            eprintln!("oracle-fuzz: {why}\n{USAGE}");
            return ExitCode::from(2);
        }
    };
    match fuzz(&options) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("oracle-fuzz: {why}");
            ExitCode::from(2)
        }
    }
}

fn options(root: &Path, words: &[String]) -> Result<Option<Options>, String> {
    let mut options = Options {
        cases: None,
        hours: None,
        seed: 1,
        from: None,
        only: None,
        batch: 10,
        keep: root.join("target/oracle-fuzz"),
        tidegate: root.join("target/release/tidegate"),
        shrink: true,
        stop: 20,
    };
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        if matches!(word.as_str(), "--help" | "-h") {
            return Ok(None);
        }
        if word == "--no-shrink" {
            options.shrink = false;
            continue;
        }
        let value = rest.next().ok_or_else(|| format!("{word} wants a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word}: {value} is not a number"));
        match word.as_str() {
            "--cases" => options.cases = Some(number()?),
            "--hours" => options.hours = Some(value.parse().map_err(|_| format!("--hours: {value} is not a number"))?),
            "--seed" => options.seed = number()?,
            "--from" => options.from = Some(number()?),
            "--only" => options.only = Some(number()?),
            "--batch" => options.batch = number()?.clamp(1, 64) as usize,
            "--stop" => options.stop = number()?.max(1) as usize,
            "--keep" => options.keep = value.into(),
            "--tidegate" => options.tidegate = value.into(),
            _ => return Err(format!("no such option: {word}")),
        }
    }
    Ok(Some(options))
}

/// How many differences were found.
fn fuzz(options: &Options) -> Result<usize, String> {
    let oracle = std::env::var_os("ORACLE").ok_or("ORACLE is not set: give the path of the oracle's `ask`")?;
    let judge = Judge {
        oracle: oracle.into(),
        tidegate: options.tidegate.clone(),
        place: std::env::temp_dir().join(format!("tidegate-oracle-fuzz-{}", std::process::id())),
    };
    for (what, file) in [("ORACLE", &judge.oracle), ("--tidegate", &judge.tidegate)] {
        if !file.exists() {
            return Err(format!("{what}: there is no {}", file.display()));
        }
    }
    fs::create_dir_all(&options.keep).map_err(|error| format!("{}: {error}", options.keep.display()))?;
    let found = all(options, &judge);
    let _gone = fs::remove_dir_all(&judge.place);
    found
}

fn all(options: &Options, judge: &Judge) -> Result<usize, String> {
    let progress = options.keep.join(format!("seed-{}.next", options.seed));
    let resumed = fs::read_to_string(&progress).ok().and_then(|text| text.trim().parse().ok());
    let (first, last) = match options.only {
        Some(number) => (number, number + 1),
        None => {
            let first = options.from.or(resumed).unwrap_or(0);
            let cases = options.cases.unwrap_or(if options.hours.is_some() { u64::MAX / 2 } else { 200 });
            (first, first.saturating_add(cases))
        }
    };
    let begun = Instant::now();
    let end = options.hours.map(|hours| Duration::from_secs_f64(hours.clamp(0.0, 10_000.0) * 3600.0));
    let (mut next, mut same, mut refused, mut unanswered, mut found) = (first, 0u64, 0u64, 0u64, 0usize);
    let mut features: BTreeMap<&'static str, u64> = BTreeMap::new();
    while next < last && found < options.stop && end.is_none_or(|end| begun.elapsed() < end) {
        let numbers: Vec<u64> = (next..last.min(next + options.batch as u64)).collect();
        let cases: Vec<Case> = numbers.iter().map(|number| generate::case(options.seed, *number)).collect();
        for ((number, case), verdict) in numbers.iter().zip(&cases).zip(judge.judge(&cases)?) {
            match verdict {
                Verdict::Same => {
                    same += 1;
                    for feature in case.features() {
                        *features.entry(feature).or_default() += 1;
                    }
                }
                Verdict::Refused => refused += 1,
                Verdict::NoAnswer => unanswered += 1,
                Verdict::Differs { .. } => {
                    found += 1;
                    let folder = keep(options, judge, *number, case, verdict)?;
                    eprintln!("case {number}: kept in {}", folder.display());
                }
            }
        }
        next += numbers.len() as u64;
        if options.only.is_none() {
            fs::write(&progress, format!("{next}\n")).map_err(|error| format!("{}: {error}", progress.display()))?;
        }
        let minutes = begun.elapsed().as_secs_f64() / 60.0;
        let done = next - first;
        eprintln!(
            "cases {first}..{next}: {same} identical, {found} differ, {refused} refused by tc, {unanswered} unanswered; {:.0} a minute",
            done as f64 / minutes.max(1e-3)
        );
    }
    let covered: Vec<String> = features.iter().map(|(name, count)| format!("{name} {count}")).collect();
    println!(
        "seed {} cases {first}..{next}: {same} identical, {found} differ, {refused} refused, {unanswered} unanswered",
        options.seed
    );
    println!("in identical cases: {}", covered.join(", "));
    Ok(found)
}

/// Keeps a case as it is, then shrunk, with both sides' answers and a note.
fn keep(options: &Options, judge: &Judge, number: u64, case: &Case, verdict: Verdict) -> Result<PathBuf, String> {
    let folder = options.keep.join(format!("s{}-c{number:06}", options.seed));
    write_down(options, judge, number, case, &verdict, &folder)?;
    if options.shrink {
        let (small, verdict) = shrink::shrink(judge, case.clone(), verdict)?;
        write_down(options, judge, number, &small, &verdict, &folder)?;
    }
    Ok(folder)
}

fn write_down(
    options: &Options,
    judge: &Judge,
    number: u64,
    case: &Case,
    verdict: &Verdict,
    folder: &Path,
) -> Result<(), String> {
    // Once more alone, so that the answers of both lie in its folder.
    judge.judge(std::slice::from_ref(case))?;
    let io = |error: std::io::Error| format!("{}: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(io)?;
    }
    copy(&judge.folder(0), folder).map_err(io)?;
    let ours = judge.place.join("ours").join("case00");
    if ours.exists() {
        copy(&ours, &folder.join("ours")).map_err(io)?;
    }
    let Verdict::Differs { file, detail } = verdict else { return Ok(()) };
    let (rows, lines) = (case.rows.len(), case.script.len());
    eprintln!("case {number} ({rows} rows, {lines} lines): {file} differs at {detail}");
    let note = format!(
        "{file} differs at {detail}\nmade by: cargo xtask oracle-fuzz --seed {} --only {number}\n",
        options.seed
    );
    fs::write(folder.join("note.txt"), note).map_err(io)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_made_from_seed_and_number_alone() {
        let (a, b, c) = (generate::case(7, 3), generate::case(7, 3), generate::case(7, 4));
        assert_eq!((&a.link, &a.script, &a.rows), (&b.link, &b.script, &b.rows));
        assert_ne!(a.script, c.script);
    }

    /// Packets, looks and changes.
    const MOST_ROWS: usize = 720;

    #[test]
    fn cases_are_in_order_and_not_too_long() {
        let mut features = std::collections::BTreeSet::new();
        for number in 0..300 {
            let case = generate::case(1, number);
            let times: Vec<u64> =
                case.rows.iter().filter_map(|row| row.split(',').next().and_then(|time| time.parse().ok())).collect();
            assert_eq!(times.len(), case.rows.len());
            assert!(times.is_sorted() && times.len() < MOST_ROWS, "case {number}: {}", times.len());
            assert!(case.script[0].contains(" root "), "{}", case.script[0]);
            features.extend(case.features());
        }
        assert_eq!(features.len(), 23, "{features:?}");
    }
}
