//! A control group for all processes of one sandbox, which bounds their memory with the kernel's own for
//! them: pages, files in memory, pipes, socket buffers, links. And their number: the limit of processes that
//! each has (`RLIMIT_NPROC`) does not hold the host's root. In version 1 of the kernel's interface that is a
//! group of its own, in version 2 the same one.
//!
//! Made beside the caller's group or below it, where the caller may do so: as root, or where systemd has
//! delegated a subtree to the user. Elsewhere there is none, and the caller counts.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::mounts::unescape;

/// What the names of our groups begin with; the number of the process that made it, when that was started,
/// and a count follow: in other process namespaces there are other processes of the same number.
const PREFIX: &str = "tidegate-";
/// A group without processes that is older than this was left by a caller that was killed; a younger one may
/// be about to be used.
const LEFT_AFTER: Duration = Duration::from_secs(10);
/// The kernel charges a huge page at once, bytes: a limit is reached that is nearer than that.
const LARGEST_CHARGE: u64 = 4 << 20;
/// Memory that TCP's buffers may take in version 1, which counts them apart, bytes.
const MAX_TCP_MEMORY: u64 = 64 << 20;
/// How often, and how long apart, a group whose processes are just ending is removed again.
const REMOVALS: u32 = 4000;
const REMOVE_EVERY: Duration = Duration::from_micros(250);

/// Processes that the sandbox itself may need beside the program's, and the file of the bound.
const OWN_PROCESSES: u32 = 32;
const PROCESSES: &str = "pids.max";
/// How many names are tried for a group.
const NAMES: u32 = 64;

/// Numbers the groups that this process makes.
static MADE: AtomicU32 = AtomicU32::new(0);

/// Which interface the kernel gives to bound memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// Whose memory ran out when the kernel killed a process of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shortage {
    /// The sandbox's: its processes reached [`crate::Spec::max_memory`].
    Own,
    /// That of the caller's control group, or of the machine.
    Outer,
}

/// The control groups of one sandbox: that which bounds memory, and that which bounds the number of processes
/// where it is another one.
#[derive(Debug)]
pub(crate) struct Cgroup {
    memory: Option<Group>,
    processes: Option<Group>,
}

impl Cgroup {
    /// Makes the groups whose processes may hold so many bytes of memory together, and be so many (0: any
    /// number) beside the sandbox's own; `None` where we can make none.
    pub(crate) fn create(max_memory: u64, max_processes: u32) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        let most = (max_processes > 0).then(|| max_processes.saturating_add(OWN_PROCESSES));
        let memory = Group::create(&own, &mounts, max_memory);
        if let (Some(group), Some(most)) =
            (memory.as_ref().filter(|group| group.version == Version::Two), most)
        {
            // The number is another controller, which the group above may not hand down.
            let _ = fs::write(group.dir.join(PROCESSES), most.to_string());
        }
        let processes = most.and_then(|most| Group::of_processes(&own, &mounts, most));
        (memory.is_some() || processes.is_some()).then_some(Cgroup { memory, processes })
    }

    /// Moves a process, and with it those that it will start, into the groups. The kernel takes 5 to 13 ms
    /// for it: it waits until every processor has passed a quiet point.
    pub(crate) fn take(&self, pid: u32) -> io::Result<()> {
        // Both, though one may fail.
        let all =
            [&self.memory, &self.processes].map(|group| group.as_ref().map_or(Ok(()), |one| one.take(pid)));
        all.into_iter().collect()
    }

    /// Has the kernel killed a process of the group for want of memory, and whose?
    pub(crate) fn ran_out(&self) -> Option<Shortage> {
        self.memory.as_ref().and_then(Group::ran_out)
    }
}

/// A control group. Dropping it removes it; its processes must be ending by then.
#[derive(Debug)]
struct Group {
    dir: PathBuf,
    version: Version,
}

impl Group {
    /// Makes a group in version 1's hierarchy of numbers of processes, with this bound.
    fn of_processes(own: &str, mounts: &str, most: u32) -> Option<Self> {
        let (version, mount, path) = own_group(own, mounts, "pids")?;
        if version != Version::One {
            return None;
        }
        let parent = join(&mount, &path);
        remove_leftovers(&parent);
        let group = Self { dir: make_dir(&parent)?, version };
        fs::write(group.dir.join(PROCESSES), most.to_string()).ok()?;
        Some(group)
    }

