//! The values read become the parameters of red, choke, sfb, pie, and of sfq's random early detection.

use super::options::Values;
use super::red::{Computed, Terms, compute, wrapped};
use crate::Refusal;
use tidegate_packet::Rate;
use tidegate_policy::{PieParams, RedParams, SfbParams, SfqRed};

/// The probability of a mark at `max` when none is given.
pub(super) const PROBABILITY: f64 = 0.02;
/// red's bandwidth when none is given: 10 Mbit/s.
pub(super) const BANDWIDTH: Rate = Rate(1_250_000);

pub(super) fn computed(terms: &Terms, before: &str) -> Result<Computed, Refusal> {
    compute(terms).map_err(|said| {
        Refusal { stderr: format!("{before}{said}"), code: 1, ..Refusal::default() }
            .remedy("The burst must be more than min/avpkt packets, and the probability more than 0.")
    })
}

fn missing(line: &str, remedy: &str) -> Refusal {
    Refusal::new(1, line).remedy(remedy)
}

/// How many usual packets lie between the thresholds: the burst when none is given.
pub(super) fn usual_burst(min: u32, max: u32, avpkt: u32) -> u32 {
    min.wrapping_mul(2).wrapping_add(max).checked_div(avpkt.wrapping_mul(3)).unwrap_or(0)
}

/// What people say of random early detection, with what they left out.
struct Said {
    limit: u32,
    min: u32,
    max: u32,
    probability: f64,
}

fn said(values: &Values, limit: u32) -> Said {
    let given = |key: &str| values.number(key).filter(|value| *value > 0);
    Said {
        limit,
        min: given("min").unwrap_or(0),
        max: given("max").unwrap_or(0),
        probability: values.fraction("probability").unwrap_or(PROBABILITY),
    }
}

pub(super) fn red(values: &Values, stderr: &mut String) -> Result<RedParams, Refusal> {
    let given = |key: &str| values.number(key).filter(|value| *value > 0);
    let (Some(limit), Some(avpkt)) = (given("limit"), given("avpkt")) else {
        return Err(missing(
            "RED: Required parameter (limit, avpkt) is missing",
            "red needs the bytes that may wait and the length of a usual packet: red limit 60k avpkt 1000",
        ));
    };
    let mut said = said(values, limit);
    if said.max == 0 {
        said.max = if said.min > 0 { said.min.wrapping_mul(3) } else { said.limit / 4 };
    }
    if said.min == 0 {
        said.min = said.max / 3;
    }
    let burst = given("burst").unwrap_or_else(|| usual_burst(said.min, said.max, avpkt));
    let rate = values.rate("bandwidth").filter(|rate| rate.0 > 0).unwrap_or_else(|| {
        stderr.push_str("RED: set bandwidth to 10Mbit\n");
        BANDWIDTH
    });
    let terms = Terms {
        name: "RED",
        min: said.min,
        max: said.max,
        min_bytes: said.min,
        max_bytes: said.max,
        burst,
        avpkt,
        probability: said.probability,
        rate: Some(rate),
    };
    let computed = computed(&terms, stderr)?;
    stderr.push_str(&computed.said);
    Ok(RedParams {
        limit,
        curve: computed.curve,
        idle: computed.idle,
        ecn: values.has("ecn"),
        harddrop: values.has("harddrop"),
        adaptive: values.has("adaptive"),
        nodrop: values.has("nodrop"),
    })
}

/// The order of the thresholds, which choke and sfq look at.
fn check_order(said: &Said) -> Result<(), Refusal> {
    if said.max > said.limit {
        return Err(missing(
            "\"max\" is larger than \"limit\"",
            "The thresholds lie within the limit: min < max ≤ limit.",
        ));
    }
    if said.min >= said.max {
        return Err(missing(
            "\"min\" is not smaller than \"max\"",
            "The thresholds lie within the limit: min < max ≤ limit.",
        ));
    }
    Ok(())
}

/// The thresholds of choke and sfq, with their defaults.
fn ordered(values: &Values, limit: u32) -> Result<Said, Refusal> {
    let mut said = said(values, limit);
    if said.max == 0 {
        said.max = limit / 4;
    }
    if said.min == 0 {
        said.min = said.max / 3;
    }
    check_order(&said)?;
    Ok(said)
}

