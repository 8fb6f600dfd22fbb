//! One run: a policy under a load with a seed, read step by step.

use super::document;
use super::lay::{self, Laid, START};
use super::packets::Packets;
use super::prepare::{self, Prepared};
use super::scenario::{At, Command, Happening, Item, Line, Role, Scenario};
use super::shown;
use super::traffic::Traffic;
use crate::courses::{Courses, Roots};
use std::sync::atomic::{AtomicBool, Ordering};
use tidegate_gateway::DeviceId;
use tidegate_measure::experiment as doc;
use tidegate_packet::{Handle, Span, Time};
use tidegate_policy::dump::QueueStats;
use tidegate_sim::world::World;
use tidegate_sim::{LinkChange, LinkId, LinkStats};

/// With more classes than this they are read every second only, so that a run stays quick.
const MANY_CLASSES: usize = 256;

/// Which run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case {
    pub(super) policy: usize,
    pub(super) load: usize,
    pub(super) repeat: u32,
}

/// A run under way.
pub(super) struct Run<'s, T> {
    pub(super) scenario: &'s Scenario,
    pub(super) case: Case,
    pub(super) laid: Laid,
    pub(super) traffic: T,
    /// Payload bytes of each piece of traffic per step.
    pub(super) progress: Vec<Vec<u64>>,
    /// Of each piece what was acknowledged when the window began and ended.
    pub(super) edges: [Vec<u64>; 2],
    pub(super) links: Vec<LinkCourse>,
    pub(super) courses: Courses,
    pub(super) events: Vec<doc::Event>,
    pub(super) step: Span,
    /// When it was stopped, if it was.
    pub(super) cut: Option<Time>,
    /// The packets, where they are written.
    packets: Option<Packets>,
    /// Rings as they were last told.
    rings: Vec<Vec<u32>>,
}

/// One direction of a link, step by step.
#[derive(Clone, Debug, Default)]
pub(super) struct LinkCourse {
    pub(super) cable: usize,
    pub(super) up: bool,
    links: Vec<LinkId>,
    pub(super) sent: Vec<u64>,
    pub(super) capacity: Vec<u64>,
    pub(super) backlog: Vec<u64>,
    pub(super) dropped: Vec<u32>,
    last: (u64, u64),
    /// What the kernel's own root at its beginning had lost so far.
    root_drops: u32,
    /// Bits per second now; 0: none.
    rate: u64,
    /// Frames are counted: its time says nothing, as it has no rate or a recorded one.
    counted: bool,
}

