//! Which values are tried: half of them spread evenly at random (a Latin hypercube), then simplices that go
//! downhill from the best (Nelder and Mead 1965, with the usual coefficients), inside the unit cube.
//!
//! Points are only ranked, so that bounds count as [`super::goal`] says. Written here because the crates that
//! have the method (`argmin`) take a number to minimise, know no bounds of the parameters,
//! and bring their own loop around the evaluations, which are to run on all processors.

use super::goal::TuneRank;
use core::cmp::Ordering;
use std::collections::BTreeMap;
use tidegate_packet::{RandomSource, Seeded};

/// The fewest points that are tried.
pub const FEWEST_TRIED: usize = 4;
/// The first simplex reaches so far along each axis.
const REACH: f64 = 0.15;
/// A simplex that is smaller is done.
const SMALLEST: f64 = 0.002;
/// Digits to which points are the same.
const SAME: f64 = 1e-6;

/// A point of the cube.
type Point = Vec<f64>;
/// What evaluates points: a rank for each, or nothing: it was stopped.
type Evaluate<'e, E> = &'e mut dyn FnMut(&[Point]) -> Result<Option<Vec<TuneRank>>, E>;

/// Tries at most `most` different points of a cube with so many axes (at least [`FEWEST_TRIED`]); the same
/// seed and ranks give the same points. Returns when `evaluate` says it was stopped.
///
/// # Errors
/// What `evaluate` says.
pub fn search<E>(axes: usize, most: usize, seed: u64, evaluate: Evaluate<'_, E>) -> Result<(), E> {
    let most = most.max(FEWEST_TRIED);
    let mut random = Seeded::new(seed);
    let first = spread(axes, (most / 2).max(FEWEST_TRIED), &mut random);
    let mut tried = Tried { known: BTreeMap::new(), order: Vec::new(), most, evaluate };
    if !tried.all(&first)? || axes == 0 {
        return Ok(());
    }
    // Each simplex begins at the best point from which none has begun; with none left, anywhere.
    let mut begun: Vec<Point> = Vec::new();
    while tried.order.len() < most {
        let mut ranked = tried.order.clone();
        ranked.sort_by(|a, b| a.1.compare(&b.1));
        let far = |point: &Point| begun.iter().all(|other| distance(point, other) > REACH);
        let start = ranked.iter().map(|(point, _)| point.clone()).find(far);
        let start = start.unwrap_or_else(|| (0..axes).map(|_| unit(&mut random)).collect());
        begun.push(start.clone());
        let before = tried.order.len();
        if !descend(&start, &mut tried)? {
            return Ok(());
        }
        if tried.order.len() == before && begun.len() > most {
            break;
        }
    }
    Ok(())
}

/// Points that were tried, each once.
struct Tried<'e, E> {
    known: BTreeMap<Vec<i64>, TuneRank>,
    order: Vec<(Point, TuneRank)>,
    most: usize,
    evaluate: Evaluate<'e, E>,
}

impl<E> Tried<'_, E> {
    fn key(point: &Point) -> Vec<i64> {
        point.iter().map(|x| libm::round(x / SAME) as i64).collect()
    }

    /// Tries points; false: it was stopped, or there were enough.
    fn all(&mut self, points: &[Point]) -> Result<bool, E> {
        let mut new: Vec<Point> = Vec::new();
        for point in points {
            let known = self.known.contains_key(&Self::key(point))
                || new.iter().any(|one| Self::key(one) == Self::key(point));
            if !known && self.order.len() + new.len() < self.most {
                new.push(point.clone());
            }
        }
        if new.is_empty() {
            return Ok(true);
        }
        let Some(ranks) = (self.evaluate)(&new)? else { return Ok(false) };
        for (point, rank) in new.into_iter().zip(ranks) {
            self.known.insert(Self::key(&point), rank);
            self.order.push((point, rank));
        }
        Ok(true)
    }

    /// The rank of one point; `None`: it was stopped, or there were enough.
    fn one(&mut self, point: &Point) -> Result<Option<TuneRank>, E> {
        if !self.all(std::slice::from_ref(point))? {
            return Ok(None);
        }
        Ok(self.known.get(&Self::key(point)).copied())
    }
}

