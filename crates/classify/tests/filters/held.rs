//! What a qdisc asks of its filters beside their verdicts: which classes they hold, what a mark alone
//! decides, when hash seeds change, and what is left when filters go.

use super::vectors::words;
use tidegate_classify::{ActionInput, Actions, Blocks, ClassifyContext, Cost, FilterList, FilterRandom};
use tidegate_classify::{FilterVerdict, Owner, Shared};
use tidegate_packet::{
    FwMark, Handle, Head, Jiffies, LinuxVersion, Meta, Pool, Rate, Seeded, Time, Timer, Wheel,
};
use tidegate_policy::{ChainOp, FilterOp, LinkLayer, Op, RateSpec, TcError};
use tidegate_syntax::tc::{self, TcCommand};
use tidegate_syntax::{Device, Env};

const ROOT: Handle = Handle::new(1, 0);

fn op(command: &str) -> FilterOp {
    let env = Env {
        devices: Some(vec![Device { name: "eth0".to_owned(), ..Device::default() }]),
        ..Env::default()
    };
    match tc::parse(&words(&format!("filter {command}")), &env).map(|parsed| parsed.command) {
        Ok(TcCommand::Apply(Op::Filter(op))) => op,
        _ => panic!("{command}"),
    }
}

/// A list of filters whose qdisc has the classes 1:1 to 1:5.
struct List {
    filters: FilterList,
    actions: Actions,
    random: Seeded,
    drawn: bool,
    wheel: Wheel,
}

impl List {
    fn new() -> List {
        List {
            filters: FilterList::new(),
            actions: Actions::default(),
            random: Seeded::new(1),
            drawn: false,
            wheel: Wheel::new(Jiffies { hz: 1000 }),
        }
    }

    fn with(commands: &[&str]) -> List {
        let mut list = List::new();
        for command in commands {
            list.apply(command).unwrap_or_else(|error| panic!("{command}: {error:?}"));
        }
        list
    }

    fn apply(&mut self, command: &str) -> Result<(), TcError> {
        self.at(Time(0), ROOT, command)
    }

    fn at(&mut self, now: Time, holder: Handle, command: &str) -> Result<(), TcError> {
        let has_class = |class: Handle| class.qdisc() == ROOT && (1..=5).contains(&class.minor());
        let owner = Owner { qdisc: ROOT, holder, has_class: &has_class, now, wheel: &self.wheel };
        let mut random = FilterRandom { source: &mut self.random, flow_key_drawn: &mut self.drawn };
        self.filters.apply(&op(command), owner, &mut self.actions, &mut random)
    }

    /// The class of a UDP packet with a mark.
    fn class(&mut self, mark: u32) -> Option<Handle> {
        let mut packet = [0; 32];
        (packet[0], packet[3], packet[8], packet[9]) = (0x45, 32, 64, 17);
        let head = Head::from_network(0x0800, &packet);
        let mut pool = Pool::new(1);
        let mut meta = Meta::of(&head, 60);
        meta.mark = FwMark(mark);
        let pkt = pool.insert(meta, head).expect("room for one");
        let mut context = ClassifyContext {
            pkt: &pkt,
            meter: ActionInput {
                len: 60,
                whole: 60,
                now: Time(0),
                passed_over: false,
                linux: LinuxVersion::default(),
            },
            pool: &mut pool,
            actions: &mut self.actions,
            random: FilterRandom { source: &mut self.random, flow_key_drawn: &mut self.drawn },
            link_header: Head::ETHERNET as u32,
        };
        let verdict = self.filters.classify(ROOT, &mut context);
        pool.release(pkt);
        match verdict {
            Some(FilterVerdict::Class(class)) => Some(class),
            _ => None,
        }
    }
}

