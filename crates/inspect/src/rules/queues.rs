//! R12, R13 and R19: bursts and queue lengths that do not fit the rate above them.

use super::idle::is_mentioned;
use super::making::{at_word, edit, finding};
use super::measured::{ACKNOWLEDGEMENT, FIRST_WINDOW, MOST_SHAPES, draws, led_to, longest_of};
use super::{bursts, tiny};
use crate::drive::{Bench, FULL, Filled, Unfinished};
use crate::finding::{Finding, Fix, Level, Rule};
use crate::reading::{PolicyModel, SourceLocation, Step, Word};
use crate::tree::{HtbClass, Leaf};
use crate::words;
use std::collections::{BTreeMap, BTreeSet};
use std::iter;
use tidegate_packet::{Handle, Nanos, Rate};
use tidegate_policy::dump::{ClassDump, QdiscDump};
use tidegate_policy::{ClassLayout, ClassParams, Kind, Op, QdiscOp, QdiscParams, Waits};
use tidegate_qdisc::algo::adjusted_size;
use tidegate_syntax::units::parse_time;

/// A queue that takes longer than this is the delay it should prevent.
const LONG: Nanos = Nanos::millis(1000);
const LONGISH: Nanos = Nanos::millis(250);
/// A queue that holds less than the link sends in this time starves a single upload.
const SHORT: Nanos = Nanos::millis(10);
/// Frames offered at once to see how long a queue is.
const FRAMES: usize = FULL;
/// No packet takes less of the kernel's memory, bytes.
const LEAST_MEMORY: u32 = 512;
/// Frames offered to see whether any of them is taken.
const OFFERED: u32 = 10;

/// Bursts and queues that do not fit.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let reading = &*reading;
    let mut bench = Bench::new(reading);
    let mut found = Vec::new();
    for class in reading.htb_classes().filter(|class| reading.is_leaf(class.class)) {
        found.extend(burst(reading, &mut bench, class).map(|finding| reading.if_idle(class.class, finding)));
    }
    let lengths = lengths(reading, &mut bench);
    let if_idle = |length: &Length<'_>, finding: Finding| match reading.class(length.dev, length.class) {
        Some(class) => reading.if_idle(class, finding),
        None => finding,
    };
    let mut busy: BTreeMap<Shape, Result<Filled, Unfinished>> = BTreeMap::new();
    let mut long: Vec<(Nanos, Finding)> = lengths
        .iter()
        .filter_map(|length| {
            let (wait, finding) = long(reading, &mut bench, &mut busy, length)?;
            Some((wait, if_idle(length, finding)))
        })
        .collect();
    // A line that does the same many times has one finding: the one with the longest delay.
    long.sort_by_key(|(wait, _)| std::cmp::Reverse(*wait));
    let long: Vec<Finding> = long.into_iter().map(|(_, finding)| finding).collect();
    let matches = |dev: &str| {
        let here = |length: &&Length<'_>| length.dev == dev;
        let mut places = lengths.iter().filter(here).filter_map(|length| length.step.place.as_ref());
        let worse = |line: usize| {
            long.iter().any(|f| f.level > Level::Note && f.place.as_ref().is_some_and(|p| p.line == line))
        };
        places.any(|place| worse(place.line))
    };
    // Where a queue is far too long already, that is the finding.
    let quiet = reading.shaped().into_iter().filter(|dev| !matches(dev) && !reading.lost.tree(dev));
    let quiet: Vec<&str> = quiet.collect();
    found.extend(quiet.into_iter().filter_map(|dev| no_aqm(reading, dev, &lengths, bench.delays(dev))));
    found.extend(long);
    let tiny = tiny::check(reading, &mut bench);
    let locations: BTreeSet<&Option<SourceLocation>> = tiny.iter().map(|finding| &finding.place).collect();
    let others = lengths.iter().filter(|length| !locations.contains(&at_limit(length.step)));
    found.extend(others.filter_map(|length| Some(if_idle(length, short(length)?))));
    found.extend(tiny);
    found.extend(lengths.iter().filter_map(|length| Some(if_idle(length, target(reading, length)?))));
    found.extend(reading.qdiscs.iter().filter_map(|qdisc| interval(reading, qdisc)));
    found.extend(reading.qdiscs.iter().filter_map(|qdisc| bucket(reading, &mut bench, qdisc)));
    found.extend(reading.qdiscs.iter().filter_map(|qdisc| memory(reading, &mut bench, qdisc)));
    found.extend(bursts::check(reading, &mut bench));
    found
}

