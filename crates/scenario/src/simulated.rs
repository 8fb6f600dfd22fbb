//! Simulated hosts in virtual time.

use crate::begin::{Going, Talk};
use crate::document::{self, control_name, name, per_step, piece_id, since, transaction_probes};
use crate::lay::LaidOut;
use crate::model::{TrafficItem, TrafficKind};
use crate::run::{Outside, ScenarioRun, TrafficDriver};
use tidegate_measure::experiment as doc;
use tidegate_packet::{Nanos, Time};
use tidegate_sim::{Completion, FlowSample, FlowSpec};

/// The first port of a side that opens connections.
const FIRST_PORT: u16 = 32_768;

/// A piece of running traffic: of which item, which of several, and what it is in the network.
#[derive(Clone, Copy, Debug)]
struct Piece {
    item: usize,
    number: u32,
    going: Going,
}

/// Their traffic.
#[derive(Debug, Default)]
pub struct Simulated {
    pieces: Vec<Piece>,
}

impl TrafficDriver for Simulated {
    const GRACE: Nanos = Nanos::secs(10);

    fn begin(run: &mut ScenarioRun<'_, Simulated>) -> Result<(), Outside> {
        if run.load().iter().any(|item| matches!(item.what, TrafficKind::Tcp { record: true, .. })) {
            run.laid.world.net.sample_every(run.step);
        }
        for (number, item) in run.load().iter().enumerate() {
            begin_item(run, number, item);
        }
        Ok(())
    }

    fn advance(&mut self, laid: &mut LaidOut, to: Time) -> Result<(), Outside> {
        laid.world.net.run(to);
        Ok(())
    }

    /// Lets the transfers begin whose login has ended.
    fn step_ended(&mut self, laid: &mut LaidOut, at: Time) {
        let net = &mut laid.world.net;
        for piece in &mut self.pieces {
            let Going::Login(login, spec) = piece.going else { continue };
            if net.completions(login).first().is_some_and(|go| go.all.is_some()) {
                piece.going = Going::Flow(net.tcp(FlowSpec { start: at, ..spec }));
            }
        }
    }

    fn acked(&mut self, laid: &LaidOut) -> Vec<u64> {
        let net = &laid.world.net;
        let of = |piece: &Piece| match piece.going {
            Going::Flow(flow) => net.flow_stats(flow).acked,
            _ => 0,
        };
        self.pieces.iter().map(of).collect()
    }

    fn records(run: &mut ScenarioRun<'_, Simulated>) -> (Vec<doc::TransferRecord>, Vec<doc::ProbeRecord>) {
        let (mut transfers, mut found) = (Vec::new(), Vec::new());
        for (at, piece) in run.traffic.pieces.iter().enumerate() {
            match piece.going {
                Going::Flow(_) | Going::Login(..) => transfers.push(transfer(run, at, piece)),
                _ => found.extend(probes(run, piece)),
            }
        }
        (transfers, found)
    }
}

fn begin_item(run: &mut ScenarioRun<'_, Simulated>, number: usize, item: &TrafficItem) {
    let room = (u16::MAX - FIRST_PORT) / (run.load().len() as u16).max(1);
    let Some(talk) = Talk::of(run.scenario, &mut run.laid, item, FIRST_PORT + room * number as u16) else {
        return;
    };
    let count = if let TrafficKind::Tcp { count, .. } = item.what { count } else { 1 };
    for n in 0..count {
        let going = talk.nth(n).begin(run.scenario, &mut run.laid.world.net, item);
        run.traffic.pieces.push(Piece { item: number, number: n, going });
    }
}

