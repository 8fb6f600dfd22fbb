//! The first stage: leaves the caller's session, keyring and descriptors behind, enters the namespaces,
//! starts the second.

use std::ffi::{OsStr, OsString};
use std::io::{self, Stdin};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

use rustix::process::{Gid, Signal, Uid};
use rustix::thread::UnshareFlags;

use crate::control::{Control, Message};
use crate::error::SandboxError;
use crate::paths::INIT;

/// Plays the stage; the exit code of the process.
pub(crate) fn run(mut words: impl Iterator<Item = OsString>) -> i32 {
    let control = Control::new(io::stdin());
    let user_namespace = words.next().as_deref() == Some(OsStr::new("user"));
    let words: Vec<OsString> = words.collect();
    match enter(&control, user_namespace, &words) {
        Ok(mut child) => {
            let _ = control.send(&Message::Started(child.id()));
            child.wait().ok().and_then(|status| status.code()).unwrap_or(1)
        }
        Err(error) => {
            let _ = control.send(&Message::Failed(error));
            1
        }
    }
}

fn enter(control: &Control<Stdin>, user_namespace: bool, words: &[OsString]) -> Result<Child, SandboxError> {
    let step = |name: &str, result: io::Result<()>| result.map_err(|error| SandboxError::new(name, error));
    // A session of its own has no terminal, so there is none to type into, and no process group of the
    // caller's.
    step("begin a session", rustix::process::setsid().map(drop).map_err(Into::into))?;
    step("close what was inherited", tidegate_sys::confine::close_on_exec_from(3))?;
    step("begin a session keyring", tidegate_sys::confine::new_session_keyring())?;
    if user_namespace {
        step("create a user namespace", tidegate_sys::confine::unshare(UnshareFlags::NEWUSER))?;
        // The user mapping inside is written by the caller: only it may map more than ourselves.
        let mapped = control.send(&Message::MapUsers).and_then(|()| control.receive());
        if !matches!(mapped, Ok((Message::Mapped, _))) {
            let error = io::Error::other("the caller did not map our user");
            return Err(SandboxError::new("enter the user namespace", error));
        }
        step("become root inside", become_root())?;
    }
    let rest = UnshareFlags::NEWNS
        | UnshareFlags::NEWNET
        | UnshareFlags::NEWPID
        | UnshareFlags::NEWIPC
        | UnshareFlags::NEWUTS
        | UnshareFlags::NEWCGROUP;
    step("create mount, network, process and cgroup namespaces", tidegate_sys::confine::unshare(rest))?;
    // By this name it is found in any directory, and as any user.
    let mut command = Command::new("/proc/self/exe");
    command.arg0(INIT).arg(if user_namespace { "user" } else { "root" }).args(words);
    let socket = io::stdin()
        .as_fd()
        .try_clone_to_owned()
        .map_err(|error| SandboxError::new("pass on the control socket", error))?;
    command.stdin(socket);
    // A change of credentials forgets the earlier wish to die with the parent.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    tidegate_sys::process::die_with_parent(&mut command);
    command.spawn().map_err(|error| SandboxError::new("start the first process inside", error))
}

/// Takes the number 0 of the user namespace; a caller mapped to 0 has it already.
fn become_root() -> io::Result<()> {
    if rustix::process::geteuid() == Uid::ROOT {
        return Ok(());
    }
    rustix::thread::set_thread_groups(&[])?;
    rustix::thread::set_thread_res_gid(Gid::ROOT, Gid::ROOT, Gid::ROOT)?;
    Ok(rustix::thread::set_thread_res_uid(Uid::ROOT, Uid::ROOT, Uid::ROOT)?)
}
