//! Mounts: in memory, bound read-only, listed.

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, StatVfsMountFlags};
use rustix::mount::MountFlags;

use crate::paths::OLD;

/// Bytes of memory, and inodes, that the root directory and its mount points may take.
const FRAME: &str = "mode=0755,size=16m,nr_inodes=65536";
/// Bytes of memory, and inodes, that all files may take that programs write.
const WRITTEN: &str = "mode=0755,size=256m,nr_inodes=131072";

/// Covers a directory with a new root directory in memory.
pub(crate) fn frame(at: &Path) -> io::Result<()> {
    in_memory(at, FRAME)
}

/// Covers a directory with the memory that all written files share.
pub(crate) fn written(at: &Path) -> io::Result<()> {
    in_memory(at, WRITTEN)
}

fn in_memory(at: &Path, options: &str) -> io::Result<()> {
    let options = CString::new(options)?;
    Ok(rustix::mount::mount(
        "tidegate",
        at,
        "tmpfs",
        MountFlags::NOSUID | MountFlags::NODEV,
        Some(options.as_c_str()),
    )?)
}

/// Binds one mount, without those below it, read-only.
pub(crate) fn bind_read_only(from: &Path, to: &Path) -> io::Result<()> {
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

/// Makes all mounts at and below a path read-only, without devices and set-user-ID programs.
pub(crate) fn read_only(at: &Path) -> io::Result<()> {
    let top = rustix::fs::open(at, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())?;
    match tidegate_sys::confine::mount_read_only(&top) {
        // Before Linux 5.12: one mount after the other.
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
        done => return done,
    }
    for (point, flags) in mount_points()? {
        if point.starts_with(at) {
            let flags =
                flags | MountFlags::BIND | MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV;
            rustix::mount::mount_remount(&point, flags, "")?;
        }
    }
    Ok(())
}

/// All mount points of this namespace, sorted, with the flags that a remount must repeat.
pub(crate) fn mount_points() -> io::Result<Vec<(PathBuf, MountFlags)>> {
    // Inside the new root `/proc` is not there at first.
    let table =
        fs::read("/proc/self/mountinfo").or_else(|_| fs::read(format!("{OLD}/proc/self/mountinfo")))?;
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
pub(crate) fn unescape(text: &[u8]) -> PathBuf {
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
