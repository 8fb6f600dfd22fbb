//! Errors with a plain effect in newcomers' policies that had no finding; Linux 6.1's behaviour was asked of
//! the oracle.

use crate::common::{check_finding, findings_of, given, reading, silent};
use tidegate_inspect::{Rule, check};

/// Two classes at the rate of the link, the second the default.
const TREE: &str = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                    tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit\n\
                    tc class add dev eth0 parent 1:1 classid 1:10 htb rate 4mbit ceil 10mbit\n\
                    tc class add dev eth0 parent 1:1 classid 1:30 htb rate 6mbit ceil 10mbit\n\
                    tc qdisc add dev eth0 parent 1:10 fq_codel\n\
                    tc qdisc add dev eth0 parent 1:30 fq_codel\n";

fn tree(more: &str) -> String {
    format!("{TREE}{more}")
}

/// Of two packets of 600 bytes, one of each family, Linux sends that of IPv4 and drops the other.
#[test]
fn a_filter_for_ipv4_on_a_qdisc_that_hashes() {
    for kind in ["sfq", "fq_codel", "sfb"] {
        let of = |protocol: &str| {
            format!(
                "tc qdisc add dev eth0 root handle 1: {kind}\n\
                 tc filter add dev eth0 parent 1: protocol {protocol} prio 1 handle 1 flow hash keys src \
                 divisor 512"
            )
        };
        check_finding(
            &of("ip"),
            &[Rule::Default],
            &["2 error R11", "is dropped", "tcp [2001:db8::7]:40000 >", "in lo out eth0"],
        );
        silent(&of("all"), &[Rule::Default]);
    }
}

/// HTB and HFSC both put such packets into the default class.
#[test]
fn a_rule_gives_a_class_that_has_classes() {
    let rule = "iptables -t mangle -A POSTROUTING -o eth0 -p udp --dport 53 -j CLASSIFY --set-class 1:1";
    let parts = ["7 warning R6", "class 1:1, which has classes below it", "goes on to its default", ": 1:30"];
    check_finding(&tree(rule), &[Rule::Nowhere], &parts);
    let leads = "tc filter add dev eth0 parent 1:1 protocol ip u32 match ip dport 53 0xffff flowid 1:10\n";
    silent(&tree(&format!("{leads}{rule}")), &[Rule::Nowhere]);
    let hfsc = tree(rule)
        .replace("htb default", "hfsc default")
        .replace("htb rate", "hfsc sc rate")
        .replace("ceil", "ul rate");
    check_finding(
        &hfsc,
        &[Rule::Nowhere],
        &["class 1:1, which has classes below it", "as if no rule had given them a class"],
    );
}

/// Linux puts it into the default class.
#[test]
fn an_action_gives_a_class_that_is_not_there() {
    let action = |class: &str| {
        tree(&format!(
            "tc qdisc add dev eth0 clsact\n\
             tc filter add dev eth0 egress protocol ip prio 1 u32 match ip dport 53 0xffff action skbedit \
             priority {class}"
        ))
    };
    check_finding(
        &action("1:99"),
        &[Rule::Nowhere],
        &["8 warning R6", "class 1:99, and there is no such class on eth0"],
    );
    silent(&action("1:10"), &[Rule::Nowhere]);
    silent(&action("5"), &[Rule::Nowhere]);
}

/// `fw` without a mask compares all bits.
#[test]
fn bits_are_added_to_a_mark_that_is_matched_whole() {
    let rules = |filter: &str, first: &str| {
        tree(&format!(
            "tc filter add dev eth0 parent 1: protocol ip prio 1 handle {filter} fw flowid 1:10\n\
             iptables -t mangle -A POSTROUTING -o eth0 {first}\n\
             iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 53 -j MARK --or-mark 0x4\n\
             iptables -t mangle -A POSTROUTING -o eth0 -p udp --dport 53 -j MARK --set-xmark 0x4/0x4"
        ))
    };
    let marked = "-p udp -j MARK --set-mark 0x10";
    let parts = [
        "7 warning R8",
        "the whole mark 0x4, of which line 10",
        "(0x14)",
        ":53 out eth0: 1:30, with mark 0x14",
    ];
    let found = findings_of(&rules("4", marked), &[Rule::Marks]);
    assert!(parts.iter().all(|part| found[0].contains(part)), "{found:#?}");
    silent(&rules("0x4/0x4", marked), &[Rule::Marks]);
    silent(&rules("4", "-p icmp -j MARK --set-mark 0x10"), &[Rule::Marks]);
}

