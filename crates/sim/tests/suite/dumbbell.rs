//! The reference dumbbell beside ns-3 and beside real Linux: n CUBIC flows and a ping through one bottleneck,
//! for 30 s.
//!
//! `data/dumbbell.csv`: ns-3 3.37 on the same topology, and a real Linux 6.1 (the oracle) with HTB in the
//! place of the bottleneck's device and 20 ms on each return hop. Where both are known and differ, Linux
//! decides.

// The recorded runs are files.
#![allow(clippy::disallowed_methods)]

use crate::common;

use common::Row;
use std::fs;
use tidegate_measure::{Durations, jain};
use tidegate_packet::{Handle, Nanos, Rate, Time};
use tidegate_policy::{FifoParams, QdiscParams};
use tidegate_sim::{
    CongestionControl, DumbbellSpec, EcnCodepoint, Ends, FlowSpec, GatewayMachine, LinkSpec, Net, Port,
    dumbbell,
};

/// What counts as the same.
const SAME: f64 = 0.05;

/// One line of the table.
struct Known {
    who: String,
    mbit: u64,
    flows: u32,
    queue: String,
    /// Mbit/s of all flows, Jain's index of their shares, mean and 95th percentile of the ping in ms, drops.
    figures: [f64; 5],
}

fn table() -> Vec<Known> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/dumbbell.csv");
    let known = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        // `-`: not measured.
        let number =
            |at: usize| if cells[at] == "-" { f64::NAN } else { cells[at].parse().expect("a number") };
        Known {
            who: cells[0].to_owned(),
            mbit: number(1) as u64,
            flows: number(2) as u32,
            queue: cells[3].to_owned(),
            figures: [4, 5, 6, 7, 8].map(number),
        }
    };
    fs::read_to_string(path).expect("recorded data").lines().skip(1).map(known).collect()
}

fn machine(queue: &str) -> GatewayMachine {
    let params = (queue == "pfifo").then_some(QdiscParams::Fifo(FifoParams { limit: Some(1000) }));
    common::machine(&[common::qdisc(Handle::ROOT, Handle::new(1, 0), queue, params)])
}

fn run(known: &Known) -> [f64; 5] {
    let end = Time(0) + Nanos::secs(30);
    let spec = DumbbellSpec {
        bits_per_second: known.mbit * 1_000_000,
        flows: known.flows,
        control: CongestionControl::Cubic,
        ecn: EcnCodepoint::Off,
        jitter: Nanos::micros(50),
        queue: None,
        end,
    };
    let mut net = Net::new(machine(&known.queue), 1, Time(0));
    let d = dumbbell(&mut net, &spec);
    net.run(end);
    let shares: Vec<f64> =
        d.flows.iter().map(|&flow| net.flow_stats(flow).acked as f64 * 8e-6 / 30.0).collect();
    let late = net.echoes(d.ping).iter().filter(|echo| echo.sent > Time(0) + Nanos::secs(5));
    let trips = Durations::new(late.filter_map(|echo| echo.rtt).map(|rtt| rtt.0).collect());
    let ms = |ns: Option<u64>| ns.map_or(f64::NAN, |ns| ns as f64 / 1e6);
    let drops = net.link_stats(d.bottleneck).dropped as f64;
    [shares.iter().sum(), jain(&shares), ms(trips.mean()), ms(trips.percentile(95.0)), drops]
}

/// Drops are reported, not compared. Shares of many flows in one queue differ from run to run. With 100 flows
/// in 1024 queues it is chance whether the ping shares its queue with a flow: in ns-3's run it does, and in
/// one of Linux (53 ms in the mean), here it does not.
fn is_compared(known: &Known, figure: usize) -> bool {
    let shared = known.queue == "fq_codel" && known.mbit == 10 && known.flows == 100;
    match figure {
        0 => true,
        1 => known.queue == "fq_codel" || known.flows < 20,
        2 | 3 => !shared,
        _ => false,
    }
}

