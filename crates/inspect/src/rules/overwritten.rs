//! R8 and R9 again: marks that later rules write over, on every packet or on all but a few that can be named.

use super::context::{RuleContext, same_chain, witness};
use crate::finding::{Finding, Fix, Level, Rule};
use crate::sets::bdd::{Set, TooLarge};
use crate::sets::field::{Field, View};
use crate::sets::set::{STATES, Space};
use crate::walk::ways::{Way, reads_connmarks};
use crate::walk::{Parts, RuleKey, RuleSeen};
use crate::words::named;
use tidegate_packet::Handle;
use tidegate_packet::header::{proto, tcp_flags};
use tidegate_policy::netfilter::{Condition, ConnmarkTarget, Connstate, NetfilterTarget};

/// Rules that set a mark which later rules replace on every packet that comes to a queue, or on all but a
/// few.
pub(super) fn check(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let known: Vec<(RuleKey, RuleSeen)> =
        context.reached.walked.rules.iter().map(|(key, seen)| (key.clone(), seen.clone())).collect();
    let mut found = Vec::new();
    for (key, seen) in &known {
        let Some(NetfilterTarget::Mark { value, mask }) =
            context.rule(key).and_then(|rule| rule.targets().last())
        else {
            continue;
        };
        let (value, mask) = (*value, *mask);
        if value & mask == 0 || seen.matched.is_empty() {
            continue;
        }
        let (mut arrive, kept) = arriving(context, &seen.matched, value & mask, mask)?;
        if arrive.is_empty() {
            continue;
        }
        let mut but = Vec::new();
        if !kept.is_empty() {
            let Some((plain, exceptions)) = all_but(context, &arrive, &kept)? else { continue };
            (arrive, but) = (plain, exceptions);
        }
        found.extend(overwritten(context, (key, seen), (&arrive, &but), &known, (value, mask))?);
    }
    Ok(found)
}

/// The few packets that may keep a mark while it is lost from nearly all, in words.
const EXCEPTIONS: [&str; 6] = [
    "packets of no connection (INVALID, UNTRACKED)",
    "later fragments",
    "packets with IP options",
    "the first packets of TCP connections (NEW, RELATED)",
    "TCP's SYN",
    "what is neither TCP nor UDP",
];

/// The sets of [`EXCEPTIONS`].
fn exceptions(space: &mut Space) -> Result<[Set; EXCEPTIONS.len()], TooLarge> {
    let offset = Field::Fragment.literals(3, 13, 0, u128::MAX);
    let whole = space.store.cube(&offset)?;
    let fragments = space.store.minus(space.v4, whole)?;
    let short = space.is(Field::Ihl, 5)?;
    let options = space.store.minus(space.v4, short)?;
    let tcp = space.is(Field::Protocol, u128::from(proto::TCP))?;
    let udp = space.is(Field::Protocol, u128::from(proto::UDP))?;
    let mut new = Set::NONE;
    for (number, _) in
        (0..).zip(STATES).filter(|(_, state)| matches!(state, Connstate::New | Connstate::Related))
    {
        let one = space.is(Field::State, number)?;
        new = space.store.or(new, one)?;
    }
    let first = space.store.and(tcp, new)?;
    let mut opening = Set::NONE;
    for v6 in [false, true] {
        let family = if v6 { space.v6 } else { space.v4 };
        let condition = Condition::TcpFlags(tcp_flags::SYN | tcp_flags::ACK, tcp_flags::SYN);
        let syn = space.condition(&condition, v6, View::PLAIN)?.map_or(Set::NONE, |truth| truth.holding);
        let syn = space.store.and(syn, family)?;
        opening = space.store.or(opening, syn)?;
    }
    let usual = space.store.or(tcp, udp)?;
    let ip = space.store.or(space.v4, space.v6)?;
    let others = space.store.minus(ip, usual)?;
    let strange = space.store.minus(ip, space.connected())?;
    Ok([strange, fragments, options, first, opening, others])
}

