//! What is late and not lost, beside a real Linux: the path's delay jumps, acknowledgements are missing for a
//! while, some packets come behind others. A retransmission was needless then, and the window comes back (RFC
//! 4015, RFC 5682, RFC 3708).
//!
//! `data/late.csv` is what the oracle's Linux answered: when all was acknowledged, retransmissions, timeouts
//! and the last window of one transfer over a path of 50 ms with a token bucket of 50 Mbit/s. Where `by_ms`
//! is not nought, packets take so much longer from `jump_ms` on; acknowledgements are lost between the two
//! times; the packets numbered in `late` take `late_by_ms` longer.

use tidegate_packet::{Nanos, Pkt, Pool, Rate, Time};
use tidegate_sim::{
    CongestionControl, DropTail, Ends, FlowSpec, Forwarder, Limit, LinkSpec, Net, OfferResult, Origin, Port,
};

const ENDS: Ends = Ends::v4([10, 1, 0, 2], 40000, [10, 2, 0, 2], 5001);
/// When the oracle's flow began, on the clock of the timer wheel (`tcp_models.rs`, `WHEEL`).
const START: Time = Time(304_000_000);
/// The port that data leave by; the other is the acknowledgements'.
const FORTH: Port = Port(0);
const BACK: Port = Port(1);

/// The trouble of one row.
#[derive(Debug)]
struct Path {
    bucket: DropTail,
    waiting: Vec<(Time, Pkt)>,
    back: Vec<Pkt>,
    seen: u64,
    jump: Time,
    by: Nanos,
    silent: (Time, Time),
    late: Vec<u64>,
    late_by: Nanos,
}

impl Forwarder for Path {
    fn offer(&mut self, pool: &mut Pool, now: Time, port: Port, _: Origin, pkt: Pkt) -> OfferResult {
        if port == BACK {
            if self.silent.0 <= now && now < self.silent.1 {
                pool.release(pkt);
                return OfferResult::Dropped;
            }
            self.back.push(pkt);
            return OfferResult::Queued;
        }
        self.seen += 1;
        let late = if self.late.contains(&self.seen) { self.late_by } else { Nanos(0) };
        let jump = if now >= self.jump { self.by } else { Nanos(0) };
        let due = now + late + jump;
        let at = self.waiting.partition_point(|known| known.0 <= due);
        self.waiting.insert(at, (due, pkt));
        OfferResult::Queued
    }
    fn poll(&mut self, pool: &mut Pool, now: Time, port: Port) -> Option<Pkt> {
        if port == BACK {
            return (!self.back.is_empty()).then(|| self.back.remove(0));
        }
        while self.waiting.first().is_some_and(|first| first.0 <= now) {
            self.bucket.offer(pool, now, port, Origin::Outside, self.waiting.remove(0).1);
        }
        self.bucket.poll(pool, now, port)
    }
    fn timeout(&mut self, port: Port) -> Option<Time> {
        let due = self.waiting.first().map(|first| first.0);
        due.into_iter().chain(self.bucket.timeout(port)).min().filter(|_| port == FORTH)
    }
}

/// Microseconds until all was acknowledged, retransmissions, timeouts, the last window.
type Seen = (u64, u64, u64, u64);

fn run(row: &[&str]) -> Seen {
    let number = |at: usize| row[at].parse::<u64>().expect("a number");
    let at = |column: usize| START + Nanos::millis(number(column));
    let path = Path {
        bucket: DropTail::shaped(Limit::None, Rate::bits(50_000_000), 1600),
        waiting: Vec::new(),
        back: Vec::new(),
        seen: 0,
        jump: at(2),
        by: Nanos::millis(number(3)),
        silent: (at(4), at(5)),
        late: row[6].split_whitespace().map(|number| number.parse().expect("a number")).collect(),
        late_by: Nanos::millis(number(7)),
    };
    let mut net = Net::new(path, 1, Time(0));
    let out = net.link(LinkSpec::port(FORTH, None, Nanos(0)));
    let back = [
        net.link(LinkSpec::wire(Nanos::millis(25))),
        net.link(LinkSpec::port(BACK, None, Nanos::millis(25))),
    ];
    let (forward, back) = (net.path(&[out]), net.path(&back));
    net.sample_every(Nanos::millis(10));
    let control = if row[0] == "reno" { CongestionControl::Reno } else { CongestionControl::Cubic };
    let bytes = Some(number(1) * 1448);
    let flow = net.tcp(FlowSpec { control, start: START, bytes, ..FlowSpec::bulk(ENDS, forward, back) });
    net.run(START + Nanos::secs(6));
    let stats = net.flow_stats(flow);
    let done = stats.finished.map_or(0, |at| at.since(START).0 / 1000);
    let window = net.flow_samples(flow).last().map_or(0, |sample| sample.cwnd.into());
    (done, stats.retransmissions, stats.timeouts, window)
}

/// Times within 1 % and windows within 2 %: who acknowledges every segment and for how long is a matter of
/// the receiver's memory. Retransmissions and timeouts are the same.
#[test]
fn late_beside_linux() {
    let mut wrong = Vec::new();
    for line in include_str!("../data/late.csv").lines().skip(1) {
        let row: Vec<&str> = line.split(',').collect();
        let number = |at: usize| row[at].parse::<u64>().expect("a number");
        let (expected, found) = ((number(8), number(9), number(10), number(11)), run(&row));
        let near =
            |found: u64, expected: u64, percent: u64| found.abs_diff(expected) * 100 <= expected * percent;
        let same = (found.1, found.2) == (expected.1, expected.2);
        if !(same && near(found.0, expected.0, 1) && near(found.3, expected.3, 2)) {
            wrong.push(format!("{}: {found:?}, Linux {expected:?}", row[..8].join(",")));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
