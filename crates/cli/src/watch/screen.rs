//! What `top` draws: the title, the rows of all devices, which scroll, and the keys.

use super::keys::Key;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::{Color, Modifier, Style};
use tidegate_analysis::watch::{DelayHistory, DeviceInterval, QueueRow, RowOrder, ShownRow, shown_rows};
use tidegate_report::watch::{FigureColumn, control_lines, delay_bar, fitting, headline, row_name};

/// What names have at most before columns go for them; longer ones get what is left.
const NAME: usize = 24;
/// The columns of a sparkline: fewest, most.
const SPARK: (usize, usize) = (8, 40);

/// What the keys have changed, and what is remembered.
pub(super) struct TopScreen {
    history: DelayHistory,
    intervals: Vec<DeviceInterval>,
    order: RowOrder,
    shows_idle: bool,
    is_paused: bool,
    /// Lines above the first that is shown.
    scrolled: usize,
    /// Lines that have room, as drawn last.
    room: usize,
    /// Lines there are, as drawn last.
    lines: usize,
}

/// A line of the part that scrolls.
enum BodyLine<'i> {
    Device(&'i DeviceInterval),
    /// What a controller does with its shaper.
    Control(String),
    Row(&'i DeviceInterval, ShownRow<'i>),
    /// Rows that are left out.
    Idle(usize),
}

impl TopScreen {
    pub(super) fn new() -> TopScreen {
        TopScreen {
            history: DelayHistory::new(SPARK.1),
            intervals: Vec::new(),
            order: RowOrder::Tree,
            shows_idle: false,
            is_paused: false,
            scrolled: 0,
            room: 0,
            lines: 0,
        }
    }

    /// Takes an interval.
    pub(super) fn push(&mut self, intervals: Vec<DeviceInterval>) {
        self.history.push(&intervals);
        self.intervals = intervals;
    }

    /// Whether intervals are not taken for now.
    pub(super) fn is_paused(&self) -> bool {
        self.is_paused
    }

    /// Obeys a key; false: the user wants to quit.
    pub(super) fn obey(&mut self, key: Key) -> bool {
        let last = self.lines.saturating_sub(self.room);
        let page = self.room.saturating_sub(1).max(1);
        match key {
            Key::Char('q' | 'Q') => return false,
            Key::Char('i' | 'I') => self.shows_idle = !self.shows_idle,
            Key::Char('s' | 'S') => (self.order, self.scrolled) = (self.order.next(), 0),
            Key::Char('p' | 'P' | ' ') => self.is_paused = !self.is_paused,
            Key::Char('k') | Key::Up => self.scrolled = self.scrolled.saturating_sub(1),
            Key::Char('j') | Key::Down => self.scrolled += 1,
            Key::PageUp => self.scrolled = self.scrolled.saturating_sub(page),
            Key::PageDown => self.scrolled += page,
            Key::Char('g') | Key::Home => self.scrolled = 0,
            Key::Char('G') | Key::End => self.scrolled = last,
            Key::Char(_) => {}
        }
        self.scrolled = self.scrolled.min(last);
        true
    }

    /// Draws over the whole buffer.
    pub(super) fn draw(&mut self, buffer: &mut Buffer) {
        let area = buffer.area;
        buffer.set_style(area, Style::reset());
        let (columns, rows) = (usize::from(area.width), usize::from(area.height));
        // The heads of the columns, the keys, and at least a line between.
        let is_tall = rows > 2;
        self.room = if is_tall { rows - 2 } else { rows };
        let intervals = std::mem::take(&mut self.intervals);
        let (lines, idle) = self.body(&intervals);
        self.lines = lines.len();
        self.scrolled = self.scrolled.min(self.lines.saturating_sub(self.room));
        let layout = Layout::of(&intervals, columns);
        if is_tall {
            layout.draw_heads(buffer, self.order);
            self.draw_keys(buffer, area.bottom() - 1, idle, layout.spark > 0);
        }
        let first = u16::from(is_tall);
        for (line, y) in lines.iter().skip(self.scrolled).take(self.room).zip(first..) {
            self.draw_line(buffer, y, line, &layout);
        }
        if intervals.is_empty() {
            put(buffer, (0, first), "measuring …", Style::new());
        }
        self.intervals = intervals;
    }

