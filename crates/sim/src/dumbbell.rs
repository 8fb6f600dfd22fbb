//! The reference dumbbell: n bulk flows and a ping through one bottleneck.
//!
//! s_i - 1 Gbit/s, 1 ms - router = bottleneck, 18 ms = router - 1 Gbit/s, 1 ms - d_i.

use crate::link::{LinkId, LinkSpec};
use crate::machine::{Forwarder, Limit, Port};
use crate::net::Net;
use crate::probe::ProbeSpec;
use crate::tcp::cc::CongestionControl;
use crate::tcp_flow::EcnCodepoint;
use crate::tcp_flow::FlowSpec;
use crate::transport_meta::{FlowId, ProbeId};
use crate::wire::Ends;
use alloc::vec::Vec;
use tidegate_packet::{Nanos, Time};

/// A dumbbell: TCP flows with one bottleneck, and a ping beside them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DumbbellSpec {
    /// Bits per second of the bottleneck.
    pub bits_per_second: u64,
    /// Flows; flow i begins at 0.1 + 0.01 i seconds.
    pub flows: u32,
    /// Their congestion control.
    pub control: CongestionControl,
    /// Whether and how the flows use ECN.
    pub ecn: EcnCodepoint,
    /// Each packet of a host is delayed by between 0 and this, uniformly.
    pub jitter: Nanos,
    /// `None`: the bottleneck's queue is the machine's port 0, its device holding one packet; otherwise a
    /// drop-tail queue.
    pub queue: Option<Limit>,
    /// When the flows end.
    pub end: Time,
}

/// The dumbbell, ready to run.
#[derive(Debug)]
pub struct Dumbbell {
    /// The link that all flows share.
    pub bottleneck: LinkId,
    /// The flows, in the order in which they begin.
    pub flows: Vec<FlowId>,
    /// A ping of 56 bytes of data, ten a second.
    pub ping: ProbeId,
}

/// Builds it in an empty network.
pub fn dumbbell<M: Forwarder>(net: &mut Net<M>, spec: &DumbbellSpec) -> Dumbbell {
    let access = LinkSpec::drop_tail(1_000_000_000, Nanos::millis(1), Limit::None);
    let session = Nanos::millis(18);
    let bottleneck = net.link(match spec.queue {
        Some(limit) => LinkSpec::drop_tail(spec.bits_per_second, session, limit),
        None => LinkSpec::port(Port(0), Some(spec.bits_per_second), session),
    });
    let returning = net.link(LinkSpec::drop_tail(spec.bits_per_second, session, Limit::None));
    let paths = |net: &mut Net<M>| {
        let [from, to, answer, home] =
            [spec.jitter, Nanos(0), spec.jitter, Nanos(0)].map(|j| net.link(access.jitter(j)));
        (net.path(&[from, bottleneck, to]), net.path(&[answer, returning, home]))
    };
    let ends = |i: u32| {
        let [high, low] = ((i + 1) as u16).to_be_bytes();
        Ends::v4([10, 1, high, low], 49152, [10, 101, high, low], 5000)
    };
    let mut flows = Vec::new();
    for i in 0..spec.flows {
        let (forward, back) = paths(net);
        flows.push(net.tcp(FlowSpec {
            control: spec.control,
            ecn: spec.ecn,
            start: Time(0) + Nanos::millis(100 + 10 * u64::from(i)),
            stop: spec.end,
            ..FlowSpec::bulk(ends(i), forward, back)
        }));
    }
    let (forward, back) = paths(net);
    let ping = net.ping(ProbeSpec {
        ends: ends(spec.flows),
        forward,
        back,
        start: Time(0) + Nanos::millis(50),
        stop: spec.end,
        interval: Nanos::millis(100),
        data: 56,
        dsfield: 0,
    });
    Dumbbell { bottleneck, flows, ping }
}
