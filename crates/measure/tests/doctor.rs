//! From facts to findings: one case for each finding, and what is near it and none.

use tidegate_measure::doctor::{
    DeviceFacts, DoctorFinding, EcnResult, Facts, FlowTableFacts, Inwards, Processor, Severity, ShaperClass,
    ShaperFacts, Softnet, evaluate,
};

const MBIT: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

/// A healthy computer: eth0 shaped by HTB to 10 Mbit/s, loaded, arrivals redirected through an ifb with cake.
fn healthy() -> Facts {
    let class = |id: &str, is_leaf: bool| ShaperClass { id: id.into(), is_leaf, packets_ever: Some(5000) };
    let shaper = ShaperFacts {
        backend: "kernel".into(),
        kind: "htb".into(),
        rate_bps: Some(10 * MBIT),
        sent: 1_200_000,
        packets: 1200,
        overlimits: 500,
        backlog: 3000,
        packets_ever: 200_000,
        overlimits_ever: 9000,
        classes: vec![class("1:1", false), class("1:10", true), class("1:20", true)],
        ..ShaperFacts::default()
    };
    let eth0 = DeviceFacts {
        name: "eth0".into(),
        is_hardware: true,
        mtu: 1500,
        txqueuelen: 1000,
        speed_bps: Some(1000 * MBIT),
        sent: 1_200_000,
        received: 4_000_000,
        byte_limits: Some(vec![3000]),
        shaper: Some(shaper.clone()),
        inwards: Inwards::Led("ifb0".into()),
        ..DeviceFacts::default()
    };
    let cake = ShaperFacts {
        kind: "cake".into(),
        rate_bps: Some(40 * MBIT),
        splits: true,
        classes: Vec::new(),
        ..shaper
    };
    let ifb0 = DeviceFacts { name: "ifb0".into(), mtu: 1500, shaper: Some(cake), ..DeviceFacts::default() };
    let eth1 = DeviceFacts { name: "eth1".into(), is_hardware: true, mtu: 1500, ..DeviceFacts::default() };
    Facts {
        seconds_ns: SECOND,
        devices: vec![eth0, ifb0, eth1],
        default_routes: vec!["eth0".into()],
        processors: vec![Processor { number: 0, softirq: 0.1, busy: 0.3 }],
        softnet: Softnet { processed: 100_000, dropped: 0, squeezed: 3 },
        ..Facts::default()
    }
}

/// The shaper of the so-manyth device.
fn shaper_of(facts: &mut Facts, device: usize) -> &mut ShaperFacts {
    facts.devices[device].shaper.as_mut().expect("it is shaped")
}

fn flow_table(device: &str, is_hardware: bool) -> Vec<FlowTableFacts> {
    vec![FlowTableFacts {
        name: "inet filter fast".into(),
        devices: vec!["eth9".into(), device.into()],
        is_hardware,
    }]
}

/// Carries the given share of its rate, and nothing waits.
fn carries(facts: &mut Facts, bytes: u64) {
    let shaper = shaper_of(facts, 0);
    (shaper.sent, shaper.overlimits, shaper.backlog) = (bytes, 0, 0);
}

fn ecn(answered: Option<u8>, quoted: &[(&str, u8)]) -> Option<EcnResult> {
    let quoted = quoted.iter().map(|(by, field)| ((*by).to_owned(), *field)).collect();
    Some(EcnResult { host: "far".into(), sent: 0x8a, answered, quoted })
}

/// Changes facts; what is found then, by name and severity, and words that each sentence has.
fn assert_found(name: &str, change: impl FnOnce(&mut Facts), expected: &[(&str, Severity, &str)]) {
    let mut facts = healthy();
    change(&mut facts);
    let (findings, _) = evaluate(&facts);
    let found: Vec<_> =
        findings.iter().map(|finding: &DoctorFinding| (finding.id, finding.severity)).collect();
    let wanted: Vec<_> = expected.iter().map(|(id, severity, _)| (*id, *severity)).collect();
    assert_eq!(found, wanted, "{name}: {findings:#?}");
    for (finding, (_, _, words)) in findings.iter().zip(expected) {
        assert!(finding.what.contains(words), "{name}: {words} in {}", finding.what);
        assert!(!finding.remedy.is_empty());
    }
}

