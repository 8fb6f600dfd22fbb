//! A whole script in the sandbox.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tidegate_os::process;
use tidegate_os::sandbox::{Report, Sandbox, SandboxError, Spec};

use super::face::TOOLS;
use super::lines::Finder;
use super::scan::Script;
use super::serve::{Event, Intake, Stream};
use super::{Answer, CaptureError, CaptureOptions, Exit, Outcome, troubles};

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
    let script = Script::read(script)?;
    let mut devices = options.devices.clone();
    for device in script.devices(args) {
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
    let cwd = match &options.cwd {
        Some(cwd) => cwd.clone(),
        None => std::env::current_dir().map_err(CaptureError::io("find the current directory"))?,
    };
    let mut keep = vec![cwd.clone()];
    keep.extend(script.path.parent().map(Path::to_owned));
    let spec = Spec {
        executable: executable(options)?,
        cwd,
        program: script.program(args),
        links: devices.clone(),
        tools: TOOLS.iter().map(|tool| (*tool).to_owned()).collect(),
        tool_dirs: script.tool_dirs(),
        keep,
        no_overlay: options.no_overlay,
    };
    let deadline = Instant::now() + options.timeout;
    let (mut sandbox, stdout, stderr) = start(&spec)?;
    let mut intake = Intake {
        answer,
        finder: Some(Finder::new(&script.files, args)),
        calls: Vec::new(),
        max_calls: options.max_calls,
        stdout: Stream::new(stdout, options.max_output, options.output),
        stderr: Stream::new(stderr, options.max_output, options.output),
    };
    let exit = attend(&mut sandbox, &mut intake, deadline, options)?;
    let mut notes = std::mem::take(&mut sandbox.notes);
    let listener = sandbox.listener.try_clone().map_err(CaptureError::io("keep the socket"))?;
    // Everything inside dies here, so the streams must end.
    drop(sandbox);
    intake.drain(&listener);
    notes.dedup();
    let finder = intake.finder.take();
    let troubles =
        finder.map(|finder| troubles::list(&finder, &intake.calls, &exit, &intake.stderr.bytes)).unwrap_or_default();
    Ok(Outcome {
        exit,
        calls: intake.calls,
        stdout: intake.stdout.bytes,
        stderr: intake.stderr.bytes,
        devices,
        notes,
        troubles,
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
        program: vec!["sh".into(), "-c".into(), ":".into()],
        ..Spec::default()
    };
    start(&spec).map(drop)
}

/// Serves calls until the script ends or its time is up.
fn attend(
    sandbox: &mut Sandbox,
    intake: &mut Intake<'_>,
    deadline: Instant,
    options: &CaptureOptions,
) -> Result<Exit, CaptureError> {
    let listener = sandbox.listener.try_clone().map_err(CaptureError::io("keep the socket"))?;
    loop {
        let event = intake
            .step(&listener, Some(sandbox.control()), deadline)
            .map_err(CaptureError::io("wait for the script"))?;
        match event {
            Event::Served => {}
            Event::TimeUp => {
                return Ok(Exit::TimedOut { after: options.timeout, running: running(sandbox) });
            }
            Event::Watched => match sandbox.report() {
                Report::Note(note) => sandbox.notes.push(note),
                Report::Exited(code) => return Ok(Exit::Code(code)),
                Report::Signalled(signal) => return Ok(Exit::Signal(signal)),
                Report::Failed(reason) => return Ok(Exit::Lost(reason)),
                Report::Gone => return Ok(Exit::Lost("the sandbox ended early".to_owned())),
            },
        }
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
