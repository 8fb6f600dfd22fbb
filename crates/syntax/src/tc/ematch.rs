//! Expressions of conditions (tc-ematch(8)): their words, and how they are listed.

use super::build::later;
use super::words::Words;
use crate::Refusal;
use crate::number::whole;
use tidegate_policy::spec::{REFUSED_EMATCHES, why_not};
use tidegate_policy::{CanRule, Ematch, EmatchCompare, Layer, MetaId, MetaValue, Term, U32Key, Width};

/// How deep parentheses may be nested.
const DEEPEST: u32 = 8;
/// The most conditions of an expression.
const MOST: usize = 256;

/// An error in an expression: tc's first line, and what to write instead.
struct Wrong {
    line: String,
    remedy: String,
    /// The condition that is wrong, with the error marked: tc prints it after the whole expression.
    shown: Option<String>,
}

impl Wrong {
    fn new(line: impl Into<String>, remedy: impl Into<String>) -> Wrong {
        Wrong { line: line.into(), remedy: remedy.into(), shown: None }
    }
}

const EXPRESSION: &str = "An expression is CONDITION [and|or EXPRESSION], a condition cmp(…), nbyte(…), \
u32(…), meta(…), each with `not` before it or an expression in parentheses in its place.";

/// Reads the words after `match` in a filter that takes more words: tc looks for the end of the expression in
/// the word behind it, and without one goes back a word too many, so an expression must not come last.
pub(super) fn parse_before_end(
    words: &mut Words<'_>,
    unknown: &dyn Fn(&str, &Words<'_>) -> Refusal,
) -> Result<Vec<Term>, Refusal> {
    if words.peek().is_none() {
        words.need()?;
    }
    let last = words.rest().last().map_or("", String::as_str);
    let terms = parse(words)?;
    match words.peek() {
        Some(_) => Ok(terms),
        None => Err(unknown(last, words)
            .remedy("An expression must not come last: say the class or an action after it.")),
    }
}

/// Reads the words after `match`, as far as they are an expression.
pub(super) fn parse(words: &mut Words<'_>) -> Result<Vec<Term>, Refusal> {
    let place = words.place();
    let rest = words.rest();
    let text = rest.join(" ");
    let mut reader = Reader { text: &text, at: 0, count: 0, wrong: None };
    let read = reader.expression(0);
    // Conditions are looked at when the whole expression was understood.
    match read.and_then(|terms| reader.wrong.take().map_or(Ok(terms), Err)) {
        Ok(terms) => {
            // How many words that was.
            let mut end = 0;
            for word in rest {
                if end >= reader.at {
                    break;
                }
                words.skip();
                end += word.len() + 1;
            }
            Ok(terms)
        }
        Err(wrong) => {
            let unknown = wrong.line.starts_with("Unknown ematch");
            let context = match wrong.shown {
                _ if unknown => String::new(),
                Some(shown) => format!("... {}...\n... {shown}...\n", context(rest, reader.at)),
                None => format!("... >>{text}<< ...\n"),
            };
            let refused = Refusal::new(1, wrong.line).then(&format!("{context}Illegal \"ematch\"\n"));
            Err(refused.at(place).remedy(wrong.remedy))
        }
    }
}

/// The words of an expression that ends at `end`, as tc shows them: its last word is marked if more words
/// follow.
fn context(words: &[impl AsRef<str>], end: usize) -> String {
    let mut at = 0;
    let taken = words.iter().take_while(|word| {
        let before = at < end;
        at += word.as_ref().len() + 1;
        before
    });
    let taken: Vec<&str> = taken.map(AsRef::as_ref).collect();
    let Some((last, before)) = taken.split_last().filter(|_| taken.len() < words.len()) else {
        return String::new();
    };
    let before: String = before.iter().map(|word| format!("{word} ")).collect();
    format!("{before}>>{last}<< ")
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    count: usize,
    /// The first condition that cannot be.
    wrong: Option<Wrong>,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or("")
    }

    fn blanks(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    /// A name begins here: it, without being taken.
    fn name(&mut self) -> &'t str {
        self.blanks();
        let rest = self.rest();
        let end = rest.find(|c: char| c.is_whitespace() || "()\"".contains(c)).unwrap_or(rest.len());
        &rest[..end]
    }

    fn expression(&mut self, depth: u32) -> Result<Vec<Term>, Wrong> {
        let syntax = || Wrong::new("Parse error: syntax error", EXPRESSION);
        if depth > DEEPEST {
            return Err(Wrong::new(
                "Parse error: syntax error",
                format!("At most {DEEPEST} parentheses within each other."),
            ));
        }
        let mut terms = Vec::new();
        loop {
            self.count += 1;
            if self.count > MOST {
                return Err(Wrong::new("Parse error: syntax error", format!("At most {MOST} conditions.")));
            }
            let mut term = self.term(depth)?;
            let joined = match self.name() {
                word if word.eq_ignore_ascii_case("and") => Some((false, word)),
                word if word.eq_ignore_ascii_case("or") => Some((true, word)),
                _ => None,
            };
            let Some((or, word)) = joined else {
                terms.push(term);
                return Ok(terms);
            };
            self.at += word.len();
            term.or = or;
            terms.push(term);
            self.blanks();
            if self.rest().is_empty() {
                return Err(syntax());
            }
        }
    }

    fn term(&mut self, depth: u32) -> Result<Term, Wrong> {
        let syntax = || Wrong::new("Parse error: syntax error", EXPRESSION);
        let mut not = false;
        if self.name().eq_ignore_ascii_case("not") {
            self.at += 3;
            not = true;
        }
        self.blanks();
        if self.rest().starts_with('(') {
            self.at += 1;
            let inner = self.expression(depth + 1)?;
            self.close()?;
            return Ok(Term { not, or: false, what: Ematch::All(inner) });
        }
        let name = self.name();
        self.at += name.len();
        self.blanks();
        if name.is_empty() || !self.rest().starts_with('(') {
            return Err(syntax());
        }
        self.at += 1;
        let arguments = self.arguments()?;
        self.close()?;
        let what = condition(name, &arguments).unwrap_or_else(|wrong| {
            self.wrong.get_or_insert(wrong);
            Ematch::All(Vec::new())
        });
        Ok(Term { not, or: false, what })
    }

    fn close(&mut self) -> Result<(), Wrong> {
        self.blanks();
        if !self.rest().starts_with(')') {
            return Err(Wrong::new("Parse error: syntax error", "A parenthesis is not closed."));
        }
        self.at += 1;
        Ok(())
    }

    fn arguments(&mut self) -> Result<Vec<Vec<u8>>, Wrong> {
        let mut all = Vec::new();
        loop {
            self.blanks();
            let rest = self.rest();
            if rest.is_empty() || rest.starts_with(')') {
                return Ok(all);
            }
            if rest.starts_with('"') {
                all.push(self.string()?);
                continue;
            }
            let word = self.name();
            if word.is_empty() {
                return Err(Wrong::new("Parse error: syntax error", EXPRESSION));
            }
            self.at += word.len();
            all.push(word.as_bytes().to_vec());
        }
    }

    /// Bytes in quotes, with the usual escapes.
    fn string(&mut self) -> Result<Vec<u8>, Wrong> {
        let rest = &self.rest().as_bytes()[1..];
        let mut bytes = Vec::new();
        let mut at = 0;
        while let Some(&byte) = rest.get(at) {
            at += 1;
            match byte {
                b'"' => {
                    self.at += at + 1;
                    return Ok(bytes);
                }
                b'\\' => {
                    let Some(&escaped) = rest.get(at) else { break };
                    at += 1;
                    bytes.push(match escaped {
                        b'n' => b'\n',
                        b't' => b'\t',
                        b'r' => b'\r',
                        b'v' => 0x0b,
                        b'b' => 0x08,
                        b'f' => 0x0c,
                        b'a' => 0x07,
                        b'x' => {
                            let digits = rest.get(at..at + 2).and_then(|two| std::str::from_utf8(two).ok());
                            match digits.and_then(|two| u8::from_str_radix(two, 16).ok()) {
                                Some(byte) => {
                                    at += 2;
                                    byte
                                }
                                None => b'x',
                            }
                        }
                        other => other,
                    });
                }
                other => bytes.push(other),
            }
        }
        Err(Wrong::new("Parse error: syntax error", "A string is not closed."))
    }
}

