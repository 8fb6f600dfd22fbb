//! route.

use super::base::{Row, actions, class};
use crate::encode::message::{Devices, Unsent, number};
use tidegate_netlink_wire::attribute::{Attributes, Found};
use tidegate_packet::Handle;
use tidegate_policy::{FilterOp, FilterParams, RouteParams};

/// `route`.
pub(super) const ROW: Row = Row { name: "route", actions: 6, police: Some(5), encode, decode };

fn encode(
    to: &mut Attributes,
    op: &FilterOp,
    params: &FilterParams,
    devices: Devices<'_>,
) -> Result<(), Unsent> {
    let FilterParams::Route(params) = params else { return Ok(()) };
    if let Some(realm) = params.to {
        to.u32(2, realm.into());
    }
    if let Some(realm) = params.from {
        to.u32(3, realm.into());
    }
    if let Some(indev) = &params.fromif {
        to.u32(4, number(devices, &indev.name)?);
    }
    class(to, 1, params.classid);
    actions(to, &ROW, &op.actions, devices)
}

/// Devices come by number, which is not followed back to a name here.
fn decode(options: &Found<'_>) -> Option<FilterParams> {
    if options.u32(4).is_some() {
        return None;
    }
    let realm = |at: u16| options.u32(at).map(|realm| realm as u8);
    Some(FilterParams::Route(RouteParams {
        classid: options.u32(1).map(Handle),
        from: realm(3),
        fromif: None,
        to: realm(2),
        order: 0,
    }))
}
