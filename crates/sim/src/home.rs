//! A home and its link: host A, the gateway, a modem with a big dumb buffer, the Internet, server B.
//!
//! A - LAN - gateway \[the policy on the WAN device\] - modem \[drop-tail\] = uplink - Internet - B, and back through the
//! provider's drop-tail queue. The device in front of the modem is much faster than the uplink: what the policy lets go too
//! early waits in the modem, where nobody decides.

use crate::link::{Framing, LinkId, LinkSpec, LinkStats, Waiting};
use crate::machine::{Limit, Machine, Port};
use crate::net::{FlowId, Net, PathId, ProbeId};
use crate::probe::{Echo, ProbeSpec};
use crate::tcp::cc::CongestionControl;
use crate::tcp_flow::{FlowSample, FlowSpec, FlowStats};
use crate::wire::Ends;
use alloc::vec::Vec;
use tidegate_packet::{Span, Time};

/// What goes on beside the ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Nothing.
    Empty,
    /// Host A sends to B: so many bulk flows, to port 22 as `scp` would.
    Upload(u32),
    /// B sends to host A.
    Download(u32),
    /// A web server on the gateway itself sends to B: source port 80, through OUTPUT; it notices what its own queue refuses.
    Serve(u32),
}

/// The link and what is done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomeSpec {
    /// Uplink, bits per second.
    pub up: u64,
    /// Downlink, bits per second.
    pub down: u64,
    /// The modem's buffer before the uplink, bytes of frames.
    pub up_buffer: u64,
    /// The provider's buffer before the downlink.
    pub down_buffer: u64,
    /// What each frame costs on uplink and downlink.
    pub framing: Framing,
    /// From the modem to B, one way.
    pub delay: Span,
    /// The LAN and the cable to the modem, bits per second.
    pub lan: u64,
    /// Frames the WAN device takes ahead of what it sends.
    pub ring: u32,
    /// The machine's WAN device.
    pub wan_port: Port,
    /// The machine's LAN device, if its policy is to be met on the way in.
    pub lan_port: Option<Port>,
    /// Hosts' irregularity: uniform up to this for each packet.
    pub jitter: Span,
    /// The load.
    pub load: Load,
    /// How its flows react to congestion.
    pub control: CongestionControl,
    /// Its flows use ECN.
    pub ecn: bool,
    /// When the load begins.
    pub load_start: Span,
    /// Each flow's bytes; `None`: no end.
    pub bytes: Option<u64>,
    /// Between pings, from A to B.
    pub ping_interval: Span,
    /// Settling: measuring begins after this.
    pub warm_up: Span,
    /// How long is measured.
    pub duration: Span,
    /// Randomness.
    pub seed: u64,
}

impl HomeSpec {
    /// A link of these rates with customary other values: 24 kB before the uplink, 64 kB or a quarter of a second before
    /// the downlink, 10 ms one way, measured for a minute with a ping each second.
    pub fn new(up: u64, down: u64) -> HomeSpec {
        HomeSpec {
            up,
            down,
            up_buffer: 24_000,
            down_buffer: (down / 32).max(64_000),
            framing: Framing::default(),
            delay: Span::millis(10),
            lan: 100_000_000,
            ring: 1,
            wan_port: Port(0),
            lan_port: None,
            jitter: Span::micros(50),
            load: Load::Empty,
            control: CongestionControl::Cubic,
            ecn: false,
            load_start: Span(0),
            bytes: None,
            ping_interval: Span::secs(1),
            warm_up: Span::secs(10),
            duration: Span::secs(60),
            seed: 1,
        }
    }
}

/// What a flow of the load did while it was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowResult {
    /// Payload bytes acknowledged while measured.
    pub acked: u64,
    /// Everything since its start.
    pub total: FlowStats,
    /// Its record, each 100 ms from its start.
    pub samples: Vec<FlowSample>,
}

/// What was measured.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HomeResult {
    /// Pings sent while measured.
    pub echoes: Vec<Echo>,
    /// The load's flows.
    pub flows: Vec<FlowResult>,
    /// The measured window.
    pub window: (Time, Time),
    /// The WAN device, whole run.
    pub wan: LinkStats,
    /// The modem and its uplink, whole run.
    pub modem: LinkStats,
    /// The provider's queue and the downlink, whole run.
    pub provider: LinkStats,
    /// Events simulated.
    pub events: u64,
    /// The seed that repeats it.
    pub seed: u64,
}

impl HomeResult {
    /// Payload bits per second of all flows together, while measured.
    pub fn goodput(&self) -> f64 {
        let bytes = self.flows.iter().map(|flow| flow.acked).sum();
        tidegate_measure::bits_per_second(bytes, self.window.1.since(self.window.0).0)
    }

    /// The pings' figures.
    pub fn pings(&self) -> tidegate_measure::Pings {
        tidegate_measure::Pings::new(self.echoes.iter().map(|echo| echo.rtt.map(|rtt| rtt.0)))
    }
}

/// How long after the measured window answers are still waited for.
const GRACE: Span = Span::secs(10);

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
    ping: ProbeId,
    flows: Vec<FlowId>,
    before: Vec<u64>,
    after: Vec<u64>,
}

