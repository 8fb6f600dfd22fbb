//! A comparison as JSON.

use super::rows::{Comparing, ComparisonRow};
use crate::json::laid_out;
use serde_json::{Value, json};

/// The form's number.
const FORM: u64 = 3;

/// The results compared, the rows, and what differs in kind; docs/results.md describes the members.
pub fn comparison_json(comparing: &Comparing<'_>) -> String {
    let results = comparing.sides.iter().map(|side| {
        let e = &side.experiment;
        json!({
            "label": side.label,
            "title": e.title,
            "execution": e.execution,
            "version": e.version,
            "seed": e.seed,
            "command": e.again,
        })
    });
    laid_out(&json!({
        "tidegate_comparison": FORM,
        "results": results.collect::<Vec<_>>(),
        "differences": comparing.apart,
        "rows": comparing.rows.iter().map(row).collect::<Vec<_>>(),
    }))
}

fn row(row: &ComparisonRow) -> Value {
    let found = row.found.iter().map(|found| {
        found.map(
            |found| json!({ "median": found.median, "least": found.least, "most": found.most, "repeats": found.count }),
        )
    });
    let change = (1..row.found.len()).map(|side| {
        row.change(side).map(|change| {
            let member = if change.points { "points" } else { "percent" };
            let p_value = row.p_values.get(side - 1).copied().flatten();
            json!({ member: change.percent, "significant": change.significant, "p_value": p_value })
        })
    });
    json!({
        "policy": row.policy,
        "load": row.load,
        "figure": row.figure,
        "unit": row.found.iter().flatten().next().map_or("", |found| found.unit),
        "found": found.collect::<Vec<_>>(),
        "change": change.collect::<Vec<_>>(),
    })
}
