//! The packets that are explained, and the explanations.

use tidegate_inspect::{Packet, PolicyModel, Story};

/// A packet that is explained.
pub(super) struct ExplainedPacket {
    /// The heading of its explanation, where there are several.
    pub(super) heading: String,
    pub(super) packet: Packet,
}

/// One packet's story, under one policy or two.
pub(super) struct PacketExplanation {
    pub(super) packet: ExplainedPacket,
    pub(super) story: Story,
    pub(super) other: Option<Story>,
}

/// The packets that are explained, and the explanations.
pub(super) struct Answer {
    pub(super) reading: PolicyModel,
    pub(super) other: Option<PolicyModel>,
    pub(super) explanations: Vec<PacketExplanation>,
}
