//! Names for the bytes that u32 compares.

use core::net::Ipv4Addr;
use tidegate_packet::Head;
use tidegate_packet::header::{ethertype, proto};
use tidegate_policy::{FilterParams, U32Key};
use tidegate_syntax::tc::conditions;

/// How a field's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Number,
    Hex,
    Protocol,
    /// Four bytes of an address.
    Address,
}

/// A field of a header: which bits of which word, counted from the word's lowest.
struct Field {
    offset: i32,
    low: u32,
    bits: u32,
    name: &'static str,
    form: Form,
}

const fn field(offset: i32, low: u32, bits: u32, name: &'static str, form: Form) -> Field {
    Field { offset, low, bits, name, form }
}

/// IPv4's header (RFC 791) and, behind it where it has no options, the ports.
const IPV4: &[Field] = &[
    field(0, 28, 4, "version", Form::Number),
    field(0, 24, 4, "IHL", Form::Number),
    field(0, 16, 8, "TOS", Form::Hex),
    field(0, 0, 16, "length", Form::Number),
    field(4, 16, 16, "identification", Form::Number),
    field(4, 13, 3, "fragment flags", Form::Hex),
    field(4, 0, 13, "fragment offset", Form::Number),
    field(8, 24, 8, "TTL", Form::Number),
    field(8, 16, 8, "protocol", Form::Protocol),
    field(8, 0, 16, "checksum", Form::Hex),
    field(12, 0, 32, "source", Form::Address),
    field(16, 0, 32, "destination", Form::Address),
];

/// IPv6's header (RFC 8200).
const IPV6: &[Field] = &[
    field(0, 28, 4, "version", Form::Number),
    field(0, 20, 8, "traffic class", Form::Hex),
    field(0, 0, 20, "flow label", Form::Hex),
    field(4, 16, 16, "payload length", Form::Number),
    field(4, 8, 8, "next header", Form::Protocol),
    field(4, 0, 8, "hop limit", Form::Number),
];

/// What TCP (RFC 9293) and UDP begin with.
const PORTS: &[Field] =
    &[field(0, 16, 16, "source port", Form::Number), field(0, 0, 16, "destination port", Form::Number)];

/// The rest of TCP's header.
const TCP: &[Field] = &[
    field(4, 0, 32, "sequence number", Form::Number),
    field(8, 0, 32, "acknowledgement", Form::Number),
    field(12, 28, 4, "TCP header length", Form::Number),
    field(12, 16, 8, "TCP flags", Form::Hex),
    field(12, 0, 16, "window", Form::Number),
];

/// ICMP's first word.
const ICMP: &[Field] =
    &[field(0, 24, 8, "ICMP type", Form::Number), field(0, 16, 8, "ICMP code", Form::Number)];

/// A part of a comparison: a field, or bits without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What it is called.
    pub name: String,
    /// The bits compared; `None`: all of them.
    pub mask: Option<String>,
    /// What the packet has there; `None`: the packet ends before.
    pub has: Option<String>,
    /// What is left of that under the mask.
    pub masked: Option<String>,
    /// The value that is compared with.
    pub wanted: String,
    /// Are they the same?
    pub matches: bool,
}

impl Part {
    /// `TOS 0xb8 & 0x1c = 0x18, not 0x10`.
    pub fn text(&self) -> String {
        let Part { name, mask, has, masked, wanted, matches } = self;
        let (Some(has), Some(masked)) = (has, masked) else {
            return format!("{name}: the packet ends before");
        };
        let words = match mask {
            Some(mask) => format!("{name} {has} & {mask} = {masked}"),
            None => format!("{name} {has}"),
        };
        if *matches { format!("{words} = {wanted}") } else { format!("{words}, not {wanted}") }
    }
}

