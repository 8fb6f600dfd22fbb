//! A packet in words: read and written.

use super::fields::{ANY_PORT, Packet, has_ports, is_icmp};
use super::names::{CODE_POINTS, ECN, ICMP, ICMPV6, PROTOCOLS, TCP_FLAGS, name, number};
use core::fmt;
use core::net::{IpAddr, Ipv6Addr};
use tidegate_packet::Handle;
use tidegate_packet::header::{ethertype, proto, tcp_flags};
use tidegate_policy::netfilter::Connstate;

/// Why words are no packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PacketError {
    /// The word that is not understood; empty: something is missing at the end.
    pub word: String,
    /// Why.
    pub reason: String,
    /// What to write instead.
    pub remedy: String,
}

impl fmt::Display for PacketError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PacketError { word, reason, remedy } = self;
        match word.as_str() {
            "" => write!(f, "{reason}; {remedy}"),
            word => write!(f, "`{word}`: {reason}; {remedy}"),
        }
    }
}

impl core::error::Error for PacketError {}

type Read<T> = Result<T, PacketError>;

fn wrong<T>(word: &str, reason: impl Into<String>, remedy: impl Into<String>) -> Read<T> {
    Err(PacketError { word: word.to_owned(), reason: reason.into(), remedy: remedy.into() })
}

/// The form of a packet, for error messages.
const FORM: &str = "a packet is written as `tcp 192.168.1.7:51820 > 1.1.1.1:443 dscp CS1 len 120`";
/// The options, for error messages.
const OPTIONS: &str = "there are len, dscp, tos, ecn, mark, connmark, priority, in, out, ihl, state, reply, \
bytes, byte, TCP's flags (syn, ack, fin, rst, psh, urg, ece, cwr, flags N) and for ICMP echo, echo-reply, \
type N/M";

/// States of a connection, by their names.
const STATES: [(&str, Connstate); 5] = [
    ("new", Connstate::New),
    ("established", Connstate::Established),
    ("related", Connstate::Related),
    ("invalid", Connstate::Invalid),
    ("untracked", Connstate::Untracked),
];

/// The words of a packet, one after the other.
struct Words<'w>(std::iter::Peekable<std::vec::IntoIter<&'w str>>);

impl<'w> Words<'w> {
    fn next(&mut self, what: &str, remedy: &str) -> Read<&'w str> {
        match self.0.next() {
            Some(word) => Ok(word),
            None => wrong("", format!("{what} is missing"), remedy),
        }
    }

    /// The word after `keyword`.
    fn value(&mut self, keyword: &str, what: &str) -> Read<&'w str> {
        self.next(&format!("the {what} after `{keyword}`"), "add it")
    }

    /// The number after `keyword`, up to `most`.
    fn number(&mut self, keyword: &str, most: u64) -> Read<u64> {
        let word = self.value(keyword, "number")?;
        match integer(word) {
            Some(value) if value <= most => Ok(value),
            Some(_) => wrong(word, "it is too large", format!("`{keyword}` goes up to {most}")),
            None => wrong(word, format!("`{keyword}` wants a number"), "write it as 18 or 0x12"),
        }
    }
}

fn parse(text: &str) -> Read<Packet> {
    let spaced = text.replace("->", ">").replace('>', " > ");
    let mut words = Words(spaced.split_whitespace().collect::<Vec<_>>().into_iter().peekable());
    let mut packet = Packet { ports: (0, 0), ..Packet::default() };
    if !begin(&mut packet, &mut words)? {
        ends(&mut packet, &mut words)?;
    }
    packet.icmp = if is_icmp(packet.protocol) { packet.echo_request() } else { (0, 0) };
    packet.tcp_flags = 0;
    let mut given = GivenFields::default();
    while let Some(word) = words.0.next() {
        option(&mut packet, &mut given, word, &mut words)?;
    }
    settle(packet, given)
}

/// Options that were given, where that matters.
#[derive(Default)]
struct GivenFields {
    length: Option<u16>,
    flags: bool,
}

