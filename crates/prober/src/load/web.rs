//! Downloads from a web server, repeatedly: plain HTTP/1.1 (RFC 9112), nothing is kept.

use super::meter::{ByteMeter, RunningLoad, Shared};
use crate::{AddressFamily, Error, addresses};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long a server may be silent.
const PATIENCE: Duration = Duration::from_secs(5);
/// How soon it is noticed that all is over.
const NOTICE: Duration = Duration::from_millis(100);
/// Bytes of an answer's head at most.
const HEAD: usize = 16_384;

/// Something to download.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The server's name.
    pub host: String,
    /// The port.
    pub port: u16,
    /// What to ask for.
    pub path: String,
}

impl Page {
    /// From `http://HOST[:PORT]/PATH`; `None`: it is no such address.
    ///
    /// # Errors
    /// It is one that we do not speak.
    pub fn parse(text: &str) -> Result<Option<Page>, Error> {
        if text.starts_with("https://") {
            let why = format!(
                "`{text}`: https is not spoken here; name an http:// address, or a host that answers pings"
            );
            return Err(Error::Wrong(why));
        }
        let Some(rest) = text.strip_prefix("http://") else { return Ok(None) };
        let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
        let wrong =
            || Error::Wrong(format!("`{text}` is not an address of a page: write http://HOST[:PORT]/PATH"));
        let (host, port) = match server.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, port.parse().map_err(|_| wrong())?),
            _ => (server, 80),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() || text.contains(char::is_whitespace) {
            return Err(wrong());
        }
        Ok(Some(Page { host: host.to_owned(), port, path: format!("/{path}") }))
    }
}

impl std::fmt::Display for Page {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.host.contains(':'), self.port) {
            (false, 80) => write!(f, "http://{}{}", self.host, self.path),
            (true, 80) => write!(f, "http://[{}]{}", self.host, self.path),
            (false, port) => write!(f, "http://{}:{port}{}", self.host, self.path),
            (true, port) => write!(f, "http://[{}]:{port}{}", self.host, self.path),
        }
    }
}

/// Downloads a page by so many connections at once, repeatedly. The meter counts what came, in
/// full segments without TCP's and IP's headers.
///
/// # Errors
/// The server has no address.
pub fn downloads(
    page: &Page,
    family: AddressFamily,
    connections: u32,
    began: Instant,
) -> Result<RunningLoad, Error> {
    let address =
        *addresses(&page.host, family)?.first().ok_or_else(|| Error::Wrong("it has no address".into()))?;
    let to = SocketAddr::new(address, page.port);
    let mut load = RunningLoad::new(began);
    for _ in 0..connections {
        let page = page.clone();
        load.spawn("download", move |shared, meter| {
            while !shared.is_over() {
                match download(to, &page, shared, meter) {
                    Ok(0) => return shared.stop(format!("{page} is empty")),
                    Ok(_) => {}
                    Err(error) => return shared.stop(format!("{page}: {error}")),
                }
            }
        })?;
    }
    Ok(load)
}

/// One download; how many bytes of content came.
fn download(to: SocketAddr, page: &Page, shared: &Shared, meter: &ByteMeter) -> io::Result<u64> {
    let mut stream = TcpStream::connect_timeout(&to, PATIENCE)?;
    stream.set_read_timeout(Some(NOTICE))?;
    let agent = concat!("tidegate/", env!("CARGO_PKG_VERSION"));
    let condition = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: {agent}\r\nAccept-Encoding: identity\r\nConnection: \
        close\r\n\r\n",
        page.path, page.host
    );
    stream.write_all(condition.as_bytes())?;
    let mut buffer = vec![0; 1 << 16];
    let (mut head, mut content, mut heard) = (Vec::new(), 0, Instant::now());
    let mut in_head = true;
    let mut arrived = 0;
    while !shared.is_over() {
        let read = stream.read(&mut buffer);
        // What is behind a gap has come as well: in whatever order, counted in full segments.
        let so_far = tidegate_sys::socket::tcp_info(&stream).map_or(0, |info| info.arrived);
        meter.add(so_far.saturating_sub(arrived));
        arrived = arrived.max(so_far);
        let bytes = match read {
            Ok(0) => break,
            Ok(bytes) => bytes,
            Err(error) if is_waiting(&error) && heard.elapsed() < PATIENCE => continue,
            Err(error) => return Err(error),
        };
        heard = Instant::now();
        if !in_head {
            content += bytes as u64;
            continue;
        }
        head.extend_from_slice(&buffer[..bytes]);
        if let Some(end) = head.windows(4).position(|four| four == b"\r\n\r\n") {
            good(&head[..end])?;
            content += (head.len() - end - 4) as u64;
            in_head = false;
        } else if head.len() > HEAD {
            return Err(io::Error::other("it does not answer as a web server does"));
        }
    }
    // A transfer that was stopped in the middle has a result.
    Ok(if shared.is_over() { content.max(1) } else { content })
}

fn is_waiting(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Is it what was requested?
fn good(head: &[u8]) -> io::Result<()> {
    let line =
        String::from_utf8_lossy(head.split(|byte| *byte == b'\r').next().unwrap_or_default()).into_owned();
    match line.split(' ').nth(1) {
        Some("200") => Ok(()),
        Some(code) if code.starts_with('3') => {
            Err(io::Error::other(format!("the page is elsewhere (`{line}`): name the address it leads to")))
        }
        _ => Err(io::Error::other(format!("the server said `{line}`"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_pages() {
        let page = |host: &str, port, path: &str| Page { host: host.into(), port, path: path.into() };
        let parsed = |text| Page::parse(text).expect("fine");
        assert_eq!(parsed("http://a.example/big.bin"), Some(page("a.example", 80, "/big.bin")));
        assert_eq!(parsed("http://[2001:db8::1]:8080"), Some(page("2001:db8::1", 8080, "/")));
        assert_eq!(parsed("192.0.2.1"), None);
        for written in ["http://a.example/big.bin", "http://a.example:81/", "http://[2001:db8::1]:8080/x"] {
            assert_eq!(parsed(written).map(|page| page.to_string()).as_deref(), Some(written));
        }
        for wrong in ["https://a.example/", "http:///x", "http://a:b/x", "http://a b/"] {
            assert!(Page::parse(wrong).is_err(), "{wrong}");
        }
    }
}
