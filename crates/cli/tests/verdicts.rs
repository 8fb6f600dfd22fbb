//! The sentences of `try` are held against the result document, each condition worked out here anew from the raw
//! series: of random policies, and of some of the gallery's.

mod common;

use common::{Place, TIDEGATE, skip};
use std::path::Path;
use std::process::Command;
use tidegate_measure::trial::{Run, Trial};

/// So many random policies.
const POLICIES: u64 = 12;

/// Splitmix64: the same numbers everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ z >> 31) % n
    }

    fn one<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }
}

#[derive(Clone, Debug)]
struct Leaf {
    minor: u64,
    rate: u64,
    ceil: u64,
    prio: u64,
    queue: &'static str,
}

/// A tree of one top class and its leaves, with filters by port; rates in kbit/s.
#[derive(Clone, Debug)]
struct Policy {
    major: &'static str,
    hfsc: bool,
    default: Option<u64>,
    top: u64,
    leaves: Vec<Leaf>,
    /// Preference, protocol of IP, port, leaf.
    filters: Vec<(u64, u64, u64, u64)>,
    protocol: &'static str,
}

impl Policy {
    fn random(seed: u64) -> Policy {
        let mut random = Random(seed);
        let top = *random.one(&[600, 2000, 9000, 40_000]);
        let count = 2 + random.below(4);
        let leaf = |random: &mut Random, n: u64| {
            let rate = (top * *random.one(&[5, 10, 20, 40, 70]) / 100).max(8);
            let ceil = *random.one(&[rate / 2, rate, top, top, top * 2]);
            let queues =
                ["", "pfifo limit 5", "pfifo limit 100", "pfifo limit 2000", "sfq perturb 10", "fq_codel", "fq_codel"];
            Leaf { minor: 10 * n, rate, ceil: ceil.max(8), prio: random.below(4), queue: random.one::<&str>(&queues) }
        };
        let leaves: Vec<Leaf> = (1..=count).map(|n| leaf(&mut random, n)).collect();
        let filter = |random: &mut Random, n: u64| {
            let port = *random.one(&[22, 53, 80, 443, 5060, 51413]);
            (n, *random.one(&[6, 17]), port, random.one(&leaves).minor)
        };
        let filters = (1..=random.below(5)).map(|n| filter(&mut random, n)).collect();
        let default = match random.below(4) {
            0 => None,
            1 => Some(99),
            _ => Some(random.one(&leaves).minor),
        };
        Policy { major: "1", hfsc: false, default, top, leaves, filters, protocol: "ip" }
    }

    /// What a class may send, in the words of its kind.
    fn class(&self, rate: u64, ceil: u64, prio: u64) -> String {
        match self.hfsc {
            true => format!("hfsc sc rate {rate}kbit ul rate {ceil}kbit"),
            false => format!("htb rate {rate}kbit ceil {ceil}kbit prio {prio}"),
        }
    }

    /// Its commands: the tree, the queues of the leaves, the filters.
    fn commands(&self) -> [Vec<String>; 3] {
        let (m, default) = (self.major, self.default.map_or(String::new(), |id| format!(" default {id}")));
        let kind = if self.hfsc { "hfsc" } else { "htb" };
        let mut tree = vec![
            format!("qdisc add dev eth0 root handle {m}: {kind}{default}"),
            format!("class add dev eth0 parent {m}: classid {m}:1 {}", self.class(self.top, self.top, 0)),
        ];
        let (mut queues, mut filters) = (Vec::new(), Vec::new());
        for Leaf { minor, rate, ceil, prio, queue } in &self.leaves {
            tree.push(format!(
                "class add dev eth0 parent {m}:1 classid {m}:{minor} {}",
                self.class(*rate, *ceil, *prio)
            ));
            if !queue.is_empty() {
                queues.push(format!("qdisc add dev eth0 parent {m}:{minor} handle {minor}: {queue}"));
            }
        }
        for (pref, protocol, port, leaf) in &self.filters {
            filters.push(format!(
                "filter add dev eth0 parent {m}: protocol {} prio {pref} u32 match ip protocol {protocol} 0xff \
                 match ip dport {port} 0xffff flowid {m}:{leaf}",
                self.protocol
            ));
        }
        [tree, queues, filters]
    }

    fn lines(&self) -> Vec<String> {
        self.commands().concat()
    }
}

/// A sorted list's value at the share `p`, as the definition of a percentile has it: the smallest that is not below
/// so many of them.
fn percentile(mut values: Vec<u64>, p: f64) -> Option<u64> {
    values.sort_unstable();
    let rank = (p / 100.0 * values.len() as f64).ceil() as usize;
    values.get(rank.max(1) - 1).copied()
}

/// The ping's 95th percentile, and the share of its losses.
fn ping(run: &Run) -> (Option<u64>, f64) {
    let probe = run.probes.iter().find(|probe| probe.id == "ping").expect("a ping");
    let asked: Vec<Option<u64>> =
        probe.answers.iter().filter(|(at, _)| (run.window.0..run.window.1).contains(at)).map(|(_, rtt)| *rtt).collect();
    let lost = asked.iter().filter(|rtt| rtt.is_none()).count() as f64 / asked.len().max(1) as f64;
    (percentile(asked.into_iter().flatten().collect(), 95.0), lost)
}