/// A bucket of HTB that holds less than half a frame. The rate is kept all the same: a class waits for each
/// packet's own time, exactly. Where less leaves, something else holds it back.
fn burst(
    reading: &PolicyModel,
    bench: &mut Bench<'_>,
    HtbClass { class, params }: HtbClass<'_>,
) -> Option<Finding> {
    let frame = reading.frame(&class.dev);
    let value_of = |rate: Rate, ns: u64| (u128::from(rate.0) * u128::from(ns) / 1_000_000_000) as u64;
    let (burst, cburst) = (
        value_of(params.rate.rate, params.buffer.duration().0),
        value_of(params.ceil.rate, params.cbuffer.duration().0),
    );
    let (keyword, least) = if burst <= cburst { ("burst", burst) } else { ("cburst", cburst) };
    if least >= u64::from(frame / 2) {
        return None;
    }
    let step = reading.step_of(reading.maker_of_class(&class.dev, class.classid)?)?;
    step.after(keyword)?;
    let reached = bench.rate(&class.dev, class.classid, frame)?;
    // A limit of a class above, or a missing lender, is not the burst's fault.
    let wanted = match class.parent {
        Handle::ROOT => params.ceil.rate.min(params.rate.rate),
        _ => params.ceil.rate.min(super::capped::above(reading, &class.dev, class.classid)),
    };
    let what =
        format!("{keyword} of class {} holds {least} bytes, less than half a frame ({frame})", class.classid);
    if reached.0 < wanted.0 * 98 / 100 {
        return None;
    }
    let because = "the rate is kept, with one timer for each packet".to_owned();
    let witness = format!("kept full, it sends {}", words::rate(reached));
    let mut finding = finding(Rule::Burst, Level::Note, at_word(step, keyword), what, because, witness);
    // `burst` is the rate's bucket, `cburst` the ceil's.
    let (whose, rate) =
        if keyword == "burst" { ("rate", params.rate.rate) } else { ("ceil", params.ceil.rate) };
    let enough = u64::from(frame).max(rate.0 / 250);
    let what = format!("give what the {whose} sends in a tick of 4 ms, a frame at least");
    finding.fix = edit(step, keyword, &enough.to_string(), &what);
    Some(finding)
}

