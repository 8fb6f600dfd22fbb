//! What the tests of the command share.

// Each test uses its part.
#![allow(dead_code)]

pub(crate) mod computer;
pub(crate) mod papers;
pub(crate) mod policies;
mod unpacked;
pub(crate) mod wire;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

#[allow(unused_imports, reason = "each test uses its part")]
pub(crate) use unpacked::Unpacked;

pub(crate) const TIDEGATE: &str = env!("CARGO_BIN_EXE_tidegate");

/// True, with the reason printed, where no sandbox can be made.
pub(crate) fn skip() -> bool {
    match tidegate_capture::available(Path::new(TIDEGATE)) {
        Ok(()) => false,
        Err(error) => {
            eprintln!("SKIPPED: {error}");
            true
        }
    }
}

/// A directory that goes when the test ends.
pub(crate) struct Place(pub(crate) PathBuf);

impl Place {
    pub(crate) fn new(name: &str) -> Self {
        let dir = std::env::temp_dir().join(format!("tidegate-test-{name}-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        Self(dir)
    }

    pub(crate) fn file(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::write(&path, text).expect("a file");
        path
    }

    /// A file that can be run.
    pub(crate) fn script(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.file(name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
