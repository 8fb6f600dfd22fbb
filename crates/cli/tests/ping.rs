//! `tidegate ping`: against echo servers of known behaviour, and in network namespaces that the test makes
//! (which need root; elsewhere those are skipped with a message).

mod common;

use common::{Place as Directory, TIDEGATE};
use serde_json::Value;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidegate_sys::namespace_thread::{self, NamespaceThread};
use tidegate_sys::netlink::Links;
use tidegate_sys::process::{self, die_with_parent};
use tidegate_sys::stamped;

/// How long a test waits for what must happen.
const LIMIT: Duration = Duration::from_secs(30);
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 98, 0, 1));
const ROUTER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 98, 0, 254));
const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 98, 1, 1));
const NOBODY_UID: u32 = 65_534;

fn command(words: &[&str]) -> Command {
    command_of(Path::new(TIDEGATE), words)
}

fn command_of(program: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.arg("ping").args(words).stdin(Stdio::null());
    die_with_parent(&mut command);
    command
}

fn say(words: &[&str]) -> Output {
    command(words).output().expect("it is started")
}

fn in_place(place: &NamespaceThread, mut command: Command) -> Output {
    place.go(move || command.output()).expect("the place is there").expect("it is started")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn document(output: &Output) -> Value {
    assert!(output.stdout.starts_with(b"{"), "{}", text(&output.stderr));
    common::schemas::document(&output.stdout)
}

/// A UDP echo server that drops every fourth request, and sends every third reply twice.
struct Echo {
    port: u16,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Option<u8>>>>,
}

impl Echo {
    fn begin(answers: bool) -> Echo {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        stamped::note(&socket, false, false).expect("it is a socket for datagrams");
        let port = socket.local_addr().expect("it has one").port();
        let stop = Arc::new(AtomicBool::new(false));
        let reported = Arc::clone(&stop);
        let thread = std::thread::spawn(move || serve(&socket, answers, &reported));
        Echo { port, stop, thread: Some(thread) }
    }

    /// The DS fields that came.
    fn end(mut self) -> Vec<Option<u8>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("it is there").join().expect("it does not panic")
    }
}

fn serve(socket: &UdpSocket, answers: bool, stop: &AtomicBool) -> Vec<Option<u8>> {
    let (mut fields, mut buffer) = (Vec::new(), [0; 2048]);
    while !stop.load(Ordering::Relaxed) {
        let _ = tidegate_sys::poll::readable(&[std::os::fd::AsFd::as_fd(socket)], Duration::from_millis(20));
        while let Ok(Some(came)) = stamped::receive(socket, &mut buffer) {
            let number = fields.len();
            fields.push(came.ds_field);
            let times = match number {
                _ if !answers || number % 4 == 3 => 0,
                _ if number % 3 == 0 => 2,
                _ => 1,
            };
            let back = came.from.expect("it came from somebody");
            // An interrupted client is gone by then, and the loopback reports that.
            (0..times).for_each(|_| drop(socket.send_to(&buffer[..came.bytes], back)));
        }
    }
    fields
}

#[test]
fn what_is_lost_and_what_comes_twice_is_counted() {
    let echo = Echo::begin(true);
    let target = "voip,127.0.0.1,EF,200";
    let output = say(&["-t", target, &format!("--udp={}", echo.port), "-c", "40", "-i", ".005", "--json"]);
    let fields = echo.end();
    assert_eq!((output.status.code(), fields.len()), (Some(0), 40), "{}", text(&output.stderr));
    assert!(fields.iter().all(|field| *field == Some(0xb8)), "{fields:?}");
    let reply = document(&output);
    let target = &reply["targets"][0];
    assert_eq!(
        (&target["id"], &target["size"], &target["ds_field"]),
        (&"voip".into(), &200.into(), &0xb8.into())
    );
    let summary = &target["summary"];
    assert_eq!(
        (&summary["sent"], &summary["lost"], &summary["loss"]),
        (&40.into(), &10.into(), &0.25.into())
    );
    // Of the thirty that are answered those whose number is a multiple of three come twice.
    let twice = (0..40).filter(|n| n % 4 != 3 && n % 3 == 0).count();
    assert_eq!((&target["duplicates"], &target["error_replies"]), (&twice.into(), &0.into()));
    let lost: Vec<usize> =
        answers(target).iter().enumerate().filter(|(_, took)| took.is_none()).map(|(n, _)| n).collect();
    assert_eq!(lost, (0..40).filter(|n| n % 4 == 3).collect::<Vec<_>>());
    assert_eq!(reply["partial"], Value::Null);
}

