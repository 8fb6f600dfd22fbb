//! A real host: a namespace with a TUN device that leads into the network.

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::process::{Child, Command};
use std::sync::Mutex;

use tidegate_sys::namespace_thread::{self, NamespaceThread};
use tidegate_sys::netlink::{LinkUpdate, Links};
use tidegate_sys::tun::Tun;

use crate::load::listeners::Listeners;

/// The device of every host.
const DEVICE: &str = "eth0";
/// Packets that a host's device holds when the lab does not come to take them.
const QUEUE: u32 = 1000;

/// A host to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostSpec {
    /// The host's name in the scenario.
    pub name: String,
    /// The host's addresses.
    pub addresses: Vec<IpAddr>,
    /// Bytes of its largest packet.
    pub mtu: u32,
    /// Its TCP's congestion control, as Linux calls it; `None`: the kernel's usual one.
    pub control: Option<String>,
    /// Its TCP requests ECN.
    pub ecn: bool,
    /// Segments of one size that it may hand over as one (GSO); `None`: as many as the kernel likes.
    pub segments: Option<u32>,
}

/// A real host, going on until it is dropped.
pub struct LabHost {
    place: NamespaceThread,
    /// The listeners at its ports.
    pub(crate) listeners: Mutex<Listeners>,
}

impl fmt::Debug for LabHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Host").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Why a host could not be made.
#[derive(Debug)]
pub struct HostError {
    /// What was being done.
    pub step: String,
    /// The kernel's error.
    pub reason: io::Error,
    /// What may help.
    pub remedy: &'static str,
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not {}: {}; {}", self.step, self.reason, self.remedy)
    }
}

impl std::error::Error for HostError {}

pub(crate) const NAMESPACES: &str =
    "run it as root, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1)";
pub(crate) const DEVICES: &str =
    "the kernel needs TUN devices: modprobe tun, and /dev/net/tun must be there and open to you";
pub(crate) const KERNEL: &str = "the kernel of this machine is too old or lacks this";

pub(crate) fn trouble(step: String, remedy: &'static str) -> impl FnOnce(io::Error) -> HostError {
    move |reason| HostError { step, reason, remedy }
}

impl LabHost {
    /// Makes a host; what it sends comes out of the device that is returned with it.
    ///
    /// # Errors
    /// The step that failed.
    pub fn new(spec: &HostSpec) -> Result<(LabHost, Tun), HostError> {
        let name = &spec.name;
        let place = NamespaceThread::new(name)
            .map_err(trouble(format!("make a network namespace for `{name}`"), NAMESPACES))?;
        let own = spec.clone();
        let gone = trouble(format!("set up `{name}`"), KERNEL);
        let tun = place.go(move || set_up(&own)).map_err(gone)??;
        Ok((LabHost { place, listeners: Mutex::default() }, tun))
    }

    /// The host's name in the scenario.
    pub fn name(&self) -> &str {
        self.place.name()
    }

    /// Does something on this host and waits for it; what takes long starts a thread there.
    ///
    /// # Errors
    /// The host's thread is gone.
    pub fn go<T: Send + 'static>(&self, transaction: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        self.place.go(transaction)
    }

    /// Starts a program on this host.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, mut command: Command) -> io::Result<Child> {
        self.place.go(move || command.spawn())?
    }
}

/// In the host's namespace: its device, its addresses, its TCP.
fn set_up(spec: &HostSpec) -> Result<Tun, HostError> {
    let tun = Tun::create(DEVICE).map_err(trouble("make a TUN device".to_owned(), DEVICES))?;
    let mut links = Links::open().map_err(trouble("open netlink".to_owned(), KERNEL))?;
    // Without IPv6 on it, the kernel looks for no routers and neighbours there.
    if spec.addresses.iter().all(IpAddr::is_ipv4) {
        let _ = namespace_thread::set(&format!("net/ipv6/conf/{DEVICE}/disable_ipv6"), "1");
    } else {
        for value in ["accept_ra", "router_solicitations"] {
            let _ = namespace_thread::set(&format!("net/ipv6/conf/{DEVICE}/{value}"), "0");
        }
    }
    let change = LinkUpdate {
        up: Some(true),
        mtu: Some(spec.mtu),
        txqlen: Some(QUEUE),
        segments: spec.segments,
        name: None,
    };
    links.change(DEVICE, &change).map_err(trouble("bring up the device".to_owned(), KERNEL))?;
    for address in &spec.addresses {
        links.address(DEVICE, *address).map_err(trouble(format!("give it the address {address}"), KERNEL))?;
    }
    for like in families(&spec.addresses) {
        links.add_default_route(DEVICE, like).map_err(trouble("set its default route".to_owned(), KERNEL))?;
    }
    // Everybody in the namespace may ping.
    let _ = namespace_thread::set("net/ipv4/ping_group_range", "0 0");
    let ecn = if spec.ecn { "1" } else { "2" };
    namespace_thread::set("net/ipv4/tcp_ecn", ecn)
        .map_err(trouble("set its TCP's ECN".to_owned(), KERNEL))?;
    if let Some(control) = &spec.control {
        let step = format!("give its TCP the congestion control {control}");
        namespace_thread::set("net/ipv4/tcp_congestion_control", control).map_err(trouble(
            step,
            "see /proc/sys/net/ipv4/tcp_available_congestion_control; modprobe may add it",
        ))?;
    }
    Ok(tun)
}

/// One address of each family that there is.
fn families(addresses: &[IpAddr]) -> impl Iterator<Item = IpAddr> {
    let v4 = addresses.iter().find(|address| address.is_ipv4());
    let v6 = addresses.iter().find(|address| address.is_ipv6());
    v4.into_iter().chain(v6).copied()
}
