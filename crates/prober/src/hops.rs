//! The hops on the path to a host: the gateway of the LAN, the provider's first router, and those behind it.
//!
//! A request whose hop limit runs out is answered by the router that drops it (ICMP time exceeded). Routers
//! limit that to about one a second, so each is found once and then pinged at its own address, if it replies.

use crate::Error;
use crate::ping::{PingMethod, PingProgress, PingSchedule, Pinger, USUAL_SIZE};
use std::net::IpAddr;
use std::time::Duration;
use tidegate_measure::pinged::PingTarget;

/// The most hops that are pinged.
pub const MOST_HOPS: u8 = 32;
/// How many requests a hop gets before it counts as silent.
const TRIES: u64 = 3;
/// From one try to the next.
const BETWEEN: Duration = Duration::from_millis(400);
/// The timeout for a silent hop, ns.
const SILENCE: u64 = 2_000_000_000;
/// From one look to the next.
const LOOK: Duration = Duration::from_millis(5);
/// A router that answers no echo requests is probed no faster than it may answer.
pub const SLOWLY: Duration = Duration::from_secs(1);

/// A hop of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// How many hops away, from 1.
    pub distance: u8,
    /// Its address; `None`: it is silent.
    pub address: Option<IpAddr>,
    /// The shortest answer of the few, ns.
    pub took_ns: Option<u64>,
    /// Does it answer echo requests to its own address?
    pub answers_echo: bool,
    /// Is it the host that was looked for?
    pub is_host: bool,
}

/// The first `most` hops on the path to an address, in order; fewer if the host is nearer. Silent ones behind
/// the last that replied are left out. Takes a few seconds if a hop is silent.
///
/// # Errors
/// No permission, or no way.
pub fn find(to: IpAddr, way: PingMethod, most: u8) -> Result<Vec<Hop>, Error> {
    let most = most.clamp(1, MOST_HOPS);
    let plans: Vec<PingSchedule> = (1..=most).map(|distance| plan(to, way, Some(distance), TRIES)).collect();
    let seen = ask(&plans, |seen| {
        found_host(seen, to).is_some_and(|host| seen.targets[..host].iter().all(is_answered))
    })?;
    let mut hops = read(&seen, to);
    try_echo(&mut hops)?;
    Ok(hops)
}

/// A schedule that pings this hop: at its own address, or through the hop limit of requests to `to`, slowly.
/// `None`: it is silent.
pub fn watch(hop: &Hop, to: IpAddr, way: PingMethod, interval: Duration) -> Option<PingSchedule> {
    let address = hop.address?;
    let mut plan = plan(address, PingMethod::Icmp, None, 0);
    plan.id = format!("hop {}", hop.distance);
    plan.host = address.to_string();
    plan.count = None;
    plan.interval = interval;
    if hop.is_host {
        plan.way = way;
    } else if !hop.answers_echo {
        plan.address = to;
        plan.way = way;
        plan.hop_limit = Some(hop.distance);
        plan.interval = interval.max(SLOWLY);
    }
    Some(plan)
}

/// Does a host answer echo requests?
///
/// # Errors
/// They cannot be sent.
pub fn answers_echo(host: IpAddr) -> Result<bool, Error> {
    let seen =
        ask(&[plan(host, PingMethod::Icmp, None, TRIES)], |seen| seen.targets.iter().any(is_answered))?;
    Ok(seen.targets.iter().any(is_answered))
}

fn plan(address: IpAddr, way: PingMethod, hop_limit: Option<u8>, count: u64) -> PingSchedule {
    PingSchedule {
        id: String::new(),
        host: address.to_string(),
        address,
        way,
        ds_field: 0,
        size: USUAL_SIZE,
        hop_limit,
        interval: BETWEEN,
        count: Some(count),
    }
}

/// Asks until it is enough, or all was tried.
fn ask(plans: &[PingSchedule], enough: impl Fn(&PingProgress) -> bool) -> Result<PingProgress, Error> {
    let pinger = Pinger::begin(plans)?;
    let limit = SILENCE + TRIES * BETWEEN.as_nanos() as u64;
    while !pinger.is_over() && !pinger.look(|seen| enough(seen) || seen.now_ns > limit) {
        std::thread::sleep(LOOK);
    }
    Ok(pinger.end())
}

