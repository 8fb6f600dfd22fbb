//! The machine that the tools speak of.

use super::host::Host;
use super::missing::Missing;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tidegate_gateway::{DeviceSpec, Gateway};
use tidegate_packet::{Dissector, LinuxChange, Time};
use tidegate_policy::netfilter::{NfCommand, NfOp};
use tidegate_policy::{LinkDriver, NetemDistribution, Op};
use tidegate_syntax::iptables::print_rule;
use tidegate_syntax::tc::no_device_name;
use tidegate_syntax::{Device, Env, TcVersion};

/// A machine that scripts configure: the gateway, and the present on it.
pub struct Machine {
    /// The model machine.
    pub gateway: Gateway,
    /// What it is beside its queues.
    pub host: Host,
    /// When the next command runs.
    pub now: Time,
    /// What was carried out, in order.
    pub log: Vec<Op>,
    /// The classes that operations were about, by device and minor number: looked up for each class with a
    /// parent.
    pub(super) classes_made: BTreeSet<(String, u16)>,
    /// What tidegate could not make.
    pub(super) missing: Missing,
    /// The commands that did it, one at a time: batches and -restore files taken apart.
    pub carried: Vec<Carried>,
    /// What the kernel would have written to its log: its warnings.
    pub kernel_log: Vec<String>,
    /// Do HTB's warnings come back to the process that gave the command, whatever the release? Some releases
    /// between the recorded ones do that.
    pub warns: bool,
    /// Does tc list classes in JSON? Until 6.1 it takes no notice of `-j` there.
    pub classes_in_json: bool,
    /// The release of tc.
    pub tc: TcVersion,
    /// A script is being taken in: devices that a command names come into being, and refusals are explained
    /// after the tool's own words.
    pub grows: bool,
    /// netem's distributions that are read from files, by name; those that can be computed need none.
    pub distributions: Arc<BTreeMap<String, NetemDistribution>>,
}

/// A command that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The tool and its words.
    pub words: Vec<String>,
    /// How many operations of the log were done with it and all before it.
    pub ops: usize,
    /// The line of the batch, or of what the call read, that gave it; `None`: the call itself.
    pub line: Option<usize>,
}

