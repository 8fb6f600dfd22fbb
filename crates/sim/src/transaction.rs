//! Transactions: what people wait for. A look-up over UDP, then a dialogue over TCP, then perhaps more of
//! them side by side.
//!
//! A DNS query is a look-up alone; an SSH login a dialogue of a few turns; a page a look-up, the document,
//! and what the document names, over several connections at once. Each begins at a fixed interval whether or
//! not the one before has ended, and is abandoned after a patience.

use crate::tcp::cc::CongestionControl;
use crate::transport_meta::PathId;
use crate::wire::Ends;
use alloc::vec::Vec;
use core::net::IpAddr;
use tidegate_packet::{Nanos, Time};

/// One message of a dialogue, sent after all earlier ones have arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DialogueTurn {
    /// The side that opened the connection speaks.
    pub client: bool,
    /// Payload bytes.
    pub bytes: u32,
    /// What the speaker needs before it speaks.
    pub think: Nanos,
}

/// A question over UDP and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// The server's port: 53.
    pub port: u16,
    /// Payload bytes of the question.
    pub request: u32,
    /// Payload bytes of the answer.
    pub reply: u32,
    /// What the server needs.
    pub think: Nanos,
    /// The time until the question is sent again.
    pub retry: Nanos,
    /// The most times that it is sent.
    pub tries: u32,
}

/// What is done, repeatedly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Between two beginnings; a millisecond at least.
    pub every: Nanos,
    /// Abandoned after so long.
    pub patience: Nanos,
    /// How its connections react to congestion.
    pub control: CongestionControl,
    /// First, if at all: a name is looked up.
    pub lookup: Option<Lookup>,
    /// The server's TCP port.
    pub port: u16,
    /// What is then exchanged over one connection; empty: no connection is opened.
    pub dialogue: Vec<DialogueTurn>,
    /// Then these, at once: the first on the same connection, each other on one of its own.
    pub followers: Vec<Vec<DialogueTurn>>,
    /// So many of these, the first ones, are needed before something can be shown (a page: its first paint).
    pub paint: usize,
}

/// The ends of a transaction, and its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionSpec {
    /// What is done.
    pub what: Transaction,
    /// The client, which begins.
    pub client: IpAddr,
    /// The server.
    pub server: IpAddr,
    /// Ports of the client's side count up from here.
    pub first_port: u16,
    /// DSCP in the upper six bits, of both sides.
    pub dsfield: u8,
    /// Payload bytes of a full segment.
    pub mss: u32,
    /// The way to the server.
    pub forward: PathId,
    /// The way back.
    pub back: PathId,
    /// The first one.
    pub start: Time,
    /// None begins from then on.
    pub stop: Time,
}

/// How one went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// When it began.
    pub began: Time,
    /// Until the dialogue (or the look-up, if that was all) had ended.
    pub first: Option<Nanos>,
    /// Until what is needed to show something had come: the dialogue and the first of what follows it.
    pub paint: Option<Nanos>,
    /// Until everything had ended; `None`: abandoned, or still going on.
    pub all: Option<Nanos>,
}

/// A connection of one go.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) flow: u32,
    /// Which dialogue: 0 the first, n the n-th follower.
    pub(crate) part: usize,
    /// Turns whose message has arrived.
    pub(crate) done: usize,
}

/// One go.
#[derive(Debug)]
pub(crate) struct TransactionRun {
    pub(crate) completion: Completion,
    /// Questions sent.
    pub(crate) requests: u32,
    /// Where the last question came from, as the server saw it.
    pub(crate) asker: Option<Ends>,
    pub(crate) answered: bool,
    pub(crate) given_up: bool,
    pub(crate) connections: Vec<u32>,
    /// Parts that have not ended, and those of them that the first paint waits for.
    pub(crate) open: usize,
    pub(crate) unpainted: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Todo {
    Begin,
    Ask(u32),
    Reply(u32),
    Speak(u32),
    GiveUp(u32),
}

#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) spec: TransactionSpec,
    pub(crate) runs: Vec<TransactionRun>,
    /// Connections of all goes, each with its go.
    pub(crate) connections: Vec<(u32, Connection)>,
    pub(crate) agenda: Vec<(Time, Todo)>,
    pub(crate) ports: u16,
}

impl Running {
    pub(crate) fn new(spec: TransactionSpec) -> Running {
        let agenda = alloc::vec![(spec.start, Todo::Begin)];
        Running { runs: Vec::new(), connections: Vec::new(), agenda, ports: spec.first_port, spec }
    }

    pub(crate) fn turns(&self, part: usize) -> &[DialogueTurn] {
        match part.checked_sub(1) {
            None => &self.spec.what.dialogue,
            Some(at) => self.spec.what.followers.get(at).map_or(&[], Vec::as_slice),
        }
    }

    pub(crate) fn next_port(&mut self) -> u16 {
        self.ports = self.ports.checked_add(1).unwrap_or(self.spec.first_port);
        self.ports
    }

    /// Takes what is due from the agenda, the earliest first.
    pub(crate) fn due(&mut self, now: Time) -> Option<Todo> {
        let at =
            (0..self.agenda.len()).filter(|&i| self.agenda[i].0 <= now).min_by_key(|&i| self.agenda[i].0)?;
        Some(self.agenda.remove(at).1)
    }

    /// The first part, or everything, has ended.
    pub(crate) fn part_ends(&mut self, go: usize, part: usize, now: Time) {
        let go = &mut self.runs[go];
        let took = now.since(go.completion.began);
        if part == 0 {
            go.completion.first = Some(took);
        }
        if part <= self.spec.what.paint {
            go.unpainted -= 1;
            if go.unpainted == 0 && !go.given_up {
                go.completion.paint = Some(took);
            }
        }
        go.open -= 1;
        if go.open == 0 && !go.given_up {
            go.completion.all = Some(took);
        }
    }
}
