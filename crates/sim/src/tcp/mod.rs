//! TCP, both halves, without IO.

pub(crate) mod bbr;
pub(crate) mod cc;
pub(crate) mod clock;
pub(crate) mod rate;
pub(crate) mod receiver;
pub(crate) mod rtt;
mod scalable;
pub(crate) mod sender;
pub(crate) mod writes;
