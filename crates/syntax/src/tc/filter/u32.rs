//! u32: matches by name become comparisons of 32-bit words of the header.

use super::row::{Given, ListedFilter, NO_CARD, Read, Row, both_skipped, came_in, old_style};
use crate::json::Json;
use crate::nearest;
use crate::number::{i32_in, u8_in, u16_in, u32_in};
use crate::tc::action;
use crate::tc::command_line::ShowFlags;
use crate::tc::prefix::{parse_prefix4, parse_prefix6};
use crate::tc::show::Entry;
use crate::tc::words::{Words, begins};
use crate::units::parse_classid;
use crate::{Env, Refusal, TcChange};
use tidegate_policy::spec::U32;
use tidegate_policy::{Action, FilterParams, Indev, U32Key, U32Offset, U32OffsetField, U32Params};

/// The kernel's limit on comparisons in one filter.
const MOST_KEYS: usize = 128;

/// `u32`.
pub(super) const ROW: Row = Row { name: "u32", parse, show };

fn parse(handle: Given<'_>, _: u16, words: &mut Words<'_>, env: &Env) -> Result<Read, Refusal> {
    let mut node = match handle {
        Some((text, place)) => parse_handle(text).ok_or_else(|| {
            Refusal::new(1, "Illegal filter ID")
                .at(place)
                .remedy("A handle of u32 is TABLE:BUCKET:NODE in hexadecimal, such as 800::801.")
        })?,
        None => 0,
    };
    let read = options(words, env)?;
    if let Some(order) = read.order {
        node = node & !0xfff | order & 0xfff;
    }
    Ok(Read { handle: node, params: read.params.map(FilterParams::U32), actions: read.actions })
}

/// The options read: the parameters (`None` when none were given) and the node number from `order`.
struct Options {
    params: Option<U32Params>,
    order: Option<u32>,
    actions: Vec<Action>,
}

/// Reads the words after `u32`.
fn options(words: &mut Words<'_>, env: &Env) -> Result<Options, Refusal> {
    let mut read = Options { params: None, order: None, actions: Vec::new() };
    let mut only_card = None;
    if words.peek().is_none() {
        return Ok(read);
    }
    let mut params = U32Params::default();
    while let Some(word) = words.take() {
        match word {
            _ if begins(word, "match") => {
                let place = words.place();
                selector(words, &mut params).map_err(|failed| failed.refusal(place))?;
            }
            "flowid" => params.classid = Some(classid(words)?),
            _ if begins(word, "offset") => {
                let place = words.place();
                params.offset =
                    offset(words, params.offset).map_err(|failed| failed.named("offset", place))?;
            }
            _ if begins(word, "order") => {
                let text = words.need()?;
                read.order = Some(u32_in(text, 0).ok_or_else(|| illegal("order", text, words.last()))?);
            }
            "ht" => {
                let text = words.need()?;
                let table = parse_handle(text)
                    .filter(|handle| handle & 0xfff == 0)
                    .ok_or_else(|| illegal("ht", text, words.last()))?;
                // A bucket that `sample` found stays unless another is named.
                let bucket = if table & 0xf_f000 == 0 { params.table & 0xf_f000 } else { 0 };
                params.table = table | bucket;
            }
            _ if begins(word, "divisor") => {
                let text = words.need()?;
                let buckets = u32_in(text, 0).filter(|buckets| buckets.is_power_of_two() && *buckets <= 256);
                params.divisor = Some(buckets.ok_or_else(|| illegal("divisor", text, words.last()))?);
            }
            "link" => {
                let text = words.need()?;
                let table = parse_handle(text).filter(|handle| *handle != 0 && handle & 0xf_ffff == 0);
                params.link = Some(table.ok_or_else(|| illegal("link", text, words.last()))? >> 20);
            }
            _ if begins(word, "hashkey") => {
                let place = words.place();
                params.hash = Some(hashkey(words).map_err(|failed| failed.named("hashkey", place))?);
            }
            "sample" => {
                let place = words.place();
                let bucket = sample(words).map_err(|failed| failed.named("sample", place))?;
                params.table = params.table & 0xfff0_0000 | bucket << 12;
            }
            "skip_sw" => only_card = Some(words.last()),
            "skip_hw" => params.skip_hw = true,
            "indev" => params.indev = Some(Indev::named(words.need()?)),
            _ if begins(word, "action") => action::replace(&mut read.actions, action::parse(words, env)?),
            _ if begins(word, "police") => read.actions = action::old_police(words, env)?,
            "help" => return Err(Refusal { stderr: U32.help(), code: 1, ..Refusal::default() }),
            _ if begins(word, "classid") => params.classid = Some(classid(words)?),
            _ => {
                let remedy = match nearest(
                    word,
                    [
                        "match", "flowid", "classid", "order", "ht", "link", "hashkey", "offset", "divisor",
                        "sample", "police", "action",
                    ],
                ) {
                    Some(name) => format!("u32 has no \"{word}\"; did you mean {name}?"),
                    None => "u32 takes match …, flowid CLASS, ht TABLE, order N, link TABLE, hashkey …, \
                    offset …, divisor N, police …, action …."
                        .to_string(),
                };
                return Err(Refusal::new(1, format!("What is \"{word}\"?"))
                    .then(&U32.help())
                    .at(words.last())
                    .remedy(remedy));
            }
        }
    }
    if let Some(place) = only_card {
        // Linux takes it, and then it fits no packet.
        return Err(match params.skip_hw {
            true => both_skipped(place),
            false => Refusal::new(2, "tidegate: skip_sw of u32 is not supported").at(place).remedy(NO_CARD),
        });
    }
    read.params = Some(params);
    Ok(read)
}

