//! Pieces of markup that the sections share.

use crate::chart::{Drawing, escape};
use crate::figures::part;
use std::fmt::Write as _;
use tidegate_measure::trial::Run;

/// A table of figures behind a chart.
#[derive(Debug, Default)]
pub(crate) struct Data {
    /// What it is called.
    pub(crate) caption: String,
    /// Columns; the first heads the rows.
    pub(crate) head: Vec<String>,
    /// Rows.
    pub(crate) rows: Vec<Vec<String>>,
}

/// How a pointer on a chart finds its row in the data.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reading {
    /// Rows follow each other from left to right.
    Across,
    /// Rows are shares in percent from the bottom up.
    Upwards,
    /// Not at all.
    None,
}

/// Rows of a table at most.
const MOST_TABLE_ROWS: usize = 200;

impl Data {
    /// The table itself.
    pub(crate) fn table(&self) -> String {
        let mut out = format!(
            "<div class=\"scroll\" tabindex=\"0\"><table><caption>{}</caption><thead><tr>",
            escape(&self.caption)
        );
        for cell in &self.head {
            let _ = write!(out, "<th scope=\"col\">{}</th>", escape(cell));
        }
        out.push_str("</tr></thead><tbody>");
        for row in self.rows.iter().take(MOST_TABLE_ROWS) {
            out.push_str("<tr>");
            for (n, cell) in row.iter().enumerate() {
                let cell = escape(cell);
                let _ =
                    if n == 0 { write!(out, "<th scope=\"row\">{cell}</th>") } else { write!(out, "<td>{cell}</td>") };
            }
            out.push_str("</tr>");
        }
        out.push_str("</tbody></table></div>");
        let more = self.rows.len().saturating_sub(MOST_TABLE_ROWS);
        if more > 0 {
            let _ = write!(out, "<p class=\"small\">{more} more rows are left out here; --json has all figures.</p>");
        }
        out
    }

    /// The table behind a line to open it.
    pub(crate) fn behind(&self) -> String {
        format!("<details><summary>Figures</summary>{}</details>", self.table())
    }
}

/// A chart with its caption and its figures.
pub(crate) fn figure(drawings: &[Drawing], caption: &str, reading: Reading, data: &Data) -> String {
    let way = match reading {
        Reading::Across => " data-read=\"across\"",
        Reading::Upwards => " data-read=\"upwards\"",
        Reading::None => "",
    };
    let drawn: String = drawings.iter().map(Drawing::inline).collect();
    format!("<figure{way}><figcaption>{}</figcaption>{drawn}{}</figure>\n", tied(caption), data.behind())
}

/// A sentence as markup: a figure and its unit stay on one line.
pub(crate) fn prose(text: &str) -> String {
    tied(&escape(text))
}

/// Joins figures and their units with spaces that do not break; markup may stand around them.
pub(crate) fn tied(markup: &str) -> String {
    const UNITS: [&str; 13] =
        ["ms", "s", "µs", "%", "B", "kB", "MB", "GB", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "times"];
    let mut out = String::with_capacity(markup.len());
    let mut after_digit = false;
    for (n, word) in markup.split(' ').enumerate() {
        let unit = word.split('<').next().unwrap_or_default().trim_end_matches([',', '.', ';', ':', ')']);
        if n > 0 {
            out.push_str(if after_digit && UNITS.contains(&unit) { "\u{a0}" } else { " " });
        }
        out.push_str(word);
        after_digit = word.ends_with(|c: char| c.is_ascii_digit());
    }
    out
}

/// A class's colour with its name.
pub(crate) fn chip(colour: usize) -> String {
    format!("<i class=\"chip c{colour}\"></i>")
}

/// The first letter large.
pub(crate) fn capital(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Rows of a table over time at most.
const MOST_ROWS: u64 = 70;

/// The spans of time that tables over a run go by: `(from, to)` in ns.
pub(crate) fn spans(end: u64) -> Vec<(u64, u64)> {
    const SECOND: u64 = 1_000_000_000;
    let wide =
        [1, 2, 5, 10, 20, 30, 60, 120, 300, 600].map(|s| s * SECOND).into_iter().find(|wide| end / wide <= MOST_ROWS);
    let wide = wide.unwrap_or(end.div_ceil(MOST_ROWS).max(1));
    (0..end.div_ceil(wide)).map(|n| (n * wide, ((n + 1) * wide).min(end))).collect()
}

/// How a span of time heads a row: `12–13 s`.
pub(crate) fn span_title((from, to): (u64, u64)) -> String {
    let second = |ns: u64| {
        let text = format!("{:.1}", ns as f64 / 1e9);
        text.strip_suffix(".0").map(str::to_owned).unwrap_or(text)
    };
    format!("{}–{} s", second(from), second(to))
}

/// The steps of a span.
pub(crate) fn steps_of<'s, T>(run: &Run, series: &'s [T], (from, to): (u64, u64)) -> &'s [T] {
    let step = run.step_ns.max(1);
    part(series, (from / step) as usize..to.div_ceil(step) as usize)
}

/// When a run ends, its series and answers considered.
pub(crate) fn end_of(run: &Run) -> u64 {
    let series =
        run.buffers.iter().map(|buffer| buffer.backlog.len()).chain(run.classes.iter().map(|class| class.sent.len()));
    let steps = series.max().unwrap_or(0) as u64 * run.step_ns;
    let asked = run.probes.iter().filter_map(|probe| probe.answers.last()).map(|(sent, _)| *sent).max().unwrap_or(0);
    steps.max(asked).max(run.window.1).max(1)
}

/// What the command that makes a page again gives, where no real clock decides.
pub(crate) const THE_SAME: &str = "This command gives the same figures, to the last digit";

/// The end of a page: notes, what the command that makes it again promises, that command, and what made the page.
pub(crate) fn ending(notes: &[String], promise: &str, again: &str, made: &str) -> String {
    let mut out = String::new();
    if !notes.is_empty() {
        let notes: String = notes.iter().map(|note| format!("<li>{}</li>", prose(note))).collect();
        let _ = writeln!(out, "<section>\n<h2>Notes</h2>\n<ul class=\"notes\">{notes}</ul>\n</section>");
    }
    let _ = writeln!(
        out,
        "<footer>\n<h2>Again</h2>\n<p>{promise}:</p>\n<pre tabindex=\"0\">{}</pre>\n\
         <p class=\"small\">{}.</p>\n</footer>",
        escape(again),
        escape(made)
    );
    out
}
