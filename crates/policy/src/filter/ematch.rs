//! basic, and the conditions it puts together (tc-ematch(8)).

use alloc::vec::Vec;
use tidegate_packet::Handle;

/// basic: packets are classified by an expression of ematches (tc-basic(8), tc-ematch(8)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BasicParams {
    /// Where matching packets go.
    pub classid: Option<Handle>,
    /// What must hold; empty: everything matches.
    pub terms: Vec<Term>,
}

/// A condition and how the next one is joined to it.
///
/// Conditions are evaluated in order, and the evaluation ends as soon as one decides: after `and` the first
/// that is false, after `or` the first that is true. So `A and B or C` is false where A is, whatever C is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// It holds when the condition does not.
    pub not: bool,
    /// The next is joined with `or`; else with `and`.
    pub or: bool,
    /// The condition itself.
    pub what: Ematch,
}

/// One condition of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ematch {
    /// A number in the packet compared with another.
    Cmp {
        /// How many bytes it has.
        width: Width,
        /// Where it is in the layer.
        offset: u16,
        /// The layer from whose first byte the offset counts.
        layer: Layer,
        /// Bits that are compared; 0: all.
        mask: u32,
        /// The bytes are turned round before.
        trans: bool,
        /// How the value is compared.
        how: EmatchCompare,
        /// With this.
        value: u32,
    },
    /// Bytes in the packet that must be these.
    Nbyte {
        /// Where they are in the layer.
        offset: u16,
        /// The layer from whose first byte the offset counts.
        layer: Layer,
        /// They.
        data: Vec<u8>,
    },
    /// A word, as u32 compares it.
    U32(super::parts::U32Key),
    /// What the kernel knows of the packet.
    Meta {
        /// What is compared.
        left: MetaValue,
        /// How the value is compared.
        how: EmatchCompare,
        /// With what.
        right: MetaValue,
    },
    /// The identifier of a CAN frame, one of these.
    Canid(Vec<CanRule>),
    /// An expression in parentheses.
    All(Vec<Term>),
}

/// Identifiers of CAN frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CanRule {
    /// The identifier, with [`CanRule::EXTENDED`] for one of 29 bits.
    pub id: u32,
    /// Bits that are compared.
    pub mask: u32,
}

impl CanRule {
    /// The identifier has 29 bits (EFF), not 11 (SFF).
    pub const EXTENDED: u32 = 1 << 31;
    /// The bits of the shorter identifiers.
    pub const SHORT: u32 = 0x7ff;
    /// The bits of the longer ones.
    pub const LONG: u32 = 0x1fff_ffff;
}

/// How two numbers are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmatchCompare {
    /// Equal.
    Eq,
    /// The first is greater.
    Gt,
    /// The first is less.
    Lt,
}

impl EmatchCompare {
    /// Its name in tc.
    pub const fn name(self) -> &'static str {
        match self {
            EmatchCompare::Eq => "eq",
            EmatchCompare::Gt => "gt",
            EmatchCompare::Lt => "lt",
        }
    }

    /// Whether `left` is equal to, less than or greater than `right`, by this comparison.
    pub const fn matches(self, left: u64, right: u64) -> bool {
        match self {
            EmatchCompare::Eq => left == right,
            EmatchCompare::Gt => left > right,
            EmatchCompare::Lt => left < right,
        }
    }
}

/// How many bytes a number in a packet has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// One byte.
    U8,
    /// Two.
    U16,
    /// Four.
    U32,
}

impl Width {
    /// Its name in tc.
    pub const fn name(self) -> &'static str {
        match self {
            Width::U8 => "u8",
            Width::U16 => "u16",
            Width::U32 => "u32",
        }
    }

    /// How many bytes: 1, 2 or 4.
    pub const fn bytes(self) -> usize {
        match self {
            Width::U8 => 1,
            Width::U16 => 2,
            Width::U32 => 4,
        }
    }
}

