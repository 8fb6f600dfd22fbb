//! A scenario's experiment in virtual time, with the file system and all processors: what `tidegate_scenario`
//! does with files of its caller's and one run after the other.

use crate::error::Error;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tidegate_capture::Exit;
use tidegate_loader::{LoadedPolicy, MAX_POLICY, ReadOptions, SandboxOptions};
use tidegate_measure::experiment::{Experiment, RunRecord};
use tidegate_policy::NetemDistribution;
use tidegate_scenario::model::{Scenario, TimelineEntry};
use tidegate_scenario::prepare::{Prepared, prepare};
use tidegate_scenario::run::{ExperimentWatch, RunError, RunWatch};
use tidegate_scenario::tables::Diagnostic;
use tidegate_scenario::{
    FileError, Files, PolicyCommands, PolicyEnd, PolicyFile, can_be_simulated, cases, document, library,
    link_seconds, parse, simulate_case,
};
use tidegate_sys::input_file;

/// The files that a scenario names, from the file system; scripts run in the sandbox.
#[derive(Clone, Debug, Default)]
pub struct ScenarioFiles {
    /// How scripts are confined.
    pub sandbox: SandboxOptions,
}

impl Files for ScenarioFiles {
    fn exists(&self, path: &Path) -> bool {
        path.exists()
    }

    fn text(&self, path: &Path) -> Result<String, FileError> {
        input_file::read_text(path, MAX_POLICY).map_err(FileError::new)
    }

    fn policy(&self, file: &PolicyFile) -> Result<PolicyCommands, FileError> {
        let options = options(file, self.sandbox.clone());
        let loaded =
            tidegate_loader::read(std::slice::from_ref(&file.path), &options).map_err(FileError::new)?;
        Ok(commands(&loaded))
    }

    fn distributions(&self) -> Arc<BTreeMap<String, NetemDistribution>> {
        tidegate_loader::distributions::installed()
    }
}

/// The text of a scenario: of a file, or, where there is none of this name, one that is part of the program.
///
/// # Errors
/// It cannot be read, is too long, is no text, or is no file; the error names the scenarios that there are if
/// the name looks like one of theirs.
pub fn scenario_text(path: &Path) -> io::Result<String> {
    let name = path.to_string_lossy();
    input_file::read_text(path, MAX_POLICY).or_else(|error| match library::find(&name) {
        Some(known) if error.kind() == io::ErrorKind::NotFound => Ok(known.text.to_owned()),
        _ if error.kind() == io::ErrorKind::NotFound && library::beside(&name).next().is_some() => {
            let known: Vec<&str> = library::beside(&name).collect();
            let why = format!("there is no such scenario; known: {}", known.join(", "));
            Err(io::Error::new(io::ErrorKind::InvalidInput, why))
        }
        _ => Err(error),
    })
}

/// One policy's text under a file name; otherwise as [`ScenarioFiles`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct WithPolicy<'t> {
    pub(crate) name: &'t Path,
    pub(crate) text: &'t str,
}

impl Files for WithPolicy<'_> {
    fn exists(&self, path: &Path) -> bool {
        path == self.name || ScenarioFiles::default().exists(path)
    }

    fn text(&self, path: &Path) -> Result<String, FileError> {
        ScenarioFiles::default().text(path)
    }

    fn policy(&self, file: &PolicyFile) -> Result<PolicyCommands, FileError> {
        if file.path != self.name {
            return ScenarioFiles::default().policy(file);
        }
        let options = options(file, SandboxOptions::default());
        let loaded = tidegate_loader::read_text(&self.name.to_string_lossy(), self.text, &options);
        Ok(commands(&loaded.map_err(FileError::new)?))
    }

    fn distributions(&self) -> Arc<BTreeMap<String, NetemDistribution>> {
        ScenarioFiles::default().distributions()
    }
}

fn options(file: &PolicyFile, sandbox: SandboxOptions) -> ReadOptions {
    ReadOptions {
        args: file.args.clone(),
        sandbox,
        devices: file.devices.clone(),
        kernel: file.kernel,
        tc: file.tc,
        ..ReadOptions::default()
    }
}