/// The arguments of a condition, one after the other.
struct Args<'a> {
    kind: &'static str,
    usage: &'static str,
    all: std::slice::Iter<'a, Vec<u8>>,
    given: &'a [Vec<u8>],
    /// Which was taken last; `None` after the end.
    last: Option<usize>,
}

impl<'a> Args<'a> {
    fn next(&mut self) -> Option<&'a str> {
        self.last = (self.all.len() > 0).then(|| self.given.len() - self.all.len());
        self.all.next().map(|bytes| std::str::from_utf8(bytes).unwrap_or(""))
    }
    fn wrong(&self, what: &str) -> Wrong {
        self.marked(format!("{}: {what}", self.kind), self.last)
    }
    /// A mistake in argument `at`.
    fn marked(&self, line: String, at: Option<usize>) -> Wrong {
        let words = self.given.iter().map(|bytes| String::from_utf8_lossy(bytes)).enumerate();
        let words =
            words.map(|(place, word)| if at == Some(place) { format!(">>{word}<<") } else { word.into() });
        let shown = format!("{}({})", self.kind, words.collect::<Vec<_>>().join(" "));
        Wrong { shown: Some(shown), ..Wrong::new(line, self.usage) }
    }
    /// A number of which the lower 32 bits count.
    fn number(&mut self, what: &str) -> Result<u32, Wrong> {
        self.next().and_then(low_word).ok_or_else(|| self.wrong(what))
    }
}

