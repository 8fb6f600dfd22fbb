//! Short policies: every preset is carried out, again and again; what is wrong is named; what is read back is
//! what was meant.

use crate::common;

use common::{Place, TIDEGATE, skip};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use tidegate_syntax::short::keys::{KEYS, Section};
use tidegate_syntax::short::{apps::APPS, help, links::LINKS, presets::PRESETS, schema};

fn tidegate(place: &Path, args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(TIDEGATE).args(args).current_dir(place).output().expect("tidegate runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

/// A preset on a link, its downloads shaped towards the LAN or on an ifb.
fn preset(name: &str, lan: bool) -> String {
    let lan = if lan { "lan = \"br-lan\"\n" } else { "" };
    format!(
        "device = \"eth0\"\n{lan}link = \"vdsl2 pppoe\"\nup = \"10mbit\"\ndown = \"50mbit\"\npreset \
        = \"{name}\"\nbuckets = 4\n"
    )
}

/// The same commands once more, over their result: only those may fail that are marked so.
#[test]
fn presets_are_carried_out_and_again() {
    if skip() {
        return;
    }
    let place = Place::new("presets");
    for (name, lan) in PRESETS.iter().flat_map(|preset| [(preset.name, true), (preset.name, false)]) {
        place.file("p.toml", preset(name, lan));
        let (code, once, errors) = tidegate(&place.0, &["run", "--print", "tree", "p.toml"]);
        assert_eq!(code, Some(0), "{name}: {errors}");
        assert!(
            errors.contains(" 0 refused") || errors.contains("as the script expects"),
            "{name}: {errors}"
        );
        let (_, script, _) = tidegate(&place.0, &["policy", "show", "p.toml"]);
        let twice =
            format!("{}set -e\n{script}{script}", if lan { "ip link add br-lan type bridge\n" } else { "" });
        place.script("twice.sh", twice);
        let (code, again, errors) =
            tidegate(&place.0, &["run", "--print", "tree", "--dev", "eth0", "twice.sh"]);
        assert_eq!(code, Some(0), "{name}: {errors}");
        // What the kernel numbers itself goes on being counted.
        let plain = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| !line.contains("br-lan") || line.contains("htb"));
            lines.map(|line| line.split(" 80").next().unwrap_or_default().to_owned()).collect()
        };
        assert_eq!(plain(&again).len(), plain(&once).len(), "{name}: {once}\n{again}");
        assert!(!errors.contains("kernel:"), "{name}: {errors}");
    }
}

/// The messages about errors in files.
#[test]
fn errors_are_reported_at_their_place() {
    let place = Place::new("mistakes");
    let begin = "device = \"eth0\"\nup = \"10mbit\"\n";
    let table = [
        ("up = \"10mbit\"\n", "f:1:1: no device is named", "device = \"eth0\""),
        (
            "device = \"eth0\"\n",
            "f:1:1: neither up nor down is given, so nothing is shaped",
            "up = \"38mbit\"",
        ),
        ("devise = \"eth0\"\n", "f:1:1: unknown key \"devise\"", "Did you mean \"device\"?"),
        ("device = \"eth0\"\nup = 38\n", "f:2:6: up needs a unit", "up = \"38mbit\""),
        ("device = \"eth0\"\nup = \"38\"\n", "f:2:6: \"38\" has no unit", "38mbit, 38kbit or 38bit"),
        (
            "device = \"eth0\"\nup = \"38mbps\"\n",
            "f:2:6: \"38mbps\" has two readings",
            "38mbit (38 megabits per second) or 304mbit",
        ),
        ("device = \"eth0\"\nup = \"1kbit\"\n", "f:2:6: \"1kbit\" is out of range", "8kbit to 100gbit"),
        ("device = \"a b\"\nup = \"1mbit\"\n", "f:1:10: \"a b\" is not a name of a device", "ip link"),
        ("link = \"vdsl\"\n", "f:1:8: unknown kind of link \"vdsl\"", "Did you mean \"vdsl2\"?"),
        ("shape = 90\n", "f:1:9: shape needs its unit, %", "Write shape = \"90%\"."),
        (
            "preset = \"home\"\n[classes.torrents]\noff = true\n",
            "f:3:1: the preset \"home\" has no class \"torrents\" to leave out",
            "Its classes are ",
        ),
        ("preset = \"hone\"\n", "f:1:10: unknown preset \"hone\"", "Did you mean \"home\"?"),
        ("fair = \"hsot\"\n", "f:1:8: unknown word for fair \"hsot\"", "Did you mean \"host\"?"),
        ("overhead = 999\n", "f:1:12: overhead takes a whole number from 0 to 256", "overhead = 0"),
        ("shape = \"0%\"\n", "f:1:9: \"0%\" is not from 1% to 100%", "95%"),
        ("lan = \"eth0\"\n", "f:1:7: lan and device are the same", "leave lan out"),
        ("apps = [\"voip\"]\n", "f:1:1: \"apps\" is not allowed here", "[classes.NAME]"),
        (
            "[classes.a]\napps = [\"voipp\"]\n",
            "f:2:9: unknown application \"voipp\"",
            "Did you mean \"voip\"?",
        ),
        ("[classes.a]\nports = [\"udp 70000\"]\n", "f:2:10: \"udp 70000\" names no ports", "1 to 65535"),
        ("[classes.a]\ndscp = [\"AF99\"]\n", "f:2:9: unknown DSCP \"AF99\"", "AF11 to AF43"),
        (
            "[classes.a]\nhosts = [\"printer\"]\n",
            "f:2:10: \"printer\" is not an address",
            "names are not looked up",
        ),
        ("[classes.a]\nafter = \"10\"\n", "f:2:9: \"10\" is out of range", "10MB"),
        ("[classes.a]\nfirst = 1\nports = [\"22\"]\n", "f:2:9: first takes true or false", "first = true"),
        (
            "[classes.a]\nup = \"1mbit\"\nports = [\"22\"]\n",
            "f:2:1: \"up\" is not allowed here",
            "top of the file",
        ),
        ("[classes.a]\nshare = \"20%\"\n", "f:1:10: nothing belongs to the class \"a\"", "apps, ports, dscp"),
        (
            "[classes.a]\nports = [\"1\"]\nshare = \"60%\"\n[classes.b]\nports = [\"2\"]\nshare = \"60%\"\n",
            "f:6:9: with this the classes have 11.4 Mbit/s of 9.5 Mbit/s up guaranteed, more than 95 %",
            "Give some of them less",
        ),
        (
            "[classes.a]\nports = [\"1\"]\nfirst = true\nlast = true\n",
            "f:1:10: a class cannot be first and last",
            "Leave one",
        ),
        ("x = = 1\n", "f:1:5: this is not TOML", "key = value"),
    ];
    for (text, what, remedy) in table {
        let whole = text.starts_with("up") || text.starts_with("devi");
        // Lines are counted in the text shown here.
        let (text, shift) = if whole || text.starts_with("x =") {
            (text.to_owned(), 0)
        } else {
            (format!("{begin}{text}"), 2)
        };
        place.file("f.toml", &text);
        let (code, _, output) = tidegate(&place.0, &["policy", "show", "f.toml"]);
        let mut parts = what.splitn(3, ':');
        let line: usize = parts.nth(1).and_then(|line| line.parse().ok()).expect("a line");
        let wanted = format!("f.toml:{}:{}", line + shift, parts.next().unwrap_or_default());
        assert_eq!(code, Some(2), "{text}");
        assert!(output.contains(&wanted), "{text}\nwanted {wanted}\n{output}");
        assert!(output.contains("help: ") && output.contains(remedy), "{text}\n{output}");
        assert!(output.contains("^"), "{text}\n{output}");
    }
    let (code, _, output) = tidegate(&place.0, &["policy", "show", "absent.toml"]);
    assert_eq!((code, output.contains("cannot be read")), (Some(2), true));
}

