//! Which way a short policy takes the packets of a device to go, and which rules it leaves out.

use std::path::PathBuf;
use tidegate_loader::{ReadOptions, read, to_short};

/// A tree of two classes on a device, the second the default.
fn tree(dev: &str) -> String {
    format!(
        "qdisc add dev {dev} root handle 1: htb default 30\n\
         class add dev {dev} parent 1: classid 1:1 htb rate 20mbit ceil 20mbit\n\
         class add dev {dev} parent 1:1 classid 1:10 htb rate 8mbit ceil 20mbit\n\
         class add dev {dev} parent 1:1 classid 1:30 htb rate 4mbit ceil 20mbit\n"
    )
}

/// The short policy of a batch and of rules, and what does not fit, a line for each.
fn short(name: &str, batch: &str, rules: &str) -> (String, String) {
    let place: PathBuf = std::env::temp_dir().join(format!("tidegate-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a directory");
    let files = [place.join("p.rules"), place.join("p.batch")];
    std::fs::write(&files[0], rules).expect("rules");
    std::fs::write(&files[1], batch).expect("a batch");
    let files = if rules.is_empty() { &files[1..] } else { &files[..] };
    let source = read(files, &ReadOptions::default()).expect("they are read");
    let short = to_short(&source.reading());
    std::fs::remove_dir_all(&place).expect("the directory goes");
    let output = short.misfits.iter().map(|one| format!("{}: {}\n", one.what, one.instead)).collect();
    (short.text.unwrap_or_default(), output)
}

/// A device whose classes ask for hosts of private networks as destinations is the LAN's.
#[test]
fn classes_for_private_destinations_are_downloads() {
    let filter = "filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip";
    let by_filter = |condition: &str| tree("eth1") + &format!("{filter} {condition} flowid 1:10\n");
    let (text, output) = short("down", &by_filter("dst 192.168.1.10"), "");
    assert!(text.contains("lan = \"eth1\"\n") && text.contains("down = \"20000kbit\"\n"), "{text}{output}");
    assert!(text.contains("hosts = [\"192.168.1.10\"]") && !text.contains("up ="), "{text}");
    assert!(output.contains("the direction of eth1, which no command says"), "{output}");
    // A private source, or a public destination, is an upload's.
    for condition in ["src 192.168.1.10", "dst 198.51.100.7"] {
        let (text, output) = short("up", &by_filter(condition), "");
        assert!(
            text.contains("device = \"eth1\"\n") && text.contains("up = \"20000kbit\"\n"),
            "{text}{output}"
        );
    }
    // By rules, as by filters.
    let by_mark = tree("eth1") + "filter add dev eth1 parent 1: protocol ip handle 10 fw flowid 1:10\n";
    let rule = |rule: &str| format!("*mangle\n-A POSTROUTING {rule} -j MARK --set-mark 10\nCOMMIT\n");
    let (text, output) = short("down-rule", &by_mark, &rule("-o eth1 -d 10.0.0.0/24"));
    assert!(text.contains("down = \"20000kbit\"\n"), "{text}{output}");
    let (text, output) = short("up-rule", &by_mark, &rule("-o eth1 -s 10.0.0.0/24"));
    assert!(text.contains("up = \"20000kbit\"\n"), "{text}{output}");
}

/// Where both ends are named, the device that hides the LAN leads to the provider.
#[test]
fn the_device_that_translates_leads_to_the_provider() {
    let fw = |dev: &str| format!("filter add dev {dev} parent 1: protocol ip handle 10 fw flowid 1:10\n");
    let batch = tree("eth0") + &fw("eth0") + &tree("eth1") + &fw("eth1");
    let rules = "*nat\n-A POSTROUTING -o eth1 -j MASQUERADE\nCOMMIT\n*mangle\n\
                 -A FORWARD -s 192.168.1.10/32 -j MARK --set-mark 10\n\
                 -A FORWARD -d 192.168.1.10/32 -j MARK --set-mark 10\nCOMMIT\n";
    let (text, output) = short("nat", &batch, rules);
    assert!(text.contains("device = \"eth1\"\n") && text.contains("lan = \"eth0\"\n"), "{text}{output}");
}

/// What arrives from the LAN and goes over an ifb is an upload: a short policy has no place for it there.
#[test]
fn an_ifb_behind_the_lan_shapes_uploads() {
    let ifb = |from: &str, condition: &str| {
        format!(
            "qdisc add dev {from} handle ffff: ingress\n\
             filter add dev {from} parent ffff: protocol all matchall action mirred egress redirect dev \
             ifb0\n\
             {}filter add dev ifb0 parent 1: protocol ip prio 1 u32 match ip {condition} flowid 1:10\n",
            tree("ifb0")
        )
    };
    for (from, condition) in [("br-lan", "dport 22 0xffff"), ("eth1", "src 192.168.1.10")] {
        let (text, output) = short("ifb", &ifb(from, condition), "");
        assert_eq!(text, "", "{output}");
        let left =
            format!("the tree on ifb0, to which what arrives at {from} from the LAN is led: it is left out");
        assert!(output.contains(&left) && output.contains("no other device has at its root"), "{output}");
    }
    let (text, output) = short("ifb-wan", &ifb("eth0", "sport 22 0xffff"), "");
    assert!(
        text.contains("down = \"20000kbit\"\n") && text.contains("device = \"eth0\"\n"),
        "{text}{output}"
    );
}

/// What INPUT marks waits in no queue; nor do the packets of a chain to which only INPUT leads.
#[test]
fn rules_for_this_machine_itself_lead_to_no_class() {
    let batch = tree("eth0") + "filter add dev eth0 parent 1: protocol ip handle 10 fw flowid 1:10\n";
    let rules = |rules: &str| format!("*mangle\n{rules}COMMIT\n");
    let own = [
        "-A INPUT -p tcp --dport 22 -j MARK --set-mark 10\n",
        "-A INPUT -p tcp --dport 22 -j CONNMARK --set-mark 10\n-A POSTROUTING -j CONNMARK --restore-mark\n",
        ":OWN - [0:0]\n-A OWN -p tcp --dport 22 -j MARK --set-mark 10\n-A INPUT -j OWN\n",
    ];
    for list in own {
        let (text, output) = short("input", &batch, &rules(list));
        assert!(!text.contains("[classes.class10]"), "{text}{output}");
        assert!(output.contains("which takes only packets for this machine itself"), "{output}");
    }
    for chain in ["FORWARD", "POSTROUTING", "PREROUTING", "OUTPUT"] {
        let rule = format!("-A {chain} -p tcp --dport 22 -j MARK --set-mark 10\n");
        let (text, output) = short("forward", &batch, &rules(&rule));
        assert!(text.contains("[classes.class10]\nports = [\"tcp remote 22\"]"), "{chain}: {text}{output}");
        assert!(!output.contains("for this machine itself"), "{output}");
    }
}
