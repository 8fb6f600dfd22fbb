use super::types::ETHERNET;
use super::*;
use crate::capacity::{HEADERS, PathDirection};
use crate::stream::{ExchangeResult, PacketRecord, Stream, StreamTrace};
use alloc::vec;
use core::convert::Infallible;

/// A path that sends packets one behind the other, 10 ms later on; its remote clock shows an hour more.
struct Line {
    now: u64,
    /// Bits per second of packets with their Ethernet headers, up and down.
    rates: [f64; 2],
    free: [u64; 2],
    /// One packet in so many is lost.
    lost: u64,
    /// Every packet is sent so many times later after the first of its stream than it is due.
    late: u64,
    /// Exchanges until it breaks off.
    exchanges: u32,
    /// From the first of these times on until the second nothing leaves.
    stops: (u64, u64),
    /// A bucket's bytes, how full it is, and since when: what finds it empty is dropped.
    policed: Option<(f64, f64, u64)>,
}

impl Line {
    fn new(up: f64, down: f64) -> Line {
        Line {
            now: SECOND,
            rates: [up, down],
            free: [0; 2],
            lost: u64::MAX,
            late: 1,
            exchanges: u32::MAX,
            stops: (0, 0),
            policed: None,
        }
    }

    fn send(&mut self, stream: &Stream, way: usize) -> StreamTrace {
        const HOUR: u64 = 3600 * SECOND;
        let (mut rank, mut count) = (0, 0);
        let packets = stream.dues().map(|due| {
            let sent = self.now + due.at_ns * self.late;
            let bits = f64::from((u32::from(due.payload) + HEADERS + ETHERNET) * 8);
            count += 1;
            let mut left = self.free[way].max(sent) + (bits * 1e9 / self.rates[way]) as u64;
            if (self.stops.0..self.stops.1).contains(&left) {
                left = self.stops.1 + (bits * 1e9 / self.rates[way]) as u64;
            }
            let mut passes = true;
            if let Some((burst, level, at)) = &mut self.policed {
                // Half of what the line carries, without a queue.
                left = sent;
                *level = (*level + sent.saturating_sub(*at) as f64 * self.rates[way] / 16e9).min(*burst);
                *at = sent;
                passes = *level >= bits / 8.0;
                *level -= if passes { bits / 8.0 } else { 0.0 };
            }
            self.free[way] = left;
            let arrived = (passes && !draw(count).is_multiple_of(self.lost)).then_some(left + 10_000_000);
            let (sent_more, arrived_more) = if way == 0 { (0, HOUR) } else { (HOUR, 0) };
            let record = PacketRecord {
                sent: Some(sent + sent_more),
                arrived: arrived.map(|at| at + arrived_more),
                rank,
                ..PacketRecord::default()
            };
            rank += u32::from(arrived.is_some());
            record
        });
        StreamTrace { packets: packets.collect(), stream: stream.clone() }
    }
}

/// A number that looks random.
fn draw(count: u64) -> u64 {
    count.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33
}

impl Path for Line {
    type Error = Infallible;

    fn carry_out(&mut self, exchange: &Exchange) -> Result<ExchangeResult, Infallible> {
        self.exchanges -= 1;
        let (up, down) = (self.send(&exchange.up, 0), self.send(&exchange.down, 1));
        self.now += exchange.up.length_ns().max(exchange.down.length_ns()) * self.late + SECOND / 3;
        let cut: Option<String> = (self.exchanges == 0).then(|| "it closed the connection".into());
        let mut up = up;
        if cut.is_some() {
            // The report of what arrived there never came.
            up.packets.iter_mut().for_each(|packet| packet.arrived = None);
        }
        let is_reported = cut.is_none();
        Ok(ExchangeResult { up, down, cut, is_reported })
    }
}

fn recorded(mut line: Line, request: &RecordingRequest) -> LineRecording {
    let mut seen = Vec::new();
    let Ok(found) = record(&mut line, request, &mut |progress| seen.push(progress.done_ns));
    assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
    assert!(found.bytes <= request.budget, "{}", found.bytes);
    found
}

fn short() -> RecordingRequest {
    RecordingRequest { length_ns: 15 * SECOND, ..RecordingRequest::default() }
}

#[test]
fn a_line_is_recorded_as_a_trace() {
    let found = recorded(Line { lost: 50, ..Line::new(4e6, 20e6) }, &short());
    assert_eq!((found.cut.as_deref(), found.caveats.as_slice()), (None, &[][..]));
    for (way, rate) in [(PathDirection::Up, 4e6), (PathDirection::Down, 20e6)] {
        let one = found.of(way).cloned().unwrap_or_default();
        assert_eq!(one.caveats, [""; 0], "{way:?}");
        assert!((15..=18).contains(&one.seconds.len()), "{}", one.seconds.len());
        for second in &one.seconds {
            let found = second.bits_per_second.unwrap_or(0.0);
            assert!((found / rate - 1.0).abs() < 0.01, "{way:?}: {second:?}");
            assert!(second.delay_ns.is_some_and(|ns| ns.abs_diff(10_000_000) < 50_000), "{second:?}");
        }
        let (sent, lost) = one.losses();
        let share = lost as f64 / sent as f64;
        assert!(sent > 400 && (0.005..0.04).contains(&share), "{share}");
        let text = one.to_csv();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("time,rate_kbit,delay_ms,loss_percent"));
        assert_eq!(lines.count(), one.seconds.len());
    }
    // What the clock here shows when the first second of the download begins.
    let began = found.down.map(|down| down.began_ns).unwrap_or(0);
    assert!((SECOND..10 * SECOND).contains(&began), "{began}");
}

