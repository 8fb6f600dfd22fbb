//! The backends, with real packets between network namespaces that the tests make.
//!
//! Skipped, with the reason printed, where no namespace can be made, or the kernel lacks what a backend
//! needs.

mod capture;
mod child;
mod hosts;
mod queue;
mod tun;
mod wire;
