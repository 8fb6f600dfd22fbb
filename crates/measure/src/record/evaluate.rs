//! From packets to seconds.

use super::log::{LoggedPhase, Purpose, WayLog};
use super::plan::{LIGHT, Limited, Planner};
use super::trains::{self, Sent, ServedTrain, median, stall_after};
use super::types::{DirectionRecording, ETHERNET, LONGEST_NS, RecordedSecond, SECOND};
use crate::numbers::{format_duration, percent, rate};
use crate::oneway::DirectionStats;
use crate::stream::StreamTrace;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

/// Rates of one second that differ by more are worth a word; where there is one train in it, those of three.
const VARIES: f64 = 0.3;
const VARIES_ONE: f64 = 0.15;
/// A second was not seen if nothing was sent for more than this share.
const UNSEEN: f64 = 0.25;
/// Small packets that find a queue which is not of the recording's own: their delay above the usual, in times
/// of a full packet, and how many of them are worth a word.
const QUEUED: f64 = 0.1;
const QUEUED_NS: f64 = 50e3;
const OTHERS: f64 = 0.03;
/// A second stood still if it did for more than this share.
const STOOD: f64 = 0.05;
/// and altogether
const STOOD_WHOLLY: f64 = 0.95;
/// Between trains further apart than this, ns, nothing is known.
const APART_NS: i64 = 2_500_000_000;
/// Packets of which none arrives in a second: nothing passed.
const SILENT: u32 = 4;
/// After a full packet, a small one is free of its queue by this, ns, and so many of its own times.
const FREE_NS: f64 = 2e6;
const FREE_TIMES: f64 = 12.0;
/// Odd gaps that show others' packets, as a share of all gaps, and what they add to the time.
const ODD_GAPS: f64 = 0.02;
const ODD_TIME: f64 = 0.015;
/// A train that slows down by this ratio has spent a bucket.
const SLOWED: f64 = 1.2;
/// A flood that ends so much slower than the first trains are.
const FLOODED: f64 = 1.3;
const FIRST_TRAINS: usize = 8;
/// A train was not sent as planned if it took so much longer.
const LATE: f64 = 1.3;
/// Shares of trains, or of packets, that are worth a word.
const SOME: f64 = 0.05;
const MANY: f64 = 0.25;
const OVERTAKEN: f64 = 0.01;

/// A packet by the sender's clock, ns from the first second's beginning.
#[derive(Clone, Copy, Debug)]
struct Packet {
    sent: i64,
    /// When it left the bottleneck: when it arrived, less the least delay.
    left: Option<i64>,
}

/// When the first packet of a recording was sent, by the receiver's clock, if the least delay is this.
pub(super) fn began_here(trace: &StreamTrace, from: Option<usize>, least_ns: u64) -> u64 {
    let mut packets = trace.packets.iter().skip(from.unwrap_or(0)).filter(|packet| packet.sent.is_some());
    let Some(first) = packets.next() else { return 0 };
    let known =
        core::iter::once(first).chain(packets).find_map(|packet| Some((packet.sent?, packet.arrived?)));
    let (Some(began), Some((sent, arrived))) = (first.sent, known) else { return 0 };
    arrived.saturating_sub(sent.saturating_sub(began)).saturating_sub(least_ns)
}

