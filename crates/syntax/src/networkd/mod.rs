//! `.network` files of systemd-networkd (systemd.network(5)): their sections about traffic control as commands of
//! tc, and commands of tc as such sections.
//!
//! Each section is a row of [`rows::SECTIONS`], each of its keys an option of tc with a kind of value. What
//! systemd-networkd would leave out with a warning is a [`Problem`].

mod file;
mod order;
mod rows;
mod values;
mod write;

pub use write::{NetworkdFiles, write};

use crate::nft::Span;
use crate::short::Problem;
use crate::units::{parse_classid, parse_handle};
use file::{FileSection, Setting};
use rows::{Makes, SECTIONS, SectionRow};
use tidegate_packet::Handle;

/// The most qdiscs and classes of a file, and the most devices: more would be no configuration.
const MOST_OBJECTS: usize = 4096;
const MOST_DEVICES: usize = 64;

/// What a file comes to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkdPolicy {
    /// The devices that it is for.
    pub devices: Vec<String>,
    /// The commands of tc, parents before what hangs on them.
    pub commands: Vec<NetworkdCommand>,
    /// What its reader should know.
    pub notes: Vec<Problem>,
}

/// A command of tc that a section comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkdCommand {
    /// The arguments of tc.
    pub words: Vec<String>,
    /// The line of the section's heading, from 1.
    pub line: usize,
}

/// Is this the beginning of a line of a section about traffic control, `[CAKE]` for example?
pub fn is_section(line: &str) -> bool {
    let name = line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    name.is_some_and(|name| rows::find(name).is_some())
}

/// Reads a file: its sections about traffic control, for the devices that it names.
///
/// ```
/// use tidegate_syntax::networkd;
///
/// let file = "[Match]\nName=eth0\n[CAKE]\nBandwidth=9M\nNAT=yes\n";
/// let policy = networkd::read(file).unwrap();
/// assert_eq!(policy.commands[0].words.join(" "), "qdisc replace dev eth0 root cake bandwidth 9000000bit nat");
/// ```
///
/// # Errors
/// Every line that systemd-networkd would leave out, and sections that can never be carried out, in the order of
/// the file.
pub fn read(text: &str) -> Result<NetworkdPolicy, Vec<Problem>> {
    let (sections, mut problems) = file::sections(text);
    let mut objects = Vec::new();
    for section in &sections {
        let Some(row) = rows::find(section.name) else { continue };
        if objects.len() == MOST_OBJECTS {
            let what = format!("there are more than {MOST_OBJECTS} qdiscs and classes");
            problems.push(Problem::new(section.heading, what, "divide the file"));
            break;
        }
        match Object::read(row, section) {
            Ok(object) => objects.push(object),
            Err(wrong) => problems.extend(wrong),
        }
    }
    let (devices, mut notes) = devices(&sections);
    notes.extend(unread(&sections));
    let (ordered, orphans) = order::parents_first(objects);
    // What a section with a mistake would have made is no object here.
    if problems.is_empty() {
        problems.extend(orphans.iter().map(Object::without_parent));
    }
    if !problems.is_empty() {
        problems.sort_by_key(|problem| problem.span.line);
        return Err(problems);
    }
    let commands = devices.iter().flat_map(|device| ordered.iter().map(move |object| object.command(device)));
    notes.extend(ordered.iter().filter_map(|object| object.note.clone()));
    Ok(NetworkdPolicy { commands: commands.collect(), devices, notes })
}

/// A qdisc or a class of a file.
#[derive(Clone, Debug)]
struct Object {
    makes: Makes,
    /// Its section's heading.
    heading: Span,
    parent: Parent,
    /// The handle of a qdisc, the number of a class.
    id: Option<Handle>,
    options: Vec<String>,
    note: Option<Problem>,
}

/// What an object hangs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Parent {
    Root,
    Ingress,
    Clsact,
    Of(Handle),
}

