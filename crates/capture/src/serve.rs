//! The caller's side of a sandbox: answers calls one at a time, takes in what the programs print, minds time
//! and memory.

use std::ffi::OsString;
use std::io::{self, BufReader, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::process::{ChildStderr, ChildStdout};
use std::time::{Duration, Instant};

use tidegate_sandbox::{Report, Sandbox, Shortage, Spec};
use tidegate_sys::process::ProcessInfo;
use tidegate_sys::until::Until;
use tidegate_sys::{poll, process};

use super::echo::Echo;
use super::lines::Finder;

use super::effect;
use super::error::CaptureError;
use super::options::{CaptureOptions, MAX_ANSWERS, Output};
use super::script_run::{Exit, Recorded};
use super::stubs::StubbedCall;
use super::wire::{self, Request};
use tidegate_shims::{Answer, Call, Effect, Reply};

/// How long a tool may take to speak its request and to hear the reply: it has nothing else to do.
const CALL_LIMIT: Duration = Duration::from_secs(5);
/// How long output may still come when all writers are gone.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);
/// The most pieces of output, of up to 8 KiB, that are taken in after a run that another follows.
const MAX_PIECES: usize = 4096;
/// How often processes and memory inside are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Processes of the sandbox itself: its two stages.
const OWN_PROCESSES: usize = 2;
/// The most bytes of memory that all processes inside may hold together. A control group holds them to it,
/// with files in memory, pipes, sockets and links; where none can be made, their own pages are counted now
/// and then.
pub(super) const MAX_MEMORY: u64 = 2 << 30;
/// The most changes of the kernel's links in one run: each takes the kernel's time and memory.
const MAX_LINK_CHANGES: usize = 512;
/// The most bytes of each stream that are passed on to our own.
const MAX_PASSED: usize = 64 << 20;
/// The most bytes that are kept of all calls of one session.
const MAX_KEPT: usize = 256 << 20;

/// A sandbox with its streams.
pub(super) struct Session {
    sandbox: Option<Sandbox>,
    limits: Limits,
    /// What the script reads from its standard input.
    answers: Vec<u8>,
    stdout: Stream<ChildStdout>,
    stderr: Stream<ChildStderr>,
    /// Bytes of the calls so far.
    kept: usize,
}

/// What a run may use.
struct Limits {
    timeout: Duration,
    max_processes: usize,
    max_calls: usize,
    /// Programs that are not run.
    stubs: Vec<String>,
}

/// What one run showed.
pub(super) struct Run {
    pub(super) exit: Exit,
    pub(super) calls: Vec<Recorded>,
    /// Calls of programs that are not run.
    pub(super) stubbed: Vec<StubbedCall>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    pub(super) notes: Vec<String>,
    /// What was still running at its end, each with its words joined, and was ended.
    pub(super) left: Vec<String>,
}

/// A run under way.
struct Turn<'a> {
    answer: &'a mut dyn Answer,
    finder: &'a mut Finder,
    deadline: Instant,
    calls: Vec<Recorded>,
    stubbed: Vec<StubbedCall>,
    /// Changes of the kernel's links so far.
    links_changed: usize,
}

/// One of a program's two output streams.
struct Stream<R> {
    pipe: Option<R>,
    bytes: Vec<u8>,
    limit: usize,
    output: Output,
    /// Bytes that were passed on.
    passed: usize,
    /// Where it is passed on to.
    echo: Echo,
}

/// Which of the streams it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Output,
    Errors,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    /// A tool calls.
    Call,
    /// The sandbox has a report.
    Report,
    /// Output was taken in, or nothing happened within the time.
    Other,
}

impl Session {
    /// Sets up a sandbox.
    pub(super) fn start(spec: &Spec, options: &CaptureOptions) -> Result<Self, CaptureError> {
        let (sandbox, stdout, stderr) = super::sandbox::start(spec)?;
        // A caller that gave up between two looks must not make us wait.
        sandbox.listener.set_nonblocking(true).map_err(CaptureError::io("keep the listener"))?;
        let limits = Limits {
            timeout: options.timeout,
            max_processes: options.max_processes,
            max_calls: options.max_calls,
            stubs: super::stubs::names(&options.stubs),
        };
        Ok(Self {
            sandbox: Some(sandbox),
            limits,
            answers: options.answers.iter().flat_map(|line| [line.as_bytes(), b"\n"].concat()).collect(),
            stdout: Stream::new(stdout, options, Side::Output),
            stderr: Stream::new(stderr, options, Side::Errors),
            kept: 0,
        })
    }

