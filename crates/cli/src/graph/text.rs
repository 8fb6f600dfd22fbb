//! The boxes as a tree of lines.

use super::model::{Box, Device, Model};

/// Each device with its tree; `note` may add a few words to a box's line. With `markers`, the rules whose
/// marks lead to a class, too.
pub(crate) fn draw(model: &Model, markers: bool, note: &dyn Fn(&Device, &Box) -> Option<String>) -> String {
    let mut out = String::new();
    for device in &model.devices {
        out.push_str(&format!("{}  {}\n", device.name, device.note));
        let drawing = Drawing { device, note, markers };
        drawing.under(None, "", &mut out);
    }
    if out.is_empty() {
        out.push_str("no device has a qdisc that was configured\n");
    }
    out
}

struct Drawing<'d> {
    device: &'d Device,
    note: &'d dyn Fn(&Device, &Box) -> Option<String>,
    markers: bool,
}

impl Drawing<'_> {
    fn children(&self, parent: Option<usize>) -> Vec<usize> {
        let boxes = self.device.boxes.iter().enumerate();
        boxes.filter(|(_, one)| one.parent == parent).map(|(at, _)| at).collect()
    }

    /// The filters of a qdisc that lead to no class, then what hangs on it.
    fn under(&self, parent: Option<usize>, indent: &str, out: &mut String) {
        let children = self.children(parent);
        let qdisc = parent.map(|at| &self.device.boxes[at]).filter(|one| !one.is_class);
        let notes = qdisc.map(|one| one.leads.as_slice()).unwrap_or_default();
        for (number, note) in notes.iter().enumerate() {
            let (branch, _) = branches(indent, number + 1 == notes.len() && children.is_empty());
            out.push_str(&format!("{branch}◂ {}\n", note.text));
        }
        for (number, child) in children.iter().enumerate() {
            self.one(*child, indent, number + 1 == children.len(), out);
        }
    }

    fn one(&self, at: usize, indent: &str, last: bool, out: &mut String) {
        let (branch, below) = branches(indent, last);
        let one = &self.device.boxes[at];
        let mut line = match one.is_class {
            true => format!("{branch}{} {}", one.name(), one.words),
            false => format!("{branch}{}", one.words),
        };
        // A leaf qdisc without classes of its own is on the same line.
        if let Some(leaf) = &one.leaf {
            line = format!("{}  → {leaf}", line.trim_end());
        }
        if let Some(text) = (self.note)(self.device, one) {
            line = format!("{}  [{text}]", line.trim_end());
        }
        out.push_str(line.trim_end());
        out.push('\n');
        if one.is_class {
            let bar = if self.children(Some(at)).is_empty() { "   " } else { "│  " };
            for lead in &one.leads {
                out.push_str(&format!("{below}{bar}◂ {}\n", lead.text));
                for marker in lead.markers.iter().filter(|_| self.markers) {
                    out.push_str(&format!("{below}{bar}   ◂ {marker}\n"));
                }
            }
        }
        self.under(Some(at), &below, out);
    }
}

/// The branches before an entry, and before the entries below it.
fn branches(indent: &str, last: bool) -> (String, String) {
    match last {
        true => (format!("{indent}└─ "), format!("{indent}   ")),
        false => (format!("{indent}├─ "), format!("{indent}│  ")),
    }
}
