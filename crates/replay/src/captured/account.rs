//! The outcome of a capture's packets under one policy: packet by packet while they are there, then by class
//! and flow.

use super::arrivals::{CapturedArrival, Flows};
use super::network::{CaptureNetwork, ClassLabel};
use super::words::reason;
use std::collections::BTreeMap;
use tidegate_measure::Durations;
use tidegate_measure::replayed::{ClassOutcome, FlowOutcome, OutcomeCounts};
use tidegate_packet::{Handle, Head, QueueLocation, Time};
use tidegate_pcap::CaptureDirection;
use tidegate_sim::{LinkId, SojournEnd, SojournRecord};
use tidegate_trial::{START, TrialPolicy};

/// The bits of ECN, and what they are when congestion was met.
const ECN: u8 = 3;

/// An observer of every packet of a capture as it leaves.
pub trait PacketObserver {
    /// The links are there; no packet has arrived yet.
    fn begin(&mut self, gateway: &CaptureNetwork);

    /// A packet has left, or was dropped: where it was queued, and how its last sojourn ended.
    fn left(
        &mut self,
        gateway: &CaptureNetwork,
        named: &ClassLabel,
        life: &PacketLife,
        sojourn: &SojournRecord,
    );

    /// Time has passed until `now`; [`Time::NEVER`]: the last packet has left.
    ///
    /// # Errors
    /// What keeps it from going on.
    fn advanced(&mut self, now: Time) -> Result<(), ExternalError>;
}

/// What failed outside of this crate: a file.
pub type ExternalError = Box<dyn std::error::Error + Send + Sync>;

/// A packet in flight.
pub struct PacketLife {
    /// Its number, from 1.
    pub number: u32,
    /// When it arrived.
    pub arrived: Time,
    /// The number of its flow.
    pub flow: u32,
    /// Which way it goes.
    pub way: CaptureDirection,
    /// The frame's length.
    pub len: u32,
    /// The queue that explains most of its delay, and how strong an explanation that is.
    pub queue: Option<(LinkId, QueueLocation)>,
    rank: Rank,
    /// How long it waited where: the links in turn.
    pub waits: Vec<(LinkId, u64)>,
    marked: bool,
}

/// A place where packets are queued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    /// By the number of the observed link; `None`: the packet never waited.
    link: Option<usize>,
    /// The class, or the root's handle.
    handle: Handle,
    inward: bool,
}

/// A class's, or a flow's, packets.
#[derive(Default)]
struct Ledger {
    outcomes: OutcomeCounts,
    waits: Vec<(u32, u64)>,
    /// By step, packets and losses.
    steps: Vec<(u32, u32)>,
    dropped: BTreeMap<String, u64>,
}

/// All packets of a replay.
pub(crate) struct Account<'p> {
    policy: &'p TrialPolicy,
    step_ns: u64,
    lives: BTreeMap<u32, PacketLife>,
    next: u32,
    classes: BTreeMap<Key, (ClassLabel, Ledger)>,
    flows: Vec<(Ledger, BTreeMap<Key, u64>)>,
    both: [Ledger; 2],
    pub(crate) observer: Option<&'p mut dyn PacketObserver>,
}

/// How a packet ended.
pub(crate) enum End {
    Sent,
    Dropped(String),
}

