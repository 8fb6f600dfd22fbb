//! The loop.

use super::kept::{self, Guard, PutBack};
use super::plan::{AutorateEvent, AutorateOptions, AutoratePlan, check, controller, earlier, plan_with};
use super::published::Published;
use super::remembered::RememberedLimits;
use super::shaper::{FoundShaper, LEAST_RATE};
use crate::error::{Context, Result, invalid};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;
use tidegate_analysis::watch::ControlMode;
use tidegate_control::{
    ControlEvent, LearningController, OneWayDelays, PerDirection, ProbeReply, RateController, RateDecision,
    RateDirection, ShaperCounters,
};
use tidegate_daemon::RuntimeDir;
use tidegate_gym::ControllerChoice;
use tidegate_netlink::Kernel;
use tidegate_packet::{Nanos, Time};
use tidegate_policy::dump::QueueStats;
use tidegate_prober::ProbeClock;
use tidegate_prober::probe_targets::{ProbeTargets, TargetEvent};
use tidegate_sys::poll;

/// Between two readings of the counters, as in the gym; and while nothing is to be decided.
const COUNTERS: Duration = Duration::from_millis(50);
const LOOKS: Duration = Duration::from_millis(250);
/// Without any reply for so long nothing is known of the line.
const BLIND: Duration = Duration::from_secs(10);
/// Without any reply for so long, and so often from then on, sockets are opened again.
const REOPENED: Duration = Duration::from_secs(2);
/// How often a shaper that is gone is looked for.
const SOUGHT: Duration = Duration::from_secs(1);
/// How often the classes of an HTB are compared with what was set, and the guard is looked after.
const CLASSES: Duration = Duration::from_secs(1);
/// How often what was found of the limits is written down.
const REMEMBERED: Duration = Duration::from_secs(3600);
/// A direction without load carries less than this share of its base rate, and less than this, bit/s.
const IDLE_SHARE: f64 = 0.05;
const IDLE_LEAST: f64 = 32_000.0;
/// The most decisions that are carried out within a second; a controller that wants more never rests.
const MAX_CHANGES: u32 = 200;
/// The first moment of a run, so that no time before it is needed.
const BEGIN: Duration = Duration::from_secs(1);

/// What it is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Controls,
    Idle,
    Blind,
    /// A shaper is gone: when it is looked for next, ns.
    Gone(u64),
}

impl Mode {
    /// As those who watch see it.
    fn shown(self) -> ControlMode {
        match self {
            Mode::Controls => ControlMode::Controls,
            Mode::Idle => ControlMode::Idle,
            Mode::Blind => ControlMode::Blind,
            Mode::Gone(_) => ControlMode::Gone,
        }
    }
}

