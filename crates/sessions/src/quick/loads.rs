//! The loads of the line, one after the other, and their throughput.

use super::watch::{Watch, median};
use crate::error::Result;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegate_measure::numbers::rate;
use tidegate_measure::quick::{LoadDirection, LoadPhase, NOTHING};
use tidegate_measure::throughput::{PIECE, Throughput, pieces};
use tidegate_measure::{Durations, ramp};
use tidegate_probe_wire::{FlowDirection, FlowPlan};
use tidegate_prober::load::{self, Page};
use tidegate_prober::{AddressFamily, FlowOpener, MeasuredFlow, ServerSession};

/// TCP connections at once: so many that a buffer fills within seconds, as with a page or an upload of many
/// files.
const CONNECTIONS: u32 = 8;
/// Rates are of IP packets: TCP's payload with the heads of full packets (1,500 bytes, 52 of them heads).
const WITH_HEADS: f64 = 1500.0 / 1448.0;
/// How often it is looked how it goes.
const LOOK: Duration = Duration::from_millis(20);
/// After a line is full, so long until it counts.
const SETTLE: u64 = 500_000_000;
/// Of a phase, so much until TCP's rate counts.
const SETTLED: f64 = 0.4;
/// For queues to empty between two loads.
const PAUSE: u64 = 1_500_000_000;
/// Of a phase, so much at most until it counts, whether the line is full by then or not.
const AT_MOST: f64 = 0.55;
/// From one note of a flow to the next.
const STEP: u64 = 100_000_000;

/// What carries a phase out.
pub(super) struct Stage<'w> {
    /// Everybody on the way.
    pub(super) watch: &'w Watch,
    /// The flag that ends it.
    pub(super) stop: &'static AtomicBool,
    /// Never more than this, bits per second.
    pub(super) most: f64,
    /// A load that others carry ends after so many bytes.
    pub(super) most_bytes: u64,
    /// Gets progress messages now and then.
    pub(super) tell: &'w (dyn Fn(&str) + Sync),
}

