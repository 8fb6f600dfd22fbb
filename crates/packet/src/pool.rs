//! Where packets live: fixed slots, handed out as tickets that must be given back, and queues strung through
//! the slots.

use crate::dissect::{Dissector, dissect};
use crate::flow::{Addrs, FlowKeys, HashKey};
use crate::header::Head;
use crate::linux::LinuxVersion;
use crate::units::{FwMark, Handle, Time};
use alloc::vec::Vec;
use core::hint::select_unpredictable;

const NIL: u32 = u32::MAX;

/// A ticket for one packet in a [`Pool`]: it moves, it is never copied, and it ends in [`Pool::release`] or
/// in a [`Fifo`].
///
/// In debug builds a ticket that is merely dropped panics: a dropped packet is a bug.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub struct Pkt(u32);

impl Pkt {
    /// The slot's number, for tables kept beside the pool.
    pub fn slot(&self) -> usize {
        self.0 as usize
    }
    fn into_slot(self) -> u32 {
        let slot = self.0;
        core::mem::forget(self);
        slot
    }
}

#[cfg(debug_assertions)]
impl Drop for Pkt {
    fn drop(&mut self) {
        panic!("packet in slot {} was lost: a ticket must be queued, sent or released", self.0);
    }
}

/// What the qdiscs know of a packet; filled once, when it enters. One line of the cache.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
pub struct Meta {
    /// Bytes the queueing tree counts: the frame without FCS, after the root's size table.
    pub len: u32,
    /// Bytes of the frame as it came (Ethernet header included where the device has one).
    pub frame_len: u32,
    /// Memory the kernel would charge for it (`skb->truesize`).
    pub truesize: u32,
    /// `skb->priority`: a small number, or a class id.
    pub priority: u32,
    /// The firewall mark (`skb->mark`); 0: none.
    pub mark: FwMark,
    /// Outer EtherType.
    pub ethertype: u16,
    /// The DS field: DSCP and ECN bits. An ECN mark is made here; the edge writes it back.
    pub dsfield: u8,
    /// A number that the packet's maker may give it; events carry the number.
    pub ident: u32,
    /// Its release is to be reported: see [`Pool::take_released`].
    pub watched: bool,
    /// What connection tracking knows of it, in its own terms; 0: nothing.
    pub connection: u32,
    /// Where it was redirected to another device.
    pub redirected_to: RedirectedTo,
    /// The device that it came in by (or was redirected from), by number, plus one; 0: none, it is the
    /// machine's own.
    pub came_in: u16,
    /// The actions of the next filter that matches are skipped: the packet came back from the device to which
    /// those actions redirected it.
    pub passed_over: bool,
    /// Were bytes of it rewritten on the way, and above that bit the transmit queue it was put into, plus
    /// one.
    rewritten_and_queue: u8,
    /// The traffic-control index (`skb->tc_index`): gred chooses its virtual queue by it.
    pub tc_index: u8,
    /// What the qdisc that holds it wrote down about it.
    pub scratch: Scratch,
    /// What it costs on the link, bytes: CAKE's, beside the words that all qdiscs share. In fq: its band.
    pub cost: u32,
    /// The flow hash under the pool's key, once requested; 0 before.
    hash: u32,
    next: u32,
    prev: u32,
    /// Written to bring the line into the cache; it means nothing.
    touched: bool,
}

const REWRITTEN: u8 = 1;

impl Meta {
    /// Transmit queues that a packet can be put into: 0 to one less.
    pub const TX_QUEUES: u32 = 127;

    /// Whether bytes of it were rewritten on the way, perhaps against its checksums: then a receiver checks
    /// those.
    #[inline]
    pub fn rewritten(&self) -> bool {
        self.rewritten_and_queue & REWRITTEN != 0
    }

    /// Notes whether they were.
    #[inline]
    pub fn set_rewritten(&mut self, rewritten: bool) {
        self.rewritten_and_queue = self.rewritten_and_queue & !REWRITTEN | u8::from(rewritten);
    }

    /// The transmit queue of its device that it was put into, if it was.
    pub fn tx_queue(&self) -> Option<u32> {
        u32::from(self.rewritten_and_queue >> 1).checked_sub(1)
    }

