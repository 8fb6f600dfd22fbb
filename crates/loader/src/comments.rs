//! Names of classes from the comments of scripts and batches. A comment is a name only where it certainly
//! belongs to one class; docs/policy.md, *Names from comments*, has the rule.

use std::collections::{BTreeMap, BTreeSet};
use tidegate_inspect::{ClassNames, Source, SourceLocation, Step};
use tidegate_packet::Handle;
use tidegate_policy::{Op, Verb};
use tidegate_syntax::units::parse_classid;

/// A name has at most so many characters and words; longer comments are explanations.
const LONGEST: usize = 32;
const MOST_WORDS: usize = 4;

/// Words of comments that say what is done, or to what, or remark on it, rather than what a class is for.
const NO_NAMES: [&str; 178] = [
    "above",
    "add",
    "always",
    "an",
    "are",
    "aren't",
    "attention",
    "avoid",
    "bad",
    "band",
    "bands",
    "be",
    "because",
    "below",
    "beware",
    "broken",
    "bug",
    "buggy",
    "bugs",
    "but",
    "can",
    "can't",
    "cannot",
    "careful",
    "caution",
    "change",
    "check",
    "child",
    "children",
    "class",
    "classes",
    "config",
    "configure",
    "could",
    "create",
    "define",
    "deprecated",
    "device",
    "disabled",
    "ditto",
    "do",
    "does",
    "doesn't",
    "don't",
    "done",
    "duplicate",
    "echo",
    "enabled",
    "eof",
    "every",
    "example",
    "exit",
    "experiment",
    "experimental",
    "fails",
    "filter",
    "filters",
    "fix",
    "fixed",
    "fixes",
    "fixme",
    "guess",
    "guessed",
    "hack",
    "had",
    "half",
    "has",
    "have",
    "here",
    "hfsc",
    "htb",
    "i",
    "if",
    "incorrect",
    "instead",
    "interface",
    "is",
    "isn't",
    "later",
    "leaf",
    "limit",
    "make",
    "may",
    "maybe",
    "misnamed",
    "missing",
    "mistake",
    "modprobe",
    "must",
    "mustn't",
    "n.b",
    "nb",
    "need",
    "needed",
    "needs",
    "never",
    "no",
    "nolint",
    "not",
    "note",
    "now",
    "obsolete",
    "ok",
    "old",
    "only",
    "optional",
    "parent",
    "please",
    "previously",
    "probably",
    "qdisc",
    "qdiscs",
    "remove",
    "removed",
    "renamed",
    "replace",
    "root",
    "same",
    "see",
    "set",
    "setup",
    "shellcheck",
    "should",
    "shouldn't",
    "since",
    "sleep",
    "slow",
    "so",
    "stays",
    "still",
    "swapped",
    "tbd",
    "tc",
    "temp",
    "temporary",
    "test",
    "testing",
    "that",
    "then",
    "there",
    "these",
    "this",
    "those",
    "tidegate",
    "todo",
    "todo's",
    "too",
    "tried",
    "try",
    "typo",
    "unclear",
    "untested",
    "until",
    "unused",
    "use",
    "used",
    "uses",
    "using",
    "wait",
    "warn",
    "warning",
    "was",
    "wasn't",
    "we",
    "were",
    "when",
    "where",
    "which",
    "why",
    "will",
    "wip",
    "won't",
    "works",
    "would",
    "wrong",
    "wrongly",
    "xxx",
    "you",
];

/// A line with its continuations: the file, and the first of them, from 0.
type LogicalLine = (usize, usize);

/// What the commands of a line did.
#[derive(Default)]
struct Done {
    /// The classes that they made or changed.
    made: BTreeSet<(String, Handle)>,
    /// Where their qdiscs were attached and their filters lead to.
    about: BTreeSet<Handle>,
    /// They did something that is about no single class.
    other: bool,
}

