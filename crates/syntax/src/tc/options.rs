//! Reads a kind's options by its table ([`tidegate_policy::spec`]).

use super::words::{Words, begins};
use crate::number::{float_prefix, i32_in, u8_in, u16_in, u32_in};
use crate::units::{nanos_by, parse_percent, parse_size, parse_size_cell, rate_by, time_by};
use crate::{Env, Refusal};
use tidegate_packet::Rate;
use tidegate_policy::spec::{Clash, Help, KindSpec, OptionSpec, Repeat, ValueKind, Within};
use tidegate_policy::{LinkLayer, RateSpec};

/// Options that are named when none of them was meant; of kinds with more, the list is long enough.
const NAMED: usize = 20;

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
    /// Packets, where a time is allowed too.
    Packets(u32),
}

/// The number before a word for packets.
fn packets_in(text: &str) -> Option<&str> {
    ["p", "pkt", "packet", "packets"].iter().find_map(|unit| {
        text.strip_suffix(unit).filter(|number| number.ends_with(|last: char| last.is_ascii_digit()))
    })
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
    /// A number of packets, where a time is allowed too.
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

    /// A band of a map that has begun.
    fn map_element(&mut self, word: &str, words: &Words<'_>) -> Result<(), Refusal> {
        let bands = self.signed("bands").unwrap_or(3);
        let refusal = |line: &str, remedy: String| Err(Refusal::new(1, line).at(words.last()).remedy(remedy));
        let Some(band) = u32_in(word, 10) else {
            return refusal(
                "Illegal \"priomap\" element",
                format!("\"{word}\" is not a band: give numbers from 0."),
            );
        };
        let Some((_, Value::Map(map))) = self.0.iter_mut().find(|(key, _)| *key == "priomap") else {
            return Ok(());
        };
        if map.len() > 15 {
            return refusal(
                "\"priomap\" index > TC_PRIO_MAX=15",
                "There are 16 priorities: give 16 bands at most.".into(),
            );
        }
        match u8::try_from(band) {
            Ok(byte) if i64::from(band) < i64::from(bands) => map.push(byte),
            _ => {
                let remedy = format!(
                    "There are {bands} bands so far, 0 to {}; say `bands N` before priomap.",
                    bands - 1
                );
                return refusal("\"priomap\" element is out of bands", remedy);
            }
        }
        Ok(())
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

/// Where words that are read go.
pub(crate) trait Take {
    /// An option, and what follows it.
    fn option(
        &mut self,
        reader: &Reader<'_>,
        option: &'static OptionSpec,
        word: &str,
        words: &mut Words<'_>,
    ) -> Result<(), Refusal>;

    /// A word that is no option: does it belong to a list that has begun?
    fn element(&mut self, _word: &str, _words: &Words<'_>) -> Result<bool, Refusal> {
        Ok(false)
    }
}

impl Take for Values {
    fn option(
        &mut self,
        reader: &Reader<'_>,
        option: &'static OptionSpec,
        word: &str,
        words: &mut Words<'_>,
    ) -> Result<(), Refusal> {
        reader.one(option, word, words, self)
    }

    fn element(&mut self, word: &str, words: &Words<'_>) -> Result<bool, Refusal> {
        if !self.has("priomap") {
            return Ok(false);
        }
        self.map_element(word, words).map(|()| true)
    }
}

impl Reader<'_> {
    /// The table that words are read by.
    pub(crate) fn table(&self) -> &'static [OptionSpec] {
        let table = if self.class { self.spec.class } else { self.spec.qdisc };
        table.unwrap_or(&[])
    }

    /// Reads the options of a qdisc to the end of the command, if it can have any.
    pub(crate) fn options(&self, words: &mut Words<'_>) -> Result<Values, Refusal> {
        if self.spec.qdisc.is_none() && words.peek().is_some() {
            let kind = self.spec.name;
            return Err(Refusal::new(255, format!("qdisc '{kind}' does not support option parsing"))
                .at(words.place())
                .remedy(format!("{kind} has nothing to set: write it alone.")));
        }
        self.class_options(words)
    }

    /// Reads the options to the end of the command.
    pub(crate) fn class_options(&self, words: &mut Words<'_>) -> Result<Values, Refusal> {
        let mut values = Values::default();
        self.each(self.table(), words, &mut values)?;
        Ok(values)
    }

    /// Finds each word in a table, to the end of the command.
    pub(crate) fn each(
        &self,
        table: &'static [OptionSpec],
        words: &mut Words<'_>,
        to: &mut dyn Take,
    ) -> Result<(), Refusal> {
        while let Some(word) = words.take() {
            match table.iter().find(|option| option.is(word)) {
                Some(option) => to.option(self, option, word, words)?,
                None if self.is_help(word) => {
                    return Err(Refusal { stderr: self.usage(), code: 1, ..Refusal::default() });
                }
                None if to.element(word, words)? => {}
                None => return Err(self.unknown(word, table).at(words.last())),
            }
        }
        Ok(())
    }

    fn is_help(&self, word: &str) -> bool {
        match self.spec.error_style.help {
            Help::Known => word == "help",
            Help::Begun => begins(word, "help"),
            Help::InClasses => self.class && word == "help",
            Help::Unknown => false,
        }
    }

    /// Reads what follows an option, and keeps it.
    pub(crate) fn one(
        &self,
        option: &'static OptionSpec,
        word: &str,
        words: &mut Words<'_>,
        values: &mut Values,
    ) -> Result<(), Refusal> {
        if self.spec.error_style.value_first && option.value != ValueKind::Flag && words.peek().is_none() {
            words.need()?;
        }
        self.refuse_again(option, values).map_err(|refusal| refusal.at(words.last()))?;
        let value = match option.value {
            ValueKind::Flag => Value::Flag,
            ValueKind::Priomap if values.has("priomap") => {
                return Err(Refusal::new(1, "Error: duplicate priomap")
                    .at(words.last())
                    .remedy("Give priomap once, with up to 16 bands after it."));
            }
            ValueKind::Priomap => Value::Map(Vec::new()),
            takes => {
                let text = words.need()?;
                if takes == ValueKind::Nanos
                    && nanos_by(text, self.env.tc).is_some_and(|ns| u32::try_from(ns).is_err())
                {
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
        // What is no number at all (`nan`) is within all bounds, as in tc.
        if let Some(Within { least, most, more }) = option.within
            && value.as_number().is_some_and(|number| number < least || number > most)
        {
            let remedy = match most.is_finite() {
                true => format!("{} is between {least} and {most}.", option.key),
                false => format!("{} is at least {least}.", option.key),
            };
            let line = format!("Illegal \"{}\"{more}", option.blame);
            return Err(Refusal::new(1, line).at(words.last()).remedy(remedy));
        }
        values.0.push((option.key, value));
        Ok(())
    }

    fn refuse_again(&self, option: &OptionSpec, values: &Values) -> Result<(), Refusal> {
        if let Some(Clash { with, line, remedy }) = option.clash
            && values.number(with).is_some_and(|number| number > 0)
        {
            return Err(Refusal::new(1, line).remedy(remedy));
        }
        let Repeat::Refused(name) = option.repeat else { return Ok(()) };
        let given = match values.last(option.key) {
            None => false,
            Some(Value::Number(number) | Value::Cell(number)) => *number > 0,
            Some(Value::Rate(rate)) => rate.0 > 0,
            Some(_) => true,
        };
        if !given {
            return Ok(());
        }
        let line = self.error_line(self.spec.error_style.twice, name, "", "");
        Err(Refusal::new(1, line).remedy(format!("Give {} once.", option.key)))
    }

    /// The value that `text` means, or further words of tc about what is wrong with it.
    fn value(&self, takes: ValueKind, text: &str) -> Result<Value, String> {
        let plain = String::new;
        match takes {
            ValueKind::Decimal => u32_in(text, 10).map(Value::Number).ok_or_else(plain),
            ValueKind::Number => u32_in(text, 0).map(Value::Number).ok_or_else(plain),
            ValueKind::Decimal16 => u16_in(text, 10).map(|n| Value::Number(n.into())).ok_or_else(plain),
            ValueKind::Signed => i32_in(text, 10).map(Value::Signed).ok_or_else(plain),
            ValueKind::SignedAny => i32_in(text, 0).map(Value::Signed).ok_or_else(plain),
            ValueKind::Hex => u32_in(text, 16).map(Value::Number).ok_or_else(plain),
            ValueKind::Hex16 => u16_in(text, 16).map(|n| Value::Number(n.into())).ok_or_else(plain),
            ValueKind::Size => parse_size(text).map(Value::Number).ok_or_else(plain),
            ValueKind::SizeCell => parse_size_cell(text).map(|(size, _)| Value::Cell(size)).ok_or_else(plain),
            ValueKind::Time => self.time(text).map(Value::Number),
            ValueKind::Nanos => {
                nanos_by(text, self.env.tc).map(|ns| Value::Number(ns as u32)).ok_or_else(plain)
            }
            ValueKind::LinkLayer => link_layer(text).map(Value::Layer).ok_or_else(plain),
            ValueKind::Rate => self.rate(text).map(Value::Rate),
            ValueKind::Rate32 => self.rate32(text).map(|rate| Value::Rate(Rate(rate.into()))),
            // Characters after the number are ignored.
            ValueKind::Fraction => {
                float_prefix(text).map(|(number, _)| Value::Fraction(number)).ok_or_else(plain)
            }
            ValueKind::Selector => selector(text),
            ValueKind::TimeOrPackets => match packets_in(text) {
                Some(packets) => u32_in(packets, 10).map(Value::Packets).ok_or_else(plain),
                None => self.time(text).map(Value::Number),
            },
            ValueKind::Percent
            | ValueKind::Words(_)
            | ValueKind::Ignored
            | ValueKind::Flag
            | ValueKind::Priomap
            | ValueKind::Curve => Ok(Value::Flag),
        }
    }

    /// A time in microseconds.
    pub(super) fn time(&self, text: &str) -> Result<u32, String> {
        time_by(text, self.env.tc).ok_or_else(String::new)
    }

    /// A rate, or tc's first error line for one that it cannot read.
    pub(super) fn rate(&self, text: &str) -> Result<Rate, String> {
        match text.contains('%') {
            true => self.percent(text),
            false => rate_by(text, self.env.tc).ok_or_else(String::new),
        }
    }

    /// A rate that must fit 32 bits of bytes per second.
    pub(super) fn rate32(&self, text: &str) -> Result<u32, String> {
        let is_finite = float_prefix(text).is_some_and(|(number, _)| number.is_finite());
        let rate = self.rate(text)?;
        u32::try_from(rate.0).ok().filter(|_| is_finite).ok_or_else(String::new)
    }

    fn percent(&self, text: &str) -> Result<Rate, String> {
        let percent = parse_percent(text).ok_or_else(String::new)?;
        let file = format!("/sys/class/net/{}/speed", self.dev);
        let Some(mbit) = self.env.speed_mbit(self.dev) else {
            return Err(format!(
                "property \"speed\" in file {file} is currently unknown\nFailed to parse {file}\n"
            ));
        };
        Ok(Rate((f64::from(mbit) * 1e6 / 8.0 * percent / 100.0) as u64))
    }

    fn illegal(&self, option: &OptionSpec, word: &str, text: &str, more: &str) -> Refusal {
        let voice = &self.spec.error_style;
        // Where an option has several names, some kinds name what was typed.
        let name = if voice.as_typed && !option.aliases.is_empty() { word } else { option.blame };
        let refusal = match option.value {
            ValueKind::Selector if !more.is_empty() => Refusal::new(1, more),
            _ => Refusal::new(1, self.error_line(voice.illegal, name, text, more)),
        };
        let refusal = if voice.illegal_usage { refusal.then(&self.usage()) } else { refusal };
        let part = matches!(option.value, ValueKind::Rate | ValueKind::Rate32) && text.contains('%');
        let remedy = if part && parse_percent(text).is_none() {
            format!(
                "A part of the device's speed is from 0% to 100%, and \"{text}\" is not; {} takes a rate, \
                too, such \
                as 5mbit.",
                option.key
            )
        } else if part {
            format!(
                "\"{text}\" is a share of the device's speed, and {} does not report its speed: give a rate.",
                self.dev
            )
        } else {
            format!("{} takes {}; \"{text}\" is not one.", option.key, option.value.example())
        };
        refusal.remedy(remedy)
    }

    /// One of the voice's lines, with what it is about.
    fn error_line(&self, line: &str, name: &str, text: &str, more: &str) -> String {
        let line = line.replace("{kind}", self.spec.name).replace("{more}", more).replace("{name}", name);
        line.replace("{word}", text).replace("{text}", text)
    }

    /// The refusal of a word that is no option.
    pub(crate) fn unknown(&self, word: &str, table: &[OptionSpec]) -> Refusal {
        let kind = self.spec.name;
        let names: Vec<_> = table.iter().map(|option| option.key).collect();
        let remedy = match crate::nearest(word, names.iter().copied()) {
            _ if word.chars().all(char::is_whitespace) => {
                "This word is blank. A line goes on in the next only where nothing stands behind its backslash."
                    .to_owned()
            }
            Some(name) => format!("{kind} has no \"{word}\"; did you mean {name}?"),
            None if names.is_empty() => format!("{kind} takes no options here."),
            None if names.len() > NAMED => format!("{kind} has no \"{word}\"; see the list."),
            None => format!("{kind} knows {}.", names.join(", ")),
        };
        Refusal::new(1, self.error_line(self.spec.error_style.unknown, "", word, ""))
            .then(&self.usage())
            .remedy(remedy)
    }

    /// The kind's help, our own words.
    pub(crate) fn usage(&self) -> String {
        self.spec.help()
    }
}

impl Value {
    /// What bounds are compared with.
    fn as_number(&self) -> Option<f64> {
        match self {
            Value::Number(number) => Some((*number).into()),
            Value::Fraction(fraction) => Some(*fraction),
            _ => None,
        }
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

pub(crate) fn rate_spec(values: &Values, rate: &str) -> RateSpec {
    RateSpec {
        rate: values.rate(rate).unwrap_or_default(),
        overhead: values.number("overhead").unwrap_or(0) as u16,
        mpu: values.number("mpu").unwrap_or(0) as u16,
        linklayer: values.layer("linklayer").unwrap_or_default(),
    }
}

/// The last of `ecn` and `noecn`.
pub(crate) fn ecn(values: &Values) -> Option<bool> {
    values.switch("ecn", "noecn")
}

/// 0 is not sent, so the kernel's value stays.
pub(crate) fn unless_zero(values: &Values, key: &str) -> Option<u32> {
    values.number(key).filter(|value| *value > 0)
}
