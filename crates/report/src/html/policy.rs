//! The policy as a tree, and what it was tried on.

use super::chain::{ChainLink, ChainPlace, chain};
use super::palette::Palette;
use super::parts::{Data, Tabled as _, tied};
use super::tree::nested;
use crate::chart::TreeBox;
use maud::{Markup, html};
use std::collections::{BTreeMap, BTreeSet};
use tidegate_analysis::trial::{ClassFigures, Pair, classes_at_work, label};
use tidegate_measure::numbers::{milliseconds, rate, size};
use tidegate_measure::trial::{ClassSeries, TreeNode, TrialDocument, TrialRun};

/// Boxes drawn at most; the table has all.
const MOST_BOXES: usize = 48;

/// The trees of the policy, one a device.
pub(super) fn section(trial: &TrialDocument, pairs: &[Pair<'_>], palette: &Palette) -> Markup {
    if trial.tree.is_empty() {
        return Markup::default();
    }
    let run = classes_at_work(trial, pairs);
    let mut devices: Vec<&str> = Vec::new();
    for node in &trial.tree {
        if !devices.contains(&node.device.as_str()) {
            devices.push(&node.device);
        }
    }
    html! {
        section {
            h2 { "The policy" }
            @for device in &devices { (one(trial, device, run, palette)) }
        }
    }
}

fn one(trial: &TrialDocument, device: &str, run: Option<&TrialRun>, palette: &Palette) -> Markup {
    let here: Vec<&TreeNode> = trial.tree.iter().filter(|node| node.device == device).collect();
    let (nodes, left_out) = boxes(trial, &here, run, palette);
    let classes = here.iter().filter(|node| node.is_class).count();
    let dead: Vec<&str> =
        here.iter().filter(|node| node.unreachable.is_some()).map(|node| node.id.as_str()).collect();
    let title = format!("The queues on {device}");
    let under = run.map_or_else(String::new, |run| format!(", under {}", run.title));
    let caption = html! {
        b { (title) "." }
        " " (classes) " classes; ◂ marks the filters of a class. The bar: the share of its ceiling that it used"
        (under) "; the stroke on the bar is its guaranteed rate."
        @if !dead.is_empty() {
            " " span.key.lost { "No packet reaches " (dead.join(", ")) "." }
        }
        @if left_out > 0 { " " (left_out) " classes that carried nothing are only in the figures." }
    };
    html! {
        div.queues {
            p.small { (tied(caption)) }
            (nested(&title, &nodes))
            (table(trial, &here, run).csv_behind())
        }
    }
}

/// The boxes: a leaf's only qdisc is inside its box. And how many are left out.
fn boxes(
    trial: &TrialDocument,
    here: &[&TreeNode],
    run: Option<&TrialRun>,
    palette: &Palette,
) -> (Vec<TreeBox>, usize) {
    let parents: BTreeSet<&str> = here.iter().map(|node| node.parent.as_str()).collect();
    let idle = idle(trial, here, run);
    let mut nodes: Vec<TreeBox> = Vec::new();
    let mut ids: Vec<&str> = Vec::new();
    let mut folded: BTreeMap<usize, usize> = BTreeMap::new();
    let mut left_out = 0;
    for node in here {
        let parent = ids.iter().position(|id| *id == node.parent);
        let childless = !parents.contains(node.id.as_str());
        if let Some(parent) = parent.filter(|_| !node.is_class && childless) {
            nodes[parent].lines.push(format!("{} {}", node.kind, node.options));
            continue;
        }
        if idle.contains(node.id.as_str()) || nodes.len() == MOST_BOXES {
            left_out += usize::from(node.is_class);
            if let Some(parent) = parent.filter(|_| node.is_class) {
                *folded.entry(parent).or_default() += 1;
            }
            continue;
        }
        ids.push(&node.id);
        nodes.push(TreeBox { parent, ..boxed(trial, node, run, palette, childless) });
    }
    for (parent, count) in folded {
        nodes[parent].lines.push(if count == 1 {
            "and an idle class".into()
        } else {
            format!("and {count} idle classes")
        });
    }
    (nodes, left_out)
}

/// Boxes up to which a tree is drawn whole.
const WHOLE: usize = 24;

/// In a large tree, what carried nothing, nor anything below it; what nothing can reach is news, and stays.
fn idle<'t>(trial: &TrialDocument, here: &[&'t TreeNode], run: Option<&TrialRun>) -> BTreeSet<&'t str> {
    let Some(run) = run.filter(|_| here.len() > WHOLE) else { return BTreeSet::new() };
    let sent = |class: &&ClassSeries| class.sent.iter().any(|&bytes| bytes > 0);
    let sending: BTreeSet<&str> = run.classes.iter().filter(sent).map(|class| class.id.as_str()).collect();
    let mut kept: BTreeSet<&str> = BTreeSet::new();
    // Children come after their parents.
    for node in here.iter().rev() {
        let busy = node.unreachable.is_some() || sending.contains(label(trial, node).as_str());
        if busy || kept.contains(node.id.as_str()) || node.parent.is_empty() {
            kept.extend([node.id.as_str(), node.parent.as_str()]);
        }
    }
    here.iter().map(|node| node.id.as_str()).filter(|id| !kept.contains(id)).collect()
}

