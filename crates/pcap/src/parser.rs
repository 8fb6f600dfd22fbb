//! A capture file, read piece by piece.

use crate::broken::{Broken, Cause};
use crate::ng::Section;
use crate::old::Old;
use crate::packet::{CapturedPacket, Found, Next};

/// A capture file, read from its beginning.
#[derive(Clone, Debug, Default)]
pub struct Parser {
    format: Format,
    /// The byte of the file that is next.
    byte: u64,
    /// Blocks that were passed.
    blocks: u64,
    packets: u64,
}

#[derive(Clone, Debug, Default)]
enum Format {
    /// Nothing was read yet.
    #[default]
    Open,
    Old(Old),
    Ng(Section),
}

impl Parser {
    /// At the beginning of a file.
    pub fn new() -> Parser {
        Parser::default()
    }

    /// Parses the next bytes. `bytes` begin where the used ones end; if it needs more, call it again with
    /// more.
    ///
    /// # Errors
    /// They cannot be understood. Nothing behind them can either.
    pub fn next<'b>(&mut self, bytes: &'b [u8]) -> Result<Next<'b>, Broken> {
        let header = matches!(self.format, Format::Open);
        let found = match &mut self.format {
            Format::Open => self.begin(bytes),
            Format::Old(old) => old.next(bytes),
            Format::Ng(section) => section.next(bytes),
        };
        let next = found.map_err(|cause| self.broken(cause))?;
        Ok(match next {
            Next::Packet(used, packet) => {
                self.packets += 1;
                self.pass(used, header);
                Next::Packet(used, CapturedPacket { number: self.packets, ..packet })
            }
            Next::Passed(used) => {
                self.pass(used, header);
                next
            }
            Next::Needs(_) => next,
        })
    }

    /// The file is at its end, and this many bytes are left that nothing was made of; an error if they should
    /// be something.
    ///
    /// # Errors
    /// The file was cut.
    pub fn end(&self, left: usize) -> Result<(), Broken> {
        match (left, &self.format) {
            (_, Format::Open) if left < 4 => Err(self.broken(Cause::Unknown)),
            (0, _) => Ok(()),
            _ => Err(self.broken(Cause::CutShort { has: left })),
        }
    }

    /// Bytes that were used so far.
    pub fn offset(&self) -> u64 {
        self.byte
    }

    /// `pcap` or `pcapng`.
    pub fn format(&self) -> &'static str {
        match self.format {
            Format::Open => "no capture",
            Format::Old(_) => "pcap",
            Format::Ng(_) => "pcapng",
        }
    }

    fn begin(&mut self, bytes: &[u8]) -> Found<'static> {
        let Some(magic) = bytes.first_chunk::<4>() else { return Ok(Next::Needs(4)) };
        if u32::from_be_bytes(*magic) == Section::HEADER {
            self.format = Format::Ng(Section::default());
            return Ok(Next::Passed(0));
        }
        let old = Old::of_magic(*magic).ok_or(Cause::Unknown)?;
        let Some(header) = bytes.get(..Old::HEADER) else { return Ok(Next::Needs(Old::HEADER)) };
        self.format = Format::Old(old.begin(header)?);
        Ok(Next::Passed(Old::HEADER))
    }

    /// The file's own header is no block.
    fn pass(&mut self, used: usize, header: bool) {
        self.byte += used as u64;
        self.blocks += u64::from(!header);
    }

    fn broken(&self, cause: Cause) -> Broken {
        let block = if self.byte == 0 { 0 } else { self.blocks + 1 };
        Broken { offset: self.byte, block, packets: self.packets, cause }
    }
}
