//! `tidegate quick` and `tidegate verify`, behind lines whose truth is known: real hosts, so bounds are wide;
//! the arithmetic is held exactly elsewhere.

mod common;

use common::{Place, TIDEGATE, skip};
use serde_json::Value;
use std::process::{Command, Output};

fn tidegate(words: &[&str]) -> Output {
    Command::new(TIDEGATE).args(words).env_remove("TIDEGATE_TOKEN").output().expect("tidegate runs")
}

/// Behind a line of 4 Mbit/s up, 16 Mbit/s down, 20 ms, with a modem that holds a third of a second.
fn behind_a_line(more: &[&str], program: &[&str]) -> Output {
    let mut words = vec!["shell", "--up", "4mbit", "--down", "16mbit", "--buffer", "160kB"];
    words.extend(more);
    words.extend(["--", TIDEGATE]);
    words.extend(program);
    tidegate(&words)
}

fn document(output: &Output) -> Value {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.stdout.starts_with(b"{"), "{stderr}");
    common::schemas::document(&output.stdout)
}

fn within(what: &str, found: &Value, low: f64, high: f64) {
    let found = found.as_f64().unwrap_or(f64::NAN);
    assert!((low..=high).contains(&found), "{what}: {found}, not {low} to {high}");
}

/// Without a helper on the other computer, pings show where the queue is, how long it is, and the upload
/// rate.
#[test]
fn a_bloated_line_is_found_with_pings_alone() {
    if skip() {
        return;
    }
    let place = Place::new("quick-pings");
    let (page, policy) = (place.0.join("line.html"), place.0.join("fix.toml"));
    let (page_name, policy_name) = (page.to_str().expect("text"), policy.to_str().expect("text"));
    let words = [
        "quick",
        "server",
        "--echo-load",
        "--time",
        "20s",
        "--json",
        "-o",
        page_name,
        "--policy",
        policy_name,
    ];
    let output = behind_a_line(&[], &words);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    let quick = document(&output);
    let phases = quick["phases"].as_array().expect("phases");
    let loads: Vec<&str> = phases.iter().filter_map(|phase| phase["load"].as_str()).collect();
    assert_eq!(loads, ["idle", "both", "up"]);
    // Frames have 14 bytes more than packets of 1,400: 3.96 Mbit/s of these.
    within("what echoes carried", &phases[1]["up_bits_per_second"], 3.2e6, 4.1e6);
    within("what the way up carried", &phases[2]["up_bits_per_second"], 3.2e6, 4.5e6);
    for phase in &phases[1..] {
        assert_eq!(phase["queue_before"], "hop 3 (198.51.100.2)", "{phase}");
    }
    let far = quick["hops"].as_array().and_then(|places| places.last()).expect("places");
    let growth = far["figures"][1]["median_ns"].as_f64().zip(far["figures"][0]["median_ns"].as_f64());
    let growth = growth.map_or(f64::NAN, |(full, idle)| full - idle);
    assert!((200e6..=420e6).contains(&growth), "160 kB are 320 ms: {growth}");
    assert!(std::fs::read_to_string(&page).expect("a page").contains("Grade "));
    // Half a policy is printed, and not saved: `tidegate try` needs both rates.
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("was not written: the download rate was not measured"), "{stderr}");
    assert!(!policy.exists() && quick["remedy"]["missing"] == "download", "{}", quick["remedy"]);
    let proposed = quick["remedy"]["policy"].as_str().expect("a policy");
    assert!(proposed.contains("preset = \"home\"") && !proposed.contains("\ndown"), "{proposed}");
    assert!(proposed.contains("# down = \"…\" (at least "), "{proposed}");
    std::fs::write(&policy, proposed).expect("a file");
    assert_eq!((&quick["up_is_full"], &quick["down_is_full"]), (&Value::Bool(true), &Value::Bool(false)));
    let predicted = &quick["remedy"]["predicted"][0];
    within("without it, simulated", &predicted["without"]["median_ns"], 150e6, 450e6);
    within("with it, simulated", &predicted["with"]["median_ns"], 15e6, 60e6);
    // The policy it proposes does fix the line.
    let fixed = behind_a_line(&["--policy", policy_name], &words[..6]);
    let grade = document(&fixed)["grade"].clone();
    assert!(["A+", "A", "B"].iter().any(|good| grade == *good), "{grade}");
}

