//! `tidegate sim`: scenarios carried out, and what is wrong with those that cannot be.
//!
//! The requirements of a scenario are in it as expectations; a test runs it and checks its exit code.

use crate::common;

use common::{Place, TIDEGATE, skip};
use std::path::Path;
use std::process::{Command, Output};

fn sim(place: &Path, file: &str, options: &[&str]) -> Output {
    Command::new(TIDEGATE)
        .arg("sim")
        .arg(file)
        .args(options)
        .current_dir(place)
        .output()
        .expect("tidegate runs")
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Does everything hold that the scenario expects? And does it expect anything?
fn check(name: &str, text: &str) {
    let place = Place::new(name);
    place.file("x.toml", text);
    let output = sim(&place.0, "x.toml", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", out(&output));
    assert!(out(&output).contains("required figures hold"), "{}", out(&output));
}

/// One of the program's own scenarios, with a policy and a value from the command line.
#[test]
fn scenarios_of_the_program_take_values() {
    let place = Place::new("sim-library");
    let mine = "policies.mine.left=tc qdisc add dev eth0 root handle 1: codel target 1ms";
    let options = ["-d", "3s", "--policy", "fifo,mine", "--set", mine, "--set", "links.bottleneck.delay=5ms"];
    let output = sim(&place.0, "rfc7928/same-window", &options);
    let said = out(&output);
    assert!(output.status.success() && said.contains("\nmine  "), "{said}");
    let again = format!("--set '{mine}' --set links.bottleneck.delay=5ms --policy fifo --policy mine");
    assert!(said.contains(&again), "{said}");
    let unknown = sim(&place.0, "rfc7928/other", &[]);
    assert!(out(&unknown).contains("no such scenario; known: rfc7928/same-window"), "{}", out(&unknown));
    let none = sim(&place.0, "rfc7928/bursts", &["--set", "nosuch=2"]);
    assert!(out(&none).contains("with --set nosuch=2: rfc7928/bursts:"), "{}", out(&none));
    let wrong = sim(&place.0, "rfc7928/bursts", &["--set", "links.bottlenek.delay=5ms"]);
    assert!(out(&wrong).contains("--set links.bottlenek.delay: no `bottlenek` is there"), "{}", out(&wrong));
}

/// A host, a gateway, a slow line, a server.
const LINE: &str = include_str!("../../../scenario/tests/data/line.toml");

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let place = Place::new("sim-bytes");
    let policies = "[policies.fq]\ngateway = ['tc qdisc add dev eth1 root fq_codel', 'tc qdisc add dev eth0 \
    root sfq perturb 1']\n";
    let loads = "[loads.busy]\ntraffic = [{ tcp = 'a -> server', count = 2 }, { tcp = 'a <- server' }]\n";
    place.file("x.toml", format!("repeats = 3\n{LINE}[policies.none]\n{policies}{loads}"));
    let run = |options: &[&str]| sim(&place.0, "x.toml", options).stdout;
    let first = run(&["--json"]);
    assert!(first.len() > 10_000 && first == run(&["--json"]), "one seed, two results");
    assert_ne!(first, run(&["--json", "--seed", "2"]), "two seeds, one result");
    // What is written to a file is what is printed.
    let written =
        sim(&place.0, "x.toml", &["-o", "r.json", "--html", "r.html", "--svg", "svg", "--flent", "flent"]);
    assert_eq!(written.status.code(), Some(0), "{}", out(&written));
    let text = std::fs::read(place.0.join("r.json")).expect("a result");
    assert_eq!(text, first);
    let page = std::fs::read_to_string(place.0.join("r.html")).expect("a page");
    assert!(page.contains("<svg") && !page.contains("http://"), "a page that stands alone");
    let files = |dir: &str| std::fs::read_dir(place.0.join(dir)).expect("a directory").count();
    assert!(files("svg") > 2 && files("flent") == 6, "{} {}", files("svg"), files("flent"));
}

/// Outgoing packets have the gateway's own address, and replies find the host; downloads are requested from
/// inside.
#[test]
fn a_gateway_that_translates() {
    let text = "
warm-up = '2s'
duration = '10s'
[links.lan]
between = ['a', 'gateway:eth0']
[links.out]
between = ['gateway:eth1', 'isp:eth0']
rate = '5mbit'
[links.internet]
between = ['isp:eth1', 'server']
rate = '5mbit'
delay = '5ms'
[machines.gateway]
nat = 'eth1'
devices = { eth1 = { address = '203.0.113.4/24' } }
[policies.count]
gateway = ['iptables -A FORWARD -i eth1 -m state --state NEW -j DROP']
isp = ['tc qdisc add dev eth1 root handle 1: prio priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2',
  'tc filter add dev eth1 parent 1: protocol ip prio 1 u32 match ip src 203.0.113.4/32 flowid 1:1']
[[traffic]]
ping = 'a -> server'
every = '100ms'
[[traffic]]
tcp = 'a <- server'
[[traffic]]
tcp = 'a -> server'
[[traffic]]
dns = 'a -> server'
[[expect]]
figure = 'ping.loss'
below = '5%'
[[expect]]
figure = 'dns.loss'
below = '15%'
[[expect]]
figure = 'download.rate'
above = '3mbit'
[[expect]]
figure = 'upload.rate'
above = '3mbit'
[[expect]]
what = 'nobody sees the host itself'
figure = 'class isp:eth1 1:3.packets'
within = [0, 0]
";
    check("sim-nat", text);
    // Without the host's request the connection is a stranger's, and is dropped.
    let place = Place::new("sim-nat-asked");
    place.file("x.toml", text.replace("tcp = 'a <- server'", "tcp = 'server -> a'\nid = 'download'"));
    let output = sim(&place.0, "x.toml", &[]);
    assert_eq!(output.status.code(), Some(1), "{}", out(&output));
}

#[test]
fn timed_events_are_reported() {
    let place = Place::new("sim-timeline");
    let timeline = "[policies.none]\n[loads.up]\ntraffic = [{ tcp = 'a -> server' }]\n\
        [[at]]\ntime = '4s'\nrun = ['tc qdisc add dev eth1 root tbf rate 1mbit burst 5k latency 20ms', 'tc \
        qdisc show dev eth1']\n\
        [[at]]\ntime = '8s'\nlink = 'dsl'\nup = { rate = '500kbit' }\n\
        [[expect]]\nwhat = 'the line'\nfigure = 'upload.rate'\nbetween = ['2s', '4s']\nwithin = ['1.7mbit', \
        '2mbit']\n\
        [[expect]]\nwhat = 'the shaper'\nfigure = 'upload.rate'\nbetween = ['5s', '8s']\nwithin = \
        ['0.8mbit', '1mbit']\n\
        [[expect]]\nwhat = 'the slower line'\nfigure = 'upload.rate'\nbetween = ['9s', '12s']\nwithin = \
        ['0.4mbit', '0.5mbit']\n";
    place.file("x.toml", format!("{LINE}{timeline}"));
    let output = sim(&place.0, "x.toml", &["--at", "10s", "--", "tc", "-s", "qdisc", "show", "dev", "eth1"]);
    let text = out(&output);
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("4 s, gateway$ tc qdisc show dev eth1\nqdisc tbf 8001: root refcnt 2 rate 1Mbit"),
        "{text}"
    );
    assert!(text.contains("10 s, gateway$ tc -s qdisc show dev eth1\nqdisc tbf 8001: root"), "{text}");
}

