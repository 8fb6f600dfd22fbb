//! The kinds of qdisc: their words, and what grows below the classful ones.

use super::{Class, World, aqm, cake, fair, later};
use crate::oracle_fuzz::rng::Rng;

/// One kind that cases are made of.
#[derive(Debug)]
pub(crate) struct Kind {
    pub(crate) name: &'static str,
    /// How often it is chosen among the others.
    pub(crate) weight: u64,
    /// Whether something may stand below it.
    pub(crate) inner: bool,
    /// Its options for a bottleneck of so many bit/s.
    pub(super) words: fn(&mut Rng, u64) -> String,
    /// Its classes and children: the world, the place in its list of qdiscs, the handle, the depth.
    pub(super) grow: Option<fn(&mut World, usize, u16, u32)>,
}

/// All kinds, with how often they are chosen.
pub(crate) const KINDS: &[Kind] = &[
    Kind { name: "pfifo", weight: 8, inner: false, words: packets, grow: None },
    Kind { name: "bfifo", weight: 6, inner: false, words: bytes, grow: None },
    Kind { name: "pfifo_head_drop", weight: 4, inner: false, words: packets, grow: None },
    Kind { name: "pfifo_fast", weight: 3, inner: false, words: nothing, grow: None },
    Kind { name: "sfq", weight: 12, inner: false, words: sfq, grow: None },
    Kind { name: "codel", weight: 9, inner: false, words: codel, grow: None },
    Kind { name: "fq_codel", weight: 14, inner: false, words: fq_codel, grow: None },
    Kind { name: "prio", weight: 8, inner: true, words: prio, grow: Some(grow_prio) },
    Kind { name: "tbf", weight: 9, inner: true, words: tbf, grow: Some(grow_tbf) },
    Kind { name: "htb", weight: 9, inner: true, words: htb, grow: Some(grow_htb) },
    Kind { name: "drr", weight: 8, inner: true, words: nothing, grow: Some(grow_drr) },
    Kind { name: "red", weight: 9, inner: true, words: aqm::red, grow: Some(grow_tbf) },
    Kind { name: "choke", weight: 7, inner: false, words: aqm::choke, grow: None },
    Kind { name: "sfb", weight: 7, inner: true, words: aqm::sfb, grow: Some(grow_tbf) },
    Kind { name: "pie", weight: 9, inner: false, words: aqm::pie, grow: None },
    Kind { name: "hfsc", weight: 9, inner: true, words: fair::hfsc, grow: Some(fair::grow_hfsc) },
    Kind { name: "qfq", weight: 8, inner: true, words: nothing, grow: Some(fair::grow_qfq) },
    Kind { name: "cake", weight: 12, inner: false, words: cake::cake, grow: None },
    Kind { name: "ets", weight: 7, inner: true, words: later::ets, grow: Some(later::grow_ets) },
    Kind { name: "fq", weight: 5, inner: false, words: later::fq, grow: None },
    Kind { name: "fq_pie", weight: 7, inner: false, words: later::fq_pie, grow: None },
    Kind { name: "gred", weight: 6, inner: false, words: later::gred, grow: Some(later::grow_gred) },
    Kind { name: "hhf", weight: 6, inner: false, words: later::hhf, grow: None },
    Kind { name: "netem", weight: 7, inner: true, words: later::netem, grow: Some(later::grow_netem) },
    Kind { name: "skbprio", weight: 5, inner: false, words: later::skbprio, grow: None },
    Kind { name: "dualpi2", weight: 9, inner: false, words: aqm::dualpi2, grow: None },
];

/// How many of them, at the end, the oldest release has not: cases of that one stay what they were.
pub(crate) const NEWER_KINDS: usize = 1;

/// A list of options, joined as words.
pub(super) struct Words(Vec<String>);

impl Words {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }
    pub(super) fn add(&mut self, word: impl Into<String>) {
        self.0.push(word.into());
    }
    pub(super) fn maybe(&mut self, rng: &mut Rng, percent: u64, word: impl FnOnce(&mut Rng) -> String) {
        if rng.chance(percent) {
            let word = word(rng);
            self.add(word);
        }
    }
    pub(super) fn text(self) -> String {
        self.0.join(" ")
    }
}

