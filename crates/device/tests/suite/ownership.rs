//! Each packet that is taken ends once, copies included; the link's time; marks.

use crate::{LINK, device, packet};
use std::collections::BTreeMap;
use tidegate_device::{
    DropCause, EgressConfig, EgressDevice, Handle, OfferedPacket, PacketFields, Time, XmitStatus,
};

/// How often each packet was sent, and by which causes dropped; fails where a report follows the last.
#[derive(Default)]
struct Ends(BTreeMap<u64, (Vec<DropCause>, u32, bool)>);

impl Ends {
    fn note(&mut self, id: u64, last: bool, cause: Option<DropCause>) {
        let (drops, sent, over) = self.0.entry(id).or_default();
        assert!(!*over, "packet {id} is reported after its last: {drops:?} {sent} {cause:?}");
        *over = last;
        match cause {
            Some(cause) => drops.push(cause),
            None => *sent += 1,
        }
    }

    fn read_drops(&mut self, device: &mut EgressDevice) {
        while let Some(drop) = device.next_drop() {
            self.note(drop.id, drop.last, Some(drop.cause));
        }
    }

    /// Polls until `end`.
    fn run(&mut self, device: &mut EgressDevice, end: Time) {
        while let Some(now) = device.next_time().filter(|now| *now <= end) {
            while let Some(sent) = device.poll(now).expect("in time") {
                self.note(sent.id, sent.last, None);
            }
            self.read_drops(device);
        }
    }
}

#[test]
fn every_packet_ends_once_whatever_the_qdisc() {
    let commands = [
        "",
        "qdisc add dev eth0 root fq_codel limit 20 ecn",
        "qdisc add dev eth0 root cake bandwidth 5mbit",
        "qdisc add dev eth0 root handle 1: dualpi2",
        "qdisc add dev eth0 root sfq perturb 1 depth 4",
        "qdisc add dev eth0 root netem delay 3ms 2ms duplicate 50% loss 10% reorder 20% gap 3",
        "qdisc add dev eth0 root handle 1: netem duplicate 100%\nqdisc add dev eth0 parent 1: fq_codel limit 5",
        "qdisc add dev eth0 root handle 1: tbf rate 2mbit burst 5k latency 20ms\nqdisc add dev eth0 parent 1: codel",
        "qdisc add dev eth0 root handle 1: htb default 1\n\
        class add dev eth0 parent 1: classid 1:1 htb rate 2mbit\nqdisc add dev eth0 parent 1:1 fq_pie",
        "qdisc add dev eth0 root handle 1: hfsc default 1\n\
        class add dev eth0 parent 1: classid 1:1 hfsc sc rate 2mbit\nqdisc add dev eth0 parent 1:1 pie ecn",
        "qdisc add dev eth0 root handle 1: prio\nfilter add dev eth0 parent 1: protocol ip matchall \
        action police rate 1mbit burst 5k drop",
    ];
    for commands in commands {
        let mut device = device(commands);
        let mut ends = Ends::default();
        for id in 0..300_u64 {
            let now = Time(id * 500_000);
            ends.run(&mut device, now);
            let offered = device.offer(now, &packet(id, (id % 7) as u16, 200 + (id % 13) as u32 * 100));
            assert!(offered.is_ok(), "{offered:?}");
            ends.read_drops(&mut device);
        }
        ends.run(&mut device, Time(5_000_000_000));
        let stats = device.stats();
        let over = ends.0.values().filter(|(.., over)| *over).count();
        assert_eq!((over, stats.waiting, stats.offered), (300, 0, 300), "{commands}");
        let sent: u32 = ends.0.values().map(|(_, sent, _)| sent).sum();
        let drops: usize = ends.0.values().map(|(drops, ..)| drops.len()).sum();
        assert_eq!((u64::from(sent), drops as u64), (stats.sent, stats.dropped), "{commands}");
        assert_eq!(stats.offered + stats.copied, stats.sent + stats.dropped, "{commands}");
    }
}

