//! Facts that operations are read by: devices they name, netfilter's priorities, tables of sizes, names.

use tidegate_packet::Handle;
use tidegate_policy::netfilter::{
    Base, ChainType, Condition, Connbytes, CountDirection, CountMode, Family, Hook, Match, NetfilterRule,
    NfCommand, NfOp, RuleChain, RuleTable,
};
use tidegate_policy::{
    Act, Action, ActionsOp, ChainOp, Errno, FilterOp, FilterParams, FwParams, Indev, Kind, LinkDriver,
    LinkLayer, LinkOp, Mirred, Op, SizeTable, TcError, Verb,
};

/// The priorities of the built-in chains (nft(8), "priority").
#[test]
fn built_in_chains_have_their_places() {
    use ChainType::{Filter, Nat, Route};
    let table = [
        ("raw", "PREROUTING", Hook::Prerouting, Filter, -300),
        ("raw", "OUTPUT", Hook::Output, Filter, -300),
        ("mangle", "PREROUTING", Hook::Prerouting, Filter, -150),
        ("mangle", "INPUT", Hook::Input, Filter, -150),
        ("mangle", "FORWARD", Hook::Forward, Filter, -150),
        ("mangle", "OUTPUT", Hook::Output, Route, -150),
        ("mangle", "POSTROUTING", Hook::Postrouting, Filter, -150),
        ("nat", "PREROUTING", Hook::Prerouting, Nat, -100),
        ("nat", "OUTPUT", Hook::Output, Nat, -100),
        ("nat", "INPUT", Hook::Input, Nat, 100),
        ("nat", "POSTROUTING", Hook::Postrouting, Nat, 100),
        ("filter", "INPUT", Hook::Input, Filter, 0),
        ("filter", "OUTPUT", Hook::Output, Filter, 0),
        ("security", "FORWARD", Hook::Forward, Filter, 50),
    ];
    for (name, chain, hook, kind, priority) in table {
        assert_eq!(Base::of_iptables(name, chain), Some(Base { kind, hook, priority }), "{name} {chain}");
    }
    assert_eq!(Base::of_iptables("mangle", "mine"), None);
}

/// Entry i is the cost of lengths up to (i + 1) cells; ATM carries 48 bytes in cells of 53 (ITU-T I.361).
#[test]
fn a_size_table_tells_costs() {
    let table = SizeTable { mpu: 0, tsize: 4, cell_log: 5, size_log: 0, ..SizeTable::default() };
    assert_eq!(table.entries(), Some(vec![32, 64, 96, 128]));
    assert_eq!(SizeTable { mpu: 70, ..table.clone() }.entries(), Some(vec![70, 70, 96, 128]));
    assert_eq!(SizeTable { size_log: 3, ..table.clone() }.entries(), Some(vec![4, 8, 12, 16]));
    assert_eq!(
        SizeTable { linklayer: LinkLayer::Atm, ..table.clone() }.entries(),
        Some(vec![53, 106, 106, 159])
    );
    assert_eq!(
        SizeTable { linklayer: LinkLayer::Atm, mpu: 97, ..table.clone() }.entries(),
        Some(vec![159; 4])
    );
    let long = SizeTable { tsize: 2, cell_log: 15, ..table.clone() };
    assert_eq!(
        (long.entries(), SizeTable { size_log: 1, ..long }.entries()),
        (None, Some(vec![16_384, 32_768]))
    );
    assert_eq!(SizeTable { tsize: 0, ..table }.entries(), Some(Vec::new()));
}

/// strerror(3), as tc prints it.
#[test]
fn refusals_in_the_c_librarys_words() {
    let expected = [
        (Errno::Perm, "Operation not permitted"),
        (Errno::NoEnt, "No such file or directory"),
        (Errno::Exist, "File exists"),
        (Errno::Inval, "Invalid argument"),
        (Errno::Links, "Too many links"),
    ];
    for (errno, text) in expected {
        assert_eq!(errno.text(), text);
        assert_eq!(TcError::bare(errno).to_string(), format!("RTNETLINK answers: {text}"));
    }
    assert_eq!(TcError::new(Errno::Inval, "No").to_string(), "Error: No.");
}

