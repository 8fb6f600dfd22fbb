//! Packets that filters redirect to other devices: the four modes of tc-mirred(8), and devices that are down
//! or gone.

use crate::words::{Machine, udp};
use tidegate_gateway::{EgressPath, ReceiveOutcome, XmitStatus};

fn machine() -> Machine {
    let mut machine = Machine::new(&["eth0", "eth1", "ifb0"]);
    machine.run("tc qdisc add dev eth0 clsact\ntc qdisc add dev eth1 clsact");
    machine
}

fn led(machine: &mut Machine, hook: &str, action: &str) {
    machine.run(&format!("tc filter add dev eth0 {hook} pref 1 protocol ip matchall action mirred {action}"));
}

fn comes(machine: &mut Machine, device: &str) -> ReceiveOutcome {
    let pkt = machine.insert(udp(("10.0.0.2", 1), ("10.9.0.3", 2), 0), 114);
    machine.receive(device, pkt)
}

fn goes(machine: &mut Machine, device: &str) -> XmitStatus {
    let pkt = machine.insert(udp(("10.0.0.2", 1), ("10.9.0.3", 2), 0), 114);
    machine.offer(device, EgressPath::Direct, pkt)
}

/// What came to which device and is to be polled or routed there: `eth1 sends`, `eth1 routed`.
fn found(machine: &mut Machine) -> Vec<String> {
    let mut found = Vec::new();
    for name in ["eth0", "eth1", "ifb0"] {
        let id = machine.id(name);
        if machine.gateway.take_redirect_target_flag(id) {
            found.push(format!("{name} is to be polled"));
        }
        while let Some(pkt) = machine.poll(name) {
            let from = machine.gateway.returned_from(&machine.pool, &pkt);
            let from = from.map(|(from, out)| format!(", led from {} out {out}", machine.gateway.name(from)));
            found.push(format!("{name} sends{}", from.unwrap_or_default()));
            machine.pool.release(pkt);
        }
    }
    while let Some((pkt, by)) = machine.gateway.take_arrived() {
        found.push(format!("routed from {}", machine.gateway.name(by)));
        machine.pool.release(pkt);
    }
    assert_eq!(machine.live(), 0);
    found
}

#[test]
fn what_comes_in_is_led_or_copied() {
    let (polled, sends) = ("is to be polled", "sends");
    let table: [(&str, &str, Vec<String>); 4] = [
        (
            "egress redirect dev ifb0",
            "led to ifb0",
            vec![format!("ifb0 {polled}"), format!("ifb0 {sends}, led from eth0 out false")],
        ),
        ("egress mirror dev ifb0", "passed by eth0", vec![format!("ifb0 {polled}"), format!("ifb0 {sends}")]),
        ("ingress redirect dev eth1", "passed by eth1", vec![]),
        ("ingress mirror dev eth1", "passed by eth0", vec![String::from("routed from eth1")]),
    ];
    for (action, wanted, then) in table {
        let mut machine = machine();
        led(&mut machine, "ingress", action);
        let output = match comes(&mut machine, "eth0") {
            ReceiveOutcome::Passed(pkt, by) => {
                machine.pool.release(pkt);
                format!("passed by {}", machine.gateway.name(by))
            }
            ReceiveOutcome::Redirected(to) => format!("led to {}", machine.gateway.name(to)),
            ReceiveOutcome::Dropped => String::from("lost"),
        };
        assert_eq!((output.as_str(), found(&mut machine)), (wanted, then), "{action}");
    }
}

#[test]
fn what_goes_out_is_led_or_copied() {
    let own = || String::from("eth0 sends");
    let table = [
        (
            "egress redirect dev ifb0",
            XmitStatus::Away,
            vec!["ifb0 is to be polled", "ifb0 sends, led from eth0 out true"],
        ),
        ("egress mirror dev ifb0", XmitStatus::Queued, vec!["ifb0 is to be polled", "ifb0 sends"]),
        ("ingress redirect dev eth1", XmitStatus::Queued, vec!["routed from eth1"]),
        ("ingress mirror dev eth1", XmitStatus::Queued, vec!["routed from eth1"]),
    ];
    for (action, offered, then) in table {
        let mut machine = machine();
        led(&mut machine, "egress", action);
        assert_eq!(goes(&mut machine, "eth0"), offered, "{action}");
        let mut wanted: Vec<String> = if action.contains("mirror") { vec![own()] } else { vec![] };
        wanted.extend(then.into_iter().map(str::to_owned));
        assert_eq!(found(&mut machine), wanted, "{action}");
    }
}

