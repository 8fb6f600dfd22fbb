//! What a command line of ip requests.

use std::net::IpAddr;
use tidegate_policy::LinkDriver;

/// A command understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpCommandLine {
    /// What to do.
    pub command: IpCommand,
    /// How to show.
    pub flags: IpFlags,
}

/// How to show: the options before the object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpFlags {
    /// `-s`: counters.
    pub stats: bool,
    /// `-d`: details.
    pub details: bool,
    /// `-o`: one line each.
    pub oneline: bool,
    /// `-br`: a table.
    pub brief: bool,
    /// `-j`: JSON.
    pub json: bool,
    /// `-p`: JSON laid out.
    pub pretty: bool,
    /// `-4`, `-6`: true = IPv6.
    pub family: Option<bool>,
}

/// What a command line of ip requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IpCommand {
    /// `ip link set`.
    Set(LinkSet),
    /// `ip link add`, `ip tunnel add`, `ip tuntap add`.
    AddLink {
        /// The new device's name.
        name: String,
        /// What it is.
        kind: LinkDriver,
        /// The attributes given with it.
        set: LinkSet,
    },
    /// `ip link del`, `ip tunnel del`.
    DeleteLink(String),
    /// `ip link show`.
    ShowLinks(LinkSelector),
    /// `ip addr add|del|replace`.
    Address {
        /// True to add.
        add: bool,
        /// Adding an existing address is no error (`replace`, `change`).
        replace: bool,
        /// The device's name.
        dev: String,
        /// The address, without its prefix length.
        address: IpAddr,
        /// Leading bits that are the network's.
        prefix: u8,
    },
    /// `ip addr flush dev DEV`.
    FlushAddresses(String),
    /// `ip addr show`.
    ShowAddresses(LinkSelector),
    /// `ip tunnel show [NAME]`.
    ShowTunnels(Option<String>),
    /// `ip route add|del|replace|change|append`.
    Route {
        /// What to do.
        verb: RouteVerb,
        /// With which route.
        route: Route,
    },
    /// `ip route show`.
    ShowRoutes {
        /// Those of the scope `link`, or those of others; `None`: all.
        scope_link: Option<bool>,
        /// Only this destination: (network, prefix); a prefix of 0 is the default route.
        to: Option<(IpAddr, u8)>,
        /// Only by this device.
        dev: Option<String>,
    },
    /// `ip route get ADDRESS`.
    GetRoute(IpAddr),
    /// `ip route flush`.
    FlushRoutes,
    /// `ip rule show`.
    ShowRules,
    /// Something that has nothing to show: `ip neigh show`.
    ShowNothing,
    /// `-batch FILE` (`-` = standard input).
    Batch {
        /// Go on after an error.
        force: bool,
    },
    /// `-V`: print [`VERSION`].
    Version,
    /// `help`, or nothing at all: a text of our own, and the exit code.
    Help(String),
}

/// `ip link set`: `None` stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkSet {
    /// The device's name.
    pub dev: String,
    /// Up or down.
    pub up: Option<bool>,
    /// Bytes of the largest network packet.
    pub mtu: Option<u32>,
    /// Packets of the transmit queue.
    pub txqueuelen: Option<u32>,
    /// Transmit queues; a link has them from when it is added.
    pub txqueues: Option<u32>,
    /// A new name.
    pub name: Option<String>,
    /// The bridge it becomes a port of; an empty name for `nomaster`.
    pub master: Option<String>,
    /// A new hardware address, as written.
    pub address: Option<String>,
}

/// Which links, or addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkSelector {
    /// Only this device.
    pub dev: Option<String>,
    /// Only those that are up.
    pub up: bool,
    /// Only those of this kind (`ifb`).
    pub kind: Option<String>,
    /// Only the ports of this bridge.
    pub master: Option<String>,
}

/// What to do with a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RouteVerb {
    /// Fails if it is there.
    Add,
    /// Fails if it is not there.
    Delete,
    /// Puts it in place of another of the same destination.
    Replace,
}

/// A route of `ip route`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// Network and prefix length; 0 for the default route.
    pub to: (IpAddr, u8),
    /// The next router.
    pub via: Option<IpAddr>,
    /// The device that packets leave by.
    pub dev: Option<String>,
    /// The source address preferred.
    pub src: Option<IpAddr>,
    /// Lower is preferred.
    pub metric: u32,
    /// `scope link`, as the kernel's own routes to a device's network.
    pub scope_link: bool,
    /// `proto kernel`: made by the kernel with an address.
    pub kernel: bool,
}