/// What waits half of the time in one of the link's buffers, in ms of the link.
fn waits(run: &Run, title: &str, bits: u64) -> f64 {
    let buffer = run.buffers.iter().find(|buffer| buffer.title == title).expect("a buffer");
    let measured = buffer.backlog[(run.window.0 / run.step_ns) as usize..].to_vec();
    percentile(measured, 50.0).unwrap_or(0) as f64 * 8e3 / bits as f64
}

/// Are the sentences those that follow from the document?
fn follows(trial: &Trial, what: &str) {
    let said = trial.verdict.join("\n");
    let has = |words: &str| said.contains(words);
    let [without, with] = [false, true].map(|policy| {
        trial.runs.iter().find(|run| run.policy == policy && !run.witnesses && run.load == "both").expect("a run")
    });
    let ((before, _), (after, lost)) = (ping(without), ping(with));
    let context = format!("{what}\n{said}\n{before:?} {after:?} {lost}");
    if let (Some(before), Some(after)) = (before, after) {
        let ratio = before as f64 / after as f64;
        assert_eq!(has("the policy cuts the ping's"), ratio >= 1.2, "{context}");
        assert_eq!(has("makes the ping worse"), ratio <= 0.83, "{context}");
        // Nothing was measured idle: what an idle link takes is its round trip and a frame each way.
        let frames = [trial.link.up_bits, trial.link.down_bits].map(|bits| 1514.0 * 8e9 / bits as f64);
        let idle = trial.link.rtt_ns as f64 + frames.iter().sum::<f64>();
        let between = ratio > 0.83 && ratio < 1.2;
        assert_eq!(has("the policy does not help"), between && before as f64 > 2.0 * idle, "{context}");
        assert_eq!(has("does not disturb the ping"), between && before as f64 <= 2.0 * idle, "{context}");
        assert_eq!(has("of them are lost"), lost > 0.02, "{context}");
    } else {
        assert!(has("answered"), "{context}");
    }
    // Twenty milliseconds, and more than two frames, are worth a word.
    for (title, bits, words) in
        [("modem", trial.link.up_bits, "The modem still holds"), ("provider", trial.link.down_bits, "At the provider")]
    {
        let ms = waits(with, title, bits);
        let worth = ms > f64::max(20.0, 2.0 * 1514.0 * 8e3 / bits as f64);
        assert_eq!(has(words), worth, "{title} {ms} ms: {context}");
    }
    let sent: u64 = with.classes.iter().filter(|c| c.leaf).flat_map(|c| &c.packets).map(|n| u64::from(*n)).sum();
    if has("were sent past all classes") {
        assert!(with.direct_packets * 10 > sent, "{} direct, {sent} in classes: {context}", with.direct_packets);
    }
    for node in trial.tree.iter().filter(|node| node.unreachable.is_some()) {
        assert!(has("No packet was found") && has(&node.id), "{}: {context}", node.id);
        let busy =
            trial.runs.iter().flat_map(|run| &run.classes).any(|c| c.id == node.id && c.sent.iter().any(|n| *n > 0));
        assert!(!busy, "{} sent something: {context}", node.id);
    }
}

#[test]
fn what_try_says_follows_from_its_document() {
    if skip() {
        return;
    }
    let place = Place::new("verdicts");
    for seed in 0..POLICIES {
        let policy = Policy { hfsc: seed % 3 == 2, ..Policy::random(seed) };
        let file = place.file("policy.batch", policy.lines().join("\n") + "\n");
        let link = ["--up", "5mbit", "--down", "20mbit", "--duration", "3s", "--load", "both", "--probes", "ping"];
        let output = Command::new(TIDEGATE).args(["try", "--json"]).args(link).arg(&file).output().expect("it runs");
        // What the kernel refuses is refused.
        if !output.status.success() {
            assert!(!output.stderr.is_empty());
            continue;
        }
        let trial = tidegate_report::from_json(&String::from_utf8_lossy(&output.stdout)).expect("a document");
        follows(&trial, &format!("seed {seed}: {policy:?}"));
    }
    let gallery = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/gallery");
    for name in
        ["comcast-like.sh", "lartc-tbf.sh", "class-hunger.sh", "netem-loss.sh", "cake-ifb.sh", "cake-unlimited.sh"]
    {
        let link = ["--up", "10mbit", "--down", "50mbit", "--duration", "3s", "--load", "both", "--probes", "ping"];
        let script = gallery.join(name);
        let output = Command::new(TIDEGATE).args(["try", "--json"]).args(link).arg(&script).output().expect("it runs");
        let trial = tidegate_report::from_json(&String::from_utf8_lossy(&output.stdout)).expect("a document");
        follows(&trial, name);
    }
}
