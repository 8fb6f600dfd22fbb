//! The failures of the field, each as a case on a line that is otherwise steady: 2 Mbit/s up and 8 down, 20
//! ms of delay in all and as much to the servers, a quarter of a second of buffer each way.

use crate::case::{DELAY, GymCase, GymFaults, GymLoad};
use tidegate_control::PerDirection;
use tidegate_packet::Nanos;
use tidegate_sim::Trace;

const UP: u64 = 2_000_000;
const DOWN: u64 = 8_000_000;

/// A failure of the field.
#[derive(Clone, Copy, Debug)]
pub struct NamedFailure {
    /// Its name.
    pub name: &'static str,
    /// What happens, in a sentence.
    pub about: &'static str,
    load: GymLoad,
    line: fn() -> PerDirection<Trace>,
    faults: fn() -> GymFaults,
}

/// All of them.
pub const NAMED_FAILURES: [NamedFailure; 17] = [
    NamedFailure {
        name: "blind-probes",
        about: "probes take a way past the line's queues, as on some satellite lines: they never see delay",
        load: GymLoad::Both,
        line: steady,
        faults: || GymFaults { blind_probes: true, ..GymFaults::default() },
    },
    NamedFailure {
        name: "one-target-dead",
        about: "one of eight probe targets stops replying",
        load: GymLoad::Both,
        line: steady,
        faults: || GymFaults { dead_reflectors: 1, dead_from: Nanos::secs(8), ..GymFaults::default() },
    },
    NamedFailure {
        name: "all-targets-dead",
        about: "all probe targets stop replying",
        load: GymLoad::Both,
        line: steady,
        faults: || GymFaults { dead_reflectors: 8, dead_from: Nanos::secs(8), ..GymFaults::default() },
    },
    NamedFailure {
        name: "icmp-limit",
        about: "each probe target replies once a second at most",
        load: GymLoad::Both,
        line: steady,
        faults: || GymFaults { icmp_per_second: Some(1), ..GymFaults::default() },
    },
    NamedFailure {
        name: "reordering",
        about: "2 % of the packets from the provider are 20 ms late and overtaken",
        load: GymLoad::Both,
        line: steady,
        faults: || GymFaults { reordered: 0.02, ..GymFaults::default() },
    },
    NamedFailure {
        name: "clock-step",
        about: "the clock is set forward by two seconds: delays one way jump, round trips do not",
        load: GymLoad::Both,
        line: steady,
        faults: || GymFaults { clock_step: Some(Nanos::secs(2)), ..GymFaults::default() },
    },
    NamedFailure {
        name: "silence",
        about: "the line carries nothing for a second, every ten",
        load: GymLoad::Both,
        line: || both(|rate| rates(&[(9, rate), (1, 0)])),
        faults: GymFaults::default,
    },
    NamedFailure {
        name: "acks-saturate",
        about: "1:40: acknowledgements of the downloads fill the uplink",
        load: GymLoad::Down,
        line: || PerDirection { up: rates(&[(60, 200_000)]), down: rates(&[(60, DOWN)]) },
        faults: GymFaults::default,
    },
    NamedFailure {
        name: "upstream-shaper",
        about: "the provider shapes to 60 % of the line, behind it, with half a second of buffer",
        load: GymLoad::Both,
        line: steady,
        faults: || GymFaults { upstream_share: Some(0.6), ..GymFaults::default() },
    },
    NamedFailure {
        name: "halved-doubled",
        about: "the capacity is halved for five seconds, then doubled for five",
        load: GymLoad::Both,
        line: || both(|rate| rates(&[(5, rate), (5, rate / 2), (5, 2 * rate)])),
        faults: GymFaults::default,
    },
    NamedFailure {
        name: "base-moves",
        about: "the path becomes 30 ms longer, then shorter again, every 15 s",
        load: GymLoad::Both,
        line: || {
            both(|rate| {
                let moved = Nanos(DELAY.0 + 15_000_000);
                let delays = [(Nanos::secs(15), DELAY), (Nanos::secs(15), moved)];
                rates(&[(60, rate)]).with_delays(delays).unwrap_or_else(|_| rates(&[(60, rate)]))
            })
        },
        faults: GymFaults::default,
    },
    NamedFailure {
        name: "bursts",
        about: "load begins and ends every eight seconds",
        load: GymLoad::Bursts,
        line: steady,
        faults: GymFaults::default,
    },
    NamedFailure {
        name: "one-to-fifty",
        about: "1:50: 240 kbit/s up and 12 Mbit/s down, both loaded",
        load: GymLoad::Both,
        line: || PerDirection { up: rates(&[(60, 240_000)]), down: rates(&[(60, 12_000_000)]) },
        faults: GymFaults::default,
    },
    NamedFailure {
        name: "rival",
        about: "somebody else's download fills a link beyond the line: no rate of ours shortens that queue",
        load: GymLoad::Both,
        line: steady,
        faults: || GymFaults { rival: true, ..GymFaults::default() },
    },
    NamedFailure {
        name: "pauses",
        about: "the controller's program stands still for 0.7 s every five seconds",
        load: GymLoad::Both,
        line: || both(|rate| rates(&[(7, rate), (6, rate / 2)])),
        faults: || GymFaults { paused: Nanos::millis(700), ..GymFaults::default() },
    },
    NamedFailure {
        name: "late-timers",
        about: "the controller's timers are late by up to 200 ms",
        load: GymLoad::Both,
        line: || both(|rate| rates(&[(7, rate), (6, rate / 2)])),
        faults: || GymFaults { late: Nanos::millis(200), ..GymFaults::default() },
    },
    NamedFailure {
        name: "no-timestamps",
        about: "probe targets give no timestamps: only round trips are known",
        load: GymLoad::Both,
        line: steady,
        faults: || GymFaults { no_timestamps: true, ..GymFaults::default() },
    },
];

impl NamedFailure {
    /// As a case.
    #[must_use]
    pub fn case(&self) -> GymCase {
        let case = GymCase::of_traces(self.name, (self.line)(), self.load);
        GymCase { faults: (self.faults)(), duration: Nanos::secs(25), ..case }
    }
}

fn steady() -> PerDirection<Trace> {
    both(|rate| rates(&[(60, rate)]))
}

fn both(of: impl Fn(u64) -> Trace) -> PerDirection<Trace> {
    PerDirection { up: of(UP), down: of(DOWN) }
}

/// Seconds and rates, with the usual delay.
fn rates(steps: &[(u64, u64)]) -> Trace {
    let steps = steps.iter().map(|(seconds, rate)| (Nanos::secs(*seconds), *rate));
    let trace = Trace::rates(steps).and_then(|trace| trace.with_delays([(Nanos::secs(60), DELAY)]));
    // The rates above are none of those that are refused: a test makes all cases.
    trace.unwrap_or_else(|_| Trace::steady(UP, Nanos::secs(60)))
}