/// A bucket of TBF, or that of its peak rate, that holds less than a frame: longer packets are dropped.
fn bucket(reading: &PolicyModel, bench: &mut Bench<'_>, qdisc: &QdiscDump) -> Option<Finding> {
    let QdiscParams::Tbf(tbf) = &qdisc.params else { return None };
    let class = led_to(reading, qdisc)?;
    let comes =
        [class, qdisc.parent].iter().find_map(|class| reading.short.get(&(qdisc.dev.clone(), *class)));
    let frame = reading.frame(&qdisc.dev).min(comes.copied().unwrap_or(u32::MAX));
    let counted = counted(reading, qdisc, frame);
    let value_of = |rate: Rate, time: Nanos| (u128::from(rate.0) * u128::from(time.0) / 1_000_000_000) as u64;
    let op = reading.maker_of_qdisc(qdisc)?;
    // What tc says in bytes holds; a dump has only the times.
    let [said, said_of_peak] = match &reading.ops[op] {
        Op::Qdisc(QdiscOp { params: Some(QdiscParams::Tbf(own)), .. }) => [own.burst, own.peak_burst],
        _ => [0, 0],
    };
    let bytes_of =
        |said: u32, rate: Rate, time: Nanos| if said > 0 { said.into() } else { value_of(rate, time) };
    let burst = bytes_of(said, tbf.rate.rate, tbf.buffer.duration());
    let peak = tbf.peak.as_ref().map(|peak| bytes_of(said_of_peak, peak.rate, tbf.peak_buffer.duration()));
    let step = reading.step_of(op)?;
    let text_of = |words: [&'static str; 3]| words.into_iter().find(|word| step.after(word).is_some());
    let of_burst = (text_of(["burst", "buffer", "maxburst"]), burst, "longer packets are dropped, every one");
    let of_peak = (
        text_of(["mtu", "minburst", "minburst"]),
        peak.unwrap_or(u64::MAX),
        "longer packets never fit the bucket of the peak rate, and are dropped, every one",
    );
    let small = |(word, capacity, _): &(Option<&'static str>, u64, &str)| {
        word.is_some() && capacity.saturating_add(1) < u64::from(counted)
    };
    let short: Vec<_> = [of_burst, of_peak].into_iter().filter(small).collect();
    let (keyword, bytes, why) = short.iter().min_by_key(|(_, capacity, _)| *capacity).copied()?;
    let keyword = keyword?;
    if bench.survivors(&qdisc.dev, class, frame, OFFERED)? > 0 {
        return None;
    }
    let because = match class {
        Handle::NONE => format!("{why}: transfers whose data passes {} stall", qdisc.dev),
        class => format!("in {class} {why}: transfers there stall"),
    };
    let by_stab = if counted == frame { String::new() } else { format!(", which stab counts as {counted}") };
    let mut finding = finding(
        Rule::Burst,
        Level::Error,
        at_word(step, keyword),
        format!("{keyword} holds {bytes} bytes, less than a frame of {} ({frame}{by_stab})", qdisc.dev),
        because,
        format!("of {OFFERED} frames of {frame} bytes none was taken"),
    );
    // A remedy lets such frames through on the engine, with every parameter changed that prevents it.
    let enough = counted.max(1540).to_string();
    let keywords: Vec<&str> = short.iter().filter_map(|(word, ..)| *word).collect();
    let mut words: Vec<String> = step.words.iter().map(|word| word.text.clone()).collect();
    for keyword in &keywords {
        let at = step.words.iter().position(|word| word.text == *keyword)?;
        *words.get_mut(at + 1)? = enough.clone();
    }
    let tried =
        Bench::rebuilt(reading, &words).and_then(|mut bench| bench.survivors(&qdisc.dev, class, frame, 1));
    if tried == Some(1) {
        let fixes =
            keywords.iter().filter_map(|keyword| edit(step, keyword, &enough, "room for a frame at least"));
        finding.fix = fixes.reduce(super::policers::joined);
    }
    Some(finding)
}

/// The length that a qdisc counts for a frame: by the innermost size table (`stab`) on the way to it.
fn counted(reading: &PolicyModel, qdisc: &QdiscDump, frame: u32) -> u32 {
    let mut tables = iter::once(qdisc).chain(reading.above(qdisc)).filter_map(|one| one.stab.as_ref());
    tables.next().map_or(frame, |stab| adjusted_size(stab, frame))
}

/// A leaf with its rates.
struct Length<'r> {
    dev: &'r str,
    /// The class of the queue; [`Handle::NONE`]: TBF's own queue.
    class: Handle,
    /// The parent of a queue in its place.
    parent: Handle,
    kind: Kind,
    /// The limit that was given, with its keyword; `None`: none.
    limit: Option<[&'r Word; 2]>,
    /// The kernel chose the handle of a queue's parent in its place.
    unnamed: bool,
    step: &'r Step,
    /// The rate while the others are busy, where a parameter gives it.
    rate: Option<Rate>,
    ceil: Rate,
    /// The queue's own classes share out, so that packets wait for those of their own flow only.
    fair: bool,
    others: Vec<Handle>,
    /// What it may send, in full: HFSC's curves and its siblings, else rate and ceil.
    curves: String,
    frame: u32,
    /// Packets that can come to it at once, where policers before it let no more through than it gets.
    bounded: Option<usize>,
    /// What its queue does when it is filled and the others are idle; measured where it is nothing but a
    /// queue.
    alone: Option<Filled>,
}

/// What makes two leaves of a device behave alike: kind, limit, curves (or rate and ceil), longest frame, and
/// how many others there are.
type Shape = (String, &'static str, String, String, u32, usize);

impl Length<'_> {
    fn shape(&self) -> Shape {
        let limit = self
            .limit
            .map_or_else(String::new, |[keyword, value]| format!("{} {}", keyword.text, value.text));
        let curves = format!("{} {:?}", self.curves, self.bounded);
        (self.dev.to_owned(), self.kind.name(), limit, curves, self.frame, self.others.len())
    }
}

/// The leaves under HTB, HFSC and TBF whose queue has a length of its own.
fn lengths<'r>(reading: &'r PolicyModel, bench: &mut Bench<'_>) -> Vec<Length<'r>> {
    let mut lengths = Vec::new();
    let mut leaves: Vec<Leaf<'_>> = reading.leaves().collect();
    // Not in the order of the listing, which is by a hash: measurements must not depend on the names of
    // classes.
    leaves.sort_by_key(|leaf| (&leaf.class.dev, leaf.class.classid));
    for Leaf { class, rate, ceil } in &leaves {
        let child = reading.child(class);
        if child.is_some_and(has_red) {
            continue;
        }
        let kind = child.map_or(Kind::Pfifo, |child| child.kind);
        let maker = match child {
            Some(child) => reading.maker_of_qdisc(child),
            None => reading.maker_of_class(&class.dev, class.classid),
        };
        let Some(step) = maker.and_then(|op| reading.step_of(op)) else { continue };
        // The refusal of its queue is reported already.
        if child.is_none() && reading.lost.below(class) {
            continue;
        }
        // Packets can be sent by number only to the classes of a device's root.
        if reading.root(&class.dev).is_none_or(|root| root.handle != class.classid.qdisc()) {
            continue;
        }
        let others = leaves
            .iter()
            .map(|leaf| leaf.class)
            .filter(|other| other.dev == class.dev && other.classid != class.classid);
        lengths.push(Length {
            dev: &class.dev,
            class: class.classid,
            parent: class.classid,
            kind,
            limit: child.and(step.option("limit")),
            unnamed: false,
            step,
            rate: *rate,
            ceil: *ceil,
            fair: matches!(kind, Kind::Sfq | Kind::Hhf),
            others: others.map(|other| other.classid).take(64).collect(),
            curves: match &class.params {
                ClassParams::Hfsc(curves) => format!("{curves:?} {}", class.parent),
                // The lenders, and their order, are a part of it.
                ClassParams::Htb(htb) => format!("{rate:?} {ceil:?} {} {}", htb.prio, class.parent),
                _ => format!("{rate:?} {ceil:?}"),
            },
            frame: longest_of(reading, class),
            bounded: bounded(reading, class, *rate),
            alone: None,
        });
    }
    for qdisc in &reading.qdiscs {
        let QdiscParams::Tbf(tbf) = &qdisc.params else { continue };
        // Packets can be sent by number only to the classes of a device's root.
        let class = match qdisc.parent {
            Handle::ROOT => Handle::NONE,
            class if reading.root(&qdisc.dev).is_some_and(|root| root.handle == class.qdisc()) => class,
            _ => continue,
        };
        let inner = reading
            .qdiscs
            .iter()
            .find(|inner| inner.dev == qdisc.dev && inner.parent.qdisc() == qdisc.handle);
        if inner.is_some_and(has_red) {
            continue;
        }
        let Some(step) = reading.maker_of_qdisc(inner.unwrap_or(qdisc)).and_then(|op| reading.step_of(op))
        else {
            continue;
        };
        let words = ["limit", "latency"].into_iter().find_map(|word| step.option(word));
        lengths.push(Length {
            dev: &qdisc.dev,
            class,
            parent: Handle::new(qdisc.handle.major(), 1),
            kind: inner.map_or(Kind::Bfifo, |inner| inner.kind),
            limit: words,
            unnamed: reading.is_unnamed(qdisc),
            step,
            rate: Some(tbf.rate.rate),
            ceil: tbf.rate.rate,
            fair: inner.is_some_and(|inner| matches!(inner.kind, Kind::Sfq | Kind::Hhf)),
            others: Vec::new(),
            curves: format!("{:?}", tbf.rate.rate),
            frame: reading.frame(&qdisc.dev),
            bounded: None,
            alone: None,
        });
    }
    lengths.extend(reading.qdiscs.iter().flat_map(|qdisc| in_bucket(reading, qdisc)));
    // Classes that are alike do alike: one of each shape is measured.
    let mut measured: BTreeMap<Shape, Option<Filled>> = BTreeMap::new();
    for length in lengths.iter_mut().filter(|length| until_full(length.kind)) {
        if measured.len() >= MOST_SHAPES && !measured.contains_key(&length.shape()) {
            continue;
        }
        let fill = || queued(reading, bench, length, &[]).ok();
        length.alone = *measured.entry(length.shape()).or_insert_with(fill);
    }
    lengths
}

/// Packets of the longest frame that policers let into a class at once, where their rate is not above the
/// class's guaranteed rate: its queue never holds more.
fn bounded(reading: &PolicyModel, class: &ClassDump, rate: Option<Rate>) -> Option<usize> {
    let policed = reading.policed.get(&(class.dev.clone(), class.classid))?;
    let frames = policed.burst / u64::from(longest_of(reading, class).max(1));
    (policed.rate <= rate?).then_some(frames.max(1) as usize)
}

/// What a filled queue shows, without the delay of the netems on the way: that is no queue. `None` too where
/// it is not known how long they hold a packet.
fn queued(
    reading: &PolicyModel,
    bench: &mut Bench<'_>,
    length: &Length<'_>,
    others: &[Handle],
) -> Result<Filled, Unfinished> {
    // They wait there, too.
    if is_within_rate(reading, length.dev, length.class) {
        return Err(Unfinished::Unmeasured);
    }
    let most = length.bounded.map_or(FRAMES, |packets| packets.min(FRAMES));
    let filled = bench.fill_beside(length.dev, length.class, others, length.frame, most)?;
    if !bench.delays(length.dev) {
        return Ok(filled);
    }
    if reading.qdiscs.iter().any(|qdisc| qdisc.dev == length.dev && draws(&qdisc.params)) {
        return Err(Unfinished::Unmeasured);
    }
    let one = bench.fill_beside(length.dev, length.class, &[], length.frame, 1)?;
    Ok(Filled { wait: Nanos(filled.wait.0.saturating_sub(one.wait.0)), ..filled })
}

/// Is a class that of a netem with a rate or slots, or below one?
fn is_within_rate(reading: &PolicyModel, dev: &str, class: Handle) -> bool {
    let holds = |one: &QdiscDump| match &one.params {
        QdiscParams::Netem(netem) => netem.rate.is_some() || netem.slot.is_some(),
        _ => false,
    };
    reading.upward(dev, class.qdisc()).any(holds)
}

/// The queues of the bands or classes in a bucket: its rate is what they have in all.
fn in_bucket<'r>(reading: &'r PolicyModel, qdisc: &'r QdiscDump) -> Vec<Length<'r>> {
    let QdiscParams::Tbf(tbf) = &qdisc.params else { return Vec::new() };
    let hangs = |inner: &&QdiscDump| {
        inner.dev == qdisc.dev && inner.parent.qdisc() == qdisc.handle && !inner.handle.is_none()
    };
    let inner = reading.qdiscs.iter().filter(|_| !qdisc.handle.is_none()).find(hangs);
    let Some(inner) = inner.filter(|inner| reading.is_led_by_number(&qdisc.dev, inner.handle)) else {
        return Vec::new();
    };
    // HTB and HFSC have rates of their own, and are looked at by them.
    if !matches!(inner.kind, Kind::Prio | Kind::Ets | Kind::Drr | Kind::Qfq) {
        return Vec::new();
    }
    let classes = reading.classes.iter().filter(|class| {
        class.dev == qdisc.dev && class.classid.qdisc() == inner.handle && reading.is_leaf(class)
    });
    // Bands of prio wait for those before them as long as these have anything; the others take turns.
    let take_turns = inner.kind != Kind::Prio;
    let all: Vec<Handle> = classes.clone().map(|class| class.classid).collect();
    let of = |class: &'r ClassDump| {
        let child = reading.child(class);
        if child.is_some_and(has_red) {
            return None;
        }
        let maker = child.map_or_else(
            || reading.maker_of_class(&class.dev, class.classid).or_else(|| reading.maker_of_qdisc(inner)),
            |child| reading.maker_of_qdisc(child),
        );
        let step = reading.step_of(maker?)?;
        let kind = child.map_or(Kind::Pfifo, |child| child.kind);
        Some(Length {
            dev: &class.dev,
            class: class.classid,
            parent: class.classid,
            kind,
            limit: child.and(step.option("limit")),
            unnamed: reading.is_unnamed(inner),
            step,
            rate: None,
            ceil: tbf.rate.rate,
            fair: matches!(kind, Kind::Sfq | Kind::Hhf),
            others: all.iter().copied().filter(|other| take_turns && *other != class.classid).collect(),
            curves: format!("{:?}", tbf.rate.rate),
            frame: longest_of(reading, class),
            // Nothing is served before the first band.
            bounded: match inner.kind == Kind::Prio && class.classid.minor() == 1 {
                true => bounded(reading, class, Some(tbf.rate.rate)),
                false => None,
            },
            alone: None,
        })
    };
    classes.filter_map(of).collect()
}

