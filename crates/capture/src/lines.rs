//! Which line of a script issued a call: the command whose words agree best with the call's.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::agree::{Match, agree};
use super::given::{Agreement, Given, Giver};
use super::place::{CallFrame, SourceLine, SourceWord};
use super::values::Variables;
use super::words::{self, Command};

mod outline;
mod tool;

use tool::{tool_word, words_behind};

/// Above this many candidates only those near the last match are weighed.
const WINDOW: usize = 400;

/// Functions that pass on their arguments, one to the next, that are followed.
const MAX_FRAMES: usize = 8;

/// The most files in which lines are looked for, and the longest one taken in during a run, in bytes.
const MAX_FILES: usize = 64;
const MAX_BYTES: u64 = 1 << 20;

/// Whether an argument says how much or which one, other than the device: scripts do the same on several.
fn is_value(args: &[String], arg: usize) -> bool {
    let before = arg.checked_sub(1).map_or("", |before| &args[before]);
    args[arg].contains(|letter: char| letter.is_ascii_digit()) && !["dev", "-i", "-o"].contains(&before)
}

/// The commands that name a tool: file, command, word.
type Naming = Rc<[(usize, usize, usize)]>;

/// Finds lines; remembers the last one, because scripts mostly go forward.
#[derive(Debug)]
pub(super) struct Finder {
    files: Vec<Source>,
    /// How many arguments the script was given.
    given: usize,
    /// Its standard input has answers.
    pub(super) is_answered: bool,
    variables: BTreeMap<String, Variable>,
    /// File and command of the last match.
    last: Option<(usize, usize)>,
    /// Per function, the last call of it that was found.
    last_calls: BTreeMap<Rc<str>, LastCall>,
    /// Per function, the commands that call it.
    calls: RefCell<BTreeMap<Rc<str>, Naming>>,
    /// Per tool, the commands that name it: file, command, word.
    naming: RefCell<BTreeMap<String, Naming>>,
    /// What follows the name of a tool in a word that names it, by tool, file and command.
    behind: RefCell<BTreeMap<(String, usize, usize), Behind>>,
}

/// What a variable has behind a tool's name, for each value that it may have.
type Behind = Rc<[Vec<String>]>;

#[derive(Debug)]
struct Source {
    path: PathBuf,
    /// The path without symbolic links, to know a file again.
    real: PathBuf,
    lines: Vec<String>,
    commands: Vec<Command>,
    variables: BTreeMap<String, Vec<String>>,
}

/// Where a variable of the shell is set and used.
#[derive(Debug, Default)]
struct Variable {
    /// The only word that sets it: file, command, word.
    set: Option<(usize, usize, usize)>,
    /// How often it is set.
    times: usize,
    /// Words that ask for it.
    uses: usize,
}

/// A command that a call went through.
struct Level {
    file: usize,
    at: usize,
    /// The word that names the function called; of the innermost the tool is called.
    name: Option<usize>,
    /// The words that gave the tool's arguments.
    givers: Vec<Option<Giver>>,
}

/// The last call of a function that was found: file and command, of the call and of the command inside the
/// function.
#[derive(Debug)]
struct LastCall {
    call: (usize, usize),
    inside: (usize, usize),
}

