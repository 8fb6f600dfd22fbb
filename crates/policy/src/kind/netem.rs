//! netem: a network's delays and faults.

use super::name::Kind;
use super::row::{ClassLayout, Filters};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};
use alloc::boxed::Box;

/// A probability or a correlation, in 2^-32 (4294967295 = 1).
pub type NetemProbability = u32;

/// The options of netem (tc-netem(8)). Each command sends all of them, so a change without an option takes
/// that option away.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NetemParams {
    /// Packets that may wait, those in delay included.
    pub limit: u32,
    /// The delay of each packet, ns.
    pub latency_ns: i64,
    /// How far the delay varies: the half width of a uniform distribution, or the standard deviation of
    /// another, ns.
    pub jitter_ns: i64,
    /// How it varies; `None`: uniformly.
    pub distribution: Option<NetemDistribution>,
    /// Are there correlations at all?
    pub correlations: Option<NetemCorrelations>,
    /// The loss model.
    pub loss: NetemLoss,
    /// Packets that can carry a CE mark (RFC 3168) get one instead of being dropped.
    pub ecn: bool,
    /// Probability of a second copy.
    pub duplicate: NetemProbability,
    /// Of every so many packets one may go ahead at once; 0: none.
    pub gap: u32,
    /// Probability that it does, with its correlation.
    pub reorder: Option<(NetemProbability, NetemProbability)>,
    /// Probability of a bit being wrong, with its correlation.
    pub corrupt: Option<(NetemProbability, NetemProbability)>,
    /// The rate of the serial link that it imitates.
    pub rate: Option<NetemRate>,
    /// Packets leave in bursts, as on a radio link.
    pub slot: Option<NetemSlot>,
    /// What its own generator begins with (Linux 7.2); without one a draw does.
    pub seed: Option<u64>,
}

/// What netem counts on Linux 7.2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetemStats {
    /// Packets that were given a delay.
    pub delayed: u64,
    /// Losses.
    pub dropped: u64,
    /// Packets with a wrong bit.
    pub corrupted: u64,
    /// Second copies.
    pub duplicated: u64,
    /// Packets that went ahead.
    pub reordered: u64,
    /// Packets marked instead of dropped.
    pub ecn_marked: u64,
}

/// How what was drawn last bears on the next draw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetemCorrelations {
    /// The correlation of delays.
    pub delay: NetemProbability,
    /// The correlation of losses.
    pub loss: NetemProbability,
    /// The correlation of second copies.
    pub duplicate: NetemProbability,
}

/// The loss model; probabilities are in 2^-32.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetemLoss {
    /// Each with this probability.
    Random(NetemProbability),
    /// A chain of four states; probabilities of going from one to another.
    States {
        /// From good to a burst of losses.
        p13: NetemProbability,
        /// From the burst to good.
        p31: NetemProbability,
        /// From losing in a burst to receiving in it.
        p32: NetemProbability,
        /// From receiving in a burst to losing in it.
        p23: NetemProbability,
        /// From good to a single loss.
        p14: NetemProbability,
    },
    /// Gilbert and Elliott's chain of two.
    Gilbert {
        /// From good to bad.
        p: NetemProbability,
        /// From bad to good.
        r: NetemProbability,
        /// Getting through while bad.
        h: NetemProbability,
        /// Loss while good.
        k1: NetemProbability,
    },
}

impl Default for NetemLoss {
    fn default() -> NetemLoss {
        NetemLoss::Random(0)
    }
}

/// A serial link, which sends one packet after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NetemRate {
    /// Bytes per second.
    pub rate: u64,
    /// Bytes added to each packet; may be negative.
    pub packet_overhead: i32,
    /// Bytes of a cell; 0: packets are sent whole.
    pub cell_size: u32,
    /// Bytes added to each cell; may be negative.
    pub cell_overhead: i32,
}

