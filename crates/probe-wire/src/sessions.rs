//! The server's side: the calls, their authentication, and the packets that have arrived.
//!
//! Each TCP connection is a [`ConnectionId`]. A client that proves that it knows the token has a session,
//! with one exchange at a time; a call may also be a flow of a session. Everything has a bound (see
//! [`Quotas`]), everything refused a [`Reason`] and a count. Nothing is sent to an address but what the call
//! from there requested, and by UDP only to where the session's hello came from by UDP. Strangers have places
//! of their own, so that they cannot keep out authenticated clients.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

use tidegate_measure::stream::{Exchange, Stream};

use crate::account::PacketArrivals;
use crate::auth::{NONCE_LEN, Proof, Role, SessionKey, TAG, Token};
use crate::bytes::Malformed;
use crate::message::{ControlMessage, FIRST_MOST, FlowDirection, FlowPlan, Limits, MOST};
use crate::packet::{PacketHeader, ProbePacketKind};
use crate::quotas::{Quotas, Reason};

/// Addresses whose handshakes are remembered; the ones that may call again soonest are forgotten first.
const REMEMBERED: usize = 4096;

/// The number of a TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConnectionId(u64);

/// What is to be done after a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionAction {
    /// Nothing.
    Nothing,
    /// Say this.
    Say(ControlMessage),
    /// Send this and close the connection.
    Last(ControlMessage),
    /// Close the connection without a message: the message would be longer than the client's own.
    HangUp,
    /// Say `Go`, and send the stream down to this address.
    Start(Start),
    /// Say `Go`, sealed by the flow's key, and let the flow flow.
    Flow(FlowPlan, SessionKey),
    /// Wait until all packets have arrived or none has for so long (ns), then report what arrived.
    Tell {
        /// How long nothing must have come.
        quiet_ns: u64,
    },
    /// End the stream down, then do as for [`SessionAction::Tell`].
    Stop {
        /// How long nothing must have come.
        quiet_ns: u64,
    },
}

/// An exchange that begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// Where the stream down goes; `None`: there is none.
    pub to: Option<SocketAddr>,
    /// What is sent there.
    pub down: Stream,
    /// Its number, for the packets' headers.
    pub exchange: u8,
    /// The session's number; checked in every packet, as the exchange is.
    pub session: u32,
    /// By which its packets are sealed.
    pub key: SessionKey,
}

/// What a packet was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketResponse {
    /// To be answered with these bytes, which are as many as came.
    Answer([u8; PacketHeader::ENCODED_LEN]),
    /// Noted.
    Noted,
    /// Nothing of tidegate's, or out of place.
    Nothing,
}

/// What has happened so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerStats {
    /// Sessions that began.
    pub sessions: u64,
    /// Exchanges that began.
    pub exchanges: u64,
    /// Flows that began.
    pub flows: u64,
    /// UDP packets that were noted or answered.
    pub packets: u64,
    /// UDP packets of no session.
    pub strays: u64,
    /// What was refused, by reason.
    pub refused: BTreeMap<Reason, u64>,
}

/// The connections, and the state of each.
#[derive(Debug)]
pub struct Sessions {
    token: Option<Token>,
    quotas: Quotas,
    calls: BTreeMap<ConnectionId, Caller>,
    /// The call whose session has a number.
    by_number: BTreeMap<u32, ConnectionId>,
    /// Congestion controls that flows may name.
    controls: Vec<String>,
    /// Of each address until when its handshakes have been used up.
    handshakes: BTreeMap<IpAddr, u64>,
    next: u64,
    counts: ServerStats,
}

#[derive(Debug)]
struct Caller {
    from: IpAddr,
    since: u64,
    heard: u64,
    /// How many bytes it sent more than it received.
    credit: usize,
    draw: [u8; NONCE_LEN],
    /// What its session would be called.
    number: u32,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// It has sent nothing.
    Fresh,
    /// It was requested a proof.
    Challenged { draw: [u8; NONCE_LEN] },
    /// It measures.
    Session(Session),
    /// It is a flow of a session.
    Flow { of: ConnectionId, until: u64 },
}

