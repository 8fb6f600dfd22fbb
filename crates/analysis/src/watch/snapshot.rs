//! Counters of one moment.

use crate::json::{At, Read, ReadError, document};

/// The member that tells the form, and its number.
const FORM: (&str, u64) = ("version", 1);
const ORIGIN: &str = "a snapshot is what `{\"ask\": \"snapshot\"}` is answered with";

/// What devices have counted until a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The moment, in ns of a clock that only goes forward.
    pub at_ns: u64,
    /// What to add to that for ns since 1970; 0 where that is not told.
    pub epoch_ns: u64,
    /// Whose disciplines these are: `user` or `kernel`.
    pub backend: String,
    /// How packets come to those in user space.
    pub door: Option<String>,
    /// What the engine counted since it began, by name.
    pub counts: Vec<(String, u64)>,
    /// The devices.
    pub devices: Vec<Device>,
}

/// A device with its trees.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Device {
    /// Its name.
    pub name: String,
    /// What its link carries, in bits per second, where that is known.
    pub link_bps: Option<f64>,
    /// All its qdiscs, in the order of tc's listing.
    pub qdiscs: Vec<Qdisc>,
    /// All its classes, likewise.
    pub classes: Vec<Class>,
    /// What was seen of packets that left, by class; nothing, where nobody looks.
    pub seen: Vec<Seen>,
}

/// What tc counts of a qdisc or class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets lost.
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

/// A qdisc.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Qdisc {
    /// Its kind.
    pub kind: String,
    /// Its handle: `1:`.
    pub handle: String,
    /// The class it hangs on; `None`: the device itself.
    pub parent: Option<String>,
    /// What it counts.
    pub counts: Counts,
    /// Packets it marked, where it tells.
    pub marks: Option<u64>,
    /// The rate it shapes to by itself, in bits per second: that of tbf and cake.
    pub shaped_bps: Option<f64>,
    /// Those of cake.
    pub tins: Vec<Tin>,
}

/// A tin of cake's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tin {
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Packets lost, acknowledgements that were left out not among them.
    pub drops: u64,
    /// Packets marked.
    pub marks: u64,
    /// Acknowledgements left out.
    pub ack_drops: u64,
    /// Bytes that wait.
    pub backlog: u64,
    /// What packets waited on average lately, in µs.
    pub delay_us: u64,
}

/// A class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Class {
    /// The kind of its qdisc.
    pub kind: String,
    /// Its name: `1:10`.
    pub handle: String,
    /// The class above; `None`: its qdisc itself.
    pub parent: Option<String>,
    /// The qdisc in it, if it was given one.
    pub leaf: Option<String>,
    /// What it counts; some kinds count nothing.
    pub counts: Option<Counts>,
    /// Packets sent on its own account, and on that of classes above (HTB).
    pub lent_borrowed: Option<(u64, u64)>,
    /// What it is sure of, in bits per second (HTB).
    pub rate_bps: Option<f64>,
    /// What it never exceeds, in bits per second (HTB).
    pub ceil_bps: Option<f64>,
}

/// What was seen of the packets of a class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// The class, or `root` for what hangs on the device.
    pub class: String,
    /// Packets that left with a mark they had not when they came.
    pub marked: u64,
    /// Packets lost.
    pub lost: u64,
    /// How long packets waited: pairs of the longest time that counts for a bucket, in ns, and how many there were.
    pub sojourn: Vec<(u64, u64)>,
    /// All these times added up, in ns, where that is told.
    pub sojourn_sum_ns: Option<u64>,
    /// How long the packet has waited that waits longest, in ns; `None`: none waits.
    pub oldest_ns: Option<u64>,
}

impl Seen {
    /// All waits added up, in ns; where that is not told, by the ends of their buckets, which is at most an eighth too much.
    pub fn waited_ns(&self) -> u64 {
        let by_ends =
            || self.sojourn.iter().map(|(end, count)| end.saturating_mul(*count)).fold(0, u64::saturating_add);
        self.sojourn_sum_ns.unwrap_or_else(by_ends)
    }
}

