//! What the machines at the ends of a wire do.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tidegate_dataplane::packet_io::{Came, PacketIo, PacketIoStats};
use tidegate_sys::namespace_thread::NamespaceThread;
use tidegate_sys::offload::HEADER_LEN;
use tidegate_sys::poll;
use tidegate_sys::socket::EchoSocket;
use tidegate_sys::tap::Tap;

use crate::wire::{ADDRESSES, LIMIT, Wire, address};

/// How long an answer is waited for: on a busy machine it may take a while, and a lost one is requested
/// again.
const PATIENCE: Duration = Duration::from_secs(3);

/// Sends pings until one is answered, at most so many; how many were sent. One that waits longer than
/// [`PATIENCE`] counts as lost.
pub(crate) fn ping(from: &NamespaceThread, to: IpAddr, most: u16, data: u32) -> Option<u16> {
    let attempt = move || -> io::Result<Option<u16>> {
        let echo = EchoSocket::open(to)?;
        for number in 1..=most {
            echo.send_request(number, data)?;
            if echo.reply(PATIENCE)?.is_some() {
                return Ok(Some(number));
            }
        }
        Ok(None)
    };
    from.go(attempt).expect("the place is there").expect("pings can be sent")
}

/// Sends one ping, whose answer someone else waits for.
pub(crate) fn ask(from: &NamespaceThread, to: IpAddr) -> EchoSocket {
    let result = from.go(move || -> io::Result<EchoSocket> {
        let echo = EchoSocket::open(to)?;
        echo.send_request(1, 56)?;
        Ok(echo)
    });
    result.expect("the place is there").expect("pings can be sent")
}

/// Holds a ping in a backend until it is closed, and sees it answered afterwards.
pub(crate) fn is_answered_after<D: PacketIo + Send + 'static>(
    wire: &Wire,
    open: impl FnOnce() -> io::Result<D> + Send + 'static,
    is_ping: impl Fn(&Came<'_>) -> bool + Send + 'static,
) {
    assert_eq!(
        ping(&wire.remote, address(ADDRESSES[1]), 3, 56),
        Some(1),
        "everybody knows where the other is"
    );
    let mut packet_io = wire.near.go(open).expect("place").expect("it opens");
    let echo = ask(&wire.remote, address(ADDRESSES[1]));
    let stats = wire.near.go(move || -> io::Result<PacketIoStats> {
        let mut came = false;
        while !came {
            poll::readable(&packet_io.handles(), LIMIT)?;
            packet_io.receive(64, &mut |packet| came |= is_ping(&packet))?;
        }
        // Here the backend is closed.
        Ok(packet_io.counts())
    });
    assert!(stats.expect("place").expect("the door stands").held > 0);
    assert!(echo.reply(LIMIT).expect("it can be asked").is_some(), "what was held goes on");
}

/// Sends this many bytes over TCP, each with its number's low byte; panics if they do not arrive as they
/// were.
pub(crate) fn transfer(from: &NamespaceThread, to: &NamespaceThread, address: IpAddr, bytes: usize) {
    let listener =
        to.go(move || TcpListener::bind(SocketAddr::new(address, 0))).expect("place").expect("listens");
    let address = listener.local_addr().expect("it is bound");
    let receiving = thread::spawn(move || -> io::Result<Vec<u8>> {
        let (mut stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(LIMIT))?;
        let mut all = Vec::new();
        stream.read_to_end(&mut all)?;
        Ok(all)
    });
    let sent = from.go(move || -> io::Result<()> {
        let mut stream = TcpStream::connect_timeout(&address, LIMIT)?;
        stream.set_write_timeout(Some(LIMIT))?;
        stream.write_all(&(0..bytes).map(|n| n as u8).collect::<Vec<u8>>())
    });
    sent.expect("place").expect("what is sent goes");
    let received = receiving.join().expect("no panic").expect("it is received");
    assert_eq!(received.len(), bytes);
    assert!(received.iter().enumerate().all(|(n, byte)| *byte == n as u8), "what arrived is what was sent");
}

