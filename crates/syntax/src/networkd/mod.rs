//! `.network` files of systemd-networkd (systemd.network(5)): their sections about traffic control as
//! commands of tc, and commands of tc as such sections.
//!
//! Each section is a row of [`rows::SECTIONS`], each of its keys an option of tc with a kind of value. What
//! systemd-networkd would leave out with a warning is a [`Problem`].

mod file;
mod object;
mod order;
mod rows;
mod values;
mod write;

pub use object::NetworkdCommand;
pub use write::{NetworkdFiles, write};

use crate::nft::Span;
use crate::short::Problem;
use file::{FileSection, Setting};
use object::Object;
use rows::SECTIONS;

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

/// The one section that systemd 244 had for qdiscs of all kinds.
const BEFORE_245: &str = "TrafficControlQueueingDiscipline";

/// Is this the beginning of a line of a section about traffic control, `[CAKE]` for example?
pub fn is_section(line: &str) -> bool {
    let name = line.trim().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    name.is_some_and(|name| name == BEFORE_245 || rows::find(name).is_some())
}

/// Reads a file: its sections about traffic control, for the devices that it names.
///
/// ```
/// use tidegate_syntax::networkd;
///
/// let file = "[Match]\nName=eth0\n[CAKE]\nBandwidth=9M\nNAT=yes\n";
/// let policy = networkd::read(file).unwrap();
/// let words = policy.commands[0].words.join(" ");
/// assert_eq!(words, "qdisc replace dev eth0 root cake bandwidth 9000000bit nat");
/// ```
///
/// # Errors
/// Every line that systemd-networkd would leave out, and sections that can never be carried out, in the
/// order of the file.
pub fn read(text: &str) -> Result<NetworkdPolicy, Vec<Problem>> {
    let (sections, mut problems) = file::sections(text, |name| rows::find(name).is_some());
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
    problems.extend(sections.iter().filter(|section| section.name == BEFORE_245).map(|section| {
        let what = format!("[{BEFORE_245}] is of systemd 244, and is not read");
        Problem::new(
            section.heading,
            what,
            "write a section of its own for each qdisc: [NetworkEmulator], [QDisc] …",
        )
    }));
    let (devices, mut notes) = devices(&sections);
    notes.extend(unread(&sections));
    let (ordered, orphans) = order::parents_first(objects, |object| object.place);
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
