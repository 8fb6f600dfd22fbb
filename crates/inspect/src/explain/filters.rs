//! The filters that a packet was shown, list by list, and what they decided.

use super::acts::{Carried, Effect, acted, labels};
use super::counted::{Counted, MOST_RESTARTS};
use super::{ExplainStep, Moment, StepOutcome, ethertype_name, tables, waits};
use crate::bytes::{condition_words, keys_words};
use crate::reading::{CLSACT_EGRESS, CLSACT_INGRESS, PolicyModel, SourceLocation};
use tidegate_gateway::DropReason;
use tidegate_packet::{Addrs, Dissector, Handle, Head, dissect};
use tidegate_policy::dump::{ActionDump, ClassDump, FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::{
    Act, ClassLayout, FilterOp, FilterParams, FlowKeySet, FlowMode, FlowParams, Kind, Op, QdiscParams,
};

/// How deep lists are followed: no tree that a packet can pass is deeper.
const MOST_LISTS: usize = 64;

/// A packet before a list.
#[derive(Clone, Copy)]
pub(super) struct Here<'a> {
    pub(super) dev: &'a str,
    pub(super) head: &'a Head,
    pub(super) carried: &'a Carried,
    /// Something looks connections up.
    pub(super) tracked: bool,
    /// An action may have rewritten the packet since these filters compared it.
    pub(super) rewritten: bool,
}

impl Here<'_> {
    /// Its EtherType as it comes to the next filter.
    pub(super) fn ethertype(self) -> u16 {
        self.carried.ethertype.get()
    }

    /// Its mark as it comes to the next filter.
    pub(super) fn mark(self) -> u32 {
        self.carried.mark.get()
    }
}

/// What a list decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// None matched.
    Nothing,
    /// This class.
    Class(Handle),
    /// A filter of a kind whose choice the engine knows best named this one.
    Some(Handle),
    /// A filter distributes by a hash over as many classes from this one on; 0: without end.
    Dealt(Handle, u32),
    /// Continues with the filters of this chain.
    Chain(u32),
    /// An action decided by chance, or started classification again: the result is the queue the packet is
    /// in.
    Open,
    /// It does not stay.
    Gone,
}

/// A filter list, explained.
pub(super) struct ExplainedList {
    pub(super) lines: Vec<ExplainStep>,
    pub(super) decision: Decision,
}

/// The filters of a parent, up to the one that decides, in the chains that they lead to.
pub(super) fn list(
    reading: &PolicyModel,
    here: Here<'_>,
    parent: Handle,
    counted: &Counted,
) -> ExplainedList {
    let here = Here { rewritten: is_rewritten(reading, here.dev, parent), ..here };
    let mut list = ExplainedList { lines: Vec::new(), decision: Decision::Nothing };
    let mut chain = 0;
    let mut begun = Vec::new();
    for _ in 0..=MOST_RESTARTS {
        begun.push(((chain, here.mark(), here.carried.priority.get(), here.ethertype()), list.lines.len()));
        list.decision = in_chain(reading, here, (parent, chain), counted, &mut list.lines);
        match list.decision {
            Decision::Chain(next) => chain = next,
            _ => return list,
        }
    }
    // One round is enough to see.
    let again = (1..begun.len()).find(|at| begun[..*at].iter().any(|(state, _)| *state == begun[*at].0));
    if let Some(((chain, ..), lines)) = again.map(|at| begun[at]) {
        list.lines.truncate(lines);
        list.lines.push(note(format!("chain {chain} again, and so on: the packet is dropped {ROUNDS}")));
    }
    list.decision = Decision::Open;
    list
}

/// When a packet is dropped that filters lead in a circle (Linux 6.1; its log says `reclassify loop`).
const ROUNDS: &str = "when filters have led it back 16 times";

