//! iptables' listings: `-S`, `-L`, `iptables-save`.

use super::command::ListStyle;
use super::values;
use super::values::{
    COUNT_DIRECTIONS, COUNT_MODES, ICMP_TYPES, ICMPV6_TYPES, LOG_FLAGS, LOG_LEVELS, PROTOCOLS, SERVICES,
    STATES, TCP_FLAGS, TOS_NAMES,
};
use std::net::{Ipv4Addr, Ipv6Addr};
use tidegate_policy::netfilter::{
    Choice, Condition, Connbytes, ConnmarkTarget, Connstates, Match, NetfilterRule, NetfilterTarget,
    Translate, Translation, Translator,
};

/// A chain to list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListedChain {
    /// The chain's name.
    pub name: String,
    /// Its policy (true = accept), for the built-in ones.
    pub policy: Option<bool>,
    /// How many rules lead to it, for the others.
    pub references: usize,
    /// Packets that reached the policy.
    pub packets: u64,
    /// Bytes that reached the policy.
    pub bytes: u64,
    /// The chain's rules, in order.
    pub rules: Vec<ListedRule>,
}

/// A rule to list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListedRule {
    /// The rule itself.
    pub rule: NetfilterRule,
    /// Packets that matched.
    pub packets: u64,
    /// Bytes that matched.
    pub bytes: u64,
}

/// `-L` or `-S` of a table's chains.
pub fn list(chains: &[ListedChain], ipv6: bool, style: &ListStyle) -> String {
    if style.commands {
        return commands(chains, ipv6, style.verbose);
    }
    let parts: Vec<String> = chains.iter().map(|chain| listed(chain, ipv6, style)).collect();
    parts.join("\n")
}

/// A table as `iptables-save` writes it, without the comments that carry the date.
pub fn save(table: &str, chains: &[ListedChain], ipv6: bool, counters: bool) -> String {
    let mut out = format!("*{table}\n");
    for chain in chains {
        let policy = chain.policy.map_or("-", |accept| if accept { "ACCEPT" } else { "DROP" });
        out.push_str(&format!(":{} {policy} [{}:{}]\n", chain.name, chain.packets, chain.bytes));
    }
    for chain in chains {
        for rule in &chain.rules {
            if counters {
                out.push_str(&format!("[{}:{}] ", rule.packets, rule.bytes));
            }
            out.push_str(&format!("-A {}{}\n", chain.name, print_rule(&rule.rule, ipv6)));
        }
    }
    out.push_str("COMMIT\n");
    out
}

