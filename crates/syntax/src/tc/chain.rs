//! `tc chain …`: chains of filters by themselves.

use super::build::later;
use super::command::{block, device, either, find_device, one_of, parent};
use super::command_line::{ShowChains, ShowFlags, TcCommand};
use super::filter::{chain_of, hook, preference, protocol_of, unknown_in_show};
use super::show::{Entry, ended};
use super::words::{Words, begins};
use crate::json::{self, Json};
use crate::{Env, Refusal};
use tidegate_packet::Handle;
use tidegate_policy::{ChainOp, Op};

#[derive(Clone, Copy, PartialEq)]
enum ChainVerb {
    Do(bool),
    Get,
    List,
    Help,
}

/// In tc's order: an abbreviation goes to the first that fits.
const VERBS: [(&str, ChainVerb); 7] = [
    ("add", ChainVerb::Do(true)),
    ("delete", ChainVerb::Do(false)),
    ("get", ChainVerb::Get),
    ("list", ChainVerb::List),
    ("show", ChainVerb::List),
    ("lst", ChainVerb::List),
    ("help", ChainVerb::Help),
];

pub(super) fn parse(words: &mut Words<'_>, env: &Env) -> Result<TcCommand, Refusal> {
    let verb = words.take().unwrap_or("list");
    let selected = match verb {
        "ls" => Some(ChainVerb::List),
        _ => VERBS.iter().find(|(name, _)| begins(verb, name)).map(|(_, selected)| *selected),
    };
    let selected = selected.ok_or_else(|| {
        Refusal::new(255, format!("Command \"{verb}\" is unknown, try \"tc chain help\"."))
            .at(words.last())
            .remedy("tc chain knows add, delete, get and show.")
    })?;
    if selected == ChainVerb::Help {
        return Ok(help());
    }
    let (mut dev, mut shared, mut at, mut chain) = (String::new(), 0, Handle::NONE, None);
    while let Some(word) = words.take() {
        match word {
            "dev" => {
                device(&mut dev, words)?;
                either_of(selected, word, shared == 0, words)?;
            }
            _ if begins(word, "block") => {
                block(&mut shared, words)?;
                either_of(selected, "block", dev.is_empty(), words)?;
            }
            "root" | "ingress" | "egress" => at = hook(word),
            "parent" => parent(&mut at, words)?,
            "chain" => {
                let text = words.need()?;
                if chain.is_some() {
                    return Err(Refusal::duplicate("chain", text).at(words.last()));
                }
                chain = Some(chain_of(text, words.last())?);
            }
            "help" => return Ok(help()),
            _ if begins(word, "protocol") => drop(protocol_of(words.need()?, words.last())?),
            _ if selected == ChainVerb::List && (begins(word, "preference") || begins(word, "priority")) => {
                preference(words.need()?, words.last())?;
            }
            _ if selected == ChainVerb::List => return Err(unknown_in_show(word, words.last())),
            // A kind and its keys: what filters of the chain must look like.
            kind if selected == ChainVerb::Do(true) && words.peek().is_some() => {
                return Err(later("chain template", kind, words.last()));
            }
            _ => {}
        }
    }
    one_of(&dev, shared, words)?;
    if selected == ChainVerb::List {
        if !dev.is_empty() {
            find_device(&dev, env)?;
        }
        return Ok(TcCommand::ShowChains(ShowChains { dev, block: shared, parent: at, only: None, chain }));
    }
    if selected == ChainVerb::Get && at.is_none() {
        return Err(Refusal::new(255, "Must specify filter parent").at(words.last()).remedy(FORM));
    }
    if selected == ChainVerb::Get && dev.is_empty() && shared == 0 {
        let line = "Must specify netdevice \"dev\" or block index \"block\"";
        return Err(Refusal::new(255, line).at(words.last()).remedy(FORM));
    }
    if shared == 0 {
        find_device(&dev, env).map_err(|refusal| match refusal.code {
            2 => refusal.then("We have an error talking to the kernel"),
            _ => refusal,
        })?;
    }
    let number = chain.unwrap_or(0);
    Ok(match selected {
        ChainVerb::Do(add) => {
            TcCommand::Apply(Op::Chain(ChainOp { add, dev, block: shared, parent: at, chain: number }))
        }
        _ => TcCommand::ShowChains(ShowChains {
            dev,
            block: shared,
            parent: at,
            only: Some(number),
            chain: None,
        }),
    })
}

const FORM: &str =
    "Name all of it: tc chain get dev NAME ingress chain 3, or tc chain get block 22 ingress chain 3.";

/// A listing refuses the second word at once, an operation later ([`one_of`]).
fn either_of(selected: ChainVerb, word: &str, free: bool, words: &Words<'_>) -> Result<(), Refusal> {
    either(word, free || selected != ChainVerb::List, words)
}

fn help() -> TcCommand {
    TcCommand::Help(
        "tc chain add|delete|get dev DEVICE parent ID|root|ingress|egress [chain N]\n\
         tc chain show dev DEVICE [parent ID|root|ingress|egress]\n\
         block N takes the place of dev DEVICE where devices share a block\n"
            .into(),
    )
}

/// The listing of chains, which are those of the qdisc or class `holder`, or of a shared block.
pub fn show_chains(
    chains: &[u32],
    holder: Handle,
    block: u32,
    what: &ShowChains,
    flags: &ShowFlags,
) -> String {
    // A listing leaves out the fields that were given, a reply about one chain does not.
    let named = what.only.is_none() && what.parent == holder;
    let wanted = chains.iter().filter(|chain| what.chain.is_none_or(|only| only == **chain));
    let entries: Vec<Entry> = wanted
        .map(|chain| {
            let mut entry = Entry::new();
            entry.say("chain ");
            if block != 0 {
                if what.block == 0 {
                    entry.number("block", block, &format!("block {block} "));
                }
            } else if !named {
                entry.say(&format!("parent {holder} "));
                entry.member("parent", Json::text(holder.to_string()));
            }
            if what.chain.is_none() {
                entry.number("chain", *chain, &format!("chain {chain} "));
            }
            entry.say("\n");
            entry
        })
        .collect();
    if flags.json {
        let items: Vec<Json> = entries.into_iter().map(|entry| Json::Object(entry.members)).collect();
        return json::list(&items, flags.pretty);
    }
    ended(entries.into_iter().map(|entry| entry.text).collect(), flags)
}
