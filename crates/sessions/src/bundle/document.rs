//! `provenance.json`: what was done with what, and what came of it.

use super::commands::BundleCommand;
use super::inputs::OutsideFile;
use super::names;
use serde_json::{Value, json};

/// The form's number.
const FORM: u64 = 1;

/// A program file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProgramFile {
    /// Its SHA-256.
    pub sha256: String,
    /// Its length, bytes.
    pub bytes: u64,
    /// What it runs on: `x86_64-linux`.
    pub platform: String,
}

/// A file of a bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundledFile {
    /// Its name in the bundle.
    pub name: String,
    /// Its SHA-256.
    pub sha256: String,
    /// Its length, bytes.
    pub bytes: u64,
}

/// What was done with what, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provenance {
    /// The program's version.
    pub version: String,
    /// The program.
    pub program: ProgramFile,
    /// The scenario's name in the bundle.
    pub scenario: String,
    /// The sweep's id, as its rows have it.
    pub sweep: String,
    /// How many runs it has.
    pub runs: u64,
    /// The seeds of its runs, ascending.
    pub seeds: Vec<u64>,
    /// The commands, in the order in which they run, in the bundle's directory.
    pub commands: Vec<BundleCommand>,
    /// The scenario and what it reads.
    pub inputs: Vec<BundledFile>,
    /// Files that scripts name and that are not in the bundle.
    pub outside: Vec<OutsideFile>,
    /// What the commands wrote.
    pub results: Vec<BundledFile>,
}

impl Provenance {
    /// As a document; docs/sweep.md describes the members.
    #[must_use]
    pub fn json(&self) -> String {
        let files = |all: &[BundledFile]| -> Vec<Value> {
            let one =
                |file: &BundledFile| json!({"name": file.name, "sha256": file.sha256, "bytes": file.bytes});
            all.iter().map(one).collect()
        };
        let outside: Vec<Value> =
            self.outside.iter().map(|file| json!({"path": file.path, "sha256": file.sha256})).collect();
        let commands: Vec<Value> =
            self.commands.iter().map(|one| json!({"words": one.words, "exit": one.exit})).collect();
        let program = &self.program;
        let document = json!({
            "tidegate_bundle": FORM,
            "version": self.version,
            "program": {"sha256": program.sha256, "bytes": program.bytes, "platform": program.platform},
            "scenario": self.scenario,
            "sweep": self.sweep,
            "runs": self.runs,
            "seeds": self.seeds,
            "commands": commands,
            "inputs": files(&self.inputs),
            "outside": outside,
            "results": files(&self.results),
        });
        format!("{}\n", tidegate_text::json(&format!("{document:#}")))
    }
}

/// What a check needs of a document that may come from a stranger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Recipe {
    pub(super) version: String,
    pub(super) program: String,
    pub(super) commands: Vec<BundleCommand>,
    pub(super) scenario: String,
    pub(super) sweep: String,
    pub(super) runs: u64,
    pub(super) seeds: Vec<u64>,
    /// Inputs and results.
    pub(super) files: Vec<BundledFile>,
}

/// Reads the document as far as a check needs it.
///
/// # Errors
/// What is missing or of another form.
pub(super) fn recipe(text: &str) -> Result<Recipe, String> {
    let document: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    match document["tidegate_bundle"].as_u64() {
        Some(FORM) => {}
        Some(other) => return Err(format!("it has form {other}, and this program reads form {FORM}")),
        None => return Err("it is no document of `tidegate bundle`".into()),
    }
    let text = |value: &Value, name: &str| -> Result<String, String> {
        value.as_str().map(str::to_owned).ok_or_else(|| format!("`{name}` is no text"))
    };
    let list = document["commands"].as_array().ok_or("`commands` is no list")?;
    let command = |value: &Value| -> Result<BundleCommand, String> {
        let words = value["words"].as_array().ok_or("`words` is no list")?;
        let words = words.iter().map(|word| text(word, "words")).collect::<Result<_, _>>()?;
        let exit = value["exit"].as_u64().and_then(|exit| u8::try_from(exit).ok());
        Ok(BundleCommand { words, exit: exit.ok_or("`exit` is no exit code")? })
    };
    let commands = list.iter().map(command).collect::<Result<_, _>>()?;
    let number = |value: &Value, name: &str| value.as_u64().ok_or_else(|| format!("`{name}` is no number"));
    let file = |value: &Value| -> Result<BundledFile, String> {
        let name = text(&value["name"], "name")?;
        names::checked(&name)?;
        Ok(BundledFile {
            name,
            sha256: text(&value["sha256"], "sha256")?,
            bytes: number(&value["bytes"], "bytes")?,
        })
    };
    let mut files = Vec::new();
    for list in ["inputs", "results"] {
        let all = document[list].as_array().ok_or_else(|| format!("`{list}` is no list"))?;
        files.extend(all.iter().map(file).collect::<Result<Vec<_>, String>>()?);
    }
    let seeds = document["seeds"].as_array().ok_or("`seeds` is no list")?;
    Ok(Recipe {
        scenario: text(&document["scenario"], "scenario")?,
        sweep: text(&document["sweep"], "sweep")?,
        runs: number(&document["runs"], "runs")?,
        seeds: seeds.iter().map(|seed| number(seed, "seeds")).collect::<Result<_, _>>()?,
        files,
        version: text(&document["version"], "version")?,
        program: text(&document["program"]["sha256"], "program.sha256")?,
        commands,
    })
}

