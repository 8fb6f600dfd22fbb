//! The file system inside: the host's, under a layer in memory that holds the tools and takes what is
//! written.
//!
//! Each directory at the top of the host's tree is covered by an overlay whose upper layer is in memory and
//! already holds the tools; so is each file system mounted below. Where overlays cannot be had, a directory
//! is bound read-only, and the directories of the tools are rebuilt in memory with each entry bound in its
//! place. `/proc`, `/sys`, `/dev` and `/run` are new. Nothing of the host's is visible through a mount that
//! can be written, its metadata included.

use std::collections::BTreeSet;
use std::ffi::CString;
use std::fs;
use std::io::{self, Stdin};
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use rustix::mount::{MountFlags, MountPropagationFlags, MoveMountFlags, UnmountFlags};

use crate::confine::Visible;
use crate::control::{Control, Message};
use crate::error::SandboxError;
use crate::mounts::{bind_read_only, frame, mount_points, read_only, written};
use crate::paths::{OLD, OWN, TOOLS, awkward};
use crate::spec::Spec;

/// Everything that can be written, while we build; binds and overlays keep it afterwards.
const UPPER: &str = "/.upper";
/// Everybody's directory for passing files.
const TMP: &str = "/tmp";
/// How deep directories are taken apart to reach those that can be covered.
const MAX_DEPTH: usize = 3;
/// The most entries of a directory we rebuild one by one.
const MAX_ENTRIES: usize = 20_000;
/// The most mounts of the caller's that are taken in.
const MAX_MOUNTS: usize = 1024;
const QUIET: MountFlags = MountFlags::NOSUID.union(MountFlags::NODEV).union(MountFlags::NOEXEC);

type Note<'a> = &'a dyn Fn(String);
type Mounts = [(PathBuf, MountFlags)];

/// Replaces the root directory of this mount namespace.
///
/// # Errors
/// The step that failed.
pub(crate) fn build(
    spec: &Spec,
    own_users: bool,
    control: &Control<Stdin>,
    note: Note<'_>,
) -> Result<Visible, SandboxError> {
    step("make the mounts private", || {
        Ok(rustix::mount::mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?)
    })?;
    step("put a root in memory", new_root)?;
    step("mount /proc", proc_fs)?;
    step("make /dev", device_files)?;
    step("take in the host's mounts", || take_mounts(control))?;
    let mut root =
        Root { spec, note, tool_dirs: possible_dirs(&spec.tool_dirs), covered: Covered::default() };
    step("bring in the host's files", || root.cover())?;
    step("mount /sys", || sys_fs(note))?;
    step("make /run", || root.run_dir())?;
    root.rebuild_tool_dirs()?;
    step("hide home directories", || root.hide_homes())?;
    root.put_files();
    step("limit what /proc changes", || limit_proc(spec, own_users))?;
    step("leave the host's root", leave_old_root)?;
    let Covered { overlays, rebuilt, plain } = root.covered;
    Ok(Visible { own: overlays.into_iter().chain(rebuilt).collect(), plain })
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
    frame(Path::new(place))?;
    let put_old = format!("{place}{OLD}");
    fs::create_dir(&put_old)?;
    // The mount moves with the pivot, so the old tree's directory under it is whole again.
    rustix::process::pivot_root(place, put_old.as_str())?;
    std::env::set_current_dir("/")?;
    for dir in [UPPER, "/proc", "/dev"] {
        fs::create_dir(dir)?;
    }
    written(Path::new(UPPER))
}

/// Puts the host's mounts, as our users see them, over the host's tree; where there is nothing to map none
/// come.
fn take_mounts(control: &Control<Stdin>) -> io::Result<()> {
    control.send(&Message::WantMounts)?;
    for _ in 0..MAX_MOUNTS {
        match control.receive()? {
            (Message::Mount(point), Some(mount)) => {
                let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
                rustix::mount::move_mount(&mount, "", rustix::fs::CWD, host(&point), flags)?;
            }
            (Message::Mapped, _) => return Ok(()),
            _ => break,
        }
    }
    Err(io::Error::other("the caller sent no mounts"))
}

fn leave_old_root() -> io::Result<()> {
    // Mounts of the caller's lie over the old root: each is left in turn.
    rustix::mount::unmount(OLD, UnmountFlags::DETACH)?;
    while rustix::mount::unmount(OLD, UnmountFlags::DETACH).is_ok() {}
    rustix::mount::unmount(UPPER, UnmountFlags::DETACH)?;
    fs::remove_dir(OLD)?;
    fs::remove_dir(UPPER)
}

