//! A policer: buckets of time, as Linux's `police` fills and empties them (reference 11.7).
//!
//! Each bucket holds time at its rate. What a packet costs is taken from all of them together or, where one is too empty, from none.

use crate::cost::{Cost, Price};
use alloc::boxed::Box;
use tidegate_packet::{Rate, Time};
use tidegate_policy::{Police, RateSpec};

/// A policer at work. What all but a few need lies in one line of the cache: with many policers that line is what a packet costs.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub struct Policer {
    /// The longest packet that may pass.
    mtu: u32,
    metered: bool,
    rate: Price,
    /// How much the bucket holds, ns.
    burst: i64,
    /// What is in it.
    tokens: i64,
    /// When that was so.
    since: Time,
    more: Option<Box<More>>,
}

/// A second bucket.
#[derive(Clone, Copy, Debug)]
enum More {
    /// For the peak rate, beside the first.
    Peak { price: Price, burst: i64, tokens: i64 },
    /// In packets, instead of the first.
    Packets { each: i64, burst: i64, tokens: i64 },
}

impl Policer {
    /// With full buckets.
    pub fn new(params: &Police, now: Time) -> Policer {
        let price = |spec: RateSpec| Cost::new(spec).price();
        let burst = i64::try_from(params.burst.span().0).unwrap_or(i64::MAX);
        let more = if params.packets > 0 {
            let by_packets = RateSpec { rate: Rate(params.packets), ..RateSpec::default() };
            let burst = (params.packets_burst << 6) as i64;
            Some(More::Packets { each: Cost::new(by_packets).ns(1) as i64, burst, tokens: burst })
        } else {
            params.peak.map(price).map(|price| {
                let burst = price.ns(params.mtu) as i64;
                More::Peak { price, burst, tokens: burst }
            })
        };
        Policer {
            mtu: params.mtu,
            metered: params.rate.is_some() || params.packets > 0,
            rate: params.rate.map(price).unwrap_or_default(),
            burst,
            tokens: burst,
            since: now,
            more: more.map(Box::new),
        }
    }

    /// May a packet of `len` bytes pass now? If so, it is paid for.
    #[inline]
    pub fn conforms(&mut self, len: u32, now: Time) -> bool {
        if len > self.mtu || !self.metered || self.more.is_some() {
            return len <= self.mtu && (!self.metered || self.conforms_twice(len, now));
        }
        let left = (self.passed(now).min(self.burst) + self.tokens).min(self.burst) - self.rate.ns(len) as i64;
        // Written in both cases: which one it is cannot be foreseen, so a jump would cost more.
        let conforms = left >= 0;
        (self.since, self.tokens) = if conforms { (now, left) } else { (self.since, self.tokens) };
        conforms
    }

    /// The same with a second bucket.
    fn conforms_twice(&mut self, len: u32, now: Time) -> bool {
        let passed = self.passed(now);
        match self.more.as_deref_mut() {
            None => false,
            Some(More::Packets { each, burst, tokens }) => {
                let left = (passed.min(*burst) + *tokens).min(*burst) - *each;
                if left < 0 {
                    return false;
                }
                (self.since, *tokens) = (now, left);
                true
            }
            Some(More::Peak { price, burst, tokens }) => {
                // As Linux has it, the peak's bucket is filled for no longer than the other one.
                let passed = passed.min(self.burst);
                let peak = (passed + *tokens).min(*burst) - price.ns(len) as i64;
                let left = (passed + self.tokens).min(self.burst) - self.rate.ns(len) as i64;
                if left | peak < 0 {
                    return false;
                }
                (self.since, self.tokens, *tokens) = (now, left, peak);
                true
            }
        }
    }

    fn passed(&self, now: Time) -> i64 {
        i64::try_from(now.since(self.since).0).unwrap_or(i64::MAX)
    }

    /// Is it told a rate, of bytes or of packets?
    pub fn is_metered(&self) -> bool {
        self.metered
    }
}
