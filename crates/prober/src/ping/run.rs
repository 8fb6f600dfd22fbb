//! The thread that sends and receives.

use super::plan::{MOST_REQUESTS, PingProgress, PingSchedule, Shared, lock};
use super::requests;
use super::socket::{PingEvent, PingMessage, Socket};
use crate::{Error, ProbeClock};
use std::io;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tidegate_measure::pinged::PingTarget;
use tidegate_sys::wait::Waiter;

/// How long the last answers are waited for at least, and at most, ns. Between them: twice the slowest answer
/// so far.
const PATIENCE: (u64, u64) = (2_000_000_000, 10_000_000_000);
/// How soon a stop is noticed.
const NOTICE: u64 = 50_000_000;
/// The most messages of one target before the next one's are read.
const MOST_AT_ONCE: usize = 256;

/// All targets of a run.
pub(super) struct Run {
    clock: ProbeClock,
    targets: Vec<One>,
    sent: u64,
    /// The slowest answer so far.
    slowest_ns: u64,
}

/// One target.
struct One {
    socket: Socket,
    interval_ns: u64,
    /// When the next request is due; `None`: there is none.
    due: Option<u64>,
    left: Option<u64>,
}

impl Run {
    pub(super) fn new(plans: &[PingSchedule]) -> Result<Run, Error> {
        let mut ones = Vec::new();
        for (n, plan) in plans.iter().enumerate() {
            let socket = Socket::open(plan)?;
            let interval_ns = u64::try_from(plan.interval.as_nanos()).unwrap_or(u64::MAX);
            // Spread over the interval, so that no request waits for another's.
            let first = interval_ns / plans.len() as u64 * n as u64;
            ones.push(One {
                socket,
                interval_ns,
                due: (plan.count != Some(0)).then_some(first),
                left: plan.count,
            });
        }
        Ok(Run { clock: ProbeClock::begin(), targets: ones, sent: 0, slowest_ns: 0 })
    }

    pub(super) fn began_ns(&self) -> u64 {
        self.clock.epoch_ns()
    }

    /// The document's targets, before anything was sent.
    pub(super) fn nothing_yet(&self, plans: &[PingSchedule]) -> PingProgress {
        let target = |(plan, one): (&PingSchedule, &One)| PingTarget {
            id: plan.id.clone(),
            host: plan.host.clone(),
            address: plan.address.to_string(),
            way: plan.way,
            ds_field: plan.ds_field,
            size: one.socket.size(),
            hop_limit: plan.hop_limit,
            interval_ns: one.interval_ns,
            ..PingTarget::default()
        };
        PingProgress {
            targets: plans.iter().zip(&self.targets).map(target).collect(),
            began_ns: self.began_ns(),
            answered_ds_field: vec![None; plans.len()],
            answered_by: vec![None; plans.len()],
            ..PingProgress::default()
        }
    }

    /// Sends and receives until all is done, or it is stopped.
    pub(super) fn go(mut self, shared: &Shared) {
        if let Err(error) = self.exchange(shared) {
            lock(shared).problem = Some(format!("waiting for answers failed: {error}"));
        }
        self.end(shared);
    }

    fn exchange(&mut self, shared: &Shared) -> io::Result<()> {
        let mut waiter = Waiter::new()?;
        for (n, one) in self.targets.iter().enumerate() {
            waiter.add(&one.socket, n as u64)?;
        }
        loop {
            self.send(shared);
            let now = self.clock.now();
            if shared.stop.load(Ordering::Acquire) {
                return Ok(());
            }
            let next = self.targets.iter().filter_map(|one| one.due).min();
            let until = match next {
                Some(due) => due,
                None => match self.timeout_at(shared, now) {
                    Some(until) => until,
                    None => return Ok(()),
                },
            };
            let wait = Duration::from_nanos(until.saturating_sub(now).min(NOTICE));
            let ready: Vec<u64> = waiter.wait(Some(wait))?.collect();
            ready.into_iter().for_each(|n| self.receive(shared, n as usize));
        }
    }

