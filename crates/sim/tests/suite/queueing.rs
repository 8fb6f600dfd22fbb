//! Queueing theory (rows V-Q1 to V-Q7): the simulator's queues against closed formulas.
//!
//! Each row runs through the link's own drop-tail queue and, where it is the same queue, through a machine's
//! port.

use crate::common;

use tidegate_packet::{Handle, Nanos, Rate, Time};
use tidegate_policy::{ClassParams, DrrClassParams, HtbParams, Op, PrioParams, QdiscParams, SfqParams};
use tidegate_sim::{
    ArrivalProcess, Bands, DropTail, Ends, Forwarder, Limit, LinkSpec, Net, Port, Sizes, SourceSpec,
    SourceStats,
};

/// The server: 1250 bytes take a millisecond.
const RATE: u64 = 10_000_000;
const MEAN_SIZE: u32 = 1250;
const SERVICE_NS: f64 = 1e6;
const PACKETS: u64 = 1_000_000;

/// One source per (load, priority) into one server; statistics and the server's drops.
fn serve<M: Forwarder>(
    machine: M,
    link: LinkSpec,
    sizes: Sizes,
    loads: &[(f64, u32)],
    packets: u64,
    seed: u64,
) -> Vec<SourceStats> {
    let mut net = Net::new(machine, seed, Time(0));
    let link = net.link(link);
    let path = net.path(&[link]);
    let total: f64 = loads.iter().map(|load| load.0).sum();
    let sources: Vec<_> = loads
        .iter()
        .enumerate()
        .map(|(i, &(load, priority))| {
            let count = (packets as f64 * load / total) as u64;
            let ends = Ends::v4([10, 0, 0, 1], 1000 + i as u16, [10, 0, 0, 2], 9);
            net.source(SourceSpec {
                arrivals: ArrivalProcess::Poisson(Nanos((SERVICE_NS / load) as u64)),
                sizes,
                count,
                warm_up: count / 10,
                priority,
                record: loads.len() == 1,
                ..SourceSpec::steady(ends, path, 0, Nanos(0))
            })
        })
        .collect();
    net.run(Time::NEVER);
    assert_eq!(net.packets(), 0, "every packet is delivered or lost");
    sources.into_iter().map(|source| net.source_stats(source)).collect()
}

fn mean(stats: &SourceStats) -> f64 {
    stats.total_ns as f64 / stats.received as f64 / SERVICE_NS
}

fn own_queue(limit: Limit) -> LinkSpec {
    LinkSpec::drop_tail(RATE, Nanos(0), limit)
}

fn port() -> LinkSpec {
    LinkSpec::port(Port(0), Some(RATE), Nanos(0))
}

/// The mean over both kinds of queue and a few seeds.
fn average(sizes: Sizes, load: f64, of: impl Fn(&SourceStats) -> f64) -> f64 {
    let mut sum = 0.0;
    for seed in 1..=2 {
        let own =
            serve(DropTail::new(Limit::None), own_queue(Limit::None), sizes, &[(load, 0)], PACKETS, seed);
        let machine = serve(DropTail::new(Limit::None), port(), sizes, &[(load, 0)], PACKETS, seed);
        assert_eq!(own, machine, "the two queues are the same queue");
        sum += of(&own[0]);
    }
    sum / 2.0
}

/// Prints the rows (for docs/validation.md) and fails with those that are off: name, value, expected,
/// relative tolerance.
fn table(id: &str, what: &str, rows: &[(&str, f64, f64, f64)]) {
    let is_off = |(_, is, should, by): &&(&str, f64, f64, f64)| (is / should - 1.0).abs() > *by;
    for (n, row) in rows.iter().enumerate() {
        let (name, is, should, by) = row;
        let verdict = if is_off(&row) { "outside" } else { "within" };
        println!(
            "validation: Queueing theory and hashing | {id}-{} | {what}, {name} | {should} ± {:.0} % | \
            {is:.4} | {verdict} | queueing theory",
            n + 1,
            by * 100.0
        );
    }
    let wrong: Vec<_> = rows.iter().filter(is_off).collect();
    assert!(wrong.is_empty(), "off: {wrong:?}");
}

