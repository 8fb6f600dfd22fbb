//! Tables for terminals: columns aligned by what a terminal shows, not by bytes; no colour, so a pipe gets
//! the same.
//!
//! A table wider than the terminal ([`set_columns`]) folds: words wrap within their cells, and columns that
//! still have no room follow in further tables below, each with the first column again.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The columns of the terminal that texts are for; `usize::MAX`: they are for a pipe or a file.
static COLUMNS: AtomicUsize = AtomicUsize::new(usize::MAX);
/// The fewest columns that are reckoned with.
const MIN_COLUMNS: usize = 20;
/// To how many columns a cell of words is narrowed before columns follow below.
const NARROW: usize = 14;
/// A word of more columns, as a path, is broken where there is no room for it.
const LONG_WORD: usize = 24;

/// Texts are for a terminal of so many columns from now on; `None`: for a pipe or a file, and nothing folds.
pub fn set_columns(columns: Option<usize>) {
    COLUMNS.store(columns.map_or(usize::MAX, |columns| columns.max(MIN_COLUMNS)), Ordering::Relaxed);
}

/// The columns of the terminal that texts are for; very many where they are for a pipe or a file.
pub(crate) fn columns() -> usize {
    COLUMNS.load(Ordering::Relaxed)
}

/// How a cell is aligned in its column.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Align {
    /// Words.
    #[default]
    Left,
    /// Figures.
    Right,
}

/// A table with a head, rows and rules between groups of rows. `Display` writes it, each line ended, none
/// with trailing blanks.
#[derive(Clone, Debug, Default)]
pub struct Table {
    head: Vec<String>,
    align: Vec<Align>,
    rows: Vec<Row>,
    /// So many of the first columns say what a row is of, beside the first of all.
    more_keys: usize,
}

#[derive(Clone, Debug)]
enum Row {
    Cells(Vec<String>),
    Rule,
}

