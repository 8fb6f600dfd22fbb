//! What a trial of a policy showed, as one document. Tables, pages and comparisons read this and nothing
//! else.
//!
//! Times are nanoseconds from the beginning of a run, sizes bytes of frames, rates bits per second, unless a
//! field has another unit.

use crate::document::{required, step};
use crate::{Pings, bits_per_second};
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A trial: one link, one policy, several loads, each without and with the policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialDocument {
    /// The version that made it.
    pub version: String,
    /// The command that makes it again, to the byte.
    #[serde(rename = "command", alias = "again")]
    pub again: String,
    /// The policy's file.
    pub script: String,
    /// The device that leads to the modem.
    pub device: String,
    /// Commands the policy consists of.
    pub commands: u64,
    /// The seed of its randomness.
    pub seed: u64,
    /// What it comes to, in sentences; the most important first.
    pub verdict: Vec<String>,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// The link of the trial.
    pub link: LinkFacts,
    /// The policy's qdiscs and classes, parents before children.
    pub tree: Vec<TreeNode>,
    /// Its runs: for each load without, then with the policy.
    pub runs: Vec<TrialRun>,
}

/// A link between a modem and the provider.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkFacts {
    /// The uplink's rate, bits per second.
    pub up_bits: u64,
    /// The downlink's rate, bits per second.
    pub down_bits: u64,
    /// The path's round trip when idle, without transmission times.
    pub rtt_ns: u64,
    /// The modem's buffer before the uplink, bytes of frames.
    pub up_buffer_bytes: u64,
    /// The provider's buffer before the downlink, bytes of frames.
    pub down_buffer_bytes: u64,
    /// The line varies: what it is, in words (`the preset lte`). Its rates are then means, and its own delays
    /// come on top of the round trip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub varies: Option<String>,
}

/// What a line that varies could carry and did carry, bytes of frames per step of the run; empty: that
/// direction does not vary.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LineCapacity {
    /// What the uplink could carry.
    pub up: Vec<u64>,
    /// What the downlink could carry.
    pub down: Vec<u64>,
    /// What the uplink carried.
    pub carried_up: Vec<u64>,
    /// What the downlink carried.
    pub carried_down: Vec<u64>,
}

/// One load, with or without the policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialRun {
    /// The load's short name: `idle`, `up`, `down`, `both`, or flent's.
    pub load: String,
    /// The load in words: `2 uploads`.
    pub title: String,
    /// With the policy?
    pub policy: bool,
    /// Conversations were added for the classes that the load leaves empty: only what the classes did is to
    /// be read from this run.
    #[serde(default)]
    pub witnesses: bool,
    /// When measuring began and ended.
    pub window: (u64, u64),
    /// The length of a step of all series of the run, ns; step n covers `n * step_ns ..`.
    #[serde(deserialize_with = "step")]
    pub step_ns: u64,
    /// Probes: pings, calls, look-ups; each a kind of traffic that waits for answers.
    pub probes: Vec<TrialProbe>,
    /// What the load transferred.
    pub flows: Vec<TrialFlow>,
    /// Time series of the classes (or, where there are none, of the root); empty without the policy.
    pub classes: Vec<ClassSeries>,
    /// Queues outside the policy: the modem's and the provider's.
    pub buffers: Vec<BufferSeries>,
    /// Packets that the device before the modem sent past all classes (HTB's direct packets), whole run.
    #[serde(default)]
    pub direct_packets: u64,
    /// What filters dropped (policers, `drop`) before any class had it.
    #[serde(default)]
    pub filter_drops: Vec<FilterDrops>,
    /// What the line could carry, where it varies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<LineCapacity>,
}

/// What a filter's actions dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilterDrops {
    /// For people: `the policer at 8Mbit of the u32 filter at ffff: of eth0`.
    pub title: String,
    /// Packets dropped, whole run.
    pub dropped: u64,
}

