//! A policy that is tried: what was configured, and which devices lead where.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::OnceLock;
use tidegate_gateway::{DeviceKind, DeviceSpec, Gateway};
use tidegate_inspect::{CARRIED_OUT_AT, ClassNames, PolicyInput, PolicyModel, Uses};
use tidegate_packet::header::proto;
use tidegate_packet::{Handle, KernelModel, Pool, Seeded};
use tidegate_policy::netfilter::{Condition, Match, NetfilterTarget, NfCommand};
use tidegate_policy::{LinkDriver, LinkOp, Op, Verb};
use tidegate_shims::Machine;
use tidegate_syntax::TcVersion;
use tidegate_syntax::short::{Rules, leads_to_lan};

/// What a script configured.
#[derive(Default)]
pub struct TrialPolicy {
    /// The operations that were carried out, in order.
    pub ops: Vec<Op>,
    /// The devices of the machine.
    pub devices: Vec<String>,
    /// The device whose policy governs the way to the modem.
    pub wan: String,
    /// The device that it is stacked on, if it is.
    pub beneath: Option<String>,
    /// The device towards the LAN.
    pub lan: String,
    /// Devices that give back what is redirected to them.
    pub returning: Vec<String>,
    /// The kernel of the machine.
    pub kernel: KernelModel,
    /// Its tc.
    pub tc: TcVersion,
    /// Commands the script issued.
    pub commands: usize,
    /// What the reader should know about the capture.
    pub notes: Vec<String>,
    /// What it calls its classes.
    pub names: ClassNames,
    /// What filters get and rules bring to them, once it was requested.
    pub(crate) uses: OnceLock<Uses>,
}

/// What a file or a script configured.
pub struct Configured {
    /// The machine, with what was carried out on it.
    pub machine: Machine,
    /// How many commands were issued.
    pub commands: usize,
    /// The device that leads to the modem, if a short policy names it.
    pub wan: Option<String>,
    /// And the one towards the LAN.
    pub lan: Option<String>,
    /// What the reader should know about loading it.
    pub notes: Vec<String>,
    /// What it calls its classes.
    pub names: ClassNames,
}

/// Why a policy cannot be tried.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PolicyError {
    /// Packets are redirected to this device, which is down.
    Down(String),
    /// No device is configured that leads to the modem; but packets that arrive at these, if any, are
    /// redirected.
    Nothing(Vec<String>),
    /// These devices are configured, and no option chooses the one that leads to the modem.
    Several(Vec<String>),
    /// This one, by which a machine sends to itself, is configured or named alone.
    Loopback(String),
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PolicyError::Down(name) => write!(
                f,
                "packets are redirected to {name}, which is down, and so dropped: nothing would come \
                through. Set it up in the script: ip link set dev {name} up"
            ),
            PolicyError::Nothing(given) if given.is_empty() => {
                write!(f, "it hangs no qdisc at the root of any device, so there is nothing to try")
            }
            PolicyError::Nothing(given) => write!(
                f,
                "it hangs a qdisc at the root of {} only: what passes there comes from another device, by \
                `action mirred egress redirect`, and goes back to it. Give that device a qdisc or a filter \
                in the script, or name the one that leads to the modem with --dev",
                given.join(", ")
            ),
            PolicyError::Loopback(name) => write!(
                f,
                "{name} leads to no line: the machine sends to itself by it, so there is nothing to try. \
                 `tidegate explain` and `tidegate check` show what happens on it; another device is named with \
                 --dev"
            ),
            PolicyError::Several(several) => write!(
                f,
                "it configures several devices ({}); say which one leads to the modem with --dev",
                several.join(", ")
            ),
        }
    }
}

impl std::error::Error for PolicyError {}

