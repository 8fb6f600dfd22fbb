//! What every command that runs scripts lets its user say about the sandbox.

use std::time::Duration;

use tidegate_lang::units;

use super::DEFAULT_TIMEOUT;

/// The longest that a script may run.
const MAX_TIMEOUT: Duration = Duration::from_secs(86_400);

/// How scripts are run.
#[derive(clap::Args, Clone, Copy, Debug, PartialEq, Eq)]
#[command(next_help_heading = "Sandbox")]
pub struct ScriptOptions {
    /// How long a script may run in all; a number alone is seconds.
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

fn time(text: &str) -> Result<Duration, String> {
    // A bare number is seconds here, not tc's microseconds.
    let time = match text.parse::<u64>() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => units::parse_time(text).map(|us| Duration::from_micros(us.into())),
    };
    match time {
        None => Err("not a time; write 30s, 500ms".into()),
        Some(time) if time.is_zero() => Err("must be longer than nothing".into()),
        Some(time) if time > MAX_TIMEOUT => Err("must be at most a day (86400)".into()),
        Some(time) => Ok(time),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_a_unit_or_is_seconds() {
        assert_eq!(time("2"), Ok(Duration::from_secs(2)));
        assert_eq!(time("300ms"), Ok(Duration::from_millis(300)));
        assert_eq!(time("9999"), Ok(Duration::from_secs(9999)));
        assert!(["0", "soon", "86401", "99999999999999999999"].map(time).iter().all(Result::is_err));
    }
}
