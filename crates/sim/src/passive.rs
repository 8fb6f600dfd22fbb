//! What a machine sees of the TCP connections that pass it, without taking part: round trips by timestamps,
//! segments that are sent again, and what was acknowledged.
//!
//! Principle: a packet that leaves the machine has a timestamp (RFC 7323), and the packet that comes back
//! echoes it. The time between is a round trip beyond the machine: what waited inside is not in it (Nichols
//! 2018, "pping").

use crate::machine::Port;
use crate::transport_meta::{Role, TransportMeta};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use tidegate_packet::{Nanos, Time};

/// Timestamps of a connection that were not echoed yet; of more the oldest are forgotten.
const MAX_STAMPS: usize = 4096;
/// Sightings kept until they are taken.
const MAX_SIGHTINGS: usize = 65_536;

/// Something seen of a TCP connection whose packets pass the observed device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpSighting {
    /// When it was seen.
    pub at: Time,
    /// The connection, by number.
    pub flow: u32,
    /// Its data leaves by the device; otherwise it arrives there.
    pub outward: bool,
    /// What was seen.
    pub what: TcpSign,
}

/// What was seen of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpSign {
    /// A timestamp came back after this time.
    RoundTrip(Nanos),
    /// So many segments were acknowledged for the first time (of data that leaves).
    Acknowledged(u32),
    /// A segment passed that is not beyond all before it: it was sent again, or overtaken.
    Again,
}

/// A connection as seen at the device.
#[derive(Debug, Default)]
struct SeenFlow {
    /// Timestamps that left, in ms, and when each did first.
    stamps: VecDeque<(u32, Time)>,
    /// The first segment not seen yet, and the first not acknowledged.
    next: u32,
    acked: u32,
}

/// The observer at one device.
#[derive(Debug)]
pub(crate) struct PassiveTcp {
    pub(crate) port: Port,
    flows: Vec<SeenFlow>,
    pub(crate) seen: VecDeque<TcpSighting>,
}

impl PassiveTcp {
    pub(crate) fn new(port: Port) -> PassiveTcp {
        PassiveTcp { port, flows: Vec::new(), seen: VecDeque::new() }
    }

    /// A packet leaves by the device.
    pub(crate) fn leaves(&mut self, now: Time, meta: &TransportMeta) {
        let stamp = match meta.role {
            Role::Data => meta.stamp,
            Role::Ack => in_ms(meta.sent),
            _ => return,
        };
        if meta.role == Role::Data {
            self.is_again(now, meta, true);
        }
        let flow = self.flow(meta.owner);
        if flow.stamps.back().is_none_or(|(last, _)| *last < stamp) {
            if flow.stamps.len() == MAX_STAMPS {
                flow.stamps.pop_front();
            }
            flow.stamps.push_back((stamp, now));
        }
    }

    /// A packet has arrived at the device.
    pub(crate) fn arrives(&mut self, now: Time, meta: &TransportMeta) {
        let echo = match meta.role {
            Role::Ack => meta.ack.echo,
            Role::Data => in_ms(meta.sent),
            _ => return,
        };
        let outward = meta.role == Role::Ack;
        if outward {
            let ack = meta.ack.ack;
            let flow = self.flow(meta.owner);
            let more = ack.saturating_sub(flow.acked);
            flow.acked = flow.acked.max(ack);
            if more > 0 {
                self.note(now, meta.owner, outward, TcpSign::Acknowledged(more));
            }
        } else {
            self.is_again(now, meta, false);
        }
        let flow = self.flow(meta.owner);
        let mut left = None;
        while let Some(&(stamp, at)) = flow.stamps.front().filter(|(stamp, _)| *stamp <= echo) {
            left = (stamp == echo).then_some(at);
            flow.stamps.pop_front();
        }
        if let Some(left) = left {
            self.note(now, meta.owner, outward, TcpSign::RoundTrip(now.since(left)));
        }
    }

    fn is_again(&mut self, now: Time, meta: &TransportMeta, outward: bool) {
        let flow = self.flow(meta.owner);
        if meta.seq < flow.next {
            self.note(now, meta.owner, outward, TcpSign::Again);
        } else {
            flow.next = meta.seq + 1;
        }
    }

    fn flow(&mut self, owner: u32) -> &mut SeenFlow {
        let at = owner as usize;
        if self.flows.len() <= at {
            self.flows.resize_with(at + 1, SeenFlow::default);
        }
        &mut self.flows[at]
    }

    fn note(&mut self, at: Time, flow: u32, outward: bool, what: TcpSign) {
        if self.seen.len() == MAX_SIGHTINGS {
            self.seen.pop_front();
        }
        self.seen.push_back(TcpSighting { at, flow, outward, what });
    }
}

/// The clock of timestamps, in ms.
fn in_ms(at: Time) -> u32 {
    (at.0 / 1_000_000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ends, FlowSpec, GatewayMachine, LinkSpec, Net};
    use tidegate_gateway::{DeviceSpec, Gateway};
    use tidegate_packet::Nanos;

    /// An upload and a download through a machine's device: the round trips seen there are those of the links
    /// beyond it, not of the LAN's; all that is acknowledged is seen.
    #[test]
    fn round_trips_beyond_the_machine_are_seen_in_both_directions() {
        let mut gateway = Gateway::new();
        let wan = gateway.add_device("eth0", DeviceSpec::default());
        let mut net = Net::new(GatewayMachine::new(gateway, [wan], 1), 1, Time(0));
        let lan = net.link(LinkSpec::wire(Nanos::millis(30)));
        let out = net.link(LinkSpec::port(Port(0), Some(10_000_000), Nanos::millis(15)));
        let back = net.link(LinkSpec::wire(Nanos::millis(5)).into_port(Port(0)));
        let (up, down) = (net.path(&[lan, out]), net.path(&[back, lan]));
        net.watch_tcp(Port(0));
        let ends = Ends::v4([192, 168, 1, 2], 1000, [198, 51, 100, 7], 80);
        let upload = net.tcp(FlowSpec { bytes: Some(200_000), ..FlowSpec::bulk(ends, up, down) });
        let ends = Ends::v4([192, 168, 1, 2], 1001, [198, 51, 100, 7], 80);
        let of_download = FlowSpec { bytes: Some(200_000), ..FlowSpec::bulk(ends.back(), down, up) };
        net.tcp(FlowSpec { called: true, ..of_download });
        net.run(Time(20_000_000_000));
        assert_eq!(net.flow_stats(upload).acked, 200_000);

        let mut acked = 0;
        let mut least = [Nanos(u64::MAX); 2];
        for seen in net.take_tcp_sightings() {
            match seen.what {
                TcpSign::RoundTrip(rtt) => {
                    let least = &mut least[usize::from(seen.outward)];
                    *least = rtt.min(*least);
                }
                TcpSign::Acknowledged(segments) if seen.outward => acked += segments,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(acked, 200_000_u32.div_ceil(1448));
        for (least, name) in least.iter().zip(["download", "upload"]) {
            assert!(*least >= Nanos::millis(20) && *least < Nanos::millis(23), "{name}: {least:?}");
        }
    }
}
