//! A home and its link: hosts on a LAN, the gateway, a modem with a big dumb buffer, the Internet, a server.
//!
//! hosts - LAN - gateway \[the policy on the WAN device\] - modem \[drop-tail\] = uplink - Internet - server,
//! and back through the provider's drop-tail queue. The device in front of the modem is much faster than the
//! uplink: what the policy sends too early is queued in the modem, where no policy decides.

mod traffic;

pub use traffic::{Bulk, DatagramTraffic, HomeTraffic, Local, Parties, PingTraffic, TransactionTraffic};

use crate::link::{LinkFraming, LinkId, LinkPeer, LinkQueue, LinkSpec, LinkStats, Trace};
use crate::machine::{Forwarder, Limit, Port};
use crate::net::Net;
use crate::probe::{EchoSample, ProbePacket, ProbeSpec, SourceSpec};
use crate::tcp_flow::{FlowSample, FlowSpec, FlowStats};
use crate::transaction::{Completion, TransactionSpec};
use crate::transport_meta::{FlowId, PathId, ProbeId, SourceId, TransactionId};
use alloc::vec::Vec;
use tidegate_packet::{Nanos, Time};

/// The link and what is done with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeSpec {
    /// Uplink, bits per second.
    pub up: u64,
    /// Downlink, bits per second.
    pub down: u64,
    /// The modem's buffer before the uplink, bytes of frames.
    pub up_buffer: u64,
    /// The provider's buffer before the downlink, bytes of frames.
    pub down_buffer: u64,
    /// What each frame costs on uplink and downlink.
    pub framing: LinkFraming,
    /// From the modem to the server, one way.
    pub delay: Nanos,
    /// The LAN, bits per second.
    pub lan: u64,
    /// Bytes of the largest network packet on the way: what hosts agree on when they connect (RFC 9293,
    /// section 3.7.1).
    pub mtu: u32,
    /// The cable from the gateway to the modem, bits per second.
    pub cable: u64,
    /// Frames the device before the modem takes ahead of what it sends.
    pub ring: u32,
    /// Its byte queue limit (BQL), if it has one.
    pub queue_limit: Option<u32>,
    /// The machine's WAN device.
    pub wan_port: Port,
    /// The device before the modem, if the WAN device is stacked on another (ppp0 on eth0).
    pub beneath: Option<Port>,
    /// The machine's LAN device, if its policy is to be met on the way in.
    pub lan_port: Option<Port>,
    /// Devices that give back what is redirected to them (ifb).
    pub returning: Vec<Port>,
    /// Hosts' irregularity: uniform up to this for each packet.
    pub jitter: Nanos,
    /// Transfers, pings and the like that continue during the run.
    pub traffic: Vec<HomeTraffic>,
    /// How long the run settles before it is measured.
    pub warm_up: Nanos,
    /// How long it is measured after that.
    pub duration: Nanos,
    /// The seed of all random draws: the same gives the same run, to the byte.
    pub seed: u64,
}

/// What wires carry, bits per second.
const WIRES: [u64; 4] = [100_000_000, 1_000_000_000, 10_000_000_000, 100_000_000_000];

/// The slowest usual wire that is faster than a line, bits per second: LAN and the cable to the modem are not
/// to be the bottleneck.
pub fn wire(line: u64) -> u64 {
    WIRES.into_iter().find(|wire| *wire > line).unwrap_or(WIRES[3])
}

impl HomeSpec {
    /// A link of these rates with customary other values: wires that are faster than it, 24 kB before the
    /// uplink, 64 kB or a quarter of a second before the downlink, 10 ms one way, measured for a minute with
    /// a ping each second.
    pub fn new(up: u64, down: u64) -> HomeSpec {
        HomeSpec {
            up,
            down,
            up_buffer: 24_000,
            down_buffer: (down / 32).max(64_000),
            framing: LinkFraming::default(),
            delay: Nanos::millis(10),
            lan: wire(up.max(down)),
            mtu: 1500,
            cable: wire(up.max(down)),
            ring: 1,
            queue_limit: None,
            wan_port: Port(0),
            beneath: None,
            lan_port: None,
            returning: Vec::new(),
            jitter: Nanos::micros(50),
            traffic: alloc::vec![HomeTraffic::Ping(PingTraffic::every(Nanos::secs(1)))],
            warm_up: Nanos::secs(10),
            duration: Nanos::secs(60),
            seed: 1,
        }
    }