    /// Puts it into a transmit queue, or takes it out of that; what has no queue of [`Meta::TX_QUEUES`] stays
    /// where it is.
    pub fn set_tx_queue(&mut self, queue: Option<u32>) {
        let above = match queue {
            None => 0,
            Some(queue) if queue < Meta::TX_QUEUES => queue as u8 + 1,
            Some(_) => return,
        };
        self.rewritten_and_queue = self.rewritten_and_queue & REWRITTEN | above << 1;
    }
}

/// Where a packet was redirected to another device, if it was: at which device, as its machine numbers them,
/// and whether it was on its way out there or had just arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RedirectedTo(u16);

impl RedirectedTo {
    /// Nowhere.
    pub const NOWHERE: RedirectedTo = RedirectedTo(0);

    /// At a device with a number below 16,384.
    pub fn at(device: u16, on_its_way_out: bool) -> RedirectedTo {
        RedirectedTo(device << 1 | u16::from(on_its_way_out) | 1 << 15)
    }

    /// The device, and whether the packet was on its way out there.
    pub fn place(self) -> Option<(u16, bool)> {
        (self != RedirectedTo::NOWHERE).then_some(((self.0 & !(1 << 15)) >> 1, self.0 & 1 != 0))
    }
}

/// The bytes in a packet that the kernel lends to qdiscs: one place for all of them.
///
/// What a qdisc writes here is gone when one below it writes too. SFB above CoDel reads CoDel's time as
/// its own hashes; that is how Linux behaves, so it is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scratch(pub u64);

impl Scratch {
    /// The first word.
    pub fn first(self) -> u32 {
        self.0 as u32
    }
    /// The second word.
    pub fn second(self) -> u32 {
        (self.0 >> 32) as u32
    }
    /// Writes the first word.
    pub fn set_first(&mut self, word: u32) {
        self.0 = self.0 & !0xffff_ffff | u64::from(word);
    }
    /// Writes both words.
    pub fn set(&mut self, first: u32, second: u32) {
        self.0 = u64::from(second) << 32 | u64::from(first);
    }
}

impl Meta {
    /// The metadata that follow from the headers; `frame_len` in bytes, link header included.
    pub fn of(head: &Head, frame_len: u32) -> Meta {
        Meta {
            len: frame_len,
            frame_len,
            truesize: truesize(frame_len),
            ethertype: head.ethertype(),
            dsfield: head.dsfield(),
            ..Meta::default()
        }
    }

    /// The ECN field: 0 not capable, 1 and 2 capable, 3 congestion experienced (RFC 3168).
    pub fn ecn(&self) -> u8 {
        self.dsfield & 3
    }

    /// Marks congestion if the packet can carry the mark; returns whether it does now.
    ///
    /// A packet marked before counts as marked again. Only IP has the field.
    pub fn set_ce(&mut self) -> bool {
        use crate::header::ethertype::{IPV4, IPV6, QINQ, VLAN};
        // A tag beside the packet hides nothing.
        let ip = matches!(self.ethertype, IPV4 | IPV6 | VLAN | QINQ);
        if !ip || self.ecn() == 0 {
            return false;
        }
        self.dsfield |= 3;
        true
    }

    /// `skb->priority` read as a class id.
    pub fn priority_class(&self) -> Handle {
        Handle(self.priority)
    }
}

/// Memory that Linux 6.1 charges for a frame of `frame_len` bytes; see [`LinuxVersion::truesize`].
pub fn truesize(frame_len: u32) -> u32 {
    LinuxVersion::V6_1.truesize(frame_len)
}

#[derive(Clone, Debug, Default)]
struct Cold {
    head: Head,
    keys: Option<FlowKeys>,
    /// The keys it came with, once an address or port of it was translated.
    arrived: Option<FlowKeys>,
    /// The ends it will have behind the hooks it has not passed yet.
    inside: Option<Ends>,
    /// It is the second copy of another.
    is_duplicate: bool,
}

/// Addresses and ports.
type Ends = (Addrs, (u16, u16));

/// Where a packet waits, or waited last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueLocation {
    /// The innermost qdisc that took it; [`Handle::NONE`]: one without a handle, or none at all.
    pub qdisc: Handle,
    /// What that qdisc is attached to: [`Handle::ROOT`], or a class; [`Handle::NONE`]: no qdisc was shown the
    /// packet.
    pub on: Handle,
    /// Its queue in there, where the qdisc keeps one for each flow: the minor number under which tc lists it.
    pub queue: Option<u32>,
    /// The device that the qdisc is on, by number, plus one; 0: none.
    pub device: u16,
    /// When the packet came to a qdisc of that device first.
    pub since: Time,
}

