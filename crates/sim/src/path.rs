//! A path to measure whose truth is known: a line in virtual time, with what a real one may have.
//!
//! ```text
//! here ── machine (policers, shapers, if there is one) ── line (rate, framing, buffer, loss) ── far
//!                                  others' traffic joins ──┘                          └── and leaves
//! ```
//! *Invariant.* It is a [`stream::Path`](tidegate_measure::stream::Path): an estimator cannot distinguish it
//! from a real path. The network continues between two exchanges: buckets fill, others send.

use crate::link::{Impairment, LinkAdjustment, Trace};
use crate::probe::{ArrivalProcess, SourceSpec};
use crate::wire::Ends;
use crate::world::{Cable, CableDirection, CableEnd, Layout, NodePath, RouterNode, World};
use alloc::vec::Vec;
use core::convert::Infallible;
use tidegate_gateway::{DeviceId, Gateway};
use tidegate_measure::stream::{Due, Exchange, ExchangeResult, PacketRecord, Path, Stream, StreamTrace};
use tidegate_packet::header::ethertype;
use tidegate_packet::{Head, Nanos, Time};

/// When the clock here begins.
const START: Time = Time(1_000_000_000);
/// Bits per second inside the workspace: no bottleneck.
const INSIDE: u64 = 40_000_000_000;
/// Bytes of IPv4 and UDP headers.
const HEADERS: usize = 28;
/// How long a wait for packets in flight lasts without an arrival.
const SILENCE: Nanos = Nanos(1_000_000_000);
/// and after so long in all.
const PATIENCE: Nanos = Nanos(30_000_000_000);
/// Set in a packet's owner: it goes downwards.
const DOWN: u32 = 1 << 31;

const HERE: usize = 0;
const MACHINE: usize = 1;
const MODEM: usize = 2;
const EXCHANGE: usize = 3;
const FAR: usize = 4;
const NEIGHBOUR: usize = 5;
const OTHERS: usize = 6;
const NODES: usize = 7;
/// The cable that is the line, in the layout's order.
const LINE: usize = 2;

/// Others' traffic on the line: packets at random times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cross {
    /// Bits per second of frames, in the long run.
    pub bits_per_second: u64,
    /// Bytes of each frame.
    pub frame: u32,
}

/// One direction of the line.
#[derive(Clone, Debug, PartialEq)]
pub struct OneWay {
    /// Rate, delay, buffer, framing.
    pub line: CableDirection,
    /// Its losses and reordering.
    pub impairment: Impairment,
    /// The cross traffic.
    pub cross: Option<Cross>,
}

impl OneWay {
    /// With this line and nothing else.
    pub fn plain(line: CableDirection) -> OneWay {
        OneWay { line, impairment: Impairment::default(), cross: None }
    }
}

/// A change of the line in the middle of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScheduledLinkChange {
    /// When, from the beginning of the path's life.
    pub at: Nanos,
    /// Upwards, or downwards.
    pub is_up: bool,
    /// What changes.
    pub change: LinkAdjustment,
}

/// A path between two ends, each with a clock of its own.
pub struct PathSpec {
    /// From here to the remote end.
    pub up: OneWay,
    /// From the remote end to here.
    pub down: OneWay,
    /// A machine between here and the line: configured, its device on this side, and the one on the line's
    /// side.
    pub machine: Option<(Gateway, [DeviceId; 2])>,
    /// What the remote clock shows more at the beginning, ns.
    pub offset_ns: i64,
    /// By how many millionths the other clock runs faster; negative: slower.
    pub skew_ppm: f64,
    /// What happens to the line, in order.
    pub turns: Vec<ScheduledLinkChange>,
    /// Each packet is delayed by up to this, in order, before it is stamped.
    pub jitter: Nanos,
    /// The seed of all random draws: the same gives the same path, to the byte.
    pub seed: u64,
}

impl PathSpec {
    /// Two plain lines, the remote clock right.
    pub fn plain(up: CableDirection, down: CableDirection) -> PathSpec {
        PathSpec {
            up: OneWay::plain(up),
            down: OneWay::plain(down),
            machine: None,
            offset_ns: 0,
            skew_ppm: 0.0,
            turns: Vec::new(),
            jitter: Nanos(0),
            seed: 1,
        }
    }
}

/// A path in virtual time.
pub struct VirtualPath {
    world: World,
    ways: [NodePath; 2],
    turns: Vec<ScheduledLinkChange>,
    offset_ns: i64,
    skew_ppm: f64,
}

