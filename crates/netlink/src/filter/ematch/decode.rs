//! Conditions as the kernel sends them.

use super::numbers::meta_number;
use crate::decode::message::numbers;
use crate::filter::base::key;
use alloc::vec::Vec;
use tidegate_netlink_wire::attribute::{Found, read};
use tidegate_policy::{CanRule, Ematch, EmatchCompare, Layer, MetaId, MetaValue, Term, Width};

/// How deep parentheses may are in one another, and how many conditions there may be: what tc writes stays
/// far below.
const MAX_DEPTH: u32 = 32;
const MAX_TERMS: usize = 4096;

/// The conditions; `None`: they are not as they should be.
pub(in crate::filter) fn decode(from: &Found<'_>) -> Option<Vec<Term>> {
    let list = from.nest(2);
    let all: Vec<&[u8]> = list.all().map(|(_, bytes)| bytes).collect();
    if all.is_empty() {
        return Some(Vec::new());
    }
    group(&all, 0, 0)
}

/// The conditions from one place on, up to the last that is joined to the one before.
fn group(all: &[&[u8]], from: usize, depth: u32) -> Option<Vec<Term>> {
    if depth > MAX_DEPTH || all.len() > MAX_TERMS {
        return None;
    }
    let mut terms = Vec::new();
    for bytes in all.get(from..)? {
        let (head, rest) = bytes.split_at_checked(8)?;
        let half = |at: usize| u16::from_ne_bytes([head[at], head[at + 1]]);
        let (kind, flags) = (half(2), half(4));
        let what = match kind {
            0 => {
                let begins = *numbers(rest).first()? as usize;
                // Whatever is in a parenthesis follows it: so there is an end.
                (begins > from).then(|| group(all, begins, depth + 1)).flatten().map(Ematch::All)?
            }
            1 => compare(rest)?,
            2 => bytes_of(rest)?,
            3 => Ematch::U32(key(rest.get(..16)?)),
            4 => meta(&read(rest))?,
            7 => Ematch::Canid(
                numbers(rest).chunks_exact(2).map(|pair| CanRule { id: pair[0], mask: pair[1] }).collect(),
            ),
            _ => return None,
        };
        terms.push(Term { not: flags & 4 != 0, or: flags & 3 == 2, what });
        if flags & 3 == 0 {
            return Some(terms);
        }
    }
    None
}

const fn layer(number: u8) -> Option<Layer> {
    match number {
        0 => Some(Layer::Link),
        1 => Some(Layer::Network),
        2 => Some(Layer::Transport),
        _ => None,
    }
}

const fn how(number: u8) -> Option<EmatchCompare> {
    match number {
        0 => Some(EmatchCompare::Eq),
        1 => Some(EmatchCompare::Gt),
        2 => Some(EmatchCompare::Lt),
        _ => None,
    }
}

fn compare(bytes: &[u8]) -> Option<Ematch> {
    let words = numbers(bytes);
    let tail = bytes.get(8..12)?;
    let width = match tail[2] & 15 {
        1 => Width::U8,
        2 => Width::U16,
        4 => Width::U32,
        _ => return None,
    };
    Some(Ematch::Cmp {
        width,
        offset: u16::from_ne_bytes([tail[0], tail[1]]),
        layer: layer(tail[3] & 15)?,
        mask: *words.get(1)?,
        trans: tail[2] & 16 != 0,
        how: how(tail[3] >> 4)?,
        value: *words.first()?,
    })
}

fn bytes_of(bytes: &[u8]) -> Option<Ematch> {
    let (head, rest) = bytes.split_at_checked(4)?;
    let what = u16::from_ne_bytes([head[2], head[3]]);
    Some(Ematch::Nbyte {
        offset: u16::from_ne_bytes([head[0], head[1]]),
        layer: layer((what >> 12) as u8)?,
        data: rest.get(..usize::from(what & 0xfff))?.to_vec(),
    })
}

fn meta(from: &Found<'_>) -> Option<Ematch> {
    let head = from.get(1)?.get(..8)?;
    // The kernel reports numbers as long as its own words.
    let number = |at: u16| from.get(at).and_then(|bytes| numbers(bytes).first().copied()).unwrap_or(0);
    let side = |at: usize, value: u32| {
        let id = u16::from_ne_bytes([head[at], head[at + 1]]) & 0xfff;
        let (what, mask) = if id == 0 { (MetaId::Number(value), 0) } else { (known(id)?, value) };
        Some(MetaValue { what, shift: head[at + 2], mask })
    };
    Some(Ematch::Meta { left: side(0, number(2))?, how: how(head[3])?, right: side(4, number(3))? })
}

/// What has this number.
fn known(id: u16) -> Option<MetaId> {
    let sockets = MetaId::SOCKET.into_iter().map(MetaId::Socket);
    MetaId::NAMES.into_iter().map(|(_, what)| what).chain(sockets).find(|what| meta_number(*what) == id)
}
