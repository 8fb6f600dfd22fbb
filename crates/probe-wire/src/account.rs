//! What one end received of a stream, packet by packet, and how that is reported to the other in parts.

use alloc::vec;
use alloc::vec::Vec;

use crate::bytes::{Malformed, Reader, Writer};

/// Bytes of a part, about.
const PART: usize = 32 << 10;
/// A time that never was.
const NEVER: u64 = u64::MAX;
/// The options of a packet, as bits.
const ARRIVED: u8 = 1;
const OUT_OF_TURN: u8 = 2;
const COPIED: u8 = 4;
const OTHER_DS: u8 = 8;
const KNOWN: u8 = ARRIVED | OUT_OF_TURN | COPIED | OTHER_DS;

/// One packet, as its receiver saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketArrival {
    at: u64,
    /// How many had arrived before it.
    pub rank: u32,
    /// How many more duplicates came.
    pub duplicates: u16,
    /// The DS field it came with.
    pub ds: Option<u8>,
}

impl PacketArrival {
    const NONE: PacketArrival = PacketArrival { at: NEVER, rank: 0, duplicates: 0, ds: None };

    /// When it arrived, by the receiver's clock.
    pub fn at(&self) -> Option<u64> {
        (self.at != NEVER).then_some(self.at)
    }
}

/// What arrived of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketArrivals {
    all: Vec<PacketArrival>,
    arrived: u32,
    /// When the last packet came, duplicates included.
    last: Option<u64>,
}

impl PacketArrivals {
    /// Of a stream of so many packets nothing yet.
    pub fn new(packets: usize) -> PacketArrivals {
        PacketArrivals { all: vec![PacketArrival::NONE; packets], arrived: 0, last: None }
    }

    /// Notes that one arrived; false: the stream has no such packet.
    pub fn note(&mut self, number: u32, at: u64, ds: Option<u8>) -> bool {
        let Some(seen) = self.all.get_mut(number as usize) else { return false };
        self.last = Some(self.last.map_or(at, |last| last.max(at)));
        if seen.at == NEVER {
            *seen = PacketArrival { at: at.min(NEVER - 1), rank: self.arrived, duplicates: 0, ds };
            self.arrived += 1;
        } else {
            seen.duplicates = seen.duplicates.saturating_add(1);
        }
        true
    }

    /// Every packet, by number.
    pub fn all(&self) -> &[PacketArrival] {
        &self.all
    }

    /// How many arrived.
    pub fn arrived(&self) -> u32 {
        self.arrived
    }

    /// Has everything arrived?
    pub fn is_whole(&self) -> bool {
        self.arrived as usize == self.all.len()
    }

    /// When the last packet came.
    pub fn last(&self) -> Option<u64> {
        self.last
    }

    /// The number of the first packet of each part, and the part.
    pub fn parts(&self) -> Vec<(u32, Vec<u8>)> {
        let end = self.all.iter().rposition(|seen| seen.at != NEVER).map_or(0, |last| last + 1);
        parts(&self.all[..end], |to, so_far, seen| {
            let arrived = seen.at != NEVER;
            let flags = [
                (ARRIVED, arrived),
                (OUT_OF_TURN, arrived && seen.rank != so_far.in_turn),
                (COPIED, seen.duplicates > 0),
                (OTHER_DS, arrived && seen.ds != so_far.ds),
            ];
            let flags = flags.iter().filter(|(_, matches)| *matches).fold(0, |sum, (flag, _)| sum | flag);
            to.u8(flags);
            if !arrived {
                return;
            }
            to.signed(seen.at.wrapping_sub(so_far.before) as i64);
            if flags & OUT_OF_TURN != 0 {
                to.number(seen.rank.into());
            }
            if flags & COPIED != 0 {
                to.number(seen.duplicates.into());
            }
            if flags & OTHER_DS != 0 {
                to.u16(seen.ds.map_or(u16::MAX, u16::from));
            }
            *so_far = SoFar { before: seen.at, in_turn: seen.rank.wrapping_add(1), ds: seen.ds };
        })
    }

    /// Takes a part in.
    ///
    /// # Errors
    /// It is none, or speaks of packets that the stream does not have.
    pub fn take_part(&mut self, first: u32, part: &[u8]) -> Result<(), Malformed> {
        let mut reader = Reader(part);
        let mut so_far = SoFar::default();
        let mut number = first as usize;
        while !reader.0.is_empty() {
            let seen = self.all.get_mut(number).ok_or(Malformed("a packet that no one sent"))?;
            number += 1;
            let flags = reader.u8()?;
            if flags & !KNOWN != 0 || flags & ARRIVED == 0 && flags != 0 {
                return Err(Malformed("what became of a packet"));
            }
            if flags & ARRIVED == 0 {
                continue;
            }
            let at = so_far.before.wrapping_add(reader.signed()? as u64);
            let rank = if flags & OUT_OF_TURN != 0 { reader.small()? } else { so_far.in_turn };
            let duplicates = if flags & COPIED != 0 { reader.small()? } else { 0 };
            let ds = if flags & OTHER_DS != 0 { u8::try_from(reader.u16()?).ok() } else { so_far.ds };
            self.arrived += u32::from(seen.at == NEVER);
            *seen = PacketArrival { at: at.min(NEVER - 1), rank, duplicates, ds };
            so_far = SoFar { before: at, in_turn: rank.wrapping_add(1), ds };
        }
        Ok(())
    }
}

