//! Hostile scripts, each beside canaries that nothing inside a sandbox may change: the terminal, processes,
//! keys, descriptors, sockets, pipes, files, the metadata of devices and of tidegate itself. As root, as root
//! where user namespaces are forbidden, and as an ordinary user. What each script tries is in its first line
//! (`tests/data/attacks`).

mod common;

use common::{TIDEGATE, skip, skip_terminal};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{PoisonError, RwLock};

/// Who runs the attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Root,
    RootWithoutUserNamespaces,
    User,
}

/// An attack, and the exit code of tidegate it must come to; without one, any but the watchdog's.
type Attack = (&'static str, Option<u8>, &'static [&'static str]);

const TIMED_OUT: u8 = 124;
const LIMITED: u8 = 125;
const WATCHDOG: u8 = 128 + 9;

const ATTACKS: &[Attack] = &[
    ("terminal", Some(0), &[]),
    ("signals", None, &[]),
    ("stop", Some(TIMED_OUT), &["--timeout", "2s"]),
    ("kill-all", None, &[]),
    ("handles", Some(0), &[]),
    ("inodes", Some(0), &[]),
    ("namespaces", Some(0), &[]),
    ("keys", Some(0), &[]),
    ("descriptors", Some(0), &[]),
    ("sockets", Some(0), &[]),
    ("memory", Some(0), &[]),
    ("processes", Some(LIMITED), &[]),
    // An ordinary user's processes are limited by the kernel: there the time runs out.
    ("bomb", None, &["--timeout", "20s"]),
    ("slow", Some(TIMED_OUT), &["--timeout", "3s"]),
    ("requests", Some(0), &["--timeout", "300s"]),
    ("calls", Some(0), &[]),
    ("files", Some(0), &[]),
];

/// Attacks that are held may run side by side; one that is let through changes the canaries of all.
static CANARIES: RwLock<()> = RwLock::new(());

/// A copy of tidegate and of the scripts that everyone may read, and that may be harmed.
struct Ground(PathBuf);

impl Ground {
    fn new(name: &str) -> Ground {
        let dir = std::env::temp_dir().join(format!("tidegate-attacks-{name}-{}", std::process::id()));
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/attacks");
        fs::create_dir_all(dir.join("scripts")).expect("a directory");
        for entry in fs::read_dir(from).expect("the attacks") {
            let path = entry.expect("an entry").path();
            fs::copy(&path, dir.join("scripts").join(path.file_name().unwrap_or_default())).expect("a copy");
        }
        fs::copy(TIDEGATE, dir.join("tidegate")).expect("a copy of tidegate");
        for open in [&dir, &dir.join("scripts")] {
            fs::set_permissions(open, fs::Permissions::from_mode(0o755)).expect("it is ours");
        }
        Ground(dir)
    }

    /// Runs an attack under the harness, on a terminal of its own; what was printed.
    fn run(&self, who: Who, (name, _, options): &Attack) -> String {
        let arena = self.0.join(format!("{name}-arena"));
        fs::create_dir(&arena).expect("a directory");
        let scripts = self.0.join("scripts");
        let path = |name: &str| scripts.join(name).display().to_string();
        let mut words: Vec<String> = Vec::new();
        if who == Who::User {
            std::os::unix::fs::chown(&arena, Some(65534), Some(65534)).expect("we are root");
            std::os::unix::fs::chown(&self.0, Some(65534), Some(65534)).expect("we are root");
            words.extend(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"].map(Into::into));
        }
        let namespaces =
            if who == Who::RootWithoutUserNamespaces { "no-user-namespaces" } else { "user-namespaces" };
        words.extend([
            "perl".to_owned(),
            path("enter.pl"),
            namespaces.to_owned(),
            "sh".to_owned(),
            path("harness.sh"),
        ]);
        words.extend([self.0.join("tidegate").display().to_string(), arena.display().to_string()]);
        words.push(path(&format!("{name}.sh")));
        if !options.is_empty() {
            words.extend(options.iter().map(|word| (*word).to_owned()));
        }
        let line = words.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ");
        let output = Command::new("script")
            .args(["-qec", &line, "/dev/null"])
            .env("HOME", "/nonexistent")
            .stdin(Stdio::null())
            .output()
            .expect("script(1) of util-linux");
        String::from_utf8_lossy(&output.stdout).replace('\r', "")
    }
}

impl Drop for Ground {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn is_root() -> bool {
    Command::new("setpriv").args(["--reuid=65534", "true"]).status().is_ok_and(|status| status.success())
}

fn check_all(who: Who, name: &str) {
    if skip() {
        return;
    }
    if !is_root() {
        eprintln!("SKIPPED: {who:?}: only root can become root and another user");
        return;
    }
    if skip_terminal() {
        return;
    }
    let _held = CANARIES.read().unwrap_or_else(PoisonError::into_inner);
    let ground = Ground::new(name);
    let mut broken = Vec::new();
    for attack in ATTACKS {
        let (name, expected, _) = attack;
        let output = ground.run(who, attack);
        let code = output
            .lines()
            .find_map(|line| line.strip_prefix("code "))
            .and_then(|code| code.parse::<u8>().ok());
        let harmed = ["ESCAPED", "CHANGED", "LEFT", "TYPED"].iter().any(|word| output.contains(word));
        let ended = output.contains("harness ended") && code.is_some_and(|code| code != WATCHDOG);
        let as_expected = expected.is_none_or(|expected| code == Some(expected));
        let refused = output.lines().filter(|line| line.starts_with("refused")).count();
        println!("{who:?}: {name}: {refused} attempts refused, exit code {code:?}");
        if harmed || !ended || !as_expected {
            broken.push(format!("--- {name} (expected code {expected:?})\n{output}"));
        }
    }
    assert!(broken.is_empty(), "{who:?}:\n{}", broken.join("\n"));
}

#[test]
fn as_root() {
    check_all(Who::Root, "root");
}

#[test]
fn as_root_where_user_namespaces_are_forbidden() {
    check_all(Who::RootWithoutUserNamespaces, "caller");
}

#[test]
fn as_an_ordinary_user() {
    check_all(Who::User, "user");
}

/// Sockets' buffers are in no process's pages: only a control group counts them.
#[test]
fn the_kernels_memory_is_bounded_where_a_control_group_can_be_made() {
    if skip() {
        return;
    }
    let hands_down = |file: &str| fs::read_to_string(file).is_ok_and(|text| text.contains("memory"));
    let first = Path::new("/sys/fs/cgroup/memory/cgroup.procs").exists();
    if !is_root() || !(first || hands_down("/sys/fs/cgroup/cgroup.subtree_control")) {
        eprintln!("SKIPPED: only root, where a memory controller is mounted, can make a control group");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/attacks/buffers.sh");
    let output = Command::new(TIDEGATE).arg("run").arg(script).output().expect("tidegate runs");
    let stderr = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(LIMITED.into()), "{stderr}");
    assert!(stderr.contains("held more than 2048 MiB of memory") && !stderr.contains("ESCAPED"), "{stderr}");
}

/// The canaries can change: without tidegate the same scripts do what they try.
#[test]
fn the_harness_notices_harm() {
    if !is_root() {
        eprintln!("SKIPPED: only root can become another user");
        return;
    }
    if skip_terminal() {
        return;
    }
    let _alone = CANARIES.write().unwrap_or_else(PoisonError::into_inner);
    let ground = Ground::new("harness");
    // A replacement that runs the script as it is.
    fs::remove_file(ground.0.join("tidegate")).expect("it is ours");
    let stand_in = "#!/bin/sh\nshift\nexec sh \"$@\"\n";
    fs::write(ground.0.join("tidegate"), stand_in).expect("a file");
    fs::set_permissions(ground.0.join("tidegate"), fs::Permissions::from_mode(0o755)).expect("it is ours");
    for name in ["descriptors", "sockets", "files"] {
        let output = ground.run(Who::User, &(name, None, &[]));
        for left in ["/tmp/tidegate-canary", "/var/tmp/tidegate-canary"] {
            let _ = fs::remove_file(left);
        }
        assert!(["ESCAPED", "CHANGED"].iter().any(|word| output.contains(word)), "{name}:\n{output}");
    }
}

/// A recording may come from a stranger: its commands run in the sandbox too, those of its schedule included.
#[test]
fn a_recordings_commands_run_in_the_sandbox() {
    if skip() {
        return;
    }
    let place = common::Place::new("recording");
    let canary = place.file("canary", "content\n");
    let recording = place.0.join("recording");
    fs::create_dir(&recording).expect("a directory");
    let harm = format!("echo changed > {0}; rm -f {0}; kill 0", canary.display());
    let put = |name: &str, text: String| fs::write(recording.join(name), text).expect("a file");
    put("link", "1000000 0 1500 1000\n".into());
    put("draws.csv", "time_ns,width,value,where\n".into());
    put(
        "schedule.csv",
        format!(
            "time_ns,id,size,src,dst,proto,sport,dport,dsfield,mark\n0,!,{harm}\n1000000,!,tc qdisc add dev \
            link0 root pfifo\n"
        ),
    );
    put("script.tc", "tc qdisc add dev link0 root bfifo\ntouch harm\n".into());
    let output = Command::new(TIDEGATE).arg("replay").arg(&recording).output().expect("tidegate runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(fs::read_to_string(&canary).expect("it is still there"), "content\n", "{errors}");
    assert!(!recording.join("harm").exists());
}
