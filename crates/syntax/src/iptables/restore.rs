//! `iptables-restore`: tables as `iptables-save` writes them, one after another, each carried out whole or
//! not at all.

use super::command::IptCommand;
use super::parse::parse_line;
use super::refused::complain;
use crate::Refusal;
use tidegate_policy::netfilter::NfOp;

/// What a call of `iptables-restore` requests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restore {
    /// IPv6?
    pub ipv6: bool,
    /// What is there goes first (no `-n`).
    pub flush: bool,
    /// Counters are restored too (`-c`).
    pub counters: bool,
    /// Nothing is carried out (`--test`).
    pub test: bool,
    /// The tables to restore, in order.
    pub tables: Vec<RestoredTable>,
    /// What is wrong behind them; they themselves are restored.
    pub refusal: Option<Refusal>,
}

/// A table from its `*NAME` to its `COMMIT`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RestoredTable {
    /// The table's name.
    pub name: String,
    /// What is to be done, with the number of its line, from 1.
    pub lines: Vec<(usize, RestoreLine)>,
    /// The line of its COMMIT.
    pub commit: usize,
}

/// A line inside a table.
#[derive(Clone, Debug, PartialEq)]
pub enum RestoreLine {
    /// `:CHAIN POLICY [packets:bytes]`: true = ACCEPT; `None`, written `-`, for the chains of users.
    Chain(String, Option<bool>, (u64, u64)),
    /// `[packets:bytes] -A …` and the like.
    Rule(NfOp, (u64, u64)),
}

/// Reads the options and what is to be restored.
///
/// # Errors
/// When the call itself is wrong; what is wrong in the text is in [`Restore::refusal`].
pub fn restore(tool: &str, args: &[String], text: &str) -> Result<Restore, Refusal> {
    let mut restore = Restore { ipv6: tool.starts_with("ip6"), flush: true, ..Restore::default() };
    let mut only = None;
    let mut words = args.iter().enumerate().peekable();
    while let Some((at, word)) = words.next() {
        let number = |word: &String| word.bytes().all(|b| b.is_ascii_digit());
        match word.as_str() {
            "-n" | "--noflush" => restore.flush = false,
            "-c" | "--counters" => restore.counters = true,
            "-t" | "--test" => restore.test = true,
            "-v" | "--verbose" | "-4" | "-6" | "--ipv4" | "--ipv6" => {}
            "-w" | "--wait" | "-W" | "--wait-interval" => {
                words.next_if(|(_, word)| number(word));
            }
            "-T" | "--table" => only = words.next().map(|(_, table)| table.clone()),
            "-M" | "--modprobe" => {
                words.next();
            }
            option if option.starts_with('-') => {
                return Err(Refusal::new(1, format!("{tool}: unrecognized option '{option}'"))
                    .then(&format!("Try `{tool} -h' for more information."))
                    .at(at));
            }
            // The file, which the caller has read.
            _ => {}
        }
    }
    restore.refusal = tables(tool, text, &mut restore).err();
    restore.tables.retain(|table| only.as_ref().is_none_or(|only| *only == table.name));
    Ok(restore)
}

fn tables(tool: &str, text: &str, restore: &mut Restore) -> Result<(), Refusal> {
    let mut open: Option<RestoredTable> = None;
    let mut last = 0;
    for (number, line) in (1..).zip(text.lines()) {
        last = number;
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let at_line = |refusal| blamed(refusal, number);
        let behind = |sign: char| line.strip_prefix(sign);
        match (&mut open, behind('*'), behind(':')) {
            (Some(_), ..) if line == "COMMIT" => {
                restore.tables.extend(open.take().map(|table| RestoredTable { commit: number, ..table }));
            }
            (None, Some(name), _) => {
                if !super::parse::TABLES.contains(&name) {
                    let what = format!("{tool}: line {number} table name '{name}' invalid");
                    return Err(at_line(complain(tool, what)));
                }
                open = Some(RestoredTable { name: name.into(), ..RestoredTable::default() });
            }
            (Some(table), _, Some(chain)) => {
                let line = policy(tool, chain, number)?;
                table.lines.push((number, line));
            }
            (Some(table), ..) => {
                let line = rule(tool, restore.ipv6, &table.name, line, number)?;
                table.lines.extend(line.map(|line| (number, line)));
            }
            (None, ..) => {
                return Err(Refusal::new(1, format!("{tool}: line {number} failed"))
                    .remedy("A table begins with a line `*NAME` and ends with `COMMIT`."));
            }
        }
    }
    match open {
        Some(_) => Err(Refusal::new(1, format!("{tool}: COMMIT expected at line {}", last + 1))
            .remedy("Write COMMIT behind the last rule of the table; nothing of it was carried out.")),
        None => Ok(()),
    }
}

