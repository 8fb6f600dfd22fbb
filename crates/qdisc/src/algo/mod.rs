//! Arithmetic and structures that several disciplines share.

mod bits;
mod chain;
mod class_hash;
pub mod codel;
mod length;
mod wait;

pub use bits::BitTree;
pub use chain::{Chain, Link, Linked};
pub use class_hash::ClassHash;
pub use length::{Cost, Price, adjusted_size};
pub use wait::WaitHeap;
