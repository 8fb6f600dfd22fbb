//! `tc filter`: the command, and its table of kinds.

mod basic;
mod cgroup;
mod flow;
mod flower;
mod fw;
pub(super) mod kinds;
mod matchall;
mod route;
mod row;
mod u32;

pub(super) use flower::key_words;
pub(super) use row::{Given, ListedFilter, Read};

use super::build::later;
use super::command::{
    Notes, block, class_id, device, either, estimator_aside, find_device, found, one_of, parent_or,
};
use super::command_line::{Object, ShowWhat, TcCommand};
use super::help::help_of;
use super::protocols::parse_protocol;
use super::words::{Words, begins};
use crate::nearest;
use crate::number::{u16_in, u32_in};
use crate::{Env, Refusal};
use kinds::row;
use tidegate_packet::Handle;
use tidegate_policy::spec::{FILTERS, REFUSED_FILTERS, why_not};
use tidegate_policy::{Act, Action, FilterOp, Op, Verb};

/// The parent of `filter … ingress`.
pub(super) const INGRESS_FILTERS: Handle = Handle(0xffff_fff2);
/// The parent of `filter … egress`.
pub(super) const EGRESS_FILTERS: Handle = Handle(0xffff_fff3);

pub(super) fn filter(
    verb: Verb,
    words: &mut Words<'_>,
    env: &Env,
    notes: &mut Notes,
) -> Result<TcCommand, Refusal> {
    let mut op = FilterOp {
        verb,
        dev: String::new(),
        block: 0,
        parent: Handle::NONE,
        pref: 0,
        protocol: 0,
        chain: 0,
        handle: 0,
        kind: None,
        params: None,
        actions: Vec::new(),
    };
    let (mut handle, mut protocol, mut chain, mut estimates) = (None, None, None, None);
    while let Some(word) = words.take() {
        match word {
            "dev" => device(&mut op.dev, words)?,
            _ if begins(word, "block") => block(&mut op.block, words)?,
            "root" | "ingress" | "egress" => {
                if !op.parent.is_none() {
                    return Err(Refusal::new(255, format!("Error: \"{word}\" is duplicate parent ID"))
                        .at(words.last()));
                }
                op.parent = hook(word);
            }
            "parent" => parent_or(&mut op.parent, "Invalid parent ID", words)?,
            "handle" => {
                let text = words.need()?;
                if handle.is_some() {
                    return Err(Refusal::duplicate("handle", text).at(words.last()));
                }
                handle = Some((text, words.last()));
            }
            _ if begins(word, "preference") || begins(word, "priority") => {
                let text = words.need()?;
                if op.pref != 0 {
                    return Err(Refusal::duplicate("priority", text).at(words.last()));
                }
                op.pref = preference(text, words.last())?;
            }
            _ if begins(word, "protocol") => {
                let text = words.need()?;
                if protocol.is_some() {
                    return Err(Refusal::duplicate("protocol", text).at(words.last()));
                }
                protocol = Some(protocol_of(text, words.last())?);
            }
            _ if begins(word, "chain") => {
                let text = words.need()?;
                if chain.is_some() {
                    return Err(Refusal::duplicate("chain", text).at(words.last()));
                }
                chain = Some(chain_of(text, words.last())?);
            }
            _ if begins(word, "estimator") => {
                estimator_aside(words, notes, env.tc)?;
                estimates = Some(words.last());
            }
            _ if begins(word, "help") => return Ok(help_of(Some(Object::Filter))),
            kind => {
                op.kind = Some(kind.into());
                break;
            }
        }
    }
    let absent = |refusal: Refusal| match refusal.code {
        2 => refusal.then("We have an error talking to the kernel"),
        _ => refusal,
    };
    one_of(&op.dev, op.block, words)?;
    // A name that leads nowhere is found before the kind's words are read, a missing one by the kernel.
    if !op.dev.is_empty() {
        find_device(&op.dev, env).map_err(absent)?;
    }
    op.chain = chain.unwrap_or(0);
    // Only a command that may create fills in `all`.
    let creates = matches!(verb, Verb::Add | Verb::Replace);
    op.protocol = protocol.unwrap_or(if creates { FilterOp::ALL } else { 0 });
    match op.kind.clone() {
        Some(kind) => {
            let place = words.last();
            let unbuilt = why_not(REFUSED_FILTERS, &kind).filter(|_| creates && words.peek().is_none());
            if let Some(why) = unbuilt {
                return Err(later("filter", &kind, place).remedy(format!("Not built: {why}.")));
            }
            let read = options(&kind, place, (handle, op.protocol), words, env)?;
            (op.handle, op.params, op.actions) = (read.handle, read.params, read.actions);
            let averages =
                |action: &Action| matches!(&action.act, Act::Police(police) if police.average.is_some());
            if let Some(place) = estimates.filter(|_| op.actions.iter().any(averages)) {
                return Err(later("filter", "estimator … police avrate", place));
            }
        }
        None if handle.is_some() => {
            return Err(Refusal::new(255, "Must specify filter type when using \"handle\"")
                .remedy("Name the kind after it: handle 10 fw."));
        }
        None => {}
    }
    if op.block == 0 {
        find_device(&op.dev, env).map_err(absent)?;
    }
    Ok(TcCommand::Apply(Op::Filter(op)))
}

