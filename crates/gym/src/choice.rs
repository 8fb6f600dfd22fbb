//! Controllers by their names.

use crate::case::GymCase;
use std::fmt;
use tidegate_control::{
    CakeAutorate, CakeAutorateSettings, FixedRates, KnownCapacity, OwnController, OwnSettings, PerDirection,
    RateController, SqmAutorate, SqmAutorateSettings,
};

/// A controller that a user chose.
#[derive(Clone, Debug, PartialEq)]
pub enum ControllerChoice {
    /// tidegate's own.
    Own,
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
    pub const NAMES: &'static str = "tidegate, cake-autorate, sqm-autorate, fixed:SHARE, known";

    /// The one of that name.
    ///
    /// # Errors
    /// A name that is none.
    pub fn named(name: &str) -> Result<ControllerChoice, String> {
        match name {
            "tidegate" => Ok(ControllerChoice::Own),
            "cake-autorate" => Ok(ControllerChoice::CakeAutorate(None)),
            "sqm-autorate" => Ok(ControllerChoice::SqmAutorate),
            "known" => Ok(ControllerChoice::Known),
            other => {
                let share = other.strip_prefix("fixed:").and_then(|share| share.parse().ok());
                let share = share.filter(|share: &f64| *share > 0.0 && *share <= 100.0);
                share.map(ControllerChoice::Fixed).ok_or_else(|| {
                    format!("unknown controller {other:?}; there are {}", ControllerChoice::NAMES)
                })
            }
        }
    }

    /// Makes it for a case: all controllers are given the same limits.
    ///
    /// # Errors
    /// A configuration that cannot be taken, with its line.
    pub fn build(&self, case: &GymCase) -> Result<Box<dyn RateController + Send>, String> {
        let limits = case.line.limits();
        Ok(match self {
            ControllerChoice::Own => Box::new(OwnController::new(OwnSettings::new(limits))),
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
            ControllerChoice::CakeAutorate(None) => f.write_str("cake-autorate"),
            ControllerChoice::CakeAutorate(Some(_)) => f.write_str("cake-autorate (configured)"),
            ControllerChoice::SqmAutorate => f.write_str("sqm-autorate"),
            ControllerChoice::Fixed(share) => write!(f, "fixed:{share}"),
            ControllerChoice::Known => f.write_str("known"),
        }
    }
}
