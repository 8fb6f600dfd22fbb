//! Where what runs keeps its files: by network namespace, so that those of two never meet.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tidegate_sys::namespace::NetworkNamespace;
use tidegate_sys::service::Alone;

/// The directory of all of it, by default.
const ROOT: &str = "/run/tidegate";
/// Another directory: for tests, and for other users than root.
const ELSEWHERE: &str = "TIDEGATE_RUN";

/// The longest path of a socket, in bytes (unix(7): 108 with the zero at its end).
const MAX_SOCKET: usize = 107;
/// The longest name of a device, in bytes (IFNAMSIZ less the zero at its end).
const MAX_DEVICE: usize = 15;

/// What the names of files end with that show what a controller of rates does.
const CONTROLLED: &str = "controlled";

/// What the names of followers' locks begin with. (No device has a colon in its name.)
const FOLLOWER: &str = ":follow-";

/// How long a lock is tried that another process may have for an instant only, to see whether it is taken.
const MOMENT: Duration = Duration::from_millis(300);
/// How often it is looked whose a lock is that was just taken.
const TRIES: usize = 20;
/// How often it is tried.
const LOOK: Duration = Duration::from_millis(10);

/// The files of one network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeDir(PathBuf);

impl RuntimeDir {
    /// That of the calling thread's namespace; it may not be there yet.
    ///
    /// # Errors
    /// There is no `/proc`; or `TIDEGATE_RUN` names a file, a directory that may not be read, or a path too
    /// long for sockets.
    pub fn here() -> io::Result<RuntimeDir> {
        let root = std::env::var_os(ELSEWHERE).map_or_else(|| PathBuf::from(ROOT), PathBuf::from);
        let refused = |kind, what: &str| {
            let why = format!("{ELSEWHERE} names the directory for sockets, and `{}` {what}", root.display());
            Err(io::Error::new(kind, why))
        };
        // Every command must find the same, wherever it is started.
        if !root.is_absolute() {
            return refused(io::ErrorKind::InvalidInput, "is no absolute path");
        }
        if root.metadata().is_ok_and(|found| !found.is_dir()) {
            return refused(io::ErrorKind::NotADirectory, "is no directory");
        }
        let here = RuntimeDir::of(&root, &NetworkNamespace::current()?);
        let longest = here.socket(&"x".repeat(MAX_DEVICE)).as_os_str().len();
        if let Some(over) = longest.checked_sub(MAX_SOCKET).filter(|over| *over > 0) {
            let most = root.as_os_str().len().saturating_sub(over);
            return refused(
                io::ErrorKind::InvalidInput,
                &format!("is too long for the paths of sockets: at most {most} bytes fit"),
            );
        }
        // That nothing was applied must not be said of what cannot be read.
        match std::fs::read_dir(&here.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                refused(error.kind(), &format!("cannot be read: {error}"))
            }
            _ => Ok(here),
        }
    }

    /// That of a namespace. Its number alone is not enough: the next namespace may have the same, and must
    /// not be taken for this one.
    fn of(root: &Path, namespace: &NetworkNamespace) -> RuntimeDir {
        RuntimeDir(root.join(format!("net-{namespace}")))
    }

    /// Makes it, for its owner to change and everyone to look into.
    ///
    /// # Errors
    /// It cannot be made here.
    pub fn make(&self) -> io::Result<()> {
        std::fs::create_dir_all(&self.0)?;
        std::fs::set_permissions(&self.0, std::fs::Permissions::from_mode(0o755))?;
        self.remove_predecessors();
        Ok(())
    }

    /// Removes what namespaces left that had this one's number: they are gone, or it would not have it.
    fn remove_predecessors(&self) {
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let (Some(root), Some(own)) = (self.0.parent(), name(&self.0)) else { return };
        // Without a cookie namespaces cannot be distinguished.
        let Some((number, _)) = own.rsplit_once('-').filter(|(number, _)| *number != "net") else { return };
        for path in std::fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let other = name(&path).filter(|other| *other != own);
            if other.is_some_and(|other| other.rsplit_once('-').is_some_and(|(of, _)| of == number)) {
                // A file that stays does no harm.
                let _ = std::fs::remove_dir_all(path);
            }
        }
    }

    /// What was applied to a device.
    pub fn state(&self, dev: &str) -> PathBuf {
        self.file(dev, "json")
    }

    /// The control socket of the process that shapes a device.
    pub fn socket(&self, dev: &str) -> PathBuf {
        self.file(dev, "sock")
    }

    /// Locked by the process that shapes a device.
    pub fn lock(&self, dev: &str) -> PathBuf {
        self.file(dev, "lock")
    }

    /// The rates that a controller puts back on a device when it ends.
    pub fn steered(&self, dev: &str) -> PathBuf {
        self.file(dev, "steered")
    }

    /// Locked by the process that controls a device's rate.
    pub fn steering(&self, dev: &str) -> PathBuf {
        self.file(dev, "steering")
    }

    /// What the process that controls rates does, by the device whose uploads it controls.
    pub fn controlled(&self, dev: &str) -> PathBuf {
        self.file(dev, CONTROLLED)
    }

    /// The devices that have such a file.
    pub fn controlled_devices(&self) -> Vec<String> {
        self.devices(CONTROLLED)
    }

    /// Locked by a process that applies, confirms or reverts, one at a time in a namespace. (No device has a
    /// colon in its name.)
    pub fn work(&self) -> PathBuf {
        self.file(":work", "lock")
    }

    /// Locked by a daemon that follows devices as they come and go, as long as it does.
    pub fn follower(&self, pid: u32) -> PathBuf {
        self.file(&format!("{FOLLOWER}{pid}"), "lock")
    }

    /// The processes of those.
    pub fn followers(&self) -> Vec<u32> {
        let locks = self.devices("lock").into_iter().filter(|name| name.starts_with(FOLLOWER));
        locks.filter_map(|name| RuntimeDir::holder(&self.file(&name, "lock"))).collect()
    }

    /// There while `tidegate down DEV` keeps a daemon that follows devices from starting another one for this
    /// device.
    pub fn kept_down(&self, dev: &str) -> PathBuf {
        self.file(dev, "down")
    }

    /// Commands that a daemon is started with again when its own files may be others by now.
    pub fn kept_policy(&self, dev: &str) -> PathBuf {
        self.file(dev, "sh")
    }

    /// The number of times that a daemon of a device was started since the machine was.
    pub fn starts(&self, dev: &str) -> PathBuf {
        self.file(dev, "starts")
    }

    /// How many those were; `None`: it is not known.
    pub fn count_of_starts(&self, dev: &str) -> Option<u64> {
        std::fs::read_to_string(self.starts(dev)).ok()?.trim().parse().ok()
    }

    /// The job that a device's policy is in the middle of, by its token.
    pub fn job(&self, dev: &str) -> Option<String> {
        let state: serde_json::Value = serde_json::from_slice(&std::fs::read(self.state(dev)).ok()?).ok()?;
        Some(state["job"]["token"].as_str()?.to_owned())
    }

    /// The last policy of a device that was undone automatically.
    pub fn undone(&self, dev: &str) -> PathBuf {
        self.file(dev, "undone")
    }

    /// Locked by the guardian that waits until a device's policy is confirmed.
    pub fn watch(&self, dev: &str) -> PathBuf {
        self.file(dev, "watch")
    }

    /// The log of the guardian of a device's policy.
    pub fn guard_log(&self, dev: &str) -> PathBuf {
        self.file(dev, "guard")
    }

    /// Takes a lock and writes its owner into it; `None`: another process has it, even after a moment.
    ///
    /// # Errors
    /// The file cannot be opened or written.
    pub fn take(path: &Path) -> io::Result<Option<Alone>> {
        RuntimeDir::take_within(path, MOMENT)
    }

    /// As `take`, waiting for so long.
    ///
    /// # Errors
    /// As for [`RuntimeDir::take`].
    pub fn take_within(path: &Path, patience: Duration) -> io::Result<Option<Alone>> {
        let begun = Instant::now();
        loop {
            if let Some(mut alone) = Alone::take(path)? {
                alone.sign(&format!("{}\n", std::process::id()))?;
                return Ok(Some(alone));
            }
            if begun.elapsed() >= patience {
                return Ok(None);
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The process that has a lock; `None`: there is none, or this user may not know. (0: the lock file does
    /// not name it.)
    pub fn holder(path: &Path) -> Option<u32> {
        // It is held for an instant, so its takers try again.
        match path.exists().then(|| Alone::take(path)) {
            Some(Ok(None)) => {
                // The process that took it just now is about to write its number.
                let tries =
                    std::iter::repeat_with(|| std::fs::read_to_string(path).unwrap_or_default()).take(TRIES);
                let reported = tries.map(|text| text.trim().parse().ok()).find(|pid| {
                    if pid.is_none() {
                        std::thread::sleep(LOOK);
                    }
                    pid.is_some()
                });
                Some(reported.flatten().unwrap_or(0))
            }
            _ => None,
        }
    }

    /// The log of a daemon in the background.
    pub fn log(&self, dev: &str) -> PathBuf {
        self.file(dev, "log")
    }

    /// The devices that have a file of this kind (`sock`, `json`), in order.
    pub fn devices(&self, kind: &str) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(&self.0) else { return Vec::new() };
        let of_kind = |path: &Path| path.extension().is_some_and(|extension| extension == kind);
        let paths = entries.flatten().map(|entry| entry.path()).filter(|path| of_kind(path));
        let mut names: Vec<String> =
            paths.filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned())).collect();
        names.sort();
        names
    }

    fn file(&self, dev: &str, kind: &str) -> PathBuf {
        self.0.join(format!("{dev}.{kind}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_namespace_left_is_not_its_successors() {
        let root = std::env::temp_dir().join(format!("tidegate-rooms-{}", std::process::id()));
        let runtime = |inode, cookie| RuntimeDir::of(&root, &NetworkNamespace { inode, cookie });
        let (gone, another, unnamed) = (runtime(70, Some(1)), runtime(7, Some(1)), runtime(70, None));
        for runtime in [&gone, &another, &unnamed] {
            runtime.make().expect("a directory");
            std::fs::write(runtime.state("eth0"), "").expect("a file");
        }
        assert_eq!(gone.devices("json"), ["eth0"], "the same namespace's own");
        let now = runtime(70, Some(2));
        assert!(now.devices("json").is_empty());
        now.make().expect("a directory");
        let there = [&gone, &another, &unnamed, &now].map(|runtime| runtime.0.exists());
        assert_eq!(there, [false, true, true, true]);
        std::fs::remove_dir_all(&root).expect("it is there");
    }

    #[test]
    fn devices_are_found_by_their_files() {
        let runtime = RuntimeDir(std::env::temp_dir().join(format!("tidegate-room-{}", std::process::id())));
        assert!(runtime.devices("sock").is_empty());
        runtime.make().expect("a directory");
        for dev in ["eth0.7", "eth0"] {
            std::fs::write(runtime.socket(dev), "").expect("a file");
        }
        std::fs::write(runtime.state("ppp0"), "").expect("a file");
        assert_eq!(runtime.devices("sock"), ["eth0", "eth0.7"]);
        assert_eq!(runtime.devices("json"), ["ppp0"]);
        std::fs::remove_dir_all(&runtime.0).expect("it is there");
    }
}
