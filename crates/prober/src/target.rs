//! Whom to measure with.

use crate::names::AddressFamily;
use tidegate_probe_wire::{PORT, Token};

/// Whom to measure with.
#[derive(Clone, Debug)]
pub struct ServerTarget {
    /// Its name or address.
    pub host: String,
    /// Its port, TCP and UDP.
    pub port: u16,
    /// What both know.
    pub token: Option<Token>,
    /// Which addresses will do.
    pub family: AddressFamily,
}

impl ServerTarget {
    /// A host at the usual port, without a token.
    pub fn new(host: &str) -> ServerTarget {
        ServerTarget { host: host.to_owned(), port: PORT, token: None, family: AddressFamily::Any }
    }
}
