//! The hooks that apply a policy again when its device comes back (packaging/link): a line that is dialled
//! again, a machine that restarts, device names that attack.

mod common;

use common::wire::{WIRE, Wire, until};
use common::{Place, TIDEGATE};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use tidegate_netlink::Kernel;
use tidegate_sys::netlink::{LinkUpdate, Links};

/// The device of the line that is dialled again. A veth: kernels without PPP know no better.
const PPP: &str = "ppp0";

/// A policy that every kernel can run.
const POLICY: &str = "tc qdisc add dev ppp0 root handle 1: htb default 10
tc class add dev ppp0 parent 1: classid 1:10 htb rate 50mbit
tc qdisc add dev ppp0 parent 1:10 handle 10: pfifo limit 1000
";

fn hook(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/link").join(name)
}

/// A gateway with a line that is dialled; `None`: no namespaces can be made.
fn gateway(test: &str) -> Option<Wire> {
    if common::skip() {
        return None;
    }
    let wire = Wire::lay(test)?;
    wire.unplug(WIRE);
    wire.plug(PPP);
    let bin = wire.room.join("bin");
    std::fs::create_dir_all(&bin).expect("a directory");
    std::os::unix::fs::symlink(TIDEGATE, bin.join("tidegate")).expect("a link");
    Some(wire)
}

