//! Files that this program reads for its user, and may come from strangers: bounded in size and in time.
//!
//! A regular file is read up to a limit. A named pipe could make a command wait for ever and a device could
//! feed it for ever, so both are refused. What the caller handed over as an open descriptor (standard input,
//! `<(command)` of a shell, which is `/dev/fd/N`) is read, for [`PIPE_LIMIT`] at most unless a person types
//! it.
//!
//! Which files were read is noted ([`note`], [`was_read`]), so that no result is written over one of them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use crate::poll;

/// How long a pipe may take to hand over all of its content.
pub const PIPE_LIMIT: Duration = Duration::from_secs(60);
/// Bytes read at once.
const PIECE: usize = 64 << 10;
/// The most files that are noted as read: more than any command line, script and folder of recordings names.
const MAX_NOTED: usize = 1 << 16;

/// The regular files that this process has read, by their absolute paths without symbolic links.
static NOTED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// A file's device and inode.
type Identity = (u64, u64);
/// The most inputs whose content is kept.
const MAX_KEPT: usize = 16;

/// What was read of descriptors that were handed over.
static KEPT: Mutex<Vec<(Identity, Vec<u8>)>> = Mutex::new(Vec::new());

/// Notes that a file was read, or is read by a program that this process runs. [`open`] and [`read`] do it
/// themselves.
pub fn note(path: &Path) {
    let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
    let Ok(real) = fs::canonicalize(path) else { return };
    if fs::metadata(&real).is_ok_and(|found| found.is_file()) {
        let mut noted = NOTED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if noted.len() < MAX_NOTED {
            noted.insert(real);
        }
    }
}

/// The files that were noted so far, by their absolute paths without symbolic links.
#[must_use]
pub fn noted() -> BTreeSet<PathBuf> {
    NOTED.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
}

/// The file that was read and that writing to `path` would replace: under the same name, or through symbolic
/// links, hard links, `..`, an open descriptor. `None`: no such file was read.
pub fn was_read(path: &Path) -> Option<PathBuf> {
    let real = fs::canonicalize(path).ok()?;
    let noted = NOTED.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(same) = noted.get(&real) {
        return Some(same.clone());
    }
    // Another name of the same file: a hard link, a bind mount.
    let identity = |path: &Path| fs::metadata(path).ok().map(|found| (found.dev(), found.ino()));
    let wanted = identity(&real)?;
    noted.iter().find(|one| identity(one) == Some(wanted)).cloned()
}

/// The text of a file that only this user can have written: a regular one of its own, which no one else may
/// write to, and no link. It is not noted.
///
/// # Errors
/// It cannot be read; `InvalidData`: it is none of these, is longer than `limit`, or no text.
pub fn read_own(path: &Path, limit: u64) -> io::Result<String> {
    read_of(&[rustix::process::geteuid().as_raw()], path, limit)
}

/// As [`read_own`], of a file that root may have written instead.
///
/// # Errors
/// As for [`read_own`].
pub fn read_trusted(path: &Path, limit: u64) -> io::Result<String> {
    read_of(&[rustix::process::geteuid().as_raw(), 0], path, limit)
}

/// The text of a file that only one of these users can have written.
fn read_of(owners: &[u32], path: &Path, limit: u64) -> io::Result<String> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path);
    let file = file.map_err(|error| match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => io::ErrorKind::InvalidData.into(),
        _ => error,
    })?;
    let found = file.metadata()?;
    let own = owners.contains(&found.uid()) && found.mode() & 0o022 == 0;
    if !found.is_file() || !own || found.len() > limit {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = String::new();
    file.take(limit).read_to_string(&mut text)?;
    Ok(text)
}

/// True for a path that names a descriptor this process was started with: `-`, `/dev/stdin`, `/dev/fd/63`.
pub fn is_handed_over(path: &Path) -> bool {
    let parents = ["/dev/fd", "/proc/self/fd"];
    path == Path::new("-")
        || path == Path::new("/dev/stdin")
        || path.parent().is_some_and(|parent| parents.iter().any(|known| parent == Path::new(known)))
}

