//! The home link of a trial: what is simulated, and what is kept of it.

use super::options::{LoadKind, Options};
use super::policy::Policy;
use indicatif::ProgressBar;
use tidegate_measure::Pings;
use tidegate_packet::{Span, Time};
use tidegate_policy::dump::{ClassDump, QdiscDump};
use tidegate_sim::{GatewayMachine, Home, HomeSpec, Load, Port};

/// When packets begin to flow; the policy has stood for a while then.
const START: Time = Time(8_000_000_000);
/// Between two pings.
const PING_INTERVAL: Span = Span::millis(200);
/// The load runs for so long before measuring begins: what is measured is the steady state.
const WARM_UP: Span = Span::secs(5);
/// How long the idle link is pinged.
const IDLE: Span = Span::secs(20);
/// The port served from when a policy names none.
const WEB: u16 = 80;

/// What loads the link: what was asked for, or what the policy is about.
pub(super) fn load(options: &Options, policy: &Policy) -> Load {
    let port = policy.server_port();
    let flows = u32::from(options.flows);
    let serve = |port: Option<u16>| Load::Serve(flows, port.unwrap_or(WEB));
    match (options.load, port) {
        (Some(LoadKind::Server), port) | (None, port @ Some(_)) => serve(port),
        (Some(LoadKind::Upload), _) | (None, None) => Load::Upload(flows),
    }
}

/// What one run showed.
pub(super) struct Run {
    pub(super) loaded: bool,
    pub(super) with_policy: bool,
    pub(super) pings: Pings,
    pub(super) result: tidegate_sim::HomeResult,
    /// The WAN device's tree at the end of the window; empty without the policy.
    pub(super) qdiscs: Vec<QdiscDump>,
    pub(super) classes: Vec<ClassDump>,
}

/// Link time that a run measures, in whole seconds, for the progress bar.
pub(super) fn seconds(options: &Options, loaded: bool) -> u64 {
    let span = if loaded { WARM_UP + options.duration } else { IDLE };
    span.0.div_ceil(1_000_000_000)
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
    let (warm_up, duration) = if loaded { (WARM_UP, options.duration) } else { (Span(0), IDLE) };
    let spec = HomeSpec {
        up_buffer: options.buffer.bytes(options.up),
        delay: Span(options.rtt.0 / 2),
        lan_port: Some(Port(1)),
        load: if loaded { load } else { Load::Empty },
        ping_interval: PING_INTERVAL,
        warm_up,
        duration,
        seed: options.seed,
        ..HomeSpec::new(options.up.as_bits(), options.down.as_bits())
    };
    let mut home = Home::new(machine, spec, START);
    for second in 1..=seconds(options, loaded) {
        home.run(START + Span::secs(second));
        bar.inc(1);
    }
    let (_, end) = home.window();
    home.run(end);
    let gateway = &mut home.net.machine.gateway;
    let (qdiscs, classes) =
        if with_policy { (gateway.qdiscs(end, wan), gateway.classes(end, wan)) } else { Default::default() };
    let (result, _) = home.finish();
    Run { loaded, with_policy, pings: result.pings(), result, qdiscs, classes }
}
