//! What happened between two snapshots, as a tree.

use super::control::ShaperControl;
use super::snapshot::{ClassSnapshot, Counts, DeviceSnapshot, QdiscSnapshot, Seen, Snapshot};
use std::collections::BTreeMap;

/// Trees are not deeper: what the kernel allows, and classes besides.
const DEEPEST: usize = 64;
/// Kinds whose classes are flows: they come and go, and would fill the screen.
const FLOWS: [&str; 6] = ["fq_codel", "sfq", "fq_pie", "cake", "choke", "hhf"];

/// What happened at a device between two snapshots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceInterval {
    /// The device's name.
    pub device: String,
    /// `user` or `kernel`: where the qdiscs run.
    pub backend: String,
    /// How packets come to those in user space.
    pub packet_io: Option<String>,
    /// When the later snapshot was taken, in ns since 1970.
    pub at_ns: u64,
    /// The time between the two, in ns.
    pub over_ns: u64,
    /// What its link carries, in bits per second, where that is known.
    pub link_bps: Option<f64>,
    /// The policy's rate in bits per second, where it is known.
    pub shaped_bps: Option<f64>,
    /// How late the engine was at most since it began, in ns; `None`: there is none.
    pub late_ns: Option<u64>,
    /// What `tidegate autorate` does with its shaper, where one runs.
    pub control: Option<ShaperControl>,
    /// Its qdiscs and classes, each before those below it.
    pub rows: Vec<QueueRow>,
}

/// A qdisc on the device, or a class.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueRow {
    /// The branches before its name where a tree is drawn.
    pub branch: String,
    /// Rows above it in the tree; 0: it is on the device itself.
    pub depth: usize,
    /// `1:10`, or `htb 1:`.
    pub id: String,
    /// What the policy calls the class, if it does; any text.
    pub name: Option<String>,
    /// The qdisc in a class: `fq_codel 10:`.
    pub leaf: Option<String>,
    /// What happened there.
    pub figures: Figures,
}

/// What happened at one place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Bits per second that left.
    pub bps: f64,
    /// Packets per second that left.
    pub pps: f64,
    /// Of what the device lets through (its link where nothing shapes): a share of one.
    pub share: Option<f64>,
    /// Bytes that wait.
    pub backlog: u64,
    /// Packets that wait.
    pub qlen: u64,
    /// What half of the packets did not wait longer than, in ns; at most an eighth too much.
    pub p50_ns: Option<u64>,
    /// The queueing delay of the 99th percentile, in ns.
    pub p99_ns: Option<u64>,
    /// How long the packet has waited that waits longest, in ns; `None`: none waits, or it is not known.
    pub oldest_ns: Option<u64>,
    /// Packets dropped per second.
    pub drops: f64,
    /// Packets marked per second, where they are counted.
    pub marks: Option<f64>,
    /// The share of packets that left on the account of classes above (HTB).
    pub borrowed: Option<f64>,
    /// Its guaranteed rate, in bits per second (HTB).
    pub rate_bps: Option<f64>,
    /// What it never exceeds, in bits per second (HTB).
    pub ceil_bps: Option<f64>,
}

/// What happened at each device that is in both snapshots.
pub fn device_intervals(before: &Snapshot, now: &Snapshot) -> Vec<DeviceInterval> {
    let over_ns = now.at_ns.saturating_sub(before.at_ns);
    let both = now.devices.iter().filter_map(|device| {
        let earlier = before.devices.iter().find(|earlier| earlier.name == device.name)?;
        Some((Tree { before: earlier, now: device, seconds: over_ns.max(1) as f64 / 1e9 }, device))
    });
    both.map(|(tree, device)| DeviceInterval {
        device: device.name.clone(),
        backend: now.backend.clone(),
        packet_io: now.packet_io.clone(),
        at_ns: now.at_ns.saturating_add(now.epoch_ns),
        over_ns,
        link_bps: device.link_bps,
        shaped_bps: shaped(device),
        late_ns: now.counts.iter().find(|(name, _)| name == "latest_ns").map(|(_, late)| *late),
        control: None,
        rows: tree.rows(),
    })
    .collect()
}