/// Each error of a file is reported, not the first only; the form is that of a compiler.
#[test]
fn all_errors_are_reported_at_once() {
    let place = Place::new("mistakes-all");
    place.file("f.toml", "devise = \"eth0\"\nup = 38\n");
    let (_, _, output) = tidegate(&place.0, &["policy", "show", "f.toml"]);
    let wanted = "f.toml:1:1: unknown key \"devise\"\n  1 | devise = \"eth0\"\n    | ^^^^^^\n  help: Did \
    you mean \"device\"? `tidegate policy help device` says what it takes.\n\
                  f.toml:1:1: no device is named\n  1 | devise = \"eth0\"\n    | ^^^^^^\n  help: Write \
                  device = \"eth0\" (`ip link` lists the devices).\n\
                  f.toml:2:6: up needs a unit\n  2 | up = 38\n    |      ^^\n  help: Write up \
                  = \"38mbit\" if megabits a second are meant.\n";
    assert_eq!(output, wanted);
    // A mistake in what belongs to a class is one mistake: the class is not called empty beside it.
    let class = "device = \"eth0\"\nup = \"38mbit\"\n[classes.a]\n";
    for (members, what) in [
        ("apps = [\"voipp\"]", "f.toml:4:9: unknown application"),
        ("ports = [\"udp/9000\"]", "f.toml:4:10: \"udp/9000\" names no ports"),
        ("after = \"10\"", "f.toml:4:9: \"10\" is out of range"),
        ("apps = []", "f.toml:3:10: nothing belongs to the class \"a\""),
    ] {
        place.file("f.toml", format!("{class}{members}\n"));
        let (_, _, output) = tidegate(&place.0, &["policy", "show", "f.toml"]);
        assert!(output.contains(what) && output.matches("\n  help: ").count() == 1, "{members}\n{output}");
    }
}

/// The class of each port by the first rule that has it: a port of an earlier class need not be read back in
/// a later one.
fn first_class_of_ports(rules: &[String]) -> BTreeMap<(String, u16), String> {
    let mut found = BTreeMap::new();
    for rule in rules {
        let (condition, class) = rule.split_once(" meta priority set ").expect("a rule sets a class");
        let (direction, ports) = condition.split_once("port ").expect("a rule of ports");
        for range in ports.trim_matches(['{', '}', ' ']).split(", ") {
            let (from, to) = range.split_once('-').unwrap_or((range, range));
            let port = |text: &str| text.parse::<u16>().expect("a port");
            for port in port(from)..=port(to) {
                found.entry((direction.to_owned(), port)).or_insert_with(|| class.to_owned());
            }
        }
    }
    found
}

