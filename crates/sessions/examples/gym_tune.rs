//! Tunes tidegate's own controller: random search over its settings, on lines that no published figure uses.
//!
//! ```sh
//! cargo run --release -p tidegate-sessions --example gym_tune -- 10
//! ```
//!
//! Each step changes about a third of the settings by a factor, and keeps the change if the result is better.
//! Better is, over all cases: for each of cake-autorate and sqm-autorate, a lower p95 than it at one of the
//! [aims](OwnSettings::aiming) that use as much of the line; the same of the default alone, counted half;
//! then the ratio of p95. A p95 that is more than a tenth above that of one of them in a named failure costs
//! as much as two cases. What it found stands in `crates/control/tuning.toml`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use tidegate_control::{CakeAutorate, CakeAutorateSettings, OwnController, OwnSettings, RateController};
use tidegate_control::{SqmAutorate, SqmAutorateSettings};
use tidegate_gym::{GymCase, GymLine, GymLoad, GymScore, NAMED_FAILURES, NamedFailure};
use tidegate_gym::{USUAL_MEAN, run_case};
use tidegate_packet::{Nanos, Seeded};
use tidegate_scenario::presets::LINE_PRESETS;

/// Seeds of the lines: docs/gym.md reports on 1 to 12.
const LINES: [u64; 2] = [501, 502];
/// The aims of the curve; the default comes first.
const AIMS: [f64; 5] = [1.0, 0.15, 0.3, 0.5, 3.0];
/// As much of the line used, within this share of the capacity: as `tidegate gym` counts it.
const AS_MUCH: f64 = 0.02;
/// Where the search begins: what 22 steps found from values chosen by hand, by the controller as it was
/// before a path that is a little longer was told from a short queue. Name, value, least, most.
const BEGIN: [(&str, f64, f64, f64); 13] = [
    ("target", 0.0122, 0.004, 0.03),
    ("drain", 0.25, 0.05, 1.0),
    ("floor", 0.1709, 0.05, 0.6),
    ("growth", 0.0716, 0.01, 1.0),
    ("faster", 0.8534, 0.05, 3.0),
    ("fastest", 1.2424, 0.3, 4.0),
    ("near", 0.4, 0.05, 1.0),
    ("measured", 0.1753, 0.1, 0.6),
    ("remembered", 0.3704, 0.1, 1.0),
    ("back_to", 0.6, 0.3, 0.98),
    ("silent", 0.188, 0.12, 0.5),
    ("queued", 1.0, 0.3, 1.0),
    ("lift", 0.0308, 0.01, 0.5),
];

type Values = [f64; BEGIN.len()];

fn settings(case: &GymCase, values: &Values) -> OwnSettings {
    let [target, drain, floor, growth, faster, fastest, near, measured, remembered, rest @ ..] = *values;
    let [back_to, silent, queued, lift] = rest;
    let limits = case.line.limits();
    OwnSettings {
        limits,
        target,
        drain,
        floor,
        growth,
        faster,
        fastest,
        near,
        measured,
        remembered,
        back_to,
        silent,
        queued,
        lift,
    }
}

fn cases() -> Result<Vec<GymCase>, String> {
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
    all.extend(NAMED_FAILURES.iter().map(NamedFailure::case));
    Ok(all)
}

/// Plays all cases, each with so many controllers, on all processors.
fn play(
    cases: &[GymCase],
    each: usize,
    make: impl Fn(&GymCase, usize) -> Box<dyn RateController + Send> + Sync,
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
        let mut controller = make(&cases[case], which);
        // A run that fails has the worst score that there is.
        let score = run_case(&cases[case], controller.as_mut(), false)
            .map_or_else(|_| GymScore { call_p95_ms: 2000.0, ..GymScore::default() }, |run| run.score);
        scores.lock().unwrap_or_else(PoisonError::into_inner)[case][which] = score;
    };
    std::thread::scope(|scope| {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        (0..processors).for_each(|_| drop(scope.spawn(work)));
    });
    scores.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// How good, more is better; and what it consists of.