/// What was recorded of a direction.
pub(super) fn direction(log: &WayLog, planner: &Planner, side: &DirectionStats) -> DirectionRecording {
    let from = log.main_from.unwrap_or(0);
    let began_ns = log.packets[from..].iter().find_map(|packet| packet.sent).unwrap_or(0);
    let packets = on_one_clock(log, side, began_ns);
    let phases: Vec<&LoggedPhase> = log.phases.iter().filter(|phase| phase.from >= from).collect();
    let length = packets[from..].iter().flatten().map(|packet| packet.sent).max().unwrap_or(0);
    // A last second that was hardly begun is none.
    let length = length.max(0) as u64 + planner.interval_ns.map_or(0, |(short, _)| short);
    let count = (length / SECOND).clamp(1, LONGEST_NS / SECOND * 2) as usize;
    let mut view = View { planner, packets, phases, count, ..View::default_of(planner) };
    view.serve();
    view.find_stalls();
    let mut seconds = view.seconds();
    // After the last train nothing is known.
    while seconds.len() > 1 && seconds.last().is_some_and(|last| last.bits_per_second.is_none()) {
        seconds.pop();
    }
    let mut recording = DirectionRecording {
        began_ns,
        seconds,
        packet: planner.full_frame() as u32,
        train: planner.train.unwrap_or_default(),
        interval_ns: planner.interval_ns.unwrap_or_default(),
        ..DirectionRecording::default()
    };
    view.judge(&mut recording);
    recording
}

/// All packets of a log by the sender's clock; `None`: it was not sent.
fn on_one_clock(log: &WayLog, side: &DirectionStats, began_ns: u64) -> Vec<Option<Packet>> {
    let sent = |packet: &crate::stream::PacketRecord| Some(packet.sent? as i64 - began_ns as i64);
    let mut packets: Vec<Option<Packet>> =
        log.packets.iter().map(|packet| Some(Packet { sent: sent(packet)?, left: None })).collect();
    for delay in &side.delays {
        if let Some(Some(packet)) = packets.get_mut(delay.number as usize) {
            packet.left = Some(packet.sent + delay.above_ns as i64);
        }
    }
    packets
}

/// A direction being read.
struct View<'a> {
    planner: &'a Planner,
    packets: Vec<Option<Packet>>,
    phases: Vec<&'a LoggedPhase>,
    /// Seconds.
    count: usize,
    trains: Vec<ServedTrain>,
    /// Trains of which too little arrived for a rate; those that were sent late; all.
    faint: usize,
    late: usize,
    sent: usize,
    stalls: Vec<(i64, i64)>,
    /// Times at which nothing was sent.
    unsent: Vec<(i64, i64)>,
    /// Small packets that could have met an empty queue, and those of them that did not.
    small: (u32, u32),
    /// The usual delay of small packets in each second above the least, ns, at their quarter.
    base: Vec<Option<f64>>,
}