/// What is read back from the machine has the classes, in their order, with what belongs to them and their
/// shares.
#[test]
fn what_is_read_back_is_what_was_meant() {
    if skip() {
        return;
    }
    let place = Place::new("back");
    for (name, lan) in PRESETS.iter().flat_map(|preset| [(preset.name, true), (preset.name, false)]) {
        place.file("p.toml", preset(name, lan));
        let (code, text, output) = tidegate(&place.0, &["policy", "from", "p.toml"]);
        assert_eq!((code, output.as_str()), (Some(0), ""), "{name}: {text}");
        place.file("q.toml", &text);
        let tree = |file: &str| {
            let (code, out, errors) = tidegate(&place.0, &["policy", "show", "--print", "tc", file]);
            assert_eq!(code, Some(0), "{name}: {errors}\n{text}");
            // The classes by their ranks and queues; rates may differ by what a per cent rounds away.
            let class = |line: &str| {
                let words: Vec<&str> = line.split(' ').collect();
                let after =
                    |key: &str| words.iter().position(|word| *word == key).map(|at| words[at + 1].to_owned());
                Some((after("dev")?, after("classid")?, after("prio")?))
            };
            let classes: Vec<_> =
                out.lines().filter(|line| line.contains(" htb ")).filter_map(class).collect();
            let rules: Vec<String> = out
                .lines()
                .filter(|line| line.contains("meta priority set 1:"))
                .map(|line| line.trim().split(" comment").next().unwrap_or_default().to_owned())
                .collect();
            let (ports, rules): (Vec<String>, Vec<String>) =
                rules.into_iter().partition(|rule| rule.contains("port "));
            (classes, rules, first_class_of_ports(&ports))
        };
        assert_eq!(tree("q.toml"), tree("p.toml"), "{name}: {text}");
    }
}

#[test]
fn rates_in_per_cent_are_said_to_be_of_an_assumed_speed() {
    if skip() {
        return;
    }
    let place = Place::new("policy-percent");
    let classes = |rates: [&str; 2]| {
        format!(
            "#!/bin/sh\ntc qdisc add dev eth0 root handle 1: htb default 20\n\
             tc class add dev eth0 parent 1: classid 1:1 htb rate {0}\n\
             tc class add dev eth0 parent 1:1 classid 1:20 htb rate {1} ceil {0}\n",
            rates[0], rates[1]
        )
    };
    place.script("x.sh", classes(["50%", "10%"]));
    let (_, _, output) = tidegate(&place.0, &["policy", "from", "x.sh"]);
    let sentence =
        "rates in per cent of the speed of eth0, which only eth0 knows: they are computed for 1 Gbit/s";
    assert_eq!(output.matches(sentence).count(), 1, "{output}");
    place.script("x.sh", classes(["50mbit", "10mbit"]));
    let (_, _, output) = tidegate(&place.0, &["policy", "from", "x.sh"]);
    assert!(!output.contains("per cent"), "{output}");
}

#[test]
fn what_does_not_fit_is_said() {
    if skip() {
        return;
    }
    let place = Place::new("misfit");
    place.script(
        "x.sh",
        "tc qdisc add dev eth0 root handle 1: htb default 30\n\
         tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit\n\
         tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit prio 0\n\
         tc class add dev eth0 parent 1:1 classid 1:20 htb rate 3mbit ceil 8mbit prio 1\n\
         tc class add dev eth0 parent 1:1 classid 1:30 htb rate 5mbit ceil 10mbit prio 2\n\
         tc qdisc add dev eth0 parent 1:10 pfifo limit 20\n\
         tc qdisc add dev eth0 parent 1:20 red limit 100k min 5k max 20k avpkt 1000 burst 10 bandwidth \
         3mbit\n\
         tc qdisc add dev eth0 parent 1:30 fq_codel\n\
         tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 5060 0xffff flowid 1:10\n\
         tc filter add dev eth0 parent 1: protocol ip prio 2 handle 2 fw flowid 1:20\n\
         iptables -t mangle -A POSTROUTING -o eth0 -p tcp -m multiport --dports 80,443 -j MARK --set-mark 2\n\
         iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 22 -m length --length 0:500 -j MARK \
         --set-mark 2\n",
    );
    let (code, text, output) = tidegate(&place.0, &["policy", "from", "x.sh"]);
    assert_eq!(code, Some(1));
    let wanted = "device = \"eth0\"\nshape = \"100%\"\nup = \"10000kbit\"\nfair = \"flow\"\n\n\
                  [classes.class10]\nports = [\"remote 5060\"]\nshare = \"20%\"\nqueue = \"plain\"\n\n\
                  [classes.class20]\nports = [\"tcp remote 80\", \"tcp remote 443\"]\nshare = \"30%\"\nceil \
                  = \"80%\"\nqueue = \"fair\"\nfair = \"flow\"\n";
    assert_eq!(text, wanted);
    assert!(
        output.contains("does not fit: the red in class 1:20 of eth0: a fair queue (fq_codel) replaces it"),
        "{output}"
    );
    let long = "the rule `-o eth0 -p tcp -m tcp --dport 22 -m length --length 0:500 -j MARK --set-xmark \
    0x2/0xffffffff` to 1:20, which matches the length: it is left out";
    assert!(output.contains(long), "{output}");
}

