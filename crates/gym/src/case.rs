//! A case: a line, a load, faults, and a seed.

use crate::shaper::ShaperKind;
use tidegate_control::{PerDirection, RateLimits};
use tidegate_packet::Nanos;
use tidegate_scenario::presets::LinePreset;
use tidegate_sim::Trace;

/// A line that varies, both ways.
#[derive(Clone, Debug)]
pub struct GymLine {
    /// What users call it.
    pub name: String,
    /// Its rates, delays and losses.
    pub traces: PerDirection<Trace>,
    /// What waits before it at most, in bytes of frames: the modem's buffer, and the provider's.
    pub buffers: PerDirection<u64>,
    /// So much of the recording is over when a run begins.
    pub skip: Nanos,
    /// It was slowed down by this factor, so that a run takes less time; 1: it was not.
    pub slowed: f64,
}

/// A line is slowed down to this mean rate of its faster direction, bit/s, unless another is asked for.
pub const USUAL_MEAN: u64 = 8_000_000;

/// The deepest buffer of a line without a stated one, as time at its mean rate.
const USUAL_BUFFER: Nanos = Nanos::millis(500);

impl GymLine {
    /// A line by the recordings of both directions, with buffers of that long at their mean rates; slowed
    /// down where its mean is above `most`.
    ///
    /// # Errors
    /// A recording without rates, or one that cannot be slowed down.
    pub fn new(
        name: impl Into<String>,
        traces: PerDirection<Trace>,
        buffers: PerDirection<Nanos>,
        most: Option<u64>,
    ) -> Result<GymLine, String> {
        let mean = |trace: &Trace| trace.mean_rate().ok_or("it has no rates".to_owned());
        let means = PerDirection { up: mean(&traces.up)?, down: mean(&traces.down)? };
        let fastest = means.up.max(means.down);
        let slowed = most.map_or(1.0, |most| (most as f64 / fastest.max(1) as f64).min(1.0));
        let traces = if slowed < 1.0 {
            PerDirection { up: traces.up.scaled(slowed)?, down: traces.down.scaled(slowed)? }
        } else {
            traces
        };
        let bytes = |rate: u64, time: Nanos| {
            ((rate as f64 * slowed / 8.0 * time.as_secs_f64()) as u64).max(10 * FULL_FRAME)
        };
        let buffers = PerDirection { up: bytes(means.up, buffers.up), down: bytes(means.down, buffers.down) };
        Ok(GymLine { name: name.into(), traces, buffers, skip: Nanos(0), slowed })
    }

    /// A line as one of the models of [`tidegate_scenario::presets`] generates it for a seed.
    ///
    /// # Errors
    /// As for [`GymLine::new`].
    pub fn preset(preset: &LinePreset, seed: u64, most: Option<u64>) -> Result<GymLine, String> {
        let line = preset.line(seed);
        let buffers = PerDirection { up: preset.buffers[0], down: preset.buffers[1] };
        let name = format!("{}-{seed}", preset.name);
        GymLine::new(name, PerDirection { up: line.up, down: line.down }, buffers, most)
    }

    /// One recording for both directions, the upload a quarter of it.
    ///
    /// # Errors
    /// As for [`GymLine::new`].
    pub fn of_trace(name: &str, trace: &Trace, most: Option<u64>) -> Result<GymLine, String> {
        let up = trace.scaled(0.25).unwrap_or_else(|_| trace.clone());
        GymLine::of_pair(name, PerDirection { up, down: trace.clone() }, most)
    }

    /// The recordings of both directions.
    ///
    /// # Errors
    /// As for [`GymLine::new`].
    pub fn of_pair(name: &str, traces: PerDirection<Trace>, most: Option<u64>) -> Result<GymLine, String> {
        GymLine::new(name, traces, PerDirection { up: USUAL_BUFFER, down: USUAL_BUFFER }, most)
    }

    /// Mean rates, bit/s.
    #[must_use]
    pub fn means(&self) -> PerDirection<u64> {
        PerDirection::of(|direction| self.traces[direction].mean_rate().unwrap_or(1))
    }

    /// What all controllers are given: a tenth of the mean as the lowest rate, half of it to begin with, and
    /// a quarter more than what the line carries at most as the highest: live it is known roughly.
    #[must_use]
    pub fn limits(&self) -> RateLimits {
        let means = self.means();
        RateLimits {
            least: PerDirection::of(|direction| (means[direction] / 10).max(64_000)),
            base: PerDirection::of(|direction| (means[direction] / 2).max(64_000)),
            most: PerDirection::of(|direction| {
                let highest = self.traces[direction].highest_rate().unwrap_or(0);
                (highest.max(means[direction]).max(100_000) / 4).saturating_mul(5)
            }),
        }
    }
}

/// Bytes of a full frame with its Ethernet header.
pub(crate) const FULL_FRAME: u64 = 1514;

/// What loads the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GymLoad {
    /// Two uploads.
    Up,
    /// Three downloads.
    Down,
    /// An upload and two downloads.
    Both,
    /// Transfers of four seconds each way that begin every eight.
    Bursts,
    /// An upload and a download by BBR.
    Bbr,
    /// Nothing but a call.
    Idle,
}

