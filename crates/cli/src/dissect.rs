//! `--dissect`: how far the kernel's flow dissector looks into packets.

use tidegate_packet::Dissector;

/// How far the kernel's flow dissector looks into packets for the keys of their flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Dissect {
    /// Through tunnels to the innermost headers, as Linux since 4.2
    #[default]
    Modern,
    /// The outermost header only, as kernels up to 3.2; flow filters then have the keys tunnel-src,
    /// tunnel-dst, tunnel-proto, tunnel-proto-src and tunnel-proto-dst
    Legacy,
}

impl From<Dissect> for Dissector {
    fn from(dissect: Dissect) -> Dissector {
        match dissect {
            Dissect::Modern => Dissector::Modern,
            Dissect::Legacy => Dissector::Legacy,
        }
    }
}
