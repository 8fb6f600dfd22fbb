//! `skbmod`: the link header, and congestion marks.

use tidegate_packet::{Head, Pkt, Pool};
use tidegate_policy::{Control, Skbmod};

pub(super) fn carry_out(skbmod: &Skbmod, pool: &mut Pool, pkt: &Pkt) -> Control {
    // What is dropped is not touched before.
    if skbmod.control == Control::Drop {
        return Control::Drop;
    }
    if skbmod.ecn {
        pool.meta_mut(pkt).set_ce();
    } else {
        pool.rewrite(pkt, |head| write(skbmod, head));
    }
    skbmod.control
}

fn write(skbmod: &Skbmod, head: &mut Head) {
    let frame = head.frame_mut();
    if skbmod.swap {
        let (before, after) = frame[..12].split_at_mut(6);
        before.swap_with_slice(after);
        return;
    }
    for (address, at) in [(skbmod.destination, 0), (skbmod.source, 6)] {
        if let Some(address) = address {
            frame[at..at + 6].copy_from_slice(&address);
        }
    }
    // What the kernel holds the packet for stays.
    if let Some(ethertype) = skbmod.ethertype {
        frame[12..Head::ETHERNET].copy_from_slice(&ethertype.to_be_bytes());
    }
}
