//! nft, answered: files and single commands, each text whole or not at all.

use crate::batch;
use crate::call::{Call, Reply};
use crate::shim::{ToolShim, refused};
use tidegate_classify::netfilter::{NetfilterChain, NetfilterTable};
use tidegate_gateway::GatewayContext;
use tidegate_policy::netfilter::{Condition, Family, NfCommand, NfOp, RulePart};
use tidegate_policy::{Errno, Op, TcError};
use tidegate_syntax::Refusal;
use tidegate_syntax::nft::{self, Ask, ChainListing, Command, Listing, Scope, Span, Style, TableListing};

/// What the words before a command ask.
#[derive(Default)]
struct Options {
    file: Option<String>,
    style: Style,
    check: bool,
    echo: bool,
    /// The command's words.
    words: Vec<String>,
}

/// What a command did.
struct Done {
    ops: Vec<NfOp>,
    /// The command as it would be written again, where the operations do not tell.
    words: Option<String>,
    /// The place of the command.
    whole: Span,
    handle: Option<u64>,
}

impl Done {
    fn words(&self) -> String {
        self.words.clone().or_else(|| nft::print_ops(&self.ops)).unwrap_or_default()
    }

    /// Does it belong to the command of `before`, as a part of its rule or what that has counted?
    fn continues(&self, before: &Done) -> bool {
        let belongs = |op: &NfOp| match &op.command {
            NfCommand::Counters(..) => true,
            command => command.rule().is_some_and(|rule| rule.part != RulePart::Whole),
        };
        self.whole == before.whole && self.ops.iter().all(belongs)
    }
}

/// The call of nft.
pub(super) fn answer(shim: &mut ToolShim<'_>, call: &Call) -> Reply {
    let options = match options(&call.args) {
        Ok(options) => options,
        Err(reply) => return reply,
    };
    let (text, file) = match &options.file {
        Some(name) => {
            let name = if name == "-" { "/dev/stdin" } else { name };
            (
                String::from_utf8_lossy(call.stdin.as_deref().unwrap_or_default()).into_owned(),
                Some(name.to_owned()),
            )
        }
        None if options.words.is_empty() => return Reply::error(1, "nft: no command specified\n"),
        None => (options.words.join(" "), None),
    };
    let commands = match nft::parse(&text, file.as_deref()) {
        Ok(commands) => commands,
        Err(refusal) => return refused(shim, "nft", refusal),
    };
    let before = shim.machine.gateway.checkpoint();
    let (mut done, mut listed) = (Vec::<Done>::new(), String::new());
    for command in &commands {
        if let Some(why) = batch::beyond(shim, listed.len()) {
            shim.machine.gateway.revert(before);
            return Reply::error(1, format!("tidegate: {why}; nothing of the call was carried out\n"));
        }
        match carry_out(shim, command, options.style) {
            Ok(Outcome::Done(one)) => match done.last_mut() {
                Some(before) if one.continues(before) => before.ops.extend(one.ops),
                _ => done.push(one),
            },
            Ok(Outcome::Listed(text)) => listed.push_str(&text),
            Err((span, what)) => {
                shim.machine.gateway.revert(before);
                return refused(
                    shim,
                    "nft",
                    explained(command, nft::complaint(&text, file.as_deref(), span, &what)),
                );
            }
        }
    }
    if options.check {
        shim.machine.gateway.revert(before);
        return Reply::ok();
    }
    if options.echo {
        listed.push_str(&done.iter().map(|one| echoed(one, options.style)).collect::<String>());
    }
    note(shim, done, file.is_some());
    Reply::text(listed)
}

