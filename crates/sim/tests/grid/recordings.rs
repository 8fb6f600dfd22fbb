//! `record`: each second of a recording beside what the line carried in it.

use crate::links::{ETHERNET, line, machine, path};
use crate::table::{Row, Verdict, check, markdown, work};
use tidegate_measure::capacity::{FULL, HEADERS, PathDirection};
use tidegate_measure::record::{DirectionRecording, RecordingRequest, record};
use tidegate_packet::RandomSource;
use tidegate_packet::{Nanos, Seeded};
use tidegate_sim::path::{Cross, OneWay, PathSpec};
use tidegate_sim::{Cells, Impairment, Limit, LossModel, Trace};

const SECOND: u64 = 1_000_000_000;
/// A second's rate is correct within this share.
const TOLERANCE: f64 = 0.05;
/// How long a line is before it begins again.
const LENGTH: u64 = 120;
/// A step of a line that varies, ns.
const STEP: u64 = 100_000_000;
/// The clock of the path begins at this.
const START: u64 = 1_000_000_000;

/// How a line varies.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Course {
    /// It does not.
    Steady,
    /// By this share up and down, in so many seconds.
    Wave(f64, f64),
    /// A random walk whose rate changes by up to this share in a second.
    Walk(f64),
    /// To this share, and back, each so many seconds.
    Steps(f64, u64),
    /// Nothing passes for so many milliseconds, each ten seconds.
    Outages(u64),
}

