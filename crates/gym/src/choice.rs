//! Controllers by their names.

use crate::case::GymCase;
use std::fmt;
use std::ops::RangeInclusive;
use tidegate_control::{
    CakeAutorate, CakeAutorateSettings, FixedRates, KnownCapacity, LearnedLimits, LearningController,
    LearnsLimits, OwnController, OwnSettings, PerDirection, PidController, PidSettings, RateController,
    RateLimits, SqmAutorate, SqmAutorateSettings,
};

/// A controller that a user chose.
#[derive(Clone, Debug, PartialEq)]
pub enum ControllerChoice {
    /// tidegate's own.
    Own,
    /// tidegate's own with this aim, see [`OwnSettings::aiming`].
    OwnAiming(f64),
    /// tidegate's own without knowing the line's limits: it finds them by observation, as live.
    OwnLearning,
    /// A PID controller of the queueing delay.
    Pid,
    /// A program in another language, by its path: it speaks the line protocol of [`crate::ProgramCall`].
    Program(String),
    /// cake-autorate's algorithm; with the text of a configuration, if there is one.
    CakeAutorate(Option<String>),
    /// sqm-autorate's algorithm.
    SqmAutorate,
    /// A share of the line's mean rate, never changed.
    Fixed(f64),
    /// The yardstick that knows the line.
    Known,
}

/// The share of a known capacity that the yardstick sets: the rest is for what the shaper lets through in a
/// burst.
const KNOWN_SHARE: f64 = 0.97;

impl ControllerChoice {
    /// Their names, for an error's remedy.
    pub const NAMES: &'static str = "tidegate, tidegate:AIM, tidegate:learning, cake-autorate, sqm-autorate, \
         pid, program:PATH, fixed:SHARE, known";
    /// The names of those that can run live: no program, and not the yardstick.
    pub const LIVE_NAMES: &'static str =
        "tidegate, tidegate:AIM, cake-autorate, sqm-autorate, pid, fixed:SHARE";
    /// The shares that [`ControllerChoice::Fixed`] takes.
    pub const SHARES: RangeInclusive<f64> = 0.01..=100.0;

    /// The one of that name, for live use.
    ///
    /// # Errors
    /// A name that is none; a program; the yardstick, which knows the line's capacity.
    pub fn named_live(name: &str) -> Result<ControllerChoice, String> {
        let why = match ControllerChoice::read(name, ControllerChoice::LIVE_NAMES)? {
            ControllerChoice::Known => {
                "the controller `known` knows the line's capacity, which is not known live"
            }
            ControllerChoice::OwnLearning => "live `tidegate` finds the limits that are not given",
            ControllerChoice::Program(_) => "programs can be tried in `tidegate gym`, not run live",
            other => return Ok(other),
        };
        Err(format!("{why}; there are {}", ControllerChoice::LIVE_NAMES))
    }

    /// The one of that name.
    ///
    /// # Errors
    /// A name that is none.
    pub fn named(name: &str) -> Result<ControllerChoice, String> {
        ControllerChoice::read(name, ControllerChoice::NAMES)
    }

    /// The one of that name, with the names that there are for an error's remedy.
    fn read(name: &str, names: &str) -> Result<ControllerChoice, String> {
        match name {
            "tidegate" => Ok(ControllerChoice::Own),
            "cake-autorate" => Ok(ControllerChoice::CakeAutorate(None)),
            "sqm-autorate" => Ok(ControllerChoice::SqmAutorate),
            "known" => Ok(ControllerChoice::Known),
            "pid" => Ok(ControllerChoice::Pid),
            other => match other.split_once(':') {
                Some(("fixed", share)) => {
                    number(share, "a share of the line's mean rate", &ControllerChoice::SHARES)
                        .map(ControllerChoice::Fixed)
                }
                Some(("tidegate", "learning")) => Ok(ControllerChoice::OwnLearning),
                Some(("tidegate", aim)) => number(aim, "an aim", &OwnSettings::AIMS).map(|aim| match aim {
                    1.0 => ControllerChoice::Own,
                    aim => ControllerChoice::OwnAiming(aim),
                }),
                Some(("program", "")) => {
                    Err("program: needs the path of a program: program:./mine.py".into())
                }
                Some(("program", path)) => Ok(ControllerChoice::Program(path.to_owned())),
                _ => Err(format!("unknown controller {other:?}; there are {names}")),
            },
        }
    }