/// A number as tc keeps it: read with 64 bits, of which the lower 32 stay. All ones are its sign of an error.
fn low_word(text: &str) -> Option<u32> {
    let number = match text.strip_prefix('-') {
        Some(digits) => whole(digits, 0)?.wrapping_neg(),
        None => whole(text, 0)?,
    };
    (number != u64::MAX).then_some(number as u32)
}

fn condition(name: &str, arguments: &[Vec<u8>]) -> Result<Ematch, Wrong> {
    let (all, given, last) = (arguments.iter(), arguments, None);
    match name {
        "cmp" => cmp(Args {
            kind: "cmp",
            usage: "cmp(u8|u16|u32 at OFFSET [layer 0|1|2] [mask M] [trans] eq|gt|lt VALUE)",
            all,
            given,
            last,
        }),
        "nbyte" => {
            nbyte(Args { kind: "nbyte", usage: "nbyte(\"TEXT\" at OFFSET [layer 0|1|2])", all, given, last })
        }
        "u32" => word(Args {
            kind: "u32",
            usage: "u32(u8|u16|u32 VALUE MASK at [nexthdr+]OFFSET)",
            all,
            given,
            last,
        }),
        "canid" => canid(Args {
            kind: "canid",
            usage: "canid(sff ID[:MASK] eff ID[:MASK] …), in hexadecimal",
            all,
            given,
            last,
        }),
        "meta" => meta(Args {
            kind: "meta",
            usage: "meta(WHAT [shift N] [mask M] eq|gt|lt NUMBER-OR-WHAT)",
            all,
            given,
            last,
        }),
        _ => Err(match why_not(REFUSED_EMATCHES, name) {
            Some(why) => {
                let stderr = later("ematch", name, 0).stderr.trim_end().to_owned();
                Wrong::new(stderr, format!("Not built: {why}."))
            }
            None => Wrong::new(format!("Unknown ematch \"{name}\""), EXPRESSION),
        }),
    }
}

