//! A whole script in the sandbox.

use std::fs;
use std::path::{Path, PathBuf};

use tidegate_sandbox::Spec;

use super::dialect;
use super::error::{CaptureError, Trouble};
use super::lines::Finder;
use super::missing_files;
use super::options::CaptureOptions;
use super::sandbox::executable;
use super::scan::Script;
use super::script_run::{Exit, ScriptRun};
use super::serve::{MAX_MEMORY, Run, Session};
use super::shim::WATCHED;
use super::stubs;
use super::troubles;
use tidegate_shims::Answer;
use tidegate_shims::TOOLS;

/// Runs a script in a sandbox, its calls answered by `answer`.
///
/// The script's own exit code, calls that failed and missing tools are in the [`ScriptRun`], not in the
/// error.
///
/// # Errors
/// The script cannot be read or run, or this system forbids the sandbox.
pub fn run_script(
    script: &Path,
    args: &[String],
    options: &CaptureOptions,
    answer: &mut dyn Answer,
) -> Result<ScriptRun, CaptureError> {
    let outcomes = run_in_turn(script, &[args.to_vec()], options, answer, &mut |_| {})?;
    outcomes.into_iter().next().ok_or(CaptureError::Sandbox("nothing was run".to_owned()))
}

/// Runs a script several times in one sandbox, each time with other arguments, as `start`, `show` and `stop`
/// of one machine.
///
/// Files that one run writes are there for the next. `before` gets the number of each run before it begins,
/// from 0. After a run that did not come to its end there is no other.
///
/// # Errors
/// As for [`run_script`].
pub fn run_in_turn(
    script: &Path,
    turns: &[Vec<String>],
    options: &CaptureOptions,
    answer: &mut dyn Answer,
    before: &mut dyn FnMut(usize),
) -> Result<Vec<ScriptRun>, CaptureError> {
    let script = Script::read(script)?;
    dialect::refuse_race(&script)?;
    let mut devices = options.devices.clone();
    for device in turns.iter().flat_map(|args| script.devices(args)) {
        if !devices.contains(&device) {
            devices.push(device);
        }
    }
    // A script that looks for its device must find one.
    if devices.is_empty() {
        devices.push("eth0".to_owned());
    }
    let spec = spec(&script, turns, options, &devices, answer)?;
    before(0);
    let mut session = Session::start(&spec, options)?;
    let mut outcomes: Vec<ScriptRun> = Vec::new();
    for (turn, args) in turns.iter().enumerate() {
        if turn > 0 {
            before(turn);
        }
        let mut finder = Finder::new(&script.files, args);
        finder.is_answered = !options.answers.is_empty();
        let last = turn + 1 == turns.len();
        let run = session.run(&script.program(args), answer, &mut finder, last)?;
        let ended = !run.exit.is_own();
        let mut run = outcome(run, &finder, &devices);
        run.arguments = args.len();
        run.notes.extend(script.stand_in.clone());
        run.stand_in = script.stand_in.clone();
        run.remarks = dialect::remarks(&script);
        run.troubles.retain(|trouble| !dialect::is_told(trouble, &run.remarks));
        run.notes.extend(run.remarks.iter().map(Trouble::sentence));
        outcomes.push(run);
        if ended {
            break;
        }
    }
    Ok(outcomes)
}

/// What one run showed.
pub(super) fn outcome(run: Run, finder: &Finder, devices: &[String]) -> ScriptRun {
    let Run { exit, calls, stubbed, stdout, stderr, mut notes, left } = run;
    let troubles = troubles::list(finder, &calls, &exit, (&stdout, &stderr));
    let unfinished = if exit.is_own() { troubles::unfinished(finder, &left) } else { None };
    let missing_arguments = troubles::missing_arguments(finder, &calls, &troubles);
    let cut_short =
        exit != Exit::Code(0) && finder.has_calls_behind(calls.last().and_then(|call| call.source.as_ref()));
    let missing_files = missing_files::sentence(finder, &stderr);
    let unanswered = troubles::unanswered(finder, &calls, &exit);
    let not_run = stubs::sentence(finder.main(), &stubbed);
    let caveats = [&unfinished, &missing_arguments, &missing_files, &unanswered, &not_run];
    notes.extend(caveats.into_iter().flatten().cloned());
    ScriptRun {
        exit,
        calls,
        arguments: 0,
        question: finder.question(),
        cut_short,
        stdout,
        stderr,
        devices: devices.to_vec(),
        notes,
        troubles,
        unfinished,
        missing_arguments,
        missing_files,
        unanswered,
        stubbed,
        not_run,
        namespaces: None,
        stand_in: None,
        remarks: Vec::new(),
    }
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
    script.note_named(&cwd, turns);
    let mut keep = vec![cwd.clone()];
    // A device (`run /dev/null`) has no siblings that it could read in.
    if !options.private && script.path.is_file() {
        keep.extend(script.path.parent().map(Path::to_owned));
    }
    // What it reads in, and what its arguments name. Where homes are hidden, only what the user named: the
    // script itself may name any secret as a file that it reads in.
    let read_in = script.files.iter().map(|(path, _)| path.clone()).filter(|_| !options.private);
    let named =
        std::iter::once(script.path.clone()).chain(read_in).chain(turns.iter().flatten().map(PathBuf::from));
    keep.extend(named.filter_map(|path| {
        let found =
            fs::canonicalize(cwd.join(path)).ok().filter(|found| found.is_file() || found.is_dir())?;
        // Beside a file that it is given, a script may look for others; where homes are hidden, it sees what
        // was named.
        if found.is_dir() || options.private { Some(found) } else { found.parent().map(Path::to_owned) }
    }));
    let files = answer.world(devices);
    Ok(Spec {
        executable: executable(options.executable.as_deref())?,
        cwd,
        links: devices.to_vec(),
        tools: TOOLS.iter().map(|tool| (*tool).to_owned()).chain(stubs::names(&options.stubs)).collect(),
        tool_dirs: script.tool_dirs(),
        keep,
        // A process that has no files of its own leaves those of the kernel visible.
        memory: ["/sys/class/net", "/sys/module"]
            .iter()
            .filter(|_| !files.is_empty())
            .map(Into::into)
            .collect(),
        files,
        watched: WATCHED.iter().map(|path| (*path).to_owned()).collect(),
        max_processes: u32::try_from(options.max_processes).unwrap_or(u32::MAX / 2),
        max_memory: MAX_MEMORY,
        no_overlay: options.no_overlay,
        no_links: options.no_links,
        private: options.private,
    })
}

/// The devices that a script's text names, in order of appearance: they should exist before it runs.
///
/// # Errors
/// The script cannot be read.
pub fn devices_of(script: &Path, args: &[String]) -> Result<Vec<String>, CaptureError> {
    Ok(Script::read(script)?.devices(args))
}
