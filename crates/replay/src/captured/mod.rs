//! Captures sent through policies: what each would have done with their packets.
//!
//! ```text
//! packets ──▶ frames ──▶ arrivals (which way, which flow, split) ──▶ gateway (a sim::Net, observed) ──▶ account ──▶ measure::replayed
//! ```
//! Packets arrive as they were captured, independent of the fate of those before them: no sender slows down.
//! [`closed`] makes a scenario of the capture's connections instead, so that they do.

mod account;
mod arrivals;
pub mod closed;
pub mod frames;
mod network;
mod run;
mod settings;
mod side;
mod split;
mod words;

pub use account::{ExternalError, PacketLife, PacketObserver};
pub use arrivals::{CapturedArrival, CapturedFlowKey, Flows, Survey, Surveyed};
pub use network::{CandidatePolicy, CaptureNetwork, ClassLabel, HomePaths, NONE, is_silent};
pub use run::{CaptureRun, step_of};
pub use settings::CaptureSettings;
pub use side::{BadPrefix, DirectionRule, Prefix, as_address};
pub use words::reason;
