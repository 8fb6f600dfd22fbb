//! The configuration of the machines before packets flow: policies are loaded once, and carried out again for
//! every run.

use crate::bounds;
use crate::files::{Files, PolicyCommands, PolicyEnd, PolicyFile};
use crate::model::{
    MachineCommand, NodeRole, PolicySource, Scenario, ScenarioDevice, ScenarioNode, TextRange, TimelineEvent,
};
use crate::shell::quoted;
use crate::tables::Diagnostic;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tidegate_gateway::{DeviceSpec, Encap, GatewayContext};
use tidegate_inspect::CARRIED_OUT_AT;
use tidegate_packet::{Pool, Seeded};
use tidegate_policy::{LinkDriver, LinkOp, NetemDistribution, Op};
use tidegate_shims::{Answer, Call, Reply, ToolShim};

/// The configuration of a machine under one policy.
#[derive(Clone, Debug, Default)]
pub struct MachinePlan {
    /// Which node it is.
    pub node: usize,
    /// Commands of the scenario.
    commands: Vec<MachineCommand>,
    /// What a file came to.
    ops: Vec<Op>,
    /// Where the file is named.
    at: TextRange,
    /// All of it as commands, for people.
    pub shown: Vec<String>,
    distributions: Distributions,
}

/// netem's distributions, by name.
type Distributions = Arc<BTreeMap<String, NetemDistribution>>;

/// The configuration of each machine for each policy; scripts of the timeline are replaced by their commands.
pub struct Prepared {
    /// For each policy, the configuration of each machine.
    pub setups: Vec<Vec<MachinePlan>>,
    /// What the reader of a result should know.
    pub notes: Vec<String>,
}

/// Takes in all policies, and tries each once.
///
/// # Errors
/// A command that a machine refuses, and its place.
pub fn prepare(scenario: &mut Scenario, files: &dyn Files) -> Result<Prepared, Diagnostic> {
    bounds::check(scenario)?;
    let mut prepared = Prepared { setups: Vec::new(), notes: Vec::new() };
    let machines: Vec<usize> =
        (0..scenario.nodes.len()).filter(|node| scenario.nodes[*node].role == NodeRole::Machine).collect();
    for policy in &scenario.policies {
        let mut setups = Vec::new();
        for &node in &machines {
            let source = policy.machines.iter().find(|(of, _)| *of == node).map(|(_, source)| source);
            let setup = setup(scenario, (node, files), source, &mut prepared.notes)?;
            let mut tried = machine(scenario, &setup)?;
            let unknown = tidegate_inspect::not_known_of(&mut tried.gateway, tried.now);
            prepared.notes.extend(unknown.filter(|sentence| !prepared.notes.contains(sentence)));
            setups.push(setup);
        }
        prepared.setups.push(setups);
    }
    unfold(scenario, files)?;
    Ok(prepared)
}

fn setup(
    scenario: &Scenario,
    (node, files): (usize, &dyn Files),
    source: Option<&PolicySource>,
    notes: &mut Vec<String>,
) -> Result<MachinePlan, Diagnostic> {
    let of = &scenario.nodes[node];
    let distributions = files.distributions();
    let mut setup =
        MachinePlan { node, commands: of.machine.setup.clone(), distributions, ..MachinePlan::default() };
    setup.shown = setup.commands.iter().map(MachineCommand::line).collect();
    match source {
        None => {}
        Some(PolicySource::Commands(commands)) => {
            setup.shown.extend(commands.iter().map(MachineCommand::line));
            setup.commands.extend(commands.iter().cloned());
        }
        Some(PolicySource::File { path, args, at }) => {
            let loaded = load(of, path, args, at, files)?;
            ended_well(&loaded, path, at)?;
            known_devices(of, &loaded.ops, at)?;
            setup.shown.extend(loaded.carried.iter().map(|words| line(words)));
            notes.extend(loaded.notes);
            (setup.ops, setup.at) = (loaded.ops, at.clone());
        }
    }
    Ok(setup)
}

fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// Loads a policy's file.
fn load(
    node: &ScenarioNode,
    path: &Path,
    args: &[String],
    at: &TextRange,
    files: &dyn Files,
) -> Result<PolicyCommands, Diagnostic> {
    let file = PolicyFile {
        path: path.to_owned(),
        args: args.to_vec(),
        devices: outside_first(node).map(|device| device.name.clone()).collect(),
        kernel: node.machine.kernel,
        tc: node.machine.tc,
    };
    let wrong = |reason: String, remedy: &str| Diagnostic::new(at.clone(), reason, remedy);
    let loaded = files
        .policy(&file)
        .map_err(|error| wrong(error.to_string(), "name a script, or a file that `tidegate check` reads"))?;
    if loaded.ended == PolicyEnd::Cut {
        return Err(wrong(
            format!("{} did not come to its end", path.display()),
            "`tidegate run` shows what it does",
        ));
    }
    Ok(loaded)
}