/// What the tree on the device lets through at most, in bits per second.
pub(super) fn shaped(device: &DeviceSnapshot) -> Option<f64> {
    let root = device.qdiscs.iter().find(|qdisc| qdisc.parent.is_none())?;
    let tops = device
        .classes
        .iter()
        .filter(|class| class.parent.is_none() && major(&class.handle) == major(&root.handle));
    let ceilings: Option<Vec<f64>> = tops.map(|class| class.ceil_bps).collect();
    let in_all = ceilings.filter(|ceilings| !ceilings.is_empty()).map(|ceilings| ceilings.iter().sum());
    root.shaped_bps.or(in_all)
}

/// The branches drawn before rows in the order of a tree, given how deep each one is.
pub(super) fn branches(depths: &[usize]) -> Vec<String> {
    // By depth: whether a later row of the same parent is that deep.
    let mut follows: Vec<bool> = Vec::new();
    let mut drawn: Vec<String> = depths
        .iter()
        .rev()
        .map(|&depth| {
            follows.resize(depth + 1, false);
            let stems: String =
                follows.iter().take(depth).skip(1).map(|&on| if on { "│ " } else { "  " }).collect();
            let elbow = match (depth, follows[depth]) {
                (0, _) => "",
                (_, true) => "├ ",
                (_, false) => "└ ",
            };
            follows[depth] = true;
            stems + elbow
        })
        .collect();
    drawn.reverse();
    drawn
}

/// The part of a name before the colon.
fn major(handle: &str) -> &str {
    handle.split(':').next().unwrap_or_default()
}

/// Both parts of a name as numbers, to put them in order.
fn numbers(handle: &str) -> (u32, u32) {
    let hex = |part: Option<&str>| part.and_then(|part| u32::from_str_radix(part, 16).ok()).unwrap_or(0);
    let mut parts = handle.split(':');
    (hex(parts.next()), hex(parts.next()))
}

/// How much a counter grew; one that was reset begins again.
fn grown(now: u64, before: u64) -> u64 {
    if now >= before { now - before } else { now }
}

/// A device at two times.
struct Tree<'s> {
    before: &'s DeviceSnapshot,
    now: &'s DeviceSnapshot,
    seconds: f64,
}

/// A place in the tree, with what happened there.
struct Node {
    id: String,
    name: Option<String>,
    leaf: Option<String>,
    sums: Sums,
    rate_bps: Option<f64>,
    ceil_bps: Option<f64>,
    children: Vec<Node>,
}

/// How much counters grew.
#[derive(Clone, Debug, Default)]
struct Sums {
    bytes: u64,
    packets: u64,
    drops: u64,
    backlog: u64,
    qlen: u64,
    marks: Option<u64>,
    lent_borrowed: Option<(u64, u64)>,
    sojourn: BTreeMap<u64, u64>,
    oldest_ns: Option<u64>,
}

