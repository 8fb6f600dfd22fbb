//! An interval as a terminal shows it: a line for each class, as many columns as there is room for.

use std::fmt::Write;
use tidegate_analysis::watch::{ControlMode, DeviceInterval, Figures, QueueRow};
use tidegate_measure::numbers::{USUAL, percent_in, rate, significant};

/// What names have at most before columns go for them; longer ones get what is left.
const NAME: usize = 22;

/// What the name of a class has at most, so that its qdisc is seen, too.
const CLASS_NAME: usize = 20;

/// An engine that is later than this does not make up for it (as long as its `CREDIT`): that is marked.
const LATE_NS: u64 = 10_000_000;

/// A column of figures.
#[derive(Clone, Copy, Debug)]
pub struct FigureColumn {
    /// Its heading.
    pub head: &'static str,
    /// Characters it takes, a blank before its figures included.
    pub width: usize,
    /// Those with the largest go first where there is not room for all.
    dispensable: u8,
    cell: fn(&Figures) -> String,
}

impl FigureColumn {
    /// The figure of a row; at most one character less than the column has.
    pub fn cell(&self, figures: &Figures) -> String {
        (self.cell)(figures)
    }
}

/// All of them, from left to right.
const COLUMNS: [FigureColumn; 12] = [
    FigureColumn { head: "bit/s", width: 7, dispensable: 0, cell: |of| compact(of.bps) },
    FigureColumn {
        head: "share",
        width: 6,
        dispensable: 3,
        cell: |of| of.share.map_or_else(nothing, whole_percent),
    },
    FigureColumn { head: "backlog", width: 8, dispensable: 2, cell: |of| compact(of.backlog as f64) },
    FigureColumn {
        head: "p50",
        width: 8,
        dispensable: 1,
        cell: |of| of.p50_ns.map_or_else(nothing, short_span),
    },
    FigureColumn {
        head: "p99",
        width: 8,
        dispensable: 0,
        cell: |of| of.p99_ns.map_or_else(nothing, short_span),
    },
    FigureColumn {
        head: "oldest",
        width: 8,
        dispensable: 1,
        cell: |of| of.oldest_ns.map_or_else(nothing, short_span),
    },
    FigureColumn { head: "drop/s", width: 7, dispensable: 1, cell: |of| few(of.drops) },
    FigureColumn { head: "mark/s", width: 7, dispensable: 4, cell: |of| of.marks.map_or_else(nothing, few) },
    FigureColumn {
        head: "borrow",
        width: 7,
        dispensable: 5,
        cell: |of| of.borrowed.map_or_else(nothing, whole_percent),
    },
    FigureColumn { head: "packet/s", width: 9, dispensable: 6, cell: |of| compact(of.pps) },
    FigureColumn {
        head: "rate",
        width: 7,
        dispensable: 7,
        cell: |of| of.rate_bps.map_or_else(nothing, compact),
    },
    FigureColumn {
        head: "ceil",
        width: 7,
        dispensable: 8,
        cell: |of| of.ceil_bps.map_or_else(nothing, compact),
    },
];

