//! The rows of a sweep: one for each run and figure, and the files that hold them.

use crate::axis::number_of;
use crate::plan::SweepCase;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use tidegate_measure::experiment::{RunRecord, figure, figures};
use tidegate_scenario::settings::Setting;

/// The columns before those of the axes.
pub const KEYS: [&str; 8] = ["sweep", "runs", "run", "case", "policy", "load", "repeat", "seed"];
/// And those behind them.
pub const FIGURE: [&str; 3] = ["figure", "value", "unit"];

/// What a file's rows belong to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepHead {
    /// What identifies the sweep: a digest of everything its results follow from.
    pub id: String,
    /// How many runs the whole sweep has, all shards together.
    pub runs: u64,
    /// The paths of what is varied.
    pub axes: Vec<String>,
}

/// One run of a sweep, and its figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepRun {
    /// Its number in the whole sweep, from 0: by case, then policy and load in the scenario's order, then
    /// repeat.
    pub run: u64,
    /// The number of its case.
    pub case: u32,
    /// The name of its policy.
    pub policy: String,
    /// The name of its load.
    pub load: String,
    /// Which repeat, from 0. The same repeat of all cases has the same seed, and so the same random numbers.
    pub repeat: u32,
    /// Its seed.
    pub seed: u64,
    /// A value for each axis.
    pub values: Vec<String>,
    /// Its figures.
    pub figures: Vec<FigureRow>,
}

/// A figure of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FigureRow {
    /// Its name: `ping.p95`.
    pub name: String,
    /// Its value; `None`: it has none in this run (no reply came, a transfer did not end).
    pub value: Option<f64>,
    /// `s`, `bit/s`, `bytes`, or nothing.
    pub unit: String,
}

/// Why a file holds no rows of a sweep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadRows(pub String);

impl fmt::Display for BadRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for BadRows {}

/// The figures of a run: those named, or all it has. A name that another run has and this one does not is a
/// row without a value.
pub fn figures_of(run: &RunRecord, wanted: &[String]) -> Vec<FigureRow> {
    let names = if wanted.is_empty() { figures(run) } else { wanted.to_vec() };
    let row = |name: String| match figure(run, &name, run.window) {
        Ok(found) => FigureRow { name, value: Some(found.number), unit: found.unit.to_owned() },
        Err(_) => FigureRow { name, value: None, unit: String::new() },
    };
    names.into_iter().map(row).collect()
}

impl SweepHead {
    /// A digest of everything that results follow from, each part with its length before it: 64 bits are
    /// enough to tell the sweeps of one person apart.
    #[must_use]
    pub fn id_of<'p>(parts: impl IntoIterator<Item = &'p str>) -> String {
        let mut digest = Sha256::new();
        for part in parts {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part.as_bytes());
        }
        digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }

    /// The line that names the columns. An axis of quantities has a second column, in its basic unit.
    #[must_use]
    pub fn columns(&self, numeric: &[Option<&'static str>]) -> Vec<String> {
        let in_units = self.axes.iter().zip(numeric).filter_map(|(axis, unit)| {
            let unit = (*unit)?;
            Some(if unit.is_empty() { format!("{axis} (number)") } else { format!("{axis} ({unit})") })
        });
        KEYS.iter()
            .map(|key| (*key).to_owned())
            .chain(self.axes.iter().cloned())
            .chain(FIGURE.iter().map(|key| (*key).to_owned()))
            .chain(in_units)
            .collect()
    }
}

/// The basic unit of each axis all of whose values are quantities of one kind.
#[must_use]
pub fn numeric(cases: &[SweepCase], axes: usize) -> Vec<Option<&'static str>> {
    let unit = |at: usize| {
        let mut units = cases.iter().map(|case| number_of(&case.settings[at].value).map(|(_, unit)| unit));
        let first = units.next()??;
        units.all(|unit| unit == Some(first)).then_some(first)
    };
    (0..axes).map(unit).collect()
}

impl SweepRun {
    /// A run of a case, without figures.
    #[must_use]
    pub fn new(run: u64, case: u32, settings: &[Setting]) -> SweepRun {
        let values = settings.iter().map(|one| one.value.clone()).collect();
        SweepRun { run, case, values, ..SweepRun::default() }
    }

