//! The home of a case, its line, and what is beyond.
//!
//! ```text
//! hosts ─▶ eth0 [shaper] ─▶ modem ═ line ═▶ path ─▶ servers, reflectors
//!       ◀─ ifb0 [shaper] ◀─ eth0 ◀═ line ═ provider ◀─ path ◀─┘
//! ```

use crate::case::{GymCase, GymLoad};
use crate::shaper;
use tidegate_control::{PerDirection, RateDirection};
use tidegate_gateway::{DeviceId, GatewayContext};
use tidegate_packet::{Nanos, Pool, Seeded, Time};
use tidegate_sim::{
    CongestionControl, Ends, FlowSpec, GatewayMachine, Impairment, Limit, LinkId, LinkSpec, LossModel, Net,
    PathId, Port, ProbeId, ProbeSpec, Reorder, SourceId, SourceSpec,
};

/// When a run begins: late enough for a recording that began before.
pub(crate) const START: Time = Time(1_000_000_000_000);
/// Wires at home and to the modem, bit/s.
const WIRE: u64 = 1_000_000_000;
/// Hosts' irregularity.
const JITTER: Nanos = Nanos::micros(50);
/// Reflectors, and how often each is probed: cake-autorate's six each 0.3 s, and two to spare.
pub(crate) const REFLECTORS: u16 = 8;
const PROBE_EACH: Nanos = Nanos::millis(300);
/// Bytes behind the ICMP header of a probe.
const PROBE_DATA: u32 = 20;
/// A call: 200 bytes each 20 ms, both ways.
const CALL_EACH: Nanos = Nanos::millis(20);
const CALL_FRAME: u32 = 14 + 20 + 8 + 200;

/// The network of a case.
pub(crate) struct GymNetwork {
    pub(crate) net: Net<GatewayMachine>,
    pub(crate) devices: PerDirection<DeviceId>,
    /// The line's own links: the modem's and the provider's.
    pub(crate) line: PerDirection<LinkId>,
    pub(crate) reflectors: Vec<ProbeId>,
    /// Links to reflectors, by which they die.
    pub(crate) to_reflectors: Vec<LinkId>,
    pub(crate) call: PerDirection<SourceId>,
    /// When the line's recording began.
    pub(crate) began: Time,
}

/// Ways through the network.
struct Ways {
    up: PathId,
    down: PathId,
}

/// Builds it, with these rates to begin with.
///
/// # Errors
/// A command that the machine refuses.
pub(crate) fn build(case: &GymCase, rates: PerDirection<u64>) -> Result<GymNetwork, String> {
    // The machine's commands make no packets: a pool of their own does.
    let mut pool = Pool::new(16);
    let mut random = Seeded::new(case.seed).fork(1);
    let made = shaper::gateway(case.shaper, rates, &mut pool, &mut random)?;
    let devices = made.devices;
    let machine = GatewayMachine::new(made.gateway, [devices.up, devices.down], case.seed);
    let mut net = Net::new(machine, case.seed, START);
    let end = START + case.warm_up + case.duration;

    let from_host = net.link(LinkSpec::wire(Nanos(0)).jitter(JITTER));
    let to_host = net.link(LinkSpec::wire(Nanos(0)));
    let wan = net.link(LinkSpec::port(Port(0), Some(WIRE), Nanos(0)));
    net.link(LinkSpec::returning(Port(1)));
    let means = case.line.means();
    let line = |direction: RateDirection| {
        let buffer = Limit::Bytes(case.line.buffers[direction]);
        LinkSpec::drop_tail(means[direction], Nanos(0), buffer).jitter(case.faults.jitter)
    };
    let modem = net.link(line(RateDirection::Up));
    let provider = net.link(line(RateDirection::Down).into_port(Port(0)));
    let began = Time(START.0 - case.line.skip.0.min(START.0));
    net.follow_since(modem, case.line.traces.up.clone(), began);
    net.follow_since(provider, case.line.traces.down.clone(), began);
    if case.faults.reordered > 0.0 {
        let reorder = Reorder { share: case.faults.reordered, by: Nanos::millis(20) };
        net.impair(provider, Impairment { reorder, ..Impairment::default() });
    }

    // Beyond the line: a wire, another shaper, or a link that others use too.
    let half_second = |rate: u64| Limit::Bytes((rate / 16).max(15_140));
    let beyond = |mean: u64, rival: bool| match case.faults.upstream_share {
        Some(share) => {
            let rate = (mean as f64 * share) as u64;
            LinkSpec::drop_tail(rate.max(1), Nanos(0), half_second(rate))
        }
        None if case.faults.rival && rival => {
            let rate = mean * 5 / 4;
            LinkSpec::drop_tail(rate.max(1), Nanos(0), Limit::Bytes((rate / 53).max(15_140)))
        }
        None => LinkSpec::wire(Nanos(0)),
    };
    let out = net.link(beyond(means.up, false));
    let back = net.link(beyond(means.down, true));
    let far = Nanos(case.rtt.0 / 2);
    let to_server = net.link(LinkSpec::wire(far));
    let from_server = net.link(LinkSpec::wire(Nanos(case.rtt.0 - far.0)).jitter(JITTER));
    let ways = Ways {
        up: net.path(&[from_host, wan, modem, out, to_server]),
        down: net.path(&[from_server, back, provider, to_host]),
    };

    net.watch_tcp(Port(0));
    let (mut reflectors, mut to_reflectors) = (Vec::new(), Vec::new());
    // Probes that see no queue: as fast as the line is when nothing waits.
    let past = case.faults.blind_probes.then(|| {
        let delay = |direction: RateDirection| case.line.traces[direction].mean_delay().unwrap_or(Nanos(0));
        let up = net.link(LinkSpec::wire(delay(RateDirection::Up)));
        (up, net.link(LinkSpec::wire(delay(RateDirection::Down)).into_port(Port(0))))
    });
    for n in 0..REFLECTORS {
        let delay = Nanos::millis(2 + 3 * u64::from(n));
        let there = net.link(LinkSpec::wire(delay));
        let home = net.link(LinkSpec::wire(delay));
        let (line_up, line_down) = past.unwrap_or((modem, provider));
        let forward = net.path(&[wan, line_up, out, there]);
        let back = net.path(&[home, back, line_down]);
        let begin = Nanos(PROBE_EACH.0 * u64::from(n) / u64::from(REFLECTORS));
        reflectors.push(net.ping(ProbeSpec {
            ends: Ends::v4([192, 0, 2, 1], 100 + n, [203, 0, 113, 1 + n as u8], 0),
            forward,
            back,
            start: START + begin,
            stop: end,
            interval: PROBE_EACH,
            data: PROBE_DATA,
            dsfield: 0,
        }));
        to_reflectors.push(there);
    }
    let call = |up: bool| {
        let ends = Ends::v4([192, 168, 1, 3], 16384, [198, 51, 100, 8], 16384);
        let (ends, path) = if up { (ends, ways.up) } else { (ends.back(), ways.down) };
        let start = START + Nanos::millis(if up { 7 } else { 13 });
        let steady = SourceSpec::steady(ends, path, CALL_FRAME, CALL_EACH);
        SourceSpec { start, stop: end, record: true, ..steady }
    };
    let call = PerDirection { up: net.source(call(true)), down: net.source(call(false)) };
    load(&mut net, case, &ways, end);
    if case.faults.rival {
        rival(&mut net, from_server, back);
    }
    let line = PerDirection { up: modem, down: provider };
    Ok(GymNetwork { net, devices, line, reflectors, to_reflectors, call, began })
}

