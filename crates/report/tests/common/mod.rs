//! A trial of a home gateway as it could have come out, made by arithmetic: enough of everything to draw and to tabulate.

mod noise;

use noise::noise;
use tidegate_measure::trial::{BufferSeries, ClassSeries, Flow, LinkFacts, Probe, Run, TreeNode, Trial};

const MS: u64 = 1_000_000;
const STEP: u64 = 100 * MS;
const STEPS: u64 = 650;
const WINDOW: (u64, u64) = (5_000 * MS, 65_000 * MS);

/// How full the modem's buffer is in thousandths at a time under an upload without a policy: TCP's saw.
fn saw(at: u64) -> u64 {
    let phase = at / MS % 9_000;
    if at < 1_500 * MS { at / MS * 1000 / 1_500 } else { 780 + phase * 220 / 9_000 }
}

/// The uplink's and the downlink's queueing delay in ms.
fn delays(load: &str, policy: bool, at: u64, n: u64) -> (u64, u64) {
    let up = matches!(load, "up" | "both");
    let down = matches!(load, "down" | "both");
    let up = match (up, policy) {
        (false, _) => 0,
        (true, false) => saw(at) * 1500 / 1000,
        (true, true) => noise(1, n) * noise(2, n) / 45_000,
    };
    let down = if down { 60 + saw(at + 4_000 * MS) * 40 / 1000 } else { 0 };
    (up, down)
}

type Took = dyn Fn(u64, u64) -> Option<u64>;

fn probe(id: &str, title: &str, unit: &str, class: Option<&str>, every: u64, took: &Took) -> Probe {
    let answers = (0..STEPS * STEP / every).map(|n| (n * every + 3 * MS, took(n * every, n))).collect();
    Probe { id: id.into(), title: title.into(), unit: unit.into(), class: class.map(Into::into), answers }
}

fn probes(load: &'static str, policy: bool) -> Vec<Probe> {
    let class = |id: &'static str| policy.then_some(id);
    let sum = move |at, n, scale: u64| {
        let (up, down) = delays(load, policy, at, n);
        (up + down) * scale / 10 * MS
    };
    let often = move |n: u64, per_mille: u64| load != "empty" && !policy && noise(7, n) < per_mille;
    vec![
        probe("ping", "ping", "round trip", class("1:999"), 200 * MS, &move |at, n| {
            (!often(n, 12)).then(|| 31 * MS + noise(3, n) * 1000 + sum(at, n, 10))
        }),
        probe("voip", "VoIP call", "one way", class("1:100"), 20 * MS, &move |at, n| {
            (!often(n, 30)).then(|| {
                16 * MS + noise(4, n) * 2000 + delays(load, policy, at, n).0 * MS * if policy { 1 } else { 10 } / 10
            })
        }),
        probe("dns", "DNS look-up", "until the answer", class("1:100"), 1000 * MS, &move |at, n| {
            (!often(n, 9)).then(|| 33 * MS + noise(5, n) * 3000 + sum(at, n, if policy { 3 } else { 10 }))
        }),
        probe("ssh-login", "SSH login", "until the prompt", class("1:300"), 5000 * MS, &move |at, n| {
            Some(420 * MS + sum(at, n, if policy { 40 } else { 110 }))
        }),
        probe("pageload", "web page", "until complete", class("1:400"), 6000 * MS, &move |at, n| {
            (load == "empty" || policy || n % 4 != 2).then(|| 900 * MS + sum(at, n, if policy { 60 } else { 95 }))
        }),
    ]
}

/// A share of the uplink per step in bytes, around `kbit`.
fn sent(seed: u64, kbit: u64) -> Vec<u64> {
    (0..STEPS).map(|n| if n < 3 { 0 } else { kbit * 100 / 8 * (850 + noise(seed, n) * 300 / 1000) / 1000 }).collect()
}

