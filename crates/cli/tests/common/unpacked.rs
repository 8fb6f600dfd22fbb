//! The archives beside the command's tests, unpacked; the crates below replay some of them, too.

// Each test uses its part.
#![allow(dead_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// An unpacked archive, removed at the end.
pub(crate) struct Unpacked(PathBuf);

impl Unpacked {
    pub(crate) fn new(archive: &str) -> Unpacked {
        // Tests of one process may unpack the same archive at once.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("tidegate-test-{}-{count}-{archive}", std::process::id()));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/data").join(archive);
        let file = fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        tar::Archive::new(flate2::read::GzDecoder::new(file)).unpack(&dir).expect("the archive unpacks");
        Unpacked(dir)
    }

    /// What is in it, by name.
    fn entries(&self) -> Vec<PathBuf> {
        let mut all: Vec<PathBuf> =
            fs::read_dir(&self.0).expect("a directory").map(|e| e.expect("an entry").path()).collect();
        all.sort();
        all
    }

    pub(crate) fn folder(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn folders(&self) -> Vec<PathBuf> {
        self.entries().into_iter().filter(|path| path.is_dir()).collect()
    }

    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.entries().into_iter().filter(|path| path.is_file()).collect()
    }
}

impl Drop for Unpacked {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
