//! Findings about which packets go where: policies with one error each.

use crate::common;

use common::reading;
use tidegate_inspect::{Finding, Rule, Witness, check};

const BANDS: &str = "\
tc qdisc add dev eth0 root handle 1: htb default 20
tc class add dev eth0 parent 1: classid 1:1 htb rate 9mbit
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 3mbit ceil 9mbit prio 0
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 3mbit ceil 9mbit prio 1
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 3mbit ceil 9mbit prio 2
";

/// What is found by some rules: where, what, what follows, what shows it, what is done.
fn findings_text(text: &str, rules: &[Rule]) -> String {
    let mut reading = reading(&["eth0", "eth1"], text);
    let found = check(&mut reading);
    found.iter().filter(|finding| rules.contains(&finding.rule)).map(block).collect()
}

fn block(finding: &Finding) -> String {
    let at = finding.place.as_ref().map_or(0, |place| place.line);
    let mut text = format!("line {at}, {} {}: {}\n", finding.level.name(), finding.rule.id(), finding.what);
    text.push_str(&format!("  {}\n", finding.because));
    match &finding.witness {
        Some(Witness::Packet { packet, went }) => text.push_str(&format!("  shown: {packet}: {went}\n")),
        Some(Witness::Number(number)) => text.push_str(&format!("  shown: {number}\n")),
        None => {}
    }
    if let Some(fix) = &finding.fix {
        text.push_str(&format!("  fix: {}\n", fix.what));
        for edit in &fix.edits {
            text.push_str(&format!("    {} {:?}: {:?}\n", edit.place.line, edit.place.columns, edit.text));
        }
    }
    text
}

/// What a rule finds in three bands with these filters and rules.
fn in_bands(rest: &str, rule: Rule) -> String {
    findings_text(&format!("{BANDS}{rest}"), &[rule])
}

#[test]
fn a_filter_behind_one_that_takes_all_its_packets() {
    // 0xb8 & 0x1c is 0x18: the telephones of the last filter are taken by the first.
    let text = "\
tc filter add dev eth0 parent 1: protocol ip pref 5 u32 match ip tos 0x18 0x1c flowid 1:20
tc filter add dev eth0 parent 1: protocol ip pref 5 u32 match ip tos 0x08 0x1c flowid 1:30
tc filter add dev eth0 parent 1: protocol ip pref 5 u32 match ip tos 0xb8 0xfc flowid 1:10";
    assert_eq!(
        in_bands(text, Rule::Unreachable),
        "\
line 8, warning R1: no packet reaches this filter: line 6 before it takes all that it would match
  what it matches goes to 1:20, not to 1:10
  shown: tcp 192.168.1.10 > 198.51.100.7:443 dscp EF out eth0: 1:20
  fix: have it evaluated before them: pref 4
    8 (50, 51): \"4\"
"
    );
}

#[test]
fn a_filter_behind_several_that_together_take_all() {
    // Neither of the first two takes all that the third matches.
    let text = "\
tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip src 10.0.0.0/25 flowid 1:10
tc filter add dev eth0 parent 1: protocol ip pref 2 u32 match ip src 10.0.0.128/25 flowid 1:20
tc filter add dev eth0 parent 1: protocol ip pref 3 u32 match ip src 10.0.0.0/24 match ip dport 25 0xffff \
flowid 1:30";
    assert_eq!(
        in_bands(text, Rule::Unreachable),
        "\
line 8, warning R1: no packet reaches this filter: line 6, line 7 before it take all that it would match
  what it matches goes where those lead, not to 1:30
  shown: tcp 10.0.0.10 > 198.51.100.7:25 out eth0: 1:10
  fix: put it before what takes its packets
"
    );
}

#[test]
fn a_filter_that_repeats_another() {
    // It leads where its packets go anyway: no more than a note.
    let text = "\
tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip tos 0x10 0x10 flowid 1:10
tc filter add dev eth0 parent 1: protocol ip pref 2 u32 match ip tos 0x10 0xfc flowid 1:10";
    assert_eq!(
        in_bands(text, Rule::Unreachable),
        "\
line 7, note R1: no packet reaches this filter: line 6 before it takes all that it would match
  the packets it matches go to 1:10 all the same
  shown: tcp 192.168.1.10 > 198.51.100.7:443 tos 0x10 out eth0: 1:10
  fix: remove the line
    7 (0, 0): \"\"
"
    );
}

#[test]
fn a_rule_behind_one_that_ends_the_chain() {
    let text = "\
tc filter add dev eth0 parent 1: protocol ip pref 1 handle 1 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ip pref 2 handle 2 fw flowid 1:30
iptables -t mangle -A FORWARD -o eth0 -p udp -j MARK --set-mark 2
iptables -t mangle -A FORWARD -o eth0 -p udp -j RETURN
iptables -t mangle -A FORWARD -o eth0 -p udp --dport 53 -j MARK --set-mark 1";
    assert_eq!(
        in_bands(text, Rule::Unreachable),
        "\
line 10, warning R1: no packet reaches this rule: line 9 before it takes all that it would match
  it never gets mark 1 here
  shown: udp 192.168.1.10 > 198.51.100.7:53 out eth0: 1:30, with mark 2
  fix: put it before them, or remove it
"
    );
}

