//! The control socket: one JSON object a line, each way.

use serde_json::{Value, json};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tidegate_os::service::{self, Peer};

/// Who may be connected at once.
const MOST: usize = 16;
/// Octets of the longest request: a policy of a hundred thousand commands.
const LONGEST: u64 = 16 << 20;
/// Whoever takes nothing for so long is let go.
const PATIENCE: Duration = Duration::from_secs(10);

/// Answers requests.
pub trait Answers: Send + Sync {
    /// Answers one, by one line or more.
    ///
    /// # Errors
    /// Who asked is gone.
    fn answer(&self, request: &Value, who: Peer, tell: &mut Tell<'_>) -> io::Result<()>;
}

/// Says a line of an answer.
pub type Tell<'t> = dyn FnMut(&Value) -> io::Result<()> + 't;

/// Answers everybody who connects, each in a thread of his own, until the process ends.
///
/// # Errors
/// No thread can be had.
pub fn serve(listener: UnixListener, answers: Arc<dyn Answers>) -> io::Result<()> {
    let here = Arc::new(AtomicUsize::new(0));
    let accept = move || {
        for stream in listener.incoming().flatten() {
            if here.fetch_add(1, Ordering::Relaxed) >= MOST {
                here.fetch_sub(1, Ordering::Relaxed);
                let full = json!({"error": format!("{MOST} others are connected already"), "remedy": "try again when one of them has left"});
                let _ = writeln!(&stream, "{full}");
                continue;
            }
            let (answers, here) = (answers.clone(), here.clone());
            let talk = move || {
                // Whoever goes in the middle of an answer wanted no more of it.
                let _ = talk(&stream, &*answers);
                here.fetch_sub(1, Ordering::Relaxed);
            };
            let _ = std::thread::Builder::new().name("control".into()).spawn(talk);
        }
    };
    std::thread::Builder::new().name("control".into()).spawn(accept).map(drop)
}

fn talk(stream: &UnixStream, answers: &dyn Answers) -> io::Result<()> {
    let who = service::peer(stream)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut reader = BufReader::new(stream);
    let mut writer = BufWriter::new(stream);
    loop {
        let mut line = Vec::new();
        (&mut reader).take(LONGEST).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        let mut tell = |value: &Value| {
            serde_json::to_writer(&mut writer, value)?;
            writer.write_all(b"\n")?;
            writer.flush()
        };
        if line.last() != Some(&b'\n') {
            return tell(
                &json!({"error": "the request is cut off or too long", "remedy": "one JSON object of at most 16 MiB, and a line feed"}),
            );
        }
        match serde_json::from_slice(&line) {
            Ok(request) => answers.answer(&request, who, &mut tell)?,
            Err(error) => tell(
                &json!({"error": format!("this is no JSON: {error}"), "remedy": "{\"ask\": \"status\"}, for example"}),
            )?,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo;

    impl Answers for Echo {
        fn answer(&self, request: &Value, who: Peer, tell: &mut Tell<'_>) -> io::Result<()> {
            tell(&json!({"asked": request, "by": who.pid}))
        }
    }

    fn exchange(said: &[u8]) -> Vec<Value> {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let answering = std::thread::spawn(move || talk(&theirs, &Echo));
        (&ours).write_all(said).expect("it is taken");
        ours.shutdown(std::net::Shutdown::Write).expect("ours");
        let answers =
            BufReader::new(ours).lines().map(|line| serde_json::from_str(&line.expect("a line")).expect("JSON"));
        let answers = answers.collect();
        answering.join().expect("no panic").expect("no trouble");
        answers
    }

    #[test]
    fn each_line_is_answered_and_what_is_none_is_told_why() {
        let answers = exchange(b"{\"ask\":1}\nnot json\n[2]\n{\"cut");
        assert_eq!(answers[0], json!({"asked": {"ask": 1}, "by": std::process::id()}));
        assert!(answers[1]["error"].as_str().is_some_and(|told| told.starts_with("this is no JSON")), "{answers:?}");
        assert_eq!(answers[2]["asked"], json!([2]));
        assert_eq!(answers[3]["error"], "the request is cut off or too long");
        assert_eq!(answers.len(), 4);
    }

    #[test]
    fn who_says_nothing_is_told_nothing() {
        assert!(exchange(b"").is_empty());
    }
}