impl Table {
    /// A table with these columns.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = (S, Align)>) -> Table {
        let (head, align) = columns.into_iter().map(|(name, align)| (clean(name.into()), align)).unzip();
        Table { head, align, rows: Vec::new(), more_keys: 0 }
    }

    /// What a row is of is said by its first two cells: both are repeated where it folds.
    pub fn with_two_keys(mut self) -> Table {
        self.more_keys = 1;
        self
    }

    /// Adds a row: cells too many are dropped, missing ones empty.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) -> &mut Table {
        let mut cells: Vec<String> = cells.into_iter().map(|cell| clean(cell.into())).collect();
        cells.resize(self.head.len(), String::new());
        self.rows.push(Row::Cells(cells));
        self
    }

    /// Adds a line between groups of rows.
    pub fn rule(&mut self) -> &mut Table {
        self.rows.push(Row::Rule);
        self
    }

    /// Rows so far, rules not counted.
    pub fn len(&self) -> usize {
        self.rows.iter().filter(|row| matches!(row, Row::Cells(_))).count()
    }

    /// No rows?
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn widths(&self) -> Vec<usize> {
        self.head.iter().enumerate().map(|(n, head)| width(head).max(self.widest(n))).collect()
    }

    /// The width of a column's widest cell below its head.
    fn widest(&self, column: usize) -> usize {
        self.cells(column).map(|cell| width(cell)).max().unwrap_or(0)
    }

    fn cells(&self, column: usize) -> impl Iterator<Item = &String> {
        self.rows.iter().filter_map(move |row| match row {
            Row::Cells(cells) => cells.get(column),
            Row::Rule => None,
        })
    }

    /// How far a column of words is narrowed: its words stay whole, but for long ones.
    fn least(&self, column: usize) -> usize {
        let words = self.cells(column).flat_map(|cell| cell.split(' ').map(width));
        words.filter(|word| *word <= LONG_WORD).max().unwrap_or(0).max(NARROW)
    }

    /// The same within so many columns.
    pub fn folded(&self, columns: usize) -> String {
        let widths = self.narrowed(columns);
        let mut out = String::new();
        let keys = self.keys(&widths, columns);
        let mut rest = keys..widths.len();
        loop {
            // The first columns, and as many more as fit; at least one.
            let mut group: Vec<usize> = (0..keys).collect();
            let mut wide = total(&widths[..keys]);
            while let Some(next) = rest.clone().next() {
                if group.len() > keys && wide + GAP + widths[next] > columns {
                    break;
                }
                wide += GAP + widths[next];
                group.push(next);
                rest.next();
            }
            self.group(&group, &widths, &mut out);
            if rest.is_empty() {
                return out;
            }
            out.push('\n');
        }
    }

    /// How many columns are repeated: both that are keys, if every other has room beside them.
    fn keys(&self, widths: &[usize], columns: usize) -> usize {
        let keys = 1 + self.more_keys;
        let widest = widths.iter().skip(keys).max().copied().unwrap_or(0);
        let fits = widths.len() > keys && total(&widths[..keys]) + GAP + widest <= columns;
        if fits { keys } else { widths.len().min(1) }
    }

    /// The widths of the columns, those of words narrowed as far as is needed to fit.
    fn narrowed(&self, columns: usize) -> Vec<usize> {
        let mut widths = self.widths();
        if total(&widths) > columns {
            // Above figures the words of the head wrap.
            for n in (0..widths.len()).filter(|&n| self.align[n] == Align::Right) {
                let word = self.head[n].split(' ').map(width).max().unwrap_or(0);
                widths[n] = self.widest(n).max(word);
            }
        }
        let least: Vec<usize> = (0..widths.len()).map(|n| self.least(n)).collect();
        while total(&widths) > columns {
            let words = (0..widths.len()).filter(|&n| self.align[n] == Align::Left);
            let widest = words.filter(|&n| widths[n] > least[n]).max_by_key(|&n| widths[n]);
            let Some(widest) = widest else { break };
            let excess = total(&widths) - columns;
            widths[widest] = widths[widest].saturating_sub(excess).max(least[widest]);
        }
        // Beside the first column the widest other has room, or nothing would fit.
        let figures = (1..widths.len()).map(|n| widths[n]).max().unwrap_or(0);
        if let Some(first) = widths.first_mut() {
            *first = (*first).min(columns.saturating_sub(figures + GAP).max(NARROW / 2));
        }
        widths
    }

    /// Some of the columns, with their head and rules.
    fn group(&self, group: &[usize], widths: &[usize], out: &mut String) {
        let shown: Vec<usize> = group.iter().map(|&n| widths[n]).collect();
        let rule = "─".repeat(total(&shown)) + "\n";
        self.lines(&self.head, group, widths, out);
        out.push_str(&rule);
        for row in &self.rows {
            match row {
                Row::Cells(cells) => self.lines(cells, group, widths, out),
                Row::Rule => out.push_str(&rule),
            }
        }
    }

    /// A row: as many lines as its cells need.
    fn lines(&self, cells: &[String], group: &[usize], widths: &[usize], out: &mut String) {
        let folded: Vec<Vec<String>> = group.iter().map(|&n| fold(&cells[n], widths[n])).collect();
        for at in 0..folded.iter().map(Vec::len).max().unwrap_or(0) {
            let mut line = String::new();
            for (place, (&n, cell)) in group.iter().zip(&folded).enumerate() {
                let part = cell.get(at).map_or("", String::as_str);
                if place > 0 {
                    line.push_str(&" ".repeat(GAP));
                }
                let fill = " ".repeat(widths[n].saturating_sub(width(part)));
                match self.align[n] {
                    Align::Left => line.extend([part, &fill]),
                    Align::Right => line.extend([fill.as_str(), part]),
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
    }
}

/// Blanks between two columns.
const GAP: usize = 2;

/// The width of these columns beside each other.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1)
}

/// A cell's text in lines of at most so many columns, broken at blanks where there are any.
fn fold(cell: &str, columns: usize) -> Vec<String> {
    if width(cell) <= columns {
        return vec![cell.to_owned()];
    }
    let mut lines = vec![String::new()];
    for word in cell.split(' ') {
        let line = lines.last().map_or(0, |line| width(line));
        if line > 0 && line + 1 + width(word) > columns {
            lines.push(String::new());
        }
        let Some(line) = lines.last_mut() else { break };
        if !line.is_empty() {
            line.push(' ');
        }
        for letter in word.chars() {
            let Some(line) = lines.last_mut() else { break };
            let wide = width(letter.encode_utf8(&mut [0; 4]));
            match !line.is_empty() && width(line) + wide > columns {
                true => lines.push(letter.to_string()),
                false => line.push(letter),
            }
        }
    }
    lines
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.folded(columns()))
    }
}

