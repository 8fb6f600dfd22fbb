//! Actions that rewrite packets.

use super::head::general;
use std::net::IpAddr;
use tidegate_policy::{Csum, Nat, Pedit, PeditHeader, PeditKey, Skbmod, Vlan, VlanHow, VlanTag};
use tidegate_sys::attribute::{Attributes, words};

/// An address as it stands in a packet.
pub(super) fn bytes(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

pub(super) fn nat(to: &mut Attributes, index: u32, act: &Nat) {
    let mut bytes = general(index, act.control);
    bytes.extend(act.old.octets());
    bytes.extend(act.new.octets());
    bytes.extend(act.mask.to_be_bytes());
    bytes.extend(words(&[u32::from(act.egress)]));
    to.payload(1, &bytes);
}

pub(super) fn csum(to: &mut Attributes, index: u32, act: &Csum) {
    let mut bytes = general(index, act.control);
    bytes.extend(words(&[act.sums]));
    to.payload(1, &bytes);
}

/// Words to rewrite; those of a named header, or that are added to, need the newer attributes.
pub(super) fn pedit(to: &mut Attributes, index: u32, act: &Pedit) {
    let mut bytes = general(index, act.control);
    bytes.extend([act.keys.len() as u8, 0, 0, 0]);
    act.keys.iter().for_each(|key| bytes.extend(pedit_key(key)));
    if act.keys.iter().all(|key| key.header == PeditHeader::Network && !key.add) {
        to.payload(2, &bytes);
        return;
    }
    let mut list = Attributes::default();
    for key in &act.keys {
        let mut entry = Attributes::default();
        entry.u16(1, key.header as u16).u16(2, u16::from(key.add));
        list.marked_nest(6, &entry);
    }
    to.payload(4, &bytes).marked_nest(5, &list);
}

fn pedit_key(key: &PeditKey) -> Vec<u8> {
    let mut bytes = key.mask.to_be_bytes().to_vec();
    bytes.extend(key.value.to_be_bytes());
    let at = key.at.unwrap_or_default();
    bytes.extend(words(&[key.offset as u32, at.offset as u32, at.mask, at.shift]));
    bytes
}

pub(super) fn skbmod(to: &mut Attributes, index: u32, act: &Skbmod) {
    let flags = u64::from(act.destination.is_some())
        | u64::from(act.source.is_some()) << 1
        | u64::from(act.ethertype.is_some()) << 2
        | u64::from(act.swap) << 3
        | u64::from(act.ecn) << 4;
    let mut bytes = general(index, act.control);
    bytes.extend([0; 4]);
    bytes.extend(flags.to_ne_bytes());
    to.payload(2, &bytes);
    for (number, address) in [(3, act.destination), (4, act.source)] {
        if let Some(address) = address {
            to.payload(number, &address);
        }
    }
    if let Some(ethertype) = act.ethertype {
        to.u16(5, ethertype);
    }
}

pub(super) fn vlan(to: &mut Attributes, index: u32, act: &Vlan) {
    let (how, tag) = match act.how {
        VlanHow::Pop => (1, None),
        // A number alone leads to the action that has it.
        VlanHow::Modify(VlanTag { protocol: 0, .. }) => (0, None),
        VlanHow::Push(tag) => (2, Some(tag)),
        VlanHow::Modify(tag) => (3, Some(tag)),
    };
    let mut bytes = general(index, act.control);
    bytes.extend(words(&[how]));
    to.payload(2, &bytes);
    if let Some(tag) = tag {
        to.u16(3, tag.id);
        if tag.protocol != VlanTag::DOT1Q {
            to.payload(4, &tag.protocol.to_be_bytes());
        }
        if let Some(priority) = tag.priority.filter(|priority| *priority > 0) {
            to.u8(6, priority);
        }
    }
}
