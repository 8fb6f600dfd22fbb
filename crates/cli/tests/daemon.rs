//! `tidegate daemon` on a wire of its own: it shapes, answers, changes and ends as it should, on bad days
//! too.

mod common;

use common::wire::{WIRE, Wire, until};
use serde_json::{Value, json};
use std::process::Child;
use std::time::Duration;

/// A link that this machine's kernel could not shape: it may have no fq_codel.
const POLICY: &str = "tc qdisc add dev wire0 root handle 1: htb default 10
tc class add dev wire0 parent 1: classid 1:10 htb rate 50mbit
tc class add dev wire0 parent 1: classid 1:20 htb rate 10mbit
tc qdisc add dev wire0 parent 1:10 handle 10: fq_codel
tc filter add dev wire0 parent 1: protocol ip handle 7 fw classid 1:20
iptables -t mangle -A POSTROUTING -o wire0 -p udp --dport 9 -j MARK --set-mark 7
";

/// A daemon that is killed if a test fails.
struct Daemon<'w> {
    wire: &'w Wire,
    child: Child,
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl<'w> Daemon<'w> {
    /// Starts one and waits until packets pass through it.
    fn start(wire: &'w Wire, words: &[&str]) -> Daemon<'w> {
        let words: Vec<&str> = ["daemon"].iter().chain(words).copied().collect();
        let mut daemon = Daemon { wire, child: wire.start(&words) };
        until("the daemon is ready", || {
            let ended = daemon.child.try_wait().expect("a child");
            let output = std::fs::read_to_string(wire.room.join("said")).unwrap_or_default();
            assert!(ended.is_none(), "{ended:?}: {output}");
            daemon.status()["openings"].as_u64() > Some(0)
        });
        daemon
    }

    fn ask(&self, request: &Value) -> Value {
        self.wire.ask(WIRE, request).unwrap_or_else(|| {
            let output = std::fs::read_to_string(self.wire.room.join("said")).unwrap_or_default();
            json!({"no answer to": request, "said": output})
        })
    }

    fn status(&self) -> Value {
        self.ask(&json!({"ask": "status"}))
    }

    fn count(&self, what: &str) -> u64 {
        self.status()["counts"][what].as_u64().unwrap_or_else(|| panic!("{what}: {}", self.status()))
    }

    fn tc(&self, words: &str) -> (i64, String, String) {
        let words: Vec<&str> = words.split_whitespace().collect();
        let document = self.ask(&json!({"ask": "tc", "words": words}));
        let text = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
        (document["code"].as_i64().unwrap_or_else(|| panic!("{document}")), text("stdout"), text("stderr"))
    }

    /// Asks it to end, and waits.
    fn stop(mut self) {
        assert_eq!(self.ask(&json!({"ask": "stop"}))["stopping"], true);
        let ended = self.child.wait().expect("a child");
        assert!(ended.success(), "{ended:?}");
    }
}

/// Nothing of tidegate's is on the near machine any more.
fn nothing_is_left(wire: &Wire) {
    until("our devices are gone", || wire.links().iter().all(|link| !link.starts_with("tidegate")));
    // They go with their socket, which the kernel sees to after the process has ended.
    until("our tables are gone", || {
        let tables = wire.near.go(|| tidegate_netlink::Netfilter::open().and_then(|mut door| door.tables()));
        tables.expect("place").expect("nftables").is_empty()
    });
}

#[test]
fn packets_are_queued_by_qdiscs_that_the_kernel_may_lack() {
    let Some(wire) = Wire::lay("shapes") else { return };
    let daemon = Daemon::start(&wire, &[&wire.file("policy.sh", POLICY)]);
    wire.transfer(3_000_000);
    let (code, listing, _) = daemon.tc("-s qdisc show dev wire0");
    assert!(code == 0 && listing.contains("qdisc fq_codel 10: parent 1:10 limit 10240p"), "{listing}");
    let snapshot = daemon.ask(&json!({"ask": "snapshot"}));
    let device = &snapshot["devices"][0];
    assert_eq!((&device["name"], &device["link_rate_bps"]), (&json!("wire0"), &json!(50_000_000)));
    let raw = device["qdiscs"][0]["bytes"].as_u64().expect("counted");
    assert!(raw > 3_000_000, "{raw} bytes passed");
    // What waits is waiting nowhere else: all that was taken in has gone, one way or the other.
    // One answer, since packets may come between two.
    let status = daemon.status();
    let counts = |name: &str| status["counts"][name].as_u64().expect("counted");
    let gone = counts("passed") + counts("dropped") + counts("full");
    assert_eq!(counts("received"), gone + status["held_packets"].as_u64().unwrap_or(0));
    daemon.stop();
    nothing_is_left(&wire);
    wire.transfer(1000);
}

#[test]
fn the_kernel_sets_the_marks_and_the_engine_heeds_them() {
    let Some(wire) = Wire::lay("marks") else { return };
    let daemon = Daemon::start(&wire, &[&wire.file("policy.sh", POLICY)]);
    let sent = wire.near.go(|| {
        let socket = std::net::UdpSocket::bind("10.8.0.2:0")?;
        (0..5).try_for_each(|_| socket.send_to(&[0; 100], "10.8.0.1:9").map(drop))
    });
    sent.expect("place").expect("sent");
    until("five packets are in the class of the mark", || {
        let (_, listing, _) = daemon.tc("-s class show dev wire0");
        listing.split("class htb ").any(|class| class.starts_with("1:20") && class.contains(" 5 pkt"))
    });
    daemon.stop();
    nothing_is_left(&wire);
}

/// What a daemon runs is known to those who ask about this computer: a dry run shows only what would change,
/// `import --live` prints it, `doctor` checks it.
#[test]
fn the_policy_of_a_daemon_is_planned_from_imported_and_checked() {
    let Some(wire) = Wire::lay("known") else { return };
    let policy = wire.file("policy.sh", POLICY);
    let dry = |policy: &str| done(&wire.tidegate(&["apply", "--backend", "user", "--dry-run", policy]));
    let first = dry(&policy);
    assert!(first.contains("+ tc class add dev wire0 parent 1: classid 1:20"), "{first}");
    assert!(first.contains("+ nft table inet tidegate-wire0: 1 rule\n"), "{first}");
    let daemon = Daemon::start(&wire, &[&policy]);
    let same = dry(&policy);
    assert!(same.contains("nothing to change: the policy is already in place"), "{same}");
    let other = POLICY.replace("rate 10mbit", "rate 12mbit").replace("iptables", "# iptables");
    let changed = dry(&wire.file("other.sh", &other));
    assert!(changed.contains("~ tc class change dev wire0 parent 1: classid 1:20"), "{changed}");
    assert!(changed.contains("- nft table inet tidegate-wire0\n"), "{changed}");
    assert!(!changed.contains("1:10 htb"), "what stays is not listed: {changed}");

    let imported = done(&wire.tidegate(&["import", "--live"]));
    assert_eq!(imported, POLICY);

    // More is guaranteed to the classes than their parent has.
    let over = "tc qdisc add dev wire0 root handle 1: htb default 10
tc class add dev wire0 parent 1: classid 1:1 htb rate 10mbit ceil 10mbit
tc class add dev wire0 parent 1:1 classid 1:10 htb rate 9mbit ceil 10mbit
tc class add dev wire0 parent 1:1 classid 1:20 htb rate 9mbit ceil 10mbit
tc filter add dev wire0 parent 1: protocol ip u32 match ip dport 9 0xffff flowid 1:20
";
    daemon.stop();
    let daemon = Daemon::start(&wire, &[&wire.file("over.sh", over)]);
    let output = wire.tidegate(&["doctor", "--duration", "200ms", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    assert!(found.to_string().contains("R3"), "{found:#}");
    daemon.stop();
    nothing_is_left(&wire);
    let nothing = wire.tidegate(&["import", "--live"]);
    let why = String::from_utf8_lossy(&nothing.stderr).into_owned();
    assert!(nothing.status.success() && nothing.stdout.is_empty(), "{why}");
    assert_eq!(why, "tidegate import: this computer has no traffic control beyond the kernel's defaults\n");
}

#[test]
fn a_second_one_on_a_device_is_refused() {
    let Some(wire) = Wire::lay("second") else { return };
    let policy = wire.file("policy.sh", POLICY);
    let daemon = Daemon::start(&wire, &[&policy]);
    let second = wire.tidegate(&["daemon", &policy]);
    let stderr = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(2));
    assert_eq!(
        stderr.trim(),
        "tidegate daemon: `wire0` is shaped by another tidegate already; `tidegate down wire0` ends that one"
    );
    assert_eq!(daemon.status()["last_error"], Value::Null);
    daemon.stop();
}

#[test]
fn what_cannot_be_run_is_refused_and_nothing_is_touched() {
    let Some(wire) = Wire::lay("refused") else { return };
    let output_of = |text: &str, words: &[&str]| {
        let policy = wire.file("policy.sh", text);
        let words: Vec<&str> = ["daemon", &policy].iter().chain(words).copied().collect();
        let output = wire.tidegate(&words);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stderr).trim().to_owned()
    };
    assert_eq!(
        output_of("tc qdisc add dev eth7 root fq_codel", &[]),
        "tidegate daemon: there is no device `eth7` here; there are wire0. Bind the policy to one of them \
        with --dev"
    );
    assert_eq!(
        output_of("true", &[]),
        "tidegate daemon: the policy queues nothing on any device; there is nothing to run"
    );
    let tags = "tc qdisc add dev wire0 clsact\ntc filter add dev wire0 egress protocol ip matchall action \
    vlan push id 7";
    assert!(output_of(tags, &[]).contains("pushes or pops VLAN tags"), "{}", output_of(tags, &[]));
    assert!(output_of(POLICY, &["--pid", "999999999"]).contains("there is no process 999999999"));
    nothing_is_left(&wire);
}

#[test]
fn a_daemon_that_is_killed_leaves_a_link_that_works() {
    let Some(wire) = Wire::lay("killed") else { return };
    let policy = wire.file("policy.sh", POLICY);
    let mut daemon = Daemon::start(&wire, &[&policy]);
    let ((), sent, arrived) = wire.stream(Duration::from_millis(1), |arrived| {
        until("datagrams pass through it", || arrived() > 150);
        daemon.child.kill().expect("it is ours");
        daemon.child.wait().expect("it is ours");
        nothing_is_left(&wire);
        let then = arrived();
        until("datagrams pass without it", || arrived() > then + 150);
    });
    println!("kill -9: {} of {sent} datagrams lost", sent - arrived);
    assert!(arrived * 10 > sent * 9, "{arrived} of {sent}: new packets flow");
    drop(daemon);
    // The lock went with it.
    Daemon::start(&wire, &[&policy]).stop();
}

#[test]
fn a_device_that_goes_and_comes_back_is_followed() {
    let Some(wire) = Wire::lay("gone") else { return };
    let daemon = Daemon::start(&wire, &[&wire.file("policy.sh", POLICY)]);
    wire.transfer(100_000);
    wire.unplug(WIRE);
    until("it says so", || daemon.status()["last_error"].is_string());
    let (code, listing, _) = daemon.tc("qdisc show dev wire0");
    assert!(code == 0 && listing.contains("fq_codel"), "it remembers: {listing}");
    wire.plug(WIRE);
    until("packets pass again", || daemon.status()["openings"] == 2);
    let before = daemon.count("passed");
    wire.transfer(100_000);
    assert!(daemon.count("passed") > before + 60);
    daemon.stop();
    nothing_is_left(&wire);
}

#[test]
fn a_device_that_is_renamed_or_resized_is_the_same() {
    let Some(wire) = Wire::lay("renamed") else { return };
    let daemon = Daemon::start(&wire, &[&wire.file("policy.sh", POLICY)]);
    wire.near
        .go(|| {
            use tidegate_sys::netlink::{LinkUpdate, Links};
            let mut links = Links::open()?;
            links.change(WIRE, &LinkUpdate { mtu: Some(1400), txqlen: Some(77), ..LinkUpdate::default() })?;
            links.change(WIRE, &LinkUpdate { up: Some(false), ..LinkUpdate::default() })?;
            links.change(WIRE, &LinkUpdate { name: Some("wan7".into()), ..LinkUpdate::default() })?;
            links.change("wan7", &LinkUpdate { up: Some(true), ..LinkUpdate::default() })
        })
        .expect("place")
        .expect("it is changed");
    until("the machine calls it so", || daemon.tc("qdisc show dev wan7").1.contains("fq_codel"));
    assert_eq!(
        (daemon.status()["openings"].clone(), daemon.status()["last_error"].clone()),
        (json!(1), Value::Null)
    );
    daemon.stop();
}

#[test]
fn a_thousand_reloads_under_load_lose_nothing() {
    let Some(wire) = Wire::lay("reloads") else { return };
    let daemon = Daemon::start(&wire, &[&wire.file("policy.sh", POLICY)]);
    let policy = |rate: &str, more: &[&str]| {
        let all = POLICY.replace("50mbit", rate);
        let commands =
            all.lines().chain(more.iter().copied()).map(|line| line.split(' ').collect::<Vec<_>>());
        json!({"ask": "reload", "commands": commands.collect::<Vec<_>>()})
    };
    let extra = "tc class add dev wire0 parent 1: classid 1:30 htb rate 1mbit";
    let ((), sent, arrived) = wire.stream(Duration::from_millis(1), |_| {
        for turn in 0..1000 {
            let document = match turn % 2 {
                0 => daemon.ask(&policy("40mbit", &[extra])),
                _ => daemon.ask(&policy("50mbit", &[])),
            };
            assert_eq!(
                (&document["reloaded"], &document["changed"]),
                (&json!(true), &json!(2)),
                "turn {turn}: {document}"
            );
        }
    });
    assert_eq!((daemon.count("dropped"), daemon.count("nowhere"), daemon.count("full")), (0, 0, 0));
    assert_eq!(arrived, sent, "each datagram arrived");
    // One that is refused leaves all as it was.
    let before = daemon.tc("class show dev wire0").1;
    let document =
        daemon.ask(&policy("30mbit", &["tc class add dev wire0 parent 9: classid 9:1 htb rate 1mbit"]));
    assert!(document["error"].as_str().is_some_and(|error| error.contains("9:1")), "{document}");
    assert_eq!(daemon.tc("class show dev wire0").1, before);
    daemon.stop();
    nothing_is_left(&wire);
}

#[test]
fn tc_changes_what_runs_and_is_refused_as_by_the_kernel() {
    let Some(wire) = Wire::lay("tc") else { return };
    let daemon = Daemon::start(&wire, &[&wire.file("policy.sh", POLICY)]);
    assert_eq!(daemon.tc("class change dev wire0 parent 1: classid 1:10 htb rate 60mbit").0, 0);
    assert!(daemon.tc("class show dev wire0").1.contains("class htb 1:10 root leaf 10: prio 0 rate 60Mbit"));
    let (code, _, output) = daemon.tc("class add dev wire0 parent 9: classid 9:1 htb rate 1mbit");
    assert_eq!((code, output.lines().next()), (2, Some("RTNETLINK answers: No such file or directory")));
    let lines = "class change dev wire0 parent 1: classid 1:10 htb rate 61mbit\nqdisc change dev wire0 \
    parent 1:10 fq_codel target 9ms\n";
    let document = daemon.ask(&json!({"ask": "tc", "words": ["-batch", "-"], "input": lines}));
    assert_eq!(document["code"], 0, "{document}");
    assert!(daemon.tc("qdisc show dev wire0").1.contains("target 9ms"));
    daemon.stop();
}

#[test]
fn devices_are_followed_by_their_names() {
    let Some(wire) = Wire::lay("names") else { return };
    let policy = wire.file("policy.sh", POLICY);
    let mut daemon = Daemon { wire: &wire, child: wire.start(&["daemon", &policy, "--dev", "w?re*"]) };
    until("there is one on the wire", || daemon.status()["openings"] == 1);
    wire.unplug(WIRE);
    until("it is gone", || wire.ask(WIRE, &json!({"ask": "status"})).is_none());
    wire.plug(WIRE);
    until("there is another", || daemon.status()["openings"] == 1);
    tidegate_sys::process::request_termination(daemon.child.id());
    assert!(daemon.child.wait().expect("a child").success());
    nothing_is_left(&wire);
}

/// One of several devices that are followed is taken down: it stays so, the others and those that come are
/// not concerned.
#[test]
fn a_followed_device_that_is_taken_down_stays_down() {
    let Some(wire) = Wire::lay("keeps") else { return };
    let policy = wire.file("policy.sh", POLICY);
    let link = |name: &'static str| {
        wire.near.go(move || {
            let mut links = tidegate_sys::netlink::Links::open()?;
            links.create_like(name, "dummy", 1000)
        })
    };
    let daemon = |name: &str| wire.ask(name, &json!({"ask": "status"})).map(|status| status["pid"].clone());
    let start = || Daemon { wire: &wire, child: wire.start(&["daemon", &policy, "--dev", "w?re*"]) };
    link("wire1").expect("place").expect("a device");
    let mut follower = start();
    until("both are shaped", || daemon(WIRE).is_some() && daemon("wire1").is_some());
    let other = daemon("wire1");
    let output = done(&wire.tidegate(&["down", WIRE]));
    let pid = follower.child.id();
    assert!(output.starts_with(&format!("down: {WIRE}\n")), "{output}");
    assert!(
        output.contains(&format!("(pid {pid}) leaves {WIRE} alone until {WIRE} comes again")),
        "{output}"
    );
    // It looks at all devices again when another one comes: what is shaped then, is shaped by what it does
    // now.
    link("wire2").expect("place").expect("a device");
    until("the new one is shaped", || daemon("wire2").is_some());
    assert_eq!((daemon(WIRE), daemon("wire1")), (None, other));
    let heard = std::fs::read_to_string(wire.room.join("said")).expect("it says something");
    assert!(heard.contains(&format!("{WIRE} was taken down by `tidegate down`")), "{heard}");
    // Another device of this name has nothing to do with messages about the old one.
    wire.unplug(WIRE);
    let marker = || {
        let rooms = std::fs::read_dir(&wire.room).expect("a directory").flatten();
        rooms.map(|room| room.path().join(format!("{WIRE}.down"))).any(|path| path.exists())
    };
    until("it is missed", || !marker());
    wire.plug(WIRE);
    until("it is shaped again", || daemon(WIRE).is_some());
    // One that does not answer is killed, and not started again either.
    signal(&daemon(WIRE).expect("it answers"), "STOP");
    done(&wire.tidegate(&["down", WIRE]));
    until("it is told", || {
        let heard = std::fs::read_to_string(wire.room.join("said")).expect("it says something");
        heard.matches("was taken down by").count() == 2
    });
    assert_eq!(daemon(WIRE), None);
    // Started again, it takes all of them; `down` ends it with all of them.
    tidegate_sys::process::signal_to_end(pid);
    assert!(follower.child.wait().expect("a child").success());
    drop(follower);
    let mut follower = start();
    until("all are shaped", || [WIRE, "wire1", "wire2"].iter().all(|name| daemon(name).is_some()));
    // Nor does one that hangs keep its follower.
    signal(&daemon("wire1").expect("it answers"), "STOP");
    let output = done(&wire.tidegate(&["down"]));
    let ended = format!(
        "down: {WIRE}, wire1, wire2\nended: the daemon that follows devices (pid {})\n",
        follower.child.id()
    );
    assert_eq!(output, ended);
    follower.child.wait().expect("a child");
    assert_eq!(health(&wire).0, Some(1));
    nothing_is_left(&wire);
}

