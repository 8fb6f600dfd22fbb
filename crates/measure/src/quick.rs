//! What a test of half a minute shows of a line: how long replies take from each hop of the path, idle and
//! under load, and what follows.
//!
//! Times are nanoseconds from the beginning, rates bits per second, unless a field has another unit.

use crate::outcome::{self, NamedApplication, OutcomeScore};
use crate::pinged::PingRequest;
use crate::{Durations, Pings};
use alloc::string::String;
use alloc::vec::Vec;

/// What was seen, and what follows from it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Quick {
    /// The version that measured.
    pub version: String,
    /// The command that measures again.
    pub again: String,
    /// When it began, ns since 1970.
    pub began_ns: u64,
    /// Why it is not the whole, if it is not.
    pub partial: Option<String>,
    /// This computer forwards packets between devices, as the router at the line does (and a host of
    /// containers, too): then its link to the first hop may be the line.
    pub may_be_router: bool,
    /// The hops that were pinged, the nearest first; the last is the server.
    pub places: Vec<HopResult>,
    /// The phases, in order; the first is idle.
    pub phases: Vec<LoadPhase>,
    /// What would fix it, if anything needs to be.
    pub remedy: Option<Remedy>,
    /// What to do next, in order: what measures more, what applies the policy, what compares it with none.
    pub next: Vec<NextStep>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// A hop of the path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HopResult {
    /// What he is called: an address, with what is known about it.
    pub name: String,
    /// How many hops away, if that is known.
    pub distance: Option<u8>,
    /// Every request to it, in order.
    pub requests: Vec<PingRequest>,
}

/// What loads the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoadDirection {
    /// Nothing of tidegate's.
    #[default]
    Idle,
    /// An upload.
    Up,
    /// What comes here.
    Down,
    /// Both at once.
    Both,
}

impl LoadDirection {
    /// In a word, as it is in results.
    pub fn word(self) -> &'static str {
        match self {
            LoadDirection::Idle => "idle",
            LoadDirection::Up => "up",
            LoadDirection::Down => "down",
            LoadDirection::Both => "both",
        }
    }
}

/// A stretch of time with one load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoadPhase {
    /// What loaded the line.
    pub load: LoadDirection,
    /// From when to when it was measured, ns from the beginning; before that the load grew.
    pub window: (u64, u64),
    /// By what the line was loaded, in words.
    pub by: String,
    /// Upload throughput, bits per second; `None`: it was not measured.
    pub up_bits: Option<f64>,
    /// Download throughput, bits per second; `None`: it was not measured.
    pub down_bits: Option<f64>,
    /// The line was not full: it may carry more.
    pub is_partly_full: bool,
}

/// What a way carries, bits per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum CapacityEstimate {
    /// It was full.
    Full(f64),
    /// This throughput was reached and the line was not full, or it is unknown whether it was.
    AtLeast(f64),
}

impl CapacityEstimate {
    /// Bits per second.
    pub fn bits(self) -> f64 {
        match self {
            CapacityEstimate::Full(bits) | CapacityEstimate::AtLeast(bits) => bits,
        }
    }

    /// The way's rate, if it was full.
    pub fn full(self) -> Option<f64> {
        match self {
            CapacityEstimate::Full(bits) => Some(bits),
            CapacityEstimate::AtLeast(_) => None,
        }
    }
}

/// Something to do, ready to paste.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NextStep {
    /// What it is for, without a full stop.
    pub what: String,
    /// The lines to paste, of which some may be meant for another computer, as `what` says.
    pub commands: Vec<String>,
}

/// What would fix it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remedy {
    /// A short policy.
    pub policy: String,
    /// What was not measured, so that the policy is for one direction only; it is not saved then.
    pub missing: Option<String>,
    /// The file that it is saved as; `None`: it is not saved.
    pub saved: Option<String>,
    /// The simulator's prediction for the line with these figures, by load.
    pub predicted: Vec<PredictedRtt>,
}

/// A prediction under one load: median and 95th percentile of round trips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PredictedRtt {
    /// The load of the prediction.
    pub load: LoadDirection,
    /// As the line is now.
    pub without: (u64, u64),
    /// With the policy.
    pub with: (u64, u64),
}

