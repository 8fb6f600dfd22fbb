//! Which tin a packet takes, and what each tin may send.
//!
//! Inside, best effort comes first and the others after it in the order in which they go before one another;
//! listings, marks and priorities count from bulk upwards.

use crate::algo::cobalt;
use tidegate_packet::header::ethertype;
use tidegate_packet::{Handle, Meta, Rate};
use tidegate_policy::{CakeParams, CakeTins};

/// Tins at most.
pub(super) const MOST: usize = 8;

/// What the DSCP of network control packets is; ARP counts as such.
const NETWORK_CONTROL: u8 = 56;

/// The tin of each DSCP: those listed, and one for all others.
const fn map(lists: &[(u8, &[u8])], others: u8) -> [u8; 64] {
    let mut all = [others; 64];
    let mut at = 0;
    while at < lists.len() {
        let (tin, codes) = lists[at];
        let mut code = 0;
        while code < codes.len() {
            all[codes[code] as usize] = tin;
            code += 1;
        }
        at += 1;
    }
    all
}

static THREE: [u8; 64] = map(&[(1, &[1, 8]), (2, &[4, 44, 46, 48, 56])], 0);
static FOUR: [u8; 64] = map(
    &[(1, &[1, 8]), (2, &[4, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38]), (3, &[32, 40, 44, 46, 48, 56])],
    0,
);
static EIGHT: [u8; 64] = map(
    &[
        (0, &[1]),
        (1, &[2, 8, 10, 12, 14]),
        (3, &[24, 26, 28, 30, 34, 36, 38]),
        (4, &[4, 18, 20, 22]),
        (5, &[16]),
        (6, &[32, 40, 44, 46]),
        (7, &[48, 56]),
    ],
    2,
);

/// The tin of a DSCP.
pub(super) fn of_dscp(tins: CakeTins, dscp: u8) -> usize {
    let dscp = usize::from(dscp & 63);
    match tins {
        CakeTins::Diffserv3 => THREE[dscp].into(),
        CakeTins::Diffserv4 => FOUR[dscp].into(),
        CakeTins::Diffserv8 => EIGHT[dscp].into(),
        CakeTins::BestEffort => 0,
        CakeTins::Precedence => dscp >> 3,
    }
}

/// The tin that is at this place of a listing.
pub(super) fn at_place(tins: CakeTins, place: usize) -> usize {
    match (tins, place) {
        (CakeTins::Diffserv3 | CakeTins::Diffserv4, 0) => 1,
        (CakeTins::Diffserv3 | CakeTins::Diffserv4, 1) => 0,
        _ => place,
    }
}

/// The DSCP of a packet. ARP has that of network control, whatever is not IP else that of best effort.
pub(super) fn dscp(meta: &Meta) -> u8 {
    match meta.ethertype {
        // A tag beside the packet hides nothing; what is no IP has no DS field.
        ethertype::IPV4 | ethertype::IPV6 | ethertype::VLAN | ethertype::QINQ => meta.dsfield >> 2,
        ethertype::ARP => NETWORK_CONTROL,
        _ => 0,
    }
}

/// What puts a packet into its tin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CakeReason {
    /// There is one for all.
    Only,
    /// Bits of the firewall mark.
    Mark,
    /// The priority, which names the qdisc and a number.
    Priority,
    /// By this DSCP.
    Dscp(u8),
}

/// The tin that the firewall mark or the priority names, else that of the DSCP; and why.
pub(super) fn choose(
    tins: CakeTins,
    fwmark: u32,
    qdisc: Handle,
    meta: &Meta,
    dscp: u8,
) -> (usize, CakeReason) {
    if tins == CakeTins::BestEffort {
        return (0, CakeReason::Only);
    }
    let by_number = |number: u32| {
        (1..=tins.count() as u32).contains(&number).then(|| at_place(tins, number as usize - 1))
    };
    let mark = (meta.mark.0 & fwmark).checked_shr(fwmark.trailing_zeros()).unwrap_or(0);
    let priority = meta.priority_class();
    let by_mark = by_number(mark).map(|tin| (tin, CakeReason::Mark));
    let by_priority = || by_number(u32::from(priority.minor())).filter(|_| priority.qdisc() == qdisc);
    by_mark
        .or_else(|| by_priority().map(|tin| (tin, CakeReason::Priority)))
        .unwrap_or_else(|| (of_dscp(tins, dscp), CakeReason::Dscp(dscp)))
}

/// The tin that a packet is put into, and why: for explanations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CakeTin {
    /// Its place in a listing.
    pub place: usize,
    /// Its threshold: above it, tins that are below theirs go first; none: nothing is shaped.
    pub rate: Option<Rate>,
    /// Why.
    pub because: CakeReason,
    /// How long packets may wait in it, ns: the target, or a frame and a half at its rate.
    pub target_ns: u64,
}