use Severity::{Bad, Note, Warning};

#[test]
fn a_healthy_computer_has_no_findings() {
    assert_found("all is well", |_| {}, &[]);
}

#[test]
fn offloads() {
    let on = |feature: &'static str, rate: u64| {
        move |facts: &mut Facts| {
            facts.devices[0].features = vec![feature.into()];
            shaper_of(facts, 0).rate_bps = Some(rate);
        }
    };
    let tso = "tx-tcp-segmentation";
    let words = "at 10.0 Mbit/s that is a burst of 52.4 ms";
    assert_found("64 KiB at once", on(tso, 10 * MBIT), &[("offload-burst", Warning, words)]);
    let gso = on("tx-generic-segmentation", 200 * MBIT);
    // (A tenth of the load that it was: the limiting link is unknown, since packets were queued.)
    assert_found("the same at more", gso, &[("offload-burst", Note, "a burst of 2.6 ms")]);
    assert_found("and at still more", on(tso, 500 * MBIT), &[]);
    let split = |facts: &mut Facts| {
        on(tso, 10 * MBIT)(facts);
        facts.devices[0].features.push("rx-gro".into());
        facts.devices[1].features = vec![tso.into()];
        shaper_of(facts, 0).splits = true;
    };
    assert_found("cake splits by itself; an ifb sends nothing", split, &[]);
    let gro = |facts: &mut Facts| {
        facts.devices[0].features = vec!["rx-gro".into()];
        shaper_of(facts, 1).splits = false;
    };
    let words = "before they are queued on ifb0: at 40.0 Mbit/s that is a burst of 13.1 ms";
    assert_found("GRO", gro, &[("offload-burst", Warning, words)]);
    let lro = |facts: &mut Facts| facts.devices[2].features = vec!["rx-lro".into()];
    assert_found("LRO", lro, &[("lro", Warning, "eth1 joins received packets for good")]);
    let hardware = |facts: &mut Facts| {
        for device in [0, 2] {
            facts.devices[device].features = vec!["hw-tc-offload".into()];
        }
    };
    assert_found("filters in hardware", hardware, &[("hardware-filters", Warning, "eth0 may carry out")]);
}

#[test]
fn the_driver_queues() {
    let none = |facts: &mut Facts| facts.devices[0].byte_limits = None;
    assert_found("no BQL, but shaped to less", none, &[]);
    let tight = move |facts: &mut Facts| {
        none(facts);
        facts.devices[0].speed_bps = Some(10 * MBIT);
    };
    assert_found("no BQL", tight, &[("no-bql", Warning, "does not limit its own queue")]);
    let large = |facts: &mut Facts| {
        facts.devices[0].byte_limits = Some(vec![3000, 125_000]);
        facts.devices[0].speed_bps = Some(10 * MBIT);
    };
    assert_found(
        "large",
        large,
        &[("bql-large", Warning, "may hold 125000 bytes (100.0 ms at 10.0 Mbit/s)")],
    );
}

