//! The hosts of the network.

/// The host on which the program runs.
pub(super) const YOU: &str = "you";
/// And the one at the other end of the link.
pub(super) const SERVER: &str = "server";
/// The host that measures where `you` is a namespace of somebody else's.
pub(super) const PROBE: &str = "probe";
