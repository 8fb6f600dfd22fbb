//! What `ip link show`, `ip addr show` and `ip route show` print.

use super::command::{IpFlags, Route};
use crate::json::{self, Json};
use std::fmt::Write as _;
use std::net::IpAddr;
use tidegate_policy::{LinkDriver, RawLink, TunnelMode};

/// A device to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownLink {
    /// Its number, from 1.
    pub index: u32,
    /// The device's name.
    pub name: String,
    /// What it is.
    pub kind: LinkDriver,
    /// Is it up?
    pub up: bool,
    /// Largest network packet, bytes.
    pub mtu: u32,
    /// Transmit queue length, packets.
    pub txqueuelen: u32,
    /// The kind of its root qdisc; `noop` of a device that was never up.
    pub qdisc: String,
    /// Its hardware address.
    pub mac: [u8; 6],
    /// The bridge it is a port of.
    pub master: Option<String>,
    /// The link's addresses.
    pub addresses: Vec<ShownAddress>,
    /// Bytes and packets it has sent.
    pub sent: (u64, u64),
}

/// An address of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownAddress {
    /// The address, without its prefix length.
    pub address: IpAddr,
    /// Leading bits that are the network's.
    pub prefix: u8,
}

impl ShownLink {
    /// `eth0.5@eth0`: ip's name for a device that is stacked on another.
    fn full_name(&self) -> String {
        match &self.kind {
            LinkDriver::Vlan { lower, .. } => format!("{}@{lower}", self.name),
            LinkDriver::Veth { peer } => format!("{}@{peer}", self.name),
            LinkDriver::Tunnel(_) => format!("{}@NONE", self.name),
            _ => self.name.clone(),
        }
    }

    /// The flags in ip's order.
    fn flags(&self) -> Vec<&'static str> {
        let mut flags = match &self.kind {
            LinkDriver::Loopback => vec!["LOOPBACK"],
            LinkDriver::PointToPoint | LinkDriver::Raw(RawLink::Tun | RawLink::Wwan) => {
                vec!["POINTOPOINT", "MULTICAST", "NOARP"]
            }
            LinkDriver::Raw(RawLink::Wireguard) => vec!["POINTOPOINT", "NOARP"],
            LinkDriver::Tunnel(tunnel)
                if !tunnel.remote.is_unspecified() && tunnel.mode != TunnelMode::Gretap =>
            {
                vec!["POINTOPOINT", "NOARP"]
            }
            LinkDriver::Tunnel(tunnel) if tunnel.mode != TunnelMode::Gretap => vec!["NOARP"],
            LinkDriver::Ifb | LinkDriver::Dummy => vec!["BROADCAST", "NOARP"],
            _ => vec!["BROADCAST", "MULTICAST"],
        };
        if self.up {
            flags.extend(["UP", "LOWER_UP"]);
        }
        flags
    }

    /// Ethernet devices know that they are up; others leave it open.
    fn state(&self) -> &'static str {
        match self.kind {
            _ if !self.up => "DOWN",
            LinkDriver::Ethernet | LinkDriver::Veth { .. } | LinkDriver::Bridge | LinkDriver::Vlan { .. } => {
                "UP"
            }
            _ => "UNKNOWN",
        }
    }

    /// The link layer's name, the address, and the address for all.
    fn layer(&self) -> (&'static str, String, String) {
        match &self.kind {
            LinkDriver::Loopback => ("loopback", "00:00:00:00:00:00".into(), "00:00:00:00:00:00".into()),
            LinkDriver::PointToPoint => ("ppp", String::new(), String::new()),
            LinkDriver::Raw(_) => ("none", String::new(), String::new()),
            LinkDriver::Tunnel(tunnel) if tunnel.mode != TunnelMode::Gretap => {
                let layer = match tunnel.mode {
                    TunnelMode::Ipip => "ipip",
                    TunnelMode::Sit => "sit",
                    TunnelMode::Gre | TunnelMode::Gretap => "gre",
                    TunnelMode::Ip6tnl => "tunnel6",
                };
                (layer, tunnel.local.to_string(), tunnel.remote.to_string())
            }
            _ => ("ether", mac_text(self.mac), "ff:ff:ff:ff:ff:ff".into()),
        }
    }

    /// Whether `type NAME` selects it.
    pub fn is_of(&self, kind: &str) -> bool {
        let own = match &self.kind {
            LinkDriver::Dummy => "dummy",
            LinkDriver::Ifb => "ifb",
            LinkDriver::Bridge => "bridge",
            LinkDriver::Veth { .. } => "veth",
            LinkDriver::Vlan { .. } => "vlan",
            LinkDriver::Tunnel(tunnel) => match tunnel.mode {
                TunnelMode::Ipip => "ipip",
                TunnelMode::Sit => "sit",
                TunnelMode::Gre => "gre",
                TunnelMode::Gretap => "gretap",
                TunnelMode::Ip6tnl => "ip6tnl",
            },
            LinkDriver::Raw(RawLink::Wireguard) => "wireguard",
            LinkDriver::Raw(RawLink::Tun) => "tun",
            LinkDriver::Ethernet
            | LinkDriver::Loopback
            | LinkDriver::PointToPoint
            | LinkDriver::Raw(RawLink::Wwan) => "",
        };
        own == kind
    }

    fn chosen(&self, flags: &IpFlags) -> impl Iterator<Item = &ShownAddress> {
        let family = flags.family;
        self.addresses.iter().filter(move |shown| family.is_none_or(|ipv6| ipv6 == shown.address.is_ipv6()))
    }
}