    /// All lines, and how many rows are left out.
    fn body<'i>(&self, intervals: &'i [DeviceInterval]) -> (Vec<BodyLine<'i>>, usize) {
        let (mut lines, mut idle) = (Vec::new(), 0);
        for interval in intervals {
            let is_idle =
                |row: &QueueRow| !self.shows_idle && self.history.is_idle(&interval.device, &row.id);
            let shown = shown_rows(interval, self.order, is_idle);
            idle += shown.idle;
            lines.push(BodyLine::Device(interval));
            lines.extend(control_lines(interval).into_iter().map(BodyLine::Control));
            lines.extend(shown.rows.into_iter().map(|row| BodyLine::Row(interval, row)));
            if shown.idle > 0 {
                lines.push(BodyLine::Idle(shown.idle));
            }
        }
        (lines, idle)
    }

    fn draw_line(&self, buffer: &mut Buffer, y: u16, line: &BodyLine<'_>, layout: &Layout) {
        match line {
            BodyLine::Device(interval) => {
                put(buffer, (0, y), &headline(interval), Style::new().add_modifier(Modifier::BOLD));
            }
            BodyLine::Control(words) => put(buffer, (0, y), words, Style::new()),
            BodyLine::Idle(rows) => {
                let words = format!("  … {rows} idle {}", if *rows == 1 { "row" } else { "rows" });
                put(buffer, (0, y), &words, Style::new().add_modifier(Modifier::DIM));
            }
            BodyLine::Row(interval, shown) => {
                let name = visible(&name(shown));
                put_within(buffer, (0, y), &name, layout.name, Style::new());
                for (column, x) in &layout.columns {
                    let cell = column.cell(&shown.row.figures);
                    let is_dropping = column.head == "drop/s" && shown.row.figures.drops > 0.0;
                    let style = if is_dropping { Style::new().fg(Color::Red) } else { Style::new() };
                    put_right(buffer, (*x, y), &cell, column.width, style);
                }
                let delays: Vec<Option<u64>> = self.history.delays(&interval.device, &shown.row.id).collect();
                let newest = delays.len().saturating_sub(layout.spark);
                for (delay, x) in delays[newest..].iter().zip(layout.spark_at..) {
                    if let Some(delay) = delay {
                        put(buffer, (clamp(x), y), &delay_bar(*delay).to_string(), delay_style(*delay));
                    }
                }
            }
        }
    }

    /// The keys and what they have done, and what the bars mean, as far as there is room.
    fn draw_keys(&self, buffer: &mut Buffer, y: u16, idle: usize, has_bars: bool) {
        let order = match self.order {
            RowOrder::Tree => "tree",
            RowOrder::Throughput => "bit/s",
            RowOrder::Delay => "p99",
            RowOrder::Backlog => "backlog",
            RowOrder::Drops => "drop/s",
        };
        let hidden = match (self.shows_idle, idle) {
            (true, _) => "hide idle".to_owned(),
            (false, 0) => "none idle".to_owned(),
            (false, idle) => format!("show {idle} idle"),
        };
        let last = (self.scrolled + self.room).min(self.lines);
        let place = format!("{}–{last} of {}", (self.scrolled + 1).min(last), self.lines);
        let pause = if self.is_paused { "PAUSED, continue" } else { "pause" };
        let keys = [
            ("q", "quit"),
            ("s", &format!("sort: {order}")),
            ("i", &hidden),
            ("↑↓", &place),
            ("space", pause),
            ("p99", "▁≤1ms ▃≤10ms ▅≤100ms █>1s"),
            ("p99", "▁≤1ms █>1s"),
        ];
        buffer
            .set_style(Rect::new(0, y, buffer.area.width, 1), Style::new().add_modifier(Modifier::REVERSED));
        let (mut x, end, mut explained) = (0, usize::from(buffer.area.width), false);
        let bold = Style::new().add_modifier(Modifier::BOLD | Modifier::REVERSED);
        for (key, words) in keys {
            let width = key.chars().count() + 1 + words.chars().count();
            let is_legend = key == "p99";
            if x + width > end || (is_legend && (explained || !has_bars)) {
                continue;
            }
            explained |= is_legend;
            put(buffer, (clamp(x), y), key, bold);
            let behind = x + key.chars().count() + 1;
            put(buffer, (clamp(behind), y), words, Style::new().add_modifier(Modifier::REVERSED));
            x += width + 2;
        }
    }
}