#[test]
fn the_wrong_device() {
    let twice = |facts: &mut Facts| {
        let ppp0 = DeviceFacts {
            name: "ppp0".into(),
            below: vec!["eth0".into()],
            sent: 0,
            ..facts.devices[0].clone()
        };
        facts.devices.push(ppp0);
        shaper_of(facts, 3).rate_bps = Some(8 * MBIT);
        // Less than half of it: nothing is reported about who limits.
        shaper_of(facts, 3).classes.clear();
    };
    let words = "shaped to 8.0 Mbit/s and then again by eth0 beneath it to 10.0 Mbit/s";
    assert_found("two shapers", twice, &[("double-shaping", Warning, words)]);
    let at_once = |facts: &mut Facts| {
        shaper_of(facts, 0).backend = "user".into();
        shaper_of(facts, 0).beneath_bps = Some(9 * MBIT);
    };
    let words = "by tidegate's daemon to 10.0 Mbit/s and then by the kernel's qdisc to 9.0 Mbit/s";
    assert_found("both back ends", at_once, &[("double-shaping", Warning, words)]);
    let frames = |facts: &mut Facts| {
        let below = vec!["eth0".into()];
        facts.devices.push(DeviceFacts {
            name: "ppp0".into(),
            is_ppp: true,
            below,
            ..DeviceFacts::default()
        });
        facts.default_routes = vec!["ppp0".into()];
    };
    assert_found(
        "PPPoE",
        frames,
        &[("frames-of-ppp", Bad, "eth0 carries ppp0's packets inside PPPoE frames")],
    );
    let member = |facts: &mut Facts| facts.devices[0].master = Some("br0".into());
    assert_found("a bridge", member, &[("bridge-member", Note, "eth0 is a member of br0")]);
    let elsewhere = |facts: &mut Facts| {
        facts.default_routes = vec!["eth1".into()];
        facts.devices[1].shaper = None;
        facts.devices[0].inwards = Inwards::Plain;
        facts.devices[2].sent = 50_000_000;
    };
    let words = "packets leave by eth1 (default route): 400.0 Mbit/s there and 9.6 Mbit/s by eth0";
    assert_found("another route", elsewhere, &[("wrong-device", Bad, words)]);
    let nothing = |facts: &mut Facts| facts.devices.iter_mut().for_each(|device| device.shaper = None);
    assert_found("nothing is shaped", nothing, &[("not-shaped", Warning, "packets leave by eth0")]);
}

#[test]
fn what_comes_in_and_what_goes_around() {
    let plain = |facts: &mut Facts| {
        facts.devices[0].inwards = Inwards::Plain;
        facts.devices.remove(1);
    };
    let words = "what arrives there (32.0 Mbit/s now) is not";
    assert_found("nobody shapes the download", plain, &[("download-unshaped", Warning, words)]);
    let lan = |facts: &mut Facts| {
        facts.devices[0].inwards = Inwards::Plain;
        facts.devices[1].name = "lan0".into();
    };
    assert_found("shaped towards the LAN", lan, &[]);
    let soft = |facts: &mut Facts| facts.flow_tables = flow_table("eth0", false);
    let words = "the flow table inet filter fast forwards known connections of eth0 past the chains";
    assert_found("past the chains", soft, &[("flow-offload", Warning, words)]);
    let hard = |facts: &mut Facts| facts.flow_tables = flow_table("eth0", true);
    assert_found("through the hardware", hard, &[("flow-offload", Bad, "no qdisc sees them")]);
    assert_found("between others", |facts| facts.flow_tables = flow_table("eth1", true), &[]);
}

#[test]
fn who_limits() {
    let words = "eth0 carried 8.0 Mbit/s, which is less than the 10.0 Mbit/s";
    assert_found("loaded", |facts| carries(facts, 1_000_000), &[("bottleneck-elsewhere", Bad, words)]);
    let bursts = |facts: &mut Facts| {
        carries(facts, 1_000_000);
        shaper_of(facts, 0).overlimits = 60;
    };
    let words = "its packets had to wait 60 times out of 1200";
    assert_found("but for bursts", bursts, &[("bottleneck-elsewhere", Bad, words)]);
    let often = move |facts: &mut Facts| {
        bursts(facts);
        shaper_of(facts, 0).overlimits = 61;
    };
    assert_found("often", often, &[]);
    assert_found("as fast as it may", |facts| carries(facts, 1_230_000), &[]);
    let never = |facts: &mut Facts| shaper_of(facts, 0).overlimits_ever = 0;
    assert_found("never", never, &[("never-waited", Warning, "has sent 200000 packets")]);
    let mut idle = healthy();
    carries(&mut idle, 1000);
    idle.unknown = vec!["something was not looked at".into()];
    let (findings, caveats) = evaluate(&idle);
    assert_eq!((findings, caveats.len()), (Vec::new(), 2));
    assert!(caveats[0].starts_with("eth0 carried 8.0 kbit/s of 10.0 Mbit/s"), "{caveats:?}");
}

