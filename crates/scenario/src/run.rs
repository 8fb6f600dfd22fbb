//! A run under way: its network, its traffic, and what was read so far.

use crate::lay::LaidOut;
use crate::model::{Scenario, TrafficItem};
use crate::series::ClassRecorder;
use crate::tables::Diagnostic;
use std::error::Error;
use std::fmt;
use std::sync::atomic::AtomicBool;
use tidegate_measure::experiment as doc;
use tidegate_packet::{Nanos, Time};
use tidegate_policy::dump::{ClassDump, QdiscDump, QueueStats};
use tidegate_sim::world::World;
use tidegate_sim::{LinkId, LinkStats, Trace};

/// What failed outside of this crate: a socket, a file.
pub type Outside = Box<dyn Error + Send + Sync>;

/// Why a run did not come to its end.
#[derive(Debug)]
#[non_exhaustive]
pub enum RunError {
    /// A machine refuses a command of the scenario; its place.
    Scenario(Diagnostic),
    /// The traffic driver, or the observer, failed.
    Outside(Outside),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Scenario(wrong) => wrong.fmt(f),
            RunError::Outside(error) => error.fmt(f),
        }
    }
}

impl Error for RunError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            RunError::Scenario(wrong) => Some(wrong),
            RunError::Outside(error) => Some(&**error),
        }
    }
}

impl From<Diagnostic> for RunError {
    fn from(wrong: Diagnostic) -> RunError {
        RunError::Scenario(wrong)
    }
}

impl From<Outside> for RunError {
    fn from(error: Outside) -> RunError {
        RunError::Outside(error)
    }
}

/// How a run is watched and stopped.
pub struct RunWatch<'w> {
    /// Once it is set the run ends, at the next step.
    pub stop: &'w AtomicBool,
    /// Hears how many more seconds of link time have passed.
    pub seconds: &'w (dyn Fn(u64) + Sync),
    /// Looks at every step.
    pub observer: Option<&'w mut dyn RunObserver>,
}

/// Progress and stop of an experiment of several runs.
#[derive(Clone, Copy)]
pub struct ExperimentWatch<'w> {
    /// Once it is set the runs under way end at their next step, and none follows.
    pub stop: &'w AtomicBool,
    /// Hears before the first run how many there are, and how many seconds of link time they take together.
    pub begin: &'w (dyn Fn(usize, u64) + Sync),
    /// Hears how many more seconds of link time have passed, of whichever run.
    pub seconds: &'w (dyn Fn(u64) + Sync),
    /// Makes the observer of one run; `None`: there is none.
    pub observer: &'w (dyn Fn() -> Option<Box<dyn RunObserver>> + Sync),
}

/// An observer of a run, which changes nothing.
pub trait RunObserver {
    /// The network is laid out; the traffic has not begun.
    ///
    /// # Errors
    /// What keeps it from looking on; the run does not begin.
    fn begin(&mut self, scenario: &Scenario, laid: &mut LaidOut) -> Result<(), Outside>;

    /// Time has passed until `now`; [`Time::NEVER`]: the run has ended.
    ///
    /// # Errors
    /// What keeps it from going on; the run ends.
    fn advanced(&mut self, laid: &mut LaidOut, now: Time) -> Result<(), Outside>;
}

/// The traffic of one run: several pieces (a transfer, a ping, …), numbered.
pub trait TrafficDriver: Sized {
    /// How long after the measured window answers are still waited for.
    const GRACE: Nanos;