/// Slots for packets, up to a limit. A ticket is good for the pool that gave it; another pool panics or takes
/// another packet for it.
#[derive(Debug)]
pub struct Pool {
    meta: Vec<Meta>,
    cold: Vec<Cold>,
    free: u32,
    live: usize,
    limit: usize,
    released: Vec<u32>,
    /// Copies and their originals, while they are recorded.
    copied: Option<Vec<(u32, u32)>>,
    /// By slot where packets are queued, while that is recorded.
    queue_locations: Option<Vec<QueueLocation>>,
    dissector: Dissector,
    hash_key: HashKey,
}

impl Pool {
    /// A pool of at most `limit` packets; slots are made as they are first needed and then reused.
    pub fn new(limit: usize) -> Pool {
        Pool {
            meta: Vec::new(),
            cold: Vec::new(),
            free: NIL,
            live: 0,
            limit: limit.min(NIL as usize),
            released: Vec::new(),
            copied: None,
            queue_locations: None,
            dissector: Dissector::default(),
            hash_key: HashKey::default(),
        }
    }

    /// The key of flow hashes: zero, unless [`Pool::set_hash_key`] gave another.
    pub fn hash_key(&self) -> HashKey {
        self.hash_key
    }

    /// Sets the key of flow hashes, for packets whose hash was not requested yet. Linux draws one when it
    /// starts; recordings have the zero key.
    pub fn set_hash_key(&mut self, key: HashKey) {
        self.hash_key = key;
    }

    /// How far packets are looked into.
    pub fn dissector(&self) -> Dissector {
        self.dissector
    }

    /// How far packets are looked into that have not been dissected yet.
    pub fn set_dissector(&mut self, dissector: Dissector) {
        self.dissector = dissector;
    }

    /// How many packets are in the pool: inserted or copied, and not yet released.
    pub fn live(&self) -> usize {
        self.live
    }

    /// Takes a packet in; `None` when the pool is full. The ticket must end in [`Pool::release`].
    pub fn insert(&mut self, meta: Meta, head: Head) -> Option<Pkt> {
        if self.free == NIL {
            if self.meta.len() >= self.limit {
                return None;
            }
            let slot = self.meta.len() as u32;
            self.meta.push(meta);
            self.cold.push(Cold { head, ..Cold::default() });
            self.live += 1;
            return Some(Pkt(slot));
        }
        let slot = self.free;
        let at = slot as usize;
        self.free = self.meta[at].next;
        self.meta[at] = meta;
        let cold = &mut self.cold[at];
        *cold = Cold { head, ..Cold::default() };
        self.live += 1;
        Some(Pkt(slot))
    }

    /// A copy of this packet; `None` when the pool is full. The copy is not watched.
    pub fn copy(&mut self, pkt: &Pkt) -> Option<Pkt> {
        let meta = Meta { watched: false, ..self.meta(pkt).clone() };
        let cold = self.cold[pkt.0 as usize].clone();
        let copy = self.insert(meta, Head::default())?;
        self.cold[copy.0 as usize] = cold;
        self.note_copy(&copy, pkt);
        Some(copy)
    }

    /// From now on copies are recorded for [`Pool::take_copied`], which must be called regularly.
    pub fn follow_copies(&mut self) {
        self.copied = Some(Vec::new());
    }

    fn note_copy(&mut self, copy: &Pkt, of: &Pkt) {
        if self.tracks_queue_locations() {
            self.write_queue_location(copy.0, self.queue_location(of.0 as usize));
        }
        if let Some(copied) = &mut self.copied {
            copied.push((copy.0, of.0));
        }
    }

    /// Watches the packet in a slot: as [`Meta::watched`], for a caller without its ticket.
    pub fn watch_slot(&mut self, slot: usize) {
        if let Some(meta) = self.meta.get_mut(slot) {
            meta.watched = true;
        }
    }

    /// Whether there are copies that were not taken yet.
    #[inline]
    pub fn has_copied(&self) -> bool {
        self.copied.as_ref().is_some_and(|copied| !copied.is_empty())
    }

