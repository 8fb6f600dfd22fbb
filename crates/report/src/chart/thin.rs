//! Thinning: a long line drawn with no more points than its columns can show, looking the same.

/// Of each of `columns` columns over `0..wide`, the first, lowest, highest and last point (the M4
/// aggregation: Jugel, Jerzak, Hackenbroich, Markl, VLDB 2014), in order. Points come in order of x; few
/// enough are kept all.
pub(super) fn thin(points: &[(f64, f64)], wide: f64, columns: usize) -> Vec<(f64, f64)> {
    if points.len() <= 4 * columns {
        return points.to_vec();
    }
    let column = |x: f64| (x / wide * columns as f64).floor() as i64;
    let mut kept = Vec::with_capacity(4 * columns);
    for group in points.chunk_by(|a, b| column(a.0) == column(b.0)) {
        let by = |a: &(usize, &(f64, f64)), b: &(usize, &(f64, f64))| a.1.1.total_cmp(&b.1.1);
        let low = group.iter().enumerate().min_by(by).map_or(0, |(n, _)| n);
        let high = group.iter().enumerate().max_by(by).map_or(0, |(n, _)| n);
        let mut indices = [0, low, high, group.len() - 1];
        indices.sort_unstable();
        for (n, &index) in indices.iter().enumerate() {
            if n == 0 || indices[n - 1] != index {
                kept.push(group[index]);
            }
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_is_seen() {
        let mut points: Vec<(f64, f64)> =
            (0..10_000).map(|n| (f64::from(n) / 10.0, f64::from(n % 7))).collect();
        points[4321].1 = 99.0;
        points[8765].1 = -99.0;
        let thinned = thin(&points, 1000.0, 100);
        assert!(thinned.len() <= 400, "{}", thinned.len());
        assert!(thinned.contains(&(432.1, 99.0)) && thinned.contains(&(876.5, -99.0)), "the extremes stay");
        assert!(thinned.is_sorted_by(|a, b| a.0 < b.0), "in order, none twice");
        assert_eq!((thinned.first(), thinned.last()), (points.first(), points.last()));
        assert_eq!(thin(&points[..300], 1000.0, 100), points[..300], "few are kept all");
    }
}
