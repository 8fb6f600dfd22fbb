//! The queueing backend.

use std::io;
use std::sync::mpsc;

use tidegate_dataplane::packet_io::capture::CaptureIo;
use tidegate_dataplane::packet_io::queue::{Options, QueueIo};
use tidegate_dataplane::packet_io::{AttachPoint, Came, Leaving, PacketIo, TrafficDirection};
use tidegate_netlink::Netfilter;
use tidegate_netlink::encode::nft::{Batch, Expressions, NftMeta};
use tidegate_policy::netfilter::{Base, ChainType, Hook};
use tidegate_sys::netlink::Links;
use tidegate_sys::poll;

use crate::capture::both;
use crate::hosts::{self, ping, transfer};
use crate::wire::{self, ADDRESSES, ADDRESSES_V6, FrameOutcome, LIMIT, WIRE, Wire, address};
use crate::{child, wire::Keeper};

fn open() -> io::Result<QueueIo> {
    QueueIo::open(&both(), Options::default())
}

/// A wire, and whether this kernel has such queues.
fn lay() -> Option<Wire> {
    let wire = Wire::lay()?;
    match wire.near.go(|| open().map(drop)).expect("place") {
        Ok(()) => Some(wire),
        Err(error) => {
            println!("left out: no queues of netfilter here ({error})");
            None
        }
    }
}

/// A process at the remote end of the wire that reports the DS field of datagrams that end so.
fn watch(wire: &Wire, end: &'static [u8]) -> (Keeper, mpsc::Receiver<u8>) {
    let (tell, receiver) = mpsc::channel();
    let spots = [AttachPoint { dev: WIRE.into(), direction: TrafficDirection::Ingress }];
    let decide = move |came: &Came<'_>| {
        if came.frame.ends_with(end) {
            let is_v6 = came.frame[14] >> 4 == 6;
            let _ = tell.send(if is_v6 { came.frame[14] << 4 | came.frame[15] >> 4 } else { came.frame[15] });
        }
        FrameOutcome::Pass
    };
    (wire::keep(&wire.remote, move || CaptureIo::open(&spots), decide), receiver)
}

#[test]
fn ip_passes_both_ways() {
    let Some(wire) = lay() else { return };
    let (tell, receiver) = mpsc::channel();
    let keeper = wire.keep(open, move |came| {
        let kind = u16::from_be_bytes([came.frame[12], came.frame[13]]);
        let _ = tell.send((came.place, kind, came.segments, came.len));
        FrameOutcome::Pass
    });
    for addresses in [ADDRESSES, ADDRESSES_V6] {
        assert_eq!(ping(&wire.remote, address(addresses[1]), 3, 56), Some(1));
        assert_eq!(ping(&wire.near, address(addresses[0]), 3, 1400), Some(1));
        transfer(&wire.near, &wire.remote, address(addresses[0]), 3_000_000);
        transfer(&wire.remote, &wire.near, address(addresses[1]), 3_000_000);
    }
    let counts = keeper.end().expect("the door stands");
    let seen: Vec<_> = receiver.try_iter().collect();
    for place in 0..2 {
        for kind in [0x0800, 0x86dd] {
            assert!(seen.iter().any(|seen| (seen.0, seen.1) == (place, kind)), "{kind:x} at {place}");
        }
        let super_packet = seen.iter().filter(|seen| seen.0 == place).any(|seen| seen.2 > 1 && seen.3 > 1514);
        assert!(super_packet, "super-packets stay whole at {place}");
    }
    assert!(seen.iter().any(|seen| (seen.2, seen.3) == (1, 98)), "a ping, its link header counted");
    assert_eq!(
        (counts.dropped, counts.full, counts.overruns, counts.unchanged, counts.held),
        (0, 0, 0, 0, 0)
    );
    assert_eq!(counts.received, counts.passed);
}

#[test]
fn super_packets_are_split_on_request() {
    let Some(wire) = lay() else { return };
    let (tell, receiver) = mpsc::channel();
    let open = || open().and_then(|mut packet_io| packet_io.split(true).map(|()| packet_io));
    let keeper = wire.keep(open, move |came| {
        let _ = tell.send((came.segments, came.len));
        FrameOutcome::Pass
    });
    transfer(&wire.near, &wire.remote, address(ADDRESSES[0]), 1_000_000);
    transfer(&wire.remote, &wire.near, address(ADDRESSES_V6[1]), 1_000_000);
    keeper.end().expect("the door stands");
    assert_eq!(receiver.try_iter().max(), Some((1, 1514)));
}

