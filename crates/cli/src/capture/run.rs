//! A whole script in the sandbox.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tidegate_os::process;
use tidegate_os::sandbox::{Report, Sandbox, SandboxError, Spec};

use super::face::{TOOLS, WATCHED};
use super::lines::Finder;
use super::scan::Script;
use super::serve::{Event, Intake, Side, Stream};
use super::{Answer, CaptureError, CaptureOptions, Exit, Outcome, troubles};

/// How often the number of processes inside is looked at.
const COUNT_EVERY: Duration = Duration::from_millis(100);

/// How many times the limit a script may run that goes on calling tools.
const PATIENCE: u32 = 10;

/// Runs a script in a sandbox, its calls answered by `answer`.
///
/// The script ends with the code it ends with: that, calls that failed and tools that were missing stand in the
/// [`Outcome`], not in the error.
///
/// # Errors
/// The script cannot be read or run, or this system forbids the sandbox.
pub fn run_script(
    script: &Path,
    args: &[String],
    options: &CaptureOptions,
    answer: &mut dyn Answer,
) -> Result<Outcome, CaptureError> {
    let outcomes = run_in_turn(script, &[args.to_vec()], options, answer, &mut |_| {})?;
    outcomes.into_iter().next().ok_or(CaptureError::Sandbox("nothing was run".to_owned()))
}