fn options(args: &[String]) -> Result<Options, Reply> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let Some(flag) = arg.strip_prefix('-').filter(|rest| !rest.is_empty()) else {
            options.words.push(arg.clone());
            continue;
        };
        if !options.words.is_empty() {
            // `priority -150` is a word of the command.
            options.words.push(arg.clone());
            continue;
        }
        let long = flag.strip_prefix('-');
        let letters = long.and_then(short).map_or_else(|| flag.to_owned(), String::from);
        for letter in letters.chars() {
            match letter {
                'f' => options.file = Some(args.next().cloned().unwrap_or_default()),
                'a' => options.style.handles = true,
                's' => options.style.stateless = true,
                'c' => options.check = true,
                'e' => options.echo = true,
                'n' | 'N' | 'S' | 'y' | 'p' | 'u' | 'T' | 't' | 'o' => {}
                'v' | 'V' => return Err(Reply::text(format!("{}\n", nft::VERSION))),
                'h' => {
                    let usage = "Usage: nft [-a] [-c] [-e] [-n] [-s] [-f FILE] [COMMAND]\n\
                                 tidegate plays tables, chains and rules; `tidegate policy help` knows a \
                                 shorter way.\n";
                    return Err(Reply::text(usage));
                }
                'j' => {
                    let why =
                        "nft: tidegate does not write or read nft's JSON in this version; leave -j out\n";
                    return Err(Reply::error(1, why));
                }
                _ => return Err(Reply::error(1, format!("nft: unrecognized option '{arg}'\n"))),
            }
        }
    }
    Ok(options)
}

/// The letter of a long option.
fn short(long: &str) -> Option<&'static str> {
    const LONG: [(&str, &str); 17] = [
        ("file", "f"),
        ("handle", "a"),
        ("stateless", "s"),
        ("check", "c"),
        ("echo", "e"),
        ("numeric", "n"),
        ("reversedns", "N"),
        ("service", "S"),
        ("numeric-priority", "y"),
        ("numeric-protocol", "p"),
        ("guid", "u"),
        ("numeric-time", "T"),
        ("terse", "t"),
        ("optimize", "o"),
        ("version", "v"),
        ("help", "h"),
        ("json", "j"),
    ];
    LONG.iter().find(|(name, _)| *name == long).map(|(_, letter)| *letter)
}

enum Outcome {
    Done(Done),
    Listed(String),
}

/// Where a refusal is marked, and nft's words for it.
type Refused = (Span, String);

fn carry_out(shim: &mut ToolShim<'_>, command: &Command, style: Style) -> Result<Outcome, Refused> {
    match &command.ask {
        Ask::Op(op) => apply(shim, command, op.clone()).map(Outcome::Done),
        Ask::Create(op) if is_there(shim, op) => {
            let span = if matches!(op.command, NfCommand::NewTable) { command.table } else { command.chain };
            Err((span, could_not(&TcError::bare(Errno::Exist))))
        }
        Ask::Create(op) => apply(shim, command, op.clone()).map(Outcome::Done),
        Ask::AtIndex { op, index } => {
            let mut op = op.clone();
            if let NfCommand::Beside { chain, handle, .. } = &mut op.command {
                let chain = chain_of(shim, op.family, &op.table, chain);
                // The parts of a rule are one rule.
                let rules = chain.into_iter().flat_map(|chain| &chain.rules);
                let found = rules.filter(|one| !one.rule.part.is_later()).nth(*index);
                let missing = (command.chain, could_not(&TcError::bare(Errno::NoEnt)));
                *handle = found.map(|rule| rule.handle).ok_or(missing)?;
            }
            apply(shim, command, op).map(Outcome::Done)
        }
        Ask::FlushRuleset(family) => {
            let there = shim.machine.gateway.all_tables().iter();
            let ops: Vec<NfOp> = there
                .filter(|table| family.is_none_or(|family| table.family() == family))
                .map(|table| NfOp {
                    family: table.family(),
                    table: table.name().to_owned(),
                    command: NfCommand::DeleteTable,
                })
                .collect();
            if let Err((_, error)) = shim.machine.gateway.apply_netfilter(&ops) {
                return Err((command.whole, could_not(&error)));
            }
            let family = family.map_or(String::new(), |family| format!(" {}", family.name()));
            let words = Some(format!("flush ruleset{family}"));
            Ok(Outcome::Done(Done { ops, words, whole: command.whole, handle: None }))
        }
        Ask::List(listing) => list(shim, command, listing, style).map(Outcome::Listed),
        Ask::Nothing => Ok(Outcome::Listed(String::new())),
    }
}

