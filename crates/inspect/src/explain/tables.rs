//! u32's hash tables as a packet goes through them: from a preference's root table, by links, from bucket to
//! bucket.

use super::ExplainStep;
use super::counted::Counted;
use super::filters::{
    Decision, Here, count, is_filter, line, matches_protocol, note, other_protocol, place_of, settled, words,
};
use crate::bytes::{Part, compare, key_words};
use crate::reading::PolicyModel;
use crate::walk::list::FIRST_ROOT;
use tidegate_packet::Head;
use tidegate_policy::dump::{FilterDump, FilterEntry, U32Hits};
use tidegate_policy::{FilterParams, U32Key, U32Params};

/// Tables that refer to each other in a row, as in the engine.
const DEEPEST: usize = 8;

/// What offsets count from: all of them, and those with `nexthdr+`.
#[derive(Clone, Copy, Default)]
struct Offsets {
    base: i32,
    next: i32,
}

impl Offsets {
    /// A key as it reads the packet from here.
    fn absolute(self, key: &U32Key) -> U32Key {
        U32Key { offset: self.base + key.offset + (self.next & key.offset_mask), offset_mask: 0, ..*key }
    }
}

/// How a filter's keys meet a packet.
#[derive(PartialEq, Eq)]
enum Met {
    Matches,
    Fails,
    /// The packet ends before a word: so does the search.
    Beyond,
}

/// How the search in a bucket ended.
#[derive(PartialEq, Eq)]
enum Went {
    /// Nothing there decided.
    On,
    Decided(Decision),
    /// It ended in this preference, without a decision.
    Ended,
}

struct Walk<'a> {
    reading: &'a PolicyModel,
    dumps: &'a [&'a FilterDump],
    here: Here<'a>,
    counted: &'a Counted,
    lines: &'a mut Vec<ExplainStep>,
    lookups: usize,
}

/// Why a value is not shown.
pub(super) const REWRITTEN: &str = "actions on this device rewrite packets, so the value is not shown";

/// The filters of one preference in the order in which they are evaluated; how many of them are not before a
/// decision.
pub(super) fn preference(
    reading: &PolicyModel,
    dumps: &[&FilterDump],
    here: Here<'_>,
    counted: &Counted,
    lines: &mut Vec<ExplainStep>,
) -> (Decision, usize) {
    let all = dumps.iter().filter(|dump| is_filter(dump)).count();
    let mut walk = Walk { reading, dumps, here, counted, lines, lookups: 0 };
    // Tables are listed with the latest first, and with those of other chains where these have the same
    // preference.
    let roots = dumps.iter().rev().filter_map(|dump| match dump.entry {
        FilterEntry::U32Table { table, .. } => Some(table),
        _ => None,
    });
    let has_filters = |table: &u32| {
        let of = |dump: &&FilterDump| match &dump.entry {
            FilterEntry::Filter { params: FilterParams::U32(u32), .. } => u32.table >> 20 == *table,
            _ => false,
        };
        dumps.iter().any(of)
    };
    let root = roots
        .clone()
        .find(|table| *table >= FIRST_ROOT && has_filters(table))
        .or_else(|| roots.clone().next());
    let Some((first, root)) = dumps.first().zip(root) else { return (Decision::Nothing, 0) };
    if !matches_protocol(first, here) {
        walk.for_others();
        return (Decision::Nothing, 0);
    }
    let went = walk.bucket(root << 20, Offsets::default(), 0);
    let unasked = all.saturating_sub(walk.lookups);
    match went {
        Went::Decided(decision) => return (decision, unasked),
        Went::On if unasked > 0 => {
            walk.lines.push(note(format!("{} in other buckets: not evaluated", filters(unasked))))
        }
        Went::Ended if unasked > 0 => {
            walk.lines.push(note(format!(
                "{} of this preference: not evaluated, as the search ended",
                filters(unasked)
            )));
        }
        Went::On | Went::Ended => {}
    }
    (Decision::Nothing, 0)
}

fn filters(number: usize) -> String {
    count(number, "filter")
}

impl<'a> Walk<'a> {
    fn say(&mut self, dump: &FilterDump, what: &str, met: bool, why: Vec<String>) {
        self.lines
            .push(ExplainStep { place: place_of(self.reading, dump), ..line(what.to_owned(), met, why) });
    }

    /// None is evaluated: they are for another protocol.
    fn for_others(&mut self) {
        for dump in self.dumps {
            if let FilterEntry::Filter { handle, params, actions, .. } = &dump.entry {
                let what = words(dump, *handle, params, actions);
                let step = line(what, false, vec![other_protocol(dump, self.here)]);
                self.lines.push(ExplainStep { place: place_of(self.reading, dump), ..step });
            }
        }
    }

