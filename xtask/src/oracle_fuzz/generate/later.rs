//! The words of ets, fq, fq_pie, gred, hhf, netem and skbprio, and the classes below ets and netem.

use super::kinds::{Words, rate, time};
use super::{Class, World, aqm};
use crate::oracle_fuzz::rng::Rng;

pub(super) fn ets(rng: &mut Rng, _: u64) -> String {
    let bands = rng.range(1, 8);
    let strict = if rng.chance(40) { 0 } else { rng.below(bands + 1) };
    let mut words = Words::new();
    words.add(format!("bands {bands}"));
    if strict > 0 {
        words.add(format!("strict {strict}"));
    }
    let quanta = rng.below(bands - strict + 1);
    if quanta > 0 {
        let list: Vec<String> = (0..quanta).map(|_| rng.log_range(100, 6000).to_string()).collect();
        words.add(format!("quanta {}", list.join(" ")));
    }
    if rng.chance(75) {
        let list: Vec<String> = (0..rng.range(1, 16)).map(|_| rng.below(bands).to_string()).collect();
        words.add(format!("priomap {}", list.join(" ")));
    }
    words.text()
}

pub(super) fn grow_ets(world: &mut World, at: usize, handle: u16, depth: u32) {
    let words = world.qdiscs[at].words.clone();
    let bands: u64 = words.split(' ').nth(1).and_then(|n| n.parse().ok()).unwrap_or(3);
    for band in 1..=bands {
        let id = format!("{handle:x}:{band:x}");
        let parent = format!("{handle:x}:");
        world.qdiscs[at].classes.push(Class { id: id.clone(), parent, words: String::new(), leaf: true });
        world.below(&id, depth, 70);
    }
}

/// The options of a class of ets.
pub(super) fn ets_class(rng: &mut Rng) -> String {
    if rng.chance(10) { String::new() } else { format!(" quantum {}", rng.log_range(100, 6000)) }
}

pub(super) fn fq(rng: &mut Rng, about: u64) -> String {
    let mut words = Words::new();
    words.maybe(rng, 40, |rng| format!("limit {}", rng.log_range(2, 400)));
    words.maybe(rng, 40, |rng| format!("flow_limit {}", rng.log_range(1, 100)));
    words.maybe(rng, 40, |rng| format!("quantum {}", rng.pick(&[300, 1000, 1514, 3028, 6000])));
    words.maybe(rng, 40, |rng| format!("initial_quantum {}", rng.pick(&[0, 300, 1514, 3028, 15140])));
    words.maybe(rng, 40, |rng| {
        let part = about * rng.range(5, 60) / 100;
        format!("maxrate {}", rate(rng, part))
    });
    words.maybe(rng, 20, |rng| format!("buckets {}", rng.pick(&[2, 4, 64, 1024])));
    words.maybe(rng, 30, |rng| format!("orphan_mask {}", rng.pick(&[0, 1, 3, 15, 255, 1023])));
    words.maybe(rng, 25, |rng| {
        format!("low_rate_threshold {}", rng.pick(&["0", "100kbit", "5mbit", "550kbit"]))
    });
    words.maybe(rng, 25, |rng| format!("refill_delay {}", time(rng, 1, 200)));
    words.maybe(rng, 20, |rng| format!("ce_threshold {}", time(rng, 1, 40)));
    words.maybe(rng, 15, |rng| (*rng.pick(&["pacing", "nopacing"])).to_owned());
    words.maybe(rng, 15, |rng| (*rng.pick(&["horizon_cap", "horizon_drop"])).to_owned());
    // How late a flow is woken depends on what else wakes the machine, so the slack is mostly none.
    words.add(if rng.chance(95) { "timer_slack 0" } else { "timer_slack 10us" });
    words.text()
}

pub(super) fn fq_pie(rng: &mut Rng, about: u64) -> String {
    let mut words = Words::new();
    let pie = aqm::pie(rng, about);
    if !pie.is_empty() {
        words.add(pie);
    }
    words.maybe(rng, 45, |rng| format!("flows {}", rng.pick(&[1, 2, 4, 16, 64, 1000, 2048, 5000])));
    words.maybe(rng, 45, |rng| format!("quantum {}", rng.pick(&[100, 300, 600, 1514, 3000])));
    words.maybe(rng, 15, |rng| format!("memory_limit {}", rng.pick(&["20k", "50k", "1m"])));
    words.maybe(rng, 30, |rng| format!("ecn_prob {}", rng.pick(&[1, 5, 10, 50, 100])));
    words.text()
}

pub(super) fn gred(rng: &mut Rng, _: u64) -> String {
    let vqs = rng.range(1, 6);
    let mut words = Words::new();
    words.add(format!("setup vqs {vqs} default {}", rng.below(vqs)));
    words.maybe(rng, 50, |_| "grio".to_owned());
    words.maybe(rng, 50, |rng| format!("limit {}", rng.pick(&["20000", "60k", "9000", "200k"])));
    words.maybe(rng, 30, |_| "ecn".to_owned());
    words.maybe(rng, 10, |_| "harddrop".to_owned());
    words.text()
}

