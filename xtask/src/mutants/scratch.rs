//! The scratch copy of the workspace: written, and built until all that is left compiles.

use super::list::Mutant;
use super::rewrite::{self, Arm, FunctionNumber};
use super::trial::Outcome;
use crate::lanes::{self, Program};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Types are checked, then borrows, then constants: each shows errors that the one before hid.
const MAX_ROUNDS: usize = 20;

const SWITCH: &str = "tidegate-mutant-switch";

/// A copy of the workspace in `target/mutants/scratch`.
pub(super) struct Scratch {
    root: PathBuf,
    copy: PathBuf,
    name: String,
}

/// A build.
pub(super) struct Built {
    pub(super) programs: Vec<Program>,
    /// The function of each change.
    pub(super) functions: BTreeMap<u32, FunctionNumber>,
    /// Changes that are not in it, with why.
    pub(super) dropped: BTreeMap<u32, Outcome>,
}

impl Scratch {
    /// Copies every file of the workspace that git knows or would add.
    pub(super) fn new(root: &Path, name: &str) -> Result<Scratch, String> {
        let copy = root.join("target/mutants/scratch");
        let output = Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
            .current_dir(root)
            .output()
            .map_err(|error| format!("git: {error}"))?;
        let files: BTreeSet<PathBuf> = output
            .stdout
            .split(|byte| *byte == 0)
            .filter(|path| !path.is_empty())
            .map(|path| PathBuf::from(String::from_utf8_lossy(path).into_owned()))
            .filter(|path| root.join(path).is_file())
            .collect();
        remove_others(&copy, &copy, &files)?;
        for file in &files {
            let from = root.join(file);
            let bytes = fs::read(&from).map_err(|error| format!("{}: {error}", from.display()))?;
            write_changed(&copy.join(file), &bytes)?;
        }
        let scratch = Scratch { root: root.to_owned(), copy, name: name.to_owned() };
        scratch.add_switch()?;
        Ok(scratch)
    }

    /// Adds the crate that reads the switch, and the dependency on it.
    fn add_switch(&self) -> Result<(), String> {
        let folder = self.copy.join("crates").join(SWITCH);
        let manifest = format!("[package]\nname = \"{SWITCH}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n");
        write_changed(&folder.join("Cargo.toml"), manifest.as_bytes())?;
        write_changed(&folder.join("src/lib.rs"), include_bytes!("switch.txt"))?;
        let path = self.copy.join("crates").join(&self.name).join("Cargo.toml");
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        let line = format!("[dependencies]\n{SWITCH} = {{ path = \"../{SWITCH}\" }}\n");
        let text = if text.contains("[dependencies]\n") {
            text.replacen("[dependencies]\n", &line, 1)
        } else {
            format!("{text}\n{line}")
        };
        write_changed(&path, text.as_bytes())
    }

    /// Builds the crate's tests with those of the changes that compile.
    pub(super) fn build(&self, batch: &[Mutant]) -> Result<Built, String> {
        let mut dropped = BTreeMap::new();
        for _ in 0..MAX_ROUNDS {
            let mut functions = BTreeMap::new();
            let arms = self.write(batch, &mut dropped, &mut functions)?;
            let messages = self.cargo()?;
            let before = dropped.len();
            let strangers = drop_by_errors(&messages, &arms, &mut dropped);
            if dropped.len() > before {
                println!("  {} changes do not compile so far", dropped.len());
                continue;
            }
            if !strangers.is_empty() {
                return Err(format!("the scratch copy does not compile:\n{}", strangers.join("\n")));
            }
            let programs = lanes::programs(&messages);
            if programs.is_empty() {
                return Err(format!("no test program was built in {}", self.copy.display()));
            }
            return Ok(Built { programs, functions, dropped });
        }
        Err(format!("after {MAX_ROUNDS} builds there are still changes that do not compile"))
    }

    /// Writes every file of the crate with the changes that are left.
    fn write(
        &self,
        batch: &[Mutant],
        dropped: &mut BTreeMap<u32, Outcome>,
        functions: &mut BTreeMap<u32, FunctionNumber>,
    ) -> Result<BTreeMap<String, Vec<Arm>>, String> {
        let mut files: BTreeMap<&str, Vec<&Mutant>> = BTreeMap::new();
        for mutant in batch {
            let left = files.entry(&mutant.file).or_default();
            if !dropped.contains_key(&mutant.number) {
                left.push(mutant);
            }
        }
        // Files that an earlier build changed, and this one does not, are as they were.
        let mut sources = Vec::new();
        crate::walls::collect(&self.root.join("crates").join(&self.name).join("src"), &mut sources)?;
        let mut next = 0;
        let mut arms = BTreeMap::new();
        for path in sources {
            let Ok(file) = path.strip_prefix(&self.root) else { continue };
            let file = file.to_string_lossy().into_owned();
            let bytes = fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            let Some(mutants) = files.get(file.as_str()) else {
                write_changed(&self.copy.join(&file), &bytes)?;
                continue;
            };
            let text = String::from_utf8(bytes).map_err(|error| format!("{file}: {error}"))?;
            let rewritten = rewrite::rewrite(&text, mutants, &mut next);
            write_changed(&self.copy.join(&file), rewritten.text.as_bytes())?;
            functions.extend(rewritten.functions);
            dropped.extend(rewritten.outside.into_iter().map(|number| (number, Outcome::NoSwitch)));
            arms.insert(file, rewritten.arms);
        }
        Ok(arms)
    }

