//! A tin: its queues, found by an eight-way set-associative hash, and the rounds in which their flows take
//! turns (DRR++).
//!
//! A flow that gets its first packet is sparse and goes before the others until it has sent a quantum; then
//! it is bulk and waits for its turn. A flow whose queue runs empty decays: it keeps its place until its law
//! is at rest, and is found there by its next packet. Hosts have a table of their own: the more bulk flows
//! one has, the less each of them may send in a turn.

use super::tins::Terms;
use crate::algo::cobalt::State;
use crate::algo::{IndexList, Linked, ListLink};
use alloc::vec;
use alloc::vec::Vec;
use tidegate_packet::{Fifo, Pkt, Pool, RandomSource, Time};
use tidegate_policy::CakeFlows;
use tidegate_policy::dump::{CakeFlowStats, CakeTinStats, QueueStats};

/// Queues of a tin.
pub(super) const QUEUES: usize = 1024;
/// Queues among which a flow finds one when its own is taken.
const WAYS: usize = 8;

/// What each of so many flows of a host may send of a quantum, in 2^-16.
static PART: [u16; QUEUES + 1] = parts();

const fn parts() -> [u16; QUEUES + 1] {
    let mut all = [u16::MAX; QUEUES + 1];
    let mut count = 1;
    while count <= QUEUES {
        all[count] = (65535 / count) as u16;
        count += 1;
    }
    all
}

/// Where a flow is in the rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum FlowSet {
    /// In none.
    #[default]
    None,
    /// It sends less than its share.
    Sparse,
    /// A sparse flow that has used its turn and waits behind the bulk flows.
    SparseWait,
    /// It fills its share.
    Bulk,
    /// It is empty, and its law not yet at rest.
    Decaying,
}

/// A flow: everything about one queue.
#[derive(Default)]
#[repr(align(64))]
pub(super) struct Flow {
    link: ListLink,
    pub(super) queue: Fifo,
    pub(super) state: State,
    pub(super) deficit: i32,
    pub(super) dropped: u32,
    /// Its places in the table of hosts, as sender and as receiver.
    hosts: (u16, u16),
    pub(super) set: FlowSet,
    /// The round it is in, if it is in one.
    round: Round,
}

impl Linked for Flow {
    fn link(&mut self) -> &mut ListLink {
        &mut self.link
    }
}

/// A place of the table of hosts: whose it is, and how many bulk flows it has, as sender and as receiver.
#[derive(Clone, Copy, Default)]
struct Host {
    tags: (u32, u32),
    bulk: (u16, u16),
}

/// What a tin counts.
#[derive(Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) bytes: u64,
    pub(super) packets: u32,
    pub(super) hits: u32,
    pub(super) misses: u32,
    pub(super) collisions: u32,
    pub(super) drops: u32,
    pub(super) marks: u32,
    pub(super) ack_drops: u32,
    pub(super) unresponsive: u32,
    pub(super) longest: u16,
    /// Delays in nanoseconds: mean, of the slow, of the fast.
    pub(super) average: u64,
    pub(super) peak: u64,
    pub(super) base: u64,
}

/// The rounds a flow can be in. One that decays waits among the bulk flows while it has sent more than it
/// may.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Round {
    #[default]
    New,
    Old,
    Decaying,
}

/// A tin: one of CAKE's priority levels.
#[derive(Default)]
pub(super) struct Tin {
    pub(super) terms: Terms,
    /// When its rate lets the next packet go; what of it is not used is not saved up.
    pub(super) next: u64,
    /// Bytes it may still send in its turn, where nothing is shaped, and how many it is given.
    pub(super) deficit: i32,
    pub(super) quantum: i32,
    pub(super) counts: Counts,
    pub(super) sparse: u32,
    pub(super) bulk: u32,
    pub(super) decaying: u32,
    backlog: u64,
    new_round: IndexList,
    old_round: IndexList,
    decaying_round: IndexList,
    /// The hash that each queue is reserved for. Made with the first packet, as all tables.
    tags: Vec<u32>,
    /// By queue: 0, or one more than the place of its flow among those that were ever used.
    places: Vec<u16>,
    flows: Vec<Flow>,
    /// The queue of each flow.
    queues: Vec<u16>,
    hosts: Vec<Host>,
}

