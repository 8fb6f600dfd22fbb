#![deny(unsafe_code)]
//! The C library `libtidegate`: [`tidegate_device`] behind ten functions, declared in `include/tidegate.h`.
//!
//! [`abi`] has the functions; it is the only file that C's pointers come to, and checks each. `calls` does
//! what they ask, `text` keeps what C reads: messages and listings.

#[allow(unsafe_code)]
pub mod abi;
mod calls;
mod text;
