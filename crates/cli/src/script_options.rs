//! The options of the sandbox, in every command that runs scripts.

use std::time::Duration;

use crate::values::duration;
use tidegate_capture::{DEFAULT_TIMEOUT, MAX_ANSWERS, check_stub};
use tidegate_capture::{Exit, ScriptRun, Trouble};
use tidegate_loader::{LoadedPolicy, SandboxOptions};
use tidegate_packet::Nanos;
use tidegate_scenario::shell::exact_time;
use tidegate_text::shell_word;

/// The longest that a script may run.
const MAX_TIMEOUT: Duration = Duration::from_secs(86_400);

/// How scripts are run.
#[derive(clap::Args, Clone, Debug, PartialEq, Eq)]
pub struct ScriptOptions {
    /// The longest that a script may run
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "60s", help_heading = "Sandbox")]
    pub timeout: Duration,
    /// Hide home directories and the environment from scripts
    #[arg(long, help_heading = "Sandbox")]
    pub private: bool,
    /// Look at what a script configures in this network namespace (`ip netns`)
    #[arg(long, value_name = "NAME", help_heading = "Sandbox")]
    pub netns: Option<String>,
    /// A line that the script reads from its standard input; several are given in their order
    #[arg(long, value_name = "TEXT", value_parser = answer, help_heading = "Sandbox")]
    pub answer: Vec<String>,
    /// Do not run this program: each call of it succeeds and prints nothing; may be repeated
    #[arg(long, value_name = "PROGRAM", value_parser = stub, help_heading = "Sandbox")]
    pub stub: Vec<String>,
}

impl Default for ScriptOptions {
    fn default() -> Self {
        Self { timeout: DEFAULT_TIMEOUT, private: false, netns: None, answer: Vec::new(), stub: Vec::new() }
    }
}

impl ScriptOptions {
    /// What a command line repeats them with.
    pub(crate) fn words(&self) -> String {
        let mut line = String::new();
        if self.timeout != DEFAULT_TIMEOUT {
            let nanos = u64::try_from(self.timeout.as_nanos()).unwrap_or(u64::MAX);
            line = format!(" --timeout {}", exact_time(Nanos(nanos)));
        }
        if self.private {
            line += " --private";
        }
        line + &self.choices()
    }

    /// The part of [`ScriptOptions::words`] that is about the script itself.
    pub(crate) fn choices(&self) -> String {
        let netns = self.netns.iter().map(|name| format!(" --netns {}", shell_word(name)));
        let answers = self.answer.iter().map(|text| format!(" --answer={}", shell_word(text)));
        let stubs = self.stub.iter().map(|name| format!(" --stub {}", shell_word(name)));
        netns.chain(answers).chain(stubs).collect()
    }
}

impl From<&ScriptOptions> for SandboxOptions {
    fn from(ScriptOptions { timeout, private, netns, answer, stub }: &ScriptOptions) -> SandboxOptions {
        let (netns, answers, stubs) = (netns.clone(), answer.clone(), stub.clone());
        SandboxOptions { timeout: *timeout, private: *private, netns, answers, stubs }
    }
}

/// Lines of a script's standard error that are shown, and letters of each.
const SHOWN_LINES: usize = 12;
const SHOWN_LETTERS: usize = 200;

/// Shows what scripts that failed wrote to standard error, with a hint at their arguments.
pub(crate) fn show_errors(outcomes: &[ScriptRun]) {
    outcomes.iter().filter_map(errors).for_each(|shown| eprint!("{shown}"));
}

/// Refuses half a policy: what a script did before it was cut is not what it configures.
///
/// # Errors
/// A script did not come to its end.
pub(crate) fn must_have_ended(taken: &LoadedPolicy) -> anyhow::Result<()> {
    anyhow::ensure!(taken.ended(), "the script did not come to its end, so what it configures is not known");
    Ok(())
}

/// What a script wrote to standard error, if it failed and wrote something.
fn errors(outcome: &ScriptRun) -> Option<String> {
    // What a refused command wrote is reported with its place.
    let is_refused = outcome.calls.iter().any(|recorded| recorded.code != 0 && !recorded.silenced);
    let has_failed = !is_refused && !matches!(outcome.exit, Exit::Code(0));
    let text = String::from_utf8_lossy(&outcome.stderr);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    if !has_failed || lines.is_empty() {
        return None;
    }
    let mut shown = String::from("standard error of the script:\n");
    for line in lines.iter().take(SHOWN_LINES) {
        let cut: String = line.chars().take(SHOWN_LETTERS).collect();
        let more = if cut.len() < line.len() { "…" } else { "" };
        shown += &format!("  | {cut}{more}\n");
    }
    if lines.len() > SHOWN_LINES {
        shown += &format!("  | … {} lines more\n", lines.len() - SHOWN_LINES);
    }
    let is_said =
        outcome.missing_arguments.is_some() || outcome.troubles.iter().any(Trouble::asks_for_arguments);
    if text.to_lowercase().contains("usage") && !is_said {
        shown += "  a script gets its arguments behind `--`: FILE -- ARGS\n";
    }
    Some(shown)
}

fn stub(name: &str) -> Result<String, String> {
    check_stub(name).map(|()| name.to_owned())
}

fn answer(text: &str) -> Result<String, String> {
    match text.len() < MAX_ANSWERS && !text.contains(['\n', '\0']) {
        true => Ok(text.to_owned()),
        false => Err(format!("must be one line of less than {MAX_ANSWERS} bytes")),
    }
}

fn time(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        time if time > MAX_TIMEOUT => Err("must be at most a day (24h)".into()),
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(exit: Exit, stderr: &str) -> ScriptRun {
        ScriptRun {
            exit,
            calls: Vec::new(),
            stdout: Vec::new(),
            stderr: stderr.as_bytes().to_vec(),
            devices: Vec::new(),
            notes: Vec::new(),
            troubles: Vec::new(),
            unfinished: None,
            missing_arguments: None,
            missing_files: None,
            unanswered: None,
            stubbed: Vec::new(),
            not_run: None,
            namespaces: None,
            stand_in: None,
            remarks: Vec::new(),
            arguments: 0,
            question: None,
            cut_short: false,
        }
    }

    #[test]
    fn what_a_failed_script_wrote_is_shown_in_part() {
        assert_eq!(errors(&outcome(Exit::Code(0), "a warning")), None);
        assert_eq!(errors(&outcome(Exit::Code(1), " \n")), None);
        assert_eq!(
            errors(&outcome(Exit::Code(1), "Usage: gw.sh start")).as_deref(),
            Some(
                "standard error of the script:\n  | Usage: gw.sh start\n  a script gets its arguments behind \
                 `--`: FILE -- ARGS\n"
            )
        );
        let long = errors(&outcome(Exit::Code(2), &"x\n".repeat(30))).expect("it wrote something");
        assert!(long.ends_with("  | x\n  | … 18 lines more\n"), "{long}");
        let wide = errors(&outcome(Exit::Code(2), &"y".repeat(500))).expect("it wrote something");
        assert!(wide.lines().all(|line| line.chars().count() < 210), "{wide}");
    }

    #[test]
    fn a_script_runs_for_a_day_at_most() {
        assert_eq!(
            ["2s", "2min", "24h"].map(time),
            [2, 120, 86_400].map(|seconds| Ok(Duration::from_secs(seconds)))
        );
        assert!(["0", "2", "soon", "86401s", "25h"].map(time).iter().all(Result::is_err));
    }
}