#[test]
fn what_was_not_measured_is_empty() {
    let second = RecordedSecond {
        bits_per_second: Some(1_234_567.8),
        delay_ns: Some(12_345_678),
        sent: 40,
        lost: 1,
        ..RecordedSecond::default()
    };
    let one = DirectionRecording {
        seconds: vec![second, RecordedSecond::default()],
        ..DirectionRecording::default()
    };
    assert_eq!(one.to_csv(), "time,rate_kbit,delay_ms,loss_percent\n0,1234.568,12.346,2.5000\n1,,,\n");
    assert_eq!((one.mean_rate(), one.losses()), (Some(1_234_567.8), (40, 1)));
    assert_eq!(DirectionRecording::default().mean_rate(), None);
}

#[test]
fn nothing_arrives() {
    let found = recorded(Line { lost: 1, ..Line::new(1e6, 1e6) }, &short());
    assert_eq!((found.up, found.down, found.round_trip_ns), (None, None, None));
}

#[test]
fn what_breaks_off_is_kept() {
    let found = recorded(Line { exchanges: 4, ..Line::new(4e6, 20e6) }, &short());
    assert_eq!(found.cut.as_deref(), Some("it closed the connection"));
    let (up, down) = (found.up.unwrap_or_default(), found.down.unwrap_or_default());
    assert!((9..=11).contains(&up.seconds.len()) && down.seconds.len() >= 14, "{up:?}");
    // What was not reported is not lost, and the line did not stand still.
    assert_eq!((up.losses().1, up.notes.len(), up.caveats.len()), (0, 0, 0), "{up:?}");
    assert!(up.seconds.iter().all(|second| second.stalled == 0.0), "{up:?}");
    // Before the recording began, there is nothing.
    let found = recorded(Line { exchanges: 1, ..Line::new(4e6, 20e6) }, &short());
    assert!(found.cut.is_some() && found.up.is_none());
}

#[test]
fn a_sender_that_is_late_is_said() {
    let found = recorded(Line { late: 3, ..Line::new(50e6, 50e6) }, &short());
    let caveats = found.up.unwrap_or_default().caveats.join("; ");
    assert!(caveats.contains("trains were not sent as fast as planned"), "{caveats}");
    assert!(caveats.contains("as fast as they were sent: the line may carry more"), "{caveats}");
}

#[test]
fn a_budget_that_is_spent_ends_the_recording() {
    let poor = RecordingRequest { budget: LEAST_BUDGET, length_ns: 3000 * SECOND, ..short() };
    let found = recorded(Line::new(50e6, 50e6), &poor);
    assert!(
        found.caveats.iter().any(|caveat| caveat.contains("the budget was spent after 0 of 3000 s")),
        "{found:?}"
    );
}

/// A line that stands still is slower in that second by just as much, and the second is flagged.
#[test]
fn a_line_that_stands_still_is_recorded_so() {
    let stops = (9 * SECOND + 200_000_000, 9 * SECOND + 700_000_000);
    let found = recorded(Line { stops, ..Line::new(4e6, 20e6) }, &short());
    for (one, rate) in [(found.up.unwrap_or_default(), 4e6), (found.down.unwrap_or_default(), 20e6)] {
        let stalled: f64 = one.seconds.iter().map(|second| second.stalled).sum();
        assert!((0.42..0.58).contains(&stalled), "{stalled}");
        let flagged: Vec<&RecordedSecond> = one.seconds.iter().filter(|second| second.varies).collect();
        assert!((1..=2).contains(&flagged.len()), "{flagged:?}");
        let lack: f64 =
            one.seconds.iter().map(|second| 1.0 - second.bits_per_second.unwrap_or(rate) / rate).sum();
        assert!((lack - 0.5).abs() < 0.1, "{lack}");
        assert!(
            one.notes
                .iter()
                .any(|note| note.starts_with("nothing passed for 4")
                    || note.starts_with("nothing passed for 5")),
            "{:?}",
            one.notes
        );
        assert!(
            one.caveats.iter().any(|caveat| caveat.contains("or the line stood still")),
            "{:?}",
            one.caveats
        );
    }
}

#[test]
fn a_policer_is_found() {
    let found = recorded(Line { policed: Some((30_000.0, 30_000.0, 0)), ..Line::new(20e6, 20e6) }, &short());
    let caveats = found.up.unwrap_or_default().caveats.join("; ");
    assert!(
        caveats.contains("lost packets without a queue: something drops by rate (a policer)"),
        "{caveats}"
    );
}

#[test]
fn what_is_slow_or_held_back_is_said() {
    let caveats = |line: Line, request: &RecordingRequest| {
        let found = recorded(line, request);
        let up = found.up.unwrap_or_default().caveats;
        found.caveats.into_iter().chain(up).collect::<Vec<_>>().join("; ")
    };
    let slow = caveats(Line::new(64e3, 64e3), &RecordingRequest { length_ns: 60 * SECOND, ..short() });
    assert!(slow.contains("the line is slow: a train of"), "{slow}");
    let server = |bits| RecordingRequest { most_bits_per_second: bits, ..short() };
    let held = caveats(Line::new(300e6, 300e6), &server(500_000));
    assert!(held.contains("the server allows too little for this rate: trains of"), "{held}");
    let hardly = caveats(Line::new(4e6, 4e6), &server(9_000));
    assert!(hardly.contains("the server allows too little to go on after 0 of 15 s"), "{hardly}");
    let poor = RecordingRequest { budget: 2_000_000, ..short() };
    let few = caveats(Line::new(300e6, 300e6), &poor);
    assert!(few.contains("the budget is small for this rate: trains of"), "{few}");
}
