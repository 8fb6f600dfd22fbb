//! From a captured frame to the IP packet in it.

use tidegate_packet::header::{ethertype, proto};
use tidegate_pcap::{CaptureDirection, CapturedPacket, link};

/// An IP packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ip<'b> {
    /// What was kept of it, from its IP header on.
    pub bytes: &'b [u8],
    /// How long it was.
    pub len: u32,
    /// It is of IPv6.
    pub v6: bool,
    /// The packet's direction, if the capture has it.
    pub direction: Option<CaptureDirection>,
}

/// Why a frame is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LeftOut {
    /// It holds no IP packet.
    NoIp,
    /// Too little of it was captured.
    TooShort,
    /// Its link type is not known here.
    LinkType(u16),
    /// Its headers are damaged.
    Damaged,
    /// It goes neither out nor in.
    OfOthers,
    /// It stays within our network.
    Ours,
    /// It is too long for a frame, and cannot be split.
    TooLong,
    /// It is stamped more than a year after the first.
    TooLate,
}

impl LeftOut {
    /// In words.
    pub fn words(self) -> String {
        match self {
            LeftOut::NoIp => "no IP in them (ARP and the like)".into(),
            LeftOut::TooShort => {
                "cut before the end of their IP header; capture more of each (`tcpdump -s 128`)".into()
            }
            LeftOut::LinkType(number) => {
                format!(
                    "of link type {number}, which is not read; capture on an Ethernet device, or `-i any`"
                )
            }
            LeftOut::Damaged => "with an invalid IP header".into(),
            LeftOut::OfOthers => "neither from here nor to here".into(),
            LeftOut::Ours => "from here to here".into(),
            LeftOut::TooLate => {
                "captured more than a year after the first: a clock, or the file, is wrong".into()
            }
            LeftOut::TooLong => "longer than the device carries, and not of the kind that cards split".into(),
        }
    }
}

/// Opens a frame: its IP packet, behind whatever header the capture's link type has.
///
/// # Errors
/// Why the packet is left out.
pub fn open<'b>(packet: &CapturedPacket<'b>) -> Result<Ip<'b>, LeftOut> {
    let Opened { at, recorded: direction } = before_ip(packet.link, packet.bytes)?;
    let data = packet.bytes.get(at..).ok_or(LeftOut::TooShort)?;
    let there = packet.length.saturating_sub(at as u32);
    let (v6, header) = match data.first().map(|byte| byte >> 4) {
        Some(4) => (false, 20),
        Some(6) => (true, 40),
        Some(_) => return Err(LeftOut::Damaged),
        None => return Err(LeftOut::TooShort),
    };
    if data.len() < header {
        return Err(LeftOut::TooShort);
    }
    let half = |at: usize| u32::from(u16::from_be_bytes([data[at], data[at + 1]]));
    if !v6 && data[0] & 15 < 5 {
        return Err(LeftOut::Damaged);
    }
    // A length of 0: more than the field can hold, split by the card (TSO). Short frames are padded to 60
    // bytes.
    let said_len = if v6 { half(4) + 40 } else { half(2) };
    let empty = half(if v6 { 4 } else { 2 }) == 0 && !(v6 && there == 40);
    let len = if empty { there } else { said_len.min(there.max(said_len)) };
    if len < header as u32 || len > MOST {
        return Err(LeftOut::Damaged);
    }
    let kept = data.len().min(len as usize);
    Ok(Ip { bytes: &data[..kept], len, v6, direction: packet.direction.or(direction) })
}

/// Bytes of the longest packet that cards are given.
const MOST: u32 = 524_288;

/// Where IP begins, and which way the packet went.
struct Opened {
    at: usize,
    recorded: Option<CaptureDirection>,
}

