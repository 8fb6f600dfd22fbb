//! What the machine is beside its queues: links with their numbers and addresses, routes, settings, modules.
//!
//! The gateway knows what matters to packets; this is the rest of what tools print and scripts ask for.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use tidegate_gateway::{DeviceSpec, Gateway};
use tidegate_policy::{LinkDriver, RawLink};
use tidegate_syntax::ip::Route;

/// Modules that are loaded when the machine starts.
const MODULES: [&str; 6] = ["ip_tables", "nf_conntrack", "sch_fq_codel", "sch_htb", "tcp_cubic", "x_tables"];
/// The directory of the files that describe links.
pub(super) const NET: &str = "/sys/class/net";

/// The machine beside its queues.
#[derive(Debug, Default)]
pub struct Host {
    /// What is known of each link, by its name.
    pub(super) links: BTreeMap<String, LinkState>,
    /// Routes that were set by hand.
    pub(super) routes: Vec<Route>,
    /// Is the default route among them one that no command set? The router may have another, or none yet.
    pub(super) assumes_default: bool,
    /// Settings that were written, by their path under `/proc/sys`.
    pub(super) settings: BTreeMap<String, String>,
    /// The content of files in the sandbox, as far as it is known.
    pub(super) files: BTreeMap<String, String>,
    /// Modules that are loaded.
    pub(super) modules: BTreeSet<String>,
    /// Links that were deleted: they do not come back by being named.
    pub(super) gone: BTreeSet<String>,
    /// Links that exist because a command named them, though none made them.
    pub(super) assumed: BTreeSet<String>,
    /// Links that another namespace had before, as they came.
    pub(super) arrived: BTreeMap<String, DeviceSpec>,
    /// It has the links that commands make or move to it, and no others.
    pub(super) is_bare: bool,
    last_index: u32,
}

/// The files of a device's only receive and transmit queue.
const QUEUES: [(&str, &str); 9] = [
    ("rx-0/rps_cpus", "0"),
    ("rx-0/rps_flow_cnt", "0"),
    ("tx-0/xps_cpus", "0"),
    ("tx-0/tx_maxrate", "0"),
    ("tx-0/byte_queue_limits/limit", "0"),
    ("tx-0/byte_queue_limits/limit_max", "1879048192"),
    ("tx-0/byte_queue_limits/limit_min", "0"),
    ("tx-0/byte_queue_limits/inflight", "0"),
    ("tx-0/byte_queue_limits/hold_time", "1000"),
];

/// What the gateway does not know of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LinkState {
    /// The link's number (`ifindex`), from 1.
    pub(super) index: u32,
    pub(super) kind: LinkDriver,
    pub(super) up: bool,
    /// Has it a qdisc without being given one? From its first time up, until its root is deleted while it is
    /// down.
    pub(super) has_default: bool,
    pub(super) mac: [u8; 6],
    /// The bridge it is a port of.
    pub(super) master: Option<String>,
    /// What `ethtool` changed: `tso` off, `tx-usecs` 0.
    pub(super) tuned: BTreeMap<String, String>,
}

impl Host {
    /// A machine with the modules of a fresh boot.
    pub(super) fn new() -> Host {
        Host { modules: MODULES.iter().map(|name| (*name).to_owned()).collect(), ..Host::default() }
    }

    /// Adds a link that exists: up, and of the kind that its name implies.
    pub(super) fn meet(&mut self, name: &str) {
        if !self.links.contains_key(name) {
            self.add(name, LinkDriver::of_name(name), true);
        }
    }

    /// Takes in a new link.
    pub(super) fn add(&mut self, name: &str, kind: LinkDriver, up: bool) {
        // `lo` is number 1.
        let index = if kind == LinkDriver::Loopback { 1 } else { self.last_index.max(1) + 1 };
        self.last_index = self.last_index.max(index);
        let [.., high, low] = index.to_be_bytes();
        let link = LinkState {
            index,
            mac: if kind == LinkDriver::Loopback { [0; 6] } else { [2, 0, 0, 0, high, low] },
            kind,
            up,
            has_default: up,
            master: None,
            tuned: BTreeMap::new(),
        };
        self.links.insert(name.to_owned(), link);
        self.gone.remove(name);
    }

    /// The links that are down.
    pub fn down(&self) -> impl Iterator<Item = &str> {
        self.links.iter().filter(|(_, link)| !link.up).map(|(name, _)| name.as_str())
    }

