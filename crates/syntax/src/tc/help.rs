//! How commands are written, in our own words.

use super::command_line::{Object, TcCommand};
use tidegate_policy::spec::{FILTERS, KindSpec};

/// How to write commands for an object, or for tc as a whole: our own words.
pub(crate) fn help_of(object: Option<Object>) -> TcCommand {
    let kinds = KindSpec::all().map(|spec| spec.name).collect::<Vec<_>>().join(" ");
    let with_classes = KindSpec::all().filter(|spec| spec.class.is_some()).map(|spec| spec.name);
    let with_classes = with_classes.collect::<Vec<_>>().join(" ");
    let filters = FILTERS.iter().map(|spec| spec.name).collect::<Vec<_>>().join(" ");
    TcCommand::Help(match object {
        None => format!(
            "tc [-s] [-d] [-j] [-p] [-r] [-o] [-iec] OBJECT VERB …   or   tc [-force] -batch FILE\n\
             objects: qdisc class filter chain actions; verbs: add change replace delete show\n\
             `tc OBJECT help` says more.\nqdiscs: {kinds}\nfilters: {filters}\n"
        ),
        Some(Object::Qdisc) => format!(
            "tc qdisc add|change|replace|link|delete dev DEVICE root|parent CLASS [handle H:] [stab …] KIND \
            [OPTION…]\n\
             tc qdisc show [dev DEVICE] [root|parent CLASS|handle H:] [invisible]\n\
             kinds: {kinds}; tc qdisc add dev DEVICE ingress|clsact for filters on what arrives\n`tc qdisc \
             add KIND help` lists a kind's options.\n"
        ),
        Some(Object::Class) => format!(
            "tc class add|change|replace|delete dev DEVICE parent ID classid H:N KIND [OPTION…]\n\
             tc class show dev DEVICE [root|parent ID|classid ID|qdisc H:]\n\
             kinds: {with_classes}\n`tc class add htb help` lists a kind's options.\n"
        ),
        Some(Object::Filter) => format!(
            "tc filter add|change|replace|delete dev DEVICE [parent ID|root] [prio N] [protocol NAME] \
            [handle ID] KIND [OPTION…]\n\
             tc filter show dev DEVICE [parent ID|root]\n\
             kinds: {filters}\n`tc filter add KIND help` lists a kind's options.\n"
        ),
    })
}

/// The help of a qdisc's or filter's kind.
pub fn help_kind(name: &str) -> Option<String> {
    KindSpec::find(name)
        .map(KindSpec::help)
        .or_else(|| FILTERS.iter().find(|spec| spec.name == name).map(|spec| spec.help()))
}