    /// Sends what is due.
    fn send(&mut self, shared: &Shared) {
        for n in 0..self.targets.len() {
            let now = self.clock.now();
            let Some(one) = self.targets.get_mut(n).filter(|one| one.due.is_some_and(|due| due <= now))
            else {
                continue;
            };
            let mut seen = lock(shared);
            let Some(target) = seen.targets.get_mut(n) else { continue };
            let bytes = one.socket.prepare(target.requests.len() as u64);
            let sent_ns = self.clock.now();
            let number = requests::ask(target, sent_ns);
            if let Err(error) = one.socket.send(number, &bytes) {
                requests::fault(target, "this computer", &error.to_string());
            }
            target.passed_over += one.went(now);
            self.sent += 1;
            seen.now_ns = sent_ns;
        }
        if self.sent >= MOST_REQUESTS && self.targets.iter().any(|one| one.due.is_some()) {
            self.targets.iter_mut().for_each(|one| one.due = None);
            lock(shared).problem = Some(format!("more than {MOST_REQUESTS} requests are not kept"));
        }
    }

    /// Until when answers are waited for; `None`: no longer.
    fn timeout_at(&self, shared: &Shared, now: u64) -> Option<u64> {
        let seen = lock(shared);
        let last = seen
            .targets
            .iter()
            .filter_map(|target| target.requests.last())
            .map(|request| request.sent_ns)
            .max()?;
        let patience = self.patience();
        let until = last + patience;
        let waits = seen.targets.iter().any(|target| requests::waits(target, now.saturating_sub(patience)));
        (waits && now < until).then_some(until)
    }

    /// Listens to one of them.
    fn receive(&mut self, shared: &Shared, n: usize) {
        let Some(one) = self.targets.get_mut(n) else { return };
        let mut seen = lock(shared);
        for _ in 0..MOST_AT_ONCE {
            match one.socket.receive() {
                Ok(Some(heard)) => {
                    let at_ns = self.clock.stamped(heard.stamp_ns);
                    let took = note(&mut seen, n, &mut one.socket, &heard, at_ns);
                    self.slowest_ns = self.slowest_ns.max(took.unwrap_or(0));
                }
                Ok(None) => break,
                Err(error) => {
                    seen.problem = Some(format!("a socket broke: {error}"));
                    one.due = None;
                    break;
                }
            }
        }
        seen.clock_steps = self.clock.steps();
        seen.now_ns = self.clock.now();
    }

    /// How long an answer is waited for.
    fn patience(&self) -> u64 {
        (2 * self.slowest_ns).clamp(PATIENCE.0, PATIENCE.1)
    }

    fn end(&self, shared: &Shared) {
        let mut seen = lock(shared);
        seen.now_ns = self.clock.now();
        // After an early end it is unknown whether the last requests are lost.
        if self.targets.iter().any(|one| one.due.is_some()) {
            let since = seen.now_ns.saturating_sub(self.patience());
            seen.targets.iter_mut().for_each(|target| requests::forget_since(target, since));
        }
    }
}

impl One {
    /// A request went: when the next is due. How many are passed over, because we are too late for them; as
    /// many more follow at the end.
    fn went(&mut self, now: u64) -> u64 {
        self.left = self.left.map(|left| left - 1);
        let Some(due) = self.due.filter(|_| self.left != Some(0)) else {
            self.due = None;
            return 0;
        };
        let late = now.saturating_sub(due) / self.interval_ns;
        self.due = Some(due + self.interval_ns * (late + 1));
        late
    }
}

/// Notes what was heard; how long the answer took, if it is one.
fn note(
    seen: &mut PingProgress,
    n: usize,
    socket: &mut Socket,
    heard: &PingMessage,
    at_ns: u64,
) -> Option<u64> {
    let target = seen.targets.get_mut(n)?;
    match &heard.what {
        PingEvent::Answer { which, error, by, ds_field } => {
            let took = requests::answered(target, *which, at_ns)?;
            target.errors_for_answers += u64::from(*error);
            (seen.answered_by[n], seen.answered_ds_field[n]) = (*by, *ds_field);
            Some(took)
        }
        PingEvent::Left(number) => {
            if heard.stamp_ns.is_some() && !requests::left(target, *number, at_ns) {
                socket.distrust_departures();
            }
            None
        }
        PingEvent::Fault { by, what } => {
            requests::fault(target, by, what);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::AddressFamily;

    #[test]
    fn a_late_sender_skips_requests_and_keeps_the_interval() -> Result<(), Error> {
        let mut plan = PingSchedule::new("127.0.0.1", AddressFamily::V4)?;
        plan.way = super::super::PingMethod::Udp(9);
        let mut one = One { socket: Socket::open(&plan)?, interval_ns: 100, due: Some(0), left: Some(4) };
        let mut times = Vec::new();
        for now in [0, 130, 560, 600, 700] {
            if let Some(due) = one.due {
                times.push((due, one.went(now)));
            }
        }
        assert_eq!(times, [(0, 0), (100, 0), (200, 3), (600, 0)]);
        Ok(())
    }
}
