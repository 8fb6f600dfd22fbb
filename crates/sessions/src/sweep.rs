//! A sweep: every case of a plan simulated on all processors, each run written down as it ends, so that a
//! sweep that was stopped goes on where it was.
//!
//! ```text
//! text + settings ─▶ scenario, prepared (kept while runs of the case are left) ─▶ run ─▶ journal ─▶ table
//! ```
//! The rows are the same to the byte however many processors, shards or interruptions there are.

use crate::error::Error;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tidegate_measure::experiment::figures;
use tidegate_scenario::model::{PolicySource, Scenario, TimelineEvent};
use tidegate_scenario::prepare::{Prepared, prepare};
use tidegate_scenario::run::{CaseRun, RunError, RunWatch};
use tidegate_scenario::settings::set;
use tidegate_scenario::tables::Diagnostic;
use tidegate_scenario::{Files, can_be_simulated, parse, simulate_case};
use tidegate_sweep::{SweepCase, SweepHead, SweepRun, SweepTable, csv_head, figures_of, numeric};
use tidegate_sys::output_file;

/// The first line of a journal, with the sweep's id behind it.
const JOURNAL: &str = "# journal of sweep ";
/// What ends the rows of a run, with its number behind it: rows without it were cut off.
const DONE: &str = "# run ";
/// The most runs of one sweep, and of one part of it, whose rows are kept in memory.
pub const MAX_RUNS: u64 = 100_000_000;
const MAX_PART: u64 = 1_000_000;
/// Runs of which a preview has a row.
const MAX_PREVIEW: usize = 20_000;
/// The most bytes of a journal.
const MAX_JOURNAL: u64 = 2 << 30;
/// Cases whose text is read before anything runs; of more, the first and the last.
pub(crate) const READ_FIRST: usize = 10_000;

/// What a sweep runs.
#[derive(Clone, Copy)]
pub struct SweepJob<'j> {
    /// The scenario's file, for messages and files beside it.
    pub path: &'j Path,
    /// Its text.
    pub text: &'j str,
    /// The cases.
    pub cases: &'j [SweepCase],
    /// What replaces the scenario's own values.
    pub narrow: &'j (dyn Fn(&mut Scenario) -> Result<(), String> + Sync),
    /// What is to be kept of each run; empty: all figures.
    pub figures: &'j [String],
    /// Which part of the runs: `(1, 4)` is the first of four.
    pub shard: (u64, u64),
    /// How many run at once; `None`: as many as there are processors.
    pub workers: Option<usize>,
}

/// How a sweep is watched and stopped.
#[derive(Clone, Copy)]
pub struct SweepWatch<'w> {
    /// Once it is set the runs under way end, and none follows.
    pub stop: &'w AtomicBool,
    /// Hears before the first run how many are done already, and how many there are in all.
    pub begin: &'w (dyn Fn(u64, u64) + Sync),
    /// Hears that one more is done.
    pub done: &'w (dyn Fn() + Sync),
}

/// A case as it is simulated.
type Ready = Arc<(Scenario, Prepared)>;

/// Cases that are simulated now: a place for each, so that the first run of a case makes it ready for all.
type Kept = Mutex<VecDeque<(usize, Arc<OnceLock<Result<Ready, String>>>)>>;

/// A sweep whose cases were read.
pub struct PreparedSweep<'j> {
    job: SweepJob<'j>,
    files: &'j (dyn Files + Sync),
    head: SweepHead,
    numeric: Vec<Option<&'static str>>,
    /// Policy and load of each run of a case, and the scenario's repeats and seed.
    pairs: Vec<(usize, usize)>,
    repeats: u32,
    kept: Kept,
}