impl Stage<'_> {
    /// Whether the flag is set.
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    fn is_over(&self, until: u64) -> bool {
        self.watch.now() >= until || self.is_stopped()
    }

    /// Waits until a moment, or something is so, or it is to end.
    fn wait(&self, until: u64, enough: impl Fn() -> bool) {
        while !self.is_over(until) && !enough() {
            std::thread::sleep(LOOK);
        }
    }

    /// Nothing of tidegate's.
    pub(super) fn idle(&self, length: u64) -> LoadPhase {
        (self.tell)("the idle line");
        let begin = self.watch.now();
        self.wait(begin + length, || false);
        LoadPhase { load: LoadDirection::Idle, window: (begin, self.watch.now()), ..LoadPhase::default() }
    }

    /// For the queues of the last load.
    pub(super) fn pause(&self) {
        self.wait(self.watch.now() + PAUSE, || false);
    }

    /// Waits until a moment, or a load of others' has had what it may have; whether it had that.
    fn wait_bounded(&self, until: u64, load: &load::RunningLoad) -> bool {
        let is_spent = || load.meter.bytes(0, self.watch.now()) >= self.most_bytes;
        self.wait(until, || load.trouble().is_some() || is_spent());
        is_spent()
    }

    /// By how much the median round trip to the last place grew over the idle one.
    fn growth(&self, idle: (u64, u64), window: (u64, u64)) -> Option<u64> {
        let places = self.watch.places();
        let far = places.last()?;
        Some(median(far, window)?.saturating_sub(median(far, idle)?))
    }

    /// Both ways by echo requests.
    ///
    /// # Errors
    /// They cannot be sent.
    pub(super) fn echoes(&self, length: u64) -> Result<(LoadPhase, Option<String>)> {
        (self.tell)("both ways, by echo requests");
        let begin = self.watch.now();
        let load = load::echoes(self.watch.far, self.most, self.watch.began)?;
        self.wait(begin + (length as f64 * AT_MOST) as u64, || load.was_full());
        self.wait(self.watch.now() + SETTLE, || false);
        let from = self.watch.now();
        let is_spent = self.wait_bounded(begin + length, &load);
        let window = (from, self.watch.now());
        // A line that was full in the beginning only was none; one that is measured too short is unknown.
        let full = load.was_full() && window.1 - window.0 >= 2 * PIECE;
        let bits = load.meter.rate(window.0, window.1);
        let how = if full { "the slower direction decides the rate" } else { "the line was not full" };
        let spent = if is_spent { "; ended by --max-data" } else { "" };
        let by = format!("echo requests of 1,400 bytes, there and back; {how}{spent}");
        let phase = LoadPhase {
            load: LoadDirection::Both,
            window,
            by,
            up_bits: Some(bits),
            down_bits: Some(bits),
            is_partly_full: !full,
        };
        Ok((phase, load.trouble()))
    }

    /// The way up, by datagrams that end at this place: the first behind the queue.
    ///
    /// # Errors
    /// They cannot be sent.
    pub(super) fn outward(
        &self,
        (place, hops): (usize, u8),
        idle: (u64, u64),
        most: f64,
        length: u64,
    ) -> Result<(LoadPhase, Option<String>)> {
        (self.tell)("upload, by datagrams that expire near by");
        let places = self.watch.places();
        let usual = places.get(place).and_then(|place| median(place, idle)).unwrap_or(0);
        let begin = self.watch.now();
        let growth = self.watch.growth(place, usual);
        let load = load::outward((self.watch.far, hops), (most, usual), self.watch.began, growth)?;
        self.wait(begin + (length as f64 * 0.4) as u64, || load.was_full());
        self.wait(self.watch.now() + SETTLE, || false);
        let from = self.watch.now();
        self.wait_bounded(begin + (length as f64 * AT_MOST) as u64, &load);
        let window = (from, self.watch.now());
        load.level();
        self.wait_bounded(begin + length, &load);
        let bits = if load.was_full() {
            self.passed(&load, place, usual, (window.1 + SETTLE, self.watch.now()))
        } else {
            None
        };
        let by = match bits {
            Some(_) => format!("datagrams that expire after {hops} routers"),
            None => format!("datagrams that expire after {hops} routers; the upload was not full"),
        };
        Ok((
            LoadPhase {
                load: LoadDirection::Up,
                window,
                by,
                up_bits: bits,
                is_partly_full: bits.is_none(),
                ..LoadPhase::default()
            },
            load.trouble(),
        ))
    }

    /// What the way up took while its queue was kept.
    fn passed(&self, load: &load::RunningLoad, place: usize, usual: u64, window: (u64, u64)) -> Option<f64> {
        let places = self.watch.places();
        let answered = places
            .get(place)?
            .requests
            .iter()
            .filter(|request| (window.0..window.1).contains(&request.sent_ns));
        let known: Vec<(u64, u64)> = answered
            .filter_map(|request| Some((request.sent_ns, request.took_ns?.saturating_sub(usual))))
            .collect();
        let (first, last) = (*known.first()?, *known.last()?);
        ramp::passed(load.meter.bytes(first.0, last.0), first, last)
    }

    /// The way down, by downloads of a page.
    ///
    /// # Errors
    /// The server has no address.
    pub(super) fn downloads(
        &self,
        page: &Page,
        (family, idle): (AddressFamily, (u64, u64)),
        length: u64,
    ) -> Result<(LoadPhase, Option<String>)> {
        (self.tell)("download, by downloads");
        let begin = self.watch.now();
        let load = load::downloads(page, family, CONNECTIONS, self.watch.began)?;
        self.wait(begin + SETTLE, || load.trouble().is_some());
        let from = self.watch.now();
        let settled = begin + (length as f64 * SETTLED) as u64;
        let is_spent = self.wait_bounded(begin + length, &load);
        let window = (from, self.watch.now());
        let trouble = load.trouble();
        let settled = settled.min(window.1.saturating_sub(PIECE)).max(from);
        let count = window.1.saturating_sub(settled) / PIECE;
        let piece = |n: u64| load.meter.rate(settled + n * PIECE, settled + (n + 1) * PIECE) * WITH_HEADS;
        let carried = Throughput::of(&(0..count).map(piece).collect::<Vec<f64>>());
        // The sender's account is not known here: only a queue shows that the line was the limit.
        let is_full = self.growth(idle, window).is_some_and(|growth| growth >= NOTHING);
        let mut by = format!("{CONNECTIONS} downloads of {page}");
        by += if is_spent { ", ended by --max-data" } else { "" };
        by += if is_full { "" } else { "; no queue grew: the line may carry more than this server sends" };
        let mut phase =
            LoadPhase { load: LoadDirection::Down, window, is_partly_full: !is_full, ..LoadPhase::default() };
        phase.down_bits = noted(carried, &mut by);
        phase.by = by;
        Ok((phase, trouble))
    }

    /// One way, by TCP to or from a server of tidegate's.
    pub(super) fn transfers(
        &self,
        far: &ServerSession,
        (way, idle): (FlowDirection, (u64, u64)),
        length: u64,
    ) -> (LoadPhase, Option<String>) {
        let is_up = way == FlowDirection::Up;
        (self.tell)(if is_up { "upload, by TCP" } else { "download, by TCP" });
        let begin = self.watch.now();
        let until = begin + length;
        let from = begin + SETTLE;
        let settled = (length as f64 * SETTLED) as u64;
        let went: Vec<Result<MeasuredFlow, String>> = std::thread::scope(|scope| {
            let one = |_| scope.spawn(|| self.transfer(far.flow(), way, (length, until)));
            let threads: Vec<_> = (0..CONNECTIONS).map(one).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err("it broke off".into())))
                .collect()
        });
        let window = (from, self.watch.now());
        let flows: Vec<&MeasuredFlow> = went.iter().filter_map(|one| one.as_ref().ok()).collect();
        let trouble = went.iter().find_map(|one| one.as_ref().err().cloned());
        let account = Account::of(&flows, settled);
        let idle_ns = self.watch.places().last().and_then(|far| median(far, idle));
        let waited = self.growth(idle, window).into_iter().chain(account.waited(idle_ns)).max();
        let is_full = waited.is_some_and(|waited| waited >= NOTHING);
        let mut by = format!("{CONNECTIONS} TCP transfers");
        by += match (is_full, account.resent) {
            (true, _) => "",
            (false, true) => {
                "; packets were lost though no queue grew: a policer, or a line that loses packets"
            }
            (false, false) => "; no queue grew: the line may carry more",
        };
        let load = if is_up { LoadDirection::Up } else { LoadDirection::Down };
        let mut phase = LoadPhase { load, window, is_partly_full: !is_full, ..LoadPhase::default() };
        let bits = noted(account.carried, &mut by);
        if is_up {
            phase.up_bits = bits;
        } else {
            phase.down_bits = bits;
        }
        phase.by = by;
        (phase, trouble)
    }

    /// One transfer.
    fn transfer(
        &self,
        flow: FlowOpener,
        way: FlowDirection,
        (length, until): (u64, u64),
    ) -> Result<MeasuredFlow, String> {
        let plan = FlowPlan { way, dscp: 0, control: String::new(), length_ns: length };
        let carried = flow.carry(&plan, STEP, || self.is_over(until)).map_err(|error| error.to_string())?;
        if carried.bytes.is_empty() {
            return Err(carried.problem.unwrap_or_else(|| "nothing went through".into()));
        }
        Ok(carried)
    }
}

