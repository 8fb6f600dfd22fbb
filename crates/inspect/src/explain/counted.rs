//! What filters and their actions counted of one packet: how the engine judged it.

use crate::reading::PolicyModel;
use std::collections::BTreeMap;
use tidegate_gateway::Gateway;
use tidegate_packet::Handle;
use tidegate_policy::dump::{FilterDump, FilterEntry, U32Hits};

/// How often classification of one packet starts again (`goto chain`, `reclassify`), as in the engine; then
/// it is dropped.
pub(super) const MOST_RESTARTS: u64 = 16;
/// What identifies a filter: device, parent, chain, preference, handle.
type Name = (String, Handle, u32, u16, u32);

/// What a filter counted.
struct FilterCounts {
    /// Of those that count each condition.
    hits: Option<U32Hits>,
    /// The packets that went over the limits of each of its actions; of connmark, that had a connection.
    over: Vec<u64>,
    /// The packets that each of its actions gave what was written in their connection's mark (ctinfo).
    marked: Vec<u64>,
    /// The packets that came to its first action.
    acted: u64,
}

/// What filters counted.
pub(super) struct Counted(BTreeMap<Name, FilterCounts>);

fn name(dump: &FilterDump) -> Option<Name> {
    let FilterEntry::Filter { handle, .. } = &dump.entry else { return None };
    Some((dump.dev.clone(), dump.parent, dump.chain, dump.pref, *handle))
}

impl Counted {
    /// What the filters of a machine have counted so far.
    pub(super) fn of(reading: &PolicyModel, gateway: &mut Gateway) -> Counted {
        let mut lists: Vec<(&str, Handle)> =
            reading.filters.iter().map(|f| (f.dev.as_str(), f.parent)).collect();
        lists.sort_unstable();
        lists.dedup();
        let mut all = BTreeMap::new();
        for (dev, parent) in lists {
            let Some(device) = gateway.device(dev) else { continue };
            for dump in
                gateway.own_filters(crate::reading::CARRIED_OUT_AT, device, parent).unwrap_or_default()
            {
                if let (Some(name), FilterEntry::Filter { hits, actions, .. }) = (name(&dump), &dump.entry) {
                    let over = actions.iter().map(|action| u64::from(action.overlimits)).collect();
                    let marked = actions.iter().map(|action| action.ctinfo.mark_set).collect();
                    let acted = actions.first().map_or(0, |action| action.packets);
                    all.insert(name, FilterCounts { hits: hits.clone(), over, marked, acted });
                }
            }
        }
        Counted(all)
    }

    /// What they have counted since.
    pub(super) fn since(mut self, before: &Counted) -> Counted {
        for (name, FilterCounts { hits, over, marked, acted }) in &mut self.0 {
            let Some(earlier) = before.0.get(name) else { continue };
            *acted = acted.saturating_sub(earlier.acted);
            over.iter_mut().zip(&earlier.over).for_each(|(now, before)| *now -= before);
            marked.iter_mut().zip(&earlier.marked).for_each(|(now, before)| *now -= before);
            if let (Some(hits), Some(had)) = (hits, &earlier.hits) {
                hits.lookups -= had.lookups;
                hits.matched -= had.matched;
                hits.mark -= had.mark;
                hits.keys.iter_mut().zip(&had.keys).for_each(|(now, before)| *now -= before);
            }
        }
        self
    }

    pub(super) fn hits(&self, dump: &FilterDump) -> Option<&U32Hits> {
        self.0.get(&name(dump)?)?.hits.as_ref()
    }

    /// Did a packet come to the actions of a filter as often as classification starts again at most?
    pub(super) fn goes_around(&self, dump: &FilterDump) -> bool {
        name(dump).and_then(|name| self.0.get(&name)).is_some_and(|counts| counts.acted > MOST_RESTARTS)
    }

    /// What the actions of a filter did, as far as they count it.
    pub(super) fn of_actions(&self, dump: &FilterDump) -> ActionCounts<'_> {
        ActionCounts(name(dump).and_then(|name| self.0.get(&name)))
    }
}

/// What the actions of one filter counted.
#[derive(Clone, Copy)]
pub(super) struct ActionCounts<'c>(Option<&'c FilterCounts>);

impl ActionCounts<'_> {
    /// Did a packet go over the limits of this action? Of connmark: had it a connection?
    pub(super) fn went_over(self, action: usize) -> bool {
        self.0.and_then(|counts| counts.over.get(action)).is_some_and(|over| *over > 0)
    }

    /// Did this action (ctinfo) give it the mark of its connection?
    pub(super) fn marked(self, action: usize) -> bool {
        self.0.and_then(|counts| counts.marked.get(action)).is_some_and(|marked| *marked > 0)
    }
}