/// Identifiers of CAN frames; tc sends those of 29 bits first.
fn canid(mut args: Args<'_>) -> Result<Ematch, Wrong> {
    let (mut long, mut short) = (Vec::new(), Vec::new());
    while let Some(word) = args.next() {
        let extended = match word {
            "eff" => true,
            "sff" => false,
            _ => return Err(args.wrong("invalid key")),
        };
        let text = args.next().ok_or_else(|| args.wrong("missing argument"))?;
        let mut parts = text.split(':');
        let id = hex(parts.next().unwrap_or(""));
        let bits = if extended { CanRule::LONG } else { CanRule::SHORT };
        let mask = parts.next().filter(|mask| !mask.is_empty()).map_or(bits, |mask| hex(mask) & bits);
        match extended {
            true => long.push(CanRule { id: id & CanRule::LONG | CanRule::EXTENDED, mask }),
            false => short.push(CanRule { id, mask }),
        }
    }
    long.append(&mut short);
    Ok(Ematch::Canid(long))
}

/// A hexadecimal number as C reads it: as far as there are digits.
fn hex(text: &str) -> u32 {
    let (minus, digits) = text.strip_prefix('-').map_or((false, text), |digits| (true, digits));
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")).unwrap_or(digits);
    let digits = digits.chars().map_while(|digit| digit.to_digit(16));
    let number = digits.fold(0u32, |number, digit| number.wrapping_shl(4) | digit);
    if minus { number.wrapping_neg() } else { number }
}

fn width(text: Option<&str>) -> Option<Width> {
    match text? {
        "u8" => Some(Width::U8),
        "u16" => Some(Width::U16),
        "u32" => Some(Width::U32),
        _ => None,
    }
}

fn layer(text: Option<&str>) -> Option<Layer> {
    Some(match text? {
        "link" | "eth" | "0" => Layer::Link,
        // tc takes what follows the network layer for that layer itself.
        "network" | "next_header" | "ip" | "1" => Layer::Network,
        "transport" | "tcp" | "2" => Layer::Transport,
        _ => return None,
    })
}

/// The layer after `layer`.
fn read_layer(args: &mut Args<'_>) -> Result<Layer, Wrong> {
    let text = args.next();
    let number = text.and_then(low_word).is_some();
    layer(text)
        .ok_or_else(|| args.wrong(if number { "illegal layer, must be in 0..2" } else { "invalid layer" }))
}

fn compare(text: &str) -> Option<EmatchCompare> {
    [EmatchCompare::Eq, EmatchCompare::Gt, EmatchCompare::Lt].into_iter().find(|how| how.name() == text)
}

fn cmp(mut args: Args<'_>) -> Result<Ematch, Wrong> {
    let width = width(args.next()).ok_or_else(|| args.wrong("invalid alignment"))?;
    let (mut offset, mut at, mut mask, mut trans, mut compared) = (None, Layer::Network, 0, false, None);
    while let Some(word) = args.next() {
        match word {
            "at" => offset = Some(args.number("illegal offset, must be inside of a packet")?),
            "layer" => at = read_layer(&mut args)?,
            "mask" => mask = args.number("illegal mask")?,
            "trans" => trans = true,
            _ => {
                // So tc calls it.
                let how =
                    compare(word).ok_or_else(|| args.marked("nbyte: unknown parameter".into(), args.last))?;
                if args.all.len() == 0 {
                    return Err(args.wrong("missing argument"));
                }
                compared = Some((how, args.number("illegal value")?));
            }
        }
    }
    let (Some(offset), Some((how, value))) = (offset.map(|offset| offset as u16), compared) else {
        return Err(args.wrong("offset and value required"));
    };
    Ok(Ematch::Cmp { width, offset, layer: at, mask, trans, how, value })
}

