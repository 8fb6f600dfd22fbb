//! Field offsets in the bytes of a frame of unknown origin.

use tidegate_packet::checksum;
use tidegate_packet::header::ethertype;

/// Tags that are looked behind.
const TAGS: usize = 2;

/// The EtherType of what a frame carries, and where that begins.
pub(super) fn network(frame: &[u8], link_header: usize) -> Option<(u16, usize)> {
    if link_header == 0 {
        return match frame.first()? >> 4 {
            4 => Some((ethertype::IPV4, 0)),
            6 => Some((ethertype::IPV6, 0)),
            _ => None,
        };
    }
    let mut at = link_header;
    for _ in 0..=TAGS {
        let kind = u16::from_be_bytes(frame.get(at - 2..at)?.try_into().ok()?);
        if kind != ethertype::VLAN && kind != ethertype::QINQ {
            return Some((kind, at));
        }
        at += 4;
    }
    None
}

/// The DS field, if the frame has one.
pub(super) fn dsfield(frame: &[u8], link_header: usize) -> Option<u8> {
    let (kind, at) = network(frame, link_header)?;
    let (first, second) = (*frame.get(at)?, *frame.get(at + 1)?);
    match kind {
        ethertype::IPV4 => Some(second),
        ethertype::IPV6 => Some(first << 4 | second >> 4),
        _ => None,
    }
}

/// Writes a DS field; false: the frame has none.
pub(super) fn set_dsfield(frame: &mut [u8], link_header: usize, dsfield: u8) -> bool {
    let Some((kind, at)) = network(frame, link_header) else { return false };
    let Some(packet) = frame.get_mut(at..) else { return false };
    match kind {
        ethertype::IPV4 if packet.len() >= 20 => checksum::rewrite(packet, 1, &[dsfield]),
        ethertype::IPV6 if packet.len() >= 40 => {
            packet[0] = packet[0] & 0xf0 | dsfield >> 4;
            packet[1] = packet[1] & 0x0f | dsfield << 4;
        }
        _ => return false,
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ds_field_is_found_behind_tags_and_its_checksum_kept() {
        let mut frame = vec![0; 12];
        frame.extend([0x88, 0xa8, 0, 5, 0x81, 0x00, 0, 7, 0x08, 0x00]);
        frame.extend([0x45, 0x02, 0, 20, 0, 0, 0, 0, 64, 17, 0x7a, 0xe9, 10, 0, 0, 1, 10, 0, 0, 2]);
        assert!(set_dsfield(&mut frame, 14, 3));
        assert_eq!((frame[23], &frame[32..34]), (3, &[0x7a, 0xe8][..]));
        assert_eq!(dsfield(&frame, 14), Some(3));
    }

    #[test]
    fn nothing_is_written_where_no_ds_field_is() {
        for (bytes, link_header) in [(0, 14), (13, 14), (14, 14), (33, 14), (0, 0), (19, 0)] {
            let mut frame = vec![0x45; bytes];
            assert!(!set_dsfield(&mut frame, link_header, 3), "{bytes}");
            assert_eq!(frame, vec![0x45; bytes]);
        }
    }
}
