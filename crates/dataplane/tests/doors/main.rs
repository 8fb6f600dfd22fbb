//! The backends, with real packets between network namespaces that the tests make.
//!
//! Left out, with the reason printed, where no namespace may be made, or the kernel lacks what a backend
//! stands on.

mod capture;
mod child;
mod hosts;
mod queue;
mod tun;
mod wire;