/// The most flows of a session, one after the other.
const MOST_FLOWS: usize = 4096;

#[derive(Debug)]
struct Session {
    key: SessionKey,
    /// Numbers of flows that were used.
    used: BTreeSet<u32>,
    /// Where its hello came from by UDP.
    at: Option<SocketAddr>,
    exchange: u8,
    /// What of the exchange has come; `None`: there is none.
    seen: Option<PacketArrivals>,
    quiet_ns: u64,
    until: u64,
    flows: u16,
}

impl Session {
    fn new(key: SessionKey) -> Session {
        Session {
            key,
            used: BTreeSet::new(),
            at: None,
            exchange: 0,
            seen: None,
            quiet_ns: 0,
            until: 0,
            flows: 0,
        }
    }
}

impl Sessions {
    /// Without calls. Without a token every client is accepted.
    pub fn new(token: Option<Token>, quotas: Quotas) -> Sessions {
        Sessions {
            token,
            quotas,
            calls: BTreeMap::new(),
            by_number: BTreeMap::new(),
            controls: Vec::new(),
            handshakes: BTreeMap::new(),
            next: 0,
            counts: ServerStats::default(),
        }
    }

    /// The congestion controls that flows may name: those that are loaded, as naming another would load it.
    pub fn with_controls(self, controls: Vec<String>) -> Sessions {
        Sessions { controls, ..self }
    }

    /// A connection is opened; `draw` and `number` were drawn for it. A stranger's place may be given to it:
    /// its time is then [over](Sessions::is_overdue).
    ///
    /// # Errors
    /// It is refused: close the connection without a message.
    pub fn call(
        &mut self,
        now: u64,
        from: IpAddr,
        draw: [u8; NONCE_LEN],
        number: u32,
    ) -> Result<ConnectionId, Reason> {
        if self.calls.len() >= self.quotas.calls && !self.crowd_out() {
            return Err(self.refuse(Reason::Calls));
        }
        let home = neighbourhood(canonical(from));
        if self.calls.values().filter(|caller| neighbourhood(caller.from) == home).count()
            >= self.quotas.calls_each
        {
            return Err(self.refuse(Reason::CallsEach));
        }
        if self.strangers().count() >= self.quotas.strangers {
            self.crowd_out();
        }
        let call = ConnectionId(self.next);
        self.next += 1;
        let caller = Caller {
            from: canonical(from),
            since: now,
            heard: now,
            credit: 0,
            draw,
            number,
            stage: Stage::Fresh,
        };
        self.calls.insert(call, caller);
        Ok(call)
    }

    fn strangers(&self) -> impl Iterator<Item = (&ConnectionId, &Caller)> {
        self.calls
            .iter()
            .filter(|(_, caller)| matches!(caller.stage, Stage::Fresh | Stage::Challenged { .. }))
    }

    /// Frees the place of the stranger that waits longest in the neighbourhood with most of them; false:
    /// there are none.
    fn crowd_out(&mut self) -> bool {
        let mut crowds: BTreeMap<IpAddr, (usize, ConnectionId)> = BTreeMap::new();
        for (call, caller) in self.strangers() {
            // Calls ascend, so the first of a neighbourhood waits longest.
            crowds.entry(neighbourhood(caller.from)).or_insert((0, *call)).0 += 1;
        }
        let Some((_, call)) =
            crowds.into_values().max_by_key(|(count, call)| (*count, core::cmp::Reverse(*call)))
        else {
            return false;
        };
        self.calls.remove(&call);
        self.refuse(Reason::Crowded);
        true
    }

    /// Whether this caller is authenticated, or a flow of one that is.
    pub fn is_known(&self, call: ConnectionId) -> bool {
        self.calls
            .get(&call)
            .is_some_and(|caller| matches!(caller.stage, Stage::Session(_) | Stage::Flow { .. }))
    }

