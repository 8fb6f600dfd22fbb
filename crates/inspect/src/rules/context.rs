//! What the rules about classification ask with: sets of packets, and packets that are tried.

use crate::finding::{Finding, Level, Rule, Witness};
use crate::packet::{Packet, has_ports};
use crate::probe::{PacketEntry, ProbeResult, Prober};
use crate::reach::{Candidate, Reached};
use crate::reading::{PolicyModel, Step};
use crate::sets::bdd::TooLarge;
use crate::walk::ways::undecided;
use crate::walk::{Parts, RuleKey};
use crate::words;
use std::collections::BTreeSet;
use tidegate_gateway::EgressPath;
use tidegate_packet::Handle;
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::{ClassLayout, FilterParams, Op};

/// Packets that are tried for one sentence, where sets are wider than the truth.
const MOST_TRIED: usize = 12;

/// What the rules about classification work with.
pub(super) struct RuleContext<'a> {
    pub(super) reading: &'a PolicyModel,
    pub(super) reached: Reached,
    pub(super) prober: Prober,
    /// Nothing depends on connections, so that a packet alone decides where it goes.
    pub(super) plain: bool,
    /// The one device that is checked; `None`: all.
    pub(super) only: Option<String>,
    /// Leaf classes that no packet comes to.
    pub(super) idle: BTreeSet<(String, Handle)>,
}

