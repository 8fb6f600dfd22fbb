//! A section as a qdisc or a class: its settings as words of tc.

use super::file::{FileSection, Setting};
use super::order::{Parent, Place};
use super::rows::{Key, Makes, SectionRow};
use super::values::ValueForm;
use crate::foreign::ForeignCommand;
use crate::nearest;
use crate::nft::Span;
use crate::short::Problem;
use crate::units::{parse_classid, parse_handle};

/// A qdisc or a class of a file.
#[derive(Clone, Debug)]
pub(super) struct Object {
    pub(super) place: Place,
    /// Its section's heading.
    pub(super) heading: Span,
    options: Vec<String>,
    pub(super) note: Option<Problem>,
}

impl Object {
    pub(super) fn read(row: &'static SectionRow, section: &FileSection<'_>) -> Result<Object, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut object = Object {
            place: Place { makes: row.makes, parent: Parent::Root, id: None },
            heading: section.heading,
            options: Vec::new(),
            note: None,
        };
        let mut given: Given<'_, '_> = Vec::new();
        // systemd leaves keys that begin so to others.
        for setting in section.settings.iter().filter(|setting| !setting.key.starts_with("X-")) {
            let known = match setting.key {
                "Parent" => object.set_parent(setting),
                "Handle" if matches!(row.makes, Makes::Qdisc(_)) => object.set_id(setting),
                "ClassId" if matches!(row.makes, Makes::Class(_)) => object.set_id(setting),
                _ => match row.keys.iter().find(|key| key.name == setting.key) {
                    Some(key) => {
                        remember(&mut given, key.name, setting);
                        Ok(())
                    }
                    None => Err(unknown(row, setting)),
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
            match words_of(key, settings) {
                Ok(words) => object.options.extend(words),
                Err(problem) => problems.push(problem),
            }
            if let Some(note) = key.note {
                object.note = Some(Problem::new(last.key_span, note, "see tc-cake(8)"));
            }
        }
        problems.extend(lacks(row, section));
        if problems.is_empty() { Ok(object) } else { Err(problems) }
    }

    fn set_parent(&mut self, setting: &Setting<'_>) -> Result<(), Problem> {
        self.place.parent = match setting.value {
            "root" => Parent::Root,
            "ingress" => Parent::Ingress,
            "clsact" => Parent::Clsact,
            text => {
                // A class may name its qdisc so: both halves are one number, which the kernel takes for it.
                let is_class = matches!(self.place.makes, Makes::Class(_)) && !text.ends_with(':');
                let parent =
                    parse_classid(text).filter(|id| id.major() != 0 && (id.minor() != 0 || is_class));
                Parent::Of(parent.ok_or_else(|| {
                    setting.wrong(
                        "not a parent",
                        "write root, ingress, clsact, or a class such as 1:10 (hexadecimal)",
                    )
                })?)
            }
        };
        let is_hook = matches!(self.place.parent, Parent::Ingress | Parent::Clsact);
        let takes_hook = matches!(self.place.makes, Makes::Qdisc(None));
        if is_hook != takes_hook {
            return Err(match takes_hook {
                true => setting.wrong(
                    "not a hook",
                    "write Parent=clsact or Parent=ingress; others have sections of their own",
                ),
                false => {
                    let what = format!("{}={} is read of [QDisc] alone", setting.key, setting.value);
                    Problem::new(setting.value_span, what, "write Parent=root, or a class such as 1:10")
                }
            });
        }
        Ok(())
    }

    fn set_id(&mut self, setting: &Setting<'_>) -> Result<(), Problem> {
        let id = match self.place.makes {
            Makes::Qdisc(_) => parse_handle(setting.value).filter(|id| id.major() != 0 && id.minor() == 0),
            Makes::Class(_) => {
                parse_classid(setting.value).filter(|id| setting.value.contains(':') && id.major() != 0)
            }
        };
        let remedy = match self.place.makes {
            Makes::Qdisc(_) => "write a hexadecimal number from 1 to ffff",
            Makes::Class(_) => "write two hexadecimal numbers with a colon: 1:10",
        };
        self.place.id = Some(id.ok_or_else(|| setting.wrong("no number that tc knows", remedy))?);
        Ok(())
    }

    /// The command that makes it.
    pub(super) fn command(&self, device: &str) -> ForeignCommand {
        let mut words: Vec<String> = Vec::new();
        let mut say = |parts: &[&str]| words.extend(parts.iter().map(|part| (*part).to_owned()));
        let (object, kind) = match self.place.makes {
            Makes::Qdisc(kind) => ("qdisc", kind),
            Makes::Class(kind) => ("class", Some(kind)),
        };
        say(&[object, "replace", "dev", device]);
        match (self.place.parent, kind) {
            (Parent::Root, _) => say(&["root"]),
            (Parent::Of(parent), _) => say(&["parent", &parent.to_string()]),
            (Parent::Ingress, _) => say(&["ingress"]),
            (Parent::Clsact, _) => say(&["clsact"]),
        }
        match (self.place.makes, self.place.id) {
            (Makes::Class(_), Some(id)) => say(&["classid", &id.to_string()]),
            // A hook has its own.
            (Makes::Qdisc(Some(_)), Some(id)) => say(&["handle", &id.to_string()]),
            _ => {}
        }
        say(kind.as_slice());
        words.extend(self.options.iter().cloned());
        ForeignCommand { tool: "tc", words, line: self.heading.line }
    }

    /// Why it is never made; `others`: those of which that is so.
    pub(super) fn without_parent(&self, others: &[Object]) -> Problem {
        let awaited = match (self.place.parent, self.place.id) {
            (Parent::Of(parent), _) => parent.to_string(),
            (_, Some(id)) => id.qdisc().to_string(),
            (_, None) => "a qdisc at the root".to_owned(),
        };
        let is_made = |other: &&Object| match self.place.parent {
            Parent::Of(parent) => other.place.id == Some(parent),
            _ => false,
        };
        let what = match others.iter().any(|other| is_made(&other)) {
            true => format!("{awaited}, on which this hangs, waits for something itself: it is never made"),
            false => {
                format!(
                    "nothing in this file makes {awaited}, on which this hangs: systemd-networkd waits for it"
                )
            }
        };
        Problem::new(self.heading, what, "write its section, or correct Parent=")
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

/// A key that it does not have.
fn unknown(row: &SectionRow, setting: &Setting<'_>) -> Problem {
    let own = match row.makes {
        Makes::Qdisc(_) => ["Parent", "Handle"],
        Makes::Class(_) => ["Parent", "ClassId"],
    };
    let known: Vec<&str> = own.into_iter().chain(row.keys.iter().map(|key| key.name)).collect();
    let remedy = match nearest(setting.key, known.iter().copied()) {
        Some(name) => format!("did you mean {name}=?"),
        None => format!("its keys are {}", known.join("=, ") + "="),
    };
    let what = format!("[{}] has no {}=, so systemd-networkd leaves the line out", row.name, setting.key);
    Problem::new(setting.key_span, what, remedy)
}

/// A key that it cannot do without.
fn lacks(row: &SectionRow, section: &FileSection<'_>) -> Option<Problem> {
    let is_given = |name: &str| section.settings.iter().any(|setting| setting.key == name);
    let missing = row.needs.iter().find(|name| !is_given(name))?;
    let what = format!("[{}] without {missing}=, so systemd-networkd leaves the section out", row.name);
    Some(Problem::new(section.heading, what, format!("write {missing}=")))
}

/// The words of tc that it comes to: its lines' values, the last one's where it is not a list.
fn words_of(key: &Key, settings: &[&Setting<'_>]) -> Result<Vec<String>, Problem> {
    let mut words: Vec<String> = key.option.split_whitespace().map(str::to_owned).collect();
    let (form, used) = match key.value {
        ValueForm::List(form) => (*form, settings),
        form => (form, settings.last().map_or(&[][..], std::slice::from_ref)),
    };
    let is_list = matches!(key.value, ValueForm::List(_));
    for setting in used {
        let values: Vec<&str> =
            if is_list { setting.value.split_whitespace().collect() } else { vec![setting.value] };
        for value in values {
            let wrong = || setting.wrong("no value for it", &form.example());
            words.extend(form.word(value).ok_or_else(wrong)?);
        }
    }
    Ok(words)
}
