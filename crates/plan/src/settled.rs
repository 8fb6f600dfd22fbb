//! Parameters as they are compared: without what dumps do not report, and what means the same written alike.

use tidegate_policy::{
    Act, Action, ClassParams, Control, FilterParams, FlowOptions, FqBands, GredParams, HtbParams,
    NetemParams, QdiscParams, SizeTable,
};

/// Are a qdisc's parameters on a kernel what is wanted?
pub(crate) fn same_qdisc(live: &QdiscParams, wanted: &QdiscParams) -> bool {
    let (mut live, mut wanted) = (qdisc(live), qdisc(wanted));
    let (of_live, of_wanted) = (tupdate(&mut live).copied(), tupdate(&mut wanted));
    if let (Some(of_live), Some(of_wanted)) = (of_live, of_wanted)
        && is_one_update(of_live, *of_wanted)
    {
        *of_wanted = of_live;
    }
    live == wanted
}

/// The time between two updates of PIE's, µs.
fn tupdate(params: &mut QdiscParams) -> Option<&mut u32> {
    match params {
        QdiscParams::Pie(params) => params.tupdate_us.as_mut(),
        QdiscParams::FqPie(params) => params.pie.tupdate_us.as_mut(),
        _ => None,
    }
}

/// May both be one time? A kernel has it in ticks of its own, of 1 to 10 ms, and rounds up; what is wanted is
/// in ticks of 4 ms.
fn is_one_update(live: u32, wanted: u32) -> bool {
    live.saturating_add(4_000) > wanted && wanted.saturating_add(10_000) > live
}

/// Those of a qdisc.
fn qdisc(params: &QdiscParams) -> QdiscParams {
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
        QdiscParams::Fq(params) => {
            // Older kernels have no bands, and newer ones these where none were given.
            let FqBands { priomap, weights } = FqBands::default();
            params.priomap.get_or_insert(priomap);
            params.weights.get_or_insert(weights);
            params.offload_horizon_us.get_or_insert(0);
        }
        // The kernel's dumps have the target of COBALT that `rtt` came to, or a program set; tc sets none.
        QdiscParams::Cake(params) => params.target_us = None,
        // Its classes past all queues have as much space as the device's own, unless it was given.
        QdiscParams::Htb(HtbParams { direct_qlen, .. }) => *direct_qlen = None,
        QdiscParams::FqCodel(params) => {
            params.ce_selector = params.ce_selector.filter(|(_, mask)| *mask != 0)
        }
        _ => {}
    }
    params
}

