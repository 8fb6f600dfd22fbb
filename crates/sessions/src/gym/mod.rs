//! The gym on all processors: every case with every controller. The result does not depend on how many
//! processors there are.

mod program;

use crate::error::Error;
use program::ProgramController;
use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tidegate_gym::{
    CaseDetail, CaseRow, ControllerChoice, DetailRecord, GymCase, GymFailure, GymRecord, GymRun, GymScore,
    run_case,
};

/// The most cases, and the most runs, of one visit.
pub const MAX_CASES: usize = 10_000;

/// What is played.
#[derive(Clone, Copy)]
pub struct GymJob<'j> {
    /// The cases.
    pub cases: &'j [GymCase],
    /// The controllers.
    pub controllers: &'j [ControllerChoice],
    /// How many runs at once; `None`: as many as there are processors.
    pub workers: Option<usize>,
}

/// How it is watched and stopped.
#[derive(Clone, Copy)]
pub struct GymWatch<'w> {
    /// Once it is set no run begins.
    pub stop: &'w AtomicBool,
    /// Hears that one more run is done.
    pub done: &'w (dyn Fn() + Sync),
}

/// A program that hung so often is not started again: each time costs its time limit.
const MAX_HANGS: usize = 3;

/// What came of a run.
type Outcome = Result<(GymScore, Option<GymRecord>), String>;

/// Plays every case with every controller.
///
/// # Errors
/// It was stopped; a controller cannot be made.
pub fn play(job: &GymJob<'_>, watch: &GymWatch<'_>) -> Result<(Vec<CaseRow>, Vec<GymFailure>), Error> {
    let count = job.controllers.len();
    let outcomes = all(job, watch, job.cases.len() * count, |n| (n / count.max(1), n % count.max(1)), false)?;
    let mut failures = Vec::new();
    let mut outcomes = outcomes.into_iter();
    let rows = job.cases.iter().map(|case| CaseRow {
        case: case.name.clone(),
        line: case.line.name.clone(),
        load: case.load.name().to_owned(),
        scores: job
            .controllers
            .iter()
            .zip(outcomes.by_ref())
            .map(|(controller, outcome)| match outcome {
                Ok((score, _)) => Some(score),
                Err(why) => {
                    let (case, controller) = (case.name.clone(), controller.to_string());
                    failures.push(GymFailure { case, controller, why });
                    None
                }
            })
            .collect(),
    });
    let rows = rows.collect();
    Ok((rows, failures))
}

/// Plays some cases again and keeps what happened: `(case, what happens in it)` each.
///
/// # Errors
/// As for [`play`].
pub fn details(
    job: &GymJob<'_>,
    watch: &GymWatch<'_>,
    wanted: &[(usize, String)],
) -> Result<Vec<CaseDetail>, Error> {
    let kept: Vec<usize> = (0..job.controllers.len())
        .filter(|at| !matches!(job.controllers[*at], ControllerChoice::Fixed(_)))
        .collect();
    let of = |n: usize| (wanted[n / kept.len()].0, kept[n % kept.len()]);
    let outcomes = all(job, watch, wanted.len() * kept.len(), of, true)?;
    let mut outcomes = outcomes.into_iter();
    let details = wanted.iter().map(|(row, about)| CaseDetail {
        row: *row,
        about: about.clone(),
        records: kept
            .iter()
            .zip(outcomes.by_ref())
            .filter_map(|(controller, outcome)| {
                Some(DetailRecord { controller: *controller, record: outcome.ok()?.1? })
            })
            .collect(),
    });
    Ok(details.collect())
}

/// Plays `runs` runs, the n-th of the case and controller that `of` says, on all processors.
fn all(
    job: &GymJob<'_>,
    watch: &GymWatch<'_>,
    runs: usize,
    of: impl Fn(usize) -> (usize, usize) + Sync,
    records: bool,
) -> Result<Vec<Outcome>, Error> {
    let processors = || std::thread::available_parallelism().map_or(1, usize::from);
    let workers = job.workers.unwrap_or_else(processors).min(runs).max(1);
    let next = AtomicUsize::new(0);
    let hangs: Vec<AtomicUsize> = job.controllers.iter().map(|_| AtomicUsize::new(0)).collect();
    let outcomes: Mutex<Vec<Option<Outcome>>> = Mutex::new(vec![None; runs]);
    let work = || {
        while !watch.stop.load(Ordering::Relaxed) {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= runs {
                break;
            }
            let (case, controller) = of(n);
            let outcome = one(&job.cases[case], &job.controllers[controller], records, &hangs[controller]);
            outcomes.lock().unwrap_or_else(PoisonError::into_inner)[n] = Some(outcome);
            (watch.done)();
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(work);
        }
        work();
    });
    let outcomes = outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
    let done = outcomes.iter().flatten().count();
    outcomes
        .into_iter()
        .collect::<Option<Vec<Outcome>>>()
        .ok_or_else(|| Error::Partial(format!("stopped after {done} of {runs} runs; nothing is kept")))
}

fn one(case: &GymCase, controller: &ControllerChoice, records: bool, hangs: &AtomicUsize) -> Outcome {
    let run = match controller {
        ControllerChoice::Program(path) => with_program(case, path, records, hangs)?,
        _ => {
            let mut made = controller.build(case)?;
            run_case(case, made.as_mut(), records).map_err(|error| error.to_string())?
        }
    };
    Ok((run.score, run.record))
}

fn with_program(case: &GymCase, path: &str, records: bool, hangs: &AtomicUsize) -> Result<GymRun, String> {
    if hangs.load(Ordering::Relaxed) >= MAX_HANGS {
        return Err(format!("not started: it hung {MAX_HANGS} times before"));
    }
    let mut program = ProgramController::start(path, case.line.limits())?;
    let run = run_case(case, &mut program, records).map_err(|error| error.to_string());
    match program.failure() {
        Some(failure) => {
            hangs.fetch_add(usize::from(failure.hung), Ordering::Relaxed);
            Err(failure.why.clone())
        }
        None => run,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_gym::GymLoad;

    #[test]
    fn the_scores_do_not_depend_on_how_many_run_at_once() {
        let cases: Vec<GymCase> = [GymLoad::Up, GymLoad::Down]
            .map(|load| GymCase::steady("line", [500_000, 2_000_000], load).lasting(1, 2))
            .to_vec();
        let controllers = ["tidegate", "cake-autorate", "sqm-autorate", "known", "fixed:0.7"]
            .map(|name| ControllerChoice::named(name).expect(name));
        let stop = AtomicBool::new(false);
        let watch = GymWatch { stop: &stop, done: &|| () };
        let with = |workers| {
            let job = GymJob { cases: &cases, controllers: &controllers, workers: Some(workers) };
            let wanted = [(1, "downloads".to_owned())];
            (play(&job, &watch).expect("scores"), details(&job, &watch, &wanted).expect("records"))
        };
        let one = with(1);
        assert_eq!(one, with(3));
        let ((rows, failures), details) = one;
        assert_eq!((rows.len(), failures.len(), details[0].records.len()), (2, 0, 4));
        assert!(rows.iter().flat_map(|row| &row.scores).all(Option::is_some));
        stop.store(true, Ordering::Relaxed);
        let job = GymJob { cases: &cases, controllers: &controllers, workers: None };
        assert!(matches!(play(&job, &watch), Err(Error::Partial(_))));
    }
}
