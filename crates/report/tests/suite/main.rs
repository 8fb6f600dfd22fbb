//! All of this crate's integration tests in one executable, so that it is linked once.

#[path = "../../../analysis/tests/fixture/mod.rs"]
mod fixture;
#[path = "../common/inert.rs"]
mod inert;

mod charts;
mod colours;
mod forms;
mod hostile;
mod page;
mod pinged;
mod quick;
mod watch;
