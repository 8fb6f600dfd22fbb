//! All packets at once through the tables of u32: from a preference's own table by hashes to others, and back
//! where none of their filters decides.

use crate::sets::bdd::{Set, TooLarge};
use crate::sets::flower::Sure;
use crate::sets::set::{Origin, U32Sets};
use crate::walk::list::{Coming, Course, Lists, Pref, entry};
use crate::walk::outcome::{Outcome, Verdict};
use std::collections::BTreeMap;
use tidegate_packet::Handle;
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::{FilterParams, U32Key, U32OffsetField, U32Params};

/// Tables that may refer to each other in a row.
const DEEPEST: usize = 8;
/// Filters that are evaluated for one preference, each as often as the search comes to it.
const MOST_VISITS: usize = 1 << 16;
/// The most bits of a field that says where the next header begins.
const MOST_OFFSET_BITS: u32 = 6;
/// The length of an IPv4 header in its first word, in words, and where it is.
const IHL: (u32, u32) = (0x0f00_0000, 24);

/// A table of u32: filters by bucket.
#[derive(Debug, Default)]
struct U32Table {
    buckets: u32,
    filters: BTreeMap<u32, Vec<usize>>,
}

/// All tables, by device, qdisc and number: whatever list and preference they were made for.
#[derive(Debug, Default)]
pub(crate) struct U32Tables(BTreeMap<(String, Handle), BTreeMap<u32, U32Table>>);

impl U32Tables {
    /// Those of some filters.
    pub(crate) fn of(filters: &[FilterDump]) -> U32Tables {
        let mut all = U32Tables::default();
        let of_u32 = |dump: &&FilterDump| dump.kind == "u32" && dump.chain == 0;
        for (at, dump) in filters.iter().enumerate().filter(|(_, dump)| of_u32(dump)) {
            let place = (dump.dev.clone(), dump.parent.qdisc());
            let tables = all.0.entry(place).or_default();
            match &dump.entry {
                FilterEntry::U32Table { table, divisor } => {
                    tables.entry(*table).or_default().buckets = *divisor
                }
                FilterEntry::Filter { handle, .. } => {
                    let table = tables.entry(handle >> 20).or_default();
                    table.filters.entry(handle >> 12 & 0xff).or_default().push(at);
                }
                FilterEntry::Heading => {}
            }
        }
        all
    }

    /// The filters that a search beginning in a table may come to, in that order, each once.
    pub(super) fn order(&self, filters: &[FilterDump], dev: &str, parent: Handle, root: u32) -> Vec<usize> {
        let Some(tables) = self.0.get(&(dev.to_owned(), parent.qdisc())) else { return Vec::new() };
        let (mut order, mut seen) = (Vec::new(), Vec::new());
        visit(tables, filters, root, &mut seen, &mut order);
        order
    }
}

fn visit(
    tables: &BTreeMap<u32, U32Table>,
    filters: &[FilterDump],
    table: u32,
    seen: &mut Vec<u32>,
    order: &mut Vec<usize>,
) {
    if seen.contains(&table) || seen.len() > DEEPEST * DEEPEST {
        return;
    }
    seen.push(table);
    for at in tables.get(&table).into_iter().flat_map(|table| table.filters.values().flatten()) {
        if !order.contains(at) {
            order.push(*at);
        }
        if let Some(link) = of_u32(&filters[*at]).and_then(|u32| u32.link) {
            visit(tables, filters, link, seen, order);
        }
    }
}

fn of_u32(dump: &FilterDump) -> Option<&U32Params> {
    match entry(dump)?.1 {
        FilterParams::U32(u32) => Some(u32),
        _ => None,
    }
}

/// A search through the tables, for one preference.
struct Search<'a> {
    tables: &'a BTreeMap<u32, U32Table>,
    protocol: u16,
    /// Packets that end before a word that was to be read: for them the search is over.
    ended: Set,
    visits: usize,
}

/// A part of what a filter refers to another table.
struct Referred {
    bucket: u32,
    origin: Origin,
    set: Set,
}