/// Covers a directory with an empty one in the memory that all written files share.
fn memory(at: &Path) -> io::Result<()> {
    Ok(rustix::mount::mount_bind(fresh("mem")?, at)?)
}

/// A new directory in that memory; it has a number for a name, because names of the host's cannot all be
/// mount options.
fn fresh(kind: &str) -> io::Result<PathBuf> {
    let all = Path::new(UPPER).join(kind);
    fs::create_dir_all(&all)?;
    let dir = all.join(fs::read_dir(&all)?.count().to_string());
    fs::create_dir(&dir)?;
    Ok(dir)
}

/// Where the host's directory is while we build.
fn host(dir: &Path) -> PathBuf {
    Path::new(OLD).join(dir.strip_prefix("/").unwrap_or(dir))
}

/// The number of the file system that holds a directory.
fn device(dir: &Path) -> Option<u64> {
    fs::metadata(dir).ok().map(|found| found.dev())
}

fn everybody_writes(dir: &Path) -> io::Result<()> {
    Ok(rustix::fs::chmod(dir, rustix::fs::Mode::from_raw_mode(0o1777))?)
}

/// What is hidden and kept of the host's directories.
#[derive(Default)]
struct Covered {
    /// Under an overlay: writable, with the tools in it.
    overlays: BTreeSet<PathBuf>,
    /// In memory, each entry brought in for itself.
    rebuilt: BTreeSet<PathBuf>,
    /// Is a directory merely bound read-only?
    plain: bool,
}

/// The root directory in the making.
struct Root<'a> {
    spec: &'a Spec,
    note: Note<'a>,
    /// The directories that hold the tools, in order.
    tool_dirs: Vec<&'a Path>,
    covered: Covered,
}

