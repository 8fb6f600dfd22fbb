//! How much measured spans vary, and how sure a share is.

/// The jitter of RFC 1889 and RFC 3550 (A.8): with each packet the estimate moves by a sixteenth of the way
/// to the difference between this packet's transit time and the last one's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Jitter {
    last_transit: Option<u64>,
    estimate: f64,
    sum: f64,
    differences: u64,
}

impl Jitter {
    /// From transit times in the order in which packets were received; those lost are left out.
    pub fn of(transits: impl IntoIterator<Item = u64>) -> Jitter {
        let mut jitter = Jitter::default();
        transits.into_iter().for_each(|transit| jitter.received(transit));
        jitter
    }
    /// One more packet was received.
    pub fn received(&mut self, transit: u64) {
        if let Some(last) = self.last_transit {
            self.estimate += (transit.abs_diff(last) as f64 - self.estimate) / 16.0;
            self.sum += self.estimate;
            self.differences += 1;
        }
        self.last_transit = Some(transit);
    }
    /// The estimate as it is, in the unit of the transit times; `None` of fewer than two packets.
    pub fn last(&self) -> Option<f64> {
        (self.differences > 0).then_some(self.estimate)
    }
    /// The mean of the estimates after each packet.
    pub fn mean(&self) -> Option<f64> {
        (self.differences > 0).then(|| self.sum / self.differences as f64)
    }
}

/// The standard deviation of all values (not of a sample of them), rounded down: what ping calls mdev. `None`
/// of nothing.
pub fn deviation(values: &[u64]) -> Option<u64> {
    let count = values.len() as u128;
    let mean = values.iter().map(|&value| u128::from(value)).sum::<u128>().checked_div(count)?;
    // Around the mean, so that squares stay small; what the mean lost in rounding is put right below.
    let moved = || values.iter().map(|&value| i128::from(value) - mean as i128);
    let sum: i128 = moved().sum();
    let squares: u128 = moved().map(|d| d.unsigned_abs() * d.unsigned_abs()).sum();
    let variance = (squares - sum.unsigned_abs() * sum.unsigned_abs() / count) / count;
    Some(variance.isqrt() as u64)
}

/// The interval of Wilson (1927) that holds a share with 95 % confidence, when `part` of `whole` were seen: 0
/// to 1 of nothing.
pub fn wilson(part: u64, whole: u64) -> (f64, f64) {
    if whole == 0 {
        return (0.0, 1.0);
    }
    const Z: f64 = 1.959_963_984_540_054;
    let n = whole as f64;
    let seen = part as f64 / n;
    let scale = 1.0 + Z * Z / n;
    let centre = (seen + Z * Z / (2.0 * n)) / scale;
    let half = Z / scale * libm::sqrt(seen * (1.0 - seen) / n + Z * Z / (4.0 * n * n));
    // What rounding leaves of nothing is nothing.
    let low = if part == 0 { 0.0 } else { (centre - half).max(0.0) };
    (low, (centre + half).min(1.0))
}

/// The probability that chance gathers `lost` of `sent` packets in at most `runs` runs of neighbours, if each
/// is lost independently (Wald and Wolfowitz 1940: all orders are equally likely, given how many were lost).
/// 1 where there is nothing to test.
pub(crate) fn gathered_by_chance(sent: u64, lost: u64, runs: u64) -> f64 {
    if lost == 0 || lost >= sent || runs >= lost {
        return 1.0;
    }
    // Runs of losses are in the gaps around what arrived.
    let (lost, gaps) = (lost as f64, (sent - lost + 1) as f64);
    // ln of the number of orders, and of those with one run.
    let all: f64 = (1..=lost as u64).map(|i| libm::log((sent as f64 - lost + i as f64) / i as f64)).sum();
    let mut of_runs = libm::log(gaps);
    let mut share = 0.0;
    for r in 1..=runs.min(gaps as u64) {
        share += libm::exp(of_runs - all);
        let r = r as f64;
        // From r runs to one more: another cut between losses, another gap.
        of_runs += libm::log((lost - r) / r) + libm::log((gaps - r) / (r + 1.0));
    }
    share.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_moves_by_a_sixteenth() {
        // By hand: |16 - 0| / 16 = 1, then (0 - 1) / 16 less, then (|48 - 16| - 0.9375) / 16 more.
        let jitter = Jitter::of([0, 16, 16, 48]);
        let steps = [1.0, 0.9375, 0.9375 + (32.0 - 0.9375) / 16.0];
        assert_eq!((jitter.last(), jitter.mean()), (Some(steps[2]), Some(steps.iter().sum::<f64>() / 3.0)));
        assert_eq!((Jitter::of([]).last(), Jitter::of([5]).mean()), (None, None));
        let mut alternating = (0..400).map(|n| if n % 2 == 0 { 10_000 } else { 12_000 });
        let settled = Jitter::of(&mut alternating).last().unwrap_or(0.0);
        assert!((settled - 2000.0).abs() < 1e-6, "a constant difference is found: {settled}");
    }

    #[test]
    fn deviations() {
        let cases: [(&[u64], Option<u64>); 5] = [
            (&[], None),
            (&[7], Some(0)),
            (&[2, 4, 4, 4, 5, 5, 7, 9], Some(2)),
            (&[1, 2], Some(0)),
            (&[10_000_000_000_000_000, 10_000_000_000_000_010], Some(5)),
        ];
        for (values, expected) in cases {
            assert_eq!(deviation(values), expected, "{values:?}");
        }
    }

    #[test]
    fn wilson_intervals() {
        // Figures of Newcombe 1998 (table I, method 3).
        let cases = [
            ((81, 263), (0.2553, 0.3662)),
            ((15, 148), (0.0624, 0.1605)),
            ((0, 20), (0.0, 0.1611)),
            ((1, 29), (0.0061, 0.1718)),
            ((0, 0), (0.0, 1.0)),
            ((20, 20), (0.8389, 1.0)),
        ];
        for ((part, whole), (low, high)) in cases {
            let found = wilson(part, whole);
            let near = |a: f64, b: f64| (a - b).abs() < 5.1e-5;
            assert!(near(found.0, low) && near(found.1, high), "{part} of {whole}: {found:?}");
        }
    }

    #[test]
    fn runs_of_losses_are_as_likely_as_counted() {
        // Ten packets, three lost: 120 orders; 8 with one run, 56 with two.
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} for {b}");
        near(gathered_by_chance(10, 3, 1), 8.0 / 120.0);
        near(gathered_by_chance(10, 3, 2), 64.0 / 120.0);
        near(gathered_by_chance(10, 3, 3), 1.0);
        near(gathered_by_chance(10, 0, 0), 1.0);
        near(gathered_by_chance(10, 10, 1), 1.0);
        near(gathered_by_chance(3, 2, 1), 2.0 / 3.0);
        assert!(gathered_by_chance(1000, 3, 1) < 1e-5);
        assert!(gathered_by_chance(1_000_000, 100_000, 90_000) > 0.4);
        assert!(gathered_by_chance(1_000_000, 100_000, 80_000) < 1e-9);
    }
}
