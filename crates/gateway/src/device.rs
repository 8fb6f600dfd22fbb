//! A device of the machine.

use alloc::string::{String, ToString};
use tidegate_packet::{Head, Jiffies};
use tidegate_qdisc::{Device, EventRing, Shaper};

/// Events kept between two readings.
const EVENTS: usize = 65_536;

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSpec {
    /// Bytes of the largest network packet.
    pub mtu: u32,
    /// Packets of the transmit queue.
    pub tx_queue_len: u32,
    /// Bytes of the link header that each frame counts: 14 on Ethernet, 0 on point-to-point devices.
    pub link_header: u32,
    /// Timer ticks per second of the machine.
    pub hz: u32,
    /// Megabits per second, as `/sys/class/net/DEV/speed` tells; `None` if unknown.
    pub speed_mbit: Option<u32>,
}

impl Default for DeviceSpec {
    fn default() -> DeviceSpec {
        DeviceSpec {
            mtu: 1500,
            tx_queue_len: 1000,
            link_header: Head::ETHERNET as u32,
            hz: 250,
            speed_mbit: Some(1000),
        }
    }
}

pub(crate) struct Port {
    pub(crate) name: String,
    pub(crate) spec: DeviceSpec,
    pub(crate) shaper: Shaper,
}

impl Port {
    pub(crate) fn new(name: &str, spec: DeviceSpec) -> Port {
        Port { name: name.to_string(), spec, shaper: Shaper::new(of(spec), EventRing::new(EVENTS)) }
    }

    pub(crate) fn respec(&mut self, spec: DeviceSpec) {
        self.spec = spec;
        self.shaper.set_device(of(spec));
    }
}

fn of(spec: DeviceSpec) -> Device {
    Device { max_frame: spec.mtu + spec.link_header, tx_queue_len: spec.tx_queue_len, jiffies: Jiffies { hz: spec.hz } }
}
