//! The capturing backend.

use std::io;
use std::sync::mpsc;

use tidegate_dataplane::packet_io::capture::{AttachMethod, CaptureIo};
use tidegate_dataplane::packet_io::{AttachPoint, TrafficDirection};
use tidegate_sys::namespace_thread::{self, NamespaceThread};
use tidegate_sys::netlink::Links;
use tidegate_sys::offload::Offload;
use tidegate_sys::packet_socket::{OutgoingFrame, Sender};
use tidegate_sys::tap::{Carries, Tap};
use tidegate_sys::tun::{Tun, WIRE_ADDRESS};

use crate::child;
use crate::hosts::{self, ping, transfer};
use crate::wire::{self, ADDRESSES, ADDRESSES_V6, FrameOutcome, WIRE, Wire, address};

const NO_MORE: u16 = 3;

fn spot(direction: TrafficDirection) -> AttachPoint {
    AttachPoint { dev: WIRE.into(), direction }
}

pub(crate) fn both() -> Vec<AttachPoint> {
    [TrafficDirection::Egress, TrafficDirection::Ingress].map(spot).to_vec()
}

/// Sends a frame by a device of a place, as someone there would.
fn send(place: &NamespaceThread, device: &str, bytes: Vec<u8>, mark: u32) {
    let device = device.to_owned();
    let sent = place.go(move || -> io::Result<()> {
        let sender = Sender::open(Links::open()?.index(&device)?, false)?;
        let frame =
            OutgoingFrame { offload: Offload::default(), pieces: [&bytes, &[], &[]], mark, protocol: 0 };
        sender.send(&mut std::iter::once(frame), &mut |_| {})
    });
    sent.expect("the place is there").expect("frames can be sent");
}

/// A broadcast of no known protocol (EtherType 88b5 is for experiments), behind these tags.
fn broadcast(tags: &[u8], bytes: &[u8]) -> Vec<u8> {
    [&[0xff; 6][..], &[2, 0, 0, 0, 0, 9], tags, &[0x88, 0xb5], bytes].concat()
}

/// The links of a place, in order.
fn links(place: &NamespaceThread) -> Vec<String> {
    let names = || (1..100).filter_map(|index| Links::open().ok()?.name(index).ok()).collect();
    place.go(names).expect("the place is there")
}

#[test]
fn everything_passes_both_ways() {
    for way in [AttachMethod::Link, AttachMethod::Filter] {
        let Some(wire) = Wire::lay() else { return };
        let (tell, receiver) = mpsc::channel();
        let keeper = wire.keep(
            move || CaptureIo::by(way, &both()),
            move |came| {
                let kind = u16::from_be_bytes([came.frame[12], came.frame[13]]);
                let _ = tell.send((came.place, kind, came.segments, came.len));
                FrameOutcome::Pass
            },
        );
        for addresses in [ADDRESSES, ADDRESSES_V6] {
            assert_eq!(ping(&wire.remote, address(addresses[1]), NO_MORE, 56), Some(1), "{way:?}");
            assert_eq!(ping(&wire.near, address(addresses[0]), NO_MORE, 1400), Some(1), "{way:?}");
            transfer(&wire.near, &wire.remote, address(addresses[0]), 3_000_000);
            transfer(&wire.remote, &wire.near, address(addresses[1]), 3_000_000);
        }
        let counts = keeper.end().expect("the door stands");
        let seen: Vec<_> = receiver.try_iter().collect();
        for place in 0..2 {
            for kind in [0x0806, 0x0800, 0x86dd] {
                assert!(
                    seen.iter().any(|seen| (seen.0, seen.1) == (place, kind)),
                    "{way:?}: {kind:x} at {place}"
                );
            }
            let super_packet =
                seen.iter().filter(|seen| seen.0 == place).any(|seen| seen.2 > 1 && seen.3 > 1514);
            assert!(super_packet, "{way:?}: super-packets stay whole at {place}");
        }
        assert_eq!(
            (counts.dropped, counts.full, counts.overruns, counts.malformed, counts.held),
            (0, 0, 0, 0, 0)
        );
        assert_eq!(counts.received, counts.passed);
    }
}

#[test]
fn nothing_is_left_behind() {
    for way in [AttachMethod::Link, AttachMethod::Filter] {
        let Some(wire) = Wire::lay() else { return };
        let before = links(&wire.near);
        let keeper = wire.keep(move || CaptureIo::by(way, &both()), |_| FrameOutcome::Pass);
        assert_eq!(links(&wire.near).len(), before.len() + 3, "two ways in, and one back");
        keeper.end().expect("the door stands");
        assert_eq!(links(&wire.near), before);
        assert_eq!(wire.near.go(qdiscs_of_traffic_control).expect("place"), 0, "{way:?}");
        assert_eq!(ping(&wire.remote, address(ADDRESSES[1]), NO_MORE, 56), Some(1), "{way:?}");
    }
}

