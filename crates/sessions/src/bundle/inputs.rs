//! The files that a scenario's runs read, found by reading them: the scenario, policies, scripts with what
//! they read in, recorded links.

use super::names;
use super::sums::{self, Hex};
use crate::error::{Context, Error, Result};
use crate::simulated::ScenarioFiles;
use crate::sweep::{READ_FIRST, SweepJob, read, scripts};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegate_policy::NetemDistribution;
use tidegate_scenario::prepare::prepare;
use tidegate_scenario::{FileError, Files, PolicyCommands, PolicyFile, library};
use tidegate_sys::input_file;

/// Bytes of the longest input, and of all together.
const MAX_FILE: u64 = 64 << 20;
const MAX_ALL: u64 = 512 << 20;
/// The most inputs.
const MAX_FILES: usize = 10_000;

/// A file of a bundle's inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct InputFile {
    /// Its name in the bundle.
    pub(super) name: String,
    pub(super) bytes: Vec<u8>,
    pub(super) executable: bool,
}

/// A file that scripts name, or that the program reads, and that is no input: it is somewhere else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutsideFile {
    /// Its path on this computer.
    pub path: String,
    /// Its SHA-256; `None`: it could not be read, or is longer than an input may be.
    pub sha256: Option<String>,
}

/// What a scenario's runs read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Inputs {
    /// The scenario's name in the bundle.
    pub(super) scenario: String,
    pub(super) files: Vec<InputFile>,
    pub(super) outside: Vec<OutsideFile>,
}

/// Files as they are on disk, with a note of each that was read.
struct Noting {
    disk: ScenarioFiles,
    read: RefCell<BTreeSet<PathBuf>>,
}

impl Noting {
    fn note(&self, path: &Path) {
        self.read.borrow_mut().insert(path.to_owned());
    }
}

impl Files for Noting {
    fn exists(&self, path: &Path) -> bool {
        self.disk.exists(path)
    }

    fn text(&self, path: &Path) -> std::result::Result<String, FileError> {
        self.note(path);
        self.disk.text(path)
    }

    fn policy(&self, file: &PolicyFile) -> std::result::Result<PolicyCommands, FileError> {
        self.note(&file.path);
        self.disk.policy(file)
    }

    fn distributions(&self) -> Arc<BTreeMap<String, NetemDistribution>> {
        self.disk.distributions()
    }
}

/// Where a scenario's file is: its absolute path without symbolic links, and how it is reached from the
/// working directory. One that is part of the program is where a file of its name would be.
///
/// # Errors
/// It is a symbolic link, or its directory is not there.
pub(super) fn located(path: &Path) -> Result<(PathBuf, PathBuf)> {
    let here = std::env::current_dir().and_then(fs::canonicalize).context("finding the working directory")?;
    let is_library = !path.exists() && library::find(&path.to_string_lossy()).is_some();
    let whole = if is_library {
        names::plain(&here.join(path)).with_extension("toml")
    } else {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name =
            path.file_name().ok_or_else(|| Error::Invalid(format!("{} is no file", path.display())))?;
        fs::canonicalize(parent).context(path.display().to_string())?.join(name)
    };
    if !is_library {
        refuse_link(&whole, path)?;
    }
    let from_here = names::relative(&here, &whole);
    Ok((whole, from_here))
}

/// A file that is a symbolic link, or is reached through one, has another place in a copy.
fn refuse_link(whole: &Path, named: &Path) -> Result<()> {
    let real = fs::canonicalize(whole).context(named.display().to_string())?;
    if real == whole {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "{} is reached through a symbolic link, and is {}; name that file, since a bundle has no links",
        named.display(),
        real.display()
    )))
}

/// Reads every case, and prepares each that names other files than those before it; returns all that was
/// read. `job.path` is relative to the working directory.
///
/// # Errors
/// A case that cannot be read or prepared; a file that is named by an absolute path or through a symbolic
/// link, or whose name no list can have; too many files or bytes.
pub(super) fn gather(job: &SweepJob<'_>, whole: &Path, disk: ScenarioFiles) -> Result<Inputs> {
    let before = input_file::noted();
    let noting = Noting { disk, read: RefCell::default() };
    let mut seen: BTreeSet<String> = BTreeSet::new();
    let last = job.cases.len().saturating_sub(1);
    for case in (0..job.cases.len()).filter(|at| *at < READ_FIRST || *at == last) {
        let mut scenario = read(job, &noting, case).map_err(Error::Invalid)?;
        let sources: Vec<String> =
            scenario.policies.iter().map(|policy| format!("{:?} {:?}", policy.machines, policy.at)).collect();
        let names = scripts(&scenario).next().is_some();
        if names && seen.insert(format!("{sources:?} {:?}", scenario.at)) {
            prepare(&mut scenario, &noting)
                .map_err(|wrong| Error::Invalid(wrong.shown(&scenario.path, &scenario.text)))?;
        }
    }
    let here = std::env::current_dir().and_then(fs::canonicalize).context("finding the working directory")?;
    let mut places: BTreeSet<PathBuf> = BTreeSet::new();
    for named in noting.read.into_inner() {
        if named.is_absolute() {
            return Err(Error::Invalid(format!(
                "{} is an absolute path, which another computer does not have: put the file beside the scenario, \
                and name it relative to that",
                named.display()
            )));
        }
        let file = names::plain(&here.join(&named));
        refuse_link(&file, &named)?;
        places.insert(file);
    }
    // What scripts read in or name, by real paths.
    let also: BTreeSet<PathBuf> =
        input_file::noted().difference(&before).filter(|path| !places.contains(*path)).cloned().collect();
    let dirs = places.iter().map(PathBuf::as_path).chain([whole]).filter_map(Path::parent);
    let base = names::common(dirs);
    let mut outside: BTreeSet<PathBuf> = BTreeSet::new();
    for path in also {
        let is_inside = path.starts_with(&base) && path != *whole;
        if is_inside {
            places.insert(path)
        } else {
            outside.insert(path)
        };
    }
    places.remove(whole);
    collected(job, whole, (&base, places), outside)
}

