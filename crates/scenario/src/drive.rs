//! One run, from its beginning to its end, read step by step.

use crate::document;
use crate::lay::{self, LaidOut, START};
use crate::model::{LinkDirection, MachineCommand, NodeRole, Scenario, TimelineEntry, TimelineEvent};
use crate::prepare::{self, Prepared};
use crate::run::{CaseRun, LinkReadings, Outside, RunError, RunWatch, ScenarioRun, TrafficDriver};
use crate::series::{ClassRecorder, Roots};
use std::sync::atomic::Ordering;
use tidegate_gateway::DeviceId;
use tidegate_measure::experiment as doc;
use tidegate_packet::{Handle, Nanos, Time};
use tidegate_sim::LinkAdjustment;

/// With more classes than this they are read every second only, so that a run stays quick.
const MANY_CLASSES: usize = 256;

/// Something to do at a moment.
enum Due<'s> {
    Step,
    WindowBegins,
    WindowEnds,
    Happens(&'s TimelineEvent),
    Command(&'s MachineCommand),
}

/// Carries out a run from its beginning to its end, or until it is stopped; `asked`: events beside those of
/// the scenario.
///
/// # Errors
/// What a machine refuses of a policy (one that was prepared is not refused), and what keeps the traffic from
/// going on.
pub fn run<T: TrafficDriver>(
    scenario: &Scenario,
    prepared: &Prepared,
    case: CaseRun,
    commands: &[TimelineEntry],
    mut watch: RunWatch<'_>,
    traffic: T,
) -> Result<doc::RunRecord, RunError> {
    let seed = scenario.seed.wrapping_add(u64::from(case.repeat));
    let laid = lay::lay(scenario, prepared, case.policy, seed)?;
    let mut run = ScenarioRun::new(scenario, case, laid, traffic);
    if let Some(observer) = &mut watch.observer {
        observer.begin(scenario, &mut run.laid)?;
    }
    run.begin()?;
    run.go(commands, &mut watch)?;
    Ok(document::run(run, seed))
}

impl<'s, T: TrafficDriver> ScenarioRun<'s, T> {
    fn new(scenario: &'s Scenario, case: CaseRun, laid: LaidOut, traffic: T) -> ScenarioRun<'s, T> {
        let mut run = ScenarioRun {
            scenario,
            case,
            laid,
            traffic,
            progress: Vec::new(),
            edges: [Vec::new(), Vec::new()],
            links: Vec::new(),
            courses: ClassRecorder::default(),
            events: Vec::new(),
            step: scenario.step,
            cut: None,
            rings: Vec::new(),
        };
        run.rings = run.rings_now();
        run.links = LinkReadings::all(scenario, case.policy, &run.laid.world);
        if run.classes() > MANY_CLASSES {
            run.step = run.step.max(Nanos::secs(1));
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

    /// Sets everything going.
    fn begin(&mut self) -> Result<(), Outside> {
        T::begin(self)?;
        self.progress = self.acked().iter().map(|_| Vec::new()).collect();
        Ok(())
    }

    fn acked(&mut self) -> Vec<u64> {
        self.traffic.acked(&self.laid)
    }

    /// Runs to the end of the window and a while beyond.
    fn go(&mut self, commands: &'s [TimelineEntry], watch: &mut RunWatch<'_>) -> Result<(), Outside> {
        let mut seconds = 0;
        for (at, due) in self.agenda(commands) {
            self.advance(at, watch)?;
            match due {
                Due::Step => {
                    self.traffic.step_ended(&mut self.laid, at);
                    self.read(at);
                }
                Due::WindowBegins => self.edges[0] = self.acked(),
                Due::WindowEnds => self.edges[1] = self.acked(),
                Due::Happens(what) => self.happens(what),
                Due::Command(command) => {
                    for number in 0..self.laid.nodes.len() {
                        self.tell(number, command);
                    }
                }
            }
            let now = at.since(START).0 / 1_000_000_000;
            if now > seconds {
                (watch.seconds)(now - seconds);
                seconds = now;
            }
            if watch.stop.load(Ordering::Relaxed) {
                self.cut = Some(at);
                break;
            }
        }
        let end = self.cut.unwrap_or(START + self.scenario.end() + T::GRACE);
        self.advance(end, watch)?;
        if let Some(observer) = &mut watch.observer {
            observer.advanced(&mut self.laid, Time::NEVER)?;
        }
        for edge in 0..2 {
            if self.edges[edge].is_empty() {
                self.edges[edge] = self.acked();
            }
        }
        Ok(())
    }

    /// Lets time pass.
    fn advance(&mut self, to: Time, watch: &mut RunWatch<'_>) -> Result<(), Outside> {
        self.traffic.advance(&mut self.laid, to)?;
        match &mut watch.observer {
            Some(observer) => observer.advanced(&mut self.laid, to),
            None => Ok(()),
        }
    }

    /// What there is to do, in the order of time: of what falls together, readings come first.
    fn agenda(&self, commands: &'s [TimelineEntry]) -> Vec<(Time, Due<'s>)> {
        let scenario = self.scenario;
        let (from, to) = scenario.window();
        let steps = to.div_ceil(self.step.0);
        let mut all: Vec<(Time, Due<'s>)> =
            (1..=steps).map(|n| (START + Nanos(n * self.step.0), Due::Step)).collect();
        all.push((START + Nanos(from), Due::WindowBegins));
        all.push((START + Nanos(to), Due::WindowEnds));
        let policy = &scenario.policies[self.case.policy].at;
        all.extend(scenario.at.iter().chain(policy).map(|at| (START + at.time, Due::Happens(&at.what))));
        for at in commands {
            match &at.what {
                TimelineEvent::Command { machine: usize::MAX, command } => {
                    all.push((START + at.time, Due::Command(command)))
                }
                what => all.push((START + at.time, Due::Happens(what))),
            }
        }
        all.sort_by_key(|(at, _)| *at);
        all.retain(|(at, _)| *at <= START + scenario.end().max(Nanos(steps * self.step.0)));
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
        for (device, qdiscs, classes) in self.traffic.installed() {
            let name = self.scenario.device_name(device);
            self.courses.read_device(&name, &qdiscs, &classes, Roots::All);
            let root = qdiscs.iter().find(|qdisc| qdisc.parent == Handle::ROOT);
            let (cable, up) = self.scenario.wire(device).unzip();
            let course =
                self.links.iter_mut().find(|course| Some(course.cable) == cable && Some(course.up) == up);
            if let Some((course, root)) = course.zip(root) {
                course.behind(&root.stats);
            }
        }
        self.courses.end_step();
    }

    fn happens(&mut self, what: &TimelineEvent) {
        match what {
            TimelineEvent::Command { machine, command } => {
                if let Some(number) = self.laid.nodes.iter().position(|node| node == machine) {
                    self.tell(number, command);
                }
            }
            TimelineEvent::Link { cable, lines } => {
                let [up, down] = &**lines;
                for (there, line) in [(true, up), (false, down)] {
                    self.change(*cable, there, line);
                }
                let what = document::change_in_words(up, down);
                let on = self.scenario.cables[*cable].name.clone();
                self.note(on, what, String::new());
            }
            // Scripts were taken in before the first run.
            TimelineEvent::Script { .. } => {}
        }
    }

    fn note(&mut self, on: String, what: String, output: String) {
        let at = self.laid.world.net.now().since(START).0;
        self.events.push(doc::EventRecord { at, on, what, output });
    }

    /// Tells a machine something, as on its shell, and follows what that changes about its devices.
    fn tell(&mut self, number: usize, command: &MachineCommand) {
        let host = &mut self.laid.hosts[number];
        let reply = self.laid.world.net.with_machine(|machines, pool, now| {
            let simulated = machines.get(number)?;
            host.now = now;
            std::mem::swap(&mut host.gateway, &mut simulated.gateway);
            let reply = prepare::run_command(&mut host.shim(pool, &mut simulated.random), &command.words);
            std::mem::swap(&mut host.gateway, &mut simulated.gateway);
            Some(reply)
        });
        let bytes = reply.map(|reply| [reply.stdout, reply.stderr].concat()).unwrap_or_default();
        let on = self.scenario.nodes[self.laid.nodes[number]].name.clone();
        self.note(on, command.line(), String::from_utf8_lossy(&bytes).into_owned());
        self.follow_rings();
    }

    /// The rings of all devices, as ethtool shows them.
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
                let Some(number) = self.laid.nodes.iter().position(|node| *node == end.node) else {
                    continue;
                };
                let (Some(had), Some(has)) = (before[number].get(device), now[number].get(device)) else {
                    continue;
                };
                if had != has {
                    for link in self.laid.world.links(cable, up) {
                        self.laid.world.net.change_link(link, LinkAdjustment::Ring(*has));
                    }
                }
            }
        }
    }

    /// Changes a direction of a link in the properties that are given.
    fn change(&mut self, cable: usize, up: bool, line: &LinkDirection) {
        let of = &self.scenario.cables[cable];
        let from = if up { of.ends.first() } else { of.ends.last() };
        let role = from.map_or(NodeRole::Relay, |end| self.scenario.nodes[end.node].role);
        let mut changes = Vec::new();
        changes.extend(line.rate.map(|rate| LinkAdjustment::Rate(Some(rate))));
        changes.extend(
            line.packet_rate.map(|rate| LinkAdjustment::PacketRate(Some(rate).filter(|rate| *rate > 0))),
        );
        changes.extend(line.delay.map(LinkAdjustment::Delay));
        changes.extend(line.ring.map(LinkAdjustment::Ring));
        changes.extend(line.bql.map(|bytes| LinkAdjustment::QueueLimit(Some(bytes))));
        if line.buffer.is_some() {
            let usual = if up { &of.up } else { &of.down };
            let whole = LinkDirection { rate: line.rate.or(usual.rate), ..line.clone() };
            changes.push(LinkAdjustment::Limit(lay::limit(&whole, role)));
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
