//! pcapng, written.

use crate::packet::CaptureDirection;
use alloc::vec::Vec;

/// Options that every block may have.
const COMMENT: u16 = 1;
/// Of a section.
const SHB_USERAPPL: u16 = 4;
/// Of interfaces.
const IF_NAME: u16 = 2;
const IF_DESCRIPTION: u16 = 3;
const IF_TSRESOL: u16 = 9;
/// Of packets.
const EPB_FLAGS: u16 = 2;
const EPB_DROPCOUNT: u16 = 4;
const EPB_PACKETID: u16 = 5;
const EPB_QUEUE: u16 = 6;
const EPB_VERDICT: u16 = 7;

/// The verdict's kind: the return value of a program at Linux's traffic control, a number of eight bytes.
const LINUX_TC: u8 = 1;

/// The verdict on a packet, in the numbers of Linux's traffic control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcVerdict {
    /// It continues (`TC_ACT_OK`).
    Passed,
    /// It is dropped (`TC_ACT_SHOT`).
    Dropped,
}

/// An interface to describe.
#[derive(Clone, Copy, Debug)]
pub struct Interface<'t> {
    /// The interface's name (`if_name`), in UTF-8.
    pub name: &'t str,
    /// What is in it.
    pub description: &'t str,
    /// What its packets begin with: see [`crate::link`].
    pub link: u16,
}

/// A packet to write.
#[derive(Clone, Copy, Debug, Default)]
pub struct Record<'t> {
    /// The interface, in the order of their description.
    pub interface: u32,
    /// Nanoseconds since 1970.
    pub time: u64,
    /// What is kept of it: its front.
    pub bytes: &'t [u8],
    /// How long it is.
    pub length: u32,
    /// Which way it went: `epb_flags`.
    pub direction: Option<CaptureDirection>,
    /// Packets lost since the one before: `epb_dropcount`.
    pub dropped_before: Option<u64>,
    /// A number that all records of one packet share: `epb_packetid`.
    pub id: Option<u64>,
    /// Its queue: `epb_queue`.
    pub queue: Option<u32>,
    /// The outcome of it: `epb_verdict`.
    pub verdict: Option<TcVerdict>,
    /// In words.
    pub comment: &'t str,
}

/// A pcapng file in the making: one section, little-endian, times in nanoseconds.
#[derive(Clone, Debug)]
pub struct Writer {
    out: Vec<u8>,
}

impl Writer {
    /// A section that this program writes.
    pub fn new(program: &str) -> Writer {
        let mut writer = Writer { out: Vec::new() };
        writer.block(0x0a0d_0d0a, |block| {
            block.word(0x1a2b_3c4d);
            block.u16(1);
            block.u16(0);
            // How long the section is, no one knows yet.
            block.long(u64::MAX);
            block.option(SHB_USERAPPL, program.as_bytes());
            block.end_options();
        });
        writer
    }

    /// Describes the next interface.
    pub fn interface(&mut self, interface: Interface<'_>) {
        self.block(1, |block| {
            block.u16(interface.link);
            block.u16(0);
            block.word(0);
            block.option(IF_NAME, interface.name.as_bytes());
            block.option(IF_DESCRIPTION, interface.description.as_bytes());
            block.option(IF_TSRESOL, &[9]);
            block.end_options();
        });
    }

    /// Writes a packet.
    pub fn packet(&mut self, record: &Record<'_>) {
        self.block(6, |block| {
            block.word(record.interface);
            block.word((record.time >> 32) as u32);
            block.word(record.time as u32);
            block.word(record.bytes.len() as u32);
            block.word(record.length);
            block.padded(record.bytes);
            block.options_of(record);
        });
    }

    /// The bytes written since the last call.
    pub fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut self.out)
    }

    fn block(&mut self, kind: u32, body: impl FnOnce(&mut Block<'_>)) {
        let begin = self.out.len();
        let mut block = Block { out: &mut self.out };
        block.word(kind);
        block.word(0);
        body(&mut block);
        let length = (self.out.len() - begin + 4) as u32;
        self.out[begin + 4..begin + 8].copy_from_slice(&length.to_le_bytes());
        self.out.extend(length.to_le_bytes());
    }
}

/// The body of a block.
struct Block<'o> {
    out: &'o mut Vec<u8>,
}

impl Block<'_> {
    fn u16(&mut self, value: u16) {
        self.out.extend(value.to_le_bytes());
    }

    fn word(&mut self, value: u32) {
        self.out.extend(value.to_le_bytes());
    }

    fn long(&mut self, value: u64) {
        self.out.extend(value.to_le_bytes());
    }

    /// Bytes, filled up to a multiple of four.
    fn padded(&mut self, bytes: &[u8]) {
        self.out.extend(bytes);
        let fill = bytes.len().next_multiple_of(4) - bytes.len();
        self.out.extend(&[0; 3][..fill]);
    }

    /// An option, cut to what one can hold.
    fn option(&mut self, code: u16, value: &[u8]) {
        let value = &value[..value.len().min(usize::from(u16::MAX))];
        self.u16(code);
        self.u16(value.len() as u16);
        self.padded(value);
    }

    fn end_options(&mut self) {
        self.word(0);
    }

    fn options_of(&mut self, record: &Record<'_>) {
        if !record.comment.is_empty() {
            self.option(COMMENT, record.comment.as_bytes());
        }
        if let Some(direction) = record.direction {
            let flags: u32 = if direction == CaptureDirection::In { 1 } else { 2 };
            self.option(EPB_FLAGS, &flags.to_le_bytes());
        }
        if let Some(lost) = record.dropped_before {
            self.option(EPB_DROPCOUNT, &lost.to_le_bytes());
        }
        if let Some(id) = record.id {
            self.option(EPB_PACKETID, &id.to_le_bytes());
        }
        if let Some(queue) = record.queue {
            self.option(EPB_QUEUE, &queue.to_le_bytes());
        }
        if let Some(verdict) = record.verdict {
            let action: u64 = if verdict == TcVerdict::Passed { 0 } else { 2 };
            let mut value = [LINUX_TC, 0, 0, 0, 0, 0, 0, 0, 0];
            value[1..].copy_from_slice(&action.to_le_bytes());
            self.option(EPB_VERDICT, &value);
        }
        self.end_options();
    }
}
