//! The machines and cables that a script lays, as a scenario: `tidegate sim` plays the whole test-bed.
//!
//! Each network namespace with a cable (veth) is a machine, each cable a fast link without delay, and what
//! the script configured is the policy `script`. A bridge is a machine of its own, which forwards between its
//! ports. The traffic is that of the measuring programs that the script calls.

mod toml_text;
mod traffic;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::net::IpAddr;

use tidegate_capture::StubbedCall;
use tidegate_shims::{WireEnd, WiredDevice, Wiring};
use toml_text::{key, quoted};
use traffic::Flows;

/// What the machine that a script begins on is called.
const FIRST: &str = "host";
/// What a cable carries: a veth's only limit is the computer, and a simulation needs one. The slower one is
/// as much as `tidegate lab` plays; where the script speaks of Gbit/s it may be too little.
const CABLE: &str = "1gbit";
const FAST_CABLE: &str = "10gbit";
/// The largest packet of a link unless it is given.
const MTU: u32 = 1500;

/// What a scenario is made of: the machines with their cables, and the traffic.
#[derive(Clone, Debug, Default)]
pub struct TestBed {
    wiring: Wiring,
    calls: Vec<StubbedCall>,
}

/// A machine of the scenario: a machine of the script without its bridges, or one of these.
type Part<'w> = (usize, Option<&'w str>);

/// A device in which a cable ends, with its address and the length of the prefix.
type Plugged<'w> = (&'w str, Option<(IpAddr, u8)>);

impl TestBed {
    /// A test-bed of machines, and the calls of programs that make traffic.
    pub fn new(wiring: Wiring, calls: Vec<StubbedCall>) -> TestBed {
        TestBed { wiring, calls }
    }

    /// Whether there is a cable between two machines.
    pub fn has_cables(&self) -> bool {
        self.wiring.cables.iter().any(|[a, b]| a.0 != b.0)
    }

    /// The scenario's file; `None`: there is no cable to make one of. `title` is the script's name, `again`
    /// the command that prints this.
    pub fn to_scenario(&self, title: &str, again: &str) -> Option<String> {
        let drawn = Drawn::of(&self.wiring);
        (!drawn.links.is_empty()).then(|| drawn.text(title, again, &self.calls))
    }
}

/// A link of the scenario.
struct Link<'w> {
    name: String,
    ends: [(Part<'w>, &'w str); 2],
    /// The largest packet, where it is not the usual one.
    mtu: Option<u32>,
}

/// The test-bed with the names that it has in the scenario.
struct Drawn<'w> {
    wiring: &'w Wiring,
    /// The name of each part that a cable ends at.
    names: BTreeMap<Part<'w>, String>,
    links: Vec<Link<'w>>,
    /// The devices of each part in which a cable ends, with an address.
    devices: BTreeMap<Part<'w>, Vec<Plugged<'w>>>,
    /// What is not in the scenario, a sentence each.
    left_out: Vec<String>,
}

