//! Pieces of markup that the sections share.

use crate::chart::{Drawing, escape};
use std::fmt::Write as _;

pub(crate) use tidegate_analysis::data::{Data, capital, end_of, span_title, spans, steps_of};

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

/// A table of figures as markup.
pub(crate) trait Markup {
    /// The table itself.
    fn table(&self) -> String;
    /// The table behind a line to open it.
    fn behind(&self) -> String;
}

/// Rows of a table at most.
const MOST_TABLE_ROWS: usize = 200;

impl Markup for Data {
    fn table(&self) -> String {
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

    fn behind(&self) -> String {
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