/// How many clsact there are.
fn qdiscs_of_traffic_control() -> usize {
    let mut kernel = tidegate_netlink::Kernel::open().expect("netlink");
    let installed = kernel.qdiscs(WIRE).expect("what stands there is told");
    installed.qdiscs.iter().filter(|qdisc| format!("{qdisc:?}").to_lowercase().contains("clsact")).count()
}

#[test]
fn held_packets_pass_when_the_backend_is_closed() {
    let Some(wire) = Wire::lay() else { return };
    hosts::is_answered_after(&wire, || CaptureIo::open(&both()), |came| came.frame.get(34) == Some(&8));
}

/// Many at once, so that they are sent many at a time.
#[test]
fn what_waited_together_leaves_together() {
    const MANY: u64 = 200;
    let Some(wire) = Wire::lay() else { return };
    for (from, to, at) in [(&wire.remote, &wire.near, 1), (&wire.near, &wire.remote, 0)] {
        assert_eq!(ping(from, address(ADDRESSES[at]), NO_MORE, 56), Some(1));
        let mut stream = hosts::numbered(from, to, address(ADDRESSES[at]), MANY);
        let packet_io = wire.near.go(|| CaptureIo::open(&both())).expect("place").expect("it opens");
        stream.begin();
        wire.near.go(move || drop(packet_io)).expect("place");
        stream.receive_some();
        assert_eq!(stream.numbers(), (1..=MANY).collect::<Vec<_>>());
    }
}

#[test]
fn what_is_lost_does_not_arrive() {
    let Some(wire) = Wire::lay() else { return };
    // The first echo request from anywhere.
    let mut first = true;
    let lose_one = move |came: &tidegate_dataplane::packet_io::Came<'_>| {
        let is_request = came.frame.get(23) == Some(&1) && came.frame.get(34) == Some(&8);
        if is_request && std::mem::take(&mut first) { FrameOutcome::Lose } else { FrameOutcome::Pass }
    };
    let keeper = wire.keep(|| CaptureIo::open(&[spot(TrafficDirection::Ingress)]), lose_one);
    assert_eq!(ping(&wire.remote, address(ADDRESSES[1]), NO_MORE, 56), Some(2));
    let counts = keeper.end().expect("the door stands");
    assert_eq!((counts.dropped, counts.received - counts.passed), (1, 1));
}

#[test]
fn super_packets_are_split_on_request() {
    let Some(wire) = Wire::lay() else { return };
    let (tell, receiver) = mpsc::channel();
    let open = || {
        use tidegate_dataplane::packet_io::PacketIo;
        let mut door = CaptureIo::open(&both())?;
        door.split(true).map(|()| door)
    };
    let keeper = wire.keep(open, move |came| {
        let _ = tell.send((came.segments, came.len));
        FrameOutcome::Pass
    });
    transfer(&wire.near, &wire.remote, address(ADDRESSES[0]), 1_000_000);
    transfer(&wire.remote, &wire.near, address(ADDRESSES_V6[1]), 1_000_000);
    let counts = keeper.end().expect("the door stands");
    let largest = receiver.try_iter().max();
    assert_eq!(largest, Some((1, 1514)));
    assert_eq!((counts.full, counts.overruns, counts.malformed), (0, 0, 0));
}

#[test]
fn tags_stay_where_they_are() {
    for way in [AttachMethod::Link, AttachMethod::Filter] {
        let Some(wire) = Wire::lay() else { return };
        let (tell, receiver) = mpsc::channel();
        let keeper = wire.keep(
            move || CaptureIo::by(way, &both()),
            move |came| {
                if came.frame.ends_with(b"tagged frame") {
                    let _ = tell.send((came.place, came.frame.to_vec()));
                }
                FrameOutcome::Pass
            },
        );
        // Someone at the remote end of the wire who sees what comes out.
        let (tell_out, told_out) = mpsc::channel();
        let remote = wire::keep(
            &wire.remote,
            || CaptureIo::open(&[spot(TrafficDirection::Ingress)]),
            move |came| {
                if came.frame.ends_with(b"tagged frame") {
                    let _ = tell_out.send(came.frame.to_vec());
                }
                FrameOutcome::Pass
            },
        );
        for tags in [&[0x81, 0, 0xa0, 5][..], &[0x88, 0xa8, 0, 9, 0x81, 0, 0xa0, 5]] {
            let frame = broadcast(tags, b"padded to the length of a tagged frame");
            send(&wire.near, WIRE, frame.clone(), 0);
            assert_eq!(receiver.recv_timeout(wire::LIMIT), Ok((0, frame.clone())), "{way:?}: on its way out");
            assert_eq!(told_out.recv_timeout(wire::LIMIT), Ok(frame.clone()), "{way:?}: as it arrives");
            send(&wire.remote, WIRE, frame.clone(), 0);
            assert_eq!(receiver.recv_timeout(wire::LIMIT), Ok((1, frame)), "{way:?}: on its way in");
        }
        keeper.end().expect("the door stands");
        remote.end().expect("the door stands");
    }
}