/// A comparison with packets of an EtherType, field by field, and what this packet has there.
pub fn compare(key: &U32Key, protocol: u16, head: &Head) -> Vec<Part> {
    let word = head.word(key.offset);
    let transport = transport(protocol, head);
    let (mut parts, mut left) = (Vec::new(), key.mask);
    let ours = |field: &&Field| field.offset == key.offset;
    let behind = |field: &&Field| Some(field.offset) == transport.map(|(at, _)| key.offset - at as i32);
    let network: &[Field] = match protocol {
        ethertype::IPV4 => IPV4,
        ethertype::IPV6 => IPV6,
        _ => &[],
    };
    let inner: [&[Field]; 2] = match transport.map(|(_, protocol)| protocol) {
        Some(proto::TCP) => [PORTS, TCP],
        Some(proto::UDP | 33 | 132 | 136) => [PORTS, &[]],
        Some(proto::ICMP | proto::ICMPV6) => [ICMP, &[]],
        _ => [&[], &[]],
    };
    let inside = inner.into_iter().flatten().filter(behind).filter(|_| key.offset >= 20);
    for field in network.iter().filter(ours).chain(inside) {
        let bits = (u64::MAX >> (64 - field.bits)) as u32;
        let mask = key.mask >> field.low & bits;
        if mask != 0 {
            left &= !(bits << field.low);
            parts.push(part(
                field.name,
                field.form,
                [mask, bits],
                word.map(|w| w >> field.low & bits),
                key.value >> field.low & bits,
            ));
        }
    }
    if left != 0 {
        let name = word_name(protocol, key);
        parts.push(part(&name, Form::Hex, [left, u32::MAX], word, key.value & left));
    }
    parts
}

fn part(name: &str, form: Form, [mask, all]: [u32; 2], has: Option<u32>, wanted: u32) -> Part {
    let wide = all > 0xff;
    let write = |value: u32| match form {
        Form::Number => value.to_string(),
        Form::Hex if wide => format!("{value:#010x}"),
        Form::Hex => format!("{value:#04x}"),
        Form::Protocol => protocol_name(value as u8),
        Form::Address => Ipv4Addr::from(value).to_string(),
    };
    Part {
        name: name.to_owned(),
        mask: (mask != all).then(|| match form {
            // A network is written by the length of its prefix.
            Form::Address => Ipv4Addr::from(mask).to_string(),
            _ if wide => format!("{mask:#x}"),
            _ => format!("{mask:#04x}"),
        }),
        has: has.map(write),
        masked: has.map(|has| write(has & mask)),
        wanted: write(wanted),
        matches: has.is_some_and(|has| (has ^ wanted) & mask == 0),
    }
}

/// What a word without named fields is called.
fn word_name(protocol: u16, key: &U32Key) -> String {
    let place = |what: &str, from: i32| {
        format!("bytes {} to {} of the {what}", key.offset - from, key.offset - from + 3)
    };
    match (protocol, key.offset) {
        (ethertype::IPV6, 8 | 12 | 16 | 20) => place("source", 8),
        (ethertype::IPV6, 24 | 28 | 32 | 36) => place("destination", 24),
        (_, offset) if offset < 0 => format!("link header, byte {}", offset + Head::ETHERNET as i32),
        (_, offset) => format!("bytes {offset} to {}", offset + 3),
    }
}

/// Where the header after IP's begins, and of which protocol it is; `None`: it has none we know.
fn transport(protocol: u16, head: &Head) -> Option<(usize, u8)> {
    let bytes = head.network();
    match protocol {
        ethertype::IPV4 => Some((usize::from(bytes.first()? & 15) * 4, *bytes.get(9)?)),
        ethertype::IPV6 => Some((40, *bytes.get(6)?)),
        _ => None,
    }
}

/// `tcp`, or the number.
pub fn protocol_name(protocol: u8) -> String {
    crate::packet::protocol_word(protocol).map_or_else(|| protocol.to_string(), str::to_owned)
}

/// The keys of a u32 filter, each as [`key_words`] has it; one that compares nothing stands only for all.
pub fn keys_words(keys: &[U32Key], protocol: u16) -> Vec<String> {
    let compares = |key: &&U32Key| key.mask != 0;
    let some = keys.iter().any(|key| compares(&key));
    let all = keys.iter().take(1).filter(|_| !some);
    keys.iter().filter(compares).chain(all).map(|key| key_words(key, protocol)).collect()
}