impl VirtualPath {
    /// Lays it out.
    pub fn new(spec: PathSpec) -> VirtualPath {
        let PathSpec { up, down, machine, offset_ns, skew_ppm, turns, jitter, seed } = spec;
        let inside = |jitter| CableDirection { jitter, ..CableDirection::plain(INSIDE, Nanos(0)) };
        let cable = |ends: [(usize, Option<usize>); 2], there, back| Cable {
            ends: ends.map(|(node, device)| CableEnd { node, device }).to_vec(),
            there,
            back,
        };
        let (near, session) = if machine.is_some() { (Some(0), Some(1)) } else { (None, None) };
        let cables = Vec::from([
            cable([(HERE, None), (MACHINE, near)], inside(Nanos(0)), inside(jitter)),
            cable([(MACHINE, session), (MODEM, None)], inside(Nanos(0)), inside(Nanos(0))),
            cable([(MODEM, None), (EXCHANGE, None)], up.line, down.line),
            cable([(EXCHANGE, None), (FAR, None)], inside(jitter), inside(Nanos(0))),
            cable([(NEIGHBOUR, None), (MODEM, None)], inside(Nanos(0)), inside(Nanos(0))),
            cable([(EXCHANGE, None), (OTHERS, None)], inside(Nanos(0)), inside(Nanos(0))),
        ]);
        let machines = machine.map(|(gateway, devices)| RouterNode {
            node: MACHINE,
            gateway,
            devices: devices.to_vec(),
        });
        let machines = machines.into_iter().collect();
        let hosts = alloc::vec![false; NODES];
        let mut world =
            World::new(Layout { nodes: NODES, cables, machines, host_jitter: Nanos(0), hosts, seed }, START);
        // The layout joins everyone with everyone.
        let nowhere = world.net.path(&[]);
        let mut way =
            |from, to| world.way(from, to).unwrap_or(NodePath { path: nowhere, first: None, last: None });
        let ways = [way(HERE, FAR), way(FAR, HERE)];
        let others = [way(NEIGHBOUR, OTHERS), way(OTHERS, NEIGHBOUR)];
        for ((one, is_up), others) in [(up, true), (down, false)].into_iter().zip(others) {
            for link in world.links(LINE, is_up) {
                if one.impairment != Impairment::default() {
                    world.net.impair(link, one.impairment.clone());
                }
            }
            if let Some(cross) = one.cross {
                world.net.source(source(cross, others));
            }
        }
        VirtualPath { world, ways, turns, offset_ns, skew_ppm }
    }

    /// From now on a direction of the line is as recorded; what the trace has not stays as it is.
    pub fn follow(&mut self, is_up: bool, trace: &Trace) {
        for link in self.world.links(LINE, is_up) {
            self.world.net.follow(link, trace.clone());
        }
    }

    /// How long the path has lived.
    pub fn age(&self) -> Nanos {
        self.world.net.now().since(START)
    }

    /// What the remote clock shows.
    fn far(&self, here: Time) -> u64 {
        let skewed = (here.0 as f64 * self.skew_ppm / 1e6) as i64;
        here.0.wrapping_add_signed(self.offset_ns + skewed)
    }

    /// Continues to a time; the line changes meanwhile as it should.
    fn run(&mut self, until: Time) {
        while let Some(turn) = self.turns.first().copied().filter(|turn| START + turn.at <= until) {
            self.world.net.run(START + turn.at);
            for link in self.world.links(LINE, turn.is_up) {
                self.world.net.change_link(link, turn.change);
            }
            self.turns.remove(0);
        }
        self.world.net.run(until);
    }

    /// Notes what has arrived; false: nothing had.
    fn collect(&mut self, arrivals: &mut [Arrived; 2]) -> bool {
        let mut some = false;
        loop {
            let mut landed = None;
            // Copies that a policy made are distinguished by nothing: they arrive as what they are.
            self.world.net.take_copies().for_each(drop);
            if !self.world.net.take_arrived(|one| landed = Some((one.owner, one.at, one.dsfield))) {
                return some;
            }
            let Some((owner, at, ds)) = landed else { return some };
            let is_down = owner & DOWN != 0;
            let shown = if is_down { at.0 } else { self.far(at) };
            arrivals[usize::from(is_down)].note((owner & !DOWN) as usize, shown, ds);
            some = true;
        }
    }

