//! Round trips that any user may measure, where sending echo requests is not allowed or nothing answers them:
//! datagrams that a tidegate server sends back, and the time that a TCP connection takes to open or to be
//! refused (SYN to SYN-ACK or RST, RFC 9293).

use std::fmt;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tidegate_measure::pinged::PingRequest;
use tidegate_probe_wire::{PacketHeader, ProbePacketKind, Role};
use tidegate_sys::datagrams::{OutgoingDatagram, ReceiveBuffers};
use tidegate_sys::poll::readable;

use crate::error::Error;
use crate::server::ServerSession;

/// The shortest interval of connections: a host of others must not take them for a flood of SYNs.
pub const LEAST_BETWEEN_CONNECTIONS: Duration = Duration::from_millis(200);
/// How long a connection may take to open.
const CONNECT: Duration = Duration::from_secs(4);
/// How long each port is tried when one is looked for that answers.
const FIRST: Duration = Duration::from_millis(1500);
/// How soon it is noticed that all is over.
const NOTICE: Duration = Duration::from_millis(20);
/// Connections that are opening at once, at most.
const MOST_OPENING: usize = 64;
/// Requests that are kept, at most.
const MOST: usize = 100_000;

/// How a host answers an attempt to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnsweringPort {
    /// Its address and port.
    pub at: SocketAddr,
    /// The connection is refused (RST), not opened.
    pub is_refused: bool,
}

/// Repeated round trips to one host, in threads of their own; they end when this is dropped.
pub struct RoundTrips {
    requests: Arc<Mutex<Vec<PingRequest>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for RoundTrips {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RoundTrips").finish_non_exhaustive()
    }
}

impl RoundTrips {
    /// By datagrams that the server of a session sends back, to its client only. Times are ns since
    /// `began`.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn by_server(
        session: &ServerSession,
        interval: Duration,
        began: Instant,
    ) -> Result<RoundTrips, Error> {
        let echo = ServerEcho::new(session, began);
        RoundTrips::spawn(move |requests, stop| echo.go(interval, requests, stop))
    }

    /// By connections that open, or are refused, and are closed at once. Times are ns since `began`. A SYN
    /// that is lost is sent again after a second, so its request takes a second more.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn by_connecting(to: SocketAddr, interval: Duration, began: Instant) -> Result<RoundTrips, Error> {
        let interval = interval.max(LEAST_BETWEEN_CONNECTIONS);
        RoundTrips::spawn(move |requests, stop| connections(to, (interval, began), requests, stop))
    }

    fn spawn(
        work: impl FnOnce(&Arc<Mutex<Vec<PingRequest>>>, &AtomicBool) + Send + 'static,
    ) -> Result<RoundTrips, Error> {
        let (requests, stop) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let (theirs, ends) = (Arc::clone(&requests), Arc::clone(&stop));
        let thread =
            std::thread::Builder::new().name("round trips".to_owned()).spawn(move || work(&theirs, &ends));
        let thread = Some(thread.map_err(Error::io("start a thread"))?);
        Ok(RoundTrips { requests, stop, thread })
    }

    /// Every request so far, in order.
    #[must_use]
    pub fn requests(&self) -> Vec<PingRequest> {
        lock(&self.requests).clone()
    }
}

