//! Packets with their class, queue, delay and outcome, as pcapng: Wireshark shows why a packet was late.
//!
//! [`CapturedPackets`] follows a capture's packets through a policy, [`SimulatedPackets`] those of a
//! scenario's machines. Neither opens a file: the caller passes a [`PcapSink`].

mod captured;
mod pcapng_writer;
mod simulated;

pub use crate::captured::ExternalError;
pub use captured::CapturedPackets;
pub use pcapng_writer::{PcapSink, wait};
pub use simulated::{SimulatedPackets, WatchedDevice};
