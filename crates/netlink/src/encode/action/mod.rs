//! Actions: a numbered list of kinds, each with a structure that begins alike.

mod head;
mod police;
mod rewrite;

use super::message::{Devices, Unsent, number};
use head::{control, general};
use tidegate_policy::{Act, Action, ActionId, CardCounts, Connmark, Ct, CtNat, Ctinfo, Gact, Mirred, Only, Skbedit};
use tidegate_sys::attribute::{Attributes, words};
use tidegate_sys::numbers::{
    TCA_ACT_COOKIE, TCA_ACT_FLAGS, TCA_ACT_HW_STATS, TCA_ACT_INDEX, TCA_ACT_KIND, TCA_ACT_OPTIONS,
};

pub(crate) use police::policer;

/// Where a message about the machine's actions has its list.
pub(super) const OF_MACHINE: u16 = 1;
const TCA_ROOT_FLAGS: u16 = 2;
/// What simple's text has, with the zeros that end it.
const SIMPLE_OCTETS: usize = 32;
const NO_PERCPU: u32 = 1;
const SKIP_HW: u32 = 2;
const SKIP_SW: u32 = 4;

/// A list of actions as an attribute of this number.
pub(crate) fn list(to: &mut Attributes, at: u16, all: &[Action], devices: Devices<'_>) -> Result<(), Unsent> {
    let mut list = Attributes::default();
    for (place, action) in (1..).zip(all) {
        let (mut entry, mut options) = (Attributes::default(), Attributes::default());
        entry.text(TCA_ACT_KIND, action.act.kind());
        act(&mut options, action, devices)?;
        entry.marked_nest(TCA_ACT_OPTIONS, &options);
        beside(&mut entry, action);
        list.nest(place, &entry);
    }
    to.nest(at, &list);
    Ok(())
}

/// What any action may have beside its own.
fn beside(to: &mut Attributes, action: &Action) {
    if !action.cookie.is_empty() {
        to.payload(TCA_ACT_COOKIE, &action.cookie);
    }
    let only = match action.only {
        Some(Only::Card) => SKIP_SW,
        Some(Only::Software) => SKIP_HW,
        None => 0,
    };
    let flags = only | if action.no_percpu { NO_PERCPU } else { 0 };
    if flags != 0 {
        to.payload(TCA_ACT_FLAGS, &words(&[flags, flags]));
    }
    let counts = match action.card {
        CardCounts::Any => return,
        CardCounts::Immediate => 1,
        CardCounts::Delayed => 2,
        CardCounts::Disabled => 0,
    };
    to.payload(TCA_ACT_HW_STATS, &words(&[counts, 3]));
}

/// Some of the machine's actions, by kind and number.
pub(super) fn named(to: &mut Attributes, ids: &[ActionId]) {
    let mut list = Attributes::default();
    for (place, id) in (1..).zip(ids) {
        let mut entry = Attributes::default();
        entry.text(TCA_ACT_KIND, id.kind).u32(TCA_ACT_INDEX, id.index);
        list.nest(place, &entry);
    }
    to.nest(OF_MACHINE, &list);
}

/// All of a kind.
pub(super) fn flush(to: &mut Attributes, kind: &str) {
    all_of(to, kind);
}

/// The list that names a kind and none of its actions; of many the kernel then tells as many as there are.
pub(super) fn all_of(to: &mut Attributes, kind: &str) {
    let (mut entry, mut list) = (Attributes::default(), Attributes::default());
    entry.text(TCA_ACT_KIND, kind);
    list.nest(1, &entry);
    to.nest(OF_MACHINE, &list).payload(TCA_ROOT_FLAGS, &words(&[1, 1]));
}