/// What was compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BundleFault {
    /// The content is another than the list says.
    Changed,
    /// It is listed, and not there.
    Missing,
    /// It is there, and not listed.
    Added,
    /// What the commands wrote now is another result.
    Differs,
    /// The commands did not write it now.
    NotWritten,
    /// `provenance.json` says another SHA-256 or length of it, or does not name it.
    NotAsStated,
    /// `provenance.json` names it, and the list does not.
    NotListed,
    /// Its sweep, runs or seeds are not those of the rows, or its scenario is no input.
    OtherRuns,
}

impl BundleFault {
    /// One word for documents.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            BundleFault::Changed => "changed",
            BundleFault::Missing => "missing",
            BundleFault::Added => "added",
            BundleFault::Differs => "differs",
            BundleFault::NotWritten => "not written",
            BundleFault::NotAsStated => "not as stated",
            BundleFault::NotListed => "not listed",
            BundleFault::OtherRuns => "other runs",
        }
    }
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BundleCheck {
    /// How many files were compared with the list.
    pub files: u64,
    /// The version that made the bundle, and the program's SHA-256.
    pub version: String,
    /// See there.
    pub program: String,
    /// Whether this program is that one, to the byte.
    pub same_program: bool,
    /// What is not as it was.
    pub faults: Vec<(String, BundleFault)>,
    /// How many results were made again; `None`: nothing was run.
    pub results: Option<u64>,
}

impl BundleCheck {
    /// As a document.
    #[must_use]
    pub fn json(&self) -> String {
        let fault = |(name, fault): &(String, BundleFault)| json!({"name": name, "what": fault.word()});
        let document = json!({
            "tidegate_bundle_check": FORM,
            "files": self.files,
            "version": self.version,
            "program": self.program,
            "same_program": self.same_program,
            "results": self.results,
            "faults": self.faults.iter().map(fault).collect::<Vec<_>>(),
        });
        format!("{}\n", tidegate_text::json(&format!("{document:#}")))
    }
}

/// The file of a list that is a result.
pub(super) fn is_result(name: &str) -> bool {
    [names::RESULTS, names::FIGURES]
        .iter()
        .any(|dir| name.split_once('/').is_some_and(|(first, _)| first == *dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_read_as_it_is_written() {
        let commands = vec![BundleCommand { words: vec!["sweep".into(), "inputs/s.toml".into()], exit: 0 }];
        let provenance =
            Provenance { version: "0.2.0".into(), commands: commands.clone(), ..Provenance::default() };
        let read = recipe(&provenance.json());
        let expected = Recipe {
            version: "0.2.0".into(),
            program: String::new(),
            commands,
            scenario: String::new(),
            sweep: String::new(),
            runs: 0,
            seeds: Vec::new(),
            files: Vec::new(),
        };
        assert_eq!(read, Ok(expected));
        for (text, why) in [
            ("{", "EOF"),
            ("{}", "no document of"),
            (r#"{"tidegate_bundle": 2}"#, "form 2"),
            (r#"{"tidegate_bundle": 1}"#, "`commands` is no list"),
            (r#"{"tidegate_bundle": 1, "commands": [{"words": [1]}]}"#, "no text"),
            (r#"{"tidegate_bundle": 1, "commands": [], "inputs": 3}"#, "`inputs` is no list"),
            (r#"{"tidegate_bundle": 1, "commands": [], "inputs": [{"name": "../x"}]}"#, "no path below"),
            (r#"{"tidegate_bundle": 1, "commands": [{"words": [], "exit": 700}]}"#, "no exit code"),
        ] {
            assert!(recipe(text).is_err_and(|wrong| wrong.contains(why)), "{text}");
        }
        assert!(is_result("results/rows.csv") && !is_result("inputs/results/x") && !is_result("results"));
    }
}
