//! Counters of one moment.

use crate::json::{DocumentError, document};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The member that gives the form, and its number.
const FORM: (&str, u64) = ("version", 1);
const ORIGIN: &str = "a snapshot is what `{\"ask\": \"snapshot\"}` is answered with";

/// What devices have counted until a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The moment, in ns of a clock that only goes forward.
    pub at_ns: u64,
    /// What to add to that for ns since 1970; 0 where that is unknown.
    pub epoch_ns: u64,
    /// `user` or `kernel`: where the qdiscs run.
    pub backend: String,
    /// How packets come to those in user space.
    pub packet_io: Option<String>,
    /// What the engine counted since it began, by name.
    pub counts: Vec<(String, u64)>,
    /// The devices of the snapshot.
    pub devices: Vec<DeviceSnapshot>,
}

/// A device with its trees.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceSnapshot {
    /// The device's name, as Linux has it.
    pub name: String,
    /// What its link carries, in bits per second, where that is known.
    pub link_bps: Option<f64>,
    /// All its qdiscs, in the order of tc's listing.
    pub qdiscs: Vec<QdiscSnapshot>,
    /// All its classes, in the order of tc's listing.
    pub classes: Vec<ClassSnapshot>,
    /// What was recorded of packets that left, by class; empty without an observer.
    pub seen: Vec<Seen>,
}

/// What tc counts of a qdisc or class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Times that something had to wait for its turn.
    pub overlimits: u64,
    /// Packets that the device gave back.
    pub requeues: u64,
    /// Bytes that wait.
    pub backlog: u64,
    /// Packets that wait.
    pub qlen: u64,
}

/// A qdisc with its counters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QdiscSnapshot {
    /// The kind's name.
    pub kind: String,
    /// Its handle: `1:`.
    pub handle: String,
    /// The class it is attached to; `None`: the device itself.
    pub parent: Option<String>,
    /// What it counts.
    pub counts: Counts,
    /// Packets it marked, where it counts them.
    pub marks: Option<u64>,
    /// The rate that it shapes to itself, in bits per second: that of tbf and cake.
    pub shaped_bps: Option<f64>,
    /// Those of cake.
    pub tins: Vec<Tin>,
}

/// A tin of cake's.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub struct Tin {
    /// Bytes sent.
    #[serde(rename = "sent_bytes")]
    pub bytes: u64,
    /// Packets sent.
    #[serde(rename = "sent_packets")]
    pub packets: u64,
    /// Packets dropped, without dropped acknowledgements.
    pub drops: u64,
    /// Packets marked.
    #[serde(rename = "ecn_mark")]
    pub marks: u64,
    /// Acknowledgements left out.
    pub ack_drops: u64,
    /// Bytes that wait.
    #[serde(rename = "backlog_bytes")]
    pub backlog: u64,
    /// What packets waited on average lately, in µs.
    #[serde(rename = "avg_delay_us")]
    pub delay_us: u64,
}

/// A class with its counters.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClassSnapshot {
    /// The kind of its qdisc.
    pub kind: String,
    /// Its number: `1:10`.
    pub handle: String,
    /// What the policy calls it, if it does; any text.
    pub name: Option<String>,
    /// The class above; `None`: its qdisc itself.
    pub parent: Option<String>,
    /// The qdisc in it, if it was given one.
    pub leaf: Option<String>,
    /// What it counts; some kinds count nothing.
    pub counts: Option<Counts>,
    /// Packets sent on its own account, and on that of classes above (HTB).
    pub lent_borrowed: Option<(u64, u64)>,
    /// Its guaranteed rate, in bits per second (HTB).
    pub rate_bps: Option<f64>,
    /// What it never exceeds, in bits per second (HTB).
    pub ceil_bps: Option<f64>,
}

/// What was seen of the packets of a class.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
pub struct Seen {
    /// The class, or `root` for the device's root.
    pub class: String,
    /// Packets that left with a mark they had not when they came.
    #[serde(default)]
    pub marked: u64,
    /// Packets dropped.
    #[serde(default)]
    pub dropped: u64,
    /// How long packets waited: pairs of the longest time that counts for a bucket, in ns, and how many there
    /// were.
    #[serde(default, rename = "sojourn_ns")]
    pub sojourn: Vec<(u64, u64)>,
    /// The sum of all these delays, in ns, where it is known.
    #[serde(default)]
    pub sojourn_sum_ns: Option<u64>,
    /// How long the packet has waited that waits longest, in ns; `None`: none waits.
    #[serde(default)]
    pub oldest_ns: Option<u64>,
}

impl Seen {
    /// The sum of all delays, in ns; where that is unknown, by the ends of their buckets, which is at most an
    /// eighth too much.
    pub fn waited_ns(&self) -> u64 {
        let by_ends = || {
            self.sojourn.iter().map(|(end, count)| end.saturating_mul(*count)).fold(0, u64::saturating_add)
        };
        self.sojourn_sum_ns.unwrap_or_else(by_ends)
    }
}

