//! The iptables lines that published scripts use: what they mean, how they are printed back, and how wrong
//! ones are refused.

use tidegate_policy::netfilter::{Condition, Match, NetfilterRule, NetfilterTarget, NfCommand, NfOp};
use tidegate_syntax::iptables::{self, IptCommand, ListStyle, ListedChain, ListedRule};

fn parse(line: &str) -> Result<IptCommand, String> {
    let args: Vec<String> = line.split_whitespace().map(String::from).collect();
    iptables::parse("iptables", &args).map(|parsed| parsed.command).map_err(|refusal| {
        assert!(refusal.code > 0);
        refusal.stderr.lines().next().unwrap_or("").to_string()
    })
}

fn rule(line: &str) -> NetfilterRule {
    match parse(line) {
        Ok(IptCommand::Apply(op)) => match op.command {
            NfCommand::Append(_, rule) | NfCommand::Insert(_, _, rule) | NfCommand::Delete(_, rule) => rule,
            other => panic!("{line}: {other:?}"),
        },
        other => panic!("{line}: {other:?}"),
    }
}

/// Each line, and the same rule as `-S` writes it.
#[test]
fn rules_as_commands() {
    let table = [
        (
            "-o eth0 -p tcp --sport 80 -j MARK --set-mark 80",
            "-o eth0 -p tcp -m tcp --sport 80 -j MARK --set-xmark 0x50/0xffffffff",
        ),
        (
            "-p tcp --tcp-flags SYN SYN --dport 22 -j MARK --set-mark 300",
            "-p tcp -m tcp --dport 22 --tcp-flags SYN SYN -j MARK --set-xmark 0x12c/0xffffffff",
        ),
        (
            "-p tcp --tcp-flags URG,ACK,PSH,RST,SYN,FIN ACK -m length --length 40:64 -j MARK --set-mark 200",
            "-p tcp -m tcp --tcp-flags FIN,SYN,RST,PSH,ACK,URG ACK -m length --length 40:64 -j MARK \
            --set-xmark 0xc8/0xffffffff",
        ),
        ("-m mark --mark 0x00/0xff -j QOS_MARK", "-m mark --mark 0x0/0xff -j QOS_MARK"),
        ("-m mark --mark 0x00/0xff -g QOS_MARK", "-m mark --mark 0x0/0xff -g QOS_MARK"),
        ("-j MARK --set-mark 0x2/0xff", "-j MARK --set-xmark 0x2/0xff"),
        ("-j MARK --and-mark 0xf0", "-j MARK --set-xmark 0x0/0xffffff0f"),
        ("-j MARK --or-mark 0x4", "-j MARK --set-xmark 0x4/0x4"),
        ("-j MARK --xor-mark 5", "-j MARK --set-xmark 0x5/0x0"),
        (
            "-p udp -m multiport --ports 123,53 -j DSCP --set-dscp-class AF42",
            "-p udp -m multiport --ports 123,53 -j DSCP --set-dscp 0x24",
        ),
        (
            "-p tcp -m multiport --dports 80,443,8000:8010 -j ACCEPT",
            "-p tcp -m multiport --dports 80,443,8000:8010 -j ACCEPT",
        ),
        ("-m dscp --dscp-class CS1 -j RETURN", "-m dscp --dscp 0x08 -j RETURN"),
        ("-m dscp ! --dscp 0 -j DSCP --set-dscp 0", "-m dscp ! --dscp 0x00 -j DSCP --set-dscp 0x00"),
        (
            "-m tos --tos Minimize-Delay -j TOS --set-tos 0x08",
            "-m tos --tos 0x10/0x3f -j TOS --set-tos 0x08/0xff",
        ),
        ("-i vtun+ ! -s 10.1.2.3/8 -d 192.168.1.1", "! -s 10.0.0.0/8 -d 192.168.1.1/32 -i vtun+"),
        ("! -s 10.0.0.0/8 ! -p tcp -j DROP", "! -s 10.0.0.0/8 ! -p tcp -j DROP"),
        (
            "-p tcp --syn -j CLASSIFY --set-class 1:10",
            "-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN -j CLASSIFY --set-class 0001:0010",
        ),
        ("-m mark ! --mark 0 -j ACCEPT", "-m mark ! --mark 0x0 -j ACCEPT"),
        ("-p tcp --dport=http -j ACCEPT", "-p tcp -m tcp --dport 80 -j ACCEPT"),
        ("-m comment --comment hello -p icmp", "-p icmp -m comment --comment hello"),
    ];
    for (words, printed) in table {
        let read = rule(&format!("-t mangle -A FORWARD {words}"));
        assert_eq!(iptables::print_rule(&read, false).trim_start(), printed, "{words}");
        // What is printed means the same.
        assert_eq!(rule(&format!("-t mangle -A FORWARD {printed}")), read, "{printed}");
    }
}