/// A handle of u32: `TABLE:`, `TABLE:BUCKET:`, `TABLE:BUCKET:NODE`, all hexadecimal, or `0x` and 32 bits.
fn parse_handle(text: &str) -> Option<u32> {
    if text.starts_with("0x") && !text.contains(':') {
        return u32_in(text, 16);
    }
    let mut parts = text.split(':');
    let part = |text: Option<&str>, most: u16| match text {
        None | Some("") => Some(0),
        Some(digits) => u16_in(digits, 16).filter(|number| *number <= most).map(u32::from),
    };
    let table = part(parts.next(), 0xfff)?;
    let bucket = part(Some(parts.next()?), 0xff)?;
    let node = part(parts.next(), 0xfff)?;
    parts.next().is_none().then_some(table << 20 | bucket << 12 | node)
}

fn classid(words: &mut Words<'_>) -> Result<tidegate_packet::Handle, Refusal> {
    let text = words.need()?;
    parse_classid(text).ok_or_else(|| illegal("classid", text, words.last()))
}

fn illegal(name: &str, text: &str, place: usize) -> Refusal {
    let example = match name {
        "classid" => "a class such as 1:10",
        "ht" => "a table such as 800: or a bucket such as 2:1f:",
        "divisor" => "a power of two up to 256",
        "link" => "a table such as 2:",
        _ => "a number",
    };
    Refusal::new(1, format!("Illegal \"{name}\""))
        .at(place)
        .remedy(format!("{name} takes {example}; \"{text}\" is not one."))
}

/// Why a match was refused.
enum Failed {
    /// The words end.
    Incomplete,
    /// `Illegal "match"`, after these words of tc and with this explanation.
    Illegal(String, String),
    /// This line of tc alone, and an explanation.
    Printed(&'static str, &'static str),
}

