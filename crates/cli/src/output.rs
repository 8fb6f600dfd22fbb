//! Everything this program prints, and the files it writes.
//!
//! What is printed may hold text that scripts, files, devices and servers chose. It passes through
//! `tidegate_text` here, whatever the command: control characters and invisible ones become `\x1b`,
//! `\u{202e}`. In this crate `println!`, `eprintln!`, `print!` and `eprint!` are the macros of this file, so
//! that none can be forgotten; `cargo xtask walls` refuses `io::stdout()` and `fs::write` elsewhere.
//!
//! Every file of results begins in [`begin`] or [`begin_growing`] ([`file`] uses the first): there, and once
//! more when it is put in its place, it is refused if it would replace a file that the command has read, or
//! that it has just written.
//!
//! A standard output, or a file of results, that does not take what is written makes the program end with
//! [`CliExit::NotWritten`], see [`finish`].

use crate::exit::CliExit;
use crate::wrapping::wrapped;
use anyhow::Context;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeSet;
use std::fmt::{Arguments, Display};
use std::io::{self, IsTerminal, Stderr, Stdout, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use tidegate_sys::input_file;
use tidegate_sys::output_file::{self, OutputFile};

/// A write that failed.
enum Failure {
    /// The first error of standard output, of which no one has heard yet.
    Unsaid(io::Error),
    /// The command reports it itself.
    Said,
}

/// The regular files that this command has written: a second result in the same place would replace the
/// first.
static WRITTEN: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// The first write that failed, other than to a reader that has gone.
static FAILED: Mutex<Option<Failure>> = Mutex::new(None);

/// Whether `--quiet` was given.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Whether `-o -` was given: then standard output is for that file, and nothing else is printed there.
static IS_FILE: AtomicBool = AtomicBool::new(false);

/// Prints nothing but the file `-` to standard output from now on.
pub(crate) fn set_stdout_is_file() {
    IS_FILE.store(true, Ordering::Relaxed);
}

/// Shows no progress from now on.
pub fn set_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

/// Results fold to the terminal from now on.
pub(crate) fn fold_results() {
    tidegate_report::set_columns(columns());
}

/// The value of `--color`: whether results have colours.
static COLOR: Mutex<clap::ColorChoice> = Mutex::new(clap::ColorChoice::Auto);

/// Sets whether results have colours, by `--color`.
pub fn set_color(choice: clap::ColorChoice) {
    *COLOR.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = choice;
}

/// Whether standard output takes colours: by `--color`, else on a terminal without `NO_COLOR`.
pub(crate) fn has_color() -> bool {
    match *COLOR.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        clap::ColorChoice::Always => true,
        clap::ColorChoice::Never => false,
        clap::ColorChoice::Auto => may_color() && io::stdout().is_terminal(),
    }
}

/// Whether a terminal is given colours without `--color always`.
pub(crate) fn may_color() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && !is_dumb()
}

/// A terminal that only prints: no colours, no motion of the cursor.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|name| name == "dumb")
}

/// Whether `--quiet` hides progress.
pub(crate) fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// The fewest columns of a terminal in which something is drawn over again, and the most that are used.
const DRAWN_COLUMNS: (usize, usize) = (20, 300);

/// Columns and rows of a terminal on which something may be drawn over again, one column less than it has, at
/// which some begin a new line; `None`: it is none, it cannot move its cursor, or it is too narrow.
pub(crate) fn canvas(terminal: &(impl AsFd + IsTerminal)) -> Option<(usize, usize)> {
    if !terminal.is_terminal() || is_dumb() {
        return None;
    }
    let (columns, rows) = tidegate_sys::terminal::size(terminal).unwrap_or((80, 24));
    let (fewest, most) = DRAWN_COLUMNS;
    (columns > fewest).then(|| ((columns - 1).min(most), rows))
}

/// The columns in which progress is drawn on standard error; `None`: none is shown.
pub(crate) fn progress_columns() -> Option<usize> {
    let (columns, _) = canvas(&io::stderr()).filter(|_| !is_quiet())?;
    Some(columns)
}

