//! skbmod.

use super::base::{ActionAttributes, Head, Row, general};
use crate::decode::message::numbers;
use crate::encode::message::{Devices, Unsent};
use tidegate_netlink_wire::attribute::{Attributes, Found};
use tidegate_policy::{Act, Action, Control, Skbmod};

/// `skbmod`.
pub(super) const ROW: Row = Row { name: "skbmod", structure: 2, ages: 1, encode, decode };

fn encode(to: &mut Attributes, action: &Action, _: Devices<'_>) -> Result<(), Unsent> {
    let (Act::Skbmod(act), index) = (&action.act, action.index) else { return Ok(()) };
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
    Ok(())
}

fn decode(dump: ActionAttributes<'_>) -> Option<(Head, Act)> {
    let (head, own) = dump.begun()?;
    let control = head.control;
    Some((head, Act::Skbmod(skbmod(control, own, dump.options)?)))
}

fn skbmod(control: Control, own: &[u8], options: &Found<'_>) -> Option<Skbmod> {
    let flags = *numbers(own.get(4..)?).first()?;
    let link = |number: u16| options.get(number).and_then(|bytes| <[u8; 6]>::try_from(bytes).ok());
    Some(Skbmod {
        destination: link(3),
        source: link(4),
        ethertype: options.u16(5),
        swap: flags & 8 != 0,
        ecn: flags & 16 != 0,
        control,
    })
}
