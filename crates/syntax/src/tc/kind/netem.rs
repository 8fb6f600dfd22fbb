//! netem.

use super::row::Syntax;
use crate::json::Json;
use crate::number::{float_prefix, general, i32_in, u32_in, whole};
use crate::tc::command_line::ShowFlags;
use crate::tc::options::{Reader, Take};
use crate::tc::show::Entry;
use crate::tc::spelling::{ListedValue, Spelling, amount};
use crate::tc::words::Words;
use crate::units::{nanos_by, parse_size, parse_time, print_nanos, print_rate, print_time};
use crate::{Env, Refusal, TcChange, TcVersion, distribution};
use tidegate_packet::{LinuxChange, Rate};
use tidegate_policy::dump::{NetemStats, QdiscDump, Xstats};
use tidegate_policy::spec::{OptionSpec, ValueKind};
use tidegate_policy::{
    NETEM_NEWER, NetemCorrelations, NetemDistribution, NetemLoss, NetemParams, NetemProbability, NetemRate,
    NetemSlot, QdiscParams,
};

pub(super) struct Netem;

impl Syntax for Netem {
    fn qdisc(
        &self,
        reader: &Reader<'_>,
        words: &mut Words<'_>,
        _stderr: &mut String,
    ) -> Result<Option<QdiscParams>, Refusal> {
        let mut given = NetemWords {
            reader,
            params: NetemParams { limit: 1000, ..NetemParams::default() },
            correlations: NetemCorrelations::default(),
            correlated: false,
            reorder: (0, 0),
            corrupt: (0, 0),
            reorders: false,
            corrupts: false,
        };
        let is_newer =
            reader.env.tc.has(TcChange::NetemWords) || reader.env.linux.has(LinuxChange::NetemGenerator);
        reader.each(if is_newer { NETEM_NEWER } else { reader.table() }, words, &mut given)?;
        given.complete().map(|params| Some(QdiscParams::Netem(Box::new(params))))
    }

    fn show(&self, dump: &QdiscDump, flags: &ShowFlags, entry: &mut Entry) {
        if let QdiscParams::Netem(params) = &dump.params {
            show(params, flags, entry);
        }
    }

    fn show_stats(&self, dump: &QdiscDump, flags: &ShowFlags, entry: &mut Entry) {
        if let (Xstats::Netem(stats), true) = (&dump.xstats, flags.tc.has(TcChange::NetemWords)) {
            show_stats(stats, entry);
        }
    }

    fn spelling(&self) -> &'static Spelling {
        const SPELLING: Spelling = Spelling {
            parts: &[
                ("loss", &["p", "r", "1-h", "1-k"]),
                ("loss", &["p13", "p31", "p32", "p23", "p14"]),
                ("rate", &["packetoverhead", "cellsize", "celloverhead"]),
            ],
            unlisted: Some((
                "delay",
                2,
                "tc lists no distribution of the jitter, so it is taken for uniform",
            )),
            ..Spelling::SAME
        };
        &SPELLING
    }

    fn member(&self, key: &str, value: &ListedValue, _: &[(String, ListedValue)]) -> Option<Vec<String>> {
        member(key, value.members())
    }
}

/// The probability 1.
const CERTAIN: NetemProbability = NetemProbability::MAX;

/// Where tc looks for tables.
const TABLES: &str = "/usr/lib/x86_64-linux-gnu/tc/";

/// The options read so far.
struct NetemWords<'a> {
    reader: &'a Reader<'a>,
    params: NetemParams,
    correlations: NetemCorrelations,
    /// They are only sent when one of these options had one.
    correlated: bool,
    reorder: (NetemProbability, NetemProbability),
    corrupt: (NetemProbability, NetemProbability),
    reorders: bool,
    corrupts: bool,
}

fn illegal(name: &str, place: usize) -> Refusal {
    let form = match name {
        "latency" => {
            "delay takes a time with its unit and, if it varies, by how much and with what correlation, \
            such as delay \
            100ms 10ms 25%."
                .to_owned()
        }
        "loss percent" | "reorder" | "corrupt" | "duplicate" => {
            format!("{} takes a probability from 0% to 100%.", name.trim_end_matches(" percent"))
        }
        _ => format!("The value of {name} cannot be read."),
    };
    Refusal::new(1, format!("Illegal \"{name}\"")).at(place).remedy(form)
}

