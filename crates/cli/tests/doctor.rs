//! `tidegate doctor` on computers that are set up wrong, in network namespaces that the test makes. They need
//! root and a kernel with veth and HTB; elsewhere they are skipped with a message.

mod common;

use common::{Place as Directory, TIDEGATE};
use serde_json::Value;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};
use tidegate_sys::namespace_thread::{self, NamespaceThread};
use tidegate_sys::netlink::Links;
use tidegate_sys::process::{self, die_with_parent};

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 97, 0, 1));
const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 97, 0, 2));
const NOBODY_UID: u32 = 65_534;
/// Bytes of a frame that carries a datagram of the load.
const FRAME: u32 = 1000;
const HEADS: u32 = 42;

/// Eight megabits, one class for what goes to port 53, a queue for each, and room for the bursts of a test
/// that oversleeps.
const POLICY: &str = "#!/bin/sh
tc qdisc add dev v0 root handle 1: htb default 20
tc class add dev v0 parent 1: classid 1:1 htb rate 8mbit burst 1mb cburst 1mb
tc class add dev v0 parent 1:1 classid 1:10 htb rate 2mbit ceil 8mbit
tc class add dev v0 parent 1:1 classid 1:20 htb rate 6mbit ceil 8mbit burst 1mb cburst 1mb
tc qdisc add dev v0 parent 1:10 handle 10: pfifo limit 20
tc qdisc add dev v0 parent 1:20 handle 20: pfifo limit 20
tc filter add dev v0 parent 1: protocol ip prio 1 u32 match ip dport 53 0xffff classid 1:10
";

/// A computer with a wire to another.
struct Bench {
    here: NamespaceThread,
    far: NamespaceThread,
    run: Directory,
}

impl Bench {
    /// One; `None`, with the reason printed, where none can be made. Packets to everyone leave by `v0`.
    fn new(name: &str) -> Option<Bench> {
        if process::effective_uid() != 0 {
            eprintln!("SKIPPED: network namespaces and devices need root");
            return None;
        }
        let made = || -> std::io::Result<Bench> {
            let (here, far) = (NamespaceThread::new("here")?, NamespaceThread::new("far")?);
            let there = far.go(|| File::open("/proc/thread-self/ns/net"))??;
            here.go(move || Links::open()?.pair("v0", "v1", &there))??;
            for (place, name, own) in [(&here, "v0", HERE), (&far, "v1", FAR)] {
                place.go(move || -> std::io::Result<()> {
                    let mut links = Links::open()?;
                    let index = links.index(name)?;
                    links.address(name, own)?;
                    links.up(index)?;
                    links.add_default_route(name, own)
                })??;
            }
            Ok(Bench { here, far, run: Directory::new(name) })
        };
        made().map_err(|error| eprintln!("SKIPPED: no wire between namespaces can be made: {error}")).ok()
    }

    fn say(&self, words: &[&str], user: Option<u32>) -> Output {
        let own = Path::new(TIDEGATE);
        let mut command = Command::new(user.map_or(own.to_owned(), |_| self.run.copy_of(own)));
        command.args(words).env("TIDEGATE_RUN", &self.run.0).stdin(Stdio::null());
        die_with_parent(&mut command);
        if let Some(user) = user {
            command.uid(user).gid(user);
        }
        self.here.go(move || command.output()).expect("the place is there").expect("it is started")
    }

    /// Puts the policy there; false, with the reason printed, where this kernel has no HTB.
    fn shape(&self) -> bool {
        let policy = self.run.file("policy.sh", POLICY);
        let output =
            self.say(&["apply", &policy.to_string_lossy(), "--backend", "kernel", "--confirm", "0"], None);
        if !output.status.success() {
            eprintln!("SKIPPED: {}", text(&output.stderr));
        }
        output.status.success()
    }

