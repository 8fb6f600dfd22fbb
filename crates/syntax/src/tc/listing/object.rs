//! What listings come to: objects, commands, and why one cannot be read.

use crate::tc::command_line::Object;
use crate::tc::spelling::ListedValue;

/// What a listing says of a qdisc, class or filter.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedObject {
    /// Which of several listings it is in, from 0.
    pub file: usize,
    /// Its line in there, from 1.
    pub line: usize,
    /// Which of the three it is.
    pub what: Object,
    /// The name of its kind.
    pub kind: String,
    /// The device that it is on; empty for filters of a shared block.
    pub dev: String,
    /// The handle of a qdisc, the number of a class; of a filter nothing.
    pub handle: String,
    /// Where it hangs: `1:`, `root`, `ingress`, `egress`, `block 5`.
    pub parent: String,
    /// What filters have beside that.
    pub head: Option<FilterHead>,
    /// Its other words in the order of a listing for people, without counters.
    pub words: Vec<String>,
    /// The words of a qdisc's table of sizes.
    pub stab: Vec<String>,
    /// What JSON says of it, where it is from there.
    pub members: Option<Vec<(String, ListedValue)>>,
}

/// The place of a filter in the list of its parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterHead {
    /// The protocol that packets have.
    pub protocol: String,
    /// The preference.
    pub pref: String,
    /// The chain.
    pub chain: String,
}

/// A command that a listing comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Which of several listings has it, from 0.
    pub file: usize,
    /// Its line in the listing, from 1.
    pub line: usize,
    /// tc's words, without its name.
    pub args: Vec<String>,
}

/// Why a listing cannot be read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotListed {
    /// Which of several listings, from 0.
    pub file: usize,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub why: String,
}

/// The most characters of a word or a value that a message shows.
const MAX_SHOWN: usize = 60;
/// tc does not repeat the parent that its command names, and filters of a hook look like those of a qdisc.
pub(super) const NO_PARENT: &str = "is a filter whose listing does not say what it hangs on; list without a \
    parent, or put a line `# dev DEV ingress` or `# dev DEV parent ID` before it";
/// What to do about what is not read.
pub(super) const COMMANDS_INSTEAD: &str = "give the commands that made it";

impl ListedObject {
    /// Does the kernel put it there on its own? Only those have no number, and noqueue has none at all.
    pub fn is_default(&self) -> bool {
        self.what == Object::Qdisc && (self.handle == "0:" || self.kind == "noqueue")
    }

    /// A few words for people.
    pub fn name(&self) -> String {
        let kind = shown(&self.kind);
        match (&self.what, &self.head) {
            (Object::Qdisc, _) => format!("qdisc {kind} {}", shown(&self.handle)),
            (Object::Class, _) => format!("class {kind} {}", shown(&self.handle)),
            (Object::Filter, head) => {
                format!("filter {kind} pref {}", head.as_ref().map_or("", |head| &head.pref))
            }
        }
    }

    pub(super) fn wrong(&self, why: impl std::fmt::Display) -> NotListed {
        NotListed { file: self.file, line: self.line, why: self.says(why) }
    }

    /// A sentence about it: a handle ends in a colon of its own.
    pub(super) fn says(&self, what: impl std::fmt::Display) -> String {
        let name = self.name();
        let colon = if name.ends_with(':') { "" } else { ":" };
        format!("{name}{colon} {what}")
    }
}

/// A word as a message shows it.
pub(super) fn shown(word: &str) -> String {
    match word.char_indices().nth(MAX_SHOWN) {
        Some((end, _)) => format!("{}…", &word[..end]),
        None => word.to_owned(),
    }
}
