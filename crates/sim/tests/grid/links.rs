//! Links of known truth.

use tidegate_gateway::{DeviceSpec, Gateway};
use tidegate_packet::{Nanos, Pool, Seeded, Time};
use tidegate_sim::path::{OneWay, PathSpec, VirtualPath};
use tidegate_sim::world::CableDirection;
use tidegate_sim::{Cells, Limit, LinkFraming};
use tidegate_syntax::Env;
use tidegate_syntax::tc::{self, TcCommand};

/// Bytes of the header that framing counts beside.
pub(crate) const ETHERNET: u32 = 14;

/// A line, with an overhead over IP.
pub(crate) fn line(bits: u64, delay: Nanos, overhead: u32, cells: Cells) -> CableDirection {
    let framing = LinkFraming { overhead: overhead as i32 - ETHERNET as i32, minimum: 0, cells };
    let limit = Limit::Bytes((bits / 40).clamp(32_000, 1_000_000));
    CableDirection { framing, limit, ..CableDirection::plain(bits, delay) }
}

/// Both directions alike.
pub(crate) fn alike(line: CableDirection) -> PathSpec {
    PathSpec { up: OneWay::plain(line), down: OneWay::plain(line), ..PathSpec::plain(line, line) }
}

/// A machine configured by these commands: eth1 on this side, eth0 on the line's side.
pub(crate) fn machine(commands: &[&str]) -> Option<(Gateway, [tidegate_gateway::DeviceId; 2])> {
    let mut gateway = Gateway::new();
    let devices = ["eth1", "eth0"].map(|name| gateway.add_device(name, DeviceSpec::default()));
    let (mut pool, mut random) = (Pool::new(0), Seeded::new(1));
    for command in commands {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        let parsed =
            tc::parse(&words, &Env::default()).unwrap_or_else(|refusal| panic!("{command}: {refusal:?}"));
        let TcCommand::Apply(op) = parsed.command else { panic!("{command} changes something") };
        let world = tidegate_gateway::GatewayContext { now: Time(0), pool: &mut pool, random: &mut random };
        gateway.apply(world, &op).unwrap_or_else(|error| panic!("{command}: {error:?}"));
    }
    Some((gateway, devices))
}

/// Ready to be measured.
pub(crate) fn path(spec: PathSpec) -> VirtualPath {
    VirtualPath::new(spec)
}