/// Controls the rates until `stop` becomes readable or the time is over, and puts back the rates that were
/// found. What happens is given to `tell`, in order.
///
/// # Errors
/// What [`plan`] refuses; another process controls a device; no guard can be started; a controller that never
/// rests. In every case the rates that were found are put back.
pub fn run(
    options: &AutorateOptions,
    stop: &OwnedFd,
    tell: &mut dyn FnMut(AutorateEvent) -> std::io::Result<()>,
) -> Result<()> {
    check(options)?;
    let runtime = RuntimeDir::here()?;
    let mut locks = Vec::new();
    for dev in options.devices() {
        locks.push(kept::lock(&runtime, dev)?);
    }
    let mut left = Vec::new();
    for dev in options.devices() {
        left.extend(kept::put_back(&runtime, dev)?);
    }
    if !left.is_empty() {
        tell(AutorateEvent::Earlier(left))?;
    }
    let (learned, why_not) = earlier(options);
    // What is no record of tidegate's is left as it is.
    let is_usable = why_not.is_none();
    if let Some(why) = why_not {
        tell(AutorateEvent::NotRemembered(why))?;
    }
    let plan = plan_with(options, &learned)?;
    let inner = controller(&options.controller, plan.assumed, options.probe_step())?;
    let targets = ProbeTargets::open(&options.targets)?;
    kept::write(&runtime, &plan.shapers_there())?;
    let guard = match Guard::start(&options.devices()) {
        Ok(guard) => guard,
        Err(error) => {
            kept::forget(&runtime, &options.devices())?;
            return Err(error);
        }
    };
    let mut live = Live {
        options,
        runtime: &runtime,
        kernel: Kernel::open().context("netlink")?,
        controller: LearningController::new(inner, plan.assumed, plan.learns, learned),
        remembered: RememberedLimits::of(&options.up).filter(|_| is_usable && plan.learns.any()),
        remembered_at: 0,
        clock: ProbeClock::begin(),
        rates: PerDirection::of(|direction| plan.shapers[direction].as_ref().map_or(0, FoundShaper::found)),
        plan,
        targets,
        guard: Some(guard),
        kept: false,
        mode: Mode::Controls,
        counted: PerDirection::default(),
        last: 0,
        last_reply: 0,
        last_load: 0,
        reopened: 0,
        classes_seen: 0,
        window: (0, 0),
        load: PerDirection::default(),
        next_probe: 0,
        published: Published::new(&runtime, options),
        tell,
    };
    let result = live.work(stop);
    let ended = live.end();
    // The rates come first, and an error of the run before one of this.
    let remembered = live.remember();
    result?;
    remembered?;
    (live.tell)(AutorateEvent::Ended(ended?))?;
    Ok(())
}

impl AutoratePlan {
    /// The shapers that there are, uploads first.
    pub fn shapers_there(&self) -> Vec<&FoundShaper> {
        RateDirection::BOTH.into_iter().filter_map(|direction| self.shapers[direction].as_ref()).collect()
    }
}