    /// The key of a caller's session.
    pub fn key(&self, call: ConnectionId) -> Option<SessionKey> {
        match &self.calls.get(&call)?.stage {
            Stage::Session(session) => Some(session.key.clone()),
            _ => None,
        }
    }

    /// How long the caller's next message may be, in bytes.
    pub fn most(&self, call: ConnectionId) -> usize {
        match self.calls.get(&call).map(|caller| &caller.stage) {
            Some(Stage::Session(_)) => MOST + TAG,
            _ => FIRST_MOST,
        }
    }

    /// A caller sent something that is no message.
    pub fn garbled(&mut self, call: ConnectionId, why: Malformed) -> SessionAction {
        self.last(call, if why == Malformed::VERSION { Reason::Version } else { Reason::Malformed })
    }

    /// Handles a caller's message.
    pub fn on_message(&mut self, now: u64, call: ConnectionId, message: ControlMessage) -> SessionAction {
        let Some(caller) = self.calls.get_mut(&call) else { return SessionAction::HangUp };
        caller.heard = now;
        caller.credit = caller.credit.saturating_add(message.encode().len());
        let did = match (message, &caller.stage) {
            (ControlMessage::Hello { draw }, Stage::Fresh) => self.challenge(now, call, draw),
            (ControlMessage::Proof(proof), Stage::Challenged { .. }) => self.welcome(call, &proof),
            (ControlMessage::Plan { exchange, quiet_ns }, Stage::Session(_)) => {
                self.plan(now, call, exchange, quiet_ns)
            }
            (ControlMessage::Alive { .. }, Stage::Session(_)) => Ok(SessionAction::Nothing),
            (ControlMessage::Sent, Stage::Session(Session { seen: Some(_), quiet_ns, .. })) => {
                Ok(SessionAction::Tell { quiet_ns: *quiet_ns })
            }
            (ControlMessage::Stop, Stage::Session(Session { seen: Some(_), quiet_ns, .. })) => {
                Ok(SessionAction::Stop { quiet_ns: *quiet_ns })
            }
            // The report and the wish to end may cross.
            (ControlMessage::Stop, Stage::Session(_)) => Ok(SessionAction::Nothing),
            (flow @ ControlMessage::Flow { .. }, Stage::Fresh) => self.flow(now, call, &flow),
            _ => Err(Reason::OutOfTurn),
        };
        match did {
            Ok(step) => {
                if let (SessionAction::Say(answer), Some(caller)) = (&step, self.calls.get_mut(&call)) {
                    caller.credit = caller.credit.saturating_sub(answer.encode().len());
                }
                step
            }
            // A session may ask for something smaller.
            Err(
                reason @ (Reason::Rate | Reason::Packets | Reason::Long | Reason::NoHello | Reason::Memory),
            ) => SessionAction::Say(ControlMessage::Refused(self.refuse(reason).to_string())),
            Err(reason) => self.last(call, reason),
        }
    }

    /// A UDP packet came, of this length and with this DS field, at `stamp` by the clock that outcomes speak
    /// of.
    pub fn datagram(
        &mut self,
        now: u64,
        from: SocketAddr,
        packet: &[u8],
        stamp: u64,
        ds: Option<u8>,
    ) -> PacketResponse {
        let heard = self.packet(now, from, packet, stamp, ds);
        let count =
            if heard == PacketResponse::Nothing { &mut self.counts.strays } else { &mut self.counts.packets };
        *count += 1;
        heard
    }

    /// The packets of a call's exchange that have arrived.
    pub fn seen(&self, call: ConnectionId) -> Option<&PacketArrivals> {
        match self.calls.get(&call).map(|caller| &caller.stage) {
            Some(Stage::Session(session)) => session.seen.as_ref(),
            _ => None,
        }
    }

    /// The result of a call's exchange, which is over.
    pub fn end_exchange(&mut self, now: u64, call: ConnectionId) -> Option<PacketArrivals> {
        let caller = self.calls.get_mut(&call)?;
        caller.heard = now;
        match &mut caller.stage {
            Stage::Session(session) => session.seen.take(),
            _ => None,
        }
    }