/// How a packet's flow is called: the hash that reserves a queue, and the hosts behind it, requested only
/// when a flow begins.
pub(super) struct Called<'a> {
    pub(super) hash: u32,
    pub(super) hosts: &'a mut dyn FnMut() -> (u32, u32),
}

impl Tin {
    /// The flow of a packet, begun if need be: its place among those used.
    #[inline]
    pub(super) fn find(&mut self, mode: CakeFlows, called: Called<'_>) -> u32 {
        if self.tags.is_empty() {
            self.tags = vec![0; QUEUES];
            self.places = vec![0; QUEUES];
        }
        let direct = called.hash as usize % QUEUES;
        if self.tags[direct] == called.hash && self.flow_set(direct) != FlowSet::None {
            return u32::from(self.places[direct]) - 1;
        }
        self.find_in_set(mode, direct, called)
    }

    /// All packets are one flow: no queue is looked for.
    pub(super) fn only_flow(&mut self) -> u32 {
        if self.places.is_empty() {
            self.tags = vec![0; QUEUES];
            self.places = vec![0; QUEUES];
        }
        self.begun(0)
    }

    fn find_in_set(&mut self, mode: CakeFlows, direct: usize, called: Called<'_>) -> u32 {
        let ways = |set: usize| (0..WAYS).map(move |way| set + (direct + way) % WAYS);
        let set = direct - direct % WAYS;
        let reserved = ways(set).find(|queue| self.tags[*queue] == called.hash);
        let free = || ways(set).find(|queue| self.flow_set(*queue) == FlowSet::None);
        let (queue, begins) = if let Some(queue) = reserved {
            self.counts.hits += u32::from(queue != direct);
            (queue, self.flow_set(queue) == FlowSet::None)
        } else if let Some(queue) = free() {
            self.counts.misses += 1;
            (queue, true)
        } else {
            self.counts.collisions += 1;
            (direct, true)
        };
        let collides = reserved.is_none() && self.flow_set(queue) == FlowSet::Bulk;
        let at = self.begun(queue);
        if collides {
            self.count_bulk(mode, at, false);
        }
        self.tags[queue] = called.hash;
        if begins && (mode.shares_source() || mode.shares_destination()) {
            let (source, destination) = (called.hosts)();
            self.settle_hosts(mode, at, source, destination, collides);
        }
        at
    }

    fn flow_set(&self, queue: usize) -> FlowSet {
        match self.places[queue] {
            0 => FlowSet::None,
            place => self.flows[usize::from(place) - 1].set,
        }
    }

    /// The flow of a queue.
    fn begun(&mut self, queue: usize) -> u32 {
        if self.places[queue] == 0 {
            self.flows.push(Flow::default());
            self.queues.push(queue as u16);
            self.places[queue] = self.flows.len() as u16;
        }
        u32::from(self.places[queue]) - 1
    }

    /// Finds the places of a flow's ends in the table of hosts; `bulk`: it is one of their bulk flows
    /// already.
    fn settle_hosts(&mut self, mode: CakeFlows, at: u32, source: u32, destination: u32, bulk: bool) {
        if self.hosts.is_empty() {
            self.hosts = vec![Host::default(); QUEUES];
        }
        if mode.shares_source() {
            let place = self.place_host(source, |host| host.tags.0, |host| host.bulk.0);
            self.hosts[place].tags.0 = source;
            self.flows[at as usize].hosts.0 = place as u16;
            if bulk {
                count(&mut self.hosts[place].bulk.0, true);
            }
        }
        if mode.shares_destination() {
            let place = self.place_host(destination, |host| host.tags.1, |host| host.bulk.1);
            self.hosts[place].tags.1 = destination;
            self.flows[at as usize].hosts.1 = place as u16;
            if bulk {
                count(&mut self.hosts[place].bulk.1, true);
            }
        }
    }

