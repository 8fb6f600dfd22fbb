//! `tidegate autorate` on this machine's own kernel, in network namespaces that the tests make.
//!
//! What cannot be made here is left out with `SKIPPED:` and the reason.

mod common;

use common::computer::{Computer, done, stderr};
use common::{Guarded, Place, TIDEGATE, skip};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const HTB: &str = "tc qdisc add dev eth0 root handle 1: htb default 10
tc class add dev eth0 parent 1: classid 1:10 htb rate 20mbit burst 9000b";

/// How long something may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

fn until(what: &str, mut is: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < PATIENCE, "{what} was waited for in vain");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A computer with an htb on eth0.
fn computer(name: &str) -> Option<Computer> {
    let computer = Computer::new(name)?;
    let has_htb = computer.place.go(|| {
        let mut kernel = tidegate_netlink::Kernel::open().expect("netlink");
        HTB.lines().try_for_each(|line| kernel.apply(&common::computer::op(line)))
    });
    match has_htb.expect("the thread is there") {
        Ok(()) => Some(computer),
        Err(error) => {
            println!("SKIPPED: no htb can be made here ({error})");
            None
        }
    }
}

/// Starts the command there, with its lines in a file.
fn started(computer: &Computer, words: &[&str], to: &Path) -> Guarded {
    let out = fs::File::create(to).expect("a file");
    let mut command = Command::new(TIDEGATE);
    command.arg("autorate").args(words).env("TIDEGATE_RUN", computer.files.0.join("run"));
    command.stdin(Stdio::null()).stdout(out).stderr(Stdio::inherit());
    Guarded(computer.place.go(move || command.spawn()).expect("the thread is there").expect("it starts"))
}

fn lines(of: &Path) -> Vec<Value> {
    let text = fs::read_to_string(of).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let read = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        common::schemas::must_fit(&line);
        line
    };
    whole.lines().map(read).collect()
}

fn has(of: &Path, event: &str) -> bool {
    lines(of).iter().any(|line| line["event"] == event)
}

#[test]
fn the_rate_is_set_and_put_back_however_it_ends() {
    let Some(computer) = computer("autorate") else { return };
    let found = computer.installed("eth0");
    let out = computer.files.0.join("lines");
    let words = ["eth0", "--controller", "fixed:0.5", "--json"];

    let plan = done(&computer.tidegate(&["autorate", "eth0", "--controller", "fixed:0.5", "--dry-run"]));
    assert!(plan.contains("upload: class 1:10 of htb 1: on eth0, 20.0 Mbit/s now"), "{plan}");
    assert!(plan.contains("nothing was changed") && computer.installed("eth0") == found, "{plan}");

    // SIGTERM.
    let mut child = started(&computer, &words, &out);
    until("a decision", || has(&out, "decision"));
    let slower = computer.installed("eth0");
    assert_ne!(slower, found);
    // Who watches sees what it does, and why.
    let top = || done(&computer.tidegate(&["top", "eth0", "--once", "--json", "--interval", "50ms"]));
    let seen: Value = serde_json::from_str(&top()).expect("JSON");
    common::schemas::must_fit(&seen);
    let control = &seen["autorate"];
    assert_eq!(
        (&control["rate"], &control["mode"], &control["decisions"]["fixed"]),
        (&10_000_000.into(), &"controls".into(), &1.into()),
        "{seen}"
    );
    let text = done(&computer.tidegate(&["top", "--once", "--interval", "50ms"]));
    let line =
        "  autorate (fixed:0.5): upload 10.0 Mbit/s of 4.00 Mbit/s to 40.0 Mbit/s\n  1 decision, last: ";
    assert!(text.contains(line), "{text}");
    let metrics = done(&computer.tidegate(&["metrics", "--once"]));
    let rate = "direction=\"upload\",controller=\"fixed:0.5\"} 10000000\n";
    assert!(metrics.contains(rate) && metrics.contains("reason=\"fixed\"} 1\n"), "{metrics}");
    // Not twice on a device.
    let second = computer.tidegate(&["autorate", "eth0", "--controller", "fixed:0.9"]);
    assert_eq!(second.status.code(), Some(2), "{}", stderr(&second));
    let said = format!("the rate of eth0 is controlled already, by process {}", child.id());
    assert!(stderr(&second).contains(&said), "{}", stderr(&second));
    assert_eq!(computer.installed("eth0"), slower);
    tidegate_sys::process::signal_to_end(child.id());
    assert!(child.wait().expect("it ends").success());
    let ended = lines(&out).pop().expect("a line");
    assert_eq!((&ended["event"], &ended["put_back"][0]["rate"]), (&"ended".into(), &20_000_000.into()));
    let seen: Value = serde_json::from_str(&top()).expect("JSON");
    assert!(seen["autorate"].is_null(), "{seen}");
    assert_eq!(computer.installed("eth0"), found);

    // kill -9: the guard does it.
    let mut child = started(&computer, &words, &out);
    until("a decision", || has(&out, "decision"));
    child.kill().expect("it runs");
    child.wait().expect("it is dead");
    until("the guard", || computer.installed("eth0") == found);
    let nothing = done(&computer.tidegate(&["autorate", "eth0", "--restore"]));
    assert!(nothing.contains("nothing to put back on eth0"), "{nothing}");

    // The time is over.
    done(&computer.tidegate(&["autorate", "eth0", "--controller", "fixed:0.5", "--duration", "300ms"]));
    assert_eq!(computer.installed("eth0"), found);
}