#[test]
fn reference_dumbbell() {
    let table = table();
    let mut wrong = Vec::new();
    for known in table.iter().filter(|known| known.who == "ns-3.37") {
        let same = |other: &&Known| {
            other.who != known.who
                && (other.mbit, other.flows, &other.queue) == (known.mbit, known.flows, &known.queue)
        };
        let linux = table.iter().find(same);
        let expected =
            |at: usize| match linux.map(|linux| linux.figures[at]).filter(|figure| !figure.is_nan()) {
                Some(figure) => (figure, "real Linux 6.1, HTB in the device's place"),
                None => (known.figures[at], "ns-3 3.37"),
            };
        let found = run(known);
        let name = format!("{}-{}-{}", known.mbit, known.flows, known.queue);
        let whats = ["TCP in all, Mbit/s", "Jain's index", "ping, mean, ms", "ping, p95, ms", "drops"];
        for (at, what) in whats.iter().enumerate() {
            let (expected, source) = expected(at);
            let row = Row { group: "The reference dumbbell", source };
            let beside = if linux.is_some() {
                format!("{what} (ns-3: {})", known.figures[at])
            } else {
                (*what).into()
            };
            let gate = is_compared(known, at).then_some(SAME);
            wrong.extend(row.near(&name, &beside, expected, found[at], SAME, gate));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// Many flows through fq_codel at 10 Mbit/s, each with a window of one or two segments and one in three of
/// them sent again: seven seconds beside real Linux.
#[test]
fn starved_flows_beside_linux() {
    // Flows; Mbit/s acknowledged, Jain's index, segments sent again, mean window and mean smoothed round trip
    // from 2 s on.
    let recorded = [(50, [9.302, 0.9859, 2405.0, 2.03, 88.6]), (100, [9.307, 0.9522, 3684.0, 1.62, 103.7])];
    let row =
        Row { group: "Real Linux TCP", source: "oracle: n CUBIC flows, HTB 10 Mbit/s, fq_codel, 40 ms" };
    let mut wrong = Vec::new();
    for (flows, expected) in recorded {
        let found = starved(flows);
        let figures = [
            ("TCP in all, Mbit/s", 0.05),
            ("Jain's index", 0.05),
            ("segments sent again", 0.1),
            ("window, mean", 0.1),
            ("round trip, mean, ms", 0.1),
        ];
        for (at, (what, band)) in figures.into_iter().enumerate() {
            wrong.extend(row.near(
                &format!("starved-{flows}"),
                what,
                expected[at],
                found[at],
                band,
                Some(band),
            ));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}

fn starved(flows: u16) -> [f64; 5] {
    let [root, class] = common::htb(Rate::bits(10_000_000));
    let leaf = common::qdisc(Handle::new(1, 1), Handle::new(0x10, 0), "fq_codel", None);
    let mut net = Net::new(common::machine(&[root, class, leaf]), 1, Time(0));
    net.sample_every(Nanos::millis(100));
    let port = net.link(LinkSpec::port(Port(0), None, Nanos(0)));
    let back = net.link(LinkSpec::wire(Nanos::millis(40)));
    let (forward, back) = (net.path(&[port]), net.path(&[back]));
    let flow = |i: u16| FlowSpec {
        start: Time(0) + Nanos::millis(100 + 10 * u64::from(i)),
        ..FlowSpec::bulk(Ends::v4([10, 1, 0, 2], 40_000 + i, [10, 2, 0, 2], 5001), forward, back)
    };
    let ids: Vec<_> = (0..flows).map(|i| net.tcp(flow(i))).collect();
    net.run(Time(0) + Nanos::secs(7));
    let shares: Vec<f64> = ids.iter().map(|&id| net.flow_stats(id).acked as f64 * 8e-6 / 7.0).collect();
    let again: u64 = ids.iter().map(|&id| net.flow_stats(id).retransmissions).sum();
    let late: Vec<_> = ids.iter().flat_map(|&id| net.flow_samples(id).iter().skip(20)).collect();
    let mean = |of: &dyn Fn(usize) -> f64| (0..late.len()).map(of).sum::<f64>() / late.len() as f64;
    let (window, trip) = (mean(&|at| f64::from(late[at].cwnd)), mean(&|at| late[at].srtt.0 as f64 / 1e6));
    [shares.iter().sum(), jain(&shares), again as f64, window, trip]
}
