//! fq_pie.

/// fq_pie's counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FqPieStats {
    /// Packets taken in.
    pub packets_in: u32,
    /// Packets that came to a full queue.
    pub overlimit: u32,
    /// Packets that came when too much memory was in use.
    pub overmemory: u32,
    /// Packets dropped.
    pub dropped: u32,
    /// Packets marked instead of dropped.
    pub ecn_mark: u32,
    /// Times a flow became new.
    pub new_flow_count: u32,
    /// Flows on the list of new ones.
    pub new_flows_len: u32,
    /// Flows on the list of old ones.
    pub old_flows_len: u32,
    /// Memory in use, bytes.
    pub memory_used: u32,
}