/// A queue that, filled, takes long to empty.
fn long(
    reading: &PolicyModel,
    bench: &mut Bench<'_>,
    measured: &mut BTreeMap<Shape, Result<Filled, Unfinished>>,
    length: &Length<'_>,
) -> Option<(Nanos, Finding)> {
    if !until_full(length.kind) {
        return None;
    }
    // A queue of one packet cannot be shorter.
    let alone = length.alone.filter(|alone| alone.packets > 1)?;
    // What would be too long even at a share that small need not be measured.
    let bytes = u64::from(alone.packets) * u64::from(length.frame);
    let guess = length.rate.map_or(Nanos(u64::MAX), |rate| Nanos(bytes * 1_000_000_000 / rate.0.max(1)));
    if guess.0.max(alone.wait.0) < LONGISH.0 {
        return None;
    }
    let delays = bench.delays(length.dev);
    let fill = || queued(reading, bench, length, &length.others);
    let outcome = *measured.entry(length.shape()).or_insert_with(fill);
    let measured = outcome.ok();
    if measured.is_none() && delays {
        return None;
    }
    let busy = measured.unwrap_or(alone);
    let wait = busy.wait.max(alone.wait);
    // No more are offered: what it holds beyond that is not measured.
    let more = if busy.packets.max(alone.packets) as usize >= FRAMES { "more than " } else { "" };
    let level = match wait {
        wait if wait < LONGISH => return None,
        // A fair queue makes a flow wait for itself.
        wait if wait >= LONG && !length.fair => Level::Warning,
        _ => Level::Note,
    };
    let place = if length.limit.is_some() { at_limit(length.step) } else { length.step.place.clone() };
    let what = match length.limit {
        Some([keyword, value]) => {
            let place =
                if length.class.minor() == 0 { String::new() } else { format!(" in class {}", length.class) };
            // It was filled by one flow.
            let whose = if length.fair { "one flow's packets" } else { "packets" };
            format!("{} {} lets {more}{} of {whose} wait{place}", keyword.text, value.text, words::time(wait))
        }
        None if length.class.minor() == 0 => format!("{more}{} of packets may wait", words::time(wait)),
        None if length.fair => {
            let kind = length.kind.name();
            let packets = words::count(busy.packets as usize, "packet", "packets");
            format!("{kind} without a limit lets {packets} wait, {}", words::time(wait))
        }
        None => {
            let queue = if length.kind == Kind::PfifoFast { "pfifo_fast" } else { "FIFO" };
            format!(
                "the {queue} of class {} has no limit set: {} of packets may wait",
                length.class,
                words::time(wait)
            )
        }
    };
    let who = match length.kind {
        _ if length.fair => "a flow that fills it delays its own packets",
        // Others go ahead.
        Kind::Skbprio => "a flow that fills it delays all others of its priority",
        Kind::PfifoFast => "a flow that fills it delays all others in its band",
        _ => "a flow that fills it delays all others in it",
    };
    let because = format!(
        "{who}: {more}{} while the other classes are busy, {more}{} when they are idle",
        words::time(busy.wait),
        words::time(alone.wait)
    );
    let alike = busy.wait.0 < alone.wait.0 + alone.wait.0 / 10;
    let because = match outcome {
        Err(Unfinished::Unmeasured) => {
            format!("{who}: {more}{} while the other classes are idle", words::time(alone.wait))
        }
        // What left meanwhile shows that it is served; how long the rest takes was not waited for.
        Err(Unfinished::Waiting { packets, after }) if packets < alone.packets && after <= alone.wait => {
            let busy = match length.rate.filter(|_| guess > alone.wait) {
                Some(rate) => format!(
                    "and {} at the {} that it is guaranteed, while they are busy",
                    words::time(guess),
                    words::rate(rate)
                ),
                None => "and no less while they are busy".to_owned(),
            };
            format!("{who}: {more}{} while the other classes are idle, {busy}", words::time(alone.wait))
        }
        Err(Unfinished::Waiting { packets, after }) => format!(
            "{who}: {more}{} while the other classes are idle; while they are busy {} still wait after {}",
            words::time(alone.wait),
            words::count(packets as usize, "packet", "packets"),
            words::time(after)
        ),
        Ok(_) if alike || length.others.is_empty() => who.to_owned(),
        Ok(_) => because,
    };
    let aside = if delays { ", netem's delay aside" } else { "" };
    let witness = format!(
        "{} of {} bytes taken, the last left after {}{aside}",
        words::count(busy.packets as usize, "packet", "packets"),
        length.frame,
        words::time(wait)
    );
    let mut finding = finding(Rule::Limit, level, place, what, because, witness);
    finding.fix = Some(shorter(length, busy));
    Some((wait, finding))
}

