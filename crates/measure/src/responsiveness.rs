//! Round trips per minute under load: responsiveness, from draft-ietf-ippm-responsiveness-08.
//!
//! The draft's figure is the mean of two: round trips per minute of foreign requests (what a new conversation
//! meets) and of requests on the loading connections themselves, each 60 s over the mean of all but the
//! slowest twentieth (section "Aggregating the Measurements"). Its foreign ones are the handshakes of TCP and
//! TLS and a request of HTTP/2, its own ones a request of HTTP/2 within the load, and it adds connections
//! until goodput and responsiveness are stable and takes the last four seconds. There is no HTTP here:
//! foreign are the UDP probes, own are TCP's smoothed round trips of the loading connections; the number of
//! flows and the time are those of the test. So the figure is computed as the draft's and measured otherwise:
//! it includes neither the time that a server takes to answer nor what waits in the sender's own socket.

use crate::experiment::RunRecord;
use alloc::vec::Vec;

/// One in so many, the slowest, are left out of a mean.
const TRIMMED: usize = 20;
const MINUTE_NS: f64 = 60e9;

/// The mean of all but the slowest twentieth, ns; `None` of nothing.
pub fn trimmed_mean(mut spans: Vec<u64>) -> Option<f64> {
    spans.sort_unstable();
    spans.truncate(spans.len() - spans.len() / TRIMMED);
    let sum: u128 = spans.iter().map(|&span| u128::from(span)).sum();
    (!spans.is_empty()).then(|| sum as f64 / spans.len() as f64)
}

impl RunRecord {
    /// Round trips per minute while measured. Without a load, or without TCP's account of it, the foreign
    /// ones are all there is. `None`: nothing was answered.
    pub fn responsiveness(&self) -> Option<f64> {
        let round_trips = self.probes.iter().filter(|probe| probe.unit == "round trip");
        let foreign = round_trips.flat_map(|probe| probe.within(self.window)).filter_map(|(_, took)| took);
        let foreign = trimmed_mean(foreign.collect())?;
        let own =
            trimmed_mean(self.transfers.iter().flat_map(|transfer| self.own(&transfer.srtt_us)).collect());
        let per_minute = |ns: f64| MINUTE_NS / ns.max(1.0);
        Some(own.map_or(per_minute(foreign), |own| (per_minute(foreign) + per_minute(own)) / 2.0))
    }

    /// What of a series of µs per step lies within the window, in ns; steps without a reading are left out.
    fn own<'s>(&self, series: &'s [u64]) -> impl Iterator<Item = u64> + 's {
        let step = self.step_ns.max(1);
        let (from, to) = ((self.window.0 / step) as usize, (self.window.1 / step) as usize);
        let within = series.get(from..to.min(series.len())).unwrap_or_default();
        within.iter().filter(|us| **us > 0).map(|us| us * 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::{ProbeRecord, TransferRecord};
    use alloc::vec;

    const MS: u64 = 1_000_000;

    fn run(took: u64, srtt_us: Vec<u64>) -> RunRecord {
        let answers = (0..100).map(|n| (n * MS, Some(took))).collect();
        let probe = ProbeRecord { unit: "round trip".into(), answers, ..ProbeRecord::default() };
        let transfer = TransferRecord { srtt_us, ..TransferRecord::default() };
        RunRecord {
            window: (0, 100 * MS),
            step_ns: 10 * MS,
            probes: vec![probe],
            transfers: vec![transfer],
            ..RunRecord::default()
        }
    }

    #[test]
    fn half_of_it_is_the_load_s_own() {
        assert_eq!(run(20 * MS, vec![]).responsiveness(), Some(3000.0));
        // The mean of 3000 and 600 in a minute, not 60 s over the mean of 20 and 100 ms.
        assert_eq!(run(20 * MS, vec![0, 100_000, 100_000]).responsiveness(), Some(1800.0));
        assert_eq!(RunRecord::default().responsiveness(), None);
    }

    #[test]
    fn the_slowest_twentieth_does_not_count() {
        let spans: Vec<u64> = (0..100).map(|n| if n < 95 { 10 } else { 1_000_000 }).collect();
        assert_eq!(trimmed_mean(spans), Some(10.0));
        assert_eq!(trimmed_mean(vec![7]), Some(7.0));
    }
}
