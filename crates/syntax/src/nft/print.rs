//! Rules and tables as nft lists them; what is listed can be read again.

use super::names::{self, DSCPS, FLAGS, ICMP, ICMPV6, LEVELS, PROTOCOLS, STATES};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use tidegate_packet::Handle;
use tidegate_policy::netfilter::{
    Base, Condition, Connbytes, ConnmarkTarget, Connstates, CountDirection, CountMode, Family, Match,
    NetfilterRule, NetfilterTarget, NfCommand, NfOp,
};

/// A table to list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TableListing {
    /// The table's address family.
    pub family: Family,
    /// The table's name.
    pub name: String,
    /// iptables made it.
    pub of_iptables: bool,
    /// The table's handle, for `nft -a`.
    pub handle: u64,
    /// The table's chains.
    pub chains: Vec<ChainListing>,
}

/// A chain to list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChainListing {
    /// The chain's name.
    pub name: String,
    /// The chain's handle, for `nft -a`.
    pub handle: u64,
    /// Its hook and priority, and whether it accepts by default.
    pub base: Option<(Base, bool)>,
    /// Its rules, with number, packets and bytes.
    pub rules: Vec<(NetfilterRule, u64, (u64, u64))>,
}

/// How tables are listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// `-a`: with the numbers of chains and rules.
    pub handles: bool,
    /// `-s`: without counts.
    pub stateless: bool,
    /// `list chains`: without rules.
    pub bare: bool,
}

/// `list tables`.
pub fn print_tables(tables: &[TableListing]) -> String {
    tables.iter().map(|table| format!("table {} {}\n", table.family.name(), table.name)).collect()
}

/// `list table`, and one of the tables of `list ruleset`.
pub fn print_table(table: &TableListing, style: Style) -> String {
    let number = |handle: u64| if style.handles { format!(" # handle {handle}") } else { String::new() };
    let mut out = String::new();
    if table.of_iptables {
        let (family, name) = (table.family.name(), &table.name);
        let _ = writeln!(out, "# Warning: table {family} {name} is managed by iptables-nft, do not touch!");
    }
    let _ = writeln!(out, "table {} {} {{{}", table.family.name(), table.name, number(table.handle));
    for (at, chain) in table.chains.iter().enumerate() {
        if at > 0 && !style.bare {
            out.push('\n');
        }
        let _ = writeln!(out, "\tchain {} {{{}", chain.name, number(chain.handle));
        if let Some((base, accepts)) = chain.base {
            let _ = writeln!(out, "\t\t{}", place(base, Some(accepts)));
        }
        let shown = if style.bare { &[][..] } else { &chain.rules };
        // The parts of one rule are one line.
        for parts in shown.chunk_by(|(_, _, _), (rule, _, _)| rule.part.is_later()) {
            let handle = parts.first().map_or(0, |(_, handle, _)| *handle);
            let of_iptables = table.of_iptables.then_some(0);
            let part = |(rule, _, counts): &(NetfilterRule, u64, (u64, u64))| {
                let counter = rule.counter.or(of_iptables);
                (NetfilterRule { counter, ..rule.clone() }, (!style.stateless).then_some(*counts))
            };
            let parts: Vec<_> = parts.iter().map(part).collect();
            let _ = writeln!(out, "\t\t{}{}", print_parts(&parts, table.family), number(handle));
        }
        out.push_str("\t}\n");
    }
    out.push_str("}\n");
    out
}

/// `type filter hook output priority mangle; policy accept;`
fn place(base: Base, policy: Option<bool>) -> String {
    let (kind, hook, priority) = (base.kind.name(), base.hook.name(), names::priority(base.priority));
    let policy = policy
        .map_or(String::new(), |accepts| format!(" policy {};", if accepts { "accept" } else { "drop" }));
    format!("type {kind} hook {hook} priority {priority};{policy}")
}