fn nbyte(mut args: Args<'_>) -> Result<Ematch, Wrong> {
    let bytes = args.all.next().cloned().ok_or_else(|| args.wrong("missing arguments"))?;
    if bytes.is_empty() {
        return Err(args.wrong("needle length is 0"));
    }
    let (mut offset, mut at) = (None, Layer::Network);
    while let Some(word) = args.next() {
        match word {
            "at" => offset = Some(args.number("illegal offset, must be inside of a packet")?),
            "layer" => at = read_layer(&mut args)?,
            _ => return Err(args.wrong("unknown parameter")),
        }
    }
    let offset = offset.ok_or_else(|| args.wrong("offset required"))? as u16;
    Ok(Ematch::Nbyte { offset, layer: at, data: bytes })
}

/// What `u32(…)` compares, and under which mask.
fn number(args: &mut Args<'_>, what: &str) -> Result<u32, Wrong> {
    let text = args.next().ok_or_else(|| args.wrong(&format!("missing {what}")))?;
    low_word(text).ok_or_else(|| args.wrong(&format!("invalid {what}, must be numeric")))
}

fn word(mut args: Args<'_>) -> Result<Ematch, Wrong> {
    let width = width(args.next()).ok_or_else(|| args.wrong("invalid alignment"))?;
    let value = number(&mut args, "key")?;
    let mask = number(&mut args, "mask")?;
    let Some("at") = args.next() else { return Err(args.wrong("missing \"at\"")) };
    let text = args.next().ok_or_else(|| args.wrong("missing offset"))?;
    let (text, offset_mask) = match text.strip_prefix("nexthdr+") {
        Some(rest) => (rest, -1),
        None => (text, 0),
    };
    let at = crate::number::i32_in(text, 0).ok_or_else(|| args.wrong("invalid offset"))?;
    let most = match width {
        Width::U8 => 0xff,
        Width::U16 => 0xffff,
        Width::U32 => u32::MAX,
    };
    for (what, number) in [("key", value), ("mask", mask)] {
        if number > most {
            return Err(args.marked(format!("Illegal {what} (>0x{most:X})"), args.last));
        }
    }
    let shift = match width {
        Width::U8 => (3 - (at & 3)) * 8,
        Width::U16 => {
            if at & 3 == 0 {
                16
            } else {
                0
            }
        }
        Width::U32 => 0,
    };
    let (value, mask) = (value << shift, mask << shift);
    Ok(Ematch::U32(U32Key { value: value & mask, mask, offset: at & !3, offset_mask }))
}

fn meta(mut args: Args<'_>) -> Result<Ematch, Wrong> {
    let mut words: Vec<&str> = Vec::new();
    while let Some(word) = args.next() {
        words.push(word);
    }
    let at = words.iter().position(|word| compare(word).is_some());
    let Some((at, how)) = at.and_then(|at| Some((at, compare(words[at])?))) else {
        if let Some(first) = words.first() {
            value(&[first], 0, &args)?;
        }
        return Err(args.wrong(match words.len() {
            0 => "missing arguments",
            1 => "missing or invalid comparison",
            _ => "invalid operand",
        }));
    };
    let left = value(&words[..at], 0, &args)?;
    let right = value(&words[at + 1..], at + 1, &args)?;
    for side in [&left, &right] {
        if side.what == MetaId::Dev {
            return Err(Wrong::new(
                later("meta", "dev", 0).stderr.trim_end().to_owned(),
                "The numbers of devices are each machine's own: bind the filter to the device, or match on \
                indev.",
            ));
        }
    }
    Ok(Ematch::Meta { left, how, right })
}