/// A simplex from a point downhill until it is small; false: no more points may be tried.
fn descend<E>(start: &Point, tried: &mut Tried<'_, E>) -> Result<bool, E> {
    let corner = |axis: usize| {
        let mut point = start.clone();
        point[axis] += if point[axis] + REACH <= 1.0 { REACH } else { -REACH };
        point
    };
    let mut points: Vec<Point> = vec![start.clone()];
    points.extend((0..start.len()).map(corner));
    if !tried.all(&points)? {
        return Ok(false);
    }
    let mut simplex: Vec<(Point, TuneRank)> = Vec::new();
    for point in points {
        let Some(rank) = tried.one(&point)? else { return Ok(false) };
        simplex.push((point, rank));
    }
    loop {
        simplex.sort_by(|a, b| a.1.compare(&b.1));
        let size = simplex.iter().map(|(point, _)| distance(point, &simplex[0].0)).fold(0.0, f64::max);
        if size < SMALLEST {
            return Ok(true);
        }
        let last = simplex.len() - 1;
        let centre = mean(simplex[..last].iter().map(|(point, _)| point));
        let worst = simplex[last].clone();
        // Along the line from the worst through the centre of the others.
        let along = |share: f64| -> Point {
            centre.iter().zip(&worst.0).map(|(c, w)| (c + share * (c - w)).clamp(0.0, 1.0)).collect()
        };
        let less = |a: &TuneRank, b: &TuneRank| a.compare(b) == Ordering::Less;
        let reflected = along(1.0);
        let Some(rank) = tried.one(&reflected)? else { return Ok(false) };
        let next = if less(&rank, &simplex[0].1) {
            let expanded = along(2.0);
            let Some(further) = tried.one(&expanded)? else { return Ok(false) };
            Some(if less(&further, &rank) { (expanded, further) } else { (reflected, rank) })
        } else if less(&rank, &simplex[last - 1].1) {
            Some((reflected, rank))
        } else {
            let contracted = along(if less(&rank, &worst.1) { 0.5 } else { -0.5 });
            let Some(nearer) = tried.one(&contracted)? else { return Ok(false) };
            let limit = if less(&rank, &worst.1) { rank } else { worst.1 };
            less(&nearer, &limit).then_some((contracted, nearer))
        };
        match next {
            Some(better) => simplex[last] = better,
            // All shrink towards the best.
            None => {
                let best = simplex[0].0.clone();
                let shrunk: Vec<Point> =
                    simplex[1..].iter().map(|(point, _)| mean([point, &best].into_iter())).collect();
                if !tried.all(&shrunk)? {
                    return Ok(false);
                }
                for (place, point) in simplex[1..].iter_mut().zip(shrunk) {
                    let Some(rank) = tried.one(&point)? else { return Ok(false) };
                    *place = (point, rank);
                }
            }
        }
    }
}

fn distance(a: &Point, b: &Point) -> f64 {
    a.iter().zip(b).map(|(a, b)| libm::fabs(a - b)).fold(0.0, f64::max)
}

fn mean<'p>(points: impl Iterator<Item = &'p Point> + Clone) -> Point {
    let count = points.clone().count().max(1) as f64;
    let axes = points.clone().next().map_or(0, Vec::len);
    (0..axes).map(|axis| points.clone().map(|point| point[axis]).sum::<f64>() / count).collect()
}

fn unit(random: &mut Seeded) -> f64 {
    f64::from(random.below(1 << 24)) / f64::from(1 << 24)
}

