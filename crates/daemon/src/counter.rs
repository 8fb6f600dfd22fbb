//! What a running daemon shares with its clients.

use crate::machine::Wanted;
use crate::marks::Marks;
use crate::options::DaemonOptions;
use std::sync::{Arc, Mutex};
use tidegate_dataplane::daemon::CommandSender;
use tidegate_dataplane::packet_io::AttachPoint;
use tidegate_loader::ClassNames;

/// The command sender, for the threads of the control socket.
pub(crate) struct Counter {
    /// Where commands are given.
    pub(crate) command_sender: CommandSender,
    /// What runs.
    pub(crate) wanted: Mutex<Wanted>,
    /// The attach points of the backend, present or future.
    pub(crate) places: Arc<Mutex<Vec<AttachPoint>>>,
    /// The kernel's part of it.
    pub(crate) marks: Marks,
    /// The name of the backend that is open.
    pub(crate) packet_io: Arc<Mutex<&'static str>>,
    /// How it was requested.
    pub(crate) options: Mutex<DaemonOptions>,
    /// The commands that made it.
    pub(crate) commands: Mutex<Vec<Vec<String>>>,
    /// What the policy calls its classes, on the devices that it is bound to.
    pub(crate) names: Mutex<ClassNames>,
    /// How often a daemon was started for this device since the machine was.
    pub(crate) starts: u64,
}
