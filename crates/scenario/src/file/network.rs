//! The nodes and the links between them.

use super::beside::Beside;
use super::commands::command;
use super::lines;
use super::named::named;
use crate::model::{
    LinkEnd, MachineSetup, NodeRole, ScenarioDevice, ScenarioLink, ScenarioNode, TcpOptions, TrafficItem,
};
use crate::tables::{Diagnostic, Keys, TableValue, flag, list, number, plain, size, text, texts};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use std::str::FromStr;
use tidegate_packet::Dissector;
use tidegate_policy::{LinkDriver, Tunnel, TunnelMode};
use tidegate_sim::{CongestionControl, EcnCodepoint};

/// Ends of one link.
const MAX_ENDS: usize = 256;

/// The network as far as it is read.
#[derive(Default)]
pub(crate) struct Network {
    pub nodes: Vec<ScenarioNode>,
    pub cables: Vec<ScenarioLink>,
    /// The node on the far side of a home's link: what it sends is a download, whichever side asked.
    pub far: Option<usize>,
    /// The cable of each device, to refuse a second one.
    plugged: BTreeMap<(usize, usize), String>,
}

impl Network {
    /// The number of a node, new if there is none of this name yet.
    pub(crate) fn node(&mut self, name: &str) -> usize {
        if let Some(at) = self.find(name) {
            return at;
        }
        self.nodes.push(ScenarioNode {
            name: name.to_owned(),
            role: NodeRole::Relay,
            address: None,
            tcp: TcpOptions::default(),
            machine: MachineSetup::default(),
        });
        self.nodes.len() - 1
    }

    pub(crate) fn find(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// The number of a node that must be there.
    pub(crate) fn known(&self, name: &str, at: Range<usize>) -> Result<usize, Diagnostic> {
        self.find(name).ok_or_else(|| {
            let names: Vec<&str> = self.nodes.iter().map(|node| node.name.as_str()).collect();
            Diagnostic::new(
                at,
                format!("unknown name `{name}`"),
                format!("the links name {}", names.join(", ")),
            )
        })
    }

    /// The number of a node that must be a machine.
    pub(crate) fn known_machine(&self, name: &str, at: Range<usize>) -> Result<usize, Diagnostic> {
        let found = self.find(name).filter(|node| self.nodes[*node].role == NodeRole::Machine);
        found.ok_or_else(|| {
            let machines = self.nodes.iter().filter(|node| node.role == NodeRole::Machine);
            let names: Vec<&str> = machines.map(|node| node.name.as_str()).collect();
            let remedy = match names.as_slice() {
                [] => "give it a device where a link ends: `between = [\"gateway:eth0\", …]`".to_owned(),
                names => format!("machines (link ends with a device) are {}", names.join(", ")),
            };
            Diagnostic::new(at, format!("unknown machine `{name}`"), remedy)
        })
    }

    /// The machine that is meant where none is named.
    pub(crate) fn only_machine(&self, at: Range<usize>) -> Result<usize, Diagnostic> {
        let mut machines = (0..self.nodes.len()).filter(|node| self.nodes[*node].role == NodeRole::Machine);
        match (machines.next(), machines.next()) {
            (Some(one), None) => Ok(one),
            _ => Err(Diagnostic::new(at, "missing machine", "name it: `on = \"gateway\"`")),
        }
    }

    /// The number of a link.
    pub(crate) fn known_link(&self, name: &str, at: Range<usize>) -> Result<usize, Diagnostic> {
        self.cables.iter().position(|cable| cable.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.cables.iter().map(|cable| cable.name.as_str()).collect();
            Diagnostic::new(at, format!("unknown link `{name}`"), format!("there are {}", names.join(", ")))
        })
    }

