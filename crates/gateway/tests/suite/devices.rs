//! Devices as their drivers set them up, and how they are listed afterwards.

use crate::words::{Machine, udp};
use tidegate_gateway::{DeviceKind, DeviceSpec, EgressPath, Gateway, Switches, XmitStatus};
use tidegate_packet::{Dissector, Handle, KernelModel, LinuxVersion};
use tidegate_policy::{LinkDriver, LinkOp, Op, RawLink, Tunnel, TunnelMode};

/// As `ip -d link` and `/sys/class/net/DEV` show new devices: MTU, transmit queue, link header, queue of
/// their own, speed. A tunnel's MTU is 1500 less what it puts before a packet: 20, 24, 48, and 38 with an
/// Ethernet header inside.
#[test]
fn new_devices_are_as_their_drivers_make_them() {
    use DeviceKind::{Bridge, Dummy, Ethernet, Ifb, Loopback, PointToPoint, Raw, Tunnel as Tunnels, Vlan};
    let tunnel = |mode| LinkDriver::Tunnel(Tunnel::unsaid(mode));
    let table = [
        (LinkDriver::Ethernet, Ethernet, 1500, 1000, 14, false, Some(1000)),
        (LinkDriver::Loopback, Loopback, 65_536, 1000, 14, true, None),
        (LinkDriver::Dummy, Dummy, 1500, 1000, 14, true, None),
        (LinkDriver::Ifb, Ifb, 1500, 32, 14, false, None),
        (LinkDriver::Bridge, Bridge, 1500, 1000, 14, true, None),
        (LinkDriver::Veth { peer: "v1".into() }, Ethernet, 1500, 1000, 14, true, Some(10_000)),
        (LinkDriver::PointToPoint, PointToPoint, 1492, 3, 0, false, None),
        (LinkDriver::Raw(RawLink::Wireguard), Raw, 1420, 1000, 0, true, None),
        (LinkDriver::Raw(RawLink::Tun), Raw, 1500, 500, 0, false, None),
        (LinkDriver::Raw(RawLink::Wwan), Raw, 1500, 1000, 0, false, None),
        (LinkDriver::Vlan { lower: "eth0".into(), id: 1 }, Vlan, 1500, 1000, 14, true, Some(1000)),
        (tunnel(TunnelMode::Ipip), Tunnels, 1480, 1000, 0, true, None),
        (tunnel(TunnelMode::Sit), Tunnels, 1480, 1000, 0, true, None),
        (tunnel(TunnelMode::Gre), Tunnels, 1476, 1000, 0, true, None),
        (tunnel(TunnelMode::Gretap), Tunnels, 1462, 1000, 14, true, None),
        (tunnel(TunnelMode::Ip6tnl), Tunnels, 1452, 1000, 0, true, None),
    ];
    for (link, kind, mtu, tx_queue_len, link_header, queueless, speed_mbit) in table {
        let common = DeviceSpec { tx_queues: 1, hz: 250, ..DeviceSpec::default() };
        let wanted = DeviceSpec { kind, mtu, tx_queue_len, link_header, queueless, speed_mbit, ..common };
        assert_eq!(DeviceSpec::of(&link), wanted, "{link:?}");
    }
}

/// Qdiscs take a device's later settings: pfifo's limit is the queue's length, DRR's quantum and fq_codel's
/// the largest frame.
#[test]
fn disciplines_go_by_what_a_device_is_now() {
    let mut machine = Machine::new(&["eth0"]);
    let eth0 = machine.id("eth0");
    let dev = || String::from("eth0");
    assert_eq!(machine.op(&Op::TxQueueLen { dev: dev(), packets: 77 }), "");
    assert_eq!(machine.op(&Op::Mtu { dev: dev(), bytes: 900 }), "");
    assert_eq!(machine.op(&Op::Ring { dev: dev(), frames: 64 }), "");
    let spec = machine.gateway.spec(eth0);
    assert_eq!((spec.tx_queue_len, spec.mtu, spec.ring, spec.hz), (77, 900, 64, 250));
    machine.run("tc qdisc add dev eth0 root handle 1: pfifo");
    assert_eq!(machine.answer("tc qdisc show dev eth0"), "qdisc pfifo 1: root refcnt 2 limit 77p\n");
    machine.run("tc qdisc replace dev eth0 root handle 2: fq_codel");
    assert!(machine.answer("tc qdisc show dev eth0").contains(" quantum 914 "));
    for op in [Op::TxQueueLen { dev: "eth9".into(), packets: 1 }, Op::Ring { dev: "eth9".into(), frames: 1 }]
    {
        assert_eq!(machine.op(&op), "Error: Cannot find device.");
    }
}

