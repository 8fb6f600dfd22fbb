//! The machine in the middle: whatever queues packets under a policy. The simulator knows it only through
//! [`Forwarder`].

use alloc::vec::Vec;
use tidegate_gateway::DropReason;
use tidegate_packet::{Fifo, Handle, Meta, Pkt, Pool, Rate, Time};

/// A network device of a machine, by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Port(pub u16);

/// Where a packet that is offered to a port comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Made on the machine itself: it passes OUTPUT.
    Local,
    /// Came in by a way that is no port of the machine's: it passes what it would from a port.
    Outside,
    /// Came in at this port: it passes PREROUTING and FORWARD.
    Port(Port),
    /// Comes from this device of the same machine, which is stacked on the one it is offered to.
    Above(Port),
    /// Was redirected on its way out of this very port, to a device that gave it back.
    Returned,
}

/// What happened to a packet that arrived at a port.
#[must_use]
#[derive(Debug)]
pub enum ReceiveResult {
    /// The packet continues, with this port as its input (another one where that is stacked on the first).
    Passed(Pkt, Port),
    /// It waits at another device, which will give it back, or it is gone.
    Taken,
}

/// The outcome of an offered packet, as far as its sender may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferResult {
    /// Enqueued, or dropped in a way the sender does not notice.
    Queued,
    /// Enqueued, but another packet of the same flow may have been dropped for it.
    Congested,
    /// Refused: the packet is gone.
    Dropped,
}

/// A packet that a machine dropped or redirected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DropRecord {
    /// The packet's slot in the pool.
    pub slot: usize,
    /// The qdisc that dropped it.
    pub at: Handle,
    /// Why it was dropped.
    pub why: DropReason,
}

/// A machine that queues. Packets that it drops it releases to the pool itself; the simulator notices them
/// through [`Pool::take_released`].
pub trait Forwarder {
    /// Takes a packet to send out of `port`.
    fn offer(&mut self, pool: &mut Pool, now: Time, port: Port, origin: Origin, pkt: Pkt) -> OfferResult;
    /// The next packet for the wire at `port`, if the policy lets one go now.
    fn poll(&mut self, pool: &mut Pool, now: Time, port: Port) -> Option<Pkt>;
    /// When `port` wants to be polled again without an offer; may change with every call to the other
    /// functions.
    fn timeout(&mut self, port: Port) -> Option<Time>;
    /// That time has come. True if `port` must be polled now.
    fn handle_timeout(&mut self, _pool: &mut Pool, _now: Time, _port: Port) -> bool {
        true
    }
    /// Whether polls of ports had packets come to ports that give them back, since the last call.
    fn take_redirected(&mut self) -> bool {
        false
    }
    /// A packet arrived at `port`: what happens to it before it is routed.
    fn receive(&mut self, _pool: &mut Pool, _now: Time, port: Port, pkt: Pkt) -> ReceiveResult {
        ReceiveResult::Passed(pkt, port)
    }
    /// Where a packet comes from that the device at `port` gave back.
    fn origin(&self, _pool: &Pool, _port: Port, _pkt: &Pkt) -> Origin {
        Origin::Outside
    }
    /// Reports what the device at `port` dropped since the last call, in order.
    fn losses(&mut self, _port: Port, _told: &mut dyn FnMut(DropRecord)) {}
    /// A packet came in at `port` for the machine itself; false if its rules drop it.
    fn input(&mut self, _pool: &mut Pool, _now: Time, _port: Port, _pkt: &Pkt) -> bool {
        true
    }
}

/// No machine: for topologies of plain links.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoMachine;

impl Forwarder for NoMachine {
    fn offer(&mut self, pool: &mut Pool, _: Time, _: Port, _: Origin, pkt: Pkt) -> OfferResult {
        pool.release(pkt);
        OfferResult::Dropped
    }
    fn poll(&mut self, _: &mut Pool, _: Time, _: Port) -> Option<Pkt> {
        None
    }
    fn timeout(&mut self, _: Port) -> Option<Time> {
        None
    }
}

/// How much a drop-tail queue holds, what is being transmitted not counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Anything.
    None,
    /// So many packets.
    Packets(u32),
    /// This many bytes of frames.
    Bytes(u64),
}

