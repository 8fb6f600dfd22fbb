//! nft's commands and the blocks in which tables are written.

use super::cursor::Cursor;
use super::lex::{Kind, Span, Token, tokens};
use super::names::{self, PRIORITIES};
use super::rule::{self, Written};
use super::wrong::{Wrong, refuse};
use crate::Refusal;
use std::collections::BTreeMap;
use tidegate_policy::netfilter::{Base, ChainType, Family, Hook, NetfilterRule, NfCommand, NfOp};

/// Tokens of a text at most, variables filled in.
const MAX_TOKENS: usize = 2_000_000;

/// A command, and the places of its parts.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// What the command does.
    pub ask: Ask,
    /// All of it.
    pub whole: Span,
    /// The table's name in it.
    pub table: Span,
    /// The chain's name, or what else is looked up in the table: a handle.
    pub chain: Span,
    /// The chain that its rule leads to.
    pub leads_to: Option<Span>,
}

/// What a command does.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    /// An operation.
    Op(NfOp),
    /// An operation that makes something which must not be there yet.
    Create(NfOp),
    /// `add rule … index N`, `insert rule … index N`: `behind` that rule, counted from 0, or before it.
    AtIndex {
        /// Family, table and chain, and the rule; its handle is to be filled in.
        op: NfOp,
        /// Which rule.
        index: usize,
    },
    /// `flush ruleset`: all tables, or those of a family.
    FlushRuleset(Option<Family>),
    /// `list …`.
    List(Listing),
    /// `reset counters` and the like: there are no counters to set to 0.
    Nothing,
}

/// What is to be listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listing {
    /// What is listed.
    pub scope: Scope,
    /// Only of this family.
    pub family: Option<Family>,
}

/// How much is listed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// `list ruleset`.
    Ruleset,
    /// `list tables`: names only.
    Tables,
    /// `list chains`: without rules.
    Chains,
    /// `list table`.
    Table(String),
    /// `list chain`: table and chain.
    Chain(String, String),
}

/// Reads a text of commands; `file` is its name in complaints, `None` for a command line.
///
/// # Errors
/// The first thing that is wrong, in nft's form.
pub fn parse(text: &str, file: Option<&str>) -> Result<Vec<Command>, Refusal> {
    let read = || -> Result<Vec<Command>, Wrong> {
        let open = |span| {
            Wrong::new(span, "syntax error, unexpected junk").remedy("A quote is opened and not closed.")
        };
        let tokens = expand(tokens(text).map_err(open)?)?;
        let mut parser = Parser { cursor: Cursor::new(&tokens), commands: Vec::new() };
        parser.all()?;
        Ok(parser.commands)
    };
    read().map_err(|wrong| refuse(text, file, wrong))
}

/// Takes `define NAME = …` out, and puts what is defined in the place of `$NAME`.
fn expand(tokens: Vec<Token>) -> Result<Vec<Token>, Wrong> {
    let mut defined: BTreeMap<String, Vec<Token>> = BTreeMap::new();
    let mut all: Vec<Token> = Vec::with_capacity(tokens.len());
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let begins = all.last().is_none_or(|last| last.kind == Kind::End || last.text == "{");
        if token.kind == Kind::Word && token.text == "define" && begins {
            let name = tokens.next_if(|next| next.kind == Kind::Word);
            let is = tokens.next_if(|next| next.text == "=");
            let (Some(name), Some(_)) = (name, is) else {
                return Err(Wrong::new(token.span, "syntax error, unexpected define")
                    .remedy("Write define NAME = VALUE, and $NAME where it is meant."));
            };
            let mut value = Vec::new();
            let mut open = 0usize;
            while let Some(part) =
                tokens.next_if(|next| next.kind != Kind::Eof && (next.kind != Kind::End || open > 0))
            {
                match part.text.as_str() {
                    "{" => open += 1,
                    "}" => open = open.saturating_sub(1),
                    _ => {}
                }
                push(&mut value, part, &mut tokens, &defined)?;
            }
            defined.insert(name.text, value);
            continue;
        }
        push(&mut all, token, &mut tokens, &defined)?;
        if all.len() > MAX_TOKENS {
            let span = all.last().map(|last| last.span).unwrap_or_default();
            return Err(Wrong::later(span, "a text of so many words", "Divide it."));
        }
    }
    Ok(all)
}

