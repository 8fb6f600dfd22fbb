//! What a packet meets in the tables, for those who explain: the engine itself tells.

use super::Table;
use super::visit::Visit;
use crate::conntrack;
use alloc::string::{String, ToString};
use tidegate_packet::{Head, Mark};
use tidegate_policy::netfilter::{Connstate, Family, Hook};

/// What the machine knows of a packet at some moment, beside its length.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its firewall mark.
    pub mark: Mark,
    /// Its priority (`skb->priority`).
    pub priority: u32,
    /// Its DS field, all eight bits.
    pub dsfield: u8,
    /// What it is to its connection.
    pub state: Connstate,
    /// Its connection's mark, if it has a connection.
    pub connmark: Option<u32>,
    /// Packets and bytes of its connection, as that began and against that, where they are counted.
    pub counters: Option<([u64; 2], [u64; 2])>,
    /// Its headers; the DS field there is as it came.
    pub head: Head,
}

/// A rule that a packet met, or a base chain's policy.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The hook.
    pub hook: Option<Hook>,
    /// The table's family.
    pub family: Family,
    /// The table.
    pub table: String,
    /// The chain.
    pub chain: String,
    /// The rule, counted from 0; `None`: the policy at the chain's end.
    pub rule: Option<usize>,
    /// The first of its conditions that does not hold; `None`: all hold.
    pub failed: Option<usize>,
    /// The device it came in by, as far as rules may ask here.
    pub input: String,
    /// The device it leaves by.
    pub output: String,
    /// The packet when it met the rule,
    pub before: Known,
    /// and when the rule had done what does not decide.
    pub after: Known,
}

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
    pub(super) fn meets(&mut self, table: &Table, chain: usize, rule: Option<usize>, failed: Option<usize>) {
        if self.watch.is_some() {
            self.note(table, chain, rule, failed);
        }
    }

    #[cold]
    fn note(&mut self, table: &Table, chain: usize, rule: Option<usize>, failed: Option<usize>) {
        let known = self.known();
        let seen = Seen {
            hook: self.hook,
            family: table.family,
            table: table.name.clone(),
            chain: table.chains[chain].name.clone(),
            rule,
            failed,
            input: self.place.input.to_string(),
            output: self.place.output.to_string(),
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
