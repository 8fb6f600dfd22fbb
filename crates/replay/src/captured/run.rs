//! A capture through one policy.

use super::account::{Account, ExternalError, PacketObserver};
use super::arrivals::{Arrivals, CapturedArrival, Surveyed};
use super::network::{CandidatePolicy, CaptureNetwork};
use super::settings::CaptureSettings;
use tidegate_measure::replayed::{CaptureSummary, ReplayOutcome};
use tidegate_packet::{Nanos, Time};
use tidegate_pcap::CaptureDirection;
use tidegate_trial::START;

/// How long after the last arrival packets may still leave.
const DRAIN: Nanos = Nanos::secs(60);
/// Steps that a chart over the whole capture has at most.
const MOST_STEPS: u64 = 600;

/// The length of a step, for a capture of so many ns.
pub fn step_of(duration: u64) -> u64 {
    let scales =
        [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000, 300_000, 600_000, 3_600_000];
    let fits = scales.iter().map(|ms| ms * 1_000_000).find(|step| duration / step < MOST_STEPS);
    fits.unwrap_or((duration / MOST_STEPS).max(1))
}

/// A capture passing through one policy.
pub struct CaptureRun<'p> {
    candidate: &'p CandidatePolicy,
    options: &'p CaptureSettings,
    surveyed: &'p Surveyed,
    arrivals: Arrivals<'p>,
    passage: Passage<'p>,
}

impl<'p> CaptureRun<'p> {
    /// Nothing has arrived yet.
    pub fn new(
        candidate: &'p CandidatePolicy,
        options: &'p CaptureSettings,
        surveyed: &'p Surveyed,
        seed: u64,
        observer: Option<&'p mut dyn PacketObserver>,
    ) -> CaptureRun<'p> {
        let gateway = CaptureNetwork::new(candidate, options, seed);
        let arrivals = Arrivals::new(surveyed, options, gateway.mtu);
        let step_ns = step_of(surveyed.duration);
        let mut passage = Passage { account: Account::new(&candidate.policy, step_ns, observer), gateway };
        if let Some(observer) = &mut passage.account.observer {
            observer.begin(&passage.gateway);
        }
        CaptureRun { candidate, options, surveyed, arrivals, passage }
    }

    /// The next packet of the capture arrives.
    ///
    /// # Errors
    /// What keeps the observer from going on.
    pub fn packet(&mut self, packet: &tidegate_pcap::CapturedPacket<'_>) -> Result<(), ExternalError> {
        let mut problem = Ok(());
        let passage = &mut self.passage;
        self.arrivals.take(packet, |arrival| {
            if problem.is_ok() {
                problem = passage.arrive(arrival);
            }
        });
        problem
    }

    /// All packets have arrived: their outcome, the facts about the capture, and how many packets were behind
    /// later ones in it.
    ///
    /// # Errors
    /// What keeps the observer from going on.
    pub fn finish(self) -> Result<(ReplayOutcome, CaptureSummary, u64), ExternalError> {
        let CaptureRun { candidate, options, surveyed, arrivals, mut passage } = self;
        passage.drain(Time(START.0 + surveyed.duration))?;
        let steps = (surveyed.duration / step_of(surveyed.duration) + 1) as usize;
        let (out, inward, classes, flows) =
            passage.account.class_outcomes(&arrivals.flows, options.top, steps);
        let outcome = ReplayOutcome {
            name: candidate.name.clone(),
            file: candidate.file.clone(),
            device: candidate.policy.wan.clone(),
            out,
            inward,
            classes,
            flows,
        };
        Ok((outcome, arrivals.summary(), arrivals.late()))
    }
}

/// Packets passing the gateway.
struct Passage<'p> {
    gateway: CaptureNetwork,
    account: Account<'p>,
}

impl Passage<'_> {
    /// Lets time pass to a packet's arrival, and puts it in.
    fn arrive(&mut self, arrival: CapturedArrival) -> Result<(), ExternalError> {
        let now = Time(START.0 + arrival.at);
        self.until(now)?;
        let number = self.account.arrives(&arrival);
        let ways = &self.gateway.paths;
        let path = match (arrival.way, arrival.local) {
            (CaptureDirection::Out, false) => ways.out,
            (CaptureDirection::Out, true) => ways.gateway_out,
            (CaptureDirection::In, false) => ways.inward,
            (CaptureDirection::In, true) => ways.gateway_in,
        };
        if self.gateway.net.inject(arrival.head, arrival.len, path, number).is_none() {
            self.account.refused(&self.gateway, number, now);
        }
        Ok(())
    }

    fn until(&mut self, time: Time) -> Result<(), ExternalError> {
        let Passage { gateway, account } = self;
        gateway.net.run(time);
        let sojourns: Vec<_> = gateway.net.take_sojourns().collect();
        for sojourn in &sojourns {
            account.stayed(gateway, sojourn);
        }
        gateway.net.take_copies().for_each(drop);
        loop {
            let mut arrived = None;
            if !gateway.net.take_arrived(|packet| arrived = Some((packet.owner, packet.at))) {
                break;
            }
            if let Some((number, at)) = arrived {
                account.delivered(gateway, number, at);
            }
        }
        if let Some(observer) = &mut account.observer {
            observer.advanced(time)?;
        }
        Ok(())
    }

    /// Lets the backlog leave.
    fn drain(&mut self, last: Time) -> Result<(), ExternalError> {
        let mut now = last;
        self.until(now)?;
        while self.account.waiting() > 0 && now < last + DRAIN {
            now += Nanos::millis(100);
            self.until(now)?;
        }
        match &mut self.account.observer {
            Some(observer) => observer.advanced(Time::NEVER),
            None => Ok(()),
        }
    }
}
