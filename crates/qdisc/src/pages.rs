//! How many of CAKE's flows `tc class show` gets to see: the kernel hands a listing out page by page, and
//! CAKE loses count where a page is full.
//!
//! A page that is full ends the round of its tin only: the later tins are walked all the same, and what is
//! counted there, places without a flow among it, is left out at the beginning of the next page. Asked of
//! both kernels (answers-limits/cake-classes-*); what packets do does not depend on it.

use alloc::vec::Vec;
use tidegate_packet::LinuxVersion;
use tidegate_policy::dump::{CakeFlowStats, ClassDump, Xstats};
use tidegate_policy::{ClassParams, EtsClassParams, HfscClassParams, HtbClassParams, Kind};

/// Bytes of a page, as tc asks for it.
const PAGE: u32 = 32_448;
/// Bytes of a flow's message by release, oldest first.
const MESSAGE: [u32; 2] = [168, 156];
/// Bytes of each number that not all flows have.
const NUMBER: u32 = 8;
/// Queues of a tin.
const QUEUES: u32 = 1024;

/// A listing of classes: what of the page being filled is free. Of some other kinds the lengths of messages
/// are not known; CAKE's flows behind them are all listed.
pub(crate) struct Page {
    linux: LinuxVersion,
    free: Option<u32>,
}

impl Page {
    pub(crate) fn new(linux: LinuxVersion) -> Page {
        Page { linux, free: Some(PAGE) }
    }

    /// Classes of another kind have come: where the length of one is not known, neither is what is free from
    /// now on. One that finds no room begins a page.
    pub(crate) fn others(&mut self, classes: &[ClassDump]) {
        for class in classes {
            let len = length(class).map(|lengths| lengths[usize::from(self.linux >= LinuxVersion::V7_2)]);
            self.free = self.free.zip(len).map(|(free, len)| free.checked_sub(len).unwrap_or(PAGE - len));
        }
    }

    /// Of the flows of a CAKE with so many tins, in the order of their numbers: those that are listed, in
    /// the order in which they are.
    pub(crate) fn cake(&mut self, flows: Vec<ClassDump>, tins: u32) -> Vec<ClassDump> {
        let Some(free) = &mut self.free else { return flows };
        let sizes: Vec<(u32, u32)> =
            flows.iter().map(|flow| (place(flow), message(self.linux, flow))).collect();
        listed(&sizes, tins, free).into_iter().map(|at| flows[at].clone()).collect()
    }
}

/// Bytes of the message about a class that is none of CAKE's, by release, where they are known: 60 classes of
/// a kind before CAKE's flows show them (recorded: cake-pages-*).
fn length(class: &ClassDump) -> Option<[u32; 2]> {
    if class.stats.as_ref()?.rate.is_some() {
        return None;
    }
    match &class.params {
        ClassParams::None if class.kind == Kind::Prio => Some([152, 140]),
        ClassParams::Htb(HtbClassParams { rate, ceil, .. }) => {
            let is_short = [rate, ceil].into_iter().all(|spec| u32::try_from(spec.rate.0).is_ok());
            is_short.then_some([248, 236])
        }
        ClassParams::Drr(_) => Some([176, 164]),
        ClassParams::Qfq(_) => Some([200, 180]),
        ClassParams::Ets(EtsClassParams { quantum }) => {
            Some(if quantum.is_some() { [164, 152] } else { [156, 144] })
        }
        ClassParams::Hfsc(HfscClassParams { rt, ls, ul }) => {
            let curves = [rt, ls, ul].into_iter().flatten().count() as u32;
            Some([216 + 16 * curves, 200 + 16 * curves])
        }
        ClassParams::None => None,
    }
}

/// The queue of a flow, counted through all tins.
fn place(flow: &ClassDump) -> u32 {
    u32::from(flow.classid.minor()).saturating_sub(1)
}

fn message(linux: LinuxVersion, flow: &ClassDump) -> u32 {
    let base = MESSAGE[usize::from(linux >= LinuxVersion::V7_2)];
    let Xstats::CakeFlow(CakeFlowStats { dropping, blue_probability, .. }) = flow.xstats else { return base };
    base + NUMBER * (u32::from(dropping) + u32::from(blue_probability > 0))
}

/// The flows that are listed, of those with these places and lengths; `free`: bytes of the page.
fn listed(flows: &[(u32, u32)], tins: u32, free: &mut u32) -> Vec<usize> {
    let (mut all, mut skipped) = (Vec::new(), 0);
    // Each page but the last lists one at least.
    for _ in 0..=flows.len() {
        let (mut count, mut is_full, before) = (0, false, all.len());
        for tin in 0..tins {
            let places = tin * QUEUES..(tin + 1) * QUEUES;
            let (mut at, mut is_whole) = (places.start, true);
            for (n, (place, size)) in
                flows.iter().enumerate().filter(|(_, (place, _))| places.contains(place))
            {
                count += place - at;
                at = place + 1;
                if count >= skipped {
                    if *size > *free {
                        (is_full, is_whole) = (true, false);
                        break;
                    }
                    *free -= size;
                    all.push(n);
                }
                count += 1;
            }
            if is_whole {
                count += places.end - at;
            }
        }
        if !is_full {
            break;
        }
        *free = PAGE;
        if all.len() == before && skipped > 0 {
            break;
        }
        skipped = count;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(places: impl IntoIterator<Item = u32>, tins: u32) -> Vec<u32> {
        let flows: Vec<(u32, u32)> = places.into_iter().map(|place| (place, 168)).collect();
        listed(&flows, tins, &mut { PAGE }).into_iter().map(|at| flows[at].0).collect()
    }

    /// 193 messages fit.
    #[test]
    fn a_full_page_loses_flows_only_before_later_tins() {
        let all: Vec<u32> = (0..400).collect();
        assert_eq!(of(all.clone(), 1), all);
        // A later tin without flows counts as 1024 that were listed.
        assert_eq!(of(all.clone(), 2), all[..193]);
        // Ten places before the flow of a later tin, and the first that found no room.
        let later = 1034;
        let wanted: Vec<u32> = (0..193).chain(203..396).chain([later]).collect();
        assert_eq!(of(all.into_iter().chain([later]), 2), wanted);
    }
}
