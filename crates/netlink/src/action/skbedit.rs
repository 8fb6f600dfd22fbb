//! skbedit.

use super::base::{ActionAttributes, Head, Row, general};
use crate::encode::message::{Devices, Unsent};
use tidegate_netlink_wire::attribute::{Attributes, Found};
use tidegate_policy::{Act, Action, Control, PacketType, Skbedit};

/// `skbedit`.
pub(super) const ROW: Row = Row { name: "skbedit", structure: 2, ages: 1, encode, decode };

fn encode(to: &mut Attributes, action: &Action, _: Devices<'_>) -> Result<(), Unsent> {
    let (Act::Skbedit(act), index) = (&action.act, action.index) else { return Ok(()) };
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
    Ok(())
}

fn decode(dump: ActionAttributes<'_>) -> Option<(Head, Act)> {
    let (head, _) = dump.begun()?;
    let control = head.control;
    Some((head, Act::Skbedit(skbedit(control, dump.options))))
}

fn skbedit(control: Control, options: &Found<'_>) -> Skbedit {
    const TYPES: [PacketType; 4] =
        [PacketType::Host, PacketType::Broadcast, PacketType::Multicast, PacketType::OtherHost];
    Skbedit {
        mark: options.u32(5).map(|mark| (mark, options.u32(8))),
        priority: options.u32(3),
        queue: options.u16(4),
        packet_type: options.u16(7).and_then(|number| TYPES.get(usize::from(number)).copied()),
        inherit_dsfield: options.u64(9).unwrap_or(0) & 0x20 != 0,
        control,
    }
}
