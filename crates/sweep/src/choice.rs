//! What is varied beside a scenario's own `[sweep]`, or in its place.

use crate::axis::{BadAxis, SweepAxis};
use crate::file::{SweepFile, read};
use crate::plan::Method;
use std::error::Error;
use std::fmt;
use tidegate_scenario::CaseChoice;
use tidegate_scenario::model::Scenario;
use tidegate_scenario::settings::full_path;
use tidegate_scenario::tables::Diagnostic;

/// What is varied beside a scenario's own `[sweep]`, or in its place: the options of `tidegate sweep`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SweepChoice {
    /// Parameters, each `PATH=VALUES`.
    pub set: Vec<String>,
    /// How the values are put together; `None`: as the file says.
    pub method: Option<Method>,
    /// Cases for which one of these does not hold are left out.
    pub only: Vec<String>,
    /// Cases for which one of these holds are left out.
    pub skip: Vec<String>,
    /// The figures that are kept; empty: as the file says.
    pub figures: Vec<String>,
    /// Which cases of the scenario are run.
    pub cases: CaseChoice,
}

/// Why a sweep cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BadSweep {
    /// The scenario's `[sweep]`.
    File(Diagnostic),
    /// A parameter of [`SweepChoice::set`].
    Setting {
        /// As it was given.
        setting: String,
        /// Why.
        why: BadAxis,
    },
}

impl fmt::Display for BadSweep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadSweep::File(wrong) => wrong.fmt(f),
            BadSweep::Setting { setting, why } => write!(f, "{setting}: {why}"),
        }
    }
}

impl Error for BadSweep {}

impl SweepFile {
    /// What a scenario's text plans, with a choice over it.
    ///
    /// ```
    /// use tidegate_sweep::{SweepChoice, SweepFile};
    ///
    /// let text = "[sweep.set]\n'home.rtt' = '10ms,20ms'\n";
    /// let choice = SweepChoice { set: vec!["home.rtt=10ms..160ms:log5".into()], ..SweepChoice::default() };
    /// let sweep = SweepFile::planned(text, choice).unwrap();
    /// assert_eq!(sweep.plan.cases().unwrap().len(), 5);
    /// ```
    ///
    /// # Errors
    /// What is wrong with the file's table or with a parameter.
    pub fn planned(text: &str, choice: SweepChoice) -> Result<SweepFile, BadSweep> {
        let mut file = read(text).map_err(BadSweep::File)?;
        let plan = &mut file.plan;
        for setting in choice.set {
            let axis = match SweepAxis::parse(&setting) {
                Ok(axis) => axis,
                Err(why) => return Err(BadSweep::Setting { setting, why }),
            };
            let axis = SweepAxis { path: full_path(text, &axis.path), ..axis };
            match plan.axes.iter_mut().find(|known| known.path == axis.path) {
                Some(known) => *known = axis,
                None => plan.axes.push(axis),
            }
        }
        plan.method = choice.method.unwrap_or(plan.method);
        plan.only.extend(choice.only);
        plan.skip.extend(choice.skip);
        plan.seed = choice.cases.seed.unwrap_or(1);
        if !choice.figures.is_empty() {
            file.figures = choice.figures;
        }
        file.choice = choice.cases;
        Ok(file)
    }

    /// Replaces a scenario's own values.
    ///
    /// # Errors
    /// A policy or load that the scenario does not have; no case is left.
    pub fn narrow(&self, scenario: &mut Scenario) -> Result<(), String> {
        scenario.repeats = self.repeats.unwrap_or(scenario.repeats);
        self.choice.narrow(scenario)
    }
}
