//! What a run showed to be wrong, in words.

use super::dialect;
use super::error::{GIVE_ARGUMENTS, SHELL, Trouble, TroubleKind};
use super::few::first_few;
use super::lines::Finder;
use super::place::SourceLine;
use super::script_run::{ANSWER, Exit, Recorded, asks};
use super::usage::{short, speaks_of_usage, usage};
use std::collections::BTreeMap;
use std::ops::Range;
use tidegate_shims::{TOOLS, nearest};

/// The most warnings listed: a loop that fails a thousand times shows nothing new.
const MAX_TROUBLES: usize = 50;
/// The exit codes of a shell for a command that it does not find, and for one that it may not run.
const NOT_FOUND: u8 = 127;
const NOT_RUNNABLE: u8 = 126;
/// The signal by which a shell ends that calls itself until its stack is full.
const SEGMENTATION_FAULT: u8 = 11;
/// What may stand before a command of the shell.
const WORD_ENDS: [char; 5] = [' ', '\t', ';', '&', '|'];
const FIX_LINE: &str = "fix that line and run again; nothing outside the sandbox was changed";
const MISSING: &str = "there is no such tool on this machine, and tidegate does not emulate it";

/// Lists the troubles of a run, in the order of their importance to the reader: calls, tools, the end.
pub(super) fn list(
    finder: &Finder,
    calls: &[Recorded],
    exit: &Exit,
    (stdout, stderr): (&[u8], &[u8]),
) -> Vec<Trouble> {
    let mut troubles: Vec<Trouble> = Vec::new();
    for call in calls.iter().filter(|call| call.code != 0 && !call.may_fail()) {
        let trouble = failed(call);
        if troubles.len() < MAX_TROUBLES && !troubles.contains(&trouble) {
            troubles.push(trouble);
        }
    }
    let complaints = String::from_utf8_lossy(stderr);
    let complaints: Vec<Complaint<'_>> =
        complaints.lines().filter_map(|line| Complaint::read(finder, line)).collect();
    // A tool that is missing is told once: of the first line, how many more call it.
    let mut again: BTreeMap<usize, usize> = BTreeMap::new();
    for complaint in &complaints {
        if let Some(trouble) = complaint.of_bash(finder).or_else(|| complaint.missing_tool(finder))
            && troubles.len() < MAX_TROUBLES
            && !troubles.contains(&trouble)
        {
            let is_of_tool =
                |other: &Trouble| other.kind == TroubleKind::NotRun && other.reason == trouble.reason;
            match troubles.iter().position(is_of_tool) {
                Some(first) => *again.entry(first).or_insert(0) += 1,
                None => troubles.push(trouble),
            }
        }
    }
    for (first, lines) in again {
        let lines = if lines == 1 { "1 other line".to_owned() } else { format!("{lines} other lines") };
        troubles[first].reason += &format!(" ({lines} too)");
    }
    // Of several messages about the last line the first gives the reason, the others repeat the text.
    let last = complaints.last().map(|last| last.line);
    let last = complaints.iter().find(|one| Some(one.line) == last);
    troubles.extend(end(finder, calls, exit, last).map(|trouble| match exit {
        Exit::Code(_) if last.is_none() => in_its_words(trouble, finder.lines(), stdout, stderr),
        _ => trouble,
    }));
    troubles
}

/// The arguments that the script uses and was not given, where a call failed that may need them, where the
/// script came to no call, or where a word means something else without them.
pub(super) fn missing_arguments(finder: &Finder, calls: &[Recorded], troubles: &[Trouble]) -> Option<String> {
    // What the script itself says of its arguments says more.
    let is_fine =
        troubles.iter().all(Trouble::is_idle) && !calls.is_empty() && !finder.joins_missing_arguments();
    if is_fine || troubles.iter().any(Trouble::asks_for_arguments) {
        return None;
    }
    let (wanted, given) = finder.missing_arguments()?;
    let uses = if wanted == 1 { "$1".to_owned() } else { format!("$1 to ${wanted}") };
    let was = match given {
        0 => "no arguments".to_owned(),
        1 => "1 argument".to_owned(),
        some => format!("{some} arguments"),
    };
    Some(format!("{} uses {uses} and was given {was}: name them behind `--`", finder.main().display()))
}

