//! A daemon: a policy, its devices, the engine, and its clients' permissions.

use crate::counter::Counter;
use crate::error::{ErrorContext, Result};
use crate::follow::{FollowPattern, follow};
use crate::machine::{START, Wanted};
use crate::marks::Marks;
use crate::options::DaemonOptions;
use crate::packet_io::Opener;
use crate::policy::{MessageHandler, captured, wanted};
use crate::runtime::RuntimeDir;
use crate::ssh::{self, Ssh};
use crate::watchdog;
use std::fs::File;
use std::io::{self};
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate_dataplane::daemon::{self, CommandSender, MonotonicClock, control};
use tidegate_dataplane::engine::{Engine, Session, link_rate};
use tidegate_dataplane::packet_io::AttachPoint;
use tidegate_loader::LoadedPolicy;
use tidegate_packet::{Rate, Seeded};
use tidegate_shims::Machine;
use tidegate_sys::scheduling::SchedulingGuard;
use tidegate_sys::service::{self, Alone};
use tidegate_sys::{interrupt, output_file, poll};

/// Below this rate a super-packet of 64 kB holds up others for more than 2.5 ms: they come split.
pub const SPLIT_BELOW: Rate = Rate::bits(200_000_000);
/// The longest wait at once for something that may never come.
const DAY: Duration = Duration::from_secs(86_400);
/// Goes before others, if it may.
const PRIORITY: i32 = 50;

/// Runs a policy until SIGINT, SIGTERM or `tidegate down` ends it; on every device that the options describe,
/// as they come and go, where those name a pattern or a process. The process gives up all privileges but
/// those for the network.
///
/// # Errors
/// The policy, a device or the privileges are not as needed.
pub fn run(options: &DaemonOptions, say: MessageHandler<'_>) -> Result<()> {
    match FollowPattern::of(options) {
        Some(which) => follow(options, &which, say),
        None => run_one(options, say),
    }
}

/// Runs a policy on the devices that it names.
fn run_one(options: &DaemonOptions, say: MessageHandler<'_>) -> Result<()> {
    let LoadedPolicy { machine: Machine { log, carried, .. }, names: called, .. } = captured(options, say)?;
    let mut opener = Opener::new(options, &log)?;
    let mut wanted = wanted(options, &log)?;
    wanted.spots = opener.spots(wanted.spots);
    let runtime = RuntimeDir::here()?;
    runtime
        .make()
        .with_context(|| "the directory for locks and sockets cannot be made (TIDEGATE_RUN names another)")?;
    let _alone = locks(&runtime, &wanted)?;
    // An undo of an apply changes its state first and then checks the lock; this is the other way round, so
    // one of the two notices the other.
    if let Some(job) = &options.started_for {
        ensure!(
            runtime.job(wanted.name()).as_ref() == Some(job),
            Policy,
            "the `tidegate apply` that started this was undone"
        );
    }
    let starts = count_start(&runtime, wanted.name());
    let marks = Marks::set(&wanted)?;
    let mut engine = engine(&wanted, options.memory);
    if !options.strict {
        engine.never_starve(ssh::session().map(|Ssh { here, there }| Session { here, there }));
    }
    let (command_sender, tasks) = CommandSender::new()?;
    end_on_signals(command_sender.clone())?;
    let places = Arc::new(Mutex::new(wanted.spots.clone()));
    let counter = Counter {
        command_sender: command_sender.clone(),
        wanted: Mutex::new(wanted.clone()),
        places: places.clone(),
        marks,
        options: Mutex::new(DaemonOptions { started_for: None, ..options.clone() }),
        names: Mutex::new(crate::policy::names(options, &called, &log)),
        commands: Mutex::new(carried.into_iter().map(|carried| carried.words).collect()),
        starts,
        packet_io: opener.opened.clone(),
    };
    let sockets = Sockets::open(&runtime, &wanted)?;
    if options.realtime {
        SchedulingGuard::usual().before_others(PRIORITY).context("--realtime needs CAP_SYS_NICE")?;
    }
    // What the backend is opened by may be needed again; nothing else is.
    service::keep_only_network(options.realtime).context("privileges cannot be dropped")?;
    watchdog::watch(command_sender)?;
    control::serve(sockets.listener()?, Arc::new(counter))?;
    let split = split(&wanted)?;
    let clock = MonotonicClock::new(START);
    load_policy(&mut engine, &wanted)?;
    let mut opened = || {
        // A service manager that cannot be notified is no reason to stop.
        let _ = service::notify("READY=1\nSTATUS=packets pass through tidegate");
    };
    let mut open = || {
        let spots = places.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut packet_io = opener.open(&spots)?;
        if split {
            // A backend that cannot takes them whole.
            let _ = packet_io.split(true);
        }
        Ok(packet_io)
    };
    daemon::run(&mut engine, clock, &mut open, &tasks, &mut opened)
        .with_context(|| format!("packets cannot be taken at {}", names(&wanted.spots)))?;
    let _ = service::notify("STOPPING=1");
    Ok(())
}

