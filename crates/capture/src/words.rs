//! A script's text as commands and words, roughly: enough to find the origin of a call, not to run anything.

use std::ops::Range;
use std::rc::Rc;

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Word {
    /// The word without quotes; what a variable or a substitution would fill in is [`Word::HOLE`].
    pub(super) text: String,
    /// The word as it is written.
    pub(super) raw: String,
    /// The physical line, from 1.
    pub(super) line: usize,
    /// Columns in that line, in characters from 0.
    pub(super) columns: Range<usize>,
    /// It is a part of a word that a shell reads again (`eval "$TC qdisc …"`); the columns are the whole
    /// word's.
    pub(super) within: bool,
}

impl Word {
    /// Stands in [`Word::text`] for text known only when the script runs.
    pub(super) const HOLE: char = '\u{0}';

    /// True when nothing in the word depends on the run.
    pub(super) fn is_literal(&self) -> bool {
        !self.text.contains(Self::HOLE)
    }
}

impl Word {
    /// The variable that the word consists of: `$RATE`, `"${RATE}"`.
    pub(super) fn variable(&self) -> Option<&str> {
        let bare = self.raw.trim_matches('"').strip_prefix('$')?;
        let name = bare.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(bare);
        is_name(name).then_some(name)
    }

    /// All variables that it uses; in arithmetic whatever may be one.
    pub(super) fn variables(&self) -> impl Iterator<Item = &str> {
        let arithmetic = self.raw.contains("((");
        let names = self.raw.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
        names.filter(move |name| {
            let at = name.as_ptr() as usize - self.raw.as_ptr() as usize;
            let before = self.raw[..at].trim_end_matches(['{', '#', '!']);
            is_name(name) && (arithmetic || before.ends_with('$'))
        })
    }
}

impl Word {
    /// The numbers of the arguments that it uses without a default: `$1`, `${2}mbit`, not `${3:-10mbit}`.
    pub(super) fn arguments(&self) -> impl Iterator<Item = usize> {
        expanded(&self.raw).filter_map(|rest| {
            let braced = rest.strip_prefix('{');
            let text = braced.unwrap_or(rest);
            let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
            // `$12` is `$1` and a 2.
            let digits = if braced.is_some() { digits } else { digits.min(1) };
            let has_default = braced.is_some() && text[digits..].starts_with([':', '-', '=', '+', '?']);
            text[..digits].parse().ok().filter(|number| *number > 0 && !has_default)
        })
    }
}

/// What stands behind each `$` of a raw word that the shell expands: not in single quotes, as a program of
/// awk's is.
fn expanded(raw: &str) -> impl Iterator<Item = &str> {
    // Of each `$(…)` around a letter, whether it is in double quotes.
    let mut quoted = vec![false];
    let (mut single, mut escaped, mut before) = (false, false, ' ');
    raw.char_indices().filter_map(move |(at, letter)| {
        let is_escaped = std::mem::replace(&mut escaped, false);
        let previous = std::mem::replace(&mut before, letter);
        let double = quoted.last().copied().unwrap_or(false);
        if single {
            single = letter != '\'';
            return None;
        }
        match letter {
            _ if is_escaped => before = ' ',
            '\\' => escaped = true,
            '\'' if !double => single = true,
            '"' => quoted.iter_mut().last().into_iter().for_each(|quoted| *quoted = !*quoted),
            '(' if previous == '$' => quoted.push(false),
            ')' if quoted.len() > 1 && !double => drop(quoted.pop()),
            '$' => return Some(&raw[at + 1..]),
            _ => {}
        }
        None
    })
}

/// A simple command: words between separators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) words: Vec<Word>,
    /// Stands in a loop or a function, so it may run more than once.
    pub(super) repeats: bool,
    /// The function whose body contains it.
    pub(super) function: Option<Rc<str>>,
}

/// Words that may precede a command's name.
const BEFORE: [&str; 11] = ["if", "then", "else", "elif", "while", "until", "do", "!", "{", "time", "exec"];

impl Command {
    /// The word that calls a function of this name, if the command does.
    pub(super) fn calls(&self, function: &str) -> Option<usize> {
        let at = self.words.iter().position(|word| !Command::leads(word))?;
        let word = &self.words[at];
        (word.is_literal() && word.text == function).then_some(at)
    }