/// A rule in the words that make it, each with a blank before it.
pub fn print_rule(rule: &NetfilterRule, ipv6: bool) -> String {
    let protocol = rule.matches.iter().find_map(|m| match m.what {
        Condition::Protocol(number) if !m.not => Some(number),
        _ => None,
    });
    let mut out = String::new();
    let mut own = false;
    for found in &rule.matches {
        // Options of the protocol's own extension are grouped behind one -m.
        let also = is_own(&found.what);
        if also && !own {
            out.push_str(&format!(" -m {}", protocol.map_or_else(|| "tcp".into(), protocol_name)));
        }
        own = also;
        out.push_str(&condition(found, ipv6));
    }
    match &rule.target {
        None => {}
        Some(NetfilterTarget::Accept) => out.push_str(" -j ACCEPT"),
        Some(NetfilterTarget::Drop) => out.push_str(" -j DROP"),
        Some(NetfilterTarget::Reject(with)) => out.push_str(&format!(" -j REJECT --reject-with {with}")),
        Some(NetfilterTarget::Tcpmss(None)) => out.push_str(" -j TCPMSS --clamp-mss-to-pmtu"),
        Some(NetfilterTarget::Tcpmss(Some(mss))) => out.push_str(&format!(" -j TCPMSS --set-mss {mss}")),
        Some(NetfilterTarget::Log { level, prefix, flags }) => {
            out.push_str(" -j LOG");
            if !prefix.is_empty() {
                out.push_str(&format!(" --log-prefix {}", quoted(prefix)));
            }
            if *level != 4 {
                out.push_str(&format!(" --log-level {level}"));
            }
            log_flags(*flags).for_each(|flag| out.push_str(&format!(" --log-{flag}")));
        }
        Some(NetfilterTarget::Notrack(true)) => out.push_str(" -j CT --notrack"),
        Some(NetfilterTarget::Notrack(false)) => out.push_str(" -j NOTRACK"),
        Some(NetfilterTarget::Return) => out.push_str(" -j RETURN"),
        Some(NetfilterTarget::Mark { value, mask }) => {
            out.push_str(&format!(" -j MARK --set-xmark {value:#x}/{mask:#x}"))
        }
        Some(NetfilterTarget::Connmark(action)) => out.push_str(&match action {
            ConnmarkTarget::Set { value, mask } => format!(" -j CONNMARK --set-xmark {value:#x}/{mask:#x}"),
            ConnmarkTarget::Save { nfmask, ctmask } => {
                format!(" -j CONNMARK --save-mark --nfmask {nfmask:#x} --ctmask {ctmask:#x}")
            }
            ConnmarkTarget::Restore { nfmask, ctmask } => {
                format!(" -j CONNMARK --restore-mark --nfmask {nfmask:#x} --ctmask {ctmask:#x}")
            }
        }),
        Some(NetfilterTarget::Classify(class)) => {
            out.push_str(&format!(" -j CLASSIFY --set-class {:04x}:{:04x}", class.major(), class.minor()));
        }
        Some(NetfilterTarget::Dscp(value)) => out.push_str(&format!(" -j DSCP --set-dscp {value:#04x}")),
        Some(NetfilterTarget::Tos(value, mask)) => {
            out.push_str(&format!(" -j TOS --set-tos {value:#04x}/{mask:#04x}"))
        }
        Some(NetfilterTarget::Translate(Translate { how, to })) => {
            out.push_str(&format!(" -j {}", how.name()));
            if to.addresses.is_some() || to.ports.is_some() {
                out.push_str(&format!(" {} {}", how.option(), translation(*how, to, ipv6)));
            }
            if to.choice != Choice::Plain {
                out.push_str(&format!(" --{}", to.choice.word()));
            }
        }
        Some(NetfilterTarget::Jump(chain)) => out.push_str(&format!(" -j {chain}")),
        Some(NetfilterTarget::Goto(chain)) => out.push_str(&format!(" -g {chain}")),
    }
    out
}

fn commands(chains: &[ListedChain], ipv6: bool, verbose: bool) -> String {
    let mut out = String::new();
    let counters = |packets, bytes| if verbose { format!(" -c {packets} {bytes}") } else { String::new() };
    for chain in chains {
        match chain.policy {
            Some(accept) => {
                let policy = if accept { "ACCEPT" } else { "DROP" };
                out.push_str(&format!(
                    "-P {} {policy}{}\n",
                    chain.name,
                    counters(chain.packets, chain.bytes)
                ));
            }
            None => out.push_str(&format!("-N {}\n", chain.name)),
        }
    }
    for chain in chains {
        for rule in &chain.rules {
            let (words, target) = split_target(&print_rule(&rule.rule, ipv6));
            out.push_str(&format!(
                "-A {}{words}{}{target}\n",
                chain.name,
                counters(rule.packets, rule.bytes)
            ));
        }
    }
    out
}

/// The counters come between the matches and the target.
fn split_target(words: &str) -> (String, String) {
    let at = words.find(" -j ").or_else(|| words.find(" -g ")).unwrap_or(words.len());
    (words[..at].into(), words[at..].into())
}

/// Whether the condition belongs to the extension that `-p` loads.
fn is_own(what: &Condition) -> bool {
    matches!(what, Condition::SourcePort(_) | Condition::DestinationPort(_) | Condition::TcpFlags(..))
}