/// A rate near `about`, in one of the units that scripts use.
pub(super) fn rate(rng: &mut Rng, about: u64) -> String {
    let about = about.max(8_000);
    match rng.below(6) {
        0 => format!("{}bit", about + rng.below(997)),
        1 if about >= 1_000_000 => format!("{}mbit", about / 1_000_000),
        2 if about >= 1_000_000 => format!("{}.{}mbit", about / 1_000_000, about / 100_000 % 10),
        3 if about >= 16_000 => format!("{}kbps", about / 8_000),
        _ => format!("{}kbit", about / 1000),
    }
}

/// Now and then ` est INTERVAL CONSTANT`, in front of a kind.
pub(super) fn estimator(rng: &mut Rng) -> String {
    if !rng.chance(6) {
        return String::new();
    }
    let interval = *rng.pick(&[250_u64, 500, 1000, 2000]);
    format!(" est {interval}ms {}ms", interval * rng.range(2, 9))
}

/// ` stab …`, in front of the kind of a root.
pub(super) fn stab(rng: &mut Rng) -> String {
    let mut words = Words::new();
    words.add(" stab");
    words.maybe(rng, 30, |rng| format!("mtu {}", rng.pick(&[1500, 2047, 2048, 4096])));
    words.maybe(rng, 30, |rng| format!("tsize {}", rng.pick(&[64, 128, 256, 512])));
    words.maybe(rng, 50, |rng| format!("mpu {}", rng.pick(&[64, 84, 96])));
    words.maybe(rng, 70, |rng| format!("overhead {}", rng.pick(&[-14, -4, 4, 10, 18, 26, 44])));
    let layer = rng.pick(&["linklayer atm", "linklayer adsl", "linklayer ethernet"]);
    words.add(*layer);
    words.text()
}

pub(super) fn nothing(_: &mut Rng, _: u64) -> String {
    String::new()
}

fn packets(rng: &mut Rng, _: u64) -> String {
    match rng.below(10) {
        0 => String::new(),
        1 => format!("limit {}", rng.pick(&["0", "1", "10k", "1k"])),
        _ => format!("limit {}", rng.log_range(1, 200)),
    }
}

fn bytes(rng: &mut Rng, _: u64) -> String {
    match rng.below(10) {
        0 => String::new(),
        1 => format!("limit {}", rng.pick(&["0", "1000", "10k", "16kb"])),
        _ => format!("limit {}", rng.log_range(1000, 150_000)),
    }
}

fn prio(rng: &mut Rng, _: u64) -> String {
    if rng.chance(45) {
        return String::new();
    }
    let bands = rng.range(2, 8);
    if bands >= 3 && rng.chance(30) {
        return format!("bands {bands}");
    }
    let map: Vec<String> = (0..16).map(|_| rng.below(bands).to_string()).collect();
    let short = if bands >= 3 && rng.chance(30) { rng.range(1, 15) as usize } else { 16 };
    format!("bands {bands} priomap {}", map[..short].join(" "))
}

fn grow_prio(world: &mut World, at: usize, handle: u16, depth: u32) {
    let words = world.qdiscs[at].words.clone();
    let bands: u64 = words.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or(3);
    for band in 1..=bands {
        let id = format!("{handle:x}:{band:x}");
        world.qdiscs[at].classes.push(Class {
            id: id.clone(),
            parent: String::new(),
            words: String::new(),
            leaf: true,
        });
        world.below(&id, depth, 70);
    }
}

fn tbf(rng: &mut Rng, about: u64) -> String {
    let speed = about * rng.range(30, 150) / 100;
    let mut words = Words::new();
    words.add(format!("rate {}", rate(rng, speed)));
    words.add(format!(
        "burst {}",
        if rng.chance(15) { "10k".to_owned() } else { rng.log_range(1514, 20_000).to_string() }
    ));
    if rng.chance(50) {
        words.add(format!("latency {}ms", rng.log_range(5, 800)));
    } else {
        words.add(format!("limit {}", rng.log_range(1600, 120_000)));
    }
    if rng.chance(22) {
        words.add(format!("peakrate {}bit", speed * rng.range(105, 400) / 100 + 9000));
        words.add(format!("mtu {}", rng.pick(&[1514, 1540, 1600, 3000])));
    }
    words.maybe(rng, 12, |rng| format!("mpu {}", rng.pick(&[64, 84, 200])));
    words.maybe(rng, 15, |rng| format!("overhead {}", rng.pick(&[4, 10, 18, 40, 300])));
    words.maybe(rng, 15, |rng| format!("linklayer {}", rng.pick(&["atm", "adsl", "ethernet"])));
    words.text()
}

