//! What a device is.

use crate::error::Error;
use crate::limits::{MAX_NAME, MAX_PACKETS, MAX_RATE, MAX_TIME};
use tidegate_gateway::{DeviceKind, DeviceSpec};
use tidegate_packet::Time;

/// A network device: its name in commands, its link, and the limits of what it holds.
///
/// ```
/// use tidegate_device::EgressConfig;
///
/// // The defaults: an Ethernet device `eth0` of a stock Linux whose link is the caller's own.
/// let config = EgressConfig { rate: Some(10_000_000), ..EgressConfig::default() };
/// assert_eq!((config.name.as_str(), config.mtu, config.ethernet), ("eth0", 1500, true));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EgressConfig {
    /// The name that commands give after `dev`: 1 to 15 letters, `eth0` by default.
    pub name: String,
    /// The link's rate, bits per second: from 1 to [`MAX_RATE`]. The device is busy as long as a packet takes
    /// at this rate. `None` (the default): the link is the caller's, who polls when it is free.
    pub rate: Option<u64>,
    /// Bytes of the largest network packet, 68 to 65,535; 1500 by default. Qdiscs take their quantum from it.
    pub mtu: u32,
    /// Do packets have an Ethernet header (14 bytes that count in their length)? Otherwise they begin with
    /// their IP header, as on a ppp or tun device. True by default.
    pub ethernet: bool,
    /// The transmit queue length in packets: the default limit of pfifo and some others. 1000 by default.
    pub tx_queue_len: u32,
    /// Timer ticks per second of the kernel (`CONFIG_HZ`): 100, 250, 300 or 1000. 250 by default.
    pub hz: u32,
    /// When the device comes into being and its first commands are carried out; 0 by default. Calls cannot be
    /// earlier.
    pub start: Time,
    /// The seed of all random draws, and of the key under which flows are hashed to queues.
    pub seed: u64,
    /// The most packets that may wait in it, 1 to [`MAX_PACKETS`], which is the default. Offers beyond are
    /// refused as [`Error::Full`]; a qdisc's own limit drops packets before.
    pub packets: u32,
}

impl Default for EgressConfig {
    fn default() -> EgressConfig {
        EgressConfig {
            name: "eth0".to_owned(),
            rate: None,
            mtu: 1500,
            ethernet: true,
            tx_queue_len: 1000,
            hz: 250,
            start: Time(0),
            seed: 0,
            packets: MAX_PACKETS,
        }
    }
}

impl EgressConfig {
    /// Checks each member.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let refuse = |member, reason: String| Err(Error::Config { member, reason });
        let letters = |name: &str| name.chars().all(|letter| letter.is_ascii_graphic() && letter != '/');
        if self.name.is_empty() || self.name.len() > MAX_NAME || !letters(&self.name) {
            let reason = format!("a device's name has 1 to {MAX_NAME} letters, no blank and no slash");
            return refuse("name", reason);
        }
        if let Some(rate) = self.rate.filter(|rate| !(1..=MAX_RATE).contains(rate)) {
            return refuse("rate", format!("{rate} bit/s is not from 1 to {MAX_RATE} bit/s"));
        }
        if !(68..=65_535).contains(&self.mtu) {
            return refuse("mtu", format!("{} is not from 68 to 65535 bytes", self.mtu));
        }
        if ![100, 250, 300, 1000].contains(&self.hz) {
            return refuse("hz", format!("{} is not one of 100, 250, 300, 1000", self.hz));
        }
        if self.start > MAX_TIME {
            return refuse("start", format!("{} ns is beyond {} ns", self.start.0, MAX_TIME.0));
        }
        if !(1..=MAX_PACKETS).contains(&self.packets) {
            return refuse("packets", format!("{} is not from 1 to {MAX_PACKETS}", self.packets));
        }
        Ok(())
    }

    /// Bytes of the link header.
    pub(crate) fn link_header(&self) -> u32 {
        if self.ethernet { DeviceSpec::default().link_header } else { 0 }
    }

    /// The same for the model machine.
    pub(crate) fn spec(&self) -> DeviceSpec {
        DeviceSpec {
            kind: if self.ethernet { DeviceKind::Ethernet } else { DeviceKind::PointToPoint },
            mtu: self.mtu,
            tx_queue_len: self.tx_queue_len,
            link_header: self.link_header(),
            hz: self.hz,
            speed_mbit: None,
            ..DeviceSpec::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_member_has_a_range() {
        let config = EgressConfig::default;
        let name = |name: &str| EgressConfig { name: name.into(), ..config() };
        let rate = |rate| EgressConfig { rate: Some(rate), ..config() };
        let table = [
            (config(), ""),
            (name("wan.7@lan"), ""),
            (name(""), "name"),
            (name("a b"), "name"),
            (name("a/b"), "name"),
            (name("sixteen-letters-"), "name"),
            (name("größe"), "name"),
            (rate(1), ""),
            (rate(0), "rate"),
            (rate(MAX_RATE), ""),
            (rate(MAX_RATE + 1), "rate"),
            (EgressConfig { mtu: 67, ..config() }, "mtu"),
            (EgressConfig { mtu: 65_536, ..config() }, "mtu"),
            (EgressConfig { hz: 0, ..config() }, "hz"),
            (EgressConfig { start: Time::NEVER, ..config() }, "start"),
            (EgressConfig { packets: 0, ..config() }, "packets"),
            (EgressConfig { packets: MAX_PACKETS + 1, ..config() }, "packets"),
        ];
        for (config, wanted) in table {
            let member = match config.check() {
                Err(Error::Config { member, .. }) => member,
                _ => "",
            };
            assert_eq!(member, wanted, "{config:?}");
        }
    }
}
