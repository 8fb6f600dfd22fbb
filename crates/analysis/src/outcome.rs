//! Quality of Outcome of probes: scores for tidegate's applications, for documents and tables.

use serde_json::{Value, json};
use tidegate_measure::Pings;
use tidegate_measure::outcome::{OutcomeLimit, OutcomeScore, PROFILES, application_named, score_of};

/// The scores of a probe's packets as a document has them; `None`: the unit is no packet's delay, or there
/// were too few packets.
pub(crate) fn scores(unit: &str, packets: &Pings) -> Option<Value> {
    let scores = PROFILES.iter().filter_map(|application| {
        let found = score_of(application, unit, packets)?;
        let limit = found.limit.map(limit);
        Some(json!({"application": application.name(), "score": found.score, "limit": limit}))
    });
    let scores: Vec<Value> = scores.collect();
    (!scores.is_empty()).then(|| Value::from(scores))
}

/// What limits a score, in a word: `p99`, `loss`.
fn limit(limit: OutcomeLimit) -> String {
    match limit {
        OutcomeLimit::Delay(percentile) => format!("p{percentile}"),
        OutcomeLimit::Loss => "loss".to_owned(),
        OutcomeLimit::Throughput => "throughput".to_owned(),
    }
}

/// The score for one of tidegate's applications as a whole number; `None`: there is none.
pub fn score(application: &str, unit: &str, packets: &Pings) -> Option<u8> {
    score_of(application_named(application)?, unit, packets).map(OutcomeScore::rounded)
}

/// What a column of such scores is, for people.
pub const QOO: &str = "QoO of these applications, 0 (unacceptable) to 100 (optimal); the requirements are \
                       tidegate's own (docs/scores.md)";

/// The same of a table in which only calls have a score.
pub const QOO_OF_CALLS: &str = "QoO of calls: 0 unacceptable, 100 optimal (Quality of Outcome, draft-ietf-ippm-qoo-11; \
                                the requirements are tidegate's own, see docs/scores.md).";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_every_application() {
        let packets = Pings::new((0..200).map(|n| (n % 50 != 0).then_some(40_000_000)));
        let found = scores("round trip", &packets).expect("enough");
        assert_eq!(
            found,
            json!([
                {"application": "call", "score": 75.0, "limit": "loss"},
                {"application": "meeting", "score": 75.0, "limit": "loss"},
                {"application": "game", "score": 40.0, "limit": "loss"},
                {"application": "browsing", "score": 88.888_888_888_888_89, "limit": "loss"},
            ])
        );
        assert_eq!(score("game", "round trip", &packets), Some(40));
        assert_eq!(scores("until the reply", &packets), None);
        let late = Pings::new((0..200).map(|_| Some(260_000_000)));
        assert_eq!(scores("one way", &late).expect("enough")[0]["limit"], json!("p99"));
    }
}