/// Draws one line of progress over the last; nothing where none is shown.
pub(crate) fn progress_line(words: &str) {
    if let Some(columns) = progress_columns() {
        let shown: String = String::from(tidegate_text::line(words)).chars().take(columns).collect();
        draw(&format!("\r\x1b[K{shown}"));
    }
}

/// Columns of a bar itself.
const BAR: usize = 40;

/// A bar of so many steps, with what stands before and behind it (a template of `indicatif`, and its columns
/// when filled in). A narrow terminal gets no bar, a very narrow one no progress, a pipe neither.
pub(crate) fn progress_bar(steps: u64, (before, behind): (&str, &str), columns: usize) -> ProgressBar {
    let room = progress_columns().filter(|room| *room >= columns);
    let target = if room.is_some() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
    let template = match room.unwrap_or(0).saturating_sub(columns + 2).min(BAR) {
        0..5 => format!("{before} {behind}"),
        wide => format!("{before} {{bar:{wide}}} {behind}"),
    };
    let bar = ProgressBar::with_draw_target(Some(steps), target);
    bar.with_style(ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// The columns that results fold to: those of the terminal, or `COLUMNS` on one; `None`: they go to a pipe or
/// a file.
pub(crate) fn columns() -> Option<usize> {
    if !io::stdout().is_terminal() {
        return None;
    }
    let said = std::env::var("COLUMNS").ok().and_then(|said| said.parse().ok()).filter(|said| *said > 0);
    said.or_else(|| Some(tidegate_sys::terminal::size(&io::stdout())?.0))
}

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
    if !IS_FILE.load(Ordering::Relaxed) {
        bytes(visible(text).as_bytes());
    }
}

/// Prints a text for people: on a terminal it wraps, and words for outcomes have colours, where standard
/// output takes them: what is wrong is red, what may be is yellow, what is well is green. A document has
/// neither.
pub(crate) fn report(words: &str) {
    let shown = visible(words);
    if shown.starts_with(['{', '[']) || IS_FILE.load(Ordering::Relaxed) {
        return text(words);
    }
    let shown = columns().map_or(shown.clone(), |columns| wrapped(&shown, columns));
    let lines: String = match has_color() {
        true => shown.split_inclusive('\n').map(colored).collect(),
        false => shown,
    };
    bytes(lines.as_bytes());
}

/// Where in a line a word means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// First of all.
    Start,
    /// Between others.
    Inside,
    /// Last of all.
    End,
}

const RED: u8 = 31;
const GREEN: u8 = 32;
const YELLOW: u8 = 33;
const CYAN: u8 = 36;

/// The words that a colour marks, with what stands around them, and its number (ECMA-48, SGR): the level of a
/// finding, the outcome of a test, a grade, the state of a policy, what a comparison found.
const COLORED: [(Place, &str, &str, &str, u8); 26] = [
    (Place::Inside, ": ", "error", ": ", RED),
    (Place::Inside, ": ", "warning", ": ", YELLOW),
    (Place::Inside, ": ", "note", ": ", CYAN),
    (Place::Start, "", "bad", " [", RED),
    (Place::Start, "", "warning", " [", YELLOW),
    (Place::Start, "", "note", " [", CYAN),
    (Place::Start, "", "No problems found", "", GREEN),
    (Place::Start, "", "Note", ":", CYAN),
    (Place::Start, "  ", "FAILED", " ", RED),
    (Place::Start, "  ", "ok", " ", GREEN),
    (Place::Start, "", "Grade A+", ":", GREEN),
    (Place::Start, "", "Grade A", ":", GREEN),
    (Place::Start, "", "Grade B", ":", GREEN),
    (Place::Start, "", "Grade C", ":", YELLOW),
    (Place::Start, "", "Grade D", ":", RED),
    (Place::Start, "", "Grade F", ":", RED),
    (Place::Start, "", "No grade", ":", YELLOW),
    (Place::Start, "", "Only a part was measured", ":", YELLOW),
    (Place::Inside, ": ", "installed", "", GREEN),
    (Place::Inside, ": ", "waiting for confirmation", "", YELLOW),
    (Place::Inside, ": ", "in progress", "", YELLOW),
    (Place::Inside, ": ", "drifted", "", RED),
    (Place::Inside, ": ", "nothing is applied", "", YELLOW),
    (Place::Inside, ": ", "in trouble", "", RED),
    (Place::End, "  ", "better", "", GREEN),
    (Place::End, "  ", "worse", "", RED),
];

