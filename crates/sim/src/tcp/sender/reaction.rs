//! What the sender makes of losses and marks: its states and its window, reduced in proportion (RFC 6937) or
//! set by a model of the path.

use super::{AckInfo, LOST, Prr, RETRANS, SACKED, Sender, State};
use crate::tcp::bbr::{Delivery, LossState};
use crate::tcp::cc::{Acked, Cause};
use crate::tcp::clock::timer;
use crate::tcp::receiver::AckSegment;
use tidegate_packet::Time;

impl Sender {
    /// The state machine and the window.
    pub(super) fn react(&mut self, acked: &Acked, ack: &AckSegment, events: AckInfo) {
        let advanced = events.advanced;
        let ece = ack.ece;
        self.window.on_echo(acked, ece);
        if self.state == State::Loss {
            self.check_timeout_undo(ack, advanced, events.fresh, events.sacked);
        }
        // A reduction for ECN ends only with the segment that carried CWR: before that every echo is an old
        // one.
        let over = self.una > self.high_seq || self.una == self.high_seq && self.state != State::Reduced;
        if self.state != State::Open && over && advanced {
            let undone = self.state != State::Reduced && self.check_recovery_undo(ack);
            if self.state != State::Loss && self.model.is_none() && !undone {
                self.window.cwnd = self.window.ssthresh;
            }
            if !undone && self.state != State::Reduced {
                self.narrow();
            }
            self.state = State::Open;
        }
        let waits = self.state == State::Recovery && advanced && self.check_partial_ack(ack);
        self.check_duplicate_sacks();
        // A recovery that has just ended does not make the next loss a hasty one.
        let lost = !waits && self.detect_losses(acked.now);
        // A retransmission after a timeout is lost once more: that is congestion again (the recorded runs
        // reduce there).
        let anew = self.state == State::Loss && self.lost_again;
        if self.lost_out > 0 && (anew || matches!(self.state, State::Open | State::Reduced)) {
            self.enter(State::Recovery, Cause::Loss);
        } else if ece && self.config.ecn && self.state == State::Open {
            self.enter(State::Reduced, Cause::Mark);
        }
        self.forget_resent();
        if self.model.is_some() {
            return;
        }
        match self.state {
            State::Reduced | State::Recovery => self.reduce(acked.segments, advanced, lost),
            State::Open | State::Loss => {
                if advanced && self.is_limited() {
                    self.window.grow(acked);
                }
            }
        }
    }

    pub(super) fn enter(&mut self, state: State, cause: Cause) {
        // From a reduction in flight into recovery there is no second one (RFC 3168 section 6.1.2).
        let anew = matches!(self.state, State::Open | State::Loss);
        match state {
            State::Recovery => self.remember(anew.then(|| self.window.threshold_worth())),
            _ => self.remember_nothing(),
        }
        if anew {
            self.probed = None;
            // Every reduction is reported, also that for a loss (RFC 3168 section 6.1.2).
            self.send_cwr = self.config.ecn;
            self.prr = Prr { prior: self.window.cwnd, ..Prr::default() };
            match &mut self.model {
                Some(model) => model.bbr.on_loss_event(self.window.cwnd, false),
                None => self.window.on_congestion(cause),
            }
            self.reductions += 1;
        }
        self.high_seq = self.next;
        self.state = state;
    }

    /// Proportional rate reduction (RFC 6937 section 3).
    pub(super) fn reduce(&mut self, delivered: u32, advanced: bool, lost: bool) {
        if delivered == 0 || self.prr.prior == 0 {
            return;
        }
        let prr = &mut self.prr;
        prr.delivered += delivered;
        let (out, target) = (prr.out, self.window.ssthresh);
        let (sent, prior) = (prr.delivered, prr.prior);
        let pipe = self.in_flight();
        let mut allow = if pipe > target {
            (u64::from(sent) * u64::from(target)).div_ceil(u64::from(prior)).saturating_sub(u64::from(out))
                as u32
        } else {
            let mut limit = sent.saturating_sub(out).max(delivered);
            if advanced && !lost {
                limit += 1;
            }
            limit.min(target - pipe)
        };
        if out == 0 {
            allow = allow.max(1);
        }
        self.window.cwnd = pipe + allow;
    }

