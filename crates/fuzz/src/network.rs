//! Parsers of what comes over sockets: from control clients, from servers and clients of the probe protocol,
//! from the kernel.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use tidegate_dataplane::daemon::control::{ReplyWriter, RequestHandler, serve};
use tidegate_netlink::decode;
use tidegate_probe_wire::{
    ControlMessage, PacketArrivals, PacketHeader, Quotas, Role, SessionKey, Sessions, TcpSample, Token,
};
use tidegate_shims::Call;
use tidegate_sys::service::Peer;

/// Answers the way the daemon does: `tc` requests carry words and a batch.
struct Model;

impl RequestHandler for Model {
    fn answer(&self, request: &Value, _: Peer, tell: &mut ReplyWriter<'_>) -> std::io::Result<()> {
        let words = request["words"].as_array().into_iter().flatten();
        let args = words.filter_map(|word| word.as_str().map(str::to_owned)).collect();
        let stdin = request["input"].as_str().map(|text| text.as_bytes().to_vec());
        tidegate::fuzzing::calls(&[Call {
            tool: "tc".to_owned(),
            args,
            stdin,
            cwd: PathBuf::from("/"),
            netns: None,
        }]);
        tell(&json!({"asked": request["ask"]}))
    }
}

/// The socket that is served, once for all inputs.
fn socket() -> &'static PathBuf {
    static SOCKET: OnceLock<PathBuf> = OnceLock::new();
    SOCKET.get_or_init(|| {
        let path = std::env::temp_dir().join(format!("tidegate-fuzz-{}.sock", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let listener = UnixListener::bind(&path).expect("a socket in the temporary directory");
        serve(listener, Arc::new(Model)).expect("a thread");
        path
    })
}

pub(crate) fn control_socket(bytes: &[u8]) {
    let stream = UnixStream::connect(socket()).expect("it is served");
    // A server that has heard enough hangs up.
    let _ = (&stream).write_all(bytes);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    for line in BufReader::new(&stream).lines() {
        let Ok(line) = line else { break };
        serde_json::from_str::<Value>(&line).expect("replies are JSON");
    }
}

pub(crate) fn probe_messages(bytes: &[u8]) {
    if let Some(front) = bytes.first_chunk::<4>() {
        let _ = ControlMessage::length(*front, 1 << 20);
    }
    if let Ok(message) = ControlMessage::decode(bytes) {
        let encoded = message.encode();
        assert_eq!(
            ControlMessage::decode(&encoded[4..]),
            Ok(message.clone()),
            "a message reads back as it was written"
        );
        let mut sessions = Sessions::new(None, Quotas::default());
        let from = IpAddr::V4(Ipv4Addr::LOCALHOST);
        if let Ok(call) = sessions.call(0, from, [7; tidegate_probe_wire::NONCE_LEN], 9) {
            let _ = sessions.on_message(1, call, message);
            let _ = sessions.datagram(2, SocketAddr::new(from, 9), bytes, 2, Some(0));
        }
    }
    if let Some(header) = PacketHeader::read(bytes) {
        let key = session_key();
        assert_eq!(
            PacketHeader::read_sealed(&header.write(&key), &key),
            Some(header),
            "a header reads back as it was sealed"
        );
    }
    let _ = TcpSample::read(bytes);
    let _ = TcpSample::read_sealed(bytes, &mut session_key().samples());
    let _ = ControlMessage::decode_sealed(bytes, &mut session_key().seal(Role::Client));
    let (mut sightings, mut departures) = (PacketArrivals::new(64), tidegate_probe_wire::Departures::new(64));
    let _ = sightings.take_part(0, bytes);
    let _ = departures.take_part(0, bytes);
}

/// The key of a session without a token.
fn session_key() -> SessionKey {
    Token::open().session_key(&[1; tidegate_probe_wire::NONCE_LEN], &[2; tidegate_probe_wire::NONCE_LEN])
}

/// Messages one behind the other, each behind its length in two bytes.
fn messages(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<2>() {
        let (message, rest) = rest.split_at(usize::from(u16::from_le_bytes(*length)).min(rest.len()));
        all.push(message.to_vec());
        bytes = rest;
    }
    all
}

pub(crate) fn netlink_dump(bytes: &[u8]) {
    let bytes = messages(bytes);
    let number =
        bytes.first().and_then(|message| message.get(4..8)?.try_into().ok()).map_or(1, u32::from_ne_bytes);
    let names = |number: u32| Some(format!("dev{number}"));
    let _ = decode::qdiscs("eth0", number, &bytes);
    let _ = decode::classes("eth0", number, &bytes);
    let _ = decode::filters("eth0", &bytes, &names);
    let _ = decode::actions(&bytes, &names);
}

pub(crate) fn netlink_messages(bytes: &[u8]) {
    tidegate_sys::fuzzing::netlink(bytes);
    tidegate_sys::fuzzing::control(bytes);
}