/// The names that comments give the classes which `steps` made, `ops` the operations that steps refer to.
pub(super) fn class_names(sources: &[Source], steps: &[Step], ops: &[Op]) -> ClassNames {
    let lines = lines_of(sources, steps, ops);
    let mut makers: BTreeMap<(String, Handle), BTreeSet<LogicalLine>> = BTreeMap::new();
    for (line, done) in &lines {
        for class in &done.made {
            makers.entry(class.clone()).or_default().insert(*line);
        }
    }
    let explicit = explicit(sources, &lines);
    let by_number = by_number(sources, &lines, &makers);
    let name = |(class, makers): (&(String, Handle), &BTreeSet<LogicalLine>)| {
        if let Some(name) = explicit.get(class) {
            return Some((class.clone(), name.clone()?));
        }
        // A class that several lines made may mean something else in each.
        let mut names = makers.iter().map(|line| name_at(sources, &lines, *line, class.1));
        if let Some(numbered) = by_number.get(class) {
            let numbered = numbered.clone()?;
            let contradicts = |other: Option<String>| other.is_some_and(|other| other != numbered);
            return (!names.any(contradicts)).then(|| (class.clone(), numbered));
        }
        let first = names.next()??;
        names.all(|other| other.as_ref() == Some(&first)).then(|| (class.clone(), first))
    };
    makers.iter().filter_map(name).collect()
}

/// The lines that commands stand in, and what they did. A function's line that does the same for several
/// classes is about none of them: there it is the line that calls the function.
fn lines_of(sources: &[Source], steps: &[Step], ops: &[Op]) -> BTreeMap<LogicalLine, Done> {
    let logical = |place: &SourceLocation| -> Option<LogicalLine> {
        let source = sources.get(place.file)?;
        Some((place.file, first_of(&source.lines, place.line.saturating_sub(1))))
    };
    let own = |step: &Step| step.place.as_ref().and_then(logical);
    let mut own_lines: BTreeMap<LogicalLine, Done> = BTreeMap::new();
    let note = |lines: &mut BTreeMap<LogicalLine, Done>, line: LogicalLine, step: &Step| {
        let done = lines.entry(line).or_default();
        ops.get(step.ops.clone()).unwrap_or_default().iter().for_each(|op| done.note(op));
    };
    for step in steps {
        own(step).into_iter().for_each(|line| note(&mut own_lines, line, step));
    }
    let mut lines = BTreeMap::new();
    for step in steps {
        let called_from = step.called_from.as_ref().and_then(logical);
        let Some(line) = own(step) else { continue };
        let is_shared = own_lines[&line].classes() > 1;
        note(&mut lines, called_from.filter(|_| is_shared).unwrap_or(line), step);
    }
    lines
}

impl Done {
    /// How many classes it is about.
    fn classes(&self) -> usize {
        let made = self.made.iter().map(|(_, class)| *class);
        made.chain(self.about.iter().copied()).collect::<BTreeSet<_>>().len()
    }

    fn note(&mut self, op: &Op) {
        match op {
            Op::Class(op) if op.verb == Verb::Delete || op.classid.is_none() => self.other = true,
            Op::Class(op) => {
                self.made.insert((op.dev.clone(), op.classid));
            }
            Op::Qdisc(op) if op.verb != Verb::Delete && op.parent.minor() != 0 => {
                self.about.insert(op.parent);
            }
            Op::Filter(op) => match op.params.as_ref().and_then(|params| params.classid()) {
                Some(class) => {
                    self.about.insert(class);
                }
                None => self.other = true,
            },
            _ => self.other = true,
        }
    }

    /// The number of the class that the line made, on whatever devices; `None`: none, or several.
    fn only_class(&self) -> Option<Handle> {
        let mut numbers = self.made.iter().map(|(_, number)| *number);
        let first = numbers.next()?;
        numbers.all(|other| other == first).then_some(first)
    }

    fn is_about(&self, class: Handle) -> bool {
        !self.other
            && self.made.iter().all(|(_, made)| *made == class)
            && self.about.iter().all(|of| *of == class)
    }
}

