//! Real traffic: real hosts at the edges of the run's network, driven by the machine's clock.

use super::error::{Context, Result, impossible, missing};
use super::hosts::{Hosts, linux_name, machines};
use super::kernel;
use super::scheduling::SchedulingOptions;
use crate::load::{
    self, DatagramLoad, DatagramsPlan, LoadClock, PingLoad, PingPlan, ProgramLoad, ProgramPlan,
    TransactionLoad, TransactionPlan, TransactionRecord, TransferLoad, TransferPlan,
};
use crate::{Driver, Edges, LabHost};
use std::net::{IpAddr, SocketAddr};
use tidegate_measure::experiment as doc;
use tidegate_packet::{Nanos, Time};
use tidegate_policy::dump::{ClassDump, QdiscDump};
use tidegate_scenario::document::{self, control_name, name, per_step, piece_id, transaction_probes};
use tidegate_scenario::lay::{self, LaidOut, START};
use tidegate_scenario::model::{self as scenario, DatagramPacing, Scenario, TrafficItem, TrafficKind};
use tidegate_scenario::run::{Outside, ScenarioRun, TrafficDriver};
use tidegate_scenario::transactions;
use tidegate_sim::Transaction;
use tidegate_sys::scheduling::SchedulingGuard;

/// The traffic of one run.
pub(super) struct RealTraffic<'s> {
    /// The kernel's configuration, if it is a machine of the run.
    plan: Option<kernel::Plan>,
    scheduling: SchedulingOptions,
    /// Segments that hosts may hand over as one; `None`: as the kernel likes.
    segments: Option<u32>,
    stage: Option<Stage>,
    pieces: Vec<Piece>,
    /// The user's programs, with where they run and their lines.
    programs: Vec<(String, String, ProgramLoad)>,
    /// Hears of those that failed.
    say: &'s dyn Fn(&str),
}

/// What there is once hosts are.
struct Stage {
    /// The machine that the kernel is.
    arm: Option<kernel::Arm>,
    /// They are there as long as this is.
    _hosts: Hosts,
    _turn: SchedulingGuard,
    driver: Driver,
    edges: Edges,
    clock: LoadClock,
}

/// One thing that continues: of which item, which of several, and what it is.
struct Piece {
    item: usize,
    number: u32,
    going: Going,
    /// Of a transfer: window and round trip at the end of each step.
    samples: Vec<(u32, u64)>,
}

enum Going {
    /// The n-th connection of some.
    Flow(std::rc::Rc<TransferLoad>),
    Ping(PingLoad),
    Datagrams(DatagramLoad),
    Transaction(TransactionLoad),
}

/// The ends of a transfer or transaction, and its times.
struct TrafficContext<'h> {
    from: &'h LabHost,
    to: Option<&'h LabHost>,
    address: IpAddr,
    start: u64,
    stop: u64,
}

impl<'s> RealTraffic<'s> {
    /// None yet.
    pub(super) fn new(
        (effort, single_segments): (SchedulingOptions, bool),
        plan: Option<kernel::Plan>,
        say: &'s dyn Fn(&str),
    ) -> RealTraffic<'s> {
        RealTraffic {
            plan,
            scheduling: effort,
            segments: single_segments.then_some(1),
            stage: None,
            pieces: Vec::new(),
            programs: Vec::new(),
            say,
        }
    }

    fn stage(&mut self) -> Result<&mut Stage> {
        self.stage.as_mut().ok_or_else(missing("the hosts are not there yet"))
    }
}

impl Drop for RealTraffic<'_> {
    fn drop(&mut self) {
        // Threads look at the clock; when all have ended, so have the namespaces.
        if let Some(stage) = &self.stage {
            stage.clock.end();
        }
    }
}

