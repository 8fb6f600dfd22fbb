//! Backends: how real packets come to the engine, and go again.
//!
//! A backend takes packets out of the kernel's hands, describes them, keeps their bytes and sends or drops
//! each of them, in any order. It decides nothing: what leaves when is the engine's decision.
//!
//! A packet has a *ticket* from [`PacketIo::receive`] until [`PacketIo::pass`] or [`PacketIo::drop_packet`]:
//! received = passed + full + dropped + held, always.

mod buffer_pool;
mod bytes;
pub mod capture;
mod facts;
pub mod queue;
pub mod tun;

use std::io;
use std::os::fd::BorrowedFd;

/// Which way packets go over a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrafficDirection {
    /// They leave by it.
    Egress,
    /// They came in by it.
    Ingress,
}

/// Where a backend is attached: a device and a direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachPoint {
    /// The device's name.
    pub dev: String,
    /// Which way its packets go.
    pub direction: TrafficDirection,
}

/// A packet as a backend brings it.
#[derive(Clone, Copy, Debug)]
pub struct Came<'a> {
    /// The backend's name for it until `pass` or `drop_packet`: small numbers, used again.
    pub ticket: u32,
    /// Which of the backend's places it came to: an index into what the backend was opened with.
    pub place: usize,
    /// Its front, at least its headers, from the link header (if there is one) on.
    pub frame: &'a [u8],
    /// Bytes of link header in `frame`: 14, or 0 where it begins with IP. A VLAN tag follows these.
    pub link_header: u32,
    /// Bytes of the whole, link header included.
    pub len: u32,
    /// The firewall mark.
    pub mark: u32,
    /// The kernel's priority of it (`skb->priority`).
    pub priority: u32,
    /// Segments of a super-packet; 1 otherwise. tc counts the headers of each.
    pub segments: u32,
}

/// How a packet leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leaving<'a> {
    /// Where it leaves: by its index among the backend's attach points, mostly the one where it arrived. A
    /// backend that cannot send it elsewhere returns [`Passed::Full`].
    pub place: usize,
    /// The firewall mark it leaves with.
    pub mark: u32,
    /// Another DS field (the byte, ECN bits included); `None`: as it came.
    pub dsfield: Option<u8>,
    /// Bytes that take the place of its first ones, from the start of the frame on; no more than
    /// `Came::frame` had.
    pub front: Option<&'a [u8]>,
}

impl Leaving<'_> {
    /// As it came, where it came, with this mark.
    #[must_use]
    pub fn unchanged(place: usize, mark: u32) -> Self {
        Leaving { place, mark, dsfield: None, front: None }
    }
}

/// What happened to a packet that was to leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passed {
    /// It is gone, or goes with the next [`PacketIo::flush`].
    Gone,
    /// The device had no space for it: it is dropped, and counted.
    Full,
}

/// What a backend has done, in packets, since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketIoStats {
    /// Brought by `receive`.
    pub received: u64,
    /// Let go.
    pub passed: u64,
    /// Dropped by the engine's decision.
    pub dropped: u64,
    /// Dropped because the device, or the kernel, had no space when they were to leave.
    pub full: u64,
    /// Lost before they came here: the kernel's queue in front of the backend was full.
    pub overruns: u64,
    /// Too short or malformed to be described: sent on at once where that is possible, dropped elsewhere. Not
    /// counted as taken.
    pub malformed: u64,
    /// Changes of a packet (its DS field, its front) that this backend could not make: it left as it was.
    pub unchanged: u64,
    /// Held now.
    pub held: u64,
}

/// Brings packets, and lets them go.
pub trait PacketIo {
    /// Hands over packets that have arrived, at most `most`, and returns how many; does not wait.
    ///
    /// # Errors
    /// The backend is broken: its device is gone, or the kernel removed what it was attached to. Packets
    /// dropped for lack of space are no error.
    fn receive(&mut self, most: usize, take: &mut dyn FnMut(Came<'_>)) -> io::Result<usize>;

    /// Lets a packet go. It may be collected with others until [`PacketIo::flush`]; its ticket is the
    /// backend's again at once.
    ///
    /// # Errors
    /// As for `receive`, or `InvalidInput`: the ticket is invalid.
    fn pass(&mut self, ticket: u32, leaving: &Leaving<'_>) -> io::Result<Passed>;

    /// Drops a packet.
    ///
    /// # Errors
    /// As for `pass`.
    fn drop_packet(&mut self, ticket: u32) -> io::Result<()>;

    /// Another ticket for the same bytes, for a packet that was mirrored or doubled, counted as taken;
    /// `None`: this backend cannot, or has no space.
    fn copy(&mut self, ticket: u32) -> Option<u32> {
        let _ = ticket;
        None
    }

    /// Verdicts and frames collected since leave now. Frames that the device had no space for are counted as
    /// `full`.
    ///
    /// # Errors
    /// As for `receive`.
    fn flush(&mut self) -> io::Result<()>;

    /// What becomes readable when `receive` has something.
    fn handles(&self) -> Vec<BorrowedFd<'_>>;

    /// What happened so far.
    fn counts(&self) -> PacketIoStats;

    /// Has super-packets split into their segments from now on (true), or delivered whole (false, the initial
    /// state).
    ///
    /// # Errors
    /// `Unsupported`: this backend cannot.
    fn split(&mut self, split: bool) -> io::Result<()>;

    /// What this backend cannot do, for people: one sentence each.
    fn cannot(&self) -> &'static [&'static str];
}

/// The error for a wrong ticket.
fn unknown_ticket(ticket: u32) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, format!("no one holds the packet with ticket {ticket}"))
}
