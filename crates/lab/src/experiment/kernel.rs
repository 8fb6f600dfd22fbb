//! The machine with the policy is this computer's kernel: a namespace of its own, whose devices are the
//! scenario's wires and whose qdiscs are the kernel's, programmed over netlink.
//!
//! ```text
//! host ── TUN ──▶ World: cables up to the machine ──▶ TAP ─┐
//!                                                          ├─ kernel: forwards, HTB, TBF, … (namespace)
//! host ◀── TUN ── World: cables beyond it ◀────────── TAP ─┘
//! ```
//! In the network's model the machine is not there: each of its devices is a node of its own, where a cable
//! ends.

use super::error::{Context, Error, Result, impossible};
use crate::{Party, Router, RouterDevice, RouterSpec};
use std::net::IpAddr;
use tidegate_gateway::DeviceSpec;
use tidegate_netlink::Kernel;
use tidegate_policy::dump::{ClassDump, QdiscDump};
use tidegate_policy::{LinkDriver, Op};
use tidegate_scenario::lay::LaidOut;
use tidegate_scenario::model::{NodeRole, Scenario, ScenarioPolicy, TimelineEntry, TimelineEvent};
use tidegate_scenario::prepare::{self, Prepared};
use tidegate_sys::tun::Tun;

/// The kernel's configuration.
pub(super) struct Plan {
    node: usize,
    ops: Vec<Op>,
}

/// The machine, going on.
pub(super) struct Arm {
    /// Its devices that wires are in: number and name.
    devices: Vec<(usize, String)>,
    kernel: Kernel,
    /// It is there as long as this is.
    _router: Router,
}

/// The machine that the kernel is to be.
///
/// # Errors
/// There is none, or the scenario needs of it what a kernel does not have; with the remedy.
pub(super) fn machine(scenario: &Scenario, packets: bool) -> Result<usize> {
    let mut all = (0..scenario.nodes.len()).filter(|node| scenario.nodes[*node].role == NodeRole::Machine);
    let with_policy = |node: &usize| scenario.policies.iter().any(|policy| has(policy, *node));
    let mut with_policy_first: Vec<usize> = all.clone().filter(with_policy).collect();
    if with_policy_first.is_empty() {
        with_policy_first.extend(all.next());
    }
    let [node] = with_policy_first.as_slice() else {
        return impossible(format!(
            "--router kernel: one machine can be this kernel, and {} of this scenario have policies",
            with_policy_first.len()
        ));
    };
    let of = &scenario.nodes[*node];
    let plugged = scenario.cables.iter().flat_map(|cable| &cable.ends).filter(|end| end.node == *node);
    for end in plugged {
        let device = end.device.and_then(|device| of.machine.devices.get(device));
        let wire = device.is_some_and(|device| device.kind == LinkDriver::Ethernet && device.on.is_none());
        if !wire {
            return impossible(format!(
                "--router kernel: every link must end in an Ethernet device of `{}`",
                of.name
            ));
        }
    }
    if let Some(item) =
        scenario.loads.iter().flat_map(|load| &load.items).find(|item| [item.from, item.to].contains(node))
    {
        return impossible(format!(
            "--router kernel: `{}` begins or ends at `{}`, which is not asked in that case; let a host do it",
            item.id, of.name
        ));
    }
    let happenings = scenario.policies.iter().flat_map(|policy| &policy.at).chain(&scenario.at);
    let commanded =
        |at: &&TimelineEntry| matches!(&at.what, TimelineEvent::Command { machine, .. } if machine == node);
    if happenings.clone().any(|at| commanded(&at)) {
        return impossible(format!(
            "--router kernel: `{}` gets commands in the middle of a run, which is not supported with the \
            kernel; use the model",
            of.name
        ));
    }
    if packets {
        return impossible(
            "--router kernel: the backlog of the kernel's queues cannot be written as packets; leave \
            --pcapng out",
        );
    }
    not_the_slowest(scenario, *node)?;
    Ok(*node)
}

fn has(policy: &ScenarioPolicy, node: usize) -> bool {
    policy.machines.iter().any(|(of, _)| *of == node)
}

/// A TAP device takes whatever it is given: only packets that the kernel's own qdiscs delay wait before it.
fn not_the_slowest(scenario: &Scenario, node: usize) -> Result<()> {
    let rates = || scenario.cables.iter().flat_map(|cable| [cable.up.rate, cable.down.rate]).flatten();
    let slowest = rates().min();
    for cable in &scenario.cables {
        let sent =
            [cable.ends.first().map(|end| (end, &cable.up)), cable.ends.last().map(|end| (end, &cable.down))];
        for (_, line) in sent.into_iter().flatten().filter(|(end, _)| end.node == node) {
            if line.rate.is_some() && line.rate == slowest && rates().any(|rate| Some(rate) != slowest) {
                return impossible(format!(
                    "--router kernel: `{}` is the slowest link and ends in `{}`, but no device of this \
                    kernel can be as slow as that; put a modem between them",
                    cable.name, scenario.nodes[node].name
                ));
            }
        }
    }
    Ok(())
}

