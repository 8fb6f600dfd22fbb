//! A process of its own at a backend, to be killed.

use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;

use tidegate_dataplane::packet_io::PacketIo;
use tidegate_dataplane::packet_io::capture::{AttachMethod, CaptureIo};
use tidegate_dataplane::packet_io::queue::{Options, QueueIo};
use tidegate_sys::namespace_thread::NamespaceThread;

use crate::capture::both;
use crate::wire::{FrameOutcome, forward};

/// Which backend a process of this test is to keep.
const DOOR: &str = "TIDEGATE_TEST_DOOR";
const OPEN: &str = "the door is open";

/// The child process.
pub(crate) struct Keeper(Child);

impl Keeper {
    /// Kills it, and waits until it is gone.
    pub(crate) fn kill(mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it is waited for");
    }
}

/// Starts it in a place; returns once the backend is open.
pub(crate) fn start(place: &NamespaceThread, packet_io: &str) -> Keeper {
    let packet_io = packet_io.to_owned();
    let started = place.go(move || -> io::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command
            .args(["--exact", "child::keeps_a_door", "--nocapture"])
            .env(DOOR, packet_io)
            .stdout(Stdio::piped());
        tidegate_sys::process::die_with_parent(&mut command).spawn()
    });
    let mut child = started.expect("place").expect("this program can be started");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let opened = lines.map_while(Result::ok).any(|line| line.contains(OPEN));
    assert!(opened, "the child could not open its door");
    Keeper(child)
}

/// What the child does; nothing when it is run as a test.
#[test]
fn keeps_a_door() {
    let Ok(packet_io) = std::env::var(DOOR) else { return };
    let opened: io::Result<Box<dyn PacketIo>> = match packet_io.as_str() {
        "Link" => CaptureIo::by(AttachMethod::Link, &both()).map(|packet_io| Box::new(packet_io) as _),
        "Filter" => CaptureIo::by(AttachMethod::Filter, &both()).map(|packet_io| Box::new(packet_io) as _),
        "Queue" => QueueIo::open(&both(), Options::default()).map(|packet_io| Box::new(packet_io) as _),
        other => panic!("unknown packet I/O backend {other}"),
    };
    let mut packet_io = opened.expect("the door opens");
    println!("{OPEN}");
    forward(packet_io.as_mut(), &AtomicBool::new(false), &mut |_| FrameOutcome::Pass)
        .expect("the door stands");
}