/// Whether an action of a device rewrites packets that these filters compare: what is known of a packet that
/// leaves is what left the filters of its device, and of one that arrives what came.
pub(super) fn is_rewritten(reading: &PolicyModel, dev: &str, parent: Handle) -> bool {
    let hook = |parent: Handle| match parent {
        CLSACT_EGRESS => 1,
        parent if parent == CLSACT_INGRESS || parent.major() == 0xffff => 0,
        _ => 2,
    };
    let here = hook(parent);
    let rewrites =
        |act: &Act| matches!(act, Act::Nat(_) | Act::Pedit(_) | Act::Skbmod(_) | Act::Vlan(_) | Act::Mpls(_));
    let acts = reading
        .filters
        .iter()
        .filter(|dump| dump.dev == dev && (hook(dump.parent) == here || here == 1 && hook(dump.parent) == 2));
    let acts = acts.flat_map(|dump| match &dump.entry {
        FilterEntry::Filter { actions, .. } => actions.as_slice(),
        _ => &[],
    });
    acts.into_iter().any(|dump| rewrites(&dump.action.act))
}

/// The filters of one chain of a parent.
fn in_chain(
    reading: &PolicyModel,
    here: Here<'_>,
    (parent, chain): (Handle, u32),
    counted: &Counted,
    lines: &mut Vec<ExplainStep>,
) -> Decision {
    let list = |dump: &&FilterDump| dump.dev == here.dev && dump.parent == parent;
    let chains = reading.filters.iter().filter(list).any(|dump| dump.chain != 0);
    // u32 lists its tables by preference, those of other chains included.
    let here_made = |dump: &FilterDump| match reading.maker_of_filter(dump).map(|op| &reading.ops[op]) {
        Some(Op::Filter(op)) if chains && dump.kind == "u32" && is_filter(dump) => op.chain == chain,
        _ => true,
    };
    let mine = |dump: &&FilterDump| list(dump) && dump.chain == chain && here_made(dump);
    let dumps: Vec<&FilterDump> = reading.filters.iter().filter(mine).collect();
    let mut at = 0;
    while let Some(dump) = dumps.get(at) {
        // u32's preferences are evaluated by buckets, not in the order of the listing.
        let together =
            dumps[at..].iter().take_while(|other| dump.kind == "u32" && other.pref == dump.pref).count();
        let (decision, unasked) = match together {
            0 => (single(reading, &dumps, dump, here, counted, lines), 0),
            _ => tables::preference(reading, &dumps[at..at + together], here, counted, lines),
        };
        at += together.max(1);
        if decision != Decision::Nothing {
            let behind = dumps[at..].iter().filter(|other| is_filter(other)).count();
            if behind + unasked > 0 && decision != Decision::Open {
                lines.push(note(format!("{} behind it: not evaluated", count(behind + unasked, "filter"))));
            }
            return decision;
        }
    }
    if chain != 0 {
        lines.push(note(format!("no filter of chain {chain} decides")));
    }
    Decision::Nothing
}

/// A filter that is evaluated in the order of the listing.
fn single(
    reading: &PolicyModel,
    dumps: &[&FilterDump],
    dump: &FilterDump,
    here: Here<'_>,
    counted: &Counted,
    lines: &mut Vec<ExplainStep>,
) -> Decision {
    let alone = || !dumps.iter().any(|other| other.pref == dump.pref && is_filter(other));
    let (line, decision) = match &dump.entry {
        FilterEntry::Heading if dump.kind == "fw" && alone() => bare_fw(dump, here),
        FilterEntry::Filter { params, actions, handle, .. } => {
            one(dump, (*handle, params, actions), here, counted)
        }
        _ => return Decision::Nothing,
    };
    lines.push(ExplainStep { place: place_of(reading, dump), ..line });
    decision
}

pub(super) fn is_filter(dump: &FilterDump) -> bool {
    matches!(dump.entry, FilterEntry::Filter { .. })
}

pub(super) fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

pub(super) fn note(what: String) -> ExplainStep {
    ExplainStep { what, outcome: StepOutcome::Note, why: Vec::new(), place: None }
}

pub(super) fn place_of(reading: &PolicyModel, dump: &FilterDump) -> Option<SourceLocation> {
    reading.step_of(reading.maker_of_filter(dump)?)?.place.clone()
}

pub(super) fn line(what: String, met: bool, why: Vec<String>) -> ExplainStep {
    ExplainStep { what, outcome: if met { StepOutcome::Met } else { StepOutcome::Passed }, why, place: None }
}