/// A limit that holds a fifth of a second; where that is a handful of packets, a queue that keeps itself
/// short.
fn shorter(length: &Length<'_>, busy: Filled) -> Fix {
    // By the measurement that the finding reports.
    let fits = u64::from(busy.packets) * Nanos::millis(200).0 / busy.wait.0.max(1);
    // The flows share its limit: a shorter one drops packets of all.
    if length.fair {
        return match length.kind {
            Kind::Sfq if fits >= 10 => {
                Fix { what: format!("a shorter queue for each flow: depth {fits}"), edits: Vec::new() }
            }
            _ => by_hand(length),
        };
    }
    let in_packets =
        length.limit.is_some() && length.kind != Kind::Bfifo && length.step.after("limit").is_some();
    if in_packets && fits >= 10 {
        return edit(length.step, "limit", &fits.to_string(), "hold a fifth of a second")
            .unwrap_or_else(|| by_hand(length));
    }
    by_hand(length)
}

/// The longest target of CoDel that is recommended, in ms.
const MOST_TARGET_MS: u64 = 1000;

fn by_hand(length: &Length<'_>) -> Fix {
    // CoDel's target must not be less than a frame takes (RFC 8289, 4.4).
    let frame_ms = (u64::from(length.frame) * 1500).div_ceil(length.ceil.0.max(1));
    if frame_ms > MOST_TARGET_MS {
        let what = format!(
            "a rate that sends a frame in less than {MOST_TARGET_MS} ms: no queue is short at this one"
        );
        return Fix { what, edits: Vec::new() };
    }
    // An existing fq_codel keeps parameters that are not given.
    let target = match frame_ms {
        6.. => format!(" target {frame_ms}ms interval {}ms", frame_ms + 95),
        _ if length.kind == Kind::FqCodel => " target 5ms interval 100ms".to_owned(),
        _ => String::new(),
    };
    let why = match length.kind {
        Kind::FqCodel | Kind::Codel => "with a target that a frame fits in",
        _ => "a queue that keeps itself short",
    };
    let what = match length.unnamed {
        false => {
            format!("{why}: tc qdisc replace dev {} parent {} fq_codel{target}", length.dev, length.parent)
        }
        true => format!(
            "{why}: `handle 99:` (or another number that is free) for the tbf, and: tc qdisc add dev {} \
            parent 99:1 fq_codel{target}",
            length.dev
        ),
    };
    Fix { what, edits: Vec::new() }
}

