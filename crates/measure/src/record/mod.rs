//! A line recorded second by second: how much it delivers, how late and how lossy it is, each way.
//!
//! ```text
//! look (quiet packets, a train) ──▶ flood (what a token bucket hides) ──▶ chunks of ten seconds, each planned
//! after the one before: [train][silence][small packets] [train][silence][small packets] … ──▶ seconds
//! ```
//! A train is sent faster than the line carries, so that its packets leave the bottleneck one behind the
//! other: the time from one to the next is the line's own (packet dispersion: Jain and Dovrolis 2002). Trains
//! are short, and the line is idle in between: small packets show delay and loss there. The first train of
//! each second is sent four times as fast as the others, in case the line has become faster.
//!
//! *Invariant.* No more than the budget is sent, both directions and all headers counted.

mod evaluate;
mod log;
mod plan;
mod trains;
mod types;

pub use types::{
    DirectionRecording, LEAST_BUDGET, LONGEST_NS, LineRecording, MOST_BUDGET, RecordedSecond,
    RecordingDocument, RecordingProgress, RecordingRequest, USUAL_BUDGET,
};

use crate::oneway;
use crate::stream::{Exchange, Path};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use log::WayLog;
use plan::{Budget, NoChunk, Planner};
use types::SECOND;

/// How much is sent before it is looked at what came, ns.
const CHUNK_NS: u64 = 10 * SECOND;

/// Records a path in both directions; `report` is called after each chunk.
///
/// # Errors
/// The path's.
pub fn record<P: Path>(
    path: &mut P,
    request: &RecordingRequest,
    report: &mut dyn FnMut(&RecordingProgress),
) -> Result<LineRecording, P::Error> {
    let mut logs = [WayLog::new(request.headers), WayLog::new(request.headers)];
    let mut budget = Budget::new(request);
    let mut planner = [Planner::new(request), Planner::new(request)];
    let mut cut = None;
    // What is there, and what a longer flood makes of it.
    for prepare in [Planner::look, Planner::flood] {
        let streams = planner.each_mut().map(|way| prepare(way, &budget));
        if cut.is_some() || streams.iter().all(|stream| stream.phases.is_empty()) {
            continue;
        }
        cut = carry_out(path, streams, &mut logs, &mut budget)?;
        for (planner, log) in planner.iter_mut().zip(&logs) {
            planner.learn(log);
        }
    }
    let mut progress = RecordingProgress::default();
    while cut.is_none() && progress.done_ns < request.length_ns && !logs.iter().all(WayLog::is_dead) {
        let left = request.length_ns - progress.done_ns;
        let length = left.min(CHUNK_NS).min((request.most_ns / 2).max(SECOND));
        let streams = match plan::chunk(&mut planner, &budget, length, left) {
            Ok(streams) => streams,
            Err(why) => {
                budget.ended = Some(why);
                break;
            }
        };
        for log in &mut logs {
            log.begin_recording();
        }
        cut = carry_out(path, streams, &mut logs, &mut budget)?;
        for (planner, log) in planner.iter_mut().zip(&logs) {
            planner.learn(log);
        }
        progress.done_ns += length;
        progress.bytes = budget.sent;
        progress.rates = planner.each_ref().map(|way| way.rate());
        report(&progress);
    }
    Ok(evaluated(logs, &planner, &budget, (request, progress.done_ns), cut))
}

/// Sends streams both ways and takes up what became of them; why it is not the whole.
fn carry_out<P: Path>(
    path: &mut P,
    [up, down]: [log::TaggedStream; 2],
    logs: &mut [WayLog; 2],
    budget: &mut Budget,
) -> Result<Option<String>, P::Error> {
    let exchange = Exchange { up: up.stream(), down: down.stream() };
    let outcome = path.carry_out(&exchange)?;
    for ((log, stream), trace) in logs.iter_mut().zip([up, down]).zip([&outcome.up, &outcome.down]) {
        budget.sent += log.take(stream, trace, outcome.is_reported);
    }
    Ok(outcome.cut)
}

/// What all exchanges together say.
fn evaluated(
    mut logs: [WayLog; 2],
    planner: &[Planner; 2],
    budget: &Budget,
    (request, done_ns): (&RecordingRequest, u64),
    cut: Option<String>,
) -> LineRecording {
    let outcome = log::joined(&mut logs);
    let delays = oneway::read(&outcome);
    let mut caveats: Vec<String> = delays.caveats.clone();
    let (done, all) = (done_ns / SECOND, request.length_ns.div_ceil(SECOND));
    match budget.ended {
        Some(NoChunk::Budget) => caveats.push(format!("the budget was spent after {done} of {all} s")),
        Some(NoChunk::Server) => caveats.push(format!(
            "the server allows too little to go on after {done} of {all} s (`tidegate serve --rate` there)"
        )),
        None => {}
    }
    let mut ways = logs.iter().zip(planner).zip([&delays.up, &delays.down]).map(|((log, planner), side)| {
        (log.has_recording() && !log.is_dead()).then(|| evaluate::direction(log, planner, side))
    });
    let mut ways = [ways.next().flatten(), ways.next().flatten()];
    evaluate::place_delays(&mut ways, request.headers, delays.clocks.round_trip_ns);
    let [up, down] = ways;
    let mut recorded = LineRecording {
        up,
        down,
        round_trip_ns: delays.clocks.round_trip_ns,
        bytes: budget.sent,
        caveats,
        cut,
    };
    // Times of the download are by the remote clock; only their distance from the first one counts.
    if let (Some(down), Some(round_trip)) = (&mut recorded.down, recorded.round_trip_ns) {
        down.began_ns = evaluate::began_here(&outcome.down, logs[1].main_from, round_trip / 2);
    }
    recorded
}

#[cfg(test)]
mod tests;
