//! The ways through: the kernel's, backends with no one behind them, and backends with the engine.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use tidegate_dataplane::daemon::MonotonicClock;
use tidegate_dataplane::engine::Engine;
use tidegate_dataplane::packet_io::capture::CaptureIo;
use tidegate_dataplane::packet_io::queue::{Options, QueueIo};
use tidegate_dataplane::packet_io::tun::{TunEnd, TunIo};
use tidegate_dataplane::packet_io::{AttachPoint, Leaving, PacketIo, TrafficDirection};
use tidegate_gateway::DeviceSpec;
use tidegate_packet::Time;
use tidegate_policy::Op;
use tidegate_syntax::Env;
use tidegate_syntax::tc::{self, TcCommand};
use tidegate_sys::scheduling::{self, SchedulingGuard};
use tidegate_sys::wait::Waiter;

use crate::line::{Line, MIDDLE, Through, namespace};
use crate::load::{Measured, Used};

/// The processor of anyone who is at a backend.
const PROCESSOR: usize = 1;
/// How long at most no one looks whether the measurement is over.
const LOOK: Duration = Duration::from_millis(20);
/// Packets in the engine at most.
const MOST: usize = 20_000;

/// A backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Queue,
    Capture,
    Tun,
}

/// What is installed on the devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Policy {
    Pfifo,
    HtbFqCodel,
}

/// A way through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForwardingPath {
    Kernel,
    Bare(Kind),
    Engine(Kind, Policy),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Queue => "NFQUEUE",
            Kind::Capture => "capture, TAP, AF_PACKET",
            Kind::Tun => "TUN pair",
        })
    }
}

impl fmt::Display for ForwardingPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ForwardingPath::Kernel => f.write_str("the kernel forwards"),
            ForwardingPath::Bare(kind) => write!(f, "{kind}"),
            ForwardingPath::Engine(_, Policy::Pfifo) => f.write_str("  with the engine: pfifo"),
            ForwardingPath::Engine(_, Policy::HtbFqCodel) => f.write_str("  with the engine: HTB, fq_codel"),
        }
    }
}

impl Policy {
    /// The operations for a device; rates and bursts are more than any machine carries, so that nothing
    /// waits.
    fn ops(self, dev: &str) -> Vec<Op> {
        let script = match self {
            Policy::Pfifo => format!("tc qdisc add dev {dev} root pfifo limit 10000"),
            Policy::HtbFqCodel => format!(
                "tc qdisc add dev {dev} root handle 1: htb default 10
                 tc class add dev {dev} parent 1: classid 1:1 htb rate 100gbit burst 1m cburst 1m quantum \
                 60000
                 tc class add dev {dev} parent 1:1 classid 1:10 htb rate 100gbit burst 1m cburst 1m quantum \
                 60000
                 tc qdisc add dev {dev} parent 1:10 fq_codel"
            ),
        };
        script.lines().map(op).collect()
    }
}

fn op(command: &str) -> Op {
    let args: Vec<String> = command.split_whitespace().skip(1).map(String::from).collect();
    match tc::parse(&args, &Env::default()) {
        Ok(tc::TcCommandLine { command: TcCommand::Apply(op), .. }) => op,
        other => panic!("{command}: {other:?}"),
    }
}

impl ForwardingPath {
    fn through(self) -> Through {
        match self {
            ForwardingPath::Bare(Kind::Tun) | ForwardingPath::Engine(Kind::Tun, _) => Through::Door,
            _ => Through::Middle,
        }
    }

    /// The way by its full name.
    pub(crate) fn name(self) -> String {
        match self {
            ForwardingPath::Engine(kind, _) => format!("{kind}{self}"),
            _ => self.to_string(),
        }
    }

