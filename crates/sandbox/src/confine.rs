//! What the first process gives up before it runs a program, for itself and for all that it starts.
//!
//! Order matters: limits and files under `/proc` first, then `no_new_privs`, which landlock and seccomp ask
//! for, then capabilities; seccomp last, because it refuses the calls that the others need.

use std::io;
use std::path::PathBuf;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, Scope,
};
use rustix::process::{DumpableBehavior, Resource, Rlimit};
use rustix::thread::{CapabilitySet, CapabilitySets};

use crate::error::SandboxError;
use crate::spec::Spec;
use crate::syscalls;

/// Bytes of address space of one process: memory that it maps, of whatever kind.
const MAX_ADDRESSES: u64 = 1 << 30;
/// The largest file, bytes; all files in memory together take no more, see `mounts`.
const MAX_FILE: u64 = 256 << 20;
/// Descriptors of one process.
const MAX_DESCRIPTORS: u64 = 256;
/// Processes that the sandbox itself needs beside the program's.
const OWN_PROCESSES: u64 = 300;

/// What a program inside may do as root of its own files and processes.
const KEPT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID);

/// What of the file system a program sees.
#[derive(Debug, Default)]
pub(crate) struct Visible {
    /// Directories whose files are the sandbox's own: in memory, or under an overlay.
    pub(crate) own: Vec<PathBuf>,
    /// Are there directories of the host that are merely read-only? Pipes in them could be written to.
    pub(crate) plain: bool,
}

/// Gives up what neither this process nor a program needs.
///
/// # Errors
/// The step that failed; nothing must run then.
pub(crate) fn confine(spec: &Spec, visible: &Visible) -> Result<(), SandboxError> {
    let step = |name: &str, result: io::Result<()>| result.map_err(|error| SandboxError::new(name, error));
    step("limit memory and files", limit(spec))?;
    step("give up new privileges", rustix::thread::set_no_new_privs(true).map_err(Into::into))?;
    step("give up capabilities", shed_capabilities())?;
    // Programs inside can neither inspect this process nor reach the host's file that it was executed from.
    step(
        "hide this process",
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(Into::into),
    )?;
    step("restrict files (landlock)", restrict_files(visible).map_err(io::Error::other))?;
    let filter = syscalls::filter().map_err(io::Error::other);
    step(
        "make the system call filter",
        filter.and_then(|filter| syscalls::apply(&filter).map_err(io::Error::other)),
    )
}

fn limit(spec: &Spec) -> io::Result<()> {
    let limits = [
        (Resource::As, MAX_ADDRESSES),
        (Resource::Core, 0),
        (Resource::Fsize, MAX_FILE),
        (Resource::Nofile, MAX_DESCRIPTORS),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
        (Resource::Rtprio, 0),
    ];
    for (resource, most) in limits {
        rustix::process::setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    if spec.max_processes > 0 {
        // The kernel does not hold the host's root to it; see also the highest process number, and the
        // caller's count.
        let most = Some(u64::from(spec.max_processes) + OWN_PROCESSES);
        let _ = rustix::process::setrlimit(Resource::Nproc, Rlimit { current: most, maximum: most });
    }
    Ok(())
}

/// Keeps the capabilities of [`KEPT`], and CAP_NET_ADMIN, which changes the links and settings of the network
/// namespace: in a user namespace for programs too, because the kernel requires it for writing settings (from
/// the host's root it does not). The host's own CAP_NET_ADMIN makes the kernel load modules, so programs
/// started here cannot have it: the bounding set lacks it. In a user namespace the ways to such modules are
/// closed by the system call filter.
fn shed_capabilities() -> io::Result<()> {
    let kept = if is_hosts_root()? { KEPT } else { KEPT.union(CapabilitySet::NET_ADMIN) };
    for capability in CapabilitySet::all().difference(kept).iter() {
        match rustix::thread::remove_capability_from_bounding_set(capability) {
            // A capability that this kernel does not know.
            Ok(()) | Err(rustix::io::Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    rustix::thread::clear_ambient_capability_set()?;
    let ours =
        rustix::thread::capabilities(None)?.permitted.intersection(KEPT.union(CapabilitySet::NET_ADMIN));
    let sets = CapabilitySets { effective: ours, permitted: ours, inheritable: CapabilitySet::empty() };
    Ok(rustix::thread::set_capabilities(None, sets)?)
}

/// Are we the host's own root, without a user namespace of tidegate's?
fn is_hosts_root() -> io::Result<bool> {
    // The first namespace maps all users to themselves. So does one made for root with an identity mapping:
    // there too the kernel lets settings be written without the capability.
    let map = std::fs::read_to_string("/proc/self/uid_map")?;
    Ok(map.split_whitespace().collect::<Vec<_>>() == ["0", "0", "4294967295"])
}

/// Lets programs write only what is the sandbox's own, and signal only what is inside, as far as the kernel
/// has landlock.
fn restrict_files(visible: &Visible) -> Result<(), RulesetError> {
    let abi = ABI::V6;
    let read = AccessFs::from_read(abi);
    let all = AccessFs::from_all(abi);
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .scope(Scope::from_all(abi))?
        .create()?;
    let under = |path: &str, access| PathFd::new(path).map(|fd| PathBeneath::new(fd, access));
    let Ok(root) = under("/", if visible.plain { read } else { all }) else { return Ok(()) };
    let mut rules = rules.add_rule(root)?;
    if visible.plain {
        let own = visible.own.iter().map(|path| path.to_string_lossy().into_owned());
        for path in own.chain(["/proc", "/sys", "/dev", "/run"].map(str::to_owned)) {
            if let Ok(rule) = under(&path, all) {
                rules = rules.add_rule(rule)?;
            }
        }
    }
    rules.restrict_self().map(drop)
}