impl<'j> PreparedSweep<'j> {
    /// Reads the cases, as far as that is quick; the first is prepared.
    ///
    /// # Errors
    /// Settings that lead nowhere, or a text that is no scenario, with the case and its place; a policy that
    /// a machine refuses.
    pub fn new(job: SweepJob<'j>, files: &'j (dyn Files + Sync)) -> Result<PreparedSweep<'j>, Error> {
        let last = job.cases.len().saturating_sub(1);
        let is_read = |at: &usize| *at < READ_FIRST || *at == last;
        let mut same: Option<(Vec<(usize, usize)>, u32)> = None;
        for case in (0..job.cases.len()).filter(is_read) {
            let scenario = read(&job, files, case).map_err(Error::Invalid)?;
            can_be_simulated(&scenario).map_err(|wrong| Error::Invalid(shown(&scenario, &wrong)))?;
            let this = (scenario.cases, scenario.repeats);
            if *same.get_or_insert_with(|| this.clone()) != this {
                let text =
                    "a setting changes which policies, loads and repeats there are; make one sweep of each";
                return Err(Error::Invalid(format!("{}{text}", of_case(&job.cases[case]))));
            }
        }
        let first = ready(&job, files, 0).map_err(Error::Invalid)?;
        let (scenario, prepared) = &*first;
        let (pairs, repeats) = same.unwrap_or_default();
        let runs = job.cases.len() as u64 * pairs.len() as u64 * u64::from(repeats);
        if runs > MAX_RUNS {
            return Err(Error::Invalid(format!(
                "these are {runs} runs; {MAX_RUNS} are the most of one sweep"
            )));
        }
        let part = runs / job.shard.1.max(1);
        if part > MAX_PART {
            return Err(Error::Invalid(format!(
                "these are {part} runs at once; {MAX_PART} are the most: run the sweep in parts (--shard)"
            )));
        }
        let axes: Vec<String> = job
            .cases
            .first()
            .map_or(&[][..], |case| &case.settings)
            .iter()
            .map(|one| one.path.clone())
            .collect();
        let mut parts: Vec<String> = vec![env!("CARGO_PKG_VERSION").to_owned(), job.text.to_owned()];
        parts.push(format!(
            "{:?} {} {} {} {:?}",
            pairs, repeats, scenario.seed, scenario.duration.0, job.figures
        ));
        let settings = job.cases.iter().flat_map(|case| &case.settings);
        parts.extend(settings.map(|one| format!("{}={}", one.path, one.value)));
        // Scripts and recorded links are files of their own. What a script calls is known by what it does in
        // the first case.
        parts.extend(prepared.setups.iter().flatten().flat_map(|setup| setup.shown.clone()));
        parts.push(format!("{:?} {:?}", scenario.cables, scenario.at));
        parts.extend(scenario.policies.iter().map(|policy| format!("{:?} {:?}", policy.links, policy.at)));
        let unprepared = read(&job, files, 0).map_err(Error::Invalid)?;
        parts.extend(scripts(&unprepared).map(|path| files.text(path).unwrap_or_default()));
        let head = SweepHead { id: SweepHead::id_of(parts.iter().map(String::as_str)), runs, axes };
        let numeric = numeric(job.cases, head.axes.len());
        let kept = Mutex::new(VecDeque::from([(0, Arc::new(OnceLock::from(Ok(first.clone()))))]));
        Ok(PreparedSweep { job, files, head, numeric, pairs, repeats, kept })
    }

    /// What the rows belong to.
    #[must_use]
    pub fn head(&self) -> &SweepHead {
        &self.head
    }

    /// How many runs this shard has.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.numbers().count() as u64
    }

    /// The runs of this shard, by number.
    fn numbers(&self) -> impl Iterator<Item = u64> {
        let (part, of) = self.job.shard;
        (0..self.head.runs).filter(move |run| run % of == part - 1)
    }

    /// Runs what a journal does not have yet. `journal`: where runs are written down as they end; `None`:
    /// nowhere. After `stop` the table has what was done by then.
    ///
    /// # Errors
    /// A journal of another sweep, or one that cannot be written; a case that cannot be prepared.
    pub fn carry_out(&self, journal: Option<&Path>, watch: &SweepWatch<'_>) -> Result<SweepTable, Error> {
        let (file, mut table) = match journal {
            Some(path) => {
                let (file, table) = self.opened(path)?;
                (Some(file), table)
            }
            None => (None, SweepTable { head: self.head.clone(), runs: BTreeMap::new() }),
        };
        let total = self.runs();
        let left: Vec<u64> = self.numbers().filter(|run| !table.runs.contains_key(run)).collect();
        (watch.begin)(total - left.len() as u64, total);
        let outcome = Mutex::new(Outcome { journal: file, ..Outcome::default() });
        let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
        let work = || {
            while !watch.stop.load(Ordering::Relaxed) && !failed.load(Ordering::Relaxed) {
                let Some(run) = left.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                let run = self.run(*run, watch.stop).map_err(Error::Invalid);
                // Of a run that was stopped in its middle, nothing is kept.
                let Some(run) = run.transpose() else { break };
                let Ok(mut outcome) = outcome.lock() else { break };
                match run.and_then(|(run, known)| outcome.keep(run, &known, self, journal)) {
                    Ok(()) => (watch.done)(),
                    Err(error) => {
                        failed.store(true, Ordering::Relaxed);
                        outcome.error.get_or_insert(error);
                    }
                }
            }
        };
        let processors = || std::thread::available_parallelism().map_or(1, usize::from);
        let workers = self.job.workers.unwrap_or_else(processors).min(left.len()).max(1);
        std::thread::scope(|scope| {
            for _ in 1..workers {
                scope.spawn(work);
            }
            work();
        });
        let outcome = outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
        match outcome.error {
            Some(error) => Err(error),
            None => {
                table.runs.extend(outcome.done);
                Ok(table)
            }
        }
    }

    /// One run, and the names of all its figures; `None`: it was stopped.
    fn run(&self, run: u64, stop: &AtomicBool) -> Result<Option<(SweepRun, Vec<String>)>, String> {
        let repeats = u64::from(self.repeats);
        let (of_case, repeat) = (run / repeats, (run % repeats) as u32);
        let pairs = self.pairs.len() as u64;
        let (case, (policy, load)) = ((of_case / pairs) as usize, self.pairs[(of_case % pairs) as usize]);
        let ready = self.ready(case)?;
        let (scenario, prepared) = &*ready;
        let watch = RunWatch { stop, seconds: &|_| {}, observer: None };
        let record = simulate_case(scenario, prepared, CaseRun { policy, load, repeat }, &[], watch);
        let record = record.map_err(|error| match error {
            RunError::Scenario(wrong) => self.in_case(case, &shown(scenario, &wrong)),
            other => self.in_case(case, &other.to_string()),
        })?;
        if record.cut {
            return Ok(None);
        }
        let run = SweepRun {
            policy: scenario.policies[policy].name.clone(),
            load: scenario.loads[load].name.clone(),
            repeat,
            seed: scenario.seed.wrapping_add(u64::from(repeat)),
            figures: figures_of(&record, self.job.figures),
            ..SweepRun::new(run, case as u32, &self.job.cases[case].settings)
        };
        Ok(Some((run, figures(&record))))
    }

    /// All runs, none of them made: the first of each policy and load in the first case is simulated to
    /// know its figures, and all others have these. What a question to the table refuses here it refuses of
    /// the rows. `None`: it was stopped.
    ///
    /// # Errors
    /// A case that cannot be prepared.
    pub fn preview(&self, stop: &AtomicBool) -> Result<Option<SweepTable>, Error> {
        let (repeats, pairs) = (u64::from(self.repeats), self.pairs.len() as u64);
        let mut firsts = Vec::new();
        for pair in 0..pairs {
            let Some((run, _)) = self.run(pair * repeats, stop).map_err(Error::Invalid)? else {
                return Ok(None);
            };
            firsts.push(run);
        }
        let mut table = SweepTable { head: self.head.clone(), runs: BTreeMap::new() };
        for number in self.numbers().take(MAX_PREVIEW) {
            let (of_case, repeat) = (number / repeats, (number % repeats) as u32);
            let (case, first) = ((of_case / pairs) as usize, &firsts[(of_case % pairs) as usize]);
            let run = SweepRun {
                policy: first.policy.clone(),
                load: first.load.clone(),
                repeat,
                figures: first.figures.clone(),
                ..SweepRun::new(number, case as u32, &self.job.cases[case].settings)
            };
            table.runs.insert(number, run);
        }
        Ok(Some(table))
    }

    /// A case, made ready by the first run that needs it.
    fn ready(&self, case: usize) -> Result<Ready, String> {
        const MAX_KEPT: usize = 64;
        let place = {
            let Ok(mut kept) = self.kept.lock() else { return Err("a worker failed".into()) };
            match kept.iter().find(|(known, _)| *known == case) {
                Some((_, place)) => Arc::clone(place),
                None => {
                    if kept.len() >= MAX_KEPT {
                        kept.pop_front();
                    }
                    let place = Arc::new(OnceLock::new());
                    kept.push_back((case, Arc::clone(&place)));
                    place
                }
            }
        };
        place.get_or_init(|| ready(&self.job, self.files, case)).clone()
    }

    fn in_case(&self, case: usize, why: &str) -> String {
        format!("{}{why}", of_case(&self.job.cases[case]))
    }

    /// The journal, behind its last whole run, and what it has.
    fn opened(&self, path: &Path) -> Result<(File, SweepTable), Error> {
        let mut file = output_file::open_to_continue(path).map_err(|error| writing(path, error))?;
        let length = file.metadata().map_err(|error| writing(path, error))?.len();
        if length > MAX_JOURNAL {
            return Err(Error::Invalid(format!(
                "{} has more than {} MiB: run the sweep in parts (--shard)",
                path.display(),
                MAX_JOURNAL >> 20
            )));
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(|error| writing(path, error))?;
        let mut table = SweepTable { head: self.head.clone(), runs: BTreeMap::new() };
        let first = format!("{JOURNAL}{}\n", self.head.id);
        let Some(rest) = text.strip_prefix(&first) else {
            // One in which no run was written down belongs to no sweep yet.
            let is_begun = text.strip_prefix(JOURNAL).is_some_and(|rest| rest.trim_end().contains('\n'));
            let is_empty = first.starts_with(text.as_str()) || (text.starts_with(JOURNAL) && !is_begun);
            if is_empty {
                let written = file.set_len(0).and_then(|()| file.write_all(first.as_bytes()));
                written.map_err(|error| writing(path, error))?;
                return Ok((file, table));
            }
            return Err(Error::Invalid(format!(
                "{} is of another sweep: the scenario, its files, the options or tidegate changed since; delete it \
                to start again, or name another result",
                path.display()
            )));
        };
        let columns = csv_head(&self.head.columns(&self.numeric));
        let (mut whole, mut rows) = (0, columns);
        for block in blocks(rest) {
            let Some((text, run)) = block else { break };
            whole += text.len() + DONE.len() + run.len() + 1;
            rows += text;
        }
        table.take(&rows).map_err(|wrong| Error::Invalid(format!("{}: {wrong}", path.display())))?;
        let length = (first.len() + whole) as u64;
        let cut = file.set_len(length).and_then(|()| file.seek(SeekFrom::End(0)));
        cut.map_err(|error| writing(path, error))?;
        Ok((file, table))
    }
}

