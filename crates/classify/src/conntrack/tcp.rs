//! A TCP connection as a bystander sees it: by the order of flags, not by windows.

use super::entry::{Entry, Tcp};
use crate::headers::Outer;
use tidegate_packet::header::tcp_flags;

/// What is to be done with a packet.
pub(super) enum Step {
    /// It moves the connection to this state.
    Go(Tcp),
    /// As `Go`, but the packet is neither counted nor keeps the connection alive.
    Slip(Tcp),
    /// It is let pass and changes nothing.
    Ignore,
    Invalid,
    /// It begins a new connection in place of the old.
    Reopen,
}

/// What a TCP packet without a connection begins; `None`: nothing.
pub(super) fn opening(flags: u8) -> Option<Tcp> {
    use tcp_flags::{ACK, FIN, RST, SYN};
    match flags & (SYN | ACK | FIN | RST) {
        _ if !is_sane(flags) => None,
        SYN => Some(Tcp::SynSent),
        ACK => Some(Tcp::Established),
        _ => None,
    }
}

/// Whether these flags may occur together. PSH, ECE and CWR may come with any.
fn is_sane(flags: u8) -> bool {
    use tcp_flags::{ACK, FIN, RST, SYN, URG};
    const TOGETHER: [u8; 9] =
        [SYN, SYN | URG, SYN | ACK, RST, RST | ACK, FIN | ACK, FIN | ACK | URG, ACK, ACK | URG];
    TOGETHER.contains(&(flags & (SYN | ACK | FIN | RST | URG)))
}

/// What a TCP packet does to its connection.
pub(super) fn step(entry: &Entry, reply: bool, outer: &Outer) -> Step {
    use tcp_flags::{ACK, FIN, RST, SYN};
    let flags = outer.tcp_flags.unwrap_or(0);
    let (state, answered) = (entry.tcp, entry.answered);
    if !is_sane(flags) {
        return Step::Invalid;
    }
    let kind = match flags {
        f if f & RST != 0 => RST,
        f if f & (SYN | ACK) == SYN | ACK => SYN | ACK,
        f if f & SYN != 0 => SYN,
        f if f & FIN != 0 => FIN,
        f if f & ACK != 0 => ACK,
        _ => return Step::Invalid,
    };
    match (state, kind, reply) {
        (Tcp::SynSent, SYN, false) if answered => Step::Go(state),
        (Tcp::SynSent, SYN, false) => Step::Ignore,
        (Tcp::SynSent, SYN, true) if answered => Step::Go(Tcp::SynBoth),
        (Tcp::SynSent, SYN, true) => Step::Slip(Tcp::SynBoth),
        (Tcp::SynSent | Tcp::SynBoth, k, _) if k == SYN | ACK && (reply || state == Tcp::SynBoth) => {
            Step::Go(Tcp::SynReceived)
        }
        (Tcp::SynSent, ACK, true) => Step::Ignore,
        (Tcp::SynSent, RST, _) if answered => Step::Go(Tcp::Refused(!reply)),
        // It acknowledges data that were not sent.
        (Tcp::SynSent, RST, false) if flags & ACK != 0 && outer.tcp_ack != Some(0) => Step::Invalid,
        (Tcp::SynSent, RST, _) => Step::Go(Tcp::Closed(!reply)),
        (Tcp::SynSent, _, _) => Step::Invalid,
        (Tcp::SynBoth, SYN, _) => Step::Go(state),
        (Tcp::SynBoth, ACK, true) => Step::Ignore,
        (Tcp::SynBoth, RST, _) => Step::Go(Tcp::Closed(!reply)),
        (Tcp::SynBoth, _, _) => Step::Invalid,
        (Tcp::TimeWait, SYN, _) => Step::Reopen,
        (_, SYN, true) => Step::Invalid,
        (Tcp::Ended | Tcp::Closed(true) | Tcp::Refused(true), SYN, false) => Step::Reopen,
        // The side that opened it and did not reset it may continue, unless it acknowledges just what the
        // reset did.
        (Tcp::Refused(false), ACK | FIN | RST, false) if outer.tcp_ack != Some(entry.reset_ack) => {
            Step::Go(Tcp::Closed(kind == RST))
        }
        (Tcp::Refused(_), RST, _) => Step::Go(Tcp::Refused(!reply)),
        (Tcp::Refused(_), k, false) if k != SYN => Step::Invalid,
        // The other side continues sending: so may the side that opened it.
        (Tcp::Refused(_), k, true) if k == SYN | ACK => Step::Slip(Tcp::Refused(false)),
        (Tcp::Refused(_), _, true) => Step::Go(Tcp::Closed(false)),
        (_, SYN, false) => Step::Ignore,
        (Tcp::SynReceived, k, true) if k == SYN | ACK => Step::Ignore,
        (Tcp::SynReceived, k, false) if k == SYN | ACK => Step::Go(state),
        (_, k, false) if k == SYN | ACK => Step::Invalid,
        (_, k, true) if k == SYN | ACK => Step::Ignore,
        (Tcp::FinWait | Tcp::CloseWait | Tcp::LastAck | Tcp::TimeWait | Tcp::Ended, RST, _) => {
            Step::Go(Tcp::Ended)
        }
        (_, RST, _) => Step::Go(Tcp::Closed(!reply)),
        (Tcp::Closed(_), _, _) => Step::Go(Tcp::Closed(false)),
        (Tcp::Ended | Tcp::TimeWait, _, _) => Step::Go(state),
        (Tcp::FinWait | Tcp::CloseWait | Tcp::LastAck, FIN, _) => Step::Go(Tcp::LastAck),
        (_, FIN, _) => Step::Go(Tcp::FinWait),
        (Tcp::FinWait, _, _) => Step::Go(Tcp::CloseWait),
        (Tcp::LastAck, _, _) => Step::Go(Tcp::TimeWait),
        (Tcp::SynReceived, _, true) => Step::Go(state),
        (Tcp::SynReceived | Tcp::Established, _, _) => Step::Go(Tcp::Established),
        (other, _, _) => Step::Go(other),
    }
}