impl<'p> Account<'p> {
    pub(crate) fn new(
        policy: &'p TrialPolicy,
        step_ns: u64,
        observer: Option<&'p mut dyn PacketObserver>,
    ) -> Account<'p> {
        Account {
            policy,
            step_ns,
            lives: BTreeMap::new(),
            next: 0,
            classes: BTreeMap::new(),
            flows: Vec::new(),
            both: Default::default(),
            observer,
        }
    }

    /// A packet arrives; returns its number.
    pub(crate) fn arrives(&mut self, arrival: &CapturedArrival) -> u32 {
        self.next += 1;
        let life = PacketLife {
            number: self.next,
            arrived: Time(START.0 + arrival.at),
            flow: arrival.flow,
            way: arrival.way,
            len: arrival.len + Head::ETHERNET as u32,
            queue: None,
            rank: Rank::default(),
            waits: Vec::new(),
            marked: false,
        };
        self.lives.insert(self.next, life);
        self.next
    }

    /// A packet's stay somewhere has ended.
    pub(crate) fn stayed(&mut self, gateway: &CaptureNetwork, sojourn: &SojournRecord) {
        // Copies that machines make belong to no packet of the capture.
        let Some(number) = sojourn.owner.filter(|_| !sojourn.copy) else { return };
        let Some(life) = self.lives.get_mut(&number) else { return };
        life.marked |= sojourn.dsfield & ECN == ECN && sojourn.came_with & ECN != ECN;
        life.waits.push((sojourn.link, sojourn.ended.0.saturating_sub(sojourn.came.0)));
        let rank = rank(gateway, sojourn);
        if rank >= life.rank {
            (life.rank, life.queue) = (rank, Some((sojourn.link, sojourn.queue)));
        }
        let last = gateway.paths.last[usize::from(life.way == CaptureDirection::In)];
        match sojourn.end {
            SojournEnd::Dropped(why) => self.ends(
                gateway,
                number,
                sojourn.ended,
                End::Dropped(reason(why, gateway.device(sojourn.link).is_some()).to_owned()),
                Some(sojourn),
            ),
            SojournEnd::Sent if sojourn.link == last => {
                self.ends(gateway, number, sojourn.ended, End::Sent, Some(sojourn))
            }
            SojournEnd::Sent => {}
        }
    }

    /// A packet has come to the end of its way without having waited at its last link.
    pub(crate) fn delivered(&mut self, gateway: &CaptureNetwork, number: u32, at: Time) {
        self.ends(gateway, number, at, End::Sent, None);
    }

    /// There was no space for a packet.
    pub(crate) fn refused(&mut self, gateway: &CaptureNetwork, number: u32, at: Time) {
        self.ends(
            gateway,
            number,
            at,
            End::Dropped("more packets wait than the simulator holds".into()),
            None,
        );
    }

    fn ends(
        &mut self,
        gateway: &CaptureNetwork,
        number: u32,
        at: Time,
        end: End,
        sojourn: Option<&SojournRecord>,
    ) {
        let Some(life) = self.lives.remove(&number) else { return };
        let inward = life.way == CaptureDirection::In;
        let key = key(gateway, &life);
        let policy = self.policy;
        let (named, ledger) = self.classes.entry(key).or_insert_with(|| {
            let none =
                ClassLabel { device: policy.wan.clone(), id: "no queue".into(), ..ClassLabel::default() };
            let named = life.queue.map_or(none, |(link, location)| gateway.class(policy, link, location));
            (named, Ledger::default())
        });
        if let (Some(observer), Some(sojourn)) = (&mut self.observer, sojourn) {
            observer.left(gateway, named, &life, sojourn);
        }
        let (step, waited) = ((life.arrived.since(START).0 / self.step_ns) as u32, at.since(life.arrived).0);
        if self.flows.len() <= life.flow as usize {
            self.flows.resize_with(life.flow as usize + 1, Default::default);
        }
        let (flow, classes) = &mut self.flows[life.flow as usize];
        *classes.entry(key).or_default() += 1;
        for ledger in [ledger, flow, &mut self.both[usize::from(inward)]] {
            ledger.record(&life, step, waited, &end);
        }
    }

    /// Packets that still wait.
    pub(crate) fn waiting(&self) -> usize {
        self.lives.len()
    }

    /// What still waits stays so.
    fn close(&mut self) {
        for life in std::mem::take(&mut self.lives).into_values() {
            let flow = self.flows.get_mut(life.flow as usize).map(|(flow, _)| flow);
            for ledger in
                flow.into_iter().chain([&mut self.both[usize::from(life.way == CaptureDirection::In)]])
            {
                ledger.outcomes.packets += 1;
                ledger.outcomes.bytes += u64::from(life.len);
                ledger.outcomes.waiting += 1;
            }
        }
    }

    /// The outcome of what went out, of what came in, class by class, and the largest flows.
    pub(crate) fn class_outcomes(
        mut self,
        flows: &Flows,
        top: usize,
        steps: usize,
    ) -> (OutcomeCounts, OutcomeCounts, Vec<ClassOutcome>, Vec<FlowOutcome>) {
        self.close();
        let names: BTreeMap<Key, String> =
            self.classes.iter().map(|(key, (named, _))| (*key, label(named))).collect();
        let classes =
            self.classes.into_iter().map(|(key, (named, ledger))| ledger.class(named, key.inward, steps));
        let mut largest: Vec<usize> = (0..self.flows.len()).collect();
        largest.sort_by_key(|at| (std::cmp::Reverse(self.flows[*at].0.outcomes.bytes), *at));
        largest.truncate(top);
        let found = largest.into_iter().map(|at| {
            let (ledger, classes) = std::mem::take(&mut self.flows[at]);
            let most = classes.iter().max_by_key(|(key, count)| (**count, std::cmp::Reverse(**key)));
            FlowOutcome {
                name: flows.name(at as u32),
                class: most.map_or_else(String::new, |(key, _)| names[key].clone()),
                outcomes: ledger.fates(),
            }
        });
        let (classes, flow_outcomes) = (classes.collect(), found.collect());
        let [out, inward] = self.both;
        (out.fates(), inward.fates(), classes, flow_outcomes)
    }
}

