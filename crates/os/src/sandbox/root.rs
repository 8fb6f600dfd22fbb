//! The file system inside: the host's, under a layer in memory that holds the tools and takes what is written.
//!
//! Each directory at the top of the host's tree is covered by an overlay whose upper layer lives in memory and
//! already holds the tools. Where overlays cannot be had, it is bound read-only, and the directories of the tools
//! are rebuilt in memory with each entry bound in its place. `/proc`, `/sys`, `/dev` and `/run` are new.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, MountPropagationFlags, UnmountFlags};

use super::mounts::{bind_read_only, memory, mount_points, read_only};
use super::{SandboxError, Spec, TOOLS, awkward};

/// The host's tree while we build.
pub(super) const OLD: &str = "/.old";
/// Upper layers while we build; the overlays keep it afterwards.
const UPPER: &str = "/.upper";
/// Everybody's directory for passing files.
const TMP: &str = "/tmp";
/// What never comes from the host.
const OWN: [&str; 6] = ["proc", "sys", "dev", "run", ".old", ".upper"];
/// How deep directories are taken apart to reach those that can be covered.
const MAX_DEPTH: usize = 3;
/// The most entries of a directory we rebuild one by one.
const MAX_ENTRIES: usize = 20_000;
const QUIET: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV).union(MountFlags::NOEXEC);

type Note<'a> = &'a dyn Fn(String);

/// Replaces the root directory of this mount namespace.
///
/// # Errors
/// The step that failed.
pub(super) fn build(spec: &Spec, note: Note<'_>) -> Result<(), SandboxError> {
    step("make the mounts private", || {
        Ok(rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
    })?;
    step("put a root in memory", new_root)?;
    let covered = step("bring in the host's files", || cover(spec, note))?;
    step("mount /proc", || proc_fs(spec, note))?;
    step("mount /sys", || sys_fs(note))?;
    step("make /dev", device_files)?;
    step("make /run", || run_dir(spec, note))?;
    step("put the tools in place", || rebuild_tool_dirs(spec, &covered))?;
    step("leave the host's root", || {
        for dir in [OLD, UPPER] {
            rustix::mount::unmount(dir, UnmountFlags::DETACH)?;
            fs::remove_dir(dir)?;
        }
        Ok(())
    })
}

/// Puts the files in place, over directories in memory.
pub(super) fn put_files(spec: &Spec, note: Note<'_>) -> Result<(), SandboxError> {
    for dir in &spec.memory {
        if dir.is_dir()
            && let Err(error) = memory(dir)
        {
            note(format!("{} is the kernel's own: {error}", dir.display()));
        }
    }
    for (path, text) in &spec.files {
        let written = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, text));
        // Where the kernel has no such directory there is nothing to write to, and no script that looks there.
        if let Err(error) = written
            && spec.memory.iter().any(|dir| dir.is_dir() && path.starts_with(dir))
        {
            note(format!("no {}: {error}", path.display()));
            break;
        }
    }
    Ok(())
}

fn step<T>(name: &str, action: impl FnOnce() -> io::Result<T>) -> Result<T, SandboxError> {
    action().map_err(|error| SandboxError::new(name, error))
}

/// A new root in memory, the old one at [`OLD`].
fn new_root() -> io::Result<()> {
    let place = ["/tmp", "/mnt", "/var", "/usr"]
        .into_iter()
        .find(|dir| Path::new(dir).is_dir())
        .ok_or_else(|| io::Error::other("the host has none of /tmp, /mnt, /var, /usr"))?;
    memory(Path::new(place))?;
    let put_old = format!("{place}{OLD}");
    fs::create_dir(&put_old)?;
    // The mount moves with the pivot, so the old tree's directory under it is whole again.
    rustix::process::pivot_root(place, put_old.as_str())?;
    std::env::set_current_dir("/")?;
    fs::create_dir(UPPER)?;
    memory(Path::new(UPPER))
}

/// What came of the host's directories.
#[derive(Default)]
struct Covered {
    /// Under an overlay: writable, with the tools in it.
    overlays: BTreeSet<PathBuf>,
    /// In memory, each entry brought in by itself.
    rebuilt: BTreeSet<PathBuf>,
}

