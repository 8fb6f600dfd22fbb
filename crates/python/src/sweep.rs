//! `sweep`, in one process or in parts, and what its rows say.

use crate::failure::Failure;
use crate::input::{Confined, Given};
use crate::scenario::Cases;
use crate::watch::{Watch, watched};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use tidegate_scenario::model::Scenario;
use tidegate_sessions::simulated::ScenarioFiles;
use tidegate_sessions::sweep::{PreparedSweep, SweepJob, SweepWatch};
use tidegate_sweep::{
    BadSweep, FIGURE, KEYS, Method, SweepChoice, SweepFile, SweepQuery, SweepTable, summary_json,
};

/// What is varied, and of what.
#[derive(Clone, Debug, FromPyObject)]
pub(crate) struct Sweep {
    #[pyo3(item)]
    scenario: Given,
    /// Parameters, each `PATH=VALUES`.
    #[pyo3(item)]
    set: Vec<String>,
    #[pyo3(item)]
    paired: bool,
    #[pyo3(item)]
    latin: Option<u32>,
    #[pyo3(item)]
    only: Vec<String>,
    #[pyo3(item)]
    skip: Vec<String>,
    #[pyo3(item)]
    figures: Vec<String>,
    #[pyo3(item)]
    cases: Cases,
    #[pyo3(item)]
    sandbox: Confined,
}

/// The rows of a sweep, and how many of its runs they are of.
type Part = (String, u64);

impl Sweep {
    fn method(&self) -> Option<Method> {
        match self.latin {
            Some(samples) => Some(Method::Latin(samples)),
            None => self.paired.then_some(Method::Paired),
        }
    }

    /// Reads the cases, and does something with them; `shard`: the part, from 1, and how many there are.
    fn prepared<T>(
        &self,
        shard: (u64, u64),
        workers: Option<usize>,
        what: impl FnOnce(&PreparedSweep<'_>, usize) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        if shard.0 == 0 || shard.0 > shard.1 || shard.1 > 1_000_000 {
            return Err(Failure::input(
                "a shard is (i, n): the part, from 1, and how many there are, such as (1, 4)",
            ));
        }
        let (path, text) = (self.scenario.path.as_path(), self.scenario.scenario()?);
        let choice = SweepChoice {
            set: self.set.clone(),
            method: self.method(),
            only: self.only.clone(),
            skip: self.skip.clone(),
            figures: self.figures.clone(),
            cases: self.cases.choice()?,
        };
        let file = SweepFile::planned(&text, choice).map_err(|wrong| match wrong {
            BadSweep::File(wrong) => Failure::scenario(&wrong, path, &text),
            BadSweep::Setting { setting, why } => Failure::input(format!("set {setting}: {why}")),
        })?;
        let cases = file.plan.cases().map_err(Failure::input)?;
        let narrow = |scenario: &mut Scenario| file.narrow(scenario);
        let files = ScenarioFiles { sandbox: self.sandbox.options()? };
        let job = SweepJob {
            path,
            text: &text,
            cases: &cases,
            narrow: &narrow,
            figures: &file.figures,
            shard,
            workers,
        };
        what(&PreparedSweep::new(job, &files)?, cases.len())
    }
}

/// The id of a sweep, how many runs and cases it has, and its parameters.
#[pyfunction]
pub(crate) fn plan(py: Python<'_>, sweep: Sweep) -> PyResult<(String, u64, usize, Vec<String>)> {
    watched(py, None, move |_| {
        sweep.prepared((1, 1), None, |prepared, cases| {
            let head = prepared.head();
            Ok((head.id.clone(), head.runs, cases, head.axes.clone()))
        })
    })
}

/// The rows of a sweep's part, as `tidegate sweep -o FILE.csv` writes them.
#[pyfunction]
pub(crate) fn sweep(
    py: Python<'_>,
    sweep: Sweep,
    shard: (u64, u64),
    workers: Option<usize>,
    journal: Option<PathBuf>,
    report: Option<Bound<'_, PyAny>>,
) -> PyResult<Part> {
    watched(py, report.as_ref(), move |watch: &Watch| {
        sweep.prepared(shard, workers, |prepared, _| {
            let of_runs = SweepWatch {
                stop: &watch.stop,
                begin: &|done, total| {
                    watch.done.store(done, Ordering::Relaxed);
                    watch.total.store(total, Ordering::Relaxed);
                },
                done: &|| watch.step(),
            };
            let table = prepared.carry_out(journal.as_deref(), &of_runs)?;
            Ok((table.csv(), table.runs.len() as u64))
        })
    })
}

/// The rows of parts, each run once, how many runs are missing, and the id of the sweep.
#[pyfunction]
pub(crate) fn merge(py: Python<'_>, parts: Vec<String>) -> PyResult<(String, u64, String)> {
    watched(py, None, move |_| {
        let table = table(&parts)?;
        Ok((table.csv(), table.missing(), table.head.id))
    })
}

fn table(parts: &[String]) -> Result<SweepTable, Failure> {
    let mut table = SweepTable::default();
    for part in parts {
        table.take(part).map_err(Failure::input)?;
    }
    if table.runs.is_empty() { Err(Failure::input("there are no rows")) } else { Ok(table) }
}

/// What rows say, as `tidegate results --json` prints it.
#[pyfunction]
pub(crate) fn summary(
    py: Python<'_>,
    rows: String,
    figures: Vec<String>,
    only: Vec<(String, String)>,
    by: Vec<String>,
    versus: Option<(String, String)>,
) -> PyResult<String> {
    watched(py, None, move |_| {
        let table = table(&[rows])?;
        let summary = table
            .summary(&SweepQuery { only, figures, by, versus, ..SweepQuery::default() })
            .map_err(Failure::input)?;
        Ok(summary_json(&table, &summary))
    })
}

/// How a column's fields are read.
#[derive(Clone, Copy)]
enum Column {
    Text,
    Count,
    /// A number, or nothing.
    Number,
}

/// The columns of rows by name: whole numbers, numbers or `None`, and texts.
#[pyfunction]
pub(crate) fn columns<'py>(py: Python<'py>, rows: &str) -> PyResult<Bound<'py, PyDict>> {
    let wrong = |why: csv::Error| Failure::input(format!("this is no CSV: {why}")).into_exception(py);
    let mut reader = csv::ReaderBuilder::new().from_reader(rows.as_bytes());
    let names: Vec<String> = reader.headers().map_err(wrong)?.iter().map(str::to_owned).collect();
    let figure =
        names.iter().skip(KEYS.len()).position(|name| *name == FIGURE[0]).map_or(0, |at| at + KEYS.len());
    let kind = |at: usize| match names[at].as_str() {
        "runs" | "run" | "case" | "repeat" | "seed" if at < KEYS.len() => Column::Count,
        // The value, and what is in units behind the figure's columns.
        _ if at == figure + 1 || at >= figure + FIGURE.len() => Column::Number,
        _ => Column::Text,
    };
    let kinds: Vec<Column> = (0..names.len()).map(kind).collect();
    let lists: Vec<Bound<'py, PyList>> = names.iter().map(|_| PyList::empty(py)).collect();
    for record in reader.records() {
        let record = record.map_err(wrong)?;
        for ((field, kind), list) in record.iter().zip(&kinds).zip(&lists) {
            match kind {
                Column::Text => list.append(field)?,
                Column::Count => list.append(field.parse::<u64>().ok())?,
                Column::Number => list.append(field.parse::<f64>().ok())?,
            }
        }
    }
    let columns = PyDict::new(py);
    for (name, list) in names.iter().zip(&lists) {
        columns.set_item(name, list)?;
    }
    Ok(columns)
}