fn condition(found: &Match, ipv6: bool) -> String {
    let not = if found.not { " !" } else { "" };
    let ports =
        |ranges: &[(u16, u16)], list: &str| format!(" -m multiport{not} --{list} {}", port_list(ranges));
    match &found.what {
        Condition::Protocol(number) => format!("{not} -p {}", protocol_name(*number)),
        Condition::Source(bytes, length) => format!("{not} -s {}", address(bytes, *length, ipv6)),
        Condition::Destination(bytes, length) => format!("{not} -d {}", address(bytes, *length, ipv6)),
        Condition::In(name) => format!("{not} -i {name}"),
        Condition::Out(name) => format!("{not} -o {name}"),
        Condition::SourcePort(range) => format!("{not} --sport {}", port_range(*range)),
        Condition::DestinationPort(range) => format!("{not} --dport {}", port_range(*range)),
        Condition::SourcePorts(ranges) => ports(ranges, "sports"),
        Condition::DestinationPorts(ranges) => ports(ranges, "dports"),
        Condition::Ports(ranges) => ports(ranges, "ports"),
        Condition::TcpFlags(mask, wanted) => format!("{not} --tcp-flags {} {}", flags(*mask), flags(*wanted)),
        Condition::Mark(value, u32::MAX) => format!(" -m mark{not} --mark {value:#x}"),
        Condition::Mark(value, mask) => format!(" -m mark{not} --mark {value:#x}/{mask:#x}"),
        Condition::Length(low, high) if low == high => format!(" -m length{not} --length {low}"),
        Condition::Length(low, high) => format!(" -m length{not} --length {low}:{high}"),
        Condition::Dscp(value) => format!(" -m dscp{not} --dscp {value:#04x}"),
        Condition::Tos(value, mask) => format!(" -m tos{not} --tos {value:#04x}/{mask:#04x}"),
        Condition::Connmark(value, u32::MAX) => format!(" -m connmark{not} --mark {value:#x}"),
        Condition::Connmark(value, mask) => format!(" -m connmark{not} --mark {value:#x}/{mask:#x}"),
        Condition::Connstate(set) => format!(" -m conntrack{not} --ctstate {}", states(*set)),
        Condition::State(set) => format!(" -m state{not} --state {}", states(*set)),
        Condition::Connbytes(range) => {
            let (mode, direction) = count_words(range);
            format!(
                " -m connbytes{not} --connbytes {} --connbytes-mode {mode} --connbytes-dir {direction}",
                amount(range)
            )
        }
        Condition::IcmpType(kind, codes) => {
            let (module, option) = if ipv6 { ("icmp6", "icmpv6-type") } else { ("icmp", "icmp-type") };
            format!(" -m {module}{not} --{option} {}", icmp(*kind, *codes))
        }
        Condition::Comment(text) => format!(" -m comment --comment {}", quoted(text)),
        // Only nft can express these; iptables refuses to list a table that has them.
        Condition::Version6(_) | Condition::Any(_) => String::new(),
    }
}

fn states(set: Connstates) -> String {
    STATES.iter().filter(|(_, state)| set.has(*state)).map(|(name, _)| *name).collect::<Vec<_>>().join(",")
}

fn amount(range: &Connbytes) -> String {
    if range.to == u64::MAX { range.from.to_string() } else { format!("{}:{}", range.from, range.to) }
}

fn count_words(range: &Connbytes) -> (&'static str, &'static str) {
    let mode = COUNT_MODES.iter().find(|(_, mode)| *mode == range.mode).map_or("", |(word, _)| word);
    let direction =
        COUNT_DIRECTIONS.iter().find(|(_, way)| *way == range.direction).map_or("", |(word, _)| word);
    (mode, direction)
}

fn icmp(kind: u8, codes: (u8, u8)) -> String {
    if kind == 255 {
        return "any".into();
    }
    if codes == (0, 255) { kind.to_string() } else { format!("{kind}/{}", codes.0) }
}

fn log_flags(flags: u8) -> impl Iterator<Item = &'static str> {
    LOG_FLAGS.iter().enumerate().filter(move |(bit, _)| flags & 1 << bit != 0).map(|(_, flag)| *flag)
}

/// In quotes where a shell would split it.
fn quoted(text: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.,:/".contains(letter);
    if text.chars().all(plain) {
        text.into()
    } else {
        format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    }
}

