//! nftables over netlink on this machine's own kernel, in network namespaces that the test makes: what is
//! installed there is what the real nft would have made of the same rules, packets really get their marks,
//! and no one else's table is touched.

use std::net::UdpSocket;
use std::process::{Command, Stdio};
use tidegate_gateway::{Gateway, GatewayContext};
use tidegate_netlink::Netfilter;
use tidegate_netlink::encode::nft::{Batch, Expressions, NftQueue, NftVerdict, own_ruleset, ruleset};
use tidegate_packet::{Pool, Seeded, Time};
use tidegate_policy::Op;
use tidegate_policy::netfilter::{Base, ChainType, Hook, NfOp, RuleTable};
use tidegate_syntax::iptables::{self, IptCommand};
use tidegate_syntax::nft::{self, Ask};
use tidegate_sys::namespace_thread::NamespaceThread;

/// A namespace, or the reason why there is none.
fn place() -> Option<NamespaceThread> {
    match NamespaceThread::new("nft") {
        Ok(place) => Some(place),
        Err(error) => {
            println!("left out: no network namespace can be made here ({error})");
            None
        }
    }
}

/// The output of the real nft, in the namespace of the calling thread; `None`: there is no nft here.
fn real(args: &[&str], input: &str) -> Option<String> {
    let child = Command::new("nft")
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        println!("left out: there is no nft on this machine");
        return None;
    };
    let mut stdin = child.stdin.take().expect("a pipe");
    std::io::Write::write_all(&mut stdin, input.as_bytes()).expect("nft reads");
    drop(stdin);
    let output = child.wait_with_output().expect("nft ends");
    assert!(output.status.success(), "nft {args:?}: {}\n{input}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The model's tables after these commands of nft, and these of iptables.
fn tables(text: &str, iptables_lines: &[&str]) -> Vec<RuleTable> {
    let (mut gateway, mut pool, mut draws) = (Gateway::new(), Pool::new(0), Seeded::new(1));
    let mut ops = Vec::new();
    for command in nft::parse(text, None).unwrap_or_else(|refusal| panic!("{refusal:?}\n{text}")) {
        let Ask::Op(op) = command.ask else { panic!("{command:?}") };
        ops.push(op);
    }
    ops.extend(iptables_lines.iter().map(|line| iptables_op(line)));
    for op in ops {
        let world = GatewayContext { now: Time(1), pool: &mut pool, random: &mut draws };
        gateway.apply(world, &Op::Netfilter(op)).expect("the model takes it");
    }
    tidegate_plan::rule_tables(&gateway)
}

fn iptables_op(line: &str) -> NfOp {
    let words: Vec<String> = line.split_whitespace().map(String::from).collect();
    match iptables::parse(&words[0], &words[1..]).map(|parsed| parsed.command) {
        Ok(IptCommand::Apply(op)) => op,
        other => panic!("{line}: {other:?}"),
    }
}

const OURS: &str = "tidegate-link0";

fn send(batch: Batch) {
    let mut netfilter = Netfilter::open().expect("netlink");
    let done = netfilter.carry_out(batch).expect("the socket works");
    assert_eq!(done, Ok(()));
}

/// What nft lists of our table, in the words that it would list the model's own in.
fn listed(model: &str) -> Option<String> {
    let text = real(&["list", "table", "inet", OURS], "")?;
    let kept = text.lines().filter(|line| !line.trim_start().starts_with("comment "));
    let text: String = kept.map(|line| format!("{line}\n")).collect();
    Some(text.replace(&format!("inet_{model}_"), "").replace(OURS, model))
}

/// nft and we make the same of a table.
fn alike(rules: &str) {
    let Some(place) = place() else { return };
    let text = rules.to_owned();
    place
        .go(move || {
            let Some(_) = real(&["-f", "-"], &text) else { return };
            let theirs = real(&["list", "table", "inet", "shape"], "").expect("nft is there");
            send(ruleset(OURS, "of a test", false, &tables(&text, &[])).expect("all of it has expressions"));
            assert_eq!(listed("shape").expect("nft is there"), theirs);
        })
        .expect("the thread is there");
}

#[test]
fn tables_chains_and_conditions() {
    alike(
        "table inet shape {
            chain aside {
                counter return
            }
            chain pre {
                type filter hook prerouting priority -150; policy accept;
                iifname \"link0\" counter jump aside
                iifname != \"link0\" counter goto aside
                meta mark 0x7 counter accept
                meta mark & 0xff00 == 0x1200 counter
                ct mark 0x9 counter
                ct state established,related counter
                ct state new counter
            }
            chain post {
                type filter hook postrouting priority -140; policy accept;
                oifname \"link*\" counter
                ip saddr 10.1.2.0/24 ip daddr 10.9.8.7 counter
                ip saddr != 10.0.0.0/8 counter
                ip6 daddr 2001:db8::/32 counter
                meta l4proto tcp tcp dport 22 counter
                meta l4proto udp udp sport 1000-2000 counter
                meta l4proto udp udp sport != 53 counter
                tcp dport { 80, 443, 8000-8100 } counter
                tcp flags & (syn | ack) == syn counter
                ip dscp ef counter
                meta length 40-100 counter
                ct original bytes 1000-5000 counter
                ct bytes >= 6000000 counter
                icmp type echo-request counter
            }
        }",
    );
}

