//! Policers: buckets of time, as Linux's `police` fills and empties them (reference 11.7).
//!
//! Each bucket holds time at its rate. What a packet costs is taken from all of them together or, where one
//! is too empty, from none.
//!
//! Linux notes what is in a bucket and when that was so. Both together are one number here: the time at which
//! the bucket would have been empty, had it been filled at its rate up to what it holds now. Now less that
//! time is what is in it, up to its size; the arithmetic is the same to the nanosecond, because nothing is
//! ever taken that is not there.
//!
//! What each packet changes is kept apart from what it only reads: the number of a profile that all policers
//! with the same parameters share. With tens of thousands of policers, the memory that packets touch is their
//! cost.

use crate::cost::{Cost, Price};
use crate::query::ActionInput;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use tidegate_packet::{Rate, Time};
use tidegate_policy::{Police, RateSpec};

/// All policers of a machine, by number.
#[derive(Debug, Default)]
pub struct Policers {
    /// When each bucket was empty, ns: see above.
    empty: Vec<i64>,
    /// The profile of each policer.
    reported_profiles: Vec<u32>,
    free: Vec<u32>,
    /// The buckets of their peak rates, as far as some have one.
    peaks: Vec<Peak>,
    profiles: Vec<Profile>,
    free_profiles: Vec<u32>,
    /// Index and number of users of each profile.
    known: BTreeMap<Profile, (u32, u32)>,
}

/// The bucket of a peak rate.
#[derive(Clone, Copy, Debug, Default)]
struct Peak {
    /// What is in it, ns.
    tokens: i64,
    /// When that was so.
    since: Time,
}

/// The parameters of a policer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Profile {
    /// The longest packet whose cost is its bytes times the rate and nothing else; 0: there is none. Most
    /// packets are decided by this one comparison.
    plain_up_to: u32,
    /// The longest packet that may pass.
    mtu: u32,
    rate: Price,
    /// How much the bucket holds, ns.
    burst: i64,
    meters: Meters,
}

/// What a policer meters by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Meters {
    /// Bytes.
    Bytes,
    /// The length of single packets alone.
    Length,
    /// Bytes, and a peak rate with a bucket of so many ns beside the first.
    Peak { price: Price, burst: i64 },
    /// Packets: so many ns each.
    Packets { each: i64 },
}

impl Profile {
    fn new(params: &Police) -> Profile {
        let price = |spec: RateSpec| Cost::new(spec).price();
        let (rate, mtu) = (params.rate.map(price).unwrap_or_default(), params.mtu);
        let burst = i64::try_from(params.burst.duration().0).unwrap_or(i64::MAX);
        if params.packets > 0 {
            let by_packets = RateSpec { rate: Rate(params.packets), ..RateSpec::default() };
            let each = Cost::new(by_packets).ns(1) as i64;
            let burst = (params.packets_burst << 6) as i64;
            return Profile { plain_up_to: 0, mtu, rate, burst, meters: Meters::Packets { each } };
        }
        let meters = match (params.rate, params.peak.map(price)) {
            (None, _) => Meters::Length,
            (Some(_), Some(price)) => Meters::Peak { price, burst: price.ns(mtu) as i64 },
            (Some(_), None) => Meters::Bytes,
        };
        let plain = meters == Meters::Bytes && rate.is_plain();
        Profile { plain_up_to: if plain { mtu } else { 0 }, mtu, rate, burst, meters }
    }
}

impl Policers {
    /// Adds a policer with full buckets; returns its number.
    pub fn add(&mut self, params: &Police, now: Time) -> u32 {
        let profile = Profile::new(params);
        let empty = (now.0 as i64).wrapping_sub(profile.burst);
        let reported = self.share(profile);
        let policer = match self.free.pop() {
            Some(policer) => {
                (self.empty[policer as usize], self.reported_profiles[policer as usize]) = (empty, reported);
                policer
            }
            None => {
                self.empty.push(empty);
                self.reported_profiles.push(reported);
                self.empty.len() as u32 - 1
            }
        };
        if let Meters::Peak { burst, .. } = profile.meters {
            let at = policer as usize;
            self.peaks.resize(self.peaks.len().max(at + 1), Peak::default());
            self.peaks[at] = Peak { tokens: burst, since: now };
        }
        policer
    }

    /// It is gone, and its number may be another's.
    pub fn remove(&mut self, policer: u32) {
        self.free.push(policer);
        let place = self.reported_profiles[policer as usize];
        let profile = self.profiles[place as usize];
        if let Some((_, users)) = self.known.get_mut(&profile) {
            *users -= 1;
            if *users == 0 {
                self.known.remove(&profile);
                self.free_profiles.push(place);
            }
        }
    }

    /// The place of a profile, which may be there already.
    fn share(&mut self, profile: Profile) -> u32 {
        if let Some((place, users)) = self.known.get_mut(&profile) {
            *users += 1;
            return *place;
        }
        let place = match self.free_profiles.pop() {
            Some(place) => {
                self.profiles[place as usize] = profile;
                place
            }
            None => {
                self.profiles.push(profile);
                self.profiles.len() as u32 - 1
            }
        };
        self.known.insert(profile, (place, 1));
        place
    }

    /// May a packet pass now? If so, it is paid for.
    #[inline]
    pub fn conforms(&mut self, policer: u32, ActionInput { len, whole, now, .. }: ActionInput) -> bool {
        let empty = &mut self.empty[policer as usize];
        let profile = &self.profiles[self.reported_profiles[policer as usize] as usize];
        if whole > profile.plain_up_to {
            return whole <= profile.mtu && self.conforms_otherwise(policer, len, now);
        }
        let now = now.0 as i64;
        let left = now.wrapping_sub(*empty).min(profile.burst) - profile.rate.plain_ns(len) as i64;
        // Written in both cases: which one it is cannot be foreseen, so a jump would cost more.
        let conforms = left >= 0;
        *empty = if conforms { now - left } else { *empty };
        conforms
    }