/// A policy is carried out whole.
fn ended_well(loaded: &PolicyCommands, path: &Path, at: &TextRange) -> Result<(), Diagnostic> {
    if let Some(trouble) = &loaded.trouble {
        return Err(Diagnostic::new(at.clone(), trouble, "fix it there; `tidegate check` says more"));
    }
    if loaded.ended == PolicyEnd::Failed {
        let why = format!("{} did not end well", path.display());
        return Err(Diagnostic::new(at.clone(), why, "`tidegate run` shows what it says"));
    }
    Ok(())
}

/// The devices of a machine, the one that leads out first, where that is known: scripts find it by the
/// default route.
fn outside_first(node: &ScenarioNode) -> impl Iterator<Item = &ScenarioDevice> {
    let named = |word: &str| node.machine.devices.iter().any(|device| device.name == word);
    let mut words =
        node.machine.setup.iter().filter(|command| command.words.iter().any(|word| word == "MASQUERADE"));
    let outside = words.next().and_then(|command| command.words.iter().find(|word| named(word)));
    let is = move |device: &&ScenarioDevice| Some(&device.name) == outside;
    let devices = &node.machine.devices;
    devices.iter().filter(is).chain(devices.iter().filter(move |device| Some(&device.name) != outside))
}

/// Every device that a policy configures is there, or is made by it.
fn known_devices(node: &ScenarioNode, ops: &[Op], at: &TextRange) -> Result<(), Diagnostic> {
    let mut made: Vec<&str> = Vec::new();
    for op in ops {
        let named = match op {
            Op::Qdisc(op) => &op.dev,
            Op::Class(op) => &op.dev,
            Op::Filter(op) => &op.dev,
            Op::Chain(op) => &op.dev,
            Op::TxQueueLen { dev, .. } | Op::Ring { dev, .. } | Op::Mtu { dev, .. } => dev,
            Op::Link(LinkOp::Add { name, .. }) => {
                made.push(name);
                continue;
            }
            Op::Link(LinkOp::Rename { to, .. }) => {
                made.push(to);
                continue;
            }
            Op::Link(_) | Op::Netfilter(_) | Op::Actions(_) => continue,
        };
        let there =
            node.machine.devices.iter().any(|device| device.name == *named) || made.contains(&named.as_str());
        if !there && LinkDriver::of_name(named) != LinkDriver::Ifb {
            return Err(Diagnostic::new(
                at.clone(),
                format!("`{}` has no device `{named}`", node.name),
                remedy(node, named),
            ));
        }
    }
    Ok(())
}

/// What to do where a device is missing.
fn remedy(node: &ScenarioNode, missing: &str) -> String {
    let names: Vec<&str> = node.machine.devices.iter().map(|device| device.name.as_str()).collect();
    let on = names.first().copied().unwrap_or("eth0");
    format!(
        "it has {}; put a link into another one (`between = [\"{}:{missing}\", …]`), or say under \
        `[machines.{}]` what it is: `devices = {{ {missing} = {{ on = \"{on}\" }} }}`",
        names.join(", "),
        node.name,
        node.name
    )
}

/// A machine as it is before packets flow.
///
/// # Errors
/// What it refuses.
pub fn machine(scenario: &Scenario, setup: &MachinePlan) -> Result<tidegate_shims::Machine, Diagnostic> {
    let node = &scenario.nodes[setup.node];
    let (mut pool, mut draws) = (Pool::new(0), Seeded::new(scenario.seed));
    let mut machine = bare(scenario, setup.node, &setup.distributions, (&mut pool, &mut draws));
    let mut shim = machine.shim(&mut pool, &mut draws);
    for command in &setup.commands {
        let reply = run_command(&mut shim, &command.words);
        // To clear away what is not there does no harm, as in a script.
        if reply.code != 0 && !clears_nothing(&command.words, &reply) {
            return Err(refused(node, command, &reply));
        }
    }
    for op in &setup.ops {
        if let Err(error) = shim.apply(op.clone()) {
            let why = format!("what the file says is refused after `setup`: {error}");
            return Err(Diagnostic::new(setup.at.clone(), why, "say it once, in `setup` or in the file"));
        }
    }
    Ok(machine)
}

