//! Mounts: in memory, bound read-only, listed.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;
use rustix::mount::MountFlags;

use super::root::OLD;

/// Bytes of memory that written files may take.
const MEMORY: &str = "mode=0755,size=256m";

/// Covers a directory with an empty one in memory.
pub(super) fn memory(at: &Path) -> io::Result<()> {
    let options = CString::new(MEMORY)?;
    Ok(rustix::mount::mount("tidegate", at, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, Some(options.as_c_str()))?)
}

/// Binds one mount, without those below it, read-only.
pub(super) fn bind_read_only(from: &Path, to: &Path) -> io::Result<()> {
    rustix::mount::mount_bind(from, to)?;
    let now = rustix::fs::statvfs(to)?.f_flag;
    let repeated = [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ]
    .into_iter()
    .filter(|(flag, _)| now.contains(*flag))
    .fold(MountFlags::empty(), |flags, (_, flag)| flags | flag);
    let flags = MountFlags::BIND | MountFlags::RDONLY | repeated;
    Ok(rustix::mount::mount_remount(to, flags, "")?)
}

/// Makes all mounts at and below a path read-only.
pub(super) fn read_only(at: &Path) -> io::Result<()> {
    for (point, flags) in mount_points()? {
        if point.starts_with(at) {
            let flags = flags | MountFlags::BIND | MountFlags::RDONLY;
            match rustix::mount::mount_remount(&point, flags, "") {
                // A mount hidden under another cannot be reached, by us or by the program.
                Err(error) if point == at => return Err(error.into()),
                _ => {}
            }
        }
    }
    Ok(())
}

/// All mount points of this namespace, sorted, with the flags that a remount must repeat.
pub(super) fn mount_points() -> io::Result<Vec<(PathBuf, MountFlags)>> {
    // Inside the new root `/proc` is not there at first.
    let table = fs::read("/proc/self/mountinfo")
        .or_else(|_| fs::read(format!("{OLD}/proc/self/mountinfo")))
        .or_else(|_| fs::read(format!("{OLD}/proc/thread-self/mountinfo")))?;
    let mut points: Vec<(PathBuf, MountFlags)> = table
        .split(|byte| *byte == b'\n')
        .filter_map(|line| {
            let mut fields = line.split(|byte| *byte == b' ').skip(4);
            let point = unescape(fields.next()?);
            let options = String::from_utf8_lossy(fields.next()?).into_owned();
            Some((point, flags_of(&options)))
        })
        .collect();
    points.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(points)
}

fn flags_of(options: &str) -> MountFlags {
    options.split(',').fold(MountFlags::empty(), |flags, option| {
        flags
            | match option {
                "ro" => MountFlags::RDONLY,
                "nosuid" => MountFlags::NOSUID,
                "nodev" => MountFlags::NODEV,
                "noexec" => MountFlags::NOEXEC,
                "noatime" => MountFlags::NOATIME,
                "nodiratime" => MountFlags::NODIRATIME,
                "relatime" => MountFlags::RELATIME,
                _ => MountFlags::empty(),
            }
    })
}

/// The kernel writes blanks and the like as three octal digits.
fn unescape(text: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, tail)) = rest.split_first() {
        let octal = tail
            .get(..3)
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match (first, octal) {
            (b'\\', Some(byte)) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    PathBuf::from(std::ffi::OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_read_with_their_escapes_and_flags() {
        assert_eq!(unescape(b"/a\\040b\\134c"), Path::new("/a b\\c"));
        assert_eq!(
            flags_of("ro,nosuid,relatime,size=1"),
            MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::RELATIME
        );
        assert!(mount_points().expect("we have /proc").iter().any(|(point, _)| point == Path::new("/")));
    }
}
