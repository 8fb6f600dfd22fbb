//! The control socket: one JSON object a line, in each direction, and limits that protect each client from
//! the others.
//!
//! Everybody may ask for the daemon's status, so every client is taken for an attacker: connections are
//! reserved for root and the daemon's owner, the others share a few with a quota for each user, a request has
//! a time limit, a length limit and a limit on values, and requests of strangers are rate-limited.

mod quota;

use quota::{ClientQuota, ConnectionSlot};
use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tidegate_sys::process;
use tidegate_sys::service::{self, Peer};
use tidegate_sys::until::Until;

/// Bytes of the longest request of root's or the owner's: a policy of a hundred thousand commands.
const LONGEST: u64 = 16 << 20;
/// Bytes of the longest request of other users.
const LONGEST_OF_STRANGERS: u64 = 4 << 10;
/// Requests longer than this are taken in one at a time, however many connections bring them.
const LARGE: usize = 64 << 10;
/// JSON values in a request at most: each takes some 70 bytes of memory once it is read.
const MOST_VALUES: usize = 2_000_000;
/// How long a connection of root's or the owner's may be idle, or take to send a request.
const IDLE: Duration = Duration::from_secs(600);
/// How long a connection of another user may be idle, or take to send a request.
const IDLE_OF_STRANGERS: Duration = Duration::from_secs(10);
/// A client that reads nothing for so long is disconnected.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait when no connection can be accepted (no descriptors are left, for example).
const AGAIN: Duration = Duration::from_millis(50);
/// Bytes of the stack of a connection's thread: requests are read without recursion deeper than serde_json's
/// 128.
const STACK: usize = 512 << 10;

/// Answers requests.
pub trait RequestHandler: Send + Sync {
    /// Answers one, by one line or more.
    ///
    /// # Errors
    /// The client is gone.
    fn answer(&self, request: &Value, who: Peer, tell: &mut ReplyWriter<'_>) -> io::Result<()>;
}

/// Says a line of an answer.
pub type ReplyWriter<'t> = dyn FnMut(&Value) -> io::Result<()> + 't;

/// Is this root, or the owner of this process?
#[must_use]
pub fn is_trusted(who: Peer) -> bool {
    who.uid == 0 || who.uid == process::effective_uid()
}

/// Serves each connection that finds a place, in a thread of its own, until the process ends.
///
/// # Errors
/// No thread can be had.
pub fn serve(listener: UnixListener, answers: Arc<dyn RequestHandler>) -> io::Result<()> {
    let commands =
        Arc::new(ControlServer { answers, guests: ClientQuota::default(), large: Mutex::default() });
    let accept = move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else {
                std::thread::sleep(AGAIN);
                continue;
            };
            commands.clone().receive(stream);
        }
    };
    std::thread::Builder::new().name("control".into()).spawn(accept).map(drop)
}

/// What all connections share.
struct ControlServer {
    answers: Arc<dyn RequestHandler>,
    guests: ClientQuota,
    /// Held by the thread that reads a large request.
    large: Mutex<()>,
}

impl ControlServer {
    /// A client has connected.
    fn receive(self: Arc<ControlServer>, stream: UnixStream) {
        let Ok(who) = service::peer(&stream) else { return };
        let place = match ClientQuota::place(&self.guests, who.uid, is_trusted(who)) {
            Ok(place) => place,
            Err(full) => {
                // A reply that does not go into the socket at once is dropped.
                let _ = stream.set_nonblocking(true);
                let _ = writeln!(
                    &stream,
                    "{}",
                    json!({"error": full, "remedy": "try again when one of them has left"})
                );
                return;
            }
        };
        let talk = move || {
            // A client that disconnects in the middle of a reply wanted no more of it.
            let _ = self.talk(&stream, who, &place);
            drop(place);
        };
        let _ = std::thread::Builder::new().name("control".into()).stack_size(STACK).spawn(talk);
    }

    fn talk(&self, stream: &UnixStream, who: Peer, place: &ConnectionSlot) -> io::Result<()> {
        let (longest, idle) =
            if is_trusted(who) { (LONGEST, IDLE) } else { (LONGEST_OF_STRANGERS, IDLE_OF_STRANGERS) };
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut reader = BufReader::new(Until::new(stream, Instant::now()));
        let mut writer = BufWriter::new(stream);
        let mut tell = |value: &Value| {
            serde_json::to_writer(&mut writer, value)?;
            writer.write_all(b"\n")?;
            writer.flush()
        };
        loop {
            reader.get_mut().set_end(Instant::now() + idle);
            let Some(line) = line(&mut reader, longest, &self.large)? else { return Ok(()) };
            if line.bytes.last() != Some(&b'\n') {
                let remedy = format!("one JSON object of at most {longest} bytes, and a line feed");
                return tell(&json!({"error": "the request is cut off or too long", "remedy": remedy}));
            }
            place.wait_for_turn();
            if values(&line.bytes) > MOST_VALUES {
                return tell(&json!({"error": format!("the request has more than {MOST_VALUES} \
                    values"), "remedy": "split it"}));
            }
            let request = serde_json::from_slice::<Value>(&line.bytes);
            drop(line);
            match request {
                Ok(request) => self.answers.answer(&request, who, &mut tell)?,
                Err(error) => tell(
                    &json!({"error": format!("this is not JSON: {error}"), "remedy": "{\"ask\": \"status\"}, \
                    for example"}),
                )?,
            }
        }
    }
}

