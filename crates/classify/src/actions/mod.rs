//! Actions: the machine's table of them, and the lists that filters have.
//!
//! An action is in one table of the machine, because several filters may have the same one (a policer at
//! clsact and in a filter meters both with one bucket). Filters hold places in it. References are released
//! late: as in the kernel, what a deleted filter had stays until the next operation, or where releases are
//! deferred until time continues.

mod connection;
mod csum;
mod gate;
mod live;
mod mpls;
mod nat;
mod pedit;
mod police;
mod skbmod;
mod table;
mod vlan;

pub use police::Policers;
pub use table::Actions;
