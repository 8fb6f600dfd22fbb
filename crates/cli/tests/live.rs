//! `tidegate apply` and its company on this machine's own kernel, in network namespaces that the tests make.
//!
//! What this kernel does not have is left out by name, as are machines where no namespace may be made.

mod common;

use common::computer::{Computer, done, json, op, refused, stderr};
use common::{Place, TIDEGATE};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tidegate_netlink::encode::nft::{Batch, Expressions, NftVerdict};
use tidegate_netlink::{Kernel, Netfilter};
use tidegate_policy::Op;
use tidegate_sys::namespace::NetworkNamespace;
use tidegate_sys::namespace_thread::NamespaceThread;
use tidegate_sys::netlink::{LinkUpdate, Links};

/// How long something may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// A home gateway of what every kernel has.
const HOME: &str = "#!/bin/sh
tc qdisc del dev eth0 root 2>/dev/null
tc qdisc add dev eth0 root handle 1: htb default 99
tc class add dev eth0 parent 1: classid 1:1 htb rate 1500kbit ceil 1500kbit burst 6k
tc class add dev eth0 parent 1:1 classid 1:10 htb rate 300kbit ceil 1500kbit prio 1
tc class add dev eth0 parent 1:1 classid 1:99 htb rate 150kbit ceil 1300kbit prio 5
tc qdisc add dev eth0 parent 1:10 handle 10: pfifo limit 20
tc qdisc add dev eth0 parent 1:99 handle 99: pfifo limit 60
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 53 0xffff flowid 1:10
iptables -t mangle -A POSTROUTING -o eth0 -p udp --dport 53 -j MARK --set-mark 10
modprobe ifb
ip link set ifb0 up
tc qdisc add dev eth0 handle ffff: ingress
tc filter add dev eth0 parent ffff: protocol ip u32 match u32 0 0 action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root handle 1: tbf rate 8mbit burst 10k latency 50ms
";

/// What someone left there.
const MODEM: &str = "tc qdisc add dev eth0 root handle 7: stab linklayer atm overhead 32 tbf rate 1mbit \
burst 10k latency 100ms";

