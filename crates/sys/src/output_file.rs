//! Files that this program writes for its user: whole or not at all, and never through another user's link.
//!
//! A path may lead through directories that others can write (`/tmp`). Any user who may write there can plant
//! a symbolic link, and the next `-o /tmp/report.html` of root overwrites what the link names. So a path is
//! walked component by component, as with `fs.protected_symlinks=1`: a link in a directory that others can
//! write is followed only if it is our own. The file itself is written beside its place, under an
//! unpredictable name (`O_EXCL|O_NOFOLLOW`), and renamed once it is on the disk.
//!
//! What is no regular file (`/dev/null`, `/dev/stdout`, `>(command)`, a named pipe with a reader) is opened
//! and written to. A directory, a block device, a socket and a named pipe without a reader are refused.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use rustix::fs::{
    Access, AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, Uid, accessat, fchmod, fchown, fcntl_getfl,
    fcntl_setfl, fstat, fstatfs, fsync, openat, readlinkat, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use tidegate_text::line;

/// The most symbolic links on the way to a file, as in Linux.
const MAX_LINKS: usize = 40;
/// The most names tried for the temporary file.
const MAX_NAMES: usize = 16;
/// The file system of processes, in which links refer to open files (`PROC_SUPER_MAGIC`).
const PROC: i64 = 0x9fa0;
/// Permission bits of other users who may write a directory.
const OTHERS: u32 = 0o022;

/// A file being written. What is dropped without [`OutputFile::commit`] leaves no trace.
#[derive(Debug)]
pub struct OutputFile {
    file: File,
    /// `None`: it is written in place.
    pending: Option<Pending>,
}

/// A temporary file and the place it is meant for.
#[derive(Debug)]
struct Pending {
    dir: OwnedFd,
    temporary: OsString,
    name: OsString,
}

/// Writes a whole file.
///
/// # Errors
/// It cannot be written, or its path leads over a link that another user may have planted. The file from
/// before then stays.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OutputFile::create(path)?;
    file.write_all(bytes)?;
    file.commit()
}

/// As [`write()`], without waiting for the disk: for what is only of use while this process runs.
///
/// # Errors
/// As [`write()`].
pub fn write_unsynced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OutputFile::create(path)?;
    file.write_all(bytes)?;
    file.place(false)
}

/// Refuses what [`OutputFile::create`] would refuse, so far as that shows without opening an existing file.
/// Where there is none, a temporary one is made and removed: that shows what permissions do not (a file
/// system that takes no files, such as `/proc`).
///
/// # Errors
/// See [`write()`].
pub fn check(path: &Path) -> io::Result<()> {
    let place = PathTarget::find_file(path)?;
    if place.in_proc {
        return Ok(());
    }
    match place.found {
        Some(_) => Ok(accessat(&place.dir, &place.name, Access::WRITE_OK, AtFlags::EACCESS)?),
        None => place.beside(None).map(drop),
    }
}

