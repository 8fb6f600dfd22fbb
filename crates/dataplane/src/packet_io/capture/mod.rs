//! The capturing backend: every packet of a device, whatever its protocol, whole super-packets too.
//!
//! A program in tc's hook redirects packets to a TAP device of tidegate's, where they are read. What leaves
//! goes out by a packet socket, past the device's own qdiscs and filters; what arrives is handed back by a
//! second tidegate's own device (`programs`).
//!
//! Nothing dies with us: packets are redirected here only as long as we live, and not a moment longer than
//! our devices do (`hook`).

mod hook;
mod programs;

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use tidegate_sys::namespace_thread;
use tidegate_sys::netlink::{LinkUpdate, Links};
use tidegate_sys::netlink_socket::NetlinkSocket;
use tidegate_sys::packet_socket::{OutgoingFrame, Sender};
use tidegate_sys::tap::{Carries, SuperPackets, Tap};

use super::buffer_pool::{BufferPool, Read, Slot};
use super::facts::Facts;
use super::{AttachPoint, Came, Leaving, PacketIo, PacketIoStats, Passed, TrafficDirection, bytes};
pub use hook::AttachMethod;
use hook::{Hook, TailCallTable};

/// What our devices are called.
const NAME: &str = "tidegate%d";
/// Packets that may wait before the backend: 50 ms at 200,000 a second.
const WAITING: u32 = 10_000;
/// Packets that are read of one place before the next has its turn.
const TURN: usize = 32;
/// Frames that are collected at most.
const COLLECTED: usize = 64;
/// Link headers of packets without any, for IPv4 and IPv6.
const NO_HEADERS: [[u8; 14]; 2] = [no_header(0x0800), no_header(0x86dd)];

const fn no_header(ethertype: u16) -> [u8; 14] {
    let mut header = [0; 14];
    [header[12], header[13]] = ethertype.to_be_bytes();
    header
}

/// The backend. What is first here is dropped first.
#[derive(Debug)]
pub struct CaptureIo {
    /// Held, not read: as long as it is, packets are redirected here.
    _gate: TailCallTable,
    points: Vec<CapturePoint>,
    slots: BufferPool,
    counts: PacketIoStats,
    /// Which attach point is read first: they take turns.
    next: usize,
    /// What was read last.
    fresh: Vec<u32>,
    /// Frames collected.
    collected: usize,
    talk: RefCell<NetlinkSocket>,
}

/// One device and direction. What is first here is dropped first.
#[derive(Debug)]
struct CapturePoint {
    /// It redirects packets here.
    hook: Option<Hook>,
    tap: Tap,
    /// The TAP device's number.
    number: u32,
    link_header: u32,
    out: Out,
    /// The super-packets that the way out takes: others are split before they are read.
    takes: SuperPackets,
    refused: RefusedSuperPackets,
    /// Whether all are to come split.
    split: bool,
    /// Tickets on their way out.
    leaving: Vec<u32>,
}

/// How often the way out sent and refused super-packets lately.
#[derive(Clone, Copy, Debug, Default)]
struct RefusedSuperPackets {
    sent: u32,
    refused: u32,
}

impl RefusedSuperPackets {
    /// Super-packets that are remembered: of more, the earlier ones count half.
    const REMEMBERED: u32 = 64;

    fn note(&mut self, went: bool) {
        if self.sent + self.refused >= Self::REMEMBERED {
            (self.sent, self.refused) = (self.sent / 2, self.refused / 2);
        }
        *(if went { &mut self.sent } else { &mut self.refused }) += 1;
    }

    /// Whether the device takes none, or too few, though its features say so: it may limit their size, or
    /// have lost a feature since. Now and then a driver has no space; that is no reason.
    fn are_usual(self) -> bool {
        self.refused >= 8 && self.refused >= self.sent
    }
}

/// The way out.
#[derive(Debug)]
struct Out {
    sender: Sender,
    /// How it arrives.
    back: Option<Back>,
}

/// Lets what is sent by a device of tidegate's arrive at another.
#[derive(Debug)]
struct Back {
    /// Held, not read.
    _hook: Hook,
    tap: Tap,
}

