//! A packet in a chain: which conditions are evaluated, and what is done to it.

use super::carried::CarriedHeader;
use super::seen::RuleTrace;
use crate::conntrack::{self, Conntrack, network_len};
use crate::headers::Outer;
use alloc::vec::Vec;
use tidegate_packet::header::ethertype;
use tidegate_packet::{LinuxVersion, Meta, Pkt, Pool};
use tidegate_policy::netfilter::{Condition, ConnmarkTarget, Hook, Match, NetfilterTarget};

/// Where a packet is on its way: which devices `-i` and `-o` may ask for.
#[derive(Clone, Copy, Debug, Default)]
pub struct HookDevices<'a> {
    /// The device it came in by; empty for packets of the machine's own.
    pub input: &'a str,
    /// The device it will leave by; empty before routing.
    pub output: &'a str,
    /// The release of Linux whose netfilter it is.
    pub linux: LinuxVersion,
}

/// A packet in a chain.
pub(super) struct Visit<'a> {
    pub(super) place: HookDevices<'a>,
    pub(super) connections: &'a mut Conntrack,
    pub(super) pool: &'a mut Pool,
    pub(super) pkt: &'a Pkt,
    pub(super) steps: u32,
    pub(super) hook: Option<Hook>,
    pub(super) watch: Option<&'a mut Vec<RuleTrace>>,
}

impl Visit<'_> {
    /// Does what does not decide.
    pub(super) fn alter(&mut self, target: &NetfilterTarget) {
        let meta = self.pool.meta_mut(self.pkt);
        match target {
            NetfilterTarget::Mark { value, mask } => meta.mark.0 = (meta.mark.0 & !mask) ^ value,
            NetfilterTarget::Connmark(action) => remark(action, self.connections, meta),
            NetfilterTarget::Notrack(_) => conntrack::untrack(meta),
            NetfilterTarget::Classify(class) => meta.priority = class.0,
            NetfilterTarget::Dscp(dscp) => meta.dsfield = meta.dsfield & 3 | dscp << 2,
            NetfilterTarget::Tos(value, mask) => meta.dsfield = (meta.dsfield & !mask) ^ value,
            _ => {}
        }
        self.changed();
    }

    pub(super) fn matches(&self, m: &Match) -> bool {
        self.truth(&m.what).is_some_and(|truth| truth != m.not)
    }

    /// `None`: it does not hold, inverted or not.
    fn truth(&self, what: &Condition) -> Option<bool> {
        let meta = self.pool.meta(self.pkt);
        Some(match what {
            Condition::In(name) => names(name, self.place.input),
            Condition::Out(name) => names(name, self.place.output),
            Condition::Mark(value, mask) => meta.mark.0 & mask == *value,
            // Without a connection there is no mark to ask for.
            Condition::Connmark(value, mask) => self.connections.mark(meta)? & mask == *value,
            Condition::Connstate(states) | Condition::State(states) => states.has(conntrack::state(meta)),
            Condition::Comment(_) => true,
            Condition::Connbytes(range) => {
                let (packets, bytes) = self.connections.counters(meta)?;
                range.matches(packets, bytes)
            }
            Condition::Length(low, high) => (u64::from(*low)..=u64::from(*high)).contains(&network_len(meta)),
            Condition::Dscp(dscp) => meta.dsfield >> 2 == *dscp,
            Condition::Tos(value, mask) => meta.dsfield & mask == *value,
            Condition::Version6(v6) => (meta.ethertype == ethertype::IPV6) == *v6,
            Condition::Any(several) => return self.any(several),
            header => return reads_header(header, self.pool.head(self.pkt).network(), self.place.linux),
        })
    }

    fn any(&self, several: &[Condition]) -> Option<bool> {
        let mut known = several.is_empty();
        for what in several {
            match self.truth(what) {
                Some(true) => return Some(true),
                Some(false) => known = true,
                None => {}
            }
        }
        known.then_some(false)
    }
}

/// `-j CONNMARK`.
fn remark(action: &ConnmarkTarget, connections: &mut Conntrack, meta: &mut Meta) {
    let Some(mark) = connections.mark(meta) else { return };
    match action {
        ConnmarkTarget::Set { value, mask } => connections.set_mark(meta, (mark & !mask) ^ value),
        ConnmarkTarget::Save { nfmask, ctmask } => {
            connections.set_mark(meta, (mark & !ctmask) ^ (meta.mark.0 & nfmask))
        }
        ConnmarkTarget::Restore { nfmask, ctmask } => meta.mark.0 = (meta.mark.0 & !nfmask) ^ (mark & ctmask),
    }
}

/// A condition on the bytes of a packet; `None` where they are not there.
fn reads_header(what: &Condition, network: &[u8], linux: LinuxVersion) -> Option<bool> {
    let outer = Outer::read(network);
    let header = CarriedHeader::of(&outer, what, network, linux);
    let inside =
        |ranges: &[(u16, u16)], port: u16| ranges.iter().any(|(low, high)| (*low..=*high).contains(&port));
    Some(match what {
        Condition::Protocol(0) => true,
        Condition::Protocol(wanted) => header.protocol? == *wanted,
        Condition::Source(net, bits) => within(outer.source, *net, *bits, outer.v6),
        Condition::Destination(net, bits) => within(outer.destination, *net, *bits, outer.v6),
        Condition::SourcePort(range) => inside(&[*range], header.ports?.0),
        Condition::DestinationPort(range) => inside(&[*range], header.ports?.1),
        Condition::SourcePorts(ranges) => inside(ranges, header.ports?.0),
        Condition::DestinationPorts(ranges) => inside(ranges, header.ports?.1),
        Condition::Ports(ranges) => inside(ranges, header.ports?.0) || inside(ranges, header.ports?.1),
        Condition::TcpFlags(mask, flags) => header.tcp_flags? & mask == *flags,
        Condition::IcmpType(kind, (low, high)) => {
            let (seen, code) = header.icmp?;
            *kind == 255 || seen == *kind && (*low..=*high).contains(&code)
        }
        _ => false,
    })
}

fn within(address: [u8; 16], net: [u8; 16], bits: u8, v6: bool) -> bool {
    let skip = if v6 { 0 } else { 96 };
    let bits = (skip + u32::from(bits)).min(128);
    if bits == skip {
        return true;
    }
    let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
    (u128::from_be_bytes(address) ^ u128::from_be_bytes(net)) & mask == 0
}

fn names(pattern: &str, device: &str) -> bool {
    match pattern.strip_suffix('+') {
        Some(prefix) => device.starts_with(prefix),
        None => device == pattern,
    }
}
