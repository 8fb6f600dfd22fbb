//! What the kernel puts before a packet that is not finished: a super-packet not yet cut, a checksum not yet
//! computed (the head of virtio-net).

/// Length of the header, bytes.
pub const HEADER_LEN: usize = 10;

const KIND: usize = 1;
const HEADERS: usize = 2;
const SEGMENT: usize = 4;
const CHECKSUM_START: usize = 6;
const NEEDS_CHECKSUM: u8 = 1;
/// A flag beside the kind: congestion was signalled (`VIRTIO_NET_HDR_GSO_ECN`).
const ECN: u8 = 0x80;
/// Datagrams of one size, each with a head of its own.
const KIND_UDP: u8 = 5;
/// The offset of the header length in TCP's header.
const TCP_WORDS: usize = 12;

/// The head, as the kernel writes and reads it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload(pub [u8; HEADER_LEN]);

impl Offload {
    /// What the beginning of `bytes` describes; no offload if they are too few.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Offload {
        Offload(bytes.get(..HEADER_LEN).and_then(|head| head.try_into().ok()).unwrap_or_default())
    }

    /// Is it a super-packet, which becomes several packets?
    #[must_use]
    pub fn is_super_packet(&self) -> bool {
        self.0[KIND] & !ECN != 0 && self.number(SEGMENT) != 0
    }

    /// How many packets a packet of `len` bytes becomes; `front` are its first bytes, its headers at least.
    #[must_use]
    pub fn segments(&self, front: &[u8], len: u32) -> u32 {
        let size = u32::from(self.number(SEGMENT));
        if !self.is_super_packet() {
            return 1;
        }
        len.saturating_sub(self.headers(front)).div_ceil(size).max(1)
    }

    /// Bytes that every segment has again: up to the transport header's end. What the kernel reports of that
    /// may be more: it is what it has at hand in one piece. The checksum, which a super-packet never has yet,
    /// begins where the transport header does.
    fn headers(&self, front: &[u8]) -> u32 {
        if self.0[0] & NEEDS_CHECKSUM == 0 {
            return self.number(HEADERS).into();
        }
        let start = self.number(CHECKSUM_START);
        let words = front.get(usize::from(start) + TCP_WORDS).map_or(0, |byte| u32::from(byte >> 4));
        u32::from(start) + if self.0[KIND] & !ECN == KIND_UDP { 8 } else { 4 * words }
    }

    /// The description of a packet without its first `bytes`.
    #[must_use]
    pub fn without(mut self, bytes: u16) -> Offload {
        for at in [HEADERS, CHECKSUM_START] {
            let number = self.number(at).saturating_sub(bytes);
            self.0[at..at + 2].copy_from_slice(&number.to_ne_bytes());
        }
        self
    }

    /// The description of a packet with `bytes` more before it.
    #[must_use]
    pub fn with(mut self, bytes: u16) -> Offload {
        for at in [HEADERS, CHECKSUM_START] {
            let meant =
                at == HEADERS && self.0[KIND] != 0 || at == CHECKSUM_START && self.0[0] & NEEDS_CHECKSUM != 0;
            if meant {
                let number = self.number(at).saturating_add(bytes);
                self.0[at..at + 2].copy_from_slice(&number.to_ne_bytes());
            }
        }
        self
    }

    fn number(&self, at: usize) -> u16 {
        u16::from_ne_bytes([self.0[at], self.0[at + 1]])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(flags: u8, kind: u8, headers: u16, size: u16, start: u16) -> Offload {
        let mut bytes = [0; HEADER_LEN];
        bytes[..2].copy_from_slice(&[flags, kind]);
        for (at, number) in [(HEADERS, headers), (SEGMENT, size), (CHECKSUM_START, start)] {
            bytes[at..at + 2].copy_from_slice(&number.to_ne_bytes());
        }
        Offload(bytes)
    }

    #[test]
    fn segments_are_counted_behind_the_headers() {
        let mut front = [0; 66];
        front[34 + TCP_WORDS] = 8 << 4;
        let tcp = head(NEEDS_CHECKSUM, 1, 200, 1448, 34);
        let counted = [66 + 1, 66 + 1448, 66 + 1449, 66 + 3 * 1448].map(|len| tcp.segments(&front, len));
        assert_eq!(counted, [1, 1, 2, 3]);
        assert_eq!(head(NEEDS_CHECKSUM, KIND_UDP, 42, 1000, 34).segments(&front, 42 + 2500), 3);
        assert_eq!(head(NEEDS_CHECKSUM, 0, 0, 0, 34).segments(&front, 1514), 1, "a checksum alone");
    }

    #[test]
    fn offsets_move_with_bytes_in_front() {
        let tcp = head(NEEDS_CHECKSUM, 1, 82, 1448, 50);
        assert_eq!(tcp.without(16), head(NEEDS_CHECKSUM, 1, 66, 1448, 34));
        assert_eq!(tcp.without(16).with(16), tcp);
        assert_eq!(Offload::default().with(16), Offload::default());
    }
}