/// The protocol; true where nothing has ends.
fn begin(packet: &mut Packet, words: &mut Words<'_>) -> Read<bool> {
    let word = words.next("the packet", FORM)?;
    match word.to_ascii_lowercase().as_str() {
        "arp" => (packet.ethertype, packet.protocol) = (ethertype::ARP, 0),
        "proto" => packet.protocol = words.number("proto", 255)? as u8,
        "ethertype" => {
            (packet.ethertype, packet.protocol) = (words.number("ethertype", 0xffff)? as u16, 0);
            if packet.is_ip() || packet.ethertype == ethertype::ARP {
                return wrong(
                    word,
                    "such packets have words of their own",
                    "begin with tcp, udp, proto N or arp",
                );
            }
            return Ok(true);
        }
        "ping" => packet.protocol = proto::ICMP,
        "icmpv6" => packet.protocol = proto::ICMPV6,
        name => match number(PROTOCOLS, name) {
            Some(protocol) => packet.protocol = protocol,
            None => return wrong(word, "unknown protocol", format!("{FORM}, or begins with proto 47")),
        },
    }
    let by_number = word.eq_ignore_ascii_case("proto");
    let family = words.0.peek().is_some_and(|end| end.contains("::") || end.starts_with('['));
    // `icmp` is accepted for both families.
    if family && packet.protocol == proto::ICMP && !by_number {
        packet.protocol = proto::ICMPV6;
    }
    Ok(false)
}

/// `SOURCE > DESTINATION`.
fn ends(packet: &mut Packet, words: &mut Words<'_>) -> Read<()> {
    let first = words.next("the sender", FORM)?;
    let (source, sport) = end(first, packet)?;
    let arrow = words.next("`>` and the receiver", FORM)?;
    if arrow != ">" {
        return wrong(arrow, "here `>` was expected", FORM);
    }
    let second = words.next("the receiver", FORM)?;
    let (destination, dport) = end(second, packet)?;
    if source.is_ipv6() != destination.is_ipv6() {
        return wrong(second, "the ends are of different families", "give both as IPv4, or both as IPv6");
    }
    if packet.ethertype == ethertype::ARP && source.is_ipv6() {
        return wrong(first, "ARP is IPv4's", "IPv6 finds neighbours with `icmp6 A > B type 135`");
    }
    if source.is_ipv6() {
        packet.ethertype = ethertype::IPV6;
    }
    (packet.source, packet.destination) = (source, destination);
    if has_ports(packet.protocol) {
        let Some(dport) = dport else {
            let with = if destination.is_ipv6() {
                format!("[{destination}]:443")
            } else {
                format!("{destination}:443")
            };
            return wrong(second, "it has no port", format!("write {with}"));
        };
        packet.ports = (sport.unwrap_or(ANY_PORT), dport);
    }
    Ok(())
}

/// An address, with a port where the protocol has them.
fn end(word: &str, packet: &Packet) -> Read<(IpAddr, Option<u16>)> {
    if let Ok(address) = word.parse::<IpAddr>() {
        return Ok((address, None));
    }
    let apart = word.rsplit_once(':').and_then(|(address, port)| {
        let address = match address.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']')?.parse::<Ipv6Addr>().ok()?.into(),
            None => address.parse::<IpAddr>().ok().filter(IpAddr::is_ipv4)?,
        };
        Some((address, port))
    });
    let Some((address, port)) = apart else {
        return wrong(
            word,
            "it is not an address",
            "write 192.168.1.7:443, 192.168.1.7, [2001:db8::1]:443 or 2001:db8::1",
        );
    };
    if !has_ports(packet.protocol) || packet.ethertype == ethertype::ARP {
        return wrong(word, "this protocol has no ports", format!("write {address}"));
    }
    match port.parse() {
        Ok(port) => Ok((address, Some(port))),
        Err(_) => wrong(word, format!("`{port}` is not a port"), "ports go from 0 to 65535"),
    }
}