/// Sends a datagram; it need not be received.
pub(crate) fn datagram(from: &NamespaceThread, to: IpAddr, bytes: &'static [u8]) {
    let sent = from.go(move || UdpSocket::bind(any(to))?.send_to(bytes, SocketAddr::new(to, 9)));
    sent.expect("place").expect("it is sent");
}

/// Sends a datagram and waits until it is there.
pub(crate) fn deliver(from: &NamespaceThread, to: &NamespaceThread, address: IpAddr, bytes: &'static [u8]) {
    let receiver =
        to.go(move || UdpSocket::bind(SocketAddr::new(address, 0))).expect("place").expect("a socket");
    let there = receiver.local_addr().expect("it is bound");
    receiver.set_read_timeout(Some(LIMIT)).expect("a limit");
    from.go(move || UdpSocket::bind(any(address))?.send_to(bytes, there))
        .expect("place")
        .expect("it is sent");
    let mut room = [0; 100];
    let read = receiver.recv(&mut room).expect("it arrives");
    assert_eq!(&room[..read], bytes);
}

/// Any address and port of the same family.
fn any(like: IpAddr) -> SocketAddr {
    match like {
        IpAddr::V4(_) => SocketAddr::from(([0; 4], 0)),
        IpAddr::V6(_) => SocketAddr::from(([0; 16], 0)),
    }
}

/// Sends IPv4 packets back to where they came from, until so many were echo requests (then answers) or
/// datagrams.
pub(crate) fn turn_round(tun: &Tap, most: usize) -> io::Result<()> {
    let mut left = most;
    while left > 0 {
        if poll::readable(&[tun.as_fd()], Duration::from_millis(500))? != [true] {
            return Ok(());
        }
        let mut packet = [0; 2048];
        let Some(bytes) = tun.read(&mut [io::IoSliceMut::new(&mut packet)])? else { continue };
        let ip = HEADER_LEN;
        if packet[ip] != 0x45 {
            continue;
        }
        let (source, destination): ([u8; 4], [u8; 4]) =
            (std::array::from_fn(|n| packet[ip + 12 + n]), std::array::from_fn(|n| packet[ip + 16 + n]));
        packet[ip + 12..ip + 16].copy_from_slice(&destination);
        packet[ip + 16..ip + 20].copy_from_slice(&source);
        if packet[ip + 9] == 1 && packet[ip + 20] == 8 {
            // The checksum knows that eight is gone from the type.
            packet[ip + 20] = 0;
            let sum = u16::from_be_bytes([packet[ip + 22], packet[ip + 23]]);
            let sum = tidegate_packet::checksum::updated(sum, &[8, 0], &[0, 0]);
            packet[ip + 22..ip + 24].copy_from_slice(&sum.to_be_bytes());
        }
        tun.write(&[io::IoSlice::new(&packet[..bytes])])?;
        left -= 1;
    }
    Ok(())
}

/// The outcome of a stream of numbered datagrams.
#[derive(Debug)]
#[expect(dead_code, reason = "they are printed")]
pub(crate) struct Seen {
    sent: u64,
    lost: u64,
    /// The longest time without any, ms.
    longest_gap_ms: f64,
    /// Datagrams a second, about.
    rate: f64,
}

/// Numbered datagrams, one after another, until it is ended.
pub(crate) struct Stream {
    stop: Arc<AtomicBool>,
    sent: Arc<AtomicU64>,
    received: Arc<AtomicU64>,
    last: Arc<AtomicU64>,
    sender: JoinHandle<io::Result<()>>,
    receiver: JoinHandle<io::Result<Duration>>,
    began: Instant,
}

