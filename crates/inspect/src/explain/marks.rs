//! What the DS field of a packet means where the name of its code point does not say it: NQB and L4S.

use super::Moment;
use crate::l4s::marks_in_one_queue;
use crate::reading::PolicyModel;
use tidegate_policy::QdiscParams;
use tidegate_policy::dump::QdiscDump;
use tidegate_syntax::units::print_time;

/// The code point of NQB (RFC 9956).
const NQB: u8 = 45;
/// ECT(1) in the ECN field, the mark of L4S senders (RFC 9331).
const ECT1: u8 = 1;

/// Sentences about NQB and L4S where a packet with such a mark waits.
pub(super) fn of(reading: &PolicyModel, moment: &Moment) -> Vec<String> {
    let ds = moment.head.dsfield();
    let mut lines = Vec::new();
    if ds >> 2 == NQB {
        lines.push("DSCP 45 is NQB: it asks for a short queue, not for priority (RFC 9956)".to_owned());
    }
    if ds & 3 == ECT1 {
        lines.push(format!("ECT(1) is the mark of L4S senders (RFC 9331){}", treated(reading, moment)));
    }
    lines
}

/// What the innermost queue that marks makes of ECT(1).
fn treated(reading: &PolicyModel, moment: &Moment) -> String {
    let marks = moment.stop.qdiscs.iter().rev().find_map(|spot| {
        let here = |qdisc: &&QdiscDump| qdisc.dev == moment.name && qdisc.handle == spot.qdisc;
        let qdisc = reading.qdiscs.iter().find(here).filter(|qdisc| !qdisc.handle.is_none())?;
        let name = format!("{} {}", qdisc.kind.name(), qdisc.handle);
        if marks_in_one_queue(&qdisc.params) {
            return Some(format!(
                "; {name} marks it as it marks ECT(0), in one queue with other conversations"
            ));
        }
        let QdiscParams::FqCodel(fair) = &qdisc.params else { return None };
        let (us, (value, mask)) = (fair.ce_threshold_us?, fair.ce_selector?);
        let waited = print_time(us);
        (moment.head.dsfield() & mask == value)
            .then(|| format!("; {name} marks it once it has waited {waited} (ce_threshold)"))
    });
    marks.unwrap_or_default()
}
