//! Figures as tables: rows for people, whatever shows them.

use tidegate_measure::trial::TrialRun;

/// A table of figures behind a chart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data {
    /// What it is called.
    pub caption: String,
    /// Columns; the first heads the rows.
    pub head: Vec<String>,
    /// Rows.
    pub rows: Vec<Vec<String>>,
}

/// The first letter large.
pub fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Rows of a table over time at most.
const MOST_ROWS: u64 = 70;

/// The spans of time that tables over a run go by: `(from, to)` in ns.
pub fn spans(end: u64) -> Vec<(u64, u64)> {
    const SECOND: u64 = 1_000_000_000;
    let wide = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600]
        .map(|s| s * SECOND)
        .into_iter()
        .find(|wide| end / wide <= MOST_ROWS);
    let wide = wide.unwrap_or(end.div_ceil(MOST_ROWS).max(1));
    (0..end.div_ceil(wide)).map(|n| (n * wide, ((n + 1) * wide).min(end))).collect()
}

/// How a span of time heads a row: `12–13 s`.
pub fn span_title((from, to): (u64, u64)) -> String {
    let second = |ns: u64| {
        let text = format!("{:.1}", ns as f64 / 1e9);
        text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
    };
    format!("{}–{} s", second(from), second(to))
}

/// The steps of a span.
pub fn steps_of<'s, T>(run: &TrialRun, series: &'s [T], (from, to): (u64, u64)) -> &'s [T] {
    let step = run.step_ns.max(1);
    crate::trial::part(series, (from / step) as usize..to.div_ceil(step) as usize)
}

/// When a run ends, its series and answers considered.
pub fn end_of(run: &TrialRun) -> u64 {
    let series = run
        .buffers
        .iter()
        .map(|buffer| buffer.backlog.len())
        .chain(run.classes.iter().map(|class| class.sent.len()));
    let steps = series.max().unwrap_or(0) as u64 * run.step_ns;
    let requested =
        run.probes.iter().filter_map(|probe| probe.answers.last()).map(|(sent, _)| *sent).max().unwrap_or(0);
    steps.max(requested).max(run.window.1).max(1)
}
