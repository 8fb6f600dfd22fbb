//! Input that the Internet may send: garbage, truncated, mutated, replayed or out-of-turn messages. Seeded,
//! so that a failure can be repeated.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use tidegate_measure::stream::{Exchange, PacketTrain, Stream};
use tidegate_probe_wire::{
    ConnectionId, ControlMessage, Departures, FlowDirection, FlowPlan, Limits, MOST, Malformed, NONCE_LEN,
    PacketArrivals, PacketHeader, PacketResponse, ProbePacketKind, Quotas, Role, SessionAction, SessionKey,
    Sessions, TcpSample, Token,
};

/// Rounds of each test: some seconds without optimisation.
const ROUNDS: usize = 30_000;

/// xorshift64.
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        (0..self.below(most)).map(|_| self.next() as u8).collect()
    }

    /// Bytes with a few of them changed, cut or put twice.
    fn mutated(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..self.below(4) {
            let at = self.below(bytes.len().max(1) as u64) as usize;
            match self.below(3) {
                0 => bytes.truncate(at),
                1 => bytes.extend_from_within(at.min(bytes.len())..),
                _ => bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte = self.0 as u8),
            }
        }
        bytes
    }

    fn stream(&mut self) -> Stream {
        let phase = |random: &mut Draws| PacketTrain {
            payload: 24 + random.below(1429) as u16,
            gap_ns: random.below(1 << 30),
            packets: random.below(300) as u32,
            dscp: random.below(64) as u8,
            ecn: random.below(3) as u8,
            rest_ns: random.below(1 << 40) * random.below(2),
        };
        Stream { phases: (0..self.below(4)).map(|_| phase(self)).collect() }
    }

    fn message(&mut self, session: u32) -> ControlMessage {
        let draw = [self.next() as u8; NONCE_LEN];
        match self.below(14) {
            0..=2 => ControlMessage::Hello { draw },
            3 => ControlMessage::Challenge { draw, wants_token: true },
            4 => ControlMessage::Proof(draw),
            5 => ControlMessage::Welcome { proof: draw, session, limits: Quotas::default().limits },
            6 | 7 => {
                let exchange = Exchange { up: self.stream(), down: self.stream() };
                ControlMessage::Plan { exchange, quiet_ns: self.next() }
            }
            8 => ControlMessage::Sent,
            9 => ControlMessage::Alive { arrived: 3 },
            10 => ControlMessage::Seen { first: self.next() as u32, part: self.bytes(40) },
            11 => ControlMessage::Refused("why".to_owned()),
            _ => {
                let way = if self.below(2) == 0 { FlowDirection::Up } else { FlowDirection::Down };
                let plan = FlowPlan { way, dscp: 0, control: "cubic".to_owned(), length_ns: self.next() };
                let key = Token::open().session_key(&[7; NONCE_LEN], &[self.below(4) as u8; NONCE_LEN]);
                ControlMessage::flow(&key, session, self.below(50) as u32, plan)
            }
        }
    }
}

#[test]
fn no_input_breaks_a_decoder_or_takes_more_memory_than_its_bytes() {
    let mut random = Draws(0x9e37_79b9_7f4a_7c15);
    for round in 0..ROUNDS {
        let bytes = if round % 3 == 0 {
            random.bytes(600)
        } else {
            let session = random.next() as u32;
            let message = random.message(session).encode();
            random.mutated(&message[4..])
        };
        if let Ok(ControlMessage::Plan { exchange, .. }) = ControlMessage::decode(&bytes) {
            assert!(
                (exchange.up.phases.len() + exchange.down.phases.len()) * 5 <= bytes.len(),
                "round {round}"
            );
        }
        let _ = PacketHeader::read(&bytes);
        let _ = TcpSample::read(&bytes);
        let _ = PacketArrivals::new(100).take_part(random.below(110) as u32, &bytes);
        let _ = Departures::new(100).take_part(random.below(110) as u32, &bytes);
        if let Some(front) = bytes.first_chunk() {
            assert!(ControlMessage::length(*front, MOST).map_or(0, |length| length) <= MOST);
        }
    }
}

