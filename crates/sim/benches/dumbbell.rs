//! Simulated bottleneck packets per CPU-second on the reference dumbbell.
//!
//! `cargo bench -p tidegate-sim --bench dumbbell [-- MBIT [SECONDS]]`

// A benchmark is the one place here that looks at a clock.
#![allow(clippy::disallowed_methods)]

use tidegate_gateway::{DeviceSpec, Gateway, World};
use tidegate_packet::{Handle, Pool, Seeded, Span, Time};
use tidegate_policy::{Op, QdiscOp, Verb};
use tidegate_sim::{CongestionControl, DropTail, DumbbellSpec, GatewayMachine, Limit, Machine, Net, dumbbell};

fn run<M: Machine>(
    name: &str,
    machine: M,
    queue: Option<Limit>,
    mbit: u64,
    flows: u32,
    control: CongestionControl,
    secs: u64,
) {
    let end = Time(0) + Span::secs(secs);
    let spec = DumbbellSpec {
        bits_per_second: mbit * 1_000_000,
        flows,
        control,
        ecn: false,
        jitter: Span::micros(50),
        queue,
        end,
    };
    let mut net = Net::new(machine, 1, Time(0));
    let d = dumbbell(&mut net, &spec);
    let before = cpu_seconds();
    net.run(end);
    let cpu = cpu_seconds() - before;
    let stats = net.link_stats(d.bottleneck);
    let rates: Vec<f64> = d.flows.iter().map(|&f| net.flow_stats(f).acked as f64 * 8.0 / 1e6 / secs as f64).collect();
    let total: f64 = rates.iter().sum();
    let jain = total * total / (rates.len() as f64 * rates.iter().map(|r| r * r).sum::<f64>());
    let mut rtts: Vec<f64> = net
        .echoes(d.ping)
        .iter()
        .filter(|e| e.sent.0 > 5_000_000_000)
        .filter_map(|e| e.rtt)
        .map(|rtt| rtt.0 as f64 / 1e6)
        .collect();
    rtts.sort_by(f64::total_cmp);
    let mean = rtts.iter().sum::<f64>() / rtts.len().max(1) as f64;
    let p95 = rtts.get(rtts.len() * 95 / 100).copied().unwrap_or(f64::NAN);
    println!(
        "{name:16} {mbit:4} Mbit/s {flows:3} flows: TCP {total:7.3} Mbit/s, Jain {jain:.4}, ping {mean:7.1}/{p95:7.1} ms, \
         drops {:5} | {:5.2} M packets/s, {:5.1} M events/s, {:.3} s",
        stats.dropped,
        stats.sent as f64 / cpu / 1e6,
        net.events() as f64 / cpu / 1e6,
        cpu
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
    });
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    let world = World { now: Time(0), pool: &mut pool, draws: &mut draws };
    if let Err(error) = gateway.apply(world, &op) {
        eprintln!("{kind}: {error:?}");
    }
    GatewayMachine::new(gateway, [device], 1)
}

fn main() {
    let mut args = std::env::args().skip(1).filter_map(|word| word.parse::<u64>().ok());
    let only = args.next();
    let secs = args.next().unwrap_or(30);
    let limit = Limit::Packets(1000);
    for mbit in [10, 100] {
        if only.is_some_and(|only| only != mbit) {
            continue;
        }
        for flows in [4, 20, 100] {
            use CongestionControl::{Cubic, CubicSlowStart, Reno};
            run("pfifo link, reno", DropTail::new(limit), Some(limit), mbit, flows, Reno, secs);
            run("pfifo link", DropTail::new(limit), Some(limit), mbit, flows, Cubic, secs);
            run("pfifo link, no hystart", DropTail::new(limit), Some(limit), mbit, flows, CubicSlowStart, secs);
            run("engine pfifo", engine("pfifo"), None, mbit, flows, Cubic, secs);
            run("engine fq_codel", engine("fq_codel"), None, mbit, flows, Cubic, secs);
            run("engine codel", engine("codel"), None, mbit, flows, Cubic, secs);
            run("pfifo port", DropTail::new(limit), None, mbit, flows, Cubic, secs);
        }
    }
}