    /// The copies since the last call, in order, each with the slot of the packet that it copies.
    #[inline]
    pub fn take_copied(&mut self) -> impl Iterator<Item = (usize, usize)> {
        self.copied
            .iter_mut()
            .flat_map(|copied| copied.drain(..))
            .map(|(copy, of)| (copy as usize, of as usize))
    }

    /// From now on qdiscs note where packets wait: see [`Pool::queue_location`].
    pub fn track_queue_locations(&mut self) {
        self.queue_locations.get_or_insert_default();
    }

    /// Whether queue locations are recorded.
    #[inline]
    pub fn tracks_queue_locations(&self) -> bool {
        self.queue_locations.is_some()
    }

    /// Notes that a qdisc was handed a packet; those within it come later, and what they note stays, but for
    /// the time at which it came to that device.
    #[cold]
    pub fn set_queue_location(&mut self, pkt: &Pkt, location: QueueLocation) {
        let before = self.queue_location(pkt.slot());
        let stays = before.device == location.device && !before.on.is_none();
        let since = if stays { before.since } else { location.since };
        self.write_queue_location(pkt.0, QueueLocation { since, ..location });
    }

    /// Notes in which of its queues a qdisc puts a packet, if locations are recorded.
    #[inline]
    pub fn note_queue(&mut self, pkt: &Pkt, queue: u32) {
        if let Some(location) =
            self.queue_locations.as_mut().and_then(|locations| locations.get_mut(pkt.0 as usize))
        {
            location.queue = Some(queue);
        }
    }

    /// A packet comes to another device: where it waited before is forgotten.
    pub fn clear_queue_location(&mut self, pkt: &Pkt) {
        if self.tracks_queue_locations() {
            self.write_queue_location(pkt.0, QueueLocation::default());
        }
    }

    /// The queue of the packet in a slot or, until the slot is used again, of the packet that left it.
    /// Unknown unless locations are recorded.
    pub fn queue_location(&self, slot: usize) -> QueueLocation {
        self.queue_locations.as_ref().and_then(|locations| locations.get(slot)).copied().unwrap_or_default()
    }

    fn write_queue_location(&mut self, slot: u32, location: QueueLocation) {
        let Some(locations) = &mut self.queue_locations else { return };
        if locations.len() <= slot as usize {
            locations.resize(slot as usize + 1, QueueLocation::default());
        }
        locations[slot as usize] = location;
    }

    /// The slots of the copies that [`Pool::take_copied`] would return.
    pub fn copied(&self) -> impl Iterator<Item = usize> {
        self.copied.iter().flatten().map(|(copy, _)| *copy as usize)
    }

    /// Ends a packet: its slot is free again.
    pub fn release(&mut self, pkt: Pkt) {
        let slot = pkt.into_slot();
        let meta = &mut self.meta[slot as usize];
        meta.next = self.free;
        if meta.watched {
            self.released.push(slot);
        }
        self.free = slot;
        self.live -= 1;
    }

    /// A slot whose watched packet was released, in no particular order. Call it until it returns `None`,
    /// before the pool takes in another packet: the slot may be used again then.
    #[inline]
    pub fn take_released(&mut self) -> Option<usize> {
        self.released.pop().map(|slot| slot as usize)
    }

    /// What is known about a packet.
    #[inline]
    pub fn meta(&self, pkt: &Pkt) -> &Meta {
        &self.meta[pkt.0 as usize]
    }

    /// What is known about a packet, to change.
    #[inline]
    pub fn meta_mut(&mut self, pkt: &Pkt) -> &mut Meta {
        &mut self.meta[pkt.0 as usize]
    }

    /// What is known about the packet in a slot or, until the slot is used again, what was last known about
    /// the one that left it.
    pub fn last_known(&self, slot: usize) -> Option<&Meta> {
        self.meta.get(slot)
    }

    /// The header bytes of the packet in `slot`, or of the last one that was there.
    pub fn last_head(&self, slot: usize) -> Option<&Head> {
        self.cold.get(slot).map(|cold| &cold.head)
    }

    /// Begins to bring a slot's line into the cache: a store, unlike a load, keeps nothing waiting.
    #[inline]
    fn touch(&mut self, slot: u32) {
        if let Some(meta) = self.meta.get_mut(slot as usize) {
            meta.touched = true;
        }
    }

    /// Its header bytes. The DS field there is as the packet came; [`Meta::dsfield`] is as it is now.
    pub fn head(&self, pkt: &Pkt) -> &Head {
        &self.cold[pkt.0 as usize].head
    }

