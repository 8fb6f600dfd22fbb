//! `--linux`, `--tc` and `--dissect`: the kernel and the tc that a policy is for.

use std::fmt;
use tidegate_packet::{Dissector, KernelModel, LinuxVersion};
use tidegate_syntax::TcVersion;

/// The kernel and the tc that a policy is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct KernelOptions {
    /// The release of Linux whose behaviour is shown, 6.1 to 7.2, or `host`: the running one
    #[arg(long, value_name = "RELEASE", value_parser = release, default_value_t)]
    pub linux: LinuxVersion,
    /// The release of tc whose arithmetic and words are used: 6.1 or 7.2
    #[arg(long, value_name = "RELEASE", value_parser = tc_release, default_value_t)]
    pub tc: TcVersion,
    #[command(flatten)]
    dissect: DissectOption,
}

/// The kernel or the two kernels that a policy is checked for, and the tc or the two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
pub struct ComparedKernels {
    /// The release of Linux that the policy is for, 6.1 to 7.2, or `host`: the running one; two such as
    /// `6.1..7.2`: also what changes between them
    #[arg(long, value_name = "RELEASE[..RELEASE]", value_parser = releases, default_value_t)]
    linux: Releases<LinuxVersion>,
    /// The release of tc whose arithmetic and words are used, 6.1 or 7.2; `6.1..7.2`: also what changes
    /// between them
    #[arg(long, value_name = "RELEASE[..RELEASE]", value_parser = tc_releases, default_value_t)]
    tc: Releases<TcVersion>,
    #[command(flatten)]
    dissect: DissectOption,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::Args)]
struct DissectOption {
    /// How far the kernel's flow dissector looks into packets
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    dissect: Dissect,
}

/// How far the kernel's flow dissector looks into packets for the keys of their flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum Dissect {
    /// Through tunnels to the innermost headers, as Linux since 4.2
    #[default]
    Modern,
    /// The outermost header only, as kernels up to 3.2; flow filters then have the keys tunnel-src,
    /// tunnel-dst, tunnel-proto, tunnel-proto-src and tunnel-proto-dst
    Legacy,
}

impl From<DissectOption> for Dissector {
    fn from(DissectOption { dissect }: DissectOption) -> Dissector {
        match dissect {
            Dissect::Modern => Dissector::Modern,
            Dissect::Legacy => Dissector::Legacy,
        }
    }
}

impl From<KernelOptions> for KernelModel {
    fn from(KernelOptions { linux, dissect, .. }: KernelOptions) -> KernelModel {
        KernelModel { linux, dissector: dissect.into() }
    }
}

impl ComparedKernels {
    /// The kernel that the policy is for.
    pub(crate) fn kernel(self) -> KernelModel {
        KernelModel { linux: self.linux.from, dissector: self.dissect.into() }
    }

    /// The later release that it is compared with.
    pub(crate) fn until(self) -> Option<LinuxVersion> {
        self.linux.until
    }

    /// The tc that the policy is for.
    pub(crate) fn tc(self) -> TcVersion {
        self.tc.from
    }

    /// The later tc that it is compared with.
    pub(crate) fn tc_until(self) -> Option<TcVersion> {
        self.tc.until
    }
}

/// A release, or two to compare.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Releases<V> {
    from: V,
    until: Option<V>,
}

impl<V: fmt::Display> fmt::Display for Releases<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.until {
            Some(until) => write!(f, "{}..{until}", self.from),
            None => write!(f, "{}", self.from),
        }
    }
}

impl<V: Copy + Ord> Releases<V> {
    fn parse(text: &str, release: fn(&str) -> Result<V, String>) -> Result<Releases<V>, String> {
        let parts: Vec<&str> = text.split("..").collect();
        match parts.as_slice() {
            [only] => Ok(Releases { from: release(only)?, until: None }),
            [from, until] if from.is_empty() || until.is_empty() => {
                Err("give both releases: 6.1..7.2".to_owned())
            }
            [from, until] => {
                let (from, until) = (release(from)?, release(until)?);
                if until <= from {
                    return Err("give two releases, the earlier first".to_owned());
                }
                Ok(Releases { from, until: Some(until) })
            }
            _ => Err("two releases at most: 6.1..7.2".to_owned()),
        }
    }
}

fn releases(text: &str) -> Result<Releases<LinuxVersion>, String> {
    Releases::parse(text, release)
}

fn tc_releases(text: &str) -> Result<Releases<TcVersion>, String> {
    Releases::parse(text, tc_release)
}

/// A release of tc by its numbers.
fn tc_release(text: &str) -> Result<TcVersion, String> {
    text.parse().map_err(|error| format!("{error}"))
}

/// A release by its numbers, or the running one.
fn release(text: &str) -> Result<LinuxVersion, String> {
    if text != "host" {
        return text.parse().map_err(|error| format!("{error}"));
    }
    let running = std::fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_err(|error| format!("/proc/sys/kernel/osrelease: {error}"))?;
    running
        .parse()
        .map_err(|error| format!("this machine runs Linux {}: {error}", tidegate_text::line(running.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_release_or_two_in_order() {
        let parsed = releases;
        assert_eq!(parsed("6.1"), Ok(Releases::default()));
        let between = LinuxVersion::Between { major: 6, minor: 12 };
        assert_eq!(parsed("6.12..7.2"), Ok(Releases { from: between, until: Some(LinuxVersion::V7_2) }));
        for text in ["6.1..7.2", "7.2"] {
            assert_eq!(parsed(text).map(|two| two.to_string()), Ok(text.to_owned()));
        }
        for text in ["7.2..6.1", "6.1..6.1", "6.1..", "..7.2", "6.1...7.2", "6.1..6.6..7.2", "5.10", ""] {
            assert!(parsed(text).is_err(), "{text}");
        }
        assert_eq!(tc_releases("6.1..7.2").map(|two| two.until), Ok(Some(TcVersion::V7_2)));
        assert!(tc_releases("6.12").is_err() && tc_releases("7.2..6.1").is_err());
    }
}
