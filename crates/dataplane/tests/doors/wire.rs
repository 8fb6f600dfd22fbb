//! Two machines with a wire between them, and someone at a backend of the second who lets go what comes.

use std::fs::File;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tidegate_dataplane::packet_io::{Came, Leaving, PacketIo, PacketIoStats};
use tidegate_sys::namespace_thread::{self, NamespaceThread};
use tidegate_sys::netlink::Links;
use tidegate_sys::poll;

/// The device of either machine.
pub(crate) const WIRE: &str = "wire0";
pub(crate) const ADDRESSES: [&str; 2] = ["10.7.0.1", "10.7.0.2"];
pub(crate) const ADDRESSES_V6: [&str; 2] = ["fd07::1", "fd07::2"];
/// Nothing that is waited for here takes longer on any machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

pub(crate) fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// Both machines: `near` has the backend.
pub(crate) struct Wire {
    pub(crate) remote: NamespaceThread,
    pub(crate) near: NamespaceThread,
}

impl Wire {
    /// Lays the wire; `None`, with the reason printed, where no namespaces may be made.
    pub(crate) fn lay() -> Option<Wire> {
        let made = NamespaceThread::new("far")
            .and_then(|remote| Ok(Wire { remote, near: NamespaceThread::new("near")? }));
        match made {
            Ok(wire) => {
                wire.connect().expect("a wire");
                Some(wire)
            }
            Err(error) => {
                println!("left out: no network namespace can be made here ({error})");
                None
            }
        }
    }

    fn connect(&self) -> io::Result<()> {
        let there = self.remote.go(|| File::open("/proc/thread-self/ns/net"))??;
        self.near.go(move || Links::open()?.pair(WIRE, WIRE, &there))??;
        self.remote.go(|| set_up(0))??;
        self.near.go(|| set_up(1))??;
        self.remote.go(until_up)??;
        self.near.go(until_up)?
    }

    /// Starts someone at a backend of the near machine. What `open` returns is opened there.
    pub(crate) fn keep<D: PacketIo>(
        &self,
        open: impl FnOnce() -> io::Result<D> + Send + 'static,
        decide: impl FnMut(&Came<'_>) -> FrameOutcome + Send + 'static,
    ) -> Keeper {
        keep(&self.near, open, decide)
    }
}

fn set_up(me: usize) -> io::Result<()> {
    let mut links = Links::open()?;
    let index = links.index(WIRE)?;
    links.up(index)?;
    namespace_thread::set("net/ipv4/ping_group_range", "0 0")?;
    for addresses in [ADDRESSES, ADDRESSES_V6] {
        links.address(WIRE, address(addresses[me]))?;
        links.add_route(WIRE, address(addresses[1 - me]))?;
    }
    Ok(())
}

/// Waits until the kernel has noticed that the wire is plugged in at both ends; before, it drops what is
/// sent.
fn until_up() -> io::Result<()> {
    let began = Instant::now();
    while std::fs::read_to_string(format!("/sys/class/net/{WIRE}/operstate"))?.trim() != "up" {
        assert!(began.elapsed() < LIMIT, "the wire does not come up");
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// What happens to a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FrameOutcome {
    Pass,
    Lose,
    /// It leaves with this mark.
    Mark(u32),
    /// It leaves with this DS field.
    DsField(u8),
}

/// Someone at a backend, in a thread of his own.
pub(crate) struct Keeper {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<PacketIoStats>>,
}

impl Keeper {
    /// Ends it; what the backend counted.
    pub(crate) fn end(self) -> io::Result<PacketIoStats> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("nobody at a door panics")
    }
}

/// Starts someone at a backend in a place; returns once the backend is open.
pub(crate) fn keep<D: PacketIo>(
    place: &NamespaceThread,
    open: impl FnOnce() -> io::Result<D> + Send + 'static,
    mut decide: impl FnMut(&Came<'_>) -> FrameOutcome + Send + 'static,
) -> Keeper {
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    let started = place.go(move || {
        let (tell, receiver) = std::sync::mpsc::sync_channel(1);
        let thread = std::thread::spawn(move || {
            let mut packet_io = match open() {
                Ok(packet_io) => packet_io,
                Err(error) => {
                    let _ = tell.send(Err(io::Error::new(error.kind(), error.to_string())));
                    return Err(error);
                }
            };
            let _ = tell.send(Ok(()));
            forward(&mut packet_io, &stopped, &mut decide)
        });
        receiver.recv().expect("it opens, or fails").map(|()| thread)
    });
    let thread = started.expect("the place's thread is there").expect("the door opens");
    Keeper { stop, thread }
}

/// Forwards packets until it is stopped.
pub(crate) fn forward(
    packet_io: &mut dyn PacketIo,
    stop: &AtomicBool,
    decide: &mut dyn FnMut(&Came<'_>) -> FrameOutcome,
) -> io::Result<PacketIoStats> {
    let mut batch: Vec<(u32, usize, u32, FrameOutcome)> = Vec::with_capacity(64);
    while !stop.load(Ordering::Relaxed) {
        poll::readable(&packet_io.handles(), Duration::from_millis(5))?;
        while packet_io
            .receive(64, &mut |came| batch.push((came.ticket, came.place, came.mark, decide(&came))))?
            > 0
        {
            for (ticket, place, mark, outcome) in batch.drain(..) {
                let leaving = match outcome {
                    FrameOutcome::Pass => Leaving::unchanged(place, mark),
                    FrameOutcome::Mark(mark) => Leaving::unchanged(place, mark),
                    FrameOutcome::DsField(byte) => Leaving { place, mark, dsfield: Some(byte), front: None },
                    FrameOutcome::Lose => {
                        packet_io.drop_packet(ticket)?;
                        continue;
                    }
                };
                packet_io.pass(ticket, &leaving)?;
            }
            packet_io.flush()?;
        }
    }
    Ok(packet_io.counts())
}
