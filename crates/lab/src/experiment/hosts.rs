//! The real hosts of a scenario, and what can be real at all.

use super::error::{Result, impossible};
use super::names;
use crate::{HostSpec, LabHost, Party};
use std::collections::BTreeMap;
use std::net::IpAddr;
use tidegate_scenario::lay::{self, LaidOut};
use tidegate_scenario::model::{NodeRole, Scenario, TcpOptions, TrafficItem, TrafficKind};
use tidegate_sim::{CongestionControl, EcnCodepoint};
use tidegate_sys::tun::Tun;

/// The largest packet where no link sets one, in bytes.
const USUAL_MTU: u32 = 1500;
/// Where the kernel reports which congestion controls it has.
const CONTROLS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// The most bits per second that a machine carries by this way, in both directions together: some 160,000
/// packets of 1500 bytes. (Two processors carried 1.9 Gbit/s, and were late beyond.)
const MOST_BITS: u64 = 2_000_000_000;

/// The real hosts of a run.
#[derive(Debug, Default)]
pub(super) struct Hosts {
    /// Each with the node that it is.
    pub(super) all: Vec<(usize, LabHost)>,
}

impl Hosts {
    /// Makes all hosts of a scenario; `segments`: how many of one size they may hand over as one, if that is
    /// not the kernel's. `attached`: nodes that are namespaces of others, with the device there.
    pub(super) fn new(
        scenario: &Scenario,
        laid: &mut LaidOut,
        segments: Option<u32>,
        attached: Vec<(usize, Tun)>,
    ) -> Result<(Hosts, Vec<Party>, Vec<Tun>)> {
        let addresses: Vec<_> =
            real(scenario).map(|node| (node, lay::address(scenario, laid, node, None))).collect();
        // Hosts see the files as they are when they are made.
        let own = addresses.iter().map(|(node, address)| (*address, *node));
        let all: Vec<_> = own.chain(passing(scenario, laid)).collect();
        names::known(all.iter().map(|(address, node)| (scenario.nodes[*node].name.as_str(), *address)))?;
        let (mut all, mut parties, mut tuns) = (Vec::new(), Vec::new(), Vec::new());
        let mut attached: BTreeMap<usize, Tun> = attached.into_iter().collect();
        for (node, address) in addresses {
            if let Some(tun) = attached.remove(&node) {
                parties.push(Party { node, addresses: vec![address] });
                tuns.push(tun);
                continue;
            }
            let (host, tun) = LabHost::new(&HostSpec { segments, ..spec(scenario, node, address) })?;
            all.push((node, host));
            parties.push(Party { node, addresses: vec![address] });
            tuns.push(tun);
        }
        Ok((Hosts { all }, parties, tuns))
    }

    /// The host that a node is.
    pub(super) fn of(&self, node: usize) -> Option<&LabHost> {
        self.all.iter().find(|(of, _)| *of == node).map(|(_, host)| host)
    }
}

/// The addresses of those that pass packets on: machines with one for each of their devices, relays.
fn passing(scenario: &Scenario, laid: &mut LaidOut) -> impl Iterator<Item = (IpAddr, usize)> {
    machines(scenario, laid).into_iter().filter(|(_, node)| scenario.nodes[*node].role != NodeRole::Host)
}

/// The addresses of the model machines, which answer pings.
pub(super) fn machines(scenario: &Scenario, laid: &mut LaidOut) -> Vec<(IpAddr, usize)> {
    let mut all = Vec::new();
    for number in 0..laid.nodes.len() {
        let node = laid.nodes[number];
        all.extend(scenario.nodes[node].address.map(|address| (address, node)));
        let Some(machine) = laid.world.net.machine.get(number) else { continue };
        for (_, device) in &laid.devices[number] {
            all.extend(machine.gateway.addresses(*device).iter().map(|(address, _)| (*address, node)));
        }
    }
    let relays = scenario.nodes.iter().enumerate().filter(|(_, node)| node.role == NodeRole::Relay);
    all.extend(relays.filter_map(|(number, node)| Some((node.address?, number))));
    all
}

/// The nodes that real hosts are.
fn real(scenario: &Scenario) -> impl Iterator<Item = usize> {
    (0..scenario.nodes.len()).filter(|node| scenario.nodes[*node].role == NodeRole::Host)
}

pub(super) fn spec(scenario: &Scenario, node: usize, address: IpAddr) -> HostSpec {
    let of = &scenario.nodes[node];
    let at_it = scenario.cables.iter().filter(|cable| cable.ends.iter().any(|end| end.node == node));
    let mtu = at_it.filter_map(|cable| cable.mtu).min().unwrap_or(USUAL_MTU);
    let items = || scenario.loads.iter().flat_map(|load| &load.items);
    let is_needed = items().any(|item| {
        item.from == node && tcp_of(item).is_some_and(|tcp| tcp.or(of.tcp).ecn() != EcnCodepoint::Off)
    });
    HostSpec {
        name: of.name.clone(),
        addresses: vec![address],
        mtu,
        control: of.tcp.control.map(|control| linux_name(control).to_owned()),
        ecn: is_needed,
        segments: None,
    }
}

fn tcp_of(item: &TrafficItem) -> Option<TcpOptions> {
    if let TrafficKind::Tcp { tcp, .. } = &item.what { Some(*tcp) } else { None }
}

/// What Linux calls a congestion control.
pub(super) fn linux_name(control: CongestionControl) -> &'static str {
    match control {
        CongestionControl::Reno => "reno",
        // HyStart is a switch of the whole kernel's: real hosts have it as it is there.
        CongestionControl::Cubic | CongestionControl::CubicSlowStart => "cubic",
        CongestionControl::Bbr => "bbr",
        CongestionControl::Dctcp => "dctcp",
        CongestionControl::Prague => "prague",
    }
}

/// Can this be done with real hosts on this machine?
///
/// # Errors
/// What cannot, why, and what to do instead.
pub fn possible(scenario: &Scenario) -> Result<()> {
    let known = std::fs::read_to_string(CONTROLS).unwrap_or_default();
    for item in scenario.loads.iter().flat_map(|load| &load.items) {
        let ping = matches!(item.what, TrafficKind::Ping { .. });
        for (node, may_be_machine) in [(item.from, false), (item.to, ping)] {
            if scenario.nodes[node].role == NodeRole::Machine && !may_be_machine {
                return impossible(format!(
                    "`{}` begins or ends at the machine `{}`, which is a model: no program runs there; let \
                    a host do it, or use `tidegate sim`",
                    item.id, scenario.nodes[node].name
                ));
            }
        }
        if let Some(tcp) = tcp_of(item) {
            let control = tcp.or(scenario.nodes[item.from].tcp).control();
            let name = linux_name(control);
            if !known.is_empty() && !known.split_whitespace().any(|has| has == name) {
                return impossible(format!(
                    "`{}` needs the congestion control {name}, and this kernel has {}; `modprobe \
                    tcp_{name}` may add it",
                    item.id,
                    known.trim()
                ));
            }
        }
    }
    let carried: u64 =
        scenario.cables.iter().map(|cable| rate(&cable.up) + rate(&cable.down)).min().unwrap_or(0);
    if carried > MOST_BITS {
        return impossible(
            "its slowest link carries more than 2 Gbit/s, both directions together, and user space does \
            not; use `tidegate sim`, or a slower link",
        );
    }
    Ok(())
}

fn rate(line: &tidegate_scenario::model::LinkDirection) -> u64 {
    line.mean_rate().unwrap_or(u64::MAX / 4)
}