    /// Sends datagrams at a rate of frames' bits while the doctor measures, and returns its output.
    fn looked_at_under(&self, bits_per_second: u64) -> Value {
        // A program listens, so that no ICMP error comes back.
        let _sink = self
            .far
            .go(|| UdpSocket::bind(SocketAddr::new(FAR, 9000)))
            .expect("it is there")
            .expect("a socket");
        let socket = self
            .here
            .go(|| UdpSocket::bind(SocketAddr::new(HERE, 0)))
            .expect("it is there")
            .expect("a socket");
        socket.connect(SocketAddr::new(FAR, 9000)).expect("there is a way");
        let stop = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| load(&socket, bits_per_second, &stop));
            let output = self.say(&["doctor", "--duration", "1.5s", "--json"], None);
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            document(&output)
        })
    }
}

/// Sends what is due by the clock, until it is stopped.
fn load(socket: &UdpSocket, bits_per_second: u64, stop: &std::sync::atomic::AtomicBool) {
    let (began, mut sent) = (Instant::now(), 0_u64);
    let datagram = vec![0; (FRAME - HEADS) as usize];
    while !stop.load(std::sync::atomic::Ordering::Relaxed) && began.elapsed() < Duration::from_secs(20) {
        let due = began.elapsed().as_micros() as u64 * bits_per_second / 8_000_000 / u64::from(FRAME);
        while sent < due {
            let _ = socket.send(&datagram);
            sent += 1;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn document(output: &Output) -> Value {
    assert!(output.stdout.starts_with(b"{"), "{}", text(&output.stderr));
    common::schemas::document(&output.stdout)
}

fn found(document: &Value) -> Vec<&str> {
    document["findings"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|finding| finding["id"].as_str())
        .collect()
}

#[test]
fn an_idle_shaper_is_distinguished_from_a_limiting_one() {
    let Some(bench) = Bench::new("doctor-load") else { return };
    if !bench.shape() {
        return;
    }
    let loaded = bench.looked_at_under(6_000_000);
    assert!(found(&loaded).contains(&"bottleneck-elsewhere"), "{loaded:#}");
    let limited = bench.looked_at_under(40_000_000);
    assert!(!found(&limited).contains(&"bottleneck-elsewhere"), "{limited:#}");
    // By now more than a thousand packets went, all of them to one class; a veth hands over what senders
    // joined; nothing shapes what comes in.
    let expected = ["offload-burst", "download-unshaped", "class-never-hit"];
    assert!(expected.iter().all(|id| found(&limited).contains(id)), "{limited:#}");
    let shaper = &limited["facts"]["devices"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["name"] == "v0")
        .expect("it is there")["shaper"];
    assert_eq!((&shaper["kind"], &shaper["rate_bps"]), (&"htb".into(), &8_000_000.into()));
    assert!(shaper["overlimits"].as_u64() > Some(0), "{shaper}");
}

#[test]
fn what_is_not_shaped_and_what_cannot_be_looked_at() {
    let Some(bench) = Bench::new("doctor-plain") else { return };
    let output = bench.say(&["doctor", "--duration", "200ms"], None);
    let shown = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{shown}{}", text(&output.stderr));
    assert!(
        shown.contains("[not-shaped] nothing is shaped here: packets leave by v0")
            && shown.contains("tidegate apply POLICY --dev v0"),
        "{shown}"
    );
    let output = bench.say(&["doctor", "--duration", "200ms"], Some(NOBODY_UID));
    assert_eq!(output.status.code(), Some(1), "{}{}", text(&output.stdout), text(&output.stderr));
    assert!(text(&output.stdout).contains("needs root"), "{}", text(&output.stdout));
    for (words, expected) in [
        (["doctor", "--dev", "nosuch"], "there is no device `nosuch`"),
        (["doctor", "--duration", "1ms"], "--duration is from 100ms to 1h"),
        (["doctor", "--host", "no-such-name.invalid"], "no address is known for"),
    ] {
        let output = bench.say(&words, None);
        assert!(
            output.status.code() == Some(2) && text(&output.stderr).contains(expected),
            "{words:?}: {}",
            text(&output.stderr)
        );
    }
}

/// A device, its own address, and the addresses that it reaches directly (none named: all).
type Wired = (&'static str, [u8; 4], &'static [[u8; 4]]);

/// Four computers in a row, with their devices.
const ROW: [(&str, &[Wired]); 4] = [
    ("here", &[("a0", [10, 96, 0, 1], &[])]),
    (
        "first",
        &[
            ("b0", [10, 96, 0, 2], &[[10, 96, 0, 1]]),
            ("b1", [10, 96, 1, 1], &[[10, 96, 1, 2], [10, 96, 2, 2]]),
        ],
    ),
    (
        "second",
        &[
            ("c0", [10, 96, 1, 2], &[[10, 96, 1, 1], [10, 96, 0, 1]]),
            ("c1", [10, 96, 2, 1], &[[10, 96, 2, 2]]),
        ],
    ),
    ("last", &[("d0", [10, 96, 2, 2], &[])]),
];
const WIRES: [(usize, &str, usize, &str); 3] = [(0, "a0", 1, "b0"), (1, "b1", 2, "c0"), (2, "c1", 3, "d0")];

fn row() -> std::io::Result<Vec<NamespaceThread>> {
    let places =
        ROW.iter().map(|(name, _)| NamespaceThread::new(name)).collect::<std::io::Result<Vec<_>>>()?;
    for (one, name, other, other_name) in WIRES {
        let there = places[other].go(|| File::open("/proc/thread-self/ns/net"))??;
        places[one].go(move || Links::open()?.pair(name, other_name, &there))??;
    }
    for (place, (_, devices)) in places.iter().zip(ROW) {
        place.go(move || -> std::io::Result<()> {
            namespace_thread::set("net/ipv4/ip_forward", "1")?;
            let mut links = Links::open()?;
            for (name, own, others) in devices {
                let own = IpAddr::from(*own);
                let index = links.index(name)?;
                links.address(name, own)?;
                links.up(index)?;
                // The proxy answers ARP for a host behind it with its own address, at once.
                namespace_thread::set(&format!("net/ipv4/conf/{name}/proxy_arp"), "1")?;
                namespace_thread::set(&format!("net/ipv4/neigh/{name}/proxy_delay"), "0")?;
                if others.is_empty() {
                    links.add_default_route(name, own)?;
                }
                others.iter().try_for_each(|other| links.add_route(name, IpAddr::from(*other)))?;
            }
            Ok(())
        })??;
    }
    Ok(places)
}

#[test]
fn who_clears_the_ecn_field_is_found() {
    if process::effective_uid() != 0 {
        eprintln!("SKIPPED: network namespaces and devices need root");
        return;
    }
    let places = match row() {
        Ok(places) => places,
        Err(error) => return eprintln!("SKIPPED: no row of namespaces can be made: {error}"),
    };
    let ask = || {
        let mut command = Command::new(TIDEGATE);
        command.args(["doctor", "--duration", "200ms", "--json", "--host", "10.96.2.2"]).stdin(Stdio::null());
        die_with_parent(&mut command);
        document(&places[0].go(move || command.output()).expect("the place is there").expect("it is started"))
    };
    let untouched = ask();
    let quoted = |first: u8, second: u8| serde_json::json!([["10.96.0.2", first], ["10.96.1.2", second]]);
    assert_eq!(
        (&untouched["facts"]["ecn"]["quoted"], &untouched["facts"]["ecn"]["replied"]),
        (&quoted(0x8a, 0x8a), &0x8a.into())
    );
    assert!(!found(&untouched).contains(&"ecn-bleached"));
    let rules =
        "table ip clear { chain out { type filter hook postrouting priority 0; ip ecn set not-ect; }; }";
    let cleared = places[1].go(move || Command::new("nft").arg(rules).output()).expect("the place is there");
    if !cleared.as_ref().is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: there is no nft here that clears the field: {cleared:?}");
        return;
    }
    let reply = ask();
    assert_eq!(
        (&reply["facts"]["ecn"]["quoted"], &reply["facts"]["ecn"]["replied"]),
        (&quoted(0x8a, 0x88), &0x88.into())
    );
    let finding =
        reply["findings"].as_array().expect("a list").iter().find(|one| one["id"] == "ecn-bleached");
    let what = finding.and_then(|finding| finding["what"].as_str()).expect("it is found");
    assert!(what.contains("cleared at or before 10.96.1.2"), "{what}");
}