/// A probability in per cent, with or without the sign.
fn share(text: &str) -> Option<NetemProbability> {
    let (number, rest) = float_prefix(text)?;
    let part = number / 100.0;
    let known = matches!(rest, "" | "%") && (0.0..=1.0).contains(&part);
    known.then(|| libm::rint(part * f64::from(CERTAIN)) as NetemProbability)
}

/// Whether a number follows: tc looks at the first character.
fn number_next(words: &Words<'_>) -> bool {
    words.peek().is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()))
}

fn signed_next(words: &Words<'_>) -> bool {
    words.peek().is_some_and(|word| {
        let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
        digits.starts_with(|c: char| c.is_ascii_digit())
    })
}

/// A seed; a negative number is counted from the end, as in C.
fn seed(text: &str) -> Option<u64> {
    match text.strip_prefix('-') {
        Some(digits) => whole(digits, 10).map(u64::wrapping_neg),
        None => whole(text, 10),
    }
}

fn need_share(name: &str, words: &mut Words<'_>) -> Result<NetemProbability, Refusal> {
    share(words.need()?).ok_or_else(|| illegal(name, words.last()))
}

/// The probability that may follow.
fn share_next(name: &str, words: &mut Words<'_>) -> Result<Option<NetemProbability>, Refusal> {
    if number_next(words) { need_share(name, words).map(Some) } else { Ok(None) }
}

/// A delay as tc sends it, in nanoseconds; before 7.2 in ticks of 64 ns.
fn delay(words: &mut Words<'_>, tc: TcVersion) -> Result<i64, Refusal> {
    if tc.has(TcChange::NetemTimes) {
        let ns = nanos_by(words.need()?, tc).ok_or_else(|| illegal("latency", words.last()))?;
        // What does not fit 64 bits becomes negative.
        return match ns {
            i64::MAX => Err(Refusal::new(2, "Error: negative latency.")
                .at(words.last())
                .remedy("A delay is at most 292 years.")),
            ns => Ok(ns),
        };
    }
    let us = parse_time(words.need()?).ok_or_else(|| illegal("latency", words.last()))?;
    let ticks = f64::from(us) * 15.625;
    if ticks >= 4_294_967_296.0 {
        return Err(Refusal::new(1, format!("Illegal {us} time (too large)\nIllegal \"latency\""))
            .at(words.last())
            .remedy("A delay is at most 274 seconds, and never negative."));
    }
    Ok((ticks as i64) << 6)
}

impl Take for NetemWords<'_> {
    fn option(
        &mut self,
        _reader: &Reader<'_>,
        option: &'static OptionSpec,
        _word: &str,
        words: &mut Words<'_>,
    ) -> Result<(), Refusal> {
        match option.key {
            "limit" => {
                self.params.limit = parse_size(words.need()?).ok_or_else(|| illegal("limit", words.last()))?
            }
            "seed" => {
                self.params.seed = Some(seed(words.need()?).ok_or_else(|| illegal("seed", words.last()))?);
            }
            "delay" => self.delay(words)?,
            "loss" => self.loss(words)?,
            "ecn" => self.params.ecn = true,
            "reorder" => {
                self.reorders = true;
                self.reorder.0 = need_share("reorder", words)?;
                if let Some(degree) = share_next("reorder", words)? {
                    self.reorder.1 = degree;
                    self.correlated = true;
                }
            }
            "corrupt" => {
                self.corrupts = true;
                self.corrupt.0 = need_share("corrupt", words)?;
                if let Some(degree) = share_next("corrupt", words)? {
                    self.corrupt.1 = degree;
                    self.correlated = true;
                }
            }
            "duplicate" => {
                self.params.duplicate = need_share("duplicate", words)?;
                let degree = share_next("duplicate", words)?;
                self.correlations.duplicate = degree.unwrap_or(self.correlations.duplicate);
            }
            "gap" => {
                self.params.gap = u32_in(words.need()?, 0).ok_or_else(|| illegal("gap", words.last()))?
            }
            "distribution" => self.params.distribution = Some(self.table(words)?),
            "rate" => self.rate(words)?,
            _ => self.slot(words)?,
        }
        Ok(())
    }
}

