//! The figures of a chart as comma-separated values (RFC 4180): a text that people copy or save, and that the
//! page's script reads.

use tidegate_analysis::data::Data;

/// Units that are multiples of each other, with the power of ten of each.
const FAMILIES: [&[(&str, i32)]; 3] = [
    &[("ns", -9), ("µs", -6), ("ms", -3), ("s", 0)],
    &[("bit/s", 0), ("kbit/s", 3), ("Mbit/s", 6), ("Gbit/s", 9)],
    &[("bytes", 0), ("B", 0), ("kB", 3), ("MB", 6), ("GB", 9)],
];

/// A table as comma-separated values: a unit that all values of a column can have stands in its heading, in
/// brackets, and a missing value (`–`) is empty. At most `most` rows.
pub(super) fn csv(data: &Data, most: usize) -> String {
    let columns: Vec<Column> = (0..data.head.len()).map(|at| Column::of(data, at)).collect();
    let heads = data.head.iter().zip(&columns).map(|(head, column)| {
        let from = if column.is_chain { " from" } else { "" };
        match column.unit {
            "" => head.clone(),
            unit => format!("{head}{from} ({unit})"),
        }
    });
    let mut out = line(heads);
    for row in data.rows.iter().take(most) {
        out += &line(row.iter().zip(&columns).map(|(cell, column)| column.value(cell)));
    }
    out
}

/// What a column's values are written in.
#[derive(Clone, Copy)]
struct Column {
    /// Empty: values stay as they are.
    unit: &'static str,
    power: i32,
    family: &'static [(&'static str, i32)],
    /// Its values are spans of which each begins where the one before ends: the beginnings are enough.
    is_chain: bool,
}

impl Column {
    /// The largest unit that occurs, where every value is missing or has one of the same family.
    fn of(data: &Data, at: usize) -> Column {
        let cells = || data.rows.iter().filter_map(|row| row.get(at)).filter(|cell| !is_missing(cell));
        let plain = Column { unit: "", power: 0, family: &[], is_chain: false };
        let percent: &'static [(&'static str, i32)] = &[("%", 0)];
        let found = FAMILIES.into_iter().chain([percent]).find_map(|family| {
            let units: Option<Vec<(&'static str, i32)>> = cells().map(|cell| unit_of(cell, family)).collect();
            let (unit, power) = units?.into_iter().max_by_key(|(_, power)| *power)?;
            let spans: Option<Vec<(&str, &str)>> =
                cells().map(|cell| parts(cell)?.0.split_once('–')).collect();
            let is_chain = spans.is_some_and(|spans| spans.windows(2).all(|pair| pair[0].1 == pair[1].0));
            Some(Column { unit, power, family, is_chain })
        });
        found.unwrap_or(plain)
    }

    fn value(&self, cell: &str) -> String {
        if is_missing(cell) {
            return String::new();
        }
        match (unit_of(cell, self.family), parts(cell)) {
            (Some((_, power)), Some((number, _))) => {
                let from = if self.is_chain { number.split('–').next() } else { None };
                shifted(from.unwrap_or(number), power - self.power)
            }
            _ => cell.to_owned(),
        }
    }
}

fn is_missing(cell: &str) -> bool {
    cell.is_empty() || cell == "–"
}

/// A number and its unit: `12.5 ms`; of a range (`3–4 s`) both ends are the number.
fn parts(cell: &str) -> Option<(&str, &str)> {
    let (number, unit) = cell.rsplit_once(' ')?;
    let is_number = |text: &str| text.parse::<f64>().is_ok_and(f64::is_finite);
    number.split('–').all(is_number).then_some((number, unit))
}