impl Plan {
    /// The kernel's configuration under a policy; `None`: all machines are models.
    ///
    /// # Errors
    /// The policy has parts that are not set over netlink.
    pub(super) fn of(scenario: &Scenario, prepared: &Prepared, policy: usize) -> Result<Option<Plan>> {
        let Some(node) = scenario.kernel else { return Ok(None) };
        let setup = prepared.setups[policy].iter().find(|setup| setup.node == node);
        let mut ops = Vec::new();
        if let Some(setup) = setup {
            ops = prepare::machine(scenario, setup)
                .or_else(|wrong| impossible(wrong.shown(&scenario.path, &scenario.text)))?
                .log;
        }
        if ops.iter().any(|op| matches!(op, Op::Netfilter(_))) {
            return impossible(format!(
                "--router kernel: the policy `{}` sets rules of iptables or nft, which is not supported \
                yet; leave them out (filters can match addresses and ports), or use the model",
                scenario.policies[policy].name
            ));
        }
        Ok(Some(Plan { node, ops }))
    }

    /// Makes the machine and configures it; returns beside it its devices' nodes in the network, and their
    /// other ends.
    ///
    /// # Errors
    /// It cannot be made, or this kernel refuses the configuration.
    pub(super) fn set_up(
        &self,
        scenario: &Scenario,
        laid: &mut LaidOut,
        hosts: &[Party],
    ) -> Result<(Arm, Vec<Party>, Vec<Tun>)> {
        let of = &scenario.nodes[self.node];
        let mut behind: Vec<Vec<IpAddr>> = vec![Vec::new(); of.machine.devices.len()];
        for host in hosts {
            let near =
                (0..behind.len()).find(|device| laid.world.way(scenario.port(*device), host.node).is_some());
            if let Some(device) = near {
                behind[device].extend(&host.addresses);
            }
        }
        let usual = DeviceSpec::default();
        let wires = of.machine.devices.iter().zip(behind).filter(|(device, _)| device.plugged);
        let wires: Vec<RouterDevice> = wires
            .map(|(device, behind)| RouterDevice {
                name: device.name.clone(),
                address: device.address.map(|(address, _)| address),
                mtu: device.mtu.unwrap_or(usual.mtu),
                queue: device.txqueuelen.unwrap_or(usual.tx_queue_len),
                behind,
            })
            .collect();
        let plugged = of.machine.devices.iter().enumerate().filter(|(_, device)| device.plugged);
        let devices: Vec<(usize, String)> =
            plugged.map(|(number, device)| (number, device.name.clone())).collect();
        let (router, tuns) = Router::new(&RouterSpec { name: of.name.clone(), wires })?;
        let mut kernel = router.go(Kernel::open)?.context("netlink cannot be opened")?;
        if let Err((at, trouble)) = kernel.carry_out(&self.ops) {
            let (machine, operation) = (of.name.clone(), what(&self.ops[at]));
            return Err(Error::Kernel { machine, operation, reason: trouble });
        }
        let ports =
            devices.iter().map(|(device, _)| Party { node: scenario.port(*device), addresses: Vec::new() });
        let ports = ports.collect();
        Ok((Arm { devices, kernel, _router: router }, ports, tuns))
    }
}

/// What an operation is about.
fn what(op: &Op) -> String {
    let kind = |kind: &Option<String>| kind.clone().unwrap_or_default();
    match op {
        Op::Qdisc(op) => format!("the qdisc {} at {} of {}", kind(&op.kind), op.parent, op.dev),
        Op::Class(op) => format!("the class {} of {}", op.classid, op.dev),
        Op::Filter(op) => format!("the filter {} at {} of {}", kind(&op.kind), op.parent, op.dev),
        other => format!("{other:?}"),
    }
}

impl Arm {
    /// What is installed on its devices, as far as it can be read.
    pub(super) fn installed(&mut self) -> Vec<(usize, Vec<QdiscDump>, Vec<ClassDump>)> {
        let Arm { devices, kernel, .. } = self;
        let read = |(number, name): &(usize, String)| {
            let found = kernel.qdiscs(name).ok()?;
            Some((*number, found.qdiscs, found.classes))
        };
        devices.iter().filter_map(read).collect()
    }
}