fn load(net: &mut Net<GatewayMachine>, case: &GymCase, ways: &Ways, end: Time) {
    let mut number = 0;
    let mut transfer = |up: bool, control: CongestionControl, begin: Nanos, stop: Option<Nanos>| {
        let port = 40_000 + number;
        number += 1;
        let ends = Ends::v4([192, 168, 1, 2], port, [198, 51, 100, 7], 443);
        let base = if up {
            FlowSpec::bulk(ends, ways.up, ways.down)
        } else {
            FlowSpec::bulk(ends.back(), ways.down, ways.up)
        };
        // Beyond the end, so that queues are as they were until then.
        let stop = stop.map_or(end + Nanos::secs(1), |stop| START + stop);
        net.tcp(FlowSpec { control, start: START + begin, stop, called: !up, ..base });
    };
    let at = |n: u64| Nanos::millis(20 * n);
    let (cubic, bbr) = (CongestionControl::Cubic, CongestionControl::Bbr);
    match case.load {
        GymLoad::Idle => {}
        GymLoad::Up => (0..2).for_each(|n| transfer(true, cubic, at(n), None)),
        GymLoad::Down => (0..3).for_each(|n| transfer(false, cubic, at(n), None)),
        GymLoad::Both => {
            transfer(true, cubic, at(0), None);
            (1..3).for_each(|n| transfer(false, cubic, at(n), None));
        }
        GymLoad::Bbr => {
            transfer(true, bbr, at(0), None);
            transfer(false, bbr, at(1), None);
        }
        GymLoad::Bursts => {
            let length = case.warm_up + case.duration;
            for n in 0..length.0.div_ceil(BURST_EVERY.0) {
                let begin = Nanos(n * BURST_EVERY.0);
                transfer(true, cubic, begin, Some(begin + BURST));
                transfer(false, cubic, begin + Nanos::millis(20), Some(begin + BURST));
            }
        }
    }
}

/// Transfers that begin and end.
const BURST: Nanos = Nanos::secs(4);
const BURST_EVERY: Nanos = Nanos::secs(8);

/// A download of others' through the link beyond the line.
fn rival(net: &mut Net<GatewayMachine>, from_server: LinkId, back: LinkId) {
    let away = net.link(LinkSpec::wire(Nanos::millis(10)));
    let home = net.link(LinkSpec::wire(Nanos::millis(10)));
    let (down, up) = (net.path(&[from_server, back, away]), net.path(&[home]));
    let ends = Ends::v4([198, 51, 100, 9], 443, [203, 0, 113, 200], 50_000);
    net.tcp(FlowSpec { start: START + Nanos::secs(2), ..FlowSpec::bulk(ends, down, up) });
}

impl GymNetwork {
    /// Reflectors die: nothing that is sent to them arrives.
    pub(crate) fn kill_reflectors(&mut self, count: u16) {
        for &link in self.to_reflectors.iter().take(usize::from(count)) {
            let all = Impairment { loss: LossModel::Random(1.0), ..Impairment::default() };
            self.net.impair(link, all);
        }
    }

    /// Sets a rate, as `tc qdisc change` does.
    ///
    /// # Errors
    /// As tc or the kernel refuses it.
    pub(crate) fn set_rate(
        &mut self,
        case: &GymCase,
        direction: RateDirection,
        rate: u64,
    ) -> Result<(), String> {
        let op = shaper::change(case.shaper, direction, rate)?;
        self.net.with_machine(|machine, pool, now| {
            let context = GatewayContext { now, pool, random: &mut machine.random };
            machine.gateway.apply(context, &op).map(|_| ()).map_err(|error| error.to_string())
        })
    }
}
