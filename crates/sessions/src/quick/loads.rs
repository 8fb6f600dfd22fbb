//! The loads of the line, one after the other, and their throughput.

use super::watch::{Watch, median};
use crate::error::Result;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tidegate_measure::quick::{LoadDirection, LoadPhase, NOTHING};
use tidegate_measure::{bits_per_second, ramp};
use tidegate_probe_wire::{FlowDirection, FlowPlan};
use tidegate_prober::load::{self, Page};
use tidegate_prober::{AddressFamily, FlowOpener, ServerSession};

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

    /// Both ways by echo requests.
    ///
    /// # Errors
    /// They cannot be sent.
    pub(super) fn echoes(&self, length: u64) -> Result<(LoadPhase, Option<String>)> {
        (self.tell)("both ways, by echo requests");
        let begin = self.watch.now();
        let load = load::echoes(self.watch.far, self.most, self.watch.began)?;
        self.wait(begin + (length as f64 * AT_MOST) as u64, || load.was_full());
        let full = load.was_full();
        self.wait(self.watch.now() + SETTLE, || false);
        let from = self.watch.now();
        self.wait(begin + length, || false);
        let window = (from, self.watch.now());
        let bits = load.meter.rate(window.0, window.1);
        let how = if full { "the slower way decides the rate" } else { "the line was not full by then" };
        let by = format!("echo requests of 1,400 bytes, there and back; {how}");
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
        self.wait(begin + (length as f64 * AT_MOST) as u64, || false);
        let window = (from, self.watch.now());
        load.level();
        self.wait(begin + length, || false);
        let bits = if load.was_full() {
            self.passed(&load, place, usual, (window.1 + SETTLE, self.watch.now()))
        } else {
            None
        };
        let by = match bits {
            Some(_) => format!("datagrams that expire after {hops} routers"),
            None => format!("datagrams that expire after {hops} routers; the upload did not fill"),
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
        family: AddressFamily,
        length: u64,
    ) -> Result<(LoadPhase, Option<String>)> {
        (self.tell)("download, by downloads");
        let begin = self.watch.now();
        let load = load::downloads(page, family, CONNECTIONS, self.watch.began)?;
        self.wait(begin + SETTLE, || load.trouble().is_some());
        let from = self.watch.now();
        let settled = begin + (length as f64 * SETTLED) as u64;
        self.wait(begin + length, || load.trouble().is_some());
        let window = (from, self.watch.now());
        let bits = load.meter.rate(settled.min(window.1), window.1) * WITH_HEADS;
        let by = format!("{CONNECTIONS} downloads of http://{}{}", page.host, page.path);
        Ok((
            LoadPhase {
                load: LoadDirection::Down,
                window,
                by,
                down_bits: Some(bits),
                ..LoadPhase::default()
            },
            load.trouble(),
        ))
    }

    /// One way, by TCP to or from a server of tidegate's.
    pub(super) fn transfers(
        &self,
        far: &ServerSession,
        way: FlowDirection,
        length: u64,
    ) -> (LoadPhase, Option<String>) {
        let load = if way == FlowDirection::Up { LoadDirection::Up } else { LoadDirection::Down };
        (self.tell)(if way == FlowDirection::Up { "upload, by TCP" } else { "download, by TCP" });
        let begin = self.watch.now();
        let until = begin + length;
        let from = begin + SETTLE;
        let settled = (length as f64 * SETTLED) as u64;
        let carried: Vec<Result<f64, String>> = std::thread::scope(|scope| {
            let one = |_| scope.spawn(|| self.transfer(far.flow(), way, (length, settled, until)));
            let threads: Vec<_> = (0..CONNECTIONS).map(one).collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap_or_else(|_| Err("it broke off".into())))
                .collect()
        });
        let bits = carried.iter().filter_map(|one| one.as_ref().ok()).sum::<f64>() * WITH_HEADS;
        let trouble = carried.iter().find_map(|one| one.as_ref().err().cloned());
        let by = format!("{CONNECTIONS} TCP transfers");
        let (up_bits, down_bits) =
            if way == FlowDirection::Up { (Some(bits), None) } else { (None, Some(bits)) };
        let window = (from, self.watch.now());
        (LoadPhase { load, window, by, up_bits, down_bits, ..LoadPhase::default() }, trouble)
    }

    /// One transfer; its throughput once it had settled, bits per second.
    fn transfer(
        &self,
        flow: FlowOpener,
        way: FlowDirection,
        (length, settle, until): (u64, u64, u64),
    ) -> Result<f64, String> {
        let plan = FlowPlan { way, dscp: 0, control: String::new(), length_ns: length };
        let carried = flow.carry(&plan, STEP, || self.is_over(until)).map_err(|error| error.to_string())?;
        let (Some(first), Some(last)) = (carried.bytes.first(), carried.bytes.last()) else {
            return Err(carried.problem.unwrap_or_else(|| "nothing went through".into()));
        };
        let before = carried.bytes.iter().find(|(at, _)| *at >= carried.began + settle).unwrap_or(first);
        Ok(bits_per_second(last.1.saturating_sub(before.1), last.0.saturating_sub(before.0)))
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