    /// Sends a packet now.
    fn send(&mut self, due: Due, is_down: bool) {
        let (way, owner) = (self.ways[usize::from(is_down)], due.number | if is_down { DOWN } else { 0 });
        let bytes = HEADERS + usize::from(due.payload);
        // Without space the packet is dropped like any other.
        let _ = self.world.net.inject(head(due.ds_field(), bytes, is_down), bytes as u32, way.path, owner);
    }
}

impl Path for VirtualPath {
    type Error = Infallible;

    fn carry_out(&mut self, exchange: &Exchange) -> Result<ExchangeResult, Infallible> {
        let began = self.world.net.now();
        let mut arrivals = [&exchange.up, &exchange.down].map(Arrived::of);
        let (mut up, mut down) = (exchange.up.dues().peekable(), exchange.down.dues().peekable());
        loop {
            let at = |due: Option<&Due>| due.map_or(u64::MAX, |due| due.at_ns);
            let is_down = at(down.peek()) < at(up.peek());
            let Some(due) = (if is_down { down.next() } else { up.next() }) else { break };
            self.run(began + Nanos(due.at_ns));
            self.collect(&mut arrivals);
            let now = self.world.net.now();
            let sent = if is_down { self.far(now) } else { now.0 };
            arrivals[usize::from(is_down)].packets[due.number as usize].sent = Some(sent);
            self.send(due, is_down);
        }
        self.run(began + Nanos(exchange.up.length_ns().max(exchange.down.length_ns())));
        self.wait_for_the_rest(&mut arrivals);
        let [up, down] = arrivals;
        let trace =
            |stream: &Stream, of: Arrived| StreamTrace { stream: stream.clone(), packets: of.packets };
        Ok(ExchangeResult {
            up: trace(&exchange.up, up),
            down: trace(&exchange.down, down),
            cut: None,
            is_reported: true,
        })
    }
}

impl VirtualPath {
    /// Until nothing has come for some time.
    fn wait_for_the_rest(&mut self, arrivals: &mut [Arrived; 2]) {
        let (end, step) = (self.world.net.now() + PATIENCE, Nanos(SILENCE.0 / 8));
        let mut heard = self.world.net.now();
        while self.world.net.now() < end && self.world.net.now().since(heard) < SILENCE {
            let next = self.world.net.now() + step;
            self.run(next);
            if self.collect(arrivals) {
                heard = self.world.net.now();
            }
        }
    }
}

/// What arrived of a stream so far.
struct Arrived {
    packets: Vec<PacketRecord>,
    count: u32,
}

impl Arrived {
    fn of(stream: &Stream) -> Arrived {
        Arrived { packets: alloc::vec![PacketRecord::default(); stream.packets() as usize], count: 0 }
    }

    fn note(&mut self, number: usize, at: u64, ds: u8) {
        let Some(packet) = self.packets.get_mut(number) else { return };
        if packet.arrived.is_some() {
            packet.duplicates = packet.duplicates.saturating_add(1);
            return;
        }
        *packet = PacketRecord { arrived: Some(at), rank: self.count, ds: Some(ds), ..*packet };
        self.count += 1;
    }
}

/// Packets at random times, for ever.
fn source(cross: Cross, way: NodePath) -> SourceSpec {
    let interval = Nanos(u64::from(cross.frame) * 8_000_000_000 / cross.bits_per_second.max(1));
    let ends = Ends::v4([10, 0, 0, 9], 9, [198, 51, 100, 9], 9);
    let steady = SourceSpec::steady(ends, way.path, cross.frame, interval);
    SourceSpec { arrivals: ArrivalProcess::Poisson(interval), start: START, ..steady }
}

/// The front of a datagram of this many bytes.
fn head(dsfield: u8, bytes: usize, is_down: bool) -> Head {
    let mut packet = [0; HEADERS];
    packet[0] = 0x45;
    packet[1] = dsfield;
    packet[2..4].copy_from_slice(&(bytes as u16).to_be_bytes());
    (packet[8], packet[9]) = (64, 17);
    let (near, session) = ([10, 0, 0, 2], [198, 51, 100, 7]);
    let (from, to) = if is_down { (session, near) } else { (near, session) };
    packet[12..16].copy_from_slice(&from);
    packet[16..20].copy_from_slice(&to);
    packet[20..22].copy_from_slice(&8787u16.to_be_bytes());
    packet[22..24].copy_from_slice(&8787u16.to_be_bytes());
    packet[24..26].copy_from_slice(&((bytes - 20) as u16).to_be_bytes());
    let mut head = Head::from_network(ethertype::IPV4, &packet);
    head.set_summed();
    head
}
