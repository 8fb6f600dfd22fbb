//! Makes a bundle: the inputs first, then the results by the very commands that it holds, in a directory
//! beside its place; at the end it is moved there.

use super::commands::BundleCommand;
use super::document::{BundledFile, ProgramFile, Provenance};
use super::inputs::{self, InputFile, Inputs};
use super::names::{self, CITATION, FIGURES, PROVENANCE, README, REPRODUCE, RESULTS, SUMS};
use super::steps::{Outcome, ProgramRun, run};
use super::texts::{self, Citation};
use super::{commands, sums, walk};
use crate::error::{Context, Error, Result};
use crate::simulated::ScenarioFiles;
use crate::sweep::{PreparedSweep, SweepJob};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tidegate_sweep::{PlotWanted, SweepQuery, SweepTable};
use tidegate_sys::{input_file, interrupt, output_file, process};

/// The rows of all runs.
pub(super) const ROWS: &str = "results/rows.csv";
/// What an unfinished bundle is known by.
const UNFINISHED: &str = "UNFINISHED";
/// Bytes of the longest result.
const MAX_RESULT: u64 = 2 << 30;

/// What a bundle is made of.
#[derive(Clone)]
pub struct BundleJob<'j> {
    /// The sweep, or a scenario without one: a single case without settings. Its path as the user gave it.
    pub sweep: SweepJob<'j>,
    /// The files that it reads.
    pub disk: ScenarioFiles,
    /// The words of `tidegate sweep` and of `sim` that choose the policies, loads, seeds and repeats.
    pub cases: &'j [String],
    /// The words of `tidegate sweep` that say what is varied.
    pub design: &'j [String],
    /// What is drawn.
    pub plots: &'j [BundlePlot],
    /// Its title and authors.
    pub citation: &'j Citation,
    /// Where it will be: a new directory, or an empty one.
    pub target: &'j Path,
    /// How its commands are run.
    pub program: ProgramRun<'j>,
}

/// A drawing of a bundle.
#[derive(Clone, Debug)]
pub struct BundlePlot {
    /// What it shows, as the user wrote it.
    pub name: String,
    /// The words of `tidegate results`.
    pub words: Vec<String>,
    /// What they mean.
    pub wanted: PlotWanted,
    /// The runs that it shows, and its curves.
    pub query: SweepQuery,
}

/// Makes a bundle. Where the commands are interrupted what is done is kept beside its place, and the same job
/// goes on with it.
///
/// # Errors
/// The place is not free; the scenario reads files that no bundle can hold; a policy does something else from
/// the bundle's inputs than from their place.
pub fn make(job: &BundleJob<'_>) -> Result<Outcome<Provenance>> {
    let place = Place::new(job.target)?;
    let (whole, from_here) = inputs::located(job.sweep.path)?;
    let sweep = SweepJob { path: &from_here, ..job.sweep };
    let inputs = inputs::gather(&sweep, &whole, job.disk.clone())?;
    let prepared = PreparedSweep::new(sweep, &job.disk)?;
    if let Some(ended) = refuses_plots(job, &prepared)? {
        return Ok(ended);
    }
    let commands = commands_of(job, &inputs.scenario);
    commands::check(&commands).map_err(Error::Invalid)?;
    let program = program_file(job.program.path)?;
    place.begin(&marker(&program, &commands[0], &inputs))?;
    for file in &inputs.files {
        write_input(&place.staging, file)?;
    }
    let mut done = Vec::new();
    for command in commands {
        // The rows take long: an unfinished bundle has them whole, or not at all.
        if done.is_empty() && command.outputs().all(|name| place.staging.join(name).is_file()) {
            done.push(command);
            continue;
        }
        for name in command.outputs() {
            let path = place.staging.join(name);
            directory_of(&path)?;
            output_file::remove_unfinished(&path);
        }
        match run(&job.program, &place.staging, &command)? {
            Outcome::Done(exit) => done.push(BundleCommand { exit, ..command }),
            Outcome::Ended { command, code } => return Ok(Outcome::Ended { command, code }),
        }
        if done.len() == 1
            && let Err(wrong) = same_sweep(&place.staging, &prepared.head().id, &inputs)
        {
            fs::remove_dir_all(&place.staging).context(place.staging.display().to_string())?;
            return Err(wrong);
        }
    }
    let provenance = provenance(&place.staging, program, inputs, done)?;
    finish(&place, &provenance, job.citation)?;
    Ok(Outcome::Done(provenance))
}