#[test]
fn todays_marks_in_an_old_policy() {
    // Bit 0x08 once meant throughput; AF21 and AF41 have it.
    let text = "\
tc filter add dev eth0 parent 1: protocol ip pref 5 u32 match ip tos 0x08 0x1c flowid 1:30
tc filter add dev eth0 parent 1: protocol ip pref 5 u32 match ip tos 0x10 0x10 flowid 1:10";
    assert_eq!(
        in_bands(text, Rule::Intent),
        "\
line 6, warning R2: modern DSCP markings do not match this class: OpenSSH's keystrokes (AF21, 7.8 \
to 10.0); the pictures of calls (AF41, RFC 8837)
  such packets are served in 1:30, behind the unmarked ones of 1:20
  shown: tcp 192.168.1.10 > 198.51.100.7:22 dscp AF21 len 100 out eth0: 1:30
  fix: match all six bits of the DSCP that is meant: the mask 0xfc
"
    );
}

#[test]
fn ipv4_words_in_a_filter_for_ipv6() {
    // Byte 9 of an IPv6 header is the second of the source address.
    let text = "\
tc filter add dev eth0 parent 1: protocol ipv6 pref 7 u32 match ip protocol 1 0xff flowid 1:10";
    assert_eq!(
        in_bands(text, Rule::Protocol),
        "\
line 6, warning R7: `match ip protocol` in a filter for IPv6: the header is another one
  it reads byte 9 of the packet: IPv6's source address
  shown: tcp 2001:db8:1::a > [2001:db8:2::7]:443 out eth0: 1:10
  fix: match ip6 protocol (or, by hand, `protocol ip` if those packets are meant)
    6 (64, 66): \"ip6\"
    6 (76, 77): \"58\"
"
    );
}

#[test]
fn a_mark_that_is_read_and_one_that_is_set() {
    let text = "\
tc filter add dev eth0 parent 1: protocol ip pref 1 handle 1 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ip pref 2 handle 5 fw flowid 1:30
iptables -t mangle -A POSTROUTING -o eth0 -p udp -j MARK --set-mark 1
iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 80 -j MARK --set-mark 3";
    assert_eq!(
        in_bands(text, Rule::Marks),
        "\
line 7, warning R8: no packet carries mark 5: the filter never matches
  packets carry 0, 1, 3 here
  shown: marks of IPv4 packets on eth0: 0, 1, 3
  fix: set it with a rule (iptables -t mangle … -j MARK --set-mark 5), or match a mark that packets carry
line 9, warning R8: nothing reads mark 3 on eth0
  its packets wait in 1:20, while no packet comes to class 1:30
  shown: tcp 192.168.1.10 > 198.51.100.7:80 out eth0: 1:20, with mark 3
  fix: send them there: tc filter add dev eth0 parent 1: … handle 3 fw flowid 1:30, before the filters that \
  take them now
"
    );
}

#[test]
fn marks_of_the_other_family() {
    let text = "\
tc filter add dev eth0 parent 1: protocol ip pref 1 handle 1 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ipv6 pref 2 handle 1 fw flowid 1:10
iptables -t mangle -A POSTROUTING -o eth0 -p udp -j MARK --set-mark 1";
    assert_eq!(
        in_bands(text, Rule::Marks),
        "\
line 7, warning R8: no packet carries mark 1: the filter never matches
  the rules that set it are for IPv4: ip6tables has its own
  shown: marks of IPv6 packets on eth0: 0
  fix: set it for IPv6, too: ip6tables -t mangle … -j MARK --set-mark 1
"
    );
}

#[test]
fn a_mark_that_a_later_rule_replaces() {
    // A rule that sets a mark does not end the chain.
    let text = "\
tc filter add dev eth0 parent 1: protocol ip pref 1 handle 1 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ip pref 2 handle 3 fw flowid 1:30
iptables -t mangle -A POSTROUTING -o eth0 -p udp --dport 53 -j MARK --set-mark 1
iptables -t mangle -A POSTROUTING -o eth0 -p udp -j MARK --set-mark 3";
    assert_eq!(
        in_bands(text, Rule::Marks),
        "\
line 8, warning R8: mark 1 is gone again before any queue: line 9 writes another over it
  every packet that this rule matches goes on to them: a rule that sets a mark does not end the chain
  shown: udp 192.168.1.10 > 198.51.100.7:53 out eth0: its queue with mark 3
  fix: give them `-m mark --mark 0`, or put this rule behind them
"
    );
}

#[test]
fn a_connections_mark_that_is_never_restored() {
    let text = "\
tc filter add dev eth0 parent 1: protocol ip pref 1 handle 1 fw flowid 1:10
iptables -t mangle -A POSTROUTING -o eth0 -p udp --dport 53 -j CONNMARK --set-mark 1";
    assert_eq!(
        in_bands(text, Rule::Connmark),
        "\
line 7, warning R9: connections get mark 1, and no rule restores it to their packets
  filters see the mark of the packet, which stays as it was
  shown: udp 192.168.1.10 > 198.51.100.7:53 established out eth0: its queue with mark 0
  fix: restore it behind this rule: `iptables -t mangle -A POSTROUTING -m connmark ! --mark 0 -j CONNMARK --restore-mark`
"
    );
}

#[test]
fn a_connections_mark_restored_over_a_packets() {
    let text = "\
tc filter add dev eth0 parent 1: protocol ip pref 1 handle 1 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ip pref 2 handle 2 fw flowid 1:30
iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 80 -j CONNMARK --set-mark 2
iptables -t mangle -A POSTROUTING -o eth0 -p udp -j MARK --set-mark 1
iptables -t mangle -A POSTROUTING -o eth0 -j CONNMARK --restore-mark";
    assert_eq!(
        in_bands(text, Rule::Connmark),
        "\
line 9, warning R9: mark 1 is gone again before any queue: line 10 writes another over it
  the mark of the connection is restored over it: of marks, the last written counts
  shown: udp 192.168.1.10 > 198.51.100.7:443 out eth0: its queue with mark 0
  fix: give them `-m mark --mark 0`, or put this rule behind them
"
    );
}

