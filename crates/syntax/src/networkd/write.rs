//! Commands of tc as sections of a `.network` file.

use super::order::{Parent, Place, parents_first};
use super::rows::{Key, Makes, SECTIONS, SectionRow};
use super::values::ValueForm;
use crate::units::{parse_classid, parse_handle};
use std::fmt::Write as _;
use tidegate_packet::Handle;

/// A `.network` file for each device, and what systemd-networkd has no section or key for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkdFiles {
    /// Each device with its file.
    pub files: Vec<(String, String)>,
    /// What is left out: a sentence each.
    pub left_out: Vec<String>,
}

/// A qdisc or class.
struct Section {
    device: String,
    row: &'static SectionRow,
    place: Place,
    /// Each key with its value, later ones instead of earlier.
    settings: Vec<KeyValue>,
}

/// A key with its value.
type KeyValue = (&'static str, String);

/// What commands that were carried out, one after another, come to: the arguments of each call of tc.
///
/// ```
/// use tidegate_syntax::networkd;
///
/// let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
/// let commands = [words("qdisc add dev eth0 root handle 1: cake bandwidth 9mbit nat")];
/// let written = networkd::write(&commands);
/// let expected = "[Match]\nName=eth0\n\n[CAKE]\nParent=root\nHandle=1\nBandwidth=9M\nNAT=yes\n";
/// assert_eq!(written.files, [("eth0".to_owned(), expected.to_owned())]);
/// ```
pub fn write(commands: &[Vec<String>]) -> NetworkdFiles {
    let mut sections: Vec<Section> = Vec::new();
    let mut left_out = Vec::new();
    for words in commands {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if let Err(why) = carry_out(&words, &mut sections, &mut left_out) {
            left_out.push(format!("{why}: tc {}", words.join(" ")));
        }
    }
    let orphans = drop_orphans(&mut sections);
    left_out.extend(orphans.iter().map(|section| {
        format!("what it hangs on is left out: [{}] of {}", section.row.name, section.name())
    }));
    let mut files: Vec<(String, String)> = Vec::new();
    for section in &sections {
        let at = files.iter().position(|(device, _)| *device == section.device).unwrap_or_else(|| {
            files.push((section.device.clone(), format!("[Match]\nName={}\n", section.device)));
            files.len() - 1
        });
        files[at].1.push_str(&section.text());
    }
    NetworkdFiles { files, left_out }
}

/// Takes out what hangs on nothing that is there, in each device; what is left stands behind its parents.
fn drop_orphans(sections: &mut Vec<Section>) -> Vec<Section> {
    let mut devices: Vec<(String, Vec<Section>)> = Vec::new();
    for section in sections.drain(..) {
        match devices.iter_mut().find(|(device, _)| *device == section.device) {
            Some((_, own)) => own.push(section),
            None => devices.push((section.device.clone(), vec![section])),
        }
    }
    let mut orphans = Vec::new();
    for (_, own) in devices {
        let (rooted, rest) = parents_first(own, |section| section.place);
        sections.extend(rooted);
        orphans.extend(rest);
    }
    orphans
}

/// Takes one command in.
///
/// # Errors
/// Why it is left out as a whole.
fn carry_out(
    words: &[&str],
    sections: &mut Vec<Section>,
    left_out: &mut Vec<String>,
) -> Result<(), &'static str> {
    const NO_OBJECT: &str = "systemd-networkd makes qdiscs and classes only";
    let [object, verb, rest @ ..] = words else { return Err(NO_OBJECT) };
    let is = |word: &str, name: &str| !word.is_empty() && name.starts_with(word);
    let is_class = is(object, "class") && !is(object, "chain");
    if !is_class && !is(object, "qdisc") {
        return Err(NO_OBJECT);
    }
    let mut head = Head::default();
    let options = head.read(rest);
    let device = head.device.ok_or("it names no device")?.to_owned();
    // `Name=` takes patterns, and a file is text.
    if !device.chars().all(|letter| letter.is_ascii_graphic() && !"*?[]!".contains(letter)) {
        return Err("the device's name cannot be written");
    }
    let hook = options.first().copied().filter(|kind| matches!(*kind, "ingress" | "clsact"));
    let parent = match (hook, head.parent) {
        (Some("ingress"), _) => Parent::Ingress,
        (Some(_), _) => Parent::Clsact,
        (None, None) => Parent::Root,
        (None, Some(text)) => match parse_classid(text).ok_or(NO_NUMBER)? {
            Handle::ROOT => Parent::Root,
            // A class right below its qdisc.
            of if is_class && of.minor() == 0 => Parent::Root,
            of => Parent::Of(of),
        },
    };
    // A hook has a handle of its own.
    let id = match head.id.filter(|_| hook.is_none()) {
        Some(text) => Some(if is_class { parse_classid(text) } else { parse_handle(text) }.ok_or(NO_NUMBER)?),
        None => None,
    };
    let is_it = |section: &Section| {
        section.device == device
            && matches!(section.place.makes, Makes::Class(_)) == is_class
            && if is_class { section.place.id == id } else { section.place.parent == parent }
    };
    let at = sections.iter().position(is_it);
    if is(verb, "delete") {
        sections.remove(at.ok_or("what it deletes is not known here")?);
        // What hung on it goes with it.
        drop_orphans(sections);
        return Ok(());
    }
    let [kind, options @ ..] = options else { return Err("it names no kind") };
    let makes = |row: &&SectionRow| match row.makes {
        Makes::Qdisc(None) => !is_class && hook.is_some(),
        Makes::Qdisc(Some(own)) => !is_class && own == *kind,
        Makes::Class(own) => is_class && own == *kind,
    };
    let row = SECTIONS.iter().find(makes);
    // Another kind takes the place of a qdisc, and all below that goes with it.
    let kept = at.filter(|at| row.is_some_and(|row| row.name == sections[*at].row.name));
    if let (Some(at), None) = (at, kept) {
        sections.remove(at);
        drop_orphans(sections);
    }
    let row = row.ok_or("systemd-networkd has no section for it")?;
    let place = Place { makes: row.makes, parent, id };
    let mut section = Section { device, row, place, settings: Vec::new() };
    // A change keeps what it does not name.
    if let (Some(at), true) = (kept, is(verb, "change")) {
        let old = &sections[at];
        (section.settings, section.place.id) = (old.settings.clone(), id.or(old.place.id));
    }
    let unknown = section.take(options);
    left_out.extend(
        unknown
            .into_iter()
            .map(|words| format!("[{}] has no key for it, of {}: {words}", row.name, section.name())),
    );
    match kept {
        Some(at) => sections[at] = section,
        None => sections.push(section),
    }
    Ok(())
}

