//! What is sent along a path to measure it, and the outcome of each packet.
//!
//! An estimator describes what to send in each direction (an [`Exchange`]), has a [`Path`] carry it out, and
//! reads the [`ExchangeResult`]. The path may be real, or a simulated link whose truth is known: the
//! estimator cannot distinguish them.

use alloc::string::String;
use alloc::vec::Vec;

/// Packets alike, one after the other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketTrain {
    /// Bytes of UDP payload of each: [`PacketTrain::LEAST`] to [`PacketTrain::MOST`].
    pub payload: u16,
    /// From one to the next, ns.
    pub gap_ns: u64,
    /// How many.
    pub packets: u32,
    /// The code point of the DS field they are sent with, 0 to 63.
    pub dscp: u8,
    /// The ECN field they are sent with: 0 (none), 1 (ECT(1), L4S) or 2 (ECT(0)).
    pub ecn: u8,
    /// Silence after the last, ns, for queues to empty.
    pub rest_ns: u64,
}

impl PacketTrain {
    /// The least payload in bytes: what a packet needs to carry its number.
    pub const LEAST: u16 = 24;
    /// The largest payload: what an Ethernet frame takes over IPv6 without fragments.
    pub const MOST: u16 = 1452;

    /// Packets with this payload at so many bits per second of payload, for about so long; at least one.
    pub fn at_rate(payload: u16, bits_per_second: f64, length_ns: u64) -> PacketTrain {
        let gap_ns = ((f64::from(payload) * 8e9 / bits_per_second.max(1.0)) as u64).max(1);
        let packets = u32::try_from(length_ns / gap_ns).unwrap_or(u32::MAX).max(1);
        PacketTrain { payload, gap_ns, packets, ..PacketTrain::default() }
    }

    /// From its first packet to the first of the next phase, ns.
    pub fn length_ns(&self) -> u64 {
        self.gap_ns.saturating_mul(u64::from(self.packets)).saturating_add(self.rest_ns)
    }
}

/// What is sent in one direction: phases, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// In their order.
    pub phases: Vec<PacketTrain>,
}

/// A packet of a stream that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// Its number in the stream, from 0.
    pub number: u32,
    /// The phase that it belongs to.
    pub phase: usize,
    /// When, ns from the stream's beginning.
    pub at_ns: u64,
    /// Bytes of payload.
    pub payload: u16,
    /// The DS field's code point.
    pub dscp: u8,
    /// The ECN field.
    pub ecn: u8,
}

impl Due {
    /// The byte of the IP header that holds code point and ECN.
    pub fn ds_field(&self) -> u8 {
        self.dscp << 2 | self.ecn & 3
    }
}

impl Stream {
    /// A stream of one phase.
    pub fn steady(phase: PacketTrain) -> Stream {
        Stream { phases: [phase].into() }
    }

    /// How many packets it has.
    pub fn packets(&self) -> u64 {
        self.phases.iter().map(|phase| u64::from(phase.packets)).sum()
    }

    /// Payload bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.phases.iter().map(|phase| u64::from(phase.packets) * u64::from(phase.payload)).sum()
    }

    /// From its first packet to the end of its last silence, ns.
    pub fn length_ns(&self) -> u64 {
        self.phases.iter().fold(0, |sum, phase| sum.saturating_add(phase.length_ns()))
    }

    /// Its packets, in the order in which they are due.
    pub fn dues(&self) -> impl Iterator<Item = Due> + '_ {
        let mut begins = 0u64;
        let begun = self.phases.iter().enumerate().map(move |(place, phase)| {
            let began = begins;
            begins = begins.saturating_add(phase.length_ns());
            (place, phase, began)
        });
        let all = begun.flat_map(|(place, phase, began)| {
            let due =
                move |n: u32| (place, phase, began.saturating_add(phase.gap_ns.saturating_mul(u64::from(n))));
            (0..phase.packets).map(due)
        });
        all.zip(0..).map(|((phase, sent, at_ns), number)| Due {
            number,
            phase,
            at_ns,
            payload: sent.payload,
            dscp: sent.dscp,
            ecn: sent.ecn,
        })
    }
}

