//! connmark and ctinfo.

use super::base::{ActionAttributes, Head, Row, general};
use crate::encode::message::{Devices, Unsent};
use tidegate_netlink_wire::attribute::Attributes;
use tidegate_policy::{Act, Action, Connmark, Ctinfo};

/// `connmark`.
pub(super) const CONNMARK: Row =
    Row { name: "connmark", structure: 1, ages: 2, encode: encode_connmark, decode: decode_connmark };

/// `ctinfo`.
pub(super) const CTINFO: Row =
    Row { name: "ctinfo", structure: 3, ages: 2, encode: encode_ctinfo, decode: decode_ctinfo };

fn encode_connmark(to: &mut Attributes, action: &Action, _: Devices<'_>) -> Result<(), Unsent> {
    let (Act::Connmark(act), index) = (&action.act, action.index) else { return Ok(()) };
    let mut bytes = general(index, act.control);
    bytes.extend(act.zone.to_ne_bytes());
    bytes.extend([0, 0]);
    to.payload(1, &bytes);
    Ok(())
}

fn decode_connmark(dump: ActionAttributes<'_>) -> Option<(Head, Act)> {
    let (head, own) = dump.begun()?;
    let control = head.control;
    let zone = u16::from_ne_bytes(own.get(..2)?.try_into().ok()?);
    Some((head, Act::Connmark(Connmark { zone, control })))
}

fn encode_ctinfo(to: &mut Attributes, action: &Action, _: Devices<'_>) -> Result<(), Unsent> {
    let (Act::Ctinfo(act), index) = (&action.act, action.index) else { return Ok(()) };
    to.payload(3, &general(index, act.control)).u16(4, act.zone);
    if let Some((mask, state)) = act.dscp {
        to.u32(5, mask);
        if state != 0 {
            to.u32(6, state);
        }
    }
    to.maybe(7, act.mark);
    Ok(())
}

fn decode_ctinfo(dump: ActionAttributes<'_>) -> Option<(Head, Act)> {
    let (head, _) = dump.begun()?;
    let control = head.control;
    let options = dump.options;
    let ctinfo = Ctinfo {
        zone: options.u16(4).unwrap_or(0),
        dscp: options.u32(5).map(|mask| (mask, options.u32(6).unwrap_or(0))),
        mark: options.u32(7),
        control,
    };
    Some((head, Act::Ctinfo(ctinfo)))
}
