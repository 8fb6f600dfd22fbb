//! Values of matches: ranges of numbers, addresses, and what they are as conditions.

use super::lex::Span;
use super::names::{self, DSCPS, ICMP, ICMPV6, PROTOCOLS};
use super::wrong::Wrong;
use crate::iptables::service;
use crate::number::whole;
use std::net::{Ipv4Addr, Ipv6Addr};
use tidegate_packet::Handle;
use tidegate_policy::netfilter::{Condition, Connbytes, CountDirection, CountMode};

/// Something of a packet that is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Mark,
    ConnMark,
    SourcePort,
    DestinationPort,
    Protocol,
    Dscp,
    /// Bytes of the network packet; the header field is this much less.
    Length(u16),
    Icmp,
    Icmpv6,
    Carried(CountMode, CountDirection),
}

impl Field {
    /// Its greatest value.
    pub(super) fn most(self) -> u64 {
        match self {
            Field::Mark | Field::ConnMark => u32::MAX.into(),
            Field::SourcePort | Field::DestinationPort | Field::Length(_) => u16::MAX.into(),
            Field::Protocol | Field::Icmp | Field::Icmpv6 => u8::MAX.into(),
            Field::Dscp => 63,
            Field::Carried(..) => u64::MAX,
        }
    }

    /// A value of it, by number or by name.
    pub(super) fn value(self, text: &str, span: Span) -> Result<u64, Wrong> {
        let table: &[(&str, u64)] = match self {
            Field::Protocol => &PROTOCOLS,
            Field::Dscp => &DSCPS,
            Field::Icmp => &ICMP,
            Field::Icmpv6 => &ICMPV6,
            _ => &[],
        };
        let port = matches!(self, Field::SourcePort | Field::DestinationPort);
        let named =
            names::number(table, text).or_else(|| port.then(|| service(text).map(u64::from)).flatten());
        let Some(value) = named.or_else(|| whole(text, 0)) else { return Err(self.unknown(span)) };
        if value <= self.most() {
            return Ok(value);
        }
        Err(Wrong::new(
            span,
            match port {
                true => "Service out of range".to_owned(),
                false => format!("Value {value} exceeds valid range 0-{}", self.most()),
            },
        ))
    }

    fn unknown(self, span: Span) -> Wrong {
        let (what, remedy) = match self {
            Field::SourcePort | Field::DestinationPort => (
                "Could not resolve service: Servname not supported for ai_socktype",
                "Write the port's number; of names tidegate knows the common ones (ssh, domain, http, \
                https, sip).",
            ),
            Field::Protocol => {
                ("Could not resolve protocol name", "Write tcp, udp, icmp, ipv6-icmp, or the number.")
            }
            Field::Dscp => (
                "Could not parse Differentiated Services Code Point",
                "Write cs0 to cs7, af11 to af43, ef, lephb, or a number from 0 to 63.",
            ),
            Field::Icmp => ("Could not parse ICMP type", "Write echo-request, echo-reply …, or the number."),
            Field::Icmpv6 => {
                ("Could not parse ICMPv6 type", "Write nd-neighbor-solicit, echo-request …, or the number.")
            }
            _ => ("syntax error, unexpected string", "Write a number, such as 5 or 0x10."),
        };
        Wrong::new(span, what).remedy(remedy)
    }

    /// The condition that its value is one of these (from, to).
    pub(super) fn within(self, ranges: &[(u64, u64)]) -> Condition {
        let port = |&(low, high): &(u64, u64)| (low as u16, high as u16);
        match self {
            Field::SourcePort => match ranges {
                [one] => Condition::SourcePort(port(one)),
                several => Condition::SourcePorts(several.iter().map(port).collect()),
            },
            Field::DestinationPort => match ranges {
                [one] => Condition::DestinationPort(port(one)),
                several => Condition::DestinationPorts(several.iter().map(port).collect()),
            },
            _ => any(ranges.iter().flat_map(|range| self.conditions(*range)).collect()),
        }
    }

    fn conditions(self, (low, high): (u64, u64)) -> Vec<Condition> {
        let each = |one: &dyn Fn(u8) -> Condition| (low..=high).map(|value| one(value as u8)).collect();
        let masked = |one: &dyn Fn(u32, u32) -> Condition| {
            let blocks = blocks(low.into(), high.into(), 32);
            blocks.into_iter().map(|(value, bits)| one(value as u32, mask(bits))).collect()
        };
        match self {
            Field::Mark => masked(&|value, mask| Condition::Mark(value, mask)),
            Field::ConnMark => masked(&|value, mask| Condition::Connmark(value, mask)),
            Field::Protocol => each(&Condition::Protocol),
            Field::Dscp => each(&Condition::Dscp),
            Field::Icmp | Field::Icmpv6 => each(&|kind| Condition::IcmpType(kind, (0, 255))),
            Field::Length(more) => {
                let length = |value: u64| (value as u16).saturating_add(more);
                vec![Condition::Length(length(low), length(high))]
            }
            Field::Carried(mode, direction) => {
                vec![Condition::Connbytes(Connbytes { from: low, to: high, mode, direction })]
            }
            Field::SourcePort | Field::DestinationPort => Vec::new(),
        }
    }
}

/// One of these holds.
pub(super) fn any(mut several: Vec<Condition>) -> Condition {
    match (several.len(), several.pop()) {
        (1, Some(one)) => one,
        (_, Some(last)) => {
            several.push(last);
            Condition::Any(several)
        }
        (_, None) => Condition::Any(several),
    }
}