#[test]
fn policies_in_files_are_taken_in() {
    if skip() {
        return;
    }
    let place = Place::new("sim-files");
    place.script(
        "p.sh",
        "#!/bin/sh\ntc qdisc add dev $1 root handle 1: tbf rate ${2}kbit burst 5k latency 50ms\n",
    );
    place.script(
        "again.sh",
        "#!/bin/sh\ntc qdisc del dev eth1 root\ntc qdisc add dev eth1 root handle 2: pfifo limit 5\n",
    );
    let policies = "[policies.slow]\ngateway = 'p.sh'\nargs = ['eth1', '500']\n\
        [[policies.slow.at]]\ntime = '6s'\nscript = 'again.sh'\npace = '100ms'\n\
        [loads.up]\ntraffic = [{ tcp = 'a -> server' }]\n\
        [[expect]]\nfigure = 'upload.rate'\nbetween = ['3s', '6s']\nwithin = ['0.4mbit', '0.5mbit']\n\
        [[expect]]\nfigure = 'upload.rate'\nbetween = ['8s', '12s']\nabove = '1.2mbit'\n";
    place.file("x.toml", format!("{LINE}{policies}"));
    let output = sim(&place.0, "x.toml", &[]);
    assert_eq!(output.status.code(), Some(0), "{}", out(&output));
    // A device that is not there, and a script with a mistake in it.
    for (from, to, reason) in [
        ("'eth1', '500'", "'eth7', '500'", "`gateway` has no device `eth7`"),
        ("'eth1', '500'", "'eth1', 'x'", "p.sh:2"),
        ("'p.sh'", "'q.sh'", "there is no file"),
    ] {
        place.file("y.toml", format!("{LINE}{policies}").replace(from, to));
        let output = sim(&place.0, "y.toml", &["--check"]);
        assert_eq!(output.status.code(), Some(2), "{}", out(&output));
        assert!(out(&output).contains(reason), "{}", out(&output));
    }
}