/// What it means that a script which came to its end asks a question.
pub(super) fn unanswered(finder: &Finder, calls: &[Recorded], exit: &Exit) -> Option<String> {
    let is_whole =
        *exit == Exit::Code(0) && calls.iter().any(|call| call.code == 0 && !call.deletes_nothing());
    let line = finder.question().filter(|_| is_whole)?;
    Some(format!(
        "{}: line {} asks a question (`{}`), and here the answer is empty: what the script makes of another is \
         not in this; {ANSWER}",
        finder.main().display(),
        line.line,
        short(line.text.trim())
    ))
}

/// What it means that these processes were still running when the script ended; `None`: there were none.
pub(super) fn unfinished(finder: &Finder, left: &[String]) -> Option<String> {
    let (processes, they) = match left.len() {
        0 => return None,
        1 => ("1 process was".to_owned(), "it"),
        many => (format!("{many} processes were"), "they"),
    };
    Some(format!(
        "{}: {processes} still running when the script ended and {} ended with it ({}): what {they} \
        would have done is not in this; let the script `wait` for what it starts",
        finder.main().display(),
        if left.len() == 1 { "was" } else { "were" },
        first_few(left.iter().map(|words| format!("`{}`", short(words))))?
    ))
}

/// The end of a script that gave up unasked, with the reason it gives.
fn in_its_words<'l>(
    mut trouble: Trouble,
    lines: impl IntoIterator<Item = &'l str>,
    stdout: &[u8],
    stderr: &[u8],
) -> Trouble {
    if let Some(usage) = usage(stdout, stderr) {
        if speaks_of_usage(lines) {
            trouble.reason += &format!("; it says `{usage}`");
            trouble.remedy = Some(GIVE_ARGUMENTS.to_owned());
        } else {
            trouble.reason += &format!("; a program that it ran printed `{usage}`");
        }
        return trouble;
    }
    if let Some(line) = last_line(stderr).or_else(|| last_line(stdout)) {
        trouble.reason += &format!("; the last line it printed: `{line}`");
    }
    if trouble.place.is_none() {
        trouble.remedy = trouble.remedy.map(|remedy| remedy.replace("fix that line", "fix the script"));
    }
    trouble
}

fn last_line(output: &[u8]) -> Option<String> {
    // What tidegate itself adds to the tools' words is none of the script's.
    let is_ours = |line: &str| ["tc: ", "ip: "].iter().any(|name| line.starts_with(name));
    let text = String::from_utf8_lossy(output);
    text.lines().map(str::trim).rfind(|line| !line.is_empty() && !is_ours(line)).map(short)
}

/// The message for a failed call: the tool's first line has the reason, our own line after it the remedy; a
/// usage text between them is for the script's reader, not for this place.
fn failed(call: &Recorded) -> Trouble {
    // The tool's name is before the reason already.
    let prefix = format!("{}: ", call.call.tool);
    // With -force a batch goes on: what is told is the first.
    let first = call.stderr.split("\nCommand failed ").next().unwrap_or_default();
    let mut lines = tidegate_shims::refusal_lines(first);
    let reason = match lines.next() {
        None => format!("failed with code {} and says nothing", call.code),
        Some(text) => text.strip_prefix(&prefix).unwrap_or(text).to_owned(),
    };
    let remedy = lines.rev().find_map(|line| line.strip_prefix(&prefix)).map(str::to_owned);
    let kind = if call.deletes_nothing() { TroubleKind::Idle } else { TroubleKind::Failed };
    Trouble { place: call.source.clone(), reason, who: call.call.tool.clone(), remedy, kind }
}