fn at_limit(step: &Step) -> Option<SourceLocation> {
    let keyword = if step.after("limit").is_some() { "limit" } else { "latency" };
    at_word(step, keyword)
}

/// A queue so short that a single upload cannot use the rate.
fn short(length: &Length<'_>) -> Option<Finding> {
    if !until_full(length.kind) || length.limit.is_none() || length.bounded.is_some() {
        return None;
    }
    let filled = length.alone?;
    let fits = u64::from(filled.packets) * u64::from(length.frame);
    let needed = (u128::from(length.ceil.0) * u128::from(SHORT.0) / 1_000_000_000) as u64;
    (fits < needed && filled.packets < 20).then(|| {
        let what = format!(
            "the queue holds {}, {} in all",
            words::count(filled.packets as usize, "packet", "packets"),
            words::bytes(fits)
        );
        let because = format!(
            "that is {} at {}; a transfer over a longer round trip loses packets before it uses the rate",
            words::time(Nanos(fits * 1_000_000_000 / length.ceil.0.max(1))),
            words::rate(length.ceil)
        );
        let packets = words::count(filled.packets as usize, "packet", "packets");
        let witness = format!("{packets} taken of {FRAMES} offered");
        finding(Rule::Limit, Level::Note, at_limit(length.step), what, because, witness)
    })
}