    /// A connection is closed.
    pub fn hang_up(&mut self, call: ConnectionId) {
        let Some(caller) = self.calls.remove(&call) else { return };
        match caller.stage {
            Stage::Session(_) => {
                self.by_number.remove(&caller.number);
            }
            Stage::Flow { of, .. } => {
                if let Some(Caller { stage: Stage::Session(session), .. }) = self.calls.get_mut(&of) {
                    session.flows = session.flows.saturating_sub(1);
                }
            }
            Stage::Fresh | Stage::Challenged { .. } => {}
        }
    }

    /// Has this caller's time run out? Then he is to be attached up on.
    pub fn is_overdue(&self, now: u64, call: ConnectionId) -> bool {
        let Some(caller) = self.calls.get(&call) else { return true };
        let silent = now.saturating_sub(caller.heard);
        match &caller.stage {
            Stage::Fresh | Stage::Challenged { .. } => {
                now.saturating_sub(caller.since) > self.quotas.patience_ns
            }
            Stage::Session(session) => {
                let most = match session.seen {
                    Some(_) if now < session.until => self.quotas.silence_ns,
                    _ if session.flows > 0 => u64::MAX,
                    _ => self.quotas.idle_ns,
                };
                silent > most || now.saturating_sub(caller.since) > self.quotas.longest_ns
            }
            // A flow ends with its session.
            Stage::Flow { of, until } => now > *until || !self.calls.contains_key(of),
        }
    }

    /// Notes that a caller was attached up on because his time had run out.
    pub fn was_overdue(&mut self) {
        self.refuse(Reason::Slow);
    }

    /// How many measure now.
    pub fn sessions(&self) -> usize {
        self.by_number.len()
    }

    /// What has happened so far.
    pub fn counts(&self) -> &ServerStats {
        &self.counts
    }

    /// The quotas in force.
    pub fn quotas(&self) -> &Quotas {
        &self.quotas
    }

    fn challenge(
        &mut self,
        now: u64,
        call: ConnectionId,
        draw: [u8; NONCE_LEN],
    ) -> Result<SessionAction, Reason> {
        let caller = self.calls.get_mut(&call).ok_or(Reason::OutOfTurn)?;
        let home = caller.from;
        caller.stage = Stage::Challenged { draw };
        let own = caller.draw;
        self.count_handshake(now, home)?;
        Ok(SessionAction::Say(ControlMessage::Challenge { draw: own, wants_token: self.token.is_some() }))
    }

    fn welcome(&mut self, call: ConnectionId, proof: &Proof) -> Result<SessionAction, Reason> {
        let caller = self.calls.get(&call).ok_or(Reason::OutOfTurn)?;
        let Stage::Challenged { draw } = caller.stage else { return Err(Reason::OutOfTurn) };
        let (own, number, home) = (caller.draw, caller.number, caller.from);
        let open = Token::open();
        let token = self.token.as_ref().unwrap_or(&open);
        // Without a token on the server none is needed.
        if self.token.is_some() && !token.proves(proof, Role::Client, &draw, &own) {
            return Err(Reason::Token);
        }
        let limits = self.quotas.limits;
        let proof = token.prove_with(Role::Server, &draw, &own, &ControlMessage::welcome(number, &limits));
        let key = token.session_key(&draw, &own);
        let at_home = self.by_number.values().filter(|call| {
            self.calls.get(call).is_some_and(|other| neighbourhood(other.from) == neighbourhood(home))
        });
        if at_home.count() >= self.quotas.sessions_each {
            return Err(Reason::SessionsEach);
        }
        if self.by_number.len() >= self.quotas.sessions || self.by_number.contains_key(&number) {
            return Err(Reason::Sessions);
        }
        if let Some(caller) = self.calls.get_mut(&call) {
            caller.stage = Stage::Session(Session::new(key));
        }
        self.by_number.insert(number, call);
        self.counts.sessions += 1;
        Ok(SessionAction::Say(ControlMessage::Welcome { proof, session: number, limits }))
    }

