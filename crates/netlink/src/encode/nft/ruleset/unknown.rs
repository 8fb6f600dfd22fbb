//! What has no expression.

use alloc::string::String;

/// What has no expression, and what to do instead.
pub(super) struct Unknown {
    pub(super) what: String,
    pub(super) remedy: &'static str,
}

/// One of these.
pub(super) fn unknown(what: impl Into<String>, remedy: &'static str) -> Unknown {
    Unknown { what: what.into(), remedy }
}
