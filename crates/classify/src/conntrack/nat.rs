//! Address translation (RFC 3022): what the world sees of a connection, settled once, by its first packet.

use super::{Conntrack, Tuple, membership};
use crate::headers::Outer;
use tidegate_packet::header::proto;
use tidegate_packet::{Head, Meta, Pkt, Pool, checksum, jenkins};
use tidegate_policy::netfilter::Translation;

/// Which end of a packet is translated: destinations as it comes in, sources as it goes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Before routing.
    Destination = 0,
    /// After it.
    Source = 1,
}

impl Conntrack {
    /// Is it still to be settled what the world sees at this end of the packet's connection?
    pub fn is_unsettled(&self, meta: &Meta, end: End) -> bool {
        membership(meta).is_some_and(|member| {
            let entry = &self.entries[member.at as usize];
            !entry.confirmed && !entry.settled[end as usize]
        })
    }

    /// Settles it: as `wanted`, or left as it is. False: no port is free, the packet is lost.
    ///
    /// A source that nobody wanted translated gets another port all the same if another connection looks just so already.
    /// A port within what is wanted stays if it is free; otherwise the search for a free one begins at a place that depends on the
    /// connection, and goes round. (Linux begins anywhere.) Sources keep to their kind: below 512, below 1024, above.
    pub fn settle(&mut self, meta: &Meta, end: End, wanted: Option<&Translation>) -> bool {
        let Some(member) = membership(meta) else { return true };
        let entry = &mut self.entries[member.at as usize];
        entry.settled[end as usize] = true;
        if wanted.is_none() && end == End::Destination {
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

    /// Writes into a packet what its connection says of this end, if that is translated. (An error message comes from whoever
    /// noticed the error: that end of it is its own.)
    pub fn translate(&self, pool: &mut Pool, pkt: &Pkt, end: End) {
        let Some(member) = membership(pool.meta(pkt)) else { return };
        let [began, answer] = self.entries[member.at as usize].tuples;
        let (arrived, seen) = if member.reply { (answer, began.back()) } else { (began, answer.back()) };
        let (before, after) = match end {
            End::Source => ((arrived.source, arrived.sport), (seen.source, seen.sport)),
            End::Destination => ((arrived.destination, arrived.dport), (seen.destination, seen.dport)),
        };
        if before != after {
            let has_ports = Outer::of(pool, pkt).ports.is_some();
            pool.translate(pkt, |head| write(head, end, &after.0, has_ports.then_some(after.1)));
        }
    }
}

/// Changes one end of `seen` to what is wanted, if something of that is free.
fn choose(seen: &mut Tuple, end: End, wanted: &Translation, is_free: impl Fn(&Tuple) -> bool) -> bool {
    if let Some(range) = wanted.addresses {
        let address = pick(range, seen, end);
        match end {
            End::Source => seen.source = address,
            End::Destination => seen.destination = address,
        }
    }
    if !matches!(seen.protocol, proto::TCP | proto::UDP | 33 | 132 | 136) {
        return is_free(seen);
    }
    let had = if end == End::Source { seen.sport } else { seen.dport };
    let (low, high) = match (wanted.ports, end) {
        (Some(range), _) => range,
        // The source's turn comes later.
        (None, End::Destination) => return true,
        (None, End::Source) => match had {
            0..512 => (1, 511),
            512..1024 => (600, 1023),
            _ => (1024, u16::MAX),
        },
    };
    // A port of its own that fits no range of ours (550, say) is kept too.
    let own = wanted.ports.is_none() || (low..=high).contains(&had);
    let count = u32::from(high - low) + 1;
    let start =
        jenkins(&[u32::from(seen.sport), u32::from(seen.dport), hash_of(seen.source), hash_of(seen.destination)], 0);
    let others = (0..count).map(|n| low + (start.wrapping_add(n) % count) as u16);
    for port in own.then_some(had).into_iter().chain(others) {
        match end {
            End::Source => seen.sport = port,
            End::Destination => seen.dport = port,
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
fn pick((low, high): ([u8; 16], [u8; 16]), seen: &Tuple, end: End) -> [u8; 16] {
    let (low, high) = (u128::from_be_bytes(low), u128::from_be_bytes(high));
    let choice = u128::from(hash_of(if end == End::Source { seen.source } else { seen.destination }));
    match (high - low).checked_add(1) {
        Some(count) => low + choice % count,
        None => choice,
    }
    .to_be_bytes()
}

fn write(head: &mut Head, end: End, address: &[u8; 16], port: Option<u16>) {
    let octets = head.network_mut();
    let v6 = octets.first().is_some_and(|octet| octet >> 4 == 6);
    let (at, own, ports) = match v6 {
        true => (8, &address[..], 40),
        false => (12, &address[12..], octets.first().map_or(0, |octet| usize::from(octet & 15) * 4)),
    };
    let shift = |len: usize| if end == End::Destination { len } else { 0 };
    checksum::rewrite(octets, at + shift(own.len()), own);
    if let Some(port) = port {
        checksum::rewrite(octets, ports + shift(2), &port.to_be_bytes());
    }
}