impl Lists<'_> {
    /// u32: one filter after the other, until one decides or reads beyond the packet.
    pub(super) fn u32(
        &mut self,
        dev: &str,
        pref: &Pref,
        qdisc: Handle,
        among: Set,
        course: &mut Course,
    ) -> Result<(), TooLarge> {
        let all = self.tables;
        let Some(tables) = all.0.get(&(dev.to_owned(), qdisc)) else { return Ok(()) };
        let mut search = Search { tables, protocol: pref.protocol, ended: Set::NONE, visits: 0 };
        self.bucket(&mut search, (pref.table, 0), Origin::NETWORK, among, 0, course)
    }

    /// The filters of one bucket. `came`: the packets that come to it.
    fn bucket(
        &mut self,
        search: &mut Search<'_>,
        (table, bucket): (u32, u32),
        origin: Origin,
        came: Set,
        depth: usize,
        course: &mut Course,
    ) -> Result<(), TooLarge> {
        let tables = search.tables;
        let of_bucket = tables.get(&table).and_then(|table| table.filters.get(&bucket));
        for at in of_bucket.into_iter().flatten() {
            search.visits += 1;
            if search.visits > MOST_VISITS {
                return Err(TooLarge);
            }
            let Some((_, FilterParams::U32(u32), actions)) = entry(&self.filters[*at]) else { continue };
            let sets = self.u32_sets(search, u32, origin, came, course.coming)?;
            let eligible = sets.matched;
            let coming = self.space.store.minus(eligible, search.ended)?;
            search.ended = self.space.store.or(search.ended, sets.ended)?;
            let outcome = match u32.classid {
                // A filter that neither names a class nor does anything only counts.
                None if actions.is_empty() => Outcome::none(),
                class => Outcome::of(
                    actions,
                    Verdict::Class(class.unwrap_or(Handle::NONE)),
                    course.coming.passed_over,
                )?,
            };
            let sure = |set: Set| match u32.indev {
                // Which packets came in by a device is not followed.
                Some(_) => Sure { sure: Set::NONE, maybe: set },
                None => Sure { sure: set, maybe: Set::NONE },
            };
            let Some(link) = u32.link else {
                self.meet_of(*at, sure(eligible), sure(coming), outcome, course)?;
                continue;
            };
            // It has the filters there decide first.
            self.meet_of(*at, sure(eligible), sure(coming), Outcome::none(), course)?;
            if depth >= DEEPEST || !search.tables.contains_key(&link) {
                search.ended = self.space.store.or(search.ended, coming)?;
                continue;
            }
            for part in self.referred(search, u32, link, origin, coming, course.coming)? {
                self.bucket(search, (link, part.bucket), part.origin, part.set, depth + 1, course)?;
            }
            let back = self.space.store.minus(coming, search.ended)?;
            let back = self.space.store.and(back, course.live)?;
            let Sure { sure, maybe } = sure(back);
            let doubtful = outcome.in_doubt();
            self.take(sure, outcome, course)?;
            self.take(maybe, doubtful, course)?;
        }
        Ok(())
    }

    /// Where a filter refers the packets that it matched: by a hash to a bucket, with another origin.
    fn referred(
        &mut self,
        search: &mut Search<'_>,
        u32: &U32Params,
        link: u32,
        origin: Origin,
        matched: Set,
        coming: Coming,
    ) -> Result<Vec<Referred>, TooLarge> {
        let Some(table) = search.tables.get(&link) else { return Ok(Vec::new()) };
        let mut hashed = Vec::new();
        if table.buckets <= 1 {
            hashed.push((0, matched));
        } else {
            let (mask, offset) = u32.hash.unwrap_or((0, 0));
            let shift = mask.trailing_zeros();
            let bits = (table.buckets - 1).checked_shl(shift).unwrap_or(0);
            for bucket in table.filters.keys().copied() {
                let value = bucket.checked_shl(shift).unwrap_or(0);
                if value.checked_shr(shift).unwrap_or(0) != bucket || value & !mask != 0 {
                    continue;
                }
                let key = U32Key { value, mask: mask & bits, offset, offset_mask: 0 };
                hashed.push((bucket, self.having(search, key, origin, matched, coming)?));
            }
            // Packets without that word are in no bucket.
            let any = U32Key { value: 0, mask: 0, offset, offset_mask: 0 };
            self.having(search, any, origin, matched, coming)?;
        }
        let mut parts = Vec::new();
        for (bucket, set) in hashed {
            for (origin, set) in self.moved(search, u32, origin, set, coming)? {
                // Beyond the packet's end a table counts as empty.
                let inside = self.space.longer_than(origin.base)?;
                let set = self.space.store.and(set, inside)?;
                parts.push(Referred { bucket, origin, set });
            }
        }
        parts.retain(|part| !part.set.is_empty());
        Ok(parts)
    }

    /// A set by where the next header begins.
    fn moved(
        &mut self,
        search: &mut Search<'_>,
        u32: &U32Params,
        origin: Origin,
        set: Set,
        coming: Coming,
    ) -> Result<Vec<(Origin, Set)>, TooLarge> {
        let offset = u32.offset;
        let ahead = |origin: Origin, field: u32| {
            let next = (i32::from(offset.plus) + 3).wrapping_add(field as i32) & !3;
            match offset.eat {
                true => Origin { base: origin.base.wrapping_add(next), next: 0, ..origin },
                false => Origin { next, ..origin },
            }
        };
        match offset.field {
            None if offset.plus != 0 => Ok(vec![(ahead(origin, 0), set)]),
            // It stays where it is, or where an earlier table had put it.
            None if offset.eat => {
                Ok(vec![(Origin { base: origin.base.wrapping_add(origin.next), next: 0, ..origin }, set)])
            }
            None => Ok(vec![(origin, set)]),
            Some(field) => {
                let mut moved = Vec::new();
                for (value, key) in values(field)? {
                    let part = self.having(search, key, origin, set, coming)?;
                    if part.is_empty() {
                        continue;
                    }
                    let of_header = key.mask == IHL.0 && origin.base.wrapping_add(key.offset) == 0;
                    let words = if of_header { Some((key.value >> IHL.1) as u8) } else { origin.words };
                    moved.push((Origin { words, ..ahead(origin, value) }, part));
                }
                Ok(moved)
            }
        }
    }

    /// Those of a set that have a word as wanted; what has no such word ends there.
    fn having(
        &mut self,
        search: &mut Search<'_>,
        key: U32Key,
        origin: Origin,
        set: Set,
        coming: Coming,
    ) -> Result<Set, TooLarge> {
        let U32Sets { matched, ended } = self.keys(search, &[key], origin, set, coming)?;
        search.ended = self.space.store.or(search.ended, ended)?;
        Ok(matched)
    }

    /// The packets of a set that a u32 filter matches, and those that end the search at it.
    fn u32_sets(
        &mut self,
        search: &Search<'_>,
        u32: &U32Params,
        origin: Origin,
        of: Set,
        coming: Coming,
    ) -> Result<U32Sets, TooLarge> {
        let mut set = of;
        if let Some((value, mask)) = u32.mark {
            let states = &*self.states;
            set = self.space.store.select(coming.states, set, &mut |n| states.get(n).mark & mask == value)?;
        }
        self.keys(search, &u32.keys, origin, set, coming)
    }

    fn keys(
        &mut self,
        search: &Search<'_>,
        keys: &[U32Key],
        origin: Origin,
        set: Set,
        coming: Coming,
    ) -> Result<U32Sets, TooLarge> {
        let mut sets = U32Sets { matched: Set::NONE, ended: Set::NONE };
        for (rewrite, part) in self.space.by_rewrite(self.states, set, coming.states)? {
            let keys = self.space.u32(search.protocol, keys, coming.view, rewrite, origin)?;
            for (whole, keys) in [(&mut sets.matched, keys.matched), (&mut sets.ended, keys.ended)] {
                let matched = self.space.store.and(part, keys)?;
                *whole = self.space.store.or(*whole, matched)?;
            }
        }
        Ok(sets)
    }
}

/// The values of a field that says where the next header begins, each with the key that asks for it.
fn values(field: U32OffsetField) -> Result<Vec<(u32, U32Key)>, TooLarge> {
    if field.mask.count_ones() > MOST_OFFSET_BITS {
        return Err(TooLarge);
    }
    let within = (0..=field.mask).filter(|value| value & !field.mask == 0);
    let key = |value: u16| U32Key {
        value: u32::from(value) << 16,
        mask: u32::from(field.mask) << 16,
        offset: field.at,
        offset_mask: 0,
    };
    let shifted = |value: u16| u32::from(value).checked_shr(field.shift.into()).unwrap_or(0);
    Ok(within.map(|value| (shifted(value), key(value))).collect())
}
