//! Echo requests as long as frames are: what comes back has filled the line in both directions, and its
//! slower direction decides how much that is.

use super::meter::{ByteMeter, FIRST, Pace, RunningLoad, Shared};
use crate::Error;
use crate::ping::message::{self, RequestId, Sign};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tidegate_measure::ramp::{Echoed, STEP};
use tidegate_sys::icmp::{self, Icmp};
use tidegate_sys::stamped;

/// Bytes of data, and of what goes in front of them: a packet of 1,400.
const DATA: u16 = 1372;
const HEADS: usize = 28;
/// How soon answers are listened to.
const LISTEN: Duration = Duration::from_millis(1);
/// The longest round trip that is looked for, in requests that are remembered.
const REMEMBERED: usize = 1 << 16;

/// Sends echo requests to an address so that the line is full, at most so many bits per second. The meter
/// counts answers, IP headers included: what each direction carried.
///
/// # Errors
/// No permission, or no way.
pub fn echoes(to: IpAddr, most: f64, began: Instant) -> Result<RunningLoad, Error> {
    let socket = Icmp::open(to).map_err(Error::io(format!("send echo requests to {to}")))?;
    stamped::note(&socket, to.is_ipv6(), false).map_err(Error::io("listen for answers"))?;
    let mut load = RunningLoad::new(began);
    let mut echoes = Echoes::new(socket, to.is_ipv6(), most);
    load.spawn("echoes", move |shared, meter| {
        if let Err(error) = echoes.go(shared, meter) {
            shared.stop(format!("echo requests to {to} cannot be sent: {error}"));
        }
    })?;
    Ok(load)
}

struct Echoes {
    socket: Icmp,
    v6: bool,
    sign: Sign,
    ramp: Echoed,
    /// When each of the last requests was sent, by number.
    sent: Vec<Instant>,
    next: u64,
    /// Bytes that came back in this step, and how long the last of it took.
    back: u64,
    took: Duration,
}

impl Echoes {
    fn new(socket: Icmp, v6: bool, most: f64) -> Echoes {
        let now = Instant::now();
        // Nothing depends on it but that others' answers are not ours.
        let token = u64::from(std::process::id()) << 32 | 0x7469_6465;
        let sign = Sign { token, identifier: std::process::id() as u16 };
        let ramp = Echoed::new(FIRST, most);
        let sent = vec![now; REMEMBERED];
        Echoes { socket, v6, sign, ramp, sent, next: 0, back: 0, took: Duration::ZERO }
    }

    fn go(&mut self, shared: &Shared, meter: &ByteMeter) -> io::Result<()> {
        let mut pace = Pace::new();
        let mut step = Instant::now();
        let length = Duration::from_nanos(STEP);
        while !shared.is_over() {
            for _ in 0..pace.due(usize::from(DATA) + HEADS, self.ramp.offered()) {
                self.send_request()?;
            }
            self.receive(meter)?;
            while step.elapsed() >= length {
                step += length;
                let bits = std::mem::take(&mut self.back) as f64 * 8e9 / STEP as f64;
                self.ramp.step(bits, self.took.as_nanos() as u64);
                shared.full.store(self.ramp.was_full(), Ordering::Release);
            }
            pace.rest(LISTEN);
        }
        Ok(())
    }

    fn send_request(&mut self) -> io::Result<()> {
        let data = message::data(self.sign, self.next, DATA);
        self.sent[self.next as usize % REMEMBERED] = Instant::now();
        match icmp::send(&self.socket, &message::request(self.v6, self.sign, self.next, &data)) {
            Err(error) if !is_passing(&error) => return Err(error),
            // No space: it is dropped on this computer, as it could be on the path.
            _ => self.next += 1,
        }
        Ok(())
    }

    fn receive(&mut self, meter: &ByteMeter) -> io::Result<()> {
        let mut buffer = [0; 2048];
        loop {
            let came = match stamped::receive(&self.socket, &mut buffer) {
                Ok(None) => return Ok(()),
                Ok(Some(came)) => came,
                Err(error) if is_passing(&error) => continue,
                Err(error) => return Err(error),
            };
            let data = &buffer[..came.bytes.min(buffer.len())];
            // A raw socket over IPv4 gives the packet's head as well.
            let raw = self.socket.is_raw();
            let head = if raw && !self.v6 { usize::from(data.first().unwrap_or(&0) & 15) * 4 } else { 0 };
            let kinds = if self.v6 { [129; 2] } else { [0; 2] };
            let of_ours = data.get(head..).and_then(|message| message::echo(message, kinds, self.sign, raw));
            if let Some(RequestId::Number(number)) = of_ours {
                let bytes = (usize::from(DATA) + HEADS) as u64;
                meter.add(bytes);
                self.back += bytes;
                if self.next.saturating_sub(number) <= REMEMBERED as u64 {
                    self.took = self.sent[number as usize % REMEMBERED].elapsed();
                }
            }
        }
    }
}

/// Whether an error is temporary: no space just now, or an ICMP error from the path.
pub(super) fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, Interrupted, NetworkUnreachable, WouldBlock};
    /// "No buffer space available".
    const ENOBUFS: i32 = 105;
    matches!(
        error.kind(),
        WouldBlock | Interrupted | ConnectionRefused | HostUnreachable | NetworkUnreachable
    ) || error.raw_os_error() == Some(ENOBUFS)
}
