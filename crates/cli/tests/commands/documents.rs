//! Documents in JSON: each command's fits its published schema, and standard output holds one.

use crate::common;

use common::{Place, TIDEGATE, schemas, skip};
use std::process::{Command, Output};

fn tidegate(place: &Place, words: &[&str]) -> Output {
    Command::new(TIDEGATE)
        .args(words)
        .current_dir(&place.0)
        .env("TIDEGATE_RUN", place.0.join("run"))
        .output()
        .expect("tidegate runs")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// Policies, a scenario, a test, a capture's worth of everything.
fn filled(name: &str) -> Place {
    let place = Place::new(name);
    place.file("p.batch", "qdisc add dev eth0 root sfq\n");
    place.file(
        "bad.batch",
        "qdisc add dev eth0 root handle 1: htb default 99\n\
        class add dev eth0 parent 1: classid 1:10 htb rate 1mbit ceil 9mbit\n\
        filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 53 0xffff flowid 1:20\n",
    );
    place.script(
        "p.sh",
        "#!/bin/sh\ntc qdisc add dev eth0 root handle 1: htb default 10\n\
        tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n\
        tc filter add dev eth0 parent 1: protocol ip u32 match ip tos 16 0xff match ip dport 5 0xff flowid 1:10\n\
        iptables -t mangle -A FORWARD -p tcp -j CLASSIFY --set-class 1:10\n\
        tc qdisc del dev eth9 root 2>/dev/null\ntrue\n",
    );
    place.file("home.toml", "device = \"eth0\"\nup = \"4mbit\"\ndown = \"20mbit\"\npreset = \"home\"\n");
    place.file(
        "s.toml",
        "duration = \"1s\"\n[home]\nup = \"2mbit\"\ndown = \"9mbit\"\n[policies.none]\n[policies.sfq]\n\
        gateway = [\"tc qdisc add dev eth0 root sfq\"]\n\
        [[traffic]]\nping = \"a -> server\"\n[[traffic]]\ntcp = \"a -> server\"\n",
    );
    place.file(
        "t.toml",
        "policy = \"p.batch\"\nup = \"2mbit\"\ndown = \"9mbit\"\nduration = \"1s\"\n\
        expect = [\"packet 'udp 192.168.1.7 > 1.1.1.1:53 out eth0': queue sfq\"]\n",
    );
    place
}

#[test]
fn every_document_fits_its_published_schema() {
    if skip() {
        return;
    }
    let place = filled("documents");
    let packet = "udp 192.168.1.7 > 1.1.1.1:53 out eth0";
    let rows: [(&str, &[&str]); 31] = [
        (
            "experiment",
            &[
                "sim",
                "s.toml",
                "--repeats",
                "2",
                "--json",
                "-o",
                "r.json",
                "--at",
                "500ms",
                "--",
                "tc",
                "qdisc",
            ],
        ),
        ("comparison", &["compare", "r.json", "r.json", "--json"]),
        (
            "sweep",
            &["sweep", "s.toml", "--set", "home.rtt=9ms,20ms", "--repeats", "2", "--json", "-o", "r.csv"],
        ),
        ("sweep", &["results", "r.csv", "--versus", "policy=none", "--json"]),
        ("bundle", &["bundle", "s.toml", "--json", "-o", "b"]),
        ("bundle_check", &["bundle", "--check", "b", "--json"]),
        (
            "tune",
            &[
                "tune",
                "s.toml",
                "--set",
                "home.up=1..3mbit",
                "--objective",
                "p95 ping",
                "--policy",
                "sfq",
                "--tries",
                "4",
                "--json",
            ],
        ),
        (
            "gym",
            &[
                "gym",
                "tidegate",
                "--traces",
                "lte",
                "--lines",
                "1",
                "--loads",
                "up",
                "--mean",
                "1mbit",
                "--duration",
                "2",
                "--detail",
                "lte-1/up",
                "--json",
            ],
        ),
        ("trial", &["try", "home.toml", "--duration", "1s", "--load", "both", "--json"]),
        ("check", &["check", "bad.batch", "p.sh", "--json"]),
        ("check", &["check", "p.batch", "--json"]),
        ("explain", &["explain", "p.batch", packet, "--json"]),
        ("explain", &["explain", "p.sh", packet, "--reply", "--diff", "p.batch", "--json"]),
        ("graph", &["graph", "p.sh", "--json"]),
        ("graph", &["graph", "home.toml", "--json"]),
        ("test", &["test", "t.toml", "--json"]),
        ("import", &["import", "p.batch", "--json"]),
        ("run", &["run", "p.sh", "--json"]),
        ("run", &["run", "p.sh", "--then", "stop", "--json"]),
        ("policy", &["policy", "show", "home.toml", "--json"]),
        ("policy", &["policy", "from", "p.sh", "--json"]),
        // A lone queue is nothing that a short policy could be made of.
        ("policy", &["policy", "from", "p.batch", "--json"]),
        ("policy_list", &["policy", "list", "--json"]),
        ("status", &["status", "--json"]),
        ("down", &["down", "--json"]),
        ("confirm", &["confirm", "--json"]),
        ("doctor", &["doctor", "--json", "--duration", "1s"]),
        ("apply", &["apply", "p.batch", "--dry-run", "--backend", "kernel", "--json"]),
        ("ping", &["ping", "127.0.0.1", "-c", "3", "-i", "0.01", "--udp", "9", "--json"]),
        ("loss", &["loss", "--received", "none.pcap", "--json"]),
        ("overhead", &["overhead", "--from", "none.txt", "--json"]),
    ];
    let mut seen = 0;
    for (form, words) in rows {
        let output = tidegate(&place, words);
        // What needs a privilege or a device that is not there prints no document.
        if output.stdout.is_empty() && matches!(output.status.code(), Some(1 | 2 | 4)) {
            println!("no document: {words:?}: {}", said(&output).trim());
            continue;
        }
        let document = schemas::document(&output.stdout);
        assert!(document[format!("tidegate_{form}")].is_u64(), "{words:?}: {document}");
        seen += 1;
    }
    assert!(seen >= 17, "only {seen} documents");
}

#[test]
fn standard_output_holds_one_document() {
    let place = filled("one-document");
    for words in [
        &["check", "p.batch", "--json", "-o", "-"][..],
        &["check", "p.batch", "--sarif", "--output=-"],
        &["test", "t.toml", "--tap", "-o", "/dev/stdout"],
        &["sim", "s.toml", "--json", "-o-"],
        &["check", "p.batch", "-o", "-", "-o", "/dev/stdout"],
        &["doctor", "--json", "-o", "-"],
    ] {
        let output = tidegate(&place, words);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{words:?} {}", said(&output));
        assert!(said(&output).contains("standard output"), "{}", said(&output));
    }
    // The file takes the place of the text.
    for words in [&["check", "p.batch", "-o", "-"][..], &["compare", "r.json", "r.json", "-o", "/dev/stdout"]]
    {
        if words[0] == "compare" {
            assert_eq!(tidegate(&place, &["sim", "s.toml", "-o", "r.json"]).status.code(), Some(0));
        }
        let output = tidegate(&place, words);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let is_page = words[0] == "compare" && text.starts_with("<!DOCTYPE html>");
        assert!(
            is_page || serde_json::from_str::<serde_json::Value>(&text).is_ok(),
            "{words:?} {}",
            said(&output)
        );
    }
    // One form of a graph is printed in any case.
    let output = tidegate(&place, &["graph", "p.batch", "--json", "-o", "-"]);
    schemas::document(&output.stdout);
}