impl<'a> View<'a> {
    fn default_of(planner: &'a Planner) -> View<'a> {
        View {
            planner,
            packets: Vec::new(),
            phases: Vec::new(),
            count: 0,
            trains: Vec::new(),
            faint: 0,
            late: 0,
            sent: 0,
            stalls: Vec::new(),
            unsent: Vec::new(),
            small: (0, 0),
            base: Vec::new(),
        }
    }

    fn of_phase<'b>(&'b self, phase: &LoggedPhase) -> impl Iterator<Item = (u32, Packet)> + 'b {
        let numbered = (0u32..).zip(&self.packets[phase.from..phase.to]);
        numbered.filter_map(|(number, packet)| Some((number, (*packet)?)))
    }

    fn second(&self, at: i64) -> Option<usize> {
        usize::try_from(at.div_euclid(SECOND as i64)).ok().filter(|second| *second < self.count)
    }

    /// Reads all trains.
    fn serve(&mut self) {
        for phase in self.phases.clone() {
            if phase.purpose != Purpose::Train {
                continue;
            }
            let packets: Vec<Sent> = self
                .of_phase(phase)
                .map(|(number, packet)| Sent { number, sent: packet.sent, left: packet.left })
                .collect();
            let (Some(first), Some(last)) = (packets.first(), packets.last()) else { continue };
            self.sent += 1;
            let planned = phase.train.gap_ns as f64 * f64::from(last.number - first.number);
            self.late += usize::from((last.sent - first.sent) as f64 > LATE * planned.max(1e5));
            match trains::served(&packets, self.planner.irregularity) {
                Some(train) => {
                    self.stalls.extend(train.stalls.iter().copied());
                    self.trains.push(train);
                }
                None => self.faint += 1,
            }
        }
        self.trains.sort_by_key(|train| train.middle);
    }

    /// The usual time of a full packet, ns.
    fn service(&self) -> f64 {
        let rates: Vec<f64> =
            self.trains.iter().filter(|train| train.is_saturating).map(|train| train.rate).collect();
        median(&rates).filter(|rate| *rate > 0.0).map_or(1e6, |rate| 1e9 / rate)
    }

    /// Times at which packets were waiting and none left.
    fn find_stalls(&mut self) {
        let mut above: Vec<Vec<f64>> = alloc::vec![Vec::new(); self.count];
        for phase in self.phases.iter().filter(|phase| phase.purpose == Purpose::Light) {
            for (_, packet) in self.of_phase(phase) {
                if let (Some(second), Some(left)) = (self.second(packet.sent), packet.left) {
                    above[second].push((left - packet.sent) as f64);
                }
            }
        }
        self.base = above
            .iter_mut()
            .map(|above| {
                above.sort_by(f64::total_cmp);
                above.get(above.len() / 4).copied()
            })
            .collect();
        let longest = stall_after(self.service());
        let mut before = i64::MIN;
        let from = self.phases.first().map_or(0, |phase| phase.from);
        let packets: Vec<Packet> = self.packets[from..].iter().flatten().copied().collect();
        let mut silent: Vec<(u32, u32)> = alloc::vec![(0, 0); self.count];
        let apart = self.planner.interval_ns.map_or(i64::MAX, |(_, long)| long as i64);
        for pair in packets.windows(2).filter(|pair| pair[1].sent - pair[0].sent > apart) {
            self.unsent.push((pair[0].sent, pair[1].sent));
        }
        for packet in packets {
            let Some(second) = self.second(packet.sent) else { continue };
            silent[second].0 += 1;
            let Some(left) = packet.left else { continue };
            silent[second].1 += 1;
            let around = second.saturating_sub(1)..(second + 2).min(self.count);
            let base = self.base[around].iter().flatten().copied().fold(f64::INFINITY, f64::min);
            let base = if base.is_finite() { base as i64 } else { 0 };
            let waits = before.max(packet.sent + base);
            if left - waits > longest {
                self.stalls.push((waits, left));
            }
            before = before.max(left);
        }
        for (second, (sent, arrived)) in silent.into_iter().enumerate() {
            if sent >= SILENT && arrived == 0 {
                let begin = (second as u64 * SECOND) as i64;
                self.stalls.push((begin, begin + SECOND as i64));
            }
        }
        self.stalls = united(core::mem::take(&mut self.stalls));
    }

    fn is_stalled(&self, at: i64) -> bool {
        let place = self.stalls.partition_point(|(_, until)| *until < at);
        self.stalls.get(place).is_some_and(|(from, _)| *from <= at)
    }

    /// The seconds, all of them.
    fn seconds(&mut self) -> Vec<RecordedSecond> {
        let mut seconds = self.rates();
        let service = self.service();
        for (at, second) in seconds.iter_mut().enumerate() {
            let (seen, queued) = self.small(at, service, second);
            self.small.0 += seen;
            self.small.1 += queued;
        }
        seconds
    }

    /// The seconds with their rates.
    fn rates(&self) -> Vec<RecordedSecond> {
        let full_bits = self.planner.full_frame() * 8.0;
        let busy: Vec<&ServedTrain> = self.trains.iter().filter(|train| train.is_saturating).collect();
        let as_sent: Vec<&ServedTrain> = self.trains.iter().filter(|train| !train.is_saturating).collect();
        (0..self.count)
            .map(|second| {
                let (from, to) = range(&busy, second);
                let (sent_from, sent_to) = range(&as_sent, second);
                let stalled = share_of(&self.stalls, second);
                let of_trains = interpolated(&busy, second);
                let fallback = as_sent[sent_from..sent_to].iter().map(|train| train.rate).fold(0.0, f64::max);
                let is_at_least = from == to && sent_to > sent_from;
                let packets = if is_at_least { Some(fallback) } else { of_trains };
                let packets = packets.or((stalled > STOOD_WHOLLY).then_some(0.0));
                let mut found = RecordedSecond {
                    bits_per_second: packets.map(|packets| packets * full_bits * (1.0 - stalled)),
                    is_at_least,
                    varies: stalled > STOOD || differ(&busy, from, to),
                    trains: (to - from) as u32,
                    stalled,
                    unseen: share_of(&self.unsent, second),
                    ..RecordedSecond::default()
                };
                if stalled > STOOD_WHOLLY {
                    found.is_at_least = false;
                }
                found
            })
            .collect()
    }

    /// Delay and loss, of small packets: how many were looked at, and how many of them found a queue.
    fn small(&self, second: usize, service_ns: f64, found: &mut RecordedSecond) -> (u32, u32) {
        let own = own_ns(found, self.planner.headers);
        let free = FREE_NS.max(FREE_TIMES * own) as i64;
        let begin = (second as u64 * SECOND) as i64;
        let mut above: Vec<f64> = Vec::new();
        // Phases of two intervals before may still be in the queue.
        let first = self
            .phases
            .partition_point(|phase| self.packets[phase.to - 1].is_some_and(|packet| packet.sent < begin));
        let mut full_left = i64::MIN;
        for phase in &self.phases[first.saturating_sub(4)..] {
            for (_, packet) in self.of_phase(phase) {
                if packet.sent >= begin + SECOND as i64 {
                    break;
                }
                if phase.purpose != Purpose::Light {
                    full_left = full_left.max(packet.left.unwrap_or(i64::MIN));
                    continue;
                }
                if packet.sent < begin || self.is_stalled(packet.left.unwrap_or(packet.sent)) {
                    continue;
                }
                found.sent += 1;
                match packet.left {
                    None => found.lost += 1,
                    Some(left) if left.saturating_sub(full_left) > free => {
                        above.push((left - packet.sent) as f64);
                    }
                    Some(_) => {}
                }
            }
            let begins = self.packets[phase.from].map_or(i64::MIN, |packet| packet.sent);
            if begins >= begin + SECOND as i64 {
                break;
            }
        }
        // Above the least so far: `place_delays` adds that.
        above.sort_by(f64::total_cmp);
        let Some(usual) = above.get(above.len() / 4).copied() else { return (0, 0) };
        found.delay_ns = Some(usual.max(0.0) as u64);
        let beyond = usual + 1.3 * self.planner.irregularity + QUEUED * service_ns + QUEUED_NS;
        (above.len() as u32, above.iter().filter(|above| **above > beyond).count() as u32)
    }
}

