//! A policy as an engine needs it: the devices, the operations for the model machine, and where a backend
//! must be attached.

use crate::error::{ErrorContext, Result};
use tidegate_dataplane::packet_io::{AttachPoint, TrafficDirection};
use tidegate_gateway::{DeviceSpec, Gateway, GatewayContext};
use tidegate_packet::{Pool, Seeded, Time};
use tidegate_plan::rebind::main_device;
use tidegate_policy::dump::Installed;
use tidegate_policy::dump::{FilterDump, FilterEntry, QdiscDump};
use tidegate_policy::netfilter::RuleTable;
use tidegate_policy::{Act, Kind, LinkDriver, LinkOp, Op, RawLink};
use tidegate_sys::link_monitor::{self, LinkInfo};

/// Where the engine's clock begins: what runs in jiffies must not begin before time does.
pub(crate) const START: Time = Time(1_000_000_000);

/// A policy for an engine.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    /// The operations for the model machine: commands of tc, and of ip where they make an ifb.
    pub(crate) ops: Vec<Op>,
    /// Tables of netfilter that the kernel is to have: marks are set there.
    pub(crate) tables: Vec<RuleTable>,
    /// The devices that are there.
    pub(crate) devices: Vec<(LinkInfo, DeviceSpec)>,
    /// Where packets are taken from the kernel.
    pub(crate) spots: Vec<AttachPoint>,
}

impl Wanted {
    /// What these operations come to on this computer.
    ///
    /// # Errors
    /// A device is not there, or an operation requests what no backend can do.
    pub(crate) fn new(log: &[Op]) -> Result<Wanted> {
        let links = link_monitor::links().context("the kernel does not list its links")?;
        Wanted::on(log, &links)
    }

    /// The policy on a computer with these links.
    fn on(log: &[Op], links: &[LinkInfo]) -> Result<Wanted> {
        let (rules, ops): (Vec<Op>, Vec<Op>) =
            log.iter().cloned().partition(|op| matches!(op, Op::Netfilter(_)));
        let made = |op: &Op| match op {
            Op::Link(LinkOp::Add { name, .. }) => Some(name.clone()),
            _ => None,
        };
        let made: Vec<String> = ops.iter().filter_map(made).collect();
        let mut named: Vec<&str> =
            ops.iter().filter_map(Op::device).filter(|name| !made.iter().any(|made| made == name)).collect();
        named.sort_unstable();
        named.dedup();
        let mut devices = Vec::new();
        let mut own = Vec::new();
        for name in named {
            match links.iter().find(|link| link.name == name) {
                // An ifb of the kernel's is not needed: the machine has its own.
                _ if LinkDriver::of_name(name) == LinkDriver::Ifb => {
                    own.push(Op::Link(LinkOp::Add { name: name.to_owned(), kind: LinkDriver::Ifb }));
                }
                Some(link) => devices.push((link.clone(), device_spec(link))),
                None => bail!(
                    Policy,
                    "there is no device `{name}` here; there are {}. Bind the policy to one of them with --dev",
                    names(links)
                ),
            }
        }
        let mut wanted = Wanted {
            ops: own.into_iter().chain(ops).collect(),
            devices,
            tables: netfilter(&rules)?,
            spots: Vec::new(),
        };
        let mut machine = wanted.machine()?;
        wanted.spots = spots(&mut machine, &wanted.devices)?;
        ensure!(
            !wanted.spots.is_empty(),
            Policy,
            "the policy queues nothing on any device; there is nothing to run"
        );
        Ok(wanted)
    }

    /// A machine that has carried out all of it.
    ///
    /// # Errors
    /// An operation is refused there.
    pub(crate) fn machine(&self) -> Result<Gateway> {
        let mut gateway = Gateway::new();
        for (link, spec) in &self.devices {
            gateway.add_device(&link.name, *spec);
        }
        let (mut pool, mut source) = (Pool::new(0), Seeded::new(1));
        for op in &self.ops {
            let result =
                gateway.apply(GatewayContext { now: START, pool: &mut pool, random: &mut source }, op);
            result.map_err(|error| error!(Policy, "{error}: {op:?}"))?;
        }
        Ok(gateway)
    }

