//! `.network` files of systemd-networkd (systemd.network(5)): their sections about traffic control as
//! commands of tc, and commands of tc as such sections.
//!
//! Each section is a row of [`rows::SECTIONS`], each of its keys an option of tc with a kind of value. What
//! systemd-networkd would leave out with a warning is a [`Problem`].

mod file;
mod matched;
mod object;
mod order;
mod rows;
mod values;
mod write;

pub use write::{NetworkdFiles, write};

use crate::foreign::ForeignPolicy;
use crate::nearest;
use crate::short::Problem;
use file::FileSection;
use object::Object;
use rows::SECTIONS;
use std::collections::BTreeSet;

/// The most qdiscs and classes of a file, and of all its devices together: more would be no configuration.
const MOST_OBJECTS: usize = 4096;
const MOST_COMMANDS: usize = 16_384;
/// After so many mistakes no others are looked for.
const MOST_PROBLEMS: usize = 200;

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
pub fn read(text: &str) -> Result<ForeignPolicy, Vec<Problem>> {
    let (sections, mut problems) = file::sections(text, |name| rows::find(name).is_some());
    let mut objects = Vec::new();
    for section in &sections {
        let Some(row) = rows::find(section.name) else { continue };
        if objects.len() == MOST_OBJECTS {
            let what = format!("there are more than {MOST_OBJECTS} qdiscs and classes");
            problems.push(Problem::new(section.heading, what, "divide the file"));
        }
        if objects.len() == MOST_OBJECTS || problems.len() >= MOST_PROBLEMS {
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
    let (devices, mut notes) = matched::devices(&sections).unwrap_or_else(|problem| {
        problems.push(problem);
        Default::default()
    });
    for (problem, is_mistake) in unknown_sections(&sections).take(MOST_PROBLEMS) {
        if is_mistake { problems.push(problem) } else { notes.push(problem) }
    }
    problems.extend(doubled(&objects));
    if devices.len() * objects.len() > MOST_COMMANDS {
        let what =
            format!("it makes more than {MOST_COMMANDS} qdiscs and classes on its {} devices", devices.len());
        problems.push(Problem::new(objects[0].heading, what, "divide the file"));
    }
    let (ordered, orphans) = order::parents_first(objects, |object| object.place);
    // What a section with a mistake would have made is no object here.
    if problems.is_empty() {
        problems.extend(orphans.iter().map(|orphan| orphan.without_parent(&orphans)));
    }
    if !problems.is_empty() {
        problems.sort_by_key(|problem| problem.span.line);
        return Err(problems);
    }
    let commands = devices.iter().flat_map(|device| ordered.iter().map(move |object| object.command(device)));
    notes.extend(ordered.iter().filter_map(|object| object.note.clone()));
    Ok(ForeignPolicy { commands: commands.collect(), devices, notes })
}

/// Sections of systemd.network(5) that are about other things.
const OTHERS: [&str; 32] = [
    "Match",
    "Link",
    "Network",
    "Address",
    "Neighbor",
    "IPv6AddressLabel",
    "RoutingPolicyRule",
    "NextHop",
    "Route",
    "DHCP",
    "DHCPv4",
    "DHCPv6",
    "DHCPPrefixDelegation",
    "IPv6PrefixDelegation",
    "IPv6AcceptRA",
    "IPv6NDP",
    "DHCPServer",
    "DHCPServerStaticLease",
    "IPv6SendRA",
    "IPv6Prefix",
    "IPv6RoutePrefix",
    "IPv6PREF64Prefix",
    "Bridge",
    "BridgeFDB",
    "BridgeMDB",
    "LLDP",
    "CAN",
    "IPoIB",
    "SR-IOV",
    "BridgeVLAN",
    "MobileNetwork",
    "Prefix",
];

/// Sections that are none of systemd's, or newer than what is known here, and whether each is a mistake: one
/// that is nearly a section about traffic control.
fn unknown_sections<'s>(sections: &'s [FileSection<'s>]) -> impl Iterator<Item = (Problem, bool)> + 's {
    let is_known = |name: &str| {
        OTHERS.contains(&name) || name == BEFORE_245 || name.starts_with("X-") || rows::find(name).is_some()
    };
    sections.iter().filter(move |section| !is_known(section.name)).map(|section| {
        let (heading, name) = (section.heading, section.name);
        let names = || SECTIONS.iter().map(|row| row.name);
        match nearest(name, names()) {
            Some(near) => {
                let what = format!("[{name}] is no section, so systemd-networkd leaves it out");
                (Problem::new(heading, what, format!("did you mean [{near}]?")), true)
            }
            None => {
                let known = names().collect::<Vec<_>>().join(", ");
                let what = format!("[{name}] is not known here, and left out");
                (Problem::new(heading, what, format!("known are {known}")), false)
            }
        }
    })
}

/// Two qdiscs in one place, or two classes of one number: only one of them can be there.
fn doubled(objects: &[Object]) -> Vec<Problem> {
    let (mut there, mut problems) = (BTreeSet::new(), Vec::new());
    for object in objects.iter().filter(|object| !there.insert(object.place.key())) {
        let what = "another section makes something in the same place, or of the same number: \
                    only one of them can be there";
        problems.push(Problem::new(object.heading, what, "leave one out, or correct Parent= or ClassId="));
    }
    problems
}

#[cfg(test)]
mod tests;
