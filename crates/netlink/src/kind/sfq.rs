//! sfq: a structure.

use super::base::Codec;
use crate::decode::message::{Message, numbers};
use tidegate_netlink_wire::attribute::{Attributes, words};
use tidegate_netlink_wire::numbers::TCA_OPTIONS;
use tidegate_policy::dump::{SfqStats, Xstats};
use tidegate_policy::{QdiscParams, RedCurve, SfqParams, SfqRed};

pub(super) struct Sfq;

impl Codec for Sfq {
    fn encode(&self, to: &mut Attributes, params: &QdiscParams, _change: bool) {
        if let QdiscParams::Sfq(params) = params {
            encode(to, params);
        }
    }

    fn decode(&self, options: &[u8]) -> Option<QdiscParams> {
        decode(options).map(QdiscParams::Sfq)
    }

    fn stats(&self, message: &Message<'_>) -> Option<Xstats> {
        read_stats(message.options()).map(Xstats::Sfq)
    }

    fn class_stats(&self, message: &Message<'_>) -> Option<Xstats> {
        message.own_numbers().first().map(|allot| Xstats::SfqClass { allot: *allot as i32 })
    }
}

fn encode(to: &mut Attributes, params: &SfqParams) {
    let SfqParams { quantum, perturb, limit, divisor, flows, depth, headdrop, red } = params;
    let mut bytes =
        words(&[*quantum, *perturb as u32, *limit, *divisor, *flows, *depth, u32::from(*headdrop)]);
    match red {
        Some(red) => {
            bytes.extend(words(&[red.limit, red.curve.min, red.curve.max]));
            let flags = u8::from(red.ecn) | u8::from(red.harddrop) << 1;
            bytes.extend([red.curve.wlog, red.curve.plog, red.curve.scell_log, flags]);
            bytes.extend(words(&[red.curve.max_p]));
        }
        None => bytes.extend(words(&[0; 5])),
    }
    // The kernel's counters, if the message has them.
    bytes.extend(words(&[0; 6]));
    to.payload(TCA_OPTIONS, &bytes);
}

fn decode(options: &[u8]) -> Option<SfqParams> {
    let words = numbers(options);
    let [quantum, perturb, limit, divisor, flows, depth, headdrop, red_limit, min, max, _, max_p, ..] =
        words.as_slice()
    else {
        return None;
    };
    let logs = options.get(40..44)?;
    let curve =
        RedCurve { min: *min, max: *max, wlog: logs[0], plog: logs[1], scell_log: logs[2], max_p: *max_p };
    let red = SfqRed { limit: *red_limit, curve, ecn: logs[3] & 1 != 0, harddrop: logs[3] & 2 != 0 };
    Some(SfqParams {
        quantum: *quantum,
        perturb: *perturb as i32,
        limit: *limit,
        divisor: *divisor,
        flows: *flows,
        depth: *depth,
        headdrop: *headdrop != 0,
        red: (*max != 0).then_some(red),
    })
}

/// Bytes of sfq's parameters before what its early detection counts.
const SFQ_PARAMS: usize = 48;

/// sfq's counters are part of its options.
fn read_stats(options: &[u8]) -> Option<SfqStats> {
    // Without early detection there is nothing to count.
    if numbers(options).get(9).is_none_or(|max| *max == 0) {
        return None;
    }
    match *numbers(options.get(SFQ_PARAMS..)?).as_slice() {
        [prob_drop, forced_drop, prob_mark, forced_mark, prob_mark_head, forced_mark_head] => {
            Some(SfqStats {
                prob_drop,
                prob_mark,
                prob_mark_head,
                forced_drop,
                forced_mark,
                forced_mark_head,
            })
        }
        _ => None,
    }
}
