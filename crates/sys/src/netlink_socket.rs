//! A conversation with the kernel over rtnetlink: messages whose bytes others make, acknowledged one by one,
//! and dumps.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use tidegate_netlink_wire::attribute::{each, put_head};
use tidegate_netlink_wire::numbers::{
    NLM_F_ACK, NLM_F_ACK_TLVS, NLM_F_DUMP, NLM_F_REQUEST, NLMSG_DONE, NLMSG_ERROR, NLMSG_HEAD,
};

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::sockopt;

const NLMSGERR_ATTR_MSG: u16 = 1;
/// The most bytes that the kernel puts into one answer.
const ANSWER: usize = 1 << 16;

/// Why the kernel refused a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelRefusal {
    /// The error's number.
    pub errno: i32,
    /// The kernel's words, if it had any.
    pub message: Option<String>,
}

impl fmt::Display for KernelRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.message {
            Some(message) => write!(f, "{message} ({})", io::Error::from_raw_os_error(self.errno)),
            None => write!(f, "{}", io::Error::from_raw_os_error(self.errno)),
        }
    }
}

impl std::error::Error for KernelRefusal {}

/// One message of a dump: its type, and what follows its head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DumpMessage {
    /// The message's type.
    pub kind: u16,
    /// The message without its header.
    pub body: Vec<u8>,
}

/// The conversation, with the kernel of the network namespace it was opened in.
#[derive(Debug)]
pub struct NetlinkSocket {
    socket: OwnedFd,
    sequence: u32,
    buffer: Vec<u8>,
}

impl NetlinkSocket {
    /// Opens a netlink socket in the network namespace of the calling thread.
    ///
    /// # Errors
    /// What `socket(2)` reports.
    pub fn open() -> io::Result<NetlinkSocket> {
        NetlinkSocket::over(None)
    }

    /// Opens one with netfilter.
    ///
    /// # Errors
    /// What `socket(2)` reports.
    pub fn open_netfilter() -> io::Result<NetlinkSocket> {
        NetlinkSocket::over(Some(netlink::NETFILTER))
    }

    fn over(protocol: Option<rustix::net::Protocol>) -> io::Result<NetlinkSocket> {
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            protocol,
        )?;
        // Acknowledgements bring the head of the message only, and the kernel's words.
        for option in [libc::NETLINK_CAP_ACK, libc::NETLINK_EXT_ACK] {
            // A kernel that cannot do this (before 4.12) answers with numbers alone.
            let _ = sockopt::set(&socket, libc::SOL_NETLINK, option, 1);
        }
        Ok(NetlinkSocket { socket, sequence: 0, buffer: vec![0; ANSWER] })
    }

    /// Sends a message with a request for acknowledgement, and waits for that: nothing is sent after a
    /// refusal unless the caller decides so.
    ///
    /// # Errors
    /// The socket's; within, the kernel's refusal.
    pub fn request(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<Result<(), KernelRefusal>> {
        self.send(kind, flags, body)?;
        loop {
            let (length, _) = rustix::net::recv(&self.socket, &mut self.buffer[..], RecvFlags::empty())?;
            for answer in messages(&self.buffer[..length.min(ANSWER)]) {
                if answer.sequence == self.sequence && answer.kind == NLMSG_ERROR {
                    return Ok(refusal(&answer).map_or(Ok(()), Err));
                }
            }
        }
    }

    /// Sends messages in one piece. One of them requests an acknowledgement, which shows that the kernel came
    /// to its end; for the others only refusals come back, with the index of the refused message. Whether
    /// messages after a refusal were carried out is the kernel's affair: netfilter's batches are undone,
    /// traffic control's messages are not.
    ///
    /// # Errors
    /// The socket's, or the kernel did not come to the end of them.
    pub fn send_all<'m>(
        &mut self,
        all: impl IntoIterator<Item = (u16, u16, &'m [u8])>,
    ) -> io::Result<Result<(), (usize, KernelRefusal)>> {
        let first = self.sequence.wrapping_add(1);
        let (mut bytes, mut awaited) = (Vec::new(), first);
        for (kind, flags, body) in all {
            self.write(&mut bytes, kind, flags, body)?;
            if flags & NLM_F_ACK != 0 {
                awaited = self.sequence;
            }
        }
        rustix::net::sendto(&self.socket, &bytes, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        let mut refused: Option<(usize, KernelRefusal)> = None;
        let mut ended = false;
        // The kernel has answered by the time that the messages are sent, so nothing is waited for.
        loop {
            let length = match rustix::net::recv(&self.socket, &mut self.buffer[..], RecvFlags::DONTWAIT) {
                Ok((length, _)) => length,
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error.into()),
            };
            for answer in messages(&self.buffer[..length.min(ANSWER)]) {
                let at = answer.sequence.wrapping_sub(first) as usize;
                if answer.kind != NLMSG_ERROR
                    || answer.sequence.wrapping_sub(first) > self.sequence.wrapping_sub(first)
                {
                    continue;
                }
                ended |= answer.sequence == awaited;
                if let Some(refusal) = refusal(&answer) {
                    refused = Some(match refused {
                        Some(earlier) if earlier.0 <= at => earlier,
                        _ => (at, refusal),
                    });
                }
            }
        }
        match refused {
            Some(refused) => Ok(Err(refused)),
            None if ended => Ok(Ok(())),
            None => Err(io::Error::other("the kernel did not acknowledge the messages")),
        }
    }

    /// Requests one thing.
    ///
    /// # Errors
    /// The socket's, and the kernel's refusal.
    pub fn get(&mut self, kind: u16, body: &[u8]) -> io::Result<DumpMessage> {
        self.send(kind, NLM_F_REQUEST, body)?;
        loop {
            let (length, _) = rustix::net::recv(&self.socket, &mut self.buffer[..], RecvFlags::empty())?;
            for answer in messages(&self.buffer[..length.min(ANSWER)]) {
                match (answer.sequence == self.sequence, answer.kind) {
                    (false, _) => {}
                    (true, NLMSG_ERROR) => {
                        let errno = refusal(&answer).map_or(0, |refused| refused.errno);
                        return Err(io::Error::from_raw_os_error(errno));
                    }
                    (true, kind) => return Ok(DumpMessage { kind, body: answer.body.to_vec() }),
                }
            }
        }
    }

    /// Requests all there is of something.
    ///
    /// # Errors
    /// The socket's, and the kernel's refusal.
    pub fn dump(&mut self, kind: u16, body: &[u8]) -> io::Result<Vec<DumpMessage>> {
        self.send(kind, NLM_F_REQUEST | NLM_F_DUMP, body)?;
        let mut all = Vec::new();
        loop {
            let (length, _) = rustix::net::recv(&self.socket, &mut self.buffer[..], RecvFlags::empty())?;
            for answer in messages(&self.buffer[..length.min(ANSWER)]) {
                if answer.sequence != self.sequence {
                    continue;
                }
                match answer.kind {
                    NLMSG_DONE => return Ok(all),
                    NLMSG_ERROR => {
                        return match refusal(&answer) {
                            Some(refused) => Err(io::Error::from_raw_os_error(refused.errno)),
                            None => Ok(all),
                        };
                    }
                    kind => all.push(DumpMessage { kind, body: answer.body.to_vec() }),
                }
            }
        }
    }

    fn send(&mut self, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        let mut message = Vec::with_capacity(NLMSG_HEAD + body.len());
        self.write(&mut message, kind, flags, body)?;
        rustix::net::sendto(&self.socket, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        Ok(())
    }

    /// Writes a message behind others, with the next number.
    fn write(&mut self, message: &mut Vec<u8>, kind: u16, flags: u16, body: &[u8]) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let length = u32::try_from(NLMSG_HEAD + body.len()).map_err(io::Error::other)?;
        put_head(message, length, kind, flags, self.sequence);
        message.extend(body);
        message.resize(message.len().next_multiple_of(4), 0);
        Ok(())
    }
}

