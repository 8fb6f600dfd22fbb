//! A thousand command lines, and the answers of tc (iproute2 6.1).

use tidegate_policy::{FilterParams, FlowKeySet, FlowerField, Op};
use tidegate_syntax::tc::{self, TcCommand};
use tidegate_syntax::{Device, Env};

/// Lines whose answer differs on purpose, with the reason.
const DIFFERENT: &[(&str, &str)] = &[
    ("rate -1", "tc takes it for 0, and its words are about that"),
    ("htb o", "offload is refused at once: no device has it"),
    ("help", "tc prints its usage and then carries the command out"),
    ("priomap 0 0 0 bands 2", "tc prints its usage and goes on"),
    ("priomap 1 2 2 bands 3", "tc prints its usage and goes on"),
    ("skip_sw", "refused at once as the kernel would: no card takes filters over"),
    (
        "handle 2: mq",
        "mq, mqprio and multiq are refused at once as the kernel would with one queue, whatever follows",
    ),
    ("handle 2: multiq", "the same"),
    ("handle 2: taprio", "the same"),
];

fn answer(args: &[String], env: &Env) -> (String, Vec<String>) {
    match tc::parse(args, env) {
        Ok(parsed) => match parsed.command {
            TcCommand::Help(_) => ("0".into(), Vec::new()),
            _ => ("ok".into(), parsed.stderr.lines().map(String::from).collect()),
        },
        Err(refusal) => (refusal.code.to_string(), refusal.stderr.lines().map(String::from).collect()),
    }
}

