//! R13 once more: netem's own queue, where a rate holds packets back or a delay keeps them in it.

use super::making::{at_word, edit, finding};
use crate::drive::Bench;
use crate::finding::{Finding, Fix, Level, Rule};
use crate::reading::{PolicyModel, Step};
use crate::words;
use tidegate_packet::{Handle, Nanos, Rate};
use tidegate_policy::dump::QdiscDump;
use tidegate_policy::{Kind, NetemParams, QdiscParams};

/// Above this a queue is the delay it should prevent; from here on it is a warning.
const LONGISH: Nanos = Nanos::millis(250);
const LONG: Nanos = Nanos::millis(1000);
/// Frames offered at once to see how long a queue is.
const FRAMES: usize = 4000;

/// Netems whose limit does not fit the rate that holds them back.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let reading = &*reading;
    let mut bench = Bench::new(reading);
    let mut found = Vec::new();
    for qdisc in reading.qdiscs.iter().filter(|qdisc| qdisc.kind == Kind::Netem) {
        let QdiscParams::Netem(netem) = &qdisc.params else { continue };
        let Some(step) = reading.maker_of_qdisc(qdisc).and_then(|op| reading.step_of(op)) else { continue };
        found.extend(beyond(reading, &mut bench, qdisc, (netem, step)));
        // Where a netem has a child, packets continue into that when their delay is over.
        if inside(reading, qdisc).is_some() {
            continue;
        }
        // Copies, and packets that pass others, are drawn: how many leave, and when, is another each time.
        if netem.duplicate != 0 || netem.reorder.is_some() {
            continue;
        }
        let Some((class, rate)) = rate_of(reading, qdisc, netem) else { continue };
        let frame = reading.frame(&qdisc.dev);
        let Some(filled) = bench.fill(&qdisc.dev, class, &[], frame, FRAMES) else { continue };
        let held = Netem { qdisc, netem, step, rate, frame, packets: filled.packets, wait: filled.wait };
        found.extend(held.long().or_else(|| held.short()));
    }
    found
}

/// Packets sent one by one, to see how many are not delayed at all.
const ALONE: usize = 100;

/// A delay that varies by more than itself: what is drawn below 0 leaves at once.
fn beyond(
    reading: &PolicyModel,
    bench: &mut Bench<'_>,
    qdisc: &QdiscDump,
    (netem, step): (&NetemParams, &Step),
) -> Option<Finding> {
    if netem.latency_ns <= 0 || netem.jitter_ns <= netem.latency_ns || netem.slot.is_some() {
        return None;
    }
    let (class, frame) = (super::measured::led_to(reading, qdisc)?, reading.frame(&qdisc.dev));
    let mut at_once = 0;
    let mut sent = 0;
    for _ in 0..ALONE {
        if let Some(filled) = bench.fill(&qdisc.dev, class, &[], frame, 1) {
            sent += 1;
            at_once += usize::from(filled.wait == Nanos(0));
        }
    }
    if at_once == 0 {
        return None;
    }
    let span = |ns: i64| words::time(Nanos(ns.unsigned_abs()));
    let (delay, jitter) = (span(netem.latency_ns), span(netem.jitter_ns));
    Some(finding(
        Rule::Void,
        Level::Note,
        at_word(step, "delay"),
        format!(
            "the delay of {delay} has a jitter of {jitter}, more than itself: random values below 0 mean no delay"
        ),
        format!("such packets leave at once, and the mean delay is more than {delay}"),
        format!("of {sent} packets sent one by one {at_once} leave at once"),
    ))
}

/// The qdisc attached to another.
fn inside<'r>(reading: &'r PolicyModel, qdisc: &QdiscDump) -> Option<&'r QdiscDump> {
    let hangs = |inner: &&QdiscDump| {
        inner.dev == qdisc.dev && inner.parent.qdisc() == qdisc.handle && !inner.handle.is_none()
    };
    reading.qdiscs.iter().find(hangs).filter(|_| !qdisc.handle.is_none())
}

/// The rate at which packets of a netem leave, and the class that leads there.
fn rate_of(reading: &PolicyModel, qdisc: &QdiscDump, netem: &NetemParams) -> Option<(Handle, Rate)> {
    let root = reading.root(&qdisc.dev)?;
    let own = netem.rate.as_ref().map(|rate| Rate(rate.rate));
    if root.handle == qdisc.handle {
        return own.map(|rate| (Handle::NONE, rate));
    }
    if let QdiscParams::Tbf(tbf) = &root.params
        && qdisc.parent.qdisc() == root.handle
    {
        return Some((Handle::NONE, own.map_or(tbf.rate.rate, |rate| rate.min(tbf.rate.rate))));
    }
    let leaf =
        reading.leaves().find(|leaf| leaf.class.dev == qdisc.dev && leaf.class.classid == qdisc.parent)?;
    let led = leaf.class.classid.qdisc() == root.handle;
    led.then(|| (leaf.class.classid, own.map_or(leaf.ceil, |rate| rate.min(leaf.ceil))))
}

/// A netem that was filled.
struct Netem<'r> {
    qdisc: &'r QdiscDump,
    netem: &'r NetemParams,
    step: &'r Step,
    rate: Rate,
    frame: u32,
    packets: u32,
    wait: Nanos,
}