/// The action counts what a device that is down did not take; a copy is dropped alone.
#[test]
fn nothing_is_led_to_a_device_that_is_down() {
    let down = |machine: &mut Machine, never_up: bool| {
        let ifb = machine.id("ifb0");
        if never_up {
            machine.gateway.begin_down(ifb);
        } else {
            let (gateway, world) = machine.world();
            gateway.set_up(world, ifb, false);
        }
    };
    for never_up in [true, false] {
        for (hook, action, passes) in [
            ("ingress", "redirect", false),
            ("ingress", "mirror", true),
            ("egress", "redirect", false),
            ("egress", "mirror", true),
        ] {
            let output = format!("{hook} {action} {never_up}");
            let mut machine = machine();
            led(&mut machine, hook, &format!("egress {action} dev ifb0"));
            down(&mut machine, never_up);
            if hook == "ingress" {
                match comes(&mut machine, "eth0") {
                    ReceiveOutcome::Passed(pkt, _) if passes => machine.pool.release(pkt),
                    ReceiveOutcome::Dropped if !passes => {}
                    other => panic!("{output}: {other:?}"),
                }
                assert!(found(&mut machine).is_empty(), "{output}");
            } else {
                assert_eq!(
                    goes(&mut machine, "eth0"),
                    if passes { XmitStatus::Queued } else { XmitStatus::Stopped },
                    "{output}"
                );
                assert_eq!(found(&mut machine).len(), usize::from(passes), "{output}");
            }
            let listing = machine.answer(&format!("tc -s filter show dev eth0 {hook}"));
            assert!(
                listing.contains("Sent 100 bytes 1 pkt (dropped 0, overlimits 1")
                    || listing.contains("Sent 114 bytes 1 pkt (dropped 0, overlimits 1"),
                "{output}: {listing}"
            );
            // Up again, it is redirected to.
            let ifb = machine.id("ifb0");
            let (gateway, world) = machine.world();
            gateway.set_up(world, ifb, true);
            if hook == "ingress" {
                if let ReceiveOutcome::Passed(pkt, _) = comes(&mut machine, "eth0") {
                    machine.pool.release(pkt);
                }
            } else {
                let _ = goes(&mut machine, "eth0");
            }
            assert!(found(&mut machine).iter().any(|line| line.starts_with("ifb0 sends")), "{output}");
        }
    }
}

#[test]
fn a_device_that_goes_down_loses_what_waits() {
    let mut machine = machine();
    let eth0 = machine.id("eth0");
    assert_eq!((goes(&mut machine, "eth0"), machine.gateway.qlen(eth0)), (XmitStatus::Queued, 1));
    let (gateway, world) = machine.world();
    gateway.set_up(world, eth0, true);
    assert_eq!(machine.gateway.qlen(eth0), 1, "it was up");
    let (gateway, world) = machine.world();
    gateway.set_up(world, eth0, false);
    assert_eq!((machine.gateway.qlen(eth0), machine.live()), (0, 0));
    assert_eq!((goes(&mut machine, "eth0"), machine.live()), (XmitStatus::Stopped, 0));
    let (gateway, world) = machine.world();
    gateway.set_up(world, eth0, true);
    assert_eq!(goes(&mut machine, "eth0"), XmitStatus::Queued);
    assert_eq!(found(&mut machine), ["eth0 sends"]);
}

