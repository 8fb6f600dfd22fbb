//! The simulator's TCP beside a real Linux 6.1 in virtual time: the same topology, rate, queue and flows.
//!
//! Host A, a router whose device has the queue, host B; 10 ms on each return hop. Recorded: acknowledged bytes, window,
//! smoothed round trip and retransmissions each 100 ms, and the router's drops.

use std::fs;
use std::path::PathBuf;
use tidegate_packet::{Rate, Span, Time};
use tidegate_sim::{CongestionControl, DropTail, Ends, FlowSample, FlowSpec, Limit, LinkSpec, Net, Port};

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

fn simulate(flows: &[Recorded], limit: u32) -> (Vec<Vec<FlowSample>>, u64) {
    let machine = DropTail::shaped(Limit::Packets(limit), Rate::bits(10_000_000), BURST);
    let mut net = Net::new(machine, 1, Time(0));
    let port = net.link(LinkSpec::port(Port(0), None, Span(0)));
    let back = net.link(LinkSpec::wire(Span::millis(20)));
    let (forward, back) = (net.path(&[port]), net.path(&[back]));
    net.sample_every(Span::millis(100));
    let ids: Vec<_> = flows
        .iter()
        .enumerate()
        .map(|(i, flow)| {
            let ends = Ends { src: [10, 1, 0, 2], dst: [10, 2, 0, 2], sport: 40000 + i as u16, dport: 5001 };
            net.tcp(FlowSpec {
                control: flow.control,
                start: Time(0) + Span::secs(flow.start),
                stop: Time(0) + Span::secs(flow.start + flow.seconds),
                ..FlowSpec::bulk(ends, forward, back)
            })
        })
        .collect();
    net.run(Time(0) + Span::secs(32));
    (ids.iter().map(|&id| net.flow_samples(id).to_vec()).collect(), net.machine.dropped)
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

/// Compares one run; `verbose` prints both series.
fn compare(dir: &str, limit: u32) -> Vec<String> {
    let (flows, drops) = load(dir);
    let (series, dropped) = simulate(&flows, limit);
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
        check(format!("{} rate", flow.name), is.0, should.0, 0.05);
        check(format!("{} round trip", flow.name), is.1, should.1, 0.05);
    }
    check("drops".into(), dropped as f64, drops as f64, 0.15);
    wrong
}

#[test]
fn cubic_alone() {
    assert_eq!(compare("cubic-alone-pfifo50", 50), Vec::<String>::new());
}

#[test]
fn reno_alone() {
    assert_eq!(compare("reno-alone-pfifo50", 50), Vec::<String>::new());
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
