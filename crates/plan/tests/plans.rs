//! The planner, on the model machine: from what one recorded script leaves behind to what the next one does,
//! for all of them, each path leads where it should, and a way from a place to itself is none.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::Path;
use tidegate_gateway::{DeviceSpec, Gateway, GatewayContext};
use tidegate_packet::{Pool, Seeded, Time};
use tidegate_plan::{ChangePlan, HIDDEN, Item, SHARED, plan, text};
use tidegate_policy::dump::Installed;
use tidegate_policy::{LinkDriver, Op, TcError};
use tidegate_syntax::Env;
use tidegate_syntax::tc::{self, TcCommand};

const DEV: &str = "link0";
/// Recorded runs of a real kernel; here only what was configured there.
const RECORDED: [&[u8]; 5] = [
    include_bytes!("../../cli/tests/data/answers.tar.gz"),
    include_bytes!("../../cli/tests/data/answers-kinds.tar.gz"),
    include_bytes!("../../cli/tests/data/answers-filters.tar.gz"),
    include_bytes!("../../cli/tests/data/answers-rewrite.tar.gz"),
    include_bytes!("../../cli/tests/data/traces.tar.gz"),
];
const NOW: Time = Time(1_000_000_000);

/// A machine, and the operations on its device.
struct Machine {
    gateway: Gateway,
    log: Vec<Op>,
}

impl Machine {
    fn new() -> Machine {
        let mut gateway = Gateway::new();
        for name in [DEV, "link1", "link2", "d0", "ifb0", "ifb1", "v0", "in1"] {
            gateway
                .add_device(name, DeviceSpec { speed_mbit: None, ..DeviceSpec::of(&LinkDriver::Ethernet) });
        }
        Machine { gateway, log: Vec::new() }
    }

    /// Carries out an operation.
    fn apply(&mut self, op: &Op) -> Result<(), TcError> {
        let (mut pool, mut source) = (Pool::new(0), Seeded::new(1));
        let done = self.gateway.apply(GatewayContext { now: NOW, pool: &mut pool, random: &mut source }, op);
        self.log.extend(done.is_ok().then(|| op.clone()));
        done.map(drop)
    }

    fn installed(&mut self) -> Installed {
        tidegate_plan::installed(&mut self.gateway, NOW, DEV)
    }

    fn log_of_device(&self) -> Vec<Op> {
        self.log.iter().filter(|op| op.device() == Some(DEV)).cloned().collect()
    }
}

/// A machine that carried out a script's commands of tc.
fn machine(script: &str) -> Machine {
    let mut machine = Machine::new();
    for line in script.lines() {
        let words: Vec<String> =
            line.replace('\'', "").split_whitespace().skip(1).map(String::from).collect();
        if line.starts_with("tc ")
            && let Ok(tc::TcCommandLine { command: TcCommand::Apply(op), .. }) =
                tc::parse(&words, &Env::default())
        {
            let _ = machine.apply(&op);
        }
    }
    machine
}

/// Goes from one to another; what went wrong, if anything.
fn go(from: &str, to: &str) -> Result<(), String> {
    let (mut from, mut to) = (machine(from), machine(to));
    let (wanted, log) = (to.installed(), to.log_of_device());
    let way = plan(&from.installed(), &wanted, &log).map_err(|incomplete| incomplete.to_string())?;
    for op in way.ops() {
        from.apply(op).map_err(|error| format!("refused: {error}: {op:?}"))?;
    }
    let left = plan(&from.installed(), &wanted, &log).map_err(|incomplete| incomplete.to_string())?;
    if left.is_empty() { Ok(()) } else { Err(differing(&from.installed(), &left)) }
}

/// The first thing that is left to do, beside what is there.
fn differing(live: &Installed, left: &ChangePlan) -> String {
    let step = left.steps.last().expect("there is one");
    let installed = match &step.item {
        Item::Qdisc(wanted) => {
            format!("{:?}", live.qdiscs.iter().find(|qdisc| qdisc.parent == wanted.parent))
        }
        Item::Class(wanted) => {
            format!("{:?}", live.classes.iter().find(|class| class.classid == wanted.classid))
        }
        Item::Filter(wanted) => format!(
            "{:?}",
            live.filters
                .iter()
                .filter(|filter| (filter.parent, filter.pref) == (wanted.parent, wanted.pref))
                .collect::<Vec<_>>()
        ),
    };
    format!("left: {:?} {:?}\n   stands: {installed}", step.sign, step.item)
}

