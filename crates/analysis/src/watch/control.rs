//! What `tidegate autorate` does with shapers, as it writes it down each second for those who watch.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The form of the document: it changes when a member changes its meaning or goes away.
const FORM: u32 = 1;
/// A document that is older is of a process that has ended or stands still.
const LATEST: Duration = Duration::from_secs(5);
/// The most shapers of a document: one for each direction.
const MAX_SHAPERS: usize = 2;
/// The most reasons that are counted.
const MAX_REASONS: usize = 64;

/// What a controller is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ControlMode {
    /// It sets rates.
    #[default]
    Controls,
    /// There is no load: the base rates hold.
    Idle,
    /// No target replies: the rates that were found hold.
    Blind,
    /// A shaper is gone: the rates that were found hold where they can.
    Gone,
}

impl ControlMode {
    /// All of them.
    pub const ALL: [ControlMode; 4] =
        [ControlMode::Controls, ControlMode::Idle, ControlMode::Blind, ControlMode::Gone];

    /// Its name in documents.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            ControlMode::Controls => "controls",
            ControlMode::Idle => "idle",
            ControlMode::Blind => "blind",
            ControlMode::Gone => "gone",
        }
    }
}

/// The last decision about a shaper.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LastDecision {
    /// Its reason's name.
    pub reason: String,
    /// The reason in words.
    pub words: String,
    /// The delay that it was decided by, ms.
    pub delay_ms: Option<f64>,
}

/// What a controller does with a device's shaper. Rates are bit/s.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ShaperControl {
    /// The device.
    pub device: String,
    /// `upload` or `download`.
    pub direction: String,
    /// The controller's name.
    pub controller: String,
    /// What it is doing.
    pub mode: ControlMode,
    /// The rate in force.
    pub rate: u64,
    /// The lowest rate that it sets.
    pub least: u64,
    /// The rate without load.
    pub base: u64,
    /// The highest rate that it sets.
    pub most: u64,
    /// Decisions since it began, by the name of their reason.
    pub decisions: BTreeMap<String, u64>,
    /// The last of them.
    pub last: Option<LastDecision>,
}

/// What one process does, at a moment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlState {
    /// The form.
    tidegate_autorate_state: u32,
    /// For how long the machine had been up, time asleep included, ms.
    up_ms: u64,
    /// Its shapers, uploads first.
    pub shapers: Vec<ShaperControl>,
}

impl ControlState {
    /// Of a machine that has been up for so long.
    #[must_use]
    pub fn new(up: Duration, shapers: Vec<ShaperControl>) -> ControlState {
        let up_ms = u64::try_from(up.as_millis()).unwrap_or(u64::MAX);
        ControlState { tidegate_autorate_state: FORM, up_ms, shapers }
    }

    /// As a document.
    #[must_use]
    pub fn text(&self) -> String {
        serde_json::to_string(self).map_or_else(|_| String::new(), |text| text + "\n")
    }

    /// Reads a document; `up`: for how long the machine has been up now. `None`: it is none, or out of date.
    #[must_use]
    pub fn read(text: &str, up: Duration) -> Option<ControlState> {
        let state: ControlState = serde_json::from_str(text).ok()?;
        let age = up.checked_sub(Duration::from_millis(state.up_ms))?;
        let fits = |one: &ShaperControl| one.decisions.len() <= MAX_REASONS;
        let is_one = state.tidegate_autorate_state == FORM
            && state.shapers.len() <= MAX_SHAPERS
            && state.shapers.iter().all(fits);
        (is_one && age <= LATEST).then_some(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_while_it_is_new() {
        let last = LastDecision { reason: "delay-high".into(), words: "late".into(), delay_ms: Some(34.5) };
        let shaper = ShaperControl {
            device: "eth0".into(),
            mode: ControlMode::Blind,
            rate: 3_000_000,
            decisions: [("delay-high".to_owned(), 2)].into(),
            last: Some(last),
            ..ShaperControl::default()
        };
        let state = ControlState::new(Duration::from_secs(100), vec![shaper]);
        let text = state.text();
        let read = |text: &str, up: u64| ControlState::read(text, Duration::from_secs(up));
        assert_eq!(read(&text, 100), Some(state.clone()));
        assert_eq!(read(&text, 105), Some(state.clone()));
        // Of a process that stands still; of another run of the machine.
        assert_eq!((read(&text, 106), read(&text, 99)), (None, None));
        for wrong in ["", "{}", "[]", &text.replace("state\":1", "state\":2"), &text[1..]] {
            assert_eq!(read(wrong, 100), None, "{wrong}");
        }
        let many = ControlState { shapers: vec![ShaperControl::default(); 3], ..state };
        assert_eq!(read(&many.text(), 100), None);
        assert!(ControlMode::ALL.iter().all(|mode| serde_json::json!(mode) == mode.id()));
    }
}