    /// Runs a program to its end, or ends it. After a run that did not come to its end, or the `last`, the
    /// sandbox is gone.
    pub(super) fn run(
        &mut self,
        words: &[OsString],
        answer: &mut dyn Answer,
        finder: &mut Finder,
        last: bool,
    ) -> Result<Run, CaptureError> {
        let begun = Instant::now();
        let mut turn = Turn {
            answer,
            finder,
            deadline: begun + self.limits.timeout,
            calls: Vec::new(),
            stubbed: Vec::new(),
            links_changed: 0,
        };
        let deadline = turn.deadline;
        turn.answer.begin(Box::new(move || Instant::now() >= deadline));
        let (mut notes, mut left) = (Vec::new(), Vec::new());
        let exit = match &mut self.sandbox {
            None => Exit::Lost("the sandbox ended early".to_owned()),
            Some(sandbox) => {
                start(sandbox, words, &self.answers).map_err(CaptureError::io("start the script"))?;
                let _urgent = process::Urgent::begin();
                let exit = self.attend(&mut turn, &mut left)?;
                notes = self
                    .sandbox
                    .as_mut()
                    .map(|sandbox| std::mem::take(&mut sandbox.notes))
                    .unwrap_or_default();
                notes.dedup();
                exit
            }
        };
        if last || !matches!(exit, Exit::Code(_) | Exit::Signal(_)) {
            // Everything inside dies here, so the streams must end.
            self.sandbox = None;
            self.drain();
        } else {
            // It continues beside the next program.
            left.clear();
            self.take_what_is_there();
        }
        let (stdout, stderr) =
            (std::mem::take(&mut self.stdout.bytes), std::mem::take(&mut self.stderr.bytes));
        Ok(Run { exit, calls: turn.calls, stubbed: turn.stubbed, stdout, stderr, notes, left })
    }

    /// A file that a program inside has written.
    pub(super) fn open(&mut self, path: &std::path::Path) -> io::Result<std::fs::File> {
        self.sandbox.as_mut().ok_or(io::ErrorKind::NotFound)?.open(path)
    }

    /// Serves calls until the program ends, its time is up, or it uses too much; `left` takes what runs on
    /// after its end.
    fn attend(&mut self, turn: &mut Turn<'_>, left: &mut Vec<String>) -> Result<Exit, CaptureError> {
        let mut look_at = Instant::now() + LOOK_EVERY;
        let mut files = Vec::new();
        loop {
            let now = Instant::now();
            let Some(sandbox) = &mut self.sandbox else {
                return Ok(Exit::Lost("the sandbox ended early".to_owned()));
            };
            if now >= turn.deadline {
                let running = running(sandbox);
                let stopped = running.iter().filter(|one| one.is_stopped).map(words).collect();
                let running = running.iter().map(words).collect();
                return Ok(Exit::TimedOut { after: self.limits.timeout, running, stopped });
            }
            if now >= look_at {
                let usage =
                    process::usage_of_descendants(sandbox.pid(), self.limits.max_processes + OWN_PROCESSES);
                if usage.processes > self.limits.max_processes + OWN_PROCESSES {
                    return Ok(Exit::Crowded { limit: self.limits.max_processes });
                }
                if usage.memory > MAX_MEMORY {
                    return Ok(Exit::Exhausted { limit: MAX_MEMORY });
                }
                if let Some(shortage) = sandbox.ran_out_of_memory() {
                    return Ok(out_of_memory(shortage));
                }
                look_at = Instant::now() + LOOK_EVERY;
            }
            let until = turn.deadline.min(look_at);
            let event = self.wait(until).map_err(CaptureError::io("wait for the script"))?;
            let Some(sandbox) = &mut self.sandbox else { continue };
            match event {
                Event::Other => {}
                Event::Call => serve(sandbox, turn, &self.limits, &mut self.kept),
                Event::Report => {
                    let exit = match sandbox.report() {
                        Report::Note(note) => {
                            sandbox.notes.push(note);
                            continue;
                        }
                        Report::File(path, content) => {
                            files.push((path, content));
                            continue;
                        }
                        Report::OthersRun => {
                            // A server that is not run would have done nothing more.
                            let is_stub = |one: &&ProcessInfo| {
                                let program = one.words.first().and_then(|word| word.rsplit('/').next());
                                program.is_some_and(|name| self.limits.stubs.iter().any(|stub| stub == name))
                            };
                            *left = running(sandbox).iter().filter(|one| !is_stub(one)).map(words).collect();
                            continue;
                        }
                        Report::Exited(code) => Exit::Code(code),
                        Report::Signalled(signal) => Exit::Signal(signal),
                        Report::Failed(reason) => Exit::Lost(reason),
                        Report::Gone => Exit::Lost("the sandbox ended early".to_owned()),
                    };
                    turn.answer.files_written(&files);
                    // The kernel may have refused it more before we looked.
                    if left.len() > self.limits.max_processes {
                        return Ok(Exit::Crowded { limit: self.limits.max_processes });
                    }
                    return Ok(sandbox.ran_out_of_memory().map_or(exit, out_of_memory));
                }
            }
        }
    }

