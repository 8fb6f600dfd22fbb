//! Intervals that assume no distribution: the mean of samples drawn again from the sample.

use tidegate_packet::{RandomSource, Seeded};

/// The fewest values: the samples drawn from fewer vary too little.
pub const FEWEST: usize = 8;
/// Samples that are drawn.
const DRAWN: usize = 2000;
/// The most values that are drawn in all, for one interval.
const MOST: usize = 100_000_000;

/// Where the mean lies with 95 % confidence by the percentiles of the means of samples drawn with replacement
/// (Efron 1979). The draws are the same each time. `None` of fewer than [`FEWEST`] values, or of very many.
pub(crate) fn bootstrap_interval(values: &[f64]) -> Option<(f64, f64)> {
    if values.len() < FEWEST || values.len().saturating_mul(DRAWN) > MOST {
        return None;
    }
    let count = u32::try_from(values.len()).ok()?;
    let mut random = Seeded::new(1);
    let mut means: Vec<f64> = (0..DRAWN)
        .map(|_| {
            let sum: f64 = (0..count).map(|_| values[random.below(count) as usize]).sum();
            sum / f64::from(count)
        })
        .collect();
    means.sort_by(f64::total_cmp);
    // 2.5 % of the means are below, 2.5 % above.
    let tail = DRAWN / 40;
    Some((means[tail], means[DRAWN - 1 - tail]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_measure::paired::mean_interval;

    /// Of many normal values both intervals are the same; of skewed ones the bootstrap's is not symmetric.
    #[test]
    fn samples_drawn_again_agree_with_student_where_both_hold() {
        let mut random = Seeded::new(7);
        let normal: Vec<f64> = (0..400).map(|_| (0..12).map(|_| random.unit()).sum::<f64>() - 6.0).collect();
        let (low, high) = bootstrap_interval(&normal).unwrap_or_default();
        let (student_low, student_high) = mean_interval(&normal).unwrap_or_default();
        assert!((low - student_low).abs() < 0.015 && (high - student_high).abs() < 0.015, "{low} {high}");
        assert_eq!(bootstrap_interval(&normal), bootstrap_interval(&normal));
        let mut skewed = vec![1.0; 18];
        skewed.extend([9.0, 30.0]);
        let mean = skewed.iter().sum::<f64>() / 20.0;
        let (low, high) = bootstrap_interval(&skewed).unwrap_or_default();
        assert!(high - mean > 1.3 * (mean - low) && low >= 1.0, "{low} {mean} {high}");
        assert_eq!(bootstrap_interval(&[1.0; 7]), None);
    }
}
