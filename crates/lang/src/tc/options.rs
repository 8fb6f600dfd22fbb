//! Reads a kind's options by its table ([`tidegate_policy::spec`]).

use super::words::Words;
use crate::number::{float_prefix, i32_in, u8_in, u16_in, u32_in};
use crate::units::{parse_nanos, parse_percent, parse_rate, parse_size, parse_size_cell, parse_time};
use crate::{Env, Refusal};
use tidegate_packet::Rate;
use tidegate_policy::LinkLayer;
use tidegate_policy::spec::{Again, KindSpec, OptionSpec, Takes, Voice};

/// A value read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Flag,
    Number(u32),
    Signed(i32),
    Cell(u32),
    Rate(Rate),
    Fraction(f64),
    Layer(LinkLayer),
    Map(Vec<u8>),
    Selector(u8, u8),
    /// Packets, where a time could stand too.
    Packets(u32),
}

/// The options read, in the order of the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct Values(pub(crate) Vec<(&'static str, Value)>);

impl Values {
    fn last(&self, key: &str) -> Option<&Value> {
        self.0.iter().rev().find(|(name, _)| *name == key).map(|(_, value)| value)
    }
    pub(crate) fn has(&self, key: &str) -> bool {
        self.last(key).is_some()
    }
    /// A number, an amount or a time, when given.
    pub(crate) fn number(&self, key: &str) -> Option<u32> {
        match self.last(key)? {
            Value::Number(number) | Value::Cell(number) => Some(*number),
            _ => None,
        }
    }
    /// An amount of packets, where a time could stand too.
    pub(crate) fn packets(&self, key: &str) -> Option<u32> {
        match self.last(key)? {
            Value::Packets(packets) => Some(*packets),
            _ => None,
        }
    }
    /// Which of two opposite words came last.
    pub(crate) fn switch(&self, on: &str, off: &str) -> Option<bool> {
        self.0.iter().rev().find_map(|(key, _)| match *key {
            key if key == on => Some(true),
            key if key == off => Some(false),
            _ => None,
        })
    }
    pub(crate) fn signed(&self, key: &str) -> Option<i32> {
        match self.last(key)? {
            Value::Signed(number) => Some(*number),
            _ => None,
        }
    }
    pub(crate) fn rate(&self, key: &str) -> Option<Rate> {
        match self.last(key)? {
            Value::Rate(rate) => Some(*rate),
            _ => None,
        }
    }
    pub(crate) fn fraction(&self, key: &str) -> Option<f64> {
        match self.last(key)? {
            Value::Fraction(fraction) => Some(*fraction),
            _ => None,
        }
    }
    pub(crate) fn layer(&self, key: &str) -> Option<LinkLayer> {
        match self.last(key)? {
            Value::Layer(layer) => Some(*layer),
            _ => None,
        }
    }
    pub(crate) fn map(&self, key: &str) -> Option<&[u8]> {
        match self.last(key)? {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }
    pub(crate) fn selector(&self, key: &str) -> Option<(u8, u8)> {
        match self.last(key)? {
            Value::Selector(value, mask) => Some((*value, *mask)),
            _ => None,
        }
    }
}

/// Whose options are read, and for which device.
pub(crate) struct Reader<'a> {
    pub(crate) spec: &'a KindSpec,
    pub(crate) dev: &'a str,
    pub(crate) env: &'a Env,
    /// Reading a class? (HTB knows `help` only there.)
    pub(crate) class: bool,
}

