//! The simulated home link: a computer, the gateway under test, a modem with a big dumb buffer, a server far away.

use super::options::{LoadKind, Options};
use super::policy::Policy;
use indicatif::ProgressBar;
use tidegate_measure::{Pings, bits_per_second};
use tidegate_packet::{Span, Time};
use tidegate_policy::dump::{ClassDump, QdiscDump};
use tidegate_sim::{
    Ends, FlowId, FlowSpec, FlowStats, GatewayMachine, Limit, LinkSpec, LinkStats, Net, PathId, Port, ProbeSpec,
};

/// When packets begin to flow; the policy has stood for a while then.
const START: Time = Time(8_000_000_000);
/// Between two pings.
const PING_INTERVAL: Span = Span::millis(200);
/// The load runs for so long before the first ping: what is measured is the steady state.
const WARM_UP: Span = Span::secs(5);
/// How long the idle link is pinged.
const IDLE: Span = Span::secs(20);
/// How long answers are waited for.
const PATIENCE: Span = Span::secs(20);
/// The cable between gateway and modem, bits per second.
const CABLE: u64 = 100_000_000;
/// The network behind the gateway.
const LAN: u64 = 1_000_000_000;
/// What the provider buffers for the downlink.
const DOWN_BUFFER: Span = Span::millis(500);

const WAN_PORT: Port = Port(0);
const LAN_PORT: Port = Port(1);

const HOST: [u8; 4] = [192, 168, 1, 10];
const GATEWAY: [u8; 4] = [198, 51, 100, 7];
const FAR: [u8; 4] = [203, 0, 113, 20];

/// What loads the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    /// A computer behind the gateway uploads.
    Upload,
    /// The gateway itself serves from this port.
    Server(u16),
}

impl Load {
    /// The one asked for, or the one that the policy is about.
    pub(super) fn choose(options: &Options, policy: &Policy) -> Load {
        let port = policy.server_port();
        match options.load {
            Some(LoadKind::Upload) => Load::Upload,
            Some(LoadKind::Server) => Load::Server(port.unwrap_or(80)),
            None => port.map_or(Load::Upload, Load::Server),
        }
    }
}

/// What one run showed.
pub(super) struct Run {
    pub(super) loaded: bool,
    pub(super) with_policy: bool,
    pub(super) pings: Pings,
    pub(super) flows: Vec<FlowStats>,
    /// Payload acknowledged while it was measured, bits per second; `None` without a load.
    pub(super) goodput: Option<f64>,
    pub(super) modem: LinkStats,
    pub(super) qdiscs: Vec<QdiscDump>,
    pub(super) classes: Vec<ClassDump>,
    /// Packets put on links, for those who care about speed.
    pub(super) packets: u64,
}

/// Link time of a run, in whole seconds, for the progress bar.
pub(super) fn seconds(options: &Options, loaded: bool) -> u64 {
    (length(options, loaded) + PATIENCE).0 / 1_000_000_000
}

/// From the first packet to the last ping.
fn length(options: &Options, loaded: bool) -> Span {
    if loaded { WARM_UP + options.duration } else { IDLE }
}

/// Simulates the link with or without load, with or without the policy.
pub(super) fn run(
    options: &Options,
    policy: &Policy,
    load: Load,
    loaded: bool,
    with_policy: bool,
    bar: &ProgressBar,
) -> Run {
    let mut machine = policy.machine(with_policy, options.seed);
    let spec = Default::default();
    let wan = machine.gateway.add_device(&policy.wan, spec);
    let lan = machine.gateway.devices().find(|id| *id != wan);
    let lan = lan.unwrap_or_else(|| machine.gateway.add_device("lan0", spec));
    let machine = GatewayMachine::new(machine.gateway, [wan, lan], options.seed);
    let mut net = Net::new(machine, options.seed, START);

    let half = Span(options.rtt.0 / 2);
    let host_out = net.link(LinkSpec::drop_tail(LAN, Span::micros(50), Limit::None).jitter(Span::micros(50)));
    let wan_out = net.link(LinkSpec::port(WAN_PORT, Some(CABLE), Span(0)));
    let modem =
        net.link(LinkSpec::drop_tail(options.up.as_bits(), half, Limit::Bytes(options.buffer.bytes(options.up))));
    let far_out = net.link(LinkSpec::wire(Span(0)).jitter(Span::micros(50)));
    let provider_buffer = super::options::Buffer::Time(DOWN_BUFFER).bytes(options.down).max(64 << 10);
    let provider =
        net.link(LinkSpec::drop_tail(options.down.as_bits(), half, Limit::Bytes(provider_buffer)).into_port(WAN_PORT));
    let lan_out = net.link(LinkSpec::port(LAN_PORT, Some(LAN), Span::micros(50)));

    let up = net.path(&[host_out, wan_out, modem]);
    let down = net.path(&[far_out, provider, lan_out]);
    let served_up = net.path(&[wan_out, modem]);
    let served_down = net.path(&[far_out, provider]);

    let length = length(options, loaded);
    let end = START + length;
    let (first_ping, flows) = if loaded {
        net.sample_every(Span::millis(100));
        let flows = (0..options.flows).map(|n| {
            let flow = match load {
                Load::Upload => bulk(HOST, 49152 + n, 443, up, down),
                Load::Server(port) => {
                    FlowSpec { local: true, ..bulk(GATEWAY, port, 50_000 + n, served_up, served_down) }
                }
            };
            FlowSpec { start: START + Span::millis(u64::from(n) * 10), stop: end + Span::secs(1), ..flow }
        });
        let flows: Vec<FlowId> = flows.map(|flow| net.tcp(flow)).collect();
        (START + WARM_UP, flows)
    } else {
        (START, Vec::new())
    };
    let ping = net.ping(ProbeSpec {
        ends: Ends { src: HOST, dst: FAR, sport: 7, dport: 0 },
        forward: up,
        back: down,
        start: first_ping,
        stop: end,
        interval: PING_INTERVAL,
        data: 56,
        dsfield: 0,
    });

    let advance = |net: &mut Net<GatewayMachine>, from: Time, span: Span| {
        for second in 1..=span.0 / 1_000_000_000 {
            net.run(from + Span::secs(second));
            bar.inc(1);
        }
        net.run(from + span);
    };
    let acked = |net: &Net<GatewayMachine>| -> u64 { flows.iter().map(|flow| net.flow_stats(*flow).acked).sum() };
    advance(&mut net, START, first_ping - START);
    let before = acked(&net);
    advance(&mut net, first_ping, end - first_ping);
    let goodput = loaded.then(|| bits_per_second(acked(&net) - before, (end - first_ping).0));
    let (qdiscs, classes) = match with_policy {
        true => (net.machine.gateway.qdiscs(end, wan), net.machine.gateway.classes(end, wan)),
        false => Default::default(),
    };
    let modem = net.link_stats(modem);
    advance(&mut net, end, PATIENCE);
    Run {
        loaded,
        with_policy,
        pings: Pings::new(net.echoes(ping).iter().map(|echo| echo.rtt.map(|rtt| rtt.0))),
        flows: flows.iter().map(|flow| net.flow_stats(*flow)).collect(),
        goodput,
        modem,
        qdiscs,
        classes,
        packets: net.events(),
    }
}

fn bulk(src: [u8; 4], sport: u16, dport: u16, forward: PathId, back: PathId) -> FlowSpec {
    FlowSpec::bulk(Ends { src, dst: FAR, sport, dport }, forward, back)
}
