//! Exit codes: one meaning each, in every command (docs/exit-codes.md).

use std::process::ExitCode;

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
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
    /// An internal error (EX_SOFTWARE of sysexits.h): a bug in tidegate, and no statement about the input.
    Internal = 70,
    /// Standard output or a file did not take what was written, such as a full disk (EX_IOERR).
    NotWritten = 74,
}

impl Exit {
    /// The code of an error: [`Exit::NotPermitted`] where the system refused an operation (`EPERM`), else
    /// [`Exit::Input`]. A file that must not be read (`EACCES`) is input.
    pub fn of(error: &anyhow::Error) -> Exit {
        let is_refused = |cause: &(dyn std::error::Error + 'static)| {
            cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error) == Some(EPERM)
        };
        if error.chain().any(is_refused) { Exit::NotPermitted } else { Exit::Input }
    }
}

/// `EPERM`: Operation not permitted.
const EPERM: i32 = 1;

impl From<Exit> for u8 {
    fn from(exit: Exit) -> u8 {
        exit as u8
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;
    use std::io;

    #[test]
    fn what_the_system_refuses_is_not_permitted() {
        let refused = Err::<(), _>(io::Error::from_raw_os_error(EPERM)).context("cannot open a socket");
        assert_eq!(Exit::of(&refused.unwrap_err()), Exit::NotPermitted);
        let unreadable = Err::<(), _>(io::Error::from_raw_os_error(13)).context("cannot read a.sh");
        assert_eq!(Exit::of(&unreadable.unwrap_err()), Exit::Input);
        assert_eq!(Exit::of(&anyhow::anyhow!("Operation not permitted")), Exit::Input);
    }
}
