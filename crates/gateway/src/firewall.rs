//! Netfilter before the devices: the hooks a packet passes on each path through the machine, and the
//! connections it belongs to.

use alloc::vec::Vec;
use tidegate_classify::conntrack::{self, Conntrack, ConntrackUse};
use tidegate_classify::netfilter::{HookDevices, NetfilterTable, NetfilterVerdict, RuleTrace};
use tidegate_packet::header::ethertype;
use tidegate_packet::{LinuxVersion, Pkt, Pool, Time};
use tidegate_policy::netfilter::{Base, Condition, Family, Hook, NetfilterTarget, NfCommand, NfOp};
use tidegate_policy::{Errno, TcError};

/// iptables' tables in the order of `iptables-save`.
const SAVED: [&str; 5] = ["mangle", "security", "raw", "filter", "nat"];

/// What happened to a packet at the hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passage {
    Passed,
    Dropped,
    /// Dropped at the last hook, where it is the outgoing device's already.
    DroppedLeaving,
}

/// A chain where packets come by.
#[derive(Clone, Copy, Debug)]
struct Stop {
    priority: i32,
    table: usize,
    chain: usize,
    /// One of iptables' table nat: evaluated once for each connection, not for each packet.
    translates: bool,
}

/// All tables at the time of the checkpoint, and what connection tracking was needed for.
#[derive(Debug)]
pub struct Checkpoint {
    tables: Vec<NetfilterTable>,
    requested: ConntrackUse,
}

/// The first address of the device of that name in a family (IPv6?), if it has one.
pub(crate) type Home<'a> = &'a dyn Fn(&str, bool) -> Option<[u8; 16]>;

/// All tables, and the connections.
#[derive(Debug, Default)]
pub(crate) struct Firewall {
    /// In the order in which they were made.
    pub(crate) tables: Vec<NetfilterTable>,
    pub(crate) connections: Conntrack,
    /// What a packet meets at each hook, in order; known from the first packet after a change on.
    stops: Option<[Vec<Stop>; 5]>,
    /// What packets met, while there is an observer.
    pub(crate) watch: Option<Vec<RuleTrace>>,
    /// Packets that are routed have a hop less from then on.
    pub(crate) counts_hops: bool,
    /// The release of Linux whose netfilter it is.
    pub(crate) linux: LinuxVersion,
}

impl Firewall {
    pub(crate) fn apply(&mut self, op: &NfOp) -> Result<(), TcError> {
        self.carry_out(op)?;
        self.notice(op);
        Ok(())
    }

    /// Carries out all of these operations or, where one is refused, none; with its number.
    pub(crate) fn apply_all(&mut self, ops: &[NfOp]) -> Result<(), (usize, TcError)> {
        let before = self.checkpoint();
        for (at, op) in ops.iter().enumerate() {
            if let Err(error) = self.apply(op) {
                self.revert(before);
                return Err((at, error));
            }
        }
        Ok(())
    }

    pub(crate) fn checkpoint(&self) -> Checkpoint {
        Checkpoint { tables: self.tables.clone(), requested: self.connections.requested() }
    }

    pub(crate) fn revert(&mut self, to: Checkpoint) {
        self.tables = to.tables;
        self.connections.set_use(to.requested);
        self.stops = None;
    }

    fn carry_out(&mut self, op: &NfOp) -> Result<(), TcError> {
        self.stops = None;
        let there = self.position(op.family, &op.table);
        match (&op.command, there) {
            (NfCommand::NewTable, None) => self.tables.push(NetfilterTable::free(op.family, &op.table)),
            (NfCommand::DeleteTable, Some(at)) => drop(self.tables.remove(at)),
            (_, Some(at)) => self.tables[at].apply(op)?,
            // iptables' tables are there when they are requested; nft's are not.
            (NfCommand::DeleteTable | NfCommand::NewBase(..), None) => {
                return Err(TcError::bare(Errno::NoEnt));
            }
            (_, None) if op.family != Family::Inet && SAVED.contains(&op.table.as_str()) => {
                self.table_mut(op.family, &op.table).apply(op)?;
            }
            (_, None) => return Err(TcError::bare(Errno::NoEnt)),
        }
        Ok(())
    }