impl NetemWords<'_> {
    fn delay(&mut self, words: &mut Words<'_>) -> Result<(), Refusal> {
        let tc = self.reader.env.tc;
        self.params.latency_ns = delay(words, tc)?;
        if !number_next(words) {
            return Ok(());
        }
        self.params.jitter_ns = delay(words, tc)?;
        if let Some(degree) = share_next("latency", words)? {
            self.correlations.delay = degree;
            self.correlated = true;
        }
        Ok(())
    }

    fn loss(&mut self, words: &mut Words<'_>) -> Result<(), Refusal> {
        if self.params.loss != NetemLoss::Random(0) {
            return Err(Refusal::new(1, "Illegal \"duplicate loss argument\n\"")
                .at(words.last())
                .remedy("Say once how packets are lost."));
        }
        if number_next(words) {
            return self.random_loss(words);
        }
        match words.need()? {
            "random" => return self.random_loss(words),
            "state" => {
                let p13 = need_share("loss p13", words)?;
                let mut rest = [CERTAIN - p13, 0, CERTAIN, 0];
                for (place, name) in rest.iter_mut().zip(["loss p31", "loss p32", "loss p23", "loss p14"]) {
                    let Some(given) = share_next(name, words)? else { break };
                    *place = given;
                }
                let [p31, p32, p23, p14] = rest;
                self.params.loss = NetemLoss::States { p13, p31, p32, p23, p14 };
            }
            "gemodel" => {
                let p = need_share("loss gemodel p", words)?;
                let mut rest = [CERTAIN - p, CERTAIN, 0];
                for (place, name) in
                    rest.iter_mut().zip(["loss gemodel r", "loss gemodel h", "loss gemodel k"])
                {
                    let Some(given) = share_next(name, words)? else { break };
                    *place = given;
                }
                let [r, lost, k1] = rest;
                self.params.loss = NetemLoss::Gilbert { p, r, h: CERTAIN - lost, k1 };
            }
            other => {
                return Err(Refusal::new(1, format!("Unknown loss parameter: {other}"))
                    .at(words.last())
                    .remedy("loss takes a probability in per cent, random, state or gemodel."));
            }
        }
        Ok(())
    }

    fn random_loss(&mut self, words: &mut Words<'_>) -> Result<(), Refusal> {
        self.params.loss = NetemLoss::Random(need_share("loss percent", words)?);
        if let Some(degree) = share_next("loss correlation", words)? {
            self.correlations.loss = degree;
            self.correlated = true;
        }
        Ok(())
    }

    fn rate(&mut self, words: &mut Words<'_>) -> Result<(), Refusal> {
        let text = words.need()?;
        let place = words.last();
        let Rate(rate) = self.reader.rate(text).map_err(|more| match more.is_empty() {
            true => illegal("rate", place),
            false => Refusal::new(1, format!("{more}Illegal \"rate\"")).at(place),
        })?;
        let mut given = NetemRate { rate, ..NetemRate::default() };
        let signed =
            |words: &mut Words<'_>| i32_in(words.need()?, 0).ok_or_else(|| illegal("rate", words.last()));
        if signed_next(words) {
            given.packet_overhead = signed(words)?;
            if number_next(words) {
                given.cell_size = u32_in(words.need()?, 0).ok_or_else(|| illegal("rate", words.last()))?;
            }
            if signed_next(words) {
                given.cell_overhead = signed(words)?;
            }
        }
        self.params.rate = (rate > 0).then_some(given);
        Ok(())
    }

    fn slot(&mut self, words: &mut Words<'_>) -> Result<(), Refusal> {
        let mut slot = NetemSlot::default();
        let time = |name: &str, words: &mut Words<'_>| {
            nanos_by(words.need()?, self.reader.env.tc).ok_or_else(|| illegal(name, words.last()))
        };
        if number_next(words) {
            slot.min_delay_ns = time("slot min_delay", words)?;
            slot.max_delay_ns =
                if number_next(words) { time("slot max_delay", words)? } else { slot.min_delay_ns };
            if slot.max_delay_ns < slot.min_delay_ns {
                return Err(illegal("slot max_delay", words.last()));
            }
        } else {
            match words.need()? {
                "distribution" => slot.distribution = Some(self.table(words)?),
                other => {
                    return Err(Refusal::new(1, format!("Unknown slot parameter: {other}"))
                        .at(words.last())
                        .remedy(
                            "slot takes one or two times, or a distribution with a time and its jitter.",
                        ));
                }
            }
            slot.dist_delay_ns = time("slot delay", words)?;
            slot.dist_jitter_ns = time("slot jitter", words)?;
            if slot.dist_jitter_ns <= 0 || slot.dist_jitter_ns == i64::MAX {
                return Err(Refusal::new(1, "Non-positive jitter")
                    .at(words.last())
                    .remedy("The second time of slot distribution is above 0; slot MIN MAX needs none."));
            }
        }
        if words.peek() == Some("packets") {
            words.skip();
            slot.max_packets =
                i32_in(words.need()?, 0).ok_or_else(|| illegal("slot packets", words.last()))?;
        }
        if words.peek() == Some("bytes") {
            words.skip();
            slot.max_bytes =
                parse_size(words.need()?).ok_or_else(|| illegal("slot bytes", words.last()))? as i32;
        }
        self.params.slot = Some(slot);
        Ok(())
    }

    /// The table of the distribution named here.
    fn table(&self, words: &mut Words<'_>) -> Result<NetemDistribution, Refusal> {
        let (name, env): (&str, &Env) = (words.need()?, self.reader.env);
        let known = distribution::named(name).or_else(|| env.tables.get(name).cloned());
        known.ok_or_else(|| {
            Refusal::new(
                1,
                format!("No distribution data for {name} ({TABLES}/{name}.dist: No such file or directory)"),
            )
            .at(words.last())
            .remedy(
                "normal, pareto and paretonormal are known; experimental is read from the machine's tables \
                of tc, if iproute2 is installed; uniform is what holds without a distribution.",
            )
        })
    }

    fn complete(mut self) -> Result<NetemParams, Refusal> {
        let refused =
            |line: &str, remedy: &str| Err(Refusal::new(1, line).then(&self.reader.usage()).remedy(remedy));
        let params = &mut self.params;
        if self.reorder.0 > 0 {
            if params.latency_ns == 0 {
                return refused(
                    "reordering not possible without specifying some delay",
                    "Packets that wait are what others can leave before: netem delay 10ms reorder 25%",
                );
            }
            params.gap = params.gap.max(1);
        } else if params.gap > 0 {
            return refused(
                "gap specified without reorder probability",
                "gap says which packets may be reordered: netem delay 10ms reorder 25% gap 5",
            );
        }
        if params.ecn && params.loss == NetemLoss::Random(0) {
            return refused("ecn requested without loss model", "Marks replace losses: netem loss 1% ecn");
        }
        if params.distribution.is_some() && (params.latency_ns == 0 || params.jitter_ns == 0) {
            return refused(
                "distribution specified but no latency and jitter values",
                "A distribution is the shape of the jitter: netem delay 100ms 10ms distribution normal",
            );
        }
        params.correlations = self.correlated.then_some(self.correlations);
        params.reorder = self.reorders.then_some(self.reorder);
        params.corrupt = self.corrupts.then_some(self.corrupt);
        Ok(self.params)
    }
}

