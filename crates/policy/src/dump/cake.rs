//! What cake counts.

use tidegate_packet::Rate;

/// cake's counters and state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CakeStats {
    /// The most memory that was in use, bytes.
    pub memory_used: u32,
    /// How much may be, bytes.
    pub memory_limit: u32,
    /// The rate that the link is taken to have.
    pub capacity: Rate,
    /// Shortest and longest packet as the network layer sees it, bytes.
    pub network_sizes: (u16, u16),
    /// Shortest and longest packet as the link is charged for it, bytes.
    pub adjusted_sizes: (u16, u16),
    /// Mean bytes of the link header.
    pub header_offset: u16,
    /// Its tins, in the order of a listing.
    pub tins: Vec<CakeTinStats>,
}

/// A tin's counters and state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CakeTinStats {
    /// The rate up to which it goes before others.
    pub threshold: Rate,
    /// Bytes taken in.
    pub bytes: u64,
    /// Bytes waiting.
    pub backlog: u32,
    /// Sojourn time that its flows are held to, µs.
    pub target_us: u32,
    /// Time that senders are given to react, µs.
    pub interval_us: u32,
    /// Delay of its slowest flows, µs.
    pub peak_delay_us: u32,
    /// Mean delay, µs.
    pub average_delay_us: u32,
    /// Delay of its sparse flows, µs.
    pub base_delay_us: u32,
    /// Packets taken in.
    pub packets: u32,
    /// Packets whose flow was found beside its place.
    pub way_hits: u32,
    /// Packets that began a flow.
    pub way_misses: u32,
    /// Packets that share a queue with another flow, all eight being taken.
    pub way_collisions: u32,
    /// Packets dropped.
    pub drops: u32,
    /// Packets marked instead.
    pub marks: u32,
    /// Acknowledgements left out.
    pub ack_drops: u32,
    /// Flows that send less than their share.
    pub sparse_flows: u32,
    /// Flows that fill theirs.
    pub bulk_flows: u32,
    /// Flows that take no notice of drops.
    pub unresponsive_flows: u32,
    /// The longest packet, bytes.
    pub longest: u16,
    /// Bytes that a flow sends in its turn.
    pub quantum: u16,
}

/// A flow of cake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CakeFlowStats {
    /// Bytes it may still send in its turn.
    pub deficit: i32,
    /// In a dropping episode?
    pub dropping: bool,
    /// How often it has been signalled in it.
    pub count: u32,
    /// Since the next signal was due, µs; negative: until then. Told in a dropping episode.
    pub drop_next_us: i64,
    /// Probability of a drop because it does not respond, 2^32 = 1.
    pub blue_probability: u32,
    /// Since that changed, µs. Told where there is one.
    pub blue_timer_us: u32,
}