/// Something to do at a moment.
enum Due<'s> {
    Step,
    WindowBegins,
    WindowEnds,
    Happens(&'s Happening),
    Asked(&'s Command),
}

/// Does a run from its beginning to its end, or until `stop` is set; `done` hears of each second of link time.
///
/// # Errors
/// What a machine refuses of a policy (one that was prepared is not refused), and what keeps the traffic from going on.
pub(super) fn run<T: Traffic>(
    scenario: &Scenario,
    prepared: &Prepared,
    case: Case,
    asked: &[At],
    stop: &AtomicBool,
    done: &(dyn Fn(u64) + Sync),
    traffic: T,
) -> anyhow::Result<doc::Run> {
    let seed = scenario.seed.wrapping_add(u64::from(case.repeat));
    let laid = lay::lay(scenario, prepared, case.policy, seed).map_err(|wrong| shown(scenario, &wrong))?;
    let mut run = Run::new(scenario, case, laid, traffic);
    if let Some(wanted) = &scenario.packets {
        run.packets = Some(Packets::observe(wanted, scenario, &mut run.laid)?);
    }
    run.begin()?;
    run.go(asked, stop, done)?;
    Ok(document::run(run, seed))
}

impl<'s, T: Traffic> Run<'s, T> {
    fn new(scenario: &'s Scenario, case: Case, laid: Laid, traffic: T) -> Run<'s, T> {
        let mut run = Run {
            scenario,
            case,
            laid,
            traffic,
            progress: Vec::new(),
            edges: [Vec::new(), Vec::new()],
            links: Vec::new(),
            courses: Courses::default(),
            events: Vec::new(),
            step: scenario.step,
            cut: None,
            packets: None,
            rings: Vec::new(),
        };
        run.rings = run.rings_now();
        run.links = LinkCourse::all(scenario, case.policy, &run.laid.world);
        if run.classes() > MANY_CLASSES {
            run.step = run.step.max(Span::secs(1));
        }
        run
    }

    fn classes(&mut self) -> usize {
        let mut count = 0;
        for (number, devices) in self.laid.devices.iter().enumerate() {
            let Some(machine) = self.laid.world.net.machine.get(number) else { continue };
            count += devices.iter().map(|(_, id)| machine.gateway.classes(START, *id).len()).sum::<usize>();
        }
        count
    }

    pub(super) fn load(&self) -> &'s [Item] {
        &self.scenario.loads[self.case.load].items
    }

    /// Sets everything going.
    fn begin(&mut self) -> anyhow::Result<()> {
        T::begin(self)?;
        self.progress = self.acked().iter().map(|_| Vec::new()).collect();
        Ok(())
    }

    fn acked(&mut self) -> Vec<u64> {
        self.traffic.acked(&self.laid)
    }

    /// Runs to the end of the window and a while beyond.
    fn go(&mut self, asked: &'s [At], stop: &AtomicBool, done: &(dyn Fn(u64) + Sync)) -> anyhow::Result<()> {
        let mut seconds = 0;
        for (at, due) in self.agenda(asked) {
            self.advance(at)?;
            match due {
                Due::Step => {
                    self.traffic.step_ended(&mut self.laid, at);
                    self.read(at);
                }
                Due::WindowBegins => self.edges[0] = self.acked(),
                Due::WindowEnds => self.edges[1] = self.acked(),
                Due::Happens(what) => self.happens(what),
                Due::Asked(command) => {
                    for number in 0..self.laid.nodes.len() {
                        self.tell(number, command);
                    }
                }
            }
            let now = at.since(START).0 / 1_000_000_000;
            if now > seconds {
                done(now - seconds);
                seconds = now;
            }
            if stop.load(Ordering::Relaxed) {
                self.cut = Some(at);
                break;
            }
        }
        let end = self.cut.unwrap_or(START + self.scenario.end() + T::GRACE);
        self.advance(end)?;
        if let Some(packets) = &mut self.packets {
            packets.write(&mut self.laid, Time::NEVER)?;
        }
        for edge in 0..2 {
            if self.edges[edge].is_empty() {
                self.edges[edge] = self.acked();
            }
        }
        Ok(())
    }

    /// Lets time pass.
    fn advance(&mut self, to: Time) -> anyhow::Result<()> {
        self.traffic.advance(&mut self.laid, to)?;
        match &mut self.packets {
            Some(packets) => packets.write(&mut self.laid, to),
            None => Ok(()),
        }
    }

    /// What there is to do, in the order of time: of what falls together, readings come first.
    fn agenda(&self, asked: &'s [At]) -> Vec<(Time, Due<'s>)> {
        let scenario = self.scenario;
        let (from, to) = scenario.window();
        let steps = to.div_ceil(self.step.0);
        let mut all: Vec<(Time, Due<'s>)> = (1..=steps).map(|n| (START + Span(n * self.step.0), Due::Step)).collect();
        all.push((START + Span(from), Due::WindowBegins));
        all.push((START + Span(to), Due::WindowEnds));
        let policy = &scenario.policies[self.case.policy].at;
        all.extend(scenario.at.iter().chain(policy).map(|at| (START + at.time, Due::Happens(&at.what))));
        for at in asked {
            match &at.what {
                Happening::Command { machine: usize::MAX, command } => all.push((START + at.time, Due::Asked(command))),
                what => all.push((START + at.time, Due::Happens(what))),
            }
        }
        all.sort_by_key(|(at, _)| *at);
        all.retain(|(at, _)| *at <= START + scenario.end().max(Span(steps * self.step.0)));
        all
    }

    /// Reads what there is to read at the end of a step.
    fn read(&mut self, at: Time) {
        let acked = self.acked();
        for (series, now) in self.progress.iter_mut().zip(acked) {
            let before: u64 = series.iter().sum();
            series.push(now.saturating_sub(before));
        }
        for course in &mut self.links {
            course.read(&mut self.laid, self.step);
        }
        for (number, devices) in self.laid.devices.iter().enumerate() {
            let name = &self.scenario.nodes[self.laid.nodes[number]].name;
            let named: Vec<(String, DeviceId)> =
                devices.iter().map(|(device, id)| (format!("{name}:{device}"), *id)).collect();
            if let Some(machine) = self.laid.world.net.machine.get(number) {
                let named = named.iter().map(|(name, id)| (name.as_str(), *id));
                self.courses.read(&mut machine.gateway, named, Roots::All, at);
            }
        }
        for (device, qdiscs, classes) in self.traffic.standing() {
            let name = self.scenario.device_name(device);
            self.courses.read_device(&name, &qdiscs, &classes, Roots::All);
            let root = qdiscs.iter().find(|qdisc| qdisc.parent == Handle::ROOT);
            let (cable, up) = self.scenario.wire(device).unzip();
            let course = self.links.iter_mut().find(|course| Some(course.cable) == cable && Some(course.up) == up);
            if let Some((course, root)) = course.zip(root) {
                course.behind(&root.stats);
            }
        }
        self.courses.end_step();
    }

    fn happens(&mut self, what: &Happening) {
        match what {
            Happening::Command { machine, command } => {
                if let Some(number) = self.laid.nodes.iter().position(|node| node == machine) {
                    self.tell(number, command);
                }
            }
            Happening::Link { cable, lines } => {
                let [up, down] = &**lines;
                for (there, line) in [(true, up), (false, down)] {
                    self.change(*cable, there, line);
                }
                let what = document::change_in_words(up, down);
                let on = self.scenario.cables[*cable].name.clone();
                self.note(on, what, String::new());
            }
            // Scripts were taken in before the first run.
            Happening::Script { .. } => {}
        }
    }

    fn note(&mut self, on: String, what: String, output: String) {
        let at = self.laid.world.net.now().since(START).0;
        self.events.push(doc::Event { at, on, what, output });
    }

    /// Tells a machine something, as on its shell, and follows what that changes about its devices.
    fn tell(&mut self, number: usize, command: &Command) {
        let host = &mut self.laid.hosts[number];
        let reply = self.laid.world.net.with_machine(|machines, pool, now| {
            let simulated = machines.get(number)?;
            host.now = now;
            std::mem::swap(&mut host.gateway, &mut simulated.gateway);
            let reply = prepare::told(&mut host.shim(pool, &mut simulated.draws), &command.words);
            std::mem::swap(&mut host.gateway, &mut simulated.gateway);
            Some(reply)
        });
        let said = reply.map(|reply| [reply.stdout, reply.stderr].concat()).unwrap_or_default();
        let on = self.scenario.nodes[self.laid.nodes[number]].name.clone();
        self.note(on, command.line(), String::from_utf8_lossy(&said).into_owned());
        self.follow_rings();
    }

    /// The rings of all devices, as ethtool tells them.
    fn rings_now(&mut self) -> Vec<Vec<u32>> {
        let mut all = Vec::new();
        for (number, devices) in self.laid.devices.iter().enumerate() {
            let Some(machine) = self.laid.world.net.machine.get(number) else { continue };
            all.push(devices.iter().map(|(_, id)| machine.gateway.spec(*id).ring).collect());
        }
        all
    }

    /// A ring that was changed is the link's.
    fn follow_rings(&mut self) {
        let now = self.rings_now();
        let before = std::mem::replace(&mut self.rings, now.clone());
        for (cable, of) in self.scenario.cables.iter().enumerate() {
            for (up, end) in [(true, of.ends.first()), (false, of.ends.last())] {
                let Some((end, device)) = end.and_then(|end| Some((end, end.device?))) else { continue };
                let Some(number) = self.laid.nodes.iter().position(|node| *node == end.node) else { continue };
                let (Some(had), Some(has)) = (before[number].get(device), now[number].get(device)) else { continue };
                if had != has {
                    for link in self.laid.world.links(cable, up) {
                        self.laid.world.net.change_link(link, LinkChange::Ring(*has));
                    }
                }
            }
        }
    }

    /// Changes a direction of a link as far as that is told.
    fn change(&mut self, cable: usize, up: bool, line: &Line) {
        let of = &self.scenario.cables[cable];
        let from = if up { of.ends.first() } else { of.ends.last() };
        let role = from.map_or(Role::Relay, |end| self.scenario.nodes[end.node].role);
        let mut changes = Vec::new();
        changes.extend(line.rate.map(|rate| LinkChange::Rate(Some(rate))));
        changes.extend(line.packet_rate.map(|rate| LinkChange::PacketRate(Some(rate).filter(|rate| *rate > 0))));
        changes.extend(line.delay.map(LinkChange::Delay));
        changes.extend(line.ring.map(LinkChange::Ring));
        changes.extend(line.bql.map(|bytes| LinkChange::QueueLimit(Some(bytes))));
        if line.buffer.is_some() {
            let usual = if up { &of.up } else { &of.down };
            let whole = Line { rate: line.rate.or(usual.rate), ..line.clone() };
            changes.push(LinkChange::Limit(lay::limit(&whole, role)));
        }
        for link in self.laid.world.links(cable, up) {
            for change in &changes {
                self.laid.world.net.change_link(link, *change);
            }
            if let Some(impairment) = &line.impairment {
                self.laid.world.net.impair(link, impairment.clone());
            }
        }
        if let Some(rate) = line.rate {
            let course = self.links.iter_mut().find(|course| course.cable == cable && course.up == up);
            if let Some(course) = course {
                course.rate = rate;
            }
        }
    }
}

impl LinkCourse {
    /// Both directions of every cable.
    pub(super) fn all(scenario: &Scenario, policy: usize, world: &World) -> Vec<LinkCourse> {
        let mut all = Vec::new();
        for (cable, of) in scenario.cables.iter().enumerate() {
            for (up, line) in [(true, &of.up), (false, &of.down)] {
                let links = world.links(cable, up);
                let own = scenario.policies[policy].links.iter().find(|(of, ..)| *of == cable);
                let own = own.and_then(|(_, there, back)| if up { there.rate } else { back.rate });
                let rate = own.or(line.rate).or(line.trace.as_ref().map(|trace| trace.mean_rate())).unwrap_or(0);
                let counted = rate == 0 || line.trace.is_some();
                all.push(LinkCourse { cable, up, links, rate, counted, ..LinkCourse::default() });
            }
        }
        all
    }

    /// What it did in the last step that was read: bytes carried, bytes waiting at its end, packets lost.
    pub(super) fn last_step(&self) -> (u64, u64, u32) {
        let last = |series: &[u64]| series.last().copied().unwrap_or(0);
        (last(&self.sent), last(&self.backlog), self.dropped.last().copied().unwrap_or(0))
    }

    /// Reads what the direction did since the last step.
    pub(super) fn read(&mut self, laid: &mut Laid, step: Span) {
        let net = &mut laid.world.net;
        let (mut busy, mut bytes, mut backlog, mut dropped) = (0, 0, 0, 0);
        for &link in &self.links {
            let LinkStats { sent_bytes, dropped: refused, lost, .. } = net.link_stats(link);
            busy += net.link_worked(link).0;
            backlog += net.link_backlog(link).1;
            bytes += sent_bytes;
            dropped += refused + lost;
        }
        // What has a rate tells by its time what it carried, framing included; elsewhere frames are counted.
        let so_far = if self.counted { bytes.saturating_sub(backlog) } else { busy };
        let new = so_far.saturating_sub(self.last.0);
        let carried = if self.counted { new } else { (u128::from(new) * u128::from(self.rate) / 8_000_000_000) as u64 };
        self.sent.push(carried);
        self.capacity
            .push((u128::from(self.rate) * u128::from(step.0) / 8_000_000_000) as u64 * self.links.len() as u64);
        self.backlog.push(backlog);
        self.dropped.push(dropped.saturating_sub(self.last.1) as u32);
        self.last = (so_far, dropped);
    }

    /// What was lost in the step that was just read at a root that is not in the network's model. What waits there is its classes'.
    fn behind(&mut self, root: &QueueStats) {
        let lost = root.drops.saturating_sub(self.root_drops);
        self.root_drops = root.drops;
        if let Some(dropped) = self.dropped.last_mut() {
            *dropped += lost;
        }
    }

    /// Had it a rate at any time?
    pub(super) fn has_rate(&self) -> bool {
        self.capacity.iter().any(|bytes| *bytes > 0)
    }
}