fn before_ip(link_type: u16, frame: &[u8]) -> Result<Opened, LeftOut> {
    let half = |at: usize| Some(u16::from_be_bytes([*frame.get(at)?, *frame.get(at + 1)?]));
    let behind = |kind: Option<u16>, at: usize, direction| {
        let at = through_tags(frame, kind.ok_or(LeftOut::TooShort)?, at)?;
        Ok(Opened { at, recorded: direction })
    };
    match link_type {
        link::ETHERNET => behind(half(12), 14, None),
        link::SLL => behind(half(14), 16, half(0).and_then(way)),
        link::SLL2 => behind(half(0), 20, frame.get(10).and_then(|kind| way(u16::from(*kind)))),
        link::RAW | link::IPV4 | link::IPV6 => Ok(Opened { at: 0, recorded: None }),
        link::PPP => {
            let at = if frame.starts_with(&[0xff, 3]) { 2 } else { 0 };
            Ok(Opened { at: through_ppp(frame, at)?, recorded: None })
        }
        other => Err(LeftOut::LinkType(other)),
    }
}

/// Linux's kinds of packets: 4 went out; 0 came to this machine, 1 and 2 to many.
fn way(kind: u16) -> Option<CaptureDirection> {
    match kind {
        4 => Some(CaptureDirection::Out),
        0..=2 => Some(CaptureDirection::In),
        _ => None,
    }
}

/// Behind VLAN tags and PPPoE.
fn through_tags(frame: &[u8], kind: u16, at: usize) -> Result<usize, LeftOut> {
    let (mut kind, mut at) = (kind, at);
    while matches!(kind, ethertype::VLAN | ethertype::QINQ) {
        let next = frame.get(at + 2..at + 4).ok_or(LeftOut::TooShort)?;
        kind = u16::from_be_bytes([next[0], next[1]]);
        at += 4;
    }
    match kind {
        ethertype::IPV4 | ethertype::IPV6 => Ok(at),
        ethertype::PPPOE => through_ppp(frame, at + 6),
        _ => Err(LeftOut::NoIp),
    }
}

/// PPP's protocol number (RFC 1661), which may be one byte.
fn through_ppp(frame: &[u8], at: usize) -> Result<usize, LeftOut> {
    match frame.get(at..).unwrap_or_default() {
        [0, 0x21 | 0x57, ..] => Ok(at + 2),
        [0x21 | 0x57, ..] => Ok(at + 1),
        [] | [0 | 0xff] => Err(LeftOut::TooShort),
        _ => Err(LeftOut::NoIp),
    }
}

