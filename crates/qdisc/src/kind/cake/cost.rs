//! What a packet costs on the link: its network layer, what the link adds, and how the link cuts it.

use tidegate_policy::CakeFraming;

/// How the link frames packets, and what was seen of their sizes.
#[derive(Clone, Debug)]
pub(super) struct Framing {
    /// The network layer counts; else frames as the device has them.
    pub(super) layered: bool,
    pub(super) overhead: i32,
    pub(super) mpu: u32,
    pub(super) cut: CakeFraming,
    /// Shortest and longest network layer, and the same of what was charged.
    pub(super) network: (u16, u16),
    pub(super) adjusted: (u16, u16),
    /// Mean bytes in front of the network layer, in 2^-16.
    offset: u32,
}

const UNSEEN: (u16, u16) = (u16::MAX, 0);

impl Default for Framing {
    fn default() -> Framing {
        Framing {
            layered: false,
            overhead: 0,
            mpu: 0,
            cut: CakeFraming::None,
            network: UNSEEN,
            adjusted: UNSEEN,
            offset: 0,
        }
    }
}

impl Framing {
    /// The sizes seen so far mean something else from now on.
    pub(super) fn forget_sizes(&mut self) {
        (self.network, self.adjusted) = (UNSEEN, UNSEEN);
    }

    /// Mean bytes in front of the network layer.
    pub(super) fn header_offset(&self) -> u16 {
        (self.offset.wrapping_add(0x8000) >> 16) as u16
    }

    /// What a packet of `len` bytes costs, `header` bytes of which are the link header.
    #[inline]
    pub(super) fn cost(&mut self, len: u32, header: u32) -> u32 {
        self.offset = self.offset - (self.offset >> 8) + ((header << 16) >> 8);
        let network = if self.layered { len.saturating_sub(header) } else { len };
        see(&mut self.network, network);
        let adjusted = self.cut(network.saturating_add_signed(self.overhead).max(self.mpu));
        see(&mut self.adjusted, adjusted);
        adjusted
    }

    fn cut(&self, len: u32) -> u32 {
        match self.cut {
            CakeFraming::None => len,
            CakeFraming::Atm => len.div_ceil(48) * 53,
            CakeFraming::Ptm => len + len.div_ceil(64),
        }
    }
}

/// Widens what was seen.
#[inline]
fn see((least, most): &mut (u16, u16), len: u32) {
    if u32::from(*most) < len {
        *most = len as u16;
    }
    if u32::from(*least) > len {
        *least = len as u16;
    }
}