/// Classes below classes: the leaves with their own rates and the least ceiling above them; what is between
/// is named.
#[test]
fn leaves_of_nested_classes_become_classes() {
    if skip() {
        return;
    }
    let place = Place::new("nested");
    place.script(
        "x.sh",
        "tc qdisc add dev eth0 root handle 1: htb default 22\n\
         tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit\n\
         tc class add dev eth0 parent 1:1 classid 1:10 htb rate 4mbit ceil 6mbit\n\
         tc class add dev eth0 parent 1:10 classid 1:11 htb rate 1mbit ceil 8mbit\n\
         tc class add dev eth0 parent 1:10 classid 1:12 htb rate 3mbit ceil 4mbit\n\
         tc class add dev eth0 parent 1:1 classid 1:20 htb rate 6mbit ceil 10mbit\n\
         tc class add dev eth0 parent 1:20 classid 1:21 htb rate 4mbit ceil 10mbit\n\
         tc class add dev eth0 parent 1:20 classid 1:22 htb rate 2mbit ceil 10mbit\n\
         tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:11\n\
         tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip src 10.0.0.0/8 flowid 1:10\n\
         tc filter add dev eth0 parent 1:10 protocol ip prio 1 u32 match u32 0 0 flowid 1:12\n\
         tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 192.0.2.0/24 flowid 1:20\n\
         tc filter add dev eth0 parent 1:20 protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:21\n\
         tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 443 0xffff police rate \
         1mbit burst 9k \
         drop flowid 1:21\n\
         iptables -t mangle -A FORWARD -p udp -j MARK --set-mark 9\n",
    );
    let (code, text, output) = tidegate(&place.0, &["policy", "from", "x.sh"]);
    assert_eq!(code, Some(1));
    let wanted = "device = \"eth0\"\nshape = \"100%\"\nup = \"10000kbit\"\nfair = \"none\"\n\n\
                  [classes.class11]\nports = [\"remote 22\"]\nshare = \"10%\"\nceil = \"60%\"\nqueue \
                  = \"plain\"\n\n\
                  [classes.class12]\nhosts = [\"10.0.0.0/8\"]\nshare = \"30%\"\nceil = \"40%\"\nqueue \
                  = \"plain\"\n\n\
                  [classes.class21]\nports = [\"remote 443\"]\nshare = \"40%\"\nqueue = \"plain\"\n";
    assert_eq!(text, wanted, "{output}");
    for line in [
        "class 1:10 of eth0, from which 1:11 and 1:12 borrow: it is left out, as a short policy has one \
        level of classes: they keep their rates and ceilings and borrow from the link, and nothing holds \
        them to 6 Mbit/s together",
        "class 1:20 of eth0, from which 1:21 and 1:22 borrow: it is left out",
        "the u32 filter of preference 1 at 1:20 of eth0 to 1:21, which sees only what other filters \
        lead to 1:20: it is left out",
        "the u32 filter of preference 1 at 1: of eth0 to 1:20: it is left out",
        "the policer at 1 Mbit/s of the u32 filter of preference 1 at 1: of eth0 to 1:21: it is left out",
        "the rule `-p udp -j MARK --set-xmark 0x9/0xffffffff` in mangle FORWARD: it is left out",
    ] {
        assert!(output.contains(line), "{line}: {output}");
    }
    // Its output can be read again.
    place.file("y.toml", text);
    assert_eq!(tidegate(&place.0, &["policy", "show", "y.toml"]).0, Some(0));
}

/// The ping's and the call's delay while two uploads and three downloads fill the link, without and with each
/// preset.
#[test]
fn presets_keep_the_delay_short() {
    if skip() {
        return;
    }
    let place = Place::new("presets-try");
    let mut table = String::from("preset, ms: ping p95, the call we hear, DNS: without -> with\n");
    for (name, lan) in PRESETS.iter().flat_map(|preset| [(preset.name, true), (preset.name, false)]) {
        place.file("p.toml", preset(name, lan));
        let args = [
            "try",
            "p.toml",
            "--up",
            "10mbit",
            "--down",
            "50mbit",
            "--duration",
            "5s",
            "--load",
            "both",
            "--report",
            "none",
        ];
        let (code, out, errors) = tidegate(&place.0, &args);
        assert_eq!(code, Some(0), "{name}: {errors}");
        let ping = |how: &str| -> String {
            let line = out
                .lines()
                .find(|line| line.starts_with(&format!("both  {how} ")))
                .unwrap_or_default()
                .to_owned();
            line.split_whitespace()
                .skip_while(|word| *word != how)
                .filter(|word| *word != "ms")
                .nth(3)
                .unwrap_or_default()
                .to_owned()
        };
        let probe = |what: &str| -> String {
            let line =
                out.lines().find(|line| line.starts_with("both") && line.contains(what)).unwrap_or_default();
            line.split("  ")
                .map(str::trim)
                .find(|cell| cell.contains('→'))
                .unwrap_or_default()
                .replace('→', "->")
        };
        let (before, after) = (ping("without"), ping("with"));
        let delay: f64 = after.parse().unwrap_or(f64::MAX);
        assert!(delay < 60.0, "{name}: {out}");
        let way = if lan { "lan" } else { "ifb" };
        table.push_str(&format!(
            "{name} {way}: {before} -> {after}, {}, {}\n",
            probe("call download"),
            probe("DNS")
        ));
    }
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/policy-try.txt");
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        std::fs::write(&golden, &table).expect("the table");
    }
    assert_eq!(table, std::fs::read_to_string(&golden).unwrap_or_default());
}