    fn plan(
        &mut self,
        now: u64,
        call: ConnectionId,
        exchange: Exchange,
        quiet_ns: u64,
    ) -> Result<SessionAction, Reason> {
        permitted(&exchange.up, &self.quotas.limits)?;
        permitted(&exchange.down, &self.quotas.limits)?;
        let packets = exchange.up.packets();
        if self.remembered().saturating_add(packets) > self.quotas.packets {
            return Err(Reason::Memory);
        }
        let length = exchange.up.length_ns().max(exchange.down.length_ns());
        let patience = self.quotas.patience_ns;
        let caller = self.calls.get_mut(&call).ok_or(Reason::OutOfTurn)?;
        let number = caller.number;
        let Stage::Session(session) = &mut caller.stage else { return Err(Reason::OutOfTurn) };
        if session.seen.is_some() {
            return Err(Reason::OutOfTurn);
        }
        let to = session.at.filter(|_| !exchange.down.phases.is_empty());
        if to.is_none() && !exchange.down.phases.is_empty() {
            return Err(Reason::NoHello);
        }
        session.exchange = session.exchange.wrapping_add(1);
        session.seen = Some(PacketArrivals::new(packets as usize));
        session.quiet_ns = quiet_ns.min(patience);
        session.until = now.saturating_add(length).saturating_add(patience);
        let start = Start {
            to,
            down: exchange.down,
            exchange: session.exchange,
            session: number,
            key: session.key.packets(Role::Server),
        };
        self.counts.exchanges += 1;
        Ok(SessionAction::Start(start))
    }

    fn flow(
        &mut self,
        now: u64,
        call: ConnectionId,
        control_message: &ControlMessage,
    ) -> Result<SessionAction, Reason> {
        let ControlMessage::Flow { session, number, plan, .. } = control_message else {
            return Err(Reason::OutOfTurn);
        };
        let from = self.calls.get(&call).ok_or(Reason::OutOfTurn)?.from;
        let of = self.by_number.get(session).copied().filter(|of| {
            let key = self.key(*of).filter(|key| control_message.is_flow_of(key));
            key.is_some() && self.calls.get(of).is_some_and(|c| c.from == from)
        });
        let Some(of) = of else {
            // Failed guesses count as handshakes.
            self.count_handshake(now, from)?;
            return Err(Reason::Secret);
        };
        if plan.way == FlowDirection::Down
            && !plan.control.is_empty()
            && !self.controls.contains(&plan.control)
        {
            return Err(Reason::Control);
        }
        let limits = self.quotas.limits;
        let Some(Caller { stage: Stage::Session(session), .. }) = self.calls.get_mut(&of) else {
            return Err(Reason::Secret);
        };
        if session.used.len() >= MOST_FLOWS || session.flows >= limits.flows {
            return Err(Reason::Flows);
        }
        if plan.length_ns > limits.longest_ns {
            return Err(Reason::Long);
        }
        if !session.used.insert(*number) {
            return Err(Reason::Secret);
        }
        session.flows += 1;
        let key = session.key.flow(*number);
        let until = now.saturating_add(plan.length_ns).saturating_add(self.quotas.patience_ns);
        if let Some(caller) = self.calls.get_mut(&call) {
            caller.stage = Stage::Flow { of, until };
        }
        self.counts.flows += 1;
        Ok(SessionAction::Flow(plan.clone(), key))
    }

