//! The daemon: an engine, its backend and the clock in one thread that sleeps when nothing is due; everyone
//! else gives it commands.
//!
//! ```text
//! packet I/O ──┐              ┌─ CommandSender::run(command) ◀── control socket (control.rs), a thread per client
//! link events ─┼─▶ run: turn, commands, wait
//! clock ───────┘
//! ```
//! A backend that breaks because its device is gone is opened again when the device is back; meanwhile
//! commands are answered and the machine keeps its configuration.

mod closed;
pub mod control;

use crate::engine::Engine;
use crate::packet_io::{AttachPoint, PacketIo};
pub use closed::Closed;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use tidegate_gateway::{Gateway, GatewayContext};
use tidegate_packet::Time;
use tidegate_policy::{LinkOp, Op, TcError};
use tidegate_sys::link_monitor::{self, LinkEvent, LinkMonitor};
use tidegate_sys::scheduling;
use tidegate_sys::wait::Waiter;

/// How long a backend that cannot be opened is left alone, if there is no news of its device.
const PATIENCE: Duration = Duration::from_secs(1);
/// commands done before packets have their turn again.
const COMMANDS_PER_TURN: usize = 16;
/// Turns that a backend gets before it is closed: what had come to it is taken in.
const LAST_TURNS: usize = 1000;
/// What is waited for, beside the backend.
const NEWS: u64 = 0;
const COMMAND: u64 = 1;
const PACKET_IO: u64 = 2;

/// Work for the daemon's thread.
type DaemonCommand = Box<dyn FnOnce(&mut DaemonContext<'_>) + Send>;

/// The daemon is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DaemonGone;

/// Where commands are given.
#[derive(Clone, Debug)]
pub struct CommandSender {
    commands: mpsc::SyncSender<DaemonCommand>,
    wake: Arc<UnixStream>,
}

/// Commands that may wait.
const WAITING: usize = 64;

impl CommandSender {
    /// A command sender, and what the daemon hears of it by.
    ///
    /// # Errors
    /// No pair of sockets can be had.
    pub fn new() -> io::Result<(CommandSender, CommandReceiver)> {
        let (tasks, to_do) = mpsc::sync_channel(WAITING);
        let (bell, heard) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        heard.set_nonblocking(true)?;
        Ok((CommandSender { commands: tasks, wake: Arc::new(bell) }, CommandReceiver { to_do, heard }))
    }

    /// Has the daemon do something between two packets, and waits for what it comes to.
    ///
    /// # Errors
    /// The daemon has ended.
    pub fn run<R: Send + 'static>(
        &self,
        transaction: impl FnOnce(&mut DaemonContext<'_>) -> R + Send + 'static,
    ) -> Result<R, DaemonGone> {
        let (tell, receiver) = mpsc::sync_channel(1);
        let transaction: DaemonCommand = Box::new(move |running| {
            let _ = tell.send(transaction(running));
        });
        self.commands.send(transaction).map_err(|_| DaemonGone)?;
        // A bell that has rung so often that no space is left will be heard.
        let _ = (&*self.wake).write(&[0]);
        receiver.recv().map_err(|_| DaemonGone)
    }
}

/// The other side of a [`CommandSender`].
#[derive(Debug)]
pub struct CommandReceiver {
    to_do: mpsc::Receiver<DaemonCommand>,
    heard: UnixStream,
}

/// The daemon as a command finds it.
pub struct DaemonContext<'r> {
    /// The engine; what changes it goes through [`DaemonContext::visit`] and [`DaemonContext::apply`].
    pub engine: &'r mut Engine,
    packet_io: &'r mut dyn PacketIo,
    clock: &'r MonotonicClock,
    state: &'r mut DaemonState,
}

/// How the daemon is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DaemonState {
    /// The backend's trouble, if it cannot be opened now.
    pub error: Option<String>,
    /// How often the backend was opened.
    pub openings: u64,
    /// Nothing more is to be done.
    ended: bool,
    /// The backend is to be opened again, at these places.
    moves: Option<Vec<AttachPoint>>,
}

