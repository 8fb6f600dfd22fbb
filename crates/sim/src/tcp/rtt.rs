//! Round trips and the retransmission timeout: RFC 6298, with the floor of 200 ms under the variance that Linux uses
//! instead of one second under the whole.

use tidegate_packet::Span;

/// Before the first sample (RFC 6298 section 2.1).
const INITIAL: Span = Span::secs(1);
/// The least that the variance adds.
const FLOOR: Span = Span::millis(200);
/// The longest timeout, backed off or not.
pub(crate) const CEILING: Span = Span::secs(120);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rtt {
    /// Smoothed round trip in eighths of ns.
    srtt8: u64,
    /// Mean deviation in quarters of ns.
    var4: u64,
    /// The shortest ever.
    pub(crate) min: Option<Span>,
}

impl Rtt {
    pub(crate) fn sample(&mut self, rtt: Span) {
        self.min = Some(self.min.map_or(rtt, |min| min.min(rtt)));
        if self.srtt8 == 0 {
            self.srtt8 = rtt.0 * 8;
            self.var4 = rtt.0 * 2;
            return;
        }
        let srtt = self.srtt8 / 8;
        let error = rtt.0.abs_diff(srtt);
        self.var4 = self.var4 - self.var4 / 4 + error;
        self.srtt8 = self.srtt8 - srtt + rtt.0;
    }

    pub(crate) fn smoothed(&self) -> Span {
        Span(self.srtt8 / 8)
    }

    /// The timeout, not backed off.
    pub(crate) fn timeout(&self) -> Span {
        if self.srtt8 == 0 {
            return INITIAL;
        }
        Span((self.srtt8 / 8 + self.var4.max(FLOOR.0)).min(CEILING.0))
    }
}
