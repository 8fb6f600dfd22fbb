//! What rules and filters ask of a packet, in a short policy's words; what has none is named.

use super::compile::CONTROL_PORTS;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use tidegate_policy::U32Params;
use tidegate_policy::netfilter::{Condition, CountMode, Rule, Target};

/// What a class is for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Asks {
    /// Protocol, from one to another.
    pub(super) ports: Vec<(Option<u8>, u16, u16)>,
    pub(super) dscp: Vec<u8>,
    pub(super) hosts: Vec<String>,
    pub(super) after: Option<u64>,
    /// What the rules call it.
    pub(super) name: Option<String>,
}

impl Asks {
    pub(super) fn is_empty(&self) -> bool {
        *self == Asks::default()
    }

    /// Is it nothing but what a short policy lets never wait anyway?
    pub(super) fn is_control(&self) -> bool {
        let of_control = |(_, low, high): &(Option<u8>, u16, u16)| {
            CONTROL_PORTS.iter().any(|(first, last)| (*first..=*last).contains(low) && high <= last)
        };
        let others = self.dscp.is_empty() && self.hosts.is_empty() && self.after.is_none();
        others && !self.ports.is_empty() && self.ports.iter().all(of_control)
    }

    /// The ports, those of one protocol together.
    pub(super) fn port_texts(&self) -> Vec<String> {
        let mut ports = self.ports.clone();
        ports.sort_unstable();
        let mut merged: Vec<(Option<u8>, u16, u16)> = Vec::new();
        for (protocol, low, high) in ports {
            match merged.last_mut() {
                Some(last) if last.0 == protocol && low <= last.2.saturating_add(1) => last.2 = last.2.max(high),
                _ => merged.push((protocol, low, high)),
            }
        }
        merged.into_iter().map(|(protocol, low, high)| port_text(protocol, low, high)).collect()
    }

    pub(super) fn take(&mut self, other: Asks) {
        for port in other.ports {
            if !self.ports.contains(&port) {
                self.ports.push(port);
            }
        }
        for dscp in other.dscp {
            if !self.dscp.contains(&dscp) {
                self.dscp.push(dscp);
            }
        }
        for host in other.hosts {
            if !self.hosts.contains(&host) {
                self.hosts.push(host);
            }
        }
        self.after = self.after.or(other.after);
        self.name = self.name.take().or(other.name);
    }
}

/// Does a rule lead what a short policy lets never wait: short acknowledgements, neighbours looking for one another?
pub(super) fn never_waits(rule: &Rule) -> bool {
    let asks = |wanted: fn(&Condition) -> bool| rule.matches.iter().any(|m| wanted(&m.what));
    let acknowledges = asks(|what| matches!(what, Condition::TcpFlags(mask, 0x10) if mask & 0x17 == 0x17));
    let is_short = asks(|what| matches!(what, Condition::Length(_, high) if *high <= 128));
    acknowledges && is_short || asks(|what| matches!(what, Condition::Protocol(58)))
}

/// What a rule asks, in a short policy's words; what has none is named.
pub(super) fn by_rule(rule: &Rule) -> Result<Asks, String> {
    let mut asks = Asks::default();
    let protocol = rule.matches.iter().find_map(|m| match m.what {
        Condition::Protocol(number) if !m.not => Some(number),
        _ => None,
    });
    // What stands on one line must hold together; a short policy's words each hold alone.
    let mut said = 0;
    for found in &rule.matches {
        let single = std::slice::from_ref(&found.what);
        let all = if let Condition::Any(several) = &found.what { several.as_slice() } else { single };
        if found.not {
            return Err("for what is not so".into());
        }
        let mut counts = true;
        for what in all {
            match what {
                Condition::Protocol(6 | 17) | Condition::Version6(_) => counts = false,
                Condition::Comment(text) => {
                    let fits = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
                    asks.name = fits.then(|| text.clone());
                    counts = false;
                }
                Condition::In(_) | Condition::Out(_) => counts = false,
                Condition::SourcePort((low, high)) | Condition::DestinationPort((low, high)) => {
                    asks.ports.push((protocol, *low, *high));
                }
                Condition::SourcePorts(ranges) | Condition::DestinationPorts(ranges) | Condition::Ports(ranges) => {
                    asks.ports.extend(ranges.iter().map(|(low, high)| (protocol, *low, *high)));
                }
                Condition::Dscp(dscp) => asks.dscp.push(*dscp),
                Condition::Tos(value, mask) if mask & 0xfc == 0xfc => asks.dscp.push(value >> 2),
                Condition::Source(bytes, bits) | Condition::Destination(bytes, bits) => {
                    asks.hosts.push(host_text(bytes, *bits))
                }
                Condition::Connbytes(bytes) if bytes.mode == CountMode::Bytes && bytes.to == u64::MAX => {
                    asks.after = Some(bytes.from)
                }
                // The first packet of a connection is marked, and with it the connection.
                Condition::TcpFlags(_, 2) if rule.targets().any(|t| matches!(t, Target::Connmark(_))) => counts = false,
                other => return Err(named(other)),
            }
        }
        said += usize::from(counts);
    }
    match said {
        0 => match protocol {
            Some(6 | 17) => {
                asks.ports.push((protocol, 1, u16::MAX));
                Ok(asks)
            }
            Some(number) => Err(format!("for all of protocol {number}")),
            None => Err("nothing".into()),
        },
        1 => Ok(asks),
        _ => Err("for several things at once".into()),
    }
}

