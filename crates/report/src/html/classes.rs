//! Throughput stacked by class, then each class against its guaranteed rate.

use super::palette::Palette;
use super::parts::{Data, Reading, chip, end_of, figure, span_title, spans, steps_of};
use crate::chart::{Axis, Band, Drawing, OTHERS, Reference, Steps, stack, steps};
use maud::{Markup, html};
use std::collections::BTreeSet;
use tidegate_analysis::trial::{ClassFigures, Pair, node};
use tidegate_measure::bits_per_second;
use tidegate_measure::numbers::{format_duration, rate, size};
use tidegate_measure::trial::{ClassSeries, TreeNode, TrialDocument, TrialRun};

/// The most values that a time series of throughput is averaged to.
const MOST_VALUES: usize = 130;

/// Throughput averaged over groups of steps: the values in bits per second, and the length of a group in ns.
pub(super) fn throughput(run: &TrialRun, bytes: &[u64]) -> (Vec<f64>, u64) {
    let group = bytes.len().div_ceil(MOST_VALUES).max(1);
    let mean = |steps: &[u64]| bits_per_second(steps.iter().sum(), steps.len() as u64 * run.step_ns);
    (bytes.chunks(group).map(mean).collect(), group as u64 * run.step_ns)
}

/// The device of a class as series call it; empty: the one that leads to the modem.
fn device(id: &str) -> &str {
    id.rsplit_once(' ').map_or("", |(device, _)| device)
}

/// The stack of each device that has classes.
pub(super) fn shares(trial: &TrialDocument, pair: &Pair<'_>, palette: &Palette) -> Markup {
    let Some(run) = pair.with else { return Markup::default() };
    let mut devices: Vec<&str> = Vec::new();
    for class in run.classes.iter().filter(|class| class.leaf && class.sent.iter().any(|&n| n > 0)) {
        if !devices.contains(&device(&class.id)) {
            devices.push(device(&class.id));
        }
    }
    html! {
        @if !devices.is_empty() {
            h3 { "Throughput by class, with the policy" }
            @for name in &devices { (one_stack(trial, run, name, palette)) }
        }
    }
}

fn one_stack(trial: &TrialDocument, run: &TrialRun, name: &str, palette: &Palette) -> Markup {
    let leaves: Vec<&ClassSeries> = run
        .classes
        .iter()
        .filter(|class| class.leaf && device(&class.id) == name && class.sent.iter().any(|&n| n > 0))
        .collect();
    let (bands, step) = bands(run, &leaves, palette);
    let steps = bands.iter().map(|band| band.values.len()).max().unwrap_or(0);
    let total = |n: usize| bands.iter().filter_map(|band| band.values.get(n)).sum::<f64>();
    let peak = (0..steps).map(total).fold(0.0, f64::max);
    let mut references = references(trial, name);
    // Far above what was sent, a level would only flatten the rest.
    references.retain(|level| level.value < 8.0 * peak);
    let high =
        (0..steps).map(total).chain(references.iter().map(|level| level.value * 1.06)).fold(0.0, f64::max);
    let device = if name.is_empty() { &trial.device } else { name };
    let title = format!("Throughput on {device} by class");
    let found = leaves
        .iter()
        .take(MOST_COLUMNS)
        .map(|class| format!("{} {}", class.id, rate(ClassFigures::new(run, class).rate)));
    let description = format!("On average: {}.", found.collect::<Vec<_>>().join(", "));
    let end = end_of(run);
    let axes = (Axis::time(end), Axis::rates(high, 5));
    let drawing = stack(&title, &description, axes, run.window.0 as f64, step as f64, &bands, &references);
    let caption = html! {
        b { (title) } ", averaged over " (format_duration(step)) "."
        @if name.is_empty() { (too_much(trial)) }
        (keys(run, &leaves, palette))
    };
    figure(&[drawing], caption, Reading::Across, &share_table(run, &leaves, end))
}

