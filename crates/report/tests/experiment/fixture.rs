//! An experiment with invented figures, only for tests: three policies under three loads, three repeats each.

use super::noise::noise;
use tidegate_measure::experiment::{
    Cable, Comparison, Event, Experiment, LinkSeries, Load, Node, Policy, Probe, Run, Transfer,
};
use tidegate_measure::trial::ClassSeries;

const MS: u64 = 1_000_000;
const STEP: u64 = 100 * MS;
const STEPS: u64 = 350;
const WINDOW: (u64, u64) = (5_000 * MS, 35_000 * MS);
const POLICIES: [(&str, &str); 3] = [("none", "no policy"), ("tbf", "token bucket"), ("fair", "HTB and fq_codel")];
const LOADS: [(&str, &str); 3] = [("empty", "nothing"), ("upload", "2 uploads"), ("both", "2 uploads, 3 downloads")];

/// The round trip of a ping sent at a moment, in ns; what is too long for the buffer is lost.
fn round_trip(policy: &str, load: &str, to: &str, seed: u64, at: u64) -> Option<u64> {
    let base = if to == "dest1" { 18 * MS } else { 26 * MS };
    let jitter = noise(seed, at / MS) * 2_000;
    let queue = match (policy, load) {
        (_, "empty") => 0,
        ("none", _) => at % (9_000 * MS) / 10 + noise(seed + 1, at / STEP) * 30_000,
        ("tbf", _) => 40 * MS + noise(seed + 2, at / STEP) * 20_000,
        _ => 4 * MS + noise(seed + 3, at / STEP) * 9_000,
    };
    let lost = queue > 900 * MS || (policy == "tbf" && load != "empty" && noise(seed + 4, at / MS).is_multiple_of(11));
    (!lost).then_some(base + jitter + queue)
}

fn ping(policy: &str, load: &str, to: &str, seed: u64) -> Probe {
    let sent = (0..STEPS / 2).map(|n| n * 200 * MS);
    let answers: Vec<(u64, Option<u64>)> = sent.map(|at| (at, round_trip(policy, load, to, seed, at))).collect();
    Probe {
        id: to.into(),
        title: format!("ping to {to}"),
        unit: "round trip".into(),
        from: "a".into(),
        to: to.into(),
        there: answers.iter().map(|(_, took)| took.map(|took| took - 9 * MS)).collect(),
        answers,
        ..Probe::default()
    }
}

fn transfer(id: &str, up: bool, share: u64, policy: &str, seed: u64) -> Transfer {
    let series: Vec<u64> =
        (0..STEPS).map(|n| if n < 10 { n * share / 10 } else { share * (900 + noise(seed, n) % 200) / 1000 }).collect();
    let measured = (WINDOW.0 / STEP) as usize..(WINDOW.1 / STEP) as usize;
    Transfer {
        id: id.into(),
        title: id.replace('-', " "),
        from: if up { "a" } else { "server" }.into(),
        to: if up { "server" } else { "a" }.into(),
        control: "cubic".into(),
        bytes: series[measured].iter().sum(),
        retransmissions: 17 + seed % 5,
        lost: 16,
        cwnd: if up { (0..STEPS).map(|n| 10 + (n * 7 / 10 % 40) as u32).collect() } else { vec![] },
        srtt_us: if up {
            (0..STEPS).map(|n| if policy == "none" { 400_000 + n * 500 } else { 40_000 }).collect()
        } else {
            vec![]
        },
        series,
        ..Transfer::default()
    }
}

fn transfers(policy: &str, load: &str, seed: u64) -> Vec<Transfer> {
    let less = if policy == "none" { 100 } else { 92 };
    let ups = (1..=2).map(|n| transfer(&format!("upload-{n}"), true, 45 * less * 9 / 10, policy, seed + n));
    let downs = (1..=3).map(|n| transfer(&format!("download-{n}"), false, 160 * less, policy, seed + 7 + n));
    match load {
        "empty" => vec![],
        "upload" => ups.collect(),
        _ => ups.chain(downs).collect(),
    }
}

fn queue(link: &str, up: bool, title: &str, bits: u64, policy: &str, load: &str, seed: u64) -> LinkSeries {
    let busy = load == "both" || load == "upload" && up;
    let fill = |n: u64| if busy && policy == "none" { n * STEP % (9_000 * MS) / 150_000 } else { noise(seed, n) / 2 };
    let capacity = bits / 80;
    LinkSeries {
        link: link.into(),
        up,
        title: title.into(),
        limit: Some(64_000),
        sent: (0..STEPS).map(|n| if busy { capacity - noise(seed, n) % 90 } else { 40 }).collect(),
        capacity: vec![capacity; STEPS as usize],
        backlog: (0..STEPS).map(fill).collect(),
        dropped: (0..STEPS).map(|n| u32::from(busy && policy == "none" && n % 90 == 89)).collect(),
    }
}

fn classes(policy: &str, load: &str, seed: u64) -> Vec<ClassSeries> {
    let class = |id: &str, title: &str, leaf, sent: u64| ClassSeries {
        id: format!("gateway:ppp0 {id}"),
        title: title.into(),
        leaf,
        sent: (0..STEPS)
            .map(|n| if load == "empty" { 12 } else { sent * (950 + noise(seed, n) % 100) / 1000 })
            .collect(),
        packets: (0..STEPS).map(|n| (sent / 1500 + n % 2) as u32).collect(),
        backlog: (0..STEPS).map(|n| if load == "empty" { 0 } else { noise(seed + sent, n) * sent / 900 }).collect(),
        qlen: (0..STEPS).map(|n| (noise(seed + sent, n) / 300) as u32).collect(),
        dropped: (0..STEPS).map(|n| u32::from(load != "empty" && n % 40 == 3)).collect(),
        ..ClassSeries::default()
    };
    match policy {
        "none" => vec![],
        "tbf" => vec![class("1:", "", true, 8_800)],
        _ => {
            vec![class("1:1", "", false, 8_800), class("1:10", "udp, icmp", true, 300), class("1:20", "", true, 8_500)]
        }
    }
}