    /// The variable that a word sets, as `NAME=value` before a command or behind `export` and its like; or as
    /// one of the names behind `read` and `for`, whose values are not known.
    pub(super) fn sets(&self, word: usize) -> Option<&str> {
        const SETTERS: [&str; 5] = ["export", "local", "declare", "typeset", "readonly"];
        const UNKNOWN: [&str; 6] = ["read", "for", "select", "getopts", "unset", "mapfile"];
        let name =
            |word: &Word| word.raw.split_once('=').map(|(name, _)| name.trim_end_matches('+')).map(str::len);
        let here = &self.words[word];
        // `${NAME:=value}`
        if let Some((before, _)) = here.raw.split_once(":=")
            && let Some((_, name)) = before.rsplit_once('{')
            && is_name(name)
        {
            return Some(name);
        }
        let first =
            self.words.iter().find(|word| !Command::leads(word)).map_or("", |word| word.text.as_str());
        if UNKNOWN.contains(&first) && is_name(&here.text) {
            return Some(&here.text);
        }
        let before = self.words[..word].iter().all(Command::leads);
        let length = name(here).filter(|_| before || SETTERS.contains(&first))?;
        is_name(&here.raw[..length]).then_some(&here.raw[..length])
    }

    /// Whether a word may precede a command's name.
    pub(super) fn leads(word: &Word) -> bool {
        BEFORE.contains(&word.text.as_str())
            || word.raw.split_once('=').is_some_and(|(name, _)| is_name(name))
    }

    /// The word for all arguments of the script or function: `"$@"`, `$*`.
    pub(super) fn passes_on(&self) -> Option<usize> {
        self.words
            .iter()
            .position(|word| ["$@", "$*", "${@", "${*", "${1+\"$@"].iter().any(|all| word.raw.contains(all)))
    }

    /// The line where the command begins.
    pub(super) fn line(&self) -> usize {
        self.words.first().map_or(1, |word| word.line)
    }
}

/// Splits a script into its commands. Bad syntax gives fewer or stranger commands, never an error.
pub(super) fn commands(text: &str) -> Vec<Command> {
    let letters: Vec<char> = text.chars().collect();
    let mut reader = Reader::new(&letters);
    reader.read();
    let mut commands = Vec::with_capacity(reader.commands.len());
    for command in reader.commands {
        let inner = read_anew(&command);
        commands.push(command);
        commands.extend(inner);
    }
    commands
}