/// Covers each directory of the host.
fn cover(spec: &Spec, note: Note<'_>) -> io::Result<Covered> {
    let mounts = mount_points()?;
    let mut covered = Covered::default();
    covered.rebuilt.insert("/".into());
    cover_entries(spec, &mounts, Path::new("/"), 0, &mut covered)?;
    for dir in ["/tmp", "/var", "/etc", "/usr", "/proc", "/sys", "/dev", "/run"] {
        // One that the host lacks; a symbolic link stays what it is.
        if fs::symlink_metadata(dir).is_err() {
            fs::create_dir(dir)?;
        }
    }
    for dir in ["/tmp", "/etc", "/var"] {
        let writable = |known: &BTreeSet<PathBuf>| known.contains(Path::new(dir));
        if !writable(&covered.overlays) && !writable(&covered.rebuilt) {
            note(format!("{dir} is read-only inside: this kernel makes no overlay of it"));
        }
    }
    Ok(covered)
}

/// Brings in the entries of a directory that stands in memory.
fn cover_entries(
    spec: &Spec,
    mounts: &[(PathBuf, MountFlags)],
    dir: &Path,
    depth: usize,
    covered: &mut Covered,
) -> io::Result<()> {
    for (count, entry) in fs::read_dir(host(dir))?.flatten().enumerate() {
        let name = entry.file_name();
        if count >= MAX_ENTRIES || depth == 0 && OWN.iter().any(|own| name == *own) {
            continue;
        }
        let (from, to) = (entry.path(), dir.join(&name));
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            symlink(fs::read_link(&from)?, &to)?;
        } else if kind.is_dir() {
            fs::create_dir(&to)?;
            if to == Path::new(TMP) && !spec.keep.iter().any(|dir| dir == &to) {
                private_tmp(spec, mounts, covered)?;
                continue;
            }
            if overlay(spec, &from, &to).is_ok() {
                bring_mounts(mounts, &from);
                covered.overlays.insert(to);
                continue;
            }
            // Other mounts below a directory can keep it from being a layer, but not the directories beside them.
            let holds_mounts = mounts.iter().any(|(point, _)| point != &from && point.starts_with(&from));
            if holds_mounts && depth < MAX_DEPTH && fs::read_dir(&from).is_ok() {
                memory(&to)?;
                if to == Path::new("/tmp") {
                    everybody_writes(&to)?;
                }
                covered.rebuilt.insert(to.clone());
                cover_entries(spec, mounts, &to, depth + 1, covered)?;
            } else {
                rustix::mount::mount_bind_recursive(&from, &to)?;
                read_only(&to)?;
            }
        } else if kind.is_file() && fs::write(&to, "").is_ok() {
            let _ = bind_read_only(&from, &to);
        }
    }
    Ok(())
}

/// An empty `/tmp`, in which only the directories stand that must be seen: others hold sockets of the host's sessions.
fn private_tmp(spec: &Spec, mounts: &[(PathBuf, MountFlags)], covered: &mut Covered) -> io::Result<()> {
    let tmp = Path::new(TMP);
    memory(tmp)?;
    everybody_writes(tmp)?;
    covered.rebuilt.insert(tmp.to_owned());
    let mut kept: Vec<&PathBuf> = spec.keep.iter().filter(|dir| dir.starts_with(tmp) && host(dir).is_dir()).collect();
    kept.sort();
    let mut last: Option<&Path> = None;
    for dir in kept {
        if last.is_some_and(|last| dir.starts_with(last)) {
            continue;
        }
        last = Some(dir);
        fs::create_dir_all(dir)?;
        let from = host(dir);
        if overlay(spec, &from, dir).is_ok() {
            bring_mounts(mounts, &from);
            covered.overlays.insert(dir.clone());
        } else {
            rustix::mount::mount_bind_recursive(&from, dir)?;
            read_only(dir)?;
        }
    }
    Ok(())
}

/// Where the host's directory stands while we build.
fn host(dir: &Path) -> PathBuf {
    Path::new(OLD).join(dir.strip_prefix("/").unwrap_or(dir))
}

fn everybody_writes(dir: &Path) -> io::Result<()> {
    Ok(rustix::fs::chmod(dir, rustix::fs::Mode::from_raw_mode(0o1777))?)
}

