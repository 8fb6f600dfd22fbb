//! C4: a policy that is too large, or does something that is not followed, is checked device by device; what
//! was left out is reported.

use super::context::{Checks, RuleContext, not_decided};
use super::defaults;
use crate::finding::Finding;
use crate::reach::Reached;
use crate::reading::PolicyModel;
use crate::walk::outcome::{followed, redirects};
use crate::walk::ways::marks_connections;
use crate::words::named;
use std::collections::BTreeSet;
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::{Act, Control};

/// Devices that turn out too large before the rest is left out, too: each takes seconds.
const MOST_FAILED: usize = 2;

/// Asks some kinds of rules about each device that can be decided alone.
pub(super) fn check(context: &mut RuleContext<'_>, families: &[Checks], condition: &str) -> Vec<Finding> {
    let reading = context.reading;
    let mut devices: Vec<String> = reading.shaped().into_iter().map(str::to_owned).collect();
    devices.extend(reading.filters.iter().map(|dump| dump.dev.clone()));
    devices.sort();
    devices.dedup();
    let (mut found, mut decided, mut reasons) = (Vec::new(), Vec::new(), Vec::new());
    let (mut left_out, mut failed) = (Vec::new(), 0);
    let everywhere = reading.filters.iter().find_map(|dump| foreign(reading, dump));
    for device in devices {
        let sources = sources(reading, &device);
        let here = |dump: &&FilterDump| sources.contains(&dump.dev);
        let beyond = reading.filters.iter().filter(here).find_map(|dump| beyond(reading, dump));
        if let Some(why) = everywhere.clone().or(beyond) {
            reasons.push(why);
            left_out.push(device);
            continue;
        }
        let reached = if failed < MOST_FAILED { Reached::of_part(reading, &sources) } else { None };
        let Some(reached) = reached else {
            failed += 1;
            left_out.push(device);
            continue;
        };
        (context.reached, context.only) = (reached, Some(device.clone()));
        let (more, silent) = context.ask(families);
        found.extend(more);
        if silent == 0 { decided.push(device) } else { left_out.push(device) }
    }
    reasons.sort();
    reasons.dedup();
    if failed > 0 || reasons.is_empty() {
        reasons.push(format!("the sets of packets for {condition} are too intricate"));
    }
    for device in &left_out {
        found.extend(defaults::by_engine(context, device));
    }
    let mut because = reasons.join("; ");
    if !decided.is_empty() {
        because.push_str(&format!("; of {} it was decided", named(&decided)));
    }
    if !left_out.is_empty() {
        because.push_str("; R1, R6, R8 to R10, R14, R22, R23 and R27, which need it, were left out there, and R11 but for a few packets");
    }
    let what = match left_out.is_empty() {
        true => "which packets netfilter's rules get was not decided".to_owned(),
        false => format!("which packets go where on {} was not decided", named(&left_out)),
    };
    found.push(Finding { what, ..not_decided(because) });
    found
}

/// A device, and those whose filters lead packets to it.
fn sources(reading: &PolicyModel, device: &str) -> BTreeSet<String> {
    let mut sources = BTreeSet::from([device.to_owned()]);
    loop {
        let leads = |dump: &&FilterDump| redirects(dump).any(|to| sources.contains(to));
        let more: Vec<String> = reading.filters.iter().filter(leads).map(|dump| dump.dev.clone()).collect();
        let before = sources.len();
        sources.extend(more);
        if sources.len() == before {
            return sources;
        }
    }
}

fn filter_text(reading: &PolicyModel, dump: &FilterDump, what: &str) -> String {
    let step = reading.maker_of_filter(dump).and_then(|op| reading.step_of(op));
    match step.and_then(|step| reading.line(step)) {
        Some(line) => format!("the filter of {line} {what}"),
        None => format!("a filter of {} {what}", dump.dev),
    }
}

/// What a filter does to packets or connections that other devices see, which is not followed.
fn foreign(reading: &PolicyModel, dump: &FilterDump) -> Option<String> {
    let FilterEntry::Filter { actions, .. } = &dump.entry else { return None };
    let arrives = reading.arrives(dump);
    let does = actions.iter().find(|dump| match &dump.action.act {
        Act::Ct(_) => true,
        Act::Connmark(_) | Act::Ctinfo(_) if !marks_connections(reading) => true,
        other => arrives && !followed(other),
    })?;
    let unknown = match &does.action.act {
        Act::Connmark(_) | Act::Ctinfo(_) if refused_rule(reading) => {
            "and whether a refused rule gives connections a mark is not known"
        }
        Act::Connmark(_) | Act::Ctinfo(_) => "and no rule here gives connections a mark",
        _ => "which is not followed",
    };
    Some(filter_text(reading, dump, &format!("has the action {}, {unknown}", does.action.act.kind())))
}

/// Whether a command of a firewall was refused.
fn refused_rule(reading: &PolicyModel) -> bool {
    let of_rules =
        |tool: &str| tool == "nft" || tool.starts_with("iptables") || tool.starts_with("ip6tables");
    reading.steps.iter().any(|step| step.refused.is_some() && of_rules(&step.tool))
}

/// What of a filter is not followed.
fn beyond(reading: &PolicyModel, dump: &FilterDump) -> Option<String> {
    let FilterEntry::Filter { actions, .. } = &dump.entry else { return None };
    let act = actions.iter().map(|dump| &dump.action.act);
    let does = act.clone().find(|act| !followed(act));
    if let Some(act) = does {
        return Some(filter_text(
            reading,
            dump,
            &format!("has the action {}, which is not followed", act.kind()),
        ));
    }
    let leaps = |act: &Act| act.controls().iter().any(|to| matches!(to, Control::Jump(_) | Control::Goto(_)));
    act.clone()
        .any(leaps)
        .then(|| filter_text(reading, dump, "jumps to other actions or chains, which is not followed"))
}
