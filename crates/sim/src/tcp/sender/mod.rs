//! The sending half of a TCP connection, without IO: acknowledgements and timeouts in, segments out.
//!
//! Loss detection is RACK with a tail-loss probe (RFC 8985) over a SACK scoreboard (RFC 2018), reduction is
//! proportional (RFC 6937), the timeout RFC 6298, ECN RFC 3168. Segments are counted, not bytes: all are of
//! one size. BBR's sending follows a model of the path, others' may be paced. What turns out to have been
//! needless is taken back.

mod invariants;
mod losses;
mod reaction;
mod reduction;
mod socket;
mod timers;
mod undo;

use super::bbr::Bbr;
use super::cc::{Acked, Cause, CongestionControl, Window};
use super::clock::stamp;
use super::rate::{DeliveryRate, Pacer};
use super::receiver::AckSegment;
use super::rtt::Rtt;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use reduction::Undo;
use socket::Socket;
use tidegate_packet::{Nanos, Seeded, Time};

/// Segments reported beyond a hole that make it a loss while no reordering was ever seen (RFC 8985 section
/// 6.2).
const DUP_THRESH: u32 = 3;
/// What a tail-loss probe allows for the other side's delayed acknowledgement when one segment is out.
const WORST_DELAYED_ACK: Nanos = Nanos::millis(200);
/// What it allows for otherwise, and what a reordered segment is given beyond its time: two ticks.
const PROBE_SLACK: Nanos = Nanos::millis(2);
/// How long a sender whose only segment its own machine refused waits before it tries again.
const LOCAL_RETRY: Nanos = Nanos::millis(500);

const SACKED: u8 = 1;
const LOST: u8 = 2;
/// A retransmission of it is in flight.
const RETRANS: u8 = 4;
/// It was retransmitted at some time, so its round trip is ambiguous (Karn).
const EVER: u8 = 8;
/// Carries PSH.
const PUSHED: u8 = 16;

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Time,
    /// Which transmission of the flow it was: what was sent in one nanosecond still has an order.
    order: u32,
    flags: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Reducing because of ECN or a full queue on the own machine.
    Reduced,
    Recovery,
    /// After a timeout.
    Loss,
}

#[derive(Clone, Copy, Debug, Default)]
struct Rack {
    order: u32,
    rtt: Nanos,
    /// Rounds that showed a needless retransmission since the path was seen to reorder: each widens what a
    /// late segment is given.
    rounds: u32,
    /// The last of them lasts until this segment is acknowledged.
    round_end: u32,
    /// Recoveries until they are forgotten.
    lasts: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Prr {
    delivered: u32,
    out: u32,
    prior: u32,
}

/// The round-trip samples of one acknowledgement.
#[derive(Clone, Copy, Debug, Default)]
struct Trips {
    /// Of the first and the last segment it reports that were sent once.
    first: Option<Nanos>,
    last: Option<Nanos>,
    /// The first and last round trip among the segments that SACK reports.
    sacked: Option<(Nanos, Nanos)>,
    /// A retransmitted segment was acknowledged in order: only a timestamp gives its round trip (RFC 7323).
    again: bool,
    /// One past the highest segment that SACK had reported before.
    highest: u32,
    /// Something was reported that was sent before the last timeout, and never again.
    fresh: bool,
    /// The timestamp that the acknowledgement echoes.
    echo: u32,
}

impl Trips {
    fn add(&mut self, rtt: Nanos) {
        self.first = self.first.or(Some(rtt));
        self.last = Some(rtt);
    }

    fn add_sacked(&mut self, rtt: Nanos) {
        self.sacked = Some((self.sacked.map_or(rtt, |known| known.0), rtt));
    }

