//! Everything this program prints, and the files it writes.
//!
//! What is printed may hold text that scripts, files, devices and servers chose. It passes through `tidegate_text` here, whatever the
//! command: control characters and invisible ones become `\x1b`, `\u{202e}`. In this crate `println!`, `eprintln!`, `print!` and
//! `eprint!` are the macros of this file, so that none can be forgotten; `cargo xtask walls` refuses `io::stdout()` and `fs::write`
//! elsewhere.
//!
//! A standard output, or a file of results, that does not take what is written makes the program end with
//! [`WRITE_FAILED`], see [`finish`].

use anyhow::Context;
use std::fmt::{Arguments, Display};
use std::io::{self, IsTerminal, Stderr, Stdout, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use tidegate_sys::output_file::OutputFile;

/// The exit code where standard output or a file did not take what was written (a full disk): `EX_IOERR` of BSD's
/// sysexits, which no verdict of tidegate uses.
pub const WRITE_FAILED: u8 = 74;

/// A write that failed.
enum Failure {
    /// The first error of standard output, of which nobody has heard yet.
    Unsaid(io::Error),
    /// The command says it.
    Said,
}

/// The first write that failed, other than to a reader that has gone.
static FAILED: Mutex<Option<Failure>> = Mutex::new(None);

/// Prints foreign text to standard output.
macro_rules! print {
    ($($words:tt)*) => { $crate::output::show(format_args!($($words)*)) };
}

/// Prints foreign text to standard output, and a newline.
macro_rules! println {
    () => { $crate::output::text("\n") };
    ($($words:tt)*) => { $crate::output::show(format_args!("{}\n", format_args!($($words)*))) };
}

/// Prints foreign text to standard error.
macro_rules! eprint {
    ($($words:tt)*) => { $crate::output::note(format_args!($($words)*)) };
}

/// Prints foreign text to standard error, and a newline.
macro_rules! eprintln {
    () => { $crate::output::note(format_args!("\n")) };
    ($($words:tt)*) => { $crate::output::note(format_args!("{}\n", format_args!($($words)*))) };
}

/// Prints text, or a document in JSON, to standard output. A document stays valid.
pub fn text(text: &str) {
    bytes(visible(text).as_bytes());
}

/// What begins like a document in JSON is escaped as JSON is. A text that begins so is as safe, and only its escapes look different.
fn visible(text: &str) -> String {
    let is_json = text.starts_with(['{', '[']);
    if is_json { tidegate_text::json(text).into() } else { tidegate_text::lines(text).into() }
}

/// `print!`.
pub fn show(words: Arguments<'_>) {
    text(&words.to_string());
}

/// `eprint!`.
pub fn note(words: Arguments<'_>) {
    let shown = String::from(tidegate_text::lines(&words.to_string()));
    // There is nowhere left to say that standard error takes nothing.
    let _ = io::stderr().lock().write_all(shown.as_bytes());
}

/// Prints bytes to standard output as they are: captures for other programs, and what is safe already.
pub(crate) fn bytes(bytes: &[u8]) {
    if let Err(error) = raw(bytes) {
        failed(error);
    }
}

/// Prints bytes as they are, for those who end when nobody reads on.
///
/// # Errors
/// Standard output does not take them; a closed pipe is an error here too.
fn raw(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Prints text as [`text`] does, for those who end when nobody reads on, and say themselves what went wrong.
///
/// # Errors
/// See [`raw`].
pub(crate) fn next(text: &str) -> io::Result<()> {
    drawn(visible(text).as_bytes())
}

/// Prints bytes as they are, for those who end when nobody reads on, and say themselves what went wrong.
///
/// # Errors
/// See [`raw`].
pub(crate) fn drawn(bytes: &[u8]) -> io::Result<()> {
    raw(bytes).map_err(|error| {
        note_failure(&error);
        io::Error::new(error.kind(), format!("standard output did not take everything: {error}"))
    })
}

/// Draws on the terminal, with the program's own control sequences; whatever is foreign in it went through `tidegate_text`.
pub(crate) fn draw(drawing: &str) {
    let mut out = io::stderr().lock();
    // Whoever closed the terminal sees nothing; the work goes on.
    let _ = out.write_all(drawing.as_bytes()).and_then(|()| out.flush());
}

/// Standard output as a descriptor: is it a terminal, and how large?
pub(crate) fn stdout() -> Stdout {
    io::stdout()
}

/// Standard error as a descriptor.
pub(crate) fn stderr() -> Stderr {
    io::stderr()
}

/// Passes a script's output on as it comes.
pub(crate) fn pass_on(to_errors: bool, piece: &str) {
    match to_errors {
        true => draw(piece),
        false => bytes(piece.as_bytes()),
    }
}

/// Writes a whole file, or nothing: `-` and `/dev/stdout` are standard output. See [`tidegate_sys::output_file`].
///
/// # Errors
/// It cannot be written, or somebody else's symbolic link is on its path; the error names the path.
pub(crate) fn file(path: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let content = content.as_ref();
    if is_stdout(path) {
        document(content);
        return Ok(());
    }
    let mut file = begin(path)?;
    file.write_all(content).and_then(|()| file.commit()).with_context(|| cannot_write(path))
}

/// A file of results that is being written: see [`OutputFile`]. Its writer says what went wrong; the exit code is
/// [`WRITE_FAILED`].
#[derive(Debug)]
pub(crate) struct ResultFile(OutputFile);

impl ResultFile {
    /// See [`OutputFile::commit`].
    pub(crate) fn commit(self) -> io::Result<()> {
        self.0.commit().inspect_err(note_failure)
    }

    /// See [`OutputFile::make_private`].
    pub(crate) fn make_private(&self) -> io::Result<()> {
        self.0.make_private()
    }
}

impl Write for ResultFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).inspect_err(note_failure)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().inspect_err(note_failure)
    }
}