/// The command for an operation, without the tool's name, or for those that put the parts of one rule;
/// `None`: no command expresses it.
pub fn print_ops(ops: &[NfOp]) -> Option<String> {
    let op = ops.first()?;
    let at = format!("{} {}", op.family.name(), op.table);
    let text_of = |first: &NetfilterRule| {
        let mut parts: Vec<_> =
            ops.iter().filter_map(|op| op.command.rule()).map(|rule| (rule.clone(), None)).collect();
        // Behind another rule the last part is put first.
        if first.part.is_later() {
            parts.reverse();
        }
        print_parts(&parts, op.family)
    };
    Some(match &op.command {
        NfCommand::NewTable => format!("add table {at}"),
        NfCommand::DeleteTable => format!("delete table {at}"),
        NfCommand::NewChain(chain) => format!("add chain {at} {chain}"),
        NfCommand::NewBase(chain, base, policy) => {
            format!("add chain {at} {chain} {{ {} }}", place(*base, *policy))
        }
        NfCommand::DeleteChain(Some(chain)) => format!("delete chain {at} {chain}"),
        NfCommand::Flush(None) => format!("flush table {at}"),
        NfCommand::Flush(Some(chain)) => format!("flush chain {at} {chain}"),
        NfCommand::Append(chain, rule) => format!("add rule {at} {chain} {}", text_of(rule)),
        NfCommand::Insert(chain, 0 | 1, rule) => format!("insert rule {at} {chain} {}", text_of(rule)),
        NfCommand::Beside { chain, handle, behind, rule } => {
            let verb = if *behind { "add" } else { "insert" };
            format!("{verb} rule {at} {chain} handle {handle} {}", text_of(rule))
        }
        NfCommand::ReplaceHandle(chain, handle, rule) => {
            format!("replace rule {at} {chain} handle {handle} {}", text_of(rule))
        }
        NfCommand::DeleteHandle(chain, handle) => format!("delete rule {at} {chain} handle {handle}"),
        _ => return None,
    })
}

/// A rule; `counts` are the packets and bytes behind `counter`. A part of a rule is written as a rule of its
/// own.
pub fn print_rule(rule: &NetfilterRule, family: Family, counts: Option<(u64, u64)>) -> String {
    print_parts(&[(rule.clone(), counts)], family)
}

/// A rule in its parts, each with packets and bytes where they are listed, as nft lists it.
pub fn print_parts(rules: &[(NetfilterRule, Option<(u64, u64)>)], family: Family) -> String {
    let mut parts: Vec<String> = Vec::new();
    let (mut comment, mut written, mut acts, mut reads_connection) = (None, 0, false, false);
    for (rule, counts) in rules {
        let version = rule.matches.iter().find_map(|m| match m.what {
            Condition::Version6(v6) => Some(v6 != m.not),
            _ => None,
        });
        let writer = Writer { rule, family, v6: version.unwrap_or(family == Family::Ipv6) };
        // Later parts repeat the conditions of those before them, but for the comment.
        let conditions = rule.matches.iter().enumerate();
        reads_connection |= rule.targets().any(reads_connmark);
        for (at, found) in conditions.filter(|(_, m)| !matches!(m.what, Condition::Comment(_))).skip(written)
        {
            written += 1;
            // A statement that reads the mark of a connection implies that there is one.
            if !(reads_connection && found.what == Condition::Connmark(0, 0)) {
                parts.extend(writer.matching(at, found));
            }
        }
        let counter = counts
            .map_or("counter".into(), |(packets, bytes)| format!("counter packets {packets} bytes {bytes}"));
        parts.extend(writer.statements(&counter));
        acts |= rule.targets().next().is_some();
        comment = rule.matches.iter().find_map(|m| match &m.what {
            Condition::Comment(text) => Some(format!("comment \"{text}\"")),
            _ => None,
        });
    }
    if !acts && parts.is_empty() {
        parts.push("continue".into());
    }
    parts.extend(comment);
    parts.join(" ")
}

