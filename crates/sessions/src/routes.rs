//! The kernel's tables of routes (`/proc/net/route`, `/proc/net/ipv6_route`): where they lead.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Routes that are read at most.
const MOST: usize = 100_000;
/// A route that is in use (`RTF_UP`).
const UP: u32 = 1;

/// A route of this network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteEntry {
    to: IpAddr,
    prefix: u8,
    metric: u32,
    device: String,
}

/// All of them that are in use.
pub fn all() -> Vec<RouteEntry> {
    let read =
        |name: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
    let (v4, v6) = (read("route"), read("ipv6_route"));
    v4.lines().skip(1).take(MOST).filter_map(ipv4).chain(v6.lines().take(MOST).filter_map(ipv6)).collect()
}

/// The devices of default routes, the best first.
pub fn defaults(routes: &[RouteEntry]) -> Vec<String> {
    let mut found: Vec<&RouteEntry> =
        routes.iter().filter(|route| route.prefix == 0 && route.device != "lo").collect();
    found.sort_by_key(|route| route.metric);
    let mut names: Vec<String> = Vec::new();
    for route in found {
        if !names.contains(&route.device) {
            names.push(route.device.clone());
        }
    }
    names
}

/// The device that leads to an address: of the longest prefix, then of the least metric.
pub fn device(routes: &[RouteEntry], to: IpAddr) -> Option<String> {
    let best = routes
        .iter()
        .filter(|route| route.takes(to))
        .max_by_key(|route| (route.prefix, std::cmp::Reverse(route.metric)));
    best.map(|route| route.device.clone())
}

/// Whether this computer forwards what it gets on a device, and has another device to forward it to.
pub fn may_be_router(routes: &[RouteEntry], device: &str) -> bool {
    let has_other = routes.iter().any(|route| route.device != device && route.device != "lo");
    let forwards = |family: &str| {
        let file = format!("/proc/sys/net/{family}/conf/{device}/forwarding");
        std::fs::read_to_string(file).is_ok_and(|value| value.trim() != "0")
    };
    has_other && (forwards("ipv4") || forwards("ipv6"))
}

impl RouteEntry {
    fn takes(&self, address: IpAddr) -> bool {
        match (self.to, address) {
            (IpAddr::V4(net), IpAddr::V4(address)) => {
                let apart = u32::from(net) ^ u32::from(address);
                apart.checked_shr(32 - u32::from(self.prefix)).unwrap_or(0) == 0
            }
            (IpAddr::V6(net), IpAddr::V6(address)) => {
                let apart = u128::from(net) ^ u128::from(address);
                apart.checked_shr(128 - u32::from(self.prefix)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// Device, network, gateway, flags, two counts, metric, mask: addresses as the machine keeps them in memory.
fn ipv4(line: &str) -> Option<RouteEntry> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let address = |word: &str| Some(Ipv4Addr::from(u32::from_str_radix(word, 16).ok()?.to_ne_bytes()));
    let mask = u32::from(address(words.get(7)?)?);
    let is_up = u32::from_str_radix(words.get(3)?, 16).ok()? & UP != 0;
    let to = address(words.get(1)?)?.into();
    let metric = words.get(6)?.parse().ok()?;
    is_up.then(|| RouteEntry { to, prefix: mask.leading_ones() as u8, metric, device: words[0].to_owned() })
}

/// Network, its prefix, source, its prefix, next hop, metric, two counts, flags, device; all in hexadecimal
/// digits.
fn ipv6(line: &str) -> Option<RouteEntry> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |at: usize| u32::from_str_radix(words.get(at)?, 16).ok();
    let to = Ipv6Addr::from(u128::from_str_radix(words.first()?, 16).ok()?).into();
    let is_up = number(8)? & UP != 0;
    let (prefix, metric) = (u8::try_from(number(1)?).ok().filter(|prefix| *prefix <= 128)?, number(5)?);
    let device = (*words.get(9)?).to_owned();
    is_up.then_some(RouteEntry { to, prefix, metric, device })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_leads_then_the_least_metric() {
        let v4 = [
            "ppp0 00000000 00000000 0003 0 0 0 00000000 0 0 0",
            "eth0 00000000 0101A8C0 0003 0 0 100 00000000 0 0 0",
            "eth1 0001A8C0 00000000 0001 0 0 0 00FFFFFF 0 0 0",
            "eth2 000200C0 00000000 0000 0 0 0 00FFFFFF 0 0 0",
        ];
        let v6 = [
            "20010db8000000000000000000000000 20 00000000000000000000000000000000 00 \
            fe800000000000000000000000000001 00000400 00000001 00000000 00000003 eth3",
            "00000000000000000000000000000000 00 00000000000000000000000000000000 00 \
            00000000000000000000000000000000 ffffffff 00000001 00000000 00200201 lo",
        ];
        let routes: Vec<RouteEntry> =
            v4.into_iter().filter_map(ipv4).chain(v6.into_iter().filter_map(ipv6)).collect();
        let leads = |to: &str| device(&routes, to.parse().expect("an address"));
        assert_eq!(leads("192.168.1.9").as_deref(), Some("eth1"));
        assert_eq!(leads("203.0.113.9").as_deref(), Some("ppp0"));
        assert_eq!(leads("192.0.2.9").as_deref(), Some("ppp0"), "a route that is not in use");
        assert_eq!(leads("2001:db8::1").as_deref(), Some("eth3"));
        assert_eq!(defaults(&routes), ["ppp0", "eth0"]);
    }
}