impl TrafficDriver for RealTraffic<'_> {
    const GRACE: Nanos = Nanos::secs(3);

    fn begin(run: &mut ScenarioRun<'_, Self>) -> Result<(), Outside> {
        Ok(set_up(run)?)
    }

    fn installed(&mut self) -> Vec<(usize, Vec<QdiscDump>, Vec<ClassDump>)> {
        self.stage
            .as_mut()
            .and_then(|stage| stage.arm.as_mut())
            .map(kernel::Arm::installed)
            .unwrap_or_default()
    }

    fn advance(&mut self, laid: &mut LaidOut, to: Time) -> Result<(), Outside> {
        let Stage { driver, edges, .. } = self.stage()?;
        Ok(driver.run(&mut laid.world, edges, to).context("the hosts' devices are gone")?)
    }

    fn step_ended(&mut self, _: &mut LaidOut, _: Time) {
        for piece in &mut self.pieces {
            if let Going::Flow(transfer) = &piece.going
                && let Some(info) = transfer.look(piece.number as usize, |flow| flow.info)
            {
                piece.samples.push((info.cwnd, u64::from(info.srtt_us)));
            }
        }
    }

    fn acked(&mut self, _: &LaidOut) -> Vec<u64> {
        let of = |piece: &Piece| match &piece.going {
            Going::Flow(transfer) => {
                transfer.look(piece.number as usize, |flow| flow.info.acked).unwrap_or(0)
            }
            _ => 0,
        };
        self.pieces.iter().map(of).collect()
    }

    fn records(run: &mut ScenarioRun<'_, Self>) -> (Vec<doc::TransferRecord>, Vec<doc::ProbeRecord>) {
        let (mut transfers, mut found) = (Vec::new(), Vec::new());
        for (at, piece) in run.traffic.pieces.iter().enumerate() {
            match &piece.going {
                Going::Flow(of) => transfers.push(transfer(run, at, piece, of)),
                _ => found.extend(probes(run, piece)),
            }
        }
        for (on, line, program) in &run.traffic.programs {
            let end = program.outcome();
            if end.failed() {
                (run.traffic.say)(&format!("on {on}, `{line}` failed:\n{}", end.output().trim_end()));
            }
            let at = end.began.unwrap_or_default();
            run.events.push(doc::EventRecord {
                at,
                on: on.clone(),
                what: line.clone(),
                output: end.output(),
            });
        }
        run.events.sort_by_key(|event| event.at);
        if let Some(address) = run.traffic.stage.as_ref().and_then(|stage| stage.driver.unknown_address) {
            let what = format!("packets went to {address}, an address that no host here has");
            let at = run.laid.world.net.now().since(START).0;
            run.events.push(doc::EventRecord { at, on: "lab".to_owned(), what, output: String::new() });
        }
        (transfers, found)
    }

    fn lateness(&self) -> Option<doc::Lateness> {
        let late = &self.stage.as_ref()?.driver.lateness;
        let (median, p99) = (late.quantile(0.5).0, late.quantile(0.99).0);
        Some(doc::Lateness { packets: late.count(), median, p99, most: late.most().0 })
    }
}

/// Sets the programs of a load going.
fn begin_programs(
    scenario: &Scenario,
    load: usize,
    hosts: &Hosts,
    clock: &LoadClock,
) -> Result<Vec<(String, String, ProgramLoad)>> {
    let begun = |program: &scenario::HostProgram| {
        let host = hosts.of(program.node).ok_or_else(missing("it runs on no host"))?;
        let stop = program.stop.unwrap_or(scenario.end()).0;
        let plan = ProgramPlan { line: program.command.clone(), start: program.start.0, stop };
        Ok((host.name().to_owned(), program.command.clone(), ProgramLoad::begin(clock, host, plan)?))
    };
    scenario.loads[load].programs.iter().map(begun).collect()
}

/// Makes the hosts of a run, and sets its load going.
fn set_up(run: &mut ScenarioRun<'_, RealTraffic<'_>>) -> Result<()> {
    let scenario = run.scenario;
    let (hosts, mut parties, mut tuns) =
        Hosts::new(scenario, &mut run.laid, run.traffic.segments, Vec::new())?;
    let arm =
        run.traffic.plan.as_ref().map(|plan| plan.set_up(scenario, &mut run.laid, &parties)).transpose()?;
    let arm = arm.map(|(arm, ports, ends)| {
        parties.extend(ports);
        tuns.extend(ends);
        arm
    });
    let turn = run.traffic.scheduling.begin()?;
    let ports = (0..scenario.ports()).map(|device| scenario.port(device)).collect();
    let driver = Driver::new(parties, &machines(scenario, &mut run.laid)).with_ports(ports);
    let edges = Edges::new(tuns, START, run.traffic.scheduling.busy);
    let clock = LoadClock::new(edges.began(), run.traffic.scheduling.realtime);
    let seed = scenario.seed.wrapping_add(u64::from(run.case.repeat));
    let mut pieces = Vec::new();
    for (number, item) in run.load().iter().enumerate() {
        let began =
            begin_item(scenario, &mut run.laid, &hosts, &clock, item, seed.wrapping_add(number as u64));
        let began = began.context(format!("`{}` could not begin", item.id))?;
        let piece = |(n, going)| Piece { item: number, number: n, going, samples: Vec::new() };
        pieces.extend((0..).zip(began).map(piece));
    }
    run.traffic.programs = begin_programs(scenario, run.case.load, &hosts, &clock)?;
    run.traffic.stage = Some(Stage { arm, _hosts: hosts, _turn: turn, driver, edges, clock });
    run.traffic.pieces = pieces;
    Ok(())
}