/// Refuses a drawing of a parameter, a figure or a value that there is not, before anything is run for long.
fn refuses_plots(job: &BundleJob<'_>, sweep: &PreparedSweep<'_>) -> Result<Option<Outcome<Provenance>>> {
    if job.plots.is_empty() {
        return Ok(None);
    }
    let Some(table) = sweep.preview(interrupt::notice())? else {
        return Ok(Some(Outcome::Ended { command: "a first run, for its figures".into(), code: None }));
    };
    for plot in job.plots {
        let drawn = table.plot(&plot.query, &plot.wanted);
        drawn.map_err(|wrong| Error::Invalid(format!("--plot {}: {wrong}", plot.name)))?;
    }
    Ok(None)
}

/// The commands, in their order.
fn commands_of(job: &BundleJob<'_>, scenario: &str) -> Vec<BundleCommand> {
    let words = |first: [&str; 2], own: &[&[String]], outputs: &[String]| {
        let first = first.iter().map(|word| (*word).to_owned());
        let own = own.iter().flat_map(|words| words.iter().cloned());
        let outputs = outputs.iter().flat_map(|name| ["-o".to_owned(), name.clone()]);
        BundleCommand { words: first.chain(own).chain(outputs).collect(), exit: 0 }
    };
    let results = |names: [&str; 2]| names.map(|name| format!("{RESULTS}/{name}"));
    let mut all =
        vec![words(["sweep", scenario], &[job.design, job.cases], &results(["rows.csv", "summary.json"]))];
    // One case is an experiment of its own, too: a page, and the assertions of the scenario.
    if job.sweep.cases.iter().all(|case| case.settings.is_empty()) {
        all.push(words(["sim", scenario], &[job.cases], &results(["experiment.json", "experiment.html"])));
    }
    for (number, BundlePlot { name: what, words: own, .. }) in (1..).zip(job.plots) {
        let name = |extension: &str| format!("{FIGURES}/{number:02}-{}.{extension}", names::slug(what));
        all.push(words(["results", ROWS], &[own], &[name("pdf"), name("svg")]));
    }
    all
}

/// Where a bundle will be, and where it is made.
struct Place {
    target: PathBuf,
    staging: PathBuf,
}

impl Place {
    /// # Errors
    /// The place is not free, or what it is in is not there.
    fn new(target: &Path) -> Result<Place> {
        let shown = target.display();
        let refused = |why: &str| Error::Invalid(format!("cannot write {shown}: {why}"));
        let Some(name) = target.file_name() else { return Err(refused("name a new directory")) };
        match fs::symlink_metadata(target) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(error).context(format!("cannot write {shown}")),
            Ok(found) if found.file_type().is_symlink() => {
                return Err(refused("it is a symbolic link; name a new directory"));
            }
            Ok(found) if !found.is_dir() => return Err(refused("it is a file; name a new directory")),
            Ok(_) => {
                if fs::read_dir(target).context(format!("cannot read {shown}"))?.next().is_some() {
                    return Err(refused("the directory is not empty; name a new one"));
                }
            }
        }
        let parent =
            target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !parent.is_dir() {
            return Err(refused(&format!("there is no directory {}; make it first", parent.display())));
        }
        let mut unfinished = name.to_owned();
        unfinished.push(".unfinished");
        Ok(Place { target: target.to_owned(), staging: target.with_file_name(unfinished) })
    }

    /// Makes the directory in which the bundle is made, or goes on with that of the same job.
    fn begin(&self, marker: &str) -> Result<()> {
        let (dir, shown) = (&self.staging, self.staging.display());
        let refused =
            |why: &str| Error::Invalid(format!("{shown} {why}; delete it, or name another directory"));
        match fs::create_dir(dir) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                let found = fs::symlink_metadata(dir).context(shown.to_string())?;
                if !found.is_dir() || found.uid() != process::effective_uid() {
                    return Err(refused("is in the way: it is no directory of yours"));
                }
                let known = input_file::read_text(&dir.join(UNFINISHED), 4096).unwrap_or_default();
                if known != marker {
                    return Err(refused("is of another bundle, or of other inputs"));
                }
            }
            Err(error) => return Err(error).context(format!("cannot make {shown}")),
        }
        // Drawings are made again: others may be wanted now.
        match fs::remove_dir_all(dir.join(FIGURES)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).context(format!("cannot remove {shown}/{FIGURES}"))
            }
            _ => write(&dir.join(UNFINISHED), marker.as_bytes()),
        }
    }
}

/// What must be the same for a job to go on.
fn marker(program: &ProgramFile, sweep: &BundleCommand, inputs: &Inputs) -> String {
    let mut all = format!("{}\n{:?}\n", program.sha256, sweep.words);
    for file in &inputs.files {
        all.push_str(&format!("{} {} {}\n", sums::of_bytes(&file.bytes), file.name, file.executable));
    }
    format!("{}\n", sums::of_bytes(all.as_bytes()))
}