impl GymLoad {
    /// All, by their names, with what they are.
    pub const NAMED: [(&'static str, GymLoad, &'static str); 6] = [
        ("up", GymLoad::Up, "two uploads"),
        ("down", GymLoad::Down, "three downloads"),
        ("both", GymLoad::Both, "an upload and two downloads"),
        ("bursts", GymLoad::Bursts, "an upload and a download of four seconds, every eight"),
        ("bbr", GymLoad::Bbr, "an upload and a download by BBR"),
        ("idle", GymLoad::Idle, "a call and nothing else"),
    ];

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        GymLoad::NAMED.iter().find(|(_, load, _)| *load == self).map_or("", |(name, ..)| name)
    }

    /// Is this direction full of data?
    #[must_use]
    pub fn fills(self) -> PerDirection<bool> {
        let (up, down) = match self {
            GymLoad::Up => (true, false),
            GymLoad::Down => (false, true),
            GymLoad::Both | GymLoad::Bursts | GymLoad::Bbr => (true, true),
            GymLoad::Idle => (false, false),
        };
        PerDirection { up, down }
    }
}

/// What goes wrong.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GymFaults {
    /// Probes take a way past the line's queues.
    pub blind_probes: bool,
    /// The first of the reflectors, so many, stop replying.
    pub dead_reflectors: u16,
    /// When they do, from the begin of the run.
    pub dead_from: Nanos,
    /// Each reflector replies so often a second at most.
    pub icmp_per_second: Option<u32>,
    /// A share of packets from the provider that are late by 20 ms and overtaken.
    pub reordered: f64,
    /// Each packet is delayed by between 0 and this on the line, in order.
    pub jitter: Nanos,
    /// The own clock is set forward by this.
    pub clock_step: Option<Nanos>,
    /// Behind the line is another shaper with this share of the line's mean rate, and half a second of
    /// buffer.
    pub upstream_share: Option<f64>,
    /// A download that is not ours shares the path beyond the line.
    pub rival: bool,
    /// Round trips only: reflectors give no timestamps.
    pub no_timestamps: bool,
    /// The controller's program stands still for so long, every five seconds.
    pub paused: Nanos,
    /// It is called late by up to this.
    pub late: Nanos,
}

/// A case of the gym.
#[derive(Clone, Debug)]
pub struct GymCase {
    /// Its name, unique within a suite.
    pub name: String,
    /// The line.
    pub line: GymLine,
    /// What loads it.
    pub load: GymLoad,
    /// What goes wrong.
    pub faults: GymFaults,
    /// Which qdisc holds the rate.
    pub shaper: ShaperKind,
    /// How long it runs before it is measured.
    pub warm_up: Nanos,
    /// How long it is measured.
    pub duration: Nanos,
    /// From the line to the servers and back, beside the line's own delay.
    pub rtt: Nanos,
    /// The seed of all random draws.
    pub seed: u64,
}

impl GymCase {
    /// A line under a load.
    #[must_use]
    pub fn new(line: GymLine, load: GymLoad, seed: u64) -> GymCase {
        GymCase {
            name: format!("{}/{}", line.name, load.name()),
            line,
            load,
            faults: GymFaults::default(),
            shaper: ShaperKind::Cake,
            warm_up: Nanos::secs(5),
            duration: Nanos::secs(20),
            rtt: Nanos::millis(20),
            seed,
        }
    }

    /// A line of steady rates up and down, bit/s, with a quarter of a second of buffer.
    #[must_use]
    pub fn steady(name: &str, rates: [u64; 2], load: GymLoad) -> GymCase {
        let minute = Nanos::secs(60);
        let trace = |rate: u64| {
            let rates = Trace::rates([(minute, rate)]).and_then(|t| t.with_delays([(minute, DELAY)]));
            rates.unwrap_or_else(|_| Trace::steady(1_000_000, minute))
        };
        GymCase::of_traces(name, PerDirection { up: trace(rates[0]), down: trace(rates[1]) }, load)
    }

    /// A line of these recordings, with a quarter of a second of buffer.
    pub(crate) fn of_traces(name: &str, traces: PerDirection<Trace>, load: GymLoad) -> GymCase {
        let means = PerDirection::of(|direction| traces[direction].mean_rate().unwrap_or(1_000_000));
        let buffers = PerDirection::of(|direction| (means[direction] / 32).max(10 * FULL_FRAME));
        let line = GymLine { name: name.to_owned(), traces, buffers, skip: Nanos(0), slowed: 1.0 };
        GymCase { name: name.to_owned(), ..GymCase::new(line, load, 1) }
    }

    /// The same, shorter or longer: seconds before it is measured, and measured.
    #[must_use]
    pub fn lasting(self, warm_up: u64, duration: u64) -> GymCase {
        GymCase { warm_up: Nanos::secs(warm_up), duration: Nanos::secs(duration), ..self }
    }
}

/// The delay one way of a steady line.
pub(crate) const DELAY: Nanos = Nanos::millis(10);