/// `fw` without any filter: the mark is the class's name.
fn bare_fw(dump: &FilterDump, here: Here<'_>) -> (ExplainStep, Decision) {
    let what = format!("pref {} fw: the mark names the class", dump.pref);
    let class = Handle(here.mark());
    let ours = class.major() == 0 || class.qdisc() == dump.parent.qdisc();
    if !matches_protocol(dump, here) {
        return (line(what, false, vec![other_protocol(dump, here)]), Decision::Nothing);
    }
    match here.mark() {
        0 => (line(what, false, vec!["the packet has no mark".into()]), Decision::Nothing),
        mark if !ours => {
            (line(what, false, vec![format!("mark {mark:#x} names no class here")]), Decision::Nothing)
        }
        mark => {
            let class = Handle::new(dump.parent.major(), class.minor());
            (line(what, true, vec![format!("mark {mark:#x}: class {class}")]), Decision::Class(class))
        }
    }
}

pub(super) fn matches_protocol(dump: &FilterDump, here: Here<'_>) -> bool {
    dump.protocol == here.ethertype() || dump.protocol == FilterOp::ALL
}

pub(super) fn other_protocol(dump: &FilterDump, here: Here<'_>) -> String {
    format!(
        "it matches {}, the packet is {}",
        ethertype_name(dump.protocol),
        ethertype_name(here.ethertype())
    )
}

/// One filter.
fn one(
    dump: &FilterDump,
    (handle, params, actions): (u32, &FilterParams, &[ActionDump]),
    here: Here<'_>,
    counted: &Counted,
) -> (ExplainStep, Decision) {
    let what = words(dump, handle, params, actions);
    if !matches_protocol(dump, here) {
        return (line(what, false, vec![other_protocol(dump, here)]), Decision::Nothing);
    }
    let (met, mut why) = match params {
        FilterParams::Fw(fw) => {
            let mask = fw.mask.unwrap_or(u32::MAX);
            let has = here.mark() & mask;
            let masked = if mask == u32::MAX { String::new() } else { format!(" & {mask:#x} = {has:#x}") };
            let equal = if has == handle { "=" } else { "is not" };
            (has == handle, vec![format!("mark {:#x}{masked} {equal} {handle:#x}", here.mark())])
        }
        // Its tables are walked through elsewhere.
        FilterParams::U32(_) => (false, Vec::new()),
        FilterParams::Flow(flow) => (true, flow_sentences(flow, here)),
        FilterParams::Matchall(_) => (true, Vec::new()),
        FilterParams::Cgroup(_) => (
            false,
            vec!["no control group classifies the packet: cgroup looks at the process that sent it".into()],
        ),
        FilterParams::Route(_) => (false, vec!["no route here has a realm".into()]),
        FilterParams::Basic(_) | FilterParams::Flower(_) => match counted.hits(dump) {
            // It was counted in all rounds together.
            Some(hits) if hits.matched > 0 && hits.matched < hits.lookups => {
                let times = count(hits.lookups as usize, "time");
                let what = format!("{what}: evaluated {times}, matched {}", hits.matched);
                return (note(what), Decision::Open);
            }
            Some(hits) if hits.lookups > 0 => {
                (hits.matched > 0, super::conditions::condition_sentences(params, hits, here))
            }
            _ => (
                false,
                vec!["it was not evaluated: a filter of the same preference decided before it".into()],
            ),
        },
    };
    if !met {
        return (line(what, false, why), Decision::Nothing);
    }
    let decision = settled(dump, (params, actions), here, counted, &mut why);
    (line(what, true, why), decision)
}

/// What a filter that matches does with the packet.
pub(super) fn settled(
    dump: &FilterDump,
    (params, actions): (&FilterParams, &[ActionDump]),
    here: Here<'_>,
    counted: &Counted,
    why: &mut Vec<String>,
) -> Decision {
    if actions.is_empty() {
        let decision = leads(params, false);
        if decision == Decision::Nothing {
            why.push("it names no class and has no action: it only counts".into());
        }
        return decision;
    }
    if here.carried.passed_over.replace(false) {
        why.push(
            "the packet has come back from an ifb: the actions of the first filter that matches are skipped"
                .into(),
        );
        return leads(params, true);
    }
    let (mut text, effect) = acted(actions, here, counted.of_actions(dump));
    if effect == Effect::Again && counted.goes_around(dump) {
        text.push_str(&format!(", with the same result: the packet is dropped {ROUNDS}"));
    }
    why.push(text);
    match effect {
        Effect::Stays => leads(params, true),
        Effect::Goes => Decision::Gone,
        Effect::Next => Decision::Nothing,
        Effect::Chain(chain) => Decision::Chain(chain),
        Effect::Again | Effect::Open => Decision::Open,
    }
}