/// Sets an item going; several pieces where it is several connections.
fn begin_item(
    scenario: &Scenario,
    laid: &mut LaidOut,
    hosts: &Hosts,
    clock: &LoadClock,
    item: &TrafficItem,
    seed: u64,
) -> Result<Vec<Going>> {
    // Beyond a router that the kernel is, ways are the kernel's.
    let (way, back) = (laid.world.way(item.from, item.to), laid.world.way(item.to, item.from));
    if way.is_none() && scenario.kernel.is_none() {
        return impossible("there is no way from its one end to the other");
    }
    if back.is_none() && scenario.kernel.is_none() {
        return impossible("there is no way back");
    }
    let stop = item.stop.unwrap_or(scenario.end()).0;
    let talk = TrafficContext {
        from: hosts.of(item.from).ok_or_else(missing("it begins at no host"))?,
        to: hosts.of(item.to),
        address: lay::address(scenario, laid, item.to, way.and_then(|way| way.last)),
        start: item.start.0,
        stop,
    };
    let source = lay::address(scenario, laid, item.from, back.and_then(|back| back.last));
    Ok(match &item.what {
        TrafficKind::Tcp { .. } => transfers(scenario, clock, &talk, item, source)?,
        TrafficKind::Udp { payload, every, pace } => {
            vec![Going::Datagrams(talk.datagrams(clock, item, *payload, *every, *pace, seed)?)]
        }
        TrafficKind::Ping { payload, every, count } => {
            let last = count.map_or(stop, |count| talk.start.saturating_add(every.0.saturating_mul(count)));
            let plan = PingPlan {
                to: talk.address,
                data: *payload,
                every: every.0,
                start: talk.start,
                stop: stop.min(last),
                dsfield: item.dsfield,
            };
            vec![Going::Ping(PingLoad::begin(clock, talk.from, plan)?)]
        }
        TrafficKind::Request { every, request, reply } => {
            vec![talk.transaction(clock, item, transactions::request(*every, item.port, *request, *reply))?]
        }
        TrafficKind::Dns { every } => {
            vec![talk.transaction(clock, item, Transaction { every: *every, ..transactions::dns() })?]
        }
        TrafficKind::Ssh { every } => {
            vec![talk.transaction(
                clock,
                item,
                Transaction { every: *every, port: item.port, ..transactions::login() },
            )?]
        }
        TrafficKind::Web { every, shape, patience } => {
            let page = shape.map_or_else(transactions::page, transactions::page_like);
            let patience = patience.unwrap_or(page.patience);
            vec![talk.transaction(
                clock,
                item,
                Transaction { every: *every, port: item.port, patience, ..page },
            )?]
        }
        _ => return impossible("real hosts cannot do that yet"),
    })
}

fn transfers(
    scenario: &Scenario,
    clock: &LoadClock,
    talk: &TrafficContext<'_>,
    item: &TrafficItem,
    source: IpAddr,
) -> Result<Vec<Going>> {
    let TrafficKind::Tcp { count, bytes, tcp, receiver_opens, login, .. } = &item.what else {
        return Ok(Vec::new());
    };
    let receiver = talk.to.ok_or_else(missing("it ends at no host"))?;
    let called = if *receiver_opens { source } else { talk.address };
    let plan = TransferPlan {
        count: *count,
        called: SocketAddr::new(called, item.port),
        receiver_opens: *receiver_opens,
        bytes: *bytes,
        control: Some(linux_name(tcp.or(scenario.nodes[item.from].tcp).control()).to_owned()),
        login: login.then(|| Transaction { port: item.port, ..transactions::login() }),
        dsfield: item.dsfield,
        start: talk.start,
        stop: talk.stop,
    };
    let all = std::rc::Rc::new(TransferLoad::begin(clock, talk.from, receiver, &plan)?);
    Ok((0..*count).map(|_| Going::Flow(all.clone())).collect())
}