/// A packet that an ifb gives back continues as if nothing had been: the action that redirected it is skipped
/// once.
#[test]
fn what_comes_back_is_not_led_again() {
    let mut machine = machine();
    led(&mut machine, "egress", "egress redirect dev ifb0");
    assert_eq!(goes(&mut machine, "eth0"), XmitStatus::Away);
    let pkt = machine.poll("ifb0").expect("it was led there");
    let (from, out) = machine.gateway.returned_from(&machine.pool, &pkt).expect("it was led");
    assert_eq!((from, out), (machine.id("eth0"), true));
    let (gateway, world) = machine.world();
    assert_eq!(gateway.offer_back(world, from, pkt), XmitStatus::Queued);
    let pkt = machine.poll("eth0").expect("it goes on");
    assert_eq!(machine.gateway.returned_from(&machine.pool, &pkt), None);
    machine.pool.release(pkt);
    assert_eq!(goes(&mut machine, "eth0"), XmitStatus::Away, "the next is led away again");
    let pkt = machine.poll("ifb0").expect("it was led there");
    machine.pool.release(pkt);
}

/// Two devices that lead everything to each other: the loop has an end, and nothing is left over.
#[test]
fn a_circle_of_devices_has_an_end() {
    for (hook, way) in [
        ("ingress", "ingress redirect"),
        ("ingress", "ingress mirror"),
        ("egress", "egress redirect"),
        ("egress", "egress mirror"),
    ] {
        let mut machine = machine();
        for (from, to) in [("eth0", "eth1"), ("eth1", "eth0")] {
            machine.run(&format!(
                "tc filter add dev {from} {hook} pref 1 protocol ip matchall action mirred {way} dev {to}"
            ));
        }
        if hook == "ingress" {
            match comes(&mut machine, "eth0") {
                ReceiveOutcome::Passed(pkt, _) => machine.pool.release(pkt),
                lost => assert_eq!(lost, ReceiveOutcome::Dropped, "{way}"),
            }
        } else {
            let _ = goes(&mut machine, "eth0");
        }
        assert!(found(&mut machine).len() <= 16, "{way}");
    }
}

/// Filters and actions name devices as they are called now; `*` is one that is gone.
#[test]
fn listings_name_devices_as_they_are_now() {
    use tidegate_policy::{LinkOp, Op};
    let mut machine = machine();
    led(&mut machine, "ingress", "egress redirect dev ifb0");
    machine.run("tc filter add dev eth0 ingress pref 2 protocol ip flower indev eth1 action ok");
    let shown = |machine: &mut Machine| machine.answer("tc filter show dev eth0 ingress");
    assert!(shown(&mut machine).contains("(Egress Redirect to device ifb0)"));
    assert!(shown(&mut machine).contains("indev eth1\n"), "{}", shown(&mut machine));
    let rename = |from: &str, to: &str| Op::Link(LinkOp::Rename { name: from.into(), to: to.into() });
    assert_eq!([machine.op(&rename("ifb0", "down0")), machine.op(&rename("eth1", "lan0"))], ["", ""]);
    assert!(shown(&mut machine).contains("(Egress Redirect to device down0)"));
    assert!(shown(&mut machine).contains("indev lan0\n"));
    machine.run("ip link del down0");
    assert!(shown(&mut machine).contains("(Egress Redirect to device *)"), "{}", shown(&mut machine));
    // No one answers there any more.
    assert_eq!(comes(&mut machine, "eth0"), ReceiveOutcome::Dropped);
    assert_eq!(machine.live(), 0);
}

#[test]
fn devices_that_are_not_there_are_refused() {
    let mut machine = machine();
    let line = "tc filter add dev eth0 ingress pref 1 protocol ip";
    assert_eq!(
        machine.answer(&format!("{line} flower indev eth7 action ok")),
        "Error: Network device not found."
    );
    assert_eq!(machine.answer("tc filter show dev eth0 ingress"), "");
}