/// Makes control characters visible: a name from a script must not move the cursor.
pub(crate) fn clean(cell: String) -> String {
    tidegate_text::line(&cell).into()
}

/// Columns that a terminal gives a text: none for combining marks, two for the wide blocks of East Asian
/// scripts and emoji.
pub fn width(text: &str) -> usize {
    text.chars()
        .map(|c| match c as u32 {
            0x300..=0x36f | 0x200b..=0x200f | 0x20d0..=0x20ff | 0xfe00..=0xfe0f => 0,
            0x1100..=0x115f
            | 0x2e80..=0xa4cf
            | 0xac00..=0xd7a3
            | 0xf900..=0xfaff
            | 0xfe30..=0xfe6f
            | 0xff00..=0xff60 => 2,
            0x1f300..=0x1f64f | 0x1f900..=0x1f9ff | 0x20000..=0x3fffd => 2,
            _ => 1,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_align_by_what_is_shown() {
        let mut table =
            Table::new([("Last", Align::Left), ("Mittel", Align::Right), ("größte", Align::Right)]);
        table.row(["leer", "16.3 ms", "73 ms"]).row(["Übertragung", "721 ms"]).rule();
        table.row(["網路", "1 µs", "2", "too many"]).row(["bad\x1b[2J\n", "", "x"]);
        let expected = "\
Last           Mittel  größte
─────────────────────────────
leer          16.3 ms   73 ms
Übertragung    721 ms
─────────────────────────────
網路             1 µs       2
bad\\x1b[2J\\n                x
";
        assert_eq!(table.to_string(), expected);
        assert_eq!(table.len(), 4);
    }

    /// Nothing is wider than asked for, and nothing is missing.
    #[test]
    fn a_table_folds_to_the_terminal() {
        use Align::{Left, Right};
        let mut table = Table::new([("load", Left), ("policy", Left), ("mean", Right), ("goodput", Right)]);
        table.row(["2 uploads", "without", "721 ms", "1.9 Mbit/s"]).rule();
        table.row(["2 uploads", "with it", "55 ms", "1.8 Mbit/s"]);
        let expected = "\
load       policy     mean
──────────────────────────
2 uploads  without  721 ms
──────────────────────────
2 uploads  with it   55 ms

load          goodput
─────────────────────
2 uploads  1.9 Mbit/s
─────────────────────
2 uploads  1.8 Mbit/s
";
        assert_eq!(table.folded(30), expected);
        assert_eq!(table.folded(usize::MAX), table.to_string());
        let mut wide = Table::new([("a cell of words", Left), ("figure", Right)]);
        wide.row(["several words in one cell, whichunbrokenislongerthanaline", "12 packets"]);
        for columns in [20, 24, 30, 50] {
            let folded = wide.folded(columns);
            assert!(folded.lines().all(|line| width(line) <= columns), "{columns}:\n{folded}");
            let letters = |text: &str| text.chars().filter(|letter| letter.is_alphanumeric()).count();
            assert!(letters(&folded) >= letters(&wide.folded(usize::MAX)), "{folded}");
        }
        // Words stay whole.
        let mut words = Table::new([("figure", Left), ("what people wait for", Left), ("change", Left)]);
        words.row(["ping.p95", "a look-up of a name, until the reply", "significantly-worse"]);
        let folded = words.folded(44);
        assert!(
            folded.contains("significantly-worse") && folded.lines().all(|line| width(line) <= 44),
            "{folded}"
        );
        assert_eq!(Table::default().folded(20), "\n");
    }
}