/// What a path leads to.
///
/// # Errors
/// It cannot be looked at. Of kind [`io::ErrorKind::InvalidInput`], with the remedy: its symbolic links lead
/// in a circle.
pub fn metadata(path: &Path) -> io::Result<fs::Metadata> {
    fs::metadata(path).map_err(|error| match error.raw_os_error() {
        Some(code) if code == rustix::io::Errno::LOOP.raw_os_error() => io::Error::new(
            io::ErrorKind::InvalidInput,
            "its symbolic links lead in a circle; name the file itself",
        ),
        _ => error,
    })
}

/// Opens a file for reading.
///
/// # Errors
/// It cannot be opened. Of kind [`io::ErrorKind::InvalidInput`], with the remedy: it is a directory, a named
/// pipe or a device.
pub fn open(path: &Path) -> io::Result<File> {
    if path == Path::new("-") {
        note(path);
        return Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?));
    }
    let handed_over = is_handed_over(path);
    // Looked at before it is opened, because opening some devices does something.
    suitable(&metadata(path)?, handed_over, path)?;
    let mut how = File::options();
    how.read(true);
    if !handed_over {
        // Should a pipe take the file's place in between, opening it does not wait.
        how.custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = how.open(path)?;
    suitable(&file.metadata()?, handed_over, path)?;
    note(path);
    Ok(file)
}

fn suitable(found: &fs::Metadata, handed_over: bool, path: &Path) -> io::Result<()> {
    let kind = found.file_type();
    let refused = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, what.to_owned()));
    if kind.is_file() || path == Path::new("/dev/null") {
        Ok(())
    } else if kind.is_dir() {
        refused("this is a directory; name the files in it")
    } else if handed_over && (kind.is_fifo() || kind.is_char_device() || kind.is_socket()) {
        Ok(())
    } else if kind.is_fifo() {
        refused("this is a named pipe, which may never end; read it into a file first: cat PIPE > FILE")
    } else {
        refused("this is a device or a socket, not a file; name a regular file")
    }
}

/// Reads a file of `most` bytes at most. What was handed over can be read once: its content is kept for those
/// who read it again.
///
/// # Errors
/// See [`open`]; besides, of kind [`io::ErrorKind::FileTooLarge`] or [`io::ErrorKind::TimedOut`], it is
/// longer or took longer.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let found = file.metadata()?;
    if !is_handed_over(path) {
        return drain(file, most, None);
    }
    let identity = (found.dev(), found.ino());
    let mut kept = KEPT.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some((_, bytes)) = kept.iter().find(|(known, bytes)| *known == identity && !bytes.is_empty()) {
        return within(bytes.clone(), most);
    }
    let is_patient = found.is_file() || file.is_terminal();
    let bytes = drain(file, most, (!is_patient).then_some(PIPE_LIMIT))?;
    if kept.len() < MAX_KEPT {
        kept.push((identity, bytes.clone()));
    }
    Ok(bytes)
}

fn within(bytes: Vec<u8>, most: u64) -> io::Result<Vec<u8>> {
    if bytes.len() as u64 <= most {
        return Ok(bytes);
    }
    let what = format!("longer than {}, the most that is read of such a file", size(most));
    Err(io::Error::new(io::ErrorKind::FileTooLarge, what))
}

/// Reads text, which must be UTF-8, of `most` bytes at most.
///
/// # Errors
/// See [`read`]; besides it is no UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        io::Error::new(io::ErrorKind::InvalidData, format!("line {line} is not UTF-8"))
    })
}

