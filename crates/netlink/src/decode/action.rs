//! Actions as the kernel sends them: each a structure that begins alike, and attributes beside it.

use super::message::{Names, Unread, counted, numbers};
use crate::action::{ActionAttributes, Head, row};
use alloc::format;
use alloc::vec::Vec;
use tidegate_netlink_wire::attribute::{Found, read};
use tidegate_netlink_wire::numbers::{
    TCA_ACT_COOKIE, TCA_ACT_FLAGS, TCA_ACT_HW_STATS, TCA_ACT_KIND, TCA_ACT_OPTIONS, TCA_ACT_STATS,
};
use tidegate_policy::dump::ActionDump;
use tidegate_policy::{Act, Action, CardCounts, CtinfoCounts, Only};

/// Nanoseconds of a clock tick, the unit of actions' ages (hundredths of a second).
const TICK: u64 = 10_000_000;

/// A list of actions.
pub(super) fn actions(bytes: &[u8], names: Names<'_>) -> Result<Vec<ActionDump>, Unread> {
    read(bytes).all().map(|(_, bytes)| action(bytes, names)).collect()
}

/// A policer that was written without `action`.
pub(super) fn old_policer(bytes: &[u8]) -> Result<ActionDump, Unread> {
    let options = read(bytes);
    let odd = || Unread::Odd("a policer");
    let row = row("police").ok_or_else(odd)?;
    let reported = ActionAttributes { structure: &[], options: &options, names: &|_| None };
    let (head, act) = (row.decode)(reported).ok_or_else(odd)?;
    let action = Action { index: head.index, old_style: true, ..Action::from(act) };
    Ok(dump(action, &head, &Found::default(), &options, row.ages))
}

fn action(bytes: &[u8], names: Names<'_>) -> Result<ActionDump, Unread> {
    let attributes = read(bytes);
    let kind = attributes.text(TCA_ACT_KIND).ok_or(Unread::Odd("an action"))?;
    let Some(row) = row(kind) else {
        return Err(Unread::Kind(format!("the action {kind}")));
    };
    let odd = || Unread::Odd("an action's options");
    let options = attributes.nest(TCA_ACT_OPTIONS);
    // Words to rewrite are in one of two places.
    let structure = options.get(row.structure).or(options.get(2)).ok_or_else(odd)?;
    let (head, act) =
        (row.decode)(ActionAttributes { structure, options: &options, names }).ok_or_else(odd)?;
    let mut action = Action { index: head.index, ..Action::from(act) };
    beside(&mut action, &attributes);
    Ok(dump(action, &head, &attributes, &options, row.ages))
}

/// What any action may have beside its own.
fn beside(action: &mut Action, attributes: &Found<'_>) {
    let first = |number: u16| attributes.get(number).map(numbers).unwrap_or_default();
    let flags = first(TCA_ACT_FLAGS).first().copied().unwrap_or(0);
    action.cookie = attributes.get(TCA_ACT_COOKIE).unwrap_or_default().to_vec();
    action.no_percpu = flags & 1 != 0;
    action.only = match flags & 6 {
        2 => Some(Only::Software),
        4 => Some(Only::Card),
        _ => None,
    };
    action.card = match first(TCA_ACT_HW_STATS).as_slice() {
        [1, ..] => CardCounts::Immediate,
        [2, ..] => CardCounts::Delayed,
        [0, ..] => CardCounts::Disabled,
        _ => CardCounts::Any,
    };
}

fn dump(action: Action, head: &Head, attributes: &Found<'_>, options: &Found<'_>, ages: u16) -> ActionDump {
    let stats = counted(&attributes.nest(TCA_ACT_STATS));
    let ages: Vec<u64> = options
        .get(ages)
        .unwrap_or_default()
        .chunks_exact(8)
        .map(|eight| u64::from_ne_bytes(core::array::from_fn(|at| eight[at])))
        .collect();
    let age = |place: usize| ages.get(place).copied().unwrap_or(0).saturating_mul(TICK);
    let ctinfo = match action.act {
        Act::Ctinfo(_) => CtinfoCounts {
            dscp_set: options.u64(8).unwrap_or(0),
            dscp_failed: options.u64(9).unwrap_or(0),
            mark_set: options.u64(10).unwrap_or(0),
        },
        _ => CtinfoCounts::default(),
    };
    ActionDump {
        action,
        bytes: stats.bytes,
        packets: stats.packets,
        drops: stats.drops,
        overlimits: stats.overlimits,
        binds: head.binds,
        refs: head.refs,
        counted_old: false,
        made_old: false,
        installed: age(0),
        used: age(1),
        first_used: Some(age(3)).filter(|age| *age > 0),
        ctinfo,
    }
}
