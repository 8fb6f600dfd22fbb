//! The commands that make what is listed: each object behind what it hangs on, then the filters.

use super::object::{COMMANDS_INSTEAD, Listed, ListedObject, NotListed};
use super::{filters, options};
use crate::tc::command_line::Object;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_policy::Kind;

/// A place where something is installed: device and handle.
type Place = (String, String);

/// Puts each after its parent: qdiscs and classes by turns, then the filters.
pub(super) fn in_order(objects: &[ListedObject]) -> Result<Vec<Listed>, NotListed> {
    refuse_twice(objects)?;
    let mut out: Vec<Listed> = Vec::new();
    let mut there = Installed::default();
    let mut waiting: Vec<&ListedObject> = objects.iter().filter(|object| is_made(object)).collect();
    while !waiting.is_empty() {
        let before = waiting.len();
        let mut left = Vec::new();
        for object in waiting {
            if there.has(object) {
                there.add(object);
                out.push(command(object, args(object)));
            } else {
                left.push(object);
            }
        }
        waiting = left;
        if waiting.len() == before {
            return Err(waiting[0].wrong(lacks(waiting[0], objects)));
        }
    }
    for object in filters_in_order(objects) {
        let options =
            filters::args(object).map_err(|why| object.wrong(format!("{why}; {COMMANDS_INSTEAD}")))?;
        if let Some(options) = options {
            out.push(command(object, filter(object, options)));
        }
    }
    Ok(out)
}

/// What an object hangs on that is not listed, in words.
fn lacks(object: &ListedObject, objects: &[ListedObject]) -> &'static str {
    if object.parent.starts_with(':') {
        return "hangs on a queue of the kernel's own mq, and tidegate's devices have one queue";
    }
    let parent = above(object);
    let major = parent.split(':').next().unwrap_or_default();
    let is_its_qdisc = |other: &ListedObject| {
        other.what == Object::Qdisc
            && other.dev == object.dev
            && other.handle.strip_suffix(':') == Some(major)
    };
    match objects.iter().any(is_its_qdisc) {
        true => "hangs on something that is not listed; list the classes too: tc class show dev DEV",
        false => "is in a qdisc that is not listed; list the qdiscs too: tc qdisc show dev DEV",
    }
}

/// The first qdisc of a kind whose classes somebody makes, on a device without a class in the listing: of
/// classes `tc qdisc show` shows no more than the qdiscs that somebody attached to them.
pub(super) fn without_classes(objects: &[ListedObject]) -> Option<NotListed> {
    let classes = objects.iter().filter(|object| object.what == Object::Class);
    let with_classes: BTreeSet<&String> = classes.map(|class| &class.dev).collect();
    let bare = objects.iter().find(|object| {
        object.what == Object::Qdisc
            && !object.is_default()
            && Kind::from_name(&object.kind).is_some_and(Kind::classes_are_made)
            && !with_classes.contains(&object.dev)
    });
    bare.map(|object| {
        let dev = &object.dev;
        object.wrong(format!(
            "what its classes are is not listed, and nothing is known of it without them; list them too: tc class \
             show dev {dev} (where that prints nothing, add the line `# tc class show dev {dev}`)"
        ))
    })
}

/// The filters, those of u32 in the order in which their preferences were made: each has a table of its own,
/// and these are numbered in that order, where a listing goes by preference.
fn filters_in_order(objects: &[ListedObject]) -> Vec<&ListedObject> {
    let mut all: Vec<&ListedObject> = objects.iter().filter(|object| object.what == Object::Filter).collect();
    let pref = |object: &ListedObject| {
        let head = object.head.as_ref().map(|head| (head.chain.clone(), head.pref.clone()));
        (object.dev.clone(), object.parent.clone(), head)
    };
    let mut roots = BTreeMap::new();
    let mut places: BTreeMap<_, Vec<usize>> = BTreeMap::new();
    for (at, object) in all.iter().enumerate().filter(|(_, object)| object.kind == "u32") {
        places.entry((&object.dev, &object.parent)).or_default().push(at);
        if let Some(table) = filters::root_table(object) {
            let known = roots.entry(pref(object)).or_insert(table);
            *known = table.min(*known);
        }
    }
    for at in places.into_values() {
        let mut here: Vec<&ListedObject> = at.iter().map(|at| all[*at]).collect();
        here.sort_by_key(|object| roots.get(&pref(object)).copied().unwrap_or(u32::MAX));
        at.into_iter().zip(here).for_each(|(at, object)| all[at] = object);
    }
    all
}

