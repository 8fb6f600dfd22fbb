//! What a test run told: `cargo test --workspace -- --show-output`, read line by line.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// What a test run told.
#[derive(Default)]
pub(crate) struct TestResults {
    /// Rows that tests printed, `PREFIX: A | B | …`, each with the test whose output it is in.
    pub(crate) rows: Vec<(Vec<String>, String)>,
    /// Tests that passed, without their modules.
    pub(crate) passed: BTreeSet<String>,
    /// Some test was skipped.
    pub(crate) skipped: bool,
}

/// Reads the output for rows of this prefix.
pub(crate) fn read(output: &str, prefix: &str) -> TestResults {
    let mut results = TestResults::default();
    let mut test = String::new();
    for line in output.lines() {
        if let Some(name) = line.strip_prefix("---- ").and_then(|rest| rest.strip_suffix(" stdout ----")) {
            test = short(name).to_owned();
        } else if let Some(row) = line.strip_prefix(prefix).and_then(|rest| rest.strip_prefix(": ")) {
            results.rows.push((row.split(" | ").map(str::to_owned).collect(), test.clone()));
        } else if let Some(name) = line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... ok")) {
            results.passed.insert(short(name).to_owned());
        } else if line.contains("SKIPPED:") {
            results.skipped = true;
        }
    }
    results
}

/// A test's name without its modules.
fn short(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

/// Holds a page against the one there is; with TIDEGATE_BLESS set it writes it.
pub(crate) fn settle(path: &Path, page: &str, task: &str, summary: &str) -> ExitCode {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        return match fs::write(path, page) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(task, &format!("{}: {error}", path.display())),
        };
    }
    let old = fs::read_to_string(path).unwrap_or_default();
    if old != page {
        // A whole run of the tests is behind this: the lines must be in its output.
        const SHOWN: usize = 10;
        let not_in = |text: &str, other: &str, sign: char| {
            let lines = text.lines().filter(|line| !other.lines().any(|one| one == *line)).take(SHOWN);
            lines.map(|line| format!("\n{sign} {line}")).collect::<String>()
        };
        let differs = not_in(&old, page, '-') + &not_in(page, &old, '+');
        return fail(
            task,
            &format!(
                "docs/{name} is not what these tests tell; `TIDEGATE_BLESS=1 cargo xtask {task} FILE` \
                writes it{differs}"
            ),
        );
    }
    println!("docs/{name}: {summary}");
    ExitCode::SUCCESS
}

pub(crate) fn fail(task: &str, why: &str) -> ExitCode {
    eprintln!("xtask {task}: {why}");
    ExitCode::FAILURE
}
