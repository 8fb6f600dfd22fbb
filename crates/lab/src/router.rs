//! A router that this computer's kernel is: a namespace whose devices are wires of the network, between which
//! the kernel forwards by its own qdiscs.

use std::fmt;
use std::io;
use std::net::IpAddr;

use tidegate_sys::namespace_thread::{self, NamespaceThread};
use tidegate_sys::netlink::{LinkUpdate, Links};
use tidegate_sys::tun::{Tun, WIRE_ADDRESS};

use crate::host::{DEVICES, HostError, KERNEL, NAMESPACES, trouble};

/// A router to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouterSpec {
    /// The router's name in the scenario.
    pub name: String,
    /// The router's devices.
    pub wires: Vec<RouterDevice>,
}

/// A device of a router.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouterDevice {
    /// The device's name in the router's namespace, at most 15 bytes.
    pub name: String,
    /// The device's address.
    pub address: Option<IpAddr>,
    /// Bytes of its largest packet.
    pub mtu: u32,
    /// Packets of its transmit queue.
    pub queue: u32,
    /// The addresses reached by it.
    pub behind: Vec<IpAddr>,
}

/// A router that the kernel is, going on until it is dropped.
pub struct Router {
    place: NamespaceThread,
}

impl fmt::Debug for Router {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Router").field("place", &self.place).finish()
    }
}

impl Router {
    /// Makes a router; beside it the other ends of its devices, in their order.
    ///
    /// # Errors
    /// The step that failed.
    pub fn new(spec: &RouterSpec) -> Result<(Router, Vec<Tun>), HostError> {
        let name = &spec.name;
        let place = NamespaceThread::new(name)
            .map_err(trouble(format!("make a network namespace for `{name}`"), NAMESPACES))?;
        let own = spec.clone();
        let gone = trouble(format!("set up `{name}`"), KERNEL);
        let tuns = place.go(move || set_up(&own)).map_err(gone)??;
        Ok((Router { place }, tuns))
    }

    /// Does something on this router and waits for it.
    ///
    /// # Errors
    /// The router's thread is gone.
    pub fn go<T: Send + 'static>(&self, transaction: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        self.place.go(transaction)
    }
}

/// In the router's namespace: it forwards, takes no addresses from others, and sends no redirects.
fn set_up(spec: &RouterSpec) -> Result<Vec<Tun>, HostError> {
    for (value, to) in [
        ("net/ipv4/ip_forward", "1"),
        ("net/ipv6/conf/all/forwarding", "1"),
        ("net/ipv4/conf/all/rp_filter", "0"),
        ("net/ipv4/conf/default/rp_filter", "0"),
        ("net/ipv4/conf/all/send_redirects", "0"),
        ("net/ipv4/conf/default/send_redirects", "0"),
    ] {
        // A kernel without IPv6 has no such value; without the first nothing is forwarded.
        let done = namespace_thread::set(value, to);
        if value == "net/ipv4/ip_forward" {
            done.map_err(trouble("let it forward packets".to_owned(), KERNEL))?;
        }
    }
    let mut links = Links::open().map_err(trouble("open netlink".to_owned(), KERNEL))?;
    spec.wires.iter().map(|wire| plug(wire, &mut links)).collect()
}

fn plug(wire: &RouterDevice, links: &mut Links) -> Result<Tun, HostError> {
    let name = &wire.name;
    let step = |what: &str| format!("{what} `{name}`");
    let tun = Tun::with_frames(name).map_err(trouble(step("make the TAP device"), DEVICES))?;
    let v6 = wire.address.is_some_and(|address| address.is_ipv6()) || wire.behind.iter().any(IpAddr::is_ipv6);
    if !v6 {
        // Without IPv6 on it, the kernel looks for no routers and neighbours there.
        let _ = namespace_thread::set(&format!("net/ipv6/conf/{name}/disable_ipv6"), "1");
    }
    links.only_wire(name, WIRE_ADDRESS).map_err(trouble(step("make a wire of"), KERNEL))?;
    let change =
        LinkUpdate { up: Some(true), mtu: Some(wire.mtu), txqlen: Some(wire.queue), ..LinkUpdate::default() };
    links.change(name, &change).map_err(trouble(step("bring up"), KERNEL))?;
    if let Some(address) = wire.address {
        links.address(name, address).map_err(trouble(step("give an address to"), KERNEL))?;
    }
    for address in &wire.behind {
        links.add_route(name, *address).map_err(trouble(format!("set the way to {address}"), KERNEL))?;
    }
    Ok(tun)
}
