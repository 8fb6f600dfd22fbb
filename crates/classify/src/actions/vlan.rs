//! `vlan`: tags are pushed, modified and popped. The outermost is metadata of the packet until it leaves the
//! device.

use tidegate_packet::{Head, Pkt, Pool};
use tidegate_policy::{Control, Vlan, VlanHow, VlanTag};

/// The bits of a tag that are the VLAN's number.
const ID: u16 = 0x0fff;
/// Above the VLAN ID are the bit that marks a packet as droppable and three bits of priority (IEEE 802.1Q).
const PRIORITY_SHIFT: u32 = 13;

pub(super) fn carry_out(vlan: &Vlan, pool: &mut Pool, pkt: &Pkt) -> Control {
    let before = pool.head(pkt).tags_len();
    let done = pool.rewrite(pkt, |head| match vlan.how {
        VlanHow::Pop => {
            head.pop_tag();
            true
        }
        VlanHow::Push(tag) => head.push_tag(tag.protocol, control(tag, 0)),
        VlanHow::Modify(tag) => {
            modify(tag, head);
            true
        }
    });
    // More tags than [`Head::TAGS`].
    if !done {
        return Control::Drop;
    }
    settle(pool, pkt, before);
    vlan.control
}

/// A tag's control information; what is not named stays as in `old`.
fn control(tag: VlanTag, old: u16) -> u16 {
    let rest = match tag.priority {
        Some(priority) => u16::from(priority) << PRIORITY_SHIFT | old & 1 << 12,
        None => old & !ID,
    };
    rest | tag.id & ID
}

fn modify(tag: VlanTag, head: &mut Head) {
    if let [(_, old), ..] = *head.tags() {
        head.pop_tag();
        head.push_tag(tag.protocol, control(tag, old));
    }
}

/// What filters take the packet for, and its length: a tag behind the outermost is in the frame.
fn settle(pool: &mut Pool, pkt: &Pkt, before: u32) {
    let head = pool.head(pkt);
    let outermost = head.tags().first().map_or(head.ethertype(), |(protocol, _)| *protocol);
    let inside = head.tags_len();
    let meta = pool.meta_mut(pkt);
    meta.ethertype = outermost;
    meta.frame_len = meta.frame_len + inside - before;
}