/// Adds a token, or the value of the variable that it names.
fn push(
    to: &mut Vec<Token>,
    token: Token,
    tokens: &mut std::iter::Peekable<std::vec::IntoIter<Token>>,
    defined: &BTreeMap<String, Vec<Token>>,
) -> Result<(), Wrong> {
    if token.kind != Kind::Sign || token.text != "$" {
        to.push(token);
        return Ok(());
    }
    let name = tokens.next_if(|next| next.kind == Kind::Word).unwrap_or_else(|| token.clone());
    let Some(value) = defined.get(&name.text) else {
        return Err(Wrong::new(name.span, format!("unknown identifier '{}'", name.text))
            .remedy(format!("Write define {} = VALUE in a line before.", name.text)));
    };
    if to.len() + value.len() > MAX_TOKENS {
        return Err(Wrong::later(name.span, "a text of so many words", "Divide it."));
    }
    to.extend(value.iter().map(|part| Token { span: name.span, ..part.clone() }));
    Ok(())
}

/// Verbs that do something.
const VERBS: [&str; 8] = ["add", "create", "insert", "replace", "delete", "destroy", "flush", "list"];
/// Objects of a table that are not modelled.
const OBJECTS: [&str; 14] = [
    "set",
    "map",
    "element",
    "flowtable",
    "counter",
    "quota",
    "limit",
    "secmark",
    "synproxy",
    "sets",
    "maps",
    "meter",
    "meters",
    "flowtables",
];

/// A table's place in the text and its name.
#[derive(Clone, Copy)]
struct Place<'t> {
    family: Family,
    table: &'t Token,
    begin: Span,
}

struct Parser<'t> {
    cursor: Cursor<'t>,
    commands: Vec<Command>,
}

impl<'t> Parser<'t> {
    fn all(&mut self) -> Result<(), Wrong> {
        loop {
            while self.cursor.kind() == Kind::End {
                self.cursor.next();
            }
            if self.cursor.kind() == Kind::Eof {
                return Ok(());
            }
            self.command()?;
            if !matches!(self.cursor.kind(), Kind::End | Kind::Eof) {
                return Err(self.cursor.expecting("end of file or newline or semicolon"));
            }
        }
    }

    fn command(&mut self) -> Result<(), Wrong> {
        let begin = self.cursor.here();
        let verb = match self.cursor.text() {
            "include" => {
                return Err(Wrong::later(begin, "include", "Put the other file's text in this place."));
            }
            "reset" => {
                while !self.cursor.at_end() {
                    self.cursor.next();
                }
                let (table, chain) = (begin, begin);
                self.commands.push(Command { ask: Ask::Nothing, whole: begin, table, chain, leads_to: None });
                return Ok(());
            }
            "rename" | "monitor" | "describe" | "import" | "export" => {
                let verb = self.cursor.text();
                return Err(Wrong::later(begin, verb, "Delete the chain and add it under its new name."));
            }
            word if VERBS.contains(&word) => self.cursor.next().text.as_str(),
            _ => "add",
        };
        if verb == "destroy" {
            return Err(Wrong::later(
                begin,
                "destroy",
                "Write `add` before `delete`: it is then there to be deleted.",
            ));
        }
        match self.cursor.text() {
            "table" => self.table(verb, begin),
            "chain" => self.chain(verb, begin),
            "rule" => self.rule(verb, begin),
            "ruleset" if verb == "flush" || verb == "list" => {
                self.cursor.next();
                let family = self.optional_family()?;
                let listing = Listing { scope: Scope::Ruleset, family };
                let ask = if verb == "flush" { Ask::FlushRuleset(family) } else { Ask::List(listing) };
                self.push(ask, begin, begin, begin, None);
                Ok(())
            }
            "tables" | "chains" if verb == "list" => {
                let scope = if self.cursor.next().text == "tables" { Scope::Tables } else { Scope::Chains };
                let family = self.optional_family()?;
                self.push(Ask::List(Listing { scope, family }), begin, begin, begin, None);
                Ok(())
            }
            object if OBJECTS.contains(&object) => Err(Wrong::later(
                self.cursor.here(),
                object,
                "Write the values into the rules: `tcp dport { 22, 80 }`.",
            )),
            // `add inet t c …` is a rule too, but that should not have to be guessed.
            _ => Err(self.cursor.unexpected().remedy("Write what it is about: table, chain or rule.")),
        }
    }

