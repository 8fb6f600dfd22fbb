//! fq.

/// fq.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FqParams {
    /// Packets in all.
    pub limit: Option<u32>,
    /// Packets of one flow.
    pub flow_limit: Option<u32>,
    /// log2 of the buckets that flows are looked up in.
    pub buckets_log: Option<u32>,
    /// Which bits of the flow hash tell flows without a socket apart.
    pub orphan_mask: Option<u32>,
    /// Are flows paced?
    pub pacing: Option<bool>,
    /// Bytes that a flow sends in its turn.
    pub quantum: Option<u32>,
    /// Bytes that a new flow may send at first.
    pub initial_quantum: Option<u32>,
    /// The rate that no flow exceeds, bytes per second; `u32::MAX`: none.
    pub max_rate: Option<u32>,
    /// A flow at most this fast, bytes per second, is paced packet by packet.
    pub low_rate_threshold: Option<u32>,
    /// Silence after which a flow has its quantum again, µs.
    pub refill_delay_us: Option<u32>,
    /// Mark what leaves so much later than it should, µs; `u32::MAX`: never.
    pub ce_threshold_us: Option<u32>,
    /// How much later than asked for a timer may fire, ns.
    pub timer_slack_ns: Option<u32>,
    /// How far ahead a packet may be timed, µs.
    pub horizon_us: Option<u32>,
    /// Drop what is timed further ahead (else it is sent at the horizon).
    pub horizon_drop: Option<bool>,
}
