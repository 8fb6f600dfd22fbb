//! The outcome of each packet.

use std::collections::BTreeMap;
use tidegate_packet::Time;

/// The packets of a run.
#[derive(Clone, Debug, Default)]
pub struct RecordedPackets {
    /// Names, in the order of first arrival.
    pub flows: Vec<String>,
    /// The packets, in the order of arrival.
    pub lives: Vec<RecordedPacket>,
    /// The index of each waiting packet, by its number.
    waiting: BTreeMap<u32, usize>,
    /// In the order in which they left.
    left: Vec<usize>,
}

/// A packet of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordedPacket {
    /// The number of its flow.
    pub flow: usize,
    /// When it arrived.
    pub arrived: Time,
    /// The frame's length, in bytes.
    pub len: u32,
    dsfield: u8,
    /// How it ended.
    pub end: RecordedEnd,
}

/// How a packet ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordedEnd {
    /// It still waits.
    Waits,
    /// It left.
    Left {
        /// The time when it left.
        at: Time,
        /// Congestion was marked on it.
        marked: bool,
    },
    /// It was dropped then.
    Dropped(Time),
}

/// The bits of ECN, and what they are when congestion was met.
const ECN: u8 = 3;

impl RecordedPackets {
    pub(crate) fn arrived(&mut self, flow: &str, ident: u32, len: u32, dsfield: u8, now: Time) {
        let flow = self.flows.iter().position(|name| name == flow).unwrap_or_else(|| {
            self.flows.push(flow.to_owned());
            self.flows.len() - 1
        });
        self.waiting.insert(ident, self.lives.len());
        self.lives.push(RecordedPacket { flow, arrived: now, len, dsfield, end: RecordedEnd::Waits });
    }

    pub(crate) fn left(&mut self, ident: u32, dsfield: u8, now: Time) {
        if let Some(at) = self.waiting.remove(&ident) {
            let life = &mut self.lives[at];
            life.end =
                RecordedEnd::Left { at: now, marked: dsfield & ECN == ECN && life.dsfield & ECN != ECN };
            self.left.push(at);
        }
    }

    pub(crate) fn dropped(&mut self, ident: u32, now: Time) {
        if let Some(at) = self.waiting.remove(&ident) {
            self.lives[at].end = RecordedEnd::Dropped(now);
        }
    }

    /// The figures of a flow.
    pub fn account(&self, flow: usize) -> FlowAccount {
        let mut account = FlowAccount { overtaken: self.overtaken(flow), ..FlowAccount::default() };
        for life in self.lives.iter().filter(|life| life.flow == flow) {
            account.arrived += 1;
            match life.end {
                RecordedEnd::Left { at, marked } => {
                    let wait = at.0 - life.arrived.0;
                    account.left += 1;
                    account.marked += u32::from(marked);
                    account.waited += wait;
                    account.longest = account.longest.max(wait);
                }
                RecordedEnd::Dropped(_) => account.dropped += 1,
                RecordedEnd::Waits => {}
            }
        }
        account
    }

    /// Packets of a flow that left after one which had come later.
    fn overtaken(&self, flow: usize) -> u32 {
        let (mut latest, mut count) = (0, 0);
        for at in self.left.iter().filter(|at| self.lives[**at].flow == flow) {
            count += u32::from(*at < latest);
            latest = latest.max(*at);
        }
        count
    }
}

/// A flow's figures; times in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowAccount {
    /// Packets that arrived.
    pub arrived: u32,
    /// Packets that left.
    pub left: u32,
    /// Packets that were dropped.
    pub dropped: u32,
    /// Packets that left with congestion marked.
    pub marked: u32,
    /// Packets that left after one which had come later.
    pub overtaken: u32,
    /// How long those that left waited, together.
    pub waited: u64,
    /// How long the one waited that waited longest.
    pub longest: u64,
}
