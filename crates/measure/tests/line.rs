//! Estimators on a line whose truth is known: a queue, a rate, a coding, perhaps a bucket or a policer. Each
//! row of truth beside what is found. (Links with others' traffic, and real qdiscs, are in the simulator's
//! grid.)

use std::convert::Infallible;
use tidegate_measure::calibrate::calibrate;
use tidegate_measure::capacity::{Capacity, PathDirection, find};
use tidegate_measure::overhead::{Coding, sweep};
use tidegate_measure::stream::{Exchange, ExchangeResult, PacketRecord, Path, Stream, StreamTrace};

/// Bytes of IP and UDP headers.
const HEADERS: u32 = 28;
/// Bytes of a full packet: what rates count in.
const FULL: f64 = 1428.0;

/// What holds traffic back before the line.
#[derive(Clone, Copy)]
enum Before {
    Nothing,
    /// A shaper: this many bytes go at the line's rate, the others at this rate, bits per second.
    Bucket(f64, f64),
    /// A policer: what comes faster than this rate once this many bytes are spent is dropped.
    Policer(f64, f64),
    /// Nothing arrives.
    Cut,
}

/// A direction: empty and full of tokens whenever an exchange begins.
#[derive(Clone, Copy)]
struct Line {
    bits_per_second: f64,
    coding: Coding,
    overhead: u32,
    buffer_ms: f64,
    delay_ns: f64,
    before: Before,
}

impl Line {
    fn new(bits_per_second: f64) -> Line {
        Line {
            bits_per_second,
            coding: Coding::Bytes,
            overhead: 0,
            buffer_ms: 200.0,
            delay_ns: 20e6,
            before: Before::Nothing,
        }
    }

    fn carry(&self, stream: &Stream) -> StreamTrace {
        let (mut free_at, mut rank) = (0.0f64, 0);
        let (mut tokens, mut refilled) = match self.before {
            Before::Bucket(bytes, _) | Before::Policer(bytes, _) => (bytes, 0.0f64),
            _ => (0.0, 0.0),
        };
        let records = stream.dues().map(|due| {
            let at = due.at_ns as f64;
            let mut packet = PacketRecord { sent: Some(due.at_ns), rank, ..PacketRecord::default() };
            let ip = u32::from(due.payload) + HEADERS;
            let mut begins = at.max(free_at);
            match self.before {
                Before::Cut => return packet,
                Before::Policer(most, bits) => {
                    tokens = (tokens + (at - refilled) * bits / 8e9).min(most);
                    refilled = at;
                    if tokens < f64::from(ip) {
                        return packet;
                    }
                    tokens -= f64::from(ip);
                }
                Before::Bucket(most, bits) => {
                    let there = (tokens + (begins - refilled) * bits / 8e9).min(most);
                    let missing = (f64::from(ip) - there).max(0.0);
                    begins += missing * 8e9 / bits;
                    if begins - at <= self.buffer_ms * 1e6 {
                        (tokens, refilled) = (there + missing - f64::from(ip), begins);
                    }
                }
                Before::Nothing => {}
            }
            if begins - at > self.buffer_ms * 1e6 {
                return packet;
            }
            free_at =
                begins + f64::from(self.coding.on_wire(ip + self.overhead)) * 8e9 / self.bits_per_second;
            packet.arrived = Some((free_at + self.delay_ns) as u64);
            rank += 1;
            packet
        });
        StreamTrace { packets: records.collect(), stream: stream.clone() }
    }
}

/// Up, and down.
struct Lines(Line, Line);

impl Path for Lines {
    type Error = Infallible;

    fn carry_out(&mut self, exchange: &Exchange) -> Result<ExchangeResult, Infallible> {
        Ok(ExchangeResult {
            up: self.0.carry(&exchange.up),
            down: self.1.carry(&exchange.down),
            cut: None,
            is_reported: true,
        })
    }
}

fn near(found: f64, wanted: f64, share: f64) -> bool {
    (found / wanted - 1.0).abs() <= share
}

fn capacity(line: Line) -> Option<Capacity> {
    let Ok(found) = find(&mut Lines(line, Line { before: Before::Cut, ..line }), PathDirection::Up);
    found
}

#[test]
fn capacities_of_plain_lines() {
    for (mbit, overhead, coding) in
        [(0.5, 0, Coding::Bytes), (10.0, 38, Coding::Bytes), (3.0, 40, Coding::Atm), (900.0, 18, Coding::Ptm)]
    {
        let line = Line { coding, overhead, ..Line::new(mbit * 1e6) };
        let wanted = mbit * 1e6 * FULL / f64::from(coding.on_wire(1428 + overhead));
        let found = capacity(line).expect("something arrives");
        assert!(near(found.bits_per_second, wanted, 0.005), "{mbit} Mbit/s: {found:?}");
        assert!(found.is_settled && !found.has_burst() && !found.service.is_policed, "{found:?}");
        assert!(found.calm.0 >= 10 && found.calm.1 == 0, "{found:?}");
        assert!(found.irregularity < 1000.0, "{found:?}");
    }
    assert_eq!(capacity(Line { before: Before::Cut, ..Line::new(1e6) }), None);
}