fn netem(params: &mut NetemParams) {
    (params.distribution, params.seed) = (None, None);
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

/// A size table without its entries, which no dump has.
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
            params.given = FlowOptions::default();
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

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_policy::{
        CakeParams, FlowParams, FqCodelParams, FqPieParams, FwParams, GredQueueDump, Indev, Mirred,
        NetemCorrelations, NetemDistribution, NetemRate, NetemSlot, PieParams, Police, TbfParams, U32Params,
    };

    /// A qdisc is not changed for what dumps leave out, or write in two ways; it is for what they show.
    #[test]
    fn what_dumps_do_not_tell_makes_no_difference() {
        let netem = |change: &dyn Fn(&mut NetemParams)| {
            let mut params = NetemParams { latency_ns: 5, ..NetemParams::default() };
            change(&mut params);
            QdiscParams::Netem(Box::new(params))
        };
        let correlated = |delay, loss, duplicate| {
            netem(&move |params: &mut NetemParams| {
                params.correlations = Some(NetemCorrelations { delay, loss, duplicate });
            })
        };
        let rate = |rate| {
            netem(&move |params: &mut NetemParams| {
                params.rate = Some(NetemRate { rate, ..NetemRate::default() })
            })
        };
        let slot = |table: Option<NetemDistribution>| {
            netem(&move |params: &mut NetemParams| {
                params.slot = Some(NetemSlot { distribution: table.clone(), ..NetemSlot::default() });
            })
        };
        let table = || Some(NetemDistribution([1, 2].into()));
        let tbf = |limit, burst, peak_burst| {
            QdiscParams::Tbf(TbfParams { limit, burst, peak_burst, ..TbfParams::default() })
        };
        let htb = |default, direct_qlen| {
            QdiscParams::Htb(HtbParams { default, direct_qlen, ..HtbParams::default() })
        };
        let selector =
            |ce_selector| QdiscParams::FqCodel(FqCodelParams { ce_selector, ..FqCodelParams::default() });
        let gred = |limit, average, packets| {
            let mut queue = GredQueueDump::default();
            (queue.queue.limit, queue.average, queue.packets, queue.forced_mark) =
                (limit, average, packets, packets);
            QdiscParams::Gred(GredParams::InForce(Default::default(), vec![queue]))
        };
        let cake = |rtt_us, target_us| {
            QdiscParams::Cake(Box::new(CakeParams { rtt_us, target_us, ..CakeParams::default() }))
        };
        let plain = netem(&|_| ());
        let alike = [
            (cake(Some(100_000), Some(5_000)), cake(Some(100_000), None)),
            (tbf(1, 2, 3), tbf(1, 0, 0)),
            (htb(1, Some(7)), htb(1, None)),
            (selector(Some((0, 0))), selector(None)),
            (gred(9, 1, 2), gred(9, 5, 6)),
            (plain.clone(), netem(&|params| params.distribution = Some(NetemDistribution([1, 2].into())))),
            (plain.clone(), netem(&|params| params.reorder = Some((0, 7)))),
            (plain.clone(), netem(&|params| params.corrupt = Some((0, 7)))),
            (plain.clone(), correlated(0, 0, 0)),
            (plain.clone(), rate(0)),
            (slot(None), slot(table())),
        ];
        for (one, other) in alike {
            assert_eq!(qdisc(&one), qdisc(&other));
        }
        let others = [
            (cake(Some(100_000), None), cake(Some(200_000), None)),
            (tbf(1, 0, 0), tbf(2, 0, 0)),
            (htb(1, None), htb(2, None)),
            (selector(Some((0, 1))), selector(None)),
            (gred(9, 1, 2), gred(8, 1, 2)),
            (plain.clone(), netem(&|params| params.reorder = Some((1, 0)))),
            (plain.clone(), netem(&|params| params.corrupt = Some((1, 0)))),
            (plain.clone(), correlated(1, 0, 0)),
            (plain.clone(), correlated(0, 1, 0)),
            (plain.clone(), correlated(0, 0, 1)),
            (correlated(1, 1, 0), correlated(1, 1, 1)),
            (plain.clone(), rate(1)),
            (plain, slot(None)),
        ];
        for (one, other) in others {
            assert_ne!(qdisc(&one), qdisc(&other));
        }
        // 15 ms, as kernels with 1000 and 250 ticks a second list them.
        let pie = |tupdate_us| {
            let pie = PieParams { tupdate_us: Some(tupdate_us), ..PieParams::default() };
            let fq_pie = FqPieParams { pie: pie.clone(), ..FqPieParams::default() };
            [QdiscParams::Pie(pie), QdiscParams::FqPie(fq_pie)]
        };
        for (live, wanted) in pie(15_000).iter().zip(&pie(16_000)) {
            assert!(same_qdisc(live, wanted));
        }
        for (live, wanted) in pie(30_000).iter().zip(&pie(16_000)) {
            assert!(!same_qdisc(live, wanted));
        }
        let sizes = SizeTable { tsize: 512, ..SizeTable::default() };
        let entries = SizeTable { data: vec![1, 2], ..sizes.clone() };
        assert_eq!(size_table(Some(&entries)), Some(sizes));
        assert_eq!(size_table(None), None);
    }

    #[test]
    fn filters_and_actions_without_the_machines_numbers() {
        let indev = |device| Some(Indev { device, ..Indev::named("eth0") });
        let fw =
            |mask, device| FilterParams::Fw(FwParams { mask, indev: indev(device), ..FwParams::default() });
        assert_eq!(
            filter(&fw(Some(u32::MAX), 1)),
            filter(&fw(None, 2)),
            "every bit is what nobody needs to say"
        );
        assert_ne!(filter(&fw(Some(0xff), 1)), filter(&fw(None, 1)));
        let flow = |bits, rshift| {
            let options = FlowOptions { bits, ..FlowOptions::default() };
            FilterParams::Flow(FlowParams { given: options, rshift, ..FlowParams::default() })
        };
        assert_eq!(filter(&flow(true, 3)), filter(&flow(false, 3)));
        assert_ne!(filter(&flow(true, 3)), filter(&flow(true, 4)));
        let u32s = |table, link| FilterParams::U32(U32Params { table, link, ..U32Params::default() });
        assert_eq!(filter(&u32s(0x8000_0000, Some(0))), filter(&u32s(0, None)));
        assert_ne!(filter(&u32s(0, Some(0x0010_0000))), filter(&u32s(0, None)));
        assert_eq!([0x8000_0000, 0x7ff0_0000, 0x0010_0000].map(named_table), [0, 0x7ff0_0000, 0x0010_0000]);
        let Act::Mirred(to) = Act::redirect("ifb0") else { panic!("mirred") };
        let mirred =
            |index, device| Action { index, ..Action::from(Act::Mirred(Mirred { device, ..to.clone() })) };
        assert_eq!(action(&mirred(1, 7)), action(&mirred(2, 8)));
        let police = |conform| Action::from(Act::Police(Police { conform, ..Police::default() }));
        assert_eq!(action(&police(Some(Control::Pass))), action(&police(None)));
        assert_ne!(action(&police(Some(Control::Drop))), action(&police(None)));
    }
}