fn grow_tbf(world: &mut World, at: usize, handle: u16, depth: u32) {
    let id = format!("{handle:x}:1");
    world.qdiscs[at].classes.push(Class {
        id: id.clone(),
        parent: String::new(),
        words: String::new(),
        leaf: true,
    });
    world.below(&id, depth, 65);
}

fn htb(rng: &mut Rng, _: u64) -> String {
    let mut words = Words::new();
    words.maybe(rng, 75, |rng| format!("default {:x}", *rng.pick(&[0, 1, 2, 0x10, 0x11, 0x12, 0x20, 0x99])));
    words.maybe(rng, 25, |rng| format!("r2q {}", rng.pick(&[1, 2, 5, 10, 20, 100])));
    words.maybe(rng, 12, |rng| format!("direct_qlen {}", rng.pick(&[1, 2, 5, 50])));
    words.text()
}

/// The options of a class of HTB whose share of the bottleneck is so many bit/s.
pub(super) fn htb_class(rng: &mut Rng, share: u64, ceiling: u64) -> String {
    let mut words = Words::new();
    words.add(format!("rate {}", rate(rng, share)));
    words.maybe(rng, 65, |rng| {
        let ceil = if rng.chance(8) { share / 2 } else { rng.range(share.min(ceiling), ceiling.max(share)) };
        format!("ceil {}", rate(rng, ceil))
    });
    words.maybe(rng, 45, |rng| {
        format!("burst {}", rng.pick(&["1600", "2k", "4k", "6k", "15k", "3000", "1500"]))
    });
    words.maybe(rng, 30, |rng| format!("cburst {}", rng.pick(&["1600", "2k", "3k", "15k", "1540"])));
    words.maybe(rng, 60, |rng| format!("prio {}", rng.below(8)));
    words.maybe(rng, 40, |rng| format!("quantum {}", rng.pick(&[300, 600, 1000, 1514, 1600, 3000, 5000])));
    words.maybe(rng, 10, |rng| format!("overhead {}", rng.pick(&[8, 18, 26, 40])));
    words.maybe(rng, 10, |rng| format!("mpu {}", rng.pick(&[53, 64, 84])));
    words.maybe(rng, 10, |rng| format!("linklayer {}", rng.pick(&["atm", "adsl", "ethernet"])));
    words.maybe(rng, 5, |rng| format!("mtu {}", rng.pick(&[1500, 1600, 3000])));
    words.text()
}

fn grow_htb(world: &mut World, at: usize, handle: u16, depth: u32) {
    let top = format!("{handle:x}:");
    let full = world.rate;
    let layers = world.rng.weighted(&[25, 50, 20, 5]);
    let mut parents = vec![(top.clone(), full)];
    let mut minor = 1;
    for _ in 0..layers {
        let mut next = Vec::new();
        for (parent, share) in &parents {
            for _ in 0..world.rng.range(1, 2) {
                let part = share * world.rng.range(40, 100) / 100;
                let id = htb_add(world, at, handle, &mut minor, parent, part, full, false);
                next.push((id, part));
            }
        }
        parents = next;
        minor = 0x10 * (minor / 0x10 + 1);
    }
    let mut leaves = Vec::new();
    for (parent, share) in &parents {
        let count = world.rng.range(1, 4);
        for _ in 0..count {
            let part = share * world.rng.range(30, 130) / 100 / count;
            leaves.push(htb_add(world, at, handle, &mut minor, parent, part, full, true));
        }
    }
    for leaf in leaves {
        world.below(&leaf, depth, 65);
    }
}

