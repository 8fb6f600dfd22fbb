#![forbid(unsafe_code)]
//! See Cargo.toml.
