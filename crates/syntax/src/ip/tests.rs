use super::*;
use crate::Device;
use std::net::IpAddr;
use tidegate_policy::LinkDriver;

fn env(names: &[&str]) -> Env {
    Env {
        devices: Some(
            names.iter().map(|name| Device { name: (*name).into(), ..Device::default() }).collect(),
        ),
        ..Env::default()
    }
}

fn ask(text: &str) -> Result<IpCommand, String> {
    let args: Vec<String> = text.split_whitespace().map(String::from).collect();
    let parsed = parse(&args, &env(&["eth0", "ifb0", "br0"]));
    parsed
        .map(|parsed| parsed.command)
        .map_err(|refusal| format!("{}: {}", refusal.code, refusal.stderr.trim_end()))
}

fn set(dev: &str) -> LinkSet {
    LinkSet { dev: dev.into(), ..LinkSet::default() }
}

#[test]
fn links_are_set() {
    let table = [
        ask("link set dev eth0 up"),
        ask("link set eth0 txqueuelen 10 mtu 1492 down"),
        ask("l s eth0 name wan0"),
        ask("link set eth0 master br0"),
        ask("link set eth0 nomaster arp off"),
    ];
    let wanted = [
        LinkSet { up: Some(true), ..set("eth0") },
        LinkSet { txqueuelen: Some(10), mtu: Some(1492), up: Some(false), ..set("eth0") },
        LinkSet { name: Some("wan0".into()), ..set("eth0") },
        LinkSet { master: Some("br0".into()), ..set("eth0") },
        LinkSet { master: Some(String::new()), ..set("eth0") },
    ];
    assert_eq!(table, wanted.map(|set| Ok(IpCommand::Set(set))));
}

#[test]
fn links_are_made_in_every_order_of_words() {
    let kind = |text: &str| match ask(text) {
        Ok(IpCommand::AddLink { name, kind, .. }) => format!("{name} {kind:?}"),
        other => format!("{other:?}"),
    };
    let tunnel =
        "Tunnel(Tunnel { mode: Ipip, local: 192.0.2.2, remote: 192.0.2.9, ttl: 64, encap_limit: None })";
    let in_six =
        "Tunnel(Tunnel { mode: Ip6tnl, local: ::, remote: 2001:db8::9, ttl: 0, encap_limit: Some(4) })";
    let table = [
        ("link add name ifb4eth0 type ifb", "ifb4eth0 Ifb".to_owned()),
        ("link add ifb1 type ifb", "ifb1 Ifb".to_owned()),
        ("link add type ifb", "ifb1 Ifb".to_owned()),
        ("link add dev d0 mtu 1400 type dummy", "d0 Dummy".to_owned()),
        (
            "link add link eth0 name eth0.5 type vlan id 5",
            "eth0.5 Vlan { lower: \"eth0\", id: 5 }".to_owned(),
        ),
        ("link add v0 type veth peer name v1", "v0 Veth { peer: \"v1\" }".to_owned()),
        ("tunnel add tun1 mode ipip remote 192.0.2.9 local 192.0.2.2 ttl 64", format!("tun1 {tunnel}")),
        ("link add tun1 type ipip remote 192.0.2.9 local 192.0.2.2 ttl 64", format!("tun1 {tunnel}")),
        ("tunnel add tun6 mode ip6ip6 remote 2001:db8::9", format!("tun6 {in_six}")),
        ("link add tun6 type ip6tnl remote 2001:db8::9", format!("tun6 {in_six}")),
        ("tuntap add dev tun0 mode tun", "tun0 Raw(Tun)".to_owned()),
    ];
    for (line, wanted) in table {
        assert_eq!(kind(line), wanted, "{line}");
    }
}

/// iproute2 would make them; here there is no other namespace, and the error says so instead of "File
/// exists".
#[test]
fn links_of_other_namespaces_are_refused_in_our_own_words() {
    for line in [
        "link add v0 type veth peer name eth0 netns n1",
        "link add v0 type veth peer netns n1 name eth0",
        "link add v0 type veth peer netns n1",
        "link add netns n1 v0 type dummy",
        "link add v0 netns n1 type dummy",
    ] {
        let text = ask(line).expect_err(line);
        assert!(
            text.starts_with("1: tidegate: ip link add … ")
                && text.ends_with("not supported in this version"),
            "{text}"
        );
    }
}

/// Each pair was taken from iproute2 6.1.
#[test]
fn refusals_are_ips() {
    let table = [
        ("foo", "1: Object \"foo\" is unknown, try \"ip help\"."),
        ("link foo", "255: Command \"foo\" is unknown, try \"ip link help\"."),
        ("link show nope", "1: Device \"nope\" does not exist."),
        ("link set nope up", "1: Cannot find device \"nope\""),
        ("link del nope", "1: Cannot find device \"nope\""),
        ("link set", "255: Not enough information: \"dev\" argument is required."),
        ("link add", "1: Not enough information: \"type\" argument is required"),
        ("link add x0 type bogus", "2: Error: Unknown device type."),
        ("link set eth0 mtu abc", "255: Error: argument \"abc\" is wrong: Invalid \"mtu\" value"),
        (
            "link set eth0 qlen 4294967295",
            "255: Error: argument \"4294967295\" is wrong: Invalid \"txqueuelen\" value",
        ),
        ("link set eth0 foo", "255: Error: either \"dev\" is duplicate, or \"foo\" is a garbage."),
        ("link show dev", "255: Command line is not complete. Try option \"help\""),
        ("addr add 192.0.2.1/24 dev nope", "1: Cannot find device \"nope\""),
        ("addr add bogus dev eth0", "1: Error: any valid prefix is expected rather than \"bogus\"."),
        ("addr show dev nope", "1: Device \"nope\" does not exist."),
        ("route show dev nope", "1: Cannot find device \"nope\""),
        ("rule add fwmark 1 table 100", "1: tidegate: ip rule add is not supported in this version"),
    ];
    for (line, wanted) in table {
        assert_eq!(ask(line), Err(wanted.to_owned()), "{line}");
    }
}

