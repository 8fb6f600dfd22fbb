//! R6, R16, R20 and C2: filters that lead nowhere, framing that is not counted, redirects that lose packets,
//! policies without a rate.

use super::making::{at_word, finding};
use crate::drive::Bench;
use crate::finding::{Finding, Fix, Level, Rule};
use crate::reading::{PolicyModel, Step};
use crate::tree::numbered_queues;
use crate::walk::outcome::reached_acts;
use crate::words;
use tidegate_gateway::DeviceKind;
use tidegate_packet::{Handle, Rate};
use tidegate_policy::dump::{ClassDump, FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::netfilter::NetfilterTarget;
use tidegate_policy::{
    Act, CakeFraming, ClassLayout, ClassParams, FilterOp, FilterParams, HtbParams, Kind, LinkLayer, Mirred,
    Op, QdiscParams, RateSpec,
};

/// What leads nowhere, is not counted, or shapes nothing.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let reading = &*reading;
    let mut found: Vec<Finding> = orphans(reading);
    found.extend(reading.filters.iter().filter_map(|filter| nowhere(reading, filter)));
    found.extend(unclassified(reading));
    found.extend(redirects(reading));
    found.extend(reading.shaped().into_iter().filter_map(|dev| unfed(reading, dev)));
    found.extend(reading.shaped().into_iter().filter_map(|dev| doubled(reading, dev)));
    found.extend(reading.qdiscs.iter().filter_map(|qdisc| doubled_by_cake(reading, qdisc)));
    found.extend(reading.shaped().into_iter().filter_map(|dev| mixed(reading, dev)));
    found.extend(reading.shaped().into_iter().filter_map(|dev| unlimited(reading, dev)));
    found
}

/// Classes of HTB whose parent does not exist: they are placed under the root and cannot borrow.
fn orphans(reading: &PolicyModel) -> Vec<Finding> {
    let given = reading.ops.iter().enumerate().filter_map(|(at, op)| match op {
        Op::Class(op) if op.parent != Handle::ROOT && op.parent.minor() != 0 => Some((at, op)),
        _ => None,
    });
    given
        .filter_map(|(at, op)| {
            let class = reading.class(&op.dev, op.classid).filter(|class| class.kind == Kind::Htb)?;
            let reported = reading.lost.class(&op.dev, op.parent);
            if class.parent != Handle::ROOT
                || reported
                || reading.maker_of_class(&op.dev, op.classid) != Some(at)
            {
                return None;
            }
            let step = reading.step_of(at)?;
            let known: Vec<String> = reading
                .htb_classes()
                .filter(|other| other.class.dev == op.dev && other.class.classid != op.classid)
                .filter(|other| !reading.is_leaf(other.class))
                .map(|other| other.class.classid.to_string())
                .collect();
            // `parent 1`: the qdisc's number without its colon, and the class is where it is meant to be.
            let meant = op.classid.qdisc();
            if op.parent.major() == 0 && op.parent.minor() == meant.major() {
                return Some(finding(
                    Rule::Nowhere,
                    Level::Note,
                    at_word(step, "parent"),
                    format!("{} is a class without a qdisc: the qdisc itself is {meant}", op.parent),
                    format!(
                        "the kernel puts {} under the root because it finds no such class; write {meant}",
                        op.classid
                    ),
                    format!("{} has the parent root", op.classid),
                ));
            }
            let hint = if known.is_empty() {
                String::new()
            } else {
                format!("; parents there are {}", known.join(", "))
            };
            Some(finding(
                Rule::Nowhere,
                Level::Error,
                at_word(step, "parent"),
                format!("there is no class {} on {} when {} is made{hint}", op.parent, op.dev, op.classid),
                "the kernel silently puts the class under the root: it borrows from no class, and no class \
            above limits it"
                    .into(),
                format!("{} has the parent root", op.classid),
            ))
        })
        .collect()
}

