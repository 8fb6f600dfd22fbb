//! Transactions in a network.

use super::Net;
use crate::event::{Kind, MAX_INDEX};
use crate::machine::Forwarder;
use crate::tcp_flow::{FlowSpec, TcpEndpoint, TcpFlow};
use crate::transaction::{Completion, Connection, Running, Todo, TransactionRun, TransactionSpec};
use crate::transport_meta::{PathId, Role, TransactionId, TransportMeta};
use crate::wire::{Ends, Fields, Template};
use alloc::vec::Vec;
use tidegate_packet::{Nanos, Pkt, Time};

impl<M: Forwarder> Net<M> {
    /// Adds a transaction, which is done repeatedly from its start on.
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
        self.transactions[transaction.0 as usize].runs.iter().map(|go| go.completion).collect()
    }

    /// The time of something on its agenda has come.
    pub(crate) fn transaction_due(&mut self, index: usize) {
        while let Some(todo) = self.transactions[index].due(self.now) {
            match todo {
                Todo::Begin => self.begin(index),
                Todo::Ask(go) => self.send_question(index, go),
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
        let (every, patience) = (Nanos(running.spec.what.every.0.max(1_000_000)), running.spec.what.patience);
        if self.now >= running.spec.stop {
            return;
        }
        let go = running.runs.len() as u32;
        running.runs.push(TransactionRun {
            completion: Completion { began: self.now, first: None, paint: None, all: None },
            requests: 0,
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
        if looks_up { self.send_question(index, go) } else { self.connect(index, go, 0) }
    }

    fn send_question(&mut self, index: usize, go: u32) {
        let running = &mut self.transactions[index];
        let Some(lookup) = running.spec.what.lookup else { return };
        let state = &mut running.runs[go as usize];
        if state.answered || state.given_up || state.requests >= lookup.tries {
            return;
        }
        state.requests += 1;
        let (client, server, path) = (running.spec.client, running.spec.server, running.spec.forward);
        let sport = running.next_port();
        let ends = Ends { src: client, dst: server, sport, dport: lookup.port };
        let dsfield = running.spec.dsfield;
        let meta =
            TransportMeta { role: Role::Question, owner: index as u32, seq: go, ..TransportMeta::default() };
        self.plan(index, self.now + lookup.retry, Todo::Ask(go));
        self.send_datagram(ends, lookup.request, dsfield, meta, path);
    }

    fn send_datagram(&mut self, ends: Ends, payload: u32, dsfield: u8, meta: TransportMeta, path: PathId) {
        let mut template = Template::udp(ends);
        let fields = Fields { frame: template.frame(payload), dsfield, ..Fields::default() };
        match template.packet(&mut self.pool, fields) {
            Some(pkt) => {
                self.launch(pkt, meta, path);
            }
            None => self.overflow += 1,
        }
    }

    /// A question or an answer has arrived.
    pub(crate) fn transaction_deliver(&mut self, pkt: Pkt, meta: TransportMeta) {
        let seen = Ends::seen(self.pool.head(&pkt));
        self.discard(pkt);
        let (index, go) = (meta.owner as usize, meta.seq);
        let running = &mut self.transactions[index];
        if meta.role == Role::Question {
            let think = running.spec.what.lookup.map_or(Nanos(0), |lookup| lookup.think);
            running.runs[go as usize].asker = seen;
            self.plan(index, self.now + think, Todo::Reply(go));
            return;
        }
        let state = &mut running.runs[go as usize];
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
        let Some(asker) = running.runs[go as usize].asker else { return };
        let (dsfield, path) = (running.spec.dsfield, running.spec.back);
        let meta =
            TransportMeta { role: Role::Answer, owner: index as u32, seq: go, ..TransportMeta::default() };
        self.send_datagram(asker.back(), lookup.reply, dsfield, meta, path);
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
        running.runs[go as usize].connections.push(connection);
        let (forward, back) = (running.spec.forward, running.spec.back);
        let (control, dsfield, mss) = (running.spec.what.control, running.spec.dsfield, running.spec.mss);
        let spec = FlowSpec { control, dsfield, mss, start: self.now, ..FlowSpec::bulk(ends, forward, back) };
        let half = TcpEndpoint { peer, owner: index as u32, connection, opens: true };
        let random = self.flow_draws(self.flows.len());
        self.flows.push(TcpFlow::endpoint(spec, half, random));
        let spec = FlowSpec { ends: ends.back(), forward: back, back: forward, ..spec };
        let random = self.flow_draws(self.flows.len());
        self.flows.push(TcpFlow::endpoint(spec, TcpEndpoint { peer: flow, opens: false, ..half }, random));
        self.flow_start(flow as usize);
    }

    /// The handshake of a connection is done.
    pub(crate) fn transaction_connects(&mut self, half: TcpEndpoint) {
        self.next_turn(half.owner as usize, half.connection);
    }

    /// A message of a connection has arrived.
    pub(crate) fn transaction_hears(&mut self, half: TcpEndpoint) {
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
        if part == 0 && !running.spec.what.followers.is_empty() && !running.runs[go as usize].given_up {
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
        if running.runs[*go as usize].given_up {
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
        let state = &mut running.runs[go as usize];
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
