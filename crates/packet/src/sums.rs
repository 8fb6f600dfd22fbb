//! The checksums in a packet's headers: written, verified, and kept right where a header field changes.
//!
//! Simulated packets come without them: they count as right until bytes are rewritten without updating them,
//! and are filled in just before.

use crate::checksum::{Sum, update_field};
use crate::dissect::transport;
use crate::header::{Head, ethertype, proto};

/// Offset of IPv4's header checksum.
const HEADER_SUM: usize = 10;

/// What follows the network header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// IP protocol number.
    pub protocol: u8,
    /// Where it begins, from the network header on.
    pub at: usize,
    /// Length in bytes, from the network header's length field.
    pub len: usize,
}

impl Transport {
    /// Offset of the protocol's checksum from its first byte; `None`: it has none, or not an Internet
    /// checksum (RFC 1071).
    pub const fn sum_at(&self) -> Option<usize> {
        match self.protocol {
            proto::TCP => Some(16),
            proto::UDP => Some(6),
            proto::ICMP | proto::ICMPV6 | proto::IGMP => Some(2),
            _ => None,
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

impl Head {
    /// What follows the network header; `None` in a later fragment, and where that header is not whole.
    pub fn transport(&self) -> Option<Transport> {
        let network = self.network();
        let (protocol, rest) = transport(self.ethertype(), network)?;
        let at = network.len() - rest.len();
        let end = match self.ethertype() {
            ethertype::IPV4 if word(network, 6)? & 0x1fff != 0 => return None,
            ethertype::IPV4 => usize::from(word(network, 2)?),
            _ => 40 + usize::from(word(network, 4)?),
        };
        Some(Transport { protocol, at, len: end.saturating_sub(at) })
    }

    /// Writes the checksums that the packet should have, if they are not written yet.
    pub fn fill_sums(&mut self) {
        if self.is_summed() {
            return;
        }
        self.set_summed();
        self.sum_header();
        if let Some(transport) = self.transport() {
            self.sum_transport(transport);
        }
    }

    /// Writes the checksum of an IPv4 header.
    pub fn sum_header(&mut self) {
        let Some(right) = self.header_sum() else { return };
        self.put_word(HEADER_SUM, right);
    }

    /// What IPv4's checksum should be.
    fn header_sum(&self) -> Option<u16> {
        if self.ethertype() != ethertype::IPV4 {
            return None;
        }
        let network = self.network();
        let header =
            network.get(..usize::from(network.first()? & 15) * 4).filter(|header| header.len() >= 20)?;
        Some(Sum::default().with(&header[..HEADER_SUM]).with(&header[HEADER_SUM + 2..]).checksum())
    }

    /// Writes the checksum of what follows the network header.
    pub fn sum_transport(&mut self, transport: Transport) {
        if let Some((at, right)) = self.transport_sum(transport) {
            self.put_word(at, right);
        }
    }

    /// Offset of the transport checksum and the value that it should have.
    fn transport_sum(&self, transport: Transport) -> Option<(usize, u16)> {
        let place = transport.at + transport.sum_at()?;
        let network = self.network();
        let end = transport.at + transport.len;
        let bytes = network.get(transport.at..end.min(network.len()))?;
        // The place of the checksum itself does not count.
        let sum = self.pseudo_header(transport).with(bytes).with_word(!word(network, place)?);
        let beyond = if end > network.len() { self.rest() } else { 0 };
        Some(match sum.with_word(beyond).checksum() {
            0 if transport.protocol == proto::UDP => (place, 0xffff),
            right => (place, right),
        })
    }

    /// What a transport's checksum covers of the header before it.
    fn pseudo_header(&self, transport: Transport) -> Sum {
        let network = self.network();
        let sum = Sum::default().with_word(u16::from(transport.protocol)).with_word(transport.len as u16);
        match (self.ethertype(), transport.protocol) {
            (_, proto::ICMP | proto::IGMP) => Sum::default(),
            (ethertype::IPV4, _) => sum.with(network.get(12..20).unwrap_or_default()),
            _ => sum.with(network.get(8..40).unwrap_or_default()),
        }
    }

    /// The total length in an IPv4 header, if a receiver accepts it: the header is whole, its checksum right,
    /// and the packet not shorter.
    pub fn sound_header(&self, network_len: u32) -> Option<u32> {
        let network = self.network();
        let len = word(network, 2).map(u32::from).filter(|len| (20..=network_len).contains(len))?;
        let right = self.header_sum()?;
        (network[0] >> 4 == 4 && word(network, HEADER_SUM) == Some(right)).then_some(len)
    }

    /// Is IPv4's checksum right? Other headers have none.
    pub fn has_right_header(&self) -> bool {
        self.header_sum().is_none_or(|right| word(self.network(), HEADER_SUM) == Some(right))
    }

    /// Is the checksum of what follows the network header right, or left out?
    pub fn has_right_transport(&self) -> bool {
        let Some(transport) = self.transport() else { return true };
        let Some((at, right)) = self.transport_sum(transport) else { return true };
        match word(self.network(), at) {
            Some(0) if transport.protocol == proto::UDP => true,
            stands => stands == Some(right) || right == 0 && stands == Some(0xffff),
        }
    }

    /// Writes bytes into the network header or behind it. `header` and `transport` name the checksums that
    /// cover them; those are updated.
    ///
    /// A UDP checksum that is left out stays so. Where checksums are not written yet there is nothing to do.
    pub fn replace(&mut self, at: usize, new: &[u8], header: bool, transport: Option<Transport>) {
        let mut old = [0; 16];
        let Some(old) = old.get_mut(..new.len()) else { return };
        let Some(place) = self.network_mut().get_mut(at..at + new.len()) else { return };
        old.copy_from_slice(place);
        place.copy_from_slice(new);
        if !self.is_summed() {
            return;
        }
        if header {
            update_field(self.network_mut(), HEADER_SUM, old, new, false);
        }
        if let Some((transport, sum_at)) = transport.and_then(|it| Some((it, it.at + it.sum_at()?))) {
            update_field(self.network_mut(), sum_at, old, new, transport.protocol == proto::UDP);
        }
    }

    /// A router takes one from the hops that are left; false: this was the last.
    pub fn hop(&mut self) -> bool {
        let (at, header) = match self.ethertype() {
            ethertype::IPV4 => (8, true),
            ethertype::IPV6 => (7, false),
            _ => return true,
        };
        let Some(left) = self.network().get(at).copied() else { return true };
        self.replace(at, &[left.saturating_sub(1)], header, None);
        left > 1
    }

    fn put_word(&mut self, at: usize, value: u16) {
        if let Some(place) = self.network_mut().get_mut(at..at + 2) {
            place.copy_from_slice(&value.to_be_bytes());
        }
    }
}
