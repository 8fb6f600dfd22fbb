//! Watching a daemon and the kernel at work: `top`, `metrics`, `tc`, `capture`, in network namespaces that
//! the test makes.
//!
//! They need root and a kernel with veth, TUN and BPF; elsewhere they are skipped with a message.

mod common;

use common::{Place as Directory, TIDEGATE, skip_terminal};
use serde_json::Value;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tidegate_netlink::Kernel;
use tidegate_pcap::{Next, Parser};
use tidegate_syntax::Env;
use tidegate_syntax::tc::{self, TcCommand};
use tidegate_sys::namespace_thread::NamespaceThread;
use tidegate_sys::netlink::Links;
use tidegate_sys::process::{self, die_with_parent};

/// How long a test waits for what must happen.
const LIMIT: Duration = Duration::from_secs(30);
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 99, 0, 1));
const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 99, 0, 2));

/// A megabit a second: everything in a class whose fifo is short, but what goes to port 53. One class has a
/// name.
const POLICY: &str = "#!/bin/sh
tc qdisc add dev v0 root handle 1: htb default 20
tc class add dev v0 parent 1: classid 1:1 htb rate 1mbit
tc class add dev v0 parent 1:1 classid 1:10 htb rate 500kbit ceil 1mbit prio 0 # names & clocks
tc class add dev v0 parent 1:1 classid 1:20 htb rate 500kbit ceil 1mbit prio 1
tc qdisc add dev v0 parent 1:10 handle 10: pfifo limit 5
tc qdisc add dev v0 parent 1:20 handle 20: pfifo limit 20
tc filter add dev v0 parent 1: protocol ip prio 1 u32 match ip dport 53 0xffff classid 1:10
";

/// Two machines and a wire.
struct Wire {
    here: NamespaceThread,
    _far: NamespaceThread,
}

/// A wire; `None`, with the reason printed, where none can be made.
fn wire() -> Option<Wire> {
    if process::effective_uid() != 0 {
        eprintln!("SKIPPED: network namespaces and devices need root");
        return None;
    }
    let made = || -> std::io::Result<Wire> {
        let (here, far) = (NamespaceThread::new("here")?, NamespaceThread::new("far")?);
        let there = far.go(|| File::open("/proc/thread-self/ns/net"))??;
        here.go(move || Links::open()?.pair("v0", "v1", &there))??;
        for (place, name, own, other) in [(&here, "v0", HERE, FAR), (&far, "v1", FAR, HERE)] {
            place.go(move || {
                let mut links = Links::open()?;
                let index = links.index(name)?;
                links.address(name, own)?;
                links.up(index)?;
                links.add_route(name, other)
            })??;
        }
        Ok(Wire { here, _far: far })
    };
    made().map_err(|error| eprintln!("SKIPPED: no wire between namespaces can be made: {error}")).ok()
}

/// The command at one end of the wire, with its files in a directory of the test's.
struct Bench {
    wire: Wire,
    run: Directory,
    daemon: Option<Child>,
}

impl Bench {
    fn new(name: &str) -> Option<Bench> {
        Some(Bench { wire: wire()?, run: Directory::new(name), daemon: None })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(TIDEGATE);
        command.args(words).env("TIDEGATE_RUN", &self.run.0).stdin(Stdio::null());
        die_with_parent(&mut command);
        command
    }

    fn spawn(&self, mut command: Command) -> Child {
        self.wire.here.go(move || command.spawn()).expect("the place is there").expect("it is started")
    }

    fn say(&self, words: &[&str]) -> Output {
        let mut command = self.command(words);
        self.wire.here.go(move || command.output()).expect("the place is there").expect("it is started")
    }

    /// The output of a command that must succeed.
    fn text(&self, words: &[&str]) -> String {
        let output = self.say(words);
        assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    }

    /// Starts the daemon and waits until it answers; false, with the reason printed, where this kernel has no
    /// door for it.
    fn shapes(&mut self) -> bool {
        self.shapes_by(POLICY)
    }