#[test]
fn commands() {
    let op = |line: &str| match parse(line) {
        Ok(IptCommand::Apply(op)) => format!("{} {:?}", op.table, op.command),
        other => format!("{other:?}"),
    };
    let table = [
        op("-t mangle -F"),
        op("-w 1 -t mangle -F OUTPUT"),
        op("-t mangle -X QOS"),
        op("-tmangle -N QOS"),
        op("-P FORWARD DROP"),
        op("-t mangle -D OUTPUT 3"),
        op("-t mangle -I OUTPUT -j RETURN"),
        op("-t mangle -I OUTPUT 2 -j RETURN"),
        op("-t mangle -Z"),
    ];
    let wanted = [
        "mangle Flush(None)",
        "mangle Flush(Some(\"OUTPUT\"))",
        "mangle DeleteChain(Some(\"QOS\"))",
        "mangle NewChain(\"QOS\")",
        "filter Policy(\"FORWARD\", false)",
        "mangle DeleteAt(\"OUTPUT\", 3)",
        "mangle Insert(\"OUTPUT\", 1, NetfilterRule { matches: [], first: [], target: Some(Return), counter: None, part: Whole })",
        "mangle Insert(\"OUTPUT\", 2, NetfilterRule { matches: [], first: [], target: Some(Return), counter: None, part: Whole })",
        "mangle Zero(None)",
    ];
    assert_eq!(table, wanted);
    let style = ListStyle { verbose: true, numeric: true, ..ListStyle::default() };
    let list = IptCommand::List { ipv6: false, table: "mangle".into(), chain: Some("OUTPUT".into()), style };
    assert_eq!(parse("-L OUTPUT -t mangle -v -n"), Ok(list.clone()));
    assert_eq!(parse("-t mangle -nvL OUTPUT"), Ok(list));
}

#[test]
fn refusals() {
    let first = |line: &str| parse(line).err().unwrap_or_else(|| "accepted".into());
    let v = "iptables v1.8.9 (nf_tables):";
    let table = [
        ("-t mangle -A OUTPUT -p tcp -dport 80 -j MARK --set-mark 1", "Bad argument `80'".into()),
        ("-A OUTPUT --dport 80 -j ACCEPT", format!("{v} unknown option \"--dport\"")),
        ("-A OUTPUT -p foo", format!("{v} unknown protocol \"foo\" specified")),
        (
            "-A OUTPUT -j MARK",
            format!("{v} MARK: One of the --set-xmark, --{{and,or,xor,set}}-mark options is required"),
        ),
        ("-t nope -L", format!("{v} table 'nope' does not exist")),
        ("-j ACCEPT", format!("{v} no command specified")),
        ("-A OUTPUT foo", "Bad argument `foo'".into()),
        ("-A", format!("{v} option \"-A\" requires an argument")),
        ("-A OUTPUT -m foo", format!("{v} Couldn't load match `foo':No such file or directory")),
        ("-A OUTPUT -j NFQUEUE", "tidegate: the target NFQUEUE is not supported in this version".into()),
        (
            "-A OUTPUT -m hashlimit --hashlimit-upto 1",
            "tidegate: the match hashlimit is not supported in this version".into(),
        ),
        (
            "-A OUTPUT -p tcp -m multiport --dports 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16",
            format!("{v} too many ports specified"),
        ),
        ("! -j ACCEPT", format!("{v} unexpected ! flag before -j")),
    ];
    for (line, wanted) in table {
        assert_eq!(first(line), wanted, "{line}");
    }
}

