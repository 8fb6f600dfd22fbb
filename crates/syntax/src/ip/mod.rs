//! `ip`: the commands about links, addresses, routes and tunnels that traffic-control scripts issue.

mod address;
mod link;
mod route;
mod show;

use crate::number::u32_in;
use crate::{Env, Refusal};
use std::net::IpAddr;
use tidegate_policy::LinkKind;

pub use show::{ShownAddress, ShownLink, link_json, link_text, route_text};

/// What `ip -V` prints.
pub const VERSION: &str = "ip utility, iproute2-6.1.0, libbpf 1.1.2\n";

/// A command understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    /// What to do.
    pub command: IpCommand,
    /// How to show.
    pub flags: IpFlags,
}

/// How to show: the options before the object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpFlags {
    /// `-s`: counters.
    pub stats: bool,
    /// `-d`: details.
    pub details: bool,
    /// `-o`: one line each.
    pub oneline: bool,
    /// `-br`: a table.
    pub brief: bool,
    /// `-j`: JSON.
    pub json: bool,
    /// `-p`: JSON laid out.
    pub pretty: bool,
    /// `-4`, `-6`: true = IPv6.
    pub family: Option<bool>,
}

/// What a command line of ip asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IpCommand {
    /// `ip link set`.
    Set(LinkSet),
    /// `ip link add`, `ip tunnel add`, `ip tuntap add`.
    AddLink {
        /// The new device's name.
        name: String,
        /// What it is.
        kind: LinkKind,
        /// What was said of it beside.
        set: LinkSet,
    },
    /// `ip link del`, `ip tunnel del`.
    DeleteLink(String),
    /// `ip link show`.
    ShowLinks(Which),
    /// `ip addr add|del|replace`.
    Address {
        /// True to add.
        add: bool,
        /// Adding what is there already is no error (`replace`, `change`).
        replace: bool,
        /// The device.
        dev: String,
        /// The address.
        address: IpAddr,
        /// Leading bits that are the network's.
        prefix: u8,
    },
    /// `ip addr flush dev DEV`.
    FlushAddresses(String),
    /// `ip addr show`.
    ShowAddresses(Which),
    /// `ip tunnel show [NAME]`.
    ShowTunnels(Option<String>),
    /// `ip route add|del|replace|change|append`.
    Route {
        /// What to do.
        verb: RouteVerb,
        /// With which route.
        route: Route,
    },
    /// `ip route show`.
    ShowRoutes {
        /// Only this destination: (network, prefix); a prefix of 0 is the default route.
        to: Option<(IpAddr, u8)>,
        /// Only by this device.
        dev: Option<String>,
    },
    /// `ip route get ADDRESS`.
    GetRoute(IpAddr),
    /// `ip route flush`.
    FlushRoutes,
    /// `ip rule show`.
    ShowRules,
    /// Something that has nothing to show: `ip neigh show`.
    ShowNothing,
    /// `-batch FILE` (`-` = standard input).
    Batch {
        /// Go on after an error.
        force: bool,
    },
    /// `-V`: print [`VERSION`].
    Version,
    /// `help`, or nothing at all: a text of our own, and the exit code.
    Help(String),
}

/// `ip link set`: `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkSet {
    /// The device.
    pub dev: String,
    /// Up or down.
    pub up: Option<bool>,
    /// Bytes of the largest network packet.
    pub mtu: Option<u32>,
    /// Packets of the transmit queue.
    pub txqueuelen: Option<u32>,
    /// Transmit queues; a link has them from when it is added.
    pub txqueues: Option<u32>,
    /// A new name.
    pub name: Option<String>,
    /// The bridge it becomes a port of; an empty name for `nomaster`.
    pub master: Option<String>,
    /// A new hardware address, as written.
    pub address: Option<String>,
}

/// Which links, or addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Which {
    /// Only this device.
    pub dev: Option<String>,
    /// Only those that are up.
    pub up: bool,
    /// Only those of this kind (`ifb`).
    pub kind: Option<String>,
    /// Only the ports of this bridge.
    pub master: Option<String>,
}

/// What to do with a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteVerb {
    /// Fails if it is there.
    Add,
    /// Fails if it is not there.
    Delete,
    /// Puts it in place of another of the same destination.
    Replace,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Network and prefix length; 0 for the default route.
    pub to: (IpAddr, u8),
    /// The next router.
    pub via: Option<IpAddr>,
    /// The device.
    pub dev: Option<String>,
    /// The source address preferred.
    pub src: Option<IpAddr>,
    /// Lower is preferred.
    pub metric: u32,
    /// `scope link`, as the kernel's own routes to a device's network.
    pub scope_link: bool,
    /// `proto kernel`: made by the kernel with an address.
    pub kernel: bool,
}

const OBJECTS: [&str; 10] =
    ["address", "link", "maddress", "monitor", "neighbour", "netns", "route", "rule", "tunnel", "tuntap"];

