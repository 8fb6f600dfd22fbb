//! Capturing scripts, end to end: needs namespaces, and is skipped with a message where there are none.

mod common;

use common::{Place, TIDEGATE, skip};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tidegate_capture::{CaptureError, CaptureOptions, Exit, ScriptRun, Shell, run_script};
use tidegate_shims::{Call, Reply};

fn options() -> CaptureOptions {
    CaptureOptions { executable: Some(TIDEGATE.into()), ..CaptureOptions::default() }
}

/// Success for all, but the word `bad` fails as tc does, and `tc -s` prints a line.
fn model(call: &Call) -> Reply {
    if call.args.iter().any(|arg| arg == "bad") {
        return Reply::error(2, "Unknown qdisc \"bad\", hence option \"x\" is unparsable\n");
    }
    if call.args.first().is_some_and(|arg| arg == "-s") {
        return Reply::text("qdisc pfifo\n");
    }
    Reply::ok()
}

fn capture(script: &Path, args: &[&str], options: &CaptureOptions) -> ScriptRun {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    run_script(script, &args, options, &mut model).unwrap()
}

/// `line: tool args -> code`, a line per call.
fn table(outcome: &ScriptRun) -> String {
    outcome
        .calls
        .iter()
        .map(|call| {
            let line = call.source.as_ref().map_or(0, |source| source.line);
            let input = call
                .call
                .stdin
                .as_ref()
                .map_or(String::new(), |bytes| format!(" < {:?}", String::from_utf8_lossy(bytes)));
            format!("{line}: {} {}{input} -> {}\n", call.call.tool, call.call.args.join(" "), call.code)
        })
        .collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn tools_are_found_by_name_by_path_and_where_the_host_has_nothing() {
    if skip() {
        return;
    }
    let place = Place::new("tools");
    let script = place.file(
        "x.sh",
        "IF=eth0
tc 1
/sbin/tc 2 dev $IF
/usr/sbin/tc 3; /bin/tc 4; /usr/bin/tc 5
/usr/local/sbin/tc 6
/opt/of/nobody/sbin/tc 7
/nowhere/at/all/tc 8
env -i /sbin/tc 9
PATH=/bin:/sbin ip6tables-restore <<END
*mangle
END
sudo -E iptables -L
echo 'qdisc show' > batch; tc -force -batch batch
tc -b missing 2>/dev/null
tc -s qdisc show | head -1
ls /sys/class/net | tr '\\n' ' '
cd / && modprobe ifb && exit 3
",
    );
    let expected = "2: tc 1 -> 0
3: tc 2 dev eth0 -> 0
4: tc 3 -> 0
4: tc 4 -> 0
4: tc 5 -> 0
5: tc 6 -> 0
6: tc 7 -> 0
7: tc 8 -> 0
8: tc 9 -> 0
9: ip6tables-restore  < \"*mangle\\n\" -> 0
12: iptables -L -> 0
13: tc -force -batch batch < \"qdisc show\\n\" -> 0
14: tc -b missing -> 1
15: tc -s qdisc show -> 0
17: modprobe ifb -> 0
";
    let covered = CaptureOptions { cwd: Some(place.0.clone()), ..options() };
    let outcome = capture(&script, &[], &covered);
    assert_eq!(table(&outcome), expected, "{}", text(&outcome.stderr));
    assert_eq!(outcome.exit, Exit::Code(3));
    assert_eq!(text(&outcome.stdout), "qdisc pfifo\neth0 lo ");
    assert!(!place.0.join("batch").exists(), "the host's files stay as they are");
    // Without overlays the directory is read-only, so the batch file cannot be written; all else is the same.
    let bare = CaptureOptions { no_overlay: true, ..covered };
    let outcome = capture(&script, &[], &bare);
    let expected = expected.replace("batch < \"qdisc show\\n\" -> 0", "batch -> 1");
    assert_eq!(table(&outcome), expected, "{}", text(&outcome.stderr));
}

/// Named tools whose directories share an ancestor that the host lacks, or of which one is in another, or
/// that cannot be: each keeps what it can.
#[test]
fn any_set_of_paths_of_tools_can_be_named() {
    if skip() {
        return;
    }
    let place = Place::new("paths");
    fs::write(place.0.join("file"), "").unwrap();
    fs::create_dir_all(place.0.join("host/tc")).unwrap();
    fs::write(place.0.join("host/tc/ip"), "").unwrap();
    let here = place.0.display().to_string();
    let cases = [
        ("# see /opt/tc and /opt/tc/tc\n/opt/tc/tc 1; tc 2", "tc 1, tc 2"),
        ("/system/bin/tc 1; /system/xbin/tc 2", "tc 1, tc 2"),
        ("/nix/store/x/bin/tc 1; /nix/store/y/sbin/ip link; /nix/tc 3", "tc 1, ip link, tc 3"),
        ("/data/local/tc 1; /data/iptables -L; /data/tc 3", "tc 1, iptables -L, tc 3"),
        ("/a/ip/tc 1; /a/tc 2; /a/ip/ip/tc 3; /a/ip/iptables -L", "tc 1, tc 2, tc 3, iptables -L"),
        ("# /sbin/tc/tc, /usr/sbin/ip/tc/tc\n/sbin/tc 1; tc 2; ip link", "tc 1, tc 2, ip link"),
        ("# HERE/file/tc and HERE/file/tc/tc\ntest -f HERE/file && tc 1", "tc 1"),
        ("HERE/host/tc/tc 1; HERE/host/ip link; test -d HERE/host/tc && tc 3", "tc 1, ip link, tc 3"),
        ("# /LONG/tc\ntc 1", "tc 1"),
    ];
    for no_overlay in [false, true] {
        let options = CaptureOptions { no_overlay, cwd: Some(place.0.clone()), ..options() };
        for (text, expected) in cases {
            let text = text.replace("HERE", &here).replace("LONG", &"long".repeat(99));
            let outcome = capture(&place.file("x.sh", &text), &[], &options);
            let called: Vec<String> = outcome
                .calls
                .iter()
                .map(|call| format!("{} {}", call.call.tool, call.call.args.join(" ")))
                .collect();
            assert_eq!(called.join(", "), expected, "{text}\n{}", self::text(&outcome.stderr));
        }
    }
    let many: String = (0..5000).map(|at| format!("# /many{at}/tc\n")).collect();
    let outcome = capture(&place.file("x.sh", &(many + "/many0/tc 1; tc 2")), &[], &options());
    assert_eq!(outcome.calls.len(), 2, "{}", text(&outcome.stderr));
}

#[test]
fn failures_name_the_line_and_the_word() {
    if skip() {
        return;
    }
    let place = Place::new("failures");
    let script = place.file(
        "x.sh",
        "KIND=bad
tc qdisc del dev eth0 bad 2>/dev/null
tc qdisc del dev eth0 bad || true
tc qdisc add dev eth0 root $KIND x
no-such-tool --now
exit 4
",
    );
    let outcome = capture(&script, &[], &options());
    let shown: Vec<String> = outcome
        .troubles
        .iter()
        .map(|trouble| trouble.to_string().replace(&format!("{}/", place.0.display()), ""))
        .collect();
    assert_eq!(
        shown.join("\n"),
        "x.sh:4: tc: Unknown qdisc \"bad\", hence option \"x\" is unparsable
  4 | tc qdisc add dev eth0 root $KIND x
    |                            ^^^^^
x.sh:5: sh: no-such-tool: there is no such tool on this machine, and tidegate does not emulate it
  5 | no-such-tool --now
    | ^^^^^^^^^^^^
  help: bring what has no-such-tool: a package, or a file that the script reads in; or go on without it (--stub no-such-tool) if the shaping does not need it
x.sh:4: sh: the script ended with code 4, after `tc qdisc add dev eth0 root bad x`, its last command that \
we saw
  4 | tc qdisc add dev eth0 root $KIND x
  help: look at what follows that line, the last that was seen; nothing outside the sandbox was changed"
    );
}

/// The command that a script ends with has a line.
#[test]
fn a_script_ends_at_the_command_that_answered_with_its_code() {
    if skip() {
        return;
    }
    let place = Place::new("ends");
    let script = place.file("x.sh", "set -e\ntc qdisc add dev eth0 root bad x\nif true; then\necho on\nfi\n");
    let outcome = capture(&script, &[], &options());
    let last = outcome.troubles.last().expect("the script ended with a code").to_string();
    assert!(last.contains("x.sh:2: sh: the script ended with code"), "{last}");
    assert!(last.contains("help: fix that line and run again"), "{last}");
}

#[test]
fn lines_are_found_in_files_that_the_script_reads_or_calls() {
    if skip() {
        return;
    }
    let place = Place::new("files");
    place.file("settings", "WAN_IF=ppp7\n");
    place.file("lib.sh", "# functions\nleaf() {\n  $TC qdisc add dev $WAN_IF parent $1 sfq perturb $2\n}\n");
    place.file("part.sh", "\n\ntc filter add dev $1 parent 1: prio 3 fw\n");
    let script = place.file(
        "x.sh",
        "#!/bin/sh
. ./settings
. \"$(dirname \"$0\")/lib.sh\"
TC=/sbin/tc
leaf 1:10 10
sh ./part.sh $WAN_IF
test -d /sys/class/net/ppp7
",
    );
    let outcome = capture(&script, &[], &CaptureOptions { cwd: Some(place.0.clone()), ..options() });
    let found: Vec<String> = outcome
        .calls
        .iter()
        .filter_map(|call| call.source.as_ref())
        .map(|source| {
            let within: String =
                source.frames.iter().map(|frame| format!(" {}:{}", frame.function, frame.line)).collect();
            format!("{}:{}{within}", source.file.file_name().unwrap().to_string_lossy(), source.line)
        })
        .collect();
    assert_eq!(
        (found, outcome.exit),
        (vec!["x.sh:5 leaf:3".to_owned(), "part.sh:3".to_owned()], Exit::Code(0))
    );
}

#[test]
fn where_namespaces_are_forbidden_the_remedy_is_named() {
    let line = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv --bounding-set=-sys_admin \"$@\"";
    let place = Place::new("forbidden");
    let script = place.file("x.sh", "tc 1\n");
    let output =
        Command::new("unshare").args(["-Ur", "sh", "-c", line, "sh", TIDEGATE, "run"]).arg(script).output();
    let Ok(output) = output.as_ref().map(|output| text(&output.stderr)) else {
        eprintln!("SKIPPED: no unshare(1)");
        return;
    };
    if !output.starts_with("tidegate run: ") {
        eprintln!("SKIPPED: {output}");
        return;
    }
    assert!(output.starts_with("tidegate run: this system does not let us make a sandbox: "), "{output}");
    assert!(
        output.contains("\nhelp: allow user namespaces: `sysctl -w user.max_user_namespaces="),
        "{output}"
    );
}

#[test]
fn root_does_without_user_namespaces() {
    let line = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let place = Place::new("without");
    let script = place.file("x.sh", "tc qdisc add dev eth0 root pfifo\nls -d /sys/class/net/eth0\n");
    let output =
        Command::new("unshare").args(["-Ur", "sh", "-c", line, "sh", TIDEGATE, "run"]).arg(script).output();
    let Ok(output) = output else {
        eprintln!("SKIPPED: no unshare(1)");
        return;
    };
    let stderr = text(&output.stderr);
    if !stderr.contains("tidegate run: ") || stderr.contains("does not let us make a sandbox") {
        eprintln!("SKIPPED: {stderr}");
        return;
    }
    assert_eq!(
        (text(&output.stdout), output.status.code()),
        ("/sys/class/net/eth0\n".to_owned(), Some(0)),
        "{stderr}"
    );
}

#[test]
fn a_script_that_never_ends_is_ended_with_all_it_started() {
    if skip() {
        return;
    }
    let place = Place::new("endless");
    let mark = format!("{}", 40_000 + std::process::id());
    let script = place.file(
        "x.sh",
        format!("tc 1\n(trap '' TERM INT HUP; setsid sleep {mark}) &\ntc 2\nsleep {mark}.5\ntc 3\n"),
    );
    let short = CaptureOptions { timeout: Duration::from_millis(500), ..options() };
    let outcome = capture(&script, &[], &short);
    assert!(matches!(outcome.exit, Exit::TimedOut { .. }), "{:?}", outcome.exit);
    assert_eq!(outcome.calls.len(), 2);
    let trouble = outcome.troubles.last().unwrap();
    let line = trouble.place.as_ref().unwrap().line;
    assert!([2, 4].contains(&line), "{trouble}");
    assert!(trouble.reason.contains("did not end within 0.5 s"), "{trouble}");
    assert_eq!(running_with(&mark), Vec::<String>::new());
}

#[test]
fn what_a_script_leaves_in_the_background_ends_with_it() {
    if skip() {
        return;
    }
    let place = Place::new("background");
    let mark = format!("{}", 50_000 + std::process::id());
    let script = place.file("x.sh", format!("setsid sleep {mark} &\ntc 1\n"));
    let outcome = capture(&script, &[], &options());
    assert_eq!((outcome.exit, outcome.calls.len()), (Exit::Code(0), 1));
    assert_eq!(running_with(&mark), Vec::<String>::new());
}

#[test]
fn killing_tidegate_kills_the_script() {
    if skip() {
        return;
    }
    let place = Place::new("killed");
    let mark = format!("{}", 60_000 + std::process::id());
    let script = place.file("x.sh", format!("echo ready\nsleep {mark}\n"));
    let mut child = Command::new(TIDEGATE).arg("run").arg(&script).stdout(Stdio::piped()).spawn().unwrap();
    // The script's first word shows that it runs.
    let mut stdout = child.stdout.take().unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(&mut stdout, &mut ready).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    // The kernel kills the rest in its own time: the wait is bounded by turns, not by the clock.
    let gone = (0..20_000).any(|_| {
        std::thread::yield_now();
        running_with(&mark).is_empty()
    });
    assert!(gone, "{:?}", running_with(&mark));
}

#[test]
fn the_host_is_out_of_reach() {
    if skip() {
        return;
    }
    let place = Place::new("reach");
    let script = place.file(
        "x.sh",
        "id -u
(echo 1 > /proc/sys/kernel/panic) 2>/dev/null || echo no sysctl
echo 1 > /proc/sys/net/ipv4/ip_forward && cat /proc/sys/net/ipv4/ip_forward
mount -o remount,rw / 2>/dev/null || echo no mount
touch /tmp/tidegate-reach /run/x /var/log/x && echo written
ls /dev | grep -c sd
tail -n +2 /proc/net/route | wc -l
ulimit -v; ulimit -c
kill -9 1; echo still here
",
    );
    let outcome = capture(&script, &[], &options());
    assert_eq!(
        text(&outcome.stdout),
        "0\nno sysctl\n1\nno mount\nwritten\n0\n0\n1048576\n0\nstill here\n",
        "{}",
        text(&outcome.stderr)
    );
    assert!(!Path::new("/tmp/tidegate-reach").exists());
}

#[test]
fn settings_of_links_that_the_kernel_does_not_make_are_files_in_memory() {
    if skip() {
        return;
    }
    let place = Place::new("settings");
    let script = place.file(
        "x.sh",
        "cd /proc/sys/net/ipv4/conf && ls -d all default eth7 lo
echo 2 > eth7/rp_filter; cat eth7/rp_filter; ls eth7 | cmp - /tmp/none 2>/dev/null; ls default > /tmp/a; ls \
eth7 | cmp - /tmp/a && echo same
tc qdisc show dev eth7 > /dev/null && ls -d /sys/class/net/eth7
",
    );
    let options = CaptureOptions { devices: vec!["eth7".into()], no_links: true, ..options() };
    let outcome = capture(&script, &[], &options);
    assert_eq!(text(&outcome.stdout), "all\ndefault\neth7\nlo\n2\nsame\n", "{}", text(&outcome.stderr));
    assert!(outcome.notes.iter().any(|note| note.contains("eth7")), "{:?}", outcome.notes);
}

#[test]
fn homes_and_the_environment_are_hidden_on_request() {
    if skip() {
        return;
    }
    let home = Place::new("home");
    fs::create_dir(home.0.join("scripts")).unwrap();
    let script = home.file(
        "scripts/x.sh",
        "ls \"${1%/*}\"; cat \"$1\" 2>/dev/null || echo no secret; echo \"${TIDEGATE_SECRET-no variable} \
        $HOME\"
if false; then
  . \"$HOME/sourced\"
  . ${1%/*}/sourced
fi
cat \"${1%/*}/sourced\"
. ./part\n",
    );
    home.file("scripts/part", "tc 1\n");
    let secret = home.file("secret", "secret\n");
    home.file("beside", "");
    home.file("sourced", "named by the script alone\n");
    let run = |private: &[&str]| {
        let output = Command::new(TIDEGATE)
            .args(["run"])
            .args(private)
            .args([script.as_os_str(), "--".as_ref(), secret.as_os_str()])
            .env("HOME", &home.0)
            .env("TIDEGATE_SECRET", "seen")
            .current_dir(home.0.join("scripts"))
            .output()
            .unwrap();
        text(&output.stdout)
    };
    assert!(run(&[]).contains("beside\nscripts\nsecret\nsourced\nsecret\nseen "), "{}", run(&[]));
    let hidden = run(&["--private"]);
    // The file is named as an argument, so it is meant to be seen; what is beside it is not.
    assert!(hidden.contains("secret\nno variable /tmp"), "{hidden}");
    assert!(!hidden.contains("beside") && !hidden.contains("named by"), "{hidden}");
}

#[test]
fn pipes_of_the_host_cannot_be_written_where_its_directories_are_merely_read_only() {
    if skip() {
        return;
    }
    // landlock_create_ruleset(2) returns the version that the kernel has.
    let landlock = Command::new("perl").args(["-e", "exit(syscall(444, 0, 0, 1) < 1)"]).status();
    if !landlock.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: this kernel has no landlock, or there is no perl to ask it");
        return;
    }
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pipes");
    if dir.starts_with("/tmp") {
        eprintln!("SKIPPED: landlock cannot keep from a pipe in /tmp, whose other files may be written");
        return;
    }
    fs::create_dir_all(&dir).unwrap();
    let place = Place(dir);
    assert!(Command::new("mkfifo").arg(place.0.join("pipe")).status().is_ok_and(|made| made.success()));
    let script = place.file(
        "x.sh",
        "(echo x > \"${0%/*}/pipe\") 2>/dev/null || echo refused\necho kept > /tmp/x && cat /tmp/x\n",
    );
    let options = CaptureOptions { no_overlay: true, ..options() };
    let outcome = capture(&script, &[], &options);
    assert_eq!(text(&outcome.stdout), "refused\nkept\n", "{:?} {}", outcome.exit, text(&outcome.stderr));
}

#[test]
fn an_ordinary_user_captures_too() {
    if skip() {
        return;
    }
    let user =
        Command::new("setpriv").args(["--reuid=65534", "--regid=65534", "--clear-groups", "true"]).status();
    if !user.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: only root can become another user (setpriv)");
        return;
    }
    let place = Place::new("user");
    let executable = place.copy_of(Path::new(TIDEGATE));
    let script =
        place.file("x.sh", "#!/bin/sh\n/sbin/tc qdisc add dev eth5 root pfifo\nls -d /sys/class/net/eth5\n");
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&executable)
        .args(["run", "--print", "tc"])
        .arg(&script)
        .current_dir("/")
        .output()
        .unwrap();
    assert_eq!(text(&output.stdout), "tc qdisc add dev eth5 root pfifo\n", "{}", text(&output.stderr));
    assert!(text(&output.stderr).starts_with("/sys/class/net/eth5\n"), "{}", text(&output.stderr));
}

#[test]
fn what_is_no_script_is_refused_with_its_name() {
    let place = Place::new("refused");
    let program = place.0.join("program");
    fs::write(&program, b"\x7fELF\0\0").unwrap();
    let strange = place.file("strange.sh", "#!/opt/no/such/shell\ntc 1\n");
    let absent = place.0.join("absent.sh");
    let cases: [(&Path, &str); 4] = [
        (&absent, "there is no such script"),
        (&place.0, "this is a directory"),
        (&program, "this is not text"),
        (&strange, "needs /opt/no/such/shell"),
    ];
    for (path, reason) in cases {
        let error: CaptureError = run_script(path, &[], &options(), &mut model).unwrap_err();
        let shown = error.to_string();
        assert!(shown.starts_with(&path.display().to_string()) && shown.contains(reason), "{shown}");
    }
}

#[test]
fn a_shell_session_runs_lines_and_files_in_one_sandbox() {
    if skip() {
        return;
    }
    let place = Place::new("shell");
    let file = place.file(
        "script.tc",
        "for i in 1 2; do\n  tc class add dev link0 classid 1:$i\ndone\niptables-legacy -L\n",
    );
    let mut shell = Shell::open(Some(Path::new(TIDEGATE)), Duration::from_secs(30), &place.0).unwrap();
    let outcome = shell.run_file(&file, &mut model).unwrap();
    assert_eq!(
        table(&outcome),
        "2: tc class add dev link0 classid 1:1 -> 0
2: tc class add dev link0 classid 1:2 -> 0
4: iptables-legacy -L -> 0
"
    );
    let outcome =
        shell.run_line("tc -s qdisc show dev link0 >> snap.txt; modprobe x && tc bad", &mut model).unwrap();
    assert_eq!(outcome.exit, Exit::Code(2));
    assert_eq!(outcome.calls.len(), 3);
    assert_eq!(shell.written("snap.txt", 1000).unwrap().as_deref(), Some(&b"qdisc pfifo\n"[..]));
    assert_eq!(shell.written("none.txt", 1000).unwrap(), None);
    assert!(!place.0.join("snap.txt").exists(), "the host's files stay as they are");
    let mut short = Shell::open(Some(Path::new(TIDEGATE)), Duration::from_millis(300), &place.0).unwrap();
    let mark = format!("{}", 70_000 + std::process::id());
    let outcome = short.run_line(&format!("tc 1; (sleep {mark}; echo)"), &mut model).unwrap();
    assert!(matches!(outcome.exit, Exit::TimedOut { .. }));
    assert_eq!(running_with(&mark), Vec::<String>::new());
}

#[test]
fn a_tool_outside_a_capture_explains_itself() {
    let place = Place::new("outside");
    let tc = place.0.join("tc");
    std::os::unix::fs::symlink(TIDEGATE, &tc).unwrap();
    let output = Command::new(&tc).arg("qdisc").output().unwrap();
    assert_eq!(output.status.code(), Some(255));
    assert!(text(&output.stderr).starts_with("tc: this is tidegate under the name of tc"));
}

/// Command lines of sleeping processes, zombies aside, with this word.
fn running_with(mark: &str) -> Vec<String> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .map(|words| text(&words).replace('\0', " "))
        .filter(|words| words.starts_with("sleep") && words.contains(mark))
        .collect()
}
