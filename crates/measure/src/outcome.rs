//! Quality of Outcome (QoO): how near measured delays and losses are to what an application needs.
//!
//! draft-ietf-ippm-qoo-11, section "Calculating QoO": an application states the delays at some percentiles,
//! the share of losses and the throughput at which it works as well as it can, and those at which it is no
//! longer acceptable. Each dimension is a straight line between the two, from 0 to 100, and the least of them
//! is the score. Lost packets count in the share of losses only, not among the delays.
//!
//! The draft defines no application. The profiles here are tidegate's own, chosen by hand, not by tests with
//! people: [`PROFILES`].

use crate::Pings;

/// Fewer packets than this give no score: a 99th percentile of fewer is their maximum.
pub const MIN_SAMPLES: usize = 100;

/// The delays that an application needs at one percentile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DelayRequirement {
    /// Which percentile, 0 to 100.
    pub percentile: f64,
    /// Up to this delay the application works as well as it can, ns.
    pub optimal_ns: u64,
    /// From this delay on it is not acceptable, ns; more than `optimal_ns`.
    pub unacceptable_ns: u64,
}

/// What an application needs of a network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ApplicationProfile<'a> {
    /// Its name in tables and documents: `call`.
    pub name: &'a str,
    /// What it is, for people.
    pub title: &'a str,
    /// What it needs of the delays in the direction that is measured.
    pub delays: &'a [DelayRequirement],
    /// Up to this share of losses it works as well as it can, 0 to 1.
    pub optimal_loss: f64,
    /// From this share of losses on it is not acceptable; more than `optimal_loss`.
    pub unacceptable_loss: f64,
    /// The throughput that it needs, bits per second; 0: none is asked for.
    pub throughput_bits: u64,
}

/// What a measured delay is of: a profile is for one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DelayDirection {
    /// From the sender to the receiver.
    OneWay,
    /// There and back.
    RoundTrip,
}

impl DelayDirection {
    /// From what a document calls the answer of a probe; `None`: something else than a packet's delay.
    pub fn of_unit(unit: &str) -> Option<DelayDirection> {
        match unit {
            "one way" => Some(DelayDirection::OneWay),
            "round trip" => Some(DelayDirection::RoundTrip),
            _ => None,
        }
    }
}

/// The dimension that a score is of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum OutcomeLimit {
    /// The delay at this percentile.
    Delay(f64),
    /// The share of losses.
    Loss,
    /// The throughput.
    Throughput,
}

/// A score, and what it is limited by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OutcomeScore {
    /// 0 (unacceptable) to 100 (optimal).
    pub score: f64,
    /// The dimension with the least score; `None` at 100, where nothing limits.
    pub limit: Option<OutcomeLimit>,
}

impl OutcomeScore {
    /// The score as a whole number: 0 and 100 only if it is that exactly.
    pub fn rounded(self) -> u8 {
        let nearest = (self.score + 0.5) as u8;
        if self.score <= 0.0 {
            0
        } else if self.score >= 100.0 {
            100
        } else {
            nearest.clamp(1, 99)
        }
    }
}

impl ApplicationProfile<'_> {
    /// The score of packets that took these delays and of which this share was lost.
    ///
    /// `throughput` in bits per second, if it was measured. `None`: fewer than [`MIN_SAMPLES`] packets, or a
    /// throughput is asked for and none was measured.
    pub fn score(&self, packets: &Pings, throughput: Option<f64>) -> Option<OutcomeScore> {
        if packets.sent() < MIN_SAMPLES || (self.throughput_bits > 0 && throughput.is_none()) {
            return None;
        }
        let loss = line(packets.loss(), self.optimal_loss, self.unacceptable_loss);
        let enough = throughput.is_none_or(|bits| bits >= self.throughput_bits as f64);
        let rate = if enough { 100.0 } else { 0.0 };
        let delays = self.delays.iter().filter_map(|needed| {
            let took = packets.rtt.percentile(needed.percentile)? as f64;
            let score = line(took, needed.optimal_ns as f64, needed.unacceptable_ns as f64);
            Some((score, OutcomeLimit::Delay(needed.percentile)))
        });
        let all = delays.chain([(loss, OutcomeLimit::Loss), (rate, OutcomeLimit::Throughput)]);
        let (score, limit) = all.min_by(|one, other| one.0.total_cmp(&other.0))?;
        Some(OutcomeScore { score, limit: (score < 100.0).then_some(limit) })
    }
}

