//! The packaged units and hooks: their own command lines, run in namespaces that the tests make.

mod common;

use common::wire::{LIMIT, WIRE, Wire, until};
use serde_json::{Value, json};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::time::Duration;

/// A link that every kernel can shape.
const POLICY: &str = "tc qdisc add dev wire0 root handle 1: htb default 10
tc class add dev wire0 parent 1: classid 1:10 htb rate 50mbit
tc qdisc add dev wire0 parent 1:10 handle 10: pfifo limit 1000
";

fn packaging(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").join(name)
}

/// The words behind `Key=` in a unit, for a device, without the program; its policies are in `etc`.
fn unit_words(unit: &str, key: &str, dev: &str, etc: &str) -> Vec<String> {
    let text = std::fs::read_to_string(packaging(unit)).expect("a unit");
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('=')).expect("the key");
    let words = line.strip_prefix("/usr/bin/tidegate ").expect("it runs tidegate").split(' ');
    words.map(|word| word.replace("%I", dev).replace("/etc/tidegate", etc)).collect()
}

/// What a service manager starts on the near machine, and hears of it.
struct Service<'w> {
    wire: &'w Wire,
    heard: UnixDatagram,
    child: Child,
}

impl Drop for Service<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl<'w> Service<'w> {
    /// Starts it with a watchdog of this many microseconds.
    fn start(wire: &'w Wire, words: &[String], watchdog_us: &str) -> Service<'w> {
        let place = wire.room.join("notify");
        let heard = UnixDatagram::bind(&place).expect("a socket");
        heard.set_read_timeout(Some(LIMIT)).expect("a limit");
        let mut command = Command::new(common::TIDEGATE);
        command.args(words).env("TIDEGATE_RUN", &wire.room).env("SSH_CONNECTION", "");
        command.env("NOTIFY_SOCKET", &place).env("WATCHDOG_USEC", watchdog_us);
        let child = wire.near.go(move || command.spawn()).expect("place").expect("it starts");
        Service { wire, heard, child }
    }

    /// Waits for a message.
    fn hear(&self) -> String {
        let mut room = [0; 200];
        let bytes = self.heard.recv(&mut room).expect("it says something");
        String::from_utf8_lossy(&room[..bytes]).into_owned()
    }

    fn status(&self) -> Value {
        self.wire.ask(WIRE, &json!({"ask": "status"})).unwrap_or_default()
    }

    /// Does what a reload of the unit does.
    fn reload(&self, words: &[String]) -> Output {
        self.wire.tidegate(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    fn classes(&self) -> String {
        let words = ["class", "show", "dev", WIRE];
        let document = self.wire.ask(WIRE, &json!({"ask": "tc", "words": words})).unwrap_or_default();
        document["stdout"].as_str().unwrap_or_default().to_owned()
    }
}

fn words_of(wire: &Wire, key: &str) -> Vec<String> {
    unit_words("tidegate@.service", key, WIRE, &wire.room.to_string_lossy())
}

/// A changed policy is taken over under load without losing a packet; one with an error is refused, and the
/// running one stays.
#[test]
fn the_unit_reloads_a_changed_policy_and_keeps_the_running_one_if_it_is_broken() {
    let Some(wire) = Wire::lay("unit-reload") else { return };
    wire.file(WIRE, POLICY);
    let (start, reload) = (words_of(&wire, "ExecStart"), words_of(&wire, "ExecReload"));
    let service = Service::start(&wire, &start, "0");
    assert_eq!(service.hear(), "READY=1\nSTATUS=packets pass through tidegate");
    let pid = service.status()["pid"].clone();
    let ((), sent, arrived) = wire.stream(Duration::from_millis(1), |arrived| {
        until("datagrams pass", || arrived() > 50);
        for (rate, shown) in [("40mbit", "rate 40Mbit"), ("50mbit", "rate 50Mbit"), ("30mbit", "rate 30Mbit")]
        {
            wire.file(WIRE, &POLICY.replace("50mbit", rate));
            let done = service.reload(&reload);
            assert!(done.status.success(), "{done:?}");
            assert!(service.classes().contains(shown), "{}", service.classes());
            let then = arrived();
            until("datagrams pass", || arrived() > then + 50);
        }
        let (before, then) = (service.classes(), arrived());
        for broken in ["tc qdisc add dev wire0 root handle 1: htb default 10 rat 7", "", "true"] {
            wire.file(WIRE, broken);
            let refused = service.reload(&reload);
            assert!(!refused.status.success(), "{broken}: {refused:?}");
            assert!(!refused.stderr.is_empty(), "{broken}: no reason is given");
            assert_eq!(service.classes(), before, "{broken}");
        }
        until("datagrams pass", || arrived() > then + 50);
    });
    assert_eq!(arrived, sent, "no datagram was lost by a reload");
    assert_eq!(service.status()["pid"], pid, "it is the same process");
    assert_eq!(service.status()["counts"]["dropped"], 0);
}

/// Signs of life come while the thread that moves packets works, also while its device is gone: a restart
/// would not bring that back.
#[test]
fn the_unit_gives_signs_of_life() {
    let Some(wire) = Wire::lay("unit-watchdog") else { return };
    wire.file(WIRE, POLICY);
    let service = Service::start(&wire, &words_of(&wire, "ExecStart"), "60000");
    let first = service.hear();
    assert!(first.starts_with("READY=1\n"), "{first}");
    let lives = || (0..3).for_each(|_| assert_eq!(service.hear(), "WATCHDOG=1"));
    lives();
    wire.unplug(WIRE);
    until("it says so", || service.status()["last_error"].is_string());
    lives();
    wire.plug(WIRE);
    until("packets pass again", || service.status()["openings"] == 2);
    lives();
}

/// A device of a container's, outside: it appears, is used and vanishes.
fn container(wire: &Wire, dev: &'static str) {
    let is_shaped = || wire.ask(dev, &json!({"ask": "status"})).is_some_and(|it| it["openings"] == 1);
    wire.plug(dev);
    until("its device is shaped", is_shaped);
    wire.transfer(300_000);
    let listing = wire.ask(dev, &json!({"ask": "tc", "words": ["-s", "-j", "qdisc", "show"]}));
    let listing = listing.unwrap_or_default()["stdout"].as_str().unwrap_or_default().to_owned();
    let qdiscs: Value = serde_json::from_str(&listing).unwrap_or_else(|_| panic!("{listing}"));
    // A receiver that is late answers several segments at once.
    for (handle, least) in [("1:", 300_000), ("2:", 500)] {
        let qdisc = qdiscs.as_array().into_iter().flatten().find(|qdisc| qdisc["handle"] == handle);
        let bytes = qdisc.and_then(|qdisc| qdisc["bytes"].as_u64());
        assert!(bytes.is_some_and(|bytes| bytes > least), "{handle} {listing}");
    }
    wire.unplug(dev);
    until("its daemon has ended", || wire.ask(dev, &json!({"ask": "status"})).is_none());
}

/// Containers' devices come and go; each is shaped in both directions. One with the name of a pattern is left
/// alone: its daemon would follow devices itself.
fn containers_come_and_go(wire: &Wire, follower: &mut Child) {
    let other = wire.near.go(|| {
        let mut links = tidegate_sys::netlink::Links::open()?;
        links.create_like("veth*", "dummy", 1000)
    });
    other.expect("place").expect("a device");
    for dev in ["veth1a2b3c", "veth2", "veth1a2b3c"] {
        container(wire, dev);
    }
    until("no daemon is left", || tidegate_sys::process::descendants(follower.id()).is_empty());
    tidegate_sys::process::request_termination(follower.id());
    assert!(follower.wait().expect("a child").success());
}

/// What a container may do by the compose file, by names of `capabilities(7)` in small letters.
fn compose_capabilities(text: &str) -> String {
    let list = text.lines().find_map(|line| line.trim().strip_prefix("cap_add: [")).expect("capabilities");
    let list = list.strip_suffix(']').expect("one line").to_lowercase();
    list.split(", ").map(|name| format!(",+{name}")).collect()
}

/// The unit for containers, by its own line, with signs of life.
#[test]
fn the_unit_for_containers_follows_their_devices() {
    let Some(wire) = Wire::lay("unit-containers") else { return };
    wire.unplug(WIRE);
    let policy = std::fs::read_to_string(packaging("containers/policy.batch")).expect("a policy");
    wire.file("containers", &policy);
    let unit = "tidegate-containers.service";
    let mut words = unit_words(unit, "ExecStart", "", &wire.room.to_string_lossy());
    let devices = std::fs::read_to_string(packaging(unit)).expect("a unit");
    let devices = devices.lines().find_map(|line| line.strip_prefix("Environment=TIDEGATE_DEVICES="));
    for word in &mut words {
        *word = word.replace("${TIDEGATE_DEVICES}", devices.expect("a pattern"));
    }
    let mut service = Service::start(&wire, &words, "60000");
    assert_eq!(service.hear(), "READY=1");
    // A service manager reads all the time.
    let heard = service.heard.try_clone().expect("the same socket");
    let (tell, lives) = std::sync::mpsc::channel();
    let reading = std::thread::spawn(move || {
        let mut room = [0; 200];
        while let Ok(bytes) = heard.recv(&mut room) {
            match &room[..bytes] {
                b"WATCHDOG=1" => tell.send(()).expect("the test counts them"),
                b"the end" => return,
                _ => {}
            }
        }
    });
    containers_come_and_go(&wire, &mut service.child);
    let end = UnixDatagram::unbound().expect("a socket").send_to(b"the end", wire.room.join("notify"));
    end.expect("it is sent");
    reading.join().expect("no panic");
    let lives = lives.iter().count();
    assert!(lives > 1, "{lives} signs of life");
}

/// The compose file's command, with its capabilities and no other.
#[test]
fn the_compose_file_follows_containers_devices() {
    let Some(wire) = Wire::lay("compose") else { return };
    wire.unplug(WIRE);
    let text = std::fs::read_to_string(packaging("containers/compose.yaml")).expect("a compose file");
    let command = text.lines().find_map(|line| line.trim().strip_prefix("command: ")).expect("a command");
    let words: Vec<String> = serde_json::from_str(command).expect("a list");
    let policy = packaging("containers/policy.batch");
    let words = words.iter().map(|word| word.replace("/etc/tidegate/containers", &policy.to_string_lossy()));
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set", &format!("-all{}", compose_capabilities(&text)), common::TIDEGATE]);
    command.args(words).env("TIDEGATE_RUN", &wire.room).env("SSH_CONNECTION", "");
    let works = Command::new("setpriv").args(["--bounding-set", "-all", "true"]).output();
    if !works.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: setpriv cannot take capabilities away here");
        return;
    }
    let child = wire.near.go(move || command.spawn()).expect("place").expect("it starts");
    let mut follower = Follower(child);
    containers_come_and_go(&wire, &mut follower.0);
}

/// Ended if a test fails.
struct Follower(Child);

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// systemd finds no mistake in the units.
#[test]
fn the_units_are_well_formed() {
    let place = common::Place::new("units");
    let mut units = Vec::new();
    for unit in std::fs::read_dir(packaging("")).expect("a directory").flatten() {
        let name = unit.file_name().to_string_lossy().into_owned();
        let Some(stem) = name.strip_suffix(".service") else { continue };
        let text = std::fs::read_to_string(unit.path()).expect("a unit");
        // The programs are not installed here.
        let text = text.replace("/usr/bin/tidegate ", "/bin/true ").replace("/usr/lib/tidegate/", "/bin/");
        place.file(&name, text.replace("/bin/link-up", "/bin/true"));
        units.push(if stem.ends_with('@') { format!("{stem}eth0.service") } else { name });
    }
    assert!(units.len() >= 3, "{units:?}");
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no"]).args(&units).current_dir(&place.0);
    match verify.output() {
        Err(error) => println!("SKIPPED: the units: systemd-analyze is not here ({error})"),
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            let about_ours: Vec<&str> = text.lines().filter(|line| line.contains("tidegate")).collect();
            assert!(about_ours.is_empty(), "{text}");
        }
    }
}
