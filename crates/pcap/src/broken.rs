//! What is wrong with a capture file, and where.

use core::fmt;

/// A place where a file cannot be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The byte of the file at which the block begins.
    pub offset: u64,
    /// The block's number, from 1; 0: the file's own header.
    pub block: u64,
    /// Packets that were read before it.
    pub packets: u64,
    /// Why.
    pub cause: Cause,
}

/// Why a file cannot be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// It begins as no capture does.
    Unknown,
    /// Its format has a version that no one knows.
    Version(u16),
    /// It ends in the middle of a block: this many bytes are there.
    CutShort {
        /// Bytes that are there.
        has: usize,
    },
    /// A block's length is shorter than possible, longer than the limit, or not a multiple of four.
    Length(u32),
    /// The length at the end of a block is not the one at its beginning.
    Lengths(u32, u32),
    /// A packet's length exceeds its block.
    Captured(u32),
    /// A packet is of an interface that was not described before.
    Interface(u32),
    /// A section's byte-order magic is invalid.
    ByteOrder(u32),
    /// A packet's captured length exceeds the limit.
    TooLong(u32),
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.block {
            0 if self.cause == Cause::Unknown => self.cause.fmt(f),
            0 => write!(f, "the file's header: {}", self.cause),
            block => write!(f, "block {block}, at byte {}: {}", self.offset, self.cause),
        }
    }
}

impl core::error::Error for Broken {}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Cause::Unknown => {
                write!(f, "is not a recording, neither pcap nor pcapng; write one with `tcpdump -w FILE`")
            }
            Cause::Version(version) => write!(f, "its format is of version {version}, which is not known"),
            Cause::CutShort { has } => write!(f, "the file ends after {has} bytes of it"),
            Cause::Length(length) => write!(f, "it claims to be {length} bytes long, which cannot be"),
            Cause::Lengths(begin, end) => {
                write!(f, "its length is {begin} bytes at its beginning and {end} at its end")
            }
            Cause::Captured(length) => {
                write!(f, "it claims to hold {length} bytes of the packet, more than it holds")
            }
            Cause::Interface(number) => {
                write!(f, "its packet is of interface {number}, which was not described before")
            }
            Cause::ByteOrder(word) => write!(f, "it says its byte order as {word:#010x}"),
            Cause::TooLong(length) => write!(f, "it claims to hold {length} bytes of the packet"),
        }
    }
}
