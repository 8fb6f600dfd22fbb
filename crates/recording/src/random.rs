//! Recorded draws, consumed in the order in which they were made.

use crate::because::Parsed;
use crate::error::{RandomError, RecordingError};
use std::collections::VecDeque;
use std::str::FromStr;
use tidegate_packet::{RandomSource, Seeded, Time};

/// A list of recorded draws.
#[derive(Clone, Debug, Default)]
pub struct RecordedRandom {
    rows: VecDeque<Row>,
    taken: usize,
    /// The first request that the list could not answer.
    error: Option<RandomError>,
    /// There is no record: draws come from here.
    seeded: Option<Seeded>,
}

#[derive(Clone, Debug)]
struct Row {
    time: Time,
    width: u8,
    value: u64,
    /// A timer drew it, that changes a hash key: it fired then.
    by_timer: bool,
}

fn number<T: FromStr<Err: std::fmt::Display>>(text: &str) -> Parsed<T> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Widths that are not bits: a word of a key, and a draw below a bound.
const WORD: u8 = 65;
const BELOW: u8 = 0;

impl RecordedRandom {
    /// Parses `draws.csv`: `time_ns,width,value,where`; `epoch` is the recording's zero, ns.
    ///
    /// # Errors
    /// Which line cannot be read, and why.
    pub fn parse(text: &str, epoch: i64) -> Result<RecordedRandom, RecordingError> {
        let mut rows = VecDeque::new();
        for (n, line) in text.lines().enumerate().skip(1).filter(|(_, l)| !l.trim().is_empty()) {
            let row = || -> Parsed<Row> {
                let mut fields = line.split(',');
                let mut next = || fields.next().ok_or("a field is missing");
                let time = number::<i64>(next()?)?;
                let (width, value) = (number(next()?)?, number(next()?)?);
                // The kernel's function is named; those that a timer calls are never part of another.
                let by_timer = fields.next().is_some_and(|function| function.ends_with("perturbation"));
                Ok(Row { time: Time((time + epoch) as u64), width, value, by_timer })
            };
            rows.push_back(row().map_err(|why| RecordingError::line("draws.csv", n + 1, line, why))?);
        }
        Ok(RecordedRandom { rows, ..RecordedRandom::default() })
    }

    /// Draws made up from a seed, for a run that was never recorded.
    pub fn from_seed(seed: u64) -> RecordedRandom {
        RecordedRandom { seeded: Some(Seeded::new(seed)), ..RecordedRandom::default() }
    }

    /// Is there no record?
    pub fn made_up(&self) -> bool {
        self.seeded.is_some()
    }

    /// When the next draw was made, if a timer made it.
    pub fn next_by_timer(&self) -> Option<Time> {
        self.rows.front().filter(|row| row.by_timer).map(|row| row.time)
    }

    /// All draws were used, and none was missing?
    ///
    /// # Errors
    /// The first difference.
    pub fn check(&self) -> Result<(), RandomError> {
        if let Some(problem) = &self.error {
            return Err(problem.clone());
        }
        match self.rows.len() {
            0 => Ok(()),
            left => Err(RandomError::Left { left, of: left + self.taken }),
        }
    }

    fn take(&mut self, width: u8) -> u64 {
        match self.rows.pop_front() {
            Some(row) => {
                self.taken += 1;
                if row.width != width && self.error.is_none() {
                    self.error = Some(RandomError::Width {
                        number: self.taken,
                        recorded: row.width,
                        requested: width,
                    });
                }
                row.value
            }
            None => {
                let taken = self.taken;
                self.error.get_or_insert(RandomError::None { requested: width, of: taken });
                0
            }
        }
    }
}

impl RandomSource for RecordedRandom {
    fn word(&mut self) -> u64 {
        if let Some(seeded) = &mut self.seeded {
            return seeded.word();
        }
        self.take(WORD)
    }
    fn u32(&mut self) -> u32 {
        if let Some(seeded) = &mut self.seeded {
            return seeded.u32();
        }
        self.take(32) as u32
    }
    fn u16(&mut self) -> u16 {
        if let Some(seeded) = &mut self.seeded {
            return seeded.u16();
        }
        self.take(16) as u16
    }
    fn u64(&mut self) -> u64 {
        if let Some(seeded) = &mut self.seeded {
            return seeded.u64();
        }
        self.take(64)
    }
    fn below(&mut self, n: u32) -> u32 {
        if let Some(seeded) = &mut self.seeded {
            return seeded.below(n);
        }
        self.take(BELOW) as u32
    }
}
