//! `ip address`.

use super::command::{IpCommand, IpFlags};
use super::link;
use super::words::{exists, find, help, is_show, later, prefix};
use crate::{Env, Refusal};

pub(super) fn address(words: &[&str], flags: &mut IpFlags, env: &Env) -> Result<IpCommand, Refusal> {
    let (verb, rest) = words.split_first().map_or(("show", words), |(verb, rest)| (*verb, rest));
    let begins = |name: &str| !verb.is_empty() && name.starts_with(verb);
    match verb {
        "help" => Ok(help()),
        _ if begins("add") => change(rest, true, false, env),
        _ if is_show(verb) => link::which(rest, env).map(IpCommand::ShowAddresses),
        _ if begins("change") || begins("replace") => change(rest, true, true, env),
        _ if begins("delete") => change(rest, false, false, env),
        _ if begins("flush") => {
            let which = link::which(rest, env)?;
            let dev = which.dev.ok_or_else(|| Refusal::new(255, "Flush requires arguments."))?;
            let _ = flags;
            exists(&dev, env)?;
            Ok(IpCommand::FlushAddresses(dev))
        }
        _ => Err(Refusal::new(255, format!("Command \"{verb}\" is unknown, try \"ip address help\".")).at(1)),
    }
}

fn change(words: &[&str], add: bool, replace: bool, env: &Env) -> Result<IpCommand, Refusal> {
    let (mut dev, mut found) = (None, None);
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        match *word {
            "dev" => {
                dev = Some(*words.get(at).ok_or_else(Refusal::incomplete)?);
                at += 1;
            }
            "broadcast" | "brd" | "anycast" | "label" | "scope" | "metric" | "valid_lft"
            | "preferred_lft" => at += 1,
            "noprefixroute" | "nodad" | "home" | "mngtmpaddr" | "autojoin" => {}
            "peer" | "remote" => return Err(later("an address with a peer", at - 1)),
            "local" => {}
            text => {
                let wrong = || {
                    Refusal::new(1, format!("Error: any valid prefix is expected rather than \"{text}\"."))
                };
                found = Some(prefix(text).ok_or_else(wrong)?);
            }
        }
    }
    let dev =
        dev.ok_or_else(|| Refusal::new(255, "Not enough information: \"dev\" argument is required."))?;
    find(dev, env)?;
    let (address, prefix) = found.ok_or_else(|| Refusal::new(2, "RTNETLINK answers: Invalid argument"))?;
    Ok(IpCommand::Address { add, replace, dev: dev.into(), address, prefix })
}
