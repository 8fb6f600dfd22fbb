//! C3 once more: filters that ask for all eight bits of the DS field's byte, ECN's two among them.

use super::context::{RuleContext, witness};
use crate::finding::{Finding, Fix, Level, Rule};
use crate::packet::Packet;
use crate::reach::Candidate;
use crate::sets::bdd::TooLarge;
use tidegate_packet::header::{ethertype, proto};
use tidegate_policy::dump::{FilterDump, FilterEntry};
use tidegate_policy::{FilterParams, FlowerField};

/// The bits of the byte that are a code point, and those that are ECN's.
const DSCP: u8 = 0xfc;
const ECN: u8 = 0x03;
/// Expedited forwarding (RFC 3246).
const EF: u8 = 46;
/// ECT(0), which senders that use ECN write on data (RFC 3168).
const ECT0: u8 = 0x02;

/// Filters for a code point that leave out the packets of senders that use ECN. The engine shows one that
/// goes elsewhere.
pub(super) fn check(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let reading = context.reading;
    let mut found = Vec::new();
    for (at, dump) in reading.filters.iter().enumerate() {
        let Some((value, mask)) = tos_match(dump).filter(|_| !context.leaves_out(&dump.dev)) else {
            continue;
        };
        // Bits outside the mask are not kept.
        if mask & DSCP == DSCP && value == EF & mask {
            found.extend(unshifted(context, at, mask)?);
            continue;
        }
        if mask & ECN != ECN || mask & DSCP != DSCP || value & ECN != 0 || value & DSCP == 0 {
            continue;
        }
        let (Some(step), Some(class)) = (context.step_of_filter(at), super::context::classid(dump)) else {
            continue;
        };
        let seen = context.reached.walked.seen.filters.get(&at).cloned().unwrap_or_default();
        let Some(plain) = context.reached.pick(reading, &seen.matched)? else { continue };
        let with =
            Candidate { packet: Packet { dsfield: value | ECT0, ..plain.packet.clone() }, ..plain.clone() };
        let Some(device) = context.prober.device(&dump.dev) else { continue };
        let mut classes = |candidate: &Candidate| {
            let way = context.send(candidate);
            let there = way.stop_at(device).is_some_and(|stop| stop.classes.contains(&class));
            (there, way.dropped.is_none(), context.went(&way, &dump.dev))
        };
        let ((true, true, _), (false, true, went)) = (classes(&plain), classes(&with)) else { continue };
        let byte = format!("{value:#04x}");
        found.push(Finding {
            rule: Rule::Shapes,
            level: Level::Note,
            place: step
                .words
                .iter()
                .find(|word| word.text == byte)
                .and_then(|word| word.place.clone())
                .or_else(|| step.place.clone()),
            what: format!(
                "{byte} under the mask {mask:#04x} is matched together with ECN's two bits: only packets \
            without ECN fit"
            ),
            because: format!(
                "senders that use ECN set one of them on data (RFC 3168), and what they send with this mark \
                does not come to {class} by this filter"
            ),
            witness: witness(&with, &went),
            fix: Some(Fix {
                what: "leave the two bits of ECN out of the mask: 0xfc for that byte".into(),
                edits: Vec::new(),
            }),
        });
    }
    Ok(found)
}

/// EF's number in the place of the byte: `tos 0x2e` matches code point 11 and ECT(0), which no sender writes.
fn unshifted(context: &mut RuleContext<'_>, at: usize, mask: u8) -> Result<Option<Finding>, TooLarge> {
    let reading = context.reading;
    let dump = &reading.filters[at];
    let (Some(step), Some(class)) = (context.step_of_filter(at), super::context::classid(dump)) else {
        return Ok(None);
    };
    let seen = context.reached.walked.seen.filters.get(&at).cloned().unwrap_or_default();
    let Some(plain) = context.reached.pick(reading, &seen.matched)? else { return Ok(None) };
    let Some(device) = context.prober.device(&dump.dev) else { return Ok(None) };
    // Another filter may take the first one's protocol to the same class: EF is mostly a call's, over UDP.
    let call = Packet { protocol: proto::UDP, tcp_flags: 0, ..plain.packet.clone() };
    let missed = [plain.packet.clone(), call].into_iter().find_map(|packet| {
        let marked = Candidate { packet: Packet { dsfield: EF << 2, ..packet }, ..plain.clone() };
        let way = context.send(&marked);
        let there = way.stop_at(device).is_some_and(|stop| stop.classes.contains(&class));
        (way.dropped.is_none() && !there).then_some((marked, way))
    });
    let Some((marked, way)) = missed else { return Ok(None) };
    let went = context.went(&way, &dump.dev);
    let is_ef =
        |word: &&crate::reading::Word| ["0x2e", "46"].contains(&word.text.to_ascii_lowercase().as_str());
    let Some(word) = step.words.iter().find(is_ef) else { return Ok(None) };
    Ok(Some(Finding {
        rule: Rule::Shapes,
        level: Level::Warning,
        place: word.place.clone().or_else(|| step.place.clone()),
        what: format!(
            "{EF:#04x} under the mask {mask:#04x} is not EF: the code point is in the upper six bits of the byte"
        ),
        because: format!(
            "EF is {EF} ({EF:#04x}), which is {:#04x} in the byte; no sender writes {EF:#04x} there",
            EF << 2
        ),
        witness: witness(&marked, &went),
        fix: Some(Fix {
            what: format!("if EF is meant: {:#04x} and the mask 0xfc", EF << 2),
            edits: Vec::new(),
        }),
    }))
}

/// The value that a filter compares the byte with, and its mask.
fn tos_match(dump: &FilterDump) -> Option<(u8, u8)> {
    let FilterEntry::Filter { params, .. } = &dump.entry else { return None };
    match (params, dump.protocol) {
        (FilterParams::U32(u32), ethertype::IPV4) => {
            let mut keys = u32.keys.iter().filter(|key| key.offset == 0 && key.offset_mask == 0);
            let key = keys.next().filter(|_| keys.next().is_none())?;
            Some(((key.value >> 16) as u8, (key.mask >> 16) as u8))
        }
        (FilterParams::U32(u32), ethertype::IPV6) => {
            let mut keys = u32.keys.iter().filter(|key| key.offset == 0 && key.offset_mask == 0);
            let key = keys.next().filter(|_| keys.next().is_none())?;
            Some(((key.value >> 20) as u8, (key.mask >> 20) as u8))
        }
        (FilterParams::Flower(flower), _) => {
            let key = flower.keys.iter().find(|key| key.field == FlowerField::IpTos && !key.range)?;
            Some((u8::try_from(key.value).ok()?, u8::try_from(key.mask).ok()?))
        }
        _ => None,
    }
}