fn named(what: &Condition) -> String {
    match what {
        Condition::TcpFlags(..) => "for TCP's flags".into(),
        Condition::Length(..) => "for the length".into(),
        Condition::IcmpType(..) => "for messages of ICMP".into(),
        Condition::Protocol(number) => format!("for all of protocol {number}"),
        Condition::Connstate(_) | Condition::State(_) => "for the connection's state".into(),
        Condition::Mark(..) | Condition::Connmark(..) => "for a mark".into(),
        _ => "for something else".into(),
    }
}

/// The same for a filter of u32.
pub(super) fn by_keys(params: &U32Params, v6: bool) -> Result<Asks, String> {
    let mut asks = Asks::default();
    let (mut protocol, mut said) = (None, 0);
    let at = if v6 { 40 } else { 20 };
    for key in params.keys.iter().filter(|key| key.mask != 0) {
        let (value, mask) = (key.value, key.mask);
        match (key.offset, mask, v6) {
            (8, 0x00ff_0000, false) => protocol = Some((value >> 16) as u8),
            (4, 0x0000_ff00, true) => protocol = Some((value >> 8) as u8),
            (0, mask, false) if mask & 0xff00_ffff == 0 && mask >> 16 & 0xfc == 0xfc => {
                asks.dscp.push((value >> 18) as u8);
                said += 1;
            }
            (0, mask, true) if mask & 0xf00f_ffff == 0 && mask >> 20 & 0xfc == 0xfc => {
                asks.dscp.push((value >> 22) as u8);
                said += 1;
            }
            // Neighbours looking for one another never wait anyway.
            (40, _, true) if protocol == Some(58) => return Ok(Asks::default()),
            (offset, mask, _) if offset == at && (mask & 0xffff == 0 || mask >> 16 == 0) => {
                let (low, bits) = if mask & 0xffff == 0 { (value >> 16, mask >> 16) } else { (value, mask) };
                let open = !bits & 0xffff;
                if open & (open + 1) != 0 {
                    return Err(format!("for ports by the bits {bits:#x}, which are no range"));
                }
                asks.ports.push((protocol, low as u16, (low | !bits & 0xffff) as u16));
                said += 1;
            }
            (12 | 16, mask, false) if mask.leading_ones() + mask.trailing_zeros() == 32 => {
                let address = Ipv4Addr::from(value);
                let bits = mask.leading_ones();
                asks.hosts.push(if bits == 32 { address.to_string() } else { format!("{address}/{bits}") });
                said += 1;
            }
            _ => return Err(format!("{value:#x}/{mask:#x} at {}", key.offset)),
        }
    }
    match said {
        1 => Ok(asks),
        0 => Err(match protocol {
            Some(number) => format!("for all of protocol {number}"),
            None => "nothing, and takes everything".into(),
        }),
        _ => Err("for several things at once".into()),
    }
}

pub(super) fn port_text(protocol: Option<u8>, low: u16, high: u16) -> String {
    let range = if low == high { low.to_string() } else { format!("{low}-{high}") };
    match protocol {
        Some(6) => format!("tcp {range}"),
        Some(17) => format!("udp {range}"),
        _ => range,
    }
}

fn host_text(bytes: &[u8; 16], bits: u8) -> String {
    let v4 = bytes[..12].iter().all(|byte| *byte == 0) && bits <= 32;
    let (address, most) = match v4 {
        true => (IpAddr::V4(Ipv4Addr::new(bytes[12], bytes[13], bytes[14], bytes[15])), 32),
        false => (IpAddr::V6(Ipv6Addr::from(*bytes)), 128),
    };
    if bits == most { address.to_string() } else { format!("{address}/{bits}") }
}