/// What else there is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Beside {
    Nothing,
    /// Lost in each direction.
    Loss(f64),
    /// Others use this share.
    Cross(f64),
    /// Irregularity, µs.
    Jitter(u64),
    /// The buffer, ms.
    Buffer(u64),
    /// Cells, with an overhead.
    Framing(Cells, u32),
    /// A token bucket of this many bytes before a line that is eight times as fast.
    Shaper(u32),
    /// The same without a queue.
    Policer(u32),
    /// The remote clock, ppm.
    Skew(f64),
    /// A budget in MB.
    Budget(u64),
    /// The server's limit, Mbit/s.
    Server(u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Case {
    up: u64,
    down: u64,
    course: Course,
    beside: Beside,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (up, down) in [(256_000, 2_000_000), (1_000_000, 16_000_000), (20_000_000, 100_000_000)] {
        let base = Case { up, down, course: Course::Steady, beside: Beside::Nothing };
        cases.push(base);
        for course in [
            Course::Wave(0.3, 20.0),
            Course::Wave(0.6, 20.0),
            Course::Walk(0.25),
            Course::Steps(0.4, 15),
            Course::Outages(300),
        ] {
            cases.push(Case { course, ..base });
        }
        for beside in [
            Beside::Loss(0.01),
            Beside::Loss(0.05),
            Beside::Cross(0.1),
            Beside::Cross(0.3),
            Beside::Jitter(100),
            Beside::Buffer(15),
            Beside::Buffer(1000),
            Beside::Framing(Cells::Atm, 40),
            Beside::Framing(Cells::None, 38),
            Beside::Shaper(15_000),
            Beside::Shaper(200_000),
            Beside::Policer(20_000),
            Beside::Skew(80.0),
            Beside::Budget(2),
            Beside::Server(1),
        ] {
            cases.push(Case { beside, ..base });
        }
        cases.push(Case { course: Course::Wave(0.3, 20.0), beside: Beside::Jitter(1000), ..base });
        cases.push(Case { course: Course::Walk(0.25), beside: Beside::Loss(0.02), ..base });
    }
    let fast = Case { up: 100_000_000, down: 1_000_000_000, course: Course::Steady, beside: Beside::Nothing };
    cases.extend([fast, Case { course: Course::Wave(0.3, 20.0), ..fast }]);
    cases
}

impl Course {
    /// The rate in each step, as a share.
    fn shares(self) -> Vec<f64> {
        let mut random = Seeded::new(7);
        let mut walk = 1.0f64;
        (0..LENGTH * SECOND / STEP)
            .map(|step| {
                let at = (step * STEP) as f64 / 1e9;
                match self {
                    Course::Steady => 1.0,
                    Course::Wave(by, seconds) => 1.0 + by * (at * std::f64::consts::TAU / seconds).sin(),
                    Course::Walk(by) => {
                        let draw = f64::from(random.below(2001)) / 1000.0 - 1.0;
                        walk = (walk * (1.0 + draw * by / 10.0)).clamp(0.3, 2.0);
                        walk
                    }
                    Course::Steps(to, each) if step * STEP / SECOND / each % 2 == 1 => to,
                    Course::Outages(ms) if step * STEP % (10 * SECOND) < ms * 1_000_000 => 0.0,
                    Course::Steps(..) | Course::Outages(_) => 1.0,
                }
            })
            .collect()
    }

    fn trace(self, bits: u64) -> Option<Trace> {
        if self == Course::Steady {
            return None;
        }
        let steps = self.shares().into_iter().map(|share| (Nanos(STEP), (bits as f64 * share) as u64));
        Some(Trace::rates(steps).expect("rates"))
    }

    fn name(self) -> String {
        match self {
            Course::Steady => "steady".into(),
            Course::Wave(by, seconds) => format!("a wave of ±{:.0} % in {seconds:.0} s", by * 100.0),
            Course::Walk(by) => format!("a random walk, up to {:.0} % a second", by * 100.0),
            Course::Steps(to, each) => format!("falls to {:.0} % and back, each {each} s", to * 100.0),
            Course::Outages(ms) => format!("nothing passes for {ms} ms each 10 s"),
        }
    }
}

impl Case {
    fn direction(&self, bits: u64) -> OneWay {
        let (cells, overhead) = match self.beside {
            Beside::Framing(cells, overhead) => (cells, overhead),
            _ => (Cells::None, ETHERNET),
        };
        let bits =
            if matches!(self.beside, Beside::Shaper(_) | Beside::Policer(_)) { bits * 8 } else { bits };
        let mut line = line(bits, Nanos::millis(12), overhead, cells);
        let buffer = if let Beside::Buffer(ms) = self.beside { ms } else { 200 };
        line.limit = Limit::Bytes((bits / 8000 * buffer).max(4_000));
        let loss = if let Beside::Loss(share) = self.beside {
            LossModel::Random(share)
        } else {
            LossModel::default()
        };
        let cross = match self.beside {
            Beside::Cross(share) => Some(Cross { bits_per_second: (bits as f64 * share) as u64, frame: 600 }),
            _ => None,
        };
        OneWay { line, impairment: Impairment { loss, ..Impairment::default() }, cross }
    }

    fn spec(&self) -> PathSpec {
        let (up, down) = (self.direction(self.up), self.direction(self.down));
        let commands: Vec<String> = match self.beside {
            Beside::Shaper(burst) => [("eth0", self.up), ("eth1", self.down)]
                .map(|(dev, bits)| {
                    format!("qdisc add dev {dev} root tbf rate {bits}bit burst {burst} latency 200ms")
                })
                .into(),
            Beside::Policer(burst) => [("eth1", self.up), ("eth0", self.down)]
                .into_iter()
                .flat_map(|(dev, bits)| {
                    [
                        format!("qdisc add dev {dev} handle ffff: ingress"),
                        format!(
                            "filter add dev {dev} parent ffff: protocol all matchall action police rate {bits}bit \
                             burst {burst} drop"
                        ),
                    ]
                })
                .collect(),
            _ => Vec::new(),
        };
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        let jitter = if let Beside::Jitter(us) = self.beside { Nanos::micros(us) } else { Nanos(0) };
        PathSpec {
            machine: if commands.is_empty() { None } else { machine(&commands) },
            offset_ns: 3_600_000_000_000,
            skew_ppm: if let Beside::Skew(ppm) = self.beside { ppm } else { 0.0 },
            jitter,
            ..PathSpec { up: up.clone(), down: down.clone(), ..PathSpec::plain(up.line, down.line) }
        }
    }

    /// Bits per second of full packets with their Ethernet headers, of each second that begins at this age.
    fn truth(&self, bits: u64, began_ns: u64, second: usize) -> f64 {
        let ip = u32::from(FULL) + HEADERS;
        let frame = f64::from(ip + ETHERNET);
        let scale = match self.beside {
            Beside::Framing(cells, overhead) => {
                frame / f64::from(line(bits, Nanos(0), overhead, cells).framing.wire_len(ip + ETHERNET))
            }
            // Where packets come in, no header of a device is counted.
            Beside::Policer(_) => frame / f64::from(ip),
            _ => 1.0,
        };
        let rate = match self.course.trace(bits) {
            None => bits as f64,
            Some(trace) => {
                let age = began_ns - START + second as u64 * SECOND;
                trace.carries(Nanos(age), Nanos(age + SECOND)).expect("rates") as f64 * 8.0
            }
        };
        let others = if let Beside::Cross(share) = self.beside { share * bits as f64 } else { 0.0 };
        (rate - others) * scale
    }

    fn name(&self) -> String {
        let mbit = |bits: u64| format!("{}", bits as f64 / 1e6);
        let name = format!("{} / {} Mbit/s, {}", mbit(self.up), mbit(self.down), self.course.name());
        name + &match self.beside {
            Beside::Nothing => String::new(),
            Beside::Loss(share) => format!(", {:.0} % lost", share * 100.0),
            Beside::Cross(share) => format!(", others use {:.0} %", share * 100.0),
            Beside::Jitter(us) => format!(", {us} µs of jitter"),
            Beside::Buffer(ms) => format!(", buffer {ms} ms"),
            Beside::Framing(cells, overhead) => format!(", {cells:?}, {overhead} B over IP"),
            Beside::Shaper(burst) => format!(", shaper, burst {} kB", burst / 1000),
            Beside::Policer(burst) => format!(", policer, burst {} kB", burst / 1000),
            Beside::Skew(ppm) => format!(", skew {ppm:.0} ppm"),
            Beside::Budget(mb) => format!(", budget {mb} MB"),
            Beside::Server(mbit) => format!(", the server allows {mbit} Mbit/s"),
        }
    }

    fn request(&self) -> RecordingRequest {
        let usual = RecordingRequest { length_ns: 40 * SECOND, ..RecordingRequest::default() };
        match self.beside {
            Beside::Budget(mb) => RecordingRequest { budget: mb * 1_000_000, ..usual },
            Beside::Server(mbit) => RecordingRequest { most_bits_per_second: mbit * 1_000_000, ..usual },
            _ => usual,
        }
    }

    fn row(&self) -> Row {
        let mut path = path(self.spec());
        for (is_up, bits) in [(true, self.up), (false, self.down)] {
            if let Some(trace) = self.course.trace(bits) {
                path.follow(is_up, &trace);
            }
        }
        let request = self.request();
        let Ok(found) = record(&mut path, &request, &mut |_| {});
        assert!(found.bytes <= request.budget, "{}: {} B", self.name(), found.bytes);
        let mut cells = vec![self.name(), format!("{:.1}", found.bytes as f64 / 1e6)];
        let (mut is_right, mut is_told) = (true, true);
        let mut caveats = found.caveats.clone();
        for (way, bits) in [(PathDirection::Up, self.up), (PathDirection::Down, self.down)] {
            let one = found.of(way).expect("something arrives");
            let off = self.off(one, bits);
            let (delay, loss) = self.others(one, bits);
            is_right &= off.beyond == 0 && off.flagged == 0 && delay && loss;
            // What is off in a second that has no flag itself must have a caveat that is of all of them.
            let is_flagged_only = one.caveats.iter().all(|caveat| caveat.starts_with("in "));
            is_told &= (off.beyond == 0 || !is_flagged_only) && (delay || !one.caveats.is_empty()) && loss;
            cells.push(format!(
                "{:+.1} % ({:.1} %), {} of {} s",
                off.mean * 100.0,
                off.worst * 100.0,
                off.beyond + off.flagged,
                off.seconds
            ));
            caveats.extend(one.caveats.iter().map(|caveat| format!("{}: {caveat}", way.name())));
        }
        let verdict = if is_told { Verdict::of(is_right, !caveats.is_empty()) } else { Verdict::Wrong };
        Row { cells, verdict, caveats }
    }

    /// How far off the seconds are, of those that are whole.
    fn off(&self, one: &DirectionRecording, bits: u64) -> Off {
        let mut off = Off::default();
        let whole = one.seconds.len() - 1;
        for (at, second) in one.seconds.iter().enumerate().take(whole) {
            let truth = self.truth(bits, one.began_ns, at);
            let Some(rate) = second.bits_per_second else { continue };
            let by = if truth > 0.0 { rate / truth - 1.0 } else { 0.0 };
            off.seconds += 1;
            off.mean += by;
            let is_flagged = second.varies || second.is_at_least || second.unseen > 0.25;
            if by.abs() > TOLERANCE && std::env::var_os("TIDEGATE_SHOW").is_some() {
                println!("{} {at}: {rate:.0} {truth:.0} {second:?}", self.name());
            }
            if !is_flagged {
                off.worst = off.worst.max(by.abs());
            }
            off.beyond += usize::from(by.abs() > TOLERANCE && !is_flagged);
            off.flagged += usize::from(by.abs() > TOLERANCE && is_flagged);
        }
        off.mean /= off.seconds.max(1) as f64;
        off
    }

    /// Are delays within a millisecond and a small packet's time of 12 ms (beside jitter), and is the loss
    /// what it is?
    fn others(&self, one: &DirectionRecording, bits: u64) -> (bool, bool) {
        let jitter = if let Beside::Jitter(us) = self.beside { us as f64 / 1e3 } else { 0.0 };
        let delays = one.seconds.iter().filter_map(|second| second.delay_ns).map(|ns| ns as f64 / 1e6);
        let delay = delays
            .clone()
            .all(|ms| (ms - 12.0 - jitter / 2.0).abs() <= 1.0 + jitter / 2.0 + 86.0 * 8e3 / bits as f64);
        let (sent, lost) = one.losses();
        let (low, high) = tidegate_measure::wilson(lost, sent);
        let truth = if let Beside::Loss(share) = self.beside { share } else { 0.0 };
        (delay, (low - 0.005..high + 0.005).contains(&truth))
    }
}

/// How far off a direction is.
#[derive(Default)]
struct Off {
    seconds: usize,
    /// Beyond the tolerance: without a flag, and with one.
    beyond: usize,
    flagged: usize,
    mean: f64,
    worst: f64,
}

#[test]
fn recordings_are_as_the_line_was_or_unreliable() {
    let rows = work(&cases(), Case::row);
    let head = ["link", "sent, MB", "up: mean (worst), beyond 5 %", "down: mean (worst), beyond 5 %"];
    let table = markdown(&head, &rows);
    if std::env::var_os("TIDEGATE_SHOW").is_some() {
        println!("{table}");
    }
    let wrong: Vec<&String> =
        rows.iter().filter(|row| row.verdict == Verdict::Wrong).map(|row| &row.cells[0]).collect();
    assert!(wrong.is_empty(), "wrong without a caveat: {wrong:?}");
    check("recordings", &table);
}