impl<'w> Drawn<'w> {
    fn of(wiring: &'w Wiring) -> Drawn<'w> {
        let mut drawn = Drawn {
            wiring,
            names: BTreeMap::new(),
            links: Vec::new(),
            devices: BTreeMap::new(),
            left_out: Vec::new(),
        };
        let cables: Vec<[(Part<'w>, &'w WiredDevice); 2]> =
            wiring.cables.iter().filter_map(|[a, b]| Some([drawn.end(a)?, drawn.end(b)?])).collect();
        let parts: BTreeSet<Part<'w>> = cables.iter().flatten().map(|(part, _)| *part).collect();
        drawn.name(&parts);
        for [a, b] in cables {
            if a.0 == b.0 {
                let machine = &drawn.names[&a.0];
                drawn
                    .left_out
                    .push(format!("the cable from {} to {}, both in {machine}", a.1.name, b.1.name));
                continue;
            }
            let mtu = a.1.mtu.min(b.1.mtu);
            let name = drawn.unique_link(format!("{}-{}", plain(&a.1.name), plain(&b.1.name)));
            let ends = [a, b].map(|(part, device)| (part, device.name.as_str()));
            drawn.links.push(Link { name, ends, mtu: (mtu != MTU).then_some(mtu) });
            for (part, device) in [a, b] {
                let address = device.addresses.iter().find(|(address, _)| !is_link_local(*address));
                drawn.devices.entry(part).or_default().push((&device.name, address.copied()));
            }
        }
        drawn.join_bridges();
        drawn
    }

    /// The part that a cable's end is in, and its device.
    fn end(&self, (machine, device): &WireEnd) -> Option<(Part<'w>, &'w WiredDevice)> {
        let device = self.wiring.machines.get(*machine)?.device(device)?;
        Some(((*machine, device.bridge.as_deref()), device))
    }

    /// Gives each part a name. A namespace that is nothing but a bridge has its own.
    fn name(&mut self, parts: &BTreeSet<Part<'w>>) {
        for part in parts {
            let (machine, bridge) = *part;
            let own = self.wiring.machines[machine].name.as_deref();
            let alone = parts.iter().filter(|(other, _)| *other == machine).count() == 1;
            let name = match (own, bridge) {
                (None, None) => FIRST.to_owned(),
                (None, Some(bridge)) => plain(bridge),
                (Some(own), Some(bridge)) if !alone => format!("{}-{}", plain(own), plain(bridge)),
                (Some(own), _) => plain(own),
            };
            let taken = |name: &String| self.names.values().any(|other| other == name);
            let name = unique(name, taken);
            self.names.insert(*part, name);
        }
    }

    fn unique_link(&self, name: String) -> String {
        unique(name, |name| self.links.iter().any(|link| link.name == *name))
    }

    /// A machine with an address on its bridge is at that, as by a cable.
    fn join_bridges(&mut self) {
        let bridges: Vec<Part<'w>> =
            self.names.keys().filter(|(_, bridge)| bridge.is_some()).copied().collect();
        for (machine, bridge) in bridges {
            let whole = &self.wiring.machines[machine];
            let Some(device) = bridge.and_then(|bridge| whole.device(bridge)) else { continue };
            let Some(address) = device.addresses.iter().find(|(address, _)| !is_link_local(*address)) else {
                continue;
            };
            let rest = (machine, None);
            if !self.names.contains_key(&rest) {
                let taken = |name: &String| self.names.values().any(|other| other == name);
                let name = whole.name.as_deref().map_or_else(|| FIRST.to_owned(), plain);
                let name = unique(name, taken);
                self.names.insert(rest, name);
            }
            let ends = [rest, (machine, bridge)].map(|part| (part, device.name.as_str()));
            let name = self.unique_link(plain(&device.name));
            self.links.push(Link { name, ends, mtu: None });
            self.devices.entry(rest).or_default().push((&device.name, Some(*address)));
        }
    }

    fn text(mut self, title: &str, again: &str, calls: &[StubbedCall]) -> String {
        let flows = Flows::of(calls, |netns, target| self.flow_ends(netns, target), &self.far_ends());
        let commands = self.commands();
        let mut out = format!("# Made by `{}`.\n", tidegate_text::line(again));
        for sentence in self.left_out.iter().chain(&flows.left_out) {
            let _ = writeln!(out, "# Left out: {}.", tidegate_text::line(sentence));
        }
        let seconds = flows.seconds;
        let _ = writeln!(out, "title = {}\nduration = \"{seconds}s\"\nwarm-up = \"0s\"\n", quoted(title));
        let is_fast = |line: &String| line.to_ascii_lowercase().contains("gbit");
        let cable = if commands.values().flatten().any(is_fast) { FAST_CABLE } else { CABLE };
        // One end without a configuration is a host, which may run programs in a lab.
        let host = |part: &Part<'w>| {
            let [(_, address)] = self.devices.get(part)?.as_slice() else { return None };
            address.filter(|_| part.1.is_none() && !commands.contains_key(part))
        };
        for Link { name, ends, mtu } in &self.links {
            let end = |(part, device): &(Part<'w>, &str)| match host(part) {
                Some(_) => quoted(&self.names[part]),
                None => quoted(&format!("{}:{}", self.names[part], plain(device))),
            };
            let [from, to] = [&ends[0], &ends[1]].map(end);
            let _ = writeln!(out, "[links.{}]\nbetween = [{from}, {to}]", key(name));
            let _ = writeln!(out, "both = {{ rate = \"{cable}\" }}");
            if let Some(mtu) = mtu {
                let _ = writeln!(out, "mtu = {mtu}");
            }
            out.push('\n');
        }
        for (part, devices) in &self.devices {
            let name = key(&self.names[part]);
            if let Some((address, _)) = host(part) {
                let _ = writeln!(out, "[hosts.{name}]\naddress = \"{address}\"\n");
                continue;
            }
            let addressed: Vec<String> = devices
                .iter()
                .filter_map(|(device, address)| {
                    let (address, prefix) = (*address)?;
                    Some(format!("{} = {{ address = \"{address}/{prefix}\" }}", key(&plain(device))))
                })
                .collect();
            if !addressed.is_empty() {
                let _ = writeln!(out, "[machines.{name}]\ndevices = {{ {} }}\n", addressed.join(", "));
            }
        }
        out += "[policies.script]\n";
        for (part, commands) in &commands {
            let _ = writeln!(out, "{} = [", key(&self.names[part]));
            for command in commands {
                let _ = writeln!(out, "    {},", quoted(command));
            }
            out += "]\n";
        }
        out + "\n" + &flows.text
    }

