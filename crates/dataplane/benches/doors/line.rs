//! Three machines in a row, and two that only a backend joins.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;

use tidegate_sys::namespace_thread::{self, NamespaceThread};
use tidegate_sys::netlink::Links;

/// Devices of the machine in the middle: towards A, and towards B.
pub(crate) const MIDDLE: [&str; 2] = ["m0", "m1"];
/// Where A and B are in a row, and where they are when only a backend joins them.
const IN_A_ROW: [&str; 2] = ["10.7.1.1", "10.7.2.1"];
const APART: [&str; 2] = ["10.6.0.1", "10.6.0.2"];

/// The machines.
pub(crate) struct Line {
    pub(crate) a: NamespaceThread,
    pub(crate) m: NamespaceThread,
    pub(crate) b: NamespaceThread,
}

/// Whether packets go through the machine in the middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Through {
    Middle,
    Door,
}

impl Through {
    /// B's address.
    pub(crate) fn to(self) -> IpAddr {
        address(self.addresses()[1])
    }

    fn addresses(self) -> [&'static str; 2] {
        match self {
            Through::Middle => IN_A_ROW,
            Through::Door => APART,
        }
    }

    /// The device that packets come to B by.
    pub(crate) fn last(self) -> &'static str {
        match self {
            Through::Middle => "b0",
            Through::Door => "tide1",
        }
    }
}

pub(crate) fn address(text: &str) -> IpAddr {
    text.parse().expect("an address of this file")
}

impl Line {
    /// Makes the hosts and the links between them.
    pub(crate) fn lay() -> io::Result<Line> {
        let line = Line {
            a: NamespaceThread::new("a")?,
            m: NamespaceThread::new("m")?,
            b: NamespaceThread::new("b")?,
        };
        for (end, name, middle) in [(&line.a, "a0", MIDDLE[0]), (&line.b, "b0", MIDDLE[1])] {
            let there = end.go(|| File::open("/proc/thread-self/ns/net"))??;
            line.m.go(move || Links::open()?.pair(middle, name, &there))??;
        }
        line.m.go(set_up_middle)??;
        for (end, name, me) in [(&line.a, "a0", 0), (&line.b, "b0", 1)] {
            end.go(move || set_up_end(name, IN_A_ROW, me))??;
        }
        Ok(line)
    }

    /// Gives A and B the devices of a backend their addresses.
    pub(crate) fn join(&self) -> io::Result<()> {
        for (end, name, me) in [(&self.a, "tide0", 0), (&self.b, "tide1", 1)] {
            end.go(move || set_up_end(name, APART, me))??;
        }
        Ok(())
    }
}

/// The network namespace of a place, as a file.
pub(crate) fn namespace(place: &NamespaceThread) -> io::Result<PathBuf> {
    let thread = place.go(|| std::fs::read_link("/proc/thread-self"))??;
    Ok(PathBuf::from("/proc").join(thread).join("ns/net"))
}

fn set_up_end(name: &str, addresses: [&str; 2], me: usize) -> io::Result<()> {
    namespace_thread::set("net/ipv4/ping_group_range", "0 0")?;
    let mut links = Links::open()?;
    let index = links.index(name)?;
    links.up(index)?;
    links.address(name, address(addresses[me]))?;
    links.add_route(name, address(addresses[1 - me]))
}

fn set_up_middle() -> io::Result<()> {
    let mut links = Links::open()?;
    for (name, there) in MIDDLE.into_iter().zip(IN_A_ROW) {
        let index = links.index(name)?;
        links.up(index)?;
        // It answers for anyone who is behind it, at once.
        namespace_thread::set(&format!("net/ipv4/conf/{name}/proxy_arp"), "1")?;
        namespace_thread::set(&format!("net/ipv4/neigh/{name}/proxy_delay"), "0")?;
        links.add_route(name, address(there))?;
    }
    namespace_thread::set("net/ipv4/ip_forward", "1")
}
