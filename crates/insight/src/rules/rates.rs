//! R3 and R5: rates, ceils and priorities of HTB that do not fit one another.

use crate::finding::{Edit, Finding, Fix, Level, Rule, Witness};
use crate::reading::Reading;
use tidegate_policy::ClassParams;
use tidegate_policy::dump::ClassDump;

/// What is wrong with the rates of HTB's classes.
pub(super) fn check(reading: &mut Reading) -> Vec<Finding> {
    reading.classes.iter().filter_map(|class| above_ceil(reading, class)).collect()
}

/// A rate above its own ceil: the class never gets it.
fn above_ceil(reading: &Reading, class: &ClassDump) -> Option<Finding> {
    let ClassParams::Htb(htb) = &class.params else { return None };
    let (rate, ceil) = (htb.rate.rate, htb.ceil.rate);
    if rate <= ceil {
        return None;
    }
    let step = reading.step_of(reading.maker_of_class(&class.dev, class.classid)?)?;
    let [_, said] = step.option("ceil")?;
    let place = said.place.clone().or_else(|| step.place.clone());
    let edit = said.place.clone().zip(step.after("rate")).map(|(place, rate)| Edit { place, text: rate.text.clone() });
    Some(Finding {
        rule: Rule::Rates,
        level: Level::Error,
        place,
        what: format!("class {} is held to less than its own rate", class.classid),
        because: format!("it never gets more than {} bit/s of the {} bit/s it is promised", ceil.0 * 8, rate.0 * 8),
        witness: Some(Witness::Number(format!("ceil {} bit/s < rate {} bit/s", ceil.0 * 8, rate.0 * 8))),
        fix: Some(Fix { what: "raise the ceil to the rate".into(), edits: edit.into_iter().collect() }),
    })
}
