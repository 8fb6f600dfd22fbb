//! The words of the kinds that drop early: red, choke, sfb, pie, and sfq's random early detection.

use super::kinds::{Words, rate, time};
use crate::oracle_fuzz::rng::Rng;

/// Thresholds and a burst that fits them, in packets of `avpkt`.
fn thresholds(rng: &mut Rng, words: &mut Words, avpkt: u64, unit: u64) {
    let min = rng.log_range(1, 20);
    let max = min + rng.log_range(1, 40);
    if rng.chance(80) {
        words.add(format!("min {} max {}", min * unit + rng.below(unit), max * unit));
        let packets = (min + 1) * unit.max(avpkt) / avpkt;
        words.maybe(rng, 85, |rng| format!("burst {}", packets + rng.log_range(1, 30)));
    }
    words.maybe(rng, 70, |rng| {
        format!("probability {}", rng.pick(&["0.02", "0.1", "0.5", "0.9", "1", "2", "0.003"]))
    });
}

pub(super) fn red(rng: &mut Rng, about: u64) -> String {
    let avpkt = *rng.pick(&[300, 500, 1000, 1000, 1500]);
    let mut words = Words::new();
    words.add(format!("limit {} avpkt {avpkt}", rng.pick(&["20000", "60000", "60k", "200k", "9000"])));
    thresholds(rng, &mut words, avpkt, 1000);
    words.maybe(rng, 75, |rng| format!("bandwidth {}", rate(rng, about)));
    words.maybe(rng, 55, |_| "ecn".to_owned());
    words.maybe(rng, 20, |_| "harddrop".to_owned());
    words.maybe(rng, 20, |_| "adaptive".to_owned());
    words.maybe(rng, 12, |_| "nodrop".to_owned());
    words.text()
}

pub(super) fn choke(rng: &mut Rng, about: u64) -> String {
    let mut words = Words::new();
    words.add(format!("limit {} bandwidth {}", rng.pick(&[20, 64, 100, 127, 300]), rate(rng, about)));
    let avpkt = *rng.pick(&[300, 1000, 1500]);
    words.add(format!("avpkt {avpkt}"));
    thresholds(rng, &mut words, 1, 1);
    words.maybe(rng, 40, |_| "ecn".to_owned());
    words.text()
}

pub(super) fn sfb(rng: &mut Rng, _: u64) -> String {
    let mut words = Words::new();
    words.maybe(rng, 30, |rng| format!("rehash {}", rng.pick(&[0, 5, 100, 700, 5000])));
    words.maybe(rng, 30, |rng| format!("db {}", rng.pick(&[0, 3, 60, 400, 5000])));
    words.maybe(rng, 50, |rng| format!("limit {}", rng.log_range(1, 300)));
    words.maybe(rng, 60, |rng| format!("max {}", rng.log_range(2, 40)));
    words.maybe(rng, 60, |rng| format!("target {}", rng.log_range(1, 20)));
    words.maybe(rng, 70, |rng| format!("increment {}", rng.pick(&["0.0005", "0.01", "0.1", "0.4", "1"])));
    words.maybe(rng, 50, |rng| format!("decrement {}", rng.pick(&["0.00005", "0.001", "0.05", "0"])));
    words.maybe(rng, 40, |rng| format!("penalty_rate {}", rng.pick(&[0, 1, 10, 100, 1500])));
    words.maybe(rng, 40, |rng| format!("penalty_burst {}", rng.pick(&[0, 1, 3, 20])));
    words.text()
}

pub(super) fn pie(rng: &mut Rng, _: u64) -> String {
    let mut words = Words::new();
    words.maybe(rng, 60, |rng| format!("limit {}", rng.log_range(2, 400)));
    words.maybe(rng, 60, |rng| format!("target {}", time(rng, 1, 60)));
    words.maybe(rng, 60, |rng| format!("tupdate {}", time(rng, 1, 100)));
    words.maybe(rng, 40, |rng| format!("alpha {}", rng.below(33)));
    words.maybe(rng, 40, |rng| format!("beta {}", rng.below(33)));
    words.maybe(rng, 50, |rng| (*rng.pick(&["ecn", "ecn", "noecn"])).to_owned());
    words.maybe(rng, 30, |rng| (*rng.pick(&["bytemode", "bytemode", "nobytemode"])).to_owned());
    words.maybe(rng, 25, |rng| {
        (*rng.pick(&["dq_rate_estimator", "dq_rate_estimator", "no_dq_rate_estimator"])).to_owned()
    });
    words.text()
}

/// Random early detection in the flows of sfq.
pub(super) fn sfq_red(rng: &mut Rng) -> String {
    let avpkt = *rng.pick(&[300, 500, 1000, 1500]);
    let mut words = Words::new();
    words.add(format!("redflowlimit {} avpkt {avpkt}", rng.pick(&["100000", "64000", "200000"])));
    thresholds(rng, &mut words, avpkt, 1000);
    words.maybe(rng, 50, |_| "ecn".to_owned());
    words.maybe(rng, 20, |_| "harddrop".to_owned());
    words.text()
}

pub(super) fn dualpi2(rng: &mut Rng, _: u64) -> String {
    let mut words = Words::new();
    words.maybe(rng, 35, |rng| format!("limit {}", rng.log_range(2, 400)));
    words.maybe(rng, 15, |rng| format!("memlimit {}", rng.log_range(3000, 400_000)));
    words.maybe(rng, 35, |rng| format!("target {}", time(rng, 1, 60)));
    words.maybe(rng, 40, |rng| format!("tupdate {}", time(rng, 1, 100)));
    words.maybe(rng, 30, |rng| format!("alpha {}", rng.pick(&["0.05", "0.16", "0.7", "2", "0.004"])));
    words.maybe(rng, 30, |rng| format!("beta {}", rng.pick(&["0.1", "1", "3.2", "8", "30"])));
    words.maybe(rng, 35, |rng| {
        if rng.chance(40) {
            format!("step_thresh {}p", rng.range(1, 40))
        } else {
            format!("step_thresh {}", time(rng, 1, 30))
        }
    });
    words.maybe(rng, 25, |rng| format!("min_qlen_step {}", rng.range(0, 12)));
    words.maybe(rng, 35, |rng| format!("coupling_factor {}", rng.pick(&[1, 2, 3, 8, 50, 255])));
    words.maybe(rng, 40, |rng| (*rng.pick(&["overflow", "overflow", "drop_on_overload"])).to_owned());
    words.maybe(rng, 40, |rng| (*rng.pick(&["drop_enqueue", "drop_enqueue", "drop_dequeue"])).to_owned());
    words.maybe(rng, 40, |rng| format!("classic_protection {}", rng.pick(&[0, 1, 10, 25, 50, 90, 100])));
    words.maybe(rng, 35, |rng| (*rng.pick(&["any_ect", "any_ect", "l4s_ect"])).to_owned());
    words.maybe(rng, 20, |rng| (*rng.pick(&["no_split_gso", "split_gso"])).to_owned());
    words.text()
}