#[test]
fn what_is_done_with_packets() {
    alike(
        "table inet shape {
            chain post {
                type filter hook postrouting priority -150; policy accept;
                oifname \"link0\" counter meta mark set 0x7
                counter meta mark set meta mark & 0xffff00ff | 0x1200
                counter ct mark set 0x9
                counter ct mark set meta mark
                counter meta mark set ct mark
                counter meta priority set 1:10
                meta nfproto ipv4 counter ip dscp set ef
                meta nfproto ipv6 counter ip6 dscp set cs1
                counter drop
            }
            chain out {
                type route hook output priority -150; policy drop;
                counter accept
            }
        }",
    );
}

/// The door of the user-space back end: where nftables has no queue of its own, iptables' target is in.
#[test]
fn packets_wait_for_a_program_by_iptables_target() {
    let Some(place) = place() else { return };
    place
        .go(|| {
            let mut batch = Batch::new(OURS);
            batch.make_table(None);
            let base = Base { kind: ChainType::Filter, hook: Hook::Postrouting, priority: 200 };
            batch.chain("leaving", Some(base), true);
            let queue = NftQueue { first: 7, count: 2, bypass: true, by_processor: true };
            let mut rule = Expressions::default();
            rule.leaves_by("link0").marked(1, 1, true).counter().queue_target(queue);
            batch.rule("leaving", &rule);
            send(batch);
            let Some(text) = real(&["list", "table", "inet", OURS], "") else { return };
            assert!(
                text.contains("oifname \"link0\" meta mark & 0x00000001 != 0x00000001 counter"),
                "{text}"
            );
            // nft lists iptables' target by its name, or in its own words, where it has iptables' libraries;
            // else not at all.
            if Command::new("iptables").arg("--version").output().is_ok() {
                assert!(text.contains("NFQUEUE") || text.contains("queue num 7-8 bypass,fanout"), "{text}");
            } else {
                eprintln!("SKIPPED: without iptables' libraries nft does not list its targets");
            }
            let tables = Netfilter::open().expect("netlink").tables().expect("they are told");
            assert_eq!(tables.keys().collect::<Vec<_>>(), [OURS]);
        })
        .expect("the thread is there");
}

/// A batch that is refused leaves everything as it was, and the error names its message; no one else's table
/// is touched.
#[test]
fn all_or_nothing_and_others_keep_theirs() {
    let Some(place) = place() else { return };
    place
        .go(|| {
            let mut other = Batch::new("somebody");
            other.make_table(Some("not ours"));
            other.chain("theirs", None, true);
            other.rule("theirs", Expressions::default().counter().verdict(&NftVerdict::Return));
            send(other);
            let mut netfilter = Netfilter::open().expect("netlink");
            let rules = "table inet shape { chain a { counter return; }; }";
            send(ruleset(OURS, "first", false, &tables(rules, &[])).expect("all of it has expressions"));
            let mut broken = ruleset(OURS, "second", true, &[]).expect("all of it has expressions");
            broken.rule("no-such-chain", Expressions::default().counter());
            let (at, refused) =
                netfilter.carry_out(broken).expect("the socket works").expect_err("it is refused");
            assert_eq!((at, refused.errno), (3, 2));
            let dump = netfilter.tables().expect("they are told");
            let comments: Vec<_> =
                dump.iter().map(|(name, comment)| (name.as_str(), comment.as_deref())).collect();
            assert_eq!(comments, [("somebody", Some("not ours")), (OURS, Some("first"))]);
            assert_eq!(netfilter.rules("somebody").expect("they are told").get("theirs"), Some(&1));
            let mut away = Batch::new(OURS);
            away.delete_table();
            send(away);
            assert_eq!(netfilter.tables().expect("they are told").keys().collect::<Vec<_>>(), ["somebody"]);
        })
        .expect("the thread is there");
}