impl Root<'_> {
    /// Covers each directory of the host.
    fn cover(&mut self) -> io::Result<()> {
        let mounts = mount_points()?;
        self.cover_entries(&mounts, Path::new("/"), 0)?;
        for dir in ["/tmp", "/var", "/etc", "/usr", "/proc", "/sys", "/dev", "/run"] {
            // One that the host lacks; a symbolic link stays what it is.
            if fs::symlink_metadata(dir).is_err() {
                fs::create_dir(dir)?;
            }
        }
        for dir in ["/tmp", "/etc", "/var"] {
            let writable = |known: &BTreeSet<PathBuf>| known.contains(Path::new(dir));
            if !writable(&self.covered.overlays) && !writable(&self.covered.rebuilt) {
                (self.note)(format!("{dir} is read-only inside: this kernel makes no overlay of it"));
            }
        }
        Ok(())
    }

    /// Brings in the entries of a directory that is in memory.
    fn cover_entries(&mut self, mounts: &Mounts, dir: &Path, depth: usize) -> io::Result<()> {
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
                self.cover_dir(mounts, &from, &to, depth)?;
            } else if kind.is_file() {
                bring_file(&from, &to);
            }
        }
        Ok(())
    }

    fn cover_dir(&mut self, mounts: &Mounts, from: &Path, to: &Path, depth: usize) -> io::Result<()> {
        if to == Path::new(TMP) && !self.spec.keep.iter().any(|dir| dir == to) {
            // Others' files there may be sockets of the host's sessions.
            return self.hide(mounts, to, true);
        }
        if self.overlay(from, to).is_ok() {
            self.bring_mounts(mounts, from);
            self.covered.overlays.insert(to.to_owned());
            return Ok(());
        }
        // Other mounts below a directory can keep it from being a layer, but not the directories beside them.
        let holds_mounts = mounts.iter().any(|(point, _)| point != from && point.starts_with(from));
        if holds_mounts && depth < MAX_DEPTH && fs::read_dir(from).is_ok() {
            memory(to)?;
            if to == Path::new(TMP) {
                everybody_writes(to)?;
            }
            self.covered.rebuilt.insert(to.to_owned());
            return self.cover_entries(mounts, to, depth + 1);
        }
        self.bind_plainly(from, to)
    }

    /// The last way: the host's directory itself, read-only with all that is mounted below.
    fn bind_plainly(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        rustix::mount::mount_bind_recursive(from, to)?;
        self.covered.plain = true;
        read_only(to)
    }

    /// An empty directory, with just those entries that must be visible.
    fn hide(&mut self, mounts: &Mounts, dir: &Path, everybody: bool) -> io::Result<()> {
        memory(dir)?;
        if everybody {
            everybody_writes(dir)?;
        }
        self.covered.rebuilt.insert(dir.to_owned());
        let mut kept: Vec<&PathBuf> = self
            .spec
            .keep
            .iter()
            .filter(|kept| kept.starts_with(dir) && *kept != dir && host(kept).exists())
            .collect();
        kept.sort();
        let mut last: Option<&Path> = None;
        for path in kept {
            if last.is_some_and(|last| path.starts_with(last)) {
                continue;
            }
            last = Some(path);
            let from = host(path);
            if !from.is_dir() {
                fs::create_dir_all(path.parent().unwrap_or(dir))?;
                bring_file(&from, path);
                continue;
            }
            fs::create_dir_all(path)?;
            if self.overlay(&from, path).is_ok() {
                self.bring_mounts(mounts, &from);
                self.covered.overlays.insert(path.clone());
            } else {
                self.bind_plainly(&from, path)?;
            }
        }
        Ok(())
    }

    /// Hides home directories, where that is requested, with everything in them but what is kept.
    fn hide_homes(&mut self) -> io::Result<()> {
        if !self.spec.private {
            return Ok(());
        }
        let mounts = mount_points()?;
        let home = std::env::var_os("HOME")
            .map(PathBuf::from)
            .filter(|home| home.is_absolute())
            // The directory itself, where its usual name is a link to it.
            .and_then(|home| fs::canonicalize(home).ok())
            .filter(|home| home.parent().is_some());
        let mut homes: Vec<PathBuf> = ["/root", "/home"].into_iter().map(PathBuf::from).chain(home).collect();
        homes.retain(|dir| fs::symlink_metadata(dir).is_ok_and(|found| found.is_dir()));
        homes.sort();
        let mut last: Option<PathBuf> = None;
        for dir in homes {
            if last.as_ref().is_none_or(|last| !dir.starts_with(last)) {
                self.hide(&mounts, &dir, false)?;
                last = Some(dir);
            }
        }
        Ok(())
    }

    fn overlay(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.spec.no_overlay {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let from = plainly_named(from)?;
        let (upper, work) = (fresh("up")?, fresh("work")?);
        // Directories of the upper layer belong to us, so an ordinary user may create files where scripts
        // like to.
        for dir in ["/etc", "/var/log", "/var/lib", "/var/lock", "/var/run", "/var/tmp"] {
            if let Ok(below) = Path::new(dir).strip_prefix(to)
                && fs::symlink_metadata(host(Path::new(dir))).is_ok_and(|found| found.is_dir())
            {
                fs::create_dir_all(upper.join(below))?;
            }
        }
        for dir in &self.tool_dirs {
            let Ok(below) = dir.strip_prefix(to) else { continue };
            let at = upper.join(below);
            fs::create_dir_all(&at)?;
            self.put_tools(dir, &at)?;
        }
        if to == Path::new(TMP) {
            everybody_writes(&upper)?;
        }
        let options =
            format!("lowerdir={},upperdir={},workdir={}", from.display(), upper.display(), work.display());
        // Without attributes of its own on the upper layer an overlay cannot take directories of the host
        // away.
        let attributes = CString::new(format!("{options},userxattr"))?;
        let plain = CString::new(options)?;
        let flags = MountFlags::NODEV | MountFlags::NOSUID;
        let mount = |options: &CString| {
            rustix::mount::mount("overlay", to, "overlay", flags, Some(options.as_c_str()))
        };
        Ok(mount(&attributes).or_else(|_| mount(&plain))?)
    }

    /// An overlay shows one file system: what the host has mounted below comes back under overlays of its
    /// own, never as it is: it may hold sockets and pipes.
    fn bring_mounts(&mut self, mounts: &Mounts, from: &Path) {
        for (point, _) in mounts.iter().filter(|(point, _)| point != from && point.starts_with(from)) {
            let Ok(inside) = point.strip_prefix(OLD) else { continue };
            let to = Path::new("/").join(inside);
            let Ok(found) = fs::symlink_metadata(point) else { continue };
            if found.is_file() {
                let _ = bind_read_only(point, &to);
            } else if found.is_dir() && to.is_dir() {
                match self.overlay(point, &to) {
                    Ok(()) => drop(self.covered.overlays.insert(to)),
                    Err(_) => (self.note)(format!(
                        "{} is empty inside: this kernel makes no overlay of it",
                        to.display()
                    )),
                }
            }
        }
    }

    /// `/run` is new, so that no daemon of the host can be spoken to; the tools are there.
    fn run_dir(&mut self) -> io::Result<()> {
        memory(Path::new("/run"))?;
        self.covered.rebuilt.insert("/run".into());
        for dir in ["lock", "tidegate"] {
            fs::create_dir(Path::new("/run").join(dir))?;
        }
        fs::create_dir(TOOLS)?;
        let executable = host(&self.spec.executable);
        for tool in &self.spec.tools {
            let place = Path::new(TOOLS).join(tool);
            fs::write(&place, "")?;
            // Read-only, its mode, owner and times included: it is the host's own file.
            bind_read_only(&executable, &place)?;
        }
        for dir in &self.spec.keep {
            let hidden = ["/run", "/dev"].iter().any(|own| dir.starts_with(own));
            if hidden && dir != Path::new("/run") && dir != Path::new("/dev") {
                fs::create_dir_all(dir)?;
                if self.overlay(&host(dir), dir).is_ok() {
                    self.covered.overlays.insert(dir.clone());
                } else {
                    (self.note)(format!(
                        "{} is empty inside: this kernel makes no overlay of it",
                        dir.display()
                    ));
                }
            } else if hidden {
                (self.note)(format!("{} of the host is not visible inside", dir.display()));
            }
        }
        Ok(())
    }

    /// Puts the tools where no overlay did.
    fn rebuild_tool_dirs(&self) -> Result<(), SandboxError> {
        let ours = [Path::new("/"), Path::new(UPPER)].map(device);
        let overlays = &self.covered.overlays;
        for dir in self.tool_dirs.iter().filter(|dir| !overlays.iter().any(|top| dir.starts_with(top))) {
            step(&format!("put the tools in {}", dir.display()), || self.rebuild_tool_dir(dir, ours))?;
        }
        Ok(())
    }

    fn rebuild_tool_dir(&self, dir: &Path, ours: [Option<u64>; 2]) -> io::Result<()> {
        let Some(existing) = dir.ancestors().find(|ancestor| ancestor.is_dir()) else {
            return Ok(());
        };
        // What is in memory already, made for another directory of tools or to hide what the host has, takes
        // new entries: nothing of the host's comes in there.
        if !ours.contains(&device(existing)) {
            rebuild(existing)?;
        }
        fs::create_dir_all(dir)?;
        self.put_tools(dir, dir)
    }

    /// Puts a link to our executable in place of each tool of the directory `dir`, which is at `at` while we
    /// build. A directory that is called like a tool stays one.
    fn put_tools(&self, dir: &Path, at: &Path) -> io::Result<()> {
        for tool in &self.spec.tools {
            let (named, place) = (dir.join(tool), at.join(tool));
            if fs::symlink_metadata(host(&named)).is_ok_and(|found| found.is_dir())
                || self.tool_dirs.iter().any(|other| other.starts_with(&named))
            {
                continue;
            }
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

    /// Puts the files in place, over directories in memory.
    fn put_files(&self) {
        for dir in &self.spec.memory {
            if dir.is_dir()
                && let Err(error) = memory(dir)
            {
                (self.note)(format!("{} is the kernel's own: {error}", dir.display()));
            }
        }
        for (path, text) in &self.spec.files {
            let put = path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(path, text));
            // Where the kernel has no such directory there is nothing to write to, and no script that looks
            // there.
            if let Err(error) = put
                && self.spec.memory.iter().any(|dir| dir.is_dir() && path.starts_with(dir))
            {
                (self.note)(format!("no {}: {error}", path.display()));
                break;
            }
        }
    }
}

/// Those directories that can hold tools, in order: not those below a file of the host's, nor with a name
/// that is too long. The words of a comment are enough to ask for one.
fn possible_dirs(dirs: &[PathBuf]) -> Vec<&Path> {
    let possible = |dir: &Path| match fs::metadata(host(dir)) {
        Ok(found) => found.is_dir(),
        Err(error) => error.raw_os_error() != Some(Errno::NAMETOOLONG.raw_os_error()),
    };
    let mut dirs: Vec<&Path> =
        dirs.iter().map(PathBuf::as_path).filter(|dir| dir.ancestors().all(possible)).collect();
    dirs.sort_unstable();
    dirs
}

/// A single file of the host's, read-only; one that cannot be had is left out.
fn bring_file(from: &Path, to: &Path) {
    if fs::write(to, "").is_ok() && bind_read_only(from, to).is_err() {
        let _ = fs::remove_file(to);
    }
}

/// The directory as mount options can carry it: where its name cannot, it is bound to a number.
fn plainly_named(from: &Path) -> io::Result<PathBuf> {
    if !awkward(from) {
        return Ok(from.to_owned());
    }
    let place = fresh("low")?;
    rustix::mount::mount_bind(from, &place)?;
    Ok(place)
}

fn proc_fs() -> io::Result<()> {
    // Another view than our own namespace's would show, and let be written, what is the host's.
    Ok(rustix::mount::mount("proc", "/proc", "proc", QUIET, None)?)
}

/// Makes `/proc` read-only but for the network's settings, which are the namespace's own.
fn limit_proc(spec: &Spec, own_users: bool) -> io::Result<()> {
    if spec.max_processes > 0 && pid_max_is_ours() {
        // Numbers up to 300 are given out once only, when the namespace is young.
        let _ = fs::write("/proc/sys/kernel/pid_max", (spec.max_processes + 300).to_string());
    }
    // No user namespace within this one, and few of what counts against the user outside as well. The
    // caller's own user namespace is not ours to limit.
    for (name, most) in if own_users { USER_LIMITS } else { &[] } {
        let _ = fs::write(Path::new("/proc/sys/user").join(name), most);
    }
    // If memory is short, it is ours that is taken.
    let _ = fs::write("/proc/self/oom_score_adj", "1000");
    // Files that reveal the host's keys and memory.
    let (file, dir) = (fresh("mask")?.join("file"), fresh("mask")?);
    fs::write(&file, "")?;
    for masked in MASKED.map(|name| Path::new("/proc").join(name)).iter().filter(|path| path.exists()) {
        bind_read_only(if masked.is_dir() { &dir } else { &file }, masked)?;
    }
    let net = Path::new("/proc/sys/net");
    let writable = net.is_dir() && rustix::mount::mount_bind(net, net).is_ok();
    rustix::mount::mount_remount("/proc", MountFlags::BIND | MountFlags::RDONLY | QUIET, "")?;
    if writable {
        rustix::mount::mount_remount(net, MountFlags::BIND | QUIET, "")?;
    }
    Ok(())
}

/// Limits of a user namespace (`namespaces(7)`, `inotify(7)`).
const USER_LIMITS: &[(&str, &str)] =
    &[("max_user_namespaces", "0"), ("max_inotify_instances", "16"), ("max_inotify_watches", "4096")];

/// Entries of `/proc` that belong to no process and reveal the host.
const MASKED: [&str; 9] =
    ["acpi", "kallsyms", "kcore", "key-users", "keys", "latency_stats", "sched_debug", "scsi", "timer_list"];

/// Since Linux 6.14 each process namespace has a highest process number of its own; before, there was one for
/// the machine.
fn pid_max_is_ours() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers =
        release.split(|letter: char| !letter.is_ascii_digit()).map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(6), Some(14))
}

