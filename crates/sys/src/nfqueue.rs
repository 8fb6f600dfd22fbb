//! Netfilter's queues: packets that wait in the kernel for a program's verdict, of which the program sees the
//! front.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use tidegate_netlink_wire::attribute::{each as each_attribute, put, put_head};
use tidegate_netlink_wire::numbers::{NLM_F_ACK, NLM_F_REQUEST, NLMSG_ERROR, NLMSG_HEAD};

use rustix::io::Errno;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use crate::messages::{self, InMessage};
use crate::sockopt;

const PACKET: u16 = 3 << 8;
const VERDICT: u16 = 3 << 8 | 1;
const CONFIG: u16 = 3 << 8 | 2;
const CFG_COMMAND: u16 = 1;
const CFG_PARAMETERS: u16 = 2;
const CFG_LONGEST: u16 = 3;
const CFG_MASK: u16 = 4;
const CFG_FLAGS: u16 = 5;
const COMMAND_BIND: u8 = 1;
/// Copy the front of each packet.
const COPY_PACKET: u8 = 2;
/// What finds no space passes.
const FLAG_FAIL_OPEN: u32 = 1;
/// Super-packets come whole.
const FLAG_GSO: u32 = 4;
const PACKET_HEAD: u16 = 1;
const VERDICT_HEAD: u16 = 2;
const MARK: u16 = 3;
const PAYLOAD: u16 = 10;
const WHOLE_LENGTH: u16 = 13;
const INFO: u16 = 14;
const PRIORITY: u16 = 21;
/// It is a super-packet.
const INFO_GSO: u32 = 2;
const DROP: u32 = 0;
const ACCEPT: u32 = 1;
/// The size in bytes of the socket's receive buffer.
const ROOM: usize = 32 << 20;
const BOTH_HEADS: usize = NLMSG_HEAD + 4;
/// Bytes of a packet that are copied: link headers are not among them.
pub const COPIED: usize = 128;
/// Space for one message: the bytes copied and what is reported beside them.
const MESSAGE: usize = 512;
/// The most messages of one call.
const BATCH: usize = 32;
/// Verdicts of this many bytes are sent.
const FULL: usize = 8192;

/// A packet that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuedPacket<'a> {
    /// The queue's number.
    pub queue: u16,
    /// The kernel's number of it in this queue.
    pub id: u32,
    /// Its protocol (EtherType).
    pub protocol: u16,
    /// The packet's mark.
    pub mark: u32,
    /// The priority; 0 from kernels before 5.18.
    pub priority: u32,
    /// Its front, from IP's header on.
    pub front: &'a [u8],
    /// Bytes of the whole from there on.
    pub len: u32,
    /// It is a super-packet.
    pub is_super: bool,
}

/// How a queue is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keeping {
    /// The most packets that wait in it, those already delivered included.
    pub longest: u32,
    /// A packet without space in the queue passes; otherwise it is dropped.
    pub fail_open: bool,
    /// Super-packets come whole; otherwise the kernel cuts them before.
    pub whole: bool,
}

/// A program's end of queues.
pub struct Queues {
    socket: OwnedFd,
    sequence: u32,
    room: Vec<[u8; MESSAGE]>,
    /// Verdicts that were not sent yet.
    verdicts: Vec<u8>,
}

impl std::fmt::Debug for Queues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queues").field("socket", &self.socket).finish_non_exhaustive()
    }
}