#[test]
fn a_rule_matches_a_mark_that_no_packet_has() {
    let rules = |first: &str| {
        tree(&format!(
            "iptables -t mangle -A POSTROUTING -o eth0 {first}\n\
             iptables -t mangle -A POSTROUTING -o eth0 -p udp -m mark --mark 5 -j CLASSIFY --set-class 1:10"
        ))
    };
    let none = rules("-p tcp -j MARK --set-mark 5");
    let found = findings_of(&none, &[Rule::Marks]);
    assert!(
        found.iter().any(|one| one.contains("8 note R8: no packet comes to this rule with mark 0x5")),
        "{found:#?}"
    );
    silent(&rules("-p udp -j MARK --set-mark 5"), &[Rule::Marks]);
}

/// Marks of INPUT are for what the machine itself gets.
#[test]
fn a_mark_of_input_leaves_by_no_device() {
    let text = tree(
        "iptables -t mangle -A INPUT -i eth0 -p udp --dport 54 -j MARK --set-mark 5\n\
         tc filter add dev eth0 parent 1: protocol ip prio 1 handle 5 fw flowid 1:10",
    );
    check_finding(
        &text,
        &[Rule::Marks],
        &["8 warning R8", "what it marks is for this machine itself (INPUT)"],
    );
}

#[test]
fn a_code_point_is_matched_with_the_ecn_bits() {
    let of = |mask: &str| {
        tree(&format!(
            "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 {mask} flowid 1:10"
        ))
    };
    let parts = ["7 note C3: 0xb8 under the mask 0xff", "dscp EF ecn ect0 out eth0: 1:30"];
    check_finding(&of("0xff"), &[Rule::Shapes], &parts);
    silent(&of("0xfc"), &[Rule::Shapes]);
    let both = of("0xff")
        + "\ntc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dsfield 0xb8 0xfc flowid 1:10";
    silent(&both, &[Rule::Shapes]);
}

/// Of ten frames at once six pass a policer of 10 kB.
#[test]
fn ef_is_written_unshifted_and_tcp_has_a_filter_of_its_own() {
    let filters = |tcp: &str, tos: &str| {
        tree(&format!(
            "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip tos {tos} flowid 1:10\n\
             tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip protocol 6 0xff flowid {tcp}"
        ))
    };
    for tcp in ["1:10", "1:30"] {
        let parts = ["warning C3", "0x2e under the mask 0xff is not EF", "dscp EF", "1:30"];
        check_finding(&filters(tcp, "0x2e 0xff"), &[Rule::Shapes], &parts);
        silent(&filters(tcp, "0xb8 0xfc"), &[Rule::Shapes]);
    }
}

/// All segments but the first carry ACK (RFC 9293, 3.4).
#[test]
fn a_filter_for_acknowledgements_takes_data() {
    let filter = |matches: &str| {
        tree(&format!("tc filter add dev eth0 parent 1: protocol ip prio 1 u32 {matches} flowid 1:10"))
    };
    let rule = |matches: &str| {
        tree(&format!(
            "iptables -t mangle -A POSTROUTING -o eth0 -p tcp {matches} -j CLASSIFY --set-class 1:10"
        ))
    };
    let tcp = "match ip protocol 6 0xff";
    for policy in [
        filter(&format!("{tcp} match u8 0x10 0xff at 33")),
        filter(&format!("{tcp} match u8 0x10 0x10 at 33")),
        rule("--tcp-flags SYN,RST,ACK ACK"),
    ] {
        let parts = ["7 note C3", "1:10 takes uploads, too", "len 1500 out eth0: 1:10"];
        check_finding(&policy, &[Rule::Shapes], &parts);
    }
    for policy in [
        filter(&format!("{tcp} match u8 0x05 0x0f at 0 match u16 0 0xffc0 at 2 match u8 0x10 0xff at 33")),
        filter(&format!("{tcp} match ip dport 22 0xffff match u8 0x10 0xff at 33")),
        filter(tcp),
        rule("--tcp-flags SYN,RST,ACK ACK -m length --length 40:100"),
        rule("--tcp-flags SYN,RST,ACK ACK --dport 22"),
        rule("--syn"),
    ] {
        silent(&policy, &[Rule::Shapes]);
    }
}

