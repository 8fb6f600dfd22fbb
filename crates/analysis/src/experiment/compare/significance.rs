//! Which of many differences are more than chance: a permutation test for each, Benjamini and Hochberg's
//! correction for all together.

use tidegate_packet::{RandomSource as _, Seeded};

/// At most this share of the differences that are called significant is expected to be chance; and of
/// comparisons in which nothing differs, at most this share has any.
pub(super) const ERROR_RATE: f64 = 0.05;

/// More ways than this to deal values to two samples are drawn from, not counted out: those of nine repeats
/// beside nine.
const MOST_WAYS: f64 = 50_000.0;
/// So many are drawn, always the same: the least p-value then is 1 in 50,001.
const DRAWN: u32 = 50_000;
/// Sums that differ by less than this share of the values differ by rounding only.
const ROUNDING: f64 = 1e-12;

/// How probable it is that two samples of one distribution have means as far apart as these, or farther: the
/// exact permutation test (Fisher, The Design of Experiments, 1935; Pitman 1937), two-sided. Of all ways to
/// deal the values to two samples of these sizes, the share that sets the means as far apart. It takes
/// nothing to be normal, which counts here: simulated repeats often fall into two or three narrow lumps.
///
/// `None`: a sample has fewer than two values, or no value differs from any other, so that there is nothing
/// to test.
pub(super) fn p_value(first: &[f64], other: &[f64]) -> Option<f64> {
    if first.len() < 2 || other.len() < 2 {
        return None;
    }
    let mut all = [first, other].concat();
    // Means are as far apart as the sum of one sample is from its share of the whole sum.
    let share = all.iter().sum::<f64>() * first.len() as f64 / all.len() as f64;
    let scale = all.iter().map(|value| value.abs()).sum::<f64>();
    let apart = |sum: f64| (sum - share).abs();
    let found = apart(first.iter().sum()) - scale * ROUNDING;
    if all.iter().all(|value| Some(value) == all.first()) {
        return None;
    }
    let ways = ways(first.len(), other.len());
    if ways <= MOST_WAYS {
        let mut far = 0.0;
        deal(&all, first.len(), 0.0, &mut |sum| far += f64::from(u8::from(apart(sum) >= found)));
        return Some(far / ways);
    }
    let mut draws = Seeded::new(0);
    let mut far = 1_u32;
    for _ in 0..DRAWN {
        // The beginning of a shuffle (Fisher and Yates).
        for n in 0..first.len() {
            let left = u32::try_from(all.len() - n).unwrap_or(u32::MAX);
            all.swap(n, n + draws.below(left) as usize);
        }
        far += u32::from(apart(all[..first.len()].iter().sum()) >= found);
    }
    Some(f64::from(far) / f64::from(DRAWN + 1))
}

/// Calls `each` with the sum of every way to take so many of the values, added to `sum`.
fn deal(values: &[f64], take: usize, sum: f64, each: &mut impl FnMut(f64)) {
    if take == 0 {
        return each(sum);
    }
    for n in 0..=values.len().saturating_sub(take) {
        if let Some(value) = values.get(n) {
            deal(&values[n + 1..], take - 1, sum + value, each);
        }
    }
}

/// The least p-value that samples of these sizes can have.
pub(super) fn least(first: usize, other: usize) -> f64 {
    let ways = ways(first, other);
    if ways > MOST_WAYS {
        1.0 / f64::from(DRAWN + 1)
    } else {
        (if first == other { 2.0 } else { 1.0 }) / ways
    }
}

/// Benjamini and Hochberg's step-up correction (Journal of the Royal Statistical Society B 57, 1995): each
/// p-value as it must be read so that [`ERROR_RATE`] holds for all together. Proved for tests that are
/// independent or rise and fall together, as figures of the same runs do.
pub(super) fn adjust<'p>(p_values: impl Iterator<Item = &'p mut f64>) {
    let mut sorted: Vec<&mut f64> = p_values.collect();
    sorted.sort_by(|a, b| a.total_cmp(b));
    let count = sorted.len() as f64;
    let mut least: f64 = 1.0;
    let mut rank = count;
    for p in sorted.into_iter().rev() {
        least = least.min(*p * count / rank);
        *p = least;
        rank -= 1.0;
    }
}