/// Where a filter that matches leads: without a class, but with an action, it ends the search all the same.
fn leads(params: &FilterParams, acts: bool) -> Decision {
    let class = match params {
        FilterParams::Fw(fw) => return Decision::Class(fw.classid.unwrap_or(Handle::NONE)),
        FilterParams::Matchall(all) => return Decision::Class(all.classid.unwrap_or(Handle::NONE)),
        FilterParams::Basic(basic) => return Decision::Some(basic.classid.unwrap_or(Handle::NONE)),
        FilterParams::Flower(flower) => return Decision::Some(flower.classid.unwrap_or(Handle::NONE)),
        FilterParams::U32(u32) if acts => Some(u32.classid.unwrap_or(Handle::NONE)),
        FilterParams::U32(u32) => u32.classid,
        FilterParams::Cgroup(_) => None,
        FilterParams::Route(route) => return Decision::Some(route.classid.unwrap_or(Handle::NONE)),
        FilterParams::Flow(flow) => {
            return Decision::Dealt(flow.baseclass.unwrap_or(Handle::NONE), flow.divisor);
        }
    };
    class.map_or(Decision::Nothing, Decision::Class)
}

/// `pref 10 u32 dport 22 → 1:10`, of another chain than the first `chain 5 pref 10 …`.
pub(super) fn words(dump: &FilterDump, handle: u32, params: &FilterParams, actions: &[ActionDump]) -> String {
    let to = |class: Option<Handle>| class.map_or(String::new(), |class| format!(" → {class}"));
    let mut text = match params {
        FilterParams::Fw(fw) => {
            let mask =
                fw.mask.filter(|mask| *mask != u32::MAX).map_or(String::new(), |mask| format!("/{mask:#x}"));
            format!("fw mark {handle:#x}{mask}{}", to(fw.classid))
        }
        FilterParams::U32(u32) => {
            let keys = keys_words(&u32.keys, dump.protocol);
            let mark = u32.mark.map_or(String::new(), |(value, mask)| format!(" mark {value:#x}/{mask:#x}"));
            let link = u32.link.map_or(String::new(), |table| format!(" → table {table:x}:"));
            format!("u32 {}{mark}{link}{}", keys.join(", "), to(u32.classid))
        }
        FilterParams::Flow(flow) => {
            let keys =
                tidegate_policy::FlowKeySet::NAMES.iter().zip(0..).filter(|(_, bit)| flow.keys.has(*bit));
            let keys: Vec<&str> = keys.map(|(name, _)| *name).collect();
            format!("flow {}", keys.join(","))
        }
        FilterParams::Matchall(all) => format!("everything{}", to(all.classid)),
        FilterParams::Basic(basic) => format!("basic{}{}", condition_words(params), to(basic.classid)),
        FilterParams::Flower(flower) => format!("flower{}{}", condition_words(params), to(flower.classid)),
        FilterParams::Route(route) => format!("route{}", to(route.classid)),
        FilterParams::Cgroup(_) => format!("cgroup{}", condition_words(params)),
    };
    for dump in actions {
        text.push_str(&match &dump.action.act {
            Act::Mirred(mirred) if mirred.copy => format!(" ⇒ a copy to {}", mirred.target()),
            Act::Mirred(mirred) => format!(" ⇒ {}", mirred.target()),
            Act::Gact(gact) => format!(" ⇒ {}", gact.control),
            other => format!(" ⇒ {}", other.kind()),
        });
    }
    let chain = if dump.chain == 0 { String::new() } else { format!("chain {} ", dump.chain) };
    format!("{chain}pref {} {text}", dump.pref)
}