impl CaptureIo {
    /// Opens the backend at these places, in the network namespace of the calling thread; the best way that
    /// the kernel has.
    ///
    /// # Errors
    /// Which device, what could not be done with it, and why: there is no such device, its frames are of a
    /// kind that is not known here, the kernel has no BPF or no TUN, or we may not. What was done until then
    /// is undone.
    pub fn open(spots: &[AttachPoint]) -> io::Result<CaptureIo> {
        CaptureIo::by(AttachMethod::Link, spots).or_else(|first| match first.kind() {
            // A kernel before 6.6 does not know links of programs.
            io::ErrorKind::InvalidInput => CaptureIo::by(AttachMethod::Filter, spots),
            _ => Err(first),
        })
    }

    /// Opens a capture backend with this attach method.
    ///
    /// # Errors
    /// As for [`CaptureIo::open`].
    pub fn by(way: AttachMethod, spots: &[AttachPoint]) -> io::Result<CaptureIo> {
        // Each place has two hooks at most.
        let mut gate =
            TailCallTable::new(way, 2 * u32::try_from(spots.len().max(1)).map_err(io::Error::other)?)?;
        let places = spots
            .iter()
            .map(|point| CapturePoint::open(&mut gate, point).map_err(|error| with_place(point, error)));
        Ok(CaptureIo {
            points: places.collect::<io::Result<_>>()?,
            _gate: gate,
            slots: BufferPool::default(),
            counts: PacketIoStats::default(),
            next: 0,
            fresh: Vec::with_capacity(TURN),
            collected: 0,
            talk: RefCell::new(NetlinkSocket::open()?),
        })
    }

    /// All that is held leaves as it came.
    fn leave(&mut self) -> io::Result<()> {
        for (ticket, place, mark) in self.slots.all_held() {
            self.pass(ticket, &Leaving::unchanged(place, mark))?;
        }
        self.flush()
    }

    /// Reads what has come to one place.
    ///
    /// In two passes, so that the consumer finds its data in the processor's caches rather than the kernel's.
    fn read(&mut self, at: usize, most: usize, take: &mut dyn FnMut(Came<'_>)) -> io::Result<usize> {
        let read = self.read_in(at, most);
        let link_header = self.points[at].link_header;
        for ticket in &self.fresh {
            take(came(*ticket, link_header, self.slots.slot(*ticket)));
        }
        read.map(|()| self.fresh.len())
    }

    /// Reads into slots what has come to one place.
    fn read_in(&mut self, at: usize, most: usize) -> io::Result<()> {
        self.fresh.clear();
        for _ in 0..most {
            let place = &self.points[at];
            let ticket = match self.slots.read(|into| place.tap.read(into))? {
                Read::Packet(ticket) => ticket,
                Read::Nothing => break,
                Read::Full => {
                    self.counts.overruns += 1;
                    continue;
                }
            };
            let slot = self.slots.slot_mut(ticket);
            slot.place = at;
            if unwrap(slot).is_some() {
                self.slots.hold(ticket);
                self.counts.received += 1;
                self.fresh.push(ticket);
            } else {
                self.counts.malformed += 1;
                self.slots.forget(ticket);
            }
        }
        Ok(())
    }
}

/// What is reported of a packet.
fn came(ticket: u32, link_header: u32, slot: &Slot) -> Came<'_> {
    let (place, mark, priority) = (slot.place, slot.mark, slot.priority);
    let (frame, len) = (slot.front(), slot.len());
    let segments = slot.offload.segments(frame, len);
    Came { ticket, place, frame, link_header, len, mark, priority, segments }
}

/// Takes off what our program put before the frame: mark and priority. `None`: it was not our program that
/// sent it, or it is cut short.
fn unwrap(slot: &mut Slot) -> Option<()> {
    let front = slot.front();
    let word = |at: usize| Some(u32::from_ne_bytes(front.get(at..at + 4)?.try_into().ok()?));
    let (mark, priority) = (word(0)?, word(4)?);
    if word(programs::OURS_AT)? == programs::OURS {
        slot.strip(programs::ROOM);
        slot.offload = slot.offload.without(programs::ROOM as u16);
        (slot.mark, slot.priority) = (mark, priority);
        return Some(());
    }
    // A tag that the kernel held beside the packet was put behind the twelfth byte of what it took for the
    // frame.
    let tagged = word(programs::OURS_AT + 4)? == programs::OURS && front.len() >= programs::ROOM + 4 + 12;
    let tag: [u8; 4] = front.get(programs::OURS_AT..programs::OURS_AT + 4)?.try_into().ok()?;
    if !tagged {
        return None;
    }
    slot.strip(programs::ROOM);
    slot.offload = slot.offload.without(programs::ROOM as u16);
    let frame = slot.front_mut();
    frame.copy_within(4..16, 0);
    frame[12..16].copy_from_slice(&tag);
    (slot.mark, slot.priority) = (mark, priority);
    Some(())
}