/// Whether a queue of this kind takes arrivals until it is full. hhf separates large flows from small, and
/// drops nothing before.
pub(super) fn until_full(kind: Kind) -> bool {
    kind.waits() == Waits::UntilFull || kind == Kind::Hhf
}

/// Is it an sfq whose flows are kept short by random early detection?
fn has_red(qdisc: &QdiscDump) -> bool {
    matches!(&qdisc.params, QdiscParams::Sfq(sfq) if sfq.red.is_some())
}

/// A limit of memory that no frame fits in, or less than a connection's first window. What is counted is what
/// the kernel keeps of a packet, which is more than the packet.
fn memory(reading: &PolicyModel, bench: &mut Bench<'_>, qdisc: &QdiscDump) -> Option<Finding> {
    let (keyword, bytes) = match &qdisc.params {
        QdiscParams::FqCodel(params) => ("memory_limit", params.memory_limit?),
        QdiscParams::FqPie(params) => ("memory_limit", params.memory_limit?),
        QdiscParams::Cake(params) => ("memlimit", params.memory_limit?),
        _ => return None,
    };
    let step = reading.step_of(reading.maker_of_qdisc(qdisc)?)?;
    let word = step.after(keyword)?;
    let class = led_to(reading, qdisc)?;
    let frame = reading
        .class(&qdisc.dev, class)
        .map_or(reading.frame(&qdisc.dev), |class| longest_of(reading, class));
    // There is room for a first window.
    if bytes >= 2 * FIRST_WINDOW * frame {
        return None;
    }
    let name = qdisc.kind.name();
    let left = bench.survivors(&qdisc.dev, class, frame, FIRST_WINDOW)?;
    let short = bench.survivors(&qdisc.dev, class, ACKNOWLEDGEMENT, 1)?;
    let (level, what, because) = match (left, short) {
        (0, 0) if bytes < LEAST_MEMORY => (
            Level::Error,
            format!("{name} with {keyword} {} takes no packet", word.text),
            "whatever comes to it is dropped".to_owned(),
        ),
        (0, 1..) if bytes < frame + frame / 2 => (
            Level::Error,
            format!("{name} with {keyword} {} takes no frame of {frame} bytes", word.text),
            "packets of full length are dropped, every one: transfers stall".to_owned(),
        ),
        // Where only short packets come, none begins a connection's transfer.
        (1..FIRST_WINDOW, _) if step.after("limit").is_none() && frame == reading.frame(&qdisc.dev) => (
            Level::Warning,
            format!("{name} with {keyword} {} may drop packets of a single burst", word.text),
            format!(
                "a TCP connection may begin with {FIRST_WINDOW} packets at once (RFC 6928): up to {} of \
                them are lost here",
                FIRST_WINDOW - left
            ),
        ),
        _ => return None,
    };
    let witness =
        format!("of {FIRST_WINDOW} frames of {frame} bytes offered before any left {left} were taken");
    Some(finding(Rule::Limit, level, at_word(step, keyword), what, because, witness))
}

/// CoDel with a target below the time of one frame, at the highest rate of its class.
fn target(reading: &PolicyModel, length: &Length<'_>) -> Option<Finding> {
    let inner = || {
        let is_inside =
            |qdisc: &&QdiscDump| qdisc.dev == length.dev && qdisc.parent.qdisc() == length.parent.qdisc();
        reading.qdiscs.iter().filter(|_| !length.parent.is_none()).find(is_inside)
    };
    let qdisc = match reading.class(length.dev, length.class) {
        Some(class) => reading.child(class)?,
        // In a bucket.
        None => inner().or_else(|| reading.root(length.dev))?,
    };
    let target = match &qdisc.params {
        QdiscParams::FqCodel(params) => params.target_us,
        QdiscParams::Codel(params) => params.target_us,
        _ => return None,
    };
    // Where the unit is in doubt, R17 says so.
    if super::units::is_doubtful(length.step, "target") {
        return None;
    }
    let target = Nanos::micros(u64::from(target?));
    // Rates count what a size table makes of a packet.
    let stab = reading.root(length.dev).and_then(|root| root.stab.as_ref());
    let counted = stab.map_or(length.frame, |stab| adjusted_size(stab, length.frame));
    let frame = Nanos(u64::from(counted) * 1_000_000_000 / length.ceil.0.max(1));
    // The kernel keeps times in units of 1.024 µs.
    let given = length
        .step
        .after("target")
        .and_then(|word| parse_time(&word.text))
        .map(|us| Nanos::micros(u64::from(us)));
    let given = given.filter(|given| words::time(*given) != words::time(target));
    (target < frame).then(|| {
        let what = format!(
            "a target of {}{} is less than a frame takes at {}, {}",
            words::time(given.unwrap_or(target)),
            if given.is_some() { format!(" (kept as {})", words::time(target)) } else { String::new() },
            words::rate(length.ceil),
            words::time(frame)
        );
        let because =
            "CoDel takes every queue of more than one packet for a standing one, and drops (RFC 8289, 4.4)"
                .to_owned();
        let by_stab =
            if counted == length.frame { String::new() } else { format!(", counted as {counted} by stab,") };
        let rate = words::rate(length.ceil);
        let witness = format!("{} bytes{by_stab} at {rate} take {}", length.frame, words::time(frame));
        let mut finding =
            finding(Rule::Limit, Level::Note, at_word(length.step, "target"), what, because, witness);
        finding.fix = Some(by_hand(length));
        finding
    })
}