/// Waits until something is so.
fn until(what: &str, is: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is() {
        assert!(begun.elapsed() < PATIENCE, "{what} was waited for in vain");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_home_gateway_comes_changes_and_goes() {
    let Some(computer) = Computer::new("home") else { return };
    computer.tc(MODEM);
    let before = computer.installed("eth0");
    let home = computer.policy("home.sh", HOME);

    let plan = done(&computer.tidegate(&["apply", &home, "--dry-run", "--backend", "kernel"]));
    assert!(plan.contains("- tc qdisc del dev eth0 root (tbf 7:)"), "{plan}");
    assert!(plan.contains("+ tc class add dev eth0 parent 1:1 classid 1:10 htb"), "{plan}");
    assert_eq!(computer.installed("eth0"), before, "nothing is done by --dry-run");
    assert_eq!(computer.installed("ifb0"), None);

    done(&computer.tidegate(&["apply", &home, "--backend", "kernel"]));
    let first = computer.installed("eth0").expect("it is there");
    assert_eq!((first.classes.len(), computer.tables()), (3, vec!["tidegate-eth0".to_owned()]));
    assert!(
        computer
            .installed("ifb0")
            .is_some_and(|installed| installed.qdiscs.len() == 2 || installed.qdiscs.len() == 1)
    );
    let again = done(&computer.tidegate(&["apply", &home, "--backend", "kernel"]));
    assert!(again.contains("nothing to change: the policy is already in place"), "{again}");

    let other = computer.policy(
        "other.sh",
        &HOME.replace("ceil 1300kbit", "ceil 1200kbit").replace("dport 53 0xffff", "dport 123 0xffff"),
    );
    let plan = done(&computer.tidegate(&["apply", &other, "--backend", "kernel", "--json"]));
    let plan: Value = serde_json::from_str(&plan).expect("JSON");
    let steps = plan["plan"]["devices"][1]["steps"].as_array().expect("steps");
    let signs: Vec<&str> = steps.iter().filter_map(|step| step["sign"].as_str()).collect();
    assert_eq!(signs, ["change", "delete", "add"], "{plan:#}");
    assert_eq!(plan["plan"]["devices"][1]["kept"], 7, "{plan:#}");

    let status = json(&computer.tidegate(&["status", "--json"]))["policies"].clone();
    assert_eq!((&status[0]["name"], &status[0]["backend"]), (&"eth0".into(), &"kernel".into()));
    done(&computer.tidegate(&["revert"]));
    assert_eq!(computer.installed("eth0"), Some(first));
    done(&computer.tidegate(&["down"]));
    assert_eq!(
        (computer.installed("eth0"), computer.installed("ifb0"), computer.tables()),
        (before, None, vec![])
    );
    assert_eq!(computer.tidegate(&["status"]).status.code(), Some(1));
    assert_eq!(computer.tidegate(&["down"]).status.code(), Some(1));
}

/// However many policies followed each other: one step back is the last but one, the next what was there
/// first.
#[test]
fn two_reverts_lead_back_to_what_was_there_first() {
    let Some(computer) = Computer::new("reverts") else { return };
    computer.tc("tc qdisc add dev eth0 root handle 7: tbf rate 1mbit burst 5kb limit 10kb");
    let first = computer.installed("eth0");
    let apply = |ceil: &str| {
        let policy = format!(
            "#!/bin/sh\ntc qdisc add dev eth0 root handle 1: htb default 10\n\
            tc class add dev eth0 parent 1: classid 1:10 htb rate 100kbit ceil {ceil}\n"
        );
        let path = computer.policy(&format!("{ceil}.sh"), &policy);
        done(&computer.tidegate(&["apply", &path, "--backend", "kernel"]));
        computer.installed("eth0")
    };
    apply("200kbit");
    apply("300kbit");
    let third = apply("400kbit");
    apply("500kbit");
    done(&computer.tidegate(&["revert"]));
    assert_eq!(computer.installed("eth0"), third);
    done(&computer.tidegate(&["revert"]));
    assert_eq!(computer.installed("eth0"), first);
    assert_eq!(computer.tidegate(&["status"]).status.code(), Some(1));
}

/// Is there a kind that this kernel lacks? Where there is none, a refusal cannot be had this way.
fn lacks_fq_codel(computer: &Computer) -> bool {
    let tried = computer.place.go(|| {
        let mut kernel = Kernel::open().expect("netlink");
        Links::open().expect("netlink").create_like("probe0", "dummy", 1000).expect("a device");
        let lacks = kernel.apply(&op("tc qdisc add dev probe0 root fq_codel")).is_err();
        Links::open().expect("netlink").delete("probe0").expect("it is there");
        lacks
    });
    let lacks = tried.expect("the thread is there");
    if !lacks {
        println!("left out: this kernel has fq_codel, so nothing is refused");
    }
    lacks
}

#[test]
fn what_is_refused_is_undone_and_has_its_line() {
    let Some(computer) = Computer::new("refused") else { return };
    if !lacks_fq_codel(&computer) {
        return;
    }
    computer.tc("tc qdisc add dev eth0 root handle 7: htb default 1\ntc class add dev eth0 parent 7: \
    classid 7:1 htb rate 1mbit");
    let before = computer.installed("eth0");
    let home = computer.policy("home.sh", &HOME.replace("pfifo limit 60", "fq_codel"));
    let output = refused(&computer.tidegate(&["apply", &home, "--backend", "kernel"]));
    assert!(output.contains("home.sh:8: tc qdisc add dev eth0 parent 1:99 handle 99: fq_codel"), "{output}");
    assert!(output.contains("the kernel refused it: ") && output.contains("--backend user"), "{output}");
    assert!(output.contains("the previous configuration is in place"), "{output}");
    assert_eq!(
        (computer.installed("eth0"), computer.installed("ifb0"), computer.tables()),
        (before, None, vec![])
    );
    assert_eq!(computer.tidegate(&["status"]).status.code(), Some(1));

    let chosen = json(&computer.tidegate(&["apply", &home, "--dry-run", "--json"]));
    assert_eq!(chosen["backend"], "user", "{chosen:#}");
    assert!(chosen["why"].as_str().is_some_and(|why| why.contains("fq_codel")), "{chosen:#}");
}

/// Kernels without CONFIG_CLS_U32_MARK take `match mark` without doing it: their listing shows it, and so it
/// is found.
#[test]
fn what_is_taken_and_not_done_is_undone() {
    let Some(computer) = Computer::new("silent") else { return };
    let policy = "tc qdisc add dev eth0 root handle 1: htb default 1
tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match mark 5 0xff match ip protocol 6 0xff flowid 1:1
";
    let before = computer.installed("eth0");
    let output = computer.tidegate(&["apply", &computer.policy("mark.sh", policy), "--backend", "kernel"]);
    if output.status.success() {
        println!("left out: this kernel's u32 matches marks");
        return;
    }
    let text = refused(&output);
    assert!(text.contains("the configuration of eth0 is not what was requested"), "{text}");
    assert!(text.contains("mark.sh:3: tc filter add"), "{text}");
    assert_eq!(computer.installed("eth0"), before);
}

#[test]
fn what_is_not_confirmed_goes_by_itself() {
    let Some(computer) = Computer::new("confirm") else { return };
    let before = computer.installed("eth0");
    let home = computer.policy("home.sh", HOME);
    done(&computer.tidegate(&["apply", &home, "--backend", "kernel", "--confirm", "1s"]));
    assert_ne!(computer.installed("eth0"), before);
    until("the way back", || computer.installed("eth0") == before && computer.installed("ifb0").is_none());
    until("it is told", || status(&computer).1["condition"] == "undone");
    let (code, document) = status(&computer);
    let undone = &document["undone"];
    assert_eq!(
        (code, &document["code"], &undone["policy"][0]),
        (Some(1), &1.into(), &home.as_str().into()),
        "{document:#}"
    );
    assert_eq!(undone["why"], "it was not confirmed within 1 s");
    assert!(undone["at"].as_u64() >= undone["applied_at"].as_u64() && undone["at"].is_u64(), "{document:#}");
    let text = stderr(&computer.tidegate(&["status"]));
    assert!(text.starts_with("eth0: nothing is applied\n  undone 20"), "{text}");
    assert!(text.contains(&format!(" ago): {home}; it was not confirmed within 1 s\n")), "{text}");

    let output = done(&computer.with(
        &["apply", &home, "--backend", "kernel"],
        &[("SSH_CONNECTION", "192.0.2.7 50000 192.0.2.1 22")],
    ));
    assert!(output.contains("it is undone in 60 s unless confirmed: tidegate confirm eth0"), "{output}");
    assert_eq!(json(&computer.tidegate(&["status", "--json"]))["policies"][0]["confirm"]["seconds"], 60);
    assert_eq!(status(&computer).1["undone"], Value::Null, "until the next apply");
    // sudo removes the variable: then that of a parent process counts. Set and empty, it means that this is
    // no SSH session.
    let above = |command: &str| {
        let script = format!("env {command} {} apply {home} --backend kernel; exit $?", common::TIDEGATE);
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", &script]);
        shell
            .env("SSH_CONNECTION", "192.0.2.7 50000 192.0.2.1 22")
            .env("TIDEGATE_RUN", computer.files.0.join("run"));
        shell.env("TIDEGATE_STATE", computer.files.0.join("kept"));
        done(&computer.tidegate(&["down"]));
        done(&computer.place.go(move || shell.output()).expect("the thread is there").expect("a shell"))
    };
    assert!(above("-u SSH_CONNECTION").contains("it is undone in 60 s unless"));
    assert!(!above("SSH_CONNECTION=").contains("it is undone"));
    assert!(above("-u SSH_CONNECTION").contains("it is undone in 60 s unless"));
    done(&computer.tidegate(&["confirm"]));
    assert!(json(&computer.tidegate(&["status", "--json"]))["policies"][0]["confirm"].is_null());
    assert_eq!(computer.tidegate(&["confirm"]).status.code(), Some(1), "nothing waits any more");
    done(&computer.tidegate(&["down", "eth0"]));
    assert_eq!(computer.installed("eth0"), before);
}

#[test]
fn a_renamed_device_is_not_taken_for_one_that_is_gone() {
    let Some(computer) = Computer::new("renamed") else { return };
    let before = computer.installed("eth0");
    let policy = computer
        .policy("tbf.sh", "tc qdisc add dev eth0 root handle 7: tbf rate 5mbit burst 5k latency 50ms\n");
    done(&computer.tidegate(&["apply", &policy, "--backend", "kernel", "--force"]));
    let rename = |from: &'static str, to: &'static str| {
        let renamed = computer.place.go(move || {
            let mut links = Links::open()?;
            links.change(from, &LinkUpdate { up: Some(false), ..LinkUpdate::default() })?;
            links.change(from, &LinkUpdate { name: Some(to.into()), up: Some(true), ..LinkUpdate::default() })
        });
        renamed.expect("the thread is there").expect("another name");
    };
    rename("eth0", "wan0");
    let output = computer.tidegate(&["revert", "eth0"]);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && stderr.contains("`eth0` is called `wan0` now"), "{stderr}");
    rename("wan0", "eth0");
    // Its guardian goes on without the command, too.
    until("the way back", || {
        computer.tidegate(&["revert", "eth0"]);
        computer.installed("eth0") == before
    });
}

#[test]
fn what_was_never_confirmed_does_not_come_back() {
    let Some(computer) = Computer::new("chain") else { return };
    let before = computer.installed("eth0");
    let home = computer.policy("home.sh", HOME);
    let other = computer
        .policy("other.sh", "tc qdisc add dev eth0 root handle 7: tbf rate 5mbit burst 5k latency 50ms\n");
    let apply = |policy: &str, seconds: &str| {
        computer.tidegate(&["apply", policy, "--backend", "kernel", "--force", "--confirm", seconds])
    };
    done(&apply(&home, "5s"));
    let again = apply(&home, "5s");
    assert!(String::from_utf8_lossy(&again.stderr).contains("it still waits to be confirmed"), "{again:?}");
    done(&apply(&other, "1s"));
    until("the way back, past the one that waited as well", || {
        computer.installed("eth0") == before && computer.installed("ifb0").is_none()
    });
    until("nothing is kept", || computer.tidegate(&["status"]).status.code() == Some(1));
}

#[test]
fn others_keep_their_rules_and_their_devices() {
    let Some(computer) = Computer::new("others") else { return };
    let made = computer.place.go(|| {
        let mut batch = Batch::new("somebody");
        batch.make_table(None);
        batch.chain("theirs", None, true);
        batch.rule("theirs", Expressions::default().counter().verdict(&NftVerdict::Return));
        Links::open()?.create_like("eth1", "dummy", 1000)?;
        Netfilter::open()?.carry_out(batch)
    });
    made.expect("the thread is there").expect("netlink").expect("the kernel takes it");
    computer.tc("tc qdisc add dev eth1 root handle 3: pfifo limit 9");
    let (theirs, home) = (computer.installed("eth1"), computer.policy("home.sh", HOME));
    done(&computer.tidegate(&["apply", &home, "--backend", "kernel"]));
    assert_eq!(computer.tables(), ["somebody", "tidegate-eth0"]);
    done(&computer.tidegate(&["down"]));
    assert_eq!((computer.tables(), computer.installed("eth1")), (vec!["somebody".to_owned()], theirs));
}

/// What cannot be restored is not removed unless that is reported. (No tc makes a table of sizes like this
/// one.)
#[test]
fn what_cannot_be_restored_is_reported_first() {
    let Some(computer) = Computer::new("caveat") else { return };
    let made = computer.place.go(|| {
        let Op::Qdisc(mut modem) = op(MODEM) else { panic!("a qdisc") };
        modem.stab.as_mut().expect("it has a size table").cell_align = 0;
        Kernel::open().expect("netlink").apply(&Op::Qdisc(modem))
    });
    made.expect("the thread is there").expect("the kernel takes it");
    let (before, home) = (computer.installed("eth0"), computer.policy("home.sh", HOME));
    let output = refused(&computer.tidegate(&["apply", &home, "--backend", "kernel"]));
    assert!(
        output.contains("the kernel does not list the entries of its size table, which tc did not make"),
        "{output}"
    );
    assert!(output.contains("--force"), "{output}");
    assert_eq!(computer.installed("eth0"), before);
    done(&computer.tidegate(&["apply", &home, "--backend", "kernel", "--force"]));
    assert_ne!(computer.installed("eth0"), before);
}

#[test]
fn what_keeps_the_network_alive_is_not_cut_off() {
    let Some(computer) = Computer::new("control") else { return };
    let before = computer.installed("eth0");
    let arp = "tc qdisc add dev eth0 root handle 1: htb default 1
tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit
tc filter add dev eth0 parent 1: protocol arp prio 1 u32 match u32 0 0 action drop
";
    let output =
        refused(&computer.tidegate(&["apply", &computer.policy("arp.sh", arp), "--backend", "kernel"]));
    assert!(
        output.contains("ARP (addresses of neighbours) would not get through eth0: it is lost"),
        "{output}"
    );
    let ssh = "tc qdisc add dev eth0 root handle 1: htb default 1
tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit
tc class add dev eth0 parent 1: classid 1:2 htb rate 1kbit
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 50000 0xffff flowid 1:2
";
    let path = computer.policy("ssh.sh", ssh);
    let session = [("SSH_CONNECTION", "192.0.2.7 50000 192.0.2.1 22")];
    let output = refused(&computer.with(&["apply", &path, "--backend", "kernel"], &session));
    assert!(output.contains("your SSH session to 192.0.2.7 would not get through eth0"), "{output}");
    assert_eq!(computer.installed("eth0"), before);
    done(&computer.tidegate(&["apply", &path, "--backend", "kernel"]));
}

#[test]
fn errors_are_reported_and_nothing_is_changed() {
    let Some(computer) = Computer::new("mistakes") else { return };
    let wrong = |words: &[&str]| {
        let output = computer.tidegate(words);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        stderr(&output)
    };
    assert!(wrong(&["apply", "/nowhere/at/all.sh"]).contains("/nowhere/at/all.sh"));
    let elsewhere = computer.policy("elsewhere.sh", "tc qdisc add dev wan7 root pfifo\n");
    let text = wrong(&["apply", &elsewhere]);
    assert!(
        text.contains("there is no device `wan7` here; there are eth0. --dev binds a policy to another"),
        "{text}"
    );
    done(&computer.tidegate(&["apply", &elsewhere, "--dev", "eth0", "--backend", "kernel"]));
    let nat = computer.policy(
        "nat.sh",
        "tc qdisc add dev eth0 root pfifo\niptables -t nat -A POSTROUTING -o eth0 -j MASQUERADE\n",
    );
    let text = refused(&computer.tidegate(&["apply", &nat, "--backend", "kernel"]));
    assert!(
        text.contains("MASQUERADE is not set by tidegate; leave it to the firewall that has it"),
        "{text}"
    );
    let text = refused(&computer.tidegate(&["revert", "eth7"]));
    assert!(text.contains("tidegate applied nothing to `eth7`"), "{text}");
    // Half a script is no policy, whichever backend it is for.
    let before = computer.installed("eth0");
    let begins = "set -e\ntc qdisc add dev eth0 root handle 1: htb default 10\n";
    for (name, rest) in [
        ("parent.sh", "tc class add dev eth0 parent 9: classid 9:1 htb rate 5mbit\n"),
        ("exit.sh", "tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\nexit 7\n"),
        ("tool.sh", "tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\nnosuchcommand\n"),
    ] {
        let path = computer.policy(name, &format!("{begins}{rest}"));
        for words in [
            &["apply", &path, "--backend", "kernel"][..],
            &["apply", &path, "--backend", "user"],
            &["daemon", &path],
        ] {
            let text = wrong(words);
            assert!(text.contains("this is half a policy"), "{words:?}: {text}");
        }
        assert_eq!(computer.installed("eth0"), before, "{name}");
    }
    // A file that is not ours is no state, and nothing is done by it.
    let state = state_file(&computer.files.0.join("run"));
    let before = computer.installed("eth0");
    for wrong in ["{", "{}", "[]", "{\"backend\": \"kernel\"}", "{\"backend\": \"user\", \"devices\": []}"] {
        std::fs::write(&state, wrong).expect("a file");
        for command in ["down", "revert", "confirm"] {
            let text = refused(&computer.tidegate(&[command]));
            assert!(text.contains("is not what tidegate wrote"), "{command} {wrong}: {text}");
        }
        assert_eq!(computer.tidegate(&["status"]).status.code(), Some(2), "{wrong}");
    }
    assert_eq!(computer.installed("eth0"), before);
}

/// The output of `status`: the code of the worst condition, and the first policy. Its exit code follows from
/// that.
fn status(computer: &Computer) -> (Option<i32>, Value) {
    let output = computer.tidegate(&["status", "--json"]);
    let document = json(&output)["policies"].clone();
    let codes = document.as_array().into_iter().flatten().filter_map(|one| one["code"].as_i64());
    let worst = codes.max().and_then(|code| i32::try_from(code).ok());
    let exit = match worst {
        Some(0) => 0,
        Some(3 | 4) => 3,
        _ => 1,
    };
    assert_eq!(output.status.code(), Some(exit), "{document:#}");
    (worst.or(Some(exit)), document[0].clone())
}

/// Names of classes: of the policy as it is applied, whichever backend has it, and of the one before after a
/// revert. Where only a comment differs, the name does.
#[test]
fn classes_have_the_names_that_the_policy_gives_them() {
    let Some(computer) = Computer::new("names") else { return };
    let shown = || {
        let top = json(&computer.tidegate(&["top", "eth0", "--once", "--json", "--interval", "50ms"]));
        let class = top["classes"].as_array().into_iter().flatten().find(|class| class["class"] == "1:20");
        let status = status(&computer).1["names"]["eth0"]["1:20"].clone();
        (class.map_or(Value::Null, |class| class["name"].clone()), status)
    };
    let named = |name: &str| (Value::from(name), Value::from(name));
    let script = |name: &str| {
        let text = HOME
            .replace("1:10", "1:20")
            .replace("300kbit ceil 1500kbit prio 1", &format!("300kbit # {name}"));
        computer.policy("home.sh", &text)
    };
    let apply = |policy: &str, backend: &str| {
        done(&computer.tidegate(&["apply", policy, "--backend", backend]));
    };
    for name in ["names", "calls"] {
        apply(&script(name), "kernel");
        assert_eq!(shown(), named(name));
    }
    // What comes back at boot has lost its comments, but not its names.
    done(&computer.tidegate(&["down"]));
    apply(&script("calls"), "kernel");
    let state = state_file(&computer.files.0.join("run"));
    std::fs::remove_file(&state).expect("it is there");
    computer.tc("tc qdisc del dev eth0 root\ntc qdisc del dev eth0 ingress");
    done(&computer.tidegate(&["apply", "--at-boot"]));
    assert_eq!(shown(), named("calls"));
    done(&computer.tidegate(&["down"]));

    let policy = |name: &str| {
        let class = format!("[classes.\"{name}\"]\nports = [\"udp 5060\"]\nfirst = true\n");
        computer.policy("named.toml", &format!("device = \"eth0\"\nup = \"5mbit\"\n{class}"))
    };
    apply(&policy("calls"), "user");
    assert_eq!(shown(), named("calls"));
    // Names are any text.
    apply(&policy("\\u001b]0;x\\u0007 \\\"q\\\" <b>"), "user");
    assert_eq!(shown(), named("\u{1b}]0;x\u{7} \"q\" <b>"));
    let metrics = done(&computer.tidegate(&["metrics", "--once"]));
    assert!(metrics.contains("class_name=\"\\x1b]0;x\\x07 \\\"q\\\" <b>\""), "{metrics}");
    for words in [&["status"][..], &["top", "--once", "--interval", "50ms"], &["metrics", "--once"]] {
        let output = done(&computer.tidegate(words));
        assert!(!output.contains('\x1b') && !output.contains('\x07'), "{words:?} {output}");
    }
    done(&computer.tidegate(&["revert"]));
    assert_eq!(shown(), named("calls"), "what ran before has its names again");
    done(&computer.tidegate(&["down"]));
}

#[test]
fn status_looks_at_the_kernel() {
    let Some(computer) = Computer::new("status") else { return };
    let home = computer.policy("home.sh", HOME);
    let apply = || drop(done(&computer.tidegate(&["apply", &home, "--backend", "kernel"])));
    apply();
    let (code, document) = status(&computer);
    assert_eq!(
        (code, &document["condition"], &document["drift"]),
        (Some(0), &"installed".into(), &Value::from(Vec::<Value>::new())),
        "{document:#}"
    );
    assert!(document["applied_at"].as_u64() > Some(1_600_000_000), "{document:#}");

    // A class changed by hand, with what brings it back; then a qdisc deleted by hand, a rule, and the
    // device.
    computer.tc("tc class change dev eth0 parent 1:1 classid 1:10 htb rate 111kbit ceil 1500kbit prio 1");
    let output = computer.tidegate(&["status"]);
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("eth0: drifted") && text.contains("--- eth0: as it is"), "{text}");
    assert!(
        text.contains("~ tc class change dev eth0 parent 1:1 classid 1:10 htb")
            && text.contains("rate 300Kbit"),
        "{text}"
    );
    apply();
    assert_eq!(status(&computer).0, Some(0), "apply puts it back");
    let up = || {
        let metrics = done(&computer.tidegate(&["metrics", "--once"]));
        let value = |name: &str| {
            metrics.lines().find(|line| line.starts_with(name))?.rsplit(' ').next().map(str::to_owned)
        };
        ["tidegate_up{", "tidegate_trouble{", "tidegate_drift{"]
            .map(|name| value(name).expect("it is among them"))
    };
    assert_eq!(up(), ["1", "0", "0"]);
    computer.tc("tc qdisc del dev eth0 root");
    assert_eq!(status(&computer).0, Some(5));
    assert_eq!(up(), ["0", "1", "1"], "what status calls drifted is not up");
    apply();
    let rules = computer.place.go(|| {
        let mut batch = Batch::new("tidegate-eth0");
        batch.delete_table();
        Netfilter::open()?.carry_out(batch)
    });
    rules.expect("the thread is there").expect("netlink").expect("the kernel takes it");
    let (code, document) = status(&computer);
    assert_eq!(
        (code, &document["drift"][0]),
        (Some(5), &"~ nft table inet tidegate-eth0 is gone\n".into()),
        "{document:#}"
    );
    let gone = computer.place.go(|| Links::open()?.delete("eth0"));
    gone.expect("the thread is there").expect("it was there");
    let (code, document) = status(&computer);
    assert_eq!((code, &document["last_error"]), (Some(6), &"there is no device eth0".into()), "{document:#}");
    done(&computer.tidegate(&["down"]));
    assert_eq!(computer.installed("ifb0"), None);
}