fn run(policy: &str, load: &str, repeat: u32) -> Run {
    let seed = 1 + u64::from(repeat);
    Run {
        policy: policy.into(),
        load: load.into(),
        repeat,
        seed,
        window: WINDOW,
        step_ns: STEP,
        probes: vec![ping(policy, load, "dest1", seed * 10), ping(policy, load, "dest2", seed * 10 + 5)],
        transfers: transfers(policy, load, seed),
        classes: classes(policy, load, seed),
        queues: vec![
            queue("dsl", true, "modem to isp", 768_000, policy, load, seed),
            queue("dsl", false, "isp to modem", 4_000_000, policy, load, seed + 9),
        ],
        events: vec![Event {
            at: 20_000 * MS,
            on: "gateway".into(),
            what: "tc -s class show dev ppp0".into(),
            output: "class htb 1:1 root rate 700Kbit\n".into(),
        }],
        work: (12_000 + seed, 240_000),
        ..Run::default()
    }
}

fn nodes() -> Vec<Node> {
    let node = |name: &str, kind: &str, devices: &[&str]| Node {
        name: name.into(),
        kind: kind.into(),
        devices: devices.iter().map(|&device| device.into()).collect(),
    };
    vec![
        node("a", "host", &[]),
        node("b", "host", &[]),
        node("gateway", "machine", &["eth0", "eth1", "ppp0"]),
        node("modem", "relay", &[]),
        node("isp", "relay", &[]),
        node("dest1", "host", &[]),
        node("dest2", "machine", &["eth0", "tun0"]),
    ]
}

fn cables() -> Vec<Cable> {
    let cable = |name: &str, from: &str, to: &str, there: &str, back: &str, bits: [u64; 2]| Cable {
        name: name.into(),
        from: from.into(),
        to: to.into(),
        there: there.into(),
        back: back.into(),
        there_bits: Some(bits[0]),
        back_bits: Some(bits[1]),
    };
    const FAST: [u64; 2] = [100_000_000; 2];
    vec![
        cable("lan", "a", "gateway:eth0", "100 Mbit/s", "100 Mbit/s", FAST),
        cable("lan", "b", "gateway:eth0", "100 Mbit/s", "100 Mbit/s", FAST),
        cable("cable", "gateway:eth1", "modem", "100 Mbit/s", "100 Mbit/s", FAST),
        cable(
            "dsl",
            "modem",
            "isp",
            "768 kbit/s, 8 ms, buffer 64 kB",
            "4 Mbit/s, 8 ms, buffer 64 kB",
            [768_000, 4_000_000],
        ),
        cable("near", "isp", "dest1", "1 ms", "1 ms", FAST),
        cable("far", "isp", "dest2:eth0", "5 ms", "5 ms", FAST),
    ]
}

fn comparisons() -> Vec<Comparison> {
    vec![
        Comparison {
            id: "S-2".into(),
            what: "longest round trip while uploading".into(),
            figure: "dest1.max of none/upload".into(),
            unit: "s".into(),
            published: Some(0.180),
            found: Some(0.921),
            spread: Some((0.915, 0.926)),
            within: (0.150, 0.220),
            held: false,
            gated: false,
            why: Some("the modem's buffer was not published; ours is larger".into()),
        },
        Comparison {
            id: "S-9".into(),
            what: "a fair queue is ten times quicker".into(),
            figure: "dest1.mean of none/upload over dest1.mean of fair/upload".into(),
            published: None,
            found: Some(14.1),
            within: (10.0, f64::INFINITY),
            held: true,
            gated: true,
            ..Comparison::default()
        },
    ]
}

/// The experiment.
pub(crate) fn experiment() -> Experiment {
    let cases = POLICIES.iter().flat_map(|(policy, _)| LOADS.iter().map(move |(load, _)| (*policy, *load)));
    Experiment {
        began_ns: None,
        version: "0.1.0".into(),
        again: "tidegate sim siemon.toml --seed 1 --repeats 3".into(),
        execution: "sim".into(),
        scenario: "siemon.toml".into(),
        title: "A 4M/768k line <and> two targets".into(),
        about: "Two hosts behind a gateway share a slow line. One of them uploads and downloads; both are pinged."
            .into(),
        source: Some("Siemon 2011, Network latency experiments".into()),
        seed: 1,
        nodes: nodes(),
        links: cables(),
        policies: POLICIES
            .iter()
            .map(|(name, title)| Policy {
                name: (*name).into(),
                title: (*title).into(),
                commands: match *name {
                    "none" => vec![],
                    _ => vec![("gateway".into(), vec![format!("tc qdisc add dev ppp0 root handle 1: {name}")])],
                },
            })
            .collect(),
        loads: LOADS
            .iter()
            .map(|(name, title)| Load { name: (*name).into(), title: (*title).into(), test: None })
            .collect(),
        runs: cases.flat_map(|(policy, load)| (0..3).map(move |repeat| run(policy, load, repeat))).collect(),
        comparisons: comparisons(),
        notes: vec!["Its figures are invented.".into()],
    }
}