/// As iptables 1.8.9 answered.
#[test]
fn refused_values_are_worded_as_by_iptables() {
    let first = |line: &str| parse(line).err().unwrap_or_else(|| "accepted".into());
    let ports = "-A OUTPUT -p tcp -m multiport --dports";
    let table = [
        (format!("{ports} 80,1000-2000"), "invalid port/service `1000-2000' specified"),
        (format!("{ports} 80,90:80"), "invalid portrange specified"),
        (format!("{ports} 80:80"), "invalid portrange specified"),
        (format!("{ports} 80,"), "invalid port/service `' specified"),
        (format!("{ports} :80"), "invalid port/service `' specified"),
        (format!("{ports} 70000"), "invalid port/service `70000' specified"),
        (format!("{ports} 1:foo"), "invalid port/service `foo' specified"),
        (format!("{ports} 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,x"), "too many ports specified"),
        (format!("{ports} 1:2,1:2,1:2,1:2,1:2,1:2,1:2,8:9"), "too many ports specified"),
        (format!("{ports} x,90:80"), "invalid port/service `x' specified"),
        (
            "-A OUTPUT -m length --length -1".to_owned(),
            "length: bad value for option \"--length\" near \"-1\", or out of range (0-65535).",
        ),
        (
            "-A OUTPUT -m length --length 64-100".to_owned(),
            "length: Argument to \"--length\" has unexpected characters near \"-100\".",
        ),
        (
            "-A OUTPUT -m length --length 64:x".to_owned(),
            "length: bad value for option \"--length\" near \"x\", or out of range (0-65535).",
        ),
        (
            "-t mangle -A OUTPUT -j MARK --set-mark foo".to_owned(),
            "MARK: bad integer value for option \"--set-mark\", or out of range.",
        ),
        (
            "-t mangle -A OUTPUT -j MARK --or-mark x".to_owned(),
            "MARK: bad value for option \"--or-mark\", or out of range (0-4294967295).",
        ),
        (
            "-A OUTPUT -m connmark --mark foo".to_owned(),
            "connmark: bad integer value for option \"--mark\", or out of range.",
        ),
        ("-t mangle -A OUTPUT -j CLASSIFY --set-class 1".to_owned(), "Bad class value \"1\""),
        (
            "-t mangle -A OUTPUT -j DSCP --set-dscp 64".to_owned(),
            "DSCP: bad value for option \"--set-dscp\", or out of range (0-63).",
        ),
        ("-A OUTPUT -m dscp --dscp-class foo".to_owned(), "Invalid DSCP value `foo'"),
        ("-A OUTPUT -m dscp --dscp-class AF".to_owned(), "Invalid DSCP value `AF'"),
        ("-A OUTPUT -m tos --tos foo".to_owned(), "Symbolic name \"foo\" is unknown"),
        (
            "-A OUTPUT -o abcdefghijklmnop".to_owned(),
            "interface name `abcdefghijklmnop' must be shorter than IFNAMSIZ (15)",
        ),
    ];
    for (line, wanted) in table {
        assert_eq!(first(&line), format!("iptables v1.8.9 (nf_tables): {wanted}"), "{line}");
    }
    // It compares no more than its own name.
    for accepted in ["-A OUTPUT -m dscp --dscp-class EFF", "-A OUTPUT -m length --length 100:64"] {
        assert_eq!(first(accepted), "accepted");
    }
    assert!(parse(&format!("{ports} 1:2,1:2,1:2,1:2,1:2,1:2,1:2,9")).is_ok());
}

