//! The rules about classification: which are run, on the whole policy or on its parts.

use super::context::{Checks, RuleContext, not_decided};
use super::{
    actions, bits, capped, collisions, defaults, ecn, idle, inner, intent, l4s, leaf, marks, nqb, parts,
    policed, protocols, reach, rewritten, sizes, today,
};
use crate::finding::Finding;
use crate::probe::Prober;
use crate::reach::Reached;
use crate::reading::PolicyModel;
use crate::walk::outcome::rewrites_marks;
use crate::walk::ways::{self, uses_conntrack};
use crate::words;
use std::collections::BTreeSet;
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::netfilter::NetfilterTarget;

/// Rules of netfilter that are looked into; what has more is a list of addresses, not a policy.
const MOST_RULES: usize = 4000;

/// Those that ask the engine and the words alone.
const WITHOUT_SETS: [Checks; 5] =
    [intent::check, nqb::check, protocols::check, collisions::check, today::check];
/// Those that ask what comes to the filters and classes of a device.
const BY_DEVICE: [Checks; 12] = [
    actions::check,
    actions::only_excess,
    inner::by_filter,
    ecn::check,
    reach::filters,
    marks::unset,
    leaf::check,
    defaults::check,
    capped::check,
    idle::check,
    l4s::check,
    rewritten::addresses,
];
/// All of them, with those that ask what comes to netfilter's rules, whatever device it leaves by.
const ALL: [Checks; 21] = [
    actions::check,
    actions::only_excess,
    inner::by_filter,
    bits::check,
    ecn::check,
    inner::check,
    reach::filters,
    reach::rules,
    intent::check,
    nqb::check,
    protocols::check,
    marks::check,
    leaf::check,
    defaults::check,
    capped::check,
    idle::check,
    l4s::check,
    collisions::check,
    today::check,
    rewritten::addresses,
    rewritten::late,
];

/// What is found about which packets go where. Of a policy too large to decide, whatever part can be decided.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let chains = reading.gateway.all_tables().iter().flat_map(|table| table.chains());
    let count: usize = chains.map(|chain| chain.rules.len()).sum();
    let condition = questions(reading, count);
    let reached = if count <= MOST_RULES { Reached::of(reading) } else { None };
    let whole = reached.is_some();
    let Some(reached) = reached.or_else(|| Reached::nothing(reading)) else {
        return vec![not_decided(format!("the sets of packets for {condition} are too intricate"))];
    };
    let plain = !uses_conntrack(reading);
    let whole_policy = &*reading;
    let mut context = RuleContext {
        prober: Prober::new(whole_policy),
        reading: whole_policy,
        reached,
        plain,
        only: None,
        idle: BTreeSet::new(),
    };
    let found = context.all(whole, count, &condition);
    // What is not decided bounds nothing.
    let policed = policed::find(&mut context).unwrap_or_default();
    let short = sizes::longest(&mut context);
    reading.idle = context.idle;
    reading.policed = policed;
    reading.short = short;
    found
}

impl RuleContext<'_> {
    /// What all rules find; of a policy that is not decided as a whole, those that need no whole.
    fn all(&mut self, whole: bool, count: usize, condition: &str) -> Vec<Finding> {
        if whole {
            let (mut found, silent) = self.ask(&ALL);
            found.extend(self.marks_left_out());
            if silent > 0 {
                let of = ALL.len();
                found.push(not_decided(format!(
                    "{silent} of {of} kinds of questions about {condition} are too intricate; the others were \
                    answered"
                )));
            }
            return found;
        }
        let (mut found, _) = self.ask(&WITHOUT_SETS);
        if count > MOST_RULES {
            found.push(not_decided(format!(
                "there are {count} rules, more than {MOST_RULES}; what does not hang on it was answered"
            )));
            return found;
        }
        found.extend(parts::check(self, &BY_DEVICE, condition));
        found
    }

    /// That nothing was said of marks, where filters write them and anything reads or sets them.
    fn marks_left_out(&self) -> Option<Finding> {
        let reading = self.reading;
        let by_mark = reading.filters.iter().any(|dump| dump.kind == "fw");
        let set = ways::rules(reading)
            .any(|rule| rule.targets().any(|target| matches!(target, NetfilterTarget::Mark { .. })));
        (rewrites_marks(reading) && (by_mark || set)).then(|| Finding {
            what: "what becomes of marks was not decided".to_owned(),
            ..not_decided(
                "filters write them, too; R8 and R9, which follow what rules write, were left out".into(),
            )
        })
    }
}

/// What questions are about, in words: so many filters and rules, or devices that have none.
fn questions(reading: &PolicyModel, rules: usize) -> String {
    let is_filter = |dump: &&FilterDump| matches!(dump.entry, FilterEntry::Filter { .. });
    let filters = reading.filters.iter().filter(is_filter).count();
    match (filters, rules) {
        (0, 0) => words::count(reading.shaped().len(), "device", "devices"),
        (_, 0) => format!("{filters} filters"),
        (0, _) => format!("{rules} rules"),
        _ => format!("{filters} filters and {rules} rules"),
    }
}