    /// Payload of a full segment, with timestamps.
    fn mss(&self, v6: bool) -> u32 {
        self.mtu.saturating_sub(if v6 { 72 } else { 52 }).max(1)
    }

    /// With this going on too.
    pub fn with(mut self, traffic: impl IntoIterator<Item = HomeTraffic>) -> HomeSpec {
        self.traffic.extend(traffic);
        self
    }
}

/// What a transfer did while it was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowResult {
    /// Payload bytes acknowledged while measured.
    pub acked: u64,
    /// Everything since its start.
    pub total: FlowStats,
    /// Its record, each 100 ms from its start.
    pub samples: Vec<FlowSample>,
}

/// The outcome of one item of the traffic.
#[derive(Clone, Debug, PartialEq)]
pub enum TrafficResult {
    /// Of a transfer.
    Bulk(FlowResult),
    /// Of echoes.
    Ping(Vec<EchoSample>),
    /// Of datagrams.
    Datagrams(Vec<ProbePacket>),
    /// Of transactions.
    Transaction(Vec<Completion>),
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HomeResult {
    /// The outcome of the traffic, item by item.
    pub outcomes: Vec<TrafficResult>,
    /// The measured window.
    pub window: (Time, Time),
    /// The WAN device, whole run.
    pub wan: LinkStats,
    /// The modem and its uplink, whole run.
    pub modem: LinkStats,
    /// The provider's queue and the downlink, whole run.
    pub provider: LinkStats,
    /// How many events were simulated.
    pub events: u64,
    /// The seed that repeats it.
    pub seed: u64,
}

impl HomeResult {
    /// The results of transfers.
    pub fn flows(&self) -> impl Iterator<Item = &FlowResult> {
        self.outcomes.iter().filter_map(|outcome| match outcome {
            TrafficResult::Bulk(flow) => Some(flow),
            _ => None,
        })
    }

    /// Payload bits per second of all transfers together, while measured.
    pub fn goodput(&self) -> f64 {
        let bytes = self.flows().map(|flow| flow.acked).sum();
        tidegate_measure::bits_per_second(bytes, self.window.1.since(self.window.0).0)
    }

