//! pedit.

use super::base::{ActionAttributes, Head, Row, general};
use crate::decode::message::numbers;
use crate::encode::message::{Devices, Unsent};
use alloc::vec::Vec;
use tidegate_netlink_wire::attribute::{Attributes, Found, read, words};
use tidegate_policy::{Act, Action, Control, Pedit, PeditAt, PeditHeader, PeditKey};

/// `pedit`.
pub(super) const ROW: Row = Row { name: "pedit", structure: 4, ages: 1, encode, decode };

/// Words to rewrite; those of a named header, or that are added to, need the newer attributes.
fn encode(to: &mut Attributes, action: &Action, _: Devices<'_>) -> Result<(), Unsent> {
    let (Act::Pedit(act), index) = (&action.act, action.index) else { return Ok(()) };
    let mut bytes = general(index, act.control);
    bytes.extend([act.keys.len() as u8, 0, 0, 0]);
    act.keys.iter().for_each(|key| bytes.extend(pedit_key(key)));
    if act.keys.iter().all(|key| key.header == PeditHeader::Network && !key.add) {
        to.payload(2, &bytes);
        return Ok(());
    }
    let mut list = Attributes::default();
    for key in &act.keys {
        let mut entry = Attributes::default();
        entry.u16(1, key.header as u16).u16(2, u16::from(key.add));
        list.marked_nest(6, &entry);
    }
    to.payload(4, &bytes).marked_nest(5, &list);
    Ok(())
}

fn pedit_key(key: &PeditKey) -> Vec<u8> {
    let mut bytes = key.mask.to_be_bytes().to_vec();
    bytes.extend(key.value.to_be_bytes());
    let at = key.at.unwrap_or_default();
    bytes.extend(words(&[key.offset as u32, at.offset as u32, at.mask, at.shift]));
    bytes
}

fn decode(dump: ActionAttributes<'_>) -> Option<(Head, Act)> {
    let (head, own) = dump.begun()?;
    let control = head.control;
    Some((head, Act::Pedit(pedit(control, own, dump.options)?)))
}

fn pedit(control: Control, own: &[u8], options: &Found<'_>) -> Option<Pedit> {
    let (head, keys) = own.split_at_checked(4)?;
    let named = options.nest(5);
    let mut named = named.all().map(|(_, bytes)| read(bytes));
    let mut all = Vec::new();
    for bytes in keys.chunks_exact(24).take(head[0].into()) {
        let be = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let words = numbers(bytes);
        let (header, add) = match named.next() {
            Some(entry) => (pedit_header(entry.u16(1).unwrap_or(0))?, entry.u16(2) == Some(1)),
            None => (PeditHeader::Network, false),
        };
        let at = PeditAt { offset: words[3] as i32, mask: words[4], shift: words[5] };
        let moved = at.mask != 0;
        let key = PeditKey {
            header,
            add,
            value: be(4),
            mask: be(0),
            offset: words[2] as i32,
            at: moved.then_some(at),
        };
        all.push(key);
    }
    Some(Pedit { keys: all, control })
}

const fn pedit_header(number: u16) -> Option<PeditHeader> {
    match number {
        0 => Some(PeditHeader::Network),
        1 => Some(PeditHeader::Ethernet),
        2 => Some(PeditHeader::Ipv4),
        3 => Some(PeditHeader::Ipv6),
        4 => Some(PeditHeader::Tcp),
        5 => Some(PeditHeader::Udp),
        _ => None,
    }
}