#[test]
fn a_guardian_retries_and_its_death_is_reported() {
    let Some(computer) = Computer::new("guardian") else { return };
    let (before, home) = (computer.installed("eth0"), computer.policy("home.sh", HOME));
    let apply = ["apply", home.as_str(), "--backend", "kernel", "--confirm"];
    let with = |seconds: &'static str| drop(done(&computer.tidegate(&[&apply[..], &[seconds]].concat())));
    with("1s");
    // Someone is at work here while its time is over: it goes back once they are not.
    let lock = state_file(&computer.files.0.join("run")).with_file_name(":work.lock");
    let alone = std::iter::repeat_with(|| alone_in(&lock)).flatten().next();
    until("the time is over", || status(&computer).1["confirm"]["left_s"] == 0.0);
    assert_ne!(computer.installed("eth0"), before);
    drop(alone);
    until("the way back", || {
        computer.installed("eth0") == before && computer.tidegate(&["status"]).status.code() == Some(1)
    });

    with("3600s");
    let (code, document) = status(&computer);
    let left = document["confirm"]["left_s"].as_f64().expect("it waits");
    assert!(code == Some(3) && (3000.0..=3600.0).contains(&left), "{document:#}");
    let guardian =
        document["confirm"]["guardian"].as_u64().and_then(|pid| u32::try_from(pid).ok()).expect("it has one");
    tidegate_sys::process::kill_tree(guardian);
    until("it is missed", || status(&computer).0 == Some(9));
    assert!(
        status(&computer).1["last_error"]
            .as_str()
            .is_some_and(|why| why.contains("is gone, so it will not be undone automatically"))
    );
    done(&computer.tidegate(&["revert"]));
    assert_eq!(computer.installed("eth0"), before);
}