#[test]
fn a_shaper_that_somebody_replaces_is_left_alone_and_found_again() {
    let Some(computer) = computer("autorate-gone") else { return };
    let out = computer.files.0.join("lines");
    let mut child = started(&computer, &["eth0", "--controller", "fixed:0.5", "--json"], &out);
    until("a decision", || has(&out, "decision"));
    computer.tc("tc qdisc del dev eth0 root");
    until("it is missed", || has(&out, "gone"));
    computer.tc("tc qdisc add dev eth0 root handle 5: tbf rate 8mbit burst 9000b limit 70000b");
    let theirs = computer.installed("eth0");
    until("it is found", || lines(&out).iter().filter(|line| line["event"] == "decision").count() >= 2);
    let last = lines(&out).pop().expect("a line");
    assert_eq!((&last["rate"], &last["reason"]), (&4_000_000.into(), &"fixed".into()));
    // The administrator's own change is the rate to put back from then on.
    computer.tc("tc qdisc change dev eth0 root handle 5: tbf rate 6mbit burst 9000b limit 70000b");
    until("it is seen", || {
        lines(&out).iter().any(|line| line["event"] == "back" && line["found"]["upload"] == 6_000_000)
    });
    until("it is controlled", || lines(&out).last().is_some_and(|line| line["rate"] == 3_000_000));
    // Down and up again is no reason to end.
    computer
        .place
        .go(|| {
            let mut links = tidegate_sys::netlink::Links::open().expect("netlink");
            for up in [false, true] {
                let change = tidegate_sys::netlink::LinkUpdate { up: Some(up), ..Default::default() };
                links.change("eth0", &change).expect("it goes");
            }
        })
        .expect("the thread is there");
    tidegate_sys::process::signal_to_end(child.id());
    assert!(child.wait().expect("it ends").success());
    assert_eq!(lines(&out).last().expect("a line")["put_back"][0]["rate"], 6_000_000);
    assert_ne!(computer.installed("eth0"), theirs, "8 Mbit/s was changed by somebody else meanwhile");
}

