//! Why packets wait in the modem although there is a policy.

use crate::figures::window_start;
use tidegate_measure::numbers::rate;
use tidegate_measure::trial::{ClassSeries, TreeNode, TrialDocument, TrialRun};
use tidegate_policy::Kind;

/// The reason, as far as it is known, and what to do.
pub(super) fn why(trial: &TrialDocument, with: &TrialRun) -> String {
    let own: Vec<&TreeNode> = trial.tree.iter().filter(|node| node.device == trial.device).collect();
    let through: u64 =
        own_leaves(with).flat_map(|class| &class.packets).map(|&packets| u64::from(packets)).sum();
    if with.direct_packets * DIRECT_SHARE > through {
        // An htb within another qdisc sends no faster than that.
        let mut htbs = own.iter().filter(|node| !node.is_class && node.kind == "htb");
        let speed = match htbs.all(|htb| htb.parent.is_empty()) {
            true => "at the device's full rate",
            false => "as fast as what is above htb sends",
        };
        let past = format!(
            ": {} packets were sent past all classes of {}, {speed},",
            with.direct_packets, trial.device
        );
        // With a default class it is a filter or rule that names htb itself.
        return match has_default(&own) {
            true => format!(
                "{past} because a filter or rule leads them to htb itself, and to none of its classes."
            ),
            false => format!(
                "{past} because no filter leads them to a leaf class and htb has no default class that \
                would take them. Make such a class, and name it as htb's default."
            ),
        };
    }
    if !own.iter().any(|node| keeps_rate(node) || node.rate_bits.is_some()) {
        return format!(
            ": nothing that was carried out holds {} to a rate below the link's, so the queue is there, where the \
            policy cannot order it. Put a shaper (htb, hfsc, tbf, cake with bandwidth) at its root.",
            trial.device
        );
    }
    let held_to_nothing = unheld(&own, with);
    if !held_to_nothing.is_empty() {
        let free = held_to_nothing.join(", ");
        let link = trial.link.up_bits;
        // Which of both fills the modem is not known.
        return match lax(&own, link) {
            Some((id, bits)) => format!(
                ": {id} may send {}, the link carries {}, and nothing holds what goes through {free} to a rate. \
                 Hold all of it together to a rate below the link's.",
                rate(bits as f64),
                rate(link as f64)
            ),
            None => format!(": nothing holds what goes through {free} to a rate."),
        };
    }
    if let Some(line) = &trial.link.varies {
        return format!(
            ": the policy's rate is fixed and the line's is not ({line}), so packets wait there while the line is \
             slower than the policy."
        );
    }
    let bytes: u64 = own_leaves(with).flat_map(|class| class.sent.iter().skip(window_start(with))).sum();
    let sent = tidegate_measure::bits_per_second(bytes, with.window.1.saturating_sub(with.window.0));
    let (link, promised) = (trial.link.up_bits, promised(&own));
    let fills = sent >= FILLS * link as f64;
    match most(&own) {
        Some((id, bits)) if bits >= link => {
            let (bits, carried) = (rate(bits as f64), rate(link as f64));
            let too_much =
                format!(": {id} may send {bits}, the link carries {carried}. Give it a rate below that");
            match promised {
                Some((1, promised)) if promised >= link => format!(
                    "{too_much}, and the class below it a rate that fits in it (it has {}).",
                    rate(promised as f64)
                ),
                Some((_, promised)) if promised >= link => format!(
                    "{too_much}, and the classes below it rates that fit in it (they add up to {}).",
                    rate(promised as f64)
                ),
                _ => format!("{too_much}."),
            }
        }
        // That more leaves than it may send shows that they do.
        Some((id, bits))
            if fills
                && sent > bits as f64 * MORE
                && promised.is_some_and(|(_, promised)| promised > bits) =>
        {
            let (count, promised) = promised.unwrap_or_default();
            let (promised, bits) = (rate(promised as f64), rate(bits as f64));
            match count {
                1 => format!(
                    ": the class below {id} has a rate of {promised}, and htb sends that even where {id} may send \
                     {bits}. Give it a rate that fits in it."
                ),
                _ => format!(
                    ": the rates of the classes below {id} add up to {promised}, and htb sends these even where {id} \
                     may send {bits}. Give them rates that fit in it."
                ),
            }
        }
        // What HFSC guarantees a class (rt, sc) it sends beyond that class's upper limit (ul), too.
        _ if fills && own.iter().any(|node| node.parent.is_empty() && node.kind == "hfsc") => {
            format!(
                ": the policy sends {}, the link carries {}. Give its classes lower rates: an upper limit (ul) above \
                 them, and less guaranteed (rt, sc), which is sent even above ul.",
                rate(sent),
                rate(link as f64)
            )
        }
        _ if fills => {
            format!(
                ": the policy sends {}, the link carries {}. Give it a lower rate.",
                rate(sent),
                rate(link as f64)
            )
        }
        _ => format!(
            ", though the policy sends {} and the link carries {}: the cause is not known.",
            rate(sent),
            rate(link as f64)
        ),
    }
}

