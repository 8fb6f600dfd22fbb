//! The front of each UDP packet; what follows is padding.
//!
//! | bytes | |
//! |---|---|
//! | 0-1 | `tG` |
//! | 2 | kind |
//! | 3 | which exchange of the session, modulo 256: what comes late from the one before is not taken for the
//! next one's |
//! | 4-7 | the session's number, from the server |
//! | 8-11 | the front of a keyed hash of the rest, by the session's key for who sends |
//! | 12-15 | the packet's number |
//! | 16-23 | when it was sent, by the sender's clock, ns |

use tidegate_measure::stream::PacketTrain;

use crate::auth::{PACKET_TAG, SessionKey};

const MAGIC: [u8; 2] = *b"tG";
/// The offset of the hash.
const TAG_AT: usize = 8;

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbePacketKind {
    /// The client shows where it is.
    Hello,
    /// The server has seen that: the same bytes, no more.
    Seen,
    /// One of a stream.
    Data,
}

/// The front of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader {
    /// What it is for.
    pub kind: ProbePacketKind,
    /// Which exchange, modulo 256.
    pub exchange: u8,
    /// Whose it is.
    pub session: u32,
    /// The packet's number, as the sender counts.
    pub number: u32,
    /// When it was sent, by the sender's clock, ns.
    pub sent: u64,
}

impl PacketHeader {
    /// Bytes of the header, the least size of a packet.
    pub const ENCODED_LEN: usize = PacketTrain::LEAST as usize;

    /// Reads the front of a packet; `None`: it is none of tidegate's.
    pub fn read(packet: &[u8]) -> Option<PacketHeader> {
        let front: &[u8; PacketHeader::ENCODED_LEN] = packet.first_chunk()?;
        let kind = match front[2] {
            _ if front[..2] != MAGIC => return None,
            1 => ProbePacketKind::Hello,
            2 => ProbePacketKind::Seen,
            3 => ProbePacketKind::Data,
            _ => return None,
        };
        let word = |at: usize| u32::from_be_bytes(core::array::from_fn(|n| front[at + n]));
        let sent = u64::from(word(16)) << 32 | u64::from(word(20));
        Some(PacketHeader { kind, exchange: front[3], session: word(4), number: word(12), sent })
    }

    /// The front of a packet with a valid hash of this key; `None`: there is none.
    pub fn read_sealed(packet: &[u8], key: &SessionKey) -> Option<PacketHeader> {
        let header = PacketHeader::read(packet)?;
        let front = packet.get(..PacketHeader::ENCODED_LEN)?;
        key.tags(&front[TAG_AT..TAG_AT + PACKET_TAG], &[&front[..TAG_AT], &front[TAG_AT + PACKET_TAG..]])
            .then_some(header)
    }

    /// Its bytes, with the hash of this key.
    pub fn write(&self, key: &SessionKey) -> [u8; PacketHeader::ENCODED_LEN] {
        let mut front = [0; PacketHeader::ENCODED_LEN];
        front[..2].copy_from_slice(&MAGIC);
        front[2] = match self.kind {
            ProbePacketKind::Hello => 1,
            ProbePacketKind::Seen => 2,
            ProbePacketKind::Data => 3,
        };
        front[3] = self.exchange;
        front[4..TAG_AT].copy_from_slice(&self.session.to_be_bytes());
        front[12..16].copy_from_slice(&self.number.to_be_bytes());
        front[16..].copy_from_slice(&self.sent.to_be_bytes());
        let tag: [u8; PACKET_TAG] = key.tag(&[&front[..TAG_AT], &front[TAG_AT + PACKET_TAG..]]);
        front[TAG_AT..TAG_AT + PACKET_TAG].copy_from_slice(&tag);
        front
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::{NONCE_LEN, Role, Token};

    #[test]
    fn a_header_comes_back_and_strangers_do_not() {
        for kind in [ProbePacketKind::Hello, ProbePacketKind::Seen, ProbePacketKind::Data] {
            let header =
                PacketHeader { kind, exchange: 7, session: u32::MAX - 5, number: 0x0102_0304, sent: 1 << 62 };
            let key = Token::open().session_key(&[1; NONCE_LEN], &[2; NONCE_LEN]);
            let (ours, theirs) = (key.packets(Role::Client), key.packets(Role::Server));
            let bytes = header.write(&ours);
            assert_eq!(
                (PacketHeader::read(&bytes), PacketHeader::read_sealed(&bytes, &ours)),
                (Some(header), Some(header))
            );
            assert_eq!(PacketHeader::read_sealed(&bytes, &theirs), None);
            for at in 0..PacketHeader::ENCODED_LEN {
                let mut forged = bytes;
                forged[at] ^= 1;
                assert_eq!(PacketHeader::read_sealed(&forged, &ours), None, "byte {at}");
            }
            assert_eq!(PacketHeader::read(&bytes[..23]), None);
        }
        assert_eq!(PacketHeader::read(&[0; 1200]), None);
    }
}
