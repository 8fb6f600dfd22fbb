//! pcapng: blocks, each with its kind and its length at both ends.

use crate::broken::Cause;
use crate::packet::{CaptureDirection, CapturedPacket, Found, LONGEST, Next};
use crate::words::Words;
use alloc::vec::Vec;

/// Interfaces of a section that are kept.
const MOST_INTERFACES: usize = 65_536;
/// Bytes around a block's body.
const AROUND: usize = 12;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// The major version that there is.
const VERSION: u16 = 1;

/// Kinds of blocks.
const INTERFACE: u32 = 1;
/// What came before the enhanced one, no longer written.
const PACKET: u32 = 2;
const SIMPLE: u32 = 3;
const ENHANCED: u32 = 6;

/// Options of interfaces.
const IF_TSRESOL: u16 = 9;
const IF_TSOFFSET: u16 = 14;
/// An option of packets.
const EPB_FLAGS: u16 = 2;

/// A section: it has its own byte order and its own interfaces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    big: bool,
    interfaces: Vec<Interface>,
}

#[derive(Clone, Copy, Debug)]
struct Interface {
    link: u16,
    snap: u32,
    clock: Clock,
}

/// How an interface's times count.
#[derive(Clone, Copy, Debug)]
struct Clock {
    /// Ticks of a second.
    ticks: u64,
    /// Seconds to add.
    offset: i64,
}

impl Clock {
    /// `resolution`: a power of ten, or with its highest bit set one of two.
    fn of(resolution: u8) -> Clock {
        let power = u32::from(resolution & 0x7f);
        let base: u64 = if resolution & 0x80 == 0 { 10 } else { 2 };
        Clock { ticks: base.checked_pow(power).unwrap_or(u64::MAX), offset: 0 }
    }

    fn nanoseconds(self, ticks: u64) -> u64 {
        let whole = (u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks)) as i128;
        let all = whole + i128::from(self.offset) * 1_000_000_000;
        all.clamp(0, i128::from(u64::MAX)) as u64
    }
}

impl Section {
    /// The kind of a section's header: the same in both byte orders.
    pub(crate) const HEADER: u32 = 0x0a0d_0d0a;

    pub(crate) fn next<'b>(&mut self, bytes: &'b [u8]) -> Found<'b> {
        if bytes.len() < AROUND {
            return Ok(Next::Needs(AROUND));
        }
        let unturned = Words { bytes, big: true };
        if unturned.word(0) == Section::HEADER {
            self.begin(unturned.word(8))?;
        }
        let words = Words { bytes, big: self.big };
        let (kind, length) = (words.word(0), words.word(4));
        if length % 4 != 0 || (length as usize) < AROUND || length as usize > LONGEST {
            return Err(Cause::Length(length));
        }
        let length = length as usize;
        let Some(block) = bytes.get(..length) else { return Ok(Next::Needs(length)) };
        let again = words.word(length - 4);
        if again != length as u32 {
            return Err(Cause::Lengths(length as u32, again));
        }
        self.block(kind, Words { bytes: &block[8..length - 4], big: self.big }, length)
    }

    /// A section begins.
    fn begin(&mut self, order: u32) -> Result<(), Cause> {
        self.big = match order {
            BYTE_ORDER => true,
            order if order.swap_bytes() == BYTE_ORDER => false,
            order => return Err(Cause::ByteOrder(order)),
        };
        self.interfaces.clear();
        Ok(())
    }

    /// A block, by its kind.
    fn block<'b>(&mut self, kind: u32, body: Words<'b>, length: usize) -> Found<'b> {
        match kind {
            Section::HEADER if body.u16_at(4) != VERSION => Err(Cause::Version(body.u16_at(4))),
            INTERFACE => {
                self.describe(body);
                Ok(Next::Passed(length))
            }
            ENHANCED => self.packet(body, length, body.word(0)),
            PACKET => self.packet(body, length, u32::from(body.u16_at(0))),
            SIMPLE => self.simple(body, length),
            _ => Ok(Next::Passed(length)),
        }
    }

    fn describe(&mut self, body: Words<'_>) {
        // Microseconds by default.
        let mut clock = Clock::of(6);
        for (code, value) in body.options(8) {
            match code {
                IF_TSRESOL => clock.ticks = Clock::of(value.bytes.first().copied().unwrap_or(6)).ticks,
                IF_TSOFFSET => clock.offset = value.long(0) as i64,
                _ => {}
            }
        }
        if self.interfaces.len() < MOST_INTERFACES {
            self.interfaces.push(Interface { link: body.u16_at(0), snap: body.word(4), clock });
        }
    }

    fn interface(&self, number: u32) -> Result<Interface, Cause> {
        self.interfaces.get(number as usize).copied().ok_or(Cause::Interface(number))
    }

    /// With a time, a length and options.
    fn packet<'b>(&self, body: Words<'b>, length: usize, number: u32) -> Found<'b> {
        const BEFORE: usize = 20;
        let interface = self.interface(number)?;
        let kept = body.word(12);
        let data = BEFORE.checked_add(kept as usize).and_then(|end| body.bytes.get(BEFORE..end));
        let data = data.ok_or(Cause::Captured(kept))?;
        let flags =
            body.options(BEFORE + (kept as usize).next_multiple_of(4)).find(|(code, _)| *code == EPB_FLAGS);
        let direction = match flags.map_or(0, |(_, value)| value.word(0) & 3) {
            1 => Some(CaptureDirection::In),
            2 => Some(CaptureDirection::Out),
            _ => None,
        };
        let ticks = u64::from(body.word(4)) << 32 | u64::from(body.word(8));
        let packet = CapturedPacket {
            number: 0,
            time: Some(interface.clock.nanoseconds(ticks)),
            link: interface.link,
            bytes: data,
            length: body.word(16).max(kept),
            direction,
            interface: number,
        };
        Ok(Next::Packet(length, packet))
    }

    /// Of the first interface, without a time.
    fn simple<'b>(&self, body: Words<'b>, length: usize) -> Found<'b> {
        let interface = self.interface(0)?;
        let (was, room) = (body.word(0), body.bytes.len().saturating_sub(4));
        let kept = if interface.snap == 0 { was } else { was.min(interface.snap) };
        let data = body.bytes.get(4..4 + (kept as usize).min(room)).unwrap_or_default();
        let packet = CapturedPacket {
            number: 0,
            time: None,
            link: interface.link,
            bytes: data,
            length: was,
            direction: None,
            interface: 0,
        };
        Ok(Next::Packet(length, packet))
    }
}
