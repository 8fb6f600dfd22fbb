//! The user outside of the sandbox's root.
//!
//! An ordinary user is mapped to root inside, and no other user is mapped. Root becomes a spare range of
//! users, so that a process that got out would own nothing; the host's files are then shown to that range
//! through identity-mapped mounts (Linux 5.12, overlays over them 5.19). Where a file system cannot do that,
//! users are mapped to themselves, and only the user namespace confines them.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::OpenTreeFlags;

use crate::control::{Control, Message};
use crate::mounts;
use crate::paths::OWN;
use crate::spec::{Spec, Users};

/// The first user of the spare ranges; systemd's list of user numbers keeps them free.
const FIRST_SPARE: u32 = 0x7000_0000;
/// Users in a range, and how many ranges there are.
const RANGE: u32 = 65_536;
const RANGES: u32 = 4000;
/// The most host mounts that are mapped.
const MAX_MOUNTS: usize = 64;

/// Writes the maps of the user namespace of process `pid`.
pub(crate) fn map_users(pid: u32, users: Users) -> io::Result<()> {
    let proc = PathBuf::from(format!("/proc/{pid}"));
    let (uid, gid) = (tidegate_sys::process::effective_uid(), tidegate_sys::process::effective_gid());
    if users == Users::Spare {
        let map = format!("0 {} {RANGE}\n", FIRST_SPARE + pid % RANGES * RANGE);
        return fs::write(proc.join("uid_map"), &map).and_then(|()| fs::write(proc.join("gid_map"), &map));
    }
    if uid == 0 {
        let all = |file: &str| fs::read_to_string(format!("/proc/self/{file}"));
        let whole = all("uid_map").and_then(|map| {
            fs::write(proc.join("uid_map"), identity(&map))?;
            fs::write(proc.join("gid_map"), identity(&all("gid_map")?))
        });
        if whole.is_ok() {
            return whole;
        }
    }
    fs::write(proc.join("setgroups"), "deny")?;
    fs::write(proc.join("uid_map"), format!("0 {uid} 1\n"))?;
    fs::write(proc.join("gid_map"), format!("0 {gid} 1\n"))
}

/// A map of the identity over what we have ourselves: `inside outside count`, inside equal to outside.
fn identity(map: &str) -> String {
    map.lines()
        .filter_map(|line| {
            let mut fields = line.split_whitespace();
            let (inside, _, count) = (fields.next()?, fields.next()?, fields.next()?);
            Some(format!("{inside} {inside} {count}\n"))
        })
        .collect()
}

/// Sends the host's mounts as the spare users of process `pid` see them.
///
/// # Errors
/// One of them cannot be mapped, and the sandbox needs it.
pub(crate) fn send_mounts(control: &Control, pid: u32, users: Users, spec: &Spec) -> io::Result<()> {
    if users == Users::Spare {
        // What is new inside has no mapped mount to come from.
        let unmapped = |path: &PathBuf| OWN.iter().any(|own| path.starts_with(Path::new("/").join(own)));
        if spec.keep.iter().chain([&spec.cwd, &spec.executable]).any(unmapped) {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let namespace = File::open(format!("/proc/{pid}/ns/user"))?;
        let points = mapped_points()?;
        let needed = needed_points(spec, &points);
        for point in &points {
            match mapped_mount(point, &namespace) {
                Ok(mount) => control
                    .send_with(&Message::Mount(point.clone()), Some(std::os::fd::AsFd::as_fd(&mount)))?,
                Err(error) if needed.contains(&point) => return Err(error),
                Err(_) => control
                    .send(&Message::Note(format!("{} of the host is not visible inside", point.display())))?,
            }
        }
    }
    control.send(&Message::Mapped)
}

/// The host's mount points that a sandbox may show, parents first.
fn mapped_points() -> io::Result<Vec<PathBuf>> {
    let mut points: Vec<PathBuf> = mounts::mount_points()?.into_iter().map(|(point, _)| point).collect();
    points.retain(|point| !OWN.iter().any(|own| point.starts_with(Path::new("/").join(own))));
    points.dedup();
    points.truncate(MAX_MOUNTS);
    Ok(points)
}

/// Those that hold what the sandbox cannot do without.
fn needed_points<'a>(spec: &Spec, points: &'a [PathBuf]) -> Vec<&'a PathBuf> {
    let paths = [Path::new("/"), &spec.cwd, &spec.executable]
        .into_iter()
        .chain(spec.keep.iter().map(PathBuf::as_path));
    paths.filter_map(|path| points.iter().rfind(|point| path.starts_with(point))).collect()
}

fn mapped_mount(point: &Path, namespace: &File) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let mount = rustix::mount::open_tree(CWD, point, flags)?;
    tidegate_sys::confine::mount_idmapped(&mount, namespace)?;
    Ok(mount)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_of_a_path_is_the_innermost() {
        let points: Vec<PathBuf> = ["/", "/home", "/home/a", "/srv"].iter().map(PathBuf::from).collect();
        let spec =
            Spec { cwd: "/home/a/x".into(), executable: "/usr/bin/tidegate".into(), ..Spec::default() };
        let needed: Vec<String> =
            needed_points(&spec, &points).iter().map(|point| point.display().to_string()).collect();
        assert_eq!(needed, ["/", "/home/a", "/"]);
    }

    #[test]
    fn the_spare_ranges_stay_below_two_to_the_thirty_first() {
        assert!(u64::from(FIRST_SPARE) + u64::from(RANGES) * u64::from(RANGE) <= 1 << 31);
    }
}