/// A class that a filter names cannot be deleted while the filter is there, if the class was there first.
/// Linux: "RTNETLINK answers: Device or resource busy".
#[test]
fn filters_hold_the_classes_they_name() {
    for (kind, rest) in [
        ("fw", "handle 7 fw classid 1:2"),
        ("matchall", "matchall classid 1:2"),
        ("basic", "basic match 'meta(nf_mark eq 1)' classid 1:2"),
        ("flower", "flower ip_proto udp classid 1:2"),
        ("u32", "u32 match u32 0 0 classid 1:2"),
        ("route", "route from 3 classid 1:2"),
    ] {
        let mut list = List::with(&[&format!("add dev eth0 parent 1: protocol ip prio 1 {rest}")]);
        let held = |list: &List| [1, 2, 3].map(|minor| list.filters.binds(ROOT.class(minor)));
        assert_eq!(held(&list), [false, true, false], "{kind}");
        list.filters.rebind(ROOT.class(2), false);
        assert_eq!(held(&list), [false; 3], "{kind}: the class went");
        list.filters.rebind(ROOT.class(2), true);
        assert_eq!(held(&list), [false, true, false], "{kind}: it came again");
        list.filters.rebind(ROOT.class(1), true);
        assert_eq!(held(&list), [false, true, false], "{kind}: another came");
        list.apply("del dev eth0 parent 1: protocol ip prio 1").expect("it is there");
        assert_eq!(held(&list), [false; 3], "{kind}: the filter went");
    }
}

/// A filter that names a class which is not there holds none; nor does one that computes its classes.
#[test]
fn what_is_not_there_is_not_held() {
    for rest in [
        "handle 7 fw classid 1:9",
        "matchall classid 1:9",
        "flower classid 1:9",
        "u32 match u32 0 0 classid 1:9",
        "handle 1 flow map key mark baseclass 1:9",
        "handle 1 cgroup",
    ] {
        let mut list = List::with(&[&format!("add dev eth0 parent 1: protocol ip prio 1 {rest}")]);
        assert!(!list.filters.binds(ROOT.class(9)) && !list.filters.binds(Handle::NONE), "{rest}");
        list.filters.rebind(Handle::NONE, true);
        assert!(!list.filters.binds(Handle::NONE), "{rest}");
    }
}

/// u32's tables are the qdisc's: a class's filters there hold classes for the class's list.
#[test]
fn u32_filters_of_a_class_hold_for_its_list() {
    let mut list = List::new();
    let holder = ROOT.class(1);
    let rule = "add dev eth0 parent 1:1 protocol ip prio 1 u32 match u32 0 0 classid 1:2";
    list.at(Time(0), holder, rule).expect("it is new");
    let of_class = FilterList::new();
    assert!(of_class.binds_for(holder, &list.filters, ROOT.class(2)));
    assert!(!of_class.binds_for(ROOT.class(3), &list.filters, ROOT.class(2)));
    assert!(!of_class.binds_for(holder, &list.filters, ROOT.class(3)));
    assert!(list.filters.binds_for(ROOT, &FilterList::new(), ROOT.class(2)), "its own list holds it anyhow");
}

/// `fw` without any filter maps marks to classes; anything else must be evaluated.
#[test]
fn a_bare_fw_is_obvious() {
    let bare = List::with(&["add dev eth0 parent 1: protocol ip prio 1 fw"]);
    let of = |list: &List, mark| list.filters.obvious(FwMark(mark), 0x0800, ROOT);
    assert_eq!(of(&bare, 0x1_0003), Some(ROOT.class(3)));
    assert_eq!([0, 0x2_0003].map(|mark| of(&bare, mark)), [None; 2], "no mark, and another qdisc's");
    assert_eq!(of(&bare, 3).map(|class| class.minor()), Some(3));
    assert_eq!(bare.filters.obvious(FwMark(0x1_0003), 0x86dd, ROOT), None, "IPv6 does not meet it");
    for others in [
        vec!["add dev eth0 parent 1: protocol ip prio 1 handle 3 fw classid 1:3"],
        vec!["add dev eth0 parent 1: protocol ip prio 1 matchall classid 1:3"],
        vec!["add dev eth0 parent 1: protocol ip prio 1 chain 2 fw"],
        vec!["add dev eth0 parent 1: protocol ip prio 1 fw", "add dev eth0 parent 1: protocol ip prio 2 fw"],
        vec![],
    ] {
        assert_eq!(of(&List::with(&others), 3), None, "{others:?}");
    }
}