/// Runs a script several times in one sandbox, each time with other arguments, as `start`, `show` and `stop` of one machine.
///
/// Files that one run writes are there for the next. `before` is told the number of each run before it begins, from 0. After a
/// run that did not come to its end there is no other.
///
/// # Errors
/// As for [`run_script`].
pub fn run_in_turn(
    script: &Path,
    turns: &[Vec<String>],
    options: &CaptureOptions,
    answer: &mut dyn Answer,
    before: &mut dyn FnMut(usize),
) -> Result<Vec<Outcome>, CaptureError> {
    let script = Script::read(script)?;
    let mut devices = options.devices.clone();
    for device in turns.iter().flat_map(|args| script.devices(args)) {
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
    // A script that finds its device by itself must find one.
    if devices.is_empty() {
        devices.push("eth0".to_owned());
    }
    let spec = spec(&script, turns, options, &devices, answer)?;
    before(0);
    let (sandbox, stdout, stderr) = start(&spec)?;
    let mut intake = Intake {
        answer,
        finder: None,
        calls: Vec::new(),
        max_calls: options.max_calls,
        stdout: Stream::new(stdout, options.max_output, options.output, Side::Output),
        stderr: Stream::new(stderr, options.max_output, options.output, Side::Errors),
    };
    let listener = sandbox.listener.try_clone().map_err(CaptureError::io("keep the socket"))?;
    let mut sandbox = Some(sandbox);
    let mut outcomes: Vec<Outcome> = Vec::new();
    for (turn, args) in turns.iter().enumerate() {
        let Some(inside) = &mut sandbox else { break };
        if turn > 0 {
            before(turn);
            inside.go_on().map_err(CaptureError::io("go on to the next run"))?;
        }
        intake.finder = Some(Finder::new(&script.files, args));
        let exit = attend(inside, &mut intake, options)?;
        let mut notes = std::mem::take(&mut inside.notes);
        notes.dedup();
        let last = turn + 1 == turns.len() || !matches!(exit, Exit::Code(_) | Exit::Signal(_));
        if last {
            // Everything inside dies here, so the streams must end.
            sandbox = None;
            intake.drain(&listener);
        } else {
            intake.take_what_is_there();
        }
        outcomes.push(outcome(&mut intake, exit, &devices, notes));
    }
    Ok(outcomes)
}

/// What one run showed.
fn outcome(intake: &mut Intake<'_>, exit: Exit, devices: &[String], notes: Vec<String>) -> Outcome {
    let calls = std::mem::take(&mut intake.calls);
    let (stdout, stderr) = (std::mem::take(&mut intake.stdout.bytes), std::mem::take(&mut intake.stderr.bytes));
    let finder = intake.finder.take();
    let troubles = finder.map(|finder| troubles::list(&finder, &calls, &exit, &stderr)).unwrap_or_default();
    Outcome { exit, calls, stdout, stderr, devices: devices.to_vec(), notes, troubles }
}

fn spec(
    script: &Script,
    turns: &[Vec<String>],
    options: &CaptureOptions,
    devices: &[String],
    answer: &mut dyn Answer,
) -> Result<Spec, CaptureError> {
    let cwd = match &options.cwd {
        Some(cwd) => cwd.clone(),
        None => std::env::current_dir().map_err(CaptureError::io("find the current directory"))?,
    };
    let mut keep = vec![cwd.clone()];
    keep.extend(script.path.parent().map(Path::to_owned));
    // What it reads in, and what its arguments name.
    let named = script.files.iter().map(|(path, _)| path.clone()).chain(turns.iter().flatten().map(PathBuf::from));
    keep.extend(named.filter_map(|path| {
        let found = fs::canonicalize(cwd.join(path)).ok()?;
        if found.is_dir() { Some(found) } else { found.parent().map(Path::to_owned) }
    }));
    let files = answer.world(devices);
    Ok(Spec {
        executable: executable(options)?,
        cwd,
        programs: turns.iter().map(|args| script.program(args)).collect(),
        links: devices.to_vec(),
        tools: TOOLS.iter().map(|tool| (*tool).to_owned()).collect(),
        tool_dirs: script.tool_dirs(),
        keep,
        // Whoever has no files of its own leaves those of the kernel visible.
        memory: ["/sys/class/net", "/sys/module"].iter().filter(|_| !files.is_empty()).map(Into::into).collect(),
        files,
        watched: WATCHED.iter().map(|path| (*path).to_owned()).collect(),
        max_processes: u32::try_from(options.max_processes).unwrap_or(u32::MAX / 2),
        no_overlay: options.no_overlay,
    })
}

/// The devices that a script's text names, in order of appearance: they should exist before it runs.
///
/// # Errors
/// The script cannot be read.
pub fn devices_of(script: &Path, args: &[String]) -> Result<Vec<String>, CaptureError> {
    Ok(Script::read(script)?.devices(args))
}

/// Whether a sandbox can be made here; tests that need one print the reason and skip otherwise.
///
/// # Errors
/// The reason, with its remedy.
pub fn available(executable: &Path) -> Result<(), CaptureError> {
    let spec = Spec {
        executable: executable.to_owned(),
        cwd: "/".into(),
        programs: vec![vec!["sh".into(), "-c".into(), ":".into()]],
        ..Spec::default()
    };
    start(&spec).map(drop)
}

/// Serves calls until the script ends or its time is up.
fn attend(sandbox: &mut Sandbox, intake: &mut Intake<'_>, options: &CaptureOptions) -> Result<Exit, CaptureError> {
    let listener = sandbox.listener.try_clone().map_err(CaptureError::io("keep the socket"))?;
    let _urgent = process::Urgent::begin();
    let mut count_at = Instant::now() + COUNT_EVERY;
    let mut files = Vec::new();
    let begun = Instant::now();
    let (mut calls, mut called) = (intake.calls.len(), begun);
    loop {
        let now = Instant::now();
        // Whoever calls tools is alive: a thousand commands on a slow machine take their time.
        if intake.calls.len() > calls {
            (calls, called) = (intake.calls.len(), now);
        }
        let all = options.timeout * PATIENCE;
        let deadline = (called + options.timeout).min(begun + all);
        if now >= deadline {
            let after = if now >= begun + all { all } else { options.timeout };
            return Ok(Exit::TimedOut { after, running: running(sandbox) });
        }
        if now >= count_at {
            // The sandbox's own two processes are not the script's.
            if process::count_descendants(sandbox.pid(), options.max_processes + 2) > options.max_processes {
                return Ok(Exit::Crowded { limit: options.max_processes });
            }
            count_at = Instant::now() + COUNT_EVERY;
        }
        let event = intake
            .step(&listener, Some(sandbox.control()), deadline.min(count_at))
            .map_err(CaptureError::io("wait for the script"))?;
        if event != Event::Watched {
            continue;
        }
        let exit = match sandbox.report() {
            Report::Note(note) => {
                sandbox.notes.push(note);
                continue;
            }
            Report::File(path, content) => {
                files.push((path, content));
                continue;
            }
            Report::Exited(code) => Exit::Code(code),
            Report::Signalled(signal) => Exit::Signal(signal),
            Report::Failed(reason) => Exit::Lost(reason),
            Report::Gone => Exit::Lost("the sandbox ended early".to_owned()),
        };
        intake.answer.told(&files);
        return Ok(exit);
    }
}

/// What runs inside, without our own stages and the script's interpreter.
fn running(sandbox: &Sandbox) -> Vec<String> {
    process::descendants(sandbox.pid())
        .into_iter()
        .skip(2)
        .filter(|running| !running.words.is_empty())
        .map(|running| running.words.join(" "))
        .collect()
}

fn executable(options: &CaptureOptions) -> Result<PathBuf, CaptureError> {
    let executable = match &options.executable {
        Some(path) => path.clone(),
        None => std::env::current_exe().map_err(CaptureError::io("find our own executable"))?,
    };
    fs::canonicalize(executable).map_err(CaptureError::io("find our own executable"))
}

fn start(spec: &Spec) -> Result<(Sandbox, std::process::ChildStdout, std::process::ChildStderr), CaptureError> {
    match Sandbox::start(spec, true) {
        Ok(started) => Ok(started),
        // Root may do without a user namespace where those are forbidden.
        Err(first) if first.forbidden && process::effective_uid() == 0 => {
            Sandbox::start(spec, false).map_err(|second| refused(&second, Some(&first)))
        }
        Err(error) => Err(refused(&error, None)),
    }
}

fn refused(error: &SandboxError, before: Option<&SandboxError>) -> CaptureError {
    if !error.forbidden {
        return CaptureError::Sandbox(error.to_string());
    }
    let reason = match before {
        Some(before) => format!("{before}; without a user namespace: {error}"),
        None => error.to_string(),
    };
    CaptureError::Forbidden { reason, remedy: remedy() }
}

/// What an administrator can change, as this system shows it.
fn remedy() -> String {
    let setting = |name: &str| {
        fs::read_to_string(format!("/proc/sys/{name}")).ok().and_then(|text| text.trim().parse::<u64>().ok())
    };
    let root = process::effective_uid() == 0;
    let change = if setting("user/max_user_namespaces") == Some(0) {
        "allow user namespaces: `sysctl -w user.max_user_namespaces=10000`"
    } else if setting("kernel/unprivileged_userns_clone") == Some(0) && !root {
        "allow user namespaces: `sysctl -w kernel.unprivileged_userns_clone=1`"
    } else if setting("kernel/apparmor_restrict_unprivileged_userns") == Some(1) && !root {
        "allow user namespaces: `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"
    } else if root {
        "in a container: start it with `--privileged`, or with `--security-opt seccomp=unconfined --cap-add SYS_ADMIN`"
    } else {
        "in a container: start it with `--security-opt seccomp=unconfined`"
    };
    if root { format!("remedy: {change}") } else { format!("remedy: {change}; or run tidegate as root") }
}