fn unit_of(cell: &str, family: &[(&'static str, i32)]) -> Option<(&'static str, i32)> {
    let (number, unit) = parts(cell)?;
    let found = family.iter().find(|(name, _)| *name == unit).copied()?;
    // Only plain decimal numbers can be shifted.
    number.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-' | '–')).then_some(found)
}

/// A decimal number times a power of ten, digit by digit: nothing is rounded.
fn shifted(number: &str, power: i32) -> String {
    number.split('–').map(|number| shifted_one(number, power)).collect::<Vec<_>>().join("–")
}

fn shifted_one(number: &str, power: i32) -> String {
    if power == 0 {
        return number.to_owned();
    }
    let (sign, digits) = number.strip_prefix('-').map_or(("", number), |digits| ("-", digits));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let all = format!("{whole}{part}");
    let point = i32::try_from(whole.len()).unwrap_or(i32::MAX) + power;
    let text = match usize::try_from(point) {
        Ok(point) if point >= all.len() => all.clone() + &"0".repeat(point - all.len()),
        Ok(point) if point > 0 => format!("{}.{}", &all[..point], &all[point..]),
        _ => format!("0.{}{all}", "0".repeat(point.unsigned_abs() as usize)),
    };
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    let trimmed = text.trim_start_matches('0');
    let text =
        if trimmed.is_empty() || trimmed.starts_with('.') { format!("0{trimmed}") } else { trimmed.into() };
    format!("{sign}{text}")
}

fn line(cells: impl Iterator<Item = String>) -> String {
    cells.map(|cell| field(&cell)).collect::<Vec<_>>().join(",") + "\n"
}

/// A field; text that a spreadsheet would take for a formula gets an apostrophe, as names may be foreign.
fn field(cell: &str) -> String {
    let is_number = cell.parse::<f64>().is_ok();
    let guard = if cell.starts_with(['=', '+', '-', '@']) && !is_number { "'" } else { "" };
    match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{guard}{}\"", cell.replace('"', "\"\"")),
        false => format!("{guard}{cell}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(head: &[&str], rows: &[&[&str]]) -> Data {
        let owned = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        Data { caption: String::new(), head: owned(head), rows: rows.iter().map(|row| owned(row)).collect() }
    }

    #[test]
    fn units_move_to_the_heading_without_rounding() {
        let table = data(
            &["time", "median", "sent", "share", "class", "lost"],
            &[
                &["0–1 s", "30.1 ms", "85.6 kbit/s", "3.2 %", "1:10", "0"],
                &["1–2 s", "1.5 s", "34.8 Mbit/s", "<0.1 %", "1:20", "1"],
                &["2–3 s", "–", "0 bit/s", "–", "", "2"],
            ],
        );
        let expected = "time from (s),median (s),sent (Mbit/s),share,class,lost\n\
            0,0.0301,0.0856,3.2 %,1:10,0\n\
            1,1.5,34.8,<0.1 %,1:20,1\n\
            2,,0,,,2\n";
        assert_eq!(csv(&table, 9), expected);
    }

    #[test]
    fn foreign_text_stays_one_field_and_no_formula() {
        let table = data(&["who"], &[&["a, \"b\""], &["=1+1"], &["-5"], &["-x"], &["+49"]]);
        assert_eq!(csv(&table, 9), "who\n\"a, \"\"b\"\"\"\n'=1+1\n-5\n'-x\n+49\n");
    }

    /// Spans with gaps keep both ends.
    #[test]
    fn spans_that_do_not_follow_each_other_are_whole() {
        assert_eq!(csv(&data(&["time"], &[&["0–1 s"], &["2–3 s"]]), 9), "time (s)\n0–1\n2–3\n");
    }

    #[test]
    fn decimals_are_shifted() {
        let cases = [("85.6", -3, "0.0856"), ("0.5", 3, "500"), ("12", 3, "12000"), ("-1.25", 1, "-12.5")];
        for (number, power, expected) in cases {
            assert_eq!(shifted(number, power), expected, "{number}");
        }
        assert_eq!(shifted("100", -3), "0.1");
        assert_eq!(shifted("0", -6), "0");
    }
}