/// A small server, so that every bound is met.
fn quotas() -> Quotas {
    Quotas {
        calls: 12,
        calls_each: 8,
        sessions: 4,
        sessions_each: 2,
        handshakes: 20,
        packets: 1500,
        limits: Limits { packets: 600, flows: 2, ..Quotas::default().limits },
        ..Quotas::default()
    }
}

/// Bytes received from a caller and sent to it.
#[derive(Default)]
struct SessionSeen {
    from: Option<IpAddr>,
    heard: usize,
    sent: usize,
    proven: bool,
    draw: Option<[u8; NONCE_LEN]>,
    session: u32,
    key: Option<SessionKey>,
    hello: Option<SocketAddr>,
}

#[test]
fn no_amplification_before_authentication_and_all_bounds_are_kept() {
    let token = Token::new("A good secret, that is 24 or more long").expect("it is long enough");
    let mut random = Draws(0x0123_4567_89ab_cdef);
    let mut sessions = Sessions::new(Some(token.clone()), quotas());
    let mut sessions_seen: BTreeMap<ConnectionId, SessionSeen> = BTreeMap::new();
    let (mut now, mut welcomed, mut started) = (0, 0, 0);
    for round in 0..ROUNDS {
        now += random.below(400_000_000);
        match random.below(10) {
            0 | 1 => {
                let from = IpAddr::from([10, 0, 0, random.below(4) as u8]);
                let session = random.next() as u32;
                if let Ok(call) = sessions.call(now, from, [round as u8; NONCE_LEN], session) {
                    sessions_seen
                        .insert(call, SessionSeen { from: Some(from), session, ..SessionSeen::default() });
                }
            }
            2 => {
                // Garbage, strangers' packets, other addresses.
                let packet = random.bytes(60);
                let from = SocketAddr::from(([10, 0, 0, random.below(4) as u8], 9));
                assert!(
                    matches!(sessions.datagram(now, from, &packet, 0, None), PacketResponse::Nothing),
                    "round {round}"
                );
            }
            3 => datagram(&mut random, &mut sessions, &mut sessions_seen, now),
            _ => {
                let Some(call) = sessions_seen
                    .keys()
                    .nth(random.below(sessions_seen.len().max(1) as u64) as usize)
                    .copied()
                else {
                    continue;
                };
                let (welcome, start) =
                    say(&mut random, &mut sessions, &mut sessions_seen, call, (now, &token));
                welcomed += welcome;
                started += start;
            }
        }
        // Some have lost their place to others.
        sessions_seen.retain(|call, _| {
            let sojourns = !sessions.is_overdue(now, *call);
            if !sojourns {
                sessions.hang_up(*call);
            }
            sojourns
        });
        assert!(sessions_seen.len() <= 12 && sessions.sessions() <= 4, "round {round}");
        let remembered: usize =
            sessions_seen.keys().filter_map(|call| sessions.seen(*call)).map(|seen| seen.all().len()).sum();
        assert!(remembered <= 1500, "round {round}: {remembered}");
    }
    // The test is worth something only if it comes that far, and meets most of what can be refused.
    assert!(welcomed > 100 && started > 100, "{welcomed} sessions, {started} exchanges");
    assert!(sessions.counts().refused.len() > 8, "{:?}", sessions.counts());
}

