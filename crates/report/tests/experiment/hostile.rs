//! Names that try to become markup stay text on the pages of experiments and comparisons.

use crate::fixture::experiment::experiment;
use crate::inert::{EVIL, loose};
use serde_json::Value;
use tidegate_analysis::experiment::{Comparing, Side, from_json, to_json};
use tidegate_measure::experiment::Experiment;
use tidegate_report::experiment::{comparison_page, page};

/// Puts it behind every text of a document.
fn spoil(value: &mut Value) {
    match value {
        Value::String(text) => text.push_str(EVIL),
        Value::Array(all) => all.iter_mut().for_each(spoil),
        Value::Object(all) => all.values_mut().for_each(spoil),
        _ => {}
    }
}

fn spoilt() -> Experiment {
    let mut document: Value = serde_json::from_str(&to_json(&experiment())).expect("JSON");
    spoil(&mut document);
    from_json(&document.to_string()).expect("names may be anything")
}

#[test]
fn names_of_an_experiment() {
    let page = page(&spoilt());
    assert_eq!(loose(&page), Vec::<String>::new());
    // Titles, names, commands, what was answered: each more than once.
    assert!(page.matches("&lt;img src=x").count() > 100);
}

#[test]
fn names_of_a_comparison() {
    let mut other = spoilt();
    other.policies.remove(0);
    let sides = [("before", spoilt()), ("after", other)];
    let sides = sides.map(|(label, experiment)| Side { label: format!("{label}{EVIL}"), experiment });
    let page = comparison_page(&Comparing::new(&sides));
    assert_eq!(loose(&page), Vec::<String>::new());
    assert!(page.matches("&lt;img src=x").count() > 100);
}