impl Queues {
    /// Opens an end in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel's error: it has no netfilter, say.
    pub fn open() -> io::Result<Queues> {
        let protocol = Some(netlink::NETFILTER);
        let socket = rustix::net::socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            protocol,
        )?;
        // Packets that found no space are counted; reads shall not fail for them.
        sockopt::set(&socket, libc::SOL_NETLINK, libc::NETLINK_NO_ENOBUFS, 1)?;
        // Without CAP_NET_ADMIN it is as much as any user may have.
        let _ = sockopt::receive_buffer(&socket, ROOM);
        Ok(Queues {
            socket,
            sequence: 0,
            room: vec![[0; MESSAGE]; BATCH],
            verdicts: Vec::with_capacity(FULL),
        })
    }

    /// Takes a queue, which must be free.
    ///
    /// # Errors
    /// Another program has it, the kernel has no such queues, or permission is missing.
    pub fn take(&mut self, queue: u16, keeping: Keeping) -> io::Result<()> {
        let mut body = Vec::new();
        put(&mut body, CFG_COMMAND, &[COMMAND_BIND, 0, 0, 0]);
        self.ask(queue, &body)?;
        let mut body = Vec::new();
        let copied = (COPIED as u32).to_be_bytes();
        put(&mut body, CFG_PARAMETERS, &[copied[0], copied[1], copied[2], copied[3], COPY_PACKET]);
        put(&mut body, CFG_LONGEST, &keeping.longest.to_be_bytes());
        self.ask(queue, &body)?;
        self.keep(queue, keeping)
    }

    /// Keeps a queue otherwise: what finds no space, and whether super-packets are cut.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn keep(&mut self, queue: u16, keeping: Keeping) -> io::Result<()> {
        let flag = |flag: u32, on: bool| if on { flag } else { 0 };
        let flags = flag(FLAG_FAIL_OPEN, keeping.fail_open) | flag(FLAG_GSO, keeping.whole);
        let mut body = Vec::new();
        put(&mut body, CFG_FLAGS, &flags.to_be_bytes());
        put(&mut body, CFG_MASK, &(FLAG_FAIL_OPEN | FLAG_GSO).to_be_bytes());
        self.ask(queue, &body)
    }

    /// Sends a message about a queue. Packets may come before its acknowledgement, so that is read with them:
    /// its refusal is returned by `receive`, unless it is there at once, as it is unless many packets wait.
    fn ask(&mut self, queue: u16, attributes: &[u8]) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut bytes = Vec::new();
        message(&mut bytes, CONFIG, NLM_F_REQUEST | NLM_F_ACK, self.sequence, queue, attributes);
        self.send(&bytes)?;
        let mut answer = [0_u8; MESSAGE];
        // Nothing is taken that is not the answer: packets stay for `receive`.
        let peeked = rustix::net::recv(&self.socket, &mut answer[..], RecvFlags::DONTWAIT | RecvFlags::PEEK);
        match peeked {
            Ok((bytes, _)) if bytes >= NLMSG_HEAD + 4 && u16_at(&answer, 4) == NLMSG_ERROR => {
                rustix::net::recv(&self.socket, &mut answer[..], RecvFlags::DONTWAIT)?;
                refused(&answer)
            }
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn send(&self, bytes: &[u8]) -> io::Result<()> {
        rustix::net::sendto(&self.socket, bytes, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        Ok(())
    }

    /// Tells of packets that wait, at most so many, and of verdicts that came too late (`None`). How many
    /// messages there were.
    ///
    /// # Errors
    /// The kernel's error; packets dropped before they came here are no error.
    pub fn receive(
        &mut self,
        most: usize,
        tell: &mut dyn FnMut(Option<QueuedPacket<'_>>),
    ) -> io::Result<usize> {
        let mut all = 0;
        while all < most {
            let requested = BATCH.min(most - all);
            let lengths = self.read(requested)?;
            let read = lengths.iter().take_while(|length| **length > 0).count();
            for (bytes, length) in self.room.iter().zip(lengths).take(read) {
                each(&bytes[..length.min(MESSAGE)], tell);
            }
            all += read;
            if read < requested {
                break;
            }
        }
        Ok(all)
    }

    /// Reads messages into the space for them; how long each is.
    fn read(&mut self, most: usize) -> io::Result<[usize; BATCH]> {
        let mut room = self.room.iter_mut();
        let mut pieces: [_; BATCH] =
            std::array::from_fn(|_| [IoSliceMut::new(room.next().map_or(&mut [], |row| row))]);
        let mut each = pieces.iter_mut();
        let mut messages: [_; BATCH] =
            std::array::from_fn(|_| InMessage::new(each.next().map_or(&mut [], |pieces| &mut pieces[..])));
        let most = most.min(BATCH);
        let mut lengths = [0; BATCH];
        let read = match messages::receive(&self.socket, &mut messages[..most]) {
            Ok(read) => read,
            Err(error) => {
                return match Errno::from_io_error(&error) {
                    Some(Errno::AGAIN | Errno::INTR | Errno::NOBUFS) => Ok(lengths),
                    _ => Err(error),
                };
            }
        };
        for (length, message) in lengths.iter_mut().zip(&messages).take(read) {
            *length = message.len();
        }
        Ok(lengths)
    }

    /// Accepts a packet (with another mark, if there is one), or drops it. Verdicts are sent with
    /// [`Queues::flush`], or when there are many.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn decide(&mut self, queue: u16, id: u32, accept: bool, mark: Option<u32>) -> io::Result<()> {
        let mut body = [0_u8; 20];
        let verdict = if accept { ACCEPT } else { DROP };
        put_attribute(&mut body[..12], VERDICT_HEAD, &[verdict.to_be_bytes(), id.to_be_bytes()]);
        let mut bytes = 12;
        if let Some(mark) = mark {
            put_attribute(&mut body[12..], MARK, &[mark.to_be_bytes()]);
            bytes = 20;
        }
        message(&mut self.verdicts, VERDICT, NLM_F_REQUEST, 0, queue, &body[..bytes]);
        if self.verdicts.len() >= FULL { self.flush() } else { Ok(()) }
    }

    /// Sends the verdicts collected.
    ///
    /// # Errors
    /// What the kernel reports.
    pub fn flush(&mut self) -> io::Result<()> {
        if self.verdicts.is_empty() {
            return Ok(());
        }
        let sent = self.send(&self.verdicts);
        self.verdicts.clear();
        sent
    }
}

impl AsFd for Queues {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Packets dropped before they came to a program, in these queues of the calling thread's namespace; 0 where
/// that is unknown.
#[must_use]
pub fn dropped_before(queues: &[u16]) -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/netfilter/nfnetlink_queue").unwrap_or_default();
    let of_line = |line: &str| -> Option<u64> {
        let mut words = line.split_whitespace();
        let queue: u16 = words.next()?.parse().ok()?;
        // The sixth and seventh: no space in the queue, no space in the socket.
        let lost = words.skip(4).take(2).filter_map(|word| word.parse::<u64>().ok()).sum();
        queues.contains(&queue).then_some(lost)
    };
    text.lines().filter_map(of_line).sum()
}

/// Passes on each packet of a message.
fn each(bytes: &[u8], tell: &mut dyn FnMut(Option<QueuedPacket<'_>>)) {
    if bytes.len() < BOTH_HEADS {
        return;
    }
    match u16_at(bytes, 4) {
        PACKET => {
            if let Some(waiting) = waiting(bytes) {
                tell(Some(waiting));
            }
        }
        NLMSG_ERROR if refused(bytes).is_err() => tell(None),
        _ => {}
    }
}

/// The packet in a message.
fn waiting(bytes: &[u8]) -> Option<QueuedPacket<'_>> {
    let mut waiting = QueuedPacket {
        queue: u16::from_be_bytes([bytes[18], bytes[19]]),
        id: 0,
        protocol: 0,
        mark: 0,
        priority: 0,
        front: &[],
        len: 0,
        is_super: false,
    };
    let (mut whole, mut known) = (None, false);
    for (number, value) in each_attribute(bytes.get(BOTH_HEADS..)?) {
        match number {
            PACKET_HEAD if value.len() >= 7 => {
                waiting.id = word(value)?;
                waiting.protocol = u16::from_be_bytes([value[4], value[5]]);
                known = true;
            }
            MARK => waiting.mark = word(value)?,
            PRIORITY => waiting.priority = word(value)?,
            PAYLOAD => waiting.front = value,
            WHOLE_LENGTH => whole = word(value),
            INFO => waiting.is_super = word(value)? & INFO_GSO != 0,
            _ => {}
        }
    }
    waiting.len = whole.unwrap_or(waiting.front.len() as u32);
    known.then_some(waiting)
}

fn word(bytes: &[u8]) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?))
}