/// A virtual queue, which can be set up once the table is there.
pub(super) fn gred_queue(rng: &mut Rng, about: u64) -> String {
    let avpkt = *rng.pick(&[300, 500, 1000, 1500]);
    let (min, more) = (rng.log_range(1, 12), rng.log_range(1, 20));
    let mut words = Words::new();
    words.add(format!("vq {} limit {}", rng.below(4), rng.pick(&["20000", "60k", "9000"])));
    words.add(format!("min {} max {} avpkt {avpkt}", min * 1000, (min + more) * 1000));
    words.add(format!("burst {}", (min + 1) * 1000 / avpkt.min(1000) + rng.log_range(1, 20)));
    words.maybe(rng, 70, |rng| format!("probability {}", rng.pick(&["0.02", "0.1", "0.5", "1"])));
    words.maybe(rng, 80, |rng| format!("bandwidth {}", rate(rng, about)));
    words.maybe(rng, 60, |rng| format!("prio {}", rng.range(1, 10)));
    words.maybe(rng, 25, |_| "ecn".to_owned());
    words.maybe(rng, 10, |_| "harddrop".to_owned());
    words.text()
}

/// Sets up some virtual queues.
pub(super) fn grow_gred(world: &mut World, at: usize, handle: u16, _: u32) {
    let place = world.qdiscs[at].place.clone();
    for _ in 0..world.rng.range(0, 4) {
        let words = gred_queue(&mut world.rng, world.rate);
        world
            .script
            .push(format!("tc qdisc change dev link0 {place} handle {handle:x}: gred {words} || true"));
    }
}

pub(super) fn hhf(rng: &mut Rng, _: u64) -> String {
    let mut words = Words::new();
    words.maybe(rng, 50, |rng| format!("limit {}", rng.log_range(2, 300)));
    words.maybe(rng, 40, |rng| format!("quantum {}", rng.pick(&[256, 600, 1514, 3000])));
    words.maybe(rng, 30, |rng| format!("hh_limit {}", rng.log_range(1, 50)));
    words.maybe(rng, 50, |rng| format!("reset_timeout {}", time(rng, 1, 400)));
    words.maybe(rng, 60, |rng| format!("admit_bytes {}", rng.log_range(1000, 60_000)));
    words.maybe(rng, 50, |rng| format!("evict_timeout {}", time(rng, 1, 900)));
    words.maybe(rng, 30, |rng| format!("non_hh_weight {}", rng.range(1, 5)));
    words.text()
}

pub(super) fn skbprio(rng: &mut Rng, _: u64) -> String {
    if rng.chance(20) { String::new() } else { format!("limit {}", rng.log_range(1, 200)) }
}

fn percent(rng: &mut Rng) -> String {
    (*rng.pick(&["1%", "5%", "10%", "30%", "60%", "0.3%", "100%", "25%"])).to_owned()
}

fn correlated(rng: &mut Rng) -> String {
    let part = percent(rng);
    if rng.chance(35) { format!("{part} {}", percent(rng)) } else { part }
}

pub(super) fn netem(rng: &mut Rng, about: u64) -> String {
    let mut words = Words::new();
    words.maybe(rng, 50, |rng| format!("limit {}", rng.log_range(2, 300)));
    let delayed = rng.chance(75);
    if delayed {
        words.add(format!("delay {}", time(rng, 1, 120)));
        if rng.chance(55) {
            words.add(time(rng, 1, 60));
            words.maybe(rng, 40, percent);
            words.maybe(rng, 40, |rng| {
                format!("distribution {}", rng.pick(&["normal", "pareto", "paretonormal", "experimental"]))
            });
        }
    }
    let lossy = rng.chance(45);
    if lossy {
        words.add(match rng.below(4) {
            0 => format!("loss state {} {} {}", percent(rng), percent(rng), percent(rng)),
            1 => format!("loss gemodel {} {} {} {}", percent(rng), percent(rng), percent(rng), percent(rng)),
            _ => format!("loss {}", correlated(rng)),
        });
        words.maybe(rng, 30, |_| "ecn".to_owned());
    }
    words.maybe(rng, 12, |rng| format!("duplicate {}", correlated(rng)));
    if delayed && rng.chance(25) {
        words.add(format!("reorder {}", correlated(rng)));
        words.maybe(rng, 50, |rng| format!("gap {}", rng.range(1, 6)));
    }
    if rng.chance(35) {
        words.add(format!("rate {}", rate(rng, about)));
        words.maybe(rng, 40, |rng| {
            format!("{} {} {}", rng.pick(&[-14, 4, 18]), rng.pick(&[48, 53]), rng.pick(&[5, 0]))
        });
    }
    words.maybe(rng, 15, |rng| match rng.below(3) {
        0 => format!("slot distribution normal {} {}", time(rng, 1, 30), time(rng, 1, 10)),
        _ => {
            let least = rng.range(1, 20);
            format!("slot {least}ms {}ms packets {}", least + rng.below(20), rng.log_range(1, 20))
        }
    });
    words.text()
}

pub(super) fn grow_netem(world: &mut World, at: usize, handle: u16, depth: u32) {
    let id = format!("{handle:x}:1");
    world.qdiscs[at].classes.push(Class {
        id: id.clone(),
        parent: String::new(),
        words: String::new(),
        leaf: true,
    });
    world.below(&id, depth, 35);
}
