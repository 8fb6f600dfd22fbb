//! What was sent and came, of all exchanges of a recording.

use super::trains::Sent;
use crate::stream::{ExchangeResult, PacketRecord, PacketTrain, Stream, StreamTrace};
use alloc::vec::Vec;

/// What a phase of a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Small packets: delay and loss.
    Light,
    /// Full packets, faster than the line.
    Train,
    /// Full packets for longer.
    Flood,
}

/// A stream whose phases have purposes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TaggedStream {
    pub(super) phases: Vec<(Purpose, PacketTrain)>,
}

impl TaggedStream {
    pub(super) fn stream(&self) -> Stream {
        Stream { phases: self.phases.iter().map(|(_, phase)| *phase).collect() }
    }
}

/// A phase that was sent: its packets are `from..to` of the log.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoggedPhase {
    pub(super) purpose: Purpose,
    pub(super) train: PacketTrain,
    pub(super) from: usize,
    pub(super) to: usize,
}

/// A direction's packets, of all exchanges so far.
#[derive(Clone, Debug)]
pub(super) struct WayLog {
    pub(super) headers: u32,
    pub(super) phases: Vec<LoggedPhase>,
    pub(super) packets: Vec<PacketRecord>,
    /// The first phase of the last exchange.
    pub(super) last_from: usize,
    /// The first packet that is part of the recording.
    pub(super) main_from: Option<usize>,
    arrived: u32,
}

impl WayLog {
    pub(super) fn new(headers: u32) -> WayLog {
        WayLog { headers, phases: Vec::new(), packets: Vec::new(), last_from: 0, main_from: None, arrived: 0 }
    }

    /// From here on it is the recording.
    pub(super) fn begin_recording(&mut self) {
        self.main_from.get_or_insert(self.packets.len());
    }

    pub(super) fn has_recording(&self) -> bool {
        self.main_from.is_some_and(|from| self.packets[from..].iter().any(|packet| packet.sent.is_some()))
    }

    /// Has nothing ever arrived?
    pub(super) fn is_dead(&self) -> bool {
        self.arrived == 0
    }

    /// Takes up a stream, whose outcome the remote end reported or not; returns the bytes of IP packets that
    /// were sent.
    pub(super) fn take(&mut self, tagged: TaggedStream, trace: &StreamTrace, is_reported: bool) -> u64 {
        self.last_from = self.phases.len();
        let before = self.packets.len();
        let mut at = before;
        for (purpose, train) in tagged.phases {
            let to = at + train.packets as usize;
            self.phases.push(LoggedPhase { purpose, train, from: at, to });
            at = to;
        }
        self.packets.extend_from_slice(&trace.packets);
        // A result has a record of each packet; what it lacks was not sent.
        self.packets.resize(at, PacketRecord::default());
        let rank = self.arrived;
        for packet in &mut self.packets[before..] {
            packet.rank = packet.rank.saturating_add(rank);
            self.arrived += u32::from(packet.arrived.is_some());
        }
        let sent = |phase: &LoggedPhase| {
            let packets = self.packets[phase.from..phase.to].iter().filter(|packet| packet.sent.is_some());
            packets.count() as u64 * u64::from(u32::from(phase.train.payload) + self.headers)
        };
        let bytes = self.phases[self.last_from..].iter().map(sent).sum();
        if !is_reported {
            // What became of these was not reported: they are not lost.
            self.packets[before..].iter_mut().filter(|packet| packet.arrived.is_none()).for_each(|packet| {
                packet.sent = None;
            });
        }
        bytes
    }

    /// The packets of a phase by the clocks of both ends: when each was sent and when it came, ns from any
    /// beginning of either.
    pub(super) fn raw(&self, phase: &LoggedPhase) -> Vec<Sent> {
        let packets = &self.packets[phase.from..phase.to];
        packets
            .iter()
            .zip(0u32..)
            .filter_map(|(packet, number)| {
                let arrived = packet.arrived.map(|at| at as i64);
                Some(Sent { number, sent: packet.sent? as i64, left: arrived })
            })
            .collect()
    }
}

/// Both directions' packets as one outcome.
pub(super) fn joined(logs: &mut [WayLog; 2]) -> ExchangeResult {
    let trace = |log: &mut WayLog| StreamTrace {
        stream: Stream { phases: log.phases.iter().map(|phase| phase.train).collect() },
        packets: log.packets.clone(),
    };
    let [up, down] = logs;
    ExchangeResult { up: trace(up), down: trace(down), cut: None, is_reported: true }
}