    fn create(own: &str, mounts: &str, max_memory: u64) -> Option<Self> {
        let (version, mount, path) = own_group(own, mounts, "memory")?;
        let parent = match version {
            Version::One => join(&mount, &path),
            Version::Two => [Some(path.as_path()), path.parent()]
                .into_iter()
                .flatten()
                .map(|path| join(&mount, path))
                .find(|dir| hands_down_memory(dir))?,
        };
        remove_leftovers(&parent);
        let group = Self { dir: make_dir(&parent)?, version };
        group.bound(max_memory).ok()?;
        Some(group)
    }

    fn bound(&self, max_memory: u64) -> io::Result<()> {
        let set = |file: &str, value: u64| fs::write(self.dir.join(file), value.to_string());
        match self.version {
            Version::One => {
                set("memory.limit_in_bytes", max_memory)?;
                // Absent where the kernel does not count swap, or TCP's buffers.
                let _ = set("memory.memsw.limit_in_bytes", max_memory);
                let _ = set("memory.kmem.tcp.limit_in_bytes", MAX_TCP_MEMORY);
                Ok(())
            }
            Version::Two => {
                set("memory.max", max_memory)?;
                let _ = set("memory.swap.max", 0);
                Ok(())
            }
        }
    }

    fn take(&self, pid: u32) -> io::Result<()> {
        fs::write(self.dir.join("cgroup.procs"), pid.to_string())
    }

    fn ran_out(&self) -> Option<Shortage> {
        let read = |file: &str| fs::read_to_string(self.dir.join(file)).unwrap_or_default();
        let number = |file: &str| read(file).trim().parse::<u64>().unwrap_or(0);
        let events = read(match self.version {
            Version::One => "memory.oom_control",
            Version::Two => "memory.events",
        });
        if count(&events, "oom_kill") == 0 {
            return None;
        }
        let reached = match self.version {
            Version::One => {
                let most = number("memory.max_usage_in_bytes").saturating_add(LARGEST_CHARGE);
                most >= number("memory.limit_in_bytes")
            }
            Version::Two => count(&events, "max") > 0,
        };
        Some(if reached { Shortage::Own } else { Shortage::Outer })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for _ in 0..REMOVALS {
            match fs::remove_dir(&self.dir) {
                // Its processes have been killed, and are not all gone yet.
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(REMOVE_EVERY),
                // What cannot be removed now the next sandbox removes.
                _ => return,
            }
        }
    }
}

/// Makes a directory of a name that is still free. One that is taken is that of a caller with our number in
/// another process namespace, started in the same clock tick.
fn make_dir(parent: &Path) -> Option<PathBuf> {
    for _ in 0..NAMES {
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let dir = parent.join(format!("{PREFIX}{}-{}-{number}", std::process::id(), started()));
        match fs::create_dir(&dir) {
            Ok(()) => return Some(dir),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
    }
    None
}

/// Removes the groups of callers that were killed. The kernel keeps those in which there are processes.
fn remove_leftovers(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX));
        let made = entry.metadata().and_then(|known| known.modified());
        let is_old = made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age > LEFT_AFTER));
        if is_ours && is_old {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// When this process was started, in clock ticks since the machine was (field 22 of proc_pid_stat(5)).
fn started() -> u64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name of the program, in brackets, may hold anything.
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    after.split_whitespace().nth(19).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

/// Have children of this group (version 2) a bound of memory?
fn hands_down_memory(dir: &Path) -> bool {
    fs::read_to_string(dir.join("cgroup.subtree_control"))
        .is_ok_and(|controllers| controllers.split_whitespace().any(|controller| controller == "memory"))
}

/// The group of this process in the hierarchy of a controller: where that is mounted, and the path from
/// there.
fn own_group(own: &str, mounts: &str, controller: &str) -> Option<(Version, PathBuf, PathBuf)> {
    let (mut first, mut second) = (None, None);
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        if controllers.split(',').any(|one| one == controller) {
            first = Some(path);
        } else if controllers.is_empty() {
            second = Some(path);
        }
    }
    // A controller is in one hierarchy only: where version 1 has it, version 2 has not.
    let (version, path) =
        first.map(|path| (Version::One, path)).or(second.map(|path| (Version::Two, path)))?;
    let (root, mount) = mounts.lines().find_map(|line| hierarchy(line, version, controller))?;
    let path = Path::new(path).strip_prefix(root).ok()?;
    let inside = path.components().all(|component| matches!(component, Component::Normal(_)));
    inside.then(|| (version, mount, path.to_owned()))
}