/// A daemon's table goes with the daemon, however that ends.
#[test]
fn a_table_of_ours_goes_with_its_socket() {
    let Some(place) = place() else { return };
    place
        .go(|| {
            let rules = "table inet shape { chain a { counter return; }; }";
            let mut owner = Netfilter::open().expect("netlink");
            for replaces in [false, true] {
                let batch = own_ruleset(OURS, "of a daemon", replaces, &tables(rules, &[]));
                owner
                    .carry_out(batch.expect("all of it has expressions"))
                    .expect("the socket works")
                    .expect("it is taken");
            }
            let names = || Netfilter::open().and_then(|mut other| other.tables()).expect("they are told");
            assert_eq!(names().keys().collect::<Vec<_>>(), [OURS]);
            let mut away = Batch::new(OURS);
            away.delete_table();
            let stranger =
                Netfilter::open().and_then(|mut other| other.carry_out(away)).expect("the socket works");
            assert!(stranger.is_err(), "nobody else takes it away");
            drop(owner);
            assert!(names().is_empty());
        })
        .expect("the thread is there");
}

/// Rules, and datagrams over the loopback: from which port they are sent, and whether they arrive.
fn carried(rules: &[&str], datagrams: &[(u16, bool)]) {
    let Some(place) = place() else { return };
    let (all, datagrams) = (tables("", rules), datagrams.to_vec());
    place
        .go(move || {
            send(ruleset(OURS, "of a test", false, &all).expect("all of it has expressions"));
            let receiver = UdpSocket::bind("127.0.0.1:9000").expect("a port");
            receiver.set_nonblocking(true).expect("a socket can be asked without waiting");
            for (port, arrives) in datagrams {
                let sender = UdpSocket::bind(("127.0.0.1", port)).expect("a port");
                // One that the machine drops is refused to the sender.
                let _ = sender.send_to(&[0; 10], "127.0.0.1:9000");
                // The loopback delivers before it returns.
                let came = receiver.recv_from(&mut [0; 20]).is_ok();
                assert_eq!(came, arrives, "a datagram from port {port}");
            }
        })
        .expect("the thread is there");
}

#[test]
fn packets_get_their_marks() {
    carried(
        &[
            "iptables -t mangle -A OUTPUT -p udp --sport 2000:2999 -j MARK --set-mark 7",
            "iptables -t mangle -A OUTPUT -p udp -m multiport --ports 3001,3003:3004 -j MARK --set-mark 7",
            "iptables -t mangle -A OUTPUT -p udp --sport 4000 -j CLASSIFY --set-class 1:10",
            "iptables -t mangle -A OUTPUT -p udp -m multiport --sports 5000,5001 -j TOS --set-tos 0xb8/0xff",
            "iptables -t mangle -A INPUT -m mark --mark 7 -j DROP",
            "iptables -t mangle -A INPUT -m dscp --dscp 46 -j DROP",
        ],
        &[
            (1999, true),
            (2000, false),
            (2999, false),
            (3000, true),
            (3001, false),
            (3004, false),
            (4000, true),
            (5001, false),
        ],
    );
}

#[test]
fn connections_keep_marks_for_their_packets() {
    carried(
        &[
            "iptables -t mangle -A OUTPUT -p udp --sport 2000 -j MARK --set-mark 0x1234",
            "iptables -t mangle -A OUTPUT -p udp --sport 2000 -j CONNMARK --save-mark --nfmask 0xff00 \
            --ctmask 0xffff",
            "iptables -t mangle -A OUTPUT -p udp --sport 2000 -j MARK --set-mark 0",
            "iptables -t mangle -A OUTPUT -p udp --sport 3000 -j CONNMARK --set-mark 0x1201",
            "iptables -t mangle -A INPUT -j CONNMARK --restore-mark --nfmask 0xff --ctmask 0xff",
            "iptables -t mangle -A INPUT -m mark --mark 0x01 -j DROP",
            "iptables -t mangle -A INPUT -m connmark --mark 0x1200 -j DROP",
        ],
        &[(2000, false), (2001, true), (3000, false)],
    );
}

/// What no expression can express is refused by name, with a remedy.
#[test]
fn what_is_not_set_is_refused_by_name() {
    let all = tables("", &["iptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE"]);
    let refusal = ruleset(OURS, "of a test", false, &all).expect_err("translation is a firewall's");
    assert_eq!(
        refusal.to_string(),
        "rule 1 of the chain POSTROUTING in the table nat: MASQUERADE is not set by tidegate; leave it to \
        the firewall that has it: its rules are not touched"
    );
}