/// Does a statement need the mark of the packet's connection?
fn reads_connmark(target: &NetfilterTarget) -> bool {
    match target {
        NetfilterTarget::Connmark(ConnmarkTarget::Restore { .. }) => true,
        NetfilterTarget::Connmark(ConnmarkTarget::Set { mask, .. }) => *mask != u32::MAX,
        _ => false,
    }
}

struct Writer<'r> {
    rule: &'r NetfilterRule,
    family: Family,
    v6: bool,
}

/// The first member of a set, or the condition itself: all members of a set test the same field.
fn first(what: &Condition) -> &Condition {
    match what {
        Condition::Any(several) => several.first().unwrap_or(what),
        one => one,
    }
}

fn all(what: &Condition) -> &[Condition] {
    match what {
        Condition::Any(several) => several,
        one => std::slice::from_ref(one),
    }
}

impl Writer<'_> {
    fn ip(&self) -> &'static str {
        if self.v6 { "ip6" } else { "ip" }
    }

    /// The protocol that ports and flags are of.
    fn protocol(&self) -> Option<u8> {
        self.rule.matches.iter().find_map(|m| match m.what {
            Condition::Protocol(number) if !m.not => Some(number),
            _ => None,
        })
    }

    /// Whether another part of the rule implies this IP version.
    fn version_is_known(&self) -> bool {
        let matches = |m: &Match| {
            matches!(
                first(&m.what),
                Condition::Source(..)
                    | Condition::Destination(..)
                    | Condition::Dscp(_)
                    | Condition::IcmpType(..)
            )
        };
        self.rule.matches.iter().any(matches)
            || self.rule.targets().any(|target| matches!(target, NetfilterTarget::Dscp(_)))
    }

    /// Whether a later part of the rule implies the protocol.
    fn protocol_is_known(&self, number: u8) -> bool {
        let matches = |m: &Match| match first(&m.what) {
            Condition::SourcePort(_) | Condition::DestinationPort(_) => matches!(number, 6 | 17 | 33 | 132),
            Condition::SourcePorts(_) | Condition::DestinationPorts(_) => matches!(number, 6 | 17 | 33 | 132),
            Condition::TcpFlags(..) => number == 6,
            Condition::IcmpType(..) => matches!(number, 1 | 58),
            _ => false,
        };
        self.rule.matches.iter().any(matches)
            || number == 6 && self.rule.targets().any(|target| matches!(target, NetfilterTarget::Tcpmss(_)))
    }

    fn matching(&self, at: usize, found: &Match) -> Option<String> {
        let not = if found.not { " != " } else { " " };
        let what = &found.what;
        let port = || match self.protocol() {
            Some(number) if self.protocol_is_known(number) => {
                names::name(&PROTOCOLS, number.into()).unwrap_or("th")
            }
            _ => "th",
        };
        let ports = |way: &str, ranges: &[(u16, u16)]| {
            let values = ranges.iter().map(|(low, high)| span(low, high, |port| port.to_string()));
            format!("{} {way}{not}{}", port(), set(values.collect()))
        };
        Some(match first(what) {
            Condition::Version6(v6) => {
                // The protocol is matched in the header of the packet's IP version.
                let next = self.rule.matches.get(at + 1).map(|m| first(&m.what));
                if self.version_is_known()
                    || matches!(next, Some(Condition::Protocol(number)) if !self.protocol_is_known(*number))
                {
                    return None;
                }
                format!("meta nfproto{not}{}", if *v6 { "ipv6" } else { "ipv4" })
            }
            Condition::Protocol(0) => return None,
            Condition::Protocol(number) => self.protocols(at, found, *number)?,
            Condition::Source(..) => format!("{} saddr{not}{}", self.ip(), set(networks(all(what)))),
            Condition::Destination(..) => format!("{} daddr{not}{}", self.ip(), set(networks(all(what)))),
            Condition::In(_) => format!("iifname{not}{}", set(devices(all(what)))),
            Condition::Out(_) => format!("oifname{not}{}", set(devices(all(what)))),
            Condition::SourcePort(range) => ports("sport", std::slice::from_ref(range)),
            Condition::DestinationPort(range) => ports("dport", std::slice::from_ref(range)),
            Condition::SourcePorts(ranges) => ports("sport", ranges),
            Condition::DestinationPorts(ranges) => ports("dport", ranges),
            // nft has no word for "either port"; a comment gives the meaning.
            Condition::Ports(ranges) => ports("{ sport, dport }", ranges),
            Condition::TcpFlags(..) => tcp_flags(all(what), found.not),
            Condition::Mark(..) => marks("meta mark", all(what), found.not),
            Condition::Connmark(..) => marks("ct mark", all(what), found.not),
            Condition::Length(..) => {
                let values = all(what).iter().filter_map(|one| match one {
                    Condition::Length(low, high) => {
                        Some(compared((*low).into(), (*high).into(), u16::MAX.into()))
                    }
                    _ => None,
                });
                format!("meta length{not}{}", set(values.collect()))
            }
            Condition::Dscp(_) => format!("{} dscp{not}{}", self.ip(), set(self.numbers(all(what)))),
            Condition::IcmpType(..) => {
                format!(
                    "{} type{not}{}",
                    if self.v6 { "icmpv6" } else { "icmp" },
                    set(self.numbers(all(what)))
                )
            }
            Condition::Tos(value, mask) => {
                format!("@nh,8,8 & {mask:#x}{}{value:#x}", if found.not { " != " } else { " == " })
            }
            Condition::Connstate(states) | Condition::State(states) => {
                format!("ct state{not}{}", state_names(*states))
            }
            Condition::Connbytes(range) => format!("{}{not}{}", carried(range), amounts(all(what))),
            Condition::Comment(_) | Condition::Any(_) => return None,
        })
    }

    fn protocols(&self, at: usize, found: &Match, number: u8) -> Option<String> {
        let single = !matches!(found.what, Condition::Any(_)) && !found.not;
        if single && self.protocol_is_known(number) {
            return None;
        }
        let before = at.checked_sub(1).and_then(|at| self.rule.matches.get(at));
        let key = match before.map(|m| &m.what) {
            Some(Condition::Version6(false)) => "ip protocol",
            Some(Condition::Version6(true)) => "ip6 nexthdr",
            _ => "meta l4proto",
        };
        let not = if found.not { " != " } else { " " };
        Some(format!("{key}{not}{}", set(self.numbers(all(&found.what)))))
    }

    /// Numbers that have names.
    fn numbers(&self, conditions: &[Condition]) -> Vec<String> {
        let one = |what: &Condition| {
            let (table, value): (&[(&str, u64)], u8) = match what {
                Condition::Protocol(number) => (&PROTOCOLS, *number),
                Condition::Dscp(dscp) => (&DSCPS, *dscp),
                Condition::IcmpType(kind, _) if self.v6 => (&ICMPV6, *kind),
                Condition::IcmpType(kind, _) => (&ICMP, *kind),
                _ => return None,
            };
            Some(names::name(table, value.into()).map_or_else(|| value.to_string(), str::to_owned))
        };
        conditions.iter().filter_map(one).collect()
    }

    /// The rule's statements, its counter among them.
    fn statements(&self, counter: &str) -> Vec<String> {
        let targets: Vec<&NetfilterTarget> = self.rule.targets().collect();
        let (mut parts, mut at) = (Vec::new(), 0);
        loop {
            if self.rule.counter == Some(at) || at >= targets.len() && self.rule.counter > Some(at) {
                parts.push(counter.to_owned());
            }
            let Some(target) = targets.get(at) else { return parts };
            // A mark that comes from the other one, and bits of it turned over, is one statement.
            let next = targets.get(at + 1).filter(|_| self.rule.counter != Some(at + 1));
            let joined = next.and_then(|next| joined(target, next));
            at += if joined.is_some() { 2 } else { 1 };
            parts.push(joined.unwrap_or_else(|| self.target(target)));
        }
    }

    fn target(&self, target: &NetfilterTarget) -> String {
        match target {
            NetfilterTarget::Accept => "accept".into(),
            NetfilterTarget::Drop => "drop".into(),
            NetfilterTarget::Return => "return".into(),
            NetfilterTarget::Jump(chain) => format!("jump {chain}"),
            NetfilterTarget::Goto(chain) => format!("goto {chain}"),
            NetfilterTarget::Mark { value, mask } => {
                format!("meta mark set {}", changed("meta mark", *value, *mask))
            }
            NetfilterTarget::Connmark(ConnmarkTarget::Set { value, mask }) => {
                format!("ct mark set {}", changed("ct mark", *value, *mask))
            }
            NetfilterTarget::Connmark(ConnmarkTarget::Save { nfmask, ctmask }) => {
                format!("ct mark set {}", copied("meta mark", *nfmask, "ct mark", *ctmask))
            }
            NetfilterTarget::Connmark(ConnmarkTarget::Restore { nfmask, ctmask }) => {
                format!("meta mark set {}", copied("ct mark", *ctmask, "meta mark", *nfmask))
            }
            NetfilterTarget::Classify(Handle(0)) => "meta priority set none".into(),
            NetfilterTarget::Classify(class) if *class == Handle::ROOT => "meta priority set root".into(),
            NetfilterTarget::Classify(class) => {
                format!("meta priority set {:x}:{:x}", class.major(), class.minor())
            }
            NetfilterTarget::Dscp(dscp) => format!("{} dscp set {}", self.ip(), dscp_name(*dscp)),
            NetfilterTarget::Tos(value, _) => format!("{} dscp set {}", self.ip(), dscp_name(value >> 2)),
            NetfilterTarget::Notrack(_) => "notrack".into(),
            NetfilterTarget::Reject(_) => "reject".into(),
            NetfilterTarget::Tcpmss(None) => "tcp option maxseg size set rt mtu".into(),
            NetfilterTarget::Tcpmss(Some(size)) => format!("tcp option maxseg size set {size}"),
            NetfilterTarget::Log { level, prefix, .. } => log(*level, prefix),
            NetfilterTarget::Translate(how) => {
                let chain = if self.family == Family::Ipv6 { "ip6" } else { "ip" };
                format!("# xt_{} ({chain})", how.how.name())
            }
        }
    }
}

