//! Address translation (RFC 3022): what the world sees of a connection, settled once, by its first packet.

use super::membership::membership;
use super::table::Conntrack;
use super::tuple::Tuple;
use crate::headers::Outer;
use tidegate_packet::header::proto;
use tidegate_packet::{Head, Meta, Pkt, Pool, checksum, jenkins};
use tidegate_policy::netfilter::Translation;

/// Which end of a packet is translated: destinations as it comes in, sources as it goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NatSide {
    /// Before routing.
    Destination = 0,
    /// Source translation (SNAT), in POSTROUTING, after routing.
    Source = 1,
}

impl Conntrack {
    /// Is it still to be settled what the world sees at this end of the packet's connection?
    pub fn is_unsettled(&self, meta: &Meta, end: NatSide) -> bool {
        membership(meta).is_some_and(|member| {
            let entry = &self.entries[member.at as usize];
            !entry.confirmed && !entry.settled[end as usize]
        })
    }

    /// Settles it: as `wanted`, or left as it is. False: no port is free, the packet is dropped.
    ///
    /// A source that no rule translates gets another port all the same if another connection has the same
    /// tuple already. A port within the wanted range stays if it is free; otherwise the search for a free one
    /// begins at a place that depends on the connection, and goes round. (Linux begins anywhere.) Sources
    /// keep to their kind: below 512, below 1024, above.
    pub fn settle(&mut self, meta: &Meta, end: NatSide, wanted: Option<&Translation>) -> bool {
        let Some(member) = membership(meta) else { return true };
        let entry = &mut self.entries[member.at as usize];
        entry.settled[end as usize] = true;
        if wanted.is_none() && end == NatSide::Destination {
            return true;
        }
        let mut seen = entry.tuples[1].back();
        let is_free = |seen: &Tuple| match self.index.get(&seen.back()) {
            Some(at) => self.entries[*at as usize].expires <= self.now,
            None => true,
        };
        let found = choose(&mut seen, end, wanted.unwrap_or(&Translation::default()), is_free);
        if found {
            self.entries[member.at as usize].tuples[1] = seen.back();
        }
        found || wanted.is_none()
    }

    /// Rewrites this end of a packet by its connection, if that is translated. (An ICMP error comes from the
    /// host that noticed the error: that end of it is its own.)
    pub fn translate(&self, pool: &mut Pool, pkt: &Pkt, end: NatSide) {
        let Some(member) = membership(pool.meta(pkt)) else { return };
        let [began, answer] = self.entries[member.at as usize].tuples;
        let (arrived, seen) = if member.reply { (answer, began.back()) } else { (began, answer.back()) };
        let (before, after) = match end {
            NatSide::Source => ((arrived.source, arrived.sport), (seen.source, seen.sport)),
            NatSide::Destination => ((arrived.destination, arrived.dport), (seen.destination, seen.dport)),
        };
        if before != after {
            let outer = Outer::of(pool, pkt);
            let port = outer.at.filter(|_| outer.ports.is_some()).map(|at| (at, after.1));
            pool.translate(pkt, |head| write(head, end, &after.0, port));
        }
    }
}

/// Changes one end of `seen` to what is wanted, if something of that is free.
fn choose(seen: &mut Tuple, end: NatSide, wanted: &Translation, is_free: impl Fn(&Tuple) -> bool) -> bool {
    if let Some(range) = wanted.addresses {
        let address = pick(range, seen, end);
        match end {
            NatSide::Source => seen.source = address,
            NatSide::Destination => seen.destination = address,
        }
    }
    if !matches!(seen.protocol, proto::TCP | proto::UDP | 33 | 132 | 136) {
        return is_free(seen);
    }
    let had = if end == NatSide::Source { seen.sport } else { seen.dport };
    let (low, high) = match (wanted.ports, end) {
        (Some(range), _) => range,
        // The source's turn comes later.
        (None, NatSide::Destination) => return true,
        (None, NatSide::Source) => match had {
            0..512 => (1, 511),
            512..1024 => (600, 1023),
            _ => (1024, u16::MAX),
        },
    };
    // A port of its own that fits no range of tidegate's (550, say) is kept too.
    let own = wanted.ports.is_none() || (low..=high).contains(&had);
    let count = u32::from(high - low) + 1;
    let start = jenkins(
        &[u32::from(seen.sport), u32::from(seen.dport), hash_of(seen.source), hash_of(seen.destination)],
        0,
    );
    let others = (0..count).map(|n| low + (start.wrapping_add(n) % count) as u16);
    for port in own.then_some(had).into_iter().chain(others) {
        match end {
            NatSide::Source => seen.sport = port,
            NatSide::Destination => seen.dport = port,
        }
        if is_free(seen) {
            return true;
        }
    }
    false
}

fn hash_of(address: [u8; 16]) -> u32 {
    let words: [u32; 4] = core::array::from_fn(|i| (u128::from_be_bytes(address) >> (96 - 32 * i)) as u32);
    jenkins(&words, 0)
}