/// An error, with the place it is about.
fn with_place(point: &AttachPoint, error: io::Error) -> io::Error {
    let way = if point.direction == TrafficDirection::Egress { "leaves by" } else { "comes in by" };
    io::Error::new(error.kind(), format!("what {way} `{}` cannot be captured: {error}", point.dev))
}

impl CapturePoint {
    fn open(gate: &mut TailCallTable, point: &AttachPoint) -> io::Result<CapturePoint> {
        let mut links = Links::open()?;
        let egress = point.direction == TrafficDirection::Egress;
        let Facts { number: device, link_header, .. } = Facts::of(&point.dev)?;
        let back = if egress { None } else { Some(Back::open(gate, &mut links, device)?) };
        let sender = match &back {
            None => Sender::open(device, true)?,
            Some(back) => Sender::open(links.index(back.tap.name())?, false)?,
        };
        let tap = own_tap(&mut links)?;
        let number = links.index(tap.name())?;
        gate.close_before(&tap)?;
        // What arrives goes by a TAP device of tidegate's, before which the kernel splits what that does not
        // take.
        let takes = if egress { SuperPackets::sent_by(&point.dev) } else { SuperPackets::ALL };
        tap.keep(takes)?;
        let hook = gate.attach(device, egress, &programs::take(number, egress)?)?;
        Ok(CapturePoint {
            hook: Some(hook),
            tap,
            number,
            link_header,
            out: Out { sender, back },
            takes,
            refused: RefusedSuperPackets::default(),
            split: false,
            leaving: Vec::new(),
        })
    }

    /// Sends the collected packets; returns how many were sent.
    fn send(&mut self, slots: &BufferPool) -> io::Result<u64> {
        if self.leaving.is_empty() {
            return Ok(0);
        }
        let mut passed = 0;
        let mut refused = self.refused;
        let mut tickets = self.leaving.iter();
        let arrives = self.out.back.is_some();
        let mut frames =
            self.leaving.iter().map(|ticket| frame(slots.slot(*ticket), self.link_header, arrives));
        let mut note = |went: bool| {
            passed += u64::from(went);
            if tickets.next().is_some_and(|ticket| slots.slot(*ticket).offload.is_super_packet()) {
                refused.note(went);
            }
        };
        self.out.sender.send(&mut frames, &mut note)?;
        self.refused = refused;
        if self.takes != SuperPackets::NONE && refused.are_usual() {
            self.takes = SuperPackets::NONE;
            self.split(self.split)?;
        }
        Ok(passed)
    }

    /// Has all super-packets split, or those that the way out does not take.
    fn split(&mut self, split: bool) -> io::Result<()> {
        self.split = split;
        self.tap.keep(if split { SuperPackets::NONE } else { self.takes })
    }
}

/// A packet on its way out.
fn frame(slot: &Slot, link_header: u32, arrives: bool) -> OutgoingFrame<'_> {
    let (front, rest) = (slot.front(), slot.rest());
    let mut frame =
        OutgoingFrame { offload: slot.offload, pieces: [front, rest, &[]], mark: slot.mark, protocol: 0 };
    if link_header == 0 {
        let is_v6 = front.first().is_some_and(|byte| byte >> 4 == 6);
        frame.protocol = bytes::network(front, 0).map_or(0, |(kind, _)| kind);
        if arrives {
            // It goes through a device of Ethernet to one that has no link header, which takes it off again.
            frame.pieces = [&NO_HEADERS[usize::from(is_v6)], front, rest];
            frame.offload = slot.offload.with(14);
        }
    }
    frame
}

impl Back {
    fn open(gate: &mut TailCallTable, links: &mut Links, device: u32) -> io::Result<Back> {
        let tap = own_tap(links)?;
        let number = links.index(tap.name())?;
        gate.close_before(&tap)?;
        let hook = gate.attach(number, true, &programs::put_back(device)?)?;
        Ok(Back { _hook: hook, tap })
    }
}

