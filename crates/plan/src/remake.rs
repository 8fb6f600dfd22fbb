//! Operations that make what a dump shows.

use std::collections::BTreeMap;
use std::fmt;
use tidegate_packet::Handle;
use tidegate_policy::dump::QdiscDump;
use tidegate_policy::{Changes, Estimator, Op, QdiscOp, QdiscParams, SizeTable, Verb};

/// A qdisc, or a list of filters on it, that cannot be made of what is reported of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incomplete {
    /// On which device.
    pub dev: String,
    /// Its kind,
    pub kind: &'static str,
    /// its handle,
    pub handle: Handle,
    /// and what is not reported.
    pub missing: &'static str,
}

impl Incomplete {
    pub(crate) fn of(qdisc: &QdiscDump) -> Incomplete {
        let missing = missing(qdisc).unwrap_or("how it was changed");
        Incomplete { dev: qdisc.dev.clone(), kind: qdisc.kind.name(), handle: qdisc.handle, missing }
    }
}

impl fmt::Display for Incomplete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Incomplete { dev, kind, handle, missing } = self;
        write!(f, "the {kind} {handle} of {dev} cannot be created again: the kernel does not list {missing}")
    }
}

impl std::error::Error for Incomplete {}

/// A table of sizes with its entries; `None`: it is not as tc makes them, so these are not known.
fn whole(table: &SizeTable) -> Option<SizeTable> {
    if !table.data.is_empty() || table.tsize == 0 {
        return Some(table.clone());
    }
    let as_made = table.cell_align == -1 && table.mtu >> table.cell_log < table.tsize;
    let data = table.entries().filter(|_| as_made)?;
    Some(SizeTable { data, ..table.clone() })
}

/// What a dump of this qdisc does not report and a command needs.
fn missing(qdisc: &QdiscDump) -> Option<&'static str> {
    if qdisc.stab.as_ref().is_some_and(|table| whole(table).is_none()) {
        return Some("the entries of its size table, which tc did not make");
    }
    qdisc.kind.untold(&qdisc.params)
}

/// The operations that made qdiscs and classes, by their subject.
#[derive(Debug, Default)]
pub(crate) struct Makers<'l> {
    by_handle: BTreeMap<Handle, Vec<&'l QdiscOp>>,
    by_place: BTreeMap<Handle, Vec<&'l QdiscOp>>,
    class_estimators: BTreeMap<Handle, Estimator>,
}