/// What the hook does on the near machine when a device comes up.
fn link_up(wire: &Wire, dev: &str) -> Output {
    let path = format!("{}:{}", wire.room.join("bin").display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(hook("link-up"));
    command.args(["--now", dev]).env("PATH", path).env("SSH_CONNECTION", "").stdin(Stdio::null());
    command.env("TIDEGATE_RUN", &wire.room).env("TIDEGATE_STATE", wire.room.join("kept"));
    wire.near.go(move || command.output()).expect("place").expect("it runs")
}

fn done(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// The exit code of `tidegate status`, and the code of the first policy's condition.
fn status(wire: &Wire) -> (Option<i32>, Value) {
    let output = wire.tidegate(&["status", "--json"]);
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code(), document["policies"][0]["code"].clone())
}

/// Packets that left through the kernel's root qdisc of a kind; `None`: there is none.
fn sent_by(wire: &Wire, kind: &'static str) -> Option<u64> {
    let looked = wire.near.go(move || {
        let (installed, _) = Kernel::open().ok()?.installed(PPP).ok()?;
        let root = installed.qdiscs.iter().find(|qdisc| qdisc.kind.name() == kind)?;
        Some(root.stats.packets)
    });
    looked.expect("place")
}

fn redial(wire: &Wire) {
    wire.unplug(PPP);
    wire.plug(PPP);
}

/// Dialled again under load, twice: the kernel's qdiscs go with the device, and the hook brings them back.
#[test]
fn the_kernels_qdiscs_come_back_with_a_line_that_is_dialled_again() {
    let Some(wire) = gateway("redial-kernel") else { return };
    let policy = wire.file("policy.sh", POLICY);
    done(&wire.tidegate(&["apply", &policy, "--backend", "kernel"]));
    assert_eq!(status(&wire), (Some(0), 0.into()));
    wire.stream(Duration::from_millis(1), |arrived| {
        for _ in 0..2 {
            wire.unplug(PPP);
            assert_eq!(status(&wire), (Some(1), 6.into()), "device gone");
            wire.plug(PPP);
            assert_eq!(status(&wire), (Some(1), 5.into()), "drifted: a new device has no queues");
            assert_eq!(sent_by(&wire, "htb"), None);
            let output = done(&link_up(&wire, PPP));
            assert!(output.contains("applied to ppp0"), "{output}");
            assert_eq!(status(&wire), (Some(0), 0.into()));
            let then = arrived();
            until("datagrams pass again", || arrived() > then + 50);
            until("they pass the qdisc", || sent_by(&wire, "htb") > Some(50));
            let again = done(&link_up(&wire, PPP));
            assert!(again.contains("nothing to change: the policy is already in place"), "{again}");
        }
    });
    assert_eq!(done(&link_up(&wire, "eth7")), "", "a device without a policy");
    done(&wire.tidegate(&["down"]));
    assert_eq!(done(&link_up(&wire, PPP)), "", "a policy that was taken down");
    assert_eq!(sent_by(&wire, "htb"), None);
}

/// The daemon follows its device on its own; the hook finds nothing to do.
#[test]
fn a_daemon_and_the_hook_agree_about_a_line_that_is_dialled_again() {
    let Some(wire) = gateway("redial-user") else { return };
    let policy = wire.file("policy.sh", POLICY);
    done(&wire.tidegate(&["apply", &policy, "--backend", "user"]));
    let pid = |wire: &Wire| wire.ask(PPP, &serde_json::json!({"ask": "status"})).map(|it| it["pid"].clone());
    let (first, begun) = (pid(&wire), status(&wire));
    assert_eq!(begun, (Some(0), 0.into()));
    wire.stream(Duration::from_millis(1), |arrived| {
        wire.unplug(PPP);
        until("it is missed", || status(&wire) == (Some(1), 6.into()));
        wire.plug(PPP);
        // While the daemon is still on its way back, or after that.
        done(&link_up(&wire, PPP));
        until("it is back", || status(&wire) == (Some(0), 0.into()));
        let again = done(&link_up(&wire, PPP));
        assert!(again.contains("nothing to change: the policy is already in place"), "{again}");
        let then = arrived();
        until("datagrams pass again", || arrived() > then + 50);
    });
    assert_eq!(pid(&wire), first, "it is the same process");
    done(&wire.tidegate(&["down"]));
}

/// A policy that was only brought back is no step to revert: before it was what was there first.
#[test]
fn a_revert_leads_past_the_hook() {
    let Some(wire) = gateway("redial-revert") else { return };
    let first =
        wire.file("first.sh", "tc qdisc add dev ppp0 root handle 7: tbf rate 9mbit burst 9k latency 9ms\n");
    let second = wire.file("second.sh", POLICY);
    for policy in [&first, &second] {
        done(&wire.tidegate(&["apply", policy, "--backend", "kernel", "--force"]));
    }
    for _ in 0..2 {
        redial(&wire);
        done(&link_up(&wire, PPP));
    }
    done(&wire.tidegate(&["revert"]));
    assert_eq!((sent_by(&wire, "tbf").is_some(), status(&wire)), (true, (Some(0), 0.into())));
    redial(&wire);
    done(&link_up(&wire, PPP));
    assert_eq!((sent_by(&wire, "tbf").is_some(), status(&wire)), (true, (Some(0), 0.into())));
    done(&wire.tidegate(&["revert"]));
    assert_eq!((sent_by(&wire, "tbf"), status(&wire).0, kept(&wire)), (None, Some(1), vec![]));
}

/// A renamed device keeps its queues: there is nothing to do for it under either name.
#[test]
fn a_renamed_device_needs_nothing() {
    let Some(wire) = gateway("renamed-link") else { return };
    let policy = wire.file("policy.sh", POLICY);
    done(&wire.tidegate(&["apply", &policy, "--backend", "kernel"]));
    let rename = |from: &'static str, to: &'static str| {
        let renamed = wire.near.go(move || {
            let mut links = Links::open()?;
            links.change(from, &LinkUpdate { up: Some(false), ..LinkUpdate::default() })?;
            links.change(from, &LinkUpdate { name: Some(to.into()), up: Some(true), ..LinkUpdate::default() })
        });
        renamed.expect("place").expect("another name");
    };
    rename(PPP, "wan7");
    assert_eq!(done(&link_up(&wire, "wan7")), "");
    rename("wan7", PPP);
    let again = done(&link_up(&wire, PPP));
    assert!(again.contains("nothing to change: the policy is already in place"), "{again}");
    assert_eq!(status(&wire), (Some(0), 0.into()));
    done(&wire.tidegate(&["down"]));
}

/// One that is not confirmed yet is not made permanent by a line that is dialled again: it is undone in time,
/// and what was confirmed before it comes back.
#[test]
fn a_line_that_is_dialled_again_confirms_nothing() {
    let Some(wire) = gateway("redial-unconfirmed") else { return };
    let confirmed = wire.file("policy.sh", POLICY);
    let other =
        wire.file("other.sh", "tc qdisc add dev ppp0 root handle 7: tbf rate 9mbit burst 9k latency 9ms\n");
    let apply = |policy: &str, more: &[&str]| {
        let words = [&["apply", policy, "--backend", "kernel", "--force"], more].concat();
        done(&wire.tidegate(&words));
    };
    // Nothing was confirmed before.
    apply(&other, &["--confirm", "1s"]);
    redial(&wire);
    link_up(&wire, PPP);
    assert_eq!(sent_by(&wire, "tbf"), None);
    until("it is undone", || wire.tidegate(&["status"]).status.code() == Some(1) && kept(&wire).is_empty());
    done(&link_up(&wire, PPP));
    assert_eq!(sent_by(&wire, "tbf"), None);
    // One was.
    apply(&confirmed, &[]);
    apply(&other, &["--confirm", "1s"]);
    assert!(sent_by(&wire, "tbf").is_some());
    redial(&wire);
    link_up(&wire, PPP);
    until("the confirmed one is back", || {
        assert_eq!(sent_by(&wire, "tbf"), None, "a policy that was never confirmed came back");
        sent_by(&wire, "htb").is_some() && status(&wire) == (Some(0), 0.into())
    });
    done(&wire.tidegate(&["down"]));
}

/// The files of the policies that come back.
fn kept(wire: &Wire) -> Vec<String> {
    let entries = std::fs::read_dir(wire.room.join("kept")).into_iter().flatten().flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.ends_with(".json")).collect()
}

