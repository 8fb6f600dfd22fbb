//! What a call changes in the sandbox beside the model: files that describe devices, and the kernel's own
//! links there.
//!
//! The model is the truth; these make it visible to scripts that look at `/sys` or `/proc` instead of asking
//! a tool. What the kernel of the sandbox cannot do (a kind of link it lacks) is left undone.

use std::fs;
use std::path::Path;

use tidegate_sandbox::LinkRequest;
use tidegate_shims::{FileChange, LinkChange};
use tidegate_sys::netlink::LinkUpdate;

/// The request to the sandbox's first process for a change of a link.
pub(super) fn request(change: LinkChange) -> LinkRequest {
    let changed = |name, change| LinkRequest::Change { name, change };
    match change {
        LinkChange::Create { name, kind, txqlen } => LinkRequest::Create { name, kind, txqlen },
        LinkChange::Delete(name) => LinkRequest::Delete(name),
        LinkChange::SetUp { name, up } => changed(name, LinkUpdate { up: Some(up), ..LinkUpdate::default() }),
        LinkChange::Mtu { name, bytes } => {
            changed(name, LinkUpdate { mtu: Some(bytes), ..LinkUpdate::default() })
        }
        LinkChange::QueueLength { name, packets } => {
            changed(name, LinkUpdate { txqlen: Some(packets), ..LinkUpdate::default() })
        }
        LinkChange::Rename { name, to } => {
            changed(name, LinkUpdate { name: Some(to), ..LinkUpdate::default() })
        }
    }
}

/// A change of files as it travels.
pub(super) fn words(change: &FileChange) -> Vec<String> {
    let list = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    match change {
        FileChange::Write { path, text } => list(&["write", path, text]),
        FileChange::Remove { path } => list(&["remove", path]),
        FileChange::Rename { from, to } => list(&["rename", from, to]),
    }
}

/// From its words; `None` when they make no sense.
pub(super) fn read(words: &[String]) -> Option<FileChange> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    Some(match *words.as_slice() {
        ["write", path, text] => FileChange::Write { path: path.into(), text: text.into() },
        ["remove", path] => FileChange::Remove { path: path.into() },
        ["rename", from, to] => FileChange::Rename { from: from.into(), to: to.into() },
        _ => return None,
    })
}

/// Does it, in this process's own namespaces: only ever inside a sandbox.
pub(super) fn perform(change: &FileChange) {
    match change {
        FileChange::Write { path, text } => {
            let path = Path::new(path);
            let _ = path.parent().map(fs::create_dir_all);
            let _ = fs::write(path, text);
        }
        FileChange::Remove { path } => drop(fs::remove_dir_all(path)),
        FileChange::Rename { from, to } => drop(fs::rename(from, to)),
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
            assert_eq!(read(&words(&change)), Some(change));
        }
        assert_eq!(read(&["write".into(), "x".into()]), None);
    }
}
