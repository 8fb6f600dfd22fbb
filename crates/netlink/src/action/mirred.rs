//! mirred.

use super::base::{ActionAttributes, Head, Row, general};
use crate::decode::message::numbers;
use crate::encode::message::{Devices, Unsent, number};
use alloc::borrow::ToOwned;
use tidegate_netlink_wire::attribute::{Attributes, words};
use tidegate_policy::{Act, Action, Mirred};

/// `mirred`.
pub(super) const ROW: Row = Row { name: "mirred", structure: 2, ages: 1, encode, decode };

fn encode(to: &mut Attributes, action: &Action, devices: Devices<'_>) -> Result<(), Unsent> {
    let (Act::Mirred(act), index) = (&action.act, action.index) else { return Ok(()) };
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

fn decode(dump: ActionAttributes<'_>) -> Option<(Head, Act)> {
    let (head, own) = dump.begun()?;
    let control = head.control;
    let words = numbers(own);
    let (how, device) = (*words.first()?, *words.get(1)?);
    let to = (dump.names)(device).unwrap_or_else(|| "*".to_owned());
    Some((
        head,
        Act::Mirred(Mirred {
            to,
            device,
            copy: matches!(how, 2 | 4),
            arrives: matches!(how, 3 | 4),
            control,
        }),
    ))
}
