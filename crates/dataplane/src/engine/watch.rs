//! How long packets waited, and where: recorded while there is an observer.

use std::collections::BTreeMap;
use std::sync::mpsc::{SyncSender, TrySendError};
use tidegate_gateway::DeviceId;
use tidegate_packet::{Handle, Nanos, Pool, Time};

/// Buckets for each doubling of a time.
const STEPS: u64 = 8;
/// Buckets: the last begins at 2^36 ns, more than a minute.
const BUCKETS: usize = 36 * STEPS as usize;

/// What happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketOutcome {
    /// It left; `marked`: with a CE mark that it had not when it came (RFC 3168).
    Left {
        /// So it was.
        marked: bool,
    },
    /// The policy dropped it.
    Dropped,
}

/// A packet that is through: where and when. Where the pool knows at which device it waited last, and since
/// when, that counts, and what is said here of both is for those that met no queue.
#[derive(Clone, Copy, Debug)]
pub struct PacketSojourn {
    /// The device it came to or leaves by.
    pub device: DeviceId,
    /// Its slot in the pool.
    pub slot: usize,
    /// When it came to the machine.
    pub came: Time,
    /// When it left or was dropped.
    pub left: Time,
}

/// Times that packets waited, counted in buckets an eighth of a doubling wide: what is read off them is at
/// most that much off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SojournHistogram {
    counts: Vec<u64>,
    /// All of them added up, in ns.
    total: u64,
}

impl Default for SojournHistogram {
    fn default() -> SojournHistogram {
        SojournHistogram { counts: vec![0; BUCKETS], total: 0 }
    }
}

impl SojournHistogram {
    /// Counts a time.
    pub fn note(&mut self, waited: Nanos) {
        self.counts[bucket(waited.0)] += 1;
        self.total = self.total.saturating_add(waited.0);
    }

    /// All these times added up, in ns.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Those that anything is in: the longest time that counts for it, in ns, and how many packets waited so
    /// long.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let ends = (0..BUCKETS).map(end);
        ends.zip(&self.counts).filter(|(_, count)| **count > 0).map(|(end, count)| (end, *count))
    }
}

/// The bucket of so many nanoseconds.
fn bucket(waited: u64) -> usize {
    if waited < STEPS {
        return waited as usize;
    }
    let doubling = u64::from(waited.ilog2());
    let within = (waited >> (doubling - 3)) & (STEPS - 1);
    (((doubling - 2) * STEPS + within) as usize).min(BUCKETS - 1)
}

/// The last nanosecond that a bucket counts.
fn end(bucket: usize) -> u64 {
    let (doubling, within) = (bucket as u64 / STEPS, bucket as u64 % STEPS);
    match doubling {
        0 => within,
        more => ((STEPS + within + 1) << (more - 1)) - 1,
    }
}

/// What was noted of a class, or of a device's root qdisc where that has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClassSeen {
    /// How long what left had waited.
    pub sojourn: SojournHistogram,
    /// Packets that left with a new CE mark.
    pub marked: u64,
    /// Packets dropped.
    pub dropped: u64,
}

/// A packet for the captures of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Captured {
    /// When it came to the device, and when it left that or was dropped there.
    pub came: Time,
    /// See `came`.
    pub left: Time,
    /// The innermost qdisc that had it, and the class that is attached to; both [`Handle::NONE`]: it met no
    /// qdisc there.
    pub qdisc: Handle,
    /// See `qdisc`.
    pub class: Handle,
    /// The outcome of it.
    pub outcome: PacketOutcome,
    /// Bytes of the whole frame.
    pub len: u32,
    /// The front of the frame, from its Ethernet header on, as it left.
    pub front: Vec<u8>,
}

/// A capture of a class's packets.
#[derive(Debug)]
struct Listener {
    device: DeviceId,
    /// [`Handle::NONE`]: those of every class.
    class: Handle,
    to: SyncSender<Captured>,
    /// Packets that he was too slow for.
    missed: u64,
}

