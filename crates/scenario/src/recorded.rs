//! Links as others recorded them: mahimahi's opportunities, lines of seconds and Mbit/s, tables with named
//! columns (drive tests of LTE and 5G, WetLinks' logs), logs of cake-autorate, LeoReplayer's delays.

mod columns;
mod dates;

use columns::{Column, WetLinks};
use csv::{ReaderBuilder, StringRecord};
use dates::time_of_day;
use tidegate_packet::Nanos;
use tidegate_sim::Trace;
use tidegate_syntax::quantity;

/// The most rows of a recording.
const MAX_ROWS: usize = 1_000_000;
const NANOS: f64 = 1e9;
/// The longest recording and the longest delay, in seconds; the highest rate, in bit/s.
const LONGEST: f64 = 31_536_000.0;
const LATEST: f64 = 60.0;
const FASTEST: f64 = 1e12;

/// What is wrong with a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRecording {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong there.
    pub why: String,
    /// What to do about it.
    pub remedy: String,
}

impl BadRecording {
    pub(crate) fn new(line: usize, why: impl Into<String>, remedy: impl Into<String>) -> BadRecording {
        BadRecording { line, why: why.into(), remedy: remedy.into() }
    }
}

/// How a recording is taken.
#[derive(Clone, Debug)]
pub(crate) struct Taken {
    /// The column of rates, where there are several.
    pub(crate) column: Option<String>,
    /// Rates are multiplied by this.
    pub(crate) scale: f64,
    /// So much of its beginning is left out.
    pub(crate) skip: Nanos,
}

impl Default for Taken {
    fn default() -> Taken {
        Taken { column: None, scale: 1.0, skip: Nanos(0) }
    }
}

/// Reads a recording of any known format, as it is: a link's `trace` in a scenario can also choose a column,
/// scale rates and leave out the beginning.
///
/// # Errors
/// The line, what is wrong there, and what to do about it.
///
/// ```
/// let trace = tidegate_scenario::recording("time,rate_mbit\n0,10\n1,2\n").unwrap();
/// assert_eq!(trace.mean_rate(), Some(6_000_000));
/// assert_eq!(tidegate_scenario::recording("time,rate_mbit\n0,10\n0,2\n").unwrap_err().line, 3);
/// ```
pub fn recording(text: &str) -> Result<Trace, BadRecording> {
    read(text, &Taken::default())
}

/// Reads a recording of any known format.
///
/// # Errors
/// The line, what is wrong there, and what to do about it.
pub(crate) fn read(text: &str, taken: &Taken) -> Result<Trace, BadRecording> {
    let content = text.lines().zip(1..).map(|(line, number)| (line.trim(), number));
    let mut content = content.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    let Some((first, number)) = content.next() else {
        return Err(BadRecording::new(1, "it is empty", "one row for each time is needed"));
    };
    if text.lines().any(|line| line.starts_with("DATA_HEADER;")) {
        return log_of_autorate(text, taken);
    }
    if first.starts_with("DATA;") {
        let how = "keep the line DATA_HEADER of the log, which names the columns";
        return Err(BadRecording::new(number, "rows of cake-autorate's log without their names", how));
    }
    let words: Vec<&str> = first.split([' ', '\t', ',', ';']).filter(|word| !word.is_empty()).collect();
    let are_numbers = words.iter().all(|word| word.parse::<f64>().is_ok());
    match (are_numbers, words.len()) {
        (true, 1) => mahimahi(text, taken),
        (true, 2) => seconds_and_megabits(text, taken),
        (true, more) => Err(BadRecording::new(
            number,
            format!("{more} numbers in a row, and nothing says what they are"),
            "write a line with the columns' names before them: time, rate_kbit, delay_ms, loss_percent",
        )),
        (false, _) => table(text, taken),
    }
}

/// How long each of LeoReplayer's delays holds.
const LEO_STEP: Nanos = Nanos(10_000_000);

