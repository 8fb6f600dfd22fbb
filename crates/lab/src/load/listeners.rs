//! The listeners at the ports of a host.

use super::clock::lock;
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};

pub(super) type OnCall = Arc<dyn Fn(TcpStream) + Send + Sync>;
pub(super) type OnDatagram = Arc<dyn Fn(&UdpSocket, &[u8], SocketAddr) + Send + Sync>;

/// The listeners by port.
#[derive(Default)]
pub(crate) struct Listeners {
    pub(super) calls: BTreeMap<u16, Arc<Mutex<Vec<OnCall>>>>,
    pub(super) datagrams: BTreeMap<u16, Arc<Mutex<Vec<OnDatagram>>>>,
}

/// Adds a handler to a port's list; true: it is the first.
pub(super) fn join<T>(
    backends: &mut BTreeMap<u16, Arc<Mutex<Vec<T>>>>,
    port: u16,
    who: T,
) -> (Arc<Mutex<Vec<T>>>, u16, bool) {
    let is_first = !backends.contains_key(&port);
    let list = Arc::clone(backends.entry(port).or_default());
    let ticket = {
        let mut list = lock(&list);
        list.push(who);
        (list.len() - 1) as u16
    };
    (list, ticket, is_first)
}
