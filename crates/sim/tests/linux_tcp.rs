//! The simulator's TCP beside a real Linux 6.1 in virtual time: the same topology, rate, queue and flows.
//!
//! Host A, a router whose device has the queue, host B; 10 ms on each return hop. Recorded: acknowledged bytes, window,
//! smoothed round trip and retransmissions each 100 ms, and the router's drops.

// The recorded runs are files, and a variable asks for their series.
#![allow(clippy::disallowed_methods)]

mod common;

use std::fs;
use std::path::PathBuf;
use tidegate_packet::{Handle, Rate, Span, Time};
use tidegate_policy::{CodelParams, FifoParams, FqCodelParams, QdiscParams};
use tidegate_sim::{
    CongestionControl, DropTail, Ends, FlowSample, FlowSpec, GatewayMachine, Limit, LinkSpec, Machine, Net, Port,
};

/// HTB's default bucket at 10 Mbit/s.
const BURST: u32 = 1600;

struct Recorded {
    start: u64,
    seconds: u64,
    control: CongestionControl,
    name: String,
    /// ms, acknowledged bytes, window, round trip in µs, retransmissions.
    rows: Vec<[u64; 5]>,
}

fn load(dir: &str) -> (Vec<Recorded>, u64) {
    let dir = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(dir);
    let read = |name: &str| fs::read_to_string(dir.join(name)).expect("recorded data");
    let flows = read("flows")
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let control = if words[1] == "reno" { CongestionControl::Reno } else { CongestionControl::Cubic };
            let rows = read(&format!("{}.csv", words[3]))
                .lines()
                .skip(1)
                .map(|row| {
                    let cells: Vec<u64> = row.split(',').map(|cell| cell.parse().expect("number")).collect();
                    cells.try_into().expect("five columns")
                })
                .collect();
            let [start, seconds] = [words[0], words[2]].map(|word| word.parse().expect("seconds"));
            Recorded { start, seconds, control, name: words[3].to_string(), rows }
        })
        .collect();
    let stats = read("stats.txt");
    let dropped = stats.split("dropped ").last().and_then(|rest| rest.split(',').next()).expect("drops");
    (flows, dropped.parse().expect("number"))
}

/// HTB with one class of 10 Mbit/s and this qdisc in it.
fn policy_of(kind: &str, params: Option<QdiscParams>) -> GatewayMachine {
    let [root, class] = common::htb(Rate::bits(10_000_000));
    let leaf = common::qdisc(Handle::new(1, 1), Handle::new(0x10, 0), kind, params);
    common::machine(&[root, class, leaf])
}

/// HTB with one class of 10 Mbit/s and a pfifo in it, as `script.tc` says.
fn policy(limit: u32) -> GatewayMachine {
    policy_of("pfifo", Some(QdiscParams::Fifo(FifoParams { limit: Some(limit) })))
}

fn simulate(flows: &[Recorded], limit: u32) -> (Vec<Vec<FlowSample>>, u64) {
    run(policy(limit), flows, false)
}

fn run<M: Machine>(machine: M, flows: &[Recorded], ecn: bool) -> (Vec<Vec<FlowSample>>, u64) {
    let mut net = Net::new(machine, 1, Time(0));
    let port = net.link(LinkSpec::port(Port(0), None, Span(0)));
    let back = net.link(LinkSpec::wire(Span::millis(20)));
    let (forward, back) = (net.path(&[port]), net.path(&[back]));
    net.sample_every(Span::millis(100));
    let ids: Vec<_> = flows
        .iter()
        .enumerate()
        .map(|(i, flow)| {
            let ends = Ends::v4([10, 1, 0, 2], 40000 + i as u16, [10, 2, 0, 2], 5001);
            net.tcp(FlowSpec {
                control: flow.control,
                ecn,
                start: Time(0) + Span::secs(flow.start),
                stop: Time(0) + Span::secs(flow.start + flow.seconds),
                ..FlowSpec::bulk(ends, forward, back)
            })
        })
        .collect();
    net.run(Time(0) + Span::secs(32));
    (ids.iter().map(|&id| net.flow_samples(id).to_vec()).collect(), net.link_stats(port).dropped)
}

fn rows(samples: &[FlowSample]) -> Vec<[u64; 5]> {
    samples.iter().map(|s| [s.at.0 / 1_000_000, s.acked, s.cwnd.into(), s.srtt.0 / 1000, s.retransmissions]).collect()
}

/// Rate in bit/s over the rows, and mean smoothed round trip in µs.
fn summary(rows: &[[u64; 5]]) -> (f64, f64) {
    let last = rows[rows.len() - 1];
    let rate = (last[1] - rows[0][1]) as f64 * 8000.0 / (last[0] - rows[0][0]) as f64;
    (rate, rows.iter().map(|row| row[3] as f64).sum::<f64>() / rows.len() as f64)
}