#[test]
fn a_new_device_has_the_switches_of_the_machine() {
    let mut machine = Machine::new(&["eth0"]);
    machine.gateway.switch(|switches| switches.no_bypass = true);
    machine.run("ip link add ifb0 type ifb");
    machine.run("ip link add veth0 type veth peer name veth1");
    let no_bypass = Switches { no_bypass: true, ..Switches::default() };
    for name in ["eth0", "ifb0", "veth0", "veth1"] {
        assert_eq!(machine.gateway.spec(machine.id(name)).switches, no_bypass, "{name}");
    }
    machine.gateway.switch(|switches| switches.no_bypass = false);
    assert_eq!(machine.gateway.spec(machine.id("veth1")).switches, Switches::default());
}

#[test]
fn transmit_queues_are_for_devices_without_a_queue_of_their_own() {
    let mut machine = Machine::new(&["eth0"]);
    machine.run("ip link add dummy0 type dummy");
    let mut count_of = |name: &str, count| {
        let op = Op::Link(LinkOp::TxQueues { name: name.into(), count });
        let answer = machine.op(&op);
        (answer, machine.gateway.device(name).map(|id| machine.gateway.spec(id).tx_queues))
    };
    assert_eq!(count_of("dummy0", 4), (String::new(), Some(4)));
    assert_eq!(count_of("dummy0", 0), (String::new(), Some(1)));
    assert_eq!(count_of("eth0", 4), (String::new(), Some(1)));
    assert_eq!(count_of("eth9", 4), (String::from("RTNETLINK answers: No such device"), None));
}

#[test]
fn links_that_cannot_be() {
    let mut machine = Machine::new(&["eth0"]);
    let add = |name: &str, kind| Op::Link(LinkOp::Add { name: name.into(), kind });
    let veth = |peer: &str| LinkDriver::Veth { peer: peer.into() };
    let exists = "RTNETLINK answers: File exists";
    assert_eq!(machine.op(&add("v0", veth("v0"))), exists);
    assert_eq!(machine.op(&add("v0", veth("eth0"))), exists);
    assert_eq!(machine.gateway.devices().count(), 1);
    assert_eq!(machine.op(&add("eth0.7", LinkDriver::Vlan { lower: "eth0".into(), id: 7 })), "");
    assert_eq!(machine.gateway.beneath(machine.id("eth0.7")), Some(machine.id("eth0")));
    let eth0 = machine.id("eth0");
    assert_eq!(
        machine.gateway.add_device("eth0", DeviceSpec::of(&LinkDriver::Ifb)),
        eth0,
        "it is there already"
    );
    assert_eq!(machine.gateway.spec(eth0).kind, DeviceKind::Ethernet);
}

#[test]
fn what_waits_is_counted_until_it_is_sent() {
    let mut machine = Machine::new(&["eth0", "eth1"]);
    let (eth0, eth1) = (machine.id("eth0"), machine.id("eth1"));
    assert!(!machine.gateway.is_configured(eth0));
    machine.run("tc qdisc add dev eth0 root handle 1: pfifo limit 3");
    assert_eq!([eth0, eth1].map(|id| machine.gateway.is_configured(id)), [true, false]);
    let mut offers = Vec::new();
    for n in 1..=4 {
        let pkt = machine.insert(udp(("10.0.0.2", n), ("10.9.0.3", 2), 0), 114);
        offers.push(machine.offer("eth0", EgressPath::Direct, pkt));
        assert_eq!((machine.gateway.qlen(eth0), machine.gateway.qlen(eth1)), (u32::from(n.min(3)), 0));
    }
    assert_eq!(offers, [XmitStatus::Queued, XmitStatus::Queued, XmitStatus::Queued, XmitStatus::Refused]);
    let waiting = machine.gateway.waiting(eth0);
    assert_eq!(waiting.len(), 1);
    let order: Vec<u16> = std::iter::from_fn(|| machine.sends("eth0")).map(|seen| seen.source.1).collect();
    assert_eq!((order, machine.gateway.qlen(eth0), machine.live()), (vec![1, 2, 3], 0, 0));
}

/// The next change of a hash key is the earliest of all devices, and changes only that one's.
#[test]
fn the_hash_key_that_is_due_first_changes_first() {
    let mut machine = Machine::new(&["eth0", "eth1"]);
    assert_eq!(machine.gateway.perturb_due(), tidegate_packet::Time::NEVER);
    machine.run("tc qdisc add dev eth0 root handle 1: sfq perturb 20");
    let first = machine.gateway.perturb_due();
    machine.run("tc qdisc add dev eth1 root handle 1: sfq perturb 10");
    let second = machine.gateway.perturb_due();
    assert!(second < first && second.0 >= 10_000_000_000, "{first:?} {second:?}");
    machine.now = second;
    let (gateway, world) = machine.world();
    gateway.perturb(world);
    // The other's stays at 20 s; that one's comes ten seconds after it was.
    assert!(machine.gateway.perturb_due() > second && machine.gateway.perturb_due() <= first);
}