/// A line that was made safe to print, with its first such word in colour.
fn colored(line: &str) -> String {
    let end = line.trim_end_matches('\n').len();
    let found = COLORED.iter().filter_map(|&(place, left, word, right, color)| {
        let whole = [left, word, right].concat();
        let at = match place {
            Place::Start => line.starts_with(&whole).then_some(0),
            Place::Inside => line.find(&whole),
            Place::End => line[..end].ends_with(&whole).then(|| end - whole.len()),
        };
        Some((at? + left.len(), word, color))
    });
    match found.min() {
        // A quoted line of the policy is not coloured.
        Some((at, word, color)) if !line[..at].contains('|') => {
            let (before, after) = (&line[..at], &line[at + word.len()..]);
            format!("{before}\x1b[1;{color}m{word}\x1b[0m{after}")
        }
        _ => line.to_owned(),
    }
}

/// What begins like a document in JSON is escaped as JSON is. A text that begins so is as safe, and only its
/// escapes look different.
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
    // There is nowhere left to report that standard error fails.
    let _ = io::stderr().lock().write_all(shown.as_bytes());
}

/// Prints an error to standard error, folded to its terminal as results are.
pub(crate) fn error_lines(words: &str) {
    let terminal = io::stderr();
    let columns = terminal.is_terminal().then(|| tidegate_sys::terminal::size(&terminal)).flatten();
    let shown = String::from(tidegate_text::lines(&format!("{words}\n")));
    let shown = columns.map_or(shown.clone(), |(columns, _)| wrapped(&shown, columns));
    let _ = terminal.lock().write_all(shown.as_bytes());
}

/// Prints bytes to standard output as they are: captures for other programs, and what is safe already.
pub(crate) fn bytes(bytes: &[u8]) {
    if let Err(error) = raw(bytes) {
        failed(error);
    }
}

