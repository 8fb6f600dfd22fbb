//! Files with an odd beginning, links of a few kbit/s, and very many refusals.

use std::fmt::Write as _;
use tidegate_inspect::{Level, Rule, check};
use tidegate_loader::{ReadOptions, read, read_text};

/// What editors of Windows put before UTF-8 is no part of a list.
#[test]
fn a_byte_order_mark_is_no_part_of_a_list() {
    let files = [
        ("p.batch", "qdisc add dev eth0 root fq_codel\n"),
        ("p.toml", "device = \"eth0\"\nup = \"5mbit\"\n"),
        ("p.rules", "*mangle\n-A POSTROUTING -o eth0 -j MARK --set-mark 1\nCOMMIT\n"),
    ];
    let place = std::env::temp_dir().join(format!("tidegate-bom-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a directory");
    for (name, text) in files {
        let path = place.join(name);
        let steps = |text: &str| {
            std::fs::write(&path, text).expect("a file");
            let policy = read(std::slice::from_ref(&path), &ReadOptions::default());
            let policy = policy.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert_eq!(policy.troubles().count(), 0, "{name}");
            policy.reading().steps.len()
        };
        assert_eq!(steps(&format!("\u{feff}{text}")), steps(text), "{name}");
    }
    std::fs::remove_dir_all(&place).expect("the directory goes");
}

/// Its classes are promised no more than it sends.
#[test]
fn a_link_of_a_few_kilobits_has_no_mistake() {
    for (up, more) in [("8kbit", ""), ("10kbit", "preset = \"home\"\n"), ("64kbit", "preset = \"home\"\n")] {
        let text = format!("device = \"eth0\"\nup = \"{up}\"\n{more}");
        let policy = read_text("p.toml", &text, &ReadOptions::default()).expect("it is read");
        let mut reading = policy.reading();
        let found = check(&mut reading);
        let wrong = found.iter().filter(|one| one.level == Level::Error || one.rule == Rule::Rates);
        let wrong: Vec<&str> = wrong.map(|one| one.what.as_str()).collect();
        assert!(wrong.is_empty(), "{text}{wrong:?}");
    }
}

/// As many refusals as lines: each is found in its line without looking through all of them.
#[test]
fn forty_thousand_refusals_are_read() {
    let mut text = String::from("qdisc add dev eth0 root handle 1: htb\n");
    for number in 0..40_000 {
        let _ = writeln!(
            text,
            "filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport {number} 0xffff bogus"
        );
    }
    let how = ReadOptions { batches_go_on: true, ..ReadOptions::default() };
    let policy = read_text("p.batch", &text, &how).expect("it is read");
    assert_eq!(policy.troubles().count(), 40_000);
    let mut reading = policy.reading();
    let refused = check(&mut reading).iter().filter(|finding| finding.rule == Rule::Refused).count();
    assert_eq!(refused, 200, "as many as are told");
}

/// A policy that asks for no classes is a cake, or, for a kernel without one, an `fq_codel`; one that says
/// what it wants stays that.
#[test]
fn the_queues_of_a_policy_depend_on_the_kernel_where_it_leaves_them_open() {
    let base = "device = \"eth0\"\nup = \"1mbit\"\ndown = \"16mbit\"\n";
    let roots = |more: &str, without_cake: bool| {
        let options = ReadOptions { without_cake, ..ReadOptions::default() };
        let policy = read_text("home.toml", &format!("{base}{more}"), &options).expect("a policy");
        let words = policy.machine.carried.iter().map(|carried| carried.words.join(" "));
        let root = words.filter(|words| words.contains(" root ")).map(|words| {
            words.split_whitespace().skip_while(|word| *word != "root").nth(3).unwrap_or_default().to_owned()
        });
        let queues = policy.machine.carried.iter().flat_map(|carried| &carried.words);
        let count = queues.filter(|word| *word == "fq_codel").count();
        (root.collect::<Vec<_>>().join(" "), count, policy.leaves_queues_open, policy.names.len())
    };
    let found = [
        roots("preset = \"home\"\n", false),
        roots("preset = \"home\"\n", true),
        roots("preset = \"home\"\nkind = \"cake\"\n", true),
        roots("preset = \"voip\"\nkind = \"classes\"\n", true),
    ];
    let expected = [
        ("cake cake", 0, true, 0),
        ("htb htb", 2, true, 2),
        ("cake cake", 0, false, 0),
        ("htb htb", 8, false, 10),
    ];
    assert_eq!(found, expected.map(|(root, count, open, names)| (root.to_owned(), count, open, names)));
}

/// What was made and deleted again is told; a clsact is something.
#[test]
fn a_policy_of_which_nothing_is_left_says_so() {
    let caveats = |text: &str| {
        let policy = read_text("p.batch", text, &ReadOptions::default()).expect("it is read");
        policy.cut_off().collect::<Vec<_>>()
    };
    let made = "qdisc add dev eth0 root handle 1: htb\nqdisc del dev eth0 root\n";
    assert_eq!(caveats(made), ["at the end none of the qdiscs that were made is left"]);
    for some in
        ["qdisc add dev eth0 clsact\n", "qdisc add dev eth0 ingress\n", "qdisc add dev eth1 root pfifo\n"]
    {
        assert_eq!(caveats(&format!("{made}{some}")), [""; 0], "{some}");
    }
    assert_eq!(caveats("qdisc del dev eth0 root\n"), [""; 0]);
}

/// Line breaks in a file's name stay in its line.
#[test]
fn names_of_files_are_one_line() {
    let listing = "qdisc htb 1: dev eth0 root r2q 10 wobble 3\nqdisc htb 1: dev eth1 root r2q 10 wobble 3\n";
    for text in [listing, "qdisc htb 1: dev eth0 root wobble\nqdisc htb\n"] {
        let error = read_text("a\nb.txt", text, &ReadOptions::default()).err().expect("it is refused");
        assert!(error.to_string().starts_with("a\\nb.txt: "), "{error}");
        assert!(!error.to_string().contains("\nb.txt"), "{error}");
    }
}