fn listed(chain: &ListedChain, ipv6: bool, style: &ListStyle) -> String {
    let mut out = format!("Chain {} (", chain.name);
    match chain.policy {
        Some(accept) => {
            out.push_str(if accept { "policy ACCEPT" } else { "policy DROP" });
            if style.verbose {
                let (packets, bytes) = (count(chain.packets, style), count(chain.bytes, style));
                out.push_str(&format!(" {} packets, {} bytes", packets.trim_start(), bytes.trim_start()));
            }
        }
        None => out.push_str(&format!("{} references", chain.references)),
    }
    out.push_str(")\n");
    if style.numbers {
        out.push_str("num  ");
    }
    out.push_str(match style.verbose {
        true if style.exact => {
            "    pkts      bytes target     prot opt in     out     source               \
            destination         \n"
        }
        true => " pkts bytes target     prot opt in     out     source               destination         \n",
        false => "target     prot opt source               destination         \n",
    });
    for (index, rule) in chain.rules.iter().enumerate() {
        if style.numbers {
            out.push_str(&format!("{:<4} ", index + 1));
        }
        if style.verbose {
            out.push_str(&format!("{} {} ", count(rule.packets, style), count(rule.bytes, style)));
        }
        out.push_str(&row(&rule.rule, ipv6, style));
    }
    out
}

/// A counter in five places: `12345`, then `1234K`, `1234M` …
fn count(number: u64, style: &ListStyle) -> String {
    if style.exact {
        return format!("{number:>8}");
    }
    let mut shown = number;
    for unit in ["", "K", "M", "G"] {
        if shown <= 99_999 && unit.is_empty() || shown <= 9_999 && !unit.is_empty() {
            return if unit.is_empty() { format!("{shown:>5}") } else { format!("{shown:>4}{unit}") };
        }
        shown = (shown + 500) / 1000;
    }
    format!("{shown:>4}T")
}

fn row(rule: &NetfilterRule, ipv6: bool, style: &ListStyle) -> String {
    let mut protocol = if style.numeric { "0" } else { "all" }.to_string();
    let any = match (ipv6, style.numeric) {
        (_, false) => "anywhere",
        (false, true) => "0.0.0.0/0",
        (true, true) => "::/0",
    };
    let (mut source, mut destination, mut input, mut output) =
        (any.into(), any.into(), "*".to_string(), "*".to_string());
    let mut rest = String::new();
    let (mut number, mut own) = (None, false);
    for found in &rule.matches {
        let not = if found.not { "!" } else { "" };
        match &found.what {
            Condition::Protocol(value) => {
                number = Some(*value);
                let shown = if style.numeric { value.to_string() } else { protocol_name(*value) };
                protocol = format!("{not}{shown}");
            }
            Condition::Source(bytes, length) => {
                source = format!("{not}{}", shown_address(bytes, *length, ipv6))
            }
            Condition::Destination(bytes, length) => {
                destination = format!("{not}{}", shown_address(bytes, *length, ipv6))
            }
            Condition::In(name) => input = format!("{not}{name}"),
            Condition::Out(name) => output = format!("{not}{name}"),
            _ => {
                let also = is_own(&found.what);
                if also && !own {
                    rest.push_str(&format!(" {}", number.map_or_else(|| "tcp".into(), protocol_name)));
                }
                own = also;
                rest.push_str(&shown(found, number, style));
            }
        }
    }
    let target = match &rule.target {
        None => String::new(),
        Some(NetfilterTarget::Accept) => "ACCEPT".into(),
        Some(NetfilterTarget::Drop) => "DROP".into(),
        Some(NetfilterTarget::Reject(_)) => "REJECT".into(),
        Some(NetfilterTarget::Log { .. }) => "LOG".into(),
        Some(NetfilterTarget::Tcpmss(_)) => "TCPMSS".into(),
        Some(NetfilterTarget::Notrack(_)) => "CT".into(),
        Some(NetfilterTarget::Return) => "RETURN".into(),
        Some(NetfilterTarget::Mark { .. }) => "MARK".into(),
        Some(NetfilterTarget::Connmark(_)) => "CONNMARK".into(),
        Some(NetfilterTarget::Classify(_)) => "CLASSIFY".into(),
        Some(NetfilterTarget::Dscp(_)) => "DSCP".into(),
        Some(NetfilterTarget::Tos(..)) => "TOS".into(),
        Some(NetfilterTarget::Translate(Translate { how, .. })) => how.name().into(),
        Some(NetfilterTarget::Jump(chain) | NetfilterTarget::Goto(chain)) => chain.clone(),
    };
    let devices = if style.verbose { format!("  {input:<6} {output:<6} ") } else { " ".into() };
    let (protocol, source, destination) =
        (marked(&protocol, 4), marked(&source, 20), marked(&destination, 20));
    let goes = if matches!(rule.target, Some(NetfilterTarget::Goto(_))) { "[goto] " } else { "" };
    format!(
        "{target:<10}{protocol} --{devices}{source}{destination}{goes}{rest}{}\n",
        doing(&rule.target, ipv6, style)
    )
}