/// A machine without any configuration.
fn bare(
    scenario: &Scenario,
    node: usize,
    distributions: &Distributions,
    (pool, draws): (&mut Pool, &mut Seeded),
) -> tidegate_shims::Machine {
    let of = &scenario.nodes[node];
    let mut machine = tidegate_shims::Machine::new([], DeviceSpec::default());
    machine.distributions = Arc::clone(distributions);
    machine.now = CARRIED_OUT_AT;
    machine.gateway.set_kernel(of.machine.kernel);
    machine.tc = of.machine.tc;
    for device in outside_first(of) {
        let usual = DeviceSpec::of(&device.kind);
        let spec = DeviceSpec {
            mtu: device.mtu.unwrap_or(usual.mtu),
            tx_queue_len: device.txqueuelen.unwrap_or(usual.tx_queue_len),
            hz: of.machine.hz.unwrap_or(usual.hz),
            ring: ring(scenario, node, &device.name).unwrap_or(usual.ring),
            ..usual
        };
        machine.gateway.add_device(&device.name, spec);
        if let Some((address, prefix)) = device.address {
            let op = LinkOp::Address { name: device.name.clone(), add: true, address, prefix };
            // A device has no address yet that it could have already.
            let world = GatewayContext { now: machine.now, pool: &mut *pool, random: &mut *draws };
            let _ = machine.gateway.apply(world, &Op::Link(op));
        }
    }
    for device in &of.machine.devices {
        let ids = machine
            .gateway
            .device(&device.name)
            .zip(device.on.as_ref().and_then(|on| machine.gateway.device(on)));
        if let Some((upper, lower)) = ids {
            machine.gateway.stack(upper, lower, encap(&device.kind));
        }
    }
    let names: Vec<String> = outside_first(of).map(|device| device.name.clone()).collect();
    machine.shim(pool, draws).world(&names);
    machine
}

/// How a device wraps what it gives to the one beneath.
fn encap(kind: &LinkDriver) -> Encap {
    match kind {
        LinkDriver::PointToPoint => Encap::Pppoe,
        LinkDriver::Tunnel(tunnel) => Encap::Tunnel(*tunnel),
        LinkDriver::Vlan { id, .. } => Encap::Vlan(*id),
        _ => Encap::Bare,
    }
}

/// The transmit ring that the link requests for a device.
fn ring(scenario: &Scenario, node: usize, device: &str) -> Option<u32> {
    scenario.cables.iter().find_map(|cable| {
        let at = cable.ends.iter().position(|end| {
            end.node == node
                && end.device.is_some_and(|d| scenario.nodes[node].machine.devices[d].name == device)
        })?;
        if at + 1 == cable.ends.len() { cable.down.ring } else { cable.up.ring }
    })
}

/// Tells a machine something, as on its shell.
pub fn run_command(shim: &mut ToolShim<'_>, words: &[String]) -> Reply {
    call(words).map_or_else(Reply::ok, |call| shim.answer(&call))
}

fn call(words: &[String]) -> Option<Call> {
    let (tool, args) = words.split_first()?;
    Some(Call { tool: tool.clone(), args: args.to_vec(), stdin: None, cwd: PathBuf::from("/"), netns: None })
}

/// Was something to go that is not there?
fn clears_nothing(words: &[String], reply: &Reply) -> bool {
    call(words).is_some_and(|call| call.deletes_nothing(&String::from_utf8_lossy(&reply.stderr)))
}

/// What a machine would not do.
pub fn refused(node: &ScenarioNode, command: &MachineCommand, reply: &Reply) -> Diagnostic {
    let stderr = String::from_utf8_lossy(&reply.stderr).into_owned();
    let mut lines = stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    let reason = lines.next().unwrap_or("refused without a word").to_owned();
    let missing = command.words.windows(2).find(|pair| pair[0] == "dev").map(|pair| pair[1].clone());
    let remedy = match missing.filter(|_| reason.contains("Cannot find device")) {
        Some(missing) => remedy(node, &missing),
        None => lines
            .next()
            .map_or_else(|| "this is the tool's own message; correct that command".into(), str::to_owned),
    };
    Diagnostic::new(command.at.clone(), format!("{}: {reason}", node.name), remedy)
}

/// Scripts of the timeline, captured: each becomes its commands. A command that is refused on an unconfigured
/// machine may be right in the middle of a run, so refusals are reported there.
fn unfold(scenario: &mut Scenario, files: &dyn Files) -> Result<(), Diagnostic> {
    let nodes = scenario.nodes.clone();
    let lists = scenario.policies.iter_mut().map(|policy| &mut policy.at).chain([&mut scenario.at]);
    for list in lists {
        let mut unfolded = Vec::new();
        for one in list.drain(..) {
            let TimelineEvent::Script { machine, path, args, pace, at } = &one.what else {
                unfolded.push(one);
                continue;
            };
            let loaded = load(&nodes[*machine], path, args, at, files)?;
            known_devices(&nodes[*machine], &loaded.ops, at)?;
            for (number, words) in (0..).zip(loaded.issued) {
                let command = MachineCommand { words, at: at.clone() };
                let time = one.time + tidegate_packet::Nanos(pace.0 * number);
                unfolded.push(crate::model::TimelineEntry {
                    time,
                    what: TimelineEvent::Command { machine: *machine, command },
                });
            }
        }
        unfolded.sort_by_key(|at| at.time);
        *list = unfolded;
    }
    Ok(())
}