/// The throughput of a load, and a word in its description where one rate does not describe it.
fn noted(carried: Option<Throughput>, by: &mut String) -> Option<f64> {
    let carried = carried?;
    if carried.varies() {
        let (low, high) = (rate(carried.low), rate(carried.high));
        *by += &format!(
            "; the throughput of half seconds varied from {low} to {high}, which no fixed rate fits"
        );
    }
    Some(carried.carried())
}

/// The bytes that the line carried for a transfer, by time: in whatever order they came, where the kernel
/// counts them.
fn carried_by(flow: &MeasuredFlow) -> &[(u64, u64)] {
    let is_counted = flow.arrived.last().is_some_and(|(_, bytes)| *bytes > 0);
    if is_counted { &flow.arrived } else { &flow.bytes }
}

/// What TCP transfers of a load show together.
struct Account {
    /// Of IP packets, from when it had settled.
    carried: Option<Throughput>,
    /// The median of their smoothed round trips, ns.
    round_trip_ns: Option<u64>,
    /// Whether some had to send again.
    resent: bool,
}

impl Account {
    /// `settled`: from the beginning of the transfers, ns.
    fn of(flows: &[&MeasuredFlow], settled: u64) -> Account {
        // They began together, but for the time that a handshake takes.
        let begin = flows.iter().map(|flow| flow.began).min().unwrap_or(0) + settled;
        let ends = flows.iter().filter_map(|flow| flow.bytes.last()).map(|(at, _)| *at);
        let window = (begin, ends.min().unwrap_or(0));
        let series: Vec<&[(u64, u64)]> = flows.iter().map(|flow| carried_by(flow)).collect();
        let all: Vec<f64> = pieces(&series, window).into_iter().map(|bits| bits * WITH_HEADS).collect();
        let samples =
            || flows.iter().flat_map(|flow| &flow.samples).filter(|sample| sample.at_ns >= window.0);
        let trips = samples().map(|sample| u64::from(sample.srtt_us) * 1000).collect();
        Account {
            carried: Throughput::of(&all),
            round_trip_ns: Durations::new(trips).percentile(50.0),
            resent: samples().any(|sample| sample.retransmissions > 0),
        }
    }

