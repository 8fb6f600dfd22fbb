//! What every command that runs scripts lets its user say about the sandbox.

use std::time::Duration;

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
    // Not as tc reads it: there a bare number is microseconds, and 5000 s are 705 s.
    let (number, scale) = [("us", 1e-6), ("ms", 1e-3), ("s", 1.0)]
        .iter()
        .find_map(|(unit, scale)| Some((text.strip_suffix(unit)?, *scale)))
        .unwrap_or((text, 1.0));
    let seconds = number.parse::<f64>().ok().filter(|number| number.is_finite() && *number >= 0.0);
    match seconds.and_then(|number| Duration::try_from_secs_f64(number * scale).ok()) {
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
        assert_eq!(
            ["9999", "5000s", "1.5s"].map(time),
            [9_999_000, 5_000_000, 1_500].map(|ms| Ok(Duration::from_millis(ms)))
        );
        assert_eq!(time("60000000us"), Ok(Duration::from_secs(60)));
        assert!(
            ["0", "soon", "-1", "inf", "nan", "86401", "99999999999999999999"].map(time).iter().all(Result::is_err)
        );
    }
}
