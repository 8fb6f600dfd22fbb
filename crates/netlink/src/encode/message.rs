//! A message, and why there may be none.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use tidegate_netlink_wire::numbers::{RTM_NEWQDISC, RTM_NEWTCLASS};

/// A message: its type, its flags, and what follows its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetlinkMessage {
    /// The type of the message (`nlmsg_type`): `RTM_NEWQDISC` is 36.
    pub kind: u16,
    /// Its flags (`nlmsg_flags`): `NLM_F_CREATE`, `NLM_F_EXCL`, ….
    pub flags: u16,
    /// The bytes behind the header of 16 bytes (`struct nlmsghdr`).
    pub body: Vec<u8>,
}

/// Why an operation cannot be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unsent {
    /// There is no such device.
    NoDevice(String),
    /// It has no netlink message here: the part that has none, and what to do instead.
    NotNetlink(&'static str),
}

impl fmt::Display for Unsent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unsent::NoDevice(name) => write!(f, "there is no device `{name}`"),
            Unsent::NotNetlink(what) => write!(f, "the kernel back end does not set {what}"),
        }
    }
}

impl core::error::Error for Unsent {}

/// The numbers that devices have, by name.
pub type Devices<'d> = &'d dyn Fn(&str) -> Option<u32>;

/// The number of a device.
pub(crate) fn number(devices: Devices<'_>, name: &str) -> Result<u32, Unsent> {
    devices(name).ok_or_else(|| Unsent::NoDevice(name.to_owned()))
}

/// The number of the device on which a message of this type and body makes or changes a qdisc or a class;
/// `None`: it does something else.
pub fn queue_device(kind: u16, body: &[u8]) -> Option<u32> {
    // struct tcmsg (rtnetlink(7)): 20 bytes, the device's number from the fourth on.
    let header = body.first_chunk::<20>().filter(|_| matches!(kind, RTM_NEWQDISC | RTM_NEWTCLASS))?;
    Some(u32::from_ne_bytes([header[4], header[5], header[6], header[7]]))
}