    /// The sample for the timeout, and the one for congestion control: the first and the last segment
    /// reported that was sent once, otherwise the echo of the timestamp.
    fn samples(&self, now: Time, ack: &AckSegment, advanced: bool) -> (Option<Nanos>, Option<Nanos>) {
        let ordered = self.first.zip(self.last).filter(|_| !self.again);
        let known = ordered.or(self.sacked).unzip();
        let echo = || Nanos::millis(u64::from(stamp(now).saturating_sub(ack.echo).max(1)));
        let sample = known.0.or_else(|| (advanced && ack.echo > 0).then(echo));
        (sample, self.sacked.map(|known| known.1).or(known.1))
    }
}

/// What an acknowledgement reports beside the number of segments.
#[derive(Clone, Copy, Debug)]
struct AckInfo {
    /// More is acknowledged in order.
    advanced: bool,
    /// It reports something sent before the last timeout, and never again.
    fresh: bool,
    /// SACK reports something.
    sacked: bool,
}

/// A segment to put on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) seq: u32,
    pub(crate) again: bool,
    /// Carries CWR (RFC 3168).
    pub(crate) cwr: bool,
    /// Carries PSH (RFC 9293 section 3.9.1.2): with it ends what the application has written so far.
    pub(crate) push: bool,
    /// Carries FIN: the end of the data in this direction.
    pub(crate) fin: bool,
}

/// How a sender behaves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Config {
    pub(crate) control: CongestionControl,
    pub(crate) initial_window: u32,
    /// What the receiver lets be out, in segments.
    pub(crate) receive_window: u32,
    /// Memory that the socket has at most for what is not acknowledged.
    pub(crate) send_memory: u64,
    /// How many segments there are to send in all.
    pub(crate) total: u32,
    pub(crate) ecn: bool,
    /// Payload bytes of a segment.
    pub(crate) mss: u32,
    /// Segments are spread over the round trip even where the congestion control does not ask for it.
    pub(crate) pacing: bool,
}

/// A congestion control that models the path, with what it measures.
#[derive(Clone, Debug)]
struct Model {
    bbr: Bbr,
    rate: DeliveryRate,
}

#[derive(Clone, Debug)]
pub(crate) struct Sender {
    config: Config,
    pub(crate) window: Window,
    pub(crate) rtt: Rtt,
    model: Option<Box<Model>>,
    pacer: Option<Pacer>,
    /// The pacer holds the next segment back until then.
    pub(crate) paced_until: Option<Time>,
    state: State,
    pub(crate) una: u32,
    pub(crate) next: u32,
    segs: VecDeque<Sent>,
    /// What SACK has reported, as ordered ranges beyond `una`.
    known: VecDeque<(u32, u32)>,
    sacked_out: u32,
    lost_out: u32,
    retrans_out: u32,
    /// One past the highest segment ever reported by SACK.
    sacked_high: u32,
    high_seq: u32,
    rack: Rack,
    reordered: bool,
    /// The acknowledgement at hand showed that a retransmission was lost.
    lost_again: bool,
    /// Below this no segment sent once is unjudged.
    scan: u32,
    /// Below this no segment waits for retransmission.
    hint: u32,
    /// Retransmissions in flight: segment and order, in order.
    resent: VecDeque<(u32, u32)>,
    /// Transmissions so far.
    order: u32,
    prr: Prr,
    send_cwr: bool,
    /// The application has closed: the last segment carries FIN.
    ends: bool,
    socket: Socket,
    rto_at: Option<Time>,
    backoff: u32,
    probe_at: Option<Time>,
    probing: bool,
    /// What the end of the data was when a probe was sent, until it is known the outcome of it; and whether
    /// that repeated the last segment.
    probed: Option<(u32, bool)>,
    undo: Undo,
    /// The last timeout may have been needless (F-RTO, RFC 5682).
    suspects: bool,
    /// Until the next acknowledgement new data go before what is assumed lost.
    prefer_new: bool,
    /// Until the next acknowledgement nothing is sent again.
    only_new: bool,
    reorder_at: Option<Time>,
    retry_at: Option<Time>,
    /// Refused by the own machine: wait for an acknowledgement or a timer.
    refused: bool,
    /// Was the window what limited the last flight?
    limited: bool,
    max_out: u32,
    usage_end: u32,
    /// Segments ever assumed lost.
    losses: u64,
    /// Segments retransmitted.
    pub(crate) retransmissions: u64,
    /// Timeouts taken.
    pub(crate) timeouts: u64,
    /// Reductions of the window, timeouts not counted.
    pub(crate) reductions: u64,
    /// Reductions and timeouts taken back.
    pub(crate) undone: u64,
}