/// Filters whose class is not there.
fn nowhere(reading: &PolicyModel, filter: &FilterDump) -> Option<Finding> {
    let FilterEntry::Filter { params, actions, .. } = &filter.entry else { return None };
    let classid = params.classid()?;
    let owner = reading
        .qdiscs
        .iter()
        .find(|qdisc| qdisc.dev == filter.dev && qdisc.handle == filter.parent.qdisc())?;
    // Each looks for it among its own classes (asked of Linux 6.1 about HTB and HFSC), and HFSC lists itself
    // as a class.
    let is_there = classid.minor() != 0
        && reading.class(&filter.dev, classid).is_some()
        && classid.qdisc() == owner.handle;
    // On a class that has none below it no filter is evaluated (R10).
    let on_leaf = reading.class(&filter.dev, filter.parent).is_some_and(|class| reading.is_leaf(class));
    if reading.arrives(filter) || !actions.is_empty() || is_there || on_leaf {
        return None;
    }
    // The refusal of the class is reported already.
    if reading.lost.class(&filter.dev, classid) {
        return None;
    }
    let step = reading.step_of(reading.maker_of_filter(filter)?)?;
    let keyword = if step.after("flowid").is_some() { "flowid" } else { "classid" };
    if let Some(queues) = lacks_queue(owner, classid) {
        let (kind, number) = (owner.kind.name(), classid.minor());
        let what =
            format!("the filter leads to queue {number} of {kind} {}, which is not there", owner.handle);
        let because = format!("its packets are dropped: {kind} looks at the number behind the colon");
        let witness = format!("{kind} {} has queues 1 to {queues}", owner.handle);
        return Some(finding(Rule::Nowhere, Level::Error, at_word(step, keyword), what, because, witness));
    }
    let (level, because) = taken_instead(reading, owner, classid)?;
    let what = if classid == owner.handle {
        let queue = if owner.kind == Kind::Htb { ", HTB's direct queue," } else { "" };
        format!("the filter leads to {classid} itself{queue} and to no class")
    } else if classid.qdisc() != owner.handle {
        format!("the filter hangs on {} and leads to {classid}, which is not a class of it", owner.handle)
    } else {
        format!("the filter leads to {classid}, and there is no such class on {}", filter.dev)
    };
    const SHOWN: usize = 12;
    let own = reading
        .classes
        .iter()
        .filter(|class| class.dev == filter.dev && class.classid.qdisc() == owner.handle);
    let mut own: Vec<Handle> = own.map(|class| class.classid).filter(|class| class.minor() != 0).collect();
    own.sort_unstable();
    let mut here: Vec<String> = own.iter().take(SHOWN).map(Handle::to_string).collect();
    if own.len() > SHOWN {
        here.push(format!("and {} more", own.len() - SHOWN));
    }
    let mut finding = finding(
        Rule::Nowhere,
        level,
        at_word(step, keyword),
        what,
        because,
        match here.is_empty() {
            true => format!("{} of {} has no classes", owner.handle, filter.dev),
            false => format!("classes of {} on {}: {}", owner.handle, filter.dev, here.join(", ")),
        },
    );
    let remedy = in_steps(reading, owner, classid).or_else(|| hexadecimal(reading, &filter.dev, classid));
    finding.fix = remedy.map(|what| Fix { what, edits: Vec::new() });
    Some(finding)
}

/// How many queues a qdisc has where it has some that filters name by number, and this class names none.
pub(super) fn lacks_queue(owner: &QdiscDump, classid: Handle) -> Option<u32> {
    let (_, queues) = numbered_queues(&owner.params)?;
    (!(1..=queues).contains(&u32::from(classid.minor()))).then_some(queues)
}

