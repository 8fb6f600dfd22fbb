//! `tc chain …`: chains of filters by themselves.

use super::build::later;
use super::command::{device, find_device, parent};
use super::filter::{chain_of, hook};
use super::show::{Entry, ended};
use super::words::{Words, begins};
use super::{ShowFlags, TcCommand};
use crate::json::{self, Json};
use crate::{Env, Refusal};
use tidegate_packet::Handle;
use tidegate_policy::{ChainOp, Op};

/// Which chains are shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShowChains {
    /// Of this device; empty: none are listed.
    pub dev: String,
    /// Of this qdisc or class; [`Handle::NONE`]: of the root qdisc.
    pub parent: Handle,
    /// This one alone (`get`), which must be there.
    pub only: Option<u32>,
}

#[derive(Clone, Copy, PartialEq)]
enum Asked {
    Do(bool),
    Get,
    List,
    Help,
}

/// In tc's order: an abbreviation goes to the first that fits.
const VERBS: [(&str, Asked); 7] = [
    ("add", Asked::Do(true)),
    ("delete", Asked::Do(false)),
    ("get", Asked::Get),
    ("list", Asked::List),
    ("show", Asked::List),
    ("lst", Asked::List),
    ("help", Asked::Help),
];

pub(super) fn parse(words: &mut Words<'_>, env: &Env) -> Result<TcCommand, Refusal> {
    let verb = words.take().unwrap_or("list");
    let asked = match verb {
        "ls" => Some(Asked::List),
        _ => VERBS.iter().find(|(name, _)| begins(verb, name)).map(|(_, asked)| *asked),
    };
    let asked = asked.ok_or_else(|| {
        Refusal::new(255, format!("Command \"{verb}\" is unknown, try \"tc chain help\"."))
            .at(words.last())
            .remedy("tc chain knows add, delete, get and show.")
    })?;
    if asked == Asked::Help {
        return Ok(help());
    }
    let (mut dev, mut at, mut chain) = (String::new(), Handle::NONE, None);
    while let Some(word) = words.take() {
        match word {
            "dev" => device(&mut dev, words)?,
            "block" => return Err(later("option", word, words.last()).remedy(SHARED)),
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
            _ if begins(word, "protocol") => drop(words.need()?),
            // A kind and its keys: what filters of the chain must look like.
            kind if asked == Asked::Do(true) && words.peek().is_some() => {
                return Err(later("chain template", kind, words.last()));
            }
            _ => {}
        }
    }
    if asked == Asked::List {
        if !dev.is_empty() {
            find_device(&dev, env)?;
        }
        return Ok(TcCommand::ShowChains(ShowChains { dev, parent: at, only: None }));
    }
    find_device(&dev, env).map_err(|refusal| match refusal.code {
        2 => refusal.then("We have an error talking to the kernel"),
        _ => refusal,
    })?;
    let chain = chain.unwrap_or(0);
    Ok(match asked {
        Asked::Do(add) => TcCommand::Apply(Op::Chain(ChainOp { add, dev, parent: at, chain })),
        _ => TcCommand::ShowChains(ShowChains { dev, parent: at, only: Some(chain) }),
    })
}

/// Why blocks are refused.
pub(super) const SHARED: &str =
    "Blocks that devices share are not built: give each device the filters (tc filter add dev NAME ingress …).";

fn help() -> TcCommand {
    TcCommand::Help(
        "tc chain add|delete|get dev DEVICE parent ID|root|ingress|egress [chain N]\n\
         tc chain show dev DEVICE [parent ID|root|ingress|egress]\n"
            .into(),
    )
}

/// The listing of chains, which are those of the qdisc or class `holder`.
pub fn show_chains(chains: &[u32], holder: Handle, what: &ShowChains, flags: &ShowFlags) -> String {
    // A listing leaves out what was asked for, an answer about one chain does not.
    let named = what.only.is_none() && what.parent == holder;
    let entries: Vec<Entry> = chains
        .iter()
        .map(|chain| {
            let mut entry = Entry::new();
            entry.say("chain ");
            if !named {
                entry.say(&format!("parent {holder} "));
                entry.member("parent", Json::text(holder.to_string()));
            }
            entry.number("chain", *chain, &format!("chain {chain} "));
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