impl Failed {
    fn why(remedy: impl Into<String>) -> Failed {
        Failed::Illegal(String::new(), remedy.into())
    }
    fn refusal(self, place: usize) -> Refusal {
        self.named("match", place)
    }
    fn named(self, name: &str, place: usize) -> Refusal {
        match self {
            Failed::Incomplete => Refusal::incomplete().at(place),
            Failed::Printed(line, remedy) => Refusal::new(1, line).at(place).remedy(remedy),
            Failed::Illegal(before, remedy) => {
                Refusal::new(1, format!("{before}Illegal \"{name}\"")).at(place).remedy(remedy)
            }
        }
    }
}

/// `offset [at OFFSET] [mask MASK] [shift N] [plus N] [eat]`; what one `offset` sets stays where the next one
/// sets something else.
fn offset(words: &mut Words<'_>, mut offset: U32Offset) -> Result<U32Offset, Failed> {
    let mut field: Option<U32OffsetField> = offset.field;
    while let Some(word) = words.peek() {
        let Some(word) = ["mask", "shift", "at", "plus", "eat"].into_iter().find(|name| begins(word, name))
        else {
            break;
        };
        words.skip();
        if word == "eat" {
            offset.eat = true;
            continue;
        }
        let text = words.take().ok_or(Failed::Incomplete)?;
        let wrong = || Failed::why(format!("{word} takes a number; \"{text}\" is not one."));
        match word {
            "plus" => offset.plus = u16_in(text, 0).ok_or_else(wrong)?,
            "shift" => field.get_or_insert_default().shift = u8_in(text, 0).ok_or_else(wrong)?,
            "mask" => field.get_or_insert_default().mask = u16_in(text, 16).ok_or_else(wrong)?,
            _ => {
                let at = i32_in(text, 0).ok_or_else(wrong)?;
                if at % 2 != 0 {
                    let sentence = "offset \"at\" must be even\n".to_owned();
                    return Err(Failed::Illegal(sentence, "A field of 16 bits has an even offset.".into()));
                }
                field.get_or_insert_default().at = at;
            }
        }
    }
    offset.field = field;
    Ok(offset)
}

/// `hashkey mask MASK [at OFFSET]`, in either order.
fn hashkey(words: &mut Words<'_>) -> Result<(u32, i32), Failed> {
    let (mut mask, mut at) = (0, 0);
    while let Some(word) =
        words.peek().and_then(|word| ["mask", "at"].into_iter().find(|name| begins(word, name)))
    {
        words.skip();
        let text = words.take().ok_or(Failed::Incomplete)?;
        let wrong = || {
            Failed::why(format!(
                "hashkey takes mask MASK at OFFSET, the offset a multiple of 4; \"{text}\" is not one."
            ))
        };
        match word {
            "mask" => mask = u32_in(text, 16).ok_or_else(wrong)?,
            _ => at = i32_in(text, 0).filter(|at| at % 4 == 0).ok_or_else(wrong)?,
        }
    }
    Ok((mask, at))
}

/// `sample MATCH [divisor N]`: the bucket that packets like this come to.
fn sample(words: &mut Words<'_>) -> Result<u32, Failed> {
    let mut params = U32Params::default();
    selector(words, &mut params)?;
    let mut divisor = 256;
    if words.peek() == Some("divisor") {
        words.skip();
        let text = words.take().ok_or(Failed::Incomplete)?;
        let read = u32_in(text, 0).filter(|buckets| buckets.is_power_of_two() && *buckets <= 256);
        const FORM: &str = "divisor takes a power of two up to 256.";
        divisor = read.ok_or(Failed::Printed("Illegal sample \"divisor\"", FORM))?;
    }
    let [key] = &params.keys[..] else {
        return Err(Failed::Printed(
            "\"sample\" must contain exactly ONE key.",
            "sample takes one comparison of one word.",
        ));
    };
    // The bits of the mask, shifted down, as the kernel picks a bucket by `hashkey mask`.
    Ok((key.value & key.mask).checked_shr(key.mask.trailing_zeros()).unwrap_or(0) % divisor)
}

