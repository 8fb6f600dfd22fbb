//! What was asked of the line, and what was measured of it while the program ran.

use tidegate_measure::Durations;

use tidegate_packet::{Nanos, Time};
use tidegate_scenario::lay::{LaidOut, START};
use tidegate_scenario::model::{LinkDirection, Scenario};
use tidegate_scenario::run::LinkReadings;
use tidegate_sim::{LinkId, LinkStats, LossModel};

/// Pings without a reply that are younger than this at the end may still be answered, ns.
const OPEN: u64 = 1_000_000_000;

/// One direction of the line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct WayMeasured {
    /// How long it was measured, s.
    pub(super) seconds: f64,
    /// Bytes that it carried, framing included.
    pub(super) carried: u64,
    /// Bytes that it could have carried in that time, as asked.
    pub(super) could: u64,
    /// The same of those tenths of a second at whose beginning and end packets waited, five in a row at
    /// least.
    pub(super) busy_carried: u64,
    pub(super) busy_could: u64,
    pub(super) busy_seconds: f64,
    /// Packets put on it, and of these lost on it.
    pub(super) sent: u64,
    pub(super) lost: u64,
    /// Packets that its buffer refused.
    pub(super) dropped: u64,
}

impl WayMeasured {
    /// Bit/s.
    pub(super) fn rate(&self) -> f64 {
        per_second(self.carried, self.seconds)
    }

    /// What it could carry in the mean, bit/s.
    pub(super) fn capacity(&self) -> f64 {
        per_second(self.could, self.seconds)
    }

    /// The share of packets that were lost on it; `None`: none was sent.
    pub(super) fn loss(&self) -> Option<f64> {
        (self.sent > 0).then(|| self.lost as f64 / self.sent as f64)
    }
}

pub(super) fn per_second(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}

/// The line while the program ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LineMeasured {
    /// How long the program ran, s.
    pub(super) seconds: f64,
    pub(super) up: WayMeasured,
    pub(super) down: WayMeasured,
    /// Round trips of pings through it, ns.
    pub(super) rtt: Durations,
    /// Pings that had the time to be answered, and of these unanswered.
    pub(super) rtt_sent: u64,
    pub(super) rtt_lost: u64,
    /// How late packets were handed on: the median and the 99th percentile, ns.
    pub(super) late: [u64; 2],
}

impl LineMeasured {
    /// The share of pings that were not answered; `None`: none was sent in time.
    pub(super) fn rtt_loss(&self) -> Option<f64> {
        (self.rtt_sent > 0).then(|| self.rtt_lost as f64 / self.rtt_sent as f64)
    }

    /// Takes the pings: when each was sent and how long its reply took, at the end.
    pub(super) fn take_pings(&mut self, pings: &[(u64, Option<u64>)], end: u64) {
        self.rtt = Durations::new(pings.iter().filter_map(|(_, took)| *took).collect());
        // Of the last ones, those that were answered say nothing of those that will not be.
        let in_time = || pings.iter().filter(|(sent, _)| sent.saturating_add(OPEN) <= end);
        self.rtt_sent = in_time().count() as u64;
        self.rtt_lost = in_time().filter(|(_, took)| took.is_none()).count() as u64;
    }
}

/// What is asked of one direction.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct WayAsked {
    /// Its rate changes over time.
    pub(super) varies: bool,
    /// The share of packets that it loses; `None`: it changes.
    pub(super) loss: Option<f64>,
}

/// What is asked of the line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LineAsked {
    /// The preset's name.
    pub(super) preset: Option<String>,
    /// The recordings' names.
    pub(super) traces: Vec<String>,
    /// The policy of the gateway, as it was named.
    pub(super) policy: Option<String>,
    pub(super) seed: u64,
    pub(super) up: WayAsked,
    pub(super) down: WayAsked,
    /// The round trip of an idle line, ns; `None`: it changes.
    pub(super) rtt: Option<u64>,
}

