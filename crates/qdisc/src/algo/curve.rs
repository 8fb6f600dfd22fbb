//! Service curves of two straight pieces (Stoica, Zhang and Ng, SIGCOMM 1997), in Linux's fixed point.
//!
//! Time runs in ticks of 64 ns, service in bytes. A slope is kept twice, as bytes per tick and as ticks per
//! byte, both rounded up, so that going one way and back drops what Linux drops. Sums wrap: a piece of slope
//! 0 never brings a byte, and its "never" is a number.

use tidegate_policy::ServiceCurve;

/// Ticks in a second.
const TICKS: u64 = 15_625_000;
const MICROS: u64 = 1_000_000;
/// Binary places of bytes per tick, and of ticks per byte.
const BYTE_PLACES: u32 = 24;
const TICK_PLACES: u32 = 14;
/// Ticks that never pass.
const NEVER: u64 = u64::MAX;

/// How fast service comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slope {
    /// Bytes per tick, 24 binary places.
    bytes: u64,
    /// Ticks per byte, 14 binary places; [`NEVER`] for a slope of 0.
    ticks: u64,
}

impl Slope {
    fn new(bytes_per_second: u32) -> Slope {
        let rate = u64::from(bytes_per_second);
        let ticks = if rate == 0 { NEVER } else { (TICKS << TICK_PLACES).div_ceil(rate) };
        Slope { bytes: (rate << BYTE_PLACES).div_ceil(TICKS), ticks }
    }

    /// The slope in bytes per second, as a dump shows it.
    fn bytes_per_second(self) -> u32 {
        ((self.bytes * TICKS) >> BYTE_PLACES) as u32
    }

    /// Bytes that come in so many ticks.
    fn bytes_in(self, ticks: u64) -> u64 {
        scaled(ticks, self.bytes, BYTE_PLACES)
    }

    /// Ticks in which this many bytes come.
    fn ticks_for(self, bytes: u64) -> u64 {
        match (bytes, self.ticks) {
            (0, _) => 0,
            (_, NEVER) => NEVER,
            (bytes, ticks) => scaled(bytes, ticks, TICK_PLACES),
        }
    }
}

/// `x` times a factor with binary places, the whole and the broken part each on its own.
fn scaled(x: u64, factor: u64, places: u32) -> u64 {
    let rest = x & ((1 << places) - 1);
    (x >> places).wrapping_mul(factor).wrapping_add(rest.wrapping_mul(factor) >> places)
}

/// What was requested: a curve through the origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    first: Slope,
    second: Slope,
    /// Ticks that the first piece lasts, and bytes that come in them.
    span: u64,
    rise: u64,
}

impl Shape {
    /// Prepares a curve.
    pub fn new(curve: &ServiceCurve) -> Shape {
        let first = Slope::new(curve.m1);
        let span = (u64::from(curve.d_us) * TICKS).div_ceil(MICROS);
        Shape { first, second: Slope::new(curve.m2), span, rise: first.bytes_in(span) }
    }

    /// The curve as a dump shows it.
    pub fn curve(&self) -> ServiceCurve {
        let d_us = (self.span.wrapping_mul(MICROS) / TICKS) as u32;
        ServiceCurve { m1: self.first.bytes_per_second(), d_us, m2: self.second.bytes_per_second() }
    }

    /// Does service come ever faster, or always as fast?
    pub fn is_convex(&self) -> bool {
        self.first.bytes <= self.second.bytes
    }
}

/// A curve that begins at a class's state: at tick `x` it had `y` bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Curve {
    x: u64,
    y: u64,
    shape: Shape,
}

impl Curve {
    /// A shape that begins at `x` with `y` bytes done.
    pub fn from(shape: &Shape, x: u64, y: u64) -> Curve {
        Curve { x, y, shape: *shape }
    }

    /// The curve without its first piece: the straight line of the second slope.
    pub fn straight(self) -> Curve {
        Curve { shape: Shape { span: 0, rise: 0, ..self.shape }, ..self }
    }

    /// When this many bytes are done.
    pub fn time_of(&self, y: u64) -> u64 {
        let Shape { first, second, span, rise } = self.shape;
        if y < self.y {
            return self.x;
        }
        let bytes = y - self.y;
        if bytes > rise {
            return self.x.wrapping_add(span).wrapping_add(second.ticks_for(bytes - rise));
        }
        // On a flat first piece nothing is done before its end.
        self.x.wrapping_add(if rise == 0 { span } else { first.ticks_for(bytes) })
    }

    /// How many bytes are done by tick `x`.
    pub fn done_by(&self, x: u64) -> u64 {
        let Shape { first, second, span, rise } = self.shape;
        if x <= self.x {
            return self.y;
        }
        let ticks = x - self.x;
        if ticks <= span {
            return self.y.wrapping_add(first.bytes_in(ticks));
        }
        self.y.wrapping_add(rise).wrapping_add(second.bytes_in(ticks - span))
    }