impl<'l> Makers<'l> {
    /// Of one device's operations.
    pub(crate) fn new(log: &'l [Op]) -> Makers<'l> {
        let mut makers = Makers::default();
        for op in log {
            match op {
                Op::Qdisc(op) => makers.note(op),
                Op::Class(op) => {
                    if let Some(estimator) = op.estimator {
                        makers.class_estimators.insert(op.classid, estimator);
                    }
                }
                _ => {}
            }
        }
        makers
    }

    fn note(&mut self, op: &'l QdiscOp) {
        let lists = [self.by_handle.get_mut(&op.handle), self.by_place.get_mut(&op.parent)];
        if op.verb == Verb::Delete {
            lists.into_iter().flatten().for_each(Vec::clear);
        } else if op.handle.is_none() {
            self.by_place.entry(op.parent).or_default().push(op);
        } else {
            self.by_handle.entry(op.handle).or_default().push(op);
        }
    }

    /// The operations that gave a qdisc its values, the one that made it first.
    fn of(&self, qdisc: &QdiscDump) -> &[&'l QdiscOp] {
        let all = self.by_handle.get(&qdisc.handle).filter(|ops| !ops.is_empty());
        let all = all.or_else(|| self.by_place.get(&qdisc.parent)).map(Vec::as_slice).unwrap_or_default();
        let name = Some(qdisc.kind.name());
        let from = all.iter().rposition(|op| op.verb == Verb::Add && op.kind.as_deref() == name).unwrap_or(0);
        let of_kind = all.get(from..).unwrap_or_default();
        if of_kind.iter().any(|op| op.kind.as_deref().is_some_and(|kind| Some(kind) != name)) {
            &[]
        } else {
            of_kind
        }
    }

    pub(crate) fn class_estimator(&self, class: Handle) -> Option<Estimator> {
        self.class_estimators.get(&class).copied()
    }

    /// The operations that make a qdisc.
    pub(crate) fn make(
        &self,
        wanted: &QdiscDump,
        parent: Handle,
        handle: Handle,
    ) -> Result<Vec<Op>, Incomplete> {
        let known = self.of(wanted);
        if missing(wanted).is_none() {
            let estimator = known.iter().rev().find_map(|op| op.estimator);
            return Ok(vec![Op::Qdisc(QdiscOp { estimator, handle, ..made(wanted, parent) })]);
        }
        if known.is_empty() {
            return Err(Incomplete::of(wanted));
        }
        let verbs = std::iter::once(Verb::Add).chain(std::iter::repeat(Verb::Change));
        let again = known
            .iter()
            .zip(verbs)
            .map(|(op, verb)| Op::Qdisc(QdiscOp { verb, parent, handle, ..(*op).clone() }));
        Ok(again.collect())
    }

    /// The operations that give an installed qdisc other values; `None`: it must be recreated.
    pub(crate) fn change(&self, live: &QdiscDump, wanted: &QdiscDump) -> Option<Vec<Op>> {
        let change =
            |op: QdiscOp| QdiscOp { verb: Verb::Change, parent: live.parent, handle: live.handle, ..op };
        let made = made(wanted, live.parent);
        let op = match live.kind.changes() {
            Changes::Recreate => return None,
            Changes::InPlace => made,
            Changes::InPlaceIfSame => {
                if live.params.fixed() != wanted.params.fixed() {
                    return None;
                }
                let mut made = made;
                made.params.as_mut().into_iter().for_each(QdiscParams::leave_out_fixed);
                made
            }
            // All their values are in one command, if it is known.
            Changes::AsMade => {
                let [op] = self.of(wanted) else { return None };
                (*op).clone()
            }
        };
        Some(vec![Op::Qdisc(change(op))])
    }
}

/// Packets that a sfq holds if nothing is reported.
const SFQ_LIMIT: u32 = 127;

/// Microseconds that CoDel, which counts in steps of 1,024 ns, reports as this value again.
fn codel_time(reported: Option<u32>) -> Option<u32> {
    let again = |us: u64| us * 1000 / 1024 * 1024 / 1000;
    reported.map(|reported| {
        (reported..=reported.saturating_add(2))
            .find(|us| again((*us).into()) == u64::from(reported))
            .unwrap_or(reported)
    })
}

/// Microseconds that PIE, which counts in ticks of 64 ns, reports as this value again.
fn tick_time(reported: Option<u32>) -> Option<u32> {
    let again = |us: u64| us * 1000 / 64 * 64 / 1000;
    reported.map(|reported| {
        (reported..=reported.saturating_add(2))
            .find(|us| again((*us).into()) == u64::from(reported))
            .unwrap_or(reported)
    })
}

/// The parameters that a command must give to have these values.
fn as_command(params: &QdiscParams) -> QdiscParams {
    let mut params = params.clone();
    match &mut params {
        QdiscParams::Codel(params) => {
            for time in [&mut params.target_us, &mut params.interval_us, &mut params.ce_threshold_us] {
                *time = codel_time(*time);
            }
        }
        QdiscParams::FqCodel(params) => {
            for time in [&mut params.target_us, &mut params.interval_us, &mut params.ce_threshold_us] {
                *time = codel_time(*time);
            }
        }
        QdiscParams::Pie(params) => params.target_us = tick_time(params.target_us),
        QdiscParams::FqPie(params) => params.pie.target_us = tick_time(params.pie.target_us),
        // The default limit cannot be given as a parameter: there would be fewer queues.
        QdiscParams::Sfq(params) if params.limit == SFQ_LIMIT => params.limit = 0,
        _ => {}
    }
    params
}

fn made(wanted: &QdiscDump, parent: Handle) -> QdiscOp {
    QdiscOp {
        verb: Verb::Add,
        dev: wanted.dev.clone(),
        parent,
        handle: wanted.handle,
        kind: Some(wanted.kind.name().to_owned()),
        params: Some(as_command(&wanted.params)),
        stab: wanted.stab.as_ref().and_then(whole),
        estimator: None,
        blocks: wanted.blocks,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kernel keeps CoDel's times in units of 1,024 ns and PIE's in ticks of 64 ns, and reports them cut
    /// to microseconds: a value must be given so that the dump shows it again.
    #[test]
    fn times_are_given_so_that_dumps_repeat_them() {
        type Of = fn(Option<u32>) -> Option<u32>;
        for (unit, granularity) in [(1024, codel_time as Of), (64, tick_time as Of)] {
            let value_of = |us: u32| (u64::from(us) * 1000 / unit * unit / 1000) as u32;
            for us in (0..3000).chain([4999, 5000, 100_000, 1_000_000, 4_000_000]) {
                let first = value_of(us);
                assert_eq!(
                    granularity(Some(first)).map(value_of),
                    Some(first),
                    "{us} µs in units of {unit} ns"
                );
            }
            assert_eq!(granularity(None), None);
        }
        assert_eq!([codel_time(Some(4999)), tick_time(Some(19_998))], [Some(5000), Some(19_999)]);
    }

    /// tc makes a table of sizes whose cells reach the MTU, aligned to −1; one of other makers has unknown
    /// entries.
    #[test]
    fn tables_of_sizes_as_tc_makes_them() {
        let table = SizeTable { cell_align: -1, cell_log: 2, mtu: 2047, tsize: 512, ..SizeTable::default() };
        let entries = table.entries();
        assert_eq!(whole(&table).map(|table| table.data), entries.clone());
        assert!(entries.is_some_and(|entries| entries.len() == 512));
        assert_eq!(
            whole(&SizeTable { mtu: 2048, ..table.clone() }),
            None,
            "its last cell is beyond the table"
        );
        assert_eq!(whole(&SizeTable { cell_align: 0, ..table.clone() }), None);
        let own = SizeTable { data: vec![7; 512], cell_align: 0, ..table.clone() };
        assert_eq!(whole(&own), Some(own.clone()), "what is told is known");
        let none = SizeTable { tsize: 0, cell_align: 0, ..table };
        assert_eq!(whole(&none), Some(none.clone()), "there is nothing to know");
    }
}
