//! `ip link`, `ip tunnel`, `ip tuntap`.

use super::command::{IpCommand, LinkSelector, LinkSet};
use super::words::{exists, find, help, is_show, later, number};
use crate::{Env, Refusal};
use std::net::IpAddr;
use tidegate_packet::Meta;
use tidegate_policy::{LinkDriver, RawLink, Tunnel, TunnelMode};

/// Longest name of a link, bytes.
const MAX_NAME: usize = 15;

pub(super) fn link(words: &[&str], env: &Env) -> Result<IpCommand, Refusal> {
    let (verb, rest) = words.split_first().map_or(("show", words), |(verb, rest)| (*verb, rest));
    match verb {
        "set" | "s" | "change" => set(rest, env).map(IpCommand::Set),
        "add" | "a" | "new" => add(rest, env),
        verb if verb.starts_with('r') && "replace".starts_with(verb) => match add(rest, env)? {
            IpCommand::AddLink { name, .. } if env.has(&name) => {
                Err(later("replacing a link that is there", 1))
            }
            command => Ok(command),
        },
        "delete" | "del" | "d" => delete(rest, env),
        "help" => Ok(help()),
        _ if is_show(verb) => which(rest, env).map(IpCommand::ShowLinks),
        _ => Err(Refusal::new(255, format!("Command \"{verb}\" is unknown, try \"ip link help\".")).at(1)),
    }
}

fn set(words: &[&str], env: &Env) -> Result<LinkSet, Refusal> {
    let mut set = LinkSet::default();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let next = words.get(at + 1);
        let step = option(&mut set, word, next)?;
        at += match (step, *word) {
            (Some(step), _) => step,
            (None, "dev") => {
                set.dev = name_of(next.ok_or_else(Refusal::incomplete)?)?;
                2
            }
            (None, name) if set.dev.is_empty() => {
                set.dev = name_of(name)?;
                1
            }
            (None, word) if KNOWN.contains(&word) => return Err(later(&format!("ip link set … {word}"), at)),
            (None, word) => {
                let line = format!("Error: either \"dev\" is duplicate, or \"{word}\" is a garbage.");
                return Err(Refusal::new(255, line).at(at));
            }
        };
    }
    if set.dev.is_empty() {
        return Err(Refusal::new(255, "Not enough information: \"dev\" argument is required."));
    }
    find(&set.dev, env)?;
    match set.master.as_ref().filter(|master| !master.is_empty()) {
        Some(master) if !env.has(master) => {
            Err(Refusal::new(255, format!("Error: argument \"{master}\" is wrong: Device does not exist\n")))
        }
        _ => Ok(set),
    }
}

/// Words of `ip link set` that mean something elsewhere and are not played.
const KNOWN: [&str; 9] =
    ["netns", "vf", "xdp", "xdpgeneric", "type", "macaddr", "nomacaddr", "link-netnsid", "vrf"];

/// An option that links take when they are set and when they are added; how many words it used.
fn option(set: &mut LinkSet, word: &str, next: Option<&&str>) -> Result<Option<usize>, Refusal> {
    let text = || next.map(|next| (*next).to_owned()).ok_or_else(Refusal::incomplete);
    match word {
        "up" => set.up = Some(true),
        "down" => set.up = Some(false),
        "nomaster" => set.master = Some(String::new()),
        "mtu" => set.mtu = Some(number(next, "Invalid \"mtu\" value\n")?),
        "txqueuelen" | "qlen" | "txqlen" => {
            set.txqueuelen = Some(number(next, "Invalid \"txqueuelen\" value\n")?)
        }
        "numtxqueues" => set.txqueues = Some(queues(next)?),
        "master" => set.master = Some(text()?),
        "address" => set.address = Some(text()?),
        "name" => {
            let name = text()?;
            check_name(&name)?;
            set.name = Some(name);
        }
        // What a model has no use for.
        "arp" | "multicast" | "promisc" | "allmulticast" | "alias" | "group" | "broadcast" | "brd"
        | "addrgenmode" | "trailers" | "dynamic" | "carrier" | "numrxqueues" | "gso_max_size"
        | "gso_max_segs" | "index" => {
            text()?;
        }
        _ => return Ok(None),
    }
    Ok(Some(if matches!(word, "up" | "down" | "nomaster") { 1 } else { 2 }))
}