fn act(to: &mut Attributes, action: &Action, devices: Devices<'_>) -> Result<(), Unsent> {
    let index = action.index;
    match &action.act {
        Act::Gact(act) => gact(to, index, act),
        Act::Police(act) => police::options(to, index, act),
        Act::Mirred(act) => mirred(to, index, act, devices)?,
        Act::Skbedit(act) => skbedit(to, index, act),
        Act::Connmark(act) => connmark(to, index, act),
        Act::Ctinfo(act) => ctinfo(to, index, act),
        Act::Ct(act) => ct(to, index, act),
        Act::Simple(act) => {
            to.payload(2, &general(index, act.control));
            if let Some(text) = &act.text {
                let mut bytes = text.as_bytes().to_vec();
                bytes.resize(SIMPLE_OCTETS, 0);
                to.payload(3, &bytes);
            }
        }
        Act::Sample(act) => {
            to.payload(2, &general(index, act.control)).maybe(3, act.rate).maybe(5, act.group).maybe(4, act.octets);
        }
        Act::Nat(act) => rewrite::nat(to, index, act),
        Act::Pedit(act) => rewrite::pedit(to, index, act),
        Act::Csum(act) => rewrite::csum(to, index, act),
        Act::Skbmod(act) => rewrite::skbmod(to, index, act),
        Act::Vlan(act) => rewrite::vlan(to, index, act),
    }
    Ok(())
}

fn gact(to: &mut Attributes, index: u32, act: &Gact) {
    to.payload(2, &general(index, act.control));
    if let Some(random) = act.random {
        let mut bytes = (if random.drawn { 1_u16 } else { 2 }).to_ne_bytes().to_vec();
        bytes.extend(random.one_in.to_ne_bytes());
        bytes.extend(words(&[control(random.control)]));
        to.payload(3, &bytes);
    }
}

fn mirred(to: &mut Attributes, index: u32, act: &Mirred, devices: Devices<'_>) -> Result<(), Unsent> {
    let how = match (act.arrives, act.copy) {
        (false, false) => 1,
        (false, true) => 2,
        (true, false) => 3,
        (true, true) => 4,
    };
    let mut bytes = general(index, act.control);
    bytes.extend(words(&[how, number(devices, &act.to)?]));
    to.payload(2, &bytes);
    Ok(())
}

fn skbedit(to: &mut Attributes, index: u32, act: &Skbedit) {
    const INHERIT_DS_FIELD: u64 = 0x20;
    to.payload(2, &general(index, act.control)).maybe(3, act.priority);
    if let Some(queue) = act.queue {
        to.u16(4, queue);
    }
    if let Some((mark, mask)) = act.mark {
        to.u32(5, mark).maybe(8, mask);
    }
    if let Some(kind) = act.packet_type {
        to.u16(7, kind as u16);
    }
    if act.inherit_dsfield {
        to.u64(9, INHERIT_DS_FIELD);
    }
}

fn connmark(to: &mut Attributes, index: u32, act: &Connmark) {
    let mut bytes = general(index, act.control);
    bytes.extend(act.zone.to_ne_bytes());
    bytes.extend([0, 0]);
    to.payload(1, &bytes);
}

fn ctinfo(to: &mut Attributes, index: u32, act: &Ctinfo) {
    to.payload(3, &general(index, act.control)).u16(4, act.zone);
    if let Some((mask, state)) = act.dscp {
        to.u32(5, mask);
        if state != 0 {
            to.u32(6, state);
        }
    }
    to.maybe(7, act.mark);
}

fn ct(to: &mut Attributes, index: u32, act: &Ct) {
    let mut how = u16::from(act.commit) | u16::from(act.force) << 1 | u16::from(act.clear) << 2;
    if let Some((mark, mask)) = act.mark {
        to.u32(5, mark).u32(6, mask);
    }
    if let Some(zone) = act.zone {
        to.u16(4, zone);
    }
    if let Some((label, mask)) = act.label {
        to.payload(7, &label.to_be_bytes()).payload(8, &mask.to_be_bytes());
    }
    match act.nat {
        None => {}
        Some(CtNat::Known) => how |= 8,
        Some(CtNat::New { source, addresses: (low, high), ports }) => {
            how |= 8 | if source { 16 } else { 32 };
            let numbers = if low.is_ipv4() { [9, 10] } else { [11, 12] };
            for (number, address) in numbers.into_iter().zip([low, high]) {
                to.payload(number, &rewrite::bytes(address));
            }
            if let Some((low, high)) = ports {
                to.payload(13, &low.to_be_bytes()).payload(14, &high.to_be_bytes());
            }
        }
    }
    to.u16(3, how).payload(1, &general(index, act.control));
}