impl Finder {
    /// Over the script and the files it reads in, each with its text.
    pub(super) fn new(files: &[(PathBuf, String)], args: &[String]) -> Self {
        let mut files: Vec<Source> =
            files.iter().map(|(path, text)| Source::new(path.clone(), text, args)).collect();
        // Files that one shell reads share their variables.
        let mut shared: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, values) in files.iter().flat_map(|file| &file.variables) {
            shared.entry(name.clone()).or_default().extend(values.iter().cloned());
        }
        for file in &mut files {
            file.variables = shared.clone();
        }
        let mut finder = Self {
            files,
            given: args.len(),
            is_answered: false,
            variables: BTreeMap::new(),
            last: None,
            last_calls: BTreeMap::new(),
            calls: RefCell::default(),
            naming: RefCell::default(),
            behind: RefCell::default(),
        };
        finder.count_variables();
        finder
    }

    /// Takes in the script that issued a call, if it is another than those known: scripts call scripts.
    ///
    /// `issuer` are the words of the process, as `sh ./part.sh`; a file made inside the sandbox cannot be
    /// seen.
    pub(super) fn learn(&mut self, issuer: &[String], cwd: &Path) {
        let Some(path) = issuer.iter().skip(1).find(|word| !word.starts_with('-')) else {
            return;
        };
        let Ok(real) = std::fs::canonicalize(cwd.join(path)) else {
            return;
        };
        if self.files.len() >= MAX_FILES || self.files.iter().any(|source| source.real == real) {
            return;
        }
        // A program that speaks on the tools' port can name any file.
        if super::scan::is_new_inside(&real) {
            return;
        }
        if let Ok(text) = tidegate_sys::input_file::read_text(&real, MAX_BYTES) {
            let mut source = Source::new(path.into(), &text, &issuer[2.min(issuer.len())..]);
            source.real = real;
            self.files.push(source);
            self.naming.borrow_mut().clear();
            self.behind.borrow_mut().clear();
            self.calls.borrow_mut().clear();
            self.count_variables();
        }
    }

    /// The line that issued the call, with the columns of the word that gave the argument `wrong`, if that is
    /// known; and the words that gave the arguments. Where functions pass on what they are given, it is the
    /// line that has most of the values, a function's own one or its caller's, and the caller's where several
    /// give it some.
    pub(super) fn find(
        &mut self,
        tool: &str,
        args: &[String],
        wrong: Option<usize>,
    ) -> Option<(SourceLine, Vec<Option<SourceWord>>)> {
        let (file, at, found) = self.best(tool, args)?;
        self.last = Some((file, at));
        let levels = self.levels(Level { file, at, name: None, givers: givers(args, &found.words) });
        // Where each argument was written: there, or where a variable was set.
        let mut words: Vec<Option<SourceWord>> = vec![None; args.len()];
        let mut at_fault: Option<(usize, SourceWord)> = None;
        // How many of the values, and of the words, are written there.
        let mut written = vec![(0, 0); levels.len()];
        for (depth, level) in levels.iter().enumerate() {
            let caller = levels.get(depth + 1);
            let shared = match caller {
                Some(_) => self.is_shared(level),
                None => self.is_lost(level),
            };
            for arg in (0..args.len()).filter(|arg| caller.is_none_or(|outer| outer.givers[*arg].is_none())) {
                let Some(word) = self.word(level, arg, shared) else { continue };
                written[depth].0 += usize::from(is_value(args, arg));
                written[depth].1 += 1;
                if wrong == Some(arg) {
                    at_fault = Some((depth, word.clone()));
                }
                words[arg] = Some(self.set_once(level, arg).unwrap_or(word));
            }
        }
        let mut most = (0..levels.len()).max_by_key(|depth| written[*depth])?;
        // Of a function that several lines call, the call says which one it is.
        while written.get(most + 1).is_some_and(|outer| outer.0 > 0) && self.has_calls(&levels[most]) {
            most += 1;
        }
        let (depth, place) = match at_fault {
            None => (most, self.place_of(&levels[most], tool)),
            Some((depth, word)) => {
                (depth, self.files[levels[depth].file].place(word.line, Some(word.columns)))
            }
        };
        // From the caller inward.
        let frames: Vec<CallFrame> =
            levels[..depth].iter().rev().filter_map(|level| self.frame(level)).collect();
        let called_from = levels[depth + 1..].last().map(|level| self.place_of(level, tool));
        let called_from = called_from
            .map(|call| (call.file, call.line))
            .filter(|(file, line)| (file, *line) != (&place.file, place.line));
        Some((SourceLine { frames, called_from, ..place }, words))
    }

    /// The commands that a call went through, the tool's own first.
    fn levels(&mut self, innermost: Level) -> Vec<Level> {
        let args = innermost.givers.len();
        let mut levels = vec![innermost];
        while levels.len() <= MAX_FRAMES {
            let inner = &levels[levels.len() - 1];
            let Some((caller, _)) = self.caller(inner, args) else { break };
            if let Some(function) = &self.files[inner.file].commands[inner.at].function {
                let call = LastCall { call: (caller.file, caller.at), inside: (inner.file, inner.at) };
                self.last_calls.insert(Rc::clone(function), call);
            }
            levels.push(caller);
        }
        levels
    }

    /// Whether a command is in a function that several lines call.
    fn has_calls(&self, level: &Level) -> bool {
        let function = &self.commands(level.file)[level.at].function;
        function.as_ref().is_some_and(|function| self.calls(function).len() > 1)
    }

    /// Whether a command passes on arguments of its function, whose call was not found.
    fn is_lost(&self, level: &Level) -> bool {
        let all = self.commands(level.file)[level.at].passes_on();
        all.is_some_and(|all| level.givers.iter().flatten().any(|giver| giver.word == all))
    }

    /// The place of a command on the way to a tool.
    fn place_of(&self, level: &Level, tool: &str) -> SourceLine {
        let source = &self.files[level.file];
        let command = &source.commands[level.at];
        let name = level.name.or_else(|| tool_word(&source.variables, command, tool));
        source.place(name.map_or(command.line(), |at| command.words[at].line), None)
    }

    fn commands(&self, file: usize) -> &[Command] {
        &self.files[file].commands
    }

    /// The place of the word that gave an argument; a shared one must not be changed.
    fn word(&self, level: &Level, arg: usize, shared: bool) -> Option<SourceWord> {
        let giver = level.givers[arg].as_ref()?;
        let word = &self.commands(level.file)[level.at].words[giver.word];
        let literal = word.is_literal() && giver.whole && !word.within && !shared;
        let file = self.files[level.file].path.clone();
        Some(SourceWord { file, line: word.line, columns: word.columns.clone(), literal })
    }

    /// Where the variable got the value that a word consists of, if that is the only place in all files that
    /// sets it, and has the value literally. What other words use, too, must not be changed there.
    fn set_once(&self, level: &Level, arg: usize) -> Option<SourceWord> {
        let giver = level.givers[arg].as_ref().filter(|giver| giver.whole)?;
        let prompt = &self.commands(level.file)[level.at].words[giver.word];
        let name = prompt.variable().filter(|_| !prompt.within)?;
        let variable = self.variables.get(name)?;
        let &(file, at, which) = variable.set.as_ref()?;
        let source = &self.files[file];
        let word = &source.commands[at].words[which];
        let (_, text) = word.raw.split_once('=')?;
        let plain = text.trim_matches(['"', '\'']);
        let from = word.columns.start + name.chars().count() + 1;
        let quote = usize::from(plain.len() < text.len());
        let columns = from + quote..from + quote + plain.chars().count();
        let literal = variable.uses == 1 && source.commands[at].function.is_none();
        (plain == &*giver.value && word.is_literal()).then(|| SourceWord {
            file: source.path.clone(),
            line: word.line,
            columns,
            literal,
        })
    }

    /// Counts where variables are set and used.
    fn count_variables(&mut self) {
        let mut found: BTreeMap<String, Variable> = BTreeMap::new();
        for (file, source) in self.files.iter().enumerate() {
            for (at, command) in source.commands.iter().enumerate() {
                for (which, word) in command.words.iter().enumerate() {
                    for name in word.variables() {
                        found.entry(name.to_owned()).or_default().uses += 1;
                    }
                    if let Some(name) = command.sets(which) {
                        let variable = found.entry(name.to_owned()).or_default();
                        variable.set = (variable.times == 0).then_some((file, at, which));
                        variable.times += 1;
                    }
                }
            }
        }
        self.variables = found;
    }

    /// Whether a command is in a function that several calls share.
    fn is_shared(&self, level: &Level) -> bool {
        let Some(function) = &self.commands(level.file)[level.at].function else { return false };
        match &self.calls(function)[..] {
            [(file, at, _)] => self.commands(*file)[*at].repeats,
            _ => true,
        }
    }

    /// A command as one of those that a call went through.
    fn frame(&self, level: &Level) -> Option<CallFrame> {
        let command = &self.commands(level.file)[level.at];
        let function = command.function.as_ref()?.to_string();
        Some(CallFrame { function, file: self.files[level.file].path.clone(), line: command.line() })
    }

    /// The commands that call a function.
    fn calls(&self, function: &Rc<str>) -> Naming {
        if let Some(known) = self.calls.borrow().get(function) {
            return Rc::clone(known);
        }
        let of_file = |(file, source): (usize, &Source)| {
            let of_file = source.commands.iter().enumerate();
            of_file.filter_map(|(at, command)| Some((file, at, command.calls(function)?))).collect::<Vec<_>>()
        };
        let calls: Naming = self.files.iter().enumerate().flat_map(of_file).collect();
        self.calls.borrow_mut().insert(Rc::clone(function), Rc::clone(&calls));
        calls
    }

    /// The caller of the function that contains a command, if it passes on the function's arguments; and how
    /// well that agrees.
    fn caller(&self, level: &Level, args: usize) -> Option<(Level, i32)> {
        let commands = self.commands(level.file);
        let given = Given::new(commands, level.at, &level.givers)?;
        let function = commands[level.at].function.as_ref()?;
        let calls = self.calls(function);
        // Forward from the last one; a call that repeats may be its own successor, and so may one whose
        // function has not come to its end.
        let split = self.last_calls.get(function).map_or(0, |last| {
            let again =
                self.commands(last.call.0)[last.call.1].repeats || (level.file, level.at) > last.inside;
            calls.partition_point(|(file, at, _)| {
                (*file, *at) < last.call || ((*file, *at) == last.call && !again)
            })
        });
        let (behind, ahead) = calls.split_at(split);
        let mut best: Option<(usize, usize, usize, Agreement)> = None;
        for &(file, at, name) in ahead.iter().take(WINDOW).chain(behind.iter().rev().take(WINDOW)) {
            let found = given.agree(&self.commands(file)[at], name, args);
            if best.as_ref().is_none_or(|(.., best)| found.score > best.score) {
                let perfect = found.perfect;
                best = Some((file, at, name, found));
                if perfect {
                    break;
                }
            }
        }
        let (file, at, name, found) = best.filter(|(.., found)| found.givers.iter().any(Option::is_some))?;
        (found.score >= 0)
            .then_some((Level { file, at, name: Some(name), givers: found.givers }, found.score))
    }

    /// How well a command agrees with a call when what a function passes on is looked for in the function's
    /// callers.
    fn through(&self, file: usize, at: usize, args: &[String], found: &Match) -> i32 {
        let mut level = Level { file, at, name: None, givers: givers(args, &found.words) };
        let mut score = found.score;
        for _ in 0..MAX_FRAMES {
            let Some((caller, more)) = self.caller(&level, args.len()) else { break };
            score += more;
            level = caller;
        }
        score
    }

    /// The line that names a program with these words, whether we play the program or not; changes nothing.
    pub(super) fn peek(&self, program: &str, args: &[String]) -> Option<SourceLine> {
        let (file, at, _) = self.best(program, args)?;
        let source = &self.files[file];
        Some(source.place(source.commands[at].line(), None))
    }

    /// The place of a line of the main script.
    pub(super) fn line(&self, line: usize) -> Option<SourceLine> {
        let main = self.files.first()?;
        // A shell that misses a closing word counts one line past the end.
        let line = line.min(main.lines.len());
        (line >= 1).then(|| main.place(line, None))
    }

    /// The line of the last call found.
    pub(super) fn last(&self) -> Option<SourceLine> {
        let (file, at) = self.last?;
        let source = &self.files[file];
        Some(source.place(source.commands[at].line(), None))
    }

    /// The name of the main script.
    pub(super) fn main(&self) -> &Path {
        self.files.first().map_or(Path::new(""), |main| &main.path)
    }

    /// The lines of the script and of the files that it reads in.
    pub(super) fn lines(&self) -> impl Iterator<Item = &str> {
        self.files.iter().flat_map(|file| &file.lines).map(String::as_str)
    }

    fn best(&self, tool: &str, args: &[String]) -> Option<(usize, usize, Match)> {
        let naming = self.naming(tool);
        // Forward from the last match first; a command that repeats may be its own successor.
        let split = self.last.map_or(0, |(file, at)| {
            let repeats = self.files[file].commands[at].repeats;
            naming.partition_point(|(f, a, _)| (*f, *a) < (file, at) || ((*f, *a) == (file, at) && !repeats))
        });
        let (behind, ahead) = naming.split_at(split);
        let (ahead, behind) = if naming.len() > WINDOW {
            (&ahead[..ahead.len().min(WINDOW)], &behind[behind.len().saturating_sub(WINDOW)..])
        } else {
            (ahead, behind)
        };
        let mut best: Option<(usize, usize, Match)> = None;
        for &(file, at, word) in ahead.iter().chain(behind) {
            let Some(known) = self.known_words(tool, (file, at, word), args) else { continue };
            let mut found = agree(&self.files[file].commands[at], word, &args[known..]);
            if known > 0 {
                // These words are in the variable.
                found.words.splice(0..0, std::iter::repeat_n(None, known));
                found.score += 3 * known as i32;
                found.perfect = false;
            }
            found.score = self.through(file, at, args, &found) + self.known_values((file, at), args, &found);
            if found.perfect {
                return Some((file, at, found));
            }
            if best.as_ref().is_none_or(|(_, _, best)| found.score > best.score) {
                best = Some((file, at, found));
            }
        }
        best.filter(|(_, _, found)| found.score > 0 || args.is_empty())
    }
}