/// How the script ended, if not well.
fn end(
    finder: &Finder,
    calls: &[Recorded],
    exit: &Exit,
    last_complaint: Option<&Complaint<'_>>,
) -> Option<Trouble> {
    let name = finder.main().display().to_string();
    let after = || match calls.last() {
        Some(call) => {
            let words = call.call.args.join(" ");
            format!(
                "after `{} {}`, its last command that we saw",
                call.call.tool,
                tidegate_text::line(&words)
            )
        }
        None => "before any command that we know".to_owned(),
    };
    let (reason, remedy, place) = match exit {
        Exit::Code(0) => return None,
        Exit::Code(code) => {
            // What answered with the code that the script ended with is what ended it.
            let fatal = calls.last().filter(|call| call.code == *code);
            let has_call = fatal.is_some();
            let last_complaint = last_complaint.filter(|complaint| complaint.explains(*code, has_call));
            let place = last_complaint.and_then(|complaint| finder.line(complaint.line));
            let place = place.or_else(|| fatal.and_then(|call| call.source.clone()));
            let place = place.or_else(|| finder.last());
            let meaning = match *code {
                NOT_FOUND => ": a command was not found",
                NOT_RUNNABLE => ": a command may not be run",
                _ => "",
            };
            let text = last_complaint.map_or(String::new(), |complaint| format!(" ({})", complaint.text));
            let remedy = match last_complaint {
                Some(complaint) => complaint.remedy(finder, place.as_ref()),
                None => remedy_of_call(fatal, place.is_some()).to_owned(),
            };
            (format!("the script ended with code {code}{meaning}{text}, {}", after()), remedy, place)
        }
        Exit::Signal(SEGMENTATION_FAULT) => (
            format!("the shell crashed (signal {SEGMENTATION_FAULT}), {}", after()),
            "a function that calls itself without end does that: bash has no limit unless FUNCNEST sets one"
                .to_owned(),
            finder.last(),
        ),
        Exit::Signal(signal) => (
            format!("the script was ended by signal {signal}, which it or something it started sent, {}", after()),
            "a script that kills itself or its process group (`kill 0`, `kill $$`) cannot be captured whole".to_owned(),
            finder.last(),
        ),
        Exit::TimedOut { after: limit, stopped, running } if !stopped.is_empty() => (
            format!(
                "the script did not end within {} s: `{}` is stopped by a signal (SIGSTOP or SIGTSTP) that \
                something in it sent, {}",
                limit.as_secs_f64(),
                short(&stopped.join("`, `")),
                after()
            ),
            "let the script stop no process, or send SIGCONT to what it stopped".to_owned(),
            running_line(finder, running).or_else(|| finder.last()),
        ),
        Exit::TimedOut { after: limit, running, .. } => {
            let place = running_line(finder, running).or_else(|| finder.last());
            let doing = running.last().map_or(String::new(), |running| format!("; it was running `{running}`"));
            (
                format!("the script did not end within {} s{doing}, {}", limit.as_secs_f64(), after()),
                "let it end (no daemon, no endless loop, no question on standard input), or allow more time \
                with --timeout TIME (5min, for example)".to_owned(),
                place,
            )
        }
        Exit::Crowded { limit } => (
            format!(
                "the script started more than {limit} processes at once and was ended with all of them, {}",
                after()
            ),
            "a function that calls itself in the background does that; let the script wait for what it starts"
                .to_owned(),
            finder.last(),
        ),
        Exit::Exhausted { limit } => (
            format!("the script's processes held more than {} MiB of memory and were ended, {}", limit >> 20, after()),
            "a policy needs little; let the script do its other work elsewhere".to_owned(),
            finder.last(),
        ),
        Exit::Lost(reason) => (
            reason.clone(),
            "check that the script and its directory can be read, and that there is memory for it".to_owned(),
            None,
        ),
    };
    // A question may be what the script failed or waits at, wherever it ended.
    let condition =
        finder.question().map_or(String::new(), |line| format!("; line {} {}", line.line, asks(&line)));
    let who = if place.is_none() { name } else { SHELL.to_owned() };
    Some(Trouble { who, place, reason, remedy: Some(remedy + &condition), kind: TroubleKind::Failed })
}

