//! Reads iptables' command line.

mod abbreviated;
mod matches;
mod targets;

use super::command::{IptCommand, IptablesCommandLine, ListStyle};
use super::refused::{VERSION, complain, later};
use super::values::{self, address};
use crate::Refusal;
use crate::number::{u32_in, whole};
use std::net::Ipv4Addr;
use tidegate_policy::netfilter::{
    Choice, Condition, CountDirection, CountMode, Family, Match, NetfilterRule, NetfilterTarget, NfCommand,
    NfOp, Translate, Translation, Translator,
};

/// Extensions of iptables 1.8.9 (iptables-extensions(8)) that this version does not have.
const LATER_MATCHES: [&str; 48] = [
    "addrtype",
    "ah",
    "bpf",
    "cgroup",
    "cluster",
    "connlabel",
    "connlimit",
    "cpu",
    "dccp",
    "devgroup",
    "dst",
    "ecn",
    "esp",
    "eui64",
    "frag",
    "hashlimit",
    "hbh",
    "helper",
    "hl",
    "ipcomp",
    "iprange",
    "ipv6header",
    "ipvs",
    "limit",
    "mac",
    "mh",
    "nfacct",
    "osf",
    "owner",
    "physdev",
    "pkttype",
    "policy",
    "quota",
    "rateest",
    "realm",
    "recent",
    "rpfilter",
    "rt",
    "sctp",
    "set",
    "socket",
    "srh",
    "statistic",
    "string",
    "tcpmss",
    "time",
    "ttl",
    "u32",
];
/// What to do about a match that is not built.
const SELECT: &str = "Select by what is modelled (addresses, ports, devices, dscp, tos, length, mark, connmark, \
     conntrack, connbytes), or take the command out and check the rest: it was not carried out.";
/// The same of a target.
const LEAVE_OUT: &str =
    "Take the command out and check the rest, if no class depends on it: it was not carried out.";
const LATER_TARGETS: [&str; 24] = [
    "AUDIT",
    "CHECKSUM",
    "CLUSTERIP",
    "CONNSECMARK",
    "DNPT",
    "ECN",
    "HL",
    "HMARK",
    "IDLETIMER",
    "LED",
    "NETMAP",
    "NFLOG",
    "NFQUEUE",
    "RATEEST",
    "SECMARK",
    "SET",
    "SNPT",
    "SYNPROXY",
    "TCPOPTSTRIP",
    "TEE",
    "TPROXY",
    "TRACE",
    "TTL",
    "ULOG",
];
/// Those that only iptables has, and those that only ip6tables has.
const OF_V4: [&str; 3] = ["CLUSTERIP", "TTL", "ttl"];
const OF_V6: [&str; 12] =
    ["DNPT", "HL", "SNPT", "dst", "eui64", "frag", "hbh", "hl", "ipv6header", "mh", "rt", "srh"];
/// Extensions of scripts for kernels that were patched or extended for them, with what does the same today.
const PATCHED: [(&str, &str); 3] = [
    (
        "IMQ",
        "No Linux has IMQ unpatched: redirect packets to an ifb instead (tc … action mirred egress redirect \
        dev ifb0).",
    ),
    ("layer7", "No Linux has layer7 unpatched: match ports, or marks that a DPI program sets."),
    (
        "ipp2p",
        "ipp2p comes with xtables-addons, not with Linux: match ports, or marks that a DPI program sets.",
    ),
];
/// The syslog level of a log entry, by default.
const WARNING: u8 = 4;
/// Extensions there are.
const MATCHES: [&str; 15] = [
    "tcp",
    "udp",
    "icmp",
    "icmp6",
    "icmpv6",
    "multiport",
    "mark",
    "connmark",
    "connbytes",
    "conntrack",
    "state",
    "length",
    "dscp",
    "tos",
    "comment",
];
/// The refusal of an extension that Linux itself has not.
fn patched(what: &str, name: &str, place: usize) -> Option<Refusal> {
    let (_, remedy) = PATCHED.iter().find(|(own, _)| *own == name)?;
    Some(
        Refusal::new(2, format!("tidegate: the {what} {name} is not supported in this version"))
            .at(place)
            .remedy(*remedy),
    )
}

pub(super) const TABLES: [&str; 5] = ["filter", "nat", "mangle", "raw", "security"];
/// Longest name of a chain, in bytes.
const LONGEST_CHAIN: usize = 28;

