//! Kinds that drop early: red, choke, sfb, gred.

use super::super::numbers;
use tidegate_os::attribute::{Found, read};
use tidegate_policy::{GredFlags, GredParams, GredQueue, GredQueueDump, GredSetup, RedCurve, RedParams, SfbParams};

/// Octets of what is told of one queue of gred (`tc_gred_qopt`).
const GRED_QUEUE: usize = 52;

pub(crate) fn red(from: &Found<'_>, has_flags: bool) -> Option<RedParams> {
    let octets = from.get(1)?;
    let words = numbers(octets);
    let [limit, min, max, ..] = words.as_slice() else { return None };
    let logs = octets.get(12..16)?;
    let curve = RedCurve {
        min: *min,
        max: *max,
        wlog: logs[0],
        plog: logs[1],
        scell_log: logs[2],
        max_p: from.u32(3).unwrap_or(0),
    };
    // Newer kernels tell all flags apart; the structure has the older ones.
    let told = from.get(4).filter(|_| has_flags).and_then(|octets| numbers(octets).first().copied());
    let flags = told.unwrap_or(0) | u32::from(logs[3]);
    Some(RedParams {
        limit: *limit,
        curve,
        idle: None,
        ecn: flags & 1 != 0,
        harddrop: flags & 2 != 0,
        adaptive: flags & 4 != 0,
        nodrop: flags & 8 != 0,
    })
}

pub(crate) fn sfb(from: &Found<'_>) -> Option<SfbParams> {
    let words = numbers(from.get(1)?);
    let [rehash_ms, warmup_ms, max, target, increment, decrement, limit, penalty_rate, penalty_burst] =
        *words.as_slice()
    else {
        return None;
    };
    Some(SfbParams { rehash_ms, warmup_ms, limit, max, target, increment, decrement, penalty_rate, penalty_burst })
}

const fn gred_flags(flags: u32) -> GredFlags {
    GredFlags { ecn: flags & 1 != 0, harddrop: flags & 2 != 0 }
}

pub(crate) fn gred(from: &Found<'_>) -> Option<GredParams> {
    let octets = from.get(3)?;
    let (words, tail) = (numbers(octets), octets.get(8..10)?);
    let setup = GredSetup {
        vqs: *words.first()?,
        default: *words.get(1)?,
        grio: tail[0] != 0,
        limit: from.u32(5),
        flags: gred_flags(tail[1].into()),
    };
    let probabilities = numbers(from.get(4).unwrap_or_default());
    let told = from.nest(6);
    let told: Vec<Found<'_>> = told.all().map(|(_, octets)| read(octets)).collect();
    let queues = from.get(1).unwrap_or_default().chunks_exact(GRED_QUEUE).zip(probabilities);
    let queues = queues.filter_map(|(octets, max_p)| gred_queue(octets, max_p, &told)).collect();
    Some(GredParams::InForce(setup, queues))
}

/// A queue; places of which none was made have numbers beyond all queues.
fn gred_queue(octets: &[u8], max_p: u32, told: &[Found<'_>]) -> Option<GredQueueDump> {
    let words = numbers(octets);
    let [limit, min, max, vq, backlog, average, forced, early, _, pdrop, _, packets, bytes] = *words.as_slice() else {
        return None;
    };
    let logs = octets.get(40..44)?;
    let more = told.iter().find(|told| told.u32(2) == Some(vq))?;
    let of = |number: u16, else_: u32| more.u32(number).unwrap_or(else_);
    let curve = RedCurve { min, max, wlog: logs[0], plog: logs[1], scell_log: logs[2], max_p };
    let flags = Some(gred_flags(of(12, 0)));
    Some(GredQueueDump {
        queue: GredQueue { vq, prio: logs[3], limit, curve, idle: None, flags },
        average,
        backlog,
        forced_drop: of(8, forced),
        prob_drop: of(6, early),
        forced_mark: of(9, 0),
        prob_mark: of(7, 0),
        pdrop,
        packets: of(4, packets),
        bytes: more.u64(3).unwrap_or_else(|| bytes.into()),
    })
}
