//! From an item of a scenario to traffic in the network.

use crate::lay::{self, LaidOut, START};
use crate::model::{DatagramPacing, NodeRole, Scenario, TrafficItem, TrafficKind};
use crate::transactions;
use std::net::IpAddr;
use tidegate_packet::header::proto;
use tidegate_packet::{Nanos, Time};
use tidegate_sim::world::NodePath;
use tidegate_sim::{
    ArrivalProcess, EcnCodepoint, Ends, FlowId, FlowSpec, Machines, Net, ProbeId, ProbeSpec, SourceId,
    SourceSpec, Transaction, TransactionId, TransactionSpec,
};

/// The largest network packet where no link sets one.
const USUAL_MTU: u32 = 1500;

/// Running traffic, in the network.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Going {
    Flow(FlowId),
    /// ssh's login; the transfer follows when it has ended.
    Login(TransactionId, FlowSpec),
    Source(SourceId),
    Ping(ProbeId),
    Transaction(TransactionId),
}

/// The ends, the paths, and the times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Talk {
    src: IpAddr,
    dst: IpAddr,
    there: NodePath,
    back: NodePath,
    /// The first port of the side that opens connections.
    sport: u16,
    mss: u32,
    start: Time,
    stop: Time,
}

impl Talk {
    /// Of an item; `None`: there is no way.
    pub(crate) fn of(
        scenario: &Scenario,
        laid: &mut LaidOut,
        item: &TrafficItem,
        sport: u16,
    ) -> Option<Talk> {
        let (there, back) = (laid.world.way(item.from, item.to)?, laid.world.way(item.to, item.from)?);
        let src = lay::address(scenario, laid, item.from, there.first);
        let dst = lay::address(scenario, laid, item.to, there.last);
        let start = START + item.start;
        let stop = START + item.stop.unwrap_or(scenario.end());
        let mss = mss(scenario, laid, item, src.is_ipv6());
        Some(Talk { src, dst, there, back, sport, mss, start, stop })
    }

    /// The n-th of several: they have their own ports, and do not all begin in one instant.
    pub(crate) fn nth(self, n: u32) -> Talk {
        let start = self.start + Nanos::millis(10 * u64::from(n));
        Talk { sport: self.sport.wrapping_add(n as u16), start, ..self }
    }

    /// Sets an item going.
    pub(crate) fn begin(self, scenario: &Scenario, net: &mut Net<Machines>, item: &TrafficItem) -> Going {
        match &item.what {
            TrafficKind::Tcp { login: false, .. } => Going::Flow(net.tcp(self.transfer(scenario, item))),
            TrafficKind::Tcp { .. } => {
                let spec = self.transfer(scenario, item);
                let asker = if spec.called { self.turned() } else { self };
                // Once: the next would begin when none begins any more.
                let once = Talk { stop: self.start + Nanos(1), ..asker };
                let what = Transaction { port: item.port, ..transactions::login() };
                Going::Login(net.transaction(once.transaction(item, what)), spec)
            }
            TrafficKind::Udp { payload, every, pace } => {
                let arrivals = match *pace {
                    DatagramPacing::Even => ArrivalProcess::Every(*every),
                    DatagramPacing::Late(late) => ArrivalProcess::Around { every: *every, late },
                    DatagramPacing::Poisson => ArrivalProcess::Poisson(*every),
                };
                let spec = SourceSpec { arrivals, ..self.datagrams(item, *payload, *every) };
                Going::Source(net.source(spec))
            }
            TrafficKind::Ping { payload, every, count } => {
                Going::Ping(net.ping(self.echoes(item, *payload, *every, *count)))
            }
            TrafficKind::Request { every, request, reply } => {
                let what = transactions::request(*every, item.port, *request, *reply);
                Going::Transaction(net.transaction(self.transaction(item, what)))
            }
            TrafficKind::Dns { every } => {
                let what = Transaction { every: *every, ..transactions::dns() };
                Going::Transaction(net.transaction(self.transaction(item, what)))
            }
            TrafficKind::Ssh { every } => {
                let what = Transaction { every: *every, port: item.port, ..transactions::login() };
                Going::Transaction(net.transaction(self.transaction(item, what)))
            }
            TrafficKind::Web { every, shape, patience } => {
                let page = shape.map_or_else(transactions::page, transactions::page_like);
                let patience = patience.unwrap_or(page.patience);
                let what = Transaction { every: *every, port: item.port, patience, ..page };
                Going::Transaction(net.transaction(self.transaction(item, what)))
            }
        }
    }

