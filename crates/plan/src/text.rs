//! A plan as people read it: the commands of tc that would do the same, with `+`, `-` and `~`.

use crate::steps::{ChangePlan, Item, PlanStep, Sign};
use std::fmt::Write as _;
use tidegate_packet::Handle;
use tidegate_policy::dump::FilterEntry;
use tidegate_syntax::tc::{self, Object, ShowFlags, ShowWhat};

/// How items are printed: with their details, without counters.
const DETAILS: ShowFlags = ShowFlags { stats: false, ..ShowFlags::FULL };
/// The most lines that are shown of one device.
const MOST: usize = 60;

const fn sign(sign: Sign) -> char {
    match sign {
        Sign::Make => '+',
        Sign::Change => '~',
        Sign::Remove => '-',
    }
}

/// What a step does, as a word: `add`, `change`, `delete`.
pub const fn word(sign: Sign) -> &'static str {
    match sign {
        Sign::Make => "add",
        Sign::Change => "change",
        Sign::Remove => "delete",
    }
}

/// A plan of a device, a line for each step.
pub fn text(dev: &str, plan: &ChangePlan) -> String {
    let mut out = format!("--- {dev}: installed\n+++ {dev}: wanted\n");
    for step in plan.steps.iter().take(MOST) {
        let _ = writeln!(out, "{} {}", sign(step.sign), line(step));
    }
    if plan.steps.len() > MOST {
        let _ = writeln!(out, "  … and {} more", plan.steps.len() - MOST);
    }
    if plan.kept > 0 {
        let _ = writeln!(out, "= {} qdiscs, classes and filters stay as they are", plan.kept);
    }
    out
}

/// How a device differs from what was applied to it: what would bring that back, a line for each step.
pub fn drift(dev: &str, back: &ChangePlan) -> String {
    let shown = text(dev, back);
    // The heading says which states are compared.
    let steps = shown.lines().skip(2).filter(|line| !line.starts_with('=')).map(|line| format!("{line}\n"));
    format!("--- {dev}: as it is\n+++ {dev}: as it was applied\n{}", steps.collect::<String>())
}

/// The command that does what a step does.
pub fn line(step: &PlanStep) -> String {
    let (dev, listing) = item_text(&step.item);
    let verb = match step.sign {
        Sign::Make => "add",
        Sign::Change => "change",
        Sign::Remove => return removal(dev, &step.item),
    };
    let text = format!("# dev {dev}\n{}{listing}", above(&step.item));
    // Automatic handles and what a kind does not show leave the listing's own words.
    let last = tc::read_listing(&text).ok().and_then(|commands| commands.into_iter().next_back());
    match last {
        Some(command) => {
            let words = command.args.iter().map(String::as_str);
            let words =
                words.map(|word| if matches!(word, "add" | "replace" | "change") { verb } else { word });
            format!("tc {}", words.collect::<Vec<_>>().join(" "))
        }
        None => listing.split_whitespace().collect::<Vec<_>>().join(" "),
    }
}

/// The listing of an item's parent: a reader of listings must have seen that first.
fn above(item: &Item) -> String {
    let parent = match item {
        Item::Qdisc(dump) => dump.parent,
        Item::Class(dump) if dump.parent == Handle::ROOT => dump.classid.qdisc(),
        Item::Class(dump) => dump.parent,
        Item::Filter(_) => return String::new(),
    };
    match parent {
        Handle::ROOT | Handle::INGRESS => String::new(),
        parent if parent.minor() == 0 => format!("qdisc htb {parent} root\n"),
        parent => format!("qdisc htb {} root\nclass htb {parent} root\n", parent.qdisc()),
    }
}

/// A filter's number as tc writes it: u32's has three parts.
fn number(kind: &str, handle: u32) -> String {
    match kind {
        "u32" => {
            format!("{:x}:{:x}:{:x}", handle >> 20, handle >> 12 & 0xff, handle & 0xfff).replace(":0:", "::")
        }
        _ => format!("{handle:#x}"),
    }
}

fn item_text(item: &Item) -> (&str, String) {
    match item {
        Item::Qdisc(dump) => {
            let what = ShowWhat::of(Object::Qdisc);
            (&dump.dev, tc::show_qdiscs(std::slice::from_ref(dump), &what, &DETAILS))
        }
        Item::Class(dump) => {
            let what = ShowWhat::on(Object::Class, &dump.dev);
            (&dump.dev, tc::show_classes(std::slice::from_ref(dump), &what, &DETAILS))
        }
        Item::Filter(dump) => {
            let what = ShowWhat::on(Object::Filter, &dump.dev);
            (&dump.dev, tc::show_filters(std::slice::from_ref(dump), &what, &DETAILS))
        }
    }
}

fn removal(dev: &str, item: &Item) -> String {
    match item {
        Item::Qdisc(dump) if dump.parent == Handle::INGRESS => {
            format!("tc qdisc del dev {dev} {} ({})", dump.kind.name(), dump.handle)
        }
        Item::Qdisc(dump) if dump.parent == Handle::ROOT => {
            format!("tc qdisc del dev {dev} root ({} {})", dump.kind.name(), dump.handle)
        }
        Item::Qdisc(dump) => {
            format!(
                "tc qdisc del dev {dev} parent {} handle {} ({})",
                dump.parent,
                dump.handle,
                dump.kind.name()
            )
        }
        Item::Class(dump) => {
            format!("tc class del dev {dev} classid {} ({})", dump.classid, dump.kind.name())
        }
        Item::Filter(dump) => {
            let handle = match &dump.entry {
                FilterEntry::Filter { handle, .. } => format!(" handle {}", number(dump.kind, *handle)),
                _ => String::new(),
            };
            format!("tc filter del dev {dev} parent {} pref {}{handle} {}", dump.parent, dump.pref, dump.kind)
        }
    }
}