fn names(spots: &[AttachPoint]) -> String {
    let names: Vec<&str> = spots.iter().map(|point| point.dev.as_str()).collect();
    names.join(", ")
}

/// One daemon for each device.
fn locks(runtime: &RuntimeDir, wanted: &Wanted) -> Result<Vec<Alone>> {
    let mut names: Vec<&str> = wanted.spots.iter().map(|point| point.dev.as_str()).collect();
    names.dedup();
    names.sort_unstable();
    names.dedup();
    let take = |name: &str| {
        let path = runtime.lock(name);
        let taken = RuntimeDir::take(&path).with_context(|| path.display().to_string())?;
        taken.ok_or_else(|| {
            error!(
                Busy,
                "`{name}` is shaped by another tidegate already; `tidegate down {name}` ends that one"
            )
        })
    };
    names.into_iter().map(take).collect()
}

/// Counts this start of the daemon of a device: how many there were since the machine was started.
fn count_start(runtime: &RuntimeDir, name: &str) -> u64 {
    let path = runtime.starts(name);
    let starts = runtime.count_of_starts(name).unwrap_or(0).saturating_add(1);
    // What cannot be written down is not counted the next time; the daemon runs all the same.
    let _ = output_file::write(&path, format!("{starts}\n").as_bytes());
    starts
}

fn engine(wanted: &Wanted, memory: usize) -> Engine {
    let devices: Vec<_> = wanted.devices.iter().map(|(link, spec)| (link.name.clone(), *spec)).collect();
    let mut engine = Engine::new(&devices, &wanted.spots, memory, seed());
    // From the first packet on: later requests are about the longest queueing delays, which began before.
    engine.watch();
    engine
}

/// An unpredictable seed: an attacker who knows the keys of hashes can make flows share one queue.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    Seeded::new(RandomState::new().hash_one(std::process::id())).next()
}

/// Tells the engine the policy, before any packet comes.
fn load_policy(engine: &mut Engine, wanted: &Wanted) -> Result<()> {
    let result = engine.apply(&mut daemon::Closed, START, &wanted.ops)?;
    result.map_err(|(at, error)| error!(Policy, "{error}: {:?}", wanted.ops[at]))
}

/// Are super-packets too long for the rate of these devices?
fn split(wanted: &Wanted) -> Result<bool> {
    let mut machine = wanted.machine()?;
    let rates: Vec<Option<Rate>> = machine
        .devices()
        .map(|device| link_rate(&machine.qdiscs(START, device), &machine.classes(START, device)))
        .collect();
    Ok(rates.into_iter().flatten().any(|rate| rate < SPLIT_BELOW))
}

/// On SIGTERM and SIGINT the daemon ends in order.
fn end_on_signals(commands: CommandSender) -> Result<()> {
    let bell = File::from(interrupt::event_fd()?);
    let wait = move || {
        // Signals that mean something else interrupt the wait, and mean nothing here.
        while let Ok(rung) = poll::readable(&[bell.as_fd()], DAY) {
            if rung == [true] {
                let _ = commands.run(|running| running.end());
                return;
            }
        }
    };
    std::thread::Builder::new().name("end".into()).spawn(wait)?;
    Ok(())
}

/// The control socket, under the name of each device; gone with this.
struct Sockets {
    listener: UnixListener,
    paths: Vec<std::path::PathBuf>,
}

impl Sockets {
    fn open(runtime: &RuntimeDir, wanted: &Wanted) -> Result<Sockets> {
        let path = runtime.socket(wanted.name());
        // The process that left it is gone: we have the lock.
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).with_context(|| path.display().to_string())?;
        // Everybody may query; permission to change depends on the user.
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666))?;
        let mut sockets = Sockets { listener, paths: vec![path.clone()] };
        for point in wanted.spots.iter().filter(|point| point.dev != wanted.name()) {
            let other = runtime.socket(&point.dev);
            let _ = std::fs::remove_file(&other);
            symlink(&path, &other).with_context(|| other.display().to_string())?;
            sockets.paths.push(other);
        }
        Ok(sockets)
    }

    fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        for path in &self.paths {
            let _ = std::fs::remove_file(path);
        }
    }
}