fn transfer(run: &ScenarioRun<'_, Simulated>, at: usize, piece: &Piece) -> doc::TransferRecord {
    let scenario = run.scenario;
    let item = &scenario.loads[run.case.load].items[piece.item];
    let TrafficKind::Tcp { tcp, record, count, bytes, .. } = &item.what else {
        return doc::TransferRecord::default();
    };
    let net = &run.laid.world.net;
    let flow = if let Going::Flow(flow) = piece.going { Some(flow) } else { None };
    let stats = flow.map(|flow| net.flow_stats(flow)).unwrap_or_default();
    let control = tcp.or(scenario.nodes[item.from].tcp).control();
    let began = item.start.0 + 10_000_000 * u64::from(piece.number);
    let samples = flow.filter(|_| *record).map_or(&[][..], |flow| net.flow_samples(flow));
    let established = stats.established.map_or(0, since);
    let (cwnd, srtt_us) = sampled(samples, established, run.progress[at].len(), run.step);
    doc::TransferRecord {
        id: piece_id(item, piece.number),
        title: if *count > 1 { format!("{} {}", item.title, piece.number + 1) } else { item.title.clone() },
        from: name(scenario, item.from),
        to: name(scenario, item.to),
        control: control_name(control).to_owned(),
        dscp: item.dsfield >> 2,
        began,
        // What has no end is only stopped.
        finished: bytes.and(stats.finished).map(since),
        bytes: run.edges[1][at].saturating_sub(run.edges[0][at]),
        retransmissions: stats.retransmissions,
        lost: stats.lost,
        series: run.progress[at].clone(),
        cwnd,
        srtt_us,
        ..doc::TransferRecord::default()
    }
}

/// Windows and round trips at the end of each step: the last sample before it; before the first one, nothing.
fn sampled(samples: &[FlowSample], established: u64, steps: usize, step: Nanos) -> (Vec<u32>, Vec<u64>) {
    if samples.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let mut next = 0;
    let mut last = (0, 0);
    let of_step = |n: usize| {
        let end = (n as u64 + 1) * step.0;
        while let Some(sample) = samples.get(next).filter(|sample| established + sample.at.0 <= end) {
            last = (sample.cwnd, sample.srtt.0 / 1000);
            next += 1;
        }
        last
    };
    (0..steps).map(of_step).unzip()
}

/// Repeated probes; a page has three: until its document, its first paint, and all of it.
fn probes(run: &ScenarioRun<'_, Simulated>, piece: &Piece) -> Vec<doc::ProbeRecord> {
    let scenario = run.scenario;
    let item = &scenario.loads[run.case.load].items[piece.item];
    let base = |unit: &str, answers| document::probe(scenario, item, piece.number, unit, answers);
    let net = &run.laid.world.net;
    match piece.going {
        Going::Flow(_) | Going::Login(..) => Vec::new(),
        Going::Ping(ping) => {
            let answers = net.echoes(ping).iter().map(|echo| (since(echo.sent), echo.rtt.map(|rtt| rtt.0)));
            let there = net.echoes(ping).iter().map(|echo| echo.there.map(|there| there.0)).collect();
            vec![doc::ProbeRecord { there, ..base("round trip", answers.collect()) }]
        }
        Going::Source(source) => {
            let journeys = net.source_stats(source).packets;
            let answers =
                journeys.iter().map(|journey| (since(journey.sent), journey.took.map(|took| took.0)));
            let mut probe = base("one way", answers.collect());
            let payload = if let TrafficKind::Udp { payload, .. } = item.what { payload } else { 0 };
            let arrived = journeys.iter().filter_map(|journey| Some(since(journey.sent + journey.took?)));
            (probe.received, probe.packets) = per_step(arrived, u64::from(payload), run);
            vec![probe]
        }
        Going::Transaction(transaction) => {
            let goes = net.completions(transaction);
            let all = |of: &dyn Fn(&Completion) -> Option<Nanos>| {
                goes.iter().map(|go| (since(go.began), of(go).map(|took| took.0))).collect::<Vec<_>>()
            };
            transaction_probes(item, &base, [all(&|go| go.all), all(&|go| go.first), all(&|go| go.paint)])
        }
    }
}