impl TrafficContext<'_> {
    fn datagrams(
        &self,
        clock: &LoadClock,
        item: &TrafficItem,
        payload: u32,
        every: Nanos,
        pace: DatagramPacing,
        seed: u64,
    ) -> Result<DatagramLoad> {
        let plan = DatagramsPlan {
            to: SocketAddr::new(self.address, item.port),
            payload,
            every: every.0,
            pace: match pace {
                DatagramPacing::Even => load::Pace::Even,
                DatagramPacing::Late(late) => load::Pace::Late(late.0),
                DatagramPacing::Poisson => load::Pace::Poisson,
            },
            start: self.start,
            stop: self.stop,
            dsfield: item.dsfield,
            seed,
        };
        Ok(DatagramLoad::begin(clock, self.from, self.to.ok_or_else(missing("it ends at no host"))?, plan)?)
    }

    fn transaction(&self, clock: &LoadClock, item: &TrafficItem, what: Transaction) -> Result<Going> {
        let (server, start, stop) = (self.address, self.start, self.stop);
        let plan = TransactionPlan { what, server, start, stop, dsfield: item.dsfield };
        Ok(Going::Transaction(TransactionLoad::begin(
            clock,
            self.from,
            self.to.ok_or_else(missing("it ends at no host"))?,
            &plan,
        )?))
    }
}

fn transfer(
    run: &ScenarioRun<'_, RealTraffic<'_>>,
    at: usize,
    piece: &Piece,
    of: &TransferLoad,
) -> doc::TransferRecord {
    let scenario = run.scenario;
    let item = &run.load()[piece.item];
    let TrafficKind::Tcp { tcp, record, count, bytes, .. } = &item.what else {
        return doc::TransferRecord::default();
    };
    let number = piece.number as usize;
    let (began, finished, info) =
        of.look(number, |flow| (flow.began, flow.finished, flow.info)).unwrap_or_default();
    let (cwnd, srtt_us) = if *record { piece.samples.iter().copied().unzip() } else { Default::default() };
    doc::TransferRecord {
        id: piece_id(item, piece.number),
        title: if *count > 1 { format!("{} {}", item.title, piece.number + 1) } else { item.title.clone() },
        from: name(scenario, item.from),
        to: name(scenario, item.to),
        control: control_name(tcp.or(scenario.nodes[item.from].tcp).control()).to_owned(),
        dscp: item.dsfield >> 2,
        began: began.unwrap_or(item.start.0),
        // What has no end is only stopped.
        finished: bytes.and(finished),
        bytes: run.edges[1][at].saturating_sub(run.edges[0][at]),
        retransmissions: info.retransmissions.into(),
        // Which packets were lost only the network knows, without their owners.
        lost: info.retransmissions.into(),
        series: run.progress[at].clone(),
        cwnd,
        srtt_us,
        ..doc::TransferRecord::default()
    }
}

/// Repeated probes; a page has three: until its document, its first paint, and all of it.
fn probes(run: &ScenarioRun<'_, RealTraffic<'_>>, piece: &Piece) -> Vec<doc::ProbeRecord> {
    let scenario = run.scenario;
    let item = &run.load()[piece.item];
    let base = |unit: &str, answers| document::probe(scenario, item, piece.number, unit, answers);
    match &piece.going {
        Going::Flow(_) => Vec::new(),
        Going::Ping(ping) => vec![base("round trip", ping.answers())],
        Going::Datagrams(datagrams) => {
            let mut probe = base("one way", datagrams.times());
            let payload = if let TrafficKind::Udp { payload, .. } = item.what { payload } else { 0 };
            (probe.received, probe.packets) = arrivals(&probe.answers, payload.into(), run);
            vec![probe]
        }
        Going::Transaction(transaction) => {
            let goes = transaction.records();
            let all = |of: &dyn Fn(&TransactionRecord) -> Option<u64>| {
                goes.iter().map(|go| (go.began, of(go))).collect::<Vec<_>>()
            };
            transaction_probes(item, &base, [all(&|go| go.all), all(&|go| go.first), all(&|go| go.paint)])
        }
    }
}

/// Payload bytes and packets that arrived in each step.
fn arrivals(
    answers: &[(u64, Option<u64>)],
    payload: u64,
    run: &ScenarioRun<'_, RealTraffic<'_>>,
) -> (Vec<u64>, Vec<u32>) {
    let arrived = answers.iter().filter_map(|(sent, took)| Some(sent + (*took)?));
    per_step(arrived, payload, run)
}