pub(super) fn show(words: &mut Words<'_>, env: &Env) -> Result<TcCommand, Refusal> {
    let mut what = ShowWhat::of(Object::Filter);
    while let Some(word) = words.take() {
        match word {
            "dev" => {
                let dev = words.need()?;
                if what.dev.is_some() {
                    return Err(Refusal::duplicate("dev", dev).at(words.last()));
                }
                either(word, what.block == 0, words)?;
                what.dev = Some(dev.into());
            }
            _ if begins(word, "block") => {
                block(&mut what.block, words)?;
                either("block", what.dev.is_none(), words)?;
            }
            "root" | "ingress" | "egress" => {
                if what.parent.is_some() {
                    return Err(Refusal::new(255, format!("Error: \"{word}\" is duplicate parent ID"))
                        .at(words.last()));
                }
                what.parent = Some(hook(word));
            }
            "parent" => {
                let text = words.need()?;
                if what.parent.is_some() {
                    return Err(Refusal::duplicate("parent", text).at(words.last()));
                }
                what.parent = Some(class_id(text, "invalid parent ID", words.last())?);
            }
            "help" => return Ok(help_of(Some(Object::Filter))),
            "chain" => {
                let text = words.need()?;
                what.chain = Some(chain_of(text, words.last())?);
            }
            _ if begins(word, "preference") || begins(word, "priority") => {
                let text = words.need()?;
                what.pref = Some(preference(text, words.last())?);
            }
            _ if begins(word, "protocol") => {
                let text = words.need()?;
                what.protocol = Some(protocol_of(text, words.last())?);
            }
            _ => return Err(unknown_in_show(word, words.last())),
        }
    }
    found(what, env)
}

/// A word that is none of a listing's, of filters or of chains.
pub(super) fn unknown_in_show(word: &str, place: usize) -> Refusal {
    Refusal::new(255, format!(" What is \"{word}\"? Try \"tc filter help\""))
        .at(place)
        .remedy("show takes dev DEVICE or block N, parent ID or root, pref N, protocol NAME, chain N.")
}

pub(super) fn hook(word: &str) -> Handle {
    match word {
        "root" => Handle::ROOT,
        "ingress" => INGRESS_FILTERS,
        _ => EGRESS_FILTERS,
    }
}

pub(super) fn preference(text: &str, place: usize) -> Result<u16, Refusal> {
    u16_in(text, 0).ok_or_else(|| {
        Refusal::wrong(text, "invalid priority value")
            .at(place)
            .remedy("A preference is a number from 0 to 65535.")
    })
}

pub(super) fn chain_of(text: &str, place: usize) -> Result<u32, Refusal> {
    u32_in(text, 0).ok_or_else(|| Refusal::wrong(text, "invalid chain index value").at(place))
}

pub(super) fn protocol_of(text: &str, place: usize) -> Result<u16, Refusal> {
    parse_protocol(text).ok_or_else(|| {
        Refusal::wrong(text, "invalid protocol")
            .at(place)
            .remedy("Protocols are ip, ipv6, arp, all, 802.1q, or a number.")
    })
}

/// Reads the handle in the kind's notation, and the words after the kind.
pub(super) fn options(
    kind: &str,
    place: usize,
    (handle, protocol): (Given<'_>, u16),
    words: &mut Words<'_>,
    env: &Env,
) -> Result<Read, Refusal> {
    if let Some(row) = row(kind) {
        return (row.parse)(handle, protocol, words, env);
    }
    match words.peek() {
        Some(option) => {
            if let Some(why) = why_not(REFUSED_FILTERS, kind) {
                return Err(later("filter", kind, place).remedy(format!("Not built: {why}.")));
            }
            let known: Vec<&str> = FILTERS.iter().map(|filter| filter.name).collect();
            let remedy = match nearest(kind, known.iter().copied()) {
                Some(name) => format!("There is no filter \"{kind}\"; did you mean {name}?"),
                None => format!("There is no filter \"{kind}\"; this version knows {}.", known.join(", ")),
            };
            Err(Refusal::new(
                1,
                format!("Unknown filter \"{kind}\", hence option \"{option}\" is unparsable"),
            )
            .at(place)
            .remedy(remedy))
        }
        None => {
            let number = handle.and_then(|(text, _)| u32_in(text, 0)).unwrap_or(0);
            Ok(Read { handle: number, ..Read::default() })
        }
    }
}
