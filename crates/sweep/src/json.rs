//! A summary as JSON.

use crate::row::SweepTable;
use crate::summary::{SummaryRow, SweepSummary};
use serde_json::{Map, Value, json};

/// The form's number.
const FORM: u64 = 1;

/// A summary as a document; docs/sweep.md describes the members.
#[must_use]
pub fn summary_json(table: &SweepTable, summary: &SweepSummary) -> String {
    let document = json!({
        "tidegate_sweep": FORM,
        "sweep": table.head.id,
        "runs": table.head.runs,
        "done": table.runs.len(),
        "axes": table.head.axes,
        "intervals": summary.intervals.word(),
        "rows": summary.rows.iter().map(|one| row(&summary.columns, one)).collect::<Vec<_>>(),
    });
    format!("{document:#}\n")
}

fn row(columns: &[String], row: &SummaryRow) -> Value {
    let keys: Map<String, Value> =
        columns.iter().cloned().zip(row.keys.iter().map(|key| Value::from(key.as_str()))).collect();
    let mut value = json!({
        "of": keys,
        "figure": row.figure,
        "unit": row.unit,
        "runs": row.runs,
        "without": row.without,
        "mean": row.mean,
        "interval": row.interval,
        "median": row.median,
        "min": row.range.map(|(min, _)| min),
        "max": row.range.map(|(_, max)| max),
    });
    if let Some(difference) = &row.difference {
        value["difference"] = json!({
            "pairs": difference.paired.rounds,
            "mean": difference.paired.difference,
            "interval": difference.paired.interval,
            "p_value": difference.p_value,
        });
    }
    if let Some(harm) = &row.harm {
        value["harm"] = json!({ "pairs": harm.pairs, "mean": harm.mean, "interval": harm.interval });
    }
    value
}
