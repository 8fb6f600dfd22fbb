//! The bytes of packets that a backend holds, by ticket.
//!
//! A packet is read straight into its slot and sent from there; only super-packets need a second, large
//! piece, and those go round. Nothing is allocated once a backend has held as much as it gets to hold.

use std::io::{self, IoSliceMut};

use tidegate_sys::offload::{self, Offload};

use super::bytes;

/// Bytes of a slot: every packet of an Ethernet, and what precedes it.
const SMALL: usize = 2048;
/// Bytes of a second piece: the largest packet there is, a tag and link header besides.
const BIG: usize = (1 << 16) + 128;
/// A second piece that is no longer than this is copied: the large one is free again.
const COPIED: usize = 1 << 14;
/// Large pieces that wait for their next use.
const SPARE: usize = 64;
/// The most packets held.
const MOST: usize = 1 << 16;
/// The most bytes of second pieces: 256 MiB.
const MAX_BYTES: usize = 256 << 20;

/// The result of reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Read {
    /// There was nothing.
    Nothing,
    /// There was a packet, but no space: it is dropped.
    Full,
    /// A packet, with a ticket that is valid from [`BufferPool::hold`] on.
    Packet(u32),
}

/// One packet held.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    small: Box<[u8; SMALL]>,
    /// What `small` did not hold; empty where it held all.
    big: Vec<u8>,
    /// Where the frame begins in `small`.
    start: usize,
    /// Bytes of the frame.
    len: usize,
    /// Its ticket was given out.
    held: bool,
    /// The how-manieth it is of all that were held.
    number: u64,
    /// The place it came to.
    pub(super) place: usize,
    /// What is unfinished of it.
    pub(super) offload: Offload,
    /// The mark it came with, or leaves with.
    pub(super) mark: u32,
    /// The priority it came with.
    pub(super) priority: u32,
}

impl Slot {
    fn new() -> Slot {
        let (start, len, place, mark) = (0, 0, 0, 0);
        Slot {
            small: Box::new([0; SMALL]),
            big: Vec::new(),
            start,
            len,
            held: false,
            number: 0,
            place,
            offload: Offload::default(),
            mark,
            priority: 0,
        }
    }

    /// Bytes of the frame.
    pub(super) fn len(&self) -> u32 {
        // A frame has at most SMALL + BIG bytes.
        self.len as u32
    }

    /// The front of the frame: all of it, if it is no super-packet.
    pub(super) fn front(&self) -> &[u8] {
        &self.small[self.start..(self.start + self.len).min(SMALL)]
    }

    /// The bytes in front of the frame, writable.
    pub(super) fn front_mut(&mut self) -> &mut [u8] {
        &mut self.small[self.start..(self.start + self.len).min(SMALL)]
    }

    /// What follows the front.
    pub(super) fn rest(&self) -> &[u8] {
        let beyond = (self.start + self.len).saturating_sub(SMALL);
        self.big.get(..beyond).unwrap_or_default()
    }

    /// Removes the first `bytes` from the frame.
    pub(super) fn strip(&mut self, bytes: usize) {
        let bytes = bytes.min(self.front().len());
        self.start += bytes;
        self.len -= bytes;
    }

    /// Makes changes that were requested; false: one of them could not be made.
    pub(super) fn change(&mut self, link_header: u32, leaving: &super::Leaving<'_>) -> bool {
        self.mark = leaving.mark;
        let mut done = true;
        if let Some(data) = leaving.front {
            let front = self.front_mut();
            let fits = data.len().min(front.len());
            front[..fits].copy_from_slice(&data[..fits]);
            done = fits == data.len();
        }
        if let Some(dsfield) = leaving.dsfield {
            done &= bytes::set_dsfield(self.front_mut(), link_header as usize, dsfield);
        }
        done
    }
}

/// The slots of a backend.
#[derive(Debug, Default)]
pub(super) struct BufferPool {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Large buffers that are unused.
    spare: Vec<Vec<u8>>,
    /// Bytes of second pieces in use.
    bytes: usize,
    /// How many were held.
    number: u64,
}