/// A number of transmit queues.
fn queues(word: Option<&&str>) -> Result<u32, Refusal> {
    let count = number(word, "Invalid \"numtxqueues\" value\n")?;
    if count > Meta::TX_QUEUES {
        let line = format!("tidegate: numtxqueues {count} is more than a device has here");
        return Err(Refusal::new(1, line)
            .remedy(format!("At most {} transmit queues are modelled.", Meta::TX_QUEUES)));
    }
    Ok(count)
}

/// The name of a link that is there.
fn name_of(name: &str) -> Result<String, Refusal> {
    match name.is_empty() {
        true => Err(Refusal::wrong(name, "\"dev\" not a valid ifname")
            .remedy("The name is empty: is its variable set?")),
        false => Ok(name.into()),
    }
}

fn check_name(name: &str) -> Result<(), Refusal> {
    if name.is_empty()
        || name.len() > MAX_NAME
        || name.contains(|letter: char| letter == '/' || letter.is_whitespace())
    {
        return Err(Refusal::wrong(name, "\"name\" not a valid ifname"));
    }
    Ok(())
}

fn add(words: &[&str], env: &Env) -> Result<IpCommand, Refusal> {
    let mut set = LinkSet::default();
    let (mut name, mut lower) = (String::new(), None);
    let mut at = 0;
    let mut kind = None;
    while let Some(word) = words.get(at) {
        let next = words.get(at + 1);
        match *word {
            "type" => {
                kind = Some(kind_of(
                    next.ok_or_else(Refusal::incomplete)?,
                    words.get(at + 2..).unwrap_or(&[]),
                    lower,
                )?);
                break;
            }
            "link" => {
                let found = next.ok_or_else(Refusal::incomplete)?;
                find(found, env)?;
                lower = Some(*found);
                at += 2;
            }
            "netns" => return Err(elsewhere("ip link add … netns")),
            "name" | "dev" => {
                name = (*next.ok_or_else(Refusal::incomplete)?).into();
                check_name(&name)?;
                at += 2;
            }
            _ => match option(&mut set, word, next)? {
                Some(step) => at += step,
                None if name.is_empty() => {
                    name = (*word).into();
                    at += 1;
                }
                None => {
                    return Err(Refusal::new(
                        255,
                        format!("Error: garbage instead of arguments \"{word} ...\"."),
                    ));
                }
            },
        }
    }
    let mut kind =
        kind.ok_or_else(|| Refusal::new(1, "Not enough information: \"type\" argument is required"))?;
    if name.is_empty() {
        name = free_name(&kind, env);
    }
    check_name(&name)?;
    set.dev.clone_from(&name);
    if let LinkDriver::Veth { peer } = &mut kind
        && peer.is_empty()
    {
        *peer = free_name_but(&LinkDriver::Veth { peer: String::new() }, env, &name);
    }
    Ok(IpCommand::AddLink { name, kind, set })
}

/// The name that the kernel gives to a link that gets none: the first free number behind the kind's.
fn free_name(kind: &LinkDriver, env: &Env) -> String {
    free_name_but(kind, env, "")
}

/// A free name for a link of this kind that is not `taken`.
fn free_name_but(kind: &LinkDriver, env: &Env, taken: &str) -> String {
    let stem = match kind {
        LinkDriver::Ifb => "ifb",
        LinkDriver::Bridge => "bridge",
        LinkDriver::Veth { .. } => "veth",
        LinkDriver::Vlan { .. } => "vlan",
        LinkDriver::Raw(RawLink::Wireguard) => "wg",
        LinkDriver::Raw(RawLink::Tun) => "tun",
        LinkDriver::Raw(RawLink::Wwan) => "wwan",
        LinkDriver::PointToPoint => "ppp",
        LinkDriver::Tunnel(tunnel) => match tunnel.mode {
            TunnelMode::Ipip => "tunl",
            TunnelMode::Sit => "sit",
            TunnelMode::Gre => "gre",
            TunnelMode::Gretap => "gretap",
            TunnelMode::Ip6tnl => "ip6tnl",
        },
        LinkDriver::Dummy | LinkDriver::Ethernet | LinkDriver::Loopback => "dummy",
    };
    let names = (0..4096).map(|number| format!("{stem}{number}"));
    let free =
        |name: &String| name != taken && env.devices.iter().flatten().all(|device| device.name != *name);
    names.into_iter().find(free).unwrap_or_default()
}

