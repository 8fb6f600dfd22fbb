//! R4: how much the classes of HTB, DRR and ETS send in their turn.

use super::making::{at_word, finding};
use super::measured::longest_of;
use crate::drive::{Bench, Stretch};
use crate::finding::{Finding, Fix, Level, Rule};
use crate::reading::{PolicyModel, Step};
use crate::tree::HtbClass;
use crate::words;
use std::collections::BTreeMap;
use tidegate_packet::{Handle, Nanos};
use tidegate_policy::dump::{ClassDump, QdiscDump};
use tidegate_policy::{ClassParams, DrrClassParams, EtsClassParams, HtbClassParams, QdiscParams};

/// Above this many bytes the others wait for long.
const LARGE: u32 = 60_000;
/// A shorter wait for another class's turn is not felt.
const FELT: Nanos = Nanos::millis(1);
/// Classes whose turns are measured; a policy of more has the others named without a time.
const MOST_MEASURED: usize = 64;
/// Classes that are kept busy beside one that is measured.
const MOST_OTHERS: usize = 15;
/// What the kernel makes of a rate divided by r2q is no less,
const LEAST_OF_RATE: u64 = 1000;
/// and no more.
const MOST_OF_RATE: u64 = 200_000;

/// Quanta that do not fit.
pub(super) fn check(reading: &mut PolicyModel) -> Vec<Finding> {
    let reading = &*reading;
    let turns = turns(reading);
    let mut bench = Measured { bench: Bench::new(reading), known: BTreeMap::new() };
    let htb: Vec<Finding> = reading
        .htb_classes()
        .filter_map(|class| {
            of_htb(reading, class, &turns, &mut bench).map(|finding| reading.if_idle(class.class, finding))
        })
        .collect();
    let drr = reading.classes.iter().filter_map(|class| {
        let ClassParams::Drr(DrrClassParams { quantum: Some(quantum) }) = class.params else { return None };
        let step = reading.step_of(reading.maker_of_class(&class.dev, class.classid)?)?;
        let frame = longest_of(reading, class);
        (quantum < frame).then(|| {
            let rounds = frame.div_ceil(quantum.max(1));
            let what = format!("quantum {quantum} is less than {}", frame_of(reading, class));
            let because =
                "shares stay right, but the class is passed over until it has saved up for its packet"
                    .to_owned();
            let witness = format!("a frame of {frame} bytes waits {rounds} rounds");
            finding(Rule::Quantum, Level::Note, at_word(step, "quantum"), what, because, witness)
        })
    });
    let ets = reading.classes.iter().filter_map(|class| of_ets(reading, class));
    htb.into_iter().chain(drr).chain(ets).collect()
}

/// A band of ETS whose quantum is less than a frame.
fn of_ets(reading: &PolicyModel, class: &ClassDump) -> Option<Finding> {
    let ClassParams::Ets(EtsClassParams { quantum: Some(quantum) }) = class.params else { return None };
    let own = |qdisc: &&QdiscDump| qdisc.dev == class.dev && qdisc.handle == class.classid.qdisc();
    let maker = reading.maker_of_class(&class.dev, class.classid);
    let maker = maker.or_else(|| reading.maker_of_qdisc(reading.qdiscs.iter().find(own)?))?;
    let step = reading.step_of(maker)?;
    let frame = longest_of(reading, class);
    (quantum < frame).then(|| {
        let value = step.words.iter().find(|word| word.text == quantum.to_string());
        let place = value.and_then(|word| word.place.clone()).or_else(|| step.place.clone());
        let longest = frame_of(reading, class);
        let what = format!("band {} takes turns of {quantum} bytes, less than {longest}", class.classid);
        let because =
            "shares stay right, but it is passed over until it has saved up for its packet".to_owned();
        let witness = format!("a frame of {frame} bytes waits {} rounds", frame.div_ceil(quantum.max(1)));
        finding(Rule::Quantum, Level::Note, place, what, because, witness)
    })
}

