//! `overhead`: what a sweep through a simulated link finds of its framing.

use crate::links::{alike, line, machine, path};
use crate::table::{Row, Verdict, check, markdown, work};
use tidegate_measure::capacity::PathDirection;
use tidegate_measure::overhead::{Coding, LineEstimate, sweep};
use tidegate_packet::Nanos;
use tidegate_sim::path::{Cross, PathSpec, ScheduledLinkChange};
use tidegate_sim::{Cells, Impairment, LinkAdjustment, LossModel};

/// What else is on the line.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Noise {
    None,
    /// Others use this share of it.
    Cross(f64),
    Loss(f64),
    /// Each packet is held up by up to so many microseconds.
    Jitter(u64),
    /// 50 us and 1 % lost.
    Both,
    /// 50 us, and others use a tenth.
    Mixed,
    /// The rate falls by a tenth in the middle.
    Falls,
}

/// A line, and what is before it.
#[derive(Clone, Debug)]
struct Case {
    bits: u64,
    coding: Coding,
    overhead: u32,
    unit: u32,
    cap: Option<u64>,
    noise: Noise,
    /// Told to the machine; what it shapes is the truth then.
    machine: Vec<String>,
}

fn plain(bits: u64, coding: Coding, overhead: u32) -> Case {
    Case { bits, coding, overhead, unit: 0, cap: None, noise: Noise::None, machine: Vec::new() }
}

const LINES: [Coding; 3] = [Coding::Bytes, Coding::Ptm, Coding::Atm];
const RATES: [u64; 4] = [1_000_000, 6_500_000, 25_000_000, 100_000_000];

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    // V-S5a's lines, and PTM, through links.
    for bits in RATES {
        for coding in LINES {
            let overheads: &[u32] = if bits > 30_000_000 { &[22, 44] } else { &[0, 8, 22, 30, 44, 53] };
            cases.extend(overheads.iter().map(|overhead| plain(bits, coding, *overhead)));
        }
    }
    for coding in LINES {
        for overhead in [0, 22, 53] {
            cases.push(Case { cap: Some(4750), ..plain(6_500_000, coding, overhead) });
        }
        cases.push(Case { cap: Some(15_000), ..plain(25_000_000, coding, 30) });
        // Cells hide a smallest unit.
        if coding != Coding::Atm {
            cases.push(Case { unit: 96, ..plain(6_500_000, coding, 30) });
        }
    }
    for bits in [1_000_000, 25_000_000, 100_000_000] {
        for (coding, overhead) in [(Coding::Bytes, 38), (Coding::Ptm, 30), (Coding::Atm, 40)] {
            // The fast line takes the longest: one coding will do.
            if bits > 30_000_000 && coding != Coding::Ptm {
                continue;
            }
            let noises = [
                Noise::Cross(0.1),
                Noise::Cross(0.3),
                Noise::Loss(0.01),
                Noise::Loss(0.05),
                Noise::Jitter(50),
                Noise::Both,
                Noise::Mixed,
                Noise::Falls,
            ];
            cases.extend(noises.map(|noise| Case { noise, ..plain(bits, coding, overhead) }));
        }
    }
    cases.extend(shapers());
    cases
}

/// Where a shaper on the way is narrower than the line.
fn shapers() -> Vec<Case> {
    let tbf = |bits: u64, burst: &str, stab: &str| {
        [format!("qdisc add dev eth0 root handle 1:{stab} tbf rate {bits}bit burst {burst} latency 50ms")]
            .to_vec()
    };
    let police = |bits: u64, burst: &str| {
        let ingress = "qdisc add dev eth1 handle ffff: ingress".to_owned();
        let rule = format!(
            "filter add dev eth1 parent ffff: protocol all matchall action police rate {bits}bit burst \
            {burst} drop"
        );
        [ingress, rule].to_vec()
    };
    let mut cases = Vec::new();
    for bits in [2_000_000, 20_000_000] {
        for burst in ["5k", "200k"] {
            cases.push(Case { machine: tbf(bits, burst, ""), ..plain(bits, Coding::Bytes, 14) });
        }
        for (step, cells) in [(4, 512), (8, 256), (16, 128)] {
            let stab = format!(" stab overhead 20 mpu 1 mtu 2047 tsize {cells}");
            cases.push(Case { machine: tbf(bits, "5k", &stab), ..plain(bits, Coding::Steps(step), 34) });
        }
        let atm = " stab overhead 18 linklayer atm";
        cases.push(Case { machine: tbf(bits, "5k", atm), ..plain(bits, Coding::Atm, 32) });
        // Where packets come in, no header of a device is counted.
        cases.push(Case { machine: police(bits, "20k"), ..plain(bits, Coding::Bytes, 0) });
    }
    cases
}

