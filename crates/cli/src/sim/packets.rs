//! `--pcapng FILE`: which packets of a run are written, and where.

use crate::pcap_file::PcapFile;
use anyhow::bail;
use std::path::PathBuf;
use tidegate_replay::annotated::{PcapSink, SimulatedPackets, WatchedDevice};
use tidegate_scenario::run::RunObserver;

/// What is to be written: a file, and of which device; without one of all.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    path: PathBuf,
    device: Option<WatchedDevice>,
}

impl Wanted {
    /// `FILE`, or `FILE:MACHINE/DEVICE`.
    pub(super) fn parse(text: &str) -> Wanted {
        let (path, device) = match text.rsplit_once(':') {
            Some((path, device)) if device.contains('/') && !path.is_empty() && !device.starts_with('/') => {
                (path, device.split_once('/'))
            }
            _ => (text, None),
        };
        let device =
            device.map(|(machine, device)| WatchedDevice { machine: machine.into(), device: device.into() });
        Wanted { path: path.into(), device }
    }
}

/// Who writes them.
pub(super) fn observer(wanted: &Wanted) -> Box<dyn RunObserver> {
    let path = wanted.path.clone();
    let open = move || Ok(Box::new(PcapFile::begin(&path)?) as Box<dyn PcapSink>);
    Box::new(SimulatedPackets::new(wanted.device.clone(), open))
}

/// A file holds the packets of one run.
///
/// # Errors
/// There are several.
pub(super) fn one_run(wanted: bool, runs: usize) -> anyhow::Result<()> {
    if wanted && runs > 1 {
        bail!(
            "--pcapng is for one run and there are {runs}; choose one with --policy, --load and --repeats 1"
        );
    }
    Ok(())
}
