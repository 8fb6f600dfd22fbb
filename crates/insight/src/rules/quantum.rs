//! R4: how much HTB's and DRR's classes send in their turn.

use super::{addition, at_word, edit, finding};
use crate::finding::{Finding, Fix, Level, Rule};
use crate::reading::{Reading, Step};
use crate::tree::HtbClass;
use crate::words;
use std::collections::BTreeMap;
use tidegate_packet::{Handle, Span};
use tidegate_policy::{ClassParams, DrrClassParams, QdiscParams};

/// Above this many bytes the others wait for long.
const LARGE: u32 = 60_000;

/// Quanta that do not fit.
pub(super) fn check(reading: &mut Reading) -> Vec<Finding> {
    let reading = &*reading;
    let turns = turns(reading);
    let warnings: Vec<&String> = reading.kernel_log.iter().filter(|line| line.contains("quantum of class")).collect();
    let htb = reading.htb_classes().filter_map(|class| of_htb(reading, class, &turns, &warnings));
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
    htb.chain(drr).collect()
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
    warnings: &[&String],
) -> Option<Finding> {
    let quantum = params.quantum;
    let frame = reading.frame(&class.dev);
    let others = turns.get(&(class.dev.as_str(), class.parent, params.prio)).copied()?.saturating_sub(1);
    let said = format!("quantum of class {:X} is ", class.classid.0);
    let warned = warnings.iter().any(|line| line.contains(&said));
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
    let level = if others == 0 { Level::Note } else { Level::Warning };
    let because = if others == 0 {
        "no other class has its priority and its parent, so nobody waits for its turn to end".to_owned()
    } else if quantum > LARGE {
        let held = Span(u64::from(quantum) * 1_000_000_000 / params.ceil.rate.0.max(1));
        format!("classes of the same priority wait while it sends for {} at a stretch", words::time(held))
    } else {
        let company = format!("{} of its priority", words::count(others, "other class", "other classes"));
        format!("that is less than one frame ({frame} bytes), so turns are not shared by quanta ({company})")
    };
    let witness = if warned {
        format!("the kernel warns: {said}{}", if quantum > LARGE { "big" } else { "small" })
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

/// How the kernel came to a quantum.
fn r2q(reading: &Reading, dev: &str, classid: Handle, rate: u64) -> String {
    let root = reading.qdiscs.iter().find(|qdisc| qdisc.dev == dev && qdisc.handle == classid.qdisc());
    match root.map(|root| &root.params) {
        Some(QdiscParams::Htb(htb)) => format!(" (its rate, {rate} bytes/s, divided by r2q {})", htb.r2q),
        _ => String::new(),
    }
}