#[test]
fn tc_gives_the_same_answers() {
    let env =
        Env { devices: Some(vec![Device { name: "lo".into(), ..Device::default() }]), ..Env::default() };
    let mut wrong = Vec::new();
    let (mut same, mut later, mut different) = (0, 0, 0);
    for line in include_str!("../data/tc-answers.txt").lines().filter(|line| !line.starts_with('#')) {
        let mut fields = line.splitn(3, '\t');
        let (verdict, output, command) = match (fields.next(), fields.next(), fields.next()) {
            (Some(verdict), Some(said), Some(command)) => (verdict, said, command),
            _ => panic!("a line of the table is not three fields: {line}"),
        };
        let args: Vec<String> = command
            .split_whitespace()
            .map(|word| if word == "''" { String::new() } else { word.into() })
            .collect();
        let lines: Vec<String> =
            output.split('|').filter(|line| !line.is_empty()).map(String::from).collect();
        let (code, ours) = answer(&args, &env);
        if ours.first().is_some_and(|line| line.starts_with("tidegate:")) {
            later += 1;
        } else if code == verdict && ours.len() >= lines.len() && ours[..lines.len()] == lines {
            same += 1;
        } else if DIFFERENT.iter().any(|(part, _)| command.contains(part)) {
            different += 1;
        } else {
            wrong.push(format!("tc {command}\n  tc:   {verdict} {lines:?}\n  ours: {code} {ours:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), wrong.len() + same, wrong.join("\n"));
    assert!(same > 900, "only {same} the same, {later} for later, {different} different on purpose");
}

/// tc 6.1 takes a rate below 0 for 18446744 Tbit/s: the refusal is in tc's name only where it refuses, too.
#[test]
fn rates_below_zero_are_refused_in_our_own_name() {
    let refused = |line: &str| {
        let args: Vec<String> = line.split(' ').map(String::from).collect();
        let refusal = tc::parse(&args, &Env::default()).expect_err(line);
        (
            refusal.stderr.lines().next().unwrap_or_default().to_owned(),
            refusal.word.map(|at| args[at].clone()),
        )
    };
    for (line, option) in [
        ("class add dev eth0 parent 1: classid 1:1 htb rate -5kbit", "rate"),
        ("class add dev eth0 parent 1: classid 1:1 htb rate 5kbit ceil -5kbps", "ceil"),
        ("qdisc add dev eth0 root tbf rate 5kbit burst 5k latency 50ms peakrate -5kbit mtu 1600", "peakrate"),
        ("qdisc add dev eth0 root cake bandwidth -5kbit", "bandwidth"),
        ("qdisc add dev eth0 root netem rate -5kbit", "rate"),
        ("filter add dev eth0 parent 1: matchall action police rate -5kbit burst 5k", "rate"),
    ] {
        let (said, word) = refused(line);
        assert!(said.starts_with(&format!("tidegate: a {option} below 0 is not supported: -5kb")), "{said}");
        assert!(word.is_some_and(|word| word.starts_with("-5kb")), "{line}");
    }
    for (line, theirs) in [
        ("qdisc add dev eth0 root fq maxrate -5kbit", "Illegal \"maxrate\""),
        ("class add dev eth0 parent 1: classid 1:1 hfsc sc rate -5kbit", "HFSC: Illegal \"rate\""),
    ] {
        assert_eq!(refused(line).0, theirs, "{line}");
    }
}

/// The keys of a tunnel's inside exist in patched kernels only: without them tc's messages, and ours after
/// them; with them the flow filter of the patch's author, in which a key occurs twice.
#[test]
fn keys_of_a_tunnels_inside() {
    let list =
        "src,dst,proto,proto-src,proto-dst,tunnel-src,tunnel-dst,proto,tunnel-proto-src,tunnel-proto-dst";
    let line = format!(
        "filter add dev eth0 parent 11: protocol all prio 1 handle 11 flow hash keys {list} divisor 1024"
    );
    let args: Vec<String> = line.split(' ').map(String::from).collect();
    let refusal = tc::parse(&args, &Env::default()).expect_err("mainline tc does not know them");
    assert_eq!(refusal.stderr.lines().next(), Some("Unknown flow key \"tunnel-src\""));
    assert!(refusal.remedy.is_some_and(|remedy| remedy.contains("--dissect legacy")));
    let patched = Env { tunnel_keys: true, ..Env::default() };
    let op = match tc::parse(&args, &patched).map(|parsed| parsed.command) {
        Ok(TcCommand::Apply(Op::Filter(op))) => op,
        other => panic!("{other:?}"),
    };
    let Some(FilterParams::Flow(flow)) = op.params else { panic!("{:?}", op.params) };
    let names: Vec<&str> =
        (0..).zip(FlowKeySet::NAMES).filter(|(bit, _)| flow.keys.has(*bit)).map(|(_, n)| n).collect();
    let wanted = "src,dst,proto,proto-src,proto-dst,tunnel-src,tunnel-dst,tunnel-proto-src,tunnel-proto-dst";
    assert_eq!(names.join(","), wanted);
}

/// What tc 6.1 and 7.2 make of link addresses (asked of both): bytes that are not written are what its
/// memory holds, and a mask is read over the address.
#[test]
fn link_addresses_are_read_as_tc_reads_them() {
    let read = |text: &str| {
        let line = format!("filter add dev eth0 parent 1: protocol ip flower dst_mac {text} classid 1:1");
        let args: Vec<String> = line.split(' ').map(String::from).collect();
        match tc::parse(&args, &Env::default()).map(|parsed| parsed.command) {
            Ok(TcCommand::Apply(Op::Filter(op))) => match op.params {
                Some(FilterParams::Flower(flower)) => flower
                    .key(FlowerField::DstMac)
                    .map_or("none".to_owned(), |key| format!("{:012x}/{:012x}", key.value, key.mask)),
                other => panic!("{other:?}"),
            },
            Ok(other) => panic!("{other:?}"),
            Err(refusal) => refusal.stderr.trim_end().replace('\n', "|"),
        }
    };
    for (text, expected) in [
        ("1:2:3:4:5:6", "010203040506/ffffffffffff"),
        ("1:2:3:4:5:6:7", "010203040506/ffffffffffff"),
        ("1:2:3:4:5:6x", "010203040506/ffffffffffff"),
        ("1:2:3:4:5:0x6", "010203040506/ffffffffffff"),
        ("01:11:22:33:44:55/24", "011122000000/ffffff000000"),
        ("01:11:22:33:44:55/08", "010000000000/ff0000000000"),
        ("01:11:22:33:44:55/ff:80:0:0:0:0", "010000000000/ff8000000000"),
        ("01:11:22:33:44:55/ff:ff:ff", "011122334455/ffffff334455"),
        ("01:11:22:33:44:55/0x10", "001122334455/101122334455"),
        ("1:2:3:4:5:155", "\"155\" is invalid lladdr.|Illegal \"dst_mac\""),
        ("1::2", "\"\" is invalid lladdr.|Illegal \"dst_mac\""),
        ("1:2:3:4:5:6/-1", "\"-1\" is invalid lladdr.|Illegal \"dst_mac\""),
        // Bytes of tc's memory, and masks that it makes by a shift too far.
        ("1:2:3:4:5", "tidegate: dst_mac 1:2:3:4:5 is not supported: it has 5 of 6 bytes"),
        ("1.2.3.4", "tidegate: dst_mac 1.2.3.4 is not supported: it has 4 of 6 bytes"),
        ("1:2:3:4:5:6/0", "tidegate: a mask of 0 bits is not supported: dst_mac 1:2:3:4:5:6/0"),
        ("1:2:3:4:5:6/49", "tidegate: a mask of 49 bits is not supported: dst_mac 1:2:3:4:5:6/49"),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
}

/// A filter for a card alone, by each kind's own answer (asked of 6.1 and 7.2).
#[test]
fn filters_for_a_card_alone() {
    for (filter, expected) in [
        ("flower skip_sw", "RTNETLINK answers: Operation not supported"),
        ("flower skip_sw skip_hw", "RTNETLINK answers: Invalid argument"),
        ("matchall skip_sw", "RTNETLINK answers: Operation not supported"),
        ("matchall skip_sw skip_hw", "skip_hw and skip_sw are mutually exclusive"),
        // Linux takes this one, and then it fits no packet.
        ("u32 match u32 0 0 skip_sw", "tidegate: skip_sw of u32 is not supported"),
        ("u32 match u32 0 0 skip_sw skip_hw", "skip_hw and skip_sw are mutually exclusive"),
    ] {
        let line = format!("filter add dev eth0 parent 1: protocol ip {filter} flowid 1:1");
        let args: Vec<String> = line.split(' ').map(String::from).collect();
        let refusal = tc::parse(&args, &Env::default()).expect_err(&line);
        assert_eq!(refusal.stderr.lines().next(), Some(expected), "{line}");
        assert_eq!(refusal.word.map(|at| args[at].as_str()), Some("skip_sw"), "{line}");
    }
}

/// Of a curve the word is blamed at which the notation that was meant ends.
#[test]
fn the_wrong_word_of_a_curve_is_blamed() {
    for (curve, word) in [
        ("sc m1 5mbit d 10ms m2 2mkbit ul m2 5mbit", "2mkbit"),
        ("sc m1 5mbit d 10 mss m2 2mbit", "mss"),
        ("ls rate 5mbitt", "5mbitt"),
        ("rt umax 1500b dmax 20foo rate 1mbit", "20foo"),
        ("rt fast", "fast"),
    ] {
        let line = format!("class add dev eth0 parent 1: classid 1:1 hfsc {curve}");
        let args: Vec<String> = line.split(' ').map(String::from).collect();
        let refusal = tc::parse(&args, &Env::default()).expect_err(&line);
        assert_eq!(refusal.word.map(|at| args[at].as_str()), Some(word), "{line}: {refusal}");
    }
}
