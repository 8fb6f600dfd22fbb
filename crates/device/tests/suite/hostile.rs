//! Whatever is given: no panic, and packets in = sent + dropped + waiting.

use tidegate_device::{EgressConfig, EgressDevice, MAX_STEP, Nanos, OfferedPacket, PacketFields, Time};
use tidegate_packet::Seeded;

/// A stream of random numbers: a failure can be repeated by its seed.
struct Draws(Seeded);

impl Draws {
    fn below(&mut self, n: u64) -> u64 {
        self.0.next() % n
    }
}

const ROOTS: [&str; 16] = [
    "fq_codel limit 50 ecn",
    "cake bandwidth 3mbit ack-filter",
    "dualpi2 limit 100",
    "pie limit 50",
    "fq limit 60",
    "sfq perturb 1",
    "sfb",
    "choke limit 50 min 5 max 15 avpkt 1000 bandwidth 10mbit",
    "red limit 60kb min 5kb max 20kb avpkt 1000 bandwidth 10mbit",
    "hhf",
    "fq_pie",
    "netem delay 5ms 4ms corrupt 10% duplicate 20% loss 5%",
    "skbprio limit 20",
    "gred setup vqs 4 default 0",
    "tbf rate 1mbit burst 3k latency 50ms",
    "pfifo_head_drop limit 20",
];

#[test]
fn random_calls_keep_the_laws() {
    for seed in 0..160_u64 {
        let mut draws = Draws(Seeded::new(seed));
        let root = ROOTS[(seed % 16) as usize];
        let config = EgressConfig {
            rate: [None, Some(1), Some(1_000_000), Some(100_000_000)][draws.below(4) as usize],
            ethernet: draws.below(2) == 0,
            packets: 1 + draws.below(300) as u32,
            seed,
            ..EgressConfig::default()
        };
        let commands = format!("qdisc add dev eth0 root handle 1: {root}");
        let mut device = EgressDevice::new(&config, &commands).expect(root);
        let mut now = Time(0);
        for id in 0..400 {
            // Mostly small steps, sometimes minutes, now and then years, which are refused.
            let step = if draws.below(200) == 0 { 1 << draws.below(39) } else { draws.below(2_000_000) };
            now += Nanos(step);
            if draws.below(100) == 0 {
                assert!(device.poll(now + MAX_STEP + Nanos(1)).is_err());
            }
            let bytes: Vec<u8> = (0..draws.below(200)).map(|_| draws.below(256) as u8).collect();
            let length = [draws.below(1600), draws.below(70_000)][usize::from(draws.below(20) == 0)] as u32;
            let mut fields = PacketFields::udp(
                ([192, 0, 2, draws.below(9) as u8], draws.below(9) as u16).into(),
                ([198, 51, 100, 1], 443).into(),
            );
            (fields.protocol, fields.dsfield) = (draws.below(256) as u8, draws.below(256) as u8);
            let mut packet = match draws.below(3) {
                0 => OfferedPacket::from_bytes(id, &bytes, length),
                _ => OfferedPacket::from_fields(id, fields, length),
            };
            packet.priority = draws.below(1 << 32) as u32;
            let _ = device.offer(now, &packet);
            for _ in 0..draws.below(4) {
                let _ = device.poll(now);
            }
            if draws.below(50) == 0 {
                let all =
                    ["qdisc change dev eth0 root", "qdisc del dev eth0 root", "-s -j qdisc show", "qdisc"];
                let _ = device.tc(now, all[draws.below(4) as usize]);
            }
            if draws.below(3) > 0 {
                while device.next_drop().is_some() {}
            }
            let _ = device.next_time();
            let stats = device.stats();
            let ended = stats.sent + stats.dropped + u64::from(stats.waiting);
            assert_eq!(stats.offered + stats.copied, ended, "seed {seed}: {root}");
        }
    }
}

#[test]
fn commands_of_any_words_do_not_panic() {
    let words = [
        "tc",
        "qdisc",
        "class",
        "filter",
        "chain",
        "actions",
        "add",
        "change",
        "replace",
        "del",
        "show",
        "dev",
        "eth0",
        "root",
        "parent",
        "1:",
        "1:1",
        "handle",
        "htb",
        "fq_codel",
        "cake",
        "rate",
        "1mbit",
        "-s",
        "-j",
        "-batch",
        "-",
        "\\\n",
        "\n",
        "#",
        "\"",
        "'",
        "limit",
        "99999999999999999999",
        "-1",
        "ffff:",
        "u32",
        "match",
        "ip",
        "tos",
        "0xff",
        "flowid",
        "matchall",
        "action",
        "mirred",
        "egress",
        "redirect",
        "é",
        "\0",
        "stab",
        "mtu",
        "overhead",
        "netem",
        "delay",
        "-force",
        "monitor",
        "police",
    ];
    for seed in 0..3_000 {
        let mut draws = Draws(Seeded::new(seed));
        let many = draws.below(24);
        let text: Vec<&str> = (0..many).map(|_| words[draws.below(words.len() as u64) as usize]).collect();
        let _ = EgressDevice::new(&EgressConfig::default(), &text.join(" "));
    }
}
