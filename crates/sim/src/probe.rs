//! Pings, and open-loop sources for measuring queues.

use crate::event::Kind;
use crate::machine::Machine;
use crate::net::{Cargo, Net, PathId, ProbeId, Role, SourceId};
use crate::wire::{Ends, Fields, Template};
use alloc::vec::Vec;
use tidegate_packet::header::proto;
use tidegate_packet::{Pkt, Seeded, Span, Time};

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
    pub interval: Span,
    /// Octets of data: 56 as ping does, for frames of 98.
    pub data: u32,
    /// DSCP, in the upper six bits.
    pub dsfield: u8,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// When it was sent.
    pub sent: Time,
    /// How long it took to get there; `None`: it was lost on its way there, or is under way.
    pub there: Option<Span>,
    /// Its round trip; `None`: lost, or still on the way.
    pub rtt: Option<Span>,
}

#[derive(Debug)]
pub(crate) struct Probe {
    spec: ProbeSpec,
    request: Template,
    /// Made when the first request arrives, for the addresses it bears then.
    reply: Option<Template>,
    echoes: Vec<Echo>,
}

impl Probe {
    pub(crate) fn new(spec: ProbeSpec) -> Probe {
        Probe { spec, request: Template::echo(spec.ends, false), reply: None, echoes: Vec::new() }
    }

    fn fields(&self, seq: u32) -> Fields {
        let frame = self.request.frame(self.spec.data);
        Fields { frame, dsfield: self.spec.dsfield, seq, ..Fields::default() }
    }
}

