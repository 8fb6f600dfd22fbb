//! TCP flows of a session: what load is made of, with TCP's own account of each.
//!
//! For uploads we are the sender and ask our own kernel. For downloads the server puts its kernel's figures
//! into the front of each block it sends.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tidegate_probe_wire::{
    ControlMessage, FIRST_MOST, FlowDirection, FlowPlan, Role, Seal, SessionKey, TcpSample,
};
use tidegate_sys::socket;

use crate::clock::ProbeClock;
use crate::error::{Error, unreachable};
use crate::line::{Came, Line, is_patience};

/// How long a connection may take to be there.
const CONNECT: Duration = Duration::from_secs(10);
/// How often it is looked whether it is over.
const LOOK: Duration = Duration::from_millis(20);
/// Bytes read or written at once.
const CHUNK: usize = 64 << 10;
/// The most that may be unsent in the kernel, bytes, so that the flow's figures are current.
const UNSENT: u32 = 128 << 10;

/// How to open flows of a session.
#[derive(Clone, Debug)]
pub struct FlowOpener {
    pub(crate) clock: ProbeClock,
    pub(crate) server: SocketAddr,
    pub(crate) session: u32,
    pub(crate) key: SessionKey,
    /// The number of the flow that begins next, in the whole session.
    pub(crate) next: Arc<AtomicU32>,
}

/// The result of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MeasuredFlow {
    /// When the connection was there, by our clock, ns.
    pub began: u64,
    /// Payload bytes that had arrived (downwards) or were acknowledged (upwards) by each time, by our clock,
    /// ns.
    pub bytes: Vec<(u64, u64)>,
    /// Payload bytes that the receiver had by each time, in whatever order, counted in full segments: what
    /// the line carried. In `bytes` those behind a gap are missing until it is filled, and then come at once.
    pub arrived: Vec<(u64, u64)>,
    /// The figures of the sender's TCP, with times by our clock, ns.
    pub samples: Vec<TcpSample>,
    /// Why it ended early, if it did.
    pub problem: Option<String>,
}

impl FlowOpener {
    /// Lets one flow until `is_over`, or for as long as was planned, noting the outcome of it every
    /// `step_ns`. It blocks: flows at the same time are threads of the caller's.
    ///
    /// # Errors
    /// It never began.
    pub fn carry(
        &self,
        plan: &FlowPlan,
        step_ns: u64,
        is_over: impl Fn() -> bool,
    ) -> Result<MeasuredFlow, Error> {
        let to = self.server;
        let stream = TcpStream::connect_timeout(&to, CONNECT).map_err(|why| unreachable(to, why))?;
        socket::ds_field(&stream, to.is_ipv6(), plan.dscp << 2).map_err(Error::io("set the DS field"))?;
        if !plan.control.is_empty() && plan.way == FlowDirection::Up {
            socket::congestion_control(&stream, &plan.control)
                .map_err(Error::io("choose the congestion control"))?;
        }
        let mut line = Line::new(stream).map_err(Error::io("prepare the connection"))?;
        let gone = |why: io::Error| Error::Gone(why.to_string());
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        line.send(&ControlMessage::flow(&self.key, self.session, number, plan.clone())).map_err(gone)?;
        let key = self.key.flow(number);
        line.seal(&key, Role::Client);
        match line.receive(FIRST_MOST, CONNECT).map_err(gone)? {
            Came::Message(ControlMessage::Go) => {}
            Came::Message(ControlMessage::Refused(why)) => return Err(Error::Refused(why)),
            Came::Message(_) => {
                return Err(tidegate_probe_wire::Malformed("an answer to something else").into());
            }
            Came::Garbage(why) => return Err(why.into()),
            Came::Nothing => return Err(Error::Gone("it does not answer".to_owned())),
            Came::End => return Err(Error::Gone("it closed the connection".to_owned())),
        }
        let (stream, early) = line.into_parts();
        let began = self.clock.now();
        let mut notes = Notes {
            clock: &self.clock,
            step_ns,
            next: began,
            carried: MeasuredFlow { began, ..MeasuredFlow::default() },
        };
        let until = began.saturating_add(plan.length_ns);
        let is_over = || is_over() || self.clock.now() >= until;
        let went = match plan.way {
            FlowDirection::Up => notes.send(stream, is_over),
            FlowDirection::Down => notes.receive(stream, early, &mut key.samples(), is_over),
        };
        notes.carried.problem = went.err().map(|error| error.to_string());
        Ok(notes.carried)
    }
}

struct Notes<'c> {
    clock: &'c ProbeClock,
    step_ns: u64,
    next: u64,
    carried: MeasuredFlow,
}