/// The leaves' bands; those without a colour of their own are one.
fn bands(run: &TrialRun, leaves: &[&ClassSeries], palette: &Palette) -> (Vec<Band>, u64) {
    let mut bands = Vec::new();
    let mut others: Vec<u64> = Vec::new();
    let mut step = run.step_ns;
    for class in leaves {
        match palette.own(&class.id) {
            Some(colour) => {
                let (values, wide) = throughput(run, &class.sent);
                step = wide;
                let name = class.id.rsplit(' ').next().unwrap_or_default().to_owned();
                bands.push(Band { name, colour, values });
            }
            None => {
                others.resize(others.len().max(class.sent.len()), 0);
                others.iter_mut().zip(&class.sent).for_each(|(sum, sent)| *sum += sent);
            }
        }
    }
    if !others.is_empty() {
        let (values, wide) = throughput(run, &others);
        step = wide;
        bands.push(Band { name: "others".to_owned(), colour: OTHERS, values });
    }
    (bands, step)
}

/// The most that a device's tree may send, and what limits it: the highest classes or qdiscs that have a
/// limit, together.
fn most(trial: &TrialDocument, device: &str) -> Option<(String, u64)> {
    let here: Vec<&TreeNode> = trial.tree.iter().filter(|node| node.device == device).collect();
    let mut below: BTreeSet<&str> = BTreeSet::new();
    let mut tops: Vec<(&str, u64)> = Vec::new();
    // Parents come before their children.
    for node in here {
        let limit = node.ceil_bits.or(node.rate_bits);
        if below.contains(node.parent.as_str()) {
            below.insert(&node.id);
        } else if let Some(bits) = limit {
            below.insert(&node.id);
            tops.push((&node.id, bits));
        }
    }
    match tops.as_slice() {
        [] => None,
        [(id, bits)] => Some(((*id).to_owned(), *bits)),
        many => Some(("together".to_owned(), many.iter().map(|(_, bits)| *bits).sum())),
    }
}

/// Levels to compare a stack with: what the tree may send in all, and the link.
fn references(trial: &TrialDocument, name: &str) -> Vec<Reference> {
    let mut levels = Vec::new();
    if let Some((who, bits)) = most(trial, if name.is_empty() { &trial.device } else { name }) {
        levels.push(Reference { name: format!("{who} at most {}", rate(bits as f64)), value: bits as f64 });
    }
    let link = trial.link.up_bits as f64;
    // Far from what is sent, either would only flatten the rest.
    if name.is_empty() && levels.iter().all(|level| link < 2.0 * level.value && link != level.value) {
        levels.push(Reference { name: format!("the link: {}", rate(link)), value: link });
        levels.retain(|level| level.value < 4.0 * link);
    }
    levels
}

/// A warning where the tree may send more than the link carries: then the queue is the modem's, which knows
/// no classes.
fn too_much(trial: &TrialDocument) -> Markup {
    let link = trial.link.up_bits;
    html! {
        @if let Some((_, bits)) = most(trial, &trial.device).filter(|(_, bits)| *bits > link) {
            " "
            span.key.lost {
                "It may send " (rate(bits as f64)) ", more than the link's " (rate(link as f64))
                ": the excess queues in the modem, where classes have no effect."
            }
        }
    }
}

fn keys(run: &TrialRun, leaves: &[&ClassSeries], palette: &Palette) -> Markup {
    let own = leaves.iter().filter_map(|class| Some((class, palette.own(&class.id)?)));
    let others = leaves.iter().filter(|class| palette.own(&class.id).is_none()).count();
    html! {
        ul.keys {
            @for (class, colour) in own {
                li {
                    (chip(colour)) b { (class.id) } " " (class.title) " "
                    span { (rate(ClassFigures::new(run, class).rate)) }
                }
            }
            @if others > 0 {
                li { (chip(OTHERS)) (others) " other classes together" }
            }
        }
    }
}

/// Columns of a table of shares at most.
const MOST_COLUMNS: usize = 12;

fn share_table(run: &TrialRun, leaves: &[&ClassSeries], end: u64) -> Data {
    let shown = &leaves[..leaves.len().min(MOST_COLUMNS)];
    let mut head = vec!["time".to_owned()];
    head.extend(shown.iter().map(|class| class.id.clone()));
    let row = |of: (u64, u64)| {
        let mut row = vec![span_title(of)];
        row.extend(shown.iter().map(|class| {
            let steps = steps_of(run, &class.sent, of);
            rate(bits_per_second(steps.iter().sum(), steps.len() as u64 * run.step_ns))
        }));
        row
    };
    Data { caption: "Throughput by class".to_owned(), head, rows: spans(end).into_iter().map(row).collect() }
}