fn is_answered(target: &PingTarget) -> bool {
    target.requests.iter().any(|request| request.took_ns.is_some())
}

/// The place of the first target that the host itself answered.
fn found_host(seen: &PingProgress, to: IpAddr) -> Option<usize> {
    seen.answered_by.iter().position(|by| *by == Some(to))
}

/// The hops, without knowing whether they answer echo requests.
fn read(seen: &PingProgress, to: IpAddr) -> Vec<Hop> {
    let end = found_host(seen, to).map_or(seen.targets.len(), |host| host + 1);
    let hop = |(n, target): (usize, &PingTarget)| {
        let address = seen.answered_by[n];
        let took_ns = target.requests.iter().filter_map(|request| request.took_ns).min();
        let distance = u8::try_from(n + 1).unwrap_or(u8::MAX);
        Hop { distance, address, took_ns, answers_echo: false, is_host: address == Some(to) }
    };
    let mut hops: Vec<Hop> = seen.targets[..end].iter().enumerate().map(hop).collect();
    let known = hops.iter().rposition(|hop| hop.address.is_some()).map_or(0, |last| last + 1);
    hops.truncate(known);
    hops
}

/// Asks each by its own address.
fn try_echo(hops: &mut [Hop]) -> Result<(), Error> {
    let known: Vec<usize> = (0..hops.len()).filter(|n| hops[*n].address.is_some()).collect();
    let plans: Vec<PingSchedule> =
        known.iter().filter_map(|n| Some(plan(hops[*n].address?, PingMethod::Icmp, None, TRIES))).collect();
    if plans.is_empty() {
        return Ok(());
    }
    // Addresses of routers may be such that there is no way to them.
    let seen = match ask(&plans, |seen| seen.targets.iter().all(is_answered)) {
        Err(Error::NoRoute { .. } | Error::NotAllowed { .. }) => return Ok(()),
        seen => seen?,
    };
    for (n, target) in known.into_iter().zip(&seen.targets) {
        hops[n].answers_echo = is_answered(target);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_measure::pinged::PingRequest;

    fn seen(answers: &[Option<(u8, u64)>]) -> PingProgress {
        let target = |answer: &Option<(u8, u64)>| PingTarget {
            requests: vec![PingRequest { took_ns: answer.map(|(_, took)| took), ..PingRequest::default() }],
            ..PingTarget::default()
        };
        let by = |answer: &Option<(u8, u64)>| answer.map(|(by, _)| address(by));
        PingProgress {
            targets: answers.iter().map(target).collect(),
            answered_by: answers.iter().map(by).collect(),
            ..PingProgress::default()
        }
    }

    fn address(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn the_way_ends_at_the_host_and_silence_has_its_place() {
        let hops = read(&seen(&[Some((1, 10)), None, Some((9, 30)), Some((9, 31))]), address(9));
        let found: Vec<_> =
            hops.iter().map(|hop| (hop.distance, hop.address, hop.took_ns, hop.is_host)).collect();
        let expected = [
            (1, Some(address(1)), Some(10), false),
            (2, None, None, false),
            (3, Some(address(9)), Some(30), true),
        ];
        assert_eq!(found, expected);
        assert_eq!(read(&seen(&[Some((1, 10)), None, None]), address(9)).len(), 1);
        assert_eq!(read(&seen(&[None, None]), address(9)), []);
    }

    #[test]
    fn a_hop_without_echo_replies_is_probed_slowly_through_the_hop_limit() {
        let hop = Hop {
            distance: 2,
            address: Some(address(2)),
            took_ns: None,
            answers_echo: false,
            is_host: false,
        };
        let often = Duration::from_millis(100);
        let tuple = |hop: &Hop| {
            let plan = watch(hop, address(9), PingMethod::Udp(7), often)?;
            Some((plan.address, plan.way, plan.hop_limit, plan.interval))
        };
        assert_eq!(tuple(&hop), Some((address(9), PingMethod::Udp(7), Some(2), SLOWLY)));
        assert_eq!(
            tuple(&Hop { answers_echo: true, ..hop }),
            Some((address(2), PingMethod::Icmp, None, often))
        );
        let host = Hop { address: Some(address(9)), is_host: true, ..hop };
        assert_eq!(tuple(&host), Some((address(9), PingMethod::Udp(7), None, often)));
        assert_eq!(tuple(&Hop { address: None, ..hop }), None);
    }
}
