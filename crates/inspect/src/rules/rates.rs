//! R3 and R5: rates, ceils and priorities of HTB, and curves of HFSC, that do not fit one another.

use super::making::{at_word, edit, finding};
use crate::drive::Bench;
use crate::finding::{Finding, Level, Rule};
use crate::reading::{PolicyModel, SourceLocation, Step};
use crate::tree::HtbClass;
use crate::words;
use tidegate_packet::{Handle, Nanos, Rate};
use tidegate_policy::dump::ClassDump;
use tidegate_policy::{ClassParams, ServiceCurve};
use tidegate_qdisc::algo::adjusted_size;
use tidegate_syntax::units::parse_classid;

/// HTB's lowest priority.
const LOWEST: u32 = 7;
/// Bytes of a full-sized segment's frame, and of an acknowledgement with timestamps and SACK, both on
/// Ethernet.
const SEGMENT: u64 = 1514;
const ACKNOWLEDGEMENT: u64 = 66;
/// Leaves that are kept busy at once to see what they send together: of more, the first.
const MOST_LEAVES: usize = 256;

/// What is wrong with the rates of HTB's classes.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let reading = &*reading;
    let mut bench = Bench::new(reading);
    let mut found: Vec<Finding> = Vec::new();
    for class in reading.htb_classes() {
        found.extend(
            above_ceil(reading, &mut bench, class).map(|finding| reading.if_idle(class.class, finding)),
        );
        found.extend(priority(reading, class));
        let own =
            above_parent(reading, &mut bench, class).into_iter().chain(no_parent(reading, &mut bench, class));
        found.extend(own.map(|finding| reading.if_idle(class.class, finding)));
        found.extend(promised(reading, &mut bench, class));
    }
    found.extend(real_time(reading, &mut bench));
    found.extend(reading.classes.iter().filter_map(|class| limit_above_parent(reading, class)));
    found.extend(reading.classes.iter().filter_map(|class| ahead_of_limit(reading, &mut bench, class)));
    found
}

/// HFSC's real-time curves below an upper limit that add up to more. That more leaves, the engine must show.
fn real_time(reading: &PolicyModel, bench: &mut Bench<'_>) -> Vec<Finding> {
    let steady = |curve: Option<ServiceCurve>| curve.map_or(0, |curve| u64::from(curve.m2));
    let mut found: Vec<Finding> = Vec::new();
    // Leaves with a finding, each with what would leave it once that is fixed.
    let mut known_classes: Vec<(&str, Handle, u64)> = Vec::new();
    let limited = reading.classes.iter().filter_map(|class| match &class.params {
        ClassParams::Hfsc(hfsc) => Some((class, Rate(steady(hfsc.ul)))).filter(|(_, limit)| limit.0 > 0),
        _ => None,
    });
    // Lower classes first: a finding of one is not repeated for those above.
    let mut limited: Vec<(usize, &ClassDump, Rate)> =
        limited.map(|(class, limit)| (reading.hfsc_leaves(class).len(), class, limit)).collect();
    limited.sort_by_key(|(leaves, ..)| *leaves);
    for (_, class, limit) in limited {
        let (leaves, all) = hfsc_busy(reading, class);
        let real = |class: &ClassDump| match &class.params {
            ClassParams::Hfsc(hfsc) => steady(hfsc.rt),
            _ => 0,
        };
        let mended = |leaf: &ClassDump| {
            let known = known_classes.iter().find(|(dev, id, _)| *dev == leaf.dev && *id == leaf.classid);
            known.map_or(real(leaf), |(.., most)| real(leaf).min(*most))
        };
        let sum = Rate(leaves.iter().map(|leaf| real(leaf)).sum());
        let left: u64 = leaves.iter().map(|leaf| mended(leaf)).sum();
        if left <= limit.0 + leaves.len() as u64
            || sum.0 <= limit.0 + leaves.len() as u64
            || words::rate(sum) == words::rate(limit)
        {
            continue;
        }
        let mut ids: Vec<Handle> = leaves.iter().map(|leaf| leaf.classid).collect();
        ids.truncate(MOST_LEAVES);
        let Some(sent) = bench.together(&class.dev, &ids, reading.frame(&class.dev)) else { continue };
        let maker = reading.maker_of_class(&class.dev, class.classid).and_then(|op| reading.step_of(op));
        let Some(step) = maker.filter(|_| sent.0 > limit.0 + limit.0 / 50) else { continue };
        let share = limit.0 / leaves.len().max(1) as u64;
        known_classes.extend(leaves.iter().map(|leaf| (leaf.dev.as_str(), leaf.classid, share)));
        let (real, most) = (words::rate(sum), words::rate(limit));
        let what = if reading.is_leaf(class) {
            format!(
                "class {} has a real-time guarantee of {real}, more than its upper limit of {most}",
                class.classid
            )
        } else {
            format!(
                "the real-time curves below {}{} add up to {real}, more than its upper limit of {most}",
                class.classid,
                if all { "" } else { " of classes that get packets" }
            )
        };
        found.push(finding(
            Rule::Rates,
            Level::Warning,
            upper_limit(step),
            what,
            format!(
                "an upper limit holds back link sharing only: {} {} instead of {most}, and the queue moves \
                to the next bottleneck",
                match reading.is_leaf(class) {
                    true => "alone it sends".to_owned(),
                    false => format!("when {} below it are busy they send", Below::busy(all)),
                },
                words::rate(sent)
            ),
            match reading.is_leaf(class) {
                true => format!("kept full, with the others idle, it sends {}", words::rate(sent)),
                false => {
                    format!("with {} below it kept full, {} leave", Below::every(all), words::rate(sent))
                }
            },
        ));
    }
    found
}