fn flow_sentences(flow: &FlowParams, here: Here<'_>) -> Vec<String> {
    let base = flow.baseclass.unwrap_or(Handle::NONE);
    let mut first = match flow.divisor {
        0 => format!("from {base} on"),
        n => format!("shared out over {base} to {}", Handle(base.0.saturating_add(n - 1))),
    };
    if flow.mode.unwrap_or_default() == FlowMode::Hash {
        first.push_str(" by a hash with the key drawn here: with another key it may go elsewhere");
    }
    // Of what lacks such a field Linux takes a pointer (asked: a ping of `map key proto-dst` takes another
    // class than 0 gives).
    let keys = dissect(here.head, Dissector::Legacy);
    let lacks = [("dst", keys.addrs == Addrs::None), ("proto-dst", keys.ports == (0, 0))];
    let names = FlowKeySet::NAMES;
    let is_key = |name: &str| names.iter().zip(0..).any(|(own, bit)| *own == name && flow.keys.has(bit));
    let lacking = lacks.iter().find(|(name, lacks)| *lacks && is_key(name)).map(|(name, _)| {
        format!(
            "it has no {name}, and Linux takes an address in its memory instead: where it goes is not known"
        )
    });
    [first].into_iter().chain(lacking).collect()
}

/// What happens in the tree of a device: clsact's filters, then qdisc by qdisc.
pub(super) fn tree(
    reading: &PolicyModel,
    moment: &Moment,
    counted: &Counted,
    carried: &Carried,
) -> Vec<ExplainStep> {
    let here = Here {
        dev: &moment.name,
        head: &moment.head,
        carried,
        tracked: reading.looks_connections_up(),
        rewritten: false,
    };
    // The packet is known as it left the filters of this device: with the labels that they gave it.
    if !reading.filters.iter().any(|dump| dump.dev == moment.name && labels(dump)) {
        carried.ethertype.set(moment.head.ethertype());
    }
    carried.passed_over.set(moment.stop.came_back);
    let mut lines = Vec::new();
    let leaving = list(reading, here, CLSACT_EGRESS, counted);
    lines.extend(leaving.lines);
    if leaving.decision == Decision::Gone {
        return lines;
    }
    let mut on = Handle::ROOT;
    for _ in 0..MOST_LISTS {
        let there =
            |qdisc: &&QdiscDump| qdisc.dev == moment.name && qdisc.parent == on && !qdisc.handle.is_none();
        let Some(qdisc) = reading.qdiscs.iter().find(there) else { break };
        lines.push(qdisc_line(reading, qdisc));
        let (steps, chosen) = within(reading, moment, qdisc, here, counted);
        lines.extend(steps);
        // A qdisc in another one with one class may be attached to the other's own handle.
        let inside = |other: &&QdiscDump| {
            other.dev == moment.name && other.parent.qdisc() == qdisc.handle && !other.handle.is_none()
        };
        let matches = |inner: &&QdiscDump| moment.stop.qdiscs.iter().any(|spot| spot.qdisc == inner.handle);
        let only = || {
            let one = qdisc.kind.classes() == ClassLayout::One && !qdisc.handle.is_none();
            reading.qdiscs.iter().filter(inside).find(matches).filter(|_| one).map(|inner| inner.parent)
        };
        match chosen.or_else(only) {
            Some(class) if class != on => on = class,
            _ => break,
        }
    }
    lines
}

fn qdisc_line(reading: &PolicyModel, qdisc: &QdiscDump) -> ExplainStep {
    let step = reading.maker_of_qdisc(qdisc).and_then(|op| reading.step_of(op));
    let what = format!("qdisc {} {}", qdisc.kind.name(), qdisc.handle);
    ExplainStep {
        what,
        outcome: StepOutcome::Note,
        why: Vec::new(),
        place: step.and_then(|step| step.place.clone()),
    }
}

