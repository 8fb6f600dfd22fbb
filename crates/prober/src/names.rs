//! Names and their addresses.

use crate::error::Error;
use std::net::{IpAddr, ToSocketAddrs};

/// Which addresses may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressFamily {
    /// Any.
    #[default]
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

impl AddressFamily {
    /// May this address be used?
    pub fn takes(self, address: IpAddr) -> bool {
        match self {
            AddressFamily::Any => true,
            AddressFamily::V4 => address.is_ipv4(),
            AddressFamily::V6 => address.is_ipv6(),
        }
    }
}

/// The addresses of a host, in the resolver's order; at least one.
///
/// # Errors
/// There is none of this family.
pub fn addresses(host: &str, family: AddressFamily) -> Result<Vec<IpAddr>, Error> {
    let no_name = |why: String| Error::NoName { host: host.to_owned(), why };
    let all = (host, 0_u16).to_socket_addrs().map_err(|error| no_name(error.to_string()))?;
    let mut found: Vec<IpAddr> =
        all.map(|address| address.ip()).filter(|address| family.takes(*address)).collect();
    found.dedup();
    match (found.is_empty(), family) {
        (false, _) => Ok(found),
        (true, AddressFamily::V4) => Err(no_name("no IPv4 address".to_owned())),
        (true, AddressFamily::V6) => Err(no_name("no IPv6 address".to_owned())),
        (true, AddressFamily::Any) => Err(no_name("no address".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_its_own_name() {
        let found = |host, family| addresses(host, family).map_err(|error| error.to_string());
        assert_eq!(found("192.0.2.1", AddressFamily::Any), Ok(vec![IpAddr::from([192, 0, 2, 1])]));
        assert_eq!(found("2001:db8::1", AddressFamily::V6).map(|all| all.len()), Ok(1));
        let error = found("192.0.2.1", AddressFamily::V6).expect_err("it has no IPv6 address");
        assert!(error.starts_with("no address is known for `192.0.2.1` (no IPv6 address)"), "{error}");
    }
}