/// What happened to a packet. The two clocks have nothing in common but that each goes about as fast as time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketRecord {
    /// When it was sent, by the sender's clock, ns; `None`: it never was (the test was cut, or its socket had
    /// no space).
    pub sent: Option<u64>,
    /// When it arrived, by the receiver's clock, ns; the first of several duplicates. `None`: it did not.
    pub arrived: Option<u64>,
    /// How many packets of the stream had arrived before it: reordering shows here.
    pub rank: u32,
    /// How many more duplicates of it arrived.
    pub duplicates: u16,
    /// The DS field it arrived with, all eight bits, if that was seen.
    pub ds: Option<u8>,
}

/// The outcome of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamTrace {
    /// What was to be sent.
    pub stream: Stream,
    /// The outcome of each packet, by number.
    pub packets: Vec<PacketRecord>,
}

impl StreamTrace {
    /// The packets of a phase with the outcome of them.
    pub fn of_phase(&self, phase: usize) -> impl Iterator<Item = (Due, &PacketRecord)> {
        self.stream.dues().zip(&self.packets).filter(move |(due, _)| due.phase == phase)
    }

    /// Packets that were sent.
    pub fn sent(&self) -> u64 {
        self.packets.iter().filter(|packet| packet.sent.is_some()).count() as u64
    }

    /// Packets that arrived.
    pub fn arrived(&self) -> u64 {
        self.packets.iter().filter(|packet| packet.arrived.is_some()).count() as u64
    }
}

/// What is to be sent in each direction at the same time; an empty stream is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// From here to the remote end.
    pub up: Stream,
    /// From the remote end to here.
    pub down: Stream,
}

/// The result of an exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExchangeResult {
    /// From here to the remote end.
    pub up: StreamTrace,
    /// From the remote end to here.
    pub down: StreamTrace,
    /// Why it is not the whole, as text for people (the remote end is gone, a clock was set); empty: it is.
    pub cut: Option<String>,
    /// Whether the remote end reported all that it sent and received: only then was lost what did not arrive.
    pub is_reported: bool,
}

/// A way to a remote end that sends and receives.
pub trait Path {
    /// Why an exchange has no result.
    type Error;
    /// Carries out an exchange and waits for what is still on its way.
    ///
    /// # Errors
    /// There is no result. An exchange that was cut off in the middle is a result.
    fn carry_out(&mut self, exchange: &Exchange) -> Result<ExchangeResult, Self::Error>;
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn packets_are_due_phase_by_phase() {
        let first = PacketTrain { payload: 100, gap_ns: 10, packets: 2, dscp: 46, ecn: 1, rest_ns: 5 };
        let second = PacketTrain { payload: 200, gap_ns: 20, packets: 2, dscp: 0, ecn: 0, rest_ns: 0 };
        let stream = Stream { phases: vec![first, second] };
        let dues: Vec<_> =
            stream.dues().map(|due| (due.number, due.phase, due.at_ns, due.payload, due.dscp)).collect();
        assert_eq!(dues, [(0, 0, 0, 100, 46), (1, 0, 10, 100, 46), (2, 1, 25, 200, 0), (3, 1, 45, 200, 0)]);
        assert_eq!((stream.packets(), stream.bytes(), stream.length_ns()), (4, 600, 65));
    }

    #[test]
    fn a_rate_becomes_a_gap() {
        let phase = PacketTrain::at_rate(1250, 10e6, 1_000_000_000);
        assert_eq!((phase.gap_ns, phase.packets, phase.length_ns()), (1_000_000, 1000, 1_000_000_000));
        assert_eq!(PacketTrain::at_rate(1250, 10e6, 0).packets, 1);
    }
}
