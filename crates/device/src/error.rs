//! What can go wrong: where, why, and what to do.

use crate::limits::{MAX_COMMANDS, MAX_TIME};
use std::fmt;
use tidegate_packet::Time;

/// Why a call was refused. A refused call has changed nothing, but for the commands
/// before a refused one ([`Error::Command`]) and timers that ran ([`Error::ManyTimers`]).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A value of `EgressConfig` is out of its range.
    Config {
        /// The member.
        member: &'static str,
        /// What is wrong, and what is allowed.
        reason: String,
    },
    /// A tc command was refused.
    Command {
        /// Its line in the text, from 1; of a command over several lines, the last.
        line: usize,
        /// The command, as it was written.
        command: String,
        /// What tc says, or why the command cannot be carried out here.
        reason: String,
        /// What to do; empty if tc's message says it all.
        remedy: String,
    },
    /// The text of commands is too long.
    Commands {
        /// Its length in bytes.
        bytes: usize,
    },
    /// Time went back, or lies beyond [`MAX_TIME`].
    Time {
        /// The time that was given.
        given: Time,
        /// The time of the latest call.
        latest: Time,
    },
    /// A step of time longer than `MAX_STEP`.
    Step {
        /// The time that was given.
        given: Time,
        /// The time of the latest call.
        latest: Time,
    },
    /// So long a step that too many timers of qdiscs are due in it. Those until `latest` did run.
    ManyTimers {
        /// The time that was given.
        given: Time,
        /// The time until which timers ran: the latest time from now on.
        latest: Time,
    },
    /// An offered packet cannot exist.
    Packet {
        /// What is wrong, and what is allowed.
        reason: String,
    },
    /// The device holds as many packets as its configuration allows.
    Full {
        /// The limit: `EgressConfig::packets`.
        limit: u32,
    },
    /// As many drops wait to be read as the device may hold packets.
    UnreadDrops {
        /// How many.
        unread: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Config { member, reason } => write!(f, "configuration: {member}: {reason}"),
            Error::Command { line, command, reason, remedy } => {
                write!(f, "line {line}: `{command}`: {reason}")?;
                if remedy.is_empty() { Ok(()) } else { write!(f, "\n{remedy}") }
            }
            Error::Commands { bytes } => write!(
                f,
                "commands: {bytes} bytes, at most {} are read at once: give them in several calls",
                MAX_COMMANDS
            ),
            Error::Time { given, latest } if given < latest => write!(
                f,
                "time: {} ns is before {} ns, the time of the latest call: give events in the order of their \
                time",
                given.0, latest.0
            ),
            Error::Time { given, .. } => write!(
                f,
                "time: {} ns is beyond {} ns: count from the start of your simulation",
                given.0, MAX_TIME.0
            ),
            Error::Step { given, latest } => write!(
                f,
                "time: {} ns is more than an hour after {} ns, the time of the latest call: poll at least once an \
                hour, or set `start` in the configuration if this is the first call",
                given.0, latest.0
            ),
            Error::ManyTimers { given, latest } => write!(
                f,
                "time: more than 65536 timers of qdiscs are due before {} ns; those until {} ns ran: call \
                again, or poll at the next time that the device gives",
                given.0, latest.0
            ),
            Error::Packet { reason } => write!(f, "packet: {reason}"),
            Error::Full { limit } => write!(
                f,
                "packet: the device holds {limit} packets, as many as its configuration allows: raise `packets`, \
                or give the qdisc a lower limit"
            ),
            Error::UnreadDrops { unread } => {
                write!(f, "packet: {unread} drops were not read: read them after each offer and poll")
            }
        }
    }
}

impl std::error::Error for Error {}
