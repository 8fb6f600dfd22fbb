//! The home link of a trial: what is simulated, and what is kept of it, step by step.

use crate::loads::{Item, Load};
use crate::policy::TrialPolicy;
use crate::settings::TrialSettings;
use std::path::PathBuf;
use tidegate_gateway::{DeviceId, DeviceSpec, Gateway};
use tidegate_packet::{Nanos, Time};
use tidegate_policy::dump::{ClassDump, FilterDump, QdiscDump};
use tidegate_scenario::series::{ClassReadings, ClassRecorder, Roots, counts};
use tidegate_shims::Machine;
use tidegate_shims::{Answer, Call};
use tidegate_sim::{
    Bulk, GatewayMachine, Home, HomeResult, HomeSpec, HomeTraffic, Local, Port, Trace, TrafficResult,
};
use tidegate_syntax::TcVersion;

/// When packets begin to flow; the policy has been installed for a while then.
pub const START: Time = Time(8_000_000_000);
/// The load runs for so long before measuring begins: what is measured is the steady state.
const WARM_UP: Nanos = Nanos::secs(5);
/// How long the idle link is measured at most.
const IDLE: Nanos = Nanos::secs(20);
/// Between two readings of the queues.
const STEP: Nanos = Nanos::millis(100);
/// With more classes than this they are read less often, so that a run stays quick.
const MANY_CLASSES: usize = 64;

/// The link of a run.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    up: u64,
    down: u64,
    follows: [Option<Trace>; 2],
    buffers: [u64; 2],
    delay: Nanos,
    cable: Option<u64>,
    ring: Option<u32>,
    queue_limit: Option<u32>,
    warm_up: Nanos,
    duration: Nanos,
    seed: u64,
}

impl Setting {
    fn of(options: &TrialSettings, idle: bool) -> Setting {
        Setting {
            up: options.up.as_bits(),
            down: options.down.as_bits(),
            follows: options.line.clone().map_or([None, None], |line| [line.up, line.down]),
            buffers: options.buffers(),
            delay: Nanos(options.rtt.0 / 2),
            cable: options.cable.map(tidegate_packet::Rate::as_bits),
            ring: options.ring,
            queue_limit: options.bql,
            warm_up: if idle { Nanos::secs(1) } else { WARM_UP },
            duration: if idle { Nanos(options.duration.0.min(IDLE.0)) } else { options.duration },
            seed: options.seed,
        }
    }

    /// A link that holds nothing up, for a second and a half.
    pub(crate) fn fast(seed: u64) -> Setting {
        Setting {
            up: 1_000_000_000,
            down: 1_000_000_000,
            follows: [None, None],
            buffers: [10_000_000, 31_250_000],
            delay: Nanos::millis(5),
            cable: None,
            ring: None,
            queue_limit: None,
            warm_up: Nanos(0),
            duration: Nanos::millis(1500),
            seed,
        }
    }
}

/// What one run showed.
pub(crate) struct Run {
    pub(crate) load: usize,
    pub(crate) with_policy: bool,
    /// Something was sent for each class that the load leaves empty.
    pub(crate) witnesses: bool,
    pub(crate) items: Vec<Item>,
    pub(crate) result: HomeResult,
    pub(crate) step: Nanos,
    /// Payload bytes of each item per step; of those that are no transfers nothing.
    pub(crate) progress: Vec<Vec<u64>>,
    /// Bytes in the modem's and the provider's buffer per step.
    pub(crate) buffers: [Vec<u64>; 2],
    /// Bytes that uplink and downlink carried per step.
    pub(crate) carried: [Vec<u64>; 2],
    pub(crate) courses: Vec<ClassReadings>,
    /// The trees at the end of the window; empty without the policy.
    pub(crate) trees: InstalledTrees,
    /// The machine's output for the commands of `--show`.
    pub(crate) shown: String,
}

/// What is installed on the governed devices.
#[derive(Clone, Debug, Default)]
pub struct InstalledTrees {
    /// The qdiscs of these devices.
    pub qdiscs: Vec<QdiscDump>,
    /// The classes of these devices.
    pub classes: Vec<ClassDump>,
    /// The filters of these devices.
    pub filters: Vec<FilterDump>,
}

