//! gred.

use super::base::{Codec, nested};
use super::red;
use crate::decode::message::numbers;
use alloc::vec::Vec;
use tidegate_netlink_wire::attribute::{Attributes, Found, read, words};
use tidegate_policy::{GredFlags, GredParams, GredQueue, GredQueueDump, GredSetup, QdiscParams, RedCurve};

pub(super) struct Gred;

impl Codec for Gred {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::Gred(params) = params {
            nested(to, |to| encode(to, params));
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        decode(&read(options)).map(QdiscParams::Gred)
    }
}

/// Bytes of what is reported of one queue of gred (`tc_gred_qopt`).
const GRED_QUEUE: usize = 52;

fn encode(to: &mut Attributes, params: &GredParams) {
    match params {
        GredParams::Setup(setup) | GredParams::InForce(setup, _) => encode_setup(to, setup),
        GredParams::Queue(queue) => encode_queue(to, queue),
    }
}

const fn flag_bits(flags: GredFlags) -> u8 {
    flags.ecn as u8 | (flags.harddrop as u8) << 1
}

fn encode_setup(to: &mut Attributes, setup: &GredSetup) {
    let mut payload = words(&[setup.vqs, setup.default]);
    payload.extend([u8::from(setup.grio), flag_bits(setup.flags), 0, 0]);
    to.payload(3, &payload).maybe(5, setup.limit);
}

fn encode_queue(to: &mut Attributes, queue: &GredQueue) {
    let GredQueue { vq, prio, limit, curve, idle: table, flags } = queue;
    // The kernel's counters are between number and logarithms.
    let mut payload = words(&[*limit, curve.min, curve.max, *vq, 0, 0, 0, 0, 0, 0]);
    payload.extend([curve.wlog, curve.plog, curve.scell_log, *prio]);
    payload.extend(words(&[0, 0]));
    to.payload(1, &payload);
    red::idle(to, 2, table.as_deref());
    to.u32(4, curve.max_p);
    if let Some(flags) = flags {
        let (mut entry, mut list) = (Attributes::default(), Attributes::default());
        entry.u32(2, *vq).u32(12, flag_bits(*flags).into());
        list.nest(1, &entry);
        to.nest(6, &list);
    }
}

const fn flags(flags: u32) -> GredFlags {
    GredFlags { ecn: flags & 1 != 0, harddrop: flags & 2 != 0 }
}

fn decode(from: &Found<'_>) -> Option<GredParams> {
    let payload = from.get(3)?;
    let (words, tail) = (numbers(payload), payload.get(8..10)?);
    let setup = GredSetup {
        vqs: *words.first()?,
        default: *words.get(1)?,
        grio: tail[0] != 0,
        limit: from.u32(5),
        flags: flags(tail[1].into()),
    };
    let probabilities = numbers(from.get(4).unwrap_or_default());
    let dump = from.nest(6);
    let dump: Vec<Found<'_>> = dump.all().map(|(_, payload)| read(payload)).collect();
    let queues = from.get(1).unwrap_or_default().chunks_exact(GRED_QUEUE).zip(probabilities);
    let queues = queues.filter_map(|(payload, max_p)| decode_queue(payload, max_p, &dump)).collect();
    Some(GredParams::InForce(setup, queues))
}

/// A queue; places of which none was made have numbers beyond all queues.
fn decode_queue(payload: &[u8], max_p: u32, dump: &[Found<'_>]) -> Option<GredQueueDump> {
    let words = numbers(payload);
    let [limit, min, max, vq, backlog, average, forced, early, _, pdrop, _, packets, bytes] =
        *words.as_slice()
    else {
        return None;
    };
    let logs = payload.get(40..44)?;
    let more = dump.iter().find(|dump| dump.u32(2) == Some(vq))?;
    let of = |number: u16, else_: u32| more.u32(number).unwrap_or(else_);
    let curve = RedCurve { min, max, wlog: logs[0], plog: logs[1], scell_log: logs[2], max_p };
    let flags = Some(flags(of(12, 0)));
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