#[test]
fn wrong_usage_has_a_remedy() {
    let Some(computer) = computer("autorate-wrong") else { return };
    let config = computer.policy("config.sh", "touch canary\n");
    let cases: [(&[&str], &str); 20] = [
        (&["eth0"], "no hosts to probe: name one"),
        (&["none0", "--target", "192.0.2.1"], "`ip link` lists the devices that there are"),
        (&["lo", "--target", "192.0.2.1"], "the noqueue at the root of lo holds no rate: give it one"),
        (&["eth0", "--down", "eth0", "--target", "192.0.2.1"], "eth0 cannot shape both directions"),
        (&["eth0", "--controller", "known"], "which is not known live; there are tidegate, tidegate:AIM"),
        (&["eth0", "--controller", "program:./x"], "can be tried in `tidegate gym`, not run live; there are"),
        (&["eth0", "--controller", "mine"], "cake-autorate, sqm-autorate, pid, fixed:SHARE\n"),
        (
            &["eth0", "--target", "192.0.2.1", "--min", "30mbit"],
            "must rise in this order, from 8.00 kbit/s: give them with --min, --base and --max",
        ),
        (&["eth0", "--target", "192.0.2.1", "--max", "30mbit,9mbit"], "whose device is not given"),
        (
            &["eth0", "--target", "192.0.2.1", "--controller", "cake-autorate", "--cake-config", &config],
            "line 1: `touch canary` is no setting",
        ),
        // No hosts beyond the line.
        (&["eth0", "--target", "127.3.2.1"], "target 127.3.2.1: it is this computer, and what is sent there"),
        (&["eth0", "--target", "::1"], "target ::1: it is this computer"),
        (&["eth0", "--target", "::ffff:127.0.0.1"], "it is this computer"),
        (
            &["eth0", "--target", "0.0.0.0"],
            "target 0.0.0.0: it is no host's address: name a host beyond the line",
        ),
        (&["eth0", "--target", "::"], "target ::: it is no host's address"),
        (&["eth0", "--target", "224.0.0.1"], "target 224.0.0.1: it is a multicast address"),
        (&["eth0", "--target", "ff02::1"], "target ff02::1: it is a multicast address"),
        (&["eth0", "--target", "255.255.255.255", "--dry-run"], "it is the broadcast address"),
        (&["eth0", "--target", "192.0.2.1", "--log", "/dev/stdout"], "--json prints the same lines"),
        (
            &["eth0", "--target", "192.0.2.1", "--log", &config],
            "config.sh holds something else than lines of",
        ),
    ];
    for (words, expected) in cases {
        let output = computer.tidegate(&[&["autorate"], words].concat());
        assert_eq!(output.status.code(), Some(2), "{words:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{words:?}: {}", stderr(&output));
    }
}