fn filter(block: u32) -> FilterOp {
    let fw =
        FwParams { classid: Some(Handle::new(1, 2)), indev: Some(Indev::named("in")), ..FwParams::default() };
    let mirred = |to: &str| Mirred { to: to.into(), ..Mirred::default() };
    FilterOp {
        verb: Verb::Add,
        dev: "dev".into(),
        block,
        parent: Handle::ROOT,
        pref: 1,
        protocol: 0x0800,
        chain: 0,
        handle: 1,
        kind: Some("fw".into()),
        params: Some(FilterParams::Fw(fw)),
        actions: vec![Action::from(Act::Mirred(mirred("to")))],
    }
}

/// All names of devices that an operation has, and the one it is about.
#[test]
fn operations_name_devices() {
    let rule = NetfilterRule {
        matches: vec![
            Match { not: false, what: Condition::In("i".into()) },
            Match {
                not: true,
                what: Condition::Any(vec![Condition::Out("o".into()), Condition::Length(1, 2)]),
            },
        ],
        ..NetfilterRule::default()
    };
    let rules = |command| Op::Netfilter(NfOp { family: Family::Ipv4, table: "mangle".into(), command });
    let chain =
        |block| Op::Chain(ChainOp { add: true, dev: "dev".into(), block, parent: Handle::ROOT, chain: 1 });
    let link = |op| Op::Link(op);
    let n = || String::from("n");
    let address = "192.0.2.1".parse().expect("an address");
    let table: Vec<(Op, Option<&str>, Vec<&str>)> = vec![
        (Op::Filter(filter(0)), Some("dev"), vec!["dev", "in", "to"]),
        (Op::Filter(filter(7)), None, vec!["in", "to"]),
        (chain(0), Some("dev"), vec!["dev"]),
        (chain(7), None, vec![]),
        (Op::Actions(ActionsOp::Flush("gact".into())), None, vec![]),
        (Op::Actions(ActionsOp::Set(Verb::Add, filter(0).actions)), None, vec!["to"]),
        (Op::Mtu { dev: n(), bytes: 1 }, Some("n"), vec!["n"]),
        (Op::Ring { dev: n(), frames: 1 }, Some("n"), vec!["n"]),
        (Op::TxQueueLen { dev: n(), packets: 1 }, Some("n"), vec!["n"]),
        (link(LinkOp::Add { name: n(), kind: LinkDriver::Veth { peer: "p".into() } }), None, vec!["n", "p"]),
        (
            link(LinkOp::Add { name: n(), kind: LinkDriver::Vlan { lower: "l".into(), id: 1 } }),
            None,
            vec!["n", "l"],
        ),
        (link(LinkOp::Add { name: n(), kind: LinkDriver::Ifb }), None, vec!["n"]),
        (link(LinkOp::Delete { name: n() }), Some("n"), vec!["n"]),
        (link(LinkOp::Rename { name: n(), to: "t".into() }), Some("n"), vec!["n", "t"]),
        (link(LinkOp::TxQueues { name: n(), count: 1 }), Some("n"), vec!["n"]),
        (link(LinkOp::Address { name: n(), add: true, address, prefix: 24 }), Some("n"), vec!["n"]),
        (rules(NfCommand::Append("c".into(), rule.clone())), None, vec!["i", "o"]),
        (rules(NfCommand::Insert("c".into(), 1, rule.clone())), None, vec!["i", "o"]),
        (rules(NfCommand::ReplaceAt("c".into(), 1, rule.clone())), None, vec!["i", "o"]),
        (rules(NfCommand::Delete("c".into(), rule)), None, vec!["i", "o"]),
        (rules(NfCommand::DeleteAt("c".into(), 1)), None, vec![]),
    ];
    for (mut op, about, names) in table {
        assert_eq!(op.device(), about, "{op:?}");
        if let Op::Link(op) = &op {
            assert_eq!(op.device(), "n");
        }
        let mut found = Vec::new();
        op.each_device(&mut |name| found.push(core::mem::replace(name, String::from("x"))));
        assert_eq!(found, names, "{op:?}");
        op.each_device(&mut |name| assert_eq!(name, "x"));
    }
}

