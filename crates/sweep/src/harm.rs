//! Harm: how much worse a workload does beside another one than alone (Ware, Mukerjee, Seshan and Sherry,
//! "Beyond Jain's Fairness Index: Setting the Bar for the Deployment of Congestion Control Algorithms",
//! HotNets 2019, propose the term). The formulas are written here in tidegate's words, not quoted.

/// How much worse a figure is than alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Harm {
    /// How many runs have a partner in which the workload is alone.
    pub pairs: usize,
    /// The mean over these pairs: 0 is no harm, 1 the most; below 0 it does better than alone.
    pub mean: f64,
    /// Where the mean lies with 95 % confidence, if the pairs are a sample and differ.
    pub interval: Option<(f64, f64)>,
}

/// Whether a figure is better if there is more of it; `None`: it is good or bad by circumstances.
pub(crate) fn more_is_better(figure: &str, unit: &str) -> Option<bool> {
    let statistic = figure.rsplit('.').next().unwrap_or_default();
    match (unit, statistic) {
        ("bit/s", _) | (_, "packet-rate") | ("bytes", "bytes") => Some(true),
        ("s", _) | ("", "loss" | "there-loss" | "back-loss" | "lost" | "drops") => Some(false),
        _ => None,
    }
}

/// The harm: of what is better the more there is of it, the share that is lost; of what is better the less
/// there is, the share of it that was added. `None`: one of them is 0, and the other is not, so that the
/// definition divides by 0.
pub(crate) fn harm(alone: f64, beside: f64, more_is_better: bool) -> Option<f64> {
    if alone == beside {
        return Some(0.0);
    }
    let (lost, of) = if more_is_better { (alone - beside, alone) } else { (beside - alone, beside) };
    (of > 0.0).then(|| lost / of).filter(|harm| harm.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 Mbit/s alone and 5 beside another; 20 ms alone and 80 beside.
    #[test]
    fn harm_is_the_share_that_is_lost() {
        assert_eq!((harm(10e6, 5e6, true), harm(0.02, 0.08, false)), (Some(0.5), Some(0.75)));
        assert_eq!((harm(5.0, 10.0, true), harm(0.08, 0.04, false)), (Some(-1.0), Some(-1.0)));
        assert_eq!((harm(10.0, 0.0, true), harm(0.0, 0.1, false)), (Some(1.0), Some(1.0)));
        assert_eq!(
            (harm(0.0, 0.0, false), harm(0.0, 3.0, true), harm(0.1, 0.0, false)),
            (Some(0.0), None, None)
        );
    }

    #[test]
    fn figures_are_good_or_bad() {
        let rows = [
            ("upload.rate", "bit/s", Some(true)),
            ("upload.bytes", "bytes", Some(true)),
            ("ping.p99.9", "s", Some(false)),
            ("upload.convergence", "s", Some(false)),
            ("ping.loss", "", Some(false)),
            ("upload.fairness", "", None),
            ("link dsl up.utilisation", "", None),
            ("link dsl up.peak", "bytes", None),
        ];
        for (figure, unit, expected) in rows {
            assert_eq!(more_is_better(figure, unit), expected, "{figure}");
        }
    }
}