/// Prints bytes as they are, for those who end when no one reads on.
///
/// # Errors
/// Standard output does not take them; a closed pipe is an error here too.
fn raw(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Prints text as [`text`] does, for commands that end when the reader is gone, and report errors themselves.
///
/// # Errors
/// See [`raw`].
pub(crate) fn next(text: &str) -> io::Result<()> {
    drawn(visible(text).as_bytes())
}

/// Prints bytes as they are, for commands that end when the reader is gone, and report errors themselves.
///
/// # Errors
/// See [`raw`].
pub(crate) fn drawn(bytes: &[u8]) -> io::Result<()> {
    raw(bytes).map_err(|error| {
        note_failure(&error);
        io::Error::new(error.kind(), format!("standard output did not take everything: {error}"))
    })
}

/// Draws on the terminal, with the program's own control sequences; all foreign text in it went through
/// `tidegate_text`.
pub(crate) fn draw(drawing: &str) {
    let mut out = io::stderr().lock();
    // One who closed the terminal sees nothing; the work goes on.
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

/// Writes a whole file, or nothing: `-` and `/dev/stdout` are standard output. See
/// [`tidegate_sys::output_file`].
///
/// # Errors
/// It cannot be written, or someone else's symbolic link is on its path; the error names the path.
pub(crate) fn file(path: &Path, content: impl AsRef<[u8]>) -> anyhow::Result<()> {
    let content = content.as_ref();
    if is_stdout(path) {
        document(content);
        return Ok(());
    }
    let mut file = begin(path)?;
    file.write_all(content).and_then(|()| file.commit()).with_context(|| cannot_write(path))
}

/// Makes a directory for files of results, where there is none.
///
/// # Errors
/// It cannot be made; the error names it.
pub(crate) fn directory(path: &Path) -> anyhow::Result<()> {
    if path.exists() && !path.is_dir() {
        anyhow::bail!(
            "{}: it is a file, and several files are to be written; name a directory",
            cannot_write(path)
        );
    }
    std::fs::create_dir_all(path).with_context(|| format!("the directory {} could not be made", shown(path)))
}

/// Refuses a directory of results that is a file, or in which nothing can be written: see [`may_write`].
///
/// # Errors
/// It is one, and why.
pub(crate) fn may_write_into(path: &Path) -> anyhow::Result<()> {
    // Of a directory that is to be made, what it is made in.
    let existing = path.ancestors().find(|above| above.as_os_str().is_empty() || above.exists());
    let existing = existing.filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !existing.is_dir() {
        anyhow::bail!(
            "{}: {} is a file, and several files are to be written; name a directory",
            cannot_write(path),
            shown(existing)
        );
    }
    output_file::check(&existing.join("result")).with_context(|| cannot_write(path))
}

/// Refuses files of results that cannot be written, that would replace what the command has read so far, and
/// one that is named twice. [`begin`] does the same: this is for commands that work long, or write several
/// files, before they come to it.
///
/// # Errors
/// The first such file, and why.
pub(crate) fn may_write<'p>(paths: impl IntoIterator<Item = &'p Path>) -> anyhow::Result<()> {
    let mut named = BTreeSet::new();
    paths.into_iter().filter(|path| !is_stdout(path)).try_for_each(|path| {
        output_file::check(path).with_context(|| cannot_write(path))?;
        // A device takes any number of results.
        let whole = place_of(path).with_context(|| cannot_write(path))?;
        if !named.insert(whole) && (path.is_file() || !path.exists()) {
            anyhow::bail!("{}: it is named twice; name one file for each result", cannot_write(path));
        }
        refuse_replacing(path)
    })
}

/// Where a file is, or will be, without symbolic links and `..`.
fn place_of(path: &Path) -> io::Result<PathBuf> {
    if let Ok(real) = std::fs::canonicalize(path) {
        return Ok(real);
    }
    let whole = std::path::absolute(path)?;
    match (whole.parent(), whole.file_name()) {
        (Some(parent), Some(name)) => Ok(std::fs::canonicalize(parent)?.join(name)),
        _ => Ok(whole),
    }
}

/// Refuses a file that the command has read or written.
fn refuse_replacing(path: &Path) -> anyhow::Result<()> {
    if is_stdout(path) {
        return Ok(());
    }
    if let Some(read) = input_file::was_read(path) {
        let same = std::path::absolute(path).is_ok_and(|whole| whole == read);
        let name = if same { String::new() } else { format!(" ({})", shown(&read)) };
        anyhow::bail!(
            "{}: that file{name} is an input of this command; name another for the result",
            cannot_write(path)
        );
    }
    let written = WRITTEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if std::fs::canonicalize(path).is_ok_and(|real| written.contains(&real)) {
        anyhow::bail!(
            "{}: this command has just written another result to it; name one file for each",
            cannot_write(path)
        );
    }
    Ok(())
}

/// A file of results that is being written: see [`OutputFile`]. Its writer reports errors; the exit code is
/// [`CliExit::NotWritten`].
#[derive(Debug)]
pub(crate) struct ResultFile {
    file: OutputFile,
    /// Where it is put once it is whole; `None`: it grows in its place.
    to: Option<PathBuf>,
}

impl ResultFile {
    /// See [`OutputFile::commit`].
    pub(crate) fn commit(self) -> io::Result<()> {
        // What was read since it was begun is not replaced either.
        self.to.iter().try_for_each(|path| refuse_replacing(path)).map_err(io::Error::other)?;
        self.file.commit().inspect_err(note_failure)?;
        self.to.iter().for_each(|path| note_written(path));
        Ok(())
    }

    /// See [`OutputFile::make_private`].
    pub(crate) fn make_private(&self) -> io::Result<()> {
        self.file.make_private()
    }
}

/// Notes a regular file as written.
fn note_written(path: &Path) {
    if let Some(real) = std::fs::canonicalize(path).ok().filter(|real| real.is_file()) {
        WRITTEN.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(real);
    }
}

impl Write for ResultFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes).inspect_err(note_failure)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush().inspect_err(note_failure)
    }
}