impl Reader<'_> {
    /// Reads to the end of the command.
    pub(crate) fn read(&self, table: &'static [OptionSpec], words: &mut Words<'_>) -> Result<Values, Refusal> {
        let mut values = Values::default();
        while let Some(word) = words.take() {
            match table.iter().find(|option| option.is(word)) {
                Some(option) => self.one(option, word, words, &mut values)?,
                None if word == "help" && self.knows_help() => {
                    return Err(Refusal { stderr: self.usage(), code: 1, ..Refusal::default() });
                }
                None if values.has("priomap") => self.map_element(word, words, &mut values)?,
                None => return Err(self.unknown(word, table).at(words.last())),
            }
        }
        Ok(values)
    }

    /// sfb takes `help` for an option that it does not know, and so does htb's qdisc.
    fn knows_help(&self) -> bool {
        self.class || self.spec.voice != Voice::Htb && self.spec.name != "sfb"
    }

    fn one(
        &self,
        option: &'static OptionSpec,
        word: &str,
        words: &mut Words<'_>,
        values: &mut Values,
    ) -> Result<(), Refusal> {
        if self.spec.voice == Voice::Tbf && option.takes != Takes::Flag && words.peek().is_none() {
            // Only tbf looks for the value before anything else.
            words.need()?;
        }
        self.refuse_again(option, values).map_err(|refusal| refusal.at(words.last()))?;
        let value = match option.takes {
            Takes::Flag => Value::Flag,
            Takes::Priomap if values.has("priomap") => {
                return Err(Refusal::new(1, "Error: duplicate priomap")
                    .at(words.last())
                    .remedy("Give priomap once, with up to 16 bands after it."));
            }
            Takes::Priomap => Value::Map(Vec::new()),
            takes => {
                let text = words.need()?;
                if takes == Takes::Nanos && parse_nanos(text).is_some_and(|ns| u32::try_from(ns).is_err()) {
                    return Err(Refusal::new(1, format!("Illegal (out of range) \"{}\"", option.blame))
                        .at(words.last())
                        .remedy("At most about 4.29 seconds."));
                }
                match self.value(takes, text) {
                    Ok(value) => value,
                    Err(why) => return Err(self.illegal(option, word, text, &why).at(words.last())),
                }
            }
        };
        if out_of_bounds(self.spec.name, option.key, &value) {
            let bounds = match (self.spec.name, option.key) {
                (_, "ecn_prob") => "0 and 99",
                ("pie" | "fq_pie", _) => "0 and 32",
                _ => "0 and 1",
            };
            let text = format!("{} is between {bounds}.", option.key);
            return Err(Refusal::new(1, format!("Illegal \"{}\"", option.blame)).at(words.last()).remedy(text));
        }
        if self.spec.name == "sfq" && option.key == "limit" && value < 2u32 {
            return Err(Refusal::new(1, "Illegal \"limit\", must be > 1")
                .at(words.last())
                .remedy("Give at least 2 packets."));
        }
        values.0.push((option.key, value));
        Ok(())
    }

    fn refuse_again(&self, option: &OptionSpec, values: &Values) -> Result<(), Refusal> {
        if self.spec.voice == Voice::Tbf {
            let clash = match option.key {
                "limit" if values.number("latency").is_some_and(|us| us > 0) => Some(("latency", "limit")),
                "latency" if values.number("limit").is_some_and(|bytes| bytes > 0) => Some(("limit", "/latency")),
                _ => None,
            };
            if let Some((first, second)) = clash {
                let line = format!("tbf: specifying both \"{first}\" and \"{second}\" is not allowed");
                return Err(Refusal::new(1, line).remedy("Both say how much may wait: keep one of them."));
            }
        }
        let Again::Refused(name) = option.again else { return Ok(()) };
        let given = match values.last(option.key) {
            None => false,
            Some(Value::Number(number) | Value::Cell(number)) => *number > 0,
            Some(Value::Rate(rate)) => rate.0 > 0,
            Some(_) => true,
        };
        if !given {
            return Ok(());
        }
        let line = match self.spec.voice {
            Voice::Tbf => format!("tbf: duplicate \"{name}\" specification"),
            _ => format!("Double \"{name}\" spec"),
        };
        Err(Refusal::new(1, line).remedy(format!("Give {} once.", option.key)))
    }

    /// The value that `text` means, or further words of tc about what is wrong with it.
    fn value(&self, takes: Takes, text: &str) -> Result<Value, String> {
        let plain = String::new;
        match takes {
            Takes::Decimal => u32_in(text, 10).map(Value::Number).ok_or_else(plain),
            Takes::Number => u32_in(text, 0).map(Value::Number).ok_or_else(plain),
            Takes::Decimal16 => u16_in(text, 10).map(|n| Value::Number(n.into())).ok_or_else(plain),
            Takes::Signed => i32_in(text, 10).map(Value::Signed).ok_or_else(plain),
            Takes::SignedAny => i32_in(text, 0).map(Value::Signed).ok_or_else(plain),
            Takes::Hex => u32_in(text, 16).map(Value::Number).ok_or_else(plain),
            Takes::Size => parse_size(text).map(Value::Number).ok_or_else(plain),
            Takes::SizeCell => parse_size_cell(text).map(|(size, _)| Value::Cell(size)).ok_or_else(plain),
            Takes::Time => parse_time(text).map(Value::Number).ok_or_else(plain),
            Takes::Nanos => parse_nanos(text).map(|ns| Value::Number(ns as u32)).ok_or_else(plain),
            Takes::LinkLayer => link_layer(text).map(Value::Layer).ok_or_else(plain),
            Takes::Rate | Takes::Rate32 if text.contains('%') => self.percent(text).map(Value::Rate),
            Takes::Rate => parse_rate(text).map(Value::Rate).ok_or_else(plain),
            Takes::Rate32 => parse_rate(text).filter(|rate| rate.0 >> 32 == 0).map(Value::Rate).ok_or_else(plain),
            // What stands behind the number is not looked at.
            Takes::Fraction => float_prefix(text).map(|(number, _)| Value::Fraction(number)).ok_or_else(plain),
            Takes::Selector => selector(text),
            Takes::TimeOrPackets => match text.strip_suffix('p') {
                Some(packets) => u32_in(packets, 10).map(Value::Packets).ok_or_else(plain),
                None => parse_time(text).map(Value::Number).ok_or_else(plain),
            },
            Takes::Percent | Takes::Words(_) | Takes::Ignored | Takes::Flag | Takes::Priomap | Takes::Curve => {
                Ok(Value::Flag)
            }
        }
    }

    /// A rate that must fit 32 bits of bytes per second, or what tc says first of one that it cannot read.
    pub(super) fn rate32(&self, text: &str) -> Result<u32, String> {
        let rate = match text.contains('%') {
            true => self.percent(text)?,
            false => parse_rate(text).ok_or_else(String::new)?,
        };
        u32::try_from(rate.0).map_err(|_| String::new())
    }

    fn percent(&self, text: &str) -> Result<Rate, String> {
        let percent = parse_percent(text).ok_or_else(String::new)?;
        let file = format!("/sys/class/net/{}/speed", self.dev);
        let Some(mbit) = self.env.speed_mbit(self.dev) else {
            return Err(format!("property \"speed\" in file {file} is currently unknown\nFailed to parse {file}\n"));
        };
        Ok(Rate((f64::from(mbit) * 1e6 / 8.0 * percent / 100.0) as u64))
    }

    fn map_element(&self, word: &str, words: &Words<'_>, values: &mut Values) -> Result<(), Refusal> {
        let bands = values.signed("bands").unwrap_or(3);
        let refusal = |line: &str, remedy: String| Err(Refusal::new(1, line).at(words.last()).remedy(remedy));
        let Some(band) = u32_in(word, 10) else {
            return refusal("Illegal \"priomap\" element", format!("\"{word}\" is not a band: give numbers from 0."));
        };
        let Some((_, Value::Map(map))) = values.0.iter_mut().find(|(key, _)| *key == "priomap") else { return Ok(()) };
        if map.len() > 15 {
            return refusal(
                "\"priomap\" index > TC_PRIO_MAX=15",
                "There are 16 priorities: give 16 bands at most.".into(),
            );
        }
        match u8::try_from(band) {
            Ok(octet) if i64::from(band) < i64::from(bands) => map.push(octet),
            _ => {
                let remedy =
                    format!("There are {bands} bands so far, 0 to {}; say `bands N` before priomap.", bands - 1);
                return refusal("\"priomap\" element is out of bands", remedy);
            }
        }
        Ok(())
    }

    fn illegal(&self, option: &OptionSpec, word: &str, text: &str, more: &str) -> Refusal {
        let kind = self.spec.name;
        // tc names what was typed where an option has several names.
        let name = if option.aliases.is_empty() { option.blame } else { word };
        let refusal = match self.spec.voice {
            Voice::Plain if !more.is_empty() && option.takes == Takes::Selector => Refusal::new(1, more),
            Voice::Plain => Refusal::new(1, format!("{more}Illegal \"{}\"", option.blame)),
            Voice::Htb => Refusal::new(1, format!("{more}Illegal \"{name}\"")).then(&self.usage()),
            Voice::Fifo => Refusal::new(1, format!("{kind}: Illegal value for \"{}\": \"{text}\"", option.blame)),
            Voice::Tbf => Refusal::new(1, format!("{more}tbf: illegal value for \"{name}\": \"{text}\"")),
        };
        let remedy = if matches!(option.takes, Takes::Rate | Takes::Rate32) && text.contains('%') {
            format!(
                "\"{text}\" is a part of the device's speed, and {} does not tell its speed: give a rate.",
                self.dev
            )
        } else {
            format!("{} takes {}; \"{text}\" is none.", option.key, option.takes.example())
        };
        refusal.remedy(remedy)
    }

    fn unknown(&self, word: &str, table: &[OptionSpec]) -> Refusal {
        let kind = self.spec.name;
        let line = match self.spec.voice {
            Voice::Plain | Voice::Htb => format!("What is \"{word}\"?"),
            Voice::Fifo | Voice::Tbf => format!("{kind}: unknown parameter \"{word}\""),
        };
        let names: Vec<_> = table.iter().map(|option| option.key).collect();
        let remedy = match crate::nearest(word, names.iter().copied()) {
            Some(name) => format!("{kind} has no \"{word}\"; did you mean {name}?"),
            None if names.is_empty() => format!("{kind} takes no options here."),
            None => format!("{kind} knows {}.", names.join(", ")),
        };
        Refusal::new(1, line).then(&self.usage()).remedy(remedy)
    }

    /// The kind's help, our own words.
    pub(crate) fn usage(&self) -> String {
        self.spec.help()
    }
}