#[test]
fn filters_on_a_leaf() {
    let text = "\
tc qdisc add dev eth0 parent 1:10 handle 10: prio
tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip protocol 17 0xff flowid 1:10
tc filter add dev eth0 parent 1:10 protocol ip pref 1 u32 match ip protocol 17 0xff match ip dport 53 \
0xffff flowid 10:1
tc filter add dev eth0 parent 1:10 protocol ip pref 1 u32 match ip protocol 17 0xff match ip dport 54 \
0xffff flowid 10:2";
    assert_eq!(
        in_bands(text, Rule::LeafFilter),
        "\
line 8, warning R10: class 1:10 is a leaf: 2 filters on it are never evaluated
  a packet goes straight on to the qdisc 10: that hangs there
  shown: udp 192.168.1.10 > 198.51.100.7:53 out eth0: 10:2
  fix: hang them on the qdisc below: parent 10:
    8 (30, 34): \"10:\"
    9 (30, 34): \"10:\"
"
    );
}

#[test]
fn filters_on_an_inner_class_that_nothing_leads_to() {
    let text = "\
tc filter add dev eth0 parent 1:1 protocol ip pref 1 u32 match ip tos 0x10 0xfc flowid 1:10
tc filter add dev eth0 parent 1:1 protocol ip pref 1 u32 match ip tos 0x08 0xfc flowid 1:30";
    assert_eq!(
        in_bands(text, Rule::Unreachable),
        "\
line 6, warning R1: no packet comes to 1:1, where 2 filters hang
  the filters of 1: are evaluated first, and none of them leads to 1:1
  shown: tcp 192.168.1.10 > 198.51.100.7:443 tos 0x10 out eth0: 1:20
  fix: hang them on the qdisc: parent 1:
    6 (30, 33): \"1:\"
    7 (30, 33): \"1:\"
"
    );
    // With a filter that leads there they are evaluated.
    let led =
        format!("{text}\ntc filter add dev eth0 parent 1: protocol ip pref 1 u32 match u32 0 0 flowid 1:1");
    assert_eq!(in_bands(&led, Rule::Unreachable), "");
}

#[test]
fn ipv6_that_no_filter_matches() {
    let text = "\
tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip protocol 17 0xff flowid 1:10";
    assert_eq!(
        in_bands(text, Rule::OtherProtocols),
        "\
line 1, note R14: IPv6 is not classified on eth0: all of it waits in 1:20
  the filters match IPv4 only, so calls and bulk over IPv6 are treated alike
  shown: tcp 2001:db8:1::a > [2001:db8:2::7]:443 out eth0: 1:20
  fix: write the filters for `protocol ipv6` too, at priorities of their own
"
    );
    // What is of IPv4 only is named: the filters, the rules, or both.
    let marked = |filter: &str| {
        let rule = "iptables -t mangle -A POSTROUTING -o eth0 -p udp -j MARK --set-mark 1";
        let filter = format!("tc filter add dev eth0 parent 1: protocol {filter} handle 1 fw flowid 1:10");
        in_bands(&format!("{filter}\n{rule}"), Rule::OtherProtocols)
    };
    let (rules, both) = (marked("all"), marked("ip"));
    assert!(rules.contains("\n  the rules match IPv4 only, so "), "{rules}");
    assert!(rules.contains("\n  fix: write the rules for IPv6 too (ip6tables, or nft's inet)\n"), "{rules}");
    assert!(both.contains("\n  filters and rules match IPv4 only, so "), "{both}");
    assert!(
        both.contains("at priorities of their own, and the rules for IPv6 (ip6tables, or nft's inet)\n"),
        "{both}"
    );
}

/// Packets of a filter to a class that is not there go where HTB puts them: the default class, if there is
/// one.
#[test]
fn where_packets_of_a_filter_to_no_class_go() {
    let because = |default: &str| {
        let filter = "tc filter add dev eth0 parent 1: protocol ip u32 match ip dport 25 0xffff flowid 1:40";
        let text = format!("{}{filter}", BANDS.replace("default 20", default));
        findings_text(&text, &[Rule::Nowhere]).lines().nth(1).unwrap_or_default().trim().to_owned()
    };
    assert_eq!(because("default 20"), "its packets take the default class 1:20");
    assert_eq!(because(""), "its packets go past every class, unshaped");
    let past = "its packets go past every class, unshaped: the default class 1:";
    assert_eq!(because("default 99"), format!("{past}99 is not there either"));
    assert_eq!(because("default 1"), format!("{past}1 has classes below it"));
}

