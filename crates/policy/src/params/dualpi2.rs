//! dualpi2's parameters.

/// dualpi2 (RFC 9332).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DualPi2Params {
    /// Packets of both queues together.
    pub limit: Option<u32>,
    /// Memory of both queues together, bytes. Default: `limit` times two largest frames.
    pub memory_limit: Option<u32>,
    /// The classic queue's delay to hold, µs.
    pub target_us: Option<u32>,
    /// Time between adjustments of the probability, µs.
    pub tupdate_us: Option<u32>,
    /// Weight of the delay's distance from the target, in 1/256 Hz.
    pub alpha: Option<u32>,
    /// Weight of the delay's growth, in 1/256 Hz.
    pub beta: Option<u32>,
    /// From where on every packet of the low-latency queue is marked.
    pub step: Option<StepThreshold>,
    /// Packets that must wait in the low-latency queue for the step to mark.
    pub min_qlen_step: Option<u32>,
    /// How much more often low-latency packets are marked: k of RFC 9332.
    pub coupling: Option<u8>,
    /// Overload: drop low-latency packets too, instead of letting the queue grow to its limit.
    pub drop_on_overload: Option<bool>,
    /// Drop when a packet arrives instead of when it leaves.
    pub drop_at_enqueue: Option<bool>,
    /// What the classic queue is sure of beside a full low-latency queue, per cent.
    pub classic_protection: Option<u8>,
    /// Bits of the ECN field that make a packet low-latency: 1 = ECT(1) and CE, 3 = ECT(0) as well.
    pub ecn_mask: Option<u8>,
    /// Cut what the sender put together into the packets it stands for.
    pub split_gso: Option<bool>,
}

/// From where on every packet of the low-latency queue is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepThreshold {
    /// It waited longer than so many µs.
    Micros(u32),
    /// More packets wait behind it.
    Packets(u32),
}