/// Delays one way as LeoReplayer has them (Lai and others, SIGCOMM 2025): a number of milliseconds per line,
/// each for 10 ms.
///
/// # Errors
/// The line, what is wrong there, and what to do about it.
pub(crate) fn delays(text: &str) -> Result<Vec<(Nanos, Nanos)>, BadRecording> {
    let how = "one delay in milliseconds per line, each for 10 ms, as LeoReplayer has them";
    let mut found = Vec::new();
    for (line, number) in text.lines().map(str::trim).zip(1..) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let delay = line.parse::<f64>().ok().filter(|ms| ms.is_finite() && *ms >= 0.0);
        let Some(delay) = delay else {
            return Err(BadRecording::new(number, format!("{} is no delay", quoted(line)), how));
        };
        if delay > LATEST * 1e3 {
            return Err(BadRecording::new(
                number,
                "this delay is above a minute",
                "check its unit: milliseconds",
            ));
        }
        if found.len() == MAX_ROWS {
            return Err(BadRecording::new(number, format!("more than {MAX_ROWS} rows"), "split the file"));
        }
        found.push((LEO_STEP, Nanos((delay * 1e6).round() as u64)));
    }
    if found.is_empty() { Err(BadRecording::new(1, "it is empty", how)) } else { Ok(found) }
}

/// A millisecond per line at which 1,500 bytes could go.
fn mahimahi(text: &str, taken: &Taken) -> Result<Trace, BadRecording> {
    let how = "one number of milliseconds per line; if these are delays of LeoReplayer's, name them as `delays` \
               beside the file of rates";
    if taken.column.is_some() {
        return Err(BadRecording::new(1, "a file of mahimahi's has no columns", "leave `column` out"));
    }
    let trace = Trace::parse(text).map_err(|(line, why)| BadRecording::new(line, why, how))?;
    cut(trace, taken.skip, taken.scale)
        .map_err(|why| BadRecording::new(1, why, "skip less, or scale by less"))
}

/// A trace without its beginning, its rates multiplied. One that counts packets then has what each
/// millisecond carries.
///
/// # Errors
/// Nothing is left, or it is more than can be kept.
pub(crate) fn cut(trace: Trace, skip: Nanos, scale: f64) -> Result<Trace, String> {
    let trace = if skip > Nanos(0) { trace.part(skip, None)? } else { trace };
    if scale == 1.0 {
        return Ok(trace);
    }
    trace.with_rates()?.scaled(scale)
}

/// What an error quotes of a cell or a row, which may be a whole file: so many characters at most.
const QUOTED: usize = 60;

fn quoted(text: &str) -> String {
    format!("`{}`", tidegate_text::excerpt(text, (0, 0), QUOTED).0)
}

/// A row of a recording: from when on, or until when, and what was recorded.
struct Row {
    line: usize,
    seconds: f64,
    rate: Option<f64>,
    delay: Option<f64>,
    loss: Option<f64>,
}

impl Row {
    /// What of it is beyond all links, and what to do.
    fn beyond(&self, taken: &Taken) -> Option<(&'static str, &'static str)> {
        if self.rate.is_some_and(|rate| rate * taken.scale > FASTEST) {
            Some(("this rate is above 1 Tbit/s", "check its unit"))
        } else if self.delay.is_some_and(|delay| delay > LATEST) {
            Some(("this delay is above a minute", "check its unit: seconds, or `delay_ms`"))
        } else if self.loss.is_some_and(|loss| loss > 1.0) {
            Some(("more than all packets are lost", "write a share up to 1, `1%`, or call it `loss_percent`"))
        } else {
            None
        }
    }
}

/// Seconds, and the Mbit/s since the row before.
fn seconds_and_megabits(text: &str, taken: &Taken) -> Result<Trace, BadRecording> {
    let how = "seconds and Mbit/s, two numbers in a row";
    let mut rows: Vec<Row> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let words: Vec<&str> = line.split([' ', '\t', ',', ';']).filter(|word| !word.is_empty()).collect();
        if words.is_empty() || line.trim_start().starts_with('#') {
            continue;
        }
        let found: Vec<f64> = words.iter().filter_map(|word| word.parse().ok()).collect();
        let [seconds, rate] = found[..] else {
            return Err(BadRecording::new(number, format!("{} is no such row", quoted(line.trim())), how));
        };
        if !seconds.is_finite() || !(0.0..f64::INFINITY).contains(&rate) {
            return Err(BadRecording::new(
                number,
                format!("{} is no time with a rate", quoted(line.trim())),
                how,
            ));
        }
        // It is the rate of the time that ends here.
        if let Some(before) = rows.last_mut() {
            before.rate = Some(rate * 1e6);
            before.line = number;
        }
        if rows.len() == MAX_ROWS {
            return Err(BadRecording::new(number, format!("more than {MAX_ROWS} rows"), "split the file"));
        }
        rows.push(Row { line: number, seconds, rate: None, delay: None, loss: None });
    }
    let Some(last) = rows.pop() else { return Err(BadRecording::new(1, "it is empty", how)) };
    trace(rows, Some(last), taken)
}

