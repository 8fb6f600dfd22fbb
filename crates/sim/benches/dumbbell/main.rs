//! Simulated bottleneck packets per CPU-second on the reference dumbbell, alone and beside other simulators.
//!
//! `cargo bench -p tidegate-sim --bench dumbbell [-- MBIT [SECONDS]]`: every queue and number of flows.
//! `cargo bench -p tidegate-sim --bench dumbbell -- --peers`: ns-3 and ns-2 (Debian: libns3-dev, ns2), in
//! turns with tidegate. `cargo bench -p tidegate-sim --bench dumbbell -- --memory`: resident memory after 30
//! s and after 300 s.

// A benchmark is the one place here that looks at a clock and starts programs.
#![allow(clippy::disallowed_methods, clippy::disallowed_types)]

mod peer;

use tidegate_gateway::{DeviceSpec, Gateway, GatewayContext};
use tidegate_packet::{Handle, Nanos, Pool, Seeded, Time};
use tidegate_policy::{Op, QdiscOp, SharedBlocks, Verb};
use tidegate_sim::{
    CongestionControl, Dumbbell, DumbbellSpec, EcnCodepoint, Forwarder, GatewayMachine, Limit, Net, dumbbell,
};

/// What precedes the bottleneck, and what the flows do.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    /// The qdisc of the machine, or `None`: the link's own queue of 1000 packets.
    qdisc: Option<&'static str>,
    control: CongestionControl,
}

const CASES: [Case; 6] = [
    Case { name: "pfifo link, reno", qdisc: None, control: CongestionControl::Reno },
    Case { name: "pfifo link", qdisc: None, control: CongestionControl::Cubic },
    Case { name: "engine pfifo", qdisc: Some("pfifo"), control: CongestionControl::Cubic },
    Case { name: "engine fq_codel", qdisc: Some("fq_codel"), control: CongestionControl::Cubic },
    Case { name: "engine codel", qdisc: Some("codel"), control: CongestionControl::Cubic },
    Case { name: "fq_codel, bbr", qdisc: Some("fq_codel"), control: CongestionControl::Bbr },
];

/// What a run took.
#[derive(Clone, Copy)]
struct Cost {
    packets: u64,
    events: u64,
    cpu: f64,
}

impl Cost {
    fn per_second(&self) -> f64 {
        self.packets as f64 / self.cpu
    }
}

fn net(case: Case, mbit: u64, flows: u32, end: Time) -> (Net<GatewayMachine>, Dumbbell) {
    let queue = if case.qdisc.is_none() { Some(Limit::Packets(1000)) } else { None };
    let bits_per_second = mbit * 1_000_000;
    let jitter = Nanos::micros(50);
    let spec = DumbbellSpec {
        bits_per_second,
        flows,
        control: case.control,
        ecn: EcnCodepoint::Off,
        jitter,
        queue,
        end,
    };
    let mut net = Net::new(engine(case.qdisc.unwrap_or("pfifo")), 1, Time(0));
    let dumbbell = dumbbell(&mut net, &spec);
    (net, dumbbell)
}

fn run<M: Forwarder>(net: &mut Net<M>, bottleneck: &Dumbbell, end: Time) -> Cost {
    let (packets, events, before) = (net.link_stats(bottleneck.bottleneck).sent, net.events(), cpu_seconds());
    net.run(end);
    let cpu = cpu_seconds() - before;
    Cost { packets: net.link_stats(bottleneck.bottleneck).sent - packets, events: net.events() - events, cpu }
}

fn table(case: Case, mbit: u64, flows: u32, secs: u64) {
    let end = Time(0) + Nanos::secs(secs);
    let (mut net, d) = net(case, mbit, flows, end);
    let cost = run(&mut net, &d, end);
    let rates: Vec<f64> =
        d.flows.iter().map(|&f| net.flow_stats(f).acked as f64 * 8.0 / 1e6 / secs as f64).collect();
    let total: f64 = rates.iter().sum();
    let late = net.echoes(d.ping).iter().filter(|echo| echo.sent.0 > 5_000_000_000);
    let mut trips: Vec<f64> = late.filter_map(|echo| echo.rtt).map(|rtt| rtt.0 as f64 / 1e6).collect();
    trips.sort_by(f64::total_cmp);
    let mean = trips.iter().sum::<f64>() / trips.len().max(1) as f64;
    let p95 = trips.get(trips.len() * 95 / 100).copied().unwrap_or(f64::NAN);
    println!(
        "{:16} {mbit:4} Mbit/s {flows:3} flows: TCP {total:7.3} Mbit/s, Jain {:.4}, ping \
        {mean:7.1}/{p95:7.1} ms, drops {:5} | {:5.2} M packets/s, {:5.1} M events/s, {:.3} s",
        case.name,
        tidegate_measure::jain(&rates),
        net.link_stats(d.bottleneck).dropped,
        cost.per_second() / 1e6,
        cost.events as f64 / cost.cpu / 1e6,
        cost.cpu
    );
}

/// Seconds this thread has been on a processor: other work on the machine does not count.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1e9
}

/// A machine whose one device has this qdisc with its defaults.
fn engine(kind: &str) -> GatewayMachine {
    let mut gateway = Gateway::new();
    let device = gateway.add_device("wan0", DeviceSpec::default());
    let op = Op::Qdisc(QdiscOp {
        verb: Verb::Add,
        dev: "wan0".into(),
        parent: Handle::ROOT,
        handle: Handle::NONE,
        kind: Some(kind.into()),
        params: None,
        stab: None,
        estimator: None,
        blocks: SharedBlocks::default(),
    });
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    let world = GatewayContext { now: Time(0), pool: &mut pool, random: &mut draws };
    if let Err(error) = gateway.apply(world, &op) {
        eprintln!("{kind}: {error:?}");
    }
    GatewayMachine::new(gateway, [device], 1)
}

/// Resident memory in KiB.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|rest| rest.split_whitespace().next()).and_then(|kib| kib.parse().ok()).unwrap_or(0)
}

/// Is memory flat over simulated time?
fn memory() {
    for flows in [4, 100] {
        let (early, late) = (Time(0) + Nanos::secs(30), Time(0) + Nanos::secs(300));
        let (mut net, d) = net(CASES[3], 100, flows, late);
        run(&mut net, &d, early);
        let before = resident();
        run(&mut net, &d, late);
        println!(
            "fq_codel, 100 Mbit/s, {flows} flows: {before} KiB after 30 s, {} KiB after 300 s",
            resident()
        );
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if words.iter().any(|word| word == "--peers") {
        return peer::compare();
    }
    if words.iter().any(|word| word == "--memory") {
        return memory();
    }
    let mut numbers = words.iter().filter_map(|word| word.parse::<u64>().ok());
    let only = numbers.next();
    let secs = numbers.next().unwrap_or(30);
    for mbit in [10, 100].into_iter().filter(|&mbit| only.is_none_or(|only| only == mbit)) {
        for flows in [4, 20, 100] {
            for case in CASES {
                table(case, mbit, flows, secs);
            }
        }
    }
}
