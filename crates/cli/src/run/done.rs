//! How a run ends.

use tidegate_capture::{Exit, ScriptRun};

/// The exit codes that are ours and not the script's, as `env(1)` and `timeout(1)` have them.
const TIMED_OUT: u8 = 124;
pub(super) const NO_SANDBOX: u8 = 125;

/// The script's own code: of several runs the first that is not 0.
pub(super) fn code(outcomes: &[ScriptRun]) -> u8 {
    let one = |outcome: &ScriptRun| match &outcome.exit {
        Exit::Code(code) => *code,
        Exit::Signal(signal) => 128_u8.saturating_add(*signal),
        Exit::TimedOut { .. } => TIMED_OUT,
        Exit::Crowded { .. } | Exit::Exhausted { .. } | Exit::Lost(_) => NO_SANDBOX,
    };
    outcomes.iter().map(one).find(|code| *code != 0).unwrap_or(0)
}