/// The name that comments give the class of a line that made it: behind it, or in the line above.
fn name_at(
    sources: &[Source],
    lines: &BTreeMap<LogicalLine, Done>,
    line: LogicalLine,
    class: Handle,
) -> Option<String> {
    let (file, first) = line;
    let text = &sources[file].lines;
    if lines[&line].only_class() != Some(class) {
        return None;
    }
    let above = || heading_name(text, lines, line, class);
    match trailing(&text[last_of(text, first)]) {
        Some(comment) => class_name(comment, class).filter(|name| above().is_none_or(|above| above == *name)),
        None => above(),
    }
}

/// The name in the comment alone in the line above, if what follows is about this class only.
fn heading_name(
    text: &[String],
    lines: &BTreeMap<LogicalLine, Done>,
    (file, first): LogicalLine,
    class: Handle,
) -> Option<String> {
    let comment = heading(text, first)?;
    // The lines behind a heading, up to an empty line, another comment or the end of a block.
    let mut at = first;
    while let Some(words) = text.get(at).map(|words| words.trim()) {
        if words.is_empty() || words.starts_with('#') || is_end(words) {
            break;
        }
        // A line that did nothing may do so for another class in another run.
        if !lines.get(&(file, at)).is_some_and(|done| done.is_about(class)) {
            return None;
        }
        at = last_of(text, at) + 1;
    }
    class_name(comment, class)
}

/// The comment alone in the line above, with no other comment above it.
fn heading(text: &[String], at: usize) -> Option<&str> {
    let above = |back: usize| at.checked_sub(back).and_then(|line| text.get(line)).map(|line| line.trim());
    let comment = above(1)?.strip_prefix('#')?;
    let goes_on = above(2).is_some_and(|line| line.starts_with('#') || line.ends_with('\\'));
    (!goes_on).then_some(comment)
}

/// How a comment begins that names a class whatever the rule: `# tidegate: class eth0 1:10 calls`.
const EXPLICIT: &str = "tidegate: class ";

/// The line that [`class_names`] reads this name from; `None`: a comment cannot hold it.
pub(super) fn comment_of(dev: &str, class: Handle, name: &str) -> Option<String> {
    let line = format!("# {EXPLICIT}{dev} {class} {name}");
    let read = parsed(&line).is_some_and(|(read, text)| read == (dev.to_owned(), class) && text == name);
    read.then_some(line)
}

/// What a line names, if it is such a comment.
fn parsed(line: &str) -> Option<((String, Handle), &str)> {
    let text = line.trim().strip_prefix('#')?.trim_start().strip_prefix(EXPLICIT)?;
    let (dev, rest) = text.trim_start().split_once(' ')?;
    let (number, name) = rest.trim_start().split_once(' ')?;
    let class = parse_classid(number).filter(|class| number.contains(':') && class.minor() != 0)?;
    let name = name.trim();
    (!name.is_empty() && name.chars().all(tidegate_text::is_visible)).then(|| ((dev.to_owned(), class), name))
}

/// Names that comments give outright; `None` for a class whose comments differ.
fn explicit(
    sources: &[Source],
    lines: &BTreeMap<LogicalLine, Done>,
) -> BTreeMap<(String, Handle), Option<String>> {
    let files: BTreeSet<usize> = lines.keys().map(|(file, _)| *file).collect();
    let mut named: BTreeMap<(String, Handle), Option<String>> = BTreeMap::new();
    for (class, name) in files.iter().flat_map(|file| &sources[*file].lines).filter_map(|line| parsed(line)) {
        agree(&mut named, class, name.to_owned());
    }
    named
}

/// Notes a name of a class; none is left if another comment has another.
fn agree(named: &mut BTreeMap<(String, Handle), Option<String>>, class: (String, Handle), name: String) {
    named
        .entry(class)
        .and_modify(|known| *known = known.take().filter(|known| *known == name))
        .or_insert(Some(name));
}