impl Machine {
    /// A machine with these devices.
    pub fn new<'n>(devices: impl IntoIterator<Item = &'n str>, spec: DeviceSpec) -> Machine {
        let mut gateway = Gateway::new();
        for name in devices {
            gateway.add_device(name, spec);
        }
        Machine {
            gateway,
            host: Host::new(),
            now: Time::default(),
            log: Vec::new(),
            carried: Vec::new(),
            kernel_log: Vec::new(),
            classes_made: BTreeSet::new(),
            missing: Missing::default(),
            warns: false,
            classes_in_json: true,
            tc: TcVersion::default(),
            grows: false,
            distributions: Arc::default(),
        }
    }

    /// The machine of the recorded runs: two ifb; `link0`, and three more like it; where it forwards, `in1`,
    /// to which packets come, and the other end of that cable. Half of them are down at first.
    pub fn recorded(spec: DeviceSpec, forwards: bool) -> Machine {
        let mut machine = Machine::new([], spec);
        // Its devices follow a release, not the machine.
        machine.warns = spec.switches.linux.has(LinuxChange::WarningsReach);
        machine.classes_in_json = false;
        machine.gateway.count_hops();
        machine.gateway.defer_releases(true);
        machine.gateway.without_zones();
        let ifb = DeviceSpec { hz: spec.hz, switches: spec.switches, ..DeviceSpec::of(&LinkDriver::Ifb) };
        let cable = DeviceSpec { queueless: true, ..spec };
        let devices = [
            ("ifb0", ifb, false),
            ("ifb1", ifb, false),
            ("link0", spec, true),
            ("link1", spec, true),
            ("link2", spec, false),
            ("link3", spec, false),
            ("in1", cable, true),
            ("in0", cable, true),
        ];
        for (name, spec, up) in devices.into_iter().take(if forwards { 8 } else { 6 }) {
            let id = machine.gateway.add_device(name, spec);
            if !up {
                machine.gateway.begin_down(id);
            }
            machine.host.add(name, LinkDriver::of_name(name), up);
        }
        machine
    }

    /// A machine on which a script is captured, with these devices, each of the kind that its name implies.
    pub fn for_script<'n>(devices: impl IntoIterator<Item = &'n str>) -> Machine {
        let mut machine = Machine::new([], DeviceSpec::default());
        machine.grows = true;
        for name in devices {
            machine.gateway.add_device(name, DeviceSpec::of(&LinkDriver::of_name(name)));
        }
        machine
    }

    /// Do HTB's warnings come back to the process that gave the command?
    pub(super) fn warns(&self) -> bool {
        self.warns || self.gateway.kernel().linux.has(LinuxChange::WarningsReach)
    }

    /// What the front ends need to know.
    pub(super) fn env(&self) -> Env {
        let device = |id| Device {
            name: self.gateway.name(id).to_owned(),
            speed_mbit: self.gateway.spec(id).speed_mbit,
            several_queues: self.gateway.spec(id).tx_queues > 1,
        };
        Env {
            devices: Some(self.gateway.devices().map(device).collect()),
            tunnel_keys: self.gateway.kernel().dissector == Dissector::Legacy,
            tables: Arc::clone(&self.distributions),
            tc: self.tc,
            linux: self.gateway.kernel().linux,
        }
    }

    /// Where devices come into being, those that a command names do: an Ethernet card or a modem may be there
    /// without having been mentioned, what is made by hand may not.
    pub(super) fn grow(&mut self, words: &[String]) {
        if !self.grows {
            return;
        }
        for pair in words.windows(2).filter(|pair| pair[0] == "dev") {
            self.grow_one(&pair[1]);
        }
    }

    /// The words of a tc command with names of addresses (`eth0:1`, as ifconfig has them) for what they name:
    /// the kernel looks up the device by what is before the colon.
    pub(super) fn devices_meant(&mut self, words: &[String]) -> Vec<String> {
        let mut meant = words.to_vec();
        for at in 1..meant.len() {
            if let Some((device, _)) = meant[at].split_once(':').filter(|_| meant[at - 1] == "dev") {
                let device = device.to_owned();
                self.grow_one(&device);
                if self.gateway.device(&device).is_some() && self.gateway.device(&meant[at]).is_none() {
                    meant[at] = device;
                }
            }
        }
        meant
    }

    /// As [`Machine::grow`], for a name outside a command.
    pub(super) fn grow_one(&mut self, name: &str) {
        let kind = LinkDriver::of_name(name);
        let natural = matches!(
            kind,
            LinkDriver::Ethernet | LinkDriver::PointToPoint | LinkDriver::Raw(_) | LinkDriver::Loopback
        );
        let fits = !name.is_empty()
            && name.len() <= 15
            && !name.contains(|letter: char| letter.is_whitespace() || "/\":".contains(letter))
            && !no_device_name(name)
            && !PRINTED.contains(&name);
        if self.grows
            && !self.host.is_bare
            && natural
            && fits
            && !self.host.gone.contains(name)
            && self.gateway.device(name).is_none()
        {
            self.gateway.add_device(name, DeviceSpec::of(&kind));
            self.host.assumed.insert(name.to_owned());
        }
    }
}

/// Words that listings of devices print and that are no devices' names: a script that reads the wrong column
/// has one of them in its place.
const PRINTED: [&str; 14] = [
    "Ethernet",
    "Link",
    "Local",
    "Loopback",
    "RX",
    "TX",
    "collisions",
    "ether",
    "flags",
    "inet",
    "inet6",
    "link",
    "loop",
    "state",
];

/// The words of iptables that do the operation.
pub(super) fn iptables_words(op: &Op) -> Option<(&'static str, Vec<String>)> {
    let Op::Netfilter(NfOp { family, table, command }) = op else { return None };
    let ipv6 = family.has(true);
    let tool = if ipv6 { "ip6tables" } else { "iptables" };
    let mut words: Vec<String> = vec!["-t".into(), table.clone()];
    let mut say = |texts: &[&str]| words.extend(texts.iter().map(|text| (*text).to_owned()));
    let mut rule = None;
    match command {
        NfCommand::Append(chain, what) => {
            say(&["-A", chain]);
            rule = Some(what);
        }
        NfCommand::Insert(chain, at, what) => {
            say(&["-I", chain, &at.to_string()]);
            rule = Some(what);
        }
        NfCommand::ReplaceAt(chain, at, what) => {
            say(&["-R", chain, &at.to_string()]);
            rule = Some(what);
        }
        NfCommand::Delete(chain, what) => {
            say(&["-D", chain]);
            rule = Some(what);
        }
        NfCommand::DeleteAt(chain, at) => say(&["-D", chain, &at.to_string()]),
        NfCommand::Flush(chain) => say(&[&["-F"], chain.as_deref().as_slice()].concat()),
        NfCommand::Zero(chain) => say(&[&["-Z"], chain.as_deref().as_slice()].concat()),
        NfCommand::NewChain(chain) => say(&["-N", chain]),
        NfCommand::DeleteChain(chain) => say(&[&["-X"], chain.as_deref().as_slice()].concat()),
        // A script cannot express this; counters begin at 0 there.
        NfCommand::Counters(..) => return None,
        // Only nft can express these.
        NfCommand::NewTable
        | NfCommand::DeleteTable
        | NfCommand::NewBase(..)
        | NfCommand::Beside { .. }
        | NfCommand::ReplaceHandle(..)
        | NfCommand::DeleteHandle(..) => return None,
        NfCommand::Policy(chain, accept) => say(&["-P", chain, if *accept { "ACCEPT" } else { "DROP" }]),
    }
    if let Some(rule) = rule {
        words.extend(split_quoted(&print_rule(rule, ipv6)));
    }
    Some((tool, words))
}