/// The commands of every folder of an archive of recordings: its name, and `script.tc`.
fn commands(archive: &[u8]) -> Vec<(String, String)> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(archive));
    let mut all = Vec::new();
    for entry in archive.entries().expect("an archive") {
        let mut entry = entry.expect("an entry");
        let path = entry.path().expect("a path").into_owned();
        if path.file_name().is_some_and(|name| name == "script.tc") {
            let mut text = String::new();
            entry.read_to_string(&mut text).expect("text");
            let folder =
                path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
            all.push((folder.unwrap_or_default(), text));
        }
    }
    all
}

#[test]
fn every_way_between_recorded_scripts_leads_there() {
    let mut scripts: Vec<(String, String)> = Vec::new();
    for archive in RECORDED {
        scripts.extend(commands(archive));
    }
    assert!(scripts.len() > 200, "{}", scripts.len());
    let (mut failed, mut hidden) = (Vec::new(), 0);
    for (at, (name, script)) in scripts.iter().enumerate() {
        let (other, next) = &scripts[(at + 1) % scripts.len()];
        let nothing = ("nothing".to_owned(), String::new());
        for (to, text) in [(other, next), (name, script), (&nothing.0, &nothing.1)] {
            match go(script, text) {
                Err(why) if why.ends_with(HIDDEN) || why.ends_with(SHARED) => hidden += 1,
                Err(why) => failed.push(format!("{name} → {to}: {why}")),
                Ok(()) => {}
            }
        }
    }
    // Few scripts hang classes below such a qdisc, or share tables.
    assert!(hidden < scripts.len() / 10, "{hidden}");
    let names: BTreeSet<&str> = failed.iter().filter_map(|line| line.split(':').next()).collect();
    assert!(
        failed.is_empty(),
        "{} of {}: {names:?}\n{}",
        failed.len(),
        scripts.len() * 3,
        failed[..failed.len().min(40)].join("\n")
    );
}

/// The steps from one script's device to another's, as people read them.
fn steps(from: &str, to: &str) -> Vec<String> {
    let script = |text: &str| text.lines().map(|line| format!("tc {}\n", line.trim())).collect::<String>();
    let (mut from, mut to) = (machine(&script(from)), machine(&script(to)));
    let way = plan(&from.installed(), &to.installed(), &to.log_of_device()).expect("everything is told");
    let output = text::text(DEV, &way);
    let mut lines = output.lines();
    assert_eq!([lines.next(), lines.next()], [Some("--- link0: installed"), Some("+++ link0: wanted")]);
    for op in way.ops() {
        from.apply(op).unwrap_or_else(|error| panic!("{error}: {op:?}"));
    }
    // What is installed then is what is wanted, in the words of tc, whose judgement is not the planner's.
    assert_eq!(listed(&from.installed()), listed(&to.installed()), "{output}");
    lines.map(str::to_owned).collect()
}

/// What tc shows of a device, without counters and the numbers that the kernel chose itself.
fn listed(installed: &Installed) -> Vec<String> {
    use tidegate_syntax::tc::{Object, ShowFlags, ShowWhat, show_classes, show_filters, show_qdiscs};
    let flags = ShowFlags { stats: false, ..ShowFlags::FULL };
    let all = show_qdiscs(&installed.qdiscs, &ShowWhat::of(Object::Qdisc), &flags)
        + &show_classes(&installed.classes, &ShowWhat::on(Object::Class, DEV), &flags)
        + &show_filters(&installed.filters, &ShowWhat::on(Object::Filter, DEV), &flags);
    let automatic = |word: &str| {
        let major = word.split(':').next().and_then(|major| u32::from_str_radix(major, 16).ok());
        word.contains(':') && major.is_some_and(|major| (0x8000..0xff00).contains(&major))
    };
    let line = |line: &str| {
        let words = line.split_whitespace().map(|word| if automatic(word) { "automatic" } else { word });
        words.filter(|word| !word.starts_with("0x")).collect::<Vec<_>>().join(" ")
    };
    all.lines().map(line).filter(|line| !line.starts_with("index ")).collect()
}