impl Drop for RoundTrips {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The first of these ports of a host that answers an attempt to connect, be it by refusing; `None`: none
/// did within a second and a half.
#[must_use]
pub fn answering_port(to: IpAddr, ports: &[u16]) -> Option<AnsweringPort> {
    std::thread::scope(|scope| {
        let one = |port: &u16| {
            let at = SocketAddr::new(to, *port);
            scope.spawn(move || {
                let is_refused = answered(&TcpStream::connect_timeout(&at, FIRST))?;
                Some(AnsweringPort { at, is_refused })
            })
        };
        let tried: Vec<_> = ports.iter().map(one).collect();
        let found: Vec<AnsweringPort> =
            tried.into_iter().filter_map(|thread| thread.join().ok().flatten()).collect();
        // One that opens is the host's own; a refusal may be a firewall's on the way.
        found.iter().find(|port| !port.is_refused).or(found.first()).copied()
    })
}

/// Whether the host answered, and if so, whether it refused.
fn answered(went: &std::io::Result<TcpStream>) -> Option<bool> {
    match went {
        Ok(_) => Some(false),
        Err(why) if why.kind() == ErrorKind::ConnectionRefused => Some(true),
        Err(_) => None,
    }
}

fn lock(requests: &Mutex<Vec<PingRequest>>) -> std::sync::MutexGuard<'_, Vec<PingRequest>> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}

fn since(began: Instant) -> u64 {
    u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Notes a request, and gives its number; `None`: as many as are kept were sent.
fn ask(requests: &Mutex<Vec<PingRequest>>, sent_ns: u64) -> Option<usize> {
    let mut all = lock(requests);
    if all.len() >= MOST {
        return None;
    }
    all.push(PingRequest { sent_ns, ..PingRequest::default() });
    Some(all.len() - 1)
}

/// Notes the first answer to a request.
fn note(requests: &Mutex<Vec<PingRequest>>, number: usize, at_ns: u64) {
    if let Some(request) = lock(requests).get_mut(number).filter(|request| request.took_ns.is_none()) {
        request.took_ns = Some(at_ns.saturating_sub(request.sent_ns));
    }
}

fn connections(
    to: SocketAddr,
    (interval, began): (Duration, Instant),
    requests: &Arc<Mutex<Vec<PingRequest>>>,
    stop: &AtomicBool,
) {
    let mut due = Instant::now();
    let mut opening: Vec<JoinHandle<()>> = Vec::new();
    while !stop.load(Ordering::Acquire) {
        let left = due.saturating_duration_since(Instant::now());
        if !left.is_zero() {
            std::thread::sleep(left.min(NOTICE));
            continue;
        }
        due = (due + interval).max(Instant::now());
        opening.retain(|thread| !thread.is_finished());
        let Some(number) = ask(requests, since(began)).filter(|_| opening.len() < MOST_OPENING) else {
            continue;
        };
        let theirs = Arc::clone(requests);
        let one = move || {
            let went = TcpStream::connect_timeout(&to, CONNECT);
            let at = since(began);
            if answered(&went).is_some() {
                note(&theirs, number, at);
            }
        };
        opening.extend(std::thread::Builder::new().name("connect".to_owned()).spawn(one));
    }
    // Those that still wait end within `CONNECT`.
}

/// Packets that a server sends back.
struct ServerEcho {
    socket: Arc<tidegate_sys::datagrams::DatagramSocket>,
    server: SocketAddr,
    session: u32,
    keys: [tidegate_probe_wire::SessionKey; 2],
    clock: crate::ProbeClock,
    /// What the session's clock shows at the beginning of the caller's times.
    zero_ns: u64,
}

impl ServerEcho {
    fn new(session: &ServerSession, began: Instant) -> ServerEcho {
        let (socket, server, number, key) = session.echo();
        let clock = session.clock().clone();
        let zero_ns = clock.now().saturating_sub(since(began));
        let keys = [key.packets(Role::Client), key.packets(Role::Server)];
        ServerEcho { socket, server, session: number, keys, clock, zero_ns }
    }

    fn go(mut self, interval: Duration, requests: &Mutex<Vec<PingRequest>>, stop: &AtomicBool) {
        let mut room = ReceiveBuffers::default();
        let mut due = Instant::now();
        while !stop.load(Ordering::Acquire) {
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                due = (due + interval).max(Instant::now());
                self.send(requests);
                continue;
            }
            let _ = readable(&[self.socket.as_fd()], left.min(NOTICE));
            self.receive(&mut room, requests);
        }
    }

    fn send(&self, requests: &Mutex<Vec<PingRequest>>) {
        let sent = self.clock.now();
        let Some(number) = ask(requests, sent.saturating_sub(self.zero_ns)) else { return };
        let header = PacketHeader {
            kind: ProbePacketKind::Hello,
            exchange: 0,
            session: self.session,
            number: number as u32,
            sent,
        };
        let bytes = header.write(&self.keys[0]);
        self.socket.send(&[OutgoingDatagram { to: self.server, ds: 0, bytes: &bytes }], |_| {});
    }

    fn receive(&mut self, room: &mut ReceiveBuffers, requests: &Mutex<Vec<PingRequest>>) {
        let (session, key, clock) = (self.session, &self.keys[1], &mut self.clock);
        let zero_ns = self.zero_ns;
        let took = self.socket.receive(room, |packet| {
            let at = clock.stamped(packet.stamp).saturating_sub(zero_ns);
            let seen = PacketHeader::read_sealed(packet.bytes, key)
                .filter(|header| header.kind == ProbePacketKind::Seen && header.session == session);
            if let Some(header) = seen {
                note(requests, header.number as usize, at);
            }
        });
        if took.is_err() {
            std::thread::sleep(NOTICE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServerTarget;
    use crate::serve::{Server, Serving};
    use std::net::{Ipv4Addr, TcpListener};
    use tidegate_probe_wire::Quotas;

    /// Until so many were answered; a bound keeps a mistake from waiting for ever.
    fn answers(trips: &RoundTrips, count: usize) -> Vec<u64> {
        for _ in 0..2000 {
            let took: Vec<u64> = trips.requests().iter().filter_map(|request| request.took_ns).collect();
            if took.len() >= count {
                return took;
            }
            std::thread::yield_now();
            let _ = readable(&[], Duration::from_millis(5));
        }
        panic!("{:?}", trips.requests());
    }

    #[test]
    fn a_server_sends_packets_back() {
        let at = vec![IpAddr::from(Ipv4Addr::LOCALHOST)];
        let serving = Serving { at, port: 0, token: None, quotas: Quotas::default() };
        let server = Server::start(&serving).expect("a server");
        let target = ServerTarget { port: server.at()[0].port(), ..ServerTarget::new("127.0.0.1") };
        let session = ServerSession::connect(&target).expect("a session");
        let began = Instant::now();
        let trips = RoundTrips::by_server(&session, Duration::from_millis(5), began).expect("a thread");
        assert!(answers(&trips, 3).iter().all(|took| *took > 0));
        let sent: Vec<u64> = trips.requests().iter().map(|request| request.sent_ns).collect();
        assert!(sent.is_sorted() && sent[0] < since(began), "{sent:?}");
    }

    #[test]
    fn an_open_port_and_a_closed_one_answer() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let open = listener.local_addr().expect("an address");
        let closed = {
            let other = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
            other.local_addr().expect("an address").port()
        };
        // The port that opens is preferred, wherever it stands in the list.
        let found = answering_port(open.ip(), &[closed, open.port()]);
        assert_eq!(found, Some(AnsweringPort { at: open, is_refused: false }));
        let refused = answering_port(open.ip(), &[closed]).expect("it is refused");
        assert_eq!((refused.is_refused, refused.at.port()), (true, closed));
        assert_eq!(answering_port(open.ip(), &[]), None);
        let trips = RoundTrips::by_connecting(refused.at, Duration::ZERO, Instant::now()).expect("a thread");
        answers(&trips, 1);
    }
}