impl TrialPolicy {
    /// Has it rules that mark what the machine itself sends over IPv4 towards the modem, from a TCP port? The
    /// port of the first.
    pub(crate) fn server_port(&self) -> Option<u16> {
        self.ops.iter().find_map(|op| {
            let Op::Netfilter(nf) = op else { return None };
            let (NfCommand::Append(chain, rule) | NfCommand::Insert(chain, _, rule)) = &nf.command else {
                return None;
            };
            let is_other = |one: &Match| match &one.what {
                Condition::Protocol(protocol) => (*protocol == proto::TCP) == one.not,
                Condition::Out(dev) => {
                    let is_wan =
                        dev.strip_suffix('+').map_or(*dev == self.wan, |stem| self.wan.starts_with(stem));
                    is_wan == one.not
                }
                _ => false,
            };
            let sorts = |target: &NetfilterTarget| {
                use NetfilterTarget::{Classify, Connmark, Dscp, Goto, Jump, Mark, Tos};
                matches!(
                    target,
                    Mark { .. } | Classify(_) | Connmark(_) | Dscp(_) | Tos(..) | Jump(_) | Goto(_)
                )
            };
            let is_ours = chain.eq_ignore_ascii_case("output")
                && nf.family.has(false)
                && rule.targets().any(sorts)
                && !rule.matches.iter().any(is_other);
            if !is_ours {
                return None;
            }
            rule.matches.iter().find_map(|m| match &m.what {
                Condition::SourcePort(range) if !m.not => Some(range.0),
                Condition::SourcePorts(ranges) if !m.not => ranges.first().map(|(low, _)| *low),
                _ => None,
            })
        })
    }

    /// Has it rules that translate addresses?
    pub(crate) fn translates(&self) -> bool {
        let translates = |op: &Op| match op {
            Op::Netfilter(nf) => nf.command.rule().is_some_and(|rule| {
                rule.targets().any(|target| matches!(target, NetfilterTarget::Translate(_)))
            }),
            _ => false,
        };
        self.ops.iter().any(translates)
    }

    /// No policy, on a machine with these devices: `wan` leads to the modem, or is stacked on `beneath`,
    /// which does.
    pub fn none(wan: String, beneath: Option<String>, lan: String) -> TrialPolicy {
        let devices = [&wan, &lan].into_iter().chain(&beneath).cloned().collect();
        TrialPolicy { devices, wan, beneath, lan, ..TrialPolicy::default() }
    }

    /// A machine with this policy, or without any.
    pub fn machine(&self, with_policy: bool, seed: u64) -> Machine {
        let pairs = if with_policy { self.pairs() } else { BTreeSet::new() };
        let there = self.devices.iter().map(String::as_str).filter(|name| !pairs.contains(name));
        let mut machine = Machine::for_script(there);
        machine.now = CARRIED_OUT_AT;
        machine.gateway.set_kernel(self.kernel);
        machine.tc = self.tc;
        if with_policy {
            let (mut pool, mut draws) = (Pool::new(0), Seeded::new(seed));
            let mut shim = machine.shim(&mut pool, &mut draws);
            for op in &self.ops {
                // It was carried out once, so it will be again; were it refused, the table of classes would
                // show it.
                let _ = shim.apply(op.clone());
            }
        }
        machine
    }
}

/// Do a device's classes show that it leads to the LAN?
fn classes_lead_to_lan(machine: &Machine, dev: &str) -> bool {
    let devices = machine.gateway.devices().map(|id| machine.gateway.name(id).to_owned()).collect();
    let policy = TrialPolicy { ops: machine.log.clone(), devices, ..TrialPolicy::default() };
    let reading = policy.reading();
    let mut rules = Vec::new();
    for table in reading.gateway.all_tables() {
        rules.extend(table.chains().iter().map(|chain| Rules {
            family: table.family(),
            table: table.name().to_owned(),
            is_nft: table.is_free(),
            chain: chain.name.clone(),
            rules: chain.rules.iter().map(|counted| counted.rule.clone()).collect(),
        }));
    }
    leads_to_lan(dev, (&reading.qdiscs, &reading.classes), &reading.filters, &rules)
}

impl TrialPolicy {
    /// The ends of veths that the policy makes: were one of them there, the other could not be made.
    fn pairs(&self) -> BTreeSet<&str> {
        let ends = self.ops.iter().filter_map(|op| match op {
            Op::Link(LinkOp::Add { name, kind: LinkDriver::Veth { peer } }) => {
                Some([name.as_str(), peer.as_str()])
            }
            _ => None,
        });
        ends.flatten().collect()
    }