impl BufferPool {
    /// Reads a packet with its offload head, as `read` does it into the pieces it is given; the frame begins
    /// behind that head.
    pub(super) fn read(
        &mut self,
        read: impl FnOnce(&mut [IoSliceMut<'_>]) -> io::Result<Option<usize>>,
    ) -> io::Result<Read> {
        let Some(ticket) = self.next_free() else {
            let nowhere = &mut [0; offload::HEADER_LEN];
            return Ok(read(&mut [IoSliceMut::new(nowhere)])?.map_or(Read::Nothing, |_| Read::Full));
        };
        let mut big = self.spare.pop().unwrap_or_else(|| vec![0; BIG]);
        let slot = &mut self.slots[ticket as usize];
        let bytes = read(&mut [IoSliceMut::new(&mut slot.small[..]), IoSliceMut::new(&mut big)]);
        let beyond = bytes.as_ref().map_or(0, |bytes| bytes.unwrap_or(0)).saturating_sub(SMALL);
        if beyond > COPIED {
            slot.big = big;
        } else {
            slot.big.extend_from_slice(&big[..beyond]);
            self.spare.push(big);
        }
        self.bytes += slot.big.len();
        let Some(bytes) = bytes? else { return Ok(Read::Nothing) };
        slot.offload = Offload::read(&slot.small[..]);
        slot.start = offload::HEADER_LEN;
        slot.len = bytes.saturating_sub(offload::HEADER_LEN);
        Ok(Read::Packet(ticket))
    }

    /// The next slot to be used is at the end of the free ones.
    fn next_free(&mut self) -> Option<u32> {
        if self.bytes + BIG > MAX_BYTES {
            return None;
        }
        if self.free.is_empty() {
            let ticket = u32::try_from(self.slots.len()).ok().filter(|_| self.slots.len() < MOST)?;
            self.slots.push(Slot::new());
            self.free.push(ticket);
        }
        self.free.last().copied()
    }

    /// Gives out the ticket of what was read last.
    pub(super) fn hold(&mut self, ticket: u32) {
        let next = self.free.pop();
        debug_assert_eq!(next, Some(ticket), "what is held was read last");
        self.number += 1;
        let slot = &mut self.slots[ticket as usize];
        (slot.held, slot.number) = (true, self.number);
    }

    /// Another packet of the same bytes, held; `None`: that ticket is invalid, or no space is left.
    pub(super) fn copy(&mut self, of: u32) -> Option<u32> {
        let original = self.slots.get(of as usize).filter(|slot| slot.held)?;
        let copy = original.clone();
        let ticket = self.next_free()?;
        self.bytes += copy.big.len();
        self.slots[ticket as usize] = copy;
        self.hold(ticket);
        Some(ticket)
    }

    /// What was read last is not kept.
    pub(super) fn forget(&mut self, ticket: u32) {
        self.empty(ticket);
    }

    /// Invalidates the ticket; its packet is still there.
    ///
    /// # Errors
    /// The ticket was invalid.
    pub(super) fn take_back(&mut self, ticket: u32) -> io::Result<&mut Slot> {
        match self.slots.get_mut(ticket as usize) {
            Some(slot) if slot.held => {
                slot.held = false;
                Ok(slot)
            }
            _ => Err(super::unknown_ticket(ticket)),
        }
    }

    /// The packet is gone, its slot free.
    pub(super) fn release(&mut self, ticket: u32) {
        self.empty(ticket);
        self.free.push(ticket);
    }

    fn empty(&mut self, ticket: u32) {
        let big = &mut self.slots[ticket as usize].big;
        self.bytes -= big.len();
        if big.len() < BIG {
            // Its room stays for the next.
            big.clear();
            return;
        }
        let big = std::mem::take(big);
        if self.spare.len() < SPARE {
            self.spare.push(big);
        }
    }

    pub(super) fn slot(&self, ticket: u32) -> &Slot {
        &self.slots[ticket as usize]
    }

    pub(super) fn slot_mut(&mut self, ticket: u32) -> &mut Slot {
        &mut self.slots[ticket as usize]
    }

    /// Tickets that are held, in the order they came, each with the place it came to and its mark.
    pub(super) fn all_held(&self) -> Vec<(u32, usize, u32)> {
        let mut held: Vec<_> = (0..).zip(&self.slots).filter(|(_, slot)| slot.held).collect();
        held.sort_unstable_by_key(|(_, slot)| slot.number);
        held.into_iter().map(|(ticket, slot)| (ticket, slot.place, slot.mark)).collect()
    }

    /// Packets in it, those on their way out included.
    pub(super) fn held(&self) -> u64 {
        (self.slots.len() - self.free.len()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet_io::Leaving;

    fn put(slots: &mut BufferPool, bytes: usize) -> Option<u32> {
        let packet: Vec<u8> = (0..offload::HEADER_LEN + bytes).map(|n| n as u8).collect();
        put_all(slots, &packet)
    }

    fn put_all(slots: &mut BufferPool, packet: &[u8]) -> Option<u32> {
        let ticket = slots.read(|into| {
            let (mut left, mut all) = (packet, 0);
            for piece in into.iter_mut() {
                let fits = left.len().min(piece.len());
                piece[..fits].copy_from_slice(&left[..fits]);
                left = &left[fits..];
                all += fits;
            }
            Ok(Some(all))
        });
        match ticket.expect("nothing fails here") {
            Read::Packet(ticket) => {
                slots.hold(ticket);
                Some(ticket)
            }
            Read::Full => None,
            Read::Nothing => panic!("there was something"),
        }
    }

    #[test]
    fn frames_of_every_size_come_out_as_they_went_in() {
        let mut slots = BufferPool::default();
        for bytes in [0, 14, 1514, SMALL - offload::HEADER_LEN, SMALL, SMALL + COPIED, 65_549] {
            let ticket = put(&mut slots, bytes).expect("room");
            let slot = slots.slot(ticket);
            let all = [slot.front(), slot.rest()].concat();
            let expected: Vec<u8> =
                (offload::HEADER_LEN..offload::HEADER_LEN + bytes).map(|n| n as u8).collect();
            assert_eq!((all, slot.len() as usize), (expected, bytes));
        }
        assert_eq!(slots.held(), 7);
    }

    #[test]
    fn a_ticket_is_given_back_once() {
        let mut slots = BufferPool::default();
        let ticket = put(&mut slots, 60).expect("room");
        assert!(slots.take_back(ticket).is_ok());
        assert_eq!(
            slots.take_back(ticket).map(drop).map_err(|error| error.kind()),
            Err(io::ErrorKind::InvalidInput)
        );
        assert_eq!(slots.copy(ticket), None, "nobody holds it");
        slots.release(ticket);
        assert_eq!((put(&mut slots, 60), slots.held()), (Some(ticket), 1), "and used again");
        assert!(slots.take_back(7).is_err());
    }

    #[test]
    fn a_copy_has_the_bytes_and_a_life_of_its_own() {
        let mut slots = BufferPool::default();
        let ticket = put(&mut slots, SMALL).expect("room");
        let copy = slots.copy(ticket).expect("room");
        slots.take_back(ticket).expect("it is held");
        slots.release(ticket);
        assert_eq!(slots.slot(copy).front()[0], offload::HEADER_LEN as u8);
        assert_eq!(
            (slots.slot(copy).rest().len(), slots.held(), slots.bytes),
            (offload::HEADER_LEN, 1, offload::HEADER_LEN)
        );
    }

    #[test]
    fn there_is_an_end_to_super_packets() {
        let mut slots = BufferPool::default();
        let packet = vec![7; 65_000];
        let tickets: Vec<u32> = std::iter::from_fn(|| put_all(&mut slots, &packet)).collect();
        assert_eq!(tickets.len(), MAX_BYTES / BIG);
        slots.take_back(0).expect("it is held");
        slots.release(0);
        assert_eq!(put(&mut slots, 1500), Some(0));
    }

    #[test]
    fn there_is_an_end_to_packets() {
        let mut slots = BufferPool::default();
        assert_eq!(std::iter::from_fn(|| put(&mut slots, 60)).count(), MOST);
    }

    #[test]
    fn a_front_longer_than_the_packet_is_reported() {
        let mut slots = BufferPool::default();
        let ticket = put(&mut slots, 20).expect("room");
        let long = [0xee; 21];
        let slot = slots.slot_mut(ticket);
        assert!(!slot.change(14, &Leaving { front: Some(&long), ..Leaving::default() }));
        assert_eq!(slot.front(), &long[..20]);
    }
}