    /// Makes it for a case: all controllers are given the same limits.
    ///
    /// # Errors
    /// A configuration that cannot be taken, with its line; a program, which this crate starts none of.
    pub fn build(&self, case: &GymCase) -> Result<Box<dyn RateController + Send>, String> {
        let limits = case.line.limits();
        Ok(match self {
            ControllerChoice::Own => Box::new(OwnController::new(OwnSettings::new(limits))),
            ControllerChoice::OwnAiming(aim) => {
                Box::new(OwnController::new(OwnSettings::new(limits).aiming(*aim)))
            }
            ControllerChoice::OwnLearning => {
                let assumed = RateLimits::assumed(limits.base);
                let all = PerDirection { up: true, down: true };
                Box::new(LearningController::new(
                    Box::new(OwnController::new(OwnSettings::new(assumed))),
                    assumed,
                    LearnsLimits { least: all, most: all },
                    LearnedLimits::default(),
                ))
            }
            ControllerChoice::Pid => Box::new(PidController::new(PidSettings::new(limits))),
            ControllerChoice::Program(path) => return Err(format!("{path}: no program is started here")),
            ControllerChoice::CakeAutorate(configuration) => {
                let mut settings = CakeAutorateSettings::new(limits);
                if let Some(text) = configuration {
                    settings = settings.read(text).map_err(|wrong| wrong.to_string())?.0;
                }
                Box::new(CakeAutorate::new(settings))
            }
            ControllerChoice::SqmAutorate => {
                Box::new(SqmAutorate::new(SqmAutorateSettings::new(limits, case.seed)))
            }
            ControllerChoice::Fixed(share) => {
                let means = case.line.means();
                let rate = |mean: u64| ((mean as f64 * share) as u64).max(8_000);
                Box::new(FixedRates::new(PerDirection { up: rate(means.up), down: rate(means.down) }))
            }
            ControllerChoice::Known => {
                let least = PerDirection { up: 16_000, down: 16_000 };
                Box::new(KnownCapacity::new(limits.base, least, KNOWN_SHARE))
            }
        })
    }
}

impl fmt::Display for ControllerChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ControllerChoice::Own => f.write_str("tidegate"),
            ControllerChoice::OwnAiming(aim) => write!(f, "tidegate:{aim}"),
            ControllerChoice::OwnLearning => f.write_str("tidegate:learning"),
            ControllerChoice::Pid => f.write_str("pid"),
            ControllerChoice::Program(path) => write!(f, "program:{path}"),
            ControllerChoice::CakeAutorate(None) => f.write_str("cake-autorate"),
            ControllerChoice::CakeAutorate(Some(_)) => f.write_str("cake-autorate (configured)"),
            ControllerChoice::SqmAutorate => f.write_str("sqm-autorate"),
            ControllerChoice::Fixed(share) => write!(f, "fixed:{share}"),
            ControllerChoice::Known => f.write_str("known"),
        }
    }
}

/// A number behind the colon.
fn number(text: &str, what: &str, range: &RangeInclusive<f64>) -> Result<f64, String> {
    text.parse()
        .ok()
        .filter(|number| range.contains(number))
        .ok_or_else(|| format!("`{text}` is not {what}: a number from {} to {}", range.start(), range.end()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::case::GymLoad;
    use crate::run::run_case;

    #[test]
    fn names_are_read_as_they_are_written_and_ranges_are_named() {
        for name in [
            "tidegate",
            "tidegate:0.5",
            "tidegate:learning",
            "pid",
            "program:./mine.py",
            "fixed:0.7",
            "known",
        ] {
            assert_eq!(ControllerChoice::named(name).expect(name).to_string(), name);
        }
        assert_eq!(ControllerChoice::named("tidegate:1"), Ok(ControllerChoice::Own));
        for (name, expected) in [
            ("fixed:0", "`0` is not a share of the line's mean rate: a number from 0.01 to 100"),
            ("tidegate:9", "`9` is not an aim: a number from 0.1 to 4"),
            ("tidegate:NaN", "`NaN` is not an aim"),
            ("program:", "program: needs the path"),
            ("pid:3", "unknown controller \"pid:3\"; there are tidegate, tidegate:AIM"),
        ] {
            let why = ControllerChoice::named(name).expect_err(name);
            assert!(why.starts_with(expected), "{name}: {why}");
        }
    }

    /// On a line of which half the mean is a small part: the highest rate is found, and the line used.
    #[test]
    fn limits_that_are_not_known_are_found_by_observation() {
        let line = |rate: u64| GymCase::steady("line", [rate, 4 * rate], GymLoad::Both).lasting(45, 10);
        let (slow, fast) = (line(500_000), line(2_000_000));
        // What is known of the slow line is a part of what the fast one carries.
        let assumed = RateLimits::assumed(slow.line.limits().base);
        let used = |controller: &mut dyn RateController| {
            run_case(&fast, controller, false).expect("a run").score.utilisation
        };
        let mut learning = ControllerChoice::OwnLearning.build(&slow).expect("a controller");
        let mut held = OwnController::new(OwnSettings::new(assumed));
        let (learning, held) = (used(learning.as_mut()), used(&mut held));
        assert!(held < 0.3 && learning > 0.6, "{held} {learning}");
    }

    #[test]
    fn live_there_is_no_program_and_no_yardstick_and_none_is_offered() {
        assert_eq!(ControllerChoice::named_live("pid"), Ok(ControllerChoice::Pid));
        for (name, expected) in [
            ("known", "the controller `known` knows the line's capacity, which is not known live; there are"),
            ("program:./mine.py", "programs can be tried in `tidegate gym`, not run live; there are"),
            ("tidegate:learning", "live `tidegate` finds the limits that are not given; there are"),
            ("mine", "unknown controller \"mine\"; there are tidegate, tidegate:AIM"),
        ] {
            let why = ControllerChoice::named_live(name).expect_err(name);
            assert!(why.starts_with(expected), "{name}: {why}");
            let (_, offered) = why.split_once("there are ").expect("names");
            assert!(!offered.contains("program") && !offered.contains("known"), "{name}: {why}");
        }
    }
}