    /// How long the transfers' own packets waited.
    fn waited(&self, idle_ns: Option<u64>) -> Option<u64> {
        Some(self.round_trip_ns?.saturating_sub(idle_ns?))
    }
}

/// Where the way up is to be loaded to: the first place that answered later under load, if it is known how
/// far away it is.
pub(super) fn behind_queue(quick: &tidegate_measure::quick::Quick, phase: usize) -> Option<(usize, u8)> {
    let place = quick.behind_most(phase)?;
    let grown = quick.growth(place, phase)? >= NOTHING;
    let distance = quick.places.get(place)?.distance?;
    grown.then_some((place, distance))
}

/// The address that a reflector's name means.
pub(super) fn address(host: &str, family: AddressFamily) -> Result<IpAddr> {
    Ok(tidegate_prober::ping::PingSchedule::new(host, family)?.address)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_probe_wire::TcpSample;

    const MS: u64 = 1_000_000;

    /// A transfer of 4 Mbit/s of payload for 5 s whose packets take so many ms.
    fn flow(began: u64, srtt_ms: u32, retransmissions: u32) -> MeasuredFlow {
        let times = (0..=50).map(|n| began + n * STEP);
        let sample =
            |at_ns| TcpSample { at_ns, srtt_us: srtt_ms * 1000, retransmissions, ..TcpSample::default() };
        MeasuredFlow {
            began,
            bytes: times.clone().map(|at| (at, (at - began) / 2000)).collect(),
            samples: times.map(sample).collect(),
            ..MeasuredFlow::default()
        }
    }

    #[test]
    fn transfers_show_their_rate_and_how_long_they_waited() {
        let flows = [flow(0, 48, 0), flow(20 * MS, 52, 3)];
        let account = Account::of(&flows.each_ref(), 2000 * MS);
        let carried = account.carried.expect("a throughput").carried();
        assert!((carried / (8e6 * WITH_HEADS) - 1.0).abs() < 0.001, "{carried}");
        assert_eq!(account.waited(Some(20 * MS)), Some(28 * MS));
        assert_eq!((account.waited(None), account.resent), (None, true));
        let nothing = Account::of(&[], 2000 * MS);
        assert!(nothing.carried.is_none() && nothing.waited(Some(1)).is_none() && !nothing.resent);
    }

    #[test]
    fn bytes_behind_a_gap_count_when_they_arrive() {
        let mut held = flow(0, 40, 1);
        held.arrived = held.bytes.clone();
        held.bytes.iter_mut().skip(10).take(20).for_each(|(_, bytes)| *bytes = 0);
        let rate = |flow: &MeasuredFlow| {
            Account::of(&[flow], 2000 * MS).carried.map(|carried| (carried.mean / WITH_HEADS) as u64)
        };
        assert_eq!(rate(&held), Some(4_000_000));
        // A kernel that counts no segments.
        held.arrived.iter_mut().for_each(|(_, bytes)| *bytes = 0);
        assert!(rate(&held) > Some(5_000_000), "{:?}", rate(&held));
    }

    #[test]
    fn a_throughput_that_varies_is_named() {
        let mut by = "8 TCP transfers".to_owned();
        let all = Throughput::of(&[4e6, 4e6, 5e6, 10e6, 12e6, 12e6, 11e6, 9e6]);
        assert_eq!(noted(all, &mut by), Some(8.375e6));
        assert!(
            by.ends_with("half seconds varied from 4.00 Mbit/s to 12.0 Mbit/s, which no fixed rate fits"),
            "{by}"
        );
        let mut steady = String::new();
        assert_eq!(noted(Throughput::of(&[5e6; 10]), &mut steady), Some(5e6));
        assert_eq!(noted(None, &mut steady), None);
        assert_eq!(steady, "");
    }
}
