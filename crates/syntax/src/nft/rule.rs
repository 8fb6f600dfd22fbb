//! A rule: its conditions, and its statements.

use super::cursor::Cursor;
use super::lex::{Kind, Span};
use super::marks::{self, Setting, changes};
use super::names::{self, FLAGS, LEVELS, STATES};
use super::unknown;
use super::values::{Field, addresses, any, class, merged};
use super::wrong::Wrong;
use crate::number::whole;
use tidegate_policy::netfilter::{
    Condition, Connstates, CountDirection, CountMode, Family, Match, NetfilterRule, NetfilterTarget, RulePart,
};

/// Values in one set at most.
const MAX_VALUES: usize = 65_536;

/// A rule as it was written.
///
/// nft evaluates conditions and statements in the order of the words: a rule with a condition, or a second
/// `counter`, behind a statement becomes several parts ([`RulePart`]).
pub(super) struct Written {
    /// The parts, with the counts of `counter packets N bytes M`.
    pub(super) parts: Vec<(NetfilterRule, (u64, u64))>,
    /// The chain it leads to, where it is named.
    pub(super) leads_to: Option<Span>,
}

/// Protocols whose first four bytes are ports.
const WITH_PORTS: [(&str, u8); 4] = [("tcp", 6), ("udp", 17), ("dccp", 33), ("sctp", 132)];

/// How a value is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Relation {
    Is,
    IsNot,
    Below,
    UpTo,
    Above,
    From,
}

/// Reads a rule up to the end of its line.
pub(super) fn read(cursor: &mut Cursor<'_>, family: Family) -> Result<Written, Wrong> {
    let mut reader = Reader {
        cursor,
        version: match family {
            Family::Ipv4 => Some(false),
            Family::Ipv6 => Some(true),
            Family::Inet => None,
        },
        protocols: None,
        rule: NetfilterRule::default(),
        parts: Vec::new(),
        leads_to: None,
        counters: (0, 0),
        needs_connection: None,
        comment: None,
        ended: None,
    };
    if reader.cursor.at_end() {
        return Err(reader.cursor.unexpected());
    }
    while !reader.cursor.at_end() {
        reader.part()?;
    }
    reader.done()
}

struct Reader<'c, 't> {
    cursor: &'c mut Cursor<'t>,
    /// IPv6 or IPv4, once that is settled.
    version: Option<bool>,
    /// The protocols that are left, once that is settled.
    protocols: Option<Vec<u8>>,
    rule: NetfilterRule,
    /// The rules completed before this one.
    parts: Vec<(NetfilterRule, (u64, u64))>,
    leads_to: Option<Span>,
    counters: (u64, u64),
    /// A statement that ends the rule for packets without connection.
    needs_connection: Option<Span>,
    comment: Option<String>,
    /// The place of the verdict, once there is one.
    ended: Option<Span>,
}

impl Reader<'_, '_> {
    fn done(mut self) -> Result<Written, Wrong> {
        let comment = self.comment.take();
        let Reader { rule, mut parts, leads_to, counters, .. } = self;
        parts.push((rule, counters));
        let last = parts.len() - 1;
        for (at, (rule, _)) in parts.iter_mut().enumerate() {
            rule.part = match at {
                _ if last == 0 => RulePart::Whole,
                0 => RulePart::First,
                at if at == last => RulePart::Last,
                _ => RulePart::Middle,
            };
            let comment =
                comment.iter().map(|text| Match { not: false, what: Condition::Comment(text.clone()) });
            // What parts have in common comes first.
            let end = if last == 0 { rule.matches.len() } else { 0 };
            rule.matches.splice(end..end, comment);
            if rule.target.is_none() {
                rule.target = rule.first.pop();
            }
        }
        Ok(Written { parts, leads_to })
    }

    /// A match or a statement.
    fn part(&mut self) -> Result<(), Wrong> {
        let begin = self.cursor.here();
        if let Some(span) = self.ended
            && !self.cursor.is_word("comment")
        {
            return Err(Wrong::new(begin, "Statement after terminal statement has no effect")
                .remedy(format!("Put it before the verdict in column {}.", span.from)));
        }
        if self.cursor.is_word("counter") && self.rule.counter.is_some() {
            // Each counts for itself.
            self.divide(begin, self.rule.matches.len(), self.rule.first.len(), self.rule.counter)?;
        }
        let (requested, done, counter) = (self.rule.matches.len(), self.rule.first.len(), self.rule.counter);
        if !self.statement()? {
            self.matching()?;
        }
        if (done > 0 || counter.is_some()) && self.rule.matches.len() > requested {
            self.divide(begin.up_to(self.cursor.before()), requested, done, counter)?;
        }
        Ok(())
    }