/// Whether a call was refused because tidegate lacks a feature. Then the tool might have carried it out.
fn lacks(call: &Recorded) -> bool {
    let line = tidegate_shims::refusal_lines(&call.stderr).next();
    let is_refused =
        line.is_some_and(|line| line.starts_with("tidegate: ") && line.contains("not supported"));
    // Behind what Linux says where it lacks the device for it.
    let prefix = format!("{}: ", call.call.tool);
    let is_kind = |line: &str| line.strip_prefix(&prefix).is_some_and(|own| own.contains(" is not built: "));
    is_refused || call.stderr.lines().any(is_kind)
}

/// What to do where a script ended with an error and its shell says nothing; `fatal` answered with the code
/// that it ended with.
fn remedy_of_call(fatal: Option<&Recorded>, is_placed: bool) -> &'static str {
    match fatal {
        Some(call) if call.call.makes_loaded_ifb(&call.stderr) => {
            "`modprobe ifb` made this device: load it with `modprobe ifb numifbs=0`, or write `|| true` behind \
             the line"
        }
        Some(call) if lacks(call) => {
            "the script may be right: tidegate lacks what this command needs; with `|| true` behind it the rest \
             is tried without it"
        }
        Some(_) => FIX_LINE,
        None if is_placed => {
            "look at what follows that line, the last that was seen; nothing outside the sandbox was changed"
        }
        None => "look at what comes before; nothing outside the sandbox was changed",
    }
}

/// The line of the innermost program that runs, if the script names it.
fn running_line(finder: &Finder, running: &[String]) -> Option<SourceLine> {
    running.iter().rev().find_map(|words| {
        let mut words = words.split_whitespace();
        let program = words.next()?.rsplit('/').next()?.to_owned();
        let args: Vec<String> = words.map(Into::into).collect();
        finder.peek(&program, &args)
    })
}

/// A line that a shell wrote about a line of the script: `x.sh: 3: foo: not found`, `x.sh: line 3: foo:
/// command not found`.
struct Complaint<'a> {
    line: usize,
    text: &'a str,
}

impl<'a> Complaint<'a> {
    fn read(finder: &Finder, text: &'a str) -> Option<Self> {
        let main = finder.main().file_name()?.to_str()?;
        let at = text.find(main)?;
        let rest = text.get(at + main.len()..)?.strip_prefix(':')?.trim_start();
        let rest = rest.strip_prefix("line ").unwrap_or(rest);
        let (number, rest) = rest.split_once(':')?;
        let (line, text) = (number.parse().ok()?, rest.trim());
        let line =
            finder.line(line).and_then(|place| in_backquotes(finder, &place.text, text)).unwrap_or(line);
        Some(Self { line, text })
    }

    /// Whether a script may have ended with this code because of it; `others`: a call that failed may have.
    fn explains(&self, code: u8, others: bool) -> bool {
        dialect::ends_shell(self.text)
            || matches!(code, NOT_FOUND | NOT_RUNNABLE)
            || !others && !self.text.ends_with("not found")
    }

    /// What to do where the script ended with it.
    fn remedy(&self, finder: &Finder, place: Option<&SourceLine>) -> String {
        if let Some(name) = self.unset_file(place).filter(|name| !finder.sets(name)) {
            return format!(
                "the line takes the file's place from ${name}: set that in the environment, or run what sets it"
            );
        }
        match self.demanded(place) {
            Some(name) if name.starts_with(|letter: char| letter.is_ascii_digit()) => {
                GIVE_ARGUMENTS.to_owned()
            }
            Some(name) => format!("set {name} in the environment, or run what sets it"),
            None => dialect::syntax_remedy(self.text).unwrap_or(FIX_LINE).to_owned(),
        }
    }