/// Why a command is left out whose numbers are none.
const NO_NUMBER: &str = "its numbers cannot be read";

/// What stands before the kind.
#[derive(Default)]
struct Head<'w> {
    device: Option<&'w str>,
    /// `None`: the root.
    parent: Option<&'w str>,
    id: Option<&'w str>,
}

impl<'w> Head<'w> {
    /// Reads it; the words from the kind on are left.
    fn read<'s>(&mut self, words: &'s [&'w str]) -> &'s [&'w str] {
        let mut rest = words;
        loop {
            rest = match rest {
                ["dev", device, rest @ ..] => {
                    self.device = Some(device);
                    rest
                }
                ["root", rest @ ..] => rest,
                ["parent", parent, rest @ ..] => {
                    self.parent = Some(parent);
                    rest
                }
                ["handle" | "classid", id, rest @ ..] => {
                    self.id = Some(id);
                    rest
                }
                _ => return rest,
            };
        }
    }
}

impl Section {
    /// Takes options of tc in; those that no key has are returned, neighbours together.
    fn take(&mut self, options: &[&str]) -> Vec<String> {
        let (mut unknown, mut rest) = (Vec::<String>::new(), options);
        let mut was_unknown = false;
        while let [word, more @ ..] = rest {
            if let Some((settings, left)) = self.row.keys.iter().find_map(|key| self.setting(key, word, more))
            {
                for (name, value) in settings {
                    self.settings.retain(|(known, _)| *known != name);
                    self.settings.push((name, value));
                }
                (rest, was_unknown) = (left, false);
                continue;
            }
            match unknown.last_mut().filter(|_| was_unknown) {
                Some(words) => *words += &format!(" {word}"),
                None => unknown.push((*word).to_owned()),
            }
            (rest, was_unknown) = (more, true);
        }
        unknown
    }

    /// The keys and values that a word of tc comes to with those behind it, if it is this key's; and what is
    /// left.
    fn setting<'s, 'w>(
        &self,
        key: &'static Key,
        word: &str,
        more: &'s [&'w str],
    ) -> Option<(Vec<KeyValue>, &'s [&'w str])> {
        if key.option.is_empty() {
            return Some((vec![(key.name, key.value.by_word(word)?)], more));
        }
        let (first, behind) = key.option.split_once(' ').unwrap_or((key.option, ""));
        let more = more.strip_prefix(behind.split_whitespace().collect::<Vec<_>>().as_slice());
        let more = more.filter(|_| first == own_name(word))?;
        if let ValueForm::List(form) = key.value {
            let count = more.iter().take_while(|word| form.written(word).is_some()).count();
            let (values, rest) = more.split_at(count);
            let values: Option<Vec<String>> = values.iter().map(|word| form.written(word)).collect();
            return Some((vec![(key.name, values.filter(|values| !values.is_empty())?.join(" "))], rest));
        }
        let [value, rest @ ..] = more else { return None };
        let mut settings = vec![(key.name, key.value.written(value)?)];
        // What is said behind it without a word of its own, such as a delay's jitter.
        let next = self.row.keys.iter().find(|next| next.behind.is_some_and(|(other, _)| other == key.name));
        if let (Some(next), [value, rest @ ..]) = (next, rest)
            && let Some(value) = next.value.written(value)
        {
            settings.push((next.name, value));
            return Some((settings, rest));
        }
        Some((settings, rest))
    }

    /// What tells it from others of its kind.
    fn name(&self) -> String {
        match (self.place.id, self.place.parent) {
            (Some(id), _) => id.to_string(),
            (None, Parent::Of(parent)) => format!("parent {parent}"),
            (None, _) => "the root".to_owned(),
        }
    }

    fn text(&self) -> String {
        let parent = match self.place.parent {
            Parent::Root => "root".to_owned(),
            Parent::Ingress => "ingress".to_owned(),
            Parent::Clsact => "clsact".to_owned(),
            Parent::Of(parent) => parent.to_string(),
        };
        let mut out = format!("\n[{}]\nParent={parent}\n", self.row.name);
        if let Some(id) = self.place.id {
            let (key, id) = match self.row.makes {
                Makes::Class(_) => ("ClassId", id.to_string()),
                Makes::Qdisc(_) => ("Handle", format!("{:x}", id.major())),
            };
            let _ = writeln!(out, "{key}={id}");
        }
        for key in self.row.keys {
            if let Some((name, value)) = self.settings.iter().find(|(name, _)| *name == key.name) {
                let _ = writeln!(out, "{name}={value}");
            }
        }
        out
    }
}

/// tc's other names of one option.
fn own_name(word: &str) -> &str {
    match word {
        "buffer" | "maxburst" => "burst",
        "cbuffer" | "cmaxburst" => "cburst",
        "minburst" => "mtu",
        other => other,
    }
}
