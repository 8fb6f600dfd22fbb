//! `tidegate explain`, `graph` and `test`: what only the commands themselves show. (Their output is in docs/,
//! and is executed.)

use crate::common;

use common::{Place, TIDEGATE, skip};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tidegate_inspect::Packet;

/// Exit code, output, errors.
fn tidegate(args: &[&str]) -> (i32, String, String) {
    let output = Command::new(TIDEGATE).args(args).output().expect("tidegate runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

fn name(path: &Path) -> &str {
    path.to_str().expect("a name")
}

const BANDS: &str = "\
qdisc add dev eth0 root handle 1: prio
filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:1
";

/// A recording of these packets, Ethernet frames in the old format.
fn recording(words: &[&str]) -> Vec<u8> {
    let mut bytes =
        [&[0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0][..], &[0; 8], &[0xff, 0xff, 0, 0, 1, 0, 0, 0]].concat();
    for words in words {
        let packet = Packet::parse(words).expect(words);
        let mut frame = vec![0; 12];
        frame.extend(packet.ethertype.to_be_bytes());
        frame.extend(packet.head().network());
        bytes.extend([0; 8]);
        bytes.extend((frame.len() as u32).to_le_bytes());
        bytes.extend((u32::from(packet.length) + 14).to_le_bytes());
        bytes.extend(frame);
    }
    bytes
}

/// What tidegate cannot carry out is missing from an explanation, and that is part of it, not of the errors
/// alone.
#[test]
fn an_explanation_names_the_commands_that_it_lacks() {
    let place = Place::new("understand-lacks");
    let policy = |statement: &str| {
        format!(
            "table inet m {{\n chain post {{\n  type filter hook postrouting priority mangle;\n  \
             tcp dport 22 meta mark set 1\n  {statement}\n }}\n}}\n"
        )
    };
    let bands = place.file("bands.tc", BANDS);
    let explained = |nft: &Path, form: &[&str]| {
        let files =
            [&["explain", name(&bands), "--also", name(nft), "tcp 10.0.0.1 > 1.1.1.1:22"], form].concat();
        tidegate(&files)
    };
    let lacks = place.file("lacks.nft", policy("tcp dport 443 tproxy to :1080"));
    let (code, out, errors) = explained(&lacks, &[]);
    let said = "lacks.nft:5, which tidegate cannot carry out (the statement tproxy is not supported in this version)";
    assert!(code == 0 && out.contains("\nnot included: ") && out.contains(said), "{out}\n{errors}");
    let (_, out, _) = explained(&lacks, &["--json"]);
    let document: Value = serde_json::from_str(&out).expect("a document");
    assert_eq!(document["not_carried_out"][0]["place"]["line"], 5, "{out}");
    let whole = place.file("whole.nft", policy("tcp dport 443 accept"));
    let (_, out, errors) = explained(&whole, &[]);
    assert!(!out.contains("not included") && out.contains("mark 0x1"), "{out}\n{errors}");
}

#[test]
fn flows_of_a_recording_are_explained_once_each() {
    let place = Place::new("understand-pcap");
    let policy = place.file("bands.tc", BANDS);
    let ssh = "tcp 10.0.0.1 > 10.0.0.2:22 len 60";
    let dns = "udp 10.0.0.1 > 10.0.0.2:53 len 80";
    let pcap = place.file("some.pcap", recording(&[ssh, ssh, dns]));
    let (code, out, errors) = tidegate(&["explain", name(&policy), "--pcap", name(&pcap), "--json"]);
    assert_eq!(code, 0, "{errors}");
    let document: Value = serde_json::from_str(&out).expect("is JSON");
    let packets = document["packets"].as_array().expect("a list");
    let shown: Vec<[&str; 2]> = packets
        .iter()
        .map(|one| [one["packet"].as_str().unwrap_or(""), one["end"]["classes"][0].as_str().unwrap_or("")])
        .collect();
    assert_eq!(shown, [[ssh, "1:1"], [dns, "1:2"]]);
    let (code, out, _) = tidegate(&["explain", name(&policy), "--pcap", name(&pcap), "--number", "3"]);
    assert_eq!((code, out.lines().next()), (0, Some(format!("packet 3: {dns}").as_str())));
}

#[test]
fn codes_tell_what_came_of_it() {
    let place = Place::new("understand-codes");
    let policy = place.file("bands.tc", BANDS);
    let other = place.file("other.tc", BANDS.replace("flowid 1:1", "flowid 1:3"));
    let (ssh, dns) = ("tcp 10.0.0.1 > 10.0.0.2:22", "udp 10.0.0.1 > 10.0.0.2:53");
    let suite = |expected: &str| {
        format!(
            "policy = \"bands.tc\"\nup = \"1mbit\"\ndown = \"1mbit\"\nexpect = [\"packet '{ssh}': \
            {expected}\"]\n"
        )
    };
    let (path, failed) =
        (place.file("held.toml", suite("class 1:1")), place.file("failed.toml", suite("class 1:2")));
    let wrong = place.file("wrong.toml", suite("clas 1:1"));
    let missing = place.0.join("nothing.tc");
    let table: [(i32, &str, &[&str]); 10] = [
        (0, "ends: eth0 1:1", &["explain", name(&policy), ssh]),
        (0, "the same under", &["explain", name(&policy), dns, "--diff", name(&other)]),
        (1, "→ 1:3", &["explain", name(&policy), ssh, "--diff", name(&other)]),
        (2, "`10.0.0.2`: it has no port", &["explain", name(&policy), "tcp 10.0.0.1 > 10.0.0.2"]),
        (2, "there is no such file", &["explain", name(&missing), ssh]),
        (2, "is not a recording", &["explain", name(&policy), "--pcap", name(&policy)]),
        (0, "1 held, 0 failed", &["test", name(&path)]),
        (1, "see: tidegate explain", &["test", name(&failed)]),
        (2, "wrong.toml:4:49: unknown packet result", &["test", name(&wrong)]),
        (2, "nothing is configured on eth7", &["graph", name(&policy), "--dev", "eth7"]),
    ];
    for (code, output, args) in table {
        let (found, out, errors) = tidegate(args);
        assert_eq!(found, code, "{args:?}: {errors}");
        assert!(out.contains(output) || errors.contains(output), "{args:?}: {out}{errors}");
    }
}

#[test]
fn a_picture_is_a_document_of_its_own_in_light_and_dark() {
    let place = Place::new("understand-graph");
    let policy = place.file("bands.tc", BANDS);
    let picture = place.0.join("bands.svg");
    let (code, out, errors) = tidegate(&["graph", name(&policy), "-o", name(&picture)]);
    assert_eq!((code, out.as_str()), (0, ""), "{errors}");
    let svg = std::fs::read_to_string(&picture).expect("it was written");
    for part in [
        "<svg xmlns=\"http://www.w3.org/2000/svg\"",
        "prefers-color-scheme:dark",
        "prio 1:",
        "◂ u32 dport 22",
    ] {
        assert!(svg.contains(part), "{part} is missing: {svg}");
    }
}

/// HFSC lists its root as a class of the qdisc's own number: it is no class below itself.
#[test]
fn hfsc_is_a_tree_with_its_curves() {
    let place = Place::new("understand-hfsc");
    let policy = place.file(
        "hfsc.tc",
        "qdisc add dev eth0 root handle 1: hfsc default 20
class add dev eth0 parent 1: classid 1:1 hfsc sc rate 9mbit ul rate 9mbit
class add dev eth0 parent 1:1 classid 1:10 hfsc rt m1 5mbit d 10ms m2 2mbit ls rate 4mbit
class add dev eth0 parent 1:1 classid 1:20 hfsc ls rate 5mbit ul rate 9mbit
",
    );
    let expected = "\
eth0  mtu 1500, txqueuelen 1000
└─ hfsc 1: default 0x20
   └─ 1:1  rt 9Mbit  ls 9Mbit  ul 9Mbit
      ├─ 1:10  rt 5Mbit for 10ms, then 2Mbit  ls 4Mbit
      └─ 1:20  ls 5Mbit  ul 9Mbit
            ◂ all that no filter leads elsewhere
";
    let (code, out, errors) = tidegate(&["graph", name(&policy)]);
    assert_eq!((code, out.as_str()), (0, expected), "{errors}");
}

/// Filters of other chains, what goes there, and which side of a device a redirect takes.
/// A queue without classes sorts by its own filters, wherever it hangs; and a qdisc is no class.
#[test]
fn filters_of_a_queue_in_a_class_are_drawn() {
    let place = Place::new("understand-inner");
    let policy = place.file(
        "inner.batch",
        "qdisc add dev eth0 root handle 1: htb default 12\n\
         class add dev eth0 parent 1: classid 1:12 htb rate 3mbit\n\
         qdisc add dev eth0 parent 1:12 handle 10: sfq perturb 10\n\
         filter add dev eth0 parent 10: protocol ip prio 1 u32 match ip sport 25 0xffff flowid 10:1\n\
         qdisc add dev eth1 root handle 2: prio\n\
         filter add dev eth1 parent 2: protocol ip prio 1 u32 match ip sport 25 0xffff flowid 2:\n",
    );
    let (_, drawn, said) = tidegate(&["graph", name(&policy)]);
    assert!(drawn.contains("u32 sport 25  (ip, prio 1) to queue 1"), "{drawn}{said}");
    assert!(drawn.contains("to 2: itself, which is no class"), "{drawn}");
    // What an action leaves to the filters behind goes to no class.
    let goes_on = place.file(
        "goes-on.batch",
        "qdisc add dev eth0 root handle 1: prio\n\
         filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip sport 25 0xffff flowid 1:1 action continue\n",
    );
    let (_, drawn, said) = tidegate(&["graph", name(&goes_on)]);
    let line = drawn.lines().find(|line| line.contains("continue")).expect(&said);
    assert!(!drawn.lines().any(|line| line.contains("1:1  ")) && line.contains("u32 sport 25"), "{drawn}");
}

#[test]
fn chains_and_the_ingress_of_devices_are_named() {
    let place = Place::new("understand-chains");
    let policy = place.file(
        "chains.tc",
        "qdisc add dev eth0 root handle 1: htb default 30
class add dev eth0 parent 1: classid 1:10 htb rate 2mbit
filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff action goto chain 5
filter add dev eth0 parent 1: protocol ip chain 5 prio 1 flower ip_proto tcp classid 1:10
qdisc add dev eth0 ingress
filter add dev eth0 parent ffff: protocol ip prio 1 matchall action mirred ingress redirect dev eth1
filter add dev eth0 parent ffff: protocol ip prio 2 matchall action mirred ingress mirror dev eth1
filter add dev eth0 parent ffff: protocol ip prio 3 matchall action mirred egress redirect dev eth1
",
    );
    let (code, out, errors) = tidegate(&["graph", name(&policy)]);
    let leads: Vec<&str> =
        out.lines().filter_map(|line| line.split_once('◂')).map(|(_, lead)| lead.trim()).collect();
    let expected = [
        "u32 dport 80  (ip, prio 1) ⇒ goto chain 5",
        "flower eth_type ipv4, ip_proto tcp  (ip, prio 1, chain 5)",
        "everything  (ip, prio 1) ⇒ to ingress of eth1",
        "everything  (ip, prio 2) ⇒ a copy to ingress of eth1",
        "everything  (ip, prio 3) ⇒ to eth1",
    ];
    assert_eq!((code, leads.as_slice()), (0, expected.as_slice()), "{errors}");
}

/// A reply behind DNAT begins its way with the addresses of the host that sends it.
#[test]
fn the_reply_to_a_translated_packet_shows_what_it_comes_as() {
    let place = Place::new("understand-dnat");
    let policy = place.file(
        "dnat.sh",
        "iptables -t nat -A PREROUTING -i eth0 -p tcp --dport 8080 -j DNAT --to-destination 192.168.1.7:80
tc qdisc add dev eth0 root handle 1: prio
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip sport 8080 0xffff flowid 1:1
",
    );
    let packet = "tcp 203.0.113.9:5000 > 198.51.100.1:8080 in eth0";
    let (code, out, errors) = tidegate(&["explain", name(&policy), packet, "--reply"]);
    assert_eq!(code, 0, "{errors}");
    let reply = out.split("\nthe answer: ").nth(1).expect("the reply is explained");
    let heading = "tcp 198.51.100.1:8080 > 203.0.113.9:5000 established reply in lan out eth0\n\
        comes as tcp 192.168.1.7:80 > 203.0.113.9:5000 established reply in lan out eth0\n";
    assert!(reply.starts_with(heading) && reply.contains("ends: eth0 1:1, "), "{reply}");
}

/// The engine decides whether an expression or fields match: filters that do not match are not reported as
/// matching.
#[test]
fn basic_and_flower_are_marked_as_they_match() {
    let place = Place::new("understand-basic");
    let policy = place.file(
        "basic.tc",
        "qdisc add dev eth0 root handle 1: prio bands 4
filter add dev eth0 parent 1: protocol ip prio 1 basic match 'cmp(u16 at 2 layer transport eq 22)' flowid 1:1
filter add dev eth0 parent 1: protocol ip prio 2 flower ip_proto tcp dst_port 80 classid 1:2
filter add dev eth0 parent 1: protocol ip prio 3 basic match 'cmp(u16 at 2 layer transport eq 443)' flowid \
1:3 action ok
filter add dev eth0 parent 1: protocol ip prio 4 matchall flowid 1:4
",
    );
    let marks = |port: u16| {
        let packet = format!("tcp 192.168.1.2 > 10.0.0.2:{port}");
        let (_, out, errors) = tidegate(&["explain", name(&policy), &packet]);
        let lines = out.lines().map(str::trim_start).filter(|line| line.contains("pref "));
        let marks: String = lines.filter_map(|line| line.chars().next()).collect();
        (
            marks,
            out.contains(&format!(
                "class 1:{}",
                1 + [22, 80, 443, 25].iter().position(|p| *p == port).unwrap()
            )),
            errors,
        )
    };
    let found = [22, 80, 443, 25].map(marks);
    let found: Vec<(&str, bool)> = found.iter().map(|(marks, right, _)| (marks.as_str(), *right)).collect();
    assert_eq!(found, [("+", true), ("-+", true), ("--+", true), ("---+", true)], "{found:?}");
}

/// The filters that lead to a class are given in words; a mark that no packet keeps leads nowhere.
#[test]
fn filters_of_a_class_are_described_in_words() {
    let place = Place::new("understand-leads");
    if skip() {
        return;
    }
    let script = place.script(
        "policy.sh",
        "#!/bin/sh
tc qdisc add dev eth0 root handle 1: hfsc default 20
tc class add dev eth0 parent 1: classid 1:10 hfsc sc rate 5mbit ul rate 9mbit
tc class add dev eth0 parent 1: classid 1:20 hfsc sc rate 5mbit ul rate 9mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 basic match 'cmp(u16 at 2 layer transport eq 22) and \
not u32(u8 0x11 0xff at 9)' classid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 2 flower ip_proto tcp dst_port 443 classid 1:20
tc filter add dev eth0 parent 1: protocol ip prio 3 handle 7 fw classid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 4 handle 8 fw classid 1:20
iptables -t mangle -A POSTROUTING -o eth0 -p udp --dport 53 -j CLASSIFY --set-class 1:10
iptables -t mangle -A POSTROUTING -o eth1 -p udp --dport 54 -j CLASSIFY --set-class 1:10
iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 22 -j MARK --set-mark 7
iptables -t mangle -A POSTROUTING -o eth0 -p tcp -j MARK --set-mark 8
",
    );
    let run = |args: &[&str]| {
        let output = Command::new(TIDEGATE).args(args).output().expect("it runs");
        String::from_utf8(output.stdout).expect("text")
    };
    let graph = run(&["graph", name(&script)]);
    let leads: Vec<&str> =
        graph.lines().filter_map(|line| line.split_once('◂')).map(|(_, lead)| lead.trim()).collect();
    assert_eq!(
        leads,
        [
            "basic cmp(u16 at 2 layer transport eq 22) and not u32(00110000/00ff0000 at 8)  (ip, prio 1)",
            "fw mark 7  (ip, prio 3)  [no packet comes to it]",
            "classified by a rule: -o eth0 -p udp -m udp --dport 53  (mangle POSTROUTING)",
            "flower eth_type ipv4, ip_proto tcp, dst_port 443  (ip, prio 2)",
            "fw mark 8  (ip, prio 4)",
            "mark 8: -o eth0 -p tcp  (mangle POSTROUTING)",
            "all that no filter leads elsewhere",
        ],
        "{graph}"
    );
    assert!(graph.contains("hfsc 1: default 0x20"), "{graph}");
    // Each condition with the packet's value, and the filter's place.
    let story = run(&["explain", name(&script), "tcp 192.168.1.10:40000 > 198.51.100.7:443"]);
    let about = story.split("\nleaves by eth0").nth(1).expect("its way out");
    for (text, there) in [
        ("`cmp(u16 at 2 layer transport eq 22)` does not hold\n", true),
        ("`not u32(", false),
        ("`dst_port 443` holds: the destination port is 443\n", true),
        ("policy.sh:5]", true),
        ("policy.sh:6]", true),
    ] {
        assert_eq!(about.contains(text), there, "{text}\n{story}");
    }
}

/// A refusal in a text behind a command is in a line of that text: `graph`, `run` and `explain` name it.
#[test]
fn what_is_refused_in_a_text_is_found_in_its_line() {
    let place = Place::new("understand-inside");
    if skip() {
        return;
    }
    let batch = place.script(
        "batch.sh",
        "#!/bin/sh
DEV=eth0
tc -b - <<X
qdisc add dev $DEV root handle 1: htb default 20
qdisc add dev $DEV parent 1:30 sfq
X
true
",
    );
    let tables = place.script(
        "tables.sh",
        "#!/bin/sh
tc qdisc add dev eth0 root handle 1: htb default 20
nft -f - <<X
table inet m {
  chain post {
    type filter hook postrouting priority mangle;
    oifname \"eth0\" tcp dport 23 meta mark seet 5
  }
}
X
true
",
    );
    for (script, line) in [(&batch, 5), (&tables, 7)] {
        for command in ["graph", "run", "explain"] {
            let mut args = vec![command, name(script)];
            args.extend((command == "explain").then_some("tcp 192.168.1.10 > 198.51.100.7:443"));
            let (_, _, errors) = tidegate(&args);
            let at = format!("{}:{line}: ", name(script));
            assert!(errors.contains(&at), "{command}: `{at}` is missing in\n{errors}");
        }
    }
}

/// A mark that a connection restores leads other packets to a class than its rule matches.
#[test]
fn a_restored_mark_is_not_described_by_its_rules_conditions() {
    let place = Place::new("understand-connection");
    if skip() {
        return;
    }
    let mut text = "#!/bin/sh
iptables -t mangle -A PREROUTING -j CONNMARK --restore-mark
iptables -t mangle -A FORWARD -o eth0 -p tcp --dport 22 -m mark --mark 0 -j MARK --set-mark 5
iptables -t mangle -A POSTROUTING -j CONNMARK --save-mark
"
    .to_owned();
    for dev in ["eth0", "br0"] {
        text.push_str(&format!(
            "tc qdisc add dev {dev} root handle 1: htb default 20
tc class add dev {dev} parent 1: classid 1:10 htb rate 1mbit
tc class add dev {dev} parent 1: classid 1:20 htb rate 1mbit
tc filter add dev {dev} parent 1: protocol ip prio 1 handle 5 fw flowid 1:10
"
        ));
    }
    let script = place.script("marks.sh", &text);
    let (_, graph, errors) = tidegate(&["graph", name(&script)]);
    let (wan, lan) = graph.split_once("\nbr0 ").unwrap_or_else(|| panic!("{graph}{errors}"));
    let brought = "(mangle FORWARD, on other packets of the connection)";
    assert_eq!((wan.contains(brought), lan.contains(brought)), (false, true), "{graph}");
    let args = ["try", name(&script), "--dev", "eth0", "--up", "4mbit", "--down", "9mbit"];
    let (_, tried, errors) =
        tidegate(&[&args[..], &["--duration", "1s", "--load", "up", "--report", "none"]].concat());
    let title = |class: &str| tried.lines().find(|line| line.starts_with(class)).map(str::to_owned);
    assert!(
        title("1:10 ").is_some_and(|line| line.contains("tcp port 22") && !line.contains("connections")),
        "{tried}{errors}"
    );
    assert!(title("br0 1:10 ").is_some_and(|line| line.contains("connections of tcp")), "{tried}{errors}");
}

/// A class's rate is no rate; the script does not care.
const IGNORED: &str = "#!/bin/sh
tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit
if ! tc class add dev eth0 parent 1: classid 1:20 htb rate 'bo
gus' 2>/dev/null; then true; fi
";

#[test]
fn failures_that_a_script_ignores_are_printed() {
    if skip() {
        return;
    }
    let place = Place::new("understand-ignored");
    let script = place.script("ignored.sh", IGNORED);
    let packet = "udp 10.0.0.1 > 10.0.0.2:53 out eth0";
    let rates = ["--up", "5mbit", "--down", "5mbit", "--duration", "1s", "--load", "up", "-o", "none"];
    for words in [
        &["graph", name(&script)][..],
        &["explain", name(&script), packet],
        &["policy", "from", name(&script)],
        &[&["try", name(&script)][..], &rates].concat(),
    ] {
        let (code, _, errors) = tidegate(words);
        assert!(code <= 1, "{words:?}: {errors}");
        let line = errors.lines().find(|line| line.contains("which the script hides or ignores"));
        let line = line.unwrap_or_else(|| panic!("{words:?}: {errors}"));
        // One line, whatever the script's words hold.
        assert!(line.contains("ignored.sh:4: ") && line.contains("missing: Illegal \"rate\""), "{line}");
    }
}

#[test]
fn the_result_of_another_policy_is_refused() {
    if skip() {
        return;
    }
    let place = Place::new("understand-result");
    let of = |rate: &str, more: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10\n\
            tc class add dev eth0 parent 1: classid 1:10 htb rate {rate}\n\
            tc qdisc add dev eth0 parent 1:10 handle 10: pfifo limit 20\n{more}"
        )
    };
    let script = place.script("p.sh", of("5mbit", ""));
    let words = ["--up", "5mbit", "--down", "5mbit", "--duration", "1s", "--load", "up", "--json"];
    let (code, result, errors) = tidegate(&[&["try", name(&script)][..], &words].concat());
    assert_eq!(code, 0, "{errors}");
    let result = place.file("r.json", result);
    let graph = |policy: &Path| tidegate(&["graph", name(policy), "--result", name(&result)]);
    let (code, text, errors) = graph(&script);
    assert!(code == 0 && text.contains("of what it may"), "{text}{errors}");
    let another =
        "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 53 0xffff flowid 1:10\n";
    for (text, difference) in [
        (of("4mbit", ""), "class 1:10 on eth0 has another rate in the policy"),
        (of("5mbit", "").replace("default 10", "default 20"), "qdisc 1: on eth0 has other options"),
        (of("5mbit", "").replace("limit 20", "limit 30"), "qdisc 10: on eth0 has other options"),
        (of("5mbit", "").replace("1:10", "1:11"), "class 1:10 on eth0 is not in the policy"),
        (of("5mbit", another), "it is of 3 commands, the policy has 4"),
    ] {
        let (code, text, errors) = graph(&place.script("other.sh", text));
        assert!(code == 2 && text.is_empty() && errors.contains(difference), "{difference}: {errors}");
    }
}