impl CakeTin {
    /// Where a cake with these parameters in force, of this handle, on a device with frames of up to `frame`
    /// bytes, puts a packet.
    pub fn of(params: &CakeParams, qdisc: Handle, frame: u32, meta: &Meta) -> CakeTin {
        let tins = params.tins.unwrap_or_default();
        let (tin, because) = choose(tins, params.fwmark.unwrap_or(0), qdisc, meta, dscp(meta));
        let rate = params.bandwidth.filter(|rate| rate.0 > 0);
        let share = |rate: Rate| shares(tins, rate.0).nth(tin).map(|(rate, _)| Rate(rate));
        // Places and tins change into each other by the same swap.
        let rate = rate.and_then(share);
        let rtt_us = params.rtt_us.unwrap_or(DEFAULT_RTT_US);
        // tc's target is a twentieth of the round trip.
        let target_us = params.target_us.unwrap_or((rtt_us / 20).max(1));
        let target_ns = Terms::new(rate.map_or(0, |rate| rate.0), frame, target_us, rtt_us).law.target;
        CakeTin { place: at_place(tins, tin), rate, because, target_ns }
    }
}

/// The rate of each tin as shifts and multiples of the whole, and its quantum where nothing is shaped.
pub(super) fn shares(tins: CakeTins, rate: u64) -> impl Iterator<Item = (u64, i32)> {
    let of = move |tin: usize| match (tins, tin) {
        (CakeTins::Diffserv3, 1) | (CakeTins::Diffserv4, 1) => (rate >> 4, 1024 >> 4),
        (CakeTins::Diffserv3, 2) | (CakeTins::Diffserv4, 3) => (rate >> 2, 1024 >> 2),
        (CakeTins::Diffserv4, 2) => (rate >> 1, 1024 >> 1),
        (CakeTins::Diffserv3 | CakeTins::Diffserv4, _) => (rate, 1024),
        (CakeTins::BestEffort, _) => (rate, 65535),
        (CakeTins::Diffserv8 | CakeTins::Precedence, tin) => {
            (0..tin).fold((rate, 256), |(rate, quantum), _| ((rate.wrapping_mul(7)) >> 3, (quantum * 7) >> 3))
        }
    };
    (0..tins.count()).map(of)
}

/// From bytes to nanoseconds: a number of 34 bits and a shift.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pace {
    mult: u64,
    shift: u32,
}

impl Pace {
    /// Below this rate, in bytes per second, time does not get longer.
    const SLOWEST: u64 = 64;
    const BITS: u32 = 34;

    /// Of a rate; of none everything is free.
    pub(super) fn new(rate: u64) -> Pace {
        if rate == 0 {
            return Pace::default();
        }
        let mut pace =
            Pace { mult: (1_000_000_000 << Pace::BITS) / rate.max(Pace::SLOWEST), shift: Pace::BITS };
        while pace.mult >> Pace::BITS != 0 {
            pace.mult >>= 1;
            pace.shift -= 1;
        }
        pace
    }

    /// Is there a rate?
    #[inline]
    pub(super) fn is_some(self) -> bool {
        self.mult != 0
    }

    /// What `bytes` take.
    #[inline]
    pub(super) fn ns(self, bytes: u32) -> u64 {
        u64::from(bytes).wrapping_mul(self.mult) >> self.shift
    }
}

/// The round trip of one that names none.
const DEFAULT_RTT_US: u32 = 100_000;

/// What a rate makes of a tin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Terms {
    pub(super) rate: Rate,
    pub(super) pace: Pace,
    /// Bytes a flow sends in its turn.
    pub(super) quantum: u32,
    pub(super) law: cobalt::Params,
}

impl Terms {
    /// At `rate` bytes per second on a link with frames of up to `frame` bytes; times in microseconds. A slow
    /// link gets more time: at least one and a half frames must be able to wait.
    pub(super) fn new(rate: u64, frame: u32, target_us: u32, rtt_us: u32) -> Terms {
        let (target, rtt) = (u64::from(target_us) * 1000, u64::from(rtt_us) * 1000);
        let pace = Pace::new(rate);
        let frame_time = pace.ns(frame);
        let waiting = (frame_time * 3 / 2).max(target);
        let law = cobalt::Params {
            target: waiting,
            interval: (rtt + waiting - target).max(waiting * 2),
            frame_time,
            ..cobalt::Params::default()
        };
        let quantum = if rate == 0 { 1514 } else { (rate >> 12).clamp(300, 1514) as u32 };
        Terms { rate: Rate(rate), pace, quantum, law }
    }
}