/// A match of the other family is put into the words of the filter's own, where those have the field and the
/// value.
#[test]
fn matches_of_another_family_are_fixed_where_they_can_be() {
    let fix = |protocol: &str, output: &str| {
        let filter =
            format!("tc filter add dev eth0 parent 1: protocol {protocol} pref 5 u32 {output} flowid 1:10");
        let found = in_bands(&filter, Rule::Protocol);
        found.split_once("  fix: ").map(|(_, fix)| fix.to_owned()).unwrap_or(found)
    };
    assert_eq!(
        fix("ipv6", "match ip tos 0xb8 0xfc"),
        "match ip6 priority (or, by hand, `protocol ip` if those packets are meant)\n    6 (64, 66): \"ip6\"\n    6 \
         (67, 70): \"priority\"\n"
    );
    assert!(
        fix("ip", "match ip6 dport 22 0xffff match ip protocol 6 0xff").starts_with("match ip dport\n    6 ")
    );
    // An address has another form there, and a field may be missing.
    assert_eq!(
        fix("ipv6", "match ip src 192.168.1.0/24"),
        "match ip6 src, with the value that 192.168.1.0/24 has there\n"
    );
    assert_eq!(fix("ipv6", "match ip ihl 5 0xf"), "ip6 has no ihl: leave the match out\n");
    assert_eq!(
        fix("ip", "match ip dport 22 0xffff"),
        "say the protocol too: `match ip protocol 6 0xff` for TCP, 17 for UDP (one filter for each)\n"
    );
}

#[test]
fn a_default_that_is_not_there() {
    let missing = BANDS.replace("default 20", "default 77");
    assert_eq!(
        findings_text(&missing, &[Rule::Default]),
        "\
line 1, error R11: the default class 1:77 is not there
  such packets leave at the speed of the device, before all others, and fill the queue behind it
  shown: tcp 192.168.1.10 > 198.51.100.7:443 out eth0: no class at all
  fix: name a class that is there: default 30
    1 (49, 51): \"30\"
"
    );
    let none = BANDS.replace("default 20", "");
    assert_eq!(
        findings_text(&none, &[Rule::Default]),
        "\
line 1, warning R11: 1: has no default class: what no filter takes goes past all classes
  such packets leave at the speed of the device, before all others, and fill the queue behind it
  shown: tcp 192.168.1.10 > 198.51.100.7:443 out eth0: no class at all
  fix: name a default class: default 30
    1 (37, 40): \"htb default 30\"
"
    );
}

#[test]
fn a_kind_without_a_default() {
    let text = "\
tc qdisc add dev eth0 root handle 1: drr
tc class add dev eth0 parent 1: classid 1:1 drr
tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match u32 0 0 flowid 1:1";
    assert_eq!(
        findings_text(text, &[Rule::Default]),
        "\
line 1, error R11: ARP and what else no filter of 1: takes is dropped: drr has no default class here
  without ARP no neighbour on an Ethernet is found, and nothing can be sent there
  shown: arp 192.168.1.10 > 198.51.100.7 in lo out eth0: no class: it is dropped
  fix: end the filters of 1: with one for `protocol all`
"
    );
    // With one for all protocols nothing is lost.
    let all =
        format!("{text}\ntc filter add dev eth0 parent 1: protocol all pref 2 u32 match u32 0 0 flowid 1:1");
    assert_eq!(findings_text(&all, &[Rule::Default]), "");
}

#[test]
fn hosts_that_a_hash_deals_out() {
    let classes: String =
        (1..=16).map(|n| format!("tc class add dev eth0 parent 1: classid 1:{n:x} drr\n")).collect();
    let text = format!(
        "tc qdisc add dev eth0 root handle 1: drr
{classes}tc filter add dev eth0 parent 1: protocol all pref 1 handle 1 flow hash keys src divisor 16 perturb 300 baseclass 1:1
tc filter add dev eth0 parent 1: protocol all pref 9 matchall flowid 1:1"
    );
    assert_eq!(
        findings_text(&text, &[Rule::Collisions, Rule::Unreachable, Rule::Default]),
        "\
line 18, note R18: hosts (by src) are dealt into 16 classes by a hash
  two of 5 share one with a chance of 50 %, two of 10 with 97 %, until the hash changes, every 300 s, when \
  all are distributed again
  shown: 1 - 16! / (16 - 5)! / 16^5 = 50 %
  fix: more classes and as many buckets (divisor) share less, a filter for each host shares nothing
line 19, warning R1: no packet reaches this filter: line 18 before it takes all that it would match
  what it matches goes where a filter by flow leads, not to 1:1
  shown: tcp 192.168.1.10 > 198.51.100.7:443 out eth0: 1:1
  fix: remove the line
    19 (0, 0): \"\"
"
    );
}

/// A policy of tidegate's without a mistake: both families, a default, marks that are read, restored before
/// they are needed.
const CLEAN: &str = "\
tc filter add dev eth0 parent 1: protocol ip pref 1 handle 1 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ipv6 pref 2 handle 1 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ip pref 3 handle 3 fw flowid 1:30
tc filter add dev eth0 parent 1: protocol ipv6 pref 4 handle 3 fw flowid 1:30
tc filter add dev eth0 parent 1: protocol ip pref 5 u32 match ip tos 0xb8 0xfc flowid 1:10
tc filter add dev eth0 parent 1: protocol ipv6 pref 6 u32 match ip6 protocol 58 0xff flowid 1:10
iptables -t mangle -A FORWARD -o eth0 -j CONNMARK --restore-mark
iptables -t mangle -A FORWARD -o eth0 -m mark ! --mark 0 -j RETURN
iptables -t mangle -A FORWARD -o eth0 -p udp -m multiport --dports 53,123 -j MARK --set-mark 1
iptables -t mangle -A FORWARD -o eth0 -m dscp --dscp-class CS1 -j MARK --set-mark 3
iptables -t mangle -A FORWARD -o eth0 -j CONNMARK --save-mark
ip6tables -t mangle -A FORWARD -o eth0 -j CONNMARK --restore-mark
ip6tables -t mangle -A FORWARD -o eth0 -m mark ! --mark 0 -j RETURN
ip6tables -t mangle -A FORWARD -o eth0 -p udp -m multiport --dports 53,123 -j MARK --set-mark 1
ip6tables -t mangle -A FORWARD -o eth0 -m dscp --dscp-class CS1 -j MARK --set-mark 3
ip6tables -t mangle -A FORWARD -o eth0 -j CONNMARK --save-mark";

