//! The hops on the path, and how long they take to reply.
//!
//! ```text
//! echo requests, 25 a second ── not allowed, or not answered ──▶ packets that the server sends back, 25 a
//! second
//!                                                               └─ no server ──▶ TCP connections, 5 a second
//! hops: echo requests to their own addresses ── not allowed ──▶ UDP whose hop limit ends there, 1 a second
//! ```

use crate::error::{Context, Result};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tidegate_measure::Durations;
use tidegate_measure::pinged::PingRequest;
use tidegate_measure::quick::HopResult;
use tidegate_prober::hops::{self, Hop};
use tidegate_prober::ping::{PingMethod, PingSchedule, Pinger};
use tidegate_prober::round_trips::{LEAST_BETWEEN_CONNECTIONS, RoundTrips, answering_port};
use tidegate_prober::{Error, ServerSession};

/// Hops that are looked for: the LAN's gateway, a modem, the provider's first router, and one behind it.
const HOPS: u8 = 4;
/// From one question to the next.
const OFTEN: Duration = Duration::from_millis(40);
/// Older requests show nothing of the present.
const RECENT: u64 = 3_000_000_000;
/// The port that traceroute's datagrams go to, where no program listens.
const TRACED: u16 = 33_434;
/// Ports that hosts of others answer: HTTPS, HTTP, DNS, SSH.
const USUAL_PORTS: [u16; 4] = [443, 80, 53, 22];
/// How echo requests become allowed.
const ALLOWS: &str = "as root, `sysctl -w net.ipv4.ping_group_range='0 2147483647'` allows them to every \
user \
    until the next boot";

/// The host at the path's end.
pub(super) struct Remote<'r> {
    /// As it was named.
    pub(super) name: &'r str,
    /// Its address.
    pub(super) address: IpAddr,
    /// A session with it, if it has `tidegate serve`.
    pub(super) server: Option<&'r ServerSession>,
    /// The port of its page, if one was named.
    pub(super) port: Option<u16>,
}

/// All hops on the path, pinged repeatedly.
pub(super) struct Watch {
    pinger: Option<Arc<Pinger>>,
    /// The round trips of the last place, where they are not echo requests.
    trips: Option<RoundTrips>,
    /// When it began.
    pub(super) began: Instant,
    /// The server's address.
    pub(super) far: IpAddr,
    /// As `places`, before anything was sent.
    who: Vec<(String, Option<u8>)>,
    /// How round trips are measured, where that is not by echo requests.
    pub(super) method: Option<String>,
    /// Are echo requests allowed?
    pub(super) may_echo: bool,
    /// Are they allowed, and answered by the host?
    pub(super) has_echo: bool,
    /// Hops are asked once a second only.
    pub(super) is_slow: bool,
}

/// A target before it is asked, with its name and distance.
type Planned = (PingSchedule, String, Option<u8>);

impl Watch {
    /// Finds the hops on the path to a host, and begins to ask them.
    ///
    /// # Errors
    /// There is no route.
    pub(super) fn begin(to: &Remote<'_>) -> Result<Watch> {
        let far = to.address;
        let traced = match hops::find(far, PingMethod::Icmp, HOPS) {
            Err(Error::NotAllowed { .. }) => None,
            found => Some(found.context(format!("looking for the way to {}", to.name))?),
        };
        let is_allowed = traced.is_some();
        // Without ICMP the way may stay unknown; the host may answer nevertheless.
        let found =
            traced.unwrap_or_else(|| hops::find(far, PingMethod::Udp(TRACED), HOPS).unwrap_or_default());
        let has_echo = is_allowed && hops::answers_echo(far).unwrap_or(false);
        let mut plans = near(&found, far, is_allowed);
        let distance = found.iter().find(|hop| hop.is_host).map(|hop: &Hop| hop.distance);
        let named =
            if to.name == far.to_string() { to.name.to_owned() } else { format!("{} ({far})", to.name) };
        if has_echo {
            let mut plan = PingSchedule::new(&far.to_string(), tidegate_prober::AddressFamily::Any)?;
            plan.interval = OFTEN;
            plans.push((plan, named.clone(), distance));
        }
        let schedules: Vec<PingSchedule> = plans.iter().map(|(plan, ..)| plan.clone()).collect();
        let pinger = if schedules.is_empty() { None } else { Some(Arc::new(Pinger::begin(&schedules)?)) };
        let began = Instant::now();
        let mut who: Vec<(String, Option<u8>)> =
            plans.into_iter().map(|(_, name, distance)| (name, distance)).collect();
        let (mut trips, mut method) = (None, None);
        if !has_echo {
            let (way, added, trip) = without_echo(to, began)?;
            who.push((format!("{named}{added}"), distance));
            let why = if is_allowed {
                format!("{named} answers no echo requests")
            } else {
                format!("this user may not send echo requests ({ALLOWS})")
            };
            (trips, method) = (trip, Some(format!("{way}, because {why}")));
        }
        let is_slow = !is_allowed && who.len() > 1;
        Ok(Watch { pinger, trips, began, far, who, method, may_echo: is_allowed, has_echo, is_slow })
    }

