//! `nat`: addresses of IPv4 become others, packet by packet; the checksums over them follow.

use tidegate_packet::header::proto;
use tidegate_packet::{Head, Pkt, Pool, Transport};
use tidegate_policy::{Control, Nat};

/// Offset of IPv4's source address; the destination follows.
const SOURCE: usize = 12;
/// ICMP messages that hold the packet they are about: unreachable, source quench, redirect, time exceeded,
/// parameter problem.
const ABOUT_ANOTHER: [u8; 5] = [3, 4, 5, 11, 12];
/// Bytes of ICMP's header before that packet.
const ICMP_HEADER: usize = 8;

/// Translates a packet, whatever network header it has: that is not checked.
pub(super) fn carry_out(nat: &Nat, pool: &mut Pool, pkt: &Pkt) -> Control {
    // What is dropped is not touched before.
    if nat.control == Control::Drop {
        return Control::Drop;
    }
    if pool.head(pkt).has_lost_network()
        || pool.head(pkt).network().len() < 20
        || !concerns(nat, pool.head(pkt))
    {
        return nat.control;
    }
    pool.rewrite(pkt, |head| translate(nat, head));
    nat.control
}

/// Its address is one of those looked for, or it is an ICMP message, which may hold such a packet.
fn concerns(nat: &Nat, head: &Head) -> bool {
    let network = head.network();
    let first_icmp = u16::from_be_bytes([network[6], network[7]]) & 0x1fff == 0 && network[9] == proto::ICMP;
    first_icmp || translated(nat, address(head, place(nat.egress))).is_some()
}

/// Offset of the address that is translated.
const fn place(source: bool) -> usize {
    if source { SOURCE } else { SOURCE + 4 }
}

fn address(head: &Head, at: usize) -> u32 {
    let bytes = head.network().get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    u32::from_be_bytes(bytes.unwrap_or_default())
}

/// What an address becomes, if it is one of those looked for.
fn translated(nat: &Nat, address: u32) -> Option<u32> {
    ((address ^ nat.old.to_bits()) & nat.mask == 0)
        .then(|| nat.new.to_bits() & nat.mask | address & !nat.mask)
}

fn translate(nat: &Nat, head: &mut Head) {
    let transport = transport(head);
    let at = place(nat.egress);
    if let Some(new) = translated(nat, address(head, at)) {
        // ICMP's checksum does not cover addresses.
        let covering = transport.filter(|it| matches!(it.protocol, proto::TCP | proto::UDP));
        head.replace(at, &new.to_be_bytes(), true, covering);
    }
    if let Some(transport) = transport.filter(|it| it.protocol == proto::ICMP) {
        translate_inside(nat, head, transport);
    }
}

/// What follows an IPv4 header that is taken for one; nothing in later fragments.
fn transport(head: &Head) -> Option<Transport> {
    let network = head.network();
    let later = u16::from_be_bytes([network[6], network[7]]) & 0x1fff != 0;
    let at = usize::from(network[0] & 15) * 4;
    (!later).then(|| Transport { protocol: network[9], at, len: 0 })
}

/// The packet that an error is about went the other way; its own checksum is left as it was.
fn translate_inside(nat: &Nat, head: &mut Head, transport: Transport) {
    let kind = head.network().get(transport.at).copied();
    if !kind.is_some_and(|kind| ABOUT_ANOTHER.contains(&kind)) {
        return;
    }
    let at = transport.at + ICMP_HEADER + place(!nat.egress);
    if head.network().len() < transport.at + ICMP_HEADER + 20 {
        return;
    }
    if let Some(new) = translated(nat, address(head, at)) {
        head.replace(at, &new.to_be_bytes(), false, Some(transport));
    }
}
