//! Random policies as short ones: what comes out can be read, has no mistake that `check` finds, and treats
//! every packet as the source does but for what is named.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use tidegate_gateway::EgressPath;
use tidegate_inspect::{Level, Packet, PacketEntry, PolicyModel, Prober, check};
use tidegate_loader::{ReadOptions, ShortPolicy, read, read_text, to_short};
use tidegate_packet::Handle;
use tidegate_policy::{ClassParams, QdiscParams};
use tidegate_syntax::short::presets::PRESETS;

/// Policies that are made; each prints its number where something fails.
const POLICIES: u64 = 160;
/// Packets sent through each.
const PACKETS: usize = 60;

/// Random numbers (Knuth's MMIX), the same on every machine.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.roll(of.len() as u64) as usize]
    }
}

/// What a filter may ask, in u32's words.
const CONDITIONS: [&str; 12] = [
    "match ip dport 22 0xffff",
    "match ip sport 80 0xffff",
    "match ip protocol 17 0xff match ip dport 53 0xffff",
    "match ip protocol 6 0xff match ip dport 443 0xffff",
    "match ip protocol 17 0xff match ip dport 5060 0xfffe",
    "match ip protocol 6 0xff match ip sport 8080 0xfff0",
    "match ip src 192.168.1.0/25",
    "match ip dst 198.51.100.0/24",
    "match ip dsfield 0xb8 0xfc",
    "match ip tos 0x10 0xff",
    "match ip protocol 1 0xff",
    "match ip src 192.168.1.10 match ip dport 22 0xffff",
];
const LEAVES: [&str; 9] = [
    "",
    "pfifo limit 50",
    "fq_codel",
    "fq_codel limit 100",
    "sfq perturb 10",
    "red limit 100k min 10k max 30k avpkt 1000 burst 20 bandwidth 5mbit",
    "prio",
    "tbf rate 1mbit burst 10k limit 30k",
    "drr",
];
/// What a rule that marks may ask.
const MARKED: [&str; 6] = [
    "-p tcp --dport 25",
    "-o eth0 -p udp --sport 1194",
    "-i br0",
    "-p tcp -m multiport --dports 80,443",
    "-o eth1 -p tcp --dport 993",
    "",
];

/// What arrives goes over the ifb.
const REDIRECT: &str = "qdisc add dev eth0 handle ffff: ingress\n\
                        filter add dev eth0 parent ffff: protocol all pref 1 matchall action mirred egress \
                        redirect dev ifb0\n";

/// A policy as a batch of tc and a list of rules.
fn policy(dice: &mut Dice) -> (String, String) {
    let mut tc = String::new();
    let mut rules = String::from("*mangle\n");
    let link = 1000 * (1 + dice.roll(40));
    match dice.roll(10) {
        0 => drop(writeln!(tc, "qdisc add dev eth0 root handle 1: tbf rate {link}kbit burst 20k limit 60k")),
        1 => {
            let extra = [
                "besteffort flows",
                "diffserv4 nat",
                "besteffort overhead 44 mpu 84",
                "besteffort ptm overhead 30",
            ];
            let extra = dice.one(&extra);
            let _ = writeln!(tc, "qdisc add dev eth0 root handle 1: cake bandwidth {link}kbit {extra}");
        }
        2 => {
            let _ = writeln!(tc, "qdisc add dev eth0 root handle 1: tbf rate {link}kbit burst 20k limit 60k");
            let inner = dice.one(&["prio", "sfq", "fq_codel", "pfifo limit 30", "drr"]);
            let _ = writeln!(tc, "qdisc add dev eth0 parent 1:1 handle 10: {inner}");
        }
        3 => drop(writeln!(tc, "qdisc add dev eth0 root handle 1: {}", dice.one(&["prio", "drr", "sfq"]))),
        shape => {
            tree(dice, "eth0", link, shape, &mut tc, &mut rules);
            if dice.roll(3) == 0 {
                let shape = 7 + dice.roll(3);
                tree(dice, "ifb0", 4 * link, shape, &mut tc, &mut rules);
                tc.push_str(REDIRECT);
            }
        }
    }
    rules.push_str("COMMIT\n");
    (tc, rules)
}

