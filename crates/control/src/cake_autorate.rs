//! The algorithm of cake-autorate, written from its documentation: the README's theory of operation and the
//! explanations of the settings in its file of defaults (github.com/lynxthecat/cake-autorate, version 3.3).
//! Its program was not read. Settings have the program's names.
//!
//! Each reply gives the delay of both directions (half the round trip where the pinger measures that). Its
//! difference from the reflector's baseline, an average that falls at once and rises slowly, is compared with
//! a threshold; several late samples among the last few are bufferbloat. Then the rate falls, by more the
//! later they are; with a high load and without bufferbloat it rises, by less the later they are; with a low
//! load it goes back to the base rate step by step. After a fall nothing changes for a while.
//!
//! Left out: sleep (only with no load for a minute), stalls of the connection as a state of their own,
//! comparison and regular exchange of reflectors. Where the documentation gives no figure: the threshold
//! grows by what the largest packet takes at the rate in force.

use crate::controller::RateLimits;
use crate::controller::{
    ControlEvent, ControlReason, Controlled, PerDirection, ProbeReply, RateController, RateDecision,
    RateDirection, ShaperCounters,
};
use crate::settings::{BadControlSetting, key_values, number};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use tidegate_packet::{Nanos, Time};

/// Bits of the largest packet, with its Ethernet header.
const LARGEST_BITS: f64 = 1514.0 * 8.0;
const MS: f64 = 1e6;
/// The most samples of a window that a setting may want.
const MAX_WINDOW: f64 = 1000.0;
/// The most reflectors whose baselines are kept.
const MAX_REFLECTORS: usize = 256;

/// Settings of cake-autorate that the algorithm uses, under the names of its configuration; rates in kbit/s.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the names are those of cake-autorate's configuration, which explains them")]
pub struct CakeAutorateSettings {
    pub min_shaper_rate_kbps: PerDirection<f64>,
    pub base_shaper_rate_kbps: PerDirection<f64>,
    pub max_shaper_rate_kbps: PerDirection<f64>,
    pub adjust_shaper_rate: PerDirection<bool>,
    pub owd_delta_delay_thr_ms: PerDirection<f64>,
    pub avg_owd_delta_max_adjust_up_thr_ms: PerDirection<f64>,
    pub avg_owd_delta_max_adjust_down_thr_ms: PerDirection<f64>,
    /// The pinger measures delays one way (fping-ts, tsping, irtt), not round trips (fping, ping).
    pub measures_one_way: bool,
    pub no_pingers: usize,
    pub monitor_achieved_rates_interval_ms: f64,
    pub bufferbloat_detection_window: usize,
    pub bufferbloat_detection_thr: usize,
    pub alpha_baseline_increase: f64,
    pub alpha_baseline_decrease: f64,
    pub shaper_rate_min_adjust_down_bufferbloat: f64,
    pub shaper_rate_max_adjust_down_bufferbloat: f64,
    pub shaper_rate_min_adjust_up_load_high: f64,
    pub shaper_rate_max_adjust_up_load_high: f64,
    pub shaper_rate_adjust_down_load_low: f64,
    pub shaper_rate_adjust_up_load_low: f64,
    pub high_load_thr: f64,
    pub bufferbloat_refractory_period_ms: f64,
    pub decay_refractory_period_ms: f64,
    pub reflector_response_deadline_s: f64,
    pub reflector_misbehaving_detection_window: f64,
    pub reflector_misbehaving_detection_thr: usize,
    pub global_ping_response_timeout_s: f64,
}

