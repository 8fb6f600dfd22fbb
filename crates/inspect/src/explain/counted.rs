//! What filters, their actions and classes counted of one packet: how the engine judged it.

use crate::reading::PolicyModel;
use std::collections::{BTreeMap, BTreeSet};
use tidegate_gateway::Gateway;
use tidegate_packet::Handle;
use tidegate_policy::dump::{ClassDump, FilterDump, FilterEntry, U32Hits};

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

/// What filters and classes counted.
pub(super) struct Counted {
    filters: BTreeMap<Name, FilterCounts>,
    /// The packets that were dropped in each class, or below it.
    dropped: BTreeMap<(String, Handle), u32>,
}

fn name(dump: &FilterDump) -> Option<Name> {
    let FilterEntry::Filter { handle, .. } = &dump.entry else { return None };
    Some((dump.dev.clone(), dump.parent, dump.chain, dump.pref, *handle))
}

impl Counted {
    /// What the filters and classes of a machine have counted so far.
    pub(super) fn of(reading: &PolicyModel, gateway: &mut Gateway) -> Counted {
        let mut lists: Vec<(&str, Handle)> =
            reading.filters.iter().map(|f| (f.dev.as_str(), f.parent)).collect();
        lists.sort_unstable();
        lists.dedup();
        let mut filters = BTreeMap::new();
        for (dev, parent) in lists {
            let Some(device) = gateway.device(dev) else { continue };
            for dump in
                gateway.own_filters(crate::reading::CARRIED_OUT_AT, device, parent).unwrap_or_default()
            {
                if let (Some(name), FilterEntry::Filter { hits, actions, .. }) = (name(&dump), &dump.entry) {
                    let over = actions.iter().map(|action| u64::from(action.overlimits)).collect();
                    let marked = actions.iter().map(|action| action.ctinfo.mark_set).collect();
                    let acted = actions.first().map_or(0, |action| action.packets);
                    filters.insert(name, FilterCounts { hits: hits.clone(), over, marked, acted });
                }
            }
        }
        let devices: BTreeSet<&str> = reading.classes.iter().map(|class| class.dev.as_str()).collect();
        let devices: Vec<_> = devices.into_iter().filter_map(|dev| gateway.device(dev)).collect();
        let classes =
            devices.into_iter().flat_map(|device| gateway.classes(crate::reading::CARRIED_OUT_AT, device));
        let drops = |class: ClassDump| Some(((class.dev, class.classid), class.stats?.drops));
        Counted { filters, dropped: classes.filter_map(drops).collect() }
    }

    /// What they have counted since.
    pub(super) fn since(mut self, before: &Counted) -> Counted {
        for (class, drops) in &mut self.dropped {
            *drops = drops.wrapping_sub(before.dropped.get(class).copied().unwrap_or(0));
        }
        for (name, FilterCounts { hits, over, marked, acted }) in &mut self.filters {
            let Some(earlier) = before.filters.get(name) else { continue };
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
        self.filters.get(&name(dump)?)?.hits.as_ref()
    }

    /// Did a packet come to the actions of a filter as often as classification starts again at most?
    pub(super) fn goes_around(&self, dump: &FilterDump) -> bool {
        name(dump).and_then(|name| self.filters.get(&name)).is_some_and(|counts| counts.acted > MOST_RESTARTS)
    }

    /// The classes of a device that took a packet which was dropped below them.
    pub(super) fn dropped_below(&self, dev: &str) -> impl Iterator<Item = Handle> {
        let here = move |(class, drops): &(&(String, Handle), &u32)| class.0 == dev && **drops > 0;
        self.dropped.iter().filter(here).map(|(class, _)| class.1)
    }

    /// What the actions of a filter did, as far as they count it.
    pub(super) fn of_actions(&self, dump: &FilterDump) -> ActionCounts<'_> {
        ActionCounts(name(dump).and_then(|name| self.filters.get(&name)))
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