/// What happens within a qdisc; the class the packet takes there.
fn within(
    reading: &PolicyModel,
    moment: &Moment,
    qdisc: &QdiscDump,
    here: Here<'_>,
    counted: &Counted,
) -> (Vec<ExplainStep>, Option<Handle>) {
    let engine = moment.stop.classes.iter().rev().find(|class| class.qdisc() == qdisc.handle).copied();
    let mut lines = Vec::new();
    // As it comes here: what filters here give it is no reason.
    let before = here.carried.priority.get();
    let priority = Handle(before);
    // A class of another qdisc of the device is none here.
    let own = |class: &Handle| class.qdisc() == qdisc.handle && class_of(reading, here.dev, *class).is_some();
    let leaf = |class: &Handle| own(class) && !has_inner(reading, here.dev, *class);
    // A filter here may have given it that priority (skbedit); then it was no reason, and the engine went
    // elsewhere.
    let given_here = leaf(&priority) && engine.is_some_and(|class| class != priority);
    let named =
        priority.qdisc() == qdisc.handle && names_leaf(reading, here.dev, qdisc, priority) && !given_here;
    // HTB begins with the filters of an inner class that the priority names.
    let begins = match qdisc.kind {
        Kind::Htb if own(&priority) && has_inner(reading, here.dev, priority) && !given_here => {
            lines.push(note(format!(
                "its priority {priority} names an inner class: the filters of that class alone are evaluated"
            )));
            priority
        }
        _ => qdisc.handle,
    };
    let decision = if named {
        lines.push(note(format!("its priority {priority} names the class: no filter is evaluated")));
        Decision::Class(priority)
    } else {
        lists(reading, qdisc, begins, here, counted, &mut lines)
    };
    // multiq carries out the actions of its filters, and takes the transmit queue's band whatever they name.
    let decision =
        if qdisc.kind == Kind::Multiq && decision != Decision::Gone { Decision::Nothing } else { decision };
    let wanted = match decision {
        Decision::Gone => return (lines, None),
        Decision::Open if engine.is_none() => return (lines, None),
        Decision::Class(class) => Wanted::Class(class),
        Decision::Some(class) if !own(&class) => Wanted::Class(class),
        Decision::Dealt(base, classes) if engine.is_none_or(|class| !is_dealt(class, base, classes)) => {
            Wanted::Dealt
        }
        Decision::Some(_) | Decision::Dealt(..) | Decision::Open => {
            engine.map_or(Wanted::Nothing, Wanted::Class)
        }
        Decision::Nothing | Decision::Chain(_) => Wanted::Nothing,
    };
    debug_assert!(
        engine.is_none() || wanted.class().filter(leaf).is_none_or(|class| engine == Some(class)),
        "the engine chose {engine:?}, the filters {wanted:?}"
    );
    let known = wanted.class().filter(own);
    // In HTB packets that no class takes wait, too; in others (dualpi2) those of queues that filters do not
    // name.
    let is_elsewhere =
        || qdisc.kind == Kind::Htb || moment.stop.qdiscs.iter().all(|spot| spot.qdisc != qdisc.handle);
    if let Some(class) = engine {
        if known != Some(class) {
            lines.extend(by_default(reading, qdisc, before, wanted, class));
        }
        for class in moment.stop.classes.iter().filter(|class| class.qdisc() == qdisc.handle) {
            lines.extend(class_line(reading, here.dev, *class));
        }
    } else if let Some(class) = known.filter(leaf) {
        // What is attached there did not keep it.
        lines.extend(class_line(reading, here.dev, class));
        return (lines, known);
    } else if has_classes(reading, qdisc) && qdisc.kind.classes() != ClassLayout::One && is_elsewhere() {
        lines.push(nowhere(reading, qdisc, wanted, moment.refused));
    }
    (lines, engine)
}

/// Which class the filters of a qdisc gave a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// None.
    Nothing,
    /// This one.
    Class(Handle),
    /// One by a hash, which is not that in which the packet is.
    Dealt,
}

impl Wanted {
    fn class(self) -> Option<Handle> {
        match self {
            Wanted::Class(class) => Some(class),
            Wanted::Nothing | Wanted::Dealt => None,
        }
    }

    /// Why the packet is in no class that filters gave it.
    fn why_not(self, reading: &PolicyModel, qdisc: &QdiscDump) -> String {
        match self {
            Wanted::Nothing => "no filter decides".to_owned(),
            Wanted::Class(class) => no_queue(reading, qdisc, class),
            Wanted::Dealt => "the hash names a class that takes no packets".to_owned(),
        }
    }
}

