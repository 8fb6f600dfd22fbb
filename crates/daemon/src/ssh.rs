//! The SSH session that we were called from.

use std::net::SocketAddr;
use tidegate_sys::process;

/// sshd's variable for the programs of a session: the client's address and port, the server's address and
/// port.
const VARIABLE: &str = "SSH_CONNECTION";
/// Processes above ours that are looked at.
const MOST: usize = 32;

/// Both ends of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ssh {
    /// This machine's.
    pub here: SocketAddr,
    /// The user's.
    pub there: SocketAddr,
}

impl Ssh {
    /// This machine's end, and the user's.
    pub fn ends(self) -> (SocketAddr, SocketAddr) {
        (self.here, self.there)
    }
}

/// The session that we are in, if we are in one. `sudo` hides it from us: then a process above ours has it.
/// (Said and empty: we are in none.)
pub fn session() -> Option<Ssh> {
    let own = std::env::var(VARIABLE).ok();
    own.or_else(from_above).as_deref().and_then(read)
}

fn read(sentence: &str) -> Option<Ssh> {
    let words: Vec<&str> = sentence.split_whitespace().collect();
    let [client, client_port, server, server_port] = words.as_slice() else { return None };
    // An address of one link only has its name behind it.
    let address = |text: &str| text.split('%').next()?.parse().ok();
    let end = |text: &str, port: &str| Some(SocketAddr::new(address(text)?, port.parse().ok()?));
    Some(Ssh { here: end(server, server_port)?, there: end(client, client_port)? })
}

fn from_above() -> Option<String> {
    let mut pid = process::parent();
    for _ in 0..MOST {
        if pid <= 1 {
            return None;
        }
        let bytes = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let found = text.split('\0').find_map(|one| one.strip_prefix(VARIABLE)?.strip_prefix('='));
        if let Some(found) = found {
            return Some(found.to_owned());
        }
        pid = process::parent_of(pid)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_are_read() {
        let found = read("192.0.2.7 50123 198.51.100.1 22").expect("a session");
        assert_eq!(
            (found.there.to_string(), found.here.to_string()),
            ("192.0.2.7:50123".into(), "198.51.100.1:22".into())
        );
        let found = read("fe80::1%eth0 50123 fe80::2%eth0 22").expect("a session");
        assert_eq!(found.there.to_string(), "[fe80::1]:50123");
        assert_eq!(read("192.0.2.7 50123"), None);
        assert_eq!(read(""), None);
    }
}
