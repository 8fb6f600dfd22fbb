//! The real outside: the machine's clock and the TUN devices of hosts.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use tidegate_packet::Time;
use tidegate_sys::tun::Tun;
use tidegate_sys::{poll, scheduling};

use crate::driver::Environment;

/// Real hosts, by number, and the time since they were set going.
#[derive(Debug)]
pub struct Edges {
    tuns: Vec<Tun>,
    /// Which of them may have something.
    ready: Vec<bool>,
    /// Which edge is read first: they take turns.
    next: usize,
    began: Instant,
    start: Time,
    /// Ask repeatedly instead of sleeping: exact, and a whole processor is busy.
    busy: bool,
}

impl Edges {
    /// These devices; the network's clock is at `start` now.
    pub fn new(tuns: Vec<Tun>, start: Time, busy: bool) -> Edges {
        scheduling::wake_on_time();
        let ready = vec![true; tuns.len()];
        Edges { tuns, ready, next: 0, began: Instant::now(), start, busy }
    }

    /// When the network's clock started.
    pub fn began(&self) -> Instant {
        self.began
    }
}

impl Environment for Edges {
    fn now(&mut self) -> Time {
        let since = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Time(self.start.0.saturating_add(since))
    }

    fn receive(&mut self, into: &mut [u8]) -> io::Result<Option<(usize, usize)>> {
        for _ in 0..self.tuns.len() {
            let party = self.next;
            self.next = (party + 1) % self.tuns.len();
            if !self.ready[party] {
                continue;
            }
            if let Some(bytes) = self.tuns[party].read(into)? {
                return Ok(Some((party, bytes)));
            }
            self.ready[party] = false;
        }
        Ok(None)
    }

    fn send(&mut self, party: usize, packet: &[u8]) -> io::Result<bool> {
        self.tuns[party].write(packet)
    }

    fn wait(&mut self, until: Time) -> io::Result<()> {
        let left = Duration::from_nanos(until.0.saturating_sub(self.now().0));
        if self.busy {
            // A quick look at all of them; the clock is looked at again at once.
            self.ready.fill(true);
            return Ok(());
        }
        let fds: Vec<_> = self.tuns.iter().map(AsFd::as_fd).collect();
        self.ready = poll::readable(&fds, left)?;
        Ok(())
    }
}