#[test]
fn routes_are_read() {
    let v4 = |text: &str| -> IpAddr { text.parse().expect("an address") };
    let plain = Route {
        to: (v4("0.0.0.0"), 0),
        via: None,
        dev: None,
        src: None,
        metric: 0,
        scope_link: false,
        kernel: false,
    };
    let add = |route| Ok(IpCommand::Route { verb: RouteVerb::Add, route });
    let via = Route { via: Some(v4("192.0.2.1")), ..plain.clone() };
    assert_eq!(ask("route add default via 192.0.2.1"), add(via.clone()));
    let ten = Route { to: (v4("10.0.0.0"), 8), dev: Some("eth0".into()), metric: 5, ..plain.clone() };
    assert_eq!(ask("ro a 10/8 dev eth0 metric 5"), add(ten));
    assert_eq!(
        ask("route del default via 192.0.2.1"),
        Ok(IpCommand::Route { verb: RouteVerb::Delete, route: via })
    );
    // As iproute2 6.1: what is missing at the end is 0.
    let short = Route { to: (v4("10.5.0.0"), 16), via: Some(v4("10.1.0.0")), ..plain };
    assert_eq!(ask("route add 10.5/16 via 10.1"), add(short));
    let said = ask("route add 10.5/16 via x");
    assert_eq!(said, Err("1: Error: inet address is expected rather than \"x\".".to_owned()));
    assert_eq!(ask("route get 192.0.2.9"), Ok(IpCommand::GetRoute(v4("192.0.2.9"))));
    assert_eq!(
        ask("-4 route show default"),
        Ok(IpCommand::ShowRoutes { to: Some((v4("0.0.0.0"), 0)), dev: None, scope_link: None })
    );
}

/// As iproute2 6.1 printed them for the same devices.
#[test]
fn listings_are_ips() {
    let link = ShownLink {
        index: 3,
        name: "eth0".into(),
        kind: LinkDriver::Ethernet,
        up: true,
        mtu: 1500,
        txqueuelen: 1000,
        qdisc: "pfifo_fast".into(),
        mac: [0x16, 0xc9, 0xf2, 0x1f, 0x34, 0xb1],
        master: None,
        addresses: vec![ShownAddress { address: "192.168.1.1".parse().expect("an address"), prefix: 24 }],
        sent: (90, 1),
    };
    let ifb = ShownLink {
        index: 4,
        name: "ifb0".into(),
        kind: LinkDriver::Ifb,
        up: false,
        qdisc: "noop".into(),
        txqueuelen: 32,
        addresses: Vec::new(),
        ..link.clone()
    };
    let both = [link, ifb];
    let plain = IpFlags::default();
    assert_eq!(
        link_text(&both, &plain, false),
        "3: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc pfifo_fast state UP mode DEFAULT group \
        default qlen 1000
    link/ether 16:c9:f2:1f:34:b1 brd ff:ff:ff:ff:ff:ff
4: ifb0: <BROADCAST,NOARP> mtu 1500 qdisc noop state DOWN mode DEFAULT group default qlen 32
    link/ether 16:c9:f2:1f:34:b1 brd ff:ff:ff:ff:ff:ff
"
    );
    assert_eq!(
        link_text(&both[..1], &IpFlags { stats: true, ..plain }, false)
            .lines()
            .skip(2)
            .collect::<Vec<_>>()
            .join("\n"),
        "    RX:  bytes packets errors dropped  missed   mcast           
             0       0      0       0       0       0 
    TX:  bytes packets errors dropped carrier collsns           
            90       1      0       0       0       0 "
    );
    let v4 = IpFlags { family: Some(false), ..plain };
    assert_eq!(
        link_text(&both, &v4, true),
        "3: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc pfifo_fast state UP group default qlen 1000
    inet 192.168.1.1/24 scope global eth0
       valid_lft forever preferred_lft forever
"
    );
    assert_eq!(
        link_text(&both, &IpFlags { oneline: true, ..v4 }, true),
        "3: eth0    inet 192.168.1.1/24 scope global eth0\\       valid_lft forever preferred_lft forever\n"
    );
    let brief = IpFlags { brief: true, ..plain };
    assert_eq!(
        link_text(&both, &brief, true),
        "eth0             UP             192.168.1.1/24 \nifb0             DOWN           \n"
    );
    assert_eq!(
        link_text(&both[1..], &brief, false),
        "ifb0             DOWN           16:c9:f2:1f:34:b1 <BROADCAST,NOARP> \n"
    );
}
