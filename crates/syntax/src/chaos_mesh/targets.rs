//! Where packets must go to be treated: pods, which have no address before they run, and addresses outside.

use crate::kubernetes::Findings;
use crate::nft::Span;
use crate::yaml::{YamlNode, YamlValue};
use std::net::Ipv4Addr;

/// The most targets of an experiment.
const MOST_TARGETS: usize = 200;

/// A network that packets go to.
pub(super) struct Address {
    network: String,
    /// Of TCP: ipset takes a port without a protocol for one of TCP.
    port: Option<u16>,
}

impl Address {
    /// What iptables matches for it.
    pub(super) fn words(&self) -> String {
        match self.port {
            Some(port) => format!("-p tcp -d {} --dport {port}", self.network),
            None => format!("-d {}", self.network),
        }
    }
}

/// The addresses; `None`: there is no target, and all packets are meant.
pub(super) fn read(spec: &YamlNode, direction: &str, found: &mut Findings) -> Option<Vec<Address>> {
    let (target, outside) = (spec.entry("target"), spec.entry("externalTargets"));
    let target = target.filter(|entry| entry.node.value != YamlValue::Null);
    if direction != "to" {
        let at = spec.entry("direction").map_or(spec.span, |entry| entry.span);
        if target.is_none() {
            let what = format!("direction: {direction} without `target`, so Chaos Mesh refuses it");
            found.wrong(at, what, "write target:, or direction: to");
        }
        if outside.is_some() {
            let what = format!("direction: {direction} with `externalTargets`, so Chaos Mesh refuses it");
            found.wrong(at, what, "write direction: to");
        }
    }
    let mut addresses: Vec<Address> = Vec::new();
    if let Some(entry) = target {
        let whose = if direction == "from" { "the pods of selector" } else { "the pods of target" };
        let stand_in = stand_in(addresses.len());
        found.note(
            entry.span,
            format!("`{stand_in}` stands for the addresses of {whose}, and only packets to it are treated"),
            "to try others, write them in externalTargets instead",
        );
        addresses.push(Address { network: format!("{stand_in}/32"), port: None });
    }
    let items = outside.map(|entry| entry.node.items()).unwrap_or_default();
    if let Some(entry) =
        outside.filter(|entry| !matches!(entry.node.value, YamlValue::List(_) | YamlValue::Null))
    {
        found.wrong(entry.span, "`externalTargets` takes a list", "write externalTargets: [203.0.113.9]");
    }
    for item in items {
        if addresses.len() == MOST_TARGETS {
            found.wrong(item.span, format!("there are more than {MOST_TARGETS} targets"), "divide the file");
            break;
        }
        let Some(text) = item.text() else {
            let what = format!("a target is {}, and takes a text", item.kind());
            found.wrong(item.span, what, "write it in quotes");
            continue;
        };
        addresses.extend(address(text, item.span, addresses.len(), found));
    }
    let is_filtered = target.is_some() || !items.is_empty();
    is_filtered.then_some(addresses)
}

/// An address of those for documentation (RFC 5737) that no other target has.
fn stand_in(at: usize) -> Ipv4Addr {
    // At most MOST_TARGETS are asked for.
    Ipv4Addr::new(198, 51, 100, u8::try_from(at + 1).unwrap_or(u8::MAX))
}

/// A target outside: an address, a network or a name, with a port perhaps.
fn address(text: &str, span: Span, at: usize, found: &mut Findings) -> Option<Address> {
    let colons = text.matches(':').count();
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if colons == 1 || host.ends_with(']') => {
            (host.trim_matches(['[', ']']), Some(port))
        }
        _ => (text, None),
    };
    let port = match port.map(str::parse::<u16>) {
        Some(Err(_)) => {
            found.wrong(
                span,
                format!("{text} ends with no port"),
                "write a number up to 65535 behind the colon",
            );
            return None;
        }
        Some(Ok(0)) | None => None,
        Some(Ok(port)) => Some(port),
    };
    if host.contains(':') {
        let what = format!("{text} is of IPv6, and the sets of Chaos Mesh hold IPv4 alone: it fails");
        found.wrong(span, what, "leave it out");
        return None;
    }
    let (address, bits) = host.split_once('/').unwrap_or((host, "32"));
    let bits = bits.parse::<u32>().ok().filter(|bits| *bits <= 32);
    match (address.parse::<Ipv4Addr>(), bits) {
        (Ok(_), Some(0)) => {
            let what = format!("{text} is everything, which the sets of Chaos Mesh cannot hold: it fails");
            found.wrong(span, what, "leave externalTargets out, or write 0.0.0.0/1 and 128.0.0.0/1");
            None
        }
        (Ok(address), Some(bits)) => {
            let network = Ipv4Addr::from(u32::from(address) & (u32::MAX << (32 - bits)));
            Some(Address { network: format!("{network}/{bits}"), port })
        }
        _ => name(text, host, span, port, at, found),
    }
}

/// A name, whose addresses are known where it is resolved only.
fn name(
    text: &str,
    host: &str,
    span: Span,
    port: Option<u16>,
    at: usize,
    found: &mut Findings,
) -> Option<Address> {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
    let looks_like_one = host.contains(|letter: char| letter.is_ascii_alphabetic());
    if host.is_empty() || !host.chars().all(is_name) || !looks_like_one {
        let what = format!("{text} is no address, network or name");
        found.wrong(
            span,
            what,
            "write 203.0.113.9, 203.0.113.0/24 or example.org, with :443 behind it perhaps",
        );
        return None;
    }
    let stand_in = stand_in(at);
    let what = format!("`{stand_in}` stands for the addresses of {host}, which is resolved as it is put on");
    found.note(span, what, "write an address, if it is known");
    Some(Address { network: format!("{stand_in}/32"), port })
}