/// Classes with a card of their own at most.
const MOST_CARDS: usize = 9;

/// A card for each class: its rate against its guaranteed rate, its queue, its tokens.
pub(super) fn cards(trial: &TrialDocument, pair: &Pair<'_>, palette: &Palette) -> Markup {
    let Some(run) = pair.with.filter(|run| !run.classes.is_empty()) else { return Markup::default() };
    let mut classes: Vec<&ClassSeries> = run.classes.iter().filter(|class| !silent(class)).collect();
    classes.sort_by_key(|class| !class.leaf);
    let all = run.classes.len();
    if classes.len() > MOST_CARDS {
        let mut most: Vec<u64> = classes.iter().map(|class| ClassFigures::new(run, class).sent).collect();
        most.sort_unstable_by(|a, b| b.cmp(a));
        classes.retain(|class| ClassFigures::new(run, class).sent >= most[MOST_CARDS - 1]);
        classes.truncate(MOST_CARDS);
    }
    let more = match all - classes.len() {
        0 => String::new(),
        _ if run.classes.iter().filter(|class| !silent(class)).count() > classes.len() => {
            format!(" Of {all} classes, the {} that sent the most.", classes.len())
        }
        1 => " One more had nothing to send.".to_owned(),
        n => format!(" {n} more had nothing to send."),
    };
    html! {
        h3 { "Class by class" }
        p.small {
            "What each sent, with its guaranteed rate and its ceiling; its backlog, if any; and its tokens, as \
            sending time: below zero it must wait, or borrow." (more)
        }
        div.cards { @for class in &classes { (card(trial, run, class, palette)) } }
    }
}

/// Nothing came to it: its card would be empty.
pub(super) fn silent(class: &ClassSeries) -> bool {
    class.sent.iter().all(|&n| n == 0) && class.qlen.iter().chain(&class.dropped).all(|&n| n == 0)
}

/// Whether a packet was seen waiting there, or was dropped; else the chart of its queue would be empty.
fn waited(class: &ClassSeries) -> bool {
    class.qlen.iter().chain(&class.dropped).any(|&n| n > 0)
}

fn card(trial: &TrialDocument, run: &TrialRun, class: &ClassSeries, palette: &Palette) -> Markup {
    let figures = ClassFigures::new(run, class);
    let node = node(trial, &class.id);
    let (sure, most) = (node.and_then(|node| node.rate_bits), node.and_then(|node| node.ceil_bits));
    let mut facts = vec![format!("sent {}", rate(figures.rate))];
    facts.extend(sure.map(|bits| format!("rate {}", rate(bits as f64))));
    facts.extend(most.map(|bits| format!("ceil {}", rate(bits as f64))));
    if figures.dropped > 0 {
        facts.push(format!("{} dropped", figures.dropped));
    }
    let title = if class.title.is_empty() && !class.leaf { "inner class" } else { &class.title };
    let caption = html! {
        (chip(palette.colour(&class.id))) b { (class.id) } " " (title)
        span {
            @for (n, fact) in facts.iter().enumerate() {
                @if n > 0 { " · " }
                i.n { (fact) }
            }
        }
    };
    // The last of them has the figures of the time.
    let tokens = tokens(run, class, palette);
    let queue = waited(class).then(|| queue(run, class, palette, tokens.is_none()));
    let is_last = queue.is_none() && tokens.is_none();
    let sent = sent(run, class, (sure, most), palette, is_last);
    let drawings: Vec<Drawing> = [Some(sent), queue, tokens].into_iter().flatten().collect();
    figure(&drawings, caption, Reading::Across, &card_table(run, class))
}