fn log(level: u8, prefix: &str) -> String {
    let prefix = if prefix.is_empty() { String::new() } else { format!(" prefix \"{prefix}\"") };
    let level = if level == 4 { "" } else { LEVELS.get(usize::from(level)).copied().unwrap_or("warn") };
    format!("log{prefix}{}{level}", if level.is_empty() { "" } else { " level " })
}

fn dscp_name(dscp: u8) -> String {
    names::name(&DSCPS, dscp.into()).map_or_else(|| dscp.to_string(), str::to_owned)
}

/// One value as it is, several in braces.
fn set(values: Vec<String>) -> String {
    match values.as_slice() {
        [one] => one.clone(),
        several => format!("{{ {} }}", several.join(", ")),
    }
}

fn span<N: PartialEq>(low: &N, high: &N, text: impl Fn(&N) -> String) -> String {
    if low == high { text(low) } else { format!("{}-{}", text(low), text(high)) }
}

/// A range of numbers up to `most`.
fn compared(low: u64, high: u64, most: u64) -> String {
    match (low, high) {
        (low, high) if low == high => low.to_string(),
        (0, high) => format!("< {}", high.saturating_add(1)),
        (low, high) if high == most => format!("> {}", low - 1),
        (low, high) => format!("{low}-{high}"),
    }
}

