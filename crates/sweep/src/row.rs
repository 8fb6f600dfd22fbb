//! The rows of a sweep: one for each run and figure, and the files that hold them.

use crate::axis::{number_of, one_unit};
use crate::plan::SweepCase;
use csv::StringRecord;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::error::Error;
use std::fmt;
use tidegate_measure::experiment::{NoSuchFigure, RunRecord, figure, figures};
use tidegate_scenario::settings::Setting;

/// The columns before those of the axes.
pub const KEYS: [&str; 8] = ["sweep", "runs", "run", "case", "policy", "load", "repeat", "seed"];
/// And those behind them.
pub const FIGURE: [&str; 3] = ["figure", "value", "unit"];

/// The most figures of a run, and columns of a file.
const MAX_FIGURES: usize = 10_000;

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
    /// Its value; `None`: it has none in this run (no reply came, a transfer did not end or converge).
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

/// The figures of a run: those named, or all it has. One that has no value (no reply came) is a row without
/// it; of one that the run does not have there is no row.
pub fn figures_of(run: &RunRecord, wanted: &[String]) -> Vec<FigureRow> {
    let names = if wanted.is_empty() { figures(run) } else { wanted.to_vec() };
    let row = |name: String| match figure(run, &name, run.window) {
        Ok(found) => Some(FigureRow { name, value: Some(found.number), unit: found.unit.to_owned() }),
        Err(NoSuchFigure::Nothing { .. }) => Some(FigureRow { name, value: None, unit: String::new() }),
        Err(NoSuchFigure::Unknown { .. }) => None,
    };
    names.into_iter().filter_map(row).collect()
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
    let values = |at: usize| cases.iter().map(move |case| case.settings[at].value.as_str());
    (0..axes).map(|at| one_unit(values(at))).collect()
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

impl SweepRun {
    /// Adds a figure that a row has of this run; the error is in words.
    fn add(&mut self, row: &SweepRun, figure: FigureRow) -> Result<(), String> {
        let keys = |run: &SweepRun| (run.case, run.repeat, run.seed);
        let is_same = keys(self) == keys(row)
            && (&self.policy, &self.load) == (&row.policy, &row.load)
            && self.values == row.values;
        if !is_same {
            return Err(format!("run {} is two different ones", row.run));
        }
        let written = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        match self.figures.iter().find(|known| known.name == figure.name) {
            Some(known) if *known == figure => Ok(()),
            Some(known) => Err(format!(
                "{} of run {} has two values, {} and {}",
                figure.name,
                row.run,
                written(known.value),
                written(figure.value)
            )),
            None if self.figures.len() >= MAX_FIGURES => {
                Err(format!("run {} has more than {MAX_FIGURES} figures", row.run))
            }
            None => {
                self.figures.push(figure);
                Ok(())
            }
        }
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
        if columns.len() > MAX_FIGURES {
            return Err(BadRows(format!("these are {} columns; {MAX_FIGURES} are the most", columns.len())));
        }
        if !has(0, &KEYS) || !has(begin, &FIGURE) || columns.len() < begin + FIGURE.len() {
            let expected = format!("{}, …, {}", KEYS.join(", "), FIGURE.join(", "));
            return Err(BadRows(format!("these are no rows of a sweep: the columns are {expected}")));
        }
        for record in reader.records() {
            let record = record.map_err(unreadable)?;
            let line = record.position().map_or(0, csv::Position::line);
            self.take_row(&record, &columns, &axes).map_err(|why| BadRows(format!("line {line}: {why}")))?;
        }
        Ok(())
    }

    /// Takes in a row; the error is in words.
    fn take_row(&mut self, row: &StringRecord, columns: &[String], axes: &[String]) -> Result<(), String> {
        let field = |at: usize| row.get(at).unwrap_or_default();
        let number = |at: usize| -> Result<u64, String> {
            field(at).parse().map_err(|_| format!("`{}` is no {}", field(at), columns[at]))
        };
        let narrow = |at: usize| -> Result<u32, String> {
            u32::try_from(number(at)?).map_err(|_| format!("`{}` is no {}", field(at), columns[at]))
        };
        let runs = number(1)?;
        if self.runs.is_empty() {
            self.head = SweepHead { id: field(0).to_owned(), runs, axes: axes.to_vec() };
        } else if self.head.id != field(0) {
            return Err(format!(
                "these are rows of sweep {}, the ones before of {}: another scenario, other options, or another \
                version of tidegate",
                field(0),
                self.head.id
            ));
        } else if (self.head.runs, self.head.axes.as_slice()) != (runs, axes) {
            return Err(format!(
                "sweep {} has {} runs of {} parameters before, and {runs} of {} here: a file was changed",
                self.head.id,
                self.head.runs,
                self.head.axes.len(),
                axes.len()
            ));
        }
        let begin = KEYS.len() + axes.len();
        let value = match field(begin + 1) {
            "" => None,
            text => {
                let value: Option<f64> = text.parse().ok().filter(|value: &f64| value.is_finite());
                Some(value.ok_or_else(|| format!("`{text}` is no value"))?)
            }
        };
        let figure = FigureRow { name: field(begin).to_owned(), value, unit: field(begin + 2).to_owned() };
        let run = number(2)?;
        if run >= runs {
            return Err(format!("run {run} is none of {runs}"));
        }
        let of = SweepRun {
            run,
            case: narrow(3)?,
            policy: field(4).to_owned(),
            load: field(5).to_owned(),
            repeat: narrow(6)?,
            seed: number(7)?,
            values: (KEYS.len()..begin).map(|at| field(at).to_owned()).collect(),
            figures: Vec::new(),
        };
        match self.runs.entry(run) {
            Entry::Vacant(place) => {
                place.insert(SweepRun { figures: vec![figure], ..of });
                Ok(())
            }
            Entry::Occupied(known) => known.into_mut().add(&of, figure),
        }
    }

    /// How many runs of the whole sweep are not there.
    #[must_use]
    pub fn missing(&self) -> u64 {
        self.head.runs.saturating_sub(self.runs.len() as u64)
    }

    /// All of it as CSV, by run.
    #[must_use]
    pub fn csv(&self) -> String {
        let values = |at: usize| self.runs.values().map(move |run| run.values[at].as_str());
        let numeric: Vec<Option<&'static str>> =
            (0..self.head.axes.len()).map(|at| one_unit(values(at))).collect();
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
        let far = take(&file(&[run(0, Some(0.1))]).replace("ab,3,0,", "ab,3,7,"));
        assert_eq!(far, Err("line 2: run 7 is none of 3".into()));
        let endless = take(&file(&[run(1, Some(0.2))]).replace("0.2,s", "inf,s"));
        assert_eq!(endless, Err("line 2: `inf` is no value".into()));
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
