//! What of a packet policies ask about, as numbered bits: the order in which diagrams ask them.
//!
//! Fields that distinguish filters come first (protocol, DSCP, addresses, ports), fields that constrain all
//! packets alike last (lengths, the state of the connection), so that sets share their ends.

use crate::packet::Packet;
use crate::sets::bdd::Literal;
use tidegate_packet::header::ethertype;

macro_rules! fields {
    ($($name:ident $width:literal $doc:literal,)*) => {
        /// A field of a packet, or of what is known of it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Field {
            $(#[doc = $doc] $name,)*
        }

        const WIDTHS: &[u16] = &[$($width,)*];
        const ALL: &[Field] = &[$(Field::$name,)*];
    };
}

fields! {
    Ethertype 16 "The EtherType.",
    Protocol 8 "IPv4's protocol, IPv6's next header.",
    Ds 8 "The DS field, as the packet came.",
    Source 128 "The source address; IPv4 in the last 32 bits.",
    Destination 128 "The destination address.",
    Transport 752 "What follows the network header.",
    Fragment 16 "IPv4's fragment flags and offset.",
    LateSource 128 "The source address after translation.",
    LateDestination 128 "The destination address after translation.",
    LatePorts 32 "The ports after translation.",
    Ttl 8 "Time to live, hop limit.",
    Ident 16 "IPv4's identification.",
    Checksum 16 "IPv4's checksum.",
    FlowLabel 20 "IPv6's flow label.",
    Link 96 "The two addresses of the link header.",
    Other 912 "The bytes of a packet that is neither IPv4 nor IPv6.",
    Ihl 4 "IPv4's header length, in words.",
    Options 752 "What follows the first 20 bytes of an IPv4 header that is longer.",
    Length 16 "IPv4's total length, IPv6's payload length; of others the number of bytes.",
    State 3 "What it is to its connection, as a number of the space's.",
    Input 8 "The device it came in by, as a number of the space's.",
    Carried 72 "What the connection has carried: for each way of counting, an interval as a number of the \
    space's.",
    Connmark 10 "The mark that its connection had, as a number of the space's.",
}

/// Where each field begins.
const STARTS: [u16; ALL.len()] = {
    let mut starts = [0; ALL.len()];
    let mut at = 1;
    while at < ALL.len() {
        starts[at] = starts[at - 1] + WIDTHS[at - 1];
        at += 1;
    }
    starts
};

impl Field {
    /// Behind the last bit of the last field.
    pub(crate) const END: u16 = STARTS[ALL.len() - 1] + WIDTHS[ALL.len() - 1];

    /// Its first, highest bit.
    pub(crate) const fn start(self) -> u16 {
        STARTS[self as usize]
    }

    /// The field's width in bits.
    pub(crate) const fn width(self) -> u16 {
        WIDTHS[self as usize]
    }

    /// Bit number `at` of it, the highest first.
    pub(crate) const fn bit(self, at: u16) -> u16 {
        self.start() + at
    }

    /// The field that a bit belongs to, and which bit of it that is.
    pub(crate) fn of(bit: u16) -> (Field, u16) {
        let at = STARTS.partition_point(|start| *start <= bit) - 1;
        (ALL[at], bit - STARTS[at])
    }

    /// That the bits from `from` on spell the `width` lowest bits of `value`, as far as `mask` is set.
    pub(crate) fn literals(self, from: u16, width: u16, value: u128, mask: u128) -> Vec<Literal> {
        let place = |at: u16| width - 1 - at;
        let selected = (0..width).filter(|at| mask >> place(*at) & 1 == 1);
        selected.map(|at| (self.bit(from + at), value >> place(at) & 1 == 1)).collect()
    }
}

/// How a packet's header is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// IPv4 without options.
    V4,
    /// IPv4 with options: what follows the first 20 bytes is theirs.
    V4Options,
    /// IPv4 with a header of so many words, so that it is known where it ends.
    V4Words(u8),
    /// IPv6.
    V6,
    /// Anything else.
    Other,
}

impl Layout {
    /// Of a packet.
    pub(crate) fn of(packet: &Packet) -> Layout {
        match packet.ethertype {
            ethertype::IPV4 if packet.ihl == 5 => Layout::V4,
            ethertype::IPV4 => Layout::V4Options,
            ethertype::IPV6 => Layout::V6,
            _ => Layout::Other,
        }
    }
}

/// Which fields hold the addresses and ports at a place on the way: translation changes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct View {
    /// The source is as it was sent.
    pub(crate) source: bool,
    /// The destination is as it was sent.
    pub(crate) destination: bool,
    /// The ports are.
    pub(crate) ports: bool,
}

