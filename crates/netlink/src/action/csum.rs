//! csum.

use super::base::{ActionAttributes, Head, Row, general};
use crate::decode::message::numbers;
use crate::encode::message::{Devices, Unsent};
use tidegate_netlink_wire::attribute::{Attributes, words};
use tidegate_policy::{Act, Action, Csum};

/// `csum`.
pub(super) const ROW: Row = Row { name: "csum", structure: 1, ages: 2, encode, decode };

fn encode(to: &mut Attributes, action: &Action, _: Devices<'_>) -> Result<(), Unsent> {
    let (Act::Csum(act), index) = (&action.act, action.index) else { return Ok(()) };
    let mut bytes = general(index, act.control);
    bytes.extend(words(&[act.sums]));
    to.payload(1, &bytes);
    Ok(())
}

fn decode(dump: ActionAttributes<'_>) -> Option<(Head, Act)> {
    let (head, own) = dump.begun()?;
    let control = head.control;
    Some((head, Act::Csum(Csum { sums: *numbers(own).first()?, control })))
}
