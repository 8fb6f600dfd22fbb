//! fq.

/// fq's counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FqStats {
    /// Flows that are known.
    pub flows: u32,
    /// Flows without packets.
    pub inactive: u32,
    /// Flows that wait for their time.
    pub throttled: u32,
    /// Until the first of them may send, ns; negative when due.
    pub next_packet_ns: i64,
    /// Flows that were forgotten.
    pub gc: u64,
    /// Packets that went ahead of all flows.
    pub highprio: u64,
    /// Times a flow had to wait.
    pub throttled_times: u64,
    /// How late flows are let go again, on average, ns.
    pub latency_ns: u64,
    /// Packets marked.
    pub ce_mark: u64,
    /// Packets refused because their flow had too many.
    pub flows_plimit: u64,
    /// Packets whose pace came to more than a second.
    pub too_long: u64,
    /// Packets timed beyond the horizon and dropped.
    pub horizon_drops: u64,
    /// Packets timed beyond the horizon and sent at it.
    pub horizon_caps: u64,
}