#[test]
fn the_last_copy_says_so() {
    let mut device = device("qdisc add dev eth0 root netem duplicate 100%");
    assert_eq!(device.offer(Time(0), &packet(9, 1, 1250)), Ok(XmitStatus::Queued));
    let mut seen = Vec::new();
    while let Some(now) = device.next_time() {
        seen.extend(device.poll(now).expect("in time").map(|sent| (sent.id, sent.last, sent.finished)));
    }
    assert_eq!(seen, [(9, false, Time(1_000_000)), (9, true, Time(2_000_000))]);
}

#[test]
fn what_a_command_takes_away_is_reported_as_purged() {
    let mut device = device("qdisc add dev eth0 root handle 1: pfifo");
    for id in 0..3 {
        assert!(device.offer(Time(0), &packet(id, 1, 1000)).is_ok());
    }
    device.tc(Time(7), "qdisc del dev eth0 root").expect("it is there");
    let drops: Vec<_> = std::iter::from_fn(|| device.next_drop()).collect();
    let seen: Vec<_> = drops.iter().map(|drop| (drop.id, drop.cause, drop.dropped, drop.last)).collect();
    let purged = |id| (id, DropCause::Purged, Time(7), true);
    assert_eq!(seen, [purged(0), purged(1), purged(2)]);
    assert_eq!((drops[0].qdisc, drops[0].length, drops[0].offered), (Handle::new(1, 0), 1000, Time(0)));
}

#[test]
fn causes_of_drops() {
    let last = |commands: &str, packets: &[u32]| {
        let mut device = device(commands);
        for (id, length) in (0..).zip(packets) {
            let _ = device.offer(Time(0), &packet(id, 1, *length)).expect("it is taken");
        }
        device.next_drop().map(|drop| (drop.id, drop.cause.name()))
    };
    assert_eq!(last("qdisc add dev eth0 root pfifo limit 1", &[100, 100]), Some((1, "full")));
    assert_eq!(last("qdisc add dev eth0 root pfifo_head_drop limit 1", &[100, 100]), Some((0, "overflow")));
    let drr = "qdisc add dev eth0 root handle 1: drr";
    assert_eq!(last(drr, &[100]), Some((0, "filter")));
    let tbf = "qdisc add dev eth0 root tbf rate 1mbit burst 1k limit 10k";
    assert_eq!(last(tbf, &[1500]), Some((0, "too_long")));
}

#[test]
fn a_link_without_a_rate_takes_what_is_ready() {
    let mut device = EgressDevice::new(&EgressConfig::default(), "").expect("a device");
    for id in 0..2 {
        assert!(device.offer(Time(3), &packet(id, 1, 1500)).is_ok());
    }
    assert_eq!(device.next_time(), Some(Time(3)));
    let sent: Vec<_> = std::iter::from_fn(|| device.poll(Time(8)).expect("in time")).collect();
    let seen: Vec<_> = sent.iter().map(|sent| (sent.id, sent.offered, sent.finished)).collect();
    assert_eq!(seen, [(0, Time(3), Time(8)), (1, Time(3), Time(8))]);
    assert_eq!(device.next_time(), None);
}

#[test]
fn fractions_of_a_nanosecond_add_up() {
    let config = EgressConfig { rate: Some(3_000_000_000), ..EgressConfig::default() };
    let mut device = EgressDevice::new(&config, "").expect("a device");
    let mut finished = Time(0);
    for id in 0..300 {
        assert!(device.offer(Time(0), &packet(id, 1, 100)).is_ok());
    }
    while let Some(now) = device.next_time() {
        if let Some(sent) = device.poll(now).expect("in time") {
            finished = sent.finished;
        }
    }
    // 300 packets of 266.67 ns.
    assert_eq!(finished, Time(80_000));
}