    /// A router takes one from the packet's hops; false: this was the last.
    pub fn hop(&mut self, pkt: &Pkt) -> bool {
        self.cold[pkt.0 as usize].head.hop()
    }

    /// Gives a packet other header bytes: it was wrapped or unwrapped. Its flow hash stays, as Linux keeps
    /// it; `another`: to netfilter it is another packet now.
    pub fn set_head(&mut self, pkt: &Pkt, head: Head, another: bool) {
        let cold = &mut self.cold[pkt.0 as usize];
        (cold.head, cold.keys) = (head, None);
        if another {
            cold.arrived = None;
            self.meta[pkt.0 as usize].connection = 0;
        }
    }

    /// Its flow keys, dissected on first use.
    pub fn keys(&mut self, pkt: &Pkt) -> &FlowKeys {
        let cold = &mut self.cold[pkt.0 as usize];
        cold.keys.get_or_insert_with(|| dissect(&cold.head, self.dissector))
    }

    /// The keys of its outermost network header, as it came to the machine: before addresses or ports were
    /// translated.
    pub fn arrived_keys(&self, pkt: &Pkt) -> FlowKeys {
        let cold = &self.cold[pkt.0 as usize];
        cold.arrived.unwrap_or_else(|| dissect(&cold.head, Dissector::Legacy))
    }

    /// Notes the ends that a packet will have behind the hooks that it has not passed yet.
    pub fn set_inside(&mut self, pkt: &Pkt, ends: Option<(Addrs, (u16, u16))>) {
        self.cold[pkt.0 as usize].inside = ends;
    }

    /// The keys of its conversation as the machine's own side sees it: what was translated on the way here is
    /// as it came, what will be translated as it will be. `None`: nothing is, or its connection is not known.
    pub fn untranslated_keys(&mut self, pkt: &Pkt) -> Option<FlowKeys> {
        let keys = self.keys(pkt).at_label();
        let (addrs, ports) = if self.meta[pkt.0 as usize].connection == 0 {
            self.cold[pkt.0 as usize].inside?
        } else {
            let came = self.arrived_keys(pkt);
            (came.addrs, came.ports)
        };
        let ports = if keys.ports == (0, 0) { keys.ports } else { ports };
        let both_v4 = matches!((addrs, keys.addrs), (Addrs::V4(..), Addrs::V4(..)));
        (both_v4 && (addrs, ports) != (keys.addrs, keys.ports)).then_some(FlowKeys { addrs, ports, ..keys })
    }

    /// Lets `change` rewrite the header bytes; what is known about the flow is looked up again, the keys it
    /// came with are kept.
    pub fn translate(&mut self, pkt: &Pkt, change: impl FnOnce(&mut Head)) {
        let arrived = self.arrived_keys(pkt);
        let cold = &mut self.cold[pkt.0 as usize];
        change(&mut cold.head);
        cold.arrived = Some(arrived);
        cold.keys = None;
        self.meta[pkt.0 as usize].hash = 0;
    }

    /// Lets an action rewrite a packet's bytes as they are at this moment, the DS field and checksums
    /// brought into them before.
    ///
    /// What is known about its flow is looked up again; its flow hash stays if it was requested before, as
    /// Linux keeps it. A connection keeps the keys that the packet came with.
    pub fn rewrite<R>(&mut self, pkt: &Pkt, change: impl FnOnce(&mut Head) -> R) -> R {
        let at = pkt.0 as usize;
        let arrived = (self.meta[at].connection != 0).then(|| self.arrived_keys(pkt));
        self.settle(pkt);
        let (meta, cold) = (&mut self.meta[at], &mut self.cold[at]);
        let done = change(&mut cold.head);
        cold.arrived = cold.arrived.or(arrived);
        cold.keys = None;
        meta.dsfield = cold.head.dsfield();
        meta.set_rewritten(true);
        done
    }

    /// The bytes of a packet as they are on the wire: with the DS field that it has now, and checksums.
    pub fn settle(&mut self, pkt: &Pkt) -> &Head {
        let (meta, cold) = (&self.meta[pkt.0 as usize], &mut self.cold[pkt.0 as usize]);
        cold.head.fill_sums();
        if cold.head.dsfield() != meta.dsfield {
            cold.head.set_dsfield(meta.dsfield);
        }
        &cold.head
    }