/// Opens a file to read it and go on at its end, made where there is none, for this process alone: a second
/// one that opens it so is refused, as long as the first has it open.
///
/// # Errors
/// See [`write()`]; or it is no regular file, or another process has it.
pub fn open_to_continue(path: &Path) -> io::Result<File> {
    let place = PathTarget::find_file(path)?;
    let is_regular = |found: &Stat| FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    if place.in_proc || !place.found.as_ref().is_none_or(is_regular) {
        return Err(refused("it is no regular file; name one"));
    }
    let make = if place.found.is_some() { OFlags::empty() } else { OFlags::CREATE | OFlags::EXCL };
    let how = make | OFlags::RDWR | OFlags::APPEND | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(openat(&place.dir, &place.name, how, Mode::from_raw_mode(0o666))?);
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(refused("another process writes it now")),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Renames a regular file to its name with `suffix` behind it, in its directory: what had that name is
/// replaced.
///
/// # Errors
/// See [`write()`]; or there is none, or it is no regular file.
pub fn set_aside(path: &Path, suffix: &str) -> io::Result<()> {
    let place = PathTarget::find_file(path)?;
    let kind = place.found.as_ref().map(|found| FileType::from_raw_mode(found.st_mode));
    if place.in_proc || kind != Some(FileType::RegularFile) {
        return Err(refused("it is no regular file; name one"));
    }
    let mut aside = place.name.clone();
    aside.push(suffix);
    Ok(renameat(&place.dir, &place.name, &place.dir, &aside)?)
}

/// Removes the temporary files of processes that died while they wrote this file. Only for a file that no
/// other process writes now.
pub fn remove_unfinished(path: &Path) {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { return };
    let front = front(name);
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let random =
            found.as_bytes().strip_prefix(front.as_bytes()).and_then(|rest| rest.strip_suffix(TEMPORARY));
        if random.is_some_and(|random| random.len() == RANDOM && random.iter().all(u8::is_ascii_hexdigit)) {
            // A file that cannot be removed does no harm.
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

impl OutputFile {
    /// Begins a file that appears under its name once it is [committed](OutputFile::commit). An existing one
    /// keeps its mode, and its owner where root writes and others cannot have made it.
    ///
    /// # Errors
    /// See [`write()`].
    pub fn create(path: &Path) -> io::Result<OutputFile> {
        OutputFile::open(path, true)
    }

    /// Begins a file that others read while it grows: it is emptied and written in its place.
    ///
    /// # Errors
    /// See [`write()`].
    pub fn create_growing(path: &Path) -> io::Result<OutputFile> {
        OutputFile::open(path, false)
    }

    /// Puts the file in its place, on the disk. Nothing to do for a pipe or a device.
    ///
    /// # Errors
    /// It cannot; the temporary file is gone then.
    pub fn commit(self) -> io::Result<()> {
        self.place(true)
    }

    fn place(mut self, on_disk: bool) -> io::Result<()> {
        self.file.flush()?;
        let Some(pending) = &self.pending else { return Ok(()) };
        if on_disk {
            fsync(&self.file)?;
        }
        renameat(&pending.dir, &pending.temporary, &pending.dir, &pending.name)?;
        // A file system that cannot write directories out keeps its names in another way. `dir` is open for
        // looking only (O_PATH).
        let look = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if on_disk && let Ok(dir) = openat(&pending.dir, ".", look, Mode::empty()) {
            let _ = fsync(dir);
        }
        self.pending = None;
        Ok(())
    }

    /// The file as it is now, for another process to write to.
    ///
    /// # Errors
    /// There is no other descriptor to be had.
    pub fn try_clone_file(&self) -> io::Result<File> {
        self.file.try_clone()
    }

    /// Makes it readable for its owner only; to be called before anything is written.
    ///
    /// # Errors
    /// The file system does not do that.
    pub fn make_private(&self) -> io::Result<()> {
        Ok(fchmod(&self.file, Mode::from_raw_mode(0o600))?)
    }

    fn open(path: &Path, whole: bool) -> io::Result<OutputFile> {
        let place = PathTarget::find_file(path)?;
        match place.found {
            _ if place.in_proc => {
                let how = OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC;
                in_place(openat(&place.dir, &place.name, how, Mode::empty())?)
            }
            None if whole => place.beside(None),
            None => in_place(place.open(OFlags::CREATE | OFlags::EXCL)?),
            Some(found) => match FileType::from_raw_mode(found.st_mode) {
                FileType::RegularFile if whole => place.beside(Some(&found)),
                FileType::RegularFile => in_place(place.open(OFlags::TRUNC)?),
                FileType::Fifo => in_place(place.open_pipe()?),
                // A terminal, /dev/null.
                _ => in_place(place.open(OFlags::empty())?),
            },
        }
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for OutputFile {
    fn drop(&mut self) {
        if let Some(pending) = &self.pending {
            let _ = unlinkat(&pending.dir, &pending.temporary, AtFlags::empty());
        }
    }
}

fn in_place(file: OwnedFd) -> io::Result<OutputFile> {
    Ok(OutputFile { file: file.into(), pending: None })
}

fn is_directory() -> io::Error {
    io::Error::new(io::ErrorKind::IsADirectory, "it is a directory; name a file in it")
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::PermissionDenied, format!("refused: {why}"))
}

/// Where a path leads: a name in a directory, no link.
struct PathTarget {
    dir: OwnedFd,
    name: OsString,
    found: Option<Stat>,
    /// Others can write the directory.
    is_shared: bool,
    /// An open file of a process: the kernel follows that link, which cannot be planted.
    in_proc: bool,
}

impl PathTarget {
    /// Walks to a file that may be written, by its kind and owner.
    fn find_file(path: &Path) -> io::Result<PathTarget> {
        if path.as_os_str().is_empty() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "the name is empty; name a file"));
        }
        if path.as_os_str().as_bytes().ends_with(b"/") {
            return Err(is_directory());
        }
        let place = PathTarget::find(path)?;
        let Some(found) = place.found.as_ref().filter(|_| !place.in_proc) else { return Ok(place) };
        match FileType::from_raw_mode(found.st_mode) {
            FileType::Directory => Err(is_directory()),
            FileType::BlockDevice => Err(refused("it is a block device; name a file")),
            FileType::Socket => Err(refused("it is a socket; name a file")),
            _ if place.is_shared && found.st_uid != geteuid().as_raw() => {
                Err(refused("it belongs to another user, in a directory that others can write"))
            }
            _ => Ok(place),
        }
    }

    /// Walks to it, following links that are safe to follow.
    fn find(path: &Path) -> io::Result<PathTarget> {
        let look = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut steps = steps(path);
        let mut dir = openat(CWD, ".", look, Mode::empty())?;
        let mut links = 0;
        loop {
            let Some(step) = steps.pop_front() else { return Err(is_directory()) };
            let is_last = steps.is_empty();
            let around = fstat(&dir)?;
            let is_shared = around.st_mode & OTHERS != 0;
            let found = match statat(&dir, &step, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(found) => Some(found),
                Err(Errno::NOENT) if is_last => None,
                Err(Errno::NOENT) => {
                    let missing = |above: &&Path| above.file_name() == Some(&*step) && !above.exists();
                    let above: Vec<&Path> = path.ancestors().collect();
                    let missing = above.into_iter().rev().find(missing).unwrap_or(Path::new(&step));
                    let missing = missing.to_string_lossy();
                    let why = format!("there is no directory {}; make it first", line(&missing));
                    return Err(io::Error::new(io::ErrorKind::NotFound, why));
                }
                Err(error) => return Err(error.into()),
            };
            let is_link =
                found.is_some_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink);
            let in_proc = is_link && fstatfs(&dir)?.f_type as i64 == PROC;
            match found {
                Some(link) if is_link && !in_proc => {
                    links += 1;
                    if links > MAX_LINKS {
                        return Err(Errno::LOOP.into());
                    }
                    if is_shared && link.st_uid != geteuid().as_raw() {
                        return Err(refused(&format!(
                            "{} is another user's symbolic link, in a directory that others can write",
                            line(&step.to_string_lossy())
                        )));
                    }
                    let to = readlinkat(&dir, &step, Vec::new())?;
                    for step in self::steps(Path::new(OsStr::from_bytes(to.as_bytes()))).into_iter().rev() {
                        steps.push_front(step);
                    }
                }
                found if is_last && step != ".." && step != "/" => {
                    return Ok(PathTarget { dir, name: step, found, is_shared, in_proc });
                }
                _ => {
                    let follow = if in_proc { OFlags::empty() } else { OFlags::NOFOLLOW };
                    dir = openat(&dir, &step, look | follow, Mode::empty())?;
                }
            }
        }
    }

    /// Opens the file that is there, or makes it.
    fn open(&self, how: OFlags) -> io::Result<OwnedFd> {
        let how = how | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        Ok(openat(&self.dir, &self.name, how, Mode::from_raw_mode(0o666))?)
    }

    /// Opens a named pipe that has a reader; without one the kernel would make us wait for it.
    fn open_pipe(&self) -> io::Result<OwnedFd> {
        let pipe = self.open(OFlags::NONBLOCK).map_err(|error| match error.raw_os_error() {
            Some(code) if code == Errno::NXIO.raw_os_error() => {
                refused("it is a named pipe without a reader; start its reader first, or name a file")
            }
            _ => error,
        })?;
        // From here on a slow reader is waited for.
        fcntl_setfl(&pipe, fcntl_getfl(&pipe)? - OFlags::NONBLOCK)?;
        Ok(pipe)
    }

    /// A temporary file beside the place.
    fn beside(self, before: Option<&Stat>) -> io::Result<OutputFile> {
        if before.is_some() {
            // A rename needs no permission to write the file; that was removed on purpose.
            drop(self.open(OFlags::empty())?);
        }
        let how = OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::WRONLY | OFlags::CLOEXEC;
        for _ in 0..MAX_NAMES {
            let temporary = temporary(&self.name);
            match openat(&self.dir, &temporary, how, Mode::from_raw_mode(0o666)) {
                Ok(file) => {
                    if let Some(before) = before {
                        keep(&file, before)?;
                    }
                    let pending = Some(Pending { dir: self.dir, temporary, name: self.name });
                    return Ok(OutputFile { file: file.into(), pending });
                }
                Err(Errno::EXIST) => {}
                // A file that may be written in a directory that may not: the only way is in place.
                Err(Errno::ACCESS | Errno::PERM | Errno::ROFS) if before.is_some() => {
                    return in_place(self.open(OFlags::TRUNC)?);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::EXIST.into())
    }
}

/// Mode and owner of the file that was there; the owner only as far as we may.
fn keep(file: &OwnedFd, before: &Stat) -> io::Result<()> {
    let ours = fstat(file)?;
    if (ours.st_uid, ours.st_gid) != (before.st_uid, before.st_gid) {
        let _ = fchown(file, Some(Uid::from_raw(before.st_uid)), Some(Gid::from_raw(before.st_gid)));
    }
    Ok(fchmod(file, Mode::from_raw_mode(before.st_mode & 0o777))?)
}

/// How a temporary file's name ends, behind so many digits.
const TEMPORARY: &[u8] = b".tmp";
const RANDOM: usize = 16;

/// A hidden name that cannot be known before.
fn temporary(name: &OsStr) -> OsString {
    // Seeded by the kernel for each value; names stay short enough for any file system.
    let random = RandomState::new().hash_one(std::process::id());
    let mut out = front(name);
    out.push(format!("{random:0RANDOM$x}"));
    out.push(OsStr::from_bytes(TEMPORARY));
    out
}

/// What the names of a file's temporary files begin with.
fn front(name: &OsStr) -> OsString {
    let mut out = OsString::from(".");
    out.push(OsStr::from_bytes(&name.as_bytes()[..name.len().min(100)]));
    out.push(".");
    out
}

/// A path's components; `/` first if it is absolute.
fn steps(path: &Path) -> VecDeque<OsString> {
    path.components()
        .filter(|component| !matches!(component, Component::CurDir))
        .map(|component| component.as_os_str().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::PathBuf;

    /// A directory of this test's own.
    fn directory(name: &str) -> PathBuf {
        let dir = std::env::temp_dir().join(format!("tidegate-output-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        fs::create_dir(&dir).expect("a directory");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).expect("its mode");
        dir
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).expect("readable").flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_there_whole_or_not_at_all() {
        let dir = directory("whole");
        let path = dir.join("report");
        fs::write(&path, "before").expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("its mode");
        let mut begun = OutputFile::create(&path).expect("begun");
        begun.write_all(b"aft").expect("written");
        assert_eq!(fs::read(&path).expect("there"), b"before");
        drop(begun);
        assert_eq!(names(&dir), ["report"], "what was given up leaves nothing");
        // A process that is killed leaves it.
        std::mem::forget(OutputFile::create(&path).expect("begun"));
        for other in [".other.0123456789abcdef.tmp", ".report.0123.tmp"] {
            fs::write(dir.join(other), "").expect("written");
        }
        assert_eq!(names(&dir).len(), 4);
        remove_unfinished(&path);
        assert_eq!(names(&dir), [".other.0123456789abcdef.tmp", ".report.0123.tmp", "report"]);
        for other in [".other.0123456789abcdef.tmp", ".report.0123.tmp"] {
            fs::remove_file(dir.join(other)).expect("removed");
        }
        write(&path, b"after").expect("written");
        assert_eq!(fs::read(&path).expect("there"), b"after");
        assert_eq!(fs::metadata(&path).expect("there").permissions().mode() & 0o777, 0o640);
        write(&dir.join("new"), b"1").expect("written");
        assert_eq!(names(&dir), ["new", "report"]);
        fs::remove_dir_all(dir).expect("removed");
    }

    #[test]
    fn what_is_set_aside_is_beside_its_place_and_a_link_is_followed() {
        let dir = directory("aside");
        fs::write(dir.join("log"), "new").expect("written");
        fs::write(dir.join("log.1"), "old").expect("written");
        symlink("log", dir.join("link")).expect("a link");
        set_aside(&dir.join("link"), ".1").expect("set aside");
        assert_eq!(names(&dir), ["link", "log.1"]);
        assert_eq!(fs::read(dir.join("log.1")).expect("there"), b"new");
        // Nothing there, a device, a directory.
        for path in [dir.join("log"), PathBuf::from("/dev/null"), dir.clone()] {
            assert!(set_aside(&path, ".1").is_err(), "{}", path.display());
        }
        fs::remove_dir_all(dir).expect("removed");
    }

    #[test]
    fn a_file_to_continue_belongs_to_one_process() {
        let dir = directory("continue");
        let path = dir.join("journal");
        let mut file = open_to_continue(&path).expect("made");
        file.write_all(b"one").expect("written");
        let error = open_to_continue(&path).expect_err("refused").to_string();
        assert_eq!(error, "refused: another process writes it now");
        drop(file);
        let mut file = open_to_continue(&path).expect("open");
        let mut before = String::new();
        io::Read::read_to_string(&mut file, &mut before).expect("read");
        file.write_all(b" two").expect("written");
        assert_eq!((before.as_str(), fs::read_to_string(&path).expect("there").as_str()), ("one", "one two"));
        let error = open_to_continue(Path::new("/dev/null")).expect_err("refused").to_string();
        assert_eq!(error, "refused: it is no regular file; name one");
        fs::remove_dir_all(dir).expect("removed");
    }

    #[test]
    fn links_are_followed_where_only_we_can_make_them() {
        let dir = directory("links");
        symlink("there", dir.join("own")).expect("a link");
        fs::create_dir(dir.join("sub")).expect("a directory");
        symlink("../own", dir.join("sub/over")).expect("a link");
        write(&dir.join("sub/over"), b"x").expect("our own link is followed");
        assert_eq!(fs::read(dir.join("there")).expect("there"), b"x");
        symlink("b", dir.join("a")).expect("a link");
        symlink("a", dir.join("b")).expect("a link");
        assert_eq!(write(&dir.join("a"), b"x").unwrap_err().raw_os_error(), Some(Errno::LOOP.raw_os_error()));
        fs::remove_dir_all(dir).expect("removed");
    }

    #[test]
    fn links_and_files_of_others_are_refused_where_they_may_plant_them() {
        if !geteuid().is_root() {
            println!("SKIPPED: only root can play somebody else");
            return;
        }
        let dir = directory("planted");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o1777)).expect("its mode");
        fs::create_dir(dir.join("private")).expect("a directory");
        fs::write(dir.join("private/canary"), "untouched").expect("written");
        let (link, way) = (dir.join("report"), dir.join("way"));
        symlink("private/canary", &link).expect("a link");
        symlink("private", &way).expect("a link");
        fs::write(dir.join("theirs"), "").expect("written");
        let other = (Some(65534), Some(65534));
        for path in [&link, &way, &dir.join("theirs")] {
            std::os::unix::fs::lchown(path, other.0, other.1).expect("given away");
        }
        for planted in [link, way.join("canary"), dir.join("theirs")] {
            let continued = |path: &Path| open_to_continue(path).map(drop);
            let whole = |path: &Path| OutputFile::create(path).map(drop);
            let growing = |path: &Path| OutputFile::create_growing(path).map(drop);
            for attempt in [whole, growing, continued] {
                let error = attempt(&planted).expect_err("refused");
                assert_eq!(error.kind(), io::ErrorKind::PermissionDenied, "{}: {error}", planted.display());
            }
        }
        assert_eq!(fs::read_to_string(dir.join("private/canary")).expect("there"), "untouched");
        assert_eq!(names(&dir), ["private", "report", "theirs", "way"]);
        write(&dir.join("fresh"), b"x").expect("our own file in a directory of all");
        fs::remove_dir_all(dir).expect("removed");
    }

    #[test]
    fn a_named_pipe_needs_its_reader_and_a_socket_is_refused() {
        let dir = directory("pipe");
        let (pipe, socket) = (dir.join("pipe"), dir.join("socket"));
        rustix::fs::mkfifoat(CWD, &pipe, Mode::from_raw_mode(0o600)).expect("a pipe");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        for attempt in [OutputFile::create, OutputFile::create_growing] {
            let error = attempt(&pipe).expect_err("nobody reads it").to_string();
            assert_eq!(
                error,
                "refused: it is a named pipe without a reader; start its reader first, or name a file"
            );
            let error = attempt(&socket).expect_err("a socket").to_string();
            assert_eq!(error, "refused: it is a socket; name a file");
        }
        // A reader that need not wait for a writer.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut reader = File::from(openat(CWD, &pipe, flags, Mode::empty()).expect("open"));
        write(&pipe, b"through").expect("written");
        let mut read = String::new();
        io::Read::read_to_string(&mut reader, &mut read).expect("read");
        assert_eq!(read, "through");
        fs::remove_dir_all(dir).expect("removed");
    }

    #[test]
    fn devices_and_open_files_are_written_to() {
        write(Path::new("/dev/null"), b"x").expect("the device takes it");
        assert!(write(Path::new("/dev/full"), b"x").is_err());
        for directory in ["/", "/dev", "..", "new/"] {
            let error = write(Path::new(directory), b"x").unwrap_err();
            assert_eq!(error.to_string(), "it is a directory; name a file in it", "{directory}");
        }
        assert_eq!(write(Path::new(""), b"x").unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let error = write(Path::new("none/such"), b"x").unwrap_err();
        assert_eq!(error.to_string(), "there is no directory none; make it first");
        let (mut reader, writer) = io::pipe().expect("a pipe");
        let fd = std::os::fd::AsRawFd::as_raw_fd(&writer);
        for dir in ["/dev/fd", "/proc/self/fd"] {
            write(Path::new(&format!("{dir}/{fd}")), b"through\n").expect("written");
        }
        drop(writer);
        let mut text = String::new();
        io::Read::read_to_string(&mut reader, &mut text).expect("read");
        assert_eq!(text, "through\nthrough\n");
    }
}