/// Reads a command line of `iptables`, `ip6tables` (also `-legacy`, `-nft`) or their `-save`, without the
/// program's name.
///
/// # Errors
/// The tool's message, its exit code and the argument at fault; also for what tidegate does not support.
pub fn parse(tool: &str, args: &[String]) -> Result<IptablesCommandLine, Refusal> {
    let ipv6 = tool.starts_with("ip6");
    let mut reader = Reader::new(tool, ipv6, args);
    if tool.ends_with("-save") {
        return reader.save();
    }
    reader.read()?;
    reader.finish()
}

/// Reads a line of a table for `iptables-restore`. `None`: it is for the other family.
pub(super) fn parse_line(
    tool: &str,
    ipv6: bool,
    table: &str,
    words: &[String],
) -> Result<Option<IptCommand>, Refusal> {
    let mut reader = Reader::new(tool, ipv6, words);
    reader.table = table.into();
    reader.of_file = true;
    reader.read()?;
    let is_elsewhere = reader.is_elsewhere;
    let command = reader.finish()?.command;
    Ok((!is_elsewhere).then_some(command))
}

/// The command letter and what came with it.
#[derive(Clone, Debug, Default)]
enum Verb {
    #[default]
    None,
    Append(String),
    Insert(String, usize),
    Replace(String, usize),
    Delete(String),
    DeleteAt(String, usize),
    Check(String),
    Plain(NfCommand),
    List(Option<String>, bool),
    Version,
    Help,
}

struct Reader<'a> {
    tool: &'a str,
    ipv6: bool,
    args: &'a [String],
    at: usize,
    table: String,
    verb: Verb,
    style: ListStyle,
    /// Addresses, devices and protocol, which have one place each whatever their order; then the others as
    /// given.
    basics: [Option<Match>; 5],
    /// Addresses as written: place, text, inverted, flag, position.
    addresses: Vec<(usize, &'a str, bool, &'static str, usize)>,
    /// `-i` and `-o` with their positions, also where they name any device.
    devices: Vec<(&'static str, usize)>,
    matches: Vec<Match>,
    loaded: Vec<String>,
    /// The connbytes options read so far: inverted, from, to.
    amount: Option<(bool, u64, u64)>,
    mode: Option<CountMode>,
    direction: Option<CountDirection>,
    target: Option<NetfilterTarget>,
    /// The name after `-j` while its options are read.
    target_name: Option<String>,
    notes: Vec<String>,
    /// The masks of CONNMARK that were given.
    masks: Vec<&'static str>,
    /// It is a line of a file for `iptables-restore`,
    of_file: bool,
    /// which is for the other family (`-4`, `-6`), and is passed over.
    is_elsewhere: bool,
}

