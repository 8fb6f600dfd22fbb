//! The parent's loop: answers calls one at a time, takes in what the script prints, minds the time.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixListener;
use std::process::{ChildStderr, ChildStdout};
use std::time::{Duration, Instant};

use tidegate_os::poll;

use super::lines::Finder;
use crate::output::Echo;

use super::wire;
use super::{Answer, Output, Recorded, Reply};

/// How long a face may take to speak its request: it has nothing else to do.
const FACE_LIMIT: Duration = Duration::from_secs(5);
/// How long output may still come when everybody who could write is gone.
const DRAIN_LIMIT: Duration = Duration::from_secs(1);
/// The most pieces of output, of up to 8 KiB, that are taken in after a run that another follows.
const MAX_PIECES: usize = 4096;

/// What is taken in while a script runs.
pub(super) struct Intake<'a> {
    pub(super) answer: &'a mut dyn Answer,
    pub(super) finder: Option<Finder>,
    pub(super) calls: Vec<Recorded>,
    pub(super) max_calls: usize,
    pub(super) stdout: Stream<ChildStdout>,
    pub(super) stderr: Stream<ChildStderr>,
}

/// One of a script's two output streams.
pub(super) struct Stream<R> {
    pipe: Option<R>,
    pub(super) bytes: Vec<u8>,
    limit: usize,
    output: Output,
    /// Where it is passed on to.
    echo: Echo,
}

/// Which of a script's streams it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Output,
    Errors,
}

/// What made [`Intake::step`] return.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Event {
    /// Something was taken in.
    Served,
    /// The descriptor to watch is ready.
    Watched,
    /// The time is up.
    TimeUp,
}

impl<R: Read + AsFd> Stream<R> {
    /// `to`: where it belongs, should it be passed through.
    pub(super) fn new(pipe: R, limit: usize, output: Output, to: Side) -> Self {
        let echo = Echo::new(output == Output::ToErrors || to == Side::Errors);
        Self { pipe: Some(pipe), bytes: Vec::new(), limit, output, echo }
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
                // Whoever reads us may have gone; the run goes on.
                if self.output != Output::Collect {
                    self.echo.push(&buffer[..length]);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => self.pipe = None,
        }
    }
}

impl Intake<'_> {
    /// Waits for the next thing to happen until `deadline`, and does it.
    pub(super) fn step(
        &mut self,
        listener: &UnixListener,
        watched: Option<BorrowedFd<'_>>,
        deadline: Instant,
    ) -> io::Result<Event> {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(Event::TimeUp);
        }
        let mut fds = vec![listener.as_fd()];
        fds.extend(watched);
        let out_at = self.stdout.pipe.as_ref().map(|pipe| {
            fds.push(pipe.as_fd());
            fds.len() - 1
        });
        let err_at = self.stderr.pipe.as_ref().map(|pipe| {
            fds.push(pipe.as_fd());
            fds.len() - 1
        });
        let ready = poll::readable(&fds, left)?;
        let is_ready = |at: Option<usize>| at.and_then(|at| ready.get(at)).copied() == Some(true);
        if is_ready(out_at) {
            self.stdout.take_in();
        }
        if is_ready(err_at) {
            self.stderr.take_in();
        }
        if is_ready(Some(0)) {
            self.serve(listener);
            return Ok(Event::Served);
        }
        if watched.is_some() && is_ready(Some(1)) {
            return Ok(Event::Watched);
        }
        Ok(Event::Served)
    }

    /// True while the script's streams are open.
    pub(super) fn open(&self) -> bool {
        self.stdout.pipe.is_some() || self.stderr.pipe.is_some()
    }

    /// Takes in what was still on its way when the script ended.
    pub(super) fn drain(&mut self, listener: &UnixListener) {
        let deadline = Instant::now() + DRAIN_LIMIT;
        while self.open() && !matches!(self.step(listener, None, deadline), Ok(Event::TimeUp) | Err(_)) {}
    }

    /// Takes in what the script has printed so far, without waiting.
    pub(super) fn take_what_is_there(&mut self) {
        for _ in 0..MAX_PIECES {
            let ready = |pipe: Option<BorrowedFd<'_>>| {
                pipe.is_some_and(|pipe| poll::readable(&[pipe], Duration::ZERO).is_ok_and(|ready| ready == [true]))
            };
            let out = ready(self.stdout.pipe.as_ref().map(AsFd::as_fd));
            let err = ready(self.stderr.pipe.as_ref().map(AsFd::as_fd));
            if out {
                self.stdout.take_in();
            }
            if err {
                self.stderr.take_in();
            }
            if !out && !err {
                return;
            }
        }
    }

    /// Answers one call. A face that goes away or speaks nonsense costs nothing but its own call.
    fn serve(&mut self, listener: &UnixListener) {
        let Ok((mut stream, _)) = listener.accept() else {
            return;
        };
        let _ = stream.set_nonblocking(false);
        let _ = stream.set_read_timeout(Some(FACE_LIMIT));
        let _ = stream.set_write_timeout(Some(FACE_LIMIT));
        let Ok(request) = wire::read_request(&mut stream) else {
            return;
        };
        self.answer.told(&request.files);
        let mut answered = false;
        let reply = if self.calls.len() >= self.max_calls {
            Reply::error(1, format!("tidegate: more than {} calls in one run\n", self.max_calls))
        } else if let Some(reason) = request.refused {
            Reply::error(1, reason)
        } else {
            answered = true;
            self.answer.answer(&request.call)
        };
        let _ = wire::write_reply(&mut stream, &reply);
        if self.calls.len() < self.max_calls {
            let stderr = String::from_utf8_lossy(&reply.stderr).into_owned();
            let found = self.finder.as_mut().and_then(|finder| {
                finder.learn(&request.issuer, &request.call.cwd);
                finder.find(&request.call.tool, &request.call.args, &stderr)
            });
            let (source, words) = found.map_or((None, Vec::new()), |(source, words)| (Some(source), words));
            self.calls.push(Recorded {
                call: request.call,
                code: reply.code,
                stderr,
                silenced: request.silenced,
                source,
                words,
                answered,
            });
        }
    }
}