/// Starts it: about 20,000 a second.
pub(crate) fn stream(from: &NamespaceThread, to: &NamespaceThread, address: IpAddr) -> Stream {
    let socket =
        to.go(move || UdpSocket::bind(SocketAddr::new(address, 0))).expect("place").expect("a socket");
    let there = socket.local_addr().expect("it is bound");
    let out = from.go(move || UdpSocket::bind(any(address))).expect("place").expect("a socket");
    let (stop, sent, received, last) = (Arc::default(), Arc::default(), Arc::default(), Arc::default());
    let sender = {
        let (stop, sent): (Arc<AtomicBool>, Arc<AtomicU64>) = (Arc::clone(&stop), Arc::clone(&sent));
        thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                for _ in 0..10 {
                    let number = sent.fetch_add(1, Ordering::Relaxed) + 1;
                    out.send_to(&number.to_ne_bytes(), there)?;
                }
                thread::sleep(Duration::from_micros(500));
            }
            // The end marker.
            out.send_to(&[], there).map(drop)
        })
    };
    let receiver = {
        let (received, last): (Arc<AtomicU64>, Arc<AtomicU64>) = (Arc::clone(&received), Arc::clone(&last));
        thread::spawn(move || {
            socket.set_read_timeout(Some(LIMIT))?;
            let (mut room, mut before, mut longest) = ([0; 8], Instant::now(), Duration::ZERO);
            while socket.recv(&mut room)? == 8 {
                longest = longest.max(before.elapsed());
                before = Instant::now();
                received.fetch_add(1, Ordering::Relaxed);
                last.store(u64::from_ne_bytes(room), Ordering::Relaxed);
            }
            Ok(longest)
        })
    };
    Stream { stop, sent, received, last, sender, receiver, began: Instant::now() }
}

impl Stream {
    /// How many were sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Waits until so many arrived.
    pub(crate) fn wait_for(&self, count: u64) {
        self.wait(|| self.received.load(Ordering::Relaxed) >= count);
    }

    /// Waits until one of this number or a later one arrived.
    pub(crate) fn wait_for_number(&self, number: u64) {
        self.wait(|| self.last.load(Ordering::Relaxed) >= number);
    }

    fn wait(&self, done: impl Fn() -> bool) {
        let began = Instant::now();
        while !done() {
            assert!(began.elapsed() < LIMIT, "nothing arrives any more");
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Stops the sender and returns what was received.
    pub(crate) fn end(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        self.sender.join().expect("no panic").expect("datagrams are sent");
        let longest = self.receiver.join().expect("no panic").expect("datagrams are received");
        let sent = self.sent.load(Ordering::Relaxed);
        let lost = sent - self.received.load(Ordering::Relaxed);
        let rate = sent as f64 / self.began.elapsed().as_secs_f64();
        Seen { sent, lost, longest_gap_ms: longest.as_secs_f64() * 1e3, rate }
    }
}

/// Datagrams with numbers, of which the order of arrival is kept.
pub(crate) struct Numbered {
    out: UdpSocket,
    to: SocketAddr,
    count: u64,
    receiver: UdpSocket,
    numbers: Vec<u64>,
}

/// So many, once it is begun.
pub(crate) fn numbered(
    from: &NamespaceThread,
    to: &NamespaceThread,
    address: IpAddr,
    count: u64,
) -> Numbered {
    let receiver =
        to.go(move || UdpSocket::bind(SocketAddr::new(address, 0))).expect("place").expect("a socket");
    receiver.set_nonblocking(true).expect("a socket can be asked without waiting");
    let to = receiver.local_addr().expect("it is bound");
    let out = from.go(move || UdpSocket::bind(any(address))).expect("place").expect("a socket");
    Numbered { out, to, count, receiver, numbers: Vec::new() }
}

impl Numbered {
    /// Sends all of them.
    pub(crate) fn begin(&self) {
        for number in 1..=self.count {
            self.out.send_to(&number.to_ne_bytes(), self.to).expect("it is sent");
        }
    }

    /// Takes in what arrived.
    pub(crate) fn receive_some(&mut self) {
        let mut room = [0; 8];
        while let Ok(8) = self.receiver.recv(&mut room) {
            self.numbers.push(u64::from_ne_bytes(room));
        }
    }

    /// What arrived, in order.
    pub(crate) fn numbers(&self) -> &[u64] {
        &self.numbers
    }
}