/// Is the default of the HTB at the root a class without classes below it?
fn has_default(own: &[&TreeNode]) -> bool {
    let root = own.iter().find(|node| node.parent.is_empty() && !node.is_class && node.kind == "htb");
    let Some(root) = root else { return false };
    let words: Vec<&str> = root.options.split_whitespace().collect();
    let named = words.iter().position(|word| *word == "default").and_then(|at| words.get(at + 1));
    let Some(minor) = named.map(|word| word.trim_start_matches("0x")) else { return false };
    let class = format!("{}{minor}", root.id);
    let is_there = own.iter().any(|node| node.is_class && node.id == class);
    is_there && !own.iter().any(|node| node.is_class && node.parent == class)
}

/// What the classes without classes below them sent; those of other devices are called with their device.
fn own_leaves(run: &TrialRun) -> impl Iterator<Item = &ClassSeries> {
    run.classes.iter().filter(|class| class.leaf && !class.id.contains(' '))
}

/// The leaves that sent a good part of all, and that nothing from themselves up to the root holds to a rate.
fn unheld(own: &[&TreeNode], with: &TrialRun) -> Vec<String> {
    let node = |id: &str| own.iter().find(|node| node.id == id);
    let matches = |node: &TreeNode| keeps_rate(node) || node.rate_bits.is_some();
    let is_held = |id: &str| {
        let mut at = node(id);
        for _ in 0..DEEPEST {
            let Some(here) = at else { break };
            // All that a class or a qdisc without classes takes goes through the qdisc in it.
            let has_classes = own.iter().any(|below| below.is_class && below.parent == here.id);
            let shaper_below =
                own.iter().any(|below| !below.is_class && below.parent == here.id && matches(below));
            if matches(here) || shaper_below && (here.is_class || !has_classes) {
                return true;
            }
            at = node(&here.parent);
        }
        false
    };
    let sent = |class: &ClassSeries| class.sent.iter().skip(window_start(with)).sum::<u64>();
    let all: u64 = own_leaves(with).map(sent).sum();
    let fills = |class: &&ClassSeries| sent(class) > 0 && sent(class) * FILLING_SHARE >= all;
    let free =
        own_leaves(with).filter(fills).filter(|class| node(&class.id).is_some() && !is_held(&class.id));
    free.map(|class| class.id.clone()).collect()
}

/// A shaper that lets through as much as the link carries or more.
fn lax(own: &[&TreeNode], link: u64) -> Option<(String, u64)> {
    let lets_through = |node: &&&TreeNode| !node.is_class && node.rate_bits.is_some_and(|bits| bits >= link);
    let node = own.iter().find(lets_through)?;
    Some((format!("{} {}", node.kind, node.id), node.rate_bits?))
}

/// Trees are less deep than this.
const DEEPEST: usize = 64;

/// What HTB sends of the own rates of the leaves below classes when all are busy, whatever the classes above
/// may send in all; and how many leaves there are.
fn promised(own: &[&TreeNode]) -> Option<(usize, u64)> {
    let classes = || own.iter().filter(|node| node.is_class && node.kind == "htb");
    let is_leaf = |node: &&&TreeNode| !classes().any(|below| below.parent == node.id);
    let is_below = |node: &&&TreeNode| classes().any(|above| above.id == node.parent);
    let leaves = classes().filter(is_leaf).filter(is_below);
    let rates = leaves.map(|leaf| Some(leaf.rate_bits?.min(leaf.ceil_bits.unwrap_or(u64::MAX))));
    let rates: Option<Vec<u64>> = rates.collect();
    rates.filter(|rates| !rates.is_empty()).map(|rates| (rates.len(), rates.iter().sum()))
}

/// What limits a device as a whole: its root's rate, or that of HTB's top class where there is but one.
fn most(own: &[&TreeNode]) -> Option<(String, u64)> {
    let root = own.iter().find(|node| node.parent.is_empty() && !node.is_class)?;
    if let Some(bits) = root.rate_bits {
        return Some((format!("{} {}", root.kind, root.id), bits));
    }
    // A netem has one qdisc in it, which takes all.
    let mut inner =
        own.iter().filter(|node| !node.is_class && root.kind == "netem" && node.rate_bits.is_some());
    if let (Some(node), None) = (inner.next(), inner.next()) {
        return Some((format!("{} {}", node.kind, node.id), node.rate_bits?));
    }
    let mut tops = own.iter().filter(|node| node.is_class && node.parent == root.id && root.kind == "htb");
    let only = tops.next().filter(|_| tops.next().is_none())?;
    // It cannot borrow.
    let rates = only.rate_bits.into_iter().chain(only.ceil_bits);
    Some((format!("class {}", only.id), rates.min()?))
}

/// What is sent is more than a rate from here on.
const MORE: f64 = 1.01;
/// Of the link's rate, this much is all of it.
const FILLS: f64 = 0.97;
/// A class that sends less than one byte of so many fills no queue.
const FILLING_SHARE: u64 = 20;
/// One packet in so many past all classes is worth a word.
const DIRECT_SHARE: u64 = 10;

/// Does it hold its device to a rate whatever its parameters?
fn keeps_rate(node: &TreeNode) -> bool {
    Kind::from_name(&node.kind).is_some_and(Kind::keeps_rate)
}