/// The share of a second that these times, which are in order, fill.
fn share_of(times: &[(i64, i64)], second: usize) -> f64 {
    let (begin, end) = ((second as u64 * SECOND) as i64, ((second as u64 + 1) * SECOND) as i64);
    let at = times.partition_point(|(_, until)| *until <= begin);
    let inside = times[at..].iter().take_while(|(from, _)| *from < end);
    let ns: i64 = inside.map(|(from, until)| (*until).min(end) - (*from).max(begin)).sum();
    ns as f64 / SECOND as f64
}

/// How long a small packet itself is on the line in a second, ns.
fn own_ns(second: &RecordedSecond, headers: u32) -> f64 {
    let bits = f64::from((u32::from(LIGHT) + headers + ETHERNET) * 8);
    second.bits_per_second.filter(|rate| *rate > 0.0).map_or(0.0, |rate| bits * 1e9 / rate)
}

/// Makes delays above the least what they are one way, without the time that the packets themselves take, if
/// what is left of the round trip is the same both ways.
pub(super) fn place_delays(
    ways: &mut [Option<DirectionRecording>; 2],
    headers: u32,
    round_trip_ns: Option<u64>,
) {
    let shortest = |way: &Option<DirectionRecording>| {
        let own = way.iter().flat_map(|way| &way.seconds).map(|second| own_ns(second, headers));
        own.filter(|own| *own > 0.0).fold(f64::INFINITY, f64::min)
    };
    let shortest = ways.each_ref().map(shortest).map(|own| if own.is_finite() { own } else { 0.0 });
    let least = round_trip_ns.map(|ns| (ns as f64 - shortest[0] - shortest[1]).max(0.0) / 2.0);
    for (way, shortest) in ways.iter_mut().zip(shortest) {
        for second in way.iter_mut().flat_map(|way| &mut way.seconds) {
            let own = own_ns(second, headers);
            let longer = if own > 0.0 { own - shortest } else { 0.0 };
            second.delay_ns = second
                .delay_ns
                .zip(least)
                .map(|(above, least)| (above as f64 + least - longer).max(0.0) as u64);
        }
    }
}