    /// Rules that ask for connections make the machine keep them.
    fn notice(&mut self, op: &NfOp) {
        let Some(rule) = op.command.rule() else { return };
        let counts = rule
            .matches
            .iter()
            .any(|m| any_condition(&m.what, |what| matches!(what, Condition::Connbytes(_))));
        let keeps = rule
            .targets()
            .any(|target| matches!(target, NetfilterTarget::Connmark(_) | NetfilterTarget::Translate(_)));
        let connected = |what: &Condition| {
            matches!(what, Condition::Connmark(..) | Condition::Connstate(_) | Condition::State(_))
        };
        if counts || keeps || rule.matches.iter().any(|m| any_condition(&m.what, connected)) {
            self.connections.activate(counts);
        }
    }

    /// iptables' tables that something was done to, in the order of `iptables-save`.
    pub(crate) fn tables(&self, ipv6: bool) -> Vec<&NetfilterTable> {
        let family = Family::of(ipv6);
        let named = |name: &str| {
            self.tables.iter().find(|t| t.family() == family && t.name() == name && t.is_touched())
        };
        SAVED.iter().filter_map(|name| named(name)).collect()
    }

    /// One of iptables' tables as it is, made if it is not there.
    pub(crate) fn table(&mut self, ipv6: bool, name: &str) -> &NetfilterTable {
        self.table_mut(Family::of(ipv6), name)
    }

    fn position(&self, family: Family, name: &str) -> Option<usize> {
        self.tables.iter().position(|t| t.family() == family && t.name() == name)
    }

    fn table_mut(&mut self, family: Family, name: &str) -> &mut NetfilterTable {
        let at = self.position(family, name).unwrap_or_else(|| {
            self.stops = None;
            self.tables.push(NetfilterTable::new(family == Family::Ipv6, name));
            self.tables.len() - 1
        });
        &mut self.tables[at]
    }

    /// The chains that packets of a family meet at a hook, in order: table, and the chain's number in it.
    pub(crate) fn chains_at(&self, ipv6: bool, hook: Hook) -> Vec<(&NetfilterTable, usize)> {
        let stops = stops(&self.tables, hook);
        let table = |stop: &Stop| (&self.tables[stop.table], stop.chain);
        stops.iter().map(table).filter(|(table, _)| table.family().has(ipv6)).collect()
    }

    /// A packet of the machine's own programs.
    pub(crate) fn send(
        &mut self,
        now: Time,
        output: &str,
        home: Home<'_>,
        pool: &mut Pool,
        pkt: &Pkt,
    ) -> Passage {
        let place = HookDevices { input: "", output, linux: self.linux };
        let passes = self.enter(Hook::Output, place, now, pool, pkt)
            && self.hook(Hook::Output, place, home, pool, pkt);
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
        let linux = self.linux;
        let (before, after) =
            (HookDevices { input, output: "", linux }, HookDevices { input: "", output, linux });
        let mut passes = self.enter(Hook::Prerouting, before, now, pool, pkt)
            && self.hook(Hook::Prerouting, before, home, pool, pkt);
        if passes {
            let meta = pool.meta_mut(pkt);
            if meta.ethertype == ethertype::IPV4 {
                meta.priority = tos_priority(meta.dsfield);
            }
            passes = (!self.counts_hops || pool.hop(pkt))
                && self.hook(Hook::Forward, HookDevices { input, output, linux }, home, pool, pkt);
        }
        self.depart(passes, after, home, pool, pkt)
    }

