//! A capture's file, read with as much memory as its longest block takes.

use anyhow::{Context, bail};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use tidegate_pcap::{Broken, Next, Packet, Parser};

/// Octets that are read at once.
const PIECE: usize = 1 << 20;

/// A capture, open.
pub(crate) struct CaptureFile {
    file: File,
    parser: Parser,
    buffer: Vec<u8>,
    /// Of the buffer so many are used.
    used: usize,
}

impl CaptureFile {
    /// Opens it.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn open(path: &Path) -> anyhow::Result<CaptureFile> {
        let file = tidegate_os::input_file::open(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(CaptureFile { file, parser: Parser::new(), buffer: Vec::new(), used: 0 })
    }

    /// Shows each packet to `show`, with the octets of the file read so far. What comes back is where and why reading ended before the
    /// file did.
    ///
    /// # Errors
    /// It cannot be read, is no capture, or `show` fails.
    pub(crate) fn each(
        mut self,
        mut show: impl FnMut(Packet<'_>, u64) -> anyhow::Result<()>,
    ) -> anyhow::Result<Option<Broken>> {
        loop {
            let needs = match self.parser.next(&self.buffer[self.used..]) {
                Ok(Next::Packet(used, packet)) => {
                    show(packet, self.parser.octet())?;
                    self.used += used;
                    continue;
                }
                Ok(Next::Passed(used)) => {
                    self.used += used;
                    continue;
                }
                Ok(Next::Needs(octets)) => octets,
                Err(broken) => return known(broken).map(Some),
            };
            if !self.fill(needs)? {
                return match self.parser.end(self.buffer.len() - self.used) {
                    Ok(()) => Ok(None),
                    Err(broken) => known(broken).map(Some),
                };
            }
        }
    }

    /// `pcap` or `pcapng`, once something was read.
    pub(crate) fn format(path: &Path) -> anyhow::Result<&'static str> {
        let mut file = CaptureFile::open(path)?;
        file.fill(1)?;
        while let Ok(Next::Passed(used)) = file.parser.next(&file.buffer[file.used..]) {
            file.used += used;
            if file.parser.format() != "no capture" {
                break;
            }
        }
        Ok(file.parser.format())
    }

    /// Reads until so many unused octets are there; false if the file ends before.
    fn fill(&mut self, octets: usize) -> anyhow::Result<bool> {
        self.buffer.drain(..self.used);
        self.used = 0;
        while self.buffer.len() < octets {
            let room = (octets - self.buffer.len()).max(PIECE) as u64;
            if (&mut self.file).take(room).read_to_end(&mut self.buffer)? == 0 {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What can be gone on with, because something was read before.
fn known(broken: Broken) -> anyhow::Result<Broken> {
    if broken.packets == 0 {
        bail!("{broken}");
    }
    Ok(broken)
}
