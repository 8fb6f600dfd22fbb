//! What the kernel takes without a word though it cannot do what was meant.

use std::collections::BTreeSet;
use tidegate_gateway::Gateway;
use tidegate_packet::{Handle, Rate};
use tidegate_policy::{
    ClassOp, ClassParams, FilterOp, FilterParams, HfscClassParams, HtbClassParams, Op, QdiscOp, QdiscParams,
    RateSpec, Verb,
};
use tidegate_syntax::units::{parse_percent, rate_in_words as rate};

/// Classes by device and minor number.
type Made = BTreeSet<(String, u16)>;

/// A caveat about an operation that was carried out; `None` where there is none. `made`: the classes of
/// operations so far, see [`super::Machine`].
pub(super) fn caveat(op: &Op, gateway: &Gateway, made: &Made) -> Option<String> {
    match op {
        Op::Qdisc(op) if op.verb != Verb::Delete => qdisc(op, gateway),
        Op::Class(op) if op.verb != Verb::Delete => class(op, gateway, made),
        Op::Filter(op) if op.verb != Verb::Delete => filter(op),
        _ => None,
    }
}

/// Words behind which a percentage is a part of the device's speed.
const RATES: [&str; 6] = ["rate", "ceil", "peakrate", "bandwidth", "maxrate", "m2"];

/// What is assumed of a device's speed where a command gives a rate as a part of it.
pub(super) fn of_speed(op: &Op, words: &[String], gateway: &Gateway) -> Option<String> {
    let dev = match op {
        Op::Qdisc(op) => &op.dev,
        Op::Class(op) => &op.dev,
        _ => return None,
    };
    let is_part = |pair: &&[String]| RATES.contains(&pair[0].as_str()) && parse_percent(&pair[1]).is_some();
    let pair = words.windows(2).find(is_part)?;
    let speed = gateway.spec(gateway.device(dev)?).speed_mbit?;
    Some(format!(
        "{} {} is a part of {dev}'s speed, which is assumed here to be {}; tc reads \
        /sys/class/net/{dev}/speed, and refuses the command where that says none",
        pair[0],
        pair[1],
        rate(Rate(u64::from(speed) * 125_000))
    ))
}

/// The longest frame of a device, bytes.
fn longest(gateway: &Gateway, dev: &str) -> u32 {
    gateway.device(dev).map_or(0, |id| gateway.spec(id).mtu + gateway.spec(id).link_header)
}

fn qdisc(op: &QdiscOp, gateway: &Gateway) -> Option<String> {
    let frame = longest(gateway, &op.dev);
    match op.params.as_ref()? {
        QdiscParams::Fifo(params) if params.limit == Some(0) => Some("limit 0 drops every packet".into()),
        QdiscParams::Fifo(params) if op.kind.as_deref() == Some("bfifo") && params.limit < Some(frame) => {
            let limit = params.limit?;
            Some(format!("frames longer than {limit} bytes never enter; {} sends up to {frame}", op.dev))
        }
        QdiscParams::Tbf(params) => {
            let peak = if params.peak.is_some() { params.peak_burst } else { u32::MAX };
            let bucket = params.burst.min(peak);
            (bucket < frame).then(|| {
                let name = if peak < params.burst { "mtu" } else { "burst" };
                format!(
                    "{name} {bucket} is less than a frame of {} ({frame} bytes): longer packets are dropped",
                    op.dev
                )
            })
        }
        QdiscParams::Codel(params) => too_patient(params.target_us, params.interval_us),
        QdiscParams::FqCodel(params) => too_patient(params.target_us, params.interval_us),
        QdiscParams::Red(params) | QdiscParams::Choke(params) if params.limit <= params.curve.max => {
            Some(format!(
                "limit {} is not above max {}: the queue is full before every packet is marked",
                params.limit, params.curve.max
            ))
        }
        _ => None,
    }
}

/// What a filter looks at that no simulated packet has.
fn filter(op: &FilterOp) -> Option<String> {
    match op.params.as_ref()? {
        FilterParams::Cgroup(_) => {
            Some("simulated packets come from no control group: this filter matches none of them".into())
        }
        FilterParams::Route(_) => {
            Some("simulated routes have no realms: this filter matches none of their packets".into())
        }
        _ => None,
    }
}

fn too_patient(target_us: Option<u32>, interval_us: Option<u32>) -> Option<String> {
    let (target, interval) = (target_us?, interval_us.unwrap_or(100_000));
    (target >= interval).then(|| {
        format!(
            "target ({target} us) is not below interval ({interval} us): a queue is accepted for longer \
        than it is watched"
        )
    })
}

fn class(op: &ClassOp, gateway: &Gateway, made: &Made) -> Option<String> {
    match op.params.as_ref()? {
        ClassParams::Htb(params) => htb(op, params, gateway, made),
        ClassParams::Hfsc(HfscClassParams { ls: Some(ls), ul: Some(ul), .. }) if ul.m2 < ls.m2 => {
            Some(format!(
                "ul {} is below ls {}: the class never gets its share",
                rate(Rate(ul.m2.into())),
                rate(Rate(ls.m2.into()))
            ))
        }
        _ => None,
    }
}

fn htb(op: &ClassOp, params: &HtbClassParams, gateway: &Gateway, made: &Made) -> Option<String> {
    let HtbClassParams { rate: sure, ceil, buffer, cbuffer, .. } = params;
    if ceil.rate < sure.rate {
        return Some(format!(
            "ceil {} is below rate {}: the class never gets its rate",
            rate(ceil.rate),
            rate(sure.rate)
        ));
    }
    let orphan = op.parent != Handle::ROOT
        && op.parent.minor() != 0
        && !made.contains(&(op.dev.clone(), op.parent.minor()));
    if orphan {
        let (parent, dev) = (op.parent, &op.dev);
        return Some(format!(
            "there is no class {parent} on {dev}: {} is under the root and cannot borrow",
            op.classid
        ));
    }
    let frame = longest(gateway, &op.dev);
    let bytes = |spec: &RateSpec, ns: u64| (spec.rate.0 as f64 * ns as f64 / 1e9) as u32;
    let least = bytes(sure, buffer.duration().0).min(bytes(ceil, cbuffer.duration().0));
    // tc's default burst is a frame and a half of headers; far below that the rate is missed.
    (least < frame / 2).then(|| {
        format!(
            "burst or cburst is {least} bytes, less than half a frame ({frame}): give about rate / 250 \
        bytes, at least {frame}"
        )
    })
}