impl Sender {
    pub(crate) fn new(config: Config, random: Seeded) -> Sender {
        let models = config.control == CongestionControl::Bbr;
        let bbr = || Bbr::new(config.initial_window, config.mss, random);
        Sender {
            config,
            window: Window::new(config.control, config.initial_window),
            rtt: Rtt::default(),
            model: models.then(|| Box::new(Model { bbr: bbr(), rate: DeliveryRate::default() })),
            pacer: (models || config.pacing || config.control == CongestionControl::Prague)
                .then(Pacer::default),
            paced_until: None,
            state: State::Open,
            una: 0,
            next: 0,
            segs: VecDeque::new(),
            known: VecDeque::new(),
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            sacked_high: 0,
            high_seq: 0,
            rack: Rack::default(),
            reordered: false,
            lost_again: false,
            scan: 0,
            hint: 0,
            resent: VecDeque::new(),
            order: 0,
            prr: Prr::default(),
            send_cwr: false,
            ends: false,
            socket: Socket::new(config.send_memory, config.mss, models, config.initial_window),
            rto_at: None,
            backoff: 0,
            probe_at: None,
            probing: false,
            probed: None,
            undo: Undo::default(),
            suspects: false,
            prefer_new: false,
            only_new: false,
            reorder_at: None,
            retry_at: None,
            refused: false,
            limited: false,
            max_out: 0,
            usage_end: 0,
            losses: 0,
            retransmissions: 0,
            timeouts: 0,
            reductions: 0,
            undone: 0,
        }
    }

    /// The connection is established; `rtt`: how long the handshake took.
    pub(crate) fn on_handshake(&mut self, now: Time, rtt: Nanos) {
        self.rtt.sample(rtt, self.una, self.next);
        if let Some(model) = &mut self.model {
            model.bbr.on_handshake(now, rtt);
            // The SYN counts as delivered.
            model.rate.delivered = 1;
        }
    }

    /// Segments per second at which they are spread, or would be: the model's, or twice what the window gives
    /// in slow start and 1.2 times that afterwards.
    pub(crate) fn pacing_rate(&self) -> f64 {
        if let Some(model) = &self.model {
            return model.bbr.pacing_rate();
        }
        let window = &self.window;
        let factor = if window.cwnd < window.ssthresh / 2 { 2.0 } else { 1.2 };
        factor * f64::from(window.cwnd.max(self.next - self.una))
            / self.rtt.smoothed().as_secs_f64().max(1e-6)
    }

    /// There is more to send: so many segments in all.
    pub(crate) fn extend(&mut self, total: u32) {
        self.config.total = total;
    }

    /// The application closes: FIN goes with the last segment that waits, or in one of its own. Returns how
    /// many segments there are now in all.
    pub(crate) fn end(&mut self) -> u32 {
        if !self.ends && self.next >= self.config.total {
            self.config.total += 1;
        }
        self.ends = true;
        self.config.total
    }

    /// Nothing more is written, and nothing more sent, unless what is written already is (`drains`): what is
    /// out is still delivered.
    pub(crate) fn close(&mut self, drains: bool) {
        let written = if drains { self.socket.end } else { 0 };
        self.config.total = self.config.total.min(self.next.max(written));
        self.ends = false;
    }

    fn is_last(&self, seq: u32) -> bool {
        self.ends && seq + 1 == self.config.total
    }

