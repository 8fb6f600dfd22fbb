//! `tidegate lab` and `tidegate shell`: real hosts behind the described links. They need namespaces and TUN
//! devices.

mod common;

use common::{Place, TIDEGATE};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// True, with the reason printed, where no hosts can be made.
fn skip() -> bool {
    let probe = tidegate(&["shell", "--", "true"]);
    if !probe.status.success() {
        eprintln!("SKIPPED: {}", String::from_utf8_lossy(&probe.stderr));
    }
    !probe.status.success()
}

fn tidegate(words: &[&str]) -> Output {
    Command::new(TIDEGATE).args(words).output().expect("it starts")
}

fn stdout(of: &Output) -> String {
    String::from_utf8_lossy(&of.stdout).into_owned()
}

fn stderr(of: &Output) -> String {
    String::from_utf8_lossy(&of.stderr).into_owned()
}

const HOME: &str = r#"
title = "a home"
warm-up = "1s"
duration = "4s"

[home]
up = "2mbit"
down = "10mbit"
hosts = ["a"]
buffer = "64kB"

[policies.none]
title = "none"

[policies.fq]
gateway = [
    "tc qdisc add dev eth0 root handle 1: htb default 1",
    "tc class add dev eth0 parent 1: classid 1:1 htb rate 1800kbit",
    "tc qdisc add dev eth0 parent 1:1 fq_codel",
    "iptables -t nat -A POSTROUTING -o eth0 -j SNAT --to-source 203.0.113.9",
]

[loads.up]
traffic = [{ tcp = "a -> server", id = "upload", count = 2 }]

[[traffic]]
ping = "a -> server"
every = "100ms"

[[traffic]]
dns = "a -> server"

[[traffic]]
voip = "a -> server"

[[traffic]]
web = { of = "a -> server", every = "2s" }
"#;

fn median(run: &Value, id: &str) -> f64 {
    let probe =
        run["probes"].as_array().into_iter().flatten().find(|probe| probe["id"] == id).expect("it was asked");
    let mut took: Vec<f64> =
        probe["replies"].as_array().into_iter().flatten().filter_map(|answer| answer[1].as_f64()).collect();
    took.sort_by(f64::total_cmp);
    assert!(took.len() >= 3, "{id} was answered: {took:?}");
    took[took.len() / 2] / 1e6
}

/// Real TCP fills the modem's buffer, and the policy, a translation with it, keeps it empty; everything that
/// people do is answered.
#[test]
fn real_hosts_see_what_the_policy_does() {
    if skip() {
        return;
    }
    let place = Place::new("lab");
    let text = HOME
        .replace("web = { of = \"a -> server\", every = \"2s\" }", "web = \"a -> server\"\nevery = \"2s\"");
    let file = place.file("home.toml", text);
    let run = tidegate(&["lab", file.to_str().expect("text"), "--json"]);
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    let result: Value = serde_json::from_str(&stdout(&run)).expect("JSON");
    assert_eq!(result["execution"], "lab");
    let runs = result["runs"].as_array().expect("runs");
    let [none, fq] = runs.as_slice() else { panic!("two runs") };
    assert!(
        median(none, "ping") > 2.0 * median(fq, "ping"),
        "{} and {} ms",
        median(none, "ping"),
        median(fq, "ping")
    );
    for run in runs {
        assert!(median(run, "dns") > 10.0 && median(run, "voip") > 5.0, "they cross the line");
        let bytes: u64 =
            run["transfers"].as_array().into_iter().flatten().filter_map(|flow| flow["bytes"].as_u64()).sum();
        // 2 Mbit/s for 4 s, less what others take and the headers.
        assert!((300_000..1_000_000).contains(&bytes), "{bytes}");
        assert!(run["lateness"]["packets"].as_u64() > Some(500));
    }
    let classes = fq["classes"].as_array().expect("classes");
    assert!(
        classes.iter().any(|class| class["id"] == "gateway:eth0 1:1"),
        "the model machine's classes are read"
    );
}