    /// The commands of the policy, by the part that they are about.
    fn commands(&mut self) -> BTreeMap<Part<'w>, Vec<String>> {
        let mut all: BTreeMap<Part<'w>, Vec<String>> = BTreeMap::new();
        let mut left_out = Vec::new();
        for (at, machine) in self.wiring.machines.iter().enumerate() {
            let made = self.made(at);
            for words in machine.commands.iter().filter(|words| is_policy(words)) {
                let line =
                    words.iter().map(|word| tidegate_text::shell_word(word)).collect::<Vec<_>>().join(" ");
                // Those of an ifb go where packets are redirected to it.
                let of_made = made.iter().find(|(name, _)| names_first(words, name)).map(|(_, part)| *part);
                let part = of_made.or_else(|| match devs(words).next() {
                    Some(dev) => self.part_of(at, dev),
                    None => self.names.keys().find(|part| part.0 == at).copied(),
                });
                match part {
                    Some(part) => all.entry(part).or_default().push(line),
                    None if words.first().is_some_and(|tool| tool == "tc") => {
                        left_out.push(format!("`{line}`, of a device without a cable"));
                    }
                    None => {}
                }
            }
        }
        self.left_out.extend(left_out);
        all
    }

    /// The part of a machine in which the cable of a device ends.
    fn part_of(&self, machine: usize, dev: &str) -> Option<Part<'w>> {
        let ends_here = |(part, devices): &(&Part<'w>, &Vec<Plugged<'w>>)| {
            part.0 == machine && devices.iter().any(|(name, _)| *name == dev)
        };
        self.devices.iter().find(ends_here).map(|(part, _)| *part)
    }

    /// The ifbs of a machine, each with the part from which packets are redirected to it.
    fn made(&self, machine: usize) -> BTreeMap<&'w str, Part<'w>> {
        let commands = &self.wiring.machines[machine].commands;
        let mut made = BTreeMap::new();
        for words in commands.iter().filter(|words| words.iter().any(|word| word == "mirred")) {
            let mut named = devs(words);
            let Some(part) = named.next().and_then(|dev| self.part_of(machine, dev)) else { continue };
            for to in named.filter(|to| self.part_of(machine, to).is_none()) {
                made.entry(to).or_insert(part);
            }
        }
        made
    }

    /// The names of the machine in which a program runs, and of that which has an address.
    fn flow_ends(&self, netns: Option<&str>, target: &str) -> Option<[String; 2]> {
        let target: IpAddr = target.parse().ok()?;
        let from = self.names.iter().find(|((machine, bridge), _)| {
            bridge.is_none() && self.wiring.machines[*machine].name.as_deref() == netns
        })?;
        let to = self.devices.iter().find(|(_, devices)| {
            devices.iter().any(|(_, address)| address.is_some_and(|(address, _)| address == target))
        })?;
        let ends = [from.1.clone(), self.names[to.0].clone()];
        (ends[0] != ends[1]).then_some(ends)
    }

    /// Two machines with one cable and an address each: the first and the last.
    fn far_ends(&self) -> Option<[String; 2]> {
        let is_end =
            |(_, devices): &(&Part<'w>, &Vec<Plugged<'w>>)| devices.len() == 1 && devices[0].1.is_some();
        let mut ends = self.devices.iter().filter(is_end).map(|(part, _)| self.names[part].clone());
        Some([ends.next()?, ends.next_back()?])
    }
}

/// Whether a command configures what packets meet: the links themselves are the scenario's.
fn is_policy(words: &[String]) -> bool {
    let has = |word: &str| words.iter().any(|one| one == word);
    match words.first().map(String::as_str) {
        Some("tc" | "nft" | "ethtool") => true,
        Some(tool) if tool.starts_with("iptables") || tool.starts_with("ip6tables") => true,
        Some("modprobe") => has("ifb"),
        Some("ip") => {
            let of_ifb = has("ifb") || words.iter().any(|word| word.starts_with("ifb"));
            has("link") && !has("netns") && (of_ifb || has("txqueuelen") || has("qlen"))
        }
        _ => false,
    }
}

/// The devices that a command names behind `dev`, in their order.
fn devs(words: &[String]) -> impl Iterator<Item = &str> {
    words.windows(2).filter(|pair| pair[0] == "dev").map(|pair| pair[1].as_str())
}

/// Whether a command is about a device: what it redirects to one is about another.
fn names_first(words: &[String], name: &str) -> bool {
    match words.first().is_some_and(|tool| tool == "tc") {
        true => devs(words).next() == Some(name),
        false => words.iter().any(|word| word == name) || words.iter().any(|word| word == "modprobe"),
    }
}

fn is_link_local(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.is_unicast_link_local())
}

/// A name for a scenario: without what separates names there.
fn plain(name: &str) -> String {
    name.chars()
        .map(|letter| if letter.is_ascii_alphanumeric() || "._-".contains(letter) { letter } else { '-' })
        .collect()
}

fn unique(name: String, taken: impl Fn(&String) -> bool) -> String {
    if !taken(&name) {
        return name;
    }
    (2..).map(|number| format!("{name}-{number}")).find(|name| !taken(name)).unwrap_or(name)
}
