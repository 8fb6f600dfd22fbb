//! The action ct: connection tracking where a filter requests it, before the hooks or after them.

use super::membership::{BY_ACTION, membership, pack, state};
use super::nat::NatSide;
use super::table::Conntrack;
use super::tuple::Tuple;
use tidegate_packet::header::ethertype;
use tidegate_packet::{Meta, Nanos, Pkt, Pool, Time};
use tidegate_policy::netfilter::{Connstate as State, Translation};
use tidegate_policy::{Ct, CtNat};

/// What flower's `ct_state` compares.
mod bits {
    pub(super) const NEW: u8 = 1;
    pub(super) const ESTABLISHED: u8 = 2;
    pub(super) const RELATED: u8 = 4;
    pub(super) const TRACKED: u8 = 8;
    pub(super) const INVALID: u8 = 16;
    pub(super) const REPLY: u8 = 32;
}

/// The packet's connection state in flower's numbers; 0: it was not looked up.
pub(crate) fn flower_state(meta: &Meta) -> u8 {
    let Some(member) = membership(meta) else {
        let looked_up = meta.connection & BY_ACTION != 0 && state(meta) == State::Invalid;
        return if looked_up { bits::TRACKED | bits::INVALID } else { 0 };
    };
    let reply = if member.reply { bits::REPLY } else { 0 };
    bits::TRACKED
        | match state(meta) {
            State::Established => bits::ESTABLISHED | reply,
            State::Related => bits::RELATED | reply,
            _ => bits::NEW,
        }
}

impl Conntrack {
    /// Carries the action out on a packet; false: it is dropped.
    pub(crate) fn act(&mut self, ct: &Ct, now: Time, pool: &mut Pool, pkt: &Pkt) -> bool {
        if ct.clear {
            let meta = pool.meta_mut(pkt);
            if membership(meta).is_some() {
                meta.connection = pack(State::Untracked, None) | BY_ACTION;
            }
            return true;
        }
        if !matches!(pool.meta(pkt).ethertype, ethertype::IPV4 | ethertype::IPV6) {
            return false;
        }
        if !self.has_one(ct, pool.meta(pkt)) {
            if !self.look_up_in(ct.zone.unwrap_or(0), now, pool, pkt) {
                return false;
            }
            let meta = pool.meta_mut(pkt);
            meta.connection |= BY_ACTION;
            self.note_begun(now, membership(meta).map(|member| member.at));
        }
        let Some(member) = membership(pool.meta(pkt)) else { return true };
        if !self.translate_by(ct, pool, pkt) {
            return false;
        }
        if ct.commit {
            if let Some((mark, mask)) = ct.mark {
                let entry = &mut self.entries[member.at as usize];
                entry.mark = entry.mark & !mask | mark;
            }
            if let Some((label, mask)) = ct.label {
                let entry = &mut self.entries[member.at as usize];
                entry.labels = entry.labels & !mask | label & mask;
            }
            if self.clashes(now, member.at) {
                self.forget(member.at);
                pool.meta_mut(pkt).connection = 0;
                return false;
            }
            self.keep(member.at);
        }
        true
    }

    /// Looks another connection, whose time is not over, already as one that is not kept yet would?
    fn clashes(&self, now: Time, at: u32) -> bool {
        let entry = &self.entries[at as usize];
        let matches = |tuple: &Tuple| {
            self.index
                .get(tuple)
                .is_some_and(|other| *other != at && self.entries[*other as usize].expires > now)
        };
        !entry.confirmed && entry.tuples.iter().any(matches)
    }

    /// Has the packet a connection that will do? With `force`, one that the other side began is forgotten.
    fn has_one(&mut self, ct: &Ct, meta: &Meta) -> bool {
        let Some(member) = membership(meta) else { return false };
        // One of another zone will not do.
        if self.entries[member.at as usize].tuples[0].zone != ct.zone.unwrap_or(0) {
            return false;
        }
        if !(ct.commit && ct.force && member.reply) {
            return true;
        }
        if self.entries[member.at as usize].confirmed {
            self.forget(member.at);
        }
        false
    }

    fn translate_by(&mut self, ct: &Ct, pool: &mut Pool, pkt: &Pkt) -> bool {
        let Some(nat) = ct.nat else { return true };
        if let (true, CtNat::New { source, addresses: (low, high), ports }) = (ct.commit, nat) {
            let end = if source { NatSide::Source } else { NatSide::Destination };
            let addresses = (address_bytes(low), address_bytes(high));
            let wanted = Translation { addresses: Some(addresses), ports, ..Translation::default() };
            if self.is_unsettled(pool.meta(pkt), end) && !self.settle(pool.meta(pkt), end, Some(&wanted)) {
                return false;
            }
        }
        self.translate(pool, pkt, NatSide::Destination);
        self.translate(pool, pkt, NatSide::Source);
        true
    }