    /// The variable that a file which cannot be opened is named by.
    fn unset_file<'p>(&self, place: Option<&'p SourceLine>) -> Option<&'p str> {
        if !self.text.contains("cannot open") && !self.text.contains("No such file") {
            return None;
        }
        let (_, rest) = place?.text.split_once('$')?;
        let name = rest.trim_start_matches('{');
        let end = name.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        Some(&name[..end.unwrap_or(name.len())]).filter(|name| !name.is_empty())
    }

    /// The variable or the number of an argument that the line cannot do without: `${1:?give a device}`, or
    /// any that is unset under `set -u`.
    fn demanded(&self, place: Option<&SourceLine>) -> Option<&'a str> {
        let (name, why) = self.text.split_once(": ")?;
        let name = name.trim_start_matches('$');
        let line = &place?.text;
        let is_asked = [":?", "?"].iter().any(|mark| line.contains(&format!("${{{name}{mark}")));
        let is_name =
            !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
        let is_unset = ["parameter not set", "unbound variable"].contains(&why) && line.contains('$');
        (is_name && (is_asked || is_unset)).then_some(name)
    }

    fn missing_tool(&self, finder: &Finder) -> Option<Trouble> {
        let (name, what) = [
            ("command not found", MISSING),
            ("not found", MISSING),
            ("No such file or directory", MISSING),
            ("No such file", MISSING),
            ("Permission denied", "may not be run, or is not on this machine"),
        ]
        .iter()
        .find_map(|(end, what)| Some((self.text.strip_suffix(end)?, what)))?;
        let name = name.trim_end().strip_suffix(':')?;
        // dash's words for what is to be read.
        let (name, is_opened) = match name.strip_prefix("cannot open ") {
            Some(name) => (name, true),
            None => (name, false),
        };
        // `cannot open x: No such file` is about a file that the script reads.
        if name.contains(' ') {
            return None;
        }
        let base = name.rsplit('/').next().unwrap_or(name);
        let mut place = finder.line(self.line);
        let line = place.as_ref().map_or("", |place| place.text.as_str());
        // Of a command that it does not find bash says something else.
        let is_file = !name.contains('/') && self.text.ends_with("No such file or directory");
        let is_read = is_opened || is_file || reads(line, name, base);
        let (reason, remedy) = if name.starts_with('\u{feff}') {
            (
                "the script begins with a byte order mark, which the shell takes for a part of the first word"
                    .to_owned(),
                "take it away: sed -i '1s/^\\xef\\xbb\\xbf//' FILE".to_owned(),
            )
        } else if name.contains('/') && TOOLS.contains(&base) {
            (
                format!(
                    "{name}: there is no such file on this machine; tidegate answers {base} by its name \
                    alone, and in the usual directories"
                ),
                format!("call it `{base}`, without its directory"),
            )
        } else if name == "/dev/tty" {
            (
                "there is no terminal here, from which the script reads".to_owned(),
                "let it read from standard input, and give the answer with --answer TEXT".to_owned(),
            )
        } else if is_read {
            (
                format!("{name}: there is no such file here, from which the script reads"),
                format!("put {base} there, or take the line out if the shaping does not need it"),
            )
        } else {
            let assigns = line.trim_start().strip_prefix(name).is_some_and(|rest| {
                rest.starts_with(char::is_whitespace) && rest.trim_start().starts_with('=')
            });
            let remedy = match (*what == MISSING, name.contains('/')) {
                (true, false) if assigns => {
                    format!("if {name} is meant to be set, write it without blanks: {name}=…")
                }
                (false, _) => format!("if it is there, let it be run (chmod +x {base})"),
                (true, true) => format!("put {base} there"),
                (true, false) if base == "uci" => {
                    "uci is OpenWrt's; where it sets SQM's options, name /etc/config/sqm, which it writes"
                        .to_owned()
                }
                (true, false) if nearest(base, TOOLS.iter().copied()).is_some() => {
                    format!("did you mean {}?", nearest(base, TOOLS.iter().copied()).unwrap_or_default())
                }
                (true, false) => {
                    format!("bring what has {base}: a package, or a file that the script reads in")
                }
            };
            let without = match *what == MISSING && super::stubs::check_stub(name).is_ok() {
                true => format!("go on without it (--stub {name})"),
                false => "take the line out".to_owned(),
            };
            (format!("{name}: {what}"), format!("{remedy}; or {without} if the shaping does not need it"))
        };
        if let Some(place) = &mut place {
            place.columns = columns_of(&place.text, name);
        }
        Some(Trouble {
            place,
            who: SHELL.to_owned(),
            reason,
            remedy: Some(remedy),
            kind: TroubleKind::NotRun,
        })
    }

    /// What bash would have known.
    fn of_bash(&self, finder: &Finder) -> Option<Trouble> {
        let mut place = finder.line(self.line);
        let line = place.as_ref().map_or("", |place| place.text.as_str());
        let (reason, remedy) = dialect::complaint(self.text, line)?;
        if let (Some(place), Some((_, word))) = (&mut place, reason.split_once('`')) {
            place.columns = columns_of(&place.text, word.split('`').next().unwrap_or_default());
        }
        let who = SHELL.to_owned();
        Some(Trouble { place, who, reason, remedy: Some(remedy), kind: TroubleKind::Dialect })
    }
}