    /// Which filters get packets, and which rules bring packets to them.
    pub(crate) fn uses(&self) -> &Uses {
        self.uses.get_or_init(|| Uses::of(&self.reading()))
    }

    /// The policy for checks and explanations: without the files, which they need not name.
    pub(crate) fn reading(&self) -> PolicyModel {
        let spec = |name: &String| (name.clone(), TrialPolicy::device_spec(name));
        PolicyModel::new(PolicyInput {
            sources: Vec::new(),
            steps: Vec::new(),
            ops: self.ops.clone(),
            devices: self
                .devices
                .iter()
                .filter(|name| !self.pairs().contains(name.as_str()))
                .map(spec)
                .collect(),
            down: Vec::new(),
            kernel: self.kernel,
            tc: self.tc,
            kernel_log: Vec::new(),
            scripts: false,
        })
    }
}

impl TrialPolicy {
    /// What a device of this name is taken for.
    pub fn device_spec(name: &str) -> DeviceSpec {
        DeviceSpec::of(&LinkDriver::of_name(name))
    }

    /// The transmit ring of the device before the modem, if the script changed it.
    pub(crate) fn requested_ring(&self, gateway: &Gateway, with_policy: bool) -> Option<u32> {
        let name = self.beneath.as_ref().unwrap_or(&self.wan);
        let ring = gateway.spec(gateway.device(name)?).ring;
        (with_policy && ring != TrialPolicy::device_spec(name).ring).then_some(ring)
    }

    /// Puts the WAN device on the one beneath.
    pub fn stack(&self, gateway: &mut Gateway) {
        let lower = self.beneath.as_deref().and_then(|name| gateway.device(name));
        if let (Some(upper), Some(lower)) = (gateway.device(&self.wan), lower) {
            gateway.stack_by_kind(upper, lower);
        }
    }
}

/// The devices that the caller names.
#[derive(Clone, Copy, Debug, Default)]
pub struct TrialDevices<'a> {
    /// The one that leads to the modem.
    pub wan: Option<&'a str>,
    /// Or two, the upper one on the lower, which leads to the modem.
    pub over: Option<&'a (String, String)>,
    /// The one towards the LAN.
    pub lan: Option<&'a str>,
}