/// The leaves below a class of HFSC that packets come to, or all where they come to none; and whether that is
/// all.
fn hfsc_busy<'r>(reading: &'r PolicyModel, class: &'r ClassDump) -> (Vec<&'r ClassDump>, bool) {
    let leaves = reading.hfsc_leaves(class);
    let used: Vec<&ClassDump> = leaves.iter().copied().filter(|leaf| !reading.is_idle(leaf)).collect();
    match used.is_empty() || used.len() == leaves.len() {
        true => (leaves, true),
        false => (used, false),
    }
}

/// An upper limit of HFSC above one over it: that one counts.
fn limit_above_parent(reading: &PolicyModel, class: &ClassDump) -> Option<Finding> {
    let limit = |class: &ClassDump| match &class.params {
        ClassParams::Hfsc(hfsc) => hfsc.ul.map(|curve| Rate(u64::from(curve.m2))).filter(|limit| limit.0 > 0),
        _ => None,
    };
    let own = limit(class)?;
    let parent = reading.class(&class.dev, class.parent).filter(|parent| parent.classid != class.classid)?;
    let most = limit(parent).filter(|most| own > *most)?;
    let step = reading.step_of(reading.maker_of_class(&class.dev, class.classid)?)?;
    let (id, above) = (class.classid, parent.classid);
    Some(finding(
        Rule::Rates,
        Level::Note,
        upper_limit(step),
        format!(
            "the upper limit of class {id} is {}, that of its parent {above} only {}",
            words::rate(own),
            words::rate(most)
        ),
        "link sharing gives it no more than its parent's upper limit".into(),
        format!("{} > {}", words::rate(own), words::rate(most)),
    ))
}

/// A leaf of HFSC whose real-time curve begins above its upper limit, though it is not above it in the end.
fn ahead_of_limit(reading: &PolicyModel, bench: &mut Bench<'_>, class: &ClassDump) -> Option<Finding> {
    let ClassParams::Hfsc(hfsc) = &class.params else { return None };
    let (real, limit) = (hfsc.rt?, hfsc.ul.filter(|limit| limit.m2 > 0)?);
    let first = Nanos::micros(u64::from(real.d_us));
    if !reading.is_leaf(class) || real.m1 <= limit.m1.max(limit.m2) || real.m2 > limit.m2 || first == Nanos(0)
    {
        return None;
    }
    let step = reading.step_of(reading.maker_of_class(&class.dev, class.classid)?)?;
    let frame = reading.frame(&class.dev);
    let sent = bench.first(&class.dev, class.classid, frame, first)?;
    let most = limited(limit, first);
    // A frame more is no more than rounding.
    if sent <= most + 2 * u64::from(frame) {
        return None;
    }
    let id = class.classid;
    Some(finding(
        Rule::Rates,
        Level::Note,
        upper_limit(step),
        format!(
            "class {id} begins with {} in real time, above its upper limit of {}",
            words::rate(Rate(u64::from(real.m1))),
            words::rate(Rate(u64::from(limit.m2)))
        ),
        format!("for {} after it was idle the upper limit does not hold it back", words::time(first)),
        format!(
            "{} leave in that time, where the limit alone would let {} through",
            words::bytes(sent),
            words::bytes(most)
        ),
    ))
}