/// Those of the packets that no exception names, where all that keep the mark are exceptions; and which.
fn all_but(
    context: &mut RuleContext<'_>,
    arrive: &Parts,
    kept: &Parts,
) -> Result<Option<(Parts, Vec<&'static str>)>, TooLarge> {
    let space = &mut context.reached.walked.space;
    let mut exceptions: Vec<(Set, &str)> = exceptions(space)?.into_iter().zip(EXCEPTIONS).collect();
    if !covered(space, kept, &exceptions)? {
        return Ok(None);
    }
    // No more of them than it takes.
    let mut at = 0;
    while at < exceptions.len() {
        let left_out = exceptions.remove(at);
        if !covered(space, kept, &exceptions)? {
            exceptions.insert(at, left_out);
            at += 1;
        }
    }
    let mut plain = Parts::default();
    for (way, set) in &arrive.0 {
        let mut rest = *set;
        for (exception, _) in &exceptions {
            rest = space.store.minus(rest, *exception)?;
        }
        plain.add(space, *way, rest)?;
    }
    let named = exceptions.into_iter().map(|(_, name)| name).collect();
    Ok((!plain.is_empty()).then_some((plain, named)))
}

/// Packets that a rule matched and that come to a device's tree; and those of them that still carry its mark
/// there.
fn arriving(
    context: &mut RuleContext<'_>,
    matched: &Parts,
    value: u32,
    mask: u32,
) -> Result<(Parts, Parts), TooLarge> {
    let restores = reads_connmarks(context.reading);
    let walked = &mut context.reached.walked;
    let (mut arrive, mut keep) = (Parts::default(), Parts::default());
    for (way, passing) in walked.arrived.clone() {
        let mut set = matched.by(way);
        if matches!(walked.ways[way], Way::Forwarded(_)) {
            // Before routing a packet is on no device's way yet.
            let early = walked
                .ways
                .iter()
                .position(|way| *way == Way::ComesIn)
                .map_or(Set::NONE, |way| matched.by(way));
            set = walked.space.store.or(set, early)?;
        }
        let mut set = walked.space.store.and(set, passing.set)?;
        if restores {
            // What belongs to no connection has nothing restored, and is next to nothing.
            set = walked.space.store.and(set, walked.space.connected())?;
        }
        let states = &walked.states;
        let kept =
            walked.space.store.select(passing.states, set, &mut |n| states.get(n).mark & mask == value)?;
        keep.add(&mut walked.space, way, kept)?;
        arrive.add(&mut walked.space, way, set)?;
    }
    Ok((arrive, keep))
}