#[test]
fn impossible_scenarios_are_refused_before_anything_runs() {
    let place = Place::new("sim-wrong");
    let rows = [
        (
            "[policies.x]\ngateway = ['tc qdisc add dev eth7 root pfifo']\n",
            "x.toml:22:12: gateway: Cannot find device \"eth7\"",
        ),
        ("[policies.x]\ngateway = ['tc qdisc add dev eth1 root tbf rate fast']\n", "x.toml:22:12: gateway: "),
        (
            "[policies.x]\nserver = ['tc qdisc add dev eth1 root pfifo']\n",
            "x.toml:22:1: unknown machine `server`",
        ),
        ("[[expect]]\nfigure = 'pnig.mean'\n", "x.toml:22:10: no measurement is named `pnig.mean`"),
    ];
    for (text, reason) in rows {
        place.file("x.toml", format!("{LINE}{text}"));
        let output = sim(&place.0, "x.toml", &[]);
        assert_eq!(output.status.code(), Some(2), "{}", out(&output));
        assert!(out(&output).contains(reason), "{}\ninstead of {reason}", out(&output));
        assert!(out(&output).contains("\n     = "), "a remedy: {}", out(&output));
    }
    let output = sim(&place.0, "nobody.toml", &[]);
    assert_eq!(output.status.code(), Some(2), "{}", out(&output));
}

#[test]
fn a_required_figure_out_of_bounds_is_a_failure() {
    let place = Place::new("sim-failed");
    let expect =
        |gate: bool| format!("{LINE}[[expect]]\nfigure = 'ping.mean'\nbelow = '1ms'\ngate = {gate}\n");
    place.file("must.toml", expect(true));
    place.file("may.toml", expect(false));
    let codes = ["must.toml", "may.toml"].map(|file| sim(&place.0, file, &[]).status.code());
    assert_eq!(codes, [Some(1), Some(0)]);
    let text = out(&sim(&place.0, "must.toml", &[]));
    assert!(text.contains("FAILED") && text.contains("0 of 1 required figures hold"), "{text}");
}

/// A script that first clears away what an earlier run may have left is taken as `try` takes it.
#[test]
fn a_script_may_first_clear_away_what_is_not_there() {
    let place = Place::new("sim-clears");
    place.file("x.toml", format!("{LINE}[policies.x]\ngateway = 'policy.sh'\n"));
    let of = |line: &str| {
        place.file("policy.sh", format!("{line}\ntc qdisc add dev eth1 root pfifo\n"));
        sim(&place.0, "x.toml", &["--check"])
    };
    for line in ["tc qdisc del dev eth1 root", "iptables -t mangle -D POSTROUTING -j ACCEPT"] {
        let output = of(line);
        assert_eq!(output.status.code(), Some(0), "{}", out(&output));
    }
    assert_eq!(of("tc class add dev eth1 parent 1: classid 1:1 htb rate 1mbit").status.code(), Some(2));
}

/// A flood through a recorded link, with an outage: its figures are by the recording, whatever `rate` says.
#[test]
fn figures_of_recorded_links_are_those_of_the_recording() {
    let place = Place::new("sim-recorded");
    // 10 Mbit/s for 4 s, nothing for 1 s, 4 Mbit/s for 3 s: 52 Mbit in 8 s, 6.5 Mbit/s.
    place.file("line.csv", "time,rate_mbit\n0,10\n4,0\n5,4\n7,4\n8,10\n");
    let expect = |figure: &str, from: &str, to: &str| {
        format!("[[expect]]\nfigure = 'link line up.{figure}'\nabove = '{from}'\nbelow = '{to}'\n")
    };
    let scenario = [
        "warm-up = '0s'\nduration = '8s'\n[links.line]\nbetween = ['a', 'server']\ndelay = '5ms'\n",
        "up = { rate = '50mbit', buffer = '64kB', trace = { file = 'line.csv' } }\n",
        "[policies.none]\n[loads.up]\ntraffic = [{ flood = 'a -> server', rate = '20mbit', size = 1000 }]\n",
        &expect("rate", "6.4mbit", "6.6mbit"),
        &expect("utilisation", "98%", "101%"),
    ]
    .concat();
    place.file("flood.toml", &scenario);
    let output = sim(&place.0, "flood.toml", &["--mahimahi", "traces"]);
    assert_eq!(output.status.code(), Some(0), "{}", out(&output));
    // What it could carry, in rows of 1,500 bytes, to be used as a trace again.
    let names = std::fs::read_dir(place.0.join("traces")).expect("traces");
    let up =
        names.map(|entry| entry.expect("a name").path()).find(|path| path.ends_with("up-none-line-up.trace"));
    let text = std::fs::read_to_string(up.expect("the link's")).expect("a trace");
    let rows: Vec<u64> = text.lines().map(|row| row.parse().expect(row)).collect();
    assert!((4300..=4350).contains(&rows.len()), "{} rows", rows.len());
    assert!(!rows.iter().any(|ms| (4300..4900).contains(ms)), "nothing is carried in the outage");
    place.file(
        "event.toml",
        format!("{scenario}[[at]]\ntime = '3s'\nlink = 'line'\nup = {{ rate = '2mbit' }}\n"),
    );
    let refused = out(&sim(&place.0, "event.toml", &[]));
    assert!(refused.contains("a recording says the rate of this link"), "{refused}");
}
