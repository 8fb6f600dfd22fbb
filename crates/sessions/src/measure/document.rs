//! From the loads' results to the document that tables, pages, comparisons and flent's files are made of.
//!
//! All exchanges of a session are read together: the far clock's offset and pace are the same throughout, and
//! what an idle path takes is what shows them best.

use super::carry::{LEAD, Load, STEP_NS};
use super::plan::{LoadPlan, ProbePlan};
use tidegate_measure::experiment::{ArrivalStats, EventRecord, ProbeRecord, RunRecord, TransferRecord};
use tidegate_measure::oneway::{self, OneWayResult, Order};
use tidegate_measure::stream::{ExchangeResult, PacketRecord, Stream, StreamTrace};
use tidegate_probe_wire::FlowDirection;
use tidegate_prober::{Error, MeasuredFlow};

/// The names of the ends.
pub(crate) const HERE: &str = "here";

/// A load that was carried out, as part of the test.
#[derive(Debug)]
pub(crate) struct Done<'p> {
    pub(crate) plan: &'p LoadPlan,
    pub(crate) repeat: u32,
    pub(crate) load: Load,
}

/// What is known of the packets of all exchanges together.
pub(crate) struct Ways {
    /// Of each packet of all exchanges one after the other how long it took, ns; `None`: it did not arrive.
    up: Vec<Option<u64>>,
    down: Vec<Option<u64>>,
    pub(crate) reading: OneWayResult,
}

impl Ways {
    /// Reads them all.
    pub(crate) fn of(done: &[Done<'_>]) -> Ways {
        let mut all = ExchangeResult::default();
        for one in done {
            join(&mut all.up, &known(&one.load.outcome).up);
            join(&mut all.down, &one.load.outcome.down);
        }
        let reading = oneway::read(&all);
        let took = |course: &StreamTrace, side: &oneway::DirectionStats| {
            let mut took = vec![None; course.packets.len()];
            let least = side.least_ns.unwrap_or(0);
            for delay in &side.delays {
                if let Some(took) = took.get_mut(delay.number as usize) {
                    *took = Some(least + delay.above_ns);
                }
            }
            took
        };
        Ways { up: took(&all.up, &reading.up), down: took(&all.down, &reading.down), reading }
    }
}

/// Which uploaded packets arrived only the server can report: when it is gone, that is unknown.
fn known(outcome: &ExchangeResult) -> ExchangeResult {
    match outcome.is_reported {
        true => outcome.clone(),
        false => ExchangeResult { up: StreamTrace::default(), ..outcome.clone() },
    }
}

fn join(all: &mut StreamTrace, more: &StreamTrace) {
    let before = all.arrived() as u32;
    all.stream.phases.extend_from_slice(&more.stream.phases);
    all.packets
        .extend(more.packets.iter().map(|journey| PacketRecord { rank: journey.rank + before, ..*journey }));
}

/// The runs, in the order in which they were done.
pub(crate) fn runs(done: &[Done<'_>], ways: &Ways, name: &str, server: &str) -> Vec<RunRecord> {
    let mut at = (0, 0);
    let mut runs = Vec::new();
    for one in done {
        let outcome = known(&one.load.outcome);
        let counts = (outcome.up.packets.len(), outcome.down.packets.len());
        let took = (&ways.up[at.0..at.0 + counts.0], &ways.down[at.1..at.1 + counts.1]);
        at = (at.0 + counts.0, at.1 + counts.1);
        runs.push(run(one, &outcome, took, name, server));
    }
    runs
}

type Took<'w> = (&'w [Option<u64>], &'w [Option<u64>]);

fn run(done: &Done<'_>, outcome: &ExchangeResult, took: Took<'_>, name: &str, server: &str) -> RunRecord {
    let Done { plan, load, .. } = done;
    let length = plan.length.as_nanos() as u64;
    let window = (LEAD.as_nanos() as u64, LEAD.as_nanos() as u64 + length);
    let mut probes = Vec::new();
    for (place, probe) in plan.probes.iter().enumerate() {
        let load_probe = LoadProbe { load, outcome, took, place, probe, server };
        probes.extend(load_probe.probes());
    }
    probes.extend(icmp(load, server));
    let flows = load.flows.iter().scan((0, 0), |numbers, (way, dscp, carried)| {
        let number = if *way == FlowDirection::Up { &mut numbers.0 } else { &mut numbers.1 };
        *number += 1;
        Some(transfer(load.began, (*way, *dscp, *number), carried.as_ref().ok(), window, server))
    });
    let troubles = troubles(load);
    let transfers = flows.chain(flooded(load, window, server)).collect();
    RunRecord {
        policy: name.to_owned(),
        load: plan.name.clone(),
        repeat: done.repeat,
        window,
        step_ns: STEP_NS,
        // Under half a load nothing is known of the whole one.
        cut: outcome.cut.is_some() || !troubles.is_empty(),
        probes,
        transfers,
        events: troubles,
        ..RunRecord::default()
    }
}

/// One probe of a load.
struct LoadProbe<'l> {
    load: &'l Load,
    outcome: &'l ExchangeResult,
    took: Took<'l>,
    place: usize,
    probe: &'l ProbePlan,
    server: &'l str,
}

/// One packet of a probe: when it was sent, by our clock from the load's beginning, and how long it took.
type Sent = (u64, Option<u64>);

impl LoadProbe<'_> {
    /// There and back together, and each way.
    fn probes(&self) -> Vec<ProbeRecord> {
        let (up, down) = (self.way(FlowDirection::Up), self.way(FlowDirection::Down));
        let ways = [(FlowDirection::Up, &up), (FlowDirection::Down, &down)];
        let mut probes: Vec<ProbeRecord> =
            ways.into_iter().map(|(way, sent)| self.one_way(way, sent)).collect();
        // A call is sent one way; for all else the round trip counts.
        if !self.probe.id.starts_with("voip") {
            let both: Vec<(&Sent, &Sent)> = up.iter().zip(&down).collect();
            let answer =
                |((sent, there), (_, back)): &(&Sent, &Sent)| (*sent, there.zip(*back).map(|(a, b)| a + b));
            let round = ProbeRecord {
                id: self.probe.id.clone(),
                title: self.probe.title.clone(),
                unit: "round trip".to_owned(),
                answers: both.iter().map(answer).collect(),
                there: up.iter().map(|(_, took)| *took).collect(),
                ..self.base(FlowDirection::Up)
            };
            probes.insert(0, round);
        }
        probes.retain(|probe| !probe.answers.is_empty());
        probes
    }