/// What bash reads in its own way, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bashism {
    /// The physical line, from 1.
    pub(super) line: usize,
    /// Columns in that line, in characters from 0.
    pub(super) columns: Range<usize>,
    pub(super) kind: BashismKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BashismKind {
    /// A redirection of both outputs of a command: `&>file`.
    BothOutputs {
        /// The command's words.
        command: Vec<Word>,
    },
    /// Several words in one: `{1..5}`.
    Braces,
    /// A text with escapes: `$'a\tb'`.
    DollarQuote,
    /// Arithmetic as a command: `((n++))`.
    Arithmetic,
    /// The old form of arithmetic: `$[n+1]`.
    DollarBracket,
    /// The use of a variable that bash sets itself, and that has no default there.
    Variable(&'static str),
}

/// Variables that bash sets itself, and a shell of POSIX does not.
const OWN_VARIABLES: [&str; 14] = [
    "BASH",
    "BASHPID",
    "BASH_SOURCE",
    "BASH_VERSION",
    "EPOCHSECONDS",
    "EUID",
    "FUNCNAME",
    "HOSTNAME",
    "HOSTTYPE",
    "MACHTYPE",
    "OSTYPE",
    "RANDOM",
    "SECONDS",
    "UID",
];

/// The texts of a script's here-documents.
pub(super) fn here_documents(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let mut reader = Reader::new(&letters);
    reader.read();
    reader.here_documents
}

/// What bash reads in its own way, in the order of the text.
pub(super) fn bashisms(text: &str) -> Vec<Bashism> {
    let letters: Vec<char> = text.chars().collect();
    let mut reader = Reader::new(&letters);
    reader.read();
    reader.bashisms.sort_by_key(|found| (found.line, found.columns.start));
    reader.bashisms
}

/// Whether bash makes several words of a word, of which the quoted letters are left out: `1:{1..5}`. Its
/// other form (`{a,b}`) is also how nft writes a set.
fn has_range(unquoted: &str) -> bool {
    unquoted.split('{').skip(1).any(|rest| {
        let Some((inside, _)) = rest.split_once('}') else { return false };
        let ends: Vec<&str> = inside.split("..").collect();
        let is_letter = |end: &&str| end.len() == 1 && end.chars().all(|letter| letter.is_ascii_alphabetic());
        (2..=3).contains(&ends.len())
            && (ends.iter().all(|end| end.parse::<i64>().is_ok()) || ends[..2].iter().all(is_letter))
    })
}

/// Shells that are given a command by `-c`.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "ash", "busybox"];

/// The commands that `eval` and `sh -c` make of their words, each word at the place of the whole.
fn read_anew(command: &Command) -> Vec<Command> {
    let of = |at: usize| command.words.get(at).map_or("", |word| word.text.as_str());
    let first = command.words.iter().position(|word| !BEFORE.contains(&word.text.as_str())).unwrap_or(0);
    let shell = of(first).rsplit('/').next().is_some_and(|name| SHELLS.contains(&name));
    let words = match of(first) {
        "eval" => &command.words[first + 1..],
        // What runs in a network namespace may be the same tool.
        "ip" => return in_namespace(&command.words[first..], command),
        _ if shell && of(first + 1) == "-c" => {
            &command.words[first + 2..(first + 3).min(command.words.len())]
        }
        _ => return Vec::new(),
    };
    let mut all = vec![Vec::new()];
    for word in words {
        let open = opened(&word.text);
        let texts: Vec<&str> = open.split_whitespace().collect();
        let raws: Vec<&str> = word.raw.trim_matches(['"', '\'']).split_whitespace().collect();
        for (at, text) in texts.iter().enumerate() {
            let raw = if raws.len() == texts.len() { raws[at] } else { text };
            let plain = text.trim_end_matches(';');
            if let Some(last) =
                all.last_mut().filter(|_| !plain.is_empty() && !["&&", "||", "|"].contains(&plain))
            {
                let (text, raw) = (plain.to_owned(), raw.trim_end_matches(';').to_owned());
                last.push(Word { text, raw, within: true, ..word.clone() });
            }
            if plain != *text || ["&&", "||", "|"].contains(text) {
                all.push(Vec::new());
            }
        }
    }
    let made = |words: Vec<Word>| Command { words, ..command.clone() };
    all.into_iter().filter(|words| !words.is_empty()).map(made).collect()
}

/// The commands that `ip netns exec NAME` runs where they are not found in the whole: ip again, a tool by a
/// variable, what a shell is given.
fn in_namespace(words: &[Word], command: &Command) -> Vec<Command> {
    let at = words.iter().position(|word| word.text == "netns");
    let Some([exec, _, first, ..]) =
        at.and_then(|at| words.get(at + 1..)).filter(|_| words.len() < MAX_WORDS)
    else {
        return Vec::new();
    };
    if exec.text != "exec" || first.is_literal() && !INSIDE.contains(&first.text.as_str()) {
        return Vec::new();
    }
    let rest = words.iter().skip_while(|word| !std::ptr::eq(*word, first)).cloned().collect();
    let inner = Command { words: rest, ..command.clone() };
    let read = read_anew(&inner);
    if read.is_empty() { vec![inner] } else { read }
}

/// What runs commands of its own behind `ip netns exec NAME`.
const INSIDE: [&str; 7] = ["ip", "eval", "sh", "bash", "dash", "ash", "busybox"];
/// The most words of a command in a namespace that is read again: it may be in one again.
const MAX_WORDS: usize = 256;

/// A text that is read again: variables that were kept from the first reading are filled in by the second.
fn opened(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        if letter != '$' {
            out.push(letter);
            continue;
        }
        out.push(Word::HOLE);
        while letters.next_if(|next| next.is_ascii_alphanumeric() || "_{}".contains(*next)).is_some() {}
    }
    out
}

pub(super) fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_') && letters.all(is_of_name)
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_'
}

/// How many `$(…)` within one another are read as commands.
const MAX_NESTED: usize = 16;

struct Reader<'t> {
    letters: &'t [char],
    at: usize,
    line: usize,
    line_start: usize,
    /// The `$(…)` that we are in.
    nested: usize,
    depth: usize,
    /// The function whose body follows.
    named: Option<Rc<str>>,
    /// The functions whose bodies we are in, each with the depth of its body.
    functions: Vec<(Rc<str>, usize)>,
    words: Vec<Word>,
    commands: Vec<Command>,
    /// Here-documents whose text begins after this line.
    heredocs: Vec<(String, bool)>,
    /// The texts of those that were passed.
    here_documents: Vec<String>,
    bashisms: Vec<Bashism>,
}

