//! fq_pie.

use super::PieParams;

/// fq_pie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FqPieParams {
    /// What each flow's PIE goes by; its limit is that of all packets together.
    pub pie: PieParams,
    /// Queues; fixed once created.
    pub flows: Option<u32>,
    /// Bytes that a flow sends in its turn.
    pub quantum: Option<u32>,
    /// Memory, bytes; more is only counted.
    pub memory_limit: Option<u32>,
    /// The highest probability at which packets are marked, percent; beyond they are dropped.
    pub ecn_prob: Option<u32>,
}