    /// Lets the way be measured.
    pub(crate) fn run(
        self,
        line: &Line,
        measure: impl FnOnce(&Line, Through, &Used<'_>) -> io::Result<Measured>,
    ) -> io::Result<Measured> {
        let (kind, policy) = match self {
            ForwardingPath::Kernel => return measure(line, Through::Middle, &|| 0.0),
            ForwardingPath::Bare(kind) => (kind, None),
            ForwardingPath::Engine(kind, policy) => (kind, Some(policy)),
        };
        let ends = [namespace(&line.a)?, namespace(&line.b)?];
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (tell, receiver) = mpsc::channel();
        let start = move || thread::spawn(move || keep(kind, policy, ends, &stopped, &tell));
        let keeper = line.m.go(start)?;
        let measured = match receiver.recv() {
            Ok(schedstat) => {
                if self.through() == Through::Door {
                    line.join()?;
                }
                measure(line, self.through(), &|| used(&schedstat))
            }
            Err(_) => Err(io::Error::other("the door did not open")),
        };
        stop.store(true, Ordering::Relaxed);
        keeper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        measured
    }
}

/// Nanoseconds that a thread ran.
fn used(schedstat: &PathBuf) -> f64 {
    let text = std::fs::read_to_string(schedstat).unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(f64::NAN)
}

/// Is at a backend until it is told to stop; returns where it is written how long it ran.
fn keep(
    kind: Kind,
    policy: Option<Policy>,
    ends: [PathBuf; 2],
    stop: &AtomicBool,
    tell: &mpsc::Sender<PathBuf>,
) -> io::Result<()> {
    let mut turn = SchedulingGuard::usual();
    turn.pin_to(PROCESSOR)?;
    scheduling::wake_on_time();
    let spots = MIDDLE.map(|dev| AttachPoint { dev: dev.into(), direction: TrafficDirection::Egress });
    let mut door: Box<dyn PacketIo> = match kind {
        Kind::Queue => Box::new(QueueIo::open(&spots, Options::default())?),
        Kind::Capture => Box::new(CaptureIo::open(&spots)?),
        Kind::Tun => {
            let [a, b] = ends;
            let end =
                |namespace, name: &str| TunEnd { namespace: Some(namespace), name: name.into(), mtu: 1500 };
            Box::new(TunIo::open(&[end(a, "tide0"), end(b, "tide1")])?)
        }
    };
    let thread = PathBuf::from("/proc").join(std::fs::read_link("/proc/thread-self")?);
    let _ = tell.send(thread.join("schedstat"));
    match policy {
        None => bare(door.as_mut(), stop),
        Some(policy) => with_engine(door.as_mut(), policy, &spots, stop),
    }
}

fn waiter(packet_io: &dyn PacketIo) -> io::Result<Waiter> {
    let waiter = Waiter::new()?;
    packet_io.handles().into_iter().try_for_each(|handle| waiter.add(handle, 0))?;
    Ok(waiter)
}

/// Lets go what comes.
fn bare(packet_io: &mut dyn PacketIo, stop: &AtomicBool) -> io::Result<()> {
    let mut waiter = waiter(packet_io)?;
    let mut came: Vec<(u32, usize, u32)> = Vec::with_capacity(64);
    while !stop.load(Ordering::Relaxed) {
        let _ = waiter.wait(Some(LOOK))?;
        while packet_io.receive(64, &mut |packet| came.push((packet.ticket, packet.place, packet.mark)))? > 0
        {
            for (ticket, place, mark) in came.drain(..) {
                packet_io.pass(ticket, &Leaving::unchanged(place, mark))?;
            }
            packet_io.flush()?;
        }
    }
    Ok(())
}

/// Has the engine decide.
fn with_engine(
    packet_io: &mut dyn PacketIo,
    policy: Policy,
    spots: &[AttachPoint],
    stop: &AtomicBool,
) -> io::Result<()> {
    let devices: Vec<_> = spots.iter().map(|point| (point.dev.clone(), DeviceSpec::default())).collect();
    let mut engine = Engine::new(&devices, spots, MOST, 1);
    let clock = MonotonicClock::new(Time(1_000_000_000));
    for point in spots {
        let refused = engine.apply(packet_io, clock.now(), &policy.ops(&point.dev))?;
        refused.map_err(|(_, error)| io::Error::other(error.to_string()))?;
    }
    let mut waiter = waiter(packet_io)?;
    while !stop.load(Ordering::Relaxed) {
        while engine.turn(packet_io, clock.now())? {}
        let left = engine.due().map_or(LOOK, |due| Duration::from_nanos(due.0.saturating_sub(clock.now().0)));
        let _ = waiter.wait(Some(left.min(LOOK)))?;
    }
    Ok(())
}