/// A number of 16 bits in this machine's order.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}

/// The error in an acknowledgement.
fn refused(bytes: &[u8]) -> io::Result<()> {
    let code = i32::from_ne_bytes([bytes[16], bytes[17], bytes[18], bytes[19]]);
    if code == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(code.saturating_neg())) }
}

/// Appends a message about a queue.
fn message(to: &mut Vec<u8>, kind: u16, flags: u16, sequence: u32, queue: u16, attributes: &[u8]) {
    put_head(to, (BOTH_HEADS + attributes.len()) as u32, kind, flags, sequence);
    // Any family, version 0, and the number of the queue (`nfgenmsg`).
    to.extend([0, 0]);
    to.extend(queue.to_be_bytes());
    to.extend_from_slice(attributes);
}

/// Writes an attribute of words into room of the right length.
fn put_attribute<const N: usize>(to: &mut [u8], kind: u16, words: &[[u8; 4]; N]) {
    to[..2].copy_from_slice(&((4 + 4 * N) as u16).to_ne_bytes());
    to[2..4].copy_from_slice(&kind.to_ne_bytes());
    for (room, word) in to[4..].chunks_exact_mut(4).zip(words) {
        room.copy_from_slice(word);
    }
}

pub(crate) fn fuzz(bytes: &[u8]) {
    each(bytes, &mut |_| {});
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(front: &[u8]) -> Vec<u8> {
        let mut attributes = Vec::new();
        put(&mut attributes, PACKET_HEAD, &[0, 0, 0, 7, 0x08, 0x00, 4]);
        put(&mut attributes, MARK, &9_u32.to_be_bytes());
        put(&mut attributes, INFO, &INFO_GSO.to_be_bytes());
        put(&mut attributes, WHOLE_LENGTH, &64_000_u32.to_be_bytes());
        put(&mut attributes, PAYLOAD, front);
        let mut bytes = Vec::new();
        message(&mut bytes, PACKET, 0, 0, 40, &attributes);
        bytes
    }

    #[test]
    fn a_packet_is_reported() {
        let bytes = packet(&[0x45; 128]);
        let expected = QueuedPacket {
            queue: 40,
            id: 7,
            protocol: 0x0800,
            mark: 9,
            priority: 0,
            front: &[0x45; 128],
            len: 64_000,
            is_super: true,
        };
        assert_eq!(waiting(&bytes), Some(expected));
    }

    #[test]
    fn what_is_cut_short_is_no_packet_or_a_shorter_one() {
        let bytes = packet(&[0x45; 20]);
        for cut in 0..bytes.len() {
            each(&bytes[..cut], &mut |waiting| assert!(waiting.is_some_and(|waiting| waiting.id == 7)));
        }
    }
}