/// Bursts that begin at intervals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetemSlot {
    /// The shortest interval, ns.
    pub min_delay_ns: i64,
    /// The longest interval, ns.
    pub max_delay_ns: i64,
    /// Packets of a burst; 0: no limit.
    pub max_packets: i32,
    /// Bytes of a burst; 0: no limit.
    pub max_bytes: i32,
    /// The mean interval, where a distribution gives the variation, ns.
    pub dist_delay_ns: i64,
    /// How far it varies then, ns.
    pub dist_jitter_ns: i64,
    /// The distribution of the intervals.
    pub distribution: Option<NetemDistribution>,
}

/// A distribution: where its quantiles lie, 8192 to a standard deviation. A dump does not bring it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetemDistribution(pub Box<[i16]>);

/// The first that a word begins is meant: `d` is delay, `di` distribution, `dr` drop (asked of tc 6.1).
const OPTIONS: &[OptionSpec] = &[
    OptionSpec::short("limit", ValueKind::Size, "1000", "maximum backlog in packets"),
    OptionSpec::short(
        "delay",
        ValueKind::Words("TIME [JITTER [CORRELATION]]"),
        "0",
        "delay of each packet, its jitter, and its correlation with the one before",
    )
    .or_short(&["latency"]),
    OptionSpec::short(
        "distribution",
        ValueKind::Words("normal|pareto|paretonormal|experimental"),
        "uniform",
        "distribution of the jitter; needs a delay with jitter",
    ),
    OptionSpec::short(
        "loss",
        ValueKind::Words(
            "[random] PERCENT [CORRELATION] | state P13 [P31 [P32 [P23 [P14]]]] | gemodel P [R [1-H [1-K]]]",
        ),
        "0%",
        "random loss, a four-state Markov model, or the Gilbert-Elliott model",
    )
    .or_short(&["drop"]),
    OptionSpec::short("ecn", ValueKind::Flag, "off", "mark ECN-capable packets instead of dropping them"),
    OptionSpec::short(
        "duplicate",
        ValueKind::Words("PERCENT [CORRELATION]"),
        "0%",
        "packets that are duplicated",
    ),
    OptionSpec::short(
        "corrupt",
        ValueKind::Words("PERCENT [CORRELATION]"),
        "0%",
        "packets in which one bit is flipped",
    ),
    OptionSpec::short(
        "reorder",
        ValueKind::Words("PERCENT [CORRELATION]"),
        "0%",
        "packets sent at once, before those being delayed; needs a delay",
    ),
    OptionSpec::short("gap", ValueKind::Number, "1", "at most one packet in N is reordered; needs reorder"),
    OptionSpec::short(
        "rate",
        ValueKind::Words("RATE [PACKETOVERHEAD [CELLSIZE [CELLOVERHEAD]]]"),
        "none",
        "rate of the link; with bytes added to each packet, or cells",
    ),
    OptionSpec::short(
        "slot",
        ValueKind::Words("MIN [MAX] | distribution NAME TIME JITTER, then [packets N] [bytes SIZE]"),
        "none",
        "packets leave in bursts of the given intervals and sizes",
    ),
];

const SEED: OptionSpec =
    OptionSpec::short("seed", ValueKind::Decimal, "drawn", "what its own random numbers begin with");

/// All options of tc 7.2 and Linux 7.2.
pub const NEWER: &[OptionSpec] = &{
    let mut all = [SEED; OPTIONS.len() + 1];
    let (old, _) = all.split_at_mut(OPTIONS.len());
    old.copy_from_slice(OPTIONS);
    all
};

pub(super) const NETEM: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    classes: ClassLayout::One,
    filters: Filters::Unsupported,
    ..KindSpec::new(
        Kind::Netem,
        "netem",
        "a network's delay, jitter, loss, second copies, wrong bits, reordering and rate",
    )
};

pub(super) fn untold(params: &NetemParams) -> Option<&'static str> {
    (params.jitter_ns != 0 && params.distribution.is_none()).then_some("the distribution of its delays")
}
