//! The fields that pedit knows by name.

use tidegate_policy::PeditHeader;

/// A field of a header.
#[derive(Clone, Copy)]
pub(super) struct Field {
    pub(super) header: PeditHeader,
    pub(super) offset: i32,
    pub(super) form: Form,
    /// The bits of it that are rewritten.
    pub(super) retain: u32,
    pub(super) decrements: bool,
}

/// How long a field is, and how its value is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Byte,
    Half,
    Word,
    Address4,
    Address6,
    Ethernet,
    /// IPv6's traffic class: eight bits that lie across bytes.
    Class,
}

impl Form {
    /// All its bits, of a long one those that are counted as its own.
    pub(super) const fn all(self) -> u32 {
        match self {
            Form::Byte | Form::Class => 0xff,
            Form::Half => 0xffff,
            _ => u32::MAX,
        }
    }

    /// Is it longer than a word?
    pub(super) const fn is_long(self) -> bool {
        matches!(self, Form::Address6 | Form::Ethernet)
    }
}

/// The headers whose fields tc knows; of ICMP's it knows none.
pub(super) const HEADERS: [&str; 6] = ["ip", "ip6", "tcp", "udp", "icmp", "eth"];

/// Name, offset, form, and the bits that are rewritten where they are not all.
type Row = (&'static str, i32, Form, Option<u32>);

const ETHERNET: &[Row] =
    &[("dst", 0, Form::Ethernet, None), ("src", 6, Form::Ethernet, None), ("type", 12, Form::Half, None)];
const IPV4: &[Row] = &[
    ("src", 12, Form::Address4, None),
    ("dst", 16, Form::Address4, None),
    ("tos", 1, Form::Byte, None),
    ("dsfield", 1, Form::Byte, None),
    ("ihl", 0, Form::Byte, Some(0x0f)),
    ("ttl", 8, Form::Byte, None),
    ("protocol", 9, Form::Byte, None),
    ("precedence", 1, Form::Byte, None),
    ("nofrag", 6, Form::Byte, Some(0x3f)),
    ("firstfrag", 6, Form::Byte, Some(0x1f)),
    ("ce", 6, Form::Byte, Some(0x80)),
    ("df", 6, Form::Byte, Some(0x40)),
    ("mf", 6, Form::Byte, Some(0x20)),
];
/// Behind an IPv4 header without options; tc has both of ICMP's in one place.
const BEYOND: &[Row] = &[
    ("sport", 20, Form::Half, None),
    ("dport", 22, Form::Half, None),
    ("icmp_type", 20, Form::Byte, None),
    ("icmp_code", 20, Form::Byte, None),
];
const IPV6: &[Row] = &[
    ("src", 8, Form::Address6, None),
    ("dst", 24, Form::Address6, None),
    ("flow_lbl", 0, Form::Word, Some(0x0007_ffff)),
    ("payload_len", 4, Form::Half, None),
    ("nexthdr", 6, Form::Byte, None),
    ("hoplimit", 7, Form::Byte, None),
    ("traffic_class", 0, Form::Class, None),
];
const PORTS: &[Row] = &[("sport", 0, Form::Half, None), ("dport", 2, Form::Half, None)];
const FLAGS: &[Row] = &[("flags", 13, Form::Byte, None)];

/// The field of that name. Without `ex` all are counted from the network header, and there is IPv4 only.
pub(super) fn find(header: &str, name: &str, extended: bool) -> Option<Field> {
    let (place, rows): (PeditHeader, [&[Row]; 2]) = match (header, extended) {
        ("ip", true) => (PeditHeader::Ipv4, [IPV4, &[]]),
        ("ip", false) => (PeditHeader::Network, [IPV4, BEYOND]),
        ("ip6", true) => (PeditHeader::Ipv6, [IPV6, &[]]),
        ("tcp", true) => (PeditHeader::Tcp, [PORTS, FLAGS]),
        ("udp", true) => (PeditHeader::Udp, [PORTS, &[]]),
        ("eth", true) => (PeditHeader::Ethernet, [ETHERNET, &[]]),
        _ => return None,
    };
    let (_, offset, form, retain) = *rows.into_iter().flatten().find(|(known, ..)| *known == name)?;
    let decrements = matches!((header, name), ("ip", "ttl") | ("ip6", "hoplimit"));
    Some(Field { header: place, offset, form, retain: retain.unwrap_or(form.all()), decrements })
}

/// What is done to a field.
pub(super) struct Value {
    pub(super) add: bool,
    /// In the order of the wire, as many as the field has.
    pub(super) bytes: FieldBytes,
    /// All bits that are not retained stay before the value is laid over them.
    pub(super) keep: bool,
    pub(super) retain: u32,
}

/// The value of a field: a number, or more bytes than one holds.
pub(super) enum FieldBytes {
    Number(u32),
    Address([u8; 6]),
    Address6([u8; 16]),
}