/// When the packets of a stream were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Departures(Vec<u64>);

impl Departures {
    /// Of a stream of so many packets none yet.
    pub fn new(packets: usize) -> Departures {
        Departures(vec![NEVER; packets])
    }

    /// One was sent.
    pub fn note(&mut self, number: u32, at: u64) {
        if let Some(sent) = self.0.get_mut(number as usize) {
            *sent = at.min(NEVER - 1);
        }
    }

    /// When each was sent, by number; `None`: it was not.
    pub fn all(&self) -> impl Iterator<Item = Option<u64>> + '_ {
        self.0.iter().map(|&at| (at != NEVER).then_some(at))
    }

    /// The number of the first packet of each part, and the part.
    pub fn parts(&self) -> Vec<(u32, Vec<u8>)> {
        let end = self.0.iter().rposition(|at| *at != NEVER).map_or(0, |last| last + 1);
        parts(&self.0[..end], |to, so_far, &at| {
            // One that was not sent has no time to count from.
            to.u8(u8::from(at != NEVER));
            if at != NEVER {
                to.signed(at.wrapping_sub(so_far.before) as i64);
                so_far.before = at;
            }
        })
    }

    /// Takes a part in.
    ///
    /// # Errors
    /// It is none, or speaks of packets that the stream does not have.
    pub fn take_part(&mut self, first: u32, part: &[u8]) -> Result<(), Malformed> {
        let mut reader = Reader(part);
        let mut before = 0_u64;
        let mut number = first as usize;
        while !reader.0.is_empty() {
            let sent = self.0.get_mut(number).ok_or(Malformed("a packet that no one sent"))?;
            number += 1;
            match reader.u8()? {
                0 => {}
                1 => {
                    before = before.wrapping_add(reader.signed()? as u64);
                    *sent = before.min(NEVER - 1);
                }
                _ => return Err(Malformed("what became of a packet")),
            }
        }
        Ok(())
    }
}

/// The values that a packet is encoded against: those of the packet before it in the same part.
#[derive(Default)]
struct SoFar {
    before: u64,
    in_turn: u32,
    ds: Option<u8>,
}

/// Encodes packets in parts, each of which can be decoded alone.
fn parts<T>(all: &[T], mut write: impl FnMut(&mut Writer, &mut SoFar, &T)) -> Vec<(u32, Vec<u8>)> {
    let mut parts = Vec::new();
    let mut number = 0;
    while number < all.len() {
        let first = number;
        let mut writer = Writer::default();
        let mut so_far = SoFar::default();
        while number < all.len() && writer.0.len() < PART {
            write(&mut writer, &mut so_far, &all[number]);
            number += 1;
        }
        parts.push((first as u32, writer.0));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sightings_come_back_from_their_parts() {
        let mut seen = PacketArrivals::new(20_000);
        for number in (0..19_000_u32).filter(|n| n % 7 != 3) {
            // Two and three change places, and some come twice.
            let number = if number % 70 == 1 {
                number + 1
            } else if number % 70 == 2 {
                number - 1
            } else {
                number
            };
            let ds = (number % 5 != 0).then_some((number / 1000) as u8);
            assert!(seen.note(number, 1_000_000_007 * u64::from(number % 4000), ds));
            if number % 11 == 0 {
                assert!(seen.note(number, 5, None));
            }
        }
        assert!(!seen.note(20_000, 1, None));
        let parts = seen.parts();
        assert!(parts.len() > 1, "{}", parts.len());
        assert!(parts.iter().all(|(_, part)| part.len() < PART + 64));
        let mut read = PacketArrivals::new(20_000);
        for (first, part) in &parts {
            read.take_part(*first, part).unwrap();
        }
        assert_eq!(read.all(), seen.all());
        assert_eq!(read.arrived(), seen.arrived());
    }

    #[test]
    fn departures_come_back_from_their_parts() {
        let mut sent = Departures::new(30_000);
        (0..29_000).filter(|n| n % 13 != 5).for_each(|n| sent.note(n, (1 << 40) + u64::from(n) * 1000));
        let mut read = Departures::new(30_000);
        for (first, part) in sent.parts() {
            read.take_part(first, &part).unwrap();
        }
        assert_eq!(read, sent);
        assert_eq!(Departures::new(0).parts(), []);
    }

    #[test]
    fn parts_about_packets_that_are_not_there_are_refused() {
        let mut sent = Departures::new(10);
        (0..10).for_each(|n| sent.note(n, n.into()));
        let (_, part) = sent.parts().remove(0);
        assert!(Departures::new(9).take_part(0, &part).is_err());
        assert!(Departures::new(10).take_part(1, &part).is_err());
        assert!(PacketArrivals::new(10).take_part(u32::MAX, &[0; 30]).is_err());
    }
}
