#![forbid(unsafe_code)]
//! What people write, understood; and what the machine holds, in their words again.
//!
//! [`tc`] reads tc's command line into operations and prints dumps as tc does; [`batch`] reads `tc -batch`
//! files; [`iptables`] reads and lists rules, one by one and as `-restore` and `-save` have them, [`nft`]
//! those of nft; [`ip`] reads links, addresses, routes and tunnels; [`short`] compiles the short policy to
//! commands of theirs; [`networkd`], [`chaos_mesh`] and [`pod_bandwidth`] do that with other programs'
//! settings. Nothing here touches the machine: what tc would look up comes in as [`Env`].

pub mod batch;
pub mod chaos_mesh;
pub mod ip;
pub mod iptables;
pub mod networkd;
pub mod nft;
pub mod pod_bandwidth;
pub mod quantity;
pub mod short;
pub mod tc;
mod tc_version;

mod distribution;
pub mod foreign;
mod json;
mod kubernetes;
mod nearest;
mod number;
mod refusal;
pub mod units;
mod yaml;

pub use nearest::nearest;
pub use refusal::Refusal;
pub use tc_version::{TcChange, TcChangeRow, TcVersion, UnknownTc};
use tidegate_packet::LinuxVersion;

/// The examples of the README are run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

/// What the front ends need to know of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Env {
    /// The devices there are. `None`: any name is taken for a device (a script is only being read).
    pub devices: Option<Vec<Device>>,
    /// The machine knows flow's keys of a tunnel's inside, as Siemon's patched kernels did; Linux itself
    /// never has.
    pub tunnel_keys: bool,
    /// Distributions for netem that the machine has as files, by name.
    pub tables: std::sync::Arc<std::collections::BTreeMap<String, tidegate_policy::NetemDistribution>>,
    /// The release of tc.
    pub tc: TcVersion,
    /// The release of Linux: options that a qdisc has there are read whatever the release of tc.
    pub linux: LinuxVersion,
}

/// A device, as far as the front ends care.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Device {
    /// The device's name.
    pub name: String,
    /// Its speed in Mbit/s, for rates given in per cent; `None`: the driver does not report it.
    pub speed_mbit: Option<u32>,
    /// It has more than one transmit queue.
    pub several_queues: bool,
}

impl Env {
    /// Could there be such a device?
    pub fn has(&self, name: &str) -> bool {
        match &self.devices {
            Some(devices) => devices.iter().any(|device| device.name == name),
            None => true,
        }
    }

    /// The device's speed in Mbit/s, if it is known.
    pub fn speed_mbit(&self, name: &str) -> Option<u32> {
        self.device(name)?.speed_mbit
    }

    /// Is the device known to have more than one transmit queue?
    pub fn has_several_queues(&self, name: &str) -> bool {
        self.device(name).is_some_and(|device| device.several_queues)
    }

    fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().flatten().find(|device| device.name == name)
    }
}
