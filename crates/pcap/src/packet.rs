//! What is read of a capture: packets, and what is between them.

use crate::broken::Cause;

/// The longest block, or packet with its header, that is believed: what is longer is damage.
pub const LONGEST: usize = 16 << 20;

/// A packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturedPacket<'b> {
    /// Its number in the file, from 1.
    pub number: u64,
    /// When it was captured, ns since 1970; `None`: the file has no time for it.
    pub time: Option<u64>,
    /// What it begins with: see [`crate::link`].
    pub link: u16,
    /// What was kept of it.
    pub bytes: &'b [u8],
    /// How long it was.
    pub length: u32,
    /// The packet's direction, where the capture has it.
    pub direction: Option<CaptureDirection>,
    /// The interface that it was captured on, by its number in the file.
    pub interface: u32,
}

/// Which way a packet went by the capturing machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CaptureDirection {
    /// It came in.
    In,
    /// It went out.
    Out,
}

/// What the bytes that follow are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<'b> {
    /// A packet; this many bytes are used.
    Packet(usize, CapturedPacket<'b>),
    /// A block without a packet; this many bytes are used.
    Passed(usize),
    /// This many bytes are needed, counted from the same place.
    Needs(usize),
}

/// What a format makes of bytes; a packet has no number yet.
pub(crate) type Found<'b> = Result<Next<'b>, Cause>;
