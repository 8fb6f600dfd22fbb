//! What must hold of the qdiscs whatever the tree, the packets and their times: nothing is dropped from the
//! books, flows stay in order, rates and shares keep their bounds over every interval. And the exact vectors
//! of the reference (V-…), by their names there; and recorded runs of a real kernel.

// The recordings are files, and a test may read them.
#![allow(clippy::disallowed_types, reason = "recordings are read from files")]

mod bounds;
mod cake;
mod flat;
mod hashing;
mod recorded;
mod recordings;
mod tiny;
mod trees;
mod vectors;
mod world;
