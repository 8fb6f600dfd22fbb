//! The gateway that a capture's packets pass, with a policy, and the links around it.
//!
//! lan - gateway \[the policy\] - modem \[drop-tail\] = line

use super::settings::CaptureSettings;
use tidegate_gateway::{DeviceId, DeviceKind};
use tidegate_packet::{Handle, Nanos, QueueLocation};
use tidegate_policy::{Kind, Verb};
use tidegate_sim::{GatewayMachine, Limit, LinkId, LinkPeer, LinkSpec, Net, PathId, Port};
use tidegate_trial::{DeviceClass, InstalledTrees, START, TrialPolicy};

/// A policy to hold the capture against.
pub struct CandidatePolicy {
    /// What it is called.
    pub name: String,
    /// Its file; empty for none.
    pub file: String,
    /// What a script is given.
    pub args: Vec<String>,
    /// The loaded policy.
    pub policy: TrialPolicy,
}

/// The name of no policy.
pub const NONE: &str = "none";

impl CandidatePolicy {
    /// No policy: the devices of the first of the others.
    pub fn none(others: &[CandidatePolicy], options: &CaptureSettings) -> CandidatePolicy {
        let text = options.over.as_ref().map(|(upper, _)| upper).or(options.dev.as_ref());
        let first = others.first().map(|one| &one.policy);
        let wan = text.or(first.map(|policy| &policy.wan)).cloned().unwrap_or_else(|| "eth0".to_owned());
        let beneath = options.over.as_ref().map(|(_, lower)| lower.clone());
        let lan = first.map_or_else(|| "lan0".to_owned(), |policy| policy.lan.clone());
        let policy = TrialPolicy::none(wan, beneath, lan);
        CandidatePolicy { name: NONE.to_owned(), file: String::new(), args: Vec::new(), policy }
    }
}

/// The simulated network of a replay.
pub struct CaptureNetwork {
    /// The network in virtual time.
    pub net: Net<GatewayMachine>,
    /// The ways through it.
    pub paths: HomePaths,
    /// The observed links, with what they are called.
    pub links: Vec<(LinkId, String)>,
    /// The modem's link.
    pub modem: Option<LinkId>,
    /// Bytes of the longest packet that goes out.
    pub mtu: u32,
    devices: Vec<DeviceId>,
    trees: InstalledTrees,
}

/// Ways through it.
#[derive(Clone, Copy)]
pub struct HomePaths {
    /// From the LAN to the line.
    pub out: PathId,
    /// From the line to the LAN.
    pub inward: PathId,
    /// From and to the gateway itself.
    pub gateway_out: PathId,
    /// To the gateway itself.
    pub gateway_in: PathId,
    /// The links where a packet's way ends: out, and in.
    pub last: [LinkId; 2],
}

impl CaptureNetwork {
    /// Builds the network for a policy.
    pub fn new(candidate: &CandidatePolicy, options: &CaptureSettings, seed: u64) -> CaptureNetwork {
        let policy = &candidate.policy;
        let mut machine = policy.machine(true, seed);
        let mut devices: Vec<DeviceId> = Vec::new();
        for name in [Some(&policy.wan), Some(&policy.lan), policy.beneath.as_ref()]
            .into_iter()
            .flatten()
            .chain(&policy.returning)
        {
            devices.push(machine.gateway.add_device(name, TrialPolicy::device_spec(name)));
        }
        policy.stack(&mut machine.gateway);
        let mtu = machine.gateway.spec(devices[0]).mtu;
        let trees = InstalledTrees::of(&mut machine.gateway, &devices, START);
        let names: Vec<String> = devices.iter().map(|id| machine.gateway.name(*id).to_owned()).collect();
        let kinds: Vec<DeviceKind> = devices.iter().map(|id| machine.gateway.spec(*id).kind).collect();
        let mut net = Net::new(GatewayMachine::new(machine.gateway, devices.clone(), seed), seed, START);

        let (wan, lan, beneath) = (Port(0), Port(1), policy.beneath.as_ref().map(|_| Port(2)));
        let line = options.rate.filter(|_| options.direct).map(|rate| rate.as_bits());
        let from_lan = net.link(LinkSpec::wire(Nanos(0)).into_port(lan));
        let to_lan = net.link(LinkSpec::port(lan, None, Nanos(0)));
        let (first, lower) = match beneath {
            None => (net.link(LinkSpec::port(wan, line, Nanos(0))), None),
            Some(port) => {
                let upper = LinkSpec { peer: LinkPeer::Beneath(port), ..LinkSpec::port(wan, None, Nanos(0)) };
                (net.link(upper), Some(net.link(LinkSpec::port(port, line, Nanos(0)))))
            }
        };
        let outside = LinkSpec::wire(Nanos(0)).into_port(beneath.unwrap_or(wan));
        let from_outside = net.link(outside);
        let modem = options.modem().map(|(rate, bytes)| {
            net.link(LinkSpec::drop_tail(rate.as_bits(), Nanos(0), Limit::Bytes(bytes)))
        });
        let mut links: Vec<(LinkId, String)> = vec![(first, names[0].clone()), (to_lan, names[1].clone())];
        links.extend(lower.map(|link| (link, names[2].clone())));
        for at in (0..devices.len()).skip(links.len()).filter(|at| kinds[*at] == DeviceKind::Ifb) {
            links.push((net.link(LinkSpec::returning(Port(at as u16))), names[at].clone()));
        }
        links.extend(modem.map(|link| (link, "modem".to_owned())));
        links.iter().for_each(|(link, _)| net.observe(*link));

        let away: Vec<LinkId> = [Some(first), lower, modem].into_iter().flatten().collect();
        let through: Vec<LinkId> = [from_lan].into_iter().chain(away.iter().copied()).collect();
        let ways = HomePaths {
            out: net.path(&through),
            inward: net.path(&[from_outside, to_lan]),
            gateway_out: net.path(&away),
            gateway_in: net.path(&[from_outside]),
            last: [away.last().copied().unwrap_or(first), to_lan],
        };
        CaptureNetwork { net, paths: ways, links, modem, mtu, devices, trees }
    }

