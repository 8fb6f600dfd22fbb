//! R12 of bursts that hold what their rate sends in a second or more: after a pause as much leaves at once,
//! past the rate.

use super::making::{at_word, edit, finding};
use super::measured::{FIRST_WINDOW, led_to};
use crate::drive::Bench;
use crate::finding::{Finding, Level, Rule};
use crate::reading::{PolicyModel, Step};
use crate::words;
use tidegate_packet::{Handle, Nanos, Rate};
use tidegate_policy::QdiscParams;

/// A burst that takes its rate longer than this is none.
const LONG: Nanos = Nanos::millis(1000);
/// A burst that is enough holds what the rate sends in one part of a second, of so many.
const PARTS: u64 = 20;

/// Buckets of TBF and of HTB's leaves.
pub(super) fn check(reading: &PolicyModel, bench: &mut Bench<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for qdisc in &reading.qdiscs {
        let QdiscParams::Tbf(tbf) = &qdisc.params else { continue };
        let Some(step) = reading.maker_of_qdisc(qdisc).and_then(|op| reading.step_of(op)) else { continue };
        let text = ["burst", "buffer", "maxburst"].into_iter().find(|word| step.after(word).is_some());
        let waiting = bytes(tbf.rate.rate, tbf.buffer.duration());
        let (Some(class), Some(word)) = (led_to(reading, qdisc), text) else { continue };
        let bucket = Bucket { dev: &qdisc.dev, class, rate: tbf.rate.rate, depth: waiting, step, word };
        found.extend(bucket.finding(reading, bench));
    }
    for class in reading.htb_classes().filter(|class| reading.is_leaf(class.class)) {
        let (class, htb) = (class.class, class.params);
        let Some(op) = reading.maker_of_class(&class.dev, class.classid) else { continue };
        let Some(step) = reading.step_of(op) else { continue };
        // A class that owes nothing sends what both buckets hold.
        let [burst, cburst] =
            [bytes(htb.rate.rate, htb.buffer.duration()), bytes(htb.ceil.rate, htb.cbuffer.duration())];
        let (word, waiting) = if burst <= cburst { ("burst", burst) } else { ("cburst", cburst) };
        let other = if word == "burst" { "cburst" } else { "burst" };
        let Some(word) = [word, other].into_iter().find(|word| step.after(word).is_some()) else { continue };
        let bucket =
            Bucket { dev: &class.dev, class: class.classid, rate: htb.ceil.rate, depth: waiting, step, word };
        found.extend(bucket.finding(reading, bench).map(|finding| reading.if_idle(class, finding)));
    }
    found
}

/// What a rate sends in a time.
fn bytes(rate: Rate, time: Nanos) -> u64 {
    (u128::from(rate.0) * u128::from(time.0) / 1_000_000_000) as u64
}

/// A bucket with the rate that it is meant to keep.
struct Bucket<'r> {
    dev: &'r str,
    class: Handle,
    rate: Rate,
    depth: u64,
    step: &'r Step,
    word: &'static str,
}

impl Bucket<'_> {
    /// How long the rate takes for so many bytes.
    fn time(&self, bytes: u64) -> Nanos {
        Nanos((u128::from(bytes) * 1_000_000_000 / u128::from(self.rate.0.max(1))) as u64)
    }

    fn finding(&self, reading: &PolicyModel, bench: &mut Bench<'_>) -> Option<Finding> {
        if self.time(self.depth) < LONG {
            return None;
        }
        let frame = reading.frame(self.dev);
        let sent = bench.first(self.dev, self.class, frame, Nanos(0))?;
        let time = self.time(sent);
        // At a few kbit/s two frames take as long.
        if time < LONG || sent <= u64::from(FIRST_WINDOW * frame) {
            return None;
        }
        let word = self.step.after(self.word)?;
        let what = format!(
            "{} {} lets {} leave at once after a pause, as much as the rate sends in {}",
            self.word,
            word.text,
            words::bytes(sent),
            words::time(time)
        );
        let because = format!(
            "it leaves at the speed of {}, and waits in the next queue, which the rate of {} should keep empty",
            self.dev,
            words::rate(self.rate)
        );
        let witness =
            format!("kept full after a pause, it sends {} before any time passes", words::bytes(sent));
        let place = at_word(self.step, self.word);
        let mut finding = finding(Rule::Burst, Level::Warning, place, what, because, witness);
        let enough = (self.rate.0 / PARTS).max(u64::from(frame));
        let why = format!("what the rate sends in {} ms, a frame at least", 1000 / PARTS);
        finding.fix = edit(self.step, self.word, &enough.to_string(), &why);
        Some(finding)
    }
}