impl Case {
    fn spec(&self) -> PathSpec {
        let cells = match self.coding {
            Coding::Ptm => Cells::Ptm,
            Coding::Atm => Cells::Atm,
            Coding::Bytes | Coding::Steps(_) => Cells::None,
        };
        let is_shaped = !self.machine.is_empty();
        let (bits, overhead, cells) =
            if is_shaped { (self.bits * 20, 14, Cells::None) } else { (self.bits, self.overhead, cells) };
        let mut line = line(bits, Nanos::millis(10), overhead, cells);
        (line.framing.minimum, line.packet_rate) = (self.unit, self.cap);
        let mut spec = alike(line);
        if is_shaped {
            let commands: Vec<&str> = self.machine.iter().map(String::as_str).collect();
            spec.machine = machine(&commands);
        }
        let rate = |share: f64| (self.bits as f64 * share) as u64;
        match self.noise {
            Noise::None => {}
            Noise::Cross(share) => spec.up.cross = Some(Cross { bits_per_second: rate(share), frame: 1000 }),
            Noise::Loss(share) => {
                spec.up.impairment = Impairment { loss: LossModel::Random(share), ..Impairment::default() }
            }
            Noise::Jitter(us) => spec.jitter = Nanos::micros(us),
            Noise::Both => {
                spec.jitter = Nanos::micros(50);
                spec.up.impairment = Impairment { loss: LossModel::Random(0.01), ..Impairment::default() };
            }
            Noise::Mixed => {
                spec.jitter = Nanos::micros(50);
                spec.up.cross = Some(Cross { bits_per_second: rate(0.1), frame: 1000 });
            }
            Noise::Falls => {
                let change = LinkAdjustment::Rate(Some(rate(0.9)));
                // In the middle of the sweep: what comes before it takes longer on a slow line.
                let at = Nanos::secs(if self.bits > 2_000_000 { 18 } else { 45 });
                spec.turns.push(ScheduledLinkChange { at, is_up: true, change });
            }
        }
        spec
    }

    fn name(&self) -> String {
        let mut name = format!("{} Mbit/s", self.bits as f64 / 1e6);
        let noise = match self.noise {
            Noise::None => String::new(),
            Noise::Cross(share) => format!(", others use {:.0} %", share * 100.0),
            Noise::Loss(share) => format!(", {:.0} % lost", share * 100.0),
            Noise::Jitter(us) => format!(", {us} µs of jitter"),
            Noise::Both => ", 50 µs of jitter, 1 % lost".into(),
            Noise::Mixed => ", 50 µs of jitter, others use 10 %".into(),
            Noise::Falls => ", falls by a tenth meanwhile".into(),
        };
        if let Some(last) = self.machine.last() {
            let what = if last.contains("police") { "policer" } else { "shaper" };
            let burst =
                last.split_whitespace().skip_while(|word| *word != "burst").nth(1).unwrap_or_default();
            name += &format!(", {what}, burst {burst}");
        }
        name + &noise
    }

