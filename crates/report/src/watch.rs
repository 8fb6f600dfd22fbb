//! An interval as a terminal shows it: a line for each class, as many columns as there is room for.

use std::fmt::Write;
use tidegate_analysis::watch::{DeviceInterval, Figures, QueueRow};
use tidegate_measure::numbers::{USUAL, percent_in, rate, significant};

/// What names have at most before columns go for them; longer ones get what is left.
const NAME: usize = 22;

/// An engine that is later than this does not make up for it (as long as its `CREDIT`): that is marked.
const LATE_NS: u64 = 10_000_000;

/// A column of figures.
struct Column {
    head: &'static str,
    width: usize,
    /// Those with the largest go first where there is not room for all.
    dispensable: u8,
    cell: fn(&Figures) -> String,
}

/// All of them, from left to right.
const COLUMNS: [Column; 12] = [
    Column { head: "bit/s", width: 7, dispensable: 0, cell: |of| compact(of.bps) },
    Column {
        head: "share",
        width: 6,
        dispensable: 3,
        cell: |of| of.share.map_or_else(nothing, whole_percent),
    },
    Column { head: "backlog", width: 8, dispensable: 2, cell: |of| compact(of.backlog as f64) },
    Column { head: "p50", width: 8, dispensable: 1, cell: |of| of.p50_ns.map_or_else(nothing, short_span) },
    Column { head: "p99", width: 8, dispensable: 0, cell: |of| of.p99_ns.map_or_else(nothing, short_span) },
    Column {
        head: "oldest",
        width: 8,
        dispensable: 1,
        cell: |of| of.oldest_ns.map_or_else(nothing, short_span),
    },
    Column { head: "drop/s", width: 7, dispensable: 1, cell: |of| few(of.drops) },
    Column { head: "mark/s", width: 7, dispensable: 4, cell: |of| of.marks.map_or_else(nothing, few) },
    Column {
        head: "borrow",
        width: 7,
        dispensable: 5,
        cell: |of| of.borrowed.map_or_else(nothing, whole_percent),
    },
    Column { head: "packet/s", width: 9, dispensable: 6, cell: |of| compact(of.pps) },
    Column { head: "rate", width: 7, dispensable: 7, cell: |of| of.rate_bps.map_or_else(nothing, compact) },
    Column { head: "ceil", width: 7, dispensable: 8, cell: |of| of.ceil_bps.map_or_else(nothing, compact) },
];

/// An interval in lines of at most so many columns, each ended.
pub fn screen(course: &DeviceInterval, columns: usize) -> String {
    let mut text = cut(&headline(course), columns) + "\n";
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
            let _ = write!(line, "{:>1$}", (column.cell)(&row.figures), column.width);
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// The backend, and the base of shares.
fn headline(course: &DeviceInterval) -> String {
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

/// The columns there is room for.
fn fitting(columns: usize) -> Vec<&'static Column> {
    let mut shown: Vec<&Column> = COLUMNS.iter().collect();
    while shown.iter().map(|column| column.width).sum::<usize>() > columns && shown.len() > 1 {
        let most = (0..shown.len()).max_by_key(|&at| shown[at].dispensable).unwrap_or(0);
        shown.remove(most);
    }
    shown
}

fn name(row: &QueueRow) -> String {
    match &row.leaf {
        Some(qdisc) => format!("{}{} {qdisc}", row.branch, row.id),
        None => format!("{}{}", row.branch, row.id),
    }
}

/// At most so many characters of a text; an ellipsis where something is missing.
fn cut(text: &str, columns: usize) -> String {
    if text.chars().count() <= columns {
        return text.to_owned();
    }
    text.chars().take(columns.saturating_sub(1)).chain(['…']).collect()
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