/// A machine after a restart: other namespaces, an empty /run, and the disk of the one before.
fn restarted(before: Wire, test: &str) -> Option<Wire> {
    let after = gateway(test)?;
    let copied = Command::new("cp").arg("-r").arg(before.room.join("kept")).arg(&after.room).status();
    assert!(copied.expect("cp").success());
    drop(before);
    Some(after)
}

/// What was confirmed is there after a restart of the machine, by the boot or by the device that comes later;
/// what was not is not.
#[test]
fn a_confirmed_policy_survives_a_restart_and_an_unconfirmed_one_does_not() {
    let other = "tc qdisc add dev ppp0 root handle 7: tbf rate 9mbit burst 9k latency 9ms\n";
    for by_hook in [false, true] {
        // A process of the round before may still write into its directory.
        let room = |number: u32| format!("boot-{number}-{by_hook}");
        let Some(wire) = gateway(&room(1)) else { return };
        let policy = wire.file("policy.sh", POLICY);
        done(&wire.tidegate(&["apply", &policy, "--backend", "kernel", "--confirm", "3600s"]));
        assert!(kept(&wire).is_empty(), "nothing is confirmed yet");
        done(&wire.tidegate(&["confirm"]));
        let other = wire.file("other.sh", other);
        done(&wire.tidegate(&["apply", &other, "--backend", "kernel", "--force", "--confirm", "3600s"]));
        assert!(sent_by(&wire, "tbf").is_some());
        let Some(wire) = restarted(wire, &room(2)) else { return };
        assert_eq!((sent_by(&wire, "htb"), status(&wire).0), (None, Some(1)));
        if by_hook {
            done(&link_up(&wire, PPP));
        } else {
            done(&wire.tidegate(&["apply", "--at-boot"]));
        }
        assert!(sent_by(&wire, "htb").is_some() && sent_by(&wire, "tbf").is_none());
        assert_eq!(status(&wire), (Some(0), 0.into()));

        // Nothing at all was confirmed.
        let Some(wire) = gateway(&room(3)) else { return };
        let other = wire.file("other.sh", "tc qdisc add dev ppp0 root handle 7: pfifo limit 9\n");
        std::fs::create_dir_all(wire.room.join("kept")).expect("a directory");
        done(&wire.tidegate(&["apply", &other, "--backend", "kernel", "--confirm", "3600s"]));
        let Some(wire) = restarted(wire, &room(4)) else { return };
        done(&link_up(&wire, PPP));
        done(&wire.tidegate(&["apply", "--at-boot"]));
        assert_eq!((sent_by(&wire, "pfifo"), status(&wire).0), (None, Some(1)));
    }
}