fn flows(load: &str, policy: bool) -> Vec<Flow> {
    let ups = if matches!(load, "up" | "both") { 2 } else { 0 };
    let downs = if matches!(load, "down" | "both") { 3 } else { 0 };
    let one = |n: u64, up: bool| {
        let kbit = match (up, policy) {
            (true, false) => 700,
            (true, true) => 640 - 90 * n,
            (false, false) => {
                if load == "both" {
                    2_100
                } else {
                    6_000
                }
            }
            (false, true) => 5_700 + 100 * n,
        };
        let series = sent(20 + n + 10 * u64::from(up), kbit);
        Flow {
            title: format!(
                "{} {} (tcp {})",
                if up { "upload" } else { "download" },
                n + 1,
                if n == 1 { 80 } else { 443 }
            ),
            up,
            class: policy.then(|| if up { ["1:400", "1:999"][n as usize % 2] } else { "1:200" }.to_owned()),
            bytes: series[50..].iter().sum(),
            retransmissions: if policy { 12 + n } else { 160 + 7 * n },
            lost: if policy { 11 + n } else { 158 + 7 * n },
            series,
        }
    };
    (0..ups).map(|n| one(n, true)).chain((0..downs).map(|n| one(n, false))).collect()
}

/// Id, title, rate and ceil in kbit, and what it sends under up, down, both, else.
type Spec = (&'static str, &'static str, u64, u64, [u64; 4]);
const LEAVES: [Spec; 6] = [
    ("1:100", "udp", 300, 1500, [92, 92, 92, 90]),
    ("1:200", "tcp ACK of 40 to 64 bytes", 400, 1500, [6, 330, 310, 1]),
    ("1:300", "tcp port 22", 200, 1000, [14, 14, 14, 12]),
    ("1:400", "tcp port 80, 443", 450, 1500, [760, 40, 580, 30]),
    ("1:777", "mark 777", 100, 500, [0; 4]),
    ("1:999", "everything else", 150, 1300, [590, 3, 470, 2]),
];

fn classes(load: &str) -> Vec<ClassSeries> {
    let column = match load {
        "up" => 0,
        "down" => 1,
        "both" => 2,
        _ => 3,
    };
    let leaf = |(seed, (id, title, _, _, kbits)): (u64, &Spec)| {
        let busy = kbits[column] > 400;
        let sent = sent(40 + seed, kbits[column]);
        let qlen: Vec<u32> = (0..STEPS)
            .map(|n| {
                if busy {
                    20 + (noise(seed, n / 4) / 28) as u32
                } else {
                    (noise(seed, n) / 600) as u32 * u32::from(kbits[column] > 0)
                }
            })
            .collect();
        ClassSeries {
            packets: vec![],
            id: (*id).into(),
            title: (*title).into(),
            leaf: true,
            backlog: qlen.iter().map(|&q| u64::from(q) * 1250).collect(),
            dropped: (0..STEPS).map(|n| u32::from(busy && noise(seed + 60, n) > 970) * 2).collect(),
            tokens_us: (0..STEPS)
                .map(|n| if busy { -40_000 + noise(seed, n) as i64 * 30 } else { 120_000 - noise(seed, n) as i64 * 20 })
                .collect(),
            ctokens_us: (0..STEPS)
                .map(|n| if busy { noise(seed + 3, n) as i64 * 9 - 1000 } else { 32_000 - noise(seed, n) as i64 * 4 })
                .collect(),
            qlen,
            sent,
        }
    };
    let leaves: Vec<ClassSeries> = (0..).zip(&LEAVES).map(leaf).collect();
    let total = (0..STEPS as usize).map(|n| leaves.iter().map(|class| class.sent[n]).sum()).collect();
    let top = ClassSeries {
        id: "1:1".into(),
        sent: total,
        backlog: vec![0; STEPS as usize],
        qlen: vec![0; STEPS as usize],
        dropped: vec![0; STEPS as usize],
        tokens_us: (0..STEPS).map(|n| noise(90, n) as i64 * 12 - 2_000).collect(),
        ctokens_us: (0..STEPS).map(|n| noise(90, n) as i64 * 12 - 2_000).collect(),
        ..ClassSeries::default()
    };
    std::iter::once(top).chain(leaves).collect()
}

