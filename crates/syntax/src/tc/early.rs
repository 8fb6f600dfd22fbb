//! Random early detection: the options as people write them, and what tc computes: how slowly the average
//! moves, how the probability grows, how idle time decays the average.
//!
//! The options of red, choke and sfq are in people's terms (thresholds, a burst to let pass, an average
//! packet, the link's rate); the kernel wants powers of two and a table. The arithmetic is tc's, in doubles,
//! because its rounding decides which packets are marked.

use super::options::Values;
use crate::Refusal;
use crate::units::ticks_of;
use tidegate_packet::Rate;
use tidegate_policy::{IdleTable, RedCurve};

/// The options as written.
pub(super) struct Terms {
    /// The kind, as tc's error messages begin.
    pub(super) name: &'static str,
    pub(super) min: u32,
    pub(super) max: u32,
    /// The lower threshold in bytes.
    pub(super) min_bytes: u32,
    pub(super) max_bytes: u32,
    pub(super) burst: u32,
    pub(super) avpkt: u32,
    pub(super) probability: f64,
    /// For the idle table; sfq has none.
    pub(super) rate: Option<Rate>,
}

/// What is sent to the kernel.
#[derive(Debug, PartialEq)]
pub(super) struct Computed {
    pub(super) curve: RedCurve,
    pub(super) idle: Option<Box<IdleTable>>,
    /// tc's warnings, after which it continues.
    pub(super) stderr: String,
}

/// Computes the parameters, or returns tc's error message.
fn compute(terms: &Terms) -> Result<Computed, Refusal> {
    let name = terms.name;
    let failed =
        |text: String, remedy: &str| Refusal { stderr: text, code: 1, ..Refusal::default() }.remedy(remedy);
    let wlog = weight(terms.min_bytes, terms.burst, terms.avpkt).map_err(|line| {
        let remedy = match least_burst(terms.min_bytes, terms.avpkt) {
            least if terms.burst < least => format!(
                "burst counts packets of avpkt ({}): here it must be at least {least}, one more than reach min",
                terms.avpkt
            ),
            _ => "min must be at least one packet of avpkt".to_owned(),
        };
        failed(format!("{line}{name}: failed to calculate EWMA constant.\n"), &remedy)
    })?;
    let text = if wlog >= 10 {
        format!("{name}: WARNING. Burst {} seems to be too large.\n", terms.burst)
    } else {
        String::new()
    };
    let plog = steepness(terms.min_bytes, terms.max_bytes, terms.probability).ok_or_else(|| {
        let remedy = "max must be above min, and the probability more than 0";
        failed(format!("{text}{name}: failed to calculate probability.\n"), remedy)
    })?;
    let (scell_log, idle) = match terms.rate {
        None => (0, None),
        Some(rate) => {
            let (log, table) = damping(wlog, terms.avpkt, rate).ok_or_else(|| {
                let remedy = "A higher bandwidth or a smaller burst makes the table possible";
                failed(format!("{text}{name}: failed to calculate idle damping table.\n"), remedy)
            })?;
            (log, Some(table))
        }
    };
    // 1 is one too many for 32 bits and becomes 0; the kernel then goes by `plog`.
    let max_p = wrapped(terms.probability * 4_294_967_296.0);
    let curve = RedCurve { min: terms.min, max: terms.max, wlog, plog, scell_log, max_p };
    Ok(Computed { curve, idle, stderr: text })
}

/// The least weight (as a power of two) of the average that lets the burst pass without a mark.
fn weight(min: u32, burst: u32, avpkt: u32) -> Result<u8, String> {
    let packets = f64::from(burst) + 1.0 - f64::from(min) / f64::from(avpkt);
    if packets < 1.0 {
        let more = least_burst(min, avpkt);
        return Err(format!("tc_red_eval_ewma() burst {burst} is too small ? Try burst {more}\n"));
    }
    let lets_pass = |wlog: &u8| {
        let share = 1.0 / (1_u64 << wlog) as f64;
        packets <= (1.0 - libm::pow(1.0 - share, f64::from(burst))) / share
    };
    (1..32).find(lets_pass).ok_or_else(String::new)
}

/// The fewest packets that a burst must have.
fn least_burst(min: u32, avpkt: u32) -> u32 {
    1 + min.checked_div(avpkt).unwrap_or(0)
}

/// The power of two nearest above the probability per unit of length.
fn steepness(min: u32, max: u32, probability: f64) -> Option<u8> {
    let width = max.wrapping_sub(min) as i32;
    if width == 0 {
        return Some(0);
    }
    if width < 0 {
        return None;
    }
    let mut per_unit = probability / f64::from(width);
    for log in 0..32 {
        if per_unit > 1.0 {
            return Some(log);
        }
        per_unit *= 2.0;
    }
    None
}