impl Snapshot {
    /// Reads the document. What it does not hold is nothing.
    ///
    /// # Errors
    /// It is no JSON, or of another form.
    pub fn read(text: &str) -> Result<Snapshot, ReadError> {
        document(text, FORM, ORIGIN, |root| {
            let counts = root.since("counts", |at| at.object().map(Some))?.into_iter().flatten();
            Ok(Snapshot {
                at_ns: root.member("at_ns", At::u64)?,
                epoch_ns: root.since("epoch_ns", At::u64)?,
                backend: root.member("backend", At::string)?,
                door: root.since("door", |at| at.maybe(At::string))?,
                counts: counts.filter_map(|(name, value)| Some((name.clone(), value.as_u64()?))).collect(),
                devices: root.member("devices", |at| at.list(device))?,
            })
        })
    }
}

fn device(at: &At<'_>) -> Read<Device> {
    Ok(Device {
        name: at.member("name", At::string)?,
        link_bps: at.since("link_rate_bps", |at| at.maybe(At::f64))?,
        qdiscs: at.since("qdiscs", |at| at.list(qdisc))?,
        classes: at.since("classes", |at| at.list(class))?,
        seen: at.since("seen", |at| at.list(seen))?,
    })
}

fn counts(at: &At<'_>) -> Read<Counts> {
    Ok(Counts {
        bytes: at.since("bytes", At::u64)?,
        packets: at.since("packets", At::u64)?,
        drops: at.since("drops", At::u64)?,
        overlimits: at.since("overlimits", At::u64)?,
        requeues: at.since("requeues", At::u64)?,
        backlog: at.since("backlog", At::u64)?,
        qlen: at.since("qlen", At::u64)?,
    })
}

fn qdisc(at: &At<'_>) -> Read<Qdisc> {
    let kind = at.member("kind", At::string)?;
    let tins = at.since("tins", |at| at.list(tin))?;
    // Each kind has its own word for it.
    let mut marks = at.since("ecn_mark", |at| at.u64().map(Some))?.or(at.since("marked", |at| at.u64().map(Some))?);
    if !tins.is_empty() {
        marks = Some(tins.iter().map(|tin| tin.marks).sum());
    }
    let shaped = match kind.as_str() {
        "tbf" => at.at("options").at("rate").f64().ok(),
        // Words stand there where it does not shape.
        "cake" => at.at("options").at("bandwidth").f64().ok(),
        _ => None,
    };
    Ok(Qdisc {
        handle: at.since("handle", At::string)?,
        parent: at.since("parent", |at| at.maybe(At::string))?,
        counts: counts(at)?,
        marks,
        shaped_bps: shaped.map(|bytes| bytes * 8.0),
        tins,
        kind,
    })
}

fn tin(at: &At<'_>) -> Read<Tin> {
    Ok(Tin {
        bytes: at.since("sent_bytes", At::u64)?,
        packets: at.since("sent_packets", At::u64)?,
        drops: at.since("drops", At::u64)?,
        marks: at.since("ecn_mark", At::u64)?,
        ack_drops: at.since("ack_drops", At::u64)?,
        backlog: at.since("backlog_bytes", At::u64)?,
        delay_us: at.since("avg_delay_us", At::u64)?,
    })
}

fn class(at: &At<'_>) -> Read<Class> {
    let stats = at.at("stats");
    let counted = stats.object().is_ok_and(|stats| stats.contains_key("packets"));
    let borrowed = |at: &At<'_>| Ok((at.since("lended", At::u64)?, at.since("borrowed", At::u64)?));
    let lends = counted && stats.object()?.contains_key("borrowed");
    let rate = |name: &str| at.at(name).f64().ok().map(|bytes| bytes * 8.0);
    let parent = at.since("parent", |at| at.maybe(At::string))?;
    Ok(Class {
        kind: at.since("kind", At::string)?,
        handle: at.member("handle", At::string)?,
        parent: parent.filter(|parent| !parent.ends_with(':')),
        leaf: at.since("leaf", |at| at.maybe(At::string))?,
        counts: if counted { Some(counts(&stats)?) } else { None },
        lent_borrowed: if lends { Some(borrowed(&stats)?) } else { None },
        rate_bps: rate("rate"),
        ceil_bps: rate("ceil"),
    })
}

fn seen(at: &At<'_>) -> Read<Seen> {
    Ok(Seen {
        class: at.member("class", At::string)?,
        marked: at.since("marked", At::u64)?,
        lost: at.since("lost", At::u64)?,
        sojourn: at.since("sojourn_ns", |at| at.list(|at| at.pair(At::u64)))?,
        sojourn_sum_ns: at.since("sojourn_sum_ns", |at| at.maybe(At::u64))?,
        oldest_ns: at.since("oldest_ns", |at| at.maybe(At::u64))?,
    })
}