/// What a sweep has so far.
#[derive(Default)]
struct Outcome {
    journal: Option<File>,
    done: BTreeMap<u64, SweepRun>,
    /// Loads that do not have a figure that is asked for.
    lacking: BTreeMap<String, BTreeSet<String>>,
    /// The first that went wrong.
    error: Option<Error>,
}

impl Outcome {
    /// Writes a run down, and keeps it. A figure that no load has was misspelt.
    fn keep(
        &mut self,
        run: SweepRun,
        known: &[String],
        of: &PreparedSweep<'_>,
        journal: Option<&Path>,
    ) -> Result<(), Error> {
        let loads: BTreeSet<usize> = of.pairs.iter().map(|(_, load)| *load).collect();
        for name in of.job.figures.iter().filter(|name| run.figures.iter().all(|row| row.name != **name)) {
            let lacking = self.lacking.entry(name.clone()).or_default();
            lacking.insert(run.load.clone());
            if lacking.len() == loads.len() {
                let known = known.join(", ");
                return Err(Error::Invalid(format!("no figure is called `{name}`: there are {known}")));
            }
        }
        let block = format!("{}{DONE}{}\n", run.csv(&of.head, &of.numeric), run.run);
        self.done.insert(run.run, run);
        match (&mut self.journal, journal) {
            (Some(file), Some(path)) => {
                file.write_all(block.as_bytes()).map_err(|error| writing(path, error))
            }
            _ => Ok(()),
        }
    }
}

