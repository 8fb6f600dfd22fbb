//! All of this crate's integration tests in one executable, so that it is linked once.

// The recordings are files, and a test may read them.
#![allow(clippy::disallowed_types, reason = "recordings are read from files")]

mod blocks;
mod devices;
mod hooks;
mod led;
mod lengths;
mod links;
mod nat;
mod places;
mod recorded;
mod recordings;
mod stacks;
mod tunnels;
mod words;
