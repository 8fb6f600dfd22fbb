//! basic.

use super::base::{Row, actions, class};
use super::ematch;
use crate::encode::message::{Devices, Unsent};
use tidegate_netlink_wire::attribute::{Attributes, Found};
use tidegate_packet::Handle;
use tidegate_policy::{BasicParams, FilterOp, FilterParams};

/// `basic`.
pub(super) const ROW: Row = Row { name: "basic", actions: 3, police: Some(4), encode, decode };

fn encode(
    to: &mut Attributes,
    op: &FilterOp,
    params: &FilterParams,
    devices: Devices<'_>,
) -> Result<(), Unsent> {
    let FilterParams::Basic(params) = params else { return Ok(()) };
    if !params.terms.is_empty() {
        ematch::encode(to, 2, &params.terms);
    }
    class(to, 1, params.classid);
    actions(to, &ROW, &op.actions, devices)
}

fn decode(options: &Found<'_>) -> Option<FilterParams> {
    Some(FilterParams::Basic(BasicParams {
        classid: options.u32(1).map(Handle),
        terms: ematch::decode(&options.nest(2))?,
    }))
}
