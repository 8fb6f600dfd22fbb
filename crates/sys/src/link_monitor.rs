//! The links of a network namespace, and news of them: made, changed, renamed, gone.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use tidegate_netlink_wire::attribute::each;
use tidegate_netlink_wire::numbers::{
    IFF_UP, IFLA_IFNAME, IFLA_INFO_KIND, IFLA_LINK, IFLA_LINKINFO, IFLA_MTU, IFLA_TXQLEN, LINK_HEAD,
    RTM_DELLINK, RTM_GETLINK, RTM_NEWLINK,
};

use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{AddressFamily, RecvFlags, SocketFlags, SocketType};

use crate::netlink_socket::{NetlinkSocket, messages};

/// The multicast group for events of links.
const RTMGRP_LINK: u32 = 1;
/// `ifi_type` of links whose frames have an Ethernet header.
const ETHERNET: u16 = 1;
const LOOPBACK: u16 = 772;

/// A network link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LinkInfo {
    /// The link's number (`ifindex`).
    pub index: u32,
    /// The link's name.
    pub name: String,
    /// Is it up?
    pub up: bool,
    /// Do its frames have an Ethernet header?
    pub ethernet: bool,
    /// Bytes of the largest network packet.
    pub mtu: u32,
    /// Packets of its transmit queue.
    pub txqlen: u32,
    /// What made it: `ifb`, `veth`, `ppp`, …; empty for a card.
    pub kind: String,
    /// The link that it is stacked on, or its other end, by index.
    pub on: Option<u32>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// A link is there, or is otherwise than before.
    Is(LinkInfo),
    /// It is gone.
    Gone(LinkInfo),
    /// More happened than could be delivered: list all links again.
    Missed,
}

/// All links there are.
///
/// # Errors
/// The kernel's error.
pub fn links() -> io::Result<Vec<LinkInfo>> {
    let dump_messages = NetlinkSocket::open()?.dump(RTM_GETLINK, &[0; LINK_HEAD])?;
    Ok(dump_messages
        .iter()
        .filter(|message| message.kind == RTM_NEWLINK)
        .filter_map(|message| link(&message.body))
        .collect())
}

/// A subscription to events of links.
#[derive(Debug)]
pub struct LinkMonitor {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

impl LinkMonitor {
    /// From now on, of the network namespace of the calling thread.
    ///
    /// # Errors
    /// What `socket(2)` and `bind(2)` report.
    pub fn open() -> io::Result<LinkMonitor> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(AddressFamily::NETLINK, SocketType::RAW, flags, None)?;
        rustix::net::bind(&socket, &SocketAddrNetlink::new(0, RTMGRP_LINK))?;
        Ok(LinkMonitor { socket, buffer: vec![0; 1 << 16] })
    }

    /// The events since the last call.
    ///
    /// # Errors
    /// The socket is broken.
    pub fn read(&mut self) -> io::Result<Vec<LinkEvent>> {
        let mut events = Vec::new();
        loop {
            match rustix::net::recv(&self.socket, &mut self.buffer[..], RecvFlags::empty()) {
                Ok((bytes, _)) => {
                    for reply in messages(&self.buffer[..bytes.min(self.buffer.len())]) {
                        let Some(link) = link(reply.body) else { continue };
                        match reply.kind {
                            RTM_NEWLINK => events.push(LinkEvent::Is(link)),
                            RTM_DELLINK => events.push(LinkEvent::Gone(link)),
                            _ => {}
                        }
                    }
                }
                Err(Errno::AGAIN | Errno::INTR) => return Ok(events),
                Err(Errno::NOBUFS) => events.push(LinkEvent::Missed),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl AsFd for LinkMonitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The link in a message.
fn link(body: &[u8]) -> Option<LinkInfo> {
    let word = |at: usize| Some(u32::from_ne_bytes(body.get(at..at + 4)?.try_into().ok()?));
    let kind = u16::from_ne_bytes(body.get(2..4)?.try_into().ok()?);
    let mut link = LinkInfo {
        index: word(4)?,
        up: word(8)? & IFF_UP != 0,
        ethernet: matches!(kind, ETHERNET | LOOPBACK),
        ..LinkInfo::default()
    };
    for (number, value) in each(body.get(LINK_HEAD..)?) {
        let number_of = |value: &[u8]| value.try_into().ok().map(u32::from_ne_bytes);
        match number {
            IFLA_IFNAME => link.name = text(value),
            IFLA_MTU => link.mtu = number_of(value)?,
            IFLA_LINK => link.on = number_of(value),
            IFLA_TXQLEN => link.txqlen = number_of(value)?,
            IFLA_LINKINFO => {
                let kind = each(value).find(|(number, _)| *number == IFLA_INFO_KIND);
                link.kind = kind.map(|(_, value)| text(value)).unwrap_or_default();
            }
            _ => {}
        }
    }
    (!link.name.is_empty()).then_some(link)
}

fn text(value: &[u8]) -> String {
    String::from_utf8_lossy(value).trim_end_matches('\0').to_owned()
}

pub(crate) fn fuzz(bytes: &[u8]) {
    link(bytes);
    messages(bytes).for_each(|reply| drop(link(reply.body)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::namespace_thread::NamespaceThread;
    use crate::netlink::Links;

    #[test]
    fn loopback_is_there_everywhere() {
        let all = links().expect("links");
        assert!(all.iter().any(|link| link.name == "lo" && link.index == 1 && link.ethernet), "{all:?}");
    }

    #[test]
    fn events_of_a_link_are_reported() {
        let Ok(place) = NamespaceThread::new("news") else {
            println!("skipped: no network namespace may be made here");
            return;
        };
        let events = place.go(|| {
            let mut bulletin = LinkMonitor::open().expect("netlink");
            let mut links = Links::open().expect("netlink");
            links.create("one0", "ifb", 7).expect("an ifb");
            let change = crate::netlink::LinkUpdate {
                name: Some("two0".into()),
                mtu: Some(1400),
                ..Default::default()
            };
            links.change("one0", &change).expect("a new name");
            links.delete("two0").expect("it goes");
            bulletin.read().expect("news")
        });
        let events = events.expect("the place");
        let LinkEvent::Is(first) = &events[0] else { panic!("{events:?}") };
        assert_eq!(
            (first.name.as_str(), first.kind.as_str(), first.txqlen, first.up),
            ("one0", "ifb", 7, true)
        );
        assert!(
            events.iter().any(
                |events| matches!(events, LinkEvent::Is(link) if link.name == "two0" && link.mtu == 1400)
            ),
            "{events:?}"
        );
        assert!(matches!(events.last(), Some(LinkEvent::Gone(link)) if link.name == "two0"), "{events:?}");
    }

    #[test]
    fn a_message_cut_short_is_no_link() {
        let whole = [0, 0, 1, 0, 5, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 8, 0, 3, 0, b'e', b'0', 0, 0];
        assert_eq!(link(&whole).map(|link| (link.index, link.name)), Some((5, "e0".into())));
        (0..whole.len() - 1).for_each(|bytes| assert_eq!(link(&whole[..bytes]), None, "{bytes} bytes"));
    }
}