fn writing(path: &Path, error: io::Error) -> Error {
    Error::During { doing: format!("writing {}", path.display()), cause: Box::new(Error::Io(error)) }
}

/// The rows of each run of a journal with its number; `None`: the rest was cut off.
fn blocks(text: &str) -> impl Iterator<Item = Option<(&str, &str)>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let marker =
            if rest.starts_with(DONE) { Some(0) } else { rest.find(&format!("\n{DONE}")).map(|at| at + 1) };
        let Some(at) = marker else {
            rest = "";
            return Some(None);
        };
        let Some(end) = rest[at..].find('\n').map(|end| at + end) else {
            rest = "";
            return Some(None);
        };
        let block = (&rest[..at], &rest[at + DONE.len()..end]);
        rest = &rest[end + 1..];
        Some(Some(block))
    })
}

/// A case's scenario, read.
pub(crate) fn read(job: &SweepJob<'_>, files: &dyn Files, case: usize) -> Result<Scenario, String> {
    let case = &job.cases[case];
    let wrong = |why: String| format!("{}{why}", of_case(case));
    let text = set(job.text, &case.settings).map_err(|error| wrong(error.to_string()))?;
    let mut scenario = parse(job.path, &text, files).map_err(|error| wrong(error.shown(job.path, &text)))?;
    (job.narrow)(&mut scenario).map_err(wrong)?;
    Ok(scenario)
}

