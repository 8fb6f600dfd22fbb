//! The findings of a policy, and whose they are.

use super::allow::Allowed;
use super::path::CommandPath;
use crate::finding::Finding;
use crate::reading::{PolicyModel, Step};

/// What a check came to.
pub struct Checked {
    /// The policy that was checked.
    pub reading: PolicyModel,
    /// What is wrong with it, less what is silenced.
    pub findings: Vec<Finding>,
    /// How many findings comments silenced.
    pub silenced: usize,
    /// What is not in the policy because of how it was read, such as what an argument would have told: a
    /// sentence each.
    pub caveats: Vec<String>,
}

impl Checked {
    /// The findings of a policy less those that its comments allow: `# tidegate: allow R4` behind a command
    /// or above it, `# tidegate: allow-file quantum, R13` anywhere in the file.
    pub fn new(reading: PolicyModel, mut findings: Vec<Finding>) -> Checked {
        let before = findings.len();
        let allowed = Allowed::read(&reading);
        findings.retain(|finding| !allowed.silences(finding, &CommandPath::of(&reading, finding)));
        let silenced = before - findings.len();
        Checked { reading, findings, silenced, caveats: Vec::new() }
    }
}

/// Whether a finding is about a device, as far as its command shows.
pub fn concerns(reading: &PolicyModel, finding: &Finding, dev: &str) -> bool {
    let Some(place) = &finding.place else { return true };
    let here =
        |step: &&Step| step.place.as_ref().is_some_and(|at| at.file == place.file && at.line == place.line);
    let mut steps = reading.steps.iter().filter(here).peekable();
    steps.peek().is_none() || steps.any(|step| step.after("dev").is_none_or(|word| word.text == dev))
}