/// Bytes that a curve lets through in a time from its beginning.
fn limited(curve: ServiceCurve, time: Nanos) -> u64 {
    let bytes = |rate: u32, time: Nanos| (u128::from(rate) * u128::from(time.0) / 1_000_000_000) as u64;
    let first = Nanos(Nanos::micros(u64::from(curve.d_us)).0.min(time.0));
    bytes(curve.m1, first) + bytes(curve.m2, Nanos(time.0 - first.0))
}

/// The place of the steady rate of an upper limit: behind `ul rate`, or `ul … m2`.
fn upper_limit(step: &Step) -> Option<SourceLocation> {
    let from = step.words.iter().position(|word| word.text == "ul")?;
    let behind = step.words.get(from..)?;
    let at = behind.iter().position(|word| matches!(word.text.as_str(), "rate" | "m2"))?;
    behind.get(at + 1).and_then(|word| word.place.clone()).or_else(|| step.place.clone())
}

/// A rate above its own ceil: the class never gets it.
fn above_ceil(
    reading: &PolicyModel,
    bench: &mut Bench<'_>,
    HtbClass { class, params }: HtbClass<'_>,
) -> Option<Finding> {
    let (rate, ceil) = (params.rate.rate, params.ceil.rate);
    if rate <= ceil {
        return None;
    }
    let step = reading.step_of(reading.maker_of_class(&class.dev, class.classid)?)?;
    let sent = kept_full(reading, bench, class);
    // What its leaves send within their own rates passes an inner class, whatever its ceil is.
    let passed = sent.as_ref().filter(|(sent, _)| sent.0 > ceil.0 + ceil.0 / 50 && !reading.is_leaf(class));
    let mut because = match passed {
        Some((sent, _)) => format!(
            "its ceil holds back only what they borrow: when {} below it are busy {} leave through it",
            Below::busy(Below::of(reading, class).all),
            words::rate(*sent)
        ),
        None if reading.is_leaf(class) || sent.is_some() && is_kept(reading, bench, class, ceil) => {
            format!("it never gets more than {} of its guaranteed {}", words::rate(ceil), words::rate(rate))
        }
        None => "its ceil holds back what the classes below it borrow before its rate is used up".to_owned(),
    };
    if reading.takes_acks(class) {
        because.push_str(&format!(
            "; acknowledgements go there, and at {} they are enough for a download of {} (one of {} bytes \
            for two segments)",
            words::rate(ceil),
            words::rate(Rate(ceil.0 * 2 * SEGMENT / ACKNOWLEDGEMENT)),
            ACKNOWLEDGEMENT
        ));
    }
    let level = if passed.is_some() { Level::Warning } else { Level::Error };
    let witness = sent
        .map_or_else(|| format!("ceil {} < rate {}", words::rate(ceil), words::rate(rate)), |(_, text)| text);
    let mut finding = finding(
        Rule::Rates,
        level,
        at_word(step, "ceil"),
        format!(
            "class {} {}: ceil {} is below rate {}",
            class.classid,
            if reading.is_leaf(class) {
                "may send less than its own rate"
            } else {
                "may lend less than its own rate"
            },
            words::rate(ceil),
            words::rate(rate)
        ),
        because,
        witness,
    );
    let (rate, ceil) = (step.after("rate")?.text.as_str(), step.after("ceil")?.text.as_str());
    // Linux sends as if it were so; which of the two is wrong the words do not say.
    let what = format!("write what it comes to (or, by hand, raise the ceil: ceil {rate})");
    finding.fix = edit(step, "rate", ceil, &what);
    Some(finding)
}