fn apply(shim: &mut ToolShim<'_>, command: &Command, op: NfOp) -> Result<Done, Refused> {
    if let Some(rule) = op.command.rule() {
        for what in rule.matches.iter().map(|m| &m.what) {
            grow(shim, what);
        }
    }
    let world = GatewayContext { now: shim.machine.now, pool: shim.pool, random: shim.draws };
    if let Err(error) = shim.machine.gateway.apply(world, &Op::Netfilter(op.clone())) {
        return Err(blamed(shim, command, &op, &error));
    }
    let handle = match &op.command {
        NfCommand::Append(chain, _) => {
            let rules = chain_of(shim, op.family, &op.table, chain).map(|chain| &chain.rules);
            rules.and_then(|rules| rules.last()).map(|rule| rule.handle)
        }
        _ => None,
    };
    Ok(Done { ops: vec![op], words: None, whole: command.whole, handle })
}

/// Devices that rules name come into being where that is so.
fn grow(shim: &mut ToolShim<'_>, what: &Condition) {
    match what {
        Condition::In(name) | Condition::Out(name) if !name.ends_with('+') => shim.machine.grow_one(name),
        Condition::Any(several) => several.iter().for_each(|one| grow(shim, one)),
        _ => {}
    }
}

fn could_not(error: &TcError) -> String {
    format!("Could not process rule: {}", error.errno.text())
}

/// What of a command the machine refused.
fn blamed(shim: &ToolShim<'_>, command: &Command, op: &NfOp, error: &TcError) -> Refused {
    let what = could_not(error);
    let table = table_of(shim, op.family, &op.table);
    if table.is_none() {
        let looked_up = matches!(op.command, NfCommand::NewChain(_) | NfCommand::NewBase(..));
        return (command.table, if looked_up { error.errno.text().to_owned() } else { what });
    }
    let leads = op.command.rule().is_some_and(|_| command.leads_to.is_some());
    let missing =
        chain_name(&op.command).is_some_and(|name| chain_of(shim, op.family, &op.table, name).is_none());
    match (&op.command, missing) {
        (_, true) | (NfCommand::DeleteChain(_) | NfCommand::DeleteHandle(..) | NfCommand::NewBase(..), _) => {
            (command.chain, what)
        }
        // How deep chains lead is found out when all rules are there.
        _ if leads && error.errno != Errno::Links => (command.leads_to.unwrap_or(command.whole), what),
        _ => (command.whole, what),
    }
}

fn chain_name(command: &NfCommand) -> Option<&str> {
    match command {
        NfCommand::Append(chain, _)
        | NfCommand::Insert(chain, ..)
        | NfCommand::Beside { chain, .. }
        | NfCommand::ReplaceHandle(chain, ..)
        | NfCommand::DeleteHandle(chain, _)
        | NfCommand::Flush(Some(chain))
        | NfCommand::DeleteChain(Some(chain)) => Some(chain),
        _ => None,
    }
}

/// What is missing, and what makes it.
fn explained(command: &Command, refusal: Refusal) -> Refusal {
    let (Ask::Op(op) | Ask::Create(op) | Ask::AtIndex { op, .. }) = &command.ask else { return refusal };
    let (family, table) = (op.family.name(), &op.table);
    let text = refusal.stderr.clone();
    let remedy = if text.contains("No such file") {
        format!(
            "Look what there is with `nft -a list ruleset`; make a table with `nft add table {family} \
            {table}`, a chain in it with `nft add chain {family} {table} NAME`. A table without family is \
            of ip."
        )
    } else if text.contains("File exists") {
        "It is there already; write add, which is content with that, or delete it first.".to_owned()
    } else if text.contains("busy") {
        "A rule leads to it; delete that first.".to_owned()
    } else {
        return refusal;
    };
    refusal.remedy(remedy)
}

fn table_of<'f>(shim: &'f ToolShim<'_>, family: Family, name: &str) -> Option<&'f NetfilterTable> {
    shim.machine.gateway.all_tables().iter().find(|table| table.family() == family && table.name() == name)
}

fn chain_of<'f>(
    shim: &'f ToolShim<'_>,
    family: Family,
    table: &str,
    name: &str,
) -> Option<&'f NetfilterChain> {
    table_of(shim, family, table)?.chains().iter().find(|chain| chain.name == name)
}