impl TrialPolicy {
    /// The configured policy, with the devices that lead to the modem and to the LAN.
    ///
    /// # Errors
    /// No device to the modem is named, and several are configured or none.
    pub fn new(configured: Configured, devices: TrialDevices<'_>) -> Result<TrialPolicy, PolicyError> {
        let TrialDevices { wan: dev, over, lan: named_lan } = devices;
        let Configured { machine, commands, wan: text, lan: mut towards, mut notes, names } = configured;
        let kind = |name: &str| machine.gateway.device(name).map(|id| machine.gateway.spec(id).kind);
        refuse_dead_redirects(&machine)?;
        let is_loopback = |name: &str| kind(name) == Some(DeviceKind::Loopback);
        let gives_back = |name: &str| {
            let kind = kind(name);
            kind.is_none_or(|kind| matches!(kind, DeviceKind::Ifb | DeviceKind::Loopback))
        };
        let wan = match (dev, over) {
            (Some(dev), _) => dev.to_owned(),
            (None, Some((upper, _))) => upper.clone(),
            (None, None) => match text {
                Some(wan) => wan,
                // What a script made to try something out, and took away again, is not there any more.
                None => match wan_of(&machine.log, gives_back)? {
                    name if is_lan(&name) || classes_lead_to_lan(&machine, &name) => {
                        let why = match is_lan(&name) {
                            true => "by its name",
                            false => "because its classes match private networks as destinations",
                        };
                        notes.push(format!(
                            "{name} is taken for the device towards the LAN, {why}, so that downloads \
                                leave by it; \
                                --dev {name} takes it for the one that leads to the modem"
                        ));
                        towards = Some(name);
                        UNNAMED_WAN.to_owned()
                    }
                    name => name,
                },
            },
        };
        if is_loopback(&wan) {
            return Err(PolicyError::Loopback(wan));
        }
        let beneath = over.map(|(_, lower)| lower.clone());
        let mut devices: Vec<String> =
            machine.gateway.devices().map(|id| machine.gateway.name(id).to_owned()).collect();
        for name in [wan.as_str()].into_iter().chain(beneath.as_deref()).chain(named_lan) {
            if !devices.iter().any(|known| known == name) {
                devices.push(name.to_owned());
            }
        }
        let returning: Vec<String> =
            devices.iter().filter(|name| kind(name) == Some(DeviceKind::Ifb)).cloned().collect();
        let other = |wanted: DeviceKind, shaped: bool| {
            let fits = |name: &&String| {
                **name != wan
                    && Some(*name) != beneath.as_ref()
                    && kind(name) == Some(wanted)
                    && (!shaped || has_root_qdisc(&machine.log, name))
            };
            devices.iter().find(fits).cloned()
        };
        // Rules see packets come from a bridge, not from its ports; but what a port shapes must be in the
        // way.
        let guessed = || {
            let name = other(DeviceKind::Ethernet, true)?;
            if !is_lan(&name) && !classes_lead_to_lan(&machine, &name) {
                notes.push(format!(
                    "{name}, which the policy configures too, is taken for the device towards the LAN: downloads \
                     leave by it (--lan DEV names another)"
                ));
            }
            Some(name)
        };
        let lan = named_lan
            .map(str::to_owned)
            .or(towards)
            .or_else(guessed)
            .or_else(|| other(DeviceKind::Bridge, false))
            .or_else(|| other(DeviceKind::Ethernet, false))
            .unwrap_or_else(|| "lan0".to_owned());
        // Two devices may have the same classes.
        let logged: BTreeSet<&str> = machine.kernel_log.iter().map(String::as_str).collect();
        notes.extend(logged.into_iter().map(|line| format!("the kernel warns: {line}")));
        let (kernel, tc) = (machine.gateway.kernel(), machine.tc);
        let uses = OnceLock::new();
        Ok(TrialPolicy {
            ops: machine.log,
            devices,
            wan,
            beneath,
            lan,
            returning,
            kernel,
            tc,
            commands,
            notes,
            names,
            uses,
        })
    }
}

/// What the device to the modem is called where the policy names only the one towards the LAN.
const UNNAMED_WAN: &str = "wan0";

/// Whether a policy attaches a qdisc to the root of a device.
fn has_root_qdisc(ops: &[Op], name: &str) -> bool {
    ops.iter().any(|op| match op {
        Op::Qdisc(q) => q.verb != Verb::Delete && q.parent == Handle::ROOT && q.dev == name,
        _ => false,
    })
}

/// Whether a device's name implies that it leads to the LAN: a bridge, or OpenWrt's `lan1`.
fn is_lan(name: &str) -> bool {
    LinkDriver::of_name(name) == LinkDriver::Bridge
        || ["lan", "br-"].iter().any(|prefix| name.starts_with(prefix))
}

/// Refuses a policy that redirects packets to a device which is down: the kernel drops them, all of them.
fn refuse_dead_redirects(machine: &Machine) -> Result<(), PolicyError> {
    let down: Vec<&str> = machine.host.down().collect();
    let mut targets = machine.log.iter().filter_map(|op| match op {
        Op::Filter(filter) => filter
            .actions
            .iter()
            .filter_map(|action| action.act.redirects_to())
            .find(|name| down.contains(name)),
        _ => None,
    });
    match targets.next() {
        Some(name) => Err(PolicyError::Down(name.to_owned())),
        None => Ok(()),
    }
}