/// One match: its kind, then what the kind takes.
fn selector(words: &mut Words<'_>, params: &mut U32Params) -> Result<(), Failed> {
    // In the order in which tc looks for what a word begins.
    const KINDS: [&str; 10] = ["u32", "u16", "u8", "ip", "ip6", "udp", "tcp", "icmp", "mark", "ether"];
    let word = words.take().ok_or(Failed::Incomplete)?;
    let mut keys = Keys { keys: &mut params.keys };
    let Some(kind) = KINDS.into_iter().find(|kind| begins(word, kind)) else {
        return Err(Failed::why(format!("match takes one of {}; \"{word}\" is not one.", KINDS.join(", "))));
    };
    if words.peek().is_none() {
        return Err(Failed::Incomplete);
    }
    if words.left() < 2 {
        return Err(Failed::why(format!(
            "match {kind} needs a value and a mask (a flag such as df: something after it)."
        )));
    }
    match kind {
        "u32" => keys.number(words, Width::Word, 0, 0),
        "u16" => keys.number(words, Width::Half, 0, 0),
        "u8" => keys.number(words, Width::Byte, 0, 0),
        "mark" => mark(words, params),
        _ => keys.field(kind, words),
    }
}

fn mark(words: &mut Words<'_>, params: &mut U32Params) -> Result<(), Failed> {
    let (value, mask) = (words.take().unwrap_or(""), words.take().unwrap_or(""));
    let bad = |what: &str, text: &str| {
        Failed::Illegal(
            format!("Illegal \"mark\" {what}\n"),
            format!("\"{text}\" is not a number of 32 bits."),
        )
    };
    let number = u32_in(value, 0).ok_or_else(|| bad("value", value))?;
    let bits = u32_in(mask, 0).ok_or_else(|| bad("mask", mask))?;
    if number & !bits != 0 {
        let remedy = format!("Value {value} has bits that mask {mask} takes away, so it can never match.");
        return Err(Failed::Illegal("Illegal \"mark\" (impossible combination)\n".into(), remedy));
    }
    // tc 6.1 wants a word after it.
    if words.peek().is_none() {
        return Err(Failed::Incomplete);
    }
    params.mark = Some((number, bits));
    Ok(())
}

/// How wide a named field is.
#[derive(Clone, Copy, PartialEq)]
enum Width {
    Word,
    Half,
    Byte,
}

/// The field that a word names; tc takes beginnings of two of IPv4's only.
fn field_name<'w>(kind: &str, word: &'w str) -> &'w str {
    match word {
        "df" | "dport" | "dst" | "protocol" => word,
        _ if kind == "ip" && begins(word, "dsfield") => "dsfield",
        _ if kind == "ip" && begins(word, "precedence") => "precedence",
        _ => word,
    }
}

struct Keys<'k> {
    keys: &'k mut Vec<U32Key>,
}

