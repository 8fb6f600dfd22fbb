//! The front of each UDP packet; what follows is padding.
//!
//! | octets | |
//! |---|---|
//! | 0-1 | `tG` |
//! | 2 | kind |
//! | 3 | which exchange of the session, modulo 256: what comes late from the one before is not taken for the next one's |
//! | 4-11 | the session's secret |
//! | 12-15 | the packet's number |
//! | 16-23 | when it was sent, by the sender's clock, ns |

use tidegate_measure::stream::Phase;

const MAGIC: [u8; 2] = *b"tG";

/// What a packet is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The client shows where it is.
    Hello,
    /// The server has seen that: the same octets, no more.
    Seen,
    /// One of a stream.
    Data,
}

/// The front of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What it is for.
    pub kind: Kind,
    /// Which exchange, modulo 256.
    pub exchange: u8,
    /// Whose it is.
    pub secret: u64,
    /// Its number.
    pub number: u32,
    /// When it was sent, by the sender's clock, ns.
    pub sent: u64,
}

impl Header {
    /// Its octets.
    pub const OCTETS: usize = Phase::LEAST as usize;

    /// Reads the front of a packet; `None`: it is none of ours.
    pub fn read(packet: &[u8]) -> Option<Header> {
        let front: &[u8; Header::OCTETS] = packet.first_chunk()?;
        let kind = match front[2] {
            _ if front[..2] != MAGIC => return None,
            1 => Kind::Hello,
            2 => Kind::Seen,
            3 => Kind::Data,
            _ => return None,
        };
        let long = |at: usize| u64::from_be_bytes(core::array::from_fn(|n| front[at + n]));
        let number = u32::from_be_bytes(core::array::from_fn(|n| front[12 + n]));
        Some(Header { kind, exchange: front[3], secret: long(4), number, sent: long(16) })
    }

    /// Its octets.
    pub fn write(&self) -> [u8; Header::OCTETS] {
        let mut front = [0; Header::OCTETS];
        front[..2].copy_from_slice(&MAGIC);
        front[2] = match self.kind {
            Kind::Hello => 1,
            Kind::Seen => 2,
            Kind::Data => 3,
        };
        front[3] = self.exchange;
        front[4..12].copy_from_slice(&self.secret.to_be_bytes());
        front[12..16].copy_from_slice(&self.number.to_be_bytes());
        front[16..].copy_from_slice(&self.sent.to_be_bytes());
        front
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_comes_back_and_strangers_do_not() {
        for kind in [Kind::Hello, Kind::Seen, Kind::Data] {
            let header = Header { kind, exchange: 7, secret: u64::MAX - 5, number: 0x0102_0304, sent: 1 << 62 };
            let octets = header.write();
            assert_eq!(Header::read(&octets), Some(header));
            assert_eq!(Header::read(&octets[..23]), None);
        }
        assert_eq!(Header::read(&[0; 1200]), None);
    }
}