/// One of several addresses, the same for all connections of a host. (Linux's choice is another hash.)
fn pick((low, high): ([u8; 16], [u8; 16]), seen: &Tuple, end: NatSide) -> [u8; 16] {
    let (low, high) = (u128::from_be_bytes(low), u128::from_be_bytes(high));
    let choice = u128::from(hash_of(if end == NatSide::Source { seen.source } else { seen.destination }));
    match (high - low).checked_add(1) {
        Some(count) => low + choice % count,
        None => choice,
    }
    .to_be_bytes()
}

fn write(head: &mut Head, end: NatSide, address: &[u8; 16], port: Option<(usize, u16)>) {
    let bytes = head.network_mut();
    let v6 = bytes.first().is_some_and(|byte| byte >> 4 == 6);
    let (at, own) = if v6 { (8, &address[..]) } else { (12, &address[12..]) };
    let shift = |len: usize| if end == NatSide::Destination { len } else { 0 };
    checksum::rewrite(bytes, at + shift(own.len()), own);
    if let Some((ports, port)) = port {
        checksum::rewrite(bytes, ports + shift(2), &port.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(protocol: u8, sport: u16) -> Tuple {
        let (source, destination) = ([1; 16], [2; 16]);
        Tuple { source, destination, v6: false, protocol, sport, dport: 80, zone: 0 }
    }

    /// The source port that a connection gets when it may take one of `ports` and only `free` are free.
    fn taken(sport: u16, ports: Option<(u16, u16)>, free: impl Fn(u16) -> bool) -> Option<u16> {
        let mut seen = seen(proto::TCP, sport);
        let wanted = Translation { ports, ..Translation::default() };
        choose(&mut seen, NatSide::Source, &wanted, |seen| free(seen.sport)).then_some(seen.sport)
    }

    /// A source keeps to its kind (below 512, below 1024 but not below 600, above), whole to both ends; its
    /// own port stays while it is free, also one that fits no kind (550).
    #[test]
    fn sources_keep_to_their_kind() {
        let only = |port: u16| move |other: u16| other == port;
        for (sport, first, last) in
            [(1, 1, 511), (511, 1, 511), (512, 600, 1023), (1023, 600, 1023), (1024, 1024, 65535)]
        {
            assert_eq!(taken(sport, None, |_| true), Some(sport));
            assert_eq!(
                [first, last].map(|port| taken(sport, None, only(port))),
                [Some(first), Some(last)],
                "{sport}"
            );
            for beyond in [first - 1, last.wrapping_add(1)] {
                let own = (beyond == sport).then_some(sport);
                assert_eq!(taken(sport, None, only(beyond)), own, "{beyond} for {sport}");
            }
        }
        assert_eq!(taken(550, None, |_| true), Some(550));
    }

    /// A range that is given is searched from end to end, and nothing beyond it.
    #[test]
    fn a_given_range_is_searched_whole() {
        let range = Some((5000, 5003));
        assert_eq!(taken(5002, range, |_| true), Some(5002));
        assert_eq!([5000, 5003].map(|free| taken(9, range, |port| port == free)), [Some(5000), Some(5003)]);
        assert_eq!([4999, 5004].map(|free| taken(9, range, |port| port == free)), [None, None]);
        assert_eq!(taken(9, Some((7, 7)), |_| true), Some(7));
    }

    #[test]
    fn destinations_and_protocols_without_ports_keep_theirs() {
        let wanted = Translation::default();
        for (protocol, end) in [(proto::TCP, NatSide::Destination), (proto::ICMP, NatSide::Source)] {
            let mut tuple = seen(protocol, 9);
            assert!(choose(&mut tuple, end, &wanted, |_| true));
            assert_eq!((tuple.sport, tuple.dport), (9, 80));
        }
        assert!(!choose(&mut seen(proto::ICMP, 9), NatSide::Source, &wanted, |_| false));
        let ports = Translation { ports: Some((8080, 8080)), ..wanted };
        let mut tuple = seen(proto::UDP, 9);
        assert!(choose(&mut tuple, NatSide::Destination, &ports, |_| true));
        assert_eq!((tuple.sport, tuple.dport), (9, 8080));
    }

    /// One of several addresses: within the range to both ends, the same for all connections of a host.
    #[test]
    fn addresses_come_from_the_whole_range() {
        let address =
            |last: u8| u128::from_be_bytes([10; 16]).wrapping_sub(10).wrapping_add(last.into()).to_be_bytes();
        let mut found = [false; 4];
        for host in 0..200 {
            let mut tuple = seen(proto::TCP, 2000);
            tuple.source[15] = host;
            let before = pick((address(0), address(3)), &tuple, NatSide::Source);
            tuple.sport = 3000;
            assert_eq!(pick((address(0), address(3)), &tuple, NatSide::Source), before);
            found[usize::from(before[15])] = true;
            assert_eq!(pick((address(7), address(7)), &tuple, NatSide::Source), address(7));
        }
        assert_eq!(found, [true; 4]);
    }
}
