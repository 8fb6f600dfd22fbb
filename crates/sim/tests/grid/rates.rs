//! `calibrate`: the highest rate at which delay does not rise, beside what the link carries.

use crate::links::{line, machine, path};
use crate::table::{Row, Verdict, check, markdown, work};
use tidegate_measure::calibrate::{Calibration, calibrate};
use tidegate_measure::capacity::{FULL, HEADERS, PathDirection};
use tidegate_packet::Nanos;
use tidegate_sim::path::{Cross, OneWay, PathSpec, ScheduledLinkChange};
use tidegate_sim::world::CableDirection;
use tidegate_sim::{Cells, Impairment, LinkAdjustment, LossModel};

/// Bytes of an Ethernet header.
const ETHERNET: u32 = 14;

/// What makes the rate.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Limit {
    /// The line itself, behind a buffer that holds so many milliseconds.
    Line(u64),
    /// A token bucket of this many bytes before a faster line.
    Shaper(u32),
    /// A policer: the rate limit without a queue.
    Policer(u32),
    /// A shaper that keeps its queue short: fq_codel behind a small bucket.
    Short,
    /// The line, whose rate is another every few seconds: up to 15 % less.
    Varies,
}

/// A link of the grid.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Case {
    up: u64,
    down: u64,
    limit: Limit,
    cells: Cells,
    overhead: u32,
    /// Lost upwards and downwards.
    loss: [f64; 2],
    /// The share of each direction that others use.
    cross: f64,
    skew_ppm: f64,
    jitter_us: u64,
}

fn plain(up: u64, down: u64, limit: Limit) -> Case {
    Case {
        up,
        down,
        limit,
        cells: Cells::None,
        overhead: 38,
        loss: [0.0; 2],
        cross: 0.0,
        skew_ppm: 0.0,
        jitter_us: 0,
    }
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (up, down) in [(256_000, 2_000_000), (1_000_000, 16_000_000), (5_000_000, 50_000_000)] {
        let base = plain(up, down, Limit::Line(100));
        cases.push(base);
        cases.push(plain(up, down, Limit::Line(15)));
        cases.push(plain(up, down, Limit::Line(1000)));
        cases.push(Case { cells: Cells::Atm, overhead: 40, ..base });
        cases.push(Case { cells: Cells::Ptm, overhead: 30, ..base });
        cases.push(Case { loss: [0.01, 0.0], ..base });
        cases.push(Case { loss: [0.0, 0.03], ..base });
        cases.push(Case { skew_ppm: 80.0, jitter_us: 100, ..base });
        cases.push(Case { cross: 0.1, ..base });
        for burst in [15_000, 200_000] {
            cases.push(plain(up, down, Limit::Shaper(burst)));
            cases.push(plain(up, down, Limit::Policer(burst)));
            cases.push(Case { loss: [0.0, 0.01], ..plain(up, down, Limit::Policer(burst)) });
        }
        cases.push(plain(up, down, Limit::Short));
        cases.push(plain(up, down, Limit::Varies));
    }
    cases
}

impl Case {
    fn direction(&self, bits: u64, way: usize) -> OneWay {
        let line = match self.limit {
            Limit::Line(ms) => CableDirection {
                limit: tidegate_sim::Limit::Bytes((bits / 8000 * ms).max(4_000)),
                ..line(bits, Nanos::millis(12), self.overhead, self.cells)
            },
            Limit::Varies => line(bits, Nanos::millis(12), self.overhead, self.cells),
            _ => line(bits * 8, Nanos::millis(12), self.overhead, self.cells),
        };
        let loss = self.loss[way];
        let impairment = if loss > 0.0 {
            Impairment { loss: LossModel::Random(loss), ..Impairment::default() }
        } else {
            Impairment::default()
        };
        let cross = (self.cross > 0.0)
            .then_some(Cross { bits_per_second: (bits as f64 * self.cross) as u64, frame: 600 });
        OneWay { line, impairment, cross }
    }

    fn spec(&self) -> PathSpec {
        let (up, down) = (self.direction(self.up, 0), self.direction(self.down, 1));
        let tbf = |dev, bits, burst| {
            format!("qdisc add dev {dev} root tbf rate {bits}bit burst {burst} latency 200ms")
        };
        let short = |dev, bits: u64| {
            let root = format!("qdisc add dev {dev} root handle 1: tbf rate {bits}bit burst 3k latency 1s");
            [root, format!("qdisc add dev {dev} parent 1:1 fq_codel")]
        };
        let police = |dev, bits, burst| {
            let begin = format!("qdisc add dev {dev} handle ffff: ingress");
            let rule = format!(
                "filter add dev {dev} parent ffff: protocol all matchall action police rate {bits}bit burst \
                {burst} drop"
            );
            [begin, rule]
        };
        let commands: Vec<String> = match self.limit {
            Limit::Line(_) | Limit::Varies => Vec::new(),
            Limit::Short => [short("eth0", self.up), short("eth1", self.down)].concat(),
            Limit::Shaper(burst) => [tbf("eth0", self.up, burst), tbf("eth1", self.down, burst)].into(),
            Limit::Policer(burst) => {
                [police("eth1", self.up, burst), police("eth0", self.down, burst)].concat()
            }
        };
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        PathSpec {
            machine: if commands.is_empty() { None } else { machine(&commands) },
            offset_ns: 3_600_000_000_000,
            skew_ppm: self.skew_ppm,
            jitter: Nanos::micros(self.jitter_us),
            turns: self.turns(),
            ..PathSpec { up: up.clone(), down: down.clone(), ..PathSpec::plain(up.line, down.line) }
        }
    }

