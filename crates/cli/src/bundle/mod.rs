//! `tidegate bundle`: a scenario, its results and what repeats them in a directory; and whether such a
//! directory is still what it was, and gives the same results.

mod options;

pub use options::Options;

use crate::exit::CliExit;
use crate::script_options::ScriptOptions;
use crate::sweep::results::{pair, wanted};
use anyhow::Context;
use std::path::Path;
use std::process::ExitCode;
use tidegate_scenario::model::Scenario;
use tidegate_scenario::shell::{exact_time, quoted_path};
use tidegate_sessions::bundle::{
    self, BundleFault, BundleJob, BundlePlot, CheckedBundle, Citation, Outcome, ProgramRun, Provenance,
    option,
};
use tidegate_sessions::simulated::ScenarioFiles;
use tidegate_sessions::sweep::SweepJob;
use tidegate_sweep::SweepQuery;

/// This program's own file, also where it was replaced since it was started.
const PROGRAM: &str = "/proc/self/exe";

/// Plays `tidegate bundle`.
pub fn command(options: &Options) -> ExitCode {
    let done = match &options.check {
        Some(dir) => check(dir, options),
        None => make(options),
    };
    done.unwrap_or_else(|error| {
        eprintln!("tidegate bundle: {error:#}");
        CliExit::of(&error).into()
    })
}

fn program(options: &Options) -> ProgramRun<'_> {
    ProgramRun { path: Path::new(PROGRAM), jobs: options.jobs, quiet: crate::output::is_quiet() }
}

fn make(options: &Options) -> anyhow::Result<ExitCode> {
    let (Some(path), Some(target)) = (&options.file, &options.output) else {
        anyhow::bail!("name a scenario, and a directory with -o");
    };
    // Ctrl-C ends the command that runs, whose exit code says so.
    tidegate_sys::interrupt::notice();
    let text = crate::input::scenario(path).with_context(|| path.display().to_string())?;
    let file = options.design.planned(path, &text)?;
    let cases = file.plan.cases()?;
    let narrow = |scenario: &mut Scenario| file.narrow(scenario);
    let disk = ScenarioFiles { sandbox: (&options.sandbox).into() };
    let plots: Vec<BundlePlot> =
        options.plot.iter().map(|what| plot(options, what)).collect::<Result<_, _>>().map_err(refused)?;
    let citation = Citation { title: title(options, path, &text, &disk), authors: options.author.clone() };
    let job = BundleJob {
        sweep: SweepJob {
            path,
            text: &text,
            cases: &cases,
            narrow: &narrow,
            figures: &file.figures,
            shard: (1, 1),
            workers: options.jobs.map(usize::from),
        },
        disk,
        cases: &case_words(options).map_err(refused)?,
        design: &design_words(options).map_err(refused)?,
        plots: &plots,
        citation: &citation,
        target,
        program: program(options),
    };
    match bundle::make(&job)? {
        Outcome::Done(provenance) => {
            if options.json {
                crate::output::text(&provenance.json());
            } else {
                crate::output::report(&made(target, &provenance, &citation));
            }
            Ok(CliExit::Yes.into())
        }
        Outcome::Ended { command, code } => {
            let mut unfinished = target.clone().into_os_string();
            unfinished.push(".unfinished");
            let kept = format!("what is done is kept in {}", quoted_path(Path::new(&unfinished)));
            Ok(ended(&command, code, &format!("; the same command goes on with the rest ({kept})")))
        }
    }
}

fn refused(why: String) -> anyhow::Error {
    anyhow::anyhow!(why)
}

/// A command of the bundle did not end well, and said why.
fn ended(command: &str, code: Option<i32>, goes_on: &str) -> ExitCode {
    match code.and_then(|code| u8::try_from(code).ok()) {
        None | Some(3) => {
            eprintln!("tidegate bundle: stopped in `{command}`{goes_on}");
            CliExit::Partial.into()
        }
        Some(code) => {
            eprintln!("tidegate bundle: `{command}` ended with exit code {code}{goes_on}");
            code.into()
        }
    }
}