fn sent(
    run: &TrialRun,
    class: &ClassSeries,
    (sure, most): (Option<u64>, Option<u64>),
    palette: &Palette,
    is_last: bool,
) -> Drawing {
    let (values, step) = throughput(run, &class.sent);
    let peak = values.iter().copied().fold(0.0, f64::max).max(sure.unwrap_or(0) as f64);
    let level = |name: &str, bits: u64| Reference {
        name: format!("{name} {}", rate(bits as f64)),
        value: bits as f64,
    };
    let mut references: Vec<Reference> = Vec::new();
    // A ceiling far above would flatten the rest; the caption names it.
    references.extend(most.filter(|bits| *bits as f64 <= 1.6 * peak).map(|bits| level("ceil", bits)));
    references.extend(sure.filter(|_| sure != most || references.is_empty()).map(|bits| level("rate", bits)));
    let high = references.iter().map(|level| level.value * 1.1).fold(peak, f64::max);
    let what = Steps {
        heading: "Sent,".into(),
        colour: palette.colour(&class.id),
        courses: vec![values],
        references,
        bare: !is_last,
        ..Steps::default()
    };
    let axes = (Axis::time(end_of(run)), Axis::rates(high, 3));
    let description = format!("Averaged over {}.", format_duration(step));
    steps(&format!("{}: sent", class.id), &description, axes, 92.0, run.window.0 as f64, step as f64, &what)
}

fn queue(run: &TrialRun, class: &ClassSeries, palette: &Palette, is_last: bool) -> Drawing {
    let peak = class.qlen.iter().copied().max().unwrap_or(0);
    let losses = class.dropped.iter().enumerate().filter(|(_, n)| **n > 0).map(|(step, _)| step).collect();
    let what = Steps {
        heading: "Waiting,".into(),
        colour: palette.colour(&class.id),
        courses: vec![class.qlen.iter().map(|&n| f64::from(n)).collect()],
        losses,
        bare: !is_last,
        ..Steps::default()
    };
    let axes = (Axis::time(end_of(run)), Axis::count(u64::from(peak), "packets", 2));
    let description = format!("At most {peak} packets; red strokes at the top: packets were dropped.");
    steps(
        &format!("{}: packets waiting", class.id),
        &description,
        axes,
        56.0,
        run.window.0 as f64,
        run.step_ns as f64,
        &what,
    )
}

fn tokens(run: &TrialRun, class: &ClassSeries, palette: &Palette) -> Option<Drawing> {
    let courses: Vec<Vec<f64>> = [&class.tokens_us, &class.ctokens_us]
        .into_iter()
        .filter(|tokens| !tokens.is_empty())
        .map(|tokens| tokens.iter().map(|&us| us as f64 * 1e3).collect())
        .collect();
    let all = || class.tokens_us.iter().chain(&class.ctokens_us).copied();
    let (low, high) = (all().min()?.saturating_mul(1000), all().max()?.saturating_mul(1000));
    let heading =
        if courses.len() > 1 { "Tokens, and dashed those of the ceiling," } else { "Tokens," }.to_owned();
    let what = Steps { heading, colour: palette.colour(&class.id), courses, open: true, ..Steps::default() };
    let axes = (Axis::time(end_of(run)), Axis::credit(low, high, 3));
    let title = format!("{}: tokens of its rate, and dashed of its ceiling", class.id);
    Some(steps(&title, "In time of sending.", axes, 64.0, run.window.0 as f64, run.step_ns as f64, &what))
}

/// A class's figures over time; what was zero all the time is left out.
fn card_table(run: &TrialRun, class: &ClassSeries) -> Data {
    let is_queue = waited(class);
    let has_tokens = !class.tokens_us.is_empty();
    let mut head = vec!["time", "sent"];
    if is_queue {
        head.extend(["longest queue seen", "bytes waiting", "dropped"]);
    }
    if has_tokens {
        head.push("fewest tokens");
    }
    let row = |of: (u64, u64)| {
        let sent = steps_of(run, &class.sent, of);
        let mut row =
            vec![span_title(of), rate(bits_per_second(sent.iter().sum(), sent.len() as u64 * run.step_ns))];
        if is_queue {
            row.extend([
                steps_of(run, &class.qlen, of).iter().max().unwrap_or(&0).to_string(),
                size(*steps_of(run, &class.backlog, of).iter().max().unwrap_or(&0)),
                steps_of(run, &class.dropped, of).iter().map(|&n| u64::from(n)).sum::<u64>().to_string(),
            ]);
        }
        if has_tokens {
            let fewest = steps_of(run, &class.tokens_us, of).iter().min().copied().unwrap_or(0);
            row.push(format!("{:.1} ms", fewest as f64 / 1e3));
        }
        row
    };
    let rows = spans(end_of(run)).into_iter().map(row).collect();
    let head = head.into_iter().map(str::to_owned).collect();
    Data { caption: format!("Class {}", class.id), head, rows }
}
