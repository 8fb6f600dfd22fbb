//! `ip`: the few commands about devices that traffic-control scripts issue.

use crate::number::u32_in;
use crate::{Env, Refusal};
use tidegate_policy::Op;

/// What `ip -V` prints.
pub const VERSION: &str = "ip utility, iproute2-6.1.0, libbpf 1.1.2\n";

/// What a command line of ip asks.
#[derive(Clone, Debug, PartialEq)]
pub enum IpCommand {
    /// Operations on a device, in order; up and down are not among them, because a model's links are always up.
    Apply(Vec<Op>),
    /// `ip link add NAME type KIND`.
    AddLink {
        /// Its name.
        name: String,
        /// `ifb`, `dummy`, `veth` …
        kind: String,
    },
    /// `ip link del NAME`.
    DeleteLink(String),
    /// `ip link show [DEV]`.
    ShowLinks(Option<String>),
    /// `-V`.
    Version,
}

/// A device to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownLink {
    /// Its number, from 1.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Largest network packet, bytes.
    pub mtu: u32,
    /// Transmit queue length, packets.
    pub txqueuelen: u32,
    /// The kind of its root qdisc.
    pub qdisc: String,
}

/// Reads a command line of `ip`, without the program's name.
pub fn parse(args: &[String], env: &Env) -> Result<IpCommand, Refusal> {
    let mut words = args.iter().map(String::as_str).enumerate().peekable();
    while words.peek().is_some_and(|(_, word)| word.starts_with('-')) {
        if let Some((_, "-V" | "-Version")) = words.next() {
            return Ok(IpCommand::Version);
        }
    }
    let (place, object) = words.next().ok_or_else(|| Refusal::new(255, "Usage: ip link set|add|delete|show …"))?;
    if object.is_empty() || !"link".starts_with(object) {
        return Err(later(&format!("ip {object}"), place));
    }
    let rest: Vec<(usize, &str)> = words.collect();
    let (_, verb) = rest.first().copied().unwrap_or((0, "show"));
    let rest = rest.get(1..).unwrap_or(&[]);
    match verb {
        "set" => set(rest, env),
        "add" | "a" => add(rest),
        "delete" | "del" | "d" => {
            let name =
                name(rest).ok_or_else(|| Refusal::new(255, "Not enough information: \"dev\" argument is required."))?;
            find(name, env)?;
            Ok(IpCommand::DeleteLink(name.into()))
        }
        "show" | "list" | "ls" | "lst" | "sh" | "s" => {
            let name = name(rest);
            if let Some(name) = name.filter(|name| !env.has(name)) {
                return Err(Refusal::new(1, format!("Device \"{name}\" does not exist.")));
            }
            Ok(IpCommand::ShowLinks(name.map(String::from)))
        }
        _ => Err(Refusal::new(255, format!("Command \"{verb}\" is unknown, try \"ip link help\"."))),
    }
}

/// `ip link show`.
pub fn show_links(links: &[ShownLink]) -> String {
    links
        .iter()
        .map(|link| {
            format!(
                "{}: {}: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu {} qdisc {} state UP mode DEFAULT group default qlen {}\n    \
                 link/ether 02:00:00:00:00:{:02x} brd ff:ff:ff:ff:ff:ff\n",
                link.index,
                link.name,
                link.mtu,
                link.qdisc,
                link.txqueuelen,
                link.index & 0xff
            )
        })
        .collect()
}

