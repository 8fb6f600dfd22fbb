//! Tables for terminals: columns aligned by what a terminal shows, not by bytes; no colour, so a pipe gets
//! the same.

use std::fmt;

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
        Table { head, align, rows: Vec::new() }
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
        let mut widths: Vec<usize> = self.head.iter().map(|cell| width(cell)).collect();
        for row in &self.rows {
            if let Row::Cells(cells) = row {
                for (known, cell) in widths.iter_mut().zip(cells) {
                    *known = (*known).max(width(cell));
                }
            }
        }
        widths
    }

    fn line(&self, cells: &[String], widths: &[usize]) -> String {
        let mut line = String::new();
        for ((cell, &wide), align) in cells.iter().zip(widths).zip(&self.align) {
            if !line.is_empty() || !std::ptr::eq(cell, &cells[0]) {
                line.push_str("  ");
            }
            let fill = " ".repeat(wide - width(cell));
            match align {
                Align::Left => line.extend([cell.as_str(), &fill]),
                Align::Right => line.extend([fill.as_str(), cell]),
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths = self.widths();
        let rule = "─".repeat(widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1));
        writeln!(f, "{}", self.line(&self.head, &widths))?;
        writeln!(f, "{rule}")?;
        for row in &self.rows {
            match row {
                Row::Cells(cells) => writeln!(f, "{}", self.line(cells, &widths))?,
                Row::Rule => writeln!(f, "{rule}")?,
            }
        }
        Ok(())
    }
}

/// Makes control characters visible: a name from a script must not move the cursor.
pub(crate) fn clean(cell: String) -> String {
    tidegate_text::line(&cell).into()
}

/// Columns that a terminal gives a text: none for combining marks, two for the wide blocks of East Asian
/// scripts and emoji.
pub(crate) fn width(text: &str) -> usize {
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
}