impl LineAsked {
    /// Of the line of a scenario.
    pub(super) fn new(scenario: &Scenario) -> LineAsked {
        let mut asked = LineAsked::default();
        let mut rtt = Some(0);
        for cable in scenario.cables.iter().filter(|cable| cable.name == "dsl" || cable.name == "internet") {
            for (is_up, line) in [(true, &cable.up), (false, &cable.down)] {
                rtt = rtt.zip(steady_delay(line)).map(|(so_far, delay)| so_far + delay.0);
                if cable.name == "dsl" {
                    *(if is_up { &mut asked.up } else { &mut asked.down }) = way_asked(line);
                }
            }
        }
        LineAsked { rtt, ..asked }
    }
}

/// The delay of a direction where it is the same all the time.
fn steady_delay(line: &LinkDirection) -> Option<Nanos> {
    let varies = line.jitter.is_some_and(|jitter| jitter.0 > 0)
        || line.trace.as_ref().is_some_and(|trace| trace.has_delays())
        || line.impairment.as_ref().is_some_and(|what| what.spread.0 > 0 || what.reorder.share > 0.0);
    (!varies).then(|| line.delay.unwrap_or(Nanos(0)))
}

fn way_asked(line: &LinkDirection) -> WayAsked {
    let recorded = line.trace.as_ref();
    let loss = line.impairment.as_ref().map_or(0.0, |what| mean_loss(&what.loss));
    WayAsked {
        varies: recorded.is_some_and(|trace| trace.has_rates()),
        loss: (!recorded.is_some_and(|trace| trace.has_losses())).then_some(loss),
    }
}

/// The share of packets that are lost in the long run.
fn mean_loss(loss: &LossModel) -> f64 {
    match loss {
        LossModel::None => 0.0,
        LossModel::Random(share) => *share,
        LossModel::Every(count) => 1.0 / f64::from((*count).max(1)),
        LossModel::Pattern(all) => all.iter().filter(|lost| **lost).count() as f64 / all.len().max(1) as f64,
        LossModel::Burst { p, r, bad, good } if p + r > 0.0 => (p * bad + r * good) / (p + r),
        LossModel::Burst { good, .. } => *good,
    }
}

/// Reads the line while the program runs.
pub(super) struct Recorder {
    /// Upload and download.
    ways: [WayRecorder; 2],
    last: Time,
}

/// Steps at each of whose ends packets waited count as busy in a row of so many at least: in a shorter one
/// the queue may well have been empty meanwhile.
const BUSY_ROW: usize = 5;

/// Reads one direction.
struct WayRecorder {
    readings: LinkReadings,
    links: Vec<LinkId>,
    measured: WayMeasured,
    /// Packets waited at the end of the last step.
    waited: bool,
    /// The steps in a row so far at whose ends packets waited, until they count: bytes carried, bytes that
    /// could have been, s.
    row: Vec<(u64, u64, f64)>,
}

impl WayRecorder {
    fn read(&mut self, laid: &mut LaidOut, step: Nanos) {
        self.readings.read(laid, step);
        let (carried, backlog, _) = self.readings.last_step();
        let could = self.readings.capacity.last().copied().unwrap_or(0);
        self.note((carried, could, step.0 as f64 / 1e9), backlog > 0);
    }

    fn note(&mut self, (carried, could, seconds): (u64, u64, f64), waits: bool) {
        let measured = &mut self.measured;
        measured.seconds += seconds;
        measured.carried += carried;
        measured.could += could;
        if self.waited && waits {
            self.row.push((carried, could, seconds));
        } else {
            self.count_row();
        }
        self.waited = waits;
    }

    /// Counts a row that has ended.
    fn count_row(&mut self) {
        let row = std::mem::take(&mut self.row);
        if row.len() < BUSY_ROW {
            return;
        }
        for (carried, could, seconds) in row {
            self.measured.busy_carried += carried;
            self.measured.busy_could += could;
            self.measured.busy_seconds += seconds;
        }
    }
}

