//! Words that every object of ip takes, and what is refused.

use super::command::IpCommand;
use crate::number::u32_in;
use crate::tc::dotted;
use crate::{Env, Refusal};
use std::net::{IpAddr, Ipv4Addr};

pub(super) fn help() -> IpCommand {
    IpCommand::Help(
        "ip [-s] [-d] [-o] [-br] [-j] [-4|-6] OBJECT VERB …   or   ip [-force] -batch FILE\n\
         objects played here: link address route tunnel tuntap; verbs: add delete set show, route get\n"
            .into(),
    )
}

pub(super) fn is_show(verb: &str) -> bool {
    !verb.is_empty() && ["show", "list", "lst", "ls"].iter().any(|name| name.starts_with(verb))
}

/// What ip knows and this version does not.
pub(super) fn later(what: &str, place: usize) -> Refusal {
    Refusal::new(1, format!("tidegate: {what} is not supported in this version"))
        .at(place)
        .remedy("The command was not carried out; whether ip accepts it was not looked at.")
}

/// Refuses a device that is not there, as commands that change do.
pub(super) fn find(name: &str, env: &Env) -> Result<(), Refusal> {
    if env.has(name) { Ok(()) } else { Err(Refusal::new(1, format!("Cannot find device \"{name}\""))) }
}

/// Refuses a device that is not there, as commands that show do.
pub(super) fn exists(name: &str, env: &Env) -> Result<(), Refusal> {
    if env.has(name) { Ok(()) } else { Err(Refusal::new(1, format!("Device \"{name}\" does not exist."))) }
}

/// A number that fits into 31 bits, as ip reads its own.
pub(super) fn number(text: Option<&&str>, why: &str) -> Result<u32, Refusal> {
    let text = text.ok_or_else(Refusal::incomplete)?;
    u32_in(text, 0).filter(|number| i32::try_from(*number).is_ok()).ok_or_else(|| Refusal::wrong(text, why))
}

/// An address; of an IPv4 address the end may be left out (`10.1` is 10.1.0.0).
pub(super) fn ip_address(text: &str) -> Option<IpAddr> {
    text.parse().ok().or_else(|| dotted(text).map(|address| Ipv4Addr::from(address).into()))
}

/// `10.0.0.0/8`, `10/8`, `fe80::1`; without a slash the whole address counts.
pub(super) fn prefix(text: &str) -> Option<(IpAddr, u8)> {
    let (address, bits) = match text.split_once('/') {
        Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
        None => (text, None),
    };
    let address = ip_address(address)?;
    let whole = if address.is_ipv4() { 32 } else { 128 };
    let bits = bits.unwrap_or(whole);
    (bits <= whole).then_some((address, bits))
}