impl Limit {
    /// Is there space for one more of `len` bytes?
    pub(crate) fn admits(self, packets: u64, bytes: u64, len: u32) -> bool {
        match self {
            Limit::None => true,
            Limit::Packets(limit) => packets < u64::from(limit),
            Limit::Bytes(limit) => bytes + u64::from(len) <= limit,
        }
    }
}

/// One drop-tail port, optionally behind a token bucket: the simplest machine, and the yardstick of the
/// tests.
///
/// The bucket is HTB's with one class: a packet may go while the tokens are not negative, and is charged
/// afterwards; so the first `burst` bytes leave at once and packets are not held for their own transmission
/// time.
#[derive(Debug)]
pub struct DropTail {
    queue: Fifo,
    limit: Limit,
    rate: Option<Rate>,
    burst_ns: i64,
    tokens_ns: i64,
    updated: Time,
    /// Packets refused.
    pub dropped: u64,
    /// Packets handed out.
    pub sent: u64,
    /// Bytes handed out.
    pub sent_bytes: u64,
}

impl DropTail {
    /// A queue that gives a packet at every poll.
    pub fn new(limit: Limit) -> DropTail {
        let (queue, updated) = (Fifo::new(), Time(0));
        DropTail {
            queue,
            limit,
            rate: None,
            burst_ns: 0,
            tokens_ns: 0,
            updated,
            dropped: 0,
            sent: 0,
            sent_bytes: 0,
        }
    }

    /// A queue behind a token bucket of `burst` bytes.
    pub fn shaped(limit: Limit, rate: Rate, burst: u32) -> DropTail {
        let burst_ns = span_ns(burst, rate);
        DropTail { rate: Some(rate), burst_ns, tokens_ns: burst_ns, ..DropTail::new(limit) }
    }

    fn tokens_at(&self, now: Time) -> i64 {
        (self.tokens_ns + now.since(self.updated).0.min(i64::MAX as u64 / 2) as i64).min(self.burst_ns)
    }
}

fn span_ns(bytes: u32, rate: Rate) -> i64 {
    (u64::from(bytes) * 1_000_000_000 / rate.0.max(1)) as i64
}

impl Forwarder for DropTail {
    fn offer(&mut self, pool: &mut Pool, _: Time, _: Port, _: Origin, pkt: Pkt) -> OfferResult {
        let len = pool.meta(&pkt).len;
        if !self.limit.admits(u64::from(self.queue.len()), self.queue.bytes(), len) {
            self.dropped += 1;
            pool.release(pkt);
            return OfferResult::Dropped;
        }
        self.queue.push_back(pool, pkt);
        OfferResult::Queued
    }

    fn poll(&mut self, pool: &mut Pool, now: Time, _: Port) -> Option<Pkt> {
        let len = self.queue.front(pool)?.len;
        if let Some(rate) = self.rate {
            let tokens = self.tokens_at(now);
            if tokens < 0 {
                return None;
            }
            self.tokens_ns = tokens - span_ns(len, rate);
            self.updated = now;
        }
        self.sent += 1;
        self.sent_bytes += u64::from(len);
        self.queue.pop_front(pool)
    }

    fn timeout(&mut self, _: Port) -> Option<Time> {
        if self.queue.is_empty() || self.rate.is_none() || self.tokens_ns >= 0 {
            return None;
        }
        Some(Time(self.updated.0 + self.tokens_ns.unsigned_abs()))
    }
}

/// Several drop-tail bands; a lower band goes first, a packet in transmission is never interrupted. The band
/// is the packet's [`Meta::priority`].
#[derive(Debug, Default)]
pub struct Bands {
    bands: Vec<Fifo>,
}

impl Bands {
    /// That many bands without a limit.
    pub fn new(bands: usize) -> Bands {
        Bands { bands: (0..bands.max(1)).map(|_| Fifo::new()).collect() }
    }
}

impl Forwarder for Bands {
    fn offer(&mut self, pool: &mut Pool, _: Time, _: Port, _: Origin, pkt: Pkt) -> OfferResult {
        let Meta { priority, .. } = *pool.meta(&pkt);
        let band = (priority as usize).min(self.bands.len() - 1);
        self.bands[band].push_back(pool, pkt);
        OfferResult::Queued
    }
    fn poll(&mut self, pool: &mut Pool, _: Time, _: Port) -> Option<Pkt> {
        self.bands.iter_mut().find_map(|band| band.pop_front(pool))
    }
    fn timeout(&mut self, _: Port) -> Option<Time> {
        None
    }
}
