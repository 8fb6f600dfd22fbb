//! Actions that change a packet, or what the kernel knows of it.

/// skbedit: what the kernel knows of a packet beside its bytes (tc-skbedit(8)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skbedit {
    /// The packet's mark becomes the first number, in the bits of the mask where one is given.
    pub mark: Option<(u32, Option<u32>)>,
    /// The packet's priority (`skb->priority`) becomes this; a class id makes it a class of a qdisc with that
    /// handle.
    pub priority: Option<u32>,
    /// The number of the transmit queue that the packet is put into (`queue_mapping`).
    pub queue: Option<u16>,
    /// Whom the frame is taken to be for (`ptype`).
    pub packet_type: Option<PacketType>,
    /// The packet's priority is set from its DS field (`inheritdsfield`).
    pub inherit_dsfield: bool,
    /// How the packet continues after this action.
    pub control: super::control::Control,
}

/// Whom a frame is for, by its link-layer destination (`PACKET_*` of packet(7)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketType {
    /// For this machine.
    Host,
    /// For all.
    Broadcast,
    /// For a group.
    Multicast,
    /// For another host.
    OtherHost,
}

impl PacketType {
    /// Its word in tc: `host`, `broadcast`, `multicast`, `otherhost`.
    pub const fn name(self) -> &'static str {
        match self {
            PacketType::Host => "host",
            PacketType::Broadcast => "broadcast",
            PacketType::Multicast => "multicast",
            PacketType::OtherHost => "otherhost",
        }
    }
}