#[test]
fn what_is_lost_does_not_arrive() {
    let Some(wire) = lay() else { return };
    let mut first = true;
    let keeper = wire.keep(open, move |came| {
        let is_request = came.place == 1 && came.frame.get(23) == Some(&1) && came.frame.get(34) == Some(&8);
        if is_request && std::mem::take(&mut first) { FrameOutcome::Lose } else { FrameOutcome::Pass }
    });
    assert_eq!(ping(&wire.remote, address(ADDRESSES[1]), 3, 56), Some(2));
    assert_eq!(keeper.end().expect("the door stands").dropped, 1);
}

#[test]
fn congestion_is_marked_by_the_rule_behind() {
    let Some(wire) = lay() else { return };
    let (remote, receiver) = watch(&wire, b"congested");
    let congest = |came: &Came<'_>| match (came.frame.ends_with(b"congested"), came.frame[14] >> 4) {
        (true, 4) => FrameOutcome::DsField(came.frame[15] | 3),
        (true, _) => FrameOutcome::DsField(came.frame[14] << 4 | came.frame[15] >> 4 | 3),
        _ => FrameOutcome::Pass,
    };
    let keeper = wire.keep(open, congest);
    for addresses in [ADDRESSES, ADDRESSES_V6] {
        hosts::deliver(&wire.near, &wire.remote, address(addresses[0]), b"it is congested");
        assert_eq!(receiver.recv_timeout(LIMIT), Ok(3));
        hosts::deliver(&wire.near, &wire.remote, address(addresses[0]), b"it is not congested!");
        // Incoming packets are marked likewise, or they would not be delivered.
        hosts::deliver(&wire.remote, &wire.near, address(addresses[1]), b"it is congested");
    }
    assert_eq!(keeper.end().expect("the door stands").unchanged, 0);
    assert_eq!(receiver.try_iter().count(), 0);
    remote.end().expect("the door stands");
}

#[test]
fn marks_come_and_go() {
    let Some(wire) = lay() else { return };
    // The queue marks what comes in and leaves for itself; a capture behind it sees that.
    let (tell, receiver) = mpsc::channel();
    let keeper =
        wire.keep(
            open,
            |came| if came.place == 0 { FrameOutcome::Mark(0x7ead_0009) } else { FrameOutcome::Pass },
        );
    let spots = [AttachPoint { dev: WIRE.into(), direction: TrafficDirection::Egress }];
    let behind = wire.keep(
        move || CaptureIo::open(&spots),
        move |came| {
            if came.frame.ends_with(b"marked") {
                let _ = tell.send(came.mark);
            }
            FrameOutcome::Pass
        },
    );
    hosts::deliver(&wire.near, &wire.remote, address(ADDRESSES[0]), b"this one is marked");
    assert_eq!(receiver.recv_timeout(LIMIT), Ok(0x7ead_0009));
    keeper.end().expect("the door stands");
    behind.end().expect("the door stands");
}

/// Rules for marks (-150) precede the backend, in both directions: marks that they restore from a connection
/// are there when the engine classifies.
#[test]
fn what_rules_mark_comes_marked() {
    let Some(wire) = lay() else { return };
    let rules = wire.near.go(|| -> io::Result<Netfilter> {
        let mut batch = Batch::new("marks");
        batch.make_table(None);
        for (name, hook, mark) in [("coming", Hook::Prerouting, 5_u32), ("leaving", Hook::Postrouting, 6)] {
            batch.chain(name, Some(Base { kind: ChainType::Filter, hook, priority: -150 }), true);
            batch.rule(name, Expressions::default().put(&mark.to_ne_bytes()).set_meta(NftMeta::Mark));
        }
        let mut netfilter = Netfilter::open()?;
        netfilter.carry_out(batch)?.map_err(|(_, refused)| io::Error::other(refused))?;
        Ok(netfilter)
    });
    let _rules = rules.expect("place").expect("rules");
    let (tell, receiver) = mpsc::channel();
    let keeper = wire.keep(open, move |came| {
        let _ = tell.send((came.place, came.mark));
        FrameOutcome::Pass
    });
    assert_eq!(ping(&wire.remote, address(ADDRESSES[1]), 3, 56), Some(1));
    keeper.end().expect("the door stands");
    let seen: Vec<_> = receiver.try_iter().collect();
    assert!(seen.contains(&(1, 5)) && seen.contains(&(0, 6)), "{seen:?}");
    assert!(seen.iter().all(|seen| [(1, 5), (0, 6)].contains(seen)), "{seen:?}");
}