/// Rows with the columns' names before them.
fn table(text: &str, taken: &Taken) -> Result<Trace, BadRecording> {
    let header = text.lines().find(|line| !line.trim().is_empty() && !line.starts_with('#')).unwrap_or("");
    let counts = [b';', b'\t', b','].map(|by| (header.bytes().filter(|byte| *byte == by).count(), by));
    let delimiter = counts.into_iter().max().map_or(b',', |(_, by)| by);
    let builder = |reader: &mut ReaderBuilder| {
        reader.delimiter(delimiter).comment(Some(b'#')).trim(csv::Trim::All);
    };
    let mut reader = ReaderBuilder::new();
    builder(&mut reader);
    let mut reader = reader.from_reader(text.as_bytes());
    let names = reader.headers().map_err(|error| of_csv(&error))?.clone();
    let columns = Columns::of(&names, taken)?;
    let mut same = Same::of(&names);
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|error| of_csv(&error))?;
        same.check(&record)?;
        rows.push(columns.row(&record)?);
        if rows.len() > MAX_ROWS {
            let line = record.position().map_or(1, |position| position.line() as usize);
            return Err(BadRecording::new(line, format!("more than {MAX_ROWS} rows"), "split the file"));
        }
    }
    trace(rows, None, taken)
}

fn of_csv(error: &csv::Error) -> BadRecording {
    let line = error.position().map_or(1, |position| position.line() as usize);
    BadRecording::new(line, error.to_string(), "write rows of values, separated by commas")
}

