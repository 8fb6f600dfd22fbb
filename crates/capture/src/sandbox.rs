//! Which sandbox this system lets us make, and what to do where it lets us make none.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdout};
use std::sync::OnceLock;

use tidegate_sandbox::{Sandbox, SandboxError, Spec, Users};
use tidegate_sys::process;

use super::error::CaptureError;

/// Whether a sandbox can be made here; tests that need one print the reason and skip otherwise.
///
/// # Errors
/// The reason, with its remedy.
pub fn available(executable: &Path) -> Result<(), CaptureError> {
    let spec = Spec { executable: executable.to_owned(), cwd: "/".into(), ..Spec::default() };
    start(&spec).map(drop)
}

/// Makes the tightest sandbox that is possible: root's users become spare ones where the kernel can show them
/// the host's files, otherwise they are mapped to themselves; without user namespaces root's capabilities and
/// the system call filter confine.
pub(super) fn start(spec: &Spec) -> Result<(Sandbox, ChildStdout, ChildStderr), CaptureError> {
    let root = process::effective_uid() == 0;
    if root && let Ok(started) = Sandbox::start(spec, Users::Spare) {
        return Ok(started);
    }
    match Sandbox::start(spec, Users::Namespace) {
        Ok(started) => Ok(started),
        Err(first) if first.forbidden && root => {
            Sandbox::start(spec, Users::Caller).map_err(|second| refused(&second, Some(&first)))
        }
        Err(error) => Err(refused(&error, None)),
    }
}

/// The program that plays the tools in place of ourselves, or why there is none.
static PLAYER: OnceLock<Result<PathBuf, String>> = OnceLock::new();

/// Names the program that plays the tools where no option names one, for processes whose own executable does
/// not call [`dispatch`](crate::dispatch), such as an interpreter of Python; or says why there is none, so
/// that scripts are refused. Only the first call counts.
pub fn played_by(program: Result<PathBuf, String>) {
    let _ = PLAYER.set(program);
}

/// The executable that plays the tools: the one named, the one of [`played_by`], or ourselves.
pub(super) fn executable(named: Option<&Path>) -> Result<PathBuf, CaptureError> {
    let executable = match (named, PLAYER.get()) {
        (Some(path), _) => path.to_owned(),
        (None, Some(Ok(path))) => path.clone(),
        (None, Some(Err(why))) => return Err(CaptureError::Sandbox(why.clone())),
        (None, None) => std::env::current_exe().map_err(CaptureError::io("find our own executable"))?,
    };
    fs::canonicalize(executable).map_err(CaptureError::io("find our own executable"))
}

fn refused(error: &SandboxError, before: Option<&SandboxError>) -> CaptureError {
    if !error.forbidden {
        return CaptureError::Sandbox(error.to_string());
    }
    let reason = match before {
        Some(before) => format!("{before}; without a user namespace: {error}"),
        None => error.to_string(),
    };
    CaptureError::Forbidden { reason, remedy: remedy() }
}

/// What an administrator can change, as this system shows it.
fn remedy() -> String {
    let setting = |name: &str| {
        fs::read_to_string(format!("/proc/sys/{name}")).ok().and_then(|text| text.trim().parse::<u64>().ok())
    };
    let root = process::effective_uid() == 0;
    let change = if setting("user/max_user_namespaces") == Some(0) {
        "allow user namespaces: `sysctl -w user.max_user_namespaces=10000`"
    } else if setting("kernel/unprivileged_userns_clone") == Some(0) && !root {
        "allow user namespaces: `sysctl -w kernel.unprivileged_userns_clone=1`"
    } else if setting("kernel/apparmor_restrict_unprivileged_userns") == Some(1) && !root {
        "allow user namespaces: `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"
    } else if root {
        "in a container: start it with `--privileged`, or with `--security-opt seccomp=unconfined \
        --security-opt systempaths=unconfined --cap-add SYS_ADMIN`"
    } else {
        "in a container: start it with `--security-opt seccomp=unconfined --security-opt \
        systempaths=unconfined`"
    };
    if root { format!("help: {change}") } else { format!("help: {change}; or run tidegate as root") }
}