    /// Everything there was to send has been acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.una >= self.config.total
    }

    pub(crate) fn in_flight(&self) -> u32 {
        (self.next - self.una + self.retrans_out).saturating_sub(self.sacked_out + self.lost_out)
    }

    /// When [`Sender::on_timeout`] wants to be called; changes with every call of the other functions.
    pub(crate) fn timeout(&self) -> Option<Time> {
        [self.rto_at, self.probe_at, self.reorder_at, self.retry_at].into_iter().flatten().min()
    }

    /// An acknowledgement.
    pub(crate) fn on_ack(&mut self, now: Time, ack: &AckSegment) {
        if ack.ack > self.next {
            return;
        }
        self.refused = false;
        self.prefer_new = false;
        self.only_new = false;
        let (before, prior_in_flight, losses) = (self.una, self.in_flight(), self.losses);
        let mut trips = Trips { highest: self.sacked_high, echo: ack.echo, ..Trips::default() };
        let mut sacked = 0;
        // The oldest block first: mostly the order of sequence, so that a report of old news is not taken for
        // reordering.
        for &(start, end) in ack.sack[..usize::from(ack.blocks)].iter().rev() {
            sacked += self.on_block(now, start.max(ack.ack), end, &mut trips);
        }
        let mut delivered = sacked + self.on_cumulative(now, ack.ack, &mut trips);
        let advanced = self.una > before;
        if let Some(seq) = ack.twice {
            // What came twice was delivered twice: the oracle's windows grow by it, and a reduction lets out
            // one more.
            delivered += 1;
            self.undo.on_twice(seq);
            self.widen(seq);
        }
        let (sample, rtt) = trips.samples(now, ack, advanced);
        if let Some(rtt) = sample {
            self.rtt.sample(rtt, self.una, self.next);
        }
        let acked = Acked { now, segments: delivered, una: self.una, next: self.next, rtt };
        self.window.on_rtt(&acked);
        if advanced {
            self.backoff = 0;
            self.probing = false;
        }
        self.check_tail_loss_probe(ack);
        let events = AckInfo { advanced, fresh: trips.fresh, sacked: sacked > 0 };
        self.react(&acked, ack, events);
        self.follow_model(&acked, prior_in_flight, (self.losses - losses) as u32);
        // A report of what was sent before the oldest was last sent does not put the timeout off.
        let later = |rtt: Nanos| self.segs.front().is_some_and(|head| rtt > now.since(head.at));
        if advanced || delivered > 0 && trips.sacked.is_some_and(|(first, _)| later(first)) {
            self.arm(now);
        }
        self.check();
    }

    /// After what an acknowledgement let out: whether the application is to be woken now.
    pub(crate) fn wakes_application(&mut self) -> bool {
        self.socket.look(self.una, self.sacked_out, self.window.cwnd)
    }

    /// The application writes all there is space for.
    pub(crate) fn application_writes(&mut self) {
        self.socket.write(self.una, self.sacked_out);
    }

    /// A timer. What it makes ready, [`Sender::poll`] sends.
    pub(crate) fn on_timeout(&mut self, now: Time) {
        self.on_due(now);
        self.check();
    }

    fn on_due(&mut self, now: Time) {
        if self.retry_at.is_some_and(|at| at <= now) {
            self.retry_at = None;
            self.refused = false;
        }
        if self.reorder_at.is_some_and(|at| at <= now) {
            self.reorder_at = None;
            let lost = self.detect_losses(now);
            if lost && self.state != State::Recovery {
                self.enter(State::Recovery, Cause::Loss);
                if self.model.is_none() {
                    // Counted as if one had been delivered.
                    self.reduce(1, false, true);
                }
            }
        }
        if self.probe_at.is_some_and(|at| at <= now) {
            self.probe_is_due(now);
            return;
        }
        if self.rto_at.is_some_and(|at| at <= now) {
            self.on_rto(now);
        }
    }

    /// The next segment to send, if window and data allow one. `room`: the own machine's queue has space for
    /// this flow.
    #[inline]
    pub(crate) fn poll(&mut self, now: Time, room: bool) -> Option<Segment> {
        if self.refused || !room {
            self.note_usage(false);
            return None;
        }
        self.paced_until = self.pacer.as_ref().and_then(|pacer| pacer.wait(now));
        if self.paced_until.is_some() {
            self.note_usage(false);
            return None;
        }
        let fits = self.in_flight() < self.window.cwnd;
        if fits
            && self.lost_out > 0
            && !self.only_new
            && !self.new_goes_first()
            && let Some(seq) = self.next_lost()
        {
            return Some(self.resend(now, seq));
        }
        let may = self.has_new();
        if core::mem::take(&mut self.probing) && matches!(self.state, State::Open | State::Reduced) {
            return self.send_probe(now, may);
        }
        // The segment with FIN does not wait for the window: the recorded runs send it with the one before
        // it.
        if !fits && !self.is_last(self.next) || !may {
            self.note_usage(!fits);
            self.note_application(fits);
            return None;
        }
        Some(self.send_new(now))
    }

    /// There is something new to send, and the receiver has space for it.
    fn has_new(&self) -> bool {
        self.next < self.config.total.min(self.socket.end)
            && self.next - self.una < self.config.receive_window
    }

    /// After a timeout that may have been spurious, new data go before what is assumed lost; without any, it
    /// counts as needed (RFC 5682 section 3.1, step 2b).
    fn new_goes_first(&mut self) -> bool {
        if self.prefer_new && self.next == self.high_seq && !self.has_new() {
            self.prefer_new = false;
            self.suspects = false;
        }
        self.prefer_new
    }

    /// The application may have no more data while there is space: what is then delivered does not show the
    /// path's rate.
    fn note_application(&mut self, fits: bool) {
        let in_flight = self.in_flight();
        if let Some(model) = &mut self.model
            && fits
            && self.next >= self.config.total.min(self.socket.end)
        {
            model.rate.limit(in_flight);
        }
    }

    /// The own machine dropped some other packet for the one just sent, or refused that one (`gone`): the
    /// sender slows down once, as for ECN; a refused segment counts as not sent.
    pub(crate) fn on_local_congestion(&mut self, now: Time, segment: Segment, gone: bool) {
        if self.state == State::Open {
            self.enter(State::Reduced, Cause::Loss);
        }
        if !gone {
            return;
        }
        self.refused = true;
        if segment.again {
            let at = (segment.seq - self.una) as usize;
            if let Some(seg) = self.segs.get_mut(at) {
                self.retrans_out -= u32::from(seg.flags & RETRANS != 0);
                seg.flags &= !RETRANS;
                self.hint = self.hint.min(segment.seq);
            }
            self.prr.out = self.prr.out.saturating_sub(1);
            self.retransmissions -= 1;
        } else {
            self.segs.pop_back();
            if let Some(model) = &mut self.model {
                model.rate.take_back();
            }
            self.next -= 1;
            if segment.push {
                self.socket.take_back(segment.seq);
            }
            self.prr.out = self.prr.out.saturating_sub(1);
        }
        if self.next == self.una {
            self.rto_at = None;
            self.probe_at = None;
            self.retry_at = Some(now + LOCAL_RETRY);
        }
        self.check();
    }

    fn next_lost(&mut self) -> Option<u32> {
        self.hint = self.hint.max(self.una);
        while self.hint < self.next {
            let flags = self.segs[(self.hint - self.una) as usize].flags;
            if flags & LOST != 0 && flags & RETRANS == 0 {
                return Some(self.hint);
            }
            self.hint += 1;
        }
        None
    }

    fn resend(&mut self, now: Time, seq: u32) -> Segment {
        self.order += 1;
        let seg = &mut self.segs[(seq - self.una) as usize];
        *seg = Sent { at: now, order: self.order, flags: seg.flags | RETRANS | EVER };
        let push = seg.flags & PUSHED != 0;
        self.undo.on_resend(now);
        self.retrans_out += 1;
        self.resent.push_back((seq, self.order));
        self.retransmissions += 1;
        self.after_send(now, seq, true);
        Segment { seq, again: true, cwr: false, push, fin: self.is_last(seq) }
    }

    fn send_new(&mut self, now: Time) -> Segment {
        let seq = self.next;
        self.next += 1;
        self.order += 1;
        let push = self.socket.ends_with(seq) || seq + 1 == self.config.total;
        self.segs.push_back(Sent { at: now, order: self.order, flags: if push { PUSHED } else { 0 } });
        self.after_send(now, seq, false);
        Segment { seq, again: false, cwr: core::mem::take(&mut self.send_cwr), push, fin: self.is_last(seq) }
    }

    fn after_send(&mut self, now: Time, seq: u32, again: bool) {
        self.prr.out += 1;
        if let Some(model) = &mut self.model {
            let idle = self.next == self.una + 1;
            if idle && model.rate.is_app_limited() {
                model.bbr.on_restart();
            }
            model.rate.on_send(now, (seq - self.una) as usize, idle);
        }
        let rate = if self.pacer.is_some() { self.pacing_rate() } else { 0.0 };
        if let Some(pacer) = &mut self.pacer {
            pacer.on_send(now, rate);
        }
        self.arm_for(now, seq, again);
        self.check();
    }

    /// Remembers whether the window was what held the sender back (RFC 7661's question).
    fn note_usage(&mut self, limited: bool) {
        let out = self.next - self.una;
        if self.una >= self.usage_end || limited || out > self.max_out && !self.limited {
            self.max_out = out;
            self.usage_end = self.next;
            self.limited = limited;
        }
    }

    fn is_limited(&self) -> bool {
        self.limited || self.window.in_slow_start() && self.window.cwnd < 2 * self.max_out
    }
}