/// Does no more than its ceil leave an inner class, whichever class sends? Those too that no packet comes to
/// yet.
fn is_kept(reading: &PolicyModel, bench: &mut Bench<'_>, class: &ClassDump, ceil: Rate) -> bool {
    let leaves: Vec<Handle> = ids(Below::leaves(reading, class));
    let sent = bench.together(&class.dev, &leaves, reading.frame(&class.dev));
    sent.is_some_and(|sent| sent.0 <= ceil.0 + ceil.0 / 50)
}

/// A priority beyond the last.
fn priority(reading: &PolicyModel, HtbClass { class, .. }: HtbClass<'_>) -> Option<Finding> {
    // Of a class with others below it the priority has no effect.
    if !reading.is_leaf(class) {
        return None;
    }
    let step = reading.step_of(reading.maker_of_class(&class.dev, class.classid)?)?;
    let given: u32 = step.after("prio")?.text.parse().ok().filter(|prio| *prio > LOWEST)?;
    let lowest: Vec<&ClassDump> = reading
        .htb_classes()
        .filter(|other| other.class.dev == class.dev && other.class.classid != class.classid)
        .filter(|other| other.class.classid.qdisc() == class.classid.qdisc())
        .filter(|other| other.params.prio == LOWEST && reading.is_leaf(other.class))
        .map(|other| other.class)
        .collect();
    // Classes of which the same was written come in turn all the same.
    let written = |other: &ClassDump| {
        let step = reading.step_of(reading.maker_of_class(&other.dev, other.classid)?)?;
        step.after("prio")?.text.parse::<u32>().ok()
    };
    let differs = |other: &&&ClassDump| written(other) != Some(given);
    let equals: Vec<String> = lowest.iter().filter(differs).map(|other| other.classid.to_string()).collect();
    let (level, because) = if lowest.is_empty() {
        (Level::Note, "nothing changes as long as no other class has prio 7".to_owned())
    } else if equals.is_empty() {
        (Level::Note, format!("nothing changes: the others of prio {LOWEST} have prio {given} too"))
    } else {
        (Level::Warning, format!("it is served in turn with {}, not after", equals.join(", ")))
    };
    let what = format!("HTB knows priorities 0 to {LOWEST}; prio {given} becomes {LOWEST}");
    let witness = format!("class {} has prio {LOWEST}", class.classid);
    let mut finding = finding(Rule::Priority, level, at_word(step, "prio"), what, because, witness);
    finding.fix = edit(
        step,
        "prio",
        &LOWEST.to_string(),
        "say what it becomes, and lower the others if they should come first",
    );
    Some(finding)
}

/// A class whose guaranteed rate exceeds what its parent may ever send, or with a ceil that it cannot reach.
fn above_parent(
    reading: &PolicyModel,
    bench: &mut Bench<'_>,
    HtbClass { class, params }: HtbClass<'_>,
) -> Option<Finding> {
    let parent = reading.htb_class(&class.dev, class.parent)?;
    let step = reading.step_of(reading.maker_of_class(&class.dev, class.classid)?)?;
    let most = parent.params.ceil.rate;
    let (id, above) = (class.classid, parent.class.classid);
    // Its own ceil may hold it below.
    if params.rate.rate.min(params.ceil.rate) > most {
        let measured = kept_full(reading, bench, class);
        let because = match measured {
            Some(_) => "a class's own rate is not limited by its parent: the shaping is exceeded",
            None => {
                "a class's own rate is not limited by its parent: the shaping is exceeded when it sends \
                that much"
            }
        };
        let witness = match measured {
            // The guaranteed rates of its leaves may keep it below, and then nothing is exceeded.
            Some((sent, _)) if sent <= Rate(most.0 + most.0 / 50) => return None,
            Some((_, text)) => text,
            None => format!("{} > {}", words::rate(params.rate.rate), words::rate(most)),
        };
        return Some(finding(
            Rule::Rates,
            Level::Error,
            at_word(step, "rate"),
            format!(
                "class {id} has {} guaranteed, more than its parent {above} may send ({})",
                words::rate(params.rate.rate),
                words::rate(most)
            ),
            because.into(),
            witness,
        ));
    }
    // Without a class above it the parent never reaches a ceil above its rate.
    let is_top = reading.htb_class(&class.dev, parent.class.parent).is_none();
    let reached = if is_top { most.min(parent.params.rate.rate) } else { most };
    (params.ceil.rate > most && step.after("ceil").is_some()).then(|| {
        let mut finding = finding(
            Rule::Rates,
            Level::Note,
            at_word(step, "ceil"),
            format!(
                "class {id} may send {}, but its parent {above} only {}",
                words::rate(params.ceil.rate),
                words::rate(reached)
            ),
            match reached < most {
                true => "the parent has no class to borrow from: its rate is what counts".into(),
                false => "the parent's ceil is what counts".into(),
            },
            format!("{} > {}", words::rate(params.ceil.rate), words::rate(reached)),
        );
        finding.fix = parent_word(reading, parent)
            .filter(|_| reached == most)
            .and_then(|word| edit(step, "ceil", &word, "say what can be reached"));
        finding
    })
}