fn percent(part: NetemProbability) -> String {
    general(100.0 * f64::from(part) / f64::from(CERTAIN), 6)
}

/// A probability as a member of JSON.
fn fraction(part: NetemProbability) -> Json {
    Json::Number(general(f64::from(part) / f64::from(CERTAIN), 6))
}

/// Nanoseconds as a member of JSON: seconds.
fn seconds(ns: i64) -> Json {
    Json::Number(general(ns as f64 / 1e9, 6))
}

fn show(params: &NetemParams, flags: &ShowFlags, entry: &mut Entry) {
    let correlations = params.correlations.unwrap_or_default();
    entry.number("limit", params.limit as i32, &format!("limit {}", params.limit as i32));
    if params.latency_ns != 0 {
        show_delay(params, correlations.delay, flags.tc.has(TcChange::NetemTimes), entry);
    }
    show_loss(params.loss, correlations.loss, entry);
    let pairs = [
        ("duplicate", params.duplicate, correlations.duplicate),
        ("reorder", params.reorder.map_or(0, |pair| pair.0), params.reorder.map_or(0, |pair| pair.1)),
        ("corrupt", params.corrupt.map_or(0, |pair| pair.0), params.corrupt.map_or(0, |pair| pair.1)),
    ];
    for (name, part, degree) in pairs.into_iter().filter(|(_, part, _)| *part > 0) {
        entry.say(&format!(" {name} {}%", percent(part)));
        show_degree(degree, entry);
        entry.member(name, Json::Object(vec![(name, fraction(part)), ("correlation", fraction(degree))]));
    }
    if let Some(rate) = params.rate.filter(|rate| rate.rate > 0) {
        show_rate(&rate, entry);
    }
    if let Some(slot) = &params.slot {
        show_slot(slot, entry);
    }
    if let Some(seed) = params.seed.filter(|_| flags.tc.has(TcChange::NetemWords)) {
        entry.number("seed", seed, &format!(" seed {seed}"));
    }
    if params.ecn {
        entry.say(" ecn ");
    }
    entry.member("ecn", Json::Bool(params.ecn));
    if params.gap > 0 {
        entry.say(&format!(" gap {}", params.gap));
    }
    entry.member("gap", Json::number(params.gap));
}