    /// Links that another namespace had before, each as it came.
    pub fn arrived(&self) -> impl Iterator<Item = (&str, DeviceSpec)> {
        self.arrived.iter().map(|(name, spec)| (name.as_str(), *spec))
    }

    /// The ports of bridges, each with its bridge.
    pub fn ports(&self) -> impl Iterator<Item = (&str, &str)> {
        self.links.iter().filter_map(|(name, link)| Some((name.as_str(), link.master.as_deref()?)))
    }

    /// Forgets a link and the routes through it.
    pub(super) fn forget(&mut self, name: &str) {
        self.links.remove(name);
        self.routes.retain(|route| route.dev.as_deref() != Some(name));
        self.assumes_default &= self.routes.iter().any(is_default);
        self.gone.insert(name.to_owned());
    }

    /// All routes: those to the networks of the links that are up, and those set by hand; default routes
    /// first, as ip lists them.
    pub(super) fn all_routes(&self, gateway: &Gateway) -> Vec<Route> {
        let mut routes: Vec<Route> = self.routes.clone();
        for (name, link) in self.links.iter().filter(|(_, link)| link.up) {
            let Some(device) = gateway.device(name) else { continue };
            let addresses = gateway.addresses(device).iter();
            routes.extend(addresses.filter(|(_, prefix)| *prefix > 0).map(|(address, prefix)| Route {
                to: (network(*address, *prefix), *prefix),
                via: None,
                dev: Some(name.clone()),
                src: address.is_ipv4().then_some(*address),
                metric: if address.is_ipv6() { 256 } else { 0 },
                scope_link: address.is_ipv4(),
                kernel: true,
            }));
            let _ = link;
        }
        routes.sort_by_key(|route| (route.to.1 != 0, route.to, route.metric));
        routes
    }

    /// The route that a packet to `address` takes: the longest prefix, then the lowest metric.
    pub(super) fn route_to(&self, gateway: &Gateway, address: IpAddr) -> Option<Route> {
        let routes = self.all_routes(gateway).into_iter();
        let fitting = routes.filter(|route| {
            route.to.0.is_ipv4() == address.is_ipv4() && network(address, route.to.1) == route.to.0
        });
        fitting.min_by_key(|route| (u8::MAX - route.to.1, route.metric))
    }
}

/// The first `prefix` bits of an address.
pub(super) fn network(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix.min(32))).unwrap_or(0);
            Ipv4Addr::from(u32::from(address) & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix.min(128))).unwrap_or(0);
            std::net::Ipv6Addr::from(u128::from(address) & mask).into()
        }
    }
}

/// The files of a link under [`NET`], as the kernel writes them.
pub(super) fn files_of(name: &str, link: &LinkState, spec: &DeviceSpec) -> Vec<(PathBuf, String)> {
    let loopback = link.kind == LinkDriver::Loopback;
    let mac = link.mac.map(|byte| format!("{byte:02x}")).join(":");
    let (bare, arp_type) = match &link.kind {
        LinkDriver::Loopback => (false, "772"),
        LinkDriver::PointToPoint => (true, "512"),
        LinkDriver::Raw(_) => (true, "65534"),
        LinkDriver::Tunnel(_) if spec.link_header == 0 => (true, "768"),
        _ => (false, "1"),
    };
    let address = if bare { String::new() } else { mac };
    let state = match (link.up, loopback || bare) {
        (false, _) => "down",
        (true, true) => "unknown",
        (true, false) => "up",
    };
    let up = u8::from(link.up);
    let mut files = vec![
        ("address", address),
        ("addr_len", if bare { "0" } else { "6" }.into()),
        ("broadcast", if loopback { "00:00:00:00:00:00" } else { "ff:ff:ff:ff:ff:ff" }.into()),
        ("carrier", up.to_string()),
        ("dormant", "0".into()),
        ("flags", format!("{:#x}", flags(&link.kind, link.up) & !0x40)),
        ("ifalias", String::new()),
        ("ifindex", link.index.to_string()),
        ("iflink", link.index.to_string()),
        ("link_mode", "0".into()),
        ("mtu", spec.mtu.to_string()),
        ("operstate", state.into()),
        ("tx_queue_len", spec.tx_queue_len.to_string()),
        ("type", arp_type.into()),
        ("gro_flush_timeout", "0".into()),
    ];
    if let Some(speed) = spec.speed_mbit {
        files.extend([("speed", speed.to_string()), ("duplex", "full".into())]);
    }
    for counter in [
        "rx_bytes",
        "rx_packets",
        "rx_dropped",
        "rx_errors",
        "tx_bytes",
        "tx_packets",
        "tx_dropped",
        "tx_errors",
    ] {
        files.push((counter, "0".into()));
    }
    let place =
        |file: &str| match file.starts_with("rx_") || file.starts_with("tx_") && file != "tx_queue_len" {
            true => format!("{NET}/{name}/statistics/{file}"),
            false => format!("{NET}/{name}/{file}"),
        };
    let mut all: Vec<_> =
        files.into_iter().map(|(file, text)| (PathBuf::from(place(file)), format!("{text}\n"))).collect();
    for (file, text) in QUEUES {
        all.push((format!("{NET}/{name}/queues/{file}").into(), format!("{text}\n")));
    }
    let index = link.index;
    all.push((format!("{NET}/{name}/uevent").into(), format!("INTERFACE={name}\nIFINDEX={index}\n")));
    if link.kind == LinkDriver::Ethernet {
        // Scripts distinguish a card from a software device by this.
        all.push((format!("{NET}/{name}/device/uevent").into(), "DRIVER=e1000e\n".to_owned()));
    }
    all
}