    /// ns since the beginning.
    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// What everyone answered so far.
    pub(super) fn places(&self) -> Vec<HopResult> {
        let pinged = |pinger: &Arc<Pinger>| {
            pinger.look(|seen| seen.targets.iter().map(|target| target.requests.clone()).collect::<Vec<_>>())
        };
        let mut all: Vec<Vec<PingRequest>> = self.pinger.as_ref().map(pinged).unwrap_or_default();
        all.extend(self.trips.as_ref().map(RoundTrips::requests));
        all.resize(self.who.len(), Vec::new());
        let place = |((name, distance), requests): (&(String, Option<u8>), Vec<PingRequest>)| HopResult {
            name: name.clone(),
            distance: *distance,
            requests,
        };
        self.who.iter().zip(all).map(place).collect()
    }

    /// Whose answers stopped early, and why; when it began, ns since 1970.
    pub(super) fn state(&self) -> (Option<String>, u64) {
        match &self.pinger {
            Some(pinger) => pinger.look(|seen| (seen.problem.clone(), seen.began_ns)),
            None => {
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
                let now = u64::try_from(now.unwrap_or_default().as_nanos()).unwrap_or(u64::MAX);
                (None, now.saturating_sub(self.now()))
            }
        }
    }

    /// By how much the latest reply of a pinged place took longer than so many ns.
    pub(super) fn growth(&self, place: usize, idle: u64) -> impl Fn() -> Option<u64> + Send + 'static {
        let pinger = self.pinger.clone();
        move || {
            pinger.as_ref()?.look(|seen| {
                let requests = &seen.targets.get(place)?.requests;
                let recent =
                    requests.iter().rev().take_while(|request| request.sent_ns + RECENT > seen.now_ns);
                recent.filter_map(|request| request.took_ns).next().map(|took| took.saturating_sub(idle))
            })
        }
    }
}

/// How the hops before the host are asked: by echo requests, or once a second through the hop limit where
/// these are not allowed.
fn near(found: &[Hop], far: IpAddr, is_allowed: bool) -> Vec<Planned> {
    let (way, often) =
        if is_allowed { (PingMethod::Icmp, OFTEN) } else { (PingMethod::Udp(TRACED), hops::SLOWLY) };
    let mut plans = Vec::new();
    for hop in found.iter().filter(|hop| !hop.is_host) {
        let (Some(plan), Some(address)) = (hops::watch(hop, far, way, often), hop.address) else {
            continue;
        };
        // Where others are asked 25 times a second, one that replies once a second is too slow to compare.
        if plan.interval == often {
            plans.push((plan, format!("hop {} ({address})", hop.distance), Some(hop.distance)));
        }
    }
    plans
}

/// Round trips to a host that are no echo requests: how, what the host's name gets added, and the requests.
fn without_echo(to: &Remote<'_>, began: Instant) -> Result<(String, String, Option<RoundTrips>)> {
    if let Some(session) = to.server {
        let trips = RoundTrips::by_server(session, OFTEN, began)?;
        let way = "round trips are those of UDP packets that the server sends back".to_owned();
        return Ok((way, ", UDP".to_owned(), Some(trips)));
    }
    let ports: Vec<u16> = to.port.into_iter().chain(USUAL_PORTS).collect();
    let Some(port) = answering_port(to.address, &ports) else {
        let listed = ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ");
        let way = format!("nothing was measured: none of the TCP ports {listed} answers either");
        return Ok((way, String::new(), None));
    };
    let trips = RoundTrips::by_connecting(port.at, LEAST_BETWEEN_CONNECTIONS, began)?;
    let how = if port.is_refused { "be refused" } else { "open" };
    let way = format!(
        "round trips are the time that a TCP connection to {} takes to {how}, five times a second (a lost \
            SYN \
        shows as one second more)",
        port.at
    );
    Ok((way, format!(", TCP port {}", port.at.port()), Some(trips)))
}

/// The median of what a place answered within a window.
pub(super) fn median(place: &HopResult, window: (u64, u64)) -> Option<u64> {
    let within = place.requests.iter().filter(|request| (window.0..window.1).contains(&request.sent_ns));
    Durations::new(within.filter_map(|request| request.took_ns).collect()).percentile(50.0)
}