    /// Seen from the other side.
    fn turned(self) -> Talk {
        Talk { src: self.dst, dst: self.src, there: self.back, back: self.there, ..self }
    }

    fn ends(self, dport: u16) -> Ends {
        Ends { src: self.src, dst: self.dst, sport: self.sport, dport }
    }

    fn transfer(self, scenario: &Scenario, item: &TrafficItem) -> FlowSpec {
        let TrafficKind::Tcp { bytes, tcp, receiver_opens, .. } = &item.what else {
            return FlowSpec::bulk(self.ends(item.port), self.there.path, self.back.path);
        };
        let (sender, receiver) = (&scenario.nodes[item.from], &scenario.nodes[item.to]);
        let own = tcp.or(sender.tcp);
        let ends = self.ends(item.port);
        let ends = if *receiver_opens { Ends { sport: item.port, dport: self.sport, ..ends } } else { ends };
        let usual = FlowSpec::bulk(ends, self.there.path, self.back.path);
        FlowSpec {
            control: own.control(),
            // A receiver accepts ECN when it is requested, unless it is configured not to.
            ecn: if receiver.tcp.ecn == Some(EcnCodepoint::Off) { EcnCodepoint::Off } else { own.ecn() },
            bytes: *bytes,
            dsfield: item.dsfield,
            mss: self.mss,
            initial_window: own.initial_window.unwrap_or(usual.initial_window),
            receive_window: tcp
                .or(receiver.tcp)
                .receive_window
                .or(own.receive_window)
                .unwrap_or(usual.receive_window),
            delayed_ack: tcp.or(receiver.tcp).delayed_ack.unwrap_or(usual.delayed_ack),
            send_buffer: own.send_buffer.unwrap_or(usual.send_buffer),
            small_queues: own.small_queues.unwrap_or(usual.small_queues),
            called: *receiver_opens,
            local: sender.role == NodeRole::Machine,
            start: self.start,
            // Beyond the window, so that queues are as they were until its very end.
            stop: if item.stop.is_some() { self.stop } else { self.stop + Nanos::secs(1) },
            ..usual
        }
    }

    fn datagrams(self, item: &TrafficItem, payload: u32, every: Nanos) -> SourceSpec {
        let headers = if self.src.is_ipv6() { 62 } else { 42 };
        SourceSpec {
            protocol: proto::UDP,
            start: self.start,
            stop: self.stop,
            dsfield: item.dsfield,
            record: true,
            ..SourceSpec::steady(self.ends(item.port), self.there.path, headers + payload, every)
        }
    }

    fn echoes(self, item: &TrafficItem, payload: u32, every: Nanos, count: Option<u64>) -> ProbeSpec {
        let last = count.map_or(self.stop, |count| self.start + Nanos(every.0.saturating_mul(count)));
        ProbeSpec {
            ends: self.ends(0),
            forward: self.there.path,
            back: self.back.path,
            start: self.start,
            stop: self.stop.min(last),
            interval: every,
            data: payload,
            dsfield: item.dsfield,
        }
    }

    fn transaction(self, item: &TrafficItem, what: Transaction) -> TransactionSpec {
        TransactionSpec {
            what,
            client: self.src,
            server: self.dst,
            first_port: self.sport,
            dsfield: item.dsfield,
            mss: self.mss,
            forward: self.there.path,
            back: self.back.path,
            start: self.start,
            stop: self.stop,
        }
    }
}

/// Payload of a full segment, with timestamps: what the ways carry (RFC 9293, section 3.7.1).
fn mss(scenario: &Scenario, laid: &mut LaidOut, item: &TrafficItem, v6: bool) -> u32 {
    let of_cable = |cable: usize| scenario.cables[cable].mtu.unwrap_or(USUAL_MTU);
    let ways = [(item.from, item.to), (item.to, item.from)];
    let least = ways.iter().filter_map(|(from, to)| laid.world.narrowest(*from, *to, &of_cable)).min();
    least.unwrap_or(USUAL_MTU).min(USUAL_MTU).saturating_sub(if v6 { 72 } else { 52 }).max(1)
}
