//! A policer: buckets of time, as Linux's `police` fills and empties them (reference 11.7).
//!
//! Each bucket holds time at its rate. What a packet costs is taken from all of them together or, where one is too empty, from none.

use crate::cost::{Cost, Price};
use tidegate_packet::{Rate, Time};
use tidegate_policy::{Police, RateSpec};

/// A policer at work.
#[derive(Clone, Copy, Debug)]
pub struct Policer {
    /// The longest packet that may pass.
    mtu: u32,
    metered: bool,
    has_rate: bool,
    has_peak: bool,
    has_packets: bool,
    rate: Price,
    peak: Price,
    per_packet: i64,
    /// How much each bucket holds, ns.
    burst: i64,
    peak_burst: i64,
    packet_burst: i64,
    /// What is in them.
    tokens: i64,
    peak_tokens: i64,
    packet_tokens: i64,
    /// When that was so.
    since: Time,
}

impl Policer {
    /// With full buckets.
    pub fn new(params: &Police, now: Time) -> Policer {
        let price = |spec: Option<RateSpec>| spec.map(|spec| Cost::new(spec).price());
        let by_packets = RateSpec { rate: Rate(params.packets), ..RateSpec::default() };
        let peak = price(params.peak);
        let burst = i64::try_from(params.burst.span().0).unwrap_or(i64::MAX);
        let peak_burst = peak.map_or(0, |peak| peak.ns(params.mtu) as i64);
        let packet_burst = (params.packets_burst << 6) as i64;
        Policer {
            mtu: params.mtu,
            metered: params.rate.is_some() || params.packets > 0,
            has_rate: params.rate.is_some(),
            has_peak: peak.is_some(),
            has_packets: params.packets > 0,
            rate: price(params.rate).unwrap_or_default(),
            peak: peak.unwrap_or_default(),
            per_packet: if params.packets > 0 { Cost::new(by_packets).ns(1) as i64 } else { 0 },
            burst,
            peak_burst,
            packet_burst,
            tokens: burst,
            peak_tokens: peak_burst,
            packet_tokens: packet_burst,
            since: now,
        }
    }

    /// May a packet of `len` bytes pass now? If so, it is paid for.
    #[inline]
    pub fn conforms(&mut self, len: u32, now: Time) -> bool {
        if len > self.mtu {
            return false;
        }
        if !self.metered {
            return true;
        }
        let passed = i64::try_from(now.since(self.since).0).unwrap_or(i64::MAX);
        let (mut tokens, mut peak, mut packets) = (0, 0, 0);
        if self.has_packets {
            packets = (passed.min(self.packet_burst) + self.packet_tokens).min(self.packet_burst) - self.per_packet;
        } else {
            let passed = passed.min(self.burst);
            if self.has_peak {
                peak = (passed + self.peak_tokens).min(self.peak_burst) - self.peak.ns(len) as i64;
            }
            tokens = (passed + self.tokens).min(self.burst) - self.rate.ns(len) as i64;
        }
        if tokens | peak | packets < 0 {
            return false;
        }
        self.since = now;
        (self.tokens, self.peak_tokens, self.packet_tokens) = (tokens, peak, packets);
        true
    }

    /// Is it told a rate, of bytes or of packets?
    pub fn is_metered(&self) -> bool {
        self.has_rate || self.has_packets
    }
}