    /// The device after which all are named: see [`main_device`], as `apply` does.
    pub(crate) fn name(&self) -> &str {
        let main = main_device(&self.ops);
        let spot = main.and_then(|main| self.spots.iter().find(|spot| spot.dev == main));
        &spot.unwrap_or(&self.spots[0]).dev
    }
}

/// What rules leave behind.
fn netfilter(rules: &[Op]) -> Result<Vec<RuleTable>> {
    let (mut gateway, mut pool, mut draws) = (Gateway::new(), Pool::new(0), Seeded::new(1));
    for rule in rules {
        let result = gateway.apply(GatewayContext { now: START, pool: &mut pool, random: &mut draws }, rule);
        result.map_err(|error| error!(Policy, "{error}: {rule:?}"))?;
    }
    Ok(tidegate_plan::rule_tables(&gateway))
}

/// What the machine knows of a link.
pub fn device_spec(link: &LinkInfo) -> DeviceSpec {
    let of_kind = match link.kind.as_str() {
        "" if link.ethernet => LinkDriver::Ethernet,
        "veth" => LinkDriver::Veth { peer: String::new() },
        "bridge" => LinkDriver::Bridge,
        "dummy" => LinkDriver::Dummy,
        _ if link.ethernet => LinkDriver::Ethernet,
        "wireguard" => LinkDriver::Raw(RawLink::Wireguard),
        "tun" => LinkDriver::Raw(RawLink::Tun),
        _ => LinkDriver::PointToPoint,
    };
    DeviceSpec { mtu: link.mtu, tx_queue_len: link.txqlen, ..DeviceSpec::of(&of_kind) }
}

fn names(links: &[LinkInfo]) -> String {
    let names: Vec<&str> = links.iter().map(|link| link.name.as_str()).filter(|name| *name != "lo").collect();
    if names.is_empty() { "none but lo".into() } else { names.join(", ") }
}

/// Where a backend must be attached for the operations that a machine carried out.
fn spots(machine: &mut Gateway, devices: &[(LinkInfo, DeviceSpec)]) -> Result<Vec<AttachPoint>> {
    let (mut egress, mut ingress) = (Vec::new(), Vec::new());
    for (link, _) in devices {
        let Some(device) = machine.device(&link.name) else { continue };
        let wanted = tidegate_plan::installed(machine, START, &link.name);
        let qdiscs = &wanted.qdiscs;
        let hook = |dump: &&QdiscDump| dump.kind.is_hook();
        let hooked = qdiscs.iter().find(hook).map(|dump| dump.kind);
        refuse_tags(&wanted, &link.name)?;
        if machine.is_configured(device) && qdiscs.iter().any(|dump| !hook(&dump))
            || hooked == Some(Kind::Clsact)
        {
            egress.push(AttachPoint { dev: link.name.clone(), direction: TrafficDirection::Egress });
        }
        if hooked.is_some() {
            ingress.push(AttachPoint { dev: link.name.clone(), direction: TrafficDirection::Ingress });
        }
    }
    Ok(egress.into_iter().chain(ingress).collect())
}

/// A backend gives frames back as long as they came: tags are the kernel's business. A gate follows a clock
/// of the machine, and the engine's begins at 0.
fn refuse_tags(installed: &Installed, name: &str) -> Result<()> {
    let has = |dump: &FilterDump, kind: &dyn Fn(&Act) -> bool| match &dump.entry {
        FilterEntry::Filter { actions, .. } => actions.iter().any(|action| kind(&action.action.act)),
        _ => false,
    };
    let own = |act: &Act| matches!(act, Act::Mpls(_) | Act::TunnelKey(_) | Act::Gate(_));
    if let Some(dump) = installed.filters.iter().find(|dump| has(dump, &own)) {
        bail!(
            Policy,
            "a filter at {} of {name} has an action mpls, tunnel_key or gate, which is simulated only",
            dump.parent
        );
    }
    let tags = |dump: &FilterDump| has(dump, &|act| matches!(act, Act::Vlan(_)));
    if let Some(dump) = installed.filters.iter().find(|dump| tags(dump)) {
        bail!(
            Policy,
            "a filter at {} of {name} pushes or pops VLAN tags, which only the kernel's back end does: use \
            --backend kernel, or a VLAN device",
            dump.parent
        );
    }
    Ok(())
}
