//! `tidegate import`: what a machine lists makes the same machine again.

use crate::common;

use common::{Place, TIDEGATE, skip};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};

fn tidegate(args: &[&str]) -> Output {
    Command::new(TIDEGATE).args(args).output().expect("runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// A listing by its headings. Qdiscs and classes come in the order in which they were made, which does not
/// matter; filters in the order in which they are evaluated.
fn sections(listing: &str) -> BTreeMap<String, Vec<String>> {
    let mut sections: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut heading = String::new();
    for line in listing.lines() {
        if line.starts_with('#') {
            line.clone_into(&mut heading);
        } else {
            sections.entry(heading.clone()).or_default().push(line.to_owned());
        }
    }
    for (_, lines) in sections.iter_mut().filter(|(heading, _)| !heading.contains("parent")) {
        lines.sort();
    }
    sections
}

/// Everything that tc lists of the machine that a file comes to.
fn listing(place: &Place, setup: &str, devices: &[&str]) -> String {
    let mut script = format!("#!/bin/sh\n{setup}\ntc -d qdisc show\n");
    for dev in devices {
        script.push_str(&format!("echo '# dev {dev}'\ntc -d class show dev {dev}\n"));
        // The filters of every qdisc and class are listed.
        script.push_str(&format!(
            "for parent in $(tc qdisc show dev {dev} | cut -d' ' -f3) $(tc class show dev {dev} | cut -d' ' \
            -f3); do\n\
             echo \"# dev {dev} parent $parent\"\ntc -d filter show dev {dev} parent $parent \
             2>/dev/null\ndone\n"
        ));
    }
    let path = place.script("list.sh", script);
    let output = tidegate(&["run", path.to_str().expect("a name")]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    stdout(&output)
}

#[test]
fn listings_make_the_same_machine_again() {
    if skip() {
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let examples: [(&str, &[&str]); 5] = [
        ("home-gateway.sh", &["eth0"]),
        ("per-host.sh", &["eth0"]),
        ("three-bands.sh", &["eth0"]),
        ("dual-stack.sh", &["eth0"]),
        ("modem.sh", &["eth1"]),
    ];
    for (example, devices) in examples {
        let place = Place::new(&format!("import-{example}"));
        // A sandbox does not show what lies elsewhere under /tmp, where the clone may be.
        let script = std::fs::read(root.join("examples").join(example)).expect("an example");
        let source = place.script(example, script);
        let first = listing(&place, &format!("sh {} >/dev/null 2>&1", source.display()), devices);
        let listed = place.file("listed", &first);
        let imported = tidegate(&["import", listed.to_str().expect("a name")]);
        let errors = String::from_utf8_lossy(&imported.stderr);
        assert!(imported.status.success(), "{example}: {errors}");
        let second = listing(&place, &stdout(&imported), devices);
        let (first, second) = (sections(&first), sections(&second));
        for (heading, lines) in &first {
            let again = second.get(heading).map(Vec::as_slice).unwrap_or_default();
            let differs = lines.iter().zip(again).find(|(one, other)| one != other);
            assert_eq!((differs, lines.len()), (None, again.len()), "{example} {heading}");
        }
        assert_eq!(first.len(), second.len(), "{example}");
    }
}

#[test]
fn json_listings_in_several_files_make_one_machine() {
    let place = Place::new("import-json");
    let qdiscs = place.file(
        "qdiscs.json",
        r#"[{"kind":"fq_codel","handle":"10:","dev":"eth0","parent":"1:10","options":{"limit":1000,"flows":1024,"quantum":1514,"target":4999,"interval":99999,"ecn":true}},
            {"kind":"htb","handle":"1:","dev":"eth0","root":true,"refcnt":2,"options":{"r2q":10,"default":"0x10","direct_packets_stat":0}}]"#,
    );
    let classes = place.file(
        "classes.json",
        r#"[{"class":"htb","handle":"1:10","dev":"eth0","root":true,"leaf":"10:","prio":0,"rate":125000,"ceil":125000,"burst":1600,"cburst":1600}]"#,
    );
    let filters = place.file(
        "filters.json",
        r#"[{"parent":"1:","dev":"eth0","protocol":"ip","pref":1,"kind":"fw","chain":0,"options":{"handle":"0x7","classid":"1:10"}}]"#,
    );
    let name = |path: &Path| path.to_str().expect("a name").to_owned();
    let output = tidegate(&["import", "--print", "batch", &name(&filters), &name(&qdiscs), &name(&classes)]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(
        stdout(&output),
        "qdisc add dev eth0 root handle 1: htb r2q 10 default 10\n\
         class add dev eth0 parent 1: classid 1:10 htb prio 0 rate 1000000bit ceil 1000000bit burst 1600b \
         cburst 1600b\n\
         qdisc add dev eth0 parent 1:10 handle 10: fq_codel limit 1000 flows 1024 quantum 1514 target \
         5000us interval 100000us ecn\n\
         filter add dev eth0 parent 1: protocol ip pref 1 handle 0x7 fw classid 1:10\n"
    );
}

#[test]
fn omissions_of_a_listing_are_reported() {
    let place = Place::new("import-bad");
    let cases = [
        (
            "u32.json",
            r#"[{"parent":"1:","dev":"eth0","protocol":"ip","pref":1,"kind":"u32","chain":0,"options":{"flowid":"1:10","match":{}}}]"#,
            "tc filter show",
        ),
        ("nodev.json", r#"[{"kind":"pfifo","handle":"1:","root":true,"options":{"limit":10}}]"#, "--dev"),
        ("twice", "qdisc sfq 2: dev eth0 root\nqdisc sfq 2: dev eth0 root\n", "line 1 and in line 2"),
        ("lost", "qdisc sfq 2: dev eth0 parent 1:1 limit 127p\n", "tc qdisc show"),
        (
            "lost class",
            "qdisc htb 1: dev eth0 root r2q 10\nqdisc sfq 2: dev eth0 parent 1:1 limit 127p\n",
            "tc class show",
        ),
    ];
    for (name, text, expected) in cases {
        let path = place.file(name, text);
        let output = tidegate(&["import", path.to_str().expect("a name")]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && errors.contains(expected), "{name}: {errors}");
    }
}

#[test]
fn settings_of_sqm_and_fireqos_come_to_policies() {
    let place = Place::new("import-settings");
    let uci = place.file(
        "sqm",
        "config queue 'wan'\n\toption enabled '1'\n\toption interface 'eth1'\n\toption download \
        '20000'\n\toption upload '2000'\n\
         \toption qdisc 'fq_codel'\n\toption script 'simple.qos'\n\toption linklayer 'atm'\n\toption \
         overhead '44'\n",
    );
    let conf = place.file("eth0.iface.conf", "UPLINK=2000\nDOWNLINK=20000\nSCRIPT=simplest.qos\n");
    let fireqos = place.file(
        "fireqos.conf",
        "interface eth0 world bidirectional ethernet input rate 20mbit output rate 2mbit\n\
         \x20 class calls commit 10%\n    match udp port 5060\n    match dscp EF\n  class bulk max 90%\n    \
         match tcp port 873\n",
    );
    for (path, device, upload) in
        [(&uci, "eth1", "2mbit"), (&conf, "eth0", "2mbit"), (&fireqos, "eth0", "2mbit")]
    {
        let name = path.to_str().expect("a name");
        let toml = tidegate(&["policy", "show", "--print", "toml", name]);
        let (text, errors) = (stdout(&toml), String::from_utf8_lossy(&toml.stderr).into_owned());
        assert!(toml.status.success(), "{name}: {errors}");
        assert!(text.contains(&format!("device = \"{device}\"")) && text.contains(upload), "{name}: {text}");
        let check = tidegate(&["check", "--fail-on", "warning", name]);
        assert!(check.status.success(), "{name}: {}", stdout(&check));
        let said = String::from_utf8_lossy(&check.stderr).into_owned();
        assert!(said.contains("is read as a short policy, and what follows is about that"), "{said}");
        let imported = tidegate(&["import", "--print", "batch", name]);
        assert!(imported.status.success(), "{name}");
        assert!(
            stdout(&imported).contains(&format!("dev {device} root handle ")),
            "{name}: {}",
            stdout(&imported)
        );
    }
    let bad = place.file("bad.conf", "interface eth0 world output rate 1mbit\n class a\n  match tcp syn\n");
    let output = tidegate(&["check", bad.to_str().expect("a name")]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(2) && errors.contains("bad.conf:3:13"), "{errors}");
}

/// Sections of systemd-networkd are policies of every command, and what it leaves out is an error with its
/// line.
#[test]
fn sections_of_systemd_networkd_are_read() {
    let place = Place::new("import-networkd");
    let file = place.file(
        "50-wan.network",
        "[Match]\nName=en*\n\n[TokenBucketFilter]\nParent=root\nHandle=1\nRate=9M\nBurstBytes=10K\n\
         LatencySec=3s\n",
    );
    let name = file.to_str().expect("a name");
    let check = tidegate(&["check", name]);
    let said = String::from_utf8_lossy(&check.stderr).into_owned();
    assert!(
        said.contains("50-wan.network:2: Name=en* fits several devices: `en0` stands for them"),
        "{said}"
    );
    assert!(
        stdout(&check).contains("50-wan.network:4: "),
        "the finding is at the section: {}",
        stdout(&check)
    );
    let imported = tidegate(&["import", "--print", "batch", name]);
    let expected = "qdisc replace dev en0 root handle 1: tbf rate 9000000bit burst 10240 latency 3000000us\n";
    assert_eq!(stdout(&imported), expected);
    // And back.
    let sections = tidegate(&["import", "--print", "networkd", name]);
    let back = place.file("back.network", stdout(&sections));
    let again = tidegate(&["import", "--print", "batch", back.to_str().expect("a name")]);
    assert_eq!((sections.status.code(), stdout(&again)), (Some(0), expected.to_owned()));
    let script = place.file(
        "red.batch",
        "qdisc add dev eth0 root handle 1: prio\n\
         qdisc add dev eth0 parent 1:1 handle 2: tbf rate 1mbit burst 5k limit 9k\n",
    );
    let partly = tidegate(&["import", "--print", "networkd", script.to_str().expect("a name")]);
    let said = String::from_utf8_lossy(&partly.stderr).into_owned();
    let expected = "has no section for it: tc qdisc add dev eth0 root";
    assert!(partly.status.code() == Some(1) && said.contains(expected), "{said}");
    let both = place.file("both.batch", "qdisc add dev eth0 root fq\nqdisc add dev eth1 root fq\n");
    let both = tidegate(&["import", "--print", "networkd", both.to_str().expect("a name")]);
    let said = String::from_utf8_lossy(&both.stderr).into_owned();
    assert!(both.status.success() && said.contains("these are 2 files, one for each device"), "{said}");
    let explained = tidegate(&["explain", name, "udp 192.168.1.2 > 203.0.113.9:53 len 100"]);
    assert!(explained.status.success() && stdout(&explained).contains("tbf 1:"), "{}", stdout(&explained));
    let bad = place.file("bad.network", "[Match]\nName=eth0\n[CAKE]\nBandwith=9M\n");
    let output = tidegate(&["check", bad.to_str().expect("a name")]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        output.status.code() == Some(2) && errors.contains("bad.network:4:1: [CAKE] has no Bandwith="),
        "{errors}"
    );
}

/// Experiments of Chaos Mesh and limits of pods are policies of every command, and a mistake is an error at
/// its line.
#[test]
fn manifests_of_kubernetes_are_read() {
    let place = Place::new("import-manifests");
    let spec = "spec:\n  action: delay\n  mode: one\n  selector: {namespaces: [shop]}\n  delay: {latency: 90ms}\n  \
                externalTargets: [203.0.113.9]\n";
    let head = "apiVersion: chaos-mesh.org/v1alpha1\nkind: NetworkChaos\nmetadata: {name: slow}\n";
    let file = place.file("slow.yaml", format!("{head}{spec}"));
    let name = file.to_str().expect("a name");
    let check = tidegate(&["check", name]);
    let said = String::from_utf8_lossy(&check.stderr).into_owned();
    let put =
        "slow.yaml:6: it is put on one pod, chosen at random, of those that its selector fits (one machine";
    assert!(check.status.success() && said.contains(put), "{said}{}", stdout(&check));
    let imported = stdout(&tidegate(&["import", "--print", "tc", name]));
    let rule = "iptables -w -A TC-TABLES-0 -o eth0 -d 203.0.113.9/32 -j CLASSIFY --set-class 1:4\n";
    assert!(imported.contains(rule), "{imported}");
    let asked = |to: &str| {
        let packet = format!("tcp 192.0.2.2:40000 > {to}:443 len 100 in lo");
        stdout(&tidegate(&["explain", name, &packet]))
    };
    let (to_target, to_other) = (asked("203.0.113.9"), asked("203.0.113.8"));
    assert!(to_target.contains("netem 5:") && !to_other.contains("netem 5:"), "{to_target}{to_other}");
    let graph = tidegate(&["graph", name]);
    assert!(graph.status.success() && stdout(&graph).contains("netem"), "{}", stdout(&graph));
    let limit = "apiVersion: v1\nkind: Pod\nmetadata:\n  name: web\n  \
                 annotations: {kubernetes.io/egress-bandwidth: 80M}\n";
    let pod = place.file("pod.yaml", limit);
    let pod = tidegate(&["run", "--print", "tc", pod.to_str().expect("a name")]);
    let shown = stdout(&pod);
    let qdisc =
        "tc qdisc add dev bwp0 root handle 1: tbf rate 80000000bit burst 536870910b limit 537120911b\n";
    assert!(pod.status.success() && shown.contains(qdisc), "{shown}{}", String::from_utf8_lossy(&pod.stderr));
    for (bad, expected) in [
        (format!("{head}{}", spec.replace("90ms", "90")), "bad.yaml:8:20: `latency` is a number here"),
        (format!("{head}{}", spec.replace("mode", "mod")), "bad.yaml:6:3: `spec` has no key `mod`"),
        (limit.replace("80M", "80Mbps"), "bad.yaml:5:49: 80Mbps is no quantity that Kubernetes takes here"),
    ] {
        let file = place.file("bad.yaml", bad);
        let output = tidegate(&["check", file.to_str().expect("a name")]);
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(2) && errors.contains(expected), "{expected}\n{errors}");
    }
}