impl Keys<'_> {
    /// `ip src …`, `tcp dst …` and their like.
    fn field(&mut self, kind: &str, words: &mut Words<'_>) -> Result<(), Failed> {
        let name = words.take().ok_or(Failed::Incomplete)?;
        match (kind, field_name(kind, name)) {
            ("ip", "src") => self.address(words, 12),
            ("ip", "dst") => self.address(words, 16),
            ("ip", "tos" | "dsfield" | "precedence") => self.number(words, Width::Byte, 1, 0),
            ("ip", "ihl") => self.number(words, Width::Byte, 0, 0),
            ("ip", "protocol") => self.number(words, Width::Byte, 9, 0),
            ("ip", "nofrag") => self.half(0, 0x3fff, 6, 0),
            ("ip", "firstfrag") => self.half(0x2000, 0x3fff, 6, 0),
            ("ip", "df") => self.half(0x4000, 0x4000, 6, 0),
            ("ip", "mf") => self.half(0x2000, 0x2000, 6, 0),
            ("ip", "sport") => self.number(words, Width::Half, 20, 0),
            ("ip", "dport") => self.number(words, Width::Half, 22, 0),
            ("ip", "icmp_type") => self.number(words, Width::Byte, 20, 0),
            ("ip", "icmp_code") => self.number(words, Width::Byte, 21, 0),
            ("ip6", "src") => self.address6(words, 8),
            ("ip6", "dst") => self.address6(words, 24),
            ("ip6", "priority") => self.traffic_class(words),
            ("ip6", "flowlabel") => self.number(words, Width::Word, 0, 0),
            ("ip6", "protocol") => self.number(words, Width::Byte, 6, 0),
            ("ip6", "sport") => self.number(words, Width::Half, 40, 0),
            ("ip6", "dport") => self.number(words, Width::Half, 42, 0),
            ("ip6", "icmp_type") => self.number(words, Width::Byte, 40, 0),
            // tc 6.1 counts this one from the next header.
            ("ip6", "icmp_code") => self.number(words, Width::Byte, 41, -1),
            ("tcp" | "udp", "src") => self.number(words, Width::Half, 0, -1),
            ("tcp" | "udp", "dst") => self.number(words, Width::Half, 2, -1),
            ("icmp", "type") => self.number(words, Width::Byte, 0, -1),
            ("icmp", "code") => self.number(words, Width::Byte, 1, -1),
            ("ether", "src") => self.ether(words, -8),
            ("ether", "dst") => self.ether(words, -14),
            _ => {
                let fields = match kind {
                    "ip" => "src dst tos ihl protocol nofrag firstfrag df mf sport dport icmp_type icmp_code",
                    "ip6" => "src dst priority flowlabel protocol sport dport icmp_type icmp_code",
                    "icmp" => "type code",
                    _ => "src dst",
                };
                Err(Failed::why(format!("{kind} has no field \"{name}\"; it has {fields}.")))
            }
        }
    }

    /// `VALUE MASK [at OFFSET]`; the mask is hexadecimal with or without 0x.
    fn number(&mut self, words: &mut Words<'_>, width: Width, offset: i32, next: i32) -> Result<(), Failed> {
        let (value, mask) = value_mask(words)?;
        let (offset, next) = at(words, offset, next)?;
        match width {
            Width::Word => self.word(value, mask, offset, next),
            Width::Half => self.half(value, mask, offset, next),
            Width::Byte => self.byte(value, mask, offset, next),
        }
    }

    fn traffic_class(&mut self, words: &mut Words<'_>) -> Result<(), Failed> {
        let (value, mask) = value_mask(words)?;
        let (offset, next) = at(words, 0, 0)?;
        if value > 0xff || mask > 0xff {
            return Err(Failed::why("The traffic class has 8 bits."));
        }
        self.word(value << 20, mask << 20, offset, next)
    }

    fn address(&mut self, words: &mut Words<'_>, offset: i32) -> Result<(), Failed> {
        let text = words.take().ok_or(Failed::Incomplete)?;
        let (address, mask) = parse_prefix4(text).ok_or_else(|| {
            Failed::why(format!("\"{text}\" is not an IPv4 address or prefix such as 10.0.0.0/8."))
        })?;
        let (offset, next) = at(words, offset, 0)?;
        self.word(address, mask, offset, next)
    }

    fn address6(&mut self, words: &mut Words<'_>, offset: i32) -> Result<(), Failed> {
        let text = words.take().ok_or(Failed::Incomplete)?;
        let (address, length) = parse_prefix6(text).ok_or_else(|| {
            Failed::why(format!("\"{text}\" is not an IPv6 address or prefix such as 2001:db8::/32."))
        })?;
        let (offset, next) = at(words, offset, 0)?;
        for (index, word) in address.chunks_exact(4).enumerate() {
            let bits = length.saturating_sub(32 * index as u32).min(32);
            if bits == 0 {
                break;
            }
            let value = u32::from_be_bytes([word[0], word[1], word[2], word[3]]);
            self.word(value, u32::MAX << (32 - bits), offset + 4 * index as i32, next)?;
        }
        if length == 0 {
            // Everything matches: sent as a comparison of no bits, because a filter without keys would be
            // refused.
            self.word(0, 0, offset, next)?;
        }
        Ok(())
    }

    fn ether(&mut self, words: &mut Words<'_>, offset: i32) -> Result<(), Failed> {
        let text = words.take().ok_or(Failed::Incomplete)?;
        let raw: Option<Vec<u8>> = text
            .split(':')
            .map(|part| u8::from_str_radix(part, 16).ok().filter(|_| (1..=2).contains(&part.len())))
            .collect();
        let raw = raw.filter(|raw| raw.len() == 6).ok_or_else(|| {
            let words = format!("parse_ether_addr: improperly formed address '{text}'\n");
            Failed::Illegal(
                words,
                "An Ethernet address is six bytes with colons, such as 00:11:22:33:44:55.".into(),
            )
        })?;
        let (offset, next) = at(words, offset, 0)?;
        for (index, byte) in raw.into_iter().enumerate() {
            self.byte(byte.into(), 0xff, offset + index as i32, next)?;
        }
        Ok(())
    }

    fn byte(&mut self, value: u32, mask: u32, offset: i32, next: i32) -> Result<(), Failed> {
        if value > 0xff || mask > 0xff {
            return Err(Failed::why(
                "A byte's value and mask go up to 0xff (masks are hexadecimal: 255 means 0x255).",
            ));
        }
        let shift = (3 - (offset & 3)) * 8;
        self.word(value << shift, mask << shift, offset & !3, next)
    }

    fn half(&mut self, value: u32, mask: u32, offset: i32, next: i32) -> Result<(), Failed> {
        if value > 0xffff || mask > 0xffff {
            return Err(Failed::why(
                "Value and mask go up to 0xffff (masks are hexadecimal: 65535 means 0x65535).",
            ));
        }
        let shift = if offset & 3 == 0 { 16 } else { 0 };
        self.word(value << shift, mask << shift, offset & !3, next)
    }

    /// Adds a comparison, or lets it join one of the same word.
    fn word(&mut self, value: u32, mask: u32, offset: i32, offset_mask: i32) -> Result<(), Failed> {
        if offset & 3 != 0 {
            return Err(Failed::why(format!(
                "A word of 32 bits has an offset that is a multiple of 4, not {offset}."
            )));
        }
        let value = value & mask;
        if let Some(key) =
            self.keys.iter_mut().find(|key| key.offset == offset && key.offset_mask == offset_mask)
        {
            if (value ^ key.value) & mask & key.mask != 0 {
                return Err(Failed::why(
                    "Two matches want different values of the same bits: nothing could match.",
                ));
            }
            key.value |= value;
            key.mask |= mask;
            return Ok(());
        }
        if self.keys.len() >= MOST_KEYS {
            return Err(Failed::why(format!("A filter has at most {MOST_KEYS} comparisons.")));
        }
        self.keys.push(U32Key { value, mask, offset, offset_mask });
        Ok(())
    }
}