    fn place_host(&self, hash: u32, tag: impl Fn(&Host) -> u32, bulk: impl Fn(&Host) -> u16) -> usize {
        let direct = hash as usize % QUEUES;
        let set = direct - direct % WAYS;
        let mut ways = (0..WAYS).map(|way| set + (direct + way) % WAYS);
        let known = ways.clone().find(|place| tag(&self.hosts[*place]) == hash);
        known.or_else(|| ways.find(|place| bulk(&self.hosts[*place]) == 0)).unwrap_or(direct)
    }

    /// A flow becomes one of its hosts' bulk flows, or is one no more.
    fn count_bulk(&mut self, mode: CakeFlows, at: u32, more: bool) {
        let (source, destination) = self.flows[at as usize].hosts;
        if self.hosts.is_empty() && (mode.shares_source() || mode.shares_destination()) {
            self.hosts = vec![Host::default(); QUEUES];
        }
        if mode.shares_source() {
            count(&mut self.hosts[usize::from(source)].bulk.0, more);
        }
        if mode.shares_destination() {
            count(&mut self.hosts[usize::from(destination)].bulk.1, more);
        }
    }

    /// What a flow may send in its turn. Fractions of a byte are drawn at random, so that they are kept on
    /// average.
    fn quantum_of(&self, mode: CakeFlows, at: u32, random: &mut dyn RandomSource) -> i32 {
        let (source, destination) = self.flows[at as usize].hosts;
        let bulk = |place: u16, of: fn(&Host) -> u16| self.hosts.get(usize::from(place)).map_or(0, of);
        let mut load = 1;
        if mode.shares_source() {
            load = load.max(bulk(source, |host| host.bulk.0));
        }
        if mode.shares_destination() {
            load = load.max(bulk(destination, |host| host.bulk.1));
        }
        let part = u32::from(PART[usize::from(load).min(QUEUES)]);
        ((self.terms.quantum * part + u32::from(random.u16())) >> 16) as i32
    }

    /// A packet was put into a flow's queue: the flow takes part in the rounds.
    #[inline]
    pub(super) fn join(&mut self, mode: CakeFlows, at: u32, random: &mut dyn RandomSource) {
        match self.flows[at as usize].set {
            FlowSet::None | FlowSet::Decaying => self.join_new(mode, at, random),
            FlowSet::SparseWait => {
                self.flows[at as usize].set = FlowSet::Bulk;
                self.sparse -= 1;
                self.bulk += 1;
                self.count_bulk(mode, at, true);
            }
            FlowSet::Sparse | FlowSet::Bulk => {}
        }
    }

    fn join_new(&mut self, mode: CakeFlows, at: u32, random: &mut dyn RandomSource) {
        if self.flows[at as usize].set == FlowSet::Decaying {
            self.decaying -= 1;
        }
        self.sparse += 1;
        self.go_to(Round::New, at);
        let deficit = self.quantum_of(mode, at, random);
        let flow = &mut self.flows[at as usize];
        flow.set = FlowSet::Sparse;
        flow.deficit = deficit;
    }

    /// The flow whose turn it is. `decayed_first`: one that decays is looked at before all others.
    #[inline]
    pub(super) fn turn(&self, decayed_first: bool) -> Option<u32> {
        let decayed = self.decaying_round.first();
        let early = decayed.filter(|_| decayed_first);
        early.or(self.new_round.first()).or(self.old_round.first()).or(decayed)
    }

    /// Does any flow take part in the rounds that had a packet since it was last found empty?
    #[inline]
    pub(super) fn is_active(&self) -> bool {
        self.sparse + self.bulk > 0
    }

