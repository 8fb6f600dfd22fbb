//! What the tests of the command share.

// Each test uses its part.
#![allow(dead_code)]

pub(crate) mod computer;
pub(crate) mod papers;
pub(crate) mod policies;
pub(crate) mod schemas;
pub(crate) mod wire;

use std::fs;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// True, with the reason printed, where `script`, which is the terminal of tests, opens none.
pub(crate) fn skip_terminal() -> bool {
    let probe = Command::new("script").args(["-qec", "true", "/dev/null"]).stdin(Stdio::null()).output();
    let reason = match probe {
        Ok(output) if output.status.success() => return false,
        Ok(output) => String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).trim().to_owned(),
        Err(error) => error.to_string(),
    };
    eprintln!("SKIPPED: `script` opens no terminal: {reason}");
    true
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

    /// A copy of `program` that another user can run: the build may lie where only its owner may look.
    pub(crate) fn copy_of(&self, program: &Path) -> PathBuf {
        let copy = self.0.join("program");
        // Copied here, a process that another thread starts meanwhile would hold it open for writing, and it
        // could not be run ("text file busy").
        let done = Command::new("cp").arg(program).arg(&copy).status().expect("cp runs");
        assert!(done.success(), "{} is not copied", program.display());
        copy
    }
}

/// A process that does not outlive its test, however that ends.
pub(crate) struct Guarded(pub(crate) Child);

impl Deref for Guarded {
    type Target = Child;

    fn deref(&self) -> &Child {
        &self.0
    }
}

impl DerefMut for Guarded {
    fn deref_mut(&mut self) -> &mut Child {
        &mut self.0
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// An unpacked archive, removed at the end.
pub(crate) struct Unpacked(PathBuf);

impl Unpacked {
    pub(crate) fn new(archive: &str) -> Unpacked {
        // Tests of one process may unpack the same archive at once.
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir =
            std::env::temp_dir().join(format!("tidegate-test-{}-{count}-{archive}", std::process::id()));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(archive);
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