/// A link, or one end of it, in another network namespace.
fn elsewhere(what: &str) -> Refusal {
    let line = format!("tidegate: {what} is not supported in this version");
    Refusal::new(1, line).remedy(
        "One network namespace is modelled, so the link cannot move to another. Without netns both ends are \
        created here, under two names.",
    )
}

/// The kind and what follows it.
fn kind_of(kind: &str, rest: &[&str], lower: Option<&str>) -> Result<LinkDriver, Refusal> {
    let after =
        |key: &str| rest.iter().position(|word| *word == key).and_then(|at| rest.get(at + 1)).copied();
    Ok(match kind {
        "ifb" => LinkDriver::Ifb,
        "dummy" => LinkDriver::Dummy,
        "bridge" => LinkDriver::Bridge,
        "veth" if rest.contains(&"netns") => return Err(elsewhere("ip link add … type veth peer … netns")),
        "veth" => LinkDriver::Veth { peer: after("name").or(after("peer")).unwrap_or_default().into() },
        "vlan" => {
            let lower = lower.ok_or_else(|| Refusal::new(2, "RTNETLINK answers: Invalid argument"))?;
            let id = after("id").and_then(|id| id.parse().ok()).filter(|id| *id < 4096);
            let id = id.ok_or_else(|| Refusal::wrong(after("id").unwrap_or(""), "id is invalid"))?;
            LinkDriver::Vlan { lower: lower.into(), id }
        }
        "ipip" => LinkDriver::Tunnel(ends(TunnelMode::Ipip, rest)?),
        "sit" => LinkDriver::Tunnel(ends(TunnelMode::Sit, rest)?),
        "gre" => LinkDriver::Tunnel(ends(TunnelMode::Gre, rest)?),
        "gretap" => LinkDriver::Tunnel(ends(TunnelMode::Gretap, rest)?),
        "ip6tnl" => LinkDriver::Tunnel(ends(TunnelMode::Ip6tnl, rest)?),
        "wireguard" => LinkDriver::Raw(RawLink::Wireguard),
        "macvlan" | "ipvlan" | "bond" | "team" | "vxlan" | "vti" | "ip6gre" | "geneve" | "vrf" | "macsec"
        | "nlmon" | "vcan" | "xfrm" | "amt" | "bareudp" | "batadv" | "can" | "erspan" | "gtp" | "hsr"
        | "ip6erspan" | "ip6gretap" | "ipvtap" | "macvtap" | "netdevsim" | "netkit" | "ovpn" | "rmnet"
        | "vti6" | "vxcan" => return Err(later(&format!("ip link add … type {kind}"), 0)),
        _ => return Err(Refusal::new(2, "Error: Unknown device type.")),
    })
}

/// `remote`, `local` and `ttl` of a tunnel.
fn ends(mode: TunnelMode, words: &[&str]) -> Result<Tunnel, Refusal> {
    let after =
        |key: &str| words.iter().position(|word| *word == key).and_then(|at| words.get(at + 1)).copied();
    let v6 = mode == TunnelMode::Ip6tnl;
    let family = if v6 { "IPv6" } else { "IPv4" };
    let unsaid = Tunnel::unsaid(mode);
    let address = |key: &str| match after(key) {
        None | Some("any" | "default") => Ok(unsaid.local),
        Some(text) => text.parse().ok().filter(|address: &IpAddr| address.is_ipv6() == v6).ok_or_else(|| {
            Refusal::new(1, format!("Error: any valid {family} address is expected rather than \"{text}\"."))
        }),
    };
    let encap_limit = match after("encaplimit") {
        _ if !v6 => None,
        None => unsaid.encap_limit,
        Some("none") => None,
        Some(text) => Some(text.parse().map_err(|_| Refusal::wrong(text, "invalid ELIM\n"))?),
    };
    let ttl = match after("ttl").or(after("hoplimit")) {
        None | Some("inherit") => 0,
        Some(text) => text.parse().map_err(|_| Refusal::wrong(text, "invalid TTL\n"))?,
    };
    Ok(Tunnel { mode, local: address("local")?, remote: address("remote")?, ttl, encap_limit })
}

fn delete(words: &[&str], env: &Env) -> Result<IpCommand, Refusal> {
    let name = match *words {
        ["dev"] => return Err(Refusal::incomplete()),
        ["dev", name, ..] | [name, ..] if name != "type" => name,
        _ => return Err(Refusal::new(255, "Not enough information: \"dev\" argument is required.")),
    };
    find(&name_of(name)?, env)?;
    Ok(IpCommand::DeleteLink(name.into()))
}

