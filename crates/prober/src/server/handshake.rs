//! Finding the server, and each proving to the other that he knows the token.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use tidegate_probe_wire::{ControlMessage, NONCE_LEN, Role, Token};
use tidegate_sys::datagrams::{DatagramSocket, ReceiveBuffers};

use super::session::ServerSession;
use crate::chance;
use crate::clock::ProbeClock;
use crate::error::{Error, unreachable};
use crate::line::{Came, Line};
use crate::names::addresses;
use crate::target::ServerTarget;

/// How long one address may take to answer.
const CONNECT: Duration = Duration::from_secs(5);
/// How often a refused connection is tried again, and the time between.
const TRIES: u32 = 10;
const BETWEEN: Duration = Duration::from_millis(150);
/// How long a reply may take.
pub(super) const ANSWER: Duration = Duration::from_secs(10);

pub(super) fn connect(target: &ServerTarget) -> Result<ServerSession, Error> {
    let clock = ProbeClock::begin();
    let (stream, server) = reach(target)?;
    let mut line = Line::new(stream).map_err(Error::io("prepare the connection"))?;
    let draw = chance::random_bytes::<NONCE_LEN>().map_err(Error::io("draw at random"))?;
    let requested = clock.now();
    let challenge = answer(&mut line, &ControlMessage::Hello { draw })?;
    let rtt_ns = clock.now().saturating_sub(requested);
    let ControlMessage::Challenge { draw: theirs, wants_token } = challenge else {
        return Err(out_of_turn(challenge));
    };
    let token = match (&target.token, wants_token) {
        (Some(token), true) => token.clone(),
        (None, false) => Token::open(),
        (None, true) => return Err(Error::WantsToken),
        (Some(_), false) => return Err(Error::WantsNoToken),
    };
    let welcome = answer(&mut line, &ControlMessage::Proof(token.prove(Role::Client, &draw, &theirs)))?;
    let ControlMessage::Welcome { proof, session, limits } = welcome else {
        return Err(out_of_turn(welcome));
    };
    if !token.proves_with(&proof, Role::Server, &draw, &theirs, &ControlMessage::welcome(session, &limits)) {
        return Err(Error::Impostor);
    }
    let key = token.session_key(&draw, &theirs);
    line.seal(&key, Role::Client);
    let any: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = DatagramSocket::bind(any).map_err(Error::io("open a UDP socket"))?;
    Ok(ServerSession {
        clock,
        line,
        socket: Arc::new(socket),
        room: ReceiveBuffers::default(),
        server,
        session,
        key,
        flows: Arc::default(),
        limits,
        rtt_ns,
        exchange: 0,
        lost_here: 0,
        late: [0; 2],
        broken: None,
        stop: None,
    })
}

/// Tries the addresses of a name one after the other.
fn reach(target: &ServerTarget) -> Result<(TcpStream, SocketAddr), Error> {
    let mut last = Error::Wrong(format!("`{}` has no address", target.host));
    for ip in addresses(&target.host, target.family)? {
        let to = SocketAddr::new(ip, target.port);
        match call(to) {
            Ok(stream) => return Ok((stream, to)),
            Err(why) => last = unreachable(to, why),
        }
    }
    Err(last)
}

/// A server that was started at the same time may not listen yet.
fn call(to: SocketAddr) -> io::Result<TcpStream> {
    for _ in 0..TRIES {
        match TcpStream::connect_timeout(&to, CONNECT) {
            Err(why) if why.kind() == io::ErrorKind::ConnectionRefused => std::thread::sleep(BETWEEN),
            other => return other,
        }
    }
    TcpStream::connect_timeout(&to, CONNECT)
}

/// Sends a message and waits for the reply.
pub(super) fn answer(line: &mut Line, message: &ControlMessage) -> Result<ControlMessage, Error> {
    line.send(message).map_err(gone)?;
    match line.receive(tidegate_probe_wire::MOST, ANSWER).map_err(gone)? {
        Came::Message(ControlMessage::Refused(why)) => Err(Error::Refused(why)),
        Came::Message(message) => Ok(message),
        Came::Garbage(why) => Err(why.into()),
        Came::Nothing => Err(Error::Gone(format!("it has said nothing for {} s", ANSWER.as_secs()))),
        Came::End => Err(Error::Gone("it closed the connection".to_owned())),
    }
}

pub(super) fn out_of_turn(_: ControlMessage) -> Error {
    Error::Nonsense(tidegate_probe_wire::Malformed("an answer to something else"))
}

fn gone(why: io::Error) -> Error {
    Error::Gone(why.to_string())
}