/// Is what an operation makes there already?
fn is_there(shim: &ToolShim<'_>, op: &NfOp) -> bool {
    match &op.command {
        NfCommand::NewChain(name) | NfCommand::NewBase(name, ..) => {
            chain_of(shim, op.family, &op.table, name).is_some()
        }
        _ => table_of(shim, op.family, &op.table).is_some(),
    }
}

fn list(shim: &ToolShim<'_>, command: &Command, listing: &Listing, style: Style) -> Result<String, Refused> {
    let missing = |span| Err((span, Errno::NoEnt.text().to_owned()));
    let all = shown(shim.machine.gateway.all_tables());
    let of_family = |table: &&TableListing| listing.family.is_none_or(|family| table.family == family);
    let tables: Vec<TableListing> = all.iter().filter(of_family).cloned().collect();
    let print =
        |tables: &[TableListing], style| tables.iter().map(|table| nft::print_table(table, style)).collect();
    Ok(match &listing.scope {
        Scope::Ruleset => print(&tables, style),
        Scope::Tables => nft::print_tables(&tables),
        Scope::Chains => print(&tables, Style { bare: true, ..style }),
        Scope::Table(name) => match tables.iter().find(|table| table.name == *name) {
            Some(table) => nft::print_table(table, style),
            None => return missing(command.table),
        },
        Scope::Chain(name, chain) => {
            let Some(table) = tables.iter().find(|table| table.name == *name) else {
                return missing(command.table);
            };
            let chains: Vec<ChainListing> =
                table.chains.iter().filter(|one| one.name == *chain).cloned().collect();
            if chains.is_empty() {
                return missing(command.chain);
            }
            nft::print_table(&TableListing { chains, ..table.clone() }, style)
        }
    })
}

/// Tables as nft sees them: of iptables' own, what was used.
fn shown(tables: &[NetfilterTable]) -> Vec<TableListing> {
    let chain = |chain: &NetfilterChain| ChainListing {
        name: chain.name.clone(),
        handle: chain.handle,
        base: chain.base.map(|base| (base, chain.policy.unwrap_or(true))),
        rules: chain
            .rules
            .iter()
            .map(|one| (one.rule.clone(), one.handle, (one.packets, one.bytes)))
            .collect(),
    };
    let table = |(at, table): (usize, &NetfilterTable)| {
        let used = |chain: &&NetfilterChain| {
            table.is_free() || !chain.rules.is_empty() || chain.policy != Some(true)
        };
        let chains: Vec<ChainListing> = table.chains().iter().filter(used).map(chain).collect();
        (table.is_free() || !chains.is_empty()).then(|| TableListing {
            family: table.family(),
            name: table.name().to_owned(),
            of_iptables: !table.is_free(),
            handle: at as u64 + 1,
            chains,
        })
    };
    tables.iter().enumerate().filter_map(table).collect()
}

/// A command as `-e` prints it.
fn echoed(done: &Done, style: Style) -> String {
    let words = done.words();
    match done.handle.filter(|_| style.handles) {
        Some(handle) => format!("{words} # handle {handle}\n"),
        None => format!("{words}\n"),
    }
}

/// Notes what was done, command by command; those of a file with their lines.
fn note(shim: &mut ToolShim<'_>, done: Vec<Done>, of_file: bool) {
    for one in done {
        let text = one.words();
        shim.machine.log.extend(one.ops.into_iter().map(Op::Netfilter));
        if text.is_empty() {
            // Operations without a command belong to the one before.
            let ops = shim.machine.log.len();
            if let Some(last) = shim.machine.carried.last_mut() {
                last.ops = ops;
            }
            continue;
        }
        shim.line = of_file.then_some(one.whole.line);
        shim.did("nft", &words(&text));
    }
    shim.line = None;
}

/// The words of a command; quoted text stays together, with its quotes, because nft needs them.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut word, mut quoted) = (String::new(), false);
    for letter in text.chars() {
        quoted ^= letter == '"';
        if letter.is_whitespace() && !quoted {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        } else {
            word.push(letter);
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}
