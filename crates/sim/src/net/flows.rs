//! TCP flows in a network.

use super::Net;
use crate::event::Kind;
use crate::machine::{Forwarder, OfferResult};
use crate::tcp::clock::{stamp, timer};
use crate::tcp::receiver::{AckSegment, Marks};
use crate::tcp::sender::Segment;
use crate::tcp_flow::{EcnCodepoint, FlowSample, FlowStats, SYN_TIMEOUT, SYN_TRIES};
use crate::transport_meta::{FlowId, PathId, Role, TransportMeta};
use crate::wire::{Ends, Fields, Template};
use tidegate_packet::header::tcp_flags::{ACK, CWR, ECE, FIN, PSH, SYN};
use tidegate_packet::{Nanos, Pkt};

impl<M: Forwarder> Net<M> {
    /// What a flow did so far.
    pub fn flow_stats(&self, flow: FlowId) -> FlowStats {
        let flow = &self.flows[flow.0 as usize];
        FlowStats {
            acked: flow.acked(),
            retransmissions: flow.sender.retransmissions,
            lost: flow.lost,
            timeouts: flow.sender.timeouts,
            reductions: flow.sender.reductions,
            established: flow.established,
            finished: flow.finished,
        }
    }

    /// A flow's record, if [`Net::sample_every`] requested one.
    pub fn flow_samples(&self, flow: FlowId) -> &[FlowSample] {
        &self.flows[flow.0 as usize].samples
    }

    pub(crate) fn flow_start(&mut self, index: usize) {
        self.send_syn(index);
    }

    fn send_syn(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if flow.established.is_some() || flow.syn_tries >= SYN_TRIES {
            return;
        }
        flow.syns[flow.syn_tries as usize] = self.now;
        flow.syn_tries += 1;
        let due = timer(self.now, Nanos(SYN_TIMEOUT.0 << (flow.syn_tries - 1)));
        flow.timer_at = Some(due);
        self.events.push(due, Kind::Timer, index);
        let flags = SYN | if flow.spec.ecn != EcnCodepoint::Off { ECE | CWR } else { 0 };
        let fields = Fields { dsfield: flow.spec.dsfield, flags, options: 20, ..Fields::default() };
        let (by_sender, number) = (!flow.spec.called, flow.syn_tries - 1);
        self.put_syn(index, Role::Syn, fields, by_sender, number);
    }

    /// Sends a SYN, or its answer, from one of the two sides. `seq`: which SYN it is, or answers.
    fn put_syn(&mut self, index: usize, role: Role, fields: Fields, by_sender: bool, seq: u32) {
        let flow = &mut self.flows[index];
        let local = flow.spec.local && by_sender;
        flow.in_queue += u32::from(local);
        let meta = TransportMeta {
            role,
            owner: index as u32,
            seq,
            local,
            sent: self.now,
            ..TransportMeta::default()
        };
        let (template, path) = match by_sender {
            true => (&mut flow.data, flow.spec.forward),
            false => (&mut flow.acks, flow.spec.back),
        };
        let fields = Fields { frame: template.syn_frame(), ..fields };
        let packet = template.packet(&mut self.pool, fields);
        self.put(packet, meta, path);
    }

    fn put(&mut self, packet: Option<Pkt>, meta: TransportMeta, path: PathId) -> OfferResult {
        match packet {
            Some(pkt) => self.launch(pkt, meta, path),
            None => {
                self.overflow += 1;
                if meta.local {
                    self.flows[meta.owner as usize].leave_queue();
                }
                OfferResult::Queued
            }
        }
    }

    pub(crate) fn flow_timer(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if flow.timer_at.is_some_and(|at| at <= self.now) {
            flow.timer_at = None;
        }
        if flow.established.is_none() {
            if flow.timer_at.is_none() {
                self.send_syn(index);
            }
            return;
        }
        if flow.sender.timeout().is_some_and(|at| at <= self.now) {
            flow.sender.on_timeout(self.now);
        }
        self.flow_serve(index);
    }

    /// The pacer lets the next segment go.
    pub(crate) fn flow_paced(&mut self, index: usize) {
        self.flows[index].paced_at = None;
        self.flow_serve(index);
    }