impl Object {
    fn read(row: &'static SectionRow, section: &FileSection<'_>) -> Result<Object, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut object = Object {
            makes: row.makes,
            heading: section.heading,
            parent: Parent::Root,
            id: None,
            options: Vec::new(),
            note: None,
        };
        let mut given: Given<'_, '_> = Vec::new();
        for setting in &section.settings {
            let known = match setting.key {
                "Parent" => object.set_parent(setting),
                "Handle" if matches!(row.makes, Makes::Qdisc(_)) => object.set_id(setting),
                "ClassId" if matches!(row.makes, Makes::Class(_)) => object.set_id(setting),
                _ => match row.keys.iter().find(|key| key.name == setting.key) {
                    Some(key) => {
                        remember(&mut given, key.name, setting);
                        Ok(())
                    }
                    None => Err(row.unknown(setting)),
                },
            };
            problems.extend(known.err());
        }
        for key in row.keys {
            let settings = settings_of(&given, key.name);
            let [.., last] = settings else { continue };
            if let Some((_, words)) = key.behind.filter(|(other, _)| settings_of(&given, other).is_empty()) {
                object.options.extend(words.split(' ').map(str::to_owned));
            }
            match key.words(settings) {
                Ok(words) => object.options.extend(words),
                Err(problem) => problems.push(problem),
            }
            if let Some(note) = key.note {
                object.note = Some(Problem::new(last.key_span, note, "see tc-cake(8)"));
            }
        }
        problems.extend(row.lacks(section));
        if problems.is_empty() { Ok(object) } else { Err(problems) }
    }

    fn set_parent(&mut self, setting: &Setting<'_>) -> Result<(), Problem> {
        self.parent = match setting.value {
            "root" => Parent::Root,
            "ingress" => Parent::Ingress,
            "clsact" => Parent::Clsact,
            text => {
                let parent = parse_classid(text).filter(|id| text.contains(':') && id.major() != 0);
                Parent::Of(parent.ok_or_else(|| {
                    setting.wrong(
                        "not a parent",
                        "write root, ingress, clsact, or a class such as 1:10 (hexadecimal)",
                    )
                })?)
            }
        };
        let is_hook = matches!(self.parent, Parent::Ingress | Parent::Clsact);
        let takes_hook = matches!(self.makes, Makes::Qdisc(None));
        if is_hook != takes_hook {
            return Err(match takes_hook {
                true => setting.wrong(
                    "not a hook",
                    "write Parent=clsact or Parent=ingress; others have sections of their own",
                ),
                false => {
                    setting.wrong("the place of [QDisc] alone", "write Parent=root, or a class such as 1:10")
                }
            });
        }
        Ok(())
    }

    fn set_id(&mut self, setting: &Setting<'_>) -> Result<(), Problem> {
        let id = match self.makes {
            Makes::Qdisc(_) => parse_handle(setting.value).filter(|id| id.major() != 0 && id.minor() == 0),
            Makes::Class(_) => {
                parse_classid(setting.value).filter(|id| setting.value.contains(':') && id.major() != 0)
            }
        };
        let remedy = match self.makes {
            Makes::Qdisc(_) => "write a hexadecimal number from 1 to ffff",
            Makes::Class(_) => "write two hexadecimal numbers with a colon: 1:10",
        };
        self.id = Some(id.ok_or_else(|| setting.wrong("no number that tc knows", remedy))?);
        Ok(())
    }

    /// The command that makes it.
    fn command(&self, device: &str) -> NetworkdCommand {
        let mut words: Vec<String> = Vec::new();
        let mut say = |parts: &[&str]| words.extend(parts.iter().map(|part| (*part).to_owned()));
        let (object, kind) = match self.makes {
            Makes::Qdisc(kind) => ("qdisc", kind),
            Makes::Class(kind) => ("class", Some(kind)),
        };
        say(&[object, "replace", "dev", device]);
        match (self.parent, kind) {
            (Parent::Root, _) => say(&["root"]),
            (Parent::Of(parent), _) => say(&["parent", &parent.to_string()]),
            (Parent::Ingress, _) => say(&["ingress"]),
            (Parent::Clsact, _) => say(&["clsact"]),
        }
        match (self.makes, self.id) {
            (Makes::Class(_), Some(id)) => say(&["classid", &id.to_string()]),
            // A hook has its own.
            (Makes::Qdisc(Some(_)), Some(id)) => say(&["handle", &id.to_string()]),
            _ => {}
        }
        say(kind.as_slice());
        words.extend(self.options.iter().cloned());
        NetworkdCommand { words, line: self.heading.line }
    }

    fn without_parent(&self) -> Problem {
        let awaited = match (self.parent, self.id) {
            (Parent::Of(parent), _) => parent.to_string(),
            (_, Some(id)) => id.qdisc().to_string(),
            (_, None) => "a qdisc at the root".to_owned(),
        };
        Problem::new(
            self.heading,
            format!(
                "nothing in this file makes {awaited}, on which this hangs: systemd-networkd waits for it"
            ),
            "write its section, or correct Parent=",
        )
    }
}

