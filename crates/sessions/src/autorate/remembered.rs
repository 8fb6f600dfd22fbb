//! What a run found of the line's limits, remembered for the next one: a small file for each device, written
//! whole or not at all. What is no such file is said, and passed over.

use std::io;
use std::path::{Path, PathBuf};
use tidegate_control::{LearnedLimits, MAX_RECORD_BYTES};
use tidegate_sys::namespace::NetworkNamespace;
use tidegate_sys::{input_file, output_file};

/// Where they are by default, and another place.
const DIRECTORY: &str = "/var/lib/tidegate-autorate";
const ELSEWHERE: &str = "TIDEGATE_LIMITS";

/// The file of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RememberedLimits {
    path: PathBuf,
}

impl RememberedLimits {
    /// That of a device; `None`: this is a network namespace that a restart does not bring back, so that the
    /// device may be another one next time.
    pub(super) fn of(dev: &str) -> Option<RememberedLimits> {
        let elsewhere = std::env::var_os(ELSEWHERE).map(PathBuf::from);
        let directory =
            elsewhere.or_else(|| NetworkNamespace::is_first().then(|| PathBuf::from(DIRECTORY)))?;
        Some(RememberedLimits::at(&directory, dev))
    }

    fn at(directory: &Path, dev: &str) -> RememberedLimits {
        RememberedLimits { path: directory.join(format!("{dev}.limits")) }
    }

    /// What was found before; nothing, where there is no file.
    ///
    /// # Errors
    /// Why it cannot be used, in words.
    pub(super) fn read(&self) -> Result<LearnedLimits, String> {
        let why = |why: &dyn std::fmt::Display| {
            let path = self.path.display();
            format!("{path}: {why}: the limits in it are not used, and none are remembered; remove it")
        };
        match input_file::read_trusted(&self.path, MAX_RECORD_BYTES as u64) {
            Ok(text) => LearnedLimits::read(&text).map_err(|bad| why(&bad)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(LearnedLimits::default()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                Err(why(&"it is no file of this user's that only this user may write, or is too long"))
            }
            Err(error) => Err(why(&error)),
        }
    }

    /// Writes what was found.
    ///
    /// # Errors
    /// Why it is not remembered, in words.
    pub(super) fn write(&self, learned: &LearnedLimits) -> Result<(), String> {
        let write = || -> io::Result<()> {
            if let Some(directory) = self.path.parent() {
                std::fs::create_dir_all(directory)?;
            }
            output_file::write(&self.path, learned.text().as_bytes())
        };
        write().map_err(|error| format!("{}: {error}: the limits are not remembered", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_read_again_and_what_is_no_record_is_named() {
        let directory = std::env::temp_dir().join(format!("tidegate-limits-{}", std::process::id()));
        let of = RememberedLimits::at(&directory.join("below"), "eth0");
        assert_eq!(of.read(), Ok(LearnedLimits::default()));
        let text = "tidegate-limits 1\nupload 60 60 high 9 8 7 6 5 low -\n";
        let learned = LearnedLimits::read(text).expect("a record");
        of.write(&learned).expect("it is written");
        assert_eq!(of.read(), Ok(learned));
        std::fs::write(&of.path, "tidegate-limits 9\n").expect("it is written");
        let why = of.read().expect_err("another form");
        assert!(why.contains("eth0.limits: line 1: it does not begin with `tidegate-limits 1`"), "{why}");
        std::fs::write(&of.path, "x".repeat(1 + MAX_RECORD_BYTES)).expect("it is written");
        assert!(of.read().expect_err("too long").contains("too long"));
        std::fs::remove_file(&of.path).expect("it is there");
        std::os::unix::fs::symlink("/etc/passwd", &of.path).expect("a link");
        assert!(of.read().is_err());
        std::fs::remove_dir_all(&directory).expect("it is there");
        std::fs::write(&directory, "").expect("a file");
        assert!(of.write(&LearnedLimits::default()).expect_err("no directory").contains("not remembered"));
        std::fs::remove_file(&directory).expect("it is there");
    }
}
