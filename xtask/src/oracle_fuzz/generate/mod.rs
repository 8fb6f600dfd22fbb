//! Random cases, each determined by its seed and number.
//!
//! To add a kind: a row in [`KINDS`] and a function that writes its words (and, for a classful one, a
//! function that grows what is below it). To add a filter: a function in `filters`. To add a change in
//! the middle: a branch in `middle`.

mod actions;
mod aqm;
mod around;
mod aside;
mod cake;
mod conditions;
mod fair;
mod filters;
mod kinds;
mod later;
mod middle;
mod netfilter;
mod newer;
mod rewrite;
mod tables;
mod traffic;

use super::case::{Case, Release};
use super::rng::Rng;

pub(crate) use kinds::{KINDS, Kind, NEWER_KINDS};

/// Nesting of qdiscs that cases go to.
const DEEPEST: u32 = 4;
/// Classes and qdiscs of one case: beyond, only leaves are made.
const MOST_QDISCS: usize = 14;

/// What sets the stream of `around` apart from the others.
const AROUND: u64 = 0x6172_6f75_6e64;
/// And that of words of newer releases.
const NEWER: u64 = 0x6e_6577_6572;

/// A qdisc of the tree under construction.
#[derive(Clone, Debug)]
struct Qdisc {
    kind: &'static str,
    /// None: the kernel gives a handle of its own.
    handle: Option<u16>,
    /// `root` or `parent 1:10`.
    place: String,
    /// The words after the kind.
    words: String,
    classes: Vec<Class>,
}

/// A class of the tree under construction.
#[derive(Clone, Debug)]
struct Class {
    id: String,
    parent: String,
    words: String,
    leaf: bool,
}

/// A filter of the tree under construction: what `tc filter add dev link0` is followed by.
#[derive(Clone, Debug)]
struct Filter {
    /// `parent 1:`
    parent: String,
    protocol: &'static str,
    pref: u64,
    /// `handle 3 ` or nothing.
    handle: String,
    kind: &'static str,
    words: String,
}

/// What has been decided about the case so far.
#[derive(Debug)]
struct World {
    rng: Rng,
    script: Vec<String>,
    qdiscs: Vec<Qdisc>,
    filters: Vec<Filter>,
    next_handle: u16,
    /// The bottleneck, in bit/s, that everything is scaled to.
    rate: u64,
    /// No ICMP in the traffic, so that keys made of ports are numbers and not pointers.
    ports: bool,
    /// A kind that every case must have.
    only: Option<&'static str>,
    /// The kinds that there are.
    kinds: &'static [Kind],
    /// Packets are routed, and rules of iptables precede the queues.
    forward: bool,
    /// Filters may do more than choose a class.
    acting: bool,
    /// Packets may be redirected to other devices.
    led: bool,
    /// The longest frame that the device takes.
    longest: u64,
    shape: &'static str,
}

/// Case `number` of `seed`; with `only`, one that has this kind.
pub(crate) fn case(seed: u64, number: u64, only: Option<&'static str>, release: &Release) -> Case {
    let mut rng = Rng::of_case(seed, number);
    let rate = round(rng.log_range(100_000, 20_000_000));
    let ports = rng.chance(75);
    let forward = rng.chance(30);
    let acting = rng.chance(45);
    let led = acting && rng.chance(25);
    let mut world = World {
        rng,
        script: Vec::new(),
        qdiscs: Vec::new(),
        filters: Vec::new(),
        next_handle: 0x10,
        rate,
        ports,
        only,
        kinds: release.kinds(),
        forward,
        acting,
        led,
        longest: 1514,
        shape: "random tree",
    };
    let link = world.link();
    world.tree();
    world.beside();
    world.filters();
    if forward {
        world.rules();
    }
    let load = world.rng.range(50, 300);
    let (mut rows, span) = world.traffic(load);
    if forward {
        world.converse(&mut rows);
    }
    let filters_acks = world.script.iter().any(|line| line.contains(" ack-filter"));
    if filters_acks && !forward {
        world.acknowledgements(&mut rows, span);
    }
    world.middle(&mut rows, span);
    world.around(&mut Rng::of_case(seed ^ AROUND, number), &mut rows, span);
    world.rewrites();
    if release.is_newer() {
        let mut rng = Rng::of_case(seed ^ NEWER, number);
        for line in &mut world.script {
            newer::words(&mut rng, line);
        }
        for row in &mut rows {
            newer::words(&mut rng, &mut row.rest);
        }
    }
    rows.sort_by_key(|row| row.time);
    let mut case = Case { link, script: world.script, rows, note: String::new(), release: release.clone() };
    case.note = format!(
        "{}; qdiscs {}; {} filters; {} rows; load {}.{:02} of {} bit/s; oracle-fuzz seed {seed} number \
        {number}",
        world.shape,
        case.kinds().join(" "),
        world.filters.len(),
        case.rows.len(),
        load / 100,
        load % 100,
        world.rate
    );
    case
}

