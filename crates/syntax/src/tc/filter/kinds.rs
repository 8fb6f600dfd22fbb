//! The table of filters.

use super::row::Row;
use super::{basic, cgroup, flow, flower, fw, matchall, route, u32};

/// Every filter's words.
const ROWS: [&Row; 8] =
    [&fw::ROW, &u32::ROW, &flow::ROW, &matchall::ROW, &basic::ROW, &flower::ROW, &cgroup::ROW, &route::ROW];

/// The row of the filter of this name.
pub(in crate::tc) fn row(name: &str) -> Option<&'static Row> {
    ROWS.into_iter().find(|row| row.name == name)
}