/// Reads a command line of `ip`, without the program's name.
///
/// # Errors
/// In ip's words, with its exit code.
pub fn parse(args: &[String], env: &Env) -> Result<Parsed, Refusal> {
    let mut flags = IpFlags::default();
    let (mut batch, mut force) = (false, false);
    let mut at = 0;
    while let Some(word) = args.get(at).filter(|word| word.starts_with('-') && word.len() > 1) {
        let option = word.trim_start_matches('-');
        let is = |name: &str| name.starts_with(option);
        match option {
            "4" => flags.family = Some(false),
            "6" => flags.family = Some(true),
            "0" | "B" | "M" | "N" | "a" | "h" | "iec" => {}
            "br" => flags.brief = true,
            _ if is("family") => {
                at += 1;
                flags.family = args.get(at).map(|family| family == "inet6");
            }
            _ if is("stats") || is("statistics") => flags.stats = true,
            _ if is("details") => flags.details = true,
            _ if is("oneline") => flags.oneline = true,
            _ if is("json") => flags.json = true,
            _ if is("pretty") => flags.pretty = true,
            _ if is("brief") && option.len() > 1 => flags.brief = true,
            _ if is("batch") => {
                at += 1;
                batch = true;
            }
            _ if is("force") => force = true,
            _ if is("Version") => return Ok(Parsed { command: IpCommand::Version, flags }),
            _ if is("help") => return Ok(Parsed { command: help(), flags }),
            _ if is("color") || option.starts_with("color=") || is("resolve") || is("timestamp") => {}
            _ if is("netns") || is("loops") || is("rcvbuf") => {
                return Err(later(&format!("the option {word}"), at));
            }
            _ => return Err(Refusal::new(255, format!("Option \"{word}\" is unknown, try \"ip -help\".")).at(at)),
        }
        at += 1;
    }
    if batch {
        return Ok(Parsed { command: IpCommand::Batch { force }, flags });
    }
    Ok(Parsed { command: parse_line(args.get(at..).unwrap_or(&[]), &mut flags, env)?, flags })
}

/// Reads a line without options before the object, as in a batch file.
///
/// # Errors
/// In ip's words, with its exit code.
pub fn parse_line(args: &[String], flags: &mut IpFlags, env: &Env) -> Result<IpCommand, Refusal> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let Some((object, rest)) = words.split_first() else { return Ok(help()) };
    if *object == "help" {
        return Ok(help());
    }
    let object = OBJECTS.into_iter().find(|name| !object.is_empty() && name.starts_with(object)).unwrap_or(object);
    match object {
        "link" => link::link(rest, env),
        "address" => address::address(rest, flags, env),
        "route" => route::route(rest, flags, env),
        "tunnel" => link::tunnel(rest, env),
        "tuntap" => link::tuntap(rest, env),
        "rule" | "neighbour" | "maddress" => match rest.first() {
            None => Ok(if object == "rule" { IpCommand::ShowRules } else { IpCommand::ShowNothing }),
            Some(verb) if is_show(verb) => {
                Ok(if object == "rule" { IpCommand::ShowRules } else { IpCommand::ShowNothing })
            }
            Some(verb) => Err(later(&format!("ip {object} {verb}"), 1)),
        },
        "monitor" | "netns" => Err(later(&format!("ip {object}"), 0)),
        _ => Err(Refusal::new(1, format!("Object \"{object}\" is unknown, try \"ip help\".")).at(0)),
    }
}

fn help() -> IpCommand {
    IpCommand::Help(
        "ip [-s] [-d] [-o] [-br] [-j] [-4|-6] OBJECT VERB …   or   ip [-force] -batch FILE\n\
         objects played here: link address route tunnel tuntap; verbs: add delete set show, route get\n"
            .into(),
    )
}

fn is_show(verb: &str) -> bool {
    !verb.is_empty() && ["show", "list", "lst", "ls"].iter().any(|name| name.starts_with(verb))
}

/// What ip knows and this version does not.
fn later(what: &str, place: usize) -> Refusal {
    Refusal::new(1, format!("tidegate: {what} is not supported in this version"))
        .at(place)
        .remedy("ip would have accepted this; the command was not carried out.")
}

/// Refuses a device that is not there, as commands that change do.
fn find(name: &str, env: &Env) -> Result<(), Refusal> {
    if env.has(name) { Ok(()) } else { Err(Refusal::new(1, format!("Cannot find device \"{name}\""))) }
}

/// Refuses a device that is not there, as commands that show do.
fn exists(name: &str, env: &Env) -> Result<(), Refusal> {
    if env.has(name) { Ok(()) } else { Err(Refusal::new(1, format!("Device \"{name}\" does not exist."))) }
}

/// A number that fits into 31 bits, as ip reads its own.
fn number(text: Option<&&str>, why: &str) -> Result<u32, Refusal> {
    let text = text.ok_or_else(Refusal::incomplete)?;
    u32_in(text, 0).filter(|number| i32::try_from(*number).is_ok()).ok_or_else(|| Refusal::wrong(text, why))
}

/// `10.0.0.0/8`, `10/8`, `fe80::1`; without a slash the whole address counts.
fn prefix(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let address: IpAddr = match address.parse() {
        Ok(address) => address,
        // `10/8` is short for 10.0.0.0/8.
        Err(_) => {
            let parts: Option<Vec<u8>> = address.split('.').map(|part| part.parse().ok()).collect();
            let mut octets = [0; 4];
            let parts = parts.filter(|parts| parts.len() < 4)?;
            octets[..parts.len()].copy_from_slice(&parts);
            IpAddr::from(octets)
        }
    };
    let whole = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(whole);
    (bits <= whole).then_some((address, bits))
}

#[cfg(test)]
mod tests;
