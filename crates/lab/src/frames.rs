//! The bytes of packets that are in the network, which itself knows their fronts only.

use tidegate_packet::encap;
use tidegate_sim::Arrived;

/// By the slot of each packet, its bytes as they came. A slot's room is used again, so nothing is allocated
/// once the network has been as full as it gets.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    slots: Vec<Vec<u8>>,
}

impl Frames {
    /// Keeps what came.
    pub(crate) fn keep(&mut self, slot: usize, packet: &[u8]) {
        if slot >= self.slots.len() {
            self.slots.resize_with(slot + 1, Vec::new);
        }
        let room = &mut self.slots[slot];
        room.clear();
        room.extend_from_slice(packet);
    }

    /// A copy was made.
    pub(crate) fn copy(&mut self, copy: usize, of: usize) {
        let Some(original) = self.slots.get_mut(of) else { return };
        let bytes = std::mem::take(original);
        self.keep(copy, &bytes);
        self.slots[of] = bytes;
    }

    /// The packet as it was sent.
    pub(crate) fn sent(&self, arrived: &Arrived<'_>) -> &[u8] {
        self.slots.get(arrived.slot).map_or(&[], Vec::as_slice)
    }

    /// The packet as it leaves: its front as the network made it, the rest as it came.
    pub(crate) fn leaving(&mut self, arrived: &Arrived<'_>) -> &[u8] {
        let Some(packet) = self.slots.get_mut(arrived.slot) else { return &[] };
        // A provider's end of PPPoE takes it off; marks are inside it.
        let head = encap::of_pppoe(arrived.head).unwrap_or_else(|| {
            let mut head = arrived.head.clone();
            if head.dsfield() != arrived.dsfield {
                head.set_dsfield(arrived.dsfield);
            }
            head
        });
        let front = head.network().len().min(packet.len());
        packet[..front].copy_from_slice(&head.network()[..front]);
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_packet::{Head, Time, header::ethertype};

    #[test]
    fn what_comes_in_pppoe_leaves_without_it() {
        let packet: Vec<u8> = std::iter::once(0x45).chain(1..60).collect();
        let inner = Head::from_network(ethertype::IPV4, &packet);
        let head = encap::pppoe(&inner, packet.len() as u32);
        let mut frames = Frames::default();
        frames.keep(3, &packet);
        let arrived = Arrived { slot: 3, at: Time(0), owner: 0, head: &head, dsfield: 0 };
        assert_eq!(frames.leaving(&arrived), packet);
    }
}