/// Comments that begin with the number of a class, alone in their lines: `# 1:10 calls`. `None` for a class
/// whose comments differ.
fn by_number(
    sources: &[Source],
    lines: &BTreeMap<LogicalLine, Done>,
    makers: &BTreeMap<(String, Handle), BTreeSet<LogicalLine>>,
) -> BTreeMap<(String, Handle), Option<String>> {
    let files: BTreeSet<usize> = lines.keys().map(|(file, _)| *file).collect();
    // On two devices a number may mean two things: `None`.
    let mut of_number: BTreeMap<Handle, Option<&(String, Handle)>> = BTreeMap::new();
    for class in makers.keys() {
        of_number.entry(class.1).and_modify(|only| *only = None).or_insert(Some(class));
    }
    let mut named: BTreeMap<(String, Handle), Option<String>> = BTreeMap::new();
    for comment in
        files.iter().flat_map(|file| &sources[*file].lines).filter_map(|line| line.trim().strip_prefix('#'))
    {
        let Some((number, _)) = numbered(comment) else { continue };
        let Some(Some(class)) = of_number.get(&number).copied() else { continue };
        let Some(name) = class_name(comment, number) else { continue };
        agree(&mut named, class.clone(), name);
    }
    named
}

/// The number of a class at the beginning of a comment, and what follows it.
fn numbered(comment: &str) -> Option<(Handle, &str)> {
    let text = comment.trim_start_matches(['#', ' ', '\t']);
    let text = text.strip_prefix("class ").unwrap_or(text).trim_start();
    let (word, rest) = text.split_once(char::is_whitespace)?;
    let word = word.trim_end_matches([':', ',']);
    let number = parse_classid(word).filter(|class| word.contains(':') && class.minor() != 0)?;
    Some((number, rest.trim_start().trim_start_matches(['-', '–', '—', '=', ':']).trim_start()))
}

/// The name in a comment on this class; `None`: it may be something else.
fn class_name(comment: &str, class: Handle) -> Option<String> {
    let text = match numbered(comment) {
        Some((number, _)) if number != class => return None,
        Some((_, text)) => text,
        None => comment.trim_matches(['#', ' ', '\t', '-', '=', '*']),
    };
    // `# paris (a) -> rome` is about neither alone.
    if ["->", "=>", "→", "<-"].iter().any(|arrow| text.contains(arrow)) {
        return None;
    }
    let head = [" (", ": ", " - ", " – "].iter().filter_map(|end| text.find(end)).min().unwrap_or(text.len());
    let name = text[..head].trim_end_matches([' ', '\t', '.', ':']);
    let is_part = |letter: char| letter.is_alphanumeric() || " -_/+&,.'".contains(letter);
    // Several blanks in a row align a table.
    let is_name = name.chars().next().is_some_and(char::is_alphabetic)
        && name.chars().all(is_part)
        && name.chars().count() <= LONGEST
        && !name.contains("  ");
    let mut words = name.split(' ').map(|word| word.trim_matches([',', '.', '\'']).to_lowercase());
    let of_names = |word: &String| {
        !NO_NAMES.contains(&word.as_str()) && !word.starts_with(|letter: char| letter.is_ascii_digit())
    };
    (is_name && words.clone().count() <= MOST_WORDS && words.all(|word| of_names(&word)))
        .then(|| name.to_owned())
}

/// The comment behind the command of a line.
fn trailing(line: &str) -> Option<&str> {
    let (mut quote, mut before) = (None, ' ');
    let mut letters = line.char_indices();
    while let Some((at, letter)) = letters.next() {
        match (quote, letter) {
            (None | Some('"'), '\\') => {
                letters.next();
            }
            (None, '\'' | '"') => quote = Some(letter),
            (Some(open), _) if letter == open => quote = None,
            (None, '#') if before.is_whitespace() => return Some(&line[at + 1..]).filter(|_| at > 0),
            _ => {}
        }
        before = letter;
    }
    None
}

/// Does a line end a block of the shell?
fn is_end(words: &str) -> bool {
    matches!(words.trim_end_matches(';'), "}" | "fi" | "done" | "esac" | "" | "else" | "EOF")
}