fn tree(dice: &mut Dice, dev: &str, link: u64, shape: u64, tc: &mut String, rules: &mut String) {
    let hfsc = shape == 4 || shape == 5;
    let flat = shape == 6;
    let count = 1 + dice.roll(4);
    let default = dice.roll(5);
    let words = if default > 0 { format!(" default {}0", default.min(count)) } else { String::new() };
    let _ = writeln!(tc, "qdisc add dev {dev} root handle 1: {}{words}", if hfsc { "hfsc" } else { "htb" });
    let size = if dice.roll(4) == 0 && !hfsc { " overhead 26 mpu 64" } else { "" };
    let root = if hfsc {
        format!("hfsc sc rate {link}kbit ul rate {link}kbit")
    } else {
        format!("htb rate {link}kbit{size}")
    };
    if !flat {
        let _ = writeln!(tc, "class add dev {dev} parent 1: classid 1:1 {root}");
    }
    let top = if flat { "1:" } else { "1:1" };
    for number in 1..=count {
        let rate = (link * (5 + dice.roll(60)) / 100).max(16);
        let ceil = (rate + dice.roll(link)).min(link);
        let prio = dice.roll(4);
        let nested = dice.roll(5) == 0 && !flat && !hfsc;
        let parent = if nested { format!("1:{number}f") } else { top.to_owned() };
        if nested {
            let own = format!("htb rate {rate}kbit ceil {ceil}kbit{size}");
            let _ = writeln!(tc, "class add dev {dev} parent {top} classid {parent} {own}");
        }
        let own = match (hfsc, dice.roll(3)) {
            (true, 0) => format!("hfsc ls rate {rate}kbit ul rate {ceil}kbit"),
            (true, 1) => format!("hfsc sc rate {rate}kbit"),
            (true, _) => format!("hfsc rt m1 {ceil}kbit d 10ms m2 {rate}kbit ls rate {rate}kbit"),
            _ => format!("htb rate {rate}kbit ceil {ceil}kbit prio {prio}{size}"),
        };
        let _ = writeln!(tc, "class add dev {dev} parent {parent} classid 1:{number}0 {own}");
        let leaf = dice.one(&LEAVES);
        if !leaf.is_empty() {
            let _ = writeln!(tc, "qdisc add dev {dev} parent 1:{number}0 handle {number}0: {leaf}");
        }
    }
    for pref in 1..=dice.roll(6) {
        let to = 1 + dice.roll(count);
        if dice.roll(4) > 0 {
            let condition = dice.one(&CONDITIONS);
            let _ = writeln!(
                tc,
                "filter add dev {dev} parent 1: protocol ip pref {pref} u32 {condition} flowid 1:{to}0"
            );
            continue;
        }
        let _ = writeln!(
            tc,
            "filter add dev {dev} parent 1: protocol ip pref {pref} handle {pref} fw flowid 1:{to}0"
        );
        let condition = dice.one(&MARKED);
        let chain = if condition.contains("-i ") { "FORWARD" } else { dice.one(&["POSTROUTING", "FORWARD"]) };
        let _ = writeln!(rules, "-A {chain} {condition} -j MARK --set-mark {pref}");
    }
}

