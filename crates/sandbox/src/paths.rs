//! Where things are in the sandbox, and by which names its own stages are started.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Where a program inside reaches the caller: TCP, because Unix sockets are refused inside.
/// The network namespace is the sandbox's own, so nothing else listens there.
pub const ADDRESS: SocketAddr = SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, 5));
/// Where a program inside finds the executable under each tool's name.
pub const TOOLS: &str = "/run/tidegate/bin";

/// The name under which the process outside is started.
pub(crate) const OUTER: &str = "tidegate-sandbox-outer";
/// The name of the first process inside.
pub(crate) const INIT: &str = "tidegate-sandbox-init";
/// The host's tree while we build.
pub(crate) const OLD: &str = "/.old";
/// What never comes from the host.
pub(crate) const OWN: [&str; 6] = ["proc", "sys", "dev", "run", ".old", ".upper"];

/// True when the path holds a byte that mount options cannot carry.
pub(crate) fn awkward(path: &Path) -> bool {
    path.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b',' | b':' | b'\\' | b'\n'))
}