/// Rules that give packets a class which no device has.
fn unclassified(reading: &PolicyModel) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut rules = Vec::new();
    for table in reading.gateway.all_tables() {
        for chain in table.chains() {
            let place = (table.family(), table.name(), chain.name.as_str());
            rules.extend(chain.rules.iter().map(|counted| (place, &counted.rule)));
        }
    }
    for (chain, rule) in rules {
        for target in rule.targets() {
            let NetfilterTarget::Classify(class) = target else { continue };
            if class.major() == 0 {
                continue;
            }
            let owners: Vec<&QdiscDump> =
                reading.qdiscs.iter().filter(|qdisc| qdisc.handle == class.qdisc()).collect();
            if class.minor() == 0 {
                found.extend(to_itself(reading, &owners, || {
                    reading.maker_of_rule(chain, rule, 0).and_then(|at| reading.step_of(at))
                }));
                continue;
            }
            let missing = |owner: &&QdiscDump| {
                owner.kind.classes_are_made()
                    && reading.class(&owner.dev, *class).is_none()
                    && !reading.lost.class(&owner.dev, *class)
                    && !reading.lost.tree(&owner.dev)
            };
            let Some(first) = owners.first().filter(|_| owners.iter().all(missing)) else { continue };
            let Some(step) = reading.maker_of_rule(chain, rule, 0).and_then(|at| reading.step_of(at)) else {
                continue;
            };
            found.push(finding(
                Rule::Nowhere,
                Level::Warning,
                at_word(step, "--set-class"),
                format!("the rule gives packets class {class}, and there is no such class on {}", first.dev),
                format!(
                    "{} sorts them as if no rule had given them a class: {}",
                    first.kind.name(),
                    super::inner::otherwise(first)
                ),
                format!("qdisc {} of {} is {}", first.handle, first.dev, first.kind.name()),
            ));
        }
    }
    found
}

/// A rule that gives packets the handle of an HTB for their class.
fn to_itself<'r>(
    reading: &PolicyModel,
    owners: &[&QdiscDump],
    maker: impl Fn() -> Option<&'r Step>,
) -> Option<Finding> {
    let htb = |owner: &&QdiscDump| match &owner.params {
        QdiscParams::Htb(htb) if !reading.lost.tree(&owner.dev) => Some(past_every_class(owner, htb)),
        _ => None,
    };
    let past: Option<Vec<String>> = owners.iter().map(htb).collect();
    let (past, first, step) = (past?.into_iter().next()?, owners.first()?, maker()?);
    Some(finding(
        Rule::Nowhere,
        Level::Warning,
        at_word(step, "--set-class"),
        format!(
            "the rule gives packets {} for their class, which is the htb of {} itself",
            first.handle, first.dev
        ),
        format!("where no later rule gives them another class, {past}"),
        format!("qdisc {} of {} is htb", first.handle, first.dev),
    ))
}

/// Where a qdisc puts packets that a filter leads to a class that is not there, and how bad that is; `None`:
/// it does not look at the class, or nothing is known of it.
fn taken_instead(reading: &PolicyModel, owner: &QdiscDump, classid: Handle) -> Option<(Level, String)> {
    let band = |bands: u32, of_zero: u8| match u32::from(classid.minor()) {
        minor @ 1.. if minor <= bands => (
            Level::Warning,
            format!(
                "{} looks at the number behind the colon only: its packets take {}",
                owner.kind.name(),
                owner.handle.class(classid.minor())
            ),
        ),
        _ => {
            let class = owner.handle.class(u16::from(of_zero) + 1);
            (Level::Error, format!("its packets take {class}, the band of priority 0"))
        }
    };
    match &owner.params {
        QdiscParams::Htb(htb) if classid == owner.handle && lacks_direct_queue(htb) => {
            Some((Level::Error, past_every_class(owner, htb)))
        }
        QdiscParams::Htb(htb) if classid == owner.handle => {
            Some((Level::Warning, format!("{}, and before all others there", past_every_class(owner, htb))))
        }
        QdiscParams::Hfsc(_) if classid == owner.handle => {
            let mut classes = reading.classes.iter().filter(|class| class.dev == owner.dev);
            let any =
                classes.any(|class| class.classid.qdisc() == owner.handle && class.classid.minor() != 0);
            any.then(|| (Level::Error, "hfsc drops its packets: no class below takes them".to_owned()))
        }
        _ if classid.is_none() => None,
        QdiscParams::Htb(htb) => Some((Level::Error, without_own_class(reading, owner, htb))),
        QdiscParams::Hfsc(hfsc) => without_class_of_hfsc(reading, owner, hfsc.default),
        QdiscParams::Prio(prio) => Some(band(prio.bands, prio.priomap[0])),
        QdiscParams::Ets(ets) => Some(band(ets.bands.into(), ets.priomap[0])),
        // multiq uses the packet's transmit queue.
        _ if owner.kind.classes() != ClassLayout::Made => None,
        _ => Some((Level::Error, format!("{} drops its packets", owner.kind.name()))),
    }
}

