//! Transactions: what people wait for. A look-up over UDP, then a dialogue over TCP, then perhaps more of them side by side.
//!
//! A DNS query is a look-up alone; an SSH login a dialogue of a few turns; a page a look-up, the document, and what the document
//! names, over several connections at once. Each begins at a fixed interval whether or not the one before has ended, and is given
//! up after a patience.

use crate::event::{Kind, MAX_INDEX};
use crate::machine::Machine;
use crate::net::{Cargo, Net, PathId, Role, TransactionId};
use crate::tcp::cc::CongestionControl;
use crate::tcp_flow::{FlowSpec, Half, TcpFlow};
use crate::wire::{Ends, Fields, Template};
use alloc::vec::Vec;
use core::net::IpAddr;
use tidegate_packet::{Pkt, Span, Time};

/// One thing said in a dialogue, after all that was said before has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The side that opened the connection speaks.
    pub client: bool,
    /// Payload bytes.
    pub bytes: u32,
    /// What the speaker needs before it speaks.
    pub think: Span,
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
    pub think: Span,
    /// Until the question is asked again.
    pub retry: Span,
    /// How often it is asked in all.
    pub tries: u32,
}

/// What is done, again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Between two beginnings; a millisecond at least.
    pub every: Span,
    /// Given up after so long.
    pub patience: Span,
    /// How its connections react to congestion.
    pub control: CongestionControl,
    /// First, if at all: a name is looked up.
    pub lookup: Option<Lookup>,
    /// The server's TCP port.
    pub port: u16,
    /// Then this is said over one connection; nothing: there is none.
    pub dialogue: Vec<Turn>,
    /// Then these, at once: the first on the same connection, each other on one of its own.
    pub followers: Vec<Vec<Turn>>,
    /// So many of these, the first ones, are needed before something can be shown (a page: its first paint).
    pub paint: usize,
}

/// Who does it, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransactionSpec {
    /// What is done.
    pub what: Transaction,
    /// Who begins.
    pub client: IpAddr,
    /// Who answers.
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
    pub first: Option<Span>,
    /// Until what is needed to show something had come: the dialogue and the first of what follows it.
    pub paint: Option<Span>,
    /// Until everything had ended; `None`: given up, or still going on.
    pub all: Option<Span>,
}

/// A connection of one go.
#[derive(Debug)]
struct Connection {
    flow: u32,
    /// Which dialogue: 0 the first, n the n-th follower.
    part: usize,
    /// Turns whose message has arrived.
    done: usize,
}

/// One go.
#[derive(Debug)]
struct Go {
    completion: Completion,
    /// Questions asked.
    asked: u32,
    /// Where the last question came from, as the server saw it.
    asker: Option<Ends>,
    answered: bool,
    given_up: bool,
    connections: Vec<u32>,
    /// Parts that have not ended, and those of them that the first paint waits for.
    open: usize,
    unpainted: usize,
}

#[derive(Clone, Copy, Debug)]
enum Todo {
    Begin,
    Ask(u32),
    Reply(u32),
    Speak(u32),
    GiveUp(u32),
}

#[derive(Debug)]
pub(crate) struct Running {
    spec: TransactionSpec,
    goes: Vec<Go>,
    /// Connections of all goes, each with its go.
    connections: Vec<(u32, Connection)>,
    agenda: Vec<(Time, Todo)>,
    ports: u16,
}

impl Running {
    fn new(spec: TransactionSpec) -> Running {
        let agenda = alloc::vec![(spec.start, Todo::Begin)];
        Running { goes: Vec::new(), connections: Vec::new(), agenda, ports: spec.first_port, spec }
    }

    fn turns(&self, part: usize) -> &[Turn] {
        match part.checked_sub(1) {
            None => &self.spec.what.dialogue,
            Some(at) => self.spec.what.followers.get(at).map_or(&[], Vec::as_slice),
        }
    }

    fn next_port(&mut self) -> u16 {
        self.ports = self.ports.checked_add(1).unwrap_or(self.spec.first_port);
        self.ports
    }

    /// Takes what is due from the agenda, the earliest first.
    fn due(&mut self, now: Time) -> Option<Todo> {
        let at = (0..self.agenda.len()).filter(|&i| self.agenda[i].0 <= now).min_by_key(|&i| self.agenda[i].0)?;
        Some(self.agenda.remove(at).1)
    }