/// Columns that must not change, by place and name, with what the first row has there.
struct Same(Vec<(usize, &'static str, Option<String>)>);

impl Same {
    fn of(names: &StringRecord) -> Same {
        let wanted = WetLinks::of(names.iter()).map_or(&[][..], WetLinks::same);
        let place = |wanted: &&'static str| {
            let at = names.iter().position(|name| name == *wanted)?;
            Some((at, *wanted, None))
        };
        Same(wanted.iter().filter_map(place).collect())
    }

    fn check(&mut self, record: &StringRecord) -> Result<(), BadRecording> {
        for (at, name, first) in &mut self.0 {
            let value = record.get(*at).unwrap_or("");
            let first = first.get_or_insert_with(|| value.to_owned());
            if first != value {
                let line = record.position().map_or(1, |position| position.line() as usize);
                let (now, before) = (quoted(value), quoted(first));
                let why = format!("{name} is {now}, and before it was {before}: these are two paths");
                return Err(BadRecording::new(line, why, "write the rows of one of them into a file"));
            }
        }
        Ok(())
    }
}

/// Which columns are read.
struct Columns {
    time: (usize, f64),
    rate: Option<(usize, f64)>,
    delay: Option<(usize, f64)>,
    /// The delay is that of both ways.
    is_round_trip: bool,
    loss: Option<(usize, f64)>,
}

impl Columns {
    fn of(names: &StringRecord, taken: &Taken) -> Result<Columns, BadRecording> {
        let set = WetLinks::of(names.iter());
        let column = |name: &str| set.map_or_else(|| Column::of(name), |set| set.column(name));
        let found: Vec<(usize, &str, Column)> =
            names.iter().enumerate().filter_map(|(at, name)| Some((at, name, column(name)?))).collect();
        let one = |wanted: fn(Column) -> Option<f64>| {
            found.iter().find_map(|(at, _, column)| Some((*at, wanted(*column)?)))
        };
        let time = one(|column| if let Column::Time(scale) = column { Some(scale) } else { None });
        let Some(time) = time else {
            return Err(BadRecording::new(
                1,
                "no column is a time",
                "call one `time` (seconds) or `time_ms`",
            ));
        };
        let rates: Vec<(usize, &str, f64)> = found
            .iter()
            .filter_map(|(at, name, column)| match column {
                Column::Rate(scale) => Some((*at, *name, *scale)),
                _ => None,
            })
            .collect();
        let rate = match (&taken.column, &rates[..]) {
            (Some(wanted), _) => match rates.iter().find(|(_, name, _)| name.eq_ignore_ascii_case(wanted)) {
                Some((at, _, scale)) => Some((*at, *scale)),
                None => {
                    return Err(several(&rates, format!("there is no column of rates {}", quoted(wanted))));
                }
            },
            (None, []) => None,
            // What was used is not what the line could carry.
            (None, _) if set.is_some_and(|set| !set.has_capacity()) => None,
            (None, [(at, _, scale)]) => Some((*at, *scale)),
            (None, _) => return Err(several(&rates, "several columns are rates".to_owned())),
        };
        let one_way = one(|column| if let Column::Delay(scale) = column { Some(scale) } else { None });
        let both_ways = one(|column| if let Column::RoundTrip(scale) = column { Some(scale) } else { None });
        let (delay, is_round_trip) = (one_way.or(both_ways), one_way.is_none());
        let loss = one(|column| if let Column::Loss(scale) = column { Some(scale) } else { None });
        if rate.is_none() && delay.is_none() && loss.is_none() {
            let how = "call one `rate_kbit`, `rate_mbit`, `delay_ms` or `loss_percent`";
            return Err(BadRecording::new(1, "no column is a rate, a delay or a loss", how));
        }
        Ok(Columns { time, rate, delay, is_round_trip, loss })
    }

    fn row(&self, record: &StringRecord) -> Result<Row, BadRecording> {
        let line = record.position().map_or(1, |position| position.line() as usize);
        let value = |place: Option<(usize, f64)>, what: (&str, &str), with_unit: fn(&str) -> Option<f64>| {
            let Some((at, scale)) = place else { return Ok(None) };
            let text = record.get(at).unwrap_or("");
            // What was not measured in this row stays as it was.
            if matches!(text, "" | "-" | "NaN" | "nan" | "null") {
                return Ok(None);
            }
            let number = text.parse::<f64>().ok().filter(|_| scale > 0.0).map(|number| number * scale);
            let number =
                number.or_else(|| with_unit(text)).filter(|number| number.is_finite() && *number >= 0.0);
            number.map(Some).ok_or_else(|| {
                let name = what.0;
                let how = format!(
                    "write a number from 0 on, and the unit behind it or in the column's name ({})",
                    what.1
                );
                BadRecording::new(line, format!("{} is no {name}", quoted(text)), how)
            })
        };
        let rate =
            value(self.rate, ("rate", "rate_kbit, 12mbit"), |text| Some(quantity::rate(text).ok()? as f64))?;
        let delay = value(self.delay, ("delay", "delay_ms, 35ms"), |text| {
            Some(quantity::time(text).ok()? as f64 / NANOS)
        })?;
        let delay = delay.map(|delay| if self.is_round_trip { delay / 2.0 } else { delay });
        let loss = value(self.loss, ("loss", "loss_percent, 1%"), |text| {
            text.strip_suffix('%')
                .and_then(|text| text.trim().parse::<f64>().ok())
                .map(|percent| percent / 100.0)
        })?;
        let (at, scale) = self.time;
        let text = record.get(at).unwrap_or("");
        let seconds = text.parse::<f64>().ok().map(|number| number * scale).or_else(|| time_of_day(text));
        let Some(seconds) = seconds.filter(|seconds| seconds.is_finite()) else {
            let how = "write seconds, or a date and a time (2018.01.25_08.03.28)";
            return Err(BadRecording::new(line, format!("{} is no time", quoted(text)), how));
        };
        Ok(Row { line, seconds, rate, delay, loss })
    }
}

fn several(rates: &[(usize, &str, f64)], why: String) -> BadRecording {
    let names: Vec<&str> = rates.iter().map(|(_, name, _)| *name).collect();
    BadRecording::new(1, why, format!("say which: `column = \"NAME\"`, of {}", names.join(", ")))
}

/// A log of cake-autorate: the shaper's rates over time, which say what the controller took the line for.
fn log_of_autorate(text: &str, taken: &Taken) -> Result<Trace, BadRecording> {
    let fields = |line: &'_ str| line.split(';').map(|word| word.trim().to_owned()).collect::<Vec<String>>();
    let header = text.lines().find(|line| line.starts_with("DATA_HEADER;")).map(fields).unwrap_or_default();
    let place = |wanted: &str| header.iter().position(|name| name.eq_ignore_ascii_case(wanted));
    let Some(column) = &taken.column else {
        let rates: Vec<&str> =
            header.iter().map(String::as_str).filter(|name| name.contains("RATE_KBPS")).collect();
        let how = format!("say which: `column = \"NAME\"`, of {}", rates.join(", "));
        return Err(BadRecording::new(1, "a log of cake-autorate has several columns of rates", how));
    };
    let rate = place(column).filter(|_| column.to_uppercase().contains("RATE_KBPS"));
    let (Some(time), Some(rate)) = (place("LOG_TIMESTAMP"), rate) else {
        let why = format!("the log has no columns LOG_TIMESTAMP and {column}, with rates (RATE_KBPS)");
        return Err(BadRecording::new(1, why, "look at its line DATA_HEADER"));
    };
    let mut rows: Vec<Row> = Vec::new();
    for (line, number) in text.lines().zip(1..).filter(|(line, _)| line.starts_with("DATA;")) {
        let words = fields(line);
        let value = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok());
        let (Some(seconds), Some(kbit)) = (value(time), value(rate)) else {
            return Err(BadRecording::new(
                number,
                "this row is not whole",
                "cut the log behind the row before",
            ));
        };
        // Several rows within an instant: the last counts.
        if rows.last().is_some_and(|before| before.seconds == seconds) {
            rows.pop();
        }
        rows.push(Row { line: number, seconds, rate: Some(kbit * 1e3), delay: None, loss: None });
        if rows.len() > MAX_ROWS {
            return Err(BadRecording::new(number, format!("more than {MAX_ROWS} rows"), "cut the log"));
        }
    }
    trace(rows, None, taken)
}

