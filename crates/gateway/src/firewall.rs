//! Netfilter before the devices: the hooks a packet passes on each way through the machine, and the connections it belongs to.

use super::nat::Home;
use alloc::vec::Vec;
use tidegate_classify::conntrack::Conntrack;
use tidegate_classify::netfilter::{Place, Table, Verdict};
use tidegate_packet::header::ethertype;
use tidegate_packet::{Pkt, Pool, Time};
use tidegate_policy::TcError;
use tidegate_policy::netfilter::{Condition, NfOp, Target};

/// All tables of both families, and the connections.
#[derive(Debug, Default)]
pub(crate) struct Firewall {
    pub(crate) tables: Vec<Table>,
    pub(crate) connections: Conntrack,
}

impl Firewall {
    pub(crate) fn apply(&mut self, op: &NfOp) -> Result<(), TcError> {
        self.table_mut(op.ipv6, &op.table).apply(op)?;
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
        Ok(())
    }

    /// A table as it stands, made if it is not there.
    pub(crate) fn table(&mut self, ipv6: bool, name: &str) -> &Table {
        self.table_mut(ipv6, name)
    }

    fn table_mut(&mut self, ipv6: bool, name: &str) -> &mut Table {
        let at = self.tables.iter().position(|t| t.is_ipv6() == ipv6 && t.name() == name).unwrap_or_else(|| {
            self.tables.push(Table::new(ipv6, name));
            self.tables.len() - 1
        });
        &mut self.tables[at]
    }

    /// A packet of the machine's own programs; false if it is lost.
    pub(crate) fn send(&mut self, now: Time, output: &str, home: Home<'_>, pool: &mut Pool, pkt: &Pkt) -> bool {
        let place = Place { input: "", output };
        let passes = self.connections.enter(now, pool, pkt)
            && self.hook("OUTPUT", place, pool, pkt)
            && self.nat("OUTPUT", place, home, pool, pkt)
            && self.hook("POSTROUTING", place, pool, pkt)
            && self.nat("POSTROUTING", place, home, pool, pkt);
        self.leave(passes, pool, pkt)
    }

    /// A packet that the machine routes; false if it is lost.
    pub(crate) fn forward(
        &mut self,
        now: Time,
        (input, output): (&str, &str),
        home: Home<'_>,
        pool: &mut Pool,
        pkt: &Pkt,
    ) -> bool {
        if !self.connections.enter(now, pool, pkt) {
            return false;
        }
        let (before, after) = (Place { input, output: "" }, Place { input: "", output });
        let mut passes = self.hook("PREROUTING", before, pool, pkt) && self.nat("PREROUTING", before, home, pool, pkt);
        if passes {
            let meta = pool.meta_mut(pkt);
            if meta.ethertype == ethertype::IPV4 {
                meta.priority = tos_priority(meta.dsfield);
            }
            passes = self.hook("FORWARD", Place { input, output }, pool, pkt)
                && self.hook("POSTROUTING", after, pool, pkt)
                && self.nat("POSTROUTING", after, home, pool, pkt);
        }
        self.leave(passes, pool, pkt)
    }

    /// A packet for the machine itself; false if it is lost.
    pub(crate) fn receive(&mut self, now: Time, input: &str, home: Home<'_>, pool: &mut Pool, pkt: &Pkt) -> bool {
        let place = Place { input, output: "" };
        let passes = self.connections.enter(now, pool, pkt)
            && self.hook("PREROUTING", place, pool, pkt)
            && self.nat("PREROUTING", place, home, pool, pkt)
            && self.hook("INPUT", place, pool, pkt)
            && self.nat("INPUT", place, home, pool, pkt);
        self.leave(passes, pool, pkt)
    }

    fn hook(&mut self, chain: &str, place: Place<'_>, pool: &mut Pool, pkt: &Pkt) -> bool {
        let Firewall { tables, connections } = self;
        let mut mangle = tables.iter_mut().filter(|table| table.name() == "mangle");
        mangle.all(|table| table.run(chain, place, connections, pool, pkt) == Verdict::Accept)
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
