//! cgroup.

use super::base::{Row, actions};
use super::ematch;
use crate::encode::message::{Devices, Unsent};
use tidegate_netlink_wire::attribute::{Attributes, Found};
use tidegate_policy::{CgroupParams, FilterOp, FilterParams};

/// `cgroup`.
pub(super) const ROW: Row = Row { name: "cgroup", actions: 1, police: Some(2), encode, decode };

fn encode(
    to: &mut Attributes,
    op: &FilterOp,
    params: &FilterParams,
    devices: Devices<'_>,
) -> Result<(), Unsent> {
    let FilterParams::Cgroup(params) = params else { return Ok(()) };
    if !params.terms.is_empty() {
        ematch::encode(to, 3, &params.terms);
    }
    actions(to, &ROW, &op.actions, devices)
}

fn decode(options: &Found<'_>) -> Option<FilterParams> {
    Some(FilterParams::Cgroup(CgroupParams { terms: ematch::decode(&options.nest(3))? }))
}
