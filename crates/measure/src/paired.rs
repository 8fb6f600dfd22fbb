//! Two ways of doing something, tried in turns: what differs, and how sure that is.

use alloc::vec::Vec;

/// Above so many degrees of freedom Student's distribution is taken for the normal one: their points differ
/// by less than a thousandth of a per cent.
const NORMAL_FROM: usize = 100_000;

/// In which order two things are tried so that what drifts meanwhile meets both alike: first one then the
/// other, next time the other way round (ABBA). Each round has both; `true` is the second of the two.
pub fn turns(rounds: usize) -> impl Iterator<Item = bool> {
    (0..rounds).flat_map(|round| {
        let swapped = round % 2 == 1;
        [swapped, !swapped]
    })
}

/// Where the mean of what values are a sample of lies with 95 % confidence, if they are about normal
/// (Student's t); `None` of fewer than two.
pub fn mean_interval(values: &[f64]) -> Option<(f64, f64)> {
    let count = values.len();
    let freedom = count.checked_sub(1).filter(|freedom| *freedom > 0)?;
    let mean = values.iter().sum::<f64>() / count as f64;
    let squares: f64 = values.iter().map(|value| value - mean).map(|off| off * off).sum();
    let error = libm::sqrt(squares / freedom as f64 / count as f64);
    let reach = error * point(freedom);
    Some((mean - reach, mean + reach))
}

/// How a figure differs between two things tried in turns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Paired {
    /// Rounds in which both had it.
    pub rounds: usize,
    /// Its mean over the rounds with the first.
    pub first: f64,
    /// Its mean over the rounds with the second.
    pub second: f64,
    /// The mean of second minus first.
    pub difference: f64,
    /// Where that lies with 95 % confidence, if the rounds are a sample and their differences about normal
    /// (Student's t); `None` of fewer than two rounds.
    pub interval: Option<(f64, f64)>,
}

impl Paired {
    /// From the figure's values in each round: first, second. `None` of nothing.
    pub fn new(pairs: &[(f64, f64)]) -> Option<Paired> {
        let count = pairs.len();
        if count == 0 {
            return None;
        }
        let mean = |of: &dyn Fn(&(f64, f64)) -> f64| pairs.iter().map(of).sum::<f64>() / count as f64;
        let difference = mean(&|(first, second)| second - first);
        let differences: Vec<f64> = pairs.iter().map(|(first, second)| second - first).collect();
        let interval = mean_interval(&differences);
        Some(Paired {
            rounds: count,
            first: mean(&|pair| pair.0),
            second: mean(&|pair| pair.1),
            difference,
            interval,
        })
    }

    /// How probable a difference at least as large would be if there were none: two-sided, by Student's t
    /// under the same conditions as the interval; `None` of fewer than two rounds.
    pub fn p_value(&self) -> Option<f64> {
        let (low, high) = self.interval?;
        let freedom = self.rounds - 1;
        let reach = (high - low) / 2.0;
        if reach <= 0.0 {
            return Some(if self.difference == 0.0 { 1.0 } else { 0.0 });
        }
        let error = reach / point(freedom);
        Some(outside(self.difference.abs() / error, freedom))
    }

    /// Whether these rounds show a difference. `false`: the interval contains 0, or there is no interval.
    pub fn is_sure(&self) -> bool {
        self.interval.is_some_and(|(low, high)| low > 0.0 || high < 0.0)
    }
}

/// The point of Student's t that 95 % lie within, found by halving: 12.706 for 1 degree of freedom, 1.96 for
/// very many.
fn point(freedom: usize) -> f64 {
    let (mut low, mut high) = (1.9, 13.0);
    // Until neighbouring numbers are left.
    for _ in 0..60 {
        let middle = low + (high - low) / 2.0;
        if outside(middle, freedom) > 0.05 { low = middle } else { high = middle }
    }
    high
}

/// The share of Student's distribution outside ±t (Abramowitz and Stegun, 26.7.3 and 26.7.4); with many
/// degrees of freedom, that of the normal distribution.
fn outside(t: f64, freedom: usize) -> f64 {
    if freedom > NORMAL_FROM {
        return libm::erfc(t / core::f64::consts::SQRT_2);
    }
    let angle = libm::atan(t / libm::sqrt(freedom as f64));
    let (sine, cosine) = (libm::sin(angle), libm::cos(angle));
    let is_odd = freedom % 2 == 1;
    // The terms' factors are 2/3, 4/5, … of an odd number of degrees, and 1/2, 3/4, … of an even one.
    let (mut term, mut sum) = (if is_odd { cosine } else { 1.0 }, 0.0);
    for n in 0..freedom / 2 {
        sum += term;
        let k = 2.0 * n as f64;
        term *= cosine * cosine * if is_odd { (k + 2.0) / (k + 3.0) } else { (k + 1.0) / (k + 2.0) };
    }
    let inside = if is_odd { (angle + sine * sum) * core::f64::consts::FRAC_2_PI } else { sine * sum };
    (1.0 - inside).clamp(0.0, 1.0)
}