impl View {
    /// As it came.
    pub(crate) const PLAIN: View = View { source: true, destination: true, ports: true };

    pub(crate) fn source(self) -> Field {
        if self.source { Field::Source } else { Field::LateSource }
    }

    pub(crate) fn destination(self) -> Field {
        if self.destination { Field::Destination } else { Field::LateDestination }
    }

    /// Bit number `at` of what follows the network header.
    pub(crate) fn transport(self, at: u16) -> u16 {
        if at < 32 && !self.ports { Field::LatePorts.bit(at) } else { Field::Transport.bit(at) }
    }
}

/// A bit of a packet's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ByteBit {
    /// It is always so.
    Fixed(bool),
    /// It is this bit.
    Bit(u16),
    /// It is this bit of the DS field, which may be rewritten on the way.
    Ds(u16),
}

/// Bit `bit` (the highest first) of the byte at offset `byte` from the network header.
pub(crate) fn byte_bit(layout: Layout, view: View, byte: i32, bit: u16) -> ByteBit {
    let within = |field: Field, raw: i32| ByteBit::Bit(field.bit((byte - raw) as u16 * 8 + bit));
    match (layout, byte) {
        // Before the frame there is nothing.
        (_, ..-14) => ByteBit::Fixed(false),
        (_, ..-2) => within(Field::Link, -14),
        (_, -2 | -1) => within(Field::Ethertype, -2),
        (Layout::Other, _) => within(Field::Other, 0),
        (Layout::V6, _) => v6_bit(view, byte, bit),
        (_, 0) if bit < 4 => ByteBit::Fixed(4 >> (3 - bit) & 1 == 1),
        (_, 0) => ByteBit::Bit(Field::Ihl.bit(bit - 4)),
        (_, 1) => ByteBit::Ds(bit),
        (_, 2 | 3) => within(Field::Length, 2),
        (_, 4 | 5) => within(Field::Ident, 4),
        (_, 6 | 7) => within(Field::Fragment, 6),
        (_, 8) => within(Field::Ttl, 8),
        (_, 9) => within(Field::Protocol, 9),
        (_, 10 | 11) => within(Field::Checksum, 10),
        // An address of 4 bytes is at the end of its field.
        (_, 12..16) => within(view.source(), 0),
        (_, 16..20) => within(view.destination(), 4),
        (Layout::V4Options, _) => within(Field::Options, 20),
        (Layout::V4Words(words), _) if byte < 4 * i32::from(words) => within(Field::Options, 20),
        (Layout::V4Words(words), _) => {
            ByteBit::Bit(view.transport((byte - 4 * i32::from(words)) as u16 * 8 + bit))
        }
        (Layout::V4, _) => ByteBit::Bit(view.transport((byte - 20) as u16 * 8 + bit)),
    }
}

fn v6_bit(view: View, byte: i32, bit: u16) -> ByteBit {
    let within = |field: Field, bytes: i32| ByteBit::Bit(field.bit((byte - bytes) as u16 * 8 + bit));
    match byte {
        0 if bit < 4 => ByteBit::Fixed(6 >> (3 - bit) & 1 == 1),
        0 => ByteBit::Ds(bit - 4),
        1 if bit < 4 => ByteBit::Ds(bit + 4),
        1..4 => ByteBit::Bit(Field::FlowLabel.bit((byte - 1) as u16 * 8 + bit - 4)),
        4 | 5 => within(Field::Length, 4),
        6 => within(Field::Protocol, 6),
        7 => within(Field::Ttl, 7),
        8..24 => within(view.source(), 8),
        24..40 => within(view.destination(), 24),
        _ => ByteBit::Bit(view.transport((byte - 40) as u16 * 8 + bit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bit_knows_its_field() {
        for field in ALL {
            for at in 0..field.width() {
                assert_eq!(Field::of(field.bit(at)), (*field, at));
            }
        }
    }

    #[test]
    fn fields_are_where_the_rfcs_put_them() {
        // RFC 791: the last bit of the destination address is the last of byte 19; RFC 8200: of byte 39.
        let last = ByteBit::Bit(Field::Destination.bit(127));
        assert_eq!(byte_bit(Layout::V4, View::PLAIN, 19, 7), last);
        assert_eq!(byte_bit(Layout::V6, View::PLAIN, 39, 7), last);
        assert_eq!(byte_bit(Layout::V4, View::PLAIN, 12, 0), ByteBit::Bit(Field::Source.bit(96)));
        assert_eq!(byte_bit(Layout::V6, View::PLAIN, 3, 7), ByteBit::Bit(Field::FlowLabel.bit(19)));
        assert_eq!(byte_bit(Layout::V6, View::PLAIN, 1, 3), ByteBit::Ds(7));
    }
}