    fn base(&self, way: FlowDirection) -> ProbeRecord {
        let ends = [HERE.to_owned(), self.server.to_owned()];
        let [from, to] = ends;
        let (from, to) = if way == FlowDirection::Up { (from, to) } else { (to, from) };
        ProbeRecord { from, to, dscp: self.probe.dscp, ecn: self.probe.ecn, ..ProbeRecord::default() }
    }

    fn course(&self, way: FlowDirection) -> (&StreamTrace, &[Option<u64>]) {
        match way {
            FlowDirection::Up => (&self.outcome.up, self.took.0),
            FlowDirection::Down => (&self.outcome.down, self.took.1),
        }
    }

    /// Its packets that were sent, in their order.
    fn way(&self, way: FlowDirection) -> Vec<Sent> {
        let (course, took) = self.course(way);
        let began = self.load.began;
        let own =
            course.packets.iter().zip(took).zip(&self.load.whose).filter(|(_, whose)| **whose == self.place);
        let dues = course.stream.dues().zip(&self.load.whose).filter(|(_, whose)| **whose == self.place);
        let first = self.outcome.up.packets.iter().find_map(|journey| journey.sent).unwrap_or(began);
        let sent = own.zip(dues).filter_map(|(((journey, took), _), (due, _))| {
            let at = match (way, journey.arrived, took) {
                (FlowDirection::Up, ..) => journey.sent?,
                // By our clock it was sent as long before it arrived as it took.
                (FlowDirection::Down, Some(arrived), Some(took)) => arrived.saturating_sub(*took),
                // A lost packet has no other time than the one when it was due.
                (FlowDirection::Down, ..) => {
                    journey.sent?;
                    first + due.at_ns
                }
            };
            Some((at.saturating_sub(began), *took))
        });
        sent.collect()
    }