    /// A flow has sent what it may: it gets more, and goes to the end of the round of bulk flows. An empty
    /// one is still counted as sparse.
    pub(super) fn put_off(&mut self, mode: CakeFlows, at: u32, random: &mut dyn RandomSource) {
        let flow = &mut self.flows[at as usize];
        if flow.set == FlowSet::Sparse && flow.queue.is_empty() {
            flow.set = FlowSet::SparseWait;
        } else if flow.set == FlowSet::Sparse {
            flow.set = FlowSet::Bulk;
            self.sparse -= 1;
            self.bulk += 1;
            self.count_bulk(mode, at, true);
        }
        let more = self.quantum_of(mode, at, random);
        self.flows[at as usize].deficit += more;
        self.go_to(Round::Old, at);
    }

    /// A flow was found empty: it decays, or leaves the rounds if there is nothing left to remember.
    pub(super) fn run_empty(&mut self, mode: CakeFlows, at: u32, now: Time) {
        let flow = &mut self.flows[at as usize];
        if flow.state.empty(&self.terms.law, now) {
            self.counts.unresponsive = self.counts.unresponsive.wrapping_sub(1);
        }
        let (decays, flow_set) = (flow.state.is_active(now), flow.set);
        flow.set = if decays { FlowSet::Decaying } else { FlowSet::None };
        match flow_set {
            FlowSet::Sparse | FlowSet::SparseWait => self.sparse -= 1,
            FlowSet::Bulk => {
                self.bulk -= 1;
                self.count_bulk(mode, at, false);
            }
            FlowSet::Decaying => self.decaying -= 1,
            FlowSet::None => {}
        }
        if decays {
            self.decaying += 1;
            self.go_to(Round::Decaying, at);
        } else {
            self.leave(at);
        }
    }

    /// Takes a flow out of the round it is in, if it is in one.
    fn leave(&mut self, at: u32) {
        let flow = &self.flows[at as usize];
        if !flow.link.is_linked() {
            return;
        }
        match flow.round {
            Round::New => self.new_round.remove(&mut self.flows, at),
            Round::Old => self.old_round.remove(&mut self.flows, at),
            Round::Decaying => self.decaying_round.remove(&mut self.flows, at),
        }
    }

    /// Puts a flow at the end of a round.
    fn go_to(&mut self, round: Round, at: u32) {
        self.leave(at);
        self.flows[at as usize].round = round;
        match round {
            Round::New => self.new_round.push(&mut self.flows, at),
            Round::Old => self.old_round.push(&mut self.flows, at),
            Round::Decaying => self.decaying_round.push(&mut self.flows, at),
        }
    }

    /// Appends a packet to a flow's queue.
    #[inline]
    pub(super) fn push(&mut self, pool: &mut Pool, at: u32, pkt: Pkt) {
        self.backlog += u64::from(pool.meta(&pkt).len);
        self.flows[at as usize].queue.push_back(pool, pkt);
    }

    /// Takes the oldest packet of a flow.
    #[inline]
    pub(super) fn pop(&mut self, pool: &mut Pool, at: u32) -> Option<Pkt> {
        let pkt = self.flows[at as usize].queue.pop_front(pool)?;
        self.backlog -= u64::from(pool.meta(&pkt).len);
        Some(pkt)
    }

    /// Takes a packet out of the middle of a flow's queue.
    pub(super) fn take(&mut self, pool: &mut Pool, at: u32, slot: usize) -> Option<Pkt> {
        let pkt = self.flows[at as usize].queue.take_at(pool, slot)?;
        self.backlog -= u64::from(pool.meta(&pkt).len);
        Some(pkt)
    }

    /// Bytes that wait in it.
    #[inline]
    pub(super) fn backlog(&self) -> u64 {
        self.backlog
    }