impl<'a> Reader<'a> {
    fn new(tool: &'a str, ipv6: bool, args: &'a [String]) -> Reader<'a> {
        Reader {
            tool,
            ipv6,
            args,
            at: 0,
            table: "filter".into(),
            verb: Verb::None,
            style: ListStyle::default(),
            basics: [const { None }; 5],
            addresses: Vec::new(),
            devices: Vec::new(),
            matches: Vec::new(),
            loaded: Vec::new(),
            amount: None,
            mode: None,
            direction: None,
            target: None,
            target_name: None,
            notes: Vec::new(),
            masks: Vec::new(),
            of_file: false,
            is_elsewhere: false,
        }
    }

    fn save(&mut self) -> Result<IptablesCommandLine, Refusal> {
        let (mut table, mut counters) = (None, false);
        while let Some(word) = self.take() {
            match word {
                "-t" | "--table" => table = Some(self.value("-t")?.to_string()),
                "-c" | "--counters" => counters = true,
                _ => return Err(self.complain(format!("unknown option \"{word}\""))),
            }
        }
        Ok(IptablesCommandLine {
            command: IptCommand::Save { ipv6: self.ipv6, table, counters },
            notes: Vec::new(),
        })
    }

    fn read(&mut self) -> Result<(), Refusal> {
        let mut not = false;
        while let Some(word) = self.take() {
            if word == "!" {
                if not {
                    return Err(self.complain("Multiple consecutive ! not allowed"));
                }
                not = true;
                continue;
            }
            let word = self.cluster(word, not)?;
            let (name, joined) = split(word);
            if not && !invertible(name) {
                return Err(self.complain(format!("unexpected ! flag before {name}")));
            }
            let name = self.unabbreviated(name);
            self.option(&name, joined, not)?;
            not = false;
        }
        Ok(())
    }

    /// Takes letters without a value off the front of `-nvL`, and gives what is left: `-L`.
    fn cluster(&mut self, word: &'a str, not: bool) -> Result<&'a str, Refusal> {
        let bytes = word.as_bytes();
        if bytes.len() < 3 || bytes[0] != b'-' || !b"nvx46".contains(&bytes[1]) {
            return Ok(word);
        }
        let flags = bytes[1..].iter().take_while(|letter| b"nvx46".contains(letter)).count();
        for letter in word[1..=flags].chars().take(flags.min(bytes.len() - 2)) {
            self.option(&format!("-{letter}"), None, not)?;
        }
        match &word[word.len().min(flags + 1)..] {
            "" => Ok(match bytes[bytes.len() - 1] {
                b'n' => "-n",
                b'x' => "-x",
                b'4' => "-4",
                b'6' => "-6",
                _ => "-v",
            }),
            "L" => Ok("-L"),
            "S" => Ok("-S"),
            "Z" => Ok("-Z"),
            rest => Err(self.complain(format!("unknown option \"-{rest}\"")).at(self.at - 1)),
        }
    }

    fn option(&mut self, name: &str, joined: Option<&'a str>, not: bool) -> Result<(), Refusal> {
        match name {
            "-A" | "--append" => self.verb = Verb::Append(self.chain(name, joined)?),
            "-D" | "--delete" => {
                let chain = self.chain(name, joined)?;
                self.verb = match self.number() {
                    Some(0) => return Err(self.complain("Invalid rule number `0'")),
                    Some(number) => Verb::DeleteAt(chain, number),
                    None => Verb::Delete(chain),
                };
            }
            "-C" | "--check" => self.verb = Verb::Check(self.chain(name, joined)?),
            "-I" | "--insert" => {
                let chain = self.chain(name, joined)?;
                self.verb = match self.number() {
                    Some(0) => return Err(self.complain("Invalid rule number `0'")),
                    number => Verb::Insert(chain, number.unwrap_or(1)),
                };
            }
            "-R" | "--replace" => {
                let chain = self.chain(name, joined)?;
                let number = self.number().filter(|number| *number > 0);
                let number = number.ok_or_else(|| self.complain("-R requires a rule number"))?;
                self.verb = Verb::Replace(chain, number);
            }
            "-F" | "--flush" => self.verb = Verb::Plain(NfCommand::Flush(self.maybe_chain(joined))),
            "-Z" | "--zero" => self.verb = Verb::Plain(NfCommand::Zero(self.maybe_chain(joined))),
            "-X" | "--delete-chain" => {
                self.verb = Verb::Plain(NfCommand::DeleteChain(self.maybe_chain(joined)))
            }
            "-N" | "--new-chain" | "--new" => {
                let chain = self.chain(name, joined)?;
                self.verb = Verb::Plain(NfCommand::NewChain(chain));
            }
            "-P" | "--policy" => {
                let chain = self.chain(name, joined)?;
                let accept = match self.value(name)? {
                    "ACCEPT" => true,
                    "DROP" => false,
                    _ => {
                        return Err(Refusal::new(
                            1,
                            format!("{}: Bad policy name. Run `dmesg' for more information.", self.tool),
                        )
                        .at(self.at - 1)
                        .remedy("A policy is ACCEPT or DROP."));
                    }
                };
                self.verb = Verb::Plain(NfCommand::Policy(chain, accept));
            }
            "-L" | "--list" => self.verb = Verb::List(self.maybe_chain(joined), false),
            "-S" | "--list-rules" => self.verb = Verb::List(self.maybe_chain(joined), true),
            "-V" | "--version" => self.verb = Verb::Version,
            "-h" | "--help" => self.verb = Verb::Help,
            "-t" | "--table" => {
                let table = self.joined_or_next(name, joined)?.to_string();
                if !TABLES.contains(&table.as_str()) {
                    let tool = self.tool;
                    return Err(Refusal::new(3, format!("{tool} {VERSION}: table '{table}' does not exist"))
                        .then(&format!("Perhaps {tool} or your kernel needs to be upgraded."))
                        .remedy(format!("The tables are {}.", TABLES.join(", "))));
                }
                self.table = table;
            }
            "-n" | "--numeric" => self.style.numeric = true,
            "-v" | "--verbose" => self.style.verbose = true,
            "-x" | "--exact" => self.style.exact = true,
            "--line-numbers" => self.style.numbers = true,
            "-w" | "--wait" | "-W" | "--wait-interval" => {
                if joined.is_none() && self.peek().is_some_and(|word| whole(word, 10).is_some()) {
                    self.at += 1;
                }
            }
            "-4" | "--ipv4" | "-6" | "--ipv6" if name.ends_with('6') == self.ipv6 => {}
            "-4" | "--ipv4" | "-6" | "--ipv6" if self.of_file => self.is_elsewhere = true,
            "-4" | "--ipv4" | "-6" | "--ipv6" => {
                let other = if self.ipv6 { "iptables" } else { "ip6tables" };
                let remedy = format!("Write {other} in its place, without {name}.");
                return Err(Refusal::new(2, usage(self.tool)).at(self.at - 1).remedy(remedy));
            }
            "-c" | "--set-counters" => {
                self.joined_or_next(name, joined)?;
                self.value(name)?;
                self.notes.push("counters given with -c start from 0 here".into());
            }
            _ => return self.rule_option(name, joined, not),
        }
        Ok(())
    }

    fn rule_option(&mut self, name: &str, joined: Option<&'a str>, not: bool) -> Result<(), Refusal> {
        match name {
            "-p" | "--protocol" | "--proto" => {
                let (text, not) = self.inverted(name, joined, not)?;
                let number = values::protocol(text).ok_or_else(|| {
                    self.complain(format!("unknown protocol \"{text}\" specified")).at(self.at - 1)
                })?;
                if not && number == 0 {
                    return Err(self.complain("rule would never match protocol"));
                }
                self.basic(4, Condition::Protocol(number), not, "-p")
            }
            "-s" | "--source" | "--src" => {
                let (text, not) = self.inverted(name, joined, not)?;
                self.named(0, text, not, "-s")
            }
            "-d" | "--destination" | "--dst" => {
                let (text, not) = self.inverted(name, joined, not)?;
                self.named(1, text, not, "-d")
            }
            "-i" | "--in-interface" => {
                let (text, not) = self.inverted(name, joined, not)?;
                let device = self.device(text)?;
                self.devices.push(("-i", self.at - 1));
                self.basic(2, Condition::In(device), not, "-i")
            }
            "-o" | "--out-interface" => {
                let (text, not) = self.inverted(name, joined, not)?;
                let device = self.device(text)?;
                self.devices.push(("-o", self.at - 1));
                self.basic(3, Condition::Out(device), not, "-o")
            }
            "-m" | "--match" => {
                let extension = self.joined_or_next(name, joined)?;
                if let Some(refused) = patched("match", extension, self.at - 1) {
                    return Err(refused);
                }
                if LATER_MATCHES.contains(&extension) && self.has(extension) {
                    return Err(later(format!("the match {extension}"), self.at - 1).remedy(SELECT));
                }
                if !MATCHES.contains(&extension) {
                    return Err(
                        self.complain(format!("Couldn't load match `{extension}':No such file or directory"))
                    );
                }
                self.loaded.push(extension.into());
                Ok(())
            }
            "-j" | "--jump" | "-g" | "--goto" => {
                let target = self.joined_or_next(name, joined)?.to_string();
                if self.target_name.is_some() {
                    return Err(self.complain("multiple -j flags not allowed"));
                }
                if let Some(refused) = patched("target", &target, self.at - 1) {
                    return Err(refused);
                }
                if LATER_TARGETS.contains(&target.as_str()) && self.has(&target) {
                    return Err(later(format!("the target {target}"), self.at - 1).remedy(LEAVE_OUT));
                }
                let goes = matches!(name, "-g" | "--goto");
                self.target = match target.as_str() {
                    _ if goes => Some(NetfilterTarget::Goto(target.clone())),
                    "ACCEPT" => Some(NetfilterTarget::Accept),
                    "DROP" => Some(NetfilterTarget::Drop),
                    "RETURN" => Some(NetfilterTarget::Return),
                    "NOTRACK" => Some(NetfilterTarget::Notrack(false)),
                    "MARK" | "CONNMARK" | "CLASSIFY" | "DSCP" | "TOS" | "CT" | "SNAT" | "DNAT" | "TCPMSS" => {
                        None
                    }
                    "LOG" => Some(NetfilterTarget::Log { level: WARNING, prefix: String::new(), flags: 0 }),
                    "REJECT" => {
                        Some(NetfilterTarget::Reject(values::REJECTIONS[usize::from(self.ipv6)][0].into()))
                    }
                    "MASQUERADE" => Some(translate(Translator::Masquerade)),
                    "REDIRECT" => Some(translate(Translator::Redirect)),
                    _ => Some(NetfilterTarget::Jump(target.clone())),
                };
                self.target_name = Some(target);
                Ok(())
            }
            "--comment" => {
                let text = self.joined_or_next(name, joined)?;
                self.matches.push(Match { not: false, what: Condition::Comment(text.into()) });
                Ok(())
            }
            "-E" | "--rename-chain" => Err(later("renaming a chain", self.at - 1)),
            "-f" | "--fragment" | "--fragments" => Err(later("the match on fragments", self.at - 1)),
            _ if name.starts_with("--") => self.extension(name, joined, not),
            _ if name.starts_with('-') => {
                Err(self.complain(format!("unknown option \"{name}\"")).at(self.at - 1))
            }
            _ => Err(bad_argument(self.tool, name).at(self.at - 1)),
        }
    }

    /// Has the tool an extension of this name, if the other has it?
    fn has(&self, extension: &str) -> bool {
        !if self.ipv6 { OF_V4.contains(&extension) } else { OF_V6.contains(&extension) }
    }

    /// An option of an extension: of the target that was named, or of a match.
    fn extension(&mut self, name: &str, joined: Option<&'a str>, not: bool) -> Result<(), Refusal> {
        if self.target_option(name, joined)? { Ok(()) } else { self.match_option(name, joined, not) }
    }

    fn finish(mut self) -> Result<IptablesCommandLine, Refusal> {
        let tool = self.tool;
        if let Verb::Append(chain)
        | Verb::Insert(chain, _)
        | Verb::Replace(chain, _)
        | Verb::Delete(chain)
        | Verb::Check(chain) = &self.verb
            && let Some((flag, at)) = self.devices.iter().find(|(flag, _)| never_has(chain, flag))
        {
            return Err(complain(tool, format!("Can't use {flag} with {chain}\n")).at(*at));
        }
        for (slot, text, not, flag, at) in std::mem::take(&mut self.addresses) {
            self.at = at;
            let (bytes, length) = self.address(text)?;
            let what = if slot == 0 { Condition::Source } else { Condition::Destination };
            self.basic(slot, what(bytes, length), not, flag)?;
        }
        for (module, number) in [("tcp", 6), ("udp", 17)] {
            let requested =
                self.basics[4].as_ref().is_some_and(|m| m.what == Condition::Protocol(number) && !m.not);
            if !requested && self.loaded.iter().any(|loaded| loaded == module) {
                return Err(complain(
                    tool,
                    format!("{} match requires '-p {module}'", module.to_uppercase()),
                ));
            }
        }
        if let (Some(name), None) = (&self.target_name, &self.target) {
            let wants = match name.as_str() {
                "MARK" => "One of the --set-xmark, --{and,or,xor,set}-mark options is required",
                "CONNMARK" => return Err(complain(tool, "CONNMARK target: No operation specified")),
                "CLASSIFY" => "option \"--set-class\" must be specified",
                "CT" => "--notrack is what this version knows of it: it is required",
                "TCPMSS" => return Err(complain(tool, "TCPMSS target: At least one parameter is required")),
                "SNAT" => return Err(complain(tool, "SNAT: option \"--to-source\" must be specified")),
                "DNAT" => return Err(complain(tool, "DNAT: option \"--to-destination\" must be specified")),
                "DSCP" => return Err(complain(tool, "DSCP target: Parameter --set-dscp is required")),
                _ => "An action is required",
            };
            return Err(complain(tool, format!("{name}: {wants}")));
        }
        let drops = self.target == Some(NetfilterTarget::Drop)
            || matches!(self.verb, Verb::Plain(NfCommand::Policy(_, false)));
        if drops && self.table == "nat" {
            const INHIBITED: &str = "\nThe \"nat\" table is not intended for filtering, the use of DROP is \
                therefore inhibited.\n\n";
            return Err(complain(tool, INHIBITED).remedy("Write it in the table filter, or in raw."));
        }
        let counted = self.counted()?;
        let (ipv6, table) = (self.ipv6, self.table);
        let mut matches: Vec<Match> =
            self.basics.into_iter().flatten().chain(self.matches).chain(counted).collect();
        gather_ports(&mut matches);
        let ruled = !matches.is_empty() || self.target.is_some();
        let rule = NetfilterRule { matches, target: self.target, ..NetfilterRule::default() };
        let op = |command| NfOp { family: Family::of(ipv6), table: table.clone(), command };
        let command = match self.verb {
            Verb::Append(chain) => IptCommand::Apply(op(NfCommand::Append(chain, rule))),
            Verb::Insert(chain, number) => IptCommand::Apply(op(NfCommand::Insert(chain, number, rule))),
            Verb::Replace(chain, number) => IptCommand::Apply(op(NfCommand::ReplaceAt(chain, number, rule))),
            Verb::Delete(chain) => IptCommand::Apply(op(NfCommand::Delete(chain, rule))),
            Verb::Check(chain) => IptCommand::Check(op(NfCommand::Delete(chain, rule))),
            Verb::None => {
                return Err(
                    complain(tool, "no command specified").remedy("Say what to do: -A, -I, -D, -F, -L …")
                );
            }
            _ if ruled => return Err(complain(tool, "Illegal option with this command")),
            Verb::DeleteAt(chain, number) => IptCommand::Apply(op(NfCommand::DeleteAt(chain, number))),
            Verb::Plain(command) => IptCommand::Apply(op(command)),
            Verb::List(chain, commands) => {
                IptCommand::List { ipv6, table, chain, style: ListStyle { commands, ..self.style } }
            }
            Verb::Version => IptCommand::Version,
            Verb::Help => IptCommand::Help(format!(
                "{tool} [-t TABLE] -A|-I|-D|-C CHAIN RULE, -R CHAIN N RULE, -N|-X|-F|-Z|-L|-S [CHAIN], -P \
                CHAIN ACCEPT|DROP\n\
                 matches: -p -s -d -i -o, --sport --dport --tcp-flags --syn, -m \
                 multiport|mark|connmark|connbytes|conntrack|state|length|dscp|tos|comment, ! before any\n\
                 targets: ACCEPT DROP RETURN MARK CONNMARK CLASSIFY DSCP TOS SNAT DNAT MASQUERADE REDIRECT \
                 or a chain (-j, -g)\n"
            )),
        };
        Ok(IptablesCommandLine { command, notes: self.notes })
    }

    /// Is this a word of the translating target named before?
    fn translates(&self, word: &str) -> bool {
        match self.target_name.as_deref() {
            Some("SNAT" | "DNAT") => self.target.is_some(),
            Some("MASQUERADE") => word != "--persistent",
            Some("REDIRECT") => word == "--random",
            _ => false,
        }
    }

    fn choose(&mut self, word: &str) {
        if let Some(NetfilterTarget::Translate(Translate { to, .. })) = &mut self.target {
            to.choice = match word {
                "--random" => Choice::Random,
                "--random-fully" => Choice::RandomFully,
                _ => Choice::Persistent,
            };
            self.notes.push(format!("{word}: a port stays as it is here where it is free"));
        }
    }

    fn peek(&self) -> Option<&'a str> {
        self.args.get(self.at).map(String::as_str)
    }
    fn take(&mut self) -> Option<&'a str> {
        let word = self.peek()?;
        self.at += 1;
        Some(word)
    }
    fn value(&mut self, name: &str) -> Result<&'a str, Refusal> {
        match self.take() {
            Some(word) => Ok(word),
            None => Err(self.complain(format!("option \"{name}\" requires an argument")).at(self.at)),
        }
    }
    fn joined_or_next(&mut self, name: &str, joined: Option<&'a str>) -> Result<&'a str, Refusal> {
        match joined {
            Some(text) => Ok(text),
            None => self.value(name),
        }
    }
    /// The value of an option that may be negated. iptables has not taken a `!` behind the option since 1.4.
    fn inverted(
        &mut self,
        name: &str,
        joined: Option<&'a str>,
        not: bool,
    ) -> Result<(&'a str, bool), Refusal> {
        let text = self.joined_or_next(name, joined)?;
        if text != "!" {
            return Ok((text, not));
        }
        let remedy = format!("Write the ! before the option: ! {name} …");
        let letter = name.trim_start_matches('-').chars().next();
        let is_basic = matches!(name, "-s" | "-d" | "-i" | "-o")
            || matches!(
                name,
                "--source" | "--src" | "--destination" | "--dst" | "--in-interface" | "--out-interface"
            );
        let refusal = match (is_basic, letter, self.peek()) {
            (true, _, Some(next)) => bad_argument(self.tool, next).at(self.at),
            (_, Some('p'), _) if matches!(name, "-p" | "--protocol" | "--proto") => {
                self.complain("unknown protocol \"!\" specified").at(self.at - 1)
            }
            _ if name.contains("port") => self.complain("invalid port/service `!' specified").at(self.at - 1),
            _ => self.bad(name.trim_start_matches('-'), name, text),
        };
        Err(refusal.remedy(remedy))
    }
    fn chain(&mut self, name: &str, joined: Option<&'a str>) -> Result<String, Refusal> {
        let chain = self.joined_or_next(name, joined)?;
        if let Some(first) = chain.chars().next().filter(|first| ['-', '!'].contains(first)) {
            return Err(self.complain(format!("chain name not allowed to start with `{first}'")));
        }
        if chain.is_empty() || chain.contains(char::is_whitespace) {
            return Err(self.complain(format!("Invalid chain name `{chain}'")));
        }
        if chain.len() > LONGEST_CHAIN {
            return Err(self
                .complain(format!("chain name `{chain}' too long (must be under 29 chars)"))
                .at(self.at - 1));
        }
        Ok(chain.into())
    }
    fn maybe_chain(&mut self, joined: Option<&'a str>) -> Option<String> {
        if let Some(chain) = joined {
            return Some(chain.into());
        }
        self.peek().filter(|word| !word.starts_with(['-', '!']))?;
        self.take().map(String::from)
    }
    fn number(&mut self) -> Option<usize> {
        let number = u32_in(self.peek()?, 10)?;
        self.at += 1;
        Some(number as usize)
    }
    fn address(&self, text: &str) -> Result<([u8; 16], u8), Refusal> {
        address(text, self.ipv6).ok_or_else(|| {
            // What the tool takes and is not built here, as against what it takes for no address.
            let at = self.at - 1;
            if text.contains(',') {
                return later("a list of addresses here", at);
            }
            if !self.ipv6 && text.split_once('/').is_some_and(|(_, mask)| mask.parse::<Ipv4Addr>().is_ok()) {
                return later(format!("a mask with gaps ({text})"), at);
            }
            if is_name(text) {
                return later(format!("the look-up of names ({text})"), at);
            }
            self.complain(format!("host/network `{text}' not found"))
                .at(self.at - 1)
                .remedy("Give an address or prefix.")
        })
    }
    fn device(&self, text: &str) -> Result<String, Refusal> {
        if text.len() > 15 {
            return Err(self.complain(format!("interface name `{text}' must be shorter than IFNAMSIZ (15)")));
        }
        Ok(text.into())
    }
    fn basic(&mut self, slot: usize, what: Condition, not: bool, flag: &str) -> Result<(), Refusal> {
        if self.basics[slot].is_some() {
            return Err(self.complain(format!("multiple {flag} flags not allowed")).at(self.at - 1));
        }
        // `-p all`, `-s 0/0` and `-i +` are no conditions.
        let nothing = match &what {
            Condition::Protocol(0) => true,
            Condition::Source(_, 0) | Condition::Destination(_, 0) => !not,
            Condition::In(name) | Condition::Out(name) => name == "+" && !not,
            _ => false,
        };
        if !nothing {
            self.basics[slot] = Some(Match { not, what });
        }
        Ok(())
    }
    /// Addresses are looked up when the whole line has been read.
    fn named(&mut self, slot: usize, text: &'a str, not: bool, flag: &'static str) -> Result<(), Refusal> {
        if self.addresses.iter().any(|address| address.0 == slot) {
            return Err(self.complain(format!("multiple {flag} flags not allowed")).at(self.at - 1));
        }
        self.addresses.push((slot, text, not, flag, self.at));
        Ok(())
    }
    fn set(&mut self, target: NetfilterTarget) -> Result<(), Refusal> {
        if self.target.is_some() {
            return Err(self.complain("the target's option may be given once"));
        }
        self.target = Some(target);
        Ok(())
    }
    /// A value that an extension does not take, in iptables' words where they are known.
    fn bad(&self, extension: &str, name: &str, text: &str) -> Refusal {
        let among = |most: &str| {
            format!("{extension}: bad value for option \"{name}\", or out of range (0-{most}).\n")
        };
        let what = match name {
            "--mark" | "--set-mark" | "--set-xmark" => {
                format!("{extension}: bad integer value for option \"{name}\", or out of range.\n")
            }
            "--and-mark" | "--or-mark" | "--xor-mark" | "--mask" | "--nfmask" | "--ctmask" => {
                among("4294967295")
            }
            "--dscp" | "--set-dscp" => among("63"),
            "--dscp-class" | "--set-dscp-class" => format!("Invalid DSCP value `{text}'"),
            "--tos" | "--set-tos" => format!("Symbolic name \"{text}\" is unknown"),
            "--set-class" => format!("Bad class value \"{text}\""),
            "--length" => {
                let number = |part: &str| {
                    part.trim_end_matches(|letter: char| !letter.is_ascii_digit()).parse::<u16>()
                };
                let wrong = text.split(':').find(|part| part.parse::<u16>().is_err()).unwrap_or(text);
                let digits =
                    wrong.len() - wrong.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
                match number(&wrong[..digits]) {
                    Ok(_) if digits < wrong.len() => format!(
                        "{extension}: Argument to \"{name}\" has unexpected characters near \"{}\".\n",
                        &wrong[digits..]
                    ),
                    _ => format!(
                        "{extension}: bad value for option \"{name}\" near \"{wrong}\", or out of range (0-65535).\n"
                    ),
                }
            }
            _ => format!("{extension}: Bad value for \"{name}\" option: \"{text}\""),
        };
        self.complain(what).at(self.at.saturating_sub(1))
    }
    fn complain(&self, what: impl std::fmt::Display) -> Refusal {
        complain(self.tool, what)
    }
}

