//! Pieces of markup that the sections share.

use super::csv::csv;
use crate::chart::Drawing;
use maud::{Markup, PreEscaped, html};

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
pub(crate) trait Tabled {
    /// The table itself.
    fn table(&self) -> Markup;
    /// The table, for few columns: on a phone each row is a block, and nothing is wider than the page.
    fn folding(&self) -> Markup;
    /// Its values, comma-separated, behind a line to open them.
    fn csv_behind(&self) -> Markup;
}

/// Rows of a table at most.
const MOST_TABLE_ROWS: usize = 200;

/// How many rows of a table are not on the page.
fn left_out(data: &Data) -> Markup {
    let more = data.rows.len().saturating_sub(MOST_TABLE_ROWS);
    html! {
        @if more > 0 { p.small { (more) " more rows are left out here; --json has all figures." } }
    }
}

impl Tabled for Data {
    fn table(&self) -> Markup {
        html! {
            div.scroll tabindex="0" {
                table {
                    caption { (self.caption) }
                    thead { tr { @for cell in &self.head { th scope="col" { (cell) } } } }
                    tbody { (rows(&self.rows[..self.rows.len().min(MOST_TABLE_ROWS)])) }
                }
            }
            (left_out(self))
        }
    }

    fn folding(&self) -> Markup {
        html! {
            table.folding {
                caption { (self.caption) }
                thead { tr { @for cell in &self.head { th scope="col" { (cell) } } } }
                tbody {
                    @for row in &self.rows {
                        tr {
                            @for (cell, head) in row.iter().zip(&self.head).take(1) {
                                th scope="row" title=(head) { (cell) }
                            }
                            @for (cell, head) in row.iter().zip(&self.head).skip(1) {
                                td data-head=(head) { (cell) }
                            }
                        }
                    }
                }
            }
        }
    }

    fn csv_behind(&self) -> Markup {
        html! {
            details.csv {
                summary { "Figures (CSV)" }
                // A newline at the beginning would not be shown.
                pre tabindex="0" { (csv(self, MOST_TABLE_ROWS)) }
                (left_out(self))
            }
        }
    }
}

/// Rows of a table, without the end tags that HTML does not need: tables are a large part of a page.
fn rows(rows: &[Vec<String>]) -> Markup {
    let mut out = String::new();
    for row in rows {
        out.push_str("<tr>");
        for (n, cell) in row.iter().enumerate() {
            out.push_str(if n == 0 { "<th>" } else { "<td>" });
            out.push_str(&html! { (cell) }.0);
        }
    }
    // Cells were escaped above.
    PreEscaped(out)
}

/// Is there nothing in it?
pub(crate) fn is_empty(markup: &Markup) -> bool {
    markup.0.is_empty()
}

/// A drawing in a page: charts escape what they write themselves, and are tested for it.
pub(crate) fn inline(drawing: &Drawing) -> Markup {
    PreEscaped(drawing.inline())
}

/// A chart with its caption and its figures.
pub(crate) fn figure(drawings: &[Drawing], caption: Markup, reading: Reading, data: &Data) -> Markup {
    let way = match reading {
        Reading::Across => Some("across"),
        Reading::Upwards => Some("upwards"),
        Reading::None => None,
    };
    html! {
        figure data-read=[way] {
            figcaption { (tied(caption)) }
            @for drawing in drawings { (inline(drawing)) }
            (data.csv_behind())
        }
    }
}

/// A sentence as markup: a figure and its unit stay on one line.
pub(crate) fn prose(text: &str) -> Markup {
    tied(html! { (text) })
}

/// Joins figures and their units with spaces that do not break; markup may surround them.
pub(crate) fn tied(markup: Markup) -> Markup {
    const UNITS: [&str; 13] =
        ["ms", "s", "µs", "%", "B", "kB", "MB", "GB", "bit/s", "kbit/s", "Mbit/s", "Gbit/s", "times"];
    let mut out = String::with_capacity(markup.0.len());
    let mut after_digit = false;
    for (n, word) in markup.0.split(' ').enumerate() {
        let unit = word.split('<').next().unwrap_or_default().trim_end_matches([',', '.', ';', ':', ')']);
        if n > 0 {
            out.push_str(if after_digit && UNITS.contains(&unit) { "\u{a0}" } else { " " });
        }
        out.push_str(word);
        after_digit = word.ends_with(|c: char| c.is_ascii_digit());
    }
    // The markup with those spaces.
    PreEscaped(out)
}

/// A class's colour with its name.
pub(crate) fn chip(colour: usize) -> Markup {
    html! { i.chip.{ "c" (colour) } {} }
}

/// What the command that makes a page again gives, where no real clock decides.
pub(crate) const THE_SAME: &str = "This command reproduces the figures exactly";

/// The end of a page: notes, what the command that makes it again promises, that command, and what made the
/// page.
pub(crate) fn ending(notes: &[String], promise: &str, again: &str, made: &str) -> Markup {
    html! {
        @if !notes.is_empty() {
            section {
                h2 { "Notes" }
                ul.notes { @for note in notes { li { (prose(note)) } } }
            }
        }
        footer {
            h2 { "Again" }
            p { (promise) ":" }
            pre tabindex="0" { (again) }
            p.small { (made) "." }
        }
    }
}
