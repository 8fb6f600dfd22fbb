//! dualpi2's counters.

/// dualpi2's counters and state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DualPi2Stats {
    /// The base probability, 2^32 - 1 = 1.
    pub prob: u32,
    /// How long the classic queue's first packet had waited at the last adjustment, µs.
    pub delay_c_us: u32,
    /// The same of the low-latency queue.
    pub delay_l_us: u32,
    /// Packets taken into the classic queue.
    pub packets_in_c: u32,
    /// Packets taken into the low-latency queue.
    pub packets_in_l: u32,
    /// The most packets that ever waited.
    pub maxq: u32,
    /// Packets marked by the probability.
    pub ecn_mark: u32,
    /// Packets marked by the step.
    pub step_marks: u32,
    /// Whose turn it is: above 0 the classic queue's.
    pub credit: i32,
    /// Memory in use, bytes.
    pub memory_used: u32,
    /// The most that ever was.
    pub max_memory_used: u32,
    /// What it is limited to.
    pub memory_limit: u32,
}