    fn one_way(&self, way: FlowDirection, sent: &[Sent]) -> ProbeRecord {
        let word = if way == FlowDirection::Up { "up" } else { "down" };
        let (course, _) = self.course(way);
        let arrived = || sent.iter().filter_map(|(at, took)| Some(at + (*took)?));
        let is_call = self.probe.id.starts_with("voip");
        let (received, packets) =
            if is_call { per_step(arrived(), self.probe.payload.into()) } else { Default::default() };
        ProbeRecord {
            id: format!("{}-{word}", self.probe.id),
            title: format!("{} {word}", self.probe.title),
            unit: "one way".to_owned(),
            answers: sent.to_vec(),
            received,
            packets,
            arrivals: Some(self.arrivals(course)),
            ..self.base(way)
        }
    }

    fn arrivals(&self, course: &StreamTrace) -> ArrivalStats {
        let own = course.packets.iter().zip(&self.load.whose).filter(|(_, whose)| **whose == self.place);
        let own: Vec<PacketRecord> = own.map(|(journey, _)| *journey).collect();
        let mut arrivals = ArrivalStats {
            duplicates: own.iter().map(|one| u64::from(one.duplicates)).sum(),
            ..ArrivalStats::default()
        };
        for seen in own.iter().filter(|one| one.arrived.is_some()).filter_map(|one| one.ds) {
            match arrivals.ds_fields.iter_mut().find(|(ds, _)| *ds == u64::from(seen)) {
                Some((_, count)) => *count += 1,
                None => arrivals.ds_fields.push((seen.into(), 1)),
            }
        }
        // Only those of its own kind may overtake each other: marks are there to change the order.
        let order = Order::of(&StreamTrace { stream: Stream::default(), packets: own });
        ArrivalStats { reordered: order.reordered, extent: order.extent, ..arrivals }
    }
}

/// Payload bytes and packets that arrived in each step.
fn per_step(arrived: impl Iterator<Item = u64>, payload: u64) -> (Vec<u64>, Vec<u32>) {
    let (mut bytes, mut packets) = (Vec::new(), Vec::new());
    for at in arrived {
        let step = (at / STEP_NS) as usize;
        if bytes.len() <= step {
            bytes.resize(step + 1, 0);
            packets.resize(step + 1, 0);
        }
        bytes[step] += payload;
        packets[step] += 1;
    }
    (bytes, packets)
}

fn icmp(load: &Load, server: &str) -> Option<ProbeRecord> {
    let seen = load.icmp.as_ref()?;
    let target = seen.targets.first().filter(|target| !target.requests.is_empty())?;
    Some(ProbeRecord {
        id: "icmp".to_owned(),
        title: "ICMP".to_owned(),
        unit: "round trip".to_owned(),
        from: HERE.to_owned(),
        to: server.to_owned(),
        answers: target.requests.iter().map(|request| (request.sent_ns, request.took_ns)).collect(),
        ..ProbeRecord::default()
    })
}