#[test]
fn classes_and_the_policy_itself() {
    let empty = |facts: &mut Facts| shaper_of(facts, 0).classes[1].packets_ever = Some(0);
    assert_found("all in one", empty, &[("class-never-hit", Warning, "everything is in one class")]);
    let third = move |facts: &mut Facts| {
        empty(facts);
        shaper_of(facts, 0).classes.push(ShaperClass {
            id: "1:30".into(),
            is_leaf: true,
            packets_ever: None,
        });
    };
    assert_found("one is empty", third, &[("class-never-hit", Note, "none was in 1:10")]);
    let early = move |facts: &mut Facts| {
        empty(facts);
        shaper_of(facts, 0).packets_ever = 900;
    };
    assert_found("too early to say", early, &[]);
    let policy = |facts: &mut Facts| {
        facts.starved = vec!["ARP would not get through eth0: it is lost".into()];
        facts.checked =
            (vec![("R3".into(), "a rate above its ceil".into()), ("R13".into(), "no limit".into())], 4);
    };
    let expected = [
        ("control-plane", Bad, "ARP would not get through"),
        ("check", Warning, "R3: a rate above its ceil; 3 more (R13)"),
    ];
    assert_found("what the policy means", policy, &expected);
}

#[test]
fn processors() {
    let busy = |facts: &mut Facts| facts.processors.push(Processor { number: 1, softirq: 0.93, busy: 1.0 });
    assert_found("busy", busy, &[("cpu-saturated", Bad, "processor 1 spent 93 %")]);
    assert_found(
        "lost",
        |facts| facts.softnet.dropped = 7,
        &[("softnet-dropped", Bad, "7 of 100000 packets")],
    );
    assert_found(
        "cut short",
        |facts| facts.softnet.squeezed = 200,
        &[("softnet-squeezed", Note, "200 times")],
    );
}

#[test]
fn ecn_on_the_way() {
    let way = [("192.0.2.1", 0x8a), ("192.0.2.2", 0x88)];
    let cleared = |facts: &mut Facts| facts.ecn = ecn(Some(0x88), &way);
    assert_found("by a router", cleared, &[("ecn-bleached", Warning, "cleared at or before 192.0.2.2")]);
    let answer = |field: Option<u8>| move |facts: &mut Facts| facts.ecn = ecn(field, &way[..1]);
    assert_found("as it was sent", answer(Some(0x8a)), &[]);
    assert_found("nobody tells", answer(None), &[]);
    assert_found("a field of its own tells nothing of the way", answer(Some(0)), &[]);
    let words = "cleared on the way to far or back";
    assert_found("the code point came back alone", answer(Some(0x88)), &[("ecn-bleached", Warning, words)]);
    assert_found("marked", answer(Some(0x8b)), &[("ecn-bleached", Note, "mark of congestion")]);
}

#[test]
fn the_way_out_goes_down_to_the_hardware_and_ends() {
    let mut facts = Facts { default_routes: vec!["ppp0".into()], ..Facts::default() };
    for (name, below) in
        [("ppp0", vec!["vlan7"]), ("vlan7", vec!["eth0"]), ("eth0", vec!["ppp0"]), ("eth1", vec![])]
    {
        let below = below.into_iter().map(str::to_owned).collect();
        facts.devices.push(DeviceFacts { name: name.into(), below, ..DeviceFacts::default() });
    }
    let out: Vec<&str> = facts.outwards().iter().map(|device| device.name.as_str()).collect();
    assert_eq!(out, ["ppp0", "vlan7", "eth0"]);
}