/// A TAP device of tidegate's, up, that sends nothing of its own.
fn own_tap(links: &mut Links) -> io::Result<Tap> {
    let tap = Tap::create(NAME, Carries::Frames)?;
    // Without IPv6 there is nothing to switch off; what the device sends all the same is not taken for a
    // packet (see `unwrap`).
    let _ = namespace_thread::set(&format!("net/ipv6/conf/{}/disable_ipv6", tap.name()), "1");
    links
        .change(tap.name(), &LinkUpdate { up: Some(true), txqlen: Some(WAITING), ..LinkUpdate::default() })?;
    Ok(tap)
}

impl PacketIo for CaptureIo {
    fn receive(&mut self, most: usize, take: &mut dyn FnMut(Came<'_>)) -> io::Result<usize> {
        let mut taken = 0;
        let mut idle = 0;
        while taken < most && idle < self.points.len() {
            let came = self.read(self.next, TURN.min(most - taken), take)?;
            self.next = (self.next + 1) % self.points.len();
            taken += came;
            idle = if came == 0 { idle + 1 } else { 0 };
        }
        Ok(taken)
    }

    fn pass(&mut self, ticket: u32, leaving: &Leaving<'_>) -> io::Result<Passed> {
        let slot = self.slots.take_back(ticket)?;
        let link_header = self.points[slot.place].link_header;
        let Some(place) = self.points.get_mut(leaving.place).filter(|place| place.link_header == link_header)
        else {
            self.slots.release(ticket);
            self.counts.full += 1;
            return Ok(Passed::Full);
        };
        if !slot.change(link_header, leaving) {
            self.counts.unchanged += 1;
        }
        place.leaving.push(ticket);
        self.collected += 1;
        if self.collected >= COLLECTED {
            self.flush()?;
        }
        Ok(Passed::Gone)
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
        let CaptureIo { points: places, slots, counts, collected, .. } = self;
        *collected = 0;
        let mut outcome = Ok(());
        for place in places {
            let sent = place.send(slots);
            let passed = *sent.as_ref().unwrap_or(&0);
            counts.passed += passed;
            counts.full += place.leaving.len() as u64 - passed;
            place.leaving.drain(..).for_each(|ticket| slots.release(ticket));
            outcome = outcome.and(sent.map(drop));
        }
        outcome
    }

    fn handles(&self) -> Vec<BorrowedFd<'_>> {
        self.points.iter().map(|place| place.tap.as_fd()).collect()
    }

    fn counts(&self) -> PacketIoStats {
        let mut talk = self.talk.borrow_mut();
        let before: u64 = self.points.iter().map(|place| hook::dropped_before(&mut talk, place.number)).sum();
        PacketIoStats { overruns: self.counts.overruns + before, held: self.slots.held(), ..self.counts }
    }

    fn split(&mut self, split: bool) -> io::Result<()> {
        self.points.iter_mut().try_for_each(|place| place.split(split))
    }

    fn cannot(&self) -> &'static [&'static str] {
        &[
            "Connections are unknown to what is captured: actions connmark, ct and ctinfo have nothing to read.",
            "Filters that other programs added to clsact behind tidegate's, and qdiscs on the device \
            itself, do not see captured packets.",
            "Local senders do not notice how long their packets wait (TCP small queues end at the capture).",
        ]
    }
}

impl Drop for CaptureIo {
    /// Sends the packets that are held, and those queued before the backend.
    fn drop(&mut self) {
        self.points.iter_mut().for_each(|place| place.hook = None);
        while self.receive(COLLECTED, &mut |_| {}).is_ok_and(|taken| taken > 0) && self.leave().is_ok() {}
        let _ = self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn super_packets_are_split_where_most_are_refused() {
        let after = |fates: &[(bool, usize)]| {
            let mut refused = RefusedSuperPackets::default();
            for &(went, count) in fates {
                (0..count).for_each(|_| refused.note(went));
            }
            refused.are_usual()
        };
        assert!(after(&[(false, 8)]));
        // A device that lost a feature after a long time.
        assert!(after(&[(true, 1_000_000), (false, 64)]));
        // A driver without space now and then, and a first few.
        assert!(!after(&[(false, 7)]) && !after(&[(true, 1000), (false, 10), (true, 1000), (false, 10)]));
    }
}