/// Where a measurement lies between unacceptable (0) and optimal (100).
fn line(measured: f64, optimal: f64, unacceptable: f64) -> f64 {
    (1.0 - (measured - optimal) / (unacceptable - optimal)).clamp(0.0, 1.0) * 100.0
}

const MS: u64 = 1_000_000;

const fn at(percentile: f64, optimal_ms: u64, unacceptable_ms: u64) -> DelayRequirement {
    DelayRequirement { percentile, optimal_ns: optimal_ms * MS, unacceptable_ns: unacceptable_ms * MS }
}

/// One of tidegate's applications, for both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NamedApplication {
    /// As it is for delays one way.
    pub one_way: ApplicationProfile<'static>,
    /// As it is for round trips.
    pub round_trip: ApplicationProfile<'static>,
}

impl NamedApplication {
    /// The profile for what was measured.
    pub fn profile(&self, direction: DelayDirection) -> &ApplicationProfile<'static> {
        match direction {
            DelayDirection::OneWay => &self.one_way,
            DelayDirection::RoundTrip => &self.round_trip,
        }
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.one_way.name
    }
}

const fn application(
    (name, title): (&'static str, &'static str),
    one_way: &'static [DelayRequirement],
    round_trip: &'static [DelayRequirement],
    (optimal_loss, unacceptable_loss): (f64, f64),
) -> NamedApplication {
    NamedApplication {
        one_way: ApplicationProfile {
            name,
            title,
            delays: one_way,
            optimal_loss,
            unacceptable_loss,
            throughput_bits: 0,
        },
        round_trip: ApplicationProfile {
            name,
            title,
            delays: round_trip,
            optimal_loss,
            unacceptable_loss,
            throughput_bits: 0,
        },
    }
}

/// tidegate's own applications. None asks for a throughput: a probe does not measure one, and a score says
/// nothing about it. A round trip may take twice what one way may.
///
/// That a call's upper bound is 400 ms one way is ITU-T G.114's: a delay that should not be exceeded. That
/// 200 ms there and back are good for it is draft-ietf-ippm-responsiveness-08's (section "Round-Trips per
/// Minute"). That meetings depend on the 90th percentile, and on the 99th beside it, and games on the 99th,
/// is the draft's (section "Measurement Considerations"). The other numbers are tidegate's choice.
pub const PROFILES: [NamedApplication; 4] = [
    application(("call", "a telephone call"), &[at(99.0, 100, 400)], &[at(99.0, 200, 800)], (0.01, 0.05)),
    application(
        ("meeting", "a meeting with video"),
        &[at(90.0, 75, 250), at(99.0, 100, 400)],
        &[at(90.0, 150, 500), at(99.0, 200, 800)],
        (0.01, 0.05),
    ),
    application(("game", "a fast game"), &[at(99.0, 25, 100)], &[at(99.0, 50, 200)], (0.005, 0.03)),
    application(
        ("browsing", "reading web pages"),
        &[at(50.0, 25, 250), at(90.0, 50, 500)],
        &[at(50.0, 50, 500), at(90.0, 100, 1000)],
        (0.01, 0.1),
    ),
];

/// The application of this name.
pub fn application_named(name: &str) -> Option<&'static NamedApplication> {
    PROFILES.iter().find(|application| application.name() == name)
}