    /// Whether a packet conforms, for policers that do not meter by plain bytes alone.
    fn conforms_otherwise(&mut self, policer: u32, len: u32, at: Time) -> bool {
        let empty = &mut self.empty[policer as usize];
        let profile = &self.profiles[self.reported_profiles[policer as usize] as usize];
        let now = at.0 as i64;
        let filled = now.wrapping_sub(*empty).min(profile.burst);
        let left = match profile.meters {
            Meters::Length => return true,
            Meters::Packets { each } => filled - each,
            Meters::Bytes | Meters::Peak { .. } => filled - profile.rate.ns(len) as i64,
        };
        if let Meters::Peak { price, burst } = profile.meters {
            let Peak { tokens, since } = &mut self.peaks[policer as usize];
            // As Linux has it, the peak's bucket is filled for no longer than the other one.
            let passed = now.wrapping_sub(since.0 as i64).min(profile.burst);
            let peak = (passed + *tokens).min(burst) - price.ns(len) as i64;
            if left | peak < 0 {
                return false;
            }
            (*tokens, *since) = (peak, at);
        } else if left < 0 {
            return false;
        }
        *empty = now - left;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_packet::LinuxVersion;
    use tidegate_policy::Ticks;

    fn told(mbit: u64) -> Police {
        let rate = Some(RateSpec { rate: Rate::bits(mbit * 1_000_000), ..RateSpec::default() });
        Police {
            rate,
            burst: Ticks((2000 * Ticks::PER_SECOND / (mbit * 125_000)) as u32),
            mtu: 1500,
            ..Police::default()
        }
    }

    fn packet(len: u32, now: u64) -> ActionInput {
        ActionInput { len, whole: len, now: Time(now), passed_over: false, linux: LinuxVersion::default() }
    }

    #[test]
    fn equal_parameters_share_a_profile() {
        let mut all = Policers::default();
        let numbers: Vec<u32> = [1, 2, 1, 1].map(|mbit| all.add(&told(mbit), Time(0))).into();
        assert_eq!((all.empty.len(), all.profiles.len()), (4, 2));
        // What one lets pass is not taken from another.
        let pass = |all: &mut Policers, which: usize| all.conforms(numbers[which], packet(1500, 0));
        let seen = [0, 0, 2, 2, 3].map(|which| pass(&mut all, which));
        assert_eq!(seen, [true, false, true, false, true]);
    }

    /// Packets keep the distance of the peak rate even while the bucket of the rate could pay for them, and
    /// an idle time fills the peak's bucket with one packet's worth, no more.
    #[test]
    fn a_peak_rate_keeps_packets_apart() {
        let mut all = Policers::default();
        let burst = Ticks((6000 * Ticks::PER_SECOND / 125_000) as u32);
        let policer = all.add(&Police { peak: told(3).rate, burst, ..told(1) }, Time(0));
        // 1,500 bytes at 3 Mbit/s are 4 ms.
        let at = [0, 3_999_000, 4_000_000, 1_000_000_000, 1_003_999_000, 1_004_000_000];
        let seen = at.map(|now| all.conforms(policer, packet(1500, now)));
        assert_eq!(seen, [true, false, true, true, false, true]);
    }

    /// The peak's bucket is filled for no longer than the other one holds: with 24 ms for a packet and 12 ms
    /// of burst no second packet ever passes (so recorded of Linux 6.1, `burst 1500 peakrate 500kbit`).
    #[test]
    fn a_peak_bucket_fills_for_no_longer_than_the_other() {
        let mut all = Policers::default();
        let burst = Ticks((1500 * Ticks::PER_SECOND / 125_000) as u32);
        let peak = Some(RateSpec { rate: Rate::bits(500_000), ..RateSpec::default() });
        let policer = all.add(&Police { peak, burst, ..told(1) }, Time(0));
        let at = [0, 23_000_000, 24_000_000, 1_000_000_000];
        assert_eq!(at.map(|now| all.conforms(policer, packet(1500, now))), [true, false, false, false]);
    }

    #[test]
    fn who_is_gone_leaves_its_place_to_the_next() {
        let mut all = Policers::default();
        let peak = Police { peak: told(3).rate, ..told(1) };
        let (first, second) = (all.add(&peak, Time(0)), all.add(&told(1), Time(0)));
        assert!(all.conforms(first, packet(1500, 0)) && all.conforms(second, packet(1500, 0)));
        all.remove(first);
        // Full again, in the same place and with its profile in that of the one that went.
        assert_eq!((all.add(&peak, Time(0)), all.empty.len(), all.profiles.len()), (first, 2, 2));
        assert!(all.conforms(first, packet(1500, 0)));
    }

    /// Linux's arithmetic, with what is in the bucket and when that was so.
    #[test]
    fn one_number_replaces_two_of_linux() {
        let params = told(1);
        let profile = Profile::new(&params);
        let mut all = Policers::default();
        let policer = all.add(&params, Time(5));
        let (mut tokens, mut since, mut now, mut draw) = (profile.burst, 5_i64, 5_i64, 1_u64);
        for _ in 0..10_000 {
            draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            now += (draw >> 33) as i64 % 20_000_000;
            let len = 60 + (draw >> 20) as u32 % 1400;
            let left =
                ((now - since).min(profile.burst) + tokens).min(profile.burst) - profile.rate.ns(len) as i64;
            if left >= 0 {
                (since, tokens) = (now, left);
            }
            assert_eq!(all.conforms(policer, packet(len, now as u64)), left >= 0, "at {now} ns");
        }
    }
}
