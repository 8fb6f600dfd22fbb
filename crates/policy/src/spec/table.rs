//! What tables of options are made of.

use super::error_style::ErrorStyle;
use crate::kind::name::Kind;
use crate::kind::row::{Changes, ClassLayout, Filters, Reports, Waits};
use alloc::format;
use alloc::string::String;
use alloc::string::ToString;

/// What is known about a kind of qdisc whatever its parameters: a row of the table of kinds.
#[derive(Clone, Copy, Debug)]
pub struct KindSpec {
    /// The kind.
    pub kind: Kind,
    /// Its name in tc.
    pub name: &'static str,
    /// What it is, in one line.
    pub title: &'static str,
    /// Options of the qdisc; `None`: tc does not let any be given.
    pub qdisc: Option<&'static [OptionSpec]>,
    /// Options of its classes; `None`: classes are not made by hand.
    pub class: Option<&'static [OptionSpec]>,
    /// How tc words its complaints about this kind.
    pub error_style: ErrorStyle,
    /// What classes it has.
    pub classes: ClassLayout,
    /// Where filters may be attached.
    pub filters: Filters,
    /// How packets wait in it.
    pub waits: Waits,
    /// How it is given other values.
    pub changes: Changes,
    /// Whether it reports to its parent, while it is made with options, the packets that no longer fit.
    pub reports: Reports,
    /// Does it hold what it sends to a rate, whatever its parameters?
    pub keeps_rate: bool,
    /// Does it queue, so that it can be requested by its name? (noqueue and the places for filters do not.)
    pub queues: bool,
}

/// The options of a kind of filter on tc's command line.
#[derive(Clone, Copy, Debug)]
pub struct FilterSpec {
    /// Its name in tc.
    pub name: &'static str,
    /// What it is, in one line.
    pub title: &'static str,
    /// The options, in the order of tc's help.
    pub options: &'static [OptionSpec],
}

/// An option of a kind.
#[derive(Clone, Copy, Debug)]
pub struct OptionSpec {
    /// Its proper name, and the parser's key for it.
    pub key: &'static str,
    /// May the name be cut short (`bur` for `burst`)? Tables are searched from the top, so the first that
    /// fits wins.
    pub prefix: bool,
    /// Other names, written in full unless [`OptionSpec::alias_prefix`] says otherwise.
    pub aliases: &'static [&'static str],
    /// May the other names be cut short?
    pub alias_prefix: bool,
    /// What follows the name.
    pub value: ValueKind,
    /// The name tc uses when it complains about the value; often `key`, not always.
    pub blame: &'static str,
    /// What a second appearance means.
    pub repeat: Repeat,
    /// The numbers it takes, where not all.
    pub within: Option<Within>,
    /// Options that exclude each other.
    pub clash: Option<Clash>,
    /// The value in force when the option is not given.
    pub default: &'static str,
    /// What it does, with its bounds.
    pub doc: &'static str,
}

/// What an option takes, and in which notation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueKind {
    /// Nothing: naming it is enough.
    Flag,
    /// A decimal number.
    Decimal,
    /// A number; `0x` makes it hexadecimal, a leading 0 octal.
    Number,
    /// A number of at most 16 bits, decimal.
    Decimal16,
    /// A signed decimal number.
    Signed,
    /// A signed number in any notation.
    SignedAny,
    /// A hexadecimal number.
    Hex,
    /// A hexadecimal number of at most 16 bits.
    Hex16,
    /// An amount of data (`10k`, `1500b`), in bytes.
    Size,
    /// An amount of data, and the log of a cell: `10k/8`.
    SizeCell,
    /// A rate (`1mbit`, `10%` of the device).
    Rate,
    /// A rate of less than 2^32 bytes per second, in bytes per second.
    Rate32,
    /// A length of time (`5ms`), in microseconds.
    Time,
    /// `ethernet`, `atm` or `adsl`.
    LinkLayer,
    /// Bands of the priorities, up to sixteen.
    Priomap,
    /// A length of time in microseconds, or a number of packets (`5p`).
    TimeOrPackets,
    /// `VALUE/MASK`, both bytes.
    Selector,
    /// A service curve: `m1 RATE d TIME m2 RATE`, or `umax SIZE dmax TIME rate RATE`.
    Curve,
    /// A probability as a fraction: `0.02`.
    Fraction,
    /// A length of time in nanoseconds (`10us`).
    Nanos,
    /// A probability in per cent: `0.3%`.
    Percent,
    /// Several words, that the kind reads on its own; this is how help names them.
    Words(&'static str),
    /// A word that is read and ignored.
    Ignored,
}