/// As many as a large queue holds, and their verdicts in another order.
#[test]
fn ten_thousand_wait_and_leave_in_reverse() {
    const MANY: usize = 10_000;
    let Some(wire) = lay() else { return };
    let mut stream = hosts::numbered(&wire.remote, &wire.near, address(ADDRESSES[1]), MANY as u64);
    let outcome = wire.near.go(move || -> io::Result<()> {
        let spots = [AttachPoint { dev: WIRE.into(), direction: TrafficDirection::Ingress }];
        let mut packet_io = QueueIo::open(&spots, Options::default())?;
        stream.begin();
        let mut tickets = Vec::with_capacity(MANY);
        let mut others = Vec::new();
        while tickets.len() < MANY {
            poll::readable(&packet_io.handles(), LIMIT)?;
            packet_io.receive(64, &mut |came| {
                // Data bytes distinguish the stream from what kernels send on their own.
                let ours = came.len == 14 + 20 + 8 + 8;
                if ours { &mut tickets } else { &mut others }.push(came.ticket);
            })?;
            for ticket in others.drain(..) {
                packet_io.pass(ticket, &Leaving::default())?;
            }
            packet_io.flush()?;
        }
        assert_eq!(packet_io.counts().held, MANY as u64);
        for ticket in tickets.into_iter().rev() {
            packet_io.pass(ticket, &Leaving::default())?;
            // The receiver has space for some hundred.
            stream.receive_some();
        }
        packet_io.flush()?;
        stream.receive_some();
        let counts = packet_io.counts();
        assert_eq!((counts.held, counts.full, counts.overruns), (0, 0, 0));
        let numbers = stream.numbers();
        assert_eq!(numbers.len(), MANY);
        assert!(numbers.windows(2).all(|pair| pair[0] == pair[1] + 1), "each before its forerunner");
        Ok(())
    });
    outcome.expect("place").expect("the door stands");
}

#[test]
fn held_packets_pass_when_the_backend_is_closed() {
    let Some(wire) = lay() else { return };
    hosts::is_answered_after(&wire, open, |came| came.frame.get(34) == Some(&8));
}

#[test]
fn a_queue_has_one_owner_and_nothing_is_left_behind() {
    let Some(wire) = lay() else { return };
    let keeper = wire.keep(open, |_| FrameOutcome::Pass);
    let second = wire.near.go(|| open().map(drop)).expect("place").expect_err("somebody has it");
    assert!(second.to_string().starts_with("queue 7000 of netfilter cannot be taken"), "{second}");
    let beside = wire.near.go(|| QueueIo::anywhere(&both()).map(drop)).expect("place");
    beside.expect("there are others");
    assert_eq!(ping(&wire.remote, address(ADDRESSES[1]), 3, 56), Some(1), "the first goes on");
    keeper.end().expect("the door stands");
    let tables = wire
        .near
        .go(|| tidegate_netlink::Netfilter::open()?.tables())
        .expect("place")
        .expect("they are told");
    assert_eq!(tables.keys().collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn a_device_that_goes_takes_its_packets_along() {
    let Some(wire) = lay() else { return };
    let mut packet_io = wire.near.go(open).expect("place").expect("it opens");
    hosts::datagram(&wire.near, address(ADDRESSES[0]), b"is held");
    let ended = wire.near.go(move || -> io::Result<_> {
        let mut held = Vec::new();
        while held.is_empty() {
            poll::readable(&packet_io.handles(), LIMIT)?;
            packet_io.receive(64, &mut |came| held.push((came.ticket, came.place)))?;
        }
        Links::open()?.delete(WIRE)?;
        for (ticket, place) in held {
            packet_io.pass(ticket, &Leaving::unchanged(place, 0))?;
        }
        packet_io.flush()?;
        packet_io.receive(64, &mut |_| {})?;
        Ok(packet_io.counts())
    });
    let counts = ended.expect("place").expect("a device that goes is no error");
    assert_eq!((counts.passed, counts.held), (counts.received - counts.full, 0));
    assert!(counts.full > 0, "{counts:?}");
}

/// What its owner holds is dropped; what comes afterwards is not.
#[test]
fn when_its_owner_is_killed_packets_flow() {
    let Some(wire) = lay() else { return };
    let child = child::start(&wire.near, "Queue");
    let stream = hosts::stream(&wire.remote, &wire.near, address(ADDRESSES[1]));
    stream.wait_for(2000);
    child.kill();
    let sent_before = stream.sent();
    stream.wait_for_number(sent_before + 1000);
    let seen = stream.end();
    println!("NFQUEUE: killed under load: {seen:?}");
    assert_eq!(ping(&wire.near, address(ADDRESSES[0]), 3, 56), Some(1));
    let keeper = wire.keep(open, |_| FrameOutcome::Pass);
    assert_eq!(ping(&wire.near, address(ADDRESSES[0]), 3, 56), Some(1), "a new owner");
    keeper.end().expect("the door stands");
}