pub(super) fn choke(values: &Values, stderr: &mut String) -> Result<RedParams, Refusal> {
    let given = |key: &str| values.number(key).filter(|value| *value > 0);
    let (Some(limit), Some(rate)) = (given("limit"), values.rate("bandwidth").filter(|rate| rate.0 > 0)) else {
        return Err(missing(
            "Required parameter (bandwidth, limit) is missing",
            "choke needs the packets that may wait and the link's rate: choke limit 100 bandwidth 1mbit",
        ));
    };
    let said = ordered(values, limit)?;
    let avpkt = values.number("avpkt").unwrap_or(1000);
    let terms = Terms {
        name: "CHOKE",
        min: said.min,
        max: said.max,
        min_bytes: said.min.wrapping_mul(avpkt),
        max_bytes: said.max.wrapping_mul(avpkt),
        burst: given("burst").unwrap_or_else(|| usual_burst(said.min, said.max, 1)),
        avpkt,
        probability: said.probability,
        rate: Some(rate),
    };
    let computed = computed(&terms, "")?;
    stderr.push_str(&computed.said);
    Ok(RedParams {
        limit,
        curve: computed.curve,
        idle: computed.idle,
        ecn: values.has("ecn"),
        harddrop: false,
        adaptive: false,
        nodrop: false,
    })
}

/// sfq's random early detection, if any of its words was given.
pub(super) fn sfq_red(values: &Values, stderr: &mut String) -> Result<Option<SfqRed>, Refusal> {
    const WORDS: [&str; 8] = ["redflowlimit", "min", "max", "burst", "avpkt", "probability", "ecn", "harddrop"];
    if !WORDS.iter().any(|word| values.has(word)) {
        return Ok(None);
    }
    let Some(limit) = values.number("redflowlimit").filter(|limit| *limit > 0) else {
        return Err(missing(
            "Required parameter (redflowlimit) is missing",
            "Random early detection in the flows of sfq begins with redflowlimit BYTES.",
        ));
    };
    let said = ordered(values, limit)?;
    let avpkt = values.number("avpkt").unwrap_or(1000);
    let burst = values.number("burst").filter(|burst| *burst > 0);
    let terms = Terms {
        name: "SFQ",
        min: said.min,
        max: said.max,
        min_bytes: said.min,
        max_bytes: said.max,
        burst: burst.unwrap_or_else(|| usual_burst(said.min, said.max, avpkt)),
        avpkt,
        probability: said.probability,
        rate: None,
    };
    let computed = computed(&terms, "")?;
    stderr.push_str(&computed.said);
    Ok(Some(SfqRed { limit, curve: computed.curve, ecn: values.has("ecn"), harddrop: values.has("harddrop") }))
}

pub(super) fn sfb(values: &Values) -> SfbParams {
    const CERTAIN: f64 = 65_535.0;
    let number = |key: &str, default: u32| values.number(key).unwrap_or(default);
    let given = |key: &str| values.number(key).filter(|value| *value > 0);
    let (max, target) = match (given("max"), given("target")) {
        (None, None) => (25, 20),
        (Some(max), None) => (max, max.wrapping_mul(4).wrapping_add(3) / 5),
        (None, Some(target)) => (target.wrapping_mul(5).wrapping_add(1) / 4, target),
        (Some(max), Some(target)) => (max, target),
    };
    let share = |key: &str, default: u32| values.fraction(key).map_or(default, |value| wrapped(value * CERTAIN + 0.5));
    SfbParams {
        rehash_ms: number("rehash", 600_000),
        warmup_ms: number("db", 60_000),
        limit: number("limit", 0),
        max,
        target,
        increment: share("increment", 33),
        decrement: share("decrement", 3),
        penalty_rate: number("penalty_rate", 10),
        penalty_burst: number("penalty_burst", 20),
    }
}

pub(super) fn pie(values: &Values) -> PieParams {
    let given = |key: &str| values.number(key).filter(|value| *value > 0);
    PieParams {
        limit: given("limit"),
        target_us: given("target"),
        tupdate_us: given("tupdate"),
        alpha: given("alpha"),
        beta: given("beta"),
        ecn: values.switch("ecn", "noecn"),
        bytemode: values.switch("bytemode", "nobytemode"),
        rate_estimator: values.switch("dq_rate_estimator", "no_dq_rate_estimator"),
    }
}
