//! A client's connection: its messages are passed to the sessions, and their actions carried out.

use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use tidegate_probe_wire::{
    ConnectionId, ControlMessage, Departures, FlowPlan, Role, SessionAction, SessionKey, Start,
};
use tidegate_sys::datagrams::DatagramSocket;

use super::flow;
use super::shared::{STACK, Shared};
use crate::line::{Came, Line};
use crate::sending::Sending;

/// The interval of `Alive` messages, ns.
const ALIVE_NS: u64 = 500_000_000;
/// How long it is waited for a message while something continues, and while nothing does.
const BUSY: Duration = Duration::from_millis(20);
const IDLE: Duration = Duration::from_millis(200);

/// Answers a call until it ends.
pub(super) fn answer(
    shared: &Arc<Shared>,
    call: ConnectionId,
    stream: TcpStream,
    datagrams: &Arc<DatagramSocket>,
) {
    let Ok(line) = Line::new(stream) else { return };
    let over = Arc::new(AtomicBool::new(false));
    let mut answering =
        ServedConnection { shared, call, line, datagrams, over: Arc::clone(&over), running: None };
    let ended = answering.go();
    // Whatever is still being sent ends with the call.
    over.store(true, Ordering::Relaxed);
    let ServedConnection { line, .. } = answering;
    if let Ok(Some((plan, key))) = ended {
        let (stream, early) = line.into_parts();
        // The client has stopped reading.
        let _ = flow::let_flow(shared, call, stream, early, (&plan, &key));
    }
}

struct ServedConnection<'s> {
    shared: &'s Arc<Shared>,
    call: ConnectionId,
    line: Line,
    datagrams: &'s Arc<DatagramSocket>,
    /// The call has ended.
    over: Arc<AtomicBool>,
    running: Option<Running>,
}

/// An exchange that continues.
struct Running {
    /// The thread that sends the download stream, if there is one.
    sender: Option<JoinHandle<Departures>>,
    /// The client wants no more of it.
    stopped: Arc<AtomicBool>,
    /// When the last `Alive` was sent.
    alive: u64,
    /// The client has sent everything: when its message came, and how long nothing must arrive.
    sent: Option<(u64, u64)>,
}

impl ServedConnection<'_> {
    /// Until the call ends, or becomes a flow.
    fn go(&mut self) -> io::Result<Option<(FlowPlan, SessionKey)>> {
        while !self.shared.is_over() {
            let (most, is_known) = {
                let sessions = self.shared.sessions();
                (sessions.most(self.call), sessions.is_known(self.call))
            };
            // A stranger whose place was given away must be gone soon.
            let wait = if self.running.is_some() || !is_known { BUSY } else { IDLE };
            let step = match self.line.receive(most, wait)? {
                Came::End => return Ok(None),
                Came::Garbage(why) => Some(self.shared.sessions().garbled(self.call, why)),
                Came::Message(message) => {
                    Some(self.shared.sessions().on_message(self.shared.clock.now(), self.call, message))
                }
                Came::Nothing => None,
            };
            match step {
                None | Some(SessionAction::Nothing) => {}
                Some(SessionAction::Say(message)) => {
                    self.line.send(&message)?;
                    // Everything after the handshake is sealed.
                    if matches!(message, ControlMessage::Welcome { .. })
                        && let Some(key) = self.shared.sessions().key(self.call)
                    {
                        self.line.seal(&key, Role::Server);
                    }
                }
                Some(SessionAction::Last(message)) => {
                    self.line.send(&message)?;
                    return Ok(None);
                }
                Some(SessionAction::HangUp) => return Ok(None),
                Some(SessionAction::Start(start)) => self.start(start)?,
                Some(SessionAction::Tell { quiet_ns }) => {
                    if let Some(running) = &mut self.running {
                        running.sent.get_or_insert((self.shared.clock.now(), quiet_ns));
                    }
                }
                Some(SessionAction::Stop { quiet_ns }) => {
                    if let Some(running) = &mut self.running {
                        running.stopped.store(true, Ordering::Relaxed);
                        running.sent.get_or_insert((self.shared.clock.now(), quiet_ns));
                    }
                }
                Some(SessionAction::Flow(plan, key)) => {
                    self.line.seal(&key, Role::Server);
                    self.line.send(&ControlMessage::Go)?;
                    return Ok(Some((plan, key)));
                }
            }
            self.go_on()?;
            let mut sessions = self.shared.sessions();
            if sessions.is_overdue(self.shared.clock.now(), self.call) {
                sessions.was_overdue();
                return Ok(None);
            }
        }
        Ok(None)
    }

    fn start(&mut self, start: Start) -> io::Result<()> {
        self.line.send(&ControlMessage::Go)?;
        let stopped = Arc::new(AtomicBool::new(false));
        let sender = match start.to {
            None => None,
            Some(to) => {
                let (shared, datagrams) = (Arc::clone(self.shared), Arc::clone(self.datagrams));
                let ends = [Arc::clone(&self.over), Arc::clone(&stopped)];
                let send = move || {
                    let Start { down, exchange, session, key, .. } = &start;
                    let (session, exchange) = (*session, *exchange);
                    let sending = Sending {
                        clock: &shared.clock,
                        socket: &datagrams,
                        to,
                        stream: down,
                        session,
                        key,
                        exchange,
                    };
                    sending.send(|| ends.iter().any(|end| end.load(Ordering::Relaxed)) || shared.is_over())
                };
                Some(std::thread::Builder::new().name("sender".to_owned()).stack_size(STACK).spawn(send)?)
            }
        };
        self.running = Some(Running { sender, stopped, alive: self.shared.clock.now(), sent: None });
        Ok(())
    }

    /// What an exchange needs from time to time.
    fn go_on(&mut self) -> io::Result<()> {
        let Some(running) = &mut self.running else { return Ok(()) };
        let now = self.shared.clock.now();
        let (arrived, is_whole, last) = {
            let sessions = self.shared.sessions();
            let Some(seen) = sessions.seen(self.call) else { return Ok(()) };
            (seen.arrived(), seen.is_whole(), seen.last().unwrap_or(0))
        };
        if now.saturating_sub(running.alive) >= ALIVE_NS {
            running.alive = now;
            self.line.send(&ControlMessage::Alive { arrived })?;
        }
        let has_sent = running.sender.as_ref().is_none_or(JoinHandle::is_finished);
        let has_heard =
            running.sent.is_some_and(|(at, quiet)| is_whole || now.saturating_sub(last.max(at)) > quiet);
        if has_sent && has_heard { self.tell() } else { Ok(()) }
    }

    /// Tells what came, and when what went was sent.
    fn tell(&mut self) -> io::Result<()> {
        let Some(running) = self.running.take() else { return Ok(()) };
        let mut problem = String::new();
        let departures = match running.sender.map(JoinHandle::join) {
            Some(Ok(departures)) => departures,
            Some(Err(_)) => {
                problem = "the server's sender failed".to_owned();
                Departures::default()
            }
            None => Departures::default(),
        };
        let seen = self.shared.sessions().end_exchange(self.shared.clock.now(), self.call);
        for (first, part) in seen.iter().flat_map(tidegate_probe_wire::PacketArrivals::parts) {
            self.line.send(&ControlMessage::Seen { first, part })?;
        }
        for (first, part) in departures.parts() {
            self.line.send(&ControlMessage::Departed { first, part })?;
        }
        self.line.send(&ControlMessage::ReportEnd { problem })
    }
}
