//! What half a minute showed of a line: how long answers take from whoever stands on the way, idle and under load, and what follows.
//!
//! Times are nanoseconds from the beginning, rates bits per second, unless a field says otherwise.

use crate::pinged::Asked;
use crate::{Pings, Spans};
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
    /// Who was asked, the nearest first; the last is the far end.
    pub places: Vec<Place>,
    /// What went on meanwhile, in order; the first is idle.
    pub phases: Vec<Phase>,
    /// What would mend it, if anything needs to be.
    pub remedy: Option<Remedy>,
    /// What the reader should know.
    pub notes: Vec<String>,
}

/// Somebody on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// What he is called: an address, with what is known of it.
    pub name: String,
    /// How many hops away, if that is known.
    pub distance: Option<u8>,
    /// What he was asked.
    pub asked: Vec<Asked>,
}

/// What loads the line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Load {
    /// Nothing of ours.
    #[default]
    Idle,
    /// What goes away from here.
    Up,
    /// What comes here.
    Down,
    /// Both at once.
    Both,
}

impl Load {
    /// In a word, as it stands in results.
    pub fn word(self) -> &'static str {
        match self {
            Load::Idle => "idle",
            Load::Up => "up",
            Load::Down => "down",
            Load::Both => "both",
        }
    }
}

/// A stretch of time with one load.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Phase {
    /// The load.
    pub load: Load,
    /// From when to when it was measured; before that it grew.
    pub window: (u64, u64),
    /// By what the line was loaded, in words.
    pub by: String,
    /// What went through away from here.
    pub up_bits: Option<f64>,
    /// And towards here.
    pub down_bits: Option<f64>,
}

/// What would mend it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Remedy {
    /// A short policy.
    pub policy: String,
    /// What the simulator says of the line with these figures, by load.
    pub predicted: Vec<Predicted>,
}

/// A prediction under one load: median and 95th percentile of round trips.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Predicted {
    /// The load.
    pub load: Load,
    /// As the line is now.
    pub without: (u64, u64),
    /// With the policy.
    pub with: (u64, u64),
}

/// How bad a line is, by how much the median round trip grows under the worse of its loads: below 5, 30, 60, 200, 400 ms, and beyond. (The steps are
/// those of Waveform's and DSLReports' tests, so that grades can be compared.)
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
/// Fewer answers than this say nothing.
const FEW: usize = 5;

impl Quick {
    /// What a place answered during a phase.
    pub fn pings(&self, place: usize, phase: usize) -> Pings {
        let window = self.phases.get(phase).map_or((0, 0), |phase| phase.window);
        let asked = self.places.get(place).map_or(&[][..], |place| &place.asked);
        let within = asked.iter().filter(|asked| (window.0..window.1).contains(&asked.sent_ns));
        Pings::new(within.map(|asked| asked.took_ns))
    }

    /// By how much the median round trip to a place grew over the idle one; `None`: too few answers.
    pub fn growth(&self, place: usize, phase: usize) -> Option<u64> {
        let median = |phase| {
            let rtt: Spans = self.pings(place, phase).rtt;
            if rtt.count() < FEW { None } else { rtt.percentile(50.0) }
        };
        Some(median(phase)?.saturating_sub(median(0)?))
    }

    /// The place that tells the most: the far end, or the farthest that answered.
    pub fn farthest(&self) -> Option<usize> {
        (0..self.places.len()).rev().find(|place| self.pings(*place, 0).rtt.count() >= FEW)
    }

    /// The grade, by the worst loaded phase; `None`: no phase was loaded, or nobody answered.
    pub fn grade(&self) -> Option<Grade> {
        let far = self.farthest()?;
        (1..self.phases.len()).filter_map(|phase| self.growth(far, phase)).max().map(Grade::of)
    }

    /// Round trips in a minute under the worst load: 60 s over the median round trip (responsiveness; draft-ietf-ippm-responsiveness takes several
    /// kinds of round trips, this is of pings alone).
    pub fn round_trips_per_minute(&self) -> Option<u64> {
        let far = self.farthest()?;
        let medians = (1..self.phases.len()).filter_map(|phase| self.pings(far, phase).rtt.percentile(50.0));
        Some(60_000_000_000 / medians.max()?.max(1))
    }