/// Each axis is cut into as many parts as there are points; each point has a part of its own of each.
fn spread(axes: usize, count: usize, random: &mut Seeded) -> Vec<Point> {
    let columns: Vec<Vec<f64>> = (0..axes)
        .map(|_| {
            let mut parts: Vec<u32> = (0..count as u32).collect();
            for at in (1..parts.len()).rev() {
                parts.swap(at, random.below(at as u32 + 1) as usize);
            }
            parts.into_iter().map(|part| (f64::from(part) + unit(random)) / count as f64).collect()
        })
        .collect();
    (0..count).map(|n| columns.iter().map(|column| column[n]).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All that was tried on a function, and the best of it.
    fn tried(axes: usize, most: usize, of: impl Fn(&[f64]) -> TuneRank) -> (Vec<Point>, Point) {
        let mut all: Vec<(Point, TuneRank)> = Vec::new();
        let done: Result<(), ()> = search(axes, most, 1, &mut |points| {
            let ranks: Vec<TuneRank> = points.iter().map(|point| of(point)).collect();
            all.extend(points.iter().cloned().zip(ranks.iter().copied()));
            Ok(Some(ranks))
        });
        assert_eq!(done, Ok(()));
        let best = all.iter().min_by(|a, b| a.1.compare(&b.1)).map(|(point, _)| point.clone());
        (all.into_iter().map(|(point, _)| point).collect(), best.unwrap_or_default())
    }

    fn square(x: f64) -> f64 {
        x * x
    }

    fn free(cost: f64) -> TuneRank {
        TuneRank { broken: 0.0, cost }
    }

    #[test]
    fn minima_are_found_within_the_cube() {
        let bowl = |p: &[f64]| free(square(p[0] - 0.3) + 4.0 * square(p[1] - 0.8));
        let (all, best) = tried(2, 80, bowl);
        assert_eq!(all.len(), 80);
        assert!(all.iter().flatten().all(|x| (0.0..=1.0).contains(x)));
        assert!((best[0] - 0.3).abs() < 0.01 && (best[1] - 0.8).abs() < 0.01, "{best:?}");
        // Rosenbrock's valley, from −2 to 2.
        let valley = |p: &[f64]| {
            let (x, y) = (p[0] * 4.0 - 2.0, p[1] * 4.0 - 2.0);
            free(square(1.0 - x) + 100.0 * square(y - x * x))
        };
        let (_, best) = tried(2, 400, valley);
        assert!((best[0] - 0.75).abs() < 0.02 && (best[1] - 0.75).abs() < 0.02, "{best:?}");
        // At an edge, and in one dimension.
        let (_, best) = tried(1, 40, |p| free(p[0]));
        assert!(best[0] < 0.01, "{best:?}");
    }

    /// The best is on the bound: x + y >= 1, both as small as possible, x dearer than y.
    #[test]
    fn bounds_are_kept() {
        let bounded = |p: &[f64]| TuneRank { broken: (1.0 - p[0] - p[1]).max(0.0), cost: 2.0 * p[0] + p[1] };
        let (_, best) = tried(2, 200, bounded);
        assert!(best[0] < 0.1 && best[0] + best[1] >= 1.0, "{best:?}");
    }

    #[test]
    fn it_ends_whatever_the_ranks_are() {
        for axes in [0, 1, 3] {
            let (all, _) = tried(axes, 30, |_| free(1.0));
            assert!(all.len() <= 30, "{}", all.len());
            let nothing = TuneRank { broken: f64::INFINITY, cost: f64::INFINITY };
            assert!(tried(axes, 30, |_| nothing).0.len() <= 30);
        }
        let bowl = |p: &[f64]| free(p[0] * p[1]);
        assert_eq!(tried(2, 50, bowl).0, tried(2, 50, bowl).0);
        let mut calls = 0;
        let stopped: Result<(), ()> = search(2, 50, 1, &mut |_| {
            calls += 1;
            Ok(None)
        });
        assert_eq!((stopped, calls), (Ok(()), 1));
        assert_eq!(search(2, 50, 1, &mut |_| Err("no")), Err("no"));
    }
}
