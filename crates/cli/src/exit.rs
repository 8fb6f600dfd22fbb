//! Exit codes: one meaning each, in every command (docs/exit-codes.md).

use std::error::Error as StdError;
use std::io;
use std::process::ExitCode;

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CliExit {
    /// Yes, or done.
    Yes = 0,
    /// The answer is no: findings, an expectation that fails, a bad grade, drift.
    No = 1,
    /// Wrong usage or input: a missing file, a script at fault, a server that is not there.
    Input = 2,
    /// A partial result: interrupted, or a part could not be measured.
    Partial = 3,
    /// Not permitted: the system refuses it, or root (CAP_NET_ADMIN) is needed.
    NotPermitted = 4,
    /// What was expected of the line of `tidegate shell` does not hold; its program ended with 0.
    Unmet = 5,
    /// An internal error (EX_SOFTWARE of sysexits.h): a bug in tidegate, and no statement about the input.
    Internal = 70,
    /// Standard output or a file did not take what was written, such as a full disk (EX_IOERR).
    NotWritten = 74,
}

impl CliExit {
    /// The code of an error of a command that reads files and simulates: [`CliExit::NotPermitted`] where the
    /// system refused an operation (`EPERM`), else [`CliExit::Input`]. A file that must not be read
    /// (`EACCES`) is input.
    pub fn of(error: &anyhow::Error) -> CliExit {
        let is_refused = |cause: &(dyn StdError + 'static)| {
            cause.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) == Some(EPERM)
        };
        if error.chain().any(is_refused) { CliExit::NotPermitted } else { CliExit::Input }
    }

    /// The code of an error of a command that works on this computer's devices, sockets and processes:
    /// whatever permission is missing there, is [`CliExit::NotPermitted`].
    pub(crate) fn of_system(error: &anyhow::Error) -> CliExit {
        let is_denied = |cause: &(dyn StdError + 'static)| {
            let kind = cause.downcast_ref::<io::Error>().map(io::Error::kind);
            let kind = kind.or_else(|| cause.downcast_ref::<tidegate_daemon::Error>()?.io_kind());
            kind == Some(io::ErrorKind::PermissionDenied)
        };
        if error.chain().any(is_denied) { CliExit::NotPermitted } else { CliExit::Input }
    }

    /// The code of a change of devices that failed: that it was refused is an answer, unless a permission is
    /// missing.
    pub(crate) fn of_change(error: &anyhow::Error) -> CliExit {
        match CliExit::of_device(error) {
            CliExit::Input => CliExit::No,
            other => other,
        }
    }

    /// The code for an error about a device, with the remedy where a permission is missing.
    pub(crate) fn of_device(error: &anyhow::Error) -> CliExit {
        let exit = CliExit::of_system(error);
        if exit == CliExit::NotPermitted {
            eprintln!("  {NEEDS_ROOT}");
        }
        exit
    }
}

/// What is needed to change devices, and what works without.
const NEEDS_ROOT: &str = "this needs root (CAP_NET_ADMIN); `tidegate apply --dry-run`, `tidegate check`, \
    `tidegate try` and `tidegate sim` work without";

/// `EPERM`: Operation not permitted.
const EPERM: i32 = 1;

impl From<CliExit> for u8 {
    fn from(exit: CliExit) -> u8 {
        exit as u8
    }
}

impl From<CliExit> for ExitCode {
    fn from(exit: CliExit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn what_the_system_refuses_is_not_permitted() {
        let refused = Err::<(), _>(io::Error::from_raw_os_error(EPERM)).context("cannot open a socket");
        assert_eq!(CliExit::of(&refused.unwrap_err()), CliExit::NotPermitted);
        let unreadable = Err::<(), _>(io::Error::from_raw_os_error(13)).context("cannot read a.sh");
        let unreadable = unreadable.unwrap_err();
        assert_eq!(
            (CliExit::of(&unreadable), CliExit::of_system(&unreadable)),
            (CliExit::Input, CliExit::NotPermitted)
        );
        let missing = anyhow::Error::from(io::Error::from_raw_os_error(2));
        assert_eq!((CliExit::of(&missing), CliExit::of_system(&missing)), (CliExit::Input, CliExit::Input));
        let of_daemon =
            anyhow::Error::from(tidegate_daemon::Error::from(io::Error::from_raw_os_error(EPERM)));
        assert_eq!(CliExit::of_system(&of_daemon), CliExit::NotPermitted);
        assert_eq!(CliExit::of(&anyhow::anyhow!("Operation not permitted")), CliExit::Input);
    }
}