#[test]
fn a_service_manager_is_notified_of_start_and_stop() {
    let Some(wire) = Wire::lay("notify") else { return };
    let policy = wire.file("policy.sh", POLICY);
    let place = wire.room.join("notify");
    let heard = std::os::unix::net::UnixDatagram::bind(&place).expect("a socket");
    heard.set_read_timeout(Some(common::wire::LIMIT)).expect("a limit");
    let mut command = std::process::Command::new(common::TIDEGATE);
    command.args(["daemon", &policy]).env("TIDEGATE_RUN", &wire.room).env("NOTIFY_SOCKET", &place);
    let child = wire.near.go(move || command.spawn()).expect("place").expect("it starts");
    let daemon = Daemon { wire: &wire, child };
    let output_of = || {
        let mut room = [0; 200];
        let bytes = heard.recv(&mut room).expect("it says something");
        String::from_utf8_lossy(&room[..bytes]).into_owned()
    };
    assert_eq!(output_of(), "READY=1\nSTATUS=packets pass through tidegate");
    assert!(wire.links().iter().any(|link| link.starts_with("tidegate")), "packets pass by then");
    daemon.stop();
    assert_eq!(output_of(), "STOPPING=1");
}

#[test]
fn a_full_disk_stops_no_packets() {
    let Some(wire) = Wire::lay("full") else { return };
    let policy = wire.file("policy.sh", POLICY);
    let tidegate = common::TIDEGATE;
    let script =
        wire.file("full.sh", &format!("exec {tidegate} daemon {policy} --dev 'wire*' >/dev/full 2>&1"));
    let room = wire.room.clone();
    let child =
        wire.near.go(move || std::process::Command::new("sh").arg(script).env("TIDEGATE_RUN", room).spawn());
    let mut daemon = Daemon { wire: &wire, child: child.expect("place").expect("it starts") };
    until("packets pass through it though it cannot say so", || daemon.status()["openings"] == 1);
    wire.transfer(10_000);
    tidegate_sys::process::request_termination(daemon.child.id());
    assert!(daemon.child.wait().expect("a child").success());
}