/// What becomes of packets that go past all classes of an HTB: within another qdisc they leave no faster than
/// that sends.
fn past_every_class(owner: &QdiscDump, htb: &HtbParams) -> String {
    match owner.parent {
        _ if lacks_direct_queue(htb) => format!(
            "its packets are dropped: they belong to no class, and the direct queue of {} holds none (direct_qlen 0)",
            owner.handle
        ),
        Handle::ROOT => "its packets go past every class, unshaped".to_owned(),
        above => format!("its packets go past every class of {}, as fast as {above} lets them", owner.handle),
    }
}

/// Is HTB's direct queue of length 0? It is as long as the device's (`txqueuelen`) where no command says.
pub(super) fn lacks_direct_queue(htb: &HtbParams) -> bool {
    htb.direct_qlen == Some(0)
}

/// Where HTB puts packets that a filter leads to no class of it.
fn without_own_class(reading: &PolicyModel, owner: &QdiscDump, htb: &HtbParams) -> String {
    let named = owner.handle.class(htb.default as u16);
    let past = past_every_class(owner, htb);
    let behind = if lacks_direct_queue(htb) { "; " } else { ": " };
    match reading.class(&owner.dev, named) {
        _ if named.minor() == 0 => past,
        Some(class) if reading.is_leaf(class) => format!("its packets take the default class {named}"),
        Some(_) => format!("{past}{behind}the default class {named} has classes below it"),
        None => format!("{past}{behind}the default class {named} is not there either"),
    }
}

/// And HFSC; without any class its root sends them.
fn without_class_of_hfsc(reading: &PolicyModel, owner: &QdiscDump, default: u16) -> Option<(Level, String)> {
    let named = owner.handle.class(default);
    let of_owner = |class: &&ClassDump| class.dev == owner.dev && class.classid.qdisc() == owner.handle;
    let mut classes = reading.classes.iter().filter(of_owner).filter(|class| class.classid.minor() != 0);
    let because = match reading.class(&owner.dev, named) {
        _ if classes.next().is_none() => return None,
        Some(class) if default != 0 && reading.is_leaf(class) => {
            format!("its packets take the default class {named}")
        }
        Some(_) if default != 0 => {
            format!("hfsc drops its packets: the default class {named} has classes below it")
        }
        _ if default == 0 => "hfsc drops its packets: there is no default class".to_owned(),
        _ => format!("hfsc drops its packets: the default class {named} is not there either"),
    };
    Some((Level::Error, because))
}

/// The way to a class of a qdisc that hangs, itself or by others, in a class of the filter's own.
fn in_steps(reading: &PolicyModel, owner: &QdiscDump, classid: Handle) -> Option<String> {
    reading.class(&owner.dev, classid).filter(|class| class.classid.qdisc() != owner.handle)?;
    let (mut inner, mut steps) = (classid.qdisc(), Vec::new());
    // No tree is deeper.
    for _ in 0..64 {
        let qdisc = reading
            .qdiscs
            .iter()
            .find(|qdisc| qdisc.dev == owner.dev && qdisc.handle == inner && !inner.is_none())?;
        steps.push((qdisc.parent, inner));
        inner = qdisc.parent.qdisc();
        if inner == owner.handle {
            break;
        }
    }
    let [(class, qdisc)] = steps[..] else { return None };
    let is_made = class != owner.handle && inner == owner.handle;
    let is_inner = |one: &&QdiscDump| one.dev == owner.dev && one.handle == qdisc;
    // Those have one class, and take no filters (`Class doesn't support blocks`).
    let only_one = reading
        .qdiscs
        .iter()
        .find(is_inner)
        .is_some_and(|one| matches!(one.kind, Kind::Tbf | Kind::Netem | Kind::Red));
    is_made.then(|| {
        let rest = match only_one {
            true => format!("; {qdisc} puts all of them into {classid}"),
            false => format!(", and to {classid} by a filter of {qdisc}"),
        };
        format!(
            "{classid} is a class of {qdisc}, which hangs in {class}: lead the packets to {class} here{rest}"
        )
    })
}