impl<M: Machine> Home<M> {
    /// Builds it; the clock stands at `start`.
    pub fn new(machine: M, spec: HomeSpec, start: Time) -> Home<M> {
        let mut net = Net::new(machine, spec.seed, start);
        let lan = LinkSpec::drop_tail(spec.lan, Span(0), Limit::None).jitter(spec.jitter);
        let from_a = match spec.lan_port {
            Some(port) => net.link(lan.into_port(port)),
            None => net.link(lan),
        };
        let to_a = match spec.lan_port {
            Some(port) => net.link(LinkSpec::port(port, Some(spec.lan), Span(0))),
            None => net.link(LinkSpec::drop_tail(spec.lan, Span(0), Limit::None)),
        };
        let from_b = net.link(LinkSpec::wire(Span(0)).jitter(spec.jitter));
        let wan = LinkSpec {
            waiting: Waiting::Port { port: spec.wan_port, ring: spec.ring },
            ..LinkSpec::port(spec.wan_port, Some(spec.lan), Span(0))
        };
        let wan = net.link(wan);
        let shaped = |rate, limit| LinkSpec {
            framing: spec.framing,
            ..LinkSpec::drop_tail(rate, spec.delay, Limit::Bytes(limit))
        };
        let modem = net.link(shaped(spec.up, spec.up_buffer));
        let provider = net.link(shaped(spec.down, spec.down_buffer).into_port(spec.wan_port));

        let (up, down) = (net.path(&[from_a, wan, modem]), net.path(&[from_b, provider, to_a]));
        let (out, home) = (net.path(&[wan, modem]), net.path(&[from_b, provider]));
        net.sample_every(Span::millis(100));
        let end = start + spec.warm_up + spec.duration;
        let flows = Home::<M>::load(&mut net, &spec, start, [up, down, out, home]);
        let ping = net.ping(ProbeSpec {
            ends: Ends { src: HOST_A, dst: HOST_B, sport: 1, dport: 0 },
            forward: up,
            back: down,
            start: start + Span::millis(500),
            stop: end,
            interval: spec.ping_interval,
            data: 56,
            dsfield: 0,
        });
        Home { net, spec, start, wan, modem, provider, ping, flows, before: Vec::new(), after: Vec::new() }
    }

    fn load(net: &mut Net<M>, spec: &HomeSpec, start: Time, [up, down, out, home]: [PathId; 4]) -> Vec<FlowId> {
        let (count, forward, back, local) = match spec.load {
            Load::Empty => (0, up, down, false),
            Load::Upload(count) => (count, up, down, false),
            Load::Download(count) => (count, down, up, false),
            Load::Serve(count) => (count, out, home, true),
        };
        (0..count)
            .map(|i| {
                let port = 40000 + (i % 20000) as u16;
                let ends = match spec.load {
                    Load::Download(_) => Ends { src: HOST_B, dst: HOST_A, sport: 80, dport: port },
                    Load::Serve(_) => Ends { src: GATEWAY, dst: HOST_B, sport: 80, dport: port },
                    _ => Ends { src: HOST_A, dst: HOST_B, sport: port, dport: 22 },
                };
                net.tcp(FlowSpec {
                    control: spec.control,
                    ecn: spec.ecn,
                    bytes: spec.bytes,
                    local,
                    start: start + spec.load_start + Span::millis(10 * u64::from(i)),
                    stop: start + spec.warm_up + spec.duration,
                    ..FlowSpec::bulk(ends, forward, back)
                })
            })
            .collect()
    }

    /// Where the measured window begins and ends.
    pub fn window(&self) -> (Time, Time) {
        let from = self.start + self.spec.warm_up;
        (from, from + self.spec.duration)
    }

    /// Runs to `until`, or to the end; tells whether that is reached. The result does not depend on the steps taken.
    pub fn run(&mut self, until: Time) -> bool {
        let (from, to) = self.window();
        if self.before.is_empty() && until >= from {
            self.net.run(from);
            self.before = self.acked();
        }
        if self.after.is_empty() && until >= to {
            self.net.run(to);
            self.after = self.acked();
        }
        self.net.run(until.min(to + GRACE));
        until >= to + GRACE
    }

    fn acked(&self) -> Vec<u64> {
        self.flows.iter().map(|&flow| self.net.flow_stats(flow).acked).collect()
    }

    /// Runs what is left, and gives the result and the machine.
    pub fn finish(mut self) -> (HomeResult, M) {
        self.run(Time::NEVER);
        let window = self.window();
        let flows = self
            .flows
            .iter()
            .enumerate()
            .map(|(i, &flow)| FlowResult {
                acked: self.after[i] - self.before[i],
                total: self.net.flow_stats(flow),
                samples: self.net.flow_samples(flow).to_vec(),
            })
            .collect();
        let echoes = self.net.echoes(self.ping).iter().filter(|echo| echo.sent >= window.0).copied().collect();
        let result = HomeResult {
            echoes,
            flows,
            window,
            wan: self.net.link_stats(self.wan),
            modem: self.net.link_stats(self.modem),
            provider: self.net.link_stats(self.provider),
            events: self.net.events(),
            seed: self.spec.seed,
        };
        (result, self.net.machine)
    }
}

/// The home's host.
const HOST_A: [u8; 4] = [192, 168, 1, 2];
/// The gateway's address outside.
const GATEWAY: [u8; 4] = [192, 0, 2, 1];
/// The server on the Internet.
const HOST_B: [u8; 4] = [198, 51, 100, 7];