/// The flags of a link as ifconfig and `/sys` number them.
pub(super) fn flags(kind: &LinkDriver, up: bool) -> u32 {
    let own = match kind {
        LinkDriver::Loopback => 0x8,
        LinkDriver::PointToPoint | LinkDriver::Raw(RawLink::Tun | RawLink::Wwan) => 0x1090,
        LinkDriver::Raw(RawLink::Wireguard) => 0x90,
        LinkDriver::Tunnel(_) => 0x90,
        LinkDriver::Ifb | LinkDriver::Dummy => 0x82,
        _ => 0x1002,
    };
    own | if up { 0x41 } else { 0 }
}

/// The files of the modules that are loaded.
pub(super) fn module_files(name: &str) -> Vec<(PathBuf, String)> {
    let dir = format!("/sys/module/{name}");
    let mut files = vec![(format!("{dir}/refcnt").into(), "0\n".to_owned())];
    let parameters: &[(&str, &str)] = match name {
        "sch_htb" => &[("htb_hysteresis", "0"), ("htb_rate_est", "0")],
        "nf_conntrack" => &[("hashsize", "65536"), ("acct", "N")],
        "ifb" => &[("numifbs", "2")],
        _ => &[],
    };
    files.extend(
        parameters
            .iter()
            .map(|(file, text)| (format!("{dir}/parameters/{file}").into(), format!("{text}\n"))),
    );
    files
}

/// Is this IPv4's default route?
pub(super) fn is_default(route: &Route) -> bool {
    route.to == (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_prefix_wins() {
        let mut gateway = Gateway::new();
        gateway.add_device("eth0", DeviceSpec::default());
        let mut host = Host::new();
        host.meet("eth0");
        let route = |to: &str, prefix, dev: &str| Route {
            to: (to.parse().expect("an address"), prefix),
            via: None,
            dev: Some(dev.into()),
            src: None,
            metric: 0,
            scope_link: false,
            kernel: false,
        };
        host.routes =
            vec![route("0.0.0.0", 0, "eth0"), route("10.0.0.0", 8, "a"), route("10.1.0.0", 16, "b")];
        let by =
            |to: &str| host.route_to(&gateway, to.parse().expect("an address")).and_then(|route| route.dev);
        let table = ["10.1.2.3", "10.9.9.9", "192.0.2.1", "2001:db8::1"].map(|to| by(to).unwrap_or_default());
        assert_eq!(table, ["b", "a", "eth0", ""]);
    }

    #[test]
    fn a_network_is_what_the_prefix_leaves() {
        let cases = [("10.1.2.3", 8, "10.0.0.0"), ("10.1.2.3", 32, "10.1.2.3"), ("10.1.2.3", 0, "0.0.0.0")];
        for (address, prefix, wanted) in cases {
            let address: IpAddr = address.parse().expect("an address");
            assert_eq!(network(address, prefix).to_string(), wanted);
        }
        let six: IpAddr = "2001:db8:1::1".parse().expect("an address");
        assert_eq!(network(six, 32).to_string(), "2001:db8::");
    }
}
