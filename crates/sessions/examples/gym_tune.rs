//! Tunes tidegate's own controller: random search over its settings, on lines that no published figure uses.
//!
//! ```sh
//! cargo run --release -p tidegate-sessions --example gym_tune -- 14
//! ```
//!
//! Each step changes about a third of the settings by a factor, rounds them to three digits, and keeps them
//! if the result is better. Better is, over all cases in which the line itself allows a delay below two
//! seconds: whether the default has a lower p95 than cake-autorate and than sqm-autorate, and uses as much of
//! the line; and the same of a large aim against cake-autorate, and of a small one against sqm-autorate (all
//! as smooth steps, so that nearly counts for something). A change that makes the p95 in a named failure more
//! than a tenth higher than one of theirs, at equal use of the line, is not kept. What it found stands in
//! `crates/control/tuning.toml`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use tidegate_control::{OwnController, OwnSettings, RateController};
use tidegate_gym::{ControllerChoice, GymCase, GymLine, GymLoad, GymScore, NAMED_FAILURES, NamedFailure};
use tidegate_gym::{USUAL_MEAN, p95_at_use, run_case};
use tidegate_packet::{Nanos, Seeded};
use tidegate_scenario::presets::LINE_PRESETS;

/// Seeds of the lines: docs/gym.md reports on others.
const LINES: [u64; 4] = [501, 502, 503, 504];
/// The aims by which named failures are compared at equal use.
const AIMS: [f64; 5] = [0.25, 0.5, 1.0, 2.0, 4.0];
/// The aims that are played on lines, and which of them is compared with which of both there.
const ON_LINES: [f64; 3] = [1.0, 4.0, 0.5];
const COMPARED: [(usize, usize); 4] = [(0, 0), (0, 1), (1, 0), (2, 1)];
/// As much of the line used, within this share of the capacity: as `tidegate gym` counts it.
const AS_MUCH: f64 = 0.02;
/// How much higher a p95 may be in a named failure.
const MOST_WORSE: f64 = 1.1;
/// Where the search begins: what 18 steps found before the rule for aims below 1 was changed, from values
/// that were chosen by hand and by searches of this kind, on the same lines, while the controller was
/// written. Name, value, least, most.
const BEGIN: [(&str, f64, f64, f64); 15] = [
    ("target", 0.00442, 0.002, 0.03),
    ("frames", 0.846, 0.3, 3.0),
    ("drained", 0.296, 0.05, 0.9),
    ("drain", 0.113, 0.03, 1.0),
    ("floor", 0.212, 0.05, 0.6),
    ("margin", 0.0458, 0.01, 0.3),
    ("swing", 0.491, 0.05, 1.5),
    ("learns", 0.3, 0.05, 1.0),
    ("returns", 0.8, 0.1, 5.0),
    ("hurry", 9.58, 0.1, 50.0),
    ("fastest", 1.75, 0.3, 4.0),
    ("lead", 0.0352, 0.002, 0.2),
    ("measured", 0.1, 0.1, 0.6),
    ("remembered", 0.153, 0.1, 1.0),
    ("silent", 0.225, 0.12, 0.5),
];
/// Of the smooth steps: the ratio of p95, and the difference in use, within which both are about equal.
const NEAR: (f64, f64) = (0.06, 0.015);

type Values = [f64; BEGIN.len()];

fn settings(case: &GymCase, values: &Values) -> OwnSettings {
    let [target, frames, drained, drain, floor, margin, swing, learns, returns, rest @ ..] = *values;
    let [hurry, fastest, lead, measured, remembered, silent] = rest;
    let limits = case.line.limits();
    OwnSettings {
        limits,
        target,
        frames,
        drained,
        drain,
        floor,
        margin,
        swing,
        learns,
        returns,
        hurry,
        fastest,
        lead,
        measured,
        remembered,
        silent,
        // The rule of jitter came after this search.
        jitters: 0.0,
    }
}

fn lines() -> Result<Vec<GymCase>, String> {
    let mut all = Vec::new();
    for preset in &LINE_PRESETS {
        for seed in LINES {
            let mut line = GymLine::preset(preset, seed, Some(USUAL_MEAN))?;
            // As the program does: each line begins elsewhere in its recording.
            line.skip = Nanos::secs(seed * 37 % 270);
            let loads = GymLoad::NAMED.iter().filter(|(_, load, _)| *load != GymLoad::Idle);
            all.extend(loads.map(|(_, load, _)| GymCase::new(line.clone(), *load, 1)));
        }
    }
    Ok(all)
}

/// Plays all cases, each with so many controllers, on all processors.
fn play(
    cases: &[GymCase],
    each: usize,
    make: impl Fn(&GymCase, usize) -> Result<Box<dyn RateController + Send>, String> + Sync,
) -> Vec<Vec<GymScore>> {
    let next = AtomicUsize::new(0);
    let runs = cases.len() * each;
    let scores = Mutex::new(vec![vec![GymScore::default(); each]; cases.len()]);
    let work = || loop {
        let n = next.fetch_add(1, Ordering::Relaxed);
        if n >= runs {
            break;
        }
        let (case, which) = (n / each, n % each);
        let run = make(&cases[case], which).and_then(|mut controller| {
            run_case(&cases[case], controller.as_mut(), false).map_err(|error| error.to_string())
        });
        // A run that fails has the worst score that there is.
        let score =
            run.map_or_else(|_| GymScore { call_p95_ms: 2000.0, ..GymScore::default() }, |run| run.score);
        scores.lock().unwrap_or_else(PoisonError::into_inner)[case][which] = score;
    };
    std::thread::scope(|scope| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        (0..processors).for_each(|_| drop(scope.spawn(work)));
    });
    scores.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Cases, and the scores of cake-autorate and of sqm-autorate.
