//! The parts of the document: the setup, the actions, and the counts.

use crate::document::{bounds, commands, required, step};
use crate::trial::ClassSeries;
use crate::{Pings, bits_per_second};
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// A scenario that was carried out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Experiment {
    /// The version that made it.
    pub version: String,
    /// The command that makes it again; in virtual time, to the byte.
    #[serde(rename = "command", alias = "again")]
    pub again: String,
    /// How it came about: `sim`, `lab`, `field` (over a real path, with a server of tidegate's at its remote
    /// end).
    pub execution: String,
    /// The scenario's file.
    pub scenario: String,
    /// What it is called.
    pub title: String,
    /// What it is about, in a few sentences.
    pub about: String,
    /// The publication whose figures are compared.
    #[serde(deserialize_with = "required")]
    pub source: Option<String>,
    /// The first seed of its randomness; repeat n has this plus n.
    pub seed: u64,
    /// What the reader should know.
    pub notes: Vec<String>,
    /// What was expected or published, and what was found.
    pub comparisons: Vec<Comparison>,
    /// The nodes of the network.
    pub nodes: Vec<NodeRecord>,
    /// What joins them.
    pub links: Vec<LinkRecord>,
    /// The policies compared, in the scenario's order.
    pub policies: Vec<PolicyRecord>,
    /// The loads they are compared under, in the scenario's order.
    pub loads: Vec<LoadRecord>,
    /// Its runs: by policy, then by load, then by repeat.
    pub runs: Vec<RunRecord>,
    /// When it began, ns since 1970; `None`: virtual time has no date, or none was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_ns: Option<u64>,
}

/// A node of the network.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeRecord {
    /// The node's name in the scenario.
    pub name: String,
    /// `host`, `machine` (it has devices, which may have policies), `relay`.
    pub kind: String,
    /// Its devices, if it is a machine.
    pub devices: Vec<String>,
}

/// A link between two nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkRecord {
    /// The link's name in the scenario.
    pub name: String,
    /// Where it begins: `gateway:eth0`, `isp`.
    pub from: String,
    /// Where it ends.
    pub to: String,
    /// From its beginning to its end, in words: `768 kbit/s, 10 ms, buffer 17.3 kB`.
    pub there: String,
    /// The opposite direction.
    pub back: String,
    /// Bits per second there, if there is a rate.
    #[serde(deserialize_with = "required")]
    pub there_bits: Option<u64>,
    /// Bits per second from its end to its beginning, if there is a rate.
    #[serde(deserialize_with = "required")]
    pub back_bits: Option<u64>,
}

/// A policy that was tried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyRecord {
    /// Its name in the scenario.
    pub name: String,
    /// For people.
    pub title: String,
    /// The policy's commands by machine, one per line.
    #[serde(with = "commands")]
    #[cfg_attr(feature = "schema", schemars(with = "Vec<crate::document::MachineLines>"))]
    pub commands: Vec<(String, Vec<String>)>,
}

/// A load of the experiment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LoadRecord {
    /// Its name in the scenario.
    pub name: String,
    /// For people: `2 uploads`.
    pub title: String,
    /// The test of flent's that it is: `rrul`, `tcp_nup`; none of them: `None`.
    #[serde(deserialize_with = "required")]
    pub test: Option<String>,
}

/// One policy under one load with one seed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunRecord {
    /// The policy's name.
    pub policy: String,
    /// The load's name.
    pub load: String,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// The run's random seed.
    pub seed: u64,
    /// From when to when it was measured, ns from the begin of the run; the end is not part of it.
    pub window: (u64, u64),
    /// The length of a step of all series of the run, ns; step n covers `n * step_ns ..`.
    #[serde(deserialize_with = "step")]
    pub step_ns: u64,
    /// It was stopped before its end.
    pub cut: bool,
    /// Bottleneck packets simulated and events handled: a measure of the work.
    pub work: (u64, u64),
    /// Repeated probes: pings, calls, datagrams (one way), requests, pages.
    pub probes: Vec<ProbeRecord>,
    /// TCP transfers.
    pub transfers: Vec<TransferRecord>,
    /// The policies' classes (where there are none, the root), each with its device in front: `gateway:eth0
    /// 1:10`.
    pub classes: Vec<ClassSeries>,
    /// What each direction of each link did, and the queue before it that no policy governs.
    pub queues: Vec<LinkSeries>,
    /// Timed events: commands of the timeline, changes of links, and queries.
    pub events: Vec<EventRecord>,
    /// How late packets were where a real clock decided; `None`: in virtual time nothing is late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness: Option<Lateness>,
}