/// As an ordinary user, whom a stock Debian allows no echo requests: the beginning of a command line; `None`:
/// this computer does not let the test change users.
fn ordinary_user() -> Option<&'static str> {
    const CHANGED: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all ";
    let works = Command::new("sh").args(["-c", &format!("{CHANGED} true")]).output();
    if works.is_ok_and(|output| output.status.success()) {
        return Some(CHANGED);
    }
    eprintln!("SKIPPED: setpriv cannot change to another user here");
    None
}

/// Everything that an ordinary user is told works: both directions are measured against a server, the policy
/// can be tried, and the printed commands apply it and compare.
#[test]
fn an_ordinary_user_measures_both_directions_and_fixes_them() {
    let Some(user) = ordinary_user().filter(|_| !skip()) else { return };
    let place = Place::new("quick-user");
    let program = place.copy_of(std::path::Path::new(TIDEGATE));
    std::fs::rename(&program, place.0.join("tidegate")).expect("it is ours");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(&place.0, mode).expect("it is ours");
    let at = place.0.display();
    // What is printed for another user than root begins with sudo, which need not be here.
    let sudo = place.script("sudo", "#!/bin/sh\nexec \"$@\"\n");
    assert!(sudo.exists());
    let script = place.script(
        "all.sh",
        format!(
            "cd {at}; export PATH={at}:$PATH TIDEGATE_RUN={at}/run\n\
             {user} tidegate quick server --time 20s --save-policy fix.toml -o q.json > text\necho quick $? > \
             codes\n\
             {user} tidegate try fix.toml > /dev/null 2>&1; echo try $? >> codes\n\
             grep '^    sudo tidegate ' text > steps.sh; cat steps.sh\n\
             grep ' apply ' steps.sh > apply.sh; grep ' revert ' steps.sh > revert.sh\n\
             grep ' verify ' steps.sh > verify.sh; sed -i 's/$/ -d 2s --repeats 1/' verify.sh\n\
             sh -e apply.sh; echo apply $? >> codes; tidegate confirm; echo confirm $? >> codes\n\
             sh -e verify.sh; echo early $? >> codes\n\
             sh -e revert.sh; echo revert $? >> codes\n\
             sh -e verify.sh; echo verify $? >> codes; tidegate down; cat codes\n"
        ),
    );
    let script = script.to_str().expect("text").to_owned();
    let serve = format!("{at}/tidegate serve --quiet --open");
    let mut words = vec!["shell", "--up", "4mbit", "--down", "16mbit", "--buffer", "160kB"];
    words.extend(["--server-command", &serve, "--", "sh", &script]);
    let output = tidegate(&words);
    let shown = [&output.stdout[..], &output.stderr].concat();
    let shown = String::from_utf8_lossy(&shown);
    let codes = std::fs::read_to_string(place.0.join("codes")).expect("codes");
    // What is applied is not compared with itself.
    let begin = "quick 1\ntry 0\napply 0\nconfirm 0\nearly 2\nrevert 0\n";
    let verified = [0, 1].map(|code| format!("{begin}verify {code}\n"));
    assert!(verified.contains(&codes), "{codes}{shown}");
    // They are printed in the order in which they are run.
    let steps = std::fs::read_to_string(place.0.join("steps.sh")).expect("a file");
    let words: Vec<&str> = steps.lines().filter_map(|line| line.split_whitespace().nth(2)).collect();
    assert_eq!(words, ["apply", "revert", "verify"], "{steps}");
    assert!(shown.contains("`tidegate down eth0` takes it away"), "{shown}");
    let quick =
        document(&Output { stdout: std::fs::read(place.0.join("q.json")).expect("a file"), ..output });
    let phases = quick["phases"].as_array().expect("phases");
    let loads: Vec<&str> = phases.iter().filter_map(|phase| phase["load"].as_str()).collect();
    assert_eq!(loads, ["idle", "up", "down"]);
    // Frames have 14 bytes more than packets. A policy for more than the line carries would not fix it.
    within("the upload", &quick["up_bits_per_second"], 3.3e6, 4.1e6);
    within("the download", &quick["down_bits_per_second"], 13e6, 16.4e6);
    assert_eq!((&quick["up_is_full"], &quick["down_is_full"]), (&Value::Bool(true), &Value::Bool(true)));
    assert_eq!(quick["remedy"]["missing"], Value::Null);
    let notes = quick["notes"].to_string();
    assert!(notes.contains("UDP packets that the server sends back"), "{notes}");
    let text = std::fs::read_to_string(place.0.join("text")).expect("a file");
    assert!(text.contains("198.51.100.7), UDP") && !text.contains("--udp"), "{text}");
}