    fn push(&mut self, ask: Ask, begin: Span, table: Span, chain: Span, leads_to: Option<Span>) {
        let whole = begin.up_to(self.cursor.before());
        self.commands.push(Command { ask, whole, table, chain, leads_to });
    }

    fn optional_family(&mut self) -> Result<Option<Family>, Wrong> {
        let family = match self.cursor.text() {
            "ip" => Family::Ipv4,
            "ip6" => Family::Ipv6,
            "inet" => Family::Inet,
            other @ ("bridge" | "netdev" | "arp") => {
                let why = "Write ip, ip6 or inet: packets are followed on their way through routing, not in \
                a bridge or a driver.";
                return Err(Wrong::later(self.cursor.here(), format!("family {other}"), why));
            }
            _ => return Ok(None),
        };
        self.cursor.next();
        Ok(Some(family))
    }

    /// Family and name of a table.
    fn place(&mut self, begin: Span) -> Result<Place<'t>, Wrong> {
        let family = self.optional_family()?.unwrap_or_default();
        Ok(Place { family, table: self.cursor.name()?, begin })
    }

    fn op(place: &Place<'t>, command: NfCommand) -> NfOp {
        NfOp { family: place.family, table: place.table.text.clone(), command }
    }

    fn table(&mut self, verb: &str, begin: Span) -> Result<(), Wrong> {
        self.cursor.next();
        let place = self.place(begin)?;
        let at = place.table.span;
        let listing = Listing { scope: Scope::Table(place.table.text.clone()), family: Some(place.family) };
        let ask = match verb {
            "list" => Ask::List(listing),
            "delete" => Ask::Op(Self::op(&place, NfCommand::DeleteTable)),
            "flush" => Ask::Op(Self::op(&place, NfCommand::Flush(None))),
            "create" => Ask::Create(Self::op(&place, NfCommand::NewTable)),
            "add" => Ask::Op(Self::op(&place, NfCommand::NewTable)),
            _ => return Err(self.cursor.unexpected()),
        };
        self.push(ask, begin, at, at, None);
        if matches!(verb, "add" | "create") && self.cursor.take_sign("{") {
            self.table_block(&place)?;
        }
        Ok(())
    }

    /// The content of a table's braces. All its chains are made before their rules, which may jump to later
    /// chains.
    fn table_block(&mut self, place: &Place<'t>) -> Result<(), Wrong> {
        let mut rules = Vec::new();
        loop {
            match self.cursor.text() {
                _ if self.cursor.kind() == Kind::End => drop(self.cursor.next()),
                "}" => break,
                "chain" => {
                    let begin = self.cursor.next().span;
                    let name = self.cursor.name()?;
                    self.cursor.want_sign("{")?;
                    rules.extend(self.chain_block(&Place { begin, ..*place }, name, false)?);
                }
                "comment" => {
                    self.cursor.next();
                    self.cursor.quoted()?;
                }
                "flags" => {
                    return Err(Wrong::later(self.cursor.here(), "flags of a table", "Leave them out."));
                }
                object if OBJECTS.contains(&object) || object == "ct" => {
                    let remedy = "Write the values into the rules: `tcp dport { 22, 80 }`.";
                    return Err(Wrong::later(self.cursor.here(), object, remedy));
                }
                _ => return Err(self.cursor.unexpected().remedy("A table holds chains: chain NAME { … }.")),
            }
        }
        self.cursor.want_sign("}")?;
        self.commands.extend(rules);
        Ok(())
    }

    fn chain(&mut self, verb: &str, begin: Span) -> Result<(), Wrong> {
        self.cursor.next();
        let place = self.place(begin)?;
        let name = self.cursor.name()?;
        let (table, at) = (place.table.span, name.span);
        let chain = name.text.clone();
        let ask = match verb {
            "list" => {
                let scope = Scope::Chain(place.table.text.clone(), chain);
                Ask::List(Listing { scope, family: Some(place.family) })
            }
            "delete" => Ask::Op(Self::op(&place, NfCommand::DeleteChain(Some(chain)))),
            "flush" => Ask::Op(Self::op(&place, NfCommand::Flush(Some(chain)))),
            "add" | "create" if self.cursor.take_sign("{") => {
                let rules = self.chain_block(&place, name, verb == "create")?;
                self.commands.extend(rules);
                return Ok(());
            }
            "add" => Ask::Op(Self::op(&place, NfCommand::NewChain(chain))),
            "create" => Ask::Create(Self::op(&place, NfCommand::NewChain(chain))),
            _ => return Err(self.cursor.unexpected()),
        };
        self.push(ask, begin, table, at, None);
        Ok(())
    }

    /// The content of a chain's braces: the chain becomes a command, its rules are returned.
    fn chain_block(
        &mut self,
        place: &Place<'t>,
        name: &'t Token,
        create: bool,
    ) -> Result<Vec<Command>, Wrong> {
        let (mut base, mut policy) = (None, None);
        let mut rules = Vec::new();
        loop {
            match self.cursor.text() {
                _ if self.cursor.kind() == Kind::End => drop(self.cursor.next()),
                "}" => break,
                _ if self.cursor.kind() == Kind::Eof => return Err(self.cursor.unexpected()),
                "type" => base = Some(self.base()?),
                "policy" => policy = Some(self.policy()?),
                "comment" if rules.is_empty() => {
                    self.cursor.next();
                    self.cursor.quoted()?;
                }
                _ => self.rule_in(place, name, &mut rules)?,
            }
        }
        self.cursor.want_sign("}")?;
        let chain = name.text.clone();
        let command = match base {
            Some(base) => NfCommand::NewBase(chain, base, policy),
            None => NfCommand::NewChain(chain),
        };
        let op = Self::op(place, command);
        let ask = if create { Ask::Create(op) } else { Ask::Op(op) };
        let whole = place.begin.up_to(name.span);
        self.commands.push(Command { ask, whole, table: place.table.span, chain: name.span, leads_to: None });
        Ok(rules)
    }

    fn rule_in(&mut self, place: &Place<'t>, chain: &Token, rules: &mut Vec<Command>) -> Result<(), Wrong> {
        let begin = self.cursor.here();
        let Written { parts, leads_to } = rule::read(&mut self.cursor, place.family)?;
        if !self.cursor.at_end() {
            return Err(self.cursor.unexpected());
        }
        let whole = begin.up_to(self.cursor.before());
        for command in appended(&chain.text, parts) {
            let ask = Ask::Op(Self::op(place, command));
            rules.push(Command { ask, whole, table: place.table.span, chain: chain.span, leads_to });
        }
        Ok(())
    }

    /// `type filter hook output priority mangle; policy accept;`, up to the first semicolon.
    fn base(&mut self) -> Result<Base, Wrong> {
        self.cursor.next();
        let kind = self.cursor.name()?;
        let kind_of = names::chain_type(&kind.text).ok_or_else(|| {
            Wrong::new(kind.span, "unknown chain type")
                .remedy("Write type filter, or type route at hook output.")
        })?;
        if kind_of == ChainType::Nat {
            let remedy = "Translate with iptables -t nat, which tidegate models: filters see other addresses behind it.";
            return Err(Wrong::later(kind.span, "a chain of type nat", remedy));
        }
        self.cursor.want_word("hook")?;
        let hook = self.cursor.name()?;
        let at = match hook.text.as_str() {
            "ingress" | "egress" => {
                return Err(Wrong::later(
                    hook.span,
                    format!("hook {}", hook.text),
                    "Use tc's filters there.",
                ));
            }
            name => names::hook(name).ok_or_else(|| {
                Wrong::new(hook.span, "unknown chain hook")
                    .remedy("Write prerouting, input, forward, output or postrouting.")
            })?,
        };
        if kind_of == ChainType::Route && at != Hook::Output {
            return Err(Wrong::new(kind.span, "Could not process rule: Operation not supported")
                .remedy("Chains of type route belong to hook output only."));
        }
        if self.cursor.is_word("device") || self.cursor.is_word("devices") {
            return Err(Wrong::later(
                self.cursor.here(),
                "a chain of a device",
                "Ask for the device in rules: oifname.",
            ));
        }
        self.cursor.want_word("priority")?;
        let priority = self.priority()?;
        Ok(Base { kind: kind_of, hook: at, priority })
    }

    /// `-150`, `mangle`, `mangle + 5`, `filter - 5`.
    fn priority(&mut self) -> Result<i32, Wrong> {
        let keyword = self.cursor.before();
        let token = self.cursor.name()?;
        let (text, begin) = (token.text.as_str(), keyword.up_to(token.span));
        let wrong = |span| {
            Wrong::new(span, "invalid priority expression value in this context.").remedy(
                "Write raw, mangle, filter, security, with + or - a number behind it if wanted, or \
                a number such as -150.",
            )
        };
        let number = |text: &str| text.parse::<i32>().ok();
        let value = match names::number(&PRIORITIES, text) {
            Some(value) => value,
            None => number(text).ok_or_else(|| wrong(begin))?,
        };
        let sign = match self.cursor.text() {
            "+" => 1,
            "-" => -1,
            joined => match joined.strip_prefix('-').and_then(number) {
                Some(less) => {
                    self.cursor.next();
                    return Ok(value.saturating_sub(less));
                }
                None => return Ok(value),
            },
        };
        self.cursor.next();
        let (more, span) = self.cursor.number()?;
        let more = i32::try_from(more).map_err(|_| wrong(span))?;
        Ok(value.saturating_add(sign * more))
    }

    fn policy(&mut self) -> Result<bool, Wrong> {
        self.cursor.next();
        match self.cursor.text() {
            "accept" | "drop" => Ok(self.cursor.next().text == "accept"),
            _ => Err(self.cursor.expecting("accept or drop or '$'")),
        }
    }

    fn rule(&mut self, verb: &str, begin: Span) -> Result<(), Wrong> {
        self.cursor.next();
        let place = self.place(begin)?;
        let chain = self.cursor.name()?;
        let mut where_to = (None, None, chain.span);
        while let word @ ("handle" | "index" | "position") = self.cursor.text() {
            let begin = self.cursor.next().span;
            let (number, span) = self.cursor.number()?;
            match word {
                "index" => where_to = (None, Some(number as usize), begin.up_to(span)),
                _ => where_to = (Some(number), None, span),
            }
        }
        let (handle, index, at) = where_to;
        let name = chain.text.clone();
        let table = place.table.span;
        if verb == "delete" {
            let Some(handle) = handle else {
                return Err(self
                    .cursor
                    .expecting("handle")
                    .remedy("`nft -a list ruleset` shows the handles of rules."));
            };
            let ask = Ask::Op(Self::op(&place, NfCommand::DeleteHandle(name, handle)));
            self.push(ask, begin, table, at, None);
            return Ok(());
        }
        let Written { parts, leads_to } = rule::read(&mut self.cursor, place.family)?;
        let written = begin.up_to(self.cursor.before());
        let commands = match (verb, handle) {
            ("add", None) if index.is_none() => appended(&name, parts),
            ("insert", None) if index.is_none() => inserted(&name, parts),
            _ if parts.iter().any(|(_, counts)| *counts != (0, 0)) => {
                return Err(Wrong::later(
                    written,
                    "packets and bytes behind counter, in a rule that is put between others",
                    "Write counter alone: it begins with 0.",
                ));
            }
            ("replace", Some(handle)) => replaced(&name, handle, parts),
            ("replace", None) => {
                let missing = Wrong::new(chain.span, "syntax error, expecting handle");
                return Err(missing.remedy("`nft -a list ruleset` shows the handles of rules."));
            }
            ("add" | "insert", handle) => beside(&name, handle.unwrap_or_default(), verb == "add", parts),
            _ => return Err(Wrong::new(begin, format!("syntax error, unexpected {verb}"))),
        };
        for (number, command) in commands.into_iter().enumerate() {
            let op = Self::op(&place, command);
            let ask = match index {
                // What is put before a rule moves that on.
                Some(index) => {
                    Ask::AtIndex { op, index: index + usize::from(verb == "insert" && number > 0) }
                }
                None => Ask::Op(op),
            };
            self.push(ask, begin, table, at, leads_to);
        }
        Ok(())
    }
}

