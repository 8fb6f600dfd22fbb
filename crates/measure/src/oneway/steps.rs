//! Clocks that were set in the middle of a test: delays jump by as much in one direction as they fall in the
//! other.

use super::hull::Point;
use alloc::vec::Vec;

/// A clock was set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockStep {
    /// When, ns from the beginning, by the clock here.
    pub at_ns: u64,
    /// By how much the remote clock shows more than before against the one here, ns.
    pub by_ns: i64,
}

/// Smaller ones are not looked for, ns.
const LEAST_NS: f64 = 5e6;
/// Windows in which each direction's least delay is compared.
const WINDOWS: usize = 40;

/// A step as each direction shows it: packets in flight at that moment bear stamps of before and after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Shown {
    /// From when on, by the clock here, upwards and downwards.
    from: [f64; 2],
    by: f64,
}

impl From<&Shown> for ClockStep {
    fn from(shown: &Shown) -> ClockStep {
        ClockStep { at_ns: shown.from[0].min(shown.from[1]) as u64, by_ns: shown.by as i64 }
    }
}

/// The steps that both directions show.
pub(super) fn find(up: &[Point], down: &[Point]) -> Vec<Shown> {
    let end = up.iter().chain(down).map(|point| point.at).fold(0.0, f64::max);
    if end <= 0.0 {
        return Vec::new();
    }
    let width = end / WINDOWS as f64;
    let floors = floors(up, width).into_iter().zip(floors(down, width));
    let known: Vec<(usize, f64, f64)> =
        floors.enumerate().filter_map(|(at, (up, down))| Some((at, up?, down?))).collect();
    if !is_needed(&known) {
        return Vec::new();
    }
    let mut steps: Vec<Shown> = Vec::new();
    let mut at = 1;
    while at + 1 < known.len() {
        // The window of the step itself holds delays of before and after: those around it are compared.
        let (before, after) = (known[at - 1], known[at + 1]);
        let (up_by, down_by) = (after.1 - before.1, after.2 - before.2);
        let by = (up_by - down_by) / 2.0;
        if by.abs() > LEAST_NS && (up_by + down_by).abs() < by.abs() / 10.0 {
            let between = (before.0 as f64 * width, (after.0 + 1) as f64 * width);
            steps.push(Shown { from: [jump(up, between, by), jump(down, between, -by)], by });
            at += 1;
        }
        at += 1;
    }
    steps
}

/// Is there anything that only a step explains? Whatever clocks show, the least delays of one moment add up
/// to the way there and back. The least delays of different moments add up to no less, unless a clock was set
/// between; a queue that empties in one direction while one grows in the other looks like a step and is none.
fn is_needed(known: &[(usize, f64, f64)]) -> bool {
    let least = |of: &dyn Fn(&(usize, f64, f64)) -> f64| known.iter().map(of).fold(f64::INFINITY, f64::min);
    let (up, down) = (least(&|floor| floor.1), least(&|floor| floor.2));
    // The window of a step itself adds a delay from before to one from after: of two neighbours the larger
    // sum counts.
    let sums = known.windows(2).map(|pair| (pair[0].1 + pair[0].2).max(pair[1].1 + pair[1].2));
    let both = sums.fold(f64::INFINITY, f64::min);
    up + down < both - LEAST_NS
}

/// The first delay after the step, between two times: where they jump most that way.
fn jump(points: &[Point], between: (f64, f64), by: f64) -> f64 {
    let within = points.windows(2).filter(|pair| pair[0].at >= between.0 && pair[1].at <= between.1);
    let jumps = within.map(|pair| (by.signum() * (pair[1].raw - pair[0].raw), pair[1].at));
    jumps.max_by(|a, b| a.0.total_cmp(&b.0)).map_or(between.0, |(_, at)| at)
}

/// The least delay of each window.
fn floors(points: &[Point], width: f64) -> [Option<f64>; WINDOWS] {
    let mut floors = [None; WINDOWS];
    for point in points {
        let floor: &mut Option<f64> = &mut floors[((point.at / width) as usize).min(WINDOWS - 1)];
        *floor = Some(floor.map_or(point.raw, |known| known.min(point.raw)));
    }
    floors
}

/// Takes the steps out of the delays.
pub(super) fn remove(steps: &[Shown], up: &mut [Point], down: &mut [Point]) {
    for (points, way, sign) in [(up, 0, 1.0), (down, 1, -1.0)] {
        for point in points.iter_mut() {
            let shown: f64 = steps.iter().filter(|step| point.at >= step.from[way]).map(|step| step.by).sum();
            point.raw -= sign * shown;
        }
    }
}
