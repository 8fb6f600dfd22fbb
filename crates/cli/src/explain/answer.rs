//! What was asked, and what came of it.

use tidegate_inspect::{Packet, Reading, Story};

/// A packet that is told of.
pub(super) struct ExplainedPacket {
    /// What is said before its story, where there are several.
    pub(super) heading: String,
    pub(super) packet: Packet,
}

/// One packet's story, under one policy or two.
pub(super) struct PacketExplanation {
    pub(super) packet: ExplainedPacket,
    pub(super) story: Story,
    pub(super) other: Option<Story>,
}

/// What was asked, and what came of it.
pub(super) struct Answer {
    pub(super) reading: Reading,
    pub(super) other: Option<Reading>,
    pub(super) explanations: Vec<PacketExplanation>,
}
