//! Rates that were recorded: a file of mahimahi's (Netravali et al., USENIX ATC 2015) names the milliseconds
//! at which a line could carry 1,500 bytes, one per line; at its end it begins again.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use tidegate_packet::{Nanos, Time};

/// Bytes that one opportunity carries.
const OPPORTUNITY: u32 = 1500;
const MILLISECOND: u64 = 1_000_000;
/// The most opportunities a trace may have: an hour at a gigabit per second is no home link's.
const MAX_OPPORTUNITIES: usize = 20_000_000;

/// When a line could carry 1,500 bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Milliseconds from its beginning, not falling; the last one is its length.
    at_ms: Vec<u64>,
}

impl Trace {
    /// Reads a file.
    ///
    /// # Errors
    /// The line (from 1), and what is wrong with it.
    pub fn parse(text: &str) -> Result<Trace, (usize, String)> {
        let mut at_ms: Vec<u64> = Vec::new();
        for (line, word) in text.lines().enumerate().map(|(n, line)| (n + 1, line.trim())) {
            if word.is_empty() {
                continue;
            }
            let at = word.parse().map_err(|_| (line, format!("`{word}` is not a number of milliseconds")))?;
            if at_ms.last().is_some_and(|before| at < *before) {
                return Err((line, format!("{at} ms is before the line above: times may not fall")));
            }
            if at_ms.len() == MAX_OPPORTUNITIES {
                return Err((line, format!("more than {MAX_OPPORTUNITIES} lines")));
            }
            at_ms.push(at);
        }
        match at_ms.last() {
            None => Err((1, "it is empty: one number of milliseconds per line is needed".into())),
            Some(0) => Err((at_ms.len(), "the last time is 0 ms: the trace would have no length".into())),
            Some(_) => Ok(Trace { at_ms }),
        }
    }

    /// A steady rate for so long, as a trace.
    pub fn steady(bits_per_second: u64, length: Nanos) -> Trace {
        let length_ms = (length.0 / MILLISECOND).max(1);
        let bits = u64::from(OPPORTUNITY) * 8;
        let count =
            (bits_per_second.saturating_mul(length_ms) / 1000 / bits).clamp(1, MAX_OPPORTUNITIES as u64);
        Trace { at_ms: (1..=count).map(|n| n * length_ms / count).collect() }
    }

    /// As a file of mahimahi's.
    pub fn to_text(&self) -> String {
        self.at_ms.iter().map(|at| format!("{at}\n")).collect()
    }

    /// Its mean rate in bits per second.
    pub fn mean_rate(&self) -> u64 {
        self.at_ms.len() as u64 * u64::from(OPPORTUNITY) * 8 * 1000 / self.length_ms()
    }

    fn length_ms(&self) -> u64 {
        self.at_ms.last().copied().unwrap_or(1).max(1)
    }
}

/// A trace being used up.
#[derive(Debug)]
pub(crate) struct Opportunities {
    trace: Trace,
    start: Time,
    /// The round and the entry in it that is used next.
    round: u64,
    entry: usize,
    /// Bytes left in it.
    left: u32,
}

impl Opportunities {
    pub(crate) fn new(trace: Trace, start: Time) -> Opportunities {
        Opportunities { trace, start, round: 0, entry: 0, left: OPPORTUNITY }
    }

    fn at(&self) -> Time {
        let ms = self.round * self.trace.length_ms() + self.trace.at_ms[self.entry];
        self.start + Nanos(ms * MILLISECOND)
    }

    fn next(&mut self) {
        self.left = OPPORTUNITY;
        self.entry += 1;
        if self.entry == self.trace.at_ms.len() {
            self.entry = 0;
            self.round += 1;
        }
    }

    /// Continues to the first opportunity at or after `now`.
    fn skip(&mut self, now: Time) {
        if self.at() >= now {
            return;
        }
        let since_ms = now.since(self.start).0.div_ceil(MILLISECOND);
        let length = self.trace.length_ms();
        // A time that is a multiple of the length is at the end of a round.
        self.round = since_ms.saturating_sub(1) / length;
        let within = since_ms - self.round * length;
        self.left = OPPORTUNITY;
        self.entry = self.trace.at_ms.partition_point(|&at| at < within);
    }

    /// Carries `bytes` that come at `now`, after all that came before: when it begins, and when it is
    /// through.
    pub(crate) fn carry(&mut self, now: Time, mut bytes: u32) -> (Time, Time) {
        self.skip(now);
        let begins = self.at();
        loop {
            let through = self.at();
            let part = bytes.min(self.left);
            bytes -= part;
            self.left -= part;
            if self.left == 0 {
                self.next();
            }
            if bytes == 0 {
                return (begins, through);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn opportunities_are_used_in_turn_and_begin_again() {
        let trace = Trace::parse("2\n2\n5\n").expect("a trace");
        let mut line = Opportunities::new(trace, Time(0));
        let ms = |time: Time| time.0 / MILLISECOND;
        let mut carry = |now_ms: u64, bytes| {
            let (begins, through) = line.carry(Time(now_ms * MILLISECOND), bytes);
            (ms(begins), ms(through))
        };
        // Two at 2 ms; 750 bytes of the one at 5; that one's rest and half of the next; nothing came for a
        // while.
        let found =
            [carry(0, 1500), carry(0, 1500), carry(0, 750), carry(1, 1500), carry(11, 1500), carry(15, 100)];
        assert_eq!(found, [(2, 2), (2, 2), (5, 5), (5, 7), (12, 12), (15, 15)]);
    }

    #[test]
    fn a_steady_rate_survives_its_file() {
        let trace = Trace::steady(12_000_000, Nanos::secs(1));
        assert_eq!(trace.mean_rate(), 12_000_000);
        assert_eq!(Trace::parse(&trace.to_text()), Ok(trace));
    }

    #[test]
    fn invalid_traces_are_reported_with_their_line() {
        let result_of = |text: &str| Trace::parse(text).map(|_| ());
        assert_eq!(result_of("1\nx\n"), Err((2, "`x` is not a number of milliseconds".to_string())));
        assert_eq!(
            result_of("5\n4\n"),
            Err((2, "4 ms is before the line above: times may not fall".to_string()))
        );
        assert!(result_of("").is_err() && result_of("0\n").is_err());
    }
}