fn mac_text(mac: [u8; 6]) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// The text of `ip link show` (`addresses` false) or `ip addr show` (true).
pub fn link_text(links: &[ShownLink], flags: &IpFlags, addresses: bool) -> String {
    let mut out = String::new();
    for link in links {
        let chosen: Vec<&ShownAddress> = link.chosen(flags).collect();
        // With a family, links without an address of it are left out.
        if addresses && flags.family.is_some() && chosen.is_empty() {
            continue;
        }
        if flags.brief {
            brief(link, &chosen, addresses, &mut out);
        } else if addresses && flags.oneline {
            for shown in chosen {
                let _ =
                    writeln!(out, "{}: {}    {}", link.index, link.name, address(link, shown, "\\       "));
            }
        } else {
            let mut text = head(link, addresses);
            if !(addresses && flags.family.is_some()) {
                let (layer, own, all) = link.layer();
                let apart = if matches!(
                    link.kind,
                    LinkDriver::PointToPoint | LinkDriver::Raw(_) | LinkDriver::Tunnel(_)
                ) {
                    "peer"
                } else {
                    "brd"
                };
                let _ = write!(text, "\n    link/{layer} ");
                if !own.is_empty() {
                    let _ = write!(text, "{own} {apart} {all}");
                }
            }
            if flags.stats {
                text.push_str(&stats(link));
            }
            for shown in chosen.iter().filter(|_| addresses) {
                let _ = write!(text, "\n    {}", address(link, shown, "\n       "));
            }
            out.push_str(&if flags.oneline { text.replace('\n', "\\") } else { text });
            out.push('\n');
        }
    }
    out
}

fn head(link: &ShownLink, addresses: bool) -> String {
    let mut out = format!(
        "{}: {}: <{}> mtu {} qdisc {} ",
        link.index,
        link.full_name(),
        link.flags().join(","),
        link.mtu,
        link.qdisc
    );
    if let Some(master) = &link.master {
        let _ = write!(out, "master {master} ");
    }
    let _ = write!(out, "state {} ", link.state());
    if !addresses {
        out.push_str("mode DEFAULT ");
    }
    let _ = write!(out, "group default qlen {}", link.txqueuelen);
    out
}

fn brief(link: &ShownLink, chosen: &[&ShownAddress], addresses: bool, out: &mut String) {
    let _ = write!(out, "{:<16} {:<14} ", link.full_name(), link.state());
    if addresses {
        for shown in chosen {
            let _ = write!(out, "{}/{} ", shown.address, shown.prefix);
        }
    } else {
        let _ = write!(out, "{} <{}> ", link.layer().1, link.flags().join(","));
    }
    out.push('\n');
}

