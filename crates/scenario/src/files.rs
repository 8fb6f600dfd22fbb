//! Files that a scenario names outside of its own text, and their provider.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegate_packet::KernelModel;
use tidegate_policy::{NetemDistribution, Op};
use tidegate_syntax::TcVersion;

/// Provides the files that a scenario names. This crate opens none itself: a program that has a file system
/// reads them there, a page in a browser takes them from memory.
///
/// ```
/// use std::path::Path;
/// use tidegate_scenario::{Files, NoFiles, PolicyFile, parse};
///
/// let text = "policies.tbf.gateway = 'limit.sh'\n[home]\nup = '2mbit'\ndown = '10mbit'\n";
/// let wrong = parse(Path::new("home.toml"), text, &NoFiles).unwrap_err();
/// assert_eq!(wrong.reason, "there is no file limit.sh");
/// assert_eq!(&text[wrong.at], "'limit.sh'");
/// ```
pub trait Files {
    /// Is there such a file?
    fn exists(&self, path: &Path) -> bool;

    /// The text of a file: a recorded link rate.
    ///
    /// # Errors
    /// Why it cannot be read, for its user.
    fn text(&self, path: &Path) -> Result<String, FileError>;

    /// Loads the policy in a file, of whatever format.
    ///
    /// # Errors
    /// Why it cannot be loaded at all, for its user. What went wrong inside is in the answer.
    fn policy(&self, file: &PolicyFile) -> Result<PolicyCommands, FileError>;

    /// netem's distributions that are read from files, by name; those that can be computed need none.
    fn distributions(&self) -> Arc<BTreeMap<String, NetemDistribution>> {
        Arc::default()
    }
}

/// Why a file cannot be read or loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    reason: String,
}

impl FileError {
    /// For this reason, in words for its user.
    pub fn new(reason: impl fmt::Display) -> FileError {
        FileError { reason: reason.to_string() }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for FileError {}

/// A policy's file that a scenario names, and the machine it is meant for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFile {
    /// The file's path.
    pub path: PathBuf,
    /// Arguments for a script.
    pub args: Vec<String>,
    /// The machine's devices, the one with the default route first.
    pub devices: Vec<String>,
    /// The kernel of the machine.
    pub kernel: KernelModel,
    /// Its tc.
    pub tc: TcVersion,
}

/// What the policy in a file came to.
#[derive(Clone, Debug, Default)]
pub struct PolicyCommands {
    /// The operations that were carried out, in order.
    pub ops: Vec<Op>,
    /// The words of the commands that were carried out.
    pub carried: Vec<Vec<String>>,
    /// The words of every command that was issued, also of those that were refused.
    pub issued: Vec<Vec<String>>,
    /// What the reader of a result should know.
    pub notes: Vec<String>,
    /// The first thing that went wrong.
    pub trouble: Option<String>,
    /// How it ended.
    pub ended: PolicyEnd,
}

/// How loading a policy ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyEnd {
    /// At its end, well.
    #[default]
    Well,
    /// At its end, with an error.
    Failed,
    /// Before its end: half a policy is another policy.
    Cut,
}

/// There are no files: a scenario must hold its policies itself.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFiles;

impl Files for NoFiles {
    fn exists(&self, _: &Path) -> bool {
        false
    }

    fn text(&self, path: &Path) -> Result<String, FileError> {
        Err(FileError::new(format!("there is no file {}", path.display())))
    }

    fn policy(&self, file: &PolicyFile) -> Result<PolicyCommands, FileError> {
        Err(FileError::new(format!("there is no file {}", file.path.display())))
    }
}