fn value_mask(words: &mut Words<'_>) -> Result<(u32, u32), Failed> {
    let (Some(value), Some(mask)) = (words.take(), words.take()) else {
        return Err(Failed::why("A value and a mask are needed, such as 80 0xffff."));
    };
    let number = u32_in(value, 0).ok_or_else(|| {
        Failed::why(format!("\"{value}\" is not a number; names of ports and protocols are not known."))
    })?;
    let bits =
        u32_in(mask, 16).ok_or_else(|| Failed::why(format!("\"{mask}\" is not a hexadecimal mask.")))?;
    Ok((number, bits))
}

/// `at OFFSET` or `at nexthdr+OFFSET`, if it follows.
fn at(words: &mut Words<'_>, offset: i32, next: i32) -> Result<(i32, i32), Failed> {
    if words.peek() != Some("at") {
        return Ok((offset, next));
    }
    words.skip();
    let text = words.take().ok_or(Failed::Incomplete)?;
    let (text, next) = match text.strip_prefix("nexthdr") {
        Some("") => return Err(Failed::Incomplete),
        Some(rest) => (rest.strip_prefix('+').unwrap_or("x"), -1),
        None => (text, next),
    };
    let offset = i32_in(text, 0);
    let offset = offset.ok_or_else(|| Failed::why("`at` takes an offset in bytes: at 20, at nexthdr+0."))?;
    if offset.unsigned_abs() >= 1 << 24 {
        return Err(Failed::why(
            "Linux accepts this offset; tidegate does not: no packet has so many bytes.",
        ));
    }
    Ok((offset, next))
}