    /// Its rows as CSV, without the line of the columns.
    #[must_use]
    pub fn csv(&self, head: &SweepHead, numeric: &[Option<&'static str>]) -> String {
        let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
        let runs = head.runs.to_string();
        let [run, case, repeat, seed] =
            [self.run.to_string(), self.case.to_string(), self.repeat.to_string(), self.seed.to_string()];
        let keys = [&head.id, &runs, &run, &case, &self.policy, &self.load, &repeat, &seed];
        let in_units: Vec<String> = self
            .values
            .iter()
            .zip(numeric)
            .filter(|(_, unit)| unit.is_some())
            .map(|(value, _)| number_of(value).map_or_else(String::new, |(number, _)| number.to_string()))
            .collect();
        for figure in &self.figures {
            let value = figure.value.map_or_else(String::new, |value| value.to_string());
            let fields = keys.iter().map(|key| key.as_str()).chain(self.values.iter().map(String::as_str));
            let fields = fields.chain([figure.name.as_str(), value.as_str(), figure.unit.as_str()]);
            // A vector takes everything.
            let _ = writer.write_record(fields.chain(in_units.iter().map(String::as_str)));
        }
        writer.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
    }
}

/// The line of the columns as CSV.
#[must_use]
pub fn csv_head(columns: &[String]) -> String {
    let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
    let _ = writer.write_record(columns);
    writer.into_inner().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

/// The runs of files of one sweep, by number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepTable {
    /// What they belong to.
    pub head: SweepHead,
    /// Each run once, by its number.
    pub runs: BTreeMap<u64, SweepRun>,
}

impl SweepTable {
    /// Takes in the rows of a CSV file.
    ///
    /// # Errors
    /// Columns that are no sweep's, a row that cannot be read, rows of another sweep, or two values for one
    /// figure of a run.
    pub fn take(&mut self, text: &str) -> Result<(), BadRows> {
        let mut reader = csv::ReaderBuilder::new().from_reader(text.as_bytes());
        let columns: Vec<String> = reader.headers().map_err(unreadable)?.iter().map(str::to_owned).collect();
        let axes = columns.iter().skip(KEYS.len()).take_while(|name| *name != FIGURE[0]).cloned();
        let axes: Vec<String> = axes.collect();
        let begin = KEYS.len() + axes.len();
        let has = |at: usize, names: &[&str]| names.iter().zip(columns.iter().skip(at)).all(|(a, b)| a == b);
        if !has(0, &KEYS) || !has(begin, &FIGURE) || columns.len() < begin + FIGURE.len() {
            let expected = format!("{}, …, {}", KEYS.join(", "), FIGURE.join(", "));
            return Err(BadRows(format!("these are no rows of a sweep: the columns are {expected}")));
        }
        for record in reader.records() {
            let record = record.map_err(unreadable)?;
            let field = |at: usize| record.get(at).unwrap_or_default();
            let line = record.position().map_or(0, csv::Position::line);
            let number = |at: usize| -> Result<u64, BadRows> {
                let wrong = |_| BadRows(format!("line {line}: `{}` is no {}", field(at), columns[at]));
                field(at).parse().map_err(wrong)
            };
            let head = SweepHead { id: field(0).to_owned(), runs: number(1)?, axes: axes.clone() };
            if self.runs.is_empty() {
                self.head = head;
            } else if self.head != head {
                return Err(BadRows(format!(
                    "line {line}: these are rows of sweep {}, the ones before of {}: another scenario, other \
                    axes, or another version of tidegate",
                    head.id, self.head.id
                )));
            }
            let narrow = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
            let value = match field(begin + 1) {
                "" => None,
                text => {
                    Some(text.parse().map_err(|_| BadRows(format!("line {line}: `{text}` is no value")))?)
                }
            };
            let row = FigureRow { name: field(begin).to_owned(), value, unit: field(begin + 2).to_owned() };
            let of = SweepRun {
                run: number(2)?,
                case: narrow(number(3)?),
                policy: field(4).to_owned(),
                load: field(5).to_owned(),
                repeat: narrow(number(6)?),
                seed: number(7)?,
                values: (KEYS.len()..begin).map(|at| field(at).to_owned()).collect(),
                figures: Vec::new(),
            };
            let known = self.runs.entry(of.run).or_insert_with(|| of.clone());
            let figures = std::mem::take(&mut known.figures);
            let same = *known == of;
            known.figures = figures;
            match known.figures.iter().find(|figure| figure.name == row.name) {
                _ if !same => {
                    return Err(BadRows(format!("line {line}: run {} is two different ones", of.run)));
                }
                None => known.figures.push(row),
                Some(figure) if *figure == row => {}
                Some(figure) => {
                    return Err(BadRows(format!(
                        "line {line}: {} of run {} has two values, {} and {}",
                        row.name,
                        of.run,
                        figure.value.map_or_else(String::new, |value| value.to_string()),
                        field(begin + 1)
                    )));
                }
            }
        }
        Ok(())
    }

