//! What is numbered in a network, and what a packet carries for the simulation.

use crate::tcp::receiver::AckSegment;
use tidegate_packet::Time;

/// A route: the links a packet crosses in turn; valid in the network that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathId(pub(crate) u32);
/// A TCP flow, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FlowId(pub(crate) u32);
/// A ping, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProbeId(pub(crate) u32);
/// A transaction, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TransactionId(pub(crate) u32);
/// An open-loop source, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceId(pub(crate) u32);

/// What a packet is to the simulation, beside the pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// The acknowledgement that ends a handshake.
    #[default]
    Bare,
    Syn,
    SynAck,
    Data,
    Ack,
    EchoRequest,
    EchoReply,
    Open,
    Question,
    Answer,
    /// It was injected from outside.
    Foreign,
    /// A copy that was redirected to where nothing expects it.
    Stray,
}

/// The transport's side of a packet, in a table indexed by slot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TransportMeta {
    pub(crate) role: Role,
    pub(crate) cwr: bool,
    /// A segment ends what its application wrote.
    pub(crate) push: bool,
    /// It also ends the data of its direction.
    pub(crate) fin: bool,
    /// A machine made it of another packet.
    pub(crate) copy: bool,
    /// Counts against its sender's share of the local queue.
    pub(crate) local: bool,
    /// Where its route continues: an index into the table of routes.
    pub(crate) route: u32,
    pub(crate) owner: u32,
    pub(crate) seq: u32,
    pub(crate) ack: AckSegment,
    pub(crate) sent: Time,
    /// A segment's timestamp, in ms.
    pub(crate) stamp: u32,
}
