//! A device of the machine.

use alloc::collections::VecDeque;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::IpAddr;
use tidegate_packet::{Head, Jiffies, Pkt, QueueLocation};
use tidegate_policy::{Errno, LinkDriver, RawLink, TcError, Tunnel, TunnelMode};
use tidegate_qdisc::{DeviceInfo, EventRing, Shaper, Switches};

/// Events kept between two readings.
const EVENTS: usize = 65_536;

/// A device of a gateway, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DeviceId(pub(crate) u32);

/// What a device is, by its driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceKind {
    /// A card with a link header of 14 bytes; also one end of a veth.
    #[default]
    Ethernet,
    /// Gives back what is redirected to it.
    Ifb,
    /// ppp and the like: no link header.
    PointToPoint,
    /// WireGuard, tun, a modem for mobile networks: IP without a link header, and not ppp.
    Raw,
    /// IP in IP or GRE, on top of whatever the outer packet is routed to.
    Tunnel,
    /// A tagged part of another device.
    Vlan,
    /// `lo`.
    Loopback,
    /// A switch in software.
    Bridge,
    /// Swallows what it is given.
    Dummy,
}

impl DeviceId {
    /// The device as packets note it.
    pub(crate) fn number(self) -> u16 {
        self.0 as u16 + 1
    }

    /// The device at which a packet waits, or waited last; `None`: at none, or locations are not recorded.
    pub fn holding(location: QueueLocation) -> Option<DeviceId> {
        Some(DeviceId(u32::from(location.device.checked_sub(1)?)))
    }
}

impl DeviceKind {
    /// Does no host behind it ask for another's link address?
    pub const fn has_no_neighbours(self) -> bool {
        use DeviceKind::{Ifb, Loopback, PointToPoint, Raw, Tunnel};
        matches!(self, PointToPoint | Raw | Tunnel | Loopback | Ifb)
    }
}

/// How a device wraps what it gives to the one beneath.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encap {
    /// Not at all.
    Bare,
    /// PPPoE: 8 bytes, EtherType 0x8864.
    Pppoe,
    /// A tag. The card adds it, so the device beneath counts the frame without; its filters see EtherType
    /// 0x8100.
    Vlan(u16),
    /// IP in IP, or GRE: the outer packet is the machine's own and passes OUTPUT and POSTROUTING.
    Tunnel(Tunnel),
}

/// What a device is stacked on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stacked {
    pub(crate) on: Option<DeviceId>,
    pub(crate) encap: Encap,
}

/// A network device, as far as traffic control depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSpec {
    /// Its kind, which decides how packets go through it.
    pub kind: DeviceKind,
    /// Bytes of the largest network packet.
    pub mtu: u32,
    /// Packets of the transmit queue.
    pub tx_queue_len: u32,
    /// How many transmit queues it has: 1, unless it was made with more.
    pub tx_queues: u32,
    /// Frames that the card's transmit ring holds below the qdisc (`ethtool -g`).
    pub ring: u32,
    /// Bytes of the link header that each frame counts: 14 on Ethernet, 0 on point-to-point devices.
    pub link_header: u32,
    /// Timer ticks per second of the machine (`CONFIG_HZ`): 100, 250, 300 or 1000.
    pub hz: u32,
    /// Made in software only: without a qdisc of its own, packets leave at once (`noqueue`).
    pub queueless: bool,
    /// How its qdiscs differ from a stock kernel's: a matter of the machine, the same for all its
    /// devices.
    pub switches: Switches,
    /// Megabits per second, as in `/sys/class/net/DEV/speed`; `None` if unknown.
    pub speed_mbit: Option<u32>,
}

impl Default for DeviceSpec {
    fn default() -> DeviceSpec {
        DeviceSpec {
            kind: DeviceKind::Ethernet,
            mtu: 1500,
            tx_queue_len: 1000,
            tx_queues: 1,
            ring: 256,
            link_header: Head::ETHERNET as u32,
            hz: 250,
            queueless: false,
            switches: Switches::default(),
            speed_mbit: Some(1000),
        }
    }
}

impl DeviceKind {
    /// May a device of this kind carry packets of this many bytes? RFC 791 wants 68 at least; what is made in
    /// software only sets no bounds.
    pub(crate) fn check_mtu(self, bytes: u32) -> Result<(), TcError> {
        match (self, bytes) {
            (DeviceKind::Ifb | DeviceKind::Dummy | DeviceKind::Loopback, _) | (_, 68..=65_535) => Ok(()),
            (_, 0..68) => Err(TcError::new(Errno::Inval, "mtu less than device minimum")),
            _ => Err(TcError::new(Errno::Inval, "mtu greater than device maximum")),
        }
    }
}