/// The running program's file.
fn program_file(path: &Path) -> Result<ProgramFile> {
    let open = || fs::File::open(path).and_then(sums::of_reader);
    let (sha256, bytes) = open().context(format!("reading the program {}", path.display()))?;
    let platform = format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS);
    Ok(ProgramFile { sha256, bytes, platform })
}

fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    output_file::write(path, bytes).context(format!("writing {}", path.display()))
}

fn directory_of(path: &Path) -> Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).context(format!("making {}", parent.display()))
}

/// Writes an input below a directory.
pub(super) fn write_input(dir: &Path, file: &InputFile) -> Result<()> {
    let path = dir.join(&file.name);
    directory_of(&path)?;
    write(&path, &file.bytes)?;
    if file.executable { executable(&path) } else { Ok(()) }
}

fn executable(path: &Path) -> Result<()> {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).context(path.display().to_string())
}

pub(super) fn rows(dir: &Path) -> Result<SweepTable> {
    let text = input_file::read_text(&dir.join(ROWS), MAX_RESULT).context(format!("reading {ROWS}"))?;
    let mut table = SweepTable::default();
    table.take(&text).map_err(|wrong| Error::Invalid(format!("{ROWS}: {wrong}")))?;
    Ok(table)
}

/// The sweep of the bundle's inputs is that of the files in their own place.
fn same_sweep(dir: &Path, id: &str, inputs: &Inputs) -> Result<()> {
    if rows(dir)?.head.id == id {
        return Ok(());
    }
    let outside: Vec<&str> = inputs.outside.iter().map(|file| file.path.as_str()).collect();
    let named = match outside.as_slice() {
        [] => String::new(),
        some => format!(" Files that are named and are not in the bundle: {}.", some.join(", ")),
    };
    Err(Error::Invalid(format!(
        "from the bundle's inputs a policy comes to other commands than from its own place: its script reads files \
        that are not in the bundle, or uses the name of its directory. Let it read files beside itself: \
        `. \"$(dirname \"$0\")/settings.sh\"`.{named}"
    )))
}

fn provenance(
    dir: &Path,
    program: ProgramFile,
    inputs: Inputs,
    commands: Vec<BundleCommand>,
) -> Result<Provenance> {
    let table = rows(dir)?;
    let seeds: BTreeSet<u64> = table.runs.values().map(|run| run.seed).collect();
    let bundled = |name: &str| -> Result<BundledFile> {
        let open = || input_file::open(&dir.join(name)).and_then(sums::of_reader);
        let (sha256, bytes) = open().context(format!("reading {name}"))?;
        Ok(BundledFile { name: name.to_owned(), sha256, bytes })
    };
    let results: Vec<&str> = commands.iter().flat_map(BundleCommand::outputs).collect();
    Ok(Provenance {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        program,
        scenario: inputs.scenario,
        sweep: table.head.id,
        runs: table.head.runs,
        seeds: seeds.into_iter().collect(),
        inputs: inputs.files.iter().map(|file| bundled(&file.name)).collect::<Result<_>>()?,
        outside: inputs.outside,
        results: results.into_iter().map(bundled).collect::<Result<_>>()?,
        commands,
    })
}

/// Writes what describes the bundle, and moves it to its place.
fn finish(place: &Place, provenance: &Provenance, citation: &Citation) -> Result<()> {
    let dir = &place.staging;
    let own = [
        (PROVENANCE, provenance.json()),
        (REPRODUCE, texts::reproduce(provenance)),
        (CITATION, texts::citation(citation, &provenance.version)),
        (README, texts::readme(provenance, &citation.title)),
    ];
    let files = provenance.inputs.iter().chain(&provenance.results);
    let mut listed: BTreeMap<String, sums::Hex> =
        files.map(|file| (file.name.clone(), file.sha256.clone())).collect();
    for (name, text) in own {
        write(&dir.join(name), text.as_bytes())?;
        listed.insert(name.to_owned(), sums::of_bytes(text.as_bytes()));
    }
    executable(&dir.join(REPRODUCE))?;
    write(&dir.join(SUMS), sums::written(&listed).as_bytes())?;
    fs::remove_file(dir.join(UNFINISHED)).context(dir.display().to_string())?;
    // Nothing is in it that the list does not name.
    let there = walk::files(dir)?;
    if let Some(added) = there.iter().find(|name| *name != SUMS && !listed.contains_key(*name)) {
        return Err(Error::Invalid(format!("{}/{added} is no part of the bundle; delete it", dir.display())));
    }
    fs::rename(dir, &place.target).context(format!("moving {} to {}", dir.display(), place.target.display()))
}
