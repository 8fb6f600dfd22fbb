//! `tc filter get …`: one filter.

use super::command::{block, device, find_device, one_of, parent_or};
use super::command_line::{GetFilter, Object, TcCommand};
use super::filter::{self, chain_of, hook, preference, protocol_of};
use super::help::help_of;
use super::words::{Words, begins};
use crate::{Env, Refusal};
use tidegate_packet::Handle;
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::{Errno, TcError};

pub(super) fn parse(words: &mut Words<'_>, env: &Env) -> Result<TcCommand, Refusal> {
    let mut get = GetFilter {
        dev: String::new(),
        block: 0,
        parent: Handle::NONE,
        protocol: 0,
        pref: 0,
        chain: 0,
        kind: String::new(),
        handle: 0,
    };
    let (mut handle, mut protocol) = (None, None);
    while let Some(word) = words.take() {
        match word {
            "dev" => device(&mut get.dev, words)?,
            _ if begins(word, "block") => block(&mut get.block, words)?,
            "root" | "ingress" | "egress" => {
                if !get.parent.is_none() {
                    return Err(Refusal::new(255, format!("Error: \"{word}\" is duplicate parent ID"))
                        .at(words.last()));
                }
                get.parent = hook(word);
            }
            "parent" => parent_or(&mut get.parent, "Invalid parent ID", words)?,
            "handle" => handle = Some((words.need()?, words.last())),
            _ if begins(word, "preference") || begins(word, "priority") => {
                get.pref = preference(words.need()?, words.last())?;
            }
            _ if begins(word, "protocol") => protocol = Some(protocol_of(words.need()?, words.last())?),
            _ if begins(word, "chain") => get.chain = chain_of(words.need()?, words.last())?,
            _ if begins(word, "help") => return Ok(help_of(Some(Object::Filter))),
            kind => {
                get.kind = kind.into();
                break;
            }
        }
    }
    one_of(&get.dev, get.block, words)?;
    let place = words.last();
    let missing = |line: &str| Err(Refusal::new(255, line).at(place).remedy(FORM));
    match protocol {
        Some(number) => get.protocol = number,
        None => return missing("Must specify filter protocol"),
    }
    if get.pref == 0 {
        return missing("Must specify filter priority");
    }
    if get.parent.is_none() {
        return missing("Must specify filter parent");
    }
    if get.kind.is_empty() {
        return missing("Must specify filter type");
    }
    if handle.is_none() {
        return missing("Must specify filter \"handle\"");
    }
    if get.dev.is_empty() && get.block == 0 {
        return missing("Must specify netdevice \"dev\" or block index \"block\"");
    }
    if get.block == 0 {
        find_device(&get.dev, env)?;
    }
    get.handle = filter::options(&get.kind.clone(), place, (handle, get.protocol), words, env)?.handle;
    Ok(TcCommand::GetFilter(get))
}

const FORM: &str = "Name all of it: tc filter get dev NAME ingress protocol ip pref 5 handle 1 flower.";

/// The filter that is requested, among those of its parent.
///
/// # Errors
/// As the kernel refuses: chain, preference, kind or handle are not there.
pub fn find_filter(mut dumps: Vec<FilterDump>, get: &GetFilter) -> Result<FilterDump, TcError> {
    dumps.retain(|dump| dump.chain == get.chain);
    if dumps.is_empty() {
        return Err(TcError::new(Errno::Inval, "Cannot find specified filter chain"));
    }
    dumps.retain(|dump| dump.pref == get.pref && dump.protocol == get.protocol);
    match dumps.first() {
        None => return Err(TcError::new(Errno::NoEnt, "Filter with specified priority/protocol not found")),
        Some(dump) if dump.kind != get.kind => {
            return Err(TcError::new(Errno::Inval, "Specified filter kind does not match existing one"));
        }
        Some(_) => {}
    }
    let found = dumps.into_iter().find(|dump| match &dump.entry {
        FilterEntry::Heading => false,
        // The kernel finds none by its handle.
        _ if dump.kind == "cgroup" => false,
        FilterEntry::Filter { handle, .. } => *handle == get.handle,
        FilterEntry::U32Table { table, .. } => table << 20 == get.handle,
    });
    let found = found.ok_or(TcError::new(Errno::NoEnt, "Specified filter handle not found"))?;
    let parent = if get.parent.is_none() { found.parent } else { get.parent };
    Ok(FilterDump { parent, ..found })
}