fn judge(cases: &[GymCase], own: &[Vec<GymScore>], rivals: &[Vec<GymScore>]) -> (f64, String) {
    let (mut curve, mut single, mut ratio, mut count, mut worse) = ([0.0; 2], [0.0; 2], 0.0, 0.0, 0.0);
    let mut fields = 0.0;
    for ((case, own), rivals) in cases.iter().zip(own).zip(rivals) {
        let is_named = NAMED_FAILURES.iter().any(|failure| failure.name == case.name);
        fields += if is_named { 0.0 } else { 1.0 };
        for (at, rival) in rivals.iter().enumerate() {
            let as_much = |score: &&GymScore| score.utilisation >= rival.utilisation - AS_MUCH;
            let best = own.iter().filter(as_much).map(|score| score.call_p95_ms).reduce(f64::min);
            if is_named {
                // No aim uses as much: the one that uses most is compared.
                let most = || own.iter().map(|score| score.call_p95_ms).fold(0.0, f64::max);
                worse += if best.unwrap_or_else(most) > 1.1 * rival.call_p95_ms { 1.0 } else { 0.0 };
                continue;
            }
            let is_lower = |ms: f64| if ms < rival.call_p95_ms { 1.0 } else { 0.0 };
            curve[at] += best.map_or(0.0, is_lower);
            single[at] += own.first().filter(as_much).map_or(0.0, |score| is_lower(score.call_p95_ms));
            if let Some(best) = best {
                ratio += (best / rival.call_p95_ms).ln().clamp(-2.0, 2.0);
                count += 1.0;
            }
        }
    }
    let [cake, sqm] = curve;
    let value =
        cake + sqm + 0.5 * (single[0] + single[1]) - 2.0 * worse - 10.0 * ratio / f64::max(count, 1.0);
    let words = format!(
        "value {value:.2}; of {fields} cases lower at one of the aims than cake-autorate {cake}, than \
         sqm-autorate {sqm}; the default alone {}, {}; named failures more than a tenth worse {worse}",
        single[0], single[1]
    );
    (value, words)
}

fn main() -> Result<(), String> {
    let steps: u32 = std::env::args()
        .nth(1)
        .map_or(Ok(20), |words| words.parse())
        .map_err(|_| "usage: gym_tune [STEPS]: how many changes are tried, a number".to_owned())?;
    let cases = cases()?;
    let rivals = play(&cases, 2, |case, which| -> Box<dyn RateController + Send> {
        match which {
            0 => Box::new(CakeAutorate::new(CakeAutorateSettings::new(case.line.limits()))),
            _ => Box::new(SqmAutorate::new(SqmAutorateSettings::new(case.line.limits(), case.seed))),
        }
    });
    let own = |values: &Values| {
        play(&cases, AIMS.len(), |case, which| {
            Box::new(OwnController::new(settings(case, values).aiming(AIMS[which])))
        })
    };
    let mut best: Values = BEGIN.map(|(_, value, ..)| value);
    let (mut value, words) = judge(&cases, &own(&best), &rivals);
    println!("# begin: {words}");
    let mut random = Seeded::new(1);
    for step in 1..=steps {
        let wide = if step % 4 == 0 { 2.0_f64 } else { 1.35 };
        let mut tried = best;
        for (at, (_, _, least, most)) in BEGIN.iter().enumerate() {
            if random.unit() < 1.0 / 3.0 {
                tried[at] = (tried[at] * wide.powf(2.0 * random.unit() - 1.0)).clamp(*least, *most);
            }
        }
        let (found, words) = judge(&cases, &own(&tried), &rivals);
        if found > value {
            (best, value) = (tried, found);
            println!("# step {step}: {words}");
            for ((name, ..), value) in BEGIN.iter().zip(best) {
                println!("{name} = {value:.4}");
            }
        }
    }
    Ok(())
}