    /// Sets the run's load going.
    ///
    /// # Errors
    /// What keeps it from beginning: a socket, a program, a host; the run ends.
    fn begin(run: &mut ScenarioRun<'_, Self>) -> Result<(), Outside>;

    /// Lets time pass in the network.
    ///
    /// # Errors
    /// What keeps it from going on; the run ends.
    fn advance(&mut self, laid: &mut LaidOut, to: Time) -> Result<(), Outside>;

    /// A step of the run has ended.
    fn step_ended(&mut self, _laid: &mut LaidOut, _at: Time) {}

    /// Payload bytes acknowledged so far, of each piece; 0 where nothing is acknowledged.
    fn acked(&mut self, laid: &LaidOut) -> Vec<u64>;

    /// What is installed on devices of the machine that is outside of the network's model, each by its number
    /// there.
    fn installed(&mut self) -> Vec<(usize, Vec<QdiscDump>, Vec<ClassDump>)> {
        Vec::new()
    }

    /// What its pieces came to.
    fn records(run: &mut ScenarioRun<'_, Self>) -> (Vec<doc::TransferRecord>, Vec<doc::ProbeRecord>);

    /// How late things happened, where a real clock decides.
    fn lateness(&self) -> Option<doc::Lateness> {
        None
    }
}

/// Which run.
#[derive(Clone, Copy, Debug)]
pub struct CaseRun {
    /// The number of the policy.
    pub policy: usize,
    /// The number of the load.
    pub load: usize,
    /// Which repeat, from 0.
    pub repeat: u32,
}

/// A run under way.
pub struct ScenarioRun<'s, T> {
    /// The experiment it belongs to.
    pub scenario: &'s Scenario,
    /// Which run it is.
    pub case: CaseRun,
    /// The network of the run.
    pub laid: LaidOut,
    /// The driver of its traffic.
    pub traffic: T,
    /// Payload bytes of each piece of traffic per step.
    pub progress: Vec<Vec<u64>>,
    /// Of each piece what was acknowledged when the window began and ended.
    pub edges: [Vec<u64>; 2],
    /// What each direction of each link did so far.
    pub links: Vec<LinkReadings>,
    /// What each class did so far.
    pub courses: ClassRecorder,
    /// What happened, and what machines answered.
    pub events: Vec<doc::EventRecord>,
    /// The step of its series.
    pub step: Nanos,
    /// When it was stopped, if it was.
    pub cut: Option<Time>,
    /// The rings when they were last read.
    pub(crate) rings: Vec<Vec<u32>>,
}

/// One direction of a link, step by step.
#[derive(Clone, Debug, Default)]
pub struct LinkReadings {
    /// The number of the link.
    pub cable: usize,
    /// Towards its last end?
    pub up: bool,
    links: Vec<LinkId>,
    /// Bytes carried in each step.
    pub sent: Vec<u64>,
    /// Bytes that could be carried in each step.
    pub capacity: Vec<u64>,
    /// Bytes that wait at the end of each step.
    pub backlog: Vec<u64>,
    /// Packets dropped in each step.
    pub dropped: Vec<u32>,
    last: (u64, u64),
    /// The drops so far of the kernel's own root at its beginning.
    root_drops: u32,
    /// Bits per second now; 0: none.
    pub(crate) rate: u64,
    /// What it could carry, where that was recorded.
    trace: Option<Trace>,
    /// Time that was read.
    elapsed: Nanos,
    /// Frames are counted: its sending time is no measure, as it has no rate or a recorded one.
    counted: bool,
}

impl<'s, T> ScenarioRun<'s, T> {
    /// Its traffic.
    pub fn load(&self) -> &'s [TrafficItem] {
        &self.scenario.loads[self.case.load].items
    }
}

impl LinkReadings {
    /// Both directions of every cable.
    pub fn all(scenario: &Scenario, policy: usize, world: &World) -> Vec<LinkReadings> {
        let mut all = Vec::new();
        for (cable, of) in scenario.cables.iter().enumerate() {
            for (up, line) in [(true, &of.up), (false, &of.down)] {
                let links = world.links(cable, up);
                let own = scenario.policies[policy].links.iter().find(|(of, ..)| *of == cable);
                let own = own.map(|(_, there, back)| if up { there } else { back });
                let trace = own.and_then(|own| own.trace.as_ref()).or(line.trace.as_ref());
                let trace = trace.filter(|trace| trace.has_rates()).cloned();
                let rate = own.and_then(|own| own.rate).or(line.rate).unwrap_or(0);
                let counted = rate == 0 || trace.is_some();
                all.push(LinkReadings { cable, up, links, rate, trace, counted, ..LinkReadings::default() });
            }
        }
        all
    }

    /// The last step that was read: bytes carried, backlog in bytes at its end, packets dropped.
    pub fn last_step(&self) -> (u64, u64, u32) {
        let last = |series: &[u64]| series.last().copied().unwrap_or(0);
        (last(&self.sent), last(&self.backlog), self.dropped.last().copied().unwrap_or(0))
    }

    /// Reads what the direction did since the last step.
    pub fn read(&mut self, laid: &mut LaidOut, step: Nanos) {
        let net = &mut laid.world.net;
        let (mut busy, mut bytes, mut backlog, mut dropped) = (0, 0, 0, 0);
        for &link in &self.links {
            let LinkStats { sent_bytes, dropped: refused, lost, .. } = net.link_stats(link);
            busy += net.link_worked(link).0;
            backlog += net.link_backlog(link).1;
            bytes += sent_bytes;
            dropped += refused + lost;
        }
        // On a link with a rate the sending time gives the bytes that it carried, framing included; elsewhere
        // frames are counted.
        let so_far = if self.counted { bytes.saturating_sub(backlog) } else { busy };
        let new = so_far.saturating_sub(self.last.0);
        let carried =
            if self.counted { new } else { (u128::from(new) * u128::from(self.rate) / 8_000_000_000) as u64 };
        self.sent.push(carried);
        let (from, to) = (self.elapsed, self.elapsed + step);
        let recorded = self.trace.as_ref().and_then(|trace| trace.carries(from, to));
        let steady = || (u128::from(self.rate) * u128::from(step.0) / 8_000_000_000) as u64;
        self.capacity.push(recorded.unwrap_or_else(steady) * self.links.len() as u64);
        self.elapsed = to;
        self.backlog.push(backlog);
        self.dropped.push(dropped.saturating_sub(self.last.1) as u32);
        self.last = (so_far, dropped);
    }

    /// Drops in the step that was just read at a root that is not in the network's model. Its backlog is its
    /// classes'.
    pub(crate) fn behind(&mut self, root: &QueueStats) {
        let lost = root.drops.saturating_sub(self.root_drops);
        self.root_drops = root.drops;
        if let Some(dropped) = self.dropped.last_mut() {
            *dropped += lost;
        }
    }

    /// Had it a rate at any time?
    pub fn has_rate(&self) -> bool {
        self.capacity.iter().any(|bytes| *bytes > 0)
    }
}
