//! A controller in another language: a program in the sandbox that reads a line and answers one. Its time is
//! the run's; the clock only ends a program that hangs.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::time::{Duration, Instant};
use tidegate_capture::ConfinedProgram;
use tidegate_control::{ControlEvent, PerDirection, RateController, RateDecision, RateLimits};
use tidegate_gym::{MAX_ANSWER, ProgramAnswer, ProgramCall};
use tidegate_packet::{Nanos, Time};
use tidegate_text::line as visible_line;

/// How long an answer may take by the clock; the first is waited for until the program has started.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
const FIRST_WITHIN: Duration = Duration::from_secs(10);
/// The most that a program may write to its standard error, bytes.
const MAX_ERRORS: usize = 1 << 20;
/// Of that, the end is kept.
const KEPT_ERRORS: usize = 2000;
/// Of a line that is quoted, so many characters.
const QUOTED: usize = 120;
/// How long after the end of its output a program's exit code is waited for.
const EXIT_WITHIN: Duration = Duration::from_millis(500);

/// A program that controls the rates.
pub(super) struct ProgramController {
    name: String,
    limits: RateLimits,
    program: ConfinedProgram,
    /// What it printed and was not read yet.
    printed: Vec<u8>,
    errors: Vec<u8>,
    error_bytes: usize,
    call: ProgramCall,
    began: Time,
    rates: PerDirection<Option<u64>>,
    next: Option<Time>,
    failure: Option<ProgramFailure>,
}

/// Why a program was stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProgramFailure {
    /// In words, for a terminal.
    pub(super) why: String,
    /// The clock ended it.
    pub(super) hung: bool,
}

impl ProgramController {
    /// Starts it.
    ///
    /// # Errors
    /// It cannot be started, or there is no sandbox for it.
    pub(super) fn start(path: &str, limits: RateLimits) -> Result<ProgramController, String> {
        let found = Path::new(path).canonicalize().map_err(|error| format!("{path}: {error}"))?;
        let program = ConfinedProgram::start(&found).map_err(|error| format!("{path}: {error}"))?;
        Ok(ProgramController {
            name: path.to_owned(),
            limits,
            program,
            printed: Vec::new(),
            errors: Vec::new(),
            error_bytes: 0,
            call: ProgramCall::default(),
            began: Time(0),
            rates: PerDirection::default(),
            next: None,
            failure: None,
        })
    }

    /// Why it was stopped, if it was.
    pub(super) fn failure(&self) -> Option<&ProgramFailure> {
        self.failure.as_ref()
    }

    /// Sends a line and carries out the answer.
    fn ask(&mut self, now: Time, line: &str, limit: Duration, decisions: &mut Vec<RateDecision>) {
        match self.exchange(line, limit).and_then(|answer| {
            let read = ProgramAnswer::read(&answer).map_err(|why| {
                format!(
                    "at {:.2} s it answered {}: {why}",
                    now.since(self.began).as_secs_f64(),
                    quoted(&answer)
                )
            });
            read.map_err(|why| ProgramFailure { why, hung: false })
        }) {
            Ok(answer) => {
                self.next = answer.next.map(|next| self.began + next).filter(|next| *next > now);
                for decision in &answer.decisions {
                    self.rates[decision.direction] = Some(decision.bits_per_second);
                }
                decisions.extend(answer.decisions);
            }
            Err(mut failure) => {
                if let Some(last) = last_line(&self.errors) {
                    failure.why.push_str(&format!("; its last words: {last}"));
                }
                self.failure = Some(failure);
                self.next = None;
            }
        }
    }

