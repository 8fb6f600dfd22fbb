//! Assumptions where nothing is known: the default route, and the speed of devices; explanations of refusals;
//! and rules of nft that are put between others.

use tidegate_packet::{Pool, Seeded};
use tidegate_shims::{Answer, Call, Machine};

/// What the machine of a script answers: codes, and both outputs together.
fn answers(lines: &[&str]) -> Vec<(i32, String)> {
    let mut machine = Machine::for_script(["eth0", "eth1"]);
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    let mut shim = machine.shim(&mut pool, &mut draws);
    shim.world(&["eth0".to_owned(), "eth1".to_owned()]);
    let call = |line: &&str| {
        let mut words = line.split(' ').map(str::to_owned);
        let tool = words.next().unwrap_or_default();
        let reply =
            shim.answer(&Call { tool, args: words.collect(), stdin: None, cwd: "/".into(), netns: None });
        let text = [reply.stdout, reply.stderr].concat();
        (reply.code.into(), String::from_utf8_lossy(&text).into_owned())
    };
    lines.iter().map(call).collect()
}

/// On a router that has none yet the command succeeds; the second time it is Linux that refuses it.
#[test]
fn a_script_sets_the_default_route() {
    let found = answers(&[
        "ip route show default",
        "ip route add default via 192.168.2.1 dev eth1",
        "ip route show default",
        "ip route add default via 192.168.2.1 dev eth1",
        "ip route del default",
        "ip route show default",
    ]);
    let codes: Vec<i32> = found.iter().map(|(code, _)| *code).collect();
    assert_eq!(codes, [0, 0, 0, 2, 0, 0], "{found:?}");
    assert_eq!(found[0].1.trim(), "default via 192.0.2.1 dev eth0");
    assert_eq!(found[2].1.trim(), "default via 192.168.2.1 dev eth1");
    assert_eq!(found[3].1, "RTNETLINK answers: File exists\n");
    assert_eq!(found[5].1, "");
}

/// Where the script named no address, the next router may be on the network of the device that leads out.
#[test]
fn a_default_route_by_a_router_that_is_on_no_known_network() {
    let found = answers(&["ip route add default via 10.11.12.13", "ip route show default"]);
    assert_eq!(found[0], (0, String::new()));
    assert_eq!(found[1].1.trim(), "default via 10.11.12.13 dev eth0");
    // Another network's router is refused, as always.
    let found = answers(&["ip route add 10.0.0.0/8 via 10.11.12.13"]);
    assert_eq!(found[0].1, "Error: Nexthop has invalid gateway.\n");
}

#[test]
fn a_percentage_names_the_assumed_speed() {
    let found = answers(&[
        "tc qdisc add dev eth0 root tbf rate 50% burst 100k latency 50ms",
        "tc qdisc replace dev eth0 root tbf rate 50mbit burst 100k latency 50ms",
        "tc qdisc replace dev eth0 root netem loss 5%",
    ]);
    let assumed =
        "tidegate: warning: rate 50% is a part of eth0's speed, which is assumed here to be 1 Gbit/s";
    assert!(found[0].0 == 0 && found[0].1.starts_with(assumed), "{found:?}");
    assert_eq!(found[1..], [(0, String::new()), (0, String::new())]);
}

/// The remedy comes after the tool's own words.
#[test]
fn refusals_say_what_to_do() {
    let cases = [
        (
            "iptables -t mangle -A PREROUTING -i eth1 -j CLASSIFY --set-class 1:10",
            "iptables: CLASSIFY works in POSTROUTING, FORWARD and OUTPUT only",
        ),
        (
            "tc qdisc add dev eth0 root tbf rate 5mbit burst 20k latency 50ms peakrate 6mbit",
            "tc: A peak rate needs mtu",
        ),
        ("tc qdisc add dev eth0 root tbf burst 20k latency 50ms", "tc: A token bucket needs rate, burst"),
        (
            "tc qdisc add dev eth0 root tbf rate 1000% burst 20k latency 50ms",
            "is from 0% to 100%, and \"1000%\" is not",
        ),
        ("tc qdisc add dev ppp0 root tbf rate 50% burst 20k latency 50ms", "ppp0 does not report its speed"),
        ("tc qdisc add dev eth0 root netem delay foo", "tc: delay takes a time with its unit"),
        ("tc qdisc add dev eth0 root netem loss 101%", "tc: loss takes a probability from 0% to 100%"),
    ];
    for (line, remedy) in cases {
        let (code, text) = answers(&[line]).remove(0);
        assert!(code != 0 && text.contains(remedy), "{line}: {text}");
    }
    let (_, text) = answers(&["iptables -t mangle -A POSTROUTING -j CLASSIFY --set-class 1:10"]).remove(0);
    assert_eq!(text, "");
}

/// `lo` is there without having been named, and once where something is set on it.
#[test]
fn lo_is_always_there_and_once() {
    let found = answers(&[
        "ip link show lo",
        "ip -o link show",
        "tc qdisc add dev lo root netem delay 1ms",
        "ip -o link show",
        "ip -o addr show dev lo",
    ]);
    let codes: Vec<i32> = found.iter().map(|(code, _)| *code).collect();
    assert_eq!(codes, [0; 5], "{found:?}");
    for listing in [&found[1].1, &found[3].1] {
        let of_lo: Vec<&str> = listing.lines().filter(|line| line.contains(": lo:")).collect();
        assert!(of_lo.len() == 1 && of_lo[0].starts_with("1: lo: <LOOPBACK,UP,LOWER_UP>"), "{listing}");
    }
    assert!(found[3].1.contains("qdisc netem"), "{}", found[3].1);
    assert!(found[4].1.contains("127.0.0.1/8") && found[4].1.contains("::1/128"), "{}", found[4].1);
}

