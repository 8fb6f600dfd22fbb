//! HFSC and QFQ: their words, and the classes below them.

use super::kinds::rate;
use super::{Class, World};
use crate::oracle_fuzz::rng::Rng;

/// Commands that are refused, for the qdisc HANDLE: (no other kind understands their options).
pub(super) const HFSC_MISTAKES: &[&str] = &[
    "tc class add dev link0 parent HANDLE:fe classid HANDLE:7f hfsc sc rate 100kbit",
    "tc class add dev link0 root classid HANDLE:7f hfsc sc rate 100kbit",
    "tc class change dev link0 root classid HANDLE:1 hfsc sc rate 100kbit",
    "tc class change dev link0 parent HANDLE:fe classid HANDLE:1 hfsc sc rate 100kbit",
    "tc class del dev link0 classid HANDLE:0",
    "tc class add dev link0 parent HANDLE: classid HANDLE:0 hfsc ls rate 100kbit",
    "tc qdisc add dev link0 parent HANDLE:0 handle 7777: pfifo",
];
pub(super) const QFQ_MISTAKES: &[&str] = &[
    "tc class add dev link0 parent HANDLE: classid HANDLE:7f qfq weight 1025",
    "tc class add dev link0 parent HANDLE: classid HANDLE:7f qfq weight 0",
    "tc class add dev link0 parent HANDLE: classid HANDLE:7f qfq maxpkt 100",
    "tc class change dev link0 classid HANDLE:7f qfq weight 3",
    "tc filter add dev link0 parent HANDLE:1 protocol all prio 1 handle 1 fw classid HANDLE:1",
];

pub(super) fn hfsc(rng: &mut Rng, _: u64) -> String {
    if rng.chance(25) {
        String::new()
    } else {
        format!("default {:x}", rng.pick(&[0, 1, 2, 0x10, 0x11, 0x12, 0x20]))
    }
}

/// The curves of a class whose share of the bottleneck is so many bit/s.
pub(super) fn hfsc_class(rng: &mut Rng, share: u64, full: u64) -> String {
    let mut words = match rng.weighted(&[35, 20, 25, 20]) {
        0 => format!("sc {}", curve(rng, share)),
        1 => format!("ls {}", curve(rng, share)),
        2 => {
            let slow = share * rng.range(20, 100) / 100;
            format!("rt {} ls {}", curve(rng, slow), curve(rng, share))
        }
        _ => return format!("rt {}", curve(rng, share)),
    };
    if rng.chance(35) {
        let most = rng.range(share.min(full), full.max(share));
        words.push_str(&format!(" ul {}", curve(rng, most)));
    }
    words
}

/// A service curve in one of its notations: straight, concave or convex.
fn curve(rng: &mut Rng, about: u64) -> String {
    let later = rate(rng, about);
    match rng.below(10) {
        0..4 => format!("{} {later}", rng.pick(&["rate", "m2"])),
        4..6 => format!("umax {} dmax {}ms rate {later}", rng.log_range(60, 4000), rng.log_range(1, 200)),
        6..8 => {
            let more = about * rng.range(100, 500) / 100;
            let first = rate(rng, more);
            format!("m1 {first} d {}ms m2 {later}", rng.log_range(1, 300))
        }
        8 => {
            let less = about * rng.range(10, 90) / 100;
            let first = if rng.chance(50) { "0".to_owned() } else { rate(rng, less) };
            format!("m1 {first} d {}us m2 {later}", rng.log_range(10, 200_000))
        }
        _ if rng.chance(30) => format!("m1 {later} d {}ms m2 0", rng.log_range(1, 3000)),
        _ => format!("d {}ms m2 {later}", rng.log_range(1, 100)),
    }
}

pub(super) fn grow_hfsc(world: &mut World, at: usize, handle: u16, depth: u32) {
    let full = world.rate;
    let layers = world.rng.weighted(&[40, 40, 15, 5]);
    let mut parents = vec![(format!("{handle:x}:"), full)];
    let mut minor = 1;
    for layer in 0..=layers {
        let leaf = layer == layers;
        let mut next = Vec::new();
        for (parent, share) in &parents {
            let count = if leaf { world.rng.range(1, 4) } else { world.rng.range(1, 2) };
            for _ in 0..count {
                let part = share * world.rng.range(30, 130) / 100 / count;
                let id = format!("{handle:x}:{minor:x}");
                minor += 1;
                let words = hfsc_class(&mut world.rng, part, full);
                let estimator = super::kinds::estimator(&mut world.rng);
                world.script.push(format!(
                    "tc class add dev link0 parent {parent} classid {id}{estimator} hfsc {words}"
                ));
                world.qdiscs[at].classes.push(Class { id: id.clone(), parent: parent.clone(), words, leaf });
                next.push((id, part));
            }
        }
        parents = next;
        minor = 0x10 * (minor / 0x10 + 1);
    }
    for (leaf, _) in parents {
        world.below(&leaf, depth, 55);
    }
}

/// The options of a class of QFQ.
pub(super) fn qfq_class(rng: &mut Rng) -> String {
    let mut words = String::new();
    if rng.chance(80) {
        let weight = match rng.below(10) {
            0 => rng.log_range(1, 1024),
            _ => *rng.pick(&[1, 1, 2, 3, 4, 5, 8, 10, 100]),
        };
        words.push_str(&format!(" weight {weight}"));
    }
    if rng.chance(60) {
        words.push_str(&format!(
            " maxpkt {}",
            rng.pick(&[512, 800, 1000, 1514, 1514, 1600, 2000, 2048, 9000, 65536])
        ));
    }
    words
}

pub(super) fn grow_qfq(world: &mut World, at: usize, handle: u16, depth: u32) {
    let count = world.rng.log_range(1, 12);
    // Classes that are alike share an aggregate.
    let alike = world.rng.chance(30).then(|| qfq_class(&mut world.rng));
    for minor in 1..=count {
        let id = format!("{handle:x}:{minor:x}");
        let words = match &alike {
            Some(words) if world.rng.chance(80) => words.clone(),
            _ => qfq_class(&mut world.rng),
        };
        let estimator = super::kinds::estimator(&mut world.rng);
        world
            .script
            .push(format!("tc class add dev link0 parent {handle:x}: classid {id}{estimator} qfq{words}"));
        let parent = format!("{handle:x}:");
        world.qdiscs[at].classes.push(Class { id, parent, words: words.trim().to_owned(), leaf: true });
    }
    for minor in 1..=count {
        world.below(&format!("{handle:x}:{minor:x}"), depth, 65);
    }
}
