//! R28: packets marked NQB (DSCP 45, RFC 9956) that are served before unmarked ones.
//!
//! NQB asks for a short queue of its own, not for priority: section 5.1 of the RFC gives it the same
//! forwarding preference as unmarked traffic, and section 6.2 recommends to nodes without such a queue that
//! they treat it as unmarked. Priority is an operator's choice all the same (6.2 mentions real-time classes),
//! so this is a note. (Read as draft-ietf-tsvwg-nqb-33, which the RFC was made of.)

use super::context::RuleContext;
use super::intent::{beside_unmarked, order_counts, place_of_qdisc};
use super::making::on_others;
use crate::finding::{Finding, Fix, Level, Rule, Witness};
use crate::packet::Packet;
use crate::sets::bdd::TooLarge;
use tidegate_packet::Handle;

/// A packet such as a game or a call sends.
const SENDER: &str = "udp 192.168.1.10:40000 > 198.51.100.7:50000 dscp NQB len 200";

/// One note for each device; what several devices do alike is one finding.
pub(super) fn check(context: &mut RuleContext<'_>) -> Result<Vec<Finding>, TooLarge> {
    let reading = context.reading;
    let roots = reading.qdiscs.iter().filter(|q| q.parent == Handle::ROOT && !q.handle.is_none());
    let devices: Vec<String> = roots.map(|root| root.dev.clone()).collect();
    let mut found: Vec<(Finding, Vec<String>)> = Vec::new();
    for device in devices {
        if context.leaves_out(&device) || reading.lost.tree(&device) {
            continue;
        }
        let Some(finding) = first_served(context, &device) else { continue };
        match found.iter_mut().find(|(known, _)| known.what == finding.what) {
            Some((_, alike)) => alike.push(device),
            None => found.push((finding, Vec::new())),
        }
    }
    Ok(found.into_iter().map(on_others).collect())
}

fn first_served(context: &mut RuleContext<'_>, device: &str) -> Option<Finding> {
    let packet = Packet { to: Some(device.to_owned()), ..Packet::parse(SENDER).ok()? };
    let served = beside_unmarked(context, device, &packet)?;
    if served.rank >= served.usual {
        return None;
    }
    let (class, plain) = (served.class, served.plain);
    if !order_counts(context.reading, device, [class, plain]) {
        return None;
    }
    let place = served.place.or_else(|| place_of_qdisc(context.reading, device, class));
    let remedy = format!(
        "lead DSCP 45 to {plain}, or to a short queue of its own that is served as {plain} is; or keep it, if \
         all who write this mark are to have priority"
    );
    Some(Finding {
        rule: Rule::Nqb,
        level: Level::Note,
        place,
        what: format!(
            "packets marked NQB (DSCP 45) are served in {class}, before the unmarked ones of {plain}"
        ),
        because:
            "NQB asks for a short queue, not for priority (RFC 9956): with priority, senders of any rate \
                  gain by writing the mark"
                .to_owned(),
        witness: Some(Witness::Packet { packet: packet.to_string(), went: class.to_string() }),
        fix: Some(Fix { what: remedy, edits: Vec::new() }),
    })
}
