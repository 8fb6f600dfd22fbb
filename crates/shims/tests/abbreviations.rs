//! Words of tc that may be cut short, and handles: asked of tc 6.1 on Linux 6.1.

use tidegate_gateway::DeviceSpec;
use tidegate_packet::{Pool, Seeded};
use tidegate_shims::Machine;

/// What tc prints and returns for each command, on one machine with `link0`.
fn said(lines: &[String]) -> Vec<String> {
    let mut machine = Machine::new(["link0"], DeviceSpec::default());
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    let mut tc = |line: &String| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let reply = machine.shim(&mut pool, &mut draws).tc(&words, None);
        let text = String::from_utf8_lossy(&[reply.stdout, reply.stderr].concat()).into_owned();
        format!("{} {}", reply.code, text.trim_end())
    };
    lines.iter().map(&mut tc).collect()
}

#[test]
fn options_of_netem_may_be_cut_short() {
    for (options, listed) in [
        ("d 1ms", "delay 1ms"),
        ("del 1ms", "delay 1ms"),
        ("delay 5ms 1ms di normal", "delay 5ms  1ms"),
        ("lo 1%", "loss 1%"),
        ("li 10", "limit 10"),
        ("c 1%", "corrupt 1%"),
        ("du 1%", "duplicate 1%"),
        ("ra 1mbit", "rate 1Mbit"),
        ("delay 5ms re 1%", "reorder 1% gap 1"),
        ("delay 5ms reorder 5% g 3", "reorder 5% gap 3"),
        ("s 1ms", "slot 1ms 1ms"),
        ("loss 1% e", "loss 1% ecn"),
        ("lat 1ms", "delay 1ms"),
        ("dr 1%", "loss 1%"),
    ] {
        let lines = [format!("qdisc add dev link0 root netem {options}"), "qdisc show dev link0".to_owned()];
        let found = said(&lines);
        assert!(found[0] == "0 " && found[1].ends_with(listed), "{options}: {found:?}");
    }
    let refused = said(&["qdisc add dev link0 root netem l 1%".to_owned()]);
    assert!(refused[0].starts_with("1 Illegal \"limit\""), "{refused:?}");
}

#[test]
fn keys_of_flow_may_be_cut_short() {
    for (keys, listed) in [
        ("s", "src"),
        ("sr,ds", "src,dst"),
        ("nfct-", "nfct-src"),
        ("nfct-proto", "nfct-proto-src"),
        ("nfct-proto-d", "nfct-proto-dst"),
        ("p", "proto"),
        ("rt", "rt-classid"),
        ("sk", "sk-uid"),
        ("v", "vlan-tag"),
        ("proto-", "proto-src"),
    ] {
        let add = format!(
            "filter add dev link0 parent 1: handle 1 pref 5 protocol ip flow hash keys {keys} divisor 1024"
        );
        let lines =
            ["qdisc add dev link0 root handle 1: prio".to_owned(), add, "filter show dev link0".to_owned()];
        let found = said(&lines);
        assert!(found[1] == "0 " && found[2].contains(&format!("keys {listed} ")), "{keys}: {found:?}");
    }
}

/// basic, matchall and cgroup take the number that a handle begins with; others want nothing behind it.
#[test]
fn handles_are_read_as_far_as_they_are_numbers() {
    let filter = |handle: &str, kind: &str| {
        let add = format!("filter add dev link0 parent 1: pref 5 handle {handle} protocol ip {kind}");
        let lines =
            ["qdisc add dev link0 root handle 1: prio".to_owned(), add, "filter show dev link0".to_owned()];
        said(&lines)
    };
    for (handle, listed) in
        [("ffff:1", "0x1"), ("1:2", "0x1"), ("5:", "0x5"), ("abc", "0x1"), ("010", "0x8"), ("::5", "0x1")]
    {
        for kind in ["matchall flowid 1:1", "basic match u32(u32 0 0 at 0) flowid 1:1"] {
            let found = filter(handle, kind);
            assert!(
                found[1] == "0 " && found[2].contains(&format!("handle {listed} ")),
                "{handle}: {found:?}"
            );
        }
        if handle != "010" {
            let refused = &filter(handle, "flower dst_ip 10.0.0.1 flowid 1:1")[1];
            assert!(refused.starts_with("1 Illegal \"handle\""), "{handle}: {refused}");
        }
    }
}

/// Only a handle with its table finds the filter that is there.
#[test]
fn a_number_of_u32_that_is_taken_has_no_place() {
    let filter = |rest: &str| format!("filter {rest}").replace("X", "dev link0 parent 1: pref 9");
    let lines = [
        "qdisc add dev link0 root handle 1: prio".to_owned(),
        filter("add X handle ::55 protocol ip u32 match ip dport 80 0xffff flowid 1:1"),
        filter("add X handle ::55 protocol ip u32 match ip dport 81 0xffff flowid 1:2"),
        filter("add X handle 800::55 protocol ip u32 match ip dport 81 0xffff flowid 1:2"),
        filter("replace X handle ::55 protocol ip u32 match ip dport 81 0xffff flowid 1:2"),
        filter("replace X handle 800::55 protocol ip u32 match ip dport 81 0xffff flowid 1:2"),
        filter("add X handle ::56 protocol ip u32 match ip dport 81 0xffff flowid 1:2"),
    ];
    let codes: Vec<String> =
        said(&lines).iter().map(|text| text.lines().next().unwrap_or_default().to_owned()).collect();
    const NO_SPACE: &str = "2 RTNETLINK answers: No space left on device";
    assert_eq!(codes, ["0 ", "0 ", NO_SPACE, "2 Error: Filter already exists.", NO_SPACE, "0 ", "0 "]);
}