/// From a line of mountinfo: the group that is mounted, and where, if it is the hierarchy of a controller.
fn hierarchy(line: &str, version: Version, controller: &str) -> Option<(PathBuf, PathBuf)> {
    let (mount, system) = line.split_once(" - ")?;
    let mut system = system.split(' ');
    let (kind, options) = (system.next()?, system.nth(1)?);
    let wanted = match version {
        Version::One => kind == "cgroup" && options.split(',').any(|option| option == controller),
        Version::Two => kind == "cgroup2",
    };
    let mut fields = mount.split(' ').skip(3);
    let (root, point) = (unescape(fields.next()?.as_bytes()), unescape(fields.next()?.as_bytes()));
    wanted.then_some((root, point))
}

fn join(mount: &Path, path: &Path) -> PathBuf {
    // An empty path would add a slash.
    if path.as_os_str().is_empty() { mount.to_owned() } else { mount.join(path) }
}

/// A count in memory.events or memory.oom_control.
fn count(text: &str, name: &str) -> u64 {
    let of = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse::<u64>().ok();
    text.lines().find_map(of).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
23 1 0:20 / /proc rw - proc proc rw
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/uni\\040fied rw,relatime shared:9 - cgroup2 cgroup2 rw
";

    #[test]
    fn our_own_group_is_found_in_either_version() {
        let found = |own| {
            own_group(own, MOUNTS, "memory").map(|(version, mount, path)| (version, join(&mount, &path)))
        };
        let one = "8:pids:/\n4:cpu,memory:/a/b\n0::/c\n";
        assert_eq!(found(one), Some((Version::One, "/sys/fs/cgroup/memory/a/b".into())));
        assert_eq!(found("8:pids:/\n0::/c\n"), Some((Version::Two, "/sys/fs/cgroup/uni fied/c".into())));
        assert_eq!(found("0::/\n"), Some((Version::Two, "/sys/fs/cgroup/uni fied".into())));
        // A group that lies outside what is mounted.
        assert_eq!(found("0::/../other\n"), None);
        let outside = own_group("0::/c\n", "35 31 0:32 /a /sys/fs/cgroup rw - cgroup2 cgroup2 rw", "memory");
        assert_eq!(outside, None);
        let numbers = "36 31 0:33 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n".to_owned() + MOUNTS;
        let of = |own| {
            own_group(own, &numbers, "pids").map(|(version, mount, path)| (version, join(&mount, &path)))
        };
        assert_eq!(of(one), Some((Version::One, "/sys/fs/cgroup/pids".into())));
        assert_eq!(of("0::/c\n"), Some((Version::Two, "/sys/fs/cgroup/uni fied/c".into())));
        assert_eq!(found("8:pids:/\n"), None);
    }

    #[test]
    fn kills_are_counted_in_either_version() {
        let events = "low 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 0\n";
        assert_eq!((count(events, "oom_kill"), count(events, "max")), (3, 12));
        assert_eq!(count("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n", "oom_kill"), 2);
        assert_eq!(count("", "oom_kill"), 0);
    }

    #[test]
    fn a_name_that_is_taken_is_passed_over() {
        let parent = std::env::temp_dir().join(format!("tidegate-names-{}", std::process::id()));
        let names = |from: u32| {
            (from..from + NAMES)
                .map(|number| format!("{PREFIX}{}-{}-{number}", std::process::id(), started()))
        };
        let next = MADE.load(Ordering::Relaxed);
        for name in names(next).take(2) {
            fs::create_dir_all(parent.join(name)).unwrap();
        }
        let made = make_dir(&parent);
        let free = parent.join(names(next).nth(2).unwrap());
        fs::remove_dir_all(&parent).unwrap();
        assert_eq!(made, Some(free));
    }

    #[test]
    fn a_process_was_started_some_time() {
        assert!(started() > 0);
    }
}