    /// As `shapes`, by another policy.
    fn shapes_by(&mut self, policy: &str) -> bool {
        let policy = self.run.file("policy.sh", policy);
        let mut command = self.command(&["daemon", &policy.to_string_lossy()]);
        command.stderr(Stdio::piped());
        let mut daemon = self.spawn(command);
        let began = Instant::now();
        while !self.say(&["tc", "qdisc", "show", "dev", "v0"]).status.success() {
            if daemon.try_wait().expect("it is ours").is_some() {
                let mut why = String::new();
                daemon.stderr.take().map(|mut stderr| stderr.read_to_string(&mut why));
                assert!(why.contains("not permitted") || why.contains("not supported"), "{why}");
                eprintln!("SKIPPED: {why}");
                return false;
            }
            assert!(began.elapsed() < LIMIT, "the daemon does not answer");
            std::thread::sleep(Duration::from_millis(20));
        }
        self.daemon = Some(daemon);
        true
    }

    /// Sends datagrams of 1000 bytes, two a millisecond, until this goes.
    fn flood(&self) -> Flood {
        let go = Arc::new(AtomicBool::new(true));
        let on = go.clone();
        let socket =
            self.wire.here.go(|| UdpSocket::bind((HERE, 0))).expect("the place is there").expect("a socket");
        let thread = std::thread::spawn(move || {
            while on.load(Ordering::Relaxed) {
                for _ in 0..2 {
                    // A full queue may be reported.
                    let _ = socket.send_to(&[0; 1000], SocketAddr::new(FAR, 9));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        Flood { go, thread: Some(thread) }
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

struct Flood {
    go: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Flood {
    fn drop(&mut self) {
        self.go.store(false, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The class of a line of JSON.
fn class<'l>(line: &'l Value, name: &str) -> &'l Value {
    let found = line["classes"].as_array().into_iter().flatten().find(|class| class["class"] == name);
    found.unwrap_or_else(|| panic!("{name} is not in {line}"))
}

#[test]
fn top_shows_what_a_daemon_does() {
    let Some(mut bench) = Bench::new("top") else { return };
    if !bench.shapes() {
        return;
    }
    let _flood = bench.flood();
    let line = common::schemas::document(bench.text(&["top", "v0", "--once", "--json"]).as_bytes());
    let full = class(&line, "1:20");
    assert_eq!((&line["backend"], &full["qdisc"]), (&"user".into(), &"pfifo 20:".into()));
    let number = |member: &str| full[member].as_f64().unwrap_or_else(|| panic!("{member} in {full}"));
    assert!(number("bps") > 100_000.0 && number("drops_per_s") > 10.0, "{full}");
    assert!((1.0..=20.0).contains(&number("backlog_packets")), "{full}");
    // Twenty packets of a kilobyte at a megabit a second.
    assert!(
        number("sojourn_p99_ns") >= number("sojourn_p50_ns") && number("sojourn_p50_ns") > 50e6,
        "{full}"
    );
    assert!(number("borrowed") > 0.0, "half of it is more than its share: {full}");
    assert_eq!(class(&line, "1:10")["bps"], 0.0);
    assert_eq!((&class(&line, "1:10")["name"], &full["name"]), (&"names & clocks".into(), &Value::Null));
    let screen = bench.text(&["top", "--once", "--interval", "100ms"]);
    assert!(screen.starts_with("v0  1.00 Mbit/s  user space (capture)  over 0.1"), "{screen}");
    assert_eq!(screen.lines().count(), 6, "{screen}");
    assert!(screen.contains("1:10 (names & clocks)"), "{screen}");
    assert!(screen.lines().all(|line| line.chars().count() <= 80 && !line.contains('\x1b')), "{screen}");
}

/// The words that a terminal was sent, without the control sequences between them.
fn words_of(sent: &str) -> String {
    let mut pieces = sent.split("\x1b[");
    let mut words = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        words.push(' ');
        words += piece.find(|end| ('@'..='~').contains(&end)).map_or("", |end| &piece[end + 1..]);
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `script` is the terminal; where there is none of it, the test is skipped.
#[test]
fn top_on_a_terminal_leaves_out_idle_classes_and_restores_the_screen() {
    if skip_terminal() {
        return;
    }
    let Some(mut bench) = Bench::new("screen") else { return };
    if !bench.shapes() {
        return;
    }
    let _flood = bench.flood();
    let mut command = Command::new("timeout");
    let limit = LIMIT.as_secs().to_string();
    // A shell with job control, which goes on where Ctrl-Z stops the program.
    let words = format!("set -m; '{TIDEGATE}' top v0 --interval 100ms; stty -a; fg; exit $?");
    command.args([&limit, "script", "-qec", &words, "/dev/null"]);
    command.env("TIDEGATE_RUN", &bench.run.0).env("TERM", "xterm").env("SHELL", "/bin/sh");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    die_with_parent(&mut command);
    let mut top = bench.spawn(command);
    let (mut stdin, mut stdout) = (top.stdin.take().expect("piped"), top.stdout.take().expect("piped"));
    let (mut seen, mut bytes) = (Vec::new(), [0; 4096]);
    let shown = |seen: &[u8]| String::from_utf8_lossy(seen).into_owned();
    let mut until = |seen: &mut Vec<u8>, from: usize, words: &[&str]| {
        while !words.iter().all(|words| words_of(&shown(&seen[from..])).contains(words)) {
            let count = stdout.read(&mut bytes).expect("it is read");
            assert!(count > 0, "it ended: {}", shown(seen));
            seen.extend_from_slice(&bytes[..count]);
        }
    };
    // 1:10 carries nothing.
    until(&mut seen, 0, &["1:20 pfifo 20:", "1 idle row"]);
    let from = seen.len();
    stdin.write_all(b"\x1a").expect("it listens");
    // Stopped, it has given back the screen and the keys; continued, it draws all again.
    until(&mut seen, from, &["icanon", "1:20 pfifo 20:", "1 idle row"]);
    let stopped = shown(&seen[from..]);
    let place = |what: &str| stopped.find(what).unwrap_or_else(|| panic!("{what}: {stopped:?}"));
    assert!(place("\x1b[?1049l") < place("icanon") && place("icanon") < place("\x1b[?1049h"), "{stopped:?}");
    assert!(stopped.contains(" icanon") && stopped.contains(" echo "), "{stopped:?}");
    stdin.write_all(b"q").expect("it listens");
    stdout.read_to_end(&mut seen).expect("it is read");
    let (seen, ended) = (shown(&seen), top.wait().expect("it is ours"));
    assert!(ended.success(), "{ended:?} {seen}");
    assert!(!seen.contains("1:10") && seen.contains("\x1b[?1049h"), "{seen:?}");
    // The cursor, wrapping and the other screen are put back, last of all.
    assert!(seen.trim_end().ends_with("\x1b[?25h\x1b[?7h\x1b[?1049l"), "{seen:?}");
}

#[test]
fn metrics_are_served_over_http_and_written_to_a_file() {
    let Some(mut bench) = Bench::new("metrics") else { return };
    if !bench.shapes() {
        return;
    }
    for words in [
        &["metrics", "--once"][..],
        &["top", "--once", "--interval", "100ms"],
        &["capture", "v0", "--seconds", "1s"],
    ] {
        let full = File::options().write(true).open("/dev/full").expect("the device");
        let mut command = bench.command(words);
        command.stdout(full).stderr(Stdio::piped());
        let flood = bench.flood();
        let ended = bench.spawn(command).wait_with_output().expect("it is ours");
        drop(flood);
        let why = String::from_utf8_lossy(&ended.stderr).into_owned();
        let expected = "standard output did not take everything: No space left on device";
        assert!(
            ended.status.code() == Some(74) && why.matches(expected).count() == 1,
            "{words:?} {:?} {why}",
            ended.status
        );
    }
    let once = bench.text(&["metrics", "--once"]);
    assert!(once.contains("\nnode_qdisc_bytes_total{device=\"v0\",kind=\"htb\"} "), "{once}");
    let named = |line: &str| {
        line.starts_with("tidegate_class_bytes_total{")
            && line.contains("classid=\"1:10\",class_name=\"names & clocks\"}")
    };
    assert_eq!(once.lines().filter(|line| named(line)).count(), 1, "{once}");
    assert_eq!(
        once.matches("class_name").count(),
        once.matches("class_name=\"names & clocks\"").count(),
        "{once}"
    );
    let status = bench.text(&["status"]);
    assert!(status.contains("\n  classes: 1:10 (names & clocks)\n"), "{status}");
    assert!(once.contains("\ntidegate_shaper_rate_bits_per_second{netns=\""), "{once}");
    let mut command = bench.command(&["metrics", "--listen", "127.0.0.1:0"]);
    command.stderr(Stdio::piped());
    let mut server = bench.spawn(command);
    let mut message = String::new();
    let mut stderr = BufReader::new(server.stderr.take().expect("it is a pipe"));
    stderr.read_line(&mut message).expect("it tells where");
    let address = message
        .trim()
        .strip_prefix("tidegate metrics: http://")
        .and_then(|rest| rest.strip_suffix("/metrics"));
    let address: SocketAddr =
        address.and_then(|address| address.parse().ok()).unwrap_or_else(|| panic!("{message}"));
    let ask = |request: &'static str| {
        let result = bench.wire.here.go(move || -> std::io::Result<String> {
            let mut stream = TcpStream::connect_timeout(&address, LIMIT)?;
            stream.set_read_timeout(Some(LIMIT))?;
            stream.write_all(request.as_bytes())?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        });
        result.expect("the place is there").expect("it answers")
    };
    let answer = ask("GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4;"), "{answer}");
    let body = answer.split_once("\r\n\r\n").expect("a body").1;
    assert!(answer.contains(&format!("Content-Length: {}\r\n", body.len())), "{answer}");
    let names = |text: &str| {
        text.lines().filter(|line| line.starts_with("# TYPE")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(names(body), names(&bench.text(&["metrics", "--once"])));
    assert!(ask("GET /other HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
    assert!(ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
    assert!(ask("nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
    server.kill().and_then(|()| server.wait()).expect("it is ours");
}

#[test]
fn tc_lists_and_changes_what_runs() {
    let Some(mut bench) = Bench::new("tc") else { return };
    if !bench.shapes() {
        return;
    }
    let listed = bench.text(&["tc", "-s", "class", "show", "dev", "v0"]);
    assert!(listed.contains("class htb 1:20 parent 1:1 leaf 20: prio 1 rate 500Kbit ceil 1Mbit"), "{listed}");
    let json: Value = serde_json::from_str(&bench.text(&["tc", "-j", "qdisc", "show"])).expect("JSON");
    assert_eq!(json[0]["kind"], "htb");
    bench.text(&[
        "tc", "qdisc", "change", "dev", "v0", "parent", "1:20", "handle", "20:", "pfifo", "limit", "7",
    ]);
    assert!(bench.text(&["tc", "qdisc", "show", "dev", "v0"]).contains("pfifo 20: parent 1:20 limit 7p"));
    let refused =
        bench.say(&["tc", "class", "change", "dev", "v0", "classid", "1:99", "htb", "rate", "1foo"]);
    let why = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        refused.status.code() == Some(1) && why.starts_with("Illegal \"rate\""),
        "{:?} {why}",
        refused.status
    );
    let batch = bench
        .run
        .file("batch", "class add dev v0 parent 1:1 classid 1:30 htb rate 10kbit\nqdisc show dev v0\n");
    assert!(bench.text(&["tc", "-batch", &batch.to_string_lossy()]).starts_with("qdisc htb 1: root"));
    assert!(bench.text(&["tc", "class", "show", "dev", "v0"]).contains("class htb 1:30 parent 1:1"));
}

#[test]
fn packets_of_a_class_are_captured() {
    let Some(mut bench) = Bench::new("capturing") else { return };
    if !bench.shapes() {
        return;
    }
    let _flood = bench.flood();
    let words = bench.text(&["capture", "v0", "1:20", "-c", "3"]);
    let lines: Vec<&str> =
        words.lines().filter_map(|line| line.split_once(' ')).map(|(_, output)| output).collect();
    assert_eq!(lines.len(), 3, "{words}");
    // The kernel sends a packet of its own now and then.
    let ours = lines.iter().filter(|output| output.starts_with("1:20 20: 1042 B waited "));
    assert!(ours.count() >= 2, "{words}");
    let file = bench.run.0.join("class.pcapng");
    bench.text(&["capture", "v0", "1:20", "-c", "1000", "-w", &file.to_string_lossy()]);
    let bytes = std::fs::read(&file).expect("it was written");
    let (mut parser, mut at, mut lengths) = (Parser::new(), 0, Vec::new());
    while at < bytes.len() {
        match parser.next(&bytes[at..]).expect("pcapng") {
            Next::Packet(used, packet) => {
                lengths.push(packet.length);
                at += used;
            }
            Next::Passed(used) => at += used,
            Next::Needs(more) => panic!("{more} bytes more at {at}"),
        }
    }
    // The kernel sends a packet of its own now and then.
    let ours = lengths.iter().filter(|length| **length == 1042).count();
    assert!(lengths.len() == 1000 && ours > 950, "{ours} of {}", lengths.len());
    let text = String::from_utf8_lossy(&bytes);
    let value_of = |end: &str| text.matches(end).count();
    assert!(
        value_of(", dropped") > 0 && value_of(", sent") > 0,
        "{} dropped, {} sent",
        value_of(", dropped"),
        value_of(", sent")
    );
    let nothing = bench.text(&["capture", "v0", "1:10", "--duration", "100ms"]);
    assert_eq!(nothing, "", "nobody asks port 53");
    // A disk that is full is neither a wrong word nor a daemon that refuses.
    let full = bench.say(&["capture", "v0", "1:20", "-c", "3", "-w", "/dev/full"]);
    let why = String::from_utf8_lossy(&full.stderr).into_owned();
    assert!(
        full.status.code() == Some(74) && why.contains("No space left on device"),
        "{:?} {why}",
        full.status
    );
    let refused = bench.say(&["capture", "v0", "what"]);
    assert_eq!(refused.status.code(), Some(2), "{}", String::from_utf8_lossy(&refused.stderr));
}

/// What leaves is led to an ifb that exists in the daemon alone: it waits there, and nowhere else.
#[test]
fn what_waits_at_an_ifb_is_shown_and_captured_there() {
    let Some(mut bench) = Bench::new("ifb") else { return };
    let policy = format!(
        "ip link add ifb0 type ifb\nip link set ifb0 up\n{}tc qdisc add dev v0 clsact
tc filter add dev v0 egress matchall action mirred egress redirect dev ifb0\n",
        POLICY.replace("dev v0", "dev ifb0").replace("#!/bin/sh\n", "")
    );
    if !bench.shapes_by(&policy) {
        return;
    }
    let _flood = bench.flood();
    let words = bench.text(&["capture", "ifb0", "1:20", "-c", "40"]);
    let ours = words.lines().filter(|line| line.contains(" 1:20 20: 1042 B waited "));
    assert!(ours.count() >= 30, "{words}");
    assert!(words.contains(", sent") && words.contains(", dropped"), "{words}");

    let words = bench.text(&["top", "v0", "--once", "--json", "--interval", "300ms"]);
    let documents: Vec<Value> = words.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let class = |device: &str, class: &str| {
        let shown = documents.iter().rfind(|document| document["device"] == device);
        let rows = shown.and_then(|document| document["classes"].as_array()).expect("rows");
        rows.iter().find(|row| row["class"] == class).cloned().unwrap_or(Value::Null)
    };
    // 20 packets of 1042 bytes at a megabit a second wait 160 ms.
    let p50 = class("ifb0", "1:20")["sojourn_p50_ns"].as_f64().unwrap_or(0.0);
    assert!((100e6..250e6).contains(&p50), "{p50} ns: {words}");
    let metrics = bench.text(&["metrics", "--once", "v0"]);
    let noted = |line: &&str| line.starts_with("tidegate_dropped_total") && !line.ends_with(" 0");
    let noted: Vec<&str> = metrics.lines().filter(noted).collect();
    assert!(!noted.is_empty() && noted.iter().all(|line| line.contains("device=\"ifb0\"")), "{noted:?}");
    assert_eq!(bench.say(&["capture", "ifb7", "-c", "1"]).status.code(), Some(2));
}

/// Delays that began before the first request are in the first reply, and so is the present delay of the
/// queue's head, though nothing has left yet.
#[test]
fn the_first_client_gets_the_longest_delays() {
    let Some(mut bench) = Bench::new("longest") else { return };
    if !bench.shapes() {
        return;
    }
    // A packet of a kilobyte takes four seconds: the second one waits that long, before any request.
    let slow = bench.say(&[
        "tc", "class", "change", "dev", "v0", "parent", "1:1", "classid", "1:20", "htb", "rate", "2kbit",
        "ceil", "2kbit", "burst", "1100", "cburst", "1100",
    ]);
    assert!(slow.status.success(), "{slow:?}");
    let socket =
        bench.wire.here.go(|| UdpSocket::bind((HERE, 0))).expect("the place is there").expect("a socket");
    for _ in 0..3 {
        let _ = socket.send_to(&[0; 1000], SocketAddr::new(FAR, 9));
    }
    let began = Instant::now();
    let row = |words: &[&str]| {
        let line: Value =
            serde_json::from_str(bench.text(words).lines().next().expect("a line")).expect("JSON");
        class(&line, "1:20").clone()
    };
    // Nothing has left in this tenth of a second, and yet the delay of the queue's head is reported.
    let mut oldest = 0;
    while oldest < 1_000_000_000 {
        assert!(began.elapsed() < LIMIT, "nothing waits");
        let row = row(&["top", "v0", "--once", "--json", "--interval", "50ms"]);
        oldest = row["oldest_ns"].as_u64().unwrap_or(0);
        assert!(oldest <= u64::try_from(began.elapsed().as_nanos()).expect("short"), "{row}");
    }
    // Once all have left, the first `metrics` ever knows of the wait of more than two seconds.
    let mut metrics = String::new();
    let over = |text: &str| {
        let count = |le: &str| -> u64 {
            let line = text.lines().find(|line| {
                line.starts_with("tidegate_sojourn_seconds_bucket")
                    && line.contains("classid=\"1:20\"")
                    && line.contains(&format!("le=\"{le}\""))
            });
            line.and_then(|line| line.rsplit_once(' ')?.1.parse().ok()).unwrap_or(0)
        };
        count("+Inf") - count("2.147483648")
    };
    while over(&metrics) == 0 {
        assert!(began.elapsed() < LIMIT, "{metrics}");
        metrics = bench.text(&["metrics", "--once"]);
    }
    assert!(metrics.contains("\ntidegate_oldest_packet_seconds{"), "{metrics}");
}

/// The kernel's own disciplines: what they count, and no times.
#[test]
fn the_kernel_is_watched_too() {
    let Some(bench) = Bench::new("kernel") else { return };
    let commands = [
        "qdisc add dev v0 root handle 1: htb default 10",
        "class add dev v0 parent 1: classid 1:10 htb rate 1mbit",
        "qdisc add dev v0 parent 1:10 handle 10: pfifo limit 5",
    ];
    let result = bench.wire.here.go(move || {
        let mut kernel = Kernel::open().map_err(|error| error.to_string())?;
        commands.iter().try_for_each(|command| {
            let words: Vec<String> = command.split_whitespace().map(String::from).collect();
            match tc::parse(&words, &Env::default()).map(|parsed| parsed.command) {
                Ok(TcCommand::Apply(op)) => kernel.apply(&op).map_err(|trouble| trouble.to_string()),
                other => panic!("{command}: {other:?}"),
            }
        })
    });
    if let Err(error) = result.expect("the place is there") {
        eprintln!("SKIPPED: this kernel has no HTB: {error}");
        return;
    }
    let _flood = bench.flood();
    let line = common::schemas::document(bench.text(&["top", "--once", "--json"]).as_bytes());
    assert_eq!([&line["backend"], &line["shaped_bps"]], [&Value::from("kernel"), &Value::from(1e6)]);
    let full = class(&line, "1:10");
    assert!(full["bps"].as_f64() > Some(100_000.0) && full["drops_per_s"].as_f64() > Some(10.0), "{full}");
    assert_eq!([&full["qdisc"], &full["sojourn_p50_ns"]], [&Value::from("pfifo 10:"), &Value::Null]);
    let metrics = bench.text(&["metrics", "--once"]);
    assert!(metrics.contains("\ntidegate_class_bytes_total{netns=\""), "{metrics}");
}

#[test]
fn a_missing_shaper_is_reported() {
    let Some(bench) = Bench::new("nothing") else { return };
    let output_of = |words: &[&str]| {
        let output = bench.say(words);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let expected = [
        (&["top"][..], "tidegate top: nothing is shaped here; `tidegate apply POLICY` does that\n"),
        (
            &["top", "v0"],
            "tidegate top: nothing was configured on `v0`; `tidegate apply POLICY --dev v0` puts a policy \
            there\n",
        ),
        (
            &["tc", "qdisc", "show"],
            "tidegate tc: no tidegate daemon runs here; for the kernel's qdiscs use tc\n",
        ),
    ];
    for (words, message) in expected {
        assert_eq!(output_of(words), (Some(2), message.to_owned()), "{words:?}");
    }
    for words in [&["top", "nosuch0"][..], &["capture", "v0"], &["metrics", "--once", "nosuch0"]] {
        let (code, message) = output_of(words);
        assert!(code == Some(2) && message.contains(words[words.len() - 1]), "{words:?}: {message}");
    }
}