/// The observers, and what was recorded since there is one.
#[derive(Debug, Default)]
pub struct Watch {
    seen: BTreeMap<(DeviceId, Handle), ClassSeen>,
    listeners: Vec<Listener>,
}

impl Watch {
    /// What was noted of a device's class; [`Handle::ROOT`]: of what is attached to the device itself.
    pub fn of(&self, device: DeviceId, class: Handle) -> Option<&ClassSeen> {
        self.seen.get(&(device, class))
    }

    /// What was noted of each class of a device.
    pub fn on(&self, device: DeviceId) -> impl Iterator<Item = (Handle, &ClassSeen)> {
        self.seen.iter().filter(move |((of, _), _)| *of == device).map(|((_, class), seen)| (*class, seen))
    }

    /// Sends each packet that a class has finished with ([`Handle::NONE`]: any class of that device) to a
    /// receiver, as fast as it reads: a slow one misses packets. A receiver that is gone is forgotten.
    pub fn capture(&mut self, device: DeviceId, class: Handle, to: SyncSender<Captured>) {
        self.listeners.push(Listener { device, class, to, missed: 0 });
    }

    /// Packets that listeners were too slow for.
    pub fn missed(&self) -> u64 {
        self.listeners.iter().map(|listener| listener.missed).sum()
    }

    /// Notes a packet that is through: at the device whose queue it was in, which is not always the one that
    /// it came to (filters lead packets to an ifb). What met no queue is nothing to any class.
    pub(super) fn note(&mut self, pool: &Pool, met: &PacketSojourn, outcome: PacketOutcome) {
        let location = pool.queue_location(met.slot);
        let met = match DeviceId::holding(location) {
            Some(device) => PacketSojourn { device, came: location.since, ..*met },
            None => *met,
        };
        if !location.on.is_none() {
            let seen = self.seen.entry((met.device, location.on)).or_default();
            match outcome {
                PacketOutcome::Left { marked } => {
                    seen.sojourn.note(Nanos(met.left.0.saturating_sub(met.came.0)));
                    seen.marked += u64::from(marked);
                }
                PacketOutcome::Dropped => seen.dropped += 1,
            }
        }
        if self.listeners.is_empty() {
            return;
        }
        self.listeners.retain_mut(|listener| {
            let wanted =
                listener.device == met.device && (listener.class == location.on || listener.class.is_none());
            !wanted || listener.tell(captured(pool, &met, outcome))
        });
    }
}

impl Listener {
    /// Tells him; false: he is gone.
    fn tell(&mut self, captured: Captured) -> bool {
        match self.to.try_send(captured) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.missed += 1;
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }
}

fn captured(pool: &Pool, met: &PacketSojourn, outcome: PacketOutcome) -> Captured {
    let location = pool.queue_location(met.slot);
    let mut front = pool.last_head(met.slot).cloned().unwrap_or_default();
    let meta = pool.last_known(met.slot);
    if let Some(meta) = meta
        && front.dsfield() != meta.dsfield
    {
        front.set_dsfield(meta.dsfield);
    }
    Captured {
        came: met.came,
        left: met.left,
        qdisc: location.qdisc,
        class: location.on,
        outcome,
        len: meta.map_or(0, |meta| meta.frame_len),
        front: front.frame().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_in_the_bucket_that_ends_at_or_just_behind_it() {
        for waited in
            (0..5000).chain((10..36).flat_map(|power| {
                [1_u64 << power, (1 << power) - 1, (1 << power) + 12_345 % (1 << (power - 1))]
            }))
        {
            let end = end(bucket(waited));
            assert!(
                end >= waited && end - waited <= waited / 8,
                "{waited} is in the bucket that ends at {end}"
            );
        }
    }

    #[test]
    fn every_bucket_ends_where_the_next_begins() {
        for number in 0..BUCKETS - 1 {
            assert_eq!(bucket(end(number)), number);
            assert_eq!(bucket(end(number) + 1), number + 1);
        }
    }

    #[test]
    fn what_waits_for_ever_is_in_the_last() {
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }
}
