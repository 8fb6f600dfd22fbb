//! `mpls`: labels are pushed, modified and popped (RFC 3032). They lie between the link header and the
//! network header, and are the packet's network header for those who read it.

use tidegate_packet::{Head, Pkt, Pool};
use tidegate_policy::{Control, Mpls, MplsFields, MplsHow};

/// Bytes of a label with its class, the bottom's bit and the time to live.
const LABEL_LEN: u32 = 4;
const LABEL_SHIFT: u32 = 12;
const CLASS_SHIFT: u32 = 9;
const BOTTOM: u32 = 1 << 8;

/// Carries it out. `None`: the packet cannot be changed so, and is dropped.
pub(super) fn carry_out(mpls: &Mpls, pool: &mut Pool, pkt: &Pkt) -> Option<Control> {
    let labelled = matches!(pool.head(pkt).ethertype(), MplsFields::UNICAST | MplsFields::MULTICAST);
    match mpls.how {
        // A packet without labels passes as it is.
        MplsHow::Pop(_) if !labelled => {}
        MplsHow::Pop(protocol) => {
            pool.rewrite(pkt, |head| *head = popped(head, protocol));
            settle(pool, pkt, |len| len.saturating_sub(LABEL_LEN));
        }
        MplsHow::Push(protocol, fields) => {
            let bottom = fields.bottom.unwrap_or(!labelled);
            let label = written(0, MplsFields { bottom: Some(bottom), ..fields }).to_be_bytes();
            pool.rewrite(pkt, |head| *head = head.wrapped(protocol, &label));
            settle(pool, pkt, |len| len + LABEL_LEN);
        }
        MplsHow::Modify(_) | MplsHow::DecTtl if !labelled => return None,
        MplsHow::Modify(fields) => change(pool, pkt, |label| written(label, fields)),
        MplsHow::DecTtl => {
            let ttl = pool.head(pkt).word(0).map_or(0, |label| label & 0xff);
            if ttl <= 1 {
                return None;
            }
            change(pool, pkt, |label| label - 1);
        }
    }
    Some(mpls.control)
}

/// A label with these fields; those that are not named stay as in `old`.
fn written(old: u32, fields: MplsFields) -> u32 {
    let mut label = old;
    let mut set = |mask: u32, value: Option<u32>| {
        if let Some(value) = value {
            label = label & !mask | value & mask;
        }
    };
    set(0xffff_f000, fields.label.map(|label| label << LABEL_SHIFT));
    set(7 << CLASS_SHIFT, fields.class.map(|class| u32::from(class) << CLASS_SHIFT));
    set(BOTTOM, fields.bottom.map(|bottom| if bottom { BOTTOM } else { 0 }));
    set(0xff, fields.ttl.map(u32::from));
    label
}

fn change(pool: &mut Pool, pkt: &Pkt, to: impl FnOnce(u32) -> u32) {
    pool.rewrite(pkt, |head| {
        if let Some(label) = head.network_mut().first_chunk_mut::<4>() {
            *label = to(u32::from_be_bytes(*label)).to_be_bytes();
        }
    });
}

/// The packet without its outermost label.
fn popped(head: &Head, protocol: u16) -> Head {
    let mut inner = head.unwrapped(protocol, LABEL_LEN as usize);
    for (ethertype, control) in head.tags().iter().rev() {
        inner.push_tag(*ethertype, *control);
    }
    inner
}

/// What filters take the packet for, and its length in memory; queues count it as it came.
fn settle(pool: &mut Pool, pkt: &Pkt, len: impl FnOnce(u32) -> u32) {
    let head = pool.head(pkt);
    let (tagged, inner) = (!head.tags().is_empty(), head.ethertype());
    let meta = pool.meta_mut(pkt);
    if !tagged {
        meta.ethertype = inner;
    }
    meta.frame_len = len(meta.frame_len);
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;
    use tidegate_packet::Meta;
    use tidegate_packet::header::ethertype;

    /// The bytes from the network header on, what the packet is taken for and its length after these; as the
    /// 6.1 kernel's u32 filters find them behind the actions at clsact's egress.
    fn after(all: &[MplsHow]) -> Option<(u16, u32, Vec<u8>)> {
        let head = Head::from_network(ethertype::IPV4, &[0x45, 0, 0, 20, 9, 9, 0, 0, 64, 17, 0, 0]);
        let mut pool = Pool::new(1);
        let pkt = pool.insert(Meta::of(&head, 514), head).expect("there is room");
        let done = all.iter().all(|how| {
            carry_out(&Mpls { how: *how, control: Control::Pipe }, &mut pool, &pkt) == Some(Control::Pipe)
        });
        let (meta, head) = (pool.meta(&pkt), pool.head(&pkt));
        assert_eq!((meta.len, meta.ethertype), (514, head.ethertype()));
        let seen = (meta.ethertype, meta.frame_len, head.network()[..8].to_vec());
        pool.release(pkt);
        done.then_some(seen)
    }

    fn push(label: u32) -> MplsHow {
        let fields = MplsFields { label: Some(label), ttl: Some(255), ..MplsFields::default() };
        MplsHow::Push(MplsFields::UNICAST, fields)
    }

    #[test]
    fn labels_are_pushed_popped_and_changed_as_linux_does() {
        let ip = [0x45, 0, 0, 20, 9, 9, 0, 0];
        let plain = Some((ethertype::IPV4, 514, ip.to_vec()));
        assert_eq!(after(&[push(20)]), Some((0x8847, 518, vec![0, 1, 0x41, 0xff, 0x45, 0, 0, 20])));
        // Only the first that was pushed is at the bottom.
        let twice = vec![0, 1, 0x50, 0xff, 0, 1, 0x41, 0xff];
        assert_eq!(after(&[push(20), push(21)]), Some((0x8847, 522, twice)));
        assert_eq!(after(&[push(20), MplsHow::Pop(0x0800)]), plain);
        assert_eq!(after(&[MplsHow::Pop(0x0800)]), plain);
        let fields = MplsFields { class: Some(5), bottom: Some(false), ttl: Some(7), label: None };
        let changed = vec![0, 1, 0x4a, 7, 0x45, 0, 0, 20];
        assert_eq!(after(&[push(20), MplsHow::Modify(fields)]), Some((0x8847, 518, changed)));
        assert_eq!(after(&[MplsHow::Modify(fields)]), None);
        assert_eq!(after(&[MplsHow::DecTtl]), None);
    }

    #[test]
    fn a_time_to_live_that_ends_drops_the_packet() {
        let with = |ttl| {
            let ttl = MplsFields { label: Some(20), ttl: Some(ttl), ..MplsFields::default() };
            [MplsHow::Push(MplsFields::MULTICAST, ttl), MplsHow::DecTtl]
        };
        assert_eq!(after(&with(2)), Some((0x8848, 518, vec![0, 1, 0x41, 1, 0x45, 0, 0, 20])));
        assert_eq!(after(&with(1)), None);
    }
}