/// Splits at blanks, but not in double quotes, which go.
fn split_quoted(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in text.split('"').enumerate() {
        // Every second part is quoted.
        if number % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(String::from));
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Answer, Call};
    use tidegate_packet::{Pool, Seeded};

    fn call(line: &str, stdin: Option<&str>) -> Call {
        let mut words = line.split(' ').map(String::from);
        let tool = words.next().unwrap_or_default();
        Call {
            tool,
            args: words.collect(),
            stdin: stdin.map(|text| text.as_bytes().to_vec()),
            cwd: "/".into(),
            netns: None,
        }
    }

    /// A machine on which these calls were made; what did not succeed is named.
    fn made(calls: &[Call]) -> (Machine, Vec<String>) {
        let mut machine = Machine::for_script(["eth0"]);
        let (mut pool, mut draws) = (Pool::new(0), Seeded::new(1));
        let mut shim = machine.shim(&mut pool, &mut draws);
        shim.world(&["eth0".to_owned()]);
        let mut failed = Vec::new();
        for call in calls {
            let reply = shim.answer(call);
            if reply.code != 0 {
                failed.push(format!(
                    "{} {}: {}",
                    call.tool,
                    call.args.join(" "),
                    String::from_utf8_lossy(&reply.stderr)
                ));
            }
        }
        (machine, failed)
    }

    #[test]
    fn what_was_carried_out_does_the_same_again() {
        let calls = [
            call("tc -s qdisc add dev eth0 root handle 1: htb default 3", None),
            call(
                "tc -batch -",
                Some(
                    "class add dev eth0 parent 1: classid 1:3 htb rate 1mbit\nqdisc add dev eth0 parent 1:3 sfq\n",
                ),
            ),
            call("tc filter add dev eth0 parent 1: protocol ip u32 match ip tos 8 0xff flowid 1:3", None),
            call("ip link add name ifb4eth0 type ifb", None),
            call("ip -4 addr add 10.0.0.1/8 dev eth0", None),
            call(
                "ip -batch -",
                Some("link set ifb4eth0 up mtu 1400\nlink set ifb4eth0 down\nlink set ifb4eth0 name in0\n"),
            ),
            call("modprobe ifb numifbs=1", None),
            call("ifconfig eth0 txqueuelen 7 mtu 1492", None),
            call("ifconfig eth0 192.0.2.77 netmask 255.255.255.128", None),
            call("ethtool -G eth0 tx 64", None),
            call("iptables -t mangle -N QOS", None),
            call(
                "iptables -w 5 -t mangle -A QOS ! -s 10.0.0.0/8 -p tcp --dport 22 -j MARK --set-mark 3",
                None,
            ),
            call("ip6tables -t mangle -A OUTPUT -j MARK --set-mark 1", None),
            call("ip link del in0", None),
            call("tc qdisc del dev eth0 root", None),
        ];
        let (first, failed) = made(&calls);
        assert_eq!(failed, [""; 0]);
        let again: Vec<Call> = first
            .carried
            .iter()
            .map(|one| Call {
                tool: one.words[0].clone(),
                args: one.words[1..].to_vec(),
                stdin: None,
                cwd: "/".into(),
                netns: None,
            })
            .collect();
        let (second, failed) = made(&again);
        assert_eq!(failed, [""; 0]);
        assert_eq!(first.log, second.log);
        assert_eq!(first.carried.last().map(|one| one.ops), Some(first.log.len()));
    }

    #[test]
    fn a_rule_becomes_words_again() {
        let (machine, _) = made(&[call(
            "iptables -t mangle -I OUTPUT 1 ! -o eth0 -p udp -m length --length 0:99 -j RETURN",
            None,
        )]);
        let (tool, args) = machine.log.iter().find_map(iptables_words).expect("a rule");
        let (again, failed) =
            made(&[Call { tool: tool.into(), args, stdin: None, cwd: "/".into(), netns: None }]);
        assert_eq!((failed.len(), again.log), (0, machine.log));
        assert_eq!(
            split_quoted("-m comment --comment \"a b\" -j X"),
            ["-m", "comment", "--comment", "a b", "-j", "X"]
        );
    }
}
