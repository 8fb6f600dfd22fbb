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

/// Names of queueing disciplines that begin with a letter's small form only.
const KINDS: [&str; 30] = [
    "bfifo",
    "blackhole",
    "cake",
    "choke",
    "codel",
    "drr",
    "dualpi2",
    "ets",
    // The family of pfifo and bfifo, by which policies are called.
    "fifo",
    "fq",
    "fq_codel",
    "fq_pie",
    "gred",
    "hfsc",
    "hhf",
    "htb",
    "mq",
    "multiq",
    "netem",
    "pfifo",
    "pfifo_fast",
    "pfifo_head_drop",
    "pie",
    "plug",
    "prio",
    "qfq",
    "red",
    "sfb",
    "sfq",
    "tbf",
];

/// The first letter large, as at the beginning of a sentence; names stay as they are: those of queueing
/// disciplines, and words with an underscore, a digit or a sign in them (`eth0`, `1:10`, `home.toml`).
pub fn capital(text: &str) -> String {
    let word = text.split([' ', ',', ';']).next().unwrap_or_default();
    let is_name = |c: char| c.is_ascii_digit() || matches!(c, '_' | '.' | '/' | ':');
    if KINDS.contains(&word) || word.trim_end_matches(['.', ':']).contains(is_name) {
        return text.to_owned();
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_begin_large_and_names_stay() {
        for (text, expected) in [
            ("ping, round trip", "Ping, round trip"),
            ("über uns", "Über uns"),
            ("end.", "End."),
            ("fq_codel", "fq_codel"),
            ("fifo, before", "fifo, before"),
            ("cake, nat", "cake, nat"),
            ("eth0 up", "eth0 up"),
            ("my_policy below the line", "my_policy below the line"),
            ("", ""),
        ] {
            assert_eq!(capital(text), expected);
        }
    }
}
