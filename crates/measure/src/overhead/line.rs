//! What a sweep of packet sizes measures, and what it shows of a line.

use super::coding::Coding;

/// What was measured of a packet size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Size {
    /// Bytes of the IP packet.
    pub ip: u32,
    /// What each takes on the line, ns.
    pub ns: f64,
    /// The standard error of that, as a share.
    pub error: f64,
}

impl Size {
    /// From packets that arrived in a second.
    pub fn of_rate(ip: u32, packets_per_second: f64) -> Size {
        Size { ip, ns: 1e9 / packets_per_second.max(1e-9), error: 0.0 }
    }
}

/// No packet takes less time than this.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Floor {
    /// As a limit of packets.
    pub packets_per_second: f64,
    /// As the smallest unit, in bytes, overhead included.
    pub bytes: f64,
    /// It is so short that it will be a smallest unit; the two cannot be distinguished otherwise.
    pub is_unit: bool,
}

/// What a sweep shows of a line.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LineEstimate {
    /// Bytes added to each IP packet.
    pub overhead: u32,
    /// Overheads that explain the sweep, with 95 % confidence.
    pub between: (u32, u32),
    /// How it codes.
    pub coding: Coding,
    /// Bits per second on the wire.
    pub bits_per_second: f64,
    /// Rates that explain the sweep, with 95 % confidence.
    pub rate_between: (f64, f64),
    /// What no packet undercuts, if sizes of the sweep met that.
    pub floor: Option<Floor>,
    /// Another coding that explains it nearly as well, with its overhead.
    pub rival: Option<(Coding, u32)>,
    /// Mean of the relative errors of the times that this explains, 0 to 1.
    pub error: f64,
    /// Sizes it was taken from.
    pub sizes: usize,
}

impl LineEstimate {
    /// Bytes on the wire for an IP packet of so many.
    pub fn on_wire(&self, ip: u32) -> u32 {
        let unit =
            self.floor.filter(|floor| floor.is_unit).map_or(0, |floor| libm::round(floor.bytes) as u32);
        self.coding.on_wire((ip + self.overhead).max(unit))
    }

    /// The limit of packets per second, if that is what the smallest sizes met.
    pub fn packets_per_second(&self) -> Option<f64> {
        self.floor.filter(|floor| !floor.is_unit).map(|floor| floor.packets_per_second)
    }
}