fn scope(link: &ShownLink, shown: &ShownAddress) -> &'static str {
    match shown.address {
        _ if link.kind == LinkDriver::Loopback => "host",
        IpAddr::V6(address) if address.segments()[0] & 0xffc0 == 0xfe80 => "link",
        _ => "global",
    }
}

fn address(link: &ShownLink, shown: &ShownAddress, between: &str) -> String {
    let (family, label) = match shown.address {
        IpAddr::V4(_) => ("inet", link.name.as_str()),
        IpAddr::V6(_) => ("inet6", ""),
    };
    let (address, prefix, scope) = (shown.address, shown.prefix, scope(link, shown));
    format!(
        "{family} {address}/{prefix} scope {scope} {label}{between}valid_lft forever preferred_lft forever"
    )
}

fn stats(link: &ShownLink) -> String {
    let (bytes, packets) = link.sent;
    // Columns are as wide as their widest entry, and the first at least six.
    let row = |bytes: u64, packets: u64| {
        let width = bytes.to_string().len().max(6);
        let wide = packets.to_string().len().max(7);
        (format!("{:>width$} {:>wide$}", "bytes", "packets"), format!("{bytes:>width$} {packets:>wide$}"))
    };
    let ((rx_head, rx), (tx_head, tx)) = (row(0, 0), row(bytes, packets));
    format!(
        "\n    RX: {rx_head} errors dropped  missed   mcast           \n        {rx}      0       0       \
        0       0 \n    TX: {tx_head} errors dropped carrier collsns           \n        {tx}      0       \
        0       0       0 "
    )
}

/// `ip -j link show` and `ip -j addr show`.
pub fn link_json(links: &[ShownLink], flags: &IpFlags, addresses: bool) -> String {
    let object = |link: &ShownLink| {
        let (layer, own, all) = link.layer();
        let flag_list = link.flags().into_iter().map(Json::text).collect();
        let mut members = vec![
            ("ifindex", Json::number(link.index)),
            ("ifname", Json::text(&link.name)),
            ("flags", Json::List(flag_list)),
            ("mtu", Json::number(link.mtu)),
            ("qdisc", Json::text(&link.qdisc)),
            ("operstate", Json::text(link.state())),
        ];
        if let Some(master) = &link.master {
            members.push(("master", Json::text(master)));
        }
        if !addresses {
            members.push(("linkmode", Json::text("DEFAULT")));
        }
        members.extend([
            ("group", Json::text("default")),
            ("txqlen", Json::number(link.txqueuelen)),
            ("link_type", Json::text(layer)),
            ("address", Json::text(own)),
            ("broadcast", Json::text(all)),
        ]);
        if addresses {
            let info = link.chosen(flags).map(|shown| {
                Json::Object(vec![
                    ("family", Json::text(if shown.address.is_ipv6() { "inet6" } else { "inet" })),
                    ("local", Json::text(shown.address.to_string())),
                    ("prefixlen", Json::number(shown.prefix)),
                    ("scope", Json::text(scope(link, shown))),
                    ("label", Json::text(&link.name)),
                ])
            });
            members.push(("addr_info", Json::List(info.collect())));
        }
        Json::Object(members)
    };
    json::list(&links.iter().map(object).collect::<Vec<_>>(), flags.pretty)
}

/// One line of `ip route show`, with the blank at its end that ip prints.
pub fn route_text(route: &Route) -> String {
    let (network, prefix) = route.to;
    let whole = if network.is_ipv4() { 32 } else { 128 };
    let mut out = match prefix {
        0 => "default ".to_owned(),
        bits if bits == whole => format!("{network} "),
        bits => format!("{network}/{bits} "),
    };
    if let Some(via) = route.via {
        let _ = write!(out, "via {via} ");
    }
    if let Some(dev) = &route.dev {
        let _ = write!(out, "dev {dev} ");
    }
    if route.kernel {
        out.push_str("proto kernel ");
    }
    if route.scope_link && network.is_ipv4() {
        out.push_str("scope link ");
    }
    if let Some(src) = route.src {
        let _ = write!(out, "src {src} ");
    }
    if route.metric > 0 {
        let _ = write!(out, "metric {} ", route.metric);
    }
    if network.is_ipv6() {
        out.push_str("pref medium");
    }
    out.push('\n');
    out
}
