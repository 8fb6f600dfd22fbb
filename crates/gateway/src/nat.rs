//! The table nat: evaluated for a connection's first packet, applied to all of them.

use crate::firewall::{Firewall, Home};
use core::net::IpAddr;
use tidegate_classify::conntrack::NatSide;
use tidegate_classify::netfilter::{HookDevices, NetfilterVerdict};
use tidegate_packet::header::ethertype;
use tidegate_packet::{Pkt, Pool};
use tidegate_policy::netfilter::{Family, Hook, Translate, Translation, Translator};

/// The address of a device that was given none: of those kept for documents (RFC 5737, RFC 3849).
const UNKNOWN_4: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 192, 0, 2, 1];
const UNKNOWN_6: [u8; 16] = [0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
const LOCALHOST_4: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 127, 0, 0, 1];
const LOCALHOST_6: [u8; 16] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];

/// The first of `addresses` in a family; IPv4 in the last four bytes.
pub(crate) fn first(addresses: &[(IpAddr, u8)], v6: bool) -> Option<[u8; 16]> {
    addresses.iter().find_map(|(address, _)| match address {
        IpAddr::V4(address) if !v6 => {
            let mut bytes = [0; 16];
            bytes[12..].copy_from_slice(&address.octets());
            Some(bytes)
        }
        IpAddr::V6(address) if v6 => Some(address.octets()),
        _ => None,
    })
}

impl Firewall {
    /// What the table nat does at a hook to a packet; false if it is dropped.
    pub(crate) fn nat(
        &mut self,
        hook: Hook,
        place: HookDevices<'_>,
        home: Home<'_>,
        pool: &mut Pool,
        pkt: &Pkt,
    ) -> bool {
        let end = if matches!(hook, Hook::Prerouting | Hook::Output) {
            NatSide::Destination
        } else {
            NatSide::Source
        };
        let family = Family::of(pool.meta(pkt).ethertype == ethertype::IPV6);
        // Without the table nothing is translated here, not even what the action ct settled.
        if !self.tables.iter().any(|t| t.family() == family && t.name() == "nat" && !t.is_free()) {
            return true;
        }
        if self.connections.is_unsettled(pool.meta(pkt), end)
            && !self.settle(hook, end, place, home, pool, pkt)
        {
            return false;
        }
        self.connections.translate(pool, pkt, end);
        true
    }

    fn settle(
        &mut self,
        hook: Hook,
        end: NatSide,
        place: HookDevices<'_>,
        home: Home<'_>,
        pool: &mut Pool,
        pkt: &Pkt,
    ) -> bool {
        let v6 = pool.meta(pkt).ethertype == ethertype::IPV6;
        let Firewall { tables, connections, watch, .. } = self;
        let found =
            tables.iter_mut().find(|t| t.family() == Family::of(v6) && t.name() == "nat" && !t.is_free());
        let Some(table) = found else { return true };
        let Some((_, chain)) = table.at_hook(hook).next() else { return true };
        let wanted = match table.run(chain, place, connections, pool, pkt, watch.as_mut()) {
            NetfilterVerdict::Drop => return false,
            NetfilterVerdict::Accept => None,
            // A chain of the user's may be reached where this end is not open.
            NetfilterVerdict::Translate(how) if how.how.is_source() != (end == NatSide::Source) => None,
            NetfilterVerdict::Translate(how) => Some(fill(how, hook, place, home, v6)),
        };
        connections.settle(pool.meta(pkt), end, wanted.as_ref())
    }
}

/// The address that MASQUERADE and REDIRECT leave to the machine.
fn fill(how: Translate, hook: Hook, place: HookDevices<'_>, home: Home<'_>, v6: bool) -> Translation {
    let unknown = if v6 { UNKNOWN_6 } else { UNKNOWN_4 };
    let address = match how.how {
        Translator::Source | Translator::Destination => return how.to,
        Translator::Masquerade => home(place.output, v6).unwrap_or(unknown),
        Translator::Redirect if hook == Hook::Output && v6 => LOCALHOST_6,
        Translator::Redirect if hook == Hook::Output => LOCALHOST_4,
        Translator::Redirect => home(place.input, v6).unwrap_or(unknown),
    };
    Translation { addresses: Some((address, address)), ..how.to }
}
