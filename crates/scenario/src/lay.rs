//! From a scenario to a network: machines with their policies, links, and the paths of the traffic.

use crate::model::{BufferSize, LinkDirection, NodeRole, Scenario, ScenarioNode};
use crate::prepare::{self, Prepared};
use crate::tables::Diagnostic;
use std::net::IpAddr;
use tidegate_gateway::{DeviceId, DeviceSpec, Gateway};
use tidegate_packet::{Nanos, Time};

use tidegate_sim::Limit;
use tidegate_sim::world::{Cable, CableDirection, CableEnd, Layout, RouterNode, World};

/// When packets begin to flow; the policies have been installed for a while then.
pub const START: Time = Time(8_000_000_000);
/// The default size of a queue on the path: a quarter of a second, or this many bytes if that is more.
const USUAL_BUFFER: u64 = 64_000;

/// A network, ready to run.
pub struct LaidOut {
    /// The network in virtual time.
    pub world: World,
    /// Of each machine of the world what its tools know of it beside its queues.
    pub hosts: Vec<tidegate_shims::Machine>,
    /// Of each machine of the world its node.
    pub nodes: Vec<usize>,
    /// The devices with queues of each machine, by name.
    pub devices: Vec<Vec<(String, DeviceId)>>,
}

/// Lays the scenario's network under a policy.
///
/// # Errors
/// What a machine refuses; policies that were prepared are not.
pub fn lay(
    scenario: &Scenario,
    prepared: &Prepared,
    policy: usize,
    seed: u64,
) -> Result<LaidOut, Diagnostic> {
    let mut laid_machines = Vec::new();
    for setup in prepared.setups[policy].iter().filter(|setup| scenario.kernel != Some(setup.node)) {
        laid_machines.push((setup.node, prepare::machine(scenario, setup)?));
    }
    let mut stations = Vec::new();
    let mut devices = Vec::new();
    let mut rings = Vec::new();
    for (node, machine) in &mut laid_machines {
        let gateway = std::mem::take(&mut machine.gateway);
        let ids = device_ids(&scenario.nodes[*node], &gateway);
        rings.push((*node, ids.iter().map(|id| gateway.spec(*id).ring).collect::<Vec<u32>>()));
        devices.push(ids.iter().map(|id| (gateway.name(*id).to_owned(), *id)).collect());
        stations.push(RouterNode { node: *node, gateway, devices: ids });
    }
    let lines = &scenario.policies[policy].links;
    let cables = (0..).zip(&scenario.cables).map(|(number, cable)| {
        let own = lines.iter().find(|(of, ..)| *of == number);
        let line = |usual: &LinkDirection, own: Option<&LinkDirection>| {
            own.map_or_else(|| usual.clone(), |own| own.clone().or(usual))
        };
        let up = line(&cable.up, own.map(|(_, up, _)| up));
        let down = line(&cable.down, own.map(|(.., down)| down));
        let role = |end: Option<&crate::model::LinkEnd>| {
            end.map_or(NodeRole::Relay, |end| scenario.nodes[end.node].role)
        };
        let roles = [role(cable.ends.first()), role(cable.ends.last())];
        let placed = cable.ends.iter().map(|end| scenario.end_in_network(*end));
        let ends: Vec<CableEnd> = placed.map(|end| CableEnd { node: end.node, device: end.device }).collect();
        let ring_at = |end: Option<&CableEnd>| {
            let end = end?;
            let (_, rings) = rings.iter().find(|(node, _)| *node == end.node)?;
            rings.get(end.device?).copied()
        };
        Cable {
            there: direction(&up, roles[0], ring_at(ends.first())),
            back: direction(&down, roles[1], ring_at(ends.last())),
            ends,
        }
    });
    let layout = Layout {
        nodes: scenario.nodes.len() + scenario.ports(),
        cables: cables.collect(),
        machines: stations,
        host_jitter: scenario.jitter,
        hosts: scenario.nodes.iter().map(|node| node.role == NodeRole::Host).collect(),
        seed,
    };
    let mut world = World::new(layout, START);
    for (number, cable) in scenario.cables.iter().enumerate() {
        let own = lines.iter().find(|(of, ..)| *of == number);
        for (up, usual) in [(true, &cable.up), (false, &cable.down)] {
            let own = own.map(|(_, there, back)| if up { there } else { back });
            let impairment = own.and_then(|own| own.impairment.clone()).or(usual.impairment.clone());
            let trace = own.and_then(|own| own.trace.clone()).or(usual.trace.clone());
            for link in world.links(number, up) {
                if let Some(what) = impairment.clone() {
                    world.net.impair(link, what);
                }
                if let Some(trace) = trace.clone() {
                    world.net.follow(link, trace);
                }
            }
        }
    }
    let (nodes, hosts) = laid_machines.into_iter().unzip();
    Ok(LaidOut { world, hosts, nodes, devices })
}

/// The devices of a machine: those of the scenario in its order, then what its policy made.
fn device_ids(node: &ScenarioNode, gateway: &Gateway) -> Vec<DeviceId> {
    let mut ids: Vec<DeviceId> =
        node.machine.devices.iter().filter_map(|device| gateway.device(&device.name)).collect();
    let others: Vec<DeviceId> = gateway.devices().filter(|id| !ids.contains(id)).collect();
    ids.extend(others);
    ids
}

/// A direction of a link as the network knows it.
fn direction(line: &LinkDirection, role: NodeRole, ring: Option<u32>) -> CableDirection {
    // A device's own ring is long, but a driver fills no more of it than its byte queue limit: one frame by
    // default.
    let requested = ring.filter(|ring| *ring != DeviceSpec::default().ring);
    CableDirection {
        bits_per_second: line.rate,
        packet_rate: line.packet_rate.filter(|rate| *rate > 0),
        delay: line.delay.unwrap_or_default(),
        jitter: line.jitter.unwrap_or_default(),
        framing: line.framing.unwrap_or_default(),
        limit: limit(line, role),
        ring: requested.or(line.ring).unwrap_or(1),
        queue_limit: line.bql,
    }
}

/// What a queue holds.
pub fn limit(line: &LinkDirection, role: NodeRole) -> Limit {
    let bits = line.mean_rate();
    match (line.buffer, bits) {
        (Some(BufferSize::Bytes(bytes)), _) => Limit::Bytes(bytes),
        (Some(BufferSize::Packets(packets)), _) => Limit::Packets(packets),
        (Some(BufferSize::Time(Nanos(ns))), Some(bits)) => {
            Limit::Bytes(((u128::from(bits) * u128::from(ns) / 8_000_000_000) as u64).max(1514))
        }
        (None, Some(bits)) if role == NodeRole::Relay => Limit::Bytes(USUAL_BUFFER.max(bits / 32)),
        _ => Limit::None,
    }
}

/// The address that a node has in a conversation, as far as it is known: of a machine that of the device the
/// way leads by.
pub fn address(scenario: &Scenario, laid: &mut LaidOut, node: usize, end: Option<CableEnd>) -> IpAddr {
    let of = &scenario.nodes[node];
    let number = laid.nodes.iter().position(|known| *known == node);
    let own = number.zip(end.and_then(|end| end.device)).and_then(|(number, device)| {
        let id = laid.devices[number].get(device)?.1;
        let machine = laid.world.net.machine.get(number)?;
        machine.gateway.addresses(id).first().map(|(address, _)| *address)
    });
    // A machine whose devices have no addresses, and all nodes without one.
    of.address.or(own).unwrap_or(IpAddr::from([192, 0, 2, 100_u8.saturating_add(node as u8)]))
}
