#![forbid(unsafe_code)]
//! tidegate.
fn main() {}