/// A case, ready to be simulated.
fn ready(job: &SweepJob<'_>, files: &dyn Files, case: usize) -> Result<Ready, String> {
    let mut scenario = read(job, files, case)?;
    match prepare(&mut scenario, files) {
        Ok(prepared) => Ok(Arc::new((scenario, prepared))),
        Err(error) => Err(format!("{}{}", of_case(&job.cases[case]), shown(&scenario, &error))),
    }
}

/// The files that a scenario's policies and its timeline name.
pub(crate) fn scripts(scenario: &Scenario) -> impl Iterator<Item = &Path> {
    let sources = scenario.policies.iter().flat_map(|policy| &policy.machines).map(|(_, source)| source);
    let policies = sources.filter_map(|source| match source {
        PolicySource::File { path, .. } => Some(path.as_path()),
        _ => None,
    });
    let timelines = scenario.policies.iter().flat_map(|policy| &policy.at).chain(&scenario.at);
    let scripts = timelines.filter_map(|entry| match &entry.what {
        TimelineEvent::Script { path, .. } => Some(path.as_path()),
        _ => None,
    });
    policies.chain(scripts)
}

/// `with home.rtt=1ms: `.
fn of_case(case: &SweepCase) -> String {
    let settings: Vec<String> =
        case.settings.iter().map(|one| format!("{}={}", one.path, one.value)).collect();
    if settings.is_empty() { String::new() } else { format!("with {}: ", settings.join(" ")) }
}

