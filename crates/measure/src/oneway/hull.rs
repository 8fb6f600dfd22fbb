//! The straight line that lies lowest under the delays of both directions.

use alloc::vec::Vec;

/// Skews beyond this are no clocks' (NTP qdiscs 500 ppm at most, RFC 5905): a queue grew all the time.
pub const MOST_SKEW_PPM: f64 = 1000.0;

/// A raw delay at a time, both in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Point {
    pub(super) at: f64,
    pub(super) raw: f64,
}

/// The skew that explains the delays best.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Skew {
    /// By how much the remote clock goes faster, as a share.
    pub(super) slope: f64,
    /// Slopes that explain them as well.
    pub(super) between: (f64, f64),
    /// A steeper one would have explained more, but no clock is so wrong.
    pub(super) is_bounded: bool,
    /// How long was measured, ns.
    pub(super) length: f64,
}

/// Explanations that differ by less than this are as good as each other, ns: what a stamp is worth.
const AS_GOOD_NS: f64 = 50.0;

/// The skew that leaves the least delay above straight lines under both directions (Moon's linear programme
/// for both at once). The best line touches corners of the lower hulls, so the slopes of their edges are all
/// there is to try. A queue that grows in one direction only leaves a range of equally good slopes: the least
/// of them is taken.
pub(super) fn skew(up: &[Point], down: &[Point]) -> Skew {
    if up.is_empty() && down.is_empty() {
        return Skew::default();
    }
    let hulls = [(lower_hull(up), mean_time(up), 1.0), (lower_hull(down), mean_time(down), -1.0)];
    let most = MOST_SKEW_PPM / 1e6;
    let edges = hulls
        .iter()
        .flat_map(|(hull, _, sign)| hull.windows(2).map(move |pair| sign * slope(pair[0], pair[1])));
    let mut slopes: Vec<f64> = edges.filter(|slope| slope.abs() < most).collect();
    slopes.extend([0.0, most, -most]);
    // Nothing is not less than nothing.
    slopes.iter_mut().for_each(|slope| *slope += 0.0);
    slopes.sort_by(f64::total_cmp);
    let value =
        |slope: f64| hulls.iter().map(|(hull, mean, sign)| height(hull, *mean, sign * slope)).sum::<f64>();
    let best = slopes.iter().map(|slope| value(*slope)).fold(f64::NEG_INFINITY, f64::max);
    let good: Vec<f64> = slopes.into_iter().filter(|slope| value(*slope) >= best - AS_GOOD_NS).collect();
    let taken = good.iter().copied().min_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0);
    let between = (good.first().copied().unwrap_or(0.0), good.last().copied().unwrap_or(0.0));
    let ends = |points: &[Point]| points.iter().map(|point| point.at).fold(0.0, f64::max);
    let is_bounded = taken.abs() >= most;
    Skew {
        slope: if is_bounded { 0.0 } else { taken },
        between,
        is_bounded,
        length: ends(up).max(ends(down)),
    }
}

/// The height at the mean time of the line with this slope that touches the hull from below; none if there
/// are no points.
fn height(hull: &[Point], mean: f64, slope: f64) -> f64 {
    let lowest = hull.iter().map(|point| point.raw - slope * point.at).fold(f64::INFINITY, f64::min);
    if lowest.is_finite() { lowest + slope * mean } else { 0.0 }
}

fn mean_time(points: &[Point]) -> f64 {
    points.iter().map(|point| point.at).sum::<f64>() / points.len().max(1) as f64
}

fn slope(a: Point, b: Point) -> f64 {
    (b.raw - a.raw) / (b.at - a.at).max(1.0)
}

/// The corners of the lower convex hull, from left to right (Andrew 1979).
fn lower_hull(points: &[Point]) -> Vec<Point> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.at.total_cmp(&b.at).then(b.raw.total_cmp(&a.raw)));
    // Of several at one time the lowest counts, and comes last.
    sorted.dedup_by(|later, kept| {
        let same = later.at == kept.at;
        if same {
            *kept = *later;
        }
        same
    });
    let mut hull: Vec<Point> = Vec::new();
    for point in sorted {
        while let [.., before, last] = hull[..]
            && slope(before, last) >= slope(last, point)
        {
            hull.pop();
        }
        hull.push(point);
    }
    hull
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(of: impl Fn(f64) -> f64) -> Vec<Point> {
        (0..1000).map(|n| f64::from(n) * 1e7).map(|at| Point { at, raw: of(at) }).collect()
    }

    /// Something between 0 and a millisecond, often little.
    fn noise(at: f64) -> f64 {
        let unit = f64::from((at as u64 / 10_000_000 * 7919 % 997) as u32) / 997.0;
        unit * unit * 1e6
    }

    #[test]
    fn skew_is_found_below_queues() {
        let found = skew(&points(|at| noise(at) + 40e-6 * at), &points(|at| noise(at + 5e8) - 40e-6 * at));
        assert!((found.slope * 1e6 - 40.0).abs() < 0.5, "{found:?}");
    }

    /// The corners and nothing between them: points on an edge are none, and of several at one time the
    /// lowest counts.
    #[test]
    fn a_hull_has_corners_only() {
        let hull = |points: &[(f64, f64)]| {
            let points: Vec<Point> = points.iter().map(|&(at, raw)| Point { at, raw }).collect();
            lower_hull(&points).iter().map(|point| (point.at, point.raw)).collect::<Vec<_>>()
        };
        assert_eq!(hull(&[(0.0, 0.0), (10.0, 5.0), (20.0, 10.0), (30.0, 15.0)]), [(0.0, 0.0), (30.0, 15.0)]);
        assert_eq!(
            hull(&[(0.0, 9.0), (0.0, 3.0), (0.0, 7.0), (10.0, 4.0), (10.0, 2.0)]),
            [(0.0, 3.0), (10.0, 2.0)]
        );
        assert_eq!(hull(&[(20.0, 8.0), (0.0, 4.0), (10.0, 1.0)]), [(0.0, 4.0), (10.0, 1.0), (20.0, 8.0)]);
        assert_eq!(hull(&[(0.0, 0.0), (10.0, 9.0), (20.0, 1.0)]), [(0.0, 0.0), (20.0, 1.0)]);
        assert_eq!(hull(&[]), []);
    }

    /// A queue that grows upwards all the time leaves a caveat, and the clocks are believed.
    #[test]
    fn a_queue_is_no_skew() {
        let found = skew(&points(|at| 200e-6 * at), &points(|_| 0.0));
        assert_eq!(found.slope, 0.0);
        assert!(found.between.1 * 1e6 > 190.0, "{found:?}");
        let steep = skew(&points(|at| 0.01 * at), &[]);
        assert!(steep.is_bounded && steep.slope == 0.0, "{steep:?}");
    }
}
