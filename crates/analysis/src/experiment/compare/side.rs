//! One of the results that are compared.

use tidegate_measure::experiment::{Experiment, PolicyRecord};

/// What the policy of a case is called where each side is a policy.
pub(super) const OF_EACH: &str = "";

/// A result and what it is called here.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// A short name: its file's.
    pub label: String,
    /// The result.
    pub experiment: Experiment,
}

impl Side {
    /// The policies of one result, each as a result of its own, to be compared with each other. Their
    /// policies all have the name [`OF_EACH`], so that their cases match.
    pub fn policies(experiment: &Experiment) -> Vec<Side> {
        let of = |policy: &PolicyRecord| {
            let mut one = experiment.clone();
            one.comparisons.clear();
            one.policies = vec![PolicyRecord { name: OF_EACH.to_owned(), ..policy.clone() }];
            one.runs.retain(|run| run.policy == policy.name);
            one.runs.iter_mut().for_each(|run| OF_EACH.clone_into(&mut run.policy));
            Side { label: policy.name.clone(), experiment: one }
        };
        experiment.policies.iter().map(of).filter(|side| !side.experiment.runs.is_empty()).collect()
    }
}

/// How a result came about, and by which version of what.
pub fn by(experiment: &Experiment) -> String {
    match experiment.execution.as_str() {
        "flent" => format!("flent {}", experiment.version),
        execution => format!("{execution}, tidegate {}", experiment.version),
    }
}