#[test]
fn marks_are_in_the_header_with_its_checksum() {
    let mut device = device("qdisc add dev eth0 root codel ecn target 1ms interval 5ms");
    let (mut marked, mut first) = (0, Vec::new());
    for id in 0..200_u64 {
        assert!(device.offer(Time(id), &packet(id, 1, 1250)).is_ok());
    }
    while let Some(now) = device.next_time() {
        let Some(sent) = device.poll(now).expect("in time") else { continue };
        assert_eq!(sent.header()[15] & 3, sent.dsfield & 3);
        if sent.marked {
            marked += 1;
            first = sent.header().to_vec();
        }
    }
    assert!(marked > 10, "{marked}");
    assert_eq!(device.stats().marked, marked);
    // RFC 1071: a right header sums to ffff.
    let sum: u32 = first[14..34].chunks(2).map(|two| u32::from(u16::from_be_bytes([two[0], two[1]]))).sum();
    assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
}

#[test]
fn devices_without_ethernet_take_ip_packets() {
    let config = EgressConfig { ethernet: false, name: "ppp0".into(), ..EgressConfig::default() };
    let mut device = EgressDevice::new(&config, "qdisc add dev ppp0 root fq_codel").expect("a device");
    let fields = PacketFields::udp(([192, 0, 2, 1], 5).into(), ([192, 0, 2, 2], 6).into());
    assert!(device.offer(Time(0), &OfferedPacket::from_fields(1, fields, 100)).is_ok());
    let sent = device.poll(Time(0)).expect("in time").expect("it waits");
    assert_eq!((sent.length, &sent.header()[..4]), (100, &[0x45, 0, 0, 100][..]));
    // The same bytes again.
    let bytes = sent.header().to_vec();
    assert!(device.offer(Time(1), &OfferedPacket::from_bytes(2, &bytes, 100)).is_ok());
    let again = device.poll(Time(1)).expect("in time").expect("it waits");
    assert_eq!(again.header(), bytes);
    let refused =
        device.offer(Time(2), &OfferedPacket::from_bytes(3, &[0x55; 20], 20)).map_err(|e| e.to_string());
    assert_eq!(refused, Err("packet: IP version 5; only 4 and 6 are known".to_owned()));
}

#[test]
fn a_device_may_end_with_packets_in_it() {
    for commands in [
        "qdisc add dev eth0 root handle 1: tbf rate 8kbit burst 2k latency 10s\nqdisc add dev eth0 parent 1: codel",
        "qdisc add dev eth0 root handle 1: hfsc default 1\n\
        class add dev eth0 parent 1: classid 1:1 hfsc sc rate 8kbit\nqdisc add dev eth0 parent 1:1 fq_codel",
        "qdisc add dev eth0 root handle 1: qfq\nclass add dev eth0 parent 1: classid 1:1 qfq weight 1\n\
        filter add dev eth0 parent 1: matchall classid 1:1\nqdisc add dev eth0 parent 1:1 fq_codel",
    ] {
        let mut device = device(commands);
        for id in 0..20 {
            let _ = device.offer(Time(0), &packet(id, 1, 1500)).expect("it is taken");
        }
        for now in 0..3 {
            let _ = device.poll(Time(now * 10_000_000)).expect("in time");
        }
        assert!(device.stats().waiting > 0, "{commands}");
        drop(device);
    }
}

#[test]
fn the_link_is_busy_as_long_as_a_packet_takes() {
    let mut device = device("");
    for id in 0..2 {
        assert!(device.offer(Time(0), &packet(id, 1, 1250)).is_ok());
    }
    let times = 1250 * 8 * 1_000_000_000 / LINK;
    assert_eq!(device.poll(Time(0)).expect("in time").map(|sent| sent.finished), Some(Time(times)));
    assert!(device.poll(Time(times - 1)).expect("in time").is_none());
    assert_eq!(device.next_time(), Some(Time(times)));
    assert_eq!(device.poll(Time(times)).expect("in time").map(|sent| sent.id), Some(1));
}