/// A probe: something that is requested repeatedly, and how long each reply took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialProbe {
    /// Short and unique in a run: `ping`, `voip`, `dns`, `ssh-login`.
    pub id: String,
    /// For people: `SSH login`.
    pub title: String,
    /// What one answer is: `round trip`, `one way`, `until the prompt`.
    pub unit: String,
    /// The class its packets away from the user took: `1:100`.
    #[serde(deserialize_with = "required")]
    pub class: Option<String>,
    /// When each was sent and how long its answer took; `None`: none came.
    #[serde(rename = "replies", alias = "answers")]
    pub answers: Vec<(u64, Option<u64>)>,
}

impl TrialProbe {
    /// Its figures within a window.
    pub fn figures(&self, window: (u64, u64)) -> Pings {
        let within = self.answers.iter().filter(|(sent, _)| (window.0..window.1).contains(sent));
        Pings::new(within.map(|(_, answer)| *answer))
    }
}

/// A transfer of the load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrialFlow {
    /// For people: `upload 1`.
    pub title: String,
    /// Away from the user?
    pub up: bool,
    /// The class its data (an upload's) or its acknowledgements (a download's) took.
    #[serde(deserialize_with = "required")]
    pub class: Option<String>,
    /// Payload bytes acknowledged (TCP) or received (UDP) while measured.
    pub bytes: u64,
    /// Segments that were sent again, over the whole run.
    pub retransmissions: u64,
    /// Packets lost, whole run.
    pub lost: u64,
    /// Payload bytes per step.
    pub series: Vec<u64>,
}

impl TrialFlow {
    /// Payload bits per second over a window.
    pub fn rate(&self, window: (u64, u64)) -> f64 {
        bits_per_second(self.bytes, window.1.saturating_sub(window.0))
    }
}

/// A class over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClassSeries {
    /// Its id: `1:100`; of a root without classes, the qdisc's handle.
    pub id: String,
    /// What passes through it, in a few words: `udp`, `tcp port 80, 443`; empty if unknown.
    pub title: String,
    /// A leaf: no class below it. Only leaves are stacked.
    pub leaf: bool,
    /// Bytes sent per step.
    pub sent: Vec<u64>,
    /// Packets sent per step; empty if not counted.
    #[serde(default)]
    pub packets: Vec<u32>,
    /// Bytes waiting at the end of each step.
    pub backlog: Vec<u64>,
    /// Packets waiting at the end of each step.
    pub qlen: Vec<u32>,
    /// Packets dropped per step.
    pub dropped: Vec<u32>,
    /// Tokens of its rate at the end of each step, in microseconds of sending at that rate, negative: owed;
    /// empty if it has none.
    pub tokens_us: Vec<i64>,
    /// Tokens of its ceiling.
    pub ctokens_us: Vec<i64>,
}

/// A drop-tail buffer over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BufferSeries {
    /// For people: `modem`, `provider`.
    pub title: String,
    /// The bytes of frames that it holds.
    pub limit: u64,
    /// Bytes waiting at the end of each step.
    pub backlog: Vec<u64>,
    /// Packets refused, whole run.
    pub dropped: u64,
}

/// A qdisc or class of the policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TreeNode {
    /// The device that it is attached to.
    pub device: String,
    /// `1:` of a qdisc, `1:100` of a class.
    pub id: String,
    /// The id above on the same device; empty for a root.
    pub parent: String,
    /// A class, or a qdisc?
    pub is_class: bool,
    /// `htb`, `pfifo`, …
    pub kind: String,
    /// Its parameters as tc prints them.
    pub options: String,
    /// Guaranteed bits per second, if it has such.
    #[serde(deserialize_with = "required")]
    pub rate_bits: Option<u64>,
    /// The rate that it may borrow up to, bits per second, if it has such.
    #[serde(deserialize_with = "required")]
    pub ceil_bits: Option<u64>,
    /// Priority, if it has one.
    #[serde(deserialize_with = "required")]
    pub prio: Option<u32>,
    /// What passes through it, in a few words.
    pub title: String,
    /// The filters and marks that lead here, each as one line.
    pub filters: Vec<String>,
    /// No packet can come here; why.
    #[serde(deserialize_with = "required")]
    pub unreachable: Option<String>,
}