/// nft has one word for the DSCP of each family.
#[test]
fn the_dscp_of_ipv6_has_its_own_word() {
    let place = Place::new("understand-dscp");
    let rules = place.file(
        "rules.nft",
        "table inet qos {\n chain post { type filter hook postrouting priority mangle;\n  ip6 dscp ef meta priority \
         set 1:10\n }\n}\n",
    );
    let tree = place.file("tree.tc", "qdisc add dev eth0 root fq_codel\n");
    let packet = "udp [2001:db8:1::7]:1 > [2001:db8::9]:2 out eth0";
    let (code, text, errors) = tidegate(&["explain", name(&tree), "--also", name(&rules), packet]);
    assert_eq!(code, 0, "{errors}");
    assert!(text.contains("`ip6 dscp ef` does not hold: the code point is CS0"), "{text}");
}

/// Linux 6.1 was asked: FORWARD counts no bridged packet, and none that is for the machine itself.
#[test]
fn packets_that_are_not_forwarded_pass_no_rules_of_forward() {
    if skip() {
        return;
    }
    let place = Place::new("understand-ways");
    let local = place.script(
        "local.sh",
        "#!/bin/sh\nip addr add 203.0.113.5/24 dev eth0\ntc qdisc add dev eth0 root handle 1: prio\n\
         iptables -t mangle -A FORWARD -i eth0 -p udp -j MARK --set-mark 2\n",
    );
    let (_, out, _) = tidegate(&["explain", name(&local), "udp 198.51.100.1:53 > 203.0.113.5:5000 in eth0"]);
    assert!(out.contains("goes on to this machine itself: 203.0.113.5 is an address of eth0"), "{out}");
    assert!(!out.contains("FORWARD:"), "{out}");
    let bridged = place.script(
        "bridged.sh",
        "#!/bin/sh\nip link add br0 type bridge; ip link set eth0 master br0; ip link set eth1 master br0\n\
         tc qdisc add dev eth0 root handle 1: prio\n",
    );
    let packet = "udp 192.168.5.8:5060 > 198.51.100.7:5060 in eth1 out eth0";
    let (code, _, errors) = tidegate(&["explain", name(&bridged), packet]);
    assert_eq!(code, 2);
    assert!(errors.contains("both devices are ports of br0"), "{errors}");
}

/// Where a rule could not be carried out, no listing says that nothing comes to a filter.
#[test]
fn rules_that_are_missing_leave_open_what_comes() {
    if skip() {
        return;
    }
    let place = Place::new("understand-lost");
    let of = |rule: &str| {
        let script = format!(
            "#!/bin/sh\niptables -t mangle -A POSTROUTING -o eth0 {rule}\n\
             tc qdisc add dev eth0 root handle 1: prio\n\
             tc filter add dev eth0 parent 1: protocol ip prio 1 handle 7 fw flowid 1:3\ntrue\n"
        );
        tidegate(&["graph", name(&place.script("lost.sh", &script))]).1
    };
    assert!(of("-j MARK --set-mark 8").contains("[no packet comes to it]"));
    let lost = of("-m recent --name x --update -j MARK --set-mark 7");
    assert!(lost.contains("fw mark 7") && !lost.contains("no packet comes"), "{lost}");
}
