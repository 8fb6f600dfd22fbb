//! What is compared in turns.

use std::path::PathBuf;
use std::time::Duration;
use tidegate_apply::Backend;

/// What is compared.
#[derive(Clone, Debug)]
pub struct VerifyOptions {
    /// The policy: the files that `tidegate apply` takes.
    pub policy: Vec<PathBuf>,
    /// The device it is for, instead of the one that it names.
    pub dev: Option<String>,
    /// Whose qdiscs.
    pub backend: Backend,
    /// Instead: a command that puts the policy on.
    pub with: Option<String>,
    /// And one that takes it away.
    pub without: Option<String>,
    /// The test's name, for the document.
    pub test: String,
    /// How often each of the two.
    pub rounds: u32,
    /// How long it may settle after each change.
    pub settle: Duration,
}
