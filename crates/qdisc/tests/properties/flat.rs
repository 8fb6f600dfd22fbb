//! Trees of one level: a root with classes 1 to n.

use super::world::{ROOT, World, bucket, rate};
use tidegate_packet::{Handle, Rate};
use tidegate_policy::*;

/// A kind that has classes made by hand (or bands), with a tree of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flat {
    Prio,
    Drr,
    Qfq,
    Hfsc,
    Htb,
    Sfq,
}

impl Flat {
    pub(crate) const ALL: [Flat; 6] = [Flat::Prio, Flat::Drr, Flat::Qfq, Flat::Hfsc, Flat::Htb, Flat::Sfq];

    /// Makes it, with `classes` classes of different weights.
    pub(crate) fn build(self, world: &mut World, classes: u16) {
        match self {
            Flat::Prio => world.root("prio", Some(QdiscParams::Prio(PrioParams::default()))),
            Flat::Drr => world.root("drr", None),
            Flat::Qfq => world.root("qfq", None),
            Flat::Hfsc => world.root("hfsc", Some(QdiscParams::Hfsc(HfscParams::default()))),
            Flat::Htb => world.root("htb", Some(QdiscParams::Htb(HtbParams::default()))),
            Flat::Sfq => {
                world.root("sfq", Some(QdiscParams::Sfq(SfqParams { divisor: 16, ..SfqParams::default() })))
            }
        }
        for n in 1..=classes {
            if let Some(params) = self.class(n) {
                let parent = if self == Flat::Htb { Handle::ROOT } else { ROOT };
                world.class(Verb::Add, parent, ROOT.class(n), params);
            }
        }
    }

    fn class(self, n: u16) -> Option<ClassParams> {
        let weight = u32::from(n);
        Some(match self {
            Flat::Drr => ClassParams::Drr(DrrClassParams { quantum: Some(600 * weight) }),
            Flat::Qfq => ClassParams::Qfq(QfqClassParams { weight: Some(weight), maxpkt: None }),
            Flat::Hfsc => share(weight * 125_000),
            // So fast that it never holds anything back.
            Flat::Htb => htb(1_000_000_000_000, 1_000_000_000_000, 1 << 20, 1500 * weight),
            Flat::Prio | Flat::Sfq => return None,
        })
    }
}

/// A class of hfsc that only shares, bytes per second.
pub(crate) fn share(m2: u32) -> ClassParams {
    let ls = Some(ServiceCurve { m1: 0, d_us: 0, m2 });
    ClassParams::Hfsc(HfscClassParams { ls, ..HfscClassParams::default() })
}

/// A class of htb: rates in bit/s, one bucket size in bytes for both.
pub(crate) fn htb(bits: u64, ceil: u64, burst: u64, quantum: u32) -> ClassParams {
    ClassParams::Htb(HtbClassParams {
        rate: rate(bits),
        ceil: rate(ceil),
        buffer: bucket(bits, burst),
        cbuffer: bucket(ceil, burst),
        quantum,
        prio: 0,
    })
}

pub(crate) fn tbf(bits: u64, burst: u32, limit: u32) -> TbfParams {
    TbfParams { rate: rate(bits), limit, burst, ..TbfParams::default() }
}

pub(crate) fn bytes_per_second(bits: u64) -> u32 {
    Rate::bits(bits).0 as u32
}