    /// The figures of all echoes sent in the window.
    pub fn pings(&self) -> tidegate_measure::Pings {
        let echoes = self.outcomes.iter().flat_map(|outcome| match outcome {
            TrafficResult::Ping(echoes) => echoes.as_slice(),
            _ => &[],
        });
        let within = echoes.filter(|echo| echo.sent >= self.window.0);
        tidegate_measure::Pings::new(within.map(|echo| echo.rtt.map(|rtt| rtt.0)))
    }
}

/// How long after the measured window answers are still waited for.
const GRACE: Nanos = Nanos::secs(10);

/// An item of the traffic, running.
#[derive(Clone, Copy, Debug)]
enum Running {
    Bulk(FlowId),
    Ping(ProbeId),
    Datagrams(SourceId),
    Transaction(TransactionId),
}

/// The home around a machine, running.
#[derive(Debug)]
pub struct Home<M> {
    /// The network, for the machine in it.
    pub net: Net<M>,
    spec: HomeSpec,
    start: Time,
    wan: LinkId,
    modem: LinkId,
    provider: LinkId,
    running: Vec<Running>,
    before: Vec<u64>,
    after: Vec<u64>,
}

/// The ways through a home.
#[derive(Clone, Copy, Debug)]
struct HomePathIds {
    up: PathId,
    down: PathId,
    /// From and to the gateway itself.
    out: PathId,
    home: PathId,
}

impl<M: Forwarder> Home<M> {
    /// Builds it; the clock is at `start`.
    pub fn new(machine: M, spec: HomeSpec, start: Time) -> Home<M> {
        let mut net = Net::new(machine, spec.seed, start);
        let lan = LinkSpec::drop_tail(spec.lan, Nanos(0), Limit::None).jitter(spec.jitter);
        let from_host = match spec.lan_port {
            Some(port) => net.link(lan.into_port(port)),
            None => net.link(lan),
        };
        let to_host = match spec.lan_port {
            Some(port) => net.link(LinkSpec::port(port, Some(spec.lan), Nanos(0))),
            None => net.link(LinkSpec::drop_tail(spec.lan, Nanos(0), Limit::None)),
        };
        let from_server = net.link(LinkSpec::wire(Nanos(0)).jitter(spec.jitter));
        let wire = |port| LinkSpec {
            waiting: LinkQueue::Port { port, ring: spec.ring, bytes: spec.queue_limit },
            ..LinkSpec::port(port, Some(spec.cable), Nanos(0))
        };
        let (wan, lower) = match spec.beneath {
            None => (net.link(wire(spec.wan_port)), None),
            Some(port) => (net.link(LinkSpec::above(spec.wan_port)), Some(net.link(wire(port)))),
        };
        for &port in &spec.returning {
            net.link(LinkSpec::returning(port));
        }
        let shaped = |rate, limit| LinkSpec {
            framing: spec.framing,
            ..LinkSpec::drop_tail(rate, spec.delay, Limit::Bytes(limit))
        };
        let modem = net.link(shaped(spec.up, spec.up_buffer));
        let outside = spec.beneath.unwrap_or(spec.wan_port);
        let provider =
            net.link(LinkSpec { peer: LinkPeer::Port(outside), ..shaped(spec.down, spec.down_buffer) });

        let away: Vec<LinkId> = [Some(wan), lower, Some(modem)].into_iter().flatten().collect();
        let from_lan: Vec<LinkId> = core::iter::once(from_host).chain(away.iter().copied()).collect();
        let ways = HomePathIds {
            up: net.path(&from_lan),
            down: net.path(&[from_server, provider, to_host]),
            out: net.path(&away),
            home: net.path(&[from_server, provider]),
        };
        net.sample_every(Nanos::millis(100));
        let running = spec.traffic.iter().map(|item| begin(&mut net, &spec, start, ways, item)).collect();
        Home { net, spec, start, wan, modem, provider, running, before: Vec::new(), after: Vec::new() }
    }

    /// Lets the uplink and the downlink follow recordings from now on, in what these have: rate, delay, loss.
    pub fn follow(&mut self, up: Option<Trace>, down: Option<Trace>) {
        for (link, trace) in [(self.modem, up), (self.provider, down)] {
            if let Some(trace) = trace {
                self.net.follow(link, trace);
            }
        }
    }

    /// Where the measured window begins and ends.
    pub fn window(&self) -> (Time, Time) {
        let from = self.start + self.spec.warm_up;
        (from, from + self.spec.duration)
    }

    /// Runs to `until`, or to the end; returns whether that is reached. The result does not depend on the
    /// steps taken.
    pub fn run(&mut self, until: Time) -> bool {
        let (from, to) = self.window();
        if self.before.is_empty() && until >= from {
            self.net.run(from);
            self.before = self.progress();
        }
        if self.after.is_empty() && until >= to {
            self.net.run(to);
            self.after = self.progress();
        }
        self.net.run(until.min(to + GRACE));
        until >= to + GRACE
    }

    /// Payload bytes delivered so far by each item: a transfer's acknowledged ones; 0 for all others.
    pub fn progress(&self) -> Vec<u64> {
        let bytes = |running: &Running| match running {
            Running::Bulk(flow) => self.net.flow_stats(*flow).acked,
            _ => 0,
        };
        self.running.iter().map(bytes).collect()
    }

    /// Bytes that wait in the modem and at the provider now.
    pub fn buffers(&mut self) -> [u64; 2] {
        [self.modem, self.provider].map(|link| self.net.link_backlog(link).1)
    }

    /// Bytes of frames that uplink and downlink have carried so far.
    pub fn carried(&mut self) -> [u64; 2] {
        // What was taken into the queue is counted as sent.
        [self.modem, self.provider].map(|link| {
            let waiting = self.net.link_backlog(link).1;
            self.net.link_stats(link).sent_bytes.saturating_sub(waiting)
        })
    }

