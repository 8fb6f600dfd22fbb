//! Pings and open-loop sources in a network.

use super::Net;
use crate::event::Kind;
use crate::machine::Forwarder;
use crate::probe::{ArrivalProcess, EchoSample, ProbePacket, Sizes, SourceStats};
use crate::transport_meta::{ProbeId, Role, SourceId, TransportMeta};
use crate::wire::{Ends, Fields, Template};
use tidegate_packet::{Nanos, Pkt};

impl<M: Forwarder> Net<M> {
    /// The requests a ping sent and the outcome of them.
    pub fn echoes(&self, probe: ProbeId) -> &[EchoSample] {
        &self.probes[probe.0 as usize].echoes
    }

    /// The outcome of a source's packets.
    pub fn source_stats(&self, source: SourceId) -> SourceStats {
        let source = &self.sources[source.0 as usize];
        SourceStats { lost: source.lost, ..source.stats.clone() }
    }

    pub(crate) fn probe(&mut self, index: usize) {
        let probe = &mut self.probes[index];
        if self.now >= probe.spec.stop {
            return;
        }
        let next = self.now + Nanos(probe.spec.interval.0.max(1));
        self.events.push(next, Kind::Probe, index);
        let seq = probe.echoes.len() as u32;
        probe.echoes.push(EchoSample { sent: self.now, there: None, rtt: None });
        let fields = probe.fields(seq);
        let meta = TransportMeta {
            role: Role::EchoRequest,
            owner: index as u32,
            seq,
            sent: self.now,
            ..TransportMeta::default()
        };
        let path = probe.spec.forward;
        match probe.request.packet(&mut self.pool, fields) {
            Some(pkt) => {
                self.launch(pkt, meta, path);
            }
            None => self.overflow += 1,
        }
    }

    pub(crate) fn probe_deliver(&mut self, pkt: Pkt, meta: TransportMeta) {
        let seen = Ends::seen(self.pool.head(&pkt));
        self.discard(pkt);
        let probe = &mut self.probes[meta.owner as usize];
        if meta.role == Role::EchoReply {
            if let Some(echo) = probe.echoes.get_mut(meta.seq as usize).filter(|echo| echo.rtt.is_none()) {
                echo.rtt = Some(self.now.since(echo.sent));
            }
            return;
        }
        if let Some(echo) = probe.echoes.get_mut(meta.seq as usize).filter(|echo| echo.there.is_none()) {
            echo.there = Some(self.now.since(echo.sent));
        }
        let (fields, path) = (probe.fields(meta.seq), probe.spec.back);
        let meta = TransportMeta { role: Role::EchoReply, ..meta };
        let asker = seen.unwrap_or(probe.spec.ends);
        let back = Ends { sport: asker.sport, ..asker.back() };
        match probe.reply.get_or_insert_with(|| Template::echo(back, true)).packet(&mut self.pool, fields) {
            Some(pkt) => {
                self.launch(pkt, meta, path);
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
            ArrivalProcess::Every(gap) => self.now + gap,
            ArrivalProcess::Poisson(mean) => self.now + Nanos(source.exponential(mean.0 as f64) as u64),
            ArrivalProcess::Around { every, late } => {
                source.due += every;
                source.due + Nanos((source.random.unit() * late.0 as f64) as u64)
            }
        };
        self.events.push(next.max(self.now + Nanos(1)), Kind::Source, index);
        let size = match source.spec.sizes {
            Sizes::Fixed(size) => size,
            Sizes::Exponential(mean) => (source.exponential(f64::from(mean)) + 0.5) as u32,
        };
        let counted = source.stats.sent >= source.spec.warm_up;
        source.stats.sent += 1;
        let seq = source.stats.packets.len() as u32;
        if counted && source.spec.record {
            source.stats.packets.push(ProbePacket { sent: self.now, took: None });
        }
        let fields = Fields { frame: size.max(1), dsfield: source.spec.dsfield, ..Fields::default() };
        let meta = TransportMeta {
            role: Role::Open,
            owner: index as u32,
            seq,
            cwr: counted,
            sent: self.now,
            ..TransportMeta::default()
        };
        let (path, priority) = (source.spec.path, source.spec.priority);
        match source.template.packet(&mut self.pool, fields) {
            Some(pkt) => {
                self.pool.meta_mut(&pkt).priority = priority;
                self.launch(pkt, meta, path);
            }
            None => self.overflow += 1,
        }
    }

    pub(crate) fn source_deliver(&mut self, pkt: Pkt, meta: TransportMeta) {
        self.discard(pkt);
        if !meta.cwr {
            return;
        }
        let source = &mut self.sources[meta.owner as usize];
        if source.stats.packets.get(meta.seq as usize).is_some_and(|packet| packet.took.is_some()) {
            // Its copy was quicker.
            return;
        }
        let time = self.now.since(meta.sent);
        source.stats.received += 1;
        source.stats.total_ns += u128::from(time.0);
        if let Some(packet) = source.stats.packets.get_mut(meta.seq as usize) {
            packet.took = Some(time);
        }
    }
}
