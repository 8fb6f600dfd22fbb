//! Packets to a host that sends no replies: a capture there counts them by their numbers.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate_measure::stream::Stream;
use tidegate_sys::datagrams::DatagramSocket;

use tidegate_probe_wire::{NONCE_LEN, Token};

use crate::chance;
use crate::clock::ProbeClock;
use crate::error::Error;
use crate::names::addresses;
use crate::sending::Sending;
use crate::target::ServerTarget;

/// Sends a stream to a host's port and expects nothing; `stop` ends it early. How many packets left this
/// machine.
///
/// # Errors
/// The name has no address, or no socket can be had.
pub fn send_blind(target: &ServerTarget, stream: &Stream, stop: &AtomicBool) -> Result<u64, Error> {
    let all = addresses(&target.host, target.family)?;
    let ip = *all.first().ok_or_else(|| Error::Wrong(format!("`{}` has no address", target.host)))?;
    let any: SocketAddr =
        if ip.is_ipv4() { (Ipv4Addr::UNSPECIFIED, 0).into() } else { (Ipv6Addr::UNSPECIFIED, 0).into() };
    let socket = DatagramSocket::bind(any).map_err(Error::io("open a UDP socket"))?;
    let session = u32::from_be_bytes(chance::random_bytes().map_err(Error::io("draw at random"))?);
    // The seals are not checked.
    let key = Token::open().session_key(&[0; NONCE_LEN], &[0; NONCE_LEN]);
    let to = SocketAddr::new(ip, target.port);
    let sending =
        Sending { clock: &ProbeClock::begin(), socket: &socket, to, stream, session, key: &key, exchange: 0 };
    let departures = sending.send(|| stop.load(Ordering::Relaxed));
    Ok(departures.all().flatten().count() as u64)
}