    /// The filters of a bucket in their order. Tables belong to a whole qdisc, whatever list they were made
    /// in.
    fn nodes(&self, place: u32) -> Vec<(u32, &'a FilterDump, &'a U32Params)> {
        let of = self.dumps.first().map(|dump| (&dump.dev, dump.parent.qdisc()));
        let mine = self.reading.filters.iter().filter(|dump| Some((&dump.dev, dump.parent.qdisc())) == of);
        let mut nodes: Vec<_> = mine
            .filter_map(|dump| match &dump.entry {
                FilterEntry::Filter { handle, params: FilterParams::U32(u32), .. } if u32.table == place => {
                    Some((*handle, dump, u32))
                }
                _ => None,
            })
            .collect();
        nodes.sort_by_key(|(handle, ..)| *handle);
        nodes.dedup_by_key(|(handle, ..)| *handle);
        nodes
    }

    fn bucket(&mut self, place: u32, from: Offsets, depth: usize) -> Went {
        let nodes = self.nodes(place);
        if nodes.is_empty() && depth > 0 {
            self.lines.push(note(format!("bucket {} has no filters", bucket_name(place))));
        }
        let mut is_first = true;
        for (handle, dump, u32) in nodes {
            let FilterEntry::Filter { params, actions, .. } = &dump.entry else { continue };
            let is_entered = self.counted.hits(dump).is_none_or(|hits| hits.lookups > 0);
            if std::mem::take(&mut is_first) && depth > 0 && !is_entered {
                self.lines.push(note(format!(
                    "the packet ends before byte {}, where bucket {} begins to read: it counts as empty",
                    from.base + 1,
                    bucket_name(place)
                )));
                return Went::On;
            }
            let Some(hits) = self.counted.hits(dump).filter(|hits| hits.lookups > 0) else {
                return Went::Ended;
            };
            let same = |own: &&FilterDump| {
                matches!(&own.entry, FilterEntry::Filter { handle: of, .. }
                if *of == handle)
            };
            self.lookups += usize::from(self.dumps.iter().any(same));
            let what = words(dump, handle, params, actions);
            let (met, mut why) = compared(u32, hits, dump, (self.here, from));
            let elsewhere = || u32.indev.as_ref().filter(|_| hits.matched == 0);
            let (next, offsets) = match (met, u32.link) {
                (Met::Fails, _) => {
                    self.say(dump, &what, false, why);
                    continue;
                }
                (Met::Beyond, _) => {
                    self.say(dump, &what, false, why);
                    return Went::Ended;
                }
                (Met::Matches, None) => {
                    if let Some(indev) = elsewhere() {
                        why.push(format!("it did not come in by {}", indev.name));
                        self.say(dump, &what, false, why);
                        continue;
                    }
                    let decision = settled(dump, (params, actions), self.here, self.counted, &mut why);
                    self.say(dump, &what, true, why);
                    match decision {
                        Decision::Nothing => continue,
                        decision => return Went::Decided(decision),
                    }
                }
                (Met::Matches, Some(link)) => match self.follow(u32, link, from) {
                    Some((next, offsets, text)) => {
                        why.push(text);
                        self.say(dump, &what, true, why);
                        (next, offsets)
                    }
                    None => {
                        why.push(
                            "the packet ends before what this link reads: that ends the search here".into(),
                        );
                        self.say(dump, &what, true, why);
                        return Went::Ended;
                    }
                },
            };
            if depth == DEEPEST {
                return Went::Ended;
            }
            match self.bucket(next, offsets, depth + 1) {
                Went::On if u32.classid.is_none() && actions.is_empty() => {
                    self.lines.push(note(format!(
                        "nothing in bucket {} decides: the search goes on",
                        bucket_name(next)
                    )));
                }
                Went::On => {
                    let mut why = vec![format!("nothing in bucket {} decides", bucket_name(next))];
                    if let Some(indev) = elsewhere() {
                        why.push(format!("it did not come in by {}", indev.name));
                        self.say(dump, &what, false, why);
                        continue;
                    }
                    let decision = settled(dump, (params, actions), self.here, self.counted, &mut why);
                    self.say(dump, &what, true, why);
                    if decision != Decision::Nothing {
                        return Went::Decided(decision);
                    }
                }
                went => return went,
            }
        }
        Went::On
    }