/// What fails because tidegate could not make a qdisc is not refused in the kernel's name.
#[test]
fn what_needs_a_qdisc_that_is_not_built_is_refused_by_tidegate() {
    let cbq = "tc qdisc add dev eth0 root handle 1: cbq bandwidth 100Mbit avpkt 1000";
    let filter = "tc filter add dev eth0 parent 1: protocol ip u32 match ip sport 80 0xffff flowid 1:3";
    let found = answers(&[
        cbq,
        "tc class add dev eth0 parent 1: classid 1:3 htb rate 1mbit",
        "tc qdisc add dev eth0 parent 1:3 handle 30: sfq",
        filter,
        "tc qdisc del dev eth0 root",
        "tc qdisc add dev eth0 parent 2:3 handle 40: sfq",
        "tc qdisc add dev eth1 parent 1:3 handle 40: sfq",
        "tc qdisc add dev eth0 root handle 1: htb",
        "tc class add dev eth0 parent 9: classid 9:3 htb rate 1mbit",
        "tc qdisc add dev eth0 parent 1:7 handle 30: sfq",
    ]);
    let ours = |at: usize| found[at].0 == 1 && found[at].1.starts_with("tidegate: ");
    assert!((0..5).all(ours), "{found:?}");
    assert!(found[2].1.starts_with("tidegate: eth0 has no qdisc 1: here, because cbq is not supported\n"));
    // Other handles and devices are missing for the kernel, too; so is what the one made in its place lacks.
    assert!([5, 6, 8, 9].iter().all(|at| found[*at].0 == 2 && !ours(*at)), "{found:?}");
    assert_eq!(found[7].0, 0, "{found:?}");
}

/// Values that the kernel refuses without a word have a remedy of their own where the reason is known; so has
/// a blank behind a backslash.
#[test]
fn values_are_refused_with_what_is_wrong() {
    let found = answers(&[
        "tc qdisc add dev eth0 root tbf rate 1mbit peakrate 1mbit burst 10k mtu 1540 latency 30ms",
        "tc qdisc add dev eth0 root sfq perturb 10 divisor 1000",
        "tc qdisc add dev eth0 root sfq perturb 10 divisor 131072",
    ]);
    for ((code, text), part) in found.iter().zip(["A peakrate is above", "a power of two", "a power of two"])
    {
        assert!(*code == 2 && text.starts_with("RTNETLINK answers: Invalid argument\ntc: "), "{text}");
        assert!(text.contains(part), "{text}");
    }
    let mut machine = Machine::for_script(["eth0"]);
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
    let args = ["qdisc", "add", "dev", "eth0", "root", "htb", " "].map(str::to_owned).to_vec();
    let call = Call { tool: "tc".to_owned(), args, stdin: None, cwd: "/".into(), netns: None };
    let reply = machine.shim(&mut pool, &mut draws).answer(&call);
    let text = String::from_utf8_lossy(&reply.stderr).into_owned();
    assert!(text.starts_with("What is \" \"?") && text.contains("tc: This word is blank."), "{text}");
}

/// The name of an address of ifconfig's is its device's for tc (asked: Linux 6.1), and no link may be called
/// so.
#[test]
fn a_name_with_a_colon_is_the_device_before_it() {
    let found = answers(&[
        "tc qdisc add dev eth0:1 root handle 1: htb default 10",
        "tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit",
        "tc qdisc add dev eth0: root handle 1: htb",
        "ip link add ppp: type dummy",
        "tc qdisc add dev none7:1 root pfifo",
        "tc qdisc show dev eth0",
    ]);
    let codes: Vec<i32> = found.iter().map(|(code, _)| *code).collect();
    assert_eq!(codes[..4], [0, 0, 2, 2], "{found:?}");
    assert_eq!(found[3].1, "RTNETLINK answers: Invalid argument\n");
    assert!(found[5].1.starts_with("qdisc htb 1: root"), "{}", found[5].1);
}

/// Rules in which matches follow `counter` or other statements: one rule each, with one handle.
#[test]
fn rules_of_nft_are_put_where_linux_puts_them() {
    let mut lines =
        include_str!("data/nft-places.txt").lines().filter(|line| !line.starts_with('#')).peekable();
    let (mut commands, mut wanted) = (Vec::new(), Vec::new());
    while let Some(command) = lines.next().and_then(|line| line.strip_prefix("> ")) {
        let listing: Vec<&str> =
            core::iter::from_fn(|| lines.next_if(|line| !line.starts_with("> "))).collect();
        commands.extend([format!("nft {command}"), "nft -a list chain inet t c".to_owned()]);
        wanted.push(listing);
    }
    let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
    let found = answers(&commands);
    for ((command, (code, listing)), wanted) in
        commands.iter().step_by(2).zip(found.iter().skip(1).step_by(2)).zip(wanted).skip(2)
    {
        let rules: Vec<&str> = listing.lines().filter_map(|line| line.strip_prefix("\t\t")).collect();
        assert_eq!((*code, &rules), (0, &wanted), "{command}");
    }
    assert_eq!(commands.len(), 30);
}