/// Rules of one kind; what cannot be decided is no finding.
pub(super) type Checks = fn(&mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge>;

pub(super) fn not_decided(because: String) -> Finding {
    Finding {
        rule: Rule::Undecided,
        level: Level::Note,
        place: None,
        what: "which packets go where was not decided".into(),
        because,
        witness: None,
        fix: None,
    }
}

impl<'a> RuleContext<'a> {
    /// What some kinds of rules find, and how many of them could not decide.
    pub(super) fn ask(&mut self, families: &[Checks]) -> (Vec<Finding>, usize) {
        // A family that cannot be decided has no finding; the others do.
        let came: Vec<Result<Vec<Finding>, TooLarge>> = families.iter().map(|family| family(self)).collect();
        let silent = came.iter().filter(|came| came.is_err()).count();
        (came.into_iter().flatten().flatten().collect(), silent)
    }

    /// Whether nothing is known of what comes to a device's filters and classes. A device that is down drops
    /// all, which is reported.
    pub(super) fn leaves_out(&self, device: &str) -> bool {
        let is_down = self.reading.down.iter().any(|down| down == device);
        is_down || self.only.as_ref().is_some_and(|only| only != device) || undecided(self.reading, device)
    }

    /// Sends a candidate through the engine.
    pub(super) fn send(&mut self, candidate: &Candidate) -> ProbeResult {
        self.prober.travel(&candidate.packet, candidate.course)
    }

    /// A packet by a device, routed or the machine's own, as the engine has it.
    pub(super) fn send_by(
        &mut self,
        packet: &Packet,
        device: &str,
        route: EgressPath,
    ) -> Option<ProbeResult> {
        let device = self.prober.device(device)?;
        Some(self.prober.travel(packet, PacketEntry::Leaves(device, route)))
    }

    /// The engine has the last word. Where it contradicts a set one of the two is wrong; but where
    /// connections matter, the packets before may not have made this one's what the set wants, and where a
    /// filter's answer is not known, sets are wider than the truth.
    pub(super) fn confirmed(&self, agreed: bool, candidate: &Candidate, wanted: &str) {
        let exact = self.plain && self.reached.walked.seen.guessed.is_empty();
        debug_assert!(agreed || !exact, "the engine does not have {} {wanted}", candidate.packet);
    }

    /// A packet of some sets for which the engine agrees. Where sets are wider than the truth, others are
    /// tried: of another port, of another protocol.
    pub(super) fn agreed(
        &mut self,
        parts: &Parts,
        wanted: &str,
        mut is_so: impl FnMut(&ProbeResult) -> bool,
    ) -> Result<Option<(Candidate, ProbeResult)>, TooLarge> {
        let (mut left, mut tried) = (parts.clone(), BTreeSet::new());
        for _ in 0..MOST_TRIED {
            let Some(candidate) = self.reached.pick(self.reading, &left)? else { return Ok(None) };
            let way = self.send(&candidate);
            let agreed = is_so(&way);
            // A packet dropped before shows nothing.
            self.confirmed(agreed || way.dropped.is_some(), &candidate, wanted);
            if agreed {
                return Ok(Some((candidate, way)));
            }
            let packet = &candidate.packet;
            let known = !tried.insert((packet.ethertype, packet.protocol));
            let port = (!known && has_ports(packet.protocol)).then_some(packet.ports.1);
            left = self.reached.without(&left, packet, port)?;
        }
        Ok(None)
    }

    /// How often the engine had a filter match.
    pub(super) fn hits(&mut self, dump: &FilterDump) -> Option<u64> {
        hits_in(&self.list(dump), dump)
    }

    /// The list that contains a filter, with the engine's counts.
    pub(super) fn list(&mut self, dump: &FilterDump) -> Vec<FilterDump> {
        let Some(device) = self.prober.device(&dump.dev) else { return Vec::new() };
        let now = self.prober.now();
        self.prober.gateway().filters(now, device, dump.parent).unwrap_or_default()
    }

    /// The command that made a filter.
    pub(super) fn step_of_filter(&self, at: usize) -> Option<&'a Step> {
        let reading = self.reading;
        reading.step_of(reading.maker_of_filter(&reading.filters[at])?)
    }

    /// The command that made a rule.
    pub(super) fn step_of_rule(&self, key: &RuleKey) -> Option<&'a Step> {
        let reading = self.reading;
        let rule = self.rule(key)?;
        let made = reading.ops.iter().rposition(|op| match op {
            Op::Netfilter(op) => {
                op.family == key.family && op.table == key.table && op.command.rule() == Some(rule)
            }
            _ => false,
        });
        reading.step_of(made?)
    }

    pub(super) fn rule(&self, key: &RuleKey) -> Option<&'a tidegate_policy::netfilter::NetfilterRule> {
        crate::reach::rule_of(self.reading, key)
    }

    /// A place in words: `line 7`, with the file where there are several.
    pub(super) fn line(&self, step: &Step) -> String {
        match self.reading.line(step) {
            Some(line) => format!("{line}{}", self.which(step)),
            None => format!("`{}`", step.text()),
        }
    }

    /// Where a line does several things, which of them: the conditions of the command.
    pub(super) fn which(&self, step: &Step) -> String {
        // A short policy has no commands.
        if self.is_alone(step) || self.reading.is_compiled() {
            return String::new();
        }
        let from =
            step.words.iter().position(|word| matches!(word.text.as_str(), "match" | "handle" | "-A" | "-I"));
        let words = step.words.get(from.unwrap_or(0)..).unwrap_or(&[]).iter().map(|word| word.text.as_str());
        format!(" (`{}`)", words.collect::<Vec<_>>().join(" "))
    }

    /// ` on eth0`, where the reader's own words do not name the device: a short policy has no commands.
    pub(super) fn on(&self, device: &str) -> String {
        if self.reading.is_compiled() { format!(" on {device}") } else { String::new() }
    }

    /// Does another filter that a line of a short policy came to on a device get packets?
    pub(super) fn rest_of_line(&self, step: &Step, device: &str, at: usize) -> bool {
        let gets = |other: &usize| {
            self.reached.walked.seen.filters.get(other).is_some_and(|seen| !seen.matched.is_empty())
                && self.reading.filters[*other].dev == device
                && self.step_of_filter(*other).is_some_and(|other| other.place == step.place)
        };
        self.reading.is_compiled()
            && step.place.is_some()
            && (0..self.reading.filters.len()).any(|other| other != at && gets(&other))
    }

    /// Whether another rule that the same line of a short policy made gets packets.
    pub(super) fn rest_of_rules(&self, step: &Step, key: &RuleKey) -> bool {
        let mut others =
            self.reached.walked.rules.iter().filter(|(other, seen)| *other != key && !seen.met.is_empty());
        self.reading.is_compiled()
            && step.place.is_some()
            && others
                .any(|(other, _)| self.step_of_rule(other).is_some_and(|other| other.place == step.place))
    }

    /// Does a line do nothing but this one command? Then it may be changed for its sake.
    pub(super) fn is_alone(&self, step: &Step) -> bool {
        let same = |other: &&Step| {
            let line = |step: &Step| step.place.as_ref().map(|place| (place.file, place.line));
            line(other).is_some() && line(other) == line(step)
        };
        step.place.is_some() && self.reading.steps.iter().filter(same).count() == 1
    }

    /// Where a packet waits in the tree of a device, in words.
    pub(super) fn went(&mut self, way: &ProbeResult, device: &str) -> String {
        if let Some(loss) = way.dropped {
            return format!("no class: {}", words::dropped(loss.why));
        }
        let stop = self.prober.device(device).and_then(|id| way.stop_at(id)).or(way.stops.last());
        // The one class of a bucket is no name that anyone chose.
        let reading = self.reading;
        let is_named = |class: &&Handle| {
            let kind = reading.class(device, **class).map(|dump| dump.kind.classes());
            !matches!(kind, Some(ClassLayout::One))
        };
        let Some(stop) = stop else { return "no class at all".to_owned() };
        // A device that it was redirected to may have no classes.
        let other = stop.led_to.unwrap_or(stop.device);
        let other = Some(reading.gateway.name(other)).filter(|name| *name != device);
        match stop.classes.iter().rev().find(is_named) {
            Some(class) => class.to_string(),
            None => other.unwrap_or("no class at all").to_owned(),
        }
    }
}

/// How often a filter of a list matched.
pub(super) fn hits_in(list: &[FilterDump], dump: &FilterDump) -> Option<u64> {
    let FilterEntry::Filter { handle, params: FilterParams::U32(wanted), .. } = &dump.entry else {
        return None;
    };
    list.iter().find_map(|found| match &found.entry {
        FilterEntry::Filter { handle: one, params: FilterParams::U32(params), hits: Some(hits), .. }
            if one == handle && params.table == wanted.table && found.pref == dump.pref =>
        {
            Some(hits.matched)
        }
        _ => None,
    })
}

/// A witness that the engine has confirmed.
pub(super) fn witness(candidate: &Candidate, went: &str) -> Option<Witness> {
    Some(Witness::Packet { packet: candidate.packet.to_string(), went: went.to_owned() })
}

/// The class that a filter leads to.
pub(super) fn classid(dump: &FilterDump) -> Option<Handle> {
    let FilterEntry::Filter { params, .. } = &dump.entry else { return None };
    params.classid()
}

pub(super) fn same_chain(one: &RuleKey, other: &RuleKey) -> bool {
    (one.family, &one.table, &one.chain) == (other.family, &other.table, &other.chain)
}
