//! Netfilter before the devices: the hooks a packet passes on each way through the machine, and the connections it belongs to.

use super::nat::Home;
use alloc::vec::Vec;
use tidegate_classify::conntrack::Conntrack;
use tidegate_classify::netfilter::{Place, Table, Verdict};
use tidegate_packet::header::ethertype;
use tidegate_packet::{Pkt, Pool, Time};
use tidegate_policy::TcError;
use tidegate_policy::netfilter::{Condition, NfOp, Target};

/// The tables in the order in which a packet meets them at a hook.
const ORDER: [&str; 5] = ["raw", "mangle", "nat", "filter", "security"];

/// What became of a packet at the hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    Passed,
    Lost,
    /// Lost at the last hook, where it is the outgoing device's already.
    LostLeaving,
}

/// All tables of both families, and the connections.
#[derive(Debug, Default)]
pub(crate) struct Firewall {
    pub(crate) tables: Vec<Table>,
    pub(crate) connections: Conntrack,
}

impl Firewall {
    pub(crate) fn apply(&mut self, op: &NfOp) -> Result<(), TcError> {
        self.table_mut(op.ipv6, &op.table).apply(op)?;
        self.notice(op);
        Ok(())
    }

    /// Carries out all of these operations or, where one is refused, none; with its number.
    pub(crate) fn apply_all(&mut self, ops: &[NfOp]) -> Result<(), (usize, TcError)> {
        let before = self.tables.clone();
        for (at, op) in ops.iter().enumerate() {
            if let Err(error) = self.table_mut(op.ipv6, &op.table).apply(op) {
                self.tables = before;
                return Err((at, error));
            }
        }
        ops.iter().for_each(|op| self.notice(op));
        Ok(())
    }

    /// Rules that ask for connections make the machine keep them.
    fn notice(&mut self, op: &NfOp) {
        if let Some(rule) = op.command.rule() {
            let counts = rule.matches.iter().any(|m| matches!(m.what, Condition::Connbytes(_)));
            let asks = |what: &Condition| {
                matches!(what, Condition::Connmark(..) | Condition::Connstate(_) | Condition::State(_))
            };
            let keeps = matches!(rule.target, Some(Target::Connmark(_) | Target::Translate(_)));
            if counts || keeps || rule.matches.iter().any(|m| asks(&m.what)) {
                self.connections.activate(counts);
            }
        }
    }

    /// The tables that something was done to, in the order of `iptables-save`.
    pub(crate) fn tables(&self, ipv6: bool) -> Vec<&Table> {
        const SAVED: [&str; 5] = ["mangle", "security", "raw", "filter", "nat"];
        let named = |name: &str| self.tables.iter().find(|t| t.is_ipv6() == ipv6 && t.name() == name && t.is_touched());
        SAVED.iter().filter_map(|name| named(name)).collect()
    }

    /// A table as it stands, made if it is not there.
    pub(crate) fn table(&mut self, ipv6: bool, name: &str) -> &Table {
        self.table_mut(ipv6, name)
    }

    fn table_mut(&mut self, ipv6: bool, name: &str) -> &mut Table {
        let at = self.tables.iter().position(|t| t.is_ipv6() == ipv6 && t.name() == name).unwrap_or_else(|| {
            let rank = |name: &str| ORDER.iter().position(|n| *n == name);
            let at = self.tables.partition_point(|t| rank(t.name()) <= rank(name));
            self.tables.insert(at, Table::new(ipv6, name));
            at
        });
        &mut self.tables[at]
    }

    /// A packet of the machine's own programs.
    pub(crate) fn send(&mut self, now: Time, output: &str, home: Home<'_>, pool: &mut Pool, pkt: &Pkt) -> Passage {
        let place = Place { input: "", output };
        let passes = self.enter("OUTPUT", place, now, pool, pkt) && self.hook("OUTPUT", place, home, pool, pkt);
        self.depart(passes, place, home, pool, pkt)
    }