/// Every key is explained, is in the schema, and its example can be read.
#[test]
fn every_word_is_explained() {
    let place = Place::new("words");
    let schema: serde_json::Value = serde_json::from_str(&schema()).expect("the schema is JSON");
    for key in &KEYS {
        assert!(help::word(key.name).is_ok_and(|text| text.contains(key.about)), "{}", key.name);
        let top = &schema["properties"];
        let properties = if key.section == Section::Top {
            top
        } else {
            &top["classes"]["additionalProperties"]["properties"]
        };
        assert!(properties[key.name]["description"].is_string(), "{}", key.name);
        // Twice the same key is no TOML.
        let output_of = |name: &str, text: &'static str| {
            if key.section == Section::Top && key.name == name { "" } else { text }
        };
        let begin = format!(
            "{}{}{}",
            output_of("device", "device = \"eth0\"\n"),
            output_of("up", "up = \"10mbit\"\n"),
            output_of("link", "link = \"fibre\"\n")
        );
        let text = match key.section {
            Section::Top => format!("{begin}{}\n", key.example),
            Section::Class if key.name == "ports" => format!("{begin}[classes.a]\n{}\n", key.example),
            Section::Class => format!("{begin}[classes.a]\nports = [\"22\"]\n{}\n", key.example),
        };
        place.file("p.toml", &text);
        let (code, _, output) = tidegate(&place.0, &["policy", "show", "p.toml"]);
        assert_eq!(code, Some(0), "{text}{output}");
    }
    let names = APPS
        .iter()
        .map(|app| app.name)
        .chain(LINKS.iter().map(|link| link.name))
        .chain(PRESETS.iter().map(|p| p.name));
    for name in names {
        assert!(help::word(name).is_ok(), "{name}");
        assert!(help::list().contains(name), "{name}");
    }
    let (code, _, output) = tidegate(&place.0, &["policy", "help", "sharee"]);
    assert_eq!(
        (code, output.as_str()),
        (Some(2), "tidegate policy: there is no word \"sharee\"; did you mean \"share\"?\n")
    );
}

/// The tables of docs/policy.md and its schema are those of the reader. `TIDEGATE_BLESS=1` writes them.
#[test]
fn the_paper_has_the_tables() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let path = docs.join("policy.md");
    let mut text = std::fs::read_to_string(&path).expect("docs/policy.md");
    for (mark, table) in
        [("keys at the top", help::table(Section::Top)), ("keys of classes", help::table(Section::Class))]
    {
        let begin = format!("<!-- generated: {mark} -->\n");
        let from = text.find(&begin).unwrap_or_else(|| panic!("{mark} is marked")) + begin.len();
        let to = from + text[from..].find("<!-- end -->").expect("its end is marked");
        text.replace_range(from..to, &table);
    }
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        std::fs::write(&path, &text).expect("docs/policy.md");
        std::fs::write(docs.join("policy.schema.json"), schema()).expect("the schema");
    }
    assert_eq!(std::fs::read_to_string(&path).expect("docs/policy.md"), text);
    assert_eq!(std::fs::read_to_string(docs.join("policy.schema.json")).expect("the schema"), schema());
}