#[test]
fn a_gateway_knows_how_far_its_kernel_looks() {
    let mut gateway = Gateway::new();
    for dissector in [Dissector::Legacy, Dissector::Modern] {
        gateway.set_kernel(KernelModel { dissector, ..KernelModel::default() });
        assert_eq!(gateway.kernel().dissector, dissector);
    }
    assert_eq!([false, true, true].map(|defers| gateway.defer_releases(defers)), [false, false, true]);
}

/// A machine has one kernel: what was there and what comes follow it, whatever their specs say.
#[test]
fn devices_follow_the_machine_s_kernel() {
    let newer = LinuxVersion::V7_2;
    let mut gateway = Gateway::new();
    let switches = Switches { linux: newer, ..Switches::default() };
    let own = gateway.add_device("eth0", DeviceSpec { switches, ..DeviceSpec::default() });
    let linux = |gateway: &Gateway, id| gateway.spec(id).switches.linux;
    assert_eq!(linux(&gateway, own), newer);
    gateway.set_kernel(KernelModel::default());
    assert_eq!(linux(&gateway, own), LinuxVersion::V6_1);
    gateway.set_kernel(KernelModel { linux: newer, ..KernelModel::default() });
    let later = gateway.add_device("eth1", DeviceSpec::default());
    assert_eq!([own, later].map(|id| linux(&gateway, id)), [newer; 2]);
}

/// Linux names chains oldest first, and 0 is the one that packets are shown first.
#[test]
fn chains_are_listed_oldest_first() {
    let mut machine = Machine::new(&["eth0"]);
    machine.run(
        "tc qdisc add dev eth0 root handle 1: prio
         tc filter add dev eth0 parent 1: chain 7 pref 1 protocol ip matchall classid 1:1
         tc filter add dev eth0 parent 1: pref 1 protocol ip matchall classid 1:2
         tc chain add dev eth0 parent 1: chain 3",
    );
    let (eth0, root) = (machine.id("eth0"), Handle::new(1, 0));
    assert_eq!(machine.gateway.chains(eth0, root).expect("there"), (root, vec![7, 0, 3]));
    machine.run("tc chain del dev eth0 parent 1: chain 7");
    assert_eq!(machine.gateway.chains(eth0, root).expect("there").1, [0, 3]);
    assert!(machine.gateway.chains(eth0, Handle::new(9, 0)).is_err());
    assert_eq!(machine.gateway.own_filters(machine.now, eth0, root).expect("there").len(), 1 + 1);
}

/// What Linux 6.1 and 7.2 answer to a qdisc below the hooks.
#[test]
fn no_qdisc_is_attached_below_ingress_and_clsact() {
    const UNSAID: &str = "RTNETLINK answers: Operation not supported";
    const NO_CLASS: &str = "Error: Specified class not found.";
    const SAID: &str = "Error: Cannot add children to ingress/clsact qdisc.";
    let absent = "Error: Qdisc not found. To create specify NLM_F_CREATE flag.";
    let rows = [
        ("eth0", "add", "ffff: sfq", UNSAID),
        ("eth0", "add", "ffff:1 sfq", UNSAID),
        ("eth0", "replace", "ffff: handle 5: htb", UNSAID),
        ("eth0", "change", "ffff: handle 5: htb", absent),
        ("eth1", "add", "ffff: sfq", NO_CLASS),
        ("eth1", "add", "ffff:fff2 sfq", UNSAID),
        ("eth1", "replace", "ffff:fff3 pfifo", UNSAID),
    ];
    for linux in [LinuxVersion::V6_1, LinuxVersion::V7_2] {
        let mut machine = Machine::new(&["eth0", "eth1"]);
        machine.gateway.set_kernel(KernelModel { linux, ..KernelModel::default() });
        let before = machine.answer("tc qdisc add dev eth0 parent ffff: sfq");
        assert_eq!(before, "Error: Failed to find specified qdisc.");
        machine.run("tc qdisc add dev eth0 ingress\ntc qdisc add dev eth1 clsact");
        for (dev, verb, what, in_6_1) in rows {
            let answer = machine.answer(&format!("tc qdisc {verb} dev {dev} parent {what}"));
            assert_eq!(answer, if linux == LinuxVersion::V6_1 { in_6_1 } else { SAID }, "{dev} {what}");
        }
    }
}

