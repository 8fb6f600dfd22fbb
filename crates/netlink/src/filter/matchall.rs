//! matchall.

use super::base::{Row, actions, class};
use crate::encode::message::{Devices, Unsent};
use tidegate_netlink_wire::attribute::{Attributes, Found};
use tidegate_packet::Handle;
use tidegate_policy::{FilterOp, FilterParams, MatchallParams};

/// `matchall`.
pub(super) const ROW: Row = Row { name: "matchall", actions: 2, police: None, encode, decode };

const SKIP_HW: u32 = 1;

fn encode(
    to: &mut Attributes,
    op: &FilterOp,
    params: &FilterParams,
    devices: Devices<'_>,
) -> Result<(), Unsent> {
    let FilterParams::Matchall(params) = params else { return Ok(()) };
    class(to, 1, params.classid);
    if params.skip_hw {
        to.u32(3, SKIP_HW);
    }
    actions(to, &ROW, &op.actions, devices)
}

fn decode(options: &Found<'_>) -> Option<FilterParams> {
    Some(FilterParams::Matchall(MatchallParams {
        classid: options.u32(1).map(Handle),
        skip_hw: options.u32(3).is_some_and(|flags| flags & SKIP_HW != 0),
    }))
}
