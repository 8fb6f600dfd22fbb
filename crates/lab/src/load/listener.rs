//! The ports of a host: several that listen at one of them are distinguished by a ticket, the first two bytes
//! of what comes.

use std::io::{self, Read};
use std::net::{IpAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::clock::{LOOK, LoadClock, any_like, is_patience, lock, spawn};
use super::listeners::{OnCall, OnDatagram, join};
use crate::host::LabHost;

/// Bytes of a ticket.
pub(super) const TICKET: usize = 2;
/// Connections that a port serves at once; one too many is turned away.
const MOST: usize = 512;
/// How long a caller may take to show his ticket.
const PATIENCE: Duration = Duration::from_secs(60);

impl LabHost {
    /// Registers a handler for the TCP calls of a port; it has a thread of its own. Returns the ticket that
    /// calls for it must show.
    ///
    /// # Errors
    /// The port is taken.
    pub(super) fn on_call(&self, clock: &LoadClock, like: IpAddr, port: u16, who: OnCall) -> io::Result<u16> {
        let (list, ticket, is_first) = join(&mut lock(&self.listeners).calls, port, who);
        if is_first {
            let clock = clock.clone();
            self.go(move || {
                let listener = TcpListener::bind((any_like(like), port))?;
                listener.set_nonblocking(true)?;
                spawn(clock, "door", move |clock| take_calls(clock, &listener, &list))
            })??;
        }
        Ok(ticket)
    }

    /// Registers a handler for the datagrams that come to a port with the ticket that is returned.
    ///
    /// # Errors
    /// The port is taken.
    pub(super) fn on_datagram(
        &self,
        clock: &LoadClock,
        like: IpAddr,
        port: u16,
        who: OnDatagram,
    ) -> io::Result<u16> {
        let (list, ticket, is_first) = join(&mut lock(&self.listeners).datagrams, port, who);
        if is_first {
            let clock = clock.clone();
            self.go(move || {
                let socket = UdpSocket::bind((any_like(like), port))?;
                socket.set_read_timeout(Some(LOOK))?;
                spawn(clock, "door", move |clock| take_datagrams(clock, &socket, &list))
            })??;
        }
        Ok(ticket)
    }
}

fn take_calls(clock: &LoadClock, listener: &TcpListener, list: &Arc<Mutex<Vec<OnCall>>>) {
    let inside = Arc::new(AtomicUsize::new(0));
    while !clock.is_over() {
        match listener.accept() {
            Ok((stream, _)) if inside.load(Ordering::Relaxed) < MOST => {
                let (list, inside) = (Arc::clone(list), Arc::clone(&inside));
                inside.fetch_add(1, Ordering::Relaxed);
                let _ = spawn(clock.clone(), "called", move |_| {
                    if let Some((who, stream)) = meant(stream, &list) {
                        who(stream);
                    }
                    inside.fetch_sub(1, Ordering::Relaxed);
                });
            }
            Ok(_) => {}
            Err(error) if is_patience(&error) => std::thread::sleep(Duration::from_millis(1)),
            Err(_) => return,
        }
    }
}

/// The handler of a call.
fn meant(mut stream: TcpStream, list: &Mutex<Vec<OnCall>>) -> Option<(OnCall, TcpStream)> {
    let mut ticket = [0; TICKET];
    stream.set_nonblocking(false).ok()?;
    stream.set_read_timeout(Some(PATIENCE)).ok()?;
    stream.read_exact(&mut ticket).ok()?;
    let who = lock(list).get(usize::from(u16::from_be_bytes(ticket))).cloned()?;
    Some((who, stream))
}

fn take_datagrams(clock: &LoadClock, socket: &UdpSocket, list: &Mutex<Vec<OnDatagram>>) {
    let mut message = [0; 65_536];
    while !clock.is_over() {
        match socket.recv_from(&mut message) {
            Ok((bytes, from)) => {
                let Some((ticket, rest)) = message[..bytes].split_at_checked(TICKET) else { continue };
                let who = lock(list).get(usize::from(u16::from_be_bytes([ticket[0], ticket[1]]))).cloned();
                if let Some(who) = who {
                    who(socket, rest, from);
                }
            }
            Err(error) if !is_patience(&error) => return,
            Err(_) => {}
        }
    }
}