fn option(packet: &mut Packet, given: &mut GivenFields, word: &str, words: &mut Words<'_>) -> Read<()> {
    match word.to_ascii_lowercase().as_str() {
        "len" | "length" => given.length = Some(words.number(word, 0xffff)? as u16),
        "dscp" => packet.dsfield = packet.dsfield & 3 | code_point(words.value(word, "code point")?)? << 2,
        "tos" => packet.dsfield = words.number(word, 0xff)? as u8,
        "ecn" => {
            let value = words.value(word, "field")?;
            let Some(ecn) = number(ECN, value).or_else(|| integer(value).filter(|n| *n < 4).map(|n| n as u8))
            else {
                return wrong(value, "unknown ECN field", "there are ect0, ect1, ce, and 0 to 3");
            };
            packet.dsfield = packet.dsfield & !3 | ecn;
        }
        "mark" => packet.mark = words.number(word, u64::from(u32::MAX))? as u32,
        "connmark" => packet.connmark = words.number(word, u64::from(u32::MAX))? as u32,
        "priority" => packet.priority = priority(words.value(word, "class or number")?)?,
        "in" => packet.from = Some(words.value(word, "device")?.to_owned()),
        "out" => packet.to = Some(words.value(word, "device")?.to_owned()),
        "ihl" => {
            packet.ihl = words.number(word, 15)? as u8;
            if packet.ethertype != ethertype::IPV4 || packet.ihl < 5 {
                return wrong(
                    word,
                    "only IPv4 headers differ in length",
                    "it is 5 to 15, in words of four bytes",
                );
            }
        }
        "state" => {
            let value = words.value(word, "state")?;
            match state(value) {
                Some(state) => packet.state = Some(state),
                None => {
                    return wrong(
                        value,
                        "unknown connection state",
                        "there are new, established, related, invalid, untracked",
                    );
                }
            }
        }
        "reply" => packet.reply = true,
        "bytes" => packet.carried = bytes(words.value(word, "number of bytes")?)?,
        // `octet` is its name before version 0.2.
        "byte" | "octet" => raw_byte(packet, words.value(word, word)?)?,
        "flags" if packet.protocol == proto::TCP => {
            (packet.tcp_flags, given.flags) = (words.number(word, 0xff)? as u8, true);
        }
        "type" if is_icmp(packet.protocol) => packet.icmp = icmp_type(words.value(word, "type")?)?,
        name => return flag_or_message(packet, given, name),
    }
    Ok(())
}

/// A keyword without a value: a flag of TCP, a message of ICMP, a state.
fn flag_or_message(packet: &mut Packet, given: &mut GivenFields, word: &str) -> Read<()> {
    if let Some(state) = state(word) {
        packet.state = Some(state);
    } else if let Some(flag) = number(TCP_FLAGS, word).filter(|_| packet.protocol == proto::TCP) {
        packet.tcp_flags |= flag;
        given.flags = true;
    } else if let Some(kind) = number(messages(packet.protocol), word) {
        packet.icmp = (kind, 0);
    } else if number(TCP_FLAGS, word).is_some() {
        return wrong(word, "only TCP has flags", "leave it out");
    } else if number(PROTOCOLS, word).is_some() {
        return wrong(word, "a second packet begins here", "give one packet at a time");
    } else {
        return wrong(word, "unknown option", OPTIONS);
    }
    Ok(())
}

/// What was left open is filled in, and what cannot be is refused.
fn settle(mut packet: Packet, given: GivenFields) -> Read<Packet> {
    if packet.protocol == proto::TCP && !given.flags {
        packet.tcp_flags = tcp_flags::ACK;
    }
    packet.length = given.length.unwrap_or_else(|| packet.usual_length());
    if packet.length < packet.shortest() {
        let (least, length) = (packet.shortest(), packet.length);
        return wrong(
            &length.to_string(),
            "its headers alone are longer",
            format!("`len` is at least {least} here"),
        );
    }
    packet.raw_bytes.sort_by_key(|(at, _)| *at);
    packet.raw_bytes.dedup_by_key(|(at, _)| *at);
    Ok(packet)
}

fn integer(word: &str) -> Option<u64> {
    match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    }
}

fn code_point(word: &str) -> Read<u8> {
    match number(CODE_POINTS, word).or_else(|| integer(word).filter(|n| *n < 64).map(|n| n as u8)) {
        Some(dscp) => Ok(dscp),
        None => {
            // People know the byte, too: 0xb8 is EF.
            let byte = integer(word).filter(|byte| (64..256).contains(byte));
            let how = byte.map_or_else(
                || "there are CS0 to CS7, AF11 to AF43, EF, VA, LE, NQB, and 0 to 63".to_owned(),
                |byte| {
                    format!("as the whole byte it is `tos {word}`, the code point of which is {}", byte >> 2)
                },
            );
            wrong(word, "unknown code point", how)
        }
    }
}

/// A small number, or a class.
fn priority(word: &str) -> Read<u32> {
    let half = |text: &str| if text.is_empty() { Some(0) } else { u16::from_str_radix(text, 16).ok() };
    let value = match word.split_once(':') {
        Some((major, minor)) => {
            half(major).zip(half(minor)).map(|(major, minor)| Handle::new(major, minor).0)
        }
        None => integer(word).and_then(|value| u32::try_from(value).ok()),
    };
    match value {
        Some(value) => Ok(value),
        None => wrong(word, "it is no priority", "write a number, or a class as 1:10"),
    }
}