const TREE: &str = "qdisc add dev link0 root handle 1: htb default 20
    class add dev link0 parent 1: classid 1:1 htb rate 10mbit
    class add dev link0 parent 1:1 classid 1:10 htb rate 4mbit ceil 10mbit
    class add dev link0 parent 1:1 classid 1:20 htb rate 6mbit ceil 10mbit
    qdisc add dev link0 parent 1:10 handle 10: pfifo limit 50
    filter add dev link0 parent 1: pref 1 protocol ip handle 5 fw classid 1:10
    filter add dev link0 parent 1: pref 2 protocol ip u32 match ip dport 80 0xffff classid 1:20";

/// What can be changed is changed, what cannot is recreated, and the rest stays: what each change of one line
/// comes to.
#[test]
fn the_way_is_no_longer_than_it_must_be() {
    let kept = |count: usize| format!("= {count} qdiscs, classes and filters stay as they are");
    let changed = |old: &str, new: &str| {
        assert!(TREE.contains(old), "{old}");
        steps(TREE, &TREE.replace(old, new))
    };
    assert_eq!(steps(TREE, TREE), [kept(7)]);
    assert_eq!(
        changed("limit 50", "limit 60"),
        ["~ tc qdisc change dev link0 parent 1:10 handle 10: pfifo limit 60", &kept(6)]
    );
    let found = changed("rate 4mbit ceil 10mbit", "rate 5mbit ceil 9mbit");
    assert!(
        found[0].starts_with("~ tc class change dev link0 parent 1:1 classid 1:10 htb ")
            && found[0].contains("rate 5Mbit ceil 9Mbit"),
        "{found:?}"
    );
    assert_eq!(found[1..], [kept(6)]);
    // Another kind is another qdisc.
    let found = changed("pfifo limit 50", "bfifo limit 9000");
    assert_eq!(found.last(), Some(&kept(6)));
    assert!(
        found
            .iter()
            .any(|line| line.starts_with("+ tc qdisc add dev link0 parent 1:10 handle 10: bfifo limit 9000")),
        "{found:?}"
    );
    // A filter that leads elsewhere.
    let found = changed("handle 5 fw classid 1:10", "handle 5 fw classid 1:20");
    assert_eq!(found.last(), Some(&kept(6)), "{found:?}");
    let found = changed("dport 80", "dport 443");
    assert_eq!(found.last(), Some(&kept(6)), "{found:?}");
    assert!(
        found
            .iter()
            .any(|line| line.starts_with("- tc filter del dev link0 parent 1: pref 2 handle 800::800 u32")),
        "{found:?}"
    );
    assert!(
        found
            .iter()
            .any(|line| line.contains("match u32 0x000001bb 0x0000ffff at 20") || line.contains("000001bb")),
        "{found:?}"
    );
    // A qdisc's own parameters.
    let found = changed("default 20", "default 10");
    assert_eq!(found[0], "- tc qdisc del dev link0 root (htb 1:)", "htb cannot be changed");
    assert!(
        found[1].starts_with("+ tc qdisc add dev link0 root handle 1: htb ")
            && found[1].contains(" default 10 "),
        "{found:?}"
    );
    // What goes, and what comes.
    let without = |line: &str| TREE.lines().filter(|one| !one.contains(line)).collect::<Vec<_>>().join("\n");
    assert_eq!(
        steps(TREE, &without("qdisc add dev link0 parent")),
        ["- tc qdisc del dev link0 parent 1:10 handle 10: (pfifo)", &kept(6)]
    );
    assert_eq!(
        steps(&without("qdisc add dev link0 parent"), TREE),
        ["+ tc qdisc add dev link0 parent 1:10 handle 10: pfifo limit 50", &kept(6)]
    );
    let found = steps(TREE, &without("1:20"));
    assert!(found.iter().any(|line| line == "- tc class del dev link0 classid 1:20 (htb)"), "{found:?}");
    assert_eq!(steps(TREE, "")[..1], ["- tc qdisc del dev link0 root (htb 1:)"]);
    let found = steps("", TREE);
    assert_eq!((found.len(), found.iter().all(|line| line.starts_with("+ tc "))), (7, true), "{found:?}");
    // A class below another, or without one, is another place.
    let found = changed("parent 1:1 classid 1:20", "parent 1: classid 1:20");
    assert!(
        found.iter().any(|line| line.starts_with("+ tc class add dev link0 parent 1: classid 1:20 htb")),
        "{found:?}"
    );
}