/// What p-values of several figures become if all of them together are to show no difference by chance in all
/// but as many cases as one alone: Holm's correction (1979). In their order; a figure without one is none of
/// them.
pub fn adjusted(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let mut known: Vec<(usize, f64)> =
        values.iter().enumerate().filter_map(|(at, value)| Some((at, (*value)?))).collect();
    known.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut adjusted = alloc::vec![None; values.len()];
    let mut most: f64 = 0.0;
    for (rank, (at, value)) in known.iter().enumerate() {
        most = most.max((value * (known.len() - rank) as f64).min(1.0));
        adjusted[*at] = Some(most);
    }
    adjusted
}

/// The values of each round from values in the order of [`turns`]; rounds that lack one are left out.
pub fn rounds(values: &[Option<f64>]) -> Vec<(f64, f64)> {
    let both = |(round, pair): (usize, &[Option<f64>])| {
        let [one, other] = [*pair.first()?, *pair.get(1)?];
        let (first, second) = if round % 2 == 1 { (other, one) } else { (one, other) };
        Some((first?, second?))
    };
    values.chunks(2).enumerate().filter_map(both).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// The points that books of statistics print, and the p-values beside them.
    #[test]
    fn points_of_students_t() {
        let rows = [(1, 12.706), (2, 4.303), (9, 2.262), (30, 2.042), (31, 2.040), (60, 2.000), (120, 1.980)];
        for (freedom, expected) in rows {
            assert!((point(freedom) - expected).abs() < 0.0006, "{freedom}: {}", point(freedom));
        }
        assert!((point(NORMAL_FROM + 1) - 1.95996).abs() < 1e-5);
        assert!((outside(2.0, 31) - 0.05433).abs() < 1e-5 && (outside(2.0, 30) - 0.05462).abs() < 1e-5);
    }

    #[test]
    fn both_meet_what_drifts() {
        assert_eq!(turns(3).collect::<Vec<_>>(), [false, true, true, false, false, true]);
        // Something that grows by one each time, and by ten with the second.
        let values: Vec<Option<f64>> = turns(4)
            .zip(0..)
            .map(|(second, n)| Some(f64::from(n) + if second { 10.0 } else { 0.0 }))
            .collect();
        let paired = Paired::new(&rounds(&values)).expect("four rounds");
        assert_eq!((paired.rounds, paired.difference), (4, 10.0));
    }

    /// Student's own example: the additional sleep of ten people by two drugs (1908).
    #[test]
    fn students_sleep() {
        let first = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
        let second = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];
        let paired = Paired::new(&first.into_iter().zip(second).collect::<Vec<_>>()).expect("ten pairs");
        let (low, high) = paired.interval.expect("ten pairs");
        assert!(
            (paired.difference - 1.58).abs() < 1e-9 && (low - 0.7).abs() < 0.01 && (high - 2.46).abs() < 0.01
        );
        assert!(paired.is_sure());
    }

    #[test]
    fn p_values_agree_with_books() {
        // Student's sleep has t = 4.0621 with nine degrees: 0.00283 (1908).
        assert!((outside(4.0621, 9) - 0.002833).abs() < 1e-5);
        let of = |pairs: &[(f64, f64)]| Paired::new(pairs).expect("some").p_value();
        assert_eq!(of(&[(1.0, 2.0)]), None);
        assert_eq!(of(&[(1.0, 2.0), (1.0, 2.0)]), Some(0.0));
        assert_eq!(of(&[(1.0, 1.0), (1.0, 1.0)]), Some(1.0));
    }

    #[test]
    fn several_figures_share_the_chance_of_a_false_one() {
        let shown = |values: &[Option<f64>]| {
            adjusted(values).into_iter().map(|value| value.map(|p| libm::round(p * 1e6))).collect::<Vec<_>>()
        };
        let values = [Some(0.01), None, Some(0.04), Some(0.03), Some(0.005)];
        assert_eq!(shown(&values), [Some(30_000.0), None, Some(60_000.0), Some(60_000.0), Some(20_000.0)]);
        assert_eq!(shown(&[Some(0.7), Some(0.9)]), [Some(1e6), Some(1e6)]);
        // Of a thousand figures that chance alone moves, none is left in 19 of 20 families.
        let families = (0..1_000_u64).map(|family| {
            let draw = |n: u64| {
                let mixed = (family * 40 + n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let mixed = (mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
                Some(((mixed ^ (mixed >> 32)) >> 11) as f64 / (1_u64 << 53) as f64)
            };
            let values: Vec<_> = (0..20).map(draw).collect();
            let alone = values.iter().any(|value| value.is_some_and(|p| p <= 0.05));
            (alone, adjusted(&values).iter().any(|value| value.is_some_and(|p| p <= 0.05)))
        });
        let (alone, together) = families
            .fold((0, 0), |(a, b), (alone, together)| (a + usize::from(alone), b + usize::from(together)));
        assert!((500..=780).contains(&alone) && (20..=80).contains(&together), "{alone}, {together}");
    }

    #[test]
    fn little_is_not_sure() {
        assert_eq!(Paired::new(&[]), None);
        let once = Paired::new(&[(1.0, 2.0)]).expect("one");
        assert_eq!((once.interval, once.is_sure()), (None, false));
        assert!(!Paired::new(&[(1.0, 2.0), (2.0, 1.5), (1.0, 1.4)]).expect("three").is_sure());
        assert_eq!(rounds(&[Some(1.0), Some(2.0), None, Some(3.0), Some(4.0)]), vec![(1.0, 2.0)]);
    }
}
