//! Hosts asked again and again.