/// Compares one run, rates within `share`; with TIDEGATE_SERIES set, prints both series.
fn compare(dir: &str, machine: GatewayMachine, ecn: bool, share: f64) -> Vec<String> {
    let (flows, drops) = load(dir);
    let (series, dropped) = run(machine, &flows, ecn);
    let verbose = std::env::var_os("TIDEGATE_SERIES").is_some();
    let mut wrong = Vec::new();
    let mut check = |what: String, is: f64, should: f64, tolerance: f64| {
        let off = is / should - 1.0;
        println!("{dir} {what}: {is:.1}, recorded {should:.1} ({:+.1} %)", off * 100.0);
        if off.abs() > tolerance {
            wrong.push(format!("{what}: {is:.1} for {should:.1}"));
        }
    };
    for (flow, samples) in flows.iter().zip(&series) {
        let rows = rows(samples);
        if verbose {
            for (a, b) in rows.iter().zip(&flow.rows) {
                println!("{} {a:?} recorded {b:?}", flow.name);
            }
        }
        let (is, should) = (summary(&rows), summary(&flow.rows));
        check(format!("{} rate", flow.name), is.0, should.0, share);
        check(format!("{} round trip", flow.name), is.1, should.1, 0.05);
    }
    check("drops".into(), dropped as f64, drops as f64, 0.15);
    wrong
}

#[test]
fn cubic_alone() {
    assert_eq!(compare("cubic-alone-pfifo50", policy(50), false, 0.05), Vec::<String>::new());
}

#[test]
fn reno_alone() {
    assert_eq!(compare("reno-alone-pfifo50", policy(50), false, 0.05), Vec::<String>::new());
}

/// Three flows in one queue are chaotic: when a flow begins a second later, real Linux shares the link quite differently (a
/// factor of two for the last flow). So one run is compared in what is not chaotic, and nine runs with shifted starts in the
/// mean of each flow's share.
#[test]
fn three_flows() {
    let (flows, drops) = load("pfifo100");
    let (series, dropped) = simulate(&flows, 100);
    let mut wrong = Vec::new();
    let mut check = |what: &str, is: f64, should: f64, tolerance: f64| {
        let off = is / should - 1.0;
        println!("pfifo100 {what}: {is:.1}, recorded {should:.1} ({:+.1} %)", off * 100.0);
        if off.abs() > tolerance {
            wrong.push(format!("{what}: {is:.1} for {should:.1}"));
        }
    };
    let (mut is, mut should) = (0, 0);
    for (flow, samples) in flows.iter().zip(&series) {
        let (rows, recorded) = (rows(samples), &flow.rows);
        check(&format!("{} round trip", flow.name), summary(&rows).1, summary(recorded).1, 0.05);
        is += rows[rows.len() - 1][1];
        should += recorded[recorded.len() - 1][1];
    }
    check("bytes in all", is as f64, should as f64, 0.05);
    check("drops", dropped as f64, drops as f64, 0.15);

    let table = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/pfifo100-shifted.csv"))
        .expect("recorded data");
    let (mut is, mut should) = ([0.0; 7], [0.0; 7]);
    for line in table.lines().skip(1) {
        let cells: Vec<f64> = line.split(',').map(|cell| cell.parse().expect("number")).collect();
        let mut shifted = load("pfifo100").0;
        shifted[1].start = cells[0] as u64;
        shifted[1].seconds = 30 - shifted[1].start;
        shifted[2].start = cells[1] as u64;
        shifted[2].seconds = 25 - shifted[2].start;
        let (series, dropped) = simulate(&shifted, 100);
        is[0] += dropped as f64;
        for (i, samples) in series.iter().enumerate() {
            let rows = rows(samples);
            is[1 + 2 * i] += rows[rows.len() - 1][1] as f64;
            is[2 + 2 * i] += summary(&rows).1;
        }
        for (sum, cell) in should.iter_mut().zip(&cells[2..]) {
            *sum += cell;
        }
    }
    let names = ["drops", "cubic1 bytes", "cubic1 trip", "reno1 bytes", "reno1 trip", "cubic2 bytes", "cubic2 trip"];
    let tolerances = [0.15, 0.05, 0.05, 0.05, 0.05, 0.05, 0.05];
    for (i, name) in names.iter().enumerate() {
        check(&format!("nine runs: {name}"), is[i] / 9.0, should[i] / 9.0, tolerances[i]);
    }
    assert_eq!(wrong, Vec::<String>::new());
}

/// The test's own token bucket and the engine's HTB are the same thing to a sender, to the byte and the nanosecond.
#[test]
fn engine_and_yardstick_agree() {
    let (flows, _) = load("pfifo100");
    let yardstick = DropTail::shaped(Limit::Packets(100), Rate::bits(10_000_000), BURST);
    assert!(simulate(&flows, 100) == run(yardstick, &flows, false));
}

/// Beyond what the thin simulator promises, but a queue that drops by time is the harder test.
#[test]
fn fq_codel() {
    let params = FqCodelParams { ecn: Some(false), ..FqCodelParams::default() };
    let machine = policy_of("fq_codel", Some(QdiscParams::FqCodel(params)));
    assert_eq!(compare("fq_codel", machine, false, 0.05), Vec::<String>::new());
}

/// Without fair queueing the shares of one run are chaotic, so they get a wider band.
#[test]
fn codel_ecn() {
    let params = CodelParams { ecn: Some(true), ..CodelParams::default() };
    let machine = policy_of("codel", Some(QdiscParams::Codel(params)));
    assert_eq!(compare("codel-ecn", machine, true, 0.15), Vec::<String>::new());
}
