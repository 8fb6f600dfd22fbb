//! Actions that change a packet, or what the kernel knows of it.

/// skbedit: what the kernel knows of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Skbedit {
    /// Its mark becomes this, in the bits of the mask where one is given.
    pub mark: Option<(u32, Option<u32>)>,
    /// Its priority.
    pub priority: Option<u32>,
    /// The transmit queue; a device has one here.
    pub queue: Option<u16>,
    /// For whom it is.
    pub packet_type: Option<PacketType>,
    /// Its priority becomes what its DS field says.
    pub inherit_dsfield: bool,
    /// How things go on.
    pub control: super::Control,
}

/// For whom a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketType {
    /// For this machine.
    Host,
    /// For all.
    Broadcast,
    /// For a group.
    Multicast,
    /// For somebody else.
    OtherHost,
}

impl PacketType {
    /// Its name in tc.
    pub const fn name(self) -> &'static str {
        match self {
            PacketType::Host => "host",
            PacketType::Broadcast => "broadcast",
            PacketType::Multicast => "multicast",
            PacketType::OtherHost => "otherhost",
        }
    }
}