    /// Becomes the lesser of itself and `shape` begun at `x` with `y` bytes done: what a class may claim
    /// after an idle time, by the paper's equations (7) and (12). Both have the same slopes, so the result
    /// has two pieces again.
    pub fn at_most(&mut self, shape: &Shape, x: u64, y: u64) {
        let done = self.done_by(x);
        if shape.is_convex() {
            if done >= y {
                (self.x, self.y) = (x, y);
            }
            return;
        }
        if done <= y {
            return;
        }
        if self.done_by(x.wrapping_add(shape.span)) >= y.wrapping_add(shape.rise) {
            *self = Curve::from(shape, x, y);
            return;
        }
        // They meet where the new one's first piece has made up what the old one is ahead.
        let mut span = ((done - y) << BYTE_PLACES) / (shape.first.bytes - shape.second.bytes);
        let bend = self.x.wrapping_add(self.shape.span);
        if bend > x {
            span = span.wrapping_add(bend - x);
        }
        let rise = shape.first.bytes_in(span);
        *self = Curve { x, y, shape: Shape { span, rise, ..*shape } };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use tidegate_packet::Rate;

    fn line(bits: u64) -> Shape {
        Shape::new(&ServiceCurve { m1: 0, d_us: 0, m2: Rate::bits(bits).0 as u32 })
    }

    /// V-A4: the conversions of the reference.
    #[test]
    fn v_a4_slopes_and_spans() {
        let slopes: Vec<(u64, u64)> = [1_000_000, 10_000_000, 64_000]
            .iter()
            .map(|bits| line(*bits).second)
            .map(|s| (s.bytes, s.ticks))
            .collect();
        assert_eq!(slopes, [(134_218, 2_048_000), (1_342_178, 204_800), (8_590, 32_000_000)]);
        // 1500 bytes at 1 Mbit/s take 12 ms; a span of 10 ms has 156,250 ticks and comes back as it was.
        assert_eq!(Curve::from(&line(1_000_000), 0, 0).time_of(1500), 187_500);
        let shape = Shape::new(&ServiceCurve { m1: 250_000, d_us: 10_000, m2: 12_500 });
        assert_eq!((shape.span, shape.rise), (156_250, 2500));
        assert_eq!(shape.curve(), ServiceCurve { m1: 250_000, d_us: 10_000, m2: 12_500 });
    }

    #[test]
    fn a_flat_first_piece_brings_nothing_before_its_end() {
        let late = Curve::from(&Shape::new(&ServiceCurve { m1: 0, d_us: 1000, m2: 125_000 }), 100, 7);
        let ends = 100 + 15_625;
        assert_eq!([late.time_of(6), late.time_of(7), late.time_of(8)], [100, ends, ends + 125]);
        assert_eq!([late.done_by(50), late.done_by(ends), late.done_by(ends + 126)], [7, 7, 8]);
    }

    #[test]
    fn after_an_idle_time_the_lesser_curve_applies() {
        // Concave: 1000 bytes fast, then slow. Long idle: the old curve is far above, the burst is granted
        // again.
        let shape = Shape::new(&ServiceCurve { m1: 1_000_000, d_us: 1000, m2: 1000 });
        let old = Curve::from(&shape, 0, 0);
        let mut fresh = old;
        fresh.at_most(&shape, 20 * TICKS, 1000);
        assert_eq!(fresh, Curve::from(&shape, 20 * TICKS, 1000));
        // No idle time: the old one holds.
        let mut kept = old;
        kept.at_most(&shape, 10, 1000);
        assert_eq!(kept, old);
        // In between: the new first piece until it meets the old second one.
        let mut met = old;
        met.at_most(&shape, TICKS / 2, 1000);
        assert_eq!(met.done_by(TICKS / 2), 1000);
        for ms in 501..600 {
            let (x, least) = (ms * TICKS / 1000, old.done_by(ms * TICKS / 1000));
            assert!(
                met.done_by(x).abs_diff(least.min(Curve::from(&shape, TICKS / 2, 1000).done_by(x))) <= 1,
                "{ms}"
            );
        }
    }

    /// A class that comes back while its old curve is still on its first piece: the lesser of both all along,
    /// before the old one's bend and behind it.
    #[test]
    fn before_the_bend_the_lesser_curve_applies_too() {
        let shape = Shape::new(&ServiceCurve { m1: 1_000_000, d_us: 1000, m2: 1000 });
        let old = Curve::from(&shape, 0, 0);
        let (x, y) = (TICKS / 2000, 100);
        let (mut met, fresh) = (old, Curve::from(&shape, x, y));
        met.at_most(&shape, x, y);
        for at in (0..200).map(|n| x + n * TICKS / 10_000) {
            let least = old.done_by(at).min(fresh.done_by(at));
            assert!(met.done_by(at).abs_diff(least) <= 2, "{at}: {} and {least}", met.done_by(at));
        }
    }
}