    /// `[links.NAME]`.
    pub(crate) fn links(&mut self, value: TableValue<'_>, beside: &Beside<'_>) -> Result<(), Diagnostic> {
        for (name, value) in named(Some(value))? {
            let mut keys = Keys::of(value)?;
            let between = keys.need("between", "say what it joins: `between = [\"a\", \"gateway:eth0\"]`")?;
            let ends = list(between)?;
            if !(2..=MAX_ENDS).contains(&ends.len()) {
                let why = format!("a link has two ends, or more (a switch, {MAX_ENDS} at most)");
                return Err(Diagnostic::new(
                    between.span(),
                    why,
                    "`between = [\"a\", \"b\", \"gateway:eth0\"]`",
                ));
            }
            let mut cable_ends = Vec::new();
            for end in ends {
                cable_ends.push(self.end(text(end)?, end.span(), name)?);
            }
            for (at, end) in cable_ends.iter().enumerate() {
                if cable_ends[..at].iter().any(|other| other.node == end.node) {
                    let why = format!("`{}` is at both ends of this link", self.nodes[end.node].name);
                    return Err(Diagnostic::new(ends[at].span(), why, "a link joins different nodes"));
                }
            }
            let (up, down) = lines::both(&mut keys, beside)?;
            let mtu = keys.read("mtu", |value| number(value, 68, 65_535))?.map(|mtu| mtu as u32);
            keys.finish()?;
            self.cables.push(ScenarioLink { name: name.to_owned(), ends: cable_ends, mtu, up, down });
        }
        Ok(())
    }

    /// `gateway:eth0` or `isp`.
    pub(crate) fn end(&mut self, text: &str, at: Range<usize>, link: &str) -> Result<LinkEnd, Diagnostic> {
        let (name, device) = match text.split_once(':') {
            Some((name, device)) => (name.trim(), Some(device.trim())),
            None => (text.trim(), None),
        };
        if name.is_empty() || name.contains(|c: char| c.is_whitespace() || "/,>".contains(c)) {
            return Err(Diagnostic::new(
                at,
                format!("`{text}` is no end of a link"),
                "write a node (isp), or MACHINE:DEVICE",
            ));
        }
        let node = self.node(name);
        let Some(device) = device else {
            if self.nodes[node].role == NodeRole::Machine {
                let why = format!("`{name}` is a machine: name its device, too");
                return Err(Diagnostic::new(
                    at,
                    why,
                    format!("write {name}:eth0, or another device that is free"),
                ));
            }
            return Ok(LinkEnd { node, device: None });
        };
        if device.is_empty() || device.len() > 15 || device.contains(|c: char| c.is_whitespace() || c == '/')
        {
            return Err(Diagnostic::new(
                at,
                format!("`{device}` is no device"),
                "names have 15 letters at most: eth0, ppp0",
            ));
        }
        let joined = self
            .cables
            .iter()
            .flat_map(|cable| &cable.ends)
            .any(|end| end.node == node && end.device.is_none());
        if joined {
            let why = format!("`{name}` is at the end of another link without a device");
            return Err(Diagnostic::new(
                at,
                why,
                format!("name its devices everywhere ({name}:eth0, {name}:eth1), or nowhere"),
            ));
        }
        self.nodes[node].role = NodeRole::Machine;
        let device = self.device(node, device);
        if let Some(other) = self.plugged.insert((node, device), link.to_owned()) {
            let why = format!("`{text}` already ends link `{other}`");
            return Err(Diagnostic::new(
                at,
                why,
                "take another device, or put all ends into one link (a switch)",
            ));
        }
        self.nodes[node].machine.devices[device].plugged = true;
        Ok(LinkEnd { node, device: Some(device) })
    }

    /// The number of a device, new if there is none of that name.
    pub(crate) fn device(&mut self, node: usize, name: &str) -> usize {
        let devices = &mut self.nodes[node].machine.devices;
        if let Some(at) = devices.iter().position(|device| device.name == name) {
            return at;
        }
        devices.push(ScenarioDevice {
            name: name.to_owned(),
            kind: LinkDriver::of_name(name),
            on: None,
            address: None,
            mtu: None,
            txqueuelen: None,
            plugged: false,
        });
        devices.len() - 1
    }

