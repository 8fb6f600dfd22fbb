//! `tidegate loss`: over a line that drops by a pattern, and from captures.

mod common;

use common::{Place, TIDEGATE, skip};
use std::net::UdpSocket;
use std::process::{Command, Output};
use std::time::Duration;

fn tidegate(words: &[&str]) -> Output {
    Command::new(TIDEGATE).args(words).env_remove("TIDEGATE_TOKEN").output().expect("tidegate runs")
}

fn json(output: &Output) -> serde_json::Value {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    common::schemas::document(&output.stdout)
}

#[test]
fn what_a_line_loses_each_way_is_found_with_its_bursts() {
    if skip() {
        return;
    }
    let far = format!("{TIDEGATE} serve --open --quiet");
    let words = [
        "shell",
        "--up",
        "5mbit",
        "--down",
        "20mbit",
        "--up-line",
        "loss = {pattern = \"...........xx\"}",
        "--far",
        &far,
        "--",
        TIDEGATE,
        "loss",
        "server",
        "-i",
        "5ms",
        "-c",
        "520",
        "--json",
    ];
    let lost = json(&tidegate(&words));
    let [up, down] = [&lost["directions"][0], &lost["directions"][1]];
    assert_eq!(
        (up["sent"].as_u64(), down["sent"].as_u64(), down["lost"].as_u64()),
        (Some(520), Some(520), Some(0))
    );
    // Two of thirteen packets; what else goes up (TCP's) has its part of them.
    let count = up["lost"].as_u64().unwrap_or(0);
    assert!((70..=82).contains(&count), "{lost}");
    let bursts: Vec<u64> =
        up["bursts"].as_array().into_iter().flatten().filter_map(serde_json::Value::as_u64).collect();
    assert!(bursts.iter().all(|burst| (1..=2).contains(burst)), "{bursts:?}");
    assert!(bursts.iter().filter(|burst| **burst == 2).count() > 25, "{bursts:?}");
    let within = |n: usize| up["share_within_95"][n].as_f64().unwrap_or(f64::NAN);
    assert!(within(0) < 2.0 / 13.0 && 2.0 / 13.0 < within(1), "{lost}");
}

#[test]
fn packets_sent_blindly_are_counted_in_what_the_far_side_captured() {
    let far = UdpSocket::bind("127.0.0.1:0").expect("a port");
    far.set_read_timeout(Some(Duration::from_secs(10))).expect("it may wait");
    let port = far.local_addr().expect("it has one").port().to_string();
    let output = tidegate(&["loss", "127.0.0.1", "--blind", "--port", &port, "-c", "20", "-i", "1ms"]);
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("20 packets were sent"));
    let mut packets = Vec::new();
    let mut packet = [0; 2000];
    for _ in 0..20 {
        let bytes = far.recv(&mut packet).expect("it was sent");
        packets.push(packet[..bytes].to_vec());
    }
    // 3 and 4 and 19 are lost on the way to the capture, 7 comes twice.
    let kept = packets.iter().enumerate().filter(|(n, _)| ![3, 4, 19].contains(n)).map(|(_, packet)| packet);
    let place = Place::new("loss-blind");
    let path = place.file("far.pcap", capture(kept.chain([&packets[7]])));
    let path = path.to_str().expect("text");
    let way = json(&tidegate(&["loss", "--received", path, "-c", "20", "--json"]))["directions"][0].clone();
    let found =
        (way["sent"].as_u64(), way["lost"].as_u64(), way["bursts"].clone(), way["duplicates"].as_u64());
    assert_eq!(found, (Some(20), Some(3), serde_json::json!([2, 1]), Some(1)));
    // Without -c the last that came is taken for the last that was sent.
    let way = json(&tidegate(&["loss", "--received", path, "--json"]))["directions"][0].clone();
    assert_eq!((way["sent"].as_u64(), way["lost"].as_u64()), (Some(19), Some(2)));
}

/// A pcap of IPv4 packets (link type RAW) that carry these payloads by UDP.
fn capture<'p>(payloads: impl Iterator<Item = &'p Vec<u8>>) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 65535, 101] {
        file.extend_from_slice(&word.to_be_bytes());
    }
    for (n, payload) in payloads.enumerate() {
        let length = 28 + payload.len() as u16;
        for word in [n as u32, 0, length.into(), length.into()] {
            file.extend_from_slice(&word.to_be_bytes());
        }
        let [high, low] = length.to_be_bytes();
        file.extend_from_slice(&[
            0x45, 0, high, low, 0, n as u8, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2,
        ]);
        let [high, low] = (length - 20).to_be_bytes();
        file.extend_from_slice(&[0x10, 0, 0x22, 0x53, high, low, 0, 0]);
        file.extend_from_slice(payload);
    }
    file
}

#[test]
fn captures_without_enough_data_are_reported() {
    let place = Place::new("loss-captures");
    let printed =
        place.file("tmp.file", "12:00:00.1 IP 192.0.2.1.2013 > 192.0.2.2.8787: UDP, length 0\n".repeat(97));
    let nonsense = place.file("nonsense", "nothing of the kind\n");
    let [printed, nonsense] = [&printed, &nonsense].map(|path| path.to_str().expect("text"));
    let way =
        json(&tidegate(&["loss", "--received", printed, "-c", "100", "--json"]))["directions"][0].clone();
    assert_eq!((way["lost"].as_u64(), &way["bursts"]), (Some(3), &serde_json::Value::Null));
    let cases: [(&[&str], &str); 3] = [
        (&["--received", printed], "how many were sent?"),
        (&["--received", nonsense, "-c", "5"], "neither a capture nor"),
        (&["no-such-host.invalid"], "no address is known"),
    ];
    for (words, expected) in cases {
        let output = tidegate(&[&["loss"], words].concat());
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains(expected), "{words:?}: {stderr}");
    }
}