/// Refuses what is listed twice, as where a file is given twice.
fn refuse_twice(objects: &[ListedObject]) -> Result<(), NotListed> {
    let mut seen: BTreeMap<_, &ListedObject> = BTreeMap::new();
    // Classes that come with their qdisc may have one number: dualpi2's have.
    let is_own = |object: &&ListedObject| object.what != Object::Class || is_made(object);
    let named = objects.iter().filter(|object| !object.is_default() && !object.handle.is_empty());
    for object in named.filter(is_own) {
        let head = object.head.as_ref();
        let head = head.map(|head| (&head.protocol, &head.pref, &head.chain, &object.parent));
        let is_class = object.what == Object::Class;
        let key = (is_class, &object.dev, &object.handle, head);
        if let Some(first) = seen.insert(key, object) {
            let where_else = match first.file == object.file {
                true => format!("in line {} and in line {}", first.line, object.line),
                false => format!("in line {} of another file and here", first.line),
            };
            return Err(object.wrong(format!("is listed twice, {where_else}; leave one of them out")));
        }
    }
    Ok(())
}

/// Qdiscs that are no default, and classes that do not come with their qdisc.
pub(super) fn is_made(object: &ListedObject) -> bool {
    match object.what {
        Object::Qdisc => !object.is_default(),
        // HFSC lists its root as a class.
        Object::Class => {
            let is_made = Kind::from_name(&object.kind).is_none_or(Kind::classes_are_made);
            is_made && !object.handle.ends_with(':')
        }
        Object::Filter => false,
    }
}

/// What is installed so far.
#[derive(Default)]
struct Installed {
    places: BTreeSet<Place>,
    /// Qdiscs whose classes are there with them.
    with_classes: BTreeSet<Place>,
}

impl Installed {
    fn add(&mut self, object: &ListedObject) {
        let place = (object.dev.clone(), object.handle.clone());
        if Kind::from_name(&object.kind).is_some_and(|kind| !kind.classes_are_made()) {
            self.with_classes.insert(place.clone());
        }
        self.places.insert(place);
    }

    /// Is what an object hangs on there?
    fn has(&self, object: &ListedObject) -> bool {
        let parent = above(object);
        let Some((major, _)) = parent.split_once(':') else { return true };
        let place = |handle: String| (object.dev.clone(), handle);
        is_hook(object)
            || self.places.contains(&place(parent.clone()))
            || self.with_classes.contains(&place(format!("{major}:")))
    }
}

/// The qdiscs at which filters for what comes in are installed: they have a place of their own.
fn is_hook(object: &ListedObject) -> bool {
    object.what == Object::Qdisc && matches!(object.kind.as_str(), "ingress" | "clsact")
}

/// A class at the top hangs on its qdisc.
fn above(object: &ListedObject) -> String {
    match (object.what, object.parent.as_str()) {
        (Object::Class, "root") => format!("{}:", object.handle.split(':').next().unwrap_or_default()),
        (_, parent) => parent.to_owned(),
    }
}

fn command(object: &ListedObject, args: Vec<String>) -> Listed {
    Listed { file: object.file, line: object.line, args }
}

/// A word that a listing shows in front of a qdisc's options, and its value.
fn block<'o>(object: &'o ListedObject, key: &str) -> Option<&'o String> {
    let at = object.words.iter().position(|word| word == key)?;
    object.words.get(at + 1)
}

/// The command for a qdisc or a class.
fn args(object: &ListedObject) -> Vec<String> {
    let mut args = vec![if object.what == Object::Class { "class" } else { "qdisc" }.to_owned()];
    args.extend(["add", "dev", &object.dev].map(str::to_owned));
    if !is_hook(object) {
        match above(object).as_str() {
            "root" => args.push("root".to_owned()),
            parent => args.extend(["parent", parent].map(str::to_owned)),
        }
        let number = if object.what == Object::Class { "classid" } else { "handle" };
        args.extend([number, &object.handle].map(str::to_owned));
    }
    for key in ["ingress_block", "egress_block"] {
        if let Some(number) = block(object, key) {
            args.extend([key, number].map(str::to_owned));
        }
    }
    if !object.stab.is_empty() {
        args.push("stab".to_owned());
        args.extend(object.stab.iter().cloned());
    }
    args.push(object.kind.clone());
    args.extend(options::args(object));
    args
}

/// The command for a filter.
fn filter(object: &ListedObject, options: Vec<String>) -> Vec<String> {
    let mut args = ["filter", "add"].map(str::to_owned).to_vec();
    let parent = object.parent.as_str();
    match parent.strip_prefix("block ") {
        Some(number) => args.extend(["block", number].map(str::to_owned)),
        None => {
            args.extend(["dev", &object.dev].map(str::to_owned));
            match parent {
                "root" => {}
                "ingress" | "egress" => args.push(parent.to_owned()),
                parent => args.extend(["parent", parent].map(str::to_owned)),
            }
        }
    }
    if let Some(head) = &object.head {
        args.extend(["protocol", &head.protocol, "pref", &head.pref].map(str::to_owned));
        if head.chain != "0" {
            args.extend(["chain", &head.chain].map(str::to_owned));
        }
    }
    args.extend(options);
    args
}
