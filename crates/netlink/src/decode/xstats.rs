//! What only one kind counts.

use super::params;
use super::{Message, numbers};
use tidegate_os::attribute::{Found, read};
use tidegate_packet::Rate;
use tidegate_policy::Kind;
use tidegate_policy::dump::{
    CakeFlowStats, CakeStats, CakeTinStats, CodelStats, DualPi2Stats, FqCodelStats, FqPieStats, FqStats, HhfStats,
    PieStats, RedStats, SfbStats, SfqStats, Xstats,
};

/// Those of a qdisc.
pub(super) fn qdisc(kind: Kind, message: &Message<'_>) -> Xstats {
    // What htb and sfq count of themselves stands among what they were told.
    match kind {
        Kind::Htb => return Xstats::Htb { direct_packets: params::direct_packets(message.options()) },
        Kind::Sfq => return sfq(message.options()).map_or(Xstats::None, Xstats::Sfq),
        _ => {}
    }
    let octets = message.own_octets();
    let words = numbers(octets);
    let known = match kind {
        Kind::Codel => codel(&words).map(Xstats::Codel),
        Kind::FqCodel => fq_codel(&words).map(Xstats::FqCodel),
        Kind::Red => red(&words, false).map(Xstats::Red),
        Kind::Choke => red(&words, true).map(Xstats::Red),
        Kind::Sfb => sfb(&words).map(Xstats::Sfb),
        Kind::Pie => pie(&words).map(Xstats::Pie),
        Kind::FqPie => fq_pie(&words).map(Xstats::FqPie),
        Kind::DualPi2 => dualpi2(&words).map(Xstats::DualPi2),
        Kind::Fq => fq(octets).map(Xstats::Fq),
        Kind::Hhf => hhf(&words).map(Xstats::Hhf),
        Kind::Cake => Some(Xstats::Cake(Box::new(cake(&read(octets))))),
        _ => None,
    };
    known.unwrap_or_default()
}

/// Those of a class; `level`: htb tells it among the parameters.
pub(super) fn class(kind: Kind, level: u32, message: &Message<'_>) -> Xstats {
    let octets = message.own_octets();
    let words = numbers(octets);
    match (kind, words.as_slice()) {
        (Kind::Htb, [lends, borrows, giants, tokens, ctokens]) => Xstats::HtbClass {
            lends: *lends,
            borrows: *borrows,
            giants: *giants,
            tokens: *tokens as i32,
            ctokens: *ctokens as i32,
            level,
        },
        (Kind::Drr, [deficit, ..]) => Xstats::DrrClass { deficit: *deficit },
        (Kind::Sfq, [allot, ..]) => Xstats::SfqClass { allot: *allot as i32 },
        (Kind::Hfsc, [work, work_high, rtwork, rtwork_high, period, level]) => Xstats::HfscClass {
            work: wide(*work, *work_high),
            rtwork: wide(*rtwork, *rtwork_high),
            period: *period,
            level: *level,
        },
        (Kind::FqCodel, [1, deficit, ldelay, count, lastcount, dropping, drop_next, ..]) => Xstats::FqCodelClass {
            deficit: *deficit as i32,
            codel: CodelStats {
                count: *count,
                lastcount: *lastcount,
                ldelay_us: *ldelay,
                drop_next_us: *drop_next as i32,
                dropping: *dropping != 0,
                ..CodelStats::default()
            },
        },
        (Kind::Cake, _) if !octets.is_empty() => Xstats::CakeFlow(cake_flow(&read(octets))),
        _ => Xstats::None,
    }
}

/// A number of 64 bits from the two halves that stand one after the other.
fn wide(first: u32, second: u32) -> u64 {
    let mut octets = [0; 8];
    octets[..4].copy_from_slice(&first.to_ne_bytes());
    octets[4..].copy_from_slice(&second.to_ne_bytes());
    u64::from_ne_bytes(octets)
}

/// Octets of sfq's parameters before what its early detection counts.
const SFQ_PARAMS: usize = 48;

fn sfq(options: &[u8]) -> Option<SfqStats> {
    // Without early detection there is nothing to count.
    if numbers(options).get(9).is_none_or(|max| *max == 0) {
        return None;
    }
    match *numbers(options.get(SFQ_PARAMS..)?).as_slice() {
        [prob_drop, forced_drop, prob_mark, forced_mark, prob_mark_head, forced_mark_head] => {
            Some(SfqStats { prob_drop, prob_mark, prob_mark_head, forced_drop, forced_mark, forced_mark_head })
        }
        _ => None,
    }
}

fn codel(words: &[u32]) -> Option<CodelStats> {
    let [maxpacket, count, lastcount, ldelay_us, drop_next, drop_overlimit, ecn_mark, dropping, ce_mark] = *words
    else {
        return None;
    };
    Some(CodelStats {
        maxpacket,
        count,
        lastcount,
        ldelay_us,
        drop_next_us: drop_next as i32,
        dropping: dropping != 0,
        drop_overlimit,
        ecn_mark,
        ce_mark,
    })
}

fn fq_codel(words: &[u32]) -> Option<FqCodelStats> {
    let [
        0,
        maxpacket,
        drop_overlimit,
        ecn_mark,
        new_flow_count,
        new_flows_len,
        old_flows_len,
        ce_mark,
        memory_used,
        drop_overmemory,
    ] = *words
    else {
        return None;
    };
    Some(FqCodelStats {
        maxpacket,
        drop_overlimit,
        ecn_mark,
        new_flow_count,
        new_flows_len,
        old_flows_len,
        ce_mark,
        memory_used,
        drop_overmemory,
    })
}

