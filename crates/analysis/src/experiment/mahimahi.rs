//! What links could carry, as mahimahi's files have it (Netravali et al., USENIX ATC 2015): a line for each
//! 1,500 bytes, with the millisecond from the beginning. A scenario reads them back (`trace = "…"`), and so
//! does `mm-link`.

use super::names::file_name;
use std::fmt::Write as _;
use tidegate_measure::experiment::Experiment;

/// Bytes of one opportunity.
const OPPORTUNITY: u64 = 1500;
const MILLISECOND: u64 = 1_000_000;

/// The files of an experiment: of each case's first repeat each direction of each link that has a rate; name
/// and content.
pub fn mahimahi_files(experiment: &Experiment) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for run in experiment.runs.iter().filter(|run| run.repeat == 0) {
        for link in &run.queues {
            let way = if link.up { "up" } else { "down" };
            let text = opportunities(&link.capacity, run.step_ns);
            if !text.is_empty() {
                files.push((
                    file_name(&format!("{}-{}-{}-{way}", run.load, run.policy, link.link)) + ".trace",
                    text,
                ));
            }
        }
    }
    files
}

/// The lines for so many bytes in each step; what is left of a step goes to the next.
fn opportunities(capacity: &[u64], step_ns: u64) -> String {
    let (mut text, mut left) = (String::new(), 0);
    for (begins, &bytes) in (0..).map(|n: u64| n * step_ns).zip(capacity) {
        let mut wanting = OPPORTUNITY - left;
        while wanting <= bytes {
            let at = begins + (u128::from(step_ns) * u128::from(wanting) / u128::from(bytes)) as u64;
            let _ = writeln!(text, "{}", at.div_ceil(MILLISECOND));
            wanting += OPPORTUNITY;
        }
        left = (left + bytes) % OPPORTUNITY;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opportunities_keep_the_rate() {
        // 100 ms at 240 kbit/s, then at 120, then nothing, then 120 again.
        let lines = opportunities(&[3000, 1500, 0, 750, 750], 100 * MILLISECOND);
        assert_eq!(lines, "50\n100\n200\n500\n");
        assert_eq!(opportunities(&[], MILLISECOND), "");
    }
}