/// Another, on what arrives, in SQM's manner: everything from any protocol to the middle, a few marks beside
/// it, on an ifb and before it.
const BY_DSCP: &str = "\
tc filter add dev eth0 parent 1: protocol all pref 999 u32 match ip protocol 0 0x00 flowid 1:20
tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip tos 0x20 0xfc flowid 1:30
tc filter add dev eth0 parent 1: protocol ipv6 pref 2 u32 match ip6 priority 0x20 0xfc flowid 1:30
tc filter add dev eth0 parent 1: protocol ip pref 4 handle 1 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ipv6 pref 5 handle 1 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol arp pref 8 handle 1 fw flowid 1:10
iptables -t mangle -N SORT
iptables -t mangle -A SORT -j MARK --set-mark 2
iptables -t mangle -A SORT -m dscp --dscp-class EF -j MARK --set-mark 1
iptables -t mangle -A SORT -m tos --tos 0x10/0x3f -j MARK --set-mark 1
iptables -t mangle -A POSTROUTING -o eth0 -m mark --mark 0 -g SORT
iptables -t mangle -A OUTPUT -p udp -m multiport --ports 53,123 -j DSCP --set-dscp-class AF42
ip6tables -t mangle -N SORT
ip6tables -t mangle -A SORT -j MARK --set-mark 2
ip6tables -t mangle -A SORT -m dscp --dscp-class EF -j MARK --set-mark 1
ip6tables -t mangle -A POSTROUTING -o eth0 -m mark --mark 0 -g SORT";

#[test]
fn correct_policies_have_no_finding() {
    const MINE: [Rule; 10] = [
        Rule::Unreachable,
        Rule::Intent,
        Rule::Protocol,
        Rule::Marks,
        Rule::Connmark,
        Rule::LeafFilter,
        Rule::Default,
        Rule::OtherProtocols,
        Rule::Collisions,
        Rule::Nowhere,
    ];
    assert_eq!(findings_text(&format!("{BANDS}{CLEAN}"), &MINE), "");
    assert_eq!(findings_text(&format!("{BANDS}{BY_DSCP}"), &MINE), "");
}

#[test]
fn filters_of_one_line_are_distinguished_by_their_conditions() {
    let text = format!(
        "{BANDS}\
tc filter add dev eth0 parent 1: protocol ip pref 5 u32 match ip tos 0x18 0x1c flowid 1:20
tc filter add dev eth0 parent 1: protocol ip pref 5 u32 match ip tos 0xb8 0xfc flowid 1:10"
    );
    let mut reading = reading(&["eth0", "eth1"], &text);
    // A function of the script did both.
    let line = reading.steps[5].place.clone();
    reading.steps[6].place = line;
    let found = check(&mut reading);
    let output: String =
        found.iter().filter(|finding| finding.rule == Rule::Unreachable).map(block).collect();
    assert_eq!(
        output,
        "\
line 6, warning R1: no packet reaches this filter (`match ip tos 0xb8 0xfc flowid 1:10`): \
line 6 (`match ip tos 0x18 0x1c flowid 1:20`) before it takes all that it would match
  what it matches goes to 1:20, not to 1:10
  shown: tcp 192.168.1.10 > 198.51.100.7:443 dscp EF out eth0: 1:20
  fix: put it before what takes its packets
"
    );
}

#[test]
fn many_filters_without_packets_are_counted_not_compared_with_each_other() {
    let mut policy = BANDS.to_owned();
    policy.push_str(
        "tc filter add dev eth0 parent 1: prio 1 protocol ip u32 match ip dst 10.0.0.0/8 flowid 1:10\n",
    );
    for n in 0..300 {
        let (high, low) = (n / 256, n % 256);
        let filter = format!("u32 match ip dst 10.0.{high}.{low}/32 flowid 1:20");
        policy.push_str(&format!("tc filter add dev eth0 parent 1: prio 2 protocol ip {filter}\n"));
    }
    let output = findings_text(&policy, &[Rule::Undecided]);
    assert!(output.contains("100 filters seem to get no packets, and were not looked into"), "{output}");
    let unreachable = check(&mut reading(&["eth0", "eth1"], &policy));
    let count = unreachable.iter().filter(|finding| finding.rule == Rule::Unreachable).count();
    assert_eq!(count, 200);
}

