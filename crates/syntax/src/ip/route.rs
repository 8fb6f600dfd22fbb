//! `ip route`.

use super::command::{IpCommand, IpFlags, Route, RouteVerb};
use super::words::{find, help, ip_address, is_show, later, number, prefix};
use crate::{Env, Refusal};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub(super) fn route(words: &[&str], flags: &mut IpFlags, env: &Env) -> Result<IpCommand, Refusal> {
    let (verb, rest) = words.split_first().map_or(("show", words), |(verb, rest)| (*verb, rest));
    let begins = |name: &str| !verb.is_empty() && name.starts_with(verb);
    match verb {
        "help" => Ok(help()),
        _ if is_show(verb) => shown(rest, flags, env),
        "get" | "g" | "ge" => {
            let text = rest.iter().find(|word| **word != "to").ok_or_else(Refusal::incomplete)?;
            let (address, _) = prefix(text).ok_or_else(|| expected("address", text))?;
            Ok(IpCommand::GetRoute(address))
        }
        _ if begins("add") || begins("append") => read(rest, RouteVerb::Add, flags, env),
        _ if begins("change") || begins("replace") => read(rest, RouteVerb::Replace, flags, env),
        _ if begins("delete") => read(rest, RouteVerb::Delete, flags, env),
        _ if begins("flush") => {
            Ok(if rest == ["cache"] { IpCommand::ShowNothing } else { IpCommand::FlushRoutes })
        }
        _ => Err(Refusal::new(255, format!("Command \"{verb}\" is unknown, try \"ip route help\".")).at(1)),
    }
}

fn expected(what: &str, text: &str) -> Refusal {
    Refusal::new(1, format!("Error: any valid {what} is expected rather than \"{text}\"."))
}

fn default_route(ipv6: bool) -> (IpAddr, u8) {
    (if ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() }, 0)
}

/// `default`, or a prefix.
fn destination(text: &str, flags: &IpFlags) -> Option<(IpAddr, u8)> {
    if ["default", "any", "all"].contains(&text) {
        return Some(default_route(flags.family == Some(true)));
    }
    prefix(text)
}

fn shown(words: &[&str], flags: &IpFlags, env: &Env) -> Result<IpCommand, Refusal> {
    let (mut to, mut dev, mut scope_link) = (None, None, None);
    let mut at = 0;
    while let Some(word) = words.get(at) {
        let next = words.get(at + 1).copied();
        match *word {
            "dev" | "oif" => {
                let name = next.ok_or_else(Refusal::incomplete)?;
                find(name, env)?;
                dev = Some(name.to_owned());
                at += 1;
            }
            "scope" => {
                scope_link = Some(next.ok_or_else(Refusal::incomplete)? == "link");
                at += 1;
            }
            "table" | "proto" | "type" | "via" | "src" => at += 1,
            "exact" | "match" | "root" | "to" | "cache" => {}
            text => to = Some(destination(text, flags).ok_or_else(|| expected("prefix", text))?),
        }
        at += 1;
    }
    Ok(IpCommand::ShowRoutes { scope_link, to, dev })
}

fn read(words: &[&str], verb: RouteVerb, flags: &IpFlags, env: &Env) -> Result<IpCommand, Refusal> {
    let mut to = None;
    let mut route = Route {
        to: default_route(flags.family == Some(true)),
        via: None,
        dev: None,
        src: None,
        metric: 0,
        scope_link: false,
        kernel: false,
    };
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let next = words.get(at);
        let given = || {
            let text =
                next.filter(|text| **text != "inet" && **text != "inet6").ok_or_else(Refusal::incomplete)?;
            ip_address(text).ok_or_else(|| match to {
                Some((to, _)) => {
                    let family = if IpAddr::is_ipv4(&to) { "inet" } else { "inet6" };
                    Refusal::new(1, format!("Error: {family} address is expected rather than \"{text}\"."))
                }
                None => expected("address", text),
            })
        };
        match *word {
            "via" => route.via = Some(given()?),
            "src" => route.src = Some(given()?),
            "dev" | "oif" => {
                let name = next.ok_or_else(Refusal::incomplete)?;
                find(name, env)?;
                route.dev = Some((*name).to_owned());
            }
            "metric" | "priority" | "preference" => {
                route.metric = number(next, "\"metric\" value is invalid\n")?
            }
            "scope" => route.scope_link = next == Some(&"link"),
            "table" if next.is_none_or(|table| !["main", "254"].contains(table)) => {
                return Err(later("a route in another table than main", at));
            }
            "proto" | "mtu" | "advmss" | "initcwnd" | "initrwnd" | "realm" | "tos" | "table" | "window"
            | "hoplimit" => {}
            "onlink" | "to" | "unicast" => continue,
            "nexthop" | "blackhole" | "unreachable" | "prohibit" | "encap" => {
                return Err(later(&format!("ip route … {word}"), at - 1));
            }
            text => {
                to = Some(destination(text, flags).ok_or_else(|| expected("prefix", text))?);
                continue;
            }
        }
        at += 1;
    }
    route.to = to.unwrap_or(route.to);
    if verb != RouteVerb::Delete && route.via.is_none() && route.dev.is_none() {
        return Err(Refusal::new(2, "RTNETLINK answers: No such device"));
    }
    Ok(IpCommand::Route { verb, route })
}