/// One side of a comparison, whose first word is argument `place`.
fn value(words: &[&str], place: usize, args: &Args<'_>) -> Result<MetaValue, Wrong> {
    let unknown = || Wrong {
        remedy: format!(
            "What is known is called {}, fwmark, and of sockets {}.",
            MetaId::NAMES.map(|(name, _)| name).join(", "),
            MetaId::SOCKET.join(", ")
        ),
        ..args.marked("meta: unknown meta id\n".into(), Some(place))
    };
    let (first, rest) = words.split_first().ok_or_else(|| args.wrong("missing rvalue"))?;
    let what = match low_word(first) {
        Some(number) => MetaId::Number(number),
        None => MetaId::from_name(first).ok_or_else(unknown)?,
    };
    let mut value = MetaValue { what, shift: 0, mask: 0 };
    for pair in rest.chunks(2) {
        match pair {
            ["shift", text] => value.shift = low_word(text).ok_or_else(|| args.wrong("invalid shift"))? as u8,
            ["mask", text] => value.mask = low_word(text).ok_or_else(|| args.wrong("invalid mask"))?,
            _ => return Err(args.wrong("unexpected trailer")),
        }
    }
    Ok(value)
}

/// An expression as it is listed, `indent` blanks in; it ends its own line where a condition comes last.
pub(super) fn show(terms: &[Term], indent: usize) -> String {
    let blanks = " ".repeat(indent);
    let mut out = blanks.clone();
    for (at, term) in terms.iter().enumerate() {
        if term.not {
            out.push_str("NOT ");
        }
        let last = at + 1 == terms.len();
        let joined = if term.or { "OR " } else { "AND " };
        match &term.what {
            Ematch::All(inner) => {
                out.push_str(&format!("(\n{}{blanks}) ", show(inner, indent + 2)));
            }
            simple => {
                out.push_str(&format!("{}\n", one(simple)));
                if !last {
                    out.push_str(&blanks);
                }
            }
        }
        if !last {
            out.push_str(joined);
        }
    }
    out
}

pub(super) fn one(what: &Ematch) -> String {
    match what {
        Ematch::Cmp { width, offset, layer, mask, trans, how, value } => {
            let mask = if *mask == 0 { String::new() } else { format!("mask {mask:#x} ") };
            let trans = if *trans { "trans " } else { "" };
            let (width, layer, how) = (width.name(), layer.number(), how.name());
            format!("cmp({width} at {offset} layer {layer} {mask}{trans}{how} {})", *value as i32)
        }
        Ematch::Nbyte { offset, layer, data } => {
            let hex: String = data.iter().map(|byte| format!("{byte:02x} ")).collect();
            let printable = |byte: &u8| if (0x20..0x7f).contains(byte) { char::from(*byte) } else { '.' };
            let text: String = data.iter().map(printable).collect();
            format!("nbyte({hex}\"{text}\" at {offset} layer {})", layer.number())
        }
        Ematch::U32(key) => {
            let next = if key.offset_mask != 0 { "nexthdr+" } else { "" };
            format!("u32({:08x}/{:08x} at {next}{})", key.value, key.mask, key.offset)
        }
        Ematch::Meta { left, how, right } => {
            format!("meta({}{} {})", side(left), how.name(), side(right).trim_end())
        }
        Ematch::Canid(rules) => {
            let one = |rule: &CanRule| {
                let (name, bits) = match rule.id & CanRule::EXTENDED {
                    0 => ("sff", CanRule::SHORT),
                    _ => ("eff", CanRule::LONG),
                };
                let mask = if rule.mask == bits { String::new() } else { format!(":0x{:X}", rule.mask) };
                format!("{name} 0x{:X}{mask}", rule.id & bits)
            };
            format!("canid({})", rules.iter().map(one).collect::<Vec<_>>().join(" "))
        }
        Ematch::All(inner) => show(inner, 0),
    }
}

/// One side of a comparison, with a blank after it.
fn side(value: &MetaValue) -> String {
    let mut out = match value.what {
        MetaId::Number(number) => format!("{} ", number as i32),
        id => format!("{} ", id.name().unwrap_or("")),
    };
    if value.shift != 0 {
        out.push_str(&format!("shift {} ", value.shift));
    }
    if value.mask != 0 {
        out.push_str(&format!("mask {:#010x} ", value.mask));
    }
    out
}
