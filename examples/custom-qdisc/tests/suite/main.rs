//! The example's qdisc where it runs: simulated and live.

mod common;
mod live;
mod simulated;
