//! One exchange: a thread sends on schedule, the calling one receives, until the server has reported what it
//! received.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::ScopedJoinHandle;
use std::time::Duration;

use tidegate_measure::Durations;
use tidegate_measure::stream::{Exchange, ExchangeResult, PacketRecord, Stream, StreamTrace};
use tidegate_probe_wire::{
    ControlMessage, Departures, MOST, PacketArrivals, PacketHeader, ProbePacketKind, Role,
};
use tidegate_sys::datagrams::OutgoingDatagram;
use tidegate_sys::poll::readable;

use super::handshake::{answer, out_of_turn};
use super::session::ServerSession;
use crate::error::Error;
use crate::line::Came;
use crate::sending::Sending;

/// Why an exchange that was stopped is not the whole.
const STOPPED: &str = "it was stopped";
/// How often a hello is sent until one is answered, and how long each is waited for.
const HELLOS: u32 = 8;
const HELLO_WAIT: Duration = Duration::from_millis(400);
/// How long the server may be silent, ns. It sends `Alive` twice a second.
const SILENT_NS: u64 = 10_000_000_000;
/// The interval of our `Alive` messages, ns.
const ALIVE_NS: u64 = 1_000_000_000;
/// How long it is waited for packets and messages at once.
const LOOK: Duration = Duration::from_millis(50);
/// Lost packets are not waited for longer than this beyond two round trips, ns.
const QUIET_NS: u64 = 300_000_000;
/// The server's report on an exchange that was stopped is waited for so long, ns.
const STOPPED_NS: u64 = 3_000_000_000;

pub(super) fn carry_out(
    server_session: &mut ServerSession,
    exchange: &Exchange,
) -> Result<ExchangeResult, Error> {
    send_hello(server_session)?;
    let quiet_ns = QUIET_NS + 2 * server_session.rtt_ns;
    let go =
        answer(&mut server_session.line, &ControlMessage::Plan { exchange: exchange.clone(), quiet_ns })?;
    if go != ControlMessage::Go {
        return Err(out_of_turn(go));
    }
    server_session.exchange = server_session.exchange.wrapping_add(1);
    let over = AtomicBool::new(false);
    let (clock, socket) = (server_session.clock.clone(), server_session.socket.clone());
    let (to, session, number) = (server_session.server, server_session.session, server_session.exchange);
    let key = server_session.key.packets(Role::Client);
    let stop = server_session.stop;
    let mut taking = Taking::new(server_session, exchange, quiet_ns);
    let sent = std::thread::scope(|scope| {
        let sender = || {
            let sending = Sending {
                clock: &clock,
                socket: &socket,
                to,
                stream: &exchange.up,
                session,
                key: &key,
                exchange: number,
            };
            let is_over = || [Some(&over), stop].iter().flatten().any(|flag| flag.load(Ordering::Relaxed));
            sending.send(is_over)
        };
        let sender = std::thread::Builder::new().name("sender".to_owned()).spawn_scoped(scope, sender);
        let sender = sender.map_err(Error::io("start a thread"))?;
        taking.wait_for_result(&sender);
        over.store(true, Ordering::Relaxed);
        sender.join().map_err(|_| Error::Gone("our own sender panicked".to_owned()))
    })?;
    Ok(taking.outcome(exchange, &sent))
}

/// Shows the server by UDP where we are, so that whatever translates addresses lets its packets through.
fn send_hello(server_session: &mut ServerSession) -> Result<(), Error> {
    let hello = PacketHeader {
        kind: ProbePacketKind::Hello,
        exchange: 0,
        session: server_session.session,
        number: 0,
        sent: server_session.clock.now(),
    };
    let bytes = hello.write(&server_session.key.packets(Role::Client));
    let theirs = server_session.key.packets(Role::Server);
    for _ in 0..HELLOS {
        server_session
            .socket
            .send(&[OutgoingDatagram { to: server_session.server, ds: 0, bytes: &bytes }], |_| {});
        let until = server_session.clock.now() + HELLO_WAIT.as_nanos() as u64;
        let mut answered = false;
        while !answered && server_session.clock.now() < until && !server_session.is_stopped() {
            let _ = readable(&[server_session.socket.as_fd()], LOOK);
            let session = server_session.session;
            let took = server_session.socket.receive(&mut server_session.room, |packet| {
                let header = PacketHeader::read_sealed(packet.bytes, &theirs);
                answered |= header
                    .is_some_and(|header| header.kind == ProbePacketKind::Seen && header.session == session);
            });
            took.map_err(Error::io("receive by UDP"))?;
        }
        if answered {
            return Ok(());
        }
    }
    Err(Error::Gone(format!(
        "its TCP answers and its UDP does not: is port {} open for UDP as well, on both sides?",
        server_session.server.port()
    )))
}

