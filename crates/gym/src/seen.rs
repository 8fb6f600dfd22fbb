//! What a controller sees of the network, as events.

use crate::case::GymCase;
use crate::network::GymNetwork;
use std::collections::VecDeque;
use tidegate_control::{ControlEvent, OneWayDelays, PerDirection, ProbeReply, RateDirection, ShaperCounters};
use tidegate_packet::{Nanos, Time};
use tidegate_policy::dump::QueueStats;
use tidegate_sim::TcpSign;

/// A probe without a reply counts as lost after this; its reply may still come until the other.
const LOST_AFTER: Nanos = Nanos::secs(1);
const GIVEN_UP_AFTER: Nanos = Nanos::secs(10);
/// Payload bytes of a full segment.
const SEGMENT: u64 = 1448;
/// By how much reflectors' clocks differ from ours, ns, times their number.
const CLOCK: i64 = 1_234_000_000;

/// A request without a reply yet.
struct OpenProbe {
    request: usize,
    /// It was called lost.
    lost: bool,
    /// Its reply was never sent.
    muted: bool,
}

/// Probes of one reflector.
#[derive(Default)]
struct Probing {
    /// The first request that is not in `open` yet.
    next: usize,
    /// Those without a reply.
    open: VecDeque<OpenProbe>,
    /// When it replied last, for its limit.
    replied: VecDeque<Time>,
}

/// The observer.
pub(crate) struct Seen {
    probing: Vec<Probing>,
    counted: PerDirection<QueueStats>,
    /// Ends of the events that are not given yet.
    pub(crate) events: Vec<(Time, ControlEvent)>,
    /// Replies that came, for the record: when, and the round trip.
    pub(crate) replies: Vec<(Time, Nanos)>,
}

impl Seen {
    pub(crate) fn new(network: &GymNetwork) -> Seen {
        Seen {
            probing: network.reflectors.iter().map(|_| Probing::default()).collect(),
            counted: PerDirection::default(),
            events: Vec::new(),
            replies: Vec::new(),
        }
    }

    /// Collects what happened until now, in the order of time.
    pub(crate) fn collect(&mut self, case: &GymCase, network: &mut GymNetwork, began: Time) {
        let now = network.net.now();
        let first = self.events.len();
        for (number, probe) in (0..).zip(&network.reflectors) {
            let echoes = network.net.echoes(*probe);
            let probing = &mut self.probing[usize::from(number)];
            while probing.next < echoes.len() {
                probing.open.push_back(OpenProbe { request: probing.next, lost: false, muted: false });
                probing.next += 1;
            }
            let (events, replies) = (&mut self.events, &mut self.replies);
            let replied = &mut probing.replied;
            probing.open.retain_mut(|open| {
                let echo = echoes[open.request];
                if let Some(rtt) = echo.rtt.filter(|_| !open.muted) {
                    let at = echo.sent + rtt;
                    // A reply that its target was not allowed to send never comes.
                    open.muted = is_limited(case, replied, at);
                    if !open.muted {
                        let there = echo.there.unwrap_or(Nanos(rtt.0 / 2));
                        let one_way = (!case.faults.no_timestamps)
                            .then(|| stamped(case, number, (echo.sent, there, rtt), began));
                        let reply = ProbeReply { reflector: number, sent: echo.sent, rtt, one_way };
                        events.push((at, ControlEvent::ProbeReply(reply)));
                        replies.push((at, rtt));
                        return false;
                    }
                }
                if !open.lost && now.since(echo.sent) >= LOST_AFTER {
                    open.lost = true;
                    let event = ControlEvent::ProbeLost { reflector: number, sent: echo.sent };
                    events.push((echo.sent + LOST_AFTER, event));
                }
                now.since(echo.sent) < GIVEN_UP_AFTER && !(open.lost && open.muted)
            });
        }
        for seen in network.net.take_tcp_sightings() {
            let data = if seen.outward { RateDirection::Up } else { RateDirection::Down };
            let event = match seen.what {
                TcpSign::RoundTrip(rtt) => ControlEvent::TcpRoundTrip { flow: seen.flow, data, rtt },
                TcpSign::Acknowledged(segments) => {
                    ControlEvent::Acknowledged(u64::from(segments) * (SEGMENT + FRAME_HEADERS))
                }
                TcpSign::Again => ControlEvent::Retransmission(data),
            };
            self.events.push((seen.at, event));
        }
        self.events[first..].sort_by_key(|(at, _)| *at);
    }

    /// Reads both shapers' counters.
    pub(crate) fn counters(&mut self, network: &mut GymNetwork) -> PerDirection<ShaperCounters> {
        let now = network.net.now();
        PerDirection::of(|direction| {
            let device = network.devices[direction];
            let dumps = network.net.machine.gateway.qdiscs(now, device);
            let root = dumps.iter().find(|dump| dump.parent == tidegate_packet::Handle::ROOT);
            let stats = root.map_or_else(QueueStats::default, |dump| dump.stats);
            let before = std::mem::replace(&mut self.counted[direction], stats);
            let sent = stats.bytes.saturating_sub(before.bytes);
            let backlog = u64::from(stats.backlog);
            // What came is what left and what waits now, less what waited before.
            let arrived = (sent + backlog).saturating_sub(u64::from(before.backlog));
            let dropped = u64::from(stats.drops.saturating_sub(before.drops));
            ShaperCounters { arrived, sent, dropped, backlog }
        })
    }
}

/// Bytes of the headers of a full segment's frame.
const FRAME_HEADERS: u64 = 1514 - SEGMENT;

/// Has the reflector replied as often as it does in a second?
fn is_limited(case: &GymCase, replied: &mut VecDeque<Time>, at: Time) -> bool {
    let Some(limit) = case.faults.icmp_per_second else { return false };
    while replied.front().is_some_and(|first| at.since(*first) >= Nanos::secs(1)) {
        replied.pop_front();
    }
    let limited = replied.len() >= limit as usize;
    if !limited {
        replied.push_back(at);
    }
    limited
}

/// Delays one way by the clocks of both ends, in whole milliseconds as ICMP has them.
fn stamped(
    case: &GymCase,
    reflector: u16,
    (sent, there, rtt): (Time, Nanos, Nanos),
    began: Time,
) -> OneWayDelays {
    let set = case.faults.clock_step.filter(|_| sent >= began + case.warm_up + CLOCK_SET_AFTER);
    // How far the reflector's clock is before ours.
    let ahead = CLOCK * (i64::from(reflector) - 3) - set.map_or(0, |step| step.0 as i64);
    let ms = |ns: i64| ns.div_euclid(1_000_000) * 1_000_000;
    OneWayDelays { up: ms(there.0 as i64 + ahead), down: ms((rtt.0 - there.0) as i64 - ahead) }
}

/// When the clock is set, from the begin of what is measured.
const CLOCK_SET_AFTER: Nanos = Nanos::secs(5);