/// Was a class meant whose number is the same digits in the other base?
fn hexadecimal(reading: &PolicyModel, dev: &str, classid: Handle) -> Option<String> {
    let minor = format!("{:x}", classid.minor());
    let as_decimal: u16 = minor.parse().ok()?;
    let other = Handle::new(classid.major(), as_decimal);
    reading
        .class(dev, other)
        .filter(|_| other != classid)
        .map(|_| format!("class numbers are hexadecimal: {other} is {as_decimal} in decimal"))
}

/// Redirects to a device that is down, or to an ifb that has nothing to do with what comes.
fn redirects(reading: &PolicyModel) -> Vec<Finding> {
    let mut found = Vec::new();
    for filter in &reading.filters {
        for act in reached_acts(filter) {
            let Act::Mirred(Mirred { copy: false, to, arrives, .. }) = act else { continue };
            let to = to.as_str();
            let Some(step) = reading.maker_of_filter(filter).and_then(|op| reading.step_of(op)) else {
                continue;
            };
            let place =
                step.words.iter().rev().find(|word| word.text == to).and_then(|word| word.place.clone());
            let place = place.or_else(|| step.place.clone());
            let what = subject(reading, filter);
            if reading.down.iter().any(|down| down == to) {
                let because = match taken(reading, filter) {
                    Taken::All => "every packet that arrives is dropped there: the link is dead",
                    Taken::Some => "every packet that this filter takes is dropped there",
                };
                let mut finding = finding(
                    Rule::Redirect,
                    Level::Error,
                    place,
                    format!("{what} is redirected to {to}, which is down"),
                    because.into(),
                    format!("the commands leave {to} down"),
                );
                finding.fix = Some(Fix { what: format!("ip link set dev {to} up"), edits: Vec::new() });
                found.push(finding);
            } else if !arrives
                && is_ifb(reading, to)
                && reading.root(to).is_none()
                && !reading.filters.iter().any(|filter| filter.dev == to)
                && !reading.lost.tree(to)
            {
                found.push(finding(
                    Rule::Redirect,
                    Level::Warning,
                    place,
                    format!("{what} is redirected to {to}, which has no policy"),
                    match reading.was_there(to) {
                        // No command made it, so it is unknown whether it is up.
                        true => format!(
                            "where {to} is up, it comes back as it was: the detour does nothing; where it \
                            is down, as a new ifb is, it is dropped"
                        ),
                        false => "it comes back as it was: the detour does nothing".into(),
                    },
                    format!("no qdisc was added to {to}"),
                ));
            }
        }
    }
    found
}

/// An ifb with a policy to which nothing is redirected: it sends only what is.
fn unfed(reading: &PolicyModel, dev: &str) -> Option<Finding> {
    let root = reading.root(dev).filter(|_| is_ifb(reading, dev))?;
    // Of an ifb alone it is not known what the other devices do.
    let others = reading.qdiscs.iter().any(|qdisc| !qdisc.handle.is_none() && !is_ifb(reading, &qdisc.dev));
    let leads = |filter: &FilterDump| match &filter.entry {
        FilterEntry::Filter { actions, .. } => actions
            .iter()
            .any(|dump| matches!(&dump.action.act, Act::Mirred(mirred) if mirred.to.as_str() == dev)),
        _ => false,
    };
    // A filter that was refused may have led there; so may a rule that is not followed.
    let is_lost = |step: &Step| {
        let names_filters = || step.words.iter().any(|word| "filter".starts_with(&word.text));
        step.is_skipped || step.refused.is_some() && step.tool == "tc" && names_filters()
    };
    if !others
        || reading.is_compiled()
        || reading.filters.iter().any(leads)
        || reading.is_rule_lost()
        || reading.steps.iter().any(is_lost)
    {
        return None;
    }
    let step = reading.maker_of_qdisc(root).and_then(|op| reading.step_of(op))?;
    let mut finding = finding(
        Rule::Redirect,
        Level::Warning,
        step.place.clone(),
        format!("nothing redirects packets to {dev}: its {} has nothing to do", root.kind.name()),
        "an ifb sends only what a filter redirects to it; without one the download is not shaped".to_owned(),
        format!("no filter in these files leads to {dev}"),
    );
    let what = format!(
        "redirect what arrives: tc qdisc add dev DEVICE handle ffff: ingress, and tc filter add dev DEVICE parent \
         ffff: matchall action mirred egress redirect dev {dev}"
    );
    finding.fix = Some(Fix { what, edits: Vec::new() });
    Some(finding)
}

