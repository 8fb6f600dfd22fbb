//! Conditions as they are sent.

use super::numbers::meta_number;
use alloc::vec;
use alloc::vec::Vec;
use tidegate_netlink_wire::attribute::{Attributes, words};
use tidegate_policy::{Ematch, EmatchCompare, MetaId, MetaValue, Term, Width};

const CONTAINER: u16 = 0;
const CMP: u16 = 1;
const NBYTE: u16 = 2;
const U32: u16 = 3;
const META: u16 = 4;
const CANID: u16 = 7;
const AND: u16 = 1;
const OR: u16 = 2;
const INVERT: u16 = 4;

/// The conditions, as an attribute of this number.
pub(in crate::filter) fn encode(to: &mut Attributes, number: u16, terms: &[Term]) {
    let list = flattened(terms);
    let (mut inner, mut head) = (Attributes::default(), (list.len() as u16).to_ne_bytes().to_vec());
    head.extend([0, 0]);
    inner.payload(1, &head);
    let mut matches = Attributes::default();
    for (place, bytes) in (1..).zip(&list) {
        matches.payload(place, bytes);
    }
    inner.nest(2, &matches);
    to.nest(number, &inner);
}

/// Each condition with its head; the content of a parenthesis comes behind everything outside it.
fn flattened(terms: &[Term]) -> Vec<Vec<u8>> {
    let mut groups: Vec<&[Term]> = vec![terms];
    let mut list = Vec::new();
    let mut begun = terms.len();
    let mut at = 0;
    while let Some(group) = groups.get(at).copied() {
        for (place, term) in group.iter().enumerate() {
            let last = place + 1 == group.len();
            let joined = if last { 0 } else { [AND, OR][usize::from(term.or)] };
            let flags = joined | if term.not { INVERT } else { 0 };
            let (kind, bytes) = match &term.what {
                Ematch::All(inside) => {
                    let begins = begun as u32;
                    begun += inside.len();
                    groups.push(inside);
                    (CONTAINER, words(&[begins]))
                }
                what => condition(what),
            };
            let mut whole: Vec<u8> = [0, kind, flags, 0].iter().flat_map(|half| half.to_ne_bytes()).collect();
            whole.extend(bytes);
            list.push(whole);
        }
        at += 1;
    }
    list
}

const fn compare(how: EmatchCompare) -> u8 {
    match how {
        EmatchCompare::Eq => 0,
        EmatchCompare::Gt => 1,
        EmatchCompare::Lt => 2,
    }
}

fn condition(what: &Ematch) -> (u16, Vec<u8>) {
    match what {
        Ematch::Cmp { width, offset, layer, mask, trans, how, value } => {
            let align: u8 = match width {
                Width::U8 => 1,
                Width::U16 => 2,
                Width::U32 => 4,
            };
            let mut bytes = words(&[*value, *mask]);
            bytes.extend(offset.to_ne_bytes());
            bytes.extend([align | u8::from(*trans) << 4, layer.number() | compare(*how) << 4]);
            (CMP, bytes)
        }
        Ematch::Nbyte { offset, layer, data: needle } => {
            let mut bytes = offset.to_ne_bytes().to_vec();
            bytes.extend((needle.len() as u16 & 0xfff | u16::from(layer.number()) << 12).to_ne_bytes());
            bytes.extend(needle);
            (NBYTE, bytes)
        }
        Ematch::U32(key) => {
            let mut bytes = key.mask.to_be_bytes().to_vec();
            bytes.extend(key.value.to_be_bytes());
            bytes.extend(words(&[key.offset as u32, key.offset_mask as u32]));
            (U32, bytes)
        }
        Ematch::Meta { left, how, right } => (META, meta(left, *how, right)),
        Ematch::Canid(rules) => (CANID, rules.iter().flat_map(|rule| words(&[rule.id, rule.mask])).collect()),
        // Told by its reference.
        Ematch::All(_) => (CONTAINER, Vec::new()),
    }
}

fn meta(left: &MetaValue, how: EmatchCompare, right: &MetaValue) -> Vec<u8> {
    let mut head = side(left, compare(how));
    head.extend(side(right, 0));
    let mut to = Attributes::default();
    to.payload(1, &head);
    for (number, value) in [(2, left), (3, right)] {
        to.u32(number, if let MetaId::Number(number) = value.what { number } else { value.mask });
    }
    to.into_bytes()
}

/// One side: what it is (numbers all of them), how far it is shifted, and how it is compared.
fn side(value: &MetaValue, how: u8) -> Vec<u8> {
    const INTEGER: u16 = 1 << 12;
    let mut bytes = (INTEGER | meta_number(value.what)).to_ne_bytes().to_vec();
    bytes.extend([value.shift, how]);
    bytes
}
