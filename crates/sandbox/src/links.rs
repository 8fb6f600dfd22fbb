//! Network links inside: made and changed by the first process, never by a program.
//!
//! Creating a link of a kind makes the kernel load that kind's module, into the host. So only kinds are used
//! that the kernel already has; where it has none, the link exists in `/sys` and `/proc/sys` alone.

use std::fs;
use std::io;
use std::path::Path;

use tidegate_sys::netlink::{LinkUpdate, Links};

/// Kinds of link that can replace any other, best first.
const SUBSTITUTE_KINDS: [&str; 4] = ["dummy", "ifb", "bridge", "veth"];
/// The loopback link carries the calls of the tools: it stays as it is.
const LOOPBACK: &str = "lo";

/// A change of a network link inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkRequest {
    /// A link is created.
    Create {
        /// The name of the link to create, at most 15 bytes.
        name: String,
        /// Its kind, as the kernel calls it.
        kind: String,
        /// Packets of its transmit queue.
        txqlen: u32,
    },
    /// A link is deleted.
    Delete(String),
    /// A link changes.
    Change {
        /// The name of the link to change.
        name: String,
        /// What changes.
        change: LinkUpdate,
    },
}

impl LinkRequest {
    /// As it travels.
    pub(crate) fn encode(&self) -> String {
        let number = |value: Option<u32>| value.map_or(String::new(), |value| value.to_string());
        match self {
            Self::Create { name, kind, txqlen } => format!("create\0{name}\0{kind}\0{txqlen}"),
            Self::Delete(name) => format!("delete\0{name}"),
            Self::Change { name, change } => {
                let up = change.up.map_or("", |up| if up { "up" } else { "down" });
                let (mtu, txqlen) = (number(change.mtu), number(change.txqlen));
                let to = change.name.as_deref().unwrap_or("");
                format!("change\0{name}\0{up}\0{mtu}\0{txqlen}\0{to}")
            }
        }
    }

    pub(crate) fn decode(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split('\0').collect();
        Some(match *words.as_slice() {
            ["create", name, kind, txqlen] => {
                Self::Create { name: name.into(), kind: kind.into(), txqlen: txqlen.parse().ok()? }
            }
            ["delete", name] => Self::Delete(name.into()),
            ["change", name, up, mtu, txqlen, to] => Self::Change {
                name: name.into(),
                change: LinkUpdate {
                    up: (!up.is_empty()).then_some(up == "up"),
                    mtu: mtu.parse().ok(),
                    txqlen: txqlen.parse().ok(),
                    name: (!to.is_empty()).then(|| to.into()),
                    ..LinkUpdate::default()
                },
            },
            _ => return None,
        })
    }

    /// Does it, in this process's network namespace.
    pub(crate) fn perform(&self, links: &mut Links) -> io::Result<()> {
        match self {
            Self::Create { name, kind, txqlen } => create(links, name, kind, *txqlen),
            Self::Delete(name) if name != LOOPBACK => links.delete(name),
            Self::Change { name, change } if name != LOOPBACK => links.change(name, change),
            Self::Delete(_) | Self::Change { .. } => Ok(()),
        }
    }
}

/// Creates the links that a sandbox begins with; those that this kernel cannot make come back.
pub(crate) fn create_all<'a>(links: Option<&mut Links>, names: &'a [String]) -> Vec<&'a str> {
    let Some(links) = links else { return names.iter().map(String::as_str).collect() };
    let _ = links.up(1);
    let mut missing = Vec::new();
    for name in names {
        // `ifb0` is best made an ifb.
        let kind = if name.starts_with("ifb") { "ifb" } else { "dummy" };
        if create(links, name, kind, TXQLEN).is_err() {
            missing.push(name.as_str());
        }
    }
    missing
}

/// Packets in the transmit queue of an Ethernet device, as drivers set it.
const TXQLEN: u32 = 1000;

/// Creates a link of a kind, or of the first kind that can replace it.
fn create(links: &mut Links, name: &str, kind: &str, txqlen: u32) -> io::Result<()> {
    let kinds = std::iter::once(kind).chain(SUBSTITUTE_KINDS).filter(|kind| is_there(kind));
    let none =
        Err(io::Error::new(io::ErrorKind::Unsupported, "no kind of link without loading a kernel module"));
    kinds.fold(none, |made, kind| made.or_else(|_| links.create(name, kind, txqlen)))
}

/// Can links of a kind be made without the kernel loading a module?
fn is_there(kind: &str) -> bool {
    if kind.is_empty() || !kind.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return false;
    }
    // A kernel without /proc/modules loads none.
    !Path::new("/proc/modules").exists() || Path::new("/sys/module").join(kind).is_dir() || is_built_in(kind)
}

/// Does the kernel's list of what is built into it name the kind?
fn is_built_in(kind: &str) -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let list =
        fs::read_to_string(format!("/lib/modules/{}/modules.builtin", release.trim())).unwrap_or_default();
    list.lines().any(|line| line.rsplit('/').next().and_then(|file| file.strip_suffix(".ko")) == Some(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_survive_the_socket_and_nonsense_is_none() {
        let change =
            LinkUpdate { up: Some(false), mtu: Some(1492), name: Some("x".into()), ..LinkUpdate::default() };
        let requests = [
            LinkRequest::Create { name: "ifb0".into(), kind: "ifb".into(), txqlen: 32 },
            LinkRequest::Delete("ifb0".into()),
            LinkRequest::Change { name: "eth0".into(), change },
            LinkRequest::Change { name: "eth0".into(), change: LinkUpdate::default() },
        ];
        for request in requests {
            assert_eq!(LinkRequest::decode(&request.encode()), Some(request));
        }
        assert_eq!(LinkRequest::decode("create\0x\0ifb\0many"), None);
    }

    #[test]
    fn a_kind_is_a_plain_word() {
        assert!(!is_there("../x") && !is_there(""));
    }
}