/// Which packets of those that arrive a filter takes.
enum Taken {
    All,
    Some,
}

/// A filter without conditions, as the only one of its list, takes all arrivals.
fn taken(reading: &PolicyModel, filter: &FilterDump) -> Taken {
    let FilterEntry::Filter { params, .. } = &filter.entry else { return Taken::Some };
    let compares = match params {
        FilterParams::Matchall { .. } => false,
        FilterParams::U32(u32) => u32.keys.iter().any(|key| key.mask != 0),
        _ => true,
    };
    let is_filter = |other: &&FilterDump| matches!(other.entry, FilterEntry::Filter { .. });
    let here =
        reading.filters.iter().filter(|other| other.dev == filter.dev && other.parent == filter.parent);
    let alone = here.filter(is_filter).count() == 1;
    let all = reading.arrives(filter) && filter.protocol == FilterOp::ALL && !compares && alone;
    if all { Taken::All } else { Taken::Some }
}

/// What a filter takes, in words.
fn subject(reading: &PolicyModel, filter: &FilterDump) -> String {
    let dev = &filter.dev;
    match (taken(reading, filter), reading.arrives(filter)) {
        (Taken::All, _) => format!("what arrives at {dev}"),
        (Taken::Some, true) => format!("what this filter takes of what arrives at {dev}"),
        (Taken::Some, false) => format!("what this filter takes of what leaves by {dev}"),
    }
}

fn is_ifb(reading: &PolicyModel, dev: &str) -> bool {
    let gateway = &reading.gateway;
    gateway.device(dev).is_some_and(|id| gateway.spec(id).kind == DeviceKind::Ifb)
}

/// Overhead counted by a size table at the root and by the classes or the bucket below again.
fn doubled(reading: &PolicyModel, dev: &str) -> Option<Finding> {
    let root = reading.root(dev)?;
    let stab = root.stab.as_ref().filter(|stab| stab.overhead != 0 || stab.linklayer == LinkLayer::Atm)?;
    let again =
        specs(reading, dev).find(|(_, spec)| spec.overhead != 0 || spec.linklayer == LinkLayer::Atm)?;
    let (step, spec) = again;
    let once = cost(1000, stab.overhead, stab.linklayer);
    let twice = cost(once, i32::from(spec.overhead), spec.linklayer);
    Some(finding(
        Rule::Overhead,
        Level::Warning,
        at_word(step, if step.after("overhead").is_some() { "overhead" } else { "linklayer" }),
        format!(
            "the link's framing is counted twice on {dev}: by the size table of {} and here",
            root.handle
        ),
        "every packet is charged more than it takes: the rate is missed".into(),
        format!("a frame of 1000 bytes is counted as {once} by the size table and as {twice} here"),
    ))
}