fn sys_fs(note: Note<'_>) -> io::Result<()> {
    if let Err(error) = rustix::mount::mount("sysfs", "/sys", "sysfs", QUIET, None) {
        // The host's would show its devices: an empty one has what scripts ask for, from the model.
        note(format!("/sys holds nothing but what the model puts there: {error}"));
        memory(Path::new("/sys"))?;
        return fs::create_dir_all("/sys/class/net").and_then(|()| fs::create_dir_all("/sys/module"));
    }
    let links = Path::new("/sys/devices/virtual/net");
    rustix::mount::mount_remount("/sys", MountFlags::BIND | MountFlags::RDONLY | QUIET, "")?;
    if links.is_dir() {
        rustix::mount::mount_bind(links, links)?;
        rustix::mount::mount_remount(links, MountFlags::BIND | QUIET, "")?;
    }
    Ok(())
}

/// Devices that merely compute, their modes, owners and times read-only; no terminal.
fn device_files() -> io::Result<()> {
    memory(Path::new("/dev"))?;
    for name in ["null", "zero", "full", "random", "urandom"] {
        let (from, to) = (Path::new(OLD).join("dev").join(name), Path::new("/dev").join(name));
        if fs::symlink_metadata(&from).is_ok_and(|found| found.file_type().is_char_device()) {
            fs::write(&to, "")?;
            bind_read_only(&from, &to)?;
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
    fs::create_dir("/dev/shm").and_then(|()| everybody_writes(Path::new("/dev/shm")))
}

/// Covers a directory with one in memory whose entries are those of the host, each bound in its place.
fn rebuild(dir: &Path) -> io::Result<()> {
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
            rustix::mount::mount_bind_recursive(&from, &to)?;
            read_only(&to)?;
        } else if kind.is_file() {
            bring_file(&from, &to);
        }
    }
    Ok(())
}
