//! `deadline` in the engine of `tidegate run`, between packet I/O in memory and a clock that the test moves.

use crate::common::add;
use std::collections::VecDeque;
use std::io;
use std::os::fd::BorrowedFd;
use tidegate_custom_qdisc::Deadline;
use tidegate_dataplane::engine::Engine;
use tidegate_dataplane::packet_io::{
    AttachPoint, Came, Leaving, PacketIo, PacketIoStats, Passed, TrafficDirection,
};
use tidegate_gateway::{DeviceSpec, GatewayContext};
use tidegate_packet::{Handle, Nanos, Rate, Time};
use tidegate_policy::{LinkLayer, Op, QdiscOp, QdiscParams, RateSpec, SharedBlocks, TbfParams, Ticks, Verb};

/// Packet I/O in memory: frames come from a queue, what leaves is written down.
#[derive(Default)]
struct Memory {
    arriving: VecDeque<Vec<u8>>,
    next: u32,
    left: Vec<u32>,
    dropped: Vec<u32>,
}

impl PacketIo for Memory {
    fn receive(&mut self, most: usize, take: &mut dyn FnMut(Came<'_>)) -> io::Result<usize> {
        let many = most.min(self.arriving.len());
        for frame in self.arriving.drain(..many) {
            let (ticket, len) = (self.next, frame.len() as u32);
            self.next += 1;
            take(Came {
                ticket,
                place: 0,
                frame: &frame,
                link_header: 14,
                len,
                mark: 0,
                priority: 0,
                segments: 1,
            });
        }
        Ok(many)
    }
    fn pass(&mut self, ticket: u32, _: &Leaving<'_>) -> io::Result<Passed> {
        self.left.push(ticket);
        Ok(Passed::Gone)
    }
    fn drop_packet(&mut self, ticket: u32) -> io::Result<()> {
        self.dropped.push(ticket);
        Ok(())
    }
    fn copy(&mut self, _: u32) -> Option<u32> {
        None
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn handles(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }
    fn counts(&self) -> PacketIoStats {
        PacketIoStats::default()
    }
    fn split(&mut self, _: bool) -> io::Result<()> {
        Ok(())
    }
    fn cannot(&self) -> &'static [&'static str] {
        &[]
    }
}

/// A UDP datagram in a frame of 1,000 bytes.
fn frame() -> Vec<u8> {
    let mut frame = vec![0; 1000];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&986_u16.to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 17]);
    frame[26..34].copy_from_slice(&[192, 0, 2, 1, 198, 51, 100, 1]);
    frame
}

/// A token bucket at the root: a frame of 1,000 bytes each millisecond.
fn shaper() -> Op {
    let rate = RateSpec { rate: Rate::bits(8_000_000), overhead: 0, mpu: 0, linklayer: LinkLayer::Ethernet };
    Op::Qdisc(QdiscOp {
        verb: Verb::Add,
        dev: "eth0".into(),
        parent: Handle::ROOT,
        handle: Handle::new(1, 0),
        kind: Some("tbf".into()),
        params: Some(QdiscParams::Tbf(TbfParams {
            rate,
            peak: None,
            limit: 100_000,
            burst: 2000,
            peak_burst: 0,
            buffer: Ticks(2 * Ticks::PER_SECOND as u32 / 1000),
            peak_buffer: Ticks::default(),
        })),
        stab: None,
        estimator: None,
        blocks: SharedBlocks::default(),
    })
}

#[test]
fn frames_that_waited_too_long_are_dropped_at_the_head() {
    let places = [AttachPoint { dev: "eth0".into(), direction: TrafficDirection::Egress }];
    let mut engine = Engine::new(&[("eth0".into(), DeviceSpec::default())], &places, 100, 1);
    let mut memory = Memory::default();
    let kind = Deadline { limit: 40, deadline: Nanos::millis(10) };
    let ops = [shaper(), add("eth0", Handle::new(1, 1), kind)];
    engine.apply(&mut memory, Time(0), &ops).expect("memory does not break").expect("both are carried out");

    memory.arriving.extend((0..50).map(|_| frame()));
    engine.turn(&mut memory, Time(0)).expect("memory does not break");
    while let Some(due) = engine.due() {
        engine.turn(&mut memory, due).expect("memory does not break");
    }

    // Two leave at once from a full bucket, and eight find no place among forty. The shaper takes a frame
    // when it has sent the one before: one each millisecond until 10 ms have passed, which it sends at 11 ms.
    // All others are late then, and only the last of them goes.
    let (left, dropped) = (memory.left.len(), memory.dropped.len());
    assert_eq!(left + dropped, 50, "each frame comes back once");
    assert_eq!(memory.left.last(), memory.left.iter().max(), "in order");
    let listing = engine.visit(&mut memory, Time(1_000_000_000), |gateway, GatewayContext { now, .. }| {
        let device = gateway.device("eth0").expect("it is there");
        gateway.qdiscs(now, device)
    });
    let stats = listing.expect("memory does not break")[1].stats;
    assert_eq!((stats.packets, u64::from(stats.drops)), (left as u64, dropped as u64));
    assert_eq!((stats.qlen, stats.backlog), (0, 0));
    assert_eq!((left, stats.overlimits), (2 + 11 + 1, 50 - 8 - 14));
}