impl Tree<'_> {
    fn rows(&self) -> Vec<QueueRow> {
        let mut rows = Vec::new();
        let of = [self.now.link_bps, shaped(self.now)].into_iter().flatten().reduce(f64::min);
        // The qdiscs of the device: its root first, then ingress.
        let (roots, hooks) = self.now.qdiscs.iter().partition::<Vec<_>, _>(|qdisc| qdisc.parent.is_none());
        let hooks = hooks
            .into_iter()
            .filter(|qdisc| qdisc.parent.as_deref().is_some_and(|on| on.starts_with("ffff:fff")));
        // What arrives takes nothing of the rate that the root has.
        let shares = roots.into_iter().map(|qdisc| (qdisc, of)).chain(hooks.map(|qdisc| (qdisc, None)));
        for (qdisc, of) in shares {
            let node = self.qdisc(qdisc, 0);
            self.lay(&node, 0, of, &mut rows);
        }
        let depths: Vec<usize> = rows.iter().map(|row| row.depth).collect();
        rows.iter_mut().zip(branches(&depths)).for_each(|(row, branch)| row.branch = branch);
        rows
    }

    /// Puts a node and what is below it into rows.
    fn lay(&self, node: &Node, depth: usize, of: Option<f64>, rows: &mut Vec<QueueRow>) {
        rows.push(QueueRow {
            branch: String::new(),
            depth,
            id: node.id.clone(),
            name: node.name.clone(),
            leaf: node.leaf.clone(),
            figures: self.figures(node, of),
        });
        node.children.iter().for_each(|child| self.lay(child, depth + 1, of, rows));
    }

    fn figures(&self, node: &Node, of: Option<f64>) -> Figures {
        let sums = &node.sums;
        let per_second = |count: u64| count as f64 / self.seconds;
        let bps = per_second(sums.bytes) * 8.0;
        let borrowed = sums.lent_borrowed.filter(|(lent, borrowed)| lent + borrowed > 0);
        Figures {
            bps,
            pps: per_second(sums.packets),
            share: of.filter(|&of| of > 0.0).map(|of| bps / of),
            backlog: sums.backlog,
            qlen: sums.qlen,
            p50_ns: percentile(&sums.sojourn, 0.5),
            p99_ns: percentile(&sums.sojourn, 0.99),
            oldest_ns: sums.oldest_ns,
            drops: per_second(sums.drops),
            marks: sums.marks.map(per_second),
            borrowed: borrowed.map(|(lent, borrowed)| borrowed as f64 / (lent + borrowed) as f64),
            rate_bps: node.rate_bps,
            ceil_bps: node.ceil_bps,
        }
    }

    /// A qdisc on the device.
    fn qdisc(&self, qdisc: &QdiscSnapshot, depth: usize) -> Node {
        let children = self.classes_of(qdisc, depth);
        let mut sums = self.counted_by(qdisc);
        self.look(&mut sums, "root", &children);
        Node {
            id: name(qdisc),
            name: None,
            leaf: None,
            sums,
            rate_bps: None,
            ceil_bps: qdisc.shaped_bps,
            children,
        }
    }

    /// The classes directly below a qdisc.
    fn classes_of(&self, qdisc: &QdiscSnapshot, depth: usize) -> Vec<Node> {
        let own = |class: &&ClassSnapshot| {
            class.parent.is_none()
                && major(&class.handle) == major(&qdisc.handle)
                && class.handle != qdisc.handle
                && !FLOWS.contains(&class.kind.as_str())
        };
        self.in_order(self.now.classes.iter().filter(own), depth)
    }

    fn in_order<'c>(&self, classes: impl Iterator<Item = &'c ClassSnapshot>, depth: usize) -> Vec<Node> {
        if depth >= DEEPEST {
            return Vec::new();
        }
        let mut classes: Vec<&ClassSnapshot> = classes.collect();
        classes.sort_by_key(|class| numbers(&class.handle));
        classes.into_iter().map(|class| self.class(class, depth + 1)).collect()
    }

    fn class(&self, class: &ClassSnapshot, depth: usize) -> Node {
        let below =
            self.now.classes.iter().filter(|other| other.parent.as_deref() == Some(class.handle.as_str()));
        let mut children = self.in_order(below, depth);
        let leaf_qdisc =
            self.now.qdiscs.iter().find(|qdisc| qdisc.parent.as_deref() == Some(class.handle.as_str()));
        children.extend(leaf_qdisc.into_iter().flat_map(|qdisc| self.classes_of(qdisc, depth)));
        Node {
            id: class.handle.clone(),
            name: class.name.clone(),
            leaf: leaf_qdisc.map(name),
            sums: self.sums(class, leaf_qdisc, &children),
            rate_bps: class.rate_bps,
            ceil_bps: class.ceil_bps,
            children,
        }
    }

    /// The counters of a class: what leaves it itself, its drops and backlog by the qdisc in it, which counts
    /// them all; for an inner class the sum of those below.
    fn sums(&self, class: &ClassSnapshot, leaf_qdisc: Option<&QdiscSnapshot>, children: &[Node]) -> Sums {
        let earlier = self.before.classes.iter().find(|earlier| earlier.handle == class.handle);
        let inside = leaf_qdisc.map(|qdisc| self.counted_by(qdisc));
        let earlier_counts = earlier.and_then(|earlier| earlier.counts).unwrap_or_default();
        let mut sums = match (class.counts, &inside) {
            (Some(counts), _) => counted(counts, earlier_counts),
            (None, Some(inside)) => inside.clone(),
            (None, None) => Sums::default(),
        };
        if let Some(inside) = inside {
            sums = Sums {
                drops: inside.drops,
                backlog: inside.backlog,
                qlen: inside.qlen,
                marks: inside.marks,
                ..sums
            };
        } else if !children.is_empty() {
            sums.drops = children.iter().map(|child| child.sums.drops).sum();
            sums.backlog = children.iter().map(|child| child.sums.backlog).sum();
            sums.qlen = children.iter().map(|child| child.sums.qlen).sum();
        }
        let (lent, borrowed) = earlier.and_then(|earlier| earlier.lent_borrowed).unwrap_or_default();
        sums.lent_borrowed = class.lent_borrowed.map(|now| (grown(now.0, lent), grown(now.1, borrowed)));
        self.look(&mut sums, &class.handle, children);
        sums
    }

    fn counted_by(&self, qdisc: &QdiscSnapshot) -> Sums {
        let same =
            |earlier: &&QdiscSnapshot| (&earlier.handle, &earlier.parent) == (&qdisc.handle, &qdisc.parent);
        let earlier = self.before.qdiscs.iter().find(same);
        let marks_before = earlier.and_then(|earlier| earlier.marks).unwrap_or(0);
        let counts_before = earlier.map(|earlier| earlier.counts).unwrap_or_default();
        Sums {
            marks: qdisc.marks.map(|marks| grown(marks, marks_before)),
            ..counted(qdisc.counts, counts_before)
        }
    }

    /// Adds the packets that were observed, here and below; where there is an observer, it counts marks too.
    fn look(&self, sums: &mut Sums, class: &str, children: &[Node]) {
        let of = |device: &DeviceSnapshot| device.seen.iter().find(|seen| seen.class == class).cloned();
        let (now, before) = (of(self.now).unwrap_or_default(), of(self.before).unwrap_or_default());
        sums.sojourn = noted(&now, &before);
        sums.oldest_ns = now.oldest_ns;
        for child in children {
            sums.oldest_ns = sums.oldest_ns.max(child.sums.oldest_ns);
            for (&end, &count) in &child.sums.sojourn {
                *sums.sojourn.entry(end).or_default() += count;
            }
        }
        let below = || children.iter().filter_map(|child| child.sums.marks);
        if !self.now.seen.is_empty() {
            sums.marks = Some(grown(now.marked, before.marked) + below().sum::<u64>());
        } else if below().next().is_some() {
            sums.marks = Some(below().sum());
        }
    }
}