/// Linux 6.1 and 7.2: an address of which no bit is compared fits nothing, unless of another one some are.
/// The order of a filter's words does not matter for what is compared, and a filter that compares nothing
/// takes all.
#[test]
fn what_flower_makes_of_keys_that_compare_nothing() {
    let lost = |keys: &str| {
        let mut machine = Machine::new(&["eth0"]);
        machine.run("tc qdisc add dev eth0 clsact");
        machine.run(&format!("tc filter add dev eth0 egress protocol ip prio 1 flower {keys} action drop"));
        let head = udp(("10.0.0.2", 4000), ("203.0.113.7", 53), 0);
        machine.passes(EgressPath::Direct, "eth0", head).is_none()
    };
    for (keys, drops) in [
        ("", true),
        ("dst_ip 0.0.0.0/0", false),
        ("src_ip default ip_proto udp", false),
        ("dst_ip 0.0.0.0/0 src_ip 10.0.0.2", true),
        ("dst_ip 0.0.0.0/0 src_ip 10.0.0.3", false),
        ("ip_proto udp dst_port 80/0", true),
        ("ip_tos 4/0", true),
        ("tcp_flags 2 ip_proto udp", true),
        ("tcp_flags 2 ip_proto tcp", false),
    ] {
        assert_eq!(lost(keys), drops, "{keys}");
    }
}

/// What Linux 6.1 and 7.2 answer to commands about classes of the hooks.
#[test]
fn no_class_is_made_below_ingress_and_clsact() {
    const EXISTS: &str = "RTNETLINK answers: File exists";
    const UNSUPPORTED: &str = "RTNETLINK answers: Operation not supported";
    const ABSENT: &str = "RTNETLINK answers: No such file or directory";
    let mut machine = Machine::new(&["eth0", "eth1"]);
    machine.run("tc qdisc add dev eth0 ingress\ntc qdisc add dev eth1 clsact");
    let rows = [
        ("eth0", "ffff:1", [EXISTS, UNSUPPORTED, UNSUPPORTED, UNSUPPORTED]),
        ("eth1", "ffff:1", [UNSUPPORTED, ABSENT, UNSUPPORTED, ABSENT]),
        ("eth1", "ffff:fff2", [EXISTS, UNSUPPORTED, UNSUPPORTED, UNSUPPORTED]),
    ];
    for (dev, class, expected) in rows {
        let of = |(verb, answer): (&str, &str)| {
            let options = if verb == "del" { "" } else { "htb rate 1mbit" };
            let line = format!("tc class {verb} dev {dev} parent ffff: classid {class} {options}");
            (line, answer.to_owned())
        };
        for (line, answer) in ["add", "change", "replace", "del"].into_iter().zip(expected).map(of) {
            assert_eq!(machine.answer(line.trim()), answer, "{line}");
        }
    }
}

/// The filters of an ingress qdisc are one list, whatever class of it is named; a clsact has two, and no
/// other class. Linux 6.1's answers.
#[test]
fn ingress_has_one_list_and_clsact_two() {
    let mut machine = Machine::new(&["eth0", "eth1"]);
    let filter = |dev: &str, parent: &str, pref: u32| {
        format!("tc filter add dev {dev} parent {parent} protocol ip pref {pref} matchall action drop")
    };
    machine.run("tc qdisc add dev eth0 ingress\ntc qdisc add dev eth1 clsact");
    for (pref, parent) in ["ffff:fff1", "ffff:", "ffff:fff3", "ffff:5"].into_iter().enumerate() {
        machine.run(&filter("eth0", parent, pref as u32 + 1));
    }
    // tc lists them all under the class that was named last.
    let listed = machine.answer("tc filter show dev eth0 parent ffff:");
    let firsts =
        listed.lines().filter(|line| line.starts_with("filter parent ffff:5 ") && line.contains("handle"));
    assert_eq!(firsts.count(), 4, "{listed}");
    let (eth0, hook) = (machine.id("eth0"), Handle::new(0xffff, 0));
    let own = machine.gateway.own_filters(machine.now, eth0, hook).expect("there");
    assert!(!own.is_empty() && own.iter().all(|dump| dump.parent == hook), "{own:?}");
    assert_eq!(machine.answer(&filter("eth1", "ffff:", 1)), "RTNETLINK answers: Invalid argument");
    for parent in ["ffff:fff1", "ffff:5", "ffff:fff4"] {
        assert_eq!(
            machine.answer(&filter("eth1", parent, 1)),
            "Error: Specified class doesn't exist.",
            "{parent}"
        );
    }
    machine.run(&filter("eth1", "ffff:fff3", 1));
}
