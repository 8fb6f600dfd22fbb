//! What is sent and received of each kind of filter: one file each, and their table here.

mod base;
mod basic;
mod cgroup;
mod ematch;
mod flow;
mod flower;
mod fw;
mod matchall;
mod route;
mod u32;

use crate::encode::message::{Devices, Unsent};
pub(crate) use base::Row;
use tidegate_netlink_wire::attribute::Attributes;
use tidegate_netlink_wire::numbers::TCA_OPTIONS;
use tidegate_policy::{FilterOp, FilterParams};

/// Every kind of filter.
const ROWS: [&Row; 8] =
    [&fw::ROW, &u32::ROW, &flow::ROW, &basic::ROW, &matchall::ROW, &flower::ROW, &cgroup::ROW, &route::ROW];

/// The row of the kind of this name.
pub(crate) fn row(name: &str) -> Option<&'static Row> {
    ROWS.into_iter().find(|row| row.name == name)
}

/// The options of a filter.
pub(crate) fn options(
    to: &mut Attributes,
    op: &FilterOp,
    params: &FilterParams,
    devices: Devices<'_>,
) -> Result<(), Unsent> {
    let mut inner = Attributes::default();
    if let Some(row) = row(params.kind()) {
        (row.encode)(&mut inner, op, params, devices)?;
    }
    if !inner.bytes().is_empty() {
        to.nest(TCA_OPTIONS, &inner);
    }
    Ok(())
}