/// The first line of each finding of a rule.
fn heads(text: &str, rule: Rule) -> String {
    let all = findings_text(&format!("{BANDS}{text}"), &[rule]);
    all.lines().filter(|line| line.starts_with("line ")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_mark_that_all_but_a_few_packets_lose() {
    let filters = "\
tc filter add dev eth0 parent 1: protocol ip pref 1 handle 1 fw flowid 1:10
tc filter add dev eth0 parent 1: protocol ip pref 2 handle 3 fw flowid 1:30
";
    let rules = |rules: &[&str]| {
        let rules: Vec<String> =
            rules.iter().map(|rule| format!("iptables -t mangle -A POSTROUTING -o eth0 {rule}")).collect();
        heads(&(filters.to_owned() + &rules.join("\n")), Rule::Marks)
    };
    // Of a connection's packets only the first is new.
    let but_new = rules(&[
        "-p tcp --dport 22 -j MARK --set-mark 1",
        "-m state --state ESTABLISHED -j MARK --set-mark 3",
    ]);
    assert_eq!(
        but_new,
        "line 8, warning R8: mark 1 is gone again before any queue, but from packets of no connection \
        (INVALID, UNTRACKED), the first packets of TCP connections (NEW, RELATED): line 9 writes another \
        over it\n"
    );
    let but_pings = rules(&[
        "-s 192.168.1.10 -j MARK --set-mark 1",
        "-p tcp -j MARK --set-mark 3",
        "-p udp -j MARK --set-mark 3",
    ]);
    assert_eq!(
        but_pings,
        "line 8, warning R8: mark 1 is gone again before any queue, but from what is neither TCP nor UDP: \
        line 9, line 10 write another over it\n"
    );
    // One mark for all, then others for some: that is how it is done.
    let first_all =
        rules(&["-j MARK --set-mark 1", "-p tcp -j MARK --set-mark 3", "-p udp -j MARK --set-mark 3"]);
    assert_eq!(first_all, "");
    // A port is not few packets.
    assert_eq!(rules(&["-p tcp -j MARK --set-mark 1", "! -d 192.0.2.0/24 -j MARK --set-mark 3"]), "");
    assert_eq!(
        rules(&["-p udp -j MARK --set-mark 1", "-m state --state ESTABLISHED -j MARK --set-mark 3"]),
        ""
    );
}

#[test]
fn an_order_that_is_the_other_way_round_is_one_mistake() {
    let filter = |tos: &str, class: &str| {
        format!(
            "tc filter add dev eth0 parent 1: protocol ip pref 5 u32 match ip tos {tos} 0xfc flowid {class}\n"
        )
    };
    // Unmarked packets are served first, and everything that is marked behind them.
    let policy = |ef: &str, low: &str| {
        let bands = BANDS.replace("default 20", "default 10");
        format!("{bands}{}{}", filter("0xb8", ef), filter("0x48", low))
    };
    let told_of = |text: String| findings_text(&text, &[Rule::Intent]);
    let turned = told_of(policy("1:20", "1:30"));
    assert_eq!(turned.matches(" R2: ").count(), 1, "{turned}");
    assert!(turned.starts_with(
        "line 6, warning R2: all of today's marks that it classifies are served in reverse order"
    ));
    // What is not urgent is where it belongs: the others are mistakes of their lines.
    let bulk = filter("0x20", "1:30");
    let one = told_of(policy("1:30", "1:30").replace("default 10", "default 20") + &bulk);
    assert_eq!(one.matches(" R2: modern DSCP markings do not match this class").count(), 2, "{one}");
    // Two devices that do alike have one mistake between them.
    let second = policy("1:20", "1:30").replace("eth0", "eth1");
    let both = told_of(policy("1:20", "1:30") + &second);
    assert_eq!(both.matches(" R2: ").count(), 1, "{both}");
    assert!(both.contains("; so it is on eth1"), "{both}");
}

#[test]
fn what_can_be_decided_is_where_the_rest_is_not() {
    let dead = "\
tc qdisc add dev eth1 root handle 1: prio
tc filter add dev eth1 parent 1: protocol ip pref 1 u32 match ip dport 22 0xffff flowid 1:1
tc filter add dev eth1 parent 1: protocol ip pref 2 u32 match ip dport 22 0xffff flowid 1:2
tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip tos 0x08 0x1c flowid 1:30
";
    let all = [Rule::Unreachable, Rule::Intent, Rule::Undecided];
    let ids = |text: &str| -> String {
        let text = findings_text(&format!("{BANDS}{dead}{text}"), &all);
        let words = text.lines().filter(|line| line.starts_with("line "));
        words.map(|line| line.split(": ").next().unwrap_or_default().to_owned() + "\n").collect()
    };
    let decided = "line 8, warning R1\nline 9, warning R2\n";
    assert_eq!(ids(""), decided);
    // A packet that is rewritten on its way out of eth0 is no matter of eth1's.
    let rewritten =
        "tc filter add dev eth0 parent 1: protocol ip pref 9 matchall action pedit ex munge ip ttl set 9";
    assert_eq!(ids(rewritten), format!("line 0, note C4\n{decided}"));
    let text = findings_text(&format!("{BANDS}{dead}{rewritten}"), &[Rule::Undecided]);
    assert_eq!(
        text,
        "line 0, note C4: which packets go where on eth0 was not decided\n  \
         the filter of line 10 has the action pedit, which is not followed; of eth1 it was decided; \
         R1, R6, R8 to R10, R14, R22, R23 and R27, which need it, were left out there, and R11 but for a few packets\n"
    );
    // A field rewritten on arrival may have any value anywhere; sets and engine are compared all the same.
    let arriving = "tc qdisc add dev eth1 ingress\n\
         tc filter add dev eth1 parent ffff: protocol ip pref 9 matchall action pedit ex munge ip ttl set 9";
    assert_eq!(ids(arriving), "line 0, note C4\nline 9, warning R2\n");
    // What a mark becomes is followed, also where a filter writes it.
    let marked = arriving.replace("pedit ex munge ip ttl set 9", "skbedit mark 7");
    assert_eq!(ids(&marked), decided);
}

#[test]
fn classes_without_packets() {
    let to = |class: &str| {
        format!("tc filter add dev eth0 parent 1: protocol all pref 1 matchall flowid {class}\n")
    };
    let by_mark = "tc filter add dev eth0 parent 1: protocol ip pref 1 handle 1 fw flowid 1:10\n";
    assert_eq!(heads("", Rule::Idle), "line 3, note R23: no packet comes to 1:10, 1:30 on eth0\n");
    assert_eq!(heads(by_mark, Rule::Idle), "line 5, note R23: no packet comes to 1:30 on eth0\n");
    // The default is reached no more, which is not reported of a class that something names.
    assert_eq!(heads(&to("1:10"), Rule::Idle), "line 5, note R23: no packet comes to 1:30 on eth0\n");
    // A rule gives the class, a hash may, the mark may be its name.
    let classify = "iptables -t mangle -A POSTROUTING -o eth0 -p udp -j CLASSIFY --set-class 1:30\n";
    assert_eq!(heads(&(by_mark.to_owned() + classify), Rule::Idle), "");
    let hash = "tc filter add dev eth0 parent 1: protocol ip pref 1 handle 1 flow hash keys src divisor 32 \
    baseclass 1:10\n";
    assert_eq!(heads(hash, Rule::Idle), "");
    assert_eq!(heads("tc filter add dev eth0 parent 1: protocol ip pref 1 fw\n", Rule::Idle), "");
    // A filter whose condition no packet meets leads no packet.
    let never =
        "tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match u8 0x60 0xf0 at 0 flowid 1:10\n";
    assert_eq!(heads(never, Rule::Idle), "line 3, note R23: no packet comes to 1:10, 1:30 on eth0\n");
    // Bands that no priority names.
    let bands = |map: &str| {
        let text = format!("tc qdisc add dev eth0 root handle 1: prio bands 4 {map}\n");
        findings_text(&text, &[Rule::Idle]).lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(bands(""), "line 1, note R23: no packet comes to 1:4 on eth0");
    assert_eq!(bands("priomap 3 2 1 0 3 2 1 0 3 2 1 0 3 2 1 0"), "");
}

#[test]
fn a_default_limited_far_below_the_others() {
    let policy = |ceil: &str| {
        let filter =
            "tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip dport 22 0xffff flowid 1:10\n";
        let bands =
            BANDS.replace("1:20 htb rate 3mbit ceil 9mbit", &format!("1:20 htb rate {ceil} ceil {ceil}"));
        findings_text(&format!("{bands}{filter}"), &[Rule::Capped])
            .lines()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    assert_eq!(policy("900kbit"), "");
    assert_eq!(
        policy("800kbit"),
        "line 4, note R22: what no filter takes gets 800 kbit/s at most, 11 times less than 1:30"
    );
    assert_eq!(
        policy("8kbit"),
        "line 4, warning R22: what no filter takes gets 8 kbit/s at most, 1125 times less than 1:30"
    );
    // Nothing but ARP comes there.
    let all = "tc filter add dev eth0 parent 1: protocol ip pref 1 matchall flowid 1:10\n\
               tc filter add dev eth0 parent 1: protocol ipv6 pref 2 matchall flowid 1:10\n";
    let bands = BANDS.replace("1:20 htb rate 3mbit ceil 9mbit", "1:20 htb rate 8kbit ceil 8kbit");
    assert_eq!(findings_text(&format!("{bands}{all}"), &[Rule::Capped]), "");
}

/// Arrivals that no filter matches are not policed: the engine's result, beside the same policy for all
/// protocols.
#[test]
fn ipv6_that_arrives_goes_past_filters_for_ipv4() {
    let of = |ingress: &str, filter: &str| {
        findings_text(&format!("tc qdisc add dev eth0 {ingress}\n{filter}"), &[Rule::OtherProtocols])
    };
    let police = "u32 match u32 0 0 police rate 8mbit burst 20k drop flowid :1";
    let v4 = format!("tc filter add dev eth0 parent ffff: protocol ip {police}");
    assert_eq!(
        of("handle ffff: ingress", &v4),
        "\
line 2, note R14: TCP over IPv6 that arrives at eth0 is not policed; over IPv4 it is
  the filters there match IPv4 only
  shown: tcp [2001:db8:2::7]:443 > [2001:db8:1::a]:40000 len 1500 in eth0: the host unchanged
  fix: take all: `protocol all`
"
    );
    // What is held back of IPv4 is what is shown of IPv6.
    let udp = "flower ip_proto udp action police rate 5mbit burst 64k conform-exceed drop";
    let found = of("clsact", &format!("tc filter add dev eth0 ingress protocol ip pref 5 {udp}"));
    assert!(
        found.starts_with("line 2, note R14: UDP over IPv6 that arrives at eth0 is not policed"),
        "{found}"
    );
    assert!(found.contains("shown: udp [2001:db8:2::7]:443 > "), "{found}");
    assert!(found.ends_with("fix: add the same for `protocol ipv6`, at another prio\n"), "{found}");
    let mail = "flower ip_proto tcp dst_port 25 action police rate 5mbit burst 64k conform-exceed drop";
    assert_eq!(of("clsact", &format!("tc filter add dev eth0 ingress protocol ip pref 5 {mail}")), "");
    assert_eq!(of("handle ffff: ingress", &v4.replace("protocol ip", "protocol all")), "");
    assert_eq!(
        of("handle ffff: ingress", &format!("{v4}\n{}", v4.replace("protocol ip", "protocol ipv6"))),
        ""
    );
    let redirect =
        "tc filter add dev eth0 ingress protocol ip matchall action mirred egress redirect dev eth1";
    let found = of("clsact", redirect);
    assert!(
        found.starts_with(
            "line 2, note R14: TCP over IPv6 that arrives at eth0 is not redirected to eth1; over IPv4 it is\n"
        ),
        "{found}"
    );
    // What leaves is not what arrives, and a root qdisc may have an ingress's number.
    assert_eq!(of("clsact", &redirect.replace("ingress", "egress")), "");
    let root = of("handle ffff: root prio", &v4.replace(":1", "ffff:1"));
    assert!(root.contains("IPv6 is not classified on eth0: all of it waits in ffff:2"), "{root}");
    assert!(!root.contains("arrives"), "{root}");
}

/// Filters of clsact's egress see all outgoing packets: they belong to no class that something must lead to.
#[test]
fn filters_on_what_leaves_are_reached() {
    let egress = "tc qdisc add dev eth0 clsact\n\
         tc filter add dev eth0 egress protocol ip u32 match ip dport 80 0xffff action drop";
    assert_eq!(findings_text(egress, &[Rule::Unreachable]), "");
}

/// Where a mark is matched exactly, the class is wrong, not the match.
#[test]
fn a_mark_matched_exactly_is_not_matched_again() {
    let of = |mask: &str| {
        let text = format!(
            "tc filter add dev eth0 parent 1: protocol ip pref 5 u32 match ip tos 0x48 {mask} flowid 1:30"
        );
        in_bands(&text, Rule::Intent)
    };
    let exact = of("0xfc");
    assert!(exact.contains("fix: lead them to a class that is served before 1:20\n"), "{exact}");
    let loose = of("0x48");
    assert!(loose.contains("fix: match all six bits of the DSCP that is meant: the mask 0xfc\n"), "{loose}");
}

/// Bands take what a filter leads beyond them as what has priority 0.
#[test]
fn filters_to_bands_that_are_not_there() {
    let of = |class: &str| {
        let text = format!(
            "tc qdisc add dev eth0 root handle 1: prio bands 3\n\
             tc filter add dev eth0 parent 1: protocol ip u32 match ip dport 22 0xffff flowid {class}"
        );
        findings_text(&text, &[Rule::Nowhere])
            .lines()
            .take(2)
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };
    assert_eq!(of("1:3"), "");
    assert_eq!(
        of("1:4"),
        "line 2, error R6: the filter leads to 1:4, and there is no such class on eth0\n  its packets take \
        1:2, the band of priority 0\n"
    );
}

/// Filters on a leaf belong on the qdisc below only where they lead to its classes.
#[test]
fn where_filters_on_a_leaf_belong() {
    let of = |below: &str, class: &str| {
        let text = format!(
            "{BANDS}tc qdisc add dev eth0 parent 1:20 handle 30: {below}\n\
             tc filter add dev eth0 parent 1:20 protocol ip u32 match ip protocol 1 0xff flowid {class}"
        );
        let found = findings_text(&text, &[Rule::LeafFilter]);
        found
            .split_once("  fix: ")
            .map(|(_, fix)| fix.lines().next().unwrap_or_default().to_owned())
            .unwrap_or(found)
    };
    assert_eq!(of("pfifo", "1:10"), "hang them on the qdisc: parent 1:");
    assert_eq!(of("prio", "30:1"), "hang them on the qdisc below: parent 30:");
}

/// A hash that names missing classes loses their packets.
#[test]
fn a_hash_into_classes_that_are_not_there() {
    let of = |divisor: u32| {
        let text = format!(
            "tc qdisc add dev eth0 root handle 2: drr\n\
             tc class add dev eth0 parent 2: classid 2:1 drr quantum 1600\n\
             tc class add dev eth0 parent 2: classid 2:2 drr quantum 1600\n\
             tc filter add dev eth0 parent 2: protocol all handle 1 flow hash keys src divisor {divisor} \
             baseclass 2:1"
        );
        findings_text(&text, &[Rule::Collisions]).lines().next().unwrap_or_default().to_owned()
    };
    assert_eq!(of(2), "line 4, note R18: hosts (by src) are dealt into 2 classes by a hash");
    assert_eq!(of(8), "line 4, error R18: 6 of the 8 classes that a hash deals hosts into are not there");
}

/// A packet redirected to an ifb on arrival has no mark yet, whatever rules set.
#[test]
fn marks_come_too_late_for_what_arrives() {
    let text = "\
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol all u32 match u32 0 0 action mirred egress redirect dev eth1
tc qdisc add dev eth1 root handle 1: htb default 12
tc class add dev eth1 parent 1: classid 1:10 htb rate 10mbit
tc class add dev eth1 parent 1: classid 1:12 htb rate 30mbit
tc filter add dev eth1 parent 1: protocol all handle 5 fw flowid 1:10
iptables -t mangle -A PREROUTING -i eth0 -p tcp --sport 993 -j MARK --set-mark 5";
    let on_ifb = text.replace("eth1", "ifb0");
    let found = {
        let mut reading = reading(&["eth0", "ifb0"], &on_ifb);
        check(&mut reading)
            .iter()
            .filter(|finding| finding.rule == Rule::Marks)
            .map(block)
            .collect::<String>()
    };
    assert!(
        found.starts_with("line 6, warning R8: no packet carries mark 5: the filter never matches\n"),
        "{found}"
    );
    assert!(found.contains("led there as it arrives, before any rule could mark it"), "{found}");
    assert!(found.contains("shown: what is redirected to ifb0 carries mark 0"), "{found}");
}
