//! The queueing backend: packets wait in netfilter's queues, and only their fronts come here.
//!
//! Marks and connections stay the kernel's, senders notice how long their packets wait, and nothing is copied
//! but headers. What is held when its owner dies is dropped by the kernel; what comes afterwards passes.

mod rules;

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use tidegate_packet::header::{ethertype, proto};
use tidegate_sys::nfqueue::{self, COPIED, Keeping, QueuedPacket, Queues};

use super::facts::Facts;
use super::{AttachPoint, Came, Leaving, PacketIo, PacketIoStats, Passed, bytes, unknown_ticket};
use rules::Rules;

/// Bytes of a front: a made-up link header, and what the kernel copies.
const FRONT: usize = 14 + COPIED;
/// What is in a mark from the backend to the rules behind it by default.
const CONGESTED: u32 = 1 << 31;
/// The most packets that wait, those held by the engine included.
const LONGEST: u32 = 1 << 16;

/// How many others may have queues beside ours.
const NEIGHBOURS: usize = 64;

/// How the backend is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The number of the first place's queue; the others follow. No other program may use them.
    pub first: u16,
    /// The most packets that wait in each queue, those held by the engine included.
    pub longest: u32,
    /// What finds no space passes unshaped (true), or is dropped.
    pub fail_open: bool,
    /// A bit of the mark that nothing else uses: packets have it between the backend and the rule that writes
    /// CE into them.
    pub congested: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { first: 7000, longest: LONGEST, fail_open: true, congested: CONGESTED }
    }
}

/// The backend. What is first here is dropped first.
#[derive(Debug)]
pub struct QueueIo {
    /// They lead packets here.
    rules: Rules,
    queues: Queues,
    options: Options,
    places: Vec<Facts>,
    slots: Vec<Slot>,
    free: Vec<u32>,
    counts: PacketIoStats,
}

/// A packet held.
#[derive(Clone, Debug)]
struct Slot {
    front: [u8; FRONT],
    bytes: usize,
    id: u32,
    place: usize,
    mark: u32,
    held: bool,
}

impl QueueIo {
    /// Opens the backend with the first free queues.
    ///
    /// # Errors
    /// As for [`QueueIo::open`].
    pub fn anywhere(spots: &[AttachPoint]) -> io::Result<QueueIo> {
        let options = Options::default();
        let step = u16::try_from(spots.len().max(1)).map_err(io::Error::other)?;
        let firsts = (options.first..u16::MAX - step).step_by(step.into()).take(NEIGHBOURS);
        let mut problem = None;
        for first in firsts {
            match QueueIo::open(spots, Options { first, ..options }) {
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::ResourceBusy | io::ErrorKind::PermissionDenied
                    ) =>
                {
                    problem = Some(problem.unwrap_or(error));
                }
                opened => return opened,
            }
        }
        Err(problem.unwrap_or_else(|| io::Error::other("no queue was tried")))
    }

    /// Opens the backend at these places, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The device that is missing or unknown; the queue that another program has; the kernel has no queues,
    /// or no rules that lead there; or permission is missing.
    pub fn open(spots: &[AttachPoint], options: Options) -> io::Result<QueueIo> {
        let facts = |point: &AttachPoint| {
            Facts::of(&point.dev)
                .map_err(|error| io::Error::new(error.kind(), format!("`{}`: {error}", point.dev)))
        };
        let places: Vec<Facts> = spots.iter().map(facts).collect::<io::Result<_>>()?;
        let mut queues = Queues::open()?;
        for number in (options.first..).take(spots.len()) {
            queues.take(number, options.keeping(true)).map_err(|error| {
                io::Error::new(error.kind(), format!("queue {number} of netfilter cannot be taken: {error}"))
            })?;
        }
        let rules = Rules::make(spots, options.first, options.congested)?;
        let (slots, free, counts) = (Vec::new(), Vec::new(), PacketIoStats::default());
        Ok(QueueIo { rules, queues, options, places, slots, free, counts })
    }

    /// The queue of a place.
    fn queue(&self, place: usize) -> u16 {
        self.options.first + place as u16
    }

    fn take_back(&mut self, ticket: u32) -> io::Result<&mut Slot> {
        match self.slots.get_mut(ticket as usize) {
            Some(slot) if slot.held => {
                slot.held = false;
                self.free.push(ticket);
                Ok(slot)
            }
            _ => Err(unknown_ticket(ticket)),
        }
    }

    /// The mark that a packet continues with, if that is another; and whether all that was requested is done.
    fn marked(&self, slot: &Slot, leaving: &Leaving<'_>) -> (Option<u32>, bool) {
        let bit = self.options.congested;
        let link_header = self.places[slot.place].link_header as usize;
        let old = bytes::dsfield(&slot.front[..slot.bytes], link_header);
        let to_congested = leaving.dsfield.is_some() && leaving.dsfield == old.map(|old| old | 3);
        let requested =
            leaving.front.is_none() && (leaving.dsfield.is_none() || leaving.dsfield == old || to_congested);
        let set = to_congested && leaving.dsfield != old;
        let mark = leaving.mark & !bit | if set { bit } else { 0 };
        ((mark != slot.mark).then_some(mark), requested && leaving.mark & bit == 0)
    }
}

impl Options {
    fn keeping(self, whole: bool) -> Keeping {
        Keeping { longest: self.longest, fail_open: self.fail_open, whole }
    }
}

