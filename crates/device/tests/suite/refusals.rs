//! Refusals: place, reason, remedy.

use crate::{LINK, device, packet};
use std::net::SocketAddr;
use tidegate_device::{
    EgressConfig, EgressDevice, Error, MAX_COMMANDS, MAX_STEP, MAX_TIME, OfferedPacket, PacketFields, Time,
};

#[test]
fn commands_are_refused_with_place_reason_and_remedy() {
    let table = [
        (
            "qdisc add dev eth0 root handle 1: fq_codel\n\ntc qdisc add dev eth0 root handle 2: sfq",
            "line 3: `tc qdisc add dev eth0 root handle 2: sfq`: Error: NLM_F_REPLACE needed to override.\n\
            There is a qdisc already; delete it first (tc qdisc del dev eth0 …), write replace instead of add, \
            which deletes it with all below it, or give this one a parent of its own.",
        ),
        (
            "tc qdisc add dev eth1 root fq_codel",
            "line 1: `tc qdisc add dev eth1 root fq_codel`: there is no device eth1, only eth0\n\
            Write `dev eth0`, or configure the device with the name eth1.",
        ),
        (
            "# a comment\ntc qdisc add dev eth0 ingress",
            "line 2: `tc qdisc add dev eth0 ingress`: nothing arrives at this device: it only sends\n\
            Make a second device for the other direction, and give it these qdiscs as its root.",
        ),
        (
            "class add dev eth0 parent 1: classid 1:1 htb rate 1mbit",
            "line 1: `class add dev eth0 parent 1: classid 1:1 htb rate 1mbit`: \
            RTNETLINK answers: No such file or directory\n\
            There is no qdisc 1: on eth0; add it first: tc qdisc add dev eth0 root handle 1: KIND.",
        ),
        (
            "iptables -t mangle -A OUTPUT -j MARK --set-mark 5",
            "line 1: `iptables -t mangle -A OUTPUT -j MARK --set-mark 5`: iptables is not tc\n\
            Only tc's commands are carried out; mtu and queue length are in the configuration.",
        ),
        (
            "tc -batch policy.txt",
            "line 1: `tc -batch policy.txt`: no command: options alone, or a batch\n\
            Give the commands themselves, one on each line.",
        ),
        (
            "tc monitor",
            "line 1: `tc monitor`: there is nothing to wait for\n\
            Drops are reported one by one; listings show counters.",
        ),
        (
            "qdisc show\n qdisc add dev \"eth0 root\nqdisc show",
            "line 2: `qdisc add dev \"eth0 root`: Unterminated quoted string\n\
            Line 2 opens a quote and does not close it.",
        ),
        (
            "tc",
            "line 1: `tc`: no command: options alone, or a batch\nGive the commands themselves, one on each line.",
        ),
    ];
    for (commands, wanted) in table {
        let error = EgressDevice::new(&EgressConfig::default(), commands).expect_err(commands);
        assert_eq!(error.to_string(), wanted);
    }
    let unknown = EgressDevice::new(&EgressConfig::default(), "qdisc add dev eth0 root fq_kodel");
    let text = unknown.expect_err("no kind").to_string();
    assert!(text.contains("There is no kind \"fq_kodel\" here; did you mean fq_codel?"), "{text}");
    let long = "\n".repeat(MAX_COMMANDS + 1);
    let error = EgressDevice::new(&EgressConfig::default(), &long).expect_err("it is too long");
    assert_eq!(
        error.to_string(),
        "commands: 1048577 bytes, at most 1048576 are read at once: give them in several calls"
    );
}

#[test]
fn commands_before_the_refused_one_were_carried_out() {
    let mut device = device("qdisc add dev eth0 root handle 1: pfifo limit 5");
    let refused =
        device.tc(Time(1), "qdisc change dev eth0 root pfifo limit 7\nqdisc del dev eth0 parent 9:\n");
    assert!(matches!(refused, Err(Error::Command { line: 2, .. })), "{refused:?}");
    let shown = device.tc(Time(1), "qdisc show dev eth0").expect("a listing").listing;
    assert_eq!(shown, "qdisc pfifo 1: root refcnt 2 limit 7p\n");
}

#[test]
fn warnings_name_their_line() {
    let device = EgressDevice::new(&EgressConfig::default(), "qdisc add dev eth0 root handle 1: htb");
    let add = "\nclass add dev eth0 parent 1: classid 1:1 htb rate 10gbit";
    let warnings = device.expect("a device").tc(Time(0), add).expect("it is accepted").warnings;
    let [warning] = &warnings[..] else { panic!("{warnings:?}") };
    assert!(warning.starts_with("line 2: `class add dev eth0 parent 1: "), "{warning}");
    assert!(warning.contains("quantum of class 10001 is big"), "{warning}");
}