    /// Rates of a line that varies: each lasts three seconds.
    fn turns(&self) -> Vec<ScheduledLinkChange> {
        let rate = |step: u64, bits: u64| bits * [100, 92, 97, 85, 95, 88][step as usize % 6] / 100;
        let turn = |step, is_up, bits| ScheduledLinkChange {
            at: Nanos::secs(3 * step),
            is_up,
            change: LinkAdjustment::Rate(Some(rate(step, bits))),
        };
        let steps = if self.limit == Limit::Varies { 1..200 } else { 1..1 };
        steps.flat_map(|step| [turn(step, true, self.up), turn(step, false, self.down)]).collect()
    }

    /// Bits per second of full IP packets.
    fn truth(&self, way: PathDirection) -> f64 {
        let bits = match way {
            PathDirection::Up => self.up,
            PathDirection::Down => self.down,
        };
        let ip = u32::from(FULL) + HEADERS;
        let counted = match self.limit {
            Limit::Line(_) | Limit::Varies => {
                line(bits, Nanos(0), self.overhead, self.cells).framing.wire_len(ip + ETHERNET)
            }
            Limit::Shaper(_) | Limit::Short => ip + ETHERNET,
            // Where packets come in, no header of a device is counted.
            Limit::Policer(_) => ip,
        };
        bits as f64 * f64::from(ip) / f64::from(counted) * (1.0 - self.cross)
    }

    fn name(&self) -> String {
        let mbit = |bits: u64| format!("{}", bits as f64 / 1e6);
        let limit = match self.limit {
            Limit::Line(ms) => format!("buffer {ms} ms"),
            Limit::Shaper(burst) => format!("shaper, burst {} kB", burst / 1000),
            Limit::Policer(burst) => format!("policer, burst {} kB", burst / 1000),
            Limit::Short => "shaper with fq_codel".into(),
            Limit::Varies => "varies, up to 15 % less".into(),
        };
        let mut name = format!("{} / {} Mbit/s, {limit}", mbit(self.up), mbit(self.down));
        match self.cells {
            Cells::None => {}
            Cells::Atm => name += ", ATM",
            Cells::Ptm => name += ", PTM",
        }
        if self.loss != [0.0; 2] {
            name += &format!(", lost {:.0} / {:.0} %", self.loss[0] * 100.0, self.loss[1] * 100.0);
        }
        if self.cross > 0.0 {
            name += &format!(", others use {:.0} %", self.cross * 100.0);
        }
        if self.skew_ppm != 0.0 {
            name += &format!(", skew {:.0} ppm, jitter {} µs", self.skew_ppm, self.jitter_us);
        }
        name
    }

    fn row(&self) -> Row {
        let Ok(found) = calibrate(&mut path(self.spec()), &PathDirection::BOTH, 0.05, &mut |_, _| {});
        let mut cells = vec![self.name()];
        let (mut is_right, mut is_told, mut caveats) = (true, true, found.caveats);
        for (way, found) in [(PathDirection::Up, found.up), (PathDirection::Down, found.down)] {
            let Calibration { bits_per_second, caveats: more, .. } = found.expect("something arrives");
            let off = bits_per_second / self.truth(way) - 1.0;
            is_right &= off.abs() <= 0.01;
            // A direction that is wrong must have a caveat itself.
            is_told &= off.abs() <= 0.01 || !more.is_empty();
            caveats.extend(more.into_iter().map(|caveat| format!("{}: {caveat}", way.name())));
            cells.push(format!("{:.3}", self.truth(way) / 1e6));
            cells.push(format!("{:.3} ({:+.1} %)", bits_per_second / 1e6, off * 100.0));
        }
        let verdict = if is_told { Verdict::of(is_right, !caveats.is_empty()) } else { Verdict::Wrong };
        Row { cells, verdict, caveats }
    }
}

#[test]
fn rates_are_found_or_unreliable() {
    let rows = work(&cases(), Case::row);
    let table = markdown(&["link", "up", "measured", "down", "measured"], &rows);
    if std::env::var_os("TIDEGATE_SHOW").is_some() {
        println!("{table}");
    }
    let wrong: Vec<&String> =
        rows.iter().filter(|row| row.verdict == Verdict::Wrong).map(|row| &row.cells[0]).collect();
    assert!(wrong.is_empty(), "wrong without a caveat: {wrong:?}");
    check("rates", &table);
}