impl Ip<'_> {
    /// The protocol above IP (and above extension headers that are known).
    pub fn protocol(&self) -> u8 {
        self.bytes[if self.v6 { 6 } else { 9 }]
    }

    /// The DS field with ECN.
    pub fn dsfield(&self) -> u8 {
        if self.v6 { self.bytes[0] << 4 | self.bytes[1] >> 4 } else { self.bytes[1] }
    }

    /// The source address; of IPv4 as an IPv6-mapped one.
    pub fn source(&self) -> [u8; 16] {
        self.address(if self.v6 { 8 } else { 12 })
    }

    /// The destination address, IPv4 as IPv4-mapped.
    pub fn destination(&self) -> [u8; 16] {
        self.address(if self.v6 { 24 } else { 16 })
    }

    /// An address in sixteen bytes, IPv4's as the last four behind ::ffff.
    fn address(&self, at: usize) -> [u8; 16] {
        let mut all = [0; 16];
        match self.v6 {
            true => all.copy_from_slice(&self.bytes[at..at + 16]),
            false => {
                all[10..12].fill(0xff);
                all[12..].copy_from_slice(&self.bytes[at..at + 4]);
            }
        }
        all
    }

    /// Bytes of the IP header; options of IPv6 are not looked behind.
    pub fn header(&self) -> usize {
        if self.v6 { 40 } else { usize::from(self.bytes[0] & 15) * 4 }
    }

    /// Is it a later piece of a packet?
    pub fn is_later_fragment(&self) -> bool {
        !self.v6 && (u16::from_be_bytes([self.bytes[6], self.bytes[7]]) & 0x1fff) != 0
    }

    /// The ports, where it has some that are kept.
    pub fn ports(&self) -> Option<(u16, u16)> {
        let with =
            matches!(self.protocol(), proto::TCP | proto::UDP | 33 | 132 | 136) && !self.is_later_fragment();
        let at = self.header();
        let bytes = self.bytes.get(at..at + 4).filter(|_| with)?;
        Some((u16::from_be_bytes([bytes[0], bytes[1]]), u16::from_be_bytes([bytes[2], bytes[3]])))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A datagram of IPv4 from 10.0.0.1:1 to 10.0.0.2:2.
    const IP: [u8; 28] =
        [0x45, 0xb8, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 0, 1, 0, 2, 0, 8, 0, 0];

    fn packet(link: u16, data: &[u8], length: u32) -> CapturedPacket<'_> {
        CapturedPacket { number: 1, time: Some(0), link, bytes: data, length, direction: None, interface: 0 }
    }

    #[test]
    fn headers_before_ip_are_removed() {
        let mac = [0; 12];
        let befores: [(u16, Vec<u8>, Option<CaptureDirection>); 10] = [
            (link::RAW, vec![], None),
            (link::IPV4, vec![], None),
            (link::ETHERNET, [&mac[..], &[8, 0]].concat(), None),
            (link::ETHERNET, [&mac[..], &[0x88, 0xa8, 0, 5, 0x81, 0, 0, 7, 8, 0]].concat(), None),
            (link::ETHERNET, [&mac[..], &[0x88, 0x64, 0x11, 0, 0, 1, 0, 30, 0, 0x21]].concat(), None),
            (link::SLL, [&[0, 4][..], &[0; 12], &[8, 0]].concat(), Some(CaptureDirection::Out)),
            (link::SLL, [&[0, 0][..], &[0; 12], &[8, 0]].concat(), Some(CaptureDirection::In)),
            (link::SLL2, [&[8, 0][..], &[0; 8], &[4, 0], &[0; 8]].concat(), Some(CaptureDirection::Out)),
            (link::PPP, vec![0xff, 3, 0, 0x21], None),
            (link::PPP, vec![0x21], None),
        ];
        for (kind, before, direction) in befores {
            let bytes = [&before[..], &IP].concat();
            let opened = open(&packet(kind, &bytes, bytes.len() as u32)).expect("IP");
            assert_eq!(
                (opened.bytes, opened.len, opened.direction),
                (&IP[..], 28, direction),
                "{kind} {before:?}"
            );
            assert_eq!((opened.ports(), opened.dsfield(), opened.header()), (Some((1, 2)), 0xb8, 20));
            // Cut anywhere, it is an error or the packet with less of it.
            for cut in 0..bytes.len() {
                match open(&packet(kind, &bytes[..cut], bytes.len() as u32)) {
                    Ok(ip) => assert_eq!(ip.len, 28),
                    Err(why) => assert_eq!(why, LeftOut::TooShort, "{kind} cut at {cut}"),
                }
            }
        }
    }

    #[test]
    fn lengths_are_those_of_the_packet() {
        // Short frames are filled up.
        let filled = [&[0; 12][..], &[8, 0], &IP, &[0; 18]].concat();
        assert_eq!(
            open(&packet(link::ETHERNET, &filled, 60)).map(|ip| (ip.len, ip.bytes.len())),
            Ok((28, 28))
        );
        // No length at all: more than the field can hold.
        let mut large = IP;
        (large[2], large[3]) = (0, 0);
        assert_eq!(open(&packet(link::RAW, &large, 70_000)).map(|ip| ip.len), Ok(70_000));
        let mut wrong = IP;
        wrong[0] = 0x44;
        assert_eq!(open(&packet(link::RAW, &wrong, 28)), Err(LeftOut::Damaged));
        wrong[0] = 0x15;
        assert_eq!(open(&packet(link::RAW, &wrong, 28)), Err(LeftOut::Damaged));
        let arp = [&[0; 12][..], &[8, 6], &[0; 28]].concat();
        assert_eq!(open(&packet(link::ETHERNET, &arp, 42)), Err(LeftOut::NoIp));
        assert_eq!(open(&packet(147, &IP, 28)), Err(LeftOut::LinkType(147)));
    }
}