#[test]
fn listings() {
    let mark = NetfilterRule {
        matches: vec![
            Match { not: false, what: Condition::Out("eth0".into()) },
            Match { not: false, what: Condition::Protocol(6) },
            Match { not: false, what: Condition::SourcePort((80, 80)) },
        ],
        target: Some(NetfilterTarget::Mark { value: 80, mask: u32::MAX }),
        ..NetfilterRule::default()
    };
    let chain = ListedChain {
        name: "OUTPUT".into(),
        policy: Some(true),
        packets: 12,
        bytes: 3456,
        rules: vec![ListedRule { rule: mark, packets: 123_456, bytes: 12_345_678 }],
        ..ListedChain::default()
    };
    let style = ListStyle { verbose: true, numeric: true, ..ListStyle::default() };
    let verbose = iptables::list(std::slice::from_ref(&chain), false, &style);
    let plain = iptables::list(std::slice::from_ref(&chain), false, &ListStyle::default());
    let commands =
        iptables::list(std::slice::from_ref(&chain), false, &ListStyle { commands: true, ..style });
    let table = [verbose, plain, commands, iptables::save("mangle", &[chain], false, false)];
    let wanted = [
        "Chain OUTPUT (policy ACCEPT 12 packets, 3456 bytes)\n pkts bytes target     prot opt in     \
        out     source               destination         \n 123K   12M MARK       6    --  *      eth0    \
        0.0.0.0/0            0.0.0.0/0            tcp spt:80 MARK set 0x50\n",
        "Chain OUTPUT (policy ACCEPT)\ntarget     prot opt source               \
        destination         \nMARK       tcp  --  anywhere             anywhere             tcp spt:http \
        MARK set 0x50\n",
        "-P OUTPUT ACCEPT -c 12 3456\n-A OUTPUT -o eth0 -p tcp -m tcp --sport 80 -c 123456 12345678 -j MARK \
        --set-xmark 0x50/0xffffffff\n",
        "*mangle\n:OUTPUT ACCEPT [12:3456]\n-A OUTPUT -o eth0 -p tcp -m tcp --sport 80 -j MARK --set-xmark \
        0x50/0xffffffff\nCOMMIT\n",
    ];
    for (ours, wanted) in table.iter().zip(wanted) {
        assert_eq!(ours, wanted);
    }
}

/// A rule of these words is printed so by `-S`, and its row ends so in `-L -n` and in `-L`.
fn as_listed(words: &str, printed: &str, rows: [&str; 2]) {
    let read = rule(&format!("-t mangle -A FORWARD {words}"));
    assert_eq!(iptables::print_rule(&read, false).trim_start(), printed, "{words}");
    let chain = ListedChain {
        name: "FORWARD".into(),
        policy: Some(true),
        rules: vec![ListedRule { rule: read, packets: 0, bytes: 0 }],
        ..ListedChain::default()
    };
    for (numeric, wanted) in [true, false].into_iter().zip(rows) {
        let style = ListStyle { numeric, ..ListStyle::default() };
        let text = iptables::list(std::slice::from_ref(&chain), false, &style);
        let row = text.lines().last().unwrap_or_default();
        assert!(row.ends_with(&format!(" {wanted}")), "{words}: {row}");
    }
}

