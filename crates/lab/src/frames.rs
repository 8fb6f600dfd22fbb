//! The octets of packets that are in the network, which itself knows their fronts only.

use tidegate_sim::Arrived;

/// By the slot of each packet, its octets as they came. A slot's room is used again, so nothing is allocated once the network has been as
/// full as it gets.
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
        let octets = std::mem::take(original);
        self.keep(copy, &octets);
        self.slots[of] = octets;
    }

    /// The packet as it leaves: its front as the network made it, the rest as it came.
    pub(crate) fn leaving(&mut self, arrived: &Arrived<'_>) -> &[u8] {
        let Some(packet) = self.slots.get_mut(arrived.slot) else { return &[] };
        let mut head = arrived.head.clone();
        if head.dsfield() != arrived.dsfield {
            head.set_dsfield(arrived.dsfield);
        }
        let front = head.network().len().min(packet.len());
        packet[..front].copy_from_slice(&head.network()[..front]);
        packet
    }
}