    /// Its flow hash under the pool's key ([`Pool::hash_key`]), computed on first use.
    pub fn hash(&mut self, pkt: &Pkt) -> u32 {
        let known = self.meta[pkt.0 as usize].hash;
        if known != 0 {
            return known;
        }
        let key = self.hash_key;
        let hash = self.keys(pkt).at_label().hash(key);
        self.meta[pkt.0 as usize].hash = hash;
        hash
    }

    /// A packet comes to another machine: what only the one before knew of it (its mark, connection,
    /// priority, the keys it came with) is gone; its bytes are as they were on the wire.
    pub fn reset_for_next_machine(&mut self, pkt: &Pkt) {
        let cold = &mut self.cold[pkt.0 as usize];
        let meta = &mut self.meta[pkt.0 as usize];
        if cold.head.dsfield() != meta.dsfield {
            cold.head.set_dsfield(meta.dsfield);
            cold.keys = None;
        }
        cold.arrived = None;
        let Meta { mut ethertype, ident, watched, frame_len, .. } = *meta;
        // Its queue was the other machine's.
        let rewritten_and_queue = meta.rewritten_and_queue & REWRITTEN;
        if rewritten_and_queue != 0 {
            cold.head.take_up_ethertype();
            ethertype = cold.head.ethertype();
        }
        *meta = Meta { ethertype, ident, watched, rewritten_and_queue, ..Meta::of(&cold.head, frame_len) };
    }

    /// Makes a second copy of a packet; `None` when the pool is full.
    pub fn duplicate(&mut self, pkt: &Pkt) -> Option<Pkt> {
        let cold = &self.cold[pkt.0 as usize];
        let (head, keys, arrived) = (cold.head.clone(), cold.keys, cold.arrived);
        let copy = self.insert(self.meta(pkt).clone(), head)?;
        let cold = &mut self.cold[copy.0 as usize];
        (cold.keys, cold.arrived, cold.is_duplicate) = (keys, arrived, true);
        self.note_copy(&copy, pkt);
        Some(copy)
    }

    /// Is it the second copy of another packet ([`Pool::duplicate`])?
    pub fn is_duplicate(&self, pkt: &Pkt) -> bool {
        self.cold[pkt.0 as usize].is_duplicate
    }

    /// Makes one bit of a packet's frame wrong. Its flow hash stays if it was requested before.
    pub fn corrupt(&mut self, pkt: &Pkt, byte: u32, bit: u32) {
        let meta = &mut self.meta[pkt.0 as usize];
        let cold = &mut self.cold[pkt.0 as usize];
        if cold.head.dsfield() != meta.dsfield {
            cold.head.set_dsfield(meta.dsfield);
        }
        cold.head.flip(byte as usize, bit);
        (meta.ethertype, meta.dsfield) = (cold.head.ethertype(), cold.head.dsfield());
        cold.keys = None;
    }

    /// Gives a packet a flow hash beforehand (a NIC's, or a generator's); 0 takes it away.
    pub fn set_hash(&mut self, pkt: &Pkt, hash: u32) {
        self.meta[pkt.0 as usize].hash = hash;
    }

    /// Its flow hash under `key`.
    pub fn keyed_hash(&mut self, pkt: &Pkt, key: HashKey) -> u32 {
        self.keys(pkt).at_label().hash(key)
    }
}

/// Packets linked through their slots, for callers that count them elsewhere: no allocation, both ends in
/// constant time.
#[derive(Debug)]
pub struct IntrusiveList {
    head: u32,
    tail: u32,
}

impl Default for IntrusiveList {
    fn default() -> IntrusiveList {
        IntrusiveList { head: NIL, tail: NIL }
    }
}

impl IntrusiveList {
    /// Appends.
    #[inline]
    pub fn push_back(&mut self, pool: &mut Pool, pkt: Pkt) {
        let slot = pkt.into_slot();
        // Whether a queue is empty cannot be foreseen, so nothing branches on it: the first packet is its own
        // predecessor meanwhile.
        let before = select_unpredictable(self.tail == NIL, slot, self.tail);
        self.head = select_unpredictable(self.tail == NIL, slot, self.head);
        pool.meta[before as usize].next = slot;
        let meta = &mut pool.meta[slot as usize];
        meta.next = NIL;
        meta.prev = self.tail;
        self.tail = slot;
    }

