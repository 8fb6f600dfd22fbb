//! What was measured on a real link, as text, JSON and pages, from documents alone.

pub mod measure;
pub mod calibrate;
pub mod overhead;
pub mod doctor;
pub mod ping;
pub mod quick;
pub mod verify;
