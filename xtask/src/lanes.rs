//! Runs the test programs that one build made: those that wait by the real clock in a lane of their own,
//! beside those that compute.
//!
//! Half of the time of a test run is spent waiting: measurements by the real clock, hosts in namespaces.
//! These run one after another at normal priority; what computes runs beside them at the lowest, so that it
//! takes only what they leave. Each program's output is printed whole when it ends.

use serde_json::Value;
use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::Instant;

/// Test programs that measure or wait by the real clock.
const BY_THE_CLOCK: &[&str] = &[
    "attacks",
    "crash",
    "daemon",
    "doctor",
    "doors",
    "estimates",
    "experiment",
    "foreign",
    "lab",
    "live",
    "loopback",
    "loss",
    "measure",
    "ping",
    "quick",
    "watch",
];

/// A test program.
pub(crate) struct Program {
    /// Its target's name.
    pub(crate) name: String,
    /// Where its crate stands: tests look for their data from there.
    pub(crate) folder: PathBuf,
    pub(crate) executable: PathBuf,
}

/// A test program that failed.
struct Failure {
    label: String,
    /// What it printed of its failing tests, or why it could not run.
    report: String,
}

/// Runs what `cargo test --no-run --message-format=json` listed in a file.
pub(crate) fn run(words: &[String]) -> ExitCode {
    let [file] = words else {
        eprintln!(
            "usage: cargo xtask tests FILE   (what `cargo test --no-run --message-format=json` printed)"
        );
        return ExitCode::from(2);
    };
    let programs = match fs::read_to_string(file) {
        Ok(text) => programs(&text),
        Err(error) => {
            eprintln!("xtask: {file}: {error}");
            return ExitCode::from(2);
        }
    };
    if programs.is_empty() {
        eprintln!("xtask: {file} names no test program");
        return ExitCode::from(2);
    }
    let count = programs.len();
    let is_slow = |program: &Program| BY_THE_CLOCK.contains(&program.name.as_str());
    let (clock, compute): (VecDeque<Program>, VecDeque<Program>) = programs.into_iter().partition(is_slow);
    let failed: Mutex<Vec<Failure>> = Mutex::default();
    std::thread::scope(|scope| {
        scope.spawn(|| lane(clock, 0, &failed));
        scope.spawn(|| lane(compute, 19, &failed));
    });
    let failed = failed.into_inner().unwrap_or_default();
    if failed.is_empty() {
        println!("{count} test programs passed");
        return ExitCode::SUCCESS;
    }
    // At the very end, for those who see only that.
    for failure in &failed {
        println!("failures: {}\n{}", failure.label, failure.report);
    }
    let labels: Vec<&str> = failed.iter().map(|failure| failure.label.as_str()).collect();
    println!("{} of {count} test programs failed: {}", failed.len(), labels.join(", "));
    ExitCode::FAILURE
}

/// The test programs that cargo's messages name.
pub(crate) fn programs(messages: &str) -> Vec<Program> {
    let artifacts = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let tests = artifacts.filter(|message| {
        let is_bench = message["target"]["kind"]
            .as_array()
            .is_some_and(|kinds| kinds.iter().any(|kind| kind == "bench"));
        message["reason"] == "compiler-artifact" && message["profile"]["test"] == true && !is_bench
    });
    let program = |message: Value| {
        let manifest = Path::new(message["manifest_path"].as_str()?);
        Some(Program {
            name: message["target"]["name"].as_str()?.to_owned(),
            folder: manifest.parent()?.to_owned(),
            executable: message["executable"].as_str()?.into(),
        })
    };
    tests.filter_map(program).collect()
}

/// Runs programs one after another at a priority.
fn lane(mut programs: VecDeque<Program>, nice: u8, failed: &Mutex<Vec<Failure>>) {
    while let Some(program) = programs.pop_front() {
        let begun = Instant::now();
        let label = format!("{} of {}", program.name, program.folder.display());
        println!("{label}: begins");
        let output = Command::new("nice")
            .args(["-n", &nice.to_string()])
            .arg(&program.executable)
            .arg("--show-output")
            .current_dir(&program.folder)
            .env("CARGO_MANIFEST_DIR", &program.folder)
            .stdin(Stdio::null())
            .output();
        let mut failed = failed.lock().expect("no lane panics");
        match output {
            Ok(output) => {
                println!("     Running {label}");
                let printed = String::from_utf8_lossy(&output.stdout);
                print!("{printed}");
                eprint!("{}", String::from_utf8_lossy(&output.stderr));
                println!("{label}: {:.0} s", begun.elapsed().as_secs_f64());
                if !output.status.success() {
                    println!("{label}: {}", output.status);
                    let report = format!("{}{}", failures(&printed), output.status);
                    failed.push(Failure { label, report });
                }
            }
            Err(error) => {
                println!("{label}: {error}");
                failed.push(Failure { label, report: error.to_string() });
            }
        }
    }
}

/// What the standard harness prints behind its line `failures:`; all of it where there is no such line,
/// as when the program was killed.
fn failures(printed: &str) -> &str {
    printed.split_once("\nfailures:\n").map_or(printed, |(_, failures)| failures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_stand_behind_their_line() {
        assert_eq!(failures("test a ... FAILED\n\nfailures:\n\n---- a"), "\n---- a");
        assert_eq!(failures("test a ... "), "test a ... ");
    }

    #[test]
    fn test_programs_are_those_of_tests() {
        let line = |kind: &str, test: bool, reason: &str| {
            format!(
                r#"{{"reason":"{reason}","manifest_path":"/x/crates/a/Cargo.toml","target":{{"name":"n","kind":["{kind}"]}},"profile":{{"test":{test}}},"executable":"/x/t"}}"#
            )
        };
        let messages = [
            line("test", true, "compiler-artifact"),
            line("lib", true, "compiler-artifact"),
            line("bench", true, "compiler-artifact"),
            line("bin", false, "compiler-artifact"),
            line("test", true, "build-finished"),
            "no message".into(),
        ];
        let found = programs(&messages.join("\n"));
        let found: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.folder.to_str())).collect();
        assert_eq!(found, [("n", Some("/x/crates/a")); 2]);
    }
}