/// Overhead counted by a size table and by the cake above or below it.
fn doubled_by_cake(reading: &PolicyModel, qdisc: &QdiscDump) -> Option<Finding> {
    let QdiscParams::Cake(cake) = &qdisc.params else { return None };
    let counts = cake.overhead.is_some_and(|bytes| bytes != 0)
        || matches!(cake.framing, Some(CakeFraming::Atm | CakeFraming::Ptm));
    let table = |qdisc: &&QdiscDump| {
        qdisc.stab.as_ref().is_some_and(|stab| stab.overhead != 0 || stab.linklayer == LinkLayer::Atm)
    };
    let owner = Some(qdisc).filter(table).or_else(|| reading.root(&qdisc.dev).filter(table))?;
    let class = if qdisc.parent == Handle::ROOT { Handle::NONE } else { qdisc.parent };
    let own = reading.step_of(reading.maker_of_qdisc(qdisc)?).filter(|_| counts)?;
    let step = reading.step_of(reading.maker_of_qdisc(owner)?)?;
    let frame = reading.frame(&qdisc.dev);
    let twice = Bench::new(reading).rate(&qdisc.dev, class, frame)?;
    // Without the table: `stab` and all words up to the kind of the qdisc.
    let from = step.words.iter().position(|word| word.text == "stab")?;
    let to = from + step.words.get(from..)?.iter().position(|word| word.text == owner.kind.name())?;
    let kept = step.words.iter().enumerate().filter(|(at, _)| !(from..to).contains(at));
    let kept: Vec<String> = kept.map(|(_, word)| word.text.clone()).collect();
    let once = Bench::rebuilt(reading, &kept)?.rate(&qdisc.dev, class, frame)?;
    let keyword = own.words.iter().rev().find(|word| word.text == "overhead").map_or("cake", |_| "overhead");
    (twice.0 + once.0 / 1000 < once.0).then(|| {
        let mut found = finding(
            Rule::Overhead,
            Level::Warning,
            at_word(step, "stab").filter(|_| step != own).or_else(|| at_word(own, keyword)),
            format!("the link's framing is counted twice on {}: by a size table (stab) and by cake", qdisc.dev),
            "cake adds its own to what the size table has counted: every packet is charged more than it takes".into(),
            format!(
                "kept full with frames of {frame} bytes, {} leave, and {} without the size table",
                words::rate(twice),
                words::rate(once)
            ),
        );
        found.fix = Some(Fix {
            what: "leave out `stab` and its options: cake counts the overhead".into(),
            edits: Vec::new(),
        });
        found
    })
}

/// What a frame counts with overhead and in cells.
fn cost(frame: u32, overhead: i32, layer: LinkLayer) -> u32 {
    let bytes = frame.saturating_add_signed(overhead);
    match layer {
        LinkLayer::Ethernet => bytes,
        LinkLayer::Atm => bytes.div_ceil(48) * 53,
    }
}

/// The rates of a device's classes and buckets, each with the command that gave it.
fn specs<'r>(reading: &'r PolicyModel, dev: &'r str) -> impl Iterator<Item = (&'r Step, RateSpec)> {
    let classes = reading.htb_classes().filter(move |class| class.class.dev == dev).filter_map(|class| {
        let step = reading.step_of(reading.maker_of_class(dev, class.class.classid)?)?;
        Some((step, class.params.rate))
    });
    let buckets = reading.qdiscs.iter().filter(move |qdisc| qdisc.dev == dev).filter_map(|qdisc| {
        let QdiscParams::Tbf(tbf) = &qdisc.params else { return None };
        Some((reading.step_of(reading.maker_of_qdisc(qdisc)?)?, tbf.rate))
    });
    classes.chain(buckets)
}

/// Bytes of a short frame: an acknowledgement's, or a call's.
const SHORT: u32 = 100;