fn collected(
    job: &SweepJob<'_>,
    whole: &Path,
    (base, places): (&Path, BTreeSet<PathBuf>),
    mut outside: BTreeSet<PathBuf>,
) -> Result<Inputs> {
    let name = |path: &Path| -> Result<String> {
        let inner = path.strip_prefix(base).unwrap_or(path);
        names::of_path(&Path::new(names::INPUTS).join(inner)).map_err(Error::Invalid)
    };
    let scenario = InputFile { name: name(whole)?, bytes: job.text.as_bytes().to_vec(), executable: false };
    let mut inputs = Inputs { scenario: scenario.name.clone(), files: vec![scenario], outside: Vec::new() };
    let mut all = 0;
    for path in places {
        let shown = path.display().to_string();
        let bytes = input_file::read(&path, MAX_FILE).context(shown.clone())?;
        let mode = fs::metadata(&path).context(shown)?.permissions().mode();
        all += bytes.len() as u64;
        if all > MAX_ALL || inputs.files.len() >= MAX_FILES {
            return Err(Error::Invalid(format!(
                "the scenario reads more than {MAX_FILES} files or {} MiB, the most of a bundle",
                MAX_ALL >> 20
            )));
        }
        inputs.files.push(InputFile { name: name(&path)?, bytes, executable: mode & 0o111 != 0 });
    }
    inputs.files.sort_by(|a, b| a.name.cmp(&b.name));
    // Of netem's distributions only this one is no formula's.
    outside.extend(named_absolutely(base, &inputs.files));
    let draws_installed = inputs.files.iter().any(|file| has(&file.bytes, b"experimental"));
    if draws_installed {
        outside.extend(tidegate_loader::distributions::installed_files());
    }
    inputs.outside = outside.iter().map(|path| outside_file(path)).collect();
    Ok(inputs)
}

/// The paths below the directory of all inputs that one of them names absolutely: from there they are read,
/// not from the bundle.
fn named_absolutely(base: &Path, files: &[InputFile]) -> BTreeSet<PathBuf> {
    let ends = |letter: char| letter.is_whitespace() || "'\"`$;&|<>(){}[],=#*?".contains(letter);
    let mut named = BTreeSet::new();
    let Some(base) = base.to_str().filter(|base| *base != "/") else { return named };
    for file in files {
        let text = String::from_utf8_lossy(&file.bytes);
        for (at, _) in text.match_indices(base) {
            let path = text[at..].split(ends).next().unwrap_or_default();
            let is_below = path.len() == base.len() || path[base.len()..].starts_with('/');
            // `/home/a` in `../home/a` begins no path.
            let begins = text[..at].chars().next_back().is_none_or(ends);
            if is_below && begins && named.len() < MAX_FILES {
                named.insert(PathBuf::from(path.trim_end_matches(['.', ':'])));
            }
        }
    }
    named
}

fn has(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|piece| piece == word)
}

fn outside_file(path: &Path) -> OutsideFile {
    // Files of the kernel change, and belong to the computer.
    let is_of_kernel = ["/proc", "/sys", "/dev"].iter().any(|dir| path.starts_with(dir));
    let digest = |path: &Path| -> Option<Hex> {
        input_file::read(path, MAX_FILE).ok().map(|bytes| sums::of_bytes(&bytes))
    };
    OutsideFile {
        path: path.to_string_lossy().into_owned(),
        sha256: (!is_of_kernel).then(|| digest(path)).flatten(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absolute_names_of_inputs_are_found() {
        let file = |text: &str| InputFile { name: "x".into(), bytes: text.into(), executable: false };
        let files = [file(". /w/s/lib.sh; x=\"/w/s/data\"\nD=/w/s\n"), file("../w/s/no /w/sx /x/w/s/y")];
        let named: Vec<String> = named_absolutely(Path::new("/w/s"), &files)
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        assert_eq!(named, ["/w/s", "/w/s/data", "/w/s/lib.sh"]);
        assert!(named_absolutely(Path::new("/"), &files).is_empty());
    }
}
