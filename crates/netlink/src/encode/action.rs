//! Actions as they are sent: a numbered list of kinds.

use super::message::{Devices, Unsent};
use crate::action::row;
use tidegate_netlink_wire::attribute::{Attributes, words};
use tidegate_netlink_wire::numbers::{
    TCA_ACT_COOKIE, TCA_ACT_FLAGS, TCA_ACT_HW_STATS, TCA_ACT_INDEX, TCA_ACT_KIND, TCA_ACT_OPTIONS,
};
use tidegate_policy::{Action, ActionId, CardCounts, Only};

/// Where a message about the machine's actions has its list.
pub(super) const OF_MACHINE: u16 = 1;
const TCA_ROOT_FLAGS: u16 = 2;
const NO_PERCPU: u32 = 1;
const SKIP_HW: u32 = 2;
const SKIP_SW: u32 = 4;

/// A list of actions as an attribute of this number.
pub(crate) fn list(to: &mut Attributes, at: u16, all: &[Action], devices: Devices<'_>) -> Result<(), Unsent> {
    let mut list = Attributes::default();
    for (place, action) in (1..).zip(all) {
        let (mut entry, mut options) = (Attributes::default(), Attributes::default());
        entry.text(TCA_ACT_KIND, action.act.kind());
        let Some(row) = row(action.act.kind()) else {
            return Err(Unsent::NotNetlink("the actions mpls, tunnel_key and gate"));
        };
        (row.encode)(&mut options, action, devices)?;
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

/// The list that names a kind and none of its actions; the kernel then sends as many as there are.
pub(super) fn all_of(to: &mut Attributes, kind: &str) {
    let (mut entry, mut list) = (Attributes::default(), Attributes::default());
    entry.text(TCA_ACT_KIND, kind);
    list.nest(1, &entry);
    to.nest(OF_MACHINE, &list).payload(TCA_ROOT_FLAGS, &words(&[1, 1]));
}