/// The machine with the policy is the kernel of this computer: its own HTB keeps the modem's buffer empty,
/// and its counters are reported.
#[test]
fn the_kernel_itself_is_the_router() {
    if skip() {
        return;
    }
    let place = Place::new("lab-kernel");
    let policy = r#"gateway = [
    "tc qdisc add dev eth0 root handle 1: htb default 20",
    "tc class add dev eth0 parent 1: classid 1:1 htb rate 1800kbit",
    "tc class add dev eth0 parent 1:1 classid 1:10 htb rate 600kbit ceil 1800kbit prio 0",
    "tc class add dev eth0 parent 1:1 classid 1:20 htb rate 1200kbit ceil 1800kbit prio 1",
    "tc qdisc add dev eth0 parent 1:20 handle 20: pfifo limit 20",
    "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 1 0xff flowid 1:10",
]"#;
    let (before, rest) = HOME.split_once("gateway = [").expect("a policy");
    let (_, after) = rest.split_once("\n]").expect("its end");
    let (after, _) = after.split_once("[[traffic]]\ndns").expect("other traffic");
    let file = place.file("home.toml", format!("{before}{policy}{after}"));
    let run = tidegate(&["lab", file.to_str().expect("text"), "--router", "kernel", "--json"]);
    if stderr(&run).contains("kind is unknown") {
        eprintln!("SKIPPED: this kernel has no HTB");
        return;
    }
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    let result: Value = serde_json::from_str(&stdout(&run)).expect("JSON");
    let [none, htb] = result["runs"].as_array().expect("runs").as_slice() else { panic!("two runs") };
    assert!(
        median(none, "ping") > 2.0 * median(htb, "ping"),
        "{} and {} ms",
        median(none, "ping"),
        median(htb, "ping")
    );
    let sent = |id: &str| {
        let class = htb["classes"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|class| class["id"] == id)
            .expect("it is read");
        class["sent"].as_array().into_iter().flatten().filter_map(Value::as_u64).sum::<u64>()
    };
    // 1.8 Mbit/s for 5 s at most; what a parent sent is what its children did, but for a frame that leaves
    // while they are read.
    assert!((300_000..1_300_000).contains(&sent("gateway:eth0 1:1")), "{}", sent("gateway:eth0 1:1"));
    let children = sent("gateway:eth0 1:10") + sent("gateway:eth0 1:20");
    assert!(
        sent("gateway:eth0 1:1").abs_diff(children) <= 1514,
        "{} and {children}",
        sent("gateway:eth0 1:1")
    );
}

#[test]
fn options_that_the_kernel_lacks_are_refused_by_name() {
    if skip() {
        return;
    }
    let place = Place::new("lab-kernel-refused");
    let file = place.file("home.toml", HOME.split("[[traffic]]\ndns").next().expect("a ping"));
    let refused = |words: &[&str]| {
        let all = [&["lab", file.to_str().expect("text"), "--router", "kernel"], words].concat();
        let run = tidegate(&all);
        (run.status.code(), stderr(&run))
    };
    let (code, output) = refused(&["--policy", "fq"]);
    assert!(code == Some(2) && output.contains("the policy `fq` sets rules of iptables"), "{output}");
}

#[test]
fn a_program_runs_behind_the_link() {
    if skip() {
        return;
    }
    let place = Place::new("shell");
    let log = place.0.join("line.csv");
    let script = "ping -c 3 -i 0.2 -q server && getent hosts server && exit 7";
    let words = [
        "shell",
        "--up",
        "1mbit",
        "--rtt",
        "60ms",
        "--log",
        log.to_str().expect("text"),
        "--",
        "sh",
        "-c",
        script,
    ];
    let run = tidegate(&words);
    assert_eq!(run.status.code(), Some(7), "the program's own code: {}{}", stdout(&run), stderr(&run));
    let output = stdout(&run);
    assert!(output.contains("3 received") && output.contains("198.51.100.7"), "{output}");
    let least: f64 = output
        .split("= ")
        .nth(1)
        .and_then(|times| times.split('/').next())
        .and_then(|ms| ms.parse().ok())
        .expect(&output);
    assert!(least >= 60.0, "no quicker than the line: {least}");
    let log = std::fs::read_to_string(log).expect("the log");
    assert!(log.starts_with("seconds,up_bits_per_second"), "{log}");
}