impl InstalledTrees {
    /// Those of some devices, as they are listed at a time.
    pub fn of(gateway: &mut Gateway, devices: &[DeviceId], at: Time) -> InstalledTrees {
        let mut trees = InstalledTrees::default();
        for id in devices {
            let (qdiscs, classes) = (gateway.qdiscs(at, *id), gateway.classes(at, *id));
            let on_qdiscs = qdiscs.iter().filter(|q| !q.handle.is_none()).map(|q| q.handle);
            let on_classes = classes.iter().filter(|class| counts(class)).map(|class| class.classid);
            for parent in on_qdiscs.chain(on_classes) {
                let found = gateway.own_filters(at, *id, parent).unwrap_or_default();
                trees.filters.extend(found.into_iter().filter(|filter| filter.parent == parent));
            }
            trees.qdiscs.extend(qdiscs);
            trees.classes.extend(classes);
        }
        trees
    }
}

/// What the policy sets up, before any packet.
pub(crate) fn trees(policy: &TrialPolicy, seed: u64) -> InstalledTrees {
    let (mut home, devices) = build(policy, &Setting::fast(seed), true, Vec::new());
    InstalledTrees::of(&mut home.net.machine.gateway, &devices, START)
}

/// Link time that a run takes, in whole seconds, for the progress bar.
pub(crate) fn seconds(options: &TrialSettings, load: &Load) -> u64 {
    let setting = Setting::of(options, load.items.is_empty());
    (setting.warm_up + setting.duration).0.div_ceil(1_000_000_000)
}

/// The devices whose queues a policy governs: the one before the modem or the one stacked on it, what is
/// below, those that give back, the LAN's.
fn governed(gateway: &Gateway, policy: &TrialPolicy) -> Vec<DeviceId> {
    let names = [Some(&policy.wan), policy.beneath.as_ref(), Some(&policy.lan)].into_iter().flatten();
    names.chain(&policy.returning).filter_map(|name| gateway.device(name)).collect()
}

/// Builds the home around a machine with the policy, or without.
pub(crate) fn build(
    policy: &TrialPolicy,
    setting: &Setting,
    with_policy: bool,
    traffic: Vec<HomeTraffic>,
) -> (Home<GatewayMachine>, Vec<DeviceId>) {
    let mut machine = policy.machine(with_policy, setting.seed);
    let mut ids: Vec<DeviceId> = Vec::new();
    let mut port = |name: &str| {
        let id = machine.gateway.add_device(name, TrialPolicy::device_spec(name));
        ids.push(id);
        Port(ids.len() as u16 - 1)
    };
    let (wan, lan) = (port(&policy.wan), port(&policy.lan));
    let beneath = policy.beneath.as_deref().map(&mut port);
    let returning = policy.returning.iter().map(|name| port(name)).collect();
    policy.stack(&mut machine.gateway);
    // The device's own ring is long, but a driver fills no more of it than its byte queue limit: one frame,
    // unless the script sets a ring.
    let asked_ring = policy.requested_ring(&machine.gateway, with_policy);
    let mtu = ids.first().map_or(1500, |id| machine.gateway.spec(*id).mtu).min(1500);
    let governed = governed(&machine.gateway, policy);
    let machine = GatewayMachine::new(machine.gateway, ids, setting.seed);
    let usual = HomeSpec::new(setting.up, setting.down);
    let spec = HomeSpec {
        up_buffer: setting.buffers[0],
        down_buffer: setting.buffers[1],
        delay: setting.delay,
        mtu,
        cable: setting.cable.unwrap_or(usual.cable),
        ring: setting.ring.or(asked_ring).unwrap_or(1),
        queue_limit: setting.queue_limit,
        wan_port: wan,
        lan_port: Some(lan),
        beneath,
        returning,
        traffic: if policy.translates() { traffic.into_iter().map(fetched).collect() } else { traffic },
        warm_up: setting.warm_up,
        duration: setting.duration,
        seed: setting.seed,
        ..usual
    };
    let mut home = Home::new(machine, spec, START);
    let [up, down] = setting.follows.clone();
    home.follow(up, down);
    (home, governed)
}

/// Behind translation a host outside cannot open a connection to the LAN: the downloader opens it.
fn fetched(traffic: HomeTraffic) -> HomeTraffic {
    match traffic {
        HomeTraffic::Bulk(bulk) if !bulk.up && bulk.parties.local != Local::Gateway => {
            HomeTraffic::Bulk(Bulk { called: true, ..bulk })
        }
        other => other,
    }
}

/// The classes after a conversation on a fast link.
pub(crate) fn after(policy: &TrialPolicy, traffic: HomeTraffic, seed: u64) -> Vec<ClassDump> {
    let (mut home, devices) = build(policy, &Setting::fast(seed), true, vec![traffic]);
    let (_, end) = home.window();
    home.run(end);
    let gateway = &mut home.net.machine.gateway;
    devices.into_iter().flat_map(|id| gateway.classes(end, id)).collect()
}

