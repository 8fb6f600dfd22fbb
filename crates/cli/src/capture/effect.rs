//! What a call changes in the sandbox beside the model: files that tell of devices, and the kernel's own links there.
//!
//! The model is the truth; these make it visible to scripts that look at `/sys` or `/proc` instead of asking a tool. What the kernel
//! of the sandbox cannot do (a kind of link it lacks) is left undone.

use std::fs;
use std::path::Path;

use tidegate_os::netlink::{Change, Links};

/// One change inside the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
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
    /// A link comes into being.
    MakeLink {
        /// Its name.
        name: String,
        /// Its kind, as the kernel calls it.
        kind: String,
        /// Packets of its transmit queue.
        txqlen: u32,
    },
    /// A link goes.
    DropLink {
        /// Its name.
        name: String,
    },
    /// A link changes.
    ChangeLink {
        /// Its name.
        name: String,
        /// What changes.
        change: Change,
    },
}

impl Effect {
    /// As it travels.
    pub(super) fn words(&self) -> Vec<String> {
        let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let number = |value: Option<u32>| value.map_or(String::new(), |value| value.to_string());
        match self {
            Self::Write { path, text } => list(&["write", path, text]),
            Self::Remove { path } => list(&["remove", path]),
            Self::Rename { from, to } => list(&["rename", from, to]),
            Self::MakeLink { name, kind, txqlen } => list(&["make", name, kind, &txqlen.to_string()]),
            Self::DropLink { name } => list(&["drop", name]),
            Self::ChangeLink { name, change } => list(&[
                "change",
                name,
                change.up.map_or("", |up| if up { "up" } else { "down" }),
                &number(change.mtu),
                &number(change.txqlen),
                change.name.as_deref().unwrap_or(""),
            ]),
        }
    }

    /// From its words; `None` when they make no sense.
    pub(super) fn read(words: &[String]) -> Option<Self> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Some(match *words.as_slice() {
            ["write", path, text] => Self::Write { path: path.into(), text: text.into() },
            ["remove", path] => Self::Remove { path: path.into() },
            ["rename", from, to] => Self::Rename { from: from.into(), to: to.into() },
            ["make", name, kind, txqlen] => {
                Self::MakeLink { name: name.into(), kind: kind.into(), txqlen: txqlen.parse().ok()? }
            }
            ["drop", name] => Self::DropLink { name: name.into() },
            ["change", name, up, mtu, txqlen, to] => Self::ChangeLink {
                name: name.into(),
                change: Change {
                    up: (!up.is_empty()).then_some(up == "up"),
                    mtu: mtu.parse().ok(),
                    txqlen: txqlen.parse().ok(),
                    name: (!to.is_empty()).then(|| to.into()),
                    ..Change::default()
                },
            },
            _ => return None,
        })
    }

    /// Does it, in this process's own namespaces: only ever inside a sandbox.
    pub(super) fn perform(&self) {
        let links = |act: &dyn Fn(&mut Links) -> std::io::Result<()>| {
            let _ = Links::open().and_then(|mut links| act(&mut links));
        };
        match self {
            Self::Write { path, text } => {
                let path = Path::new(path);
                let _ = path.parent().map(fs::create_dir_all);
                let _ = fs::write(path, text);
            }
            Self::Remove { path } => drop(fs::remove_dir_all(path)),
            Self::Rename { from, to } => drop(fs::rename(from, to)),
            Self::MakeLink { name, kind, txqlen } => links(&|links| links.create_like(name, kind, *txqlen)),
            Self::DropLink { name } => links(&|links| links.delete(name)),
            Self::ChangeLink { name, change } => links(&|links| links.change(name, change)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn effects_survive_the_wire_and_nonsense_is_none() {
        let change = Change { up: Some(false), mtu: Some(1492), name: Some("x".into()), ..Change::default() };
        let effects = [
            Effect::Write { path: "/sys/a".into(), text: String::new() },
            Effect::Remove { path: "/sys/a".into() },
            Effect::Rename { from: "/a".into(), to: "/b".into() },
            Effect::MakeLink { name: "ifb0".into(), kind: "ifb".into(), txqlen: 32 },
            Effect::DropLink { name: "ifb0".into() },
            Effect::ChangeLink { name: "eth0".into(), change },
            Effect::ChangeLink { name: "eth0".into(), change: Change::default() },
        ];
        for effect in effects {
            assert_eq!(Effect::read(&effect.words()), Some(effect));
        }
        assert_eq!(Effect::read(&["make".into(), "x".into(), "ifb".into(), "many".into()]), None);
    }
}