    /// How many runs of the whole sweep are not there.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.head.runs.saturating_sub(self.runs.len() as u64)
    }

    /// All of it as CSV, by run.
    #[must_use]
    pub fn csv(&self) -> String {
        let numeric: Vec<Option<&'static str>> = (0..self.head.axes.len())
            .map(|at| {
                let mut units =
                    self.runs.values().map(|run| number_of(&run.values[at]).map(|(_, unit)| unit));
                let first = units.next()??;
                units.all(|unit| unit == Some(first)).then_some(first)
            })
            .collect();
        let mut out = csv_head(&self.head.columns(&numeric));
        self.runs.values().for_each(|run| out += &run.csv(&self.head, &numeric));
        out
    }
}

fn unreadable(error: csv::Error) -> BadRows {
    BadRows(format!("this is no CSV: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(number: u64, value: Option<f64>) -> SweepRun {
        SweepRun {
            run: number,
            case: number as u32,
            policy: "fair, square".into(),
            load: "up".into(),
            seed: 1,
            values: vec![format!("{}ms", number + 1), "cubic".into()],
            figures: vec![FigureRow { name: "ping.p95".into(), value, unit: "s".into() }],
            ..SweepRun::default()
        }
    }

    fn head() -> SweepHead {
        SweepHead { id: "ab".into(), runs: 3, axes: vec!["home.rtt".into(), "hosts.a.tcp".into()] }
    }

    fn file(runs: &[SweepRun]) -> String {
        let table =
            SweepTable { head: head(), runs: runs.iter().map(|run| (run.run, run.clone())).collect() };
        table.csv()
    }

    #[test]
    fn rows_are_written_and_read_again() {
        let text = file(&[run(0, Some(0.1)), run(1, None)]);
        let expected = "\
sweep,runs,run,case,policy,load,repeat,seed,home.rtt,hosts.a.tcp,figure,value,unit,home.rtt (s)
ab,3,0,0,\"fair, square\",up,0,1,1ms,cubic,ping.p95,0.1,s,0.001
ab,3,1,1,\"fair, square\",up,0,1,2ms,cubic,ping.p95,,s,0.002
";
        assert_eq!(text, expected);
        let mut table = SweepTable::default();
        table.take(&text).unwrap_or_else(|wrong| panic!("{wrong}"));
        assert_eq!((table.csv(), table.missing()), (text, 1));
    }

    #[test]
    fn files_of_shards_become_one_and_nothing_is_doubled() {
        let mut table = SweepTable::default();
        let mut take = |text: &str| table.take(text).map_err(|wrong| wrong.0);
        assert_eq!(take(&file(&[run(2, Some(0.3)), run(0, Some(0.1))])), Ok(()));
        assert_eq!(take(&file(&[run(1, Some(0.2)), run(0, Some(0.1))])), Ok(()));
        let other = take(&file(&[run(1, Some(0.25))]));
        assert_eq!(other, Err("line 2: ping.p95 of run 1 has two values, 0.2 and 0.25".into()));
        let foreign = file(&[run(1, Some(0.2))]).replace("ab,", "cd,");
        assert!(take(&foreign).is_err_and(|wrong| wrong.contains("rows of sweep cd, the ones before of ab")));
        let changed = file(&[run(1, Some(0.2))]).replace("2ms,cubic", "9ms,cubic");
        assert_eq!(take(&changed), Err("line 2: run 1 is two different ones".into()));
        assert!(take("a,b\n1,2\n").is_err_and(|wrong| wrong.contains("no rows of a sweep")));
        assert_eq!(table.csv(), file(&[run(0, Some(0.1)), run(1, Some(0.2)), run(2, Some(0.3))]));
        assert_eq!(table.missing(), 0);
    }

    #[test]
    fn an_id_follows_from_its_parts() {
        assert_eq!(SweepHead::id_of(["ab", "c"]), SweepHead::id_of(["ab", "c"]));
        assert_ne!(SweepHead::id_of(["ab", "c"]), SweepHead::id_of(["a", "bc"]));
    }
}