/// From where an offset counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Layer {
    /// The link header.
    Link,
    /// The network header.
    #[default]
    Network,
    /// The header behind it.
    Transport,
}

impl Layer {
    /// Its number in tc.
    pub const fn number(self) -> u8 {
        match self {
            Layer::Link => 0,
            Layer::Network => 1,
            Layer::Transport => 2,
        }
    }
}

/// One side of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaValue {
    /// What it is.
    pub what: MetaId,
    /// Shifted right by so many bits,
    pub shift: u8,
    /// then only these bits; 0: all.
    pub mask: u32,
}

/// What the kernel knows of a packet, or of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetaId {
    /// This number.
    Number(u32),
    /// A random draw of 32 bits.
    Random,
    /// The load of the last minute, 5 or 15 minutes; nothing loads this machine.
    Loadavg(u8),
    /// The number of the device the packet is on.
    Dev,
    /// The packet's priority (`skb->priority`).
    Priority,
    /// The packet's EtherType.
    Protocol,
    /// Whom the packet is for (`PACKET_*` of linux/if_packet.h): 0 this machine, 3 another host, 4 outgoing.
    PktType,
    /// The packet's length in bytes.
    PktLen,
    /// How much of it lies apart from its beginning.
    DataLen,
    /// The length of the link header.
    MacLen,
    /// The packet's firewall mark.
    Mark,
    /// Its tc index.
    TcIndex,
    /// The realm of its route.
    RtClassid,
    /// The device it came in by, as routing knows it.
    RtIif,
    /// Its VLAN tag.
    Vlan,
    /// Something of the socket that sent it, by tc's name.
    Socket(&'static str),
}

impl MetaId {
    /// What sockets can be requested, as tc calls it.
    pub const SOCKET: [&'static str; 18] = [
        "sk_family",
        "sk_state",
        "sk_reuse",
        "sk_bind_if",
        "sk_refcnt",
        "sk_shutdown",
        "sk_proto",
        "sk_type",
        "sk_rcvbuf",
        "sk_rmem",
        "sk_wmem",
        "sk_omem",
        "sk_wmem_queue",
        "sk_snd_queue",
        "sk_rcv_queue",
        "sk_err_queue",
        "sk_fwd_alloc",
        "sk_sndbuf",
    ];

    /// The others, as tc calls them.
    pub const NAMES: [(&'static str, MetaId); 16] = [
        ("random", MetaId::Random),
        ("loadavg_1", MetaId::Loadavg(1)),
        ("loadavg_5", MetaId::Loadavg(5)),
        ("loadavg_15", MetaId::Loadavg(15)),
        ("dev", MetaId::Dev),
        ("priority", MetaId::Priority),
        ("protocol", MetaId::Protocol),
        ("pkt_type", MetaId::PktType),
        ("pkt_len", MetaId::PktLen),
        ("data_len", MetaId::DataLen),
        ("mac_len", MetaId::MacLen),
        ("nf_mark", MetaId::Mark),
        ("tc_index", MetaId::TcIndex),
        ("rt_classid", MetaId::RtClassid),
        ("rt_iif", MetaId::RtIif),
        ("vlan", MetaId::Vlan),
    ];

    /// The one with this name in tc; `None`: tc knows none.
    pub fn from_name(name: &str) -> Option<MetaId> {
        let name = if name == "fwmark" { "nf_mark" } else { name };
        let socket = || MetaId::SOCKET.into_iter().find(|known| *known == name).map(MetaId::Socket);
        MetaId::NAMES.into_iter().find(|(known, _)| *known == name).map(|(_, id)| id).or_else(socket)
    }

    /// Its name in tc; a number has none.
    pub fn name(self) -> Option<&'static str> {
        match self {
            MetaId::Socket(name) => Some(name),
            id => MetaId::NAMES.into_iter().find(|(_, known)| *known == id).map(|(name, _)| name),
        }
    }
}
