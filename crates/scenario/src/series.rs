//! What the classes of devices did, read step by step: kept for trials and scenarios alike.

use std::collections::BTreeMap;
use tidegate_gateway::{DeviceId, Gateway};
use tidegate_packet::{Handle, Time};
use tidegate_policy::Kind;
use tidegate_policy::dump::{ClassDump, QdiscDump, QueueStats, Xstats};

/// A class, or a root without classes, at one moment after the other.
#[derive(Clone, Debug, Default)]
pub struct ClassReadings {
    /// The device, by the name it was read under.
    pub device: String,
    /// The class; of a root without classes its handle.
    pub id: Handle,
    /// A class below it there is not.
    pub leaf: bool,
    /// Bytes sent in each step.
    pub sent: Vec<u64>,
    /// Packets sent in each step.
    pub packets: Vec<u32>,
    /// Bytes that wait at the end of each step.
    pub backlog: Vec<u64>,
    /// Packets that wait at the end of each step.
    pub qlen: Vec<u32>,
    /// Packets dropped in each step.
    pub dropped: Vec<u32>,
    /// HTB: tokens at the end of each step, in microseconds at its rate.
    pub tokens_us: Vec<i64>,
    /// HTB: tokens of the ceiling at the end of each step, in microseconds.
    pub ctokens_us: Vec<i64>,
    last: QueueStats,
}

/// Courses by device and class, in the order in which they appeared.
#[derive(Clone, Debug, Default)]
pub struct ClassRecorder {
    courses: Vec<ClassReadings>,
    places: BTreeMap<(String, Handle), usize>,
    /// Readings so far.
    steps: usize,
}

/// Which roots are read beside classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Roots {
    /// Those that were configured.
    Configured,
    /// Also those that the kernel made.
    All,
}

/// Is it a class that people configured, with counters of its own?
pub fn counts(class: &ClassDump) -> bool {
    // HFSC lists its root as a class that has the qdisc's own number.
    class.stats.is_some() && !class.kind.classes_are_flows() && class.classid.minor() != 0
}

/// Classes without classes below them, on the class itself or on its qdisc.
pub fn is_leaf(class: &ClassDump, all: &[ClassDump]) -> bool {
    let major = (!class.leaf.is_none()).then(|| class.leaf.major());
    !all.iter()
        .any(|other| other.parent == class.classid || Some(other.classid.major()) == major && counts(other))
}

impl ClassRecorder {
    /// Reads all classes of devices; of a device without any, its root. The devices go by the names given.
    pub fn read<'n>(
        &mut self,
        gateway: &mut Gateway,
        devices: impl IntoIterator<Item = (&'n str, DeviceId)>,
        roots: Roots,
        at: Time,
    ) {
        for (name, id) in devices {
            let classes = gateway.classes(at, id);
            let qdiscs = gateway.qdiscs(at, id);
            self.read_device(name, &qdiscs, &classes, roots);
        }
    }

    /// Reads one device, from what is installed on it.
    pub fn read_device(&mut self, name: &str, qdiscs: &[QdiscDump], classes: &[ClassDump], roots: Roots) {
        let mut any = false;
        let hung: BTreeMap<Handle, u32> =
            qdiscs.iter().map(|qdisc| (qdisc.parent, qdisc.stats.drops)).collect();
        for class in classes.iter().filter(|class| counts(class)) {
            let Some(mut stats) = class.stats else { continue };
            let tokens = match class.xstats {
                Xstats::HtbClass { tokens, ctokens, .. } => Some((tokens, ctokens)),
                _ => None,
            };
            let leaf = is_leaf(class, classes);
            // HFSC counts what is sent at its leaves only.
            if class.kind == Kind::Hfsc && !leaf {
                continue;
            }
            // A class counts what its queue refused, the queue itself also what it dropped later, as CoDel
            // does.
            if let Some(drops) = hung.get(&class.classid).filter(|_| leaf) {
                stats.drops = *drops;
            }
            self.note((name, class.classid), leaf, &stats, tokens);
            any = true;
        }
        if !any {
            let known = |handle: Handle| roots == Roots::All || !handle.is_none();
            for root in qdiscs.iter().filter(|q| q.parent == Handle::ROOT && known(q.handle)) {
                self.note((name, root.handle), true, &root.stats, None);
            }
        }
    }

    /// A step has ended: what was not read in it (its device, or itself, is gone) did nothing.
    pub fn end_step(&mut self) {
        self.steps += 1;
        for course in &mut self.courses {
            course.pad(self.steps);
        }
    }

    /// The time series.
    pub fn into_vec(self) -> Vec<ClassReadings> {
        self.courses
    }

    fn note(
        &mut self,
        (device, id): (&str, Handle),
        leaf: bool,
        stats: &QueueStats,
        tokens: Option<(i32, i32)>,
    ) {
        let steps = self.steps;
        let at = *self.places.entry((device.to_owned(), id)).or_insert_with(|| {
            let mut course = ClassReadings { device: device.to_owned(), id, ..ClassReadings::default() };
            course.pad(steps);
            self.courses.push(course);
            self.courses.len() - 1
        });
        let course = &mut self.courses[at];
        course.leaf = leaf;
        // What was replaced in between counts from nothing.
        let last = if stats.bytes < course.last.bytes { QueueStats::default() } else { course.last };
        course.sent.push(stats.bytes.saturating_sub(last.bytes));
        course.packets.push(u32::try_from(stats.packets.saturating_sub(last.packets)).unwrap_or(u32::MAX));
        course.dropped.push(stats.drops.saturating_sub(last.drops));
        course.last = *stats;
        course.backlog.push(u64::from(stats.backlog));
        course.qlen.push(stats.qlen);
        if let Some((tokens, ctokens)) = tokens {
            // A tick of the packet scheduler is 64 ns.
            course.tokens_us.push(i64::from(tokens) * 64 / 1000);
            course.ctokens_us.push(i64::from(ctokens) * 64 / 1000);
        }
    }
}

impl ClassReadings {
    fn pad(&mut self, steps: usize) {
        self.sent.resize(steps.max(self.sent.len()), 0);
        self.packets.resize(steps.max(self.packets.len()), 0);
        self.backlog.resize(steps.max(self.backlog.len()), 0);
        self.qlen.resize(steps.max(self.qlen.len()), 0);
        self.dropped.resize(steps.max(self.dropped.len()), 0);
    }
}