impl<'t> Reader<'t> {
    fn new(letters: &'t [char]) -> Self {
        Self {
            letters,
            at: 0,
            line: 1,
            line_start: 0,
            nested: 0,
            depth: 0,
            named: None,
            functions: Vec::new(),
            words: Vec::new(),
            commands: Vec::new(),
            heredocs: Vec::new(),
            here_documents: Vec::new(),
            bashisms: Vec::new(),
        }
    }

    fn read(&mut self) {
        while let Some(letter) = self.peek(0) {
            match letter {
                '\\' if self.peek(1) == Some('\n') => {
                    self.next();
                    self.next();
                }
                '\n' => {
                    self.next();
                    self.end_command();
                    self.skip_heredocs();
                }
                ' ' | '\t' | '\r' => {
                    self.next();
                }
                '#' => {
                    while self.peek(0).is_some_and(|letter| letter != '\n') {
                        self.next();
                    }
                }
                '(' if self.begins_function() => {}
                ';' | '&' | '|' | '(' | ')' => {
                    if letter == '&' && self.peek(1) == Some('>') {
                        self.bashism(2, BashismKind::BothOutputs { command: self.words.clone() });
                    } else if letter == '(' && self.begins_arithmetic() {
                        self.bashism(2, BashismKind::Arithmetic);
                    }
                    self.next();
                    self.end_command();
                }
                '<' | '>' => self.redirection(),
                _ => self.word(),
            }
        }
        self.end_command();
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.letters.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<char> {
        let letter = self.peek(0)?;
        self.at += 1;
        if letter == '\n' {
            self.line += 1;
            self.line_start = self.at;
        }
        Some(letter)
    }

    /// Notes what is bash's and begins here.
    fn bashism(&mut self, letters: usize, kind: BashismKind) {
        let at = self.at - self.line_start;
        self.bashisms.push(Bashism { line: self.line, columns: at..at + letters, kind });
    }

    /// Whether `((…))` is a command here, and not one subshell in another: what its second bracket opens ends
    /// directly before what its first does.
    fn begins_arithmetic(&self) -> bool {
        if self.peek(1) != Some('(') || !self.words.iter().all(Command::leads) {
            return false;
        }
        let mut depth = 0_usize;
        let rest = self.letters.get(self.at..).unwrap_or_default();
        let inner_end = rest.iter().take_while(|letter| **letter != '\n').position(|letter| {
            match letter {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            *letter == ')' && depth == 1
        });
        inner_end.is_some_and(|at| rest.get(at + 1) == Some(&')'))
    }

    /// Takes in `name ()` or `function name ()`: its body comes next, and may run more than once.
    fn begins_function(&mut self) -> bool {
        let blank = |letter: &&char| matches!(letter, ' ' | '\t');
        let rest = self.letters.get(self.at + 1..).unwrap_or_default();
        let closes = rest.iter().find(|letter| !blank(letter)) == Some(&')');
        let given = self.words.first().is_some_and(|word| word.text == "function");
        let name = match self.words.as_slice() {
            [name] if closes && !given => name,
            [_, name] if closes && given => name,
            _ => return false,
        };
        self.named = Some(name.text.as_str().into());
        // The brace that follows counts.
        self.depth -= usize::from(given && self.depth > 0);
        self.words.clear();
        while self.next().is_some_and(|letter| letter != ')') {}
        true
    }

    fn end_command(&mut self) {
        if self.words.is_empty() {
            return;
        }
        let words = std::mem::take(&mut self.words);
        if let [function, name, ..] = words.as_slice()
            && function.text == "function"
        {
            self.functions.push((name.text.as_str().into(), self.depth));
        }
        let function = self.functions.last().map(|(name, _)| Rc::clone(name));
        self.commands.push(Command { words, repeats: self.depth > 0, function });
    }

    /// `2>file`, `<<END`, `>&2`: no words of the command.
    fn redirection(&mut self) {
        let mut operator = String::new();
        while let Some(letter @ ('<' | '>' | '&' | '-')) = self.peek(0) {
            // The dash belongs to `<<-` and `>&-` only.
            if letter == '-' && !operator.ends_with(['<', '&']) {
                break;
            }
            operator.push(letter);
            self.next();
        }
        while matches!(self.peek(0), Some(' ' | '\t')) {
            self.next();
        }
        if operator == "<<" || operator == "<<-" {
            let before = self.words.len();
            self.word();
            if let Some(end) = self.words.drain(before..).next() {
                self.heredocs.push((end.text, operator == "<<-"));
            }
        } else if self.peek(0).is_some_and(|letter| !letter.is_whitespace()) {
            let before = self.words.len();
            self.word();
            self.words.truncate(before);
        }
    }

    /// Takes in the commands of a substitution, whose text begins here and ends at `end`: they run before the
    /// command that contains it. Arithmetic (`is_sum`) has those of the substitutions within it.
    fn substitution(&mut self, (begin, line, line_start): (usize, usize, usize), end: usize, is_sum: bool) {
        if self.nested == MAX_NESTED {
            return;
        }
        let mut inside = Reader {
            at: begin,
            line,
            line_start,
            nested: self.nested + 1,
            depth: self.depth,
            functions: self.functions.clone(),
            ..Reader::new(&self.letters[..end])
        };
        if is_sum {
            while let Some(letter) = inside.peek(0) {
                match letter {
                    '$' => inside.hole(),
                    _ => _ = inside.next(),
                }
            }
        } else {
            inside.read();
        }
        self.commands.append(&mut inside.commands);
        self.bashisms.append(&mut inside.bashisms);
    }

    fn skip_heredocs(&mut self) {
        for (end, tabs) in std::mem::take(&mut self.heredocs) {
            let mut body = String::new();
            while self.peek(0).is_some() {
                let mut line = String::new();
                while let Some(letter) = self.next() {
                    if letter == '\n' {
                        break;
                    }
                    line.push(letter);
                }
                let line = if tabs { line.trim_start_matches('\t') } else { &line };
                if line == end {
                    break;
                }
                body.push_str(line);
                body.push('\n');
            }
            self.here_documents.push(body);
        }
    }

    fn word(&mut self) {
        let (start, line, line_start) = (self.at, self.line, self.line_start);
        let (mut text, mut unquoted) = (String::new(), String::new());
        let mut quote: Option<char> = None;
        while let Some(letter) = self.peek(0) {
            match (letter, quote) {
                ('\'', None) | ('"', None) => quote = Some(letter),
                ('\'', Some('\'')) | ('"', Some('"')) => quote = None,
                ('\\', None | Some('"')) => {
                    self.next();
                    match self.peek(0) {
                        Some('\n') | None => {}
                        Some(escaped) => text.push(escaped),
                    }
                }
                ('$', None | Some('"')) => {
                    if quote.is_none() && self.peek(1) == Some('\'') {
                        self.bashism(2, BashismKind::DollarQuote);
                    }
                    if self.peek(1) == Some('[') {
                        self.bashism(2, BashismKind::DollarBracket);
                    }
                    self.hole();
                    text.push(Word::HOLE);
                    continue;
                }
                ('`', None | Some('"')) => {
                    self.next();
                    let begin = (self.at, self.line, self.line_start);
                    while let Some(letter) = self.peek(0).filter(|letter| *letter != '`') {
                        // What is behind a backslash is another within, or a letter of it.
                        if letter == '\\' {
                            self.next();
                        }
                        self.next();
                    }
                    self.substitution(begin, self.at, false);
                    text.push(Word::HOLE);
                }
                (' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '(' | ')' | '<' | '>', None) => break,
                (_, None) => {
                    text.push(letter);
                    unquoted.push(letter);
                }
                _ => text.push(letter),
            }
            if self.next().is_none() {
                break;
            }
        }
        if self.at == start {
            // Nothing here is a word: take one letter so that the reader always moves.
            self.next();
            return;
        }
        let raw: String = self.letters[start..self.at].iter().collect();
        // The number of `2>file` is part of the redirection.
        if matches!(self.peek(0), Some('<' | '>')) && raw.chars().all(|l| l.is_ascii_digit()) {
            return;
        }
        self.keyword(&raw);
        let at = start.saturating_sub(line_start);
        let columns = at..at + raw.chars().count();
        if has_range(&unquoted) {
            self.bashisms.push(Bashism { line, columns: columns.clone(), kind: BashismKind::Braces });
        }
        self.words.push(Word { text, columns, raw, line, within: false });
    }

    /// `$name`, `${…}`, `$(…)`, `$((…))`.
    fn hole(&mut self) {
        self.own_variable();
        self.next();
        let (open, close) = match self.peek(0) {
            Some('{') => ('{', '}'),
            Some('(') => ('(', ')'),
            _ => {
                let special = self.peek(0).is_some_and(|letter| "@*#?$!-0123456789".contains(letter));
                if special {
                    self.next();
                } else {
                    while self.peek(0).is_some_and(is_of_name) {
                        self.next();
                    }
                }
                return;
            }
        };
        let begin = (self.at + 1, self.line, self.line_start);
        let is_command = open == '(';
        let is_sum = is_command && self.peek(1) == Some('(');
        let mut depth = 0_usize;
        while let Some(letter) = self.next() {
            if letter == open {
                depth += 1;
            } else if letter == close {
                depth -= 1;
                if depth == 0 {
                    break;
                }
            }
        }
        if is_command {
            let end = if depth == 0 { self.at - 1 } else { self.at };
            self.substitution(begin, end.max(begin.0), is_sum);
        }
    }

    /// Notes a variable of bash's whose value is asked for here.
    fn own_variable(&mut self) {
        let braced = usize::from(self.peek(1) == Some('{'));
        let rest = self.letters.get(self.at + 1 + braced..).unwrap_or_default();
        let longest = OWN_VARIABLES.iter().map(|name| name.len()).max().unwrap_or(0) + 1;
        let name: String = rest.iter().take(longest).take_while(|letter| is_of_name(**letter)).collect();
        let behind = rest.get(name.len());
        // `${UID:-0}`, `${UID+x}`: the script knows that it may be unset.
        if braced == 1 && behind.is_some_and(|letter| ":-=+?".contains(*letter)) {
            return;
        }
        if let Some(own) = OWN_VARIABLES.iter().find(|own| **own == name) {
            self.bashism(1 + 2 * braced + name.len(), BashismKind::Variable(own));
        }
    }

    fn keyword(&mut self, raw: &str) {
        // Only where a command may begin; `do` may also follow a `;`.
        if !self.words.is_empty() {
            return;
        }
        match raw {
            "do" | "{" | "function" => self.depth += 1,
            "done" | "}" => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
        if raw == "{"
            && let Some(name) = self.named.take()
        {
            self.functions.push((name, self.depth));
        }
        self.functions.retain(|(_, depth)| *depth <= self.depth);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(script: &str) -> Vec<String> {
        commands(script)
            .iter()
            .map(|command| {
                let words: Vec<String> =
                    command.words.iter().map(|word| word.text.replace(Word::HOLE, "*")).collect();
                let mark = if command.repeats { "+" } else { "" };
                format!("{}{mark} {}", command.line(), words.join(" "))
            })
            .collect()
    }

    #[test]
    fn a_script_becomes_commands_with_their_lines() {
        let script = "#!/bin/sh\nIF=eth0 # the device\ntc qdisc del dev $IF root 2>/dev/null || true\n\
            for i in 1 2; do\n  tc class add dev \"$IF\" \\\n    classid 1:$i htb rate ${R:-1mbit}\ndone\n\
            tc -batch - <<EOF\nqdisc add dev eth9 root pfifo\nEOF\nip link set $(cat x | head) up";
        assert_eq!(
            texts(script),
            [
                "2 IF=eth0",
                "3 tc qdisc del dev * root",
                "3 true",
                "4 for i in 1 2",
                "4+ do",
                "5+ tc class add dev * classid 1:* htb rate *",
                "7 done",
                "8 tc -batch -",
                "11 cat x",
                "11 head",
                "11 ip link set * up",
            ]
        );
    }

    #[test]
    fn substitutions_are_commands_before_the_one_around_them() {
        assert_eq!(
            texts(
                "if ! out=$(tc qdisc add dev $IF root pfifo 2>&1); then\n  echo \"`ip link`: \
                 $(\n    tc \"$(which x)\" show)\" $((1 + $(d e))) ${A:-$(b)}\nfi\nf() { x=$(c); }"
            ),
            [
                "1 tc qdisc add dev * root pfifo",
                "1 if ! out=*",
                "1 then",
                "2 ip link",
                "3 which x",
                "3 tc * show",
                "3 d e",
                "2 echo *: * * *",
                "4 fi",
                "5+ c",
                "5+ { x=*",
                "5 }",
            ]
        );
        assert_eq!(texts("x=`a \\`b\\` c` d"), ["1 a `b` c", "1 x=* d"]);
        // Only so many within one another.
        let deep = "$(a ".repeat(40);
        assert_eq!(commands(&deep).len(), MAX_NESTED + 1);
    }

    #[test]
    fn what_is_bash_s_is_found() {
        let text = "a &>x\nb >x 2>&1\nc '&>x' # &>x\nd && e &> x; x=$(f &>x)\ncat <<E\ng &>x\nE\nh 2>&1 &\n\
            i >&2\nfor i in {1..5} 1:{a..c} {1..9..2}; do :; done\nj '{1..5}' {a,b} {1..$n} {} ${x} {1..a}\n\
            IFS=$'\\n'; k \"$'x'\" '$UID' \\$UID $UIDS \"$UID${EUID}$(l $RANDOM)${HOSTNAME:-x}\"\n\
            if ((n++)); then ((a = (b) + 1)); ((c); (d)); x=$(( (1) )); ( (e) ); fi\n\
            rate $[RATE*9/10]kbit \"$[a]\" '$[b]' \\$[c]";
        let found: Vec<_> = bashisms(text)
            .into_iter()
            .map(|found| match found.kind {
                BashismKind::BothOutputs { command } => {
                    let words: Vec<String> = command.into_iter().map(|word| word.text).collect();
                    (found.line, found.columns, words.join(" "))
                }
                BashismKind::Braces => (found.line, found.columns, "{}".to_owned()),
                BashismKind::DollarQuote => (found.line, found.columns, "$'".to_owned()),
                BashismKind::Arithmetic => (found.line, found.columns, "((".to_owned()),
                BashismKind::DollarBracket => (found.line, found.columns, "$[".to_owned()),
                BashismKind::Variable(name) => (found.line, found.columns, name.to_owned()),
            })
            .collect();
        let expected = [
            (1, 2..4, "a"),
            (4, 7..9, "e"),
            (4, 19..21, "f"),
            (10, 9..15, "{}"),
            (10, 16..24, "{}"),
            (10, 25..34, "{}"),
            (12, 4..6, "$'"),
            (12, 40..44, "UID"),
            (12, 44..51, "EUID"),
            (12, 55..62, "RANDOM"),
            (13, 3..5, "(("),
            (13, 17..19, "(("),
            (14, 5..7, "$["),
            (14, 23..25, "$["),
        ];
        assert_eq!(found, expected.map(|(line, columns, words)| (line, columns, words.to_owned())));
    }

    #[test]
    fn arguments_in_single_quotes_are_other_programs() {
        let used = |raw: &str| {
            let (raw, text) = (raw.to_owned(), String::new());
            let word = Word { text, raw, line: 1, columns: 0..0, within: false };
            word.arguments().collect::<Vec<_>>()
        };
        for (raw, numbers) in [
            ("$1", &[1][..]),
            ("\"it's $2\"", &[2]),
            ("'{print $5}'", &[]),
            ("$(ip route | awk '/default/ {print $5}')", &[]),
            ("\"$(awk '{print $2}' \"$3\") $4\"", &[3, 4]),
            ("\\$1$2", &[2]),
            ("${3:-10mbit}", &[]),
        ] {
            assert_eq!(used(raw), numbers, "{raw}");
        }
    }

    #[test]
    fn what_is_read_anew_is_commands_of_its_line() {
        assert_eq!(
            texts("a\neval \"$TC qdisc add dev \\$IF root; tc class show\" && b\nsh -c 'tc qdisc show'"),
            [
                "1 a",
                "2 eval * qdisc add dev $IF root; tc class show",
                "2 * qdisc add dev * root",
                "2 tc class show",
                "2 b",
                "3 sh -c tc qdisc show",
                "3 tc qdisc show",
            ]
        );
    }

    #[test]
    fn unfinished_text_ends_without_a_panic() {
        let script = "tc \"a $(b `c ${d 'e\\";
        for end in 0..=script.len() {
            commands(&script[..end]);
        }
        commands("<<\n<<-\n>\n2>\n)\n((\n$");
    }
}