/// What has come so far.
struct Taking<'f> {
    session: &'f mut ServerSession,
    quiet_ns: u64,
    /// The packets received, and the sending time in each.
    down: PacketArrivals,
    stamps: Departures,
    /// The server's report on both directions.
    up: PacketArrivals,
    departed: Departures,
    reported: bool,
    /// We said that all is sent.
    has_finished: bool,
    /// When we said that the exchange ends early.
    stopped_at: Option<u64>,
    cut: Option<String>,
}

impl<'f> Taking<'f> {
    fn new(session: &'f mut ServerSession, exchange: &Exchange, quiet_ns: u64) -> Taking<'f> {
        let (up, down) = (exchange.up.packets() as usize, exchange.down.packets() as usize);
        Taking {
            session,
            quiet_ns,
            down: PacketArrivals::new(down),
            stamps: Departures::new(down),
            up: PacketArrivals::new(up),
            departed: Departures::new(down),
            reported: false,
            has_finished: false,
            stopped_at: None,
            cut: None,
        }
    }

    /// Receives until the server has reported everything and nothing more is expected, or it is cut off.
    fn wait_for_result(&mut self, sender: &ScopedJoinHandle<'_, Departures>) {
        let mut heard = self.session.clock.now();
        let mut alive = heard;
        let mut reported = 0;
        while self.cut.is_none() {
            let now = self.session.clock.now();
            if self.reported
                && (self.down.is_whole()
                    || now.saturating_sub(self.down.last().unwrap_or(0).max(reported)) > self.quiet_ns)
            {
                return;
            }
            if let Err(error) = self.report_end(sender, now) {
                self.broken(&error.to_string());
                return;
            }
            if self.stopped_at.is_some_and(|at| now.saturating_sub(at) > STOPPED_NS) {
                self.broken(STOPPED);
                return;
            }
            if now.saturating_sub(alive) > ALIVE_NS && !self.reported {
                alive = now;
                // Where that fails, the next read returns the error.
                let _ = self.session.line.send(&ControlMessage::Alive { arrived: self.down.arrived() });
            }
            let fds = [self.session.socket.as_fd(), self.session.line.as_fd()];
            let ready = readable(&fds, if self.session.line.has_more() { Duration::ZERO } else { LOOK });
            let ready = ready.unwrap_or_default();
            self.take_packets();
            if (ready.get(1) == Some(&true) || self.session.line.has_more()) && self.listen() {
                heard = self.session.clock.now();
                reported = if self.reported && reported == 0 { heard } else { reported };
            }
            if !self.reported && self.session.clock.now().saturating_sub(heard) > SILENT_NS {
                self.broken(&format!("it has said nothing for {} s", SILENT_NS / 1_000_000_000));
            }
        }
    }

    /// Says that all of our own packets are sent, and that nothing more is wanted once we are to stop.
    fn report_end(&mut self, sender: &ScopedJoinHandle<'_, Departures>, now: u64) -> io::Result<()> {
        if !self.has_finished && sender.is_finished() {
            self.has_finished = true;
            self.session.line.send(&ControlMessage::Sent)?;
        }
        if self.has_finished && self.stopped_at.is_none() && self.session.is_stopped() {
            self.stopped_at = Some(now);
            self.session.line.send(&ControlMessage::Stop)?;
        }
        Ok(())
    }

    fn take_packets(&mut self) {
        let clock = &mut self.session.clock;
        let (session, exchange) = (self.session.session, self.session.exchange);
        let theirs = self.session.key.packets(Role::Server);
        let (down, stamps, lost_here) = (&mut self.down, &mut self.stamps, &mut self.session.lost_here);
        let took = self.session.socket.receive(&mut self.session.room, |packet| {
            *lost_here = packet.lost_here.map_or(*lost_here, |lost| lost.max(*lost_here));
            let Some(header) = PacketHeader::read_sealed(packet.bytes, &theirs) else { return };
            let ours = header.kind == ProbePacketKind::Data
                && header.session == session
                && header.exchange == exchange;
            if ours && down.note(header.number, clock.stamped(packet.stamp), packet.ds) {
                stamps.note(header.number, header.sent);
            }
        });
        if let Err(error) = took {
            self.broken(&format!("our socket failed: {error}"));
        }
    }

    /// Hears one message; false: there was none.
    fn listen(&mut self) -> bool {
        let message = match self.session.line.receive(MOST, Duration::ZERO) {
            Ok(Came::Message(message)) => message,
            Ok(Came::Nothing) => return false,
            Ok(Came::End) => {
                self.broken("it closed the connection");
                return false;
            }
            Ok(Came::Garbage(why)) => {
                self.broken(&why.to_string());
                return false;
            }
            Err(why) => {
                self.broken(&why.to_string());
                return false;
            }
        };
        let took = match message {
            ControlMessage::Seen { first, part } => self.up.take_part(first, &part),
            ControlMessage::Departed { first, part } => self.departed.take_part(first, &part),
            ControlMessage::ReportEnd { problem: trouble } => {
                self.reported = true;
                self.cut = (!trouble.is_empty()).then_some(trouble);
                Ok(())
            }
            ControlMessage::Refused(why) => {
                self.broken(&format!("it refuses to go on: {why}"));
                Ok(())
            }
            _ => Ok(()),
        };
        if let Err(why) = took {
            self.broken(&why.to_string());
        }
        true
    }

    /// There is no going on, in this exchange and with this server.
    fn broken(&mut self, why: &str) {
        let why =
            if self.session.is_stopped() { STOPPED.to_owned() } else { format!("the server is gone: {why}") };
        self.cut = Some(why.clone());
        self.session.broken = Some(why);
    }

    fn outcome(mut self, exchange: &Exchange, sent: &Departures) -> ExchangeResult {
        if self.stopped_at.is_some() && self.cut.is_none() {
            self.broken(STOPPED);
        }
        let up = stream_trace(&exchange.up, sent.all(), &self.up);
        // Each received packet carries its sending time; those of lost packets only the server knows.
        let departed = self.departed.all().zip(self.stamps.all()).map(|(reported, stamp)| reported.or(stamp));
        let down = stream_trace(&exchange.down, departed, &self.down);
        for (worst, trace) in self.session.late.iter_mut().zip([&up, &down]) {
            *worst = late(trace).unwrap_or(0).max(*worst);
        }
        ExchangeResult { up, down, cut: self.cut, is_reported: self.reported }
    }
}

/// How much later than they were due packets left, at the 99th percentile, ns; of the first one nothing is
/// known.
fn late(trace: &StreamTrace) -> Option<u64> {
    let left =
        trace.stream.dues().zip(&trace.packets).filter_map(|(due, packet)| Some((due.at_ns, packet.sent?)));
    let ahead: Vec<u64> = left.map(|(due, sent)| sent.wrapping_sub(due)).collect();
    let first = ahead.iter().copied().min()?;
    Durations::new(ahead.iter().map(|ahead| ahead - first).collect()).percentile(99.0)
}

fn stream_trace(
    stream: &Stream,
    sent: impl Iterator<Item = Option<u64>>,
    seen: &PacketArrivals,
) -> StreamTrace {
    let packet = |(sent, seen): (Option<u64>, &tidegate_probe_wire::PacketArrival)| PacketRecord {
        sent,
        arrived: seen.at(),
        rank: seen.rank,
        duplicates: seen.duplicates,
        ds: seen.ds,
    };
    StreamTrace { stream: stream.clone(), packets: sent.zip(seen.all()).map(packet).collect() }
}
