//! The table nat: the targets of iptables-extensions(8), for both families.

use crate::words::{Machine, udp};
use tidegate_gateway::EgressPath;
use tidegate_packet::Head;
use tidegate_policy::Op;
use tidegate_policy::netfilter::{Family, NfCommand, NfOp};

const LAN: (&str, &str) = ("10.0.0.2", "fd00::2");
const FAR: (&str, &str) = ("203.0.113.7", "2001:db8:7::7");

/// Both ends after the way through the machine.
type Ends = Option<(String, String)>;

fn machine() -> Machine {
    Machine::new(&["lan0", "wan0"])
}

fn of(v6: bool, (four, six): (&'static str, &'static str)) -> &'static str {
    if v6 { six } else { four }
}

fn ends(machine: &mut Machine, route: EgressPath, device: &str, head: Head) -> Ends {
    let seen = machine.passes(route, device, head)?;
    let text = |(ip, port): (std::net::IpAddr, u16)| format!("{ip} {port}");
    Some((text(seen.source), text(seen.destination)))
}

/// What happens to a datagram from the LAN to a host far away, and of its answer, under these rules.
fn there_and_back(tool: &str, rules: &[&str], addresses: &[&str]) -> (Ends, Ends) {
    let (v6, mut machine) = (tool == "ip6tables", machine());
    for address in addresses {
        machine.run(&format!("ip addr add {address}"));
    }
    for rule in rules {
        match rule.strip_prefix("-P ").and_then(|policy| policy.strip_suffix(" DROP")) {
            // iptables has no word for it in this table; nft has.
            Some(chain) => {
                let command = NfCommand::Policy(chain.into(), false);
                let (family, table) = (Family::of(v6), "nat".to_owned());
                machine.op(&Op::Netfilter(NfOp { family, table, command }));
            }
            None => machine.run(&format!("{tool} -t nat {rule}")),
        }
    }
    let (lan, wan) = (machine.id("lan0"), machine.id("wan0"));
    let head = udp((of(v6, LAN), 4000), (of(v6, FAR), 53), 0);
    let there = ends(&mut machine, EgressPath::Forwarded(Some(lan)), "wan0", head);
    // Who answers turns round what was seen.
    let back = there.clone().and_then(|(source, destination)| {
        let end = |text: &str| {
            text.rsplit_once(' ').map(|(ip, port)| (ip.to_owned(), port.parse().expect("a port")))
        };
        let (source, destination) = (end(&source).expect("two"), end(&destination).expect("two"));
        let head = udp((&destination.0, destination.1), (&source.0, source.1), 0);
        ends(&mut machine, EgressPath::Forwarded(Some(wan)), "lan0", head)
    });
    assert_eq!(machine.live(), 0);
    (there, back)
}

fn pair(source: &str, destination: &str) -> Ends {
    Some((source.to_owned(), destination.to_owned()))
}

#[test]
fn sources_and_destinations_are_translated_there_and_back() {
    let plain = (pair("10.0.0.2 4000", "203.0.113.7 53"), pair("203.0.113.7 53", "10.0.0.2 4000"));
    let back = pair("203.0.113.7 53", "10.0.0.2 4000");
    const MASQUERADE: &[&str] = &["-A POSTROUTING -o wan0 -j MASQUERADE"];
    type Row = (&'static [&'static str], &'static [&'static str], (Ends, Ends));
    let table: Vec<Row> = vec![
        (&[], &[], plain.clone()),
        // The address of the device it leaves by, the first of the family.
        (
            MASQUERADE,
            &[
                "2001:db8::9/64 dev wan0",
                "198.51.100.9/24 dev wan0",
                "198.51.100.10/24 dev wan0",
                "10.0.0.1/24 dev lan0",
            ],
            (pair("198.51.100.9 4000", "203.0.113.7 53"), back.clone()),
        ),
        // A device without one of that family has one of those for documents.
        (MASQUERADE, &["2001:db8::9/64 dev wan0"], (pair("192.0.2.1 4000", "203.0.113.7 53"), back.clone())),
        (&["-A POSTROUTING -o lan0 -j MASQUERADE"], &[], plain.clone()),
        (
            &["-A POSTROUTING -j SNAT --to-source 198.51.100.77"],
            &[],
            (pair("198.51.100.77 4000", "203.0.113.7 53"), back.clone()),
        ),
        (
            &["-A POSTROUTING -p udp -j SNAT --to-source 198.51.100.77:6000"],
            &[],
            (pair("198.51.100.77 6000", "203.0.113.7 53"), back.clone()),
        ),
        (
            &["-A PREROUTING -p udp -j DNAT --to-destination 203.0.113.99:5353"],
            &[],
            (pair("10.0.0.2 4000", "203.0.113.99 5353"), back.clone()),
        ),
        // Redirected to the machine: the first address of the device it came in by.
        (
            &["-A PREROUTING -p udp -j REDIRECT --to-ports 3128"],
            &["10.0.0.1/24 dev lan0", "198.51.100.9/24 dev wan0"],
            (pair("10.0.0.2 4000", "10.0.0.1 3128"), back.clone()),
        ),
        (
            &["-A PREROUTING -p udp -j REDIRECT --to-ports 3128"],
            &["fd00::1/64 dev lan0"],
            (pair("10.0.0.2 4000", "192.0.2.1 3128"), back.clone()),
        ),
        // Both at once.
        (
            &[
                "-A PREROUTING -j DNAT --to-destination 203.0.113.99",
                "-A POSTROUTING -j SNAT --to-source 198.51.100.77",
            ],
            &[],
            (pair("198.51.100.77 4000", "203.0.113.99 53"), back.clone()),
        ),
        // The table's rules may drop, and a policy too.
        (&["-A POSTROUTING -p tcp -j MASQUERADE", "-P POSTROUTING DROP"], &[], (None, None)),
        (
            &["-A PREROUTING -j DNAT --to-destination 203.0.113.99", "-P OUTPUT DROP"],
            &[],
            (pair("10.0.0.2 4000", "203.0.113.99 53"), back.clone()),
        ),
        (&["-A POSTROUTING -j MASQUERADE", "-P PREROUTING DROP"], &[], (None, None)),
    ];
    for (rules, addresses, wanted) in table {
        assert_eq!(there_and_back("iptables", rules, addresses), wanted, "{rules:?} {addresses:?}");
    }
}

