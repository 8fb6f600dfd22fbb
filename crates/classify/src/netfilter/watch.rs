//! What a packet meets in the tables, for `explain`: the engine itself reports it.

use super::NetfilterTable;
use super::seen::{Known, RuleTrace};
use super::visit::Visit;
use crate::conntrack;
use alloc::string::ToString;

impl Visit<'_> {
    fn known(&self) -> Known {
        let meta = self.pool.meta(self.pkt);
        Known {
            mark: meta.mark,
            priority: meta.priority,
            dsfield: meta.dsfield,
            state: conntrack::state(meta),
            connmark: self.connections.mark(meta),
            counters: self.connections.counters(meta),
            head: self.pool.head(self.pkt).clone(),
        }
    }

    /// It meets a rule, or a policy.
    #[inline]
    pub(super) fn meets(
        &mut self,
        table: &NetfilterTable,
        chain: usize,
        rule: Option<usize>,
        failed: Option<usize>,
    ) {
        if self.watch.is_some() {
            self.note(table, chain, rule, failed);
        }
    }

    #[cold]
    fn note(&mut self, table: &NetfilterTable, chain: usize, rule: Option<usize>, failed: Option<usize>) {
        let known = self.known();
        let seen = RuleTrace {
            hook: self.hook,
            family: table.family,
            table: table.name.clone(),
            chain: table.chains[chain].name.clone(),
            rule,
            failed,
            input: self.place.input.to_string(),
            output: self.place.output.to_string(),
            linux: self.place.linux,
            before: known.clone(),
            after: known,
        };
        self.watch.iter_mut().for_each(|watch| watch.push(seen.clone()));
    }

    /// The rule it met last changed it.
    #[inline]
    pub(super) fn changed(&mut self) {
        if self.watch.is_some() {
            let known = self.known();
            if let Some(last) = self.watch.as_mut().and_then(|watch| watch.last_mut()) {
                last.after = known;
            }
        }
    }
}
