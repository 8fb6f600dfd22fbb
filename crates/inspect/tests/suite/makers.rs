//! Which command made a filter, among thousands.

use crate::common::reading;
use tidegate_inspect::PolicyModel;
use tidegate_policy::dump::{FilterDump, FilterEntry};

const ROOT: &str = "tc qdisc add dev eth0 root handle 1: prio\n";

/// The filters that are there, and the line that made each.
fn made(model: &PolicyModel) -> Vec<(&FilterDump, usize)> {
    let filters = model.filters.iter().filter(|dump| matches!(dump.entry, FilterEntry::Filter { .. }));
    let line = |dump| {
        let step = model.maker_of_filter(dump).and_then(|op| model.step_of(op)).expect("a command made it");
        step.place.as_ref().expect("it has a place").line
    };
    filters.map(|dump| (dump, line(dump))).collect()
}

/// Equal filters have a command each, in order, whether they name their preference or not; so have filters
/// of other protocols, chains and marks.
#[test]
fn equal_filters_have_a_maker_each() {
    let equal = "tc filter add dev eth0 parent 1: protocol ip prio 7 u32 match u32 0 0 flowid 1:1\n";
    let unnamed = "tc filter add dev eth0 parent 1: protocol ip u32 match u8 1 1 at 9 flowid 1:2\n";
    let text = [
        ROOT,
        &equal.repeat(3),
        &unnamed.repeat(3),
        "tc filter add dev eth0 parent 1: protocol ipv6 prio 8 u32 match u32 0 0 flowid 1:1\n",
        "tc filter add dev eth0 parent 1: protocol all prio 9 handle 5 fw flowid 1:1\n",
        "tc filter add dev eth0 parent 1: protocol all prio 9 handle 6 fw flowid 1:1\n",
        "tc filter add dev eth0 parent 1: protocol all prio 10 chain 2 matchall flowid 1:1\n",
        "tc filter add dev eth0 parent 1: protocol all prio 10 matchall flowid 1:1\n",
    ]
    .concat();
    let model = reading(&["eth0"], &text);
    let mut found: Vec<(u16, usize)> = made(&model).iter().map(|(dump, line)| (dump.pref, *line)).collect();
    found.sort_unstable();
    let of = |pref| found.iter().filter(|(it, _)| *it == pref).map(|(_, line)| *line).collect::<Vec<_>>();
    assert_eq!((of(7), of(8), of(9), of(10)), (vec![2, 3, 4], vec![8], vec![9, 10], vec![11, 12]));
    // Each one without a preference goes before those that are there.
    let rest: Vec<usize> = found.iter().filter(|(pref, _)| *pref > 10).map(|(_, line)| *line).collect();
    assert_eq!(rest, [7, 6, 5]);
}

/// Thousands, of which many are equal: none is compared with all others.
#[test]
fn thousands_have_a_maker_each() {
    let filter = |number: u32| match number % 2 {
        0 => format!("tc filter add dev eth0 parent 1: protocol ip prio 1 handle {number} fw flowid 1:1\n"),
        _ => "tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match u32 0 0 flowid 1:1\n".into(),
    };
    const NUMBER: usize = 4000;
    let text: String = core::iter::once(ROOT.into()).chain((2..2 + NUMBER as u32).map(filter)).collect();
    let model = reading(&["eth0"], &text);
    let mut lines: Vec<usize> = made(&model).into_iter().map(|(_, line)| line).collect();
    lines.sort_unstable();
    assert_eq!(lines, (2..2 + NUMBER).collect::<Vec<_>>());
}
