//! How long the packets are that come to a class, where its filters and rules ask for short ones.

use super::context::RuleContext;
use crate::sets::bdd::{Set, TooLarge};
use crate::sets::field::Field;
use crate::sets::set::Space;
use crate::walk::tree::By;
use std::collections::BTreeMap;
use tidegate_packet::Handle;
use tidegate_packet::header::ethertype;

/// Packets whose length in the IP header is this or more are not short.
const NOT_SHORT: u64 = 1024;
/// Bytes that frames have beside IPv4's total length, and beside IPv6's payload length.
const ETHERNET: u32 = 14;
const IPV6: u32 = 40;
/// The frame of ARP for IPv4.
const ARP: u32 = ETHERNET + 28;

/// The longest frames that come to classes, bytes, of those to which only short ones come.
pub(super) fn longest(context: &mut RuleContext<'_>) -> BTreeMap<(String, Handle), u32> {
    let seen = &context.reached.walked.seen.classes;
    let hashed = |place: &(String, Handle)| seen.contains_key(&(place.clone(), By::Hash));
    let mut coming: BTreeMap<(String, Handle), Vec<Set>> = BTreeMap::new();
    for ((place, _), parts) in seen.iter().filter(|((place, _), _)| !hashed(place)) {
        coming.entry(place.clone()).or_default().extend(parts.0.iter().map(|(_, set)| *set));
    }
    coming.retain(|(dev, _), _| !context.leaves_out(dev));
    let space = &mut context.reached.walked.space;
    // What cannot be decided bounds nothing.
    let longest = |(place, sets)| Some((place, longest_of(space, sets).ok().flatten()?));
    coming.into_iter().filter_map(longest).collect()
}

/// The longest frame of some sets; `None`: none is known, or there are packets that are neither IP nor ARP.
fn longest_of(space: &mut Space, sets: Vec<Set>) -> Result<Option<u32>, TooLarge> {
    let mut all = Set::NONE;
    for set in sets {
        all = space.store.or(all, set)?;
    }
    let mut longest = None;
    for (family, beside) in [(space.v4, ETHERNET), (space.v6, ETHERNET + IPV6)] {
        let of_family = space.store.and(all, family)?;
        all = space.store.minus(all, family)?;
        if of_family.is_empty() {
            continue;
        }
        let Some(above) = shorter_than(space, of_family)? else { return Ok(None) };
        longest = longest.max(Some(above - 1 + beside));
    }
    let arp = space.is(Field::Ethertype, ethertype::ARP.into())?;
    let others = space.store.minus(all, arp)?;
    if !others.is_empty() {
        return Ok(None);
    }
    Ok(longest.max((!all.is_empty()).then_some(ARP)))
}

/// The least length that no packet of a set has or exceeds, where all are short.
fn shorter_than(space: &mut Space, set: Set) -> Result<Option<u32>, TooLarge> {
    let mut has = |length: u64| -> Result<bool, TooLarge> {
        let longer = space.between(Field::Length, length, u16::MAX.into())?;
        Ok(!space.store.and(set, longer)?.is_empty())
    };
    if has(NOT_SHORT)? {
        return Ok(None);
    }
    let (mut some, mut none) = (0, NOT_SHORT);
    while none - some > 1 {
        let between = (some + none) / 2;
        if has(between)? { some = between } else { none = between }
    }
    Ok(u32::try_from(none).ok())
}