/// Begins a file that is there whole once it is committed.
///
/// # Errors
/// See [`file`].
pub(crate) fn begin(path: &Path) -> anyhow::Result<ResultFile> {
    refuse_replacing(path)?;
    let file = OutputFile::create(device(path)).with_context(|| cannot_write(path))?;
    Ok(ResultFile { file, to: Some(path.to_owned()) })
}

/// Begins a file that others read while it grows.
///
/// # Errors
/// See [`file`].
pub(crate) fn begin_growing(path: &Path) -> anyhow::Result<ResultFile> {
    refuse_replacing(path)?;
    let file = OutputFile::create_growing(device(path)).with_context(|| cannot_write(path))?;
    note_written(path);
    Ok(ResultFile { file, to: None })
}

/// How an error about a file that is written begins.
pub(crate) fn cannot_write(path: &Path) -> impl Display + Send + Sync + 'static + use<> {
    format!("cannot write {}", shown(path))
}

/// A file's name in the text of a line.
pub(crate) fn shown(path: &Path) -> String {
    tidegate_text::line(&path.to_string_lossy()).into()
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
        Ok(shown) if io::stdout().is_terminal() => bytes(visible(shown).as_bytes()),
        _ => bytes(content),
    }
}

/// Notes that a write to standard output failed, which [`finish`] reports.
pub fn failed(error: io::Error) {
    note_first(error.kind(), || Failure::Unsaid(error));
}

/// Notes that something was not written, which the command itself reports.
pub(crate) fn note_failure(error: &io::Error) {
    note_first(error.kind(), || Failure::Said);
}

fn note_first(kind: io::ErrorKind, failure: impl FnOnce() -> Failure) {
    // The reader may have had enough: a closed pipe is no error. What was interrupted is tried again.
    if !matches!(kind, io::ErrorKind::BrokenPipe | io::ErrorKind::Interrupted) {
        // A thread that panicked while it held this had nothing half done.
        FAILED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert_with(failure);
    }
}

/// The program's end: with the command's exit code, or with [`CliExit::NotWritten`] where standard output or
/// a file did not take all of it.
pub fn finish(code: ExitCode) -> ExitCode {
    if let Err(error) = io::stdout().flush() {
        failed(error);
    }
    match FAILED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take() {
        Some(Failure::Unsaid(error)) => {
            eprintln!("tidegate: standard output did not take everything: {error}");
            CliExit::NotWritten.into()
        }
        Some(Failure::Said) => CliExit::NotWritten.into(),
        None => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_words_of_outcomes_have_colours() {
        let rows = [
            (
                "a.sh:3:1: error: no such class [R1 x]\n",
                "a.sh:3:1: \x1b[1;31merror\x1b[0m: no such class [R1 x]\n",
            ),
            ("  ok     1  ping: p95\n", "  \x1b[1;32mok\x1b[0m     1  ping: p95\n"),
            ("  FAILED 2  voip\n", "  \x1b[1;31mFAILED\x1b[0m 2  voip\n"),
            ("  3 | echo : error: x\n", "  3 | echo : error: x\n"),
            ("nothing\n", "nothing\n"),
            ("warning [mtu] x\n", "\x1b[1;33mwarning\x1b[0m [mtu] x\n"),
            ("Grade A+: fast\n", "\x1b[1;32mGrade A+\x1b[0m: fast\n"),
            ("eth0: installed, applied today\n", "eth0: \x1b[1;32minstalled\x1b[0m, applied today\n"),
            ("up  ping.p95  −170 ms  better\n", "up  ping.p95  −170 ms  \x1b[1;32mbetter\x1b[0m\n"),
            ("it is better than that\n", "it is better than that\n"),
        ];
        for (line, expected) in rows {
            assert_eq!(colored(line), expected);
        }
    }
}