    /// The application runs when all is taken in that came in the same instant.
    pub(crate) fn flow_application_writes(&mut self, index: usize) {
        self.flows[index].sender.application_writes();
        self.flow_serve(index);
        // What it wrote did not fill the window: there is more memory for it.
        let sender = &mut self.flows[index].sender;
        if sender.in_flight() < sender.window.cwnd && sender.wakes_application() {
            self.events.push(self.now, Kind::Write, index);
        }
    }

    /// A local flow may send again: from the loop, not from inside another flow's call.
    pub(crate) fn flow_wakes(&mut self, index: usize) {
        self.events.push(self.now, Kind::Timer, index);
    }

    /// Sends what may be sent and sets the timer.
    fn flow_serve(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if self.now >= flow.spec.stop {
            flow.sender.close(flow.spec.drains);
        }
        loop {
            let flow = &mut self.flows[index];
            let room = flow.has_room();
            let Some(segment) = flow.sender.poll(self.now, room) else {
                flow.starved = !room;
                break;
            };
            self.send_segment(index, segment);
        }
        let flow = &mut self.flows[index];
        if let (Some(due), None) = (flow.sender.paced_until, flow.paced_at) {
            flow.paced_at = Some(due);
            self.events.push(due, Kind::Pace, index);
        }
        if let Some(due) = flow.sender.timeout()
            && flow.timer_at.is_none_or(|pending| due < pending)
        {
            flow.timer_at = Some(due);
            self.events.push(due, Kind::Timer, index);
        }
    }

    fn send_segment(&mut self, index: usize, segment: Segment) {
        let ack = self.flows[index].half.map_or(1, |half| self.flows[half.peer as usize].heard_byte());
        let flow = &mut self.flows[index];
        let Segment { seq, again, cwr, push, fin } = segment;
        // Retransmissions are not ECN-capable (RFC 3168 section 6.1.5); for a scalable sender they are.
        let ect = if again && !flow.spec.control.is_scalable() { 0 } else { flow.spec.ecn as u8 };
        let payload = flow.writes.payload(seq);
        let push = push && payload > 0;
        let fields = Fields {
            frame: flow.data.frame(payload),
            dsfield: flow.spec.dsfield & !3 | ect,
            seq: flow.writes.number(seq),
            ack,
            flags: ACK | if cwr { CWR } else { 0 } | if push { PSH } else { 0 } | if fin { FIN } else { 0 },
            options: 12,
        };
        let local = flow.spec.local;
        flow.in_queue += u32::from(local);
        let (role, owner, sent, stamp) = (Role::Data, index as u32, flow.echo, stamp(self.now));
        let meta = TransportMeta {
            role,
            owner,
            seq,
            cwr,
            push,
            fin,
            local,
            sent,
            stamp,
            ..TransportMeta::default()
        };
        let (packet, path) = (flow.data.packet(&mut self.pool, fields), flow.spec.forward);
        let offer = self.put(packet, meta, path);
        if local && offer != OfferResult::Queued {
            self.flows[index].sender.on_local_congestion(self.now, segment, offer == OfferResult::Dropped);
        }
    }

    fn send_ack(&mut self, index: usize, ack: AckSegment) {
        let seq = self.flows[index].half.map_or(1, |half| self.flows[half.peer as usize].next_byte());
        let flow = &mut self.flows[index];
        let sack = if ack.blocks == 0 { 0 } else { 4 + 8 * ack.blocks };
        // A receiver of FIN closes too.
        let fin = flow.writes.is_over(ack.ack);
        let fields = Fields {
            frame: flow.acks.frame(u32::from(sack)),
            dsfield: flow.spec.dsfield & !3,
            seq,
            ack: flow.writes.number(ack.ack),
            flags: ACK | if ack.ece { ECE } else { 0 } | if fin { FIN } else { 0 },
            options: 12 + sack,
        };
        let meta = TransportMeta {
            role: Role::Ack,
            owner: index as u32,
            ack,
            sent: self.now,
            ..TransportMeta::default()
        };
        let (packet, path) = (flow.acks.packet(&mut self.pool, fields), flow.spec.back);
        self.put(packet, meta, path);
    }