/// A class right under the root with a ceil above its rate: it cannot borrow.
fn no_parent(
    reading: &PolicyModel,
    bench: &mut Bench<'_>,
    HtbClass { class, params }: HtbClass<'_>,
) -> Option<Finding> {
    let (rate, ceil) = (params.rate.rate, params.ceil.rate);
    if class.parent != Handle::ROOT || ceil <= rate || !reading.is_leaf(class) {
        return None;
    }
    let step = reading.step_of(reading.maker_of_class(&class.dev, class.classid)?)?;
    step.after("ceil")?;
    // It names a parent that does not exist: R6 reports that.
    if step
        .after("parent")
        .and_then(|word| parse_classid(&word.text))
        .is_some_and(|parent| parent.minor() != 0)
    {
        return None;
    }
    let reached = bench.rate(&class.dev, class.classid, reading.frame(&class.dev))?;
    (reached.0 < ceil.0 * 98 / 100).then(|| {
        let mut numbers = (1..=u16::MAX).map(|minor| class.classid.class(minor));
        let free = numbers.find(|id| reading.class(&class.dev, *id).is_none()).unwrap_or(class.classid);
        finding(
            Rule::Rates,
            Level::Warning,
            at_word(step, "ceil"),
            format!(
                "class {} never reaches its ceil of {}: it has no parent to borrow from",
                class.classid,
                words::rate(ceil)
            ),
            format!(
                "classes lend to one another below a common parent only; make one with the link's rate \
                (classid {free}) and hang them on it"
            ),
            format!("kept full, with all others idle, it sends {}", words::rate(reached)),
        )
    })
}

/// The word that gave a class's ceil.
fn parent_word(reading: &PolicyModel, HtbClass { class, .. }: HtbClass<'_>) -> Option<String> {
    let step = reading.step_of(reading.maker_of_class(&class.dev, class.classid)?)?;
    Some(step.after("ceil").or_else(|| step.after("rate"))?.text.clone())
}

/// What a class is guaranteed: never more than its ceil; of an inner class, also what the leaves below it
/// are, whatever its ceil, up to its rate (that they have more is a finding of its own).
fn guaranteed(reading: &PolicyModel, of: HtbClass<'_>, depth: usize) -> Rate {
    let (rate, ceil) = (of.params.rate.rate, of.params.ceil.rate);
    // HTB's trees are no deeper.
    if depth > 8 {
        return rate.min(ceil);
    }
    let below = reading.htb_children(of.class).map(|child| guaranteed(reading, child, depth + 1).0).sum();
    rate.min(ceil).max(rate.min(Rate(below)))
}

