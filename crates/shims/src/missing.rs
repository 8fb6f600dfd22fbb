//! What tidegate could not make, and commands that fail for that alone: the kernel, which may have made it,
//! would not refuse them.

use crate::call::Reply;
use std::collections::BTreeMap;
use tidegate_packet::Handle;
use tidegate_policy::{Op, Verb};

/// By device and handle the qdiscs that were not made.
#[derive(Debug, Default)]
pub(super) struct Missing(BTreeMap<(String, Handle), NotMade>);

#[derive(Debug)]
struct NotMade {
    kind: String,
    at_root: bool,
}

impl Missing {
    /// Notes a `tc qdisc add` of a kind that tidegate does not have.
    pub(super) fn note(&mut self, words: &[String]) {
        let mut words = words.iter().map(String::as_str).skip_while(|word| word.starts_with('-'));
        let makes = words.next().is_some_and(|object| !object.is_empty() && "qdisc".starts_with(object))
            && words.next().is_some_and(|verb| ["add", "a", "replace", "link"].contains(&verb));
        if !makes {
            return;
        }
        let (mut dev, mut handle, mut kind, mut at_root) = (None, None, None, false);
        while let Some(word) = words.next() {
            match word {
                "dev" => dev = words.next(),
                "handle" => handle = words.next(),
                "parent" | "estimator" => drop(words.next()),
                "root" => at_root = true,
                _ => kind = kind.or(Some(word)),
            }
        }
        let major = handle.and_then(|text| u16::from_str_radix(text.strip_suffix(':')?, 16).ok());
        if let (Some(dev), Some(major), Some(kind)) = (dev, major, kind) {
            let made = NotMade { kind: kind.to_owned(), at_root };
            self.0.insert((dev.to_owned(), Handle::new(major, 0)), made);
        }
    }

    /// The qdisc that a command needs and that was not made, with its kind.
    fn needed_by(&self, op: &Op) -> Option<(&str, Handle, &str)> {
        let (dev, handles) = match op {
            Op::Qdisc(op) if op.verb == Verb::Delete && op.parent == Handle::ROOT => {
                let of_dev = self.0.iter().find(|((dev, _), made)| *dev == op.dev && made.at_root);
                return of_dev.map(|((dev, handle), made)| (dev.as_str(), *handle, made.kind.as_str()));
            }
            Op::Qdisc(op) => (&op.dev, [op.parent, op.handle]),
            Op::Class(op) => (&op.dev, [op.parent, op.classid]),
            Op::Filter(op) => (&op.dev, [op.parent, Handle::NONE]),
            _ => return None,
        };
        handles.into_iter().find_map(|handle| {
            let ((dev, handle), made) = self.0.get_key_value(&(dev.clone(), handle.qdisc()))?;
            Some((dev.as_str(), *handle, made.kind.as_str()))
        })
    }

    /// The reply to a command that was refused because tidegate had not made what it needs.
    pub(super) fn refused(&self, op: &Op) -> Option<Reply> {
        let (dev, handle, kind) = self.needed_by(op)?;
        let text = format!(
            "tidegate: {dev} has no qdisc {handle} here, because {kind} is not supported\n\
             tc: The command needs it, and was not carried out; Linux may carry it out.\n"
        );
        Some(Reply::error(1, text))
    }

    /// A qdisc that was made in its place is there.
    pub(super) fn made(&mut self, op: &Op) {
        if let Op::Qdisc(op) = op
            && !self.0.is_empty()
        {
            self.0.remove(&(op.dev.clone(), op.handle.qdisc()));
        }
    }
}