/// In `width` places behind one for the `!`.
fn marked(text: &str, width: usize) -> String {
    match text.strip_prefix('!') {
        Some(text) => format!("!{text:<width$}"),
        None => format!(" {text:<width$}"),
    }
}

/// A match in the words of `-L`.
fn shown(found: &Match, protocol: Option<u8>, style: &ListStyle) -> String {
    let not = if found.not { "!" } else { "" };
    let spaced = if found.not { " !" } else { "" };
    let port = |port: u16| match SERVICES.iter().find(|(_, known)| *known == port) {
        Some((service, _)) if !style.numeric => (*service).to_string(),
        _ => port.to_string(),
    };
    let single = |(low, high): (u16, u16), word: &str| match low == high {
        true => format!(" {word}:{not}{}", port(low)),
        false => format!(" {word}s:{not}{}:{}", port(low), port(high)),
    };
    let ports = |ranges: &[(u16, u16)], list: &str| {
        let one = |(low, high): &(u16, u16)| {
            if low == high { port(*low) } else { format!("{}:{}", port(*low), port(*high)) }
        };
        let all: Vec<String> = ranges.iter().map(one).collect();
        format!(" multiport {list} {spaced}{}", all.join(","))
    };
    match &found.what {
        Condition::SourcePort(range) => single(*range, "spt"),
        Condition::DestinationPort(range) => single(*range, "dpt"),
        Condition::SourcePorts(ranges) => ports(ranges, "sports"),
        Condition::DestinationPorts(ranges) => ports(ranges, "dports"),
        Condition::Ports(ranges) => ports(ranges, "ports"),
        Condition::TcpFlags(mask, wanted) if !style.numeric => {
            format!(" flags:{not}{}/{}", flags(*mask), flags(*wanted))
        }
        Condition::TcpFlags(mask, wanted) => {
            format!(" flags:{not}{mask:#04X}/{wanted:#04X}").replace("0X", "0x")
        }
        Condition::Mark(value, u32::MAX) => format!(" mark match{spaced} {value:#x}"),
        Condition::Mark(value, mask) => format!(" mark match{spaced} {value:#x}/{mask:#x}"),
        Condition::Length(low, high) if low == high => format!(" length {not}{low}"),
        Condition::Length(low, high) => format!(" length {not}{low}:{high}"),
        Condition::Dscp(value) => format!(" DSCP match {not}{value:#04x}"),
        Condition::Tos(value, mask) => match tos_name(*value).filter(|_| *mask == 0x3f && !style.numeric) {
            Some(name) => format!(" tos match{not} {name}"),
            None => format!(" tos match{not}{value:#04x}/{mask:#04x}"),
        },
        Condition::Connmark(value, u32::MAX) => format!(" connmark match {not} {value:#x}"),
        Condition::Connmark(value, mask) => format!(" connmark match {not} {value:#x}/{mask:#x}"),
        Condition::Connstate(set) => format!("{spaced} ctstate {}", states(*set)),
        Condition::State(set) => format!("{spaced} state {}", states(*set)),
        Condition::Connbytes(range) => {
            let (mode, direction) = count_words(range);
            format!(
                "{spaced} connbytes {} connbytes mode {mode} connbytes direction {direction}",
                amount(range)
            )
        }
        Condition::IcmpType(kind, codes) => shown_icmp(*kind, *codes, protocol == Some(58), not, style),
        Condition::Comment(text) => format!(" /* {text} */"),
        _ => String::new(),
    }
}