/// A preset becomes a file with the given values.
#[test]
fn a_policy_to_begin_with() {
    let place = Place::new("new");
    let args = [
        "policy",
        "new",
        "home",
        "--dev",
        "eth0",
        "--lan",
        "br-lan",
        "--up",
        "38mbit",
        "--down",
        "95mbit",
        "--link",
        "vdsl2 pppoe",
    ];
    let (code, text, _) = tidegate(&place.0, &args);
    assert_eq!(code, Some(0));
    place.file("home.toml", &text);
    assert_eq!(tidegate(&place.0, &["policy", "show", "home.toml"]).0, Some(0));
    // The file with the preset filled in is the same policy.
    let (_, filled, _) = tidegate(&place.0, &["policy", "show", "--print", "toml", "home.toml"]);
    place.file("filled.toml", &filled);
    let script = |file: &str| {
        tidegate(&place.0, &["policy", "show", file]).1.lines().skip(2).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(script("filled.toml"), script("home.toml"), "{filled}");
    let (_, json, _) = tidegate(&place.0, &["policy", "show", "--json", "home.toml"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert!(
        json["commands"]
            .as_array()
            .is_some_and(|all| all.iter().all(|one| one["line"].as_u64().is_some_and(|line| line > 0)))
    );
    assert_eq!(tidegate(&place.0, &["policy", "new", "nope", "--dev", "eth0", "--up", "1mbit"]).0, Some(2));
    assert_eq!(tidegate(&place.0, &["policy", "new", "home", "--dev", "eth0", "--up", "fast"]).0, Some(2));
}

/// What a short policy cannot express is reported, and the result can be read again.
#[test]
fn policers_small_rates_and_shares_beyond_the_link_are_not_lost_in_silence() {
    if skip() {
        return;
    }
    let place = Place::new("policy-beyond");
    let script = |link: &str, rest: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:1 htb rate {link}
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 600kbit ceil 900kbit
tc class add dev eth0 parent 1:1 classid 1:20 htb rate 600kbit ceil 900kbit
tc class add dev eth0 parent 1:1 classid 1:30 htb rate 900kbit ceil 900kbit
tc filter add dev eth0 parent 1: protocol ip u32 match ip dport 22 0xffff flowid 1:20
tc filter add dev eth0 parent 1: protocol ip u32 match ip dport 443 0xffff flowid 1:30
{rest}"
        )
    };
    let from = |name: &str, text: String| {
        place.file(name, text);
        tidegate(&place.0, &["policy", "from", name])
    };
    let (code, text, output) = from("shares.sh", script("900kbit", ""));
    assert!(text.contains("share = \"38%\"") && text.contains("share = \"57%\""), "{code:?} {text}");
    assert!(output.contains("are 167 % of the link together"), "{output}");
    place.file("again.toml", text);
    let (code, _, errors) = tidegate(&place.0, &["check", "--fail-on", "error", "again.toml"]);
    assert_eq!(code, Some(0), "{errors}");

    let flower =
        "tc filter add dev eth0 parent 1: protocol ip prio 7 flower ip_proto tcp dst_port 80 classid 1:30\n";
    assert!(from("flower.sh", script("900kbit", flower)).2.contains(
        "the flower filter of preference 7 at 1: of eth0 to 1:30, which matches what a short policy has no \
            words for: it is left out"
    ));

    let police = "tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip u32 match u32 0 0 police rate 8mbit burst 20k drop flowid :1
";
    assert!(from("police.sh", script("900kbit", police)).2.contains("the policer of what arrives by eth0"));

    // What becomes something else, or leads nowhere, is reported.
    let mail = "tc filter add dev eth0 parent 1: protocol ip prio 7 u32 match ip dport 25 0xffff flowid \
    1:77\n\
                tc filter add dev eth0 parent 1: protocol ip prio 8 handle 9 fw flowid 1:30\n\
                tc qdisc replace dev eth0 parent 1:30 sfq\n";
    let output = from("odd.sh", script("900kbit", mail)).2;
    for odd in [
        "the u32 filter to 1:77 of eth0, a class that is not there: it is left out",
        "the filter to 1:30 for mark 0x9, which no rule that is taken up sets: it is left out",
        "the sfq in class 1:30 of eth0: a fair queue (fq_codel) replaces it",
    ] {
        assert!(output.contains(odd), "{odd}: {output}");
    }

    // A rule that matches devices does not take everything, and an action may write the mark that a filter
    // matches.
    let devices = "tc filter add dev eth0 parent 1: protocol ip prio 8 handle 9 fw flowid 1:30\n\
                   iptables -t mangle -A FORWARD -i eth2 -o eth0 -j MARK --set-mark 9\n";
    let output = from("devices.sh", script("900kbit", devices)).2;
    let came_in =
        "to 1:30, which takes everything that came in by eth2 and that no later rule marks: it is left out";
    assert!(output.contains(came_in), "{output}");
    let action = "tc filter add dev eth0 parent 1: protocol ip prio 8 handle 9 fw flowid 1:30\n\
                  tc qdisc add dev eth0 clsact\n\
                  tc filter add dev eth0 egress protocol ip prio 3 u32 match ip dport 25 0xffff action \
                  skbedit mark 9\n";
    let output = from("action.sh", script("900kbit", action)).2;
    let writes = "the filter to 1:30 for mark 0x9, which an action of the u32 filter of preference 3 at \
    ffff:fff3 of eth0 writes";
    assert!(output.contains(writes) && !output.contains("which no rule that is taken up sets"), "{output}");

    let (_, text, output) = from("slow.sh", script("100bit", ""));
    assert_eq!(text, "");
    assert!(output.contains("the rate of eth0, 96 bit/s"), "{output}");
}

/// What `policy from` takes up, and what it names.
#[test]
fn what_a_short_policy_cannot_say_is_named() {
    if skip() {
        return;
    }
    let place = Place::new("policy-named");
    let tree = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
                tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit overhead 26 mpu 64\n\
                tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit prio 0 overhead 26 \
                mpu 64\n\
                tc class add dev eth0 parent 1:1 classid 1:20 htb rate 2mbit ceil 10mbit prio 0 overhead 26 \
                mpu 64\n\
                tc class add dev eth0 parent 1:1 classid 1:30 htb rate 5mbit ceil 10mbit prio 2 overhead 26 \
                mpu 64\n";
    let hfsc = "tc qdisc add dev eth0 root handle 1: hfsc default 30\n\
                tc class add dev eth0 parent 1: classid 1:1 hfsc ls m2 9mbit ul m2 9mbit\n\
                tc class add dev eth0 parent 1:1 classid 1:10 hfsc rt m1 4mbit d 20ms m2 1mbit ls m2 1mbit\n\
                tc class add dev eth0 parent 1:1 classid 1:30 hfsc ls m2 8mbit\n";
    let filter = |condition: &str| {
        format!("tc filter add dev eth0 parent 1: protocol ip prio 1 u32 {condition} flowid 1:10\n")
    };
    let fw = "tc filter add dev eth0 parent 1: protocol ip prio 1 handle 1 fw flowid 1:10\n\
              tc filter add dev eth0 parent 1: protocol ip prio 1 handle 2 fw flowid 1:20\n\
              iptables -t mangle -A FORWARD -j MARK --set-mark 1\n\
              iptables -t mangle -A PREROUTING -i br0 -j MARK --set-mark 2\n";
    let below = "tc qdisc add dev eth0 root handle 1: tbf rate 9mbit burst 20k latency 50ms\n\
                 tc qdisc add dev eth0 parent 1:1 handle 10: prio bands 3\n\
                 tc qdisc add dev eth0 parent 10:3 handle 30: sfq perturb 10\n";
    let gone = "tc qdisc add dev eth0 parent 1:20 blackhole\n";
    /// The script, what is written, what is named, what is not.
    type Row = (String, Vec<&'static str>, Vec<&'static str>, Vec<&'static str>);
    let table: Vec<Row> = vec![
        (
            below.into(),
            vec!["up = \"9000kbit\""],
            vec![
                "the prio 10: below tbf 1: on eth0 with its order of bands: a fair queue",
                "the sfq 30: below 10:3 of eth0: it is left out",
            ],
            vec![],
        ),
        (
            format!("{tree}{fw}"),
            vec![],
            vec![
                "the rule `-j MARK --set-xmark 0x1/0xffffffff` to 1:10, which takes everything",
                "the rule `-i br0 -j MARK --set-xmark 0x2/0xffffffff` in mangle PREROUTING, whose mark no \
                packet has that comes to a queue",
                "class 1:10 of eth0, to which nothing leads",
            ],
            vec![],
        ),
        (
            format!("{tree}{}", filter("match ip sport 80 0xffff")),
            vec!["ports = [\"local 80\"]", "overhead = 40\nmpu = 64"],
            vec!["packets that are neither TCP nor UDP", "DNS, DHCP, clocks, ARP"],
            vec!["packets of class"],
        ),
        (
            format!("{tree}{}{gone}", filter("match ip protocol 17 0xff match ip dport 5060 0xffff")),
            vec!["ports = [\"udp remote 5060\"]"],
            vec!["class 1:20 of eth0 with its blackhole, to which nothing leads"],
            vec!["the blackhole in class 1:20 of eth0: a fair queue", "packets of class"],
        ),
        (
            format!(
                "{tree}{}{}",
                filter("match ip protocol 17 0xff match ip dport 53 0xffff"),
                filter("match ip protocol 6 0xff match ip dport 22 0xffff")
            ),
            vec!["ports = [\"tcp remote 22\"]"],
            vec!["DNS, DHCP, clocks, ARP"],
            vec!["udp"],
        ),
        (
            format!("{tree}{}", filter("match ip dst 192.0.2.0/24")),
            vec![],
            vec!["which matches hosts behind the provider: it is left out"],
            vec![],
        ),
        (
            format!("{hfsc}{}", filter("match ip protocol 6 0xff match ip dport 22 0xffff")),
            vec!["up = \"9000kbit\"", "share = \"1000kbit\""],
            vec![
                "the first slope of class 1:10 of eth0, 4 Mbit/s for 20 ms: it is left out",
                "the priorities by which the classes 1:10 and 1:30 of eth0 get what is left",
            ],
            vec!["hfsc"],
        ),
        (
            "tc qdisc add dev eth0 root handle 1: htb default 30\n\
            tc class add dev eth0 parent 1: classid 1:1 htb rate 20mbit\n\
            tc class add dev eth0 parent 1:1 classid 1:10 htb rate 1mbit ceil 20mbit prio 1\n\
            tc class add dev eth0 parent 1:1 classid 1:20 htb rate 4mbit ceil 20mbit prio 1\n\
            tc class add dev eth0 parent 1:1 classid 1:30 htb rate 15mbit ceil 20mbit prio 6\n\
            tc filter add dev eth0 parent 1: protocol ip u32 match ip protocol 17 0xff match ip dport 53 0xffff \
            flowid 1:10\n\
            tc filter add dev eth0 parent 1: protocol ip u32 match ip protocol 6 0xff match ip dport 22 0xffff \
            flowid 1:20\n"
                .into(),
            vec!["ports = [\"tcp remote 22\"]"],
            vec!["the priorities by which the classes 1:10 and 1:20 of eth0 get what is left"],
            vec!["1:30 of eth0 get what"],
        ),
        (
            "tc qdisc add dev eth0 root handle 1: prio\n".into(),
            vec![],
            vec!["the prio 1: at the root of eth0: the device is left out: its bands have an order and no rates"],
            vec![],
        ),
        (
            "tc qdisc add dev eth0 root cake bandwidth 9mbit besteffort dual-srchost overhead 34 mpu 68 ptm\n".into(),
            vec!["up = \"9000kbit\"", "link = \"vdsl2\"\noverhead = 34\nmpu = 68", "fair = \"host\""],
            vec![],
            vec!["does not fit"],
        ),
    ];
    for (script, written, named, unnamed) in table {
        place.script("x.sh", &script);
        let (_, text, output) = tidegate(&place.0, &["policy", "from", "x.sh"]);
        for wanted in written {
            assert!(text.contains(wanted), "{script}\n{wanted}\n{text}\n{output}");
        }
        for wanted in named {
            assert!(output.contains(wanted), "{script}\n{wanted}\n{text}\n{output}");
        }
        for odd in unnamed {
            assert!(!output.contains(odd), "{script}\n{odd}\n{text}\n{output}");
        }
        if !text.is_empty() {
            place.file("y.toml", &text);
            let (code, _, errors) = tidegate(&place.0, &["check", "--fail-on", "error", "y.toml"]);
            assert_eq!(code, Some(0), "{script}\n{text}\n{errors}");
        }
    }
}

/// A cake instead of classes: six commands, for the preset too; downloads on an ifb, where cake sees behind
/// NAT.
#[test]
fn a_cake_takes_the_place_of_the_classes() {
    let place = common::Place::new("cake");
    let base =
        "device = \"eth0\"\nlan = \"br-lan\"\nlink = \"adsl pppoe-llc\"\nup = \"1mbit\"\ndown = \"16mbit\"\n";
    let show = |more: &str, words: &[&str]| {
        let file = place.file("cake.toml", format!("{base}{more}"));
        let output =
            Command::new(TIDEGATE).args(["policy", "show"]).arg(file).args(words).output().expect("runs");
        let [stdout, stderr] =
            [output.stdout, output.stderr].map(|text| String::from_utf8(text).expect("text"));
        (output.status.code(), stdout, stderr)
    };
    let (code, script, why) = show("preset = \"home\"\nkind = \"cake\"\n", &[]);
    let commands: Vec<&str> = script.lines().filter(|line| !line.starts_with('#')).collect();
    let cake = |dev: &str, words: &str| {
        format!("tc qdisc replace dev {dev} root handle ca: cake bandwidth {words} overhead 40 mpu 0 atm")
    };
    assert_eq!((code, commands.len()), (Some(0), 6), "{script}");
    assert_eq!(commands[0], cake("eth0", "950kbit diffserv4 nat dual-srchost"));
    assert_eq!(commands[3], cake("ifb4eth0", "14400kbit diffserv4 nat dual-dsthost ingress"));
    assert!(why.contains("one cake in each direction, because the policy says"), "{why}");
    assert!(why.contains("2:7: lan is not used: a cake for downloads is on an ifb"), "{why}");
    for (fair, words) in [("flow", "flows"), ("none", "flowblind"), ("host", "nat dual-srchost")] {
        let (_, script, _) = show(&format!("fair = \"{fair}\"\nkind = \"cake\"\n"), &[]);
        assert!(script.contains(&cake("eth0", &format!("950kbit diffserv4 {words}"))), "{script}");
    }
    // As a file it is itself, and the engine takes it.
    let (_, text, _) = show("preset = \"home\"\nkind = \"cake\"\n", &["--print", "toml"]);
    assert!(text.contains("\nkind = \"cake\"\n") && !text.contains("[classes"), "{text}");
    let file = place.file("again.toml", &text);
    let checked = Command::new(TIDEGATE).arg("check").arg(file).output().expect("runs");
    assert_eq!(checked.status.code(), Some(0), "{checked:?}");
    // A preset alone is one, too; whatever asks for classes makes them.
    let (_, preset, why) = show("preset = \"home\"\n", &[]);
    assert_eq!(preset, script);
    assert!(why.contains("one cake in each direction, because nothing asks for classes"), "{why}");
    for (asks, reason) in [
        ("preset = \"home\"\nkind = \"classes\"\n", "because the policy says kind"),
        ("preset = \"home\"\nbuckets = 4\n", "because the policy has classes"),
        ("preset = \"home\"\n[classes.bulk]\nhosts = [\"10.0.0.9\"]\n", "because the policy has classes"),
    ] {
        let (_, script, why) = show(asks, &[]);
        assert!(script.contains("root handle 1: htb") && !script.contains(" cake "), "{asks}: {script}");
        assert!(why.contains("6 classes of HTB") && why.contains(reason), "{asks}: {why}");
    }
    let (code, _, why) = show("kind = \"cake\"\n[classes.calls]\napps = [\"voip\"]\n", &[]);
    assert!(code == Some(2) && why.contains("7:2: a cake has no classes"), "{why}");
    let (code, _, why) = show("kind = \"cake\"\nbuckets = 8\n", &[]);
    assert!(code == Some(2) && why.contains("7:1: a cake has no buckets"), "{why}");
    for word in ["kind = \"fq_codel\"\nbuckets = 8\n", "kind = \"fq_codel\"\n[classes.a]\napps = [\"web\"]\n"]
    {
        let (code, _, why) = show(word, &[]);
        assert!(code == Some(2) && why.contains("an fq_codel has no "), "{why}");
    }
    let (code, _, why) = show("kind = \"caek\"\n", &[]);
    assert!(
        code == Some(2) && why.contains("unknown kind \"caek\"") && why.contains("Did you mean \"cake\""),
        "{why}"
    );
}

/// One `fq_codel` in a class of HTB, for kernels without cake: it may be carried out again, and takes the
/// place of classes.
#[test]
fn an_fq_codel_takes_the_place_of_the_cake() {
    let place = common::Place::new("fq_codel");
    let base = "device = \"eth0\"\nup = \"1mbit\"\ndown = \"16mbit\"\npreset = \"home\"\n";
    let policy = |name: &str, kind: &str| {
        place.file(name, format!("{base}kind = \"{kind}\"\n"));
        let (code, script, why) = tidegate(&place.0, &["policy", "show", name]);
        assert_eq!(code, Some(0), "{why}");
        (script, why)
    };
    let (one, why) = policy("one.toml", "fq_codel");
    let expected = [
        "tc qdisc replace dev eth0 root handle 2: htb default 1 2>/dev/null || true # done before",
        "tc class replace dev eth0 parent 2: classid 2:1 htb rate 950kbit ceil 950kbit burst 3028 cburst 3028 \
         quantum 1514",
        "tc qdisc replace dev eth0 parent 2:1 fq_codel limit 1000 target 19124us interval 114124us quantum 300 \
         ecn",
    ];
    let commands: Vec<&str> = one.lines().filter(|line| !line.starts_with('#')).take(3).collect();
    assert_eq!(commands, expected);
    assert!(one.contains("# tidegate: class ifb4eth0 2:1 the link\n"), "{one}");
    assert!(
        why.contains("one fq_codel in each direction, in a class of HTB, because the policy says"),
        "{why}"
    );
    assert!(why.contains("fair = \"host\" does not hold: fq_codel shares between connections"), "{why}");
    if skip() {
        return;
    }
    let tree = |name: &str, script: &str| {
        place.script(name, format!("set -e\n{script}"));
        let (code, tree, errors) = tidegate(&place.0, &["run", "--print", "tree", "--dev", "eth0", name]);
        assert_eq!(code, Some(0), "{errors}");
        tree
    };
    let alone = tree("one.sh", &one);
    assert!(alone.contains("2:1  rate 950Kbit  ceil 950Kbit  → fq_codel"), "{alone}");
    assert_eq!(tree("twice.sh", &format!("{one}{one}")).matches("fq_codel").count(), 2);
    let (classes, _) = policy("classes.toml", "classes");
    let after = tree("after.sh", &format!("{classes}{one}"));
    assert!(!after.contains("1:10") && after.matches("fq_codel").count() == 2, "{after}");
}