impl CakeAutorateSettings {
    /// The defaults, with these limits.
    #[must_use]
    pub fn new(limits: RateLimits) -> CakeAutorateSettings {
        let kbps = |of: PerDirection<u64>| PerDirection::of(|direction| of[direction] as f64 / 1000.0);
        let same = |ms| PerDirection { up: ms, down: ms };
        CakeAutorateSettings {
            min_shaper_rate_kbps: kbps(limits.least),
            base_shaper_rate_kbps: kbps(limits.base),
            max_shaper_rate_kbps: kbps(limits.most),
            adjust_shaper_rate: PerDirection { up: true, down: true },
            owd_delta_delay_thr_ms: same(30.0),
            avg_owd_delta_max_adjust_up_thr_ms: same(10.0),
            avg_owd_delta_max_adjust_down_thr_ms: same(60.0),
            measures_one_way: false,
            no_pingers: 6,
            monitor_achieved_rates_interval_ms: 200.0,
            bufferbloat_detection_window: 6,
            bufferbloat_detection_thr: 3,
            alpha_baseline_increase: 0.001,
            alpha_baseline_decrease: 0.9,
            shaper_rate_min_adjust_down_bufferbloat: 0.99,
            shaper_rate_max_adjust_down_bufferbloat: 0.75,
            shaper_rate_min_adjust_up_load_high: 1.0,
            shaper_rate_max_adjust_up_load_high: 1.04,
            shaper_rate_adjust_down_load_low: 0.99,
            shaper_rate_adjust_up_load_low: 1.01,
            high_load_thr: 0.75,
            bufferbloat_refractory_period_ms: 300.0,
            decay_refractory_period_ms: 1000.0,
            reflector_response_deadline_s: 1.0,
            reflector_misbehaving_detection_window: 60.0,
            reflector_misbehaving_detection_thr: 3,
            global_ping_response_timeout_s: 10.0,
        }
    }

    /// The same with the settings of a configuration of cake-autorate's over them, as data: nothing is run.
    /// Settings that the algorithm does not use here (logs, interfaces, how it pings) are passed over, and
    /// their names are returned.
    ///
    /// # Errors
    /// The line of what is no setting, or of a value that is none; limits in the wrong order.
    ///
    /// ```
    /// use tidegate_control::{CakeAutorateSettings, PerDirection, RateLimits};
    ///
    /// let both = |rate| PerDirection { up: rate, down: rate };
    /// let limits = RateLimits { least: both(1), base: both(2_000_000), most: both(9_000_000) };
    /// let text = "high_load_thr=0.6 # of the rate\nbase_dl_shaper_rate_kbps=1500\nlog_to_file=1";
    /// let (settings, unused) = CakeAutorateSettings::new(limits).read(text).unwrap();
    /// assert_eq!((settings.high_load_thr, settings.base_shaper_rate_kbps.down), (0.6, 1500.0));
    /// assert_eq!(unused, ["log_to_file"]);
    /// ```
    pub fn read(mut self, text: &str) -> Result<(CakeAutorateSettings, Vec<String>), BadControlSetting> {
        let mut unused = Vec::new();
        key_values(text, |key, value| {
            if !self.set(key, value)? {
                unused.push(key.into());
            }
            Ok(())
        })?;
        for direction in RateDirection::BOTH {
            let of = |of: &PerDirection<f64>| of[direction];
            let (least, base, most) = (
                of(&self.min_shaper_rate_kbps),
                of(&self.base_shaper_rate_kbps),
                of(&self.max_shaper_rate_kbps),
            );
            if !(0.0 < least && least <= base && base <= most) {
                return Err(BadControlSetting {
                    line: 1,
                    why: format!("{} rates of {least}, {base} and {most} kbit/s", direction.word()),
                    remedy: "the lowest, the base and the highest rate must rise in this order".into(),
                });
            }
        }
        Ok((self, unused))
    }