impl PartialEq<u32> for Value {
    fn eq(&self, other: &u32) -> bool {
        matches!(self, Value::Number(number) if number == other)
    }
}
impl PartialOrd<u32> for Value {
    fn partial_cmp(&self, other: &u32) -> Option<std::cmp::Ordering> {
        match self {
            Value::Number(number) => number.partial_cmp(other),
            _ => None,
        }
    }
}

/// Is a value one that tc takes for no value at all: a share of sfb above 1, a weight of pie above 32?
fn out_of_bounds(kind: &str, key: &str, value: &Value) -> bool {
    match (kind, value) {
        ("sfb", Value::Fraction(share)) => *share < 0.0 || *share > 1.0,
        ("fq_pie", Value::Number(share)) if key == "ecn_prob" => *share >= 100,
        ("pie" | "fq_pie", Value::Number(weight)) => matches!(key, "alpha" | "beta") && *weight > 32,
        _ => false,
    }
}

/// A link layer's name.
pub(crate) fn link_layer(text: &str) -> Option<LinkLayer> {
    match text {
        "atm" | "adsl" => Some(LinkLayer::Atm),
        "ethernet" | "ether" => Some(LinkLayer::Ethernet),
        _ => None,
    }
}

fn selector(text: &str) -> Result<Value, String> {
    let Some((value, mask)) = text.split_once('/') else {
        return Err("Missing mask for \"ce_threshold_selector\"".into());
    };
    let mask = u8_in(mask, 0).ok_or("Illegal mask for \"ce_threshold_selector\"")?;
    let value = u8_in(value, 0).ok_or("Illegal \"ce_threshold_selector\"")?;
    Ok(Value::Selector(value, mask))
}