fn answers(target: &Value) -> Vec<Option<u64>> {
    target["replies"].as_array().expect("a list").iter().map(|pair| pair[1].as_u64()).collect()
}

#[test]
fn a_closed_port_answers_with_an_error() {
    let port =
        UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port").port();
    let output = say(&["127.0.0.1", &format!("--udp={port}"), "-d", "40ms", "-i", ".01", "--json"]);
    let target = &document(&output)["targets"][0];
    assert_eq!(
        (output.status.code(), &target["error_replies"], &target["summary"]["lost"]),
        (Some(0), &4.into(), &0.into())
    );
}

#[test]
fn no_reply_is_reported_and_drawn() {
    let echo = Echo::begin(false);
    let place = Directory::new("ping-silent");
    let chart = place.0.join("chart.svg");
    let output = say(&[
        "127.0.0.1",
        &format!("--udp={}", echo.port),
        "-c",
        "3",
        "-i",
        ".01",
        "-o",
        &chart.to_string_lossy(),
    ]);
    assert_eq!(echo.end().len(), 3);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let shown = text(&output.stdout);
    assert!(
        shown.contains("100.0 %") && shown.contains("43.9–100.0 %") && shown.contains("no replies"),
        "{shown}"
    );
    let drawn = std::fs::read_to_string(chart).expect("it was written");
    assert!(drawn.contains("Latency over time") && drawn.contains(">none<"));
}

#[test]
fn a_file_is_read_again_and_drawn_in_every_form() {
    let echo = Echo::begin(true);
    let place = Directory::new("ping-files");
    let name = |name: &str| place.0.join(name).to_string_lossy().into_owned();
    let udp = format!("--udp={}", echo.port);
    let output = say(&[
        "-t",
        "a,127.0.0.1,0",
        "-t",
        "b,localhost,16,64",
        "-4",
        &udp,
        "-c",
        "12",
        "-i",
        ".01",
        "-w",
        &name("run.json"),
    ]);
    assert_eq!((output.status.code(), echo.end().len()), (Some(0), 24), "{}", text(&output.stderr));
    let outputs = [name("run.svg"), name("run.png"), name("run.html"), name("copy.json")];
    let again = say(&[
        "-r",
        &name("run.json"),
        "-l",
        "-o",
        &outputs[0],
        "-o",
        &outputs[1],
        "-o",
        &outputs[2],
        "-o",
        &outputs[3],
    ]);
    assert_eq!(
        (again.status.code(), text(&again.stdout)),
        (Some(0), text(&output.stdout)),
        "{}",
        text(&again.stderr)
    );
    let read = |name: &String| std::fs::read(name).expect("it was written");
    for panel in [
        "Latency over time",
        "Packets lost",
        "Mean latency",
        "Deviation (mdev)",
        "Latency histogram",
        "Losses over time",
    ] {
        assert!([0, 2].iter().all(|n| text(&read(&outputs[*n])).contains(panel)), "{panel}");
    }
    assert_eq!(&read(&outputs[1])[..8], b"\x89PNG\r\n\x1a\n");
    assert_eq!(read(&outputs[3]), read(&name("run.json")));
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let place = Directory::new("ping-wrong");
    let torn =
        place.file("torn.json", "{\"tidegate_ping\": 1, \"version\": 7}").to_string_lossy().into_owned();
    let cases: [(&[&str], &str); 10] = [
        (&[], "missing HOST; write `tidegate ping HOST`"),
        (&["no-such-name.invalid"], "no address is known for `no-such-name.invalid`"),
        (&["-t", "a,127.0.0.1"], "-t a,127.0.0.1: a target is ID,HOST,TOS or ID,HOST,TOS,SIZE"),
        (&["-t", "a,127.0.0.1,XX"], "`XX` is not a DS field"),
        (&["127.0.0.1", "-6"], "no IPv6 address"),
        (&["127.0.0.1", "-i", ".00001", "--udp"], "the shortest interval is"),
        (&["127.0.0.1", "-i", "0"], "must be greater than zero"),
        (&["127.0.0.1", "-i", "2h"], "-i is from 2ms to 1h"),
        (&["127.0.0.1", "-o", "chart.pdf"], "the name must end in .svg, .png, .html or .json"),
        (&["-r", &torn], "version: a text expected, found 7"),
    ];
    for (words, expected) in cases {
        let output = say(words);
        let stderr = text(&output.stderr);
        assert!(
            output.status.code() == Some(2) && stderr.contains(expected),
            "{words:?}: {:?} {stderr}",
            output.status
        );
    }
    let many: Vec<String> = (0..65).flat_map(|n| ["-t".to_owned(), format!("t{n},127.0.0.1,0")]).collect();
    let output = say(&many.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(text(&output.stderr).contains("from 1 to 64 targets"), "{}", text(&output.stderr));
}

#[test]
fn ctrl_c_gives_what_there_is() {
    let echo = Echo::begin(true);
    let mut command =
        command(&["127.0.0.1", &format!("--udp={}", echo.port), "-i", ".01", "-c", "100000", "--json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it is started");
    // It handles Ctrl-C before it shows anything; its first requests show that it runs.
    let began = Instant::now();
    while !is_noticing(child.id()) && began.elapsed() < LIMIT {
        std::thread::yield_now();
    }
    let interrupted = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupted.is_ok_and(|status| status.success()));
    let output = child.wait_with_output().expect("it ends");
    echo.end();
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    assert!(document(&output)["partial"].as_str().is_some_and(|why| why.starts_with("stopped after")));
}

/// Whether a process handles Ctrl-C itself.
fn is_noticing(pid: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).map(str::trim);
    // SIGINT is the second signal.
    caught.and_then(|mask| u64::from_str_radix(mask, 16).ok()).is_some_and(|mask| mask & 2 != 0)
}