fn shown(scenario: &Scenario, wrong: &Diagnostic) -> String {
    wrong.shown(&scenario.path, &scenario.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_sweep::{SweepAxis, SweepPlan};

    const TEXT: &str = "duration = '1s'\nwarm-up = '0s'\nrepeats = 2\n[home]\nup = '1mbit'\ndown = '10mbit'\n\
        [policies.none]\n[[traffic]]\nping = 'a -> server'\nevery = '100ms'\n";

    fn with<T>(shard: (u64, u64), workers: usize, what: impl FnOnce(&PreparedSweep<'_>) -> T) -> T {
        let axes =
            vec![SweepAxis::parse("home.rtt=10ms,20ms,40ms").unwrap_or_else(|wrong| panic!("{wrong}"))];
        let cases = SweepPlan { axes, ..SweepPlan::default() }.cases().unwrap_or_default();
        let figures = ["ping.median".to_owned()];
        let job = SweepJob {
            path: Path::new("x.toml"),
            text: TEXT,
            cases: &cases,
            narrow: &|_| Ok(()),
            figures: &figures,
            shard,
            workers: Some(workers),
        };
        let files = tidegate_scenario::NoFiles;
        what(&PreparedSweep::new(job, &files).unwrap_or_else(|wrong| panic!("{wrong}")))
    }

    fn run(sweep: &PreparedSweep<'_>, journal: Option<&Path>, most: usize) -> SweepTable {
        let (stop, count) = (AtomicBool::new(false), AtomicUsize::new(0));
        let done = || {
            if count.fetch_add(1, Ordering::Relaxed) + 1 == most {
                stop.store(true, Ordering::Relaxed);
            }
        };
        let watch = SweepWatch { stop: &stop, begin: &|_, _| {}, done: &done };
        sweep.carry_out(journal, &watch).unwrap_or_else(|wrong| panic!("{wrong}"))
    }

    #[test]
    fn rows_do_not_depend_on_workers_shards_and_interruptions() {
        let whole = with((1, 1), 1, |sweep| run(sweep, None, usize::MAX));
        assert_eq!((whole.runs.len(), whole.missing()), (6, 0));
        assert!(whole.runs[&4].figures[0].value.is_some_and(|median| (0.039..0.045).contains(&median)));
        let text = whole.csv();
        assert_eq!(with((1, 1), 3, |sweep| run(sweep, None, usize::MAX)).csv(), text);
        let mut parts = SweepTable::default();
        for part in 1..=2 {
            let rows = with((part, 2), 1, |sweep| run(sweep, None, usize::MAX)).csv();
            parts.take(&rows).unwrap_or_else(|wrong| panic!("{wrong}"));
        }
        assert_eq!(parts.csv(), text);
        // Stopped after two runs, its journal cut in the middle of a row.
        let journal = std::env::temp_dir().join(format!("tidegate-sweep-{}.journal", std::process::id()));
        let _ = std::fs::remove_file(&journal);
        with((1, 1), 1, |sweep| run(sweep, Some(&journal), 2));
        let mut written = std::fs::read_to_string(&journal).unwrap_or_default();
        assert_eq!(written.matches(DONE).count(), 2);
        written.push_str("ab,6,2,1,no");
        assert!(std::fs::write(&journal, &written).is_ok());
        let begun = std::cell::Cell::new(0);
        let table = with((1, 1), 1, |sweep| {
            let (_, known) = sweep.opened(&journal).unwrap_or_else(|wrong| panic!("{wrong}"));
            begun.set(known.runs.len());
            run(sweep, Some(&journal), usize::MAX)
        });
        assert_eq!((begun.get(), table.csv()), (2, text));
        let is_taken = |text: &str| {
            assert!(std::fs::write(&journal, text).is_ok());
            with((1, 1), 1, |sweep| sweep.opened(&journal).is_ok())
        };
        assert!(is_taken("") && is_taken(&JOURNAL[..9]) && is_taken(&format!("{JOURNAL}0123\n")));
        assert!(!is_taken(&format!("{JOURNAL}0123\nab,6\n")) && !is_taken("my letter\n"));
        let _ = std::fs::remove_file(&journal);
    }

    #[test]
    fn rows_end_with_their_run() {
        let of = |text: &str| blocks(text).map(|block| format!("{block:?}")).collect::<Vec<_>>();
        assert_eq!(of("a\nb\n# run 3\n# run 4\n"), ["Some((\"a\\nb\\n\", \"3\"))", "Some((\"\", \"4\"))"]);
        assert_eq!(of("a\n# run 3\nb\nc"), ["Some((\"a\\n\", \"3\"))", "None"]);
        assert_eq!(of("a\n# run 3"), ["None"]);
    }
}