/// The device to whose root the script attaches a qdisc, ifbs not counted; where there is none, the one whose
/// arriving packets it governs.
fn wan_of(ops: &[Op], gives_back: impl Fn(&str) -> bool) -> Result<String, PolicyError> {
    let at = |hook: &dyn Fn(Handle) -> bool| {
        let hung = ops.iter().filter_map(|op| match op {
            Op::Qdisc(q) if q.verb != Verb::Delete && hook(q.parent) && !gives_back(&q.dev) => {
                Some(q.dev.as_str())
            }
            _ => None,
        });
        let mut names: Vec<&str> = hung.collect();
        names.sort_unstable();
        names.dedup();
        names
    };
    let mut names = at(&|parent| parent == Handle::ROOT);
    if names.is_empty() {
        names = at(&|parent| parent == Handle::INGRESS);
    }
    let is_loopback = |name: &String| LinkDriver::of_name(name) == LinkDriver::Loopback;
    match names.as_slice() {
        [] => Err(match at_roots(ops) {
            roots if roots.iter().any(is_loopback) => PolicyError::Loopback(roots.join(", ")),
            roots => PolicyError::Nothing(roots),
        }),
        [one] => Ok((*one).to_owned()),
        several => Err(PolicyError::Several(several.iter().map(|name| (*name).to_owned()).collect())),
    }
}

