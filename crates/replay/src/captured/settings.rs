//! The settings of a replay of a capture.

use super::side::Prefix;
use tidegate_packet::{Nanos, Rate};
use tidegate_trial::ModemBuffer;

/// The default size of the modem's buffer.
const USUAL_BUFFER: ModemBuffer = ModemBuffer::Time(Nanos::millis(250));

/// The settings of a replay of a capture: the line, and facts about the capture.
#[derive(Clone, Debug)]
pub struct CaptureSettings {
    /// The capture's name, for its reader: the path of its file.
    pub file: String,
    /// The line's rate; `None`: the policies alone set the pace.
    pub rate: Option<Rate>,
    /// What the modem before the line holds; `None`: a quarter of a second.
    pub buffer: Option<ModemBuffer>,
    /// There is no modem: the policy's device itself sends at the line's rate.
    pub direct: bool,
    /// The device that leads to the line; `None`: the one that the policy shapes.
    pub dev: Option<String>,
    /// Where a device is stacked on another: the upper one, the lower one.
    pub over: Option<(String, String)>,
    /// Packets from these networks are outgoing; empty: the capture's own directions count.
    pub from: Vec<Prefix>,
    /// What these addresses send is the gateway's own.
    pub local: Vec<Prefix>,
    /// How many flows are reported, the largest first.
    pub top: usize,
    /// The line's download rate; for connections that are made again.
    pub down: Option<Rate>,
    /// The round trip of connections whose handshake was not captured; `None`: 30 ms.
    pub rtt: Option<Nanos>,
}

impl CaptureSettings {
    /// What the modem holds, in bytes, and the line's rate; where there is one.
    pub fn modem(&self) -> Option<(Rate, u64)> {
        let rate = self.rate.filter(|_| !self.direct)?;
        Some((rate, self.buffer.unwrap_or(USUAL_BUFFER).bytes(rate)))
    }
}
