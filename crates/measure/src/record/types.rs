//! What is asked for, and what was recorded.

use crate::capacity::{HEADERS, PathDirection};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// The longest recording: a server ends a session after an hour.
pub const LONGEST_NS: u64 = 3000 * SECOND;
/// The least budget, bytes: what looking at the line costs, and some trains.
pub const LEAST_BUDGET: u64 = 1_000_000;
/// The largest budget, bytes: each packet is remembered.
pub const MOST_BUDGET: u64 = 2_000_000_000;
/// The budget where none is given, bytes.
pub const USUAL_BUDGET: u64 = 100_000_000;
/// Bytes of the Ethernet header that the rates of a trace count.
pub(super) const ETHERNET: u32 = 14;
pub(super) const SECOND: u64 = 1_000_000_000;

/// What is recorded, and what it may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingRequest {
    /// How long, ns; up to [`LONGEST_NS`].
    pub length_ns: u64,
    /// Bytes of IP packets, both directions together; [`LEAST_BUDGET`] to [`MOST_BUDGET`].
    pub budget: u64,
    /// Bytes of IP and UDP headers of each packet: 28, over IPv6 48.
    pub headers: u32,
    /// Bits per second of payload that the server allows in each direction.
    pub most_bits_per_second: u64,
    /// Packets that it allows in an exchange.
    pub most_packets: u32,
    /// How long it allows an exchange to be, ns.
    pub most_ns: u64,
}

impl Default for RecordingRequest {
    fn default() -> RecordingRequest {
        RecordingRequest {
            length_ns: 60 * SECOND,
            budget: USUAL_BUDGET,
            headers: HEADERS,
            most_bits_per_second: u64::MAX,
            most_packets: u32::MAX,
            most_ns: u64::MAX,
        }
    }
}

/// A second of a recording.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecordedSecond {
    /// What the line delivered, in bits per second of full packets with their Ethernet headers; 0: nothing
    /// passed. `None`: it was not measured.
    pub bits_per_second: Option<f64>,
    /// All that was sent came through as it was sent: the line may carry more.
    pub is_at_least: bool,
    /// The trains in and beside it differ by more than 30 % (15 %, where it has one), or the line stood still
    /// in it: the rate may be off by more than 5 %.
    pub varies: bool,
    /// The share of the second in which nothing was sent between two exchanges, 0 to 1: what happened then is
    /// not known.
    pub unseen: f64,
    /// Trains that show the rate.
    pub trains: u32,
    /// The share of the second in which nothing passed although packets were waiting, 0 to 1.
    pub stalled: f64,
    /// The delay one way without a queue, ns, if the least delay is the same in both directions.
    pub delay_ns: Option<u64>,
    /// Small packets sent, when the line did not stand still.
    pub sent: u32,
    /// How many of them were lost.
    pub lost: u32,
}

/// What was recorded of a direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DirectionRecording {
    /// When its first second began, by the clock here, ns.
    pub began_ns: u64,
    /// Second by second.
    pub seconds: Vec<RecordedSecond>,
    /// Bytes of a full packet with its Ethernet header, in which rates are counted.
    pub packet: u32,
    /// The fewest and the most packets of a train.
    pub train: (u32, u32),
    /// From one train to the next, ns, at the shortest and at the longest.
    pub interval_ns: (u64, u64),
    /// What else is to be known, as text for people.
    pub notes: Vec<String>,
    /// Why not to believe it, as text for people.
    pub caveats: Vec<String>,
}

impl DirectionRecording {
    /// As a trace: a table of time, rate, delay and loss that links as recorded are read from. What was not
    /// measured is empty, which means there that it stays as it was.
    pub fn to_csv(&self) -> String {
        let mut text = String::from("time,rate_kbit,delay_ms,loss_percent\n");
        for (at, second) in self.seconds.iter().enumerate() {
            let rate = second.bits_per_second.map_or_else(String::new, |rate| format!("{:.3}", rate / 1e3));
            let delay = second.delay_ns.map_or_else(String::new, |ns| format!("{:.3}", ns as f64 / 1e6));
            let loss = second.loss().map_or_else(String::new, |loss| format!("{:.4}", loss * 100.0));
            text += &format!("{at},{rate},{delay},{loss}\n");
        }
        text
    }

    /// The mean of the rates that were measured, bits per second.
    pub fn mean_rate(&self) -> Option<f64> {
        let rates: Vec<f64> = self.seconds.iter().filter_map(|second| second.bits_per_second).collect();
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
    }

    /// Small packets sent, and lost, in all seconds.
    pub fn losses(&self) -> (u64, u64) {
        let add = |(sent, lost), second: &RecordedSecond| {
            (sent + u64::from(second.sent), lost + u64::from(second.lost))
        };
        self.seconds.iter().fold((0, 0), add)
    }
}

impl RecordedSecond {
    /// The share of small packets that were lost, 0 to 1.
    pub fn loss(&self) -> Option<f64> {
        (self.sent > 0).then(|| f64::from(self.lost) / f64::from(self.sent))
    }
}

/// What was recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineRecording {
    /// Upwards, if anything arrived.
    pub up: Option<DirectionRecording>,
    /// Downwards.
    pub down: Option<DirectionRecording>,
    /// The least delay there and back, ns.
    pub round_trip_ns: Option<u64>,
    /// Bytes of IP packets that were sent, both directions.
    pub bytes: u64,
    /// Caveats about both directions.
    pub caveats: Vec<String>,
    /// Why it is not the whole.
    pub cut: Option<String>,
}

impl LineRecording {
    /// A direction's.
    pub fn of(&self, way: PathDirection) -> Option<&DirectionRecording> {
        match way {
            PathDirection::Up => self.up.as_ref(),
            PathDirection::Down => self.down.as_ref(),
        }
    }
}

/// A recording as a document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordingDocument {
    /// The version that recorded.
    pub version: String,
    /// The command that records again.
    pub again: String,
    /// When it began, ns since 1970.
    pub began_ns: u64,
    /// The remote end.
    pub host: String,
    /// How long it was to be, ns.
    pub length_ns: u64,
    /// What it might cost, bytes.
    pub budget: u64,
    /// What was recorded.
    pub recorded: LineRecording,
    /// What this machine itself did to the measurement.
    pub caveats: Vec<String>,
}

/// How far a recording is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecordingProgress {
    /// So much is recorded, ns.
    pub done_ns: u64,
    /// The last rates, up and down, bits per second of full packets with their Ethernet headers.
    pub rates: [Option<f64>; 2],
    /// Bytes that were sent.
    pub bytes: u64,
}