/// A key of u32 by the names of what it compares, without a packet: `tos 0x10/0xff`, `dport 22`.
pub fn key_words(key: &U32Key, protocol: u16) -> String {
    let ipv4 = protocol == ethertype::IPV4 && key.offset_mask == 0;
    let ipv6 = protocol == ethertype::IPV6 && key.offset_mask == 0;
    let named = match (key.offset, key.mask) {
        (_, 0) => Some("everything".to_owned()),
        // tc's word for the next header, too.
        (4, 0x0000_ff00) if ipv6 => Some(format!("protocol {}", protocol_name((key.value >> 8) as u8))),
        _ if !ipv4 => None,
        (0, mask) if mask & 0xff00_ffff == 0 => {
            Some(format!("tos {:#04x}/{:#04x}", key.value >> 16, mask >> 16))
        }
        (8, 0x00ff_0000) => Some(format!("protocol {}", protocol_name((key.value >> 16) as u8))),
        (12, mask) => network(key.value, mask).map(|address| format!("src {address}")),
        (16, mask) => network(key.value, mask).map(|address| format!("dst {address}")),
        (20, 0xffff_0000) => Some(format!("sport {}", key.value >> 16)),
        (20, 0x0000_ffff) => Some(format!("dport {}", key.value)),
        (20, mask) => port_range(key.value, mask),
        _ => None,
    };
    let ports = || port_range(key.value, key.mask).filter(|_| ipv6 && key.offset == 40);
    let named = named.or_else(ports);
    let next = if key.offset_mask != 0 { "nexthdr+" } else { "" };
    let plain = || format!("{:08x}/{:08x} at {next}{}", key.value, key.mask, key.offset);
    named.or_else(|| by_fields(key, protocol)).unwrap_or_else(plain)
}

/// `sport 546-547`: ports that a mask matches together, where only one end is compared; `None` also where the
/// mask leaves out bits in between, and where it matches less than an ICMP type and a port have in common.
fn port_range(value: u32, mask: u32) -> Option<String> {
    let (name, value, mask) = match (mask >> 16, mask & 0xffff) {
        (0, low @ 1..) => ("dport", value & 0xffff, low),
        (high @ 1.., 0) => ("sport", value >> 16, high),
        _ => return None,
    };
    let open = !mask & 0xffff;
    if open & (open + 1) != 0 || open >= 0xff {
        return None;
    }
    let (low, high) = (value & mask, value & mask | open);
    Some(if low == high { format!("{name} {low}") } else { format!("{name} {low}-{high}") })
}

/// The conditions of a basic or flower filter, in tc's words, with a blank before: ` ip_proto tcp, dst_port
/// 22`.
pub fn condition_words(params: &FilterParams) -> String {
    let all = conditions(params);
    let comma = matches!(params, FilterParams::Flower(_));
    let mut out = String::new();
    if let FilterParams::Flower(flower) = params
        && let Some(indev) = flower.indev.as_ref().filter(|indev| !indev.name.is_empty())
    {
        out.push_str(&format!(" indev {}{}", indev.name, if all.is_empty() { "" } else { "," }));
    }
    for (at, condition) in all.iter().enumerate() {
        out.push(' ');
        out.push_str(&condition.text);
        if at + 1 < all.len() {
            out.push_str(match (comma, condition.or) {
                (true, _) => ",",
                (false, true) => " or",
                (false, false) => " and",
            });
        }
    }
    out
}

/// `IHL 5, length 0/0xffc0`: where all bits belong to fields of the network header.
fn by_fields(key: &U32Key, protocol: u16) -> Option<String> {
    let fields = match protocol {
        ethertype::IPV4 => IPV4,
        ethertype::IPV6 => IPV6,
        _ => return None,
    };
    let (mut words, mut left) = (Vec::new(), key.mask);
    for field in fields.iter().filter(|field| field.offset == key.offset && key.offset_mask == 0) {
        let bits = (u64::MAX >> (64 - field.bits)) as u32;
        let (mask, value) = (key.mask >> field.low & bits, key.value >> field.low & bits);
        left &= !(bits << field.low);
        if mask != 0 {
            let part = part(field.name, field.form, [mask, bits], None, value);
            let mask = part.mask.map_or(String::new(), |mask| format!("/{mask}"));
            words.push(format!("{} {}{mask}", part.name, part.wanted));
        }
    }
    (left == 0 && !words.is_empty()).then(|| words.join(", "))
}