    /// Waits for the next thing to happen, and takes in what was printed.
    fn wait(&mut self, until: Instant) -> io::Result<Event> {
        let Some(sandbox) = &self.sandbox else { return Ok(Event::Other) };
        if sandbox.has_report() {
            return Ok(Event::Report);
        }
        let mut fds = vec![sandbox.listener.as_fd(), sandbox.control()];
        let out_at = self.stdout.pipe.as_ref().map(|pipe| {
            fds.push(pipe.as_fd());
            fds.len() - 1
        });
        let err_at = self.stderr.pipe.as_ref().map(|pipe| {
            fds.push(pipe.as_fd());
            fds.len() - 1
        });
        let ready = poll::readable(&fds, until.saturating_duration_since(Instant::now()))?;
        let is_ready = |at: Option<usize>| at.and_then(|at| ready.get(at)).copied() == Some(true);
        if is_ready(out_at) {
            self.stdout.take_in();
        }
        if is_ready(err_at) {
            self.stderr.take_in();
        }
        Ok(match (is_ready(Some(0)), is_ready(Some(1))) {
            (true, _) => Event::Call,
            (_, true) => Event::Report,
            _ => Event::Other,
        })
    }

    /// Takes in what was still on its way when everything inside had ended.
    fn drain(&mut self) {
        let deadline = Instant::now() + DRAIN_LIMIT;
        while (self.stdout.pipe.is_some() || self.stderr.pipe.is_some()) && Instant::now() < deadline {
            if !self.take_in_ready(deadline.saturating_duration_since(Instant::now())) {
                return;
            }
        }
    }

    /// Takes in what was printed so far, without waiting.
    fn take_what_is_there(&mut self) {
        for _ in 0..MAX_PIECES {
            if !self.take_in_ready(Duration::ZERO) {
                return;
            }
        }
    }

    /// Takes in a piece of each stream that has one; false: none has.
    fn take_in_ready(&mut self, limit: Duration) -> bool {
        let pipes = [self.stdout.pipe.as_ref().map(AsFd::as_fd), self.stderr.pipe.as_ref().map(AsFd::as_fd)];
        let open: Vec<BorrowedFd<'_>> = pipes.iter().flatten().copied().collect();
        let ready = poll::readable(&open, limit).unwrap_or_default();
        let mut ready = ready.into_iter();
        let [out, err] = pipes.map(|pipe| pipe.is_some() && ready.next() == Some(true));
        if out {
            self.stdout.take_in();
        }
        if err {
            self.stderr.take_in();
        }
        out || err
    }
}

/// Starts a program with what it reads from its standard input.
fn start(sandbox: &mut Sandbox, words: &[OsString], answers: &[u8]) -> io::Result<()> {
    if answers.is_empty() {
        return sandbox.run(words);
    }
    if answers.len() > MAX_ANSWERS {
        return Err(io::Error::other(format!("the answers are more than {MAX_ANSWERS} bytes")));
    }
    // A pipe holds as much without a reader, however many the user has.
    let (reader, mut writer) = io::pipe()?;
    writer.write_all(answers)?;
    sandbox.run_reading(words, reader.as_fd())
}

/// How a run ended of which the kernel has killed a process for want of memory.
fn out_of_memory(shortage: Shortage) -> Exit {
    match shortage {
        Shortage::Own => Exit::Exhausted { limit: MAX_MEMORY },
        Shortage::Outer => Exit::Lost(format!(
            "the kernel ended a process of the script: the memory that this computer, or the control group \
            of tidegate itself, has is less than the {} MiB that a script may use, and ran out",
            MAX_MEMORY >> 20
        )),
    }
}

/// Answers one call. A tool that goes away or speaks nonsense costs nothing but its own call.
fn serve(sandbox: &mut Sandbox, turn: &mut Turn<'_>, limits: &Limits, kept: &mut usize) {
    let Ok((stream, _)) = sandbox.listener.accept() else {
        return;
    };
    if stream.set_nonblocking(false).and_then(|()| stream.set_nodelay(true)).is_err() {
        return;
    }
    // However slowly it speaks: by then it is over, and the run's own deadline holds all the same.
    let timed = Until::new(stream, turn.deadline.min(Instant::now() + CALL_LIMIT));
    let mut timed = BufReader::new(timed);
    let Ok(request) = wire::read_request(&mut timed) else {
        return;
    };
    turn.answer.files_written(&request.files);
    if limits.stubs.contains(&request.call.tool) {
        let _ = wire::write_reply(timed.get_mut(), &stubbed(turn, limits, request, kept));
        return;
    }
    let within = turn.calls.len() < limits.max_calls && *kept <= MAX_KEPT;
    let (reply, answered) = answer(turn, limits, &request, *kept);
    change_links(sandbox, turn, &reply);
    let _ = wire::write_reply(timed.get_mut(), &reply);
    if within {
        *kept += request.size() + reply.stderr.len();
        record(turn, request, &reply, answered);
        // The line is kept with each call that it issued.
        let line = turn.calls.last().and_then(|call| call.source.as_ref());
        *kept += line.map_or(0, |line| line.text.len());
    }
}