    fn packet(
        &mut self,
        now: u64,
        from: SocketAddr,
        packet: &[u8],
        stamp: u64,
        ds: Option<u8>,
    ) -> PacketResponse {
        let Some(header) = PacketHeader::read(packet) else { return PacketResponse::Nothing };
        let call = self.by_number.get(&header.session);
        let Some(caller) = call.and_then(|call| self.calls.get_mut(call)) else {
            return PacketResponse::Nothing;
        };
        let Stage::Session(session) = &mut caller.stage else { return PacketResponse::Nothing };
        let is_sealed = || PacketHeader::read_sealed(packet, &session.key.packets(Role::Client)).is_some();
        if canonical(from.ip()) != caller.from || !is_sealed() {
            return PacketResponse::Nothing;
        }
        caller.heard = now;
        match header.kind {
            ProbePacketKind::Hello => {
                session.at = Some(from);
                PacketResponse::Answer(
                    PacketHeader { kind: ProbePacketKind::Seen, ..header }
                        .write(&session.key.packets(Role::Server)),
                )
            }
            ProbePacketKind::Data if header.exchange == session.exchange => {
                let noted = session.seen.as_mut().is_some_and(|seen| seen.note(header.number, stamp, ds));
                if noted { PacketResponse::Noted } else { PacketResponse::Nothing }
            }
            ProbePacketKind::Seen | ProbePacketKind::Data => PacketResponse::Nothing,
        }
    }

    /// Packets of all exchanges that are remembered.
    fn remembered(&self) -> u64 {
        let of = |caller: &Caller| match &caller.stage {
            Stage::Session(Session { seen: Some(seen), .. }) => seen.all().len() as u64,
            _ => 0,
        };
        self.calls.values().map(of).sum()
    }

    /// Counts a handshake of an address in a token bucket: each pushes the time at which it is empty again.
    fn count_handshake(&mut self, now: u64, from: IpAddr) -> Result<(), Reason> {
        let home = neighbourhood(from);
        let every = self.quotas.handshake_every_ns;
        let used = self.handshakes.get(&home).copied().unwrap_or(0).max(now);
        if used - now > every.saturating_mul(u64::from(self.quotas.handshakes.saturating_sub(1))) {
            return Err(Reason::Handshakes);
        }
        if self.handshakes.len() >= REMEMBERED && !self.handshakes.contains_key(&home) {
            self.forget(now);
        }
        self.handshakes.insert(home, used.saturating_add(every));
        Ok(())
    }

    /// Makes space for another address.
    fn forget(&mut self, now: u64) {
        self.handshakes.retain(|_, used| *used > now);
        if self.handshakes.len() >= REMEMBERED
            && let Some(soonest) =
                self.handshakes.iter().min_by_key(|(_, used)| **used).map(|(home, _)| *home)
        {
            self.handshakes.remove(&soonest);
        }
    }

    fn refuse(&mut self, reason: Reason) -> Reason {
        *self.counts.refused.entry(reason).or_default() += 1;
        reason
    }

    /// The last message to a caller that is refused, with the reason if it is authenticated or has sent more
    /// than that.
    fn last(&mut self, call: ConnectionId, reason: Reason) -> SessionAction {
        let words = ControlMessage::Refused(self.refuse(reason).to_string());
        let Some(caller) = self.calls.get(&call) else { return SessionAction::HangUp };
        let is_known = matches!(caller.stage, Stage::Session(_) | Stage::Flow { .. });
        if is_known || caller.credit >= words.encode().len() {
            SessionAction::Last(words)
        } else {
            SessionAction::HangUp
        }
    }
}

/// May a stream be?
fn permitted(stream: &Stream, limits: &Limits) -> Result<(), Reason> {
    if stream.packets() > u64::from(limits.packets) {
        return Err(Reason::Packets);
    }
    if stream.length_ns() > limits.longest_ns {
        return Err(Reason::Long);
    }
    // Counted over the whole plan: short gaps between packets are how queues are probed, and their number is
    // bounded.
    let seconds = stream.length_ns().max(1_000_000_000) as f64 / 1e9;
    if stream.bytes() as f64 * 8.0 / seconds > limits.bits_per_second as f64 {
        return Err(Reason::Rate);
    }
    Ok(())
}

/// An IPv4 address that came in IPv6's clothes is one of IPv4.
fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// The addresses whose handshakes are counted together: for IPv6 a /64, the least that a customer has.
fn neighbourhood(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(six) => Ipv6Addr::from(u128::from(six) & !u128::from(u64::MAX)).into(),
    }
}

#[cfg(test)]
mod tests;