    /// The bucket that a link leads to, what offsets count from there, and how that came.
    fn follow(&self, u32: &U32Params, link: u32, from: Offsets) -> Option<(u32, Offsets, String)> {
        let (head, ethertype) = (self.here.head, self.here.ethertype());
        let of = self.dumps.first().map(|dump| (&dump.dev, dump.parent.qdisc()));
        let mine = self.reading.filters.iter().filter(|dump| Some((&dump.dev, dump.parent.qdisc())) == of);
        let buckets = mine.clone().find_map(|dump| match dump.entry {
            FilterEntry::U32Table { table, divisor } if table == link => Some(divisor),
            _ => None,
        })?;
        let (mut bucket, mut because) = (0, String::new());
        if buckets > 1 {
            let (mask, offset) = u32.hash.unwrap_or((0, 0));
            let key = U32Key { value: 0, mask, offset: from.base + offset, offset_mask: 0 };
            let word = head.word(key.offset)?;
            bucket = (word & mask).checked_shr(mask.trailing_zeros()).unwrap_or(0) & (buckets - 1);
            let hashed: Vec<String> = compare(&key, ethertype, head).iter().filter_map(hashed).collect();
            because = match u32.hash {
                Some(_) => format!(" ({})", hashed.join(", ")),
                None => " (it has no hash)".into(),
            };
        }
        let mut offsets = from;
        let offset = &u32.offset;
        if offset.plus != 0 || offset.field.is_some() {
            offsets.next = i32::from(offset.plus) + 3;
            if let Some(field) = offset.field {
                let half = head.word(from.base + field.at)? >> 16;
                offsets.next +=
                    (half & u32::from(field.mask)).checked_shr(field.shift.into()).unwrap_or(0) as i32;
            }
            offsets.next &= !3;
        }
        if offset.eat {
            offsets = Offsets { base: offsets.base + offsets.next, next: 0 };
        }
        let place = link << 20 | bucket << 12;
        Some((place, offsets, format!("it leads to bucket {}{because}", bucket_name(place))))
    }
}

/// `source 192.168.1.16 & 0.0.0.255 = 0.0.0.16`.
fn hashed(part: &Part) -> Option<String> {
    let (has, masked) = (part.has.as_ref()?, part.masked.as_ref()?);
    Some(match &part.mask {
        Some(mask) => format!("{} {has} & {mask} = {masked}", part.name),
        None => format!("{} {has}", part.name),
    })
}

/// `2:10:`, as tc writes it.
fn bucket_name(place: u32) -> String {
    format!("{:x}:{:x}:", place >> 20, place >> 12 & 0xff)
}

/// How far a packet got with the keys of a filter. Where it came there once, the filter's counters show it,
/// too.
fn compared(
    u32: &U32Params,
    hits: &U32Hits,
    dump: &FilterDump,
    (here, from): (Here<'_>, Offsets),
) -> (Met, Vec<String>) {
    let mut why = Vec::new();
    if let Some((value, mask)) = u32.mark {
        let equal = if hits.mark > 0 { "=" } else { "is not" };
        why.push(format!(
            "mark {:#x} & {mask:#x} = {:#x} {equal} {value:#x}",
            here.mark(),
            here.mark() & mask
        ));
        if hits.mark == 0 {
            return (Met::Fails, why);
        }
    }
    for (key, waiting) in u32.keys.iter().zip(&hits.keys) {
        let absolute = from.absolute(key);
        let parts = compare(&absolute, here.ethertype(), here.head);
        let reaches = here.head.word(absolute.offset).is_some();
        // More of a packet is not kept.
        let is_cut = !reaches && here.head.network().len() >= Head::NETWORK && absolute.offset >= 0;
        let seen =
            if is_cut { key.value & key.mask == 0 } else { reaches && parts.iter().all(|part| part.matches) };
        let matches = if hits.lookups == 1 { *waiting > 0 } else { seen };
        if is_cut && (matches || !seen) {
            let (last, known) = (absolute.offset.saturating_add(4), Head::NETWORK);
            why.push(format!(
                "of a packet {known} bytes are known here: what follows holds if those before byte {last} are 0"
            ));
            if matches {
                continue;
            }
            return (Met::Fails, why);
        }
        debug_assert!(
            here.rewritten || is_cut || matches == seen,
            "the engine read {key:?} of {dump:?} otherwise"
        );
        if here.rewritten {
            let holds = if matches { "holds" } else { "does not hold" };
            why.push(format!("`{}` {holds} ({REWRITTEN})", key_words(&absolute, dump.protocol)));
            if matches {
                continue;
            }
            return (Met::Fails, why);
        }
        why.extend(parts.iter().filter(|part| matches || !part.matches).map(Part::text));
        if key.offset_mask != 0 && key.mask != 0 && from.next == 0 {
            let at = absolute.offset;
            why.push(format!(
                "no filter before has set the offset of the next header: nexthdr+{} is byte {at} of the \
                packet",
                key.offset
            ));
        }
        if !reaches {
            let last = absolute.offset.saturating_add(4);
            why.push(format!("the packet ends before byte {last}: that ends the search in this preference"));
            return (Met::Beyond, why);
        }
        if !matches {
            return (Met::Fails, why);
        }
    }
    (Met::Matches, why)
}