/// A host, a router, and a host behind it.
struct Way {
    here: NamespaceThread,
    router: NamespaceThread,
    _far: NamespaceThread,
}

/// The way; `None`, with the reason printed, where none can be made.
fn way() -> Option<Way> {
    if process::effective_uid() != 0 {
        eprintln!("SKIPPED: network namespaces and devices need root");
        return None;
    }
    let made = || -> std::io::Result<Way> {
        let (here, router, far) =
            (NamespaceThread::new("here")?, NamespaceThread::new("router")?, NamespaceThread::new("far")?);
        for (place, name, other) in [(&here, "h0", "r0"), (&far, "f0", "r1")] {
            let there = router.go(|| File::open("/proc/thread-self/ns/net"))??;
            place.go(move || Links::open()?.pair(name, other, &there))??;
        }
        for (place, name, own, others) in [
            (&here, "h0", HERE, &[ROUTER, FAR][..]),
            (&router, "r0", ROUTER, &[HERE]),
            (&router, "r1", ROUTER, &[FAR]),
            (&far, "f0", FAR, &[ROUTER, HERE]),
        ] {
            place.go(move || -> std::io::Result<()> {
                let mut links = Links::open()?;
                let index = links.index(name)?;
                links.address(name, own)?;
                links.up(index)?;
                others.iter().try_for_each(|other| links.add_route(name, *other))
            })??;
        }
        router.go(|| {
            namespace_thread::set("net/ipv4/ip_forward", "1")?;
            // A host that is not beside the router on a link resolves an address there, too, and gets the
            // router's at once.
            ["r0", "r1"].iter().try_for_each(|dev| {
                namespace_thread::set(&format!("net/ipv4/conf/{dev}/proxy_arp"), "1")?;
                namespace_thread::set(&format!("net/ipv4/neigh/{dev}/proxy_delay"), "0")
            })
        })??;
        Ok(Way { here, router, _far: far })
    };
    made().map_err(|error| eprintln!("SKIPPED: no way between namespaces can be made: {error}")).ok()
}