/// A policer without `action` is listed before `indev`, its counters and all other actions behind.
fn show(filter: &ListedFilter<'_>) -> Option<Entry> {
    let FilterParams::U32(params) = filter.params else { return None };
    let ListedFilter { actions, flags, .. } = *filter;
    let mut entry = body(filter, params);
    let old = actions.iter().find(|_| old_style(actions));
    if let Some(policer) = old {
        entry.say("\n");
        action::old_policer(policer, flags, &mut entry);
    }
    if let Some(name) = came_in(params.indev.as_ref()) {
        entry.say(&format!("\n  input dev {name}\n"));
        entry.member("input_dev", Json::text(name));
    }
    match old {
        Some(policer) => action::old_counts(policer, flags, &mut entry),
        None => action::show(actions, flags, &mut entry),
    }
    Some(entry)
}

/// The filter's own options.
fn body(filter: &ListedFilter<'_>, params: &U32Params) -> Entry {
    let ListedFilter { handle, hits, actions, protocol, flags, .. } = *filter;
    let mut entry = Entry::new();
    let (id, table, bucket) =
        (handle_text(handle), format!("{:x}", handle >> 20), format!("{:x}", handle >> 12 & 0xff));
    let raw = if flags.raw { format!("[{handle:08x}]") } else { String::new() };
    let order = handle & 0xfff;
    entry.say(&format!("fh {id}{raw} order {order} key ht {table} bkt {bucket} "));
    entry.member("fh", Json::text(id));
    entry.member("order", Json::number(order));
    entry.member("key_ht", Json::text(table));
    entry.member("bkt", Json::text(bucket));
    match params.classid {
        Some(class) if class.is_none() => {
            entry.say("terminal flowid ");
            entry.member("terminal", Json::Bool(true));
        }
        Some(class) => {
            entry.say(&format!("{}flowid {class} ", if flags.tc.has(TcChange::U32Words) { "" } else { "*" }));
            entry.member("flowid", Json::text(class.to_string()));
        }
        None if !actions.is_empty() => entry.say("terminal flowid "),
        None => {}
    }
    if let Some(link) = params.link {
        entry.word("link", &format!("{link:x}:"));
    }
    if params.skip_hw {
        entry.flag("skip_hw", true);
    }
    entry.flag("not_in_hw", true);
    let counted = hits.filter(|_| flags.stats);
    if let Some(hits) = counted {
        entry.number("rule_hit", hits.lookups, &format!("(rule hit {}", hits.lookups));
        entry.number("success", hits.matched, &format!(" success {})", hits.matched));
    }
    if let Some((value, mask)) = params.mark {
        let matched = hits.map_or(0, |hits| hits.mark);
        entry.say(&format!("\n  mark {value:#06x} {mask:#06x} (success {matched})"));
        entry.member("fwmark_value", Json::text(format!("{value:#x}")));
        entry.member("fwmark_mask", Json::text(format!("{mask:#x}")));
        entry.member("fwmark_success", Json::number(matched));
    }
    let mut matches: Vec<Json> = Vec::new();
    for (index, key) in params.keys.iter().enumerate() {
        let next = if key.offset_mask != 0 { "nexthdr+" } else { "" };
        match named(key, protocol, flags) {
            Some(text) => entry.say(&text),
            None => {
                entry.say(&format!("\n  match {:08x}/{:08x} at {next}{}", key.value, key.mask, key.offset))
            }
        }
        let mut members = vec![
            ("value", Json::text(format!("{:x}", key.value))),
            ("mask", Json::text(format!("{:x}", key.mask))),
            ("offmask", Json::text(next)),
            ("off", Json::number(key.offset)),
        ];
        if let Some(hits) = counted {
            let success = hits.keys.get(index).copied().unwrap_or(0);
            entry.say(&format!(" (success {success} ) "));
            members.push(("success", Json::number(success)));
        }
        matches.push(Json::Object(members));
    }
    // tc writes a member of the same name for each, which cannot be read back.
    match matches.len() {
        0 => {}
        1 => entry.member("match", matches.remove(0)),
        _ => entry.member("match", Json::List(matches)),
    }
    if params.link.is_some() || params.hash.is_some() {
        leads(params, &mut entry);
    }
    entry
}

