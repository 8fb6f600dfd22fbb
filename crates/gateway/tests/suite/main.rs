//! All of this crate's integration tests in one executable, so that it is linked once.

mod lengths;
mod links;
mod places;
mod tunnels;