#[test]
fn hops_are_found_and_pinged() {
    let Some(way) = way() else { return };
    let words = ["--hops", &FAR.to_string(), "-c", "5", "-i", ".05", "--json"].map(str::to_owned);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let reply = document(&in_place(&way.here, command(&words)));
    let rows: Vec<(&Value, &Value, &Value)> = reply["targets"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|one| (&one["id"], &one["address"], &one["summary"]["lost"]))
        .collect();
    let (router, far) = (Value::from(ROUTER.to_string()), Value::from(FAR.to_string()));
    assert_eq!(rows, [(&"hop 1".into(), &router, &0.into()), (&far, &far, &0.into())]);
    // A router that answers no echo requests is probed through the hop limit, once a second.
    way.router
        .go(|| namespace_thread::set("net/ipv4/icmp_echo_ignore_all", "1"))
        .expect("it is there")
        .expect("it can be set");
    let reply = document(&in_place(&way.here, command(&words)));
    let hop = &reply["targets"][0];
    assert_eq!((&hop["id"], &hop["hop_limit"], &hop["address"]), (&"hop 1".into(), &1.into(), &far));
    assert_eq!((&hop["interval_ns"], &hop["error_replies"]), (&1_000_000_000.into(), &1.into()));
}

#[test]
fn a_user_without_permission_to_ping_gets_the_remedy() {
    let Some(way) = way() else { return };
    let words = [FAR.to_string(), "-c".into(), "3".into(), "-i".into(), ".01".into()];
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let range = |range: &'static str| {
        way.here
            .go(move || namespace_thread::set("net/ipv4/ping_group_range", range))
            .expect("it is there")
            .expect("it can be set");
    };
    range("1 0");
    let files = Directory::new("ping-nobody");
    let program = files.copy_of(Path::new(TIDEGATE));
    let by_nobody = || {
        let mut command = command_of(&program, &words);
        command.uid(NOBODY_UID).gid(NOBODY_UID);
        command
    };
    let output = in_place(&way.here, by_nobody());
    let stderr = text(&output.stderr);
    let remedies = ["net.ipv4.ping_group_range", "setcap cap_net_raw+ep", "--udp"];
    assert!(
        output.status.code() == Some(4) && remedies.iter().all(|words| stderr.contains(words)),
        "{stderr}"
    );
    let raw = in_place(&way.here, command(&words));
    range("0 2147483647");
    let anybody = in_place(&way.here, by_nobody());
    for output in [raw, anybody] {
        assert_eq!(output.status.code(), Some(0), "{} {}", text(&output.stdout), text(&output.stderr));
    }
}

#[test]
fn a_missing_route_is_reported() {
    let Some(way) = way() else { return };
    let output = in_place(&way.here, command(&["192.0.2.77", "-c", "1"]));
    let stderr = text(&output.stderr);
    assert!(output.status.code() == Some(2) && stderr.contains("no route to 192.0.2.77"), "{stderr}");
}

#[test]
fn a_line_of_known_truth_is_measured_as_it_is() {
    if common::skip() {
        return;
    }
    let line = "loss = {pattern = \"..x\"}";
    let mut command = Command::new(TIDEGATE);
    command.args(["shell", "--up", "5mbit", "--rtt", "30ms", "--up-line", line, "--"]);
    command.args([TIDEGATE, "ping", "server", "-c", "30", "-i", ".02", "--json"]).stdin(Stdio::null());
    die_with_parent(&mut command);
    let output = command.output().expect("it is started");
    if text(&output.stderr).contains("need namespaces") {
        eprintln!("SKIPPED: {}", text(&output.stderr));
        return;
    }
    let target = &document(&output)["targets"][0];
    // Nothing else goes up that line: every third request is lost.
    let lost: Vec<usize> =
        answers(target).iter().enumerate().filter(|(_, took)| took.is_none()).map(|(n, _)| n).collect();
    assert_eq!(lost, (0..30).filter(|n| n % 3 == 2).collect::<Vec<_>>());
    // The line takes thirty milliseconds at least; this machine may add to that.
    let summary = &target["summary"];
    let (min, median) = (summary["min_ns"].as_u64(), summary["p50_ns"].as_u64());
    assert!(min >= Some(30_000_000) && median < Some(60_000_000), "{summary}");
}