/// Children whose guaranteed rates exceed their parent's rate together. That more leaves than the parent may
/// send, the engine must show, with those kept full that packets come to.
fn promised(
    reading: &PolicyModel,
    bench: &mut Bench<'_>,
    HtbClass { class, params }: HtbClass<'_>,
) -> Option<Finding> {
    let children: Vec<HtbClass<'_>> = reading.htb_children(class).collect();
    let own = |child: &HtbClass<'_>| guaranteed(reading, *child, 0);
    let sum: u64 = children.iter().map(|child| own(child).0).sum();
    let used: u64 =
        children.iter().filter(|child| !is_unused(reading, child.class)).map(|child| own(child).0).sum();
    let (rate, ceil) = (params.rate.rate, params.ceil.rate);
    // Rates are rounded to whole bytes per second, each; and what reads the same is not worth a word.
    if children.is_empty()
        || sum <= rate.0 + children.len() as u64
        || words::rate(Rate(sum)) == words::rate(rate)
    {
        return None;
    }
    let step = reading.step_of(reading.maker_of_class(&class.dev, class.classid)?)?;
    let names: Vec<String> = children.iter().take(8).map(|child| words::rate(own(child))).collect();
    let ending = if children.len() > 8 { " + …" } else { "" };
    let what = format!(
        "the {} of {} {}promised {}{}, more than its {}",
        words::count(children.len(), "child", "children"),
        class.classid,
        if children.len() == 1 { "is " } else { "are " },
        words::rate(Rate(sum)),
        if children.len() == 1 { "" } else { " together" },
        words::rate(rate)
    );
    let arithmetic = format!("{}{ending} = {}", names.join(" + "), words::rate(Rate(sum)));
    let unlimited = "rates of children are not limited by their parent";
    let finding_of = |level, because: String, witness| {
        Some(finding(Rule::Rates, level, at_word(step, "rate"), what.clone(), because, witness))
    };
    if used <= rate.0 + children.len() as u64 {
        let because = match used {
            0 => "no packet reaches any of them yet",
            _ => "no packet reaches some of them yet; the others have no more guaranteed than it has",
        };
        return finding_of(Level::Note, because.to_owned(), arithmetic);
    }
    let Below { leaves, all } = Below::of(reading, class);
    let (busy, every) = (Below::busy(all), Below::every(all));
    let sent = bench.together(&class.dev, &leaves, reading.frame(&class.dev));
    let shown = |sent: Rate| format!("with {every} below it kept full, {} leave", words::rate(sent));
    let counted = |sent: Rate| counted(reading, class, sent);
    match sent.filter(|_| used > ceil.0) {
        Some(sent) if counted(sent).0 > ceil.0 + ceil.0 / 50 && counted(sent) != sent => finding_of(
            Level::Warning,
            format!(
                "{unlimited}: when {busy} are busy {} leave, which the size table at the root counts as {}, instead of {}",
                words::rate(sent),
                words::rate(counted(sent)),
                words::rate(ceil)
            ),
            shown(sent),
        ),
        Some(sent) if sent.0 > ceil.0 + ceil.0 / 50 => finding_of(
            Level::Warning,
            format!(
                "{unlimited}: when {busy} are busy {} leave instead of {}, and the queue moves to the next \
                bottleneck",
                words::rate(sent),
                words::rate(ceil)
            ),
            shown(sent),
        ),
        Some(sent) => finding_of(
            Level::Note,
            "the leaves below do not send that much, so its ceil is kept".to_owned(),
            shown(sent),
        ),
        None if used > ceil.0 => finding_of(
            Level::Warning,
            format!("{unlimited}: more may leave than its ceil of {}", words::rate(ceil)),
            arithmetic,
        ),
        None => match beyond(reading, bench, class) {
            Some((above, sent)) => {
                let Below { all, .. } = Below::of(reading, above.class);
                let (id, sent) = (above.class.classid, words::rate(sent));
                finding_of(
                    Level::Warning,
                    format!(
                        "{unlimited}, nor by those above it: when {} below {id} are busy {sent} leave \
                        instead of {}, and the queue moves to the next bottleneck",
                        Below::busy(all),
                        words::rate(above.params.ceil.rate)
                    ),
                    format!("with {} below {id} kept full, {sent} leave", Below::every(all)),
                )
            }
            None => {
                let from = match class.parent {
                    Handle::ROOT => "which its ceil allows",
                    _ => "and takes it from its own parent",
                };
                let because = format!("when {busy} are busy the parent sends more than its rate, {from}");
                finding_of(Level::Note, because, arithmetic)
            }
        },
    }
}

/// The leaves below a class that are kept busy to see what leaves through it.
struct Below {
    /// In order: measurements must not depend on the names of classes, by whose hash they are listed.
    leaves: Vec<Handle>,
    /// All there are; else those that packets come to.
    all: bool,
}