    /// A condition follows so many statements: from here on it is another part.
    fn divide(
        &mut self,
        span: Span,
        requested: usize,
        done: usize,
        counter: Option<usize>,
    ) -> Result<(), Wrong> {
        let rule = &mut self.rule;
        let (first, more) = rule.first.split_at(done);
        if rule.matches[..requested].iter().any(|m| first.iter().any(|target| changes(target, &m.what))) {
            return Err(Wrong::later(
                span,
                "asking again after changing what was asked",
                "Write the matches first, then the statement that acts; or make two rules of it.",
            ));
        }
        let before = NetfilterRule {
            matches: rule.matches[..requested].to_vec(),
            first: first.to_vec(),
            counter,
            ..NetfilterRule::default()
        };
        rule.first = more.to_vec();
        let counts = match counter {
            Some(_) => {
                rule.counter = None;
                std::mem::take(&mut self.counters)
            }
            None => {
                rule.counter = rule.counter.map(|behind| behind - done);
                (0, 0)
            }
        };
        self.parts.push((before, counts));
        if self.needs_connection.take().is_some() {
            self.add(false, Condition::Connmark(0, 0));
        }
        Ok(())
    }

    // Statements.

    fn statement(&mut self) -> Result<bool, Wrong> {
        match self.cursor.text() {
            "accept" | "drop" | "return" | "continue" | "jump" | "goto" | "reject" | "queue" => {
                self.verdict()?
            }
            "counter" => self.counter()?,
            "comment" => {
                self.cursor.next();
                self.comment = Some(self.cursor.quoted()?.text.clone());
            }
            "notrack" => {
                self.cursor.next();
                self.act(NetfilterTarget::Notrack(true))?;
            }
            "log" => self.log()?,
            "limit" | "quota" | "meter" | "dup" | "fwd" | "tproxy" | "snat" | "dnat" | "masquerade"
            | "redirect" | "set" | "update" | "add" | "synproxy" | "flow" => {
                let what = format!("the statement {}", self.cursor.text());
                let remedy = names::instead_of(self.cursor.text());
                return Err(Wrong::later(self.cursor.here(), what, remedy));
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn verdict(&mut self) -> Result<(), Wrong> {
        let token = self.cursor.next();
        self.ended = Some(token.span);
        let target = match token.text.as_str() {
            "accept" => NetfilterTarget::Accept,
            "drop" => NetfilterTarget::Drop,
            "return" => NetfilterTarget::Return,
            "continue" => return Ok(()),
            "jump" | "goto" => {
                let chain = self.cursor.name()?;
                self.leads_to = Some(chain.span);
                let name = chain.text.clone();
                if token.text == "jump" { NetfilterTarget::Jump(name) } else { NetfilterTarget::Goto(name) }
            }
            "reject" => {
                while !self.cursor.at_end() && !self.cursor.is_word("comment") {
                    self.cursor.next();
                }
                NetfilterTarget::Reject("icmp-port-unreachable".into())
            }
            other => {
                return Err(Wrong::later(
                    token.span,
                    format!("the verdict {other}"),
                    "Write accept or drop.",
                ));
            }
        };
        self.connected()?;
        self.rule.target = Some(target);
        Ok(())
    }

    fn counter(&mut self) -> Result<(), Wrong> {
        self.cursor.next();
        if self.cursor.is_word("name") {
            return Err(Wrong::later(self.cursor.here(), "a named counter", "Write counter alone."));
        }
        self.connected()?;
        self.rule.counter = Some(self.rule.first.len());
        let mut counters = (0, 0);
        if self.cursor.take_word("packets") {
            counters.0 = self.cursor.number()?.0;
            if !self.cursor.take_word("bytes") {
                return Err(self.cursor.expecting("bytes"));
            }
            counters.1 = self.cursor.number()?.0;
        }
        self.counters = counters;
        Ok(())
    }

    fn log(&mut self) -> Result<(), Wrong> {
        self.cursor.next();
        let (mut level, mut prefix) = (4, String::new());
        loop {
            if self.cursor.take_word("prefix") {
                prefix.clone_from(&self.cursor.quoted()?.text);
            } else if self.cursor.take_word("level") {
                let token = self.cursor.name()?;
                let found = LEVELS.iter().position(|name| *name == token.text);
                level = found.ok_or_else(|| Wrong::new(token.span, "invalid log level"))? as u8;
            } else if ["group", "snaplen", "queue-threshold", "flags"].contains(&self.cursor.text()) {
                return Err(Wrong::later(
                    self.cursor.here(),
                    "this option of log",
                    "Write log prefix \"…\" level ….",
                ));
            } else {
                return self.act(NetfilterTarget::Log { level, prefix, flags: 0 });
            }
        }
    }

    /// Something is done that does not decide.
    fn act(&mut self, target: NetfilterTarget) -> Result<(), Wrong> {
        self.connected()?;
        self.rule.first.push(target);
        Ok(())
    }

    /// Something follows a statement that ends the rule for packets without connection: they must not come so
    /// far.
    fn connected(&mut self) -> Result<(), Wrong> {
        if self.needs_connection.take().is_none() {
            return Ok(());
        }
        // Asking for the mark has seen to it already.
        if self.rule.matches.iter().any(|m| matches!(m.what, Condition::Connmark(..))) {
            return Ok(());
        }
        self.rule.matches.push(Match { not: false, what: Condition::Connmark(0, 0) });
        Ok(())
    }

    fn set_mark(&mut self, connection: bool) -> Result<(), Wrong> {
        let begin = self.cursor.here();
        let Setting { targets, needs_connection } = marks::setting(self.cursor, connection)?;
        let several = targets.len() > 1;
        for (number, target) in targets.into_iter().enumerate() {
            self.act(target)?;
            if number == 0 && needs_connection {
                self.needs_connection = Some(begin);
            }
        }
        if several && needs_connection {
            // The second step has seen to it.
            self.needs_connection = None;
        }
        Ok(())
    }

    fn set_priority(&mut self) -> Result<(), Wrong> {
        let token = self.cursor.name()?;
        if ["ip", "ip6", "meta", "ct", "tcp", "udp", "th", "iifname", "oifname"]
            .contains(&token.text.as_str())
        {
            return Err(Wrong::later(
                token.span,
                "a priority from a map",
                "Write a rule for each of its entries.",
            ));
        }
        let class = class(&token.text).ok_or_else(|| {
            Wrong::new(token.span, "syntax error, unexpected string")
                .remedy("Write the class as tc does, both parts hexadecimal and both there: 1:10.")
        })?;
        self.act(NetfilterTarget::Classify(class))
    }

    // Matches.

    fn matching(&mut self) -> Result<(), Wrong> {
        let token = self.cursor.next();
        match token.text.as_str() {
            "@" => Err(Wrong::later(token.span, "asking for raw bits", "Name the field: th dport.")),
            _ if token.kind != Kind::Word => Err(self.back().unexpected()),
            "meta" => self.meta(token.span),
            "mark" | "iifname" | "oifname" | "iif" | "oif" => {
                self.back();
                self.meta(token.span)
            }
            "ip" => self.network(false, token.span),
            "ip6" => self.network(true, token.span),
            "icmp" => self.icmp(false, token.span),
            "icmpv6" => self.icmp(true, token.span),
            "th" => self.any_port(token.span),
            "ct" => self.connection(),
            "tcp" if self.cursor.is_word("flags") => self.tcp_flags(token.span),
            "tcp" if self.cursor.is_word("option") => self.segment_size(),
            name if names_ports(name).is_some() => {
                self.transport(names_ports(name).unwrap_or_default(), token.span)
            }
            "ether" | "vlan" | "arp" | "ah" | "esp" | "comp" | "fib" | "rt" | "socket" | "osf" | "ipsec"
            | "exthdr" | "numgen" | "jhash" | "symhash" | "hbh" | "frag" | "mh" | "dst" | "srh"
            | "udplite" | "igmp" => {
                let remedy =
                    "Ask for devices, addresses, protocols, ports, DSCP, length, marks or the connection.";
                Err(Wrong::later(token.span, format!("the match {}", token.text), remedy))
            }
            _ => {
                self.back();
                Err(unknown::beginning(self.cursor))
            }
        }
    }

    /// Before what was taken last: it is what is complained of.
    fn back(&mut self) -> &Cursor<'_> {
        self.cursor.step_back();
        self.cursor
    }

    fn add(&mut self, not: bool, what: Condition) {
        self.rule.matches.push(Match { not, what });
    }

    /// The packet is of this IP version.
    fn of_version(&mut self, v6: bool, span: Span) -> Result<(), Wrong> {
        match self.version {
            None => {
                self.version = Some(v6);
                self.add(false, Condition::Version6(v6));
                Ok(())
            }
            Some(settled) if settled == v6 => Ok(()),
            Some(settled) => {
                let name = |v6| if v6 { "ip6" } else { "ip" };
                let what = format!("conflicting protocols specified: {} vs. {}", name(settled), name(v6));
                Err(Wrong::new(span, what).remedy("A packet is of one IP version: make two rules of it."))
            }
        }
    }

    /// The packet is of this protocol.
    fn of_protocol(&mut self, protocol: u8, span: Span) -> Result<(), Wrong> {
        match &self.protocols {
            Some(settled) if *settled == [protocol] => return Ok(()),
            Some(settled) if !settled.contains(&protocol) => {
                let name = |number: u8| match names::name(&names::PROTOCOLS, number.into()) {
                    Some(name) => name.to_owned(),
                    None => number.to_string(),
                };
                let first = settled.first().copied().map(name).unwrap_or_default();
                let what = format!("conflicting protocols specified: {first} vs. {}", name(protocol));
                return Err(
                    Wrong::new(span, what).remedy("A packet is of one protocol: make two rules of it.")
                );
            }
            _ => {}
        }
        self.protocols = Some(vec![protocol]);
        self.add(false, Condition::Protocol(protocol));
        Ok(())
    }

    fn relation(&mut self) -> Relation {
        let relation = match self.cursor.text() {
            "==" | "eq" => Relation::Is,
            "!=" | "ne" => Relation::IsNot,
            "<" | "lt" => Relation::Below,
            "<=" | "le" => Relation::UpTo,
            ">" | "gt" => Relation::Above,
            ">=" | "ge" => Relation::From,
            _ => return Relation::Is,
        };
        self.cursor.next();
        relation
    }

    /// Values: one, or those in braces, each given to `one` as its text.
    fn values(&mut self, mut one: impl FnMut(&str, Span) -> Result<(), Wrong>) -> Result<(), Wrong> {
        if self.cursor.is_sign("@") {
            let remedy = "Write the values in the place of the set's name: { 22, 80 }.";
            return Err(Wrong::later(self.cursor.here(), "a named set", remedy));
        }
        if ["vmap", "map"].contains(&self.cursor.text()) {
            let remedy = "Write a rule for each of its entries.";
            return Err(Wrong::later(self.cursor.here(), "a map", remedy));
        }
        if self.cursor.text() == "." {
            let remedy = "Match each on its own: ip saddr 10.0.0.1 tcp dport 80.";
            return Err(Wrong::later(self.cursor.here(), "a pair of fields", remedy));
        }
        if !self.cursor.take_sign("{") {
            return self.value(&mut one);
        }
        for count in 0.. {
            while self.cursor.kind() == Kind::End && self.cursor.text() == "newline" {
                self.cursor.next();
            }
            if count > 0 && self.cursor.take_sign("}") {
                return Ok(());
            }
            if self.cursor.kind() == Kind::Eof {
                return Err(self.cursor.expecting("comma or '}'"));
            }
            if count >= MAX_VALUES {
                return Err(Wrong::later(self.cursor.here(), "so large a set", "Use prefixes or ranges."));
            }
            self.value(&mut one)?;
            while self.cursor.kind() == Kind::End && self.cursor.text() == "newline" {
                self.cursor.next();
            }
            if !self.cursor.take_sign(",") {
                return match self.cursor.take_sign("}") {
                    true => Ok(()),
                    false => Err(self.cursor.expecting("comma or '}'")),
                };
            }
        }
        Ok(())
    }

    /// One value, which may be a range with blanks in it.
    fn value(&mut self, one: &mut impl FnMut(&str, Span) -> Result<(), Wrong>) -> Result<(), Wrong> {
        if !matches!(self.cursor.kind(), Kind::Word | Kind::Quoted) {
            return Err(self.cursor.unexpected());
        }
        let token = self.cursor.name()?;
        if token.text == "-" {
            return Err(self.back().unexpected());
        }
        if self.cursor.text() == "-" && self.cursor.kind() == Kind::Word {
            self.cursor.next();
            let end = self.cursor.name()?;
            return one(&format!("{}-{}", token.text, end.text), token.span.up_to(end.span));
        }
        one(&token.text, token.span)
    }

    /// The ranges of a field that are wanted, and whether it is the others that are.
    fn ranges(&mut self, field: Field) -> Result<(bool, Vec<(u64, u64)>), Wrong> {
        let relation = self.relation();
        let mut ranges = Vec::new();
        let mut last = self.cursor.here();
        self.values(|text, span| {
            last = span;
            ranges.push(range(field, text, span)?);
            Ok(())
        })?;
        let ranges = merged(ranges);
        let bound = ranges.first().map_or(0, |range| range.0);
        let never = || {
            Wrong::new(last, "tidegate: no value is beyond that")
                .remedy("Turn the comparison round, or leave the rule out.")
        };
        Ok(match relation {
            Relation::Is => (false, ranges),
            Relation::IsNot => (true, ranges),
            Relation::Below => (false, vec![(0, bound.checked_sub(1).ok_or_else(never)?)]),
            Relation::UpTo => (false, vec![(0, bound)]),
            Relation::Above if bound >= field.most() => return Err(never()),
            Relation::Above => (false, vec![(bound + 1, field.most())]),
            Relation::From => (false, vec![(bound, field.most())]),
        })
    }

    fn field(&mut self, field: Field) -> Result<(), Wrong> {
        let (not, ranges) = self.ranges(field)?;
        self.add(not, field.within(&ranges));
        Ok(())
    }

    /// A protocol's number, in whichever header.
    fn protocol(&mut self) -> Result<(), Wrong> {
        let (not, ranges) = self.ranges(Field::Protocol)?;
        if ranges.iter().any(|(low, _)| *low == 0) {
            return Err(Wrong::later(self.cursor.before(), "protocol 0", "Leave it out."));
        }
        if !not {
            let selected = ranges.iter().flat_map(|(low, high)| (*low..=*high).map(|number| number as u8));
            let left: Vec<u8> = match &self.protocols {
                Some(settled) => selected.filter(|number| settled.contains(number)).collect(),
                None => selected.collect(),
            };
            self.protocols = Some(left);
        }
        self.add(not, Field::Protocol.within(&ranges));
        Ok(())
    }

    fn meta(&mut self, begin: Span) -> Result<(), Wrong> {
        let token = self.cursor.next();
        match token.text.as_str() {
            "mark" if self.cursor.take_word("set") => self.set_mark(false),
            "mark" => self.mark(false),
            "priority" if self.cursor.take_word("set") => self.set_priority(),
            "iifname" | "iif" => self.device(true),
            "oifname" | "oif" => self.device(false),
            "l4proto" => self.protocol(),
            "length" => self.field(Field::Length(0)),
            "nfproto" => self.version(&[("ipv4", false), ("ipv6", true)], begin),
            "protocol" => self.version(&[("ip", false), ("ip6", true)], begin),
            _ if token.kind != Kind::Word => Err(self.back().unexpected()),
            other => {
                let sets = self.cursor.is_word("set");
                let end = if sets { self.cursor.ahead(1).span } else { token.span };
                let remedy =
                    "Known are mark, priority set, iifname, oifname, l4proto, length, nfproto and protocol.";
                let what = format!("meta {other}{}", if sets { " set" } else { "" });
                let later = || Wrong::later(begin.up_to(token.span), what, remedy);
                Err(unknown::meta(other, begin.up_to(end)).unwrap_or_else(later))
            }
        }
    }

    fn version(&mut self, known: &[(&str, bool)], begin: Span) -> Result<(), Wrong> {
        let relation = self.relation();
        let mut seen = Vec::new();
        self.values(|text, span| {
            let v6 = names::number(known, text).ok_or_else(|| {
                let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
                Wrong::later(span, text, &format!("Write {}.", words.join(" or ")))
            })?;
            seen.push(v6);
            Ok(())
        })?;
        seen.sort_unstable();
        seen.dedup();
        match (seen.as_slice(), relation) {
            ([v6], Relation::Is) => self.of_version(*v6, begin),
            ([v6], Relation::IsNot) => self.of_version(!*v6, begin),
            // Both: every packet that comes by.
            _ => Ok(()),
        }
    }

    /// Devices by name: `eth0`, `"ppp*"`.
    fn device(&mut self, input: bool) -> Result<(), Wrong> {
        let not = self.relation() == Relation::IsNot;
        let mut names = Vec::new();
        self.values(|text, span| {
            if text.len() > 15 {
                return Err(Wrong::new(span, "String exceeds maximum length of 16"));
            }
            let name = match text.strip_suffix('*') {
                Some(begin) => format!("{begin}+"),
                None => text.to_owned(),
            };
            names.push(if input { Condition::In(name) } else { Condition::Out(name) });
            Ok(())
        })?;
        self.add(not, any(names));
        Ok(())
    }

    /// A mark, some of its bits perhaps: `meta mark & 0xff == 0x1`.
    fn mark(&mut self, connection: bool) -> Result<(), Wrong> {
        let field = if connection { Field::ConnMark } else { Field::Mark };
        if !self.cursor.take_sign("&") && !self.cursor.take_word("and") {
            return self.field(field);
        }
        let (mask, span) = self.cursor.number()?;
        let mask =
            u32::try_from(mask).map_err(|_| Wrong::new(span, "Value exceeds valid range 0-4294967295"))?;
        if !["==", "!=", "eq", "ne"].contains(&self.cursor.text()) {
            return Err(self
                .cursor
                .unexpected()
                .remedy("Write == or != behind the mask: meta mark & 0xff == 0x1."));
        }
        let not = self.relation() == Relation::IsNot;
        let mut conditions = Vec::new();
        self.values(|text, span| {
            let (low, high) = range(field, text, span)?;
            if low != high {
                return Err(Wrong::later(span, "a range behind a mask", "Write the values: { 1, 2, 3 }."));
            }
            let value = low as u32;
            conditions.push(if connection {
                Condition::Connmark(value, mask)
            } else {
                Condition::Mark(value, mask)
            });
            Ok(())
        })?;
        self.add(not, any(conditions));
        Ok(())
    }

    fn network(&mut self, v6: bool, begin: Span) -> Result<(), Wrong> {
        let token = self.cursor.next();
        let word = token.text.as_str();
        let sets = self.cursor.is_word("set");
        match word {
            "saddr" | "daddr" if !sets => {
                self.of_version(v6, begin.up_to(token.span))?;
                self.address(word == "saddr", v6)
            }
            "dscp" if sets => {
                self.of_version(v6, begin.up_to(token.span))?;
                self.cursor.next();
                let value = self.cursor.name()?;
                let dscp = Field::Dscp.value(&value.text, value.span)?;
                self.act(NetfilterTarget::Dscp(dscp as u8))
            }
            "dscp" => {
                self.of_version(v6, begin.up_to(token.span))?;
                self.field(Field::Dscp)
            }
            "protocol" if !v6 && !sets => {
                self.of_version(v6, begin.up_to(token.span))?;
                self.protocol()
            }
            "nexthdr" if v6 && !sets => {
                self.of_version(v6, begin.up_to(token.span))?;
                self.protocol()
            }
            "length" if !sets => {
                self.of_version(v6, begin.up_to(token.span))?;
                // IPv6's length field counts what follows the header.
                self.field(Field::Length(if v6 { 40 } else { 0 }))
            }
            _ if token.kind != Kind::Word => Err(self.back().unexpected()),
            other => {
                let header = if v6 { "ip6" } else { "ip" };
                let remedy =
                    "Known are saddr, daddr, dscp, dscp set, length, and ip protocol or ip6 nexthdr.";
                let what = format!("{header} {other}{}", if sets { " set" } else { "" });
                let later = || Wrong::later(begin.up_to(token.span), what, remedy);
                Err(unknown::field(header, other, token.span).unwrap_or_else(later))
            }
        }
    }

    fn address(&mut self, source: bool, v6: bool) -> Result<(), Wrong> {
        if self.cursor.is_sign("&") {
            return Err(Wrong::later(self.cursor.here(), "a masked address", "Write a prefix: 10.0.0.0/8."));
        }
        let not = self.relation() == Relation::IsNot;
        let mut networks = Vec::new();
        self.values(|text, span| {
            networks.extend(addresses(text, v6, span)?);
            Ok(())
        })?;
        networks.sort_unstable();
        networks.dedup();
        let condition = |(bytes, bits)| match source {
            true => Condition::Source(bytes, bits),
            false => Condition::Destination(bytes, bits),
        };
        self.add(not, any(networks.into_iter().map(condition).collect()));
        Ok(())
    }

    fn icmp(&mut self, v6: bool, begin: Span) -> Result<(), Wrong> {
        let token = self.cursor.next();
        if token.text != "type" {
            let header = if v6 { "icmpv6" } else { "icmp" };
            let what = format!("{header} {}", token.text);
            let remedy = "Ask for the type: icmp type echo-request.";
            let later = || Wrong::later(begin.up_to(token.span), what, remedy);
            return Err(unknown::field(header, &token.text, token.span).unwrap_or_else(later));
        }
        let (field, protocol) = if v6 { (Field::Icmpv6, 58) } else { (Field::Icmp, 1) };
        self.of_version(v6, begin)?;
        self.of_protocol(protocol, begin)?;
        let (not, ranges) = self.ranges(field)?;
        if ranges.iter().any(|(_, high)| *high == 255) {
            return Err(Wrong::later(self.cursor.before(), "ICMP type 255", "Leave it out."));
        }
        self.add(not, field.within(&ranges));
        Ok(())
    }

    /// `th dport`: a port of whichever protocol has one.
    fn any_port(&mut self, begin: Span) -> Result<(), Wrong> {
        let ported = |protocol: &u8| WITH_PORTS.iter().any(|(_, known)| known == protocol);
        if !self.protocols.as_ref().is_some_and(|settled| !settled.is_empty() && settled.iter().all(ported)) {
            return Err(Wrong::later(
                begin,
                "th for protocols that may have no ports",
                "Write meta l4proto { tcp, udp } before it.",
            ));
        }
        self.port(begin)
    }

    fn transport(&mut self, protocol: u8, begin: Span) -> Result<(), Wrong> {
        let word = self.cursor.text();
        if !["sport", "dport"].contains(&word) {
            return match self.cursor.kind() {
                Kind::Word
                    if ["sequence", "ackseq", "doff", "window", "checksum", "length", "vtag"]
                        .contains(&word) =>
                {
                    Err(Wrong::later(
                        begin.up_to(self.cursor.here()),
                        word,
                        "Ask for sport, dport or tcp flags.",
                    ))
                }
                _ => Err(self.cursor.unexpected().remedy("Write sport, dport or, of tcp, flags.")),
            };
        }
        self.of_protocol(protocol, begin.up_to(self.cursor.here()))?;
        self.port(begin)
    }

    fn port(&mut self, begin: Span) -> Result<(), Wrong> {
        let token = self.cursor.next();
        if self.cursor.is_word("set") {
            return Err(Wrong::later(
                begin.up_to(token.span),
                "setting a port",
                "Translate with iptables -t nat.",
            ));
        }
        match token.text.as_str() {
            "sport" => self.field(Field::SourcePort),
            "dport" => self.field(Field::DestinationPort),
            _ => Err(self.back().unexpected()),
        }
    }

    fn connection(&mut self) -> Result<(), Wrong> {
        let token = self.cursor.next();
        let (direction, token) = match token.text.as_str() {
            "original" => (CountDirection::Original, self.cursor.next()),
            "reply" => (CountDirection::Reply, self.cursor.next()),
            _ => (CountDirection::Both, token),
        };
        match token.text.as_str() {
            "state" => self.state(),
            "mark" if self.cursor.take_word("set") => self.set_mark(true),
            "mark" => self.mark(true),
            "bytes" => self.field(Field::Carried(CountMode::Bytes, direction)),
            "packets" => self.field(Field::Carried(CountMode::Packets, direction)),
            "avgpkt" => self.field(Field::Carried(CountMode::Average, direction)),
            _ if token.kind != Kind::Word => Err(self.back().unexpected()),
            other => {
                let remedy = "Known are state, mark, mark set, bytes, packets and avgpkt.";
                let later = || Wrong::later(token.span, format!("ct {other}"), remedy);
                Err(unknown::field("ct", other, token.span).unwrap_or_else(later))
            }
        }
    }

    /// `ct state new,established`, `{ new, established }`, `!= invalid`.
    fn state(&mut self) -> Result<(), Wrong> {
        let not = self.relation() == Relation::IsNot;
        let mut states = 0;
        let mut one = |text: &str, span| {
            let state = names::number(&STATES, text).ok_or_else(|| {
                Wrong::new(span, "Could not parse conntrack state")
                    .remedy("Write new, established, related, invalid or untracked.")
            })?;
            states |= state as u8;
            Ok(())
        };
        self.values(&mut one)?;
        while self.cursor.take_sign(",") {
            self.value(&mut one)?;
        }
        self.add(not, Condition::Connstate(Connstates(states)));
        Ok(())
    }

    fn tcp_flags(&mut self, begin: Span) -> Result<(), Wrong> {
        self.of_protocol(6, begin.up_to(self.cursor.here()))?;
        self.cursor.next();
        if self.cursor.take_sign("!") {
            let flags = self.flags()?;
            self.add(false, Condition::TcpFlags(flags, 0));
            return Ok(());
        }
        if self.cursor.take_sign("&") || self.cursor.take_word("and") {
            let mask = self.flags()?;
            let not = match self.cursor.text() {
                "==" | "!=" => self.relation() == Relation::IsNot,
                _ => return Err(self.cursor.unexpected().remedy("Write == or != behind the mask.")),
            };
            let wanted = self.flags()?;
            self.add(not, Condition::TcpFlags(mask, wanted));
            return Ok(());
        }
        let given = ["==", "!="].contains(&self.cursor.text());
        let not = self.relation() == Relation::IsNot;
        if self.cursor.take_sign("{") {
            let mut exact = vec![Condition::TcpFlags(0xff, self.flags_one()?)];
            while self.cursor.take_sign(",") {
                exact.push(Condition::TcpFlags(0xff, self.flags_one()?));
            }
            self.cursor.want_sign("}")?;
            self.add(not, any(exact));
            return Ok(());
        }
        let flags = self.flags()?;
        if self.cursor.text() == "/" {
            self.cursor.next();
            let mask = self.flags()?;
            self.add(not, Condition::TcpFlags(mask, flags));
        } else if given {
            self.add(not, Condition::TcpFlags(0xff, flags));
        } else {
            // One of them at least.
            self.add(true, Condition::TcpFlags(flags, 0));
        }
        Ok(())
    }

    /// `syn`, `syn,ack`, `(syn | ack)`, `0x2`.
    fn flags(&mut self) -> Result<u8, Wrong> {
        let mut flags = self.flags_one()?;
        while self.cursor.take_sign(",") || self.cursor.take_sign("|") || self.cursor.take_word("or") {
            flags |= self.flags_one()?;
        }
        Ok(flags)
    }

    fn flags_one(&mut self) -> Result<u8, Wrong> {
        if self.cursor.take_sign("(") {
            // The cursor counts how deep it is; the reader goes with it.
            let flags = self.flags_in_bracket()?;
            self.cursor.want_sign(")")?;
            return Ok(flags);
        }
        let token = self.cursor.name()?;
        let number =
            names::number(&FLAGS, &token.text).or_else(|| whole(&token.text, 0).filter(|n| *n <= 0xff));
        number.map(|flags| flags as u8).ok_or_else(|| {
            Wrong::new(token.span, "Could not parse TCP flag")
                .remedy("Write fin, syn, rst, psh, ack, urg, ecn, cwr or a number.")
        })
    }

    fn flags_in_bracket(&mut self) -> Result<u8, Wrong> {
        let mut flags = self.flag_name()?;
        while self.cursor.take_sign(",") || self.cursor.take_sign("|") || self.cursor.take_word("or") {
            flags |= self.flag_name()?;
        }
        Ok(flags)
    }

    fn flag_name(&mut self) -> Result<u8, Wrong> {
        if self.cursor.is_sign("(") {
            return Err(self.cursor.unexpected());
        }
        self.flags_one()
    }

    /// `tcp option maxseg size set rt mtu`, or a number.
    fn segment_size(&mut self) -> Result<(), Wrong> {
        let begin = self.cursor.next().span;
        let clamps =
            self.cursor.take_word("maxseg") && self.cursor.take_word("size") && self.cursor.take_word("set");
        if !clamps {
            let span = begin.up_to(self.cursor.here());
            return Err(Wrong::later(span, "this tcp option", "Known is tcp option maxseg size set rt mtu."));
        }
        self.of_protocol(6, begin)?;
        if self.cursor.take_word("rt") {
            return match self.cursor.take_word("mtu") {
                true => self.act(NetfilterTarget::Tcpmss(None)),
                false => Err(self.cursor.expecting("mtu")),
            };
        }
        let (size, span) = self.cursor.number()?;
        let size = u16::try_from(size).map_err(|_| Wrong::new(span, "Value exceeds valid range 0-65535"))?;
        self.act(NetfilterTarget::Tcpmss(Some(size)))
    }
}

fn names_ports(name: &str) -> Option<u8> {
    names::number(&WITH_PORTS, name)
}

/// A value or a range of a field.
fn range(field: Field, text: &str, span: Span) -> Result<(u64, u64), Wrong> {
    let whole = field.value(text, span);
    if let (Err(_), Some((low, high))) = (&whole, text.split_once('-'))
        && let (Ok(low), Ok(high)) = (field.value(low, span), field.value(high, span))
    {
        if high < low {
            return Err(Wrong::new(span, "Range has zero or negative size"));
        }
        return Ok((low, high));
    }
    whole.map(|value| (value, value))
}
