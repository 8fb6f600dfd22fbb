//! Changes switched on one by one, each with the tests that reach it.

use super::list::Mutant;
use super::rewrite::FunctionNumber;
use crate::lanes::Program;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A change that is as slow as this many unchanged runs, and `SPARE` more, is caught: tests would hang.
const SLOWER: u32 = 10;
const SPARE: Duration = Duration::from_secs(10);
/// Memory that a changed program may take, in KiB: loops without an end often fill lists.
const MAX_MEMORY_KIB: u64 = 6_000_000;
/// How often a running program is looked at.
const STEP: Duration = Duration::from_millis(2);
/// No change has this number.
const NO_CHANGE: u32 = u32::MAX - 10;

/// The outcome of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// A test failed.
    Caught,
    /// A test did not end.
    Timeout,
    /// All tests passed.
    Missed,
    /// No test reaches the function.
    Unreached,
    /// It does not compile.
    NoBuild,
    /// It cannot stand beside the original.
    NoSwitch,
}

impl Outcome {
    pub(super) fn word(self) -> &'static str {
        match self {
            Outcome::Caught => "caught",
            Outcome::Timeout => "timeout",
            Outcome::Missed => "missed",
            Outcome::Unreached => "unreached",
            Outcome::NoBuild => "no-build",
            Outcome::NoSwitch => "no-switch",
        }
    }

    /// The key of a change that a line of a result says was missed.
    pub(super) fn missed_key(line: &str) -> Option<&str> {
        let (word, rest) = line.split_once('\t')?;
        let missed = [Outcome::Missed, Outcome::Unreached].iter().any(|outcome| outcome.word() == word);
        rest.split_once('\t').map(|(_, key)| key).filter(|_| missed)
    }
}

/// A test and what it reaches.
struct Test {
    name: String,
    took: Duration,
    reached: BTreeSet<FunctionNumber>,
    /// It failed while its reach was recorded (a test that counts allocations, say): it may reach anything.
    is_unknown: bool,
}

/// A test program and its tests.
struct Suite<'p> {
    program: &'p Program,
    tests: Vec<Test>,
}

/// Tries each change.
///
/// # Errors
///
/// If a test fails without any change.
pub(super) fn try_all(
    programs: &[Program],
    mutants: &[&Mutant],
    functions: &BTreeMap<u32, FunctionNumber>,
    jobs: usize,
) -> Result<Vec<(u32, Outcome)>, String> {
    let mut suites = Vec::new();
    for program in programs {
        suites.push(suite(program)?);
    }
    suites.sort_by_key(|suite| suite.tests.iter().map(|test| test.took).sum::<Duration>());
    let tests: usize = suites.iter().map(|suite| suite.tests.len()).sum();
    println!("  {tests} tests in {} programs pass without a change", suites.len());
    let (queue, outcomes) = (Mutex::new(mutants.iter()), Mutex::new(Vec::new()));
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..jobs.max(1) {
            scope.spawn(|| {
                while let Some(mutant) = queue.lock().ok().and_then(|mut queue| queue.next()) {
                    let function = functions.get(&mutant.number).copied();
                    let outcome =
                        function.map_or(Outcome::NoSwitch, |function| try_one(&suites, mutant, function));
                    let Ok(mut outcomes) = outcomes.lock() else { return };
                    outcomes.push((mutant.number, outcome));
                    if outcomes.len() % 250 == 0 {
                        println!(
                            "  {} of {} tried, {} s",
                            outcomes.len(),
                            mutants.len(),
                            begun.elapsed().as_secs()
                        );
                    }
                }
            });
        }
    });
    outcomes.into_inner().map_err(|error| error.to_string())
}

fn try_one(suites: &[Suite<'_>], mutant: &Mutant, function: FunctionNumber) -> Outcome {
    let mut outcome = Outcome::Unreached;
    for suite in suites {
        let reaching: Vec<&Test> =
            suite.tests.iter().filter(|test| test.is_unknown || test.reached.contains(&function)).collect();
        if reaching.is_empty() {
            continue;
        }
        let names: Vec<&str> = reaching.iter().map(|test| test.name.as_str()).collect();
        let limit = SPARE + reaching.iter().map(|test| test.took).sum::<Duration>() * SLOWER;
        match run(suite.program, &names, &[("TIDEGATE_MUTANT", &mutant.number.to_string())], limit) {
            Some(true) => outcome = Outcome::Missed,
            Some(false) => return Outcome::Caught,
            None => return Outcome::Timeout,
        }
    }
    outcome
}

/// A program's tests, each run alone: with a switch that changes nothing, and with its reach recorded.
fn suite(program: &Program) -> Result<Suite<'_>, String> {
    let listed = command(program)
        .args(["--list", "--format", "terse"])
        .stderr(Stdio::null())
        .output()
        .map_err(|error| format!("{}: {error}", program.executable.display()))?;
    let text = String::from_utf8_lossy(&listed.stdout).into_owned();
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_suffix(": test")).collect();
    let limit = Duration::from_secs(600);
    if !names.is_empty()
        && run(program, &names, &[("TIDEGATE_MUTANT", &NO_CHANGE.to_string())], limit) != Some(true)
    {
        return Err(format!(
            "tests of {} fail without a change: {}",
            program.name,
            program.executable.display()
        ));
    }
    let file = program.executable.with_extension("reached");
    let tests = names.into_iter().map(|name| test(program, name, &file, limit)).collect();
    Ok(Suite { program, tests })
}

fn test(program: &Program, name: &str, file: &Path, limit: Duration) -> Test {
    // What an earlier test reached is not this one's; a file that is not there is as good.
    let _ = fs::remove_file(file);
    let begun = Instant::now();
    let passed = run(program, &[name], &[("TIDEGATE_REACHED", &file.to_string_lossy())], limit);
    let text = fs::read_to_string(file).unwrap_or_default();
    Test {
        name: name.to_owned(),
        took: begun.elapsed(),
        reached: text.lines().filter_map(|line| line.parse().ok()).collect(),
        is_unknown: passed != Some(true),
    }
}

fn command(program: &Program) -> Command {
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("ulimit -v {MAX_MEMORY_KIB}; exec \"$@\""), "sh"])
        .arg(&program.executable)
        .current_dir(&program.folder)
        .env("CARGO_MANIFEST_DIR", &program.folder)
        .stdin(Stdio::null());
    command
}

/// Whether tests pass; nothing if they do not end in time.
fn run(program: &Program, tests: &[&str], variables: &[(&str, &str)], limit: Duration) -> Option<bool> {
    let mut command = command(program);
    command.args(["--exact", "--test-threads=1", "-q"]).args(tests);
    command.envs(variables.iter().copied()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return Some(false) };
    let begun = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status.success()),
            Ok(None) if begun.elapsed() < limit => std::thread::sleep(STEP),
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return None;
            }
        }
    }
}