    /// `[machines.NAME]`.
    pub(crate) fn machines(&mut self, value: TableValue<'_>) -> Result<(), Diagnostic> {
        for (name, value) in named(Some(value))? {
            let node = self.known_machine(name, value.span())?;
            let mut keys = Keys::of(value)?;
            if let Some(devices) = keys.get("devices") {
                for (device, value) in named(Some(devices))? {
                    self.one_device(node, device, value)?;
                }
            }
            for (device, value) in named(keys.get("txqueuelen"))? {
                let length = number(value, 0, 1 << 20)? as u32;
                let at = self.known_device(node, device, value.span())?;
                self.nodes[node].machine.devices[at].txqueuelen = Some(length);
            }
            let mut setup = Vec::new();
            if let Some(value) = keys.get("nat") {
                let device = text(value)?;
                self.known_device(node, device, value.span())?;
                let line = format!("iptables -t nat -A POSTROUTING -o {device} -j MASQUERADE");
                setup.push(command(&line, value.span())?);
            }
            for line in keys.get("setup").map(list).transpose()?.unwrap_or_default() {
                setup.push(command(text(line)?, line.span())?);
            }
            let machine = &mut self.nodes[node].machine;
            machine.setup = setup;
            machine.hz = keys.read("hz", |value| number(value, 100, 1000))?.map(|hz| hz as u32);
            if let Some(linux) = keys.read("linux", release)? {
                machine.kernel.linux = linux;
            }
            if let Some(tc) = keys.read("tc", release)? {
                machine.tc = tc;
            }
            if let Some(value) = keys.get("dissect") {
                machine.kernel.dissector = match text(value)? {
                    "modern" => Dissector::Modern,
                    "legacy" => Dissector::Legacy,
                    _ => {
                        return Err(Diagnostic::new(
                            value.span(),
                            "unknown dissector",
                            "there are modern, legacy",
                        ));
                    }
                };
            }
            self.nodes[node].address = keys.read("address", address)?;
            self.nodes[node].tcp = keys.read("tcp", tcp)?.unwrap_or_default();
            keys.finish()?;
        }
        Ok(())
    }

    fn known_device(&self, node: usize, name: &str, at: Range<usize>) -> Result<usize, Diagnostic> {
        let devices = &self.nodes[node].machine.devices;
        devices.iter().position(|device| device.name == name).ok_or_else(|| {
            let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
            let why = format!("`{}` has no device `{name}`", self.nodes[node].name);
            Diagnostic::new(at, why, format!("it has {}; say more under `devices`", names.join(", ")))
        })
    }

    /// `ppp0 = { on = "eth2" }`.
    fn one_device(&mut self, node: usize, name: &str, value: TableValue<'_>) -> Result<(), Diagnostic> {
        let at = self.device(node, name);
        let mut keys = Keys::of(value)?;
        let on = match keys.get("on") {
            Some(lower) => {
                let lower_name = text(lower)?;
                self.known_device(node, lower_name, lower.span())?;
                if lower_name == name {
                    return Err(Diagnostic::new(
                        lower.span(),
                        "it would be stacked on itself",
                        "name the device beneath",
                    ));
                }
                Some(lower_name.to_owned())
            }
            None => None,
        };
        let mut kind = keys.read("kind", kind)?;
        let ends = [keys.read("local", address)?, keys.read("remote", address)?];
        if let Some(value) = keys.get("tunnel") {
            kind = Some(LinkDriver::Tunnel(tunnel(value, ends)?));
        }
        let device = &mut self.nodes[node].machine.devices[at];
        device.on = on.or(device.on.take());
        device.kind = kind.unwrap_or(device.kind.clone());
        device.address = keys.read("address", network)?;
        device.mtu = keys.read("mtu", |value| number(value, 68, 65_535))?.map(|mtu| mtu as u32);
        device.txqueuelen =
            keys.read("txqueuelen", |value| number(value, 0, 1 << 20))?.map(|length| length as u32);
        keys.finish()
    }

    /// `[hosts.NAME]`.
    pub(crate) fn hosts(&mut self, value: TableValue<'_>) -> Result<(), Diagnostic> {
        for (name, value) in named(Some(value))? {
            let node = self.known(name, value.span())?;
            let mut keys = Keys::of(value)?;
            self.nodes[node].address = keys.read("address", address)?;
            self.nodes[node].tcp = keys.read("tcp", tcp)?.unwrap_or_default();
            keys.finish()?;
        }
        Ok(())
    }

    /// Gives an address to each node without one: hosts at a machine's device 10.0.N.M by link and order,
    /// others 198.51.100.N.
    pub(crate) fn settle(&mut self) {
        let mut others = 0_u8;
        for at in 0..self.nodes.len() {
            if self.nodes[at].address.is_some() || self.nodes[at].role == NodeRole::Machine {
                continue;
            }
            let place = self.cables.iter().enumerate().find_map(|(number, cable)| {
                let among = cable.ends.iter().position(|end| end.node == at)?;
                cable.ends.iter().any(|end| end.device.is_some()).then_some((number, among))
            });
            let address = match place {
                Some((number, among)) if self.nodes[at].role == NodeRole::Host => {
                    Ipv4Addr::new(10, (number >> 8) as u8, number as u8, 2_u8.saturating_add(among as u8))
                }
                _ => {
                    others = others.saturating_add(1);
                    Ipv4Addr::new(198, 51, 100, others)
                }
            };
            self.nodes[at].address = Some(address.into());
        }
    }