    /// Where the queue of a phase stands: before the place with this number, which is the nearest that most of the growth is seen at. `None`: nothing
    /// grew, or nobody can tell.
    pub fn queue(&self, phase: usize) -> Option<usize> {
        let whole = self.growth(self.farthest()?, phase)?;
        if whole < NOTHING {
            return None;
        }
        (0..self.places.len()).find(|place| self.growth(*place, phase).is_some_and(|growth| growth >= whole / 2))
    }

    /// Does that much become sure nearer than at the far end? `false`: nobody before the place of the queue answered.
    pub fn queue_is_bracketed(&self, place: usize, phase: usize) -> bool {
        place == 0 || (0..place).any(|before| self.growth(before, phase).is_some())
    }

    /// The most that went through away from here, and towards here.
    pub fn rates(&self) -> (Option<f64>, Option<f64>) {
        let most = |of: fn(&Phase) -> Option<f64>| self.phases.iter().filter_map(of).max_by(f64::total_cmp);
        (most(|phase| phase.up_bits), most(|phase| phase.down_bits))
    }

    /// What stands in a line's buffer when it is full, in bytes, from how much answers took longer at the 95th percentile: `None` if that load was
    /// not tried.
    pub fn buffer(&self, load: Load) -> Option<u64> {
        let far = self.farthest()?;
        let phase = self.phases.iter().position(|phase| phase.load == load)?;
        let bits = match load {
            Load::Idle => None,
            Load::Down => self.phases[phase].down_bits,
            Load::Up | Load::Both => self.phases[phase].up_bits,
        }?;
        let idle = self.pings(far, 0).rtt.percentile(50.0)?;
        let full = self.pings(far, phase).rtt.percentile(95.0)?;
        Some((full.saturating_sub(idle) as f64 * bits / 8e9) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    const MS: u64 = 1_000_000;

    /// Pings every 50 ms for 4 s, of which the second half is loaded and takes so much longer.
    fn place(idle: u64, growth: u64) -> Place {
        let asked = (0..80).map(|n| {
            let sent_ns = n * 50 * MS;
            let more = if sent_ns >= 2000 * MS { growth } else { 0 };
            Asked { sent_ns, took_ns: Some((idle + more) * MS + n % 3), here_ns: None }
        });
        Place { asked: asked.collect(), ..Place::default() }
    }

    fn quick(growths: &[(u64, u64)]) -> Quick {
        let places = growths.iter().map(|(idle, growth)| place(*idle, *growth)).collect();
        let idle = Phase { window: (0, 2000 * MS), ..Phase::default() };
        let up = Phase { load: Load::Up, window: (2000 * MS, 4000 * MS), up_bits: Some(5e6), ..Phase::default() };
        Quick { places, phases: vec![idle, up], ..Quick::default() }
    }

    #[test]
    fn the_queue_stands_before_the_first_that_answers_late() {
        let line = quick(&[(1, 0), (2, 1), (9, 310), (20, 300)]);
        assert_eq!((line.queue(1), line.grade(), line.round_trips_per_minute()), (Some(2), Some(Grade::D), Some(187)));
        assert!(line.queue_is_bracketed(2, 1));
        assert_eq!(line.buffer(Load::Up), Some(300 * 5_000_000 / 8000));
        let wireless = quick(&[(1, 90), (20, 95)]);
        assert_eq!((wireless.queue(1), wireless.grade()), (Some(0), Some(Grade::C)));
        let good = quick(&[(1, 0), (20, 3)]);
        assert_eq!((good.queue(1), good.grade()), (None, Some(Grade::Excellent)));
    }

    #[test]
    fn whoever_is_silent_says_nothing() {
        let mut line = quick(&[(1, 0), (2, 0), (20, 300)]);
        line.places[0].asked.iter_mut().for_each(|asked| asked.took_ns = None);
        line.places[1].asked.iter_mut().for_each(|asked| asked.took_ns = None);
        assert_eq!(line.queue(1), Some(2));
        assert!(!line.queue_is_bracketed(2, 1), "it may as well be nearer");
        line.places[2].asked.clear();
        assert_eq!((line.farthest(), line.grade(), line.queue(1)), (None, None, None));
    }
}