/// A rule's parts put before all others of a chain, with what they have counted.
fn inserted(chain: &str, parts: Parts) -> Vec<NfCommand> {
    let mut commands = Vec::new();
    for (position, (rule, (packets, bytes))) in (1..).zip(parts) {
        commands.push(NfCommand::Insert(chain.to_owned(), position, rule));
        if (packets, bytes) != (0, 0) {
            commands.push(NfCommand::Counters(chain.to_owned(), Some(position), packets, bytes));
        }
    }
    commands
}

/// A rule's parts instead of another rule.
fn replaced(chain: &str, handle: u64, parts: Parts) -> Vec<NfCommand> {
    let command = |(number, (rule, _)): (usize, (NetfilterRule, _))| match number {
        0 => NfCommand::ReplaceHandle(chain.to_owned(), handle, rule),
        _ => NfCommand::Beside { chain: chain.to_owned(), handle, behind: true, rule },
    };
    parts.into_iter().enumerate().map(command).collect()
}

/// A rule's parts before another rule or behind it.
fn beside(chain: &str, handle: u64, behind: bool, parts: Parts) -> Vec<NfCommand> {
    let command =
        |(rule, _): (NetfilterRule, _)| NfCommand::Beside { chain: chain.to_owned(), handle, behind, rule };
    let mut commands: Vec<NfCommand> = parts.into_iter().map(command).collect();
    // What comes last is next to the other rule: behind it the parts are put in their opposite order.
    if behind {
        commands.reverse();
    }
    commands
}

/// The parts of a rule, with the packets and bytes behind `counter`.
type Parts = Vec<(NetfilterRule, (u64, u64))>;

/// Rules put at a chain's end, with what they have counted.
fn appended(chain: &str, parts: Parts) -> Vec<NfCommand> {
    let mut commands = Vec::new();
    for (rule, (packets, bytes)) in parts {
        commands.push(NfCommand::Append(chain.to_owned(), rule));
        if (packets, bytes) != (0, 0) {
            commands.push(NfCommand::Counters(chain.to_owned(), Some(0), packets, bytes));
        }
    }
    commands
}