/// How much later than they should have arrived packets did, ns: what the measuring machine added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Lateness {
    /// Packets given out.
    pub packets: u64,
    /// Half of the packets were less late, ns.
    pub median: u64,
    /// 99 of 100 packets were less late, ns.
    pub p99: u64,
    /// How late the latest packet was, ns.
    pub most: u64,
}

impl Lateness {
    /// What a run may be late by and still be believed: at the 99th percentile, ns.
    pub const BELIEVED: u64 = 1_000_000;

    /// May the run's delays be believed to the millisecond?
    pub fn is_believed(&self) -> bool {
        self.p99 <= Lateness::BELIEVED
    }
}

/// A probe: something that is requested, or sent one way, repeatedly, and how long each reply or packet took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeRecord {
    /// Short and unique in a run: `ping`, `voip-up`, `web-document`.
    pub id: String,
    /// For people: `SSH login`.
    pub title: String,
    /// What one answer is: `round trip`, `one way`, `until the prompt`.
    pub unit: String,
    /// The node that sends the requests.
    pub from: String,
    /// The node that replies, or that receives.
    pub to: String,
    /// The DS field's code point of what is sent.
    pub dscp: u8,
    /// The ECN field of what is sent, where that was chosen: 1 is ECT(1).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ecn: u8,
    /// When each was sent and how long its answer (or, one way, its journey) took; `None`: none came.
    #[serde(rename = "replies", alias = "answers")]
    pub answers: Vec<(u64, Option<u64>)>,
    /// Beside each answer, how long the question took to get there; `None`: it did not. Empty if not
    /// recorded, and of what goes one way. With it, losses and delays are known by direction.
    pub there: Vec<Option<u64>>,
    /// Payload bytes received per step; empty if not counted.
    pub received: Vec<u64>,
    /// Packets received per step; empty if not counted.
    pub packets: Vec<u32>,
    /// How what goes one way arrived, where that was noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<ArrivalStats>,
}

/// Is nothing chosen?
fn is_zero(value: &u8) -> bool {
    *value == 0
}

/// How packets arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArrivalStats {
    /// Those that came after one that was sent later (RFC 4737).
    pub reordered: u64,
    /// The most places that one came too late.
    pub extent: u32,
    /// Copies beside the packets themselves.
    #[serde(alias = "copies")]
    pub duplicates: u64,
    /// Each DS field that was seen, all eight bits as a number, and in how many packets.
    pub ds_fields: Vec<(u64, u64)>,
}

impl ProbeRecord {
    /// The answers to what was sent within a window.
    pub fn within(&self, window: (u64, u64)) -> impl Iterator<Item = (u64, Option<u64>)> {
        self.answers.iter().copied().filter(move |(sent, _)| (window.0..window.1).contains(sent))
    }

    /// Its figures within a window.
    pub fn figures(&self, window: (u64, u64)) -> Pings {
        Pings::new(self.within(window).map(|(_, answer)| answer))
    }

    /// Within a window, the journeys there and back of those that made them, and what was lost on the way
    /// there and on the way back; `None` if that was not recorded.
    pub fn directions(&self, window: (u64, u64)) -> Option<[Pings; 2]> {
        if self.there.is_empty() {
            return None;
        }
        let both =
            self.answers.iter().zip(&self.there).filter(|((sent, _), _)| (window.0..window.1).contains(sent));
        let there = Pings::new(both.clone().map(|(_, there)| *there));
        // A node that never received the request cannot reply: such a request is lost on the way there only.
        let back = both
            .filter_map(|((_, took), there)| there.map(|there| took.map(|took| took.saturating_sub(there))));
        Some([there, Pings::new(back)])
    }
}

