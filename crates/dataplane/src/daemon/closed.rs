//! No backend at all: while the device is gone.

use crate::packet_io::{Came, Leaving, PacketIo, PacketIoStats, Passed};
use std::io;
use std::os::fd::BorrowedFd;

/// Nothing comes, and nothing goes.
#[derive(Debug)]
pub struct Closed;

impl PacketIo for Closed {
    fn receive(&mut self, _: usize, _: &mut dyn FnMut(Came<'_>)) -> io::Result<usize> {
        Ok(0)
    }

    fn pass(&mut self, _: u32, _: &Leaving<'_>) -> io::Result<Passed> {
        Ok(Passed::Full)
    }

    fn drop_packet(&mut self, _: u32) -> io::Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn handles(&self) -> Vec<BorrowedFd<'_>> {
        Vec::new()
    }

    fn counts(&self) -> PacketIoStats {
        PacketIoStats::default()
    }

    fn split(&mut self, _: bool) -> io::Result<()> {
        Ok(())
    }

    fn cannot(&self) -> &'static [&'static str] {
        &["anything: its device is gone"]
    }
}