/// Which packets its tables take is not followed; one packet that the engine sends past all classes is
/// enough.
#[test]
fn a_default_that_is_not_there_is_found_beside_hash_tables() {
    let policy = |default: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default {default}\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit\n\
             tc filter add dev eth0 parent 1:0 prio 5 protocol ip u32\n\
             tc filter add dev eth0 parent 1:0 prio 5 handle 2: protocol ip u32 divisor 256\n\
             tc filter add dev eth0 protocol ip parent 1:0 prio 5 u32 ht 800:: match ip dst 10.1.2.0/24 \
             hashkey mask 0x000000ff at 16 link 2:"
        )
    };
    let parts = ["1 error R11: the default class 1:ffff is not there", "no class at all", "default 1"];
    check_finding(&policy("ffff"), &[Rule::Default], &parts);
    silent(&policy("1"), &[Rule::Default]);
    silent(&policy("1"), &[Rule::Undecided]);
    let undecided = ["not followed", "R8 to R10, R14, R22, R23 and R27, which need it, were left out there"];
    let rewritten = format!("{} action pedit ex munge ip ttl set 9", policy("1"));
    check_finding(&rewritten, &[Rule::Undecided], &undecided);
}

#[test]
fn a_mark_is_saved_and_never_restored() {
    let rules = |first: &str, mark: &str| {
        tree(&format!(
            "tc filter add dev eth0 parent 1: prio 1 handle 1 fw flowid 1:10\n{first}\
             iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 22 {mark} -j MARK --set-mark 1\n\
             iptables -t mangle -A POSTROUTING -o eth0 -j CONNMARK --save-mark"
        ))
    };
    let parts = [
        "9 warning R9: connections get mark 1, and no rule restores it",
        "established out eth0: its queue with mark 0",
        "-I POSTROUTING -j CONNMARK --restore-mark",
    ];
    check_finding(&rules("", "--syn"), &[Rule::Connmark], &parts);
    let restore = "iptables -t mangle -A POSTROUTING -o eth0 -j CONNMARK --restore-mark\n";
    silent(&rules(restore, "--syn"), &[Rule::Connmark]);
    // Each packet of the connection is marked on its own.
    silent(&rules("", ""), &[Rule::Connmark]);
}

/// 16 is 0x10, and 10 is not.
#[test]
fn a_mark_is_written_in_one_base_and_matched_in_the_other() {
    let rules = |mark: &str, more: &str| {
        tree(&format!(
            "{more}iptables -t mangle -A POSTROUTING -o eth0 -p udp --dport 53 -j MARK --set-mark {mark}\n\
             tc filter add dev eth0 parent 1: prio 1 handle 0x10 fw flowid 1:10"
        ))
    };
    check_finding(&rules("10", ""), &[Rule::Marks], &["nothing reads mark 10", "10 is 0xa, 16 is 0x10"]);
    // Where the class has other packets, the filter shows it.
    check_finding(
        &rules("10", "tc filter add dev eth0 parent 1: protocol arp prio 9 matchall flowid 1:10\n"),
        &[Rule::Marks],
        &[
            "9 warning R8",
            "packets carry 10 (0xa) here; the filter's 16 is 0x10",
            "write the same number in both places",
        ],
    );
    silent(&rules("16", ""), &[Rule::Marks]);
}

#[test]
fn a_policer_drops_of_a_first_window() {
    let of = |filter: &str, burst: &str| {
        format!(
            "tc qdisc add dev eth0 clsact\n\
             tc filter add dev eth0 ingress protocol ip prio 1 {filter} action police rate 10mbit burst \
             {burst} drop"
        )
    };
    let parts = [
        "2 note R12: a policer with burst 10k",
        "up to 4 of them are lost here",
        "with a full bucket, 6 conform",
    ];
    check_finding(&of("matchall", "10k"), &[Rule::Burst], &parts);
    silent(&of("matchall", "16k"), &[Rule::Burst]);
    silent(&of("u32 match ip protocol 1 0xff", "10k"), &[Rule::Burst]);
}

/// A packet that conforms passes, and the redirect behind is never reached; a redirected one meets no
/// policer.
#[test]
fn an_action_behind_one_that_ends_all_packets() {
    let of = |actions: &str| {
        format!(
            "tc qdisc add dev eth1 root handle 7: cake bandwidth 8mbit\n\
             tc qdisc add dev eth0 clsact\n\
             tc filter add dev eth0 egress protocol all prio 1 matchall {actions}"
        )
    };
    let (redirect, police) = ("action mirred egress redirect dev eth1", "action police rate 8mbit burst 20k");
    let parts =
        ["3 warning R1", "`mirred egress redirect dev eth1` behind `police`", "no action behind `police`"];
    check_finding(&of(&format!("{police} drop {redirect}")), &[Rule::Unreachable], &parts);
    silent(&of(&format!("{police} conform-exceed drop/pipe {redirect}")), &[Rule::Unreachable]);
    let parts = ["`police` behind `mirred egress redirect dev eth1`", "led away"];
    check_finding(&of(&format!("{redirect} {police} drop")), &[Rule::Unreachable], &parts);
    // Its burst does not matter then.
    silent(&of(&format!("{redirect} action police rate 8mbit burst 5k drop")), &[Rule::Burst]);
}

