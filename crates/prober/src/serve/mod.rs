//! The server: a socket for each family of addresses (TCP and UDP), and a thread for each client.
//!
//! ```text
//! socket ── accept ──▶ call thread: messages ──▶ Sessions (shared, no clock of its own) ──▶ actions: send a message, start a stream or a flow, report
//! UDP thread ── packets, stamped by the kernel ──▶ Sessions ──▶ hellos answered
//! ```

mod call;
mod flow;
mod shared;

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate_probe_wire::{NONCE_LEN, PacketHeader, PacketResponse, Quotas, ServerStats, Sessions, Token};
use tidegate_sys::datagrams::{DatagramSocket, OutgoingDatagram, ReceiveBuffers};
use tidegate_sys::poll::readable;
use tidegate_sys::socket;

use shared::{STACK, Shared};

use crate::chance;
use crate::clock::ProbeClock;

/// How often a thread that waits looks whether it shall end.
const LOOK: Duration = Duration::from_millis(100);
/// The congestion controls that need no module.
const LOADED_CONTROLS: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
/// Threads at once, including those of strangers whose place was given away.
const MAX_THREADS: usize = 1024;
/// How to serve.
#[derive(Clone, Debug)]
pub struct Serving {
    /// The addresses; none: all of both families.
    pub at: Vec<IpAddr>,
    /// The port, TCP and UDP; 0: any that is free (of a single address).
    pub port: u16,
    /// The token that clients must know; `None`: there is none.
    pub token: Option<Token>,
    /// What is let happen.
    pub quotas: Quotas,
}

/// A server that is running; it ends when this is dropped.
pub struct Server {
    shared: Arc<Shared>,
    at: Vec<SocketAddr>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server").field("at", &self.at).finish_non_exhaustive()
    }
}

impl Server {
    /// Opens the sockets.
    ///
    /// # Errors
    /// A port is taken, an address not ours. That this machine lacks one of the families is none, if it was
    /// not requested.
    pub fn start(serving: &Serving) -> io::Result<Server> {
        let everywhere = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
        let sessions = Sessions::new(serving.token.clone(), serving.quotas).with_controls(loaded_controls());
        let shared = Arc::new(Shared {
            clock: ProbeClock::begin(),
            sessions: Mutex::new(sessions),
            over: AtomicBool::new(false),
            threads: AtomicUsize::new(0),
        });
        let mut server = Server { shared, at: Vec::new() };
        let wanted = if serving.at.is_empty() { &everywhere[..] } else { &serving.at };
        for &ip in wanted {
            match server.open(SocketAddr::new(ip, serving.port)) {
                Err(_) if serving.at.is_empty() && ip.is_ipv6() && !server.at.is_empty() => {}
                went => went?,
            }
        }
        Ok(server)
    }

    /// Where it listens.
    pub fn at(&self) -> &[SocketAddr] {
        &self.at
    }

    /// How many measure now.
    pub fn sessions(&self) -> usize {
        self.shared.sessions().sessions()
    }

    /// What has happened so far.
    pub fn counts(&self) -> ServerStats {
        self.shared.sessions().counts().clone()
    }

    fn open(&mut self, at: SocketAddr) -> io::Result<()> {
        let listener = socket::listen(at)?;
        let at = listener.local_addr()?;
        let datagrams = Arc::new(DatagramSocket::bind(at)?);
        self.at.push(at);
        let (shared, own) = (Arc::clone(&self.shared), Arc::clone(&datagrams));
        spawn("packets", move || take_packets(&shared, &own))?;
        let shared = Arc::clone(&self.shared);
        spawn("door", move || take_calls(&shared, &listener, &datagrams))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Relaxed);
    }
}

/// The congestion controls that are loaded: requesting another would have the kernel load a module at a
/// client's wish.
fn loaded_controls() -> Vec<String> {
    let known = std::fs::read_to_string(LOADED_CONTROLS).unwrap_or_default();
    known.split_whitespace().map(str::to_owned).collect()
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).stack_size(STACK).spawn(work).map(drop)
}

/// Lets callers in, each on a thread of his own; there are as many as the sessions allow.
fn take_calls(shared: &Arc<Shared>, listener: &TcpListener, datagrams: &Arc<DatagramSocket>) {
    while !shared.is_over() {
        if !matches!(readable(&[listener.as_fd()], LOOK).as_deref(), Ok([true])) {
            continue;
        }
        let Ok((stream, from)) = listener.accept() else {
            // Without descriptors to be had, it continues at once otherwise.
            std::thread::sleep(Duration::from_millis(10));
            continue;
        };
        let _ = let_in(shared, stream, from, datagrams);
    }
}

fn let_in(
    shared: &Arc<Shared>,
    stream: TcpStream,
    from: SocketAddr,
    datagrams: &Arc<DatagramSocket>,
) -> io::Result<()> {
    let (draw, number) = (chance::random_bytes::<NONCE_LEN>()?, u32::from_be_bytes(chance::random_bytes()?));
    let Ok(call) = shared.sessions().call(shared.clock.now(), from.ip(), draw, number) else { return Ok(()) };
    let (own, datagrams) = (Arc::clone(shared), Arc::clone(datagrams));
    if shared.threads.fetch_add(1, Ordering::Relaxed) >= MAX_THREADS {
        shared.threads.fetch_sub(1, Ordering::Relaxed);
        shared.sessions().hang_up(call);
        return Ok(());
    }
    let begun = spawn("call", move || {
        call::answer(&own, call, stream, &datagrams);
        own.sessions().hang_up(call);
        own.threads.fetch_sub(1, Ordering::Relaxed);
    });
    if begun.is_err() {
        shared.sessions().hang_up(call);
        shared.threads.fetch_sub(1, Ordering::Relaxed);
    }
    begun
}

/// Takes what comes by UDP.
fn take_packets(shared: &Shared, socket: &DatagramSocket) {
    let mut room = ReceiveBuffers::default();
    let mut answers: Vec<(SocketAddr, [u8; PacketHeader::ENCODED_LEN], usize)> = Vec::new();
    let mut clock = shared.clock.clone();
    while !shared.is_over() {
        if !matches!(readable(&[socket.as_fd()], LOOK).as_deref(), Ok([true])) {
            continue;
        }
        let mut sessions = shared.sessions();
        let took = socket.receive(&mut room, |packet| {
            let stamp = clock.stamped(packet.stamp);
            if let PacketResponse::Answer(header) =
                sessions.datagram(clock.now(), packet.from, packet.bytes, stamp, packet.ds)
            {
                answers.push((packet.from, header, packet.bytes.len()));
            }
        });
        drop(sessions);
        for (to, header, length) in answers.drain(..) {
            let mut bytes = header.to_vec();
            bytes.resize(length, 0);
            socket.send(&[OutgoingDatagram { to, ds: 0, bytes: &bytes }], |_| {});
        }
        if took.is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}