/// The longest frame that comes to a class, in words.
fn frame_of(reading: &PolicyModel, class: &ClassDump) -> String {
    match (longest_of(reading, class), reading.frame(&class.dev)) {
        (longest, whole) if longest == whole => format!("a frame of {} ({whole} bytes)", class.dev),
        (longest, _) => format!("the longest frames that it is for ({longest} bytes)"),
    }
}

/// The leaves that take turns with one another: by device, parent and priority.
type Turns<'r> = BTreeMap<(&'r str, Handle, u32), Vec<Handle>>;

fn turns(reading: &PolicyModel) -> Turns<'_> {
    let mut turns = Turns::new();
    for HtbClass { class, params } in reading.htb_classes() {
        if reading.is_leaf(class) {
            turns.entry((class.dev.as_str(), class.parent, params.prio)).or_default().push(class.classid);
        }
    }
    turns
}

/// Measurements of turns: classes with the same parameters in the same place are measured once.
struct Measured<'r> {
    bench: Bench<'r>,
    known: BTreeMap<String, Option<[Stretch; 2]>>,
}

impl Measured<'_> {
    /// The most that a class sends in a row while others of its priority are busy: as it is, and with a
    /// quantum of one frame instead. What is the same then has other causes: its rate, the others' rates,
    /// bursts.
    fn stretches(
        &mut self,
        reading: &PolicyModel,
        class: HtbClass<'_>,
        others: &[Handle],
    ) -> Option<[Stretch; 2]> {
        let HtbClass { class, params } = class;
        let same = format!("{} {} {params:?}", class.dev, class.parent);
        if !self.known.contains_key(&same) && self.known.len() < MOST_MEASURED {
            let frame = reading.frame(&class.dev);
            let mut one_frame = Bench::instead(
                reading,
                class,
                ClassParams::Htb(HtbClassParams { quantum: fitting(frame), ..params.clone() }),
            );
            let measure = |bench: &mut Bench<'_>| {
                bench.stretch(&class.dev, class.classid, others, frame, params.quantum)
            };
            let stretches =
                measure(&mut self.bench).zip(measure(&mut one_frame)).map(|(is, were)| [is, were]);
            self.known.insert(same.clone(), stretches);
        }
        self.known.get(&same).copied().flatten()
    }
}

/// The quantum that is proposed: a frame.
fn fitting(frame: u32) -> u32 {
    frame.max(1514)
}

/// Do the others wait long, and only for this quantum's sake?
fn delays_others([is, with_one_frame]: [Stretch; 2]) -> bool {
    is.bytes > u64::from(LARGE)
        && is.wait >= FELT
        && with_one_frame.bytes > 0
        && with_one_frame.bytes <= is.bytes / 2
        && with_one_frame.wait.0 <= is.wait.0 / 2
}