fn overlay(spec: &Spec, from: &Path, to: &Path) -> io::Result<()> {
    if spec.no_overlay {
        return Err(io::ErrorKind::Unsupported.into());
    }
    let (from, name) = plainly_named(from, to.strip_prefix("/").unwrap_or(to))?;
    let upper = Path::new(UPPER).join("up").join(&name);
    let work = Path::new(UPPER).join("work").join(&name);
    fs::create_dir_all(&upper)?;
    fs::create_dir_all(&work)?;
    // Directories of the upper layer belong to us, so an ordinary user may create files where scripts like to.
    for dir in ["/etc", "/var/log", "/var/lib", "/var/lock", "/var/run", "/var/tmp"] {
        if Path::new(dir).starts_with(to) && fs::symlink_metadata(host(Path::new(dir))).is_ok_and(|m| m.is_dir()) {
            fs::create_dir_all(Path::new(UPPER).join("up").join(dir.trim_start_matches('/')))?;
        }
    }
    for dir in spec.tool_dirs.iter().filter(|dir| dir.starts_with(to)) {
        let dir = upper.join(dir.strip_prefix(to).unwrap_or(dir));
        fs::create_dir_all(&dir)?;
        put_tools(spec, &dir)?;
    }
    if to == Path::new(TMP) {
        everybody_writes(&upper)?;
    }
    let options = format!("lowerdir={},upperdir={},workdir={}", from.display(), upper.display(), work.display());
    // Without attributes of its own on the upper layer an overlay cannot take directories of the host away.
    let attributes = CString::new(format!("{options},userxattr"))?;
    let plain = CString::new(options)?;
    let mount =
        |options: &CString| rustix::mount::mount("overlay", to, "overlay", MountFlags::NODEV, Some(options.as_c_str()));
    Ok(mount(&attributes).or_else(|_| mount(&plain))?)
}

/// The directory and the name of its layers, as mount options can carry them: where they cannot, it is bound to a number.
fn plainly_named(from: &Path, name: &Path) -> io::Result<(PathBuf, PathBuf)> {
    if !awkward(from) {
        return Ok((from.to_owned(), name.to_owned()));
    }
    let lower = Path::new(UPPER).join("low");
    fs::create_dir_all(&lower)?;
    let number = fs::read_dir(&lower)?.count().to_string();
    let place = lower.join(&number);
    fs::create_dir(&place)?;
    rustix::mount::mount_bind(from, &place)?;
    Ok((place, Path::new("low").join(number)))
}

/// An overlay shows one file system: what the host has mounted below comes back, read-only.
fn bring_mounts(mounts: &[(PathBuf, MountFlags)], from: &Path) {
    let mut last: Option<&Path> = None;
    for (point, _) in mounts {
        if point == from || !point.starts_with(from) || last.is_some_and(|l| point.starts_with(l)) {
            continue;
        }
        last = Some(point);
        let Ok(inside) = point.strip_prefix(OLD) else {
            continue;
        };
        let to = Path::new("/").join(inside);
        // One that we may not read or that is gone is no reason to stop.
        if to.exists() && rustix::mount::mount_bind_recursive(point, &to).is_ok() {
            let _ = read_only(&to);
        }
    }
}

fn proc_fs(spec: &Spec, note: Note<'_>) -> io::Result<()> {
    let fresh = rustix::mount::mount("proc", "/proc", "proc", QUIET, None);
    if fresh.is_ok() && spec.max_processes > 0 && pid_max_is_ours() {
        // Numbers up to 300 are given out once only, when the namespace is young.
        let _ = fs::write("/proc/sys/kernel/pid_max", (spec.max_processes + 300).to_string());
    }
    if let Err(error) = fresh {
        note(format!("/proc is the host's: {error}"));
        rustix::mount::mount_bind_recursive(Path::new(OLD).join("proc"), "/proc")?;
    }
    for file in ["sys", "sysrq-trigger", "irq", "bus", "fs"] {
        let path = Path::new("/proc").join(file);
        if path.exists() {
            bind_read_only(&path, &path)?;
        }
    }
    // The network's settings are the namespace's own.
    let net = Path::new("/proc/sys/net");
    if fresh.is_ok() && net.is_dir() {
        rustix::mount::mount_bind(net, net)?;
        rustix::mount::mount_remount(net, MountFlags::BIND | QUIET, "")?;
    }
    Ok(())
}

/// Since Linux 6.14 each process namespace has a highest process number of its own; before, there was one for the machine.
fn pid_max_is_ours() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(14))
}

fn sys_fs(note: Note<'_>) -> io::Result<()> {
    if let Err(error) = rustix::mount::mount("sysfs", "/sys", "sysfs", QUIET, None) {
        note(format!("/sys is the host's: {error}"));
        rustix::mount::mount_bind_recursive(Path::new(OLD).join("sys"), "/sys")?;
        return read_only(Path::new("/sys"));
    }
    let links = Path::new("/sys/devices/virtual/net");
    rustix::mount::mount_remount("/sys", MountFlags::BIND | MountFlags::RDONLY | QUIET, "")?;
    if links.is_dir() {
        rustix::mount::mount_bind(links, links)?;
        rustix::mount::mount_remount(links, MountFlags::BIND | QUIET, "")?;
    }
    Ok(())
}