/// A class that counts less framing than those below it: it lets more through than its rate.
fn mixed(reading: &PolicyModel, dev: &str) -> Option<Finding> {
    if reading.root(dev)?.stab.is_some() {
        return None;
    }
    let of = |spec: &RateSpec| (spec.overhead, spec.linklayer == LinkLayer::Atm, spec.mpu);
    for child in reading.htb_classes().filter(|class| class.class.dev == dev) {
        let Some(parent) = reading.htb_class(dev, child.class.parent) else { continue };
        let (above, below) = (of(&parent.params.rate), of(&child.params.rate));
        if above >= below
            || cost(SHORT, above.0.into(), parent.params.rate.linklayer)
                >= cost(SHORT, below.0.into(), child.params.rate.linklayer)
        {
            continue;
        }
        let step = reading.step_of(reading.maker_of_class(dev, parent.class.classid)?)?;
        let counted = cost(SHORT, above.0.into(), parent.params.rate.linklayer);
        let really = cost(SHORT, below.0.into(), child.params.rate.linklayer);
        let rate = parent.params.ceil.rate;
        // What the classes below may send of their own accord holds short packets back, too.
        let below: Vec<Handle> = super::rates::leaves_below(reading, parent.class);
        let sent = Bench::new(reading).together(dev, &below, SHORT)?;
        let takes = Rate((u128::from(sent.0) * u128::from(really) / u128::from(SHORT)) as u64);
        if takes.0 <= rate.0 + rate.0 / 50 {
            continue;
        }
        return Some(finding(
            Rule::Overhead,
            Level::Warning,
            step.place.clone(),
            format!(
                "class {} does not count the framing that {} below it counts",
                parent.class.classid, child.class.classid
            ),
            format!(
                "with short packets more leaves than its {}: frames of {SHORT} bytes take {} of the link",
                words::rate(rate),
                words::rate(takes)
            ),
            format!(
                "a frame of {SHORT} bytes counts {counted} there and {really} below; with {} kept full, {} \
                of them leave",
                words::count(below.len(), "leaf", "leaves"),
                words::rate(sent)
            ),
        ));
    }
    None
}

/// Does a filter hold what leaves its device to a rate, or lead it to another device, which may do so?
fn limits_or_leads_away(filter: &FilterDump) -> bool {
    let does = |act: &Act| matches!(act, Act::Police(_)) || act.redirects_to().is_some();
    !filter.parent.sees_arriving() && reached_acts(filter).any(does)
}

/// A device whose policy has classes or bands and no rate anywhere.
fn unlimited(reading: &PolicyModel, dev: &str) -> Option<Finding> {
    let root = reading.root(dev)?;
    // fq may pace each flow, a netem delays some, and a plug lets nothing go.
    let holds = |qdisc: &QdiscDump| match &qdisc.params {
        QdiscParams::Netem(netem) => {
            netem.latency_ns > 0 || netem.jitter_ns > 0 || netem.rate.is_some() || netem.slot.is_some()
        }
        QdiscParams::Fq(fq) => fq.max_rate.is_some_and(|rate| rate != u32::MAX),
        _ => qdisc.kind == Kind::Plug || reading.has_own_rate(qdisc),
    };
    // Real time without a share is a rate.
    let is_held = |class: &ClassDump| {
        let curves = if let ClassParams::Hfsc(curves) = &class.params { curves } else { return false };
        curves.rt.is_some() && curves.ls.is_none() && reading.is_leaf(class)
    };
    if reading.qdiscs.iter().any(|qdisc| qdisc.dev == dev && holds(qdisc))
        || reading.classes.iter().any(|class| class.dev == dev && is_held(class))
        || reading.down.iter().any(|down| down == dev)
        || reading.lost.tree(dev)
        || reading.filters.iter().any(|filter| filter.dev == dev && limits_or_leads_away(filter))
    {
        return None;
    }
    let sorts =
        matches!(root.kind.classes(), ClassLayout::Bands | ClassLayout::Made) || root.kind == Kind::Sfq;
    let step = reading.step_of(reading.maker_of_qdisc(root)?)?;
    let spec = reading.gateway.spec(reading.gateway.device(dev)?);
    let shown = match root.kind {
        Kind::Hfsc => {
            "hfsc at the root without any upper limit (ul): its classes share what the device takes"
                .to_owned()
        }
        kind => format!("{} at the root, and nothing that holds a rate", kind.name()),
    };
    sorts.then(|| {
        finding(
            Rule::Unlimited,
            Level::Note,
            step.place.clone(),
            format!("nothing holds what {dev} sends to a rate"),
            match (spec.kind, spec.queueless) {
                (DeviceKind::Ifb, _) => "an ifb sends at once: packets never wait here, and no class counts",
                (_, true) => {
                    "a device that is made in software sends at once: packets never wait here, and no class counts"
                }
                (_, false) => {
                    "packets wait here only while the device itself is busy; before a slower modem the queue, and with \
                    it the delay, is in the modem, where no class counts"
                }
            }
            .into(),
            shown,
        )
    })
}