/// A caller sends a message, valid or not; returns how many sessions and exchanges began.
fn say(
    random: &mut Draws,
    sessions: &mut Sessions,
    seen: &mut BTreeMap<ConnectionId, SessionSeen>,
    call: ConnectionId,
    (now, token): (u64, &Token),
) -> (u64, u64) {
    let own = seen.get_mut(&call).expect("it is one of them");
    let most = sessions.most(call);
    let message = match random.below(8) {
        // As it should be.
        0..=3 if own.draw.is_some() && !own.proven => {
            let theirs = own.draw.unwrap_or_default();
            ControlMessage::Proof(token.prove(Role::Client, &[7; NONCE_LEN], &theirs))
        }
        0..=3 if !own.proven => ControlMessage::Hello { draw: [7; NONCE_LEN] },
        0..=3 => {
            let phase =
                PacketTrain { payload: 100, packets: 1 + random.below(400) as u32, ..PacketTrain::default() };
            let down = if own.hello.is_some() { Stream::steady(phase) } else { Stream::default() };
            ControlMessage::Plan { exchange: Exchange { up: Stream::steady(phase), down }, quiet_ns: 1 }
        }
        _ => random.message(own.session),
    };
    let bytes = message.encode();
    let bytes = if random.below(4) == 0 { random.mutated(&bytes[4..]) } else { bytes[4..].to_vec() };
    own.heard += 4 + bytes.len().min(most);
    let step = match ControlMessage::decode(&bytes) {
        Ok(message) if bytes.len() <= most => sessions.on_message(now, call, message),
        Ok(_) => sessions.garbled(call, Malformed("a message is too long")),
        Err(why) => sessions.garbled(call, why),
    };
    let mut began = (0, 0);
    let answer = match &step {
        SessionAction::Say(answer) | SessionAction::Last(answer) => answer.encode().len(),
        SessionAction::Start(start) => {
            assert!(own.proven, "a stream for somebody who proved nothing");
            assert_eq!(start.to.is_some(), !start.down.phases.is_empty());
            assert!(start.to.is_none() || start.to == own.hello, "streams go where the hello came from");
            // Some continue until the session ends.
            if random.below(4) > 0 {
                sessions.end_exchange(now, call);
            }
            began.1 = 1;
            0
        }
        SessionAction::Flow(..)
        | SessionAction::Tell { .. }
        | SessionAction::Stop { .. }
        | SessionAction::HangUp
        | SessionAction::Nothing => 0,
    };
    match &step {
        SessionAction::Say(ControlMessage::Challenge { draw, .. }) => own.draw = Some(*draw),
        SessionAction::Say(ControlMessage::Welcome { .. }) => {
            own.proven = true;
            own.key = own.draw.map(|theirs| token.session_key(&[7; NONCE_LEN], &theirs));
            began.0 = 1;
        }
        _ => {}
    }
    own.sent += answer;
    if !own.proven {
        assert!(own.sent <= own.heard, "{} bytes sent after {} heard", own.sent, own.heard);
    }
    if matches!(step, SessionAction::Last(_) | SessionAction::HangUp) || random.below(40) == 0 {
        sessions.hang_up(call);
        seen.remove(&call);
    }
    began
}

/// A packet with a session's number, from its own address or another.
fn datagram(
    random: &mut Draws,
    sessions: &mut Sessions,
    seen: &mut BTreeMap<ConnectionId, SessionSeen>,
    now: u64,
) {
    let Some(own) = seen.values_mut().nth(random.below(12) as usize) else { return };
    let right = random.below(2) == 0;
    let from = if right { own.from } else { Some(IpAddr::from([192, 0, 2, 1])) };
    let from = SocketAddr::new(from.unwrap_or(IpAddr::from([0, 0, 0, 0])), 1000 + random.below(3) as u16);
    let kind = if random.below(2) == 0 { ProbePacketKind::Hello } else { ProbePacketKind::Data };
    let header = PacketHeader {
        kind,
        exchange: random.below(4) as u8,
        session: own.session,
        number: random.below(700) as u32,
        sent: 1,
    };
    // Some are sealed by someone else's key.
    let is_ours = random.below(8) > 0;
    let key = own
        .key
        .clone()
        .filter(|_| is_ours)
        .unwrap_or_else(|| Token::open().session_key(&[0; NONCE_LEN], &[0; NONCE_LEN]));
    let packet = header.write(&key.packets(Role::Client));
    match sessions.datagram(now, from, &packet, now, Some(0)) {
        PacketResponse::Answer(answer) => {
            assert!(
                right
                    && is_ours
                    && own.proven
                    && kind == ProbePacketKind::Hello
                    && answer.len() == packet.len()
            );
            own.hello = Some(from);
        }
        PacketResponse::Noted => assert!(right && is_ours && own.proven && kind == ProbePacketKind::Data),
        PacketResponse::Nothing => {}
    }
}