/// Two significant digits, as people write rates.
fn round(rate: u64) -> u64 {
    let mut unit = 1;
    while rate / unit >= 100 {
        unit *= 10;
    }
    rate / unit * unit
}

impl World {
    fn link(&mut self) -> String {
        let rng = &mut self.rng;
        let rate = match rng.below(4) {
            0 => self.rate,
            1 => self.rate * rng.range(2, 8) / 2,
            _ => 0,
        };
        let overhead = if rate > 0 && rng.chance(40) { *rng.pick(&[4, 18, 24, 38]) } else { 0 };
        let mtu = if self.forward || rng.chance(80) { 1500 } else { *rng.pick(&[1280, 1492, 2000, 9000]) };
        // A longer one the kernel refuses before the qdisc sees it; and memory per packet is known up to 1514
        // only.
        self.longest = 1514.min(mtu + 14);
        let txqueuelen = *rng.pick(&[1000, 1000, 1000, 100, 10, 3, 1]);
        let forward = if self.forward { " forward" } else { "" };
        format!("{rate} {overhead} {mtu} {txqueuelen}{forward}")
    }

    /// The root and everything below it.
    fn tree(&mut self) {
        let shapes = [30, 20, 15, 10, 10, 8, 7];
        let shape = self.rng.weighted(&shapes);
        let root = match (self.only, shape) {
            (Some(kind), _) if self.rng.chance(60) => kind,
            (_, 0) => "htb",
            (_, 1) => "tbf",
            (_, 2) => "prio",
            (_, 3) => "drr",
            _ => self.any_kind(0),
        };
        self.qdisc("root".to_owned(), root, 0);
        self.shape = match root {
            "htb" => "HTB at the root",
            "tbf" => "TBF at the root",
            "prio" => "PRIO at the root",
            "drr" => "DRR at the root",
            _ => "random tree",
        };
        let only = self.only;
        if let Some(kind) = only.filter(|kind| self.qdiscs.iter().all(|q| q.kind != *kind)) {
            // The tree has grown without it: put it below the first class, in the place of what is there.
            let place = self
                .qdiscs
                .iter()
                .find_map(|q| q.classes.iter().find(|c| c.leaf))
                .map(|c| format!("parent {}", c.id));
            let place = place.unwrap_or_else(|| "root".to_owned());
            if place == "root" {
                self.script.clear();
                self.qdiscs.clear();
            } else {
                self.script
                    .retain(|line| !line.contains(&format!("{place} ")) || !line.starts_with("tc qdisc"));
                self.forget_below(&place);
            }
            self.qdisc(place, kind, DEEPEST);
        }
    }

    /// What is beside the tree before its filters come.
    fn beside(&mut self) {
        if self.led {
            self.devices_aside();
        }
        if self.acting {
            for _ in 0..self.rng.below(4) {
                let line = self.shared_action();
                self.script.push(line);
            }
        }
        if self.acting && self.forward && self.rng.chance(40) {
            self.arrivals();
        }
    }

    /// A chain of filters beside the first.
    fn chain(&mut self) -> u64 {
        self.rng.range(1, 3)
    }

    /// Takes a qdisc that is to be replaced, and all below it, out of the script.
    fn forget_below(&mut self, place: &str) {
        let Some(at) = self.qdiscs.iter().position(|q| q.place == place) else { return };
        let gone = self.qdiscs.remove(at);
        for class in &gone.classes {
            self.script.retain(|line| !line.contains(&format!("classid {} ", class.id)));
            let below = format!("parent {}", class.id);
            self.script.retain(|line| !line.contains(&format!("{below} ")));
            self.forget_below(&below);
        }
    }