/// A bucket lets more through at first: its burst, and the backlog of the buffer when the flood is over.
#[test]
fn capacities_behind_buckets() {
    for (kbytes, mbit) in [(200.0, 5.0), (1000.0, 20.0)] {
        let bucket = Before::Bucket(kbytes * 1e3, mbit * 1e6);
        let found = capacity(Line { before: bucket, ..Line::new(100e6) }).expect("something arrives");
        assert!(near(found.bits_per_second, mbit * 1e6, 0.01) && found.has_burst(), "{found:?}");
        let buffered = 0.2 * mbit * 1e6 / 8.0;
        assert!(near(found.burst_bytes, kbytes * 1e3 + buffered, 0.05), "{found:?}");
        assert!(found.peak_bits_per_second.is_some_and(|peak| near(peak, 100e6, 0.1)), "{found:?}");
    }
}

#[test]
fn capacities_behind_policers() {
    for (kbytes, mbit) in [(20.0, 8.0), (60.0, 30.0)] {
        let policer = Before::Policer(kbytes * 1e3, mbit * 1e6);
        let found = capacity(Line { before: policer, ..Line::new(100e6) }).expect("something arrives");
        assert!(near(found.bits_per_second, mbit * 1e6, 0.02) && found.service.is_policed, "{found:?}");
    }
}

/// The highest rate that is sustained is the line's, in each direction; the written rate leaves the margin
/// and Ethernet's header.
#[test]
fn calibrations_of_plain_lines() {
    let (up, down) = (Line { overhead: 38, ..Line::new(4e6) }, Line { overhead: 38, ..Line::new(40e6) });
    let mut reported = 0;
    let Ok(found) = calibrate(&mut Lines(up, down), &PathDirection::BOTH, 0.05, &mut |_, _| reported += 1);
    for (way, bits) in [(PathDirection::Up, 4e6), (PathDirection::Down, 40e6)] {
        let wanted = bits * FULL / (FULL + 38.0);
        let one = found.of(way).expect("both were asked for");
        assert!(near(one.bits_per_second, wanted, 0.006), "{one:?}");
        assert!(one.between.0 <= wanted * 1.002 && one.between.1 >= wanted * 0.998, "{one:?}");
        assert!(near(one.as_tc_counts(), one.bits_per_second * (FULL + 14.0) / FULL, 1e-9), "{one:?}");
        assert!(one.caveats.is_empty() && one.notes.is_empty() && one.packet == 1428, "{one:?}");
        assert!(
            one.steps.iter().any(|step| step.sustained) && one.steps.iter().any(|step| !step.sustained),
            "{one:?}"
        );
        let matches = |step: &tidegate_measure::calibrate::RateTrial| {
            step.sustained == (step.bits_per_second <= wanted * 1.001)
        };
        assert!(
            one.steps.iter().filter(|step| !near(step.bits_per_second, wanted, 0.004)).all(matches),
            "{one:?}"
        );
    }
    let (up, down) = found.together.expect("both ways were tried at once");
    assert!(up < 5e6 && down < 2e6 && found.caveats.is_empty() && found.cut.is_none(), "{up} {down}");
    assert!(reported >= 4);
}

/// A policer is named, and so is a bucket.
#[test]
fn calibrations_name_the_limit() {
    let of = |before: Before| {
        let mut path = Lines(Line { before, ..Line::new(100e6) }, Line::new(1e6));
        let Ok(found) = calibrate(&mut path, &[PathDirection::Up], 0.05, &mut |_, _| {});
        assert!(found.down.is_none() && found.together.is_none());
        found.up.expect("it was asked for")
    };
    let policed = of(Before::Policer(20e3, 8e6));
    assert!(near(policed.bits_per_second, 8e6, 0.02), "{policed:?}");
    assert!(policed.notes.iter().any(|note| note.contains("a policer")), "{policed:?}");
    let saved = of(Before::Bucket(200e3, 5e6));
    assert!(near(saved.bits_per_second, 5e6, 0.01), "{saved:?}");
    assert!(saved.notes.iter().any(|note| note.contains("a token bucket")), "{saved:?}");
}

/// What each packet costs beside its bytes: the coding, the overhead within a byte, the rate within half a
/// percent.
#[test]
fn overheads_of_codings() {
    for (coding, overhead, mbit) in
        [(Coding::Bytes, 22, 5.0), (Coding::Atm, 40, 3.0), (Coding::Ptm, 30, 16.0), (Coding::Bytes, 0, 50.0)]
    {
        let line = Line { coding, overhead, ..Line::new(mbit * 1e6) };
        let mut path = Lines(line, Line::new(1e9));
        let Ok(swept) = sweep(&mut path, &[PathDirection::Up], &mut |_| {});
        let found = swept.of(PathDirection::Up).and_then(|one| one.line).expect("a line is found");
        let case = format!("{coding:?} {overhead}: {found:?}");
        assert!(found.coding == coding && found.overhead.abs_diff(overhead) <= 1, "{case}");
        assert!(near(found.bits_per_second, mbit * 1e6, 0.005), "{case}");
    }
}