    /// Puts at the front.
    fn push_front(&mut self, pool: &mut Pool, pkt: Pkt) {
        let slot = pkt.into_slot();
        pool.meta[slot as usize].next = self.head;
        if self.head == NIL {
            self.tail = slot;
        } else {
            pool.meta[self.head as usize].prev = slot;
        }
        self.head = slot;
    }

    /// Takes the oldest, with its [`Meta::len`].
    #[inline]
    pub fn take_front(&mut self, pool: &mut Pool) -> Option<(Pkt, u32)> {
        if self.head == NIL {
            return None;
        }
        let slot = self.head;
        let meta = &pool.meta[slot as usize];
        let (next, len) = (meta.next, meta.len);
        self.head = next;
        self.tail = select_unpredictable(next == NIL, NIL, self.tail);
        pool.touch(next);
        Some((Pkt(slot), len))
    }

    /// Takes the newest.
    fn take_back(&mut self, pool: &mut Pool) -> Option<(Pkt, u32)> {
        if self.tail == NIL {
            return None;
        }
        let slot = self.tail;
        let meta = &pool.meta[slot as usize];
        let len = meta.len;
        if self.head == slot {
            *self = IntrusiveList::default();
        } else {
            self.tail = meta.prev;
            pool.meta[self.tail as usize].next = NIL;
        }
        Some((Pkt(slot), len))
    }

    /// What is known about the oldest, left where it is.
    #[inline]
    pub fn front<'a>(&self, pool: &'a Pool) -> Option<&'a Meta> {
        pool.meta.get(self.head as usize)
    }

    /// The slot of the oldest.
    pub fn front_slot(&self) -> Option<usize> {
        (self.head != NIL).then_some(self.head as usize)
    }

    /// Begins to load what appending will need; nothing depends on it but time.
    #[inline]
    pub fn touch_back(&self, pool: &mut Pool) {
        pool.touch(self.tail);
    }

    /// The metadata of the packet at this place from the front; those before it should have been prefetched.
    #[inline]
    pub fn touch(&self, pool: &mut Pool, place: u32) {
        let mut slot = self.head;
        for _ in 0..place {
            slot = pool.meta.get(slot as usize).map_or(NIL, |meta| meta.next);
        }
        pool.touch(slot);
    }
}

/// A queue of packets strung through their slots, counted: nothing is allocated, and a call at either end
/// takes the same time however long it is. All calls of one queue get the pool that its packets are in.
#[derive(Debug, Default)]
pub struct Fifo {
    list: IntrusiveList,
    len: u32,
    bytes: u64,
}

