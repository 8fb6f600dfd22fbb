//! What a frame becomes on the wire.

/// How a line carries frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cells {
    /// As they are.
    #[default]
    None,
    /// In ATM cells: 48 bytes carried by each 53, the last one filled up (ITU-T I.361, AAL5).
    Atm,
    /// In PTM's 64/65-byte coding: one byte more for every 64 (IEEE 802.3 clause 61.3, as on VDSL2).
    Ptm,
}

/// What a link adds to each frame before its length counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkFraming {
    /// Bytes added to each frame (negative: the Ethernet header is not sent, say).
    pub overhead: i32,
    /// The shortest unit sent, in bytes.
    pub minimum: u32,
    /// How the line carries it.
    pub cells: Cells,
}

impl LinkFraming {
    /// Bytes on the wire for a frame of `len`.
    pub fn wire_len(&self, len: u32) -> u32 {
        let len = len.saturating_add_signed(self.overhead).max(self.minimum);
        match self.cells {
            Cells::None => len,
            Cells::Atm => len.div_ceil(48) * 53,
            Cells::Ptm => len + len.div_ceil(64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_on_the_wire() {
        // Ethernet counts its preamble, check sum and gap (24); ADSL with PPPoE over LLC: 8 + 10 + 8 - as
        // ATM; VDSL2: PPPoE, check sum.
        let ethernet = LinkFraming { overhead: 24, minimum: 84, cells: Cells::None };
        let atm = LinkFraming { overhead: 10 + 8, minimum: 0, cells: Cells::Atm };
        let ptm = LinkFraming { overhead: 8 + 4, minimum: 0, cells: Cells::Ptm };
        let rows = [54, 114, 1514].map(|len| [ethernet, atm, ptm].map(|framing| framing.wire_len(len)));
        assert_eq!(rows, [[84, 106, 68], [138, 159, 128], [1538, 32 * 53, 1526 + 24]]);
    }
}
