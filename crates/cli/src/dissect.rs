//! `--dissect`: how far the machine's kernel looks into packets.

use tidegate_packet::Dissector;

/// How far the machine's kernel looks into packets for the keys of their flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Dissect {
    /// Through tunnels to the innermost headers, as Linux does since 4.2.
    #[default]
    Modern,
    /// The outermost header only, as kernels up to 3.2 did; flow filters have the keys tunnel-src,
    /// tunnel-dst, tunnel-proto, tunnel-proto-src and tunnel-proto-dst then.
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