/// The settings of each key, in the order of the file.
type Given<'s, 't> = Vec<(&'static str, Vec<&'s Setting<'t>>)>;

/// Keeps a setting with those of its key; an empty value takes back what was said before.
fn remember<'s, 't>(given: &mut Given<'s, 't>, key: &'static str, setting: &'s Setting<'t>) {
    let at = given.iter().position(|(known, _)| *known == key);
    match (at, setting.value.is_empty()) {
        (Some(at), true) => drop(given.remove(at)),
        (Some(at), false) => given[at].1.push(setting),
        (None, true) => {}
        (None, false) => given.push((key, vec![setting])),
    }
}

/// The settings of a key; none where it is not given.
fn settings_of<'g, 's, 't>(given: &'g Given<'s, 't>, key: &str) -> &'g [&'s Setting<'t>] {
    given.iter().find(|(known, _)| *known == key).map_or(&[], |(_, settings)| settings)
}

/// The name of a device that stands in for those of a pattern.
const STAND_IN: &str = "eth0";

/// The devices that a file is for; for a pattern, or what is no name, one stands in.
fn devices(sections: &[FileSection<'_>]) -> (Vec<String>, Vec<Problem>) {
    let matched = sections.iter().filter(|section| section.name == "Match");
    let names: Vec<&Setting<'_>> =
        matched.flat_map(|section| &section.settings).filter(|setting| setting.key == "Name").collect();
    let (mut devices, mut notes) = (Vec::<String>::new(), Vec::new());
    for setting in &names {
        for name in setting.value.split_whitespace() {
            let is_pattern = name.contains(['*', '?', '[', '!']);
            let device = if is_pattern { stand_in_for(name) } else { name.to_owned() };
            if is_pattern {
                let what = format!("Name={name} fits several devices: `{device}` stands for them");
                notes.push(Problem::new(setting.value_span, what, "what is said of it holds for each"));
            }
            if devices.len() < MOST_DEVICES && !devices.contains(&device) {
                devices.push(device);
            }
        }
    }
    if devices.is_empty() {
        let span = sections.first().map_or(Span { line: 1, from: 1, to: 1 }, |section| section.heading);
        let what = format!(
            "the file names no device (Name= in [Match]): `{STAND_IN}` stands for those that it fits"
        );
        notes.push(Problem::new(span, what, "what is said of it holds for each"));
        devices.push(STAND_IN.to_owned());
    }
    (devices, notes)
}

/// A name that fits a pattern: `en*` gives en0.
fn stand_in_for(pattern: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let (begin, rest) = pattern.split_at(pattern.find(|letter| !is_plain(letter)).unwrap_or(pattern.len()));
    match (begin.is_empty(), rest) {
        (false, "*" | "?") if begin.len() < 15 => format!("{begin}0"),
        _ => STAND_IN.to_owned(),
    }
}

/// Sections that seem to be about traffic control, and are not known here.
fn unread<'s>(sections: &'s [FileSection<'s>]) -> impl Iterator<Item = Problem> + 's {
    let ends = ["Filter", "Queueing", "Class", "Scheduler", "Shaper", "Equalizer"];
    let seems = move |section: &&FileSection<'_>| {
        rows::find(section.name).is_none() && ends.iter().any(|end| section.name.ends_with(end))
    };
    sections.iter().filter(seems).map(|section| {
        let known: Vec<&str> = SECTIONS.iter().map(|row| row.name).collect();
        Problem::new(
            section.heading,
            format!("[{}] is not known here, and left out", section.name),
            format!("known are {}", known.join(", ")),
        )
    })
}

#[cfg(test)]
mod tests;