fn bytes(word: &str) -> Read<u64> {
    let split = word.find(|c: char| c.is_ascii_alphabetic() && c != 'x').unwrap_or(word.len());
    let (digits, unit) = word.split_at(split);
    let scale = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        _ => 0,
    };
    match integer(digits).and_then(|value| value.checked_mul(scale)).filter(|_| scale > 0) {
        Some(value) => Ok(value),
        None => wrong(word, "it is not a number of bytes", "write 65536, 64kB or 10MB"),
    }
}

/// `40=0x16`.
fn raw_byte(packet: &mut Packet, word: &str) -> Read<()> {
    let pair = word.split_once('=').and_then(|(at, value)| integer(at).zip(integer(value)));
    match pair {
        Some((at, value)) if at < tidegate_packet::Head::NETWORK as u64 && value < 256 => {
            packet.raw_bytes.retain(|(other, _)| u64::from(*other) != at);
            packet.raw_bytes.push((at as u8, value as u8));
            Ok(())
        }
        _ => wrong(
            word,
            "it is not a byte",
            "write 22=0x1f: how far behind the network header begins, and the value",
        ),
    }
}

/// `3/1`, or `3`.
fn icmp_type(word: &str) -> Read<(u8, u8)> {
    let (kind, code) = word.split_once('/').unwrap_or((word, "0"));
    match kind.parse().ok().zip(code.parse().ok()) {
        Some(icmp) => Ok(icmp),
        None => wrong(word, "it is no type of ICMP", "write 3, or 3/1 with its code"),
    }
}

fn state(word: &str) -> Option<Connstate> {
    STATES.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)).map(|(_, state)| *state)
}

/// What a state is called.
pub(crate) fn state_name(state: Connstate) -> &'static str {
    STATES.iter().find(|(_, known)| *known == state).map_or("new", |(name, _)| name)
}

/// The messages that have names.
fn messages(protocol: u8) -> &'static [(&'static str, u8)] {
    match protocol {
        proto::ICMP => ICMP,
        proto::ICMPV6 => ICMPV6,
        _ => &[],
    }
}

impl fmt::Display for Packet {
    /// The shortest words that are read as the same packet.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_ends(f)?;
        self.write_headers(f)?;
        self.write_knowledge(f)
    }
}

impl Packet {
    /// From words: `udp 192.168.1.7:5060 > [2001:db8::1]:5060 dscp EF len 200`.
    ///
    /// # Errors
    /// The word that is not understood, why, and what to write instead.
    pub fn parse(words: &str) -> Result<Packet, PacketError> {
        parse(words)
    }

    fn write_ends(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.ethertype {
            ethertype::ARP => f.write_str("arp")?,
            _ if !self.is_ip() => return write!(f, "ethertype {:#06x}", self.ethertype),
            // The names of ICMP mean each family's own.
            _ if is_icmp(self.protocol) && (self.protocol == proto::ICMPV6) != self.is_ipv6() => {
                write!(f, "proto {}", self.protocol)?;
            }
            _ => match name(PROTOCOLS, self.protocol) {
                Some(name) => f.write_str(name)?,
                None => write!(f, "proto {}", self.protocol)?,
            },
        }
        let ports = has_ports(self.protocol) && self.is_ip();
        let sport = Some(self.ports.0).filter(|port| ports && *port != ANY_PORT);
        let dport = Some(self.ports.1).filter(|_| ports);
        write_end(f, self.source, sport)?;
        f.write_str(" >")?;
        write_end(f, self.destination, dport)
    }

    fn write_headers(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (dscp, ecn) = (self.dsfield >> 2, self.dsfield & 3);
        match name(CODE_POINTS, dscp) {
            Some(name) => {
                if dscp != 0 {
                    write!(f, " dscp {name}")?;
                }
                if let Some(ecn) = super::names::name(ECN, ecn) {
                    write!(f, " ecn {ecn}")?;
                }
            }
            None => write!(f, " tos {:#04x}", self.dsfield)?,
        }
        if self.ihl != 5 && self.ethertype == ethertype::IPV4 {
            write!(f, " ihl {}", self.ihl)?;
        }
        if self.length != self.usual_length() {
            write!(f, " len {}", self.length)?;
        }
        if self.protocol == proto::TCP && self.tcp_flags != tcp_flags::ACK {
            if self.tcp_flags == 0 {
                f.write_str(" flags 0")?;
            }
            for (name, _) in TCP_FLAGS.iter().filter(|(_, flag)| self.tcp_flags & flag != 0) {
                write!(f, " {name}")?;
            }
        }
        if is_icmp(self.protocol) && self.icmp != self.echo_request() {
            match (self.icmp, name(messages(self.protocol), self.icmp.0)) {
                ((_, 0), Some(name)) => write!(f, " {name}")?,
                ((kind, 0), None) => write!(f, " type {kind}")?,
                ((kind, code), _) => write!(f, " type {kind}/{code}")?,
            }
        }
        self.raw_bytes.iter().try_for_each(|(at, value)| write!(f, " byte {at}={value:#04x}"))
    }

