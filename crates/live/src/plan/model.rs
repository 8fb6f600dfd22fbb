//! What stands on a device of the model machine.

use super::Stand;
use crate::kernel::{CLSACT_EGRESS, CLSACT_INGRESS};
use tidegate_gateway::Gateway;
use tidegate_packet::{Handle, Time};
use tidegate_policy::Kind;
use tidegate_policy::dump::QdiscDump;

impl Stand {
    /// All of a device; nothing, where the machine has none of that name.
    pub fn of(machine: &mut Gateway, now: Time, dev: &str) -> Stand {
        let Some(device) = machine.device(dev) else { return Stand::default() };
        let (qdiscs, classes) = (machine.qdiscs(now, device), machine.classes(now, device));
        let of_qdisc = |qdisc: &QdiscDump| match qdisc.kind {
            // It has a list for each direction, and none of its own.
            Kind::Clsact => vec![CLSACT_INGRESS, CLSACT_EGRESS],
            _ => vec![qdisc.handle],
        };
        let of_classes = classes.iter().map(|class| class.classid).filter(|class| class.minor() != 0);
        let places: Vec<Handle> =
            qdiscs.iter().flat_map(of_qdisc).chain(of_classes).filter(|place| !place.is_none()).collect();
        let mut filters = Vec::new();
        for place in places {
            filters.extend(machine.own_filters(now, device, place).unwrap_or_default());
        }
        Stand { qdiscs, classes, filters }
    }
}
