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
    /// The copies.
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
    let mut copies = Vec::new();
    for (source, mut text) in sources.iter().zip(texts) {
        let original = Path::new(&source.name);
        let path = match (several, original.file_name()) {
            (true, Some(name)) => copy.join(name),
            _ => copy.to_owned(),
        };
        if std::fs::canonicalize(&path).ok().is_some_and(|there| std::fs::canonicalize(original).ok() == Some(there)) {
            bail!("--fix writes a copy, and {} is the file itself; name another", path.display());
        }
        if several {
            std::fs::create_dir_all(copy).with_context(|| format!("{} cannot be made", copy.display()))?;
        }
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
        crate::output::file(&path, text)?;
        // A script stays one that can be run.
        if let Ok(found) = std::fs::metadata(original) {
            let _ = std::fs::set_permissions(&path, found.permissions());
        }
        copies.push(path);
    }
    Ok(Fixed { findings, left, copies })
}
