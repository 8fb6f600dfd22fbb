//! What a call changes in the sandbox beside the model: files that tell of devices, and the kernel's own links there.
//!
//! The model is the truth; these make it visible to scripts that look at `/sys` or `/proc` instead of asking a tool. What the kernel
//! of the sandbox cannot do (a kind of link it lacks) is left undone.

use std::fs;
use std::path::Path;

pub use tidegate_sandbox::LinkRequest;

/// One change inside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// A file changes: the tool itself does it, as any program inside could.
    File(FileChange),
    /// A network link changes: the sandbox's first process does it, because nothing else inside may.
    Link(LinkRequest),
}

/// A change of files inside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// A file and its content; directories above it are made.
    Write {
        /// Absolute path.
        path: String,
        /// The whole content.
        text: String,
    },
    /// A directory goes, with what is in it.
    Remove {
        /// Absolute path.
        path: String,
    },
    /// A directory gets another name.
    Rename {
        /// Absolute path.
        from: String,
        /// Absolute path.
        to: String,
    },
}

impl FileChange {
    /// As it travels.
    pub(super) fn words(&self) -> Vec<String> {
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match self {
            Self::Write { path, text } => list(&["write", path, text]),
            Self::Remove { path } => list(&["remove", path]),
            Self::Rename { from, to } => list(&["rename", from, to]),
        }
    }

    /// From its words; `None` when they make no sense.
    pub(super) fn read(words: &[String]) -> Option<Self> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Some(match *words.as_slice() {
            ["write", path, text] => Self::Write { path: path.into(), text: text.into() },
            ["remove", path] => Self::Remove { path: path.into() },
            ["rename", from, to] => Self::Rename { from: from.into(), to: to.into() },
            _ => return None,
        })
    }

    /// Does it, in this process's own namespaces: only ever inside a sandbox.
    pub(super) fn perform(&self) {
        match self {
            Self::Write { path, text } => {
                let path = Path::new(path);
                let _ = path.parent().map(fs::create_dir_all);
                let _ = fs::write(path, text);
            }
            Self::Remove { path } => drop(fs::remove_dir_all(path)),
            Self::Rename { from, to } => drop(fs::rename(from, to)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_changes_survive_the_wire_and_nonsense_is_none() {
        let changes = [
            FileChange::Write { path: "/sys/a".into(), text: String::new() },
            FileChange::Remove { path: "/sys/a".into() },
            FileChange::Rename { from: "/a".into(), to: "/b".into() },
        ];
        for change in changes {
            assert_eq!(FileChange::read(&change.words()), Some(change));
        }
        assert_eq!(FileChange::read(&["write".into(), "x".into()]), None);
    }
}