fn show_stats(stats: &NetemStats, entry: &mut Entry) {
    let counts = [
        ("delayed", stats.delayed),
        ("dropped", stats.dropped),
        ("corrupted", stats.corrupted),
        ("duplicated", stats.duplicated),
        ("reordered", stats.reordered),
        ("ecn_marked", stats.ecn_marked),
    ];
    entry.say(" ");
    counts.iter().for_each(|(name, count)| entry.number(name, *count, &format!(" {name} {count}")));
    entry.say("\n");
}

fn show_degree(degree: NetemProbability, entry: &mut Entry) {
    if degree > 0 {
        entry.say(&format!(" {}%", percent(degree)));
    }
}

/// tc shows whole microseconds.
/// `fine`: to the nanosecond; older releases of tc show whole microseconds.
fn show_delay(params: &NetemParams, degree: NetemProbability, fine: bool, entry: &mut Entry) {
    let time = |ns: i64| if fine { print_nanos(ns) } else { print_time((ns / 1000) as u32) };
    entry.say(&format!(" delay {}", time(params.latency_ns)));
    if params.jitter_ns != 0 {
        entry.say(&format!("  {}", time(params.jitter_ns)));
        show_degree(degree, entry);
    }
    let whole = |ns: i64| seconds(if fine { ns } else { ns / 1000 * 1000 });
    let members = [
        ("delay", whole(params.latency_ns)),
        ("jitter", whole(params.jitter_ns)),
        ("correlation", fraction(degree)),
    ];
    entry.member("delay", Json::Object(members.into()));
}

