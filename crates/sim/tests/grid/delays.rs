//! One-way delays and losses, beside those of the link.

use crate::links::{alike, line, path};
use crate::table::{Row, Verdict, check, markdown, work};
use tidegate_measure::oneway;
use tidegate_measure::stream::{Exchange, PacketTrain, Path, Stream, StreamTrace};
use tidegate_packet::Nanos;
use tidegate_sim::path::ScheduledLinkChange;
use tidegate_sim::path::{Cross, PathSpec};
use tidegate_sim::{Cells, Impairment, LinkAdjustment, LossModel, Reorder};

/// Payload of the probes.
const PAYLOAD: u16 = 100;

/// A link of the grid.
#[derive(Clone, Debug, PartialEq)]
struct Case {
    delays_ms: [u64; 2],
    loss: [LossModel; 2],
    reorder: f64,
    /// The share of each direction that others use.
    cross: f64,
    skew_ppm: f64,
    offset_ns: i64,
    /// The delay upwards grows by so many milliseconds, in steps, all the time.
    grows_ms: u64,
}

fn cases() -> Vec<Case> {
    let base = Case {
        delays_ms: [10, 10],
        loss: [LossModel::None, LossModel::None],
        reorder: 0.0,
        cross: 0.0,
        skew_ppm: 0.0,
        offset_ns: 0,
        grows_ms: 0,
    };
    let mut cases = Vec::new();
    for delays_ms in [[1, 1], [10, 10], [150, 150]] {
        for skew_ppm in [0.0, 15.0, -180.0] {
            cases.push(Case { delays_ms, skew_ppm, offset_ns: 17_000_000_000, ..base.clone() });
            cases.push(Case {
                delays_ms,
                skew_ppm,
                cross: 0.5,
                offset_ns: 86_400_000_000_000,
                ..base.clone()
            });
        }
    }
    let losses = [
        LossModel::Random(0.001),
        LossModel::Random(0.05),
        LossModel::Every(7),
        LossModel::Pattern(vec![false, true, true, false, false, true]),
        LossModel::Burst { p: 0.01, r: 0.3, bad: 1.0, good: 0.0 },
    ];
    for loss in losses {
        cases.push(Case { loss: [loss.clone(), LossModel::None], ..base.clone() });
        cases.push(Case { loss: [LossModel::Random(0.01), loss], skew_ppm: 40.0, ..base.clone() });
    }
    cases.push(Case { reorder: 0.02, ..base.clone() });
    cases.push(Case { delays_ms: [40, 10], ..base.clone() });
    cases.push(Case { grows_ms: 20, ..base });
    cases
}

fn of_stream(phases: &[PacketTrain]) -> Stream {
    Stream { phases: phases.to_vec() }
}

impl Case {
    fn spec(&self) -> PathSpec {
        let mut spec = alike(line(20_000_000, Nanos(0), 14, Cells::None));
        for (way, (one, delay)) in [&mut spec.up, &mut spec.down].into_iter().zip(self.delays_ms).enumerate()
        {
            one.line.delay = Nanos::millis(delay);
            let reorder = Reorder { share: if way == 0 { self.reorder } else { 0.0 }, by: Nanos::millis(45) };
            one.impairment = Impairment { loss: self.loss[way].clone(), reorder, spread: Nanos(0) };
            one.cross = (self.cross > 0.0)
                .then_some(Cross { bits_per_second: (20e6 * self.cross) as u64, frame: 1200 });
        }
        let turn = |step| ScheduledLinkChange {
            at: Nanos::millis(step * 100),
            is_up: true,
            change: LinkAdjustment::Delay(Nanos(
                self.delays_ms[0] * 1_000_000 + self.grows_ms * 10_000 * step,
            )),
        };
        spec.turns = (1..100).filter(|_| self.grows_ms > 0).map(turn).collect();
        PathSpec { skew_ppm: self.skew_ppm, offset_ns: self.offset_ns, ..spec }
    }

    fn name(&self) -> String {
        let mut name = format!("{} / {} ms", self.delays_ms[0], self.delays_ms[1]);
        let word = |loss: &LossModel| match loss {
            LossModel::None => "none".to_owned(),
            LossModel::Random(share) => format!("{} %", share * 100.0),
            LossModel::Every(n) => format!("every {n}th"),
            LossModel::Pattern(_) => "pattern .xx..x".into(),
            LossModel::Burst { .. } => "bursts".into(),
        };
        if self.loss != [LossModel::None, LossModel::None] {
            name += &format!(", lost {} / {}", word(&self.loss[0]), word(&self.loss[1]));
        }
        if self.cross > 0.0 {
            name += &format!(", others use {:.0} %", self.cross * 100.0);
        }
        if self.reorder > 0.0 {
            name += &format!(", {:.0} % overtaken", self.reorder * 100.0);
        }
        if self.skew_ppm != 0.0 {
            name += &format!(", skew {} ppm", self.skew_ppm);
        }
        if self.grows_ms > 0 {
            name += &format!(", grows by {} ms up", self.grows_ms);
        }
        name
    }

