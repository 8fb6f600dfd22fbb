//! vlan.

use super::base::{ActionAttributes, Head, Row, general};
use crate::decode::message::numbers;
use crate::encode::message::{Devices, Unsent};
use tidegate_netlink_wire::attribute::{Attributes, Found, words};
use tidegate_policy::{Act, Action, Vlan, VlanHow, VlanTag};

/// `vlan`.
pub(super) const ROW: Row = Row { name: "vlan", structure: 2, ages: 1, encode, decode };

fn encode(to: &mut Attributes, action: &Action, _: Devices<'_>) -> Result<(), Unsent> {
    let (Act::Vlan(act), index) = (&action.act, action.index) else { return Ok(()) };
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
    Ok(())
}

fn decode(dump: ActionAttributes<'_>) -> Option<(Head, Act)> {
    let (head, own) = dump.begun()?;
    let control = head.control;
    let how = vlan(*numbers(own).first()?, dump.options)?;
    Some((head, Act::Vlan(Vlan { how, control })))
}

fn vlan(how: u32, options: &Found<'_>) -> Option<VlanHow> {
    let tag = VlanTag {
        id: options.u16(3).unwrap_or(0),
        protocol: options.u16(4).map_or(VlanTag::DOT1Q, u16::from_be),
        priority: options.u8(6),
    };
    match how {
        1 => Some(VlanHow::Pop),
        2 => Some(VlanHow::Push(tag)),
        3 => Some(VlanHow::Modify(tag)),
        _ => None,
    }
}