fn devices(conditions: &[Condition]) -> Vec<String> {
    let name = |what: &Condition| match what {
        Condition::In(name) | Condition::Out(name) => Some(match name.strip_suffix('+') {
            Some(begin) => format!("\"{begin}*\""),
            None => format!("\"{name}\""),
        }),
        _ => None,
    };
    conditions.iter().filter_map(name).collect()
}

/// The networks as prefixes, and as a range where only several prefixes would cover it.
fn networks(conditions: &[Condition]) -> Vec<String> {
    let mut spans: Vec<(u128, u128, bool)> = Vec::new();
    for what in conditions {
        let (Condition::Source(bytes, bits) | Condition::Destination(bytes, bits)) = what else { continue };
        let v4 = bytes[..12].iter().all(|byte| *byte == 0) && *bits <= 32;
        let free = if v4 { 32 } else { 128 } - u32::from(*bits);
        let low = u128::from_be_bytes(*bytes);
        let high = low | 1u128.checked_shl(free).map_or(u128::MAX, |size| size - 1);
        match spans.last_mut() {
            Some(last) if last.1.checked_add(1) == Some(low) && last.2 == v4 => last.1 = high,
            _ => spans.push((low, high, v4)),
        }
    }
    spans.into_iter().map(|(low, high, v4)| network(low, high, v4)).collect()
}

