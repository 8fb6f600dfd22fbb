//! `tidegate metrics`: for Prometheus, over HTTP or into a file of node_exporter's textfile collector.

use super::{failed, is_closed_pipe, snapshot};
use anyhow::Context;
use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tidegate_analysis::watch::{Policy, Snapshot, exposition};
use tidegate_apply::sources;
use tidegate_apply::status::{self, Health};
use tidegate_sessions::autorate::controls;
use tidegate_sys::namespace::NetworkNamespace;
use tidegate_sys::until::Until;

/// Who may ask at once.
const MOST: usize = 8;
/// Bytes of the longest request.
const LONGEST: u64 = 8 << 10;
/// How long someone may take to ask, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Export the counters of shaped devices to Prometheus
#[derive(clap::Args)]
#[command(after_help = "\
Only GET /metrics is answered, in Prometheus' text format. There is no encryption and no password, so listen \
where only your Prometheus can connect.

Exit codes: 0 done; 2 wrong usage or input, such as an address in use or a missing device; 4 not permitted.

Examples:
  tidegate metrics --listen 127.0.0.1:9500
  for node_exporter's textfile collector:
    tidegate metrics --once > DIR/tidegate.prom.$$ && mv DIR/tidegate.prom.$$ DIR/tidegate.prom")]
pub struct Options {
    /// The devices; default: all that are shaped, found at each request
    pub devices: Vec<String>,
    /// Serve at this address
    #[arg(long, value_name = "ADDRESS:PORT", required_unless_present = "once", conflicts_with = "once")]
    pub listen: Option<SocketAddr>,
    /// Print the current figures, and exit
    #[arg(long)]
    pub once: bool,
}

/// Runs the command.
pub fn command(options: &Options) -> ExitCode {
    let done = match options.listen {
        Some(address) => serve(address, &options.devices),
        None => figures(&options.devices).and_then(|text| Ok(crate::output::next(&text)?)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_closed_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => failed("metrics", &error),
    }
}

/// The figures of this moment.
fn figures(devices: &[String]) -> anyhow::Result<String> {
    let healths = status::healths(None)?;
    let selected = healths.iter().filter(|health| health.is_on(devices));
    let policies: Vec<Policy> = selected.map(policy).collect();
    // A daemon that died or hangs is not up, and no reason to leave out the others.
    let is_lost =
        |dev: &String| healths.iter().any(|one| one.daemon_failure().is_some() && one.devices.contains(dev));
    let heard: Vec<String> = devices.iter().filter(|dev| !is_lost(dev)).cloned().collect();
    let mut snapshots: Vec<Snapshot> = Vec::new();
    if devices.is_empty() || !heard.is_empty() {
        match sources(&heard, &healths) {
            Ok(sources) => {
                snapshots.extend(sources.into_iter().filter_map(|mut source| snapshot(&mut source).ok()))
            }
            Err(error) if policies.is_empty() => return Err(error.into()),
            Err(_) => {}
        }
    }
    let mut controls = controls();
    controls.retain(|control| devices.is_empty() || devices.contains(&control.device));
    Ok(exposition(&snapshots, (&policies, &controls), &namespace()?, env!("CARGO_PKG_VERSION")))
}

/// The facts about a policy.
fn policy(health: &Health) -> Policy {
    Policy {
        device: health.name.clone(),
        backend: health.backend.clone(),
        up: health.condition.is_up(),
        trouble: !health.condition.is_well(),
        drift: !health.drift.is_empty(),
        revert_s: health.revert_in.map(|left| left.as_secs_f64()),
        restarts: health.starts.map(|starts| starts.saturating_sub(1)),
    }
}

/// The network namespace, by the number that the kernel gives it.
fn namespace() -> anyhow::Result<String> {
    Ok(NetworkNamespace::current()?.inode.to_string())
}

/// Serves HTTP clients, each in a thread of its own, until the process ends.
fn serve(address: SocketAddr, devices: &[String]) -> anyhow::Result<()> {
    // A device that does not exist is reported at once, not at each request.
    figures(devices)?;
    let listener = TcpListener::bind(address).with_context(|| format!("{address} cannot be listened at"))?;
    eprintln!("tidegate metrics: http://{}/metrics", listener.local_addr()?);
    let here = Arc::new(AtomicUsize::new(0));
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Out of descriptors, for example: better times may come.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        if here.fetch_add(1, Ordering::Relaxed) >= MOST {
            here.fetch_sub(1, Ordering::Relaxed);
            let _ = reply(&stream, "503 Service Unavailable", "too many are asking\n");
            continue;
        }
        let (here, devices) = (here.clone(), devices.to_vec());
        let talk = move || {
            // A client that has gone gets no reply.
            let _ = answer(&stream, &devices);
            here.fetch_sub(1, Ordering::Relaxed);
        };
        std::thread::Builder::new().name("metrics".into()).spawn(talk)?;
    }
    Ok(())
}

fn answer(stream: &TcpStream, devices: &[String]) -> io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let Some(line) = request(BufReader::new(Until::new(stream, Instant::now() + PATIENCE)))? else {
        return reply(stream, "400 Bad Request", "this is no request of HTTP/1\n");
    };
    let mut words = line.split_whitespace();
    match (words.next(), words.next().and_then(|path| path.split('?').next())) {
        (Some("GET"), Some("/metrics")) => match figures(devices) {
            Ok(text) => reply(stream, "200 OK", &text),
            Err(error) => reply(stream, "503 Service Unavailable", &format!("{error:#}\n")),
        },
        (Some("GET"), _) => reply(stream, "404 Not Found", "there is /metrics\n"),
        _ => reply(stream, "405 Method Not Allowed", "GET /metrics\n"),
    }
}

/// The first line of a request that was read to its end; `None`: it has none, or is too long.
fn request(stream: impl BufRead) -> io::Result<Option<String>> {
    let mut lines = stream.take(LONGEST).split(b'\n').map(|line| {
        let line = String::from_utf8_lossy(&line?).trim_end_matches('\r').to_owned();
        io::Result::Ok(line)
    });
    let first = match lines.next().transpose()? {
        Some(line) if line.contains(" HTTP/1.") => line,
        _ => return Ok(None),
    };
    for line in lines {
        if line?.is_empty() {
            return Ok(Some(first));
        }
    }
    Ok(None)
}

fn reply(mut stream: &TcpStream, status: &str, text: &str) -> io::Result<()> {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_to_their_end_and_no_further() {
        let read = |text: &str| request(text.as_bytes()).expect("no trouble");
        assert_eq!(
            read("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\nmore"),
            Some("GET /metrics HTTP/1.1".to_owned())
        );
        assert_eq!(read("GET / HTTP/1.0\n\n"), Some("GET / HTTP/1.0".to_owned()));
        for wrong in ["", "\r\n\r\n", "hello\r\n\r\n", "GET / HTTP/1.1\r\nHost: cut off"] {
            assert_eq!(read(wrong), None, "{wrong:?}");
        }
        let long = format!("GET / HTTP/1.1\r\nCookie: {}\r\n\r\n", "x".repeat(LONGEST as usize));
        assert_eq!(read(&long), None);
    }
}
