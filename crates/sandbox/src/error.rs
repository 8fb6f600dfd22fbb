//! Why a sandbox could not be set up.

use std::fmt;
use std::io;

use rustix::io::Errno;

/// Why a sandbox could not be set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxError {
    /// What was being done.
    pub step: String,
    /// What went wrong.
    pub reason: String,
    /// True when the kernel or an administrator forbids it to us: another user, or another setting, may
    /// succeed.
    pub forbidden: bool,
}

impl SandboxError {
    pub(crate) fn new(step: &str, error: io::Error) -> Self {
        let forbidden = matches!(
            error.raw_os_error().map(Errno::from_raw_os_error),
            Some(Errno::PERM | Errno::ACCESS | Errno::NOSPC | Errno::USERS | Errno::INVAL | Errno::NOSYS)
        );
        Self { step: step.to_owned(), reason: error.to_string(), forbidden }
    }

    /// As it travels over the control socket.
    pub(crate) fn encode(&self) -> String {
        format!("{}\0{}\0{}", u8::from(self.forbidden), self.step, self.reason)
    }

    pub(crate) fn decode(text: &str) -> Self {
        let mut parts = text.splitn(3, '\0');
        let forbidden = parts.next() == Some("1");
        Self {
            step: parts.next().unwrap_or("set up").to_owned(),
            reason: parts.next().unwrap_or("unknown reason").to_owned(),
            forbidden,
        }
    }
}

impl fmt::Display for SandboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "could not {}: {}", self.step, self.reason)
    }
}

impl std::error::Error for SandboxError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_survives_the_control_socket() {
        let error = SandboxError::new("try", io::Error::from_raw_os_error(1));
        assert!(error.forbidden);
        assert_eq!(SandboxError::decode(&error.encode()), error);
    }
}