fn boxed(
    trial: &TrialDocument,
    node: &TreeNode,
    run: Option<&TrialRun>,
    palette: &Palette,
    childless: bool,
) -> TreeBox {
    let id = label(trial, node);
    let series =
        run.and_then(|run| run.classes.iter().find(|class| class.id == id).map(|class| (run, class)));
    let used = series.map(|(run, class)| ClassFigures::new(run, class).rate);
    let mut lines = Vec::new();
    if !node.title.is_empty() {
        lines.push(node.title.clone());
    }
    match (node.rate_bits, node.ceil_bits) {
        (Some(sure), Some(most)) if sure == most => lines.push(format!("exactly {}", rate(sure as f64))),
        (Some(sure), Some(most)) => lines.push(format!("{} – {}", rate(sure as f64), rate(most as f64))),
        (Some(sure), None) => lines.push(rate(sure as f64)),
        _ => {}
    }
    if !node.is_class && childless {
        lines.push(node.options.clone());
    }
    let load = used.zip(node.ceil_bits.or(node.rate_bits)).map(|(used, most)| {
        let most = most.max(1) as f64;
        (used / most, node.ceil_bits.and(node.rate_bits).map(|sure| sure as f64 / most))
    });
    let prio = node.prio.filter(|_| childless || node.is_class).map(|prio| format!("prio {prio}"));
    let aside = match used {
        Some(used) => rate(used),
        None => prio.clone().unwrap_or_default(),
    };
    let name = match &prio {
        Some(prio) if used.is_some() => format!("{} · {prio}", node.id),
        _ if node.is_class => node.id.clone(),
        _ => format!("{} {}", node.kind, node.id),
    };
    let colour = palette.own(&id);
    TreeBox {
        heat: None,
        name,
        aside,
        lines,
        colour,
        load,
        filters: node.filters.clone(),
        dead: node.unreachable.clone(),
        parent: None,
    }
}

fn table(trial: &TrialDocument, here: &[&TreeNode], run: Option<&TrialRun>) -> Data {
    let head = ["id", "parent", "kind", "prio", "rate", "ceil", "used", "for", "chosen by", "parameters"];
    let row = |node: &&TreeNode| {
        let id = label(trial, node);
        let bits = |bits: Option<u64>| bits.map_or_else(String::new, |bits| rate(bits as f64));
        let used = run.and_then(|run| {
            let class = run.classes.iter().find(|class| class.id == id)?;
            Some(rate(ClassFigures::new(run, class).rate))
        });
        let title = match &node.unreachable {
            Some(why) => format!("unreachable: {why}"),
            None => node.title.clone(),
        };
        vec![
            node.id.clone(),
            if node.parent.is_empty() { "root".to_owned() } else { node.parent.clone() },
            node.kind.clone(),
            node.prio.map_or_else(String::new, |prio| prio.to_string()),
            bits(node.rate_bits),
            bits(node.ceil_bits),
            used.unwrap_or_default(),
            title,
            node.filters.join("; "),
            node.options.clone(),
        ]
    };
    Data {
        caption: "Qdiscs and classes".to_owned(),
        head: head.map(str::to_owned).to_vec(),
        rows: here.iter().map(row).collect(),
    }
}

/// What the policy was tried on.
pub(super) fn simulated(trial: &TrialDocument) -> Markup {
    let link = &trial.link;
    let drained =
        |bytes: u64, bits: u64| if bits == 0 { 0 } else { (bytes as f64 * 8e9 / bits as f64) as u64 };
    let place = |name: &str, lines: &[String], strong| ChainPlace {
        name: name.to_owned(),
        lines: lines.to_vec(),
        strong,
    };
    let places = [
        place("Home", &["a busy computer".to_owned(), "and people's".to_owned()], false),
        place(
            "Gateway",
            &[format!("the policy on {}", trial.device), format!("{} commands", trial.commands)],
            true,
        ),
        place(
            "Modem",
            &[
                format!("buffers {}", size(link.up_buffer_bytes)),
                format!("= {} of sending", milliseconds(drained(link.up_buffer_bytes, link.up_bits))),
            ],
            false,
        ),
        place(
            "Provider",
            &[
                format!("buffers {}", size(link.down_buffer_bytes)),
                format!("= {} of sending", milliseconds(drained(link.down_buffer_bytes, link.down_bits))),
            ],
            false,
        ),
        place(
            "Internet",
            &[format!("{} away", milliseconds(link.rtt_ns / 2)), "no bottleneck".to_owned()],
            false,
        ),
    ];
    let (up, down) = (rate(link.up_bits as f64), rate(link.down_bits as f64));
    let bottleneck =
        ChainLink { there: up.clone(), back: down.clone(), strong: true, ..ChainLink::default() };
    let links = [ChainLink::default(), ChainLink::default(), bottleneck, ChainLink::default()];
    let title = "Home, gateway, modem, provider, internet";
    let description = format!("The bottleneck is between modem and provider: {up} up, {down} down.");
    let seconds = trial.runs.iter().map(|run| run.window.1.saturating_sub(run.window.0)).max().unwrap_or(0)
        as f64
        / 1e9;
    html! {
        section {
            h2 { "What was simulated" }
            p {
                "Each load ran twice, without the policy and with it, for " (format_args!("{seconds:.0}"))
                " s each, packet by packet in virtual time, with the same randomness. The gateway's queues \
                and filters behave as Linux's do; the transfers are TCP that reacts to loss and delay. The \
                modem and the provider have plain buffers that know no policy: where they fill, everything \
                waits."
            }
            (chain(title, &places, &links))
            p.small { (description) }
        }
    }
}