/// CoDel whose target is no shorter than its interval: a burst that is over within a round trip counts as a
/// standing queue.
fn interval(reading: &PolicyModel, qdisc: &QdiscDump) -> Option<Finding> {
    let (target, interval) = match &qdisc.params {
        QdiscParams::FqCodel(params) => (params.target_us, params.interval_us),
        QdiscParams::Codel(params) => (params.target_us, params.interval_us),
        _ => return None,
    };
    let (target, interval) = (target?, interval?);
    let step = reading.step_of(reading.maker_of_qdisc(qdisc)?)?;
    let keyword = ["target", "interval"].into_iter().find(|keyword| step.after(keyword).is_some())?;
    let in_words = |us: u32| words::time(Nanos::micros(u64::from(us)));
    (target >= interval).then(|| {
        let what =
            format!("a target of {} is not below the interval of {}", in_words(target), in_words(interval));
        let because =
            "the interval is a round trip of the slowest path, within which senders react; the target is 5 \
            to 10 % of it (RFC 8289, 4.3 and 4.4)"
                .to_owned();
        let witness = format!(
            "{} keeps target {}, interval {}",
            qdisc.kind.name(),
            in_words(target),
            in_words(interval)
        );
        finding(Rule::Limit, Level::Warning, at_word(step, keyword), what, because, witness)
    })
}

/// A device on which nothing keeps its queue short.
fn no_aqm(reading: &PolicyModel, dev: &str, lengths: &[Length<'_>], delays: bool) -> Option<Finding> {
    let here = || reading.qdiscs.iter().filter(|qdisc| qdisc.dev == dev);
    if here().any(|qdisc| qdisc.kind.waits() == Waits::KeptShort || has_red(qdisc)) {
        return None;
    }
    let mut waits: BTreeMap<Handle, (bool, Nanos)> = BTreeMap::new();
    let mut root = None;
    for length in lengths.iter().filter(|length| length.dev == dev) {
        let filled = length.alone?;
        // A queue of one packet cannot be shorter.
        if filled.packets == 1 {
            continue;
        }
        waits.insert(length.class, (!length.fair, filled.wait));
        root = root.or(Some(length.step));
    }
    // Better one in which all wait for each other than one that separates flows.
    let long = waits.iter().filter(|(class, (_, wait))| {
        // A transfer's data does not wait with acknowledgements.
        let comes = |class: &ClassDump| {
            let data = !reading.takes_acks(class) && !reading.is_idle(class);
            data && (class.kind.classes() == ClassLayout::One || is_mentioned(reading, class))
        };
        *wait >= Nanos::millis(100) && reading.class(dev, **class).is_none_or(comes)
    });
    let (class, (is_shared, wait)) = long.max_by_key(|(_, which)| **which)?;
    let in_bands = lengths.iter().any(|length| {
        length.dev == dev && length.class == *class && matches!(length.kind, Kind::Skbprio | Kind::PfifoFast)
    });
    let for_whom = match is_shared {
        _ if in_bands => "for what has its priority",
        true => "for what shares it",
        false => "for the transfer's own packets",
    };
    let place = reading
        .maker_of_qdisc(reading.root(dev)?)
        .and_then(|op| reading.step_of(op))
        .and_then(|step| step.place.clone());
    let capped = lengths.iter().any(|length| {
        length.dev == dev
            && length.class == *class
            && length.alone.is_some_and(|alone| alone.packets as usize >= FRAMES)
    });
    let more = if capped { "more than " } else { "" };
    let alone = lengths.iter().filter(|length| length.dev == dev).count() == 1;
    let company = if alone { "" } else { ", even with the other classes idle" };
    let whose = if class.minor() == 0 { "its queue".to_owned() } else { format!("class {class}") };
    Some(finding(
        Rule::NoAqm,
        Level::Note,
        place,
        format!("no queue on {dev} keeps itself short"),
        format!(
            "a single transfer fills {whose} and keeps it full: {more}{} of delay {for_whom}{company}",
            words::time(*wait)
        ),
        format!(
            "filled, {whose} takes {more}{} to empty{}",
            words::time(*wait),
            if delays { ", netem's delay aside" } else { "" }
        ),
    ))
}