#[test]
fn ipv6_leaves_past_a_redirect_of_ipv4() {
    let of = |protocol: &str, root: &str| {
        format!(
            "tc qdisc add dev eth1 root handle 7: cake bandwidth 8mbit\n{root}\n\
             tc qdisc add dev eth0 clsact\n\
             tc filter add dev eth0 egress protocol {protocol} prio 1 matchall action mirred egress \
             redirect dev eth1"
        )
    };
    let parts = [
        "R14: TCP over IPv6 that leaves by eth0 is not redirected to eth1",
        "out eth0: the queue of eth0 itself",
    ];
    check_finding(&of("ip", ""), &[Rule::OtherProtocols], &parts);
    silent(&of("all", ""), &[Rule::OtherProtocols]);
    silent(&of("ip", "tc qdisc add dev eth0 root cake bandwidth 9mbit"), &[Rule::OtherProtocols]);
}

/// NAT comes before the queue: without `nat` cake sees one host.
#[test]
fn cake_sees_one_host_behind_nat() {
    let of = |flows: &str, rule: &str| {
        format!(
            "tc qdisc add dev eth0 root cake bandwidth 9mbit {flows}\niptables -t nat -A POSTROUTING -o \
            eth0 {rule}"
        )
    };
    let parts = [
        "1 warning R27",
        "(dual-srchost), and sees one source address",
        "and so does the same from 192.168.1.11",
    ];
    check_finding(&of("dual-srchost", "-j MASQUERADE"), &[Rule::Rewritten], &parts);
    check_finding(
        &of("", "-s 10.0.0.0/8 -j MASQUERADE"),
        &[Rule::Rewritten],
        &["1 note R27", "(triple-isolate, its default)"],
    );
    for (flows, rule) in [
        ("dual-srchost nat", "-j MASQUERADE"),
        ("dual-dsthost", "-j MASQUERADE"),
        ("flows", "-j MASQUERADE"),
        ("", "-j ACCEPT"),
    ] {
        silent(&of(flows, rule), &[Rule::Rewritten]);
    }
    let arriving = "tc qdisc add dev eth1 root cake bandwidth 9mbit dual-dsthost\n\
                    tc qdisc add dev eth0 clsact\n\
                    tc filter add dev eth0 ingress protocol all matchall action mirred egress redirect dev \
                    eth1\n\
                    iptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE";
    check_finding(
        arriving,
        &[Rule::Rewritten],
        &["1 warning R27", "sees one destination address", "what arrives at eth0"],
    );
}

/// hhf drops nothing before it is full.
#[test]
fn hhf_is_as_long_as_its_limit() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                tc class add dev eth0 parent 1: classid 1:30 htb rate 1mbit\n\
                tc qdisc add dev eth0 parent 1:30 hhf";
    check_finding(
        text,
        &[Rule::Limit],
        &["3 note R13: hhf without a limit lets 1000 packets wait, 12.1 s", "delays its own packets"],
    );
}

/// Linux compares the mark; no rule here gives any.
#[test]
fn a_u32_filter_for_a_mark_that_nothing_sets() {
    let u32 = "tc filter add dev eth0 parent 1: prio 1 u32 match mark 1 0xffffffff flowid 1:10\n";
    let parts = ["7 note R8: no packet carries mark 1", "marks on eth0: 0"];
    check_finding(&tree(u32), &[Rule::Marks, Rule::Idle], &parts);
    let set = format!("{u32}iptables -t mangle -A POSTROUTING -o eth0 -p udp -j MARK --set-mark 1\n");
    silent(&tree(&set), &[Rule::Marks, Rule::Idle]);
}

/// A filter whose packets an earlier one takes to the same class loses what its actions do: of a hundred
/// packets Linux's policer sees none. One that does the same is only one too many.
#[test]
fn a_policer_behind_a_filter_that_takes_its_packets() {
    let first =
        "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:10";
    let second = format!("{} action police rate 1mbit burst 20k drop\n", first.replace("prio 1", "prio 2"));
    let parts = ["8 warning R1: no packet reaches this filter", "goes to 1:10, not to its actions"];
    check_finding(&tree(&format!("{first}\n{second}")), &[Rule::Unreachable], &parts);
    let same = format!("{first}\n{}\n", first.replace("prio 1", "prio 2"));
    check_finding(&tree(&same), &[Rule::Unreachable], &["8 note R1", "go to 1:10 all the same"]);
}