/// Is it a host's name, which iptables would look up, and might find (RFC 6761: nothing below `invalid`)?
fn is_name(text: &str) -> bool {
    let label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let may_be = !text.ends_with(".invalid");
    may_be && text.split('.').all(label) && text.bytes().any(|byte| byte.is_ascii_alphabetic())
}

fn bad_argument(tool: &str, word: &str) -> Refusal {
    Refusal::new(2, format!("Bad argument `{word}'")).then(&usage(tool))
}

/// Where iptables sends its user.
fn usage(tool: &str) -> String {
    format!("Try `{tool} -h' or '{tool} --help' for more information.")
}

/// Where packets come to a chain without that device.
fn never_has(chain: &str, flag: &str) -> bool {
    match flag {
        "-i" => matches!(chain, "OUTPUT" | "POSTROUTING"),
        _ => matches!(chain, "PREROUTING" | "INPUT"),
    }
}

fn translate(how: Translator) -> NetfilterTarget {
    NetfilterTarget::Translate(Translate { how, to: Translation::default() })
}

/// Conditions of the protocol's own extension are grouped where it was first named, in an order of its own.
fn gather_ports(matches: &mut Vec<Match>) {
    let rank = |m: &Match| match m.what {
        Condition::SourcePort(_) => Some(0),
        Condition::DestinationPort(_) => Some(1),
        Condition::TcpFlags(..) => Some(2),
        _ => None,
    };
    let Some(first) = matches.iter().position(|m| rank(m).is_some()) else { return };
    let mut gathered: Vec<Match> = matches.extract_if(first.., |m| rank(m).is_some()).collect();
    gathered.sort_by_key(rank);
    matches.splice(first..first, gathered);
}