/// `CHAIN POLICY [packets:bytes]`.
fn policy(tool: &str, text: &str, number: usize) -> Result<RestoreLine, Refusal> {
    let mut words = text.split_whitespace();
    let (Some(chain), Some(policy)) = (words.next(), words.next()) else {
        return Err(blamed(complain(tool, format!("{tool}: line {number} policy invalid")), number));
    };
    let policy = match policy {
        "-" => None,
        "ACCEPT" => Some(true),
        "DROP" => Some(false),
        _ => {
            return Err(Refusal::new(1, format!("{tool}: line {number} failed: Bad policy name."))
                .remedy("A policy is ACCEPT, DROP, or - for a chain of one's own."));
        }
    };
    let counters = words.next().and_then(|word| word.strip_prefix('[')?.strip_suffix(']'));
    let counters = counters.and_then(pair).unwrap_or_default();
    Ok(RestoreLine::Chain(chain.into(), policy, counters))
}

/// A rule; `None`: it is for the other family (`-4`, `-6`).
fn rule(
    tool: &str,
    ipv6: bool,
    table: &str,
    line: &str,
    number: usize,
) -> Result<Option<RestoreLine>, Refusal> {
    let (counters, words) = match line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((counters, rest)) => {
            let counters = pair(counters).ok_or_else(|| {
                blamed(
                    complain(tool, format!("counters are not of the form packets:bytes: [{counters}]")),
                    number,
                )
            })?;
            (counters, rest)
        }
        None => ((0, 0), line),
    };
    let words = split(words).ok_or_else(|| {
        blamed(complain(tool, "a quote is opened and not closed"), number)
            .remedy("Close the quote on its line.")
    })?;
    if words.iter().any(|word| word == "--table" || word.starts_with("-t")) {
        let what = "The -t option cannot be used in iptables-restore.\n".replace("iptables-restore", tool);
        return Err(blamed(complain(tool, what), number));
    }
    match parse_line(tool, ipv6, table, &words).map_err(|refusal| blamed(refusal, number))? {
        None => Ok(None),
        Some(IptCommand::Apply(op)) => Ok(Some(RestoreLine::Rule(op, counters))),
        Some(_) => Err(Refusal::new(1, format!("{tool}: line {number} failed"))
            .remedy("A line changes its table: -A, -I, -D, -R, -F, -N, -X, -P or -Z.")),
    }
}

/// The tool's words with the line that is at fault, which it names behind the first of them.
pub fn blamed(mut refusal: Refusal, number: usize) -> Refusal {
    let at = refusal.stderr.find("\nTry ").map_or(refusal.stderr.len(), |at| at + 1);
    refusal.stderr.insert_str(at, &format!("Error occurred at line: {number}\n"));
    refusal.word = None;
    refusal
}

fn pair(text: &str) -> Option<(u64, u64)> {
    let (packets, bytes) = text.split_once(':')?;
    Some((packets.parse().ok()?, bytes.parse().ok()?))
}

/// Splits at blanks; in quotes, single or double, they stay, and a backslash keeps what follows it.
fn split(line: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', Some(_)) => word.get_or_insert_default().extend(letters.next()),
            (letter, Some(open)) if letter == open => quote = None,
            ('"' | '\'', None) => {
                word.get_or_insert_default();
                quote = Some(letter);
            }
            (' ' | '\t', None) => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}
