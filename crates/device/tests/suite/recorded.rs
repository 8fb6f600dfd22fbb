//! Recorded runs of a real kernel (those without random draws): packets leave at the same nanosecond.

use std::fmt::Write as _;
use tidegate_device::{EgressConfig, EgressDevice, OfferedPacket, Time};
use tidegate_recording::{DRAIN, Recording, RowKind, SCRIPT_AT, Texts, at, ns};

/// The packets that leave, as in a recording's `egress.csv`, until `end`.
fn leave(device: &mut EgressDevice, end: Time, into: &mut String) {
    while let Some(now) = device.next_time().filter(|now| *now <= end) {
        while let Some(sent) = device.poll(now).expect("in time") {
            let _ = writeln!(into, "{},{},{},{}", ns(now), sent.id, sent.length, sent.dsfield);
        }
        while device.next_drop().is_some() {}
    }
}

/// The files of a recording.
struct Files {
    name: &'static str,
    link: &'static str,
    script: &'static str,
    schedule: &'static str,
    egress: &'static str,
}

macro_rules! files {
    ($($name:literal),*) => { [$(Files {
        name: $name,
        link: include_str!(concat!("../../../../docs/disciplines/experiments/", $name, "/link")),
        script: include_str!(concat!("../../../../docs/disciplines/experiments/", $name, "/script.tc")),
        schedule: include_str!(concat!("../../../../docs/disciplines/experiments/", $name, "/schedule.csv")),
        egress: include_str!(concat!("../../../../docs/disciplines/experiments/", $name, "/egress.csv")),
    }),*] };
}

const RECORDINGS: [Files; 10] = files![
    "htb-inner-filter",
    "htb-no-parent",
    "htb-parent",
    "htb-sum-of-rates",
    "htb-tokens",
    "pfifo_fast-bands",
    "tbf-83-packets",
    "tbf-atm",
    "tbf-latency",
    "tbf-peakrate"
];

#[test]
fn packets_leave_as_recorded() {
    for Files { name, link, script, schedule, egress: wanted } in &RECORDINGS {
        let texts = Texts { link, schedule, random: None, has_frames: false, linux: None };
        let recording = Recording::parse(&texts, 1).expect("a recording");
        let config = EgressConfig {
            name: "link0".into(),
            rate: Some(recording.link.rate).filter(|rate| *rate > 0),
            mtu: recording.link.mtu,
            tx_queue_len: recording.link.tx_queue_len,
            hz: 1000,
            start: at(SCRIPT_AT),
            ..EgressConfig::default()
        };
        // Listings that went to a file are not a device's.
        let script: String = script.split_inclusive('\n').filter(|line| !line.contains("snap.txt")).collect();
        let mut device = EgressDevice::new(&config, &script).expect("its commands");
        let mut egress = String::from("time_ns,id,len,dsfield\n");
        for row in &recording.rows {
            let now = at(row.time);
            leave(&mut device, now, &mut egress);
            if let RowKind::Packet(arrival) = &row.what {
                let (meta, bytes) = (&arrival.meta, arrival.head.frame());
                let mut packet = OfferedPacket::from_bytes(u64::from(meta.ident), bytes, meta.frame_len);
                (packet.mark, packet.priority) = (meta.mark.0, meta.priority);
                let _ = device.offer(now, &packet).expect("it is taken");
                leave(&mut device, now, &mut egress);
            }
        }
        let end = recording.rows.last().map_or(0, |row| row.time) + DRAIN;
        leave(&mut device, at(end), &mut egress);
        assert_eq!(egress, *wanted, "{name}");
    }
}
