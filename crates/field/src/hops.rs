//! Who stands on the way to a host.
