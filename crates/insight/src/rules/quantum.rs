//! R4: how much the classes of HTB, DRR and ETS send in their turn.

use super::{addition, at_word, edit, finding};
use crate::finding::{Finding, Fix, Level, Rule};
use crate::reading::{Reading, Step};
use crate::tree::HtbClass;
use crate::words;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_packet::{Handle, Rate, Span};
use tidegate_policy::dump::{ClassDump, QdiscDump};
use tidegate_policy::{ClassParams, DrrClassParams, EtsClassParams, QdiscParams};

/// Above this many bytes the others wait for long.
const LARGE: u32 = 60_000;
/// A shorter wait for another class's turn is not felt.
const FELT: Span = Span::millis(1);

/// Quanta that do not fit.
pub(super) fn check(reading: &mut Reading) -> Vec<Finding> {
    let reading = &*reading;
    let turns = turns(reading);
    let warned: BTreeSet<u32> = reading.kernel_log.iter().filter_map(|line| warned_of(line)).collect();
    let htb = reading.htb_classes().filter_map(|class| of_htb(reading, class, &turns, &warned));
    let drr = reading.classes.iter().filter_map(|class| {
        let ClassParams::Drr(DrrClassParams { quantum: Some(quantum) }) = class.params else { return None };
        let step = reading.step_of(reading.maker_of_class(&class.dev, class.classid)?)?;
        let frame = reading.frame(&class.dev);
        (quantum < frame).then(|| {
            let rounds = frame.div_ceil(quantum.max(1));
            let what = format!("quantum {quantum} is less than a frame of {} ({frame} bytes)", class.dev);
            let because =
                "shares stay right, but the class is passed over until it has saved up for its packet".to_owned();
            let witness = format!("a full frame waits {rounds} rounds");
            finding(Rule::Quantum, Level::Note, at_word(step, "quantum"), what, because, witness)
        })
    });
    let ets = reading.classes.iter().filter_map(|class| of_ets(reading, class));
    htb.chain(drr).chain(ets).collect()
}

/// A band of ETS whose quantum is less than a frame.
fn of_ets(reading: &Reading, class: &ClassDump) -> Option<Finding> {
    let ClassParams::Ets(EtsClassParams { quantum: Some(quantum) }) = class.params else { return None };
    let own = |qdisc: &&QdiscDump| qdisc.dev == class.dev && qdisc.handle == class.classid.qdisc();
    let maker = reading.maker_of_class(&class.dev, class.classid);
    let maker = maker.or_else(|| reading.maker_of_qdisc(reading.qdiscs.iter().find(own)?))?;
    let step = reading.step_of(maker)?;
    let frame = reading.frame(&class.dev);
    (quantum < frame).then(|| {
        let said = step.words.iter().find(|word| word.text == quantum.to_string());
        let place = said.and_then(|word| word.place.clone()).or_else(|| step.place.clone());
        let what = format!("band {} takes turns of {quantum} bytes, less than a frame ({frame})", class.classid);
        let because = "shares stay right, but it is passed over until it has saved up for its packet".to_owned();
        let witness = format!("a full frame waits {} rounds", frame.div_ceil(quantum.max(1)));
        finding(Rule::Quantum, Level::Note, place, what, because, witness)
    })
}

/// How many leaves take turns with one another: by device, parent and priority.
type Turns<'r> = BTreeMap<(&'r str, Handle, u32), usize>;

fn turns(reading: &Reading) -> Turns<'_> {
    let mut turns = Turns::new();
    for HtbClass { class, params } in reading.htb_classes() {
        if reading.is_leaf(class) {
            *turns.entry((class.dev.as_str(), class.parent, params.prio)).or_default() += 1;
        }
    }
    turns
}

