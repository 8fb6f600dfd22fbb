//! `csum`: checksums are computed again, where what follows the network header is one of those requested.

use tidegate_packet::header::{ethertype, proto};
use tidegate_packet::{Head, Pkt, Pool, Transport};
use tidegate_policy::{Control, Csum};

pub(super) fn carry_out(csum: &Csum, pool: &mut Pool, pkt: &Pkt) -> Control {
    if pool.head(pkt).tags().len() < 2 {
        pool.rewrite(pkt, |head| compute(csum, head));
    } else {
        // Behind two tags the kernel looks for the header at the frame's beginning, and leaves it so.
        pool.rewrite(pkt, Head::lose_network);
    }
    csum.control
}

fn compute(csum: &Csum, head: &mut Head) {
    if let Some(transport) = head.transport().filter(|it| is_requested(csum, head, *it)) {
        head.sum_transport(transport);
    }
    if csum.sums & Csum::HEADER != 0 {
        head.sum_header();
    }
}

/// UDP's checksum that is left out stays so.
fn is_requested(csum: &Csum, head: &Head, transport: Transport) -> bool {
    let v6 = head.ethertype() == ethertype::IPV6;
    let bit = match transport.protocol {
        proto::ICMP if !v6 => Csum::ICMP,
        proto::ICMPV6 if v6 => Csum::ICMP,
        proto::IGMP if !v6 => Csum::IGMP,
        proto::TCP => Csum::TCP,
        proto::UDP => Csum::UDP,
        _ => return false,
    };
    let left_out = transport.protocol == proto::UDP
        && head.network().get(transport.at + 6..transport.at + 8) == Some(&[0, 0]);
    csum.sums & bit != 0 && !left_out
}