    /// A packet that the machine routes.
    pub(crate) fn forward(
        &mut self,
        now: Time,
        (input, output): (&str, &str),
        home: Home<'_>,
        pool: &mut Pool,
        pkt: &Pkt,
    ) -> Passage {
        let (before, after) = (Place { input, output: "" }, Place { input: "", output });
        let mut passes =
            self.enter("PREROUTING", before, now, pool, pkt) && self.hook("PREROUTING", before, home, pool, pkt);
        if passes {
            let meta = pool.meta_mut(pkt);
            if meta.ethertype == ethertype::IPV4 {
                meta.priority = tos_priority(meta.dsfield);
            }
            passes = self.hook("FORWARD", Place { input, output }, home, pool, pkt);
        }
        self.depart(passes, after, home, pool, pkt)
    }

    /// The last hook, for what has passed those before.
    fn depart(&mut self, passes: bool, place: Place<'_>, home: Home<'_>, pool: &mut Pool, pkt: &Pkt) -> Passage {
        let leaves = passes && self.hook("POSTROUTING", place, home, pool, pkt);
        match (self.leave(leaves, pool, pkt), passes) {
            (true, _) => Passage::Passed,
            (false, true) => Passage::LostLeaving,
            (false, false) => Passage::Lost,
        }
    }

    /// A packet for the machine itself; false if it is lost.
    pub(crate) fn receive(&mut self, now: Time, input: &str, home: Home<'_>, pool: &mut Pool, pkt: &Pkt) -> bool {
        let place = Place { input, output: "" };
        let passes = self.enter("PREROUTING", place, now, pool, pkt)
            && self.hook("PREROUTING", place, home, pool, pkt)
            && self.hook("INPUT", place, home, pool, pkt);
        self.leave(passes, pool, pkt)
    }

    /// The raw table's chain, and after it the lookup of the connection.
    fn enter(&mut self, chain: &str, place: Place<'_>, now: Time, pool: &mut Pool, pkt: &Pkt) -> bool {
        pool.meta_mut(pkt).connection = 0;
        self.tables_of(chain, |name| name == "raw", place, pool, pkt) && self.connections.enter(now, pool, pkt)
    }

    /// The chains of a hook behind the lookup, table after table: destinations are translated before the filter, sources last.
    fn hook(&mut self, chain: &str, place: Place<'_>, home: Home<'_>, pool: &mut Pool, pkt: &Pkt) -> bool {
        let (early, late) = match chain {
            "PREROUTING" | "OUTPUT" => (true, false),
            _ => (false, chain != "FORWARD"),
        };
        self.tables_of(chain, |name| name == "mangle", place, pool, pkt)
            && (!early || self.nat(chain, place, home, pool, pkt))
            && self.tables_of(chain, |name| matches!(name, "filter" | "security"), place, pool, pkt)
            && (!late || self.nat(chain, place, home, pool, pkt))
    }

    fn tables_of(
        &mut self,
        chain: &str,
        wanted: impl Fn(&str) -> bool,
        place: Place<'_>,
        pool: &mut Pool,
        pkt: &Pkt,
    ) -> bool {
        let Firewall { tables, connections } = self;
        let mut tables = tables.iter_mut().filter(|table| wanted(table.name()));
        tables.all(|table| table.run(chain, place, connections, pool, pkt) == Verdict::Accept)
    }

    /// The end of the way through the hooks.
    fn leave(&mut self, passes: bool, pool: &mut Pool, pkt: &Pkt) -> bool {
        if passes {
            self.connections.confirm(pool, pkt);
        } else {
            self.connections.abandon(pool, pkt);
        }
        passes
    }
}

/// The priority that routing gives a packet for its TOS bits (RFC 1349 as Linux reads it).
pub fn tos_priority(dsfield: u8) -> u32 {
    match dsfield & 0x18 {
        0x00 => 0,
        0x08 => 2,
        0x10 => 6,
        _ => 4,
    }
}
