//! The machine that the tools speak of.

use super::{Face, Host};
use tidegate_gateway::{DeviceSpec, Gateway};
use tidegate_lang::iptables::print_rule;
use tidegate_lang::{Device, Env};
use tidegate_packet::{Draws, Pool, Time};
use tidegate_policy::netfilter::{NfCommand, NfOp};
use tidegate_policy::{LinkKind, Op};

/// A machine that scripts configure: the gateway, and the present on it.
pub struct Machine {
    /// The model.
    pub gateway: Gateway,
    /// What it is beside its queues.
    pub host: Host,
    /// When the next command runs.
    pub now: Time,
    /// What was carried out, in order.
    pub log: Vec<Op>,
    /// The commands that did it, one at a time: batches and -restore files taken apart.
    pub carried: Vec<Carried>,
    /// What the kernel would have written to its log: its warnings.
    pub kernel_log: Vec<String>,
    /// A script is being taken in: devices that a command names come into being, and refusals are explained after the tool's own words.
    pub grows: bool,
}

/// A command that was carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Carried {
    /// The tool and its words.
    pub words: Vec<String>,
    /// How many operations of the log were done with it and all before it.
    pub ops: usize,
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
            grows: false,
        }
    }

    /// The machine of the recorded runs: `link0`, and three more like it.
    pub fn recorded(spec: DeviceSpec) -> Machine {
        Machine::new(["link0", "link1", "link2", "link3"], spec)
    }

    /// A machine on which a script is taken in, with these devices, each of the kind that its name tells.
    pub fn for_script<'n>(devices: impl IntoIterator<Item = &'n str>) -> Machine {
        let mut machine = Machine::new([], DeviceSpec::default());
        machine.grows = true;
        for name in devices {
            machine.gateway.add_device(name, DeviceSpec::of(&LinkKind::of_name(name)));
        }
        machine
    }

    /// The tools, for as long as a command runs.
    pub fn face<'m>(&'m mut self, pool: &'m mut Pool, draws: &'m mut dyn Draws) -> Face<'m> {
        Face { machine: self, pool, draws, effects: Vec::new() }
    }

    /// What the front ends need to know.
    pub(super) fn env(&self) -> Env {
        let device =
            |id| Device { name: self.gateway.name(id).to_owned(), speed_mbit: self.gateway.spec(id).speed_mbit };
        Env { devices: Some(self.gateway.devices().map(device).collect()) }
    }

    /// Where devices come into being, those that a command names do: an Ethernet card or a modem may be there without having been
    /// mentioned, what is made by hand may not.
    pub(super) fn grow(&mut self, words: &[String]) {
        if !self.grows {
            return;
        }
        for pair in words.windows(2).filter(|pair| pair[0] == "dev") {
            self.grow_one(&pair[1]);
        }
    }

    /// As [`Machine::grow`], for a name that stands by itself.
    pub(super) fn grow_one(&mut self, name: &str) {
        let kind = LinkKind::of_name(name);
        let natural = matches!(kind, LinkKind::Ethernet | LinkKind::PointToPoint | LinkKind::Loopback);
        let fits = !name.is_empty() && name.len() <= 15 && !name.contains(['/', ' ', '"']);
        if self.grows && natural && fits && !self.host.gone.contains(name) && self.gateway.device(name).is_none() {
            self.gateway.add_device(name, DeviceSpec::of(&kind));
        }
    }
}

/// The words of iptables that do the operation.
pub(super) fn iptables_words(op: &Op) -> Option<(&'static str, Vec<String>)> {
    let Op::Netfilter(NfOp { ipv6, table, command }) = op else { return None };
    let tool = if *ipv6 { "ip6tables" } else { "iptables" };
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
        // A script cannot say this; counters begin at 0 there.
        NfCommand::Counters(..) => return None,
        NfCommand::Policy(chain, accept) => say(&["-P", chain, if *accept { "ACCEPT" } else { "DROP" }]),
    }
    if let Some(rule) = rule {
        words.extend(split_quoted(&print_rule(rule, *ipv6)));
    }
    Some((tool, words))
}

/// Splits at blanks, but not in double quotes, which go.
fn split_quoted(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in text.split('"').enumerate() {
        // Every second part stands in quotes.
        if number % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(String::from));
        }
    }
    words
}