/// The title: as given, that of the scenario, or its file's name.
fn title(options: &Options, path: &Path, text: &str, disk: &ScenarioFiles) -> String {
    let of_scenario = || tidegate_scenario::parse(path, text, disk).ok().map(|scenario| scenario.title);
    let given = options.title.clone().or_else(of_scenario).filter(|title| !title.trim().is_empty());
    given.unwrap_or_else(|| path.file_stem().unwrap_or_default().to_string_lossy().into_owned())
}

/// Options with values as words.
fn words(all: Vec<(&'static str, Option<String>)>) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    for (flag, value) in all {
        match value {
            Some(value) => words.extend(option(flag, &value)?),
            None => words.push(flag.to_owned()),
        }
    }
    Ok(words)
}

fn design_words(options: &Options) -> Result<Vec<String>, String> {
    words(options.design.varied())
}

/// What `tidegate sweep` and `sim` both take.
fn case_words(options: &Options) -> Result<Vec<String>, String> {
    let cases = &options.design.cases;
    let mut all: Vec<(&'static str, Option<String>)> = Vec::new();
    all.extend(cases.policy.iter().map(|name| ("--policy", Some(name.clone()))));
    all.extend(cases.load.iter().map(|name| ("--load", Some(name.clone()))));
    all.extend(cases.seed.map(|seed| ("--seed", Some(seed.to_string()))));
    all.extend(cases.repeats.map(|repeats| ("--repeats", Some(repeats.to_string()))));
    all.extend(cases.duration.map(|time| ("--duration", Some(exact_time(time)))));
    if options.sandbox.timeout != ScriptOptions::default().timeout {
        let nanos = u64::try_from(options.sandbox.timeout.as_nanos()).unwrap_or(u64::MAX);
        all.push(("--timeout", Some(exact_time(tidegate_packet::Nanos(nanos)))));
    }
    all.extend(options.sandbox.private.then_some(("--private", None)));
    words(all)
}

fn plot(options: &Options, what: &str) -> Result<BundlePlot, String> {
    let only = options.only_drawn.iter().map(|one| pair(one)).collect::<Result<_, _>>()?;
    Ok(BundlePlot {
        name: what.to_owned(),
        words: plot_words(options, what)?,
        wanted: wanted(what)?,
        query: SweepQuery { only, by: options.by.clone(), ..SweepQuery::default() },
    })
}

fn plot_words(options: &Options, what: &str) -> Result<Vec<String>, String> {
    let mut all = vec![("--plot", Some(what.to_owned()))];
    all.extend((!options.by.is_empty()).then(|| ("--by", Some(options.by.join(",")))));
    all.extend(options.only_drawn.iter().map(|one| ("--where", Some(one.clone()))));
    all.push(("--width", Some(options.width.clone())));
    words(all)
}

/// What was made, and what can be done with it.
fn made(target: &Path, provenance: &Provenance, citation: &Citation) -> String {
    let also = match provenance.inputs.len().saturating_sub(1) {
        0 => String::new(),
        1 => " and a file that it reads".to_owned(),
        more => format!(" and {more} files that it reads"),
    };
    let of = |count: usize, thing: &str| format!("{count} {thing}{}", if count == 1 { "" } else { "s" });
    let (runs, seeds) = (usize::try_from(provenance.runs).unwrap_or(usize::MAX), provenance.seeds.len());
    let mut out = format!(
        "{} has the scenario{also}, and {} of {} with {}\n",
        target.display(),
        of(provenance.results.len(), "result"),
        of(runs, "run"),
        of(seeds, "seed"),
    );
    if provenance.commands.iter().any(|command| command.exit != 0) {
        out.push_str("An assertion of the scenario fails, as its page says\n");
    }
    if !provenance.outside.is_empty() {
        let names: Vec<&str> = provenance.outside.iter().map(|file| file.path.as_str()).collect();
        out.push_str(&format!(
            "Scripts name, or tidegate reads, files that are not in it: {}. Where results depend on them, they are \
            the same only where these files are\n",
            names.join(", ")
        ));
    }
    if citation.authors.is_empty() {
        out.push_str("CITATION.cff names no author: --author 'Family, Given' does\n");
    }
    let path = quoted_path(target);
    out.push_str(&format!("\nCheck it, and do everything again: tidegate bundle --check {path}\n"));
    out
}

fn check(dir: &Path, options: &Options) -> anyhow::Result<ExitCode> {
    let given = words(options.design.varied()).map_err(refused)?;
    anyhow::ensure!(
        given.is_empty()
            && case_words(options).map_err(refused)?.is_empty()
            && options.plot.is_empty()
            && options.author.is_empty()
            && options.title.is_none(),
        "--check takes a bundle as it is: of the other options it knows --sums, --jobs and --json"
    );
    tidegate_sys::interrupt::notice();
    match bundle::check(dir, &program(options), !options.sums)? {
        Outcome::Ended { command, code } => Ok(ended(&command, code, "")),
        Outcome::Done(checked) => {
            if options.json {
                crate::output::text(&checked.check.json());
            } else {
                crate::output::report(&found(dir, &checked));
            }
            if let Some(kept) = &checked.kept {
                eprintln!("tidegate bundle: the new results are in {}", kept.display());
            }
            Ok(if checked.check.faults.is_empty() { CliExit::Yes } else { CliExit::No }.into())
        }
    }
}

/// What a check found.
fn found(dir: &Path, CheckedBundle { check, .. }: &CheckedBundle) -> String {
    let shown = dir.display();
    let mut out = String::new();
    for (name, fault) in &check.faults {
        let why = match fault {
            BundleFault::Changed => "it changed since the bundle was made",
            BundleFault::Missing => "it is listed in SHA256SUMS, and not there",
            BundleFault::Added => "it is not listed in SHA256SUMS",
            BundleFault::Differs => "made again, it is another result",
            BundleFault::NotWritten => "it was not made again",
            BundleFault::NotAsStated => {
                "provenance.json has another SHA-256 or length of it, or does not name it"
            }
            BundleFault::NotListed => "provenance.json names it, and SHA256SUMS does not",
            BundleFault::OtherRuns => "its scenario, sweep, runs or seeds are not those of the files",
        };
        out.push_str(&format!("{name}: {why}\n"));
    }
    let of = |count: u64| format!("{count} file{}", if count == 1 { "" } else { "s" });
    let is_of_files = |fault: &BundleFault| !matches!(fault, BundleFault::Differs | BundleFault::NotWritten);
    let files = check.faults.iter().filter(|(_, fault)| is_of_files(fault)).count() as u64;
    match (files, check.results) {
        (0, None) => out.push_str(&format!(
            "{shown}: the {} listed are as they were; nothing was run\n",
            of(check.files)
        )),
        (0, Some(results)) => {
            let differ = check.faults.len() as u64;
            out.push_str(&format!("{shown}: the {} listed are as they were\n", of(check.files)));
            out.push_str(&match differ {
                0 => format!("{} made again: the same to the byte\n", results_of(results)),
                _ => format!("{} made again: {differ} not the same\n", results_of(results)),
            });
        }
        (some, _) => {
            let of = format!("{some} fault{}", if some == 1 { "" } else { "s" });
            out.push_str(&format!("{shown}: {of}; nothing was run\n"));
        }
    }
    if !check.same_program {
        out.push_str(&format!(
            "It was made by tidegate {}, in another build than this one ({})\n",
            check.version,
            env!("CARGO_PKG_VERSION")
        ));
    }
    out
}

fn results_of(count: u64) -> String {
    format!("{count} result{}", if count == 1 { "" } else { "s" })
}