fn drain(mut file: File, most: u64, limit: Option<Duration>) -> io::Result<Vec<u8>> {
    let until = limit.map(|limit| Instant::now() + limit);
    let mut bytes = Vec::new();
    let mut piece = vec![0; PIECE];
    loop {
        if let Some(until) = until {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || poll::readable(&[file.as_fd()], left)? != [true] {
                let seconds = limit.unwrap_or_default().as_secs();
                let what = format!("not everything came within {seconds} s; write it into a file first");
                return Err(io::Error::new(io::ErrorKind::TimedOut, what));
            }
        }
        match file.read(&mut piece) {
            Ok(0) => return Ok(bytes),
            Ok(length) => bytes.extend_from_slice(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        bytes = within(bytes, most)?;
    }
}

fn size(bytes: u64) -> String {
    if bytes >= 1 << 20 { format!("{} MiB", bytes >> 20) } else { format!("{bytes} bytes") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn only_what_ends_is_read() {
        let dir = std::env::temp_dir().join(format!("tidegate-input-{}", std::process::id()));
        fs::create_dir_all(&dir).expect("a directory");
        let (fifo, file) = (dir.join("fifo"), dir.join("file"));
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::from_raw_mode(0o600)).expect("a pipe");
        fs::write(&file, "12345").expect("written");
        let kind = |path: &Path, most: u64| read(path, most).map_err(|error| error.kind());
        assert_eq!(kind(&file, 5), Ok(b"12345".to_vec()));
        assert_eq!(kind(&file, 4), Err(io::ErrorKind::FileTooLarge));
        assert_eq!(kind(Path::new("/dev/null"), 4), Ok(Vec::new()));
        for refused in [fifo.as_path(), Path::new("/dev/zero"), dir.as_path()] {
            assert_eq!(kind(refused, 4), Err(io::ErrorKind::InvalidInput), "{}", refused.display());
        }
        assert_eq!(kind(&dir.join("none"), 4), Err(io::ErrorKind::NotFound));
        std::os::unix::fs::symlink("loop", dir.join("loop")).expect("a link");
        let circle = read(&dir.join("loop"), 4).expect_err("a circle").to_string();
        assert_eq!(circle, "its symbolic links lead in a circle; name the file itself");
        fs::write(&file, b"a\n\xff").expect("written");
        assert_eq!(read_text(&file, 9).expect_err("no text").to_string(), "line 2 is not UTF-8");
        fs::remove_dir_all(dir).expect("removed");
    }

    #[test]
    fn what_was_read_is_known_by_every_name_it_has() {
        let dir = std::env::temp_dir().join(format!("tidegate-noted-{}", std::process::id()));
        fs::create_dir_all(dir.join("sub")).expect("a directory");
        let at = |name: &str| dir.join(name);
        for name in ["input", "other", "linked"] {
            fs::write(at(name), name).expect("written");
        }
        std::os::unix::fs::symlink("../input", at("sub/link")).expect("a link");
        fs::hard_link(at("input"), at("hard")).expect("a link");
        fs::hard_link(at("linked"), at("hard-too")).expect("a link");
        let names = ["input", "sub/../input", "sub/link", "hard"];
        assert!(names.iter().all(|name| was_read(&at(name)).is_none()), "nothing was read yet");
        read(&at("sub/link"), 9).expect("read");
        let real = fs::canonicalize(at("input")).expect("there");
        assert_eq!(
            names.map(|name| was_read(&at(name))),
            [const { None }; 4].map(|_: Option<()>| Some(real.clone()))
        );
        assert_eq!(["other", "hard-too", "none"].map(|name| was_read(&at(name))), [const { None }; 3]);
        let opened = File::open(at("input")).expect("open");
        assert_eq!(was_read(Path::new(&format!("/dev/fd/{}", opened.as_raw_fd()))), Some(real));
        assert_eq!(
            [Path::new("/dev/null"), &at("sub")].map(|path| (note(path), was_read(path)).1),
            [None, None]
        );
        fs::remove_dir_all(dir).expect("removed");
    }

    #[test]
    fn what_was_handed_over_is_read_and_bounded() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let path = format!("/dev/fd/{}", reader.as_raw_fd());
        writer.write_all(b"through").expect("written");
        let half = drain(
            File::from(std::os::fd::OwnedFd::from(reader.try_clone().expect("a pipe"))),
            9,
            Some(Duration::ZERO),
        );
        assert_eq!(half.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
        drop(writer);
        for _ in 0..2 {
            assert_eq!(read(Path::new(&path), 7).expect("read"), b"through");
        }
        assert_eq!(read(Path::new(&path), 6).map_err(|error| error.kind()), Err(io::ErrorKind::FileTooLarge));
    }
}
