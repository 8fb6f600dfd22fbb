//! What is compared in turns.

use std::path::PathBuf;
use std::time::Duration;
use tidegate_apply::BackendChoice;

/// What the two are called in results: without the policy, with it.
///
/// ```
/// // The order of the turns is that of `tidegate_measure::paired`: drifts of the line cancel out.
/// let turns = tidegate_measure::paired::turns(2).map(|with|
/// tidegate_sessions::verify::NAMES[usize::from(with)]); assert_eq!(turns.collect::<Vec<_>>(), ["without",
/// "with", "with", "without"]);
/// ```
pub const NAMES: [&str; 2] = ["without", "with"];

/// What is compared.
#[derive(Clone, Debug)]
pub struct VerifyOptions {
    /// The policy: the files that `tidegate apply` takes.
    pub policy: Vec<PathBuf>,
    /// Arguments for the policy's script.
    pub args: Vec<String>,
    /// The device it is for, instead of the one that it names.
    pub dev: Option<String>,
    /// Whose qdiscs.
    pub backend: BackendChoice,
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