/// Is the line continued by the next one?
fn is_continued(line: &str) -> bool {
    let slashes = line.len() - line.trim_end_matches('\\').len();
    slashes % 2 == 1 && !line.trim_start().starts_with('#')
}

/// The first line of a command of which `at` is one.
fn first_of(text: &[String], at: usize) -> usize {
    let mut first = at.min(text.len().saturating_sub(1));
    while first > 0 && is_continued(&text[first - 1]) {
        first -= 1;
    }
    first
}

/// The last line of a command that begins at `at`.
fn last_of(text: &[String], at: usize) -> usize {
    let more = text[at..].iter().take_while(|line| is_continued(line)).count();
    (at + more).min(text.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ReadOptions, read_text};

    /// The names that a batch's comments give, as `1:10 calls`.
    fn names(batch: &str) -> Vec<String> {
        let text = format!("qdisc add dev eth0 root handle 1: htb\n{batch}");
        let policy = read_text("x.batch", &text, &ReadOptions::default()).expect("is a batch");
        policy.names.iter().map(|((_, class), name)| format!("{class} {name}")).collect()
    }

    fn class(number: u32) -> String {
        format!("class add dev eth0 parent 1: classid 1:{number} htb rate 1mbit\n")
    }

    #[test]
    fn a_comment_above_one_class_names_it() {
        let queue = "qdisc add dev eth0 parent 1:10 fq_codel\n";
        let filter =
            "filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 5060 0xffff flowid 1:10\n";
        let ten = class(10);
        assert_eq!(
            names(&format!("\n# calls\n{ten}{queue}{filter}\n# the web:\n{}", class(20))),
            ["1:10 calls", "1:20 the web"]
        );
        // About two classes, of two lines, over something else, or not directly above.
        for unsure in [
            format!("# calls\n{ten}{}", class(20)),
            format!("# homes\n# calls\n{ten}"),
            format!("# calls\nqdisc add dev lo root pfifo\n{ten}"),
            format!("# calls\n{ten}{}", filter.replace("1:10", "1:20")),
            format!("# calls\n\n{ten}"),
            format!("# calls\n{ten}\n# web\n{}", ten.replace("add", "change")),
        ] {
            assert_eq!(names(&unsure), [""; 0], "{unsure}");
        }
    }

    #[test]
    fn a_comment_with_the_number_of_a_class_names_it() {
        let both = class(10) + &class(20);
        assert_eq!(
            names(&format!("# 1:10 calls\n# class 1:20: the web (ports 80, 443)\n{both}")),
            ["1:10 calls", "1:20 the web"]
        );
        assert_eq!(names(&format!("# 1:10 calls\n# 1:10 games\n# 1:30 none\n{both}")), [""; 0]);
        let other_device = both.replace("eth0", "lo");
        let text = format!("# 1:10 calls\nqdisc add dev lo root handle 1: htb\n{both}{other_device}");
        assert_eq!(names(&text), [""; 0]);
        // Above a class it is about that one, not about another.
        assert_eq!(names(&format!("# 1:20 calls\n{}", class(10))), [""; 0]);
    }

    #[test]
    fn comments_that_contradict_one_another_or_remark_name_nothing() {
        let ten = class(10);
        for unsure in [
            format!("# tidegate: class eth0 1:10 first\n{ten}# tidegate: class eth0 1:10 second\n"),
            format!("# calls\n{ten}\n# 1:10 downloads\n"),
            format!("# was games\n{ten}"),
            format!("# same as above\n{ten}"),
            format!("# 1:10 is full\n{ten}"),
        ] {
            assert_eq!(names(&unsure), [""; 0], "{unsure}");
        }
        // The same name twice is none of that.
        assert_eq!(names(&format!("# calls\n{ten}\n# 1:10 calls\n")), ["1:10 calls"]);
    }

    #[test]
    fn a_comment_for_tidegate_names_a_class_outright() {
        let given = "# tidegate: class eth0 1:10 calls: (0.3 Mbit) \"all\"\n# 1:10 other\n".to_owned();
        assert_eq!(names(&(given + &class(10))), ["1:10 calls: (0.3 Mbit) \"all\""]);
        // It names a class that is not there.
        assert_eq!(names(&("# tidegate: class eth1 1:10 calls\n".to_owned() + &class(10))), [""; 0]);
        let of = |name: &str| comment_of("eth0", Handle::new(1, 0x10), name);
        assert_eq!(of("DNS, DHCP").as_deref(), Some("# tidegate: class eth0 1:10 DNS, DHCP"));
        for odd in ["", " a", "a\nb", "\u{1b}[31m"] {
            assert_eq!(of(odd), None, "{odd}");
        }
    }

    #[test]
    fn only_what_may_be_a_name_is_one() {
        for (comment, name) in [
            ("calls", Some("calls")),
            (" Voice & video ", Some("Voice & video")),
            ("--- interactive (ssh, dns) ---", Some("interactive")),
            ("voip: never waits", Some("voip")),
            ("Büro", Some("Büro")),
            ("1:10 - calls", Some("calls")),
            ("1:20 calls", None),
            ("HTB setup", None),
            ("TODO: fewer", None),
            ("TODO calls", None),
            ("1:10 TODO calls", None),
            ("was: games", None),
            ("wrong bucket: 8 kbit too much", None),
            ("1:10 wrong bucket", None),
            ("old calls", None),
            ("N.B.: calls", None),
            ("WARNING: no calls", None),
            ("should be calls", None),
            ("calls, don't touch", None),
            ("modprobe sch_htb", None),
            ("tidegate: allow R4", None),
            ("shellcheck disable", None),
            ("tc class add dev eth0", None),
            ("300 kbit", None),
            ("at most 300 kbit", None),
            ("what this class is for is a long story", None),
            ("calls \u{1b}[31m", None),
            ("a=b", None),
            ("mark  for   guaranteed", None),
            ("", None),
        ] {
            assert_eq!(class_name(comment, Handle::new(1, 0x10)).as_deref(), name, "{comment}");
        }
    }

    #[test]
    fn a_comment_begins_outside_quotes() {
        assert_eq!(trailing("tc x 1 # calls"), Some(" calls"));
        assert_eq!(trailing("tc \"x # y\" '#' z#a \\# b"), None);
        assert_eq!(trailing("# calls"), None);
        assert_eq!(trailing("tc x \"\\\"\" # calls"), Some(" calls"));
    }

    /// Batches have no comments behind commands, scripts do; also behind a function's call.
    #[test]
    fn a_comment_behind_a_line_that_makes_one_class_names_it() {
        let lines =
            ["class 10 # calls", "class 20 \\", "  fast # web", "class 30; class 40 # both", "class 50"];
        let sources = [Source { name: "x.sh".into(), lines: lines.map(str::to_owned).to_vec() }];
        let ops: Vec<Op> = [10, 20, 30, 40, 50]
            .map(|minor| {
                let batch = format!("qdisc add dev eth0 root handle 1: htb\n{}", class(minor));
                let mut policy = read_text("x.batch", &batch, &ReadOptions::default()).expect("is a batch");
                policy.machine.log.remove(1)
            })
            .to_vec();
        let step = |(at, line): (usize, usize)| Step {
            tool: "tc".into(),
            words: Vec::new(),
            place: Some(tidegate_inspect::SourceLocation { file: 0, line, columns: (0, 0) }),
            ops: at..at + 1,
            refused: None,
            may_fail: false,
            at_fault: None,
            is_skipped: false,
            frames: Vec::new(),
            called_from: None,
        };
        // A shell may call a continued line by its first or its last.
        let steps: Vec<Step> = [1, 3, 4, 4, 5].into_iter().enumerate().map(step).collect();
        let named = class_names(&sources, &steps, &ops);
        let named: Vec<String> = named.iter().map(|((_, class), name)| format!("{class} {name}")).collect();
        assert_eq!(named, ["1:10 calls", "1:20 web"]);
    }
}