/// One direction of a link over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LinkSeries {
    /// The link's name.
    pub link: String,
    /// From its first end to its second?
    pub up: bool,
    /// For people: `modem to isp`.
    pub title: String,
    /// The bytes its buffer holds; `None` if it is bounded otherwise, or a policy governs it.
    #[serde(deserialize_with = "required")]
    pub limit: Option<u64>,
    /// Bytes it carried per step, framing included.
    pub sent: Vec<u64>,
    /// Bytes it could have carried per step, framing included; empty if it has no rate.
    pub capacity: Vec<u64>,
    /// Bytes queued before it at the end of each step; the backlog of a policy's classes does not count.
    pub backlog: Vec<u64>,
    /// Packets lost before it or on it per step.
    pub dropped: Vec<u32>,
}

/// A TCP transfer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TransferRecord {
    /// Short and unique in a run: `upload-1`.
    pub id: String,
    /// For people.
    pub title: String,
    /// The sending node.
    pub from: String,
    /// The receiving node.
    pub to: String,
    /// Congestion control: `cubic`.
    pub control: String,
    /// The DS field's code point of its packets.
    pub dscp: u8,
    /// When it began, ns from the begin of the run.
    pub began: u64,
    /// When its last byte was acknowledged, if it had an end and came to it.
    #[serde(deserialize_with = "required")]
    pub finished: Option<u64>,
    /// Payload bytes acknowledged while measured.
    pub bytes: u64,
    /// Segments that were sent again, over the whole run.
    pub retransmissions: u64,
    /// Packets lost, whole run.
    pub lost: u64,
    /// Payload bytes acknowledged per step.
    pub series: Vec<u64>,
    /// Congestion window in segments at the end of each step; empty if not recorded.
    pub cwnd: Vec<u32>,
    /// Smoothed round trip in µs at the end of each step; empty if not recorded.
    pub srtt_us: Vec<u64>,
    /// Bits per second of payload as the sender's TCP estimated them at the end of each step; empty if not
    /// recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delivery_bits: Vec<u64>,
}

impl TransferRecord {
    /// Payload bits per second over a window.
    pub fn rate(&self, window: (u64, u64)) -> f64 {
        bits_per_second(self.bytes, window.1.saturating_sub(window.0))
    }
}

/// Something that happened at a moment of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventRecord {
    /// When it happened, ns from the begin of the run.
    pub at: u64,
    /// On which machine or link.
    pub on: String,
    /// The event: the command, or the change in words.
    pub what: String,
    /// What the machine printed.
    pub output: String,
}

/// A figure that was expected or published, and the one found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// A short name for it: `V-S2a`.
    pub id: String,
    /// What is compared, in words.
    pub what: String,
    /// The figure requested: `ping.mean of none/upload`, in the scenario's words.
    pub figure: String,
    /// The unit of the numbers below: `s`, `bit/s`, `bytes`, `` (a ratio or share).
    pub unit: String,
    /// The published or expected figure, in this unit; `None`: there is none.
    #[serde(deserialize_with = "required")]
    pub published: Option<f64>,
    /// The figure of this experiment, in this unit: the median of the repeats; `None`: it could not be had.
    #[serde(deserialize_with = "required")]
    pub found: Option<f64>,
    /// The least and the most of the repeats.
    #[serde(deserialize_with = "required")]
    pub spread: Option<(f64, f64)>,
    /// What it must lie within; infinite where there is no bound.
    #[serde(with = "bounds")]
    #[cfg_attr(feature = "schema", schemars(with = "(Option<f64>, Option<f64>)"))]
    pub within: (f64, f64),
    /// Is it within?
    pub held: bool,
    /// Must it be? Where not it is only reported.
    pub gated: bool,
    /// Why a published figure cannot come from what was published, or is only reported.
    #[serde(deserialize_with = "required")]
    pub why: Option<String>,
}