    /// What is known of it beside its headers.
    fn write_knowledge(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(state) = self.state {
            write!(f, " {}", state_name(state))?;
        }
        if self.reply {
            f.write_str(" reply")?;
        }
        if self.carried > 0 {
            write!(f, " bytes {}", self.carried)?;
        }
        if self.connmark > 0 {
            write!(f, " connmark {}", self.connmark)?;
        }
        if self.mark > 0 {
            write!(f, " mark {}", self.mark)?;
        }
        match Handle(self.priority) {
            priority if priority.0 == 0 => {}
            priority if priority.major() == 0 => write!(f, " priority {}", priority.0)?,
            priority => write!(f, " priority {:x}:{:x}", priority.major(), priority.minor())?,
        }
        if let Some(from) = &self.from {
            write!(f, " in {from}")?;
        }
        if let Some(to) = &self.to {
            write!(f, " out {to}")?;
        }
        Ok(())
    }
}

fn write_end(f: &mut fmt::Formatter<'_>, address: IpAddr, port: Option<u16>) -> fmt::Result {
    match (address, port) {
        (IpAddr::V6(address), Some(port)) => write!(f, " [{address}]:{port}"),
        (address, Some(port)) => write!(f, " {address}:{port}"),
        (address, None) => write!(f, " {address}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_packet::{RandomSource, Seeded};

    #[test]
    fn words_that_are_read_and_written_as_the_same() {
        let table = [
            "tcp 192.168.1.7:51820 > 1.1.1.1:443 dscp CS1 len 120",
            "tcp 10.0.0.1 > 10.0.0.2:22 tos 0x10",
            "tcp 10.0.0.1 > 10.0.0.2:22 len 60 syn",
            "tcp 10.0.0.1 > 10.0.0.2:22 flags 0",
            "udp [2001:db8::1]:5060 > [2001:db8::2]:5060 dscp EF ecn ect0",
            "icmp 10.0.0.1 > 8.8.8.8",
            "icmp 10.0.0.1 > 8.8.8.8 echo-reply established reply",
            "icmp 10.0.0.1 > 8.8.8.8 type 3/1 related",
            "icmp6 fe80::1 > ff02::1 neighbour-solicitation",
            "proto 1 2001:db8::1 > 2001:db8::2",
            "arp 192.168.1.1 > 192.168.1.7",
            "gre 10.0.0.1 > 10.0.0.2 mark 3 priority 1:10 in eth1 out ppp0",
            "proto 99 10.0.0.1 > 10.0.0.2 ihl 6 byte 22=0x1f byte 23=0x90",
            "ethertype 0x8863 len 60",
            "udp 10.0.0.1 > 10.0.0.2:53 new bytes 65536 connmark 5",
        ];
        for words in table {
            assert_eq!(Packet::parse(words).map(|packet| packet.to_string()), Ok(words.to_owned()));
        }
    }

    #[test]
    fn longer_words_for_the_same() {
        let table = [
            ("tcp 10.0.0.1:40000 -> 10.0.0.2:22 ack len 500 ihl 5 tos 0", "tcp 10.0.0.1 > 10.0.0.2:22"),
            ("ping 10.0.0.1>8.8.8.8 echo", "icmp 10.0.0.1 > 8.8.8.8"),
            ("icmp 2001:db8::1 > 2001:db8::2", "icmp6 2001:db8::1 > 2001:db8::2"),
            (
                "udp 10.0.0.1 > 10.0.0.2:53 dscp 46 bytes 64kB",
                "udp 10.0.0.1 > 10.0.0.2:53 dscp EF bytes 64000",
            ),
            ("UDP 10.0.0.1 > 10.0.0.2:53 state established", "udp 10.0.0.1 > 10.0.0.2:53 established"),
        ];
        for (words, shortest) in table {
            assert_eq!(Packet::parse(words).map(|packet| packet.to_string()), Ok(shortest.to_owned()));
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let table = [
            ("", "", "the packet is missing"),
            ("tpc 1.1.1.1 > 2.2.2.2:1", "tpc", "unknown protocol"),
            ("tcp 1.1.1.1 > 2.2.2.2", "2.2.2.2", "it has no port"),
            ("tcp 1.1.1.1 2.2.2.2:1", "2.2.2.2:1", "here `>` was expected"),
            ("tcp 1.1.1.1 > 2.2.2.2:70000", "2.2.2.2:70000", "`70000` is not a port"),
            ("tcp 1.1.1 > 2.2.2.2:1", "1.1.1", "it is not an address"),
            ("udp 1.1.1.1 > [2001:db8::1]:1", "[2001:db8::1]:1", "the ends are of different families"),
            ("gre 1.1.1.1:7 > 2.2.2.2", "1.1.1.1:7", "this protocol has no ports"),
            ("udp 1.1.1.1 > 2.2.2.2:1 dscp GOLD", "GOLD", "unknown code point"),
            ("udp 1.1.1.1 > 2.2.2.2:1 syn", "syn", "only TCP has flags"),
            ("udp 1.1.1.1 > 2.2.2.2:1 len 20", "20", "its headers alone are longer"),
            ("udp 1.1.1.1 > 2.2.2.2:1 len", "", "the number after `len` is missing"),
            ("udp 1.1.1.1 > 2.2.2.2:1 fast", "fast", "unknown option"),
            ("udp 1.1.1.1 > 2.2.2.2:1 udp 1.1.1.1 > 2.2.2.2:2", "udp", "a second packet begins here"),
            ("udp 1.1.1.1 > 2.2.2.2:1 octet 7", "7", "it is not a byte"),
        ];
        for (words, word, reason) in table {
            let error = Packet::parse(words).map_err(|error| (error.word, error.reason));
            assert_eq!(error, Err((word.to_owned(), reason.to_owned())), "{words}");
        }
        let remedy = |word: &str| {
            let packet = Packet::parse(&format!("udp 1.1.1.1 > 2.2.2.2:1 dscp {word}"));
            packet.map_err(|error| error.remedy).expect_err("is none")
        };
        assert_eq!(remedy("0xb8"), "as the whole byte it is `tos 0xb8`, the code point of which is 46");
        assert!(remedy("GOLD").contains("NQB, and 0 to 63"), "{}", remedy("GOLD"));
    }

    /// Any packet that words can describe.
    fn random(draws: &mut Seeded) -> Packet {
        let v6 = draws.below(2) == 1;
        let address = |draws: &mut Seeded| match v6 {
            true => IpAddr::V6((u128::from(draws.u64()) << 64 | u128::from(draws.u64())).into()),
            false => IpAddr::V4(draws.u32().into()),
        };
        let mut packet = Packet {
            ethertype: if v6 { ethertype::IPV6 } else { ethertype::IPV4 },
            protocol: [6, 17, 1, 58, 2, 47, draws.below(256) as u8][draws.below(7) as usize],
            source: address(draws),
            destination: address(draws),
            dsfield: draws.below(256) as u8,
            ihl: if v6 { 5 } else { 5 + draws.below(11) as u8 },
            mark: draws.below(3),
            connmark: draws.below(3),
            priority: [0, draws.below(16), draws.u32()][draws.below(3) as usize],
            state: STATES.get(draws.below(8) as usize).map(|(_, state)| *state),
            reply: draws.below(2) == 1,
            carried: u64::from(draws.below(3)),
            from: (draws.below(2) == 1).then(|| "eth1".to_owned()),
            ..Packet::default()
        };
        packet.ports = if has_ports(packet.protocol) { (draws.u16(), draws.u16()) } else { (0, 0) };
        packet.icmp =
            if is_icmp(packet.protocol) { (draws.below(256) as u8, draws.below(3) as u8) } else { (0, 0) };
        packet.tcp_flags = if packet.protocol == proto::TCP { draws.below(256) as u8 } else { 0 };
        packet.length = packet.shortest() + draws.below(1400) as u16;
        packet.raw_bytes = (0..draws.below(3)).map(|at| (at as u8 * 7, draws.below(256) as u8)).collect();
        packet
    }

    #[test]
    fn any_packet_is_read_back_from_its_own_words() {
        let mut draws = Seeded::new(1);
        for _ in 0..20_000 {
            let packet = random(&mut draws);
            assert_eq!(Packet::parse(&packet.to_string()).as_ref(), Ok(&packet), "{packet}");
        }
    }
}