fn tos_name(value: u8) -> Option<&'static str> {
    TOS_NAMES.iter().find(|(_, known)| *known == value).map(|(name, _)| *name)
}

/// An ICMP type in the words of `-L`: `icmptype 8`, or by its name.
fn shown_icmp(kind: u8, codes: (u8, u8), v6: bool, not: &str, style: &ListStyle) -> String {
    let (names, word): (&[values::IcmpName], _) =
        if v6 { (&ICMPV6_TYPES, "ipv6-icmp") } else { (&ICMP_TYPES, "icmp") };
    match names.iter().find(|(_, known, these)| *known == kind && codes == *these) {
        Some((name, ..)) if !style.numeric => format!(" {word} {not}{name}"),
        _ if codes == (0, 255) => format!(" {word}{}type {kind}", if not.is_empty() { "" } else { " !" }),
        _ => format!(" {word}{}type {kind} code {}", if not.is_empty() { "" } else { " !" }, codes.0),
    }
}

/// A target in the words of `-L`.
fn doing(target: &Option<NetfilterTarget>, ipv6: bool, style: &ListStyle) -> String {
    match target {
        Some(NetfilterTarget::Mark { value, mask }) => match (*value, *mask) {
            (0, u32::MAX) => " MARK and 0x0".into(),
            (value, u32::MAX) => format!(" MARK set {value:#x}"),
            (0, mask) => format!(" MARK and {:#x}", !mask),
            (value, mask) if value == mask => format!(" MARK or {value:#x}"),
            (value, 0) => format!(" MARK xor {value:#x}"),
            (value, mask) => format!(" MARK xset {value:#x}/{mask:#x}"),
        },
        Some(NetfilterTarget::Connmark(action)) => remarking(action),
        Some(NetfilterTarget::Reject(with)) => format!(" reject-with {with}"),
        Some(NetfilterTarget::Tcpmss(None)) => " TCPMSS clamp to PMTU".into(),
        Some(NetfilterTarget::Tcpmss(Some(mss))) => format!(" TCPMSS set {mss}"),
        Some(NetfilterTarget::Log { level, prefix, flags }) => {
            let prefix = if prefix.is_empty() { String::new() } else { format!(" prefix \"{prefix}\"") };
            if style.numeric {
                format!(" LOG flags {flags} level {level}{prefix}")
            } else {
                let noted: String = log_flags(*flags).map(|flag| format!(" {flag}")).collect();
                format!(" LOG level {}{noted}{prefix}", LOG_LEVELS[usize::from(level & 7)])
            }
        }
        Some(NetfilterTarget::Notrack(true)) => " CT notrack".into(),
        Some(NetfilterTarget::Notrack(false)) => " NOTRACK".into(),
        Some(NetfilterTarget::Classify(class)) => {
            format!(" CLASSIFY set {:x}:{:x}", class.major(), class.minor())
        }
        Some(NetfilterTarget::Dscp(value)) => format!(" DSCP set {value:#04x}"),
        Some(NetfilterTarget::Tos(value, mask)) if style.numeric => {
            format!(" TOS set {value:#04x}/{mask:#04x}")
        }
        Some(NetfilterTarget::Tos(value, 0x3f)) if tos_name(*value).is_some() => {
            format!("  TOS set{}", tos_name(*value).unwrap_or_default())
        }
        Some(NetfilterTarget::Tos(value, 0xff)) => format!(" TOS set {value:#04x}/0xff"),
        Some(NetfilterTarget::Tos(0, mask)) => format!(" TOS and {:#04x}", !mask),
        Some(NetfilterTarget::Tos(value, mask)) if value == mask => format!(" TOS or {value:#04x}"),
        Some(NetfilterTarget::Tos(value, 0)) => format!(" TOS xor {value:#04x}"),
        Some(NetfilterTarget::Tos(value, mask)) => format!(" TOS set {value:#04x}/{mask:#04x}"),
        Some(NetfilterTarget::Translate(Translate { how, to })) => {
            let words = translation(*how, to, ipv6);
            let choice =
                if to.choice == Choice::Plain { String::new() } else { format!(" {}", to.choice.word()) };
            match how {
                _ if words.is_empty() => choice,
                Translator::Masquerade => format!(" masq ports: {words}{choice}"),
                Translator::Redirect => format!(" redir ports {words}{choice}"),
                _ => format!(" to:{words}{choice}"),
            }
        }
        _ => String::new(),
    }
}