impl DaemonContext<'_> {
    /// Runs work on the machine now; see [`Engine::visit`].
    ///
    /// # Errors
    /// The backend is broken.
    pub fn visit<R>(&mut self, work: impl FnOnce(&mut Gateway, GatewayContext<'_>) -> R) -> io::Result<R> {
        self.engine.visit(self.packet_io, self.clock.now(), work)
    }

    /// Carries out operations now; see [`Engine::apply`].
    ///
    /// # Errors
    /// The backend is broken.
    pub fn apply(&mut self, ops: &[Op]) -> io::Result<Result<(), (usize, TcError)>> {
        self.engine.apply(self.packet_io, self.clock.now(), ops)
    }

    /// How the daemon is.
    pub fn state(&self) -> &DaemonState {
        self.state
    }

    /// What the backend has done since it was opened.
    pub fn packet_io_stats(&self) -> crate::packet_io::PacketIoStats {
        self.packet_io.counts()
    }

    /// Has super-packets split into their segments from now on, or delivered whole.
    ///
    /// # Errors
    /// This backend cannot.
    pub fn split(&mut self, split: bool) -> io::Result<()> {
        self.packet_io.split(split)
    }

    /// Moves to these attach points: another backend is opened, the backlog is sent at once, and the old
    /// backend is closed.
    pub fn settle_in(&mut self, places: Vec<AttachPoint>) {
        self.state.moves = Some(places);
    }

    /// Ends the daemon: the backlog is sent at once.
    pub fn end(&mut self) {
        self.state.ended = true;
    }
}

/// The time since the daemon began, which no change of the wall's clock alters.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    began: Instant,
    start: Time,
}

impl MonotonicClock {
    /// From `start` on, which is now.
    pub fn new(start: Time) -> MonotonicClock {
        MonotonicClock { began: Instant::now(), start }
    }

    /// Now.
    pub fn now(&self) -> Time {
        let since = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        Time(self.start.0.saturating_add(since))
    }
}

/// Opens the backend: at first, and again when it broke.
pub type Open<'o> = dyn FnMut() -> io::Result<Box<dyn PacketIo>> + 'o;

/// Continues until a command ends it. `open` is requested the backend at once, and must be able to give one
/// the first time; `opened` hears of it.
///
/// # Errors
/// The backend cannot be opened at first, or the system has nothing more to wait by.
pub fn run(
    engine: &mut Engine,
    clock: MonotonicClock,
    open: &mut Open<'_>,
    commands: &CommandReceiver,
    opened: &mut dyn FnMut(),
) -> io::Result<()> {
    scheduling::wake_on_time();
    let mut bulletin = LinkMonitor::open()?;
    let mut state = DaemonState::default();
    let mut packet_io = open()?;
    opened();
    loop {
        state.openings += 1;
        state.error = None;
        engine.number(link_monitor::links()?.into_iter().map(|link| (link.index, link.name)));
        let next = match serve(engine, &mut *packet_io, clock, commands, &mut bulletin, &mut state, None) {
            Ok(()) if state.ended => {
                engine.empty(&mut *packet_io)?;
                return Ok(());
            }
            Ok(()) => {
                // The new backend is there before the old one goes: nothing passes by unseen.
                let next = open();
                leave(engine, &mut *packet_io, clock);
                next.ok()
            }
            Err(error) => {
                state.error = Some(error.to_string());
                None
            }
        };
        engine.orphan();
        drop(packet_io);
        if let Some(places) = state.moves.take() {
            engine.settle_in(&places);
        }
        packet_io = match next {
            Some(packet_io) => packet_io,
            None => loop {
                match open() {
                    Ok(packet_io) => break packet_io,
                    Err(error) => state.error = Some(error.to_string()),
                }
                serve(engine, &mut Closed, clock, commands, &mut bulletin, &mut state, Some(PATIENCE))?;
                if state.ended {
                    return Ok(());
                }
                if let Some(places) = state.moves.take() {
                    engine.settle_in(&places);
                }
            },
        };
    }
}