impl Fifo {
    /// An empty queue.
    pub fn new() -> Fifo {
        Fifo::default()
    }
    /// How many packets are in it.
    pub fn len(&self) -> u32 {
        self.len
    }
    /// Is no packet in it?
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// The sum of [`Meta::len`] of its packets, bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn came(&mut self, len: u32) {
        self.len += 1;
        self.bytes += u64::from(len);
    }

    fn left(&mut self, (pkt, len): (Pkt, u32)) -> Pkt {
        self.len -= 1;
        self.bytes -= u64::from(len);
        pkt
    }

    /// Puts a packet behind all others.
    #[inline]
    pub fn push_back(&mut self, pool: &mut Pool, pkt: Pkt) {
        self.came(pool.meta(&pkt).len);
        self.list.push_back(pool, pkt);
    }

    /// Puts a packet in front of all others.
    pub fn push_front(&mut self, pool: &mut Pool, pkt: Pkt) {
        self.came(pool.meta(&pkt).len);
        self.list.push_front(pool, pkt);
    }

    /// Takes the packet in front, the oldest unless some were put there; `None`: it is empty.
    #[inline]
    pub fn pop_front(&mut self, pool: &mut Pool) -> Option<Pkt> {
        let taken = self.list.take_front(pool)?;
        Some(self.left(taken))
    }

    /// Takes the packet behind all others; `None`: it is empty.
    pub fn pop_back(&mut self, pool: &mut Pool) -> Option<Pkt> {
        let taken = self.list.take_back(pool)?;
        Some(self.left(taken))
    }

    /// What is known about the oldest, left where it is.
    #[inline]
    pub fn front<'a>(&self, pool: &'a Pool) -> Option<&'a Meta> {
        self.list.front(pool)
    }

    /// Begins to load what appending will need; nothing depends on it but time.
    #[inline]
    pub fn touch_back(&self, pool: &mut Pool) {
        self.list.touch_back(pool);
    }

    /// The metadata of the first packet, writable.
    pub fn front_mut<'a>(&self, pool: &'a mut Pool) -> Option<&'a mut Meta> {
        pool.meta.get_mut(self.list.head as usize)
    }

    /// The slot of the oldest.
    pub fn front_slot(&self) -> Option<usize> {
        self.list.front_slot()
    }

    /// The slot of the newest.
    pub fn back_slot(&self) -> Option<usize> {
        (self.list.tail != NIL).then_some(self.list.tail as usize)
    }

    /// The slots, oldest first.
    pub fn slots<'a>(&self, pool: &'a Pool) -> impl Iterator<Item = usize> + use<'a> {
        let (mut at, mut left) = (self.list.head, self.len);
        core::iter::from_fn(move || {
            left = left.checked_sub(1)?;
            let slot = at as usize;
            at = pool.meta.get(slot)?.next;
            Some(slot)
        })
    }

    /// Takes the packet in a slot, which must be one of its own: as long as the way to it takes, from the
    /// front.
    pub fn take_at(&mut self, pool: &mut Pool, slot: usize) -> Option<Pkt> {
        if self.front_slot() == Some(slot) {
            return self.pop_front(pool);
        }
        let before = self.slots(pool).zip(self.slots(pool).skip(1)).find(|(_, next)| *next == slot)?.0;
        let Meta { next, len, .. } = pool.meta[slot];
        pool.meta[before].next = next;
        if next == NIL {
            self.list.tail = before as u32;
        } else {
            pool.meta[next as usize].prev = before as u32;
        }
        Some(self.left((Pkt(slot as u32), len)))
    }

    /// Moves everything out, oldest first, into `other`'s end.
    pub fn append_to(&mut self, pool: &mut Pool, other: &mut Fifo) {
        while let Some(pkt) = self.pop_front(pool) {
            other.push_back(pool, pkt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_disciplines_know_of_a_packet_is_one_line_of_the_cache() {
        assert_eq!(size_of::<Meta>(), 64);
    }

    #[test]
    fn packets_are_taken_from_the_middle() {
        let left = |taken: usize| {
            let mut pool = Pool::new(8);
            let mut fifo = Fifo::new();
            for len in [1u32, 2, 3] {
                let pkt = pool.insert(Meta { len, ..Meta::default() }, Head::default()).expect("room");
                fifo.push_back(&mut pool, pkt);
            }
            let slot = fifo.slots(&pool).nth(taken).expect("three wait");
            let pkt = fifo.take_at(&mut pool, slot).expect("it waits");
            pool.release(pkt);
            let fourth = pool.insert(Meta { len: 4, ..Meta::default() }, Head::default()).expect("room");
            fifo.push_back(&mut pool, fourth);
            let mut seen = Vec::new();
            while let Some(pkt) =
                if seen.is_empty() { fifo.pop_back(&mut pool) } else { fifo.pop_front(&mut pool) }
            {
                seen.push(pool.meta(&pkt).len);
                pool.release(pkt);
            }
            (seen, fifo.bytes(), fifo.take_at(&mut pool, slot).is_none())
        };
        assert_eq!(left(0), (alloc::vec![4, 2, 3], 0, true));
        assert_eq!(left(1), (alloc::vec![4, 1, 3], 0, true));
        assert_eq!(left(2), (alloc::vec![4, 1, 2], 0, true));
    }

    #[test]
    fn fifo_keeps_order_at_both_ends() {
        let mut pool = Pool::new(8);
        let mut fifo = Fifo::new();
        for len in [1u32, 2, 3, 4] {
            let pkt = pool.insert(Meta { len, ..Meta::default() }, Head::default()).expect("room");
            fifo.push_back(&mut pool, pkt);
        }
        let mut seen = Vec::new();
        for back in [false, true, true, false] {
            let pkt =
                if back { fifo.pop_back(&mut pool) } else { fifo.pop_front(&mut pool) }.expect("a packet");
            seen.push(pool.meta(&pkt).len);
            pool.release(pkt);
        }
        assert_eq!((seen, fifo.len(), fifo.bytes(), pool.live()), (alloc::vec![1, 4, 3, 2], 0, 0, 0));
    }
}