/// A network, where the mask is one of a prefix.
fn network(value: u32, mask: u32) -> Option<String> {
    let prefix = mask.leading_ones() + mask.trailing_zeros() >= 32;
    prefix.then(|| format!("{}/{}", Ipv4Addr::from(value), mask.leading_ones()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Packet;

    fn bits_text(words: &str, value: u32, mask: u32, offset: i32) -> String {
        let packet = Packet::parse(words).expect(words);
        let key = U32Key { value, mask, offset, offset_mask: 0 };
        let parts = compare(&key, packet.ethertype, &packet.head());
        parts.iter().map(Part::text).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn comparisons_name_what_they_compare() {
        let udp = "udp 192.168.1.7:5060 > 1.1.1.1:443 dscp EF";
        let v6 = "tcp [2001:db8::1]:22 > [2001:db8::2]:443 dscp EF syn len 60";
        let table = [
            (bits_text(udp, 0x0018_0000, 0x001c_0000, 0), "TOS 0xb8 & 0x1c = 0x18 = 0x18"),
            (bits_text(udp, 0x0010_0000, 0x001e_0000, 0), "TOS 0xb8 & 0x1e = 0x18, not 0x10"),
            (bits_text(udp, 0x0006_0000, 0x00ff_0000, 8), "protocol udp, not tcp"),
            (
                bits_text(udp, 0xc0a8_0000, 0xffff_0000, 12),
                "source 192.168.1.7 & 255.255.0.0 = 192.168.0.0 = 192.168.0.0",
            ),
            (bits_text(udp, 22, 0xffff, 20), "destination port 443, not 22"),
            (
                bits_text(udp, 0x13c4_01bb, 0xffff_ffff, 20),
                "source port 5060 = 5060; destination port 443 = 443",
            ),
            (
                bits_text(udp, 0x0010_0000, 0x00ff_0000, 32),
                "bytes 32 to 35 0x00000000 & 0xff0000 = 0x00000000, not 0x00100000",
            ),
            (bits_text("udp 1.1.1.1 > 2.2.2.2:1 len 30", 1, 1, 28), "bytes 28 to 31: the packet ends before"),
            (bits_text(v6, 0x0b80_0000, 0x0ff0_0000, 0), "traffic class 0xb8 = 0xb8"),
            (bits_text(v6, 443, 0xffff, 40), "destination port 443 = 443"),
            (bits_text(v6, 0x0002_0000, 0x0002_0000, 52), "TCP flags 0x02 & 0x02 = 0x02 = 0x02"),
            (bits_text(v6, 0x2001_0db8, u32::MAX, 8), "bytes 0 to 3 of the source 0x20010db8 = 0x20010db8"),
        ];
        for (text, wanted) in table {
            assert_eq!(text, wanted);
        }
    }

    #[test]
    fn fields_have_names() {
        let key = |value, mask, offset| key_words(&U32Key { value, mask, offset, offset_mask: 0 }, 0x0800);
        let table = [
            (key(0x0010_0000, 0x00ff_0000, 0), "tos 0x10/0xff"),
            (key(0x0006_0000, 0x00ff_0000, 8), "protocol tcp"),
            (key(0x0a00_0000, 0xff00_0000, 12), "src 10.0.0.0/8"),
            (key(0, 0, 0), "everything"),
            (key(0x0016_0000, 0xffff_0000, 20), "sport 22"),
            (key(0x5, 0xf0f, 4), "fragment offset 5/0xf0f"),
            (key(0x0500_0000, 0x0f00_ffc0, 0), "IHL 5, length 0/0xffc0"),
            (key(0x5, 0xf0f, 24), "00000005/00000f0f at 24"),
            (key(0x0222_0000, 0xfffe_0000, 20), "sport 546-547"),
            (key(0x1ae8, 0xfff8, 20), "dport 6888-6895"),
            (key(0x0800_0000, 0xff00_0000, 20), "08000000/ff000000 at 20"),
        ];
        for (shown, wanted) in table {
            assert_eq!(shown, wanted);
        }
        let key = U32Key { value: 0x1100, mask: 0xff00, offset: 4, offset_mask: 0 };
        assert_eq!(key_words(&key, 0x86dd), "protocol udp");
    }
}