fn network(low: u128, high: u128, v4: bool) -> String {
    let text = |value: &u128| match v4 {
        true => Ipv4Addr::from(*value as u32).to_string(),
        false => Ipv6Addr::from(*value).to_string(),
    };
    let width = if v4 { 32 } else { 128 };
    let free = (high - low)
        .checked_add(1)
        .map_or(128, |size| if size.is_power_of_two() { size.trailing_zeros() } else { 0 });
    let is_prefix = free > 0 && low.checked_shr(free).unwrap_or(0).checked_shl(free).unwrap_or(0) == low;
    match is_prefix {
        true => format!("{}/{}", text(&low), width - free),
        false => span(&low, &high, text),
    }
}

fn marks(key: &str, conditions: &[Condition], not: bool) -> String {
    let pairs: Vec<(u32, u32)> = conditions
        .iter()
        .filter_map(|what| match what {
            Condition::Mark(value, mask) | Condition::Connmark(value, mask) => Some((*value, *mask)),
            _ => None,
        })
        .collect();
    let shared = pairs.first().map_or(u32::MAX, |(_, mask)| *mask);
    let ends_in_zeros = |mask: u32| mask.leading_ones() + mask.trailing_zeros() == 32;
    if shared != u32::MAX
        && pairs.iter().all(|(_, mask)| *mask == shared)
        && (pairs.len() == 1 || !ends_in_zeros(shared))
    {
        let values = pairs.iter().map(|(value, _)| format!("{value:#010x}")).collect();
        return format!("{key} & {shared:#010x}{}{}", if not { " != " } else { " == " }, set(values));
    }
    let mut spans: Vec<(u32, u32)> = Vec::new();
    for (value, mask) in pairs {
        let high = value | !mask;
        match spans.last_mut() {
            Some(last) if last.1.checked_add(1) == Some(value) => last.1 = high,
            _ => spans.push((value, high)),
        }
    }
    let values = spans.iter().map(|(low, high)| span(low, high, |mark| format!("{mark:#010x}")));
    format!("{key}{}{}", if not { " != " } else { " " }, set(values.collect()))
}

fn flag_names(flags: u8) -> String {
    if flags == 0 {
        return "0x0".into();
    }
    let names = FLAGS.iter().filter(|(_, bit)| u64::from(flags) & bit != 0).map(|(name, _)| *name);
    names.collect::<Vec<_>>().join(",")
}