/// Segments that a TCP connection may begin with (RFC 6928).
const FIRST_WINDOW: u64 = super::measured::FIRST_WINDOW as u64;

impl Netem<'_> {
    fn delay(&self) -> Nanos {
        Nanos(u64::try_from(self.netem.latency_ns).unwrap_or(0))
    }

    /// `limit 1000`, given or by default.
    fn limit(&self) -> String {
        match self.step.after("limit") {
            Some(word) => format!("limit {} of netem", word.text),
            None => format!("netem's usual limit of {} packets", self.netem.limit),
        }
    }

    fn finding(&self, level: Level, what: String, because: String) -> Finding {
        let given = self.step.after("limit").is_some();
        let place = if given { at_word(self.step, "limit") } else { self.step.place.clone() };
        let witness = format!(
            "{} of {} bytes taken at once, the last left after {}",
            words::count(self.packets as usize, "packet", "packets"),
            self.frame,
            words::time(self.wait)
        );
        finding(Rule::Limit, level, place, what, because, witness)
    }

    /// A limit that full frames do not fill before their delay is over.
    fn longer(&self) -> Option<Fix> {
        // How many packets a delay that varies holds is not computed.
        if self.netem.jitter_ns > 0 {
            return None;
        }
        let (fits, does) = self.fitting();
        match self.step.after("limit") {
            Some(_) => edit(self.step, "limit", &fits.to_string(), does),
            None => super::making::addition(self.step, &format!("limit {fits}"), does),
        }
    }

    /// Packets of a frame that the rate sends in a time.
    fn in_time(&self, span: Nanos) -> u64 {
        let bytes = u128::from(self.rate.0) * u128::from(span.0) / 1_000_000_000;
        (bytes as u64).div_ceil(u64::from(self.frame.max(1))).max(1)
    }

    /// A limit that is neither too long nor too short, with what it does.
    fn fitting(&self) -> (u64, &'static str) {
        match self.in_time(Nanos(self.delay().0 + Nanos::millis(200).0)) {
            ..FIRST_WINDOW => (FIRST_WINDOW, "hold the ten packets that a connection may begin with"),
            fits => (fits, "hold the delay and a fifth of a second of full frames"),
        }
    }

    /// It takes long to empty. What is under way for its delay is no queue: neither the time that the last
    /// packet is held for itself, nor the packets that the rate sends in that time.
    fn long(&self) -> Option<Finding> {
        let waits = Nanos(self.wait.0.saturating_sub(self.delay().0));
        let queued = Nanos(waits.0.saturating_sub(self.delay().0));
        if queued < LONGISH {
            return None;
        }
        let level = if queued < LONG { Level::Note } else { Level::Warning };
        // No more are offered, and of those some may be lost: what it holds beyond that is not measured.
        let more = if self.packets < self.netem.limit { "more than " } else { "" };
        let what = format!(
            "{} lets {more}{} of packets wait in {}",
            self.limit(),
            words::time(waits),
            self.qdisc.handle
        );
        let beside = match self.delay() {
            Nanos(0) => String::new(),
            delay => format!(", beside its delay of {}", words::time(delay)),
        };
        let held = match self.netem.slot {
            Some(_) => "for its slots".to_owned(),
            None => format!("at {}", words::rate(self.rate)),
        };
        let because =
            format!("{held} they wait inside netem{beside}: no queue that keeps itself short sees them");
        // A limit counts packets: one that full frames fill in time, short ones fill at once.
        let apart = match self.delay() {
            Nanos(0) => {
                "let a tbf or an HTB class hold the rate, with a queue that keeps itself short (fq_codel)"
            }
            _ => {
                "a limit in packets fits no mixture of sizes: delay on another device (an ifb), and keep the queue \
                here short (fq_codel)"
            }
        };
        let fix = Some(Fix { what: apart.to_owned(), edits: Vec::new() });
        Some(Finding { fix, ..self.finding(level, what, because) })
    }

    /// It is full of packets whose delay is not over yet: the rate is never reached.
    fn short(&self) -> Option<Finding> {
        let delay = self.delay().0;
        let bytes = u128::from(self.packets) * u128::from(self.frame) * 1_000_000_000;
        let through = Rate(u64::try_from(bytes / u128::from(delay.max(1))).unwrap_or(u64::MAX));
        // More than were offered may fit, and of a delay that varies it is not the mean that counts.
        if delay == 0
            || self.netem.jitter_ns > 0
            || self.packets < self.netem.limit
            || through.0 >= self.rate.0 / 10 * 9
        {
            return None;
        }
        let what = format!(
            "{} is full before its delay of {} is over: {} get through at most",
            self.limit(),
            words::time(self.delay()),
            words::rate(through)
        );
        let because = format!(
            "a packet keeps its place for the whole delay: {} in {}, although the rate is {}",
            words::bytes(u64::from(self.packets) * u64::from(self.frame)),
            words::time(self.delay()),
            words::rate(self.rate)
        );
        Some(Finding { fix: self.longer(), ..self.finding(Level::Warning, what, because) })
    }
}
