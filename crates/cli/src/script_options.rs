//! What every command that runs scripts lets its user say about the sandbox.

use std::time::Duration;

use crate::values::duration_or_seconds;
use tidegate_capture::DEFAULT_TIMEOUT;
use tidegate_loader::Sandbox;

/// The longest that a script may run.
const MAX_TIMEOUT: Duration = Duration::from_secs(86_400);

/// How scripts are run.
#[derive(clap::Args, Clone, Copy, Debug, PartialEq, Eq)]
#[command(next_help_heading = "Sandbox")]
pub struct ScriptOptions {
    /// How long a script may run in all; a number alone is seconds. What is made of its commands afterwards
    /// (checks, simulations) takes as long as it takes.
    #[arg(long, value_name = "TIME", value_parser = time, default_value = "60s")]
    pub timeout: Duration,
    /// Hide home directories and the environment from scripts.
    #[arg(long)]
    pub private: bool,
}

impl Default for ScriptOptions {
    fn default() -> Self {
        Self { timeout: DEFAULT_TIMEOUT, private: false }
    }
}

impl From<ScriptOptions> for Sandbox {
    fn from(ScriptOptions { timeout, private }: ScriptOptions) -> Sandbox {
        Sandbox { timeout, private }
    }
}

fn time(text: &str) -> Result<Duration, String> {
    match duration_or_seconds(text)? {
        time if time > MAX_TIMEOUT => Err("must be at most a day (24h)".into()),
        time => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_runs_for_a_day_at_most() {
        assert_eq!(
            ["2", "2m", "24h"].map(time),
            [2, 120, 86_400].map(|seconds| Ok(Duration::from_secs(seconds)))
        );
        assert!(["0", "soon", "86401", "25h"].map(time).iter().all(Result::is_err));
    }
}
