//! The backend between two network namespaces: a TUN device in each, and nothing else joins them.
//!
//! What one side sends by its device leaves here by the other's, whole super-packets too. Nothing of either
//! side is captured or changed, and whoever may make a device in both namespaces may open it: in user
//! namespaces of one's own that is every user. When its owner dies, so do the devices: the two sides are
//! apart until the backend is opened again.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

use tidegate_sys::namespace_thread;
use tidegate_sys::netlink::{LinkUpdate, Links};
use tidegate_sys::tap::{Carries, SuperPackets, Tap};

use super::buffer_pool::{BufferPool, Read};
use super::{Came, Leaving, PacketIo, PacketIoStats, Passed};

/// Packets that may wait before the backend.
const WAITING: u32 = 10_000;
/// Packets that are read of one side before the other has its turn.
const TURN: usize = 32;

/// One side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TunEnd {
    /// Its network namespace, as a file (`/proc/PID/ns/net`); `None`: that of the calling thread.
    pub namespace: Option<PathBuf>,
    /// What its device will be called.
    pub name: String,
    /// Bytes of its largest packet.
    pub mtu: u32,
}

/// The backend. Place 0 is what the first side sends, place 1 what the second does.
#[derive(Debug)]
pub struct TunIo {
    taps: [Tap; 2],
    slots: BufferPool,
    counts: PacketIoStats,
    /// Which side is read first: they take turns.
    next: usize,
    /// What was read last.
    fresh: Vec<u32>,
}

impl TunIo {
    /// Opens the backend: a device on either side, up, without addresses and routes: those are the caller's
    /// to add.
    ///
    /// # Errors
    /// Which device could not be made, and why.
    pub fn open(ends: &[TunEnd; 2]) -> io::Result<TunIo> {
        let [first, second] = ends;
        let taps = [made(first)?, made(second)?];
        let (slots, counts, fresh) =
            (BufferPool::default(), PacketIoStats::default(), Vec::with_capacity(TURN));
        Ok(TunIo { taps, slots, counts, next: 0, fresh })
    }

    /// Reads packets of one side, in two passes, so that the consumer finds its data in the processor's
    /// caches rather than the kernel's.
    fn read(&mut self, at: usize, most: usize, take: &mut dyn FnMut(Came<'_>)) -> io::Result<usize> {
        let read = self.read_in(at, most);
        for ticket in &self.fresh {
            let slot = self.slots.slot(*ticket);
            let (frame, len) = (slot.front(), slot.len());
            let segments = slot.offload.segments(frame, len);
            take(Came {
                ticket: *ticket,
                place: at,
                frame,
                link_header: 0,
                len,
                mark: 0,
                priority: 0,
                segments,
            });
        }
        read.map(|()| self.fresh.len())
    }

    /// Reads into slots what one side sent.
    fn read_in(&mut self, at: usize, most: usize) -> io::Result<()> {
        self.fresh.clear();
        for _ in 0..most {
            let tap = &self.taps[at];
            let ticket = match self.slots.read(|into| tap.read(into))? {
                Read::Packet(ticket) => ticket,
                Read::Nothing => break,
                Read::Full => {
                    self.counts.overruns += 1;
                    continue;
                }
            };
            let slot = self.slots.slot_mut(ticket);
            slot.place = at;
            if slot.len() == 0 {
                self.counts.malformed += 1;
                self.slots.forget(ticket);
                continue;
            }
            self.slots.hold(ticket);
            self.counts.received += 1;
            self.fresh.push(ticket);
        }
        Ok(())
    }
}

fn made(end: &TunEnd) -> io::Result<Tap> {
    let TunEnd { namespace, name, mtu } = end.clone();
    let make = move || -> io::Result<Tap> {
        let tap = Tap::create(&name, Carries::Packets)?;
        let change =
            LinkUpdate { up: Some(true), txqlen: Some(WAITING), mtu: Some(mtu), ..LinkUpdate::default() };
        Links::open()?.change(tap.name(), &change)?;
        Ok(tap)
    };
    let tap = match namespace {
        None => make(),
        Some(namespace) => {
            File::open(&namespace).and_then(|namespace| namespace_thread::inside(namespace, make)?)
        }
    };
    tap.map_err(|error| {
        io::Error::new(error.kind(), format!("the TUN device `{}` cannot be made: {error}", end.name))
    })
}

impl PacketIo for TunIo {
    fn receive(&mut self, most: usize, take: &mut dyn FnMut(Came<'_>)) -> io::Result<usize> {
        let (mut taken, mut idle) = (0, 0);
        while taken < most && idle < 2 {
            let came = self.read(self.next, TURN.min(most - taken), take)?;
            self.next = 1 - self.next;
            taken += came;
            idle = if came == 0 { idle + 1 } else { 0 };
        }
        Ok(taken)
    }

    fn pass(&mut self, ticket: u32, leaving: &Leaving<'_>) -> io::Result<Passed> {
        let slot = self.slots.take_back(ticket)?;
        if !slot.change(0, leaving) {
            self.counts.unchanged += 1;
        }
        let slot = self.slots.slot(ticket);
        let bytes = [&slot.offload.0[..], slot.front(), slot.rest()].map(IoSlice::new);
        let written = match leaving.place {
            0 => self.taps[1].write(&bytes),
            1 => self.taps[0].write(&bytes),
            _ => Ok(false),
        };
        self.slots.release(ticket);
        let went = *written.as_ref().unwrap_or(&false);
        *if went { &mut self.counts.passed } else { &mut self.counts.full } += 1;
        written.map(|_| if went { Passed::Gone } else { Passed::Full })
    }

    fn drop_packet(&mut self, ticket: u32) -> io::Result<()> {
        self.slots.take_back(ticket)?;
        self.slots.release(ticket);
        self.counts.dropped += 1;
        Ok(())
    }

    fn copy(&mut self, ticket: u32) -> Option<u32> {
        let copy = self.slots.copy(ticket)?;
        self.counts.received += 1;
        Some(copy)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn handles(&self) -> Vec<BorrowedFd<'_>> {
        self.taps.iter().map(AsFd::as_fd).collect()
    }

    fn counts(&self) -> PacketIoStats {
        PacketIoStats { held: self.slots.held(), ..self.counts }
    }

    fn split(&mut self, split: bool) -> io::Result<()> {
        let kinds = if split { SuperPackets::NONE } else { SuperPackets::ALL };
        self.taps.iter().try_for_each(|tap| tap.keep(kinds))
    }

    fn cannot(&self) -> &'static [&'static str] {
        &[
            "Only IP comes through a TUN device, without link headers.",
            "Marks, priorities and connections of the kernel end at the TUN device.",
            "What the kernel dropped before it is counted by the TUN devices, not here.",
            "When its owner dies, the two sides are apart.",
        ]
    }
}