    /// Whether there is a path for the traffic.
    pub(crate) fn reaches(&self, item: &TrafficItem) -> Result<(), Diagnostic> {
        let mut seen = vec![item.from];
        let mut next = 0;
        while let Some(&at) = seen.get(next) {
            next += 1;
            let ends = self.cables.iter().filter(|cable| cable.ends.iter().any(|end| end.node == at));
            for end in ends.flat_map(|cable| &cable.ends) {
                if !seen.contains(&end.node) {
                    seen.push(end.node);
                }
            }
        }
        if seen.contains(&item.to) {
            return Ok(());
        }
        let name = |at: usize| self.nodes[at].name.as_str();
        let reached: Vec<&str> = seen.iter().map(|at| name(*at)).collect();
        Err(Diagnostic::new(
            item.at.clone(),
            format!("no links lead from `{}` to `{}`", name(item.from), name(item.to)),
            format!("from there one comes to {}; join them with another link", reached.join(", ")),
        ))
    }
}

/// `linux = "7.2"`, `tc = "7.2"`.
fn release<V: FromStr<Err: Display>>(value: TableValue<'_>) -> Result<V, Diagnostic> {
    let unknown = |error: V::Err| Diagnostic::new(value.span(), "unknown release", error.to_string());
    text(value)?.parse().map_err(unknown)
}

fn address(value: TableValue<'_>) -> Result<IpAddr, Diagnostic> {
    text(value)?.parse().map_err(|_| {
        Diagnostic::new(value.span(), "this is not an address", "write 192.168.1.2 or 2001:db8::2")
    })
}

/// `tunnel = "ipip"`, between these addresses.
fn tunnel(value: TableValue<'_>, [local, remote]: [Option<IpAddr>; 2]) -> Result<Tunnel, Diagnostic> {
    let mode = match text(value)? {
        "ipip" => TunnelMode::Ipip,
        "6in4" | "sit" => TunnelMode::Sit,
        "gre" => TunnelMode::Gre,
        "ip6tnl" => TunnelMode::Ip6tnl,
        _ => {
            return Err(Diagnostic::new(
                value.span(),
                "unknown kind of tunnel",
                "there are ipip, 6in4, gre, ip6tnl",
            ));
        }
    };
    let unsaid = Tunnel::unsaid(mode);
    let (local, remote) = (local.unwrap_or(unsaid.local), remote.unwrap_or(unsaid.remote));
    if local.is_ipv6() != unsaid.local.is_ipv6() || remote.is_ipv6() != unsaid.local.is_ipv6() {
        let family = if unsaid.local.is_ipv6() { "IPv6" } else { "IPv4" };
        return Err(Diagnostic::new(
            value.span(),
            "its ends are of another family",
            format!("it ends at {family} addresses"),
        ));
    }
    Ok(Tunnel { local, remote, ..unsaid })
}

fn network(value: TableValue<'_>) -> Result<(IpAddr, u8), Diagnostic> {
    let words = text(value)?;
    let (address, prefix) = words.split_once('/').unwrap_or((words, "24"));
    let found = address.parse::<IpAddr>().ok().zip(prefix.parse::<u8>().ok());
    found
        .filter(|(address, prefix)| *prefix <= if address.is_ipv4() { 32 } else { 128 })
        .ok_or_else(|| Diagnostic::new(value.span(), "this is not an address", "write 192.0.2.2/24"))
}

fn kind(value: TableValue<'_>) -> Result<LinkDriver, Diagnostic> {
    Ok(match text(value)? {
        "ethernet" => LinkDriver::Ethernet,
        "ppp" => LinkDriver::PointToPoint,
        "ifb" => LinkDriver::Ifb,
        "bridge" => LinkDriver::Bridge,
        "dummy" => LinkDriver::Dummy,
        _ => {
            let known = "there are ethernet, ppp, ifb, bridge, dummy; a tunnel is `tunnel = \"ipip\"`";
            return Err(Diagnostic::new(value.span(), "unknown kind of device", known));
        }
    })
}

