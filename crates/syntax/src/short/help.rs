//! `tidegate policy help`: made from the tables.

use super::apps::APPS;
use super::keys::{self, KEYS, Key, Section};
use super::links::{LINKS, link_named};
use super::presets::PRESETS;
use super::problem::listed;
use crate::nearest;
use std::fmt::Write as _;

/// All keys in short.
pub fn all() -> String {
    let mut out = String::from(
        "A short policy is a TOML file: the link at the top, then a section for each class. Classes are \
        served by rank: first = true, then the others,\n\
         then unclassified traffic, then last = true; within a rank in the order of the file.\n\n",
    );
    for (section, title) in [(Section::Top, "At the top:"), (Section::Class, "In [classes.NAME]:")] {
        let _ = writeln!(out, "{title}");
        for key in keys::keys(section) {
            let _ = writeln!(out, "  {:<10} {}", key.name, key.about);
        }
        out.push('\n');
    }
    out.push_str(
        "DNS, DHCP, neighbour discovery, NTP and short acknowledgements are always served first. IPv4 and \
    IPv6 are treated alike.\n",
    );
    out.push_str(
        "More about a key: tidegate policy help KEY. Applications, links, presets: tidegate policy list.\n",
    );
    out
}

/// One word: a key, an application, a kind of link, a preset.
///
/// # Errors
/// There is no such word; the nearest one if one is near.
pub fn word(word: &str) -> Result<String, Option<&'static str>> {
    let mut out = String::new();
    for key in KEYS.iter().filter(|key| key.name == word) {
        out.push_str(&one(key));
    }
    for preset in PRESETS.iter().filter(|preset| preset.name == word) {
        let _ = writeln!(out, "preset \"{}\": {}", preset.name, preset.about);
        let _ = writeln!(out, "One cake in each direction; with kind = \"classes\" these classes:");
        for class in preset.classes {
            let after = class
                .after
                .map_or(String::new(), |bytes| format!(", connections after {} MB", bytes / 1_000_000));
            let dscp = if class.dscp.is_empty() { String::new() } else { format!(", DSCP {:?}", class.dscp) };
            let _ = writeln!(
                out,
                "  {:<10} {} %: {}{dscp}{after}",
                class.name,
                class.share,
                listed(class.apps.iter().copied())
            );
        }
    }
    for app in APPS.iter().filter(|app| app.name == word) {
        let _ = writeln!(out, "application \"{}\": {}", app.name, app.about);
        for (name, ranges) in
            [("tcp", app.tcp), ("udp", app.udp)].into_iter().filter(|(_, ranges)| !ranges.is_empty())
        {
            let _ = writeln!(out, "  {name} {}", ports(ranges));
        }
        if !app.dscp.is_empty() {
            let _ =
                writeln!(out, "  DSCP {}", app.dscp.iter().map(u8::to_string).collect::<Vec<_>>().join(", "));
        }
    }
    if let Some(link) = link_named(word) {
        let cells = if link.atm {
            ", in ATM cells"
        } else if link.ptm {
            ", one byte in 65 is overhead (PTM)"
        } else {
            ""
        };
        let _ = writeln!(
            out,
            "link \"{}\": {}\n  overhead {} bytes, mpu {}{cells}",
            link.name, link.about, link.overhead, link.mpu
        );
    }
    if !out.is_empty() {
        return Ok(out);
    }
    let known = KEYS
        .iter()
        .map(|key| key.name)
        .chain(APPS.iter().map(|app| app.name))
        .chain(PRESETS.iter().map(|p| p.name));
    Err(nearest(word, known.chain(LINKS.iter().map(|link| link.name))))
}

fn one(key: &Key) -> String {
    let place = if key.section == Section::Top { "at the top of the file" } else { "in [classes.NAME]" };
    format!(
        "{}, {place}\n  {}\n  takes    {}\n  default  {}\n  example  {}\n",
        key.name,
        key.about,
        key.takes.words(),
        key.default,
        key.example
    )
}

fn ports(ranges: &[(u16, u16)]) -> String {
    let text = |(low, high): &(u16, u16)| if low == high { low.to_string() } else { format!("{low}-{high}") };
    ranges.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// `tidegate policy list`: presets, applications, links.
pub fn list() -> String {
    let mut out = String::from(
        "Presets (preset = \"…\"), one cake in each direction; with kind = \"classes\" a class for each sort of \
        traffic:\n",
    );
    for preset in &PRESETS {
        let _ = writeln!(out, "  {:<18} {}", preset.name, preset.about);
    }
    out.push_str("\nApplications (apps = [\"…\"]):\n");
    for app in &APPS {
        let _ = writeln!(out, "  {:<18} {}", app.name, app.about);
    }
    out.push_str("\nLinks (link = \"…\"), with overhead in bytes per IP packet:\n");
    for link in &LINKS {
        let _ = writeln!(out, "  {:<18} {:>3}  {}", link.name, link.overhead, link.about);
    }
    out
}

/// The keys as a table in Markdown, for the documents.
pub fn table(section: Section) -> String {
    let mut out = String::from("| key | takes | default | meaning |\n|---|---|---|---|\n");
    for key in keys::keys(section) {
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} |",
            key.name,
            key.takes.words().replace('|', "or"),
            key.default,
            key.about
        );
    }
    out
}