/// Payload bytes that each of some transfers carries with the policy, while measured for a few seconds.
pub(crate) fn carried(options: &TrialSettings, policy: &TrialPolicy, traffic: Vec<HomeTraffic>) -> Vec<u64> {
    let setting = Setting { warm_up: GLANCE, duration: GLANCE, ..Setting::of(options, false) };
    let (home, _) = build(policy, &setting, true, traffic);
    let outcomes = home.finish().0.outcomes;
    outcomes
        .iter()
        .map(|outcome| if let TrafficResult::Bulk(bulk) = outcome { bulk.acked } else { 0 })
        .collect()
}

/// How long a glance warms up, and measures.
pub(crate) const GLANCE: Nanos = Nanos::secs(4);

/// Simulates one load, with the policy or without.
pub(crate) fn run(
    options: &TrialSettings,
    policy: &TrialPolicy,
    (index, load): (usize, &Load),
    items: Vec<Item>,
    with_policy: bool,
    second: &dyn Fn(),
) -> Run {
    let setting = Setting::of(options, load.items.is_empty());
    let traffic = items.iter().map(|item| item.traffic.clone()).collect();
    let (mut home, devices) = build(policy, &setting, with_policy, traffic);
    let many = devices.iter().map(|id| home.net.machine.gateway.classes(START, *id).len()).sum::<usize>();
    let step = if many > MANY_CLASSES { Nanos(10 * STEP.0) } else { STEP };
    let steps = (setting.warm_up + setting.duration).0.div_ceil(step.0);
    let mut run = Run {
        load: index,
        with_policy,
        witnesses: false,
        progress: vec![Vec::new(); items.len()],
        items,
        result: HomeResult::default(),
        step,
        buffers: [Vec::new(), Vec::new()],
        carried: [Vec::new(), Vec::new()],
        courses: Vec::new(),
        trees: InstalledTrees::default(),
        shown: String::new(),
    };
    let mut before = vec![0; run.items.len()];
    let mut carried_before = [0; 2];
    let mut courses = ClassRecorder::default();
    for n in 1..=steps {
        let at = START + Nanos(n * step.0);
        home.run(at);
        for ((series, before), now) in run.progress.iter_mut().zip(&mut before).zip(home.progress()) {
            series.push(now - std::mem::replace(before, now));
        }
        for (series, bytes) in run.buffers.iter_mut().zip(home.buffers()) {
            series.push(bytes);
        }
        for ((series, before), now) in run.carried.iter_mut().zip(&mut carried_before).zip(home.carried()) {
            series.push(now - std::mem::replace(before, now));
        }
        if with_policy {
            let gateway = &mut home.net.machine.gateway;
            let named: Vec<(String, DeviceId)> =
                devices.iter().map(|id| (gateway.name(*id).to_owned(), *id)).collect();
            let named = named.iter().map(|(name, id)| (name.as_str(), *id));
            courses.read(gateway, named, Roots::Configured, at);
            courses.end_step();
        }
        if (n * step.0).is_multiple_of(1_000_000_000) {
            second();
        }
    }
    let (_, end) = home.window();
    run.courses = courses.into_vec();
    if with_policy {
        run.trees = InstalledTrees::of(&mut home.net.machine.gateway, &devices, end);
        run.shown = ask(&mut home, policy.tc, &options.show);
    }
    run.result = home.finish().0;
    run
}

/// Asks the machine as on its shell: each command, and what it prints.
fn ask(home: &mut Home<GatewayMachine>, tc: TcVersion, commands: &[String]) -> String {
    let mut shown = String::new();
    for command in commands {
        let mut words = command.split_whitespace().map(str::to_owned);
        let Some(tool) = words.next() else { continue };
        let call = Call { tool, args: words.collect(), stdin: None, cwd: PathBuf::new(), netns: None };
        let reply = home.net.with_machine(|simulated, pool, now| {
            let mut machine = Machine::new([], DeviceSpec::default());
            (machine.now, machine.tc) = (now, tc);
            std::mem::swap(&mut machine.gateway, &mut simulated.gateway);
            let reply = machine.shim(pool, &mut simulated.random).answer(&call);
            std::mem::swap(&mut machine.gateway, &mut simulated.gateway);
            reply
        });
        let bytes = [reply.stdout, reply.stderr].concat();
        shown.push_str(&format!("\n$ {command}\n{}", String::from_utf8_lossy(&bytes)));
    }
    shown
}