#[test]
fn packets_that_cannot_exist_are_refused() {
    let v4: SocketAddr = ([192, 0, 2, 1], 1).into();
    let v6: SocketAddr = ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 1).into();
    let fields = |from, to| PacketFields::udp(from, to);
    let table = [
        (
            OfferedPacket::from_fields(1, fields(v4, v4), 14),
            "a length of 14 bytes; this device has 15 to 65549",
        ),
        (
            OfferedPacket::from_fields(1, fields(v4, v4), 65_550),
            "a length of 65550 bytes; this device has 15 to 65549",
        ),
        (
            OfferedPacket::from_fields(1, fields(v4, v4), 14 + 27),
            "an IP packet of 27 bytes; its headers alone have 28",
        ),
        (
            OfferedPacket::from_fields(1, fields(v6, v6), 14 + 47),
            "an IP packet of 47 bytes; its headers alone have 48",
        ),
        (
            OfferedPacket::from_fields(1, fields(v4, v6), 1000),
            "from 192.0.2.1 to 2001:db8::1: not one IP version",
        ),
        (OfferedPacket::from_bytes(1, &[0; 60], 59), "60 bytes of header in a packet of 59"),
        (OfferedPacket::from_bytes(1, &[0; 14], 59), "14 bytes of header; give 15 and more, or addresses"),
    ];
    let mut device = device("");
    for (packet, wanted) in table {
        let error = device.offer(Time(0), &packet).expect_err(wanted);
        assert_eq!(error.to_string(), format!("packet: {wanted}"));
    }
    // Nothing was taken.
    assert_eq!((device.stats().offered, device.poll(Time(0)).expect("in time").is_none()), (0, true));
}

#[test]
fn time_does_not_go_back() {
    let mut device = device("");
    assert!(device.poll(Time(5)).is_ok());
    let text = |error: Error| error.to_string();
    assert_eq!(
        device.poll(Time(4)).map_err(text).expect_err("it is earlier"),
        "time: 4 ns is before 5 ns, the time of the latest call: give events in the order of their time"
    );
    assert!(device.offer(Time::NEVER, &packet(1, 1, 100)).is_err());
    assert!(device.tc(Time(4), "qdisc show").is_err());
    assert_eq!(
        device.poll(MAX_TIME).map_err(text).expect_err("it is far away"),
        "time: 4611686018427387904 ns is more than an hour after 5 ns, the time of the latest call: poll at least \
        once an hour, or set `start` in the configuration if this is the first call"
    );
    // So many SFQs that change their keys every second.
    let one = |n: u32| {
        format!(
            "class add dev eth0 parent 1: classid 1:{n:x} drr\nqdisc add dev eth0 parent 1:{n:x} sfq perturb 1\n"
        )
    };
    device.tc(Time(5), "qdisc add dev eth0 root handle 1: drr").expect("a qdisc");
    device.tc(Time(5), &(1..=20).map(one).collect::<String>()).expect("classes");
    let error = device.poll(Time(5) + MAX_STEP).map_err(text).expect_err("they are many");
    assert!(
        error.starts_with(
            "time: more than 65536 timers of qdiscs are due before 3600000000005 ns; those until 3"
        ),
        "{error}"
    );
    // The rest of them.
    assert!(device.poll(Time(5) + MAX_STEP).is_ok());
}

#[test]
fn what_it_holds_has_a_limit() {
    let config = EgressConfig { rate: Some(LINK), packets: 2, ..EgressConfig::default() };
    let mut device = EgressDevice::new(&config, "qdisc add dev eth0 root pfifo limit 100").expect("a device");
    for id in 0..2 {
        assert!(device.offer(Time(0), &packet(id, 1, 100)).is_ok());
    }
    assert_eq!(device.offer(Time(0), &packet(2, 1, 100)), Err(Error::Full { limit: 2 }));
    // Drops that are not read.
    let mut device = EgressDevice::new(&config, "qdisc add dev eth0 root blackhole").expect("a device");
    for id in 0..2 {
        assert!(device.offer(Time(0), &packet(id, 1, 100)).is_ok());
    }
    let refused = device.offer(Time(0), &packet(2, 1, 100));
    assert_eq!(refused, Err(Error::UnreadDrops { unread: 2 }));
    assert_eq!(std::iter::from_fn(|| device.next_drop()).count(), 2);
    assert!(device.offer(Time(0), &packet(2, 1, 100)).is_ok());
}