    /// What cargo says of a build of the tests.
    fn cargo(&self) -> Result<String, String> {
        let package =
            if self.name == "cli" { "tidegate".to_owned() } else { format!("tidegate-{}", self.name) };
        let output = Command::new("cargo")
            .args([
                "test",
                "--no-run",
                "--offline",
                "--profile",
                "mutants",
                "--message-format=json",
                "--lib",
                "--tests",
            ])
            .args(["-p", &package])
            .current_dir(&self.copy)
            .env("CARGO_TARGET_DIR", self.root.join("target/mutants/build"))
            .env("CARGO_INCREMENTAL", "0")
            .env("RUSTFLAGS", "--cap-lints=allow")
            .env("RUSTC_BOOTSTRAP", SWITCH.replace('-', "_"))
            .output()
            .map_err(|error| format!("cargo: {error}"))?;
        let messages = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() && !messages.contains("\"compiler-message\"") {
            return Err(String::from_utf8_lossy(&output.stderr).into_owned());
        }
        Ok(messages)
    }
}

/// Drops the changes where the compiler sees errors; returns the errors that are at none.
fn drop_by_errors(
    messages: &str,
    arms: &BTreeMap<String, Vec<Arm>>,
    dropped: &mut BTreeMap<u32, Outcome>,
) -> Vec<String> {
    let (mut strangers, mut originals) = (Vec::new(), Vec::new());
    let before = dropped.len();
    for message in messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        if message["reason"] != "compiler-message" || message["message"]["level"] != "error" {
            continue;
        }
        let mut places = Vec::new();
        places_of(&message["message"], &mut places);
        let found = places.iter().find_map(|(file, line)| {
            let within = |arm: &&Arm| arm.lines.0 <= *line && *line <= arm.lines.1;
            // Of arms within each other the innermost is meant.
            arms.get(file)?.iter().filter(within).min_by_key(|arm| arm.lines.1 - arm.lines.0)
        });
        match found {
            Some(arm) if arm.is_original => originals.push(arm),
            Some(arm) => dropped.extend(arm.mutants.iter().map(|number| (*number, Outcome::NoBuild))),
            None if message["message"]["spans"].as_array().is_none_or(Vec::is_empty) => {}
            None => strangers.push(message["message"]["rendered"].as_str().unwrap_or("?").to_owned()),
        }
    }
    // The original is at fault only where nothing else is: copies of other types, which cannot stand beside
    // it.
    if dropped.len() == before {
        for arm in originals {
            dropped.extend(arm.mutants.iter().map(|number| (*number, Outcome::NoSwitch)));
        }
    }
    strangers
}

/// Where an error stands: first its own places, then those of macros' calls, then those of its notes.
fn places_of(message: &Value, into: &mut Vec<(String, usize)>) {
    let spans = message["spans"].as_array().map_or(&[] as &[Value], Vec::as_slice);
    let primary = spans.iter().filter(|span| span["is_primary"] == true);
    for span in primary.chain(spans.iter().filter(|span| span["is_primary"] != true)) {
        let mut span = span;
        while span.is_object() {
            let line = span["line_start"].as_u64().and_then(|line| usize::try_from(line).ok());
            if let (Some(file), Some(line)) = (span["file_name"].as_str(), line) {
                into.push((file.to_owned(), line));
            }
            span = &span["expansion"]["span"];
        }
    }
    for child in message["children"].as_array().map_or(&[] as &[Value], Vec::as_slice) {
        places_of(child, into);
    }
}

/// Writes a file unless it is the same: cargo builds again what is newer.
fn write_changed(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    let write = || {
        fs::create_dir_all(path.parent().unwrap_or(path))?;
        fs::write(path, bytes)
    };
    write().map_err(|error| format!("{}: {error}", path.display()))
}

/// Removes files of an earlier copy that are gone from the workspace.
fn remove_others(copy: &Path, dir: &Path, files: &BTreeSet<PathBuf>) -> Result<(), String> {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            remove_others(copy, &path, files)?;
        } else if path.strip_prefix(copy).is_ok_and(|inner| !files.contains(inner)) {
            fs::remove_file(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_error_drops_the_change_that_contains_it() {
        let arm = |lines, mutants: &[u32], is_original| Arm { lines, mutants: mutants.to_vec(), is_original };
        let arms = [(
            "a.rs".to_owned(),
            vec![arm((2, 4), &[7], false), arm((5, 20), &[7, 8], true), arm((8, 9), &[9], false)],
        )];
        let arms = BTreeMap::from(arms);
        let error = |file: &str, line: u32| {
            let spans = json!([{"file_name": file, "line_start": line, "is_primary": true}]);
            json!({"reason": "compiler-message", "message": {"level": "error", "rendered": "bad", "spans": spans}})
        };
        let read = |errors: &[Value]| {
            let messages: Vec<String> = errors.iter().map(Value::to_string).collect();
            let mut dropped = BTreeMap::new();
            let strangers = drop_by_errors(&messages.join("\n"), &arms, &mut dropped);
            (
                dropped.into_iter().map(|(number, why)| (number, why.word())).collect::<Vec<_>>(),
                strangers.len(),
            )
        };
        assert_eq!(read(&[error("a.rs", 3), error("a.rs", 8)]), (vec![(7, "no-build"), (9, "no-build")], 0));
        assert_eq!(read(&[error("a.rs", 3), error("a.rs", 6)]), (vec![(7, "no-build")], 0));
        assert_eq!(read(&[error("a.rs", 6)]), (vec![(7, "no-switch"), (8, "no-switch")], 0));
        assert_eq!(read(&[error("b.rs", 3)]), (vec![], 1));
    }
}