/// Marks and counts of connections as iptables 1.8.9 lists them: the words given, `-S`, `-L -n`, and `-L`
/// where it differs.
#[test]
fn connections_as_listed() {
    let table = [
        ("-j CONNMARK --set-mark 10", "-j CONNMARK --set-xmark 0xa/0xffffffff", "CONNMARK set 0xa", ""),
        ("-j CONNMARK --set-mark 10/0xff", "-j CONNMARK --set-xmark 0xa/0xff", "CONNMARK xset 0xa/0xff", ""),
        (
            "-j CONNMARK --set-xmark 0x10/0xf0",
            "-j CONNMARK --set-xmark 0x10/0xf0",
            "CONNMARK xset 0x10/0xf0",
            "",
        ),
        ("-j CONNMARK --and-mark 0xf", "-j CONNMARK --set-xmark 0x0/0xfffffff0", "CONNMARK and 0xf", ""),
        ("-j CONNMARK --or-mark 0xf", "-j CONNMARK --set-xmark 0xf/0xf", "CONNMARK or 0xf", ""),
        ("-j CONNMARK --xor-mark 0xf", "-j CONNMARK --set-xmark 0xf/0x0", "CONNMARK xor 0xf", ""),
        (
            "-j CONNMARK --save-mark",
            "-j CONNMARK --save-mark --nfmask 0xffffffff --ctmask 0xffffffff",
            "CONNMARK save",
            "",
        ),
        (
            "-j CONNMARK --save-mark --mask 0xff",
            "-j CONNMARK --save-mark --nfmask 0xff --ctmask 0xff",
            "CONNMARK save mask 0xff",
            "",
        ),
        (
            "-j CONNMARK --restore-mark --nfmask 0xff --ctmask 0xf0",
            "-j CONNMARK --restore-mark --nfmask 0xff --ctmask 0xf0",
            "CONNMARK restore ctmask 0xf0 nfmask ~0xff",
            "",
        ),
        ("-m connmark --mark 5", "-m connmark --mark 0x5", "connmark match  0x5", ""),
        ("-m connmark ! --mark 5/0xff", "-m connmark ! --mark 0x5/0xff", "connmark match ! 0x5/0xff", ""),
        (
            "-m conntrack --ctstate NEW,ESTABLISHED",
            "-m conntrack --ctstate NEW,ESTABLISHED",
            "ctstate NEW,ESTABLISHED",
            "",
        ),
        ("-m conntrack ! --ctstate INVALID", "-m conntrack ! --ctstate INVALID", "! ctstate INVALID", ""),
        (
            "-m state --state RELATED,ESTABLISHED",
            "-m state --state RELATED,ESTABLISHED",
            "state RELATED,ESTABLISHED",
            "",
        ),
        (
            "-m connbytes --connbytes 10000000: --connbytes-mode bytes --connbytes-dir both",
            "-m connbytes --connbytes 10000000 --connbytes-mode bytes --connbytes-dir both",
            "connbytes 10000000 connbytes mode bytes connbytes direction both",
            "",
        ),
        (
            "-m connbytes ! --connbytes 10:20 --connbytes-mode avgpkt --connbytes-dir reply",
            "-m connbytes ! --connbytes 10:20 --connbytes-mode avgpkt --connbytes-dir reply",
            "! connbytes 10:20 connbytes mode avgpkt connbytes direction reply",
            "",
        ),
        (
            "-p icmp --icmp-type echo-request",
            "-p icmp -m icmp --icmp-type 8",
            "icmptype 8",
            "icmp echo-request",
        ),
    ];
    for (words, printed, numeric, named) in table {
        as_listed(words, printed, [numeric, if named.is_empty() { numeric } else { named }]);
    }
}

/// What iptables 1.8.9 refuses of these.
#[test]
fn connections_refused() {
    let table = [
        ("-m connbytes --connbytes 10", "connbytes: option \"--connbytes-dir\" must be specified"),
        (
            "-m connbytes --connbytes 20:10 --connbytes-mode packets --connbytes-dir both",
            "20 should be less than 10",
        ),
        ("-j CONNMARK", "CONNMARK target: No operation specified"),
    ];
    for (words, reason) in table {
        let refused = parse(&format!("-t mangle -A FORWARD {words}")).expect_err(words);
        assert!(refused.ends_with(reason), "{words}: {refused}");
    }
}

