//! Carries a load out: probes both ways on schedule, TCP flows in threads of their own, echo requests beside.

use super::plan::{LoadPlan, ProbePlan};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegate_measure::stream::{Exchange, ExchangeResult, PacketTrain, Path, Stream};
use tidegate_probe_wire::{FlowDirection, FlowPlan};
use tidegate_prober::ping::{self, PingProgress, Pinger};
use tidegate_prober::{Error, MeasuredFlow, ServerSession, ServerTarget};

/// Before the load begins, and after it has ended, probes go on for so long.
pub(crate) const LEAD: Duration = Duration::from_millis(500);
const TAIL: Duration = Duration::from_millis(500);
/// Between the beginnings of flows.
const APART: Duration = Duration::from_millis(10);
/// The step of all series.
pub(crate) const STEP_NS: u64 = 100_000_000;
/// The payload of what floods.
const FLOOD: u16 = 1400;

/// The result of a load.
#[derive(Debug)]
pub(crate) struct Load {
    /// When it began, by our clock, ns.
    pub(crate) began: u64,
    pub(crate) outcome: ExchangeResult,
    /// Of each phase of the streams which probe it is.
    pub(crate) whose: Vec<usize>,
    pub(crate) flows: Vec<(FlowDirection, u8, Result<MeasuredFlow, Error>)>,
    pub(crate) icmp: Option<PingProgress>,
    /// What flooded.
    pub(crate) flood: Option<Result<ExchangeResult, Error>>,
}

/// Carries it out; `stop` ends it early.
///
/// # Errors
/// It did not begin.
pub(crate) fn carry(
    far: &mut ServerSession,
    target: &ServerTarget,
    load: &LoadPlan,
    control: &str,
    stop: &AtomicBool,
) -> Result<Load, Error> {
    let (stream, whose) = interleaved(&load.probes, LEAD + load.length + TAIL);
    let exchange = Exchange { up: stream.clone(), down: stream };
    let began = far.clock().now();
    let clock = far.clock().clone();
    let doors = far.flow();
    let over = AtomicBool::new(false);
    let is_over = || over.load(Ordering::Relaxed) || stop.load(Ordering::Relaxed);
    let pinger = load.icmp.then(|| ping(far)).flatten();
    let length_ns = load.length.as_nanos() as u64;
    let (outcome, flows, flood) = std::thread::scope(|scope| {
        let flood = load.flood.map(|rate| scope.spawn(move || flood(target, rate, length_ns)));
        let ways = load
            .up
            .iter()
            .map(|dscp| (FlowDirection::Up, *dscp))
            .chain(load.down.iter().map(|dscp| (FlowDirection::Down, *dscp)));
        let flows: Vec<_> = ways
            .zip(0..)
            .map(|((way, dscp), number)| {
                let (doors, clock, is_over) = (&doors, &clock, &is_over);
                let start = began + (LEAD + APART * number).as_nanos() as u64;
                let flow = move || {
                    clock.wait_until(start, is_over);
                    let plan = FlowPlan { way, dscp, control: control.to_owned(), length_ns };
                    doors.carry(&plan, STEP_NS, is_over)
                };
                (way, dscp, scope.spawn(flow))
            })
            .collect();
        let outcome = far.carry_out(&exchange);
        over.store(true, Ordering::Relaxed);
        let panicked = |_| Err(Error::Wrong("one of our threads failed".to_owned()));
        let flows: Vec<_> = flows
            .into_iter()
            .map(|(way, dscp, flow)| (way, dscp, flow.join().unwrap_or_else(panicked)))
            .collect();
        let flood = flood.map(|flood| {
            flood.join().unwrap_or_else(|_| Err(Error::Wrong("one of our threads failed".to_owned())))
        });
        (outcome, flows, flood)
    });
    let icmp = pinger.map(Pinger::end);
    Ok(Load { began, outcome: outcome?, whose, flows, icmp, flood })
}

/// Echo requests to the server, if this user may send any.
fn ping(far: &ServerSession) -> Option<Pinger> {
    let plan =
        ping::PingSchedule::new(&far.address().to_string(), tidegate_prober::AddressFamily::Any).ok()?;
    Pinger::begin(&[plan]).ok()
}

/// Floods upwards in a session of its own.
fn flood(target: &ServerTarget, rate: f64, length_ns: u64) -> Result<ExchangeResult, Error> {
    let mut far = ServerSession::connect(target)?;
    std::thread::sleep(LEAD);
    let up = Stream::steady(PacketTrain::at_rate(FLOOD, rate, length_ns));
    far.carry_out(&Exchange { up, down: Stream::default() })
}

/// Probes of several kinds in one stream, each at its own pace, spread so that no two fall together; and of
/// each phase whose it is.
pub(crate) fn interleaved(probes: &[ProbePlan], length: Duration) -> (Stream, Vec<usize>) {
    let end = length.as_nanos() as u64;
    let mut dues: Vec<(u64, usize)> = Vec::new();
    for (place, probe) in probes.iter().enumerate() {
        let every = (probe.every.as_nanos() as u64).max(1);
        let first = every * place as u64 / probes.len() as u64;
        dues.extend((0..).map(|n| first + n * every).take_while(|at| *at < end).map(|at| (at, place)));
    }
    dues.sort_unstable();
    let nexts = dues.iter().skip(1).map(|(at, _)| *at).chain([end]);
    let phase = |((at, place), next): (&(u64, usize), u64)| {
        let ProbePlan { payload, dscp, ecn, .. } = probes[*place];
        PacketTrain { payload, gap_ns: next - at, packets: 1, dscp, ecn, rest_ns: 0 }
    };
    let phases = dues.iter().zip(nexts).map(phase).collect();
    (Stream { phases }, dues.iter().map(|(_, place)| *place).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probes_keep_their_pace_beside_each_other() {
        let probe = |every, dscp| ProbePlan {
            every: Duration::from_millis(every),
            dscp,
            payload: 64,
            ..ProbePlan::default()
        };
        let (stream, whose) = interleaved(&[probe(20, 46), probe(50, 0)], Duration::from_millis(100));
        let dues: Vec<(u64, u8)> = stream.dues().map(|due| (due.at_ns / 1_000_000, due.dscp)).collect();
        assert_eq!(dues, [(0, 46), (20, 46), (25, 0), (40, 46), (60, 46), (75, 0), (80, 46)]);
        assert_eq!(whose, [0, 0, 1, 0, 0, 1, 0]);
    }
}
