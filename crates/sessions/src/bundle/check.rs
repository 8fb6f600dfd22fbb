//! Checks a bundle: its files are those of its list, and its commands give the same results again.

use super::document::{BundleCheck, BundleFault, Recipe, is_result, recipe};
use super::inputs::InputFile;
use super::make::{ROWS, rows, write_input};
use super::names::{INPUTS, PROVENANCE, SUMS};
use super::steps::{Outcome, ProgramRun, run};
use super::{commands, sums, walk};
use crate::error::{Context, Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, DirBuilder};
use std::hash::BuildHasher;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tidegate_sys::input_file;

/// Bytes of the longest list, and of the longest file that is read whole.
const MAX_LIST: u64 = 16 << 20;
const MAX_FILE: u64 = 64 << 20;

/// A check, and where the results are that were made again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedBundle {
    /// What was found.
    pub check: BundleCheck,
    /// The directory in which everything was done again, kept where results differ.
    pub kept: Option<PathBuf>,
}

/// Compares a bundle's files with its list, and, if they are the same, does everything again in a new
/// directory and compares the results. `runs`: whether it does. The bundle may come from a stranger: its
/// scripts run in the sandbox, and nothing of it outside.
///
/// # Errors
/// The directory is no bundle: links in it, names that leave it, documents that cannot be read, commands that
/// are not those of a bundle.
pub fn check(dir: &Path, program: &ProgramRun<'_>, runs: bool) -> Result<Outcome<CheckedBundle>> {
    let shown = dir.display();
    let list = input_file::read_text(&dir.join(SUMS), MAX_LIST)
        .context(format!("{shown} is no bundle: cannot read {SUMS}"))?;
    let listed = sums::read(&list).map_err(|why| Error::Invalid(format!("{shown}/{SUMS}: {why}")))?;
    let mut check =
        BundleCheck { faults: compared(dir, &listed)?, files: listed.len() as u64, ..BundleCheck::default() };
    let text = input_file::read_text(&dir.join(PROVENANCE), MAX_FILE)
        .context(format!("{shown} is no bundle: cannot read {PROVENANCE}"))?;
    let wrong = |why: String| Error::Invalid(format!("{shown}/{PROVENANCE}: {why}"));
    let recipe = recipe(&text).map_err(wrong)?;
    commands::check(&recipe.commands).map_err(wrong)?;
    let not_as_stated = stated(dir, &listed, &recipe, &check.faults);
    check.faults.extend(not_as_stated);
    let ours = fs::File::open(program.path).and_then(sums::of_reader).context("reading the program")?;
    check.same_program = ours.0 == recipe.program;
    (check.version, check.program) = (recipe.version.clone(), recipe.program.clone());
    // Of changed inputs the results say nothing.
    if !runs || !check.faults.is_empty() {
        return Ok(Outcome::Done(CheckedBundle { check, kept: None }));
    }
    let again = new_directory()?;
    let outcome = repeated(dir, &again, (&listed, &recipe), program, &mut check);
    let keeps = matches!(outcome, Ok(Outcome::Done(()))) && !check.faults.is_empty();
    if !keeps {
        fs::remove_dir_all(&again).context(format!("removing {}", again.display()))?;
    }
    Ok(match outcome? {
        Outcome::Done(()) => Outcome::Done(CheckedBundle { check, kept: keeps.then_some(again) }),
        Outcome::Ended { command, code } => Outcome::Ended { command, code },
    })
}

/// What is not as it is listed.
fn compared(dir: &Path, listed: &BTreeMap<String, sums::Hex>) -> Result<Vec<(String, BundleFault)>> {
    let there = walk::files(dir)?;
    let mut faults = Vec::new();
    for (name, expected) in listed {
        if !there.contains(name) {
            faults.push((name.clone(), BundleFault::Missing));
            continue;
        }
        let (found, _) =
            input_file::open(&dir.join(name)).and_then(sums::of_reader).context(format!("reading {name}"))?;
        if found != *expected {
            faults.push((name.clone(), BundleFault::Changed));
        }
    }
    let added = there.iter().filter(|name| *name != SUMS && !listed.contains_key(*name));
    faults.extend(added.map(|name| (name.clone(), BundleFault::Added)));
    faults.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(faults)
}