    /// The last hook, for what has passed those before.
    fn depart(
        &mut self,
        passes: bool,
        place: HookDevices<'_>,
        home: Home<'_>,
        pool: &mut Pool,
        pkt: &Pkt,
    ) -> Passage {
        let leaves = passes && self.hook(Hook::Postrouting, place, home, pool, pkt);
        match (self.leave(leaves, pool, pkt), passes) {
            (true, _) => Passage::Passed,
            // Recorded: answers/dropped-in-postrouting.
            (false, true) => Passage::DroppedLeaving,
            (false, false) => Passage::Dropped,
        }
    }

    /// A packet for the machine itself; false if it is dropped.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        input: &str,
        home: Home<'_>,
        pool: &mut Pool,
        pkt: &Pkt,
    ) -> bool {
        let place = HookDevices { input, output: "", linux: self.linux };
        let passes = self.enter(Hook::Prerouting, place, now, pool, pkt)
            && self.hook(Hook::Prerouting, place, home, pool, pkt)
            && self.hook(Hook::Input, place, home, pool, pkt);
        self.leave(passes, pool, pkt)
    }

    /// The chains before the lookup of the connection, and that.
    fn enter(&mut self, hook: Hook, place: HookDevices<'_>, now: Time, pool: &mut Pool, pkt: &Pkt) -> bool {
        conntrack::begin_hooks(pool.meta_mut(pkt));
        self.chains(hook, (i32::MIN, Base::CONNECTIONS), place, pool, pkt)
            && self.connections.enter(now, pool, pkt)
    }

    /// The chains of a hook behind the lookup: destinations are translated on the way in, sources on the way
    /// out.
    fn hook(
        &mut self,
        hook: Hook,
        place: HookDevices<'_>,
        home: Home<'_>,
        pool: &mut Pool,
        pkt: &Pkt,
    ) -> bool {
        let translation = match hook {
            Hook::Prerouting | Hook::Output => Base::DESTINATIONS,
            Hook::Input | Hook::Postrouting => Base::SOURCES,
            Hook::Forward => return self.chains(hook, (i32::MIN, i32::MAX), place, pool, pkt),
        };
        let first =
            if matches!(hook, Hook::Prerouting | Hook::Output) { Base::CONNECTIONS } else { i32::MIN };
        self.chains(hook, (first, translation), place, pool, pkt)
            && self.nat(hook, place, home, pool, pkt)
            && self.chains(hook, (translation, i32::MAX), place, pool, pkt)
    }

    /// The chains of a hook from one priority on, up to but without another.
    fn chains(
        &mut self,
        hook: Hook,
        range: (i32, i32),
        place: HookDevices<'_>,
        pool: &mut Pool,
        pkt: &Pkt,
    ) -> bool {
        let Firewall { tables, connections, stops: known, watch, .. } = self;
        let all = known.get_or_insert_with(|| Hook::ALL.map(|hook| stops(tables, hook)));
        let mut selected = all[hook as usize]
            .iter()
            .filter(|stop| !stop.translates && (range.0..range.1).contains(&stop.priority));
        selected.all(|stop| {
            tables[stop.table].run(stop.chain, place, connections, pool, pkt, watch.as_mut())
                == NetfilterVerdict::Accept
        })
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

/// Does a condition, or one of a set, ask so?
fn any_condition(what: &Condition, so: impl Fn(&Condition) -> bool + Copy) -> bool {
    match what {
        Condition::Any(several) => several.iter().any(so),
        one => so(one),
    }
}

/// The chains at a hook in the order in which packets meet them: of those with equal priority the one made
/// last comes first.
fn stops(tables: &[NetfilterTable], hook: Hook) -> Vec<Stop> {
    let of_table = |(at, table): (usize, &NetfilterTable)| {
        let translates = !table.is_free() && table.name() == "nat";
        let stop = move |(priority, chain)| Stop { priority, table: at, chain, translates };
        table.at_hook(hook).map(stop).collect::<Vec<_>>()
    };
    let mut stops: Vec<Stop> = tables.iter().enumerate().flat_map(of_table).collect();
    stops.reverse();
    stops.sort_by_key(|stop| stop.priority);
    stops
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
