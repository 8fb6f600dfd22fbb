//! What was measured on a real link, as text, JSON and pages, from documents alone.

pub mod calibrate;
pub mod doctor;
pub mod loss;
pub mod measure;
pub mod overhead;
pub mod ping;
pub mod quick;
pub mod record;
pub mod verify;