    pub(crate) fn flow_delayed_ack(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        // An earlier one may have taken its place.
        if flow.delayed_at != Some(self.now) {
            return;
        }
        flow.delayed_at = None;
        if let Some(ack) = flow.receiver.on_timer(self.now) {
            self.send_ack(index, ack);
        }
        self.arm_delayed(index);
    }

    fn arm_delayed(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if let Some(due) = flow.receiver.due
            && flow.delayed_at.is_none_or(|pending| due < pending)
        {
            flow.delayed_at = Some(due);
            self.events.push(due, Kind::DelayedAck, index);
        }
    }

    pub(crate) fn flow_deliver(&mut self, pkt: Pkt, transport: TransportMeta) {
        let marked = self.pool.meta(&pkt).ecn() == 3;
        let seen = if transport.role == Role::Syn { Ends::seen(self.pool.head(&pkt)) } else { None };
        self.discard(pkt);
        let index = transport.owner as usize;
        match transport.role {
            Role::Data => {
                let flow = &mut self.flows[index];
                let echo = (transport.sent.0 > 0).then_some(transport.sent);
                if let Some(ack) = flow.receiver.on_mark(marked) {
                    self.send_ack(index, ack);
                }
                let flow = &mut self.flows[index];
                // A receiver of pushed data is about to send a reply, and lets the acknowledgement ride on
                // it.
                let push = transport.fin || transport.push && flow.half.is_none();
                let marks = Marks { ce: marked, cwr: transport.cwr, push, stamp: transport.stamp };
                match flow.receiver.on_segment(self.now, transport.seq, marks, echo) {
                    Some(ack) => self.send_ack(index, ack),
                    None => self.arm_delayed(index),
                }
                self.flow_listens(index);
            }
            Role::Ack => {
                let flow = &mut self.flows[index];
                flow.echo = flow.echo.max(transport.sent);
                flow.sender.on_ack(self.now, &transport.ack);
                let over =
                    flow.writes.is_over(flow.sender.una) && !core::mem::replace(&mut flow.closed, true);
                if flow.finished.is_none() && flow.sender.is_done() {
                    flow.finished = Some(self.now);
                }
                if over {
                    self.send_bare(index);
                }
                self.flow_serve(index);
                if self.flows[index].sender.wakes_application() {
                    self.events.push(self.now, Kind::Write, index);
                }
            }
            Role::Syn => {
                self.reply_on_flow(index, seen);
                let flow = &mut self.flows[index];
                flow.answered_at = self.now;
                let flags = SYN | ACK | if flow.spec.ecn != EcnCodepoint::Off { ECE } else { 0 };
                let fields =
                    Fields { dsfield: flow.spec.dsfield, flags, options: 20, ack: 1, ..Fields::default() };
                let by_sender = flow.spec.called;
                self.put_syn(index, Role::SynAck, fields, by_sender, transport.seq);
            }
            Role::SynAck if self.flows[index].spec.called => self.acknowledge_handshake(index),
            Role::Bare if self.flows[index].spec.called => {
                self.flows[index].echo = transport.sent;
                self.is_called(index);
            }
            Role::SynAck => {
                self.flows[index].echo = transport.sent;
                self.establish(index, transport.seq);
            }
            _ => {}
        }
    }

    /// The reply to one of the SYNs has come. Its timestamp identifies the SYN (RFC 7323), so the round trip
    /// is known. Where that is neither the first nor the second, the window begins at one (RFC 5681 section
    /// 3.1); the oracle's Linux ignores a single lost SYN.
    fn establish(&mut self, index: usize, number: u32) {
        let flow = &mut self.flows[index];
        if flow.established.is_some() {
            return;
        }
        flow.established = Some(self.now);
        let rtt = self.now.since(flow.syns.get(number as usize).copied().unwrap_or(self.now));
        flow.sender.on_handshake(self.now, rtt);
        if number > 1 {
            flow.sender.window.cwnd = 1;
        }
        flow.receiver.on_handshake(rtt);
        let half = flow.half;
        self.send_bare(index);
        if let Some(half) = half {
            // The handshake is the first sample of both sides.
            let peer = &mut self.flows[half.peer as usize];
            peer.established = Some(self.now);
            peer.sender.on_handshake(self.now, rtt);
            peer.receiver.on_handshake(rtt);
            self.transaction_connects(half);
        } else if self.sampling.is_some() {
            self.events.push(self.now, Kind::Sample, index);
        }
        self.flow_serve(index);
    }