struct Live<'o> {
    options: &'o AutorateOptions,
    runtime: &'o RuntimeDir,
    kernel: Kernel,
    plan: AutoratePlan,
    controller: LearningController,
    /// Where what was found of the limits is written down, and when that was done last.
    remembered: Option<RememberedLimits>,
    remembered_at: u64,
    clock: ProbeClock,
    targets: ProbeTargets,
    guard: Option<Guard>,
    /// The kernel refused to put back what was found: what was written down stays.
    kept: bool,
    mode: Mode,
    /// The rates in force.
    rates: PerDirection<u64>,
    counted: PerDirection<QueueStats>,
    /// The time of the last event, ns: they are given in order.
    last: u64,
    last_reply: u64,
    last_load: u64,
    reopened: u64,
    classes_seen: u64,
    /// The second in which changes are counted, and how many there were.
    window: (u64, u32),
    /// Bytes that passed since load was looked at, and when that was.
    load: PerDirection<(u64, u64)>,
    /// The number of the next probe of all.
    next_probe: u64,
    published: Published,
    tell: &'o mut dyn FnMut(AutorateEvent) -> std::io::Result<()>,
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Live<'_> {
    fn work(&mut self, stop: &OwnedFd) -> Result<()> {
        (self.tell)(AutorateEvent::Begun(Box::new(self.plan.clone())))?;
        // Where it cannot be done that is said at once.
        self.remember()?;
        self.begin()?;
        let end = self.options.duration.map_or(u64::MAX, ns);
        let mut counters_due = self.clock.now() + ns(COUNTERS);
        let mut probe_due = 0;
        loop {
            let now = self.clock.now();
            if now >= end {
                return Ok(());
            }
            if self.probes() && now >= probe_due {
                self.probe();
                probe_due = (probe_due + ns(self.options.probe_step())).max(now);
            }
            if now >= counters_due {
                if self.reads_later() {
                    self.replies(Duration::ZERO, stop)?;
                }
                self.look(now)?;
                let step = if self.mode == Mode::Controls { COUNTERS } else { LOOKS };
                counters_due = (counters_due + ns(step)).max(now);
            }
            let due = self.controller.due().filter(|_| self.mode == Mode::Controls);
            let due = due.map(|due| due.0.saturating_sub(ns(BEGIN)));
            if due.is_some_and(|due| due <= now) {
                self.hear(now, &ControlEvent::Timer)?;
            }
            let mut until = counters_due.min(end).min(due.filter(|due| *due > now).unwrap_or(u64::MAX));
            if self.probes() {
                until = until.min(probe_due);
            }
            let wait = Duration::from_nanos(until.saturating_sub(self.clock.now()));
            if self.replies(wait, stop)? {
                return Ok(());
            }
        }
    }

    /// Are replies read when the counters are, and not as soon as they come? The kernel has stamped them, so
    /// nothing is lost, and each wake-up less is a few hundredths of a percent of a processor.
    fn reads_later(&self) -> bool {
        self.mode == Mode::Controls && !self.controller.decides_by_replies()
    }

    /// Whether probes are sent.
    fn probes(&self) -> bool {
        self.targets.count() > 0 && matches!(self.mode, Mode::Controls | Mode::Blind)
    }

    fn probe(&mut self) {
        let target = self.next_probe % self.targets.count().max(1) as u64;
        self.next_probe += 1;
        self.targets.send(target as usize, &self.clock);
    }

    /// Begins to control, at the base rates.
    fn begin(&mut self) -> Result<()> {
        let assumed = self.plan.assumed;
        let inner = controller(&self.options.controller, assumed, self.options.probe_step())?;
        self.controller.restart(inner, assumed);
        self.adopt();
        let now = self.clock.now();
        (self.last_reply, self.last_load, self.reopened) = (now, now, now);
        self.load = PerDirection::of(|_| (0, now));
        self.mode = Mode::Controls;
        self.counted = self.stats().unwrap_or_default();
        self.hear(now, &ControlEvent::Start)
    }

    /// Gives the controller an event, and carries out what it decides.
    fn hear(&mut self, at: u64, event: &ControlEvent) -> Result<()> {
        self.last = self.last.max(at);
        let mut decisions = Vec::new();
        self.controller.on_event(Time(self.last + ns(BEGIN)), event, &mut decisions);
        for decision in decisions {
            self.decide(&decision)?;
        }
        Ok(())
    }

    fn decide(&mut self, decision: &RateDecision) -> Result<()> {
        let direction = decision.direction;
        if self.mode != Mode::Controls || self.plan.shapers[direction].is_none() {
            return Ok(());
        }
        let second = self.last / 1_000_000_000;
        self.window = if self.window.0 == second { (second, self.window.1 + 1) } else { (second, 1) };
        if self.window.1 > MAX_CHANGES {
            return invalid(format!(
                "the controller set more than {MAX_CHANGES} rates within a second: it never rests"
            ));
        }
        let rate = decision.bits_per_second.max(LEAST_RATE);
        if let Err(why) = self.set(direction, rate) {
            return self.gone(why);
        }
        self.published.decided(decision);
        let dev = self.plan.shapers[direction].as_ref().map_or_else(String::new, |one| one.dev().to_owned());
        (self.tell)(AutorateEvent::Decision {
            direction,
            dev,
            rate,
            reason: decision.reason,
            delay_ms: decision.delay.map(|delay| delay.0 as f64 / 1e6),
        })?;
        Ok(())
    }

    /// Sets a rate; why it is not.
    fn set(&mut self, direction: RateDirection, rate: u64) -> std::result::Result<(), String> {
        let Some(shaper) = &self.plan.shapers[direction] else { return Ok(()) };
        let ops = if rate == shaper.found() { shaper.restore() } else { shaper.set(rate) };
        let done = shaper.carry_out(&mut self.kernel, &ops);
        done.map_err(|error| format!("{}: {error}", shaper.dev()))?;
        self.rates[direction] = rate;
        Ok(())
    }

    /// Puts back the rate of a direction's shaper, as far as no other program changed it; how many classes,
    /// or shapers, one did.
    fn put_back(&mut self, direction: RateDirection) -> std::result::Result<usize, String> {
        let Some(shaper) = &self.plan.shapers[direction] else { return Ok(0) };
        let Ok(now) = FoundShaper::find(&mut self.kernel, shaper.dev()) else {
            return Err(
                "the shaper that was found is not there any more; what is there was left alone".to_owned()
            );
        };
        let (ops, others) = shaper.restore_own(&now, self.rates[direction]);
        if ops.is_empty() {
            return Err(
                "the shaper that was found was replaced or changed by another program; what is there \
                        was left alone"
                    .to_owned(),
            );
        }
        if let Err(error) = shaper.carry_out(&mut self.kernel, &ops) {
            // The guard tries again, and after it the next start.
            self.kept = true;
            return Err(error.to_string());
        }
        self.rates[direction] = shaper.found();
        Ok(others)
    }

    /// Sets the rates that were found, of what no other program changed.
    fn set_found(&mut self) {
        for direction in RateDirection::BOTH {
            // Where it cannot be done, that is found again and said.
            let _ = self.put_back(direction);
        }
    }

    /// A shaper is not there any more.
    fn gone(&mut self, why: String) -> Result<()> {
        if matches!(self.mode, Mode::Gone(_)) {
            return Ok(());
        }
        self.set_found();
        self.mode = Mode::Gone(self.clock.now() + ns(SOUGHT));
        Ok((self.tell)(AutorateEvent::Gone(why))?)
    }

    /// Looks for shapers that are gone.
    fn seek(&mut self, now: u64) -> Result<()> {
        let Mode::Gone(due) = self.mode else { return Ok(()) };
        if now < due {
            return Ok(());
        }
        self.mode = Mode::Gone(now + ns(SOUGHT));
        // Devices may have other numbers now.
        self.kernel = Kernel::open().context("netlink")?;
        let mut found = PerDirection::default();
        for direction in RateDirection::BOTH {
            let dev = match direction {
                RateDirection::Up => Some(&self.options.up),
                RateDirection::Down => self.options.down.as_ref(),
            };
            if let Some(dev) = dev {
                let Ok(shaper) = FoundShaper::find(&mut self.kernel, dev) else { return Ok(()) };
                found[direction] = Some(shaper);
            }
        }
        let learned = self.controller.learned();
        let Ok(plan) = AutoratePlan::new(self.options, found, learned) else { return Ok(()) };
        self.plan = plan;
        kept::write(self.runtime, &self.plan.shapers_there())?;
        self.targets.reopen();
        let rates =
            PerDirection::of(|direction| self.plan.shapers[direction].as_ref().map(FoundShaper::found));
        self.rates = PerDirection::of(|direction| rates[direction].unwrap_or(0));
        (self.tell)(AutorateEvent::Back(rates))?;
        self.begin()
    }

    /// The counters of both shapers; why they are not the ones that were found.
    fn stats(&mut self) -> std::result::Result<PerDirection<QueueStats>, String> {
        let mut stats = PerDirection::default();
        let devices = self.plan.shapers_there().into_iter().map(|shaper| (shaper.dev(), shaper.number()));
        let devices: Vec<(&str, u32)> = devices.collect();
        let roots = self.kernel.roots(&devices).map_err(|error| format!("{}: {error}", devices[0].0))?;
        let mut roots = roots.into_iter();
        for direction in RateDirection::BOTH {
            let Some(shaper) = &self.plan.shapers[direction] else { continue };
            let root = roots.next().flatten();
            if !shaper.is_at(root.as_ref(), self.rates[direction]) {
                return Err(format!(
                    "{}: {} was replaced or changed by another program",
                    shaper.dev(),
                    shaper.words()
                ));
            }
            stats[direction] = root.map_or_else(QueueStats::default, |root| root.stats);
        }
        Ok(stats)
    }

    /// Whether the classes of HTBs are as they were set: their root does not show them.
    fn classes(&mut self) -> std::result::Result<(), String> {
        for direction in RateDirection::BOTH {
            let Some(shaper) = &self.plan.shapers[direction] else { continue };
            let now = FoundShaper::find(&mut self.kernel, shaper.dev()).map_err(|error| error.to_string())?;
            if shaper.restore_own(&now, self.rates[direction]).1 > 0 {
                return Err(format!(
                    "{}: {} was changed by another program, or has other classes now",
                    shaper.dev(),
                    shaper.words()
                ));
            }
        }
        Ok(())
    }

    /// Reads the counters, and does what is to be done regularly.
    fn look(&mut self, now: u64) -> Result<()> {
        let each_second = now >= self.classes_seen + ns(CLASSES);
        if each_second && self.guard.as_mut().is_some_and(|guard| !guard.watches()) {
            self.guard = None;
            self.guard = Some(Guard::start(&self.options.devices())?);
        }
        self.published.write(now, self.mode.shown(), &self.plan, self.rates);
        if matches!(self.mode, Mode::Gone(_)) {
            return self.seek(now);
        }
        let stats = match self.stats() {
            Ok(stats) => stats,
            Err(why) => return self.gone(why),
        };
        if each_second {
            self.classes_seen = now;
            if let Err(why) = self.classes() {
                return self.gone(why);
            }
        }
        let before = std::mem::replace(&mut self.counted, stats);
        let counters = PerDirection::of(|direction| counters(before[direction], stats[direction]));
        if self.is_idle(now, &counters) {
            return self.rest(now);
        }
        if self.mode == Mode::Idle {
            self.begin()?;
            (self.tell)(AutorateEvent::Active)?;
        }
        if self.targets.count() > 0 {
            let silent = now.saturating_sub(self.last_reply);
            if silent >= ns(REOPENED) && now >= self.reopened + ns(REOPENED) {
                self.reopened = now;
                self.targets.reopen();
            }
            if silent >= ns(BLIND) && self.mode == Mode::Controls && self.needs_replies() {
                self.set_found();
                self.mode = Mode::Blind;
                (self.tell)(AutorateEvent::Blind)?;
            }
        }
        if self.mode == Mode::Controls {
            self.hear(now, &ControlEvent::Counters(counters))?;
            if self.adopt() {
                (self.tell)(AutorateEvent::Limits(Box::new(self.plan.clone())))?;
            }
        }
        if now >= self.remembered_at + ns(REMEMBERED) {
            self.remembered_at = now;
            self.remember()?;
        }
        Ok(())
    }

    /// Takes the limits that were found into the plan; true: they are others.
    fn adopt(&mut self) -> bool {
        let limits = self.controller.limits();
        self.plan.learned = self.controller.learned().rates();
        std::mem::replace(&mut self.plan.limits, limits) != limits
    }

    /// Writes down what was found of the limits; where that cannot be done, it is said once.
    fn remember(&mut self) -> Result<()> {
        let Some(file) = &self.remembered else { return Ok(()) };
        if let Err(why) = file.write(self.controller.learned()) {
            self.remembered = None;
            (self.tell)(AutorateEvent::NotRemembered(why))?;
        }
        Ok(())
    }

    fn needs_replies(&self) -> bool {
        !matches!(self.options.controller, ControllerChoice::Fixed(_))
    }

    /// Without load for long enough?
    fn is_idle(&mut self, now: u64, counters: &PerDirection<ShaperCounters>) -> bool {
        let Some(idle) = self.options.idle else { return false };
        for direction in RateDirection::BOTH {
            if self.plan.shapers[direction].is_none() {
                continue;
            }
            let (bytes, since) = self.load[direction];
            let bytes = bytes + counters[direction].arrived;
            let passed = now.saturating_sub(since) as f64 / 1e9;
            self.load[direction] = if passed >= 1.0 { (0, now) } else { (bytes, since) };
            let least = (IDLE_SHARE * self.plan.limits.base[direction] as f64).max(IDLE_LEAST);
            // Within the second, as soon as there is more than an idle line carries in all of it.
            if bytes as f64 * 8.0 >= least * passed.max(1.0) {
                self.last_load = now;
            }
        }
        now.saturating_sub(self.last_load) >= ns(idle)
    }

    /// There is no load.
    fn rest(&mut self, now: u64) -> Result<()> {
        if matches!(self.mode, Mode::Controls | Mode::Blind) {
            for direction in RateDirection::BOTH {
                let base = self.plan.limits.base[direction];
                if let Err(why) = self.set(direction, base) {
                    return self.gone(why);
                }
            }
            self.mode = Mode::Idle;
            self.last_reply = now;
            (self.tell)(AutorateEvent::Idle)?;
        }
        Ok(())
    }

    /// Waits, at most for so long, and reads replies; true: it is to stop.
    fn replies(&mut self, wait: Duration, stop: &OwnedFd) -> Result<bool> {
        if !wait.is_zero() && self.reads_later() {
            return Ok(poll::readable(&[stop.as_fd()], wait)?[0]);
        }
        if self.targets.wait(&[stop.as_fd()], wait)?[0] {
            return Ok(true);
        }
        let mut events = Vec::new();
        self.targets.collect(&mut self.clock, &mut events);
        for event in events {
            let (at, event) = match event {
                TargetEvent::Reply { target, sent_ns, at_ns, one_way_ns } => {
                    self.last_reply = self.last_reply.max(at_ns);
                    if self.mode == Mode::Blind {
                        self.begin()?;
                        (self.tell)(AutorateEvent::Seen)?;
                    }
                    let one_way = one_way_ns.map(|[up, down]| OneWayDelays { up, down });
                    let rtt = Nanos(at_ns.saturating_sub(sent_ns));
                    let sent = Time(sent_ns + ns(BEGIN));
                    (at_ns, ControlEvent::ProbeReply(ProbeReply { reflector: target, sent, rtt, one_way }))
                }
                TargetEvent::Lost { target, sent_ns } => {
                    let sent = Time(sent_ns + ns(BEGIN));
                    (self.clock.now(), ControlEvent::ProbeLost { reflector: target, sent })
                }
            };
            if self.mode == Mode::Controls {
                self.hear(at, &event)?;
            }
        }
        Ok(false)
    }

    /// Puts back what was found.
    fn end(&mut self) -> Result<Vec<PutBack>> {
        let mut all = Vec::new();
        self.kept = false;
        for direction in RateDirection::BOTH {
            let Some(shaper) = self.plan.shapers[direction].clone() else { continue };
            let done = self.put_back(direction).and_then(|others| match shaper.is_restored(&mut self.kernel) {
                Ok(true) => Ok(shaper.found()),
                Ok(false) if others > 0 => Err(format!(
                    "{others} of its classes were changed, added or taken away by another program, and left \
                     alone; the others are as they were found"
                )),
                Ok(false) => Err("it is not as it was found: another program changes it, too".to_owned()),
                Err(error) => Err(crate::error::chain(&error)),
            });
            all.push((shaper.dev().to_owned(), done));
        }
        if self.kept {
            // It is not waited for: it works when this process has given up its locks.
            self.guard = None;
            return Ok(all);
        }
        // The guard finds nothing to do.
        kept::forget(self.runtime, &self.options.devices())?;
        if let Some(guard) = self.guard.take() {
            guard.end();
        }
        Ok(all)
    }
}

/// What a shaper counted between two readings.
fn counters(before: QueueStats, now: QueueStats) -> ShaperCounters {
    let sent = now.bytes.saturating_sub(before.bytes);
    let backlog = u64::from(now.backlog);
    // What came is what left and what waits now, less what waited before.
    let arrived = (sent + backlog).saturating_sub(u64::from(before.backlog));
    let dropped = u64::from(now.drops.wrapping_sub(before.drops));
    ShaperCounters { arrived, sent, dropped, backlog }
}
