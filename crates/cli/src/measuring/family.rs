//! Which of a host's addresses are taken.

use tidegate_prober::AddressFamily;

/// `-4`, `-6`.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct FamilyOptions {
    /// Use IPv4 only
    #[arg(short = '4', long = "ipv4", conflicts_with = "ipv6")]
    pub ipv4: bool,
    /// Use IPv6 only
    #[arg(short = '6', long = "ipv6")]
    pub ipv6: bool,
}

impl FamilyOptions {
    /// The address family that was chosen.
    pub fn family(self) -> AddressFamily {
        match (self.ipv4, self.ipv6) {
            (true, _) => AddressFamily::V4,
            (_, true) => AddressFamily::V6,
            _ => AddressFamily::Any,
        }
    }
}