/// When an open-loop source emits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// As a Poisson process with this mean interval.
    Poisson(Span),
    /// At this interval.
    Every(Span),
    /// At this interval in the long run, each packet late by something between 0 and `late`: a program that sleeps between packets.
    Around {
        /// The interval.
        every: Span,
        /// How late at most.
        late: Span,
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
    /// The way.
    pub path: PathId,
    /// The first packet.
    pub start: Time,
    /// No packets from then on.
    pub stop: Time,
    /// When.
    pub arrivals: Arrivals,
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
    pub fn steady(ends: Ends, path: PathId, frame: u32, interval: Span) -> SourceSpec {
        SourceSpec {
            ends,
            protocol: proto::UDP,
            path,
            start: Time(0),
            stop: Time::NEVER,
            arrivals: Arrivals::Every(interval),
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
pub struct Journey {
    /// When it was sent.
    pub sent: Time,
    /// Its time in the network; `None`: lost, or still on the way.
    pub took: Option<Span>,
}

/// What became of a source's packets.
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
    /// Each packet sent after the warm-up, if asked for.
    pub journeys: Vec<Journey>,
}

#[derive(Debug)]
pub(crate) struct Source {
    spec: SourceSpec,
    template: Template,
    draws: Seeded,
    /// When the next packet would be due if nothing were late.
    due: Time,
    stats: SourceStats,
    pub(crate) lost: u64,
}

impl Source {
    pub(crate) fn new(spec: SourceSpec, draws: Seeded) -> Source {
        let template = match spec.protocol {
            proto::UDP => Template::udp(spec.ends),
            proto::TCP => Template::tcp(spec.ends),
            other => Template::raw(other, spec.ends),
        };
        Source { spec, template, draws, due: spec.start, stats: SourceStats::default(), lost: 0 }
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.draws.unit())
    }
}

impl<M: Machine> Net<M> {
    /// The requests a ping sent and what became of them.
    pub fn echoes(&self, probe: ProbeId) -> &[Echo] {
        &self.probes[probe.0 as usize].echoes
    }

    /// What became of a source's packets.
    pub fn source_stats(&self, source: SourceId) -> SourceStats {
        let source = &self.sources[source.0 as usize];
        SourceStats { lost: source.lost, ..source.stats.clone() }
    }

    pub(crate) fn probe(&mut self, index: usize) {
        let probe = &mut self.probes[index];
        if self.now >= probe.spec.stop {
            return;
        }
        let next = self.now + Span(probe.spec.interval.0.max(1));
        self.events.push(next, Kind::Probe, index);
        let seq = probe.echoes.len() as u32;
        probe.echoes.push(Echo { sent: self.now, there: None, rtt: None });
        let fields = probe.fields(seq);
        let cargo = Cargo { role: Role::EchoRequest, owner: index as u32, seq, sent: self.now, ..Cargo::default() };
        let path = probe.spec.forward;
        match probe.request.packet(&mut self.pool, fields) {
            Some(pkt) => {
                self.launch(pkt, cargo, path);
            }
            None => self.overflow += 1,
        }
    }

    pub(crate) fn probe_deliver(&mut self, pkt: Pkt, cargo: Cargo) {
        let seen = Ends::seen(self.pool.head(&pkt));
        self.discard(pkt);
        let probe = &mut self.probes[cargo.owner as usize];
        if cargo.role == Role::EchoReply {
            if let Some(echo) = probe.echoes.get_mut(cargo.seq as usize).filter(|echo| echo.rtt.is_none()) {
                echo.rtt = Some(self.now.since(echo.sent));
            }
            return;
        }
        if let Some(echo) = probe.echoes.get_mut(cargo.seq as usize).filter(|echo| echo.there.is_none()) {
            echo.there = Some(self.now.since(echo.sent));
        }
        let (fields, path) = (probe.fields(cargo.seq), probe.spec.back);
        let cargo = Cargo { role: Role::EchoReply, ..cargo };
        let asker = seen.unwrap_or(probe.spec.ends);
        let back = Ends { sport: asker.sport, ..asker.back() };
        match probe.reply.get_or_insert_with(|| Template::echo(back, true)).packet(&mut self.pool, fields) {
            Some(pkt) => {
                self.launch(pkt, cargo, path);
            }
            None => self.overflow += 1,
        }
    }

    pub(crate) fn emit(&mut self, index: usize) {
        let source = &mut self.sources[index];
        if source.stats.sent >= source.spec.count || self.now >= source.spec.stop {
            return;
        }
        let next = match source.spec.arrivals {
            Arrivals::Every(gap) => self.now + gap,
            Arrivals::Poisson(mean) => self.now + Span(source.exponential(mean.0 as f64) as u64),
            Arrivals::Around { every, late } => {
                source.due += every;
                source.due + Span((source.draws.unit() * late.0 as f64) as u64)
            }
        };
        self.events.push(next.max(self.now + Span(1)), Kind::Source, index);
        let size = match source.spec.sizes {
            Sizes::Fixed(size) => size,
            Sizes::Exponential(mean) => (source.exponential(f64::from(mean)) + 0.5) as u32,
        };
        let counted = source.stats.sent >= source.spec.warm_up;
        source.stats.sent += 1;
        let seq = source.stats.journeys.len() as u32;
        if counted && source.spec.record {
            source.stats.journeys.push(Journey { sent: self.now, took: None });
        }
        let fields = Fields { frame: size.max(1), dsfield: source.spec.dsfield, ..Fields::default() };
        let cargo =
            Cargo { role: Role::Open, owner: index as u32, seq, cwr: counted, sent: self.now, ..Cargo::default() };
        let (path, priority) = (source.spec.path, source.spec.priority);
        match source.template.packet(&mut self.pool, fields) {
            Some(pkt) => {
                self.pool.meta_mut(&pkt).priority = priority;
                self.launch(pkt, cargo, path);
            }
            None => self.overflow += 1,
        }
    }

    pub(crate) fn source_deliver(&mut self, pkt: Pkt, cargo: Cargo) {
        self.discard(pkt);
        if !cargo.cwr {
            return;
        }
        let source = &mut self.sources[cargo.owner as usize];
        if source.stats.journeys.get(cargo.seq as usize).is_some_and(|journey| journey.took.is_some()) {
            // Its copy was quicker.
            return;
        }
        let time = self.now.since(cargo.sent);
        source.stats.received += 1;
        source.stats.total_ns += u128::from(time.0);
        if let Some(journey) = source.stats.journeys.get_mut(cargo.seq as usize) {
            journey.took = Some(time);
        }
    }
}