/// Sends the packets of a backend that is closed next, and the backlog.
fn leave(engine: &mut Engine, packet_io: &mut dyn PacketIo, clock: MonotonicClock) {
    for _ in 0..LAST_TURNS {
        match engine.turn(packet_io, clock.now()) {
            Ok(true) => {}
            Ok(false) | Err(_) => break,
        }
    }
    // If it breaks now, the backlog is dropped with it.
    let _ = engine.empty(packet_io);
}

/// Serves a backend until it breaks, or a command ends it all or wants another; with `patience`, until news
/// of links came or so long has passed.
fn serve(
    engine: &mut Engine,
    packet_io: &mut dyn PacketIo,
    clock: MonotonicClock,
    commands: &CommandReceiver,
    bulletin: &mut LinkMonitor,
    state: &mut DaemonState,
    patience: Option<Duration>,
) -> io::Result<()> {
    let mut waiter = Waiter::new()?;
    waiter.add(&*bulletin, NEWS)?;
    waiter.add(&commands.heard, COMMAND)?;
    for handle in packet_io.handles() {
        waiter.add(handle, PACKET_IO)?;
    }
    let give_up = patience.map(|patience| Instant::now() + patience);
    loop {
        let busy = engine.turn(packet_io, clock.now())?;
        for transaction in commands.to_do.try_iter().take(COMMANDS_PER_TURN) {
            transaction(&mut DaemonContext { engine, packet_io, clock: &clock, state });
        }
        if state.ended || state.moves.is_some() {
            return Ok(());
        }
        if busy {
            continue;
        }
        let due = engine.due().map(|due| Duration::from_nanos(due.0.saturating_sub(clock.now().0)));
        let left = give_up.map(|at| at.saturating_duration_since(Instant::now()));
        let (mut rung, mut reported) = (false, false);
        for number in waiter.wait([due, left].into_iter().flatten().min())? {
            rung |= number == COMMAND;
            reported |= number == NEWS;
        }
        if rung {
            // However often it rang, all that is to be done is done.
            let _ = (&commands.heard).read(&mut [0; WAITING]);
        }
        if reported {
            let events = bulletin.read()?;
            let heard = on_link_events(engine, packet_io, clock, &events);
            // A backend that is closed already is not closed by what happened before.
            if patience.is_none() {
                heard?;
            }
        }
        if patience.is_some() && (reported || left == Some(Duration::ZERO)) {
            return Ok(());
        }
    }
}

/// Updates the machine's devices by the link events. A device that is gone takes the backend with it.
fn on_link_events(
    engine: &mut Engine,
    packet_io: &mut dyn PacketIo,
    clock: MonotonicClock,
    events: &[LinkEvent],
) -> io::Result<()> {
    for events in events {
        let link = match events {
            LinkEvent::Is(link) => link,
            LinkEvent::Gone(link) if engine.numbered(link.index).is_some() => {
                return Err(io::Error::new(
                    io::ErrorKind::NotFound,
                    format!("the device `{}` is gone", link.name),
                ));
            }
            LinkEvent::Gone(_) | LinkEvent::Missed => continue,
        };
        let was = engine.numbered(link.index).map(str::to_owned);
        let mut changes = Vec::new();
        if let Some(was) = was.filter(|was| *was != link.name) {
            changes.push(Op::Link(LinkOp::Rename { name: was, to: link.name.clone() }));
            engine.renamed(link.index, &link.name);
        }
        if let Some(spec) = engine.spec(&link.name) {
            let dev = || link.name.clone();
            changes.extend((spec.mtu != link.mtu).then(|| Op::Mtu { dev: dev(), bytes: link.mtu }));
            changes.extend(
                (spec.tx_queue_len != link.txqlen)
                    .then(|| Op::TxQueueLen { dev: dev(), packets: link.txqlen }),
            );
        }
        // What the model refuses to become stays as it was.
        let _ = engine.apply(packet_io, clock.now(), &changes)?;
    }
    Ok(())
}