impl Notes<'_> {
    fn send(&mut self, mut stream: TcpStream, is_over: impl Fn() -> bool) -> io::Result<()> {
        stream.set_write_timeout(Some(LOOK))?;
        socket::most_unsent(&stream, UNSENT)?;
        let chunk = vec![0x5a; CHUNK];
        let went = loop {
            if is_over() {
                break Ok(());
            }
            match stream.write(&chunk) {
                Ok(_) => {}
                Err(error) if is_patience(&error) => {}
                Err(error) => break Err(error),
            }
            self.note_sender(&stream, false);
        };
        self.note_sender(&stream, true);
        // What lies in the kernel yet must not continue being sent.
        let _ = stream.shutdown(Shutdown::Both);
        went
    }

    /// Notes the figures of our own TCP, if it is time to.
    fn note_sender(&mut self, stream: &TcpStream, anyway: bool) {
        let now = self.clock.now();
        if now < self.next && !anyway {
            return;
        }
        self.next = now + self.step_ns;
        if let Ok(info) = socket::tcp_info(stream) {
            self.carried.bytes.push((now, info.acked));
            self.carried.arrived.push((now, info.delivered));
            self.carried.samples.push(TcpSample { at_ns: now, ..sample(&info) });
        }
    }

    fn receive(
        &mut self,
        mut stream: TcpStream,
        early: Vec<u8>,
        seal: &mut Seal,
        is_over: impl Fn() -> bool,
    ) -> io::Result<()> {
        stream.set_read_timeout(Some(LOOK))?;
        let mut blocks = Blocks::default();
        let mut chunk = vec![0; CHUNK];
        let mut total = early.len() as u64;
        blocks.take(&early, seal, |sample| self.note_sample(sample));
        let went = loop {
            if is_over() {
                break Ok(());
            }
            match stream.read(&mut chunk) {
                Ok(0) => break Err(io::Error::other("the server ended it")),
                Ok(bytes) => {
                    total += bytes as u64;
                    blocks.take(&chunk[..bytes], seal, |sample| self.note_sample(sample));
                }
                Err(error) if is_patience(&error) => {}
                Err(error) => break Err(error),
            }
            self.note_bytes(&stream, total, false);
        };
        self.note_bytes(&stream, total, true);
        let _ = stream.shutdown(Shutdown::Both);
        went
    }

    fn note_bytes(&mut self, stream: &TcpStream, total: u64, anyway: bool) {
        let now = self.clock.now();
        if now >= self.next || anyway {
            self.next = now + self.step_ns;
            self.carried.bytes.push((now, total));
            let arrived = socket::tcp_info(stream).map_or(0, |info| info.arrived);
            self.carried.arrived.push((now, arrived));
        }
    }

    /// The server's times count from when its side began, which is when ours did but for the way of one
    /// message.
    fn note_sample(&mut self, sample: TcpSample) {
        let at_ns = self.carried.began.saturating_add(sample.at_ns);
        let last = self.carried.samples.last().map_or(0, |last| last.at_ns);
        if at_ns >= last.saturating_add(self.step_ns) || self.carried.samples.is_empty() {
            self.carried.samples.push(TcpSample { at_ns, ..sample });
        }
    }
}

/// TCP's figures, as a sample without a time.
pub(crate) fn sample(info: &socket::TcpInfo) -> TcpSample {
    TcpSample {
        at_ns: 0,
        acked: info.acked,
        delivery_rate: info.delivery_rate,
        cwnd: info.cwnd,
        srtt_us: info.srtt_us,
        retransmissions: info.retransmissions,
    }
}

/// Finds the samples in what comes down.
#[derive(Default)]
struct Blocks {
    /// Bytes of the block that continues.
    at: usize,
    front: Vec<u8>,
}

impl Blocks {
    fn take(&mut self, mut bytes: &[u8], seal: &mut Seal, mut found: impl FnMut(TcpSample)) {
        while !bytes.is_empty() {
            let missing = TcpSample::SEALED.saturating_sub(self.at);
            let (front, _) = bytes.split_at(missing.min(bytes.len()));
            self.front.extend_from_slice(front);
            if missing > 0 && self.front.len() == TcpSample::SEALED {
                // A block that does not begin with one is not the server's, or its mistake; its bytes count
                // all the same.
                TcpSample::read_sealed(&self.front, seal).into_iter().for_each(&mut found);
                self.front.clear();
            }
            let used = bytes.len().min(TcpSample::BLOCK - self.at);
            self.at = (self.at + used) % TcpSample::BLOCK;
            bytes = &bytes[used..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_probe_wire::{NONCE_LEN, Token};

    #[test]
    fn samples_are_found_however_the_blocks_are_cut() {
        let samples: Vec<TcpSample> =
            (1..5).map(|at_ns| TcpSample { at_ns, cwnd: 9, ..TcpSample::default() }).collect();
        let key = Token::open().session_key(&[1; NONCE_LEN], &[2; NONCE_LEN]).flow(3);
        let (mut bytes, mut seal) = (Vec::new(), key.samples());
        for sample in &samples {
            bytes.extend_from_slice(&sample.write_sealed(&mut seal));
            bytes.resize(bytes.len().next_multiple_of(TcpSample::BLOCK), 7);
        }
        for size in [1, 7, 39, 40, 41, 55, 56, 57, 1000, TcpSample::BLOCK, 40_000] {
            let mut found = Vec::new();
            let mut blocks = Blocks::default();
            let mut seal = key.samples();
            bytes.chunks(size).for_each(|chunk| blocks.take(chunk, &mut seal, |sample| found.push(sample)));
            assert_eq!(found, samples, "in pieces of {size}");
        }
    }
}
