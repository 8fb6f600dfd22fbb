//! nat.

use super::base::{ActionAttributes, Head, Row, general};
use crate::decode::message::numbers;
use crate::encode::message::{Devices, Unsent};
use core::net::Ipv4Addr;
use tidegate_netlink_wire::attribute::{Attributes, words};
use tidegate_policy::{Act, Action, Control, Nat};

/// `nat`.
pub(super) const ROW: Row = Row { name: "nat", structure: 1, ages: 2, encode, decode };

fn encode(to: &mut Attributes, action: &Action, _: Devices<'_>) -> Result<(), Unsent> {
    let (Act::Nat(act), index) = (&action.act, action.index) else { return Ok(()) };
    let mut bytes = general(index, act.control);
    bytes.extend(act.old.octets());
    bytes.extend(act.new.octets());
    bytes.extend(act.mask.to_be_bytes());
    bytes.extend(words(&[u32::from(act.egress)]));
    to.payload(1, &bytes);
    Ok(())
}

fn decode(dump: ActionAttributes<'_>) -> Option<(Head, Act)> {
    let (head, own) = dump.begun()?;
    let control = head.control;
    Some((head, Act::Nat(nat(control, own)?)))
}

fn nat(control: Control, own: &[u8]) -> Option<Nat> {
    let four = |at: usize| <[u8; 4]>::try_from(own.get(at..at + 4)?).ok();
    Some(Nat {
        egress: *numbers(own).get(3)? & 1 != 0,
        old: Ipv4Addr::from(four(0)?),
        new: Ipv4Addr::from(four(4)?),
        mask: u32::from_be_bytes(four(8)?),
        control,
    })
}