/// A filter on the input device: a packet that was redirected to a device came in by the one before.
#[test]
fn filters_know_by_which_device_a_packet_came() {
    let mut machine = machine();
    machine.run(
        "tc qdisc add dev eth1 root handle 1: prio bands 3 priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2
         tc filter add dev eth1 parent 1: pref 1 protocol ip flower indev eth0 classid 1:1
         tc filter add dev eth1 parent 1: pref 2 protocol ip flower indev ifb0 classid 1:2",
    );
    let bands = |machine: &mut Machine| -> Vec<u64> {
        let id = machine.id("eth1");
        machine
            .gateway
            .classes(machine.now, id)
            .iter()
            .map(|class| class.stats.map_or(0, |stats| stats.packets))
            .collect()
    };
    for (from, wanted) in
        [(Some("eth0"), [1, 0, 0]), (Some("ifb0"), [1, 1, 0]), (Some("eth1"), [1, 1, 1]), (None, [1, 1, 2])]
    {
        let from = from.map(|name| machine.id(name));
        assert!(
            machine
                .passes(EgressPath::Forwarded(from), "eth1", udp(("10.0.0.2", 1), ("10.9.0.3", 2), 0))
                .is_some()
        );
        assert_eq!(bands(&mut machine), wanted, "{from:?}");
    }
    assert!(machine.passes(EgressPath::Local, "eth1", udp(("10.0.0.2", 1), ("10.9.0.3", 2), 0)).is_some());
    assert_eq!(bands(&mut machine), [1, 1, 3]);
}

/// A netem gives packets to the qdisc below as it is polled, and filters there redirect them then: several at
/// one time, in their order, with the copies among them. They were the polled device's, and an ifb gives them
/// back to it (recorded: answers-redirected/below-netem-*).
#[test]
fn packets_are_led_away_below_a_netem() {
    let mut machine = machine();
    machine.run(
        "tc qdisc add dev eth0 root handle 1: netem delay 1ms
        tc qdisc add dev eth0 parent 1: handle 2: prio
        tc filter add dev eth0 parent 2: pref 1 protocol ip u32 match ip dport 7 0xffff \
        action mirred egress redirect dev ifb0
        tc filter add dev eth0 parent 2: pref 2 protocol ip u32 match ip dport 8 0xffff classid 2:1 \
        action mirred egress mirror dev ifb0
        tc filter add dev eth0 parent 2: pref 3 protocol ip u32 match ip dport 9 0xffff \
        action mirred ingress redirect dev eth1",
    );
    for port in [7, 8, 7, 9, 10] {
        let pkt = machine.insert(udp(("10.0.0.2", 1), ("10.9.0.3", port), 0), 114);
        assert_eq!(machine.offer("eth0", EgressPath::Direct, pkt), XmitStatus::Queued);
    }
    assert_eq!(machine.poll("eth0"), None, "they wait");
    let eth0 = machine.id("eth0");
    machine.now = machine.gateway.timeout(eth0).expect("the netem's");
    assert!(machine.gateway.fire(machine.now, eth0));
    let led = "ifb0 sends, led from eth0 out true";
    assert_eq!(
        found(&mut machine),
        ["eth0 sends", "eth0 sends", "ifb0 is to be polled", led, "ifb0 sends", led, "routed from eth1"]
    );
    let dumps = machine.answer("tc -s qdisc show dev eth0");
    let counters: Vec<&str> = dumps.lines().filter(|line| line.contains("Sent")).collect();
    assert!(counters[0].starts_with(" Sent 228 bytes 2 pkt (dropped 0,"), "{dumps}");
    assert!(dumps.contains("backlog 0b 0p"), "{dumps}");
}

/// An ifb is polled after each packet that comes to it, also where several come at once: its counters say so.
#[test]
fn an_ifb_runs_after_each_packet() {
    let mut machine = machine();
    machine.run("tc qdisc add dev ifb0 root handle 5: tbf rate 1mbit burst 120 limit 10000");
    led(&mut machine, "egress", "egress mirror dev ifb0 pipe action mirred egress mirror dev ifb0");
    assert_eq!(goes(&mut machine, "eth0"), XmitStatus::Queued);
    assert_eq!(found_of(&mut machine, "ifb0"), 1, "the first copy has left at once");
    let dumps = machine.answer("tc -s qdisc show dev ifb0");
    assert!(dumps.contains("overlimits 1 requeues") && dumps.contains("backlog 114b 1p"), "{dumps}");
    assert_eq!(found_of(&mut machine, "eth0"), 1);
    machine.answer("tc qdisc del dev ifb0 root");
    assert_eq!(machine.live(), 0);
}

fn found_of(machine: &mut Machine, device: &str) -> u32 {
    let mut packets = 0;
    while let Some(pkt) = machine.poll(device) {
        machine.pool.release(pkt);
        packets += 1;
    }
    packets
}
