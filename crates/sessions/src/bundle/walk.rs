//! The files of a bundle as they are on disk: regular ones only, whose names every list can have.

use super::names;
use crate::error::{Context, Error, Result};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The most files and directories of a bundle.
const MAX_ENTRIES: usize = 50_000;

/// The names of all files below a directory.
///
/// # Errors
/// A symbolic link, a device or another thing that is no file; a name that no list can have; too many.
pub(super) fn files(dir: &Path) -> Result<BTreeSet<String>> {
    let (mut found, mut waiting, mut seen) = (BTreeSet::new(), vec![dir.to_owned()], 0);
    while let Some(at) = waiting.pop() {
        for entry in fs::read_dir(&at).context(format!("cannot read {}", at.display()))? {
            let entry = entry.context(format!("cannot read {}", at.display()))?;
            seen += 1;
            if seen > MAX_ENTRIES {
                return Err(Error::Invalid(format!("{} has more than {MAX_ENTRIES} files", dir.display())));
            }
            let path = entry.path();
            let name = names::of_path(path.strip_prefix(dir).unwrap_or(&path)).map_err(Error::Invalid)?;
            // Of the entry itself: links are not followed.
            let kind = entry.file_type().context(name.clone())?;
            if kind.is_dir() {
                waiting.push(path);
            } else if kind.is_file() {
                found.insert(name);
            } else {
                let what = if kind.is_symlink() { "a symbolic link" } else { "no file" };
                return Err(Error::Invalid(format!("`{name}` is {what}, and a bundle has files only")));
            }
        }
    }
    Ok(found)
}