    /// The first part, or everything, has ended.
    fn part_ends(&mut self, go: usize, part: usize, now: Time) {
        let go = &mut self.goes[go];
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

impl<M: Machine> Net<M> {
    /// Adds a transaction, which is done again and again from its start on.
    ///
    /// # Panics
    /// There are a million transactions already.
    pub fn transaction(&mut self, spec: TransactionSpec) -> TransactionId {
        let id = self.transactions.len();
        assert!(id < MAX_INDEX, "a million transactions at most");
        self.events.push(spec.start.max(self.now), Kind::Transaction, id);
        self.transactions.push(Running::new(spec));
        TransactionId(id as u32)
    }

    /// How each of them went, in the order they began.
    pub fn completions(&self, transaction: TransactionId) -> Vec<Completion> {
        self.transactions[transaction.0 as usize].goes.iter().map(|go| go.completion).collect()
    }

    /// The time of something on its agenda has come.
    pub(crate) fn transaction_due(&mut self, index: usize) {
        while let Some(todo) = self.transactions[index].due(self.now) {
            match todo {
                Todo::Begin => self.begin(index),
                Todo::Ask(go) => self.ask(index, go),
                Todo::Reply(go) => self.reply(index, go),
                Todo::Speak(connection) => self.speak(index, connection),
                Todo::GiveUp(go) => self.give_up(index, go),
            }
        }
    }

    fn plan(&mut self, index: usize, at: Time, todo: Todo) {
        self.transactions[index].agenda.push((at, todo));
        self.events.push(at, Kind::Transaction, index);
    }

    fn begin(&mut self, index: usize) {
        let running = &mut self.transactions[index];
        let (every, patience) = (Span(running.spec.what.every.0.max(1_000_000)), running.spec.what.patience);
        if self.now >= running.spec.stop {
            return;
        }
        let go = running.goes.len() as u32;
        running.goes.push(Go {
            completion: Completion { began: self.now, first: None, paint: None, all: None },
            asked: 0,
            asker: None,
            answered: false,
            given_up: false,
            connections: Vec::new(),
            open: 1 + running.spec.what.followers.len(),
            unpainted: 1 + running.spec.what.paint.min(running.spec.what.followers.len()),
        });
        let looks_up = running.spec.what.lookup.is_some();
        self.plan(index, self.now + every, Todo::Begin);
        self.plan(index, self.now + patience, Todo::GiveUp(go));
        if looks_up { self.ask(index, go) } else { self.connect(index, go, 0) }
    }

    fn ask(&mut self, index: usize, go: u32) {
        let running = &mut self.transactions[index];
        let Some(lookup) = running.spec.what.lookup else { return };
        let state = &mut running.goes[go as usize];
        if state.answered || state.given_up || state.asked >= lookup.tries {
            return;
        }
        state.asked += 1;
        let (client, server, path) = (running.spec.client, running.spec.server, running.spec.forward);
        let sport = running.next_port();
        let ends = Ends { src: client, dst: server, sport, dport: lookup.port };
        let dsfield = running.spec.dsfield;
        let cargo = Cargo { role: Role::Question, owner: index as u32, seq: go, ..Cargo::default() };
        self.plan(index, self.now + lookup.retry, Todo::Ask(go));
        self.send_datagram(ends, lookup.request, dsfield, cargo, path);
    }

    fn send_datagram(&mut self, ends: Ends, payload: u32, dsfield: u8, cargo: Cargo, path: PathId) {
        let mut template = Template::udp(ends);
        let fields = Fields { frame: template.frame(payload), dsfield, ..Fields::default() };
        match template.packet(&mut self.pool, fields) {
            Some(pkt) => {
                self.launch(pkt, cargo, path);
            }
            None => self.overflow += 1,
        }
    }

    /// A question or an answer has arrived.
    pub(crate) fn transaction_deliver(&mut self, pkt: Pkt, cargo: Cargo) {
        let seen = Ends::seen(self.pool.head(&pkt));
        self.discard(pkt);
        let (index, go) = (cargo.owner as usize, cargo.seq);
        let running = &mut self.transactions[index];
        if cargo.role == Role::Question {
            let think = running.spec.what.lookup.map_or(Span(0), |lookup| lookup.think);
            running.goes[go as usize].asker = seen;
            self.plan(index, self.now + think, Todo::Reply(go));
            return;
        }
        let state = &mut running.goes[go as usize];
        if core::mem::replace(&mut state.answered, true) || state.given_up {
            return;
        }
        if running.spec.what.dialogue.is_empty() {
            running.part_ends(go as usize, 0, self.now);
        } else {
            self.connect(index, go, 0);
        }
    }

    fn reply(&mut self, index: usize, go: u32) {
        let running = &mut self.transactions[index];
        let Some(lookup) = running.spec.what.lookup else { return };
        let Some(asker) = running.goes[go as usize].asker else { return };
        let (dsfield, path) = (running.spec.dsfield, running.spec.back);
        let cargo = Cargo { role: Role::Answer, owner: index as u32, seq: go, ..Cargo::default() };
        self.send_datagram(asker.back(), lookup.reply, dsfield, cargo, path);
    }

    /// Opens a connection for a part of a go: two flows with one handshake.
    fn connect(&mut self, index: usize, go: u32, part: usize) {
        let (flow, peer) = (self.flows.len() as u32, self.flows.len() as u32 + 1);
        if peer as usize >= MAX_INDEX {
            self.overflow += 1;
            return;
        }
        let running = &mut self.transactions[index];
        let ends = Ends {
            src: running.spec.client,
            dst: running.spec.server,
            sport: running.next_port(),
            dport: running.spec.what.port,
        };
        let connection = running.connections.len() as u32;
        running.connections.push((go, Connection { flow, part, done: 0 }));
        running.goes[go as usize].connections.push(connection);
        let (forward, back) = (running.spec.forward, running.spec.back);
        let (control, dsfield, mss) = (running.spec.what.control, running.spec.dsfield, running.spec.mss);
        let spec = FlowSpec { control, dsfield, mss, start: self.now, ..FlowSpec::bulk(ends, forward, back) };
        let half = Half { peer, owner: index as u32, connection, opens: true };
        let draws = self.flow_draws(self.flows.len());
        self.flows.push(TcpFlow::half(spec, half, draws));
        let spec = FlowSpec { ends: ends.back(), forward: back, back: forward, ..spec };
        let draws = self.flow_draws(self.flows.len());
        self.flows.push(TcpFlow::half(spec, Half { peer: flow, opens: false, ..half }, draws));
        self.flow_start(flow as usize);
    }

    /// The handshake of a connection is done.
    pub(crate) fn transaction_connects(&mut self, half: Half) {
        self.next_turn(half.owner as usize, half.connection);
    }

    /// A message of a connection has arrived.
    pub(crate) fn transaction_hears(&mut self, half: Half) {
        let index = half.owner as usize;
        let running = &mut self.transactions[index];
        let (go, connection) = &mut running.connections[half.connection as usize];
        connection.done += 1;
        let (go, part, done) = (*go, connection.part, connection.done);
        if done < running.turns(part).len() {
            self.next_turn(index, half.connection);
            return;
        }
        running.part_ends(go as usize, part, self.now);
        if part == 0 && !running.spec.what.followers.is_empty() && !running.goes[go as usize].given_up {
            running.connections[half.connection as usize].1.part = 1;
            running.connections[half.connection as usize].1.done = 0;
            let followers = running.spec.what.followers.len();
            self.next_turn(index, half.connection);
            for part in 2..=followers {
                self.connect(index, go, part);
            }
        }
    }

    fn next_turn(&mut self, index: usize, connection: u32) {
        let running = &self.transactions[index];
        let of = &running.connections[connection as usize].1;
        if let Some(turn) = running.turns(of.part).get(of.done) {
            self.plan(index, self.now + turn.think, Todo::Speak(connection));
        }
    }

    fn speak(&mut self, index: usize, connection: u32) {
        let running = &self.transactions[index];
        let (go, of) = &running.connections[connection as usize];
        if running.goes[*go as usize].given_up {
            return;
        }
        let Some(turn) = running.turns(of.part).get(of.done).copied() else { return };
        let flow = of.flow + u32::from(!turn.client);
        let goes_on = of.part == 0 && !running.spec.what.followers.is_empty();
        let is_last = of.done + 1 == running.turns(of.part).len() && !goes_on;
        self.flow_writes(flow as usize, u64::from(turn.bytes), is_last);
    }

    fn give_up(&mut self, index: usize, go: u32) {
        let running = &mut self.transactions[index];
        let state = &mut running.goes[go as usize];
        if state.completion.all.is_some() {
            return;
        }
        state.given_up = true;
        for &connection in &state.connections {
            let flow = running.connections[connection as usize].1.flow as usize;
            self.flows[flow].abandon();
            self.flows[flow + 1].abandon();
        }
    }
}
