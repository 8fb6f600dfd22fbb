//! fq: flows take turns and are paced.

use super::name::Kind;
use super::prio::PrioParams;
use super::row::{Ahead, Changes, Reports};
use crate::spec::table::{KindSpec, OptionSpec, ValueKind};
use alloc::vec;
use alloc::vec::Vec;

/// The options of fq (tc-fq(8)). `None`: not given, so the default when it is made, and as it was when it is
/// changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FqParams {
    /// Packets that may wait, of all flows. Default: 10000.
    pub limit: Option<u32>,
    /// Packets of one flow that may wait. Default: 100.
    pub flow_limit: Option<u32>,
    /// log2 of the buckets that flows are looked up in, 1 to 18. Default: 10.
    pub buckets_log: Option<u32>,
    /// The bits of the flow hash that distinguish flows without a socket.
    pub orphan_mask: Option<u32>,
    /// Are flows paced at the rate that their socket names? Default: yes.
    pub pacing: Option<bool>,
    /// Bytes that a flow sends in its turn. Default: two of the device's largest frames.
    pub quantum: Option<u32>,
    /// Bytes that a new flow may send at first. Default: ten of the device's largest frames.
    pub initial_quantum: Option<u32>,
    /// The rate that no flow exceeds, bytes per second; `u32::MAX`: none.
    pub max_rate: Option<u32>,
    /// A flow at most this fast, bytes per second, is paced packet by packet.
    pub low_rate_threshold: Option<u32>,
    /// Silence after which a flow has its quantum again, µs.
    pub refill_delay_us: Option<u32>,
    /// Mark what leaves so much later than it should, µs; `u32::MAX`: never.
    pub ce_threshold_us: Option<u32>,
    /// How much later than requested a timer may fire, ns.
    pub timer_slack_ns: Option<u32>,
    /// How far ahead a packet may be timed, µs.
    pub horizon_us: Option<u32>,
    /// Drop what is timed further ahead (else it is sent at the horizon).
    pub horizon_drop: Option<bool>,
    /// The band, 0 to 2, of each of the 16 priorities (Linux 7.2).
    pub priomap: Option<[u8; 16]>,
    /// Bytes that each band sends in its turn, at least 16384 (Linux 7.2).
    pub weights: Option<[i32; FqBands::COUNT]>,
    /// How far ahead packets may be handed to a device that paces them itself, µs (Linux 7.2).
    pub offload_horizon_us: Option<u32>,
}

/// The bands of fq on Linux 7.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqBands {
    /// The band of each priority.
    pub priomap: [u8; 16],
    /// Bytes that each band sends in its turn.
    pub weights: [i32; FqBands::COUNT],
}

impl FqBands {
    /// How many there are.
    pub const COUNT: usize = 3;
    /// The least weight.
    pub const LEAST_WEIGHT: i32 = 16_384;
}

impl Default for FqBands {
    fn default() -> FqBands {
        FqBands { priomap: PrioParams::MAP, weights: [589_824, 196_608, 65_536] }
    }
}

/// What fq counted since it was made, and its lists of flows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FqStats {
    /// Flows that it knows.
    pub flows: u32,
    /// Flows that it knows and that have no packets.
    pub inactive: u32,
    /// Flows that wait for their time.
    pub throttled: u32,
    /// Until the first of them may send, ns; negative when due.
    pub next_packet_ns: i64,
    /// Flows that were forgotten.
    pub gc: u64,
    /// Packets that went ahead of all flows.
    pub highprio: u64,
    /// How often a flow had to wait for its time.
    pub throttled_times: u64,
    /// How late throttled flows are served again, on average, ns.
    pub latency_ns: u64,
    /// Packets marked because they left too late (`ce_threshold`).
    pub ce_mark: u64,
    /// Packets refused because their flow had too many.
    pub flows_plimit: u64,
    /// Packets whose pace came to more than a second.
    pub too_long: u64,
    /// Packets timed beyond the horizon and dropped.
    pub horizon_drops: u64,
    /// Packets timed beyond the horizon and sent at it.
    pub horizon_caps: u64,
    /// Packets that skipped the flows.
    pub fastpath: u64,
    /// Packets of each band that wait in flows.
    pub band_packets: [u32; FqBands::COUNT],
    /// Packets of each band refused because too many waited.
    pub band_drops: [u64; FqBands::COUNT],
}

