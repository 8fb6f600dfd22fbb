//! What the machines at the ends of a wire do.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use tidegate_os::place::Place;
use tidegate_os::socket::Echo;

use crate::wire::LIMIT;

/// Sends pings until one is answered, at most so many; how many were sent. A ping that waits half a second counts as lost.
pub(crate) fn ping(from: &Place, to: IpAddr, most: u16, data: u32) -> Option<u16> {
    let attempt = move || -> io::Result<Option<u16>> {
        let echo = Echo::open(to)?;
        for number in 1..=most {
            echo.ask(number, data)?;
            if echo.answer(Duration::from_millis(500))?.is_some() {
                return Ok(Some(number));
            }
        }
        Ok(None)
    };
    from.go(attempt).expect("the place is there").expect("pings can be sent")
}

/// Sends so many octets over TCP, each with its number's low octet; panics if they do not arrive as they were.
pub(crate) fn transfer(from: &Place, to: &Place, address: IpAddr, octets: usize) {
    let listener = to.go(move || TcpListener::bind(SocketAddr::new(address, 0))).expect("place").expect("listens");
    let address = listener.local_addr().expect("it is bound");
    let receiving = thread::spawn(move || -> io::Result<Vec<u8>> {
        let (mut stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(LIMIT))?;
        let mut all = Vec::new();
        stream.read_to_end(&mut all)?;
        Ok(all)
    });
    let sent = from.go(move || -> io::Result<()> {
        let mut stream = TcpStream::connect_timeout(&address, LIMIT)?;
        stream.set_write_timeout(Some(LIMIT))?;
        stream.write_all(&(0..octets).map(|n| n as u8).collect::<Vec<u8>>())
    });
    sent.expect("place").expect("what is sent goes");
    let received = receiving.join().expect("no panic").expect("it is received");
    assert_eq!(received.len(), octets);
    assert!(received.iter().enumerate().all(|(n, octet)| *octet == n as u8), "what arrived is what was sent");
}