    /// A probe that repaired a loss hides it: that counts as congestion (RFC 8985 section 7.4), unless the
    /// receiver reports that the segment came twice.
    pub(super) fn check_tail_loss_probe(&mut self, ack: &AckSegment) {
        let Some((end, again)) = self.probed.filter(|&(end, _)| ack.ack >= end) else { return };
        if !again || ack.twice.is_some() {
            self.probed = None;
        } else if ack.ack > end {
            self.probed = None;
            if self.state == State::Open && self.model.is_none() {
                self.window.on_congestion(Cause::Loss);
                self.reductions += 1;
                self.window.cwnd = self.window.ssthresh;
            }
        }
    }

    /// Lets the model of the path set the window.
    pub(super) fn follow_model(&mut self, acked: &Acked, prior_in_flight: u32, lost: u32) {
        let (in_flight, shortest) = (self.in_flight(), self.rtt.min.unwrap_or_default());
        let Some(model) = &mut self.model else { return };
        let delivery = Delivery {
            now: acked.now,
            total: model.rate.delivered,
            segments: acked.segments,
            lost,
            in_flight,
            prior_in_flight,
            departs: self.pacer.as_ref().and_then(|pacer| pacer.wait(acked.now)).unwrap_or(acked.now),
            rtt: acked.rtt,
            sample: model.rate.sample(shortest),
            problem: match self.state {
                State::Open | State::Reduced => LossState::None,
                State::Recovery => LossState::Recovery,
                State::Loss => LossState::Timeout,
            },
        };
        self.window.cwnd = model.bbr.on_ack(&delivery, self.window.cwnd);
        if model.bbr.is_probing_rtt() {
            model.rate.limit(in_flight);
        }
    }

    pub(super) fn on_rto(&mut self, now: Time) {
        self.rto_at = None;
        if self.next == self.una {
            return;
        }
        self.timeouts += 1;
        let first = matches!(self.state, State::Open | State::Reduced);
        self.suspects = first || self.backoff > 0;
        // Once for what is out, and again when some of it has arrived since the last timeout.
        if self.state == State::Open
            || self.una >= self.high_seq
            || self.state == State::Loss && self.backoff == 0
        {
            let worth = if first && self.state == State::Reduced {
                self.window.ssthresh
            } else {
                self.window.threshold_worth()
            };
            self.remember(Some(worth));
            match &mut self.model {
                Some(model) => model.bbr.on_loss_event(self.window.cwnd, true),
                None => self.window.on_congestion(Cause::Loss),
            }
        } else if let Some(model) = &mut self.model {
            model.bbr.on_loss_event(self.window.cwnd, true);
        }
        self.mark_overdue_lost(now);
        self.window.on_timeout(self.in_flight());
        self.state = State::Loss;
        self.high_seq = self.next;
        self.send_cwr = self.config.ecn;
        self.prefer_new = false;
        self.hint = self.una;
        self.backoff = (self.backoff + 1).min(16);
        self.probe_at = None;
        self.probing = false;
        self.probed = None;
        self.refused = false;
        self.rto_at = Some(timer(now, self.backed_off()));
    }

    /// At a timeout the oldest segment is lost, and of the others those whose time is over (RFC 8985 section
    /// 6.3): segments sent less than a round trip ago are still in flight.
    fn mark_overdue_lost(&mut self, now: Time) {
        let due = self.rack.rtt;
        let head = self.segs.front().map(|seg| seg.order);
        for seg in &mut self.segs {
            if seg.flags & SACKED != 0 || head != Some(seg.order) && now.since(seg.at) < due {
                continue;
            }
            self.retrans_out -= u32::from(seg.flags & RETRANS != 0);
            self.lost_out += u32::from(seg.flags & LOST == 0);
            seg.flags = seg.flags & !RETRANS | LOST;
        }
        self.scan = self.una;
    }
}
