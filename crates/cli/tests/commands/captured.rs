//! Captures through policies: `tidegate replay --capture`, and packets written for Wireshark.

use crate::common;

use common::{Place, TIDEGATE, Unpacked, skip};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tidegate_pcap::{CaptureDirection, CapturedPacket, Interface, Next, Parser, Record, Writer, link};

/// Where captures of these tests begin, ns since 1970.
const BEGAN: u64 = 1_795_000_000_000_000_000;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn replay(words: &[&str], place: &Path) -> Output {
    Command::new(TIDEGATE).arg("replay").args(words).current_dir(place).output().expect("tidegate runs")
}

fn json(words: &[&str], place: &Path) -> Value {
    let output = replay(&[words, &["--json"]].concat(), place);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Shows each packet of a file.
fn each(file: &[u8], mut show: impl FnMut(CapturedPacket<'_>)) {
    let (mut parser, mut rest) = (Parser::new(), file);
    loop {
        match parser.next(rest).expect("a capture") {
            Next::Packet(used, packet) => {
                show(packet);
                rest = &rest[used..];
            }
            Next::Passed(used) => rest = &rest[used..],
            Next::Needs(_) => return parser.end(rest.len()).expect("it is whole"),
        }
    }
}

/// A UDP or TCP packet of IPv4, of which the front is kept, `len` bytes long.
fn ipv4(protocol: u8, ends: ([u8; 4], [u8; 4]), ports: (u16, u16), dsfield: u8, len: u16) -> Vec<u8> {
    let mut packet = vec![0x45, dsfield];
    packet.extend(len.to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, protocol, 0, 0]);
    packet.extend(ends.0);
    packet.extend(ends.1);
    packet.extend(ports.0.to_be_bytes());
    packet.extend(ports.1.to_be_bytes());
    packet.extend(if protocol == 17 { [0; 4] } else { [0, 0, 0, 1] });
    if protocol == 6 {
        packet.extend([0, 0, 0, 0, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    }
    packet.truncate(usize::from(len));
    packet
}

/// A capture of bare IP packets: when after its beginning each came, its bytes, its length.
fn capture(packets: &[(u64, Vec<u8>, u32)]) -> Vec<u8> {
    let mut writer = Writer::new("a test");
    writer.interface(Interface { name: "wan", description: "", link: link::RAW });
    for (at, bytes, length) in packets {
        writer.packet(&Record { time: BEGAN + at, bytes, length: *length, ..Record::default() });
    }
    writer.take()
}

const HOME: [u8; 4] = [192, 168, 1, 2];
const AWAY: [u8; 4] = [198, 51, 100, 7];

#[test]
fn a_line_delays_each_packet_by_those_before_it() {
    let place = Place::new("captured-line");
    // Ten packets at once, each 1,000 bytes with its Ethernet header: a millisecond on a line of 8 Mbit/s.
    let packet = ipv4(17, (HOME, AWAY), (1, 2), 0, 986);
    place.file("ten.pcapng", capture(&vec![(0, packet, 986); 10]));
    for (words, lost) in
        [(&["--rate", "8mbit", "--direct"][..], 0), (&["--rate", "8mbit", "--buffer", "3000B"], 6)]
    {
        let document = json(&[&["--capture", "ten.pcapng"], words].concat(), &place.0);
        let out = &document["policies"][0]["out"];
        let sent = 10 - lost;
        assert_eq!(out["sent"], sent, "{out}");
        assert_eq!(out["queueing_delay"]["max_ns"], (sent - 1) * 1_000_000, "{out}");
        assert_eq!(document["policies"][0]["classes"][0]["outcomes"], *out);
        let dropped = out["dropped"].as_object().expect("reasons");
        assert_eq!(dropped.values().filter_map(Value::as_i64).sum::<i64>(), lost, "{out}");
    }
}

#[test]
fn classes_are_distinguished_by_the_engines_choice() {
    if skip() {
        return;
    }
    let place = Place::new("captured-classes");
    place.script(
        "prio.sh",
        "#!/bin/sh\ntc qdisc add dev eth0 root handle 1: tbf rate 8mbit burst 1000 latency 50ms\ntc qdisc \
        add dev eth0 parent 1:1 handle 2: prio\n\
         tc filter add dev eth0 parent 2: protocol ip u32 match ip dport 53 0xffff flowid 2:1\n\
         tc filter add dev eth0 parent 2: protocol ip u32 match ip sport 9 0xffff action drop\n",
    );
    let (bulk, dns) = (ipv4(17, (HOME, AWAY), (5, 80), 0, 986), ipv4(17, (HOME, AWAY), (6, 53), 0, 986));
    let (bad, back) = (ipv4(17, (HOME, AWAY), (9, 9), 0, 986), ipv4(17, (AWAY, HOME), (80, 5), 0, 500));
    let mut packets = vec![(0, bulk, 986); 8];
    packets.extend([(1_000_000, dns, 986), (1_000_000, bad, 986), (2_000_000, back, 500)]);
    place.file("mixed.pcapng", capture(&packets));
    let words = ["--capture", "mixed.pcapng", "--policy", "prio.sh", "--write", "out.pcapng"];
    let document = json(&words, &place.0);
    let class = |id: &str| {
        let all = document["policies"][0]["classes"].as_array().expect("classes");
        all.iter().find(|class| class["id"] == id).unwrap_or_else(|| panic!("{id} in {all:?}")).clone()
    };
    assert_eq!(class("2:1")["outcomes"]["packets"], 1);
    // The second packet is being sent when it comes, so it goes third.
    assert_eq!(class("2:1")["outcomes"]["queueing_delay"]["max_ns"], 1_000_000);
    let default = document["policies"][0]["classes"].as_array().expect("classes").iter();
    let default = default.filter(|class| class["outcomes"]["packets"] == 8).count();
    assert_eq!(default, 1, "eight in one class: {document}");
    assert_eq!(document["policies"][0]["out"]["dropped"]["a filter"], 1);
    assert_eq!(document["policies"][0]["in"]["sent"], 1);

    let mut noted = Vec::new();
    let file = fs::read(place.0.join("out.pcapng")).expect("written");
    each(&file, |packet| noted.push((packet.time.expect("a time") - BEGAN, packet.direction, packet.length)));
    assert_eq!(noted.len(), 11);
    assert!(noted.is_sorted_by_key(|(time, ..)| *time), "{noted:?}");
    assert_eq!(
        noted.iter().filter(|(_, way, length)| *way == Some(CaptureDirection::In) && *length == 514).count(),
        1
    );
    let output = String::from_utf8_lossy(&file);
    for comment in ["eth0 2:1 (port 53), pfifo: ", "waited 1.00 ms, sent", "dropped: a filter"] {
        assert!(output.contains(comment), "{comment}");
    }
}

#[test]
fn recorded_arrivals_as_a_capture_leave_as_the_kernel_let_them() {
    if skip() {
        return;
    }
    let traces = Unpacked::new("traces.tar.gz");
    let names = "action-police bfifo-5000 codel codel-ecn fq_codel-ecn fq_codel-htb hfsc htb-atm \
    pfifo-limit3 tbf-1mbit tbf-atm tbf-child-pfifo tbf-stab tbf-toobig";
    for name in names.split_whitespace() {
        let dir = traces.folder(name);
        let place = Place::new(&format!("captured-{name}"));
        let rate = as_capture(&dir, &place);
        let mut words = vec![
            "--capture",
            "arrivals.pcapng",
            "--policy",
            "script.sh",
            "--dev",
            "link0",
            "--from",
            "10.0.0.0/16",
        ];
        words.extend(["--write", "left.pcapng", "--write-of", "script"]);
        if let Some(rate) = &rate {
            words.extend(["--direct", "--rate", rate]);
        }
        let output = replay(&words, &place.0);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let (ours, kernel) = (left(&place), recorded(&dir));
        let differs = ours.iter().zip(&kernel).find(|(ours, kernel)| ours != kernel);
        assert!(
            differs.is_none() && ours.len() == kernel.len(),
            "{name}: {} and {}, {differs:?}",
            ours.len(),
            kernel.len()
        );
    }
    let count = names.split_whitespace().count();
    println!(
        "fidelity: captures | departure or drop of each packet of a capture, sent through a policy | exact | \
        {count} recordings, read as captures, identical"
    );
}

/// Writes a recording's schedule as a capture and its script for a shell; gives the rate of the link, if it
/// has one.
fn as_capture(dir: &Path, place: &Place) -> Option<String> {
    let script = fs::read_to_string(dir.join("script.tc")).expect("a script");
    place.script("script.sh", format!("#!/bin/sh\n{script}"));
    let schedule = fs::read_to_string(dir.join("schedule.csv")).expect("a schedule");
    let packets = schedule.lines().skip(1).map(|row| {
        let fields: Vec<&str> = row.split(',').collect();
        let number = |at: usize| fields[at].parse::<u32>().unwrap_or_else(|_| panic!("{row}"));
        let address = |at: usize| fields[at].parse::<std::net::Ipv4Addr>().expect("an address").octets();
        let protocol = if fields[5] == "tcp" { 6 } else { 17 };
        let len = number(2) - 14;
        let ports = (number(6) as u16, number(7) as u16);
        let packet = ipv4(protocol, (address(3), address(4)), ports, number(8) as u8, len as u16);
        (fields[0].parse::<u64>().expect("a time"), packet, len)
    });
    // Something that comes in at the recording's zero: some disciplines count time in units of more than a
    // nanosecond.
    let first = (0, ipv4(17, ([10, 9, 0, 1], [10, 0, 0, 1]), (1, 2), 0, 60), 60);
    place.file("arrivals.pcapng", capture(&std::iter::once(first).chain(packets).collect::<Vec<_>>()));
    let link = fs::read_to_string(dir.join("link")).expect("a link");
    let rate: u64 = link.split_whitespace().next().and_then(|rate| rate.parse().ok()).expect("a rate");
    (rate > 0).then(|| format!("{rate}bit"))
}

/// When packets left or were lost, in the order of time, each with its length.
fn left(place: &Place) -> Vec<(u64, u32)> {
    let file = fs::read(place.0.join("left.pcapng")).expect("written");
    let mut all = Vec::new();
    each(&file, |packet| {
        if packet.direction == Some(CaptureDirection::Out) {
            all.push((packet.time.expect("a time") - BEGAN, packet.length));
        }
    });
    all.sort_unstable();
    all
}

/// The delays of the recording.
fn recorded(dir: &Path) -> Vec<(u64, u32)> {
    let mut all = Vec::new();
    for name in ["egress.csv", "drops.csv"] {
        let text = fs::read_to_string(dir.join(name)).unwrap_or_default();
        for row in text.lines().skip(1) {
            let fields: Vec<&str> = row.split(',').collect();
            all.push((fields[0].parse().expect("a time"), fields[2].parse().expect("a length")));
        }
    }
    all.sort_unstable();
    all
}

#[test]
fn super_packets_are_split_and_what_cannot_be_read_is_counted() {
    let place = Place::new("captured-split");
    // What a machine gave its card: 4,344 bytes of payload, of a connection that agreed on 1,400.
    let mut syn = ipv4(6, (AWAY, HOME), (80, 5), 0, 44);
    syn[32] = 0x60;
    syn[33] = 0x02;
    syn.extend([2, 4, 0x05, 0x78]);
    let large = ipv4(6, (HOME, AWAY), (5, 80), 0, 4384);
    let v6 =
        [&[0x60, 0, 0, 0, 0, 8, 17, 64][..], &[0xfd; 16], &[0x20; 16], &[0, 1, 0, 2, 0, 8, 0, 0]].concat();
    let packets = [
        (0, syn, 44),
        (1_000_000, large, 4384),
        (2_000_000, vec![0x45, 0, 0, 60], 60),
        (3_000_000, vec![0x15; 40], 40),
        (4_000_000, v6, 48),
        (3_500_000, ipv4(17, (HOME, AWAY), (1, 2), 0, 60), 60),
        (5_000_000, ipv4(17, (AWAY, [203, 0, 113, 9]), (1, 2), 0, 60), 60),
        // Two years later: someone set a clock.
        (63_072_000_000_000_000, ipv4(17, (HOME, AWAY), (1, 2), 0, 60), 60),
    ];
    place.file("odd.pcapng", capture(&packets));
    let document = json(
        &[
            "--capture",
            "odd.pcapng",
            "--rate",
            "8mbit",
            "--direct",
            "--from",
            "192.168.0.0/16",
            "--from",
            "fd00::/8",
        ],
        &place.0,
    );
    let capture = &document["capture"];
    assert_eq!(capture["split"]["packets"], 1, "{capture}");
    assert_eq!(capture["split"]["into"], 4, "{capture}");
    assert_eq!(capture["out"]["packets"], 6, "{capture}");
    // Each of the four has headers of its own.
    assert_eq!(capture["out"]["bytes"], 4384 + 3 * 40 + 4 * 14 + 74 + 62, "{capture}");
    let left_out: Vec<&Value> = capture["left_out"].as_object().expect("reasons").values().collect();
    assert_eq!(left_out.len(), 4, "{capture}");
    assert_eq!(capture["duration_ns"], 5_000_000, "{capture}");
    assert!(
        document["notes"].to_string().contains("1 packets are behind later ones"),
        "{}",
        document["notes"]
    );
}

#[test]
fn damaged_files_give_what_came_before_and_name_the_place() {
    let place = Place::new("captured-damage");
    let packet = ipv4(17, (HOME, AWAY), (1, 2), 0, 60);
    let whole = capture(&[(0, packet.clone(), 60), (1_000_000, packet, 60)]);
    let words = |name| ["--capture", name, "--rate", "8mbit"];
    place.file("cut.pcapng", &whole[..whole.len() - 3]);
    let document = json(&words("cut.pcapng"), &place.0);
    assert_eq!(document["capture"]["out"]["packets"], 1);
    let broken = document["capture"]["broken"].as_str().expect("it says so");
    assert!(
        broken.starts_with("block 4, at byte ") && broken.ends_with("the 1 packets before it are used"),
        "{broken}"
    );

    for (name, bytes, text) in [
        (
            "script.pcap",
            &b"tc qdisc add dev eth0 root fq_codel"[..],
            "is not a recording, neither pcap nor pcapng; write one with",
        ),
        ("empty.pcap", b"", "is not a recording"),
        ("header.pcapng", &whole[..40], "the file ends after"),
    ] {
        place.file(name, bytes);
        let output = replay(&words(name), &place.0);
        assert_eq!(output.status.code(), Some(2), "{name}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(text) && stderr.contains(name), "{name}: {stderr}");
    }
    for wrong in [&["--capture", "none.pcap", "--rate", "1mbit"][..], &["--capture", "cut.pcapng"]] {
        assert_eq!(replay(wrong, &place.0).status.code(), Some(2), "{wrong:?}");
    }
    for wrong in [
        &["--policy", "x.sh"][..],
        &["--capture", "cut.pcapng", "--buffer", "3k"],
        &[],
        &["--rate", "1mbit", "dir"],
    ] {
        assert_eq!(replay(wrong, &place.0).status.code(), Some(2), "{wrong:?}");
    }
}

#[test]
fn the_same_command_prints_the_same_bytes() {
    if skip() {
        return;
    }
    let words = [
        "--capture",
        "examples/evening.pcap",
        "--policy",
        "examples/home-gateway.sh",
        "--rate",
        "2mbit",
        "--json",
    ];
    let (first, second) = (replay(&words, &root()), replay(&words, &root()));
    assert!(first.status.success() && first.stdout == second.stdout);
    let closed = [&words[..6], &["--closed", "--down", "20mbit", "--json"]].concat();
    let (first, second) = (replay(&closed, &root()), replay(&closed, &root()));
    assert!(
        first.status.success() && first.stdout == second.stdout,
        "{}",
        String::from_utf8_lossy(&first.stderr)
    );
    let document: Value = serde_json::from_slice(&first.stdout).expect("JSON");
    let runs = document["runs"].as_array().expect("runs");
    assert_eq!(runs.len(), 2);
    for run in runs {
        let done = run["transfers"]
            .as_array()
            .expect("transfers")
            .iter()
            .filter(|one| one["finished"].is_u64())
            .count();
        assert_eq!(done, 5, "every connection ends under {}", run["policy"]);
    }
    assert!(document["notes"].to_string().contains("modelled"));
}

#[test]
fn packets_of_a_simulation_are_written_with_what_happened_to_them() {
    let place = Place::new("captured-sim");
    let file = place.0.join("out.pcapng");
    let sim = |more: &[&str]| {
        let mut command = Command::new(TIDEGATE);
        command.arg("sim").arg(root().join("examples/uplink.toml")).args([
            "--policy",
            "fair",
            "--duration",
            "3s",
        ]);
        command.args(more).current_dir(&place.0).output().expect("tidegate runs")
    };
    let words = |what: String| sim(&["-o", "result.json", "--pcapng", &what]);
    let output = words(format!("{}:gateway/eth1", file.display()));
    // Watching changes nothing.
    assert!(sim(&["-o", "unwatched.json"]).status.success());
    let result = |name: &str| fs::read(place.0.join(name)).expect("written");
    assert!(result("result.json") == result("unwatched.json"), "the same result with and without");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let bytes = fs::read(&file).expect("written");
    let (mut packets, mut latest) = (0, 0);
    each(&bytes, |packet| {
        packets += 1;
        assert!(packet.time >= Some(latest), "in the order of time");
        latest = packet.time.unwrap_or_default();
    });
    let result: Value =
        serde_json::from_slice(&fs::read(place.0.join("result.json")).expect("written")).expect("JSON");
    let classes = result["runs"][0]["classes"].as_array().expect("classes");
    let class = classes.iter().find(|class| class["id"] == "gateway:eth1 1:").expect("the root");
    let sum =
        |name: &str| class[name].as_array().expect("a series").iter().filter_map(Value::as_u64).sum::<u64>();
    // What left in the seconds after the window is in the file, and not in the series.
    assert!(packets >= sum("packets") + sum("dropped"), "{packets} packets, {} in the class", sum("packets"));
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains("gateway:eth1 8001:, flow ") && text.contains("ms, sent"));

    let wrong = words(format!("{}:gateway/eth9", file.display()));
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("no machine has the device"));
    let several = Command::new(TIDEGATE)
        .arg("sim")
        .arg(root().join("examples/uplink.toml"))
        .args(["--pcapng", "x"])
        .output();
    assert_eq!(several.expect("tidegate runs").status.code(), Some(2));
}

#[test]
fn wireshark_reads_the_options() {
    if skip() {
        return;
    }
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("SKIPPED: there is no tshark here");
        return;
    }
    let place = Place::new("captured-tshark");
    let packet = ipv4(17, (HOME, AWAY), (1, 53), 0, 986);
    place.file("two.pcapng", capture(&vec![(0, packet, 986); 3]));
    place.script(
        "tbf.sh",
        "#!/bin/sh\ntc qdisc add dev eth0 root handle 7: tbf rate 8mbit burst 1000 limit 1000\n",
    );
    let output =
        replay(&["--capture", "two.pcapng", "--policy", "tbf.sh", "--write", "out.pcapng"], &place.0);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let fields = [
        "frame.interface_name",
        "frame.packet_flags_direction",
        "frame.drop_count",
        "frame.verdict.ebpf_tc",
        "frame.comment",
    ];
    let mut command = Command::new("tshark");
    command.args(["-r", "out.pcapng", "-T", "fields"]).current_dir(&place.0);
    for field in fields {
        command.args(["-e", field]);
    }
    let shown = String::from_utf8_lossy(&command.output().expect("tshark runs").stdout).into_owned();
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 3, "{shown}");
    assert!(lines.iter().all(|line| line.starts_with("eth0\t0x00000002\t")), "{shown}");
    assert!(lines[0].contains("\t0\t0\t") || lines[0].contains("\t2\t"), "{shown}");
    assert!(lines.iter().any(|line| line.contains("dropped: ") && line.contains("\t2\t")), "{shown}");
    assert!(
        lines.iter().any(|line| line.contains("waited 1.00 ms, sent") && line.contains("\t1\t0\t")),
        "{shown}"
    );
}

#[test]
fn devices_on_devices_and_an_ifb_on_the_way_in() {
    if skip() {
        return;
    }
    let classes = |words: &[&str]| {
        let document = json(&[&["--capture", "examples/evening.pcap"], words].concat(), &root());
        let policy = document["policies"].as_array().and_then(|all| all.last()).expect("a policy").clone();
        let all = policy["classes"].as_array().expect("classes").iter();
        all.map(|class| {
            format!("{} {} {}", class["device"], class["id"], class["direction"]).replace('"', "")
        })
        .collect::<Vec<_>>()
    };
    let stacked = classes(&["--policy", "examples/pppoe.sh", "--over", "ppp0=eth2"]);
    assert_eq!(stacked, ["ppp0 1:10 out", "ppp0 1:20 out", "lan0 root in"]);
    let both = classes(&["--policy", "examples/both-ways.sh eth0 1500 20000", "--rate", "1600kbit"]);
    assert_eq!(both, ["eth0 8002: out", "ifb4eth0 8003: in"]);
}
