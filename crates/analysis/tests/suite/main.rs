//! All of this crate's integration tests in one executable, so that it is linked once.

#[path = "../fixture/mod.rs"]
mod fixture;

mod compared;
mod experiment;
mod figures;
mod flent;
mod pinged;
mod replayed;
mod shown;
mod small;
mod trial;
mod verified;
mod watch;