/// A shaper below the lowest rate that is set could not be put back as it was.
#[test]
fn a_shaper_that_is_too_slow_is_refused_with_a_remedy() {
    let Some(computer) = computer("autorate-slow") else { return };
    computer.tc("tc qdisc del dev eth0 root");
    computer.tc("tc qdisc add dev eth0 root handle 5: tbf rate 4kbit burst 9000b limit 70000b");
    let output = computer.tidegate(&["autorate", "eth0", "--controller", "fixed:1"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let expected = "tbf 5: of eth0 has 4.00 kbit/s, and no rate below 8.00 kbit/s is set: give it the rate to \
                    begin with (`tc qdisc change`";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}

#[test]
fn what_cannot_be_logged_ends_it_with_the_files_name_and_a_code_of_its_own() {
    let Some(computer) = computer("autorate-log") else { return };
    let found = computer.installed("eth0");
    let fixed = ["autorate", "eth0", "--controller", "fixed:0.5", "--duration", "300ms", "--log"];
    let with = |path: &str| computer.tidegate(&[&fixed[..], &[path]].concat());
    let full = with("/dev/full");
    assert_eq!(full.status.code(), Some(74), "{}", stderr(&full));
    assert!(stderr(&full).contains("cannot write /dev/full: No space left"), "{}", stderr(&full));
    assert_eq!(computer.installed("eth0"), found);
    done(&with("/dev/null"));

    // A pipe could hold it up, so it is refused before anything is changed.
    let pipe = computer.files.0.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let held = with(&pipe.to_string_lossy());
    assert_eq!(held.status.code(), Some(2), "{}", stderr(&held));
    assert!(stderr(&held).contains("it is no regular file; name one"), "{}", stderr(&held));

    let log = computer.files.0.join("log");
    done(&with(&log.to_string_lossy()));
    let first = lines(&log).len();
    done(&with(&log.to_string_lossy()));
    assert!(first > 2 && lines(&log).len() == 2 * first, "{first}");
}

#[test]
fn quiet_prints_nothing_that_goes_its_usual_course() {
    let Some(computer) = computer("autorate-quiet") else { return };
    let words = ["autorate", "eth0", "--controller", "fixed:0.5", "--duration", "300ms"];
    assert!(done(&computer.tidegate(&words)).contains("running; Ctrl-C ends it"));
    assert_eq!(done(&computer.tidegate(&[&words[..], &["-q"]].concat())), "");
    let decisions = done(&computer.tidegate(&[&words[..], &["-q", "--decisions"]].concat()));
    assert_eq!(decisions, "upload: 10.0 Mbit/s on eth0: the rate is fixed\n");
}

/// The end of a terminal ends it, and it puts the rate back itself; under nohup it goes on.
#[test]
fn a_hangup_ends_it_and_under_nohup_it_does_not() {
    let Some(computer) = computer("autorate-hangup") else { return };
    let found = computer.installed("eth0");
    let out = computer.files.0.join("lines");
    // How long it ran, s, by its own events, when it was hung up at its first decision.
    let hung_up = |through: &[&str], time: &str| {
        let mut command = Command::new(through[0]);
        command.args(&through[1..]).args([
            TIDEGATE,
            "autorate",
            "eth0",
            "--controller",
            "fixed:0.5",
            "--json",
        ]);
        command.args(["--duration", time]).env("TIDEGATE_RUN", computer.files.0.join("run"));
        command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(fs::File::create(&out).expect("a file"));
        let child = computer.place.go(move || command.spawn()).expect("the thread is there");
        let mut child = Guarded(child.expect("it starts"));
        until("a decision", || has(&out, "decision"));
        let pid = child.id().to_string();
        assert!(Command::new("kill").args(["-HUP", &pid]).status().expect("kill").success());
        assert!(child.wait().expect("it ends").success());
        assert_eq!(computer.installed("eth0"), found);
        let all = lines(&out);
        let at = |event: &str| {
            all.iter()
                .find(|line| line["event"] == event)
                .and_then(|line| line["at"].as_f64())
                .expect("a time")
        };
        at("ended") - at("begun")
    };
    // Who runs the tests may ignore hangups, as nohup does, and programs inherit that.
    let took = hung_up(&["env", "--default-signal=HUP"], "60s");
    assert!(took < 50.0, "the hangup ended it, not its time: {took}");
    let took = hung_up(&["nohup"], "1s");
    assert!(took > 0.9, "{took}");
}

#[test]
fn a_dry_run_shows_what_stands_in_the_way() {
    let Some(computer) = computer("autorate-dry") else { return };
    let dry = ["autorate", "eth0", "--controller", "fixed:0.5", "--dry-run"];
    // A missing permission has a code of its own.
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-all", "--inh-caps=-all", TIDEGATE, "autorate", "eth0", "--dry-run"]);
    command.args(["--target", "192.0.2.1"]).env("TIDEGATE_RUN", computer.files.0.join("run"));
    match computer.place.go(move || command.output()).expect("the thread is there") {
        Ok(output) => {
            assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
            assert!(stderr(&output).contains("CAP_NET_RAW"), "{}", stderr(&output));
        }
        Err(error) => println!("SKIPPED: there is no setpriv ({error})"),
    }

    let out = computer.files.0.join("lines");
    let mut child = started(&computer, &["eth0", "--controller", "fixed:0.5", "--json"], &out);
    until("a decision", || has(&out, "decision"));
    let slower = computer.installed("eth0");
    let second = computer.tidegate(&dry);
    assert_eq!(second.status.code(), Some(2), "{}", stderr(&second));
    let said = format!("the rate of eth0 is controlled already, by process {}", child.id());
    assert!(stderr(&second).contains(&said), "{}", stderr(&second));

    // An ordinary user may not know whether it runs still.
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", TIDEGATE]).args(dry);
    command.env("TIDEGATE_RUN", computer.files.0.join("run"));
    match computer.place.go(move || command.output()).expect("the thread is there") {
        // That user may not reach the program everywhere.
        Ok(output) if output.status.code() != Some(127) => {
            let said = done(&output);
            assert!(
                said.contains("eth0: another user's `tidegate autorate` controls it, or was killed"),
                "{said}"
            );
        }
        other => println!("SKIPPED: no ordinary user can run it here ({other:?})"),
    }

    // Both are killed, so that the record stays.
    let pid = child.id().to_string();
    let guard = Command::new("pgrep").args(["-P", &pid]).output().expect("pgrep");
    let guard = String::from_utf8(guard.stdout).expect("text");
    assert!(Command::new("kill").args(["-9", guard.trim(), &pid]).status().expect("kill").success());
    child.wait().expect("it is dead");
    let left = done(&computer.tidegate(&dry));
    assert!(left.contains("a run puts back 20.0 Mbit/s first") && left.contains("--restore"), "{left}");
    let plan = common::computer::json(&computer.tidegate(&[&dry[..], &["--json"]].concat()));
    assert_eq!((&plan["left"][0]["device"], &plan["left"][0]["rate"]), (&"eth0".into(), &20_000_000.into()));
    assert_eq!(computer.installed("eth0"), slower, "nothing was changed");

    // What cannot be put back is kept until it is.
    computer.tc("tc qdisc del dev eth0 root");
    for _ in 0..2 {
        let restored = computer.tidegate(&["autorate", "eth0", "--restore"]);
        let said = stderr(&restored);
        assert_eq!(restored.status.code(), Some(1), "{said}");
        assert!(said.contains("NOT put back") && said.contains("what to put back is kept"), "{said}");
    }
    computer.tc("tc qdisc add dev eth0 root handle 1: htb default 10");
    computer.tc("tc class add dev eth0 parent 1: classid 1:10 htb rate 3mbit burst 9000b");
    let restored = done(&computer.tidegate(&["autorate", "eth0", "--restore"]));
    assert!(restored.contains("eth0 has 20.0 Mbit/s again"), "{restored}");
    let nothing = done(&computer.tidegate(&["autorate", "eth0", "--restore"]));
    assert!(nothing.contains("nothing to put back on eth0"), "{nothing}");
}

/// A device that goes away (a modem that is unplugged) is waited for, and controlled again when it is back.
#[test]
fn a_device_that_goes_away_and_comes_back_is_controlled_again() {
    let Some(computer) = computer("autorate-back") else { return };
    let out = computer.files.0.join("lines");
    let mut child = started(&computer, &["eth0", "--controller", "fixed:0.5", "--json"], &out);
    until("a decision", || has(&out, "decision"));
    let links = |change: fn(&mut tidegate_sys::netlink::Links) -> std::io::Result<()>| {
        let go = move || change(&mut tidegate_sys::netlink::Links::open().expect("netlink"));
        computer.place.go(go).expect("the thread is there").expect("it goes");
    };
    links(|links| links.delete("eth0"));
    until("it is missed", || has(&out, "gone"));
    links(|links| links.create_like("eth0", "dummy", 1000));
    computer.tc("tc qdisc add dev eth0 root handle 1: htb default 10");
    computer.tc("tc class add dev eth0 parent 1: classid 1:10 htb rate 8mbit burst 9000b");
    let found = computer.installed("eth0");
    until("it is controlled", || lines(&out).last().is_some_and(|line| line["rate"] == 4_000_000));
    tidegate_sys::process::signal_to_end(child.id());
    assert!(child.wait().expect("it ends").success());
    assert_eq!(lines(&out).last().expect("a line")["put_back"][0]["rate"], 8_000_000);
    assert_eq!(computer.installed("eth0"), found);
}

/// Without any reply nothing is known of the line: the rate that was found holds. Without load no probe is
/// sent.
#[test]
fn without_replies_the_found_rate_holds_and_without_load_no_probe_is_sent() {
    let Some(computer) = computer("autorate-blind") else { return };
    let found = computer.installed("eth0");
    computer
        .place
        .go(|| {
            let mut links = tidegate_sys::netlink::Links::open().expect("netlink");
            let up = tidegate_sys::netlink::LinkUpdate { up: Some(true), ..Default::default() };
            links.change("eth0", &up).expect("it goes");
            links.address("eth0", "192.0.2.9".parse().expect("an address")).expect("it goes");
            links.add_route("eth0", "192.0.2.1".parse().expect("an address")).expect("it goes");
        })
        .expect("the thread is there");
    let sent = || -> u64 {
        let read = || {
            let mut kernel = tidegate_netlink::Kernel::open().expect("netlink");
            kernel.root("eth0").expect("a listing").expect("a root").stats.packets
        };
        computer.place.go(read).expect("the thread is there")
    };
    let out = computer.files.0.join("lines");
    let words = ["eth0", "--target", "192.0.2.1", "--base", "5mbit", "--idle", "0", "--json"];
    let mut child = started(&computer, &words, &out);
    until("it is blind", || has(&out, "blind"));
    assert_eq!(computer.installed("eth0"), found);
    let before = sent();
    until("it looks for one", || sent() > before + 10);
    tidegate_sys::process::signal_to_end(child.id());
    assert!(child.wait().expect("it ends").success());

    let before = sent();
    let words =
        ["eth0", "--target", "192.0.2.1", "--base", "5mbit", "--idle", "1s", "--duration", "5s", "--json"];
    let mut child = started(&computer, &words, &out);
    assert!(child.wait().expect("it ends").success());
    let all = lines(&out);
    let at =
        |event: &str| all.iter().find(|line| line["event"] == event).and_then(|line| line["at"].as_f64());
    let at = ["begun", "idle", "ended"].map(|event| at(event).unwrap_or_else(|| panic!("{event}: {all:?}")));
    // 25 a second until then, and none in the time after; the computer's own packets (neighbours) are few.
    let (probed, rested) = (25.0 * (at[1] - at[0]), 25.0 * (at[2] - at[1]));
    let count = (sent() - before) as f64;
    assert!(rested > 50.0 && count < probed + 0.5 * rested, "{count} packets, {at:?}");
    assert!(all.iter().all(|line| line["event"] != "blind"), "no reply is missed without a probe");
    assert_eq!(computer.installed("eth0"), found);
}

/// A lock that is not one is named with what to do.
#[test]
fn a_lock_that_cannot_be_taken_has_a_remedy() {
    let Some(computer) = computer("autorate-lock") else { return };
    let words = ["autorate", "eth0", "--controller", "fixed:0.5", "--duration", "100ms"];
    done(&computer.tidegate(&words));
    let run = computer.files.0.join("run");
    let net = fs::read_dir(&run).expect("made").flatten().next().expect("a directory").path();
    let lock = fs::read_dir(&net).expect("made").flatten().map(|entry| entry.path());
    let lock = lock.into_iter().find(|path| path.extension().is_some_and(|end| end == "steering"));
    let lock = lock.expect("a lock");
    fs::remove_file(&lock).expect("it is there");
    std::os::unix::fs::symlink("/nowhere", &lock).expect("a link");
    let output = computer.tidegate(&words);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("the lock of eth0 cannot be taken; remove that file"), "{said}");
}

/// Real TCP and the real clock: half a line, and the rate follows.
#[test]
fn the_rate_follows_a_line_that_is_halved() {
    if skip() {
        return;
    }
    let place = Place::new("autorate-line");
    place.file("up.csv", "time,rate\n0,4mbit\n6,2mbit\n60,2mbit\n");
    place.file(
        "in.sh",
        // Probes do not wait behind the transfer in the shaper's own queue (docs/autorate.md).
        "tc qdisc add dev eth0 root handle 1: htb default 10 && \
         tc class add dev eth0 parent 1: classid 1:1 htb rate 3mbit quantum 1514 && \
         tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2700kbit ceil 3mbit prio 1 quantum 1514 && \
         tc class add dev eth0 parent 1:1 classid 1:20 htb rate 300kbit ceil 3mbit prio 0 quantum 1514 && \
         tc qdisc add dev eth0 parent 1:10 bfifo limit 15000 && \
         tc qdisc add dev eth0 parent 1:20 bfifo limit 15000 && \
         iptables -t mangle -A OUTPUT -p icmp -j CLASSIFY --set-class 1:20 || exit 77\n\
         $TIDEGATE autorate eth0 --target server --json > lines & pid=$!\n\
         $TIDEGATE measure server tcp_1up --duration 11s --idle 1s > measured 2>&1\n\
         kill -TERM $pid; wait $pid; echo $? > code; tc class show dev eth0 > after\n",
    );
    let server = format!("{TIDEGATE} serve --open");
    let mut command = Command::new(TIDEGATE);
    command.args(["shell", "--trace", "up.csv", "--down", "10mbit", "--rtt", "30ms"]);
    command.args(["--server-command", &server, "--", "sh", "in.sh"]).current_dir(&place.0);
    command.env("TIDEGATE", TIDEGATE).env("TIDEGATE_RUN", place.0.join("run"));
    let output = command.stdin(Stdio::null()).output().expect("tidegate runs");
    if matches!(output.status.code(), Some(4 | 77)) || !place.0.join("code").exists() {
        return println!("SKIPPED: no line, or no htb with tc, can be had here: {}", stderr(&output));
    }
    let lines = lines(&place.0.join("lines"));
    // What follows what is judged, not when, and no rate from below but the least allowed: a busy machine is
    // late, which the controller takes for a queue.
    let decisions = lines.iter().filter(|line| line["event"] == "decision");
    let rates: Vec<u64> = decisions.filter_map(|line| line["rate"].as_u64()).collect();
    assert_eq!(rates.first(), Some(&3_000_000), "{rates:?}");
    assert!(rates.iter().all(|rate| *rate >= 600_000), "{rates:?}");
    let mut later = rates[rates.len() / 2..].to_vec();
    later.sort_unstable();
    assert!(later.get(later.len() / 2).is_some_and(|rate| *rate < 2_600_000), "{rates:?}");
    let kept = fs::read_to_string(place.0.join("after")).expect("a listing");
    assert!(
        ["rate 3Mbit ceil 3Mbit", "rate 2700Kbit ceil 3Mbit"].iter().all(|rate| kept.contains(rate)),
        "{kept}"
    );
    assert_eq!(fs::read_to_string(place.0.join("code")).expect("a code").trim(), "0");
}