/// A machine whose tidegate, systemctl and systemd-escape write down how they were called.
fn recorder(name: &str) -> Place {
    let place = Place::new(name);
    std::fs::create_dir_all(place.0.join("kept")).expect("a directory");
    place.file("kept/ppp0.json", "{}");
    for program in ["tidegate", "systemctl"] {
        let calls = place.0.join("calls");
        place.script(program, format!("#!/bin/sh\nprintf '%s\\n' \"{program} $*\" >>{}\n", calls.display()));
    }
    place.script(
        "systemd-escape",
        "#!/bin/sh\n[ \"$1\" = -- ] && printf '%s\\n' \"$2\" | sed 's/-/\\\\x2d/g'\n",
    );
    place
}

/// The calls since the last look.
fn calls(place: &Place) -> String {
    let calls = std::fs::read_to_string(place.0.join("calls")).unwrap_or_default();
    let _ = std::fs::remove_file(place.0.join("calls"));
    calls
}

fn with_recorder(place: &Place, program: &Path, words: &[&str], more: &[(&str, &str)]) -> Output {
    let path = format!("{}:{}", place.0.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(program);
    command.args(words).env("PATH", path).env("TIDEGATE_STATE", place.0.join("kept"));
    command.env_remove("IFACE").env_remove("PPP_IFACE").env_remove("DEVICE_IP_IFACE").current_dir(&place.0);
    command.envs(more.iter().copied()).output().expect("it runs")
}

#[test]
fn names_that_attack_are_left_alone() {
    let place = recorder("link-names");
    let canary = place.0.join("canary");
    let run = |words: &[&str]| with_recorder(&place, &hook("link-up"), words, &[]);
    for name in [
        "",
        ".",
        "..",
        "-",
        "-x",
        "--all",
        "--help",
        "lo",
        "none",
        "*",
        "?",
        "ppp*",
        "veth[0-9]",
        "a b",
        "ppp0 --force",
        "$(touch canary)",
        "`touch canary`",
        ";touch canary",
        "|touch canary",
        "x\ntouch canary",
        "&touch canary",
        ">canary",
        "'",
        "\"",
        "\\",
        "a'b",
        "%n",
        "${HOME}",
        "~",
        "größe",
        "sixteen-letters-",
        "/",
        "x/",
        "/sys/class/net/",
        "serve,token",
    ] {
        for now in [&["--now"][..], &[]] {
            let output = run(&[now, &[name]].concat());
            assert!(output.status.success() && output.stderr.is_empty(), "{name:?}: {output:?}");
            assert_eq!((calls(&place), canary.exists()), (String::new(), false), "{name:?}");
        }
    }
    for (name, called) in [
        ("ppp0", "ppp0"),
        ("br-lan", "br-lan"),
        ("eth0.10", "eth0.10"),
        ("wg_home", "wg_home"),
        ("fifteen-letters", "fifteen-letters"),
        ("/sys/devices/virtual/net/ppp0", "ppp0"),
        ("sys/devices/pci0000:00/0000:00:03.0/net/br-lan", "br-lan"),
        ("../../etc/passwd", "passwd"),
    ] {
        assert!(run(&["--now", name]).status.success());
        assert_eq!(calls(&place), format!("tidegate apply --at-boot --dev={called}\n"), "{name}");
    }
    // Nothing was ever confirmed: nothing is run.
    std::fs::remove_file(place.0.join("kept/ppp0.json")).expect("it was there");
    assert!(run(&["--now", "ppp0"]).status.success());
    assert_eq!(calls(&place), "");
}

/// With systemd the hooks have a unit do it, so that what is started belongs to tidegate.
#[test]
fn with_systemd_a_unit_does_it() {
    let place = recorder("link-systemd");
    let inside = "mount -t tmpfs none /run && mkdir -p /run/systemd/system && exec \"$@\"";
    let link_up = hook("link-up").to_string_lossy().into_owned();
    for (dev, escaped) in [("ppp0", "ppp0"), ("br-lan", "br\\x2dlan")] {
        let words = ["-Urm", "sh", "-c", inside, "sh", &link_up, dev];
        let output = with_recorder(&place, Path::new("unshare"), &words, &[]);
        if !output.status.success() {
            println!("left out: {}", String::from_utf8_lossy(&output.stderr));
            return;
        }
        assert_eq!(calls(&place), format!("systemctl --no-block start tidegate-link@{escaped}.service\n"));
    }
}

/// Each hook gives the device that came up, and nothing when one goes.
#[test]
fn each_hook_names_the_device_that_came_up() {
    let place = recorder("link-hooks");
    for name in ["networkmanager", "ifupdown", "ppp"] {
        let text = std::fs::read_to_string(hook(name)).expect("a hook");
        place.script(
            name,
            text.replace("/usr/lib/tidegate/link-up", &place.0.join("link-up").to_string_lossy()),
        );
    }
    let text = std::fs::read_to_string(hook("link-up")).expect("the program");
    // What systemd does is another test's.
    place.script("link-up", text.replace("/run/systemd/system", "/nonexistent"));
    let applied = |devices: &[&str]| -> String {
        devices.iter().map(|dev| format!("tidegate apply --at-boot --dev={dev}\n")).collect()
    };
    for (name, words, more, devices) in [
        ("networkmanager", &["eth0", "up"][..], &[][..], &["eth0"][..]),
        ("networkmanager", &["eth0", "up"], &[("DEVICE_IP_IFACE", "eth0")], &["eth0"]),
        ("networkmanager", &["eth0", "up"], &[("DEVICE_IP_IFACE", "ppp0")], &["eth0", "ppp0"]),
        ("networkmanager", &["eth0", "dhcp4-change"], &[("DEVICE_IP_IFACE", "eth0")], &["eth0"]),
        ("networkmanager", &["eth0", "down"], &[], &[]),
        ("networkmanager", &["eth0", "pre-up"], &[], &[]),
        ("networkmanager", &["none", "hostname"], &[], &[]),
        ("networkmanager", &["$(touch canary)", "up"], &[("DEVICE_IP_IFACE", ";touch canary")], &[]),
        ("ifupdown", &[], &[("IFACE", "eth0")], &["eth0"]),
        ("ifupdown", &[], &[("IFACE", "--all")], &[]),
        ("ifupdown", &[], &[], &[]),
        ("ppp", &["ppp0", "/dev/pts/3", "38400", "192.0.2.1", "192.0.2.2", ""], &[], &["ppp0"]),
        ("ppp", &[], &[("PPP_IFACE", "ppp1")], &["ppp1"]),
        ("ppp", &[], &[], &[]),
    ] {
        let output = with_recorder(&place, &place.0.join(name), words, more);
        assert!(output.status.success() && output.stderr.is_empty(), "{name} {words:?} {more:?}: {output:?}");
        assert_eq!(calls(&place), applied(devices), "{name} {words:?} {more:?}");
    }
    assert!(!place.0.join("canary").exists());
}