    /// Are the figures those of the line?
    fn agrees(&self, found: &LineEstimate) -> bool {
        let near = |a: f64, b: f64, share: f64| (a / b - 1.0).abs() <= share;
        let floor = match (self.unit, self.cap, found.floor) {
            (0, None, floor) => floor.is_none(),
            (0, Some(cap), Some(floor)) => near(floor.packets_per_second, cap as f64, 0.01),
            (unit, None, Some(floor)) => near(floor.bytes, f64::from(unit), 0.02),
            _ => false,
        };
        let coding = found.coding == self.coding;
        coding
            && floor
            && found.overhead.abs_diff(self.overhead) <= 1
            && near(found.bits_per_second, self.bits as f64, 0.005)
    }

    fn row(&self) -> Row {
        let Ok(swept) = sweep(&mut path(self.spec()), &[PathDirection::Up], &mut |_| {});
        let up = swept.up.expect("something arrives");
        let truth = LineEstimate {
            overhead: self.overhead,
            coding: self.coding,
            bits_per_second: self.bits as f64,
            ..LineEstimate::default()
        };
        let is_right = up.line.is_some_and(|line| self.agrees(&line));
        let mut words = shown(&truth);
        if self.unit > 0 {
            words += &format!(", unit {} B", self.unit);
        }
        if let Some(cap) = self.cap {
            words += &format!(", {cap} packets/s");
        }
        let cells = [self.name(), words, up.line.as_ref().map_or("nothing".into(), shown)].to_vec();
        Row { cells, verdict: Verdict::of(is_right, !up.caveats.is_empty()), caveats: up.caveats }
    }
}

fn shown(line: &LineEstimate) -> String {
    let coding = match line.coding {
        Coding::Steps(step) => format!("steps of {step}"),
        other => other.name().to_owned(),
    };
    let floor = line.floor.map_or(String::new(), |floor| {
        if floor.is_unit {
            format!(", unit {:.0} B", floor.bytes)
        } else {
            format!(", {:.0} packets/s", floor.packets_per_second)
        }
    });
    format!("{coding} + {} B, {:.2} Mbit/s{floor}", line.overhead, line.bits_per_second / 1e6)
}

#[test]
fn overheads_are_found_or_unreliable() {
    let rows = work(&cases(), Case::row);
    let table = markdown(&["link", "truth", "measured"], &rows);
    if std::env::var_os("TIDEGATE_SHOW").is_some() {
        println!("{table}");
    }
    let wrong: Vec<&String> =
        rows.iter().filter(|row| row.verdict == Verdict::Wrong).map(|row| &row.cells[0]).collect();
    assert!(wrong.is_empty(), "wrong without a caveat: {wrong:?}");
    let right = rows.iter().filter(|row| row.verdict == Verdict::Right).count();
    println!(
        "validation: The articles' experiments | V-S5a-links | the same swept through simulated links: PTM, \
        limits, units, shapers, others' traffic, loss and jitter, {} links | 1 byte, 0.5 %, 1 % or with a caveat \
        | {right} right, {} with a caveat, 0 wrong | within | simulated links",
        rows.len(),
        rows.len() - right
    );
    check("overhead", &table);
}

/// Two minutes are enough, on any link from 100 kbit/s to 1 Gbit/s: in both directions where that is slow,
/// one after the other elsewhere.
#[test]
fn sweeps_end_in_time() {
    for (bits, buffer_ms) in
        [(100_000, 500), (300_000, 1000), (1_000_000, 1000), (10_000_000, 200), (1_000_000_000, 20)]
    {
        let mut case = plain(bits, Coding::Bytes, 38).spec();
        case.up.line.limit = tidegate_sim::Limit::Bytes(bits / 8000 * buffer_ms);
        case.down.line.limit = case.up.line.limit;
        let mut path = path(case);
        let Ok(swept) = sweep(&mut path, &PathDirection::BOTH, &mut |_| {});
        assert!(path.age() < Nanos::secs(120), "{bits} bit/s: {:?}", path.age());
        for way in PathDirection::BOTH {
            let line = swept.of(way).and_then(|one| one.line).expect("a line");
            assert!(line.overhead.abs_diff(38) <= 1, "{bits} bit/s: {line:?}");
        }
    }
}