/// In how many ways values can be dealt to samples of these sizes.
fn ways(first: usize, other: usize) -> f64 {
    // Rounded after every step, as each is a number of ways.
    (1..=other).fold(1.0, |ways: f64, k| (ways * (first + k) as f64 / k as f64).round())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fisher's own data: Darwin's fifteen cross- and fifteen self-fertilised plants, heights in eighths of
    /// an inch. The unpaired test has no exact figure in his book: Student's t gives 0.0206 for them.
    #[test]
    fn darwins_plants() {
        let crossed = [
            188.0, 96.0, 168.0, 176.0, 153.0, 172.0, 177.0, 163.0, 146.0, 173.0, 186.0, 168.0, 177.0, 184.0,
            96.0,
        ];
        let selfed = [
            139.0, 163.0, 160.0, 160.0, 147.0, 149.0, 149.0, 122.0, 132.0, 144.0, 130.0, 144.0, 102.0, 124.0,
            144.0,
        ];
        let p = p_value(&crossed, &selfed).expect("two samples");
        assert!((0.015..0.03).contains(&p), "{p}");
        assert_eq!(Some(p), p_value(&crossed, &selfed), "drawn, and always the same");
    }

    #[test]
    fn every_way_is_counted() {
        // Of six ways to deal, only this one and its mirror image set the means three apart.
        let of = |first: &[f64], other: &[f64]| p_value(first, other).expect("two samples");
        assert!((of(&[1.0, 2.0], &[4.0, 5.0]) - 2.0 / 6.0).abs() < 1e-12);
        assert!((of(&[1.0, 4.0], &[2.0, 5.0]) - 4.0 / 6.0).abs() < 1e-12);
        assert!((of(&[0.1; 3], &[0.2; 3]) - least(3, 3)).abs() < 1e-12, "2 of 20 ways");
        assert!((of(&[0.1, 0.1, 0.2], &[0.2, 0.1, 0.1]) - 1.0).abs() < 1e-12);
        assert!(
            (of(&[1.0, 2.0], &[3.0, 4.0, 9.0]) - 2.0 / 10.0).abs() < 1e-12,
            "4 and 9 lie as far to the other side"
        );
        assert!((of(&[1.0, 2.0], &[8.0, 9.0, 9.5]) - least(2, 3)).abs() < 1e-12, "1 of 10");
        assert_eq!((p_value(&[1.0], &[1.0, 2.0]), p_value(&[0.1; 3], &[0.1; 7])), (None, None));
        let many: Vec<f64> = (0..20).map(f64::from).collect();
        assert!((of(&many[..10], &many[10..]) - least(10, 10)).abs() < 1e-4);
    }

    /// The first four of the fifteen p-values of Benjamini and Hochberg's own example (section 4.1) are
    /// significant at 5 %, the others are not.
    #[test]
    fn benjamini_and_hochbergs_example() {
        let mut p_values = [
            0.3240, 0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.4262, 0.5719,
            0.6528, 0.7590, 1.0,
        ];
        adjust(p_values.iter_mut());
        let significant: Vec<usize> = (0..15).filter(|n| p_values[*n] <= ERROR_RATE).collect();
        assert_eq!(significant, [1, 2, 3, 4]);
        assert!((p_values[4] - 0.0095 * 15.0 / 4.0).abs() < 1e-12);
    }

    /// Comparisons of 15 figures in which nothing differs: figures that scatter normally, to one side, in few
    /// steps, and in two narrow lumps, each figure of a run in the same.
    #[test]
    fn equal_results_seldom_differ_significantly() {
        const COMPARISONS: u32 = 300;
        type Draw = fn(&mut Seeded, f64) -> f64;
        let kinds: [(&str, Draw); 4] = [
            ("normal", |draws, _| (0..12).map(|_| draws.unit()).sum()),
            ("exponential", |draws, _| -libm::log(1.0 - draws.unit())),
            ("some percent lost", |draws, _| {
                (0..100).map(|_| f64::from(u8::from(draws.unit() < 0.03))).sum()
            }),
            ("two lumps", |draws, lump| lump + draws.unit() / 100.0),
        ];
        let mut draws = Seeded::new(1);
        for (kind, draw) in kinds {
            for repeats in [3, 5, 7] {
                let mut wrong = 0;
                for _ in 0..COMPARISONS {
                    let lumps: Vec<f64> =
                        (0..2 * repeats).map(|_| f64::from(u8::from(draws.unit() < 0.5))).collect();
                    let mut sample =
                        |lumps: &[f64]| lumps.iter().map(|lump| draw(&mut draws, *lump)).collect::<Vec<_>>();
                    let mut p_values: Vec<f64> = (0..15)
                        .filter_map(|_| p_value(&sample(&lumps[..repeats]), &sample(&lumps[repeats..])))
                        .collect();
                    adjust(p_values.iter_mut());
                    wrong += u32::from(p_values.iter().any(|p| *p <= ERROR_RATE));
                }
                let share = f64::from(wrong) / f64::from(COMPARISONS);
                assert!(share < 0.08, "{kind}, {repeats} repeats: {share}");
            }
        }
    }
}