/// A shell in a shell, which is root of its own world only.
#[test]
fn shells_nest() {
    if skip() {
        return;
    }
    let run = tidegate(&[
        "shell", "--", TIDEGATE, "shell", "--rtt", "10ms", "--", "ping", "-c", "1", "-q", "server",
    ]);
    assert_eq!(run.status.code(), Some(0), "{}{}", stdout(&run), stderr(&run));
}

#[test]
fn what_ends_at_the_far_end_ends_with_the_program() {
    if skip() {
        return;
    }
    let place = Place::new("far");
    let mark = place.0.join("far-end");
    let far = format!("exec sleep 1000.{}", std::process::id());
    let waits = format!("until [ -e {} ]; do sleep 0.1; done", mark.display());
    let run = tidegate(&[
        "shell",
        "--far",
        &far,
        "--far",
        &format!("touch {}", mark.display()),
        "--",
        "sh",
        "-c",
        &waits,
    ]);
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    assert!(mark.exists(), "it was started");
    assert!(!runs(&format!("1000.{}", std::process::id())), "and is gone");
}

/// Is there a process with this among its words?
fn runs(word: &str) -> bool {
    let all = std::fs::read_dir("/proc").expect("/proc").flatten();
    all.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .any(|words| words.split(|byte| *byte == 0).any(|one| one == word.as_bytes()))
}