impl Snapshot {
    /// Reads the document. What it does not hold is nothing.
    ///
    /// # Errors
    /// It is no JSON, or of another form.
    pub fn read(text: &str) -> Result<Snapshot, DocumentError> {
        let read: Document = document(text, FORM, ORIGIN)?;
        Ok(Snapshot {
            at_ns: read.at_ns,
            epoch_ns: read.epoch_ns,
            backend: read.backend,
            packet_io: read.packet_io,
            counts: read
                .counts
                .into_iter()
                .filter_map(|(name, value)| Some((name, value.as_u64()?)))
                .collect(),
            devices: read.devices.into_iter().map(device).collect(),
        })
    }
}

/// The document: tc's members, with what only the engine knows.
#[derive(Deserialize)]
struct Document {
    at_ns: u64,
    #[serde(default)]
    epoch_ns: u64,
    backend: String,
    #[serde(default)]
    packet_io: Option<String>,
    #[serde(default)]
    counts: Map<String, Value>,
    devices: Vec<ReadDevice>,
}

#[derive(Deserialize)]
struct ReadDevice {
    name: String,
    #[serde(default)]
    link_rate_bps: Option<f64>,
    #[serde(default)]
    qdiscs: Vec<ReadQdisc>,
    #[serde(default)]
    classes: Vec<ReadClass>,
    #[serde(default)]
    seen: Vec<Seen>,
    /// What the policy calls classes, by their numbers.
    #[serde(default)]
    names: BTreeMap<String, String>,
}

/// Whatever it does not count is nothing.
#[derive(Deserialize)]
struct ReadQdisc {
    kind: String,
    #[serde(default)]
    handle: String,
    #[serde(default)]
    parent: Option<String>,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    packets: u64,
    #[serde(default)]
    drops: u64,
    #[serde(default)]
    overlimits: u64,
    #[serde(default)]
    requeues: u64,
    #[serde(default)]
    backlog: u64,
    #[serde(default)]
    qlen: u64,
    // Each kind has its own word for it.
    #[serde(default)]
    ecn_mark: Option<u64>,
    #[serde(default)]
    marked: Option<u64>,
    #[serde(default)]
    tins: Vec<Tin>,
    #[serde(default)]
    options: Value,
}

#[derive(Deserialize)]
struct ReadClass {
    #[serde(default)]
    kind: String,
    handle: String,
    #[serde(default)]
    parent: Option<String>,
    #[serde(default)]
    leaf: Option<String>,
    #[serde(default)]
    stats: Option<ReadStats>,
    #[serde(default)]
    rate: Value,
    #[serde(default)]
    ceil: Value,
}

/// Some kinds count nothing.
#[derive(Deserialize)]
struct ReadStats {
    packets: Option<u64>,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    drops: u64,
    #[serde(default)]
    overlimits: u64,
    #[serde(default)]
    requeues: u64,
    #[serde(default)]
    backlog: u64,
    #[serde(default)]
    qlen: u64,
    #[serde(default)]
    lended: u64,
    borrowed: Option<u64>,
}

fn device(mut read: ReadDevice) -> DeviceSnapshot {
    let mut names = std::mem::take(&mut read.names);
    let mut named = |class: ClassSnapshot| ClassSnapshot { name: names.remove(&class.handle), ..class };
    DeviceSnapshot {
        name: read.name,
        link_bps: read.link_rate_bps,
        qdiscs: read.qdiscs.into_iter().map(qdisc).collect(),
        classes: read.classes.into_iter().map(|read| named(class(read))).collect(),
        seen: read.seen,
    }
}

fn qdisc(read: ReadQdisc) -> QdiscSnapshot {
    let ReadQdisc { bytes, packets, drops, overlimits, requeues, backlog, qlen, .. } = read;
    let marks = match read.tins.is_empty() {
        true => read.ecn_mark.or(read.marked),
        false => Some(read.tins.iter().map(|tin| tin.marks).sum()),
    };
    let shaped = match read.kind.as_str() {
        "tbf" => read.options["rate"].as_f64(),
        // The member holds words where it does not shape.
        "cake" => read.options["bandwidth"].as_f64(),
        _ => None,
    };
    QdiscSnapshot {
        handle: read.handle,
        parent: read.parent,
        counts: Counts { bytes, packets, drops, overlimits, requeues, backlog, qlen },
        marks,
        shaped_bps: shaped.map(|bytes| bytes * 8.0),
        tins: read.tins,
        kind: read.kind,
    }
}

fn class(read: ReadClass) -> ClassSnapshot {
    let stats = read.stats.as_ref().and_then(|stats| stats.packets.map(|packets| (stats, packets)));
    let counts = |(stats, packets): (&ReadStats, u64)| Counts {
        bytes: stats.bytes,
        packets,
        drops: stats.drops,
        overlimits: stats.overlimits,
        requeues: stats.requeues,
        backlog: stats.backlog,
        qlen: stats.qlen,
    };
    ClassSnapshot {
        counts: stats.map(counts),
        lent_borrowed: stats.and_then(|(stats, _)| Some((stats.lended, stats.borrowed?))),
        rate_bps: read.rate.as_f64().map(|bytes| bytes * 8.0),
        ceil_bps: read.ceil.as_f64().map(|bytes| bytes * 8.0),
        kind: read.kind,
        handle: read.handle,
        name: None,
        parent: read.parent.filter(|parent| !parent.ends_with(':')),
        leaf: read.leaf,
    }
}