    /// The flow at an index.
    #[inline]
    pub(super) fn flow(&mut self, at: u32) -> &mut Flow {
        &mut self.flows[at as usize]
    }

    /// The queue of a flow.
    #[inline]
    pub(super) fn queue_of(&self, at: u32) -> usize {
        self.queues[at as usize].into()
    }

    /// The flow of a queue, if it ever had one.
    pub(super) fn flow_of(&self, queue: usize) -> Option<u32> {
        self.places.get(queue).and_then(|place| place.checked_sub(1)).map(u32::from)
    }

    /// Bytes that wait in a queue.
    pub(super) fn bytes_in(&self, queue: usize) -> u64 {
        self.flow_of(queue).map_or(0, |at| self.flows[at as usize].queue.bytes())
    }

    /// The flows that were used, in the order of their queues.
    pub(super) fn in_order(&self) -> Vec<u32> {
        (0..QUEUES).filter_map(|queue| self.flow_of(queue)).collect()
    }

    /// A packet was sent that waited for so many nanoseconds: the means move, each quickly in its own
    /// direction only.
    #[inline]
    pub(super) fn learn_delay(&mut self, delay: u64) {
        let counts = &mut self.counts;
        counts.average = moved(counts.average, delay, 8);
        counts.peak = moved(counts.peak, delay, if delay > counts.peak { 2 } else { 8 });
        counts.base = moved(counts.base, delay, if delay < counts.base { 2 } else { 8 });
    }

    /// As a dump brings it.
    pub(super) fn stats(&self) -> CakeTinStats {
        let (counts, us) = (&self.counts, |ns: u64| (ns / 1000) as u32);
        CakeTinStats {
            threshold: self.terms.rate,
            bytes: counts.bytes,
            backlog: self.backlog as u32,
            target_us: us(self.terms.law.target),
            interval_us: us(self.terms.law.interval),
            peak_delay_us: us(counts.peak),
            average_delay_us: us(counts.average),
            base_delay_us: us(counts.base),
            packets: counts.packets,
            way_hits: counts.hits,
            way_misses: counts.misses,
            way_collisions: counts.collisions,
            drops: counts.drops,
            marks: counts.marks,
            ack_drops: counts.ack_drops,
            sparse_flows: self.sparse + self.decaying,
            bulk_flows: self.bulk,
            unresponsive_flows: counts.unresponsive,
            longest: counts.longest,
            quantum: self.terms.quantum as u16,
        }
    }

    /// The flows that take part in the rounds, with the queues they have.
    pub(super) fn dump_flows(
        &self,
        now: Time,
    ) -> impl Iterator<Item = (usize, QueueStats, CakeFlowStats)> + '_ {
        self.in_order().into_iter().filter_map(move |at| {
            let flow = &self.flows[at as usize];
            let stats = QueueStats {
                drops: flow.dropped,
                qlen: flow.queue.len(),
                backlog: flow.queue.bytes() as u32,
                ..QueueStats::default()
            };
            flow.link.is_linked().then(|| (self.queue_of(at), stats, flow.stats(now)))
        })
    }
}

/// A mean moved by 1/2^`shift` of a sample.
pub(super) fn moved(mean: u64, sample: u64, shift: u32) -> u64 {
    mean - (mean >> shift) + (sample >> shift)
}

impl Flow {
    fn stats(&self, now: Time) -> CakeFlowStats {
        let state = &self.state;
        CakeFlowStats {
            deficit: self.deficit,
            dropping: state.dropping,
            count: state.count,
            drop_next_us: now.0.wrapping_sub(state.drop_next) as i64 / 1000,
            blue_probability: state.blue,
            blue_timer_us: (now.0.wrapping_sub(state.blue_timer) / 1000) as u32,
        }
    }
}

fn count(flows: &mut u16, more: bool) {
    if !more {
        *flows = flows.saturating_sub(1);
    } else if usize::from(*flows) < QUEUES {
        *flows += 1;
    }
}