fn name(qdisc: &QdiscSnapshot) -> String {
    format!("{} {}", qdisc.kind, qdisc.handle)
}

fn counted(now: Counts, before: Counts) -> Sums {
    // One that counts less than before was put there again.
    let before = if now.packets < before.packets { Counts::default() } else { before };
    Sums {
        bytes: grown(now.bytes, before.bytes),
        packets: now.packets - before.packets,
        drops: grown(now.drops, before.drops),
        backlog: now.backlog,
        qlen: now.qlen,
        ..Sums::default()
    }
}

/// What was noted in between, by bucket.
fn noted(now: &Seen, before: &Seen) -> BTreeMap<u64, u64> {
    let earlier: BTreeMap<u64, u64> = before.sojourn.iter().copied().collect();
    let buckets =
        now.sojourn.iter().map(|&(end, count)| (end, grown(count, earlier.get(&end).copied().unwrap_or(0))));
    buckets.filter(|&(_, count)| count > 0).collect()
}

/// The end of the bucket in which so large a part of the packets is complete.
fn percentile(buckets: &BTreeMap<u64, u64>, part: f64) -> Option<u64> {
    let all: u64 = buckets.values().sum();
    let wanted = (all as f64 * part).ceil() as u64;
    let mut so_far = 0;
    buckets
        .iter()
        .find(|&(_, count)| {
            so_far += count;
            so_far >= wanted.max(1)
        })
        .map(|(&end, _)| end)
}
