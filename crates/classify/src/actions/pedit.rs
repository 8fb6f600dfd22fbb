//! `pedit`: words of a packet's front become others; checksums stay as they were.

use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Head, LinuxChange, LinuxVersion, Pkt, Pool, transport};
use tidegate_policy::{Control, Pedit, PeditHeader, PeditKey};

/// Bytes before a frame that may be written, and are not sent.
const HEADROOM: i64 = 2;

/// Rewrites the words in turn. Where one lies outside the packet, those after it are left as they were.
/// Beside the decision: whether all were written.
pub(super) fn carry_out(pedit: &Pedit, pool: &mut Pool, pkt: &Pkt, linux: LinuxVersion) -> (Control, bool) {
    let checked = linux.has(LinuxChange::PeditProtocol);
    // Where a device's frames have no link header, more is kept than is left of them without one.
    let len = i64::from(pool.meta(pkt).frame_len) - Head::ETHERNET as i64;
    let len = len.max(pool.head(pkt).network().len() as i64);
    let all =
        pool.rewrite(pkt, |head| pedit.keys.iter().all(|key| rewrite(key, head, len, checked).is_some()));
    (pedit.control, all)
}

/// One word of a packet with this many bytes from the network header on.
fn rewrite(key: &PeditKey, head: &mut Head, len: i64, checked: bool) -> Option<()> {
    let begin = begin(key.header, head, checked)?;
    let mut at = begin + i64::from(key.offset);
    if let Some(step) = key.at {
        let byte = byte_at(head, begin + i64::from(step.offset), len)?;
        let step = i64::from((u32::from(byte) & step.mask).checked_shr(step.shift).unwrap_or(0));
        if (i64::from(key.offset) + step) % 4 != 0 {
            return None;
        }
        at += step;
    }
    if at < -(Head::ETHERNET as i64) - HEADROOM || at + 4 > len {
        return None;
    }
    let place = usize::try_from(at + Head::ETHERNET as i64 + HEADROOM).ok()?;
    write(key, head, place);
    Some(())
}

/// Where a header begins, counted from the network header. A transport header is found through the network
/// header, which must name the protocol that is meant; IPv4's only where that is `checked`.
fn begin(header: PeditHeader, head: &Head, checked: bool) -> Option<i64> {
    let meant = match header {
        PeditHeader::Network | PeditHeader::Ipv4 | PeditHeader::Ipv6 => return Some(0),
        PeditHeader::Ethernet => return Some(-(Head::ETHERNET as i64)),
        PeditHeader::Tcp => proto::TCP,
        PeditHeader::Udp => proto::UDP,
    };
    let network = head.network();
    match head.ethertype() {
        _ if head.tags().len() > 1 => None,
        ethertype::IPV4 => {
            let bytes = i64::from(network.first()? & 15) * 4;
            let is_meant = !checked || network.get(9) == Some(&meant);
            (network.len() >= 20 && bytes >= 20 && is_meant).then_some(bytes)
        }
        ethertype::IPV6 => {
            let (protocol, rest) = transport(ethertype::IPV6, network)?;
            (protocol == meant).then_some((network.len() - rest.len()) as i64)
        }
        _ => None,
    }
}

/// A byte of the packet; one that is not kept counts as zero.
fn byte_at(head: &Head, at: i64, len: i64) -> Option<u8> {
    let place = usize::try_from(at + Head::ETHERNET as i64).ok()?;
    (at < len).then(|| head.frame().get(place).copied().unwrap_or(0))
}

/// Writes a word at `place`, counted from the room before the frame. Bytes that are not kept are left out.
///
/// Sums are made as the kernel of a little-endian machine makes them: what a field's first byte carries goes
/// into its second.
fn write(key: &PeditKey, head: &mut Head, place: usize) {
    let frame = head.frame_mut();
    let index = |byte: usize| (place + byte).checked_sub(HEADROOM as usize);
    let old: [u8; 4] =
        core::array::from_fn(|byte| index(byte).and_then(|at| frame.get(at)).copied().unwrap_or(0));
    let new = changed(key, old);
    for (byte, new) in new.into_iter().enumerate() {
        if let Some(place) = index(byte).and_then(|at| frame.get_mut(at)) {
            *place = new;
        }
    }
}

fn changed(key: &PeditKey, old: [u8; 4]) -> [u8; 4] {
    let (old, mask, value) = (u32::from_le_bytes(old), key.mask.swap_bytes(), key.value.swap_bytes());
    let value = if key.add { old.wrapping_add(value) & !mask } else { value };
    (old & mask ^ value).to_le_bytes()
}
