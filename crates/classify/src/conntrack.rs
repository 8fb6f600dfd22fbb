//! Connections: which packets belong together, in both directions, with a mark and counters (as Linux's
//! nf_conntrack shows itself).
//!
//! A packet is looked up by its addresses, protocol and ports, or made the first of a new connection; that is
//! kept when the packet has passed all hooks ([`Conntrack::confirm`]). Time is an argument: what has not been
//! seen for its timeout is forgotten when it is requested. What is modelled of TCP is the order of flags, not
//! windows: segments are taken to be in window.

mod act;
mod entry;
mod inside;
mod membership;
mod nat;
mod related;
mod table;
mod tcp;
mod tuple;

pub(crate) use act::flower_state;
pub use membership::{Membership, begin_hooks, state, untrack};
pub(crate) use membership::{network_len, number};
pub use nat::NatSide;
pub use table::{Conntrack, ConntrackUse, MAX_CONNECTIONS};
pub use tuple::Tuple;
