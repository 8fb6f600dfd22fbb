//! Scripts that make network namespaces: whose policy is looked at, and that this is said.

use crate::common;

use common::{Place, TIDEGATE, skip};
use std::process::{Command, Output};

fn tidegate(args: &[&str]) -> Output {
    Command::new(TIDEGATE).args(args).output().expect("runs")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

const TEST_BED: &str = "#!/bin/bash
set -e
TC=tc
cleanup() { ip netns del left 2>/dev/null || true; ip netns del right 2>/dev/null || true; }
trap cleanup EXIT
cleanup
ip netns add left
ip netns add right
ip link add v0 type veth peer name v1
ip link set v0 netns left
ip link set v1 netns right name eth0
ip netns exec left ip addr add 10.0.0.1/24 dev v0
ip -n right addr add 10.0.0.2/24 dev eth0
ip netns exec left ip link set v0 up
ip -n right link set eth0 up
ip netns exec left $TC qdisc add dev v0 root handle 1: htb default 0x20
ip netns exec left bash -c 'tc class add dev v0 parent 1: classid 1:10 htb rate 10mbit'
tc -n right qdisc add dev eth0 root netem delay 20ms
";

#[test]
fn the_policy_of_a_namespace_is_looked_at() {
    if skip() {
        return;
    }
    let place = Place::new("namespaces");
    let script = place.script("bed.sh", TEST_BED);
    let script = script.to_str().expect("a name");
    let shown = tidegate(&["run", script, "--print", "tc"]);
    assert!(shown.status.success(), "{shown:?}");
    let commands = stdout(&shown);
    assert!(commands.contains("tc qdisc add dev v0 root handle 1: htb default 0x20"), "{commands}");
    assert!(!commands.contains("netem"), "{commands}");
    let said = String::from_utf8_lossy(&shown.stderr).into_owned();
    let sentence = "this is about the network namespace left, which the script deletes in the end; commands that \
                    are given here are for there (ip netns exec left …); it configures right too: --netns NAME \
                    looks at another";
    assert!(said.contains(sentence), "{said}");
    // The line of a finding is the script's, whatever stands before the tool.
    let checked = tidegate(&["check", script]);
    let found = stdout(&checked) + &String::from_utf8_lossy(&checked.stderr);
    assert!(found.contains("bed.sh:16:") && found.contains("0x20"), "{found}");
    assert!(found.contains("network namespace left"), "{found}");
    let right = tidegate(&["run", script, "--netns", "right", "--print", "tc"]);
    assert!(stdout(&right).contains("tc qdisc add dev eth0 root netem delay 20ms"), "{right:?}");
    let none = tidegate(&["check", script, "--netns", "middle"]);
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(none.status.code() == Some(2), "{none:?}");
    assert!(said.contains("there is no such network namespace; there are left, right"), "{said}");
    let own = tidegate(&["check", script, "--netns", "1"]);
    assert!(!stdout(&own).contains("0x20"), "{own:?}");
}

/// What is for another namespace is not set in this one.
#[test]
fn a_policy_of_a_namespace_is_not_applied_unasked() {
    if skip() {
        return;
    }
    let place = Place::new("namespaces-apply");
    let script = place.script("bed.sh", TEST_BED);
    let script = script.to_str().expect("a name");
    let refused = tidegate(&["apply", script, "--dry-run"]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success(), "{refused:?}");
    assert!(said.contains("name the namespace whose policy it shall be with --netns"), "{said}");
}

/// What `docker exec` and `nsenter` run is a container's, and what they cannot tell is refused at its line.
#[test]
fn the_policy_of_a_container_is_looked_at() {
    if skip() {
        return;
    }
    let place = Place::new("containers");
    let text = "#!/bin/sh
set -e
docker run -d --name web nginx
docker exec -i web tc qdisc add dev eth0 root handle 1: htb default 0x20
PID=$(docker inspect -f '{{.State.Pid}}' web)
sudo nsenter -t $PID -n tc class add dev eth0 parent 1: classid 1:10 htb rate 10mbit
docker exec db sh -c 'tc qdisc add dev eth0 root netem delay 20ms'
";
    let script = place.script("containers.sh", text);
    let script = script.to_str().expect("a name");
    let checked = tidegate(&["check", script]);
    let found = stdout(&checked) + &String::from_utf8_lossy(&checked.stderr);
    let sentence = "this is about the network of the container or process web; commands that are given here are for \
                    there; it configures db too: --netns NAME looks at another";
    assert!(found.contains(sentence), "{found}");
    assert!(found.contains("containers.sh:4:") && found.contains("0x20"), "{found}");
    let other = tidegate(&["run", script, "--netns", "db", "--print", "tc"]);
    assert!(stdout(&other).contains("tc qdisc add dev eth0 root netem delay 20ms"), "{other:?}");
    let script = place.script("asks.sh", "#!/bin/sh\ndocker ps -q\ntc qdisc add dev eth0 root fq\n");
    let refused = tidegate(&["check", script.to_str().expect("a name")]);
    let found = stdout(&refused) + &String::from_utf8_lossy(&refused.stderr);
    assert!(found.contains("asks.sh:2") && found.contains("docker ps is not supported"), "{found}");
}

/// The machines, cables and traffic of a test-bed are a scenario, which runs.
#[test]
fn a_test_bed_becomes_a_scenario() {
    if skip() {
        return;
    }
    let place = Place::new("test-bed");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/test-bed.sh");
    let shown = tidegate(&["run", script, "--print", "scenario"]);
    assert!(shown.status.success(), "{shown:?}");
    let said = String::from_utf8_lossy(&shown.stderr).into_owned();
    assert!(said.contains("not run: iperf3, ping; each of these calls"), "{said}");
    assert!(!said.contains("--netns NAME"), "all of them are in it: {said}");
    let text = stdout(&shown);
    for part in [
        "between = [\"client\", \"router:r0\"]",
        "[hosts.server]\naddress = \"10.0.2.1\"",
        "\"tc qdisc add dev r0 root netem delay 40ms\"",
        "tcp = \"client -> server\"\nstop = \"20000ms\"",
        "ping = \"client -> server\"",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let file = place.file("bed.toml", &text);
    let run = tidegate(&["sim", file.to_str().expect("a name")]);
    let figures = stdout(&run);
    assert!(run.status.success() && figures.contains("script"), "{run:?}");
    let row = figures.lines().find(|line| line.starts_with("script")).expect("a row");
    // The shaper's 10 Mbit/s less headers and the flow's beginning, and the delay.
    assert!(row.contains(" 9.") && row.contains("40."), "{figures}");
    let none = tidegate(&[
        "run",
        "--print",
        "scenario",
        &place.script("flat.sh", "tc qdisc add dev eth0 root sfq\n").display().to_string(),
    ]);
    let said = String::from_utf8_lossy(&none.stderr).into_owned();
    assert!(none.status.code() == Some(2) && said.contains("lays no cable (veth)"), "{none:?}");
}

/// A bridge forwards between its ports, and an ifb is where packets are redirected to it.
#[test]
fn a_bridge_of_a_test_bed_is_a_machine() {
    if skip() {
        return;
    }
    let place = Place::new("test-bed-bridge");
    let script = place.script(
        "bridge.sh",
        "#!/bin/sh
set -e
ip link add br0 type bridge
ip link set br0 up
for i in 1 2; do
  ip netns add h$i
  ip link add veth$i type veth peer name eth0 netns h$i
  ip link set veth$i master br0 up
  ip -n h$i addr add 10.0.0.$i/24 dev eth0
  ip -n h$i link set eth0 up
done
ip link add ifb0 type ifb
ip link set ifb0 up
tc qdisc add dev veth1 handle ffff: ingress
tc filter add dev veth1 parent ffff: matchall action mirred egress redirect dev ifb0
tc qdisc add dev ifb0 root handle 1: tbf rate 5mbit burst 10k latency 50ms
tc qdisc add dev eth9 root sfq
ip netns exec h2 iperf3 -s &
ip netns exec h1 iperf3 -c 10.0.0.2 -t 5
kill $!
",
    );
    let shown = tidegate(&["run", script.to_str().expect("a name"), "--print", "scenario"]);
    assert!(shown.status.success(), "{shown:?}");
    let text = stdout(&shown);
    assert!(text.contains("between = [\"br0:veth1\", \"h1\"]"), "{text}");
    assert!(
        text.contains("Left out: `tc qdisc add dev eth9 root sfq`, of a device without a cable"),
        "{text}"
    );
    let file = place.file("bridge.toml", &text);
    let run = tidegate(&["sim", file.to_str().expect("a name")]);
    let row = stdout(&run).lines().find(|line| line.starts_with("script")).map(str::to_owned).expect("a row");
    assert!(row.contains(" 4.8") || row.contains(" 4.7"), "{row}");
}

/// What makes traffic is not run, and other programs need not be.
#[test]
fn programs_that_are_not_here_are_stood_in_for() {
    if skip() {
        return;
    }
    let place = Place::new("stubs");
    let script = place.script(
        "stubs.sh",
        "#!/bin/sh\nset -e\nping -c 3 192.0.2.1\nno-such-tool --now\ntc qdisc add dev eth0 root sfq\n",
    );
    let script = script.to_str().expect("a name");
    let missing = tidegate(&["check", script]);
    let said = stdout(&missing) + &String::from_utf8_lossy(&missing.stderr);
    assert!(said.contains("go on without it (--stub no-such-tool)"), "{said}");
    let gone_on = tidegate(&["check", script, "--stub", "no-such-tool"]);
    let said = stdout(&gone_on) + &String::from_utf8_lossy(&gone_on.stderr);
    assert!(gone_on.status.success(), "{said}");
    assert!(said.contains("not run: no-such-tool, ping; each of these calls printed nothing"), "{said}");
    let played = tidegate(&["check", script, "--stub", "tc"]);
    assert_eq!(played.status.code(), Some(2), "{played:?}");
}
