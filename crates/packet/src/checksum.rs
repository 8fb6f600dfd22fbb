//! The Internet checksum (RFC 1071), kept right while bytes under it change (RFC 1624, equation 3).

use crate::numbers::proto;

/// A checksum that was right for `old`, made right for `new` in its place. Both have the same even number of
/// bytes.
pub fn updated(sum: u16, old: &[u8], new: &[u8]) -> u16 {
    let words = |bytes: &[u8], flip: u16| -> u32 {
        bytes
            .chunks(2)
            .map(|pair| u32::from(u16::from_be_bytes([pair[0], *pair.get(1).unwrap_or(&0)]) ^ flip))
            .sum()
    };
    let mut total = u32::from(!sum) + words(old, 0xffff) + words(new, 0);
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    !(total as u16)
}

/// A sum of 16-bit words; what is carried out is added again at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum(u64);

impl Sum {
    /// With these bytes, the first of which begins a word.
    #[must_use]
    pub(crate) fn with(self, bytes: &[u8]) -> Sum {
        let words = bytes
            .chunks(2)
            .map(|word| u64::from(word[0]) << 8 | word.get(1).map_or(0, |low| u64::from(*low)));
        Sum(self.0 + words.sum::<u64>())
    }

    /// With a word.
    #[must_use]
    pub(crate) fn with_word(self, word: u16) -> Sum {
        Sum(self.0 + u64::from(word))
    }

    /// All of it in one word.
    pub(crate) fn folded(self) -> u16 {
        let mut sum = self.0;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }

    /// What is written into a header.
    pub(crate) fn checksum(self) -> u16 {
        !self.folded()
    }
}

/// The longest piece that [`rewrite`] writes at once: two IPv6 addresses, from an odd byte on.
const LONGEST: usize = 34;

/// Writes `new` at offset `at` from the network header and updates the checksums that cover it, as far as
/// `bytes` holds them: IPv4's, and TCP's, UDP's or ICMP's. The update is incremental (RFC 1624), so a wrong
/// checksum stays wrong by the same amount. What does not fit is not written.
pub fn rewrite(bytes: &mut [u8], at: usize, new: &[u8]) {
    let (from, to) = (at & !1, (at + new.len()).next_multiple_of(2).min(bytes.len()));
    if at + new.len() > to || to - from > LONGEST {
        return;
    }
    let mut before = [0; LONGEST];
    let before = &mut before[..to - from];
    before.copy_from_slice(&bytes[from..to]);
    bytes[at..at + new.len()].copy_from_slice(new);
    let mut after = [0; LONGEST];
    let after = &mut after[..to - from];
    after.copy_from_slice(&bytes[from..to]);
    let Some(places) = ChecksumFields::of(bytes) else { return };
    let beneath = from < places.header;
    if beneath && !places.v6 {
        update_field(bytes, 10, before, after, false);
    }
    let addresses = if places.v6 { 8..40 } else { 12..20 };
    if let Some(place) = places.transport
        && (!beneath || places.counts_addresses && addresses.contains(&from))
    {
        update_field(bytes, place, before, after, places.is_udp);
    }
}

/// Offsets of a packet's checksums.
struct ChecksumFields {
    v6: bool,
    /// Bytes of the network header.
    header: usize,
    /// Of the transport's checksum.
    transport: Option<usize>,
    /// The transport's checksum counts the addresses.
    counts_addresses: bool,
    is_udp: bool,
}

impl ChecksumFields {
    fn of(bytes: &[u8]) -> Option<ChecksumFields> {
        let v6 = match bytes.first()? >> 4 {
            4 => false,
            6 => true,
            _ => return None,
        };
        let (header, protocol) = match v6 {
            true => (40, *bytes.get(6)?),
            false => (usize::from(bytes[0] & 15) * 4, *bytes.get(9)?),
        };
        // Behind the first fragment there is no header of the transport's.
        let later = !v6 && u16::from_be_bytes([*bytes.get(6)?, *bytes.get(7)?]) & 0x1fff != 0;
        let offset = match protocol {
            proto::TCP => Some(16),
            proto::UDP => Some(6),
            proto::ICMP | proto::ICMPV6 => Some(2),
            _ => None,
        };
        let transport = offset.filter(|_| !later).map(|offset| header + offset);
        Some(ChecksumFields {
            v6,
            header,
            transport,
            counts_addresses: protocol != proto::ICMP,
            is_udp: protocol == proto::UDP,
        })
    }
}

/// Updates the checksum at `place`; a UDP checksum of 0 means that there is none (RFC 768).
pub(crate) fn update_field(bytes: &mut [u8], place: usize, before: &[u8], after: &[u8], udp: bool) {
    let Some(field) = bytes.get_mut(place..place + 2) else { return };
    let sum = u16::from_be_bytes([field[0], field[1]]);
    if udp && sum == 0 {
        return;
    }
    let sum = match updated(sum, before, after) {
        0 if udp => 0xffff,
        sum => sum,
    };
    field.copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checksum of bytes that hold 0 in its place.
    fn sum(bytes: &[u8]) -> u16 {
        updated(0xffff, &[], bytes)
    }

    /// A UDP datagram with right checksums.
    fn datagram() -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..20].copy_from_slice(&[
            0x45, 0, 0, 32, 0, 1, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 192, 0, 2, 7, //
        ]);
        bytes[20..].copy_from_slice(&[0x30, 0x39, 0, 53, 0, 12, 0, 0, b'a', b'b', b'c', b'd']);
        right(bytes)
    }

    fn right(mut bytes: [u8; 32]) -> [u8; 32] {
        (bytes[10], bytes[11], bytes[26], bytes[27]) = (0, 0, 0, 0);
        let header = sum(&bytes[..20]);
        bytes[10..12].copy_from_slice(&header.to_be_bytes());
        let mut covered = [0; 24];
        covered[..8].copy_from_slice(&bytes[12..20]);
        covered[9] = 17;
        covered[11] = 12;
        covered[12..].copy_from_slice(&bytes[20..]);
        let transport = sum(&covered);
        bytes[26..28].copy_from_slice(&transport.to_be_bytes());
        bytes
    }

    /// RFC 1624, section 4: the example where the older equation gives the wrong zero.
    #[test]
    fn the_example_of_the_rfc() {
        assert_eq!(updated(0xdd2f, &[0x55, 0x55], &[0x32, 0x85]), 0x0000);
    }

    #[test]
    fn every_change_gives_what_a_whole_sum_gives() {
        let changes: [(usize, &[u8]); 7] = [
            (1, &[0xb8]),
            (8, &[63]),
            (12, &[203, 0, 113, 9]),
            (16, &[198, 51, 100, 200]),
            (20, &[0xff, 0xfe]),
            (22, &[1, 187]),
            (29, &[0, 255]),
        ];
        for (at, new) in changes {
            let mut kept = datagram();
            rewrite(&mut kept, at, new);
            let mut whole = datagram();
            whole[at..at + new.len()].copy_from_slice(new);
            assert_eq!(kept, right(whole), "{at}");
        }
    }

    #[test]
    fn no_checksum_stays_none_and_a_wrong_one_stays_wrong() {
        let mut none = datagram();
        (none[26], none[27]) = (0, 0);
        rewrite(&mut none, 12, &[1, 2, 3, 4]);
        assert_eq!(none[26..28], [0, 0]);
        let mut wrong = datagram();
        wrong[26] ^= 0x10;
        rewrite(&mut wrong, 22, &[9, 9]);
        let mut whole = datagram();
        whole[22..24].copy_from_slice(&[9, 9]);
        assert_ne!(wrong, right(whole));
    }
}