/// `FIRST-LAST:FIRST-LAST`: addresses and ports.
fn translation(how: Translator, to: &Translation, ipv6: bool) -> String {
    let mut out = match &to.addresses {
        Some((low, high)) if low == high => bare(low, ipv6),
        Some((low, high)) => format!("{}-{}", bare(low, ipv6), bare(high, ipv6)),
        None => String::new(),
    };
    let Some((low, high)) = to.ports else { return out };
    if ipv6 && !out.is_empty() {
        out = format!("[{out}]");
    }
    if matches!(how, Translator::Source | Translator::Destination) {
        out.push(':');
    }
    out + &if low == high { low.to_string() } else { format!("{low}-{high}") }
}

fn remarking(action: &ConnmarkTarget) -> String {
    let masks = |nfmask: u32, ctmask: u32, same: String, different: String| match (nfmask, ctmask) {
        (u32::MAX, u32::MAX) => String::new(),
        (nfmask, ctmask) if nfmask == ctmask => same,
        _ => different,
    };
    match *action {
        ConnmarkTarget::Set { value, mask: u32::MAX } => format!(" CONNMARK set {value:#x}"),
        ConnmarkTarget::Set { value: 0, mask } => format!(" CONNMARK and {:#x}", !mask),
        ConnmarkTarget::Set { value, mask } if value == mask => format!(" CONNMARK or {value:#x}"),
        ConnmarkTarget::Set { value, mask: 0 } => format!(" CONNMARK xor {value:#x}"),
        ConnmarkTarget::Set { value, mask } => format!(" CONNMARK xset {value:#x}/{mask:#x}"),
        ConnmarkTarget::Save { nfmask, ctmask } => {
            let different = format!(" nfmask {nfmask:#x} ctmask ~{ctmask:#x}");
            format!(" CONNMARK save{}", masks(nfmask, ctmask, format!(" mask {nfmask:#x}"), different))
        }
        ConnmarkTarget::Restore { nfmask, ctmask } => {
            let different = format!(" ctmask {ctmask:#x} nfmask ~{nfmask:#x}");
            format!(" CONNMARK restore{}", masks(nfmask, ctmask, format!(" mask {ctmask:#x}"), different))
        }
    }
}

fn protocol_name(number: u8) -> String {
    match PROTOCOLS.iter().find(|(_, known)| *known == number) {
        Some((name, _)) => (*name).into(),
        None => number.to_string(),
    }
}

fn address(bytes: &[u8; 16], length: u8, ipv6: bool) -> String {
    format!("{}/{length}", bare(bytes, ipv6))
}

/// In `-L` a whole address has no length.
fn shown_address(bytes: &[u8; 16], length: u8, ipv6: bool) -> String {
    let whole = if ipv6 { 128 } else { 32 };
    if length == whole { bare(bytes, ipv6) } else { address(bytes, length, ipv6) }
}

fn bare(bytes: &[u8; 16], ipv6: bool) -> String {
    match ipv6 {
        true => Ipv6Addr::from(*bytes).to_string(),
        false => Ipv4Addr::new(bytes[12], bytes[13], bytes[14], bytes[15]).to_string(),
    }
}

fn port_range((low, high): (u16, u16)) -> String {
    if low == high { low.to_string() } else { format!("{low}:{high}") }
}

fn port_list(ranges: &[(u16, u16)]) -> String {
    ranges.iter().map(|range| port_range(*range)).collect::<Vec<_>>().join(",")
}

fn flags(bits: u8) -> String {
    if bits == 0 {
        return "NONE".into();
    }
    TCP_FLAGS.iter().filter(|(_, bit)| bits & bit != 0).map(|(name, _)| *name).collect::<Vec<_>>().join(",")
}
