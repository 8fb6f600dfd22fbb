#![no_std]
#![forbid(unsafe_code)]
//! See Cargo.toml.
extern crate alloc;
