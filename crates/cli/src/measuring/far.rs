//! What commands that measure with a tidegate server have in common: where it is, and its token.

use super::family::FamilyOptions;
use crate::exit::CliExit;
use anyhow::Context;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use tidegate_probe_wire::{PORT, Token};
use tidegate_prober::{Error, ServerTarget};

/// The variable for a token that is in no file.
const VARIABLE: &str = "TIDEGATE_TOKEN";

/// How the server is reached.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct FarOptions {
    /// The server's port, TCP and UDP
    #[arg(long, default_value_t = PORT)]
    pub port: u16,
    /// The file with the server's token; default: the environment variable TIDEGATE_TOKEN
    #[arg(long, value_name = "FILE")]
    pub token: Option<PathBuf>,
    /// The address family
    #[command(flatten)]
    pub family: FamilyOptions,
}

impl FarOptions {
    /// The server that these options name.
    ///
    /// # Errors
    /// The token that an option names does not exist.
    pub fn target(&self, host: &str) -> anyhow::Result<ServerTarget> {
        let token = token(self.token.as_deref())?;
        Ok(ServerTarget { host: host.to_owned(), port: self.port, token, family: self.family.family() })
    }
}

impl FarOptions {
    /// These options as on a command line, with a blank before each; empty: none were given.
    pub(crate) fn words(&self) -> String {
        let mut words = String::new();
        if self.port != PORT {
            words += &format!(" --port {}", self.port);
        }
        if let Some(token) = &self.token {
            words += &format!(" --token {}", tidegate_text::shell_bytes(token.as_os_str().as_bytes()));
        }
        words + if self.family.ipv4 { " -4" } else { "" } + if self.family.ipv6 { " -6" } else { "" }
    }
}

/// The token of a file, or of the environment.
///
/// # Errors
/// The file cannot be read, or what it holds is too short to be one.
pub(crate) fn token(file: Option<&Path>) -> anyhow::Result<Option<Token>> {
    let (text, from) = match file {
        Some(file) => {
            let text = tidegate_sys::input_file::read_text(file, crate::input::MAX_TOKEN)
                .with_context(|| format!("the token of {}", file.display()))?;
            (text, file.display().to_string())
        }
        None => match std::env::var(VARIABLE) {
            Ok(text) if !text.is_empty() => (text, VARIABLE.to_owned()),
            _ => return Ok(None),
        },
    };
    let least = Token::LEAST;
    let token = Token::new(&text).with_context(|| {
        format!(
            "{from} holds no token that is hard to guess: it needs {least} characters at least, different \
            ones, and no sequences or repeats; make one with `tidegate serve --new-token FILE`"
        )
    })?;
    Ok(Some(token))
}

/// The exit code of an error: what was begun and broke off is partial.
pub(crate) fn code(error: &anyhow::Error) -> CliExit {
    let measured = || error.downcast_ref::<tidegate_sessions::Error>()?.field();
    match error.downcast_ref::<Error>().or_else(measured) {
        Some(Error::Gone(_)) => CliExit::Partial,
        Some(Error::NotAllowed { .. }) => CliExit::NotPermitted,
        _ => CliExit::of_system(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_written_as_they_were_given() {
        let usual = FarOptions { port: PORT, ..FarOptions::default() };
        assert_eq!(usual.words(), "");
        let family = FamilyOptions { ipv4: false, ipv6: true };
        let all = FarOptions { port: 9000, token: Some("my token".into()), family };
        assert_eq!(all.words(), " --port 9000 --token 'my token' -6");
    }
}
