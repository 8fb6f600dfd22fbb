//! The control socket between the caller and the sandbox's own stages. No program inside ever holds it.

use std::ffi::OsString;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags,
};

use crate::error::SandboxError;
use crate::links::LinkRequest;

/// The longest message, bytes.
const MAX_MESSAGE: usize = 4096;
/// The longest command line of a program, bytes: Linux takes about 2 MB with the environment.
const MAX_WORDS: usize = 1 << 20;

/// What travels over the control socket, one datagram each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Message {
    /// To the caller: the new user namespace waits for its maps.
    MapUsers,
    /// From the caller: one host mount as the mapped users see it (its path; the mount comes with it).
    Mount(PathBuf),
    /// From the caller: the maps are written, or all mounts are sent.
    Mapped,
    /// To the caller: the host's mounts are wanted.
    WantMounts,
    /// To the caller: the number of the first process inside, as the caller sees it.
    Started(u32),
    /// To the caller: set up; the listener comes with it.
    Listening,
    /// To the caller: something cannot be provided.
    Note(String),
    /// To the caller: a step failed, and all is over.
    Failed(SandboxError),
    /// From the caller: a piece of the next program's words, each ended by a zero byte.
    Words(Vec<u8>),
    /// From the caller: run it; what it reads as its standard input may come with it.
    Run,
    /// To the caller: the program exited with this code.
    Exited(u8),
    /// To the caller: this signal ended the program.
    Signalled(u8),
    /// To the caller: processes that the program started run on after its end.
    OthersRun,
    /// To the caller: a watched file, and its content.
    File(String, String),
    /// From the caller: change a network link.
    Link(LinkRequest),
    /// To the caller: done, or why not.
    LinkDone(Option<String>),
    /// From the caller: open a file.
    Open(PathBuf),
    /// To the caller: the file, if there is one.
    Opened,
    /// Either side is gone, or spoke nonsense.
    End,
}

impl Message {
    fn encode(&self) -> Vec<u8> {
        let (letter, body): (u8, Vec<u8>) = match self {
            Self::MapUsers => (b'M', Vec::new()),
            Self::Mount(path) => (b'D', path.as_os_str().as_bytes().to_vec()),
            Self::Mapped => (b'G', Vec::new()),
            Self::WantMounts => (b'Q', Vec::new()),
            Self::Started(pid) => (b'P', pid.to_le_bytes().to_vec()),
            Self::Listening => (b'L', Vec::new()),
            Self::Note(text) => (b'N', text.clone().into_bytes()),
            Self::Failed(error) => (b'F', error.encode().into_bytes()),
            Self::Words(bytes) => (b'W', bytes.clone()),
            Self::Run => (b'R', Vec::new()),
            Self::Exited(code) => (b'X', vec![*code]),
            Self::Signalled(signal) => (b'S', vec![*signal]),
            Self::OthersRun => (b'B', Vec::new()),
            Self::File(path, content) => (b'C', format!("{path}\0{content}").into_bytes()),
            Self::Link(request) => (b'K', request.encode().into_bytes()),
            Self::LinkDone(reason) => (b'k', reason.clone().unwrap_or_default().into_bytes()),
            Self::Open(path) => (b'O', path.as_os_str().as_bytes().to_vec()),
            Self::Opened => (b'o', Vec::new()),
            Self::End => (b'E', Vec::new()),
        };
        let mut bytes = vec![letter];
        bytes.extend(body);
        bytes.truncate(MAX_MESSAGE);
        bytes
    }

    fn decode(bytes: &[u8]) -> Self {
        let Some((letter, body)) = bytes.split_first() else { return Self::End };
        let text = || String::from_utf8_lossy(body).into_owned();
        let path = || PathBuf::from(OsString::from_vec(body.to_vec()));
        let byte = body.first().copied().unwrap_or(1);
        match letter {
            b'M' => Self::MapUsers,
            b'D' => Self::Mount(path()),
            b'G' => Self::Mapped,
            b'Q' => Self::WantMounts,
            b'P' => body.try_into().map_or(Self::End, |bytes| Self::Started(u32::from_le_bytes(bytes))),
            b'L' => Self::Listening,
            b'N' => Self::Note(text()),
            b'F' => Self::Failed(SandboxError::decode(&text())),
            b'W' => Self::Words(body.to_vec()),
            b'R' => Self::Run,
            b'X' => Self::Exited(byte),
            b'S' => Self::Signalled(byte),
            b'B' => Self::OthersRun,
            b'C' => {
                let text = text();
                let (path, content) = text.split_once('\0').unwrap_or((&text, ""));
                Self::File(path.to_owned(), content.to_owned())
            }
            b'K' => LinkRequest::decode(&text()).map_or(Self::End, Self::Link),
            b'k' => Self::LinkDone(Some(text()).filter(|reason| !reason.is_empty())),
            b'O' => Self::Open(path()),
            b'o' => Self::Opened,
            _ => Self::End,
        }
    }
}

