//! R9: connection states that filters read where nothing looks connections up.

use super::making::{at_word, finding};
use crate::finding::{Finding, Fix, Level, Rule};
use crate::reading::PolicyModel;
use tidegate_policy::dump::FilterEntry;
use tidegate_policy::{FilterParams, FlowerField};

/// Filters of flower for a state that no packet has. One finding has the number of the others.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let reading = &*reading;
    if reading.looks_connections_up() {
        return Vec::new();
    }
    let mut idle = reading.filters.iter().filter_map(|dump| {
        let FilterEntry::Filter { params: FilterParams::Flower(flower), .. } = &dump.entry else {
            return None;
        };
        let key = flower.key(FlowerField::CtState).filter(|key| key.value & key.mask != 0)?;
        Some((reading.step_of(reading.maker_of_filter(dump)?)?, key.value & key.mask))
    });
    let Some((step, _)) = idle.next() else { return Vec::new() };
    let word = step.after("ct_state").map_or("ct_state", |word| word.text.as_str());
    let others = match idle.count() {
        0 => String::new(),
        1 => "; 1 other filter by ct_state likewise".to_owned(),
        many => format!("; {many} other filters by ct_state likewise"),
    };
    let mut found = finding(
        Rule::Connmark,
        Level::Warning,
        at_word(step, "ct_state"),
        format!("nothing here looks connections up: the filter for {word} never matches"),
        format!(
            "a packet has a state after the action ct, or where a rule of iptables or nft asks for states, \
            marks of connections or NAT; no command of these files does{others}"
        ),
        "the state of every packet: -trk".into(),
    );
    found.fix = Some(Fix {
        what: "check these files with those of the firewall; on ingress, the action ct in a filter before \
            looks up"
            .into(),
        edits: Vec::new(),
    });
    vec![found]
}
