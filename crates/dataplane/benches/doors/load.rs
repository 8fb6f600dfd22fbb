//! What is measured: small packets as many as pass, one TCP connection, and pings while nothing else
//! continues.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use tidegate_sys::namespace_thread::NamespaceThread;
use tidegate_sys::socket::{EchoSocket, congestion_control};

use crate::line::{Line, Through};

/// How long each load continues.
const LOAD: Duration = Duration::from_millis(800);
/// Bytes of data in a frame of 64.
const SMALL: usize = 22;
const PINGS: u16 = 200;
const BETWEEN_PINGS: Duration = Duration::from_millis(1);
/// Nothing here lasts longer.
const LIMIT: Duration = Duration::from_secs(5);

/// What one way showed in one round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// Small packets a second that came to the other end.
    packets: f64,
    /// Bits a second of one TCP connection.
    stream: f64,
    /// Nanoseconds of processor per small packet in anyone who is at the backend.
    cpu: f64,
    /// Microseconds from ping to answer.
    pings: [f64; 2],
}

/// Nanoseconds of processor that someone had so far.
pub(crate) type Used<'u> = dyn Fn() -> f64 + 'u;

/// Measures a way.
pub(crate) fn all(line: &Line, through: Through, used: &Used<'_>) -> io::Result<Measured> {
    let pings = pings(line, through)?;
    let before = (received(&line.b, through)?, used(), Instant::now());
    flood(line, through)?;
    let packets = received(&line.b, through)? - before.0;
    let (cpu, time) = (used() - before.1, before.2.elapsed());
    let stream = stream(line, through)?;
    Ok(Measured { packets: packets / time.as_secs_f64(), stream, cpu: cpu / packets, pings })
}

/// The medians of what was measured: packets and bits a second, nanoseconds per packet, pings.
pub(crate) fn medians(of_way: &[Measured]) -> [f64; 5] {
    let median = |of: &dyn Fn(&Measured) -> f64| {
        let mut all: Vec<f64> = of_way.iter().map(of).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    [
        median(&|seen| seen.packets),
        median(&|seen| seen.stream),
        median(&|seen| seen.cpu),
        median(&|seen| seen.pings[0]),
        median(&|seen| seen.pings[1]),
    ]
}

/// Packets that came to B.
fn received(b: &NamespaceThread, through: Through) -> io::Result<f64> {
    let file = format!("/sys/class/net/{}/statistics/rx_packets", through.last());
    let text = b.go(move || std::fs::read_to_string(file))??;
    text.trim().parse().map_err(io::Error::other)
}

fn flood(line: &Line, through: Through) -> io::Result<()> {
    // No one reads it: what finds no space there has come all the same.
    let receiver = line.b.go(move || UdpSocket::bind(SocketAddr::new(through.to(), 0)))??;
    let to = receiver.local_addr()?;
    line.a.go(move || -> io::Result<()> {
        let socket = UdpSocket::bind(SocketAddr::from(([0; 4], 0)))?;
        socket.connect(to)?;
        let (began, bytes) = (Instant::now(), [0; SMALL]);
        while began.elapsed() < LOAD {
            for _ in 0..64 {
                // The sender's own device may be full.
                let _ = socket.send(&bytes);
            }
        }
        Ok(())
    })?
}

fn stream(line: &Line, through: Through) -> io::Result<f64> {
    let listener = line.b.go(move || TcpListener::bind(SocketAddr::new(through.to(), 0)))??;
    let to = listener.local_addr()?;
    let receiving = thread::spawn(move || -> io::Result<f64> {
        let (mut stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(LIMIT))?;
        let (began, mut room, mut bytes) = (Instant::now(), vec![0; 1 << 18], 0);
        loop {
            match stream.read(&mut room)? {
                0 => return Ok(bytes as f64 * 8.0 / began.elapsed().as_secs_f64()),
                read => bytes += read,
            }
        }
    });
    line.a.go(move || -> io::Result<()> {
        let mut stream = TcpStream::connect_timeout(&to, LIMIT)?;
        congestion_control(&stream, "cubic")?;
        stream.set_write_timeout(Some(LIMIT))?;
        let (began, bytes) = (Instant::now(), vec![0; 1 << 17]);
        while began.elapsed() < LOAD {
            stream.write_all(&bytes)?;
        }
        Ok(())
    })??;
    receiving.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The median and the 95th percentile of pings, µs.
fn pings(line: &Line, through: Through) -> io::Result<[f64; 2]> {
    let mut all = line.a.go(move || -> io::Result<Vec<f64>> {
        let echo = EchoSocket::open(through.to())?;
        // The first asks where the other is.
        echo.send_request(0, 56)?;
        echo.reply(LIMIT)?;
        let mut all = Vec::new();
        for number in 1..=PINGS {
            thread::sleep(BETWEEN_PINGS);
            let began = Instant::now();
            echo.send_request(number, 56)?;
            if echo.reply(LIMIT)? == Some(number) {
                all.push(began.elapsed().as_secs_f64() * 1e6);
            }
        }
        Ok(all)
    })??;
    all.sort_by(f64::total_cmp);
    let at = |percent: usize| all.get(all.len() * percent / 100).copied().unwrap_or(f64::NAN);
    Ok([at(50), at(95)])
}