/// What a second appearance of an option means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The last one holds.
    Last,
    /// Refused, when the first was not zero; the words are the option's name in the complaint.
    Refused(&'static str),
}

/// The numbers that an option takes; others tc takes for no value at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Within {
    /// The least value that is accepted.
    pub least: f64,
    /// The greatest value that is accepted.
    pub most: f64,
    /// What the complaint ends with.
    pub more: &'static str,
}

/// Another option that must not be given too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clash {
    /// The option that it conflicts with.
    pub with: &'static str,
    /// tc's line about both.
    pub line: &'static str,
    /// What to do about it.
    pub remedy: &'static str,
}

impl OptionSpec {
    /// An option whose name is written in full, of which the last one holds.
    pub(crate) const fn exact(
        key: &'static str,
        takes: ValueKind,
        default: &'static str,
        doc: &'static str,
    ) -> OptionSpec {
        OptionSpec {
            key,
            prefix: false,
            aliases: &[],
            alias_prefix: false,
            value: takes,
            blame: key,
            repeat: Repeat::Last,
            within: None,
            clash: None,
            default,
            doc,
        }
    }
    /// An option whose name may be cut short.
    pub(crate) const fn short(
        key: &'static str,
        takes: ValueKind,
        default: &'static str,
        doc: &'static str,
    ) -> OptionSpec {
        OptionSpec { prefix: true, ..OptionSpec::exact(key, takes, default, doc) }
    }
    /// With further names.
    pub(crate) const fn or(self, aliases: &'static [&'static str]) -> OptionSpec {
        OptionSpec { aliases, ..self }
    }
    /// With further names, which may be cut short.
    pub(crate) const fn or_short(self, aliases: &'static [&'static str]) -> OptionSpec {
        OptionSpec { aliases, alias_prefix: true, ..self }
    }
    /// Blamed under another name.
    pub(crate) const fn blamed(self, blame: &'static str) -> OptionSpec {
        OptionSpec { blame, ..self }
    }
    /// Refused when it comes twice.
    pub(crate) const fn once(self, name: &'static str) -> OptionSpec {
        OptionSpec { repeat: Repeat::Refused(name), ..self }
    }

    /// Taken for no value outside of these bounds.
    pub(crate) const fn within(self, least: f64, most: f64) -> OptionSpec {
        OptionSpec { within: Some(Within { least, most, more: "" }), ..self }
    }
    /// Taken for no value below a bound, with words about it.
    pub(crate) const fn at_least(self, least: f64, more: &'static str) -> OptionSpec {
        OptionSpec { within: Some(Within { least, most: f64::INFINITY, more }), ..self }
    }
    /// Refused beside another option.
    pub(crate) const fn not_with(self, clash: Clash) -> OptionSpec {
        OptionSpec { clash: Some(clash), ..self }
    }

    /// Is this what `word` means?
    pub fn is(&self, word: &str) -> bool {
        let fits = |name: &str, is_short: bool| match is_short {
            true => !word.is_empty() && name.starts_with(word),
            false => name == word,
        };
        fits(self.key, self.prefix) || self.aliases.iter().any(|name| fits(name, self.alias_prefix))
    }
}

impl KindSpec {
    /// A kind of which nothing is special: a queue without options, classes and filters.
    pub(crate) const fn new(kind: Kind, name: &'static str, title: &'static str) -> KindSpec {
        KindSpec {
            kind,
            name,
            title,
            qdisc: None,
            class: None,
            error_style: ErrorStyle::PLAIN,
            classes: ClassLayout::None,
            filters: Filters::None,
            waits: Waits::Otherwise,
            changes: Changes::Recreate,
            reports: Reports::Never,
            keeps_rate: false,
            queues: true,
        }
    }

    /// The options of the kind, for people.
    pub fn help(&self) -> String {
        help(self.name, self.title, [("options", self.qdisc), ("options of a class", self.class)])
    }
}

impl FilterSpec {
    /// The options of the kind, for people.
    pub fn help(&self) -> String {
        help(self.name, self.title, [("options", Some(self.options)), ("", None)])
    }
}