/// One message of an answer.
pub(crate) struct ReplyMessage<'b> {
    pub(crate) kind: u16,
    flags: u16,
    sequence: u32,
    pub(crate) body: &'b [u8],
}

/// The messages of an answer; what is cut short ends them.
pub(crate) fn messages(mut bytes: &[u8]) -> impl Iterator<Item = ReplyMessage<'_>> {
    std::iter::from_fn(move || {
        let head = bytes.get(..NLMSG_HEAD)?;
        let length = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let body = bytes.get(NLMSG_HEAD..length)?;
        let answer = ReplyMessage {
            kind: u16::from_ne_bytes([head[4], head[5]]),
            flags: u16::from_ne_bytes([head[6], head[7]]),
            sequence: u32::from_ne_bytes([head[8], head[9], head[10], head[11]]),
            body,
        };
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(answer)
    })
}

/// The refusal in an acknowledgement; `None`: it succeeded.
fn refusal(answer: &ReplyMessage<'_>) -> Option<KernelRefusal> {
    let code =
        answer.body.get(..4).map(|bytes| i32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))?;
    if code == 0 {
        return None;
    }
    let extended = (answer.flags & NLM_F_ACK_TLVS != 0).then(|| answer.body.get(4 + NLMSG_HEAD..)).flatten();
    Some(KernelRefusal { errno: code.saturating_neg(), message: extended.and_then(words) })
}

/// The kernel's words among the attributes behind a refusal.
fn words(bytes: &[u8]) -> Option<String> {
    let (_, value) = each(bytes).find(|(number, _)| *number == NLMSGERR_ATTR_MSG)?;
    let text = value.split(|byte| *byte == 0).next()?;
    Some(String::from_utf8_lossy(text).into_owned())
}

pub(crate) fn fuzz(bytes: &[u8]) {
    messages(bytes).for_each(|answer| drop(refusal(&answer)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, flags: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_head(&mut bytes, (NLMSG_HEAD + body.len()) as u32, kind, flags, sequence);
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn a_refusal_has_its_number_and_the_kernels_words() {
        let mut body = (-17_i32).to_ne_bytes().to_vec();
        body.extend([0; NLMSG_HEAD]);
        body.extend([12, 0, 1, 0]);
        body.extend(*b"in use\0\0");
        let bytes = message(NLMSG_ERROR, NLM_F_ACK_TLVS, 1, &body);
        let answer = messages(&bytes).next().expect("a message");
        assert_eq!(refusal(&answer), Some(KernelRefusal { errno: 17, message: Some("in use".into()) }));
    }

    #[test]
    fn what_is_cut_short_ends_an_answer() {
        let mut bytes = message(36, 0, 1, &[1, 2, 3]);
        bytes.extend(&message(36, 0, 1, &[4; 8])[..20]);
        let bodies: Vec<Vec<u8>> = messages(&bytes).map(|answer| answer.body.to_vec()).collect();
        assert_eq!(bodies, [[1, 2, 3]]);
    }
}