/// A congestion control by its name.
pub(crate) fn control(value: TableValue<'_>) -> Result<CongestionControl, Diagnostic> {
    let known = [
        ("cubic", CongestionControl::Cubic),
        ("reno", CongestionControl::Reno),
        ("cubic-without-hystart", CongestionControl::CubicSlowStart),
        ("bbr", CongestionControl::Bbr),
        ("dctcp", CongestionControl::Dctcp),
        ("prague", CongestionControl::Prague),
    ];
    let words = text(value)?;
    known.iter().find(|(name, _)| *name == words).map(|(_, control)| *control).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        Diagnostic::new(value.span(), "unknown congestion control", format!("there are {}", names.join(", ")))
    })
}

/// `true` and `false`, or the code point: `"ect0"`, `"ect1"`.
fn ecn(value: TableValue<'_>) -> Result<EcnCodepoint, Diagnostic> {
    match text(value) {
        Ok("ect0") => Ok(EcnCodepoint::Ect0),
        Ok("ect1") => Ok(EcnCodepoint::Ect1),
        Ok(_) => {
            Err(Diagnostic::new(value.span(), "unknown ECN mode", "it is true, false, \"ect0\" or \"ect1\""))
        }
        Err(_) => flag(value).map(|on| if on { EcnCodepoint::Ect0 } else { EcnCodepoint::Off }),
    }
}

/// `tcp = { control = "cubic", ecn = false, … }`.
fn tcp(value: TableValue<'_>) -> Result<TcpOptions, Diagnostic> {
    let mut keys = Keys::of(value)?;
    let tcp = tcp_keys(&mut keys)?;
    keys.finish()?;
    Ok(tcp)
}

/// The keys that hosts and transfers share.
pub(crate) fn tcp_keys(keys: &mut Keys<'_>) -> Result<TcpOptions, Diagnostic> {
    Ok(TcpOptions {
        control: keys.read("control", control)?,
        ecn: keys.read("ecn", ecn)?,
        receive_window: keys.read("receive-window", size)?.map(|bytes| bytes.max(1)),
        initial_window: keys
            .read("initial-window", |value| number(value, 1, 10_000))?
            .map(|window| window as u32),
        delayed_ack: keys.read("delayed-ack", flag)?,
        send_buffer: keys.read("send-buffer", size)?,
        small_queues: keys.read("small-queues", flag)?,
    })
}

/// A DSCP by its name or number, or a TOS byte: the DS field.
pub(crate) fn dsfield(keys: &mut Keys<'_>) -> Result<Option<u8>, Diagnostic> {
    if let Some(value) = keys.get("tos") {
        let words = plain(value)?;
        let byte = words
            .strip_prefix("0x")
            .map_or_else(|| words.parse().ok(), |hex| u8::from_str_radix(hex, 16).ok());
        return byte
            .map(Some)
            .ok_or_else(|| Diagnostic::new(value.span(), "this is not a TOS byte", "write 0x10, or 16"));
    }
    let Some(value) = keys.get("dscp") else { return Ok(None) };
    let words = plain(value)?.to_uppercase();
    let number = |text: &str| text.parse::<u8>().ok();
    let code = match words.as_str() {
        "EF" => Some(46),
        "BE" | "CS0" => Some(0),
        "LE" => Some(1),
        other if other.starts_with("CS") => {
            number(&other[2..]).filter(|class| *class < 8).map(|class| class << 3)
        }
        other if other.starts_with("AF") => number(&other[2..])
            .filter(|n| (1..=4).contains(&(n / 10)) && (1..=3).contains(&(n % 10)))
            .map(|n| (n / 10) << 3 | (n % 10) << 1),
        other => number(other).filter(|code| *code < 64),
    };
    code.map(|code| Some(code << 2)).ok_or_else(|| {
        Diagnostic::new(value.span(), "unknown code point", "write EF, CS1, AF41, LE, or 0 to 63")
    })
}

/// The texts of a list with their places.
pub(crate) fn strings(value: TableValue<'_>) -> Result<Vec<String>, Diagnostic> {
    Ok(texts(value)?.into_iter().map(str::to_owned).collect())
}
