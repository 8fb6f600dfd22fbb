//! fw.

use super::base::{Row, actions, class, indev};
use crate::encode::message::{Devices, Unsent};
use tidegate_netlink_wire::attribute::{Attributes, Found};
use tidegate_packet::Handle;
use tidegate_policy::{FilterOp, FilterParams, FwParams, Indev};

/// `fw`.
pub(super) const ROW: Row = Row { name: "fw", actions: 4, police: Some(2), encode, decode };

fn encode(
    to: &mut Attributes,
    op: &FilterOp,
    params: &FilterParams,
    devices: Devices<'_>,
) -> Result<(), Unsent> {
    let FilterParams::Fw(params) = params else { return Ok(()) };
    class(to, 1, params.classid);
    actions(to, &ROW, &op.actions, devices)?;
    indev(to, 3, params.indev.as_ref());
    to.maybe(5, params.mask);
    Ok(())
}

fn decode(options: &Found<'_>) -> Option<FilterParams> {
    Some(FilterParams::Fw(FwParams {
        classid: options.u32(1).map(Handle),
        mask: options.u32(5),
        indev: options.text(3).map(Indev::named),
    }))
}
