//! Exact sets of packets: decision diagrams (`bdd.rs`) over the bits that policies ask for (`field.rs`), what
//! filters and rules ask as sets (`set.rs`, `carried.rs`, `flower.rs`), and a plain packet out of any set
//! (`pick.rs`).

pub(crate) mod bdd;
pub(crate) mod carried;
pub(crate) mod field;
pub(crate) mod flower;
pub(crate) mod pick;
pub(crate) mod set;