#[test]
fn ipv6_has_a_table_of_its_own() {
    let back = pair("2001:db8:7::7 53", "fd00::2 4000");
    type Row = (&'static [&'static str], &'static [&'static str], Ends);
    let table: Vec<Row> = vec![
        (
            &["-A POSTROUTING -o wan0 -j MASQUERADE"],
            &["198.51.100.9/24 dev wan0", "2001:db8::9/64 dev wan0"],
            pair("2001:db8::9 4000", "2001:db8:7::7 53"),
        ),
        (
            &["-A POSTROUTING -j MASQUERADE"],
            &["198.51.100.9/24 dev wan0"],
            pair("2001:db8::1 4000", "2001:db8:7::7 53"),
        ),
        (
            &["-A PREROUTING -p udp -j REDIRECT --to-ports 3128"],
            &["10.0.0.1/24 dev lan0", "fd00::1/64 dev lan0"],
            pair("fd00::2 4000", "fd00::1 3128"),
        ),
        (
            &["-A PREROUTING -j DNAT --to-destination 2001:db8:9::9"],
            &[],
            pair("fd00::2 4000", "2001:db8:9::9 53"),
        ),
    ];
    for (rules, addresses, wanted) in table {
        assert_eq!(there_and_back("ip6tables", rules, addresses), (wanted, back.clone()), "{rules:?}");
    }
    // The other family's table leaves it alone.
    let mut machine = machine();
    machine.run("iptables -t nat -A POSTROUTING -j MASQUERADE");
    let head = udp((LAN.1, 4000), (FAR.1, 53), 0);
    let wanted = pair("fd00::2 4000", "2001:db8:7::7 53");
    assert_eq!(ends(&mut machine, EgressPath::Forwarded(None), "wan0", head), wanted);
}

/// What the machine's own programs send meets OUTPUT, and REDIRECT there leads to the loopback address.
#[test]
fn what_the_machine_sends_is_translated_too() {
    let mut wrong = Vec::new();
    for (tool, rule, wanted) in [
        ("iptables", "-A OUTPUT -p udp -j REDIRECT --to-ports 3128", "127.0.0.1 3128"),
        ("ip6tables", "-A OUTPUT -p udp -j REDIRECT --to-ports 3128", "::1 3128"),
        ("iptables", "-A OUTPUT -j DNAT --to-destination 203.0.113.99", "203.0.113.99 53"),
        ("iptables", "-A PREROUTING -j DNAT --to-destination 203.0.113.99", "203.0.113.7 53"),
        ("ip6tables", "-A PREROUTING -j DNAT --to-destination 2001:db8:9::9", "2001:db8:7::7 53"),
    ] {
        let (v6, mut machine) = (tool == "ip6tables", machine());
        machine.run("ip addr add 10.0.0.1/24 dev lan0");
        machine.run(&format!("{tool} -t nat {rule}"));
        let head = udp((of(v6, LAN), 4000), (of(v6, FAR), 53), 0);
        let seen = ends(&mut machine, EgressPath::Local, "wan0", head).map(|(_, destination)| destination);
        if seen.as_deref() != Some(wanted) {
            wrong.push((rule, seen));
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

/// A table of nft's that is called nat is a table like any other, and one of iptables' without rules
/// translates nothing.
#[test]
fn a_free_table_of_that_name_translates_nothing() {
    use tidegate_policy::Op;
    use tidegate_policy::netfilter::{Family, NfCommand, NfOp};
    let mut machine = machine();
    let op = NfOp { family: Family::Ipv4, table: "nat".into(), command: NfCommand::NewTable };
    assert_eq!(machine.op(&Op::Netfilter(op)), "");
    let head = udp((LAN.0, 4000), (FAR.0, 53), 0);
    let wanted = pair("10.0.0.2 4000", "203.0.113.7 53");
    assert_eq!(ends(&mut machine, EgressPath::Forwarded(None), "wan0", head), wanted);
}

/// Rules are evaluated for a connection's first packet only, and the result stays.
#[test]
fn what_was_settled_stays() {
    let mut machine = machine();
    let output_of = |machine: &mut Machine, port| {
        let head = udp((LAN.0, port), (FAR.0, 53), 0);
        ends(machine, EgressPath::Forwarded(None), "wan0", head).map(|(source, _)| source)
    };
    machine.run("iptables -t nat -A POSTROUTING -j SNAT --to-source 198.51.100.77");
    assert_eq!(output_of(&mut machine, 1).as_deref(), Some("198.51.100.77 1"));
    machine.run(
        "iptables -t nat -F POSTROUTING\niptables -t nat -A POSTROUTING -j SNAT --to-source 198.51.100.88",
    );
    assert_eq!(
        [output_of(&mut machine, 1), output_of(&mut machine, 2)].map(Option::unwrap),
        ["198.51.100.77 1", "198.51.100.88 2"]
    );
    machine.gateway.forget_connections();
    assert_eq!(output_of(&mut machine, 1).as_deref(), Some("198.51.100.88 1"));
}