fn help(name: &str, title: &str, tables: [(&str, Option<&[OptionSpec]>); 2]) -> String {
    let mut out = format!("{name}: {title}\n");
    for (head, table) in tables {
        match table {
            Some([]) => out.push_str(&format!("{head}: none\n")),
            Some(options) => {
                out.push_str(&format!("{head}:\n"));
                help_options(options, &mut out);
            }
            None => {}
        }
    }
    out
}

/// One line per option: name, what it takes, what it does, its default.
pub fn help_options(options: &[OptionSpec], out: &mut String) {
    for option in options {
        let mut head = option.key.to_string();
        for alias in option.aliases {
            head.push('|');
            head.push_str(alias);
        }
        let takes = option.value.words();
        if !takes.is_empty() {
            head.push(' ');
            head.push_str(takes);
        }
        out.push_str(&format!("  {head:<34} {}", option.doc));
        match option.default {
            "" => {}
            "this" => out.push_str(" (default)"),
            default => out.push_str(&format!(" (default {default})")),
        }
        out.push('\n');
    }
}

impl ValueKind {
    /// How the value is named in help.
    pub const fn words(self) -> &'static str {
        match self {
            ValueKind::Flag => "",
            ValueKind::Decimal
            | ValueKind::Number
            | ValueKind::Decimal16
            | ValueKind::Signed
            | ValueKind::SignedAny => "N",
            ValueKind::Hex | ValueKind::Hex16 => "HEX",
            ValueKind::Size => "SIZE",
            ValueKind::SizeCell => "SIZE[/CELL]",
            ValueKind::Rate | ValueKind::Rate32 => "RATE",
            ValueKind::Time | ValueKind::Nanos => "TIME",
            ValueKind::Percent => "PERCENT",
            ValueKind::Words(words) => words,
            ValueKind::LinkLayer => "ethernet|atm|adsl",
            ValueKind::TimeOrPackets => "TIME|Np",
            ValueKind::Priomap => "BAND…",
            ValueKind::Selector => "VALUE/MASK",
            ValueKind::Curve => "[m1 RATE d TIME] m2 RATE | [umax SIZE dmax TIME] rate RATE",
            ValueKind::Fraction => "FRACTION",
            ValueKind::Ignored => "WORD",
        }
    }

    /// What a value must look like, for an explanation after a refusal.
    pub const fn example(self) -> &'static str {
        match self {
            ValueKind::Flag => "no value",
            ValueKind::Decimal => "a decimal number such as 1500, without a unit",
            ValueKind::Number => "a number such as 1024 or 0x400, without a unit",
            ValueKind::Decimal16 => "a decimal number from 0 to 65535",
            ValueKind::Signed | ValueKind::SignedAny => "a whole number without a unit",
            ValueKind::Hex => "a hexadecimal number such as 20 or 0x20",
            ValueKind::Hex16 => "a class's minor number, in hexadecimal up to ffff",
            ValueKind::Size => "an amount such as 10k (10240 bytes), 1500b or 12kbit",
            ValueKind::SizeCell => {
                "an amount such as 10k (10240 bytes) or 1500b, if need be with a cell size: 10k/8"
            }
            ValueKind::Rate32 => {
                "a rate with its unit, such as 500kbit or 1.5mbit, below 34359738368 bit per second"
            }
            ValueKind::Rate => {
                "a rate with its unit, such as 500kbit, 1.5mbit or 64kbps (kilobytes per second)"
            }
            ValueKind::Time => "a time with its unit, such as 5ms or 100us; without one, microseconds",
            ValueKind::LinkLayer => "ethernet, atm or adsl",
            ValueKind::TimeOrPackets => "a time such as 1ms, or packets such as 5p",
            ValueKind::Priomap => "up to 16 band numbers, each less than the number of bands",
            ValueKind::Selector => "a value and a mask, such as 0x01/0x03",
            ValueKind::Curve => {
                "a service curve, such as m1 2mbit d 10ms m2 100kbit, or umax 1500b dmax 20ms rate 100kbit"
            }
            ValueKind::Fraction => "a probability from 0 to 1, such as 0.02",
            ValueKind::Nanos => "a time with its unit, such as 20us or 500ns; without one, nanoseconds",
            ValueKind::Percent => "a probability from 0% to 100%, such as 0.3%",
            ValueKind::Words(words) => words,
            ValueKind::Ignored => "one word",
        }
    }
}