/// The guess for prefetching is what the first fw filters decide.
#[test]
fn a_mark_is_guessed_as_it_is_decided() {
    let marks: Vec<String> = (1..=40)
        .map(|mark| {
            format!("add dev eth0 parent 1: protocol ip prio 1 handle {mark} fw classid 1:{}", mark % 5 + 1)
        })
        .collect();
    let marks: Vec<&str> = marks.iter().map(String::as_str).collect();
    let mut list = List::with(&marks);
    for mark in 0..60 {
        let guessed = list.filters.guess(FwMark(mark), ROOT);
        assert_eq!(guessed, list.class(mark), "{mark}");
        let wanted = (1..=40).contains(&mark).then(|| ROOT.class(mark as u16 % 5 + 1));
        assert_eq!(guessed, wanted, "{mark}");
    }
    // Deleted from the middle, the others are found all the same.
    for mark in (1..=40).filter(|mark| mark % 3 == 0) {
        list.apply(&format!("del dev eth0 parent 1: protocol ip prio 1 handle {mark:#x} fw"))
            .expect("it is there");
    }
    for mark in 1..=40 {
        assert_eq!(list.class(mark).is_some(), mark % 3 != 0, "{mark}");
    }
    let masked = List::with(&["add dev eth0 parent 1: protocol ip prio 1 handle 0x3/0xf fw classid 1:2"]);
    assert_eq!(masked.filters.guess(FwMark(0x43), ROOT), Some(ROOT.class(2)));
    assert_eq!(masked.filters.guess(FwMark(0x44), ROOT), None);
    let other = List::with(&["add dev eth0 parent 1: protocol ip prio 1 matchall classid 1:2"]);
    assert_eq!(other.filters.guess(FwMark(3), ROOT), None);
    assert_eq!(FilterList::new().guess(FwMark(3), ROOT), None);
}

/// Only filters of chain 0 are met first; the others do not make a list worth asking.
#[test]
fn a_list_without_chain_0_is_empty() {
    assert!(FilterList::new().is_empty());
    assert!(
        List::with(&["add dev eth0 parent 1: protocol ip prio 1 chain 3 matchall classid 1:1"])
            .filters
            .is_empty()
    );
    let mut list = List::with(&["add dev eth0 parent 1: protocol ip prio 1 matchall classid 1:1"]);
    assert!(!list.filters.is_empty());
    list.filters.clear();
    assert!(list.filters.is_empty() && list.class(1).is_none());
}

/// Chains are listed in the order in which they were made.
#[test]
fn chains_are_listed_oldest_first() {
    let mut list = List::with(&[
        "add dev eth0 parent 1: protocol ip prio 1 chain 5 matchall classid 1:1",
        "add dev eth0 parent 1: protocol ip prio 1 chain 2 matchall classid 1:1",
        "add dev eth0 parent 1: protocol ip prio 2 chain 9 matchall action goto chain 7",
    ]);
    assert_eq!(list.filters.chains(), [5, 2, 9]);
    let chain = |add, chain| ChainOp { add, dev: "eth0".into(), block: 0, parent: ROOT, chain };
    list.filters.apply_chain(&chain(true, 1), &list.actions).expect("it is new");
    assert_eq!(list.filters.chains(), [5, 2, 9, 1]);
    let refused = |error: TcError| error.message.unwrap_or_default().to_string();
    let exists = list.filters.apply_chain(&chain(true, 1), &list.actions).map_err(refused);
    assert_eq!(exists, Err("Filter chain already exists".to_owned()));
    list.filters.apply_chain(&chain(false, 5), &list.actions).expect("it is there");
    let gone = list.filters.apply_chain(&chain(false, 5), &list.actions).map_err(refused);
    assert_eq!(gone, Err("Cannot find specified filter chain".to_owned()));
    let beyond = list.filters.apply_chain(&chain(true, 0x1000_0000), &list.actions).map_err(refused);
    assert_eq!(beyond, Err("Specified chain index exceeds upper limit".to_owned()));
    list.filters.apply_chain(&chain(true, 0x0fff_ffff), &list.actions).expect("the last number");
    assert_eq!(list.filters.chains(), [2, 9, 1, 0x0fff_ffff]);
    // One that comes again is the latest (Linux 6.1), but while an action goes to it.
    list.filters.apply_chain(&chain(false, 2), &list.actions).expect("it is there");
    list.apply("add dev eth0 parent 1: protocol ip prio 1 chain 7 matchall classid 1:1").expect("it is new");
    list.apply("add dev eth0 parent 1: protocol ip prio 1 chain 2 matchall classid 1:1").expect("it is new");
    assert_eq!(list.filters.chains(), [9, 7, 1, 0x0fff_ffff, 2]);
}