#[test]
fn what_is_ip_comes_by_netfilters_queues_too() {
    let Some(wire) = Wire::lay("nfqueue") else { return };
    let both = format!(
        "ip link add ifb0 type ifb\n{POLICY}tc qdisc add dev wire0 handle ffff: ingress
tc filter add dev wire0 parent ffff: protocol ip u32 match u32 0 0 action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root fq_codel\n"
    );
    let policy = wire.file("policy.sh", &both);
    let mut daemon = Daemon::start(&wire, &[&policy, "--packet-io", "nfqueue"]);
    assert_eq!(daemon.status()["packet_io"], "nfqueue");
    wire.transfer(1_000_000);
    let packets = |device: &str| {
        let (_, listing, _) = daemon.tc(&format!("-s -j qdisc show dev {device}"));
        let document: Value = serde_json::from_str(&listing).expect("JSON");
        document[0]["packets"].as_u64().expect("counted")
    };
    assert!(packets("wire0") > 15, "what leaves: {}", packets("wire0"));
    assert!(packets("ifb0") > 5, "what arrives: {}", packets("ifb0"));
    daemon.child.kill().expect("it is ours");
    daemon.child.wait().expect("it is ours");
    nothing_is_left(&wire);
    wire.transfer(1000);
}

#[test]
fn a_container_is_reached_by_a_pair_of_devices_of_ours() {
    let Some(wire) = Wire::lay("tun") else { return };
    let policy = wire.file("policy.sh", &POLICY.replace("wire0", "edge0"));
    // Something in the far machine, which nothing but our devices joins to this one on those addresses.
    let inside = wire.far.go(|| std::process::Command::new("sleep").arg("1000").spawn());
    let mut inside = inside.expect("place").expect("it starts");
    let pid = inside.id().to_string();
    let words =
        ["daemon", &policy, "--packet-io", "tun", "--inside", &pid, "--addresses", "10.99.0.1,10.99.0.2"];
    let mut daemon = Daemon { wire: &wire, child: wire.start(&words) };
    let ready =
        || wire.ask("edge0", &json!({"ask": "status"})).is_some_and(|status| status["packet_io"] == "tun");
    until("packets pass", ready);
    let listener = wire
        .far
        .go(|| std::net::UdpSocket::bind("10.99.0.2:7"))
        .expect("place")
        .expect("the address is there");
    listener.set_read_timeout(Some(common::wire::LIMIT)).expect("a limit");
    let sent = wire.near.go(|| std::net::UdpSocket::bind("10.99.0.1:0")?.send_to(b"hello", "10.99.0.2:7"));
    sent.expect("place").expect("sent");
    let mut room = [0; 10];
    let (bytes, from) = listener.recv_from(&mut room).expect("it arrives");
    assert_eq!((&room[..bytes], from.ip().to_string()), (&b"hello"[..], "10.99.0.1".to_owned()));
    let back = wire.far.go(|| std::net::UdpSocket::bind("10.99.0.2:0")?.send_to(b"hello", "10.99.0.1:7"));
    back.expect("place").expect("sent");
    assert!(wire.ask("edge0", &json!({"ask": "stop"})).is_some());
    assert!(daemon.child.wait().expect("a child").success());
    inside.kill().expect("ours");
    inside.wait().expect("ours");
    assert!(wire.links().iter().all(|link| link != "edge0"));
}