fn of_htb(
    reading: &Reading,
    HtbClass { class, params }: HtbClass<'_>,
    turns: &Turns<'_>,
    warned: &BTreeSet<u32>,
) -> Option<Finding> {
    let quantum = params.quantum;
    let frame = reading.frame(&class.dev);
    let others = turns.get(&(class.dev.as_str(), class.parent, params.prio)).copied()?.saturating_sub(1);
    let warned = warned.contains(&class.classid.0);
    let fits = quantum >= frame && quantum <= LARGE;
    // Only classes of one priority under one parent take turns.
    if !warned && (fits || others == 0) {
        return None;
    }
    let step = reading.step_of(reading.maker_of_class(&class.dev, class.classid)?)?;
    let from_rate = step.after("quantum").is_none();
    let origin =
        if from_rate { r2q(reading, class.dev.as_str(), class.classid, params.rate.rate.0) } else { String::new() };
    let what = format!("class {} sends {quantum} bytes in its turn{origin}", class.classid);
    // What its own ceil lets through at a stretch, at the speed of all.
    let speed = fastest(reading, class).max(params.ceil.rate);
    let burst = u128::from(params.ceil.rate.0) * u128::from(params.cbuffer.span().0) / 1_000_000_000;
    let held_back = params.ceil.rate < speed && burst < u128::from(quantum);
    let stretch = if held_back { burst as u64 } else { u64::from(quantum) };
    let held = Span(stretch * 1_000_000_000 / speed.0.max(1));
    let company = others > 0 && (quantum <= LARGE || stretch > u64::from(LARGE));
    let is_felt = quantum <= LARGE || held >= FELT;
    let level = if company && is_felt { Level::Warning } else { Level::Note };
    let because = if quantum > LARGE && others > 0 && !company {
        "its own ceil ends its turn long before that".to_owned()
    } else if others == 0 {
        "no other class has its priority and its parent, so nobody waits for its turn to end".to_owned()
    } else if quantum > LARGE {
        let (time, speed) = (words::time(held), words::rate(speed));
        format!("classes of the same priority wait while it sends for {time} at a stretch, at {speed}")
    } else {
        let company = format!("{} of its priority", words::count(others, "other class", "other classes"));
        format!("that is less than one frame ({frame} bytes), so turns are not shared by quanta ({company})")
    };
    let witness = if warned {
        let size = if quantum > LARGE { "big" } else { "small" };
        format!("the kernel warns: quantum of class {:X} is {size}", class.classid.0)
    } else {
        format!("quantum {quantum}, frame {frame}")
    };
    let mut finding = finding(Rule::Quantum, level, at_word(step, "quantum"), what, because, witness);
    finding.fix = mend(step, from_rate, frame.max(1514));
    Some(finding)
}

fn mend(step: &Step, from_rate: bool, quantum: u32) -> Option<Fix> {
    if from_rate {
        addition(step, &format!("quantum {quantum}"), "say it")
    } else {
        edit(step, "quantum", &quantum.to_string(), "take a frame")
    }
}

/// The number of the class that a line of the kernel's log warns of.
fn warned_of(line: &str) -> Option<u32> {
    let (_, rest) = line.split_once("quantum of class ")?;
    u32::from_str_radix(rest.split(' ').next()?, 16).ok()
}

/// The ceil of the class at the top of a class's tree.
fn fastest(reading: &Reading, class: &ClassDump) -> Rate {
    let mut at = reading.htb_class(&class.dev, class.classid);
    let mut fastest = Rate(0);
    // HTB's trees are no deeper.
    for _ in 0..8 {
        let Some(class) = at else { break };
        fastest = class.params.ceil.rate;
        at = reading.htb_class(&class.class.dev, class.class.parent);
    }
    fastest
}

/// How the kernel came to a quantum.
fn r2q(reading: &Reading, dev: &str, classid: Handle, rate: u64) -> String {
    let root = reading.qdiscs.iter().find(|qdisc| qdisc.dev == dev && qdisc.handle == classid.qdisc());
    match root.map(|root| &root.params) {
        Some(QdiscParams::Htb(htb)) => format!(" (its rate, {rate} bytes/s, divided by r2q {})", htb.r2q),
        _ => String::new(),
    }
}
