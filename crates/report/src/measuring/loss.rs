//! What `tidegate loss` found: text and JSON, from the document alone.

use crate::table::{Align, Table};
use std::fmt::Write as _;
use tidegate_measure::loss::{DirectionLoss, LossDocument};
use tidegate_measure::numbers::percent;

/// The text of a missing figure.
const NOTHING: &str = "–";

/// As a table, with caveats and notes.
pub fn text(of: &LossDocument) -> String {
    let columns = [
        "sent",
        "lost",
        "share",
        "95 % interval",
        "bursts",
        "longest burst",
        "mean gap",
        "reordered",
        "duplicates",
    ];
    let head = std::iter::once(("way", Align::Left)).chain(columns.map(|name| (name, Align::Right)));
    let mut table = Table::new(head);
    for way in &of.ways {
        table.row(row(way));
    }
    let mut text = format!("{table}\n");
    for way in &of.ways {
        if let Some((bad, stays)) = way.losses.gilbert() {
            let _ = writeln!(
                text,
                "{}: as a Gilbert model that turns bad before {} of its packets while good, and good again \
                after {:.1} lost ones.",
                way.name,
                percent(bad),
                1.0 / stays
            );
        }
    }
    for note in caveats(of) {
        let _ = writeln!(text, "Note: {note}.");
    }
    let _ = writeln!(text, "Again: {}", of.again);
    text
}

fn row(way: &DirectionLoss) -> Vec<String> {
    let losses = &way.losses;
    let (low, high) = losses.interval();
    let known = |figure: String| if way.order.is_some() { figure } else { NOTHING.to_owned() };
    let gaps: u64 = losses.gaps.iter().map(|gap| u64::from(*gap)).sum();
    let mean = (!losses.gaps.is_empty()).then(|| gaps as f64 / losses.gaps.len() as f64);
    vec![
        way.name.clone(),
        losses.sent.to_string(),
        losses.lost.to_string(),
        percent(losses.share()),
        format!("{} – {}", percent(low), percent(high)),
        known(losses.runs.len().to_string()),
        known(losses.runs.iter().max().unwrap_or(&0).to_string()),
        known(mean.map_or(NOTHING.to_owned(), |mean| format!("{mean:.1}"))),
        way.order.map_or(NOTHING.to_owned(), |order| order.reordered.to_string()),
        way.duplicates.to_string(),
    ]
}

fn caveats(of: &LossDocument) -> Vec<String> {
    let partial = of.partial.iter().map(|why| format!("partial: {why}"));
    partial.chain(of.ways.iter().flat_map(DirectionLoss::caveats)).chain(of.notes.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tidegate_analysis::loss::to_json;
    use tidegate_measure::oneway::{LossStats, Order};

    #[test]
    fn losses_on_a_terminal_and_as_json() {
        let losses = LossStats { sent: 100, lost: 3, runs: vec![2, 1], gaps: vec![10] };
        let up = DirectionLoss {
            name: "here to server".into(),
            losses,
            order: Some(Order::default()),
            duplicates: 1,
        };
        let down = DirectionLoss::counted("server to here", 100, 99);
        let of = LossDocument {
            again: "tidegate loss server".into(),
            ways: vec![up, down],
            ..LossDocument::default()
        };
        let expected = "\
way             sent  lost  share  95 % interval  bursts  longest burst  mean gap  reordered  duplicates
────────────────────────────────────────────────────────────────────────────────────────────────────────
here to server   100     3  3.0 %  1.0 % – 8.5 %       2              2      10.0          0           1
server to here   100     1  1.0 %  0.2 % – 5.4 %       –              –         –          –           0

Again: tidegate loss server
";
        assert_eq!(text(&of), expected);
        let json: Value = serde_json::from_str(&to_json(&of)).unwrap_or_default();
        assert_eq!(
            (&json["directions"][0]["bursts"], &json["directions"][1]["bursts"]),
            (&json!([2, 1]), &Value::Null)
        );
    }
}