#[test]
fn marks_come_and_go() {
    let Some(wire) = Wire::lay() else { return };
    // What comes in by the wire for 10.8.0.9 goes out by another device, past another of the backend's
    // places.
    let laid = wire.near.go(|| -> io::Result<Tun> {
        namespace_thread::set("net/ipv4/ip_forward", "1")?;
        namespace_thread::set(&format!("net/ipv4/conf/{WIRE}/proxy_arp"), "1")?;
        namespace_thread::set(&format!("net/ipv4/neigh/{WIRE}/proxy_delay"), "0")?;
        let mut links = Links::open()?;
        let other = Tun::with_frames("other0")?;
        links.only_wire("other0", WIRE_ADDRESS)?;
        links.up(links.index("other0")?)?;
        links.add_route("other0", address("10.8.0.9"))?;
        Ok(other)
    });
    let _other = laid.expect("place").expect("a way out");
    let way = wire.remote.go(|| Links::open()?.add_route(WIRE, address("10.8.0.9")));
    way.expect("place").expect("a way there");
    let (tell, receiver) = mpsc::channel();
    let spots = [
        spot(TrafficDirection::Ingress),
        AttachPoint { dev: "other0".into(), direction: TrafficDirection::Egress },
    ];
    let keeper = wire.keep(
        move || CaptureIo::open(&spots),
        move |came| {
            if came.frame.ends_with(b"marked") {
                let _ = tell.send((came.place, came.mark));
            }
            if came.place == 0 { FrameOutcome::Mark(0xdead_0009) } else { FrameOutcome::Pass }
        },
    );
    hosts::datagram(&wire.remote, address("10.8.0.9"), b"marked");
    assert_eq!(receiver.recv_timeout(wire::LIMIT), Ok((0, 0)));
    assert_eq!(receiver.recv_timeout(wire::LIMIT), Ok((1, 0xdead_0009)));
    send(&wire.near, "other0", broadcast(&[], b"this one is marked"), 77);
    assert_eq!(receiver.recv_timeout(wire::LIMIT), Ok((1, 77)), "a sender's mark");
    keeper.end().expect("the door stands");
}

#[test]
fn a_ds_field_is_written() {
    let Some(wire) = Wire::lay() else { return };
    let (tell, receiver) = mpsc::channel();
    let keeper = wire.keep(
        || CaptureIo::open(&[spot(TrafficDirection::Egress)]),
        |came| {
            if came.frame.ends_with(b"congested") { FrameOutcome::DsField(0x03) } else { FrameOutcome::Pass }
        },
    );
    let remote = wire::keep(
        &wire.remote,
        || CaptureIo::open(&[spot(TrafficDirection::Ingress)]),
        move |came| {
            if came.frame.ends_with(b"congested") {
                let _ = tell.send(came.frame[14..24].to_vec());
            }
            FrameOutcome::Pass
        },
    );
    // It is delivered, so IPv4's checksum is right.
    hosts::deliver(&wire.near, &wire.remote, address(ADDRESSES[0]), b"it is congested");
    assert_eq!(receiver.recv_timeout(wire::LIMIT).map(|head| head[1]), Ok(0x03));
    hosts::deliver(&wire.near, &wire.remote, address(ADDRESSES_V6[0]), b"it is congested");
    assert_eq!(receiver.recv_timeout(wire::LIMIT).map(|head| (head[0], head[1] & 0xf0)), Ok((0x60, 0x30)));
    assert_eq!(keeper.end().expect("the door stands").unchanged, 0);
    remote.end().expect("the door stands");
}