#[test]
fn nothing_is_left_after_kill_9() {
    if skip() {
        return;
    }
    let mut child = Command::new(TIDEGATE)
        .args(["shell", "--", "sh", "-c", "echo it runs; exec sleep 1000"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut reader = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    reader.read_line(&mut line).expect("a line");
    assert_eq!(line, "it runs\n");
    child.kill().expect("it is ours");
    child.wait().expect("it ended");
    // The pipe ends when the last process that could write to it is gone.
    assert_eq!(reader.read_line(&mut line).expect("the end"), 0);
}

/// Ctrl-C: the results so far are printed.
#[test]
fn an_interrupted_lab_tells_what_it_has() {
    if skip() {
        return;
    }
    let place = Place::new("interrupted");
    let text = "duration = \"90s\"\n[home]\nup = \"1mbit\"\ndown \
    = \"1mbit\"\n[policies.none]\n[[traffic]]\nping = \"a -> server\"\n";
    let file = place.file("long.toml", text);
    let mut child = Command::new("setsid")
        .args([TIDEGATE, "lab", file.to_str().expect("text")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    // A long run is announced before it begins.
    let mut output = String::new();
    BufReader::new(child.stderr.take().expect("a pipe")).read_line(&mut output).expect("a line");
    assert!(output.contains("Ctrl-C"), "{output}");
    let group = format!("-{}", child.id());
    assert!(Command::new("kill").args(["-INT", "--", &group]).status().expect("kill").success());
    let run = child.wait_with_output().expect("it ends");
    assert_eq!(run.status.code(), Some(3), "{}{}", stdout(&run), stderr(&run));
    assert!(stdout(&run).contains("It was interrupted"), "{}", stdout(&run));
}

#[test]
fn what_cannot_be_real_is_refused_with_the_way_out() {
    if skip() {
        return;
    }
    let place = Place::new("refused");
    let link = "[home]\nup = \"1mbit\"\ndown = \"1mbit\"\n[policies.none]\n";
    let fast = "[links.l]\nbetween = [\"a\", \"b\"]\nrate = \"10gbit\"\n[policies.none]\n";
    for (text, output) in [
        (
            format!("duration = \"1s\"\n{link}[[traffic]]\ntcp = \"a -> server\"\ncongestion = \"prague\"\n"),
            "prague",
        ),
        (format!("duration = \"1s\"\n{link}[[traffic]]\ntcp = \"gateway -> server\"\n"), "which is a model"),
        (format!("duration = \"1s\"\n{fast}[[traffic]]\ntcp = \"a -> b\"\n"), "2 Gbit/s"),
    ] {
        let file = place.file("refused.toml", text);
        let run = tidegate(&["lab", file.to_str().expect("text")]);
        assert_eq!(run.status.code(), Some(2), "{}", stdout(&run));
        assert!(stderr(&run).contains(output), "{output}: {}", stderr(&run));
    }
    let run = tidegate(&["shell", "--", "no-such-program-anywhere"]);
    assert_eq!(run.status.code(), Some(2));
    assert!(stderr(&run).contains("no-such-program-anywhere"), "{}", stderr(&run));
    let run = tidegate(&["shell", "--up", "fast", "--", "true"]);
    assert_eq!(run.status.code(), Some(2));
    assert!(stderr(&run).contains("fast"), "{}", stderr(&run));
    assert!(Path::new("/etc/hosts").exists());
}

/// A user's own programs: their output is in the result, also of those that fail or hang, and the rest of the
/// run is not lost.
#[test]
fn a_hosts_own_programs_are_started_heard_and_ended() {
    if skip() {
        return;
    }
    let place = Place::new("lab-programs");
    let programs = r#"
[[programs]]
on = "server"
run = "echo from the server; trap 'echo asked to end; exit' TERM; while sleep 0.1; do :; done"

[[programs]]
on = "a"
run = "ping -q -c 2 -i 0.2 server >&2; no-such-program"
start = "500ms"
"#;
    let text = HOME.replace("[policies.none]", &format!("{programs}\n[policies.none]"));
    let text = text.replace("[[traffic]]\nweb = { of = \"a -> server\", every = \"2s\" }", "");
    let file = place.file("home.toml", text);
    let file = file.to_str().expect("text");
    let run = tidegate(&["lab", file, "--json", "--policy", "none", "--duration", "2s", "--no-gso"]);
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    assert!(
        stdout(&run).contains("home.toml --no-gso --policy none"),
        "the command that does it again: {}",
        stdout(&run)
    );
    assert!(stderr(&run).contains("on a, `ping -q -c 2"), "who failed is told: {}", stderr(&run));
    let result: Value = common::schemas::document(&run.stdout);
    let events = result["runs"][0]["events"].as_array().expect("events");
    let output_of =
        |on: &str| events.iter().find(|event| event["on"] == on).and_then(|event| event["output"].as_str());
    let (server, a) = (output_of("server").expect("it was heard"), output_of("a").expect("it was heard"));
    assert!(server.starts_with("from the server\n") && server.contains("\nasked to end\n"), "{server}");
    assert!(server.ends_with("[it still ran at its end, and was stopped]\n"), "{server}");
    assert!(a.contains("2 packets transmitted, 2 received") && a.ends_with("[it ended with 127]\n"), "{a}");
    assert!(median(&result["runs"][0], "ping") > 10.0, "and the rest goes on");
    let sim = tidegate(&["sim", file]);
    assert_eq!(sim.status.code(), Some(2));
    assert!(stderr(&sim).contains("simulated hosts run no programs"), "{}", stderr(&sim));
}

/// A user without the permission for real-time scheduling gets the remedy; nothing is half done.
#[test]
fn a_missing_processor_is_reported() {
    if skip() {
        return;
    }
    let run = tidegate(&["shell", "--pin", "1023", "--", "echo", "in"]);
    assert_eq!(run.status.code(), Some(2));
    assert!(stderr(&run).contains("no such processor"), "{}", stderr(&run));
}

/// What was asked and what was got, and an exit code of its own for what was expected.
#[test]
fn a_line_is_measured_and_held_against_expectations() {
    if skip() {
        return;
    }
    let place = Place::new("shell-json");
    // 4 and 8 Mbit/s by turns, and 600 kbit/s towards the host.
    place.file("up.csv", "time,rate_mbit\n0,4\n1,8\n2,4\n3,8\n4,4\n");
    place.file("down.csv", "time,rate_kbit\n0,600\n9,600\n");
    let shell = |words: &[&str], program: &[&str]| {
        let all = [&["shell"], words, &["--"], program].concat();
        Command::new(TIDEGATE).args(all).current_dir(&place.0).output().expect("it starts")
    };
    let run = shell(
        &["--trace", "up.csv,down.csv", "--rtt", "60ms", "--down-line", "loss = { every = 2 }", "--json"],
        // A burst that no buffer empties at once.
        &["ping", "-q", "-c", "150", "-i", "0.002", "-s", "1400", "-W", "1", "server"],
    );
    let document = common::schemas::document(&run.stdout);
    assert!(stderr(&run).contains("150 packets transmitted"), "the program's output: {}", stderr(&run));
    let number = |at: &str| document.pointer(at).and_then(Value::as_f64).unwrap_or(f64::NAN);
    assert!(number("/up/asked") >= 4e6 && number("/up/asked") <= 8e6, "{document:#}");
    assert_eq!((number("/down/asked") / 1e4).round(), 60.0, "{document:#}");
    assert!(document["up"]["varies"] == true && number("/down/loss_asked") == 0.5, "{document:#}");
    let loss = number("/down/loss");
    assert!((0.45..0.55).contains(&loss), "{document:#}");
    let gap = number("/down/busy/gap");
    assert!(gap.abs() < 0.05, "a line that is full carries what was asked: {gap}");
    assert!((0.0..0.03).contains(&number("/rtt/gap")) && number("/rtt/asked") == 0.06, "{document:#}");
    assert!(stderr(&run).contains("shell: down: asked 600 kbit/s"), "{}", stderr(&run));

    let line = ["--up", "1mbit", "--rtt", "40ms"];
    let ping = ["ping", "-c", "3", "-i", "0.1", "-q", "server"];
    let holds = ["--expect", "rtt min >= 40ms", "--expect", "up loss <= 0%", "-o", "held.json"];
    let run = shell(&[&line[..], &holds].concat(), &ping);
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    assert!(stderr(&run).contains("shell: holds: rtt min >= 40ms: 4"), "{}", stderr(&run));
    let document = common::schemas::document(&std::fs::read(place.0.join("held.json")).expect("written"));
    assert_eq!(document["expected"][1]["holds"], true, "{document:#}");
    let fails = ["--expect", "rtt min < 30ms", "--expect", "time < 60s"];
    let run = shell(&[&line[..], &fails].concat(), &ping);
    assert_eq!(run.status.code(), Some(5), "{}", stderr(&run));
    assert!(stderr(&run).contains("FAILS: rtt min < 30ms: it is 4") && stderr(&run).contains(" ms too much"));
    // The program's own failure is not hidden by it.
    let run = shell(&[&line[..], &fails].concat(), &["sh", "-c", "exit 3"]);
    assert_eq!(run.status.code(), Some(3), "{}", stderr(&run));
    // What is wrong is refused before anything runs.
    for (words, why) in [
        (&["--expect", "rtt p95 > 3mbit"][..], "is compared with a time"),
        (&["--preset", "lte", "--up", "1mbit"], "cannot be used with"),
        (&["--preset", "5g"], "5g-driving"),
        (&["--trace", "none.csv"], "none.csv"),
        (&["--trace", "up.csv,down.csv,up.csv"], "--trace takes two recordings"),
        (&["--hosts", "you"], "a host `you` already"),
        (&["--run", "tv=true"], "no host `tv`"),
        (&["--attach", "no-such-namespace"], "no network namespace is called"),
    ] {
        let run = shell(words, &["touch", "ran"]);
        assert_eq!(
            (run.status.code(), stderr(&run).contains(why)),
            (Some(2), true),
            "{words:?} {}",
            stderr(&run)
        );
    }
    assert!(!place.0.join("ran").exists());
}

/// A Debian made by debootstrap has no `/etc/hosts`; what is laid over it is seen by the shell alone.
#[test]
fn names_are_known_where_no_file_of_hosts_is() {
    if skip() {
        return;
    }
    if tidegate_sys::process::effective_uid() != 0 {
        eprintln!("SKIPPED: covering /etc needs root");
        return;
    }
    let script =
        "mount -t tmpfs none /etc && echo one > /etc/one && \"$0\" shell -- cat /etc/hosts /etc/one; ls /etc";
    let run =
        Command::new("unshare").args(["--mount", "sh", "-c", script, TIDEGATE]).output().expect("unshare");
    let output = stdout(&run);
    if stderr(&run).contains("none can be laid over it") {
        eprintln!("SKIPPED: {}", stderr(&run));
        return;
    }
    assert!(output.contains(" server\n") && output.ends_with("one\none\n"), "{output}{}", stderr(&run));
}

/// Presets carry, and more hosts of the LAN reach the server.
#[test]
fn presets_and_more_hosts() {
    if skip() {
        return;
    }
    let place = Place::new("shell-hosts");
    let mark = place.0.join("tv");
    let on_tv = format!("tv=ping -c 1 -q server && touch {}", mark.display());
    let waits = format!("until [ -e {} ]; do sleep 0.05; done; cat /etc/hosts", mark.display());
    let run = tidegate(&[
        "shell",
        "--preset",
        "cable-evening",
        "--seed",
        "3",
        "--hosts",
        "tv,pc",
        "--run",
        &on_tv,
        "--",
        "sh",
        "-c",
        &waits,
    ]);
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    assert!(stdout(&run).contains("192.168.1.3") && stdout(&run).contains("192.168.1.4"), "{}", stdout(&run));
}

/// A network namespace of somebody's, and a process that holds it.
struct Holder(common::Guarded);

impl Holder {
    fn new() -> Holder {
        // As root without a user namespace, as `ip netns` has it.
        let root = std::fs::read_to_string("/proc/self/status").is_ok_and(|all| all.contains("Uid:\t0\t0"));
        let flags = if root { "-n" } else { "-Urn" };
        let script = "echo there; exec sleep 1000";
        let mut child = Command::new("unshare")
            .args([flags, "sh", "-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        assert_eq!(line, "there\n");
        Holder(common::Guarded(child))
    }

    fn name(&self) -> String {
        self.0.id().to_string()
    }

    /// Has it the line's device?
    fn is_behind(&self) -> bool {
        let devices = std::fs::read_to_string(format!("/proc/{}/net/dev", self.0.id())).expect("/proc");
        devices.contains("tidegate0")
    }
}

/// Namespaces of others at both ends of the line; nothing of it is left in them, also after kill -9.
#[test]
fn namespaces_of_others_are_put_behind_the_line() {
    if skip() {
        return;
    }
    let (client, server) = (Holder::new(), Holder::new());
    let inside = format!(
        "grep -q tidegate0 /proc/{0}/net/dev && nsenter -t {0} -U --preserve-credentials -n ping -c 2 -i 0.1 -q \
        198.51.100.7 || nsenter -t {0} -n ping -c 2 -i 0.1 -q 198.51.100.7",
        client.name()
    );
    let ends = ["shell", "--attach", &client.name(), "--attach-server", &server.name()];
    let line = ["--rtt", "50ms", "--json", "--expect", "rtt min >= 50ms", "--", "sh", "-c", &inside];
    let run = tidegate(&[&ends[..], &line].concat());
    assert_eq!(run.status.code(), Some(0), "{}", stderr(&run));
    assert!(stderr(&run).contains("2 received"), "{}", stderr(&run));
    let document = common::schemas::document(&run.stdout);
    assert_eq!(document["program"]["exit"], 0, "{document:#}");
    assert!(!client.is_behind() && !server.is_behind());
    // Without a program it stays until it is ended; a second line has no place there.
    let mut first = Command::new(TIDEGATE)
        .args(["shell", "--attach", &client.name()])
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut said = String::new();
    BufReader::new(first.stderr.take().expect("a pipe")).read_line(&mut said).expect("a line");
    assert!(said.contains("is `you` (192.168.1.2, on tidegate0); Ctrl-C ends it"), "{said}");
    assert!(client.is_behind());
    let second = tidegate(&["shell", "--attach", &client.name(), "--", "true"]);
    assert_eq!(second.status.code(), Some(2));
    assert!(stderr(&second).contains("it is behind a line; end that one first"), "{}", stderr(&second));
    first.kill().expect("it is ours");
    first.wait().expect("it ended");
    // The kernel kills what it had started, and the device goes with that.
    for _ in 0..500 {
        if !client.is_behind() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("the device is still there");
}

/// The script of the GitHub Action: nothing is run whose checksum differs, and inputs stay one word each.
#[test]
fn the_action_runs_what_its_checksum_names() {
    if skip() {
        return;
    }
    let place = Place::new("action");
    std::fs::create_dir_all(place.0.join("tidegate-0-linux/bin")).expect("a directory");
    place.script("tidegate-0-linux/bin/tidegate", format!("#!/bin/sh\nexec {TIDEGATE} \"$@\"\n"));
    let packed = Command::new("tar")
        .args(["-czf", "t.tar.gz", "tidegate-0-linux"])
        .current_dir(&place.0)
        .status()
        .expect("tar runs");
    assert!(packed.success());
    let sum = Command::new("sha256sum").arg(place.0.join("t.tar.gz")).output().expect("sha256sum runs");
    let sum = stdout(&sum)[..64].to_owned();
    let action = |sum: &str, expect: &str| {
        Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/action/run"))
            .env("LINE_URL", format!("file://{}", place.0.join("t.tar.gz").display()))
            .env("LINE_SHA256", sum)
            .env("LINE_OPTIONS", "--preset cable-evening  --rtt 40ms")
            .env("LINE_POLICY", "")
            .env("LINE_SERVER", "echo \"it's $0\" > server.out")
            .env("LINE_EXPECT", expect)
            .env(
                "LINE_RUN",
                "until [ -s server.out ]; do sleep 0.05; done; ping -c 2 -i 0.2 -q server; touch ran",
            )
            .env("LINE_OUTPUT", "line.json")
            .current_dir(&place.0)
            .output()
            .expect("it starts")
    };
    let other = action(&"0".repeat(64), "");
    assert_eq!(other.status.code(), Some(2), "{}", stderr(&other));
    assert!(stderr(&other).contains("nothing of it was run"), "{}", stderr(&other));
    assert!(!place.0.join("ran").exists());
    let done = action(&sum, "rtt min >= 40ms\nup loss <= 0%");
    assert_eq!(done.status.code(), Some(0), "{}{}", stdout(&done), stderr(&done));
    assert_eq!(std::fs::read_to_string(place.0.join("server.out")).expect("there"), "it's /bin/sh\n");
    let document = common::schemas::document(&std::fs::read(place.0.join("line.json")).expect("there"));
    assert_eq!(
        (&document["preset"], &document["expected"][1]["holds"]),
        (&"cable-evening".into(), &true.into())
    );
    let fails = action(&sum, "rtt min < 10ms");
    assert_eq!(fails.status.code(), Some(5), "{}", stderr(&fails));
}
