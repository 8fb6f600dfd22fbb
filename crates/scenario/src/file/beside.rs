//! The files beside a scenario.

use crate::files::{FileError, Files};
use std::path::{Path, PathBuf};

/// The directory of a scenario's file, and the reader of the files that it names.
pub(super) struct Beside<'f> {
    dir: PathBuf,
    files: &'f dyn Files,
}

impl<'f> Beside<'f> {
    /// Beside a file.
    pub(super) fn new(path: &Path, files: &'f dyn Files) -> Beside<'f> {
        Beside { dir: path.parent().unwrap_or(Path::new("")).to_owned(), files }
    }

    /// The path of a file that is named in the scenario.
    pub(super) fn join(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Is there such a file?
    pub(super) fn exists(&self, path: &Path) -> bool {
        self.files.exists(path)
    }

    /// The content of a file.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(super) fn text(&self, path: &Path) -> Result<String, FileError> {
        self.files.text(path)
    }
}
