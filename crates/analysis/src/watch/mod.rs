//! Watching devices whose policy is at work: what an engine or the kernel counts, read from the document that
//! `docs/live.md` describes.
//!
//! A [`Snapshot`] holds counters; two of them make a [`Course`], what happened between them; [`line()`] tells
//! it as JSON. [`exposition`] writes a snapshot for Prometheus.

mod course;
mod exposition;
mod line;
mod snapshot;

pub use course::{Course, Figures, Row, courses};
pub use exposition::{Policy, exposition};
pub use line::line;
pub use snapshot::{Class, Counts, Device, Qdisc, Seen, Snapshot, Tin};
