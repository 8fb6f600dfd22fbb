//! The table of actions.

use super::row::Row;
use super::{
    connection, count, csum, ct, gact, gate, mirred, mpls, nat, pedit, police, skbedit, skbmod, tunnel_key,
    vlan,
};

/// Every action's words.
const ROWS: [&Row; 17] = [
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
    &mpls::ROW,
    &tunnel_key::ROW,
    &gate::ROW,
    &police::ROW,
];

/// The row of the action of this name.
pub(super) fn row(name: &str) -> Option<&'static Row> {
    ROWS.into_iter().find(|row| row.name == name)
}