/// Where `provenance.json` says something else than the files. What it says of the program that made the
/// bundle, and of files outside, nothing in the bundle can show.
fn stated(
    dir: &Path,
    listed: &BTreeMap<String, sums::Hex>,
    recipe: &Recipe,
    named: &[(String, BundleFault)],
) -> Vec<(String, BundleFault)> {
    let mut faults = Vec::new();
    let is_named = |of: &str| named.iter().any(|(name, _)| name == of);
    for (name, sum) in listed.iter().filter(|(name, _)| is_input(name) || is_result(name)) {
        if is_named(name) {
            continue;
        }
        let Ok(length) = fs::symlink_metadata(dir.join(name)).map(|found| found.len()) else { continue };
        let stated = recipe.files.iter().find(|file| file.name == *name);
        if stated.is_none_or(|file| file.sha256 != *sum || file.bytes != length) {
            faults.push((name.clone(), BundleFault::NotAsStated));
        }
    }
    let unknown = recipe.files.iter().filter(|file| !listed.contains_key(&file.name));
    faults.extend(unknown.map(|file| (file.name.clone(), BundleFault::NotListed)));
    let is_same = is_named(ROWS)
        || rows(dir).is_ok_and(|table| {
            let seeds: BTreeSet<u64> = table.runs.values().map(|run| run.seed).collect();
            table.head.id == recipe.sweep
                && table.head.runs == recipe.runs
                && seeds.into_iter().eq(recipe.seeds.iter().copied())
        });
    let has_scenario = is_input(&recipe.scenario) && listed.contains_key(&recipe.scenario);
    if !(is_same && has_scenario) {
        faults.push((PROVENANCE.to_owned(), BundleFault::OtherRuns));
    }
    faults
}

fn is_input(name: &str) -> bool {
    name.split_once('/').is_some_and(|(first, _)| first == INPUTS)
}

/// A directory that is this process's alone.
fn new_directory() -> Result<PathBuf> {
    let random = std::collections::hash_map::RandomState::new().hash_one(std::process::id());
    let path = std::env::temp_dir().join(format!("tidegate-bundle-{random:016x}"));
    DirBuilder::new().mode(0o700).create(&path).context(format!("making {}", path.display()))?;
    Ok(path)
}

/// Does everything again, and adds the results that differ.
fn repeated(
    dir: &Path,
    again: &Path,
    (listed, recipe): (&BTreeMap<String, sums::Hex>, &Recipe),
    program: &ProgramRun<'_>,
    check: &mut BundleCheck,
) -> Result<Outcome<()>> {
    for (name, expected) in listed.iter().filter(|(name, _)| is_input(name)) {
        let path = dir.join(name);
        let bytes = input_file::read(&path, MAX_FILE).context(format!("reading {name}"))?;
        if sums::of_bytes(&bytes) != *expected {
            return Err(Error::Invalid(format!("{name} changed while it was read")));
        }
        let mode = fs::metadata(&path).context(name.clone())?.permissions().mode();
        write_input(again, &InputFile { name: name.clone(), bytes, executable: mode & 0o111 != 0 })?;
    }
    for command in &recipe.commands {
        for name in command.outputs() {
            let parent = again.join(name).parent().map(Path::to_owned).unwrap_or_default();
            fs::create_dir_all(&parent).context(format!("making {}", parent.display()))?;
        }
        if let Outcome::Ended { command, code } = run(program, again, command)? {
            return Ok(Outcome::Ended { command, code });
        }
    }
    let mut count = 0;
    for (name, expected) in listed.iter().filter(|(name, _)| is_result(name)) {
        count += 1;
        let path = again.join(name);
        if !path.is_file() {
            check.faults.push((name.clone(), BundleFault::NotWritten));
            continue;
        }
        let (found, _) =
            input_file::open(&path).and_then(sums::of_reader).context(format!("reading {name}"))?;
        if found != *expected {
            check.faults.push((name.clone(), BundleFault::Differs));
        }
    }
    check.results = Some(count);
    Ok(Outcome::Done(()))
}
