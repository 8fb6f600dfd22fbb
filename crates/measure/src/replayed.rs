//! What policies would have done with a capture's packets, as one document. Tables, pages and JSON are made
//! from this and nothing else.
//!
//! Times are nanoseconds, sizes bytes of frames, rates bits per second, unless a field has another unit.

use crate::{Durations, Summary};
use alloc::string::String;
use alloc::vec::Vec;

/// A capture, and what each policy did with it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Replayed {
    /// The version that made it.
    pub version: String,
    /// The command that makes it again, to the byte.
    pub again: String,
    /// The capture that was replayed.
    pub capture: CaptureSummary,
    /// What is beneath the policies' device.
    pub line: ReplayLine,
    /// The length of a step of all series, ns; step n covers what arrived from `n * step_ns` on.
    pub step_ns: u64,
    /// Of each policy what it did, in the order of the command line.
    pub policies: Vec<ReplayOutcome>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// What was captured, and what of it was taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CaptureSummary {
    /// The file's name.
    pub file: String,
    /// `pcap`, `pcapng`.
    pub format: String,
    /// When its first packet was captured, ns since 1970.
    pub began: u64,
    /// From its first to its last packet.
    pub duration: u64,
    /// Packets that could be read.
    pub packets: u64,
    /// The rule that decided which packets are outgoing, in words.
    pub rule: String,
    /// Packets that go out, and their bytes.
    pub out: (u64, u64),
    /// Packets that come in, and their bytes.
    pub inward: (u64, u64),
    /// Packets that were left out: why, and how many.
    pub left_out: Vec<(String, u64)>,
    /// Packets longer than a frame may be, and what they were split into.
    pub split: (u64, u64),
    /// Where and why reading ended before the file's end.
    pub broken: Option<String>,
}

/// The line beneath the policies' device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplayLine {
    /// Its rate, bits per second; `None`: the policy alone sets the pace.
    pub rate: Option<u64>,
    /// The bytes that the modem before it holds; `None`: there is no modem, the device itself sends at the
    /// line's rate.
    pub buffer: Option<u64>,
}

/// What one policy did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplayOutcome {
    /// What it is called.
    pub name: String,
    /// Its file; empty for none.
    pub file: String,
    /// The device that leads out.
    pub device: String,
    /// The outcome of what went out.
    pub out: OutcomeCounts,
    /// The outcome of what came in.
    pub inward: OutcomeCounts,
    /// Class by class.
    pub classes: Vec<ClassOutcome>,
    /// The flows with most bytes that arrived, the largest first; the same ones for each policy.
    pub flows: Vec<FlowOutcome>,
}

/// A class, or a root without classes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassOutcome {
    /// The device of the class.
    pub device: String,
    /// Its number: `1:20`; of a root its handle; `direct`, `before any queue` and the like where there is no
    /// number.
    pub id: String,
    /// What it is for, in a few words; may be empty.
    pub title: String,
    /// The kind of queue in it: `fq_codel`.
    pub queue: String,
    /// Is what it holds on its way in?
    pub inward: bool,
    /// The outcome of its packets.
    pub outcomes: OutcomeCounts,
    /// Of each step the packets that arrived in it.
    pub packets: Vec<u32>,
    /// Those of them that were lost.
    pub dropped: Vec<u32>,
    /// How long half of them waited at most; `None`: none was sent.
    pub median: Vec<Option<u64>>,
    /// How long the longest waited.
    pub longest: Vec<Option<u64>>,
}

/// A flow of the capture.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowOutcome {
    /// Protocol, addresses, ports.
    pub name: String,
    /// The class that most of its packets were in.
    pub class: String,
    /// The outcome of them.
    pub outcomes: OutcomeCounts,
}

/// The outcome of packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutcomeCounts {
    /// Packets that arrived.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that left.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// Packets marked with congestion experienced on their way.
    pub marked: u64,
    /// Packets that still waited in the end.
    pub waiting: u64,
    /// Packets lost: why, and how many.
    pub dropped: Vec<(String, u64)>,
    /// How long those that left waited: from their arrival until the line began to send them.
    pub waited: Option<Summary>,
    /// The distribution of the queueing delay: percentiles of [`LADDER`].
    pub ladder: Vec<u64>,
}

/// The percentiles that are kept of how long packets waited.
pub const LADDER: [f64; 21] = [
    0.0, 1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 75.0, 80.0, 85.0, 90.0, 95.0, 97.0, 98.0, 99.0,
    99.5, 99.9, 100.0,
];

impl OutcomeCounts {
    /// With how long packets waited.
    pub fn with_waits(self, waits: Vec<u64>) -> OutcomeCounts {
        let spans = Durations::new(waits);
        let ladder = LADDER.iter().filter_map(|p| spans.percentile(*p)).collect();
        OutcomeCounts { waited: spans.summary(), ladder, ..self }
    }

    /// Packets lost, whatever the reason.
    pub fn lost(&self) -> u64 {
        self.dropped.iter().map(|(_, packets)| packets).sum()
    }

    /// Bits per second that left, over a time.
    pub fn rate(&self, duration: u64) -> f64 {
        crate::bits_per_second(self.sent_bytes, duration)
    }
}