impl Finder {
    /// How many of a call's first arguments the word that names the tool gives; `None`: it gives others.
    fn known_words(
        &self,
        tool: &str,
        (file, at, word): (usize, usize, usize),
        args: &[String],
    ) -> Option<usize> {
        let source = &self.files[file];
        let mut all = self.behind.borrow_mut();
        let behind = all
            .entry((tool.to_owned(), file, at))
            .or_insert_with(|| words_behind(&source.variables, &source.commands[at].words[word], tool));
        if behind.is_empty() {
            return Some(0);
        }
        behind.iter().filter(|words| args.starts_with(words)).map(Vec::len).max()
    }

    /// How many arguments are a value that the variable which gave them gets somewhere: `dev $LAN` and
    /// `dev $WAN` agree alike with a call otherwise.
    fn known_values(&self, (file, at): (usize, usize), args: &[String], found: &Match) -> i32 {
        let source = &self.files[file];
        let is_known = |(arg, word): &(&String, &Option<usize>)| {
            let name = word.and_then(|word| source.commands[at].words[word].variable());
            name.and_then(|name| source.variables.get(name)).is_some_and(|values| values.contains(arg))
        };
        args.iter().zip(&found.words).filter(is_known).count() as i32
    }

    fn naming(&self, tool: &str) -> Naming {
        if let Some(known) = self.naming.borrow().get(tool) {
            return Rc::clone(known);
        }
        let mut found = Vec::new();
        for (number, source) in self.files.iter().enumerate() {
            for (at, command) in source.commands.iter().enumerate() {
                if let Some(word) = tool_word(&source.variables, command, tool) {
                    found.push((number, at, word));
                }
            }
        }
        let found: Naming = found.into();
        self.naming.borrow_mut().insert(tool.to_owned(), Rc::clone(&found));
        found
    }
}