    /// Runs what is left, and gives the result and the machine.
    pub fn finish(mut self) -> (HomeResult, M) {
        self.run(Time::NEVER);
        let outcomes =
            self.running.iter().enumerate().map(|(i, running)| self.outcome(i, *running)).collect();
        let result = HomeResult {
            outcomes,
            window: self.window(),
            wan: self.net.link_stats(self.wan),
            modem: self.net.link_stats(self.modem),
            provider: self.net.link_stats(self.provider),
            events: self.net.events(),
            seed: self.spec.seed,
        };
        (result, self.net.machine)
    }

    fn outcome(&self, i: usize, running: Running) -> TrafficResult {
        match running {
            Running::Bulk(flow) => TrafficResult::Bulk(FlowResult {
                acked: self.after[i] - self.before[i],
                total: self.net.flow_stats(flow),
                samples: self.net.flow_samples(flow).to_vec(),
            }),
            Running::Ping(ping) => TrafficResult::Ping(self.net.echoes(ping).to_vec()),
            Running::Datagrams(source) => TrafficResult::Datagrams(self.net.source_stats(source).packets),
            Running::Transaction(transaction) => {
                TrafficResult::Transaction(self.net.completions(transaction))
            }
        }
    }
}

fn begin<M: Forwarder>(
    net: &mut Net<M>,
    spec: &HomeSpec,
    start: Time,
    ways: HomePathIds,
    item: &HomeTraffic,
) -> Running {
    let end = start + spec.warm_up + spec.duration;
    let paths = |parties: &Parties| match parties.local {
        Local::Gateway => (ways.out, ways.home),
        Local::Host(_) | Local::At(_) => (ways.up, ways.down),
    };
    match item {
        HomeTraffic::Bulk(bulk) => {
            let ((away, home), ends) = (paths(&bulk.parties), bulk.parties.ends());
            let base = if bulk.up {
                FlowSpec::bulk(ends, away, home)
            } else {
                FlowSpec::bulk(ends.back(), home, away)
            };
            Running::Bulk(net.tcp(FlowSpec {
                control: bulk.control,
                ecn: bulk.ecn,
                bytes: bulk.bytes,
                dsfield: bulk.parties.dsfield,
                mss: spec.mss(bulk.parties.v6),
                local: bulk.up && bulk.parties.local == Local::Gateway,
                start: start + bulk.start,
                called: bulk.called,
                // Beyond the window, so that queues are as they were until its very end.
                stop: end + Nanos::secs(1),
                ..base
            }))
        }
        HomeTraffic::Ping(ping) => {
            let (forward, back) = paths(&ping.parties);
            Running::Ping(net.ping(ProbeSpec {
                ends: ping.parties.ends(),
                forward,
                back,
                start: start + ping.start,
                stop: end,
                interval: ping.interval,
                data: ping.data,
                dsfield: ping.parties.dsfield,
            }))
        }
        HomeTraffic::Datagrams(datagrams) => {
            let ((away, home), ends) = (paths(&datagrams.parties), datagrams.parties.ends());
            let (ends, path) = if datagrams.up { (ends, away) } else { (ends.back(), home) };
            Running::Datagrams(net.source(SourceSpec {
                protocol: datagrams.protocol,
                start: start + datagrams.start,
                stop: end,
                dsfield: datagrams.parties.dsfield,
                record: true,
                ..SourceSpec::steady(ends, path, datagrams.frame(), datagrams.interval)
            }))
        }
        HomeTraffic::Transaction(transaction) => {
            let ((forward, back), ends) = (paths(&transaction.parties), transaction.parties.ends());
            Running::Transaction(net.transaction(TransactionSpec {
                what: transaction.what.clone(),
                client: ends.src,
                server: ends.dst,
                first_port: ends.sport,
                dsfield: transaction.parties.dsfield,
                mss: spec.mss(transaction.parties.v6),
                forward,
                back,
                start: start + transaction.start,
                stop: end,
            }))
        }
    }
}
