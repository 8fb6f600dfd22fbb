//! All of this crate's integration tests in one executable, so that it is linked once.

mod dissector;
mod pool;
mod sums;
mod words;
