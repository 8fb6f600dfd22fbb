//! The hops on the path, and how long they take to reply.

use crate::error::{Context, Result};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_measure::Durations;
use tidegate_measure::pinged::PingRequest;
use tidegate_measure::quick::HopResult;
use tidegate_prober::hops::{self, Hop};
use tidegate_prober::ping::{PingMethod, PingSchedule, Pinger};

/// Hops that are looked for: the LAN's gateway, a modem, the provider's first router, and one behind it.
const HOPS: u8 = 4;
/// From one question to the next.
const OFTEN: Duration = Duration::from_millis(40);
/// Older requests show nothing of the present.
const RECENT: u64 = 3_000_000_000;

/// All hops on the path, pinged repeatedly.
pub(super) struct Watch {
    pinger: Arc<Pinger>,
    /// When it began.
    pub(super) began: Instant,
    /// The server's address.
    pub(super) far: IpAddr,
    /// As `places`, before anything was sent.
    who: Vec<(String, Option<u8>)>,
}

impl Watch {
    /// Finds finding the hops on the path to an address, and begins to ask them.
    ///
    /// # Errors
    /// No permission, no way.
    pub(super) fn begin(name: &str, far: IpAddr) -> Result<Watch> {
        let found =
            hops::find(far, PingMethod::Icmp, HOPS).context(format!("looking for the way to {name}"))?;
        let mut plans: Vec<(PingSchedule, String, Option<u8>)> = Vec::new();
        for hop in found.iter().filter(|hop| !hop.is_host) {
            let (Some(plan), Some(address)) = (hops::watch(hop, far, PingMethod::Icmp, OFTEN), hop.address)
            else {
                continue;
            };
            // A router that may be pinged once a second gives too few replies in half a minute.
            if plan.interval == OFTEN {
                plans.push((plan, format!("hop {} ({address})", hop.distance), Some(hop.distance)));
            }
        }
        let host = found.iter().find(|hop| hop.is_host).map(|hop: &Hop| hop.distance);
        let mut plan = PingSchedule::new(&far.to_string(), tidegate_prober::AddressFamily::Any)?;
        plan.interval = OFTEN;
        let called = if name == far.to_string() { name.to_owned() } else { format!("{name} ({far})") };
        plans.push((plan, called, host));
        let ping_schedules: Vec<PingSchedule> = plans.iter().map(|(plan, ..)| plan.clone()).collect();
        let pinger = Arc::new(Pinger::begin(&ping_schedules)?);
        let who = plans.into_iter().map(|(_, name, distance)| (name, distance)).collect();
        Ok(Watch { pinger, began: Instant::now(), far, who })
    }

    /// ns since the beginning.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// What everyone answered so far.
    pub(super) fn places(&self) -> Vec<HopResult> {
        let requestses: Vec<Vec<PingRequest>> =
            self.pinger.look(|seen| seen.targets.iter().map(|target| target.requests.clone()).collect());
        let place = |((name, distance), requests): (&(String, Option<u8>), Vec<PingRequest>)| HopResult {
            name: name.clone(),
            distance: *distance,
            requests,
        };
        self.who.iter().zip(requestses).map(place).collect()
    }

    /// Whose answers stopped early, and why; when it began, ns since 1970.
    pub(super) fn state(&self) -> (Option<String>, u64) {
        self.pinger.look(|seen| (seen.problem.clone(), seen.began_ns))
    }

    /// Tells by how much the latest answer of a place took longer than so many ns.
    pub(super) fn growth(&self, place: usize, idle: u64) -> impl Fn() -> Option<u64> + Send + 'static {
        let pinger = Arc::clone(&self.pinger);
        move || {
            pinger.look(|seen| {
                let requests = &seen.targets.get(place)?.requests;
                let recent =
                    requests.iter().rev().take_while(|request| request.sent_ns + RECENT > seen.now_ns);
                recent.filter_map(|request| request.took_ns).next().map(|took| took.saturating_sub(idle))
            })
        }
    }
}

/// The median of what a place answered within a window.
pub(super) fn median(place: &HopResult, window: (u64, u64)) -> Option<u64> {
    let within = place.requests.iter().filter(|request| (window.0..window.1).contains(&request.sent_ns));
    Durations::new(within.filter_map(|request| request.took_ns).collect()).percentile(50.0)
}