fn red(words: &[u32], choke: bool) -> Option<RedStats> {
    let [early, pdrop, other, marked, ref more @ ..] = *words else { return None };
    let matched = if choke { more.first().copied() } else { None };
    Some(RedStats { early, pdrop, other, marked, matched })
}

fn sfb(words: &[u32]) -> Option<SfbStats> {
    let [earlydrop, penaltydrop, bucketdrop, queuedrop, childdrop, marked, maxqlen, maxprob, avgprob] = *words else {
        return None;
    };
    Some(SfbStats { earlydrop, penaltydrop, bucketdrop, queuedrop, childdrop, marked, maxqlen, maxprob, avgprob })
}

fn pie(words: &[u32]) -> Option<PieStats> {
    let [low, high, delay_us, avg_dq_rate, estimating, packets_in, dropped, overlimit, maxq, ecn_mark] = *words else {
        return None;
    };
    Some(PieStats {
        prob: wide(low, high),
        delay_us,
        avg_dq_rate,
        dq_rate_estimating: estimating != 0,
        packets_in,
        overlimit,
        dropped,
        maxq,
        ecn_mark,
    })
}

fn fq_pie(words: &[u32]) -> Option<FqPieStats> {
    let [
        packets_in,
        dropped,
        overlimit,
        overmemory,
        ecn_mark,
        new_flow_count,
        new_flows_len,
        old_flows_len,
        memory_used,
    ] = *words
    else {
        return None;
    };
    Some(FqPieStats {
        packets_in,
        overlimit,
        overmemory,
        dropped,
        ecn_mark,
        new_flow_count,
        new_flows_len,
        old_flows_len,
        memory_used,
    })
}

fn dualpi2(words: &[u32]) -> Option<DualPi2Stats> {
    let [
        prob,
        delay_c_us,
        delay_l_us,
        packets_in_c,
        packets_in_l,
        maxq,
        ecn_mark,
        step_marks,
        credit,
        memory_used,
        max_memory_used,
        memory_limit,
    ] = *words
    else {
        return None;
    };
    Some(DualPi2Stats {
        prob,
        delay_c_us,
        delay_l_us,
        packets_in_c,
        packets_in_l,
        maxq,
        ecn_mark,
        step_marks,
        credit: credit as i32,
        memory_used,
        max_memory_used,
        memory_limit,
    })
}

fn fq(octets: &[u8]) -> Option<FqStats> {
    let long = |at: usize| Some(u64::from_ne_bytes(octets.get(at * 8..at * 8 + 8)?.try_into().ok()?));
    let short = |at: usize| Some(u32::from_ne_bytes(octets.get(64 + at * 4..68 + at * 4)?.try_into().ok()?));
    Some(FqStats {
        flows: short(0)?,
        inactive: short(1)?,
        throttled: short(2)?,
        next_packet_ns: long(7)? as i64,
        gc: long(0)?,
        highprio: long(1)?,
        throttled_times: long(3)?,
        latency_ns: short(3)?.into(),
        ce_mark: long(10).unwrap_or(0),
        flows_plimit: long(4)?,
        too_long: long(5)?,
        horizon_drops: long(11).unwrap_or(0),
        horizon_caps: long(12).unwrap_or(0),
    })
}

fn hhf(words: &[u32]) -> Option<HhfStats> {
    let [drop_overlimit, hh_overlimit, tot_hh, cur_hh] = *words else { return None };
    Some(HhfStats { drop_overlimit, hh_overlimit, tot_hh, cur_hh })
}

fn cake(from: &Found<'_>) -> CakeStats {
    let of = |number: u16| from.u32(number).unwrap_or(0);
    let short = |number: u16| of(number) as u16;
    let tins = from.nest(10);
    CakeStats {
        memory_used: of(4),
        memory_limit: of(3),
        capacity: Rate(from.u64(2).unwrap_or(0)),
        network_sizes: (short(6), short(7)),
        adjusted_sizes: (short(8), short(9)),
        header_offset: short(5),
        tins: tins.all().map(|(_, octets)| tin(&read(octets))).collect(),
    }
}

fn tin(from: &Found<'_>) -> CakeTinStats {
    let of = |number: u16| from.u32(number).unwrap_or(0);
    CakeTinStats {
        threshold: Rate(from.u64(12).unwrap_or(0)),
        bytes: from.u64(3).unwrap_or(0),
        backlog: of(11),
        target_us: of(13),
        interval_us: of(14),
        peak_delay_us: of(18),
        average_delay_us: of(19),
        base_delay_us: of(20),
        packets: of(2),
        way_hits: of(15),
        way_misses: of(16),
        way_collisions: of(17),
        drops: of(4),
        marks: of(8),
        ack_drops: of(6),
        sparse_flows: of(21),
        bulk_flows: of(22),
        unresponsive_flows: of(23),
        longest: of(24) as u16,
        quantum: of(25) as u16,
    }
}

fn cake_flow(from: &Found<'_>) -> CakeFlowStats {
    let of = |number: u16| from.u32(number).unwrap_or(0);
    CakeFlowStats {
        deficit: of(11) as i32,
        dropping: of(13) != 0,
        count: of(12),
        drop_next_us: i64::from(of(14) as i32),
        blue_probability: of(15),
        blue_timer_us: of(16),
    }
}