/// Is every one of the packets an exception?
fn covered(space: &mut Space, kept: &Parts, exceptions: &[(Set, &str)]) -> Result<bool, TooLarge> {
    for (_, set) in &kept.0 {
        let mut rest = *set;
        for (exception, _) in exceptions {
            rest = space.store.minus(rest, *exception)?;
        }
        if !rest.is_empty() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn overwritten(
    context: &mut RuleContext<'_>,
    (key, seen): (&RuleKey, &RuleSeen),
    (arrive, but): (&Parts, &[&str]),
    known: &[(RuleKey, RuleSeen)],
    (value, mask): (u32, u32),
) -> Result<Option<Finding>, TooLarge> {
    let Some(step) = context.step_of_rule(key) else { return Ok(None) };
    let writes = |target: &NetfilterTarget| match target {
        // Setting the same bits again, or others, is no change.
        NetfilterTarget::Mark { value: other, mask: bits } if (other ^ value) & bits & mask == 0 => None,
        NetfilterTarget::Mark { .. } => Some(false),
        NetfilterTarget::Connmark(ConnmarkTarget::Restore { nfmask, .. }) if nfmask & mask == 0 => None,
        NetfilterTarget::Connmark(ConnmarkTarget::Restore { .. }) => Some(true),
        _ => None,
    };
    let Later { lines, restored, broader } = later(context, (key, seen), arrive, known, writes)?;
    // One mark for all, and then others for some of them: that is how it is done, even where little is left.
    if !but.is_empty() && !broader {
        return Ok(None);
    }
    let Some(candidate) = context.reached.pick(context.reading, arrive)? else { return Ok(None) };
    let way = context.send(&candidate);
    context.confirmed(way.mark != value, &candidate, "without its mark");
    if way.mark == value || lines.is_empty() {
        return Ok(None);
    }
    Ok(Some(Finding {
        rule: if restored { Rule::Connmark } else { Rule::Marks },
        level: Level::Warning,
        place: super::making::at_word(step, "--set-mark"),
        what: format!(
            "mark {value} is gone again before any queue{}: {} write{} another over it",
            if but.is_empty() { String::new() } else { format!(", but from {}", but.join(", ")) },
            named(&lines),
            if lines.len() == 1 { "s" } else { "" }
        ),
        because: match restored {
            true => {
                "the mark of the connection is restored over it: of marks, the last written counts".to_owned()
            }
            false => format!(
                "{} that this rule matches goes on to them: a rule that sets a mark does not end the chain",
                if but.is_empty() { "every packet" } else { "every other packet" }
            ),
        },
        witness: witness(&candidate, &format!("its queue with mark {}", way.mark)),
        fix: Some(Fix {
            what: "give them `-m mark --mark 0`, or put this rule behind them".into(),
            edits: Vec::new(),
        }),
    }))
}

/// The rules behind one that write over what it wrote.
struct Later {
    /// Their lines.
    lines: Vec<String>,
    /// One of them restores the connection's mark.
    restored: bool,
    /// One of them takes packets that the first rule does not.
    broader: bool,
}

/// The rules behind one that overwrite its marks; `writes` gives which do, and whether they restore.
fn later(
    context: &mut RuleContext<'_>,
    (key, seen): (&RuleKey, &RuleSeen),
    arrive: &Parts,
    known: &[(RuleKey, RuleSeen)],
    writes: impl Fn(&NetfilterTarget) -> Option<bool>,
) -> Result<Later, TooLarge> {
    let mut later = Later { lines: Vec::new(), restored: false, broader: false };
    for (other, taken) in
        known.iter().filter(|(other, _)| other != key && (!same_chain(other, key) || other.at > key.at))
    {
        let mut targets = context.rule(other).into_iter().flat_map(|rule| rule.targets());
        let Some(restores) = targets.find_map(&writes) else { continue };
        let (mut shared, mut more) = (false, false);
        for (way, set) in &taken.matched.0 {
            more |= !context.reached.walked.space.store.minus(*set, seen.matched.by(*way))?.is_empty();
            shared |= !context.reached.walked.space.store.and(*set, seen.matched.by(*way))?.is_empty();
            shared |= !context.reached.walked.space.store.and(*set, arrive.by(*way))?.is_empty();
        }
        if shared {
            later.restored |= restores;
            later.broader |= more;
            later.lines.extend(context.step_of_rule(other).map(|step| context.line(step)));
        }
    }
    later.lines.dedup();
    Ok(later)
}

/// Rules that give packets a class which later rules replace on every one that comes to a queue.
pub(super) fn classes(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let known: Vec<(RuleKey, RuleSeen)> =
        context.reached.walked.rules.iter().map(|(key, seen)| (key.clone(), seen.clone())).collect();
    let mut found = Vec::new();
    for (key, seen) in &known {
        let Some(target) = context.rule(key).and_then(|rule| rule.targets().last()) else { continue };
        let NetfilterTarget::Classify(class) = target else { continue };
        if context.reached.carries(key, target, None)? != Some(false) {
            continue;
        }
        let writes = |other: &NetfilterTarget| match other {
            NetfilterTarget::Classify(other) if other != class => Some(false),
            _ => None,
        };
        let Later { lines, .. } = later(context, (key, seen), &seen.matched, &known, writes)?;
        let Some(candidate) = context.reached.pick(context.reading, &seen.matched)? else { continue };
        let way = context.send(&candidate);
        let Some(step) = context.step_of_rule(key).filter(|_| !lines.is_empty()) else { continue };
        if Handle(way.priority) == *class {
            continue;
        }
        found.push(Finding {
            rule: Rule::Marks,
            level: Level::Warning,
            place: super::making::at_word(step, "--set-class"),
            what: format!(
                "class {class} is gone again before any queue: {} write{} another over it",
                named(&lines),
                if lines.len() == 1 { "s" } else { "" }
            ),
            because:
                "every packet that this rule matches goes on to them: a rule that sets a class does not end \
                the chain"
                    .to_owned(),
            witness: witness(&candidate, &format!("its queue with class {}", Handle(way.priority))),
            fix: Some(Fix { what: "put it behind them".into(), edits: Vec::new() }),
        });
    }
    Ok(found)
}
