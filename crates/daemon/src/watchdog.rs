//! Signs of life for a service manager that restarts a daemon which hangs (systemd's `WatchdogSec=`).
//!
//! Each one is sent only after the thread that moves packets has done something: it takes a command between
//! two packets. A thread beside it that reported on its own would report for a daemon whose engine hangs.

use std::time::{Duration, Instant};
use tidegate_dataplane::daemon::CommandSender;
use tidegate_sys::service;

/// Signs of life are sent this often in the time that the service manager waits.
const BEATS: u32 = 3;

/// When the next sign of life is due.
pub(crate) struct Heartbeat {
    every: Duration,
    last: Option<Instant>,
}

impl Heartbeat {
    /// `None`: no service manager waits for signs of life.
    pub(crate) fn new() -> Option<Heartbeat> {
        service::watchdog().map(|patience| Heartbeat { every: patience / BEATS, last: None })
    }

    /// How often one is due.
    pub(crate) fn every(&self) -> Duration {
        self.every
    }

    /// Sends one if it is due.
    pub(crate) fn beat(&mut self) {
        if self.last.is_none_or(|last| last.elapsed() >= self.every / 2) {
            self.last = Some(Instant::now());
            // A service manager that cannot be notified is no reason to stop.
            let _ = service::notify("WATCHDOG=1");
        }
    }
}

/// Sends signs of life as long as the daemon's thread takes commands, if a service manager waits for them.
///
/// # Errors
/// No thread can be started.
pub(crate) fn watch(commands: CommandSender) -> std::io::Result<()> {
    let Some(mut heartbeat) = Heartbeat::new() else { return Ok(()) };
    let every = heartbeat.every();
    let watch = move || while_it_works(&commands, every, || heartbeat.beat());
    std::thread::Builder::new().name("watchdog".into()).spawn(watch).map(drop)
}

/// Calls `beat` after each command that the daemon's thread took, until the daemon ends.
fn while_it_works(commands: &CommandSender, every: Duration, mut beat: impl FnMut()) {
    // It waits here as long as the engine does not take the command.
    while commands.run(|_| ()).is_ok() {
        beat();
        std::thread::sleep(every);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::START;
    use std::sync::mpsc;
    use tidegate_dataplane::daemon::{self, Closed, MonotonicClock};
    use tidegate_dataplane::engine::Engine;

    /// How long a sign of life that must not come is waited for.
    const ABSENCE: Duration = Duration::from_millis(200);

    #[test]
    fn an_engine_that_hangs_gives_no_sign_of_life() {
        let (commands, tasks) = CommandSender::new().expect("a pair of sockets");
        let running = std::thread::spawn(move || {
            let mut engine = Engine::new(&[], &[], 1, 1);
            let mut open = || Ok(Box::new(Closed) as Box<dyn tidegate_dataplane::packet_io::PacketIo>);
            daemon::run(&mut engine, MonotonicClock::new(START), &mut open, &tasks, &mut || ())
        });
        let (beats, heard) = mpsc::channel();
        let watched = commands.clone();
        let watching = std::thread::spawn(move || {
            while_it_works(&watched, Duration::from_millis(1), || {
                let _ = beats.send(());
            });
        });
        heard.recv().expect("it works");
        heard.recv().expect("it still works");

        let (release, wait) = mpsc::channel::<()>();
        let (tell, hangs) = mpsc::channel();
        let hanging = commands.clone();
        let hang = std::thread::spawn(move || {
            hanging.run(move |_| {
                tell.send(()).expect("the test waits");
                wait.recv().expect("the test releases it");
            })
        });
        hangs.recv().expect("it hangs");
        // Commands that were taken before may be reported still.
        while heard.try_recv().is_ok() {}
        let late = std::iter::from_fn(|| heard.recv_timeout(ABSENCE).ok()).count();
        assert!(late <= 1, "{late} signs of life of an engine that hangs");
        release.send(()).expect("it waits");
        hang.join().expect("no panic").expect("it was done");
        heard.recv().expect("it works again");

        commands.run(|running| running.end()).expect("it ends");
        running.join().expect("no panic").expect("it ended in order");
        watching.join().expect("it ends with the daemon");
    }
}