/// The output of `status`: the code of the first policy's condition (its exit code, if there is none), and
/// that policy.
fn health(wire: &Wire) -> (Option<i32>, Value) {
    let output = wire.tidegate(&["status", "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let document = &document["policies"];
    let code = document[0]["code"].as_i64().and_then(|code| i32::try_from(code).ok());
    (code.or(output.status.code()), document[0].clone())
}

fn done(output: &std::process::Output) -> String {
    let stderr =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{stderr}");
    stderr
}

fn signal(pid: &Value, name: &str) {
    let pid = pid.as_u64().expect("a process").to_string();
    assert!(std::process::Command::new("kill").args(["-s", name, &pid]).status().expect("kill").success());
}

#[test]
fn what_a_dead_daemon_that_was_started_by_hand_left_goes_with_down() {
    let Some(wire) = Wire::lay("dead") else { return };
    let policy = wire.file("policy.sh", POLICY);
    let mut daemon = Daemon::start(&wire, &[&policy]);
    daemon.child.kill().expect("a child");
    daemon.child.wait().expect("a child");
    assert_eq!(health(&wire).0, Some(7));
    let text = String::from_utf8_lossy(&wire.tidegate(&["status"]).stdout).into_owned();
    assert!(
        text.contains("start it as it was started by hand, or `tidegate down wire0` forgets it"),
        "{text}"
    );
    assert_eq!(done(&wire.tidegate(&["down"])).trim(), format!("down: {WIRE}"));
    assert_eq!(health(&wire).0, Some(1));
}

#[test]
fn status_tells_how_a_daemon_is() {
    let Some(wire) = Wire::lay("health") else { return };
    let policy = wire.file("policy.sh", POLICY);
    let apply = || done(&wire.tidegate(&["apply", "--backend", "user", &policy]));
    apply();
    let (code, document) = health(&wire);
    assert_eq!(
        (code, &document["condition"], &document["packet_io"]),
        (Some(0), &"installed".into(), &"capture".into()),
        "{document:#}"
    );
    assert!(document["lateness_ns"].is_u64() && document["starts"] == 1, "{document:#}");
    let text = done(&wire.tidegate(&["status"]));
    assert!(text.contains(", started once since boot\n"), "{text}");

    // Changed by hand.
    done(&wire.tidegate(&[
        "tc", "class", "change", "dev", WIRE, "parent", "1:", "classid", "1:20", "htb", "rate", "11mbit",
    ]));
    let (code, document) = health(&wire);
    let drift = document["drift"][0].as_str().unwrap_or_default().to_owned();
    assert!(
        code == Some(5) && drift.contains("classid 1:20 htb") && drift.contains("rate 10Mbit"),
        "{document:#}"
    );
    apply();
    assert_eq!(health(&wire).0, Some(0), "apply puts it back");

    // Its device is gone, and comes back.
    wire.unplug(WIRE);
    until("it is missed", || health(&wire).0 == Some(6));
    wire.plug(WIRE);
    until("it is back", || health(&wire).0 == Some(0));

    // It hangs: it is not called dead, and down ends it all the same.
    let pid = health(&wire).1["daemon"]["pid"].clone();
    signal(&pid, "STOP");
    let (code, document) = health(&wire);
    assert_eq!((code, &document["condition"]), (Some(8), &"daemon not answering".into()), "{document:#}");
    let silence = format!(
        "the daemon (pid {pid}) does not answer: it was stopped (SIGSTOP); `kill -CONT {pid}` lets it go on"
    );
    assert_eq!(document["last_error"], *silence);
    let output_of = |words: &[&str]| {
        let output = wire.tidegate(words);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for words in [&["top", "--once"][..], &["top", WIRE], &["tc", "qdisc", "show"], &["capture", WIRE]] {
        assert_eq!(
            output_of(words),
            (Some(2), format!("tidegate {}: {WIRE}: {silence}\n", words[0])),
            "{words:?}"
        );
    }
    for words in [&["metrics", "--once"][..], &["metrics", "--once", WIRE]] {
        let metrics = done(&wire.tidegate(words));
        assert!(
            metrics.lines().any(|line| line.starts_with("tidegate_up{") && line.ends_with(" 0")),
            "{metrics}"
        );
    }
    let text = String::from_utf8_lossy(&wire.tidegate(&["status"]).stdout).into_owned();
    assert!(text.contains(&format!("  {silence}; `tidegate down {WIRE}` ends it\n")), "{text}");
    let doctor = wire.tidegate(&["doctor", "--duration", "200ms"]);
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    let finding =
        format!("bad [policy-not-working] the policy of {WIRE} is not at work (daemon not answering)");
    assert!(doctor.status.code() == Some(1) && text.contains(&finding), "{text}");
    done(&wire.tidegate(&["down"]));
    assert_eq!(health(&wire).0, Some(1));
    nothing_is_left(&wire);

    // It is dead.
    apply();
    signal(&health(&wire).1["daemon"]["pid"], "KILL");
    until("it is dead", || health(&wire).0 == Some(7));
    let text = String::from_utf8_lossy(&wire.tidegate(&["status"]).stdout).into_owned();
    let again = format!("to start it again: tidegate apply --backend user {policy}\n");
    assert!(text.contains(&again), "{text}");
    let top = wire.tidegate(&["top", "--once"]);
    let why = String::from_utf8_lossy(&top.stderr).into_owned();
    assert!(top.status.code() == Some(2) && why.contains("the daemon of `wire0` died"), "{why}");
    let metrics = done(&wire.tidegate(&["metrics", "--once"]));
    let has = |name: &str, value: &str| {
        metrics.lines().any(|line| line.starts_with(&format!("{name}{{")) && line.ends_with(value))
    };
    assert!(has("tidegate_up", " 0") && has("tidegate_trouble", " 1"), "{metrics}");
    apply();
    let metrics = done(&wire.tidegate(&["metrics", "--once"]));
    let has = |name: &str, value: &str| {
        metrics.lines().any(|line| line.starts_with(&format!("{name}{{")) && line.ends_with(value))
    };
    assert!(
        has("tidegate_up", " 1") && has("tidegate_trouble", " 0") && has("tidegate_drift", " 0"),
        "{metrics}"
    );
    assert!(has("tidegate_restarts_total", " 2"), "{metrics}");
    assert!(metrics.contains("\ntidegate_engine_lateness_seconds{"), "{metrics}");
    let other = wire.file("other.sh", &POLICY.replace("50mbit", "40mbit"));
    done(&wire.tidegate(&["apply", "--backend", "user", &other, "--confirm", "3600s"]));
    let metrics = done(&wire.tidegate(&["metrics", "--once"]));
    let left =
        metrics.lines().find_map(|line| line.strip_prefix("tidegate_revert_seconds{")?.rsplit_once(' '));
    let left: f64 = left.and_then(|(_, left)| left.parse().ok()).unwrap_or_else(|| panic!("{metrics}"));
    assert!((3000.0..=3600.0).contains(&left), "{left}");
    done(&wire.tidegate(&["down"]));
    nothing_is_left(&wire);
}

/// A policy that is applied again is in place already; one that was changed by hand is brought back. Either
/// way a revert leads to what was before it, not to itself.
#[test]
fn the_same_policy_again_is_no_step_to_revert() {
    let Some(wire) = Wire::lay("again") else { return };
    let first = wire.file("first.sh", POLICY);
    let second = wire.file("second.sh", &POLICY.replace("50mbit", "40mbit"));
    let apply = |policy: &str| done(&wire.tidegate(&["apply", "--backend", "user", policy]));
    let classes = || done(&wire.tidegate(&["tc", "class", "show", "dev", WIRE]));
    apply(&first);
    let installed = classes();
    apply(&second);
    assert_ne!(classes(), installed);
    let again = wire.tidegate(&["apply", "--backend", "user", &second, "--json"]);
    let document: Value = serde_json::from_str(&done(&again)).expect("JSON");
    assert_eq!((&document["changed"], &document["applied"]), (&json!(false), &json!(true)), "{document:#}");
    let changed = classes();
    done(&wire.tidegate(&["tc", "qdisc", "add", "dev", WIRE, "parent", "1:20", "sfq"]));
    assert_eq!(health(&wire).0, Some(5));
    apply(&second);
    assert_eq!((health(&wire).0, classes()), (Some(0), changed));
    done(&wire.tidegate(&["revert"]));
    assert_eq!(classes(), installed);
    done(&wire.tidegate(&["revert"]));
    nothing_is_left(&wire);
}

#[test]
fn another_packet_io_backend_is_refused_and_not_passed_over() {
    let Some(wire) = Wire::lay("otherdoor") else { return };
    let policy = wire.file("policy.sh", POLICY);
    done(&wire.tidegate(&["apply", "--backend", "user", "--packet-io", "capture", &policy]));
    let output = wire.tidegate(&["apply", "--backend", "user", "--packet-io", "nfqueue", &policy]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(
        stderr.contains("the daemon takes packets by capture and cannot change to nfqueue while it runs"),
        "{stderr}"
    );
    // Its advice works.
    let again = format!("tidegate apply --backend user --packet-io nfqueue {policy}");
    assert!(stderr.contains(&format!("`tidegate down wire0`, then `{again}`")), "{stderr}");
    assert_eq!((health(&wire).0, health(&wire).1["packet_io"].clone()), (Some(0), json!("capture")));
    let output = wire.tidegate(&["apply", "--backend", "user", "--realtime", &policy]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr.contains(&format!("then `tidegate apply --backend user --realtime {policy}`")),
        "{stderr}"
    );
    done(&wire.tidegate(&["down", WIRE]));
    let words: Vec<&str> = again.split(' ').skip(1).collect();
    done(&wire.tidegate(&words));
    assert_eq!((health(&wire).0, health(&wire).1["packet_io"].clone()), (Some(0), json!("nfqueue")));
    done(&wire.tidegate(&["down"]));
    // As many messages as there are: with real-time scheduling, where we may.
    let output = wire.tidegate(&["apply", "--backend", "user", "--realtime", &policy]);
    if output.status.success() {
        assert_eq!(health(&wire).1["daemon"]["realtime"], true);
        done(&wire.tidegate(&["down"]));
    }
    nothing_is_left(&wire);
}

/// The kernel's own shaper is left as it is, and reported as bypassed.
#[test]
fn an_installed_shaper_that_is_bypassed_is_reported() {
    let Some(wire) = Wire::lay("standing") else { return };
    let installed = || {
        wire.near.go(|| {
            let mut kernel = tidegate_netlink::Kernel::open().expect("netlink");
            kernel
                .qdiscs(WIRE)
                .expect("it is there")
                .qdiscs
                .iter()
                .map(|qdisc| (qdisc.kind, qdisc.handle))
                .collect::<Vec<_>>()
        })
    };
    let words: Vec<String> = "qdisc add dev wire0 root handle 7: tbf rate 90mbit burst 100k latency 50ms"
        .split(' ')
        .map(String::from)
        .collect();
    let made = wire.near.go(move || {
        match tidegate_syntax::tc::parse(&words, &tidegate_syntax::Env::default())
            .map(|parsed| parsed.command)
        {
            Ok(tidegate_syntax::tc::TcCommand::Apply(op)) => tidegate_netlink::Kernel::open()
                .expect("netlink")
                .apply(&op)
                .map_err(|error| error.to_string()),
            other => panic!("{other:?}"),
        }
    });
    if let Err(error) = made.expect("place") {
        println!("left out: this kernel has no tbf ({error})");
        return;
    }
    let before = installed().expect("place");
    let policy = wire.file("policy.sh", POLICY);
    let output = done(&wire.tidegate(&["apply", "--backend", "user", "--packet-io", "capture", &policy]));
    assert!(
        output.contains(
            "wire0 has the kernel's tbf 7:: packets bypass it while tidegate's daemon has the device \
            (capture)"
        ),
        "{output}"
    );
    let output = done(&wire.tidegate(&["down"]));
    assert!(output.contains("down: wire0"), "{output}");
    assert_eq!(installed().expect("place"), before);
    wire.transfer(1000);
}

/// A container that has a device and a default route of its own keeps both, and uses ours while it is there.
#[test]
fn a_container_with_a_default_route_is_reached_too() {
    let Some(wire) = Wire::lay("route") else { return };
    let policy = wire.file("policy.sh", &POLICY.replace("wire0", "edge0"));
    let own = wire.far.go(|| {
        use tidegate_sys::netlink::Links;
        let mut links = Links::open()?;
        links.create_like("eth0", "dummy", 1000)?;
        links.add_default_route(WIRE, "10.8.0.1".parse().expect("an address"))
    });
    own.expect("place").expect("a default route");
    // The first default route is the one that is used.
    let default = || {
        let table = wire
            .far
            .go(|| std::fs::read_to_string("/proc/thread-self/net/route"))
            .expect("place")
            .expect("routes");
        let routes = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let defaults =
            routes.filter(|route| route.get(1) == Some(&"00000000")).map(|route| route[0].to_owned());
        defaults.collect::<Vec<_>>()
    };
    assert_eq!(default(), [WIRE]);
    let inside = wire.far.go(|| std::process::Command::new("sleep").arg("1000").spawn());
    let mut inside = inside.expect("place").expect("it starts");
    let pid = inside.id().to_string();
    let words =
        ["daemon", &policy, "--packet-io", "tun", "--inside", &pid, "--addresses", "10.99.0.1,10.99.0.2"];
    let mut daemon = Daemon { wire: &wire, child: wire.start(&words) };
    until("packets pass", || {
        let output = std::fs::read_to_string(wire.room.join("said")).unwrap_or_default();
        assert!(daemon.child.try_wait().expect("a child").is_none(), "{output}");
        wire.ask("edge0", &json!({"ask": "status"})).is_some_and(|status| status["packet_io"] == "tun")
    });
    assert_eq!(default(), ["tidegate0", WIRE]);
    assert!(wire.ask("edge0", &json!({"ask": "stop"})).is_some());
    assert!(daemon.child.wait().expect("a child").success());
    until("their own route is used again", || default() == [WIRE]);
    inside.kill().expect("ours");
    inside.wait().expect("ours");
}

/// What an ordinary user does to the control socket; run by the test below, as that user.
#[test]
fn attacker() {
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::unix::net::UnixStream;
    let Some(socket) = std::env::var_os("TIDEGATE_TEST_ATTACK") else { return };
    let connect = || {
        let stream = UnixStream::connect(&socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        stream.set_write_timeout(Some(Duration::from_secs(5)))?;
        std::io::Result::Ok(stream)
    };
    // All connections that can be had, and held.
    let streams: Vec<UnixStream> = (0..200).filter_map(|_| connect().ok()).collect();
    let mut open = 0;
    for stream in &streams {
        stream.set_nonblocking(true).expect("ours");
        // A client without a place gets a message, and is closed.
        std::thread::sleep(Duration::from_millis(1));
        open += usize::from(matches!((&*stream).read(&mut [0; 1]), Err(error)
                if error.kind() == std::io::ErrorKind::WouldBlock));
    }
    println!("attack: {} connected, {open} of them open", streams.len());
    // Four lines of 16 MiB on those that are open.
    let line = vec![b'x'; 16 << 20];
    let mut taken = 0;
    for stream in streams
        .iter()
        .filter(|stream| {
            matches!((&**stream).read(&mut [0; 1]), Err(error)
        if error.kind() == std::io::ErrorKind::WouldBlock)
        })
        .take(4)
    {
        stream.set_nonblocking(false).expect("ours");
        let mut left = line.as_slice();
        while let Ok(written @ 1..) = (&*stream).write(left) {
            taken += written;
            left = &left[written..];
        }
        let mut output = String::new();
        let _ = BufReader::new(stream).read_line(&mut output);
        println!("attack: {}", output.trim());
    }
    println!("attack: {taken} bytes of 4 lines were taken");
    // And again as many connections as there are, until the other end has seen enough.
    let again: Vec<UnixStream> = (0..200).filter_map(|_| connect().ok()).collect();
    println!("attack: holding {}", again.len());
    let _ = std::io::stdin().read(&mut [0; 1]);
    drop((streams, again));
}

/// An ordinary user takes all connections and sends lines of 16 MiB; root's `status` is answered before,
/// meanwhile and afterwards, and the daemon does not grow.
#[test]
fn strangers_take_neither_the_places_nor_the_memory() {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    const NOBODY_UID: u32 = 65_534;
    const MORE_KIB: u64 = 16 << 10;
    let Some(wire) = Wire::lay("attack") else { return };
    if tidegate_sys::process::effective_uid() != 0 {
        println!("left out: it takes root to become an ordinary user");
        return;
    }
    let daemon = Daemon::start(&wire, &[&wire.file("policy.sh", POLICY)]);
    let pid = daemon.child.id();
    let memory = || {
        let text = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("Linux tells").to_owned();
        line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number")
    };
    let before = (memory(), health(&wire).0);
    let socket = std::fs::read_dir(&wire.room)
        .expect("a directory")
        .flatten()
        .map(|net| net.path().join("wire0.sock"));
    let socket = socket.into_iter().find(|path| path.exists()).expect("a socket");
    // Where an ordinary user finds it.
    let program = std::env::temp_dir().join(format!("tidegate-attacker-{}", std::process::id()));
    std::fs::copy(std::env::current_exe().expect("a test"), &program).expect("a copy");
    let mut attack = std::process::Command::new(&program);
    attack.args(["--exact", "attacker", "--nocapture"]).env("TIDEGATE_TEST_ATTACK", socket).current_dir("/");
    attack
        .uid(NOBODY_UID)
        .gid(NOBODY_UID)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped());
    let mut attacker = attack.spawn().expect("it starts");
    let mut given = BufReader::new(attacker.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let mut lines = Vec::new();
    for line in given.by_ref() {
        let over = line.starts_with("attack: holding");
        lines.push(line);
        if over {
            break;
        }
    }
    let meanwhile = (memory(), health(&wire).0);
    drop(attacker.stdin.take());
    lines.extend(given);
    attacker.wait().expect("it is ours");
    std::fs::remove_file(&program).expect("it is there");
    let after = (memory(), health(&wire).0);
    lines.iter().filter(|line| line.starts_with("attack:")).for_each(|line| println!("{line}"));
    println!("most memory, KiB, and status: before {before:?}, meanwhile {meanwhile:?}, after {after:?}");
    assert!(lines.iter().any(|line| line.starts_with("attack: 200 connected, 4 of them open")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("too long")), "{lines:#?}");
    assert_eq!([before.1, meanwhile.1, after.1], [Some(0); 3]);
    assert!(after.0 < before.0 + MORE_KIB, "{before:?} {after:?}");
    daemon.stop();
}