impl DeviceSpec {
    /// A new device of this kind, as its driver sets it up (6.1).
    pub fn of(kind: &LinkDriver) -> DeviceSpec {
        let ethernet = DeviceSpec::default();
        let bare = DeviceSpec { link_header: 0, speed_mbit: None, ..ethernet };
        let software = DeviceSpec { queueless: true, speed_mbit: None, ..ethernet };
        match kind {
            LinkDriver::Ethernet => ethernet,
            LinkDriver::Veth { .. } => DeviceSpec { speed_mbit: Some(10_000), ..software },
            LinkDriver::Loopback => DeviceSpec { kind: DeviceKind::Loopback, mtu: 65_536, ..software },
            LinkDriver::Dummy => DeviceSpec { kind: DeviceKind::Dummy, ..software },
            LinkDriver::Ifb => {
                DeviceSpec { kind: DeviceKind::Ifb, tx_queue_len: 32, speed_mbit: None, ..ethernet }
            }
            LinkDriver::Bridge => DeviceSpec { kind: DeviceKind::Bridge, ..software },
            LinkDriver::Vlan { .. } => {
                DeviceSpec { kind: DeviceKind::Vlan, speed_mbit: ethernet.speed_mbit, ..software }
            }
            LinkDriver::PointToPoint => {
                DeviceSpec { kind: DeviceKind::PointToPoint, mtu: 1492, tx_queue_len: 3, ..bare }
            }
            LinkDriver::Raw(raw) => {
                let (mtu, tx_queue_len) = match raw {
                    RawLink::Wireguard => (1420, 1000),
                    RawLink::Tun => (1500, 500),
                    RawLink::Wwan => (1500, 1000),
                };
                let queueless = *raw == RawLink::Wireguard;
                DeviceSpec { kind: DeviceKind::Raw, mtu, tx_queue_len, queueless, ..bare }
            }
            LinkDriver::Tunnel(Tunnel { mode: TunnelMode::Gretap, .. }) => {
                DeviceSpec { kind: DeviceKind::Tunnel, mtu: 1462, ..software }
            }
            LinkDriver::Tunnel(Tunnel { mode, .. }) => {
                let mtu = match mode {
                    TunnelMode::Gre => 1476,
                    TunnelMode::Ip6tnl => 1452,
                    _ => 1480,
                };
                DeviceSpec { kind: DeviceKind::Tunnel, mtu, queueless: true, ..bare }
            }
        }
    }
}

pub(crate) struct Port {
    pub(crate) id: DeviceId,
    /// Empty when the device was deleted: its place is kept for the next.
    pub(crate) name: String,
    pub(crate) addresses: Vec<(IpAddr, u8)>,
    pub(crate) spec: DeviceSpec,
    pub(crate) shaper: Shaper,
    pub(crate) stacked: Option<Stacked>,
    /// Packets were redirected here since the flag was last taken.
    pub(crate) is_redirect_target: bool,
    /// A packet was redirected here, and the device was not polled since.
    pub(crate) unpolled: bool,
    /// Packets that it sent before the next was redirected here. (Each is in the pool, which limits them.)
    pub(crate) sent: VecDeque<Pkt>,
    /// One of the two above says something.
    pub(crate) has_news: bool,
    /// It is down: filters can lead nothing to it.
    pub(crate) down: bool,
    /// It was never up.
    pub(crate) never_up: bool,
}

impl Port {
    pub(crate) fn new(id: DeviceId, name: &str, spec: DeviceSpec) -> Port {
        Port {
            id,
            name: name.to_string(),
            addresses: Vec::new(),
            spec,
            shaper: Shaper::new(info(id, spec), EventRing::new(EVENTS)),
            stacked: None,
            is_redirect_target: false,
            unpolled: false,
            sent: VecDeque::new(),
            has_news: false,
            down: false,
            never_up: false,
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.name.is_empty()
    }

    pub(crate) fn respec(&mut self, spec: DeviceSpec) {
        self.spec = spec;
        self.shaper.set_device(info(self.id, spec));
    }
}

fn info(id: DeviceId, spec: DeviceSpec) -> DeviceInfo {
    DeviceInfo {
        number: id.number(),
        max_frame: spec.mtu + spec.link_header,
        tx_queue_len: spec.tx_queue_len,
        tx_queues: spec.tx_queues,
        link_header: spec.link_header,
        queueless: spec.queueless,
        jiffies: Jiffies { hz: spec.hz },
        switches: spec.switches,
    }
}