fn of_htb(
    reading: &PolicyModel,
    htb: HtbClass<'_>,
    turns: &Turns<'_>,
    measured: &mut Measured<'_>,
) -> Option<Finding> {
    let HtbClass { class, params } = htb;
    let quantum = params.quantum;
    let frame = reading.frame(&class.dev);
    let turns = turns.get(&(class.dev.as_str(), class.parent, params.prio))?;
    // Only classes of one priority under one parent take turns.
    if !reading.is_leaf(class) || turns.len() < 2 || (frame..=LARGE).contains(&quantum) {
        return None;
    }
    let step = reading.step_of(reading.maker_of_class(&class.dev, class.classid)?)?;
    let warned = warned(reading, class, step, params.rate.rate.0);
    let because = match quantum {
        _ if quantum < frame => {
            let company = words::count(turns.len() - 1, "other class", "other classes");
            format!(
                "that is less than one frame ({frame} bytes), so turns are not shared by quanta ({company} \
                of its priority)"
            )
        }
        _ if quantum > LARGE => {
            let others = turns.iter().copied().filter(|other| *other != class.classid).take(MOST_OTHERS);
            let others: Vec<Handle> = others.collect();
            // A quantum that delays no other class need not change: by quanta classes share what they borrow,
            // too.
            let [is, with_one_frame] =
                measured.stretches(reading, htb, &others).filter(|both| delays_others(*both))?;
            format!(
                "with the classes of its priority busy, the others wait {} while it sends {} bytes in a \
                row; with a quantum of {} it sends {}",
                words::time(is.wait),
                is.bytes,
                fitting(frame),
                with_one_frame.bytes
            )
        }
        _ => return None,
    };
    let from_rate = step.after("quantum").is_none();
    let origin = if from_rate {
        r2q(reading, class.dev.as_str(), class.classid, params.rate.rate.0)
    } else {
        String::new()
    };
    let what = format!("class {} may send {quantum} bytes in its turn{origin}", class.classid);
    let witness = match warned {
        Some(size) => format!("the kernel warns: quantum of class {:X} is {size}", class.classid.0),
        None => format!("quantum {quantum}, frame {frame}"),
    };
    let mut finding =
        finding(Rule::Quantum, Level::Warning, at_word(step, "quantum"), what, because, witness);
    let quanta = turns.iter().filter_map(|one| match &reading.class(&class.dev, *one)?.params {
        ClassParams::Htb(htb) => Some(htb.quantum),
        _ => None,
    });
    let least = quanta.min().unwrap_or(quantum).max(1);
    finding.fix = say_it(step, from_rate, fitting(frame), (quantum, least));
    Some(finding)
}

/// The remedy for a quantum, where the least among those that it shares with is this.
fn say_it(step: &Step, from_rate: bool, frame: u32, (quantum, least): (u32, u32)) -> Option<Fix> {
    // The least of them becomes a frame.
    let scaled = (u64::from(quantum) * u64::from(frame)).div_ceil(u64::from(least));
    // A change of one class changes how it shares with the others, so this is advice and no edit.
    let what = match from_rate {
        // A frame is more than is usual in any case, as that of the loopback.
        _ if frame > LARGE => {
            format!("say it, and those of the classes that it shares with: none below {frame}")
        }
        _ if scaled > u64::from(LARGE) => {
            format!(
                "say it, and those of the classes that it shares with: none below {frame} or above {LARGE}"
            )
        }
        true => {
            format!(
                "say it, and those of the classes that it shares with in the same ratio: quantum {scaled}"
            )
        }
        false => format!("change it, and the others in the same ratio: quantum {scaled}"),
    };
    step.place.as_ref().map(|_| Fix { what, edits: Vec::new() })
}

/// What the kernel warns of a quantum that it computed itself: that it is small, or big.
fn warned(reading: &PolicyModel, class: &ClassDump, step: &Step, rate: u64) -> Option<&'static str> {
    let root = reading
        .qdiscs
        .iter()
        .find(|qdisc| qdisc.dev == class.dev && qdisc.handle == class.classid.qdisc())?;
    let QdiscParams::Htb(htb) = &root.params else { return None };
    if step.after("quantum").is_some() {
        return None;
    }
    match rate / u64::from(htb.r2q.max(1)) {
        divided if divided < LEAST_OF_RATE => Some("small"),
        divided if divided > MOST_OF_RATE => Some("big"),
        _ => None,
    }
}

/// How the kernel came to a quantum.
fn r2q(reading: &PolicyModel, dev: &str, classid: Handle, rate: u64) -> String {
    let root = reading.qdiscs.iter().find(|qdisc| qdisc.dev == dev && qdisc.handle == classid.qdisc());
    match root.map(|root| &root.params) {
        Some(QdiscParams::Htb(htb)) => {
            let bound = match rate / u64::from(htb.r2q.max(1)) {
                divided if divided > MOST_OF_RATE => format!(", but {MOST_OF_RATE} at most"),
                divided if divided < LEAST_OF_RATE => format!(", but {LEAST_OF_RATE} at least"),
                _ => String::new(),
            };
            format!(" (its rate, {rate} bytes/s, divided by r2q {}{bound})", htb.r2q)
        }
        _ => String::new(),
    }
}
