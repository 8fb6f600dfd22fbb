//! The distributions that netem's delays may follow, by their definition: quantiles in steps of 1/4096, 8192
//! to a standard deviation.
//!
//! iproute2 ships them as files of numbers, which are not part of this project; a test holds ours against the
//! files where those are installed. The definitions were found from the numbers' own form:
//! - normal: the greatest point of a grid of 1/20,000 standard deviations, counted up from -10, at which the
//!   distribution rounded to 1/16,384 has not passed the quantile yet;
//! - pareto: of the exponent 3, whose mean is 3/2; the variance, 3/4, is used in place of the deviation;
//! - paretonormal: three parts of pareto and one of normal.

use std::sync::OnceLock;
use tidegate_policy::NetemDistribution;

const ENTRIES: usize = 4096;
/// The grid of the normal distribution is four times as fine.
const FINE: usize = 4 * ENTRIES;
const DEVIATION: f64 = 8192.0;

/// The distribution of that name, if it is one of those.
pub(crate) fn named(name: &str) -> Option<NetemDistribution> {
    static TABLES: OnceLock<[NetemDistribution; 3]> = OnceLock::new();
    let place = ["normal", "pareto", "paretonormal"].iter().position(|known| *known == name)?;
    let tables = TABLES.get_or_init(|| {
        let (normal, pareto) = (normal(), pareto());
        let mixed: Vec<f64> = normal.iter().zip(&pareto).map(|(n, p)| (n + 3.0 * p) / 4.0).collect();
        [table(&normal), table(&pareto), table(&mixed)]
    });
    Some(tables[place].clone())
}

fn table(values: &[f64]) -> NetemDistribution {
    NetemDistribution(values.iter().map(|value| value.clamp(-32768.0, 32767.0) as i16).collect())
}

fn normal() -> Vec<f64> {
    let mut last = vec![0.0; FINE + 1];
    let mut at = -10.0_f64;
    while at < 10.05 {
        let share = 0.5 + 0.5 * libm::erf(at / core::f64::consts::SQRT_2);
        last[libm::rint(FINE as f64 * share) as usize] = at;
        at += 0.000_05;
    }
    last[..FINE].iter().step_by(4).map(|at| libm::rint(at * DEVIATION)).collect()
}

fn pareto() -> Vec<f64> {
    let quantile = |n: usize| 1.0 / libm::cbrt(1.0 - n as f64 / ENTRIES as f64);
    (0..ENTRIES).map(|n| libm::rint((quantile(n) - 1.5) / 0.75 * DEVIATION).min(32767.0)).collect()
}

// Tests read files, and need not be the same to the last bit everywhere.
#[cfg(test)]
#[allow(clippy::disallowed_methods)]
mod tests {
    use super::*;

    fn values(name: &str) -> Vec<i16> {
        named(name).map(|table| table.0.into_vec()).unwrap_or_default()
    }

    #[test]
    fn tables_have_the_moments_of_their_distributions() {
        let mean = |of: &[i16]| of.iter().map(|value| f64::from(*value)).sum::<f64>() / of.len() as f64;
        let normal = values("normal");
        let squares = normal.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>() / 4096.0;
        assert!(mean(&normal).abs() < 25.0 && (squares.sqrt() / 8192.0 - 1.0).abs() < 0.002, "{squares}");
        assert_eq!([normal[0], normal[2048], normal[3000]], [-32768, 0, 5081]);
        let pareto = values("pareto");
        assert_eq!([pareto[0], pareto[1], pareto[4095]], [-5461, -5460, 32767]);
        assert!(normal.is_sorted() && pareto.is_sorted() && values("paretonormal").is_sorted());
        assert_eq!(named("uniform"), None);
    }

    /// The numbers of iproute2's files, where it is installed.
    #[test]
    fn tables_are_those_that_tc_sends() {
        for name in ["normal", "pareto", "paretonormal"] {
            let Some(text) = ["/usr/lib/tc", "/usr/lib/x86_64-linux-gnu/tc", "/usr/share/tc"]
                .iter()
                .find_map(|dir| std::fs::read_to_string(format!("{dir}/{name}.dist")).ok())
            else {
                println!("SKIPPED: {name}.dist is not installed");
                continue;
            };
            let lines = text.lines().filter(|line| !line.starts_with('#'));
            let theirs: Vec<i16> =
                lines.flat_map(str::split_whitespace).filter_map(|word| word.parse().ok()).collect();
            let ours = values(name);
            let differ: Vec<_> =
                (0..4096).filter(|n| ours[*n] != theirs[*n]).map(|n| (n, ours[n], theirs[n])).collect();
            assert_eq!(differ, [], "{name}");
        }
    }
}
