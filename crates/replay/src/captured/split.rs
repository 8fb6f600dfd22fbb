//! Packets longer than a frame may be: a capture shows what the machine gave its card, which splits it (TSO,
//! USO), or what the card put together before the machine saw it (GRO).

use super::frames::Ip;
use std::collections::BTreeMap;
use tidegate_packet::header::{proto, tcp_flags};

/// Connections whose segment size is remembered.
const MOST_KNOWN: usize = 65_536;
/// Bytes of UDP's header.
const UDP: usize = 8;
/// The option of a SYN with the largest segment size (RFC 9293).
const MSS: u8 = 2;

/// The two ends of a connection, the sender of data first.
type ConnectionKey = ([u8; 16], [u8; 16], (u16, u16));

/// Splits, and remembers the segments that connections agreed on.
#[derive(Default)]
pub(crate) struct Splitter {
    segments: BTreeMap<ConnectionKey, u32>,
}

/// A packet that is not longer than a frame may be: its front, and its length.
pub(crate) struct Piece {
    pub front: Vec<u8>,
    pub len: u32,
}

impl Splitter {
    /// Reads the options of a SYN.
    pub(crate) fn learn(&mut self, ip: &Ip<'_>) {
        if ip.protocol() != proto::TCP || self.segments.len() >= MOST_KNOWN {
            return;
        }
        let (Some(ports), Some(tcp)) = (ip.ports(), ip.bytes.get(ip.header()..)) else { return };
        let syn = tcp.get(13).is_some_and(|flags| flags & tcp_flags::SYN != 0);
        if let Some(segment) = syn.then(|| segment_of(tcp)).flatten() {
            // A SYN's MSS is the size that its sender wants to receive.
            self.segments.insert((ip.destination(), ip.source(), (ports.1, ports.0)), segment);
        }
    }

    /// The pieces of a packet on a device with this MTU; `None`: nothing splits it.
    pub(crate) fn split(&self, ip: &Ip<'_>, mtu: u32) -> Option<Vec<Piece>> {
        let headers = ip.header() + transport(ip)?;
        let front = ip.bytes.get(..headers)?;
        let room = mtu.checked_sub(headers as u32).filter(|room| *room > 0)?;
        let reported =
            ip.ports().and_then(|ports| self.segments.get(&(ip.source(), ip.destination(), ports)));
        let options = headers.saturating_sub(ip.header() + 20) as u32;
        let segment = match reported {
            Some(reported) if ip.protocol() == proto::TCP => {
                room.min(reported.saturating_sub(options).max(1))
            }
            _ => room,
        };
        let payload = ip.len.checked_sub(headers as u32)?;
        let count = payload.div_ceil(segment);
        let piece = |n: u32| {
            let carries = segment.min(payload - n * segment);
            let len = headers as u32 + carries;
            let mut front = front.to_vec();
            write(&mut front, ip, n, n * segment, len, n + 1 == count);
            Piece { front, len }
        };
        Some((0..count).map(piece).collect())
    }
}

/// Bytes of the transport's header; `None`: cards do not split this protocol.
fn transport(ip: &Ip<'_>) -> Option<usize> {
    match ip.protocol() {
        proto::TCP => {
            ip.bytes.get(ip.header() + 12).map(|byte| usize::from(byte >> 4) * 4).filter(|bytes| *bytes >= 20)
        }
        proto::UDP => Some(UDP),
        _ => None,
    }
}

/// Makes the headers of a packet those of its nth piece.
fn write(front: &mut [u8], ip: &Ip<'_>, n: u32, offset: u32, len: u32, last: bool) {
    let mut half = |at: usize, value: u16| front[at..at + 2].copy_from_slice(&value.to_be_bytes());
    let read = |at: usize| u16::from_be_bytes([ip.bytes[at], ip.bytes[at + 1]]);
    if ip.v6 {
        half(4, (len - 40) as u16);
    } else {
        half(2, len as u16);
        half(4, read(4).wrapping_add(n as u16));
    }
    let at = ip.header();
    if ip.protocol() == proto::UDP {
        half(at + 4, (len as usize - at) as u16);
        return;
    }
    let seq = u32::from(read(at + 4)) << 16 | u32::from(read(at + 6));
    front[at + 4..at + 8].copy_from_slice(&seq.wrapping_add(offset).to_be_bytes());
    if !last {
        front[at + 13] &= !(tcp_flags::FIN | tcp_flags::PSH);
    }
    if n > 0 {
        front[at + 13] &= !tcp_flags::CWR;
    }
}

/// The MSS of a SYN, where its options are in the capture.
fn segment_of(tcp: &[u8]) -> Option<u32> {
    let end = usize::from(tcp.get(12)? >> 4) * 4;
    let mut at = 20;
    while at < end {
        match (*tcp.get(at)?, tcp.get(at + 1).map(|len| usize::from(*len))) {
            (0, _) => return None,
            (1, _) => at += 1,
            (MSS, Some(4)) => {
                return Some(u32::from(u16::from_be_bytes([*tcp.get(at + 2)?, *tcp.get(at + 3)?])));
            }
            (_, Some(len)) if len >= 2 => at += len,
            _ => return None,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment of IPv6 with timestamps, which carries this many bytes.
    fn segment(payload: u32, flags: u8) -> Vec<u8> {
        let mut packet = vec![0x60, 0, 0, 0];
        packet.extend(((32 + payload) as u16).to_be_bytes());
        packet.extend([6, 64]);
        packet.extend([0x20; 32]);
        packet.extend([0, 5, 0, 80, 0xff, 0xff, 0xff, 0x00, 0, 0, 0, 1, 0x80, flags, 0xff, 0xff, 0, 0, 0, 0]);
        packet.extend([1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2]);
        packet
    }

    fn ip(bytes: &[u8], len: u32) -> Ip<'_> {
        Ip { bytes, len, v6: true, direction: None }
    }

    #[test]
    fn a_card_splits_what_is_too_long() {
        let all = tcp_flags::ACK | tcp_flags::PSH | tcp_flags::FIN | tcp_flags::CWR;
        let bytes = segment(3000, all);
        let pieces = Splitter::default().split(&ip(&bytes, 3072), 1500).expect("TCP");
        // 1,428 bytes of payload fit beside 72 of headers.
        let found: Vec<(u32, u32, u8)> = pieces
            .iter()
            .map(|piece| {
                let seq =
                    u32::from_be_bytes([piece.front[44], piece.front[45], piece.front[46], piece.front[47]]);
                assert_eq!(u16::from_be_bytes([piece.front[4], piece.front[5]]), (piece.len - 40) as u16);
                (piece.len, seq, piece.front[53])
            })
            .collect();
        let first = 0xffff_ff00_u32;
        let expected = [
            (1500, first, tcp_flags::ACK | tcp_flags::CWR),
            (1500, first.wrapping_add(1428), tcp_flags::ACK),
            (72 + 144, first.wrapping_add(2856), tcp_flags::ACK | tcp_flags::PSH | tcp_flags::FIN),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_no_card_splits_stays_whole() {
        let mut bytes = segment(3000, 0);
        assert!(Splitter::default().split(&ip(&bytes[..60], 3072), 1500).is_none(), "its header is cut");
        bytes[6] = 132;
        assert!(Splitter::default().split(&ip(&bytes, 3072), 1500).is_none(), "SCTP");
        bytes[6] = 17;
        let pieces = Splitter::default().split(&ip(&bytes, 3048), 1500).expect("UDP");
        assert_eq!(pieces.iter().map(|piece| piece.len).collect::<Vec<_>>(), [1500, 1500, 48 + 96]);
    }
}
