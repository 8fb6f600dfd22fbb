//! Which cases of a scenario are run, how often and how long: what replaces values of its file.

use crate::model::Scenario;
use crate::shell::{exact_time, quoted};
use tidegate_packet::Nanos;

/// Which cases of a scenario are run, how often and how long. The default leaves all to the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CaseChoice {
    /// Only these policies; empty: all.
    pub policies: Vec<String>,
    /// Only these loads; empty: all.
    pub loads: Vec<String>,
    /// Seed of the first repeat.
    pub seed: Option<u64>,
    /// How many times each case is run, each time with the next seed.
    pub repeats: Option<u32>,
    /// How long each run is measured.
    pub duration: Option<Nanos>,
}

impl CaseChoice {
    /// Replaces the scenario's own values.
    ///
    /// # Errors
    /// A policy or load that the scenario does not have; no case is left.
    pub fn narrow(&self, scenario: &mut Scenario) -> Result<(), String> {
        scenario.keep(&self.policies, &self.loads)?;
        scenario.seed = self.seed.unwrap_or(scenario.seed);
        scenario.repeats = self.repeats.unwrap_or(scenario.repeats);
        scenario.duration = self.duration.unwrap_or(scenario.duration);
        Ok(())
    }

    /// The options of `tidegate sim` that choose the same, each with a blank before it.
    ///
    /// ```
    /// use tidegate_scenario::CaseChoice;
    ///
    /// let policies = vec!["fq codel".into()];
    /// let choice = CaseChoice { policies, repeats: Some(3), ..CaseChoice::default() };
    /// assert_eq!(choice.words(Some(1)), " --policy 'fq codel' --repeats 3 --seed 1");
    /// ```
    pub fn words(&self, seed: Option<u64>) -> String {
        let names = |flag: &'static str, names: &[String]| -> String {
            names.iter().map(|name| format!(" --{flag} {}", quoted(name))).collect()
        };
        let mut line = names("policy", &self.policies) + &names("load", &self.loads);
        if let Some(repeats) = self.repeats {
            line.push_str(&format!(" --repeats {repeats}"));
        }
        if let Some(duration) = self.duration {
            line.push_str(&format!(" --duration {}", exact_time(duration)));
        }
        if let Some(seed) = seed {
            line.push_str(&format!(" --seed {seed}"));
        }
        line
    }
}