fn run(load: &'static str, title: &str, policy: bool) -> Run {
    let buffer = |title: &str, limit: u64, fill: &dyn Fn(u64) -> u64, dropped| BufferSeries {
        title: title.into(),
        limit,
        backlog: (0..STEPS).map(|n| fill(n) * limit / 1000).collect(),
        dropped,
    };
    let up = matches!(load, "up" | "both") && !policy;
    let down = matches!(load, "down" | "both");
    Run {
        load: load.into(),
        title: title.into(),
        policy,
        window: WINDOW,
        step_ns: STEP,
        probes: probes(load, policy),
        flows: flows(load, policy),
        classes: if policy { classes(load) } else { vec![] },
        buffers: vec![
            buffer(
                "modem",
                300_000,
                &|n| if up { saw(n * STEP) } else { noise(70, n) / 180 },
                if up { 316 } else { 0 },
            ),
            buffer(
                "provider",
                250_000,
                &|n| if down { 600 + saw(n * STEP + 4_000 * MS) * 390 / 1000 } else { 0 },
                if down { 127 } else { 0 },
            ),
        ],
        ..Run::default()
    }
}

fn tree() -> Vec<TreeNode> {
    let node = |id: &str, parent: &str, is_class, kind: &str, options: &str| TreeNode {
        device: "eth0".into(),
        id: id.into(),
        parent: parent.into(),
        is_class,
        kind: kind.into(),
        options: options.into(),
        ..TreeNode::default()
    };
    let mut tree = vec![
        node("1:", "", false, "htb", "r2q 40 default 0x3e7 direct_packets_stat 0 direct_qlen 1000"),
        TreeNode {
            rate_bits: Some(1_500_000),
            ceil_bits: Some(1_500_000),
            prio: Some(0),
            ..node("1:1", "1:", true, "htb", "rate 1500Kbit ceil 1500Kbit burst 6Kb cburst 1599b")
        },
    ];
    for (n, (id, title, rate, ceil, _)) in (1..).zip(&LEAVES) {
        let mark = &id[2..];
        tree.push(TreeNode {
            rate_bits: Some(rate * 1000),
            ceil_bits: Some(ceil * 1000),
            prio: Some(n),
            title: (*title).into(),
            filters: if *mark == *"999" {
                vec!["whatever no filter takes".into()]
            } else {
                vec![format!("mark {mark}: {title}")]
            },
            unreachable: (*mark == *"777").then(|| "no rule sets mark 777".into()),
            ..node(id, "1:1", true, "htb", &format!("prio {n} rate {rate}Kbit ceil {ceil}Kbit burst 6Kb cburst 1599b"))
        });
        let (kind, options) = if n < 3 {
            ("pfifo", "limit 20p")
        } else {
            ("sfq", "limit 60p quantum 1514b depth 127 divisor 1024 perturb 10sec")
        };
        tree.push(node(&format!("{mark}:"), id, false, kind, options));
    }
    tree
}

/// The trial.
pub(crate) fn fixture() -> Trial {
    let loads =
        [("empty", "nothing"), ("up", "2 uploads"), ("down", "3 downloads"), ("both", "2 uploads, 3 downloads")];
    Trial {
        version: "0.1.0".into(),
        again: "tidegate try examples/home-gateway.sh --up 1600kbit --down 20mbit --seed 1".into(),
        script: "examples/home-gateway.sh".into(),
        device: "eth0".into(),
        commands: 31,
        seed: 1,
        link: LinkFacts { up_bits: 1_600_000, down_bits: 20_000_000, rtt_ns: 30 * MS, up_buffer_bytes: 300_000, down_buffer_bytes: 250_000 },
        runs: loads.iter().flat_map(|(load, title)| [false, true].map(|policy| run(load, title, policy))).collect(),
        tree: tree(),
        verdict: vec![
            "Under 2 uploads, 3 downloads the policy cuts the ping's 95th percentile from 1606 ms to 148 ms (10.9 times shorter).".into(),
            "Typically: VoIP call 17.2 ms instead of 1.4 s; SSH login 1.1 s instead of 16.5 s; web page 1.6 s instead of 14.2 s.".into(),
            "2 uploads carry 15 % less up: 1.19 Mbit/s instead of 1.40 Mbit/s.".into(),
            "No packet was found that reaches class 1:777 on eth0: no rule sets mark 777.".into(),
        ],
        notes: vec!["The class 1:999 is what HTB's default names; what no filter takes goes there.".into()],
    }
}