fn set(rest: &[(usize, &str)], env: &Env) -> Result<IpCommand, Refusal> {
    let mut dev: Option<String> = None;
    let (mut mtu, mut queue) = (None, None);
    let mut words = rest.iter().copied();
    while let Some((place, word)) = words.next() {
        let mut number = |why: &str| {
            let (place, text) = words.next().ok_or_else(Refusal::incomplete)?;
            u32_in(text, 0).ok_or_else(|| Refusal::wrong(text, why).at(place))
        };
        match word {
            "up" | "down" => {}
            "mtu" => mtu = Some(number("Invalid \"mtu\" value\n")?),
            "txqueuelen" | "qlen" | "txqlen" => queue = Some(number("Invalid \"txqueuelen\" value\n")?),
            "dev" => dev = Some(words.next().ok_or_else(Refusal::incomplete)?.1.into()),
            "address" | "arp" | "multicast" | "promisc" | "allmulticast" | "alias" | "group" => {
                words.next().ok_or_else(Refusal::incomplete)?;
            }
            _ if dev.is_none() => dev = Some(word.into()),
            _ => return Err(later(&format!("ip link set … {word}"), place)),
        }
    }
    let dev = dev.ok_or_else(|| Refusal::new(255, "Not enough information: \"dev\" argument is required."))?;
    find(&dev, env)?;
    let mut ops = Vec::new();
    ops.extend(mtu.map(|bytes| Op::Mtu { dev: dev.clone(), bytes }));
    ops.extend(queue.map(|packets| Op::TxQueueLen { dev: dev.clone(), packets }));
    Ok(IpCommand::Apply(ops))
}

fn add(rest: &[(usize, &str)]) -> Result<IpCommand, Refusal> {
    let after = |key: &str| rest.iter().position(|(_, word)| *word == key).and_then(|at| rest.get(at + 1));
    let kind =
        after("type").ok_or_else(|| Refusal::new(255, "Not enough information: \"type\" argument is required"))?;
    let name = after("name").or_else(|| after("dev")).or_else(|| rest.first()).map_or("", |(_, name)| name);
    if name.is_empty() || name == "type" || name.len() > 15 || name.contains('/') {
        return Err(Refusal::new(255, format!("Error: argument \"{name}\" is wrong: \"name\" not a valid ifname")));
    }
    Ok(IpCommand::AddLink { name: name.into(), kind: kind.1.into() })
}

/// The device's name, with or without `dev` before it.
fn name<'a>(rest: &[(usize, &'a str)]) -> Option<&'a str> {
    match rest {
        [(_, "dev"), (_, name), ..] => Some(name),
        [(_, "up" | "type" | "master"), ..] => None,
        [(_, name), ..] => Some(name),
        [] => None,
    }
}

fn find(name: &str, env: &Env) -> Result<(), Refusal> {
    if env.has(name) {
        return Ok(());
    }
    Err(Refusal::new(1, format!("Cannot find device \"{name}\"")))
}

fn later(what: &str, place: usize) -> Refusal {
    Refusal::new(1, format!("tidegate: {what} is not supported in this version")).at(place)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Device;

    #[test]
    fn links() {
        let env = Env { devices: Some(vec![Device { name: "eth0".into(), speed_mbit: None }]) };
        let ask = |text: &str| {
            let args: Vec<String> = text.split_whitespace().map(String::from).collect();
            parse(&args, &env).map_err(|refusal| refusal.stderr)
        };
        let (mtu, queue) =
            (Op::Mtu { dev: "eth0".into(), bytes: 1492 }, Op::TxQueueLen { dev: "eth0".into(), packets: 10 });
        let table = [
            ask("link set dev eth0 up"),
            ask("link set eth0 txqueuelen 10 mtu 1492"),
            ask("link set nope up"),
            ask("link add name ifb4eth0 type ifb"),
            ask("link add ifb0 type ifb"),
            ask("link del eth0"),
            ask("-s link show eth0"),
            ask("link"),
        ];
        let ifb = |name: &str| Ok(IpCommand::AddLink { name: name.into(), kind: "ifb".into() });
        let wanted = [
            Ok(IpCommand::Apply(vec![])),
            Ok(IpCommand::Apply(vec![mtu, queue])),
            Err("Cannot find device \"nope\"\n".into()),
            ifb("ifb4eth0"),
            ifb("ifb0"),
            Ok(IpCommand::DeleteLink("eth0".into())),
            Ok(IpCommand::ShowLinks(Some("eth0".into()))),
            Ok(IpCommand::ShowLinks(None)),
        ];
        assert_eq!(table, wanted);
    }
}