    /// Remembers a connection that has only begun: it is forgotten after its time if no packet of it is kept
    /// by then.
    fn note_begun(&mut self, now: Time, begun: Option<u32>) {
        /// A packet with this mark has long left by then.
        const LONGEST: Nanos = Nanos::secs(600);
        while let Some((at, since)) = self.begun.front().copied().filter(|(_, since)| *since + LONGEST <= now)
        {
            self.begun.pop_front();
            let entry = &self.entries[at as usize];
            if entry.used && !entry.confirmed && entry.began == since {
                self.forget(at);
            }
        }
        if let Some(at) = begun.filter(|at| !self.entries[*at as usize].confirmed) {
            self.begun.push_back((at, self.entries[at as usize].began));
        }
    }
}

/// IPv4 in the last four bytes.
fn address_bytes(address: core::net::IpAddr) -> [u8; 16] {
    match address {
        core::net::IpAddr::V6(address) => address.octets(),
        core::net::IpAddr::V4(address) => {
            let mut bytes = [0; 16];
            bytes[12..].copy_from_slice(&address.octets());
            bytes
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_packet::Head;

    /// One UDP packet from port 1 to port 2 of another host, or its reply.
    fn packet(pool: &mut Pool, reply: bool) -> Pkt {
        let (mut from, mut to) = ([10, 0, 0, 1], [10, 9, 0, 1]);
        let (mut sport, mut dport) = (1_u8, 2_u8);
        if reply {
            core::mem::swap(&mut from, &mut to);
            core::mem::swap(&mut sport, &mut dport);
        }
        let mut bytes = alloc::vec![0x45, 0, 0, 28, 0, 0, 0x40, 0, 64, 17, 0, 0];
        bytes.extend(from);
        bytes.extend(to);
        bytes.extend([0, sport, 0, dport, 0, 8, 0, 0]);
        let head = Head::from_network(ethertype::IPV4, &bytes);
        pool.insert(Meta::of(&head, 60), head).expect("room")
    }

    /// Such a packet shown to `ct commit mark 5`: what flower sees behind it.
    fn seen(table: &mut Conntrack, pool: &mut Pool, at: u64, zone: Option<u16>, reply: bool) -> u8 {
        let pkt = packet(pool, reply);
        let ct =
            Ct { commit: true, zone, label: Some((0xff, 0x0f)), mark: Some((5, u32::MAX)), ..Ct::default() };
        assert!(table.act(&ct, Time(at), pool, &pkt));
        let reported = flower_state(pool.meta(&pkt));
        pool.release(pkt);
        reported
    }

    #[test]
    fn zones_have_connections_of_their_own() {
        let (mut table, mut pool) = (Conntrack::default(), Pool::new(4));
        let new = bits::TRACKED | bits::NEW;
        let answered = bits::TRACKED | bits::ESTABLISHED | bits::REPLY;
        let bytes = [(Some(1), false), (Some(2), false), (Some(1), true), (None, true), (Some(0), false)]
            .map(|(zone, reply)| seen(&mut table, &mut pool, 1_000_000_000, zone, reply));
        // Without a zone it is zone 0, where the reply began a connection; the last packet answers that.
        assert_eq!(bytes, [new, new, answered, new, answered]);
        assert!(table.entries.iter().all(|entry| entry.labels == 0x0f));
    }
    #[test]
    fn marks_are_looked_up_in_the_given_zone() {
        let (mut table, mut pool) = (Conntrack::default(), Pool::new(4));
        let now = Time(1_000_000_000);
        seen(&mut table, &mut pool, now.0, Some(3), false);
        for reply in [false, true] {
            let pkt = packet(&mut pool, reply);
            let marks = [3, 0, 4].map(|zone| table.known_mark(now, &pool, &pkt, zone));
            assert_eq!(marks, [Some(5), None, None]);
            pool.release(pkt);
        }
        // A kernel without zones has one for all.
        table.without_zones();
        seen(&mut table, &mut pool, now.0, None, false);
        let pkt = packet(&mut pool, false);
        assert_eq!([3, 0].map(|zone| table.known_mark(now, &pool, &pkt, zone)), [Some(5); 2]);
        pool.release(pkt);
    }
}