impl Recorder {
    /// Of the line of a scenario, which has one.
    pub(super) fn new(scenario: &Scenario, laid: &LaidOut) -> Option<Recorder> {
        let line = scenario.cables.iter().position(|cable| cable.name == "dsl")?;
        let mut all: Vec<LinkReadings> = LinkReadings::all(scenario, 0, &laid.world);
        all.retain(|one| one.cable == line);
        let links = |up| laid.world.links(line, up);
        let mut way = |up: bool| {
            let at = all.iter().position(|one| one.up == up)?;
            let readings = all.remove(at);
            let measured = WayMeasured::default();
            Some(WayRecorder { readings, links: links(up), measured, waited: false, row: Vec::new() })
        };
        Some(Recorder { ways: [way(true)?, way(false)?], last: START })
    }

    /// Reads until now.
    pub(super) fn read(&mut self, laid: &mut LaidOut, now: Time) {
        let step = now.since(self.last);
        if step.0 == 0 {
            return;
        }
        self.last = now;
        self.ways.iter_mut().for_each(|way| way.read(laid, step));
    }

    /// What was measured.
    pub(super) fn end(self, laid: &mut LaidOut) -> [WayMeasured; 2] {
        self.ways.map(|mut way| {
            way.count_row();
            let WayRecorder { links, mut measured, .. } = way;
            for link in links {
                let LinkStats { sent, dropped, lost, .. } = laid.world.net.link_stats(link);
                measured.sent += sent;
                measured.lost += lost;
                measured.dropped += dropped;
            }
            measured
        })
    }
}

/// `1.25 %`.
pub(super) fn share(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_line_is_one_that_packets_wait_for_all_the_time() {
        let mut way = WayRecorder {
            readings: LinkReadings::default(),
            links: Vec::new(),
            measured: WayMeasured::default(),
            waited: false,
            row: Vec::new(),
        };
        // A short burst, then a long one of six steps between waiting ends.
        let waits = [true, true, false, true, true, true, true, true, true, true, false];
        waits.iter().for_each(|waits| way.note((90, 100, 0.1), *waits));
        way.count_row();
        let measured = way.measured;
        assert_eq!((measured.carried, measured.could, measured.busy_carried), (990, 1100, 540));
        assert!((measured.busy_seconds - 0.6).abs() < 1e-9 && (measured.rate() - 7200.0).abs() < 1e-6);
        assert_eq!(
            (measured.loss(), WayMeasured { sent: 4, lost: 1, ..measured }.loss()),
            (None, Some(0.25))
        );
    }

    #[test]
    fn pings_in_flight_are_not_lost() {
        let mut measured = LineMeasured::default();
        let second = 1_000_000_000;
        measured.take_pings(&[(0, Some(20)), (second, None), (3 * second, None)], 3 * second + 1);
        assert_eq!((measured.rtt.count(), measured.rtt_lost, measured.rtt_loss()), (1, 1, Some(0.5)));
        // Replies to the last ones alone say nothing of losses.
        measured.take_pings(&[(0, Some(20)), (10, None), (20, Some(20))], second / 2);
        assert_eq!((measured.rtt.count(), measured.rtt_loss()), (2, None));
    }

    #[test]
    fn what_is_lost_in_the_long_run() {
        let of = |loss: LossModel| (mean_loss(&loss) * 1e6).round() / 1e6;
        assert_eq!(
            (of(LossModel::None), of(LossModel::Random(0.01)), of(LossModel::Every(4))),
            (0.0, 0.01, 0.25)
        );
        assert_eq!(of(LossModel::Pattern(vec![true, false, false, false])), 0.25);
        assert_eq!(of(LossModel::Burst { p: 0.01, r: 0.09, bad: 0.5, good: 0.0 }), 0.05);
    }
}