/// Is a class one of those that a filter distributes packets over?
fn is_dealt(class: Handle, base: Handle, classes: u32) -> bool {
    let at = class.0.checked_sub(base.0);
    class.qdisc() == base.qdisc() && at.is_some_and(|at| classes == 0 || at < classes)
}

/// Whether a priority chooses alone here. HTB's own handle does too: past all classes.
fn names_leaf(reading: &PolicyModel, dev: &str, qdisc: &QdiscDump, priority: Handle) -> bool {
    match qdisc.kind {
        Kind::Htb if priority == qdisc.handle => true,
        Kind::Prio => true,
        _ => class_of(reading, dev, priority).is_some() && !has_inner(reading, dev, priority),
    }
}

/// The lists of a qdisc, from its own (or an inner class's) down its inner classes.
fn lists(
    reading: &PolicyModel,
    qdisc: &QdiscDump,
    begins: Handle,
    here: Here<'_>,
    counted: &Counted,
    lines: &mut Vec<ExplainStep>,
) -> Decision {
    let mut parent = begins;
    let mut decision = Decision::Nothing;
    for _ in 0..MOST_LISTS {
        let list = list(reading, here, parent, counted);
        if parent != begins && list.lines.is_empty() {
            return Decision::Nothing;
        }
        lines.extend(list.lines);
        decision = list.decision;
        match decision {
            // The qdisc itself is no class that has filters of its own.
            Decision::Class(class)
                if class.qdisc() == qdisc.handle
                    && class != qdisc.handle
                    && has_inner(reading, here.dev, class) =>
            {
                lines.push(note(format!("{class} has classes below it: its own filters are evaluated next")));
                parent = class;
            }
            _ => return decision,
        }
    }
    decision
}

fn class_of<'r>(reading: &'r PolicyModel, dev: &str, class: Handle) -> Option<&'r ClassDump> {
    reading.classes.iter().find(|dump| dump.dev == dev && dump.classid == class)
}

/// Has it classes below it, in the same qdisc?
fn has_inner(reading: &PolicyModel, dev: &str, class: Handle) -> bool {
    reading
        .classes
        .iter()
        .any(|dump| dump.dev == dev && dump.parent == class && dump.classid.qdisc() == class.qdisc())
}

fn has_classes(reading: &PolicyModel, qdisc: &QdiscDump) -> bool {
    reading.classes.iter().any(|dump| dump.dev == qdisc.dev && dump.classid.qdisc() == qdisc.handle)
}

/// How a packet came to a class that no filter named.
fn by_default(
    reading: &PolicyModel,
    qdisc: &QdiscDump,
    priority: u32,
    wanted: Wanted,
    got: Handle,
) -> Option<ExplainStep> {
    let because = wanted.why_not(reading, qdisc);
    let default = || format!("{because}: the default class {got}");
    let what = match &qdisc.params {
        QdiscParams::Htb(htb) if htb.default as u16 == got.minor() => default(),
        QdiscParams::Hfsc(hfsc) if hfsc.default == got.minor() => default(),
        QdiscParams::Htb(_) | QdiscParams::Hfsc(_) => format!("it goes to {got}; why is not known here"),
        QdiscParams::Prio(prio) if wanted == Wanted::Nothing && Handle(priority).major() != 0 => format!(
            "priority {} names a class of another qdisc and counts as 0 here, band {} by the map: {got}",
            Handle(priority),
            prio.priomap[0]
        ),
        QdiscParams::Prio(prio)
            if wanted == Wanted::Nothing
                && got.minor() != u16::from(prio.priomap[priority as usize & 15]) + 1 =>
        {
            format!("it goes to {got}; why is not known here")
        }
        QdiscParams::Prio(prio) if wanted == Wanted::Nothing => {
            format!("priority {priority} is band {} by the map: {got}", prio.priomap[priority as usize & 15])
        }
        QdiscParams::Prio(_) | QdiscParams::Ets(_)
            if wanted.class().is_some_and(|class| class.minor() == got.minor()) =>
        {
            format!("{because}; {} looks at the number behind the colon only: {got}", qdisc.kind.name())
        }
        QdiscParams::Prio(_) => format!("{because}: the band of priority 0, {got}"),
        _ if qdisc.kind == Kind::Multiq => {
            format!("by its transmit queue, whatever class a filter names: {got}")
        }
        QdiscParams::Mq => format!(
            "transmit queue {}, by a hash of the flow with the key drawn here, or by skbedit queue_mapping: {got}",
            got.minor()
        ),
        // One class, and nothing to choose.
        QdiscParams::Tbf(_) | QdiscParams::Red(_) | QdiscParams::Sfb(_) | QdiscParams::Skbprio(_) => {
            return None;
        }
        _ => format!("{because}: {got}"),
    };
    Some(note(what))
}