/// Each kind's parameters: from one set to another and back, and nothing where they are the same.
#[test]
fn parameters_of_each_kind_are_brought_about() {
    let root = |words: &str| format!("qdisc add dev link0 root handle 1: {words}");
    let table = [
        ("tbf rate 1mbit burst 10k limit 30k", "tbf rate 2mbit burst 20k limit 40k"),
        (
            "red limit 400k min 30k max 90k avpkt 1000 burst 55 bandwidth 10mbit",
            "red limit 400k min 40k max 90k avpkt 1000 burst 55 bandwidth 10mbit",
        ),
        (
            "choke limit 100 min 20 max 50 avpkt 1000 burst 30 bandwidth 10mbit",
            "choke limit 100 min 10 max 50 avpkt 1000 burst 30 bandwidth 10mbit",
        ),
        ("netem delay 10ms 2ms 25% loss 1%", "netem delay 20ms"),
        ("netem delay 10ms reorder 5% 10% corrupt 1%", "netem delay 10ms rate 1mbit slot 1ms 2ms"),
        ("fq_codel target 5ms limit 1000", "fq_codel target 7ms limit 1000"),
        ("fq_codel ce_threshold 1ms", "fq_codel ce_threshold 2ms"),
        ("codel target 5ms", "codel target 9ms interval 90ms"),
        ("pie target 15ms", "pie target 17ms tupdate 20ms"),
        ("fq_pie target 15ms", "fq_pie target 17ms"),
        ("fq_pie flows 16", "fq_pie flows 32"),
        ("fq limit 500 quantum 3000", "fq limit 600 quantum 3000 maxrate 1mbit"),
        ("sfq perturb 10 limit 50", "sfq perturb 20 limit 60"),
        ("cake bandwidth 10mbit diffserv4 nat", "cake bandwidth 12mbit besteffort nonat"),
        ("prio bands 3", "prio bands 4 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1"),
        ("pfifo limit 10", "pfifo limit 11"),
        ("ets bands 3 strict 1 quanta 2000 3000", "ets bands 3 strict 1 quanta 2000 4000"),
        ("hhf limit 100", "hhf limit 200"),
        ("skbprio limit 10", "skbprio limit 20"),
        (
            "stab overhead 10 linklayer atm tsize 64 mtu 1500 tbf rate 1mbit burst 10k limit 30k",
            "stab overhead 18 tbf rate 1mbit burst 10k limit 30k",
        ),
    ];
    for (one, other) in table {
        assert_eq!(
            steps(&root(one), &root(one)),
            ["= 1 qdiscs, classes and filters stay as they are"],
            "{one}"
        );
        for (from, to) in [(one, other), (other, one)] {
            assert!(!steps(&root(from), &root(to)).is_empty(), "{from} → {to}");
        }
    }
}

