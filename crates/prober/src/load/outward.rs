//! Datagrams whose hop limit ends at a router near by: they fill the upload, and reach nothing beyond that
//! router.

use super::echo::is_passing;
use super::meter::{ByteMeter, FIRST, Pace, RunningLoad, Shared};
use crate::Error;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tidegate_measure::ramp::{Delayed, STEP};
use tidegate_sys::stamped;

/// Bytes of payload, and of what goes in front of them: a packet of 1,400.
const PAYLOAD: usize = 1372;
const HEADS: usize = 28;
/// "Discard" (RFC 863): a datagram that gets there after all has no reply.
const PORT: u16 = 9;
/// How soon it is noticed that all is over.
const NOTICE: Duration = Duration::from_millis(5);

/// Sends datagrams towards an address that are dropped after `hops` routers, so that the upload is full, at
/// most at this rate in bits per second. `growth` gives how many ns longer that router's reply takes than on
/// the idle line. `round_trip_ns`: of a reply there. The meter counts what was sent, IP headers included.
///
/// # Errors
/// No way.
pub fn outward(
    (to, hops): (IpAddr, u8),
    (most, round_trip_ns): (f64, u64),
    began: Instant,
    growth: impl Fn() -> Option<u64> + Send + 'static,
) -> Result<RunningLoad, Error> {
    let socket = open(to, hops).map_err(Error::io(format!("send datagrams towards {to}")))?;
    let mut ramp = Delayed::new(FIRST, most, round_trip_ns);
    let mut load = RunningLoad::new(began);
    load.spawn("outward", move |shared, meter| {
        if let Err(error) = go(&socket, &mut ramp, &growth, (shared, meter)) {
            shared.stop(format!("datagrams towards {to} cannot be sent: {error}"));
        }
    })?;
    Ok(load)
}

fn open(to: IpAddr, hops: u8) -> io::Result<UdpSocket> {
    let any: IpAddr = if to.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    stamped::hop_limit(&socket, to.is_ipv6(), hops)?;
    socket.connect(SocketAddr::new(to, PORT))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn go(
    socket: &UdpSocket,
    ramp: &mut Delayed,
    growth: &impl Fn() -> Option<u64>,
    (shared, meter): (&Shared, &ByteMeter),
) -> io::Result<()> {
    let payload = [0x55; PAYLOAD];
    let (mut pace, mut step, mut is_level) = (Pace::new(), Instant::now(), false);
    let length = Duration::from_nanos(STEP);
    while !shared.is_over() {
        for _ in 0..pace.due(PAYLOAD + HEADS, ramp.offered()) {
            match socket.send(&payload) {
                Ok(_) => meter.add((PAYLOAD + HEADS) as u64),
                Err(error) if is_passing(&error) => {}
                Err(error) => return Err(error),
            }
        }
        if !is_level && shared.level.load(Ordering::Acquire) {
            is_level = true;
            ramp.level();
        }
        while step.elapsed() >= length {
            step += length;
            ramp.step(growth());
            shared.full.fetch_or(ramp.was_full(), Ordering::AcqRel);
        }
        pace.rest(NOTICE);
    }
    Ok(())
}