/// One end of the control socket.
#[derive(Debug)]
pub(crate) struct Control<Socket: AsFd = OwnedFd>(Socket);

impl<Socket: AsFd> Control<Socket> {
    pub(crate) fn new(socket: Socket) -> Self {
        Self(socket)
    }

    pub(crate) fn send(&self, message: &Message) -> io::Result<()> {
        self.send_with(message, None)
    }

    /// Sends a message, with a descriptor if there is one.
    pub(crate) fn send_with(&self, message: &Message, fd: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        let fds: Vec<BorrowedFd<'_>> = fd.into_iter().collect();
        if !fds.is_empty() {
            ancillary.push(SendAncillaryMessage::ScmRights(&fds));
        }
        let bytes = message.encode();
        rustix::net::sendmsg(&self.0, &[io::IoSlice::new(&bytes)], &mut ancillary, SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Sends a program's words, in as many pieces as they need.
    pub(crate) fn send_words(&self, words: &[OsString]) -> io::Result<()> {
        let mut bytes = Vec::new();
        for word in words {
            bytes.extend(word.as_bytes());
            bytes.push(0);
        }
        if bytes.len() > MAX_WORDS {
            return Err(io::Error::other(format!(
                "a command line of {} bytes: {MAX_WORDS} is the limit",
                bytes.len()
            )));
        }
        bytes.chunks(MAX_MESSAGE - 1).try_for_each(|piece| self.send(&Message::Words(piece.to_vec())))
    }

    /// Receives one message, with its descriptor if one came.
    pub(crate) fn receive(&self) -> io::Result<(Message, Option<OwnedFd>)> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut space);
        let mut buffer = vec![0_u8; MAX_MESSAGE];
        let received = rustix::net::recvmsg(
            &self.0,
            &mut [io::IoSliceMut::new(&mut buffer)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        )?;
        buffer.truncate(received.bytes);
        let fd = ancillary.drain().find_map(|message| match message {
            RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
            _ => None,
        });
        Ok((Message::decode(&buffer), fd))
    }
}

impl<Socket: AsFd> AsFd for Control<Socket> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The words of a program, from the pieces they came in.
pub(crate) fn words_of(bytes: &[u8]) -> Vec<OsString> {
    let mut words: Vec<OsString> =
        bytes.split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec())).collect();
    // What follows the last zero byte is no word.
    words.pop();
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_survive_the_socket() {
        let messages = [
            Message::MapUsers,
            Message::Mount("/home".into()),
            Message::Started(4_194_304),
            Message::Note("x".into()),
            Message::Failed(SandboxError { step: "a".into(), reason: "b".into(), forbidden: true }),
            Message::Words(b"sh\0".to_vec()),
            Message::Exited(3),
            Message::Signalled(9),
            Message::OthersRun,
            Message::File("/a".into(), "1".into()),
            Message::Link(LinkRequest::Delete("ifb0".into())),
            Message::LinkDone(None),
            Message::LinkDone(Some("no".into())),
            Message::Open("/tmp/snap.txt".into()),
        ];
        for message in messages {
            assert_eq!(Message::decode(&message.encode()), message);
        }
        assert_eq!(Message::decode(b""), Message::End);
        assert_eq!(Message::decode(b"Kjunk"), Message::End);
        assert_eq!(Message::decode(b"Pid"), Message::End);
    }

    #[test]
    fn words_survive_their_pieces_empty_ones_too() {
        let words: Vec<OsString> = vec!["sh".into(), "-c".into(), "".into()];
        let bytes: Vec<u8> = words.iter().flat_map(|word| [word.as_bytes(), &[0]].concat()).collect();
        assert_eq!(words_of(&bytes), words);
    }
}