/// The trace of rows, each from its time on until the next; the last as long as the one before it, or until
/// `end`.
fn trace(rows: Vec<Row>, end: Option<Row>, taken: &Taken) -> Result<Trace, BadRecording> {
    let how = "write two rows at least, their times rising";
    let spans = rows.len() - usize::from(end.is_none() && !rows.is_empty());
    if spans == 0 {
        let line = rows.first().or(end.as_ref()).map_or(1, |row| row.line);
        let only =
            if rows.is_empty() && end.is_none() { "it has no rows" } else { "one row is no recording" };
        return Err(BadRecording::new(line, only, how));
    }
    if let Some((row, (why, how))) = rows.iter().find_map(|row| Some((row, row.beyond(taken)?))) {
        return Err(BadRecording::new(row.line, why, how));
    }
    let begins = rows[0].seconds;
    if let Some(late) = rows.iter().chain(&end).find(|row| row.seconds - begins > LONGEST) {
        return Err(BadRecording::new(
            late.line,
            "this is more than a year after the first row",
            "cut the file",
        ));
    }
    let times: Vec<f64> = rows.iter().chain(&end).map(|row| row.seconds).collect();
    let mut held: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if let Some(at) = held.iter().position(|held| *held <= 0.0) {
        let line = rows.get(at + 1).or(end.as_ref()).map_or(1, |row| row.line);
        return Err(BadRecording::new(line, "its time is not after that of the row before", "times rise"));
    }
    if end.is_none() {
        held.push(held[spans - 1]);
    }
    let mut skip = taken.skip.0 as f64 / NANOS;
    if skip >= held.iter().sum() {
        let how = format!("it is {} s long: skip less", held.iter().sum::<f64>());
        return Err(BadRecording::new(1, "`skip` leaves nothing of the recording", how));
    }
    for held in &mut held {
        let cut = skip.min(*held);
        (*held, skip) = (*held - cut, skip - cut);
    }
    let whole = |seconds: f64| Nanos((seconds * NANOS).round().min(u64::MAX as f64) as u64);
    let lines: Vec<usize> = rows.iter().map(|row| row.line).collect();
    let failed = |(at, why): (usize, String)| {
        let how = "write a rate above 0 for some time";
        BadRecording::new(lines.get(at).copied().unwrap_or(1), why, how)
    };
    let steps = |value: &dyn Fn(&Row) -> Option<f64>| -> Option<Vec<(Nanos, f64)>> {
        let mut last = rows.iter().find_map(value)?;
        let filled = rows.iter().zip(&held).map(|(row, held)| {
            last = value(row).unwrap_or(last);
            (whole(*held), last)
        });
        Some(filled.filter(|(held, _)| held.0 > 0).collect())
    };
    let mut trace = Trace::nothing();
    if let Some(rates) = steps(&|row| row.rate) {
        let bits = rates.into_iter().map(|(held, rate)| (held, (rate * taken.scale).round() as u64));
        trace = Trace::rates(bits).map_err(failed)?;
    }
    if let Some(delays) = steps(&|row| row.delay) {
        trace = trace
            .with_delays(delays.into_iter().map(|(held, delay)| (held, whole(delay))))
            .map_err(failed)?;
    }
    if let Some(losses) = steps(&|row| row.loss) {
        let of_million = losses.into_iter().map(|(held, share)| (held, (share * 1e6).round() as u32));
        trace = trace.with_losses(of_million).map_err(failed)?;
    }
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(text: &str) -> Result<(Option<u64>, Option<Nanos>), String> {
        read(text, &Taken::default())
            .map(|trace| (trace.mean_rate(), trace.mean_delay()))
            .map_err(|wrong| format!("{}: {} ({})", wrong.line, wrong.why, wrong.remedy))
    }

    /// A cell may be a whole file: what an error quotes of it fits a line.
    #[test]
    fn what_is_quoted_of_a_recording_has_an_end() {
        let long = "x".repeat(3_000_000);
        let named = "site_name;timestamp_start;packet_loss;ping_avg;target\n";
        for text in [
            format!("time,rate_kbit\n0,{long}\n"),
            format!("time,rate_kbit\n{long},1\n"),
            format!("0 1\n1 {long}\n"),
            format!("0 1\n1 -{}\n", "9".repeat(100_000)),
            format!("1\n{long}\n"),
            format!("{named}a;1;0;20;{long}\na;2;0;20;b\n"),
        ] {
            let why = recording(&text).expect_err("it is wrong").why;
            assert!(why.len() < 300, "{} bytes: {}", why.len(), &why[..300]);
        }
        let taken = Taken { column: Some(long.clone()), ..Taken::default() };
        let why = read("time,rate_kbit\n0,1\n", &taken).expect_err("no such column").why;
        assert!(why.len() < 300 && delays(&long).expect_err("no delay").why.len() < 300, "{}", why.len());
    }

    #[test]
    fn formats_are_known_by_their_first_rows() {
        let ms = |n: u64| Some(Nanos(n * 1_000_000));
        let table = [
            // mahimahi: 3 packets of 1,500 bytes in 12 ms.
            ("4\n8\n12\n", (Some(3_000_000), None)),
            // The rate of a row is that since the row before.
            ("0 9\n1 2\n3 5\n", (Some(4_000_000), None)),
            // A row of a table holds from its time on, the last as long as the one before.
            ("time,rate_mbit,delay_ms\n0,2,10\n1,4,20\n", (Some(3_000_000), ms(15))),
            ("# made by hand\ntime_ms;rate;loss\n0;2mbit;0\n500;4mbit;1%\n", (Some(3_000_000), None)),
            ("t,RTT (ms)\n0,40\n1,40\n", (None, ms(20))),
            ("t,rtt\n0,40ms\n1,40ms\n", (None, ms(20))),
            // Where both are there, the delay one way counts.
            ("t,rtt_ms,owd_ms\n0,40,30\n1,40,30\n", (None, ms(30))),
            // Pantheon's constants: a line of 12 Mbit/s in one row.
            ("1\n", (Some(12_000_000), None)),
            // LeoReplayer's rates: from 0 on, a row for each 12 Mbit/s in a millisecond.
            ("0\n0\n1\n1\n1\n2\n", (Some(36_000_000), None)),
            // WetLinks' pings: half of the round trip; its dish, whose rates are what was used.
            (
                "site_name,timestamp_start,timestamp_end,target,ip_protocol,packet_loss,packets_send,ping_avg\n\
                 OS,2023-09-14 15:12:00+02:00,x,a,4,0.0,10,40.0\nOS,2023-09-14 15:13:00+02:00,x,a,4,50.0,10,60.0\n",
                (None, ms(25)),
            ),
            (
                "site_name,timestamp,state,uplink,downlink,pop_ping_latency,ping_drop,mean_ping_latency\n\
                 OS,2023-09-14T15:12:00,CONNECTED,0.1,0.2,30,0,31\nOS,2023-09-14T15:12:01,SEARCHING,0,0,,100,\n",
                (None, ms(15)),
            ),
            (
                "Timestamp,State,DL_bitrate\n2018.01.25_08.03.28,I,2000\n2018.01.25_08.03.29,D,-\n\
                 2018.01.25_08.03.30,D,5000\n",
                (Some(3_000_000), None),
            ),
        ];
        for (text, expected) in table {
            assert_eq!(mean(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn columns_scale_and_beginning_can_be_said() {
        let drive = "Timestamp,DL_bitrate,UL_bitrate\n0,1000,10\n1,3000,30\n2,5000,50\n";
        let wrong = mean(drive).expect_err("two rates");
        assert!(wrong.contains("`column = \"NAME\"`, of DL_bitrate, UL_bitrate"), "{wrong}");
        let of = |column: &str, scale: f64, skip: u64| {
            let taken = Taken { column: Some(column.to_owned()), scale, skip: Nanos::secs(skip) };
            read(drive, &taken).map(|trace| trace.mean_rate().unwrap_or(0))
        };
        assert_eq!(
            [of("ul_bitrate", 1.0, 0), of("DL_bitrate", 0.5, 0), of("DL_bitrate", 1.0, 1)],
            [Ok(30_000), Ok(1_500_000), Ok(4_000_000)]
        );
        let log = "DATA_HEADER; LOG_TIMESTAMP; DL_ACHIEVED_RATE_KBPS; CAKE_DL_RATE_KBPS\nDEBUG; 1; x\n\
                   DATA; 10.0; 500; 20000\nDATA; 11.0; 500; 10000\n";
        assert!(mean(log).is_err_and(|wrong| wrong.contains("DL_ACHIEVED_RATE_KBPS, CAKE_DL_RATE_KBPS")));
        let taken = Taken { column: Some("CAKE_DL_RATE_KBPS".to_owned()), ..Taken::default() };
        assert_eq!(read(log, &taken).map(|trace| trace.mean_rate()), Ok(Some(15_000_000)));
    }

    #[test]
    fn what_is_wrong_has_a_line_and_a_remedy() {
        for (text, expected) in [
            ("", "1: it is empty"),
            (
                "1 2 3\n",
                "1: 3 numbers in a row, and nothing says what they are (write a line with the columns'",
            ),
            ("0 1\n", "1: one row is no recording"),
            ("0 1\n2 1\n1 1\n", "3: its time is not after that of the row before"),
            ("0 1\n1 x\n", "2: `1 x` is no such row"),
            ("0 0\n1 0\n", "2: nothing could be carried"),
            ("time,rate\n0,5\n1,6\n", "2: `5` is no rate (write a number from 0 on, and the unit behind it"),
            ("time,rate_mbit\n0,5,5\n1,6\n", "2: CSV error"),
            ("time,rate_mbit\n", "1: it has no rows"),
            ("0 5\n1 -3\n", "2: `1 -3` is no time with a rate"),
            ("0 5\n1 1e300\n2 5\n", "2: this rate is above 1 Tbit/s"),
            ("time,delay_ms\n0,5\n1,1e12\n", "3: this delay is above a minute"),
            ("time,rate_mbit\n0,5\n1e30,6\n", "3: this is more than a year after the first row"),
            ("DATA; 1; 2\n", "1: rows of cake-autorate's log without their names"),
            ("time,loss\n0,5\n1,6\n", "2: more than all packets are lost"),
            ("a,b\n1,2\n", "1: no column is a time"),
            (
                "5\n4\n",
                "2: 4 ms is before the line above: times may not fall (one number of milliseconds per line; if",
            ),
            (
                "site_name,timestamp_start,target,packet_loss,ping_avg\nOS,2023-09-14 15:12:00,a,0,1\n\
                 OS,2023-09-14 15:12:01,b,0,1\n",
                "3: target is `b`, and before it was `a`: these are two paths (write the rows of one of them into",
            ),
            (
                "site_name,timestamp_start,download,upload\nOS,2023-09-14 15:12:00,1,1\n",
                "1: several columns are rates (say which: `column = \"NAME\"`, of download, upload",
            ),
            (
                "site_name,timestamp,pop_ping_latency,ping_drop\nOS,2023-09-14 15:12:00,1,101\n\
                 OS,2023-09-14 15:12:01,1,0\n",
                "2: more than all packets are lost",
            ),
            (
                "site_name,timestamp,pop_ping_latency,ping_drop\nOS,2023-09-14 15:12:00,1,0\n\
                 OS,2023-09-14 15:11:00,1,0\n",
                "3: its time is not after that of the row before",
            ),
            ("time,b\n1,2\n", "1: no column is a rate, a delay or a loss"),
            ("time,rate_mbit\nyesterday,2\n", "2: `yesterday` is no time"),
            ("time,rate_mbit\n0,1e300\n1,1\n", "2: this rate is above 1 Tbit/s"),
        ] {
            let wrong = mean(text).expect_err(text);
            assert!(wrong.contains(expected), "{text}: {wrong}");
        }
    }

    #[test]
    fn delays_of_leoreplayer() {
        let found = delays("# of a trace\n24\n18\n\n18.5\n").map(|steps| Trace::nothing().with_delays(steps));
        let trace = found.expect("delays").expect("a trace");
        assert_eq!(trace.mean_delay().map(|mean| mean.0), Some(60_500_000 / 3));
        let wrong = |text: &str| delays(text).map_err(|wrong| (wrong.line, wrong.why)).expect_err(text);
        assert_eq!(wrong("24\nx\n"), (2, "`x` is no delay".into()));
        assert_eq!(wrong("24\n-1\n"), (2, "`-1` is no delay".into()));
        assert_eq!(wrong("24\n18 3\n"), (2, "`18 3` is no delay".into()));
        assert_eq!(wrong("60001\n"), (1, "this delay is above a minute".into()));
        assert_eq!(wrong("nan\n"), (1, "`nan` is no delay".into()));
        assert_eq!(wrong(" \n# nothing\n"), (1, "it is empty".into()));
        let many = "1\n".repeat(MAX_ROWS + 1);
        assert_eq!(wrong(&many), (MAX_ROWS + 1, format!("more than {MAX_ROWS} rows")));
    }

    #[test]
    fn a_table_of_wetlinks_has_what_is_asked_for() {
        let dish = "site_name,timestamp,uplink,downlink,pop_ping_latency,ping_drop\n\
                    OS,2023-09-14T15:12:00,1,20,30,0\nOS,2023-09-14T15:12:01,1,10,30,25\n";
        let plain = read(dish, &Taken::default()).expect("a trace");
        assert_eq!((plain.has_rates(), plain.has_delays(), plain.has_losses()), (false, true, true));
        let used = Taken { column: Some("downlink".into()), ..Taken::default() };
        assert_eq!(read(dish, &used).expect("a trace").mean_rate(), Some(15_000_000));
        let iperf = "site_name,timestamp_start,server,download,upload\n\
                     OS,2023-09-14T15:12:00,a,200000000,1\nOS,2023-09-14T15:12:01,a,100000000,3\n";
        let up = Taken { column: Some("upload".into()), ..Taken::default() };
        assert_eq!(read(iperf, &up).expect("a trace").mean_rate(), Some(2));
    }

    /// Rows are bounded in every format.
    #[test]
    fn huge_recordings_are_refused() {
        let rows = |separator: &str| (0..=MAX_ROWS).map(|n| format!("{n}{separator}1\n")).collect::<String>();
        for (text, line) in
            [(rows(" "), MAX_ROWS + 1), (format!("time,rate_mbit\n{}", rows(",")), MAX_ROWS + 2)]
        {
            let wrong = read(&text, &Taken::default()).map(drop).expect_err("too many rows");
            assert_eq!((wrong.line, wrong.why), (line, "more than 1000000 rows".to_owned()));
        }
    }
}