#[test]
fn v_q1_mm1_time_in_system() {
    let sizes = Sizes::Exponential(MEAN_SIZE);
    let rows = [("rho 0.5", 0.5, 2.0, 0.02), ("rho 0.8", 0.8, 5.0, 0.02), ("rho 0.9", 0.9, 10.0, 0.04)];
    table(
        "V-Q1",
        "M/M/1: time in the system over service time",
        &rows.map(|(name, load, should, by)| (name, average(sizes, load, mean), should, by)),
    );
}

/// Little's law turns the mean time into the mean number: L = load × W/S.
#[test]
fn v_q2_md1_number_in_system() {
    let sizes = Sizes::Fixed(MEAN_SIZE);
    let rows = [("rho 0.5", 0.5, 0.75, 0.02), ("rho 0.8", 0.8, 2.4, 0.02), ("rho 0.9", 0.9, 4.95, 0.02)];
    table(
        "V-Q2",
        "M/D/1: number in the system",
        &rows.map(|(name, load, should, by)| (name, load * average(sizes, load, mean), should, by)),
    );
}

#[test]
fn v_q3_mm1k_loss() {
    let sizes = Sizes::Exponential(MEAN_SIZE);
    let loss = |load: f64, machine: bool| {
        let limit = Limit::Packets(9);
        let link = if machine { port() } else { own_queue(limit) };
        let stats = serve(DropTail::new(limit), link, sizes, &[(load, 0)], PACKETS, 3);
        stats[0].lost as f64 / stats[0].sent as f64
    };
    let rows = [("rho 0.8", 0.8, 0.02349), ("rho 1.0", 1.0, 0.09091), ("rho 1.2", 1.2, 0.19259)];
    let found = rows.map(|(name, load, should)| (name, loss(load, false), should, 0.03));
    table("V-Q3", "M/M/1/10: loss", &found);
    let at_port = rows.map(|(name, load, should)| (name, loss(load, true), should, 0.03));
    assert_eq!(found, at_port, "a machine's queue of that size loses the same");
}

#[test]
fn v_q4_mm1_tail() {
    let p95 = |stats: &SourceStats| {
        let mut times: Vec<u64> = stats.packets.iter().filter_map(|j| j.took.map(|took| took.0)).collect();
        times.sort_unstable();
        times[times.len() * 95 / 100] as f64 / SERVICE_NS
    };
    table(
        "V-Q4",
        "M/M/1, rho 0.8: tail of the time in the system",
        &[("p95", average(Sizes::Exponential(MEAN_SIZE), 0.8, p95), 14.98, 0.03)],
    );
}

#[test]
fn v_q5_non_preemptive_priorities() {
    let loads = [(0.3, 0), (0.5, 1)];
    let prio = serve(Bands::new(2), port(), Sizes::Fixed(MEAN_SIZE), &loads, 2 * PACKETS, 5);
    let fifo = serve(DropTail::new(Limit::None), port(), Sizes::Fixed(MEAN_SIZE), &loads, 2 * PACKETS, 5);
    table(
        "V-Q5",
        "non-preemptive priorities: wait over service time",
        &[
            ("first band", mean(&prio[0]) - 1.0, 0.571, 0.02),
            ("second band", mean(&prio[1]) - 1.0, 2.857, 0.02),
            ("fifo", mean(&fifo[0]) - 1.0, 2.0, 0.02),
        ],
    );
    // The engine's prio: the customary map puts priority 6 in band 0 and priority 0 in band 1.
    let machine = common::machine(&[common::qdisc(
        Handle::ROOT,
        ONE,
        "prio",
        Some(QdiscParams::Prio(PrioParams::default())),
    )]);
    let engine = serve(machine, port(), Sizes::Fixed(MEAN_SIZE), &[(0.3, 6), (0.5, 0)], 2 * PACKETS, 5);
    assert!(engine == prio, "the engine's prio serves as two plain bands");
}

const ONE: Handle = Handle::new(1, 0);

