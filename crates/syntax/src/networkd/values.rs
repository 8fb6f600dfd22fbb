//! Values as systemd.syntax(7) and systemd.time(7) have them, as words of tc.

use crate::number::{u16_in, u32_in};
use crate::units::{parse_rate, parse_size, parse_time};

/// What a key takes.
#[derive(Clone, Copy, Debug)]
pub(super) enum ValueForm {
    /// Bits per second, with K, M, G or T of 1,000.
    Rate,
    /// Bytes, with K, M, G or T of 1,024.
    Size,
    /// A time, seconds where it has no unit.
    Time,
    /// A time in whole seconds.
    Seconds,
    /// A number of 32 bits, from this on.
    Count(u32),
    /// A number between these, both included.
    Integer(i32, i32),
    /// A hexadecimal number of 16 bits, with `0x` or without.
    Hex,
    /// Per cent, with the sign.
    Percent,
    /// Yes or no, with the word of tc for each.
    Bool(&'static str, &'static str),
    /// Yes, with its word of tc; no, without any.
    Flag(&'static str),
    /// One of these words, each with that of tc.
    Choice(&'static [(&'static str, &'static str)]),
    /// Several with blanks between, of several lines together.
    List(&'static ValueForm),
}

impl ValueForm {
    /// A value as tc has it; an empty list where tc needs no word.
    pub(super) fn word(self, text: &str) -> Option<Option<String>> {
        Some(Some(match self {
            ValueForm::Rate => format!("{}bit", scaled(text, 1000)?),
            ValueForm::Size => u32::try_from(scaled(text, 1024)?).ok()?.to_string(),
            ValueForm::Time => format!("{}us", micros(text)?),
            ValueForm::Seconds => {
                let micros = micros(text)?;
                (micros % 1_000_000 == 0).then(|| (micros / 1_000_000).to_string())?
            }
            ValueForm::Count(least) => {
                let number = match text.strip_prefix("0x") {
                    Some(digits) => u32_in(digits, 16),
                    None => text.parse().ok(),
                };
                number.filter(|it| *it >= least)?.to_string()
            }
            ValueForm::Integer(least, most) => {
                text.parse::<i32>().ok().filter(|it| (least..=most).contains(it))?.to_string()
            }
            ValueForm::Hex => {
                let digits = text.strip_prefix("0x").unwrap_or(text);
                format!("{:x}", u16::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?)
            }
            ValueForm::Percent => {
                let in_percent = [('%', 1.0), ('‰', 10.0), ('‱', 100.0)];
                let (digits, parts) = in_percent
                    .iter()
                    .find_map(|(sign, parts)| Some((text.strip_suffix(*sign)?.trim_end(), parts)))?;
                let share: f64 = digits.parse::<f64>().ok()? / parts;
                (0.0..=100.0).contains(&share).then(|| format!("{share}%"))?
            }
            ValueForm::Bool(yes, no) => if truth(text)? { yes } else { no }.to_owned(),
            ValueForm::Flag(yes) => return Some(truth(text)?.then(|| yes.to_owned())),
            ValueForm::Choice(choices) => {
                // A choice may have yes and no among its words.
                let text = truth(text).map_or(text, |is| if is { "yes" } else { "no" });
                choices.iter().find(|(word, _)| *word == text).map(|(_, word)| (*word).to_owned())?
            }
            ValueForm::List(form) => return form.word(text),
        }))
    }

    /// What may be written, for a remedy.
    pub(super) fn example(self) -> String {
        match self {
            ValueForm::Rate => "write bits per second: 20M, 512K".to_owned(),
            ValueForm::Size => "write bytes: 1514, 32K".to_owned(),
            ValueForm::Time => "write a time with its unit: 5ms, 100us".to_owned(),
            ValueForm::Seconds => "write whole seconds: 10".to_owned(),
            ValueForm::Count(least) => format!("write a number from {least} on"),
            ValueForm::Integer(least, most) => format!("write a number from {least} to {most}"),
            ValueForm::Hex => "write a hexadecimal number from 0 to ffff".to_owned(),
            ValueForm::Percent => "write per cent: 0.5%".to_owned(),
            ValueForm::Bool(..) | ValueForm::Flag(_) => "write yes or no".to_owned(),
            ValueForm::Choice(choices) => {
                let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
                format!("write one of {}", words.join(", "))
            }
            ValueForm::List(form) => format!("{}, several with blanks between", form.example()),
        }
    }
}

/// `yes` and `no`, and the other words for them.
fn truth(text: &str) -> Option<bool> {
    let is = |words: &[&str]| words.iter().any(|word| word.eq_ignore_ascii_case(text));
    match () {
        () if is(&["1", "yes", "y", "true", "t", "on"]) => Some(true),
        () if is(&["0", "no", "n", "false", "f", "off"]) => Some(false),
        () => None,
    }
}

/// A number with K, M, G or T behind it.
fn scaled(text: &str, base: u64) -> Option<u64> {
    let (digits, power) = match text.char_indices().next_back()? {
        (end, 'B') => (&text[..end], 0),
        (end, 'K') => (&text[..end], 1),
        (end, 'M') => (&text[..end], 2),
        (end, 'G') => (&text[..end], 3),
        (end, 'T') => (&text[..end], 4),
        _ => (text, 0),
    };
    decimal(digits.trim_end(), base.pow(power))
}

/// A time in microseconds: parts with units, seconds without one, which are added up.
fn micros(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 21] = [
        ("", 1_000_000),
        ("us", 1),
        ("usec", 1),
        ("µs", 1),
        ("ms", 1_000),
        ("msec", 1_000),
        ("s", 1_000_000),
        ("sec", 1_000_000),
        ("second", 1_000_000),
        ("seconds", 1_000_000),
        ("m", 60_000_000),
        ("min", 60_000_000),
        ("minute", 60_000_000),
        ("minutes", 60_000_000),
        ("h", 3_600_000_000),
        ("hr", 3_600_000_000),
        ("hour", 3_600_000_000),
        ("hours", 3_600_000_000),
        ("d", 86_400_000_000),
        ("day", 86_400_000_000),
        ("days", 86_400_000_000),
    ];
    let mut rest = text.trim();
    let mut all: u64 = 0;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let is_digit = |letter: char| letter.is_ascii_digit() || letter == '.';
        let (digits, after) = rest.split_at(rest.find(|letter| !is_digit(letter)).unwrap_or(rest.len()));
        let after = after.trim_start();
        let end = after.find(|letter: char| letter.is_ascii_digit() || letter.is_whitespace());
        let (unit, later) = after.split_at(end.unwrap_or(after.len()));
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;
        all = all.checked_add(decimal(digits, *scale)?)?;
        rest = later.trim_start();
    }
    u32::try_from(all).ok().map(u64::from)
}

/// A decimal number times a whole one, what is below one cut off.
fn decimal(digits: &str, scale: u64) -> Option<u64> {
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() && part.is_empty() || !is_number(whole) || !is_number(part) || part.len() > 18 {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let parts: u64 = if part.is_empty() { 0 } else { part.parse().ok()? };
    let of_part = u128::from(parts) * u128::from(scale) / 10_u128.pow(part.len() as u32);
    whole.checked_mul(scale)?.checked_add(u64::try_from(of_part).ok()?)
}

impl ValueForm {
    /// A value of tc as systemd has it.
    pub(super) fn written(self, word: &str) -> Option<String> {
        Some(match self {
            ValueForm::Rate => suffixed(parse_rate(word)?.0.checked_mul(8)?, 1000),
            ValueForm::Size => suffixed(parse_size(word)?.into(), 1024),
            ValueForm::Time => {
                let micros = parse_time(word)?;
                match micros {
                    _ if micros % 1_000_000 == 0 => format!("{}s", micros / 1_000_000),
                    _ if micros % 1000 == 0 => format!("{}ms", micros / 1000),
                    _ => format!("{micros}us"),
                }
            }
            ValueForm::Hex => format!("{:x}", u16_in(word.strip_prefix("0x").unwrap_or(word), 16)?),
            ValueForm::Seconds | ValueForm::Count(_) | ValueForm::Integer(..) | ValueForm::Percent => {
                self.word(word)??
            }
            ValueForm::Bool(..) | ValueForm::Flag(_) | ValueForm::Choice(_) => self.by_word(word)?,
            ValueForm::List(form) => form.written(word)?,
        })
    }

    /// The value for which tc has this word.
    pub(super) fn by_word(self, word: &str) -> Option<String> {
        match self {
            ValueForm::Bool(yes, _) | ValueForm::Flag(yes) if yes == word => Some("yes".to_owned()),
            ValueForm::Bool(_, no) if no == word => Some("no".to_owned()),
            ValueForm::Choice(choices) => {
                choices.iter().find(|(_, own)| *own == word).map(|(value, _)| (*value).to_owned())
            }
            _ => None,
        }
    }
}

/// A number with the largest of K, M and G that leaves it whole.
fn suffixed(number: u64, base: u64) -> String {
    let fits = |power: u32| number != 0 && number.is_multiple_of(base.pow(power));
    match [(3, "G"), (2, "M"), (1, "K")].into_iter().find(|(power, _)| fits(*power)) {
        Some((power, letter)) => format!("{}{letter}", number / base.pow(power)),
        None => number.to_string(),
    }
}

#[cfg(test)]
impl ValueForm {
    /// A value that it takes.
    pub(super) fn sample(self) -> String {
        match self {
            ValueForm::Rate => "9M".to_owned(),
            ValueForm::Size => "3K".to_owned(),
            ValueForm::Time => "7ms".to_owned(),
            ValueForm::Seconds => "8".to_owned(),
            ValueForm::Count(least) => (least + 4).to_string(),
            ValueForm::Integer(_, most) => most.to_string(),
            ValueForm::Hex => "1f".to_owned(),
            ValueForm::Percent => "2.5%".to_owned(),
            ValueForm::Bool(..) | ValueForm::Flag(_) => "yes".to_owned(),
            ValueForm::Choice(choices) => choices[0].0.to_owned(),
            ValueForm::List(form) => format!("{0} {0}", form.sample()),
        }
    }
}