impl Source {
    fn new(path: PathBuf, text: &str, args: &[String]) -> Self {
        let commands = words::commands(text);
        Self {
            real: std::fs::canonicalize(&path).unwrap_or_else(|_| path.clone()),
            path,
            lines: text.lines().map(Into::into).collect(),
            variables: Variables::of(&commands, args).of_script(),
            commands,
        }
    }

    fn place(&self, line: usize, columns: Option<Range<usize>>) -> SourceLine {
        SourceLine {
            file: self.path.clone(),
            line,
            text: self.lines.get(line.saturating_sub(1)).cloned().unwrap_or_default(),
            columns,
            frames: Vec::new(),
            called_from: None,
        }
    }
}

/// The words that gave a tool's arguments, with what they came to.
fn givers(args: &[String], words: &[Option<usize>]) -> Vec<Option<Giver>> {
    let once = |word: usize| words.iter().filter(|other| **other == Some(word)).count() == 1;
    let of = |(arg, word): (&String, &Option<usize>)| {
        let word = (*word)?;
        Some(Giver { word, value: arg.as_str().into(), whole: once(word) })
    };
    args.iter().zip(words).map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(script: &str, calls: &[&str]) -> Vec<String> {
        let mut finder = Finder::new(&[("x.sh".into(), script.into())], &[]);
        calls
            .iter()
            .map(|call| {
                let mut words = call.split_whitespace().map(String::from);
                let tool = words.next().unwrap();
                let args: Vec<String> = words.collect();
                finder.find(&tool, &args, None).map_or("?".to_owned(), |(place, _)| place.line.to_string())
            })
            .collect()
    }

    #[test]
    fn each_call_finds_the_line_that_issued_it() {
        let script = "\
#!/bin/sh
TC=/sbin/tc
IF=eth0
$TC qdisc del dev $IF root
$TC qdisc add dev $IF root handle 1: htb default 20
for i in 10 20; do
  $TC class add dev $IF parent 1: classid 1:$i htb rate 1mbit
  $TC qdisc add dev $IF parent 1:$i sfq perturb 10
done
leaf() { tc qdisc add dev $IF $*; }
leaf parent 1:30 pfifo
iptables -t mangle -A OUTPUT -o $IF -j MARK --set-mark 1
tc qdisc show
tc qdisc show";
        let calls = [
            "tc qdisc del dev eth0 root",
            "tc qdisc add dev eth0 root handle 1: htb default 20",
            "tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit",
            "tc qdisc add dev eth0 parent 1:10 sfq perturb 10",
            "tc class add dev eth0 parent 1: classid 1:20 htb rate 1mbit",
            "tc qdisc add dev eth0 parent 1:20 sfq perturb 10",
            "tc qdisc add dev eth0 parent 1:30 pfifo",
            "iptables -t mangle -A OUTPUT -o eth0 -j MARK --set-mark 1",
            "tc qdisc show",
            "tc qdisc show",
            "modprobe ifb",
        ];
        assert_eq!(lines_of(script, &calls), ["4", "5", "7", "8", "7", "8", "11", "12", "13", "14", "?"]);
    }

    /// Lines that differ only in the variable that names the device, in a loop.
    #[test]
    fn values_of_variables_tell_lines_apart() {
        let script = "\
LAN=eth1; WAN=eth0
for i in 2 3; do
  tc qdisc add dev $LAN parent 1:$i pfifo limit 50
  tc qdisc add dev $WAN parent 1:$i pfifo limit 50
done";
        let calls = ["eth1 parent 1:2", "eth0 parent 1:2", "eth1 parent 1:3", "eth0 parent 1:3"]
            .map(|place| format!("tc qdisc add dev {place} pfifo limit 50"));
        let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
        assert_eq!(lines_of(script, &calls), ["3", "4", "3", "4"]);
    }

    #[test]
    fn a_call_by_a_variable_of_several_words_finds_its_line() {
        let script = "\
IF=eth0
TC=/sbin/tc
start() {
    U32=\"$TC filter add dev $IF protocol ip parent 1:0 prio 1 u32\"
    $U32 match ip sport 80 0xffff flowid 1:10
    $U32 match ip dport 80 0xffff flowid 1:10
}
stop() {
    U32=\"tc filter del dev $IF protocol ip parent 1:0 prio 1 u32\"
    $U32 match ip sport 80 0xffff flowid 1:10
}
start";
        let added = "tc filter add dev eth0 protocol ip parent 1:0 prio 1 u32 match ip";
        let calls = [
            &format!("{added} sport 80 0xffff flowid 1:10")[..],
            &format!("{added} dport 80 0xffff flowid 1:10"),
            "tc filter del dev eth0 protocol ip parent 1:0 prio 1 u32 match ip sport 80 0xffff flowid 1:10",
        ];
        assert_eq!(lines_of(script, &calls), ["5", "6", "10"]);
        // However long a variable claims to be, its known values are bounded.
        let long = format!("A={}\nB=\"tc {}\"\n$B qdisc show\n", "x".repeat(4000), "$A ".repeat(100_000));
        assert_eq!(lines_of(&long, &["tc qdisc show"]), ["?"]);
        // A literal line with another verb is not taken for it.
        let script = "\
T=\"tc class add dev eth0 parent 1:\"
tc qdisc add dev eth0 root handle 1: htb
$T classid 1:5 htb rate 1mbit
tc class change dev eth0 parent 1: classid 1:5 htb rate 1mbit";
        let calls = [
            "tc qdisc add dev eth0 root handle 1: htb",
            "tc class add dev eth0 parent 1: classid 1:5 htb rate 1mbit",
            "tc class change dev eth0 parent 1: classid 1:5 htb rate 1mbit",
        ];
        assert_eq!(lines_of(script, &calls), ["2", "3", "4"]);
    }

    #[test]
    fn a_call_through_functions_is_its_callers() {
        let library = "do_tc() {\n    log \"$@\"\n    $TC \"$@\" || die\n}\nfunction leaf \
        {\n  [ -n \"$1\" ] && do_tc qdisc add dev \"$@\"\n}\n";
        let script = "TC=tc\n. ./lib.sh\ndo_tc qdisc add dev eth0 root prio\nfor n in 1 2; do\n  leaf eth0 \
        parent 1:$n pfifo limit 9\ndone\nif do_tc class show; then :; fi\n";
        let files = [("x.sh".into(), script.into()), ("lib.sh".into(), library.into())];
        let mut finder = Finder::new(&files, &[]);
        let mut text_of = |call: &str| {
            let args: Vec<String> = call.split(' ').map(Into::into).collect();
            let (place, words) = finder.find("tc", &args, None).expect("it is there");
            let literal = words
                .iter()
                .map(|word| word.as_ref().map_or('-', |word| if word.literal { '=' } else { '~' }));
            format!("{}:{} {}", place.file.display(), place.line, literal.collect::<String>())
        };
        assert_eq!(text_of("qdisc add dev eth0 root prio"), "x.sh:3 ======");
        // `qdisc add dev` is in the library, in a function that a loop calls.
        assert_eq!(text_of("qdisc add dev eth0 parent 1:1 pfifo limit 9"), "x.sh:5 ~~~==~===");
        assert_eq!(text_of("qdisc add dev eth0 parent 1:2 pfifo limit 9"), "x.sh:5 ~~~==~===");
        assert_eq!(text_of("class show"), "x.sh:7 ==");
    }

    #[test]
    fn a_call_through_functions_names_them_all() {
        let script =
            "t() { tc \"$@\"; }\nleaf() {\n  t qdisc add dev \"$@\"\n}\nleaf eth0 root prio\ntc class show\n";
        let mut finder = Finder::new(&[("x.sh".into(), script.into())], &[]);
        let mut text_of = |call: &str| {
            let args: Vec<String> = call.split(' ').map(Into::into).collect();
            let (place, _) = finder.find("tc", &args, None).expect("it is there");
            let frames = place.frames.iter().map(|frame| format!(" {}:{}", frame.function, frame.line));
            format!("{}{}", place.line, frames.collect::<String>())
        };
        assert_eq!(text_of("qdisc add dev eth0 root prio"), "5 leaf:3 t:1");
        assert_eq!(text_of("class show"), "6");
    }

    /// The line of each call, the functions on its way, and each argument with its line: `=` where it is
    /// literal and may be changed.
    fn ways_of(script: &str, calls: &[&str]) -> Vec<String> {
        let mut finder = Finder::new(&[("x.sh".into(), script.into())], &[]);
        let mut text_of = |call: &&str| {
            let args: Vec<String> = call.split(' ').map(Into::into).collect();
            let (place, words) = finder.find("tc", &args, None).expect("it is there");
            let frames = place.frames.iter().map(|frame| format!(" {}:{}", frame.function, frame.line));
            let from = place.called_from.map(|(_, line)| format!(" from {line}")).unwrap_or_default();
            let word = |word: &Option<SourceWord>| match word {
                None => " -".to_owned(),
                Some(word) => format!(" {}{}", word.line, if word.literal { "=" } else { "" }),
            };
            let words: String = words.iter().map(word).collect();
            format!("{}{from}{}:{words}", place.line, frames.collect::<String>())
        };
        calls.iter().map(&mut text_of).collect()
    }

    #[test]
    fn arguments_by_number_are_the_callers() {
        let script = "add() {\n  tc class add dev $IF classid 1:$1 htb rate ${2}\n  tc qdisc add dev $IF parent 1:$1 pfifo limit $3\n}\n\
            add 10 5mbit 100\nadd 20 \"$RATE\" 100\n";
        let calls = [
            "class add dev eth0 classid 1:10 htb rate 5mbit",
            "qdisc add dev eth0 parent 1:10 pfifo limit 100",
            "class add dev eth0 classid 1:20 htb rate 6mbit",
            "qdisc add dev eth0 parent 1:20 pfifo limit 100",
        ];
        assert_eq!(
            ways_of(script, &calls),
            [
                // The class's number is a part of a word of the function: 10 must not become 1:30.
                "5 add:2: 2 2 2 2 2 5 2 2 5=",
                "5 add:3: 3 3 3 3 3 5 3 3 5=",
                "6 add:2: 2 2 2 2 2 6 2 2 6",
                "6 add:3: 3 3 3 3 3 6 3 3 6=",
            ]
        );
    }

    #[test]
    fn arguments_by_number_are_followed_through_local_variables_and_functions() {
        let script = "leaf() {\n  local dev=$1 limit=\"${2:-9}\"\n  shift 2\n  run qdisc add dev $dev \"$@\" pfifo limit $limit\n}\n\
            run() { tc \"$@\"; }\nleaf eth0 7 parent 1:1\nleaf eth1 8 root\n";
        assert_eq!(
            ways_of(
                script,
                &["qdisc add dev eth0 parent 1:1 pfifo limit 7", "qdisc add dev eth1 root pfifo limit 8"]
            ),
            ["7 leaf:4 run:6: 4 4 4 7= 7= 7= 4 4 7=", "8 leaf:4 run:6: 4 4 4 8= 8= 4 4 8=",]
        );
    }

    #[test]
    fn a_command_is_where_most_of_its_values_are() {
        let script = "shape() {\n  tc qdisc add dev $1 root handle 1: htb default 30\n  \
                      tc class add dev $1 parent 1: classid 1:1 htb rate $2\n  tc qdisc add dev $1 ingress\n}\n\
                      shape eth0 9mbit\nshape eth1 8mbit\n";
        assert_eq!(
            ways_of(
                script,
                &[
                    "qdisc add dev eth0 root handle 1: htb default 30",
                    "class add dev eth0 parent 1: classid 1:1 htb rate 9mbit",
                    "qdisc add dev eth0 ingress",
                    "qdisc add dev eth1 root handle 1: htb default 30",
                ]
            ),
            [
                "2 from 6: 2 2 2 6= 2 2 2 2 2 2",
                "6 shape:3: 3 3 3 6= 3 3 3 3 3 3 6=",
                "4 from 6: 4 4 4 6= 4",
                "2 from 7: 2 2 2 7= 2 2 2 2 2 2",
            ]
        );
    }

    #[test]
    fn what_a_function_computes_is_not_its_callers_word() {
        let script =
            "f() {\n  rate=$1\n  rate=$((rate * 9 / 10))\n  tc class add dev eth0 rate $rate\n}\nf 100\n";
        assert_eq!(ways_of(script, &["class add dev eth0 rate 90"]), ["4: 4= 4= 4= 4= 4= 4"]);
        let script = "f() {\n  shift\n  tc class add dev $1\n}\nf eth0 eth1\n";
        assert_eq!(ways_of(script, &["class add dev eth1"]), ["3: 3= 3= 3= 3"]);
    }

    #[test]
    fn a_variable_that_is_set_once_leads_to_where_it_is_set() {
        let script = "RATE=800kbps\nDEV=eth0\nCEIL=5mbit; CEIL=6mbit\nexport Q=\"9\"\nf() \
        { tc class add dev $DEV rate $1; }\n\
            tc class add dev $DEV rate $RATE ceil $CEIL quantum ${Q}\nf $RATE2\n";
        assert_eq!(
            ways_of(
                script,
                &["class add dev eth0 rate 800kbps ceil 6mbit quantum 9", "class add dev eth0 rate 7mbit"]
            ),
            // The device is used twice; which of two ceilings it was is not looked into.
            ["6: 6= 6= 6= 2 6= 1= 6= 6 6= 4=", "7 f:5: 5= 5= 5= 2 5= 7"]
        );
        // The result of arithmetic on a variable is not its value; the arithmetic counts as one more use.
        let script = "UP=900\ntc class add rate $UP ceil $((UP * 9 / 10))\n";
        assert_eq!(ways_of(script, &["class add rate 900 ceil 810"]), ["2: 2= 2= 2= 1 2= 2"]);
        // A default may have set it, too.
        let script = "UP=900\n: ${UP:=900}\ntc class add rate $UP\n";
        assert_eq!(ways_of(script, &["class add rate 900"]), ["3: 3= 3= 3= 3"]);
    }

    #[test]
    fn a_refused_word_of_a_function_is_its_own_with_the_call_beside_it() {
        let script = "f() {\n  tc qdisc add dev $1 root pfifo limitt 3\n}\nf eth0\nf eth1\n";
        let mut finder = Finder::new(&[("x.sh".into(), script.into())], &[]);
        let args: Vec<String> = "qdisc add dev eth1 root pfifo limitt 3".split(' ').map(Into::into).collect();
        let (place, _) = finder.find("tc", &args, Some(6)).expect("it is there");
        assert_eq!((place.line, place.columns, place.frames.len()), (2, Some(33..39), 0));
        assert_eq!(place.called_from, Some(("x.sh".into(), 5)));
        let (place, _) = finder.find("tc", &args, Some(3)).expect("it is there");
        assert_eq!((place.line, place.columns, place.frames.len()), (5, Some(2..6), 1));
    }

    #[test]
    fn a_line_that_resembles_does_not_take_a_call_from_a_function() {
        let script = "t() { $TC \"$@\"; }\nTC=tc\nt class add dev eth0 classid 1:20 htb rate 7mbit\n\
            eval \"$TC class add dev eth0 classid 1:10 htb rate 7mbit\"\ntc class add dev eth0 classid 1:30 \
            htb rate $R\n";
        let calls =
            ["1:20", "1:10", "1:30"].map(|id| format!("tc class add dev eth0 classid {id} htb rate 7mbit"));
        assert_eq!(lines_of(script, &calls.each_ref().map(String::as_str)), ["3", "4", "5"]);
    }

    #[test]
    fn text_for_eval_may_be_run_by_another_command() {
        let script = "IF=eth0\nCMD=\"sudo tc qdisc add dev $IF parent 1:2 handle 20: netem\"\n\
            CMD+=\" delay 50ms\"\nif true; then\n  eval \"$CMD\"\nelse\n  \
            sudo tc qdisc add dev \"$IF\" parent 1:2 handle 20: sfq\nfi\n";
        let calls = ["tc qdisc add dev eth0 parent 1:2 handle 20: netem delay 50ms"];
        assert_eq!(lines_of(script, &calls), ["5"]);
        assert_eq!(lines_of(&script.replace("sudo ", ""), &calls), ["5"]);
    }

    #[test]
    fn text_for_eval_is_at_its_line_and_is_not_changed() {
        let script = "TC=tc\nIF=eth0\ntc qdisc del dev eth0 root\nif true; then\n  eval \"$TC class add dev \
        $IF classid 1:1 htb rate 9mbit\"\nfi\n";
        let mut finder = Finder::new(&[("x.sh".into(), script.into())], &[]);
        let args: Vec<String> =
            "class add dev eth0 classid 1:1 htb rate 9mbit".split(' ').map(Into::into).collect();
        let (place, words) = finder.find("tc", &args, None).expect("it is there");
        let words: Vec<_> = words.into_iter().flatten().collect();
        assert_eq!((place.line, words.len(), words.iter().any(|word| word.literal)), (5, 9, false));
    }

    #[test]
    fn what_is_passed_on_without_a_caller_in_sight_is_not_to_be_changed() {
        let mut finder =
            Finder::new(&[("x.sh".into(), "t() { tc $* dev eth0; }\neval $(cat plan)\n".into())], &[]);
        let args: Vec<String> = "qdisc add root pfifo dev eth0".split(' ').map(Into::into).collect();
        let (place, words) = finder.find("tc", &args, None).expect("it is there");
        assert_eq!((place.line, words.iter().flatten().any(|word| word.literal)), (1, false));
    }

    #[test]
    fn the_word_at_fault_is_underlined_even_when_a_variable_gave_it() {
        let script = "R=12mbitt\ntc qdisc add dev eth0 root \\\n   tbf rate $R burst 10k";
        let mut finder = Finder::new(&[("x.sh".into(), script.into())], &[]);
        let args: Vec<String> =
            "qdisc add dev eth0 root tbf rate 12mbitt burst 10k".split(' ').map(Into::into).collect();
        let (place, words) = finder.find("tc", &args, Some(6)).unwrap();
        assert_eq!((place.line, place.columns), (3, Some(7..11)));
        assert_eq!(
            words.iter().flatten().map(|word| word.literal).collect::<Vec<_>>()[6..9],
            [true, true, true]
        );
        let (place, _) = finder.find("tc", &args, Some(7)).unwrap();
        assert_eq!((place.line, place.columns), (3, Some(12..14)));
    }

    #[test]
    fn a_long_flat_script_goes_forward_line_by_line() {
        let script: String = (0..3000)
            .map(|n| format!("tc class add dev eth0 parent 1: classid 1:{n} drr quantum 1514\n"))
            .collect();
        let calls: Vec<String> = script.lines().map(Into::into).collect();
        let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
        let expected: Vec<String> = (1..=3000).map(|n: usize| n.to_string()).collect();
        assert_eq!(lines_of(&script, &calls), expected);
    }

    #[test]
    fn no_text_and_no_call_makes_the_search_panic() {
        let script = "IF=${1:-eth0}\nfor i in 1 2; do\n $TC \"qdisc\" add dev 'x' \\\n root $(a `b` \"c\") \
        é2>&1 <<E\nE\ndone | tc -b -";
        let letters: Vec<char> = script.chars().collect();
        // A linear congruential generator (Knuth's multiplier): the same cases every time.
        let mut state = 1_u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap_or(0) % below
        };
        for _ in 0..2000 {
            let mut text = letters.clone();
            for _ in 0..=draw(6) {
                let at = draw(text.len());
                match draw(3) {
                    0 => text[at] = letters[draw(letters.len())],
                    1 => text.insert(at, letters[draw(letters.len())]),
                    _ => text.truncate(at.max(1)),
                }
            }
            let text: String = text.into_iter().collect();
            let args: Vec<String> = text.split_whitespace().rev().take(draw(8)).map(Into::into).collect();
            let mut finder = Finder::new(&[("x.sh".into(), text.clone())], &args);
            for tool in ["tc", "qdisc", ""] {
                if let Some((place, _)) = finder.find(tool, &args, Some(draw(8))) {
                    assert!(place.line >= 1 && place.line <= text.lines().count(), "{text}");
                }
            }
        }
    }

    /// A tool behind `ip netns exec` may be ip again, be named by a variable, or stand in a shell's text.
    #[test]
    fn calls_in_a_namespace_have_their_lines() {
        let script = "#!/bin/bash\nTC=tc\nip netns exec a ip link set v0 up\n\
            ip netns exec a $TC qdisc add dev v0 root fq\n\
            ip netns exec a bash -c 'tc class add dev v0 classid 1:1 htb'\n\
            ip netns exec a tc filter add dev v0 matchall\n";
        let calls = [
            "ip link set v0 up",
            "tc qdisc add dev v0 root fq",
            "tc class add dev v0 classid 1:1 htb",
            "tc filter add dev v0 matchall",
        ];
        assert_eq!(lines_of(script, &calls), ["3", "4", "5", "6"]);
    }
}