/// The line of a program that dash did not find, where the line that it gives has nothing of its name: inside
/// backquotes it counts lines from 1 again.
fn in_backquotes(finder: &Finder, given: &str, complaint: &str) -> Option<usize> {
    let name = complaint.strip_suffix("not found")?.trim_end().strip_suffix(':')?;
    // A variable may have given the name.
    if given.contains(name) || given.contains('$') {
        return None;
    }
    finder.only_line(|line| line.contains('`') && line.contains(name))
}

/// The columns of a word in a line.
fn columns_of(line: &str, word: &str) -> Option<Range<usize>> {
    let at = line.find(word)?;
    let start = line[..at].chars().count();
    Some(start..start + word.chars().count())
}

/// Whether a line reads the file of a name, or one that is called so in a directory that the shell finds out
/// (`. "$(dirname "$0")/x"`), and does not run it.
fn reads(line: &str, name: &str, base: &str) -> bool {
    let before = |text: &str| !text.is_empty() && line.contains(text);
    let Some((before, _)) =
        [name, base].into_iter().find(|text| before(text)).and_then(|text| line.split_once(text))
    else {
        return false;
    };
    before.trim_end().ends_with('<') || before.split(WORD_ENDS).any(|word| matches!(word, "." | "source"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_a_line_reads_are_no_tools() {
        for (line, is_read) in [
            (". ./x.conf", true),
            ("[ -f x ] && source \"$(dirname \"$0\")/x.conf\"", true),
            ("while read a; do :; done <x.conf", true),
            ("./x.conf start", false),
            ("tc qdisc show", false),
        ] {
            assert_eq!(reads(line, "/home/a/x.conf", "x.conf"), is_read, "{line}");
        }
    }

    #[test]
    fn a_usage_line_of_another_program_is_not_the_scripts() {
        let end = |script: &str| {
            let trouble = Trouble {
                place: None,
                reason: "ended".into(),
                who: "x".into(),
                remedy: None,
                kind: TroubleKind::Failed,
            };
            in_its_words(trouble, script.lines(), b"", b"Usage: grep [OPTION]...\n").what_and_remedy()
        };
        assert_eq!(
            end("grep\ntc qdisc show"),
            "ended; a program that it ran printed `Usage: grep [OPTION]...`"
        );
        assert!(
            end("usage() {").starts_with("ended; it says `Usage: grep [OPTION]...`; give it the arguments")
        );
    }

    #[test]
    fn the_last_line_is_cut_and_none_of_ours() {
        let long = "x".repeat(200);
        assert_eq!(last_line(long.as_bytes()).map(|line| line.chars().count()), Some(101));
        assert_eq!(last_line(b"a\nb \n\n").as_deref(), Some("b"));
        assert_eq!(last_line(b"Error: a\ntc: b\n").as_deref(), Some("Error: a"));
    }
}