    /// A kind for a place at this depth: leaves become likelier downwards.
    fn any_kind(&mut self, depth: u32) -> &'static str {
        let full = depth >= DEEPEST || self.qdiscs.len() >= MOST_QDISCS;
        let weights: Vec<u64> = self
            .kinds
            .iter()
            .map(|kind| {
                let base = if kind.inner && full {
                    0
                } else if kind.inner {
                    kind.weight * 2 / u64::from(depth + 1)
                } else {
                    kind.weight
                };
                if self.only == Some(kind.name) && !(kind.inner && full) { base.max(1) * 8 } else { base }
            })
            .collect();
        self.kinds[self.rng.weighted(&weights)].name
    }

    /// One qdisc and, for a classful kind, what is below it.
    fn qdisc(&mut self, place: String, kind: &'static str, depth: u32) {
        let Some(spec) = KINDS.iter().find(|spec| spec.name == kind) else { return };
        let root = place == "root";
        let handle = if root {
            Some(1)
        } else if !spec.inner && self.rng.chance(10) {
            None
        } else {
            self.next_handle += 1 + self.rng.below(3) as u16;
            Some(self.next_handle)
        };
        let words = (spec.words)(&mut self.rng, self.rate);
        let stab = if root && self.rng.chance(15) { kinds::stab(&mut self.rng) } else { String::new() };
        let shown = handle.map_or(String::new(), |h| format!(" handle {h:x}:"));
        let spaced = if words.is_empty() { String::new() } else { format!(" {words}") };
        let estimator = kinds::estimator(&mut self.rng);
        self.script.push(format!("tc qdisc add dev link0 {place}{shown}{estimator}{stab} {kind}{spaced}"));
        self.qdiscs.push(Qdisc { kind, handle, place, words, classes: Vec::new() });
        let at = self.qdiscs.len() - 1;
        if let (Some(grow), Some(handle)) = (spec.grow, handle) {
            grow(self, at, handle, depth);
        }
    }

    /// A qdisc, often, below a class.
    fn below(&mut self, class: &str, depth: u32, percent: u64) {
        if self.rng.chance(percent) {
            let kind = self.any_kind(depth + 1);
            self.qdisc(format!("parent {class}"), kind, depth + 1);
        }
    }

    /// Any class of the tree.
    fn any_class(&mut self) -> Option<Class> {
        let all: Vec<&Class> = self.qdiscs.iter().flat_map(|q| &q.classes).collect();
        if all.is_empty() { None } else { Some((*self.rng.pick(&all)).clone()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_number_is_the_same_case() {
        for number in 0..50 {
            assert_eq!(
                case(7, number, None, &Release::default()),
                case(7, number, None, &Release::default())
            );
        }
        assert_ne!(case(7, 1, None, &Release::default()), case(7, 2, None, &Release::default()));
        assert_ne!(case(7, 1, None, &Release::default()), case(8, 1, None, &Release::default()));
    }

    #[test]
    fn cases_are_well_formed() {
        for number in 0..300 {
            let case = case(1, number, None, &Release::default());
            assert!(
                case.script
                    .iter()
                    .all(|line| ["tc ", "iptables ", "ip "].iter().any(|name| line.starts_with(name))
                        && !line.contains("  ")),
                "{:#?}",
                case.script
            );
            // Devices beside the link, and its hooks, may be made before its tree.
            let first =
                case.script.iter().find(|line| line.starts_with("tc qdisc ") && !line.contains("sact"));
            let first = first.filter(|line| line.contains(" dev link0 "));
            assert!(
                first.is_some_and(|line| line.contains("add dev link0 root handle 1:")),
                "{:#?}",
                case.script
            );
            assert!(case.rows.windows(2).all(|pair| pair[0].time <= pair[1].time));
            assert!(case.rows.len() <= 1300, "{}", case.rows.len());
            let columns = super::super::case::COLUMNS.split(',').count() - 1;
            for row in case.rows.iter().filter(|row| row.command().is_none()) {
                let count = row.rest.split(',').count();
                assert!(count == columns || count == columns - 1, "{}", row.rest);
            }
            let proto = |rest: &str| rest.split(',').nth(4).map(str::to_owned);
            let portless =
                case.rows.iter().any(|row| matches!(proto(&row.rest).as_deref(), Some("icmp" | "58")));
            let ports =
                case.script.iter().any(|line| line.contains("proto-src") || line.contains("proto-dst"));
            assert!(!(portless && ports), "a pointer would be hashed: case {number}");
        }
    }

    #[test]
    fn every_kind_is_made_and_can_be_chosen() {
        let newer = Release { linux: "7.2".to_owned(), tc: "7.2".to_owned() };
        for kind in KINDS {
            let having = (0..20)
                .filter(|n| case(3, *n, Some(kind.name), &newer).kinds().contains(&kind.name.to_owned()))
                .count();
            assert_eq!(having, 20, "{}", kind.name);
        }
    }

    #[test]
    fn handles_are_not_used_twice() {
        for number in 0..200 {
            let mut seen = Vec::new();
            for line in case(5, number, None, &Release::default())
                .script
                .iter()
                .filter(|line| line.starts_with("tc qdisc add dev link0"))
            {
                if let Some(handle) = line.split(" handle ").nth(1).and_then(|rest| rest.split(' ').next()) {
                    assert!(!seen.contains(&handle.to_owned()), "case {number}: {line}");
                    seen.push(handle.to_owned());
                }
            }
        }
    }
}