fn show_loss(loss: NetemLoss, degree: NetemProbability, entry: &mut Entry) {
    let (name, parts): (_, Vec<(&'static str, NetemProbability)>) = match loss {
        NetemLoss::Random(0) => return,
        NetemLoss::Random(part) => {
            entry.say(&format!(" loss {}%", percent(part)));
            show_degree(degree, entry);
            let members = vec![("loss", fraction(part)), ("correlation", fraction(degree))];
            return entry.member("loss-random", Json::Object(members));
        }
        NetemLoss::States { p13, p31, p32, p23, p14 } => {
            ("state", vec![("p13", p13), ("p31", p31), ("p32", p32), ("p23", p23), ("p14", p14)])
        }
        NetemLoss::Gilbert { p, r, h, k1 } => {
            ("gemodel", vec![("p", p), ("r", r), ("1-h", CERTAIN - h), ("1-k", k1)])
        }
    };
    entry.say(&format!(" loss {name}"));
    parts.iter().for_each(|(key, part)| entry.say(&format!(" {key} {}%", percent(*part))));
    let members = parts.into_iter().map(|(key, part)| (key, fraction(part))).collect();
    entry.member(if name == "state" { "loss-state" } else { "loss-gemodel" }, Json::Object(members));
}

fn show_rate(rate: &NetemRate, entry: &mut Entry) {
    entry.say(&format!(" rate {}", print_rate(Rate(rate.rate), false)));
    let details = [
        ("packetoverhead", i64::from(rate.packet_overhead)),
        ("cellsize", i64::from(rate.cell_size)),
        ("celloverhead", i64::from(rate.cell_overhead)),
    ];
    let mut members = vec![("rate", Json::number(rate.rate))];
    for (key, value) in details {
        if value != 0 {
            entry.say(&format!(" {key} {value}"));
        }
        members.push((key, Json::number(value)));
    }
    entry.member("rate", Json::Object(members));
}

fn show_slot(slot: &NetemSlot, entry: &mut Entry) {
    let spread = slot.dist_jitter_ns > 0;
    if !spread && slot.min_delay_ns == 0 && slot.max_delay_ns == 0 {
        return;
    }
    let (names, times) = if spread {
        (["distribution", "jitter"], [slot.dist_delay_ns, slot.dist_jitter_ns])
    } else {
        (["min-delay", "max-delay"], [slot.min_delay_ns, slot.max_delay_ns])
    };
    let word = if spread { " slot distribution" } else { " slot" };
    entry.say(&format!("{word} {} {}", print_nanos(times[0]), print_nanos(times[1])));
    let mut members = vec![(names[0], seconds(times[0])), (names[1], seconds(times[1]))];
    for (key, value) in [("packets", slot.max_packets), ("bytes", slot.max_bytes)] {
        if value != 0 {
            entry.say(&format!(" {key} {value}"));
        }
        members.push((key, Json::number(value)));
    }
    entry.member("slot", Json::Object(members));
}

/// What a member of JSON says, where seconds and probabilities are fractions.
fn member(key: &str, parts: &[(String, ListedValue)]) -> Option<Vec<String>> {
    let digits = |name: &str| {
        let value = parts.iter().find(|(part, _)| part == name).map(|(_, value)| value);
        value.and_then(ListedValue::word)
    };
    let share =
        |name: &str| digits(name)?.parse::<f64>().ok().map(|part| format!("{}%", general(part * 100.0, 6)));
    let seconds =
        |name: &str| digits(name)?.parse::<f64>().ok().map(|time| format!("{}ns", (time * 1e9).round()));
    let not_zero = |value: Option<String>| value.filter(|value| value != "0%" && value != "0ns");
    let mut words = vec![key.split('-').next().unwrap_or(key).to_owned()];
    match key {
        "delay" => {
            let micros = |name: &str| digits(name)?.parse::<f64>().ok().map(|time| (time * 1e6).round());
            words.extend(micros("delay").map(|us| format!("{us}us")));
            if let Some(us) = micros("jitter").filter(|us| *us > 0.0) {
                words.push(format!("{us}us"));
                words.extend(not_zero(share("correlation")));
            }
        }
        "loss-random" | "duplicate" | "reorder" | "corrupt" => {
            words.extend(share(if key == "loss-random" { "loss" } else { key }));
            words.extend(not_zero(share("correlation")));
        }
        "loss-state" | "loss-gemodel" => {
            words.push(key.trim_start_matches("loss-").to_owned());
            for (name, _) in parts {
                words.push(name.clone());
                words.extend(share(name));
            }
        }
        "rate" => {
            words.push(amount(ValueKind::Rate, digits("rate")?));
            for name in ["packetoverhead", "cellsize", "celloverhead"] {
                if let Some(value) = digits(name).filter(|value| *value != "0") {
                    words.extend([name.to_owned(), value.to_owned()]);
                }
            }
        }
        "slot" => {
            words.extend(["min-delay", "max-delay"].into_iter().filter_map(seconds));
            for name in ["packets", "bytes"] {
                if let Some(value) = digits(name).filter(|value| *value != "0") {
                    words.extend([name.to_owned(), value.to_owned()]);
                }
            }
        }
        _ => return None,
    }
    Some(words)
}