/// A mask of 32 bits with so many ones at its head.
fn mask(bits: u32) -> u32 {
    u32::MAX.checked_shl(32 - bits.min(32)).unwrap_or(0)
}

/// A range of numbers of `width` bits as prefixes: first value, and how many leading bits are fixed.
pub(super) fn blocks(low: u128, high: u128, width: u32) -> Vec<(u128, u32)> {
    let mut blocks = Vec::new();
    let mut low = low;
    loop {
        let room = high - low;
        let mut free = low.trailing_zeros().min(width);
        // The largest block that begins here and does not reach beyond the end.
        while free > 0 && (free >= 128 || (1u128 << free) - 1 > room) && !(free >= 128 && room == u128::MAX) {
            free -= 1;
        }
        blocks.push((low, width - free));
        let last = if free >= 128 { u128::MAX } else { low + ((1u128 << free) - 1) };
        match last.checked_add(1) {
            Some(next) if last < high => low = next,
            _ => return blocks,
        }
    }
}

/// A range of numbers of so many bits as values and masks.
pub(crate) fn mark_blocks(low: u32, high: u32, width: u32) -> Vec<(u32, u32)> {
    let whole = u32::MAX.checked_shr(32 - width).unwrap_or(0);
    let masked = |(value, bits): (u128, u32)| (value as u32, mask(bits) >> (32 - width) & whole);
    blocks(low.into(), high.into(), width).into_iter().map(masked).collect()
}

/// Sorted, and what touches or overlaps made one.
pub(super) fn merged(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (low, high) in ranges {
        match merged.last_mut() {
            Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
            _ => merged.push((low, high)),
        }
    }
    merged
}

/// An address, a prefix or a range as prefixes: value in 128 bits (IPv4 in the last 32), and the prefix's
/// length.
pub(super) fn addresses(text: &str, v6: bool, span: Span) -> Result<Vec<([u8; 16], u8)>, Wrong> {
    let width = if v6 { 128 } else { 32 };
    let byte_of = |(value, bits): (u128, u32)| (value.to_be_bytes(), bits as u8);
    if let Some((low, high)) = text.split_once('-') {
        let (low, high) = (address(low, v6, span)?, address(high, v6, span)?);
        if high < low {
            return Err(Wrong::new(span, "Range has zero or negative size"));
        }
        return Ok(blocks(low, high, width).into_iter().map(byte_of).collect());
    }
    let Some((network, length)) = text.split_once('/') else {
        return Ok(vec![byte_of((address(text, v6, span)?, width))]);
    };
    let network = address(network, v6, span)?;
    let bits = whole(length, 10).ok_or_else(|| Wrong::new(span, "syntax error, unexpected string"))?;
    if bits > width.into() {
        return Err(Wrong::new(
            span,
            format!("Prefix length {bits} is invalid for type of {width} bits width"),
        ));
    }
    let free = width - bits as u32;
    let kept = if free >= 128 { 0 } else { network >> free << free };
    Ok(vec![byte_of((kept, bits as u32))])
}

fn address(text: &str, v6: bool, span: Span) -> Result<u128, Wrong> {
    let unknown = |why: &str| {
        Wrong::new(span, format!("Could not resolve hostname: {why}")).remedy(match v6 {
            true => "Write an IPv6 address or prefix, such as 2001:db8::/32; names are not looked up.",
            false => "Write an IPv4 address or prefix, such as 10.0.0.0/8; names are not looked up.",
        })
    };
    let (four, six) = (text.parse::<Ipv4Addr>(), text.parse::<Ipv6Addr>());
    match (v6, four, six) {
        (false, Ok(address), _) => Ok(u32::from(address).into()),
        (true, _, Ok(address)) => Ok(address.into()),
        (false, _, Ok(_)) | (true, Ok(_), _) => Err(unknown("Address family for hostname not supported")),
        _ => Err(unknown("Name or service not known")),
    }
}

/// A class as a priority names it: `1:10`, `none`, `root`, or its number.
pub(super) fn class(text: &str) -> Option<Handle> {
    let hex = |text: &str| u16::from_str_radix(text, 16).ok();
    match text {
        "none" => Some(Handle::NONE),
        "root" => Some(Handle::ROOT),
        _ => match text.split_once(':') {
            Some((major, minor)) => Some(Handle::new(hex(major)?, hex(minor)?)),
            None => u32::try_from(whole(text, 0)?).ok().map(Handle),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_blocks() {
        for (low, high) in [(0, 255), (1, 254), (7, 7), (5, 9), (0, 0), (255, 255), (128, 255), (3, 200)] {
            let blocks = blocks(low, high, 8);
            let inside = |value: u128| blocks.iter().any(|(first, bits)| (value ^ first) >> (8 - bits) == 0);
            let inside_range: Vec<u128> = (0..256).filter(|value| inside(*value)).collect();
            assert_eq!(inside_range, (low..=high).collect::<Vec<_>>());
        }
        assert_eq!(blocks(0, u128::MAX, 128), [(0, 0)]);
        assert_eq!(blocks(0, u32::MAX.into(), 32), [(0, 0)]);
        assert_eq!(merged(vec![(5, 9), (1, 2), (3, 3), (8, 20)]), [(1, 3), (5, 20)]);
    }
}