/// Each flow filter's seed changes when its own time has come, and the timer is armed again.
#[test]
fn seeds_change_in_turn() {
    const SECOND: u64 = 1_000_000_000;
    let mut list = List::with(&[
        "add dev eth0 parent 1: protocol ip prio 1 handle 1 flow hash keys mark divisor 1000 perturb 10",
        "add dev eth0 parent 1: protocol ip prio 2 handle 1 flow hash keys mark divisor 1000 perturb 3",
        "add dev eth0 parent 1: protocol ip prio 2 handle 2 flow hash keys mark divisor 1000",
    ]);
    let first = list.filters.perturb_due();
    let second = list.filters.perturb_due_after(first);
    assert!(first.at < second.at && second.at < Timer::NEVER.at);
    assert_eq!(list.filters.perturb_due_after(second), Timer::NEVER);
    let spread = |list: &mut List| (0..50).map(|mark| list.class(mark)).collect::<Vec<_>>();
    let perturb = |list: &mut List, due: Timer, now: u64| {
        let List { filters, random, drawn, wheel, .. } = list;
        let mut random = FilterRandom { source: random, flow_key_drawn: drawn };
        filters.perturb(due, Time(now), wheel, &mut random);
    };
    let before = spread(&mut list);
    // The second preference's: the first still decides as it did.
    perturb(&mut list, first, 3 * SECOND);
    assert_eq!(spread(&mut list), before);
    let again = list.filters.perturb_due();
    assert!(again.at > first.at && again.at < second.at, "{again:?} after {first:?}");
    perturb(&mut list, second, 10 * SECOND);
    assert_ne!(spread(&mut list), before);
    assert!(list.filters.perturb_due_after(again).at > second.at);
    assert_eq!(FilterList::new().perturb_due(), Timer::NEVER);
}

/// A shared block is there from the first hook that names it to the last.
#[test]
fn blocks_are_kept_while_they_are_used() {
    let mut blocks = Blocks::default();
    blocks.join(0);
    assert!(blocks.get(0).is_none(), "0 is no block");
    blocks.join(7);
    blocks.join(7);
    let there = |blocks: &Blocks| blocks.get(7).is_some();
    blocks.leave(7);
    assert!(there(&blocks));
    let list = List::with(&["add dev eth0 parent 1: protocol ip prio 1 matchall action ok"]);
    let lent = blocks.lend(7).expect("it is there");
    assert!(lent.is_empty());
    blocks.give_back(7, list.filters);
    assert!(!blocks.get(7).expect("it is there").is_empty());
    let mut places = Vec::new();
    blocks.each_action(&mut |of| places.extend_from_slice(of));
    assert_eq!(places.len(), 1);
    blocks.leave(7);
    assert!(!there(&blocks) && blocks.lend(7).is_none() && blocks.get_mut(7).is_none());
    blocks.leave(7);
}

/// Actions of blocks and of the filters beside them are counted together; what no filter has any more goes.
#[test]
fn actions_without_filters_go() {
    let list = List::with(&["add dev eth0 parent 1: protocol ip prio 1 matchall action ok index 3"]);
    let List { filters, actions, .. } = list;
    let mut shared = Shared { actions, blocks: Blocks::default() };
    shared.blocks.join(1);
    shared.blocks.give_back(1, filters);
    let listed = |shared: &Shared| shared.actions.dump("gact", Time(0)).len();
    shared.actions.filters_may_be_gone(Time(0));
    assert!(shared.actions.must_count(Time(0), false) && !shared.actions.must_count(Time(0), true));
    assert!(shared.actions.must_count(Time(1), true), "time went on");
    shared.count(|_| ());
    assert_eq!(listed(&shared), 1);
    shared.blocks.leave(1);
    shared.actions.filters_may_be_gone(Time(2));
    shared.count(|_| ());
    assert_eq!(listed(&shared), 0);
    assert!(shared.actions.is_empty());
}

