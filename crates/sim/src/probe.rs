//! Pings, and open-loop sources for measuring queues.

use crate::transport_meta::PathId;
use crate::wire::{Ends, Fields, Template};
use alloc::vec::Vec;
use tidegate_packet::header::proto;
use tidegate_packet::{Nanos, Seeded, Time};

/// A ping: ICMP echo at an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeSpec {
    /// Addresses; `sport` is the identifier.
    pub ends: Ends,
    /// The way there.
    pub forward: PathId,
    /// The way back.
    pub back: PathId,
    /// The first request.
    pub start: Time,
    /// No requests from then on.
    pub stop: Time,
    /// Between requests.
    pub interval: Nanos,
    /// Bytes of data: 56 as ping does, for frames of 98.
    pub data: u32,
    /// DSCP, in the upper six bits.
    pub dsfield: u8,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoSample {
    /// When it was sent.
    pub sent: Time,
    /// How long it took to get there; `None`: it was lost on its way there, or is in flight.
    pub there: Option<Nanos>,
    /// Its round trip; `None`: lost, or still on the way.
    pub rtt: Option<Nanos>,
}

#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) spec: ProbeSpec,
    pub(crate) request: Template,
    /// Made when the first request arrives, for the addresses it bears then.
    pub(crate) reply: Option<Template>,
    pub(crate) echoes: Vec<EchoSample>,
}

impl Probe {
    pub(crate) fn new(spec: ProbeSpec) -> Probe {
        Probe { spec, request: Template::echo(spec.ends, false), reply: None, echoes: Vec::new() }
    }

    pub(crate) fn fields(&self, seq: u32) -> Fields {
        let frame = self.request.frame(self.spec.data);
        Fields { frame, dsfield: self.spec.dsfield, seq, ..Fields::default() }
    }
}

/// When an open-loop source emits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrivalProcess {
    /// As a Poisson process with this mean interval.
    Poisson(Nanos),
    /// At this interval.
    Every(Nanos),
    /// At this interval in the long run, each packet late by something between 0 and `late`: a program that
    /// sleeps between packets.
    Around {
        /// The mean interval.
        every: Nanos,
        /// How late at most.
        late: Nanos,
    },
}

/// How long its frames are, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// All alike.
    Fixed(u32),
    /// Exponentially distributed with this mean (at least one byte).
    Exponential(u32),
}

/// A source that does not listen: datagrams whatever happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceSpec {
    /// Addresses and ports.
    pub ends: Ends,
    /// The IP protocol: 17 is UDP; others than TCP and UDP have no ports.
    pub protocol: u8,
    /// The path from sender to receiver.
    pub path: PathId,
    /// The first packet.
    pub start: Time,
    /// No packets from then on.
    pub stop: Time,
    /// When the packets are sent.
    pub arrivals: ArrivalProcess,
    /// How long.
    pub sizes: Sizes,
    /// How many.
    pub count: u64,
    /// How many packets at first are left out of the statistics.
    pub warm_up: u64,
    /// The packets' priority.
    pub priority: u32,
    /// DSCP, in the upper six bits.
    pub dsfield: u8,
    /// Keep each packet's journey.
    pub record: bool,
}

impl SourceSpec {
    /// UDP datagrams in frames of one size at one interval, from time zero on, without end.
    pub fn steady(ends: Ends, path: PathId, frame: u32, interval: Nanos) -> SourceSpec {
        SourceSpec {
            ends,
            protocol: proto::UDP,
            path,
            start: Time(0),
            stop: Time::NEVER,
            arrivals: ArrivalProcess::Every(interval),
            sizes: Sizes::Fixed(frame),
            count: u64::MAX,
            warm_up: 0,
            priority: 0,
            dsfield: 0,
            record: false,
        }
    }
}

/// One packet of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbePacket {
    /// When it was sent.
    pub sent: Time,
    /// Its time in the network; `None`: lost, or still on the way.
    pub took: Option<Nanos>,
}

/// The outcome of a source's packets.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceStats {
    /// Packets sent, warm-up included.
    pub sent: u64,
    /// Packets that arrived after the warm-up.
    pub received: u64,
    /// Packets lost, warm-up included.
    pub lost: u64,
    /// The sum of the times in the network, in ns, of those received after the warm-up.
    pub total_ns: u128,
    /// Each packet sent after the warm-up, if requested.
    pub packets: Vec<ProbePacket>,
}

#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) spec: SourceSpec,
    pub(crate) template: Template,
    pub(crate) random: Seeded,
    /// When the next packet would be due if nothing were late.
    pub(crate) due: Time,
    pub(crate) stats: SourceStats,
    pub(crate) lost: u64,
}

impl Source {
    pub(crate) fn new(spec: SourceSpec, random: Seeded) -> Source {
        let template = match spec.protocol {
            proto::UDP => Template::udp(spec.ends),
            proto::TCP => Template::tcp(spec.ends),
            other => Template::raw(other, spec.ends),
        };
        Source { spec, template, random, due: spec.start, stats: SourceStats::default(), lost: 0 }
    }

    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.random.unit())
    }
}