    fn row(&self) -> Row {
        let phase =
            PacketTrain { payload: PAYLOAD, gap_ns: 10_000_000, packets: 1000, ..PacketTrain::default() };
        let stream = of_stream(&[phase]);
        let Ok(outcome) = path(self.spec()).carry_out(&Exchange { up: stream.clone(), down: stream });
        let reading = oneway::read(&outcome);
        let losses = [self.losses(0, &outcome.up), self.losses(1, &outcome.down)];
        let found = [reading.up.losses.lost, reading.down.losses.lost];
        let sending = (f64::from(PAYLOAD) + 28.0 + 14.0) * 8.0 / 20.0 / 1e3;
        let round_trip = self.delays_ms.iter().sum::<u64>() as f64 + 2.0 * sending;
        let measured = reading.clocks.round_trip_ns.unwrap_or(0) as f64 / 1e6;
        let worst =
            self.worst(&outcome.up, &reading.up, true).max(self.worst(&outcome.down, &reading.down, false));
        let is_right = found == losses && (measured - round_trip).abs() < 0.3 && worst < 0.3;
        let cells = vec![
            self.name(),
            format!("{round_trip:.2}"),
            format!("{measured:.2}"),
            format!("{:.1}", self.skew_ppm),
            format!("{:.1}", reading.clocks.skew_ppm),
            format!("{worst:.3}"),
            format!("{} / {}", losses[0], losses[1]),
            format!("{} / {}", found[0], found[1]),
        ];
        Row { cells, verdict: Verdict::of(is_right, !reading.caveats.is_empty()), caveats: reading.caveats }
    }

    /// What is lost: known where it is a pattern, otherwise what did not arrive, counted apart from the
    /// estimator.
    fn losses(&self, way: usize, trace: &StreamTrace) -> u64 {
        let of_pattern =
            |marks: &[bool]| (0..trace.packets.len()).filter(|n| marks[n % marks.len()]).count() as u64;
        match &self.loss[way] {
            LossModel::None => 0,
            LossModel::Every(n) => trace.packets.len() as u64 / u64::from(*n),
            LossModel::Pattern(marks) => of_pattern(marks),
            _ => trace.packets.iter().filter(|packet| packet.arrived.is_none()).count() as u64,
        }
    }

    /// By how much the worst delay above the least is off, in milliseconds: the truth from the remote clock
    /// put right.
    fn worst(&self, trace: &StreamTrace, side: &oneway::DirectionStats, is_up: bool) -> f64 {
        let here = |session: u64| {
            let shown = (session as i128 - i128::from(self.offset_ns)) as f64;
            shown / (1.0 + self.skew_ppm / 1e6)
        };
        let truth = |number: u32| {
            let packet = trace.packets[number as usize];
            let (sent, arrived) = (packet.sent.unwrap_or(0), packet.arrived.unwrap_or(0));
            if is_up { here(arrived) - sent as f64 } else { arrived as f64 - here(sent) }
        };
        let least = side.delays.iter().map(|delay| truth(delay.number)).fold(f64::INFINITY, f64::min);
        let off = side.delays.iter().map(|delay| (truth(delay.number) - least - delay.above_ns as f64).abs());
        off.fold(0.0, f64::max) / 1e6
    }
}

#[test]
fn delays_and_losses_are_found_or_unreliable() {
    let rows = work(&cases(), Case::row);
    let head = [
        "link",
        "round trip, ms",
        "measured",
        "skew, ppm",
        "measured",
        "worst delay off by, ms",
        "lost up / down",
        "measured",
    ];
    let table = markdown(&head, &rows);
    if std::env::var_os("TIDEGATE_SHOW").is_some() {
        println!("{table}");
    }
    let wrong: Vec<&String> =
        rows.iter().filter(|row| row.verdict == Verdict::Wrong).map(|row| &row.cells[0]).collect();
    assert!(wrong.is_empty(), "wrong without a caveat: {wrong:?}");
    println!(
        "validation: The articles' experiments | V-S6 | one-way loss of known patterns and of chance, each \
        direction, {} links | exact | exact | within | simulated links, clocks apart and askew",
        rows.len()
    );
    check("delays", &table);
}
