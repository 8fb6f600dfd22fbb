//! Measuring real links: `tidegate ping`, `doctor`, and what stands on a far end of ours.

pub mod far;
pub mod serve;
