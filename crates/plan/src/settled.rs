//! Parameters as they are compared: without what dumps do not tell, and what means the same written alike.

use tidegate_policy::{
    Act, Action, ClassParams, Control, FilterParams, FlowSaid, GredParams, HtbParams, NetemParams, QdiscParams,
    SizeTable,
};

/// Those of a qdisc.
pub(crate) fn qdisc(params: &QdiscParams) -> QdiscParams {
    let mut params = params.clone();
    match &mut params {
        QdiscParams::Tbf(params) => (params.burst, params.peak_burst) = (0, 0),
        QdiscParams::Red(params) | QdiscParams::Choke(params) => params.idle = None,
        QdiscParams::Netem(params) => netem(params),
        QdiscParams::Gred(GredParams::InForce(_, queues)) => {
            for queue in queues {
                queue.queue.idle = None;
                (queue.average, queue.backlog, queue.pdrop, queue.packets, queue.bytes) = (0, 0, 0, 0, 0);
                (queue.forced_drop, queue.prob_drop, queue.forced_mark, queue.prob_mark) = (0, 0, 0, 0);
            }
        }
        // Its classes past all queues have as much room as the device's own, unless that was said.
        QdiscParams::Htb(HtbParams { direct_qlen, .. }) => *direct_qlen = None,
        QdiscParams::FqCodel(params) => params.ce_selector = params.ce_selector.filter(|(_, mask)| *mask != 0),
        _ => {}
    }
    params
}

fn netem(params: &mut NetemParams) {
    params.distribution = None;
    params.correlations = params.correlations.filter(|all| all.delay | all.loss | all.duplicate != 0);
    params.reorder = params.reorder.filter(|(probability, _)| *probability != 0);
    params.corrupt = params.corrupt.filter(|(probability, _)| *probability != 0);
    params.rate = params.rate.filter(|rate| rate.rate != 0);
    if let Some(slot) = &mut params.slot {
        slot.distribution = None;
    }
}

/// Those of a class; `inner`: there are others below it.
pub(crate) fn class(params: &ClassParams, inner: bool) -> ClassParams {
    let mut params = params.clone();
    if let (ClassParams::Htb(params), true) = (&mut params, inner) {
        (params.quantum, params.prio) = (0, 0);
    }
    params
}

/// A table of sizes without its entries, which nobody is told.
pub(crate) fn size_table(table: Option<&SizeTable>) -> Option<SizeTable> {
    table.map(|table| SizeTable { data: Vec::new(), ..table.clone() })
}

/// Those of a filter.
pub(crate) fn filter(params: &FilterParams) -> FilterParams {
    let mut params = params.clone();
    if let Some(indev) = params.indev_mut() {
        indev.device = Act::NOWHERE;
    }
    match &mut params {
        FilterParams::Fw(params) => params.mask = params.mask.filter(|mask| *mask != u32::MAX),
        FilterParams::Flow(params) => {
            params.said = FlowSaid::default();
        }
        FilterParams::U32(params) => {
            params.table = named_table(params.table);
            params.link = params.link.filter(|link| *link != 0);
        }
        _ => {}
    }
    params
}

/// A table of u32 that the kernel numbered is a preference's root, whatever its number.
pub(crate) const fn named_table(handle: u32) -> u32 {
    if handle >> 20 >= 0x800 { 0 } else { handle }
}

/// An action; the number that it has among those of its kind is the machine's.
pub(crate) fn action(action: &Action) -> Action {
    let mut action = Action { index: 0, ..action.clone() };
    match &mut action.act {
        Act::Mirred(mirred) => mirred.device = Act::NOWHERE,
        Act::Police(police) => police.conform = police.conform.filter(|control| *control != Control::Pass),
        _ => {}
    }
    action
}