    fn exchange(&mut self, line: &str, limit: Duration) -> Result<String, ProgramFailure> {
        let until = Instant::now() + limit;
        let failed = |why: String| ProgramFailure { why, hung: false };
        let hung = || ProgramFailure {
            why: format!("no answer within {} s of the clock", limit.as_secs()),
            hung: true,
        };
        // What it printed since its last answer, it was not asked for.
        let early = tidegate_sys::poll::readable(&[self.program.stdout.as_fd()], Duration::ZERO);
        if early.is_ok_and(|ready| ready == [true])
            && self.program.stdout.read(&mut [0_u8; 1]).is_ok_and(|count| count > 0)
        {
            return Err(failed("it answered more than one line, or before it was asked".to_owned()));
        }
        let set = self.program.stdin.set_write_timeout(Some(limit));
        match set.and_then(|()| self.program.stdin.write_all(line.as_bytes())) {
            Ok(()) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(hung());
            }
            // It does not read any more: how it ended says why.
            Err(_) => return Err(failed(self.end())),
        }
        loop {
            if let Some(end) = self.printed.iter().position(|byte| *byte == b'\n') {
                let answer: Vec<u8> = self.printed.drain(..=end).collect();
                if !self.printed.is_empty() {
                    return Err(failed("it answered more than one line".to_owned()));
                }
                return Ok(String::from_utf8_lossy(&answer[..end]).into_owned());
            }
            if self.printed.len() > MAX_ANSWER {
                return Err(failed(format!(
                    "it answered more than {MAX_ANSWER} bytes without an end of line"
                )));
            }
            let Some(left) = until.checked_duration_since(Instant::now()) else { return Err(hung()) };
            let pipes = [self.program.stdout.as_fd(), self.program.stderr.as_fd(), self.program.ends()];
            let ready =
                tidegate_sys::poll::readable(&pipes, left).map_err(|error| failed(error.to_string()))?;
            let mut piece = [0_u8; MAX_ANSWER];
            if ready[1] {
                let count = self.program.stderr.read(&mut piece).unwrap_or(0);
                self.take_errors(&piece[..count]);
                if self.error_bytes > MAX_ERRORS {
                    return Err(failed(format!(
                        "it wrote more than {MAX_ERRORS} bytes to its standard error"
                    )));
                }
            }
            if ready[0] {
                match self.program.stdout.read(&mut piece) {
                    Ok(count) if count > 0 => self.printed.extend(&piece[..count]),
                    _ => return Err(failed(self.end())),
                }
            } else if ready[2] && !ready[1] {
                return Err(failed(self.end()));
            }
        }
    }

    /// How it ended, with what it wrote to its standard error until then.
    fn end(&mut self) -> String {
        let ended = self.program.ended(EXIT_WITHIN);
        let mut piece = [0_u8; MAX_ANSWER];
        while self.error_bytes <= MAX_ERRORS
            && tidegate_sys::poll::readable(&[self.program.stderr.as_fd()], Duration::ZERO)
                .is_ok_and(|ready| ready == [true])
        {
            match self.program.stderr.read(&mut piece) {
                Ok(count) if count > 0 => self.take_errors(&piece[..count]),
                _ => break,
            }
        }
        ended.unwrap_or_else(|| "it closed its output".to_owned())
    }

    fn take_errors(&mut self, bytes: &[u8]) {
        self.error_bytes += bytes.len();
        self.errors.extend(bytes);
        let more = self.errors.len().saturating_sub(KEPT_ERRORS);
        self.errors.drain(..more);
    }
}

/// Text of a program's for a terminal: on one line, shortened, without control sequences.
fn quoted(text: &str) -> String {
    let short: String = text.chars().take(QUOTED).collect();
    let more = if short.len() < text.len() { "…" } else { "" };
    format!("`{}{more}`", visible_line(&short))
}

fn last_line(errors: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(errors);
    text.lines().rev().find(|line| !line.trim().is_empty()).map(quoted)
}

impl RateController for ProgramController {
    fn name(&self) -> &str {
        &self.name
    }

    fn on_event(&mut self, now: Time, event: &ControlEvent, decisions: &mut Vec<RateDecision>) {
        if self.failure.is_some() {
            return;
        }
        if *event == ControlEvent::Start {
            self.began = now;
            let line = ProgramCall::start(&self.limits);
            self.ask(now, &line, FIRST_WITHIN, decisions);
        } else if self.call.take(event, self.began) {
            let at: Nanos = now.since(self.began);
            let line = self.call.line(at, self.rates);
            self.ask(now, &line, ANSWER_WITHIN, decisions);
        }
    }

    fn due(&self) -> Option<Time> {
        self.next
    }
}