/// Packets as people send them, most of which some filter matches.
fn packet(dice: &mut Dice) -> Packet {
    let protocol = dice.one(&["tcp", "udp", "tcp", "icmp"]);
    let source = dice.one(&["192.168.1.10", "192.168.1.200", "10.1.1.1"]);
    let destination = dice.one(&["198.51.100.7", "203.0.113.9"]);
    let ports =
        ["22", "53", "80", "443", "993", "1194", "5060", "5061", "8080", "8085", "25", "40000", "41000"];
    let (sport, dport) = (dice.one(&ports), dice.one(&ports));
    let ds = dice.one(&["", " dscp EF", " tos 0x10", " dscp CS1"]);
    let length = dice.one(&["len 60", "len 500", "len 1400"]);
    let text = match protocol {
        "icmp" => format!("icmp {source} > {destination}{ds} {length}"),
        _ => format!("{protocol} {source}:{sport} > {destination}:{dport}{ds} {length}"),
    };
    Packet::parse(&text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Where a packet that leaves by eth0 ended.
enum Went {
    /// It waited in this class at the top of the tree, or in none.
    In(Option<Handle>),
    /// A queue in a class dropped it: that is not the class's doing.
    Lost,
}

/// Sends it out by eth0; or lets it arrive there, and sees what the ifb does with it.
fn send(prober: &mut Prober, packet: &Packet, ifb: Option<&str>) -> Went {
    let wan = prober.device("eth0").expect("eth0");
    let device = ifb.map_or(wan, |ifb| prober.device(ifb).expect("the ifb"));
    let way = match ifb {
        None => prober.send(packet, wan, EgressPath::Forwarded(None)),
        Some(_) => prober.travel(packet, PacketEntry::Arrives(wan)),
    };
    let stop = way.stop_at(device);
    match way.dropped {
        Some(loss) if loss.at.major() > 1 => Went::Lost,
        _ => Went::In(
            stop.and_then(|stop| stop.classes.iter().rev().find(|class| class.major() == 1).copied()),
        ),
    }
}

/// The short policy's name of a class of the source.
fn name(source: &PolicyModel, dev: &str, class: Handle) -> String {
    let default = source.qdiscs.iter().filter(|q| q.dev == dev).find_map(|q| match &q.params {
        QdiscParams::Htb(htb) => Some(htb.default as u16),
        QdiscParams::Hfsc(hfsc) => Some(hfsc.default),
        _ => None,
    });
    let here = source.classes.iter().filter(|class| class.dev == dev && class.classid.minor() != 0);
    let only = here.count() == 1;
    if only || default == Some(class.minor()) {
        "the rest".into()
    } else {
        format!("class{:x}", class.minor())
    }
}

/// Is it named that packets of a class come to another?
fn is_named(short: &ShortPolicy, dev: &str, from: Option<Handle>, to: &str) -> bool {
    let Some(from) = from else {
        // What was in no class was not shaped, or dropped.
        let matches = |what: &str| what.contains("no default class") || what.contains("not there");
        return short.misfits.iter().any(|one| one.what.contains(dev) && matches(&one.what));
    };
    let id = from.to_string();
    short.misfits.iter().any(|one| {
        let about = one.what.split(|c: char| !(c.is_ascii_hexdigit() || c == ':')).any(|word| word == id);
        about
            && one.what.contains(dev)
            && (one.instead.contains(to) || to == "the rest" && one.instead.starts_with("it is left out"))
    })
}

#[test]
fn what_comes_out_is_what_went_in_but_for_what_is_named() {
    let place = std::env::temp_dir().join(format!("tidegate-to-short-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a directory");
    let (mut made, mut compared, mut same) = (0, 0, 0);
    let mut wrong = Vec::new();
    for seed in 0..POLICIES {
        let mut dice = Dice(seed);
        let (tc, rules) = policy(&mut dice);
        let (batch, list) = (place.join("p.batch"), place.join("p.rules"));
        std::fs::write(&batch, &tc).expect("a batch");
        std::fs::write(&list, &rules).expect("rules");
        let source =
            read(&[list, batch], &ReadOptions::default()).unwrap_or_else(|error| panic!("{seed}: {error}"));
        let reading = source.reading();
        let short = to_short(&reading);
        let output: String =
            short.misfits.iter().map(|one| format!("{}: {}\n", one.what, one.instead)).collect();
        let case = format!("policy {seed}\n{tc}{rules}{}\n{output}", short.text.clone().unwrap_or_default());
        assert!(!output.contains("cannot be read"), "{case}");
        let Some(text) = &short.text else {
            assert!(!short.misfits.is_empty(), "{case}");
            continue;
        };
        made += 1;
        let policy = read_text("policy.toml", text, &ReadOptions::default())
            .unwrap_or_else(|error| panic!("{case}{error}"));
        let mut other = policy.reading();
        let errors: Vec<String> = check(&mut other)
            .iter()
            .filter(|finding| finding.level == Level::Error)
            .map(|finding| format!("{} {}", finding.rule.id(), finding.what))
            .collect();
        if !errors.is_empty() {
            wrong.push(format!("{case}check: {errors:?}"));
            continue;
        }
        rates(&reading, &other, &short, &policy.names)
            .into_iter()
            .for_each(|rate| wrong.push(format!("{case}{rate}")));
        if !reading
            .classes
            .iter()
            .any(|class| matches!(class.params, ClassParams::Htb(_) | ClassParams::Hfsc(_)))
        {
            continue;
        }
        let (mut here, mut there) = (Prober::new(&reading), Prober::new(&other));
        let has_ifb = tc.contains("ifb0") && text.contains("down =");
        for at in 0..PACKETS {
            let (own, its) = if has_ifb && at % 2 == 1 { ("ifb0", "ifb4eth0") } else { ("eth0", "eth0") };
            let ifb = |name: &'static str| Some(name).filter(|name| name.starts_with("ifb"));
            let packet = packet(&mut dice);
            let (from, to) = (send(&mut here, &packet, ifb(own)), send(&mut there, &packet, ifb(its)));
            let (Went::In(from), Went::In(to)) = (from, to) else { continue };
            let to = to.and_then(|to| policy.names.get(&(its.to_owned(), to)).cloned()).unwrap_or_default();
            compared += 1;
            if from.is_some_and(|from| name(&reading, own, from) == to) {
                same += 1;
            } else if !is_named(&short, own, from, &to) {
                wrong.push(format!("{case}`{packet}` goes to {from:?} of {own} there and to {to} here"));
                break;
            }
        }
    }
    std::fs::remove_dir_all(&place).expect("the directory goes");
    println!("{made} of {POLICIES} policies became short ones; {compared} packets, {same} in the same class");
    assert!(
        wrong.is_empty(),
        "{} wrong, the first:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(4)].join("\n\n")
    );
    assert!(made > POLICIES / 2 && same > compared / 3, "{made} {compared} {same}");
}

/// Classes whose rates in HTB differ from the source without being reported.
fn rates(
    source: &PolicyModel,
    other: &PolicyModel,
    short: &ShortPolicy,
    names: &BTreeMap<(String, Handle), String>,
) -> Vec<String> {
    let params = |reading: &PolicyModel, class: Handle| {
        reading.classes.iter().find(|c| c.dev == "eth0" && c.classid == class).and_then(|c| match &c.params {
            ClassParams::Htb(htb) => Some((c.parent, htb.rate.rate.0 * 8, htb.ceil.rate.0 * 8)),
            _ => None,
        })
    };
    let mut wrong = Vec::new();
    for class in source.classes.iter().filter(|class| class.dev == "eth0" && class.classid.minor() != 0) {
        let called = name(source, "eth0", class.classid);
        let found = names.iter().find(|(_, name)| **name == called && called != "the rest");
        let Some(((_, to), _)) = found else { continue };
        let (before, after) = (params(source, class.classid), params(other, *to));
        let (Some((mut parent, rate, mut ceil)), Some((_, new_rate, new_ceil))) = (before, after) else {
            continue;
        };
        let flat = parent.minor() == 0 || parent == Handle::ROOT;
        while let Some((above, _, most)) = params(source, parent) {
            (parent, ceil) = (above, ceil.min(most));
        }
        // Nothing is there to borrow from.
        let ceil = if flat { rate.min(ceil) } else { ceil };
        // With two links shares are whole per cent of each.
        let two = other.qdiscs.iter().any(|q| q.dev == "ifb4eth0");
        let link = other
            .classes
            .iter()
            .filter_map(|c| params(other, c.classid))
            .map(|(_, rate, _)| rate)
            .max()
            .unwrap_or(0);
        let near = |a: u64, b: u64| a.abs_diff(b) <= a / 100 + 2000 + if two { link / 100 } else { 0 };
        let matches = |what: &str| short.misfits.iter().any(|one| one.what.contains(what));
        let scaled = matches("the guaranteed rates of the classes");
        let id = class.classid.to_string();
        if !scaled && !near(rate, new_rate) && !matches(&format!("class {id} of eth0 may send less")) {
            wrong.push(format!("rate of {id}: {rate} became {new_rate}"));
        }
        if !near(ceil.max(rate), new_ceil) && !scaled {
            wrong.push(format!("ceil of {id}: {ceil} became {new_ceil}"));
        }
    }
    wrong
}

/// What a short policy itself comes to is read back whole.
#[test]
fn short_policies_come_back() {
    for preset in &PRESETS {
        for lan in ["", "lan = \"br-lan\"\n"] {
            let text = format!(
                "device = \"eth0\"\n{lan}link = \"vdsl2 pppoe\"\nup = \"10mbit\"\ndown = \"50mbit\"\nkind = \
                \"classes\"\npreset = \"{}\"\n",
                preset.name
            );
            let policy = read_text("policy.toml", &text, &ReadOptions::default()).expect("a policy");
            let back = to_short(&policy.reading());
            assert_eq!(back.misfits, [], "{text}{}", back.text.unwrap_or_default());
        }
    }
}

/// A batch of tc commands, with rules of iptables, as a short policy.
fn of_batch(name: &str, batch: &str, rules: &str) -> (String, String) {
    let place = std::env::temp_dir().join(format!("tidegate-to-short-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a directory");
    let files = [place.join("p.rules"), place.join("p.batch")];
    std::fs::write(&files[0], rules).expect("rules");
    std::fs::write(&files[1], batch).expect("a batch");
    let read = read(&files[usize::from(rules.is_empty())..], &ReadOptions::default());
    let policy = read.unwrap_or_else(|error| panic!("{batch}{error}"));
    let short = to_short(&policy.reading());
    std::fs::remove_dir_all(&place).expect("the directory goes");
    let output = short.misfits.iter().map(|one| format!("{}: {}\n", one.what, one.instead)).collect();
    (short.text.unwrap_or_default(), output)
}

/// An ifb shapes the direction of the packets redirected to it: packets that leave a device are its `up`,
/// arriving ones its `down`.
#[test]
fn what_leaves_is_not_taken_for_what_arrives() {
    let tree = "qdisc add dev ifb0 root handle 1: htb default 10\n\
                class add dev ifb0 parent 1: classid 1:1 htb rate 40mbit\n\
                class add dev ifb0 parent 1:1 classid 1:10 htb rate 30mbit ceil 40mbit prio 2\n\
                class add dev ifb0 parent 1:1 classid 1:20 htb rate 10mbit ceil 40mbit prio 1\n\
                filter add dev ifb0 parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff match ip \
                dport 22 0xffff flowid 1:20\n";
    let redirect = "action mirred egress redirect dev ifb0\n";
    let prio = |dev: &str, protocol: &str, condition: &str| {
        format!(
            "qdisc add dev {dev} root handle 1: prio\n\
             filter add dev {dev} parent 1: protocol {protocol} prio 1 {condition} flowid 1:1 {redirect}"
        )
    };
    let clsact = |dev: &str, hook: &str| {
        format!(
            "qdisc add dev {dev} clsact\nfilter add dev {dev} {hook} protocol all prio 1 matchall {redirect}"
        )
    };
    let all = "u32 match u32 0 0";
    let leaves =
        "to which of what leaves by eth1 all of IPv4 is led, and not of IPv6: a short policy shapes all";
    let table: [(String, &str, &str, &str); 8] = [
        (
            prio("eth1", "ip", all),
            "device = \"eth1\"\nshape = \"100%\"\nup = \"40000kbit\"\n",
            leaves,
            "packets of class",
        ),
        (clsact("eth1", "egress"), "device = \"eth1\"\nshape = \"100%\"\nup = \"40000kbit\"\n", "", "filter"),
        (
            clsact("eth1", "ingress"),
            "device = \"eth1\"\nshape = \"100%\"\ndown = \"40000kbit\"\n",
            "",
            "filter",
        ),
        (
            clsact("br0", "egress"),
            "lan = \"br0\"\nshape = \"100%\"\ndown = \"40000kbit\"\n",
            "the device towards the modem, of which nothing is configured",
            "filter",
        ),
        (
            prio("eth1", "ip", "u32 match ip dport 80 0xffff"),
            "up = \"40000kbit\"\n",
            "which redirects only what it matches: a short policy shapes all that leaves by eth1",
            "of IPv6",
        ),
        (
            format!("{}{}", clsact("eth1", "egress"), clsact("eth2", "egress")),
            "",
            "the tree on ifb0, to which what leaves by eth1 and eth2 is led: it is left out: a short policy \
            shapes what leaves by one",
            "arrives",
        ),
        (
            format!("{}{}", clsact("eth1", "egress"), clsact("eth2", "ingress")),
            "",
            "the tree on ifb0, to which both what arrives at eth2 and what leaves by eth1 is led: it is \
            left out",
            "guess",
        ),
        (
            format!("{}{}", clsact("eth1", "ingress"), clsact("eth2", "ingress")),
            "device = \"eth1\"\nshape = \"100%\"\ndown = \"40000kbit\"\n",
            "what arrives at eth2 and is redirected to ifb0: a short policy that has eth1 as its device shapes \
            what arrives there alone",
            "guess",
        ),
    ];
    for (at, (feed, written, named, unnamed)) in table.into_iter().enumerate() {
        let (text, output) = of_batch(&format!("way{at}"), &format!("{tree}{feed}"), "");
        let case = format!("{feed}\n{text}\n{output}");
        assert!(text.contains(written) && text.is_empty() == written.is_empty(), "{case}");
        assert!(output.contains(named) && !output.contains(unnamed), "{unnamed}\n{case}");
    }
}

/// A rule for hosts that the class has is not left out, though packets of the other direction do not have
/// them there.
#[test]
fn a_rule_whose_hosts_the_class_has_is_not_left_out() {
    let policy = "device = \"ppp0\"\nup = \"8mbit\"\ndown = \"40mbit\"\n[classes.work]\nhosts = \
    [\"192.168.1.20\"]\nshare = \"40%\"\n";
    for lan in ["", "lan = \"br-lan\"\n"] {
        let source =
            read_text("policy.toml", &format!("{lan}{policy}"), &ReadOptions::default()).expect("a policy");
        let short = to_short(&source.reading());
        let text = short.text.expect("a short policy");
        assert!(text.contains("[classes.work]\nhosts = [\"192.168.1.20\"]"), "{text}");
        assert!(
            short.misfits.iter().all(|one| !one.what.contains("behind the provider")),
            "{:?}",
            short.misfits
        );
    }
    // The class does not have those of a rule for the other end.
    let tree = "qdisc add dev eth0 root handle 1: htb default 30\n\
                class add dev eth0 parent 1: classid 1:1 htb rate 10mbit\n\
                class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit prio 1\n\
                class add dev eth0 parent 1:1 classid 1:30 htb rate 5mbit ceil 10mbit prio 2\n";
    let rules = "*mangle\n-A POSTROUTING -s 192.168.1.20 -j CLASSIFY --set-class 1:10\n\
                 -A POSTROUTING -d 198.51.100.0/24 -j CLASSIFY --set-class 1:10\nCOMMIT\n";
    let (text, output) = of_batch("hosts", tree, rules);
    assert!(text.contains("hosts = [\"192.168.1.20\"]"), "{text}{output}");
    let named = "to 1:10, which matches hosts behind the provider: it is left out";
    assert!(output.contains(named) && output.matches("behind the provider").count() == 1, "{text}{output}");
}

/// The conditions of a u32 filter are given in words, or as tc's own.
#[test]
fn matched_bytes_are_described_in_words() {
    let tree = "qdisc add dev eth0 root handle 1: htb default 30\n\
                class add dev eth0 parent 1: classid 1:1 htb rate 10mbit\n\
                class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit prio 1\n\
                class add dev eth0 parent 1:1 classid 1:30 htb rate 5mbit ceil 10mbit prio 2\n\
                filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:10\n";
    for (condition, output) in [
        (
            "match ip protocol 6 0xff match u8 0x05 0x0f at 0 match u16 0x0000 0xffc0 at 2 match u8 0x10 \
            0xff at 33",
            "which matches short acknowledgements (packets of TCP with the flag ACK, of less than 64 \
            bytes): it is left out",
        ),
        (
            "match ip protocol 6 0xff match u8 0x05 0x0f at 0 match u16 0x0000 0xffc0 at 2",
            "which matches bytes that a short policy cannot match (`match u32 0x05000000 0x0f00ffc0 at \
            0`): it is left out",
        ),
    ] {
        let filter =
            format!("filter add dev eth0 parent 1: protocol ip prio 2 u32 {condition} flowid 1:10\n");
        let (_, text) = of_batch("bytes", &format!("{tree}{filter}"), "");
        assert!(text.contains(output), "{text}");
    }
}