/// Packets cost by their bytes alone only without overhead, least size and cells.
#[test]
fn plain_prices() {
    let spec = RateSpec { rate: Rate::bits(8_000_000), ..RateSpec::default() };
    let price = |spec| Cost::new(spec).price();
    let plain = price(spec);
    assert!(plain.is_plain());
    assert_eq!([0, 1, 64, 1514].map(|len| plain.plain_ns(len)), [0, 1_000, 64_000, 1_514_000]);
    assert_eq!([0, 1, 64, 1514].map(|len| plain.ns(len)), [0, 1_000, 64_000, 1_514_000]);
    for other in [
        RateSpec { overhead: 1, ..spec },
        RateSpec { mpu: 64, ..spec },
        RateSpec { linklayer: LinkLayer::Atm, ..spec },
    ] {
        assert!(!price(other).is_plain(), "{other:?}");
    }
    let least = Cost::new(RateSpec { overhead: 10, mpu: 64, ..spec });
    assert_eq!([10, 54, 55].map(|len| least.ns(len)), [64_000, 64_000, 65_000]);
    assert_eq!(least.spec().mpu, 64);
    let cells = Cost::new(RateSpec { linklayer: LinkLayer::Atm, ..spec });
    assert_eq!([1, 48, 49].map(|len| cells.ns(len)), [53_000, 53_000, 106_000]);
}

/// ARP's fields (RFC 826), of IPv4 over Ethernet only.
#[test]
fn flower_reads_arp() {
    let mut bytes = vec![0, 1, 8, 0, 6, 4, 0, 2];
    bytes.extend([2, 0, 0, 0, 0, 0x11, 10, 0, 0, 1, 2, 0, 0, 0, 0, 0x22, 10, 0, 0, 2]);
    let asked = |condition: &str, bytes: &[u8]| {
        let command = format!("add dev eth0 parent 1: protocol arp prio 1 flower {condition} classid 1:1");
        let mut list = List::with(&[&command]);
        let head = Head::from_network(0x0806, bytes);
        let mut pool = Pool::new(1);
        let pkt = pool.insert(Meta::of(&head, 60), head).expect("room for one");
        let mut context = ClassifyContext {
            pkt: &pkt,
            meter: ActionInput {
                len: 60,
                whole: 60,
                now: Time(0),
                passed_over: false,
                linux: LinuxVersion::default(),
            },
            pool: &mut pool,
            actions: &mut list.actions,
            random: FilterRandom { source: &mut list.random, flow_key_drawn: &mut list.drawn },
            link_header: Head::ETHERNET as u32,
        };
        let verdict = list.filters.classify(ROOT, &mut context);
        pool.release(pkt);
        verdict.is_some()
    };
    let rows = [
        ("arp_op reply", true),
        ("arp_op request", false),
        ("arp_sip 10.0.0.1", true),
        ("arp_sip 10.0.0.2", false),
        ("arp_tip 10.0.0.2/32", true),
        ("arp_tip 10.0.0.0/31", false),
        ("arp_tip 10.0.0.0/30", true),
        ("arp_sha 02:00:00:00:00:11", true),
        ("arp_sha 02:00:00:00:00:22", false),
        ("arp_tha 02:00:00:00:00:22", true),
        ("arp_tha 02:00:00:00:00:23", false),
    ];
    for (condition, holds) in rows {
        assert_eq!(asked(condition, &bytes), holds, "{condition}");
    }
    bytes[1] = 6;
    for (condition, _) in rows {
        assert!(!asked(condition, &bytes), "{condition}: no Ethernet");
    }
}