fn device_files() -> io::Result<()> {
    memory(Path::new("/dev"))?;
    for name in ["null", "zero", "full", "random", "urandom", "tty"] {
        let (from, to) = (Path::new(OLD).join("dev").join(name), Path::new("/dev").join(name));
        if from.exists() {
            fs::write(&to, "")?;
            rustix::mount::mount_bind(&from, &to)?;
        }
    }
    for (name, target) in [
        ("fd", "/proc/self/fd"),
        ("stdin", "/proc/self/fd/0"),
        ("stdout", "/proc/self/fd/1"),
        ("stderr", "/proc/self/fd/2"),
    ] {
        symlink(target, Path::new("/dev").join(name))?;
    }
    fs::create_dir("/dev/shm")
}

/// `/run` is new, so that no daemon of the host can be spoken to; our socket and tools live there.
fn run_dir(spec: &Spec, note: Note<'_>) -> io::Result<()> {
    memory(Path::new("/run"))?;
    for dir in ["lock", "tidegate"] {
        fs::create_dir(Path::new("/run").join(dir))?;
    }
    fs::create_dir(TOOLS)?;
    let executable = host(&spec.executable);
    for tool in &spec.tools {
        let place = Path::new(TOOLS).join(tool);
        fs::write(&place, "")?;
        rustix::mount::mount_bind(&executable, &place)?;
    }
    for dir in &spec.keep {
        let hidden = ["/run", "/dev"].iter().any(|own| dir.starts_with(own));
        if hidden && dir != Path::new("/run") && dir != Path::new("/dev") {
            fs::create_dir_all(dir)?;
            bind_read_only(&host(dir), dir)?;
        } else if hidden {
            note(format!("{} of the host is not visible inside", dir.display()));
        }
    }
    Ok(())
}

/// Puts the tools where no overlay did.
fn rebuild_tool_dirs(spec: &Spec, covered: &Covered) -> io::Result<()> {
    let mut dirs: Vec<&PathBuf> =
        spec.tool_dirs.iter().filter(|dir| !covered.overlays.iter().any(|top| dir.starts_with(top))).collect();
    dirs.sort();
    let mut rebuilt: BTreeSet<&Path> = covered.rebuilt.iter().map(PathBuf::as_path).collect();
    for dir in dirs {
        let Some(existing) = dir.ancestors().find(|ancestor| ancestor.is_dir()) else {
            continue;
        };
        if !rebuilt.contains(existing) {
            rebuild(existing)?;
            rebuilt.insert(existing);
        }
        fs::create_dir_all(dir)?;
        put_tools(spec, dir)?;
    }
    Ok(())
}

/// Covers a directory with one in memory whose entries are those of the host, each bound in its place.
fn rebuild(dir: &Path) -> io::Result<()> {
    let mounts = mount_points()?;
    memory(dir)?;
    for (count, entry) in fs::read_dir(host(dir))?.flatten().enumerate() {
        if count == MAX_ENTRIES {
            return Err(io::Error::other(format!("{} has more than {MAX_ENTRIES} entries", dir.display())));
        }
        let (from, to) = (entry.path(), dir.join(entry.file_name()));
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            symlink(fs::read_link(&from)?, &to)?;
        } else if kind.is_dir() {
            fs::create_dir(&to)?;
            if mounts.iter().any(|(point, _)| point.starts_with(&from)) {
                rustix::mount::mount_bind_recursive(&from, &to)?;
                read_only(&to)?;
            } else {
                bind_read_only(&from, &to)?;
            }
        } else if kind.is_file() {
            fs::write(&to, "")?;
            bind_read_only(&from, &to)?;
        }
    }
    Ok(())
}

/// Puts a link to our executable under each tool's name, in place of what stands there.
fn put_tools(spec: &Spec, dir: &Path) -> io::Result<()> {
    for tool in &spec.tools {
        let place = dir.join(tool);
        if fs::symlink_metadata(&place).is_ok_and(|found| found.is_file()) {
            // A bound file cannot be unlinked while it is a mount point.
            let _ = rustix::mount::unmount(&place, UnmountFlags::DETACH);
        }
        match fs::remove_file(&place) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => symlink(Path::new(TOOLS).join(tool), &place)?,
        }
    }
    Ok(())
}