fn label(named: &ClassLabel) -> String {
    format!("{} {}", named.device, named.id)
}

/// How much a sojourn explains of a packet: most where it was dropped, then where a policy governs, then in a
/// modem; a class more than a root, and a longer delay more than a shorter one.
type Rank = (u8, bool, u64);

fn rank(gateway: &CaptureNetwork, sojourn: &SojournRecord) -> Rank {
    let is_device = gateway.device(sojourn.link).is_some();
    let class = sojourn.queue.on != Handle::ROOT && sojourn.queue.on.minor() != 0;
    let most = match sojourn.end {
        SojournEnd::Dropped(_) if is_device => 4,
        _ if is_device && (class || !sojourn.queue.qdisc.is_none()) => 3,
        _ if !is_device => 2,
        _ => 1,
    };
    (most, class, sojourn.ended.0.saturating_sub(sojourn.came.0))
}

fn key(gateway: &CaptureNetwork, life: &PacketLife) -> Key {
    let inward = life.way == CaptureDirection::In;
    let Some((link, location)) = life.queue else { return Key { link: None, handle: Handle::NONE, inward } };
    let at = gateway.links.iter().position(|(known, _)| *known == link);
    let class = location.on != Handle::ROOT && location.on.minor() != 0;
    // The root and what is before any queue have handles that no class has.
    let handle = match location.on {
        on if class => on,
        Handle::NONE => Handle::ROOT,
        _ => location.qdisc,
    };
    Key { link: at, handle, inward }
}

impl Ledger {
    fn record(&mut self, life: &PacketLife, step: u32, waited: u64, end: &End) {
        let len = u64::from(life.len);
        self.outcomes.packets += 1;
        self.outcomes.bytes += len;
        self.outcomes.marked += u64::from(life.marked);
        if self.steps.len() <= step as usize {
            self.steps.resize(step as usize + 1, (0, 0));
        }
        let (packets, dropped) = &mut self.steps[step as usize];
        *packets += 1;
        match end {
            End::Sent => {
                self.outcomes.sent += 1;
                self.outcomes.sent_bytes += len;
                self.waits.push((step, waited));
            }
            End::Dropped(why) => {
                *dropped += 1;
                match self.dropped.get_mut(why) {
                    Some(count) => *count += 1,
                    None => drop(self.dropped.insert(why.clone(), 1)),
                }
            }
        }
    }

    fn fates(self) -> OutcomeCounts {
        let Ledger { outcomes: fates, waits, dropped, .. } = self;
        let mut dropped: Vec<(String, u64)> = dropped.into_iter().collect();
        dropped.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        OutcomeCounts { dropped, ..fates }.with_waits(waits.into_iter().map(|(_, waited)| waited).collect())
    }

    fn class(mut self, named: ClassLabel, inward: bool, steps: usize) -> ClassOutcome {
        self.waits.sort_unstable();
        self.steps.resize(steps.max(self.steps.len()), (0, 0));
        let (mut median, mut longest) = (vec![None; self.steps.len()], vec![None; self.steps.len()]);
        for of_step in self.waits.chunk_by(|a, b| a.0 == b.0) {
            let at = of_step[0].0 as usize;
            let spans = Durations::new(of_step.iter().map(|(_, waited)| *waited).collect());
            (median[at], longest[at]) = (spans.percentile(50.0), spans.max());
        }
        let (packets, dropped) = std::mem::take(&mut self.steps).into_iter().unzip();
        let ClassLabel { device, id, title, queue } = named;
        ClassOutcome {
            device,
            id,
            title,
            queue,
            inward,
            outcomes: self.fates(),
            packets,
            dropped,
            median,
            longest,
        }
    }
}