/// `800::801`: table, bucket unless 0, node unless 0.
fn handle_text(handle: u32) -> String {
    let (table, bucket, node) = (handle >> 20, handle >> 12 & 0xff, handle & 0xfff);
    let part = |number: u32| if number == 0 { String::new() } else { format!("{number:x}") };
    if bucket == 0 && node == 0 {
        return format!("{}:", part(table));
    }
    format!("{}:{}:{}", part(table), part(bucket), part(node))
}

/// Where the next header begins, and which bucket of a linked table is looked up.
fn leads(params: &U32Params, entry: &mut Entry) {
    let U32Params { offset, hash, .. } = params;
    if offset.plus != 0 || offset.field.is_some() || offset.eat {
        entry.say("\n    offset ");
        if let Some(field) = offset.field {
            entry.say(&format!("{:04x}>>{} at {} ", field.mask, field.shift, field.at));
            entry.member("offset_mask", Json::text(format!("{:x}", field.mask)));
            entry.member("offset_shift", Json::number(field.shift));
            entry.member("offset_off", Json::number(field.at));
        }
        if offset.plus != 0 {
            entry.number("plus", offset.plus, &format!("plus {} ", offset.plus));
        }
        if offset.eat {
            entry.say(" eat ");
            entry.member("eat", Json::Bool(true));
        }
    }
    if let Some((mask, at)) = hash.filter(|(mask, _)| *mask != 0) {
        entry.say(&format!("\n    hash mask {mask:08x} at {at} "));
        entry.member("hash_mask", Json::text(format!("{mask:x}")));
        entry.member("hash_off", Json::number(at));
    }
}

/// `-p`: a comparison by name, where tc 6.1 has one for it.
fn named(key: &tidegate_policy::U32Key, protocol: u16, flags: &ShowFlags) -> Option<String> {
    if !flags.pretty || flags.json || protocol != 0x0800 || key.offset_mask != 0 {
        return None;
    }
    let bytes = key.value.to_be_bytes().map(|byte| byte.to_string()).join(".");
    match (key.offset, key.mask) {
        (12 | 16, mask) if mask.leading_ones() + mask.trailing_zeros() == 32 || mask == 0 => {
            let name = if key.offset == 12 { "src" } else { "dst" };
            Some(format!("\n  match IP {name} {bytes}/{}", mask.leading_ones()))
        }
        (8, 0x00ff_0000) => Some(format!("\n  match IP protocol {}", key.value >> 16)),
        (20, 0x0000_ffff) => Some(format!("match dport {}", key.value)),
        (20, 0xffff_0000) => Some(format!("match sport {}", key.value >> 16)),
        _ => None,
    }
}