/// Rules of the table nat: the words given, `-S` where it differs, the end of the row of `-L -n` (iptables
/// 1.8.9).
#[test]
fn translations() {
    let table = [
        ("-o eth0 -p tcp -j SNAT --to-source 192.0.2.1:1024-2048", "", "to:192.0.2.1:1024-2048"),
        ("-p tcp -j SNAT --to-source :1024-2048", "", "to::1024-2048"),
        ("-j SNAT --to-source 10.0.0.1-10.0.0.9", "", "to:10.0.0.1-10.0.0.9"),
        ("-p tcp -j SNAT --to-source 10.0.0.1-10.0.0.9:100-200", "", "to:10.0.0.1-10.0.0.9:100-200"),
        ("-j SNAT --to-source 10.0.0.1 --random", "", "to:10.0.0.1 random"),
        ("-j SNAT --to-source 10.0.0.1 --persistent", "", "to:10.0.0.1 persistent"),
        ("-p tcp -j MASQUERADE --to-ports 1024-2048", "", "masq ports: 1024-2048"),
        ("-o ppp+ -j MASQUERADE", "", ""),
        ("-j MASQUERADE --random-fully", "", "random-fully"),
        (
            "-p tcp --dport 80 -j DNAT --to-destination 10.0.0.1:8080",
            "-p tcp -m tcp --dport 80 -j DNAT --to-destination 10.0.0.1:8080",
            "tcp dpt:80 to:10.0.0.1:8080",
        ),
        ("-p udp -j DNAT --to-destination :80-80", "-p udp -j DNAT --to-destination :80", "to::80"),
        ("-p tcp -j REDIRECT --to-ports 3128-3130", "", "redir ports 3128-3130"),
        ("-p tcp -j REDIRECT", "", ""),
    ];
    let style = ListStyle { numeric: true, ..ListStyle::default() };
    for (words, printed, listed) in table {
        let read = rule(&format!("-t nat -A POSTROUTING {words}"));
        let printed = if printed.is_empty() { words } else { printed };
        assert_eq!(iptables::print_rule(&read, false).trim_start(), printed, "{words}");
        let chain = ListedChain {
            rules: vec![ListedRule { rule: read, ..ListedRule::default() }],
            ..ListedChain::default()
        };
        let rows = iptables::list(&[chain], false, &style);
        assert!(rows.trim_end().ends_with(listed), "{rows}");
    }
    let v6 = "-p tcp -j SNAT --to-source [2001:db8::1]:1024-2048";
    let args: Vec<String> =
        format!("-t nat -A POSTROUTING {v6}").split_whitespace().map(String::from).collect();
    match iptables::parse("ip6tables", &args).map(|parsed| parsed.command) {
        Ok(IptCommand::Apply(NfOp { command: NfCommand::Append(_, rule), .. })) => {
            assert_eq!(iptables::print_rule(&rule, true).trim_start(), v6);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn translations_refused() {
    let first = |line: &str| parse(line).err().unwrap_or_else(|| "accepted".into());
    let v = "iptables v1.8.9 (nf_tables):";
    let table = [
        ("-A POSTROUTING -j SNAT", "SNAT: option \"--to-source\" must be specified"),
        (
            "-A POSTROUTING -j SNAT --to-source 10.0.0.1:80",
            "Need TCP, UDP, SCTP or DCCP with port specification",
        ),
        ("-A POSTROUTING -p tcp -j SNAT --to-source foo", "Bad IP address \"foo\""),
        ("-A PREROUTING -j DNAT", "DNAT: option \"--to-destination\" must be specified"),
        ("-A PREROUTING -p tcp -j REDIRECT --to-ports x", "Port `x' not valid"),
        ("-A PREROUTING -p tcp -j DNAT --to-destination 10.0.0.1:90-80", "Port range `80' funky"),
        ("-A PREROUTING -p tcp -j DNAT --to-source 10.0.0.1", "unknown option \"--to-source\""),
    ];
    for (line, wanted) in table {
        assert_eq!(first(&format!("-t nat {line}")), format!("{v} {wanted}"), "{line}");
    }
}

/// What gateway scripts do beside marking, as iptables 1.8.9 lists it: the words given, `-S`, `-L -n`, and
/// `-L` where it differs.
#[test]
fn notes_and_segment_sizes_as_listed() {
    let table = [
        (
            "-p tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu",
            "-p tcp -m tcp --tcp-flags SYN,RST SYN -j TCPMSS --clamp-mss-to-pmtu",
            "tcp flags:0x06/0x02 TCPMSS clamp to PMTU",
            "tcp flags:SYN,RST/SYN TCPMSS clamp to PMTU",
        ),
        ("-j LOG", "-j LOG", "LOG flags 0 level 4", "LOG level warn"),
        (
            "-j LOG --log-prefix x --log-level debug --log-tcp-options",
            "-j LOG --log-prefix x --log-level 7 --log-tcp-options",
            "LOG flags 2 level 7 prefix \"x\"",
            "LOG level debug tcp-options prefix \"x\"",
        ),
    ];
    for (words, printed, numeric, named) in table {
        as_listed(words, printed, [numeric, named]);
    }
}
