//! What a controller does, written down each second for `top` and `metrics`.

use super::plan::{AutorateOptions, AutoratePlan};
use std::path::PathBuf;
use tidegate_analysis::watch::{ControlMode, ControlState, LastDecision, ShaperControl};
use tidegate_control::{PerDirection, RateDecision, RateDirection};
use tidegate_daemon::RuntimeDir;
use tidegate_sys::{boot, input_file, output_file};

/// How often it is written, ns.
const EACH: u64 = 1_000_000_000;
/// The most bytes of what is read.
const MAX_BYTES: u64 = 1 << 16;

/// The file of a running controller; it goes with it.
#[derive(Debug)]
pub(super) struct Published {
    path: PathBuf,
    due: u64,
    shapers: PerDirection<ShaperControl>,
}

impl Published {
    pub(super) fn new(runtime: &RuntimeDir, options: &AutorateOptions) -> Published {
        let shapers = PerDirection::of(|direction| ShaperControl {
            direction: direction.word().to_owned(),
            controller: options.controller.to_string(),
            ..ShaperControl::default()
        });
        let path = runtime.controlled(&options.up);
        output_file::remove_unfinished(&path);
        Published { path, due: 0, shapers }
    }

    /// Notes a decision.
    pub(super) fn decided(&mut self, decision: &RateDecision) {
        let of = &mut self.shapers[decision.direction];
        let reason = decision.reason.id();
        match of.decisions.get_mut(reason) {
            Some(count) => *count += 1,
            None => _ = of.decisions.insert(reason.to_owned(), 1),
        }
        of.last = Some(LastDecision {
            reason: reason.to_owned(),
            words: decision.reason.words().to_owned(),
            delay_ms: decision.delay.map(|delay| delay.0 as f64 / 1e6),
        });
    }

    /// Writes it, once a second.
    pub(super) fn write(
        &mut self,
        now: u64,
        mode: ControlMode,
        plan: &AutoratePlan,
        rates: PerDirection<u64>,
    ) {
        if now < self.due {
            return;
        }
        self.due = now + EACH;
        let shaper = |direction: RateDirection| {
            let shaper = plan.shapers[direction].as_ref()?;
            Some(ShaperControl {
                device: shaper.dev().to_owned(),
                mode,
                rate: rates[direction],
                least: plan.limits.least[direction],
                base: plan.limits.base[direction],
                most: plan.limits.most[direction],
                ..self.shapers[direction].clone()
            })
        };
        let state =
            ControlState::new(boot::uptime(), RateDirection::BOTH.into_iter().filter_map(shaper).collect());
        // Who watches sees nothing then; the work goes on.
        let _ = output_file::write_unsynced(&self.path, state.text().as_bytes());
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// What all controllers of this network namespace do now. A file that neither this user nor root wrote is
/// passed over, and so is one whose process has ended or stands still.
#[must_use]
pub fn controls() -> Vec<ShaperControl> {
    let Ok(runtime) = RuntimeDir::here() else { return Vec::new() };
    let read = |dev: &String| {
        let text = input_file::read_trusted(&runtime.controlled(dev), MAX_BYTES).ok()?;
        ControlState::read(&text, boot::uptime())
    };
    runtime.controlled_devices().iter().filter_map(read).flat_map(|state| state.shapers).collect()
}
