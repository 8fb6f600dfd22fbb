//! The losses of each direction.
//!
//! ```text
//! with our server   ServerSession: the same packets both ways                     ──▶ StreamTrace ─┐
//! with captures     packets of one side found among those of the other         ──▶ StreamTrace ─┴─▶ measure::loss::LossDocument
//! ```

mod captured;

pub use captured::{Captures, USUAL_COUNT, captured};

use crate::error::Result;
use std::sync::atomic::AtomicBool;
use tidegate_measure::loss::{DirectionLoss, LossDocument};
use tidegate_measure::stream::{Exchange, ExchangeResult, Path as _, Stream};
use tidegate_prober::{ServerSession, ServerTarget};

/// Sends the same packets to a server of tidegate's and has it send them, and returns what was lost. `stop`
/// ends it early, with what is known by then; `again` is the command line that measures again, for the
/// document.
///
/// # Errors
/// The server is not there, or refuses.
pub fn measure(
    target: &ServerTarget,
    stream: &Stream,
    stop: &'static AtomicBool,
    again: String,
) -> Result<LossDocument> {
    let mut far = ServerSession::connect(target)?;
    far.stop_on(stop);
    let outcome = far.carry_out(&Exchange { up: stream.clone(), down: stream.clone() })?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let lost = LossDocument { version, again, notes: far.caveats(), ..LossDocument::default() };
    Ok(document(lost, &outcome, &target.host))
}

/// Both ways; of what broke off, what is known of it.
fn document(mut lost: LossDocument, outcome: &ExchangeResult, host: &str) -> LossDocument {
    let up = DirectionLoss::of(&format!("here to {host}"), &outcome.up);
    lost.partial.clone_from(&outcome.cut);
    if outcome.is_reported {
        lost.ways = vec![up, DirectionLoss::of(&format!("{host} to here"), &outcome.down)];
        return lost;
    }
    // Which uploaded packets arrived only the server knows, and how many it sent.
    let (sent, arrived) = (up.losses.sent, outcome.down.arrived());
    let unknown =
        format!("until then {sent} packets were sent up, of which nothing is known, and {arrived} came down");
    lost.partial = Some(outcome.cut.iter().cloned().chain([unknown]).collect::<Vec<_>>().join("; "));
    // Up to the last that came, those missing are known to be.
    let mut until = outcome.down.clone();
    let end = until.packets.iter().rposition(|journey| journey.arrived.is_some()).map_or(0, |last| last + 1);
    until.packets.truncate(end);
    until.packets.iter_mut().for_each(|journey| journey.sent = journey.sent.or(Some(0)));
    lost.ways = vec![DirectionLoss::of(&format!("{host} to here, until then"), &until)];
    lost
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_measure::stream::{PacketRecord, StreamTrace};

    /// Four packets each way of six that were to be sent: of the first two came.
    fn outcome(is_reported: bool) -> ExchangeResult {
        let packet = |number: u64| PacketRecord {
            sent: (number < 4).then_some(number),
            arrived: (number < 2).then_some(number + 10),
            ..PacketRecord::default()
        };
        let trace = || StreamTrace { packets: (0..6).map(packet).collect(), ..StreamTrace::default() };
        ExchangeResult { up: trace(), down: trace(), cut: Some("it was stopped".into()), is_reported }
    }

    #[test]
    fn what_was_stopped_has_both_ways_where_the_server_reported() {
        let of = |is_reported| {
            let lost = document(LossDocument::default(), &outcome(is_reported), "server");
            let ways: Vec<_> = lost.ways.iter().map(|way| (way.losses.sent, way.losses.lost)).collect();
            (lost.partial.unwrap_or_default(), ways)
        };
        assert_eq!(of(true), ("it was stopped".to_owned(), vec![(4, 2), (4, 2)]));
        let (partial, ways) = of(false);
        assert_eq!(
            partial,
            "it was stopped; until then 4 packets were sent up, of which nothing is known, and 2 came down"
        );
        assert_eq!(ways, [(2, 0)]);
    }
}
