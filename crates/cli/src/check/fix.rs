//! `--fix`: a copy of the files with the replacements made.

use anyhow::{Context, bail};
use std::path::{Path, PathBuf};
use tidegate_inspect::checked::{Checked, FixedTexts, fixed_texts};

/// What was fixed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Fixed {
    /// How many findings.
    pub(super) findings: usize,
    /// How many more have a fix, in places that another fix has changed.
    pub(super) left: usize,
    /// The copies that were written.
    pub(super) copies: Vec<PathBuf>,
}

/// Writes the copies.
///
/// # Errors
/// They cannot be written, or would replace what was read.
pub(super) fn write(checked: &Checked, copy: &Path) -> anyhow::Result<Fixed> {
    let sources = &checked.reading.sources;
    let FixedTexts { findings, left, texts } = fixed_texts(checked);
    let several = sources.len() > 1;
    let copies: Vec<PathBuf> =
        sources.iter().map(|source| copy_of(Path::new(&source.name), copy, several)).collect();
    if let Some((at, twice)) = copies.iter().enumerate().find(|(at, path)| copies[..*at].contains(path)) {
        let first = copies.iter().position(|path| path == twice).unwrap_or(at);
        let (first, second) = (&sources[first].name, &sources[at].name);
        bail!(
            "--fix would write {first} and {second} to {}; check files of the same name apart",
            twice.display()
        );
    }
    // A directory that is made now has nothing in it.
    if !several || copy.exists() {
        crate::output::may_write(copies.iter().map(PathBuf::as_path)).context("--fix writes a copy")?;
    }
    if several {
        crate::output::directory(copy)?;
    }
    for ((source, mut text), path) in sources.iter().zip(texts).zip(&copies) {
        let original = Path::new(&source.name);
        if let Ok(bytes) = std::fs::read(original) {
            if std::str::from_utf8(&bytes).is_err() {
                bail!(
                    "{} is not UTF-8, so a copy would not be the same elsewhere; nothing is written",
                    original.display()
                );
            }
            if !bytes.ends_with(b"\n") {
                text.pop();
            }
        }
        crate::output::file(path, text)?;
        // A script stays one that can be run.
        if let Ok(found) = std::fs::metadata(original) {
            let _ = std::fs::set_permissions(path, found.permissions());
        }
    }
    Ok(Fixed { findings, left, copies })
}

/// Where the copy of a file goes: of several, under its name in a directory.
fn copy_of(original: &Path, copy: &Path, several: bool) -> PathBuf {
    match (several, original.file_name()) {
        (true, Some(name)) => copy.join(name),
        _ => copy.to_owned(),
    }
}
