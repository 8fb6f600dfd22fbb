//! What is sent and received of each kind of action: one file each, and their table here.

mod base;
mod connection;
mod count;
mod csum;
mod ct;
mod gact;
mod mirred;
mod nat;
mod pedit;
mod police;
mod skbedit;
mod skbmod;
mod vlan;

pub(crate) use base::{ActionAttributes, Head, Row};
pub(crate) use police::policer;

/// Every kind of action.
const ROWS: [&Row; 14] = [
    &gact::ROW,
    &mirred::ROW,
    &skbedit::ROW,
    &connection::CONNMARK,
    &connection::CTINFO,
    &ct::ROW,
    &count::SIMPLE,
    &count::SAMPLE,
    &nat::ROW,
    &pedit::ROW,
    &csum::ROW,
    &skbmod::ROW,
    &vlan::ROW,
    &police::ROW,
];

/// The row of the kind of this name.
pub(crate) fn row(name: &str) -> Option<&'static Row> {
    ROWS.into_iter().find(|row| row.name == name)
}
