//! What statements change, and what a mark is set to: `meta mark & 0xff | 0x10`, `ct mark`, a number.

use super::cursor::Cursor;
use super::lex::{Kind, Span};
use super::values::Field;
use super::wrong::Wrong;
use tidegate_policy::netfilter::{Condition, ConnmarkTarget, NetfilterTarget};

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Nothing,
    Packet,
    Connection,
}

/// A value: what comes from its source, some bits cleared (those not in `and`), then some turned over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Value {
    source: Source,
    and: u32,
    xor: u32,
}

impl Value {
    const fn number(value: u32) -> Value {
        Value { source: Source::Nothing, and: 0, xor: value }
    }

    const fn of(source: Source) -> Value {
        Value { source, and: u32::MAX, xor: 0 }
    }

    /// With a number on one side.
    fn with(self, other: Value, op: &str) -> Option<Value> {
        let (value, number) = match (self.source, other.source) {
            (_, Source::Nothing) => (self, other.xor),
            (Source::Nothing, _) => (other, self.xor),
            _ => return None,
        };
        Some(match op {
            "&" => Value { and: value.and & number, xor: value.xor & number, ..value },
            "|" => Value { and: value.and & !number, xor: value.xor & !number | number, ..value },
            _ => Value { xor: value.xor ^ number, ..value },
        })
    }
}

/// What setting a mark comes to: the targets, and whether a packet without connection goes no further in its
/// rule.
pub(super) struct Setting {
    pub(super) targets: Vec<NetfilterTarget>,
    pub(super) needs_connection: bool,
}

/// The operators from the one that binds least on.
const OPERATORS: [[&str; 2]; 3] = [["|", "or"], ["^", "xor"], ["&", "and"]];

/// Reads what a mark is set to; `connection`: that of the connection is set, otherwise the packet's.
pub(super) fn setting(cursor: &mut Cursor<'_>, connection: bool) -> Result<Setting, Wrong> {
    let value = expression(cursor, 0)?;
    let Value { source, and, xor } = value;
    let mut targets = Vec::new();
    match (connection, source) {
        (false, Source::Nothing) => targets.push(NetfilterTarget::Mark { value: xor, mask: u32::MAX }),
        (false, Source::Packet) => targets.push(NetfilterTarget::Mark { value: xor, mask: !and }),
        (false, Source::Connection) => {
            targets
                .push(NetfilterTarget::Connmark(ConnmarkTarget::Restore { nfmask: u32::MAX, ctmask: and }));
            if xor != 0 {
                targets.push(NetfilterTarget::Mark { value: xor, mask: 0 });
            }
        }
        (true, Source::Nothing) => {
            targets.push(NetfilterTarget::Connmark(ConnmarkTarget::Set { value: xor, mask: u32::MAX }))
        }
        (true, Source::Connection) => {
            targets.push(NetfilterTarget::Connmark(ConnmarkTarget::Set { value: xor, mask: !and }))
        }
        (true, Source::Packet) => {
            targets.push(NetfilterTarget::Connmark(ConnmarkTarget::Save { nfmask: and, ctmask: u32::MAX }));
            if xor != 0 {
                targets.push(NetfilterTarget::Connmark(ConnmarkTarget::Set { value: xor, mask: 0 }));
            }
        }
    }
    Ok(Setting { targets, needs_connection: source == Source::Connection })
}

fn expression(cursor: &mut Cursor<'_>, level: usize) -> Result<Value, Wrong> {
    let Some(operators) = OPERATORS.get(level) else { return operand(cursor) };
    let mut value = expression(cursor, level + 1)?;
    while operators.contains(&cursor.text()) && matches!(cursor.kind(), Kind::Sign | Kind::Word) {
        let span = cursor.next().span;
        let other = expression(cursor, level + 1)?;
        value = value.with(other, operators[0]).ok_or_else(|| {
            Wrong::later(
                span,
                "an operation on two marks",
                "Give a number on one side, or set the mark in two steps.",
            )
        })?;
    }
    if level == 0 && ["<<", ">>", "lshift", "rshift"].contains(&cursor.text()) {
        let span = cursor.next().span;
        return Err(Wrong::later(span, "shifting a mark", "Write a rule for each value."));
    }
    Ok(value)
}

fn operand(cursor: &mut Cursor<'_>) -> Result<Value, Wrong> {
    if cursor.take_sign("(") {
        let value = cursor.deeper(|cursor| expression(cursor, 0))?;
        cursor.want_sign(")")?;
        return Ok(value);
    }
    let span = cursor.here();
    if cursor.take_word("mark") {
        return Ok(Value::of(Source::Packet));
    }
    if cursor.take_word("meta") {
        return match cursor.take_word("mark") {
            true => Ok(Value::of(Source::Packet)),
            false => Err(elsewhere(span.up_to(cursor.here()))),
        };
    }
    if cursor.take_word("ct") {
        return match cursor.take_word("mark") {
            true => Ok(Value::of(Source::Connection)),
            false => Err(elsewhere(span.up_to(cursor.here()))),
        };
    }
    if cursor.kind() != Kind::Word {
        return Err(cursor.unexpected());
    }
    let token = cursor.next();
    if token.text.starts_with(|first: char| first.is_ascii_digit()) {
        return Ok(Value::number(Field::Mark.value(&token.text, token.span)? as u32));
    }
    Err(elsewhere(token.span))
}

/// A map, a hash, a header's field.
fn elsewhere(span: Span) -> Wrong {
    Wrong::later(
        span,
        "setting a mark from anything but a number, meta mark or ct mark",
        "Write a rule for each value: `tcp dport 22 meta mark set 1`.",
    )
}

/// Whether a target changes what a condition tests.
pub(super) fn changes(target: &NetfilterTarget, what: &Condition) -> bool {
    match (target, what) {
        (_, Condition::Any(several)) => several.iter().any(|one| changes(target, one)),
        (
            NetfilterTarget::Mark { .. } | NetfilterTarget::Connmark(ConnmarkTarget::Restore { .. }),
            Condition::Mark(..),
        ) => true,
        (NetfilterTarget::Connmark(_), Condition::Connmark(value, mask)) => (*value, *mask) != (0, 0),
        (NetfilterTarget::Dscp(_), Condition::Dscp(_) | Condition::Tos(..)) => true,
        (
            NetfilterTarget::Notrack(_),
            Condition::Connmark(..) | Condition::Connstate(_) | Condition::Connbytes(_),
        ) => true,
        _ => false,
    }
}