/// Why no packet waits in a class that something names.
fn no_queue(reading: &PolicyModel, qdisc: &QdiscDump, class: Handle) -> String {
    match class_of(reading, &qdisc.dev, class) {
        _ if class == qdisc.handle => "that is the qdisc itself, and no class".to_owned(),
        Some(_) if class.qdisc() != qdisc.handle => format!("{class} is a class of another qdisc"),
        None if class.is_none() => "the filter that matches names no class".to_owned(),
        None => format!("{class} is not there"),
        Some(_) if has_inner(reading, &qdisc.dev, class) => {
            format!("{class} has classes below it, and no filter there decides")
        }
        Some(_) => format!("{class} takes no packets"),
    }
}

fn nowhere(
    reading: &PolicyModel,
    qdisc: &QdiscDump,
    wanted: Wanted,
    refused: Option<DropReason>,
) -> ExplainStep {
    let past = match qdisc.parent {
        _ if matches!(&qdisc.params, QdiscParams::Htb(htb) if htb.direct_qlen == Some(0)) => {
            "past all classes, by the direct queue, which holds none (direct_qlen 0)".to_owned()
        }
        Handle::ROOT => "past all classes, by the direct queue, unshaped".to_owned(),
        above => {
            format!("past all classes of {}, by its direct queue, as fast as {above} lets it", qdisc.handle)
        }
    };
    let because = match wanted {
        Wanted::Class(class) if class == qdisc.handle && qdisc.kind == Kind::Htb => {
            return note(format!("that is HTB itself: {past}"));
        }
        _ => wanted.why_not(reading, qdisc),
    };
    note(match &qdisc.params {
        QdiscParams::Htb(htb) if htb.default == 0 => {
            format!("{because}, and there is no default class: {past}")
        }
        QdiscParams::Htb(htb) => {
            let default = qdisc.handle.class(htb.default as u16);
            let why = match class_of(reading, &qdisc.dev, default) {
                Some(_) if has_inner(reading, &qdisc.dev, default) => "has classes below it",
                // It took the packet, and the qdisc in it did not keep it.
                Some(_) => return note(format!("{because}: the default class {default}")),
                None => "is not there",
            };
            format!("{because}, and the default class {default} {why}: {past}")
        }
        // It took the packet, and the qdisc in it did not keep it.
        QdiscParams::Hfsc(hfsc)
            if wanted.class() != Some(qdisc.handle)
                && hfsc.default != 0
                && class_of(reading, &qdisc.dev, qdisc.handle.class(hfsc.default)).is_some()
                && !has_inner(reading, &qdisc.dev, qdisc.handle.class(hfsc.default)) =>
        {
            format!("{because}: the default class {}", qdisc.handle.class(hfsc.default))
        }
        _ if qdisc.kind == Kind::Skbprio => "its priority is its place in the queue".to_owned(),
        _ if refused.is_some_and(|why| why != DropReason::Unclassified) => {
            format!(
                "{because}: a class takes it (which is not known here), and what is attached there drops it"
            )
        }
        _ => format!("{because}: no class takes it"),
    })
}

fn class_line(reading: &PolicyModel, dev: &str, class: Handle) -> Option<ExplainStep> {
    let dump = class_of(reading, dev, class)?;
    let place = reading
        .maker_of_class(dev, class)
        .and_then(|op| reading.step_of(op))
        .and_then(|step| step.place.clone());
    let words = waits::class_words(dump);
    let name = reading.class_name(dev, class);
    let what = if words.is_empty() { format!("class {name}") } else { format!("class {name}: {words}") };
    Some(ExplainStep { what, outcome: StepOutcome::Note, why: Vec::new(), place })
}