pub(super) fn which(words: &[&str], env: &Env) -> Result<LinkSelector, Refusal> {
    let mut which = LinkSelector::default();
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let after = words.get(at + 1);
        let next = || after.map(|next| (*next).to_owned()).ok_or_else(Refusal::incomplete);
        at += 2;
        match *word {
            "up" => {
                which.up = true;
                at -= 1;
            }
            "type" => which.kind = Some(next()?),
            "master" => which.master = Some(next()?),
            "dev" => which.dev = Some(next()?),
            "scope" | "to" | "group" | "label" | "vrf" => drop(next()?),
            "permanent" | "dynamic" | "primary" | "secondary" | "tentative" | "nomaster" => at -= 1,
            name => {
                which.dev = Some(name.into());
                at -= 1;
            }
        }
    }
    if let Some(dev) = &which.dev {
        exists(dev, env)?;
    }
    Ok(which)
}

pub(super) fn tunnel(words: &[&str], env: &Env) -> Result<IpCommand, Refusal> {
    let (verb, rest) = words.split_first().map_or(("show", words), |(verb, rest)| (*verb, rest));
    let after =
        |key: &str| rest.iter().position(|word| *word == key).and_then(|at| rest.get(at + 1)).copied();
    let name = after("name").or(after("dev").filter(|_| rest.first() == Some(&"dev"))).or_else(|| {
        let first = rest.first().copied()?;
        (!["mode", "remote", "local", "ttl", "dev"].contains(&first)).then_some(first)
    });
    match verb {
        "add" | "a" => {
            let mode = match after("mode") {
                Some("ipip" | "ip/ip") => TunnelMode::Ipip,
                Some("sit" | "ipv6/ip") => TunnelMode::Sit,
                Some("gre" | "gre/ip") => TunnelMode::Gre,
                Some("ip6ip6" | "ipv6/ipv6" | "ipip6" | "ipv4/ipv6" | "any" | "any/ipv6") => {
                    TunnelMode::Ip6tnl
                }
                Some(mode) => {
                    return Err(Refusal::new(255, format!("Unknown tunnel mode \"{mode}\"")));
                }
                None => return Err(Refusal::new(1, "cannot determine tunnel mode (ipip, gre, vti or sit)")),
            };
            let name = name.ok_or_else(|| later("a tunnel without a name", 0))?;
            check_name(name)?;
            let kind = LinkDriver::Tunnel(ends(mode, rest)?);
            Ok(IpCommand::AddLink {
                name: name.into(),
                kind,
                set: LinkSet { dev: name.into(), ..LinkSet::default() },
            })
        }
        "delete" | "del" | "d" => match name {
            Some(name) if env.has(name) => Ok(IpCommand::DeleteLink(name.into())),
            Some(name) => Err(Refusal::new(1, format!("delete tunnel \"{name}\" failed: No such device"))),
            None => Err(Refusal::new(1, "cannot determine tunnel mode (ipip, gre, vti or sit)")),
        },
        _ if is_show(verb) => Ok(IpCommand::ShowTunnels(name.map(String::from))),
        _ => Err(later(&format!("ip tunnel {verb}"), 1)),
    }
}

pub(super) fn tuntap(words: &[&str], env: &Env) -> Result<IpCommand, Refusal> {
    let name = words.iter().skip(1).find(|word| !["dev", "name", "mode", "tun", "tap"].contains(word));
    match (words.first().copied().unwrap_or("show"), name) {
        ("add" | "a", Some(name)) => {
            check_name(name)?;
            let kind = if words.contains(&"tap") { LinkDriver::Dummy } else { LinkDriver::Raw(RawLink::Tun) };
            let set = LinkSet { dev: (*name).into(), ..LinkSet::default() };
            Ok(IpCommand::AddLink { name: (*name).into(), kind, set })
        }
        ("delete" | "del" | "d", Some(name)) => {
            find(name, env)?;
            Ok(IpCommand::DeleteLink((*name).into()))
        }
        (verb, _) if is_show(verb) => Ok(IpCommand::ShowNothing),
        (verb, _) => Err(later(&format!("ip tuntap {verb}"), 1)),
    }
}
