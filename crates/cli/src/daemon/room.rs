//! Where what runs keeps its files: by network namespace, so that those of two never meet.

use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Where all of it stands, unless the environment says otherwise.
const ROOT: &str = "/run/tidegate";
/// Another place: for tests, and for those who are not root.
const ELSEWHERE: &str = "TIDEGATE_RUN";

/// The files of one network namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Room(PathBuf);

impl Room {
    /// That of the calling thread's namespace; it may not be there yet.
    ///
    /// # Errors
    /// There is no `/proc`.
    pub(crate) fn here() -> io::Result<Room> {
        let root = std::env::var_os(ELSEWHERE).map_or_else(|| PathBuf::from(ROOT), PathBuf::from);
        let inode = std::fs::metadata("/proc/thread-self/ns/net")?.ino();
        Ok(Room(root.join(format!("net-{inode}"))))
    }

    /// Makes it, for its owner to change and everybody to look into.
    ///
    /// # Errors
    /// It cannot be made here.
    pub(crate) fn make(&self) -> io::Result<()> {
        std::fs::create_dir_all(&self.0)?;
        std::fs::set_permissions(&self.0, std::fs::Permissions::from_mode(0o755))
    }

    /// What was applied to a device.
    pub(crate) fn state(&self, dev: &str) -> PathBuf {
        self.file(dev, "json")
    }

    /// The control socket of who shapes a device.
    pub(crate) fn socket(&self, dev: &str) -> PathBuf {
        self.file(dev, "sock")
    }

    /// Locked by who shapes a device.
    pub(crate) fn lock(&self, dev: &str) -> PathBuf {
        self.file(dev, "lock")
    }

    /// What a daemon in the background says.
    pub(crate) fn log(&self, dev: &str) -> PathBuf {
        self.file(dev, "log")
    }

    /// The devices that have a file of this kind (`sock`, `json`), in order.
    pub(crate) fn devices(&self, kind: &str) -> Vec<String> {
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
    fn devices_are_found_by_their_files() {
        let room = Room(std::env::temp_dir().join(format!("tidegate-room-{}", std::process::id())));
        assert!(room.devices("sock").is_empty());
        room.make().expect("a directory");
        for dev in ["eth0.7", "eth0"] {
            std::fs::write(room.socket(dev), "").expect("a file");
        }
        std::fs::write(room.state("ppp0"), "").expect("a file");
        assert_eq!(room.devices("sock"), ["eth0", "eth0.7"]);
        assert_eq!(room.devices("json"), ["ppp0"]);
        std::fs::remove_dir_all(&room.0).expect("it is there");
    }
}
