//! The devices that a file is for: `Name=` in its `[Match]`.

use super::file::{FileSection, Setting};
use crate::nft::Span;
use crate::short::Problem;

/// The most devices of a file: more would be no configuration.
const MOST_DEVICES: usize = 64;
/// The name of a device that stands in for those of a pattern.
const STAND_IN: &str = "eth0";
/// The longest name of a device, in bytes.
const LONGEST_NAME: usize = 15;
/// What is to be done about a device that stands for others.
const FOR_EACH: &str = "what is said of it holds for each";

/// The devices, and what is to be known of them; for a pattern, or what is no name, one stands in.
pub(super) fn devices(sections: &[FileSection<'_>]) -> Result<(Vec<String>, Vec<Problem>), Problem> {
    let matches = || sections.iter().filter(|section| section.name == "Match");
    let mut names: Vec<(&Setting<'_>, &str)> = Vec::new();
    for setting in matches().flat_map(|section| &section.settings).filter(|setting| setting.key == "Name") {
        // An empty value takes back what was said before.
        if setting.value.is_empty() {
            names.clear();
        }
        names.extend(setting.value.split_whitespace().map(|name| (setting, name)));
    }
    let (mut devices, mut notes) = (Vec::<String>::new(), Vec::new());
    // A list that begins with `!` is of those that it is not for.
    let others = names.first().filter(|(_, name)| name.starts_with('!')).map(|(setting, _)| *setting);
    if let Some(setting) = others {
        let what = format!(
            "Name={} names those that it is not for: `{STAND_IN}` stands for the others",
            setting.value
        );
        notes.push(Problem::new(setting.value_span, what, FOR_EACH));
        names.clear();
        devices.push(STAND_IN.to_owned());
    }
    for (setting, name) in names {
        let is_pattern = name.contains(['*', '?', '[']);
        let device = if is_pattern { stand_in_for(name) } else { name.to_owned() };
        if device.len() > LONGEST_NAME || device.contains('/') {
            let what =
                format!("Name={name} is no name of a device: it has at most {LONGEST_NAME} bytes, and no /");
            return Err(Problem::new(setting.value_span, what, "correct it (`ip link` lists the devices)"));
        }
        if is_pattern {
            let what = format!("Name={name} fits several devices: `{device}` stands for them");
            notes.push(Problem::new(setting.value_span, what, FOR_EACH));
        }
        if devices.contains(&device) {
            continue;
        }
        if devices.len() == MOST_DEVICES {
            let what = format!("it names more than {MOST_DEVICES} devices");
            return Err(Problem::new(setting.value_span, what, "divide the file"));
        }
        devices.push(device);
    }
    if devices.is_empty() {
        let span = sections.first().map_or(Span { line: 1, from: 1, to: 1 }, |section| section.heading);
        let asks = matches().flat_map(|section| &section.settings).any(|setting| !setting.value.is_empty());
        let what = if asks {
            format!("the file names no device (Name= in [Match]): `{STAND_IN}` stands for those that it fits")
        } else {
            format!(
                "[Match] asks for nothing, and systemd-networkd leaves such a file out: `{STAND_IN}` stands in"
            )
        };
        notes.push(Problem::new(span, what, if asks { FOR_EACH } else { "write Name= in [Match]" }));
        devices.push(STAND_IN.to_owned());
    }
    Ok((devices, notes))
}

/// A name that fits a pattern: `en*` gives en0.
fn stand_in_for(pattern: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let (begin, rest) = pattern.split_at(pattern.find(|letter| !is_plain(letter)).unwrap_or(pattern.len()));
    match (begin.is_empty(), rest) {
        (false, "*" | "?") if begin.len() < LONGEST_NAME => format!("{begin}0"),
        _ => STAND_IN.to_owned(),
    }
}