#[allow(clippy::too_many_arguments)]
fn htb_add(
    world: &mut World,
    at: usize,
    handle: u16,
    minor: &mut u64,
    parent: &str,
    share: u64,
    full: u64,
    leaf: bool,
) -> String {
    let id = format!("{handle:x}:{minor:x}");
    *minor += 1;
    let words = htb_class(&mut world.rng, share, full);
    let estimator = estimator(&mut world.rng);
    world.script.push(format!("tc class add dev link0 parent {parent} classid {id}{estimator} htb {words}"));
    world.qdiscs[at].classes.push(Class { id: id.clone(), parent: parent.to_owned(), words, leaf });
    id
}

/// The options of a class of DRR.
pub(super) fn drr_class(rng: &mut Rng) -> String {
    if rng.chance(20) { String::new() } else { format!(" quantum {}", rng.log_range(200, 6000)) }
}

fn grow_drr(world: &mut World, at: usize, handle: u16, depth: u32) {
    let count = world.rng.log_range(1, 8);
    for minor in 1..=count {
        let id = format!("{handle:x}:{minor:x}");
        let words = drr_class(&mut world.rng);
        let estimator = estimator(&mut world.rng);
        world
            .script
            .push(format!("tc class add dev link0 parent {handle:x}: classid {id}{estimator} drr{words}"));
        world.qdiscs[at].classes.push(Class {
            id,
            parent: format!("{handle:x}:"),
            words: words.trim().to_owned(),
            leaf: true,
        });
    }
    for minor in 1..=count {
        world.below(&format!("{handle:x}:{minor:x}"), depth, 65);
    }
}

fn sfq(rng: &mut Rng, _: u64) -> String {
    let mut words = Words::new();
    words.maybe(rng, 60, |rng| format!("limit {}", rng.log_range(2, 200)));
    words.maybe(rng, 30, |rng| format!("perturb {}", rng.range(1, 10)));
    words.maybe(rng, 45, |rng| format!("quantum {}", rng.pick(&[256, 300, 1000, 1456, 1514, 3000])));
    words.maybe(rng, 35, |rng| format!("depth {}", rng.log_range(1, 127)));
    words.maybe(rng, 35, |rng| format!("divisor {}", 1 << rng.range(2, 11)));
    words.maybe(rng, 25, |rng| format!("flows {}", rng.log_range(1, 400)));
    words.maybe(rng, 35, |_| "headdrop".to_owned());
    words.maybe(rng, 30, aqm::sfq_red);
    words.text()
}

fn codel(rng: &mut Rng, _: u64) -> String {
    let mut words = Words::new();
    words.maybe(rng, 60, |rng| format!("limit {}", rng.log_range(2, 400)));
    words.maybe(rng, 60, |rng| format!("target {}", time(rng, 1, 60)));
    words.maybe(rng, 60, |rng| format!("interval {}", time(rng, 10, 300)));
    words.maybe(rng, 50, |rng| (*rng.pick(&["ecn", "ecn", "noecn"])).to_owned());
    words.maybe(rng, 20, |rng| format!("ce_threshold {}", time(rng, 1, 40)));
    words.text()
}

pub(super) fn time(rng: &mut Rng, low: u64, high: u64) -> String {
    if rng.chance(15) {
        format!("{}us", rng.range(low * 1000, high * 1000))
    } else {
        format!("{}ms", rng.log_range(low, high))
    }
}

fn fq_codel(rng: &mut Rng, about: u64) -> String {
    let mut words = codel(rng, about);
    let mut add = |text: String| {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(&text);
    };
    if rng.chance(45) {
        add(format!("flows {}", rng.pick(&[1, 2, 4, 16, 64, 1000, 1024])));
    }
    if rng.chance(50) {
        add(format!("quantum {}", rng.pick(&[256, 300, 300, 600, 1514, 3000])));
    }
    if rng.chance(15) {
        add(format!("memory_limit {}", rng.pick(&["20k", "50k", "100k", "1m"])));
    }
    if rng.chance(25) {
        add(format!("drop_batch {}", rng.pick(&[1, 2, 8, 64, 100])));
    }
    if rng.chance(6) {
        add(format!("ce_threshold {}ms ce_threshold_selector 0x{:x}/0x3", rng.range(1, 20), rng.below(4)));
    }
    words
}