/// The score of packets of this unit (`one way`, `round trip`) for one of tidegate's applications; `None`:
/// the unit is another, or there were too few packets.
pub fn score_of(application: &NamedApplication, unit: &str, packets: &Pings) -> Option<OutcomeScore> {
    application.profile(DelayDirection::of_unit(unit)?).score(packets, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// A thousand packets of which so many are lost; the rest take `low`, but for the slowest, which take
    /// what is given for each percentile.
    fn packets(lost: usize, low_ms: u64, slow: &[(usize, u64)]) -> Pings {
        let mut took: Vec<Option<u64>> = Vec::new();
        for (count, ms) in slow {
            took.extend(core::iter::repeat_n(Some(ms * MS), *count));
        }
        let left = 1000 - lost - took.len();
        took.extend(core::iter::repeat_n(Some(low_ms * MS), left));
        took.extend(core::iter::repeat_n(None, lost));
        Pings::new(took)
    }

    /// The requirements of the draft's worked example (section "Example").
    const EXAMPLE: ApplicationProfile<'static> = ApplicationProfile {
        name: "example",
        title: "the draft's example",
        delays: &[at(99.0, 200, 500), at(99.9, 300, 600)],
        optimal_loss: 0.01,
        unacceptable_loss: 0.05,
        throughput_bits: 4_000_000,
    };

    #[test]
    fn the_draft_s_worked_example() {
        // 2 % lost, 28 Mbit/s; of the 980 that arrive the 99th percentile is the 971st, the 99.9th the 980th.
        let measured = packets(20, 20, &[(9, 350), (1, 350), (1, 375)]);
        assert_eq!(
            (measured.loss(), measured.rtt.percentile(99.0), measured.rtt.percentile(99.9)),
            (0.02, Some(350 * MS), Some(375 * MS))
        );
        let score = EXAMPLE.score(&measured, Some(28e6)).expect("enough packets");
        assert!((score.score - 50.0).abs() < 1e-9, "{score:?}");
        assert_eq!((score.limit, score.rounded()), (Some(OutcomeLimit::Delay(99.0)), 50));
    }

    #[test]
    fn the_worst_dimension_decides() {
        let of = |lost, slow: &[(usize, u64)], bits| {
            EXAMPLE.score(&packets(lost, 20, slow), Some(bits)).map(|s| (s.rounded(), s.limit))
        };
        assert_eq!(of(0, &[], 4e6), Some((100, None)), "exactly the throughput that is needed");
        assert_eq!(of(0, &[], 3.9e6), Some((0, Some(OutcomeLimit::Throughput))));
        assert_eq!(of(30, &[], 5e6), Some((50, Some(OutcomeLimit::Loss))));
        assert_eq!(of(50, &[], 5e6), Some((0, Some(OutcomeLimit::Loss))));
        assert_eq!(of(0, &[(2, 525)], 5e6), Some((25, Some(OutcomeLimit::Delay(99.9)))));
        assert_eq!(of(0, &[(20, 900)], 5e6), Some((0, Some(OutcomeLimit::Delay(99.0)))));
        assert_eq!(of(1000, &[], 5e6), Some((0, Some(OutcomeLimit::Loss))), "nothing arrives");
    }

    #[test]
    fn what_gives_no_score() {
        let few = Pings::new((0..99).map(|_| Some(MS)));
        assert_eq!(EXAMPLE.score(&few, Some(28e6)), None);
        assert_eq!(EXAMPLE.score(&packets(0, 20, &[]), None), None, "the throughput is unknown");
        let call = application_named("call").expect("there is one");
        assert_eq!(score_of(call, "until the prompt", &packets(0, 20, &[])), None);
        assert_eq!(score_of(call, "one way", &few), None);
    }

    #[test]
    fn only_exact_ends_are_written_as_such() {
        let rounded = |score| OutcomeScore { score, limit: None }.rounded();
        assert_eq!([0.0, 0.01, 49.4, 49.6, 99.9, 100.0].map(rounded), [0, 1, 49, 50, 99, 100]);
    }

    #[test]
    fn every_profile_is_one() {
        for application in &PROFILES {
            assert_eq!(application_named(application.name()), Some(application));
            let (one_way, round_trip) = (application.one_way, application.round_trip);
            assert!(one_way.optimal_loss < one_way.unacceptable_loss);
            assert_eq!(one_way.delays.len(), round_trip.delays.len());
            for (one, both) in one_way.delays.iter().zip(round_trip.delays) {
                assert!(one.optimal_ns < one.unacceptable_ns);
                assert_eq!(one.percentile, both.percentile);
                assert_eq!(
                    (one.optimal_ns * 2, one.unacceptable_ns * 2),
                    (both.optimal_ns, both.unacceptable_ns)
                );
            }
        }
        // The same path both ways: a call has the same score by either.
        let call = application_named("call").expect("there is one");
        let one = score_of(call, "one way", &packets(0, 250, &[]));
        assert_eq!(one, score_of(call, "round trip", &packets(0, 500, &[])));
        assert_eq!(one.map(OutcomeScore::rounded), Some(50));
    }
}
