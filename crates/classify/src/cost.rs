//! From bytes to time.

use tidegate_policy::{LinkLayer, RateSpec};

/// What a packet costs at a rate: bytes to nanoseconds by one multiplication and one shift, as Linux prepares
/// it.
///
/// Truncation never makes a packet dearer, so a saturated shaper runs fast by at most one nanosecond per
/// packet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    spec: RateSpec,
    price: Price,
}

/// The part of a [`Cost`] that every packet needs: small, for tables of thousands of classes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Price {
    mult: u32,
    overhead: u16,
    mpu: u16,
    shift: u8,
    cells: bool,
}

impl Cost {
    /// Prepares for a rate. A rate of 0 makes everything free: callers refuse it beforehand.
    pub fn new(spec: RateSpec) -> Cost {
        let cells = spec.linklayer == LinkLayer::Atm;
        let mut price = Price { mult: 1, shift: 0, overhead: spec.overhead, mpu: spec.mpu, cells };
        let rate = spec.rate.0;
        if rate == 0 {
            return Cost { spec, price };
        }
        let mut factor = 1_000_000_000_u64;
        loop {
            price.mult = (factor / rate) as u32;
            if price.mult & 1 << 31 != 0 || factor & 1 << 63 != 0 {
                return Cost { spec, price };
            }
            factor <<= 1;
            price.shift += 1;
        }
    }

    /// The rate and framing it was made from.
    pub fn spec(&self) -> RateSpec {
        self.spec
    }

    /// What every packet needs of it.
    pub fn price(&self) -> Price {
        self.price
    }

    /// Nanoseconds that `len` bytes take, overhead, least size and cells included.
    #[inline]
    pub fn ns(&self, len: u32) -> u64 {
        self.price.ns(len)
    }
}

impl Price {
    /// Do bytes alone count, however they are divided into packets? Then packets together never cost more
    /// than one of all their bytes.
    #[inline]
    pub fn is_plain(&self) -> bool {
        self.overhead == 0 && self.mpu == 0 && !self.cells
    }

    /// Nanoseconds that `len` bytes take where bytes alone count ([`Price::is_plain`]).
    #[inline]
    pub fn plain_ns(&self, len: u32) -> u64 {
        (u64::from(len) * u64::from(self.mult)) >> self.shift
    }

    /// Nanoseconds that `len` bytes take, overhead, least size and cells included.
    #[inline]
    pub fn ns(&self, len: u32) -> u64 {
        let mut len = u64::from(len) + u64::from(self.overhead);
        len = len.max(u64::from(self.mpu));
        if self.cells {
            len = len.div_ceil(48) * 53;
        }
        (len * u64::from(self.mult)) >> self.shift
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use tidegate_packet::Rate;

    #[test]
    fn length_to_time_as_the_reference_computes_it() {
        let rates =
            [64_000u64, 127_000, 200_000, 780_000, 1_000_000, 6_200_000, 1_000_000_000, 10_000_000_000];
        let table: Vec<(u32, u8, u64, u64, u64)> = rates
            .iter()
            .map(|&bits| {
                let plain = Cost::new(RateSpec { rate: Rate::bits(bits), ..RateSpec::default() });
                let atm = Cost::new(RateSpec {
                    rate: Rate::bits(bits),
                    overhead: 40,
                    mpu: 0,
                    linklayer: LinkLayer::Atm,
                });
                (plain.price.mult, plain.price.shift, plain.ns(64), plain.ns(1514), atm.ns(1500))
            })
            .collect();
        assert_eq!(
            table,
            [
                (4096000000, 15, 8_000_000, 189_250_000, 218_625_000),
                (4128251968, 16, 4_031_496, 95_370_078, 110_173_228),
                (2621440000, 16, 2_560_000, 60_560_000, 69_960_000),
                (2688656410, 18, 656_410, 15_528_205, 17_938_461),
                (4194304000, 19, 512_000, 12_112_000, 13_992_000),
                (2706002580, 21, 82_580, 1_953_548, 2_256_774),
                (2147483648, 28, 512, 12_112, 13_992),
                (3435973836, 32, 51, 1_211, 1_399),
            ]
        );
    }
}
