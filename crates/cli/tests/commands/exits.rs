//! Exit codes are those of docs/exit-codes.md, in every command: yes, no, wrong usage, not permitted.

use crate::common;

use common::computer::Computer;
use common::{Place, TIDEGATE, skip};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};
use tidegate::command_line::parser;

/// A user and a group without any privilege: nobody.
const NOBODY: u32 = 65_534;

fn tidegate(place: &Place, line: &str) -> Command {
    let mut command = Command::new(TIDEGATE);
    command.args(words(line)).current_dir(&place.0).env("TIDEGATE_RUN", place.0.join("run"));
    command
}

/// Words between blanks; those in quotes stay together.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    let each = |(n, part): (usize, &str)| match n % 2 {
        0 => part.split_whitespace().map(str::to_owned).collect(),
        _ => vec![part.to_owned()],
    };
    parts.flat_map(each).collect()
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn must_end(place: &Place, rows: &[(&str, i32)]) {
    // What devices the computer has that runs the tests must not matter.
    let computer = Computer::new("exits");
    for (line, code) in rows {
        let output = Computer::output(computer.as_ref(), tidegate(place, line)).expect("tidegate runs");
        assert_eq!(output.status.code(), Some(*code), "{line}\n{}", said(&output));
    }
}

const LINK: &str = "--up 2mbit --down 9mbit --duration 1s --load idle -o none";

fn filled(name: &str) -> Place {
    let place = Place::new(name);
    place.file("p.batch", "qdisc add dev eth0 root sfq\n");
    place.file("other.batch", "qdisc add dev eth0 root fq_codel\n");
    place.file(
        "bad.batch",
        "qdisc add dev eth0 root handle 1: htb default 99\n\
        class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n",
    );
    place.file(
        "refused.batch",
        "qdisc add dev eth0 root sfq\nclass add dev eth0 parent 7: classid 7:1 htb rate 1mbit\n",
    );
    place.script("seven.sh", "#!/bin/sh\ntc qdisc add dev eth0 root sfq\nexit 7\n");
    place.script("misfit.sh", "#!/bin/sh\ntc qdisc add dev eth0 root netem delay 10ms\n");
    place.file("no.txt", "a text");
    place.file("home.toml", "device = \"eth0\"\nup = \"4mbit\"\ndown = \"20mbit\"\npreset = \"home\"\n");
    place.file("sweep.txt", "100 4489\n200 many\n");
    for (name, least) in [("s.toml", "1ms"), ("failing.toml", "9s")] {
        place.file(
            name,
            format!(
                "duration = \"1s\"\n[home]\nup = \"2mbit\"\ndown = \"9mbit\"\n[policies.none]\n\
                [[traffic]]\nping = \"a -> server\"\n\
                [[expect]]\nid = \"e\"\nwhat = \"a bound\"\nfigure = \"ping.median\"\n\
                of = \"none\"\nwithin = [\"{least}\", \"10s\"]\n"
            ),
        );
    }
    for (name, queue) in [("t.toml", "sfq"), ("failing-t.toml", "fq_codel")] {
        place.file(
            name,
            format!(
                "policy = \"p.batch\"\nup = \"2mbit\"\ndown = \"9mbit\"\nduration = \"1s\"\n\
                expect = [\"packet 'udp 192.168.1.7 > 1.1.1.1:53 out eth0': queue {queue}\"]\n"
            ),
        );
    }
    place
}

#[test]
fn wrong_usage_ends_with_2_in_every_command() {
    let place = Place::new("exits-usage");
    for command in parser().get_subcommands() {
        let name = command.get_name();
        // It takes what tc takes.
        if name == "tc" {
            continue;
        }
        let output = tidegate(&place, &format!("{name} --no-such-option")).output().expect("tidegate runs");
        assert_eq!(output.status.code(), Some(2), "{name}\n{}", said(&output));
        assert!(said(&output).contains("--no-such-option") || name == "policy", "{name}\n{}", said(&output));
    }
    must_end(
        &place,
        &[
            ("", 2),
            ("chekc", 2),
            ("policy", 2),
            ("policy help nosuch", 2),
            ("policy new nosuch --dev eth0", 2),
            ("completions nosuch", 2),
            ("--help", 0),
            ("check --help", 0),
            ("--version", 0),
        ],
    );
}