/// An interval in lines of at most so many columns, each ended.
pub fn screen(course: &DeviceInterval, columns: usize) -> String {
    let heads = std::iter::once(headline(course)).chain(control_lines(course));
    let mut text: String = heads.map(|line| cut(&line, columns) + "\n").collect();
    let longest = course.rows.iter().map(|row| name(row).chars().count()).max().unwrap_or(0).max(8);
    let shown = fitting(columns.saturating_sub(longest.min(NAME)));
    let taken: usize = shown.iter().map(|column| column.width).sum();
    let width = longest.min(columns.saturating_sub(taken));
    let mut head = format!("{:<width$}", "class");
    for column in &shown {
        let _ = write!(head, "{:>1$}", column.head, column.width);
    }
    text += head.trim_end();
    text.push('\n');
    for row in &course.rows {
        let name = cut(&name(row), width);
        let mut line = format!("{name:<width$}");
        for column in &shown {
            let _ = write!(line, "{:>1$}", column.cell(&row.figures), column.width);
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// The device, the rate that shares are of, and the backend.
pub fn headline(course: &DeviceInterval) -> String {
    let mut line = course.device.clone();
    match (course.shaped_bps, course.link_bps) {
        (Some(shaped), Some(link)) if shaped < link => {
            let _ = write!(line, "  {} of {}", rate(shaped), rate(link));
        }
        // Guaranteed rates may exceed the line.
        (_, Some(one)) | (Some(one), None) => {
            let _ = write!(line, "  {}", rate(one));
        }
        (None, None) => {}
    }
    line += match course.backend.as_str() {
        "kernel" => "  kernel",
        _ => "  user space",
    };
    if let Some(packet_io) = &course.packet_io {
        let _ = write!(line, " ({packet_io})");
    }
    let _ = write!(line, "  over {} s", significant(course.over_ns as f64 / 1e9, USUAL));
    if let Some(late) = course.late_ns {
        let warning = if late > LATE_NS { "!" } else { "" };
        let _ = write!(line, "  late {}{warning}", short_span(late));
    }
    line
}

/// What `tidegate autorate` does with the device's shaper, and why it did so last; nothing where none runs.
pub fn control_lines(course: &DeviceInterval) -> Vec<String> {
    let Some(control) = &course.control else { return Vec::new() };
    let [now, base, least, most] =
        [control.rate, control.base, control.least, control.most].map(|bits| rate(bits as f64));
    let mut line = format!("  autorate ({}): {}", control.controller, control.direction);
    let _ = match control.mode {
        ControlMode::Controls => write!(line, " {now} of {least} to {most}"),
        ControlMode::Idle => write!(line, " {base}: no load"),
        ControlMode::Blind => write!(line, " {now}: no target replies"),
        ControlMode::Gone => write!(line, ": a shaper is gone, and looked for"),
    };
    let count: u64 = control.decisions.values().fold(0, |sum, count| sum.saturating_add(*count));
    let last = control.last.as_ref().map(|last| {
        let delay = last.delay_ms.map_or_else(String::new, |ms| format!(" ({ms:.1} ms)"));
        let word = if count == 1 { "decision" } else { "decisions" };
        format!("  {count} {word}, last: {}{delay}", last.words)
    });
    let lines = std::iter::once(line).chain(last);
    lines.map(|line| tidegate_text::line(&line).to_string()).collect()
}

/// The columns that fit into so many characters; at least one.
pub fn fitting(columns: usize) -> Vec<&'static FigureColumn> {
    let mut shown: Vec<&FigureColumn> = COLUMNS.iter().collect();
    while shown.iter().map(|column| column.width).sum::<usize>() > columns && shown.len() > 1 {
        let most = (0..shown.len()).max_by_key(|&at| shown[at].dispensable).unwrap_or(0);
        shown.remove(most);
    }
    shown
}

fn name(row: &QueueRow) -> String {
    row.branch.clone() + &row_name(row)
}

/// What a row is called: `1:10 (calls) fq_codel 10:`.
pub fn row_name(row: &QueueRow) -> String {
    let shown = |name: &String| format!(" ({})", cut(&String::from(tidegate_text::line(name)), CLASS_NAME));
    let name = row.name.as_ref().map(shown).unwrap_or_default();
    let leaf = row.leaf.as_ref().map(|qdisc| format!(" {qdisc}")).unwrap_or_default();
    format!("{}{name}{leaf}", row.id)
}

/// At most so many characters of a text; an ellipsis where something is missing.
fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
}

/// The bar of a sparkline for a queueing delay: half a decade each, from `▁` (at most 1 ms) to `█` (more
/// than 1 s).
pub fn delay_bar(delay_ns: u64) -> char {
    const BARS: [(u64, char); 7] = [
        (1_000_000, '▁'),
        (3_000_000, '▂'),
        (10_000_000, '▃'),
        (30_000_000, '▄'),
        (100_000_000, '▅'),
        (300_000_000, '▆'),
        (1_000_000_000, '▇'),
    ];
    BARS.iter().find(|(most, _)| delay_ns <= *most).map_or('█', |(_, bar)| *bar)
}

fn nothing() -> String {
    "–".to_owned()
}

/// A number with a letter for its thousands: `9.41M`.
fn compact(value: f64) -> String {
    let mut value = value;
    for unit in ["", "k", "M", "G"] {
        if value < 999.5 {
            let digits = if unit.is_empty() && value.fract() == 0.0 { 1 } else { USUAL };
            return format!("{}{unit}", significant(value, digits));
        }
        value /= 1000.0;
    }
    format!("{}T", significant(value, USUAL))
}

/// Events per second; rare ones are not shown as none.
fn few(per_second: f64) -> String {
    match per_second {
        0.0 => "0".to_owned(),
        few if few < 10.0 => format!("{few:.1}"),
        more => compact(more.round()),
    }
}

fn whole_percent(share: f64) -> String {
    percent_in(share, USUAL).replace(".0 %", " %").replace(' ', "")
}

/// A time as short as it gets: `12.3ms`.
fn short_span(ns: u64) -> String {
    if ns == 0 { "0".to_owned() } else { tidegate_measure::numbers::format_duration(ns).replace(' ', "") }
}