/// Filters of each kind: the same is kept, another takes its place.
#[test]
fn filters_are_distinguished() {
    let on = |filter: &str| {
        format!(
            "qdisc add dev link0 root handle 1: prio\nfilter add dev link0 parent 1: pref 3 protocol {filter}"
        )
    };
    let table = [
        ("ip handle 5 fw classid 1:1", "ip handle 6 fw classid 1:1"),
        ("ip handle 5/0xff fw classid 1:1", "ip handle 5/0xf fw classid 1:1"),
        ("ip matchall classid 1:1", "ip matchall classid 1:2"),
        ("ip matchall classid 1:1", "ipv6 matchall classid 1:1"),
        ("ip matchall classid 1:1 action drop", "ip matchall classid 1:1 action pass"),
        ("ip matchall action police rate 1mbit burst 10k", "ip matchall action police rate 2mbit burst 10k"),
        ("ip matchall action skbedit mark 1", "ip matchall action skbedit mark 1 action drop"),
        ("ip basic classid 1:1", "ip basic classid 1:2"),
        ("ip u32 match u32 0 0 classid 1:1", "ip u32 match u32 1 1 at 4 classid 1:1"),
        (
            "ip handle 1 flow map key mark rshift 2 and 0xff addend 5",
            "ip handle 1 flow map key mark rshift 3 and 0xff",
        ),
        (
            "ip handle 1 flow hash keys src,dst divisor 4",
            "ip handle 1 flow hash keys src divisor 4 perturb 10",
        ),
        ("ip flower ip_proto tcp dst_port 80 classid 1:1", "ip flower ip_proto udp dst_port 80 classid 1:1"),
        ("ip chain 4 matchall classid 1:1", "ip matchall classid 1:1"),
        ("ip matchall classid 1:1", "ip flower classid 1:1"),
    ];
    for (one, other) in table {
        assert_eq!(steps(&on(one), &on(one)), ["= 2 qdiscs, classes and filters stay as they are"], "{one}");
        for (from, to) in [(one, other), (other, one)] {
            let found = steps(&on(from), &on(to));
            assert!(
                found.iter().any(|line| line.starts_with("+ ") || line.starts_with("~ ")),
                "{from} → {to}: {found:?}"
            );
        }
    }
    // Both directions of clsact, each with its own list; new filters are added beside those that stay.
    let both =
        "qdisc add dev link0 clsact\nfilter add dev link0 ingress pref 1 protocol ip matchall action drop";
    let more = format!("{both}\nfilter add dev link0 egress pref 1 protocol ip matchall action drop");
    let found = steps(both, &more);
    assert_eq!(
        found.last().map(String::as_str),
        Some("= 2 qdiscs, classes and filters stay as they are"),
        "{found:?}"
    );
    assert_eq!(steps(&more, "")[0], "- tc qdisc del dev link0 clsact (ffff:)");
    let found = steps(&more, both);
    assert!(
        found[0].starts_with("- tc filter del dev link0 parent ffff:fff3 pref 1 handle 0x1 matchall"),
        "{found:?}"
    );
}

/// Few lines are shown of a long way, and how many more there are.
#[test]
fn a_long_way_is_cut() {
    let classes = |count: u32| {
        let class =
            |at: u32| format!("\nclass add dev link0 parent 1: classid 1:{:x} htb rate 1mbit", at + 1);
        String::from("qdisc add dev link0 root handle 1: htb") + &(0..count).map(class).collect::<String>()
    };
    assert_eq!((steps("", &classes(59)).len(), steps("", &classes(60)).len()), (60, 61));
    assert_eq!(steps("", &classes(63)).last().map(String::as_str), Some("  … and 4 more"));
}

fn on(lines: &str) -> Machine {
    machine(&lines.lines().map(|line| format!("tc {}\n", line.trim())).collect::<String>())
}