/// A filter leads to the class that the filters below hang on; that no packet has its mark is told there.
#[test]
fn filters_behind_one_that_gets_no_packet() {
    let below = "tc qdisc replace dev eth0 parent 1:10 handle 101: prio\n\
                 tc filter add dev eth0 parent 1: handle 1 fw classid 1:10\n\
                 tc filter add dev eth0 parent 101: handle 1 fw classid 101:2\n";
    check_finding(&tree(below), &[Rule::Unreachable, Rule::Marks], &["8 note R8: no packet carries mark 1"]);
}

/// HTB's ceil is of packets as the size table counts them: Linux sends 1.470 Mbit/s of frames here, which are
/// 1.698 Mbit/s by the table.
#[test]
fn promises_are_counted_by_the_size_table() {
    let of = |stab: &str| {
        format!(
            "tc qdisc add dev eth0 {stab} root handle 1: htb default 20\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate 1500kbit\n\
             tc class add dev eth0 parent 1:1 classid 1:10 htb rate 850kbit\n\
             tc class add dev eth0 parent 1:1 classid 1:20 htb rate 850kbit\n\
             tc filter add dev eth0 parent 1: protocol all prio 1 u32 match ip dport 5060 0xffff flowid 1:10"
        )
    };
    let parts = ["2 warning R3", "1.47 Mbit/s leave, which the size table at the root counts as 1.7 Mbit/s"];
    check_finding(&of("stab linklayer adsl overhead 28"), &[Rule::Rates], &parts);
    check_finding(&of(""), &[Rule::Rates], &["2 warning R3", "1.7 Mbit/s leave instead of 1.5 Mbit/s"]);
}

/// A class is no mark, and no filter is asked for it.
#[test]
fn a_rule_for_every_device_gives_a_class() {
    let text = tree(
        "iptables -t mangle -A OUTPUT -o eth0 -p udp -j CLASSIFY --set-class 1:10\n\
         iptables -t mangle -A OUTPUT -p tcp -j CLASSIFY --set-class 1:10\n",
    );
    let parts = ["the rule gives a class to packets of every device", "where a qdisc there has its number"];
    check_finding(&text, &[Rule::Flush], &parts);
}

/// What a script did not come to may make what is missing.
#[test]
fn what_is_missing_of_a_script_that_was_cut_short_is_no_mistake() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 26\n\
                tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit";
    let rules = [Rule::Default, Rule::Idle, Rule::Unreachable, Rule::Marks];
    assert_eq!(findings_of(text, &rules).len(), 2);
    let mut model = tidegate_inspect::PolicyModel::new(given(&["eth0"], text));
    model.is_cut_short();
    let found = tidegate_inspect::check(&mut model);
    assert!(!found.iter().any(|finding| rules.contains(&finding.rule)), "{found:?}");
}

/// An ifb sends only what is redirected to it.
#[test]
fn an_ifb_to_which_nothing_is_redirected_shapes_nothing() {
    let of = |more: &str, devices: &[&str]| -> Vec<String> {
        let text = format!(
            "tc qdisc add dev ifb0 root handle 1: tbf rate 10mbit burst 20k latency 50ms\n\
             tc qdisc add dev ifb0 parent 1:1 fq_codel\n{more}"
        );
        let found = check(&mut reading(devices, &text));
        let own = found.into_iter().filter(|finding| finding.rule == Rule::Redirect);
        own.map(|finding| format!("{:?}: {}", finding.level, finding.what)).collect()
    };
    let both = ["eth0", "ifb0"];
    let ingress = "tc qdisc add dev eth0 handle ffff: ingress\n";
    let leads =
        "tc filter add dev eth0 parent ffff: protocol all matchall action mirred egress redirect dev ifb0\n";
    let told = ["Warning: nothing redirects packets to ifb0: its tbf has nothing to do"];
    assert_eq!(of(ingress, &both), told);
    assert_eq!(of("tc qdisc add dev eth0 root fq_codel\n", &both), told);
    assert_eq!(of(&format!("{ingress}{leads}"), &both), [""; 0]);
    assert_eq!(of(&format!("{ingress}{}", leads.replace("redirect", "mirror")), &both), [""; 0]);
    // Nothing is known of the other devices.
    assert_eq!(of("", &both), [""; 0]);
}