/// The sum of load times wait is the same anyone who goes first, under every scheduler that does not idle.
#[test]
fn v_q6_conservation() {
    let [a, b] = [ONE.class(1), ONE.class(2)];
    let drr =
        |class| common::class(ONE, class, "drr", ClassParams::Drr(DrrClassParams { quantum: Some(1514) }));
    let fast = Rate::bits(10_000_000_000);
    let htb = Some(QdiscParams::Htb(HtbParams::default()));
    let sfq = SfqParams { limit: 10_000, depth: 5_000, ..SfqParams::default() };
    let trees: [(&str, Vec<Op>); 4] = [
        ("engine drr", vec![common::qdisc(Handle::ROOT, ONE, "drr", None), drr(a), drr(b)]),
        ("engine sfq", vec![common::qdisc(Handle::ROOT, ONE, "sfq", Some(QdiscParams::Sfq(sfq)))]),
        ("engine htb", {
            let classes = [(a, 1), (b, 0)].map(|(class, prio)| common::htb_class(ONE, class, fast, prio));
            [vec![common::qdisc(Handle::ROOT, ONE, "htb", htb)], classes.to_vec()].concat()
        }),
        ("engine pfifo", vec![common::qdisc(Handle::ROOT, ONE, "pfifo", None)]),
    ];
    let sizes = Sizes::Fixed(MEAN_SIZE);
    let sum = |stats: Vec<SourceStats>| {
        assert_eq!(stats[0].lost + stats[1].lost, 0, "nothing is lost");
        0.3 * (mean(&stats[0]) - 1.0) + 0.5 * (mean(&stats[1]) - 1.0)
    };
    let plain = [(0.3, 0), (0.5, 1)];
    let mut rows = vec![
        ("fifo", sum(serve(DropTail::new(Limit::None), port(), sizes, &plain, PACKETS, 6)), 1.6, 0.03),
        ("priorities", sum(serve(Bands::new(2), port(), sizes, &plain, PACKETS, 6)), 1.6, 0.03),
        ("round robin", sum(serve(Turns::default(), port(), sizes, &plain, PACKETS, 6)), 1.6, 0.03),
    ];
    for (name, ops) in trees {
        // The priority names the class.
        let loads = [(0.3, a.0), (0.5, b.0)];
        rows.push((name, sum(serve(common::machine(&ops), port(), sizes, &loads, PACKETS, 6)), 1.6, 0.03));
    }
    table("V-Q6", "conservation of load times wait", &rows);
}

/// Little's law: what is in the system, summed over time, is the sum of the times spent there, to the
/// nanosecond.
#[test]
fn v_q7_little() {
    let stats = &serve(
        DropTail::new(Limit::None),
        own_queue(Limit::None),
        Sizes::Exponential(MEAN_SIZE),
        &[(0.8, 0)],
        100_000,
        9,
    )[0];
    // The number in the system changes by one at each arrival and departure of those that are counted.
    let mut changes: Vec<(u64, i64)> = Vec::new();
    for journey in &stats.packets {
        let took = journey.took.expect("nothing is lost");
        changes.extend([(journey.sent.0, 1), ((journey.sent + took).0, -1)]);
    }
    changes.sort_unstable();
    let (mut inside, mut since, mut area) = (0i64, 0u64, 0u128);
    for (at, by) in changes {
        area += u128::from(at - since) * u128::from(inside.unsigned_abs());
        (inside, since) = (inside + by, at);
    }
    let off = area.abs_diff(stats.total_ns);
    let verdict = if off == 0 { "exact" } else { "outside" };
    println!(
        "validation: Queueing theory and hashing | V-Q7 | Little's law: number over time less times spent, \
        in ns | 0 | {off} | {verdict} | Little 1961"
    );
    assert_eq!(off, 0);
}

/// Two queues served in turn: what DRR and SFQ do with packets of one size.
#[derive(Default)]
struct Turns {
    queues: [tidegate_packet::Fifo; 2],
    turn: usize,
}

impl Forwarder for Turns {
    fn offer(
        &mut self,
        pool: &mut tidegate_packet::Pool,
        _: Time,
        _: Port,
        _: tidegate_sim::Origin,
        pkt: tidegate_packet::Pkt,
    ) -> tidegate_sim::OfferResult {
        let band = pool.meta(&pkt).priority as usize & 1;
        self.queues[band].push_back(pool, pkt);
        tidegate_sim::OfferResult::Queued
    }
    fn poll(&mut self, pool: &mut tidegate_packet::Pool, _: Time, _: Port) -> Option<tidegate_packet::Pkt> {
        self.turn ^= 1;
        let pkt = self.queues[self.turn].pop_front(pool);
        pkt.or_else(|| self.queues[self.turn ^ 1].pop_front(pool))
    }
    fn timeout(&mut self, _: Port) -> Option<Time> {
        None
    }
}