#[test]
fn filters_tell_their_class_and_device() {
    let mut op = filter(0);
    let params = op.params.as_mut().expect("they are there");
    assert_eq!(params.classid(), Some(Handle::new(1, 2)));
    let indev = params.indev_mut().expect("it is there");
    assert!(!indev.is(0) && !indev.is(1), "it is yet to be looked up");
    indev.device = 4;
    assert_eq!([4, 5, 6].map(|came_in| indev.is(came_in)), [false, true, false]);
    let mut flow = FilterParams::Flow(Default::default());
    assert!(flow.classid().is_none() && flow.indev_mut().is_none());
    let Act::Mirred(mirred) = &op.actions[0].act else { panic!("mirred") };
    for (copy, arrives, wanted) in [(false, false, Some("to")), (true, false, None), (false, true, None)] {
        let act = Act::Mirred(Mirred { copy, arrives, ..mirred.clone() });
        assert_eq!(act.redirects_to(), wanted);
        assert_eq!(act.controls(), [mirred.control]);
    }
}

#[test]
fn rules_are_for_packets_of_a_version() {
    let of = |v6: bool, not: bool| {
        let what = Condition::Version6(v6);
        NetfilterRule {
            matches: vec![Match { not: false, what: Condition::Length(1, 2) }, Match { not, what }],
            ..NetfilterRule::default()
        }
    };
    let table = [
        (true, false, [false, true]),
        (false, false, [true, false]),
        (true, true, [true, false]),
        (false, true, [false, true]),
    ];
    for (v6, not, wanted) in table {
        assert_eq!([false, true].map(|packet| of(v6, not).is_for(packet)), wanted, "{v6} {not}");
    }
    assert!(NetfilterRule::default().is_for(true) && NetfilterRule::default().is_for(false));
    let chain = |accepts, rules: &[NetfilterRule]| RuleChain {
        name: "c".into(),
        base: None,
        accepts,
        rules: rules.to_vec(),
    };
    let table = |chains: Vec<RuleChain>| RuleTable { family: Family::Ipv4, name: "t".into(), chains };
    assert!(!table(vec![chain(true, &[]), chain(true, &[])]).does_anything());
    assert!(table(vec![chain(true, &[]), chain(false, &[])]).does_anything());
    assert!(table(vec![chain(true, &[NetfilterRule::default()])]).does_anything());
}

/// iptables-extensions(8), connbytes: packets, bytes or the mean packet, in either direction or both; both
/// bounds count.
#[test]
fn what_a_connection_has_carried() {
    use CountDirection::{Both, Original, Reply};
    use CountMode::{Average, Bytes, Packets};
    let (packets, bytes) = ([4, 6], [400, 1200]);
    let table = [
        (Packets, Original, 4),
        (Packets, Reply, 6),
        (Packets, Both, 10),
        (Bytes, Original, 400),
        (Bytes, Reply, 1200),
        (Bytes, Both, 1600),
        (Average, Original, 100),
        (Average, Reply, 200),
        (Average, Both, 160),
    ];
    for (mode, direction, wanted) in table {
        let matches = |from, to| Connbytes { from, to, mode, direction }.matches(packets, bytes);
        let found = [
            matches(wanted, wanted),
            matches(wanted + 1, u64::MAX),
            matches(0, wanted - 1),
            matches(0, u64::MAX),
        ];
        assert_eq!(found, [true, false, false, true], "{mode:?} {direction:?}");
    }
    assert!(Connbytes { from: 0, to: 0, mode: Average, direction: Both }.matches([0, 0], [0, 0]));
}

#[test]
fn kinds_are_known_by_their_exact_names() {
    for kind in Kind::ALL {
        assert_eq!(Kind::from_name(kind.name()), Some(*kind));
        assert_eq!(Kind::named(kind.name()), (*kind != Kind::Custom).then_some(*kind));
    }
    assert_eq!((Kind::from_name("fq_code"), Kind::named("FQ"), Kind::named("")), (None, None, None));
    assert_eq!([Kind::Htb, Kind::Prio, Kind::FqCodel].map(Kind::classes_are_made), [true, false, false]);
    assert_eq!([Kind::Htb, Kind::FqCodel, Kind::Sfq].map(Kind::classes_are_flows), [false, true, true]);
    assert_eq!([Kind::Clsact, Kind::Ingress, Kind::Prio].map(Kind::is_hook), [true, true, false]);
}
