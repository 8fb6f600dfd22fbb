//! What was measured on a real link, as text, JSON and pages, from documents alone.

pub mod quick;
pub mod ping;
pub mod verify;