/// Everything on a device is made on an empty one; what Linux does not show of it is refused with the reason.
#[test]
fn a_device_made_again() {
    let made = tidegate_plan::remade(&on(TREE).installed()).expect("everything is told");
    let mut other = Machine::new();
    for op in &made {
        other.apply(op).unwrap_or_else(|error| panic!("{error}: {op:?}"));
    }
    assert_eq!((made.len(), listed(&other.installed())), (7, listed(&on(TREE).installed())));
    // A qdisc on a class that is not reported: what else there is of such classes is not known.
    let mut hidden = on("qdisc add dev link0 root handle 2: drr
        class add dev link0 parent 2: classid 2:1 drr
        qdisc add dev link0 parent 2:1 handle 3: pfifo limit 5")
    .installed();
    hidden.classes.clear();
    let refused = |installed: &Installed| tidegate_plan::remade(installed).expect_err("refused").to_string();
    assert_eq!(
        refused(&hidden),
        format!("the pfifo 3: of link0 cannot be created again: the kernel does not list {HIDDEN}")
    );
    let averages = "qdisc add dev link0 root handle 1: red limit 400k min 30k max 90k avpkt 1000 burst 55 \
    bandwidth 10mbit";
    let expected = "the red 1: of link0 cannot be created again: the kernel does not list how its average \
    falls while it is idle";
    assert_eq!(refused(&on(averages).installed()), expected);
    let nothing = plan(&on(TREE).installed(), &on(TREE).installed(), &[]).expect("told");
    assert!(
        nothing.is_empty()
            && !plan(&Installed::default(), &on(TREE).installed(), &[]).expect("told").is_empty()
    );
}

/// Filters may lead into tables of their own list, and of another one.
#[test]
fn filters_that_lead_into_tables() {
    let tree = "qdisc add dev link0 root handle 1: prio
        filter add dev link0 parent 1: pref 1 protocol ip handle 1: u32 divisor 4
        filter add dev link0 parent 1: pref 1 protocol ip u32 ht 1:2: match ip dport 80 0xffff classid 1:2";
    let own = format!("{tree}\nfilter add dev link0 parent 1: pref 1 protocol ip u32 match u32 0 0 link 1:");
    let linked =
        format!("{tree}\nfilter add dev link0 parent 1: pref 2 protocol ip u32 match u32 0 0 link 1:");
    assert!(steps(&own, &own)[0].starts_with("= ") && steps(&linked, &linked)[0].starts_with("= "));
    // A list with tables of its own that changes is made again as a whole, the tables first.
    let changed = own.replace("dport 80", "dport 443");
    let found = steps(&own, &changed);
    assert!(found.iter().filter(|line| line.starts_with("- tc filter del")).count() >= 3, "{found:?}");
    let table = found.iter().position(|line| line.contains("divisor 4") && line.starts_with("+ "));
    let leads =
        found.iter().position(|line| line.contains("0x00000000 0x00000000") && line.starts_with("+ "));
    assert!(table.is_some() && table < leads, "{found:?}");
}

/// A curve of HFSC cannot be taken from a class, and a class that others are attached to is another: the tree
/// is made again.
#[test]
fn what_cannot_be_changed_in_place() {
    let hfsc = |class: &str| {
        format!(
            "qdisc add dev link0 root handle 1: hfsc default 1\nclass add dev link0 parent 1: classid 1:1 \
            hfsc {class}"
        )
    };
    let in_place =
        |from: &str, to: &str| steps(&hfsc(from), &hfsc(to)).iter().all(|line| !line.starts_with("- "));
    assert!(in_place("ls rate 1mbit", "ls rate 2mbit"));
    assert!(in_place("ls rate 1mbit", "ls rate 1mbit rt rate 1mbit"), "a curve comes");
    assert!(!in_place("ls rate 1mbit rt rate 1mbit", "ls rate 1mbit"), "a curve goes");
    assert!(!in_place("ls rate 1mbit ul rate 2mbit", "ls rate 1mbit"));
    // Two qdiscs change places: neither can be made while the other has its handle.
    let pair = |one: &str, other: &str| {
        format!(
            "qdisc add dev link0 root handle 1: htb
            class add dev link0 parent 1: classid 1:1 htb rate 1mbit
            class add dev link0 parent 1: classid 1:2 htb rate 1mbit
            qdisc add dev link0 parent 1:1 handle {one}: pfifo limit 5
            qdisc add dev link0 parent 1:2 handle {other}: pfifo limit 5"
        )
    };
    let found = steps(&pair("10", "20"), &pair("20", "10"));
    assert_eq!(found[0], "- tc qdisc del dev link0 root (htb 1:)", "{found:?}");
    assert_eq!(
        steps(&pair("10", "20"), &pair("10", "20")),
        ["= 5 qdiscs, classes and filters stay as they are"]
    );
    assert!(steps(&pair("10", "20"), &pair("10", "30")).iter().all(|line| !line.contains("root")));
}

/// Handles that the kernel chose are not requested, unless something wanted is attached to them.
#[test]
fn handles_that_the_kernel_chose() {
    let handles = |lines: &str| {
        let made = tidegate_plan::remade(&on(lines).installed()).expect("told");
        let handle = |op: &Op| match op {
            Op::Qdisc(op) => Some(op.handle.to_string()),
            _ => None,
        };
        made.iter().filter_map(handle).collect::<Vec<_>>()
    };
    assert_eq!(handles("qdisc add dev link0 root prio"), ["none"]);
    assert_eq!(handles("qdisc add dev link0 root handle 7: prio"), ["7:"]);
    assert_eq!(
        handles("qdisc add dev link0 root prio\nqdisc add dev link0 parent 8001:1 handle 2: pfifo limit 5"),
        ["8001:", "2:"],
        "a qdisc hangs on it"
    );
    assert_eq!(
        handles(
            "qdisc add dev link0 root prio\nfilter add dev link0 parent 8001: pref 1 matchall classid 8001:1"
        ),
        ["8001:"],
        "a filter hangs on it"
    );
    assert_eq!(
        handles(
            "qdisc add dev link0 root htb\nclass add dev link0 parent 8001: classid 8001:1 htb rate 1mbit"
        ),
        ["8001:"],
        "classes are made in it"
    );
}

/// A device that is no more as it was applied: the commands that bring it back, without what stays.
#[test]
fn drift_in_commands() {
    let mut live = on(&TREE.replace("limit 50", "limit 60"));
    let mut applied = on(TREE);
    let back = plan(&live.installed(), &applied.installed(), &applied.log_of_device()).expect("told");
    let expected = "--- link0: as it is\n+++ link0: as it was applied\n\
        ~ tc qdisc change dev link0 parent 1:10 handle 10: pfifo limit 50\n";
    assert_eq!(text::drift(DEV, &back), expected);
    let words: BTreeSet<&str> =
        plan(&applied.installed(), &on("qdisc add dev link0 root handle 1: prio").installed(), &[])
            .expect("told")
            .steps
            .iter()
            .chain(&back.steps)
            .map(|step| text::word(step.sign))
            .collect();
    assert_eq!(words, BTreeSet::from(["add", "change", "delete"]));
}

/// Traffic that keeps a network alive: dropped, in a class with too low a guaranteed rate, or fine.
#[test]
fn what_would_cut_the_network_off() {
    use tidegate_loader::{ReadOptions, read_text};
    let session =
        || Some(("192.0.2.1:22".parse().expect("ends"), "198.51.100.7:40000".parse().expect("ends")));
    let dangers = |lines: &str| {
        let policy = read_text("a.batch", lines, &ReadOptions::default()).expect("a policy");
        tidegate_plan::essential::dangers(&policy.reading(), session())
    };
    let class = |rate: &str| {
        format!(
            "qdisc add dev eth0 root handle 1: htb default 1\n\
             class add dev eth0 parent 1: classid 1:1 htb rate {rate}\n\
             class add dev eth0 parent 1: classid 1:2 htb rate 1mbit\n\
             filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip sport 22 0xffff flowid 1:2\n"
        )
    };
    assert_eq!(dangers(&class("8kbit")), [""; 0], "8 kbit/s are enough");
    let starving = dangers(&class("7kbit"));
    assert!(
        starving.iter().any(|one| one
            == "ARP (addresses of neighbours) would not get through eth0: the guaranteed rate of its class \
            1:1 is only 7000 bit/s"),
        "{starving:?}"
    );
    assert!(
        starving.iter().all(|one| !one.contains("SSH")),
        "the session has a class of its own: {starving:?}"
    );
    let dropped = dangers(
        "qdisc add dev eth0 root handle 1: prio\n\
         filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip sport 22 0xffff action drop\n",
    );
    assert_eq!(dropped.len(), 1, "{dropped:?}");
    assert!(
        dropped[0].starts_with("your SSH session to 198.51.100.7 would not get through eth0: it is lost ("),
        "{dropped:?}"
    );
    assert_eq!(dangers("qdisc add dev eth0 root handle 1: fq_codel\n"), [""; 0]);
}

/// The tables of a machine's rules that do anything; a chain that lets everything through does not.
#[test]
fn tables_of_rules() {
    use tidegate_policy::netfilter::{Condition, Family, Match, NetfilterRule, NfCommand, NfOp};
    let mut machine = Machine::new();
    assert_eq!(tidegate_plan::rule_tables(&machine.gateway), []);
    let matches = vec![Match { not: false, what: Condition::Out(DEV.into()) }];
    let rule = NetfilterRule { matches, ..NetfilterRule::default() };
    let command = NfCommand::Append("FORWARD".into(), rule.clone());
    machine
        .apply(&Op::Netfilter(NfOp { family: Family::Ipv4, table: "mangle".into(), command }))
        .expect("a rule");
    let tables = tidegate_plan::rule_tables(&machine.gateway);
    assert_eq!(
        tables.iter().map(|table| (table.family, table.name.as_str())).collect::<Vec<_>>(),
        [(Family::Ipv4, "mangle")]
    );
    let with_rules: Vec<_> = tables[0].chains.iter().filter(|chain| !chain.rules.is_empty()).collect();
    assert_eq!(
        (with_rules.len(), with_rules[0].name.as_str(), &with_rules[0].rules[0]),
        (1, "FORWARD", &rule)
    );
    assert!(tables[0].chains.iter().all(|chain| chain.accepts));
}
