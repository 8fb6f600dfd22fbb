//! Watching devices whose policy is at work: what an engine or the kernel counts, read from the document that
//! `docs/live.md` describes.
//!
//! A [`Snapshot`] holds counters; two of them make a [`DeviceInterval`] for each device: what happened in
//! between. [`line()`] writes it as JSON, [`exposition`] writes a snapshot for Prometheus. For a screen,
//! [`DelayHistory`] remembers the last intervals, and [`shown_rows`] orders rows and leaves out idle ones.

mod control;
mod exposition;
mod history;
mod interval;
mod line;
mod shown;
mod snapshot;

pub use control::{ControlMode, ControlState, LastDecision, ShaperControl};
pub use exposition::{Policy, exposition};
pub use history::DelayHistory;
pub use interval::{DeviceInterval, Figures, QueueRow, device_intervals};
pub use line::line;
pub use shown::{RowOrder, ShownRow, ShownRows, shown_rows};
pub use snapshot::{ClassSnapshot, Counts, DeviceSnapshot, QdiscSnapshot, Seen, Snapshot, Tin};