fn commands(loaded: &LoadedPolicy) -> PolicyCommands {
    let calls = loaded.outcomes.iter().flat_map(|outcome| &outcome.calls);
    let words = |tool: &String, args: &[String]| std::iter::once(tool).chain(args).cloned().collect();
    let failed = loaded.outcomes.iter().any(|outcome| outcome.exit != Exit::Code(0));
    PolicyCommands {
        ops: loaded.machine.log.clone(),
        carried: loaded.machine.carried.iter().map(|one| one.words.clone()).collect(),
        issued: calls.map(|recorded| words(&recorded.call.tool, &recorded.call.args)).collect(),
        notes: loaded
            .outcomes
            .iter()
            .flat_map(|outcome| outcome.notes.clone())
            .chain(loaded.not_known_of_kernel())
            .collect(),
        // As `try` has it: to clear away what is not there is no trouble.
        trouble: loaded.troubles().find(|trouble| !trouble.is_idle()).map(ToString::to_string),
        ended: match failed {
            _ if !loaded.ended() => PolicyEnd::Cut,
            true => PolicyEnd::Failed,
            false => PolicyEnd::Well,
        },
    }
}

/// Carries out all runs of a scenario in virtual time, as many at once as there are processors. The same
/// scenario gives the same runs, however many that are; by policy, then by load, then by repeat. After `stop`
/// what was done by then, one run at least.
///
/// # Errors
/// A program that would have to run, or what a machine refuses of a policy ([`RunError::Scenario`]); an
/// observer that fails ([`RunError::Outside`]).
pub fn carry_out(
    scenario: &Scenario,
    prepared: &Prepared,
    commands: &[TimelineEntry],
    watch: &ExperimentWatch<'_>,
) -> Result<Vec<RunRecord>, RunError> {
    can_be_simulated(scenario)?;
    let cases = cases(scenario);
    (watch.begin)(cases.len(), link_seconds(scenario));
    let results: Mutex<Vec<Option<Result<RunRecord, RunError>>>> =
        Mutex::new(cases.iter().map(|_| None).collect());
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(at) else { break };
            // The first run is returned even if it was cut off.
            if at > 0 && watch.stop.load(Ordering::Relaxed) {
                break;
            }
            let mut observer = (watch.observer)();
            let observer =
                observer.as_mut().map(|one| one.as_mut() as &mut dyn tidegate_scenario::run::RunObserver);
            let of_run = RunWatch { stop: watch.stop, seconds: watch.seconds, observer };
            let result = simulate_case(scenario, prepared, *case, commands, of_run);
            if let Ok(mut results) = results.lock() {
                results[at] = Some(result);
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(cases.len()).max(1);
    std::thread::scope(|scope| {
        for _ in 1..workers {
            scope.spawn(work);
        }
        work();
    });
    results.into_inner().unwrap_or_default().into_iter().flatten().collect()
}

/// A scenario's text, carried out in virtual time. `name` is its file in error messages.
///
/// # Errors
/// In words, with the place in the text: what is wrong with it, what a machine refuses of a policy, or a
/// program that would have to run; or an observer that fails.
///
/// ```
/// use std::path::Path;
/// use std::sync::atomic::AtomicBool;
/// use tidegate_scenario::run::ExperimentWatch;
/// use tidegate_sessions::simulated::{ScenarioFiles, of_text};
///
/// let text = "duration = '2s'\n[home]\nup = '1mbit'\ndown = '10mbit'\n[policies.none]\n[[traffic]]\n\
///     ping = 'a -> server'\n";
/// let stop = AtomicBool::new(false);
/// let watch = ExperimentWatch { stop: &stop, begin: &|_, _| {}, seconds: &|_| {}, observer: &|| None };
/// let experiment = of_text((Path::new("home.toml"), text), &ScenarioFiles::default(), &watch).unwrap();
/// assert_eq!(experiment.runs.len(), 1);
/// ```
pub fn of_text(
    (name, text): (&Path, &str),
    files: &dyn Files,
    watch: &ExperimentWatch<'_>,
) -> Result<Experiment, Error> {
    let wrong = |wrong: Diagnostic| Error::Invalid(wrong.shown(name, text));
    let mut scenario = parse(name, text, files).map_err(wrong)?;
    let prepared = prepare(&mut scenario, files).map_err(wrong)?;
    let runs = carry_out(&scenario, &prepared, &[], watch).map_err(|error| match error {
        RunError::Scenario(diagnostic) => wrong(diagnostic),
        other => Error::Invalid(other.to_string()),
    })?;
    Ok(document::experiment(&scenario, &prepared, "sim", String::new(), runs))
}