    /// Takes one setting; false: it is not used here.
    fn set(&mut self, key: &str, value: &str) -> Result<bool, String> {
        let both = |of: &mut PerDirection<f64>, down: bool| -> Result<bool, String> {
            *(if down { &mut of.down } else { &mut of.up }) = number(key, value)?;
            Ok(true)
        };
        let generic = key.replacen("_dl_", "_", 1).replacen("_ul_", "_", 1);
        let generic = generic.trim_start_matches("dl_").trim_start_matches("ul_");
        let down = key.starts_with("dl_") || key.contains("_dl_");
        let up = key.starts_with("ul_") || key.contains("_ul_");
        if up || down {
            return match generic {
                "min_shaper_rate_kbps" => both(&mut self.min_shaper_rate_kbps, down),
                "base_shaper_rate_kbps" => both(&mut self.base_shaper_rate_kbps, down),
                "max_shaper_rate_kbps" => both(&mut self.max_shaper_rate_kbps, down),
                "owd_delta_delay_thr_ms" => both(&mut self.owd_delta_delay_thr_ms, down),
                "avg_owd_delta_max_adjust_up_thr_ms" => {
                    both(&mut self.avg_owd_delta_max_adjust_up_thr_ms, down)
                }
                "avg_owd_delta_max_adjust_down_thr_ms" => {
                    both(&mut self.avg_owd_delta_max_adjust_down_thr_ms, down)
                }
                "adjust_shaper_rate" => {
                    let adjusts = number(key, value)? != 0.0;
                    *(if down {
                        &mut self.adjust_shaper_rate.down
                    } else {
                        &mut self.adjust_shaper_rate.up
                    }) = adjusts;
                    Ok(true)
                }
                _ => Ok(false),
            };
        }
        let count = |value: &str| -> Result<usize, String> {
            let found = number(key, value)?;
            if (1.0..=MAX_WINDOW).contains(&found) {
                Ok(found as usize)
            } else {
                Err(format!("{key} is from 1 to {MAX_WINDOW}"))
            }
        };
        match key {
            "pinger_method" => self.measures_one_way = ["fping-ts", "tsping", "irtt"].contains(&value),
            "no_pingers" => self.no_pingers = count(value)?,
            "monitor_achieved_rates_interval_ms" => {
                self.monitor_achieved_rates_interval_ms = number(key, value)?;
            }
            "bufferbloat_detection_window" => self.bufferbloat_detection_window = count(value)?,
            "bufferbloat_detection_thr" => self.bufferbloat_detection_thr = count(value)?,
            "alpha_baseline_increase" => self.alpha_baseline_increase = number(key, value)?.min(1.0),
            "alpha_baseline_decrease" => self.alpha_baseline_decrease = number(key, value)?.min(1.0),
            "shaper_rate_min_adjust_down_bufferbloat" => {
                self.shaper_rate_min_adjust_down_bufferbloat = number(key, value)?;
            }
            "shaper_rate_max_adjust_down_bufferbloat" => {
                self.shaper_rate_max_adjust_down_bufferbloat = number(key, value)?;
            }
            "shaper_rate_min_adjust_up_load_high" => {
                self.shaper_rate_min_adjust_up_load_high = number(key, value)?;
            }
            "shaper_rate_max_adjust_up_load_high" => {
                self.shaper_rate_max_adjust_up_load_high = number(key, value)?;
            }
            "shaper_rate_adjust_down_load_low" => {
                self.shaper_rate_adjust_down_load_low = number(key, value)?;
            }
            "shaper_rate_adjust_up_load_low" => self.shaper_rate_adjust_up_load_low = number(key, value)?,
            "high_load_thr" => self.high_load_thr = number(key, value)?,
            "bufferbloat_refractory_period_ms" => {
                self.bufferbloat_refractory_period_ms = number(key, value)?;
            }
            "decay_refractory_period_ms" => self.decay_refractory_period_ms = number(key, value)?,
            "reflector_response_deadline_s" => self.reflector_response_deadline_s = number(key, value)?,
            "reflector_misbehaving_detection_window" => {
                self.reflector_misbehaving_detection_window = number(key, value)?;
            }
            "reflector_misbehaving_detection_thr" => {
                self.reflector_misbehaving_detection_thr = count(value)?;
            }
            "global_ping_response_timeout_s" => self.global_ping_response_timeout_s = number(key, value)?,
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// One direction.
#[derive(Clone, Debug)]
struct Side {
    rate: Controlled,
    /// The last samples: the delay above the baseline in ms, and whether it is late.
    window: VecDeque<(f64, bool)>,
    /// Bit/s over the last interval.
    achieved: f64,
    bytes: u64,
    last_bufferbloat: Option<Time>,
    last_decay: Option<Time>,
}

/// The algorithm of cake-autorate.
#[derive(Clone, Debug)]
pub struct CakeAutorate {
    settings: CakeAutorateSettings,
    sides: PerDirection<Side>,
    /// Of each reflector the baselines in ms.
    baselines: BTreeMap<u16, PerDirection<f64>>,
    /// The reflectors in use, and those that may take their place.
    active: VecDeque<u16>,
    spare: VecDeque<u16>,
    offences: BTreeMap<u16, VecDeque<Time>>,
    measured_since: Time,
    last_reply: Time,
    timed_out: bool,
}

impl CakeAutorate {
    /// With these settings.
    #[must_use]
    pub fn new(settings: CakeAutorateSettings) -> CakeAutorate {
        let bits = |kbps: f64| (kbps * 1000.0 + 0.5) as u64;
        let sides = PerDirection::of(|direction| Side {
            rate: Controlled::new(
                direction,
                bits(settings.base_shaper_rate_kbps[direction]),
                bits(settings.min_shaper_rate_kbps[direction]),
                bits(settings.max_shaper_rate_kbps[direction]),
            ),
            window: VecDeque::new(),
            achieved: 0.0,
            bytes: 0,
            last_bufferbloat: None,
            last_decay: None,
        });
        CakeAutorate {
            settings,
            sides,
            baselines: BTreeMap::new(),
            active: VecDeque::new(),
            spare: VecDeque::new(),
            offences: BTreeMap::new(),
            measured_since: Time(0),
            last_reply: Time(0),
            timed_out: false,
        }
    }

    fn count(&mut self, now: Time, counters: &PerDirection<ShaperCounters>) {
        for direction in RateDirection::BOTH {
            self.sides[direction].bytes += counters[direction].sent;
        }
        let took = now.since(self.measured_since).0 as f64;
        if took >= self.settings.monitor_achieved_rates_interval_ms * MS {
            for direction in RateDirection::BOTH {
                let side = &mut self.sides[direction];
                side.achieved = side.bytes as f64 * 8e9 / took;
                side.bytes = 0;
            }
            self.measured_since = now;
        }
    }

    /// Is this reflector one of those in use? The first that reply are; others wait.
    fn is_active(&mut self, reflector: u16) -> bool {
        if self.active.contains(&reflector) {
            return true;
        }
        if self.spare.contains(&reflector) || self.baselines.len() >= MAX_REFLECTORS {
            return false;
        }
        let room = self.active.len() < self.settings.no_pingers;
        if room {
            self.active.push_back(reflector)
        } else {
            self.spare.push_back(reflector)
        }
        room
    }

    /// A reflector that offends too often changes places with the next one.
    fn offends(&mut self, now: Time, reflector: u16) {
        if !self.is_active(reflector) {
            return;
        }
        let window = Nanos((self.settings.reflector_misbehaving_detection_window * 1e9) as u64);
        let offences = self.offences.entry(reflector).or_default();
        // One a second at most: health is checked once a second.
        if offences.back().is_none_or(|last| now.since(*last) >= Nanos::secs(1)) {
            offences.push_back(now);
        }
        while offences.front().is_some_and(|first| now.since(*first) > window) {
            offences.pop_front();
        }
        if offences.len() < self.settings.reflector_misbehaving_detection_thr {
            return;
        }
        if let Some(next) = self.spare.pop_front() {
            self.offences.remove(&reflector);
            self.active.retain(|one| *one != reflector);
            self.active.push_back(next);
            self.spare.push_back(reflector);
        }
    }

    fn reply(&mut self, now: Time, reply: &ProbeReply, decisions: &mut Vec<RateDecision>) {
        self.last_reply = now;
        self.timed_out = false;
        if reply.rtt.0 as f64 > self.settings.reflector_response_deadline_s * 1e9 {
            self.offends(now, reply.reflector);
        }
        if !self.is_active(reply.reflector) {
            return;
        }
        let half = reply.rtt.0 as f64 / 2.0 / MS;
        let delays = match reply.one_way.filter(|_| self.settings.measures_one_way) {
            Some(one_way) => PerDirection { up: one_way.up as f64 / MS, down: one_way.down as f64 / MS },
            None => PerDirection { up: half, down: half },
        };
        let baselines = self.baselines.entry(reply.reflector).or_insert(delays);
        let mut above = PerDirection::default();
        for direction in RateDirection::BOTH {
            let (delay, base) = (delays[direction], baselines[direction]);
            let alpha = if delay >= base {
                self.settings.alpha_baseline_increase
            } else {
                self.settings.alpha_baseline_decrease
            };
            baselines[direction] = base + alpha * (delay - base);
            above[direction] = delay - baselines[direction];
        }
        for direction in RateDirection::BOTH {
            self.adjust(now, direction, above[direction], decisions);
        }
    }

    fn adjust(&mut self, now: Time, direction: RateDirection, above: f64, decisions: &mut Vec<RateDecision>) {
        let set = &self.settings;
        let side = &mut self.sides[direction];
        let packet_ms = LARGEST_BITS * 1000.0 / side.rate.rate();
        let late_from = set.owd_delta_delay_thr_ms[direction] + packet_ms;
        side.window.push_back((above, above > late_from));
        while side.window.len() > set.bufferbloat_detection_window {
            side.window.pop_front();
        }
        if !set.adjust_shaper_rate[direction] {
            side.rate.set(side.rate.rate(), ControlReason::Begin, None, decisions);
            return;
        }
        let late = side.window.iter().filter(|(_, late)| *late).count();
        let mean = side.window.iter().map(|(above, _)| above).sum::<f64>() / side.window.len() as f64;
        let delay = Some(Nanos((mean.max(0.0) * MS) as u64));
        let since = |last: Option<Time>| last.map_or(f64::INFINITY, |last| now.since(last).0 as f64 / MS);
        let rests = since(side.last_bufferbloat) < set.bufferbloat_refractory_period_ms;
        let rate = side.rate.rate();
        let load = side.achieved / rate;
        if late >= set.bufferbloat_detection_thr {
            if rests {
                return;
            }
            let most_from = set.avg_owd_delta_max_adjust_down_thr_ms[direction] + packet_ms;
            let share = share_between(mean, late_from, most_from);
            let (least, most) =
                (set.shaper_rate_min_adjust_down_bufferbloat, set.shaper_rate_max_adjust_down_bufferbloat);
            side.rate.set(
                rate * (least + share * (most - least)),
                ControlReason::DelayHigh,
                delay,
                decisions,
            );
            side.last_bufferbloat = Some(now);
        } else if load > set.high_load_thr {
            if rests {
                return;
            }
            let full_to = set.avg_owd_delta_max_adjust_up_thr_ms[direction] + packet_ms;
            let share = share_between(mean, full_to, late_from);
            let (least, most) =
                (set.shaper_rate_min_adjust_up_load_high, set.shaper_rate_max_adjust_up_load_high);
            side.rate.set(rate * (most + share * (least - most)), ControlReason::LoadHigh, delay, decisions);
        } else if !rests && since(side.last_decay) >= set.decay_refractory_period_ms {
            let base = set.base_shaper_rate_kbps[direction] * 1000.0;
            let next = if rate > base {
                (rate * set.shaper_rate_adjust_down_load_low).max(base)
            } else {
                (rate * set.shaper_rate_adjust_up_load_low).min(base)
            };
            side.rate.set(next, ControlReason::LoadLow, delay, decisions);
            side.last_decay = Some(now);
        }
    }
}

/// Where a value lies between two others: 0 at or below the first, 1 at or above the second.
fn share_between(value: f64, from: f64, to: f64) -> f64 {
    if to <= from { f64::from(value > from) } else { ((value - from) / (to - from)).clamp(0.0, 1.0) }
}

impl RateController for CakeAutorate {
    fn name(&self) -> &str {
        "cake-autorate"
    }

    fn limit(&mut self, limits: RateLimits) {
        for direction in RateDirection::BOTH {
            self.sides[direction].rate.limit(limits.least[direction], limits.most[direction]);
        }
    }

    fn on_event(&mut self, now: Time, event: &ControlEvent, decisions: &mut Vec<RateDecision>) {
        match event {
            ControlEvent::Start => {
                (self.measured_since, self.last_reply) = (now, now);
                for direction in RateDirection::BOTH {
                    let side = &mut self.sides[direction];
                    side.rate.set(side.rate.rate(), ControlReason::Begin, None, decisions);
                }
            }
            ControlEvent::ProbeReply(reply) => self.reply(now, reply, decisions),
            ControlEvent::ProbeLost { reflector, .. } => self.offends(now, *reflector),
            ControlEvent::Counters(counters) => self.count(now, counters),
            ControlEvent::Timer => {
                let timeout = self.settings.global_ping_response_timeout_s;
                if !self.timed_out && now.since(self.last_reply).0 as f64 >= timeout * 1e9 {
                    self.timed_out = true;
                    for direction in RateDirection::BOTH {
                        let side = &mut self.sides[direction];
                        side.rate.set(side.rate.least(), ControlReason::NoReplies, None, decisions);
                    }
                }
            }
            ControlEvent::TcpRoundTrip { .. }
            | ControlEvent::Acknowledged(_)
            | ControlEvent::Retransmission(_)
            | ControlEvent::Capacity(_) => {}
        }
    }

    fn due(&self) -> Option<Time> {
        let timeout = Nanos((self.settings.global_ping_response_timeout_s * 1e9) as u64);
        (!self.timed_out).then_some(self.last_reply + timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MBIT: u64 = 1_000_000;

    fn controller() -> CakeAutorate {
        let both = |rate| PerDirection { up: rate, down: rate };
        CakeAutorate::new(CakeAutorateSettings::new(RateLimits {
            least: both(5 * MBIT),
            base: both(20 * MBIT),
            most: both(80 * MBIT),
        }))
    }

    /// A reply each 50 ms from one of six reflectors, with that round trip and that load of the download.
    fn play(
        controller: &mut CakeAutorate,
        from_ms: u64,
        replies: u64,
        rtt_ms: u64,
        load: f64,
    ) -> Vec<RateDecision> {
        let mut decisions = Vec::new();
        for n in 0..replies {
            let now = Time((from_ms + n * 50) * 1_000_000);
            let rate = controller.sides.down.rate.rate();
            let sent = (rate * load / 8.0 * 0.05) as u64;
            let down = ShaperCounters { sent, ..ShaperCounters::default() };
            let counters = ControlEvent::Counters(PerDirection { up: ShaperCounters::default(), down });
            controller.on_event(now, &counters, &mut decisions);
            let (reflector, rtt) = ((n % 6) as u16, Nanos::millis(rtt_ms));
            let reply = ProbeReply { reflector, sent: Time(now.0 - rtt.0), rtt, one_way: None };
            controller.on_event(now, &ControlEvent::ProbeReply(reply), &mut decisions);
        }
        decisions
    }

    #[test]
    fn a_high_load_without_delay_raises_the_rate_and_delay_lowers_it() {
        let mut under_test = controller();
        let mut decisions = Vec::new();
        under_test.on_event(Time(1_000_000_000), &ControlEvent::Start, &mut decisions);
        let rates: Vec<u64> = decisions.iter().map(|one| one.bits_per_second).collect();
        assert_eq!(rates, [20 * MBIT, 20 * MBIT]);

        // 4 % each 50 ms, once the load is known.
        let up = play(&mut under_test, 1_000, 20, 40, 1.0);
        let down: Vec<_> = up.iter().filter(|one| one.direction == RateDirection::Down).collect();
        assert!(down.len() > 10 && down.iter().all(|one| one.reason == ControlReason::LoadHigh), "{down:?}");
        let step = down[1].bits_per_second as f64 / down[0].bits_per_second as f64;
        assert!((step - 1.04).abs() < 1e-6, "{step}");

        // Round trips of 240 ms: 100 ms late each way, so a quarter less each 300 ms once three are late.
        let late = play(&mut under_test, 2_000, 12, 240, 1.0);
        let down: Vec<_> = late.iter().filter(|one| one.direction == RateDirection::Down).collect();
        let slower: Vec<_> = down.iter().filter(|one| one.reason == ControlReason::DelayHigh).collect();
        // The third late sample is seen at 100 ms; the mean of the window is then below what takes it all.
        assert_eq!(slower.len(), 2, "{down:?}");
        let step = slower[1].bits_per_second as f64 / slower[0].bits_per_second as f64;
        assert!((step - 0.75).abs() < 0.01, "{step}");
    }

    #[test]
    fn without_load_the_rate_goes_back_to_its_base_a_hundredth_each_second() {
        let mut under_test = controller();
        play(&mut under_test, 1_000, 20, 40, 1.0);
        let high = under_test.sides.down.rate.rate();
        let idle = play(&mut under_test, 2_000, 64, 40, 0.0);
        let down = idle.iter().filter(|one| one.reason == ControlReason::LoadLow);
        let rates: Vec<f64> = down.map(|one| one.bits_per_second as f64).collect();
        assert!(
            rates.len() >= 3 && rates[0] < high && (rates[1] / rates[0] - 0.99).abs() < 1e-4,
            "{rates:?}"
        );
    }

    #[test]
    fn without_any_reply_for_ten_seconds_the_rates_are_the_lowest() {
        let mut under_test = controller();
        play(&mut under_test, 1_000, 2, 40, 0.0);
        let due = under_test.due().expect("a timer");
        assert_eq!(due, Time(11_050_000_000));
        let mut decisions = Vec::new();
        under_test.on_event(due, &ControlEvent::Timer, &mut decisions);
        let rates: Vec<_> = decisions.iter().map(|one| (one.bits_per_second, one.reason)).collect();
        assert_eq!(rates, [(5 * MBIT, ControlReason::NoReplies); 2]);
        assert_eq!(under_test.due(), None);
    }

    #[test]
    fn a_reflector_that_misses_three_times_changes_places_with_a_spare_one() {
        let mut under_test = controller();
        let mut decisions = Vec::new();
        for reflector in 0..8 {
            let reply = ProbeReply { reflector, sent: Time(0), rtt: Nanos::millis(20), one_way: None };
            under_test.on_event(Time(20_000_000), &ControlEvent::ProbeReply(reply), &mut decisions);
        }
        assert_eq!(under_test.active, [0, 1, 2, 3, 4, 5]);
        for second in 1..4 {
            let lost = ControlEvent::ProbeLost { reflector: 2, sent: Time(0) };
            under_test.on_event(Time(second * 1_000_000_000), &lost, &mut decisions);
        }
        assert_eq!(under_test.active, [0, 1, 3, 4, 5, 6]);
    }

    #[test]
    fn limits_in_the_wrong_order_and_bad_numbers_are_refused_with_their_line() {
        let settings = controller().settings;
        let wrong = settings.clone().read("\nhigh_load_thr=much").expect_err("a word");
        assert_eq!((wrong.line, wrong.why.as_str()), (2, "`much` is no number for high_load_thr"));
        let wrong = settings.clone().read("min_ul_shaper_rate_kbps=90000").expect_err("an order");
        assert!(wrong.why.contains("upload rates of 90000, 20000 and 80000 kbit/s"), "{wrong}");
        let (read, unused) = settings.read("pinger_method=tsping\ndl_if=ifb-wan").expect("settings");
        assert!(read.measures_one_way && unused == ["dl_if"]);
    }
}
