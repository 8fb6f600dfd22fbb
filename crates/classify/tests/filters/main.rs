//! What filters decide: vectors with the commands that make the filters, recorded runs of a real kernel,
//! connections.

// The recordings are files, and a test may read them.
#![allow(clippy::disallowed_types, reason = "recordings are read from files")]

mod carried;
mod commands;
mod conntrack;
mod held;
mod lists;
mod netfilter;
mod nft;
mod recordings;
mod session;
mod vectors;