/// Keeps what is reported of a packet in a slot.
fn keep(
    slots: &mut Vec<Slot>,
    free: &mut Vec<u32>,
    waiting: &QueuedPacket<'_>,
    place: usize,
    link_header: usize,
) -> u32 {
    let ticket = free.pop().unwrap_or_else(|| {
        slots.push(Slot { front: [0; FRONT], bytes: 0, id: 0, place, mark: 0, held: false });
        // There are at most as many as wait in all queues.
        (slots.len() - 1) as u32
    });
    let slot = &mut slots[ticket as usize];
    let copied = waiting.front.len().min(COPIED);
    if link_header > 0 {
        slot.front[12..14].copy_from_slice(&waiting.protocol.to_be_bytes());
    }
    slot.front[link_header..link_header + copied].copy_from_slice(&waiting.front[..copied]);
    slot.bytes = link_header + copied;
    (slot.id, slot.place, slot.mark, slot.held) = (waiting.id, place, waiting.mark, true);
    ticket
}

/// How many segments a super-packet has. The kernel does not report the length of each; by far most are as
/// long as the device allows.
fn segments(waiting: &QueuedPacket<'_>, mtu: u32) -> u32 {
    let headers = headers(waiting.front);
    match mtu.saturating_sub(headers) {
        _ if !waiting.is_super => 1,
        0 => 1,
        payload => waiting.len.saturating_sub(headers).div_ceil(payload).max(1),
    }
}

/// Bytes of the headers that each segment has.
fn headers(front: &[u8]) -> u32 {
    let (at, transport) = match bytes::network(front, 0) {
        Some((ethertype::IPV4, _)) => (usize::from(front[0] & 15) * 4, front.get(9).copied()),
        _ => (40, front.get(6).copied()),
    };
    let of_transport = match transport {
        Some(proto::TCP) => front.get(at + 12).map_or(20, |byte| u32::from(byte >> 4) * 4),
        _ => 8,
    };
    at as u32 + of_transport
}

impl PacketIo for QueueIo {
    fn receive(&mut self, most: usize, take: &mut dyn FnMut(Came<'_>)) -> io::Result<usize> {
        let QueueIo { queues, options, places, slots, free, counts, .. } = self;
        let mut taken = 0;
        queues.receive(most, &mut |waiting| {
            let Some(waiting) = waiting else {
                // A verdict came too late: the kernel dropped the packet before, with its device.
                counts.passed = counts.passed.saturating_sub(1);
                counts.full += 1;
                return;
            };
            let place = usize::from(waiting.queue.wrapping_sub(options.first));
            let Some(facts) = places.get(place) else { return };
            let link_header = facts.link_header as usize;
            let ticket = keep(slots, free, &waiting, place, link_header);
            counts.received += 1;
            taken += 1;
            let slot = &slots[ticket as usize];
            take(Came {
                ticket,
                place,
                frame: &slot.front[..slot.bytes],
                link_header: facts.link_header,
                len: waiting.len + facts.link_header,
                mark: waiting.mark,
                priority: waiting.priority,
                segments: segments(&waiting, facts.mtu),
            });
        })?;
        Ok(taken)
    }

    fn pass(&mut self, ticket: u32, leaving: &Leaving<'_>) -> io::Result<Passed> {
        let slot = self.take_back(ticket)?.clone();
        let queue = self.queue(slot.place);
        if leaving.place != slot.place {
            self.counts.full += 1;
            self.queues.decide(queue, slot.id, false, None)?;
            return Ok(Passed::Full);
        }
        let (mark, done) = self.marked(&slot, leaving);
        self.counts.unchanged += u64::from(!done);
        self.counts.passed += 1;
        self.queues.decide(queue, slot.id, true, mark)?;
        Ok(Passed::Gone)
    }

    fn drop_packet(&mut self, ticket: u32) -> io::Result<()> {
        let slot = self.take_back(ticket)?;
        let (id, place) = (slot.id, slot.place);
        self.counts.dropped += 1;
        self.queues.decide(self.queue(place), id, false, None)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.queues.flush()
    }

    fn handles(&self) -> Vec<BorrowedFd<'_>> {
        vec![self.queues.as_fd()]
    }

    fn counts(&self) -> PacketIoStats {
        let queues: Vec<u16> = (0..self.places.len()).map(|place| self.queue(place)).collect();
        let waiting = (self.slots.len() - self.free.len()) as u64;
        PacketIoStats { overruns: nfqueue::dropped_before(&queues), held: waiting, ..self.counts }
    }

    fn split(&mut self, split: bool) -> io::Result<()> {
        let options = self.options;
        (0..self.places.len())
            .try_for_each(|place| self.queues.keep(self.queue(place), options.keeping(!split)))
    }

    fn cannot(&self) -> &'static [&'static str] {
        &[
            "Only IP comes here: ARP, PPPoE and other protocols pass unshaped.",
            "The bytes of a packet cannot be changed, except that congestion is marked by a rule behind the \
            backend, which needs a bit of the firewall mark.",
            "A packet cannot be doubled, nor leave by another device than it would.",
            "Link headers are not available: their addresses are zero here.",
            "How many packets a super-packet holds is computed from the device's largest packet, not known.",
        ]
    }
}

impl Drop for QueueIo {
    /// Lets the packets pass that are held, and those queued before the backend; the kernel would drop them.
    fn drop(&mut self) {
        let _ = self.rules.clear();
        while self.receive(LONGEST as usize, &mut |_| {}).is_ok_and(|taken| taken > 0) {}
        for ticket in 0..self.slots.len() {
            if self.slots[ticket].held {
                let (id, queue) = (self.slots[ticket].id, self.queue(self.slots[ticket].place));
                let _ = self.queues.decide(queue, id, true, None);
            }
        }
        let _ = self.queues.flush();
    }
}