/// Begins a file that is there whole once it is committed.
///
/// # Errors
/// See [`file`].
pub(crate) fn begin(path: &Path) -> anyhow::Result<ResultFile> {
    OutputFile::create(device(path)).map(ResultFile).with_context(|| cannot_write(path))
}

/// Begins a file that others read while it grows.
///
/// # Errors
/// See [`file`].
pub(crate) fn begin_growing(path: &Path) -> anyhow::Result<ResultFile> {
    OutputFile::create_growing(device(path)).map(ResultFile).with_context(|| cannot_write(path))
}

/// How an error about a file that is written begins.
pub(crate) fn cannot_write(path: &Path) -> impl Display + Send + Sync + 'static + use<> {
    format!("cannot write {}", path.display())
}

/// True for the names of standard output.
pub(crate) fn is_stdout(path: &Path) -> bool {
    ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"].iter().any(|name| path == Path::new(name))
}

fn device(path: &Path) -> &Path {
    if is_stdout(path) { Path::new("/dev/stdout") } else { path }
}

/// A file's content to standard output; on a terminal it is only looked at.
fn document(content: &[u8]) {
    match std::str::from_utf8(content) {
        Ok(shown) if io::stdout().is_terminal() => text(shown),
        _ => bytes(content),
    }
}

/// Notes that standard output did not take something, which [`finish`] says.
pub fn failed(error: io::Error) {
    note_first(error.kind(), || Failure::Unsaid(error));
}

/// Notes that something was not written, of which the command itself says why.
fn note_failure(error: &io::Error) {
    note_first(error.kind(), || Failure::Said);
}

fn note_first(kind: io::ErrorKind, failure: impl FnOnce() -> Failure) {
    // The reader may have had enough: a closed pipe is no error. What was interrupted is tried again.
    if !matches!(kind, io::ErrorKind::BrokenPipe | io::ErrorKind::Interrupted) {
        // A thread that panicked while it held this had nothing half done.
        FAILED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert_with(failure);
    }
}

/// The program's end: with the command's exit code, or with [`WRITE_FAILED`] where standard output or a file did not
/// take all of it.
pub fn finish(code: ExitCode) -> ExitCode {
    if let Err(error) = io::stdout().flush() {
        failed(error);
    }
    match FAILED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take() {
        Some(Failure::Unsaid(error)) => {
            eprintln!("tidegate: standard output did not take everything: {error}");
            WRITE_FAILED.into()
        }
        Some(Failure::Said) => WRITE_FAILED.into(),
        None => code,
    }
}
