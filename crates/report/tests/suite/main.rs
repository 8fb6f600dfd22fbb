//! All of this crate's integration tests in one executable, so that it is linked once.

#[path = "../../../analysis/tests/fixture/mod.rs"]
mod fixture;

mod charts;
mod colours;
mod forms;
mod page;
mod pinged;
mod quick;
mod watch;