/// A flow; one that never began is there with nothing carried.
fn transfer(
    began: u64,
    flow: (FlowDirection, u8, u32),
    carried: Option<&MeasuredFlow>,
    window: (u64, u64),
    server: &str,
) -> TransferRecord {
    let (way, dscp, number) = flow;
    let (word, from, to) = match way {
        FlowDirection::Up => ("upload", HERE, server),
        FlowDirection::Down => ("download", server, HERE),
    };
    let none = MeasuredFlow::default();
    let carried = carried.unwrap_or(&none);
    let since = |at: u64| at.saturating_sub(began);
    let end = carried.bytes.last().map_or(0, |(at, _)| since(*at));
    let steps = end.div_ceil(STEP_NS);
    let edge = |at: u64| carried_by(&carried.bytes, began + at);
    let series: Vec<u64> =
        (0..steps).map(|n| edge((n + 1) * STEP_NS).saturating_sub(edge(n * STEP_NS))).collect();
    // At the end of each step the last reported value.
    let tcp_sample_of =
        |n: u64| carried.samples.iter().rev().find(|sample| since(sample.at_ns) <= (n + 1) * STEP_NS);
    let samples: Vec<_> = (0..steps).map(|n| tcp_sample_of(n).copied().unwrap_or_default()).collect();
    let retransmissions = carried.samples.last().map_or(0, |sample| sample.retransmissions.into());
    TransferRecord {
        id: format!("{word}-{number}"),
        title: format!("{word} {number}"),
        from: from.to_owned(),
        to: to.to_owned(),
        control: String::new(),
        dscp,
        began: since(carried.began),
        finished: None,
        bytes: edge(window.1).saturating_sub(edge(window.0)),
        retransmissions,
        lost: retransmissions,
        series,
        cwnd: samples.iter().map(|sample| sample.cwnd).collect(),
        srtt_us: samples.iter().map(|sample| sample.srtt_us.into()).collect(),
        delivery_bits: samples.iter().map(|sample| sample.delivery_rate.saturating_mul(8)).collect(),
    }
}

/// How many bytes had been carried at a time, between two readings by the straight line.
fn carried_by(bytes: &[(u64, u64)], at: u64) -> u64 {
    let after = bytes.partition_point(|(read, _)| *read <= at);
    match (after.checked_sub(1).map(|before| bytes[before]), bytes.get(after)) {
        (Some((from, had)), Some((to, has))) => {
            let part =
                u128::from(has.saturating_sub(had)) * u128::from(at - from) / u128::from((to - from).max(1));
            had + part as u64
        }
        (Some((_, had)), None) => had,
        (None, _) => 0,
    }
}

/// What flooded, as a transfer: what arrived of it.
fn flooded(load: &Load, window: (u64, u64), server: &str) -> Option<TransferRecord> {
    let Ok(outcome) = load.flood.as_ref()? else { return None };
    let payload = outcome.up.stream.phases.first().map_or(0, |phase| u64::from(phase.payload));
    let first = outcome.up.packets.iter().filter_map(|journey| journey.arrived).min()?;
    let arrived = outcome.up.packets.iter().filter_map(|journey| journey.arrived);
    let (series, _) = per_step(arrived.map(|at| at - first + window.0), payload);
    Some(TransferRecord {
        id: "flood-1".to_owned(),
        title: "UDP flood".to_owned(),
        from: HERE.to_owned(),
        to: server.to_owned(),
        began: window.0,
        // What comes after its end was still waiting then.
        bytes: series
            .iter()
            .skip((window.0 / STEP_NS) as usize)
            .take(((window.1 - window.0) / STEP_NS) as usize)
            .sum(),
        lost: outcome.up.sent() - outcome.up.arrived(),
        series,
        ..TransferRecord::default()
    })
}

/// What went wrong with flows.
fn troubles(load: &Load) -> Vec<EventRecord> {
    let flows = load.flows.iter().filter_map(|(way, _, carried)| {
        let word = if *way == FlowDirection::Up { "an upload" } else { "a download" };
        let (at, why) = match carried {
            Err(error) => (0, error.to_string()),
            Ok(carried) => {
                let end = carried.bytes.last().map_or(carried.began, |(at, _)| *at);
                (end.saturating_sub(load.began), carried.problem.clone()?)
            }
        };
        Some(EventRecord {
            at,
            on: HERE.to_owned(),
            what: format!("{word} ended: {why}"),
            output: String::new(),
        })
    });
    let flood = load.flood.iter().filter_map(|flood| flood.as_ref().err()).map(|error: &Error| EventRecord {
        on: HERE.to_owned(),
        what: format!("the flood ended: {error}"),
        ..EventRecord::default()
    });
    flows.chain(flood).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_between_two_readings_lie_on_a_line() {
        let bytes = [(100, 0), (200, 1000), (400, 1500)];
        let at = [50, 100, 150, 200, 300, 400, 1000].map(|at| carried_by(&bytes, at));
        assert_eq!(at, [0, 0, 500, 1000, 1250, 1500, 1500]);
    }
}