/// By how many bits the average shrinks for each cell of idle time, and the cell as a power of two.
fn damping(wlog: u8, avpkt: u32, rate: Rate) -> Option<(u8, Box<IdleTable>)> {
    let packet_ticks = f64::from(ticks_of(rate, avpkt).0);
    // tc's whole numbers have 32 bits: what does not fit becomes negative. So does a weight of 2^-31, and
    // with it the cells are small enough.
    let per_tick = -libm::log(1.0 - 1.0 / f64::from(1_i32 << wlog)) / packet_ticks;
    let longest = 31.0 / per_tick;
    let log = (0..32).find(|log| longest / f64::from(1_i32 << log) < 512.0)?;
    let mut table = Box::new([0; 256]);
    for (cell, shift) in table.iter_mut().enumerate().skip(1) {
        *shift = (wrapped(f64::from((cell as i32) << log) * per_tick) as u8).min(31);
    }
    table[255] = 31;
    Some((log as u8, table))
}

/// A double put into a narrower whole number as C does on x86: the lowest bits of its whole part, 0 when that
/// has more than 63.
pub(super) fn wrapped(value: f64) -> u32 {
    if value.abs() < 9_223_372_036_854_775_808.0 { value as i64 as u32 } else { 0 }
}

/// The probability of a mark at `max` when none is given.
pub(super) const PROBABILITY: f64 = 0.02;

/// red's bandwidth when none is given: 10 Mbit/s.
pub(super) const BANDWIDTH: Rate = Rate(1_250_000);

pub(super) fn computed(terms: &Terms, before: &str) -> Result<Computed, Refusal> {
    compute(terms).map_err(|refusal| Refusal { stderr: format!("{before}{}", refusal.stderr), ..refusal })
}

pub(super) fn missing(line: &str, remedy: &str) -> Refusal {
    Refusal::new(1, line).remedy(remedy)
}

/// How many usual packets lie between the thresholds: the burst when none is given.
pub(super) fn usual_burst(min: u32, max: u32, avpkt: u32) -> u32 {
    min.wrapping_mul(2).wrapping_add(max).checked_div(avpkt.wrapping_mul(3)).unwrap_or(0)
}

/// The options of random early detection, with defaults for those left out.
pub(super) struct RedWords {
    pub(super) limit: u32,
    pub(super) min: u32,
    pub(super) max: u32,
    pub(super) probability: f64,
}

pub(super) fn red_words(values: &Values, limit: u32) -> RedWords {
    let given = |key: &str| values.number(key).filter(|value| *value > 0);
    RedWords {
        limit,
        min: given("min").unwrap_or(0),
        max: given("max").unwrap_or(0),
        probability: values.fraction("probability").unwrap_or(PROBABILITY),
    }
}

/// The order of the thresholds, which choke and sfq look at.
fn check_order(words: &RedWords) -> Result<(), Refusal> {
    if words.max > words.limit {
        return Err(missing(
            "\"max\" is larger than \"limit\"",
            "The thresholds lie within the limit: min < max ≤ limit.",
        ));
    }
    if words.min >= words.max {
        return Err(missing(
            "\"min\" is not smaller than \"max\"",
            "The thresholds lie within the limit: min < max ≤ limit.",
        ));
    }
    Ok(())
}

/// The thresholds of choke and sfq, with their defaults.
pub(super) fn ordered(values: &Values, limit: u32) -> Result<RedWords, Refusal> {
    let mut words = red_words(values, limit);
    if words.max == 0 {
        words.max = limit / 4;
    }
    if words.min == 0 {
        words.min = words.max / 3;
    }
    check_order(&words)?;
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_burst_and_its_thresholds_is_said() {
        let of = |min: u32, max: u32, burst: u32, probability: f64| {
            let terms = Terms {
                name: "RED",
                min,
                max,
                min_bytes: min,
                max_bytes: max,
                burst,
                avpkt: 1000,
                probability,
                rate: None,
            };
            computed(&terms, "").err().and_then(|refusal| refusal.remedy).unwrap_or_default()
        };
        assert_eq!(of(50_000, 80_000, 51, 0.02), "");
        assert!(of(50_000, 80_000, 3, 0.02).contains("at least 51, one more"));
        assert_eq!(of(1000, 80_000, 2, 0.02), "");
        // However large the burst: it was tried that none is taken.
        assert!((1..5000).all(|burst| of(500, 80_000, burst, 0.02).starts_with("min must be")));
        assert!(of(50_000, 40_000, 60, 0.02).starts_with("max must be above min"));
        assert!(of(50_000, 80_000, 60, 0.0).starts_with("max must be above min"));
    }
}