fn tcp_flags(conditions: &[Condition], not: bool) -> String {
    let pairs: Vec<(u8, u8)> = conditions
        .iter()
        .filter_map(|what| match what {
            Condition::TcpFlags(mask, wanted) => Some((*mask, *wanted)),
            _ => None,
        })
        .collect();
    let exact = |pairs: &[(u8, u8)]| set(pairs.iter().map(|(_, wanted)| flag_names(*wanted)).collect());
    match (pairs.as_slice(), not) {
        ([(0xff, wanted)], false) => format!("tcp flags == {}", flag_names(*wanted)),
        ([(0xff, wanted)], true) => format!("tcp flags != {}", flag_names(*wanted)),
        ([(mask, 0)], true) => format!("tcp flags {}", flag_names(*mask)),
        ([(mask, 0)], false) => format!("tcp flags ! {}", flag_names(*mask)),
        ([(mask, wanted)], not) => {
            format!(
                "tcp flags{} {} / {}",
                if not { " !=" } else { "" },
                flag_names(*wanted),
                flag_names(*mask)
            )
        }
        (several, false) => format!("tcp flags {}", exact(several)),
        (several, true) => format!("tcp flags != {}", exact(several)),
    }
}

fn state_names(states: Connstates) -> String {
    STATES.iter().filter(|(_, state)| states.has(*state)).map(|(name, _)| *name).collect::<Vec<_>>().join(",")
}

/// `ct original bytes`.
fn carried(range: &Connbytes) -> String {
    let direction = match range.direction {
        CountDirection::Original => "original ",
        CountDirection::Reply => "reply ",
        CountDirection::Both => "",
    };
    let mode = match range.mode {
        CountMode::Packets => "packets",
        CountMode::Bytes => "bytes",
        CountMode::Average => "avgpkt",
    };
    format!("ct {direction}{mode}")
}

fn amounts(conditions: &[Condition]) -> String {
    let one = |what: &Condition| match what {
        Condition::Connbytes(range) => Some(compared(range.from, range.to, u64::MAX)),
        _ => None,
    };
    set(conditions.iter().filter_map(one).collect())
}

/// Two steps in which one mark is set from the other, as the one statement that they are in nft.
fn joined(first: &NetfilterTarget, then: &NetfilterTarget) -> Option<String> {
    match (first, then) {
        (
            NetfilterTarget::Connmark(ConnmarkTarget::Restore { nfmask: u32::MAX, ctmask }),
            NetfilterTarget::Mark { value, mask: 0 },
        ) => Some(format!("meta mark set {}", changed("ct mark", *value, !ctmask))),
        (
            NetfilterTarget::Connmark(ConnmarkTarget::Save { nfmask, ctmask: u32::MAX }),
            NetfilterTarget::Connmark(ConnmarkTarget::Set { value, mask: 0 }),
        ) => Some(format!("ct mark set {}", changed("meta mark", *value, !nfmask))),
        _ => None,
    }
}

/// A mark with some of its bits changed: `(mark & !mask) ^ value`.
fn changed(mark: &str, value: u32, mask: u32) -> String {
    match (value, mask) {
        (value, u32::MAX) => format!("{value:#010x}"),
        (value, 0) => format!("{mark} ^ {value:#010x}"),
        (0, mask) => format!("{mark} & {:#010x}", !mask),
        (value, mask) if value == mask => format!("{mark} | {value:#010x}"),
        (value, mask) if value & !mask == 0 => format!("{mark} & {:#010x} | {value:#010x}", !mask | value),
        (value, mask) => format!("{mark} & {:#010x} ^ {value:#010x}", !mask),
    }
}

/// Bits of one mark in the place of bits of another.
fn copied(from: &str, taken: u32, to: &str, replaced: u32) -> String {
    let bits = if taken == u32::MAX { from.to_owned() } else { format!("{from} & {taken:#010x}") };
    if replaced == u32::MAX { bits } else { format!("{to} & {:#010x} ^ ({bits})", !replaced) }
}