/// `-tmangle` → `-t`, `mangle`; `--table=mangle` → `--table`, `mangle`.
fn split(word: &str) -> (&str, Option<&str>) {
    if word.starts_with("--") {
        return match word.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (word, None),
        };
    }
    let takes_value =
        word.as_bytes().get(1).is_some_and(|letter| b"tADCIRFZXNPLSpsdiomjgwWc".contains(letter));
    if word.starts_with('-') && word.len() > 2 && takes_value && word.is_char_boundary(2) {
        return (&word[..2], Some(&word[2..]));
    }
    (word, None)
}

fn invertible(name: &str) -> bool {
    const PLAIN: [&str; 50] = [
        "-A",
        "-D",
        "-C",
        "-I",
        "-R",
        "-F",
        "-Z",
        "-X",
        "-N",
        "-P",
        "-L",
        "-S",
        "-V",
        "-h",
        "-t",
        "-n",
        "-v",
        "-x",
        "-w",
        "-W",
        "-c",
        "-m",
        "-j",
        "-g",
        "--append",
        "--delete",
        "--insert",
        "--flush",
        "--list",
        "--table",
        "--match",
        "--jump",
        "--goto",
        "--set-mark",
        "--set-xmark",
        "--set-class",
        "--set-dscp",
        "--set-dscp-class",
        "--set-tos",
        "--comment",
        "--save-mark",
        "--restore-mark",
        "--mask",
        "--nfmask",
        "--ctmask",
        "--connbytes-mode",
        "--connbytes-dir",
        "--to-source",
        "--to-destination",
        "--to-ports",
    ];
    name.starts_with('-') && !PLAIN.contains(&name)
}
