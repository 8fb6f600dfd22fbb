//! Arithmetic and structures that several qdiscs share.

mod bits;
mod chain;
mod class_hash;
pub mod cobalt;
pub mod codel;
mod curve;
mod length;
mod order;
pub mod pie;
mod rate;
pub mod red;
mod wait;

pub use bits::BitTree;
pub use chain::{IndexList, Linked, ListLink};
pub use class_hash::ClassHash;
pub use curve::{Curve, Shape};
pub use length::adjusted_size;
pub use order::{Ordered, Orders};
pub use rate::{RateEstimator, Sent};
pub use tidegate_classify::{Cost, Price};
pub use wait::WaitHeap;
