//! What a world is laid out of: ends, cables, and the ways over them.

use crate::link::{LinkFraming, LinkId};
use crate::machine::Limit;
use crate::transport_meta::PathId;
use alloc::vec::Vec;
use tidegate_gateway::{DeviceId, Gateway};
use tidegate_packet::Nanos;

/// Where a cable ends: at a node, and if that is a machine at one of its devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CableEnd {
    /// Which node.
    pub node: usize,
    /// Which of the machine's devices.
    pub device: Option<usize>,
}

/// One direction of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CableDirection {
    /// Bits per second; `None`: it takes no time.
    pub bits_per_second: Option<u64>,
    /// At most so many packets per second.
    pub packet_rate: Option<u64>,
    /// One way.
    pub delay: Nanos,
    /// Irregularity of the line, in order.
    pub jitter: Nanos,
    /// What each frame costs.
    pub framing: LinkFraming,
    /// What waits before it, where no machine's device does.
    pub limit: Limit,
    /// Frames the device takes ahead, where one sends.
    pub ring: u32,
    /// Its byte queue limit.
    pub queue_limit: Option<u32>,
}

impl CableDirection {
    /// A line of this rate and delay, with an endless queue before it and one frame in the device that sends.
    pub fn plain(bits_per_second: u64, delay: Nanos) -> CableDirection {
        CableDirection {
            bits_per_second: Some(bits_per_second),
            packet_rate: None,
            delay,
            jitter: Nanos(0),
            framing: LinkFraming::default(),
            limit: Limit::None,
            ring: 1,
            queue_limit: None,
        }
    }
}

/// A cable, or a switch: each of the first ends is joined to the last one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cable {
    /// Two or more.
    pub ends: Vec<CableEnd>,
    /// From each of the first to the last.
    pub there: CableDirection,
    /// The opposite direction.
    pub back: CableDirection,
}

/// A machine of the layout.
pub struct RouterNode {
    /// Which node it is.
    pub node: usize,
    /// The model, configured.
    pub gateway: Gateway,
    /// Its devices, in the order in which ends name them.
    pub devices: Vec<DeviceId>,
}

/// A network to be.
pub struct Layout {
    /// How many nodes.
    pub nodes: usize,
    /// What joins them.
    pub cables: Vec<Cable>,
    /// The machines among them.
    pub machines: Vec<RouterNode>,
    /// Irregularity of nodes that are neither machines nor on the way: uniform up to this for each packet.
    pub host_jitter: Nanos,
    /// The nodes that it holds for.
    pub hosts: Vec<bool>,
    /// The seed of all random draws.
    pub seed: u64,
}

/// The links of a cable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Laid {
    /// From each of the first ends to the last.
    pub there: Vec<LinkId>,
    /// From the last end: one for all.
    pub back: Option<LinkId>,
    /// What leads on from there into a machine, where the last end serves several: for each of the first
    /// ends.
    pub(super) tails: Vec<Option<LinkId>>,
}

/// A way from one node to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodePath {
    /// The route in the network.
    pub path: PathId,
    /// Where it begins; `None`: it begins and ends at the same node.
    pub first: Option<CableEnd>,
    /// Where it ends.
    pub last: Option<CableEnd>,
}

/// One cable of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) cable: usize,
    /// The first end in question: packets go from it to the last one, or back.
    pub(super) spoke: usize,
    pub(super) there: bool,
}