/// How bad a line is, by how much the median round trip grows under the worse of its loads: below 5, 30, 60,
/// 200, 400 ms, and beyond. (The steps are those of Waveform's and DSLReports' tests, so that grades can be
/// compared.)
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Below 5 ms.
    Excellent,
    /// Below 30 ms.
    A,
    /// Below 60 ms.
    B,
    /// Below 200 ms.
    C,
    /// Below 400 ms.
    D,
    /// 400 ms and more.
    F,
}

impl Grade {
    /// For a growth.
    pub fn of(growth_ns: u64) -> Grade {
        match growth_ns / 1_000_000 {
            0..5 => Grade::Excellent,
            5..30 => Grade::A,
            30..60 => Grade::B,
            60..200 => Grade::C,
            200..400 => Grade::D,
            _ => Grade::F,
        }
    }

    /// As it is written.
    pub fn letter(self) -> &'static str {
        match self {
            Grade::Excellent => "A+",
            Grade::A => "A",
            Grade::B => "B",
            Grade::C => "C",
            Grade::D => "D",
            Grade::F => "F",
        }
    }
}

/// A growth below this is not looked for: it may be anything.
pub const NOTHING: u64 = 5_000_000;
/// Fewer replies than this are no evidence.
const FEW: usize = 5;
/// A way that carries so many times what echoes carried in both directions is not what held the echoes.
const CLEARLY_MORE: f64 = 1.2;

/// A part of the path between two hops that replied, and the queueing delay there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The farther one of those nearer than it, by its number; `None`: none of them answered, or there is
    /// none.
    pub after: Option<usize>,
    /// The place behind it, by its number.
    pub before: usize,
    /// What it adds to the median round trip, in ns.
    pub growth: u64,
}

impl Quick {
    /// What a place answered during a phase.
    pub fn pings(&self, place: usize, phase: usize) -> Pings {
        let window = self.phases.get(phase).map_or((0, 0), |phase| phase.window);
        let requests = self.places.get(place).map_or(&[][..], |place| &place.requests);
        let within = requests.iter().filter(|request| (window.0..window.1).contains(&request.sent_ns));
        Pings::new(within.map(|request| request.took_ns))
    }

    /// By how much the median round trip to a place grew over the idle one; `None`: too few answers.
    pub fn growth(&self, place: usize, phase: usize) -> Option<u64> {
        let median = |phase| {
            let rtt: Durations = self.pings(place, phase).rtt;
            if rtt.count() < FEW { None } else { rtt.percentile(50.0) }
        };
        Some(median(phase)?.saturating_sub(median(0)?))
    }

    /// The hop with the most information: the server, or the farthest that replied.
    pub fn farthest(&self) -> Option<usize> {
        (0..self.places.len()).rev().find(|place| self.pings(*place, 0).rtt.count() >= FEW)
    }

    /// The grade, by the worst loaded phase; `None`: no phase was loaded, or nothing replied.
    pub fn grade(&self) -> Option<Grade> {
        let remote = self.farthest()?;
        let grade =
            (1..self.phases.len()).filter_map(|phase| self.growth(remote, phase)).max().map(Grade::of)?;
        // A queue that nothing filled shows no delay: only a bad grade is known then.
        (self.was_full() || grade > Grade::B).then_some(grade)
    }

    /// Whether a load filled the line, so that its queues showed.
    pub fn was_full(&self) -> bool {
        self.phases.iter().skip(1).any(|phase| !phase.is_partly_full)
    }

    /// Round trips in a minute under the worst load: 60 s over the median round trip of pings. It is not the
    /// RPM of draft-ietf-ippm-responsiveness, whose requests are HTTP's and whose means are trimmed.
    pub fn round_trips_per_minute(&self) -> Option<u64> {
        let remote = self.farthest()?;
        let medians =
            (1..self.phases.len()).filter_map(|phase| self.pings(remote, phase).rtt.percentile(50.0));
        Some(60_000_000_000 / medians.max()?.max(1))
    }