/// The reply to a call of a program that is not run.
fn stubbed(turn: &mut Turn<'_>, limits: &Limits, request: Request, kept: &mut usize) -> Reply {
    let size = request.size();
    let Call { tool, args, netns, .. } = request.call;
    let call = StubbedCall { tool, args, netns };
    let reply = Reply { waits: call.lasts(), ..Reply::ok() };
    if turn.stubbed.len() < limits.max_calls && *kept <= MAX_KEPT {
        *kept += size;
        turn.stubbed.push(call);
    }
    reply
}

/// Has the sandbox's first process change the kernel's links as the model's are; beyond the bounds they are
/// the model's alone.
fn change_links(sandbox: &mut Sandbox, turn: &mut Turn<'_>, reply: &Reply) {
    let links = reply.effects.iter().filter_map(|effect| match effect {
        Effect::Link(change) => Some(effect::request(change.clone())),
        Effect::File(_) => None,
    });
    for link in links {
        if turn.links_changed >= MAX_LINK_CHANGES || Instant::now() >= turn.deadline {
            return;
        }
        turn.links_changed += 1;
        // A kernel that cannot do it leaves it to the model; a kernel that does not answer is not asked
        // again.
        if sandbox.change_link(&link).is_err_and(|error| error.kind() == io::ErrorKind::TimedOut) {
            turn.links_changed = MAX_LINK_CHANGES;
        }
    }
}

/// The reply, and whether the model gave it.
fn answer(turn: &mut Turn<'_>, limits: &Limits, request: &Request, kept: usize) -> (Reply, bool) {
    if turn.calls.len() >= limits.max_calls {
        return (
            Reply::error(1, format!("tidegate: more than {} calls in one run\n", limits.max_calls)),
            false,
        );
    }
    if kept > MAX_KEPT {
        return (Reply::error(1, format!("tidegate: calls of more than {} MiB\n", MAX_KEPT >> 20)), false);
    }
    if let Some(reason) = &request.refused {
        return (Reply::error(1, reason.clone()), false);
    }
    (turn.answer.answer(&request.call), true)
}

/// Notes the call, with the line that issued it.
fn record(turn: &mut Turn<'_>, request: Request, reply: &Reply, answered: bool) {
    let stderr = String::from_utf8_lossy(&reply.stderr).into_owned();
    turn.finder.learn(&request.issuer, &request.call.cwd);
    let at_fault = reply.blamed(&request.call.args);
    let found = turn.finder.find(&request.call.tool, &request.call.args, at_fault);
    let (source, words) = found.map_or((None, Vec::new()), |(source, words)| (Some(source), words));
    let input = super::input::outside(&request.call);
    turn.calls.push(Recorded {
        call: request.call,
        input,
        code: reply.code,
        stderr,
        silenced: request.silenced,
        source,
        words,
        at_fault,
        answered,
    });
}

/// What runs inside, without the sandbox's own stage.
fn running(sandbox: &Sandbox) -> Vec<ProcessInfo> {
    process::descendants(sandbox.pid())
        .into_iter()
        .skip(1)
        .filter(|running| !running.words.is_empty())
        .collect()
}

/// A process's words, joined.
fn words(running: &ProcessInfo) -> String {
    running.words.join(" ")
}

impl<R: Read + AsFd> Stream<R> {
    /// `to`: where it belongs, should it be passed through.
    fn new(pipe: R, options: &CaptureOptions, to: Side) -> Self {
        let CaptureOptions { output, max_output: limit, print, .. } = *options;
        let echo = Echo::new(output == Output::ToErrors || to == Side::Errors, print);
        Self { pipe: Some(pipe), bytes: Vec::new(), limit, output, passed: 0, echo }
    }

    fn take_in(&mut self) {
        let Some(pipe) = &mut self.pipe else { return };
        let mut buffer = [0; 8192];
        match pipe.read(&mut buffer) {
            Ok(0) => {
                self.pipe = None;
                self.echo.finish();
            }
            Ok(length) => {
                let room = self.limit.saturating_sub(self.bytes.len());
                self.bytes.extend(&buffer[..length.min(room)]);
                // The reader may be gone; the run continues.
                if self.output != Output::Collect && self.passed <= MAX_PASSED {
                    self.passed += length;
                    self.echo.push(&buffer[..length]);
                    if self.passed > MAX_PASSED {
                        self.echo.push(b"\ntidegate: more than 64 MiB of output; the rest is left out\n");
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.pipe = None,
        }
    }
}