    /// What an observed link is called.
    pub fn name(&self, link: LinkId) -> &str {
        self.links.iter().find(|(known, _)| *known == link).map_or("", |(_, name)| name)
    }

    /// The link's device, if it is one's.
    pub fn device(&self, link: LinkId) -> Option<DeviceId> {
        let at = self.links.iter().position(|(known, _)| *known == link)?;
        self.devices.get(at).copied().filter(|_| Some(link) != self.modem)
    }

    /// Which class or root of which device a packet was in, what is for people called so, and what queue
    /// that is.
    pub fn class(&self, policy: &TrialPolicy, link: LinkId, location: QueueLocation) -> ClassLabel {
        let device = self.name(link).to_owned();
        let is_class = location.on != Handle::ROOT && location.on.minor() != 0;
        let kind =
            self.trees.qdiscs.iter().find(|qdisc| qdisc.dev == device && qdisc.handle == location.qdisc);
        let queue = match kind.filter(|_| !location.qdisc.is_none()) {
            Some(qdisc) => qdisc.kind.name(),
            None if is_class => Kind::Pfifo.name(),
            None if self.device(link).is_none() => "drop-tail",
            None => Kind::PfifoFast.name(),
        };
        let id = match (is_class, location) {
            (true, _) => location.on.to_string(),
            (false, _) if self.device(link).is_none() => "buffer".to_owned(),
            (false, QueueLocation { on: Handle::NONE, .. }) => "before any queue".to_owned(),
            (false, QueueLocation { qdisc: Handle::NONE, .. }) => "root".to_owned(),
            // What no class of HTB takes waits before all of them.
            (false, QueueLocation { qdisc, .. }) if queue == Kind::Htb.name() => format!("{qdisc} direct"),
            (false, QueueLocation { qdisc, .. }) => qdisc.to_string(),
        };
        let title = if is_class {
            let place = DeviceClass { device: device.clone(), class: location.on };
            policy.title_of(&place, &self.trees.filters).unwrap_or_default()
        } else {
            String::new()
        };
        let queue = if location.on == Handle::NONE && self.device(link).is_some() {
            String::new()
        } else {
            queue.to_owned()
        };
        ClassLabel { device, id, title, queue }
    }
}

/// A class in words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassLabel {
    /// The device, or `modem`.
    pub device: String,
    /// The class, or the root.
    pub id: String,
    /// What the class carries; may be empty.
    pub title: String,
    /// The kind of its queue; may be empty.
    pub queue: String,
}

impl ClassLabel {
    /// `eth0 1:20 (port 22), fq_codel`.
    pub fn words(&self) -> String {
        let title = if self.title.is_empty() { String::new() } else { format!(" ({})", self.title) };
        let queue = if self.queue.is_empty() { String::new() } else { format!(", {}", self.queue) };
        format!("{} {}{title}{queue}", self.device, self.id)
    }
}

/// Whether a policy configures nothing.
pub fn is_silent(policy: &TrialPolicy) -> bool {
    !policy.ops.iter().any(|op| matches!(op, tidegate_policy::Op::Qdisc(q) if q.verb != Verb::Delete))
}

impl CaptureNetwork {
    /// Bytes of link header that frames count before a link.
    pub fn link_header(&self, link: LinkId) -> u32 {
        let ethernet = tidegate_packet::Head::ETHERNET as u32;
        self.device(link).map_or(ethernet, |id| self.net.machine.gateway.spec(id).link_header)
    }
}