#[test]
fn yes_no_and_wrong_input_have_codes_of_their_own() {
    if skip() {
        return;
    }
    let place = filled("exits");
    let packet = "'udp 192.168.1.7 > 1.1.1.1:53 out eth0'";
    let rows = [
        ("check p.batch".to_owned(), 0),
        ("check bad.batch".into(), 1),
        ("check bad.batch --fail-on never".into(), 0),
        ("check none.sh".into(), 2),
        ("check no.txt".into(), 2),
        ("check seven.sh".into(), 1),
        ("check --rules".into(), 0),
        (format!("explain p.batch {packet}"), 0),
        (format!("explain p.batch {packet} --diff other.batch"), 1),
        (format!("explain p.batch {packet} --diff p.batch"), 0),
        ("explain p.batch nonsense".into(), 2),
        ("graph p.batch".into(), 0),
        ("graph none.sh".into(), 2),
        ("import p.batch".into(), 0),
        ("import refused.batch".into(), 1),
        ("import no.txt".into(), 2),
        ("test t.toml".into(), 0),
        ("test failing-t.toml".into(), 1),
        ("test t.toml failing-t.toml".into(), 1),
        ("test none.toml".into(), 2),
        (format!("try p.batch {LINK}"), 0),
        (format!("try seven.sh {LINK}"), 2),
        (format!("try seven.sh {LINK} --keep-going"), 0),
        (format!("try refused.batch {LINK}"), 2),
        ("try p.batch".into(), 2),
        ("sim s.toml".into(), 0),
        ("sim failing.toml".into(), 1),
        ("sim s.toml --check".into(), 0),
        ("bundle s.toml -o bundled".into(), 0),
        ("bundle --check bundled".into(), 0),
        ("bundle s.toml -o bundled".into(), 2),
        ("bundle p.batch -o other".into(), 2),
        ("bundle --check none".into(), 2),
        ("tune s.toml --set home.rtt=9ms..90ms --objective ping.p95 --tries 4".into(), 0),
        ("tune s.toml --set home.rtt=500ms..900ms --objective ping.p95 --tries 4".into(), 1),
        ("tune s.toml --set home.rtt=9ms --objective ping.p95".into(), 2),
        ("gym fixed:0.5 --traces lte --lines 1 --loads up --mean 500kbit --duration 1".into(), 0),
        ("gym --traces none.csv".into(), 2),
        ("gym tidegate tidegate".into(), 2),
        ("gym nosuch".into(), 2),
        ("sim p.batch".into(), 2),
        ("sim s.toml --policy nosuch".into(), 2),
        ("run p.batch".into(), 0),
        ("run seven.sh".into(), 7),
        ("run none.sh".into(), 127),
        ("policy list".into(), 0),
        ("policy show home.toml".into(), 0),
        ("policy show p.batch".into(), 2),
        ("policy from misfit.sh".into(), 1),
        ("policy from no.txt".into(), 2),
        ("sim s.toml -o r.json".into(), 0),
        ("compare r.json r.json".into(), 0),
        ("compare r.json no.txt".into(), 2),
        ("replay none".into(), 2),
        ("overhead --from sweep.txt".into(), 2),
        ("loss --received none.pcap".into(), 2),
        ("ping -r none.json".into(), 2),
        ("ping 127.0.0.1 -c 2 -i 0.01".into(), 0),
        ("completions bash".into(), 0),
        ("apply none.sh".into(), 2),
        ("apply no.txt --dry-run".into(), 2),
        ("daemon none.sh".into(), 2),
        ("status".into(), 1),
        ("confirm".into(), 1),
        ("revert".into(), 1),
        ("down".into(), 1),
        ("top --once".into(), 2),
        ("capture eth9".into(), 2),
    ];
    let rows: Vec<(&str, i32)> = rows.iter().map(|(line, code)| (line.as_str(), *code)).collect();
    must_end(&place, &rows);
    for command in ["quick", "measure", "loss", "overhead", "calibrate", "record"] {
        must_end(&place, &[(&format!("{command} host.invalid"), 2)]);
    }
    must_end(&place, &[("verify host.invalid --policy p.batch", 2), ("ping host.invalid", 2)]);
}

/// Without root, what needs it ends with 4, and says what is needed and what works without.
#[test]
fn what_is_not_permitted_ends_with_4() {
    if skip() {
        return;
    }
    let Some(computer) = Computer::new("exits-permitted") else {
        return;
    };
    let place = filled("exits-permitted");
    let executable = place.copy_of(Path::new(TIDEGATE));
    let as_nobody = |line: &str| {
        let mut command = Command::new(&executable);
        command.args(words(line)).current_dir(&place.0).env("TIDEGATE_RUN", place.0.join("run"));
        command.uid(NOBODY).gid(NOBODY);
        Computer::output(Some(&computer), command)
    };
    assert!(as_nobody("--version").expect("it runs").status.success());
    for line in ["apply p.batch", "apply p.batch --backend user", "daemon p.batch"] {
        let output = as_nobody(line).expect("it ran before");
        assert_eq!(output.status.code(), Some(4), "{line}\n{}", said(&output));
        for words in ["needs root (CAP_NET_ADMIN)", "work without"] {
            assert!(said(&output).contains(words), "{line}\n{}", said(&output));
        }
    }
    for (line, code) in [
        ("status", 1),
        ("check p.batch", 0),
        ("graph p.batch", 0),
        ("sim s.toml", 0),
        ("policy show home.toml", 0),
        ("apply none.sh", 2),
    ] {
        let output = as_nobody(line).expect("it ran before");
        assert_eq!(output.status.code(), Some(code), "{line}\n{}", said(&output));
    }
}