impl Below {
    /// Of a class of HTB. Where packets come to none of its leaves, all of them.
    fn of(reading: &PolicyModel, class: &ClassDump) -> Below {
        let leaves = Below::leaves(reading, class);
        let used: Vec<&ClassDump> = leaves.iter().copied().filter(|class| !reading.is_idle(class)).collect();
        let all = used.is_empty() || used.len() == leaves.len();
        Below { leaves: ids(if all { leaves } else { used }), all }
    }

    /// All leaves below a class of HTB.
    fn leaves<'r>(reading: &'r PolicyModel, class: &'r ClassDump) -> Vec<&'r ClassDump> {
        let mut leaves = Vec::new();
        let mut above = vec![class];
        while let Some(class) = above.pop() {
            for HtbClass { class, .. } in reading.htb_children(class) {
                if reading.is_leaf(class) { leaves.push(class) } else { above.push(class) }
            }
        }
        leaves
    }

    fn busy(all: bool) -> &'static str {
        if all { "all" } else { "all that get packets" }
    }

    fn every(all: bool) -> &'static str {
        if all { "every leaf" } else { "every leaf that gets packets" }
    }
}

/// The leaves below a class of HTB that packets come to; all, where they come to none.
pub(super) fn leaves_below(reading: &PolicyModel, class: &ClassDump) -> Vec<Handle> {
    Below::of(reading, class).leaves
}

/// The numbers of some classes, in order, up to a bound.
fn ids(classes: Vec<&ClassDump>) -> Vec<Handle> {
    let mut ids: Vec<Handle> = classes.into_iter().map(|class| class.classid).collect();
    ids.sort_unstable();
    ids.truncate(MOST_LEAVES);
    ids
}

/// Is it proved that no packet comes to a class, nor to any below it?
fn is_unused(reading: &PolicyModel, class: &ClassDump) -> bool {
    if reading.is_leaf(class) {
        return reading.is_idle(class);
    }
    Below::leaves(reading, class).into_iter().all(|leaf| reading.is_idle(leaf))
}

/// The nearest class above one that sends more than its ceil once all leaves below it are busy, and how much
/// that is.
fn beyond<'a>(
    reading: &'a PolicyModel,
    bench: &mut Bench<'_>,
    class: &ClassDump,
) -> Option<(HtbClass<'a>, Rate)> {
    let mut above = reading.htb_class(&class.dev, class.parent);
    while let Some(found) = above {
        let most = found.params.ceil.rate;
        if let Some(sent) = leaving(reading, bench, found.class).filter(|sent| sent.0 > most.0 + most.0 / 50)
        {
            return Some((found, sent));
        }
        above = reading.htb_class(&found.class.dev, found.class.parent);
    }
    None
}

/// The throughput of a class that is kept full, with how that was measured: alone, or by all leaves below it.
fn kept_full(reading: &PolicyModel, bench: &mut Bench<'_>, class: &ClassDump) -> Option<(Rate, String)> {
    if reading.is_leaf(class) {
        let sent = bench.rate(&class.dev, class.classid, reading.frame(&class.dev))?;
        return Some((sent, format!("kept full, it sends {}", words::rate(sent))));
    }
    let Below { leaves, all } = Below::of(reading, class);
    let sent = bench.together(&class.dev, &leaves, reading.frame(&class.dev))?;
    Some((sent, format!("with {} below it kept full, {} leave", Below::every(all), words::rate(sent))))
}

/// What the leaves below a class that packets come to send together, with always something to send.
fn leaving(reading: &PolicyModel, bench: &mut Bench<'_>, class: &ClassDump) -> Option<Rate> {
    bench.together(&class.dev, &Below::of(reading, class).leaves, reading.frame(&class.dev))
}

/// What a device sends in full frames, as the size table at its root counts it.
fn counted(reading: &PolicyModel, class: &ClassDump, sent: Rate) -> Rate {
    let frame = reading.frame(&class.dev);
    let stab = reading.root(&class.dev).and_then(|root| root.stab.as_ref());
    let bytes = stab.map_or(frame, |stab| adjusted_size(stab, frame));
    Rate(u64::try_from(u128::from(sent.0) * u128::from(bytes) / u128::from(frame.max(1))).unwrap_or(u64::MAX))
}