struct Suite {
    cases: Vec<GymCase>,
    rivals: Vec<Vec<GymScore>>,
}

impl Suite {
    /// Without the cases in which the line itself makes the yardstick's p95 two seconds.
    fn new(cases: Vec<GymCase>) -> Suite {
        let choices =
            [ControllerChoice::CakeAutorate(None), ControllerChoice::SqmAutorate, ControllerChoice::Known];
        let scores = play(&cases, choices.len(), |case, which| choices[which].build(case));
        let kept = cases.into_iter().zip(scores).filter(|(_, scores)| scores[2].call_p95_ms < 2000.0);
        let (cases, rivals) = kept.unzip();
        Suite { cases, rivals }
    }

    fn own(&self, values: &Values, aims: &[f64]) -> Vec<Vec<GymScore>> {
        play(&self.cases, aims.len(), |case, which| {
            Ok(Box::new(OwnController::new(settings(case, values).aiming(aims[which]))))
        })
    }

    /// How good, more is better, and in how many cases each of those compared is better.
    fn value(&self, values: &Values) -> (f64, [u32; COMPARED.len()]) {
        let own = self.own(values, &ON_LINES);
        let (mut value, mut better) = (0.0, [0; COMPARED.len()]);
        for (own, rivals) in own.iter().zip(&self.rivals) {
            for ((aim, rival), better) in COMPARED.into_iter().zip(&mut better) {
                let (own, rival) = (&own[aim], &rivals[rival]);
                let later = (rival.call_p95_ms / own.call_p95_ms.max(0.001)).ln() / NEAR.0;
                let more = (own.utilisation - rival.utilisation + AS_MUCH) / NEAR.1;
                value += step(later) * step(more);
                *better += u32::from(later > 0.0 && more >= 0.0);
            }
        }
        (value / self.cases.len().max(1) as f64, better)
    }

    /// In which cases a p95 at equal use is more than a tenth higher than a rival's.
    fn worse(&self, values: &Values) -> Vec<String> {
        let own = self.own(values, &AIMS);
        let mut worse = Vec::new();
        for ((case, own), rivals) in self.cases.iter().zip(&own).zip(&self.rivals) {
            for (rival, name) in rivals.iter().zip(["cake-autorate", "sqm-autorate"]) {
                // Where no aim uses as much, the one that uses most is compared.
                let most = own.iter().map(|one| one.utilisation).fold(0.0, f64::max);
                let ms = p95_at_use(own, rival.utilisation.min(most)).unwrap_or(f64::INFINITY);
                if ms > MOST_WORSE * rival.call_p95_ms {
                    worse.push(format!("{} ({ms:.0} ms, {name} {:.0} ms)", case.name, rival.call_p95_ms));
                }
            }
        }
        worse
    }
}

/// From 0 to 1, a half at 0.
fn step(value: f64) -> f64 {
    1.0 / (1.0 + (-value).exp())
}

/// To three digits: what is tried is what is printed.
fn rounded(value: f64) -> f64 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

fn words(value: f64, all: usize, [cake, sqm, more, less]: [u32; COMPARED.len()]) -> String {
    format!(
        "value {value:.4}; of {all} cases the default is better than cake-autorate in {cake}, than sqm-autorate \
         in {sqm}; aim {} than cake-autorate in {more}, aim {} than sqm-autorate in {less}",
        ON_LINES[1], ON_LINES[2]
    )
}

fn main() -> Result<(), String> {
    let steps: u32 = std::env::args()
        .nth(1)
        .map_or(Ok(40), |words| words.parse())
        .map_err(|_| "usage: gym_tune [STEPS]: how many changes are tried, a number".to_owned())?;
    let lines = Suite::new(lines()?);
    let named = Suite::new(NAMED_FAILURES.iter().map(NamedFailure::case).collect());
    let all = lines.cases.len();
    let mut best: Values = BEGIN.map(|(_, value, ..)| value);
    let (mut value, better) = lines.value(&best);
    println!("# begin: {}", words(value, all, better));
    println!("# worse in a named failure: {}", named.worse(&best).join(", "));
    let mut random = Seeded::new(1);
    for step in 1..=steps {
        let wide = if step % 4 == 0 { 2.0_f64 } else { 1.35 };
        let mut tried = best;
        for (at, (_, _, least, most)) in BEGIN.iter().enumerate() {
            if random.unit() < 1.0 / 3.0 {
                tried[at] = rounded((tried[at] * wide.powf(2.0 * random.unit() - 1.0)).clamp(*least, *most));
            }
        }
        let (found, better) = lines.value(&tried);
        if found <= value {
            continue;
        }
        let worse = named.worse(&tried);
        if !worse.is_empty() {
            println!("# step {step}: value {found:.4}, but worse in {}", worse.join(", "));
            continue;
        }
        (best, value) = (tried, found);
        println!("# step {step}: {}", words(value, all, better));
    }
    for ((name, ..), value) in BEGIN.iter().zip(best) {
        println!("{name} = {value}");
    }
    Ok(())
}