    /// Quality of Outcome under load by the pings of the farthest hop, for each of tidegate's applications:
    /// of the phase with the least. An application is left out if no loaded phase has enough pings.
    pub fn outcomes_under_load(&self) -> Vec<(&'static str, OutcomeScore)> {
        let Some(remote) = self.farthest() else { return Vec::new() };
        let worst = |application: &'static NamedApplication| {
            let scores = (1..self.phases.len())
                .filter_map(|phase| application.round_trip.score(&self.pings(remote, phase), None));
            let least = scores.min_by(|one, other| one.score.total_cmp(&other.score))?;
            Some((application.name(), least))
        };
        outcome::PROFILES.iter().filter_map(worst).collect()
    }

    /// Where packets wait during a phase: stretches of the path, the nearest first, that add up to what round
    /// trips to the farthest place grew by. Empty: nothing grew, or nothing is known.
    ///
    /// A router may be slow to reply itself while it forwards without delay. So a hop that is clearly slower
    /// than one behind it is no evidence; a little slower may be chance.
    pub fn stretches(&self, phase: usize) -> Vec<Stretch> {
        let Some(remote) = self.farthest() else { return Vec::new() };
        let answered: Vec<(usize, u64)> =
            (0..=remote).filter_map(|place| Some((place, self.growth(place, phase)?))).collect();
        let whole = answered.last().filter(|(place, _)| *place == remote).map_or(0, |(_, growth)| *growth);
        if whole < NOTHING {
            return Vec::new();
        }
        let mut least = whole;
        let mut kept = Vec::new();
        for (place, growth) in answered.into_iter().rev() {
            if growth <= least + least / 4 + NOTHING {
                least = least.min(growth);
                kept.push((place, least));
            }
        }
        kept.reverse();
        let before =
            core::iter::once((None, 0)).chain(kept.iter().map(|(place, growth)| (Some(*place), *growth)));
        let stretch = |((after, nearer), (before, growth)): ((Option<usize>, u64), &(usize, u64))| Stretch {
            after,
            before: *before,
            growth: growth - nearer,
        };
        before.zip(&kept).map(stretch).filter(|stretch| stretch.growth > 0).collect()
    }

    /// The part of the path that holds most of the queueing delay of a phase; `None`: nothing grew, nothing
    /// is known, or no part has half of it.
    pub fn queue(&self, phase: usize) -> Option<Stretch> {
        let all = self.stretches(phase);
        let whole: u64 = all.iter().map(|stretch| stretch.growth).sum();
        all.into_iter().max_by_key(|stretch| stretch.growth).filter(|most| most.growth * 2 >= whole)
    }

    /// Whether packets wait in the user's own network only, before the first hop: then a policy for the line
    /// does not help.
    pub fn is_in_own_network(&self) -> bool {
        let mut loaded = (1..self.phases.len()).filter(|phase| self.queue(*phase).is_some()).peekable();
        loaded.peek().is_some() && loaded.all(|phase| self.is_near(phase))
    }

    /// Whether packets of one direction wait in the user's own network, when it is loaded alone: its rate is
    /// not the line's then.
    pub fn waits_in_own_network(&self, load: LoadDirection) -> bool {
        (1..self.phases.len()).any(|phase| self.phases[phase].load == load && self.is_near(phase))
    }

    /// Whether packets wait before the first hop, and this computer may be the router at the line: then it is
    /// unknown whether that queue is the line's or is in the user's own network.
    pub fn may_wait_at_line_or_home(&self) -> bool {
        self.may_be_router && (1..self.phases.len()).any(|phase| self.is_before_first_hop(phase))
    }

    /// Whether a phase's queue is in the user's own network.
    fn is_near(&self, phase: usize) -> bool {
        !self.may_be_router && self.is_before_first_hop(phase)
    }

    /// Whether a phase's queue is before the first hop.
    fn is_before_first_hop(&self, phase: usize) -> bool {
        let is_before_first = |stretch: Stretch| {
            stretch.after.is_none()
                && self.places.get(stretch.before).is_some_and(|place| place.distance == Some(1))
                && self.places.len() > 1
        };
        self.queue(phase).is_some_and(is_before_first)
    }

    /// The nearest hop behind which most of a phase's queueing delay is.
    pub fn behind_most(&self, phase: usize) -> Option<usize> {
        let all = self.stretches(phase);
        let whole: u64 = all.iter().map(|stretch| stretch.growth).sum();
        let mut passed = 0;
        all.into_iter().find_map(|stretch| {
            passed += stretch.growth;
            (passed * 2 >= whole).then_some(stretch.before)
        })
    }

    /// The line's capacity for upload, and for download.
    ///
    /// Echoes fill both directions with the same packets, so the slower direction limits them to its rate and
    /// nothing shows which that is, unless one direction was loaded alone as well: if that carried clearly
    /// more, the other one is the slower.
    pub fn rates(&self) -> (Option<CapacityEstimate>, Option<CapacityEstimate>) {
        let most = |rates: &mut dyn Iterator<Item = CapacityEstimate>| {
            rates.max_by(|a, b| a.bits().total_cmp(&b.bits()))
        };
        let of = |phase: &LoadPhase, bits: f64| {
            if phase.is_partly_full { CapacityEstimate::AtLeast(bits) } else { CapacityEstimate::Full(bits) }
        };
        let alone = || self.phases.iter().filter(|phase| phase.load != LoadDirection::Both);
        let up = most(&mut alone().filter_map(|phase| Some(of(phase, phase.up_bits?))));
        let down = most(&mut alone().filter_map(|phase| Some(of(phase, phase.down_bits?))));
        let both = self.phases.iter().filter(|phase| phase.load == LoadDirection::Both);
        let Some(echoes) = most(&mut both.filter_map(|phase| Some(of(phase, phase.up_bits?)))) else {
            return (up, down);
        };
        let other = |alone: Option<CapacityEstimate>| match (alone, echoes) {
            (Some(alone), CapacityEstimate::Full(bits)) if alone.bits() > bits * CLEARLY_MORE => echoes,
            _ => CapacityEstimate::AtLeast(echoes.bits()),
        };
        (up.or(Some(other(down))), down.or(Some(other(up))))
    }

    /// What is in a line's buffer when it is full, in bytes, from how much answers took longer at the
    /// 95th percentile: `None` if that load was not tried.
    pub fn buffer(&self, load: LoadDirection) -> Option<u64> {
        let remote = self.farthest()?;
        let phase = self.phases.iter().position(|phase| phase.load == load)?;
        let bits = match load {
            LoadDirection::Idle => None,
            LoadDirection::Down => self.phases[phase].down_bits,
            LoadDirection::Up | LoadDirection::Both => self.phases[phase].up_bits,
        }?;
        let idle = self.pings(remote, 0).rtt.percentile(50.0)?;
        let full = self.pings(remote, phase).rtt.percentile(95.0)?;
        Some((full.saturating_sub(idle) as f64 * bits / 8e9) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const MS: u64 = 1_000_000;

    /// Pings every 50 ms for 4 s, of which the second half is loaded and takes so much longer.
    fn place(idle: u64, growth: u64) -> HopResult {
        let selected = (0..80).map(|n| {
            let sent_ns = n * 50 * MS;
            let more = if sent_ns >= 2000 * MS { growth } else { 0 };
            PingRequest { sent_ns, took_ns: Some((idle + more) * MS + n % 3), here_ns: None }
        });
        HopResult { requests: selected.collect(), ..HopResult::default() }
    }

    fn quick(growths: &[(u64, u64)]) -> Quick {
        let places = growths.iter().map(|(idle, growth)| place(*idle, *growth)).collect();
        let idle = LoadPhase { window: (0, 2000 * MS), ..LoadPhase::default() };
        let up = LoadPhase {
            load: LoadDirection::Up,
            window: (2000 * MS, 4000 * MS),
            up_bits: Some(5e6),
            ..LoadPhase::default()
        };
        Quick { places, phases: vec![idle, up], ..Quick::default() }
    }

    /// The places on both sides of the loaded line's queue.
    fn between(line: &Quick) -> Option<(Option<usize>, usize)> {
        line.queue(1).map(|stretch| (stretch.after, stretch.before))
    }

    #[test]
    fn the_queue_is_before_the_first_late_hop() {
        let line = quick(&[(1, 0), (2, 1), (9, 310), (20, 300)]);
        assert_eq!((line.grade(), line.round_trips_per_minute()), (Some(Grade::D), Some(187)));
        assert_eq!(between(&line), Some((Some(1), 2)));
        assert_eq!(line.buffer(LoadDirection::Up), Some(300 * 5_000_000 / 8000));
        let wireless = quick(&[(1, 90), (20, 95)]);
        assert_eq!((between(&wireless), wireless.grade()), (Some((None, 0)), Some(Grade::C)));
        let good = quick(&[(1, 0), (20, 3)]);
        assert_eq!((between(&good), good.grade()), (None, Some(Grade::Excellent)));
        // Where nothing filled the line, only a queue that shows nevertheless has a grade.
        let unfilled = |mut line: Quick| {
            line.phases[1].is_partly_full = true;
            line.grade()
        };
        assert_eq!(unfilled(good.clone()), None);
        assert_eq!(unfilled(wireless.clone()), Some(Grade::C));
        // A router that is slow for itself alone delays nothing; the hops behind it show that.
        let slow = quick(&[(1, 0), (2, 150), (9, 3), (20, 100)]);
        assert_eq!((between(&slow), slow.behind_most(1)), (Some((Some(2), 3)), Some(3)));
        // No stretch has half of it.
        let spread = quick(&[(1, 40), (9, 70), (20, 100)]);
        assert_eq!((between(&spread), spread.behind_most(1)), (None, Some(1)));
        let growths = spread.stretches(1).into_iter().map(|stretch| stretch.growth / MS);
        assert_eq!(growths.collect::<Vec<u64>>(), [40, 30, 30]);
    }

    #[test]
    fn a_queue_before_the_first_hop_is_the_users_own() {
        let line = |growths: &[(u64, u64)]| {
            let mut line = quick(growths);
            for (n, place) in line.places.iter_mut().enumerate() {
                place.distance = Some(n as u8 + 1);
            }
            line
        };
        let at = |growths: &[(u64, u64)]| line(growths).is_in_own_network();
        // Of a router that link is the line's, as far as anyone can know.
        let router = |growths: &[(u64, u64)]| {
            let line = Quick { may_be_router: true, ..line(growths) };
            let is_own = line.is_in_own_network() || line.waits_in_own_network(LoadDirection::Up);
            (is_own, line.may_wait_at_line_or_home())
        };
        assert_eq!(router(&[(1, 90), (20, 95)]), (false, true));
        assert_eq!(router(&[(1, 0), (20, 95)]), (false, false));
        assert!(line(&[(1, 90), (20, 95)]).waits_in_own_network(LoadDirection::Up));
        assert!(!line(&[(1, 90), (20, 95)]).may_wait_at_line_or_home());
        assert!(at(&[(1, 90), (20, 95)]));
        assert!(!at(&[(1, 0), (20, 95)]) && !at(&[(1, 0), (20, 0)]));
        assert!(!at(&[(20, 95)]), "the only hop is the server: the queue may be anywhere");
    }

    #[test]
    fn echoes_know_the_slower_way_only() {
        let echoes = |bits, is_partly_full| LoadPhase {
            load: LoadDirection::Both,
            up_bits: Some(bits),
            down_bits: Some(bits),
            is_partly_full,
            ..LoadPhase::default()
        };
        let up = |bits| LoadPhase { load: LoadDirection::Up, up_bits: Some(bits), ..LoadPhase::default() };
        let down =
            |bits| LoadPhase { load: LoadDirection::Down, down_bits: Some(bits), ..LoadPhase::default() };
        let (full, least) =
            (|bits| Some(CapacityEstimate::Full(bits)), |bits| Some(CapacityEstimate::AtLeast(bits)));
        let cases = [
            (vec![echoes(5e6, false)], (least(5e6), least(5e6)), "either may be the slower one"),
            (vec![echoes(5e6, false), up(5.1e6)], (full(5.1e6), least(5e6)), "the way up is"),
            (vec![echoes(5e6, false), up(9e6)], (full(9e6), full(5e6)), "the way down is"),
            (vec![echoes(5e6, true), up(9e6)], (full(9e6), least(5e6)), "echoes filled nothing"),
            (vec![down(2e7), echoes(5e6, false)], (full(5e6), full(2e7)), "the way up is"),
            (vec![up(4e6), down(2e7)], (full(4e6), full(2e7)), "each alone"),
            (vec![], (None, None), "nothing was loaded"),
        ];
        for (phases, expected, why) in cases {
            assert_eq!(Quick { phases, ..Quick::default() }.rates(), expected, "{why}");
        }
    }

    #[test]
    fn a_silent_hop_is_no_evidence() {
        let mut line = quick(&[(1, 0), (2, 0), (20, 300)]);
        line.places[0].requests.iter_mut().for_each(|request| request.took_ns = None);
        line.places[1].requests.iter_mut().for_each(|request| request.took_ns = None);
        assert_eq!(between(&line), Some((None, 2)), "it may as well be nearer");
        line.places[2].requests.clear();
        assert_eq!((line.farthest(), line.grade(), between(&line)), (None, None, None));
    }
}