/// A queue before the first hop is the home's, of which no policy is saved, and why is said; of a computer
/// that forwards packets it may be the line's, and the policy is saved with a note.
#[test]
fn a_router_is_not_told_that_its_line_is_its_home() {
    if skip() {
        return;
    }
    let place = Place::new("quick-router");
    let at = place.0.display();
    let script = place.script(
        "all.sh",
        format!(
            "cd {at}; tc qdisc add dev eth0 root tbf rate 2mbit burst 5k limit 100k || exit\n\
             measure() {{\n\
             {TIDEGATE} quick server --time 15s --save-policy $1.toml > $1 2> $1.errors; echo $1 $?\n\
             }}\n\
             echo 0 > /proc/sys/net/ipv4/ip_forward; measure computer\n\
             ip link add lan type veth peer name pc || exit\n\
             ip address add 10.9.0.1/24 dev lan && ip link set lan up || exit\n\
             echo 1 > /proc/sys/net/ipv4/ip_forward; measure router\n"
        ),
    );
    let serve = format!("{TIDEGATE} serve --quiet --open");
    let mut words = vec!["shell", "--up", "4mbit", "--down", "16mbit", "--buffer", "160kB"];
    words.extend(["--server-command", &serve, "--", "sh", script.to_str().expect("text")]);
    let output = tidegate(&words);
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(stdout, "computer 1\nrouter 1\n", "{}", String::from_utf8_lossy(&output.stderr));
    // Of words that are wrapped.
    let read = |name: &str| {
        let text = std::fs::read_to_string(place.0.join(name)).unwrap_or_default();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let (text, errors) = (read("computer"), read("computer.errors"));
    assert!(text.contains(": your own network (cable, switch, Wi-Fi), or this computer."), "{text}");
    let why = "computer.toml was not written: under uploads the queue is in your own network, so the line's \
               upload rate is unknown";
    // Half a policy cannot be tried.
    assert!(text.contains("apply home.toml") && !text.contains("try home.toml"), "{text}");
    assert!(errors.contains(why) && !place.0.join("computer.toml").exists(), "{errors}");
    let (text, errors) = (read("router"), read("router.errors"));
    let line = ": the line, if this computer is the router at it, and otherwise your own network.";
    let note = "this computer forwards packets: if it is the router at the line, that is the line";
    assert!(text.contains(line) && text.contains(note), "{text}");
    assert!(!errors.contains("was not written"), "{errors}");
    let saved = read("router.toml");
    assert!(saved.contains(" up = \"1"), "{saved}");
    assert!(saved.contains(" down = \"1"), "{saved}");
}

/// A host of others is not loaded unless that is asked for, and what would measure more is named.
#[test]
fn a_stranger_is_not_loaded() {
    let Some(user) = ordinary_user().filter(|_| !skip()) else { return };
    let place = Place::new("quick-stranger");
    let program = place.copy_of(std::path::Path::new(TIDEGATE));
    let quick = format!("{user} {} quick server --time 15s --json", program.display());
    let log = place.0.join("line.csv");
    let log_name = log.to_str().expect("text");
    let line = ["shell", "--up", "4mbit", "--down", "16mbit", "--log", log_name, "--", "sh", "-c", &quick];
    let output = tidegate(&line);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    let quick = document(&output);
    let phases = quick["phases"].as_array().expect("phases");
    assert_eq!((phases.len(), &phases[0]["load"], &quick["grade"]), (1, &"idle".into(), &Value::Null));
    assert_eq!((&quick["up_bits_per_second"], &quick["remedy"]), (&Value::Null, &Value::Null));
    let last = quick["hops"].as_array().and_then(|hops| hops.last()).expect("hops");
    // The simulated server refuses connections; that is a round trip, too.
    assert_eq!(last["name"], "server (198.51.100.7), TCP port 443");
    within("the idle line", &last["figures"][0]["median_ns"], 19e6, 40e6);
    let commands: Vec<&str> = quick["next"]
        .as_array()
        .expect("steps")
        .iter()
        .flat_map(|step| step["commands"].as_array().expect("commands"))
        .filter_map(Value::as_str)
        .collect();
    let expected = [
        "timeout 10m tidegate serve --open",
        "tidegate quick THAT-COMPUTER",
        "tidegate quick server http://WEB-SERVER/LARGE-FILE",
    ];
    assert_eq!(commands, expected);
    // Options that are named exist.
    for command in expected {
        let words: Vec<&str> = command.trim_start_matches("timeout 10m ").split(' ').skip(1).collect();
        let help = tidegate(&[&words[..], &["--help"]].concat());
        assert!(help.status.success(), "{command}");
    }
}

#[test]
fn who_cannot_be_reached_is_named() {
    let cases: [(&[&str], &str); 3] = [
        (&["quick", "no.such.name.invalid"], "no.such.name.invalid"),
        (&["quick", "https://example.invalid/"], "https is not spoken here"),
        (&["quick", "127.0.0.1", "--time", "3s"], "from 15s to 2min"),
    ];
    for (words, expected) in cases {
        let output = tidegate(words);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {stderr}");
        assert!(stderr.contains(expected), "{words:?}: {stderr}");
    }
}

/// A shaper below the line's rate takes the queue away from the modem, and is gone at the end.
#[test]
fn a_policy_is_compared_with_none_in_turns() {
    if skip() {
        return;
    }
    let place = Place::new("verify-turns");
    let script = place.file("shape.sh", "tc qdisc add dev eth0 root tbf rate 3600kbit burst 5k limit 12k\n");
    let script = script.to_str().expect("text");
    let far = format!("{TIDEGATE} serve --quiet --open");
    let verify = format!(
        "{TIDEGATE} verify server --policy {script} --backend kernel --test tcp_4up -l 3s --repeats 2 --json \
        && {TIDEGATE} status --json"
    );
    let room = place.0.join("run");
    let output = Command::new(TIDEGATE)
        .args([
            "shell", "--up", "4mbit", "--down", "16mbit", "--buffer", "160kB", "--far", &far, "--", "sh",
            "-c", &verify,
        ])
        .env_remove("TIDEGATE_TOKEN")
        .env("TIDEGATE_RUN", &room)
        .output()
        .expect("tidegate runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut documents = serde_json::Deserializer::from_str(&stdout).into_iter::<Value>();
    let verified = documents.next().and_then(Result::ok).unwrap_or_else(|| panic!("{stderr}{stdout}"));
    common::schemas::must_fit(&verified);
    let of = |figure: &str| {
        let all = verified["differences"].as_array().expect("differences");
        all.iter()
            .find(|one| one["load"] == "tcp_4up" && one["figure"] == figure)
            .unwrap_or_else(|| panic!("{figure}: {verified}"))
            .clone()
    };
    assert_eq!(of("udp.median")["rounds"], 2);
    within("the queue with it", &of("udp.median")["with"], 0.02, 0.08);
    let (without, with) = (of("udp.median")["without"].as_f64(), of("udp.median")["with"].as_f64());
    assert!(without > with.map(|with| with * 1.5), "{without:?} without, {with:?} with");
    let predicted = verified["predicted"].as_array().and_then(|all| all.first()).expect("a prediction");
    within("with it, predicted", &predicted["with"], 0.02, 0.08);
    assert!(of("upload.rate")["difference"].as_f64() < Some(0.0), "shaping has a price");
    // Nothing of tidegate's is installed any more.
    let left = documents.next().and_then(Result::ok);
    assert!(left.is_none_or(|left| !left.to_string().contains("tbf")), "{stdout}");
}

/// A TUN device, as `shell` has one, does not send super-packets itself: they are split before it. Sent
/// whole, the kernel dropped each of them, and TCP was left with a hundredth of the rate.
#[test]
fn super_packets_pass_a_device_that_sends_none() {
    if skip() {
        return;
    }
    let place = Place::new("super-packets");
    let script = place.file("no-rate.sh", "tc qdisc add dev eth0 root pfifo limit 1000\n");
    let commands = format!(
        "{TIDEGATE} apply {} --backend user --confirm 0 >&2 && {TIDEGATE} measure server tcp_1up --duration 3s --json",
        script.to_str().expect("text")
    );
    let far = format!("{TIDEGATE} serve --quiet --open");
    let line =
        ["shell", "--up", "20mbit", "--down", "100mbit", "--buffer", "250kB", "--server-command", &far];
    let output = Command::new(TIDEGATE)
        .args(line)
        .args(["--", "sh", "-c", &commands])
        .env_remove("TIDEGATE_TOKEN")
        .env("TIDEGATE_RUN", place.0.join("run"))
        .output()
        .expect("tidegate runs");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let measured: Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {stderr}"));
    let runs = measured["runs"].as_array().expect("runs");
    let loaded = runs.iter().find(|run| run["load"] == "tcp_1up").expect("it was loaded");
    let transfer = &loaded["transfers"][0];
    let bytes = transfer["bytes"].as_u64().unwrap_or_else(|| panic!("{transfer}"));
    // In 3 s some 7 MB fit; dropped super-packets left 0.1 MB.
    assert!(bytes > 2_000_000, "{bytes} bytes: {stderr}");
}