/// The trains whose middle is in a second: from, to.
fn range(trains: &[&ServedTrain], second: usize) -> (usize, usize) {
    let begin = (second as u64 * SECOND) as i64;
    let at = |time: i64| trains.partition_point(|train| train.middle < time);
    (at(begin), at(begin + SECOND as i64))
}

/// Do the rates of a second, and those just before and after it, differ by more than can be followed?
fn differ(trains: &[&ServedTrain], from: usize, to: usize) -> bool {
    let near = &trains[from.saturating_sub(1)..(to + 1).min(trains.len())];
    let rates = || near.iter().map(|train| train.rate);
    let (least, most) = (rates().fold(f64::INFINITY, f64::min), rates().fold(0.0, f64::max));
    let (Some(first), Some(last)) = (near.first(), near.last()) else { return false };
    let seconds = (last.middle - first.middle) as f64 / SECOND as f64;
    let varies = if to - from > 1 { VARIES } else { VARIES_ONE };
    most - least > varies * seconds.max(1.0) * (most + least) / 2.0
}

/// The mean over a second of a line through the rates of trains; `None` where they are too far apart.
fn interpolated(trains: &[&ServedTrain], second: usize) -> Option<f64> {
    let (begin, end) = ((second as u64 * SECOND) as i64, ((second as u64 + 1) * SECOND) as i64);
    let (from, to) = range(trains, second);
    let before = from.checked_sub(1).map(|at| trains[at]).filter(|train| begin - train.middle < APART_NS);
    let after = trains.get(to).copied().filter(|train| train.middle - end < APART_NS);
    let mut points: Vec<(f64, f64)> = Vec::new();
    points.extend(before.map(|train| (train.middle as f64, train.rate)));
    points.extend(trains[from..to].iter().map(|train| (train.middle as f64, train.rate)));
    points.extend(after.map(|train| (train.middle as f64, train.rate)));
    if from == to && (before.is_none() || after.is_none()) {
        return None;
    }
    if let (true, Some(before), Some(after)) = (from == to, before, after)
        && after.middle - before.middle > APART_NS
    {
        return None;
    }
    let (begin, end) = (begin as f64, end as f64);
    let value = |at: f64| {
        let place = points.partition_point(|(time, _)| *time <= at);
        match (place.checked_sub(1).map(|place| points[place]), points.get(place)) {
            (Some((_, rate)), None) => rate,
            (None, Some((_, rate))) => *rate,
            (Some((a, from)), Some((b, to))) => from + (to - from) * (at - a) / (b - a).max(1.0),
            (None, None) => 0.0,
        }
    };
    let inner = points.iter().map(|(time, _)| *time).filter(|time| *time > begin && *time < end);
    let times: Vec<f64> = core::iter::once(begin).chain(inner).chain([end]).collect();
    let area: f64 =
        times.windows(2).map(|pair| (pair[1] - pair[0]) * (value(pair[0]) + value(pair[1])) / 2.0).sum();
    Some(area / (end - begin))
}