const OPTIONS: &[OptionSpec] = &[
    OptionSpec::exact("limit", ValueKind::Number, "10000", "packets in all"),
    OptionSpec::exact("flow_limit", ValueKind::Number, "100", "packets of one flow"),
    OptionSpec::exact("buckets", ValueKind::Number, "1024", "hash buckets, rounded up to a power of two"),
    OptionSpec::exact("maxrate", ValueKind::Rate32, "none", "maximum rate of each flow"),
    OptionSpec::exact(
        "low_rate_threshold",
        ValueKind::Rate32,
        "550kbit",
        "a flow at most this fast is paced packet by packet",
    ),
    OptionSpec::exact(
        "ce_threshold",
        ValueKind::Time,
        "off",
        "mark packets that leave this much later than scheduled",
    ),
    OptionSpec::exact(
        "timer_slack",
        ValueKind::Nanos,
        "10us",
        "how much later than requested a flow may be woken",
    ),
    OptionSpec::exact("horizon", ValueKind::Time, "10s", "how far in the future a packet may be scheduled"),
    OptionSpec::exact(
        "horizon_cap",
        ValueKind::Flag,
        "",
        "send packets scheduled beyond the horizon at the horizon",
    ),
    OptionSpec::exact("horizon_drop", ValueKind::Flag, "this", "drop packets scheduled beyond the horizon"),
    OptionSpec::exact("defrate", ValueKind::Rate32, "", "accepted, without effect"),
    OptionSpec::exact(
        "quantum",
        ValueKind::Number,
        "two of the largest frames",
        "bytes that a flow sends per round",
    ),
    OptionSpec::exact(
        "initial_quantum",
        ValueKind::Number,
        "ten of the largest frames",
        "bytes a new flow may send at first",
    ),
    OptionSpec::exact(
        "orphan_mask",
        ValueKind::Number,
        "1023",
        "bits of the hash that identifies flows without a socket",
    )
    .blamed("initial_quantum"),
    OptionSpec::exact(
        "refill_delay",
        ValueKind::Time,
        "40ms",
        "idle time after which a flow may send its quantum at once",
    ),
    OptionSpec::exact("pacing", ValueKind::Flag, "this", "pace each flow"),
    OptionSpec::exact("nopacing", ValueKind::Flag, "", "do not pace the flows"),
];

/// Options of tc 7.2 and Linux 7.2, beside those of 6.1.
const ADDED: [OptionSpec; 3] = [
    OptionSpec::exact(
        "bands",
        ValueKind::Words("3 priomap BAND…"),
        "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1",
        "band of each priority from 0 to 15",
    ),
    OptionSpec::exact(
        "weights",
        ValueKind::Words("BYTES BYTES BYTES"),
        "589824 196608 65536",
        "bytes that each band sends in its turn",
    ),
    OptionSpec::exact(
        "offload_horizon",
        ValueKind::Time,
        "0",
        "how far ahead packets may be handed to a device that paces them itself",
    ),
];

/// All options of tc 7.2 and Linux 7.2.
pub const NEWER: &[OptionSpec] = &{
    let mut all = [ADDED[0]; OPTIONS.len() + ADDED.len()];
    let (old, added) = all.split_at_mut(OPTIONS.len());
    old.copy_from_slice(OPTIONS);
    added.copy_from_slice(&ADDED);
    all
};

pub(super) const FQ: KindSpec = KindSpec {
    qdisc: Some(OPTIONS),
    changes: Changes::InPlace,
    reports: Reports::EvenIfRefused,
    ..KindSpec::new(Kind::Fq, "fq", "flows take turns and are held to their rates")
};

pub(super) fn ahead(params: &FqParams) -> Vec<Ahead> {
    vec![
        Ahead::Turns { quantum: params.quantum.unwrap_or(3028), flows: None },
        Ahead::Packets {
            queue: "flow's own queue",
            limit: params.flow_limit.unwrap_or(100).min(params.limit.unwrap_or(10_000)),
        },
    ]
}