    /// An acknowledgement from the sender's side that needs no reply: of the handshake, and of the other
    /// side's FIN.
    fn send_bare(&mut self, index: usize) {
        let ends = self.flows[index].half.map_or(1, |half| self.flows[half.peer as usize].heard_byte());
        let flow = &mut self.flows[index];
        let ack = ends.wrapping_add(u32::from(flow.closed));
        let (frame, seq) = (flow.data.frame(0), flow.next_byte());
        let fields = Fields { frame, dsfield: flow.spec.dsfield, flags: ACK, options: 12, seq, ack };
        flow.in_queue += u32::from(flow.spec.local);
        let meta = TransportMeta { owner: index as u32, local: flow.spec.local, ..TransportMeta::default() };
        let (packet, path) = (flow.data.packet(&mut self.pool, fields), flow.spec.forward);
        self.put(packet, meta, path);
    }

    /// The receiver, which opened the connection, ends the handshake.
    fn acknowledge_handshake(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let frame = flow.acks.frame(0);
        let fields = Fields { frame, dsfield: flow.spec.dsfield, flags: ACK, options: 12, seq: 1, ack: 1 };
        let meta = TransportMeta { owner: index as u32, sent: self.now, ..TransportMeta::default() };
        let (packet, path) = (flow.acks.packet(&mut self.pool, fields), flow.spec.back);
        self.put(packet, meta, path);
    }

    /// The sender learns that the connection is established which the receiver opened.
    fn is_called(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        if flow.established.is_some() {
            return;
        }
        flow.established = Some(self.now);
        let handshake = self.now.since(flow.answered_at);
        flow.sender.on_handshake(self.now, handshake);
        flow.receiver.on_handshake(handshake);
        if self.sampling.is_some() {
            self.events.push(self.now, Kind::Sample, index);
        }
        self.flow_serve(index);
    }

    /// The side that was called answers under the addresses it was called by.
    fn reply_on_flow(&mut self, index: usize, seen: Option<Ends>) {
        let flow = &mut self.flows[index];
        let first = !core::mem::replace(&mut flow.accepted, true);
        let Some(seen) = seen.filter(|_| first) else { return };
        if flow.spec.called {
            flow.data = Template::tcp(seen.back());
            return;
        }
        flow.acks = Template::tcp(seen.back());
        if let Some(half) = flow.half {
            self.flows[half.peer as usize].data = Template::tcp(seen.back());
        }
    }

    /// Tells a transaction what arrived whole.
    fn flow_listens(&mut self, index: usize) {
        let flow = &mut self.flows[index];
        let Some(half) = flow.half else { return };
        let complete = flow.writes.complete(flow.receiver.next);
        let messages = complete - core::mem::replace(&mut flow.heard, complete);
        for _ in 0..messages {
            self.transaction_hears(half);
        }
    }

    /// Writes a message into one direction of a transaction's connection; after the last one the speaker
    /// closes.
    pub(crate) fn flow_writes(&mut self, index: usize, bytes: u64, is_last: bool) {
        let flow = &mut self.flows[index];
        let total = flow.writes.write(Some(bytes));
        flow.sender.extend(total);
        self.flow_serve(index);
        if is_last {
            self.flows[index].close();
            self.flow_serve(index);
        }
    }

    pub(crate) fn flow_sample(&mut self, index: usize, interval: Nanos) {
        let flow = &mut self.flows[index];
        let Some(established) = flow.established else { return };
        if self.now >= flow.spec.stop {
            return;
        }
        flow.samples.push(FlowSample {
            at: self.now.since(established),
            acked: flow.acked(),
            cwnd: flow.sender.window.cwnd,
            srtt: flow.sender.rtt.smoothed(),
            retransmissions: flow.sender.retransmissions,
        });
        self.events.push(self.now + Nanos(interval.0.max(1)), Kind::Sample, index);
    }
}