/// A request as it came, and the right to bring a large one.
struct Line<'l> {
    bytes: Vec<u8>,
    _large: Option<std::sync::MutexGuard<'l, ()>>,
}

/// The next line, of `longest` bytes at most; `None`: there is none.
fn line<'l>(reader: &mut impl BufRead, longest: u64, large: &'l Mutex<()>) -> io::Result<Option<Line<'l>>> {
    let mut bytes = Vec::new();
    let small = longest.min(LARGE as u64);
    reader.by_ref().take(small).read_until(b'\n', &mut bytes)?;
    if bytes.is_empty() {
        return Ok(None);
    }
    let ended = bytes.last() == Some(&b'\n') || (bytes.len() as u64) < small;
    if ended || small == longest {
        return Ok(Some(Line { bytes, _large: None }));
    }
    let guard = large.lock().unwrap_or_else(PoisonError::into_inner);
    reader.by_ref().take(longest - small).read_until(b'\n', &mut bytes)?;
    Ok(Some(Line { bytes, _large: Some(guard) }))
}

/// How many JSON values a line has at most: one, and one more behind each comma, bracket and colon (those
/// within strings counted too).
fn values(line: &[u8]) -> usize {
    1 + line.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{' | b':')).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo;

    impl RequestHandler for Echo {
        fn answer(&self, request: &Value, who: Peer, tell: &mut ReplyWriter<'_>) -> io::Result<()> {
            tell(&json!({"asked": request, "by": who.pid}))
        }
    }

    fn exchange(who: Peer, bytes: &[u8]) -> Vec<Value> {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let desk = ControlServer {
            answers: Arc::new(Echo),
            guests: ClientQuota::default(),
            large: Mutex::default(),
        };
        let answering = std::thread::spawn(move || {
            let place = ClientQuota::place(&desk.guests, who.uid, is_trusted(who)).expect("a place");
            desk.talk(&theirs, who, &place)
        });
        // A client that is cut off does not read the rest.
        let _ = (&ours).write_all(bytes);
        let _ = ours.shutdown(std::net::Shutdown::Write);
        let answers = BufReader::new(ours).lines().map_while(Result::ok);
        let answers = answers.map(|line| serde_json::from_str(&line).expect("JSON")).collect();
        answering.join().expect("no panic").expect("no trouble");
        answers
    }

    fn us() -> Peer {
        Peer { pid: std::process::id(), uid: process::effective_uid() }
    }

    fn stranger() -> Peer {
        Peer { pid: 1, uid: process::effective_uid() + 1 }
    }

    #[test]
    fn each_line_is_answered_and_invalid_ones_with_the_reason() {
        let answers = exchange(us(), b"{\"ask\":1}\nnot json\n[2]\n{\"cut");
        assert_eq!(answers[0], json!({"asked": {"ask": 1}, "by": std::process::id()}));
        assert!(
            answers[1]["error"].as_str().is_some_and(|text| text.starts_with("this is not JSON")),
            "{answers:?}"
        );
        assert_eq!(answers[2]["asked"], json!([2]));
        assert_eq!(answers[3]["error"], "the request is cut off or too long");
        assert_eq!(answers.len(), 4);
    }

    #[test]
    fn a_silent_client_gets_nothing() {
        assert!(exchange(us(), b"").is_empty());
    }

    #[test]
    fn a_stranger_sends_short_requests_and_the_owner_long_ones() {
        let long = |length: usize| format!("\"{}\"\n", "x".repeat(length - 3)).into_bytes();
        for length in [100, LONGEST_OF_STRANGERS as usize] {
            assert!(exchange(stranger(), &long(length))[0]["asked"].is_string(), "{length}");
        }
        let answers = exchange(stranger(), &long(LONGEST_OF_STRANGERS as usize + 1));
        assert_eq!(answers[0]["error"], "the request is cut off or too long");
        for length in [LARGE - 1, LARGE, LARGE + 1, LONGEST as usize] {
            assert!(exchange(us(), &long(length))[0]["asked"].is_string(), "{length}");
        }
        assert!(exchange(us(), &long(LONGEST as usize + 1))[0]["error"].is_string());
    }

    #[test]
    fn many_small_values_are_not_read() {
        let text = format!("[{}0]\n", "0,".repeat(MOST_VALUES));
        let answers = exchange(us(), text.as_bytes());
        assert_eq!(answers[0]["error"], format!("the request has more than {MOST_VALUES} values"));
        let deep = format!("{}\n", "[".repeat(100_000));
        assert!(
            exchange(us(), deep.as_bytes())[0]["error"]
                .as_str()
                .is_some_and(|sentence| sentence.contains("recursion limit"))
        );
    }
}