fn alone_in(lock: &Path) -> Option<tidegate_sys::service::Alone> {
    tidegate_sys::service::Alone::take(lock).expect("it is there")
}

/// Asked to end, a guardian goes back at once: no one else would.
#[test]
fn a_guardian_that_is_terminated_reverts_first() {
    let Some(computer) = Computer::new("asked") else { return };
    let (before, home) = (computer.installed("eth0"), computer.policy("home.sh", HOME));
    done(&computer.tidegate(&["apply", &home, "--backend", "kernel", "--confirm", "3600s"]));
    let guardian =
        status(&computer).1["confirm"]["guardian"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    tidegate_sys::process::request_termination(guardian.expect("it has one"));
    until("the way back", || {
        computer.installed("eth0") == before && computer.tidegate(&["status"]).status.code() == Some(1)
    });
}

/// However many changes come and go while a policy waits, one guardian waits with it.
#[test]
fn one_guardian_waits_for_a_confirmation() {
    let Some(computer) = Computer::new("one") else { return };
    let policy = computer.policy("wait.batch", "qdisc add dev eth0 root handle 1: pfifo limit 7\n");
    for _ in 0..5 {
        let policy = policy.clone();
        done(&computer.tidegate(&["apply", &policy, "--backend", "kernel", "--confirm", "3600s", "--force"]));
        let other = computer.policy("other.batch", "qdisc add dev eth0 root handle 1: pfifo limit 8\n");
        done(&computer.tidegate(&["apply", &other, "--backend", "kernel", "--confirm", "3600s"]));
    }
    // They run as children of this test's init, in no order: those that have nothing to do end.
    let run = computer.files.0.join("run").to_string_lossy().into_owned();
    let guardians = || {
        let all = std::fs::read_dir("/proc").expect("processes").flatten();
        all.filter(|entry| {
            let file = |name| std::fs::read(entry.path().join(name)).unwrap_or_default();
            let is_guardian = file("cmdline").ends_with(b"--guard\0");
            is_guardian
                && String::from_utf8_lossy(&file("environ")).contains(&format!("TIDEGATE_RUN={run}\0"))
        })
        .count()
    };
    until("one is left", || guardians() == 1);
    assert_eq!(status(&computer).0, Some(3));
    done(&computer.tidegate(&["confirm"]));
    until("none is left", || guardians() == 0);
    assert_eq!(status(&computer).0, Some(0));
    done(&computer.tidegate(&["down"]));
}

/// What cannot be restored is reported, with a code, and is tried again.
#[test]
fn a_failed_down_is_reported() {
    let Some(computer) = Computer::new("fails") else { return };
    let home = computer.policy("home.sh", HOME);
    done(&computer.tidegate(&["apply", &home, "--backend", "kernel"]));
    let path = state_file(&computer.files.0.join("run"));
    let right = std::fs::read_to_string(&path).expect("it is there");
    let mut wrong: Value = serde_json::from_str(&right).expect("JSON");
    // As if the loopback device had not been there before: it cannot be taken away.
    let made = serde_json::json!({"dev": "lo", "told": null});
    wrong["original"]["devices"].as_array_mut().expect("a list").push(made);
    std::fs::write(&path, wrong.to_string()).expect("a file");
    // A message of an earlier job's guardian is not this one's error.
    std::fs::write(path.with_extension("guard"), "2026-01-01 00:00:00 UTC guardian 1: an old failure\n")
        .expect("a file");
    let output = refused(&computer.tidegate(&["down"]));
    assert!(output.contains("`eth0` is not as it was before; its guardian (process "), "{output}");
    let (code, document) = status(&computer);
    assert_eq!((code, &document["job"]["does"]), (Some(4), &"down".into()), "{document:#}");
    let error = document["last_error"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains("`lo`") || error.contains(" lo"), "{document:#}");
    until("it is tried again", || {
        let log = std::fs::read_to_string(path.with_extension("guard")).unwrap_or_default();
        log.lines().filter(|line| line.contains("trying again in")).count() > 1
    });
    // A job that has not failed has no error, whatever earlier jobs reported.
    let lock = path.with_file_name(":work.lock");
    let alone = std::iter::repeat_with(|| alone_in(&lock)).flatten().next();
    let edit = |does: &dyn Fn(&mut Value)| {
        let text = std::fs::read_to_string(&path).expect("it is there");
        let mut state: Value = serde_json::from_str(&text).expect("JSON");
        does(&mut state);
        std::fs::write(path.with_extension("right"), state.to_string()).expect("a file");
        std::fs::rename(path.with_extension("right"), &path).expect("a file");
    };
    edit(&|state| drop(state["job"].as_object_mut().expect("a job").remove("error")));
    let (code, document) = status(&computer);
    assert_eq!((code, &document["last_error"]), (Some(4), &Value::Null), "{document:#}");
    // Once it can be done, it is.
    edit(&|state| drop(state["original"]["devices"].as_array_mut().expect("a list").pop()));
    drop(alone);
    until("the guardian has done it", || !path.exists());
    assert_eq!((computer.installed("ifb0"), computer.tables()), (None, vec![]));
}

#[test]
fn a_policy_without_ingress_leaves_a_foreign_one_alone() {
    let Some(computer) = Computer::new("ingress") else { return };
    computer.tc("tc qdisc add dev eth0 handle ffff: ingress\ntc filter add dev eth0 parent ffff: protocol \
    ip prio 3 u32 match ip dport 9 0xffff flowid 1:9");
    let before = computer.installed("eth0").expect("it is there");
    let only_egress = computer.policy("egress.batch", "qdisc add dev eth0 root handle 1: pfifo limit 7\n");
    let plan = done(&computer.tidegate(&["apply", &only_egress, "--backend", "kernel"]));
    assert!(!plan.contains("ingress"), "{plan}");
    let now = computer.installed("eth0").expect("it is there");
    assert_eq!((now.filters.len(), now.qdiscs.len()), (before.filters.len(), 2), "{now:#?}");
    assert_eq!(status(&computer).0, Some(0));
    // It is not tidegate's, so its removal is not reported.
    computer.tc("tc qdisc del dev eth0 ingress");
    assert_eq!(status(&computer).0, Some(0));
    computer.tc("tc qdisc add dev eth0 handle ffff: ingress\ntc filter add dev eth0 parent ffff: protocol \
    ip prio 3 u32 match ip dport 9 0xffff flowid 1:9");
    // A policy with rules for it takes it over, and a later one without such rules restores it.
    let both = computer.policy(
        "both.batch",
        "qdisc add dev eth0 root handle 1: pfifo limit 7\nqdisc add dev eth0 handle ffff: ingress\n",
    );
    done(&computer.tidegate(&["apply", &both, "--backend", "kernel"]));
    assert_eq!(computer.installed("eth0").expect("it is there").filters, vec![]);
    done(&computer.tidegate(&["apply", &only_egress, "--backend", "kernel"]));
    assert_eq!(computer.installed("eth0").expect("it is there").filters, before.filters);
    done(&computer.tidegate(&["down"]));
    assert_eq!(computer.installed("eth0").expect("it is there").filters, before.filters);
}

#[test]
fn a_dry_run_reports_what_this_kernel_would_refuse() {
    let Some(computer) = Computer::new("dry") else { return };
    if !lacks_fq_codel(&computer) {
        return;
    }
    let home = computer.policy("home.sh", &HOME.replace("pfifo limit 60", "fq_codel"));
    let output = refused(&computer.tidegate(&["apply", &home, "--backend", "kernel", "--dry-run"]));
    assert!(output.contains("this would be refused: this kernel has no fq_codel"), "{output}");
    let home = computer.policy("home.sh", HOME);
    done(&computer.tidegate(&["apply", &home, "--backend", "kernel", "--dry-run"]));
}

/// A restart of the machine: nothing is left but what is kept on its disk.
#[test]
fn what_was_applied_for_good_is_there_again_after_a_restart() {
    let Some(computer) = Computer::new("boot") else { return };
    let before = computer.installed("eth0");
    let first = computer.policy("first.batch", "qdisc add dev eth0 root handle 1: pfifo limit 7\n");
    let second = computer.policy("second.batch", "qdisc add dev eth0 root handle 1: pfifo limit 8\n");
    let restart = || {
        computer.tc("tc qdisc del dev eth0 root");
        // What is in /run of an earlier run of the machine counts for nothing, even if it is still there.
        let state = state_file(&computer.files.0.join("run"));
        let mut old: Value =
            serde_json::from_str(&std::fs::read_to_string(&state).expect("it is there")).expect("JSON");
        old["boot"] = "another run".into();
        std::fs::write(&state, old.to_string()).expect("a file");
        assert_eq!(computer.tidegate(&["status"]).status.code(), Some(1));
    };
    done(&computer.tidegate(&["apply", &first, "--backend", "kernel"]));
    let applied = computer.installed("eth0");
    restart();
    done(&computer.tidegate(&["apply", "--at-boot"]));
    assert_eq!((computer.installed("eth0"), status(&computer).0), (applied.clone(), Some(0)));
    // Not confirmed when the machine went down: what was confirmed last is there.
    done(&computer.tidegate(&["apply", &second, "--backend", "kernel", "--confirm", "3600s"]));
    assert_ne!(computer.installed("eth0"), applied);
    // Over one that waits it changes nothing: that would be kept for good.
    let output = refused(&computer.tidegate(&["apply", "--at-boot"]));
    assert!(output.contains("`eth0` has a policy that waits to be confirmed"), "{output}");
    assert!(
        output.contains("`tidegate confirm eth0` keeps it, `tidegate revert eth0` undoes it"),
        "{output}"
    );
    let (code, document) = status(&computer);
    assert_eq!((code, &document["confirm"]["seconds"]), (Some(3), &3600.into()), "{document:#}");
    restart();
    done(&computer.tidegate(&["apply", "--at-boot"]));
    assert_eq!(computer.installed("eth0"), applied);
    // Confirmed: this one.
    done(&computer.tidegate(&["apply", &second, "--backend", "kernel", "--confirm", "3600s"]));
    let applied = computer.installed("eth0");
    done(&computer.tidegate(&["confirm"]));
    restart();
    done(&computer.tidegate(&["apply", "--at-boot"]));
    assert_eq!(computer.installed("eth0"), applied);
    // Taken down: none.
    done(&computer.tidegate(&["down"]));
    assert_eq!(done(&computer.tidegate(&["apply", "--at-boot"])), "");
    assert_eq!(computer.installed("eth0"), before);
}

/// Namespaces that are held at once while one is looked for that has the number of another.
const MOST_NAMESPACES: usize = 50;

/// What was applied in a namespace that is gone is not taken for that of another one with its number.
#[test]
fn a_namespace_with_the_number_of_one_that_is_gone_has_nothing_applied() {
    let Some(mut computer) = Computer::new("number") else { return };
    let policy = computer.policy("short.batch", "qdisc add dev eth0 root handle 1: pfifo limit 7\n");
    done(&computer.tidegate(&["apply", &policy, "--backend", "kernel"]));
    assert_eq!(status(&computer).0, Some(0));
    let known = |place: &NamespaceThread| {
        place.go(NetworkNamespace::current).expect("the thread is there").expect("/proc")
    };
    let before = known(&computer.place);
    if before.cookie.is_none() {
        return println!("left out: this kernel has no SO_NETNS_COOKIE");
    }
    // Those that are held keep their numbers, so that in the end one gets the number that is free again (the
    // kernel takes its time for that).
    computer.place = NamespaceThread::new("another").expect("a namespace");
    let mut threads = Vec::new();
    let begun = Instant::now();
    while known(&computer.place).inode != before.inode {
        if begun.elapsed() > PATIENCE {
            return println!("left out: the number did not come again");
        }
        if threads.len() == MOST_NAMESPACES {
            threads.clear();
        }
        threads.push(std::mem::replace(
            &mut computer.place,
            NamespaceThread::new("another").expect("a namespace"),
        ));
    }
    println!("{before} came again as {}", known(&computer.place));
    let made = computer.place.go(|| Links::open()?.create_like("eth0", "dummy", 1000));
    made.expect("the thread is there").expect("a device");
    assert_eq!(computer.tidegate(&["status"]).status.code(), Some(1));
    assert!(refused(&computer.tidegate(&["down"])).contains("tidegate applied nothing here"));
    // What the other one left goes once something is applied here.
    done(&computer.tidegate(&["apply", &policy, "--backend", "kernel"]));
    assert_eq!(std::fs::read_dir(computer.files.0.join("run")).expect("a directory").count(), 1);
    done(&computer.tidegate(&["down"]));
}

fn state_file(run: &Path) -> PathBuf {
    let net =
        std::fs::read_dir(run).expect("a directory").next().expect("one namespace").expect("an entry").path();
    net.join("eth0.json")
}

/// The daemon and the apply that starts it name a policy alike, though it is for two devices.
#[test]
fn a_policy_for_two_devices_runs_in_user_space() {
    let Some(computer) = Computer::new("two-devices") else { return };
    let made = computer.place.go(|| Links::open()?.create_like("lan0", "dummy", 1000));
    made.expect("the thread is there").expect("a device");
    let policy = computer.policy(
        "two.sh",
        "tc qdisc add dev lan0 root tbf rate 40mbit burst 9k latency 30ms\n\
        tc qdisc add dev eth0 root tbf rate 9mbit burst 5k latency 30ms\n",
    );
    done(&computer.tidegate(&["apply", &policy, "--backend", "user", "--confirm", "0"]));
    let status = json(&computer.tidegate(&["status", "--json"]));
    let applied = &status["policies"][0];
    assert_eq!((&applied["name"], &applied["condition"]), (&"eth0".into(), &"installed".into()), "{status}");
    assert_eq!(applied["devices"], serde_json::json!(["eth0", "lan0"]));
    done(&computer.tidegate(&["down", "lan0"]));
    let left = computer.tidegate(&["status"]);
    assert_eq!(left.status.code(), Some(1), "{}", stderr(&left));
}

/// In a chroot whose `/proc` is that of another process namespace, the daemon's number is another process's
/// there.
#[test]
fn down_does_not_take_another_process_for_the_daemon() {
    if common::skip() {
        return;
    }
    let place = Place::new("other-proc");
    let at = place.0.display();
    let inner = place.script(
        "inner.sh",
        format!(
            "export TIDEGATE_RUN={at}/run TIDEGATE_STATE={at}/kept\n\
             for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do /bin/true; done\n\
             {TIDEGATE} apply --backend user --confirm 0 {at}/policy.sh >&2 || exit\n\
             {TIDEGATE} down; echo $?\n"
        ),
    );
    place.file("policy.sh", "tc qdisc add dev eth0 root tbf rate 9mbit burst 5k latency 30ms\n");
    // Of the numbers that the processes of the inner namespace get, all are taken in the outer one.
    let outer = place.script(
        "outer.sh",
        format!(
            "n=0; while [ $n -lt 200 ]; do sleep 1000 & n=$((n + 1)); done\n\
             exec unshare --pid --fork sh {}\n",
            inner.display()
        ),
    );
    let words = ["shell", "--up", "20mbit", "--down", "20mbit", "--", "sh", outer.to_str().expect("text")];
    let output = Command::new(TIDEGATE).args(words).output().expect("tidegate runs");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(stdout, "down: eth0\n0\n", "{}", stderr(&output));
}