/// Times that overlap, as one; in order.
fn united(mut times: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    times.sort_unstable();
    let mut found: Vec<(i64, i64)> = Vec::new();
    for (from, until) in times {
        match found.last_mut() {
            Some((_, end)) if *end >= from => *end = (*end).max(until),
            _ => found.push((from, until)),
        }
    }
    found
}

impl View<'_> {
    /// Why not to believe it.
    fn judge(&self, recording: &mut DirectionRecording) {
        let seconds = &recording.seconds;
        let count = |of: &dyn Fn(&RecordedSecond) -> bool| seconds.iter().filter(|second| of(second)).count();
        let all = seconds.len();
        let mut caveats = Vec::new();
        let mut notes = Vec::new();
        let missing = count(&|second| second.bits_per_second.is_none());
        if missing > 0 {
            caveats.push(format!(
                "in {missing} of {all} s no rate was measured; the trace keeps the one before"
            ));
        }
        let least = count(&|second| second.is_at_least);
        if least > 0 {
            caveats.push(format!(
                "in {least} of {all} s all trains came through as fast as they were sent: the line may carry more \
                 than the rate of those seconds"
            ));
        }
        let varies = count(&|second| second.varies);
        if varies > 0 {
            caveats.push(format!(
                "in {varies} of {all} s the rate varied by more than can be followed, or the line stood still: the \
                 rate of those seconds may be off by more than 5 %"
            ));
        }
        caveats.extend(self.limits());
        caveats.extend(self.of_trains());
        caveats.extend(self.bucket());
        let stood = count(&|second| second.stalled > STOOD);
        if stood > 0 {
            let ns: f64 = seconds.iter().map(|second| second.stalled * SECOND as f64).sum();
            notes.push(format!("nothing passed for {} in {stood} of {all} s", format_duration(ns as u64)));
        }
        let unseen: f64 = seconds.iter().map(|second| second.unseen * SECOND as f64).sum();
        if unseen > 0.0 {
            let part = count(&|second| second.unseen > UNSEEN);
            notes.push(format!(
                "nothing was sent for {} while the server reported, more than a quarter of {part} of {all} s: what \
                 the line did then is not known",
                format_duration(unseen as u64)
            ));
        }
        (recording.caveats, recording.notes) = (caveats, notes);
    }

    fn limits(&self) -> Vec<String> {
        let Limited { by_budget, by_server, by_line } = self.planner.limited;
        let (few, _) = self.planner.train.unwrap_or_default();
        let long = self.planner.interval_ns.unwrap_or_default().1;
        let mut caveats = Vec::new();
        if by_budget {
            caveats.push(format!(
                "the budget is small for this rate: trains of {few} packets at the fewest, {} apart at the most",
                format_duration(long)
            ));
        }
        if by_server {
            caveats.push(format!(
                "the server allows too little for this rate: trains of {few} packets at the fewest"
            ));
        }
        if by_line {
            caveats.push(format!(
                "the line is slow: a train of {few} packets needs more than half a second, and only one each {} \
                 was sent",
                format_duration(long)
            ));
        }
        caveats
    }

    fn of_trains(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        if share(self.late, self.sent) > SOME {
            caveats.push(format!(
                "{} of {} trains were not sent as fast as planned: the sender could not keep up",
                self.late, self.sent
            ));
        }
        if share(self.faint, self.sent) > MANY {
            caveats.push(format!(
                "of {} of {} trains too few packets arrived for a rate",
                self.faint, self.sent
            ));
        }
        let policed = self.trains.iter().filter(|train| train.is_policed).count();
        if share(policed, self.trains.len()) > SOME {
            caveats.push(format!(
                "{policed} of {} trains lost packets without a queue: something drops by rate (a policer), and the \
                 rate is not exact",
                self.trains.len()
            ));
        }
        let sum = |of: &dyn Fn(&ServedTrain) -> f64| self.trains.iter().map(of).sum::<f64>();
        let (gaps, odd) = (sum(&|train| f64::from(train.gaps)), sum(&|train| f64::from(train.odd)));
        let (busy, more) = (sum(&|train| train.busy_ns), sum(&|train| train.odd_ns));
        if odd > ODD_GAPS * gaps && more > ODD_TIME * busy {
            caveats.push(format!(
                "{} of the time between packets was not theirs: others used the line, or it sends in bursts; \
                 without others it may carry that much more",
                percent(more / busy.max(1.0))
            ));
        }
        let (small, queued) = self.small;
        if f64::from(queued) > OTHERS * f64::from(small.max(1)) {
            caveats.push(format!(
                "{queued} of {small} small packets met a queue that was not of this recording, or a delay that \
                 varies: if others used the line, what is recorded is between what they left and all of it"
            ));
        }
        let overtaken = sum(&|train| f64::from(train.overtaken));
        if overtaken > OVERTAKEN * gaps.max(1.0) {
            caveats.push(format!("{overtaken} packets were overtaken: rates are less exact"));
        }
        caveats
    }

    /// A token bucket lets more through at first than in the long run.
    fn bucket(&self) -> Option<String> {
        let busy: Vec<&ServedTrain> = self.trains.iter().filter(|train| train.is_saturating).collect();
        let slowed = busy.iter().filter(|train| train.slowed > SLOWED).count();
        let bits = self.planner.full_frame() * 8.0;
        if busy.len() >= 4 && slowed * 2 > busy.len() {
            return Some(
                "trains begin faster than they end: a token bucket lets bursts through, and the rate is between \
                 that of its bursts and its own"
                    .into(),
            );
        }
        let flooded = self.planner.flooded?;
        let first: Vec<f64> = self.trains.iter().take(FIRST_TRAINS).map(|train| train.rate).collect();
        let trains = median(&first)?;
        (trains > FLOODED * flooded).then(|| {
            format!(
                "a long flood before the recording got {} at last, and its first trains {}: unless the line changed \
                 just then, a token bucket lets them through, and a long transfer gets less than is recorded here",
                rate(flooded * bits),
                rate(trains * bits)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn train(middle_ms: i64, rate: f64) -> ServedTrain {
        ServedTrain { rate, is_saturating: true, middle: middle_ms * 1_000_000, ..ServedTrain::default() }
    }

    #[test]
    fn a_second_has_the_mean_of_the_line_through_its_trains() {
        let trains = [train(500, 100.0), train(1500, 200.0), train(2500, 100.0), train(9000, 50.0)];
        let trains: Vec<&ServedTrain> = trains.iter().collect();
        // From 0 to 0.5 s as at 0.5 s; then it rises to 150 at 1 s.
        assert_eq!(interpolated(&trains, 0), Some(100.0 / 2.0 + 125.0 / 2.0));
        assert_eq!(interpolated(&trains, 1), Some(175.0));
        // Nothing is known between 2.5 s and 9 s.
        assert_eq!((interpolated(&trains, 4), interpolated(&trains, 9)), (None, Some(50.0)));
        assert_eq!(interpolated(&[], 0), None);
        assert!(differ(&trains, 0, 1) && !differ(&trains[3..], 0, 1));
        // 30 % in a second are followed.
        let slope = [train(0, 100.0), train(500, 115.0), train(1000, 130.0), train(1500, 145.0)];
        assert!(!differ(&slope.iter().collect::<Vec<_>>(), 1, 3));
    }

    #[test]
    fn times_that_overlap_are_one() {
        assert_eq!(united(alloc::vec![(5, 9), (0, 2), (8, 12), (2, 3)]), [(0, 3), (5, 12)]);
        assert_eq!(united(Vec::new()), []);
    }
}