/// All devices whose root has a qdisc.
fn at_roots(ops: &[Op]) -> Vec<String> {
    let mut given: Vec<String> = ops
        .iter()
        .filter_map(|op| match op {
            Op::Qdisc(q) if q.verb != Verb::Delete && q.parent == Handle::ROOT => Some(q.dev.clone()),
            _ => None,
        })
        .collect();
    given.sort_unstable();
    given.dedup();
    given
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;
    use tidegate_packet::{Pool, Seeded};
    use tidegate_shims::{Answer, Call};

    /// The device towards the LAN of a policy for `eth0`.
    fn lan_of(devices: &[&str], script: &str) -> String {
        policy(devices, script, Some("eth0")).lan
    }

    fn policy(devices: &[&str], script: &str, dev: Option<&str>) -> TrialPolicy {
        configured(devices, script, TrialDevices { wan: dev, ..TrialDevices::default() })
    }

    fn configured(devices: &[&str], script: &str, named: TrialDevices<'_>) -> TrialPolicy {
        let mut machine = Machine::for_script(devices.iter().copied());
        let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
        for line in script.lines() {
            let mut words = line.split_whitespace().map(str::to_owned);
            let tool = words.next().expect("a tool");
            let call =
                Call { tool, args: words.collect(), stdin: None, cwd: PathBuf::from("/"), netns: None };
            assert_eq!(machine.shim(&mut pool, &mut draws).answer(&call).code, 0, "{line}");
        }
        let names = ClassNames::new();
        let configured = Configured { machine, commands: 1, wan: None, lan: None, notes: Vec::new(), names };
        TrialPolicy::new(configured, named).expect("a policy")
    }

    /// By `lo` a machine sends to itself.
    #[test]
    fn lo_leads_to_no_line() {
        let refused = |script: &str, dev: Option<&str>| {
            let mut machine = Machine::for_script(["lo", "eth0"]);
            let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
            for line in script.lines() {
                let args = line.split_whitespace().skip(1).map(str::to_owned).collect();
                let call =
                    Call { tool: "tc".into(), args, stdin: None, cwd: PathBuf::from("/"), netns: None };
                assert_eq!(machine.shim(&mut pool, &mut draws).answer(&call).code, 0, "{line}");
            }
            let names = ClassNames::new();
            let configured =
                Configured { machine, commands: 1, wan: None, lan: None, notes: Vec::new(), names };
            let devices = TrialDevices { wan: dev, ..TrialDevices::default() };
            TrialPolicy::new(configured, devices).map(|policy| policy.wan).map_err(|error| error.to_string())
        };
        let lo = "tc qdisc add dev lo root handle 1: htb default 12";
        let both = format!("{lo}\ntc qdisc add dev eth0 root tbf rate 1mbit burst 5k latency 50ms");
        assert_eq!(refused(&both, None).as_deref(), Ok("eth0"));
        for (script, dev) in [(lo, None), (both.as_str(), Some("lo"))] {
            assert!(
                refused(script, dev).is_err_and(|why| why.starts_with("lo leads to no line")),
                "{script}"
            );
        }
    }

    /// Rules of OUTPUT that mark what goes to the modem over IPv4 and TCP make uploads the gateway's own.
    #[test]
    fn only_rules_that_sort_what_the_gateway_sends_are_about_its_server() {
        let wan = "tc qdisc add dev eth0 root tbf rate 1mbit burst 5k latency 50ms\n";
        let port = |rule: &str| policy(&["eth0", "eth1"], &format!("{wan}{rule}\n"), None).server_port();
        let mark = "-j MARK --set-mark 8";
        for rule in [
            "-o eth0 -p tcp --sport 80",
            "-p tcp --sport 80",
            "-o eth+ -p tcp --sport 80",
            "! -o lo -p tcp --sport 80",
        ] {
            assert_eq!(port(&format!("iptables -t mangle -A OUTPUT {rule} {mark}")), Some(80), "{rule}");
        }
        for rule in [
            "-o eth0 -p udp --sport 80",
            "-o lo -p tcp --sport 80",
            "-o eth1 -p tcp --sport 80",
            "-p tcp --dport 80",
        ] {
            assert_eq!(port(&format!("iptables -t mangle -A OUTPUT {rule} {mark}")), None, "{rule}");
        }
        assert_eq!(port("iptables -A OUTPUT -p tcp --sport 22 -j ACCEPT"), None);
        assert_eq!(port(&format!("ip6tables -t mangle -A OUTPUT -p tcp --sport 80 {mark}")), None);
    }

    #[test]
    fn the_lan_is_a_bridge_unless_another_device_is_shaped() {
        let wan = "tc qdisc add dev eth0 root tbf rate 1mbit burst 5k latency 50ms\n";
        assert_eq!(lan_of(&["eth0", "br0"], wan), "br0");
        assert_eq!(lan_of(&["eth0", "eth1", "br0"], wan), "br0");
        assert_eq!(lan_of(&["eth0", "eth1"], wan), "eth1");
        let both = format!("{wan}tc qdisc add dev eth1 root fq_codel\n");
        assert_eq!(lan_of(&["eth0", "eth1", "br0"], &both), "eth1");
        // That is a guess, and it is said.
        let said = |devices: TrialDevices<'_>| {
            configured(&["eth0", "eth1", "eth2"], &both, devices).notes.join("\n")
        };
        let wan = TrialDevices { wan: Some("eth0"), ..TrialDevices::default() };
        assert!(
            said(wan).starts_with("eth1, which the policy configures too, is taken for the device towards")
        );
        assert_eq!(said(TrialDevices { lan: Some("eth2"), ..wan }), "");
        let named = configured(&["eth0", "eth1"], &both, TrialDevices { lan: Some("eth2"), ..wan });
        assert_eq!((named.lan.as_str(), named.devices.contains(&"eth2".to_owned())), ("eth2", true));
    }

    /// Classes for hosts of private networks as destinations shape downloads.
    #[test]
    fn a_device_whose_classes_ask_for_the_lan_leads_there() {
        let tree = |condition: &str| {
            format!(
                "tc qdisc add dev eth1 root handle 1: htb default 2\n\
                 tc class add dev eth1 parent 1: classid 1:1 htb rate 5mbit\n\
                 tc class add dev eth1 parent 1: classid 1:2 htb rate 5mbit\n\
                 tc filter add dev eth1 parent 1: protocol ip u32 match ip {condition} flowid 1:1"
            )
        };
        let down = policy(&["eth1"], &tree("dst 192.168.1.10"), None);
        assert_eq!((down.lan.as_str(), down.wan.as_str()), ("eth1", UNNAMED_WAN));
        assert!(down.notes[0].contains("because its classes match private networks as destinations"));
        assert_eq!(policy(&["eth1"], &tree("dst 100.64.3.0/24"), None).lan, "eth1");
        for condition in ["src 192.168.1.10", "dst 198.51.100.7", "dport 22 0xffff"] {
            let up = policy(&["eth1"], &tree(condition), None);
            assert_eq!((up.wan.as_str(), up.notes.len()), ("eth1", 0), "{condition}");
        }
        assert_eq!(policy(&["eth1"], &tree("dst 192.168.1.10"), Some("eth1")).wan, "eth1");
    }
}