#[test]
fn strange_frames_pass_and_break_nothing() {
    let Some(wire) = Wire::lay() else { return };
    let (tell, receiver) = mpsc::channel();
    let keeper = wire.keep(
        || CaptureIo::open(&both()),
        move |came| {
            let _ = tell.send((came.place, came.len));
            FrameOutcome::DsField(3)
        },
    );
    let strange = [
        broadcast(&[], &[]),
        // Tags without an end; IPv4 and IPv6 that stop early, and lie about their lengths.
        broadcast(&[0x81, 0, 0, 1, 0x81, 0, 0, 2, 0x81, 0, 0, 3], &[]),
        [&[0xff; 12][..], &[0x08, 0x00, 0x4f]].concat(),
        [&[0xff; 12][..], &[0x08, 0x00, 0x41, 0xff, 0xff, 0xff]].concat(),
        [&[0xff; 12][..], &[0x86, 0xdd, 0x60]].concat(),
    ];
    for frame in strange {
        let len = frame.len() as u32;
        for (at, from) in [&wire.near, &wire.remote].into_iter().enumerate() {
            send(from, WIRE, frame.clone(), 0);
            loop {
                let came = receiver.recv_timeout(wire::LIMIT).expect("it comes");
                if came == (at, len) {
                    break;
                }
            }
        }
    }
    assert_eq!(ping(&wire.remote, address(ADDRESSES[1]), NO_MORE, 56), Some(1));
    let counts = keeper.end().expect("the door stands");
    assert_eq!((counts.received, counts.held), (counts.passed + counts.full, 0));
}

#[test]
fn a_device_without_link_header() {
    let Some(wire) = Wire::lay() else { return };
    // A TUN device whose other end is a program that sends back what it gets, turned round.
    let (tell_tun, told_tun) = mpsc::channel();
    let made = wire.near.go(move || -> io::Result<()> {
        let tun = Tap::create("tun0", Carries::Packets)?;
        let mut links = Links::open()?;
        links.up(links.index("tun0")?)?;
        links.address("tun0", address("10.9.0.1"))?;
        links.add_route("tun0", address("10.9.0.2"))?;
        let _ = tell_tun.send(tun);
        Ok(())
    });
    made.expect("place").expect("a TUN device");
    let tun = told_tun.recv().expect("it was made");
    let echo = std::thread::spawn(move || hosts::turn_round(&tun, 3));
    let (tell, receiver) = mpsc::channel();
    let spots = [TrafficDirection::Egress, TrafficDirection::Ingress]
        .map(|direction| AttachPoint { dev: "tun0".into(), direction });
    let keeper = wire.keep(
        move || CaptureIo::open(&spots),
        move |came| {
            if came.frame.first() == Some(&0x45) {
                let _ = tell.send((came.place, came.link_header, came.len));
            }
            FrameOutcome::Pass
        },
    );
    assert_eq!(ping(&wire.near, address("10.9.0.2"), NO_MORE, 56), Some(1));
    assert_eq!(receiver.try_iter().take(2).collect::<Vec<_>>(), [(0, 0, 84), (1, 0, 84)]);
    assert_eq!(keeper.end().expect("the door stands").full, 0);
    echo.join().expect("no panic").expect("what came was turned round");
}

#[test]
fn a_removed_device_is_reported() {
    let Some(wire) = Wire::lay() else { return };
    let keeper = wire.keep(|| CaptureIo::open(&both()), |_| FrameOutcome::Pass);
    assert_eq!(ping(&wire.remote, address(ADDRESSES[1]), NO_MORE, 56), Some(1));
    wire.near.go(|| Links::open()?.delete(WIRE)).expect("place").expect("it can be deleted");
    let counts =
        keeper.end().expect("packets that have nowhere to go are no error of those that wait for them");
    assert_eq!(counts.held, 0);
    let error =
        wire.near.go(|| CaptureIo::open(&both()).map(drop)).expect("place").expect_err("there is no device");
    assert!(error.to_string().starts_with("what leaves by `wire0` cannot be captured"), "{error}");
}

/// A process at the backend is killed under load. What was on its way in it is dropped; what comes afterwards
/// is not.
#[test]
fn when_its_owner_is_killed_packets_flow() {
    for way in [AttachMethod::Link, AttachMethod::Filter] {
        let Some(wire) = Wire::lay() else { return };
        let child = child::start(&wire.near, &format!("{way:?}"));
        let stream = hosts::stream(&wire.remote, &wire.near, address(ADDRESSES[1]));
        stream.wait_for(2000);
        child.kill();
        let sent_before = stream.sent();
        stream.wait_for_number(sent_before + 1000);
        let seen = stream.end();
        println!("{way:?}: killed under load: {seen:?}");
        assert_eq!(ping(&wire.near, address(ADDRESSES[0]), NO_MORE, 56), Some(1), "{way:?}");
        let keeper = wire.keep(move || CaptureIo::by(way, &both()), |_| FrameOutcome::Pass);
        assert_eq!(ping(&wire.near, address(ADDRESSES[0]), NO_MORE, 56), Some(1), "{way:?}: a new owner");
        keeper.end().expect("the door stands");
    }
}
