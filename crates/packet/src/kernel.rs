//! The kernel that a machine is taken to run.

use crate::dissect::Dissector;
use crate::linux::LinuxVersion;

/// Whose behaviour a machine shows; by default that of Linux 6.1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KernelModel {
    /// The release of Linux.
    pub linux: LinuxVersion,
    /// How far it looks into packets for the keys of their flows.
    pub dissector: Dissector,
}