/// Where everything of a row is.
struct Layout {
    name: usize,
    /// With where each begins.
    columns: Vec<(&'static FigureColumn, usize)>,
    spark_at: usize,
    /// Columns of the sparkline; 0: there is none.
    spark: usize,
}

impl Layout {
    fn of(intervals: &[DeviceInterval], columns: usize) -> Layout {
        let rows = || intervals.iter().flat_map(|interval| &interval.rows);
        // The kernel does not report queueing delays.
        let has_delays = intervals.iter().any(|interval| interval.backend != "kernel");
        let spark = if has_delays && columns >= 60 { (columns / 7).clamp(SPARK.0, SPARK.1) } else { 0 };
        let left = columns.saturating_sub(if spark > 0 { spark + 1 } else { 0 });
        let longest =
            rows().map(|row| 2 * row.depth + row_name(row).chars().count()).max().unwrap_or(0).max(8);
        let shown = fitting(left.saturating_sub(longest.min(NAME)));
        let taken: usize = shown.iter().map(|column| column.width).sum();
        let name = longest.min(left.saturating_sub(taken));
        let mut x = name;
        let place = |column: &'static FigureColumn| {
            x += column.width;
            (column, x - column.width)
        };
        let placed: Vec<_> = shown.into_iter().map(place).collect();
        Layout { name, spark_at: name + taken + 1, columns: placed, spark }
    }

    fn draw_heads(&self, buffer: &mut Buffer, order: RowOrder) {
        let width = buffer.area.width;
        buffer.set_style(Rect::new(0, 0, width, 1), Style::new().add_modifier(Modifier::DIM));
        let plain = Style::new().add_modifier(Modifier::DIM);
        put_within(buffer, (0, 0), "class", self.name, plain);
        let sorted = match order {
            RowOrder::Tree => "",
            RowOrder::Throughput => "bit/s",
            RowOrder::Delay => "p99",
            RowOrder::Backlog => "backlog",
            RowOrder::Drops => "drop/s",
        };
        for (column, x) in &self.columns {
            let style = match column.head == sorted {
                true => Style::new().add_modifier(Modifier::BOLD),
                false => plain,
            };
            put_right(buffer, (*x, 0), column.head, column.width, style);
        }
        if self.spark > 0 {
            let head = if self.spark < 16 { "p99, past" } else { "p99, newest right" };
            put(buffer, (clamp(self.spark_at), 0), head, plain);
        }
    }
}

/// The name of a row with its place in the tree: `├ 1:10 fq_codel 10:`.
fn name(shown: &ShownRow<'_>) -> String {
    shown.branch.clone() + &row_name(shown.row)
}

/// Delays that people notice in calls are yellow and red.
fn delay_style(delay_ns: u64) -> Style {
    match delay_ns {
        0..=30_000_000 => Style::new().fg(Color::Green),
        30_000_001..=100_000_000 => Style::new().fg(Color::Yellow),
        _ => Style::new().fg(Color::Red),
    }
}

fn visible(text: &str) -> String {
    tidegate_text::line(text).to_string()
}

fn clamp(x: usize) -> u16 {
    u16::try_from(x).unwrap_or(u16::MAX)
}

/// Puts a text where there is room for it; nothing of it goes beyond the edge.
fn put(buffer: &mut Buffer, (x, y): (u16, u16), text: &str, style: Style) {
    put_within(buffer, (x, y), text, usize::from(buffer.area.width.saturating_sub(x)), style);
}

/// Puts a text into so many columns, with an ellipsis where something is missing.
fn put_within(buffer: &mut Buffer, (x, y): (u16, u16), text: &str, columns: usize, style: Style) {
    if x >= buffer.area.right() || y >= buffer.area.bottom() || columns == 0 {
        return;
    }
    let text = visible(text);
    let (end, _) = buffer.set_stringn(x, y, &text, columns, style);
    // What does not fit is measured in a line of its own, which is as wide as it needs.
    let whole = ratatui_core::text::Span::raw(text.as_str()).width();
    if whole > columns {
        let last = end.saturating_sub(1).max(x);
        buffer.set_stringn(last, y, "…", 1, style);
    }
}

/// Puts a figure at the right end of a column.
fn put_right(buffer: &mut Buffer, (x, y): (usize, u16), text: &str, width: usize, style: Style) {
    let blanks = width.saturating_sub(text.chars().count());
    put(buffer, (clamp(x + blanks), y), text, style);
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
